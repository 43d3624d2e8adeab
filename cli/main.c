/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The `weft` command: a table of subcommands, each a filter.  Results go to stdout, messages to
 * stderr; the exit code is 0, 1 when something failed, 2 when the command was used wrongly. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Command *const commands[] = {
    &cmd_op,    &cmd_tp,      &cmd_linear, &cmd_sh,      &cmd_irreps, &cmd_wigner,  &cmd_check,
    &cmd_print, &cmd_explain, &cmd_grad,   &cmd_run,     &cmd_emit,   &cmd_cache,   &cmd_gen,
    &cmd_bench, &cmd_tune,    &cmd_list,   &cmd_version, &cmd_format, &cmd_convert, &cmd_neighbours,
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

int cli_usage(const Command *c, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "weft %s: ", c->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; see weft %s --help\n", c->name);
    return EXIT_USAGE;
}

static void put_line(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

weft_ctx *cli_ctx(void)
{
    const char *verbose = getenv("WEFT_VERBOSE");
    weft_ctx *ctx = weft_ctx_new();

    if (ctx != NULL)
        cli_watch(ctx);
    if (ctx != NULL && verbose != NULL && strcmp(verbose, "1") == 0 &&
        weft_ctx_verbose(ctx, put_line, NULL) != WEFT_OK)
        cli_failed(ctx);
    return ctx;
}

int cli_failed(const weft_ctx *ctx)
{
    const char *message = weft_message(ctx);

    /* with a place it begins with "file:line:col: error: " */
    fprintf(stderr, "%s%s\n", strstr(message, ": error: ") == NULL ? "weft: error: " : "", message);
    return EXIT_FAILED;
}

void cli_json(const char *s)
{
    putchar('"');
    for (; *s != 0; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < 32)
            printf("\\u%04x", (unsigned)*s);
        else
            putchar(*s);
    putchar('"');
}

weft_prog *cli_read(weft_ctx *ctx, const char *path)
{
    weft_prog *prog;

    if (weft_prog_read(ctx, path == NULL ? "-" : path, &prog) != WEFT_OK)
        cli_failed(ctx);
    return prog;
}

int cli_print(weft_ctx *ctx, weft_status made, weft_prog *prog)
{
    const char *text;

    if (made != WEFT_OK || weft_prog_print(prog, &text) != WEFT_OK)
        return cli_failed(ctx);
    fputs(text, stdout);
    return EXIT_GOOD;
}

static void help(FILE *to)
{
    fprintf(to, "usage: weft COMMAND [ARGUMENTS]\n\n"
                "Compiles programs over sparse and constant structure; docs/ir.md defines "
                "the language.\n\n");
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(to, "  %-10s  %s\n", commands[i]->name, commands[i]->brief);
    fprintf(to,
            "\nEvery command takes --skip PASS, which leaves out an optional pass of the compiler\n"
            "(weft list passes): to find the pass that a wrong or slow kernel comes from.\n");
    fprintf(to, "\nexamples:\n"
                "  weft check spmm.weft\n"
                "  weft run spmm.weft --in A=a.mtx --in B=b.npy --out C=c.npy\n"
                "  weft emit spmm.weft -o spmm\n"
                "  weft run --help\n");
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static bool is_pass(const char *name)
{
    const char *pass;

    for (int i = 0; (pass = weft_list("passes", i, NULL)) != NULL; i++)
        if (strcmp(pass, name) == 0)
            return true;
    return false;
}

/* One name more in WEFT_SKIP, where the library looks. */
static bool skip(const char *name)
{
    const char *had = getenv("WEFT_SKIP");
    size_t n = (had == NULL ? 0 : strlen(had)) + strlen(name) + 2;
    char *all = malloc(n);
    bool set;

    if (all == NULL)
        return false;
    snprintf(all, n, "%s%s%s", had == NULL ? "" : had, had == NULL ? "" : ",", name);
    set = setenv("WEFT_SKIP", all, 1) == 0;
    free(all);
    return set;
}

/* Takes `--skip PASS` out of the arguments, wherever it stands: all commands have it. */
static int take_skips(int *argc, char **argv)
{
    int n = 0;

    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--skip") != 0) {
            argv[n++] = argv[i];
            continue;
        }
        if (i + 1 == *argc || !is_pass(argv[i + 1])) {
            fprintf(stderr,
                    "weft: --skip wants the name of a pass after it, not %s; the passes are",
                    i + 1 == *argc ? "nothing" : argv[i + 1]);
            for (int k = 0; weft_list("passes", k, NULL) != NULL; k++)
                fprintf(stderr, "%s %s", k > 0 ? "," : "", weft_list("passes", k, NULL));
            fputc('\n', stderr);
            return EXIT_USAGE;
        }
        if (!skip(argv[++i])) {
            fprintf(stderr, "weft: error: out of memory\n");
            return EXIT_FAILED;
        }
    }
    *argc = n;
    argv[n] = NULL;
    return EXIT_GOOD;
}

static int dispatch(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < NCOMMANDS; i++)
        if (strcmp(commands[i]->name, argv[1]) == 0) {
            if (!wants_help(argc - 2, argv + 2))
                return commands[i]->run(commands[i], argc - 1, argv + 1);
            fputs(commands[i]->help, stdout);
            return EXIT_GOOD;
        }
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return cmd_version.run(&cmd_version, 1, argv + 1);
    if (wants_help(argc, argv) || (argc > 1 && strcmp(argv[1], "help") == 0)) {
        help(stdout);
        return EXIT_GOOD;
    }
    if (argc > 1)
        fprintf(stderr, "weft: there is no command %s; see weft --help\n", argv[1]);
    else
        help(stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    int code = take_skips(&argc, argv);

    if (code == EXIT_GOOD)
        code = dispatch(argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "weft: error: cannot write the standard output: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    return code;
}
