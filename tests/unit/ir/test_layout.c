/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/layout.c: counting through all tuples of positions in lexicographic order must meet the
 * offsets 0, 1, 2, ... whatever hangs where. */
#include "unit/interp_bed.h"

typedef struct Walk {
    const Layout *layout;
    int64_t next; /* offset that the next tuple must have */
    int64_t pos[IR_MAX_FULL];
} Walk;

static void walk_tuples(Walk *w, int k)
{
    const Layout *l = w->layout;
    int up;

    if (k == l->buf->nfull) {
        CHECK_EQ(ir_layout_at(l, w->pos), w->next);
        w->next++;
        return;
    }
    for (up = k - 1; up >= 0 && l->buf->full[up] != l->buf->full[k]->parent; up--)
        ;
    {
        const Span *s = &l->slot[k].span;
        int64_t q = up < 0 ? 0 : w->pos[up];

        for (int64_t p = ir_span_first(s, q); p < ir_span_first(s, q + 1); p++) {
            w->pos[k] = p;
            walk_tuples(w, k + 1);
        }
    }
}

/* The buffer has the dimensions given and holds its tuples in order. */
static Layout check_layout(Bed *b, const char *name, int ndim, const int64_t *extent)
{
    Layout l;
    Walk w = { .layout = &l };
    int64_t n = 1;

    ir_layout(&b->arena, b->prog, b->env, ir_find_buf(b->prog, name), &l);
    CHECK_EQ(l.ndim, ndim);
    for (int d = 0; d < ndim; d++) {
        CHECK_EQ(l.extent[d], extent[d]);
        n *= extent[d];
    }
    CHECK_EQ(l.n, n);
    walk_tuples(&w, 0);
    CHECK_EQ(w.next, l.n);
    return l;
}

#define LAYOUT(b, name, ...)                                                          \
    check_layout(b, name, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                 (const int64_t[]){ __VA_ARGS__ })

TEST(dense_and_scalar_buffers_are_row_major)
{
    Bed b;
    Layout l;

    bed_open(&b, "program p(n, m)\naxis I = n\nf64 A[I, m], B[n, n], S[], Z[I, 0, m]\n");
    bed_size(&b, "n", 3);
    bed_size(&b, "m", 4);
    l = LAYOUT(&b, "A", 3, 4);
    CHECK_EQ(ir_layout_at(&l, (int64_t[]){ 2, 1 }), 9);
    l = LAYOUT(&b, "B", 3, 3);
    CHECK_EQ(ir_layout_at(&l, (int64_t[]){ 1, 2 }), 5);
    LAYOUT(&b, "Z", 3, 0, 4);
    ir_layout(&b.arena, b.prog, b.env, ir_find_buf(b.prog, "S"), &l);
    CHECK_EQ(l.n, 1);
    CHECK_EQ(l.ndim, 0);
    CHECK_EQ(ir_layout_at(&l, NULL), 0);
    bed_close(&b);
}

TEST(irreps_have_siblings_under_a_slot)
{
    Bed b;
    Layout l;

    bed_open(&b, "program p(nb)\naxis N = nb, S = 4, M(S) = {1, 3, 5, 0}, U(S) = {4, 2, 0, 7}\n"
                 "f64 X[N, S, M, U], Y[N, S, U, M], Z[S, N, M, U], W[M, U], T[S, M, N, U]\n");
    bed_size(&b, "nb", 3);
    l = LAYOUT(&b, "X", 3, 10);
    CHECK_EQ(ir_layout_at(&l, (int64_t[]){ 1, 1, 2, 5 }), 10 + 4 + 2 + 1);
    LAYOUT(&b, "Y", 3, 10);
    LAYOUT(&b, "Z", 30);
    LAYOUT(&b, "W", 10);
    LAYOUT(&b, "T", 30);
    bed_close(&b);
}

static const char *const graph =
    "program p(n, f)\n"
    "axis I = n, K = f, E(I) = seg, L(I) = 2, M = 3, G(E) = seg, O(I) = one\n"
    "f64 Y[E, M], A[I, K, E], B[E], C[I, L, E], D[L, E], F[E, L], "
    "H[K, E], G2[G], G3[I, M, G, K], P[O], Q[I, K, E, L, M], R[E, O], "
    "V[I, E, M, G]\n";

static void bind_graph(Bed *b, int64_t n, int64_t k, const int64_t *start, const int64_t *below)
{
    bed_open(b, graph);
    bed_size(b, "n", n);
    bed_size(b, "f", k);
    bed_bind(b, "E.start", T_i64, n + 1, start);
    bed_bind(b, "G.start", T_i64, start[n] + 1, below);
}

TEST(segments_fold_with_all_between_them_and_their_ancestors)
{
    Bed b;

    bind_graph(&b, 4, 5, (int64_t[]){ 0, 2, 2, 5, 6 }, (int64_t[]){ 0, 1, 1, 4, 4, 4, 9 });
    LAYOUT(&b, "Y", 6, 3);
    LAYOUT(&b, "A", 30);
    LAYOUT(&b, "B", 6);
    LAYOUT(&b, "C", 12);
    LAYOUT(&b, "D", 12);
    LAYOUT(&b, "F", 6, 2);
    LAYOUT(&b, "H", 5, 6);
    LAYOUT(&b, "G2", 9);
    LAYOUT(&b, "G3", 27, 5);
    LAYOUT(&b, "P", 4);
    LAYOUT(&b, "Q", 30, 2, 3);
    LAYOUT(&b, "R", 6);
    LAYOUT(&b, "V", 27);
    bed_close(&b);
}

TEST(empty_structures_have_empty_layouts)
{
    Bed b;

    bind_graph(&b, 0, 5, (int64_t[]){ 0 }, (int64_t[]){ 0 });
    LAYOUT(&b, "A", 0);
    LAYOUT(&b, "Q", 0, 2, 3);
    bed_close(&b);
    bind_graph(&b, 2, 0, (int64_t[]){ 0, 0, 1 }, (int64_t[]){ 0, 0 });
    LAYOUT(&b, "A", 0);
    LAYOUT(&b, "H", 0, 1);
    LAYOUT(&b, "G3", 0, 0);
    bed_close(&b);
}

TEST(two_branches_that_cross_are_one_dimension)
{
    Bed b;

    bed_open(&b,
             "program p(n, m)\naxis I = n, L = m, E(I) = seg, F(L) = seg, G(I) = seg\n"
             "f64 A[I, L, E, F], B[E, F], C[E, G], D[I, L, F, E, G], U[E, L, G, F], V[L, E, G]\n");
    bed_size(&b, "n", 3);
    bed_size(&b, "m", 2);
    I64(&b, "E.start", 0, 2, 3, 3);
    I32(&b, "F.start", 0, 3, 4);
    I32(&b, "G.start", 0, 1, 4, 6);
    LAYOUT(&b, "A", 12);
    LAYOUT(&b, "B", 3, 4);
    LAYOUT(&b, "C", 2 * 1 + 1 * 3);
    LAYOUT(&b, "D", 20);
    LAYOUT(&b, "U", 20);
    LAYOUT(&b, "V", 2, 5);
    bed_close(&b);
}

TEST(condensed_tiles_and_deep_chains_are_laid_out)
{
    Bed b;

    bed_open(&b, "program p(n, ns)\n"
                 "axis S = ns, G(S) = seg, R = 2, C(G) = 3 : j < n padded\n"
                 "axis A = 2, B(A) = {1, 2}, D(B) = {2, 0, 1}, F(D) = {1, 4, 2}, H(F) = 2\n"
                 "axis T(H) = one\n"
                 "f64 X[G, R, C], Y[T], Z[A, R, T], W[n, F, R]\n");
    bed_size(&b, "n", 3);
    bed_size(&b, "ns", 2);
    I32(&b, "G.start", 0, 1, 3);
    LAYOUT(&b, "X", 3, 2, 3);
    LAYOUT(&b, "Y", 7, 2);
    LAYOUT(&b, "Z", 14, 2);
    LAYOUT(&b, "W", 3, 7, 2);
    bed_close(&b);
}

static void layout_fails(Bed *b, const char *name, Status code, const char *part)
{
    Layout l;

    CHECK_EQ(CATCH(&b->err, ir_layout(&b->arena, b->prog, b->env, ir_find_buf(b->prog, name), &l)),
             code);
    CHECK_HAS(b->err.msg, part);
}

TEST(counts_that_overflow_are_refused)
{
    Bed b;

    bed_open(
        &b, "program p(n, d)\n"
            "axis S = 2, M(S) = {1, 3}, U(S) = {4, 2}, I = n, J(I) = n, K(J) = n, Z = 0\n"
            "axis A(S) = n, T = n/d, V = n - d, E(Z) = n, F(Z) = n, G(M) = n, H(M) = {1, 2, 1, 2}\n"
            "f64 B[n, n, n, n, n], C[K], D[M, A, n, n], T2[T], V2[V], X[S, M, G, U]\n"
            "f64 P[Z, n, n, n, E], Q[Z, E, F], Y[S, M, G, H]\n");
    bed_size(&b, "d", 0);
    layout_fails(&b, "B", ST_BIND, "size n is not known");
    bed_size(&b, "n", -5);
    layout_fails(&b, "B", ST_BIND, "size n is negative");
    bed_size(&b, "n", INT64_C(1) << 31);
    layout_fails(&b, "B", ST_LIMIT, "B has more elements than");
    layout_fails(&b, "C", ST_LIMIT, "axis J has 2^60 positions or more");
    layout_fails(&b, "D", ST_LIMIT, "D has more elements than");
    layout_fails(&b, "P", ST_LIMIT, "P has more elements than");
    layout_fails(&b, "T2", ST_LIMIT, "a size overflows or is divided by zero: 2147483648 / 0");
    bed_size(&b, "n", INT64_C(1) << 59);
    layout_fails(&b, "Q", ST_LIMIT, "Q has more elements than");
    layout_fails(&b, "X", ST_LIMIT, "axis G has 2^60 positions or more");
    bed_size(&b, "n", 3);
    bed_size(&b, "d", 5);
    layout_fails(&b, "V2", ST_BIND, "axis V: the extent is -2; it cannot be negative");
    bed_close(&b);
}

TEST(prefix_sums_that_overflow_are_refused)
{
    Bed b;

    bed_open(&b, "program p(n)\n"
                 "axis S = 4, M(S) = n, U(S) = n, V(S) = {1, 2, 1, 2}, W(S) = {1, 1, 1, 1}\n"
                 "f64 X[S, M, U, V], Y[S, M, U, W]\n");
    bed_size(&b, "n", INT64_C(1) << 31);
    layout_fails(&b, "X", ST_LIMIT, "X has more elements than");
    layout_fails(&b, "Y", ST_LIMIT, "Y has more elements than");
    bed_size(&b, "n", INT64_C(1) << 30); /* 6 * 2^60 */
    {
        Layout l;

        ir_layout(&b.arena, b.prog, b.env, ir_find_buf(b.prog, "X"), &l);
        CHECK_EQ(l.n, 6 * (INT64_C(1) << 60));
        CHECK_EQ(ir_layout_at(&l, (int64_t[]){ 3, INT64_C(4) * (1 << 30) - 1,
                                               INT64_C(4) * (1 << 30) - 1, 5 }),
                 l.n - 1);
    }
    bed_close(&b);
}

TEST(sizes_are_computed_with_floor_division)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis A = -(n/2), B = n%4 + 2*n - -n - 1\nf64 X[A], Y[B]\n");
    bed_size(&b, "n", 7);
    CHECK_EQ(ir_axis_total(b.prog, b.env, ir_find_axis(b.prog, "B")), 3 + 14 + 7 - 1);
    layout_fails(&b, "X", ST_BIND, "axis A: the extent is -3");
    bed_close(&b);
}

TEST(starts_are_found_for_every_extent_rule)
{
    Bed b;
    Axis *e;

    bed_open(&b,
             "program p(n)\naxis I = n, E(I) = seg, L(E) = 2, S = 2, T(S) = {3, 1}, O(T) = one\n");
    bed_size(&b, "n", 2);
    e = ir_find_axis(b.prog, "E");
    CHECK_EQ(CATCH(&b.err, ir_axis_total(b.prog, b.env, e)), ST_BIND);
    CHECK_HAS(b.err.msg, "axis E: the array E.start is not there; give it");
    F64(&b, "E.start", 0, 1, 2);
    CHECK_EQ(CATCH(&b.err, ir_axis_total(b.prog, b.env, e)), ST_BIND);
    CHECK_HAS(b.err.msg, "E.start is f64; give it as i32 or i64");
    I32(&b, "E.start", 0, 5);
    CHECK_EQ(CATCH(&b.err, ir_axis_total(b.prog, b.env, e)), ST_BIND);
    CHECK_HAS(b.err.msg, "E.start has 2 elements, but there are 2 parent positions, so it needs 3");
    I32(&b, "E.start", 0, 5, -1);
    CHECK_EQ(CATCH(&b.err, ir_axis_total(b.prog, b.env, e)), ST_BIND);
    CHECK_HAS(b.err.msg, "E.start ends with -1");
    I32(&b, "E.start", 0, 1, 5);
    CHECK_EQ(ir_axis_total(b.prog, b.env, e), 5);
    CHECK_EQ(ir_axis_start(b.prog, b.env, e, 1), 1);
    CHECK_EQ(ir_axis_start(b.prog, b.env, ir_find_axis(b.prog, "L"), 4), 8);
    CHECK_EQ(ir_axis_start(b.prog, b.env, ir_find_axis(b.prog, "T"), 1), 3);
    CHECK_EQ(ir_axis_start(b.prog, b.env, ir_find_axis(b.prog, "O"), 3), 3);
    bed_close(&b);
}

TEST(elements_of_every_type_are_read)
{
    uint16_t h[] = { 0x3c00, 0xc000 }, bf[] = { 0x3f80, 0xc000 };

    CHECK_SAME(ir_array_float(&(Array){ h, 2, T_f16 }, 1), -2);
    CHECK_SAME(ir_array_float(&(Array){ bf, 2, T_bf16 }, 0), 1);
    CHECK_SAME(ir_array_float(&(Array){ (float[]){ 0.5f }, 1, T_f32 }, 0), 0.5);
    CHECK_SAME(ir_array_float(&(Array){ (double[]){ 0.1 }, 1, T_f64 }, 0), 0.1);
    CHECK_EQ(ir_array_int(&(Array){ (int32_t[]){ -7 }, 1, T_i32 }, 0), -7);
    CHECK_EQ(ir_array_int(&(Array){ (int64_t[]){ INT64_MIN }, 1, T_i64 }, 0), INT64_MIN);
}

/* Random forests of axes, random orders of slots. */
static void random_case(uint64_t *seed)
{
    Text t = { 0 };
    Arena arena;
    Err err = { 0 };
    Bed b;
    Layout l;
    Walk w = { .layout = &l };
    int naxis = 2 + (int)(test_random(seed) % 6), total[8], parent[8];
    int64_t product = 1;

    arena_init(&arena, &os_libc, &err);
    t.arena = &arena;
    text_str(&t, "program p()\n");
    for (int i = 0; i < naxis; i++) {
        int kind = (int)(test_random(seed) % 4), n = (int)(test_random(seed) % 4);

        parent[i] =
            i > 0 && test_random(seed) % 4 > 0 ? (int)(test_random(seed) % (uint64_t)i) : -1;
        if (parent[i] < 0) {
            text_f(&t, "axis X%d = %d\n", i, n);
            total[i] = n;
        } else if (kind == 0) {
            text_f(&t, "axis X%d(X%d) = %d\n", i, parent[i], n);
            total[i] = total[parent[i]] * n;
        } else if (kind == 1 || total[parent[i]] == 0) {
            text_f(&t, "axis X%d(X%d) = one\n", i, parent[i]);
            total[i] = total[parent[i]];
        } else {
            text_f(&t, "axis X%d(X%d) = {", i, parent[i]);
            total[i] = 0;
            for (int q = 0; q < total[parent[i]]; q++) {
                n = (int)(test_random(seed) % 4);
                text_f(&t, "%s%d", q > 0 ? ", " : "", n);
                total[i] += n;
            }
            text_str(&t, "}\n");
        }
    }
    text_str(&t, "f64 A[");
    for (int i = 0, first = 1; i < naxis; i++)
        if (test_random(seed) % 4 > 0 || i == naxis - 1) {
            text_f(&t, "%sX%d", first ? "" : ", ", i);
            first = 0;
        }
    text_str(&t, "]\n");
    bed_open(&b, t.s);
    ir_layout(&b.arena, b.prog, b.env, ir_find_buf(b.prog, "A"), &l);
    walk_tuples(&w, 0);
    CHECK_EQ(w.next, l.n);
    for (int d = 0; d < l.ndim; d++)
        product *= l.extent[d];
    CHECK_EQ(product, l.n);
    bed_close(&b);
    arena_free(&arena);
}

TEST(random_layouts_are_lexicographic)
{
    uint64_t seed = 7;

    for (int64_t i = 0; i < test_scale(2000); i++)
        random_case(&seed);
}
