/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels around the functions of phases, where lanes are threads. */
#include "emit/emit_int.h"

enum { LIMIT_WARP = 32 }; /* lanes that each machine has at least */

static int lanes_in(const Node *n)
{
    int lanes = n->kind == N_FOR && n->lanes > 1 ? n->lanes : 0;

    for (int i = 0; i < n->nbody && lanes == 0; i++)
        lanes = lanes_in(n->body[i]);
    return lanes;
}

/* Lanes of an iteration, and parts that loops on warp are dealt to. */
void emit_note_team(Emit *o, const Node *phase, EmitPhase *f)
{
    bool warp = phase->level == LEVEL_WARP, block = phase->level == LEVEL_BLOCK;

    f->width = warp ? phase->width : block ? lanes_in(phase) : 0;
    f->width = f->lanes && phase->width > 0 ? f->width : 0;
    f->parts_of = f->width > 0 && block ? phase->width : 1;
    if (f->width * f->parts_of > LIMIT_WARP) /* then a warp does the work of several */
        f->parts_of = f->width < LIMIT_WARP ? LIMIT_WARP / f->width : 1;
    o->parts_of_team = o->warp && f->parts_of > 1;
}

int emit_teams(const EmitPhase *f)
{
    int lanes = f->width * f->parts_of;

    return lanes > 0 && lanes < LIMIT_WARP ? LIMIT_WARP / lanes : 1;
}

void emit_open_team(Emit *o, const EmitPhase *f)
{
    if (f->width > 0)
        text_f(o->out, "\n    WEFT_TEAM(%d, %d);", f->width, f->parts_of);
    else
        text_str(o->out, "\n    WEFT_TEAM(WEFT_LANES, 1);");
}

/* The macro that calls the function of the phase for units of work. */
static void put_units(Emit *o, EmitPhase *f)
{
    Text team = { .arena = o->p->arena };

    text_f(&team, f->width > 0 ? "%d" : "WEFT_LANES", f->width * f->parts_of);
    if (f->lanes && f->each)
        text_f(o->out, "    WEFT_WARP_EACH(%s, %s, %d)\n}", f->name, team.s, f->step);
    else if (f->lanes)
        text_f(o->out, "    WEFT_WARP_LEVEL(%s, %s)\n}", f->name, team.s);
    else if (f->each)
        text_f(o->out, "    WEFT_THREAD_EACH(%s, %d)\n}", f->name, f->step);
    else
        text_f(o->out, "    WEFT_THREAD_LEVEL(%s)\n}", f->name);
}

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
    text_str(o->out, " 0\n    };\n");
    put_units(o, f);
}
