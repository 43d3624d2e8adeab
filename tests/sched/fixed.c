/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs that steps are written for, with random data: the rows of a table say what steps make
 * of them, or why they are refused; and chains of random steps, as for random programs. */
#include "interp/interp.h"
#include "sched/sched_test.h"
#include "unit/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Which {
    SPMM, SPMM64, BSR, ATTENTION, DENSE, PAIR, SCATTER, CHANGE, ENDS, LISTS, MATMUL, SPREAD,
    PROGRAMS
} Which;

static const char *const text[PROGRAMS] = {
    [SPMM] = "program spmm(m, n, f)\n"
             "axis I = m, J = compressed(I, n), K = f\n"
             "f32 A[I, J], B[n, K], C[I, K]\n"
             "c: C[i, k] += A[i, j] * B[j, k]\n",
    [SPMM64] = "program spmm(m, n)\n"
               "axis I = m, J = compressed(I, n), K = 64\n"
               "f64 A[I, J], B[n, K], C[I, K]\n"
               "c: C[i, k] += A[i, j] * B[j, k]\n",
    [BSR] = "program bsr(m, n, f)\n"
            "axis I = m, J(I) = seg : load < n sorted unique, P = 2, Q = 3, K = f\n"
            "f32 A[J, P, Q], X[n, Q, K], Y[I, P, K]\n"
            "y: Y[i, p, k] += A[j, p, q] * X[j, q, k]\n",
    [ATTENTION] = "program attention(m, n, f)\n"
                  "axis I = m, E = compressed(I, n), K = f\n"
                  "f32 Q[I, K], D[n, K], V[n, K], W[E], Z[I, K]\n"
                  "temp f32 S[E], P[E], M[I], T[n, K]; temp bf16 H[E]\n"
                  "s: S[e] += Q[i, k] * D[e, k]\n"
                  "mx: M[i] max= S[e]\n"
                  "t: for x in n, k: T[x, k] = V[x, k] * 2\n"
                  "h: H[e] = W[e] + 1\n"
                  "p: P[e] = (S[e] - M[i]) * H[e]\n"
                  "z: Z[i, k] += P[e] * T[e, k]\n",
    [DENSE] = "program sums(m, n)\n"
              "axis I = m, J = n\n"
              "f64 A[I, J], X[J], Y[I], N[]; i64 L[I, J], C[]\n"
              "y: Y[i] += A[i, j] * X[j]\n"
              "n: N[] max= A[i, j]\n"
              "c: C[] += L[i, j]\n",
    [PAIR] = "program pair(m, n)\n"
             "axis I = m, J = compressed(I, n), E = n : i < m\n"
             "f32 A[I, J], X[n], Y[I], U[E], V[E], G[m]; temp f32 T[I]\n"
             "y: Y[i] += A[i, j] * X[j]\n"
             "v: V[e] = U[e] * 3\n"
             "t: T[i] = Y[i] * 2\n"
             "g: G[i(e)] += T[i(e)] * U[e]\n",
    [SCATTER] = "program scatter(m, n)\n"
                "axis E = n, P(E) = 2 : a < m\n"
                "f32 U[E], G[m]\n"
                "v: G[a(p)] += U[e]\n",
    [LISTS] = "program lists(m, n, f, a, b)\n"
              "axis I = m, J = compressed(I, n), K = f\n"
              "axis R = a : i < m sorted unique, S = b : i < m sorted unique\n"
              "f32 U[R, K], V[S, K], Y[I, K], Z[m]\n"
              "y: for r, k: Y[i(r), k] += U[r, k]\n"
              "z: for s, k: Y[i(s), k] += V[s, k]\n"
              "w: for x in m: Z[x] = 2\n",
    [MATMUL] = "program matmul(m, n, f)\n"
               "axis I = m, J = n, K = f\n"
               "f64 A[I, J], B[J, K], C[I, K], D[I, K]\n"
               "c: C[i, k] += A[i, j] * B[j, k]\n"
               "d: D[i, k] += B[j, k] + A[i, j]\n",
    [SPREAD] = "program spread(m, n)\n"
               "axis I = m, J(I) = seg : load < n sorted unique\n"
               "f32 A[J], D[I, n]\n"
               "d: D[i, j] = A[j]\n",
    /* Only a tree can change what was read before. */
    [CHANGE] = "program change(m, n) stage positions\n"
               "axis I = m, J = n\n"
               "f32 A[I, J], B[I], G[I], H[I]; inout f32 X[I]; temp f32 T[I], S[I]\n"
               "phase t for i in 0..m\n"
               "    T[i] = X[i] * 2\n"
               "phase x for i in 0..m\n"
               "    X[i] += 1\n"
               "phase g for i in 0..m\n"
               "    G[i] = T[i]\n"
               "phase s for i in 0..m\n"
               "    S[i] = B[i]\n"
               "phase r for i in 0..m\n"
               "    S[i] = S[i] * 3\n"
               "phase h for i in 0..m\n"
               "    H[i] = S[i]\n",
    [ENDS] = "program ends(m, n) stage positions\n"
             "axis I = 12, L = 11, K = m + n, R = n * 2, S = m * n\n"
             "f32 G[I], H[L], Y[K], W[R], V[S]\n"
             "phase g\n"
             "    for i in 0..6\n"
             "        G[i] = 1\n"
             "        G[i + 6] = 2\n"
             "phase h\n"
             "    for i in 0..6\n"
             "        H[i] = 1\n"
             "        H[i + 5] = 2\n"
             "phase y for k in 0..m + n\n"
             "    Y[k] = 1\n"
             "phase z for k in 0..n\n"
             "    Y[k] = 2\n"
             "phase v\n"
             "    for k in 0..n\n"
             "        W[k] = 1\n"
             "        W[k + n] = 2\n"
             "phase u\n"
             "    for i in 0..m\n"
             "        for k in 0..n\n"
             "            V[i * n + k] = 3\n"
             "phase t\n"
             "    for i in 0..2\n"
             "        for k in 0..n\n"
             "            W[i * n + k] = 3\n",
};

static void draw_start(Arena *a, Rng *r, Data *d, const char *name, int64_t rows, int64_t *total)
{
    Array x = { arena_array(a, rows + 1, 8), rows + 1, T_i64 };
    Text t = { .arena = a };

    *total = 0;
    for (int64_t i = 0; i <= rows; i++) {
        array_set(&x, i, *total, 0);
        *total += i < rows ? rng_int(r, 0, 3) : 0;
    }
    text_f(&t, "%s.start", name);
    data_array(a, d, t.s, x);
}

/* Ascending in each row, if there is one, and below n. */
static void draw_coord(Arena *a, Rng *r, Data *d, const char *name, const Array *start, int64_t n,
                       int64_t total)
{
    Array x = { arena_array(a, total, 8), total, T_i64 };
    int64_t row = 0;

    for (int64_t i = 0; i < total; i++) {
        bool first = true;

        while (start != NULL && array_int(start, row + 1) <= i)
            row++;
        first = start == NULL || array_int(start, row) == i;
        array_set(&x, i, first ? rng_int(r, 0, (int)n - 3) : array_int(&x, i - 1) + 1, 0);
    }
    data_array(a, d, name, x);
}

/* Some of 0..rows, ascending; how many is a size. */
static void draw_list(Arena *a, Rng *r, Data *d, const char *size, const char *name, int64_t rows)
{
    Array x = { arena_array(a, rows, 8), 0, T_i64 };

    for (int64_t i = 0; i < rows; i++)
        if (rng_p(r, 60)) {
            x.n++;
            array_set(&x, x.n - 1, i, 0);
        }
    data_size(a, d, size, x.n);
    data_array(a, d, name, x);
}

static void draw_values(Arena *a, Rng *r, Data *d, const Prog *p)
{
    for (int i = 0; i < p->nbuf; i++) {
        const Buf *b = p->buf[i];
        Layout l;
        Array x = { .type = b->type };

        if ((b->written && b->kind != B_INOUT) || b->kind == B_CONST)
            continue;
        ir_layout(a, p, data_bind(a, d, p), b, &l);
        x.n = l.n;
        x.data = arena_array(a, l.n, 8);
        for (int64_t k = 0; k < l.n; k++)
            array_set(&x, k, rng_int(r, -3, 3), rng_int(r, -3, 3));
        data_array(a, d, b->name, x);
    }
}

static Data *draw(Arena *a, Rng *r, Which w, const Prog *p)
{
    Data *d = arena_alloc(a, sizeof *d);
    int64_t m = rng_int(r, 1, 6), n = rng_int(r, 4, 9), total;
    const char *rows = w == ATTENTION ? "E" : "J";

    *d = (Data){ .n = 0 };
    data_size(a, d, "m", m);
    data_size(a, d, "n", n);
    data_size(a, d, "f", rng_int(r, 0, 9) * rng_int(r, 1, 4));
    if (w == LISTS) {
        draw_list(a, r, d, "a", "R.i", m);
        draw_list(a, r, d, "b", "S.i", m);
    }
    if (w != DENSE && w != SCATTER && w != CHANGE && w != ENDS && w != MATMUL) {
        Text t = { .arena = a };

        draw_start(a, r, d, rows, m, &total);
        text_f(&t, "%s.coord", rows);
        draw_coord(a, r, d, t.s, &d->item[d->n - 1].array, n, total);
    }
    if (w == PAIR)
        draw_coord(a, r, d, "E.i", NULL, m + 2, n);
    if (w == SCATTER)
        draw_coord(a, r, d, "P.a", NULL, m + 2, 2 * n);
    draw_values(a, r, d, p);
    return d;
}

static void fixed(Arena *a, Which w, uint64_t seed, Base *b)
{
    Rng r = { seed };

    *b = (Base){ .seed = seed, .text = text[w] };
    b->prog = ir_parse(a, "fixed", text[w], strlen(text[w]));
    ir_check(b->prog);
    b->in = draw(a, &r, w, b->prog);
    b->want = data_bind(a, b->in, b->prog);
    b->tree = ir_copy(a, b->prog);
    if (b->prog->stage == STAGE_COORDINATES) {
        interp_run(a, b->prog, b->want);
        lower_positions(b->tree);
    } else {
        interp_loops(a, b->prog, b->want, NULL, NULL);
    }
}

void fixed_base(Arena *a, uint64_t seed, Base *b)
{
    fixed(a, (Which)(seed % PROGRAMS), seed, b);
}

typedef struct Row {
    Which program;
    const char *steps;
    const char *says; /* why the last step is refused, in part; or, after '+', a line of the tree */
} Row;

static const Row row[] = {
    { SPMM, "split c.k 4; reorder c.i c.k.0 c.j c.k.1; cache_write c C at c.k.0",
      "+            reg c: f32 = C[i, k0 * 4 + k1]" },
    { SPMM, "cache_write c C at c.j", "+            c += A[j] * B[J.coord[j], k]" },
    { SPMM, "cache_write c B at c.j", "c stores nothing to B in c.j" },
    { SPMM, "cache_write c D at c.j", "there is no array D" },
    { SPMM, "cache_write c C by c.j", "`at` and a loop come after the array, not by" },
    { SPMM, "unroll c.j", "how often it runs is no constant" },
    { SPMM, "split c.k 4 mask; cache_write c C at c.k.1", "may not exist" },
    { SPMM, "cache_write C.init C at C.init.x1", "+        let c: f32 = 0.0" },
    { SPMM, "reorder c.i c.k c.j; decompose_reduction c at c.k", "+        c.init: C[i, k] = 0.0" },
    { SPMM, "decompose_reduction c at c.i", "+    c.init: for k in K" },
    { SPMM, "decompose_reduction c at c.j", "meet each element of C once" },
    { SPMM, "reorder c.i c.k c.j; cache_write c C at c.k; decompose_reduction c at c.k",
      "+        reg c: f32 = 0.0" },
    { SPMM, "decompose_reduction c at c.i; decompose_reduction c at c.i", "C has no initial value that could move" },
    { SPMM, "split c.k 4; reorder c.i c.k.0 c.k.1 c.j; decompose_reduction c at c.k.1",
      "+            c.init: C[i, k0 * 4 + k1] = 0.0" },
    { SPMM, "split c.k 4 mask; reorder c.i c.k.0 c.k.1 c.j; decompose_reduction c at c.k.1",
      "meet each element of C once" },
    { SPMM, "cache_read c A at c.j", "+        let v: f32 = A[j]" },
    { SPMM, "cache_read c B at c.j", "+            let v: f32 = B[J.coord[j], k]" },
    { SPMM, "cache_read c J.coord at c.j", "is structure" },
    { SPMM, "cache_read c C at c.k", "C is written in the same phase" },
    { SPMM, "prefetch c B at c.j 8",
      "+        ahead B[J.coord[min(j + 8, size(J) - 1)], 0]" },
    { SPMM, "prefetch c A at c.k 8", "does not change with c.k" },
    { SPMM, "reorder c.i c.k c.j; prefetch c B at c.k 2", "known only inside c.j" },
    { SPMM, "prefetch c B at c.j 8; cache_read c B at c.j",
      "put the prefetch line after this one" },
    { SPMM, "bind c.i threads balance J", "+phase c scheduled for i in I balance J.start" },
    { SPMM, "bind c.j threads", "only the outermost loop" },
    { SPMM, "bind c.i block", "+phase c scheduled for i in I on block balance J.start" },
    { SPMM, "bind c.i core", "the target has no level core; it has grid, block, warp, thread, threads and lanes" },
    { SPMM, "bind c.k lanes", "write vectorize c.k" },
    { SPMM, "rfactor c.j", "not the same everywhere" },
    { SPMM, "split c.k 4; pack c B by 4", "+                C[i, k0 * 4 + k1] += A[j] * "
                                          "B.pack[k0, J.coord[j], k1]" },
    { SPMM, "pack c B by 4", "+            C[i, k] += A[j] * B.pack[k / 4, J.coord[j], k % 4]" },
    { SPMM, "pack c C by 4", "C is written in c" },
    { SPMM, "pack c A by 4", "A has no columns" },
    { SPMM, "merge C.init c by 3", "+    c: for i in from..to" },
    { SPMM, "merge C.init c each 3", "+phase C.init.merged for q in 0..(m + 2) / 3" },
    { SPMM, "merge C.init c each 1", "+    c: for i in from..to" },
    { SPMM, "merge C.init c each 3 balance J", "shares of 3 rows each have no balance" },
    { SPMM, "reorder c.i c.k c.j; parallel c.i; merge c C.init", "C.init does not come after c" },
    { SPMM64, "split c.k 16; reorder c.i c.k.0 c.j c.k.1; cache_write c C at c.k.0; "
              "decompose_reduction c at c.k.1; parallel c.i balance J",
      "+            reg c: f64 = 0.0" },
    { BSR, "split y.k 4; reorder y.i y.k.0 y.k.1 y.j y.q y.p; decompose_reduction y at y.k.1; "
           "unroll y.p; unroll y.init.p; unroll y.q; cache_write y Y at y.k.1; "
           "cache_read y X at y.j; parallel y.i balance J",
      "+            reg y1: f32 = 0.0" },
    { BSR, "unroll y.p; decompose_reduction y at y.i", "several stores write" },
    { BSR, "unroll y.p; cache_write y Y at y.j", "y.k is named twice" },
    { ATTENTION, "compute_inline t", "+            Z[i, k] += P[e] * (V[E.coord[e], k] * 2)" },
    { ATTENTION, "compute_inline s", "more than one `=`" },
    { ATTENTION, "compute_inline z", "makes no temp" },
    { ATTENTION, "compute_inline h", "elements of H are bf16" },
    { ATTENTION, "compute_inline none", "no phase is called none" },
    { ATTENTION, "compute_inline p",
      "+            Z[i, k] += (S[e] - M[i]) * H[e] * T[E.coord[e], k]" },
    { ATTENTION, "compute_at s at mx.e; compute_at s at p.e; compute_at p at z.e",
      "+        s: for k in K" },
    { ATTENTION, "compute_at s at z.e", "z.e does not read S" },
    { ATTENTION, "compute_at t at z.e", "which is defined only inside" },
    { ATTENTION, "compute_at t at z.k", "+            t: let v: f32 = V[E.coord[e], k] * 2" },
    { ATTENTION, "compute_at h at p.e", "registers hold f32 or f64" },
    { ATTENTION, "split s.e 2; compute_at s at p.e", "do this before its loops are split" },
    { DENSE, "split y.j 2; rfactor y.j.0; reorder y.j.0 y.i y.j.1; parallel y.j.0",
      "+phase Y.rf.sum for x0 in 0..m" },
    { DENSE, "rfactor n.i; parallel n.i", "+phase n scheduled for i in I" },
    { DENSE, "rfactor c.i", "may overflow in another order" },
    { DENSE, "rfactor y.i", "does not add to one element again and again" },
    { DENSE, "rfactor Y.init.x0", "no sum, maximum or minimum" },
    { PAIR, "merge y v", "+phase y.merged for q in 0..64" },
    { PAIR, "merge Y.init G.init by 7", "+phase Y.init.merged for q in 0..7" },
    { PAIR, "merge y t", "t reads Y, which y writes" },
    { PAIR, "merge Y.init v t", "y, which is between, and t share Y" },
    { PAIR, "merge g v", "g is no parallel loop" },
    { PAIR, "merge y y", "y does not come after y" },
    { PAIR, "prefetch g T at g.e 2", "+        ahead T[E.i[min(e + 2, n - 1)]]" },
    { CHANGE, "compute_inline t", "X, which T is computed from, changes before it is used" },
    { CHANGE, "compute_at t at g.i", "X, which T is computed from, changes before it is used" },
    { CHANGE, "compute_at r at h.i", "+    s: reg v: f32 = B[i]" },
    { ENDS, "parallel g.i", "+phase g scheduled for i in 0..6" },
    { ENDS, "parallel h.i", "two iterations of h.i may write one element of H" },
    { ENDS, "merge y z", "may write one element of Y" },
    { ENDS, "merge y z each 2", "not all of them go over the same rows" },
    { SCATTER, "unroll v.p; cache_write v G at v.e", "two elements of G in it may be the same one" },
    { PAIR, "compute_at t at g.e", "+        t: let v: f32 = Y[E.i[e]] * 2" },
    { LISTS, "merge Y.init y z by 3", "+    y: for r in first(R, 0, a, from)..first(R, 0, a, to)" },
    { LISTS, "merge y z by 2 balance J; split y.r 2; unroll z.k", "is no constant" },
    { LISTS, "merge Y.init y z by 5 balance J; split y.r 2; reorder z.s z.k; split y.k 3 mask",
      "+    z: for s in first(S, 0, b, from)..first(S, 0, b, to)" },
    { LISTS, "merge Y.init y z w balance J", "+    w: for x in from..to" },
    { LISTS, "merge Y.init y z each 2", "+    z: for s in first(S, 0, b, from)..first(S, 0, b, to)" },
    { LISTS, "merge Y.init y z balance K", "K has no entries for each row" },
    { LISTS, "merge Y.init y z balance L", "L has no entries for each row" },
    { LISTS, "split y.r 2; merge y z by 2", "may write one element of Y" },
    { MATMUL, "merge C.init c by 3", "+    c: for i in from..to" },
    { MATMUL, "merge C.init c balance J", "J has no entries for each row" },
    { MATMUL, "split c.j 2 exact; tensorize c.i 2 8", "+    vector for k in K step 4 by 2" },
    { MATMUL, "tensorize c.j 2 8", "no loop in it is over rows" },
    { MATMUL, "tensorize c.i 3 4", "+    vector for k in K step 4" },
    { MATMUL, "tensorize c.i", "+    vector for k in K step 4 by 3" },
    { MATMUL, "tensorize d.i", "does more than add products" },
    { MATMUL, "reorder c.i c.k c.j; cache_read c A at c.j; tensorize c.i",
      "+    vector for k in K step 4 by 3" },
    { BSR, "tensorize y.j 2 16", "+    vector for k in K step 8 by 2" },
    { BSR, "reorder y.j y.q y.k y.p; cache_read y X at y.k; tensorize y.j",
      "+        reg v1: f32x8 = Y[i * 2 * f + k + f]" },
    { BSR, "reorder y.j y.q y.k y.p; cache_write y Y at y.k; tensorize y.j",
      "a sum is held in a register already" },
    { BSR, "tensorize y.j 2", "write it as: tensorize LOOP [ROWS COLUMNS]" },
    { BSR, "tensorize y.j 17 8", "17 is no number from 1 to 16" },
    { BSR, "vectorize y.k; tensorize y.j", "y.k runs in lanes already" },
    { BSR, "reorder y.j y.q y.p; tensorize y.p", "each sum has a single term" },
    { BSR, "split y.k 4 mask; tensorize y.j", "cannot be held in registers" },
    { BSR, "split y.k 4; tensorize y.j", "y.q contains more than one nest" },
    { BSR, "split y.k 8 exact; reorder y.i y.k.0 y.j y.q y.p y.k.1; tensorize y.j 2 8",
      "+        vector for k1 in 0..8 within tiles(K, 8)[k0] step 8 as k.1" },
    { SPMM, "tensorize c.j", "no loop in it is over rows" },
    { SPMM, "tensorize C.init.x0", "does more than add products" },
    { DENSE, "tensorize y.j", "no loop in it goes over elements side by side" },
    { ENDS, "parallel v.k", "+" },
    { ENDS, "split v.k 2; parallel v.k.0", "may write one element of W" },
    { ENDS, "split v.k 2; peel v.k.0; parallel v.k.0", "only the outermost loop" },
    { ENDS, "split v.k 2 mask; parallel v.k.0", "may write one element of W" },
    { ENDS, "reorder u.k u.i; parallel u.k", "+" },
    { ENDS, "fuse u.i u.k; parallel u.i_k", "may write one element of V" },
    { ENDS, "split u.k 3; reorder u.k.0 u.i u.k.1; parallel u.k.0",
      "may write one element of V" },
    { ENDS, "reorder t.k t.i; unroll t.i; split t.k 2 mask; parallel t.k.0",
      "may write one element of W" },
    { ENDS, "reorder t.k t.i; parallel t.k", "+" },
    { ENDS, "merge y z by 2", "may write one element of Y" },
    { SPMM, "fuse c.i c.j; cache_write c C at c.k", "+" },
    { SPMM, "fuse c.i c.j; cache_read c B at c.k; cache_read c A at c.i_j", "+" },
    { SPMM, "fuse c.i c.j; split c.i_j 3; reorder c.k c.i_j.0 c.i_j.1; parallel c.k", "+" },
    { SPMM, "split c.j 2; reorder c.i c.k c.j.0 c.j.1; cache_read c A at c.j.1", "+" },
    { SPMM, "split c.j 2 mask; cache_read c A at c.j.1", "is read only where a condition holds" },
    { SPMM, "split c.i 2; split c.k 3; reorder c.i.0 c.k.0 c.i.1 c.j c.k.1; parallel c.i.0", "+" },
    { SPMM, "split c.i 2; reorder c.i.0 c.k c.i.1 c.j; decompose_reduction c at c.i.1", "+" },
    { SPMM, "split c.k 2; split c.k.1 2; decompose_reduction c at c.i", "+" },
    { SPMM64, "fuse c.i c.j; fuse c.i_j c.k; cache_read c B at c.i_j_k", "+" },
    { SPMM64, "split c.k 16; fuse C.init.x0 C.init.x1; cache_write C.init C at C.init.x0_x1", "+" },
    { SPMM64, "split c.k 8; reorder c.i c.k.0 c.k.1 c.j; fuse c.k.0 c.k.1; "
              "cache_write c C at c.k.0_k.1", "+" },
    { DENSE, "fuse y.i y.j; parallel y.i_j", "may write one element of Y" },
    { MATMUL, "reorder c.i c.k c.j; fuse c.i c.k; parallel c.i_k", "+" },
    { ATTENTION, "fuse s.i s.e; parallel s.i_e; compute_at s at p.e", "+" },
    { ATTENTION, "prefetch z T at z.e 2; compute_inline t", "T is prefetched" },
    { SPREAD, "split d.j 2 mask; reorder d.i d.j.1 d.j.0", "and the order counts" },
    { SPREAD, "fuse d.i d.j; parallel d.i_j", "may write one element of D" },
    { SPREAD, "vectorize d.j 4", "all iterations write one element of D" },
    { SPREAD, "split d.j 2; vectorize d.j.0 2", "may write one element of D" },
    { SPREAD, "split d.j 2; cache_read d A at d.j.1; split d.j.1 2; fuse d.i d.j.0", "" },
    { SPMM, "split c.j 2 exact", "2 does not provably divide its number of iterations" },
    { SPMM, "split c.k 1 exact; split c.k.0 2 exact", "+    check f % 2 == 0 else size" },
};

static bool has_line(const char *tree, const char *line)
{
    size_t n = strlen(line);

    for (const char *s = tree; s != NULL; s = strchr(s, '\n')) {
        s += *s == '\n';
        if (strncmp(s, line, n) == 0 && (s[n] == '\n' || s[n] == 0 || s[n] == ' '))
            return true;
    }
    return false;
}

/* Takes the steps of a row; NULL, or why one was refused, and then *last: it was the last one. */
static const char *take_row(Arena *a, const Row *w, Prog *p, bool *last)
{
    StepLine *line;
    Text t = { .arena = a };
    int n = step_lines(p, w->steps, &line);

    for (int i = 0; i < n; i++) {
        if (line[i].step->stage == STAGE_LOOPS && p->stage == STAGE_POSITIONS) {
            step_cut_tails(p);
            chain_to_loops(p);
        }
        if (CATCH(a->err, step_apply(p, &line[i], base_target())) == ST_OK)
            continue;
        text_f(&t, "%s", a->err->msg);
        err_clear(a->err);
        *last = i + 1 == n;
        return t.s;
    }
    return NULL;
}

/* NULL, or what is wrong. */
static const char *run_row(Arena *a, const Row *w, uint64_t seed)
{
    Base b;
    Prog *p;
    Text t = { .arena = a };
    const char *why;
    bool last;

    fixed(a, w->program, seed, &b);
    p = ir_copy(a, b.tree);
    why = take_row(a, w, p, &last);
    if (why != NULL)
        return last && w->says[0] != '+' && strstr(why, w->says) != NULL ? NULL : why;
    ir_check(p);
    ir_print(&t, p);
    if (w->says[0] != '+' || !has_line(t.s, w->says + 1))
        return t.s;
    return base_is_unfit(a, &b, p) ? NULL : base_compare(a, &b, p);
}

void fixed_add(Arena *a, Subjects *all, uint64_t seed)
{
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Base *b = arena_alloc(a, sizeof *b);
        Chain c = { .base = b };
        bool last;

        fixed(a, row[i].program, seed + i, b);
        c.prog = ir_copy(a, b->tree);
        if (row[i].says[0] == '+' && take_row(a, &row[i], c.prog, &last) == NULL &&
            !base_is_unfit(a, b, c.prog))
            compiled_add(a, all, &c);
    }
}

static const char *run_chain(Arena *a, int w, uint64_t seed, int *took, int *left)
{
    Base b;
    Rng r = { seed };
    Chain c = { .base = &b, .took = took, .left = left };
    Text t = { .arena = a };

    fixed(a, (Which)w, seed, &b);
    chain_random(a, &r, &c);
    for (int i = 0; c.bad != NULL && i < c.ntaken; i++)
        text_f(&t, "%s\n", c.taken[i]);
    if (c.bad != NULL)
        text_f(&t, "%s", c.bad);
    return c.bad != NULL ? t.s : NULL;
}

static void count(Fixed *f, const char *what, const char *bad)
{
    if (bad == NULL) {
        f->passed++;
        return;
    }
    if (f->failed++ < 20)
        printf("==== %s:\n%s\n", what, bad);
}

void fixed_try(Fixed *f, int64_t chains, uint64_t seed)
{
    int rows = (int)(sizeof row / sizeof *row);

    for (int64_t i = 0; i < rows + chains; i++) {
        Arena a;
        Err err = { 0 };
        const char *bad = NULL;
        const char *what = i < rows ? row[i].steps : text[(i - rows) % PROGRAMS];

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, bad = i < rows ? run_row(&a, &row[i], seed)
                                       : run_chain(&a, (int)((i - rows) % PROGRAMS),
                                                   seed + (uint64_t)i, f->took, f->left)) != ST_OK)
            bad = err.msg;
        count(f, what, bad);
        arena_free(&a);
    }
}
