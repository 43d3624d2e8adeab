/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels around the functions of phases, where lanes are threads. */
#include "emit/emit_int.h"

/* Where lanes are threads, each phase is also a kernel: all arrays, then what the prelude names. */
void emit_kernel(Emit *o, const Node *phase, EmitPhase *f, int i)
{
    Text name = { .arena = o->p->arena };
    int n = 0;

    text_f(&name, "%s_kernel_%d", o->prefix, i);
    f->kernel = name.s;
    text_f(o->out, "\n\nWEFT_KERNEL(WEFT_BLOCKS(%d)) %s(", emit_registers(o, phase), f->kernel);
    for (int k = 0; k < o->k->narray; k++) {
        const Buf *b = o->k->array[k];

        if (b->kind != B_CONST)
            text_f(o->out, "%s(%s, %d), ",
                   emit_is_stored(o, &o->phase_stored, b) ? "WEFT_OUT" : "WEFT_IN",
                   emit_ctype(o, b->type), k);
    }
    text_f(o->out, "WEFT_LAUNCH)\n{\n    WEFT_POINTERS(%d) = {", o->k->narray + 1);
    for (int k = 0; k < o->k->narray; k++, n++)
        if (o->k->array[k]->kind == B_CONST)
            text_f(o->out, "%s0,", n % 6 == 0 ? "\n        " : " ");
        else
            text_f(o->out, "%sWEFT_AT(%d),", n % 6 == 0 ? "\n        " : " ", k);
    text_f(o->out, " 0\n    };\n    WEFT_%s_LEVEL(%s)\n}", f->lanes ? "WARP" : "THREAD", f->name);
}
