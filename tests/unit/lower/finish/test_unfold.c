/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/finish/unfold.c: expressions that share parts inside the arms of choices.  The C of a
 * chain grows with its length, not with the number of ways through it, and computes what the
 * interpreter does. */
#include "unit/kernel_bed.h"

enum { N = 50, MOST_TEXT = 60000 };

typedef struct Chain {
    const char *first, *step; /* step: # is the name before it, % the number of the step */
    int most;                 /* steps that lowering takes */
    bool by_x;                /* whether X[i] alone tells which arms are taken */
    const char *last;         /* what is stored, from the number of the last */
} Chain;

/* X[S[i]] may be out of range wherever its arm is not taken.  The last one runs in lanes. */
static const Chain chains[] = {
    { "X[i]", "select(X[i] > % - 20, X[S[i]] + # * # * 0.5 - 0.5 * #, %)", 80, true, "a%d" },
    { "X[i]", "select(X[i] > % - 20, X[S[i]] - # * 0.5, 0.5 * # - 1)", 8, true, "a%d" },
    { "X[i]", "select(X[i] > % - 20, # * 0.5 + X[S[i]], 0) + select(X[i] < 3, #, 1)", 6, true,
      "a%d" },
    { "X[i]", "select(# > % - 20, X[S[i]] - # * 0.5, max(#, 0.5 * # - 1))", 80, false, "a%d" },
    { "X[i]", "select(X[i] > % - 20 and (# > 1 or # < -1), # * 0.5 + X[S[i]], max(#, -#))", 7,
      false, "a%d" },
    { "select(X[i] > -19, X[S[i]], 1)", /* two arms need it, and it is computed for both */
      "select(X[i] > % - 18, # * 0.5 - #, 0) + select(X[i] > % - 10, # + 0.5 * #, 2)", 6, true,
      "a%d" },
    { "X[i] > 0", "(# and X[i] < 3) or (not # and X[i] > -3)", 80, true,
      "select(a%d, X[i], 0)" },
};

static char text[MOST_TEXT];

static size_t put_step(size_t at, const char *step, int k)
{
    for (; *step != 0; step++) {
        if (*step == '#' || *step == '%')
            at += (size_t)snprintf(text + at, MOST_TEXT - at, "%s%d", *step == '#' ? "a" : "",
                                   *step == '#' ? k - 1 : k);
        else
            text[at++] = *step;
    }
    return at;
}

static const char *chain_of(const Chain *c, int n)
{
    size_t at = (size_t)snprintf(text, MOST_TEXT,
                                 "program p(n)\naxis I = n\nf32 X[I], Y[I]\ni64 S[I]\nfor i:\n"
                                 "    let a0 = %s\n",
                                 c->first);

    for (int k = 1; k <= n; k++) {
        at += (size_t)snprintf(text + at, MOST_TEXT - at, "    let a%d = ", k);
        at = put_step(at, c->step, k);
        at += (size_t)snprintf(text + at, MOST_TEXT - at, "\n");
    }
    at += (size_t)snprintf(text + at, MOST_TEXT - at, "    y: Y[i] = ");
    at += (size_t)snprintf(text + at, MOST_TEXT - at, c->last, n);
    snprintf(text + at, MOST_TEXT - at, "\n");
    return text;
}

static size_t length_of(const Chain *c, int n)
{
    const char *out;
    size_t length;

    open_prog(chain_of(c, n));
    OK(weft_prog_emit(prog, "c", WEFT_SOURCE, &out));
    length = strlen(out);
    close_prog();
    return length;
}

TEST(the_c_of_a_chain_of_choices_grows_with_its_length)
{
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        size_t empty = length_of(&chains[i], 0), was = 0;

        for (int n = 20; n <= chains[i].most; n *= 2) {
            size_t more = length_of(&chains[i], n) - empty;

            if (was > 0 && more * 10 > was * 24)
                test_fail(__FILE__, __LINE__, "chain %zu of %d steps: %zu bytes of C after %zu", i,
                          n, more, was);
            was = more;
        }
    }
}

static float x[N], y[N], want[N];
static int64_t s[N];

/* Rows in which surely no arm with X[S[i]] is taken have an index outside. */
static void fill(const Chain *c)
{
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 29) - 22;
        s[i] = c->by_x && x[i] <= -19 ? 1000000000 : (i * 7) % N;
    }
}

static void bind_all(float *to)
{
    bind("X", x, WEFT_F32, 1, SHAPE(N));
    bind("Y", to, WEFT_F32, 1, SHAPE(N));
    bind("S", s, WEFT_I64, 1, SHAPE(N));
}

TEST(a_chain_of_choices_computes_what_the_interpreter_does)
{
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        fill(&chains[i]);
        open_kernel(chain_of(&chains[i], chains[i].most < 9 ? chains[i].most : 9));
        bind_all(want);
        OK(weft_run(args));
        bind_all(y);
        OK(weft_kernel_run(kernel, args));
        CHECK_STR(info_of(kernel).target, "c");
        CHECK(memcmp(y, want, sizeof y) == 0);
        close_prog();
    }
}

static const char whole[] = "program p(n)\naxis I = n\ni64 S[I], Y[I]\nfor i:\n"
                            "    let a1 = S[i] * S[i]\n    let a2 = a1 * a1\n"
                            "    let a3 = a2 - a1 * 2\n    let a4 = a3 + a3 * 3\n"
                            "    let a5 = a4 - a3 + a4\n    let a6 = a5 * 2 + a5\n"
                            "    let a7 = a6 + a6 * 5\n    y: Y[i] = a7 - a6 * a6\n";

/* The test before the arithmetic shares parts as the arithmetic does. */
TEST(integers_that_share_parts_are_tested_part_by_part)
{
    int64_t in[N], out[N], expect[N];

    for (int i = 0; i < N; i++)
        in[i] = i;
    open_kernel(whole);
    bind("S", in, WEFT_I64, 1, SHAPE(N));
    bind("Y", expect, WEFT_I64, 1, SHAPE(N));
    OK(weft_run(args));
    bind("Y", out, WEFT_I64, 1, SHAPE(N));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(out, expect, sizeof out) == 0);
    for (int i = 0; i < 3; i++) {
        in[N / 2] = i == 0 ? 40000 : i == 1 ? 4000000 : INT64_C(4000000000);
        bind("S", in, WEFT_I64, 1, SHAPE(N));
        BAD(weft_kernel_run(kernel, args), WEFT_E_RUN, "overflow");
    }
    close_prog();
}
