/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions of rules: numbers, order, text.  A number that does not fit becomes FAULT, and every
 * operator keeps FAULT, so that callers test a value once. */
#include "format/format_int.h"

#include <string.h>

#define FAULT INT64_MIN

static int64_t ceil_log2(int64_t x)
{
    int64_t b = 0;

    while (b < 62 && ((int64_t)1 << b) < x) /* not speed: bits */
        b++;
    return b;
}

static int64_t arithmetic(FmtOp op, int64_t a, int64_t b)
{
    int64_t r = FAULT;
    bool bad;

    switch (op) {
    case F_NEG: bad = int_sub(0, a, &r); break;
    case F_ADD: bad = int_add(a, b, &r); break;
    case F_SUB: bad = int_sub(a, b, &r); break;
    case F_MUL: bad = int_mul(a, b, &r); break;
    case F_DIV: bad = int_div(a, b, &r); break;
    default: bad = int_mod(a, b, &r); break;
    }
    return bad ? FAULT : r;
}

int64_t fmt_op(FmtOp op, int64_t a, int64_t b)
{
    if (a == FAULT || b == FAULT)
        return FAULT;
    switch (op) {
    case F_LT: return a < b;
    case F_LE: return a <= b;
    case F_EQ: return a == b;
    case F_NE: return a != b;
    case F_AND: return a && b;
    case F_OR: return a || b;
    case F_NOT: return !a;
    case F_ABS: return a < 0 ? -a : a;
    case F_MIN: return a < b ? a : b;
    case F_MAX: return a > b ? a : b;
    case F_BITS: return ceil_log2(a);
    case F_EXP2: return a < 0 || a > 62 ? FAULT : (int64_t)1 << a; /* not speed: bits */
    default: return arithmetic(op, a, b);
    }
}

bool fmt_expr_const(const FmtExpr *e, int64_t *out)
{
    int64_t v[2] = { 0, 0 };

    if (e->op == F_INT)
        return *out = e->v, true;
    if (e->op < F_NEG || e->op >= F_COUNT)
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!fmt_expr_const(e->arg[i], &v[i]))
            return false;
    *out = fmt_op(e->op, v[0], v[1]);
    return *out != FAULT;
}

static int cmp_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int fmt_expr_cmp(const FmtExpr *a, const FmtExpr *b)
{
    int64_t x[] = { a->op, a->v, a->k, a->keys, a->nargs };
    int64_t y[] = { b->op, b->v, b->k, b->keys, b->nargs };

    if (a == b)
        return 0;
    for (int i = 0; i < 5; i++)
        if (x[i] != y[i])
            return cmp_int(x[i], y[i]);
    for (int i = 0; i < a->nargs; i++) {
        int c = fmt_expr_cmp(a->arg[i], b->arg[i]);

        if (c != 0)
            return c;
    }
    return 0;
}

static void print_call(Text *t, const FmtRule *rule, const FmtExpr *e, const char *name)
{
    text_f(t, "%s(", name);
    for (int i = 0; i < e->nargs; i++) {
        if (i > 0)
            text_str(t, e->op == F_INDEX && i == e->keys ? "; " : ", ");
        fmt_expr_print(t, rule, e->arg[i]);
    }
    text_char(t, ')');
}

/* How tightly an operator binds; what is no operator does most. */
static int binding(FmtOp op)
{
    if (op < F_NEG || op > F_NOT)
        return 9;
    return op == F_NEG   ? 7
           : op >= F_NOT ? 1
           : op == F_OR  ? 2
           : op == F_AND ? 3
           : op >= F_LT  ? 4
           : op >= F_MUL ? 6
                         : 5;
}

static void print_inner(Text *t, const FmtRule *rule, const FmtExpr *e, int least)
{
    bool open = binding(e->op) < least;

    text_str(t, open ? "(" : "");
    fmt_expr_print(t, rule, e);
    text_str(t, open ? ")" : "");
}

void fmt_expr_print(Text *t, const FmtRule *rule, const FmtExpr *e)
{
    static const char *const text[] = {
        [F_NEG] = "-",     [F_ADD] = " + ",    [F_SUB] = " - ",  [F_MUL] = "*",
        [F_DIV] = " / ",   [F_MOD] = " % ",    [F_LT] = " < ",   [F_LE] = " <= ",
        [F_EQ] = " == ",   [F_NE] = " != ",    [F_AND] = " and ", [F_OR] = " or ",
        [F_NOT] = "not ",  [F_ABS] = "abs",    [F_MIN] = "min",  [F_MAX] = "max",
        [F_BITS] = "bits", [F_EXP2] = "exp2",  [F_COUNT] = "count", [F_RANK] = "rank",
        [F_INDEX] = "index", [F_PLACE] = "place"
    };

    switch (e->op) {
    case F_INT: text_f(t, "%lld", (long long)e->v); break;
    case F_NAME: text_str(t, e->name); break;
    case F_COORD: text_str(t, rule->coord[e->v]); break;
    case F_BOUND: text_str(t, rule->bound[e->v]); break;
    case F_LOC:
    case F_LOAD: text_f(t, "position %lld", (long long)e->v); break;
    default:
        if (e->op > F_NOT) {
            print_call(t, rule, e, text[e->op]);
            break;
        }
        if (e->nargs == 2)
            print_inner(t, rule, e->arg[0], binding(e->op));
        text_str(t, text[e->op]);
        print_inner(t, rule, e->arg[e->nargs - 1], binding(e->op) + 1);
    }
}
