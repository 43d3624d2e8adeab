/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fuses phases over the same rows, so that an iteration finds in cache what it has just computed
 * or read.  Each iteration of the fused phase runs the bodies one after the other.  Three cases:
 *
 *   - all phases that touch a temporary, each only in its own row.  The row becomes scratch, and
 *     the temporary is removed.  A phase between them that shares another such temporary with them
 *     is fused too, together with all phases that touch that temporary;
 *   - a phase that only sets initial values, with the phase that writes the array next;
 *   - phases that read the same long rows of entries.
 *
 * Needs lanes to be chosen: the bodies stay as they are. */
#include "lower/facts/facts_int.h"

/* Phases keep their numbers: one that has met a later phase is NULL, and `now` is its new place. */
typedef struct Meet {
    Kernel *k;
    Touches *touches; /* by phase */
    int64_t **width;  /* by phase, then as touches: of the rows of the array, where each iteration
                       * keeps to its own; else 0.  NULL: nobody has asked */
    int *now;         /* by phase: the one that it is a part of, at least as late */
    int *built;       /* by phase: how many before it build an axis */
    Mentions users;
} Meet;

typedef struct Look { /* at the rows of all arrays that a phase touches */
    Prog *p;
    const Node *phase;
    const Touches *touches;
    int64_t *width; /* -1: no element was seen */
    const Around *around;
} Look;

static void see_cell(Expr *e, void *ctx)
{
    Look *l = ctx;
    const Touch *t = e->op == OP_cell ? lower_touch_of(l->touches, e->buf) : NULL;
    const Buf *by = NULL;
    int64_t *known, width;

    if (t == NULL)
        return;
    known = &l->width[t - l->touches->touch];
    width = *known == 0 ? 0 : lower_own_width(l->p, l->phase, l->around, e, &by);
    *known = by == NULL && (*known < 0 || *known == width) ? width : 0;
}

/* A winner and its companions are elements of the same number: no row of one goes elsewhere. */
static void keep_companions(const Look *l, const Node *n)
{
    for (int i = -1; i < n->nat && n->nat > 0; i++) {
        const Expr *out = i < 0 ? n->out : n->at[i].out;
        const Touch *t = out->op == OP_cell ? lower_touch_of(l->touches, out->buf) : NULL;

        if (t != NULL)
            l->width[t - l->touches->touch] = 0;
    }
}

static void see_rows(Look *l, const Node *n, const Around *outer)
{
    Around here = { n, outer };
    Node copy = *n;
    Expr **slot[LIMIT_SLOTS];
    Memo met = { 0 };
    int count = tree_slots(&copy, slot);

    l->around = n->kind == N_FOR ? &here : outer;
    for (int i = 0; i < count; i++)
        ir_visit(l->p, *slot[i], see_cell, l, &met);
    keep_companions(l, n);
    for (int i = 0; i < n->nbody; i++)
        see_rows(l, n->body[i], n->kind == N_FOR ? &here : outer);
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

/* The width of the rows of an array that the phase touches, if each iteration keeps to its own. */
static int64_t width_in(const Meet *m, int phase, const Buf *b)
{
    const Touches *t = &m->touches[phase];
    const Touch *x = lower_touch_of(t, b);
    Look l = { m->k->p, m->k->phase[phase], t, m->width[phase], NULL };

    if (!is_range(l.phase) || x == NULL)
        return 0;
    if (l.width == NULL) {
        l.width = m->width[phase] = arena_array(l.p->arena, t->n, sizeof *l.width);
        for (int i = 0; i < t->n; i++)
            l.width[i] = -1;
        see_rows(&l, l.phase, NULL);
    }
    return l.width[x - t->touch];
}

static int now(const Meet *m, int phase)
{
    while (m->now[phase] != phase)
        phase = m->now[phase] = m->now[m->now[phase]];
    return phase;
}

/* Whether phase `other`, after a and up to b, writes what t says that phase a touches, or touches
 * what it writes. */
static bool clashes(const Meet *m, const Touch *t, int a, int other, int b)
{
    bool between = other > a && other <= b;
    const Touch *x = between ? lower_touch_of(&m->touches[other], t->buf) : NULL;

    return x != NULL && (t->written || x->written);
}

/* Whether phase a may wait for phase b. */
static bool can_wait(const Meet *m, int a, int b)
{
    const Touches *t = &m->touches[a];
    bool can = m->built[b + 1] == m->built[a];

    for (int i = 0; i < t->n && can; i++) {
        const MentionList *l = lower_mentions_of(&m->users, t->touch[i].buf);

        for (int k = 0; k < l->n && can; k++)
            can = !clashes(m, &t->touch[i], a, now(m, l->phase[k]), b);
    }
    return can;
}

/* Phase b with what phase a does before, and phase a without anything.  The range is that of phase
 * `as`, one of both. */
static void meet(Meet *m, int a, int b, int as)
{
    Prog *p = m->k->p;
    Node *first = m->k->phase[a], *then = loop_fresh(p, m->k->phase[b]), *n;
    const Node *range = as == a ? first : then;
    NodeList body = { 0 };

    if (as == a)
        then = loop_replace(p, then, then->local, loop_use(p, first->local));
    else
        first = loop_replace(p, first, first->local, loop_use(p, then->local));
    for (int i = 0; i < first->nbody; i++)
        tree_append(p, &body, first->body[i]);
    for (int i = 0; i < then->nbody; i++)
        tree_append(p, &body, then->body[i]);
    n = tree_with_body(p, range, &body);
    n->parts = first->parts != NULL ? first->parts : then->parts;
    m->k->phase[b] = n;
    m->touches[b] = lower_touch_both(p, &m->touches[a], &m->touches[b]);
    m->width[b] = NULL;
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

static void make_work(Meet *m, int at, Buf *temp, int64_t width)
{
    Prog *p = m->k->p;
    Row r = { .phase = m->k->phase[at], .temp = temp };
    Memo memo = { 0 };

    r.work = lower_scratch(p, temp, temp->type, width);
    m->k->phase[at] = loop_rewrite(p, m->k->phase[at], of_row, &r, &memo);
}

typedef struct Users { /* the phases that touch a temporary, ascending */
    int *phase, n, cap;
} Users;

static void add_user(const Meet *m, Users *u, int phase)
{
    int at = u->n;

    while (at > 0 && u->phase[at - 1] > phase)
        at--;
    if (at > 0 && u->phase[at - 1] == phase)
        return;
    u->phase = arena_grow(m->k->p->arena, u->phase, u->n, &u->cap, sizeof *u->phase);
    for (int k = u->n++; k > at; k--)
        u->phase[k] = u->phase[k - 1];
    u->phase[at] = phase;
}

static Users users_of(const Meet *m, const Buf *b)
{
    const MentionList *l = lower_mentions_of(&m->users, b);
    Users u = { 0 };

    for (int i = 0; i < l->n; i++) {
        int phase = now(m, l->phase[i]);

        if (lower_touch_of(&m->touches[phase], b) != NULL)
            add_user(m, &u, phase);
    }
    return u;
}

/* Phases that meet in the last of them, and the temporaries that become arrays of its iteration. */
typedef struct Group {
    Users u;
    Buf **temp;
    int64_t *width; /* by temporary: of a row */
    int64_t bytes;  /* of all of them */
    int n, cap, cap_width;
} Group;

static bool has_temp(const Group *g, const Buf *b)
{
    for (int i = 0; i < g->n; i++)
        if (g->temp[i] == b)
            return true;
    return false;
}

static bool is_temp(const Buf *b)
{
    return b->kind == B_TEMP && b->of == NULL && ir_type[b->type].floats;
}

/* Adds a temporary to the group, with all phases that touch it; false: some element is of another
 * row, or rows differ in width or are too wide, alone or together. */
static bool take_temp(const Meet *m, Group *g, Buf *b)
{
    Arena *arena = m->k->p->arena;
    Users u = users_of(m, b);
    int64_t width = u.n > 0 && is_temp(b) ? width_in(m, u.phase[0], b) : 0;

    for (int i = 1; i < u.n && width > 0; i++)
        width = width_in(m, u.phase[i], b) == width ? width : 0;
    if (width <= 0 || width > m->k->p->policy.scratch / ir_type[b->type].bytes)
        return false;
    g->bytes += width * ir_type[b->type].bytes;
    if (g->bytes > m->k->p->policy.scratch_group)
        return false;
    g->temp = arena_grow(arena, g->temp, g->n, &g->cap, sizeof *g->temp);
    g->width = arena_grow(arena, g->width, g->n, &g->cap_width, sizeof *g->width);
    g->temp[g->n] = b;
    g->width[g->n++] = width;
    for (int i = 0; i < u.n; i++)
        add_user(m, &g->u, u.phase[i]);
    return true;
}

/* Whether phases a and b may run one after the other in each iteration, as far as this array
 * decides: its rows are their own. */
static bool share_rows(const Meet *m, int a, int b, const Buf *x)
{
    return have_one_range(m->k->phase[a], m->k->phase[b]) && width_in(m, a, x) > 0 &&
           width_in(m, a, x) == width_in(m, b, x);
}

/* Phase `other` clashes with phase a and comes along: what one of them reads has to be an array of
 * the iteration then, what both only write need not. */
static bool bring(const Meet *m, Group *g, int a, int other, const Touch *t)
{
    const Touch *x = lower_touch_of(&m->touches[other], t->buf);

    if (!share_rows(m, a, other, t->buf))
        return false;
    if (t->read || x->read)
        return take_temp(m, g, (Buf *)t->buf);
    add_user(m, &g->u, other);
    return true;
}

/* Phase a waits for phase b.  What comes between them and clashes with a comes along; false: it
 * cannot. */
static bool bring_clashes(const Meet *m, Group *g, int a, int b)
{
    const Touches *t = &m->touches[a];
    bool can = m->built[b + 1] == m->built[a];

    for (int i = 0; i < t->n && can; i++) {
        const MentionList *l = lower_mentions_of(&m->users, t->touch[i].buf);

        for (int k = 0; k < l->n && can && !has_temp(g, t->touch[i].buf); k++) {
            int other = now(m, l->phase[k]);

            if (clashes(m, &t->touch[i], a, other, b))
                can = bring(m, g, a, other, &t->touch[i]);
        }
    }
    return can;
}

/* Whether all phases of the group can meet in its last one, with those that have to come along. */
static bool can_all_meet(const Meet *m, Group *g)
{
    Users *u = &g->u;
    bool can = true;
    int n;

    do {
        n = u->n;
        for (int a = 0; a + 1 < u->n && can; a++)
            can = bring_clashes(m, g, u->phase[a], u->phase[u->n - 1]);
    } while (can && u->n > n);
    for (int a = 0; a + 1 < u->n && can; a++)
        for (int i = a + 1; i < u->n && can; i++)
            can = have_one_range(m->k->phase[u->phase[a]], m->k->phase[u->phase[i]]);
    return can;
}

static void meet_in_row(Meet *m, Buf *temp)
{
    Group g = { 0 };
    int last;

    if (!take_temp(m, &g, temp) || !can_all_meet(m, &g))
        return;
    last = g.u.phase[g.u.n - 1];
    for (int a = g.u.n - 2; a >= 0; a--)
        meet(m, g.u.phase[a], last, g.u.phase[a]);
    for (int i = 0; i < g.n; i++)
        make_work(m, last, g.temp[i], g.width[i]);
    m->touches[last] = lower_touched(m->k->p, m->k->phase[last]);
    m->width[last] = NULL;
}

/* The phase that writes next to the rows which phase a initialises, and nothing else; -1: there is
 * none that a can join. */
static int writer_of(const Meet *m, int a)
{
    const Touches *t = &m->touches[a];
    int next = t->n == 1 ? lower_next_mention(&m->users, t->touch[0].buf, a) : -1;
    const Touch *x;

    if (next < 0 || !t->touch[0].written)
        return -1;
    next = now(m, next);
    x = lower_touch_of(&m->touches[next], t->touch[0].buf);
    if (next > a && x != NULL && x->written && share_rows(m, a, next, t->touch[0].buf) &&
        can_wait(m, a, next - 1))
        return next;
    return -1;
}

/* Phase b with the initial values of several phases in front.  It touches what they touch. */
static void join_writer(Meet *m, const Users *from, int b)
{
    Prog *p = m->k->p;
    Node *then = loop_fresh(p, m->k->phase[b]);
    NodeList body = { 0 };

    for (int i = from->n - 1; i >= 0; i--) {
        int a = from->phase[i];
        Node *first = m->k->phase[a];

        first = loop_replace(p, first, first->local, loop_use(p, then->local));
        for (int k = 0; k < first->nbody; k++)
            tree_append(p, &body, first->body[k]);
        then->parts = first->parts != NULL ? first->parts : then->parts;
        m->k->phase[a] = NULL;
        m->now[a] = b;
    }
    for (int k = 0; k < then->nbody; k++)
        tree_append(p, &body, then->body[k]);
    m->k->phase[b] = tree_with_body(p, then, &body);
    m->width[b] = NULL;
}

/* Initial values of rows are set where the rows are computed: all those of one phase at once, so
 * that a phase with many arrays is copied once. */
static void meet_first_values(Meet *m)
{
    Users *of = arena_array(m->k->p->arena, m->k->n, sizeof *of);

    for (int a = 0; a < m->k->n; a++) {
        int next = m->k->phase[a] == NULL ? -1 : writer_of(m, a);

        if (next >= 0)
            add_user(m, &of[next], a);
    }
    for (int b = 0; b < m->k->n; b++)
        if (of[b].n > 0)
            join_writer(m, &of[b], b);
}

static bool is_long(const Prog *p, const Buf *x, const Buf *start)
{
    return x->id < LOOP_OWN && x->nslot > 0 && x->slot[0] == start->of &&
           lower_slot_bytes(x, 0) >= p->policy.long_row;
}

/* Whether both read long rows of the entries that they go over. */
static bool share_entries(const Meet *m, int a, int b)
{
    const Buf *start = loop_balance(m->k->phase[b]);
    const Touches *t = &m->touches[a];
    bool share = false;

    for (int i = 0; i < t->n && !share; i++) {
        const Touch *x = &t->touch[i], *y = lower_touch_of(&m->touches[b], x->buf);

        share = y != NULL && x->read && y->read && is_long(m->k->p, x->buf, start);
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
        reads = t->touch[i].read && is_long(m->k->p, t->touch[i].buf, start);
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
                can_wait(m, a, b))
                meet(m, a, b, a);
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
    m->width = arena_array(p->arena, k->n, sizeof *m->width);
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

        if (is_temp(b))
            meet_in_row(&m, b);
    }
    meet_first_values(&m);
    meet_at_entries(&m);
    for (int i = 0; i < k->n; i++)
        if (k->phase[i] != NULL)
            k->phase[n++] = k->phase[i];
    k->n = n;
    lower_done(k, p->stage);
}
