/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Helpers for phases: a phase made of a list of nodes, the loop over all entries of a phase's rows,
 * scratch arrays and their names. */
#include "lower/storage/storage_int.h"

#include <string.h>

bool lower_is_elsewhere(const Kernel *k, const Buf *b)
{
    bool is = false;

    for (int i = 0; i < k->nother && !is; i++)
        is = tree_touches(k->p, k->other[i], b);
    return is;
}

const char *lower_beside(Prog *p, const Buf *b, const char *what)
{
    Text name = { .arena = p->arena };
    const Symbol *taken;
    int number = 1;

    do {
        name.n = 0;
        text_f(&name, "%.*s.%s%d", (int)strcspn(b->name, "."), b->name, what, number++);
        taken = ir_find_symbol(p, name.s, name.n);
    } while (taken != NULL && taken->buf != NULL);
    return name.s;
}

Buf *lower_scratch(Prog *p, const Buf *beside, Type type, int64_t n)
{
    Buf b = { .type = type, .kind = B_WORK, .written = true, .nslot = 1, .nfull = 1 };

    b.name = lower_beside(p, beside, "work");
    b.full = b.slot = arena_array(p->arena, 1, sizeof *b.full);
    b.place_in_full = arena_array(p->arena, 1, sizeof *b.place_in_full);
    b.full[0] = ir_dense(p, ir_int(p, n));
    return loop_own(p, &b);
}

bool lower_has_registers(const Node *n)
{
    bool has = n->kind == N_STORE && n->out->op == OP_local;

    for (int i = 0; i < n->nbody && !has; i++)
        has = lower_has_registers(n->body[i]);
    return has;
}

void lower_done(Kernel *k, Stage stage)
{
    k->p->stage = stage;
    k->p->phase = k->phase;
    k->p->nphase = k->n;
}

Node *lower_phase(Prog *p, const NodeList *l)
{
    int n = l->n;
    Node *once;

    while (n > 0 && l->node[n - 1]->kind == N_LET) /* for nobody */
        n--;
    if (n <= 1)
        return n == 0 ? NULL : l->node[0];
    once = tree_once(p, l->node[0]->label, &(NodeList){ l->node, n, n });
    once->scheduled = l->node[n - 1]->scheduled;
    return once;
}

void lower_empty_set(Prog *p, LocalSet *s)
{
    if (s->n < p->nlocal) {
        s->n = 2 * p->nlocal;
        s->round = arena_array(p->arena, s->n, sizeof *s->round);
        s->now = 0;
    }
    s->now++;
}

Local *lower_index_owner(Expr *e)
{
    const Buf *b = e->op == OP_cell && e->buf->of_k >= 0 && e->buf->nfull == 0 ? e->buf : NULL;

    if (b != NULL && b->of != NULL &&
        (b->of->coord[b->of_k].once || (b->of->from != NULL && b->of->from_k >= 0 && b->of_k == 0)))
        e = e->arg[0];
    return e->op == OP_local ? (Local *)e->local : NULL;
}

/* Of a phase over batches, and the loop over the iterations of one: how many there are in all; or
 * NULL. */
static Expr *batched(Prog *p, const Node *phase, const Node *n)
{
    bool strip = phase->kind == N_FOR && n->kind == N_FOR && n->how == FOR_SERIAL &&
                 n->lo->op == OP_mul && n->hi->op == OP_min && phase->hi->op == OP_div;

    for (int i = 0; i < 2 && strip; i++)
        for (int k = 0; k < 2; k++) {
            Expr *size = n->lo->arg[i], *all = n->hi->arg[k];

            if (size->op == OP_int && n->lo->arg[1 - i] == loop_use(p, phase->local) &&
                n->hi->arg[1 - k] == tree_add(p, n->lo, size) &&
                phase->hi == lower_batch_count(p, all, size->i))
                return all;
        }
    return NULL;
}

Expr *lower_batch_count(Prog *p, Expr *all, int64_t size)
{
    return ir_op2(p, OP_div, tree_add(p, all, ir_int(p, size - 1)), ir_int(p, size));
}

Expr *lower_entries(Prog *p, const Node *phase, const Node *n)
{
    const Buf *start = n->kind == N_FOR && n->lo->op == OP_cell ? n->lo->buf : NULL;
    Expr *row;

    if (start == NULL || start->of == NULL || start->of_k != -1 || start->nfull > 0 ||
        n->how != FOR_SERIAL || n->lanes > 1 || start->of->parent == NULL ||
        phase->kind != N_FOR || phase->lo != ir_int(p, 0) ||
        phase->hi != loop_positions(p, start->of->parent))
        return batched(p, phase, n);
    row = loop_use(p, phase->local);
    return n->lo->arg[0] == row &&
                   n->hi == tree_first(p, start->of, tree_add(p, row, ir_int(p, 1)))
               ? loop_positions(p, start->of)
               : NULL;
}
