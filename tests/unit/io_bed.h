/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of src/io stand on: an arena, and each reader under a trap.  A reader gets its
 * bytes in a block of just their size that is gone when it returns, so that the sanitizer sees a
 * read past the end and a result that points into the file. */
#ifndef WEFT_IO_BED_H
#define WEFT_IO_BED_H

#include "io/io.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <stdlib.h>
#include <string.h>

typedef struct Bed {
    Err err;
    Arena arena;
} Bed;

static inline void bed_init(Bed *b)
{
    b->err = (Err){ 0 };
    arena_init(&b->arena, &os_libc, &b->err);
}

static inline void bed_free(Bed *b)
{
    arena_free(&b->arena);
}

static inline uint8_t *bed_block(const void *p, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    CHECK(copy != NULL);
    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

static inline Status bed_mtx(Bed *b, const void *p, size_t n, IoMatrix *out)
{
    uint8_t *copy = bed_block(p, n);
    Status s = CATCH(&b->err, io_mtx_parse(&b->arena, (Bytes){ copy, n }, "t.mtx", out));

    free(copy);
    return s;
}

static inline Status bed_npy(Bed *b, const void *p, size_t n, IoArray *out)
{
    uint8_t *copy = bed_block(p, n);
    Status s = CATCH(&b->err, io_npy_parse(&b->arena, (Bytes){ copy, n }, "t.npy", out));

    free(copy);
    return s;
}

static inline Status bed_npz(Bed *b, const void *p, size_t n, const char *only, IoNpz *out)
{
    uint8_t *copy = bed_block(p, n);
    Status s = CATCH(&b->err, io_npz_parse(&b->arena, (Bytes){ copy, n }, "t.npz", only, out));

    free(copy);
    return s;
}

/* Where a reader should have accepted. */
#define BED_OK(bed, call)                                                                         \
    do {                                                                                          \
        if ((call) != ST_OK)                                                                      \
            test_fail(__FILE__, __LINE__, "%s:%d:%d: %s\n  %s", (bed)->err.file, (bed)->err.line, \
                      (bed)->err.col, (bed)->err.msg, (bed)->err.src);                            \
    } while (0)

#endif
