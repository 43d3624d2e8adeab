/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What passes (lower/) and schedule steps (sched/) share: edits of trees of loops, integer
 * expressions in one form, and what indices and axes say. */
#ifndef WEFT_TREE_H
#define WEFT_TREE_H

#include "ir/loop.h"

/* edit.c */
typedef struct NodeList {
    Node **node;
    int n, cap;
} NodeList;
void tree_append(Prog *, NodeList *, Node *);
void tree_append_all(Prog *, NodeList *, const NodeList *);
Node *tree_with_body(Prog *, const Node *, const NodeList *); /* a copy with another body */
Node *tree_around(Prog *, const Node *, Node *inner);         /* whose body is one node */
Node *tree_renamed(Prog *, Node *);                           /* a copy with lets of its own */
Node *tree_rewritten(Prog *, Node *, Memo *);                 /* locals replaced as the memo says */
/* The nodes one after the other, as the only iteration of a loop. */
Node *tree_once(Prog *, const char *label, const NodeList *);

/* The expressions of one node, without those of its body: pointers to where each stands. */
enum { LIMIT_SLOTS = 6 + 2 * (IR_MAX_RANK + 1) };
int tree_slots(Node *, Expr ***out);

bool tree_reads(Prog *, Expr *, const Buf *);
bool tree_touches(Prog *, const Node *, const Buf *); /* reads the array, or stores to it */
bool tree_uses(Prog *, Expr *, const Local *, Memo *); /* the memo: one for each local */
bool tree_mentions(Prog *, Expr *, const Local *); /* the same for one question; NULL: no */
bool tree_has_local(Prog *, Expr *);
const Node *tree_binder(const Node *, const Local *); /* the first that binds it; or NULL */

/* ints.c: a + b, a - b and so on, folded, with the constant of a sum last.  `add` makes one flat
 * sum of both; `plus` keeps a sum b whole, so that block * n + (x + y) shows its block, and `times`
 * puts a constant factor last: schedule steps look for blocks in this form. */
Expr *tree_simple(Prog *, Expr *);
Expr *tree_plus(Prog *, Expr *, Expr *);
Expr *tree_add(Prog *, Expr *, Expr *);
Expr *tree_sub(Prog *, Expr *, Expr *); /* a - b, where a = b + c gives c */
Expr *tree_mul(Prog *, Expr *, Expr *);
Expr *tree_times(Prog *, Expr *, Expr *);
Expr *tree_div(Prog *, Expr *, int64_t);
Expr *tree_least(Prog *, Expr *, Expr *);
int tree_power_below(int64_t); /* the largest power of 2 that is not above it; at least 1 */

/* index.c: an index as a base and a constant; NULL: it is a constant. */
Expr *tree_split_index(Expr *, int64_t *constant);
bool tree_differ(Expr *, Expr *);   /* two indices are surely different */
int64_t tree_apart(Expr *, Expr *); /* by at least this distance; 0: unknown */
bool tree_is_stepped(Prog *, Expr *, Local *); /* the index is local * a + b */
/* How far an index moves when a loop goes one iteration on, where `moves` tells of expressions
 * whether they move at all, and locals that do move by 1. */
enum { TREE_NOT_LINEAR = 1 << 30 };
int tree_stride(Expr *, bool (*moves)(void *ctx, Expr *), void *ctx);

/* axis.c */
Expr *tree_cell(Prog *, Buf *, Expr *index);     /* an element; a literal if both are constant */
Expr *tree_first(Prog *, Axis *, Expr *parent);  /* the first position below a parent */
Expr *tree_extent(Prog *, Axis *, Expr *parent); /* the number of positions below it */
/* Whether e is where the positions of an axis below one parent begin. */
bool tree_is_start(const Expr *);

#endif
