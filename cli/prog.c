/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft check, weft print: what can be said of a program without running it. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct Options {
    const char *after, *schedule; /* of print */
    const char *target; /* of explain, */
    int plain;          /* without reasons */
} Options;

typedef weft_status Step(weft_prog *, const Options *);

/* Reads the one FILE and takes one step on it. */
static int with_program(const Command *c, int argc, char **argv, Step *step, const Options *o)
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
        code = step(prog, o) == WEFT_OK ? EXIT_GOOD : cli_failed(ctx);
    cli_free(ctx);
    return code;
}

static weft_status check_step(weft_prog *prog, const Options *o)
{
    (void)o;
    return weft_prog_check(prog);
}

static int check(const Command *c, int argc, char **argv)
{
    return with_program(c, argc, argv, check_step, NULL);
}

static weft_status print_step(weft_prog *prog, const Options *o)
{
    const char *text;
    weft_status status = weft_prog_schedule(prog, o->schedule);

    if (status == WEFT_OK)
        status = o->after != NULL ? weft_prog_print_after(prog, o->after, &text)
                                  : weft_prog_print(prog, &text);
    if (status == WEFT_OK)
        fputs(text, stdout);
    return status;
}

static weft_status explain_step(weft_prog *prog, const Options *o)
{
    const char *text;
    weft_status status = weft_prog_schedule(prog, o->schedule);

    if (status == WEFT_OK && o->target != NULL)
        status = weft_prog_explain_target(prog, o->target, o->plain, &text);
    else if (status == WEFT_OK)
        status = weft_prog_explain(prog, &text);
    if (status == WEFT_OK)
        fputs(text, stdout);
    return status;
}

static bool is_in(const char *table, const char *word)
{
    const char *name;

    for (int i = 0; (name = weft_list(table, i, NULL)) != NULL; i++)
        if (strcmp(name, word) == 0)
            return true;
    return false;
}

/* A pass, a step, or a number of steps. */
static bool is_place(const char *word)
{
    return is_in("passes", word) || is_in("steps", word) ||
           (*word != 0 && strspn(word, "0123456789") == strlen(word));
}

static int print(const Command *c, int argc, char **argv)
{
    Options o = { .plain = 0 };
    int n = 1; /* the words that are not options move to the front */

    for (int i = 1; i < argc; i++) {
        bool after = strcmp(argv[i], "--after") == 0;

        if (!after && strcmp(argv[i], "--schedule") != 0)
            argv[n++] = argv[i];
        else if (i + 1 == argc)
            return cli_usage(c, after ? "--after wants the name of a pass"
                                      : "--schedule wants a text after it");
        else
            *(after ? &o.after : &o.schedule) = argv[++i];
    }
    if (o.after != NULL && !is_place(o.after))
        return cli_usage(c, "there is no pass %s", o.after);
    if (o.schedule != NULL && o.after == NULL)
        return cli_usage(c, "--schedule says nothing without --after");
    return with_program(c, n, argv, print_step, &o);
}

static int explain(const Command *c, int argc, char **argv)
{
    Options o = { .plain = 0 };
    int n = 1;

    for (int i = 1; i < argc; i++) {
        bool target = strcmp(argv[i], "-t") == 0;

        if (strcmp(argv[i], "--plain") == 0)
            o.plain = 1;
        else if (strcmp(argv[i], "--schedule") != 0 && !target)
            argv[n++] = argv[i];
        else if (i + 1 == argc)
            return cli_usage(c, target ? "-t wants a target after it"
                                       : "--schedule wants a text after it");
        else if (target)
            o.target = argv[++i];
        else
            o.schedule = argv[++i];
    }
    if (o.plain && o.target == NULL)
        return cli_usage(c, "--plain is of a default schedule; name its target by -t");
    return with_program(c, n, argv, explain_step, &o);
}

const Command cmd_check = {
    "check",
    "report the errors of a program, with their places",
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
    "print a program in canonical form",
    "usage: weft print [--after PASS|STEP|N [--schedule TEXT]] [FILE]\n\n"
    "Reads a program (- or no FILE: the standard input) and prints it in one form: labels given,\n"
    "short names where they fit, comments gone. The output reads back to the same program.\n\n"
    "  --after PASS  the program after this pass, a program of a later stage\n"
    "                (weft list passes); or after the last step of this name in the schedule\n"
    "                (weft list steps), or after the first N of them\n"
    "  --schedule TEXT  arrange the loops by these steps, \"tile 8; ahead 0\" (weft list steps)\n\n"
    "examples:\n"
    "  weft print spmm.weft\n"
    "  weft print --after positions spmm.weft\n"
    "  weft print --after accumulate --schedule 'tile 2' spmm.weft\n"
    "  weft print --after 1 --schedule 'split c.k 16; vectorize c.k.1' spmm.weft\n"
    "  weft print < spmm.weft > plain.weft\n",
    print,
};

const Command cmd_explain = {
    "explain",
    "say which steps of a schedule are applied, and why others are refused",
    "usage: weft explain [--schedule TEXT] [-t TARGET [--plain]] [FILE]\n\n"
    "Reads a program (- or no FILE: the standard input) and tries the steps of its schedule one\n"
    "by one. Each step is applied, or refused with a reason. Then the loops of the program\n"
    "are listed by the names that steps use.\n\n"
    "  --schedule TEXT  these steps, \"split c.k 16; parallel c.i\" (weft list steps), instead of\n"
    "                   those in FILE or beside it\n"
    "  -t TARGET        print the schedule that this target gets by default, each line with its\n"
    "                   reason, and the passes that decide without a line\n"
    "  --plain          print the lines alone, as --schedule takes them\n\n"
    "examples:\n"
    "  weft explain spmm.weft\n"
    "  weft explain -t cuda:sm_80 spmm.weft\n"
    "  weft explain --schedule 'reorder c.k c.j' spmm.weft\n",
    explain,
};
