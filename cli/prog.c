/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft check, weft print: what can be said of a program without running it. */
#include "cli.h"

#include <stdio.h>

typedef weft_status Step(weft_prog *);

/* Reads the one FILE and takes one step on it. */
static int with_program(const Command *c, int argc, char **argv, Step *step)
{
    int code = EXIT_FAILED;
    weft_ctx *ctx;
    weft_prog *prog;

    if (argc > 2)
        return cli_usage(c, "one FILE at a time");
    if (argc > 1 && argv[1][0] == '-' && argv[1][1] != 0)
        return cli_usage(c, "there is no option %s", argv[1]);
    ctx = weft_ctx_new();
    prog = cli_read(ctx, argc > 1 ? argv[1] : NULL);
    if (prog != NULL)
        code = step(prog) == WEFT_OK ? EXIT_GOOD : cli_failed(ctx);
    weft_ctx_free(ctx);
    return code;
}

static int check(const Command *c, int argc, char **argv)
{
    return with_program(c, argc, argv, weft_prog_check);
}

static weft_status print_step(weft_prog *prog)
{
    const char *text;
    weft_status status = weft_prog_print(prog, &text);

    if (status == WEFT_OK)
        fputs(text, stdout);
    return status;
}

static int print(const Command *c, int argc, char **argv)
{
    return with_program(c, argc, argv, print_step);
}

const Command cmd_check = {
    "check",
    "say what is wrong with a program, and where",
    "usage: weft check [FILE]\n\n"
    "Reads a program (- or no FILE: the standard input) and says nothing when it is right.\n"
    "Otherwise the first fault is shown as file:line:col with its line, and the exit code is 1.\n\n"
    "examples:\n"
    "  weft check spmm.weft\n"
    "  weft print spmm.weft | weft check\n",
    check,
};

const Command cmd_print = {
    "print",
    "print a program in its plain form",
    "usage: weft print [FILE]\n\n"
    "Reads a program (- or no FILE: the standard input) and prints it in one form: labels given,\n"
    "short names where they fit, comments gone. The output reads back to the same program.\n\n"
    "examples:\n"
    "  weft print spmm.weft\n"
    "  weft print < spmm.weft > plain.weft\n",
    print,
};
