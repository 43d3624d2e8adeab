/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft format: a program over another storage of its entries.  weft convert: what a format would
 * store of a matrix. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
    const char *file, *axis, *format, *rules;
} Options;

/* The rules of a file and the use after them; NULL after a message.  The caller frees it. */
static char *with_rules(const char *path, const char *use)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, cap = strlen(use) + 4096;
    char *text = malloc(cap);

    while (f != NULL && text != NULL) {
        size_t got = fread(text + n, 1, cap - n - strlen(use) - 2, f);
        char *more;

        n += got;
        if (got == 0)
            break;
        more = realloc(text, cap *= 2);
        if (more == NULL)
            free(text);
        text = more;
    }
    if (f == NULL || text == NULL || ferror(f)) {
        fprintf(stderr, "weft: error: cannot read %s\n", path);
        free(text);
        text = NULL;
    } else {
        text[n] = '\n';
        memcpy(text + n + 1, use, strlen(use) + 1);
    }
    if (f != NULL)
        fclose(f);
    return text;
}

static int parse(const Command *c, Options *o, const char *option, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], **to = NULL;

        if (strcmp(arg, "--rules") == 0)
            to = &o->rules;
        else if (strcmp(arg, option) == 0)
            to = &o->format;
        if (to != NULL && ++i == argc)
            return cli_usage(c, "%s wants a value", arg);
        if (to != NULL)
            *to = argv[i];
        else if (arg[0] == '-' && arg[1] != 0)
            return cli_usage(c, "there is no option %s", arg);
        else if (o->file == NULL)
            o->file = arg;
        else if (o->axis == NULL)
            o->axis = arg;
        else
            return cli_usage(c, "one argument too many, %s", arg);
    }
    return EXIT_GOOD;
}

static int format_file(const Options *o, const char *axis, const char *use)
{
    weft_ctx *ctx = cli_ctx();
    weft_prog *prog = ctx == NULL ? NULL : cli_read(ctx, o->file), *to;
    weft_status made;
    int code = EXIT_FAILED;

    if (prog != NULL) {
        made = weft_prog_format(prog, axis, use, &to);
        code = cli_print(ctx, made, to);
    }
    cli_free(ctx);
    return code;
}

static int format(const Command *c, int argc, char **argv)
{
    Options o = { 0 };
    int code = parse(c, &o, "", argc, argv);
    char axis[80] = "", *text = NULL;
    const char *use;

    if (code != EXIT_GOOD)
        return code;
    if (o.axis == NULL) { /* one argument: the program comes from the standard input */
        o.axis = o.file;
        o.file = NULL;
    }
    use = o.axis == NULL ? NULL : strchr(o.axis, '=');
    if (use == NULL || use == o.axis || (size_t)(use - o.axis) >= sizeof axis)
        return cli_usage(c, "it wants AXIS=FORMAT, as in 'E=bsr(16, 16)'");
    memcpy(axis, o.axis, (size_t)(use - o.axis));
    use++;
    if (o.rules != NULL)
        use = text = with_rules(o.rules, use);
    code = use == NULL ? EXIT_FAILED : format_file(&o, axis, use);
    free(text);
    return code;
}

static int measure(const Options *o, const char *use)
{
    weft_ctx *ctx = cli_ctx();
    weft_stored s;
    int code;

    if (ctx == NULL || weft_format_measure(ctx, o->file, use, &s) != WEFT_OK) {
        code = cli_failed(ctx);
    } else {
        printf("%s: %lld entries in %lld positions of %d part%s, %.1f %% padding, "
               "%lld bytes of structure, %.3f ms\n",
               o->format, (long long)s.entries, (long long)s.positions, s.parts,
               s.parts == 1 ? "" : "s",
               s.positions > 0 ? 100.0 * (double)(s.positions - s.entries) / (double)s.positions
                               : 0.0,
               (long long)s.bytes, s.ms);
        code = EXIT_GOOD;
    }
    cli_free(ctx);
    return code;
}

static int convert(const Command *c, int argc, char **argv)
{
    Options o = { 0 };
    int code = parse(c, &o, "--to", argc, argv);
    const char *use;
    char *text = NULL;

    if (code != EXIT_GOOD)
        return code;
    if (o.file == NULL || o.format == NULL || o.axis != NULL)
        return cli_usage(c, "it wants a matrix and --to FORMAT");
    use = o.rules != NULL ? (text = with_rules(o.rules, o.format)) : o.format;
    code = use == NULL ? EXIT_FAILED : measure(&o, use);
    free(text);
    return code;
}

const Command cmd_format = {
    "format",
    "rewrite a program for another format",
    "usage: weft format [FILE] AXIS=FORMAT [--rules RULES]\n\n"
    "Prints the program (- or no FILE: the standard input) with the statements over the entries\n"
    "of an axis made anew over a format of `weft list formats`. docs/formats.md has their meaning\n"
    "and the text of rules of your own.\n\n"
    "  --rules RULES   a file with the text of formats; its names come first\n\n"
    "examples:\n"
    "  weft format spmm.weft 'E=bsr(16, 16)'\n"
    "  weft op spmm | weft format 'E=hyb(2, 5)'\n",
    format,
};

const Command cmd_convert = {
    "convert",
    "measure the storage that a format takes for a matrix",
    "usage: weft convert MATRIX --to FORMAT [--rules RULES]\n\n"
    "Reads an .mtx file and prints what a format of `weft list formats` would store of it, and\n"
    "how long the conversion takes.\n\n"
    "  --to FORMAT     such as 'bsr(16, 16)'\n"
    "  --rules RULES   a file with the text of formats; its names come first\n\n"
    "examples:\n"
    "  weft convert a.mtx --to 'sell(8, 64)'\n",
    convert,
};
