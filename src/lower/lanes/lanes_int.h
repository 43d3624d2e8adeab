/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Vector loops: what other rooms ask of this one. */
#ifndef WEFT_LOWER_LANES_INT_H
#define WEFT_LOWER_LANES_INT_H

#include "lower/facts/facts_int.h"

/* lanes/vectorize.c: the loop of stores in the lanes of the machine; NULL where it cannot be.
 * In lanes: each iteration has its own elements, side by side.  Over lanes: all iterations add
 * to the same elements. */
Node *lower_in_lanes(Prog *, const Node *, const VectorUnit *);
Node *lower_over_lanes(Prog *, const Node *, const VectorUnit *);
/* Whether a value, or an element that is stored to, of a loop with this variable can be one per
 * lane: its elements lie side by side, or at a stride for which registers of neighbours hold
 * them. */
bool lower_can_step(Prog *, Expr *, Local *, Type);

/* lanes/transpose_copy.c: a short loop around a loop that copies, as one loop in lanes; or NULL. */
Node *lower_transposed_copy(Prog *, const Node *, const VectorUnit *);

#endif
