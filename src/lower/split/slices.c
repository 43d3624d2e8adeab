/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proves that the entries of a scatter's phase can be divided among threads.  The phase runs with
 * any structure; with start arrays that name some of a row's entries it does what these entries
 * do.  That is their share of the whole where no entry sees another one: start arrays are only the
 * ends of loops; a loop over entries stores to a private copy of what is scattered to, or to
 * elements that belong to the entry; and registers and scratch that it stores to are its own.
 * run/slices.c then divides the entries.  Works on flat loops, when all passes have run. */
#include "lower/phase/phase_int.h"

typedef struct Slicing {
    Prog *p;
    Node *phase;
    const Axis *parts, *entries; /* of the private copies; whose loops are told */
    const Buf *own;              /* scratch that the loop over entries `of` has for itself */
    const Node *of;
    Memo met;
    bool good;
} Slicing;

static bool is_told(const Slicing *s, const Axis *a)
{
    const Axis *up = s->entries;

    while (up != NULL && up != a)
        up = up->parent;
    return up != NULL;
}

static bool is_only_row(const Slicing *, const Expr *row, const Axis *);

/* Whether e is the start array of an axis at the one row that a call has, or so much further. */
static bool is_start_of(const Slicing *s, const Expr *e, const Axis *a, int64_t further)
{
    int64_t more = 0;
    const Expr *row;

    if (e->op != OP_cell || e->buf->of != a || e->buf->of_k != -1)
        return false;
    row = tree_split_index(e->arg[0], &more);
    return row != NULL && more == further && is_only_row(s, row, a->parent);
}

static bool is_loop_below(const Slicing *s, const Node *n, const Axis *a)
{
    return n->kind == N_FOR && is_start_of(s, n->lo, a, 0) && is_start_of(s, n->hi, a, 1);
}

static bool is_only_row(const Slicing *s, const Expr *row, const Axis *of)
{
    const Node *loop = row->op == OP_local ? tree_binder(s->phase, row->local) : NULL;

    if (loop == NULL || of->parent == NULL)
        return loop == s->phase;
    return is_loop_below(s, loop, of);
}

static bool is_told_loop(const Slicing *s, const Node *n)
{
    const Axis *a = n->kind == N_FOR && n->lo->op == OP_cell ? n->lo->buf->of : NULL;

    return a != NULL && is_told(s, a) && is_loop_below(s, n, a);
}

/* Whether an expression depends on where rows begin. */
static void see(Expr *e, void *ctx)
{
    Slicing *s = ctx;

    if (e->op == OP_cell && e->buf->of != NULL && e->buf->of_k == -1)
        s->good = s->good && !is_told(s, e->buf->of);
    else if (e->op == OP_find || e->op == OP_above)
        s->good = s->good && !is_told(s, e->axis);
}

/* Whether an index is a sum of products of numbers, sizes and loops, the entry's among them: then
 * the element belongs to the entry, if the array has a row for each. */
static bool is_linear(const Slicing *s, const Expr *e, const Local *entry, bool *has)
{
    const Node *by = e->op == OP_local ? tree_binder(s->phase, e->local) : NULL;
    bool good =
        e->op == OP_int || e->op == OP_size || e->op == OP_add || e->op == OP_mul || by != NULL;

    if (by != NULL && by->kind == N_LET)
        return is_linear(s, by->value, entry, has);
    *has = *has || (by != NULL && e->local == entry);
    for (int i = 0; i < e->nargs && good; i++)
        good = is_linear(s, e->arg[i], entry, has);
    return good;
}

static bool has_axis(const Buf *b, const Axis *a)
{
    bool has = false;

    for (int k = 0; k < b->nfull; k++)
        has = has || b->full[k] == a;
    return has;
}

/* Whether a node that is not in the loop touches the array. */
static bool touches_outside(Prog *p, Node *n, const Node *loop, const Buf *b)
{
    Node alone = *n;
    bool does;

    if (n == loop)
        return false;
    alone.nbody = 0;
    does = tree_touches(p, &alone, b);
    for (int i = 0; i < n->nbody && !does; i++)
        does = touches_outside(p, n->body[i], loop, b);
    return does;
}

/* What a row leaves in scratch reaches no other row, so what only this loop uses reaches no other
 * entry either. */
static bool has_own_scratch(Slicing *s, const Node *entry, const Buf *b)
{
    if (s->own == b && s->of == entry)
        return true;
    s->own = b;
    s->of = entry;
    return !touches_outside(s->p, s->phase, entry, b);
}

static bool is_apart(Slicing *s, const Node *n, const Node *entry)
{
    const Buf *b = n->out->op == OP_cell ? n->out->buf : NULL;
    bool has = false;

    if (n->nat > 0 || n->atomic)
        return false;
    if (entry == NULL) /* for the whole row, whoever of its entries is there */
        return b == NULL || loop_is_work(b);
    if (b == NULL)
        return tree_binder(entry, n->out->local) != NULL;
    if (loop_is_work(b))
        return has_own_scratch(s, entry, b);
    if (n->out->nargs != 1)
        return false;
    return has_axis(b, s->parts) ||
           (has_axis(b, s->entries) && is_linear(s, n->out->arg[0], entry->local, &has) && has);
}

static void look_at_values(Slicing *s, Node *n)
{
    Expr **slot[LIMIT_SLOTS];
    int k = tree_slots(n, slot);

    for (int i = 0; i < k; i++)
        ir_visit(s->p, *slot[i], see, s, &s->met);
}

/* `entry`: the loop over entries around the node. */
static void look(Slicing *s, Node *n, const Node *entry)
{
    bool told = is_told_loop(s, n),
         over = n->kind == N_FOR && n->over != NULL && n->over->axis == s->entries;

    if (n->kind > N_STORE && n->kind != N_AHEAD)
        s->good = false;
    if (!told)
        look_at_values(s, n);
    if ((over && (!told || entry != NULL)) || (n->kind == N_STORE && !is_apart(s, n, entry)))
        s->good = false;
    for (int i = 0; i < n->nbody && s->good; i++)
        look(s, n->body[i], over ? n : entry);
}

bool lower_has_slices(Prog *p, Node *phase)
{
    Slicing s = { .p = p, .phase = phase, .good = true };

    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->parts == NULL ||
        phase->parts->of->from_k != FROM_ROWS)
        return false;
    s.parts = phase->parts->of->parent;
    s.entries = phase->parts->of->from;
    for (int i = 0; i < phase->nbody && s.good; i++)
        look(&s, phase->body[i], NULL);
    return s.good;
}
