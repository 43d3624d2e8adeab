/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Program text in pieces. */
#ifndef WEFT_RANDOM_TOKEN_H
#define WEFT_RANDOM_TOKEN_H

#include "base/base.h"

typedef struct Piece {
    const char *s;
    size_t n;
} Piece;

typedef struct Pieces {
    Piece *piece;
    int n, cap;
} Pieces;

void pieces_split(Arena *, Pieces *, const char *text);
/* The text with pieces from..to replaced. */
const char *pieces_join(Arena *, const Pieces *, int from, int to, const char *instead);
bool pieces_balanced(const Pieces *, int from, int to); /* each bracket closes inside */

#endif
