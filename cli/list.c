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

static int list(const Command *c, int argc, char **argv)
{
    const char *name;

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
    "                  policy]\n\n"
    "Prints one table, or all of them, one row a line.\n\n"
    "examples:\n"
    "  weft list axes\n"
    "  weft list functions | cut -d' ' -f1\n",
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
