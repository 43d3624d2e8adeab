/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program as kernels of a device: one text that the compiler of its language takes as it is.  Its
 * heading tells what each kernel takes and how many units of work it has; after the kernels come
 * the functions that make a plan and launch them, which is what the library does in device.c. */
#include "api/export_int.h"
#include "lower/lower.h"

enum { LIMIT_ARRAYS = 250 }; /* of a kernel: CUDA passes 4 kB, emit/host.h 256 arguments */

static bool is_passed(const Export *x, int i)
{
    return x->info->array[i]->kind != B_CONST;
}

static int count_passed(const Export *x)
{
    int n = 0;

    for (int i = 0; i < x->info->narray; i++)
        n += is_passed(x, i);
    return n;
}

/* The argument of the program that array i is, or NULL: the plan has it. */
static const Arg *values_of(const Export *x, int i)
{
    const Buf *b = x->info->array[i];

    if (b->of != NULL || b->id >= x->body->prog->nbuf || x->by_buf[b->id] == 0)
        return NULL;
    return &x->body->arg[x->by_buf[b->id] - 1];
}

static void put_array_notes(const Export *x)
{
    for (int i = 0; i < x->info->narray; i++) {
        const Buf *b = x->info->array[i];

        if (is_passed(x, i))
            text_f(x->out, " *     %s %s%s\n", ir_type[b->type].name, b->name,
                   b->of != NULL && b->of->from != NULL ? " (made by a plan)"
                   : b->kind == B_TEMP                  ? " (a temporary)"
                                                        : "");
    }
}

static void put_size_notes(const Export *x)
{
    for (int i = 0; i < x->prog->nsize; i++)
        text_f(x->out, "%s%s", i > 0 ? ", " : "", x->prog->size[i]->name);
    for (int i = 0; i < x->info->ncount; i++)
        text_f(x->out, "%sthe positions of %s", i + x->prog->nsize > 0 ? ", " : "",
               x->info->count[i]->name);
}

static void put_kernel_note(const Export *x, int i)
{
    const EmitPhase *f = &x->info->phase[i];
    const char *label = x->prog->phase[i]->label;
    Text end = { .arena = &x->ctx->scratch };

    text_put(&end, "1", 1);
    if (f->parallel) {
        end.n = 0;
        text_put(&end, "", 0);
        ir_print_expr(&end, x->prog, f->extent);
    }
    text_f(x->out, " *     %s: %s; iterations 0..%s, %s", f->kernel,
           label != NULL ? label : "a phase", end.s, f->lanes ? "a warp" : "a thread");
    if (f->parts != NULL)
        text_f(x->out, " for those with one number in %s", f->parts->name);
    else if (f->step > 1)
        text_f(x->out, " for each %d of them", f->step);
    else
        text_str(x->out, " for each");
    if (f->work > 0)
        text_f(x->out, "; %lld bytes of scratch", (long long)f->work);
    if (f->why != NULL)
        text_f(x->out, "; one unit: %s", f->why);
    text_char(x->out, '\n');
}

static void put_flags(const Export *x)
{
    const Dialect *d = x->target->dialect;

    text_f(x->out, " *     %s", d->build);
    for (int i = 0; x->target->flag[i] != NULL; i++)
        text_f(x->out, " %s", x->target->flag[i]);
    text_f(x->out, " %s%s\n *\n", x->prog->name, d->suffix);
}

static void put_heading(const Export *x)
{
    const char *name = x->prog->name;

    text_f(x->out, "/* weft %s: a program as kernels for %s.  To compile it:\n", weft_version(),
           x->target->name);
    put_flags(x);
    export_put_program(x);
    text_f(
        x->out,
        " *\n"
        " * weft_plan_%s_make copies to the device what kernels need besides the caller's\n"
        " * arrays: from the sizes and the structure (int64_t, in the host's memory, not checked),"
        "\n"
        " * once for as long as these stay the same.  weft_run_%s launches the kernels in order\n"
        " * on a queue, and waits for nothing.  Its arrays are in the memory of the device: in\n"
        " * order of declaration, in C order, without gaps, outputs apart from all others.\n"
        " * weft_fault_%s waits for the queue.  weft_plan_%s_free frees a plan.  The result of\n"
        " * each is 0, or one of\n",
        name, name, name, name);
    for (int i = 1; i < FAULT_COUNT; i++)
        text_f(x->out, " *     %d: %s\n", i, loop_fault((Fault)i));
    text_str(x->out, " *     -1: out of memory\n");
    if (x->formats)
        text_str(x->out, " *     -2: the format cannot hold these entries\n");
    text_str(x->out, " *     -3: the driver refused\n"
                     " *     -4: structure counts 2^31 or more; emit the text with `set index 64`\n"
                     " * and then outputs hold anything; only weft_fault tells those above 0.\n"
                     " *\n * The kernels, in order:\n");
    for (int i = 0; i < x->info->nphase; i++)
        put_kernel_note(x, i);
    text_str(x->out, " * Each takes these arrays\n");
    put_array_notes(x);
    text_str(x->out,
             " * and then: where units begin and, last, end (i64), or NULL where all are of one\n"
             " * length; scratch memory for all warps or threads of the launch; a word (u32):\n"
             " * 0xffffffff before, and after a fault its number in the low 8 bits; and\n"
             " * struct weft_launch.  Its sizes are ");
    put_size_notes(x);
    text_str(x->out, ". */\n");
}

/* ---- What the host does. */

static void put_struct(const Export *x)
{
    text_f(x->out,
           "\n/* What the kernels of %s run with, besides the caller's arrays. */\n"
           "struct weft_plan_%s {\n    int64_t size[%d];\n    weft_phase phase[%d];\n"
           "    weft_memory array[%d]; /* NULL: the caller's */\n    weft_memory scratch, fault;\n",
           x->prog->name, x->prog->name, x->prog->nsize + x->info->ncount + 1,
           x->info->nphase > 0 ? x->info->nphase : 1, count_passed(x) + 1);
    if (x->nmember > 0)
        text_f(x->out, "    struct %s tables;\n", x->plan);
    text_str(x->out, "};\n");
}

static void put_make_head(const Export *x)
{
    int n;

    text_f(x->out, "int64_t weft_plan_%s_make(weft_queue queue,", x->prog->name);
    n = export_put_arguments(x, true, " WEFT_USED");
    text_f(x->out, "%sstruct weft_plan_%s *out)", n > 0 ? ",\n    " : "\n    ", x->prog->name);
}

static void put_run_head(const Export *x)
{
    text_f(x->out, "int64_t weft_run_%s(weft_queue queue,\n    ", x->prog->name);
    for (int i = 0; i < x->body->narg; i++) {
        const Arg *a = &x->body->arg[i];

        if (a->kind == ARG_BUF)
            text_f(x->out, "WEFT_ARRAY(%s%s) %s WEFT_USED,\n    ",
                   a->role == WEFT_INPUT ? "const " : "", export_ctype(a->type), x->name[i]);
    }
    text_f(x->out, "const struct weft_plan_%s *plan)", x->prog->name);
}

static void put_prototypes(const Export *x)
{
    const char *name = x->prog->name;

    text_char(x->out, '\n');
    put_make_head(x);
    text_f(x->out,
           ";\nvoid weft_plan_%s_free(struct weft_plan_%s *plan);\n"
           "int64_t weft_fault_%s(weft_queue queue, const struct weft_plan_%s *plan);\n",
           name, name, name, name);
    put_run_head(x);
    text_str(x->out, ";\n");
}

static void put_free(const Export *x)
{
    text_f(x->out,
           "\nvoid weft_plan_%s_free(struct weft_plan_%s *plan)\n{\n"
           "    for (int i = 0; i < %d; i++)\n        weft_delete(plan->array[i]);\n"
           "    for (int i = 0; i < %d; i++) {\n        weft_delete(plan->phase[i].unit);\n"
           "        weft_drop(plan->phase[i].kernel);\n    }\n"
           "    weft_delete(plan->scratch);\n    weft_delete(plan->fault);\n",
           x->prog->name, x->prog->name, count_passed(x), x->info->nphase);
    if (x->nmember > 0)
        text_f(x->out, "    %s_free(&plan->tables);\n", x->plan);
    text_str(x->out, "    memset(plan, 0, sizeof *plan);\n}\n");
}

/* The elements of an array that the plan has. */
static void put_length(const Export *x, const Buf *b)
{
    if (b->of == NULL) {
        export_put_count(x, b);
    } else if (b->nfull > 0) {
        export_put_total(x, b->full[b->of_k]);
        text_str(x->out, " + 1");
    } else if (b->of_k == LOOP_MAP) {
        export_put_map_length(x, b->of);
    } else if (b->of_k < 0) {
        if (b->of->parent != NULL)
            export_put_total(x, b->of->parent);
        else
            text_char(x->out, '1');
        text_str(x->out, " + 1");
    } else {
        export_put_total(x, b->of);
    }
}

static void put_copies(const Export *x)
{
    for (int i = 0, n = 0; i < x->info->narray; n += is_passed(x, i), i++) {
        const Buf *b = x->info->array[i];
        const char *from = export_argument_of(x, b);

        if (!is_passed(x, i) || values_of(x, i) != NULL)
            continue;
        text_f(x->out, "    out->array[%d] = weft_copy%s(queue, %s, ", n,
               from != NULL && b->type == T_i32 ? "_i32" : "", from != NULL ? from : "0");
        put_length(x, b);
        if (from != NULL && b->type == T_i32)
            text_f(x->out, ", &fault); /* %s */\n", b->name);
        else
            text_f(x->out, ", sizeof(%s), &fault); /* %s */\n", export_ctype(b->type), b->name);
    }
}

static void put_phases(const Export *x)
{
    for (int i = 0; i < x->info->nphase; i++) {
        const EmitPhase *f = &x->info->phase[i];

        text_f(x->out, "    weft_prepare(queue, &out->phase[%d], WEFT_KERNEL_OF(queue, %s),\n"
                       "        ", i, f->kernel);
        if (f->parallel)
            export_put_extent(x, f->extent);
        else
            text_char(x->out, '1');
        text_f(x->out, ", %d, %lld, ", f->step, (long long)f->work);
        text_f(x->out, f->width > 0 ? "%d" : f->lanes ? "WEFT_LANES" : "0", f->width * f->parts_of);
        text_f(x->out, ", %d, %s, &scratch, &fault);\n", f->each,
               f->parts != NULL ? export_argument_of(x, f->parts) : "0");
    }
}

static void put_numbers(const Export *x)
{
    for (int i = 0; i < x->prog->nsize; i++)
        text_f(x->out, "    out->size[%d] = %s;\n", i, export_size_name(x, x->prog->size[i]));
    for (int i = 0; i < x->info->ncount; i++) {
        text_f(x->out, "    out->size[%d] = ", x->prog->nsize + i);
        export_put_total(x, x->info->count[i]);
        text_str(x->out, ";\n");
    }
}

static void put_make(const Export *x)
{
    text_char(x->out, '\n');
    put_make_head(x);
    text_str(x->out,
             "\n{\n    const uint32_t none = 0xffffffffu;\n    int64_t fault = 0, scratch = 0;\n");
    if (x->nmember > 0)
        text_f(x->out, "    struct %s *plan = &out->tables;\n", x->plan);
    text_str(x->out, "\n    memset(out, 0, sizeof *out);\n");
    if (x->nmember > 0) {
        text_f(x->out, "    fault = %s_make(", x->plan);
        for (int i = 0; i < x->body->narg; i++)
            if (x->body->arg[i].kind != ARG_BUF)
                text_f(x->out, "%s, ", x->name[i]);
        text_str(x->out, "plan);\n    if (fault != 0)\n        return fault;\n");
    }
    put_numbers(x);
    put_copies(x);
    put_phases(x);
    text_f(x->out,
           "    out->scratch = weft_copy(queue, 0, scratch, 1, &fault);\n"
           "    out->fault = weft_copy(queue, &none, 1, sizeof none, &fault);\n"
           "    if (fault != 0)\n        weft_plan_%s_free(out);\n    return fault;\n}\n",
           x->prog->name);
}

static void put_run(const Export *x)
{
    int n = count_passed(x), nsize = x->prog->nsize + x->info->ncount + 1;

    text_char(x->out, '\n');
    put_run_head(x);
    text_f(x->out,
           "\n{\n    weft_memory array[%d + 3];\n    int64_t number[%d + 4], fault = 0;\n\n"
           "    memcpy(array, plan->array, %d * sizeof *array);\n"
           "    memcpy(number, plan->size, sizeof plan->size);\n",
           n, nsize, n);
    for (int i = 0, k = 0; i < x->info->narray; k += is_passed(x, i), i++)
        if (is_passed(x, i) && values_of(x, i) != NULL)
            text_f(x->out, "    array[%d] = (weft_memory)%s;\n", k,
                   x->name[values_of(x, i) - x->body->arg]);
    text_f(x->out,
           "    for (int i = 0; i < %d && fault == 0; i++)\n"
           "        fault = weft_launch_one(queue, &plan->phase[i], array, %d, number, %d,\n"
           "                                plan->scratch, plan->fault);\n"
           "    return fault;\n}\n",
           x->info->nphase, n, nsize);
}

static void put_host(const Export *x)
{
    text_str(x->out, emit_host_h);
    if (x->nmember > 0) {
        text_str(x->out, emit_plan_h);
        text_str(x->out, x->formats ? emit_convert_h : "");
    }
    text_str(x->out, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    if (x->nmember > 0)
        export_put_struct(x);
    put_struct(x);
    put_prototypes(x);
    if (x->nmember > 0)
        export_put_plan(x);
    put_free(x);
    put_make(x);
    put_run(x);
    text_f(x->out,
           "\nint64_t weft_fault_%s(weft_queue queue, const struct weft_plan_%s *plan)\n{\n"
           "    return weft_read_fault(queue, plan->fault);\n}\n",
           x->prog->name, x->prog->name);
    text_str(x->out, "#ifdef __cplusplus\n}\n#endif\n");
}

void export_put_device(const Export *x, const Text *functions)
{
    const Dialect *d = x->target->dialect;

    if (count_passed(x) > LIMIT_ARRAYS)
        err_throw(&x->ctx->err, ST_LIMIT, "%d arrays: a kernel on a device has at most %d",
                  count_passed(x), LIMIT_ARRAYS);
    put_heading(x);
    api_put_lanes(x->out, x->target);
    text_f(x->out, "%s%s", d->prelude, d->kernels);
    text_put(x->out, functions->s, functions->n);
    text_str(x->out, d->host);
    put_host(x);
    text_str(x->out, d->end);
}
