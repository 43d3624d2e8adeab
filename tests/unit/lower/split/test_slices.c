/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/split/slices.c, run/slices.c, api/slices.c: parts of a scatter that more threads than there
 * are parts divide: the pieces of work, and the bits of results. */
#include "unit/kernel_bed.h"
#include "unit/ir_bed.h"

#include "lower/lower.h"

enum { ROWS = 60, NAMED = 500, MOST = 8000 };

static int64_t start[ROWS + 1], name64[MOST];
static int32_t start32[ROWS + 1], name32[MOST];
static float a[MOST], b[ROWS * 16];
static char lines[8000];

static void keep_line(void *user, const char *line)
{
    (void)user;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line);
}

/* Rows of 0 to 200 entries, with names in order or in none; numbers whose sums round. */
static void draw(bool ordered)
{
    uint64_t x = 99;

    for (int i = 0; i < ROWS; i++) {
        int64_t n = i % 7 == 3 ? 200 : i * 5 % 90, at = 0;

        start[i + 1] = start[i] + n;
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            at += (int64_t)(x >> 33) % (2 * NAMED / (n + 1) + 1);
            name64[e] = ordered ? at % NAMED : (int64_t)(x >> 33) % NAMED;
            a[e] = (float)((double)(x >> 11) * 0x1p-53 - 0.4);
        }
    }
    for (int i = 0; i < ROWS * 16; i++)
        b[i] = a[i % 977] * 3;
    for (int i = 0; i <= ROWS; i++)
        start32[i] = (int32_t)start[i];
    for (int i = 0; i < MOST; i++)
        name32[i] = (int32_t)name64[i];
}

/* Pieces of a phase; `label` is "; LABEL: ". */
static int64_t pieces_of(const char *label)
{
    const char *at = strstr(lines, label);
    long long n = -1, pieces = -1;

    CHECK(at != NULL && sscanf(at + strlen(label), "%lld in %lld", &n, &pieces) == 2);
    return pieces;
}

static const void *result(const char *name, size_t *bytes)
{
    weft_tensor t;

    OK(weft_args_get(args, name, &t));
    *bytes = 4;
    for (int d = 0; d < t.ndim; d++)
        *bytes *= (size_t)t.shape[d];
    return t.data;
}

static bool is_same(const char *name, const void *want)
{
    size_t n;
    const void *got = result(name, &n);

    return memcmp(want, got, n) == 0;
}

static void keep(const char *name, void *to, size_t room)
{
    size_t n;
    const void *got = result(name, &n);

    CHECK(n <= room);
    memcpy(to, got, n);
}

static void open_scatter(const char *text, int threads, int64_t part, bool narrow)
{
    open_kernel(text);
    ctx->part = part;
    lines[0] = 0;
    OK(weft_ctx_verbose(ctx, keep_line, NULL));
    OK(weft_ctx_threads(ctx, threads));
    bind("J.start", narrow ? (void *)start32 : start, narrow ? WEFT_I32 : WEFT_I64, 1,
         SHAPE(ROWS + 1));
    bind("J.k", narrow ? (void *)name32 : name64, narrow ? WEFT_I32 : WEFT_I64, 1,
         SHAPE(start[ROWS]));
    bind("A", a, WEFT_F32, 1, SHAPE(start[ROWS]));
    bind("B", b, WEFT_F32, 2, SHAPE(ROWS, 16));
    OK(weft_args_size(args, "n", NAMED));
}

static const char scatter[] =
    "program p(m, n)\naxis I = m, J(I) = seg : k < n, U = 2\nf32 A[J], B[I, 16], O[n, U], G[J]\n"
    "o: for i, j, u, v in 8: O[k(j), u] += A[j] * B[i, u + 2 * v]\n"
    "g: for i, j, v in 16: G[j] += B[i, v]\n";

/* The bits of O and G with many threads are those with one. */
static void check_bits(const char *text, int64_t part, bool narrow, int64_t least)
{
    static float o[NAMED * 2], g[MOST];
    static const int threads[] = { 1, 2, 16, 64, 300 };

    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        open_scatter(text, threads[k], part, narrow);
        OK(weft_kernel_run(kernel, args));
        if (threads[k] == 1) {
            keep("O", o, sizeof o);
            keep("G", g, sizeof g);
            CHECK(pieces_of("; o: ") <= 16);
        }
        CHECK(is_same("O", o));
        CHECK(is_same("G", g));
        if (threads[k] == 64)
            CHECK(pieces_of("; o: ") >= least);
        OK(weft_kernel_run(kernel, args)); /* once more, by the same plan */
        CHECK(is_same("O", o));
        close_prog();
    }
}

TEST(parts_are_divided_among_64_threads)
{
    for (int ordered = 0; ordered < 2; ordered++)
        for (int narrow = 0; narrow < 2; narrow++) {
            draw(ordered);
            check_bits(scatter, 30, narrow, 64);
            check_bits(scatter, 400, narrow, 1);
        }
}

static bool has_slices(Prog *p)
{
    bool has = false;

    for (int i = 0; i < p->nphase; i++)
        has = has || lower_has_slices(p, p->phase[i]);
    return has;
}

static void ask(Bed *bed, const char *body, bool *has)
{
    char text[2000];
    Prog *p;

    snprintf(text, sizeof text,
             "program p(m, n) stage loops\naxis I = m, E(I) = seg : j < n\n"
             "f32 X[E], R[I], O[n]\ninout f32 F[E, 3], Z[I]\n"
             "axis O_E = 1, P_E(O_E) = seg : first, end, S_E(P_E) = seg : part from rows(E, j)\n"
             "temp f32 O.part[P_E, n]\n"
             "phase o.init for x in 0..n\n    for q in P_E\n        O.part[q * n + x] = 0.0\n"
             "phase o for i in I balance E.start parts S_E.part\n%s",
             body);
    p = ir_parse(&bed->arena, "t.weft", text, strlen(text));
    ir_check(p);
    *has = has_slices(p);
}

static bool is_sliced(const char *body)
{
    Bed bed;
    bool has = false;

    bed_open(&bed);
    if (CATCH(&bed.err, ask(&bed, body, &has)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", bed.err.msg, body);
    bed_close(&bed);
    return has;
}

#define SCATTER "        O.part[S_E.part[i] * n + E.j[e]] += "

/* Only phases in which no entry sees another one may be told that a row has some of its entries. */
TEST(rows_whose_entries_see_each_other_stay_whole)
{
    CHECK(is_sliced("    for e in E[i]\n" SCATTER "X[e] * R[i]\n"));
    CHECK(is_sliced("    let r: f32 = R[i] * 2.0\n    for e in E[i]\n        let x: f32 = X[e]\n"
                    "        reg s: f32 = 0.0\n        for u in 0..3\n            s += x\n" SCATTER
                    "s * r\n        for u in 0..3\n            F[e * 3 + u] = x\n"));
    /* rows of the phase, elements that no entry owns, and one that several do */
    CHECK(!is_sliced("    for e in E[i]\n" SCATTER "X[e]\n        Z[i] += X[e]\n"));
    CHECK(!is_sliced("    for e in E[i]\n" SCATTER "X[e]\n    Z[i] = R[i]\n"));
    CHECK(!is_sliced("    for e in E[i]\n" SCATTER "X[e]\n        F[i] += X[e]\n"));
    CHECK(!is_sliced("    for e in E[i]\n" SCATTER "X[e]\n        F[E.j[e]] += X[e]\n"));
    /* registers and arrays that pass from entry to entry */
    CHECK(!is_sliced("    reg s: f32 = 0.0\n    for e in E[i]\n        s += X[e]\n" SCATTER "s\n"));
    /* what depends on the number of entries, or on where a row begins */
    CHECK(!is_sliced("    let n1: i64 = E.start[i + 1] - E.start[i]\n    for e in E[i]\n" SCATTER
                     "X[e] * f32(n1)\n"));
    CHECK(!is_sliced("    for e in E[i]\n" SCATTER "X[E.start[i]]\n"));
    CHECK(!is_sliced("    for e in E[i]\n        for e1 in E[i]\n    " SCATTER "X[e1]\n"));
    CHECK(!is_sliced("    for q in 0..(E.start[i + 1] - E.start[i]) / 2 of tiles(E[i], 2)\n"
                     "        for e in tiles(E[i], 2)[q]\n    " SCATTER "X[e]\n"));
    CHECK(!is_sliced("    check 0 < n else index\n    for e in E[i]\n" SCATTER "X[e]\n"));
}
