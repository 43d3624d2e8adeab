/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Ranges of integers, from the loops around them, from types and from validated structure.  No
 * size of a kernel reaches 2^LIMIT_SIZE_BITS, and no axis has 2^60 positions. */
#include "lower/facts/facts_int.h"

enum { LIMIT_TREE = 10000 }; /* nodes that are worth a look */
#define LIMIT_SIZE ((int64_t)1 << LIMIT_SIZE_BITS)
#define LIMIT_POSITIONS ((int64_t)1 << 60)

typedef struct Range {
    int64_t lo, hi; /* both inside */
} Range;

static bool range_of(const Ranges *r, Expr *e, Range *out);

static bool range_of_local(const Ranges *r, const Local *l, Range *out)
{
    for (const Ranges *x = r; x != NULL; x = x->outer)
        if (x->local == l)
            return *out = (Range){ x->lo, x->hi }, true;
    return false;
}

static void widen(Range *r, int64_t v)
{
    r->lo = v < r->lo ? v : r->lo;
    r->hi = v > r->hi ? v : r->hi;
}

static bool range_of_product(Range a, Range b, Range *out)
{
    int64_t p[4];

    if (int_mul(a.lo, b.lo, &p[0]) || int_mul(a.lo, b.hi, &p[1]) || int_mul(a.hi, b.lo, &p[2]) ||
        int_mul(a.hi, b.hi, &p[3]))
        return false;
    *out = (Range){ p[0], p[0] };
    for (int i = 1; i < 4; i++)
        widen(out, p[i]);
    return true;
}

/* Divided by what is positive: both roundings are down, so the ends are at the ends. */
static bool range_of_quotient(Op op, Range a, Range b, Range *out)
{
    int64_t q[4];

    if (b.lo <= 0)
        return false;
    if (op == OP_mod)
        return *out = (Range){ 0, b.hi - 1 }, true;
    if (int_div(a.lo, b.lo, &q[0]) || int_div(a.lo, b.hi, &q[1]) || int_div(a.hi, b.lo, &q[2]) ||
        int_div(a.hi, b.hi, &q[3]))
        return false;
    *out = (Range){ q[0], q[0] };
    for (int i = 1; i < 4; i++)
        widen(out, q[i]);
    return true;
}

static bool range_of_table(const Buf *b, Range *out)
{
    *out = (Range){ b->ival[0], b->ival[0] };
    for (int64_t i = 1; i < b->n; i++)
        widen(out, b->ival[i]);
    return true;
}

/* An element: of a constant table, of a structure array (validated), or of an integer buffer. */
static bool range_of_cell(const Ranges *r, Expr *e, Range *out)
{
    const Buf *b = e->buf;
    const Coord *c = b->of != NULL && b->of_k >= 0 && b->nfull == 0 ? &b->of->coord[b->of_k] : NULL;

    if (b->kind == B_CONST && b->ival != NULL && b->n > 0)
        return range_of_table(b, out);
    if (b->of != NULL && c == NULL)
        return *out = (Range){ 0, LIMIT_POSITIONS }, true;
    if (c != NULL && c->bound != NULL && !(b->of->flags & AX_PADDED) &&
        range_of(r, c->bound, out) && out->hi > 0)
        return *out = (Range){ 0, out->hi - 1 }, true;
    if (b->type == T_i32)
        return *out = (Range){ INT32_MIN, INT32_MAX }, true;
    return false;
}

static bool range_of_two(const Ranges *r, Expr *e, Range *out)
{
    Range a, b;

    if (!range_of(r, e->arg[0], &a) || !range_of(r, e->arg[1], &b))
        return false;
    switch (e->op) {
    case OP_add: return !int_add(a.lo, b.lo, &out->lo) && !int_add(a.hi, b.hi, &out->hi);
    case OP_sub: return !int_sub(a.lo, b.hi, &out->lo) && !int_sub(a.hi, b.lo, &out->hi);
    case OP_mul: return range_of_product(a, b, out);
    case OP_div:
    case OP_mod: return range_of_quotient((Op)e->op, a, b, out);
    case OP_min:
        return *out = (Range){ a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi }, true;
    default: return *out = (Range){ a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi }, true;
    }
}

static bool range_of(const Ranges *r, Expr *e, Range *out)
{
    Range other;

    if (e->type != T_i64 || e->tree > LIMIT_TREE)
        return false;
    switch (e->op) {
    case OP_int: return *out = (Range){ e->i, e->i }, true;
    case OP_size: return *out = (Range){ 0, LIMIT_SIZE }, true;
    case OP_count: return *out = (Range){ 0, LIMIT_POSITIONS }, true;
    case OP_find: return *out = (Range){ -1, LIMIT_POSITIONS }, true;
    case OP_above: return *out = (Range){ 0, LIMIT_POSITIONS }, true;
    case OP_local: return range_of_local(r, e->local, out);
    case OP_neg:
        return range_of(r, e->arg[0], &other) && !int_sub(0, other.hi, &out->lo) &&
               !int_sub(0, other.lo, &out->hi);
    case OP_cell: return range_of_cell(r, e, out);
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div:
    case OP_mod:
    case OP_min:
    case OP_max: return range_of_two(r, e, out);
    case OP_select:
        if (!range_of(r, e->arg[1], out) || !range_of(r, e->arg[2], &other))
            return false;
        widen(out, other.lo);
        widen(out, other.hi);
        return true;
    default: return false;
    }
}

/* Whether a is less by what it is: the variable of a loop that ends at b, or a coordinate that was
 * validated. */
static bool is_bounded(const Ranges *r, Expr *a, Expr *b)
{
    const Buf *of = a->op == OP_cell ? a->buf : NULL;

    for (const Ranges *l = r; l != NULL && a->op == OP_local; l = l->outer)
        if (l->local == a->local && l->below != NULL &&
            (l->below == b || (l->below->op == OP_min &&
                               (l->below->arg[0] == b || l->below->arg[1] == b))))
            return true;
    return of != NULL && of->of != NULL && of->of_k >= 0 && of->nfull == 0 &&
           !(of->of->flags & AX_PADDED) && of->of->coord[of->of_k].bound == b;
}

/* row * n + column < rows * n. */
static bool is_bounded_place(const Ranges *r, Expr *a, Expr *b)
{
    Expr *n = b->op == OP_mul ? b->arg[b->arg[0]->op != OP_int] : NULL;
    Range x;

    for (int i = 0; i < 2 && n != NULL && n->op == OP_int && a->op == OP_add; i++) {
        Expr *m = a->arg[i], *column = a->arg[1 - i];

        for (int k = 0; k < 2 && m->op == OP_mul; k++)
            if (m->arg[k] == n && n->i > 0 && range_of(r, column, &x) && x.hi < n->i &&
                is_bounded(r, m->arg[1 - k], b->arg[b->arg[0] == n]))
                return true;
    }
    return false;
}

/* a < b, with `less` 0, or a <= b, with 1. */
static Truth compare(const Ranges *r, Expr *a, Expr *b, int less)
{
    Range x, y;

    if (a == b && a->type == T_i64)
        return less ? YES : NO;
    if (is_bounded(r, a, b) || is_bounded_place(r, a, b))
        return YES;
    if (!range_of(r, a, &x) || !range_of(r, b, &y))
        return UNKNOWN;
    if (x.hi < y.lo || (less && x.hi == y.lo))
        return YES;
    return x.lo > y.hi || (!less && x.lo == y.hi) ? NO : UNKNOWN;
}

static Truth negate(Truth t)
{
    return t == YES ? NO : t == NO ? YES : UNKNOWN;
}

static Truth equal(const Ranges *r, Expr *a, Expr *b)
{
    Range x, y;

    if (a == b && a->type == T_i64)
        return YES;
    if (!range_of(r, a, &x) || !range_of(r, b, &y))
        return UNKNOWN;
    return x.hi < y.lo || y.hi < x.lo ? NO : x.lo == y.hi && y.lo == x.hi ? YES : UNKNOWN;
}

/* Whether all integer arithmetic of e has a range; one that has also has one below it. */
static Truth fits(const Ranges *r, Expr *e)
{
    Range x;

    if (e->op == OP_cell || e->op == OP_find || e->op == OP_above || e->nargs == 0)
        return YES; /* tested where it was made */
    return range_of(r, e, &x) ? YES : UNKNOWN;
}

Truth lower_truth(const Ranges *r, Expr *e)
{
    Truth a, b;

    if (e->tree > LIMIT_TREE)
        return UNKNOWN;
    switch (e->op) {
    case OP_lt: return compare(r, e->arg[0], e->arg[1], 0);
    case OP_le: return compare(r, e->arg[0], e->arg[1], 1);
    case OP_gt: return compare(r, e->arg[1], e->arg[0], 0);
    case OP_ge: return compare(r, e->arg[1], e->arg[0], 1);
    case OP_not: return negate(lower_truth(r, e->arg[0]));
    case OP_fits: return fits(r, e->arg[0]);
    case OP_and:
        a = lower_truth(r, e->arg[0]);
        b = lower_truth(r, e->arg[1]);
        return a == NO || b == NO ? NO : a == YES && b == YES ? YES : UNKNOWN;
    case OP_or:
        a = lower_truth(r, e->arg[0]);
        b = lower_truth(r, e->arg[1]);
        return a == YES || b == YES ? YES : a == NO && b == NO ? NO : UNKNOWN;
    case OP_eq: return equal(r, e->arg[0], e->arg[1]);
    case OP_ne: return negate(equal(r, e->arg[0], e->arg[1]));
    default: return UNKNOWN;
    }
}

typedef struct Decide {
    const Ranges *r;
    Expr *yes, *no; /* what stands for a condition that is known */
} Decide;

static Expr *decide_logic(Prog *p, Expr *e, const Decide *d)
{
    Expr *neutral = e->op == OP_and ? d->yes : d->no;

    (void)p;
    for (int i = 0; i < 2; i++)
        if (e->arg[i] == neutral)
            return e->arg[1 - i];
    return e;
}

/* An element of a constant buffer at a constant place; outside nobody ever looks. */
static Expr *constant(Prog *p, Expr *e)
{
    const Buf *b = e->buf;
    bool inside = e->arg[0]->i >= 0 && e->arg[0]->i < b->n;
    int64_t i = e->arg[0]->i;
    double v = !inside || b->val == NULL ? 0 : b->val[i];

    if (e->type == T_i64)
        return ir_int(p, inside ? b->ival[i] : 0);
    if (e->type == T_real)
        return ir_real(p, v);
    if (b->type == T_f16 || b->type == T_bf16)
        v = b->type == T_f16 ? (double)num_f16(num_to_f16(v)) : (double)num_bf16(num_to_bf16(v));
    return ir_op1(p, e->type == T_f32 ? OP_f32 : OP_f64, ir_real(p, v));
}

static Expr *decide(Prog *p, Expr *e, void *ctx)
{
    const Decide *d = ctx;
    Truth t = e->type == T_bool ? lower_truth(d->r, e) : UNKNOWN;

    if (e->op == OP_cell && e->buf->kind == B_CONST && e->nargs == 1 && e->arg[0]->op == OP_int)
        return constant(p, e);
    if (t != UNKNOWN)
        return t == YES ? d->yes : d->no;
    if (e->op == OP_and || e->op == OP_or)
        return decide_logic(p, e, d);
    for (int i = 1; e->op == OP_select && i < 3; i++)
        if (e->arg[0] == (i == 1 ? d->yes : d->no) && e->arg[i]->type == e->type)
            return e->arg[i];
    return e;
}

Expr *lower_decided(Prog *p, const Ranges *r, Expr *e, Memo *memo)
{
    Decide d = { r, ir_op2(p, OP_eq, ir_int(p, 0), ir_int(p, 0)),
                 ir_op2(p, OP_ne, ir_int(p, 0), ir_int(p, 0)) };

    return ir_rewrite(p, e, decide, &d, memo);
}

Ranges lower_range_of(const Ranges *outer, const Node *n)
{
    Ranges r = { .local = n->local, .lo = INT64_MIN, .hi = INT64_MAX, .outer = outer };
    Range lo, hi;

    if (n->kind == N_LET) {
        if (range_of(outer, n->value, &lo))
            r.lo = lo.lo, r.hi = lo.hi;
        return r;
    }
    r.below = n->hi;
    if (range_of(outer, n->lo, &lo))
        r.lo = lo.lo;
    if (range_of(outer, n->hi, &hi) && hi.hi > INT64_MIN)
        r.hi = hi.hi - 1;
    return r;
}
