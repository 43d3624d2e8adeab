/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the readers share: the one bounded cursor over the bytes of a file, the decompressor and
 * the checksum.  Nothing outside this folder includes it. */
#ifndef WEFT_IO_INT_H
#define WEFT_IO_INT_H

#include "io/io.h"

/* cursor.c: begin <= p <= end always holds. */
typedef struct Cursor {
    Err *err;
    const char *file;
    const char *member; /* of an archive, or NULL */
    const uint8_t *begin, *p, *end;
    bool text; /* a place is a line and a column, not a byte */
} Cursor;

Cursor io_cursor(Err *, const char *file, Bytes);
/* `at` is where it went wrong; NULL for the whole of a file that is not text. */
_Noreturn void io_fail(const Cursor *, const uint8_t *at, Status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static inline size_t io_left(const Cursor *c)
{
    return (size_t)(c->end - c->p);
}

/* The next n bytes; `what` names them for the message when the file ends before. */
const uint8_t *io_take(Cursor *, uint64_t n, const char *what);
uint64_t io_take_le(Cursor *, int size, const char *what); /* unsigned, low byte first */

/* Of text: blanks within a line, and what stands before the next one, empty at the line's end. */
static inline bool io_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}
void io_skip_blanks(Cursor *);
Bytes io_take_word(Cursor *);

/* Bytes of a file, made fit for a message: cut to the buffer, without control bytes. */
enum { IO_QUOTE = 48 };
const char *io_quote(char out[IO_QUOTE], const uint8_t *p, size_t n);

/* Is it this word, given in lower case, in either case? */
bool io_is_word(Bytes, const char *word);

/* npy.c: io_npy_parse from where the cursor stands; `own` lets the result use the bytes in place,
 * so they must be writable and live in the arena. */
void io_npy_read(Arena *, Cursor, bool own, IoArray *out);

/* coo.c: sorts the entries by (row, col) and sums those at the same place. */
void io_coo_sort(Arena *, const char *file, IoMatrix *);

/* real.c: all of the bytes as a number: a decimal, inf, infinity or nan, in either case. */
bool io_real_parse(Bytes, double *out);

/* inflate.c: RFC 1951, by zlib.  All of the cursor's bytes must expand to exactly n bytes. */
bool io_can_inflate(void); /* was the library built with zlib? */
void io_inflate(const Os *, Cursor *, uint8_t *out, size_t n);

/* npz.c */
uint32_t io_crc32(const uint8_t *p, size_t n);

#endif
