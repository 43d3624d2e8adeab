/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Is what a kernel computes right?  Small problems are interpreted.  Of large ones the best known
 * operators have plain loops here; of others the program is verified on a small graph. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_FLOPS 2e7 /* that the interpreter is asked for; some seconds */
#define SMALL "uniform:n=300:nnz=2400"

/* |got - want| against the largest |want|: by the type, as inputs make sums exact but for f16. */
static bool is_close(const Problem *p, const Data *d, const weft_tensor *want, int64_t n)
{
    double most = 0, worst = 0, tolerance = 1e-12;

    if (d->tensor.type == WEFT_F16 || d->tensor.type == WEFT_BF16)
        tolerance = 1e-2;
    else if (d->tensor.type == WEFT_F32)
        tolerance = 1e-5;
    for (int64_t i = 0; i < n; i++) {
        double v = data_get(want, i), e = fabs(data_get(&d->tensor, i) - v);

        most = fabs(v) > most ? fabs(v) : most;
        worst = e <= worst ? worst : e; /* NaN stays */
    }
    if (worst <= tolerance * most)
        return true;
    fprintf(stderr, "weft bench: %s: %s is wrong by %g of %g\n", p->text, d->name, worst, most);
    return false;
}

static bool run_interpreter(Problem *p)
{
    weft_args *args = problem_bind(p, false);
    bool good = args != NULL;

    if (good && (weft_run(args) != WEFT_OK || weft_kernel_run(p->kernel, p->args) != WEFT_OK))
        good = cli_failed(p->ctx) == EXIT_GOOD;
    for (int i = 0; good && i < p->ndata; i++) {
        weft_tensor want;

        if (!p->data[i].output)
            continue;
        if (weft_args_get(args, p->data[i].name, &want) != WEFT_OK)
            good = cli_failed(p->ctx) == EXIT_GOOD;
        good = good && is_close(p, &p->data[i], &want, p->data[i].n);
    }
    weft_args_free(args);
    return good;
}

static bool run_small(const Problem *p)
{
    Problem small;
    bool good = problem_parse(&small, p->text);

    small.target = p->target;
    good = good && problem_open(&small, SMALL) && run_interpreter(&small);

    problem_close(&small);
    return good;
}

typedef struct Csr { /* the graph, and what the operators have in common */
    int64_t m, f;
    const weft_graph *g;
    const weft_tensor *a, *x, *y;
} Csr;

static int64_t at(const weft_graph *g, const void *array, int64_t i)
{
    return g->type == WEFT_I32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static double spmm_element(const Csr *c, int64_t i, int64_t k)
{
    double sum = 0;

    for (int64_t e = at(c->g, c->g->start, i); e < at(c->g, c->g->start, i + 1); e++)
        sum += data_get(c->a, e) * data_get(c->x, at(c->g, c->g->col, e) * c->f + k);
    return sum;
}

static double sddmm_element(const Csr *c, int64_t i, int64_t e)
{
    double sum = 0;

    for (int64_t k = 0; k < c->f; k++)
        sum += data_get(c->x, i * c->f + k) * data_get(c->y, at(c->g, c->g->col, e) * c->f + k);
    return sum;
}

/* Compares one element, which is exact but for the rounding of its type. */
static bool same(const Problem *p, const Data *d, int64_t i, double want)
{
    double got = data_get(&d->tensor, i);

    if (fabs(got - want) <= 1e-5 * fmax(1, fabs(want)))
        return true;
    fprintf(stderr, "weft bench: %s: element %lld of %s is %g, not %g\n", p->text, (long long)i,
            d->name, got, want);
    return false;
}

/* Every element of as many rows as 1e8 multiplications take, spread over the graph. */
static bool check_rows(const Problem *p, const Csr *c, const Data *out, bool by_entry)
{
    double work = (double)c->g->nnz * (double)c->f;
    int64_t step = 1 + (int64_t)(work / 1e8);

    for (int64_t i = 0; i < c->m; i += step) {
        int64_t begin = by_entry ? at(c->g, c->g->start, i) : i * c->f;
        int64_t end = by_entry ? at(c->g, c->g->start, i + 1) : begin + c->f;

        for (int64_t k = begin; k < end; k++)
            if (!same(p, out, k, by_entry ? sddmm_element(c, i, k) : spmm_element(c, i, k - begin)))
                return false;
    }
    return true;
}

static const struct {
    const char *op, *a, *x, *y, *out;
} loops[] = {
    { "spmm", "A", "B", NULL, "C" },
    { "spmv", "A", "X", NULL, "Y" },
    { "sddmm", NULL, "X", "Y", "Z" },
};

static const weft_tensor *tensor_of(const Problem *p, const char *name)
{
    const Data *d = name == NULL ? NULL : problem_data(p, name);

    return d == NULL ? NULL : &d->tensor;
}

/* The loop for the operator, if it has no options but its type; else -1. */
static int loop_of(const Problem *p)
{
    const char *options = p->spec + strlen(p->op);

    if (strcmp(options, "") != 0 && strcmp(options, ":f32") != 0 && strcmp(options, ":f64") != 0)
        return -1;
    for (int i = 0; i < (int)(sizeof loops / sizeof *loops); i++)
        if (strcmp(loops[i].op, p->op) == 0 && problem_data(p, loops[i].x) != NULL &&
            problem_data(p, loops[i].out) != NULL)
            return i;
    return -1;
}

static bool run_loop(Problem *p, int l)
{
    const Data *out = problem_data(p, loops[l].out);
    Csr c = { .m = p->graph.m, .f = 1, .g = &p->graph };

    c.a = tensor_of(p, loops[l].a);
    c.x = tensor_of(p, loops[l].x);
    c.y = tensor_of(p, loops[l].y);
    if (c.x != NULL && c.x->ndim > 1)
        c.f = c.x->shape[1];
    if (weft_kernel_run(p->kernel, p->args) != WEFT_OK)
        return cli_failed(p->ctx) == EXIT_GOOD;
    return check_rows(p, &c, out, loops[l].y != NULL);
}

const char *bench_verify(Problem *p, double flops)
{
    int l = loop_of(p);
    double elements = 0;

    for (int i = 0; i < p->ndata; i++)
        elements += p->data[i].output ? (double)p->data[i].n : 0;
    if (flops + elements <= MOST_FLOPS)
        return run_interpreter(p) ? "interpreter" : NULL;
    if (l >= 0)
        return run_loop(p, l) ? "loop" : NULL;
    if (p->archive[0] != 0)
        return "no"; /* too large to interpret, and there is no smaller structure of its kind */
    return run_small(p) ? "small graph" : NULL;
}
