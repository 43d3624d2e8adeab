/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A problem as a string, ready to run: an operator or a program, a graph, sizes, types, threads. */
#ifndef WEFT_CLI_PROBLEM_H
#define WEFT_CLI_PROBLEM_H

#include "cli.h"

enum { MAX_ARRAYS = 32, MAX_SIZES = 16, MAX_WORD = 256, MAX_TP_WORDS = 8 };

typedef struct Data { /* of one array of the program */
    char name[MAX_WORD];
    bool output;
    int64_t n, shape[WEFT_MAX_NDIM];
    weft_tensor tensor;
} Data;

typedef struct Problem {
    const char *text;
    const char *target; /* that kernels are compiled for; NULL: this machine */
    char op[MAX_WORD];                      /* "spmm", or "" of a file */
    char spec[MAX_WORD], file[MAX_WORD];    /* of the operator; of the program */
    char source[MAX_WORD], sched[MAX_WORD]; /* of the graph; the schedule, or "" */
    char size_name[MAX_SIZES][MAX_WORD];
    int64_t size[MAX_SIZES];
    int nsize, threads;
    char hold[MAX_WORD]; /* names of inputs that do not change, ":" between them */
    char archive[MAX_WORD]; /* a file with the structure arrays, or "": they are made of a graph */
    weft_type index; /* of structure arrays */
    char tp[MAX_TP_WORDS][16]; /* of a tensor product (op is "tp"), whose irreps are the source */
    int ntp;
    bool few; /* items, or edges: to verify it */
    char matter[32]; /* of a convolution (op is "conv"), with products' words: whose neighbours, */
    int64_t atoms;   /* of how many atoms, */
    double cutoff;   /* within how many Angstrom; */
    int hidden;      /* features that weights are made of.  0 and "": the default */

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

/* tp.c: words of tensor products; the spec of weft_prog_o3 for what was asked, which derivative.
 * False: it is no name and has no two factors, or is too long. */
bool tp_is_word(const char *word);
bool tp_spec(const Problem *, char *to, size_t cap, int *order);

/* conv.c: takes a word of convolutions: 1; not one: 0; one that makes no sense: -1.  And makes the
 * graph; false: the context says why. */
int conv_take(Problem *, const char *word);
bool conv_graph(Problem *);

/* Cuts up the string; false, with a line on stderr, when it makes no sense. */
bool problem_parse(Problem *, const char *text);
/* Program, kernel, graph, and arrays with small multiples of 1/8, whose sums are exact.  `source`
 * is another graph, or NULL; a tensor product has fewer items then.  False after a message. */
bool problem_open(Problem *, const char *source);
void problem_close(Problem *);
/* Arguments with all arrays bound, outputs too or not; NULL after a message. */
weft_args *problem_bind(Problem *, bool outputs);
const Data *problem_data(const Problem *, const char *name); /* NULL: there is none */
double problem_now(void);                                    /* seconds */

double data_get(const weft_tensor *, int64_t i);

#endif
