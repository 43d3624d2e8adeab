/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Integer expressions as text with an interval that holds their values, so that indices can be
 * made to stay inside: by %, by a clamp, or by a guard. */
#include "random/gen.h"

#include <math.h>
#include <string.h>

const char *gen_at(Gen *g, Val v, int prec)
{
    return v.prec < prec || gen_p(g, 4) ? gen_f(g, "(%s)", v.s) : v.s;
}

Val gen_int_val(const char *s, int prec, Ival r)
{
    return (
        Val){ .s = s, .prec = prec, .type = T_i64, .r = r, .mag = fmax(fabs(r.lo), fabs(r.hi)) };
}

Val gen_position_val(const char *s, GAxis *x)
{
    Val v = gen_int_val(s, P_PRIMARY, ival(0, x->n > 0 ? x->n - 1 : 0));

    v.positions = x;
    return v;
}

static Val literal_int(Gen *g)
{
    int v = gen_pick(g, 9) - 3;

    if (g->out->risky && gen_p(g, 4))
        return gen_int_val(gen_p(g, 50) ? "9223372036854775807" : "-9223372036854775808", P_SIGN,
                           (Ival){ -0x1p63, 0x1p63 });
    return gen_int_val(gen_f(g, "%d", v), v < 0 ? P_SIGN : P_PRIMARY, ival(v, v));
}

static Val coord_val(Gen *g, const GVar *v)
{
    const GCoord *c = &v->axis->coord[gen_pick(g, v->axis->ncoord)];
    const char *s = c->name == NULL ? v->name : gen_f(g, "%s(%s)", c->name, v->name);

    return gen_int_val(s, P_PRIMARY, c->range.lo > c->range.hi ? ival(0, 0) : c->range);
}

static Val var_val(Gen *g, const Scope *sc)
{
    const GVar *v = sc->var[gen_pick(g, sc->nvar)];

    if (gen_p(g, 75))
        return coord_val(g, v);
    if (gen_p(g, 40))
        return gen_int_val(gen_f(g, "loc(%s)", v->name), P_PRIMARY,
                           ival(0, v->axis->parent == NULL ? v->axis->n : v->axis->most));
    return gen_position_val(gen_f(g, "pos(%s)", v->name), v->axis);
}

static Val constant_val(Gen *g)
{
    const GAxis *x = g->axis[gen_pick(g, g->naxis)];
    const GSize *s = &g->size[gen_pick(g, g->nsize)];

    if (gen_p(g, 40))
        return gen_int_val(s->name, P_PRIMARY, ival(s->value, s->value));
    if (gen_p(g, 20) && gen_usable(x))
        return gen_int_val(gen_f(g, "size(%s)", x->name), P_PRIMARY,
                           ival(x->known ? x->n : 0, x->n));
    return literal_int(g);
}

static Val int_leaf(Gen *g, Scope *sc)
{
    int what = gen_pick(g, 100);
    Val v;

    if (what < 15 && gen_let(g, sc, false, &v))
        return v;
    if (what < 70 && sc->nvar > 0)
        return var_val(g, sc);
    if (what < (g->nest == 0 ? 85 : g->nest == 1 ? 78 : 70) && gen_load(g, sc, false, &v))
        return v;
    return constant_val(g);
}

static const char *infix(Gen *g, Val a, char op, Val b)
{
    int prec = op == '+' || op == '-' ? P_SUM : P_PRODUCT;

    return gen_f(g, "%s %c %s", gen_at(g, a, prec), op, gen_at(g, b, prec + 1));
}

Val gen_int_sum(Gen *g, Val a, Val b)
{
    if (gen_p(g, 50))
        return gen_int_val(infix(g, a, '+', b), P_SUM, (Ival){ a.r.lo + b.r.lo, a.r.hi + b.r.hi });
    return gen_int_val(infix(g, a, '-', b), P_SUM, (Ival){ a.r.lo - b.r.hi, a.r.hi - b.r.lo });
}

Val gen_int_product(Gen *g, Val a, Val b)
{
    double ll = a.r.lo * b.r.lo, lh = a.r.lo * b.r.hi, hl = a.r.hi * b.r.lo, hh = a.r.hi * b.r.hi;

    return gen_int_val(
        infix(g, a, '*', b), P_PRODUCT,
        (Ival){ fmin(fmin(ll, lh), fmin(hl, hh)), fmax(fmax(ll, lh), fmax(hl, hh)) });
}

static bool is_number(const char *s)
{
    return strpbrk(s, "[abcdefghijklmnopqrstuvwxyz") == NULL;
}

/* By a divisor that is never 0; two literals must divide, so they are left alone. */
static Val int_division(Gen *g, Val a, Val b)
{
    if (b.r.lo <= 0 && b.r.hi >= 0 && !g->out->risky)
        b = gen_int_val("3", P_PRIMARY, ival(3, 3));
    if (is_number(a.s) && is_number(b.s))
        return a;
    if (gen_p(g, 50))
        return gen_int_val(infix(g, a, '%', b), P_PRODUCT,
                           (Ival){ fmin(b.r.lo, 0), fmax(b.r.hi, 0) });
    return gen_int_val(infix(g, a, '/', b), P_PRODUCT, (Ival){ -a.mag - 1, a.mag + 1 });
}

Val gen_int_choice(Gen *g, Scope *sc, Val a, Val b)
{
    Ival r = { fmin(a.r.lo, b.r.lo), fmax(a.r.hi, b.r.hi) };

    if (gen_p(g, g->nest == 0 ? 40 : 15))
        return gen_int_val(gen_f(g, "select(%s, %s, %s)", gen_cond(g, sc, 1).s, a.s, b.s),
                           P_PRIMARY, r);
    return gen_int_val(gen_f(g, "%s(%s, %s)", gen_p(g, 50) ? "min" : "max", a.s, b.s), P_PRIMARY,
                       r);
}

static Val int_function(Gen *g, Val a)
{
    switch (gen_pick(g, 6)) {
    case 0: return gen_int_val(gen_f(g, "abs(%s)", a.s), P_PRIMARY, (Ival){ 0, a.mag });
    case 1: return gen_int_val(gen_f(g, "relu(%s)", a.s), P_PRIMARY, (Ival){ 0, a.mag });
    case 2: return gen_int_val(gen_f(g, "step(%s)", a.s), P_PRIMARY, ival(0, 1));
    case 3: return gen_int_val(gen_f(g, "sign(%s)", a.s), P_PRIMARY, ival(-1, 1));
    case 4: return gen_int_val(gen_f(g, "stop(%s)", a.s), P_PRIMARY, a.r);
    default:
        return gen_int_val(gen_f(g, "-%s", gen_at(g, a, P_PRIMARY)), P_SIGN,
                           (Ival){ -a.r.hi, -a.r.lo });
    }
}

static Val int_operator(Gen *g, Scope *sc, Val a, Val b)
{
    switch (gen_pick(g, 4)) {
    case 0: return gen_int_product(g, a, b);
    case 1: return int_division(g, a, b);
    case 2: return gen_int_choice(g, sc, a, b);
    default: return gen_int_sum(g, a, b);
    }
}

Val gen_int(Gen *g, Scope *sc, int depth)
{
    Val a, v;

    if (depth <= 0 || gen_p(g, g->nest == 0 ? 40 : 70))
        return int_leaf(g, sc);
    a = gen_int(g, sc, depth - 1);
    v = gen_p(g, 15) ? int_function(g, a) : int_operator(g, sc, a, gen_int(g, sc, depth - 1));
    return v.mag > GEN_MOST_INT && !g->out->risky ? a : v;
}

bool gen_guard(Scope *sc, const char *cond)
{
    if (sc->no_guard || sc->nguard == G_GUARDS)
        return false;
    for (int i = 0; i < sc->nguard; i++)
        if (strcmp(sc->guard[i], cond) == 0)
            return true;
    sc->guard[sc->nguard++] = cond;
    return true;
}

static const char *inside(Gen *g, const char *s, long long lo, long long hi)
{
    return gen_p(g, 50) ? gen_f(g, "%s >= %lld and %s <= %lld", s, lo, s, hi)
                        : gen_f(g, "%lld <= %s and not %s > %lld", lo, s, s, hi);
}

bool gen_fit(Gen *g, Scope *sc, Val *v, double lo, double hi)
{
    long long l = (long long)lo, h = (long long)hi;
    int how = gen_pick(g, 100);

    if (sc->dead || (v->r.lo >= lo && v->r.hi <= hi) || (sc->risky && gen_p(g, 5)))
        return true;
    if (lo > hi)
        return false;
    if (how < 40 && l == 0 && !is_number(v->s)) {
        *v = gen_int_val(gen_f(g, "%s %% %lld", gen_at(g, *v, P_PRODUCT), h + 1), P_PRODUCT,
                         ival(0, h));
        return true;
    }
    if (how < 80 && gen_guard(sc, inside(g, gen_at(g, *v, P_SUM), l, h))) {
        v->r = ival(l, h);
        return true;
    }
    *v = gen_int_val(gen_f(g, "min(max(%s, %lld), %lld)", v->s, l, h), P_PRIMARY, ival(l, h));
    return true;
}
