/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Float expressions as text with a bound on their magnitude, so that sums can be kept exact, and
 * conditions. */
#include "random/gen.h"

#include <math.h>
#include <string.h>

static Type wider(Type a, Type b)
{
    return a > b ? a : b;
}

static Val literal_float(Gen *g)
{
    static const char *const odd[] = { "0.1", "2.5",   "1e3",           "0.3333333333333333",
                                       "inf", "1e-40", "123456789.125", "3e38",
                                       "nan" };
    int v = gen_pick(g, 9) - 4;
    bool plain = g->knobs.exact || gen_p(g, 60);
    const char *s = !plain ? odd[gen_pick(g, 9)] : gen_f(g, gen_p(g, 50) ? "%d" : "%d.0", v);

    return (Val){ .s = s,
                  .prec = *s == '-' ? P_SIGN : P_PRIMARY,
                  .mag = plain ? fabs((double)v) : (double)INFINITY,
                  .type = plain && strchr(s, '.') == NULL ? T_i64 : T_real,
                  .r = { v, v } };
}

static Val float_leaf(Gen *g, Scope *sc)
{
    int what = gen_pick(g, 100);
    Val v;

    if (what < 20 && gen_let(g, sc, true, &v))
        return v;
    if (what < 75 && gen_load(g, sc, true, &v))
        return v;
    if (what < 85)
        return gen_int(g, sc, 1);
    return literal_float(g);
}

/* The value of a node, or one of its operands where it would not stay exact. */
static Val node(Gen *g, Val fall, const char *s, int prec, Type t, double mag)
{
    if (g->knobs.exact && mag > (t == T_i64 ? GEN_MOST_INT : gen_limit(g, t)))
        return fall;
    return (Val){ .s = s, .prec = prec, .type = t, .mag = mag, .r = { -mag, mag } };
}

static bool integers(Val a, Val b)
{
    return a.type == T_i64 && b.type == T_i64;
}

static Val float_binary(Gen *g, Val a, Val b)
{
    Type t = wider(a.type, b.type);
    int op = gen_pick(g, g->knobs.poly ? 6 : g->knobs.exact ? 8 : 9);

    if (integers(a, b))
        return op < 3 ? gen_int_product(g, a, b) : gen_int_sum(g, a, b);
    if (op < 3)
        return node(g, a, gen_f(g, "%s * %s", gen_at(g, a, P_PRODUCT), gen_at(g, b, P_SIGN)),
                    P_PRODUCT, t, a.mag * b.mag);
    if (op < 6)
        return node(
            g, a,
            gen_f(g, "%s %c %s", gen_at(g, a, P_SUM), op < 5 ? '+' : '-', gen_at(g, b, P_PRODUCT)),
            P_SUM, t, a.mag + b.mag);
    if (op < 8)
        return node(g, a, gen_f(g, "%s(%s, %s)", op == 6 ? "min" : "max", a.s, b.s), P_PRIMARY, t,
                    fmax(a.mag, b.mag));
    return node(g, a, gen_f(g, "%s / %s", gen_at(g, a, P_PRODUCT), gen_at(g, b, P_SIGN)), P_PRODUCT,
                t, INFINITY);
}

static Val float_function(Gen *g, Val a)
{
    static const char *const exact[] = { "abs", "relu", "step", "sign", "stop", "f32", "f64" };
    static const char *const rounds[] = { "exp", "log",  "sqrt",    "rsqrt", "sin",
                                          "cos", "tanh", "sigmoid", "silu" };
    int f = gen_pick(g, g->knobs.poly ? 1 : g->knobs.exact ? 9 : 20);
    Type t = wider(a.type, T_real);

    if (f < 2)
        return node(g, a, gen_f(g, "-%s", gen_at(g, a, P_PRIMARY)), P_SIGN, a.type, a.mag);
    if (f < 9) {
        t = f == 7 ? T_f32 : f == 8 ? T_f64 : a.type;
        return node(g, a, gen_f(g, "%s(%s)", exact[f - 2], a.s), P_PRIMARY, t,
                    f == 4 || f == 5 ? 1 : a.mag);
    }
    return node(g, a, gen_f(g, "%s(%s)", rounds[(f - 9) % 9], a.s), P_PRIMARY, t, INFINITY);
}

static Val float_select(Gen *g, Scope *sc, Val a, Val b)
{
    if (integers(a, b))
        return gen_int_choice(g, sc, a, b);
    return node(g, a, gen_f(g, "select(%s, %s, %s)", gen_cond(g, sc, 1).s, a.s, b.s), P_PRIMARY,
                wider(a.type, b.type), fmax(a.mag, b.mag));
}

Val gen_float(Gen *g, Scope *sc, int depth)
{
    int what = gen_pick(g, 100);
    Val a;

    if (depth <= 0 || what < 25)
        return float_leaf(g, sc);
    a = gen_float(g, sc, depth - 1);
    if (what < 45)
        return float_function(g, a);
    if (what < 52 && !g->knobs.poly)
        return float_select(g, sc, a, gen_float(g, sc, depth - 1));
    return float_binary(g, a, gen_float(g, sc, depth - 1));
}

static Val cond_val(const char *s, int prec)
{
    return (Val){ .s = s, .prec = prec, .type = T_bool };
}

static Val comparison(Gen *g, Scope *sc)
{
    static const char *const op[] = { "<", "<=", ">", ">=", "==", "!=" };
    bool ints = g->knobs.poly || gen_p(g, 60);
    Val a = ints ? gen_int(g, sc, 1) : gen_float(g, sc, 1);
    Val b = ints ? gen_int(g, sc, 1) : gen_float(g, sc, 1);

    return cond_val(
        gen_f(g, "%s %s %s", gen_at(g, a, P_SUM), op[gen_pick(g, 6)], gen_at(g, b, P_SUM)),
        P_COMPARE);
}

static bool stored_cond(Gen *g, Scope *sc, Val *out)
{
    GBuf *b = gen_pick_buf(g, sc, gen_p(g, 70));
    Access a;

    if (b == NULL || !gen_access(g, sc, b, NULL, &a))
        return false;
    b->read = true;
    *out = cond_val(gen_f(g, "stored(%s)", a.s), P_PRIMARY);
    return true;
}

Val gen_cond(Gen *g, Scope *sc, int depth)
{
    int what = gen_pick(g, 100);
    bool guarded = sc->no_guard;
    Val a, b;

    sc->no_guard = true; /* what it needs cannot be asked for after it */
    if (depth <= 0 || g->nest > 0 || what < 55) {
        if (what % 4 != 0 || !stored_cond(g, sc, &a))
            a = comparison(g, sc);
    } else {
        a = gen_cond(g, sc, depth - 1);
        b = what < 70 ? a : gen_cond(g, sc, depth - 1);
        if (what < 70)
            a = cond_val(gen_f(g, "not %s", gen_at(g, a, P_NOT)), P_NOT);
        else if (what < 85)
            a = cond_val(gen_f(g, "%s and %s", gen_at(g, a, P_AND), gen_at(g, b, P_NOT)), P_AND);
        else
            a = cond_val(gen_f(g, "%s or %s", gen_at(g, a, P_OR), gen_at(g, b, P_AND)), P_OR);
    }
    sc->no_guard = guarded;
    return a;
}
