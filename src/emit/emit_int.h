/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What only the files of emit/ share: the state of one text. */
#ifndef WEFT_EMIT_INT_H
#define WEFT_EMIT_INT_H

#include "emit/emit.h"

typedef struct Emit {
    Prog *p;
    Text *out;
    const char *prefix; /* of what is visible outside a function */
    EmitKernel *k;
    int cap_array, cap_count;
    const char **array_name; /* by place in k->array */
    int cap_name;
    bool *assigned; /* by Local.id: a register, not a constant */
    int indent;
    const Local *vector; /* the variable whose lanes are side by side here; or NULL */
    Memo lanes;          /* whether an expression differs from lane to lane */
    bool checked;        /* inside `fits` */
} Emit;

/* How tightly text holds together, as C has it. */
enum Level { L_SELECT, L_OR, L_AND, L_COMPARE, L_SUM, L_PRODUCT, L_UNARY, L_PRIMARY };

/* emit_expr.c */
const char *emit_ctype(Type);
const char *emit_suffix(Type);                    /* f32, f64, i64 */
void emit_expr(Emit *, Expr *, enum Level least); /* in parentheses when it holds less tightly */
void emit_as(Emit *, Expr *, Type, enum Level least); /* as a value of this type */
/* As emit_as, but in a vector loop a scalar is spread over the lanes. */
void emit_operand(Emit *, Expr *, Type, enum Level least);
void emit_place(Emit *, Expr *cell); /* a_X[i] */
void emit_vector_on(Emit *, const Local *);
void emit_local(Emit *, const Local *);
void emit_array_name(Emit *, const Buf *);

/* emit_find.c: the function that searches an axis. */
void emit_finder(Emit *, Axis *);

/* emit.c: the declarations at the head of a function, for what these expressions mention. */
void emit_line(Emit *);
void emit_arguments(Emit *, Expr *const *e, int n, const Node *tree);

#endif
