/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The state of lower_positions, shared by its files. */
#ifndef WEFT_POSITIONS_INT_H
#define WEFT_POSITIONS_INT_H

#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

/* What is evaluated under a condition, and is tested only under it.  What an outer scope has
 * lowered holds in the inner ones.  An expression that needs no test under the condition of a scope
 * is kept by an outer one, so that other branches find it: each shared expression is lowered once
 * for all conditions, unless it has to be tested under each. */
typedef struct Scope {
    Expr *path;    /* or NULL: always */
    Memo done;     /* expressions of coordinates to those of positions */
    Memo untested; /* the same of integer arithmetic that is part of more, and tested with it */
    struct Scope *outer;
    int depth; /* scopes around it */
} Scope;

typedef struct Written { /* how statements write a buffer */
    AssignOp op;         /* of the first that does */
    bool met, companion; /* companion: the first does so beside another buffer */
    bool has_companions;
    bool whole; /* the first statement that does sets all of it */
} Written;

typedef struct Pos {
    Kernel *kernel;
    Prog *p;
    Entry **var;     /* by Var.id: its entry */
    NodeList checks; /* and lets, to be done before what is being lowered */
    Scope *scope;
    int tested_at; /* depth of the innermost scope whose condition the last value depends on */
    Memo once; /* searches to their local; conditions that are tested, to themselves */
    int work;  /* expressions lowered so far */
    const char *label;
    bool owns_row;    /* what is inserted is below the position that a build names */
    Written *how;     /* by Buf.id */
    Buf **acc, **hit; /* by Buf.id: its accumulator of a wider type, its marks; or NULL */
    bool *tested;     /* by Buf.id: the run tests that = sets each element once, */
    Buf **set;        /* and this marks what it has set */
    int *written; /* by Buf.id: the round that met it last, */
    int round;    /* one for each statement */
    bool tests;       /* what is lowered marks elements that = will set, and sets none */
} Pos;

void pos_add(Pos *, NodeList *, const Node *);
void pos_begin(Pos *, Scope *, const char *label); /* of a new list of checks */

typedef struct Nest { /* loops over variables, and what is done in the innermost */
    Var *bind[IR_MAX_BINDS];
    int nbind, nassign;
    const Assign *assign;
} Nest;

/* positions/statements.c: loop i of a nest and all inside it, appended to out. */
void pos_nest(Pos *, const Nest *, int i, NodeList *out);
/* The loop over a variable's axis under one parent; its local is NULL for a single entry. */
Node pos_open(Pos *, Var *, Entry *up, const char *label);
/* Nodes, inside a branch when there is a condition. */
NodeList pos_under(Pos *, Expr *cond, NodeList body, const char *label);
void pos_take_checks(Pos *, NodeList *to);
void pos_add_phase(Pos *, Node *);

/* positions/build.c: the phase that fills a built axis; and the insertion of one assign in it. */
void pos_build(Pos *, Axis *);
void pos_insert(Pos *, const Assign *, NodeList *out);

/* positions/access.c: an expression or condition of coordinates as one of positions. */
Expr *pos_expr(Pos *, Expr *);
/* The same under a condition. */
Expr *pos_expr_if(Pos *, Expr *cond, Expr *);
/* The element that an assign writes, in `instead` (same axes) if that is not NULL; *there becomes
 * the condition that there is one, or NULL. */
Expr *pos_element(Pos *, Expr *load, Buf *instead, Expr **there);
/* The entry that a variable hangs on (NULL: a root axis), and the condition that it is there. */
Entry *pos_parent(Pos *, const Var *, Expr **there);
/* The entry of an axis that an index which stands alone means, likewise. */
Entry *pos_entry(Pos *, Axis *, Expr *index, Expr **there);
/* Whether an integer is known to be in 0..extent, from where it comes. */
bool pos_is_below(Expr *, Expr *extent);
Expr *pos_fill(Pos *, const Buf *); /* its fill, rounded to its type */

/* positions/marks.c: drops marks of elements that were reached where structure implies them. */
void lower_drop_marks(Kernel *);

#endif
