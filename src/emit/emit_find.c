/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Searches: one function for each searched axis and each kind of search.  Computed coordinates are
 * evaluated during the search. */
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

static void head(Emit *o, const Search *s, FindHow how)
{
    text_f(o->out, "\n\n%sint64_t %s_%s_%s(WEFT_DATA, ",
           how == FIND_NEAR ? o->dialect->inlined : o->dialect->function, o->prefix,
           loop_find_word[how], s->axis->name);
    text_f(o->out, "%sint64_t v_lo, int64_t v_hi", how == FIND_NEAR ? "int64_t *near, " : "");
    for (int k = 0; k < s->axis->ncoord; k++)
        text_f(o->out, ", int64_t v_key%d", k);
    for (int k = 0; k < s->ncontext; k++)
        text_f(o->out, ", int64_t v_given%d", k);
    text_str(o->out, ")\n{");
}

static void put_scan(Emit *o, Expr *match)
{
    text_str(o->out, "\n    for (int64_t v_p = v_lo; v_p < v_hi; v_p++)");
    put(o, "\n        if (", match, ")\n            return v_p;\n    return -1;\n}");
}

/* The first position in from..to that does not come before the key; -1 when it has another. */
static void put_bisection(Emit *o, Expr *match, Expr *before, const char *keep)
{
    text_str(o->out, "\n    while (from < to) {\n        v_p = from + (to - from) / 2;");
    put(o, "\n        if (", before,
        ")\n            from = v_p + 1;\n        else\n            to = v_p;\n    }");
    text_f(o->out, "\n    %sv_p = from;", keep);
    put(o, "\n    return v_p < v_hi && (", match, ") ? v_p : -1;\n}");
}

/* From where the last search ended, in steps that double, until the key is between from and to. */
static void put_gallop(Emit *o, Expr *before)
{
    text_str(o->out, "\n    int64_t v_p = *near, from, to, step = 1;\n"
                     "\n    v_p = v_p < v_lo || v_p > v_hi ? v_lo : v_p;"
                     "\n    from = to = v_p;");
    put(o, "\n    if (v_p < v_hi && (", before,
        ")) {"
        "\n        to = v_hi;"
        "\n        for (from++; step < v_hi - from; step *= 2) {"
        "\n            v_p = from + step - 1;");
    put(o, "\n            if (!(", before,
        ")) {"
        "\n                to = v_p;"
        "\n                break;"
        "\n            }"
        "\n            from = v_p + 1;"
        "\n        }"
        "\n    } else {"
        "\n        for (; from > v_lo; step *= 2) {"
        "\n            v_p = step < from - v_lo ? from - step : v_lo;");
    put(o, "\n            if (", before,
        ") {"
        "\n                from = v_p + 1;"
        "\n                break;"
        "\n            }"
        "\n            from = to = v_p;"
        "\n        }"
        "\n    }");
}

/* Probes the places from the one that the key is hashed to until one is empty, as the table was
 * filled (lower/search/hash.c). */
static void put_lookup(Emit *o, const Search *s, Expr *match)
{
    text_f(o->out, "\n    if (v_hi - v_lo > %d) {", LOOP_FEW);
    text_str(o->out, "\n        const uint64_t n = 2 * (uint64_t)(v_hi - v_lo);"
                     "\n        uint64_t at = 0;\n");
    for (int k = 0; k < s->axis->ncoord; k++)
        text_f(o->out, "\n        at = weft_hash(at, (uint64_t)v_key%d);", k);
    text_str(o->out, "\n        for (at = weft_place(at, n);; at = at + 1 < n ? at + 1 : 0) {"
                     "\n            const int64_t v_p = ");
    emit_array_name(o, loop_map(o->p, s->axis));
    put(o, "[2 * v_lo + (int64_t)at];\n\n            if (v_p < 0 || (", match,
        "))\n                return v_p;\n        }\n    }");
}

static void put_first(Emit *o, Expr *before)
{
    text_str(o->out, "\n    int64_t v_p, from = v_lo, to = v_hi;\n"
                     "\n    while (from < to) {\n        v_p = from + (to - from) / 2;");
    put(o, "\n        if (", before,
        ")\n            from = v_p + 1;\n        else\n            to = v_p;\n    }"
        "\n    return from;\n}");
}

/* Sorted entries are bisected, others looked at one by one. */
static void put_find(Emit *o, const Search *s, Expr *match, Expr *before)
{
    if (!loop_is_ordered(s->axis)) {
        put_scan(o, match);
        return;
    }
    text_str(o->out, "\n    int64_t v_p, from = v_lo, to = v_hi;\n");
    put_bisection(o, match, before, "");
}

void emit_finder(Emit *o, Axis *a, FindHow how)
{
    Search s = new_search(o->p, a);
    Expr *match = is_match(&s), *before = is_before(&s);
    Function f;

    head(o, &s, how);
    f = emit_open(o);
    switch (how) {
    case FIND_NEAR:
        put_gallop(o, before);
        put_bisection(o, match, before, "*near = ");
        break;
    case FIND_LOOKUP:
        put_lookup(o, &s, match);
        put_scan(o, match);
        break;
    case FIND_FIRST: put_first(o, before); break;
    default: put_find(o, &s, match, before);
    }
    emit_close(o, &f);
    emit_body(o, o->out, &f, NULL, 0);
}
