/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The range of values of an expression, from the bounds of the coordinates alone.  It gives columns
 * their width, and drops checks whose outcome is known. */
#include "format/format_int.h"

typedef struct Range {
    int64_t lo, hi;
} Range;

static bool product(Range a, Range b, Range *out)
{
    int64_t v[4];

    if (int_mul(a.lo, b.lo, &v[0]) || int_mul(a.lo, b.hi, &v[1]) || int_mul(a.hi, b.lo, &v[2]) ||
        int_mul(a.hi, b.hi, &v[3]))
        return false;
    *out = (Range){ v[0], v[0] };
    for (int i = 1; i < 4; i++) {
        out->lo = v[i] < out->lo ? v[i] : out->lo;
        out->hi = v[i] > out->hi ? v[i] : out->hi;
    }
    return true;
}

/* By what is positive: the quotient rises with x, and falls with y where x is not negative. */
static bool quotient(Range x, Range y, Range *out)
{
    if (y.lo < 1)
        return false;
    return !int_div(x.lo, x.lo < 0 ? y.lo : y.hi, &out->lo) &&
           !int_div(x.hi, x.hi < 0 ? y.hi : y.lo, &out->hi);
}

static Range remainder_of(Range x, Range y)
{
    if (x.lo >= 0 && x.hi < y.lo)
        return x;
    return (Range){ 0, y.hi - 1 };
}

static Range truth(bool always, bool never)
{
    return (Range){ always, !never };
}

static bool is_true(Range a)
{
    return a.lo > 0 || a.hi < 0;
}

static bool is_false(Range a)
{
    return a.lo == 0 && a.hi == 0;
}

static Range compare(FmtOp op, Range a, Range b)
{
    bool apart = a.hi < b.lo || a.lo > b.hi, one = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;

    switch (op) {
    case F_LT: return truth(a.hi < b.lo, a.lo >= b.hi);
    case F_LE: return truth(a.hi <= b.lo, a.lo > b.hi);
    case F_EQ: return truth(one, apart);
    case F_NE: return truth(apart, one);
    case F_AND: return truth(is_true(a) && is_true(b), is_false(a) || is_false(b));
    case F_OR: return truth(is_true(a) || is_true(b), is_false(a) && is_false(b));
    default: return truth(is_false(a), is_true(a)); /* not */
    }
}

static bool chosen(FmtOp op, Range a, Range b, Range *out)
{
    bool bad = false;

    switch (op) {
    case F_ABS:
        *out = (Range){ a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, a.hi > -a.lo ? a.hi : -a.lo };
        break;
    case F_MIN: *out = (Range){ a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi }; break;
    case F_MAX: *out = (Range){ a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi }; break;
    default: /* bits, exp2: they rise */
        *out = (Range){ fmt_op(op, a.lo, 0), fmt_op(op, a.hi, 0) };
        bad = out->lo == INT64_MIN || out->hi == INT64_MIN;
    }
    return !bad;
}

static bool combined(FmtOp op, Range a, Range b, Range *out)
{
    switch (op) {
    case F_NEG: *out = (Range){ -a.hi, -a.lo }; return true;
    case F_ADD: return !int_add(a.lo, b.lo, &out->lo) && !int_add(a.hi, b.hi, &out->hi);
    case F_SUB: return !int_sub(a.lo, b.hi, &out->lo) && !int_sub(a.hi, b.lo, &out->hi);
    case F_MUL: return product(a, b, out);
    case F_DIV: return quotient(a, b, out);
    case F_MOD: *out = remainder_of(a, b); return b.lo > 0;
    case F_ABS:
    case F_MIN:
    case F_MAX:
    case F_BITS:
    case F_EXP2: return chosen(op, a, b, out);
    default: *out = compare(op, a, b); return true;
    }
}

static Range of_many(const FmtEval *c, const FmtExpr *e)
{
    int64_t most = c->n > 0 ? c->n - 1 : 0;

    if (e->op == F_PLACE && e->arg[0]->op == F_COORD) /* among all values of it */
        most = c->from->bound[e->arg[0]->v] - 1;
    return (Range){ 0, (most < 0 ? 0 : most) + (e->op == F_COUNT) };
}

bool fmt_range(const FmtEval *c, const FmtExpr *e, int64_t *lo, int64_t *hi)
{
    Range r[2] = { { 0, 0 }, { 0, 0 } }, out = { 0, 0 };
    bool good = true;

    if (e->op == F_INT || e->op == F_BOUND) {
        out.lo = out.hi = fmt_size(e, c->from);
    } else if (e->op == F_COORD) {
        out.hi = c->from->bound[e->v] > 0 ? c->from->bound[e->v] - 1 : 0;
    } else if (e->op >= F_COUNT) {
        out = of_many(c, e);
    } else {
        for (int i = 0; i < e->nargs && good; i++)
            good = fmt_range(c, e->arg[i], &r[i].lo, &r[i].hi);
        good = good && combined(e->op, r[0], r[1], &out) && out.lo > INT64_MIN;
    }
    *lo = out.lo;
    *hi = out.hi;
    return good;
}
