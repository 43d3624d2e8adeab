/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Hash lookup: a search among unordered entries asks a table of all entries of the axis, which
 * the plan builds once for a structure.  The entries first..end of a parent occupy the places 2
 * first..2 end of the table, so that entries that are close in the axis are close in the table.
 * A place holds a position or -1.  An entry stands at the place that its coordinates hash to, or
 * at the next free one; after the last place of a parent comes its first.  Emitted code probes
 * in the same order (emit/emit_find.c).  Parents with few entries are not in the table; without
 * other parents there is no table. */
#include "lower/storage/storage_int.h"

typedef struct Scan { /* of an axis, at one position */
    const Prog *p;
    const Env *env;
    const Axis *axis;
    Span span;
    int64_t first, end, pos;    /* of the parent's entries, and the one in work */
    int64_t bound[IR_MAX_RANK]; /* of each coordinate; -1: none */
} Scan;

static int64_t coordinate(const Scan *, const Axis *, int k, int64_t pos);

/* The position of the parent axis that position pos of a is under. */
static int64_t above(const Scan *s, const Axis *a, int64_t pos)
{
    Span span = ir_axis_span(s->p, s->env, a);
    int64_t lo = 0, hi = span.parents, mid;

    if (span.width > 0)
        return pos / span.width;
    while (hi - lo > 1) {
        mid = lo + (hi - lo) / 2;
        if (ir_span_first(&span, mid) <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static int64_t number(const Scan *s, const Axis *a, int64_t pos)
{
    Span span = ir_axis_span(s->p, s->env, a);

    return pos - ir_span_first(&span, a->parent == NULL ? 0 : above(s, a, pos));
}

/* What a coordinate is computed from, for position pos of axis a.  Only padding overflows here:
 * elsewhere it was refused. */
static int64_t computed(const Scan *s, const Axis *a, int64_t pos, Expr *e)
{
    int64_t v[2] = { 0, 0 };

    if (e->op == OP_coord || e->op == OP_loc || e->op == OP_pos) {
        for (; a != e->var->axis; a = a->parent)
            pos = above(s, a, pos);
        return e->op == OP_coord ? coordinate(s, a, e->k, pos)
               : e->op == OP_loc ? number(s, a, pos)
                                 : pos;
    }
    for (int i = 0; i < e->nargs; i++)
        v[i] = computed(s, a, pos, e->arg[i]);
    switch (e->op) {
    case OP_int: return e->i;
    case OP_size: return s->env->size[e->size->id];
    case OP_neg: return int_sub(0, v[0], &v[0]) ? 0 : v[0];
    case OP_add: return int_add(v[0], v[1], &v[0]) ? 0 : v[0];
    case OP_sub: return int_sub(v[0], v[1], &v[0]) ? 0 : v[0];
    case OP_mul: return int_mul(v[0], v[1], &v[0]) ? 0 : v[0];
    case OP_div: return int_div(v[0], v[1], &v[0]) ? 0 : v[0];
    default: return int_mod(v[0], v[1], &v[0]) ? 0 : v[0];
    }
}

static int64_t coordinate(const Scan *s, const Axis *a, int k, int64_t pos)
{
    const Coord *c = &a->coord[k];

    switch (c->kind) {
    case C_LOAD: return ir_array_int(&s->env->coord[a->id][k], pos);
    case C_TABLE: return c->table[pos];
    case C_EXPR: return computed(s, a, pos, c->expr);
    default: return a == s->axis ? pos - s->first : number(s, a, pos);
    }
}

/* The hash of the entry; false: it is padding. */
static bool hash_entry(const Scan *s, uint64_t *h)
{
    *h = 0;
    for (int k = 0; k < s->axis->ncoord; k++) {
        int64_t v = coordinate(s, s->axis, k, s->pos);

        if (s->bound[k] >= 0 && (v < 0 || v >= s->bound[k]))
            return false;
        *h = hash_int(*h, (uint64_t)v);
    }
    return true;
}

static void insert(const Scan *s, int64_t *map, uint64_t h)
{
    uint64_t n = 2 * (uint64_t)(s->end - s->first), at = hash_place(h, n);

    for (map += 2 * s->first; map[at] >= 0;)
        at = at + 1 < n ? at + 1 : 0;
    map[at] = s->pos;
}

static void insert_all(Scan *s, int64_t *map)
{
    uint64_t h;

    for (int64_t q = 0; q < s->span.parents; q++) {
        s->first = ir_span_first(&s->span, q);
        s->end = ir_span_first(&s->span, q + 1);
        for (s->pos = s->first; s->end - s->first > LOOP_FEW && s->pos < s->end; s->pos++)
            if (hash_entry(s, &h))
                insert(s, map, h);
    }
}

static bool has_many(const Span *s)
{
    bool many = s->width > LOOP_FEW;

    for (int64_t q = 0; q < s->parents && s->width < 0 && !many; q++)
        many = ir_span_first(s, q + 1) - ir_span_first(s, q) > LOOP_FEW;
    return many;
}

Array lower_hash_table(Arena *arena, const Prog *p, const Env *env, const Axis *a)
{
    Scan s = { .p = p, .env = env, .axis = a, .span = ir_axis_span(p, env, a) };
    int64_t *map, n = has_many(&s.span) ? 2 * s.span.total : 0; /* total: below 2^60 */

    for (int k = 0; k < a->ncoord; k++) {
        bool bounded = (a->flags & AX_PADDED) && a->coord[k].bound != NULL;

        s.bound[k] = bounded ? ir_eval_size(p, env, a->coord[k].bound) : -1;
    }
    map = arena_array(arena, n, sizeof *map);
    for (int64_t i = 0; i < n; i++)
        map[i] = -1;
    if (n > 0)
        insert_all(&s, map);
    return (Array){ map, n, T_i64 };
}

/* Whether a plan knows the entries, and some parent may have many. */
static bool is_worth_a_map(const Axis *a)
{
    int64_t n;

    for (const Axis *up = a; up != NULL; up = up->parent)
        if (up->extent == X_BUILT)
            return false;
    if (a->extent == X_EXPR && ir_const_int(a->size, &n))
        return n > LOOP_FEW;
    for (int64_t q = 0; q < a->n && a->extent == X_TABLE; q++)
        if (a->table[q] > LOOP_FEW)
            return true;
    return a->extent == X_EXPR || a->extent == X_SEG;
}

/* Whether a search is of all positions under a parent. */
static bool is_whole(Prog *p, Expr *find)
{
    Axis *a = find->axis;
    Expr *lo = find->arg[0], *q = NULL;

    if (a->parent == NULL || (lo->op == OP_int && lo->i == 0))
        q = ir_int(p, 0);
    else if (lo->op == OP_cell || lo->op == OP_mul)
        q = lo->arg[0];
    if (q == NULL || q->type != T_i64 || tree_first(p, a, q) != lo)
        return false;
    return tree_add(p, lo, tree_extent(p, a, q)) == find->arg[1];
}

static Expr *map(Prog *p, Expr *e, void *ctx)
{
    (void)ctx;
    if (e->op != OP_find || e->k != FIND_PLAIN || loop_is_ordered(e->axis) ||
        !is_worth_a_map(e->axis) || !is_whole(p, e))
        return e;
    return loop_found_by(p, e, FIND_LOOKUP);
}

void lower_hash(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Memo memo = { 0 };

        k->phase[i] = loop_rewrite(k->p, k->phase[i], map, NULL, &memo);
    }
    lower_done(k, k->p->stage);
}
