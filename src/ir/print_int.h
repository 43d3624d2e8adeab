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

void print_expr(Printer *, Expr *);  /* arithmetic or condition */
void print_index(Printer *, Expr *); /* of a slot */
void print_number(Text *, double, bool real); /* real: marked as such, 1.0 for 1 */

#endif
