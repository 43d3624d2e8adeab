/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Walking and rebuilding expressions, each shared node once. */
#include "ir/ir.h"
#include "ir/loop.h"

#include <string.h>

/* The slot of e: its own, or the free one that it will take.  Ids that share their low bits, such
 * as those of one statement in each of many, come far from each other. */
static uint32_t memo_slot(const Memo *m, Expr *e)
{
    uint32_t hash = e->id * UINT32_C(0x9e3779b1), at = (uint32_t)(((uint64_t)hash * m->cap) >> 32);

    while (m->key[at] != NULL && m->key[at] != e)
        at = (at + 1) & (m->cap - 1);
    return at;
}

static void memo_grow(Prog *p, Memo *m)
{
    Memo old = *m;

    m->cap = old.cap == 0 ? 4 : old.cap * 2;
    m->key = arena_array(p->arena, m->cap, sizeof *m->key);
    m->to = arena_array(p->arena, m->cap, sizeof *m->to);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.key[i] != NULL) {
            uint32_t at = memo_slot(m, old.key[i]);

            m->key[at] = old.key[i];
            m->to[at] = old.to[i];
        }
}

Expr **ir_memo(Prog *p, Memo *m, Expr *e)
{
    uint32_t at;

    if (m->n * 4 >= m->cap * 3)
        memo_grow(p, m);
    at = memo_slot(m, e);
    if (m->key[at] == NULL) {
        m->key[at] = e;
        m->n++;
    }
    return &m->to[at];
}

/* An entry that stays keeps its ancestors as they were written, even where fn would write them
 * otherwise: they are part of what its variable is. */
static Expr *load_with(Prog *p, Expr *e, Expr *const *arg)
{
    Expr *index[IR_MAX_RANK];

    memcpy(index, arg, e->nargs * sizeof *arg);
    for (int s = 0; s < e->nargs; s++)
        for (int t = 0; t < s && arg[s]->op == OP_var && arg[s] == e->arg[s]; t++)
            if (ir_is_ancestor(e->buf->slot[t], e->buf->slot[s]))
                index[t] = e->arg[t];
    return ir_load(p, e->buf, index, e->nargs);
}

Expr *ir_with_args(Prog *p, Expr *e, Expr *const *arg)
{
    if (e->nargs == 0 || memcmp(arg, e->arg, e->nargs * sizeof *arg) == 0)
        return e;
    if (e->op == OP_load)
        return load_with(p, e, arg);
    if (e->op == OP_row)
        return ir_row(p, e->axis, arg[0]);
    if (e->op == OP_cell)
        return loop_cell(p, e->buf, arg, e->nargs, e->k);
    if (e->op == OP_find)
        return loop_found_by(p, loop_find(p, e->axis, arg[0], arg[1], arg + 2, e->nargs - 2),
                             (FindHow)e->k);
    if (e->op == OP_above)
        return loop_above(p, e->axis, arg[0]);
    return ir_node(p, (Op)e->op, arg, e->nargs);
}

Expr *ir_rewrite(Prog *p, Expr *e, Rewrite *fn, void *ctx, Memo *memo)
{
    Expr *to = *ir_memo(p, memo, e), *arg[IR_MAX_FULL + 2]; /* an element has one a dimension */

    if (to == NULL) {
        for (int i = 0; i < e->nargs; i++)
            arg[i] = ir_rewrite(p, e->arg[i], fn, ctx, memo);
        to = fn(p, ir_with_args(p, e, arg), ctx);
        *ir_memo(p, memo, e) = to;
    }
    return to;
}

void ir_visit(Prog *p, Expr *e, Visit *fn, void *ctx, Memo *met)
{
    Expr **seen = ir_memo(p, met, e);

    if (*seen != NULL)
        return;
    *seen = e;
    for (int i = 0; i < e->nargs; i++)
        ir_visit(p, e->arg[i], fn, ctx, met);
    fn(e, ctx);
}

enum { SMALL_TREE = 32 }; /* nodes that are walked faster than looked up */

static bool any_in_tree(Expr *e, ExprTest *test, const void *ctx)
{
    bool any = test(e, ctx);

    for (int i = 0; i < e->nargs && !any; i++)
        any = any_in_tree(e->arg[i], test, ctx);
    return any;
}

static bool any_unmet(Prog *p, Expr *e, ExprTest *test, const void *ctx, Memo *met)
{
    bool any;

    if (e->tree <= SMALL_TREE)
        return any_in_tree(e, test, ctx);
    if (*ir_memo(p, met, e) != NULL)
        return false;
    *ir_memo(p, met, e) = e;
    any = test(e, ctx);
    for (int i = 0; i < e->nargs && !any; i++)
        any = any_unmet(p, e->arg[i], test, ctx, met);
    return any;
}

bool ir_any(Prog *p, Expr *e, ExprTest *test, const void *ctx)
{
    Memo met = { 0 };

    return any_unmet(p, e, test, ctx, &met);
}

void ir_visit_assign(Prog *p, const Assign *a, Visit *fn, void *ctx, Memo *met)
{
    if (a->guard != NULL)
        ir_visit(p, a->guard, fn, ctx, met);
    ir_visit(p, a->value, fn, ctx, met);
    ir_visit(p, a->out, fn, ctx, met);
    for (int k = 0; k < a->nat; k++) {
        ir_visit(p, a->at[k].out, fn, ctx, met);
        ir_visit(p, a->at[k].value, fn, ctx, met);
    }
}

typedef struct VarSet {
    Prog *prog;
    Var **var;
    int n;
    Memo met;
} VarSet;

static void add_vars(Expr *e, void *ctx)
{
    VarSet *set = ctx;

    if (e->op != OP_var && e->op != OP_coord && e->op != OP_pos && e->op != OP_loc)
        return;
    if (e->var->parent != NULL)
        ir_visit(set->prog, e->var->parent, add_vars, set, &set->met);
    for (int i = 0; i < set->n; i++)
        if (set->var[i] == e->var)
            return;
    if (set->n == IR_MAX_BINDS)
        ir_throw(set->prog, ST_LIMIT, "more than %d variables in one statement", IR_MAX_BINDS);
    set->var[set->n++] = e->var;
}

int ir_vars(Prog *p, Expr *e, Var **out, int n)
{
    VarSet set = { .prog = p, .var = out, .n = n };

    ir_visit(p, e, add_vars, &set, &set.met);
    return set.n;
}

static bool comes_after(const Var *a, const Var *b)
{
    return a->axis->id != b->axis->id ? a->axis->id > b->axis->id : a->id > b->id;
}

int ir_default_binds(Prog *p, const Assign *assign, int nassign, Var **out)
{
    VarSet set = { .prog = p, .var = out };

    for (int i = 0; i < nassign; i++)
        ir_visit_assign(p, &assign[i], add_vars, &set, &set.met);
    for (int i = 1; i < set.n; i++)
        for (int j = i; j > 0 && comes_after(out[j - 1], out[j]); j--) {
            Var *v = out[j];

            out[j] = out[j - 1];
            out[j - 1] = v;
        }
    return set.n;
}

Expr *ir_everywhere(Prog *p, Buf *b, Var **bind)
{
    Expr *index[IR_MAX_RANK];

    for (int k = 0; k < b->nfull; k++) {
        Axis *a = b->full[k];
        bool again = a->name == NULL;

        for (int i = 0; i < k; i++)
            again = again || b->full[i] == a;
        bind[k] = again ? ir_var(p, ir_fresh(p, "k", false), a, NULL) : a->var;
    }
    for (int s = 0; s < b->nslot; s++)
        index[s] = ir_var_expr(p, bind[b->place_in_full[s]]);
    return ir_load(p, b, index, b->nslot);
}
