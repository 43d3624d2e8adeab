/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Galloping search: a search of a sorted axis for coordinates that ascend in the loop around it
 * starts where the last search ended.  Over two sorted axes that is a merge when both are dense,
 * and a galloping search through the longer one when the other is sparse.  Needs flat loops, and
 * hoisted searches: hoisting decides which loop a search is in. */
#include "lower/phase/phase_int.h"

enum { LIMIT_TREE = 256 };

typedef struct Merge {
    Prog *p;
    int *deep;  /* by Local.id: how deep the innermost loop is nested that it changes in; 0: none */
    bool *loop; /* by Local.id: it is a loop's variable */
    Memo known; /* the same of expressions: an integer */
} Merge;

static int depth_of(Merge *m, Expr *e)
{
    Expr *known = *ir_memo(m->p, &m->known, e);
    int depth = e->op == OP_local ? m->deep[e->local->id] : 0, d;

    if (e->nargs == 0)
        return depth;
    if (known != NULL)
        return (int)known->i;
    for (int i = 0; i < e->nargs; i++) {
        d = depth_of(m, e->arg[i]);
        depth = d > depth ? d : depth;
    }
    *ir_memo(m->p, &m->known, e) = ir_int(m->p, depth);
    return depth;
}

/* What a search under a condition gives where it is done: elsewhere nobody asks for more. */
static Expr *where_done(Expr *e)
{
    return e->op == OP_select && e->arg[1]->op == OP_find ? e->arg[1] : e;
}

/* From outside inwards, so that what a let is made of is known before it. */
static void note_locals(Merge *m, const Node *n, int depth)
{
    if (n->kind == N_LET)
        m->deep[n->local->id] = depth_of(m, where_done(n->value));
    if (n->kind == N_FOR) {
        m->deep[n->local->id] = ++depth;
        m->loop[n->local->id] = true;
    }
    for (int i = 0; i < n->nbody; i++)
        note_locals(m, n->body[i], depth);
}

/* Never negative, whatever the program is run with. */
static bool is_size(Expr *e)
{
    return e->op == OP_size || e->op == OP_count || (e->op == OP_int && e->i >= 0);
}

/* Coordinates of a sorted axis ascend under one parent, the first of several at least. */
static bool holds_ascending(const Buf *b)
{
    return b->of != NULL && b->nfull == 0 &&
           (b->of_k == -1 || (b->of_k == 0 && (b->of->flags & AX_SORTED)));
}

/* Whether a value rises, or stays, from one iteration of the loop at this depth to the next.  It
 * may be wrong: that costs time and no more. */
static bool ascends(Merge *m, Expr *e, int depth)
{
    if (depth_of(m, e) < depth)
        return true;
    if (e->tree > LIMIT_TREE)
        return false;
    switch (e->op) {
    case OP_local: return m->loop[e->local->id];
    case OP_cell: return holds_ascending(e->buf) && ascends(m, e->arg[0], depth);
    case OP_add:
    case OP_min:
    case OP_max: return ascends(m, e->arg[0], depth) && ascends(m, e->arg[1], depth);
    case OP_sub: return ascends(m, e->arg[0], depth) && depth_of(m, e->arg[1]) < depth;
    case OP_mul:
        return (is_size(e->arg[1]) && ascends(m, e->arg[0], depth)) ||
               (is_size(e->arg[0]) && ascends(m, e->arg[1], depth));
    case OP_div: return is_size(e->arg[1]) && ascends(m, e->arg[0], depth);
    default: return false;
    }
}

/* Whether the loop that changes a search changes only what is searched for, and that upwards: the
 * first coordinate that it changes. */
static bool is_near(Merge *m, Expr *find)
{
    int depth = depth_of(m, find), n = find->axis->ncoord;
    Expr *const *key = find->arg + 2;

    if (depth == 0 || !loop_is_ordered(find->axis))
        return false;
    for (int i = 0; i < find->nargs; i++)
        if ((i < 2 || i >= 2 + n) && depth_of(m, find->arg[i]) == depth)
            return false;
    while (depth_of(m, *key) < depth)
        key++;
    return ascends(m, *key, depth);
}

static Expr *merge(Prog *p, Expr *e, void *ctx)
{
    if (e->op != OP_find || e->k != FIND_PLAIN || !is_near(ctx, e))
        return e;
    return loop_found_by(p, e, FIND_NEAR);
}

void lower_gallop(Kernel *k)
{
    Prog *p = k->p;
    Merge m = { .p = p };

    m.deep = arena_array(p->arena, p->nlocal, sizeof *m.deep);
    m.loop = arena_array(p->arena, p->nlocal, sizeof *m.loop);
    for (int i = 0; i < k->n; i++) {
        Memo memo = { 0 };

        m.known = (Memo){ 0 };
        note_locals(&m, k->phase[i], 0);
        k->phase[i] = loop_rewrite(p, k->phase[i], merge, &m, &memo);
    }
    lower_done(k, p->stage);
}
