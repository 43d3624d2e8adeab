/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft grad: the derivative of a program, as a filter: several in a pipe give higher orders. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct List {
    const char *option;
    const char **name; /* with room for all names of argv */
    int n;
} List;

enum { WRT, OF, SAVE, LISTS };

typedef struct Options {
    const char *file;
    int forward;
    List list[LISTS];
} Options;

/* The list that an option like "--wrt" adds to; NULL when there is no such option. */
static List *list_of(Options *o, const char *option, size_t n)
{
    for (int i = 0; i < LISTS; i++)
        if (strlen(o->list[i].option) == n && memcmp(o->list[i].option, option, n) == 0)
            return &o->list[i];
    return NULL;
}

/* Adds the names of "x,y", cutting the text up; false when one is empty. */
static bool add_names(List *list, char *names)
{
    for (char *s = names; s != NULL; s = names) {
        names = strchr(s, ',');
        if (names != NULL)
            *names++ = 0;
        if (*s == 0)
            return false;
        list->name[list->n++] = s;
    }
    return true;
}

static int parse(const Command *c, Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *arg = argv[i];
        size_t n = strcspn(arg, "=");
        List *list = list_of(o, arg, n);

        if (arg[0] != '-' || arg[1] == 0) {
            if (o->file != NULL)
                return cli_usage(c, "two programs, %s and %s", o->file, arg);
            o->file = arg;
        } else if (strcmp(arg, "--forward") == 0) {
            o->forward = 1;
        } else if (list == NULL) {
            return cli_usage(c, "there is no option %s", arg);
        } else if (!add_names(list, arg[n] == '=' ? arg + n + 1 : ++i < argc ? argv[i] : arg + n)) {
            return cli_usage(c, "%s wants NAME,NAME,...", list->option);
        }
    }
    return EXIT_GOOD;
}

static int grad_file(const Options *o)
{
    weft_ctx *ctx = cli_ctx();
    weft_prog *prog = cli_read(ctx, o->file), *derivative;
    weft_grad opt = { o->list[WRT].name, o->list[OF].name, o->list[SAVE].name, o->list[WRT].n,
                      o->list[OF].n,     o->list[SAVE].n,  o->forward };
    weft_status made;
    int code = EXIT_FAILED;

    if (prog != NULL) {
        made = weft_prog_grad(prog, &opt, &derivative);
        code = cli_print(ctx, made, derivative);
    }
    cli_free(ctx);
    return code;
}

static int grad(const Command *c, int argc, char **argv)
{
    size_t names = 1;
    const char **room;
    Options o = { .list = { { "--wrt", NULL, 0 }, { "--of", NULL, 0 }, { "--save", NULL, 0 } } };
    int code;

    for (int i = 1; i < argc; i++)
        names += strlen(argv[i]) / 2 + 1;
    room = calloc(names, LISTS * sizeof *room);
    if (room == NULL) {
        fprintf(stderr, "weft: error: out of memory\n");
        return EXIT_FAILED;
    }
    for (int i = 0; i < LISTS; i++)
        o.list[i].name = room + names * (size_t)i;
    code = parse(c, &o, argc, argv);
    if (code == EXIT_GOOD)
        code = grad_file(&o);
    free(room);
    return code;
}

const Command cmd_grad = {
    "grad",
    "print the derivative of a program",
    "usage: weft grad [FILE] [--wrt X,Y] [--of Z] [--save T,U] [--forward]\n\n"
    "Prints the gradient of a program (- or no FILE: the standard input) as a program: its new\n"
    "inputs d_Z are cotangents of the outputs, its outputs d_X those of the inputs. Several in a\n"
    "pipe give higher orders. docs/derivatives.md has the rules.\n\n"
    "  --wrt X,Y    the inputs to differentiate by; without it, every floating-point one\n"
    "  --of Z       the outputs to differentiate; without it, every floating-point one\n"
    "  --save T,U   take what the program computes in T and U as inputs; without it, what is\n"
    "               needed is computed again\n"
    "  --forward    directional derivatives instead: inputs t_X, outputs t_Z\n\n"
    "examples:\n"
    "  weft grad spmm.weft --wrt A,B\n"
    "  weft grad spmm.weft | weft grad --wrt A,d_C\n"
    "  weft grad attention.weft --save T,Z | weft check\n",
    grad,
};
