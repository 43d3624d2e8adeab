/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the two halves of the printer share. */
#ifndef WEFT_IR_PRINT_INT_H
#define WEFT_IR_PRINT_INT_H

#include "ir/ir.h"

typedef struct Printer {
    Text *out;
    Prog *p;
    const Axis *in_axis; /* whose declaration is being printed: its own names stand bare */
    const char **let;    /* by id: the name of a shared expression; or NULL */
} Printer;

enum { PRINT_COLUMNS = 100 };

/* print.c: how often each expression is used in what is printed next. */
typedef struct Uses {
    int *count;   /* by id */
    Expr **order; /* those met, children first */
    int n;
    int *loads, others; /* names given in this statement: by Buf.id, to all else */
} Uses;
/* A statement of more nodes than this, written as a tree, shares its parts by `let`. */
enum { LET_STMT = 64 };
void print_count(Uses *, Expr *);
bool print_is_shared(const Uses *, Expr *); /* and worth a name */
void print_from(Printer *, const Axis *);   /* from.c: what a pass made the axis from, if one has */
void print_head(Printer *);                 /* the program line and all declarations */
void print_decl(Printer *, const Buf *);    /* of an array of the kernel's own, on a line */

void print_expr(Printer *, Expr *);           /* arithmetic or condition */
void print_index(Printer *, Expr *);          /* of a slot */
void print_number(Text *, double, bool real); /* real: marked as such, 1.0 for 1 */

#endif
