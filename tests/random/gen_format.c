/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Axes of the formats that people use, with fitting structure: chance alone would make them too
 * rarely.  Each is a few lines; the texts are those of docs/ir.md. */
#include "random/gen.h"

typedef struct Bound { /* an expression of sizes */
    const char *text;
    int64_t value;
} Bound;

static Bound bound(Gen *g, int64_t lo, int64_t hi)
{
    Bound b;

    gen_extent(g, lo, hi, false, &b.text, &b.value);
    return b;
}

static GAxis *root(Gen *g, Bound n)
{
    return gen_axis_dense(g, n.text, n.value, true);
}

/* An axis of equal extents under each position of its parent, coordinates still to come. */
static GAxis *uniform(Gen *g, GAxis *parent, Bound n)
{
    GAxis *x = gen_axis_open(g, parent, X_EXPR, true);
    int64_t up = parent == NULL ? 1 : parent->n, *count = arena_array(g->arena, up + 1, 8);

    for (int64_t q = 0; q < up; q++)
        count[q] = n.value;
    x->size = n.text;
    x->constant = (parent == NULL || parent->constant) && gen_is_literal(n.text);
    gen_axis_positions(g, x, count);
    return x;
}

static GAxis *segments(Gen *g, GAxis *parent, int most)
{
    GAxis *x = gen_axis_open(g, parent, X_SEG, true);
    int64_t *count = arena_array(g->arena, parent->n + 1, sizeof *count);

    for (int64_t q = 0; q < parent->n; q++)
        count[q] = gen_p(g, 30) ? 0 : gen_pick(g, most + 1);
    gen_axis_positions(g, x, count);
    return x;
}

static void load(Gen *g, GAxis *x, const char *name, Bound most)
{
    GCoord *c = gen_axis_coord(g, x, name, C_LOAD);

    c->bound = most.text;
    c->most = most.value;
    for (int64_t p = 0; p < x->n; p++)
        c->val[p] = gen_pick(g, (int)most.value);
}

/* Distinct and ascending under each parent: needs extents of at most the bound. */
static void load_sorted(Gen *g, GAxis *x, const char *name, Bound most)
{
    GCoord *c;

    load(g, x, name, most);
    c = &x->coord[x->ncoord - 1];
    for (int64_t p = 0; p < x->n; p++) {
        int64_t left = x->start[x->up[p] + 1] - p, first = x->start[x->up[p]];
        int64_t lo = p == first ? 0 : c->val[p - 1] + 1;

        c->val[p] = lo + gen_pick(g, (int)(most.value - left - lo + 1));
    }
}

static void expression(Gen *g, GAxis *x, const char *name, const char *text, Bound most)
{
    GCoord *c = gen_axis_coord(g, x, name, C_EXPR);

    c->text = text;
    c->bound = most.text;
    c->most = most.value;
}

static int64_t *column(GAxis *x, int k)
{
    return x->coord[k].val;
}

static GAxis *csr(Gen *g, GAxis *rows, Bound n)
{
    GAxis *x = segments(g, rows, n.value < 4 ? (int)n.value : 4);

    if (gen_p(g, 75))
        load_sorted(g, x, NULL, n);
    else
        load(g, x, NULL, n);
    gen_axis_close(g, x);
    return x;
}

GAxis *gen_axis_edges(Gen *g, GAxis *rows, const char *coord, const char *most, int64_t value)
{
    GAxis *x = segments(g, rows, 3);

    load(g, x, coord, (Bound){ most, value });
    gen_axis_close(g, x);
    return x;
}

static void csr_pair(Gen *g)
{
    GAxis *rows = root(g, bound(g, 1, 5));
    Bound n = bound(g, 1, 6);

    csr(g, rows, n);
    csr(g, rows, n);
    gen_has(g, F_csr);
}

static void csf(Gen *g)
{
    csr(g, csr(g, root(g, bound(g, 1, 4)), bound(g, 1, 5)), bound(g, 1, 5));
    gen_has(g, F_csf);
}

static void coo(Gen *g)
{
    GAxis *x = uniform(g, NULL, bound(g, 1, 8));

    load(g, x, "src", bound(g, 1, 6));
    load(g, x, "dst", bound(g, 1, 6));
    gen_axis_close(g, x);
    gen_has(g, F_coo);
}

static void dcsr(Gen *g)
{
    GAxis *x = uniform(g, NULL, bound(g, 1, 4));

    load_sorted(g, x, NULL, bound(g, 4, 8));
    gen_axis_close(g, x);
    csr(g, x, bound(g, 1, 5));
    gen_has(g, F_dcsr);
}

/* Short rows end in padding: -1, or beyond the bound. */
static void ell(Gen *g)
{
    GAxis *x = uniform(g, root(g, bound(g, 1, 5)), bound(g, 1, 4));

    load(g, x, NULL, bound(g, 1, 6));
    for (int64_t p = 0; p < x->n; p++)
        if (gen_p(g, 35))
            column(x, 0)[p] = gen_p(g, 70) ? -1 : 999;
    x->flags = AX_PADDED;
    gen_axis_close(g, x);
    gen_has(g, F_ell);
}

static void band(Gen *g)
{
    GAxis *rows = root(g, bound(g, 1, 6));
    Bound w = bound(g, 1, 5);
    GAxis *x = uniform(g, rows, w);
    int c = gen_pick(g, 4);

    expression(g, x, "col", gen_f(g, "%s + %s - %d", rows->var, x->var, c), bound(g, 1, 6));
    for (int64_t p = 0; p < x->n; p++)
        column(x, 0)[p] = x->up[p] + (p - x->start[x->up[p]]) - c;
    x->flags = AX_PADDED;
    gen_axis_close(g, x);
    gen_has(g, F_band);
}

static void dia(Gen *g)
{
    GAxis *d = uniform(g, NULL, bound(g, 1, 4)), *r;
    Bound m = bound(g, 1, 5);
    GCoord *off = gen_axis_coord(g, d, "off", C_LOAD);

    for (int64_t p = 0; p < d->n; p++)
        off->val[p] = gen_pick(g, 7) - 3;
    gen_axis_close(g, d);
    r = uniform(g, d, m);
    expression(g, r, "i_", r->var, m);
    expression(g, r, "j_", gen_f(g, "%s + off(%s)", r->var, d->var), bound(g, 1, 6));
    for (int64_t p = 0; p < r->n; p++) {
        column(r, 0)[p] = p - r->start[r->up[p]];
        column(r, 1)[p] = column(r, 0)[p] + off->val[r->up[p]];
    }
    r->flags = AX_PADDED;
    gen_axis_close(g, r);
    gen_has(g, F_dia);
}

/* Plain rows address blocks by / and %. */
static void bsr(Gen *g)
{
    Bound mb = bound(g, 1, 3), b = { "2", 2 };
    GAxis *blocks = root(g, mb), *rows;
    Bound m = { gen_f(g, "2*(%s)", mb.text), 2 * mb.value };

    rows = uniform(g, NULL, m);
    expression(g, rows, "blk", gen_f(g, "%s / 2", rows->var), mb);
    expression(g, rows, "row", gen_f(g, "%s %% 2", rows->var), b);
    for (int64_t p = 0; p < rows->n; p++) {
        column(rows, 0)[p] = p / 2;
        column(rows, 1)[p] = p % 2;
    }
    gen_axis_close(g, rows);
    csr(g, blocks, bound(g, 1, 4));
    root(g, b);
    gen_has(g, F_bsr);
}

static void n_of_m(Gen *g)
{
    Bound ng = bound(g, 1, 3);
    GAxis *groups = uniform(g, root(g, bound(g, 1, 3)), ng), *x;

    gen_axis_close(g, groups);
    x = uniform(g, groups, (Bound){ "2", 2 });
    load_sorted(g, x, "o", (Bound){ "4", 4 });
    expression(g, x, "col", gen_f(g, "4*%s + o", groups->var),
               (Bound){ gen_f(g, "4*(%s)", ng.text), 4 * ng.value });
    for (int64_t p = 0; p < x->n; p++)
        column(x, 1)[p] = 4 * (x->up[p] - groups->start[groups->up[x->up[p]]]) + column(x, 0)[p];
    gen_axis_close(g, x);
    gen_has(g, F_n_of_m);
}

/* Condensed tiles: groups of a few columns under segments of strips. */
static void tiles(Gen *g)
{
    GAxis *strips = segments(g, root(g, bound(g, 1, 3)), 3), *x;

    gen_axis_close(g, strips);
    x = uniform(g, strips, (Bound){ "3", 3 });
    load(g, x, "dst", bound(g, 1, 6));
    for (int64_t p = 0; p < x->n; p++)
        if (gen_p(g, 30))
            column(x, 0)[p] = -1;
    x->flags = AX_PADDED;
    gen_axis_close(g, x);
    gen_has(g, F_tiles);
}

/* COO as two levels, the second with one entry each. */
static void chain_of_ones(Gen *g)
{
    GAxis *x = uniform(g, NULL, bound(g, 1, 6)), *y;
    int64_t one[8];

    load(g, x, NULL, bound(g, 1, 6));
    gen_axis_close(g, x);
    for (int64_t p = 0; p < x->n; p++)
        one[p] = 1;
    y = gen_axis_open(g, x, X_ONE, true);
    gen_axis_positions(g, y, one);
    load(g, y, NULL, bound(g, 1, 6));
    gen_axis_close(g, y);
    gen_has(g, F_ones);
}

/* The transpose of an axis: its second coordinate is a position of the first. */
static void transpose(Gen *g)
{
    GAxis *rows = root(g, bound(g, 1, 4)), *e = csr(g, rows, bound(g, 2, 5)), *t;

    if (e->live == 0)
        return;
    t = segments(g, root(g, bound(g, 1, 4)), 3);
    load(g, t, "src", bound(g, 1, 6));
    load(g, t, "back", (Bound){ gen_f(g, "%lld", (long long)e->n), e->n });
    gen_axis_close(g, t);
    gen_has(g, F_transpose);
}

void gen_format(Gen *g)
{
    static void (*const format[])(Gen *) = {
        csr_pair, csf, coo, dcsr, ell, band, dia, bsr, n_of_m, tiles, chain_of_ones, transpose
    };

    if (g->naxis < G_AXES - 12)
        format[gen_pick(g, sizeof format / sizeof *format)](g);
}
