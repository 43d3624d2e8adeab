/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft gen: graphs by generators, or from files, as files; or what they are like. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void put_degrees(const char *what, int64_t *degree, int64_t n)
{
    int64_t empty = 0, sum = 0;

    qsort(degree, (size_t)n, sizeof *degree, by_value);
    for (int64_t i = 0; i < n; i++) {
        empty += degree[i] == 0;
        sum += degree[i];
    }
    if (n > 0)
        printf("%s: %lld empty, mean %.4g, median %lld, 99 %% %lld, most %lld\n", what,
               (long long)empty, (double)sum / (double)n, (long long)degree[n / 2],
               (long long)degree[n - 1 - n / 100], (long long)degree[n - 1]);
}

static int describe(const weft_graph *g)
{
    const int64_t *start = g->start, *col = g->col;
    int64_t *degree = calloc((size_t)(g->m > g->n ? g->m : g->n) + 1, sizeof *degree);

    if (degree == NULL) {
        fprintf(stderr, "weft: error: out of memory\n");
        return EXIT_FAILED;
    }
    printf("%lld rows, %lld columns, %lld entries\n", (long long)g->m, (long long)g->n,
           (long long)g->nnz);
    for (int64_t i = 0; i < g->m; i++)
        degree[i] = start[i + 1] - start[i];
    put_degrees("rows", degree, g->m);
    memset(degree, 0, (size_t)g->n * sizeof *degree);
    for (int64_t p = 0; p < g->nnz; p++)
        degree[col[p]]++;
    put_degrees("columns", degree, g->n);
    free(degree);
    return EXIT_GOOD;
}

static int gen(const Command *c, int argc, char **argv)
{
    const char *source = NULL, *path = NULL;
    weft_ctx *ctx;
    weft_graph g;
    int code;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            path = argv[++i];
        else if (argv[i][0] == '-')
            return cli_usage(c, "there is no option %s, or a word is missing after it", argv[i]);
        else if (source != NULL)
            return cli_usage(c, "one graph at a time");
        else
            source = argv[i];
    if (source == NULL)
        return cli_usage(c, "a graph is missing");
    ctx = cli_ctx();
    if (weft_graph_make(ctx, source, WEFT_I64, &g) != WEFT_OK ||
        (path != NULL && weft_graph_write(ctx, path) != WEFT_OK))
        code = cli_failed(ctx);
    else
        code = path != NULL ? EXIT_GOOD : describe(&g);
    cli_free(ctx);
    return code;
}

const Command cmd_gen = {
    "gen",
    "generate a graph",
    "usage: weft gen GRAPH [-o FILE]\n\n"
    "Writes a graph to FILE, x.mtx (a pattern) or x.npz (n, start, col); without -o prints what\n"
    "it is like. A GRAPH is a file (.mtx, or .npz with start and col, indptr and indices, row and\n"
    "col, or head and tail) or a generator, which gives the same graph on every machine:\n\n"
    "  uniform:n=N:nnz=E            entries anywhere\n"
    "  powerlaw:n=N:nnz=E:a=2.1:max=D  degrees d with frequency d^-a, at most D (a tenth of N)\n"
    "  rmat:n=N:nnz=E:a=0.57:b=0.19:c=0.19  quarters of quarters; at most E entries\n"
    "  banded:n=N:w=W               W entries on each side of the diagonal\n\n"
    "and :seed=S. Columns ascend in each row, each at most once.\n\n"
    "examples:\n"
    "  weft gen powerlaw:n=169000:nnz=2300000:a=2.1:seed=1 -o graph.npz\n"
    "  weft gen rmat:n=4096:nnz=50000\n",
    gen,
};
