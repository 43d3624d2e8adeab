/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions that keep their value while a phase runs, because they read nothing that it
 * writes. */
#include "lower/facts/facts_int.h"

#include <stdlib.h>

static void add_written(Prog *p, Invariants *k, const Expr *out)
{
    if (out->op == OP_local) {
        k->assigned = arena_grow(p->arena, k->assigned, k->nassigned, &k->cap_assigned,
                                 sizeof *k->assigned);
        k->assigned[k->nassigned++] = out->local;
    } else {
        k->written =
            arena_grow(p->arena, k->written, k->nwritten, &k->cap_written, sizeof *k->written);
        k->written[k->nwritten++] = out->buf;
    }
}

static void note_written(Prog *p, Invariants *k, const Node *n)
{
    k->builds = k->builds || n->kind == N_BUILD;
    if (n->kind == N_STORE)
        add_written(p, k, n->out);
    for (int i = 0; i < n->nat; i++)
        add_written(p, k, n->at[i].out);
    for (int i = 0; i < n->nbody; i++)
        note_written(p, k, n->body[i]);
}

static int by_buf(const void *a, const void *b)
{
    int x = (*(const Buf *const *)a)->id, y = (*(const Buf *const *)b)->id;

    return (x > y) - (x < y);
}

static int by_local(const void *a, const void *b)
{
    int x = (*(const Local *const *)a)->id, y = (*(const Local *const *)b)->id;

    return (x > y) - (x < y);
}

static void prepare(Prog *p, const Node *phase, Invariants *k)
{
    if (k->ready)
        return;
    k->ready = true;
    note_written(p, k, phase);
    array_sort(k->written, k->nwritten, sizeof *k->written, by_buf);
    array_sort(k->assigned, k->nassigned, sizeof *k->assigned, by_local);
}

/* Whether the phase changes the leaf itself: an element or a local. */
static bool is_changed(const Node *phase, const Invariants *k, Expr *e)
{
    const Buf *b = e->op == OP_cell ? e->buf : NULL;
    const Local *l = e->op == OP_local ? e->local : NULL;

    if (b != NULL)
        return (k->nwritten > 0 && bsearch(&b, k->written, (size_t)k->nwritten, sizeof *k->written,
                                           by_buf) != NULL) ||
               (k->builds && loop_writes(phase, b));
    return l != NULL && k->nassigned > 0 &&
           bsearch(&l, k->assigned, (size_t)k->nassigned, sizeof *k->assigned, by_local) != NULL;
}

bool lower_is_invariant(Prog *p, const Node *phase, Expr *e, Invariants *k)
{
    Expr *no = ir_int(p, 0), *known;

    if (e->nargs == 0 && e->op != OP_local && e->op != OP_cell) /* an array may have no indices */
        return true;
    known = *ir_memo(p, &k->known, e);
    if (known == NULL) {
        prepare(p, phase, k);
        known = is_changed(phase, k, e) ? no : e;
        for (int i = 0; i < e->nargs && known == e; i++)
            if (!lower_is_invariant(p, phase, e->arg[i], k))
                known = no;
        *ir_memo(p, &k->known, e) = known;
    }
    return known == e;
}
