/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a tensor product is: which paths make sense, how many weights they have, and how they are
 * normalised.  All of it is e3nn's, so that weights and outputs of models carry over. */
#include "o3/o3_int.h"

#include <math.h>

const char *const o3_mode[O3_MODES] = {
    "uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw",
};

static int64_t pairs(int64_t n)
{
    return n * (n - 1) / 2;
}

/* What a mode asks of the multiplicities of in1, in2 and out; NULL: they fit. */
static const char *misfit(const O3Path *p, int64_t u, int64_t v, int64_t w)
{
    switch (p->mode) {
    case O3_UVW: return p->weighted ? NULL : "needs weights";
    case O3_UVU: return w == u ? NULL : "needs the multiplicity of in1 in out";
    case O3_UVV: return w == v ? NULL : "needs the multiplicity of in2 in out";
    case O3_UUW:
        if (u != v)
            return "needs equal multiplicities in in1 and in2";
        return p->weighted || w == 1 ? NULL : "without weights needs the multiplicity 1 in out";
    case O3_UUU: return u == v && u == w ? NULL : "needs equal multiplicities";
    case O3_UVUV: return w == u * v ? NULL : "needs the product of the multiplicities in out";
    case O3_UVUV_LESS:
        return u == v && w == pairs(u) ? NULL : "needs n, n and n (n - 1) / 2 as multiplicities";
    default: /* u<vw */
        if (!p->weighted)
            return "needs weights";
        return u == v ? NULL : "needs equal multiplicities in in1 and in2";
    }
}

static void check_number(Arena *arena, double v, const char *what)
{
    if (!(v == 0 || (v >= 0x1p-60 && v <= 0x1p60)))
        err_throw(arena->err, ST_ARG, "%s of %g: 0, or from 1e-18 to 1e18", what, v);
}

static void check_path(Arena *arena, const O3Problem *t, int k)
{
    const O3Path *p = &t->path[k];
    const O3Slot *x, *y, *z;
    const char *why;

    if (p->in1 < 0 || p->in1 >= t->in1.n || p->in2 < 0 || p->in2 >= t->in2.n || p->out < 0 ||
        p->out >= t->out.n)
        err_throw(arena->err, ST_ARG,
                  "path %d: slots %d, %d, %d of irreps with %d, %d and %d slots (from 0)", k,
                  p->in1, p->in2, p->out, t->in1.n, t->in2.n, t->out.n);
    if ((unsigned)p->mode >= O3_MODES)
        err_throw(arena->err, ST_ARG, "path %d: there is no mode %d", k, (int)p->mode);
    x = &t->in1.at[p->in1];
    y = &t->in2.at[p->in2];
    z = &t->out.at[p->out];
    if (!o3_allows(x->ir, y->ir, z->ir))
        err_throw(arena->err, ST_ARG, "path %d: %d%c is not in the product of %d%c and %d%c", k,
                  z->ir.l, z->ir.p > 0 ? 'e' : 'o', x->ir.l, x->ir.p > 0 ? 'e' : 'o', y->ir.l,
                  y->ir.p > 0 ? 'e' : 'o');
    why = misfit(p, x->mul, y->mul, z->mul);
    if (why != NULL)
        err_throw(arena->err, ST_ARG, "path %d: %s %s; it has %lld, %lld and %lld", k,
                  o3_mode[p->mode], why, (long long)x->mul, (long long)y->mul, (long long)z->mul);
    check_number(arena, p->weight, "a path weight");
}

static void check_vars(Arena *arena, const double *var, int n)
{
    for (int i = 0; var != NULL && i < n; i++)
        check_number(arena, var[i], "a variance");
}

void o3_check(Arena *arena, const O3Problem *t)
{
    if (t->npath > O3_MAX_PATHS)
        err_throw(arena->err, ST_LIMIT, "a tensor product of more than %d paths", O3_MAX_PATHS);
    if (t->square && !o3_irreps_equal(t->in1, t->in2))
        err_throw(arena->err, ST_ARG, "a square has one input, so in1 and in2 are the same");
    check_vars(arena, t->var1, t->in1.n);
    check_vars(arena, t->var2, t->in2.n);
    check_vars(arena, t->var_out, t->out.n);
    for (int k = 0; k < t->npath; k++) {
        check_path(arena, t, k);
        check_number(arena, o3_path_scale(t, k).den, "a path normalisation");
    }
}

/* How many products are summed in an element of the output. */
static double elements(const O3Path *p, double u, double v)
{
    switch (p->mode) {
    case O3_UVW: return u * v;
    case O3_UVU: return v;
    case O3_UVV: return u;
    case O3_UUW: return u;
    case O3_UVW_LESS: return u * (v - 1) / 2;
    default: return 1;
    }
}

/* The variance of that sum, if weights have the variance 1. */
static double variance(const O3Problem *t, const O3Path *p)
{
    double n = elements(p, (double)t->in1.at[p->in1].mul, (double)t->in2.at[p->in2].mul);

    n *= t->var1 != NULL ? t->var1[p->in1] : 1;
    return n * (t->var2 != NULL ? t->var2[p->in2] : 1);
}

static double path_norm(const O3Problem *t, const O3Path *p)
{
    double x = 0;

    if (t->path_norm == O3_PLAIN)
        return 1;
    for (int k = 0; k < t->npath; k++)
        if (t->path[k].out == p->out)
            x += variance(t, t->path_norm == O3_PATH ? p : &t->path[k]);
    return x > 0 ? x : 1;
}

O3Scale o3_path_scale(const O3Problem *t, int k)
{
    const O3Path *p = &t->path[k];
    O3Scale s = o3_unscaled;

    if (t->norm == O3_COMPONENT)
        s.num[0] = o3_ir_dim(t->out.at[p->out].ir);
    if (t->norm == O3_NORM)
        s.num[0] = o3_ir_dim(t->in1.at[p->in1].ir) * o3_ir_dim(t->in2.at[p->in2].ir);
    s.num[1] = p->weight;
    s.num[2] = t->var_out != NULL ? t->var_out[p->out] : 1;
    s.den = path_norm(t, p);
    return s;
}

void o3_weight_shape(const O3Problem *t, int k, int64_t shape[3])
{
    const O3Path *p = &t->path[k];
    int64_t u = t->in1.at[p->in1].mul, v = t->in2.at[p->in2].mul, w = t->out.at[p->out].mul;
    bool less = p->mode == O3_UVUV_LESS || p->mode == O3_UVW_LESS;
    bool has_v = p->mode == O3_UVW || p->mode == O3_UVU || p->mode == O3_UVV || p->mode == O3_UVUV;
    bool has_w = p->mode == O3_UVW || p->mode == O3_UUW || p->mode == O3_UVW_LESS;

    shape[0] = less ? pairs(u) : u;
    shape[1] = has_v ? v : 1;
    shape[2] = has_w ? w : 1;
}

int64_t o3_weights(const O3Problem *t)
{
    int64_t n = 0, s[3];

    for (int k = 0; k < t->npath; k++) {
        o3_weight_shape(t, k, s);
        n += t->path[k].weighted ? s[0] * s[1] * s[2] : 0;
    }
    return n;
}
