/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The position of an element in storage, as an expression.  Storage is the lexicographic order of
 * consistent tuples of positions.  So an index counts, slot by slot, the tuples that come before:
 * those below earlier siblings, times those of the branches that are still open. */
#include "lower/storage/storage_int.h"

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
        n = tree_mul(r->p, n, tree_mul(r->p, tree_extent(r->p, r->b->full[c], NULL), m));
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
        return tree_mul(r->p, pos, n);
    if (c >= 0)
        return before(r, c, tree_first(r->p, r->b->full[c], pos));
    return tree_cell(r->p, base_table(r, k), pos);
}

/* Tuples of the branch that begins at place c, under what its parent is. */
static Expr *branch(const Run *r, int c)
{
    Axis *a = r->b->full[c];
    Expr *n = uniform_below(r, c), *parent, *first;

    if (n != NULL && !is_ragged(a))
        return tree_mul(r->p, tree_extent(r->p, a, NULL), n);
    parent = a->parent == NULL ? ir_int(r->p, 0) : lower_parent(r->p, r->at[c]);
    if (n != NULL)
        return tree_mul(r->p, tree_extent(r->p, a, parent), n);
    first = tree_first(r->p, a, parent);
    return tree_sub(r->p, before(r, c, tree_add(r->p, first, tree_extent(r->p, a, parent))),
                     before(r, c, first));
}

/* Tuples of the branches that are still open at place k, k's own apart. */
static Expr *open_branches(const Run *r, int k)
{
    Expr *n = ir_int(r->p, 1);

    for (int c = k + 1; c <= r->last; c++)
        if (parent_place(r, c) < k)
            n = tree_mul(r->p, n, branch(r, c));
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

    sum = tree_mul(r->p, before(r, chain, pos), open_branches(r, chain));
    for (int k = chain + 1; k <= r->last; k++) {
        Axis *a = r->b->full[k];
        Expr *n = uniform_below(r, k), *mine;

        if (n != NULL)
            mine = tree_mul(r->p, lower_loc(r->p, r->at[k]), n);
        else
            mine = tree_sub(r->p, before(r, k, lower_pos(r->p, r->at[k])),
                             before(r, k, tree_first(r->p, a, lower_parent(r->p, r->at[k]))));
        sum = tree_add(r->p, sum, tree_mul(r->p, mine, open_branches(r, k)));
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
        return tree_simple(p, b->full[d.first]->size);
    return tree_mul(p, before(&r, chain, loop_positions(p, b->full[chain])),
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
    return loop_positions(p, last) == lower_dim_extent(p, b, dim) ? loop_over(p, last, NULL) : NULL;
}
