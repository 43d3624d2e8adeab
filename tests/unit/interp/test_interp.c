/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/interp: the programs of the catalogue that are not one matrix in one format, against plain
 * loops. */
#include "unit/interp_bed.h"

#include <math.h>

static double small(uint64_t *seed)
{
    return (double)(test_random(seed) % 9) - 4;
}

/* Binds n small integers, and leaves them in v. */
static void random_buf(Bed *b, const char *name, uint64_t *seed, int n, double *v)
{
    for (int i = 0; i < n; i++)
        v[i] = small(seed);
    bed_bind(b, name, T_f64, n, v);
}

enum { NA = 3, NB = 4, NC = 5, NR = 2 };

TEST(csf_gives_the_dense_mttkrp)
{
    uint64_t seed = 11;

    for (int round = 0; round < 20; round++) {
        double a[NA][NB][NC] = { 0 }, v[NA * NB * NC], bv[NB * NR], cv[NC * NR],
               want[NA * NR] = { 0 };
        int64_t js[NA + 1] = { 0 }, jc[NA * NB], ks[NA * NB + 1] = { 0 }, kc[NA * NB * NC];
        int nj = 0, nk = 0;
        Bed b;

        for (int i = 0; i < NA; i++) {
            for (int j = 0; j < NB; j++) {
                if (test_random(&seed) % 3 == 0)
                    continue; /* an entry of J may still be empty below */
                for (int k = 0; k < NC; k++)
                    if (test_random(&seed) % 2) {
                        v[nk] = a[i][j][k] = small(&seed);
                        kc[nk++] = k;
                    }
                jc[nj++] = j;
                ks[nj] = nk;
            }
            js[i + 1] = nj;
        }
        bed_open(&b,
                 "program p(na, nb, nc, f)\n"
                 "axis I = dense(na), J = compressed(I, nb), K = compressed(J, nc), R = dense(f)\n"
                 "f64 A[I, J, K], B[nb, R], C[nc, R], Y[I, R]\n"
                 "y: Y[i, r] += A[i, j, k] * B[j, r] * C[k, r]\n");
        bed_size(&b, "na", NA);
        bed_size(&b, "nb", NB);
        bed_size(&b, "nc", NC);
        bed_size(&b, "f", NR);
        bed_bind(&b, "J.start", T_i64, NA + 1, js);
        bed_bind(&b, "J.coord", T_i64, nj, jc);
        bed_bind(&b, "K.start", T_i64, nj + 1, ks);
        bed_bind(&b, "K.coord", T_i64, nk, kc);
        bed_bind(&b, "A", T_f64, nk, v);
        random_buf(&b, "B", &seed, NB * NR, bv);
        random_buf(&b, "C", &seed, NC * NR, cv);
        for (int i = 0; i < NA; i++)
            for (int j = 0; j < NB; j++)
                for (int k = 0; k < NC; k++)
                    for (int r = 0; r < NR; r++)
                        want[i * NR + r] += a[i][j][k] * bv[j * NR + r] * cv[k * NR + r];
        bed_run(&b);
        bed_want(&b, "Y", NA * NR, want);
        bed_close(&b);
    }
}

TEST(segment_max_keeps_its_argument_and_empty_segments_get_the_fill)
{
    Bed b;

    bed_open(&b, "program p(ng, f)\naxis G = ng, E(G) = seg, K = f\n"
                 "f64 X[E, K], D[G, K], DX[E, K], V[G, K], M[G, K] fill 0\ni64 W[G, K]\n"
                 "m: M[g, k] max= X[e, k] at W[g, k] = pos(e)\n"
                 "d: DX[e, k] += D[g, k] if W[g, k] == pos(e)\n"
                 "v: V[g, k] = X[@W[g, k], k] if W[g, k] >= 0\n");
    bed_size(&b, "ng", 4);
    bed_size(&b, "f", 2);
    I32(&b, "E.start", 0, 3, 3, 4, 6);
    F64(&b, "X", 1, 5, 3, -1, 3, 5, -2, -3, 0, 4, 0, 4);
    F64(&b, "D", 1, 2, 3, 4, 5, 6, 7, 8);
    bed_run(&b);
    WANT(&b, "M", 3, 5, 0, 0, -2, -3, 0, 4);
    WANT_INT(&b, "W", 1, 0, -1, -1, 3, 3, 4, 4);
    WANT(&b, "DX", 0, 2, 1, 0, 0, 0, 5, 6, 7, 8, 0, 0);
    WANT(&b, "V", 3, 5, 0, 0, -2, -3, 0, 4);
    bed_close(&b);
}

/* Relations as slices of one stack of matrices. */
TEST(rgms_sums_over_relations)
{
    enum { R = 2, M = 3, N = 4, C = 2, O = 3 };
    uint64_t seed = 12;
    double a[R][M][N] = { 0 }, v[R * M * N], x[N * C], w[R * C * O], want[M * O] = { 0 };
    int64_t start[R * M + 1] = { 0 }, coord[R * M * N];
    int n = 0;
    Bed b;

    for (int q = 0; q < R * M; q++) {
        for (int j = 0; j < N; j++)
            if (test_random(&seed) % 2) {
                v[n] = a[q / M][q % M][j] = small(&seed);
                coord[n++] = j;
            }
        start[q + 1] = n;
    }
    bed_open(&b, "program p(nr, m, n, ci, co)\n"
                 "axis R = nr, I(R) = m, J = compressed(I, n), C = ci, O = co\n"
                 "f64 A[J], X[n, C], W[R, C, O], Y[m, O]\n"
                 "y: Y[i, o] += A[j] * X[j, c] * W[r, c, o]\n");
    bed_size(&b, "nr", R);
    bed_size(&b, "m", M);
    bed_size(&b, "n", N);
    bed_size(&b, "ci", C);
    bed_size(&b, "co", O);
    bed_bind(&b, "J.start", T_i64, R * M + 1, start);
    bed_bind(&b, "J.coord", T_i64, n, coord);
    bed_bind(&b, "A", T_f64, n, v);
    random_buf(&b, "X", &seed, N * C, x);
    random_buf(&b, "W", &seed, R * C * O, w);
    for (int r = 0; r < R; r++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                for (int c = 0; c < C; c++)
                    for (int o = 0; o < O; o++)
                        want[i * O + o] += a[r][i][j] * x[j * C + c] * w[(r * C + c) * O + o];
    bed_run(&b);
    bed_want(&b, "Y", M * O, want);
    bed_close(&b);
}

/* Voxels of a 3 x 3 x 3 grid, some there, some not; the map is made offset by offset. */
TEST(submanifold_convolution_equals_the_loop_over_voxels)
{
    enum { C = 2, O = 2 };
    uint64_t seed = 13;
    int id[3][3][3], nv = 0, n = 0;
    int64_t start[28] = { 0 }, from[27 * 27], to[27 * 27];
    double x[27 * C], w[27 * C * O], want[27 * O] = { 0 };
    Bed b;

    for (int v = 0; v < 27; v++)
        id[v / 9][v / 3 % 3][v % 3] = test_random(&seed) % 2 ? nv++ : -1;
    for (int d = 0; d < 27; d++) {
        for (int v = 0; v < 27; v++) {
            int z = v / 9 + d / 9 - 1, y = v / 3 % 3 + d / 3 % 3 - 1, q = v % 3 + d % 3 - 1;
            bool inside = z >= 0 && z < 3 && y >= 0 && y < 3 && q >= 0 && q < 3;

            if (inside && id[z][y][q] >= 0 && id[v / 9][v / 3 % 3][v % 3] >= 0) {
                from[n] = id[z][y][q];
                to[n++] = id[v / 9][v / 3 % 3][v % 3];
            }
        }
        start[d + 1] = n;
    }
    bed_open(&b, "program p(vin, vout, ci, co)\n"
                 "axis D = 27, E(D) = seg : a < vin, b < vout, C = ci, O = co\n"
                 "f64 X[vin, C], W[D, C, O], Y[vout, O]\n"
                 "y: Y[b(e), o] += X[a(e), c] * W[d, c, o]\n");
    bed_size(&b, "vin", nv);
    bed_size(&b, "vout", nv);
    bed_size(&b, "ci", C);
    bed_size(&b, "co", O);
    bed_bind(&b, "E.start", T_i64, 28, start);
    bed_bind(&b, "E.a", T_i64, n, from);
    bed_bind(&b, "E.b", T_i64, n, to);
    random_buf(&b, "X", &seed, nv * C, x);
    random_buf(&b, "W", &seed, 27 * C * O, w);
    for (int v = 0; v < 27; v++)
        for (int u = 0; u < 27; u++) { /* all pairs of voxels that are neighbours */
            int dz = u / 9 - v / 9 + 1, dy = u / 3 % 3 - v / 3 % 3 + 1, dx = u % 3 - v % 3 + 1;
            int i = id[v / 9][v / 3 % 3][v % 3], j = id[u / 9][u / 3 % 3][u % 3];

            if (i < 0 || j < 0 || dz < 0 || dz > 2 || dy < 0 || dy > 2 || dx < 0 || dx > 2)
                continue;
            for (int c = 0; c < C; c++)
                for (int o = 0; o < O; o++)
                    want[i * O + o] += x[j * C + c] * w[((dz * 9 + dy * 3 + dx) * C + c) * O + o];
        }
    bed_run(&b);
    bed_want(&b, "Y", nv * O, want);
    bed_close(&b);
}

enum { NODES = 4, HEADS = 2, FEAT = 3 };

/* An isolated node, a self loop, a duplicate edge, edges out of order. */
static const int64_t edge_start[NODES + 1] = { 0, 3, 3, 4, 8 },
                                        edge_j[8] = { 2, 0, 2, 2, 3, 1, 0, 0 };

TEST(attention_is_a_softmax_over_each_nodes_edges)
{
    uint64_t seed = 14;
    double l[NODES * HEADS], r[NODES * HEADS], x[NODES * HEADS * FEAT];
    Bed b;

    bed_open(&b, "program p(nodes, heads, f)\n"
                 "axis I = nodes, E(I) = seg : j < nodes, H = heads, K = f\n"
                 "f64 L[nodes, H], R[nodes, H], X[nodes, H, K], O[I, H, K]\n"
                 "temp f64 S[E, H], M[I, H], T[E, H], Z[I, H]\n"
                 "s: S[e, h] = relu(L[i, h] + R[j(e), h]) - 0.2 * relu(-L[i, h] - R[j(e), h])\n"
                 "m: M[i, h] max= S[e, h]\n"
                 "t: T[e, h] = exp(S[e, h] - stop(M[i, h]))\n"
                 "z: Z[i, h] += T[e, h]\n"
                 "o: O[i, h, k] += T[e, h] / Z[i, h] * X[j(e), h, k]\n");
    bed_size(&b, "nodes", NODES);
    bed_size(&b, "heads", HEADS);
    bed_size(&b, "f", FEAT);
    bed_bind(&b, "E.start", T_i64, NODES + 1, edge_start);
    bed_bind(&b, "E.j", T_i64, 8, edge_j);
    random_buf(&b, "L", &seed, NODES * HEADS, l);
    random_buf(&b, "R", &seed, NODES * HEADS, r);
    random_buf(&b, "X", &seed, NODES * HEADS * FEAT, x);
    bed_run(&b);
    for (int i = 0; i < NODES; i++)
        for (int h = 0; h < HEADS; h++) {
            double total = 0, sum[FEAT] = { 0 };

            for (int64_t e = edge_start[i]; e < edge_start[i + 1]; e++) {
                double s = l[i * HEADS + h] + r[edge_j[e] * HEADS + h],
                       t = exp(s > 0 ? s : 0.2 * s);

                total += t;
                for (int k = 0; k < FEAT; k++)
                    sum[k] += t * x[(edge_j[e] * HEADS + h) * FEAT + k];
            }
            for (int k = 0; k < FEAT; k++)
                CHECK_NEAR(bed_f(&b, "O", (i * HEADS + h) * FEAT + k),
                           total > 0 ? sum[k] / total : 0, 1e-14);
        }
    bed_close(&b);
}

enum { M = 4, N = 6 };

typedef struct Csr {
    bool has[M][N];
    double v[M][N], val[M * N];
    int64_t start[M + 1], coord[M * N];
    int n;
} Csr;

static void random_csr(uint64_t *seed, Csr *a, int one_in)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++)
            if (test_random(seed) % (uint64_t)one_in == 0) {
                a->has[i][j] = true;
                a->val[a->n] = a->v[i][j] = small(seed);
                a->coord[a->n++] = j;
            }
        a->start[i + 1] = a->n;
    }
}

static void bind_csr(Bed *b, const Csr *a, const char *start, const char *coord, const char *val)
{
    bed_bind(b, start, T_i64, M + 1, a->start);
    bed_bind(b, coord, T_i64, a->n, a->coord);
    bed_bind(b, val, T_f64, a->n, a->val);
}

#define TWO_CSR                                                         \
    "program p(m, n)\naxis I = m, J = compressed(I, n) sorted unique\n" \
    "axis L = compressed(I, n) unique\n"                                \
    "axis U(I) = built : load < n\nf64 A[I, J] fill 7, B[I, L], C[I, U]\n"

/* C holds op(a, b) at the entries where `there` says so, and U is their structure. */
static void check_two(const char *text, const Csr *x, const Csr *y, bool both)
{
    int n = 0;
    Bed b;

    bed_open(&b, text);
    bed_size(&b, "m", M);
    bed_size(&b, "n", N);
    bind_csr(&b, x, "J.start", "J.coord", "A");
    bind_csr(&b, y, "L.start", "L.coord", "B");
    bed_run(&b);
    CHECK_EQ(bed_i(&b, "U.start", 0), 0);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double u = x->has[i][j] ? x->v[i][j] : 7, v = y->v[i][j];

            if (both ? !(x->has[i][j] && y->has[i][j]) : !(x->has[i][j] || y->has[i][j]))
                continue;
            CHECK_EQ(bed_i(&b, "U.coord", n), j);
            CHECK_SAME(bed_f(&b, "C", n), both ? u * v : u >= v ? u : v);
            n++;
        }
        CHECK_EQ(bed_i(&b, "U.start", i + 1), n);
    }
    CHECK_EQ(bed_array(&b, "C")->n, n);
    bed_close(&b);
}

TEST(intersection_and_union_build_their_structure)
{
    uint64_t seed = 15;

    for (int round = 0; round < 40; round++) {
        Csr x, y;

        random_csr(&seed, &x, 1 + round % 4);
        random_csr(&seed, &y, 1 + round / 4 % 5);
        check_two(TWO_CSR "u: U(i) |= j if stored(B[i, j])\nc: C[i, u] = A[i, u] * B[i, u]\n", &x,
                  &y, true);
        check_two(TWO_CSR "u1: U(i) |= j\nu2: U(i) |= l\nc: C[i, u] = max(A[i, u], B[i, u])\n", &x,
                  &y, false);
    }
}

TEST(spgemm_builds_and_fills_the_product)
{
    enum { K = 6 }; /* the inner size is Csr's N, the rows of the second are its M */
    uint64_t seed = 16;

    for (int round = 0; round < 30; round++) {
        Csr x, y;
        Bed b;
        int n = 0;

        random_csr(&seed, &x, 1 + round % 5);
        random_csr(&seed, &y, 1 + round / 5);
        for (int e = 0; e < x.n; e++)
            x.coord[e] %= M; /* duplicates in a row */
        bed_open(&b, "program p(m, l, n)\n"
                     "axis I = m, E(I) = seg : j < l, J = l, F(J) = seg : k < n\n"
                     "axis U(I) = built : load < n\nf64 A[E], B[F], C[I, U]\n"
                     "sym: for i, e, f in F(j(e)): U(i) |= k(f)\n"
                     "num: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]\n");
        bed_size(&b, "m", M);
        bed_size(&b, "l", M);
        bed_size(&b, "n", N);
        bind_csr(&b, &x, "E.start", "E.j", "A");
        bind_csr(&b, &y, "F.start", "F.k", "B");
        bed_run(&b);
        for (int i = 0; i < M; i++)
            for (int k = 0; k < N; k++) {
                double sum = 0;
                bool there = false;

                for (int64_t e = x.start[i]; e < x.start[i + 1]; e++)
                    if (y.has[x.coord[e]][k]) {
                        there = true;
                        sum += x.val[e] * y.v[x.coord[e]][k];
                    }
                if (!there)
                    continue;
                CHECK_EQ(bed_i(&b, "U.coord", n), k);
                CHECK_SAME(bed_f(&b, "C", n), sum);
                n++;
            }
        CHECK_EQ(bed_i(&b, "U.start", M), n);
        CHECK_EQ(bed_array(&b, "U.coord")->n, n);
        bed_close(&b);
    }
}

/* 4x0e + 2x1o times 0e + 1o: products of scalars and vectors, written down as such.  X, Y and Wt
 * are ir_mul: component first, then channel. */
static void uvu_product(const double *x, const double *y, const double *w, double *z)
{
    const double *v = x + 4, *a = y + 1;

    for (int u = 0; u < 4; u++) {
        z[u] += w[u] * x[u] * y[0];
        for (int m = 0; m < 3; m++)
            z[6 + m * 4 + u] += w[6 + u] * x[u] * a[m];
    }
    for (int u = 0; u < 2; u++) {
        z[4 + u] += w[4 + u] * (v[u] * a[0] + v[2 + u] * a[1] + v[4 + u] * a[2]) / sqrt(3);
        for (int m = 0; m < 3; m++) {
            int p = (m + 1) % 3, q = (m + 2) % 3;

            z[18 + m * 2 + u] += w[10 + u] * v[m * 2 + u] * y[0];
            z[24 + m * 2 + u] += w[12 + u] * (v[p * 2 + u] * a[q] - v[q * 2 + u] * a[p]) / sqrt(2);
        }
    }
}

#define PATHS                                                                                    \
    "axis SX = 2, MX(SX) = {1, 3}, UX(SX) = {4, 2}, SY = 2, MY(SY) = {1, 3}, VY(SY) = {1, 1}\n"  \
    "axis SZ = 5, MZ(SZ) = {1, 1, 3, 3, 3}, UZ(SZ) = {4, 2, 4, 2, 2}\n"                          \
    "axis P = rows sx sy sz { 0 0 0, 1 1 1, 0 1 2, 1 0 3, 1 1 4 }\n"                             \
    "axis U(P) = {4, 2, 4, 2, 2}, V(P) = {1, 1, 1, 1, 1}\n"                                      \
    "axis Q(P) = rows m1 m2 m3 -> c { 0 0 0 -> 1;\n"                                             \
    "  0 0 0 -> 0.5773502691896258, 1 1 0 -> 0.5773502691896258, 2 2 0 -> 0.5773502691896258;\n" \
    "  0 0 0 -> 1, 0 1 1 -> 1, 0 2 2 -> 1;  0 0 0 -> 1, 1 0 1 -> 1, 2 0 2 -> 1;\n"               \
    "  0 1 2 -> 0.7071067811865475, 0 2 1 -> -0.7071067811865475,\n"                             \
    "  1 2 0 -> 0.7071067811865475, 1 0 2 -> -0.7071067811865475,\n"                             \
    "  2 0 1 -> 0.7071067811865475, 2 1 0 -> -0.7071067811865475 }\n"

static void want_near(Bed *b, const char *name, int n, const double *want)
{
    CHECK_EQ(bed_array(b, name)->n, n);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(bed_f(b, name, i), want[i], 1e-13);
}

TEST(the_tensor_product_agrees_with_vector_algebra)
{
    enum { BATCH = 3 };
    uint64_t seed = 17;
    double x[BATCH * 10], y[BATCH * 4], w[BATCH * 14], z[BATCH * 30] = { 0 };
    Bed b;

    bed_open(&b, "program tp(n)\naxis B = n\n" PATHS
                 "f64 X[B, SX, MX, UX], Y[B, SY, MY, VY], Wt[B, P, U, V], Z[B, SZ, MZ, UZ]\n"
                 "z: Z[b, sz(p), m3(q), u] += c[q] * X[b, sx(p), m1(q), u] * Y[b, sy(p), m2(q), v] "
                 "* Wt[b, p, u, v]\n");
    bed_size(&b, "n", BATCH);
    random_buf(&b, "X", &seed, BATCH * 10, x);
    random_buf(&b, "Y", &seed, BATCH * 4, y);
    random_buf(&b, "Wt", &seed, BATCH * 14, w);
    for (int i = 0; i < BATCH; i++)
        uvu_product(x + i * 10, y + i * 4, w + i * 14, z + i * 30);
    bed_run(&b);
    want_near(&b, "Z", BATCH * 30, z);
    bed_close(&b);
}

/* Exchanges component and channel of one irrep of n channels. */
static void transpose(const double *from, double *to, int dim, int n)
{
    for (int m = 0; m < dim; m++)
        for (int u = 0; u < n; u++)
            to[u * dim + m] = from[m * n + u];
}

TEST(mul_ir_is_the_other_order_of_the_last_two_axes)
{
    static const int dim[] = { 1, 1, 3, 3, 3 }, mul[] = { 4, 2, 4, 2, 2 };
    uint64_t seed = 18;
    double x[10], xt[10], y[4], w[14], z[30] = { 0 }, zt[30];
    Bed b;

    bed_open(&b, "program tp(n)\naxis B = n\n" PATHS
                 "f64 X[B, SX, UX, MX], Y[B, SY, VY, MY], Wt[P, U, V], Z[B, SZ, UZ, MZ]\n"
                 "z: Z[b, sz(p), u, m3(q)] += c[q] * X[b, sx(p), u, m1(q)] * Y[b, sy(p), v, m2(q)] "
                 "* Wt[p, u, v]\n");
    bed_size(&b, "n", 1);
    random_buf(&b, "X", &seed, 10, x);
    random_buf(&b, "Y", &seed, 4, y);
    random_buf(&b, "Wt", &seed, 14, w);
    transpose(x, xt, 1, 4);
    transpose(x + 4, xt + 4, 3, 2);
    bed_bind(&b, "X", T_f64, 10, xt);
    uvu_product(x, y, w, z);
    for (int s = 0, at = 0; s < 5; at += dim[s] * mul[s], s++)
        transpose(z + at, zt + at, dim[s], mul[s]);
    bed_run(&b);
    want_near(&b, "Z", 30, zt);
    bed_close(&b);
}

static void conv(const char *text, bool hidden)
{
    uint64_t seed = 19;
    double x[NODES * 10], y[8 * 4], w[8 * 14], h[8 * 3], r[3 * 14], z[NODES * 30] = { 0 };
    Bed b;

    bed_open(&b, text);
    bed_size(&b, "nodes", NODES);
    bed_bind(&b, "E.start", T_i64, NODES + 1, edge_start);
    bed_bind(&b, "E.j", T_i64, 8, edge_j);
    random_buf(&b, "X", &seed, NODES * 10, x);
    random_buf(&b, "Y", &seed, 8 * 4, y);
    if (hidden) {
        random_buf(&b, "H2", &seed, 8 * 3, h);
        random_buf(&b, "R", &seed, 3 * 14, r);
        for (int e = 0; e < 8; e++)
            for (int k = 0; k < 14; k++)
                w[e * 14 + k] =
                    h[e * 3] * r[k] + h[e * 3 + 1] * r[14 + k] + h[e * 3 + 2] * r[28 + k];
    } else {
        random_buf(&b, "Wt", &seed, 8 * 14, w);
    }
    for (int i = 0; i < NODES; i++)
        for (int64_t e = edge_start[i]; e < edge_start[i + 1]; e++)
            uvu_product(x + edge_j[e] * 10, y + e * 4, w + e * 14, z + i * 30);
    bed_run(&b);
    want_near(&b, "Z", NODES * 30, z);
    bed_close(&b);
}

TEST(the_fused_convolution_sums_products_over_edges)
{
    conv("program conv(nodes)\naxis I = nodes, E(I) = seg : j < nodes\n" PATHS
         "f64 X[nodes, SX, MX, UX], Y[E, SY, MY, VY], Wt[E, P, U, V], Z[I, SZ, MZ, UZ]\n"
         "z: Z[i, sz(p), m3(q), u] += c[q] * X[j(e), sx(p), m1(q), u] * Y[e, sy(p), m2(q), v] "
         "* Wt[e, p, u, v]\n",
         false);
    conv("program conv(nodes)\naxis I = nodes, E(I) = seg : j < nodes, H = 3\n" PATHS
         "f64 X[nodes, SX, MX, UX], Y[E, SY, MY, VY], Z[I, SZ, MZ, UZ], H2[E, H], R[H, P, U, V]\n"
         "temp f64 Wt[E, P, U, V]\n"
         "w: Wt[e, p, u, v] += H2[e, h] * R[h, p, u, v]\n"
         "z: Z[i, sz(p), m3(q), u] += c[q] * X[j(e), sx(p), m1(q), u] * Y[e, sy(p), m2(q), v] "
         "* Wt[e, p, u, v]\n",
         true);
}

/* The three gradients as one group, against each as a loop over the same terms. */
TEST(a_group_equals_its_statements_one_after_the_other)
{
    static const char *const head =
        "program g(nodes)\naxis I = nodes, E(I) = seg : j < nodes\n" PATHS
        "f64 X[nodes, SX, MX, UX], Y[E, SY, MY, VY], Wt[E, P, U, V], dZ[I, SZ, MZ, UZ]\n"
        "f64 dX[nodes, SX, MX, UX], dY[E, SY, MY, VY], dWt[E, P, U, V]\n";
    static const char *const group =
        "for i, e, p, u, v, q:\n"
        "    let g = dZ[i, sz(p), m3(q), u] * c[q]\n"
        "    let x = X[j(e), sx(p), m1(q), u]\n"
        "    let y = Y[e, sy(p), m2(q), v]\n"
        "    d(z,X): dX[j(e), sx(p), m1(q), u] += g * Wt[e, p, u, v] * y\n"
        "    d(z,Y): dY[e, sy(p), m2(q), v] += g * Wt[e, p, u, v] * x\n"
        "    d(z,Wt): dWt[e, p, u, v] += g * x * y\n";
    static const char *const apart =
        "a: for i, e, p, u, v, q: dX[j(e), sx(p), m1(q), u] += dZ[i, sz(p), m3(q), u] * c[q] "
        "* Wt[e, p, u, v] * Y[e, sy(p), m2(q), v]\n"
        "b: for i, e, p, u, v, q: dY[e, sy(p), m2(q), v] += dZ[i, sz(p), m3(q), u] * c[q] "
        "* Wt[e, p, u, v] * X[j(e), sx(p), m1(q), u]\n"
        "w: for i, e, p, u, v, q: dWt[e, p, u, v] += dZ[i, sz(p), m3(q), u] * c[q] "
        "* X[j(e), sx(p), m1(q), u] * Y[e, sy(p), m2(q), v]\n";
    static const char *const out[] = { "dX", "dY", "dWt" };
    Bed b[2];
    char text[8192];

    for (int t = 0; t < 2; t++) {
        uint64_t seed = 20;
        double v[NODES * 30];

        strcpy(text, head);
        strcat(text, t == 0 ? group : apart);
        bed_open(&b[t], text);
        bed_size(&b[t], "nodes", NODES);
        bed_bind(&b[t], "E.start", T_i64, NODES + 1, edge_start);
        bed_bind(&b[t], "E.j", T_i64, 8, edge_j);
        random_buf(&b[t], "X", &seed, NODES * 10, v);
        random_buf(&b[t], "Y", &seed, 8 * 4, v);
        random_buf(&b[t], "Wt", &seed, 8 * 14, v);
        random_buf(&b[t], "dZ", &seed, NODES * 30, v);
        bed_run(&b[t]);
    }
    for (int k = 0; k < 3; k++)
        bed_want(&b[0], out[k], bed_array(&b[1], out[k])->n, bed_array(&b[1], out[k])->data);
    bed_close(&b[0]);
    bed_close(&b[1]);
}

/* 4x0e + 2x1o times 2x0e + 3x1o to 3x0e + 2x1o, every channel with every other. */
TEST(uvw_connects_all_channels)
{
    static const int px[] = { 0, 1, 0, 1 }, py[] = { 0, 1, 1, 0 }, pz[] = { 0, 0, 1, 1 };
    static const int nu[] = { 4, 2 }, nv[] = { 2, 3 }, nw[] = { 3, 2 }, dim[] = { 1, 3 };
    static const int ox[] = { 0, 4 }, oy[] = { 0, 2 }, oz[] = { 0, 3 };
    uint64_t seed = 21;
    double x[10], y[11], w[24 + 18 + 24 + 8], z[9] = { 0 };
    int at = 0;
    Bed b;

    bed_open(&b, "program tp()\n"
                 "axis SX = 2, MX(SX) = {1, 3}, UX(SX) = {4, 2}\n"
                 "axis SY = 2, MY(SY) = {1, 3}, VY(SY) = {2, 3}\n"
                 "axis SZ = 2, MZ(SZ) = {1, 3}, WZ(SZ) = {3, 2}\n"
                 "axis P = rows sx sy sz { 0 0 0, 1 1 0, 0 1 1, 1 0 1 }\n"
                 "axis U(P) = {4, 2, 4, 2}, V(P) = {2, 3, 3, 2}, W(P) = {3, 3, 2, 2}\n"
                 "axis Q(P) = rows m1 m2 m3 { 0 0 0; 0 0 0, 1 1 0, 2 2 0; 0 0 0, 0 1 1, 0 2 2; "
                 "0 0 0, 1 0 1, 2 0 2 }\n"
                 "f64 X[SX, MX, UX], Y[SY, MY, VY], Wt[P, U, V, W], Z[SZ, MZ, WZ]\n"
                 "z: for p, u, v, w, q: Z[sz(p), m3(q), w] += X[sx(p), m1(q), u] "
                 "* Y[sy(p), m2(q), v] * Wt[p, u, v, w]\n");
    random_buf(&b, "X", &seed, 10, x);
    random_buf(&b, "Y", &seed, 11, y);
    random_buf(&b, "Wt", &seed, 74, w);
    for (int p = 0; p < 4; p++) {
        int sx = px[p], sy = py[p], sz = pz[p];

        for (int m1 = 0; m1 < dim[sx]; m1++)
            for (int m2 = 0; m2 < dim[sy]; m2++)
                for (int m3 = 0; m3 < dim[sz]; m3++)
                    for (int k = 0; k < nu[sx] * nv[sy] * nw[sz]; k++) {
                        int u = k / nw[sz] / nv[sy], v = k / nw[sz] % nv[sy], c = k % nw[sz];
                        bool term = sz == 0 ? m1 == m2 : sx == 0 ? m2 == m3 : m1 == m3;

                        if (term)
                            z[oz[sz] + m3 * nw[sz] + c] += x[ox[sx] + m1 * nu[sx] + u] *
                                                           y[oy[sy] + m2 * nv[sy] + v] * w[at + k];
                    }
        at += nu[sx] * nv[sy] * nw[sz];
    }
    bed_run(&b);
    bed_want(&b, "Z", 9, z);
    bed_close(&b);
}

TEST(symmetric_contraction_takes_weights_by_species)
{
    enum { BATCH = 3, CH = 2, L = 4 };
    static const int rel[][5] = { { 0, 0, 0, 0, 2 },
                                  { 0, 1, 1, 0, -1 },
                                  { 1, 2, 3, 3, 3 },
                                  { 1, 0, 2, 1, 5 },
                                  { 1, 3, 3, 2, -2 } }; /* p a b c g */
    static const int out[] = { 0, 1, 2, 1, 0 };
    static const int64_t el[BATCH] = { 1, 0, 1 };
    uint64_t seed = 22;
    double x[BATCH * L * CH], w[2 * 2 * CH], z[BATCH * 3 * CH] = { 0 };
    Bed b;

    bed_open(&b, "program sc(n, ne, f)\naxis B = n, L = 4, K = f, P = 2\n"
                 "axis Q(P) = rows a b c o -> g { 0 0 0 0 -> 2, 1 1 0 1 -> -1; "
                 "2 3 3 2 -> 3, 0 2 1 1 -> 5, 3 3 2 0 -> -2 }\n"
                 "f64 X[B, L, K], W[ne, P, K], Z[B, 3, K]\ni32 el[B]\n"
                 "z: Z[b, o(q), k] += g[q] * W[el[b], p, k] * X[b, a(q), k] * X[b, b(q), k] "
                 "* X[b, c(q), k]\n");
    bed_size(&b, "n", BATCH);
    bed_size(&b, "ne", 2);
    bed_size(&b, "f", CH);
    I32(&b, "el", 1, 0, 1);
    random_buf(&b, "X", &seed, BATCH * L * CH, x);
    random_buf(&b, "W", &seed, 2 * 2 * CH, w);
    for (int i = 0; i < BATCH; i++)
        for (int t = 0; t < 5; t++)
            for (int k = 0; k < CH; k++) {
                const double *xi = x + i * L * CH + k;

                z[(i * 3 + out[t]) * CH + k] += rel[t][4] * w[(el[i] * 2 + rel[t][0]) * CH + k] *
                                                xi[rel[t][1] * CH] * xi[rel[t][2] * CH] *
                                                xi[rel[t][3] * CH];
            }
    bed_run(&b);
    bed_want(&b, "Z", BATCH * 3 * CH, z);
    bed_close(&b);
}

TEST(two_variables_of_one_axis_run_apart)
{
    uint64_t seed = 23;
    double x[NODES * 2], want[NODES * NODES] = { 0 }, deg[NODES], hops[NODES] = { 0 };
    Bed b;

    bed_open(&b, "program p(nodes, f)\naxis I = nodes, E(I) = seg : j < nodes, K = f\n"
                 "f64 X[I, K], G[I, I], H[nodes], D[I]\n"
                 "g: for i, a in I, k: G[i, a] += X[i, k] * X[a, k]\n"
                 "d: for i, e: D[i] += 1\n"
                 "h: for i, e, s in E(j(e)): H[i] += 10*j(s) + 1\n");
    bed_size(&b, "nodes", NODES);
    bed_size(&b, "f", 2);
    bed_bind(&b, "E.start", T_i64, NODES + 1, edge_start);
    bed_bind(&b, "E.j", T_i64, 8, edge_j);
    random_buf(&b, "X", &seed, NODES * 2, x);
    bed_run(&b);
    for (int i = 0; i < NODES; i++) {
        for (int a = 0; a < NODES; a++)
            want[i * NODES + a] = 0 + x[2 * i] * x[2 * a] + x[2 * i + 1] * x[2 * a + 1];
        deg[i] = (double)(edge_start[i + 1] - edge_start[i]);
        for (int64_t e = edge_start[i]; e < edge_start[i + 1]; e++)
            for (int64_t s = edge_start[edge_j[e]]; s < edge_start[edge_j[e] + 1]; s++)
                hops[i] += 10 * (double)edge_j[s] + 1;
    }
    bed_want(&b, "G", NODES * NODES, want);
    bed_want(&b, "D", NODES, deg);
    bed_want(&b, "H", NODES, hops);
    bed_close(&b);
}
