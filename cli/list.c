/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft list, weft version: what this library knows. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void put_table(const char *what, const char *indent)
{
    const char *name, *note;
    int width = 0;

    for (int i = 0; (name = weft_list(what, i, NULL)) != NULL; i++)
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    for (int i = 0; (name = weft_list(what, i, &note)) != NULL; i++)
        if (note[0] != 0)
            printf("%s%-*s  %s\n", indent, width, name, note);
        else
            printf("%s%s\n", indent, name);
}

/* The policy: a word or what `set` is told, as a schedule has it, with the value of this target. */
static int put_policy(const char *target)
{
    weft_ctx *ctx = cli_ctx();
    const char *name, *note;
    weft_status status = WEFT_OK;
    int value = 0;

    if (ctx == NULL)
        return EXIT_FAILED;
    for (int i = 0; status == WEFT_OK && (name = weft_list("policy", i, &note)) != NULL; i++) {
        status = weft_policy(ctx, target, i, &value);
        if (status == WEFT_OK)
            printf("%-16s  %9d  %s\n", name, value, note);
    }
    if (status != WEFT_OK)
        cli_failed(ctx);
    cli_free(ctx);
    return status == WEFT_OK ? EXIT_GOOD : EXIT_FAILED;
}

static int list(const Command *c, int argc, char **argv)
{
    const char *name;

    if (argc == 4 && strcmp(argv[1], "policy") == 0 && strcmp(argv[2], "-t") == 0)
        return put_policy(argv[3]);
    if (argc == 2 && strcmp(argv[1], "policy") == 0)
        return put_policy("c");
    if (argc > 2)
        return cli_usage(c, "one table at a time");
    if (argc == 2 && weft_list(argv[1], 0, NULL) == NULL)
        return cli_usage(c, "there is no table %s", argv[1]);
    if (argc == 2)
        put_table(argv[1], "");
    for (int i = 0; argc < 2 && (name = weft_list(NULL, i, NULL)) != NULL; i++) {
        printf("%s%s\n", i > 0 ? "\n" : "", name);
        put_table(name, "  ");
    }
    return EXIT_GOOD;
}

static int version(const Command *c, int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return cli_usage(c, "no arguments");
    printf("weft %s\n", weft_version());
    return EXIT_GOOD;
}

const Command cmd_list = {
    "list",
    "list the types, functions, axes and keywords of the language, passes, steps,"
    " targets, operators, formats, the policy",
    "usage: weft list [types|functions|axes|keywords|passes|steps|targets|ops|options|formats|\n"
    "                  policy [-t TARGET]]\n\n"
    "Prints one table, or all of them, one row a line. The policy is every number that affects\n"
    "only speed, with its value for this machine or for TARGET: \"tile 8\" of a schedule sets the\n"
    "first eight, \"set scratch 4096\" the others.\n\n"
    "examples:\n"
    "  weft list axes\n"
    "  weft list functions | cut -d' ' -f1\n"
    "  weft list policy -t c:avx512\n",
    list,
};

const Command cmd_version = {
    "version",
    "print the version",
    "usage: weft version\n\n"
    "examples:\n"
    "  weft version\n",
    version,
};
