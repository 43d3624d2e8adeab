/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels around the functions of phases, where lanes are threads. */
#include "emit/emit_int.h"

/* Values of lanes that a phase may have at a time without keeping half of the warps away: addresses
 * and counters take about as many registers again. */
enum { FEW_REGISTERS = 24 };

/* Registers of a thread for values of lanes that are there at a time, if each stays up to the end
 * of its block; doubles take two. */
static int registers_of(const Emit *o, const Node *n, int regs)
{
    int own = 0, most = 0;

    if (n->kind == N_FOR && n->lanes > 1)
        regs = n->regs > 1 ? n->regs : 1;
    for (int i = 0; i < n->nbody; i++) {
        const Node *c = n->body[i];
        const Local *to = c->kind == N_LET                                  ? c->local
                          : c->kind == N_STORE && c->out->op == OP_local ? c->out->local
                                                                            : NULL;
        int below = registers_of(o, c, regs);

        most = own + below > most ? own + below : most;
        if (to != NULL && (c->kind == N_LET ? to->lanes > 1 : to->lanes == 1))
            own += regs * (to->type == T_f32 ? 1 : 2);
    }
    return own > most ? own : most;
}

/* Where lanes are threads, each phase is also a kernel: all arrays, then what the prelude names. */
void emit_kernel(Emit *o, const Node *phase, EmitPhase *f, int i)
{
    Text name = { .arena = o->p->arena };
    int n = 0;

    text_f(&name, "%s_kernel_%d", o->prefix, i);
    f->kernel = name.s;
    text_f(o->out, "\n\nWEFT_KERNEL(%s) %s(",
           registers_of(o, phase, 1) <= FEW_REGISTERS ? "WEFT_RESIDENT" : "1", f->kernel);
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
