/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proves what a loop says of its iterations: that all of lo..hi are positions, tiles or offsets of
 * the set that it names.  The proofs follow the forms that passes give to the ends of loops: minima
 * and maxima, selects, even shares of a range, tiles of one length.  A let is its value. */
#include "ir/ir_int.h"
#include "ir/loop.h"

enum { MOST_STEPS = 4096, MOST_DEPTH = 64, MOST_TERMS = 16 };

typedef struct Proof {
    Prog *p;
    const LoopKnown *known;
    Expr *first, *end; /* of the positions that the loop says; first <= end */
    int steps, depth;
} Proof;

static Expr *value(const Proof *c, Expr *e)
{
    while (e->op == OP_local && c->known[e->local->id].value != NULL)
        e = c->known[e->local->id].value;
    return e;
}

static const Node *loop_of(const Proof *c, const Expr *e)
{
    return e->op == OP_local ? c->known[e->local->id].loop : NULL;
}

static bool enter(Proof *c)
{
    return c->steps++ < MOST_STEPS && c->depth < MOST_DEPTH;
}

static bool is_same(Proof *c, Expr *a, Expr *b);

/* An element of a constant table of integers, which other expressions have as a number. */
static const int64_t *element(const Expr *e)
{
    const Buf *b = e->op == OP_cell ? e->buf : NULL;
    bool known = b != NULL && b->kind == B_CONST && b->ival != NULL && e->nargs == 1 &&
                 e->arg[0]->op == OP_int && e->arg[0]->i >= 0 && e->arg[0]->i < b->n;

    return known ? &b->ival[e->arg[0]->i] : NULL;
}

/* The terms of a sum, apart from its constant. */
typedef struct Terms {
    Expr *term[MOST_TERMS];
    int n;
    int64_t constant;
} Terms;

static bool take_terms(const Proof *c, Expr *e, Terms *t)
{
    e = value(c, e);
    if (e->op == OP_add)
        return take_terms(c, e->arg[0], t) && take_terms(c, e->arg[1], t);
    if (e->op == OP_int || element(e) != NULL)
        return !int_add(t->constant, e->op == OP_int ? e->i : *element(e), &t->constant);
    if (t->n == MOST_TERMS)
        return false;
    t->term[t->n++] = e;
    return true;
}

/* Two sums, whatever the order of their terms. */
static bool is_same_sum(Proof *c, Expr *a, Expr *b)
{
    Terms x = { .n = 0 }, y = { .n = 0 };

    if (!take_terms(c, a, &x) || !take_terms(c, b, &y) || x.n != y.n || x.constant != y.constant)
        return false;
    for (int i = 0; i < x.n; i++) {
        int k = i;

        while (k < y.n && !is_same(c, x.term[i], y.term[k]))
            k++;
        if (k == y.n)
            return false;
        y.term[k] = y.term[i];
    }
    return true;
}

static bool is_same(Proof *c, Expr *a, Expr *b)
{
    bool same;

    a = value(c, a);
    b = value(c, b);
    if (a == b)
        return true;
    if (a->op == OP_add || b->op == OP_add || element(a) != NULL || element(b) != NULL)
        return enter(c) && is_same_sum(c, a, b);
    same = enter(c) && a->op == b->op && a->nargs == b->nargs && a->nargs > 0 &&
           a->buf == b->buf && a->k == b->k;
    c->depth++;
    if (same && a->op == OP_mul && is_same(c, a->arg[0], b->arg[1]))
        same = is_same(c, a->arg[1], b->arg[0]);
    else
        for (int i = 0; i < a->nargs && same; i++)
            same = is_same(c, a->arg[i], b->arg[i]);
    c->depth--;
    return same;
}

static bool is_natural(Proof *c, Expr *e);
static bool is_below(Proof *c, Expr *e, Expr *to);

/* base + length * part / parts, where length is not negative. */
typedef struct Share {
    Expr *base, *length, *part, *parts;
} Share;

/* Reads e as a share, its base the other operand than number i; of no sum the base is 0. */
static bool is_share(Proof *c, Expr *e, int i, Share *s)
{
    bool sum = e->op == OP_add;
    Expr *by = value(c, sum ? e->arg[i] : e);

    if (by->op != OP_div || value(c, by->arg[0])->op != OP_mul)
        return false;
    s->base = sum ? e->arg[1 - i] : ir_int(c->p, 0);
    s->parts = by->arg[1];
    by = value(c, by->arg[0]);
    for (int k = 0; k < 2; k++) {
        s->length = by->arg[k];
        s->part = by->arg[1 - k];
        if (is_natural(c, s->part) && is_below(c, s->part, s->parts) && is_natural(c, s->length))
            return true;
    }
    return false;
}

/* Whether the share is not above the end: base + length is not, or a later share is the end. */
static bool is_read_below(Proof *c, Expr *e, int i, Expr *to)
{
    bool below = false;
    Expr *length;
    Share s, t;

    if (!is_share(c, e, i, &s))
        return false;
    length = value(c, s.length);
    if (length->op == OP_sub ? is_same(c, length->arg[1], s.base) && is_below(c, length->arg[0], to)
                             : is_same(c, s.base, ir_int(c->p, 0)) && is_below(c, length, to))
        return true;
    for (int k = 0; k < 2 && !below; k++)
        below = is_share(c, to, k, &t) && is_same(c, s.base, t.base) &&
                is_same(c, s.length, t.length) && is_same(c, s.parts, t.parts) &&
                is_below(c, s.part, t.part);
    return below;
}

static bool is_share_below(Proof *c, Expr *e, Expr *to)
{
    return is_read_below(c, e, 0, to) || (e->op == OP_add && is_read_below(c, e, 1, to));
}

/* x + 1, where x is the variable of a loop that ends there. */
static bool is_next_below(Proof *c, Expr *e, Expr *to)
{
    const Node *loop = NULL;

    for (int i = 0; i < 2 && e->op == OP_add && loop == NULL; i++)
        if (e->arg[1 - i]->op == OP_int && e->arg[1 - i]->i == 1)
            loop = loop_of(c, value(c, e->arg[i]));
    return loop != NULL && is_below(c, loop->hi, to);
}

static bool is_sum_below(Proof *c, Expr *e, Expr *to)
{
    return to->op == OP_add && ((is_below(c, e, to->arg[0]) && is_natural(c, to->arg[1])) ||
                                (is_below(c, e, to->arg[1]) && is_natural(c, to->arg[0])));
}

/* length - tile * size, where the tile is not before the one that is not whole. */
static bool is_rest_below(Proof *c, Expr *e, Expr *to)
{
    Expr *before = e->op == OP_sub ? value(c, e->arg[1]) : e, *tile, *whole;
    const Node *loop;
    bool found = false;

    for (int i = 0; i < 2 && before->op == OP_mul && !found; i++) {
        if (before->arg[i] != to)
            continue;
        tile = value(c, before->arg[1 - i]);
        loop = loop_of(c, tile);
        for (int k = 0; k < 2 && !found; k++) {
            whole = loop != NULL ? loop->lo : tile->op == OP_add ? tile->arg[k] : tile;
            found = (loop != NULL || tile->op != OP_add || is_natural(c, tile->arg[1 - k])) &&
                    (whole->op == OP_int ? e->arg[0]->op == OP_int &&
                                               e->arg[0]->i / to->i <= whole->i
                                         : whole->op == OP_div && whole->arg[1] == to &&
                                               is_same(c, whole->arg[0], e->arg[0]));
        }
    }
    return found;
}

/* e <= to, by the form of e or of `to`. */
static bool is_form_below(Proof *c, Expr *e, Expr *to)
{
    const Node *loop = loop_of(c, e);

    if (e->op == OP_int && to->op == OP_int)
        return e->i <= to->i;
    if (e->op == OP_max)
        return is_below(c, e->arg[0], to) && is_below(c, e->arg[1], to);
    if (e->op == OP_select)
        return is_below(c, e->arg[1], to) && is_below(c, e->arg[2], to);
    if (to->op == OP_min || to->op == OP_select)
        return is_below(c, e, to->arg[to->nargs - 2]) && is_below(c, e, to->arg[to->nargs - 1]);
    if (e->op == OP_min && (is_below(c, e->arg[0], to) || is_below(c, e->arg[1], to)))
        return true;
    if (to->op == OP_max && (is_below(c, e, to->arg[0]) || is_below(c, e, to->arg[1])))
        return true;
    if (e->op == OP_sub && is_natural(c, e->arg[1]) && is_below(c, e->arg[0], to))
        return true;
    if (loop != NULL && is_below(c, loop->hi, to))
        return true;
    if (to->op == OP_int && to->i > 0 && is_rest_below(c, e, to))
        return true;
    return is_share_below(c, e, to) || is_next_below(c, e, to) || is_sum_below(c, e, to);
}

static bool is_below(Proof *c, Expr *e, Expr *to)
{
    bool below;

    e = value(c, e);
    to = value(c, to);
    if (is_same(c, e, to) || (is_same(c, e, c->first) && is_same(c, to, c->end)))
        return true;
    if (!enter(c))
        return false;
    c->depth++;
    below = is_form_below(c, e, to);
    c->depth--;
    return below;
}

static bool is_form_natural(Proof *c, Expr *e)
{
    const Node *loop = loop_of(c, e);

    switch (e->op) {
    case OP_int: return e->i >= 0;
    case OP_size:
    case OP_count:
    case OP_above: return true;
    case OP_cell: return e->buf->of != NULL && e->buf->of_k == -1; /* starts ascend from 0 */
    case OP_local: return loop != NULL && is_natural(c, loop->lo);
    case OP_add:
    case OP_mul:
    case OP_min: return is_natural(c, e->arg[0]) && is_natural(c, e->arg[1]);
    case OP_max: return is_natural(c, e->arg[0]) || is_natural(c, e->arg[1]);
    case OP_select: return is_natural(c, e->arg[1]) && is_natural(c, e->arg[2]);
    case OP_div: return is_natural(c, e->arg[0]) && is_natural(c, e->arg[1]);
    case OP_sub: return is_below(c, e->arg[1], e->arg[0]);
    default: return false;
    }
}

static bool is_natural(Proof *c, Expr *e)
{
    bool natural;

    if (!enter(c))
        return false;
    c->depth++;
    e = value(c, e);
    natural = is_same(c, e, c->end) || is_form_natural(c, e);
    c->depth--;
    return natural;
}

/* e >= from */
static bool is_above(Proof *c, Expr *e, Expr *from)
{
    const Node *loop;
    bool above = false;

    e = value(c, e);
    from = value(c, from);
    if (is_same(c, e, from) || (is_same(c, e, c->end) && is_same(c, from, c->first)))
        return true;
    if (from->op == OP_int && from->i <= 0)
        return is_natural(c, e);
    if (!enter(c))
        return false;
    c->depth++;
    loop = loop_of(c, e);
    if (e->op == OP_max)
        above = is_above(c, e->arg[0], from) || is_above(c, e->arg[1], from);
    else if (e->op == OP_min)
        above = is_above(c, e->arg[0], from) && is_above(c, e->arg[1], from);
    else if (e->op == OP_select)
        above = is_above(c, e->arg[1], from) && is_above(c, e->arg[2], from);
    else if (e->op == OP_add)
        above = (is_above(c, e->arg[0], from) && is_natural(c, e->arg[1])) ||
                (is_above(c, e->arg[1], from) && is_natural(c, e->arg[0]));
    else if (loop != NULL)
        above = is_above(c, loop->lo, from);
    c->depth--;
    return above;
}

/* So many tiles are no more than there are: length / size, rounded down or up, or rows that are
 * whole tiles. */
static bool are_tiles(Proof *c, Expr *e, Expr *all, int64_t size)
{
    Expr *length, *n = value(c, e);

    if (is_below(c, e, all))
        return true;
    if (n->op == OP_div && n->arg[1]->op == OP_int && n->arg[1]->i >= size) {
        length = value(c, n->arg[0]);
        for (int i = 0; i < 2 && length->op == OP_add; i++)
            if (length->arg[i]->op == OP_int && length->arg[i]->i < size)
                length = value(c, length->arg[1 - i]);
        return length->op == OP_sub && is_above(c, length->arg[1], c->first)
                   ? is_below(c, length->arg[0], c->end)
                   : is_same(c, c->first, ir_int(c->p, 0)) && is_below(c, length, c->end);
    }
    length = value(c, c->end);
    for (int i = 0; i < 2 && length->op == OP_mul && is_same(c, c->first, ir_int(c->p, 0)); i++)
        if (length->arg[i]->op == OP_int && length->arg[i]->i == size &&
            is_same(c, n, length->arg[1 - i]))
            return true;
    return false;
}

static bool are_rounds(Proof *c, Expr *e, Expr *all)
{
    e = value(c, e);
    for (int i = 0; i < 2 && e->op == OP_mul; i++)
        if (is_same(c, e->arg[i], all))
            return true;
    return is_same(c, e, all) ||
           (e->op == OP_int && all->op == OP_int && all->i > 0 && e->i % all->i == 0);
}

/* Whether the tile is the variable of a loop over the tiles, so that it has positions. */
static bool is_tile(Proof *c, const Over *o)
{
    const Node *loop = loop_of(c, o->tile);
    const Over *tiles = loop != NULL ? loop->over : NULL;

    return tiles != NULL && tiles->kind == OVER_TILES && tiles->axis == o->axis &&
           tiles->size == o->size && tiles->fixed == o->fixed &&
           (tiles->row == o->row ||
            (tiles->row != NULL && o->row != NULL && is_same(c, tiles->row, o->row)));
}

bool loop_over_holds(Prog *p, const LoopKnown *known, const Node *n)
{
    const Over *o = n->over;
    Over rows = { OVER_POSITIONS, 0, o->fixed, o->axis, o->row, NULL };
    Proof c = { .p = p, .known = known };
    Expr *lo, *hi;

    loop_ends(p, &rows, &c.first, &c.end);
    switch (o->kind) {
    case OVER_POSITIONS:
        loop_ends(p, o, &lo, &hi);
        if (o->tile != NULL && is_tile(&c, o)) {
            c.first = lo;
            c.end = hi;
        }
        return is_above(&c, n->lo, lo) && is_below(&c, n->hi, hi);
    case OVER_TILES:
        loop_ends(p, o, &lo, &hi);
        return is_natural(&c, n->lo) && are_tiles(&c, n->hi, hi, o->size);
    case OVER_OFFSETS:
        return is_natural(&c, n->lo) && is_below(&c, n->hi, ir_int(p, o->size));
    default: return n->lo->op == OP_int && n->lo->i == 0 && are_rounds(&c, n->hi, c.end);
    }
}

/* Expressions that the proofs compare with, so that all are there before a walk counts them. */
void loop_touch_over(Prog *p, const Node *n)
{
    Expr *lo, *hi;

    if (n->kind == N_FOR && n->over != NULL) {
        const Over *o = n->over;
        Over rows = { OVER_POSITIONS, 0, o->fixed, o->axis, o->row, NULL };

        loop_ends(p, &rows, &lo, &hi);
        loop_ends(p, o, &lo, &hi);
        ir_int(p, o->size);
    }
    ir_int(p, 0);
    for (int i = 0; i < n->nbody; i++)
        loop_touch_over(p, n->body[i]);
}
