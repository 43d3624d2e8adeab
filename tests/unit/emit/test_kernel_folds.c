/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/emit_vector.c: sums over lanes that loops around vector loops carry are folded once. */
#include "unit/kernel_bed.h"

#include <math.h>

enum { ROWS = 3, BLOCKS = 5, WIDE = 70, ALL = ROWS * BLOCKS * WIDE };

static float x32[ALL], most[ROWS], least[ROWS], sum[ROWS];
static int32_t block[ROWS * BLOCKS];

/* Rows of blocks, where one that is padding is left out: all of the last row's are. */
static const char text[] = "program p(m, n)\n"
                           "axis I = m, B(I) = 5 : j < n padded, K = 70\n"
                           "f32 X[I, B, K], M[I], L[I]; inout f32 S[I]\n"
                           "m: for i, b, k: M[i] max= X[i, b, k]\n"
                           "l: for i, b, k: L[i] min= X[i, b, k]\n"
                           "s: for i, b, k: S[i] += X[i, b, k]\n";

static int count(const char *in, const char *what)
{
    int n = 0;

    for (const char *at = strstr(in, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

/* Registers that begin before the loop over blocks, and one fold, after it: the loop is the first
 * thing in braces behind the registers, so its end is less indented than what it adds up. */
static void check_folds(const char *fold)
{
    const char *source, *phase, *at, *begin;

    OK(weft_kernel_source(kernel, &source));
    phase = strstr(source, "\nint64_t weft_");
    CHECK(phase != NULL && count(phase, fold) == 1);
    at = strstr(phase, fold);
    for (begin = at; strncmp(begin, "v_b < 5", 7) != 0;)
        CHECK(--begin > phase);
    CHECK(strstr(begin, "\n            }\n") < at && strstr(begin, "\n        }\n") > at);
}

static void fill(void)
{
    for (int i = 0; i < ALL; i++)
        x32[i] = (float)((i * 37) % 101 - 50);
    x32[BLOCKS * WIDE + 71] = NAN; /* of the second row, whose first block is padding */
    for (int b = 0; b < ROWS * BLOCKS; b++)
        block[b] = b >= 2 * BLOCKS || b == BLOCKS ? -1 : b % 9;
    for (int i = 0; i < ROWS; i++)
        sum[i] = i == 2 ? -0.0f : 1;
}

static void check_row(int i, float want_most, float want_least, float want_sum)
{
    CHECK((isnan(want_most) && isnan(most[i])) || most[i] == want_most);
    CHECK((isnan(want_least) && isnan(least[i])) || least[i] == want_least);
    CHECK((isnan(want_sum) && isnan(sum[i])) || sum[i] == want_sum);
    CHECK(!signbit(sum[i]) == !signbit(want_sum) || isnan(want_sum));
}

static void check_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        float m = -INFINITY, l = INFINITY, s = i == 2 ? -0.0f : 1;

        for (int k = 0; k < BLOCKS * WIDE; k++) {
            float v = x32[i * BLOCKS * WIDE + k];

            if (block[i * BLOCKS + k / WIDE] < 0)
                continue;
            m = m >= v || isnan(m) ? m : v;
            l = l <= v || isnan(l) ? l : v;
            s += v;
        }
        check_row(i, m, l, s);
    }
}

TEST(folds_of_blocks_come_after_all_blocks)
{
    Inject j;

    for (int w = 0; w < 3; w++) {
        fill();
        if (!open_width(&j, bed_widths[w], text))
            test_skip("not an x86-64 machine");
        check_folds("weft_fold_max_vf32(t");
        check_folds("weft_fold_min_vf32(t");
        check_folds("weft_fold_add_vf32(t");
        OK(weft_args_size(args, "n", 9));
        bind("X", x32, WEFT_F32, 3, SHAPE(ROWS, BLOCKS, WIDE));
        bind("B.j", block, WEFT_I32, 2, SHAPE(ROWS, BLOCKS));
        bind("M", most, WEFT_F32, 1, SHAPE(ROWS));
        bind("L", least, WEFT_F32, 1, SHAPE(ROWS));
        bind("S", sum, WEFT_F32, 1, SHAPE(ROWS));
        OK(weft_kernel_run(kernel, args));
        check_rows();
        close_inject(&j);
    }
}
