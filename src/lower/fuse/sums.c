/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fuses phases of sums over the same range, so that pass factor sees all their loops at once,
 * and loads and stores what they share once.  Before this pass, statements that add to one array
 * are separate phases.  Legal when the iterations of both phases add to rows of their own, so
 * that each element still adds its terms in the same order.  In phases over the entries of rows,
 * the loops over entries are fused where all sums belong to the row, whose terms are then in the
 * order of entries, or all belong to the entry or to chunks (split/scatter.c).  Needs flat loops
 * without lanes. */
#include "lower/facts/facts_int.h"

/* Loops with constant ends around sums and lets. */
static bool is_plain(const Node *n)
{
    bool plain = n->kind == N_LET ||
                 (n->kind == N_STORE && n->op == A_ADD && n->nat == 0 && n->out->op == OP_cell &&
                  ir_type[n->out->buf->type].floats) ||
                 (n->kind == N_FOR && n->how == FOR_SERIAL && n->lanes <= 1 && lower_is_known(n));

    for (int i = 0; i < n->nbody && plain; i++)
        plain = is_plain(n->body[i]);
    return plain;
}

static bool is_candidate(const Node *phase)
{
    bool plain = phase->kind == N_FOR && phase->how == FOR_PARALLEL && phase->lanes <= 1 &&
                 phase->nbody > 0 && !lower_has_registers(phase);

    bool loops = false; /* without any: fuse/straight.c */

    for (int i = 0; i < phase->nbody && plain; i++) {
        plain = is_plain(phase->body[i]);
        loops = loops || phase->body[i]->kind == N_FOR;
    }
    return plain && loops;
}

typedef struct Parts { /* of phases that may become one */
    Prog *p;
    const Buf *parts; /* or NULL */
    bool any;         /* they tell the element */
} Parts;

typedef struct Own { /* rows of an array that a phase adds to */
    int64_t width; /* 0: some element may be of another row; -1: it adds to none */
    const Buf *by; /* the coordinate that names them; or NULL */
} Own;

static Own same_own(Own a, Own b)
{
    if (a.width < 0 || b.width < 0)
        return a.width < 0 ? b : a;
    return a.width == b.width && a.by == b.by ? a : (Own){ 0 };
}

static Own own_in(Prog *p, const Node *phase, const Node *n, const Around *outer, const Buf *buf)
{
    Around here = { n, outer };
    const Around *around = n->kind == N_FOR ? &here : outer;
    Own own = { .width = -1 };

    if (n->kind == N_STORE && n->out->buf == buf)
        own.width = lower_own_width(p, phase, around, n->out, &own.by);
    for (int i = 0; i < n->nbody; i++)
        own = same_own(own, own_in(p, phase, n->body[i], around, buf));
    return own;
}

static void see_parts(Expr *e, void *ctx)
{
    Parts *s = ctx;

    s->any = s->any || (e->op == OP_cell && e->buf == s->parts);
}

/* Whether the element is of the array of a part, which iterations of the part add to in turn. */
static bool is_of_part(Parts *s, Expr *cell)
{
    Memo met = { 0 };

    s->any = false;
    if (s->parts != NULL)
        ir_visit(s->p, cell->arg[0], see_parts, s, &met);
    return s->any;
}

/* Of phases: only phases of one kind can be joined. */
typedef enum Kind { OTHER, FLAT, ENTRIES, KINDS } Kind;

enum { UNKNOWN_WIDTH = -2 };

typedef struct OwnOf { /* the rows of one array, where the rows are a phase's or its entries' */
    const Buf *buf;
    Own own[KINDS];
} OwnOf;

/* A phase of the kernel, with cached facts about it.  Slots keep their numbers: a phase that is
 * fused into another or moved behind it leaves an empty slot. */
typedef struct Slot {
    Node *phase; /* or NULL */
    Kind kind;
    Touch *touch; /* the arrays of the phase, each once */
    int n, cap;
    bool builds;
    OwnOf *own; /* of arrays that were asked for */
    int nown, cap_own;
    bool of_rows;  /* ENTRIES: all sums are of the phase's rows; */
    bool of_parts; /* of the rows of the loop over entries, or of the phase's parts */
    NodeList body; /* what was joined so far, when the slot owns its phase */
    int before;    /* the slot before with the same kind and end of the range; -1: none */
} Slot;

typedef struct Use { /* of an array by a slot */
    uint64_t key;    /* 0: empty */
    int at;          /* in the slot's list */
} Use;

typedef struct Joins {
    Prog *p;
    Slot *slot;
    int n, cap;
    Use *use; /* open addressing */
    uint32_t nuse, cap_use;
    int *touched, *written; /* by array: the last slot that does, -1: none */
    int built;              /* the last slot that builds an axis; -1 */
    int *last[KINDS];       /* by Expr.id of the end of a range: the last slot of the kind, -1 */
} Joins;

static int number_of(const Prog *p, const Buf *b)
{
    return b->id < LOOP_OWN ? b->id : p->nbuf + b->id - LOOP_OWN;
}

static Use *find_use(const Joins *j, uint64_t key)
{
    uint64_t at = hash_int(1, key);

    while (j->use[at & (j->cap_use - 1)].key != key && j->use[at & (j->cap_use - 1)].key != 0)
        at++;
    return &j->use[at & (j->cap_use - 1)];
}

static uint64_t use_key(const Joins *j, int slot, const Buf *b)
{
    return ((uint64_t)slot << 32 | (uint32_t)number_of(j->p, b)) + 1;
}

static void grow_uses(Joins *j)
{
    Joins old = *j;

    j->cap_use = old.cap_use == 0 ? 64 : old.cap_use * 2;
    j->use = arena_array(j->p->arena, j->cap_use, sizeof *j->use);
    for (uint32_t i = 0; i < old.cap_use; i++)
        if (old.use[i].key != 0)
            *find_use(j, old.use[i].key) = old.use[i];
}

/* What the slot does with the array; NULL: nothing. */
static const Touch *touch_of(const Joins *j, int slot, const Buf *b)
{
    uint64_t key = use_key(j, slot, b);
    const Use *u = find_use(j, key);

    return u->key == key ? &j->slot[slot].touch[u->at] : NULL;
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

static void add_touch(Joins *j, int slot, const Touch *t)
{
    Slot *a = &j->slot[slot];
    uint64_t key = use_key(j, slot, t->buf);
    int number = number_of(j->p, t->buf);
    Use *u;

    if (j->nuse * 2 >= j->cap_use)
        grow_uses(j);
    u = find_use(j, key);
    if (u->key == 0) {
        *u = (Use){ key, a->n };
        j->nuse++;
        a->touch = arena_grow(j->p->arena, a->touch, a->n, &a->cap, sizeof *a->touch);
        a->touch[a->n++] = (Touch){ t->buf, false, false };
    }
    a->touch[u->at].read = a->touch[u->at].read || t->read;
    a->touch[u->at].written = a->touch[u->at].written || t->written;
    j->touched[number] = later(j->touched[number], slot);
    if (t->written)
        j->written[number] = later(j->written[number], slot);
}

/* The last slot that a phase with these arrays may not change places with; -1: none. */
static int last_clash(const Joins *j, const Touch *touch, int n, bool builds)
{
    int last = builds ? j->n - 1 : j->built;

    for (int i = 0; i < n; i++) {
        int number = number_of(j->p, touch[i].buf);

        last = later(last, touch[i].written ? j->touched[number] : j->written[number]);
    }
    return last;
}

/* The rows that the slot's sums into the array are of. */
static Own own_of(Prog *p, Slot *a, Kind rows, const Buf *buf)
{
    const Node *loop = rows == ENTRIES ? a->phase->body[0] : a->phase;
    OwnOf *o = NULL;

    for (int i = 0; i < a->nown && o == NULL; i++)
        o = a->own[i].buf == buf ? &a->own[i] : NULL;
    if (o == NULL) {
        a->own = arena_grow(p->arena, a->own, a->nown, &a->cap_own, sizeof *a->own);
        o = &a->own[a->nown++];
        *o = (OwnOf){ .buf = buf };
        for (int i = 0; i < KINDS; i++)
            o->own[i].width = UNKNOWN_WIDTH;
    }
    if (o->own[rows].width == UNKNOWN_WIDTH)
        o->own[rows] = own_in(p, loop, loop, NULL, buf);
    return o->own[rows];
}

/* A pair of phases that may become one. */
typedef struct Pair {
    Joins *j;
    int to, from; /* slots */
    Parts parts;
    Kind rows; /* whose rows elements have to be of */
} Pair;

/* Of what both add to each has the same rows, or parts; n is a part of the second phase. */
static bool have_rows(Pair *q, const Node *n)
{
    const Touch *t = n->kind == N_STORE ? touch_of(q->j, q->to, n->out->buf) : NULL;
    bool have = true;

    for (int i = 0; i < n->nbody && have; i++)
        have = have_rows(q, n->body[i]);
    if (t != NULL && t->written && !is_of_part(&q->parts, n->out)) {
        Own own = same_own(own_of(q->j->p, &q->j->slot[q->to], q->rows, n->out->buf),
                           own_of(q->j->p, &q->j->slot[q->from], q->rows, n->out->buf));

        have = have && own.width > 0;
    }
    return have;
}

/* The loop over the entries of each row, when the phase is nothing else; or NULL. */
static const Node *entries_of(Prog *p, const Node *phase)
{
    const Node *n = phase->kind == N_FOR && phase->nbody == 1 ? phase->body[0] : NULL;
    bool plain = n != NULL && phase->how == FOR_PARALLEL && phase->lanes <= 1 &&
                 !lower_has_registers(phase) && lower_entries(p, phase, n) != NULL;
    bool loops = false;

    for (int i = 0; plain && i < n->nbody; i++) {
        plain = is_plain(n->body[i]);
        loops = loops || n->body[i]->kind == N_FOR;
    }
    return plain && loops ? n : NULL;
}

/* Whether all sums below n are of the row of an iteration of this loop, or of parts. */
static bool are_rows(Parts *s, const Node *rows, const Node *n, const Around *outer)
{
    Around here = { n, outer };
    const Around *around = n->kind == N_FOR ? &here : outer;
    const Buf *by;
    bool are = n->kind != N_STORE || lower_own_width(s->p, rows, around, n->out, &by) > 0 ||
               is_of_part(s, n->out);

    for (int i = 0; i < n->nbody && are; i++)
        are = are_rows(s, rows, n->body[i], around);
    return are;
}

/* Whether all sums are of rows of entries or of these parts. */
static bool are_of_parts(const Parts *s, const Slot *a)
{
    Parts parts = *s;

    return s->parts == a->phase->parts
               ? a->of_parts
               : are_rows(&parts, a->phase->body[0], a->phase->body[0], NULL);
}

/* Whether the loops over entries can be one: they have the same entries, and the same rows. */
static bool have_entries(Pair *q)
{
    const Slot *a = &q->j->slot[q->to], *b = &q->j->slot[q->from];

    if (a->phase->body[0]->lo->buf != b->phase->body[0]->lo->buf)
        return false;
    q->rows = a->of_rows && b->of_rows ? FLAT : ENTRIES;
    if (q->rows == FLAT) {
        q->parts.parts = NULL;
        return have_rows(q, b->phase);
    }
    return are_of_parts(&q->parts, a) && are_of_parts(&q->parts, b) &&
           have_rows(q, b->phase->body[0]);
}

static bool read_each_other(const Joins *j, int to, int from)
{
    const Slot *b = &j->slot[from];
    bool do_read = false;

    for (int i = 0; i < b->n && !do_read; i++) {
        const Touch *x = &b->touch[i], *y = touch_of(j, to, x->buf);

        do_read = y != NULL && ((x->read && y->written) || (y->read && x->written));
    }
    return do_read;
}

/* Whether both phases mention one array that is no structure.  A phase that starts an array, and
 * shares none, gains nothing: one after the other, both keep fewer rows in cache. */
static bool share_array(const Joins *j, int to, int from)
{
    const Slot *b = &j->slot[from];
    bool share = true;

    for (int i = 0; i < b->n && share; i++)
        share = b->touch[i].buf->init == NULL;
    for (int i = 0; i < b->n && !share; i++)
        share = b->touch[i].buf->of == NULL && b->touch[i].buf->kind != B_CONST &&
                touch_of(j, to, b->touch[i].buf) != NULL;
    return share;
}

/* Whether the phase of slot `from` may become a part of that of slot `to`. */
static bool can_merge(Joins *j, int to, int from, Buf **parts)
{
    const Node *a = j->slot[to].phase, *b = j->slot[from].phase;
    Pair q = { .j = j, .to = to, .from = from, .rows = FLAT };

    *parts = a->parts != NULL ? a->parts : b->parts;
    q.parts = (Parts){ .p = j->p, .parts = *parts };
    return a->lo == b->lo && a->hi == b->hi && (b->parts == NULL || b->parts == *parts) &&
           share_array(j, to, from) && !read_each_other(j, to, from) &&
           (j->slot[to].kind == FLAT ? have_rows(&q, b) : have_entries(&q));
}

/* The list that is joined to: the body of the phase, or of its loop over entries. */
static Node *list_of(const Slot *a)
{
    return a->kind == FLAT ? a->phase : a->phase->body[0];
}

/* Gives the slot a phase that it may change. */
static void own_phase(Prog *p, Slot *a)
{
    const Node *list = list_of(a);
    NodeList outer = { 0 };

    if (a->body.cap > 0)
        return;
    for (int i = 0; i < list->nbody; i++)
        tree_append(p, &a->body, list->body[i]);
    if (a->kind == ENTRIES) {
        tree_append(p, &outer, loop_node(p, list));
        a->phase = tree_with_body(p, a->phase, &outer);
    } else {
        a->phase = loop_node(p, a->phase);
    }
}

/* Merges the cached facts of two phases that become one. */
static void join_facts(Joins *j, int to, int from, const Buf *parts)
{
    Slot *a = &j->slot[to], *b = &j->slot[from];
    Touches more = { .touch = b->touch, .n = b->n };
    bool same = a->phase->parts == parts && b->phase->parts == parts;

    for (int i = 0; i < a->nown; i++)
        for (int k = FLAT; k < KINDS && lower_touch_of(&more, a->own[i].buf) != NULL; k++)
            if (a->own[i].own[k].width != UNKNOWN_WIDTH)
                a->own[i].own[k] =
                    same_own(a->own[i].own[k], own_of(j->p, b, (Kind)k, a->own[i].buf));
    for (int i = 0; i < b->n; i++)
        add_touch(j, to, &b->touch[i]);
    a->of_rows = a->of_rows && b->of_rows;
    a->of_parts = same && a->of_parts && b->of_parts;
}

static void merge(Joins *j, int to, int from, Buf *parts)
{
    Prog *p = j->p;
    Slot *a = &j->slot[to];
    Node *more = loop_fresh(p, j->slot[from].phase), *list;

    join_facts(j, to, from, parts);
    own_phase(p, a);
    more = loop_replace(p, more, more->local, loop_use(p, a->phase->local));
    if (a->kind == ENTRIES) {
        more = more->body[0];
        more = loop_replace(p, more, more->local, loop_use(p, a->phase->body[0]->local));
    }
    for (int i = 0; i < more->nbody; i++)
        tree_append(p, &a->body, more->body[i]);
    list = list_of(a);
    list->body = a->body.node;
    list->nbody = a->body.n;
    a->phase->parts = parts;
}

/* Puts the phase after the last slot, where it is no part of the kernel yet. */
static void set_slot(Joins *j, Node *phase)
{
    Touches t = lower_touched(j->p, phase);
    Parts none = { .p = j->p }, parts = { .p = j->p, .parts = phase->parts };
    Slot a = { .phase = phase, .builds = t.builds, .touch = t.touch, .n = t.n };
    const Node *entries = NULL;

    if (!phase->scheduled && phase->kind == N_FOR && !is_candidate(phase))
        entries = entries_of(j->p, phase);
    if (entries != NULL) {
        a.kind = ENTRIES;
        a.of_rows = are_rows(&none, phase, entries, NULL);
        a.of_parts = are_rows(&parts, entries, entries, NULL);
    } else if (!phase->scheduled && is_candidate(phase)) {
        a.kind = FLAT;
    }
    j->slot = arena_grow(j->p->arena, j->slot, j->n, &j->cap, sizeof *j->slot);
    j->slot[j->n] = a;
}

/* Makes what stands after the last slot the last one. */
static void keep_slot(Joins *j)
{
    Slot *a = &j->slot[j->n], old = *a;

    a->touch = NULL;
    a->n = a->cap = 0;
    a->before = -1;
    for (int i = 0; i < old.n; i++)
        add_touch(j, j->n, &old.touch[i]);
    if (a->builds)
        j->built = j->n;
    if (a->kind != OTHER) {
        a->before = j->last[a->kind][a->phase->hi->id];
        j->last[a->kind][a->phase->hi->id] = j->n;
    }
    j->n++;
}

/* Whether the phase of the slot may come after all that follow it. */
static bool may_wait(const Joins *j, int at)
{
    const Slot *a = &j->slot[at];

    return last_clash(j, a->touch, a->n, a->builds) <= at;
}

/* Puts the phase after the last slot into an earlier one, there; or that one, a scatter, comes down
 * to where all that is between has come before.  False: there is none for it. */
static bool join(Joins *j)
{
    const Slot *a = &j->slot[j->n];
    int clash = last_clash(j, a->touch, a->n, a->builds);
    int to = a->kind == OTHER ? -1 : j->last[a->kind][a->phase->hi->id];
    Buf *parts;

    for (; to >= 0; to = j->slot[to].before) {
        const Node *into = j->slot[to].phase;
        bool up = to >= clash;

        if (into == NULL || !(up || (into->parts != NULL && may_wait(j, to))) ||
            !can_merge(j, to, j->n, &parts))
            continue;
        merge(j, to, j->n, parts);
        if (!up) {
            j->slot[j->n] = j->slot[to];
            j->slot[to].phase = NULL;
            keep_slot(j);
        }
        return true;
    }
    return false;
}

static int *no_slots(Prog *p, int n)
{
    int *slot = arena_array(p->arena, n, sizeof *slot);

    for (int i = 0; i < n; i++)
        slot[i] = -1;
    return slot;
}

void lower_fuse_sums(Kernel *k)
{
    Prog *p = k->p;
    Joins j = { .p = p, .built = -1 };
    int n = 0;

    j.touched = no_slots(p, p->nbuf + p->naux);
    j.written = no_slots(p, p->nbuf + p->naux);
    for (int i = FLAT; i < KINDS; i++)
        j.last[i] = no_slots(p, p->nexpr);
    grow_uses(&j);
    for (int i = 0; i < k->n; i++) {
        set_slot(&j, k->phase[i]);
        if (!join(&j))
            keep_slot(&j);
    }
    for (int i = 0; i < j.n; i++)
        if (j.slot[i].phase != NULL)
            k->phase[n++] = j.slot[i].phase;
    k->n = n;
    lower_done(k, p->stage);
}
