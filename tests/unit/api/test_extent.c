/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/api/extent.c: shapes as expressions of sizes and of numbers of entries. */
#include "unit/api_bed.h"

TEST(extents_are_expressions_of_sizes_and_entries)
{
    static const struct {
        const char *decl, *name, *want; /* of dimensions, with ; between */
    } cases[] = {
        { "axis I = m, J = compressed(I, n)\nf32 A[I, J]\n", "A", "size(J)" },
        { "axis I = m, J = compressed(I, n)\nf32 A[I, J]\n", "J.start", "m + 1" },
        { "axis I = m * 2, J = compressed(I, n)\nf32 A[I, J]\n", "J.start", "(m * 2) + 1" },
        { "axis I = m, J = compressed(I, n)\nf32 A[I, J]\n", "J.coord", "size(J)" },
        { "axis I = m, E(I) = seg : j < n, F(E) = seg\nf32 A[F, 2 * n + 1]\n", "A",
          "size(F);2 * n + 1" },
        { "axis I = m, E(I) = seg : j < n, F(E) = seg\nf32 A[F]\n", "F.start", "size(E) + 1" },
        { "axis I = m, L = ell(I, 4, n)\nf32 A[I, L]\n", "A", "m;4" },
        { "axis I = m : load < n, J(I) = one : load < n\nf32 A[J]\n", "A", "m" },
        { "axis I = m, S = 2, W(S) = {1, 3}, U(S) = {4, 2}\nf32 A[I, S, W, U]\n", "A", "m;10" },
        { "axis I = m, E(I) = seg, F(I) = seg\nf32 A[I, E, F]\n", "A", "" },
        { "axis I = m, E(I) = seg\nf32 A[I, n, E]\n", "A", "n * size(E)" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], got[256] = "";
        const char *one = "";
        int n = 0;

        snprintf(text, sizeof text, "program p(m, n)\n%s", cases[i].decl);
        open_prog(text);
        while (weft_prog_extent(prog, cases[i].name, n, &one) == WEFT_OK)
            snprintf(got + strlen(got), sizeof got - strlen(got), n++ > 0 ? ";%s" : "%s", one);
        CHECK_HAS(weft_message(ctx), "has no dimension");
        CHECK_STR(got, cases[i].want);
        close_prog();
    }
}

TEST(bounds_of_coordinates_are_told)
{
    const char *text;

    open_prog("program p(m, n)\naxis I = m, E(I) = seg : k < 2 * n, j\nf32 A[E]\n");
    OK(weft_prog_bound(prog, "E.k", &text));
    CHECK_STR(text, "2 * n");
    OK(weft_prog_bound(prog, "E.j", &text));
    CHECK_STR(text, "");
    BAD(weft_prog_bound(prog, "E.start", &text), WEFT_E_ARG, "no array of coordinates");
    BAD(weft_prog_bound(prog, "A", &text), WEFT_E_ARG, "no array of coordinates");
    BAD(weft_prog_extent(prog, "Q", 0, &text), WEFT_E_ARG, "no argument Q");
    BAD(weft_prog_extent(prog, "A", 0, NULL), WEFT_E_ARG, "out is NULL");
    CHECK_EQ(weft_prog_extent(NULL, "A", 0, &text), WEFT_E_ARG);
    close_prog();
}

/* A shape needs no entries, but its starts must be in order: they are used as places. */
TEST(a_shape_is_told_from_starts_that_are_in_order)
{
    int64_t start[] = { 0, 2, 1 }, n = 0;
    weft_tensor t = { start, WEFT_I64, 1, (int64_t[]){ 3 }, NULL };

    open_prog("program p(m)\naxis I = m, E = ragged(I)\nf32 X[E], Y[E]\nY[e] = X[e]\n");
    OK(weft_args_bind(args, "E.start", &t));
    BAD(weft_args_shape(args, "Y", &n), WEFT_E_BIND, "E.start");
    start[1] = 1;
    OK(weft_args_shape(args, "Y", &n));
    CHECK_EQ(n, 1);
    close_prog();
}
