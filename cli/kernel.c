/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft emit, weft cache: the C text of programs, and the compiled kernels that are kept. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
    const char *file, *target, *name, *schedule; /* name NULL: to stdout */
} Options;

static int parse(const Command *c, Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        const char **to = strcmp(arg, "-t") == 0           ? &o->target
                          : strcmp(arg, "-o") == 0         ? &o->name
                          : strcmp(arg, "--schedule") == 0 ? &o->schedule
                                                           : NULL;

        if (to == NULL && arg[0] == '-' && arg[1] != 0)
            return cli_usage(c, "there is no option %s", arg);
        if (to == NULL && o->file != NULL)
            return cli_usage(c, "one FILE at a time");
        if (to != NULL && i + 1 == argc)
            return cli_usage(c, "%s wants a word after it", arg);
        if (to != NULL)
            *to = argv[++i];
        else
            o->file = arg;
    }
    return EXIT_GOOD;
}

static int write_file(const char *name, const char *suffix, const char *text)
{
    size_t room = strlen(name) + strlen(suffix) + 1;
    char *path = malloc(room);
    FILE *f;
    int bad;

    if (path == NULL) {
        fprintf(stderr, "weft: error: out of memory\n");
        return EXIT_FAILED;
    }
    snprintf(path, room, "%s%s", name, suffix);
    f = fopen(path, "w");
    bad = f == NULL || fputs(text, f) < 0;
    bad = (f != NULL && fclose(f) != 0) || bad;
    if (bad)
        fprintf(stderr, "weft: error: cannot write %s: %s\n", path, strerror(errno));
    free(path);
    return bad ? EXIT_FAILED : EXIT_GOOD;
}

static const char *suffix_of(const char *target)
{
    static const char *const suffix[][2] = { { "opencl", ".cl" },
                                             { "cuda", ".cu" },
                                             { "hip", ".hip" } };

    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
        if (strncmp(target, suffix[i][0], strlen(suffix[i][0])) == 0)
            return suffix[i][1];
    return ".c";
}

static int emit_prog(weft_ctx *ctx, weft_prog *prog, const Options *o)
{
    const char *target = o->target != NULL ? o->target : "c", *text;
    bool header;
    int code;

    if (weft_prog_schedule(prog, o->schedule) != WEFT_OK ||
        weft_prog_emit(prog, target, WEFT_HEADER, &text) != WEFT_OK)
        return cli_failed(ctx);
    header = text[0] != 0;
    if (weft_prog_emit(prog, target, WEFT_SOURCE, &text) != WEFT_OK)
        return cli_failed(ctx);
    if (o->name == NULL) {
        fputs(text, stdout);
        return EXIT_GOOD;
    }
    code = write_file(o->name, suffix_of(target), text);
    if (code != EXIT_GOOD || !header)
        return code;
    if (weft_prog_emit(prog, target, WEFT_HEADER, &text) != WEFT_OK)
        return cli_failed(ctx);
    return write_file(o->name, ".h", text);
}

static int emit(const Command *c, int argc, char **argv)
{
    Options o = { NULL, NULL, NULL, NULL };
    int code = parse(c, &o, argc, argv);
    weft_ctx *ctx;
    weft_prog *prog;

    if (code != EXIT_GOOD)
        return code;
    ctx = cli_ctx();
    prog = cli_read(ctx, o.file);
    code = prog == NULL ? EXIT_FAILED : emit_prog(ctx, prog, &o);
    cli_free(ctx);
    return code;
}

const Command cmd_emit = {
    "emit",
    "print a program as C that needs no library",
    "usage: weft emit [FILE] [-t TARGET] [-o NAME] [--schedule TEXT]\n\n"
    "Prints a program (- or no FILE: the standard input) as one C file, with the function\n"
    "weft_run_PROGRAM(sizes, arrays), and its phases for callers with threads of their own;\n"
    "for cuda:sm_80, hip:gfx90a, opencl and so on, as the kernels of a GPU and functions that\n"
    "launch them.  The heading says how to compile and call it.\n\n"
    "  -t TARGET  c (as it is without -t): for the vector registers of this machine, up to\n"
    "             WEFT_MAX_ISA; c:avx2 and so on: for others; weft list targets has them all\n"
    "  -o NAME    write NAME.c and NAME.h instead; for a GPU NAME.cu, NAME.hip or NAME.cl\n"
    "  --schedule TEXT  arrange the loops by these steps, \"tile 8; ahead 0\" (weft list steps)\n\n"
    "examples:\n"
    "  weft emit spmm.weft | less\n"
    "  weft emit spmm.weft -t c:avx2 -o spmm && cc -O2 -mavx2 -mfma -c spmm.c\n"
    "  weft emit spmm.weft -t cuda:sm_80 -o spmm && nvcc -arch=sm_80 -fmad=false -c spmm.cu\n",
    emit,
};

/* 532 B, 16 kB, 2 MB */
static const char *size_text(int64_t bytes, char out[32])
{
    if (bytes < 10000)
        snprintf(out, 32, "%" PRId64 " B", bytes);
    else if (bytes < 10000000)
        snprintf(out, 32, "%" PRId64 " kB", bytes / 1000);
    else
        snprintf(out, 32, "%" PRId64 " MB", bytes / 1000000);
    return out;
}

static const char *age_text(int64_t seconds, char out[32])
{
    static const struct {
        int64_t least, unit;
        const char *name;
    } step[] = { { 172800, 86400, "days" },
                 { 7200, 3600, "hours" },
                 { 120, 60, "minutes" },
                 { INT64_MIN, 1, "seconds" } };
    int i = 0;

    while (seconds < step[i].least)
        i++;
    snprintf(out, 32, "%" PRId64 " %s", seconds / step[i].unit, step[i].name);
    return out;
}

/* One entry a line; the exit code is that of verify. */
static int show(weft_ctx *ctx, bool verify)
{
    const weft_entry *entry;
    const char *dir;
    char size[32], age[32];
    int64_t all = 0;
    int n, bad = 0;

    if (weft_cache_dir(ctx, &dir) != WEFT_OK || weft_cache_list(ctx, verify, &entry, &n) != WEFT_OK)
        return cli_failed(ctx);
    for (int i = 0; i < n; i++) {
        printf("%s  %8s  %s%s%s\n", entry[i].key, size_text(entry[i].bytes, size),
               age_text(entry[i].age, age),
               entry[i].fault != NULL ? "  bad: "
               : verify               ? "  good"
                                      : "",
               entry[i].fault != NULL ? entry[i].fault : "");
        all += entry[i].bytes;
        bad += entry[i].fault != NULL;
    }
    printf("%s: %d kernel%s, %s", dir, n, n == 1 ? "" : "s", size_text(all, size));
    if (verify)
        printf(", %d bad", bad);
    printf("\n");
    return bad > 0 ? EXIT_FAILED : EXIT_GOOD;
}

static int clear(weft_ctx *ctx)
{
    const char *dir;
    int n;

    if (weft_cache_dir(ctx, &dir) != WEFT_OK || weft_cache_clear(ctx, &n) != WEFT_OK)
        return cli_failed(ctx);
    printf("%s: %d kernel%s removed\n", dir, n, n == 1 ? "" : "s");
    return EXIT_GOOD;
}

static int cache(const Command *c, int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "show";
    bool verify = strcmp(what, "verify") == 0;
    weft_ctx *ctx;
    int code;

    if (argc > 2)
        return cli_usage(c, "one of show, verify, clear");
    if (strcmp(what, "show") != 0 && strcmp(what, "clear") != 0 && !verify)
        return cli_usage(c, "there is no %s; it is show, verify or clear", what);
    ctx = cli_ctx();
    code = strcmp(what, "clear") == 0 ? clear(ctx) : show(ctx, verify);
    cli_free(ctx);
    return code;
}

const Command cmd_cache = {
    "cache",
    "show, verify or clear the cache of compiled kernels",
    "usage: weft cache [show|verify|clear]\n\n"
    "  show    (the default) key, size and age of each kernel, and the directory\n"
    "  verify  reads them too; exit code 1 when one is damaged. It does no harm there: a\n"
    "          damaged kernel is compiled again when it is wanted\n"
    "  clear   removes all of them\n\n"
    "The directory is WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else $HOME/.cache/weft.\n\n"
    "examples:\n"
    "  weft cache\n"
    "  weft cache verify && echo all good\n",
    cache,
};
