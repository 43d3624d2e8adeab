/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Loops over constant tables. */
#ifndef WEFT_LOWER_CONSTANTS_INT_H
#define WEFT_LOWER_CONSTANTS_INT_H

#include "lower/phase/phase_int.h"

/* constants/collapse.c: a loop over the rows of a constant table around a loop over each row's
 * elements, as one loop over all elements; otherwise the loop itself. */
Node *lower_collapsed(Prog *, Node *);

#endif
