/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Temporaries with a row for each edge, and sums that read them: of the edge, of its row, of few
 * elements for all edges, and of an array without dimensions.  Passes fuse such statements and drop
 * the temporary; derivatives of layers with computed weights consist of them. */
#include "random/gen.h"

typedef struct EdgeRows {
    GAxis *rows, *edges, *k, *h;
    GBuf *v; /* the temporary */
} EdgeRows;

static Type sum_type(Gen *g, double mag)
{
    return mag < gen_limit(g, T_f32) && !g->knobs.poly && gen_p(g, 60) ? T_f32 : T_f64;
}

static GBuf *sum_buf(Gen *g, BufKind kind, double mag, GAxis *const *slot, int nslot)
{
    GBuf *b = gen_buf(g, kind, sum_type(g, mag), slot, nslot);

    b->written = true;
    b->op = A_ADD;
    b->mag = mag;
    return b;
}

static const char *input(Gen *g, GAxis *a, GAxis *b)
{
    GAxis *slot[2] = { a, b };
    GBuf *x = gen_input(g, gen_float_type(g), slot, a == NULL ? 0 : b == NULL ? 1 : 2);

    x->fill = NULL;
    return a == NULL   ? gen_f(g, "%s[]", x->name)
           : b == NULL ? gen_f(g, "%s[%s]", x->name, a->var)
                       : gen_f(g, "%s[%s, %s]", x->name, a->var, b->var);
}

static GAxis *constant_axis(Gen *g, int64_t n)
{
    return gen_axis_dense(g, gen_f(g, "%lld", (long long)n), n, true);
}

/* The rows: one product, or a sum of products. */
static void make_rows(Gen *g, EdgeRows *r)
{
    GAxis *slot[2] = { r->edges, r->k };
    bool sum = gen_p(g, 60);

    r->v = sum_buf(g, B_TEMP, 16.0 * (double)r->h->n, slot, 2);
    text_f(&g->body, "v_%d: %s[%s, %s] += %s * %s\n", g->nlabel++, r->v->name, r->edges->var,
           r->k->var, input(g, r->edges, sum ? r->h : r->k), input(g, sum ? r->h : r->edges, r->k));
    r->v->read = true;
}

/* The element that one statement adds to, and what it adds. */
static void use_rows(Gen *g, const EdgeRows *r)
{
    GAxis *slot[5][2] = {
        { NULL }, { r->edges }, { r->edges, r->h }, { r->h, r->k }, { r->rows, r->k }
    };
    int what = gen_p(g, 30) ? 0 : gen_pick(g, 5), n = what == 0 ? 0 : what == 1 ? 1 : 2;
    GAxis *const *at = slot[what];
    double mag = r->v->mag * 4 * (double)(r->edges->n * r->k->n * r->h->n + 1);
    GBuf *z = sum_buf(g, B_ARG, mag, at, n);
    const char *index = n == 0   ? ""
                        : n == 1 ? at[0]->var
                                 : gen_f(g, "%s, %s", at[0]->var, at[1]->var);
    const char *row = gen_f(g, "%s[%s, %s]", r->v->name, r->edges->var, r->k->var);
    const char *by = what == 2 ? input(g, r->h, r->k) : what == 3 ? input(g, r->edges, r->h)
                                                      : input(g, gen_p(g, 50) ? NULL : r->edges,
                                                              NULL);

    if (what == 0 && gen_p(g, 50)) /* a sum that does not read the rows */
        row = input(g, r->edges, NULL);
    if (n == 0)
        gen_has(g, F_scalar_sum);
    text_f(&g->body, "    z_%d: %s[%s] += %s * %s\n", g->nlabel++, z->name, index, row, by);
}

void gen_rows(Gen *g)
{
    EdgeRows r = { 0 };
    const char *size;
    int64_t n;
    int uses = 1 + gen_pick(g, 3);

    gen_extent(g, 1, 4, false, &size, &n);
    r.rows = gen_axis_dense(g, size, n, true);
    r.edges = gen_axis_edges(g, r.rows, "src", size, n);
    r.k = constant_axis(g, 1 + gen_pick(g, 9));
    r.h = constant_axis(g, 1 + gen_pick(g, 3));
    gen_has(g, F_edge_rows);
    make_rows(g, &r);
    if (gen_p(g, 50)) { /* one group, or a statement for each */
        text_f(&g->body, "for %s, %s, %s, %s:\n", r.rows->var, r.edges->var, r.k->var, r.h->var);
        for (int i = 0; i < uses; i++)
            use_rows(g, &r);
        return;
    }
    for (int i = 0; i < uses; i++) {
        text_f(&g->body, "for %s, %s, %s, %s:\n", r.rows->var, r.edges->var, r.k->var, r.h->var);
        use_rows(g, &r);
    }
}
