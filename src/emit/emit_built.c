/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases that build an axis.  Each runs twice: first it counts the entries of each row; then, with
 * starts and memory for them, it writes their coordinates.  Insertions go to a set (set.h), which
 * is emptied at the end of each row. */
#include "emit/emit_int.h"

static bool is_whole(const Node *n)
{
    bool whole = n->kind == N_BUILD && n->lo == NULL;

    for (int i = 0; i < n->nbody; i++)
        whole = whole || is_whole(n->body[i]);
    return whole;
}

void emit_note_build(Emit *o, const Node *n, EmitPhase *f)
{
    f->builds = loop_builds(n);
    if (f->builds == NULL)
        return;
    f->whole = is_whole(n);
    f->how = o->k->nhow;
    o->k->nhow += EMIT_BOUNDS + f->builds->ncoord;
}

/* The set, and where its entries go. */
void emit_open_build(Emit *o, const EmitPhase *f)
{
    emit_line(o);
    text_f(o->out, "const weft_set weft_keys = weft_set_open(weft_work, weft_size + %d, %d);",
           o->p->nsize + o->k->ncount + f->how, f->builds->ncoord);
    emit_line(o);
    text_str(o->out, "int64_t *const weft_coord[] = {");
    for (int k = 0; k < f->builds->ncoord; k++) {
        text_str(o->out, k > 0 ? ", " : " ");
        emit_array_name(o, loop_coord(o->p, f->builds, k));
    }
    text_str(o->out, " };");
}

void emit_close_build(Emit *o, const Node *n)
{
    emit_line(o);
    text_str(o->out, n->lo != NULL ? "weft_set_row(weft_keys, " : "weft_set_all(weft_keys");
    if (n->lo != NULL)
        emit_expr(o, n->lo, L_SELECT);
    text_str(o->out, ", ");
    emit_array_name(o, loop_start(o->p, n->axis));
    text_str(o->out, ", weft_coord);");
}

void emit_insert(Emit *o, const Node *n)
{
    emit_line(o);
    text_str(o->out, "if (weft_set_add(weft_keys, ");
    emit_expr(o, n->value, L_SELECT);
    text_f(o->out, ")) return %d;", FAULT_ROOM);
}
