/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft op: the program of an operator, for the other commands to go on with. */
#include "cli.h"

static int op(const Command *c, int argc, char **argv)
{
    weft_ctx *ctx;
    weft_prog *prog;
    weft_status made;
    int code;

    if (argc != 2 || argv[1][0] == '-')
        return cli_usage(c, "one operator and its options, as in spmm:f64:csc");
    ctx = cli_ctx();
    made = weft_prog_op(ctx, argv[1], &prog);
    code = cli_print(ctx, made, prog);
    cli_free(ctx);
    return code;
}

const Command cmd_op = {
    "op",
    "print the program of an operator",
    "usage: weft op NAME[:OPTION]...\n\n"
    "Prints the program of an operator (weft list ops) with options (weft list options), in any\n"
    "order: types f32 f64 f16 bf16, formats csr csc coo, t for the transpose, heads, batch.\n"
    "docs/operators.md has the formulas.\n\n"
    "examples:\n"
    "  weft op spmm\n"
    "  weft op spmm:f64:csc:heads\n"
    "  weft op spmm | weft run --in A=a.mtx --in B=b.npy\n"
    "  weft op softmax:heads | weft grad | weft emit -t c\n",
    op,
};
