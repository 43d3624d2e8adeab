/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operations on f32 and f64, each rounded as IEEE 754 says.  A result that is NaN is the one NaN of
 * the hardware.  MUFU gives the nearest float, where the hardware may be off by one or two units in
 * the last place. */
#include "gpu/sass/numbers.h"
#include "gpu/sass/ops.h"

#include <math.h>

/* ---- a + b, a * b, a * b + c of f32 */
static void compute(int what, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *v)
{
    volatile float x, y; /* between changes of the rounding nothing may be computed early */

    for (int l = 0; l < LANES; l++) {
        x = as_float(a[l]);
        y = as_float(b[l]);
        v[l] = of_float(what == SUM ? x + y : what == PRODUCT ? x * y : fmaf(x, y, as_float(c[l])));
    }
}

/* .FTZ, .SAT and directed rounding: rare, and slow. */
static void compute_special(const Ins *i, int what, const uint32_t *a, const uint32_t *b,
                            const uint32_t *c, uint32_t *v)
{
    Lanes in[3];
    const uint32_t *from[3] = { a, b, c };

    for (int k = 0; k < 3; k++)
        for (int l = 0; l < LANES; l++)
            in[k][l] = has(i, M_FTZ) ? flushed(from[k][l]) : from[k][l];
    fesetround(rounding(i));
    compute(what, in[0], in[1], in[2], v);
    fesetround(FE_TONEAREST);
    for (int l = 0; l < LANES; l++) {
        if (has(i, M_SAT)) {
            const float x = as_float(v[l]);

            v[l] = x >= 1.0f ? 0x3f800000 : x > 0.0f ? v[l] : 0;
        }
        v[l] = has(i, M_FTZ) ? flushed(v[l]) : v[l];
    }
}

static bool plain(const Ins *i)
{
    return !(has(i, M_FTZ) || has(i, M_SAT) || has(i, M_RM) || has(i, M_RP) || has(i, M_RZ));
}

#if defined(__x86_64__)
#define FAST __attribute__((target("avx2,fma")))
FAST static void fused_fast(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *v)
{
    for (int l = 0; l < LANES; l++)
        v[l] = of_float(__builtin_fmaf(as_float(a[l]), as_float(b[l]), as_float(c[l])));
}
static bool has_fma(void)
{
    static int known = -1;

    if (known < 0)
        known = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
    return known == 1;
}
#endif

static void fused(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *v)
{
#if defined(__x86_64__)
    if (has_fma()) {
        fused_fast(a, b, c, v);
        return;
    }
#endif
    for (int l = 0; l < LANES; l++)
        v[l] = of_float(fmaf(as_float(a[l]), as_float(b[l]), as_float(c[l])));
}

static void arithmetic(Warp *w, const Ins *i, uint32_t mask, int what)
{
    Lanes ta, tb, tc, v;
    const uint32_t *a = bits(w, &i->arg[1], ta), *b = bits(w, &i->arg[2], tb);
    const uint32_t *c = what == FUSED ? bits(w, &i->arg[3], tc) : a;

    if (!plain(i))
        compute_special(i, what, a, b, c, v);
    else if (what == FUSED)
        fused(a, b, c, v);
    else if (what == SUM)
        for (int l = 0; l < LANES; l++)
            v[l] = of_float(as_float(a[l]) + as_float(b[l]));
    else
        for (int l = 0; l < LANES; l++)
            v[l] = of_float(as_float(a[l]) * as_float(b[l]));
    put(w, &i->arg[0], v, mask);
}
void op_fadd(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic(w, i, mask, SUM);
}
void op_fmul(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic(w, i, mask, PRODUCT);
}
void op_ffma(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic(w, i, mask, FUSED);
}

/* ---- Comparison.  Of the modes, those that end in U are true of NaN. */
static bool compares(int mode, double a, double b)
{
    const bool none = isnan(a) || isnan(b);

    switch (mode) {
    case M_EQ: return a == b;
    case M_NE: return !none && a != b;
    case M_LT: return a < b;
    case M_LE: return a <= b;
    case M_GT: return a > b;
    case M_GE: return a >= b;
    case M_EQU: return none || a == b;
    case M_NEU: return none || a != b;
    case M_LTU: return none || a < b;
    case M_LEU: return none || a <= b;
    case M_GTU: return none || a > b;
    case M_GEU: return none || a >= b;
    case M_NUM: return !none;
    case M_NAN_: return none;
    case M_T: return true;
    default: return false;
    }
}

static void put_compared(Warp *w, const Ins *i, uint32_t mask, uint32_t r)
{
    const uint32_t with = pred(w, &i->arg[4]);

    for (int k = 0; k < 2; k++) {
        const uint32_t is = k == 0 ? r : ~r;

        put_pred(w, &i->arg[k],
                 has(i, M_OR)    ? is | with
                 : has(i, M_XOR) ? is ^ with
                                 : is & with,
                 mask);
    }
}

/* A bit for each lane where operands k and k + 1 compare so. */
static uint32_t compared(Warp *w, const Ins *i, int k)
{
    Lanes ta, tb;
    const uint32_t *a = bits(w, &i->arg[k], ta), *b = bits(w, &i->arg[k + 1], tb);
    const bool flush = has(i, M_FTZ);
    uint32_t r = 0;

    for (int l = 0; l < LANES; l++)
        r |= (uint32_t)compares(i->mode, as_float(flush ? flushed(a[l]) : a[l]),
                                as_float(flush ? flushed(b[l]) : b[l]))
             << l;
    return r;
}

void op_fsetp(Warp *w, const Ins *i, uint32_t mask)
{
    put_compared(w, i, mask, compared(w, i, 2));
}

/* .BF: 1.0 where it compares so; without, all bits. */
void op_fset(Warp *w, const Ins *i, uint32_t mask)
{
    const uint32_t is = compared(w, i, 1), with = pred(w, &i->arg[3]);
    const uint32_t r = has(i, M_OR) ? is | with : has(i, M_XOR) ? is ^ with : is & with;
    Lanes v;

    for (int l = 0; l < LANES; l++)
        v[l] = (r >> l & 1) == 0 ? 0 : has(i, M_BF) ? 0x3f800000u : 0xffffffffu;
    put(w, &i->arg[0], v, mask);
}

/* The number where the other is NaN, or with .NAN a NaN; -0 is less than +0. */
void op_fmnmx(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb, v;
    const uint32_t *a = bits(w, &i->arg[1], ta), *b = bits(w, &i->arg[2], tb),
                   least = pred(w, &i->arg[3]);

    for (int l = 0; l < LANES; l++) {
        const uint32_t ua = has(i, M_FTZ) ? flushed(a[l]) : a[l],
                       ub = has(i, M_FTZ) ? flushed(b[l]) : b[l];
        const float x = as_float(ua), y = as_float(ub);
        const bool below = x < y || (x == y && ua >> 31 > ub >> 31);

        v[l] = isnan(x) && isnan(y)                       ? NAN32
               : has(i, M_NAN_) && (isnan(x) || isnan(y)) ? NAN32
               : isnan(x)                                 ? ub
               : isnan(y)                                 ? ua
               : below == (least >> l & 1)                ? ua
                                                          : ub;
    }
    put(w, &i->arg[0], v, mask);
}

/* Whether a / b needs the slow path of the division: exponents with which the fast one may round an
 * intermediate result to a subnormal or to infinity.  The hardware's own rule is not published;
 * this one takes the slow path at least where it is needed, so that quotients are right. */
void op_fchk(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, tb;
    const uint32_t *a = bits(w, &i->arg[1], ta), *b = bits(w, &i->arg[2], tb);
    uint32_t r = 0;

    for (int l = 0; l < LANES; l++) {
        const int ea = (int)(a[l] >> 23 & 255), eb = (int)(b[l] >> 23 & 255);
        const bool slow =
            eb == 0 || eb >= 253 || ea == 255 || ea < 25 || ea - eb > 125 || ea - eb < -124;

        r |= (uint32_t)slow << l;
    }
    put_pred(w, &i->arg[0], r, mask);
}

static double elementary(const Ins *i, double x)
{
    const double turn = 6.283185307179586476925;

    return has(i, M_RCP)    ? 1.0 / x
           : has(i, M_RSQ)  ? 1.0 / sqrt(x)
           : has(i, M_SQRT) ? sqrt(x)
           : has(i, M_EX2)  ? exp2(x)
           : has(i, M_LG2)  ? log2(x)
           : has(i, M_SIN)  ? sin(remainder(x, 1.0) * turn) /* of a number of turns */
           : has(i, M_COS)  ? cos(remainder(x, 1.0) * turn)
                            : tanh(x);
}

void op_mufu(Warp *w, const Ins *i, uint32_t mask)
{
    Lanes ta, v;
    const uint32_t *a = bits(w, &i->arg[1], ta);

    for (EACH(l, mask)) {
        if (has(i, M_RCP64H) ||
            has(i, M_RSQ64H)) { /* the upper half of a double, from its upper half */
            const double x = as_double((uint64_t)a[l] << 32);

            v[l] = (uint32_t)(of_double(has(i, M_RCP64H) ? 1.0 / x : 1.0 / sqrt(x)) >> 32);
            continue;
        }
        uint32_t x = a[l];

        if (!has(i, M_SQRT) && !has(i, M_TANH)) /* subnormal inputs count as 0 */
            x = flushed(x);
        v[l] = of_float((float)elementary(i, as_float(x)));
        if (has(i, M_RCP) || has(i, M_EX2))
            v[l] = flushed(v[l]);
    }
    put(w, &i->arg[0], v, mask);
}

/* ---- f64 */
static double double_arg(const Warp *w, const Arg *a, uint32_t l)
{
    double d = as_double(pair_at(raw(w, a), l));

    d = a->abs ? fabs(d) : d;
    return a->neg ? -d : d;
}

static void arithmetic64(Warp *w, const Ins *i, uint32_t mask, int what)
{
    uint64_t v[LANES];
    const int round = rounding(i);

    if (round != FE_TONEAREST)
        fesetround(round);
    for (EACH(l, mask)) {
        volatile double a = double_arg(w, &i->arg[1], l), b = double_arg(w, &i->arg[2], l);

        v[l] = of_double(what == SUM       ? a + b
                         : what == PRODUCT ? a * b
                                           : fma(a, b, double_arg(w, &i->arg[3], l)));
    }
    if (round != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    put_pair(w, &i->arg[0], v, mask);
}
void op_dadd(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic64(w, i, mask, SUM);
}
void op_dmul(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic64(w, i, mask, PRODUCT);
}
void op_dfma(Warp *w, const Ins *i, uint32_t mask)
{
    arithmetic64(w, i, mask, FUSED);
}

/* .MIN and .MAX: the first predicate chooses the first operand; the second is true of two NaNs. */
void op_dsetp(Warp *w, const Ins *i, uint32_t mask)
{
    uint32_t r = 0, second = 0;

    for (EACH(l, mask)) {
        const double a = double_arg(w, &i->arg[2], l), b = double_arg(w, &i->arg[3], l);

        if (has(i, M_MIN) || has(i, M_MAX)) {
            const bool below = a < b || (a == b && signbit(a) && !signbit(b));

            r |= (uint32_t)(isnan(b) || (!isnan(a) && below == has(i, M_MIN))) << l;
            second |= (uint32_t)(isnan(a) && isnan(b)) << l;
        } else {
            r |= (uint32_t)compares(i->mode, a, b) << l;
        }
    }
    if (has(i, M_MIN) || has(i, M_MAX)) {
        put_pred(w, &i->arg[0], r, mask);
        put_pred(w, &i->arg[1], second, mask);
    } else {
        put_compared(w, i, mask, r);
    }
}
