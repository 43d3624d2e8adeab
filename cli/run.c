/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft run: binds files and sizes, runs a program, writes or shows what it computed. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair { /* of NAME=VALUE; the text of argv, cut at the sign */
    char *name, *value;
} Pair;

typedef struct Options {
    const char *file, *target, *schedule; /* target NULL: c where that is possible */
    Pair *in, *set, *out;                 /* each with room for all of argv */
    int nin, nset, nout;
} Options;

/* The list that an option like "--in" adds to; NULL when there is no such option. */
static Pair *list_of(Options *o, const char *option, size_t n)
{
    if (n == 4 && memcmp(option, "--in", n) == 0)
        return &o->in[o->nin++];
    if (n == 5 && memcmp(option, "--set", n) == 0)
        return &o->set[o->nset++];
    if (n == 5 && memcmp(option, "--out", n) == 0)
        return &o->out[o->nout++];
    return NULL;
}

static int check_target(const Command *c, const char *target)
{
    if (target == NULL)
        return cli_usage(c, "-t wants a target: c, opencl or interp");
    if (strncmp(target, "cuda", 4) == 0 || strncmp(target, "hip", 3) == 0)
        return cli_usage(c, "-t %s is text for another compiler (weft emit -t %s); run has c, "
                            "opencl and interp", target, target);
    if (strcmp(target, "c") != 0 && strcmp(target, "opencl") != 0 && strcmp(target, "interp") != 0)
        return cli_usage(c, "-t %s: the targets of run are c, opencl and interp", target);
    return EXIT_GOOD;
}

static int parse(const Command *c, Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *arg = argv[i], *sign;
        size_t n = strcspn(arg, "=");
        Pair *pair;

        if (arg[0] != '-' || arg[1] == 0) {
            if (o->file != NULL)
                return cli_usage(c, "two programs, %s and %s", o->file, arg);
            o->file = arg;
            continue;
        }
        if (strcmp(arg, "-t") == 0) {
            o->target = argv[++i]; /* argv ends in NULL */
            if (check_target(c, o->target) != EXIT_GOOD)
                return EXIT_USAGE;
            continue;
        }
        if (strcmp(arg, "--schedule") == 0) {
            o->schedule = argv[++i];
            if (o->schedule == NULL)
                return cli_usage(c, "--schedule wants a text after it");
            continue;
        }
        pair = list_of(o, arg, n);
        if (pair == NULL)
            return cli_usage(c, "there is no option %s", arg);
        pair->name = arg[n] == '=' ? arg + n + 1 : ++i < argc ? argv[i] : arg + n;
        sign = strchr(pair->name, '=');
        if (sign == NULL || sign == pair->name || sign[1] == 0)
            return cli_usage(c, "%.*s wants NAME=VALUE", (int)n, arg);
        *sign = 0;
        pair->value = sign + 1;
    }
    return EXIT_GOOD;
}

static int check_sets(const Command *c, const Options *o)
{
    for (int i = 0; i < o->nset; i++) {
        char *end;

        errno = 0;
        strtoimax(o->set[i].value, &end, 10);
        if (*end != 0 || errno != 0)
            return cli_usage(c, "--set %s: %s is not an integer", o->set[i].name, o->set[i].value);
    }
    return EXIT_GOOD;
}

static weft_status bind(weft_args *args, const Options *o)
{
    weft_status status = WEFT_OK;

    for (int i = 0; i < o->nset && status == WEFT_OK; i++)
        status = weft_args_size(args, o->set[i].name, strtoimax(o->set[i].value, NULL, 10));
    for (int i = 0; i < o->nin && status == WEFT_OK; i++)
        status = weft_args_read(args, o->in[i].name, o->in[i].value);
    return status;
}

static bool has_file(const Options *o, const char *name)
{
    for (int i = 0; i < o->nout; i++)
        if (strcmp(o->out[i].name, name) == 0)
            return true;
    return false;
}

/* Outputs that go to no file, in order of declaration. */
static weft_status show(weft_prog *prog, weft_args *args, const Options *o)
{
    int n = 0;
    weft_status status = weft_prog_nargs(prog, &n);

    for (int i = 0; i < n && status == WEFT_OK; i++) {
        const char *text = "";
        weft_arg a;

        status = weft_prog_arg(prog, i, &a);
        if (status == WEFT_OK && (a.role == WEFT_OUTPUT || a.role == WEFT_INOUT) &&
            !has_file(o, a.name))
            status = weft_args_print(args, a.name, &text);
        fputs(text, stdout);
    }
    return status;
}

/* By a kernel: the one that there is, unless it has to be c.  *said: the fault is on stderr. */
static weft_status run_kernel(weft_ctx *ctx, weft_prog *prog, weft_args *args, const Options *o,
                              bool *said)
{
    weft_kernel *kernel;
    weft_info info;
    weft_status status = weft_ctx_target(ctx, o->target);

    if (status == WEFT_OK)
        status = weft_kernel_compile(prog, &kernel);

    if (status == WEFT_OK && o->target == NULL && weft_warning(ctx)[0] != 0)
        fprintf(stderr, "weft: note: %s\n", weft_warning(ctx));
    if (status == WEFT_OK)
        status = weft_kernel_info(kernel, &info);
    *said = status == WEFT_OK && o->target != NULL && strcmp(info.target, o->target) != 0;
    if (*said) {
        fprintf(stderr, "weft: error: there is no machine code: %s\n", info.why);
        return WEFT_E_LIMIT;
    }
    return status == WEFT_OK ? weft_kernel_run(kernel, args) : status;
}

static weft_status run_with(weft_ctx *ctx, weft_prog *prog, const Options *o, bool *said)
{
    weft_args *args;
    weft_status status = weft_args_new(prog, &args);

    if (status == WEFT_OK)
        status = weft_prog_schedule(prog, o->schedule);
    if (status == WEFT_OK)
        status = bind(args, o);
    if (status == WEFT_OK && o->target != NULL && strcmp(o->target, "interp") == 0)
        status = weft_run(args);
    else if (status == WEFT_OK)
        status = run_kernel(ctx, prog, args, o, said);
    for (int i = 0; i < o->nout && status == WEFT_OK; i++)
        status = weft_args_write(args, o->out[i].name, o->out[i].value);
    return status == WEFT_OK ? show(prog, args, o) : status;
}

static int run_file(const Options *o)
{
    weft_ctx *ctx = cli_ctx();
    weft_prog *prog = cli_read(ctx, o->file);
    int code = EXIT_FAILED;
    bool said = false;

    if (prog != NULL)
        code = run_with(ctx, prog, o, &said) == WEFT_OK ? EXIT_GOOD : EXIT_FAILED;
    if (prog != NULL && code == EXIT_FAILED && !said)
        cli_failed(ctx);
    cli_free(ctx);
    return code;
}

static int run(const Command *c, int argc, char **argv)
{
    Pair *room = calloc((size_t)argc, 3 * sizeof *room);
    Options o = { .in = room, .set = room + argc, .out = room + 2 * argc };
    int code;

    if (room == NULL) {
        fprintf(stderr, "weft: error: out of memory\n");
        return EXIT_FAILED;
    }
    code = parse(c, &o, argc, argv);
    if (code == EXIT_GOOD)
        code = check_sets(c, &o);
    if (code == EXIT_GOOD)
        code = run_file(&o);
    free(room);
    return code;
}

const Command cmd_run = {
    "run",
    "run a program on files",
    "usage: weft run [FILE] [-t TARGET] [--in NAME=PATH]... [--set SIZE=N]...\n"
    "                [--out NAME=PATH]... [--schedule TEXT]\n\n"
    "Runs a program (- or no FILE: the standard input).\n\n"
    "  -t TARGET        c: machine code, through the system's C compiler and a cache\n"
    "                   interp: the interpreter, at any size\n"
    "                   without -t: c, else the interpreter for what is small, and a note\n"
    "  --in NAME=PATH   bind a file to a buffer or a structure array:\n"
    "                     x.npy, x.npz:member  an array\n"
    "                     a.mtx                a matrix, packed into the axes of its buffer\n"
    "                     a.mtx:T              its transpose\n"
    "  --set SIZE=N     set a size; one that is not set is solved from the shapes\n"
    "  --out NAME=PATH  write a result to x.npy or, a matrix, to x.mtx;\n"
    "                   results without --out are shown\n"
    "  --schedule TEXT  how the loops of machine code are arranged, \"tile 8; ahead 0\"\n"
    "                   (weft list steps)\n\n"
    "examples:\n"
    "  weft run spmm.weft --in A=a.mtx --in B=b.npy --out C=c.npy\n"
    "  weft run coo.weft --in E.i=g.npz:row --in E.j=g.npz:col --in A=w.npy --set m=64\n"
    "  weft print spmm.weft | weft run --in A=a.mtx --in B=b.npy\n"
    "  WEFT_VERBOSE=1 weft run spmm.weft -t c --in A=a.mtx --in B=b.npy\n",
    run,
};
