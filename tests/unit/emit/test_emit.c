/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/emit.c: what stands in front of emitted C is what its phases need. */
#include "emit/emit.h"
#include "unit/interp_bed.h"

#include <stdio.h>
#include <string.h>

/* Whether the C of Y[i] = VALUE has the functions of f32 in lanes. */
static bool has_functions(const char *value)
{
    char program[200];
    Text out = { 0 };
    bool has;
    Bed b;

    snprintf(program, sizeof program,
             "program p(n) stage loops\nf32 X[n]\ninout f32 Y[n]\nphase y for i in 0..n\n"
             "    Y[i] = %s\n",
             value);
    bed_open(&b, program);
    out.arena = &b.arena;
    emit_text(&out, &emit_dialect_c, b.prog, b.prog->phase, b.prog->nphase, "");
    has = strstr(out.s, emit_dialect_c.elementary) != NULL;
    bed_close(&b);
    return has;
}

TEST(functions_are_in_emitted_c_where_a_phase_calls_one)
{
    static const char *const calls[] = { "exp(X[i])", "silu(X[i])", "X[i] * (1.0 + tanh(X[i]))" };
    static const char *const none[] = { "X[i]", "-X[i]", "max(X[i], 0.0) / abs(X[i])",
                                        "fma(X[i], 2.0, X[i])", "select(X[i] < 0.0, 1.0, X[i])" };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(has_functions(calls[i]));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!has_functions(none[i]));
}
