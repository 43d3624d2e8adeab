/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The arrays that phases read and write, and the phases that mention an array.  Passes that
 * compare phases ask these lists instead of walking the trees again, so that their time grows
 * with the length of the program and not with the number of pairs of phases. */
#include "lower/facts/facts_int.h"


typedef struct Marking {
    Prog *p;
    Touches *to;
    Memo met;
} Marking;

static void add(Marking *m, const Buf *b, bool written)
{
    Touches *t = m->to;

    t->touch = arena_grow(m->p->arena, t->touch, t->n, &t->cap, sizeof *t->touch);
    t->touch[t->n++] = (Touch){ b, !written, written };
}

static void see(Expr *e, void *ctx)
{
    if (e->op == OP_cell)
        add(ctx, e->buf, false);
}

/* An element that is stored to is not read, what its index is made of is. */
static void see_target(Marking *m, const Expr *out)
{
    for (int i = 0; i < out->nargs; i++)
        ir_visit(m->p, out->arg[i], see, m, &m->met);
}

static void mark(Marking *m, const Node *n)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL)
            ir_visit(m->p, part[i], see, m, &m->met);
    if (n->out != NULL)
        see_target(m, n->out);
    if (n->kind == N_STORE && n->out->op == OP_cell)
        add(m, n->out->buf, true);
    for (int k = 0; k < n->nat; k++) {
        see_target(m, n->at[k].out);
        ir_visit(m->p, n->at[k].value, see, m, &m->met);
        add(m, n->at[k].out->buf, true);
    }
    for (int i = 0; i < n->nbody; i++)
        mark(m, n->body[i]);
}

static int by_id(const void *a, const void *b)
{
    int x = ((const Touch *)a)->buf->id, y = ((const Touch *)b)->buf->id;

    return (x > y) - (x < y);
}

Touches lower_touched(Prog *p, const Node *phase)
{
    Touches t = { .builds = loop_builds(phase) != NULL };
    Marking m = { .p = p, .to = &t };
    int n = 0;

    mark(&m, phase);
    array_sort(t.touch, t.n, sizeof *t.touch, by_id);
    for (int i = 0; i < t.n; i++)
        if (n > 0 && t.touch[n - 1].buf == t.touch[i].buf) {
            t.touch[n - 1].read = t.touch[n - 1].read || t.touch[i].read;
            t.touch[n - 1].written = t.touch[n - 1].written || t.touch[i].written;
        } else {
            t.touch[n++] = t.touch[i];
        }
    t.n = n;
    return t;
}

const Touch *lower_touch_of(const Touches *t, const Buf *b)
{
    int lo = 0, hi = t->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (t->touch[mid].buf->id < b->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n && t->touch[lo].buf == b ? &t->touch[lo] : NULL;
}

/* The next array that both touch, from *i and *k on; false: there is none. */
static bool next_common(const Touches *a, const Touches *b, int *i, int *k)
{
    while (*i < a->n && *k < b->n) {
        int x = a->touch[*i].buf->id, y = b->touch[*k].buf->id;

        if (x == y)
            return true;
        *i += x < y;
        *k += y < x;
    }
    return false;
}

bool lower_does_read(const Touches *t, const Touches *other)
{
    bool does = false;

    for (int i = 0, k = 0; !does && next_common(t, other, &i, &k); i++, k++)
        does = t->touch[i].read && other->touch[k].written;
    return does;
}

bool lower_clash(const Touches *a, const Touches *b, const Buf *but)
{
    bool clash = a->builds || b->builds;

    for (int i = 0, k = 0; !clash && next_common(a, b, &i, &k); i++, k++)
        clash = a->touch[i].buf != but && (a->touch[i].written || b->touch[k].written);
    return clash;
}

Touches lower_touch_both(Prog *p, const Touches *a, const Touches *b)
{
    Touches t = { .builds = a->builds || b->builds, .cap = a->n + b->n };

    t.touch = arena_array(p->arena, t.cap, sizeof *t.touch);
    for (int i = 0, k = 0; i < a->n || k < b->n; t.n++) {
        bool left = k == b->n || (i < a->n && a->touch[i].buf->id <= b->touch[k].buf->id);
        bool both = left && k < b->n && a->touch[i].buf == b->touch[k].buf;

        t.touch[t.n] = left ? a->touch[i++] : b->touch[k++];
        if (both) {
            t.touch[t.n].read = t.touch[t.n].read || b->touch[k].read;
            t.touch[t.n].written = t.touch[t.n].written || b->touch[k].written;
            k++;
        }
    }
    return t;
}

static int number_of(const Prog *p, const Buf *b)
{
    return b->id < LOOP_OWN ? b->id : p->nbuf + b->id - LOOP_OWN;
}

typedef struct Listing {
    Mentions *m;
    int phase;
} Listing;

static void list(Expr *e, void *ctx)
{
    Listing *l = ctx;
    MentionList *of;

    if (e->op != OP_cell)
        return;
    of = &l->m->of[number_of(l->m->p, e->buf)];
    if (of->n > 0 && of->phase[of->n - 1] == l->phase)
        return;
    of->phase = arena_grow(l->m->p->arena, of->phase, of->n, &of->cap, sizeof *of->phase);
    of->phase[of->n++] = l->phase;
}

Mentions lower_mentioned(const Kernel *k)
{
    Mentions m = { .p = k->p, .n = k->p->nbuf + k->p->naux };

    m.of = arena_array(k->p->arena, m.n, sizeof *m.of);
    for (int i = 0; i < k->n; i++) {
        Listing l = { &m, i };
        Memo met = { 0 };

        loop_visit(k->p, k->phase[i], list, &l, &met);
    }
    return m;
}

const MentionList *lower_mentions_of(const Mentions *m, const Buf *b)
{
    static const MentionList none;
    int at = number_of(m->p, b);

    return at < m->n ? &m->of[at] : &none;
}

int lower_next_mention(const Mentions *m, const Buf *b, int after)
{
    const MentionList *l = lower_mentions_of(m, b);
    int lo = 0, hi = l->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (l->phase[mid] <= after)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n ? l->phase[lo] : -1;
}
