/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proves that the elements that a phase touches belong to the row of their iteration.  For
 * passes that fuse phases. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

bool lower_is_known(const Node *loop)
{
    return loop->lo->op == OP_int && loop->hi->op == OP_int;
}

static const Node *loop_of(const Around *a, const Local *l)
{
    while (a != NULL && a->loop->local != l)
        a = a->outer;
    return a != NULL && lower_is_known(a->loop) ? a->loop : NULL;
}

/* A coordinate of the iteration's entry that no other entry has. */
static bool is_name(const Expr *e, const Local *entry)
{
    return e->op == OP_cell && e->buf->of != NULL && e->buf->of_k >= 0 && e->buf->nfull == 0 &&
           e->buf->of->coord[e->buf->of_k].once && e->arg[0]->op == OP_local &&
           e->arg[0]->local == entry;
}

Expr *lower_row_index(Prog *p, Expr *index, const Node *rows, LoopIndex *x)
{
    static const Local none;
    Expr *name = NULL;

    if (loop_index(index, rows->local, x) && x->stride != 0)
        return loop_use(p, rows->local);
    if (!loop_index(index, &none, x))
        return NULL;
    for (int i = 0; i < x->n && name == NULL; i++)
        if (is_name(x->leaf[i], rows->local)) {
            name = x->leaf[i];
            x->stride = x->times[i];
            x->n--;
            for (int k = i; k < x->n; k++) {
                x->leaf[k] = x->leaf[k + 1];
                x->times[k] = x->times[k + 1];
            }
        }
    for (int i = 0; i < x->n; i++)
        if (tree_mentions(p, x->leaf[i], rows->local))
            return NULL;
    return name;
}

int64_t lower_own_width(Prog *p, const Node *rows, const Around *around, const Expr *cell,
                        const Buf **by)
{
    LoopIndex x;
    Expr *row = lower_row_index(p, cell->arg[0], rows, &x);
    int64_t lo, hi;

    if (row == NULL || x.stride <= 0)
        return 0;
    *by = row->op == OP_cell ? row->buf : NULL;
    lo = hi = x.constant;
    for (int i = 0; i < x.n; i++) {
        const Node *loop = x.leaf[i]->op == OP_local ? loop_of(around, x.leaf[i]->local) : NULL;
        int64_t a, b;

        if (loop == NULL || loop->lo->i >= loop->hi->i || int_mul(x.times[i], loop->lo->i, &a) ||
            int_mul(x.times[i], loop->hi->i - 1, &b) || int_add(lo, a < b ? a : b, &lo) ||
            int_add(hi, a < b ? b : a, &hi))
            return 0;
    }
    return 0 <= lo && hi < x.stride ? x.stride : 0;
}

Expr *lower_index(Prog *p, const LoopIndex *x, Expr *local)
{
    Expr *at = tree_mul(p, local, ir_int(p, x->stride));

    for (int i = 0; i < x->n; i++)
        at = tree_add(p, at, tree_mul(p, x->leaf[i], ir_int(p, x->times[i])));
    return tree_add(p, at, ir_int(p, x->constant));
}

int64_t lower_slot_bytes(const Buf *b, int slot)
{
    int64_t bytes = ir_type[b->type].bytes;

    for (int s = 0; s < b->nslot; s++) {
        bool above = s == slot || ir_is_ancestor(b->slot[s], b->slot[slot]);
        int64_t n = above ? 1 : ir_const_total(b->slot[s]);

        for (int u = 0; u < b->nslot && n != 1; u++)
            if (ir_is_ancestor(b->slot[s], b->slot[u]))
                n = 1; /* which counts them all */
        if (n < 0 || int_mul(bytes, n, &bytes))
            return 0;
    }
    return bytes;
}
