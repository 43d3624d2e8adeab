/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Searches: a function for each axis that is searched.  Sorted entries are bisected, others looked
 * at one by one; coordinates that are computed are computed as they are met. */
#include "emit/emit_int.h"

typedef struct Search {
    Prog *p;
    Axis *axis;
    Local *pos, *lo, *hi;
    Local *key[IR_MAX_RANK], *context[IR_MAX_RANK]; /* what is looked for; what coordinates need */
    Expr *leaf[IR_MAX_RANK];
    int ncontext;
} Search;

static Local *parameter(Prog *p, const char *stem, int k)
{
    Text name = { .arena = p->arena };

    text_f(&name, "%s%d", stem, k);
    return loop_local(p, name.s, T_i64, 1);
}

static Search new_search(Prog *p, Axis *a)
{
    Search s = { .p = p,
                 .axis = a,
                 .pos = loop_local(p, "p", T_i64, 1),
                 .lo = loop_local(p, "lo", T_i64, 1),
                 .hi = loop_local(p, "hi", T_i64, 1) };

    for (int k = 0; k < a->ncoord; k++)
        s.key[k] = parameter(p, "key", k);
    s.ncontext = loop_context(a, s.leaf, IR_MAX_RANK);
    for (int k = 0; k < s.ncontext; k++)
        s.context[k] = parameter(p, "given", k);
    return s;
}

static Expr *loc(const Search *s)
{
    return ir_op2(s->p, OP_sub, loop_use(s->p, s->pos), loop_use(s->p, s->lo));
}

static Expr *coord(const Search *s, int k);

/* A coordinate's expression at the position that is looked at. */
static Expr *at_position(const Search *s, Expr *e)
{
    Expr *arg[2];

    for (int i = 0; i < s->ncontext; i++)
        if (s->leaf[i] == e)
            return loop_use(s->p, s->context[i]);
    if (e->op == OP_loc)
        return loc(s);
    if (e->op == OP_coord)
        return coord(s, e->k);
    for (int i = 0; i < e->nargs; i++)
        arg[i] = at_position(s, e->arg[i]);
    return e->nargs == 0 ? e : ir_node(s->p, (Op)e->op, arg, e->nargs);
}

static Expr *coord(const Search *s, int k)
{
    const Coord *c = &s->axis->coord[k];
    Expr *pos = loop_use(s->p, s->pos);

    if (c->kind == C_IDENT)
        return loc(s);
    if (c->kind == C_EXPR)
        return at_position(s, c->expr);
    return loop_cell(s->p, loop_coord(s->p, s->axis, k), &pos, 1, 1);
}

static Expr *both(Prog *p, Expr *a, Expr *b)
{
    return a == NULL ? b : ir_op2(p, OP_and, a, b);
}

/* That the position has the coordinates of the key, and exists. */
static Expr *is_match(const Search *s)
{
    Prog *p = s->p;
    Expr *all = NULL;

    for (int k = 0; k < s->axis->ncoord; k++)
        all = both(p, all, ir_op2(p, OP_eq, coord(s, k), loop_use(p, s->key[k])));
    for (int k = 0; k < s->axis->ncoord && (s->axis->flags & AX_PADDED); k++)
        if (s->axis->coord[k].bound != NULL)
            all = both(p, all,
                       both(p, ir_op2(p, OP_le, ir_int(p, 0), coord(s, k)),
                            ir_op2(p, OP_lt, coord(s, k), s->axis->coord[k].bound)));
    return all;
}

/* That the coordinates there come before the key, the first that differs decides. */
static Expr *is_before(const Search *s)
{
    Prog *p = s->p;
    Expr *less = NULL, *key, *c;

    for (int k = s->axis->ncoord - 1; k >= 0; k--) {
        c = coord(s, k);
        key = loop_use(p, s->key[k]);
        if (less != NULL)
            less = ir_op2(p, OP_and, ir_op2(p, OP_eq, c, key), less);
        c = ir_op2(p, OP_lt, c, key);
        less = less == NULL ? c : ir_op2(p, OP_or, c, less);
    }
    return less;
}

static void put(Emit *o, const char *before, Expr *e, const char *after)
{
    text_str(o->out, before);
    emit_expr(o, e, L_SELECT);
    text_str(o->out, after);
}

static void head(Emit *o, const Search *s)
{
    text_f(o->out, "\n\nstatic int64_t %s_find_%s(WEFT_DATA, int64_t v_lo, int64_t v_hi", o->prefix,
           s->axis->name);
    for (int k = 0; k < s->axis->ncoord; k++)
        text_f(o->out, ", int64_t v_key%d", k);
    for (int k = 0; k < s->ncontext; k++)
        text_f(o->out, ", int64_t v_given%d", k);
    text_str(o->out, ")\n{");
}

void emit_finder(Emit *o, Axis *a)
{
    Search s = new_search(o->p, a);
    bool sorted = (a->flags & AX_SORTED) && !(a->flags & AX_PADDED);
    Expr *test[2] = { is_match(&s), is_before(&s) };

    head(o, &s);
    emit_arguments(o, test, sorted ? 2 : 1, NULL);
    if (sorted) {
        text_str(o->out, "\n    int64_t v_p, from = v_lo, to = v_hi;\n\n    while (from < to) {"
                         "\n        v_p = from + (to - from) / 2;");
        put(o, "\n        if (", test[1],
            ")\n            from = v_p + 1;\n        else"
            "\n            to = v_p;\n    }\n    v_p = from;");
        put(o, "\n    return v_p < v_hi && (", test[0], ") ? v_p : -1;\n}");
    } else {
        text_str(o->out, "\n    for (int64_t v_p = v_lo; v_p < v_hi; v_p++)");
        put(o, "\n        if (", test[0], ")\n            return v_p;\n    return -1;\n}");
    }
}
