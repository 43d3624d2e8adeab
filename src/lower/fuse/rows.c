/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fuses phases over the same rows, so that an iteration finds in cache what it has just computed
 * or read.  Each iteration of the fused phase runs the bodies one after the other.  Two cases:
 *
 *   - all phases that touch a temporary, each only in its own row.  The row becomes scratch, and
 *     the temporary is removed;
 *   - phases that read the same long rows of entries.
 *
 * Needs lanes to be chosen: the bodies stay as they are. */
#include "lower/facts/facts_int.h"

enum { LONG = 1024 }; /* bytes of a row of an entry */

/* Phases keep their numbers: one that has met a later phase is NULL, and `now` is its new place. */
typedef struct Meet {
    Kernel *k;
    Touches *touches; /* by phase */
    int *now;         /* by phase: the one that it is a part of, at least as late */
    int *built;       /* by phase: how many before it build an axis */
    Mentions users;
    Buf *temp;
    int64_t width; /* of its rows; 0: some element is of another row, or they differ */
    const Node *phase;
    const Around *around;
} Meet;

static void see_cell(Expr *e, void *ctx)
{
    Meet *m = ctx;
    const Buf *by = NULL;
    int64_t width;

    if (e->op != OP_cell || e->buf != m->temp)
        return;
    width = lower_own_width(m->k->p, m->phase, m->around, e, &by);
    m->width = by == NULL && (m->width < 0 || m->width == width) ? width : 0;
}

static void see_rows(Meet *m, const Node *n, const Around *outer)
{
    Around here = { n, outer };
    Node copy = *n;
    Expr **slot[LOWER_SLOTS];
    Memo met = { 0 };
    int count = lower_slots(&copy, slot);

    m->around = n->kind == N_FOR ? &here : outer;
    for (int i = 0; i < count; i++)
        ir_visit(m->k->p, *slot[i], see_cell, m, &met);
    for (int i = 0; i < n->nbody && m->width != 0; i++)
        see_rows(m, n->body[i], n->kind == N_FOR ? &here : outer);
}

static bool is_range(const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_PARALLEL && n->lanes <= 1 && !n->scheduled;
}

static bool have_one_range(const Node *a, const Node *b)
{
    return is_range(a) && is_range(b) && a->lo == b->lo && a->hi == b->hi &&
           (a->parts == NULL || b->parts == NULL || a->parts == b->parts);
}

static int now(const Meet *m, int phase)
{
    while (m->now[phase] != phase)
        phase = m->now[phase] = m->now[m->now[phase]];
    return phase;
}

/* Whether a phase after a, up to b, writes what t says that phase a touches, or touches what it
 * writes. */
static bool is_touched_until(const Meet *m, const Touch *t, int a, int b)
{
    const MentionList *l = lower_mentions_of(&m->users, t->buf);

    for (int i = 0; i < l->n; i++) {
        int other = now(m, l->phase[i]);
        bool between = other > a && other <= b;
        const Touch *x = between ? lower_touch_of(&m->touches[other], t->buf) : NULL;

        if (x != NULL && (t->written || x->written))
            return true;
    }
    return false;
}

/* Whether phase a may wait for phase b, as far as arrays but this one decide. */
static bool can_wait(const Meet *m, int a, int b, const Buf *but)
{
    const Touches *t = &m->touches[a];
    bool can = m->built[b + 1] == m->built[a];

    for (int i = 0; i < t->n && can; i++)
        can = t->touch[i].buf == but || !is_touched_until(m, &t->touch[i], a, b);
    return can;
}

/* Phase b with what phase a does before, and phase a without anything. */
static void meet(Meet *m, int a, int b)
{
    Prog *p = m->k->p;
    Node *first = m->k->phase[a], *then = loop_fresh(p, m->k->phase[b]), *n;
    NodeList body = { 0 };

    then = loop_replace(p, then, then->local, loop_use(p, first->local));
    for (int i = 0; i < first->nbody; i++)
        lower_append(p, &body, first->body[i]);
    for (int i = 0; i < then->nbody; i++)
        lower_append(p, &body, then->body[i]);
    n = lower_with_body(p, first, &body);
    n->parts = first->parts != NULL ? first->parts : then->parts;
    m->k->phase[b] = n;
    m->touches[b] = lower_touch_both(p, &m->touches[a], &m->touches[b]);
    m->k->phase[a] = NULL;
    m->now[a] = b;
}

typedef struct Row {
    const Node *phase;
    const Buf *temp;
    Buf *work;
} Row;

/* The element of the row that is now the iteration's. */
static Expr *of_row(Prog *p, Expr *e, void *ctx)
{
    const Row *r = ctx;
    Expr *at;
    LoopIndex x;

    if (e->op != OP_cell || e->buf != r->temp || !loop_index(e->arg[0], r->phase->local, &x))
        return e;
    at = lower_index(p, &x, ir_int(p, 0));
    return loop_cell(p, r->work, &at, 1, e->k);
}

static void make_work(Meet *m, int at)
{
    Prog *p = m->k->p;
    Row r = { .phase = m->k->phase[at], .temp = m->temp };
    Memo memo = { 0 };

    r.work = lower_scratch(p, m->temp, m->temp->type, m->width);
    m->k->phase[at] = loop_rewrite(p, m->k->phase[at], of_row, &r, &memo);
}

typedef struct Users { /* the phases that touch a temporary, ascending */
    int *phase, n;
} Users;

static Users users_of(const Meet *m, const Buf *b)
{
    const MentionList *l = lower_mentions_of(&m->users, b);
    Users u = { arena_array(m->k->p->arena, l->n, sizeof *u.phase), 0 };

    for (int i = 0; i < l->n; i++) {
        int phase = now(m, l->phase[i]), at = u.n;

        if (lower_touch_of(&m->touches[phase], b) == NULL)
            continue;
        while (at > 0 && u.phase[at - 1] > phase)
            at--;
        if (at > 0 && u.phase[at - 1] == phase)
            continue;
        for (int k = u.n++; k > at; k--)
            u.phase[k] = u.phase[k - 1];
        u.phase[at] = phase;
    }
    return u;
}

/* Whether all phases that touch the temporary can meet in the last one. */
static bool can_all_meet(const Meet *m, const Users *u)
{
    bool can = true;

    for (int a = 0; a + 1 < u->n && can; a++) {
        for (int i = a + 1; i < u->n && can; i++)
            can = have_one_range(m->k->phase[u->phase[a]], m->k->phase[u->phase[i]]);
        can = can && can_wait(m, u->phase[a], u->phase[u->n - 1], m->temp);
    }
    return can;
}

/* Finds the width of the rows of the temporary, where each iteration of a phase keeps to its own;
 * else 0. */
static void find_width(Meet *m, const Users *u)
{
    m->width = -1;
    for (int i = 0; i < u->n && m->width != 0; i++) {
        m->phase = m->k->phase[u->phase[i]];
        if (is_range(m->phase))
            see_rows(m, m->phase, NULL);
        else
            m->width = 0;
    }
}

static void meet_in_row(Meet *m, Buf *temp)
{
    Users u = users_of(m, temp);

    m->temp = temp;
    if (u.n < 2)
        return;
    find_width(m, &u);
    if (m->width <= 0 || m->width > LOWER_MOST_SCRATCH / ir_type[temp->type].bytes ||
        !can_all_meet(m, &u))
        return;
    for (int a = u.n - 2; a >= 0; a--)
        meet(m, u.phase[a], u.phase[u.n - 1]);
    make_work(m, u.phase[u.n - 1]);
}

static bool is_long(const Buf *x, const Buf *start)
{
    return x->id < LOOP_OWN && x->nslot > 0 && x->slot[0] == start->of &&
           lower_slot_bytes(x, 0) >= LONG;
}

/* Whether both read long rows of the entries that they go over. */
static bool share_entries(const Meet *m, int a, int b)
{
    const Buf *start = loop_balance(m->k->phase[b]);
    const Touches *t = &m->touches[a];
    bool share = false;

    for (int i = 0; i < t->n && !share; i++) {
        const Touch *x = &t->touch[i], *y = lower_touch_of(&m->touches[b], x->buf);

        share = y != NULL && x->read && y->read && is_long(x->buf, start);
    }
    return share;
}

/* The array of starts of entries of which the phase reads long rows; or NULL. */
static const Buf *long_entries(const Meet *m, int phase)
{
    const Touches *t = &m->touches[phase];
    const Buf *start = m->k->phase[phase] == NULL ? NULL : loop_balance(m->k->phase[phase]);
    bool reads = false;

    for (int i = 0; i < t->n && start != NULL && !reads; i++)
        reads = t->touch[i].read && is_long(t->touch[i].buf, start);
    return reads ? start : NULL;
}

/* Phases that read the same long rows. */
static void meet_at_entries(Meet *m)
{
    Prog *p = m->k->p;
    const Buf **start = arena_array(p->arena, m->k->n, sizeof *start);
    int *with = arena_array(p->arena, m->k->n, sizeof *with), n = 0;

    for (int b = 0; b < m->k->n; b++) {
        start[b] = long_entries(m, b);
        if (start[b] == NULL)
            continue;
        for (int i = n - 1; i >= 0; i--) {
            int a = with[i];

            if (m->k->phase[a] != NULL && start[a] == start[b] &&
                have_one_range(m->k->phase[a], m->k->phase[b]) && share_entries(m, a, b) &&
                can_wait(m, a, b, NULL))
                meet(m, a, b);
        }
        with[n++] = b;
    }
}

static void note_phases(Meet *m)
{
    Kernel *k = m->k;
    Prog *p = k->p;

    m->users = lower_mentioned(k);
    m->touches = arena_array(p->arena, k->n, sizeof *m->touches);
    m->now = arena_array(p->arena, k->n, sizeof *m->now);
    m->built = arena_array(p->arena, k->n + 1, sizeof *m->built);
    for (int i = 0; i < k->n; i++) {
        m->touches[i] = lower_touched(p, k->phase[i]);
        m->now[i] = i;
        m->built[i + 1] = m->built[i] + m->touches[i].builds;
    }
}

void lower_fuse_rows(Kernel *k)
{
    Prog *p = k->p;
    Meet m = { .k = k };
    int naux = p->naux, n = 0;

    note_phases(&m);
    for (int i = 0; i < p->nbuf + naux; i++) {
        Buf *b = i < p->nbuf ? p->buf[i] : p->aux[i - p->nbuf];

        if (b->kind == B_TEMP && b->of == NULL && ir_type[b->type].floats)
            meet_in_row(&m, b);
    }
    meet_at_entries(&m);
    for (int i = 0; i < k->n; i++)
        if (k->phase[i] != NULL)
            k->phase[n++] = k->phase[i];
    k->n = n;
    lower_done(k, p->stage);
}
