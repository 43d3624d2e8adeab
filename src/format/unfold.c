/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A use that brings its rule along, on one line as a schedule has it:
 *
 *     blocks(b = 4) { axis ...; map ...; zeros }
 *
 * is the rule `format blocks(b)`, with a line for each that ends in `;`, used as blocks(4). */
#include "format/format_int.h"

#include <string.h>

static _Noreturn void fail(Arena *arena, const char *use)
{
    err_throw(arena->err, ST_ARG,
              "a format with a rule of its own is written as `blocks(b = 4) { axis ...; map ... }` "
              "with a name for each parameter, and not as `%.60s`",
              use);
}

static const char *skip(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Without blanks at its end. */
static void put_trimmed(Text *to, const char *from, const char *end)
{
    while (end > from && strchr(" \t\r\n", end[-1]) != NULL)
        end--;
    text_put(to, from, (size_t)(end - from));
}

/* b = 4, c = 5 up to the bracket: the names, and the values. */
static const char *split_params(Arena *arena, const char *use, const char *p, Text *names,
                                Text *values)
{
    for (p = skip(p); *p != ')'; p = skip(p)) {
        size_t n = strcspn(p, "=,(){}"), v = n + strcspn(p + n, ",(){}");

        if (p[n] != '=' || (p[v] != ',' && p[v] != ')'))
            fail(arena, use);
        put_trimmed(names, p, p + n);
        put_trimmed(values, skip(p + n + 1), p + v);
        p += v;
        if (*p == ',') {
            text_str(names, ", ");
            text_str(values, ", ");
            p++;
        }
    }
    return p + 1;
}

/* Lines: `;` outside brackets ends one. */
static void put_lines(Text *to, const char *from, const char *end)
{
    int depth = 0;

    for (; from < end; from++) {
        depth += (*from == '(') - (*from == ')');
        text_char(to, *from == ';' && depth == 0 ? '\n' : *from);
    }
    text_char(to, '\n');
}

const char *fmt_unfold(Arena *arena, const char *use)
{
    const char *open = strchr(use, '{'), *close = strrchr(use, '}'), *p = strchr(use, '(');
    Text rule = { .arena = arena }, values = { .arena = arena };

    if (open == NULL)
        return NULL;
    if (p == NULL || p > open || close == NULL || close < open || *skip(close + 1) != '\0')
        fail(arena, use);
    text_str(&rule, "format ");
    text_put(&rule, use, (size_t)(p - use));
    text_put(&values, use, (size_t)(p - use));
    text_char(&rule, '(');
    text_char(&values, '(');
    if (skip(split_params(arena, use, p + 1, &rule, &values)) != open)
        fail(arena, use);
    text_str(&rule, ")\n");
    put_lines(&rule, open + 1, close);
    text_f(&rule, "%s)", values.s);
    return rule.s;
}
