/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Examples: the heading of a program has the command that runs it, which names its data. */
#include "api/api_int.h"
#include "kernel/kernel_test.h"
#include "unit/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void give_up(const Example *x, const char *why)
{
    err_throw(x->arena->err, ST_ARG, "%s: %s", why, x->ctx != NULL ? weft_message(x->ctx) : "");
}

/* NAME=PATH or NAME=NUMBER, after its option. */
static void bind(Example *x, const char *option, char *word)
{
    char path[400], *value = strchr(word, '=');

    if (value == NULL)
        give_up(x, word);
    *value++ = 0;
    snprintf(path, sizeof path, "%s/%s", x->folder, value);
    if (strcmp(option, "--set") == 0) {
        if (weft_args_size(x->args, word, strtoll(value, NULL, 10)) != WEFT_OK)
            give_up(x, word);
    } else if (weft_args_read(x->args, word, path) != WEFT_OK) {
        give_up(x, path);
    }
}

/* The words of the command in the comments at the head. */
void example_bind(Example *x, const char *text)
{
    char *head = arena_copy(x->arena, text, strlen(text) + 1), *at = strstr(head, "weft run "),
         *word;
    const char *option = "";

    if (at == NULL)
        give_up(x, "no command in the heading");
    *strstr(at, "\nprogram ") = 0;
    for (word = strsep(&at, " \n"); word != NULL; word = strsep(&at, " \n")) {
        if (strcmp(option, "--in") == 0 || strcmp(option, "--set") == 0)
            bind(x, option, word);
        option = word;
    }
}

static Data *copy_data(Arena *a, const Data *from)
{
    Data *to = arena_alloc(a, sizeof *to);

    for (int i = 0; i < from->n; i++) {
        const Item *it = &from->item[i];
        Array copy = { NULL, it->array.n, it->array.type };
        const char *name = arena_copy(a, it->name, strlen(it->name) + 1);

        if (it->is_size) {
            data_size(a, to, name, it->size);
            continue;
        }
        copy.data = arena_copy(a, it->array.data, (size_t)copy.n * ir_type[copy.type].bytes);
        data_array(a, to, name, copy);
    }
    return to;
}

const char *example_text(Example *x, const char *path)
{
    Bytes b = file_read(x->arena, path, 1 << 20);
    char *text = arena_alloc(x->arena, b.n + 1);
    const char *slash = strrchr(path, '/');

    memcpy(text, b.p, b.n);
    snprintf(x->folder, sizeof x->folder, "%.*s", slash == NULL ? 1 : (int)(slash - path),
             slash == NULL ? "." : path);
    return text;
}

void example_open(Example *x, const char *path, const char *text)
{
    x->ctx = weft_ctx_new();
    if (x->ctx == NULL || weft_prog_read(x->ctx, path, &x->prog) != WEFT_OK ||
        weft_args_new(x->prog, &x->args) != WEFT_OK)
        give_up(x, path);
    example_bind(x, text);
}

static Data *read_data(Example *x, const char *path, const char *text)
{
    Data *data = NULL;
    Arena arena;

    example_open(x, path, text);
    arena_init(&arena, &os_libc, &x->ctx->err);
    if (CATCH(&x->ctx->err, data = data_of_env(&arena, x->args->body->prog,
                                               api_env(x->args, &arena, NULL))) != ST_OK)
        give_up(x, path);
    data = copy_data(x->arena, data);
    arena_free(&arena);
    arena_free(&x->ctx->scratch); /* no call has ended that would have */
    weft_ctx_free(x->ctx);
    return data;
}

void example_add(Arena *a, Subjects *all, const char *path)
{
    Example x = { .arena = a };
    const char *text = example_text(&x, path);
    Data *data = read_data(&x, path, text);

    for (int round = 0; round < 3; round++) { /* in order; with all passes; in short functions */
        Prog *p = ir_parse(a, path, text, strlen(text));

        ir_check(p);
        subject_and_gradient(a, all,
                             (Subject){ .seed = round == 2 ? 1 : 2,
                                        .name = path,
                                        .prog = p,
                                        .text = text,
                                        .in = data,
                                        .tolerance = round > 0 ? 1e-14 : 0 },
                             false);
    }
}
