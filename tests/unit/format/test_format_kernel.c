/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * `format` in a schedule, through plans and machine code: every format against the interpreter, on
 * several numbers of threads, with 32- and 64-bit indices.  Data are small integers. */
#include "unit/kernel_bed.h"

#include "unit/format_bed.h"

typedef struct Case {
    const char *text;
    int ncoord;
} Case;

static const Case cases[] = {
    { "program spmm(m, n, f)\n"
      "axis I = m, E(I) = seg : j < n, K = f\n"
      "f64 A[E], B[n, K], C[I, K]\n"
      "c: C[i, k] += A[e] * B[j(e), k]\n",
      2 },
    { "program softmax(m, n, f)\n"
      "axis I = m, E(I) = seg : j < n, K = f\n"
      "f64 A[E], B[n, K], C[I, K], S[E]; temp f64 M[I]\n"
      "m: M[i] max= A[e]\n"
      "s: S[e] = M[i] - A[e]\n"
      "c: C[i, k] += S[e] * B[j(e), k]\n",
      2 },
    { "program relations(q, m, n, f)\n"
      "axis R = q, I(R) = m, E(I) = seg : j < n, K = f\n"
      "f64 A[E], W[R], B[n, K], C[m, K], S[E]\n"
      "c: C[i, k] += A[e] * W[r] * B[j(e), k]\n"
      "s: S[e] += W[r] * B[j(e), k]\n",
      3 },
};

enum { F = 5, MOST = 4000 };

typedef struct Data {
    Entries m;
    int64_t rows, start64[FMT_MOST_ENTRIES + 1], col64[FMT_MOST_ENTRIES];
    int32_t start32[FMT_MOST_ENTRIES + 1], col32[FMT_MOST_ENTRIES];
    double a[FMT_MOST_ENTRIES], w[32], b[32 * F], want[MOST], got[MOST], s[FMT_MOST_ENTRIES],
        edge[FMT_MOST_ENTRIES];
} Data;

static void make_rows(Data *d)
{
    const Entries *m = &d->m;
    int64_t at = 0;

    d->rows = m->e.ncoord == 3 ? m->e.bound[0] * m->e.bound[1] : m->e.bound[0];
    for (int64_t r = 0; r < d->rows; r++) {
        d->start64[r] = at;
        for (int64_t x = 0; x < m->e.n; x++)
            if ((m->e.ncoord == 3 ? m->at[0][x] * m->e.bound[1] + m->at[1][x] : m->at[0][x]) == r)
                d->col64[at++] = m->at[m->e.ncoord - 1][x];
    }
    d->start64[d->rows] = at;
    for (int64_t r = 0; r <= d->rows; r++)
        d->start32[r] = (int32_t)d->start64[r];
    for (int64_t x = 0; x < m->e.n; x++)
        d->col32[x] = (int32_t)d->col64[x];
}

static void draw(double *to, int n, uint64_t *seed)
{
    for (int k = 0; k < n; k++)
        to[k] = (double)(fmt_draw(seed, 9) - 4);
}

static void bind_case(Data *d, bool wide)
{
    int nc = d->m.e.ncoord;
    int64_t m = d->m.e.bound[nc - 2], n = d->m.e.bound[nc - 1];

    OK(weft_args_size(args, "m", m));
    OK(weft_args_size(args, "n", n));
    if (nc == 3) {
        OK(weft_args_size(args, "q", d->m.e.bound[0]));
        bind("W", d->w, WEFT_F64, 1, SHAPE(d->m.e.bound[0]));
    }
    bind("E.start", wide ? (void *)d->start64 : (void *)d->start32, wide ? WEFT_I64 : WEFT_I32, 1,
         SHAPE(d->rows + 1));
    bind("E.j", wide ? (void *)d->col64 : (void *)d->col32, wide ? WEFT_I64 : WEFT_I32, 1,
         SHAPE(d->m.e.n));
    bind("A", d->a, WEFT_F64, 1, SHAPE(d->m.e.n));
    bind("B", d->b, WEFT_F64, 2, SHAPE(n, F));
    bind("C", d->got, WEFT_F64, 2, SHAPE(m, F));
}

static void run_case(Data *d, const char *spec, uint64_t *seed)
{
    int64_t size = d->m.e.bound[d->m.e.ncoord - 2] * F;
    static const int threads[] = { 1, 2, 7 };

    draw(d->a, FMT_MOST_ENTRIES, seed);
    draw(d->b, 32 * F, seed);
    draw(d->w, 32, seed);
    make_rows(d);
    bind_case(d, true);
    OK(weft_run(args));
    memcpy(d->want, d->got, (size_t)size * sizeof *d->got);
    for (int t = 0; t < 3; t++) {
        memset(d->got, 1, sizeof d->got);
        OK(weft_ctx_threads(ctx, threads[t]));
        bind_case(d, t % 2 == 0);
        if (weft_kernel_run(kernel, args) != WEFT_OK)
            test_fail(__FILE__, __LINE__, "%s: %s", spec, weft_message(ctx));
        for (int64_t x = 0; x < size; x++)
            if (d->want[x] != d->got[x])
                test_fail(__FILE__, __LINE__, "%s, %d threads: C[%lld] is %g, not %g", spec,
                          threads[t], (long long)x, d->got[x], d->want[x]);
    }
}

static void try_case(const Case *c, const FormatCase *f, uint64_t *seed)
{
    char spec[256], sched[300];
    Data *d = calloc(1, sizeof *d);
    weft_plan plan;

    CHECK(d != NULL);
    fmt_spec(f, seed, spec);
    snprintf(sched, sizeof sched, "format E %s", spec);
    set_cache();
    open_prog(c->text);
    OK(weft_prog_schedule(prog, sched));
    compile();
    if (info_of(kernel).why[0] != '\0')
        test_fail(__FILE__, __LINE__, "%s: %s", spec, info_of(kernel).why);
    for (int kind = 0; kind < 8; kind++) {
        fmt_random(&d->m, seed, c->ncoord, kind, f->twice);
        run_case(d, spec, seed);
        OK(weft_args_plan(args, &plan));
        CHECK_EQ(plan.formats, 1);
    }
    weft_kernel_free(kernel);
    close_prog();
    free(d);
}

TEST(kernels_over_every_format_give_the_same)
{
    uint64_t seed = 4;
    int turn = 0;

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int f = 0; f < NFORMATS; f++)
            if (format_case[f].ncoord == cases[c].ncoord && (c != 1 || f % 3 == 0) &&
                turn++ < test_scale(100))
                try_case(&cases[c], &format_case[f], &seed);
}

/* Columns below d apart from the others, those by columns. */
TEST(kernels_over_a_rule_of_ones_own_give_the_same)
{
    static const FormatCase own = { "apart(d = 5) { part low where j < d\n"
                                    "axis I = m, E(I) = seg : j < n sorted; part high;\n"
                                    "axis J = n, E(J) = seg : i < m sorted }",
                                    2, true, false };
    uint64_t seed = 7;

    try_case(&cases[0], &own, &seed);
}
