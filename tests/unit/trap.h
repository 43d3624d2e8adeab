/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Code that may throw, in a test:
 *
 *     CHECK_EQ(CATCH(&err, p = arena_alloc(&a, size)), ST_NOMEM);
 *     CHECK_HAS(err.msg, "out of memory");
 *
 * What the statement assigns may be read only when the status is ST_OK. */
#ifndef WEFT_TRAP_H
#define WEFT_TRAP_H

#include "base/base.h"

#include <setjmp.h>

/* Runs the statement under a trap; the status is ST_OK, or that of the throw.  Nests through
 * functions. */
#define CATCH(err, ...)                               \
    __extension__({                                   \
        jmp_buf catch_trap_;                          \
        jmp_buf *volatile catch_outer_ = (err)->trap; \
        err_clear(err);                               \
        (err)->trap = &catch_trap_;                   \
        if (setjmp(catch_trap_) == 0) {               \
            __VA_ARGS__;                              \
        }                                             \
        (err)->trap = catch_outer_;                   \
        (err)->code;                                  \
    })

#endif
