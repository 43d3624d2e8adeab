/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Derives equalities between two instances that touch one element.  Their indices are equal; so are
 * the parts of a sum that cannot stand in for one another, the row of an entry, and the entry of a
 * unique coordinate.  Each fact may give others, until no new one follows. */
#include "sched/depend.h"

#include <stdlib.h>

enum { LIMIT_FACTS = 400, LIMIT_TABLE = 256, LIMIT_COMPARED = 10000 };

static const Node *let_of(Pair *d, int side, Expr *e)
{
    const Node *n = e->op == OP_local ? dep_binder(d->s[side], e->local) : NULL;

    return n != NULL && n->kind == N_LET && !loop_assigns(d->phase, e->local) ? n : NULL;
}

static bool has_local(Pair *d, Expr *a, Expr *b)
{
    for (int i = 0; i < d->nlocal; i++)
        if (d->local[i].a == a && d->local[i].b == b)
            return true;
    return false;
}

static bool same_leaf(Expr *a, Expr *b)
{
    if (a->op != b->op || a->nargs != b->nargs || a->type != b->type)
        return false;
    switch (a->op) {
    case OP_int: return a->i == b->i;
    case OP_real: return a == b;
    case OP_size: return a->size == b->size;
    case OP_count:
    case OP_above: return a->axis == b->axis;
    case OP_find:
        return a->axis == b->axis && (a->k == FIND_FIRST) == (b->k == FIND_FIRST);
    case OP_cell: return a->buf == b->buf;
    default: return true;
    }
}

typedef struct Compared { /* pairs of expressions that are the same, as far as was seen */
    Memo with; /* the first to the second */
    int n;
} Compared;

/* One pair that differs ends all: so what was met before is the same.  More pairs than a few
 * thousand are not looked at. */
static bool is_same(Pair *d, Expr *a, Expr *b, Compared *met)
{
    const Node *x = let_of(d, 0, a), *y = let_of(d, 1, b);
    Expr **with;

    if (has_local(d, a, b))
        return true;
    with = ir_memo(d->p, &met->with, a);
    if (*with == b)
        return true;
    *with = b;
    if (++met->n > LIMIT_COMPARED)
        return false;
    if (x != NULL || y != NULL)
        return is_same(d, x != NULL ? x->value : a, y != NULL ? y->value : b, met);
    if (a->op == OP_local || !same_leaf(a, b) ||
        (a->op == OP_cell && loop_writes(d->phase, a->buf)))
        return false;
    for (int i = 0; i < a->nargs; i++)
        if (!is_same(d, a->arg[i], b->arg[i], met))
            return false;
    return true;
}

bool dep_is_same(Pair *d, Expr *a, Expr *b)
{
    Compared met = { .n = 0 };

    return is_same(d, a, b, &met);
}

bool dep_fixes(Pair *d, const Local *l)
{
    for (int i = 0; i < d->nlocal; i++)
        if (d->local[i].a->local == l && d->local[i].b->local == l)
            return true;
    return false;
}

static void add_fact(Pair *d, Expr *a, Expr *b)
{
    for (int i = 0; i < d->nfact; i++)
        if (d->fact[i].a == a && d->fact[i].b == b)
            return;
    if (d->nfact == LIMIT_FACTS)
        return;
    d->fact = arena_grow(d->p->arena, d->fact, d->nfact, &d->cap_fact, sizeof *d->fact);
    d->fact[d->nfact++] = (Fact){ a, b };
}

static void add_local(Pair *d, Expr *a, Expr *b)
{
    if (has_local(d, a, b))
        return;
    d->local = arena_grow(d->p->arena, d->local, d->nlocal, &d->cap_local, sizeof *d->local);
    d->local[d->nlocal++] = (Fact){ a, b };
}

static bool is_start(const Expr *e)
{
    return e->op == OP_cell && e->buf->of != NULL && e->buf->of_k == -1 && e->buf->nfull == 0;
}

static bool equal_linear(const Linear *a, const Linear *b)
{
    int found = 0;

    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++)
            found += a->term[i].x == b->term[k].x && a->term[i].c == b->term[k].c &&
                     dep_same_factor(&a->term[i], &b->term[k]);
    return !a->bad && !b->bad && a->n == b->n && found == a->n && a->c == b->c;
}

/* Whether e is the element of a start array that follows the one at `row`. */
static bool is_next_start(Pair *d, int side, Expr *e, Expr *start)
{
    Linear a, b;

    if (!is_start(e) || e->buf != start->buf)
        return false;
    a = dep_linear(d, side, e->arg[0]);
    b = dep_linear(d, side, start->arg[0]);
    b.bad = b.bad || int_add(b.c, 1, &b.c);
    return equal_linear(&a, &b);
}

/* The row of the entries that a loop runs over, as the element of a start array; or NULL. */
static Expr *row_of_loop(Pair *d, int side, const Node *n)
{
    return n != NULL && n->kind == N_FOR && is_start(n->lo) && is_next_start(d, side, n->hi, n->lo)
               ? n->lo
               : NULL;
}

/* l with x (a loop's variable) replaced by where the loop ends; that is below l's end, if what a
 * loop ends at is the least of several, for one of them. */
static bool ends_at(Pair *d, int side, const Linear *l, int at, Expr *hi, const Linear *end)
{
    Linear sum = *l, h;

    if (hi->op == OP_min)
        return ends_at(d, side, l, at, hi->arg[0], end) || ends_at(d, side, l, at, hi->arg[1], end);
    h = dep_linear(d, side, hi);
    sum.term[at] = sum.term[--sum.n];
    for (int i = 0; i < h.n && !h.bad; i++) {
        int k = 0;

        while (k < sum.n &&
               !(sum.term[k].x == h.term[i].x && dep_same_factor(&sum.term[k], &h.term[i])))
            k++;
        if (k == sum.n && sum.n == LIMIT_DEP_TERMS)
            return false;
        if (k == sum.n)
            sum.term[sum.n++] = h.term[i];
        else if ((sum.term[k].c += h.term[i].c) == 0)
            sum.term[k] = sum.term[--sum.n];
    }
    sum.c += h.c;
    return !h.bad && equal_linear(&sum, end);
}

/* The element of a start array in a sum that is surely an entry of its row; or NULL. */
static Expr *row_of_sum(Pair *d, int side, const Linear *l)
{
    Expr *row = NULL, *next;
    Linear end;
    bool below = false;

    for (int i = 0; i < l->n; i++) {
        const Term *t = &l->term[i];
        const Node *n = t->x != NULL && t->x->op == OP_local ? dep_binder(d->s[side], t->x->local)
                                                             : NULL;

        if (t->x != NULL && is_start(t->x) && t->c == 1 && t->nsize == 0 && row == NULL)
            row = t->x;
        else if (n == NULL || n->kind != N_FOR || n->lo->op != OP_int || n->lo->i < 0 || t->c < 0)
            return NULL;
    }
    if (row == NULL || l->c < 0)
        return NULL;
    next = tree_plus(d->p, row->arg[0], ir_int(d->p, 1));
    next = loop_cell(d->p, row->buf, &next, 1, 1);
    end = dep_linear(d, side, next);
    for (int i = 0; i < l->n && !below; i++)
        if (l->term[i].x != row && l->term[i].c == 1 && l->term[i].nsize == 0)
            below = ends_at(d, side, l, i, dep_binder(d->s[side], l->term[i].x->local)->hi, &end);
    return below ? row : NULL;
}

/* The row that a position is in. */
static Expr *row_of(Pair *d, int side, Expr *pos)
{
    const Node *n = pos->op == OP_local ? dep_binder(d->s[side], pos->local) : NULL;
    Expr *row = row_of_loop(d, side, n);
    Linear l;

    if (row != NULL)
        return row;
    l = dep_linear(d, side, pos);
    return l.bad ? NULL : row_of_sum(d, side, &l);
}

/* All coordinates of an entry are known. */
static bool knows_coordinates(Pair *d, const Axis *a, Expr *x, Expr *y)
{
    for (int k = 0; k < a->ncoord; k++) {
        bool found = false;

        for (int i = 0; i < d->nfact && !found; i++) {
            Expr *f = d->fact[i].a, *g = d->fact[i].b;

            found = f->op == OP_cell && f->buf->of == a && f->buf->of_k == k && f->arg[0] == x &&
                    g->op == OP_cell && g->buf->of == a && g->buf->of_k == k && g->arg[0] == y;
        }
        if (!found)
            return false;
    }
    return true;
}

static bool has_distinct_values(const Buf *b)
{
    if (b->kind != B_CONST || b->ival == NULL || b->n > LIMIT_TABLE)
        return false;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t k = 0; k < i; k++)
            if (b->ival[i] == b->ival[k])
                return false;
    return true;
}

static void derive_cell(Pair *d, Expr *a, Expr *b)
{
    const Axis *e = a->buf->of;
    Expr *x, *y;

    if (a->buf != b->buf || a->nargs != 1 || loop_writes(d->phase, a->buf))
        return;
    if (has_distinct_values(a->buf))
        add_fact(d, a->arg[0], b->arg[0]);
    if (e == NULL || a->buf->of_k < 0 || !(e->flags & AX_UNIQUE) ||
        !knows_coordinates(d, e, a->arg[0], b->arg[0]))
        return;
    x = e->parent != NULL ? row_of(d, 0, a->arg[0]) : NULL;
    y = e->parent != NULL ? row_of(d, 1, b->arg[0]) : NULL;
    if (e->parent == NULL ||
        (x != NULL && y != NULL && x->buf == y->buf && dep_is_same(d, x->arg[0], y->arg[0])))
        add_fact(d, a->arg[0], b->arg[0]);
}

/* An entry that was found has what was searched for, and is in the row where. */
static void derive_find(Pair *d, Expr *a, Expr *b)
{
    if (a->axis != b->axis || a->k == FIND_FIRST || b->k == FIND_FIRST)
        return;
    if (is_start(a->arg[0]) && is_start(b->arg[0]))
        add_fact(d, a->arg[0]->arg[0], b->arg[0]->arg[0]);
    for (int k = 0; k < a->axis->ncoord; k++)
        add_fact(d, a->arg[2 + k], b->arg[2 + k]);
}

/* x / n and x % n tell x. */
static void derive_rest(Pair *d, Expr *a, Expr *b)
{
    Op other = a->op == OP_div ? OP_mod : OP_div;

    if (!dep_is_same(d, a->arg[1], b->arg[1]))
        return;
    for (int i = 0; i < d->nfact; i++) {
        Expr *f = d->fact[i].a, *g = d->fact[i].b;

        if (f->op == other && g->op == other && f->arg[0] == a->arg[0] &&
            g->arg[0] == b->arg[0] && f->arg[1] == a->arg[1] && g->arg[1] == b->arg[1])
            add_fact(d, a->arg[0], b->arg[0]);
    }
}

static void derive_loop(Pair *d, Expr *a, Expr *b)
{
    const Node *m = dep_binder(d->s[0], a->local), *n = dep_binder(d->s[1], b->local);
    Expr *x = row_of_loop(d, 0, m), *y = row_of_loop(d, 1, n);

    if (m == NULL || n == NULL || m->kind != N_FOR || n->kind != N_FOR)
        return;
    add_local(d, a, b);
    if (x != NULL && y != NULL && x->buf == y->buf)
        add_fact(d, x->arg[0], y->arg[0]);
    x = dep_share_of(d->p, m);
    y = dep_share_of(d->p, n);
    if (x != NULL && y != NULL && dep_shares_alike(m, n, x, y))
        add_fact(d, x, y);
}

/* Of something that is no sum. */
static void derive_leaf(Pair *d, Expr *a, Expr *b)
{
    Expr *q = dep_rows_alike(d, a, b);

    if (q != NULL)
        add_fact(d, q, q);
    if (a->op != b->op || !ir_is_int(a))
        return;
    if (a->op == OP_local)
        derive_loop(d, a, b);
    else if (a->op == OP_cell)
        derive_cell(d, a, b);
    else if (a->op == OP_find)
        derive_find(d, a, b);
    else if (a->op == OP_div || a->op == OP_mod)
        derive_rest(d, a, b);
}

/* How many values something takes at most, as a term without x; false: not known. */
static bool extent_of(Pair *d, int side, Expr *x, Term *out)
{
    const Node *n = x->op == OP_local ? dep_binder(d->s[side], x->local) : NULL;
    Expr *hi;
    Linear l;

    if (n == NULL || n->kind != N_FOR || n->lo->op != OP_int || n->lo->i < 0)
        return false;
    for (hi = n->hi; hi->op == OP_min;)
        hi = hi->arg[hi->arg[0]->op == OP_int ? 0 : 1];
    l = dep_linear(d, side, hi);
    if (l.bad || l.n > 1 || (l.n == 1 && (l.term[0].x != NULL || l.c != 0)))
        return false;
    *out = l.n == 1 ? l.term[0] : (Term){ .c = l.c };
    return out->c > 0;
}

/* c1 * sizes1 * c2 * sizes2; false: too many. */
static bool times(const Term *a, const Term *b, Term *out)
{
    int i = 0, k = 0;

    *out = (Term){ .c = 0 };
    if (int_mul(a->c, b->c, &out->c) || a->nsize + b->nsize > 4)
        return false;
    while (i < a->nsize || k < b->nsize)
        out->size[out->nsize++] =
            k == b->nsize || (i < a->nsize && a->size[i]->id <= b->size[k]->id) ? a->size[i++]
                                                                                : b->size[k++];
    return true;
}

/* Whether what the terms but `top` and `more` add is always less than one step of the top one: each
 * term covers at most the steps of the one above it, and `more` is less than a step of the last.
 * With `more` equal to a step this is wrong: i + 1 of one iteration is i of the next. */
static bool is_leading(Pair *d, const Linear *l, int top, int64_t more)
{
    bool used[LIMIT_DEP_TERMS] = { false };
    Term step = l->term[top], ext, all;

    step.c = step.c < 0 ? -step.c : step.c;
    used[top] = true;
    for (int left = l->n - 1; left > 0; left--) {
        int at = -1;

        for (int i = 0; i < l->n && at < 0; i++)
            if (!used[i] && l->term[i].c > 0 && extent_of(d, 0, l->term[i].x, &ext) &&
                times(&l->term[i], &ext, &all) && dep_same_factor(&all, &step) && all.c <= step.c)
                at = i;
        if (at < 0)
            return false;
        used[at] = true;
        step = l->term[at];
    }
    return more == 0 || (step.nsize == 0 && more < step.c);
}

static int64_t divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;

        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* Sums of the same form: c1 * (x1 - y1) + c2 * (x2 - y2) + ... is `more`. */
static void derive_form(Pair *d, const Linear *a, const Linear *b, int64_t more)
{
    int64_t g = 0;
    bool plain = true;

    for (int i = 0; i < a->n; i++) {
        g = divisor(g, a->term[i].c);
        plain = plain && a->term[i].nsize == 0;
    }
    if (plain && g != 0 && more % g != 0)
        d->never = true;
    for (int i = 0; i < a->n; i++)
        if (is_leading(d, a, i, llabs(more)))
            add_fact(d, a->term[i].x, b->term[i].x);
}

/* Takes the terms out that are the same in both. */
static void cancel(Pair *d, Linear *a, Linear *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            const Term *s = &a->term[i], *t = &b->term[k];

            if (s->c != t->c || !dep_same_factor(s, t) || (s->x == NULL) != (t->x == NULL) ||
                (s->x != NULL && !dep_is_same(d, s->x, t->x)))
                continue;
            a->term[i--] = a->term[--a->n];
            b->term[k] = b->term[--b->n];
            break;
        }
}

/* Puts b's terms in the order of a's; false: they are of another form. */
static bool align(const Linear *a, Linear *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        int k = i;
        Term t;

        while (k < b->n && !(a->term[i].x != NULL && a->term[i].x == b->term[k].x &&
                             a->term[i].c == b->term[k].c &&
                             dep_same_factor(&a->term[i], &b->term[k])))
            k++;
        if (k == b->n)
            return false;
        t = b->term[i];
        b->term[i] = b->term[k];
        b->term[k] = t;
    }
    return true;
}

static void derive(Pair *d, Expr *a, Expr *b)
{
    const Node *m = let_of(d, 0, a), *n = let_of(d, 1, b);
    Linear x = dep_linear(d, 0, a), y = dep_linear(d, 1, b);
    Expr *r, *s;

    if (m != NULL && n != NULL)
        add_fact(d, m->value, n->value);
    if (x.bad || y.bad)
        return;
    r = row_of_sum(d, 0, &x);
    s = row_of_sum(d, 1, &y);
    if (r != NULL && s != NULL && r->buf == s->buf)
        add_fact(d, r->arg[0], s->arg[0]);
    cancel(d, &x, &y);
    if (x.n == 0 && y.n == 0)
        d->never = d->never || x.c != y.c;
    else if (x.n == 1 && y.n == 1 && x.c == y.c && x.term[0].c == y.term[0].c &&
             x.term[0].x != NULL && y.term[0].x != NULL && dep_same_factor(&x.term[0], &y.term[0]))
        x.term[0].x == a && y.term[0].x == b ? derive_leaf(d, a, b)
                                             : add_fact(d, x.term[0].x, y.term[0].x);
    else if (align(&x, &y))
        derive_form(d, &x, &y, y.c - x.c);
    d->never = d->never || dep_is_beyond(d, &x, &y);
}

/* Where a branch or check says that two things are equal, one tells the other. */
static void derive_cond(Pair *d, Expr *c)
{
    if (c->op == OP_and) {
        derive_cond(d, c->arg[0]);
        derive_cond(d, c->arg[1]);
    }
    if (c->op != OP_eq || !ir_is_int(c->arg[0]) || !ir_is_int(c->arg[1]))
        return;
    for (int i = 0; i < 2; i++)
        if (dep_is_same(d, c->arg[i], c->arg[i]))
            add_fact(d, c->arg[1 - i], c->arg[1 - i]);
}

static void derive_conds(Pair *d)
{
    for (int i = 0; i < d->s[0]->n; i++)
        if (d->s[0]->around[i]->kind == N_IF)
            for (int k = 0; k < d->s[1]->n; k++)
                if (d->s[1]->around[k] == d->s[0]->around[i])
                    derive_cond(d, d->s[0]->around[i]->cond);
}

static void begin(Pair *d, int known)
{
    const Access *s = d->s[0], *t = d->s[1];

    for (int i = 0; i < s->n; i++) {
        const Node *n = s->around[i];
        int64_t trips = n->kind == N_FOR ? step_trips(n) : -1;

        if (n->kind == N_FOR && (i < known || (trips >= 0 && trips <= 1)))
            add_local(d, loop_use(d->p, n->local), loop_use(d->p, n->local));
    }
    for (int i = 0; s->cell != NULL && i < s->cell->nargs; i++)
        add_fact(d, s->cell->arg[i], t->cell->arg[i]);
    if (s->cell == NULL && s->node->lo != NULL)
        add_fact(d, s->node->lo, t->node->lo);
}

void dep_close(Pair *d, int known)
{
    int before;

    begin(d, known);
    do {
        before = d->nfact + d->nlocal;
        for (int i = 0; i < d->nfact && !d->never; i++)
            derive(d, d->fact[i].a, d->fact[i].b);
        derive_conds(d);
        if (before == d->nfact + d->nlocal && !d->never)
            dep_enumerate(d);
    } while (before < d->nfact + d->nlocal && !d->never);
}
