/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Bytes that a phase touches. */
#ifndef WEFT_LOWER_MEMORY_INT_H
#define WEFT_LOWER_MEMORY_INT_H

#include "lower/facts/facts_int.h"

/* memory/stream.c: bytes that an iteration of a phase has of all arrays with a row for each
 * iteration; 0: there are none. */
int64_t lower_row_bytes(Prog *, const Node *phase);

#endif
