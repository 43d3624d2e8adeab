/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proves that an element exists wherever the loops around it run, and that loops together meet each
 * element of an array once.  For trees at stage positions. */
#include "sched/step.h"

/* Axes that hang one on the other, each the only child: their last counts over all parents. */
static bool is_chain(const Buf *b, Dim d)
{
    for (int k = d.first; k < d.last; k++)
        if (b->full[k + 1]->parent != b->full[k])
            return false;
    return true;
}

Expr *step_extent(Prog *p, const Buf *b, int d)
{
    Dim dim[IR_MAX_FULL];
    Axis *last;

    if (d >= ir_dims(b, dim) || !is_chain(b, dim[d]))
        return NULL;
    last = b->full[dim[d].last];
    if (last->extent == X_EXPR && dim[d].first == dim[d].last)
        return tree_simple(p, last->size);
    return last->extent == X_SEG || last->extent == X_BUILT ? ir_count(p, last) : NULL;
}

const Node *step_binder(const Node *phase, Expr *e)
{
    const Node *n = e->op == OP_local ? tree_binder(phase, e->local) : NULL;

    return n != NULL && n->kind == N_LET && loop_assigns(phase, e->local) ? NULL : n;
}

Expr *step_positions(Prog *p, Axis *a)
{
    return a->extent == X_EXPR && a->parent == NULL ? tree_simple(p, a->size) : ir_count(p, a);
}

static bool is_natural(Prog *p, const Node *phase, Expr *e);
static bool is_below(Prog *p, const Node *phase, Expr *e, Expr *extent);

/* The bound of a coordinate, which was found inside it before anything runs, of a position that
 * exists; or NULL. */
static Expr *bound_of(Prog *p, const Node *phase, Expr *e)
{
    const Buf *b = e->op == OP_cell ? e->buf : NULL;

    if (b == NULL || b->of == NULL || b->of_k < 0 || b->nfull > 0 || b->kind == B_CONST ||
        (b->of->flags & AX_PADDED) || !is_natural(p, phase, e->arg[0]) ||
        !is_below(p, phase, e->arg[0], step_positions(p, b->of)))
        return NULL;
    return b->of->coord[b->of_k].bound;
}

bool step_is_over_entries(Prog *p, const Node *loop)
{
    Expr *next;

    if (loop->kind != N_FOR || !tree_is_start(loop->lo) || loop->hi->op != OP_cell ||
        loop->hi->buf != loop->lo->buf)
        return false;
    next = tree_plus(p, loop->lo->arg[0], ir_int(p, 1));
    return loop->hi->arg[0] == next;
}

static bool is_natural(Prog *p, const Node *phase, Expr *e)
{
    const Node *n = step_binder(phase, e);

    if (n != NULL)
        return is_natural(p, phase, n->kind == N_LET ? n->value : n->lo);
    switch (e->op) {
    case OP_int: return e->i >= 0;
    case OP_size:
    case OP_count: return true;
    case OP_above: return true;
    case OP_cell: return tree_is_start(e) || bound_of(p, phase, e) != NULL;
    case OP_add:
    case OP_mul:
    case OP_min: return is_natural(p, phase, e->arg[0]) && is_natural(p, phase, e->arg[1]);
    case OP_div:
        return is_natural(p, phase, e->arg[0]) && e->arg[1]->op == OP_int && e->arg[1]->i > 0;
    case OP_mod: return e->arg[1]->op == OP_int && e->arg[1]->i > 0;
    default: return false;
    }
}

/* The largest value that constants allow. */
static bool most_of(const Node *phase, Expr *e, int64_t *out)
{
    const Node *n = step_binder(phase, e);
    int64_t a, b;

    if (n != NULL && n->kind == N_LET)
        return most_of(phase, n->value, out);
    if (n != NULL)
        return most_of(phase, n->hi, &a) && !int_sub(a, 1, out);
    switch (e->op) {
    case OP_int: return *out = e->i, true;
    case OP_add:
        return most_of(phase, e->arg[0], &a) && most_of(phase, e->arg[1], &b) &&
               !int_add(a, b, out);
    case OP_mul:
        return e->arg[1]->op == OP_int && e->arg[1]->i >= 0 && most_of(phase, e->arg[0], &a) &&
               !int_mul(a, e->arg[1]->i, out);
    case OP_min:
        if (!most_of(phase, e->arg[0], out))
            return most_of(phase, e->arg[1], out);
        return most_of(phase, e->arg[1], &b) && b < *out ? (*out = b, true) : true;
    case OP_mod: return e->arg[1]->op == OP_int && !int_sub(e->arg[1]->i, 1, out);
    default: return false;
    }
}

/* Whether a bound is this expression, or the least of it and others. */
static bool is_at_most(Expr *bound, Expr *e)
{
    if (bound->op == OP_sub && e->op == OP_sub && bound->arg[1] == e->arg[1])
        return is_at_most(bound->arg[0], e->arg[0]);
    return bound == e || (bound->op == OP_min && (is_at_most(bound->arg[0], e) ||
                                                  is_at_most(bound->arg[1], e)));
}

/* start[row] + x, where x stays below the number of entries of the row. */
static bool is_entry(Prog *p, const Node *phase, Expr *start, Expr *x, Expr *extent)
{
    Expr *next;

    if (!tree_is_start(start) || ir_count(p, start->buf->of) != extent)
        return false;
    next = tree_plus(p, start->arg[0], ir_int(p, 1));
    next = loop_cell(p, start->buf, &next, 1, 1);
    return is_below(p, phase, x, tree_sub(p, next, start));
}

/* first + x, where x stays below extent - first; or block * n + x with whole blocks only. */
static bool is_sum_below(Prog *p, const Node *phase, Expr *first, Expr *x, Expr *extent)
{
    int64_t most;

    if (is_below(p, phase, x, tree_sub(p, extent, first)) ||
        is_entry(p, phase, first, x, extent))
        return true;
    for (int i = 0; i < 2 && first->op == OP_mul && most_of(phase, x, &most); i++)
        if (first->arg[i]->op == OP_int && first->arg[i]->i > most && first->arg[i]->i > 0 &&
            is_below(p, phase, first->arg[1 - i], tree_div(p, extent, first->arg[i]->i)))
            return true;
    return false;
}

static bool is_below(Prog *p, const Node *phase, Expr *e, Expr *extent)
{
    const Node *n = step_binder(phase, e);
    Expr *bound;
    int64_t most;

    if (extent->op == OP_int && most_of(phase, e, &most) && most < extent->i)
        return true;
    if (n != NULL && n->kind == N_LET)
        return is_below(p, phase, n->value, extent);
    if (n != NULL)
        return is_at_most(n->hi, extent) ||
               (step_is_over_entries(p, n) && ir_count(p, n->lo->buf->of) == extent);
    if ((bound = bound_of(p, phase, e)) != NULL && tree_simple(p, bound) == extent)
        return true;
    switch (e->op) {
    case OP_add:
        return is_sum_below(p, phase, e->arg[0], e->arg[1], extent) ||
               is_sum_below(p, phase, e->arg[1], e->arg[0], extent);
    case OP_mod: return e->arg[1] == extent;
    case OP_div:
        n = step_binder(phase, e->arg[0]);
        return n != NULL && n->kind == N_FOR && n->hi == tree_times(p, extent, e->arg[1]);
    case OP_above: return step_positions(p, e->axis->parent) == extent;
    default: return false;
    }
}

bool step_is_inside(Prog *p, const Node *phase, Expr *cell)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(cell->buf, dim);

    for (int d = 0; d < n; d++) {
        Expr *extent = step_extent(p, cell->buf, d);

        if (extent == NULL || !is_natural(p, phase, cell->arg[d]) ||
            !is_below(p, phase, cell->arg[d], extent))
            return false;
    }
    return true;
}

typedef struct Cover {
    Prog *p;
    const Node *phase;
    const Node *const *loop;
    int n;
    bool *used;
} Cover;

/* The loop of a variable, which takes part in one index only; or NULL. */
static const Node *take(Cover *c, Expr *e)
{
    const Node *n = step_binder(c->phase, e);

    for (int i = 0; i < c->n; i++)
        if (c->loop[i] == n && n != NULL && !c->used[i])
            return c->used[i] = true, n;
    return NULL;
}

static bool begins_at_0(const Node *n)
{
    return n->lo->op == OP_int && n->lo->i == 0;
}

static bool covers(Cover *c, Expr *e, Expr *extent);

/* block * n + x: x below n, or below what is left in the last block. */
static bool covers_blocks(Cover *c, Expr *first, Expr *x, Expr *extent)
{
    Expr *n = first->op == OP_mul && first->arg[1]->op == OP_int ? first->arg[1] : NULL, *rest;

    if (n == NULL || n->i < 1)
        return false;
    if (extent->op == OP_int && extent->i % n->i == 0)
        return covers(c, x, n) && covers(c, first->arg[0], ir_int(c->p, extent->i / n->i));
    rest = tree_sub(c->p, extent, first);
    return covers(c, x, tree_least(c->p, n, rest)) &&
           covers(c, first->arg[0],
                  tree_div(c->p, tree_plus(c->p, extent, ir_int(c->p, n->i - 1)), n->i));
}

/* All entries of an axis, by the rows that they are in. */
static bool covers_entries(Cover *c, const Node *n, Expr *extent)
{
    Axis *a = n->lo->buf->of;

    if (ir_count(c->p, a) != extent || a->parent == NULL)
        return false;
    return covers(c, n->lo->arg[0], step_positions(c->p, a->parent));
}

static bool covers(Cover *c, Expr *e, Expr *extent)
{
    const Node *n = step_binder(c->phase, e);

    if (n != NULL && n->kind == N_LET)
        return covers(c, n->value, extent);
    if (e->op == OP_add)
        return e->arg[0]->op == OP_mul ? covers_blocks(c, e->arg[0], e->arg[1], extent)
                                       : covers_blocks(c, e->arg[1], e->arg[0], extent);
    if (e->op != OP_local || (n = take(c, e)) == NULL)
        return false;
    if (step_is_over_entries(c->p, n))
        return covers_entries(c, n, extent);
    return begins_at_0(n) && n->hi == extent;
}

bool step_covers(Prog *p, const Node *phase, Expr *cell, const Node *const *loop, int n)
{
    Cover c = { p, phase, loop, n, arena_array(p->arena, n, sizeof *c.used) };
    Dim dim[IR_MAX_FULL];
    int rank = ir_dims(cell->buf, dim);

    for (int d = 0; d < rank; d++) {
        Expr *extent = step_extent(p, cell->buf, d);

        if (extent == NULL || !covers(&c, cell->arg[d], extent))
            return false;
    }
    for (int i = 0; i < n; i++)
        if (!c.used[i] && step_trips(loop[i]) != 1)
            return false;
    return true;
}
