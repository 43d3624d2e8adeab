/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The state of lower_positions, shared by its two files. */
#ifndef WEFT_POSITIONS_INT_H
#define WEFT_POSITIONS_INT_H

#include "lower/lower_int.h"

/* What is evaluated under a condition, and is tested only under it.  What an outer scope has
 * lowered holds in the inner ones. */
typedef struct Scope {
    Expr *path; /* or NULL: always */
    Memo done;  /* expressions of coordinates to those of positions */
    struct Scope *outer;
} Scope;

typedef struct Pos {
    Kernel *kernel;
    Prog *p;
    Entry **var;     /* by Var.id: its entry */
    NodeList checks; /* and lets, to be done before what is being lowered */
    Scope *scope;
    Memo once; /* searches to their local; conditions that are tested, to themselves */
    int work;  /* expressions lowered so far */
    const char *label;
    Buf **acc, **hit; /* by Buf.id: its accumulator of a wider type, its marks; or NULL */
} Pos;

void pos_add(Pos *, NodeList *, const Node *);
void pos_begin(Pos *, Scope *, const char *label); /* of a new list of checks */

/* access.c: an expression or condition of coordinates as one of positions. */
Expr *pos_expr(Pos *, Expr *);
/* The same under a condition. */
Expr *pos_expr_if(Pos *, Expr *cond, Expr *);
/* The element that an assign writes, in `instead` (same axes) if that is not NULL; *there becomes
 * the condition that there is one, or NULL. */
Expr *pos_element(Pos *, Expr *load, Buf *instead, Expr **there);
/* The entry that a variable hangs on (NULL: a root axis), and the condition that it is there. */
Entry *pos_parent(Pos *, const Var *, Expr **there);
Expr *pos_fill(Pos *, const Buf *); /* its fill, rounded to its type */

#endif
