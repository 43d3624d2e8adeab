/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft check, weft print: what can be said of a program without running it. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef weft_status Step(weft_prog *, const char *option);

/* Reads the one FILE and takes one step on it. */
static int with_program(const Command *c, int argc, char **argv, Step *step, const char *option)
{
    int code = EXIT_FAILED;
    weft_ctx *ctx;
    weft_prog *prog;

    if (argc > 2)
        return cli_usage(c, "one FILE at a time");
    if (argc > 1 && argv[1][0] == '-' && argv[1][1] != 0)
        return cli_usage(c, "there is no option %s", argv[1]);
    ctx = cli_ctx();
    prog = cli_read(ctx, argc > 1 ? argv[1] : NULL);
    if (prog != NULL)
        code = step(prog, option) == WEFT_OK ? EXIT_GOOD : cli_failed(ctx);
    weft_ctx_free(ctx);
    return code;
}

static weft_status check_step(weft_prog *prog, const char *option)
{
    (void)option;
    return weft_prog_check(prog);
}

static int check(const Command *c, int argc, char **argv)
{
    return with_program(c, argc, argv, check_step, NULL);
}

static weft_status print_step(weft_prog *prog, const char *pass)
{
    const char *text;
    weft_status status = pass != NULL ? weft_prog_print_after(prog, pass, &text)
                                      : weft_prog_print(prog, &text);

    if (status == WEFT_OK)
        fputs(text, stdout);
    return status;
}

static int print(const Command *c, int argc, char **argv)
{
    bool after = argc > 1 && strcmp(argv[1], "--after") == 0;
    const char *name;
    bool known = false;

    if (!after)
        return with_program(c, argc, argv, print_step, NULL);
    if (argc < 3)
        return cli_usage(c, "--after wants the name of a pass");
    for (int i = 0; (name = weft_list("passes", i, NULL)) != NULL; i++)
        known = known || strcmp(name, argv[2]) == 0;
    if (!known)
        return cli_usage(c, "there is no pass %s", argv[2]);
    return with_program(c, argc - 2, argv + 2, print_step, argv[2]);
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
    "usage: weft print [--after PASS] [FILE]\n\n"
    "Reads a program (- or no FILE: the standard input) and prints it in one form: labels given,\n"
    "short names where they fit, comments gone. The output reads back to the same program.\n\n"
    "  --after PASS  as it is after this pass on the way to a kernel: a program of a later stage\n"
    "                (weft list passes)\n\n"
    "examples:\n"
    "  weft print spmm.weft\n"
    "  weft print --after positions spmm.weft\n"
    "  weft print < spmm.weft > plain.weft\n",
    print,
};
