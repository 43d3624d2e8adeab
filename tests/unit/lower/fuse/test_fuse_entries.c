/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/fuse/entries.c, used.c: which rows of entries are used where they are made, and which
 * stay an array of all entries.  A wrong yes is a wrong result; a wrong no costs memory only. */
#include "lower/registers/registers_int.h"
#include "unit/rows_bed.h"

#define HEAD                                                                                   \
    "program p(m, n) stage positions\n"                                                        \
    "axis I = m, E(I) = seg : j < n, place < n once, F(I) = seg : k < n\n"                        \
    "f32 X[n, 8], H[E, 3], M[3, 8], Y[E, 3]; inout f32 Z[I, 8], G[E, 3], D[3, 8], B[n, 3], "   \
    "C[n, 8], S[600, 600], O[E, 8], R[]\n"                                                     \
    "temp f32 W[E, 8]\n"
#define FIRST "init W = 0.0\n"
#define ROWS "phase w for i in 0..m balance E.start\n    for e in E.start[i]..E.start[i + 1]\n"
#define MAKE ROWS "        for u in 0..8\n            W[e, u] += X[E.j[e], u]\n"
#define AGAIN ROWS "        for u in 0..4\n            W[e, u] += Z[i, u]\n"
#define USE(sum)                                                                            \
    "phase u for l in 0..3\n    for i in 0..m\n        for e in E.start[i]..E.start[i + 1]\n" \
    "            for u in 0..8\n                " sum "\n"
#define SERIAL(sum)                                                                          \
    "phase u\n    for l in 0..3\n        for i in 0..m\n"                                   \
    "            for e in E.start[i]..E.start[i + 1]\n                for u in 0..8\n"       \
    "                    " sum "\n"
#define OWN "G[e, l] += W[e, u] * M[l, u]"
#define ALL "D[l, u] += W[e, u] * H[e, l]"

static const RowsCase cases[] = {
    { FIRST MAKE USE(OWN), true },
    { FIRST MAKE USE(ALL), true },
    { FIRST MAKE USE("B[E.place[e], l] += W[e, u] * M[l, u]"), true },
    { FIRST MAKE USE(OWN "\n                " ALL), true },
    { FIRST MAKE AGAIN USE(OWN) USE(ALL), true },
    { FIRST MAKE "phase u for u in 0..8\n    for i in 0..m\n"
                 "        for e in E.start[i]..E.start[i + 1]\n            D[0, u] += W[e, u]\n",
      true },
    /* elements without an index, which all entries share */
    { FIRST MAKE SERIAL("R[] += W[e, u] * H[e, l]"), true },
    { FIRST MAKE SERIAL(OWN "\n                    R[] += Y[e, l]"), true },
    { FIRST MAKE USE("G[e, l] += W[e, u] * R[]"), true },
    { FIRST MAKE SERIAL("R[] max= W[e, u] * H[e, l]"), false },
    { FIRST MAKE SERIAL("R[] += W[e, u] * R[]"), false },
    /* what is between has nothing to do with it, or has */
    { FIRST MAKE "phase b for x in 0..3\n    for y in 0..8\n        D[x, y] = 1.0\n" USE(ALL),
      true },
    { FIRST AGAIN "phase b for x in 0..m\n    for y in 0..8\n        Z[x, y] = 1.0\n" USE(ALL),
      false },
    { FIRST MAKE USE(OWN) "phase b for x in 0..size(E)\n    for y in 0..3\n"
                          "        G[x, y] = 1.0\n" USE(ALL),
      false },
    { FIRST ROWS "        for u in 0..8\n            W[e, u] += D[0, u]\n" USE(ALL), false },
    { FIRST MAKE USE("G[e, l] += W[e, u] * D[l, u]") USE(ALL), false },
    /* read by what is no product of the entry's */
    { FIRST MAKE, false },
    { FIRST MAKE USE(OWN) "phase r for e in 0..size(E)\n    G[e, 0] += W[e, 0]\n",
      false },
    { FIRST MAKE USE("G[e, l] += W[E.place[e], u]"), false },
    { FIRST MAKE USE("Z[i, l] += W[e, u] * M[l, u]"), false },
    { FIRST MAKE USE("C[E.j[e], l] += W[e, u] * M[l, u]"), false },
    { FIRST MAKE USE("G[e, l] max= W[e, u] * M[l, u]"), false },
    { FIRST MAKE USE("G[e, l] += W[e, u] * G[e, l]"), false },
    { FIRST MAKE USE("S[l, u] += W[e, u]"), false },
    { FIRST MAKE "phase u for i in 0..m\n    for e in E.start[i]..E.start[i + 1]\n"
                 "        G[e, 0] += W[e, 0]\n",
      false },
    { FIRST MAKE "phase u for l in 0..3\n    for i in 0..m\n"
                 "        for e in F.start[i]..F.start[i + 1]\n            for u in 0..8\n"
                 "                D[l, u] += W[e, u]\n",
      false },
    { FIRST MAKE "phase u for l in 0..n\n    for i in 0..m\n"
                 "        for e in E.start[i]..E.start[i + 1]\n            for u in 0..8\n"
                 "                B[l, 0] += W[e, u]\n",
      false },
    { FIRST MAKE "phase u for i in 0..m\n    for e in E.start[i]..E.start[i + 1]\n"
                 "        for u in 0..8\n            if W[e, u] > 0.0\n"
                 "                O[e, u] += 1.0\n",
      false },
    /* made by what is no sum of the entry's, begun otherwise, or written again */
    { FIRST ROWS "        for u in 0..8\n            W[e, u] max= X[E.j[e], u]\n" USE(OWN), false },
    { FIRST ROWS "        for u in 0..8\n            W[E.place[e], u] += X[E.j[e], u]\n" USE(OWN),
      false },
    { FIRST ROWS "        for u in 0..8\n            W[e, u] += W[e, u]\n" USE(OWN), false },
    { FIRST MAKE USE(OWN) AGAIN, false },
    { "phase a for x in 0..size(E)\n    for y in 0..8\n        W[x, y] = Y[x, 0]\n" MAKE USE(OWN),
      false },
    { "phase a for x in 0..size(E)\n    for y in 0..7\n        W[x, y] = 0.0\n" MAKE USE(OWN),
      false },
    { "phase a for x in 0..size(E)\n    W[x, 0] = 0.0\n" MAKE USE(OWN), false },
    { "phase a for x in 0..size(E)\n    for y in 0..8\n        W[x, y] = R[]\n" MAKE USE(OWN),
      false },
};

static void lower_all(Kernel *k, LowerTile how)
{
    lower_fuse_entries(k);
    loop_check(k->p);
    lower_split_sums(k);
    loop_check(k->p);
    lower_flatten(k);
    loop_check(k->p);
    lower_factor(k, how);
    loop_check(k->p);
}

TEST(rows_are_used_where_they_are_made)
{
    LowerTile how = { .unit = ROWS_UNIT, .registers = 8, .sweep = 8 };

    rows_check(lower_all, HEAD, cases, sizeof cases / sizeof *cases, how);
    how.sweep = 0;
    CHECK(rows_are_gone(lower_all, HEAD, cases[0].body, how));
}

#define LOOPS                                                                             \
    "program p(m, n) stage loops\n"                                                       \
    "axis I = m, E(I) = seg : j < n\n"                                                    \
    "f32 X[n, 8], M[3, 8]; inout f32 G[E, 3], D[3, 8], O[E, 8]; temp f32 W[E, 8]\n"       \
    "temp work f32 W.work1[8]\n"                                                          \
    "phase p for i in 0..m balance E.start\n    for e in E.start[i]..E.start[i + 1]\n"
#define BEGIN "        for x in 0..8\n            W.work1[x] = 0.0\n"
#define ADD "        for u in 0..8\n            W.work1[u] += X[E.j[e] * 8 + u]\n"
#define SUM                                                                               \
    "        for l in 0..3\n            for u in 0..8\n"                                  \
    "                G[e * 3 + l] += W.work1[u] * M[l * 8 + u]\n"

/* Whether the array of an entry becomes one of a tile. */
static bool is_tiled(const char *body, LowerTile how)
{
    Bed b;
    Kernel k;
    bool tiled = false;

    bed_open(&b);
    k = rows_kernel(&b, LOOPS, body);
    if (CATCH(&b.err, lower_factor(&k, how); loop_check(k.p);
              tiled = !rows_has_array(k.p, "W.work1")) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b.err.msg, body);
    bed_close(&b);
    return tiled;
}

TEST(arrays_of_an_entry_become_those_of_a_tile)
{
    LowerTile how = { .unit = ROWS_UNIT, .registers = 8, .sweep = 8 };

    CHECK(is_tiled(BEGIN ADD SUM, how));
    CHECK(is_tiled(BEGIN ADD SUM "        for u in 0..8\n            O[e * 8 + u] += X[u]\n", how));
    CHECK(!is_tiled(BEGIN ADD BEGIN ADD SUM, how)); /* begun twice, */
    CHECK(!is_tiled("        for x in 0..7\n            W.work1[x] = 0.0\n" ADD SUM, how)); /* in part */
    CHECK(!is_tiled(BEGIN ADD SUM SUM, how));      /* products that add to the same */
    CHECK(!is_tiled(BEGIN SUM ADD, how));          /* or come too soon */
    CHECK(!is_tiled(BEGIN ADD "        O[e * 8] += W.work1[0]\n" SUM, how));
    how.sweep = 0;
    CHECK(!is_tiled(BEGIN ADD SUM, how));
}

#define WIDE                                                              \
    "program p(m, n) stage positions\n"                                   \
    "axis I = m, E(I) = seg : j < n\n"                                    \
    "f32 X[n, 4096], M[3, 4096]; inout f32 G[E, 3]; temp f32 W[E, 4096]\n"

TEST(tiles_of_wide_rows_have_fewer_entries)
{
    LowerTile how = { .unit = ROWS_UNIT, .registers = 8, .sweep = LIMIT_ROWS };
    const char *body =
        "init W = 0.0\n"
        ROWS "        for u in 0..4096\n            W[e, u] += X[E.j[e], u]\n"
        "phase u for l in 0..3\n    for i in 0..m\n        for e in E.start[i]..E.start[i + 1]\n"
        "            for u in 0..4096\n                G[e, l] += W[e, u] * M[l, u]\n";

    CHECK(rows_are_gone(lower_all, WIDE, body, how));
}

/* Phases after sums of all iterations are cut: one more where that can be. */
static int parts_of(const char *sums)
{
    char body[600];
    Bed b;
    Kernel k;
    int n = 0;

    bed_open(&b);
    snprintf(body, sizeof body,
             "phase s\n    for i in 0..m\n        for e in E.start[i]..E.start[i + 1]\n"
             "            for u in 0..8\n%s", sums);
    k = rows_kernel(&b, HEAD, body);
    if (CATCH(&b.err, lower_split_sums(&k); loop_check(k.p); n = k.n) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b.err.msg, body);
    bed_close(&b);
    return n;
}

TEST(sums_of_all_rows_are_cut_beside_those_of_each)
{
#define SHARED "                D[0, u] += X[E.j[e], u]\n"
    /* phases: of parts, of groups of parts, of their sum; a phase that cannot be cut stays one */
    CHECK_EQ(parts_of(SHARED), 3);
    CHECK_EQ(parts_of(SHARED "                O[e, u] += X[E.j[e], u]\n"), 3);
    CHECK_EQ(parts_of(SHARED "                C[E.place[e], u] += X[E.j[e], u]\n"), 3);
    CHECK_EQ(parts_of(SHARED "                Z[i, u] += X[E.j[e], u]\n"), 3);
    CHECK_EQ(parts_of(SHARED "                C[E.j[e], u] += X[E.j[e], u]\n"), 1);
    CHECK_EQ(parts_of(SHARED "                O[e, u] += O[e, u]\n"), 1);
    CHECK_EQ(parts_of(SHARED "                S[u, u] += X[E.j[e], u]\n"), 1);
}
