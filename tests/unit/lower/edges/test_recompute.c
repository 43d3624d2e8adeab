/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/edges/recompute.c, flat.c: which temporaries are made in the sweeps that read them, and
 * which stay; which loops are one range.  A wrong yes is a wrong result; a wrong no is slower
 * code only. */
#include "lower/registers/registers_int.h"
#include "unit/rows_bed.h"

#define HEAD                                                         \
    "program p(m, n) stage loops\n"                                  \
    "axis I = m, E(I) = seg : j < n\n"                               \
    "f32 X[n, 24], H[E, 3], M[3, 24], G[I], S[E]; inout f32 Z[I, 24]\n" \
    "temp f32 W[E, 24], T[E, 3]\n"
#define FIRST "init W = 0.0\n"
#define AGAIN "phase a for x in 0..size(E)\n    for y in 0..24\n        W[x * 24 + y] = 0.0\n"
#define ROWS "phase w for i in 0..m balance E.start\n    for e in E.start[i]..E.start[i + 1]\n"
#define TERM "        for l in 0..3\n            for u in 0..24\n                "
#define BESIDE(sum) "        for l in 0..3\n            " sum "\n"
#define SUM ROWS TERM "W[e * 24 + u] += H[e * 3 + l] * M[l * 24 + u]\n"
#define SWEEP(at)                                                                  \
    "phase z for i in 0..m balance E.start\n    for e in E.start[i]..E.start[i + 1]\n" \
    "        for u in 0..16\n            Z[i * 24 + u] += X[E.j[e] * 24 + u] * W[" at " + u]\n" \
    "        for u in 0..8\n"                                                      \
    "            Z[i * 24 + u + 16] += X[E.j[e] * 24 + u + 16] * W[" at " + u + 16]\n"

static const RowsCase made[] = {
    { FIRST SUM SWEEP("e * 24"), true },
    { FIRST "phase w for e in 0..size(E)\n    for l in 0..3\n        for u in 0..24\n"
            "            W[e * 24 + u] += H[e * 3 + l] * M[l * 24 + u]\n" SWEEP("e * 24"),
      true },
    { FIRST ROWS "        for k in 0..2\n            for l in 0..3\n                for u in 0..24\n"
                 "                    W[e * 24 + u] += H[e * 3 + l] * M[l * 24 + u]\n"
          SWEEP("e * 24"),
      true },
    /* elsewhere it is read, too: before, after, in a sweep at another place or at two */
    { FIRST "phase s for i in 0..m balance E.start\n    for e in E.start[i]..E.start[i + 1]\n"
            "        S[e] = W[e * 24]\n" SUM SWEEP("e * 24"),
      false },
    { FIRST SUM SWEEP("e * 24") "phase s for e in 0..size(E)\n    S[e] = W[e * 24]\n", false },
    { FIRST SUM SWEEP("E.j[e] * 24"), false },
    { FIRST SUM SWEEP("(e + 1) * 24"), false },
    { FIRST SUM SWEEP("e * 24 + i"), false },
    { FIRST SUM SWEEP("e * 8"), false },
    { FIRST SUM SWEEP("(e + u) * 24"), false },
    { FIRST SUM SWEEP("(e + i) * 24"), true },
    /* begun with what is no constant, by halves, or twice; or written again */
    { "phase a for x in 0..size(E)\n    for y in 0..24\n        W[x * 24 + y] = S[x]\n" SUM
          SWEEP("e * 24"),
      false },
    { "phase a for x in 0..m\n    for y in 0..24\n        W[x * 24 + y] = 0.0\n" SUM
          SWEEP("e * 24"),
      false },
    { FIRST AGAIN SUM SWEEP("e * 24"), false },
    { AGAIN SUM SWEEP("e * 24"), false },
    { FIRST SUM SUM SWEEP("e * 24"), false },
    { "init W[x, y] = select(E.start[0] < x, 0.0, 1.0)\n" SUM SWEEP("e * 24"), false },
    /* beside another sum of the entry, which stays, but not beside one of its own row */
    { FIRST "init T = 0.0\n" SUM BESIDE("T[e * 3 + l] += H[e * 3 + l]") SWEEP("e * 24"), true },
    { FIRST SUM BESIDE("W[e * 24 + l] += H[e * 3 + l]") SWEEP("e * 24"), false },
    { FIRST SUM SWEEP("e * 24") AGAIN, false },
    /* the sum is of what the row of the phase has, of other elements, or of what changes later */
    { FIRST ROWS TERM "W[e * 24 + u] += G[i] * M[l * 24 + u]\n" SWEEP("e * 24"), false },
    { FIRST ROWS TERM "W[e * 24 + u] max= H[e * 3 + l] * M[l * 24 + u]\n" SWEEP("e * 24"), false },
    { FIRST ROWS "        for l in 0..3\n            for u in 0..16\n"
                 "                W[e * 24 + u] += H[e * 3 + l] * M[l * 24 + u]\n" SWEEP("e * 24"),
      false },
    { FIRST ROWS "        for u in 0..24\n            W[e * 24 + u] += M[u]\n" SWEEP("e * 24"),
      false },
    { FIRST ROWS "        for l in 0..n\n            for u in 0..24\n"
                 "                W[e * 24 + u] += M[u]\n" SWEEP("e * 24"),
      false },
    { "phase a for x in 0..size(E)\n    for y in 0..3\n        T[x * 3 + y] = 1.0\n" FIRST ROWS TERM
      "W[e * 24 + u] += T[e * 3 + l] * M[l * 24 + u]\n" SWEEP("e * 24"),
      true },
    { "phase a for x in 0..size(E)\n    for y in 0..3\n        T[x * 3 + y] = 1.0\n" FIRST ROWS TERM
      "W[e * 24 + u] += T[e * 3 + l] * M[l * 24 + u]\n"
      "phase b for x in 0..size(E)\n    for y in 0..3\n        T[x * 3 + y] = 2.0\n" SWEEP("e * 24"),
      false },
};

static bool is_gone(const char *body, LowerTile how)
{
    return rows_are_gone(lower_factor, HEAD, body, how);
}

TEST(rows_are_made_in_sweeps_where_nothing_else_reads_them)
{
    LowerTile how = { .unit = ROWS_UNIT, .registers = 8, .sweep = 8 };

    rows_check(lower_factor, HEAD, made, sizeof made / sizeof *made, how);
}

TEST(rows_stay_where_tiles_of_them_are_large)
{
    LowerTile how = { .unit = ROWS_UNIT, .registers = 8 };

    CHECK(!is_gone(made[0].body, how));
    how.sweep = LIMIT_ROWS;
    CHECK(is_gone(made[0].body, how));
    how.sweep = LIMIT_ROWS + 1;
    CHECK(!is_gone(made[0].body, how));
}

#define TABLES                                                                        \
    "program p(m) stage positions\naxis T = 3, Q(T) = { 2, 0, 3 }, R(T) = { 2, 1, 3 }\n" \
    "f32 A[5], B[5], C[T]\n"

static const struct {
    const char *body;
    int loops; /* in the phase, with the one around several */
} ranges[] = {
    { "for u in 0..Q.size[t]\n            A[Q.start[t] + u] = B[Q.start[t] + u]\n", 1 },
    { "for u in 0..Q.size[t]\n            A[Q.start[t] + u] = C[t]\n", 3 },
    { "for u in 0..R.size[t]\n            A[Q.start[t] + u] = 1.0\n", 3 },
    { "for u in 0..Q.size[t]\n            A[u] = 1.0\n", 3 },
};

static int count_loops(const Node *n)
{
    int count = n->kind == N_FOR && n->how == FOR_SERIAL;

    for (int i = 0; i < n->nbody; i++)
        count += count_loops(n->body[i]);
    return count;
}

TEST(ranges_in_line_are_one_loop)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        char body[400];
        Bed b;
        Kernel k;

        snprintf(body, sizeof body, "phase a\n    for t in 0..3\n        %s", ranges[i].body);
        bed_open(&b);
        k = rows_kernel(&b, TABLES, body);
        if (CATCH(&b.err, lower_unroll(&k)) != ST_OK)
            test_fail(__FILE__, __LINE__, "%s", b.err.msg);
        if (count_loops(k.phase[0]) != ranges[i].loops)
            test_fail(__FILE__, __LINE__, "%d loops: %s", count_loops(k.phase[0]), ranges[i].body);
        bed_close(&b);
    }
}
