/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The bounded cursor under every reader: takes bytes or refuses, and turns a pointer into the
 * place that an error message names. */
#include "io/io_int.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

Cursor io_cursor(Err *err, const char *file, Bytes b)
{
    /* an empty file may come as NULL, on which no pointer arithmetic is defined */
    static const uint8_t none[1];
    const uint8_t *p = b.n > 0 ? b.p : none;

    return (Cursor){ .err = err, .file = file, .begin = p, .p = p, .end = p + b.n };
}

/* Lines are counted only here, so that reading pays nothing for places. */
static void place_text(const Cursor *c, const uint8_t *at)
{
    const uint8_t *start = c->begin, *stop;
    int line = 1;

    for (;;) {
        const uint8_t *nl = memchr(start, '\n', (size_t)(at - start));

        if (nl == NULL)
            break;
        line += line < INT_MAX;
        start = nl + 1;
    }
    stop = memchr(at, '\n', (size_t)(c->end - at));
    if (stop == NULL)
        stop = c->end;
    if (stop > start && stop[-1] == '\r')
        stop--;
    err_place(c->err, c->file, line, at - start < INT_MAX ? (int)(at - start) + 1 : INT_MAX,
              (const char *)start, (size_t)(stop - start));
}

_Noreturn void io_fail(const Cursor *c, const uint8_t *at, Status code, const char *fmt, ...)
{
    char msg[768], where[40] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    if (c->text)
        place_text(c, at);
    else
        err_place(c->err, c->file, 0, 0, "", 0);
    if (!c->text && at != NULL)
        snprintf(where, sizeof where, " (at byte %zu)", (size_t)(at - c->begin));
    err_throw(c->err, code, "%s%s%s%s", c->member == NULL ? "" : c->member,
              c->member == NULL ? "" : ": ", msg, where);
}

void io_skip_blanks(Cursor *c)
{
    while (c->p < c->end && io_is_blank(*c->p))
        c->p++;
}

Bytes io_take_word(Cursor *c)
{
    const uint8_t *p;

    io_skip_blanks(c);
    p = c->p;
    while (c->p < c->end && !io_is_blank(*c->p) && *c->p != '\n')
        c->p++;
    return (Bytes){ p, (size_t)(c->p - p) };
}

const uint8_t *io_take(Cursor *c, uint64_t n, const char *what)
{
    const uint8_t *p = c->p;

    if (n > io_left(c))
        io_fail(c, p, ST_PARSE, "the file ends inside %s; it is damaged or incomplete", what);
    c->p += n;
    return p;
}

uint64_t io_take_le(Cursor *c, int size, const char *what)
{
    const uint8_t *p = io_take(c, (uint64_t)size, what);
    uint64_t v = 0;

    for (int i = size; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

const char *io_quote(char out[IO_QUOTE], const uint8_t *p, size_t n)
{
    size_t k = n < IO_QUOTE ? n : IO_QUOTE - 1;

    for (size_t i = 0; i < k; i++)
        out[i] = (char)(p[i] < 32 || p[i] > 126 ? '?' : p[i]);
    out[k] = 0;
    if (n >= IO_QUOTE)
        memcpy(out + k - 3, "...", 3);
    return out;
}

bool io_is_word(Bytes b, const char *word)
{
    if (b.n != strlen(word))
        return false;
    for (size_t i = 0; i < b.n; i++) {
        int c = b.p[i] >= 'A' && b.p[i] <= 'Z' ? b.p[i] - 'A' + 'a' : b.p[i];

        if (c != word[i])
            return false;
    }
    return true;
}
