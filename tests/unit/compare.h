/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The one comparator of results.  It passes only on err <= tol, never fails on err > tol, so a NaN
 * cannot slip through; its own test plants defects that it must find (reliability.md, G30). */
#ifndef WEFT_COMPARE_H
#define WEFT_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ArrType { ARR_F64, ARR_F32, ARR_I64 } ArrType;

typedef struct Arr { /* row-major and dense; data may be NULL when an extent is 0 */
    ArrType type;
    int rank;
    int64_t shape[8];
    const void *data;
} Arr;

/* The Arr of a C array seen as one row. */
#define ARR1(t, n, p) ((Arr){ .type = (t), .rank = 1, .shape = { (n) }, .data = (p) })
#define ARR2(t, m, n, p) ((Arr){ .type = (t), .rank = 2, .shape = { (m), (n) }, .data = (p) })

typedef struct Verdict {
    bool ok;
    double worst;  /* the largest err; 0 when bits were compared */
    char why[256]; /* the first difference, "" when ok */
} Verdict;

/* Same type, shape and bits: -0 differs from 0, a NaN equals itself only. */
Verdict cmp_bits(Arr got, Arr want);
/* Same type and shape, and |got - want| <= tol for each element.  Equal infinities agree. */
Verdict cmp_abs(Arr got, Arr want, double tol);
/* Relative L-infinity: |got - want| <= tol * max |want|, for each element. */
Verdict cmp_rel(Arr got, Arr want, double tol);

/* Ends the test with the reason unless the verdict is ok; include unit/test.h for it. */
#define CHECK_ARR(verdict)                                     \
    do {                                                       \
        Verdict verdict_ = (verdict);                          \
        if (!verdict_.ok)                                      \
            test_fail(__FILE__, __LINE__, "%s", verdict_.why); \
    } while (0)

#endif
