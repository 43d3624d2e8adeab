/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass products (lower/positions/products.c): which gradients of matrix blocks get a nest of their
 * own. */
#include "unit/pass_bed.h"

#define HEAD(size)                                                         \
    "program products(n, nb)\n"                                            \
    "axis P = n, L(P) = 3 : j < nb padded, A = " size ", B = 32, C = 16\n" \
    "f32 G[P, A, C], V[nb, B, C], S[P, L, A, B], U[P, L, A, B], W[nb, B, C]\n"
#define BOTH                                               \
    "for p, l, a, b, c:\n"                                 \
    "    u: U[p, l, a, b] += G[p, a, c] * V[j(l), b, c]\n" \
    "    w: W[j(l), b, c] += G[p, a, c] * S[p, l, a, b]\n"

TEST(each_gradient_of_a_product_of_blocks_gets_its_own_statement)
{
    const char *text = pass_text("products", NULL, HEAD("16") BOTH);

    CHECK_HAS(text, "\nu: for p, l, a, c, b:");
    CHECK_HAS(text, "\nw: for p, l, b, a, c:");
}

TEST(an_operand_with_terms_side_by_side_is_copied_with_columns_last)
{
    CHECK_GIVES("products", NULL, HEAD("16") BOTH, "V_T[k, c, b] = V[k, b, c]");
    CHECK_GIVES("products", NULL, HEAD("16") BOTH, "G[p, a, c] * V_T[j(l), c, b]");
}

TEST(blocks_of_few_rows_share_their_loads_in_one_nest)
{
    CHECK_KEPT("products", NULL, HEAD("8") BOTH);
}

TEST(a_scatter_stays_before_a_statement_that_reads_its_result)
{
    CHECK_KEPT("products", NULL,
               HEAD("16") "for p, l, a, b, c:\n"
                          "    w: W[j(l), b, c] += G[p, a, c] * S[p, l, a, b]\n"
                          "u: U[p, l, a, b] = W[j(l), b, 0]\n");
}

TEST(a_program_with_steps_in_its_schedule_keeps_its_statements)
{
    CHECK_KEPT("products", "parallel u.p", HEAD("16") BOTH);
}
