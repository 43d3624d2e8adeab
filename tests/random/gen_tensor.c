/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Irreps with unequal multiplicities and their product over constant relations: the one kind of
 * access whose bounds hold only because the tables fit each other. */
#include "random/gen.h"

typedef struct Irreps {
    GAxis *slot, *comp, *mult;
    int64_t n, m[3], u[3];
} Irreps;

typedef struct Paths {
    int64_t n, s[3][3]; /* by path: the slots of x, y and z */
} Paths;

static void declare_irreps(Gen *g, Irreps *r)
{
    r->slot = gen_axis_dense(g, gen_f(g, "%lld", (long long)r->n), r->n, true);
    r->comp = gen_axis_table(g, "M", r->slot, r->m);
    r->mult = gen_axis_table(g, "U", r->slot, r->u);
}

static Irreps draw_irreps(Gen *g, bool single)
{
    Irreps r = { .n = 1 + gen_pick(g, 3) };

    for (int i = 0; i < r.n; i++) {
        r.m[i] = 1 + 2 * gen_pick(g, 2);
        r.u[i] = single ? 1 : gen_pick(g, 4);
    }
    declare_irreps(g, &r);
    return r;
}

static GAxis *rows_axis(Gen *g, GAxis *parent, const int64_t *count, int64_t n)
{
    GAxis *x = gen_axis_table(g, parent == NULL ? "P" : "Q", parent == NULL ? NULL : parent,
                              parent == NULL ? &n : count);

    x->rows = true;
    x->ncoord = 0;
    if (parent == NULL) {
        x->extent = X_EXPR;
        x->size = gen_f(g, "%lld", (long long)n);
    }
    return x;
}

static void set_column(GAxis *x, const char *name, int64_t *val, int64_t most)
{
    x->coord[x->ncoord++] =
        (GCoord){ .name = name, .kind = C_TABLE, .val = val, .range = ival(0, most - 1) };
}

/* One row a path; the output slot of a path must have x's multiplicity. */
static GAxis *path_axis(Gen *g, const Irreps *x, const Irreps *y, Irreps *z, Paths *p)
{
    GAxis *axis;
    int64_t *col[3];

    p->n = 1 + gen_pick(g, 3);
    z->n = p->n;
    for (int i = 0; i < p->n; i++) {
        p->s[i][0] = gen_pick(g, (int)x->n);
        p->s[i][1] = gen_pick(g, (int)y->n);
        p->s[i][2] = i;
        z->m[i] = 1 + 2 * gen_pick(g, 2);
        z->u[i] = x->u[p->s[i][0]];
    }
    axis = rows_axis(g, NULL, NULL, p->n);
    for (int k = 0; k < 3; k++) {
        col[k] = arena_array(g->arena, p->n, sizeof *col[k]);
        for (int i = 0; i < p->n; i++)
            col[k][i] = p->s[i][k];
    }
    set_column(axis, "sx", col[0], x->n);
    set_column(axis, "sy", col[1], y->n);
    set_column(axis, "sz", col[2], z->n);
    return axis;
}

static GAxis *coefficient_axis(Gen *g, GAxis *paths, const Irreps *x, const Irreps *y,
                               const Irreps *z, const Paths *p)
{
    int64_t count[3], total = 0, at = 0, *col[3];
    double *value;
    GAxis *axis;

    for (int i = 0; i < p->n; i++)
        total += count[i] = 1 + gen_pick(g, 4);
    axis = rows_axis(g, paths, count, total);
    value = arena_array(g->arena, total, sizeof *value);
    for (int k = 0; k < 3; k++)
        col[k] = arena_array(g->arena, total, sizeof *col[k]);
    for (int i = 0; i < p->n; i++)
        for (int64_t c = 0; c < count[i]; c++, at++) {
            col[0][at] = gen_pick(g, (int)x->m[p->s[i][0]]);
            col[1][at] = gen_pick(g, (int)y->m[p->s[i][1]]);
            col[2][at] = gen_pick(g, (int)z->m[p->s[i][2]]);
            value[at] = g->knobs.exact ? gen_pick(g, 7) - 3 : 0.5773502691896258 * gen_pick(g, 5);
        }
    axis->value = value;
    set_column(axis, "m1", col[0], 3);
    set_column(axis, "m2", col[1], 3);
    set_column(axis, "m3", col[2], 3);
    gen_rows_value(g, axis);
    return axis;
}

/* The product is plain, over a batch, or along the edges of a graph: where each operand lives. */
typedef struct Domain {
    GAxis *x, *y, *z;               /* the first axis of each operand, weights go with y; or NULL */
    const char *x_at, *y_at, *z_at; /* its index */
    double terms;                   /* for one element of z, at most */
} Domain;

static Domain draw_domain(Gen *g)
{
    Domain d = { .x_at = "", .y_at = "", .z_at = "", .terms = 1 };
    const char *size;
    int64_t n;
    GAxis *e;

    if (gen_p(g, 30))
        return d;
    gen_extent(g, 0, 4, false, &size, &n);
    d.x = d.y = d.z = gen_axis_dense(g, size, n, true);
    d.x_at = d.y_at = d.z_at = d.x->var;
    if (n == 0 || gen_p(g, 50))
        return d;
    e = gen_axis_edges(g, d.z, "src", size, n);
    d.y = e;
    d.y_at = e->var;
    d.x_at = gen_f(g, "src(%s)", e->var);
    d.terms = (double)e->n;
    gen_has(g, F_convolution);
    return d;
}

/* An operand, in ir_mul or mul_ir order. */
static GBuf *operand(Gen *g, GAxis *first, const Irreps *r, bool mul_ir, bool input)
{
    GAxis *slot[4];
    int n = 0;

    if (first != NULL)
        slot[n++] = first;
    slot[n++] = r->slot;
    slot[n++] = mul_ir ? r->mult : r->comp;
    slot[n++] = mul_ir ? r->comp : r->mult;
    return input ? gen_input(g, gen_float_type(g), slot, n) : gen_buf(g, B_ARG, T_f64, slot, n);
}

static GBuf *weights(Gen *g, GAxis *first, GAxis *paths, GAxis *up)
{
    GAxis *slot[3] = { first, paths, up };

    return first != NULL ? gen_input(g, gen_float_type(g), slot, 3)
                         : gen_input(g, gen_float_type(g), slot + 1, 2);
}

static const char *load(Gen *g, const GBuf *b, const char *first, const char *s, const char *m,
                        const char *u, bool mul_ir)
{
    return gen_f(g, "%s[%s%s%s, %s, %s]", b->name, first, *first != 0 ? ", " : "", s,
                 mul_ir ? u : m, mul_ir ? m : u);
}

/* "s(p)" */
static const char *call(Gen *g, const char *coord, const GAxis *x)
{
    return gen_f(g, "%s(%s)", coord, x->var);
}

void gen_tensor(Gen *g)
{
    Domain d = draw_domain(g);
    Irreps x = draw_irreps(g, false), y = draw_irreps(g, true), z = { 0 };
    Paths p;
    GAxis *paths = path_axis(g, &x, &y, &z, &p), *up, *coefs;
    bool mul_ir = gen_p(g, 50);
    GBuf *bx, *by, *bz, *wt;

    declare_irreps(g, &z);
    up = gen_axis_table(g, "UP", paths, z.u);
    coefs = coefficient_axis(g, paths, &x, &y, &z, &p);
    bx = operand(g, d.x, &x, mul_ir, true);
    by = operand(g, d.y, &y, mul_ir, true);
    wt = weights(g, d.y, paths, up);
    bz = operand(g, d.z, &z, mul_ir, false);
    bz->written = true;
    bz->op = A_ADD;
    bz->mag = 4 * 4 * 4 * 4 * d.terms * (double)coefs->n;
    gen_has(g, F_tensor_product);
    text_f(&g->body, "z_%d: %s += %s[%s] * %s * %s * %s[%s%s%s, %s]\n", g->nlabel++,
           load(g, bz, d.z_at, call(g, "sz", paths), call(g, "m3", coefs), up->var, mul_ir),
           coefs->rows_value, coefs->var,
           load(g, bx, d.x_at, call(g, "sx", paths), call(g, "m1", coefs), up->var, mul_ir),
           load(g, by, d.y_at, call(g, "sy", paths), call(g, "m2", coefs), "0", mul_ir), wt->name,
           d.y_at, *d.y_at != 0 ? ", " : "", paths->var, up->var);
}
