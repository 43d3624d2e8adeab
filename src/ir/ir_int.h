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
bool ir_is_reserved(const char *s, size_t n);
/* Sets b->full and b->place_in_full (both with room) from the slots; the length of full. */
int ir_full(Prog *, Buf *);
/* Checks a name; `first`: 'A' it begins with a capital, 'a' with a small letter, 0 either. */
Symbol *ir_new_name(Prog *, const char *, char first);
void ir_check_bounds(Prog *); /* the part of ir_check that enumerates constants */
void ir_refuse_taken(Prog *, const Symbol *);
const char *ir_lower_case(Prog *, const char *);

#endif
