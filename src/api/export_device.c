/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program as kernels of a device: one text that the driver's compiler takes as it is.  Its
 * heading tells what a caller passes to each kernel and how many units of work it has; the library
 * launches them so (device.c). */
#include "api/export_int.h"

static void put_arrays(const Export *x)
{
    for (int i = 0; i < x->info->narray; i++) {
        const Buf *b = x->info->array[i];

        if (b->kind != B_CONST)
            text_f(x->out, " *     %s %s%s\n", ir_type[b->type].name, b->name,
                   b->of != NULL && b->of->from != NULL ? " (made by a plan)"
                   : b->kind == B_TEMP                  ? " (a temporary)"
                                                        : "");
    }
}

static void put_sizes(const Export *x)
{
    for (int i = 0; i < x->prog->nsize; i++)
        text_f(x->out, "%s%s", i > 0 ? ", " : "", x->prog->size[i]->name);
    for (int i = 0; i < x->info->ncount; i++)
        text_f(x->out, "%sthe positions of %s", i + x->prog->nsize > 0 ? ", " : "",
               x->info->count[i]->name);
}

static void put_kernel(const Export *x, int i)
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

void export_put_device(const Export *x, const Text *functions)
{
    text_f(x->out, "/* weft %s: a program as kernels for %s.\n *\n", weft_version(),
           x->target->name);
    export_put_program(x);
    text_str(x->out,
             " *\n * Run them in this order, in groups of one warp or of any number of threads:\n");
    for (int i = 0; i < x->info->nphase; i++)
        put_kernel(x, i);
    text_str(x->out, " *\n * Each takes these arrays, in C order and without gaps:\n");
    put_arrays(x);
    text_str(x->out,
             " * and then: where units begin and, last, end (i64), or NULL where all are of one\n"
             " * length; scratch memory for all warps or threads of the launch; a word (u32):\n"
             " * 0xffffffff before, and after a fault its number in the low 8 bits; and\n"
             " * struct weft_launch.  Its sizes are ");
    put_sizes(x);
    text_str(x->out, ".\n * Structure is not checked. */\n");
    api_put_lanes(x->out, x->target);
    text_f(x->out, "%s%s", x->target->dialect->prelude, functions->s);
}
