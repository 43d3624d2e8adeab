/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Every position of every axis written out, and the elements of a buffer as a list of position
 * tuples: the plain tables that the dense evaluator and the shrinker work on.  Written from
 * docs/ir.md, without ir/layout.c. */
#include "random/random.h"

#include <string.h>

static _Noreturn void bad(const Space *s, const Axis *x, const char *why)
{
    err_throw(s->arena->err, ST_BIND, "axis %s: %s", x->name != NULL ? x->name : "dense", why);
}

/* A coordinate, loc or pos of x or of an ancestor, seen from position pos of x. */
static int64_t ancestor_value(const Space *s, const Axis *x, int64_t pos, Expr *e)
{
    for (; x != e->var->axis; x = x->parent)
        pos = s->level[x->id].parent[pos];
    if (e->op == OP_pos)
        return pos;
    if (e->op == OP_loc)
        return s->level[x->id].loc[pos];
    return s->level[x->id].coord[e->k][pos];
}

/* An integer expression at position pos of x; x is NULL for one of sizes only. */
static int64_t value_at(const Space *s, const Axis *x, int64_t pos, Expr *e)
{
    int64_t a, b, r;
    bool over;

    if (e->op == OP_int)
        return e->i;
    if (e->op == OP_size)
        return s->env->size[e->size->id];
    if (e->nargs == 0)
        return ancestor_value(s, x, pos, e);
    a = value_at(s, x, pos, e->arg[0]);
    b = e->op == OP_neg ? a : value_at(s, x, pos, e->arg[1]);
    switch (e->op) {
    case OP_neg: over = int_sub(0, a, &r); break;
    case OP_add: over = int_add(a, b, &r); break;
    case OP_sub: over = int_sub(a, b, &r); break;
    case OP_mul: over = int_mul(a, b, &r); break;
    case OP_div: over = int_div(a, b, &r); break;
    default: over = int_mod(a, b, &r); break;
    }
    if (over)
        err_throw(s->arena->err, ST_BIND, "an extent, bound or coordinate overflows");
    return r;
}

int64_t space_size(const Space *s, Expr *e)
{
    return value_at(s, NULL, 0, e);
}

static int64_t array_at(const Space *s, const Axis *x, const Array *a, int64_t i)
{
    if (a->data == NULL || i < 0 || i >= a->n)
        bad(s, x, "an array is missing or too short");
    return array_int(a, i);
}

/* Positions under parent position q. */
static int64_t extent_of(const Space *s, const Axis *x, int64_t q)
{
    int64_t n;

    switch (x->extent) {
    case X_EXPR: n = space_size(s, x->size); break;
    case X_TABLE: n = x->table[q]; break;
    case X_ONE: n = 1; break;
    default:
        n = array_at(s, x, &s->env->start[x->id], q + 1) - array_at(s, x, &s->env->start[x->id], q);
    }
    if (n < 0)
        bad(s, x, "a negative extent");
    return n;
}

static void list_positions(Space *s, const Axis *x, Level *v)
{
    int64_t up = x->parent == NULL ? 1 : s->level[x->parent->id].n, at = 0;

    v->n = 0;
    for (int64_t q = 0; q < up; q++)
        if (int_add(v->n, extent_of(s, x, q), &v->n) || v->n > SPACE_MOST)
            err_throw(s->arena->err, ST_LIMIT, "axis %s is too large for this", x->name);
    v->parent = arena_array(s->arena, v->n + 1, sizeof *v->parent);
    v->loc = arena_array(s->arena, v->n + 1, sizeof *v->loc);
    v->exists = arena_array(s->arena, v->n + 1, sizeof *v->exists);
    for (int64_t q = 0; q < up; q++)
        for (int64_t k = 0, n = extent_of(s, x, q); k < n; k++, at++) {
            v->parent[at] = q;
            v->loc[at] = k;
        }
}

static int64_t coord_at(const Space *s, const Axis *x, const Level *v, int k, int64_t p)
{
    const Coord *c = &x->coord[k];

    switch (c->kind) {
    case C_IDENT: return v->loc[p];
    case C_TABLE: return c->table[p];
    case C_LOAD: return array_at(s, x, &s->env->coord[x->id][k], p);
    default: break;
    }
    if (x->parent != NULL && !s->level[x->parent->id].exists[v->parent[p]])
        return 0; /* nor does this position exist, so nobody asks */
    return value_at(s, x, p, c->expr);
}

static void list_coords(Space *s, const Axis *x, Level *v)
{
    v->coord = arena_array(s->arena, x->ncoord, sizeof *v->coord);
    for (int k = 0; k < x->ncoord; k++) {
        v->coord[k] = arena_array(s->arena, v->n + 1, sizeof *v->coord[k]);
        for (int64_t p = 0; p < v->n; p++)
            v->coord[k][p] = coord_at(s, x, v, k, p);
    }
}

static bool is_inside(const Space *s, const Axis *x, const Level *v, int64_t p)
{
    bool inside = true;

    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].bound != NULL)
            inside =
                inside && v->coord[k][p] >= 0 && v->coord[k][p] < space_size(s, x->coord[k].bound);
    return inside;
}

static void find_existing(Space *s, const Axis *x, Level *v)
{
    for (int64_t p = 0; p < v->n; p++) {
        v->exists[p] = x->parent == NULL || s->level[x->parent->id].exists[v->parent[p]];
        if (v->exists[p] && !is_inside(s, x, v, p)) {
            if (!(x->flags & AX_PADDED))
                bad(s, x, "a coordinate outside its bound");
            v->exists[p] = false;
        }
    }
}

static int order_of(const Axis *x, const Level *v, int64_t p, int64_t q)
{
    for (int k = 0; k < x->ncoord; k++)
        if (v->coord[k][p] != v->coord[k][q])
            return v->coord[k][p] < v->coord[k][q] ? -1 : 1;
    return 0;
}

static void check_flags(const Space *s, const Axis *x, const Level *v)
{
    for (int64_t p = 0; p < v->n; p++)
        for (int64_t q = p + 1; v->exists[p] && q < v->n && v->parent[q] == v->parent[p]; q++) {
            if (!v->exists[q])
                continue;
            if ((x->flags & AX_SORTED) && order_of(x, v, p, q) > 0)
                bad(s, x, "not sorted");
            if ((x->flags & AX_UNIQUE) && order_of(x, v, p, q) == 0)
                bad(s, x, "not unique");
        }
}

static void check_lengths(const Space *s, const Axis *x, const Level *v)
{
    const Array *start = &s->env->start[x->id];

    if (x->extent == X_SEG &&
        (start->n != s->level[x->parent->id].n + 1 || array_int(start, 0) != 0))
        bad(s, x, "start has one more entry than the parent has positions, and begins with 0");
    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].kind == C_LOAD && s->env->coord[x->id][k].n != v->n)
            bad(s, x, "a coordinate array of another length");
}

static void write_out(Space *s, const Axis *x)
{
    Level *v = &s->level[x->id];

    if (x->extent == X_EXPR) /* also where no parent position asks for it */
        extent_of(s, x, 0);
    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].bound != NULL)
            space_size(s, x->coord[k].bound);
    list_positions(s, x, v);
    check_lengths(s, x, v);
    list_coords(s, x, v);
    find_existing(s, x, v);
    check_flags(s, x, v);
    v->known = true;
}

void space_grow(Space *s)
{
    for (int i = 0; i < s->prog->naxis; i++) {
        const Axis *x = s->prog->axis[i];

        if (!s->level[i].known && (x->parent == NULL || s->level[x->parent->id].known) &&
            (x->extent != X_BUILT || s->env->start[i].data != NULL))
            write_out(s, x);
    }
}

void space_init(Space *s, Arena *a, const Prog *p, const Env *env)
{
    *s = (Space){ .arena = a, .prog = p, .env = env };
    s->level = arena_array(a, p->naxis + 1, sizeof *s->level);
    for (int i = 0; i < p->nsize; i++)
        if (env->size[i] < 0)
            err_throw(a->err, ST_BIND, "size %s is not given", p->size[i]->name);
    space_grow(s);
}

int space_parent_place(const Buf *b, int place)
{
    int up = place - 1;

    while (up >= 0 && (b->full[place]->parent == NULL || b->full[up] != b->full[place]->parent))
        up--;
    return up;
}

static void double_rows(Arena *a, Tuples *t, int64_t *cap)
{
    int64_t *more = arena_array(a, *cap * 2 * t->width, sizeof *more);

    memcpy(more, t->row, (size_t)(t->n * t->width) * sizeof *more);
    t->row = more;
    *cap *= 2;
}

static void list_tuples(Space *s, const Buf *b, int place, int64_t *row, Tuples *t, int64_t *cap)
{
    const Level *v;
    int up;

    if (place == b->nfull) {
        if (t->n > SPACE_MOST)
            err_throw(s->arena->err, ST_LIMIT, "%s is too large for this", b->name);
        if (t->n == *cap)
            double_rows(s->arena, t, cap);
        memcpy(t->row + t->n++ * t->width, row, (size_t)t->width * sizeof *row);
        return;
    }
    v = &s->level[b->full[place]->id];
    up = space_parent_place(b, place);
    for (row[place] = 0; row[place] < v->n; row[place]++)
        if (up < 0 || v->parent[row[place]] == row[up])
            list_tuples(s, b, place + 1, row, t, cap);
}

Tuples space_tuples(Space *s, const Buf *b)
{
    int64_t row[IR_MAX_FULL + 1], cap = 16;
    Tuples t = { .width = b->nfull };

    t.row = arena_array(s->arena, cap * t.width, sizeof *t.row);
    list_tuples(s, b, 0, row, &t, &cap);
    return t;
}

int64_t space_find(const Tuples *t, const int64_t *row)
{
    int64_t lo = 0, hi = t->n - 1;

    while (lo <= hi) {
        int64_t mid = (lo + hi) / 2;
        const int64_t *at = t->row + mid * t->width;
        int k = 0;

        while (k < t->width && at[k] == row[k])
            k++;
        if (k == t->width)
            return mid;
        if (at[k] < row[k])
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return -1;
}
