/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a program becomes below coordinates: a tree of loops, branches and stores over elements of
 * arrays.  The tree is made of immutable nodes in the program's arena; its expressions are the
 * program's own.  Two stages share it: in `positions` an element has one index per interface
 * dimension, in `loops` one flat index. */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "ir/ir.h"

typedef struct Node Node;

typedef enum NodeKind {
    N_FOR,   /* local from lo up to hi, body */
    N_IF,    /* cond, body */
    N_LET,   /* local = value, in the nodes after it */
    N_STORE, /* out op= value, with companions */
    N_CHECK  /* cond must hold, or the run ends with `fault` */
} NodeKind;

typedef enum ForKind { FOR_SERIAL, FOR_PARALLEL, FOR_VECTOR } ForKind;

/* Why a kernel gives up; the words are in loop.c. */
typedef enum Fault { FAULT_NONE, FAULT_INDEX, FAULT_MISS, FAULT_OVERFLOW, FAULT_COUNT } Fault;

struct Local { /* a loop's variable, a let or a register */
    const char *name;
    Type type;
    int lanes; /* 1: a scalar */
    int id;
};

struct Node {
    NodeKind kind;
    const char *label; /* of the statement it came from; or NULL */
    Local *local;
    Expr *lo, *hi; /* N_FOR */
    ForKind how;
    int lanes;         /* FOR_VECTOR: the step */
    Expr *cond;
    Fault fault;
    AssignOp op;
    Expr *out, *value; /* N_STORE: out is OP_cell or OP_local */
    int nat;
    At *at;
    Node *const *body;
    int nbody;
};

Local *loop_local(Prog *, const char *name, Type, int lanes);
Expr *loop_use(Prog *, Local *);
/* An element: one index per dimension, or one flat index; lanes > 1: that many from it on. */
Expr *loop_cell(Prog *, Buf *, Expr *const *index, int n, int lanes);
/* The position in lo..hi whose coordinates on the axis are the values, -1 when there is none. */
Expr *loop_find(Prog *, Axis *, Expr *lo, Expr *hi, Expr *const *value, int n);
Node *loop_node(Prog *, const Node *); /* a copy in the arena, body included */
const char *loop_fault(Fault);

/* Arrays that are not buffers of the text: E.start, E.j, and constant tables Q.m1, U.size. */
Buf *loop_start(Prog *, Axis *);      /* seg, built: run-time; table: constant */
Buf *loop_extent(Prog *, Axis *);     /* table: constant */
Buf *loop_coord(Prog *, Axis *, int k);
Buf *loop_table(Prog *, const char *name, const int64_t *v, int64_t n);

/* Rebuilds a tree: each expression through fn; the same nodes when nothing changed. */
Node *loop_rewrite(Prog *, Node *, Rewrite *fn, void *ctx, Memo *);
/* e with `local` replaced by another expression. */
Node *loop_replace(Prog *, Node *, const Local *local, Expr *by);
void loop_print(Text *, Prog *, Node *);

#endif
