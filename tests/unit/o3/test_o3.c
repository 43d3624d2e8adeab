/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * o3/: irreps as text, roots that are rounded once, 3j symbols and what defines them, D
 * matrices. */
#include "unit/ir_bed.h"

#include "o3/o3_int.h"

#include <math.h>
#include <stdlib.h>

static const char *printed(Bed *b, O3Irreps irreps)
{
    Text out = { .arena = &b->arena };

    o3_irreps_print(&out, irreps);
    return out.s;
}

TEST(irreps_read_with_and_without_blanks)
{
    static const struct {
        const char *text, *same;
        int64_t dim, num;
        int lmax;
    } row[] = {
        { "128x0e + 64x1o", "128x0e+64x1o", 320, 192, 1 },
        { "0e", "1x0e", 1, 1, 0 },
        { " 4 x 1o+2x0e\t", "4x1o+2x0e", 14, 6, 1 },
        { "", "", 0, 0, -1 },
        { "  ", "", 0, 0, -1 },
        { "0x3o+2y+1y", "0x3o+1x2e+1x1o", 8, 2, 2 },
        { "16e", "1x16e", 33, 1, 16 },
        { "1073741824x0o", "1073741824x0o", 1 << 30, 1 << 30, 0 },
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bed b;
        O3Irreps irreps;

        bed_open(&b);
        CHECK_EQ(CATCH(&b.err, irreps = o3_irreps(&b.arena, row[i].text)), ST_OK);
        CHECK_STR(printed(&b, irreps), row[i].same);
        CHECK_EQ(o3_dim(irreps), row[i].dim);
        CHECK_EQ(o3_num(irreps), row[i].num);
        CHECK_EQ(o3_lmax(irreps), row[i].lmax);
        CHECK(o3_irreps_equal(irreps, o3_irreps(&b.arena, row[i].same)));
        bed_close(&b);
    }
}

TEST(what_is_no_irreps_is_refused_with_its_place)
{
    static const struct {
        const char *text, *part;
    } row[] = {
        { "4x", "a degree is missing at character 3" },
        { "4x1", "a parity (e or o) is missing at character 4" },
        { "1e+", "a multiplicity or a degree is missing at character 4" },
        { "+1e", "a multiplicity or a degree is missing at character 1" },
        { "1e 1o", "a + is missing at character 4" },
        { "1z", "a parity (e or o) is missing at character 2" },
        { "1e+17o", "a degree that is too large at character 4" },
        { "-1x0e", "at character 1" },
        { "1073741825x0e", "a number that is too large at character 1" },
        { "99999999999999999999x0e", "a number that is too large at character 1" },
        { "2x3x1o", "a parity (e or o) is missing at character 4" },
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bed b;

        bed_open(&b);
        CHECK_EQ(CATCH(&b.err, o3_irreps(&b.arena, row[i].text)), ST_PARSE);
        CHECK_HAS(b.err.msg, row[i].part);
        CHECK_HAS(b.err.msg, row[i].text);
        bed_close(&b);
    }
}

TEST(sorting_is_stable_and_can_be_undone)
{
    static const int to[] = { 4, 1, 5, 0, 2, 3 };
    Bed b;
    O3Irreps irreps;
    O3Sorted s;

    bed_open(&b);
    irreps = o3_irreps(&b.arena, "2x1e+3x0e+1e+0o+5x0e+4x1o");
    s = o3_sort(&b.arena, irreps);
    CHECK_STR(printed(&b, s.irreps), "1x0o+3x0e+5x0e+4x1o+2x1e+1x1e");
    for (int i = 0; i < irreps.n; i++) {
        CHECK_EQ(s.to[i], to[i]);
        CHECK_EQ(s.from[s.to[i]], i);
    }
    CHECK_STR(printed(&b, o3_simplify(&b.arena, irreps)), "2x1e+3x0e+1x1e+1x0o+5x0e+4x1o");
    CHECK_STR(printed(&b, o3_regroup(&b.arena, irreps)), "1x0o+8x0e+4x1o+3x1e");
    bed_close(&b);
}

TEST(irreps_are_simplified_filtered_and_counted)
{
    Bed b;
    O3Irreps irreps, some;
    int64_t *start;

    bed_open(&b);
    irreps = o3_irreps(&b.arena, "2x0e+0x0e+1x0e+0x1o+2x1o+0x2e+1x1o");
    some = o3_irreps(&b.arena, "1o+2e");
    CHECK_STR(printed(&b, o3_simplify(&b.arena, irreps)), "3x0e+3x1o");
    CHECK_STR(printed(&b, o3_filter(&b.arena, irreps, some, true)), "0x1o+2x1o+0x2e+1x1o");
    CHECK_STR(printed(&b, o3_filter(&b.arena, irreps, some, false)), "2x0e+0x0e+1x0e");
    CHECK_STR(printed(&b, o3_irreps_sh(&b.arena, 2, -1)), "1x0e+1x1o+1x2e");
    CHECK_STR(printed(&b, o3_irreps_sh(&b.arena, 2, 1)), "1x0e+1x1e+1x2e");
    CHECK_EQ(o3_count(irreps, (O3Irrep){ 1, -1 }), 3);
    CHECK(o3_has(irreps, (O3Irrep){ 2, 1 }) && !o3_has(irreps, (O3Irrep){ 2, -1 }));
    start = o3_slices(&b.arena, irreps);
    CHECK_EQ(start[4], 3);
    CHECK_EQ(start[5], 9);
    CHECK_EQ(start[7], 12);
    bed_close(&b);
}

/* The square root of IEEE 754 is rounded once, and so is a division by 4^k. */
TEST(roots_are_rounded_once)
{
    uint64_t seed = 1;

    for (int64_t i = 0; i < test_scale(20000); i++) {
        uint64_t bits = 1 + test_random(&seed) % 53;
        double n = (double)(test_random(&seed) % ((uint64_t)1 << bits)),
               four = ldexp(1, 2 * (int)(i % 20));

        CHECK_SAME(o3_root(n, 1), sqrt(n));
        CHECK_SAME(o3_root(n, four), sqrt(n / four));
    }
    for (int k = 2; k <= 52; k++) { /* beside a power of two, where the gap changes */
        double p = ldexp(1, k);

        CHECK_SAME(o3_root(p - 1, 1), sqrt(p - 1));
        CHECK_SAME(o3_root(p + 1, 1), sqrt(p + 1));
        CHECK_SAME(o3_root((p - 1) * 2, 2), sqrt(p - 1));
    }
    CHECK_SAME(o3_root(0x1.fffffffffffffp52, 0x1p53), 0x1.fffffffffffffp-1);
    CHECK_SAME(o3_root(1, 3), 0x1.279a74590331cp-1);
    CHECK_SAME(o3_root(0, 7), 0.0);
}

/* v is the double next to sqrt(a / b), for a and b below 2^10. */
static bool is_nearest(double v, uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 Wide;
    int e;
    Wide m = (Wide)ldexp(frexp(v, &e), 53), twice = (Wide)a;

    for (e -= 53; e < 1; e++) /* (2 v)^2 in units of the last place of v */
        twice *= 4;
    return (2 * m - 1) * (2 * m - 1) * b <= twice && twice <= (2 * m + 1) * (2 * m + 1) * b;
}

TEST(roots_of_fractions_are_the_nearest_doubles)
{
    Nat num, den;

    for (uint64_t a = 1; a < 1024; a += 7)
        for (uint64_t b = 1; b < 1024; b += 5)
            CHECK(is_nearest(o3_root((double)a, (double)b), a, b));
    /* both look like 2^64, and the root is nearer to the double below 1 than to 1 */
    nat_set(&num, UINT64_MAX - 999);
    nat_set(&den, ((uint64_t)1 << 63) + 617);
    nat_mul(&den, 2);
    CHECK_SAME(nat_root(&num, &den), 0x1.fffffffffffffp-1);
}

/* A symbol as a full table. */
static double *full_symbol(Bed *b, int l1, int l2, int l3, O3Signs signs)
{
    O3Terms t = o3_3j(&b->arena, l1, l2, l3, signs, &o3_unscaled);
    double *c = arena_array(&b->arena, (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1), sizeof *c);

    for (int i = 0; i < t.n; i++)
        c[(t.at[i].m1 * (2 * l2 + 1) + t.at[i].m2) * (2 * l3 + 1) + t.at[i].m3] = t.at[i].c;
    return c;
}

#define EACH_TRIPLE(lmax)                    \
    for (int l1 = 0; l1 <= (lmax); l1++)     \
        for (int l2 = 0; l2 <= (lmax); l2++) \
            for (int l3 = abs(l1 - l2); l3 <= l1 + l2 && l3 <= (lmax); l3++)

TEST(symbols_are_orthogonal)
{
    EACH_TRIPLE(6)
    {
        Bed b;
        double *c;
        int n = (2 * l1 + 1) * (2 * l2 + 1), d = 2 * l3 + 1;

        bed_open(&b);
        c = full_symbol(&b, l1, l2, l3, O3_SIGNS_NOW);
        for (int i = 0; i < d; i++)
            for (int k = 0; k < d; k++) {
                double sum = 0;

                for (int m = 0; m < n; m++)
                    sum += c[m * d + i] * c[m * d + k];
                CHECK_NEAR(sum, i == k ? 1.0 / d : 0, 1e-15);
            }
        bed_close(&b);
    }
}

/* Exchanging two degrees exchanges the components, with the sign of the sum of degrees. */
TEST(symbols_have_the_symmetry_of_their_degrees)
{
    EACH_TRIPLE(5)
    {
        for (int signs = O3_SIGNS_NOW; signs <= O3_SIGNS_04; signs++) {
            Bed b;
            double *c, *swapped, *turned, sign = (l1 + l2 + l3) % 2 == 0 ? 1 : -1;
            int d1 = 2 * l1 + 1, d2 = 2 * l2 + 1, d3 = 2 * l3 + 1;

            bed_open(&b);
            c = full_symbol(&b, l1, l2, l3, (O3Signs)signs);
            swapped = full_symbol(&b, l2, l1, l3, (O3Signs)signs);
            turned = full_symbol(&b, l2, l3, l1, (O3Signs)signs);
            for (int i = 0; i < d1 * d2 * d3; i++) {
                int m1 = i / d3 / d2, m2 = i / d3 % d2, m3 = i % d3;

                CHECK(c[i] == sign * swapped[(m2 * d1 + m1) * d3 + m3]);
                CHECK(c[i] == turned[(m2 * d3 + m3) * d1 + m1]);
            }
            bed_close(&b);
        }
    }
}

static double one_of(Bed *b, const int l[3], const int m[3], O3Signs signs)
{
    double *c = full_symbol(b, l[0], l[1], l[2], signs);

    return c[(m[0] * (2 * l[1] + 1) + m[1]) * (2 * l[2] + 1) + m[2]];
}

TEST(symbols_have_known_values_and_signs)
{
    static const struct {
        int l[3], m[3];
        double num, den; /* sign(num) * sqrt(|num| / den) */
        bool turned;     /* by e3nn 0.4 */
    } row[] = {
        { { 0, 0, 0 }, { 0, 0, 0 }, 1, 1, false },    { { 1, 1, 0 }, { 1, 1, 0 }, 1, 3, false },
        { { 1, 1, 1 }, { 0, 1, 2 }, 1, 6, false },    { { 1, 1, 1 }, { 1, 0, 2 }, -1, 6, false },
        { { 1, 1, 2 }, { 1, 1, 2 }, 2, 15, false },   { { 1, 1, 2 }, { 0, 0, 2 }, -1, 30, false },
        { { 1, 1, 2 }, { 0, 2, 0 }, 1, 10, false },   { { 2, 2, 2 }, { 2, 2, 2 }, 2, 35, false },
        { { 11, 0, 11 }, { 5, 0, 5 }, 1, 23, false },
    };
    static const int turned[][3] = { { 1, 2, 2 }, { 2, 2, 1 }, { 1, 5, 5 },
                                     { 5, 5, 5 }, { 6, 4, 3 }, { 11, 9, 11 } };
    static const int same[][3] = {
        { 1, 1, 1 }, { 2, 2, 2 }, { 3, 4, 5 }, { 1, 2, 3 }, { 3, 3, 3 }
    };
    Bed b;

    bed_open(&b);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double want = copysign(o3_root(fabs(row[i].num), row[i].den), row[i].num);

        CHECK_SAME(one_of(&b, row[i].l, row[i].m, O3_SIGNS_NOW), want);
        CHECK_SAME(one_of(&b, row[i].l, row[i].m, O3_SIGNS_04), want);
    }
    for (size_t i = 0; i < sizeof turned / sizeof *turned; i++) {
        const int *l = turned[i];
        O3Terms now = o3_3j(&b.arena, l[0], l[1], l[2], O3_SIGNS_NOW, &o3_unscaled);
        O3Terms old = o3_3j(&b.arena, l[0], l[1], l[2], O3_SIGNS_04, &o3_unscaled);

        for (int k = 0; k < now.n; k++)
            CHECK_SAME(now.at[k].c, -old.at[k].c);
    }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const int *l = same[i];
        O3Terms now = o3_3j(&b.arena, l[0], l[1], l[2], O3_SIGNS_NOW, &o3_unscaled);
        O3Terms old = o3_3j(&b.arena, l[0], l[1], l[2], O3_SIGNS_04, &o3_unscaled);

        for (int k = 0; k < now.n; k++)
            CHECK_SAME(now.at[k].c, old.at[k].c);
    }
    bed_close(&b);
}

TEST(there_is_no_symbol_of_other_degrees)
{
    Bed b;

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, o3_3j(&b.arena, 1, 1, 3, O3_SIGNS_NOW, &o3_unscaled)), ST_ARG);
    CHECK_HAS(b.err.msg, "no 3j symbol of 1 1 3: each degree is at most the sum of the others");
    CHECK_EQ(CATCH(&b.err, o3_3j(&b.arena, 17, 17, 0, O3_SIGNS_NOW, &o3_unscaled)), ST_ARG);
    CHECK_HAS(b.err.msg, "degrees go from 0 to 16");
    CHECK_EQ(CATCH(&b.err, o3_3j(&b.arena, 0, -1, 1, O3_SIGNS_NOW, &o3_unscaled)), ST_ARG);
    CHECK_EQ(CATCH(&b.err, o3_3j(&b.arena, 16, 16, 16, O3_SIGNS_04, &o3_unscaled)), ST_OK);
    bed_close(&b);
}

TEST(a_scale_stands_under_the_root)
{
    O3Scale scale = { { 3, 0.5, 8, 1 }, 4 }; /* 3 in all */
    Bed b;
    O3Terms t;

    bed_open(&b);
    t = o3_3j(&b.arena, 0, 1, 1, O3_SIGNS_NOW, &scale);
    CHECK_EQ(t.n, 3);
    for (int i = 0; i < t.n; i++)
        CHECK_SAME(t.at[i].c, 1.0);
    scale.num[1] = 0;
    CHECK_EQ(o3_3j(&b.arena, 0, 1, 1, O3_SIGNS_NOW, &scale).n, 0);
    scale = (O3Scale){ { 0x1p60, 0x1p60, 0x1p60, 0x1p60 }, 0x1p-60 };
    t = o3_3j(&b.arena, 16, 16, 16, O3_SIGNS_NOW, &scale);
    CHECK_SAME(t.at[0].c,
               ldexp(o3_3j(&b.arena, 16, 16, 16, O3_SIGNS_NOW, &o3_unscaled).at[0].c, 150));
    scale = (O3Scale){ { 0x1p-60, 0x1p-60, 0x1p-60, 0x1p-60 }, 0x1p60 };
    t = o3_3j(&b.arena, 16, 16, 16, O3_SIGNS_NOW, &scale);
    CHECK_SAME(t.at[0].c,
               ldexp(o3_3j(&b.arena, 16, 16, 16, O3_SIGNS_NOW, &o3_unscaled).at[0].c, -150));
    bed_close(&b);
}

static double uniform(uint64_t *seed)
{
    return ldexp((double)(test_random(seed) >> 11), -53);
}

static void random_rotation(uint64_t *seed, double r[9])
{
    o3_matrix_of_angles(6 * uniform(seed), 6 * uniform(seed), 6 * uniform(seed), r);
}

static void product(const double *a, const double *b, int n, double *out)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            out[i * n + k] = 0;
            for (int j = 0; j < n; j++)
                out[i * n + k] += a[i * n + j] * b[j * n + k];
        }
}

static void check_matrix(const double *got, const double *want, int n, double tol)
{
    for (int i = 0; i < n; i++)
        CHECK_NEAR(got[i], want[i], tol);
}

TEST(d_matrices_represent_rotations)
{
    uint64_t seed = 2;

    for (int l = 0; l <= 11; l++)
        for (int p = -1; p <= 1; p += 2) {
            Bed b;
            double r[9], s[9], rs[9], *dr, *ds, *both, *want;
            int n = 2 * l + 1;

            bed_open(&b);
            random_rotation(&seed, r);
            random_rotation(&seed, s);
            for (int i = 0; i < 9; i++)
                s[i] = -s[i]; /* with an inversion */
            product(r, s, 3, rs);
            dr = o3_wigner_d(&b.arena, (O3Irrep){ l, p }, r);
            ds = o3_wigner_d(&b.arena, (O3Irrep){ l, p }, s);
            want = o3_wigner_d(&b.arena, (O3Irrep){ l, p }, rs);
            both = arena_array(&b.arena, n * n, sizeof *both);
            product(dr, ds, n, both);
            check_matrix(both, want, n * n, 1e-12);
            if (l == 1)
                check_matrix(dr, r, 9, 0); /* 1o is the vector itself, x y z */
            bed_close(&b);
        }
}

TEST(symbols_are_invariant_under_rotations)
{
    uint64_t seed = 3;

    EACH_TRIPLE(4)
    {
        Bed b;
        double r[9], *d[3], *c;
        int n1 = 2 * l1 + 1, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1;

        bed_open(&b);
        random_rotation(&seed, r);
        d[0] = o3_wigner_d(&b.arena, (O3Irrep){ l1, 1 }, r);
        d[1] = o3_wigner_d(&b.arena, (O3Irrep){ l2, 1 }, r);
        d[2] = o3_wigner_d(&b.arena, (O3Irrep){ l3, 1 }, r);
        c = full_symbol(&b, l1, l2, l3, O3_SIGNS_NOW);
        for (int i = 0; i < n1 * n2 * n3; i += 7) {
            int a1 = i / n3 / n2, a2 = i / n3 % n2, a3 = i % n3;
            double sum = 0;

            for (int k = 0; k < n1 * n2 * n3; k++)
                sum += c[k] * d[0][k / n3 / n2 * n1 + a1] * d[1][k / n3 % n2 * n2 + a2] *
                       d[2][k % n3 * n3 + a3];
            CHECK_NEAR(sum, c[i], 1e-13);
        }
        bed_close(&b);
    }
}

TEST(rotations_come_as_angles_and_quaternions)
{
    const double half = 0.35, axis[3] = { 0.6, 0, 0.8 };
    double a[9], r[9], q[4] = { 2 * cos(half), 0, 2 * sin(half), 0 };

    o3_matrix_of_angles(0.7, 0, 0, a); /* about y; a quaternion of length 2 is as good */
    o3_matrix_of_quaternion(q, r);
    check_matrix(r, a, 9, 1e-15);
    o3_matrix_of_angles(0, 0.7, 0, a);
    o3_matrix_of_quaternion((const double[]){ cos(half), sin(half), 0, 0 }, r);
    check_matrix(r, a, 9, 1e-15);
    CHECK_NEAR(r[5], -sin(0.7), 1e-15);
    o3_matrix_of_angles(0.2, 0.3, 0.4, a); /* third, second, first */
    o3_matrix_of_angles(0.2, 0.3, 0, r);
    o3_matrix_of_angles(0, 0, 0.4, (double[9]){ 0 });
    CHECK_NEAR(a[1], r[1], 1e-15);
    for (int i = 1; i < 4; i++)
        q[i] = sin(half) * axis[i - 1];
    q[0] = cos(half);
    o3_matrix_of_quaternion(q, r);
    for (int i = 0; i < 3; i++) /* the axis stays */
        CHECK_NEAR(r[3 * i] * axis[0] + r[3 * i + 1] * axis[1] + r[3 * i + 2] * axis[2], axis[i],
                   1e-15);
}

TEST(d_of_irreps_has_a_block_for_each_vector)
{
    double r[9], *d, *one;
    Bed b;

    bed_open(&b);
    o3_matrix_of_angles(1, 2, 3, r);
    d = o3_irreps_d(&b.arena, o3_irreps(&b.arena, "0o+2x1o"), r);
    one = o3_wigner_d(&b.arena, (O3Irrep){ 1, -1 }, r);
    CHECK_SAME(d[0], 1.0);
    CHECK_SAME(d[1], 0.0);
    for (int i = 0; i < 9; i++) {
        CHECK_SAME(d[(1 + i / 3) * 7 + 1 + i % 3], one[i]);
        CHECK_SAME(d[(4 + i / 3) * 7 + 4 + i % 3], one[i]);
        CHECK_SAME(d[(1 + i / 3) * 7 + 4 + i % 3], 0.0);
    }
    CHECK_EQ(CATCH(&b.err, o3_irreps_d(&b.arena, o3_irreps(&b.arena, "16385x0e"), r)), ST_LIMIT);
    bed_close(&b);
}
