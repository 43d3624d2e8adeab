/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prints a program as C that needs no library: the phases of its kernel, and one function with the
 * program's own arguments that runs them in order on the calling thread.  The arrays of a plan are
 * one more argument; export_plan.c prints the function that makes them. */
#include "api/export_int.h"
#include "lower/lower.h"

#include <string.h>

Text export_c_name(Arena *arena, const char *prefix, const char *name)
{
    Text t = { .arena = arena };

    text_f(&t, "%s%s", prefix, name);
    for (char *c = t.s; *c != 0; c++)
        *c = *c == '.' ? '_' : *c;
    return t;
}

static bool is_taken(const Export *x, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(x->name[i], name) == 0)
            return true;
    return false;
}

/* The argument's name with a prefix, so that it is no word or macro of C. */
static void name_arguments(Export *x, Arena *arena)
{
    x->name = arena_array(arena, x->body->narg, sizeof *x->name);
    x->by_buf = arena_array(arena, x->body->prog->nbuf, sizeof *x->by_buf);
    for (int i = 0; i < x->body->narg; i++)
        if (x->body->arg[i].kind == ARG_BUF)
            x->by_buf[x->body->arg[i].buf->id] = i + 1;
    for (int i = 0; i < x->body->narg; i++) {
        Text t = export_c_name(arena, x->body->arg[i].kind == ARG_SIZE ? "n_" : "a_",
                               x->body->arg[i].name);

        while (is_taken(x, i, t.s))
            text_char(&t, '_');
        x->name[i] = t.s;
    }
}

const char *export_ctype(Type t)
{
    static const char *const name[T_COUNT] = {
        [T_i32] = "int32_t",   [T_i64] = "int64_t", [T_f16] = "uint16_t",
        [T_bf16] = "uint16_t", [T_f32] = "float",   [T_f64] = "double",
    };

    return name[t];
}

int export_put_arguments(const Export *x, bool structure, const char *after)
{
    int n = 0;

    for (int i = 0; i < x->body->narg; i++) {
        const Arg *a = &x->body->arg[i];

        if (structure && a->kind == ARG_BUF)
            continue;
        text_str(x->out, n++ > 0 ? ",\n    " : "\n    ");
        text_f(x->out, "%s%s %s%s%s", a->role == WEFT_INPUT ? "const " : "", export_ctype(a->type),
               a->kind == ARG_SIZE ? "" : "*", x->name[i], after);
    }
    return n;
}

static void put_prototype(const Export *x)
{
    int n;

    text_f(x->out, "int64_t %s(", x->entry);
    n = export_put_arguments(x, false, "");
    if (x->nmember > 0)
        text_f(x->out, "%sconst struct %s *plan)", n > 0 ? ",\n    " : "\n    ", x->plan);
    else
        text_str(x->out, n > 0 ? ")" : "void)");
}

/* A member of the plan, as C reaches it; NULL: there is none. */
static const char *member_of(const Export *x, const Axis *a, int k, const Buf *base, const Size *s)
{
    for (int i = 0; i < x->nmember; i++) {
        const Member *m = &x->member[i];

        if (m->size == s && m->base == base && m->axis == a && m->k == k)
            return m->use;
    }
    return NULL;
}

const char *export_size_name(const Export *x, const Size *s)
{
    for (int i = 0; i < x->body->narg; i++)
        if (x->body->arg[i].kind == ARG_SIZE && x->body->arg[i].size->id == s->id)
            return x->name[i];
    return member_of(x, NULL, 0, NULL, s);
}

const char *export_array_name(const Export *x, const Axis *a, int k)
{
    for (int i = 0; i < x->body->narg; i++) {
        const Arg *arg = &x->body->arg[i];

        if (arg->axis != NULL && arg->axis->id == a->id &&
            (k < 0 ? k == -1 && arg->kind == ARG_START : arg->kind == ARG_COORD && arg->k == k))
            return x->name[i];
    }
    return member_of(x, a, k, NULL, NULL);
}

static bool is_argument(const Export *x, const Buf *b)
{
    return b->of == NULL && b->id < x->body->prog->nbuf && x->by_buf[b->id] > 0;
}

/* The argument that an array of the kernel is, or a member of the plan; NULL: it is the kernel's
 * own. */
const char *export_argument_of(const Export *x, const Buf *b)
{
    if (b->of != NULL && b->nfull > 0)
        return member_of(x, NULL, 0, b, NULL);
    if (b->of != NULL)
        return export_array_name(x, b->of, b->of_k);
    return is_argument(x, b) ? x->name[x->by_buf[b->id] - 1] : NULL;
}

/* An extent: sizes, counts and literals. */
void export_put_extent(const Export *x, Expr *e)
{
    switch (e->op) {
    case OP_int: text_f(x->out, "INT64_C(%lld)", (long long)e->i); break;
    case OP_size: text_str(x->out, export_size_name(x, e->size)); break;
    case OP_count: export_put_total(x, e->axis); break;
    case OP_cell:
        if (export_argument_of(x, e->buf) == NULL)
            err_throw(&x->ctx->err, ST_LIMIT, "a loop that ends at an element of %s", e->buf->name);
        text_f(x->out, "%s[", export_argument_of(x, e->buf));
        export_put_extent(x, e->arg[0]);
        text_char(x->out, ']');
        break;
    case OP_add:
    case OP_sub:
    case OP_mul:
        text_char(x->out, '(');
        export_put_extent(x, e->arg[0]);
        text_f(x->out, " %s ", ir_op[e->op].text);
        export_put_extent(x, e->arg[1]);
        text_char(x->out, ')');
        break;
    case OP_neg:
        text_str(x->out, "(-");
        export_put_extent(x, e->arg[0]);
        text_char(x->out, ')');
        break;
    default: { /* rounds down, as sizes do: see docs/ir.md */
        bool checked = e->op == OP_div || e->op == OP_mod;

        text_f(x->out, "weft_%s_%s(", ir_op[e->op].name, checked ? "ck" : "i64");
        for (int i = 0; i < e->nargs; i++) {
            text_str(x->out, i > 0 ? ", " : "");
            export_put_extent(x, e->arg[i]);
        }
        text_str(x->out, checked ? ", &fault)" : ")");
    }
    }
}

void export_put_total(const Export *x, const Axis *a)
{
    if (a->extent == X_TABLE) {
        text_f(x->out, "INT64_C(%lld)", (long long)a->starts[a->n]);
        return;
    }
    if (a->extent == X_SEG)
        text_f(x->out, "%s[", export_array_name(x, a, -1));
    if (a->extent == X_EXPR && a->parent != NULL)
        text_str(x->out, "weft_times(");
    if (a->parent != NULL)
        export_put_total(x, a->parent);
    else if (a->extent != X_EXPR)
        text_str(x->out, "1");
    if (a->extent == X_SEG)
        text_char(x->out, ']');
    if (a->extent == X_EXPR) {
        text_str(x->out, a->parent != NULL ? ", " : "");
        export_put_extent(x, a->size);
        text_str(x->out, a->parent != NULL ? ")" : "");
    }
}

static bool is_constant(const Buf *b, Dim d)
{
    bool constant = true;

    for (int k = d.first; k <= d.last; k++)
        constant = constant && ir_const_total(b->full[k]) >= 0;
    return constant;
}

static bool is_chain(const Buf *b, Dim d)
{
    bool chain = true;

    for (int k = d.first + 1; k <= d.last; k++)
        chain = chain && b->full[k]->parent == b->full[k - 1];
    return chain;
}

/* The elements of a dimension that folds several axes, all constant. */
static int64_t constant_extent(const Export *x, const Buf *b, Dim d)
{
    Arena *arena = &x->ctx->scratch;
    Buf part = { .full = b->full + d.first, .nfull = d.last - d.first + 1 };
    Layout layout;

    ir_layout(arena, x->prog, ir_env(arena, x->prog), &part, &layout);
    return layout.n;
}

void export_put_count(const Export *x, const Buf *b)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim);

    text_str(x->out, n == 0 ? "1" : "");
    for (int d = 1; d < n; d++)
        text_str(x->out, "weft_times(");
    for (int d = 0; d < n; d++) {
        text_str(x->out, d > 0 ? ", " : "");
        if (dim[d].first == dim[d].last && b->full[dim[d].first]->extent == X_EXPR)
            export_put_extent(x, b->full[dim[d].first]->size);
        else if (is_constant(b, dim[d]))
            text_f(x->out, "INT64_C(%lld)", (long long)constant_extent(x, b, dim[d]));
        else if (is_chain(b, dim[d]))
            export_put_total(x, b->full[dim[d].last]);
        else
            err_throw(&x->ctx->err, ST_LIMIT,
                      "the temporary %s has a length that is no product; bind it as an output",
                      b->name);
        text_str(x->out, d > 0 ? ")" : "");
    }
}

static void put_arrays(const Export *x)
{
    text_f(x->out, "    int64_t fault = 0;\n    void *weft_array[%d] = { 0 };\n",
           x->info->narray + 1);
    text_f(x->out, "    const int64_t weft_size[%d] = {\n", x->prog->nsize + x->info->ncount + 1);
    for (int i = 0; i < x->prog->nsize; i++)
        text_f(x->out, "        %s,\n", export_size_name(x, x->prog->size[i]));
    for (int i = 0; i < x->info->ncount; i++) {
        text_str(x->out, "        ");
        export_put_total(x, x->info->count[i]);
        text_str(x->out, ",\n");
    }
    text_str(x->out, "    };\n\n");
    for (int i = 0; i < x->info->narray; i++) {
        const Buf *b = x->info->array[i];
        const char *name = export_argument_of(x, b);

        if (b->kind == B_CONST)
            continue;
        if (name != NULL) {
            text_f(x->out, "    weft_array[%d] = (void *)%s;\n", i, name);
            continue;
        }
        text_f(x->out, "    weft_array[%d] = weft_room(", i);
        export_put_count(x, b);
        text_f(x->out, ", sizeof(%s), &fault); /* %s */\n", export_ctype(b->type), b->name);
    }
}

/* By argument: whether the kernel has it as an array. */
static const bool *find_used(const Export *x)
{
    bool *used = arena_array(x->arena, x->body->narg, sizeof *used);

    for (int i = 0; i < x->info->narray; i++) {
        const Buf *b = x->info->array[i];
        const char *name = is_argument(x, b) ? NULL : export_argument_of(x, b);

        if (is_argument(x, b))
            used[x->by_buf[b->id] - 1] = true;
        for (int k = 0; k < x->body->narg && name != NULL; k++)
            used[k] = used[k] || x->name[k] == name;
    }
    return used;
}

static void put_entry(const Export *x)
{
    const bool *used = find_used(x);

    text_str(x->out, "\n");
    put_prototype(x);
    text_str(x->out, "\n{\n");
    put_arrays(x);
    for (int i = 0; i < x->body->narg; i++)
        if (x->body->arg[i].kind != ARG_SIZE && !used[i])
            text_f(x->out, "    (void)%s;\n", x->name[i]);
    for (int i = 0; i < x->info->nphase; i++) {
        const EmitPhase *f = &x->info->phase[i];

        text_f(x->out, "    if (fault == 0)\n        fault = %s(weft_array, weft_size, 0, ",
               f->name);
        if (f->parallel)
            export_put_extent(x, f->extent);
        else
            text_char(x->out, '1');
        text_str(x->out, ", 0);\n");
    }
    for (int i = 0; i < x->info->narray; i++)
        if (x->info->array[i]->kind != B_CONST && export_argument_of(x, x->info->array[i]) == NULL)
            text_f(x->out, "    free(weft_array[%d]);\n", i);
    text_str(x->out, "    return fault;\n}\n");
}

/* The program, each line after a star. */
void export_put_program(const Export *x)
{
    Text text = { .arena = &x->ctx->scratch };

    ir_print(&text, x->body->prog);
    for (const char *s = text.s; *s != 0;) {
        size_t n = strcspn(s, "\n");

        text_str(x->out, " *     ");
        text_put(x->out, s, n);
        text_char(x->out, '\n');
        s += n + (s[n] != 0);
    }
}

/* What a caller with threads has to know of a phase. */
static void put_phase_note(const Export *x, int i)
{
    const EmitPhase *f = &x->info->phase[i];
    const char *label = x->prog->phase[i]->label;

    text_f(x->out, "\n/* %s: ", label != NULL ? label : "a phase");
    if (!f->parallel) {
        text_f(x->out, "one call, 0..1%s%s. */\n", f->why != NULL ? ": " : "",
               f->why != NULL ? f->why : "");
        return;
    }
    text_str(x->out, "0..");
    export_put_extent(x, f->extent);
    if (f->parts != NULL)
        text_f(x->out, ", cut only where %s[i] changes", export_argument_of(x, f->parts));
    else if (f->balance != NULL)
        text_f(x->out, "; row i has %s[i + 1] - %s[i] entries", export_argument_of(x, f->balance),
               export_argument_of(x, f->balance));
    text_str(x->out, ". */\n");
}

static void put_phase_prototypes(const Export *x)
{
    for (int i = 0; i < x->info->nphase; i++) {
        put_phase_note(x, i);
        text_f(x->out,
               "int64_t %s(void *const *array, const int64_t *size, int64_t begin, int64_t end,\n"
               "    void *work);\n",
               x->info->phase[i].name);
    }
}

/* For both files: the program, how it is compiled and called. */
static void put_heading(const Export *x)
{
    text_f(x->out, "/* weft %s: a program as C.  To compile it:\n *     cc -O2", weft_version());
    for (int i = 0; x->target->flag[i] != NULL; i++)
        text_f(x->out, " %s", x->target->flag[i]);
    text_str(x->out, " -ffp-contract=off ... -lm\n *\n");
    export_put_program(x);
    text_f(x->out,
           " *\n"
           " * %s runs it on the calling thread.  Its arguments are the sizes, then the arrays\n"
           " * in order of declaration: in C order, without gaps, outputs apart from all others.\n"
           " * Structure is int64_t, and not checked.",
           x->entry);
    if (x->nmember > 0)
        text_f(x->out,
               "  The last argument is what %s_make\n"
               " * has made from the sizes and the structure: once, for as long as these stay the\n"
               " * same; %s_free frees it.",
               x->plan, x->plan);
    text_str(x->out, "  The result of each is 0, or one of\n");
    for (int i = 1; i < FAULT_COUNT; i++)
        text_f(x->out, " *     %d: %s\n", i, loop_fault((Fault)i));
    text_str(x->out, " *     -1: out of memory\n");
    if (x->formats)
        text_str(x->out, " *     -2: the format cannot hold these entries\n");
    text_str(x->out, " * and then outputs hold anything. */\n");
}

static void put_header(const Export *x)
{
    const char *name = x->prog->name;

    put_heading(x);
    text_f(x->out, "#ifndef WEFT_RUN_%s_H\n#define WEFT_RUN_%s_H\n\n#include <stdint.h>\n\n", name,
           name);
    text_str(x->out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    if (x->nmember > 0) {
        export_put_struct(x);
        export_put_plan_prototypes(x);
        text_char(x->out, '\n');
    }
    put_prototype(x);
    text_str(x->out,
             ";\n\n/* Its phases, for a caller with threads: in this order, each over a range\n"
             " * that may be cut into pieces which run at the same time.  The text of the\n"
             " * function above tells their arguments. */\n");
    put_phase_prototypes(x);
    text_str(x->out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static const char room[] =
    "\n#include <stdlib.h>\n\n"
    "static inline WEFT_USED int64_t weft_times(int64_t a, int64_t b)\n{\n"
    "    return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a; /* no memory has that length */\n"
    "}\n\n"
    "static inline WEFT_USED void *weft_room(int64_t n, int64_t bytes, int64_t *fault)\n{\n"
    "    int64_t all;\n"
    "    void *p = __builtin_mul_overflow(n, bytes, &all) ? 0 : malloc((size_t)all + 1);\n\n"
    "    if (p == 0)\n        *fault = -1;\n"
    "    return p;\n}\n";

static void put_source(const Export *x, const Text *functions)
{
    const Dialect *dialect = x->target->dialect;

    put_heading(x);
    text_str(x->out, dialect->prelude);
    text_f(x->out, "%s%d%s%s%s", dialect->guard[0],
           lanes_of(&x->target->unit, T_f32) * ir_type[T_f32].bytes, dialect->guard[1],
           target_name(x->target), dialect->guard[2]);
    text_str(x->out, room);
    text_put(x->out, functions->s, functions->n);
    if (x->nmember > 0) {
        text_str(x->out, emit_plan_h);
        text_str(x->out, x->formats ? emit_convert_h : "");
        export_put_struct(x);
        export_put_plan(x);
    }
    text_char(x->out, '\n');
    put_prototype(x);
    text_str(x->out, ";\n");
    put_entry(x);
}

/* Devices compute addresses from 32 bits with half of the instructions. */
static void narrow(const Export *x, const Aim *aim)
{
    if (x->target->dialect->one == NULL || aim->sched.policy.index > 32) /* not speed: bits */
        return;
    for (int i = 0; i < x->body->narg; i++) {
        const Arg *a = &x->body->arg[i];

        if (a->kind == ARG_START || a->kind == ARG_COORD)
            lower_narrow(x->prog, x->prog->axis[a->axis->id], a->kind == ARG_START ? -1 : a->k);
    }
}

static const char *emit(weft_ctx *ctx, weft_prog *prog, const char *target, weft_part part)
{
    Arena *arena = &api_box(ctx)->arena;
    Text out = { .arena = arena }, functions = { .arena = arena }, entry = { .arena = arena };
    Text plan = { .arena = arena };
    Export x = { .ctx = ctx, .arena = arena, .body = prog->body, .out = &out };
    Kernel *k;
    Aim aim;

    body_check(prog->body);
    x.target = api_find_target(ctx, target);
    aim = api_aim_of(ctx, x.target, prog->sched);
    x.prog = api_trees(ctx, prog->body->prog);
    text_f(&entry, "weft_run_%s", x.prog->name);
    x.entry = entry.s;
    text_f(&plan, x.target->dialect->one != NULL ? "weft_tables_%s" : "weft_plan_%s", x.prog->name);
    x.plan = plan.s;
    narrow(&x, &aim);
    k = api_passes(x.prog, &aim);
    x.info = emit_functions(&functions, x.target->dialect, x.prog, k->phase, k->n, x.entry);
    for (int i = 0; i < x.info->nphase; i++)
        if (x.info->phase[i].builds != NULL)
            err_throw(&ctx->err, ST_LIMIT,
                      "%s is a built axis, whose size is known only during a run: that "
                      "needs the library; compile a kernel",
                      x.info->phase[i].builds->name);
    name_arguments(&x, arena);
    export_list_members(&x);
    text_put(&out, "", 0);
    if (x.target->dialect->one != NULL && part == WEFT_SOURCE)
        export_put_device(&x, &functions);
    else if (x.target->dialect->one != NULL)
        ; /* no C calls them */
    else if (part == WEFT_HEADER)
        put_header(&x);
    else
        put_source(&x, &functions);
    box_drop(prog->printed);
    prog->printed = api_keep(ctx);
    return out.s;
}

weft_status weft_prog_emit(weft_prog *prog, const char *target, weft_part part, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, target, "the target");
    if (part != WEFT_SOURCE && part != WEFT_HEADER)
        err_throw(&ctx->err, ST_ARG, "there is no part %d of the text", (int)part);
    *out = emit(ctx, prog, target, part);
    return api_leave(ctx);
}
