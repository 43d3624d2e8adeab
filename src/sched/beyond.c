/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Uses the ends of loops to tell two instances apart.  Rows of one array lie side by side in one
 * flat index; two indices that differ by more than the length of the loop over columns are of
 * different rows.  Loops over shares: an iteration belongs to exactly one share. */
#include "sched/depend.h"

#include <stdlib.h>

/* Whether a loop that runs has no more iterations than `size` says: it ends there or before, or
 * has as many as the blocks of a loop around it, of which there is one at least. */
static bool is_within(const Access *s, Expr *hi, Expr *size)
{
    if (hi == size)
        return true;
    if (hi->op == OP_min)
        return is_within(s, hi->arg[0], size) || is_within(s, hi->arg[1], size);
    if (hi->op == OP_sub)
        return hi->arg[0] == size && hi->arg[1]->op == OP_mul && hi->arg[1]->arg[0]->op == OP_local;
    for (int i = 0; i < s->n && hi->op == OP_int; i++) {
        Expr *blocks = s->around[i]->kind == N_FOR ? s->around[i]->hi : NULL;

        if (blocks != NULL && blocks->op == OP_div && blocks->arg[0] == size &&
            blocks->arg[1]->op == OP_int && blocks->arg[1]->i >= hi->i)
            return true;
    }
    return false;
}

/* The loop from 0 of a variable that a sum moves with one by one; or NULL. */
static const Node *loop_of(Pair *d, const Term *t)
{
    const Node *n = t->x != NULL && t->x->op == OP_local && t->c == 1 && t->nsize == 0
                        ? dep_binder(d->s[0], t->x->local)
                        : NULL;

    return n != NULL && n->kind == N_FOR && n->lo->op == OP_int && n->lo->i == 0 ? n : NULL;
}

bool dep_is_beyond(Pair *d, const Linear *a, const Linear *b)
{
    const Linear *more = a->n > b->n ? a : b, *less = a->n > b->n ? b : a;
    const Node *loop = less->n == 1 ? loop_of(d, &less->term[0]) : NULL;
    const Term *far;
    int at;

    if (loop == NULL || more->n > 2)
        return false;
    at = more->term[0].x == less->term[0].x ? 0 : 1;
    if (at >= more->n || more->term[at].x != less->term[0].x || more->term[at].c != 1 ||
        more->term[at].nsize != 0)
        return false;
    if (more->n == 1)
        return step_trips(loop) >= 0 && llabs(more->c - less->c) >= step_trips(loop);
    far = &more->term[1 - at];
    return far->x == NULL && far->nsize == 1 && far->c > 0 && more->c >= less->c &&
           is_within(d->s[0], loop->hi, far->size[0]);
}

/* n * q / shares, or n * (q + 1) / shares: then q, in which lo and hi have this form; or NULL. */
Expr *dep_share_of(Prog *p, const Node *loop)
{
    Expr *lo = loop->lo, *hi = loop->hi;

    if (loop->kind != N_FOR || lo->op != OP_div || hi->op != OP_div || lo->arg[1] != hi->arg[1] ||
        lo->arg[1]->op != OP_int || lo->arg[1]->i < 1 || lo->arg[0]->op != OP_mul ||
        hi->arg[0]->op != OP_mul)
        return NULL;
    lo = lo->arg[0];
    hi = hi->arg[0];
    for (int i = 0; i < 2; i++)
        if (lo->arg[1 - i] == hi->arg[1 - i] && lo->arg[i]->op == OP_local &&
            hi->arg[i] == tree_plus(p, lo->arg[i], ir_int(p, 1)))
            return lo->arg[i];
    return NULL;
}

/* Of two loops over shares, whether what they share out is the same. */
bool dep_shares_alike(const Node *a, const Node *b, Expr *qa, Expr *qb)
{
    Expr *x = a->lo->arg[0], *y = b->lo->arg[0];
    int i = x->arg[0] == qa ? 1 : 0, k = y->arg[0] == qb ? 1 : 0;

    return a->lo->arg[1] == b->lo->arg[1] && x->arg[i] == y->arg[k];
}

Expr *dep_share(Prog *p, const Axis *by, Expr *x, int64_t shares, Expr *rows)
{
    Axis *a = (Axis *)by;
    Expr *n = ir_int(p, shares), *count, *some, *row;

    if (by == NULL)
        return ir_op2(p, OP_div, tree_times(p, rows, x), n);
    count = ir_count(p, a);
    some = ir_op2(p, OP_and, ir_op2(p, OP_gt, x, ir_int(p, 0)),
                  ir_op2(p, OP_gt, count, ir_int(p, 0)));
    row = loop_above(p, a, ir_op2(p, OP_div, tree_times(p, count, x), n));
    row = ir_node(p, OP_select, (Expr *[]){ some, row, ir_int(p, 0) }, 3);
    return ir_node(p, OP_select, (Expr *[]){ ir_op2(p, OP_lt, x, n), row, rows }, 3);
}

Expr *dep_block(Prog *p, Expr *x, int64_t block, Expr *rows)
{
    return ir_op2(p, OP_min, tree_times(p, x, ir_int(p, block)), rows);
}

/* The q of two ends that are dep_block of q and of q + 1; or NULL. */
static Expr *block_between(Prog *p, Expr *from, Expr *to)
{
    for (int i = 0; i < 2; i++) {
        Expr *at = from->arg[i], *rows = from->arg[1 - i];

        for (int k = 0; k < 2 && at->op == OP_mul; k++) {
            Expr *q = at->arg[k], *n = at->arg[1 - k];

            if (q->op == OP_local && n->op == OP_int && n->i > 0 &&
                to == dep_block(p, tree_plus(p, q, ir_int(p, 1)), n->i, rows))
                return q;
        }
        if (at->op == OP_local && to == dep_block(p, tree_plus(p, at, ir_int(p, 1)), 1, rows))
            return at;
    }
    return NULL;
}

/* The q of two ends that are dep_share of q and of q + 1; or NULL. */
static Expr *share_between(Prog *p, Expr *from, Expr *to)
{
    Expr *row = from->op == OP_select ? from->arg[1] : NULL, *q, *n, *next;

    if (from->op == OP_min && to->op == OP_min)
        return block_between(p, from, to);
    if (row == NULL)
        return dep_share_of(p, &(Node){ .kind = N_FOR, .lo = from, .hi = to });
    q = from->arg[0]->nargs == 2 ? from->arg[0]->arg[0] : NULL;
    n = q != NULL ? from->arg[0]->arg[1] : NULL;
    if (n == NULL || n->op != OP_int || row->op != OP_select || row->arg[1]->op != OP_above)
        return NULL;
    next = tree_plus(p, q, ir_int(p, 1));
    return q->op == OP_local && n->i > 0 &&
                   from == dep_share(p, row->arg[1]->axis, q, n->i, from->arg[2]) &&
                   to == dep_share(p, row->arg[1]->axis, next, n->i, from->arg[2])
               ? q
               : NULL;
}

/* The ends of the rows that e is one of: of its loop, or what the ends of its loop are the first
 * entries of. */
static bool ends_of(Pair *d, int side, Expr *e, Expr *end[2])
{
    bool coord = e->op == OP_cell && e->buf->of != NULL && e->buf->of_k == 0 && e->buf->nfull == 0;
    Expr *at = coord ? e->arg[0] : e;
    const Node *n = at->op == OP_local ? dep_binder(d->s[side], at->local) : NULL;

    if (n == NULL || n->kind != N_FOR)
        return false;
    for (int i = 0; i < 2; i++) {
        end[i] = i == 0 ? n->lo : n->hi;
        if (coord && (end[i]->op != OP_find || end[i]->k != FIND_FIRST ||
                      end[i]->axis != e->buf->of || e->buf->of->ncoord != 1))
            return false;
        end[i] = coord ? end[i]->arg[2] : end[i];
    }
    return !coord || (n->lo->arg[0] == n->hi->arg[0] && n->lo->arg[1] == n->hi->arg[1]);
}

/* The value of a let, or the expression itself. */
static Expr *value_of(Pair *d, int side, Expr *e)
{
    const Node *n = e->op == OP_local ? dep_binder(d->s[side], e->local) : NULL;

    return n != NULL && n->kind == N_LET ? n->value : e;
}

Expr *dep_rows_alike(Pair *d, Expr *a, Expr *b)
{
    Expr *x[2], *y[2];

    if (!ends_of(d, 0, a, x) || !ends_of(d, 1, b, y) || x[0] != y[0] || x[1] != y[1])
        return NULL;
    return share_between(d->p, value_of(d, 0, x[0]), value_of(d, 0, x[1]));
}
