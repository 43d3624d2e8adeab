/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the lexer and the two halves of the parser share. */
#ifndef WEFT_IR_PARSE_INT_H
#define WEFT_IR_PARSE_INT_H

#include "ir/loop.h"

/* A single character stands for itself. */
typedef enum Tok {
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
    TOK_RANGE, /* .. */
    TOK_LE,
    TOK_GE,
    TOK_EQ,
    TOK_NE
} Tok;

typedef struct Lex { /* a value: a copy of it is a place to come back to */
    const char *s, *end, *line_start;
    int line;
    int brackets; /* open ( [ { */
    int *indent;  /* columns of the open blocks, outermost first: the parser's */
    int level;    /* how many are open */
    bool tree;    /* of a later stage: blocks in blocks, dots in names */
    bool fresh;   /* at the start of a line */
    Tok tok;      /* the current token */
    const char *text;
    size_t n;
    Place at;
} Lex;

enum { PARSE_DEPTH = 256 }; /* of brackets, calls, signs and `not` one inside another */

typedef struct Parser {
    Prog *p;
    Lex lex;
    int depth;     /* of nested expressions */
    Axis *in_axis; /* whose coordinates are being read; or NULL */
    bool tree;     /* a phase is being read: names are locals, accesses elements */
    bool bound;    /* a `for` states the variables */
    int nbind, nlet, cap_let;
    Var *bind[IR_MAX_BINDS];
    Symbol **let; /* the names with a let in the group or block being read, locals included */
    int indent[LOOP_MAX_NEST];
    Node **phase; /* the program's, with room for more */
    int cap_phase;
} Parser;

void lex_next(Prog *, Lex *);
/* Reads a label and its colon when one stands here, as text without spaces; or leaves *lex. */
const char *lex_label(Prog *, Lex *);
const char *lex_phase(Prog *, Lex *); /* the same without a colon */

_Noreturn void parse_unexpected(Parser *, const char *wanted);
bool parse_is(const Parser *, const char *word); /* the current token is this name */
bool parse_take(Parser *, Tok);                  /* if it is, go on */
bool parse_take_word(Parser *, const char *word);
void parse_need(Parser *, Tok, const char *wanted);
const char *parse_name(Parser *, const char *wanted); /* any name, interned */
Expr *parse_expr(Parser *);  /* what binds tighter than a comparison: extents, bounds, indices */
Expr *parse_value(Parser *); /* the same, and a number */
Expr *parse_cond(Parser *);
Expr *parse_any(Parser *);   /* a number or a condition */
Expr *parse_index(Parser *); /* of a slot: also @p, (a, b), _ and a bare variable */
Expr *parse_access(Parser *);
int64_t parse_int(Parser *);        /* a signed literal */
double parse_number(Parser *);      /* likewise, real */
Axis *parse_dense(Parser *);        /* the anonymous axis of an extent */
Axis *parse_slot(Parser *);         /* that, or a named one */
void parse_axes(Parser *);          /* after the word axis */
void parse_from(Parser *, Axis *);  /* from.c: what a pass made the axis from, after the word */
bool parse_buffers(Parser *);       /* false: the line is no declaration */
Symbol *parse_local_name(Parser *); /* of a let or a local, which nothing in scope has yet */
void parse_let(Parser *, Symbol *, Expr *); /* from now on, the name stands for this */
void parse_forget(Parser *, int n);         /* all lets but the first n */
AssignOp parse_operator(Parser *);
void parse_end_of_line(Parser *);

/* loop_parse.c: what is read only below coordinates. */
Expr *parse_cell(Parser *);                     /* an element */
bool parse_is_search(const char *word);         /* find, near, lookup, above */
Expr *parse_search(Parser *, const char *word); /* after such a word and ( */
Node *parse_phase(Parser *);                    /* after the word phase */
void parse_init(Parser *);                      /* of an array, after the word init */

#endif
