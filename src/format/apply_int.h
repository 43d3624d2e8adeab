/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Shared by the files that rewrite programs: the axis that a format replaces, and the axes and
 * buffers that replace it. */
#ifndef WEFT_FORMAT_APPLY_INT_H
#define WEFT_FORMAT_APPLY_INT_H

#include "format/format_int.h"

typedef struct FmtSource { /* coordinates of an entry: of which axis, and how far they go */
    Axis *axis;
    int n;
    Axis *of[FMT_MOST];
    int k[FMT_MOST];
    Expr *bound[FMT_MOST];
} FmtSource;

typedef struct FmtMade { /* the axes of one part */
    int n;
    Axis *axis[IR_MAX_RANK], *last;
} FmtMade;

/* axes.c */
void fmt_sources(Prog *, Axis *, FmtSource *out);
void fmt_make_axes(Prog *, const FmtUse *, int part, const FmtSource *, FmtMade *out);

#endif
