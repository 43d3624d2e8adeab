/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What only the files of ir/ share. */
#ifndef WEFT_IR_INT_H
#define WEFT_IR_INT_H

#include "ir/ir.h"

/* How an operator's type follows from its arguments' (the result column of op.def). */
enum Result {
    R_NONE,   /* not a value: a part of an index */
    R_INT,    /* i64 */
    R_REAL,   /* a literal */
    R_BOOL,   /* of numbers */
    R_LOGIC,  /* bool of bools */
    R_ELEM,   /* of the buffer */
    R_SAME,   /* of numbers: the widest */
    R_FLOAT,  /* of numbers: the widest, at least real */
    R_SELECT, /* of the second and third */
    R_F32,
    R_F64
};

/* How tightly an operator binds: what the parser groups by and the printer puts parentheses by. */
enum Prec { P_OR = 1, P_AND, P_NOT, P_COMPARE, P_SUM, P_PRODUCT, P_UNARY, P_PRIMARY };
int ir_precedence(Op);

/* Of ASCII alone: what <ctype.h> takes for a letter depends on the caller's locale. */
static inline bool ir_is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool ir_is_letter(char c) /* or _ */
{
    return ir_is_capital(c) || (c >= 'a' && c <= 'z') || c == '_';
}

static inline bool ir_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

Expr *ir_intern(Prog *, struct Expr); /* the one node equal to this */
void ir_reindex(Prog *);              /* the table that ir_intern looks in, from all nodes */
void ir_set_dense(Prog *, Expr *extent, Axis *); /* the one that ir_dense gives */
bool ir_is_reserved(const char *s, size_t n);
/* Sets b->full and b->place_in_full (both with room) from the slots; the length of full. */
int ir_full(Prog *, Buf *);
/* Checks a name; `first`: 'A' it begins with a capital, 'a' with a small letter, 0 either. */
Symbol *ir_new_name(Prog *, const char *, char first);
/* combos.c: all combinations of positions of a few variables, parents before children. */
typedef struct Combos {
    Var *var[IR_MAX_BINDS];
    int64_t loc[IR_MAX_BINDS], pos[IR_MAX_BINDS]; /* of the combination being tried */
    int n;
    int64_t work; /* steps and nodes that are left; the enumeration stops at 0 */
} Combos;
typedef void ComboFn(Combos *, void *ctx);
bool ir_is_const_axis(const Axis *);
bool ir_is_const_index(Expr *);            /* of literals and of variables of constant axes */
bool ir_combos_are_const(const Combos *); /* all its variables can be enumerated */
void ir_combos(Combos *, ComboFn *, void *ctx);
int ir_combo_var(const Combos *, const Var *); /* its place in var */
/* A constant index at the combination being tried; false on overflow. */
bool ir_combo_value(Combos *, Expr *, int64_t *out);
/* First position and number of positions under a parent's position. */
void ir_rows_under(Combos *, const Axis *, int64_t parent, int64_t *first, int64_t *n);
bool ir_runs_once(const Axis *); /* it has one position under each parent */
void ir_check_bounds(Prog *); /* the part of ir_check that enumerates constants */
void ir_refuse_taken(Prog *, const Symbol *);
const char *ir_lower_case(Prog *, const char *);

#endif
