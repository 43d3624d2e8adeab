/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/interp: a matrix in every format of the catalogue against plain loops over the dense matrix.
 * Values are small integers, so every order of a sum gives the same bits; padding holds NaN. */
#include "unit/interp_bed.h"

#include <math.h>

enum { MOST = 8, F = 3 };

typedef struct Mat { /* dense, with what is stored marked */
    int m, n;
    bool has[MOST][MOST];
    double v[MOST][MOST];
} Mat;

/* Positions of one format as they are collected. */
typedef struct List {
    int64_t i[4 * MOST * MOST];
    double v[4 * MOST * MOST];
    int n;
} List;

static int small(uint64_t *seed)
{
    return (int)(test_random(seed) % 9) - 4;
}

static void add(List *l, int64_t i, double v)
{
    l->v[l->n] = v;
    l->i[l->n++] = i;
}

static void bind_ints(Bed *b, const char *name, const List *l)
{
    if (l->n % 2 == 0) { /* either width will do */
        int32_t narrow[4 * MOST * MOST];

        for (int k = 0; k < l->n; k++)
            narrow[k] = (int32_t)l->i[k];
        bed_bind(b, name, T_i32, l->n, narrow);
    } else {
        bed_bind(b, name, T_i64, l->n, l->i);
    }
}

static void bind_values(Bed *b, const char *name, const List *l)
{
    bed_bind(b, name, T_f64, l->n, l->v);
}

/* Case 0 is empty, 1 full, 2 has one full row, 3 one full column, the rest are random. */
static Mat random_mat(uint64_t *seed, int m, int n, int kind)
{
    Mat a = { .m = m, .n = n };

    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            a.has[i][j] = kind == 1 || (kind == 2 && i == m / 2) || (kind == 3 && j == 0) ||
                          (kind > 3 && test_random(seed) % (uint64_t)kind == 0);
            a.v[i][j] = a.has[i][j] ? small(seed) : 0;
        }
    return a;
}

static void random_vector(uint64_t *seed, double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = small(seed);
}

/* y = a x for k columns, row major. */
static void dense_product(const Mat *a, const double *x, double *y, int k)
{
    for (int i = 0; i < a->m; i++)
        for (int c = 0; c < k; c++) {
            y[i * k + c] = 0;
            for (int j = 0; j < a->n; j++)
                y[i * k + c] += a->v[i][j] * x[j * k + c];
        }
}

/* Binds X, runs, and compares Y with the dense product. */
static void check_product(Bed *b, uint64_t *seed, const Mat *a, int k)
{
    double x[MOST * F], y[MOST * F];

    random_vector(seed, x, a->n * k);
    dense_product(a, x, y, k);
    bed_bind(b, "X", T_f64, a->n * k, x);
    bed_run(b);
    bed_want(b, "Y", a->m * k, y);
    bed_close(b);
}

static void bind_csr(Bed *b, const char *start, const char *coord, const char *val, const Mat *a)
{
    List s = { 0 }, c = { 0 };

    add(&s, 0, 0);
    for (int i = 0; i < a->m; i++) {
        for (int j = 0; j < a->n; j++)
            if (a->has[i][j])
                add(&c, j, a->v[i][j]);
        add(&s, c.n, 0);
    }
    bind_ints(b, start, &s);
    bind_ints(b, coord, &c);
    bind_values(b, val, &c);
}

static void open_mn(Bed *b, const char *text, const Mat *a)
{
    bed_open(b, text);
    bed_size(b, "m", a->m);
    bed_size(b, "n", a->n);
}

static void csr(uint64_t *seed, const Mat *a)
{
    Bed b;

    open_mn(&b,
            "program p(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n"
            "f64 A[I, J], X[n, K], Y[I, K]\nc: Y[i, k] += A[i, j] * X[j, k]\n",
            a);
    bed_size(&b, "f", F);
    bind_csr(&b, "J.start", "J.coord", "A", a);
    check_product(&b, seed, a, F);
    open_mn(&b,
            "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
            "f64 A[E], X[n, K], Y[I, K]\nc: Y[i, k] += A[e] * X[j(e), k]\n",
            a);
    bed_size(&b, "f", F);
    bind_csr(&b, "E.start", "E.j", "A", a);
    check_product(&b, seed, a, F);
}

static void coo(uint64_t *seed, const Mat *a)
{
    Bed b;
    List i = { 0 }, j = { 0 };

    for (int c = a->n - 1; c >= 0; c--) /* by column, backwards, each entry twice */
        for (int r = 0; r < a->m; r++)
            for (int half = 0; half < 2 && a->has[r][c]; half++) {
                add(&i, r, a->v[r][c] / 2);
                add(&j, c, 0);
            }
    open_mn(&b,
            "program p(nnz, m, n)\naxis E = nnz : i < m, j < n\nf64 A[E], X[n], Y[m]\n"
            "y: Y[i(e)] += A[e] * X[j(e)]\n",
            a);
    bed_size(&b, "nnz", i.n);
    bind_ints(&b, "E.i", &i);
    bind_ints(&b, "E.j", &j);
    bind_values(&b, "A", &i);
    check_product(&b, seed, a, 1);
    open_mn(&b,
            "program p(nnz, m, n)\naxis I = nnz : load < m\naxis J(I) = one : load < n\n"
            "f64 A[J], X[n], Y[m]\ny: Y[i] += A[j] * X[j]\n",
            a);
    bed_size(&b, "nnz", i.n);
    bind_ints(&b, "I.coord", &i);
    bind_ints(&b, "J.coord", &j);
    bind_values(&b, "A", &i);
    check_product(&b, seed, a, 1);
}

static void dcsr(uint64_t *seed, const Mat *a)
{
    Bed b;
    List rows = { 0 }, s = { 0 }, c = { 0 };

    add(&s, 0, 0);
    for (int i = 0; i < a->m; i++) {
        int before = c.n;

        for (int j = 0; j < a->n; j++)
            if (a->has[i][j])
                add(&c, j, a->v[i][j]);
        if (c.n > before) {
            add(&rows, i, 0);
            add(&s, c.n, 0);
        }
    }
    open_mn(&b,
            "program p(r, m, n)\naxis I = r : load < m sorted unique\n"
            "axis J = compressed(I, n)\nf64 A[I, J], X[n], Y[m]\n"
            "y: Y[i] += A[i, j] * X[j]\n",
            a);
    bed_size(&b, "r", rows.n);
    bind_ints(&b, "I.coord", &rows);
    bind_ints(&b, "J.start", &s);
    bind_ints(&b, "J.coord", &c);
    bind_values(&b, "A", &c);
    check_product(&b, seed, a, 1);
}

static void csc(uint64_t *seed, const Mat *a)
{
    Bed b;
    List s = { 0 }, r = { 0 };

    add(&s, 0, 0);
    for (int j = 0; j < a->n; j++) {
        for (int i = 0; i < a->m; i++)
            if (a->has[i][j])
                add(&r, i, a->v[i][j]);
        add(&s, r.n, 0);
    }
    open_mn(&b,
            "program p(m, n, f)\naxis J = n, E(J) = seg : i < m, K = f\n"
            "f64 A[E], X[J, K], Y[m, K]\nc: Y[i(e), k] += A[e] * X[j, k]\n",
            a);
    bed_size(&b, "f", F);
    bind_ints(&b, "E.start", &s);
    bind_ints(&b, "E.i", &r);
    bind_values(&b, "A", &r);
    check_product(&b, seed, a, F);
}

static void ell(uint64_t *seed, const Mat *a)
{
    Bed b;
    List c = { 0 };
    int64_t outside[] = { -1, a->n, INT64_MIN, INT64_MAX, 1000 };

    for (int i = 0; i < a->m; i++)
        for (int j = 0; j < a->n; j++) /* padding stands between the entries */
            add(&c, a->has[i][j] ? j : outside[(i + j) % 5], a->has[i][j] ? a->v[i][j] : NAN);
    open_mn(&b,
            "program p(m, n, w)\naxis I = m, L = ell(I, w, n)\nf64 A[I, L], X[n], Y[I]\n"
            "y: Y[i] += A[i, l] * X[l]\n",
            a);
    bed_size(&b, "w", a->n);
    bed_bind(&b, "L.coord", T_i64, c.n, c.i);
    bind_values(&b, "A", &c);
    check_product(&b, seed, a, 1);
}

static void band(uint64_t *seed, Mat a)
{
    Bed b;
    List v = { 0 };

    for (int i = 0; i < a.m; i++) {
        for (int d = 0; d < 5; d++) {
            int j = i + d - 2;

            add(&v, 0, j < 0 || j >= a.n ? NAN : a.v[i][j]);
        }
        for (int j = 0; j < a.n; j++)
            if (j < i - 2 || j > i + 2)
                a.v[i][j] = 0;
    }
    open_mn(&b,
            "program p(m, n)\naxis I = m, B(I) = 5 : j = i + b - 2 < n padded\n"
            "f64 A[B], X[n], Y[I]\ny: Y[i] += A[b] * X[j(b)]\n",
            &a);
    bind_values(&b, "A", &v);
    check_product(&b, seed, &a, 1);
}

static void dia(uint64_t *seed, const Mat *a)
{
    Bed b;
    List off = { 0 }, v = { 0 };

    for (int d = -a->m; d <= a->n; d++) { /* all diagonals, two of them outside */
        add(&off, d, 0);
        for (int i = 0; i < a->m; i++)
            add(&v, 0, i + d < 0 || i + d >= a->n ? NAN : a->v[i][i + d]);
    }
    open_mn(&b,
            "program p(nd, m, n)\n"
            "axis D = nd : off, R(D) = m : i = r < m, j = r + off(d) < n padded\n"
            "f64 A[R], X[n], Y[m]\ny: Y[i(r)] += A[r] * X[j(r)]\n",
            a);
    bed_size(&b, "nd", off.n);
    bind_ints(&b, "D.off", &off);
    bind_values(&b, "A", &v);
    check_product(&b, seed, a, 1);
}

/* Keeps two entries in each group of four columns. */
static void two_of_four(uint64_t *seed, Mat a)
{
    Bed b;
    List o = { 0 };

    a.n = 8;
    for (int i = 0; i < a.m; i++)
        for (int g = 0; g < 2; g++) {
            int first = (int)(test_random(seed) % 3), second = first + 1;

            for (int j = 0; j < 4; j++)
                a.v[i][4 * g + j] = j == first || j == second ? small(seed) : 0;
            add(&o, first, a.v[i][4 * g + first]);
            add(&o, second, a.v[i][4 * g + second]);
        }
    bed_open(&b, "program p(m, ng, f)\n"
                 "axis I = m, G(I) = ng, L(G) = 2 : o < 4, j = 4*g + o < 4*ng unique, K = f\n"
                 "f64 A[L], X[4*ng, K], Y[I, K]\nc: Y[i, k] += A[l] * X[j(l), k]\n");
    bed_size(&b, "m", a.m);
    bed_size(&b, "ng", 2);
    bed_size(&b, "f", F);
    bind_ints(&b, "L.o", &o);
    bind_values(&b, "A", &o);
    check_product(&b, seed, &a, F);
}

static bool block_has(const Mat *a, int ib, int jb)
{
    return a->has[2 * ib][2 * jb] || a->has[2 * ib][2 * jb + 1] || a->has[2 * ib + 1][2 * jb] ||
           a->has[2 * ib + 1][2 * jb + 1];
}

static void bind_bsr(Bed *b, const Mat *a)
{
    List s = { 0 }, c = { 0 }, v = { 0 };

    add(&s, 0, 0);
    for (int ib = 0; ib < a->m / 2; ib++) {
        for (int jb = 0; jb < a->n / 2; jb++) {
            if (!block_has(a, ib, jb))
                continue;
            add(&c, jb, 0);
            for (int e = 0; e < 4; e++)
                add(&v, 0, a->v[2 * ib + e / 2][2 * jb + e % 2]);
        }
        add(&s, c.n, 0);
    }
    bed_size(b, "mb", a->m / 2);
    bed_size(b, "nb", a->n / 2);
    bind_ints(b, "JB.start", &s);
    bind_ints(b, "JB.coord", &c);
    bind_values(b, "A", &v);
}

static void bsr(uint64_t *seed, const Mat *whole)
{
    Bed b;
    Mat a = *whole;

    a.m = a.m / 2 * 2;
    a.n = a.n / 2 * 2;
    bed_open(&b, "program p(mb, nb, f)\n"
                 "axis IB = mb, JB(IB) = seg : load < nb sorted unique, BI = 2, BJ = 2, K = f\n"
                 "f64 A[JB, BI, BJ], X[nb, BJ, K], Y[IB, BI, K]\n"
                 "y: Y[ib, bi, k] += A[jb, bi, bj] * X[jb, bj, k]\n");
    bed_size(&b, "f", F);
    bind_bsr(&b, &a);
    check_product(&b, seed, &a, F);
    bed_open(&b, "program p(mb, nb)\n"
                 "axis IB = mb, JB(IB) = seg : load < nb sorted unique, BI = 2, BJ = 2\n"
                 "axis I = 2*mb : ib = i / 2 < mb, bi = i % 2 < 2\n"
                 "f64 A[IB, JB, BI, BJ], X[2*nb], Y[I]\n"
                 "y: for i, jb in JB(ib(i)), bj: Y[i] += A[ib(i), jb, bi(i), bj] * X[2*jb + bj]\n");
    bind_bsr(&b, &a);
    check_product(&b, seed, &a, 1);
}

/* Strips of two rows; the columns that a strip has, condensed into tiles of two by three. */
static void sr_bcrs(uint64_t *seed, const Mat *whole)
{
    Bed b;
    Mat a = *whole;
    List s = { 0 }, c = { 0 }, v = { 0 };

    a.m = a.m / 2 * 2;
    add(&s, 0, 0);
    for (int st = 0; st < a.m / 2; st++) {
        int col[MOST + 3], n = 0;

        for (int j = 0; j < a.n; j++)
            if (a.has[2 * st][j] || a.has[2 * st + 1][j])
                col[n++] = j;
        while (n % 3 != 0)
            col[n++] = a.n;
        for (int g = 0; g < n / 3; g++) {
            for (int t = 0; t < 3; t++)
                add(&c, col[3 * g + t], 0);
            for (int e = 0; e < 6; e++) {
                int j = col[3 * g + e % 3];

                add(&v, 0, j == a.n ? NAN : a.v[2 * st + e / 3][j]);
            }
        }
        add(&s, c.n / 3, 0);
    }
    bed_open(&b, "program p(ns, n, f)\n"
                 "axis S = ns, G(S) = seg, R = 2, C(G) = 3 : j < n padded, K = f\n"
                 "f64 A[G, R, C], X[n, K], Y[S, R, K]\n"
                 "y: Y[s, r, k] += A[g, r, c] * X[j(c), k]\n");
    bed_size(&b, "ns", a.m / 2);
    bed_size(&b, "n", a.n);
    bed_size(&b, "f", F);
    bind_ints(&b, "G.start", &s);
    bind_ints(&b, "C.j", &c);
    bind_values(&b, "A", &v);
    check_product(&b, seed, &a, F);
}

/* Slices of two rows, rows sorted by length, each slice as wide as its longer row. */
static void sell(uint64_t *seed, const Mat *whole)
{
    Bed b;
    Mat a = *whole;
    List s = { 0 }, c = { 0 }, row = { 0 };
    int len[MOST] = { 0 };

    a.m = a.m / 2 * 2;
    for (int i = 0; i < a.m; i++)
        for (int j = 0; j < a.n; j++)
            len[i] += a.has[i][j];
    for (int want = a.n; want >= 0; want--)
        for (int i = 0; i < a.m; i++)
            if (len[i] == want)
                add(&row, i, 0);
    add(&s, 0, 0);
    for (int sl = 0; sl < a.m / 2; sl++) {
        for (int w = 0; w < len[row.i[2 * sl]]; w++)
            for (int lane = 0; lane < 2; lane++) {
                int64_t i = row.i[2 * sl + lane];
                int j = 0, before = 0;

                while (j < a.n && !(a.has[i][j] && before++ == w))
                    j++;
                add(&c, j < a.n ? j : -1, j < a.n ? a.v[i][j] : NAN);
            }
        add(&s, c.n / 2, 0);
    }
    open_mn(&b,
            "program p(ns, m, n)\naxis S = ns, W(S) = seg, L(W) = 2 : j < n padded\n"
            "i64 row[S, 2]\nf64 A[L], X[n], Y[m]\n"
            "y: Y[row[s, loc(l)]] += A[l] * X[j(l)]\n",
            &a);
    bed_size(&b, "ns", a.m / 2);
    bind_ints(&b, "W.start", &s);
    bind_ints(&b, "L.j", &c);
    bed_bind(&b, "row", T_i64, row.n, row.i);
    bind_values(&b, "A", &c);
    check_product(&b, seed, &a, 1);
}

/* hyb: up to two entries of a row in one bucket, more in buckets of four; values by position. */
static void hyb(uint64_t *seed, const Mat *a)
{
    Bed b;
    List row[2] = { 0 }, col[2] = { 0 }, pos[2] = { 0 };
    int p = 0;

    for (int i = 0; i < a->m; i++) {
        int j = 0, left = 0;

        for (int c = 0; c < a->n; c++)
            left += a->has[i][c];
        while (left > 0) {
            int t = left > 2, width = t ? 4 : 2;

            add(&row[t], i, 0);
            for (int k = 0; k < width; k++) {
                while (left > 0 && !a->has[i][j])
                    j++;
                add(&col[t], left > 0 ? j++ : a->n, 0);
                add(&pos[t], left > 0 ? p++ : -1, 0);
                left -= left > 0;
            }
        }
    }
    open_mn(&b,
            "program p(m, n, n1, n2)\naxis I = m, J = compressed(I, n)\n"
            "axis R1 = n1 : i < m, L1(R1) = 2 : j < n padded\n"
            "axis R2 = n2 : i < m, L2(R2) = 4 : j < n padded\n"
            "f64 A[J], X[n], Y[m]\ntemp f64 A1[L1], A2[L2]\ni64 P1[L1], P2[L2]\n"
            "a1: A1[l1] = A[@P1[l1]]\na2: A2[l2] = A[@P2[l2]]\n"
            "c1: Y[i(r1)] += A1[l1] * X[j(l1)]\nc2: Y[i(r2)] += A2[l2] * X[j(l2)]\n",
            a);
    bind_csr(&b, "J.start", "J.coord", "A", a);
    for (int t = 0; t < 2; t++) {
        bed_size(&b, t ? "n2" : "n1", row[t].n);
        bind_ints(&b, t ? "R2.i" : "R1.i", &row[t]);
        bind_ints(&b, t ? "L2.j" : "L1.j", &col[t]);
        bed_bind(&b, t ? "P2" : "P1", T_i64, pos[t].n, pos[t].i);
    }
    check_product(&b, seed, a, 1);
}

/* Every format on every kind of matrix, small and degenerate ones included. */
TEST(every_format_gives_the_dense_product)
{
    static const int shape[][2] = { { 6, 8 }, { 8, 6 }, { 4, 4 }, { 2, 2 }, { 1, 1 }, { 5, 7 },
                                    { 0, 4 }, { 4, 0 }, { 0, 0 }, { 1, 8 }, { 8, 1 } };
    uint64_t seed = 1;

    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int kind = 0; kind < 8; kind++) {
            Mat a = random_mat(&seed, shape[s][0], shape[s][1], kind);

            csr(&seed, &a);
            coo(&seed, &a);
            dcsr(&seed, &a);
            csc(&seed, &a);
            ell(&seed, &a);
            band(&seed, a);
            dia(&seed, &a);
            two_of_four(&seed, a);
            bsr(&seed, &a);
            sr_bcrs(&seed, &a);
            sell(&seed, &a);
            hyb(&seed, &a);
        }
}

TEST(sddmm_scales_the_stored_entries)
{
    uint64_t seed = 2;

    for (int kind = 0; kind < 8; kind++) {
        Mat a = random_mat(&seed, 5, 7, kind);
        double p[5 * F], q[7 * F], want[5 * 7];
        int n = 0;
        Bed b;

        random_vector(&seed, p, 5 * F);
        random_vector(&seed, q, 7 * F);
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 7; j++) {
                double dot = 0;

                for (int k = 0; k < F; k++)
                    dot += p[i * F + k] * q[j * F + k];
                if (a.has[i][j])
                    want[n++] = 0 + a.v[i][j] * dot;
            }
        open_mn(&b,
                "program p(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = f\n"
                "f64 S[I, J], P[I, K], Q[n, K], Y[I, J]\n"
                "y: Y[i, j] += S[i, j] * P[i, k] * Q[j, k]\n",
                &a);
        bed_size(&b, "f", F);
        bind_csr(&b, "J.start", "J.coord", "S", &a);
        bed_bind(&b, "P", T_f64, 5 * F, p);
        bed_bind(&b, "Q", T_f64, 7 * F, q);
        bed_run(&b);
        bed_want(&b, "Y", n, want);
        bed_close(&b);
    }
}

/* The transpose as its own axis, linked by positions. */
TEST(a_scatter_can_be_rerooted_by_positions)
{
    uint64_t seed = 3;

    for (int kind = 0; kind < 8; kind++) {
        Mat a = random_mat(&seed, 5, 7, kind);
        List s = { 0 }, r = { 0 }, at = { 0 };
        double g[5 * F], want[7 * F];
        Bed b;

        random_vector(&seed, g, 5 * F);
        add(&s, 0, 0);
        for (int j = 0; j < 7; j++) {
            int p = 0;

            for (int i = 0; i < 5; i++)
                for (int c = 0; c < 7; c++) {
                    if (a.has[i][c] && c == j) {
                        add(&r, i, 0);
                        add(&at, p, 0);
                    }
                    p += a.has[i][c];
                }
            add(&s, r.n, 0);
            for (int k = 0; k < F; k++) {
                want[j * F + k] = 0;
                for (int i = 0; i < 5; i++)
                    want[j * F + k] += g[i * F + k] * a.v[i][j];
            }
        }
        open_mn(&b,
                "program p(m, n, nnz, f)\naxis I = m, J = compressed(I, n), K = f\n"
                "axis C = n, T(C) = seg : i < m, p < nnz\n"
                "f64 A[I, J], G[I, K], D[C, K], D2[n, K]\n"
                "d: D[c, k] += G[i(t), k] * A[@p(t)]\n"
                "e: D2[j, k] += G[i, k] * A[j]\n",
                &a);
        bed_size(&b, "f", F);
        bed_size(&b, "nnz", r.n);
        bind_csr(&b, "J.start", "J.coord", "A", &a);
        bind_ints(&b, "T.start", &s);
        bind_ints(&b, "T.i", &r);
        bind_ints(&b, "T.p", &at);
        bed_bind(&b, "G", T_f64, 5 * F, g);
        bed_run(&b);
        bed_want(&b, "D", 7 * F, want);
        bed_want(&b, "D2", 7 * F, want);
        bed_close(&b);
    }
}
