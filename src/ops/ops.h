/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators of sparse matrices and graphs.  Each is a program and no more: what is written here is
 * text that anybody could have written, and everything else treats it as such. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include "base/base.h"

/* Row i of the table of operators, or of that of options; note: a word on it.  NULL after the
 * last. */
const char *ops_name(int i, const char **note);
const char *ops_option(int i, const char **note);

/* The program of a spec, "spmm:f64:csc:heads": the name of an operator and any of its options in
 * any order.  Throws ST_ARG for a spec that has no meaning. */
void ops_write(Text *out, const char *spec);

#endif
