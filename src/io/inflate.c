/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Decompression of a deflated archive member by zlib, between npz.c and npy.c.  In a build without
 * zlib (WEFT_ZLIB in CMakeLists.txt) io_can_inflate() is false, and npz.c refuses such members. */
#include "io/io_int.h"

#ifdef WEFT_HAS_ZLIB
#include <limits.h>
#include <zlib.h>

#define NO_MEMORY "out of memory: no room to expand a compressed file"
static const char no_memory[] = NO_MEMORY;

bool io_can_inflate(void)
{
    return true;
}

static voidpf zlib_alloc(voidpf os, uInt n, uInt size)
{
    return ((const Os *)os)->alloc(os, NULL, (size_t)n * size);
}

static void zlib_free(voidpf os, voidpf p)
{
    ((const Os *)os)->alloc(os, p, 0);
}

static uInt piece(size_t n)
{
    return n < UINT_MAX ? (uInt)n : UINT_MAX;
}

/* Expands until the stream ends, fails, or stops because it has no input or no room, which is
 * Z_BUF_ERROR.  zlib counts in unsigned int, so long streams go in pieces. */
static int expand(z_stream *z, Cursor *in, uint8_t **out, size_t *room)
{
    size_t before;
    int code;

    do {
        before = io_left(in) + *room;
        z->next_in = (Bytef *)(uintptr_t)in->p; /* which zlib reads only */
        z->avail_in = piece(io_left(in));
        z->next_out = *out;
        z->avail_out = piece(*room);
        code = inflate(z, Z_FINISH);
        in->p = z->next_in;
        *room -= (size_t)(z->next_out - *out);
        *out = z->next_out;
    } while (code == Z_BUF_ERROR && io_left(in) + *room != before);
    return code;
}

/* What is wrong with the stream; NULL: nothing.  */
static const char *fault(z_stream *z, Cursor *in, uint8_t *out, size_t n)
{
    uint8_t extra, *to = n > 0 ? out : &extra;
    size_t room = n, more = 1;
    int code = expand(z, in, &to, &room);

    if (code == Z_BUF_ERROR && room == 0) { /* does it end here, or would it go on? */
        to = &extra;
        code = expand(z, in, &to, &more);
    }
    if (more == 0)
        return "are longer than declared";
    if (code == Z_STREAM_END)
        return room > 0 ? "are shorter than declared"
                        : io_left(in) > 0 ? "go on after their end" : NULL;
    if (code == Z_BUF_ERROR)
        return "end too soon";
    return code == Z_MEM_ERROR ? no_memory : "are not what deflate gives";
}

void io_inflate(const Os *os, Cursor *in, uint8_t *out, size_t n)
{
    z_stream z = { .zalloc = zlib_alloc, .zfree = zlib_free, .opaque = (voidpf)(uintptr_t)os };
    const char *why, *zlib;

    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) /* negative: without a header, as in a ZIP archive */
        err_throw(in->err, ST_NOMEM, NO_MEMORY);
    why = fault(&z, in, out, n);
    zlib = z.msg; /* one of its constants, or NULL */
    inflateEnd(&z);
    if (why == no_memory)
        err_throw(in->err, ST_NOMEM, NO_MEMORY);
    if (why != NULL)
        io_fail(in, in->p, ST_PARSE, "its compressed data %s%s%s%s; the file is damaged", why,
                zlib != NULL ? " (" : "", zlib != NULL ? zlib : "", zlib != NULL ? ")" : "");
}

#else

bool io_can_inflate(void)
{
    return false;
}

void io_inflate(const Os *os, Cursor *in, uint8_t *out, size_t n)
{
    (void)os;
    (void)out;
    (void)n;
    io_fail(in, in->p, ST_LIMIT, "it is compressed, and this build of Weft has no zlib");
}

#endif
