/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files that print a program as C share. */
#ifndef WEFT_EXPORT_INT_H
#define WEFT_EXPORT_INT_H

#include "api/api_int.h"
#include "emit/emit.h"
#include "ir/loop.h"

typedef struct Member { /* of the plan: an array of an axis, a table of a layout, or a size */
    const char *name, *use; /* in C; as an expression, plan->name */
    const Axis *axis;
    int k;           /* -1: starts; LOOP_MAP: the table that searches ask; else a coordinate */
    const Buf *base; /* or the tuples before each position of a place */
    const Size *size; /* or a size that only the entries tell */
} Member;

typedef struct Export {
    weft_ctx *ctx;
    Arena *arena;
    const Body *body;
    Prog *prog; /* as lowered */
    const Target *target;
    const EmitKernel *info;
    const char **name; /* of each argument, in C */
    int *by_buf;       /* by Buf.id: the argument that it is, and 1; or 0 */
    const char *entry;
    const char *plan; /* the name of its struct */
    Member *member;   /* none: the program needs no plan */
    int nmember, cap;
    bool formats; /* entries are stored in one */
    Text *out;
} Export;

/* export.c: parts of the text.  A name of the program without dots; the arguments, or only sizes
 * and structure, each with what comes after its name: how many; an array of an axis; the argument
 * or member of the plan that an array of the kernel is, or NULL; a size; the value of an extent;
 * the positions of an axis; the elements of a temporary. */
Text export_c_name(Arena *, const char *prefix, const char *name);
int export_put_arguments(const Export *, bool structure, const char *after);
const char *export_array_name(const Export *, const Axis *, int k);
const char *export_argument_of(const Export *, const Buf *);
const char *export_size_name(const Export *, const Size *);
const char *export_ctype(Type);
void export_put_extent(const Export *, Expr *);
void export_put_total(const Export *, const Axis *);
void export_put_count(const Export *, const Buf *);

/* export_plan.c: what the kernel needs beyond its arguments; its struct, the functions that make
 * and free it, and their text. */
void export_list_members(Export *);
void export_put_struct(const Export *);
void export_put_plan_prototypes(const Export *);
void export_put_plan(const Export *);

/* export_axis.c: prints an integer expression as C that cannot fault: an overflow gives 0.  Its
 * variables are those of axis `a` at position `pos` and of the axes above it; both may be NULL when
 * it has no variables. */
void export_put_computed(const Export *, const Axis *a, const char *pos, Expr *);

/* export_axis.c, export_parts.c: the body of the function that makes the arrays of a planned axis,
 * or a table. */
void export_put_parts(const Export *, const Axis *);
void export_put_transpose(const Export *, const Axis *);
void export_put_format(const Export *, const Axis *first);
void export_put_map(const Export *, const Member *);
void export_put_map_length(const Export *, const Axis *);
void export_put_base(const Export *, const Member *);
void export_put_conversions(const Export *); /* the functions that put_format calls */

/* export.c: the program, each line after a star. */
void export_put_program(const Export *);
/* export_device.c: kernels of a device, as one text. */
void export_put_device(const Export *, const Text *functions);

#endif
