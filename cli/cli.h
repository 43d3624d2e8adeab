/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the subcommands of `weft` share.  The command stands on weft.h alone. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <weft.h>

#include <stdbool.h>

enum { EXIT_GOOD, EXIT_FAILED, EXIT_USAGE };

/* A subcommand gets its own name as argv[0], and returns the exit code. */
typedef struct Command {
    const char *name, *brief, *help;
    int (*run)(const struct Command *, int argc, char **argv);
} Command;

extern const Command cmd_op, cmd_tp, cmd_linear, cmd_sh, cmd_irreps, cmd_wigner, cmd_check,
    cmd_print, cmd_grad, cmd_run, cmd_emit, cmd_cache, cmd_gen, cmd_bench, cmd_tune, cmd_list,
    cmd_version, cmd_format, cmd_convert, cmd_explain, cmd_neighbours;

/* "weft run: what; see weft run --help" on stderr; EXIT_USAGE. */
int cli_usage(const Command *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A context; with WEFT_VERBOSE=1 its lines go to stderr.  NULL: out of memory. */
weft_ctx *cli_ctx(void);
/* signal.c.  Contexts of the command: a signal that ends it ends their compilers first. */
void cli_watch(weft_ctx *);
void cli_free(weft_ctx *);
/* The context's message on stderr; EXIT_FAILED. */
int cli_failed(const weft_ctx *);
void cli_json(const char *s); /* a string of JSON, to stdout */
/* The text of a program on stdout, or, when it could not be made, the message; the exit code. */
int cli_print(weft_ctx *, weft_status made, weft_prog *);
/* The program from `path`, "-" or NULL for stdin; NULL after a message. */
weft_prog *cli_read(weft_ctx *, const char *path);

#endif
