/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * format/pack.c: a matrix through every storage that takes one and back, and the refusals. */
#include "unit/api_bed.h"

/* Storage of a matrix A, and how y = A x is written on it. */
static const struct Storage {
    const char *name, *sizes, *axes, *slots, *index, *product;
} storage[] = {
    { "dense", "m, n", "I = m, J = n", "I, J", "i, j", "Y[i] += A[i, j] * X[j]" },
    { "dense under", "m, n", "I = m, J(I) = n", "J", "j", "Y[i] += A[j] * X[j]" },
    { "CSR", "m, n", "I = m, J = compressed(I, n) sorted unique", "I, J", "i, j",
      "Y[i] += A[i, j] * X[j]" },
    { "CSR named", "m, n", "I = m, E(I) = seg : j < n", "E", "e", "Y[i] += A[e] * X[j(e)]" },
    { "DCSR", "m, n, r", "I = r : load < m sorted unique, J = compressed(I, n)", "I, J", "i, j",
      "Y[i] += A[i, j] * X[j]" },
    { "COO", "m, n, r", "E = r : i < m, j < n sorted unique", "E", "e",
      "Y[i(e)] += A[e] * X[j(e)]" },
    { "COO in two", "m, n, r", "I = r : load < m, J(I) = one : load < n", "I, J", "i, j",
      "Y[i] += A[j] * X[j]" },
    { "ELL", "m, n, w", "I = m, L = ell(I, w, n)", "I, L", "i, l", "Y[i] += A[i, l] * X[l]" },
    { "ELL of some rows", "m, n, r, w", "I = r : load < m, L(I) = w : load < n padded", "I, L",
      "i, l", "Y[i] += A[i, l] * X[l]" },
    { "dense rows", "m, n, r", "I = r : load < m, J(I) = n", "J", "j", "Y[i] += A[j] * X[j]" },
};
enum { NSTORAGE = sizeof storage / sizeof *storage, MOST = 12 };

typedef struct Matrix {
    int64_t m, n;
    double at[MOST][MOST]; /* 0: no entry */
} Matrix;

static void open_product(const struct Storage *s)
{
    char text[600];

    snprintf(text, sizeof text, "program p(%s)\naxis %s\nf64 A[%s], X[n], Y[m]\ny: %s\n", s->sizes,
             s->axes, s->slots, s->product);
    open_prog(text);
}

static void open_copy(const struct Storage *s, const char *type)
{
    char text[600];

    snprintf(text, sizeof text, "program p(%s)\naxis %s\n%s A[%s], B[%s]\nb: B[%s] = A[%s]\n",
             s->sizes, s->axes, type, s->slots, s->slots, s->index, s->index);
    open_prog(text);
}

static Matrix random_matrix(uint64_t *seed)
{
    Matrix a = { .m = (int64_t)(test_random(seed) % MOST),
                 .n = (int64_t)(test_random(seed) % MOST) };
    uint64_t quarters = test_random(seed) % 4;

    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++)
            if (test_random(seed) % 4 < quarters)
                a.at[i][j] = (double)(test_random(seed) % 9) - 4.5;
    return a;
}

/* Its entries, last row first. */
static const char *write_matrix(const Matrix *a)
{
    char text[4000];
    int nnz = 0;
    size_t n;

    for (int i = 0; i < MOST * MOST; i++)
        nnz += a->at[i / MOST][i % MOST] != 0;
    n = (size_t)snprintf(text, sizeof text,
                         "%%%%MatrixMarket matrix coordinate real general\n"
                         "%d %d %d\n",
                         (int)a->m, (int)a->n, nnz);
    for (int i = MOST - 1; i >= 0; i--)
        for (int j = 0; j < MOST; j++)
            if (a->at[i][j] != 0)
                n += (size_t)snprintf(text + n, sizeof text - n, "%d %d %g\n", i + 1, j + 1,
                                      a->at[i][j]);
    return write_text("a.mtx", text);
}

static void check_product(const Matrix *a, const double *x)
{
    weft_tensor y;

    OK(weft_args_get(args, "Y", &y));
    CHECK_EQ(y.shape[0], a->m);
    for (int64_t i = 0; i < a->m; i++) {
        double sum = 0;

        for (int64_t j = 0; j < a->n; j++)
            sum += a->at[i][j] * x[j];
        CHECK_NEAR(((double *)y.data)[i], sum, 0);
    }
}

TEST(a_matrix_in_every_storage_multiplies_as_the_dense_one)
{
    uint64_t seed = 7;
    double x[MOST];

    for (int j = 0; j < MOST; j++)
        x[j] = j - 5;
    for (int64_t round = test_scale(200); round > 0; round--) {
        Matrix a = random_matrix(&seed);

        write_matrix(&a);
        for (int s = 0; s < NSTORAGE; s++) {
            open_product(&storage[s]);
            OK(weft_args_read(args, "A", test_path("a.mtx")));
            bind("X", x, WEFT_F64, 1, &a.n);
            ok(weft_run(args), storage[s].name, __LINE__);
            check_product(&a, x);
            close_prog();
        }
    }
}

/* The file's entries, sorted, into one text that can be compared. */
static const char *slurp(const char *name, char *text, size_t room)
{
    FILE *f = fopen(test_path(name), "rb");
    size_t n;

    CHECK(f != NULL);
    n = fread(text, 1, room - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

TEST(a_matrix_comes_back_from_every_storage_as_it_went_in)
{
    uint64_t seed = 11;
    char first[8000], again[8000];

    for (int64_t round = test_scale(60); round > 0; round--) {
        Matrix a = random_matrix(&seed);

        write_matrix(&a);
        open_copy(&storage[3], "f64"); /* CSR writes the plain form to compare with */
        OK(weft_args_read(args, "A", test_path("a.mtx")));
        OK(weft_run(args));
        OK(weft_args_write(args, "B", test_path("csr.mtx")));
        close_prog();
        for (int s = 0; s < NSTORAGE; s++) {
            if (strncmp(storage[s].name, "dense", 5) == 0)
                continue; /* which has an entry everywhere */
            open_copy(&storage[s], "f64");
            OK(weft_args_read(args, "A", test_path("a.mtx")));
            OK(weft_run(args));
            OK(weft_args_write(args, "B", test_path("b.mtx")));
            CHECK_STR(slurp("b.mtx", again, sizeof again), slurp("csr.mtx", first, sizeof first));
            close_prog();
        }
    }
}

TEST(a_transposed_matrix_packs_into_csc)
{
    float x[] = { 1, 10, 100, 1000 };
    char path[600];

    open_prog("program csc(m, n)\naxis J = n, E(J) = seg : i < m\nf32 A[E], X[n], Y[m]\n"
              "y: Y[i(e)] += A[e] * X[j]\n");
    snprintf(path, sizeof path, "%s:T", write_text("a.mtx", small_mtx));
    OK(weft_args_read(args, "A", path));
    bind("X", x, WEFT_F32, 1, SHAPE(4));
    OK(weft_run(args));
    check_floats("Y", (const float[]){ 201.5f, 0, 490 }, 3);
    close_prog();
    open_prog("program csc(m, n)\naxis J = n, E(J) = seg : i < m\ni64 A[E], X[n], Y[m]\n"
              "y: Y[i(e)] += A[e] * X[j]\n");
    snprintf(path, sizeof path, "%s:T",
             write_text("a.mtx", "%%MatrixMarket matrix array integer general\n2 1\n5\n6\n"));
    OK(weft_args_read(args, "A", path));
    bind("X", ((int64_t[]){ 3 }), WEFT_I64, 1, SHAPE(1));
    OK(weft_run(args));
    close_prog();
}

TEST(the_width_of_ell_is_the_longest_row_or_what_is_given)
{
    float x[] = { 1, 1, 1, 1 };
    weft_tensor t;

    open_prog("program e(m, n, w)\naxis I = m, L = ell(I, w, n)\nf32 A[I, L] fill 7, X[n], Y[m]\n"
              "y: Y[i] += A[i, l] * X[l]\n");
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    bind("X", x, WEFT_F32, 1, SHAPE(4));
    OK(weft_run(args));
    OK(weft_args_get(args, "L.coord", &t));
    CHECK(t.ndim == 2 && t.shape[0] == 3 && t.shape[1] == 2);
    CHECK_EQ(((int64_t *)t.data)[2], -1);
    OK(weft_args_size(args, "w", 3));
    OK(weft_run(args));
    check_floats("Y", (const float[]){ 3.5f, 0, -0.5f }, 3);
    check_floats("A", (const float[]){ 1.5f, 2, 7, 7, 7, 7, -1, 0.5f, 7 }, 9);
    OK(weft_args_size(args, "w", 1));
    BAD(weft_run(args), WEFT_E_BIND, "row 0 of the matrix does not fit the 1 positions of axis L");
    CHECK_HAS(weft_message(ctx), "give a larger width");
    close_prog();
    open_prog("program e(m, n, w)\naxis I = m, L(I) = w : load < n\nf32 A[I, L], Y[m]\n"
              "y: Y[i] += A[i, l]\n");
    OK(weft_args_read(args, "A", test_path("a.mtx")));
    BAD(weft_run(args), WEFT_E_BIND, "row 1 of the matrix does not fill the 2 positions of axis L");
    CHECK_HAS(weft_message(ctx), "declare the axis padded");
    OK(weft_args_read(args, "A",
                      write_text("b.mtx", "%%MatrixMarket matrix array real general\n"
                                          "1 2\n1\n2\n")));
    OK(weft_run(args));
    close_prog();
}

TEST(what_a_dense_buffer_has_no_entry_for_is_its_fill)
{
    open_prog("program d(m, n)\nf32 A[m, n] fill -1, Y[m]\ny: for i in m, j in n: Y[i] += A[i, j]");
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    OK(weft_run(args));
    check_floats("Y", (const float[]){ 1.5f, -4, -2.5f }, 3);
    close_prog();
}

TEST(matrices_on_the_same_axes_must_have_the_same_structure)
{
    const char *other =
        "%%MatrixMarket matrix coordinate pattern general\n3 4 4\n1 1\n1 4\n3 2\n3 4\n";
    const char *longer =
        "%%MatrixMarket matrix coordinate pattern general\n3 4 5\n1 1\n1 3\n3 2\n3 4\n"
        "3 3\n";
    float want[] = { 2.25f, 4, 1, 0.25f };

    open_prog("program s(m, n)\naxis I = m, J = compressed(I, n)\nf32 A[J], B[J], C[J]\n"
              "c: C[j] = A[j] * B[j]\n");
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    OK(weft_args_read(args, "B", test_path("a.mtx")));
    OK(weft_run(args));
    check_floats("C", want, 4);
    OK(weft_args_read(args, "B", write_text("b.mtx", other)));
    BAD(weft_run(args), WEFT_E_BIND,
        "b.mtx: its entries are not where J.coord has them (first "
        "difference at position 1)");
    OK(weft_args_read(args, "B", write_text("b.mtx", longer)));
    BAD(weft_run(args), WEFT_E_BIND, "not where J.start has them (first difference at position 3)");
    bind("B", csr_value, WEFT_F32, 1, SHAPE(4));
    bind("J.start", csr_start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", csr_coord, WEFT_I32, 1, SHAPE(4));
    OK(weft_run(args));
    check_floats("C", want, 4);
    csr_coord[1] = 1;
    CHECK_EQ(weft_run(args), WEFT_E_BIND);
    csr_coord[1] = 2;
    OK(weft_run(args));
    close_prog();
}

TEST(axes_that_are_no_matrix_are_refused_with_the_remedy)
{
    static const char *const axes[][2] = {
        { "IB = m, JB(IB) = seg : load < n, BI = 2, BJ = 2", "JB, BI, BJ" },
        { "I = m, B(I) = 3 : j = i + b - 1 < n padded", "B" },
        { "I = m, E(I) = seg : j < n, k < n", "E" },
        { "I = m, J(I) = seg", "J" },
        { "I = m, J = 3 : load < n", "I, J" },
        { "I = m, J(I) = one : load < n", "J" },
        { "I = m, G(I) = n, J(G) = one : load < n", "J" },
        { "I = m : load < n", "I" },
        { "I = 2, J(I) = {1, 3}", "J" },
        { "R = m, I(R) = n", "R, I, 2" },
        { "R = m, I = n, J(R) = 2 : load < n", "J, I" },
        { "R = m, G(R) = 2, J(G) = seg : load < n", "J" },
        { "I = m : j = i / 2 < n, k = i % 2 < 2", "I" },
        { "I = m : j < n, k = i % 2 < 2", "I" },
        { "I = m : j < n, k < n, l < n", "I" },
        { "I = m : p < n, q < n, J = n", "I, J" },
        { "R = m, I(R) = 2 : j < n, k < n", "I" },
        { "I = m : a = i / 2 < n, J(I) = n", "J" },
        { "I = m, J(I) = 2 : q = i / 2 < n", "J" },
        { "I = 3, J(I) = 2 : table {0, 1, 0, 1, 0, 1}", "J" },
    };
    char text[300];

    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        snprintf(text, sizeof text,
                 "program p(m, n)\naxis %s\nf32 A[%s], Y[]\ny: for q in 3: Y[] += q", axes[i][0],
                 axes[i][1]);
        open_prog(text);
        BAD(weft_args_read(args, "A", write_text("a.mtx", small_mtx)), WEFT_E_BIND, "one by one");
        close_prog();
    }
}

TEST(the_shape_of_a_matrix_that_no_bound_tells_cannot_be_written)
{
    open_prog("program p(m, r)\naxis I = m, E(I) = seg : j\nf32 A[E], B[E]\nb: B[e] = A[e]");
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    OK(weft_args_size(args, "r", 1));
    OK(weft_run(args));
    BAD(weft_args_write(args, "B", test_path("b.mtx")), WEFT_E_BIND, "without a bound");
    close_prog();
}

TEST(a_matrix_too_large_to_store_is_refused)
{
    open_prog("program p(m, n)\nf32 A[m, n], Y[]\ny: for q in 3: Y[] += q");
    OK(weft_args_read(args, "A",
                      write_text("a.mtx", "%%MatrixMarket matrix coordinate real general\n"
                                          "9000000000000000000 9000000000000000000 0\n")));
    BAD(weft_run(args), WEFT_E_LIMIT, "more than can be stored");
    OK(weft_args_read(args, "A",
                      write_text("a.mtx", "%%MatrixMarket matrix coordinate real general\n"
                                          "900000000000000000 1 0\n")));
    CHECK_EQ(weft_run(args), WEFT_E_NOMEM);
    close_prog();
}
