/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Results as text for people: a heading, then one line a row in columns, long ones cut.
 *
 *     C f32 [2, 3]
 *       1  2.5  3
 *       4   -5  6 */
#include "api/api_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_ROWS = 16, LIMIT_COLUMNS = 12, TAIL = 3 };

/* v as an element of this type holds it. */
static double narrow(Type type, double v)
{
    switch (type) {
    case T_f16: return (double)num_f16(num_to_f16(v));
    case T_bf16: return (double)num_bf16(num_to_bf16(v));
    case T_f32: return (double)(float)v;
    default: return v;
    }
}

/* The fewest digits that give the same element again: 0.1 and not 0.10000000149011612. */
static void put_number(const Array *a, int64_t i, char out[NUM_TEXT])
{
    char text[NUM_TEXT];
    double v;

    if (!ir_type[a->type].floats) {
        snprintf(out, NUM_TEXT, "%lld", (long long)ir_array_int(a, i));
        return;
    }
    v = ir_array_float(a, i);
    for (int digits = 1; digits <= 9; digits++) {
        double shorter;

        snprintf(text, sizeof text, "%.*g", digits, v);
        shorter = strtod(text, NULL);
        if (narrow(a->type, shorter) == v) {
            v = shorter;
            break;
        }
    }
    num_print(out, v);
}

/* The next of n things to show after i, when only `most` are. */
static int64_t after(int64_t i, int64_t n, int64_t most)
{
    return n > most && i + 1 == most - TAIL ? n - TAIL : i + 1;
}

static int widest(const Array *a, int64_t rows, int64_t columns)
{
    int most = 0;
    char text[NUM_TEXT];

    for (int64_t r = 0; r < rows; r = after(r, rows, LIMIT_ROWS))
        for (int64_t c = 0; c < columns; c = after(c, columns, LIMIT_COLUMNS)) {
            put_number(a, r * columns + c, text);
            most = (int)strlen(text) > most ? (int)strlen(text) : most;
        }
    return most;
}

static void put_row(Text *out, const Array *a, int64_t first, int64_t columns, int width)
{
    char text[NUM_TEXT];

    for (int64_t c = 0, next; c < columns; c = next) {
        next = after(c, columns, LIMIT_COLUMNS);
        put_number(a, first + c, text);
        text_f(out, "  %*s%s", width, text, next > c + 1 ? "  ..." : "");
    }
    text_char(out, '\n');
}

static void put_heading(Text *out, const char *name, Type type, const weft_tensor *t)
{
    text_f(out, "%s %s [", name, ir_type[type].name);
    for (int d = 0; d < t->ndim; d++)
        text_f(out, d > 0 ? ", %lld" : "%lld", (long long)t->shape[d]);
    text_str(out, "]\n");
}

static void show(Text *out, const char *name, Type type, const weft_tensor *t)
{
    Array a = { .data = t->data, .type = type };
    int64_t columns = t->ndim > 0 ? t->shape[t->ndim - 1] : 1, rows = 1;
    int width;

    for (int d = 0; d < t->ndim - 1; d++)
        rows *= t->shape[d];
    put_heading(out, name, type, t);
    width = widest(&a, rows, columns);
    for (int64_t r = 0, next; r < rows && columns > 0; r = next) {
        next = after(r, rows, LIMIT_ROWS);
        put_row(out, &a, r * columns, columns, width);
        text_str(out, next > r + 1 ? "  ...\n" : "");
    }
}

static const char *print_result(weft_ctx *ctx, weft_args *args, const char *name)
{
    const Arg *a = api_find_arg(ctx, args->body, name);
    const weft_tensor *t = api_result(args, a);
    Text text = { .arena = &api_box(ctx)->arena };
    Type type =
        a->kind == ARG_BUF || a->kind == ARG_SIZE ? a->type : api_place(args->result->env, a)->type;

    show(&text, name, type, t);
    box_drop(args->printed);
    args->printed = api_keep(ctx);
    return text.s;
}

weft_status weft_args_print(weft_args *args, const char *name, const char **out)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = print_result(ctx, args, name);
    return api_leave(ctx);
}
