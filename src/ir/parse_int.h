/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the lexer and the two halves of the parser share. */
#ifndef WEFT_IR_PARSE_INT_H
#define WEFT_IR_PARSE_INT_H

#include "ir/ir.h"

typedef enum Tok { /* a single character stands for itself */
    TOK_END = 256,
    TOK_NAME,
    TOK_INT,
    TOK_REAL,
    TOK_NEWLINE, /* also `;` outside brackets */
    TOK_INDENT,
    TOK_DEDENT,
    TOK_ADD, /* += */
    TOK_MAX, /* max= */
    TOK_MIN, /* min= */
    TOK_OR,  /* |= */
    TOK_ARROW,
    TOK_LE,
    TOK_GE,
    TOK_EQ,
    TOK_NE
} Tok;

typedef struct Lex { /* a value: a copy of it is a place to come back to */
    const char *s, *end, *line_start;
    int line;
    int brackets; /* open ( [ { */
    bool inside;  /* the block of an indented group */
    int indent;   /* columns of that block */
    bool fresh;   /* at the start of a line */
    Tok tok;      /* the current token */
    const char *text;
    size_t n;
    Place at;
} Lex;

enum { PARSE_DEPTH = IR_MAX_DEPTH + 8 }; /* what is printed reads back */

typedef struct Parser {
    Prog *p;
    Lex lex;
    int depth;       /* of nested expressions */
    Axis *in_axis;   /* whose coordinates are being read; or NULL */
    bool bound;      /* a `for` states the variables */
    int nbind, nlet, cap_let;
    Var *bind[IR_MAX_BINDS];
    Symbol **let; /* the names with a let in the group being read */
} Parser;

void lex_next(Prog *, Lex *);
/* Reads a label and its colon when one stands here, as text without spaces; or leaves *lex. */
const char *lex_label(Prog *, Lex *);

_Noreturn void parse_unexpected(Parser *, const char *wanted);
bool parse_is(const Parser *, const char *word);    /* the current token is this name */
bool parse_take(Parser *, Tok);                     /* if it is, go on */
bool parse_take_word(Parser *, const char *word);
void parse_need(Parser *, Tok, const char *wanted);
const char *parse_name(Parser *, const char *wanted); /* any name, interned */
Expr *parse_expr(Parser *);  /* what binds tighter than a comparison: extents, bounds, indices */
Expr *parse_value(Parser *); /* the same, and a number */
Expr *parse_cond(Parser *);
Expr *parse_any(Parser *); /* a number or a condition */
Expr *parse_index(Parser *); /* of a slot: also @p, (a, b), _ and a bare variable */
Expr *parse_access(Parser *);
int64_t parse_int(Parser *);   /* a signed literal */
double parse_number(Parser *); /* likewise, real */
Axis *parse_dense(Parser *);   /* the anonymous axis of an extent */
void parse_axes(Parser *);     /* after the word axis */
bool parse_buffers(Parser *);  /* false: the line is no declaration */

#endif
