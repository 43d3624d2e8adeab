/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The position of an element in storage, as an expression.  Storage is the lexicographic order of
 * consistent tuples of positions.  So an index counts, slot by slot, the tuples that come before:
 * those below earlier siblings, times those of the branches that are still open. */
#include "lower/storage/storage_int.h"

static Expr *simple(Prog *p, Expr *e)
{
    Memo memo = { 0 };

    return ir_simplify(p, e, &memo);
}

static bool is_int(Expr *e, int64_t v)
{
    return e->op == OP_int && e->i == v;
}

/* A sum of integers with its constant last, so that places a constant apart look alike. */
Expr *lower_add(Prog *p, Expr *a, Expr *b)
{
    bool constant = b->op == OP_int;

    if (is_int(a, 0) || is_int(b, 0))
        return is_int(a, 0) ? b : a;
    if (a->op == OP_int && !constant)
        return lower_add(p, b, a);
    if (a->op == OP_add && a->arg[1]->op == OP_int) {
        Expr *sum = constant ? simple(p, ir_op2(p, OP_add, a->arg[1], b)) : a->arg[1];

        if (sum->op != OP_int) /* it does not fit, and stays as it is */
            return ir_op2(p, OP_add, a, b);
        return lower_add(p, constant ? a->arg[0] : lower_add(p, a->arg[0], b), sum);
    }
    if (b->op == OP_add)
        return lower_add(p, lower_add(p, a, b->arg[0]), b->arg[1]);
    if (b->op == OP_sub && b->arg[1] == a)
        return b->arg[0];
    return simple(p, ir_op2(p, OP_add, a, b));
}

/* a - b, where a = b + c gives c. */
Expr *lower_sub(Prog *p, Expr *a, Expr *b)
{
    if (is_int(b, 0))
        return a;
    if (a == b)
        return ir_int(p, 0);
    if (a->op == OP_add && a->arg[0] == b)
        return a->arg[1];
    return simple(p, ir_op2(p, OP_sub, a, b));
}

Expr *lower_mul(Prog *p, Expr *a, Expr *b)
{
    if (is_int(a, 0) || is_int(b, 1))
        return a;
    if (is_int(b, 0) || is_int(a, 1))
        return b;
    return simple(p, ir_op2(p, OP_mul, a, b));
}

Expr *lower_cell(Prog *p, Buf *b, Expr *index)
{
    return simple(p, loop_cell(p, b, &index, 1, 1));
}

Expr *lower_count(Prog *p, Axis *a)
{
    int64_t n = ir_const_total(a);

    if (n >= 0)
        return ir_int(p, n);
    if (a->extent == X_ONE)
        return lower_count(p, a->parent);
    if (a->extent != X_EXPR)
        return ir_count(p, a);
    return a->parent == NULL ? simple(p, a->size)
                             : lower_mul(p, lower_count(p, a->parent), a->size);
}

Expr *lower_first(Prog *p, Axis *a, Expr *parent)
{
    if (a->parent == NULL && is_int(parent, 0))
        return parent;
    if (a->parent != NULL && parent == lower_count(p, a->parent))
        return lower_count(p, a); /* past the last: the end of all */
    if (a->extent == X_EXPR)
        return lower_mul(p, parent, a->size);
    return a->extent == X_ONE ? parent : lower_cell(p, loop_start(p, a), parent);
}

Expr *lower_extent(Prog *p, Axis *a, Expr *parent)
{
    if (a->extent == X_EXPR)
        return simple(p, a->size);
    if (a->extent == X_ONE)
        return ir_int(p, 1);
    if (a->extent == X_TABLE)
        return lower_cell(p, loop_extent(p, a), parent);
    return lower_sub(p, lower_cell(p, loop_start(p, a), lower_add(p, parent, ir_int(p, 1))),
                     lower_cell(p, loop_start(p, a), parent));
}

/* One interface dimension: the places first..last of b->full. */
typedef struct Run {
    Prog *p;
    const Buf *b;
    Entry *const *at;
    int first, last;
} Run;

static int parent_place(const Run *r, int k)
{
    int up = ir_parent_place(r->b, k);

    return up < r->first ? -1 : up;
}

static bool is_ragged(const Axis *a)
{
    return a->extent == X_SEG || a->extent == X_TABLE || a->extent == X_BUILT;
}

/* The only place of the run that hangs on k; -1 none, -2 several. */
static int only_child(const Run *r, int k)
{
    int child = -1;

    for (int c = k + 1; c <= r->last; c++)
        if (parent_place(r, c) == k)
            child = child == -1 ? c : -2;
    return child;
}

/* How many tuples hang below each position of place k, when that is the same for all; or NULL. */
static Expr *uniform_below(const Run *r, int k)
{
    Expr *n = ir_int(r->p, 1), *m;

    for (int c = k + 1; c <= r->last; c++) {
        if (parent_place(r, c) != k)
            continue;
        m = uniform_below(r, c);
        if (is_ragged(r->b->full[c]) || m == NULL)
            return NULL;
        n = lower_mul(r->p, n, lower_mul(r->p, lower_extent(r->p, r->b->full[c], NULL), m));
    }
    return n;
}

static int64_t constant_below(const Run *r, int k, int64_t pos);

/* Tuples of place c and below it, under position pos of its parent; all constant. */
static int64_t constant_under(const Run *r, int c, int64_t pos)
{
    const Axis *a = r->b->full[c];
    int64_t first = pos, n = 1, sum = 0;

    if (a->extent == X_TABLE) {
        first = a->starts[pos];
        n = a->table[pos];
    } else if (a->extent == X_EXPR) {
        ir_const_int(a->size, &n);
        first = pos * n;
    }
    for (int64_t i = 0; i < n; i++)
        sum += constant_below(r, c, first + i);
    return sum;
}

static int64_t constant_below(const Run *r, int k, int64_t pos)
{
    int64_t n = 1;

    for (int c = k + 1; c <= r->last; c++)
        if (parent_place(r, c) == k)
            n *= constant_under(r, c, pos);
    return n;
}

static bool is_constant(const Run *r, int k)
{
    for (int c = k; c <= r->last; c++)
        if ((c == k || ir_is_ancestor(r->b->full[k], r->b->full[c])) &&
            ir_const_total(r->b->full[c]) < 0)
            return false;
    return true;
}

/* A table of the tuples below all earlier positions of a place on which several branches hang: of
 * constants, or else for whoever runs the kernel to make. */
static Buf *base_table(const Run *r, int k)
{
    int64_t n = ir_const_total(r->b->full[k]), *v;
    Text name = { .arena = r->p->arena };

    text_f(&name, "%s.%s", r->b->name, r->b->full[k]->name);
    if (!is_constant(r, k))
        return loop_base(r->p, name.s, r->b->full + r->first, r->last - r->first + 1, k - r->first);
    v = arena_array(r->p->arena, n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i + 1] = v[i] + constant_below(r, k, i);
    return loop_table(r->p, name.s, v, n + 1);
}

/* Tuples below all positions of place k before pos, over all parents. */
static Expr *before(const Run *r, int k, Expr *pos)
{
    Expr *n = uniform_below(r, k);
    int c = only_child(r, k);

    if (n != NULL)
        return lower_mul(r->p, pos, n);
    if (c >= 0)
        return before(r, c, lower_first(r->p, r->b->full[c], pos));
    return lower_cell(r->p, base_table(r, k), pos);
}

/* Tuples of the branch that begins at place c, under what its parent is. */
static Expr *branch(const Run *r, int c)
{
    Axis *a = r->b->full[c];
    Expr *n = uniform_below(r, c), *parent, *first;

    if (n != NULL && !is_ragged(a))
        return lower_mul(r->p, lower_extent(r->p, a, NULL), n);
    parent = a->parent == NULL ? ir_int(r->p, 0) : lower_parent(r->p, r->at[c]);
    if (n != NULL)
        return lower_mul(r->p, lower_extent(r->p, a, parent), n);
    first = lower_first(r->p, a, parent);
    return lower_sub(r->p, before(r, c, lower_add(r->p, first, lower_extent(r->p, a, parent))),
                     before(r, c, first));
}

/* Tuples of the branches that are still open at place k, k's own apart. */
static Expr *open_branches(const Run *r, int k)
{
    Expr *n = ir_int(r->p, 1);

    for (int c = k + 1; c <= r->last; c++)
        if (parent_place(r, c) < k)
            n = lower_mul(r->p, n, branch(r, c));
    return n;
}

/* Whether the run hangs on another dimension: one place, and single entries below it. */
static bool hangs(const Run *r)
{
    return r->b->full[r->first]->parent != NULL;
}

/* A chain of only children counts over all parents: one term instead of many. */
static int chain_end(const Run *r)
{
    int k = r->first;

    while (k < r->last && !hangs(r) && only_child(r, k) == k + 1)
        k++;
    return k;
}

static Expr *run_index(const Run *r)
{
    int chain = chain_end(r);
    Expr *sum, *pos = hangs(r) ? lower_loc(r->p, r->at[chain]) : lower_pos(r->p, r->at[chain]);

    sum = lower_mul(r->p, before(r, chain, pos), open_branches(r, chain));
    for (int k = chain + 1; k <= r->last; k++) {
        Axis *a = r->b->full[k];
        Expr *n = uniform_below(r, k), *mine;

        if (n != NULL)
            mine = lower_mul(r->p, lower_loc(r->p, r->at[k]), n);
        else
            mine = lower_sub(r->p, before(r, k, lower_pos(r->p, r->at[k])),
                             before(r, k, lower_first(r->p, a, lower_parent(r->p, r->at[k]))));
        sum = lower_add(r->p, sum, lower_mul(r->p, mine, open_branches(r, k)));
    }
    return sum;
}

void lower_dims(Prog *p, const Buf *b, Entry *const *at, Expr **out)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim);

    for (int d = 0; d < n; d++)
        out[d] = run_index(&(Run){ p, b, at, dim[d].first, dim[d].last });
}

Expr *lower_dim_extent(Prog *p, const Buf *b, Dim d)
{
    Run r = { p, b, NULL, d.first, d.last };
    int chain = chain_end(&r);

    if (hangs(&r))
        return simple(p, b->full[d.first]->size);
    return lower_mul(p, before(&r, chain, lower_count(p, b->full[chain])),
                     open_branches(&r, chain));
}

const Over *lower_dim_over(Prog *p, const Buf *b, Dim dim)
{
    Run r = { p, b, NULL, dim.first, dim.last };
    Axis *last = b->full[dim.last];

    if (hangs(&r))
        return loop_over(p, b->full[dim.first], ir_int(p, 0));
    if (chain_end(&r) != dim.last)
        return NULL;
    return lower_count(p, last) == lower_dim_extent(p, b, dim) ? loop_over(p, last, NULL) : NULL;
}
