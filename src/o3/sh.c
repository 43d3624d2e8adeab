/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The program of real spherical harmonics: polynomials in x, y, z, so that values and derivatives
 * are smooth everywhere.  With y the polar axis, component m of degree l is P(l, |m|) times
 *     c(m) = Q(m) Re (z + i x)^m   or, for m < 0,   s(m) = Q(|m|) Im (z + i x)^|m|,
 * where P(m, m) = 1 and
 *     P(l, m) = A (y P(l - 1, m) - B r2 P(l - 2, m)),
 *     A^2 = (4 l^2 - 1) / (l^2 - m^2),  B^2 = ((l - 1)^2 - m^2) / (4 (l - 1)^2 - 1),
 *     Q(m) / Q(m - 1) = sqrt((2 m + 1) / (2 m)), but sqrt(3) for m = 1.
 * All factors are roots of rationals, rounded once. */
#include "o3/o3_int.h"

#include <math.h>
#include <stdio.h>

typedef struct Writer {
    Text *out;
    const O3Sh *t;
    int lmax;
} Writer;

static void put_number(Text *out, double v)
{
    char number[NUM_TEXT];

    num_print(number, v);
    text_str(out, number);
}

static void put_vector(Writer *w)
{
    static const char *const name[] = { "x", "y", "z" };
    const char *from = w->t->normalize ? "v" : "";

    for (int i = 0; i < 3; i++)
        text_f(w->out, "    let %s%s = X[b, %d]\n", from, name[i], i);
    if (!w->t->normalize)
        return;
    /* the zero vector stays zero, and its derivative finite */
    text_str(w->out, "    let rv = 1.0 / sqrt(max(vx * vx + vy * vy + vz * vz, 1e-24))\n");
    for (int i = 0; i < 3; i++)
        text_f(w->out, "    let %s = v%s * rv\n", name[i], name[i]);
}

/* c(m) and s(m); with m = 0 they are 1 and 0. */
static void put_round(Writer *w, int m)
{
    double k = m == 1 ? o3_root(3, 1) : o3_root(2 * m + 1, 2 * m);

    text_f(w->out, "    let c%d = ", m);
    put_number(w->out, k);
    if (m == 1)
        text_str(w->out, " * z\n");
    else
        text_f(w->out, " * (z * c%d - x * s%d)\n", m - 1, m - 1);
    text_f(w->out, "    let s%d = ", m);
    put_number(w->out, k);
    if (m == 1)
        text_str(w->out, " * x\n");
    else
        text_f(w->out, " * (x * c%d + z * s%d)\n", m - 1, m - 1);
}

/* P(l, m) for l > m. */
static void put_along(Writer *w, int l, int m)
{
    text_f(w->out, "    let p%d_%d = ", l, m);
    put_number(w->out, o3_root(4 * l * l - 1, l * l - m * m));
    if (l == m + 1) {
        text_str(w->out, " * y\n");
        return;
    }
    text_f(w->out, " * (y * p%d_%d - ", l - 1, m);
    put_number(w->out, o3_root((l - 1) * (l - 1) - m * m, 4 * (l - 1) * (l - 1) - 1));
    if (l == m + 2)
        text_str(w->out, " * r2)\n");
    else
        text_f(w->out, " * r2 * p%d_%d)\n", l - 2, m);
}

static void put_value(Writer *w, int at, int l, int m)
{
    double scale = w->t->norm == O3_SH_NORM       ? o3_root(1, 2 * l + 1)
                   : w->t->norm == O3_SH_INTEGRAL ? 0.28209479177387814 /* 1 / sqrt(4 pi) */
                                                  : 1;
    int n = m < 0 ? -m : m;

    text_f(w->out, "    y%d: Y[b, %d] = ", at, at);
    if (scale != 1 || l == 0) {
        put_number(w->out, scale);
        if (l > 0)
            text_str(w->out, " * ");
    }
    if (n > 0)
        text_f(w->out, "%c%d", m > 0 ? 'c' : 's', n);
    if (l > n)
        text_f(w->out, "%sp%d_%d", n > 0 ? " * " : "", l, n);
    text_char(w->out, '\n');
}

static void find_lmax(Writer *w)
{
    if (w->t->n <= 0)
        err_throw(w->out->arena->err, ST_ARG, "spherical harmonics of no degree");
    for (int i = 0; i < w->t->n; i++) {
        int l = w->t->l[i];

        if (l < 0 || l > O3_MAX_L)
            err_throw(w->out->arena->err, ST_ARG,
                      "no spherical harmonics of degree %d: degrees go from 0 to %d", l, O3_MAX_L);
        w->lmax = l > w->lmax ? l : w->lmax;
    }
}

void o3_write_sh(Text *out, const O3Sh *t)
{
    Writer w = { .out = out, .t = t };
    int n = 0;

    find_lmax(&w);
    for (int i = 0; i < t->n; i++)
        n += 2 * t->l[i] + 1;
    text_f(out, "program %s(n)\naxis B = n\n%s X[B, 3], Y[B, %d]\nfor b:\n",
           t->name != NULL ? t->name : "sh", o3_type_name(t->type), n);
    put_vector(&w);
    if (w.lmax > 1)
        text_str(out, "    let r2 = x * x + y * y + z * z\n");
    for (int m = 1; m <= w.lmax; m++)
        put_round(&w, m);
    for (int m = 0; m < w.lmax; m++)
        for (int l = m + 1; l <= w.lmax; l++)
            put_along(&w, l, m);
    n = 0;
    for (int i = 0; i < t->n; i++)
        for (int m = -t->l[i]; m <= t->l[i]; m++)
            put_value(&w, n++, t->l[i], m);
}
