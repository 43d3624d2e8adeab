/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Cases of phases after which the array W is gone, or not: for passes that do without rows of all
 * entries. */
#ifndef WEFT_ROWS_BED_H
#define WEFT_ROWS_BED_H

#include "lower/lower.h"
#include "unit/ir_bed.h"

typedef struct RowsCase {
    const char *body;
    bool gone; /* the array */
} RowsCase;

/* Eight lanes of f32 in 16 registers. */
#define ROWS_UNIT (&(const VectorUnit){ VECTOR_LANES(8, 4), 16, VECTOR_CORE })

typedef void RowsPass(Kernel *, LowerTile);

static inline Kernel rows_kernel(Bed *b, const char *head, const char *body)
{
    char text[4000];
    Kernel k = { 0 };

    snprintf(text, sizeof text, "%s%s", head, body);
    k.p = bed_read(b, text);
    k.n = k.p->nphase;
    k.phase = arena_copy(&b->arena, k.p->phase, (size_t)k.n * sizeof *k.phase);
    return k;
}

static inline bool rows_has_array(Prog *p, const char *name)
{
    int n;
    Buf **all = loop_arrays(p, &n);

    for (int i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return true;
    return false;
}

static inline bool rows_are_gone(RowsPass *pass, const char *head, const char *body, LowerTile how)
{
    Bed b;
    Kernel k;
    bool gone = false;

    bed_open(&b);
    k = rows_kernel(&b, head, body);
    if (CATCH(&b.err, pass(&k, how); loop_check(k.p); gone = !rows_has_array(k.p, "W")) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b.err.msg, body);
    bed_close(&b);
    return gone;
}

static inline void rows_check(RowsPass *pass, const char *head, const RowsCase *c, size_t n,
                              LowerTile how)
{
    for (size_t i = 0; i < n; i++)
        if (rows_are_gone(pass, head, c[i].body, how) != c[i].gone)
            test_fail(__FILE__, __LINE__, "%s %s", c[i].gone ? "stays:" : "goes:", c[i].body);
}

#endif
