/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/search/gallop.c, lower/search/hash.c, emit/emit_find.c: entries that kernels search for,
 * against sums over dense matrices.  The trees that the passes give are in
 * tests/golden/gallop.txt and hash.txt. */
#include "unit/kernel_bed.h"

enum { MOST_ROWS = 9, MOST_COLUMNS = 90, MOST = MOST_ROWS * MOST_COLUMNS };

/* J, K, R, S and F are sorted, U and E are in no order, L is padded, H is computed.  The search for
 * N[c] begins anew in each row. */
#define AXES                                                                                  \
    "program searches(m, n, nr, w, ne, nf)\n"                                                 \
    "axis I = m, J = compressed(I, n) sorted unique, K = compressed(I, n) sorted unique\n"    \
    "axis U = compressed(I, n) unique, E = ne : a < m, b < n unique\n"                        \
    "axis F = nf : a < m, b < n sorted unique\n"                                              \
    "axis R = nr : i < m sorted unique, S(R) = seg : j < n sorted unique\n"                   \
    "axis L = ell(I, w, n) unique, H(I) = w : y = (7 * h + 3 * i) % 101 unique\n"             \
    "f64 A[I, J], B[I, K], C[I, U] fill 0.5, D[E], P[F] fill -1, Q[R, S], G[I, L], M[I, H]\n" \
    "f64 N[R]\n"
#define UNION                                                                                  \
    "f64 Y[I, n]\n"                                                                            \
    "y: for i, c in n: Y[i, c] = A[i, c] + 2 * B[i, c] + 3 * C[i, n - 1 - c] + 5 * D[(i, c)] " \
    "+ 7 * P[(i, c)] + 11 * G[i, c] + 13 * M[i, c] + 17 * N[c]\n"

static const char all[] = AXES UNION "f64 T[I], V[I], X[I], Z[I, n]\n"
                                     "t: T[i] += A[i, j] * B[i, j] * C[i, j]\n"
                                     "v: V[i] += C[i, u] * A[i, u] + D[(i, u)]\n"
                                     "x: X[i] += Q[i, k] * B[i, k] if stored(Q[i, k])\n"
                                     "z: Z[i, j] += A[i, j]\n"
                                     "zb: Z[i, k] += 3 * B[i, k]\n";

typedef struct Matrix {
    bool stored[MOST_ROWS][MOST_COLUMNS];
    double at[MOST_ROWS][MOST_COLUMNS];                    /* the fill where nothing is stored */
    int64_t start[MOST_ROWS + 1], row[MOST], column[MOST]; /* entry by entry */
    double value[MOST];
    int64_t n;
} Matrix;

typedef struct Problem {
    uint64_t random;
    int64_t m, n, nr, w;
    Matrix a, b, c, d, p, q, g, h;
    int64_t rows[MOST_ROWS];
    double of_row[MOST_ROWS], of_column[MOST_ROWS + MOST_COLUMNS]; /* N as it is stored, and by i */
} Problem;

static int64_t pick(Problem *x, int64_t n)
{
    return (int64_t)(test_random(&x->random) % (uint64_t)n);
}

/* Rows that are empty, sparse, half full and full. */
static void draw(Problem *x, Matrix *a, double fill)
{
    static const int64_t percent[] = { 0, 4, 50, 100, 15 };

    for (int64_t i = 0; i < x->m; i++) {
        int64_t p = percent[pick(x, 5)];

        for (int64_t j = 0; j < x->n; j++) {
            a->stored[i][j] = pick(x, 100) < p;
            a->at[i][j] = a->stored[i][j] ? (double)(pick(x, 9) - 4) : fill;
        }
    }
}

static void swap_entries(Matrix *a, int64_t p, int64_t q)
{
    int64_t row = a->row[p], column = a->column[p];
    double value = a->value[p];

    a->row[p] = a->row[q];
    a->column[p] = a->column[q];
    a->value[p] = a->value[q];
    a->row[q] = row;
    a->column[q] = column;
    a->value[q] = value;
}

static void shuffle(Problem *x, Matrix *a, int64_t from, int64_t to)
{
    for (int64_t p = to - 1; p > from; p--)
        swap_entries(a, p, from + pick(x, p - from + 1));
}

static void list(Problem *x, Matrix *a, bool sorted)
{
    a->n = 0;
    for (int64_t i = 0; i < x->m; i++) {
        for (int64_t j = 0; j < x->n; j++)
            if (a->stored[i][j]) {
                a->row[a->n] = i;
                a->column[a->n] = j;
                a->value[a->n++] = a->at[i][j];
            }
        a->start[i + 1] = a->n;
        if (!sorted)
            shuffle(x, a, a->start[i], a->n);
    }
}

/* The rows of q that have an entry, and of the others every second one. */
static void list_rows(Problem *x)
{
    Matrix *q = &x->q;

    x->nr = 0;
    memset(x->of_column, 0, sizeof x->of_column);
    for (int64_t i = 0; i < x->m; i++)
        if (q->start[i + 1] > q->start[i] || i % 2 == 0) {
            x->of_row[x->nr] = x->of_column[i] = (double)(pick(x, 9) - 4);
            x->rows[x->nr++] = i;
            q->start[x->nr] = q->start[i + 1]; /* x->nr is at most i + 1 */
        }
}

/* w places a row; those that are left over are outside the matrix, some on each side. */
static void list_padded(Problem *x)
{
    Matrix *g = &x->g;

    g->n = 0;
    for (int64_t i = 0; i < x->m; i++) {
        int64_t from = g->n;

        for (int64_t j = 0; j < x->n; j++)
            if (g->stored[i][j] && g->n < from + x->w) {
                g->column[g->n] = j;
                g->value[g->n++] = g->at[i][j];
            } else {
                g->at[i][j] = 0;
            }
        for (; g->n < from + x->w; g->n++) {
            g->column[g->n] = pick(x, 2) == 0 ? -1 : x->n;
            g->value[g->n] = 99;
        }
        shuffle(x, g, from, g->n);
    }
}

static void compute_columns(Problem *x)
{
    Matrix *h = &x->h;

    memset(h->at, 0, sizeof h->at);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t k = 0; k < x->w; k++) {
            int64_t y = (7 * k + 3 * i) % 101;

            h->value[i * x->w + k] = (double)(pick(x, 9) - 4);
            if (y < x->n)
                h->at[i][y] = h->value[i * x->w + k];
        }
}

static void make(Problem *x)
{
    x->m = pick(x, MOST_ROWS + 1);
    x->n = 1 + pick(x, MOST_COLUMNS);
    x->w = pick(x, x->n + 1);
    draw(x, &x->a, 0);
    draw(x, &x->b, 0);
    draw(x, &x->c, 0.5);
    draw(x, &x->d, 0);
    draw(x, &x->p, -1);
    draw(x, &x->q, 0);
    draw(x, &x->g, 0);
    list(x, &x->a, true);
    list(x, &x->b, true);
    list(x, &x->c, false);
    list(x, &x->d, true);
    shuffle(x, &x->d, 0, x->d.n);
    list(x, &x->p, true);
    list(x, &x->q, true);
    list_rows(x);
    list_padded(x);
    compute_columns(x);
}

static void ints(const char *name, int64_t *data, int64_t n)
{
    bind(name, data, WEFT_I64, 1, SHAPE(n));
}

static void reals(const char *name, double *data, int64_t n)
{
    bind(name, data, WEFT_F64, 1, SHAPE(n));
}

static void bind_all(Problem *x)
{
    ints("J.start", x->a.start, x->m + 1);
    ints("J.coord", x->a.column, x->a.n);
    ints("K.start", x->b.start, x->m + 1);
    ints("K.coord", x->b.column, x->b.n);
    ints("U.start", x->c.start, x->m + 1);
    ints("U.coord", x->c.column, x->c.n);
    ints("E.a", x->d.row, x->d.n);
    ints("E.b", x->d.column, x->d.n);
    ints("F.a", x->p.row, x->p.n);
    ints("F.b", x->p.column, x->p.n);
    ints("R.i", x->rows, x->nr);
    ints("S.start", x->q.start, x->nr + 1);
    ints("S.j", x->q.column, x->q.n);
    bind("L.coord", x->g.column, WEFT_I64, 2, SHAPE(x->m, x->w));
    reals("A", x->a.value, x->a.n);
    reals("B", x->b.value, x->b.n);
    reals("C", x->c.value, x->c.n);
    reals("D", x->d.value, x->d.n);
    reals("P", x->p.value, x->p.n);
    reals("Q", x->q.value, x->q.n);
    reals("N", x->of_row, x->nr);
    bind("G", x->g.value, WEFT_F64, 2, SHAPE(x->m, x->w));
    bind("M", x->h.value, WEFT_F64, 2, SHAPE(x->m, x->w));
    OK(weft_args_size(args, "n", x->n));
}

static void want(const char *name, const double *value, int64_t n)
{
    weft_tensor t;

    OK(weft_args_get(args, name, &t));
    for (int64_t i = 0; i < n; i++)
        if (((double *)t.data)[i] != value[i])
            test_fail(__FILE__, __LINE__, "%s[%lld] is %g and not %g", name, (long long)i,
                      ((double *)t.data)[i], value[i]);
}

static void check_union(const Problem *x)
{
    static double y[MOST];

    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            y[i * x->n + j] = x->a.at[i][j] + 2 * x->b.at[i][j] + 3 * x->c.at[i][x->n - 1 - j] +
                              5 * x->d.at[i][j] + 7 * x->p.at[i][j] + 11 * x->g.at[i][j] +
                              13 * x->h.at[i][j] + 17 * x->of_column[j];
    want("Y", y, x->m * x->n);
}

static void check_sums(const Problem *x)
{
    static double t[MOST_ROWS], v[MOST_ROWS], s[MOST_ROWS], z[MOST];

    for (int64_t i = 0; i < x->m; i++) {
        t[i] = v[i] = s[i] = 0;
        for (int64_t j = 0; j < x->n; j++) {
            double a = x->a.at[i][j], b = x->b.at[i][j];

            t[i] += a * b * x->c.at[i][j];
            v[i] += x->c.stored[i][j] ? x->c.at[i][j] * a + x->d.at[i][j] : 0;
            s[i] += x->q.at[i][j] * b;
            z[i * x->n + j] = a + 3 * b;
        }
    }
    want("T", t, x->m);
    want("V", v, x->m);
    want("X", s, x->m);
    want("Z", z, x->m * x->n);
}

TEST(kernels_find_what_is_stored_and_nothing_else)
{
    static Problem x;

    open_kernel(all);
    CHECK_STR(info_of(kernel).target, "c");
    x.random = 1;
    for (int64_t i = test_scale(400); i > 0; i--) {
        make(&x);
        OK(weft_args_new(prog, &args));
        bind_all(&x);
        OK(weft_kernel_run(kernel, args));
        check_union(&x);
        check_sums(&x);
        weft_args_free(args);
    }
    close_prog();
}

/* The table of positions is one of the plan's, and goes with the structure. */
TEST(a_table_of_positions_is_made_anew_for_another_structure)
{
    int64_t start[] = { 0, 50 }, coord[50];
    double value[50], want_y[100];

    open_kernel("program p(m, n)\naxis I = m, U = compressed(I, n) unique\n"
                "f64 A[I, U], Y[I, n]\ny: for i, c in n: Y[i, c] = A[i, c]\n");
    for (int64_t turn = 0; turn < 3; turn++) {
        memset(want_y, 0, sizeof want_y);
        for (int64_t k = 0; k < 50; k++) {
            coord[k] = (7 * k + 3 * turn) % 100;
            value[k] = (double)(k + 1);
            want_y[coord[k]] = value[k];
        }
        ints("U.start", start, 2);
        ints("U.coord", coord, 50);
        reals("A", value, 50);
        OK(weft_args_size(args, "n", 100));
        OK(weft_kernel_run(kernel, args));
        want("Y", want_y, 100);
    }
    close_prog();
}

static const char *after(const char *pass)
{
    const char *text;

    OK(weft_prog_print_after(prog, pass, &text));
    return text;
}

/* What the passes give is a text that means the same. */
TEST(searches_of_every_kind_are_interpreted_alike)
{
    static Problem x;
    const char *text;
    weft_prog *later;

    open_prog(AXES UNION);
    text = after("hash");
    CHECK_HAS(text, "near(K, K.start[i], K.start[i + 1], c)");
    CHECK_HAS(text, "near(F, 0, nf, i, c)");
    CHECK_HAS(text, "lookup(E, 0, ne, i, c)");
    CHECK_HAS(text, "lookup(H, i * w, i * w + w, c, i)");
    OK(weft_prog_parse(ctx, "maps", text, strlen(text), &later));
    x.random = 7;
    for (int i = 0; i < 5; i++) {
        OK(weft_args_new(later, &args));
        make(&x);
        bind_all(&x);
        OK(weft_run(args));
        check_union(&x);
    }
    close_prog();
}

/* Here the column gets a name, as it is used twice. */
TEST(later_passes_leave_a_search_as_it_is)
{
    open_prog("program p(m, n)\naxis I = m, J = compressed(I, n) sorted\n"
              "axis K = n : c < n sorted unique\nf64 B[K], X[n], Y[I, J]\n"
              "y: Y[i, j] = B[j] * X[j]\n");
    CHECK_HAS(after("gallop"), "near(K, 0, n, J.coord[j])");
    CHECK_HAS(after("cse"), "near(K, 0, n, v)");
    close_prog();
}

TEST(the_table_of_a_lookup_is_made_by_emitted_text)
{
    weft_prog *later;
    const char *text, *source;

    open_prog(AXES UNION);
    text = after("hash");
    OK(weft_prog_parse(ctx, "maps", text, strlen(text), &later));
    OK(weft_prog_emit(later, "c", WEFT_SOURCE, &source));
    CHECK_HAS(source, "= weft_map_new(h, ");
    OK(weft_prog_emit(prog, "c", WEFT_SOURCE, &source));
    CHECK_HAS(source, "= weft_map_new(h, ");
    close_prog();
}

#define TREE(body)                                                                                  \
    "program p(m, n) stage loops\naxis I = m, J = compressed(I, n) unique\nf64 A[I, J]; i64 Y[I]\n" \
    "phase y for i in 0..m\n    Y[i] = " body "\n"

static void open_tree(const char *text)
{
    static int64_t start[] = { 0, 2, 3 }, coord[] = { 4, 1, 4 };
    static double value[] = { 1, 2, 3 };

    open_prog(text);
    ints("J.start", start, 3);
    ints("J.coord", coord, 3);
    reals("A", value, 3);
    OK(weft_args_size(args, "n", 5));
}

TEST(near_wants_a_sorted_axis)
{
    const char text[] = TREE("near(J, J.start[i], J.start[i + 1], 4)");

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_parse(ctx, NULL, text, strlen(text), &prog));
    BAD(weft_prog_check(prog), WEFT_E_CHECK,
        "near(J, ...) wants an axis that is sorted and not padded; write find");
    close_prog();
}

TEST(lookup_wants_all_entries_of_one_parent)
{
    weft_tensor t;

    open_tree(TREE("lookup(J, J.start[i], J.start[i + 1], 4)"));
    OK(weft_run(args));
    OK(weft_args_get(args, "Y", &t));
    CHECK_EQ(((int64_t *)t.data)[0], 0);
    CHECK_EQ(((int64_t *)t.data)[1], 2);
    open_tree(TREE("lookup(J, J.start[i], 2, 4)"));
    BAD(weft_run(args), WEFT_E_RUN, "2..2 are not the positions of axis J under one parent");
    close_prog();
}
