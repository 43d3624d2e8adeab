/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Where an initial value may be placed, apart from loops of its own.  The nest is that of the loops
 * which would give it to all elements; the phase is the first that mentions the array, as a copy
 * that may be changed, with its sites. */
#ifndef WEFT_LOWER_INIT_INT_H
#define WEFT_LOWER_INIT_INT_H

#include "lower/facts/facts_int.h"

/* init/registers.c: in the register that sums up each element. */
bool lower_init_register(Prog *, const Node *nest, const Sites *);
/* init/stores.c: in the first store to each element.  *left: the loops for rows that no store
 * reaches, or NULL. */
bool lower_init_store(Prog *, const Node *nest, Node *phase, const Sites *, Node **left);

#endif
