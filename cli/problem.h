/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A problem as a string, ready to run: an operator or a program, a graph, sizes, types, threads. */
#ifndef WEFT_CLI_PROBLEM_H
#define WEFT_CLI_PROBLEM_H

#include "cli.h"

enum { MAX_ARRAYS = 32, MAX_SIZES = 16, MAX_WORD = 256 };

typedef struct Data { /* of one array of the program */
    char name[MAX_WORD];
    bool output;
    int64_t n, shape[WEFT_MAX_NDIM];
    weft_tensor tensor;
} Data;

typedef struct Problem {
    const char *text;
    char op[MAX_WORD];                      /* "spmm", or "" of a file */
    char spec[MAX_WORD], file[MAX_WORD];    /* of the operator; of the program */
    char source[MAX_WORD], sched[MAX_WORD]; /* of the graph; the schedule, or "" */
    char size_name[MAX_SIZES][MAX_WORD];
    int64_t size[MAX_SIZES];
    int nsize, threads;
    weft_type index; /* of structure arrays */

    weft_ctx *ctx;
    weft_prog *prog;
    weft_kernel *kernel;
    weft_args *args;
    weft_graph graph;
    const char *start, *row_name, *col; /* its arrays in the program, or NULL */
    void *row;                          /* of each entry, where the program wants it */
    Data data[MAX_ARRAYS];
    int ndata;
    double compile_s; /* of the kernel, without what the first run compiles */
} Problem;

/* Cuts up the string; false, with a line on stderr, when it makes no sense. */
bool problem_parse(Problem *, const char *text);
/* Program, kernel, graph, and arrays with small multiples of 1/8, whose sums are exact.  `source`
 * is another graph, or NULL.  False after a message. */
bool problem_open(Problem *, const char *source);
void problem_close(Problem *);
/* Arguments with all arrays bound, outputs too or not; NULL after a message. */
weft_args *problem_bind(Problem *, bool outputs);
const Data *problem_data(const Problem *, const char *name); /* NULL: there is none */
double problem_now(void);                                    /* seconds */

double data_get(const weft_tensor *, int64_t i);

#endif
