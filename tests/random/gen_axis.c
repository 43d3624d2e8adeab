/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random axes with their structure: an extent rule, coordinate rules, and the flags that the
 * drawn coordinates happen to allow. */
#include "random/gen.h"

#include <math.h>
#include <string.h>

bool gen_is_literal(const char *size)
{
    return strpbrk(size, "abcdefghijklmnopqrstuvwxyz_") == NULL;
}

static const char *const axis_names[] = {
    "I",  "J", "K", "E", "F", "G", "H", "L",  "M",  "N",   "P",    "Q",   "R",  "S",
    "T",  "U", "V", "W", "B", "C", "D", "IB", "JB", "Rel", "Node", "E_2", "SX", "LongAxisName",
    NULL,
};
static const char *const coord_names[] = { "i",   "j", "k",  "x",   "off", "src",
                                           "dst", "o", "m1", "c_0", NULL };

bool gen_is_ident(const GAxis *x)
{
    return x->ncoord == 1 && x->coord[0].kind == C_IDENT;
}

bool gen_is_above(const GAxis *up, const GAxis *x)
{
    for (x = x->parent; x != NULL; x = x->parent)
        if (x == up)
            return true;
    return false;
}

bool gen_usable(const GAxis *x)
{
    for (; x != NULL; x = x->parent)
        if (x->built == OPEN)
            return false;
    return true;
}

GAxis *gen_axis_open(Gen *g, GAxis *parent, Extent extent, bool named)
{
    GAxis *x = arena_alloc(g->arena, sizeof *x);

    x->parent = parent;
    x->extent = extent;
    x->known = parent == NULL || parent->known;
    if (named) {
        x->name = gen_name(g, axis_names);
        x->var = gen_lower(g, x->name);
        g->axis[g->naxis++] = x;
    }
    return x;
}

void gen_axis_positions(Gen *g, GAxis *x, const int64_t *count)
{
    int64_t up = x->parent == NULL ? 1 : x->parent->n;

    x->start = arena_array(g->arena, up + 1, sizeof *x->start);
    x->least = INT64_MAX;
    for (int64_t q = 0; q < up; q++) {
        x->start[q + 1] = x->start[q] + count[q];
        if (count[q] > x->most)
            x->most = count[q];
        if (count[q] < x->least && (x->parent == NULL || x->parent->exists[q]))
            x->least = count[q];
    }
    x->least = x->least > x->most ? x->most : x->least; /* no parent exists */
    x->n = x->start[up];
    x->up = arena_array(g->arena, x->n + 1, sizeof *x->up);
    x->exists = arena_array(g->arena, x->n + 1, sizeof *x->exists);
    for (int64_t q = 0; q < up; q++)
        for (int64_t p = x->start[q]; p < x->start[q + 1]; p++)
            x->up[p] = q;
}

static int64_t loc_of(const GAxis *x, int64_t p)
{
    return p - x->start[x->up[p]];
}

/* A name no other coordinate has, and no variable of the axis or above it. */
static const char *coord_name(Gen *g, const GAxis *x)
{
    const char *name;
    bool taken;

    do {
        name = coord_names[gen_pick(g, sizeof coord_names / sizeof *coord_names - 1)];
        taken = false;
        for (const GAxis *up = x; up != NULL; up = up->parent)
            taken = taken || strcmp(name, up->var) == 0;
        for (int k = 0; k < x->ncoord; k++)
            taken = taken || (x->coord[k].name != NULL && strcmp(name, x->coord[k].name) == 0);
    } while (taken);
    return name;
}

GCoord *gen_axis_coord(Gen *g, GAxis *x, const char *name, CoordKind kind)
{
    GCoord *c = &x->coord[x->ncoord++];

    *c = (GCoord){ .name = name, .kind = kind, .type = gen_p(g, 50) ? T_i32 : T_i64 };
    c->val = arena_array(g->arena, x->n + 1, sizeof *c->val);
    if (kind == C_IDENT && x->known)
        for (int64_t p = 0; p < x->n; p++)
            c->val[p] = loc_of(x, p);
    return c;
}

/* After the coordinates: which positions exist, and what range each coordinate has there. */
static void find_existing(GAxis *x)
{
    x->live = 0;
    for (int64_t p = 0; p < x->n; p++) {
        x->exists[p] = x->parent == NULL || x->parent->exists[x->up[p]];
        for (int k = 0; k < x->ncoord && (x->flags & AX_PADDED); k++)
            if (x->coord[k].bound != NULL)
                x->exists[p] = x->exists[p] && x->coord[k].val[p] >= 0 &&
                               x->coord[k].val[p] < x->coord[k].most;
        x->live += x->exists[p];
    }
    for (int k = 0; k < x->ncoord; k++) {
        GCoord *c = &x->coord[k];

        c->range = ival(1, 0);
        for (int64_t p = 0; p < x->n; p++) {
            if (!x->exists[p])
                continue;
            if (c->range.lo > c->range.hi)
                c->range = ival(c->val[p], c->val[p]);
            c->range.lo = fmin((double)c->val[p], c->range.lo);
            c->range.hi = fmax((double)c->val[p], c->range.hi);
        }
    }
}

static int tuple_order(const GAxis *x, int64_t p, int64_t q)
{
    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].val[p] != x->coord[k].val[q])
            return x->coord[k].val[p] < x->coord[k].val[q] ? -1 : 1;
    return 0;
}

/* Declares sorted and unique, sometimes, where they are true. */
static void find_flags(Gen *g, GAxis *x)
{
    bool sorted = true, unique = true;

    for (int64_t p = 0; p < x->n; p++)
        for (int64_t q = p + 1; q < x->n && x->up[q] == x->up[p]; q++)
            if (x->exists[p] && x->exists[q]) {
                sorted = sorted && tuple_order(x, p, q) <= 0;
                unique = unique && tuple_order(x, p, q) != 0;
            }
    if (gen_is_ident(x) && !gen_p(g, 15))
        return;
    x->flags |= sorted && gen_p(g, 60) ? AX_SORTED : 0;
    x->flags |= unique && gen_p(g, 75) ? AX_UNIQUE : 0;
}

void gen_axis_close(Gen *g, GAxis *x)
{
    if (x->ncoord == 0)
        gen_axis_coord(g, x, NULL, C_IDENT);
    find_existing(x);
    find_flags(g, x);
}

GAxis *gen_axis_dense(Gen *g, const char *size, int64_t value, bool named)
{
    GAxis *x = gen_axis_open(g, NULL, X_EXPR, named);

    x->size = size;
    x->constant = gen_is_literal(size);
    gen_axis_positions(g, x, &value);
    gen_axis_coord(g, x, NULL, C_IDENT);
    find_existing(x);
    return x;
}

GAxis *gen_axis_table(Gen *g, const char *stem, GAxis *parent, const int64_t *extent)
{
    GAxis *x = gen_axis_open(g, parent, X_TABLE, false);

    x->name = gen_name(g, (const char *const[]){ stem, NULL });
    x->var = gen_lower(g, x->name);
    g->axis[g->naxis++] = x;
    x->constant = true;
    gen_axis_positions(g, x, extent);
    gen_axis_coord(g, x, NULL, C_IDENT);
    find_existing(x);
    return x;
}

GAxis *gen_axis_built(Gen *g)
{
    GAxis *parent = NULL, *x;
    int n = gen_p(g, 70) ? 1 : 2;

    for (int tries = 0; tries < 8 && g->naxis > 0 && gen_p(g, 85); tries++) {
        parent = g->axis[gen_pick(g, g->naxis)];
        if (parent->n > 0 && parent->n <= 12 && (parent->known || parent->extent == X_BUILT))
            break;
        parent = NULL;
    }
    x = gen_axis_open(g, parent, X_BUILT, true);
    x->known = false;
    x->built = OPEN;
    x->flags = AX_SORTED | AX_UNIQUE;
    x->most = 1;
    for (int k = 0; k < n; k++) {
        GCoord *c = gen_axis_coord(g, x, n > 1 || gen_p(g, 25) ? coord_name(g, x) : NULL, C_LOAD);

        gen_extent(g, 1, 6, false, &c->bound, &c->most);
        c->range = ival(0, c->most - 1);
        x->most *= c->most;
    }
    x->n = x->live = x->most * (parent == NULL ? 1 : parent->n);
    return x;
}

static void draw_extent(Gen *g, GAxis *x)
{
    int64_t up = x->parent == NULL ? 1 : x->parent->n, n = 1, most = up > 8 ? 2 : 5;
    int64_t *count = arena_array(g->arena, up + 1, sizeof *count);

    if (x->extent == X_EXPR) {
        gen_extent(g, x->parent == NULL ? 0 : 1, up > 4 ? 3 : 6, gen_p(g, 30), &x->size, &n);
    }
    x->constant = x->extent == X_TABLE ||
                  ((x->parent == NULL || x->parent->constant) &&
                   (x->extent == X_ONE || (x->extent == X_EXPR && gen_is_literal(x->size))));
    for (int64_t q = 0; q < up; q++)
        count[q] = x->extent == X_EXPR || x->extent == X_ONE ? n
                   : gen_p(g, 25)                            ? 0
                                                             : gen_pick(g, (int)most + 1);
    gen_axis_positions(g, x, count);
}

/* Values of a load or a table: below the bound, and outside it for padding. */
static void draw_values(Gen *g, const GAxis *x, GCoord *c)
{
    for (int64_t p = 0; p < x->n; p++) {
        c->val[p] = c->bound == NULL ? gen_pick(g, 9) - 3 : gen_pick(g, (int)c->most);
        if (c->bound != NULL && (x->flags & AX_PADDED) && gen_p(g, 25))
            c->val[p] = gen_p(g, 60) ? -1 : gen_p(g, 50) ? c->most : 1000000;
    }
}

static bool swap_if_greater(GAxis *x, int64_t p)
{
    if (x->up[p - 1] != x->up[p] || tuple_order(x, p - 1, p) <= 0)
        return false;
    for (int k = 0; k < x->ncoord; k++) {
        int64_t *v = x->coord[k].val, keep = v[p];

        v[p] = v[p - 1];
        v[p - 1] = keep;
    }
    return true;
}

/* Sorts the drawn tuples under each parent; only when all coordinates were drawn. */
static void sort_values(GAxis *x)
{
    for (int64_t p = 1; p < x->n; p++)
        for (int64_t q = p; q > 0 && swap_if_greater(x, q); q--)
            ;
}

/* Makes drawn tuples distinct where the bounds leave room for it. */
static void spread_values(Gen *g, GAxis *x)
{
    for (int64_t p = 0; p < x->n; p++)
        for (int64_t q = x->start[x->up[p]], tries = 0; q < p && tries < 20; q++)
            if (tuple_order(x, p, q) == 0) {
                GCoord *c = &x->coord[gen_pick(g, x->ncoord)];

                c->val[p] = c->bound == NULL ? c->val[p] + 1 : gen_pick(g, (int)c->most);
                q = x->start[x->up[p]] - 1;
                tries++;
            }
}

static const char *ancestor_term(Gen *g, const GAxis *x, int64_t *val)
{
    const GAxis *a = x->parent->parent != NULL && gen_p(g, 30) ? x->parent->parent : x->parent;
    const GCoord *c = &a->coord[gen_pick(g, a->ncoord)];
    int what = gen_pick(g, 4);

    for (int64_t p = 0; p < x->n; p++) {
        int64_t q = a == x->parent ? x->up[p] : x->parent->up[x->up[p]];

        val[p] = what == 1 ? loc_of(a, q) : what == 2 ? q : c->val[q];
    }
    if (what == 1 || what == 2)
        return gen_f(g, "%s(%s)", what == 1 ? "loc" : "pos", a->var);
    return c->name == NULL ? a->var : gen_f(g, "%s(%s)", c->name, a->var);
}

/* A term of a coordinate's expression: own position, an ancestor's coordinate, an earlier own one
 * or a size.  Its values are written out with it. */
static const char *draw_term(Gen *g, const GAxis *x, int64_t *val)
{
    int kind = gen_pick(g, 5), k;

    if (kind == 0 && x->ncoord > 0) {
        k = gen_pick(g, x->ncoord);
        memcpy(val, x->coord[k].val, (size_t)x->n * sizeof *val);
        return x->coord[k].name;
    }
    if (kind >= 3 && x->parent != NULL)
        return ancestor_term(g, x, val);
    k = gen_pick(g, g->nsize);
    for (int64_t p = 0; p < x->n; p++)
        val[p] = kind == 1 ? g->size[k].value : loc_of(x, p);
    if (kind == 1)
        return g->size[k].name;
    return gen_p(g, 20) ? gen_f(g, "loc(%s)", x->var) : x->var;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* c1 * term (+|-) c2 * term (+|-) c3, and perhaps / or % of it. */
static const char *draw_coord_expr(Gen *g, const GAxis *x, int64_t *val)
{
    int64_t *b = arena_array(g->arena, x->n + 1, sizeof *b);
    const char *s = draw_term(g, x, val);
    int64_t c = gen_pick(g, 4) - 1, m = gen_pick(g, 3) + 1;
    bool sum = false;

    if (gen_p(g, 30)) {
        s = gen_f(g, "%lld * %s", (long long)m, s);
        for (int64_t p = 0; p < x->n; p++)
            val[p] *= m;
    }
    if (gen_p(g, 60)) {
        bool minus = gen_p(g, 30);

        s = gen_f(g, "%s %c %s", s, minus ? '-' : '+', draw_term(g, x, b));
        for (int64_t p = 0; p < x->n; p++)
            val[p] += minus ? -b[p] : b[p];
        sum = true;
    }
    if (gen_p(g, 40)) {
        s = gen_f(g, "%s %c %lld", s, c < 0 ? '-' : '+', (long long)(c < 0 ? -c : c));
        for (int64_t p = 0; p < x->n; p++)
            val[p] += c;
        sum = true;
    }
    if (gen_p(g, 30)) {
        bool mod = gen_p(g, 50);

        m++;
        s = gen_f(g, sum ? "(%s) %c %lld" : "%s %c %lld", s, mod ? '%' : '/', (long long)m);
        for (int64_t p = 0; p < x->n; p++)
            val[p] = mod ? val[p] - m * floor_div(val[p], m) : floor_div(val[p], m);
    }
    return s;
}

/* A bound that all values keep, or (padded) any. */
static void bound_values(Gen *g, const GAxis *x, GCoord *c)
{
    int64_t lo = 0, hi = 0;

    for (int64_t p = 0; p < x->n; p++)
        if (x->parent == NULL || x->parent->exists[x->up[p]]) {
            lo = c->val[p] < lo ? c->val[p] : lo;
            hi = c->val[p] > hi ? c->val[p] : hi;
        }
    if (x->flags & AX_PADDED)
        gen_extent(g, 0, 6, false, &c->bound, &c->most);
    else if (lo >= 0 && gen_p(g, 60))
        gen_extent(g, hi + 1, hi + 6, false, &c->bound, &c->most);
}

static void draw_coord(Gen *g, GAxis *x, const char *name, CoordKind kind)
{
    GCoord *c = gen_axis_coord(g, x, name, kind);

    if (kind == C_LOAD || kind == C_TABLE) {
        if (x->n > 0 && gen_p(g, 85))
            gen_extent(g, 1, 6, false, &c->bound, &c->most);
        draw_values(g, x, c);
    } else {
        x->ncoord--; /* not yet there: it cannot use itself */
        if (kind == C_EXPR)
            c->text = draw_coord_expr(g, x, c->val);
        x->ncoord++;
        if ((kind == C_EXPR || gen_p(g, 20)) && x->n > 0)
            bound_values(g, x, c);
    }
}

static CoordKind draw_kind(Gen *g, const GAxis *x, bool named)
{
    int r = gen_pick(g, 100);

    if (x->constant && r < 30)
        return C_TABLE;
    if (named && r < 60)
        return C_EXPR;
    return named && r < 68 ? C_IDENT : C_LOAD;
}

static void draw_coords(Gen *g, GAxis *x)
{
    int n = gen_p(g, 45) ? 1 : gen_p(g, 70) ? 2 : 3;
    bool named = n > 1 || gen_p(g, 45), drawn = true, bounded = false;

    x->flags = gen_p(g, 30) ? AX_PADDED : 0;
    for (int k = 0; k < n; k++) {
        CoordKind kind = draw_kind(g, x, named);

        draw_coord(g, x, named ? coord_name(g, x) : NULL, kind);
        drawn = drawn && (kind == C_LOAD || kind == C_TABLE);
        bounded = bounded || x->coord[k].bound != NULL;
    }
    if (!bounded)
        x->flags = 0;
    if (drawn && gen_p(g, 65))
        spread_values(g, x);
    if (drawn && gen_p(g, 60))
        sort_values(x);
}

void gen_rows_value(Gen *g, GAxis *x)
{
    GBuf *b = gen_buf(g, B_CONST, T_f64, &x, 1);

    b->rows = true;
    b->mag = 4;
    x->rows_value = b->name;
}

/* Constant coordinates written as rows, with values: all positions named, none empty. */
static void draw_rows(Gen *g, GAxis *x)
{
    int n = 1 + gen_pick(g, 3);
    double *value = arena_array(g->arena, x->n + 1, sizeof *value);

    x->rows = true;
    x->value = value;
    for (int k = 0; k < n; k++) {
        GCoord *c = gen_axis_coord(g, x, coord_name(g, x), C_TABLE);

        for (int64_t p = 0; p < x->n; p++)
            c->val[p] = gen_pick(g, 5) - (gen_p(g, 10) ? 2 : 0);
    }
    for (int64_t p = 0; p < x->n; p++)
        value[p] = (gen_pick(g, 9) - 4) / (g->knobs.exact ? 1.0 : 0.7);
    if (gen_p(g, 60))
        gen_rows_value(g, x);
    if (gen_p(g, 60))
        spread_values(g, x);
}

static GAxis *random_parent(Gen *g)
{
    for (int tries = 0; tries < 4 && g->naxis > 0 && gen_p(g, 70); tries++) {
        GAxis *x = g->axis[gen_pick(g, g->naxis)];

        if (x->n <= 16 && (x->parent == NULL || gen_p(g, 60)))
            return x;
    }
    return NULL;
}

static Extent random_extent(Gen *g, const GAxis *parent)
{
    if (parent == NULL)
        return X_EXPR;
    if (parent->constant && gen_p(g, 45))
        return X_TABLE;
    if (parent->known && gen_p(g, 55))
        return X_SEG;
    return gen_p(g, 30) ? X_ONE : X_EXPR;
}

/* Below a built axis: its structure must not depend on arrays. */
static void close_below_built(Gen *g, GAxis *x)
{
    x->most = x->least = x->extent == X_ONE ? 1 : 2;
    x->size = "2";
    x->n = x->live = x->parent->n * x->most;
    gen_axis_coord(g, x, NULL, C_IDENT)->range = ival(0, x->most - 1);
}

GAxis *gen_axis(Gen *g, GAxis *parent)
{
    GAxis *x;

    if (g->naxis >= G_AXES - 8)
        return NULL;
    if (parent == NULL)
        parent = random_parent(g);
    x = gen_axis_open(g, parent, random_extent(g, parent), true);
    if (!x->known) {
        close_below_built(g, x);
        return x;
    }
    draw_extent(g, x);
    if (x->constant && x->n > 0 && (x->extent == X_TABLE || parent == NULL) && gen_p(g, 35))
        draw_rows(g, x);
    else if (gen_p(g, 65))
        draw_coords(g, x);
    gen_axis_close(g, x);
    return x;
}
