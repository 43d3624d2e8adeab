/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The error record: the first failure is kept, and thrown to the trap of the entry point. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

void err_clear(Err *err)
{
    jmp_buf *trap = err->trap;

    memset(err, 0, sizeof *err);
    err->trap = trap;
}

void err_setv(Err *err, Status code, const char *fmt, va_list ap)
{
    if (err->code != ST_OK)
        return;
    err->code = code;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
}

void err_set(Err *err, Status code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_setv(err, code, fmt, ap);
    va_end(ap);
}

/* Control bytes of a hostile line must not reach a terminal. */
static void copy_printable(char *to, size_t cap, const char *s, size_t n)
{
    size_t k = n < cap - 1 ? n : cap - 1;

    for (size_t i = 0; i < k; i++)
        to[i] = (unsigned char)s[i] < 32 || s[i] == 127 ? ' ' : s[i];
    to[k] = 0;
}

void err_place(Err *err, const char *file, int line, int col, const char *src, size_t nsrc)
{
    if (err->code != ST_OK || err->line != 0)
        return;
    err->line = line;
    err->col = col;
    copy_printable(err->file, sizeof err->file, file, strlen(file));
    copy_printable(err->src, sizeof err->src, src, nsrc);
}

_Noreturn void err_jump(Err *err)
{
    longjmp(*err->trap, 1);
}

_Noreturn void err_throw(Err *err, Status code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    err_setv(err, code, fmt, ap);
    va_end(ap);
    err_jump(err);
}
