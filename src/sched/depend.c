/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Decides which iterations touch one element.  An array that a phase writes is read there only as
 * an element that the blocks around write (ir/loop_check.c), so it is enough to compare stores. */
#include "sched/depend.h"

enum { LIMIT_ACCESSES = 300 };

typedef struct Accesses {
    Prog *p;
    Access **list;
    int n, cap;
    const Node *around[LIMIT_STEP_NEST];
    int depth;
} Accesses;

static void add_access(Accesses *s, const Node *n, Expr *cell)
{
    Access *a = arena_alloc(s->p->arena, sizeof *a);

    a->node = n;
    a->cell = cell;
    a->n = s->depth;
    for (int i = 0; i < s->depth; i++)
        a->around[i] = s->around[i];
    s->list = arena_grow(s->p->arena, s->list, s->n, &s->cap, sizeof *s->list);
    s->list[s->n++] = a;
}

static void collect(Accesses *s, const Node *n)
{
    if (n->kind == N_BUILD)
        add_access(s, n, NULL);
    if (n->kind == N_STORE && s->n < LIMIT_ACCESSES)
        add_access(s, n, n->out);
    for (int k = 0; k < n->nat; k++)
        add_access(s, n, n->at[k].out);
    if (s->depth == LIMIT_STEP_NEST)
        return;
    s->around[s->depth++] = n;
    for (int i = 0; i < n->nbody && s->n < LIMIT_ACCESSES; i++)
        collect(s, n->body[i]);
    s->depth--;
}

/* All that is written inside a loop. */
static Accesses accesses_of(Prog *p, const Spot *at)
{
    Accesses s = { .p = p };

    for (int i = 0; i < at->depth; i++)
        s.around[s.depth++] = at->around[i];
    collect(&s, at->node);
    return s;
}

static bool is_same_array(const Access *a, const Access *b)
{
    if (a->cell == NULL || b->cell == NULL)
        return a->cell == b->cell && a->node->axis == b->node->axis;
    return a->cell->op == OP_cell && b->cell->op == OP_cell && a->cell->buf == b->cell->buf;
}

static Pair closed(Prog *p, const Node *phase, const Access *a, const Access *b, int known)
{
    Pair d = { .p = p, .phase = phase, .s = { a, b } };

    dep_close(&d, known);
    return d;
}

static const char *words(Prog *p, const Access *a, const Access *b, const Node *loop)
{
    Text t = { .arena = p->arena };
    const char *x = a->node->label, *y = b->node->label;

    text_f(&t, "two iterations of %s.%s may ", loop->label, loop_path(loop));
    if (a->cell == NULL)
        text_f(&t, "build one row of %s", a->node->axis->name);
    else
        text_f(&t, "write one element of %s", a->cell->buf->name);
    if (a != b && x != NULL && y != NULL && x != y)
        text_f(&t, ", one in %s and one in %s", x, y);
    else if (x != NULL)
        text_f(&t, ", both in %s", x);
    return t.s;
}

/* A register of the blocks around the loop. */
static bool is_shared_local(const Access *a, int depth)
{
    const Node *let = a->cell != NULL && a->cell->op == OP_local
                          ? dep_binder(a, a->cell->local)
                          : NULL;

    for (int i = 0; i < depth && let != NULL; i++)
        for (int k = 0; k < a->around[i]->nbody; k++)
            if (a->around[i]->body[k] == let)
                return true;
    return false;
}

/* Companions that are the same whatever wins: marks of what was reached. */
static bool has_only_marks(const Node *n)
{
    bool only = true;

    for (int k = 0; k < n->nat; k++)
        only = only && n->at[k].value->op == OP_int;
    return only;
}

/* Whether it is the same in which order the two happen: sums and the like, up to rounding; what
 * sets an element to one value. */
static bool commute(const Access *a, const Access *b)
{
    const Node *m = a->node, *n = b->node;

    if (m->kind == N_BUILD)
        return true;
    if (m->op != n->op || !has_only_marks(m) || !has_only_marks(n))
        return false;
    return m->op != A_SET || (m->value == n->value && m->value->nargs == 0 &&
                              m->value->op != OP_local && m->value->op != OP_cell);
}

/* Whether what the two store is one value, known as they are: then the order does not count. */
static bool agree(Pair *d)
{
    const Node *m = d->s[0]->node, *n = d->s[1]->node;
    bool same = m->kind == N_STORE && n->kind == N_STORE && m->op == A_SET && n->op == A_SET &&
                m->nat == 0 && n->nat == 0;

    return same && dep_is_same(d, m->value, n->value);
}

static bool needs(Prog *p, const Node *n, const Local *l)
{
    bool any = tree_mentions(p, n->lo, l) || tree_mentions(p, n->hi, l) ||
               tree_mentions(p, n->cond, l) || tree_mentions(p, n->value, l) ||
               tree_mentions(p, n->out, l);

    for (int k = 0; k < n->nat && !any; k++)
        any = tree_mentions(p, n->at[k].out, l) || tree_mentions(p, n->at[k].value, l);
    for (int i = 0; i < n->nbody && !any; i++)
        any = needs(p, n->body[i], l);
    return any;
}

/* A loop that does the same again and again, where once is enough: setting, or keeping the larger
 * or the smaller. */
static bool repeats(Pair *d, const Node *loop)
{
    const Node *m = d->s[0]->node, *n = d->s[1]->node;
    bool any = false;

    if (m->kind != N_STORE || m != n || m->op == A_ADD)
        return false;
    for (int i = 0; i < loop->nbody; i++)
        any = any || needs(d->p, loop->body[i], loop->local);
    return !any;
}

/* Each iteration of a phase has one of its own. */
static bool is_private(const Access *a, int depth)
{
    return depth == 0 && a->cell != NULL && a->cell->op == OP_cell && loop_is_work(a->cell->buf);
}

const char *dep_race(Prog *p, const Node *phase, const Spot *at, bool sums)
{
    Accesses s = accesses_of(p, at);

    if (s.n >= LIMIT_ACCESSES)
        return "it has too many stores to be looked at";
    for (int i = 0; i < s.n; i++) {
        if (is_shared_local(s.list[i], at->depth) && !sums)
            return "its iterations store to one register";
        for (int k = 0; k <= i && !is_private(s.list[i], at->depth); k++)
            if (is_same_array(s.list[k], s.list[i]) &&
                !(sums && commute(s.list[k], s.list[i]))) {
                Pair d = closed(p, phase, s.list[k], s.list[i], at->depth);
                bool same = sums && (agree(&d) || repeats(&d, at->node));

                if (!d.never && !dep_fixes(&d, at->node->local) && !same)
                    return words(p, s.list[k], s.list[i], at->node);
            }
    }
    return NULL;
}

static int place_in(Node *const *list, int n, const Node *x)
{
    int i = 0;

    while (i < n && list[i] != x)
        i++;
    return i;
}

/* Of two loops that change places, one at least has the same value in both instances; else the
 * reason in words. */
static const char *keeps_order(Pair *d, Node *const *loop, Node *const *next, int n)
{
    Text t = { .arena = d->p->arena };

    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            if (place_in(next, n, loop[i]) < place_in(next, n, loop[k]) ||
                dep_fixes(d, loop[i]->local) || dep_fixes(d, loop[k]->local) ||
                repeats(d, loop[i]) || repeats(d, loop[k]))
                continue;
            text_f(&t, "iterations of %s.%s and %s.%s may write one element of %s", loop[i]->label,
                   loop_path(loop[i]), loop[k]->label, loop_path(loop[k]),
                   d->s[0]->cell->buf->name);
            text_str(&t, ", and the order counts");
            return t.s;
        }
    return NULL;
}

const char *dep_order(Prog *p, const Node *phase, const Spot *first, Node *const *loop,
                      Node *const *next, int n)
{
    Accesses s = accesses_of(p, first);
    const char *why = NULL;

    if (s.n >= LIMIT_ACCESSES)
        return "it has too many stores to be looked at";
    for (int i = 0; i < s.n && why == NULL; i++) {
        if (is_shared_local(s.list[i], s.list[i]->n))
            return "it has registers, whose order counts";
        for (int k = 0; k <= i && why == NULL; k++)
            if (is_same_array(s.list[k], s.list[i]) && !commute(s.list[k], s.list[i])) {
                Pair d = closed(p, phase, s.list[k], s.list[i], first->depth);

                if (!d.never && !agree(&d))
                    why = keeps_order(&d, loop, next, n);
            }
    }
    return why;
}
