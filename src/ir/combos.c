/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Enumeration of constants: all combinations of positions of a few variables whose axes have
 * constant sizes and coordinates, and the value of an index at each.  For the parts of the checker
 * that prove something of an index by trying it (check_bounds.c, once.c). */
#include "ir/ir_int.h"

bool ir_is_const_axis(const Axis *a)
{
    if (ir_const_total(a) < 0)
        return false;
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD || a->coord[k].kind == C_EXPR)
            return false;
    return !(a->flags & AX_PADDED);
}

bool ir_is_const_index(Expr *e)
{
    if (e->op == OP_load || e->op == OP_size || e->op == OP_count)
        return false;
    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc)
        return ir_is_const_axis(e->var->axis);
    for (int i = 0; i < e->nargs; i++)
        if (!ir_is_const_index(e->arg[i]))
            return false;
    return e->type == T_i64 && e->op <= OP_mod;
}

void ir_rows_under(Combos *c, const Axis *a, int64_t parent, int64_t *first, int64_t *n)
{
    if (a->extent == X_TABLE) {
        *first = a->starts[parent];
        *n = a->table[parent];
        return;
    }
    *n = 1; /* X_ONE */
    if (a->extent == X_EXPR) {
        ir_const_int(a->size, n);
        c->work -= a->size->tree;
    }
    *first = parent * *n;
}

int ir_combo_var(const Combos *c, const Var *v)
{
    int i = 0;

    while (c->var[i] != v)
        i++;
    return i;
}

bool ir_combo_value(Combos *c, Expr *e, int64_t *out)
{
    const Coord *k;
    int64_t x = 0, y = 0;

    c->work--;
    switch (e->op) {
    case OP_int: return *out = e->i, true;
    case OP_pos: return *out = c->pos[ir_combo_var(c, e->var)], true;
    case OP_var:
    case OP_loc: return *out = c->loc[ir_combo_var(c, e->var)], true;
    case OP_coord:
        k = &e->var->axis->coord[e->k];
        *out = k->kind == C_IDENT ? c->loc[ir_combo_var(c, e->var)]
                                  : k->table[c->pos[ir_combo_var(c, e->var)]];
        return true;
    default: break;
    }
    if (!ir_combo_value(c, e->arg[0], &x) || (e->nargs == 2 && !ir_combo_value(c, e->arg[1], &y)))
        return false;
    switch (e->op) {
    case OP_neg: return !int_sub(0, x, out);
    case OP_add: return !int_add(x, y, out);
    case OP_sub: return !int_sub(x, y, out);
    case OP_mul: return !int_mul(x, y, out);
    case OP_div: return !int_div(x, y, out);
    default: return !int_mod(x, y, out);
    }
}

bool ir_combos_are_const(const Combos *c)
{
    for (int i = 0; i < c->n; i++)
        if (!ir_is_const_axis(c->var[i]->axis) ||
            (c->var[i]->parent != NULL && c->var[i]->parent->op != OP_var))
            return false;
    return true;
}

/* Runs variable k over its positions, then the next; the last calls fn. */
static void try_all(Combos *c, int k, ComboFn *fn, void *ctx)
{
    int64_t parent = 0, first, n;
    const Var *v;

    if (k == c->n) {
        fn(c, ctx);
        return;
    }
    v = c->var[k];
    if (v->parent != NULL)
        parent = c->pos[ir_combo_var(c, v->parent->var)];
    ir_rows_under(c, v->axis, parent, &first, &n);
    for (int64_t i = 0; i < n && c->work > 0; i++) {
        c->work--;
        c->loc[k] = i;
        c->pos[k] = first + i;
        try_all(c, k + 1, fn, ctx);
    }
}

void ir_combos(Combos *c, ComboFn *fn, void *ctx)
{
    try_all(c, 0, fn, ctx);
}
