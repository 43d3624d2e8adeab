/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the two modes share. */
#ifndef WEFT_GRAD_INT_H
#define WEFT_GRAD_INT_H

#include "grad/grad.h"

typedef struct Grad {
    const Prog *old;
    Prog *p; /* the program being made: at first a copy of the old one */
    const GradOptions *opt;
    char prefix[16];        /* of cotangents or tangents: d_, d2_, ..., t_, ... */
    char mark[16];          /* of labels: d, d2, ..., t, ... */
    int nstmt;              /* statements of the old program; the derivative's come behind */
    int nbuf;               /* its buffers */
    bool *wrt, *of, *saved; /* by Buf.id */
    bool *active;           /* by Buf.id: varies with wrt, and something asked for varies with it */
    Buf **dual;             /* by Buf.id: its cotangent or tangent; or NULL */
    Memo simple, structure; /* of grad_tidy */
} Grad;

/* setup.c: the copy, what is asked for, which buffers matter; and the end: prune and check. */
void grad_begin(Grad *, Arena *, const Prog *, const GradOptions *, char letter);
Prog *grad_end(Grad *, Arena *);
/* Whether the value of e varies with a buffer of those that `set` marks, by Buf.id. */
bool grad_depends(Grad *, Expr *e, const bool *set, Memo *memo);
/* Marks the buffers that the value of e varies with; the memo: what was looked at. */
void grad_mark_read(Grad *, Expr *e, bool *set, Memo *met);
Buf *grad_dual(Grad *, const Buf *, const char *name, BufKind); /* declares it: same axes, type */
/* A label made of the mark, the old label and a buffer, with its occurrence (0: none). */
const char *grad_label(Grad *, const char *label, const char *buf, int occurrence);
/* Appends `b[...] op= value` for all elements; the value is that of `from` there, or 0. */
void grad_set_all(Grad *, Buf *b, AssignOp op, const char *label, Buf *from);
Expr *grad_tidy(Grad *, Expr *); /* of a value or guard of the derivative; NULL is allowed */
/* An access that holds the value of an assign's expression once it is done, or NULL. */
Expr *grad_result(const Grad *, const Assign *);

/* winner.c: for max= and min=, the condition that this instance is the winner; NULL for the other
 * operators.  Makes every statement that writes the buffer record what the condition needs. */
Expr *grad_winner(Grad *, const Assign *);

/* chain.c: x times the derivative of e by its argument i, where grad_when holds; 0 elsewhere.
 * `same` is an access that holds the value of e, or NULL. */
Expr *grad_chain(Grad *, Expr *e, int i, Expr *x, Expr *same);
/* Where select, max and min are their argument i; NULL for the operators that use them all. */
Expr *grad_when(Grad *, Expr *e, int i);
bool grad_is_flat(Op, int i); /* that derivative is zero whatever the arguments */
Expr *grad_not(Grad *, Expr *cond);
Expr *grad_and(Grad *, Expr *a, Expr *b); /* of conditions; NULL: always */
/* a where the condition holds, else b.  NULL: a condition that always does; a value of zero. */
Expr *grad_select(Grad *, Expr *cond, Expr *a, Expr *b);

/* algebra.c */
Expr *grad_times(Grad *, Expr *a, Expr *b);
Expr *grad_plus(Grad *, Expr *a, Expr *b); /* NULL is zero */
Expr *grad_minus(Grad *, Expr *);

#endif
