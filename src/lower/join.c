/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases of sums over the same range become one, so that `segments` sees all their loops at once
 * and what they share is loaded and stored once: statements that add to one array are phases of
 * their own before.  Iterations of both add to rows of their own, so each element still gets its
 * terms in the same order.  Of phases that go over the entries of each row, the loops over entries
 * become one, where all sums are of the row, whose terms are then in the order of entries, or all
 * are of the entry or of parts (lower/scatter.c).  Needs flat loops, before they are put into
 * lanes. */
#include "lower/lower_int.h"

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

    bool loops = false; /* without any: together.c */

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

/* Of what both add to each has the same rows, or parts. */
static bool have_rows(Parts *s, const Node *a, const Node *b, const Node *n)
{
    bool have = true;

    for (int i = 0; i < n->nbody && have; i++)
        have = have_rows(s, a, b, n->body[i]);
    if (n->kind == N_STORE && loop_writes(a, n->out->buf) && !is_of_part(s, n->out)) {
        Own own = same_own(own_in(s->p, a, a, NULL, n->out->buf),
                           own_in(s->p, b, b, NULL, n->out->buf));

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

/* Whether the loops over entries can be one: they have the same entries, and the same rows. */
static bool have_entries(Parts *s, const Node *a, const Node *b)
{
    const Node *x = entries_of(s->p, a), *y = entries_of(s->p, b);
    Parts none = { .p = s->p };

    if (x == NULL || y == NULL || x->lo->buf != y->lo->buf)
        return false;
    if (are_rows(&none, a, x, NULL) && are_rows(&none, b, y, NULL))
        return have_rows(&none, a, b, b);
    return are_rows(s, x, x, NULL) && are_rows(s, y, y, NULL) && have_rows(s, x, y, y);
}

static Node *with_more(Prog *p, const Node *n, const Node *more)
{
    NodeList body = { 0 };

    for (int i = 0; i < n->nbody; i++)
        lower_append(p, &body, n->body[i]);
    for (int i = 0; i < more->nbody; i++)
        lower_append(p, &body, more->body[i]);
    return lower_with_body(p, n, &body);
}

static bool read_each_other(Prog *p, const Node *a, const Node *b)
{
    Touches x = lower_touched(p, a), y = lower_touched(p, b);

    return lower_does_read(&x, &y) || lower_does_read(&y, &x);
}

/* Puts the phase into an earlier one. */
static bool merge(Prog *p, Node **into, Node *phase)
{
    NodeList body = { 0 };
    Buf *parts = (*into)->parts != NULL ? (*into)->parts : phase->parts;
    Parts s = { .p = p, .parts = parts };
    Node *more, *in;
    bool flat = is_candidate(*into) && is_candidate(phase);

    if ((*into)->kind != N_FOR || phase->kind != N_FOR || (*into)->lo != phase->lo ||
        (*into)->hi != phase->hi || (*into)->scheduled || phase->scheduled ||
        (phase->parts != NULL && phase->parts != parts) ||
        read_each_other(p, *into, phase) ||
        !(flat ? have_rows(&s, *into, phase, phase) : have_entries(&s, *into, phase)))
        return false;
    more = loop_fresh(p, phase);
    more = loop_replace(p, more, more->local, loop_use(p, (*into)->local));
    if (flat) {
        *into = with_more(p, *into, more);
    } else {
        in = more->body[0];
        in = loop_replace(p, in, in->local, loop_use(p, (*into)->body[0]->local));
        lower_append(p, &body, with_more(p, (*into)->body[0], in));
        *into = lower_with_body(p, *into, &body);
    }
    (*into)->parts = parts;
    return true;
}

/* Whether the two may change places. */
static bool are_independent(Prog *p, const Node *a, const Node *b)
{
    Touches x = lower_touched(p, a), y = lower_touched(p, b);

    return !lower_clash(&x, &y, NULL);
}

/* Whether the phase may come after all that follow it, up to the last of n. */
static bool may_wait(const Kernel *k, int at, int n)
{
    bool may = true;

    for (int i = at + 1; i < n && may; i++)
        may = are_independent(k->p, k->phase[at], k->phase[i]);
    return may;
}

/* Puts the phase into an earlier one, of n: there; or that one, a scatter, comes down to where all
 * that is between has come before.  False: there is none for it. */
static bool join(Kernel *k, int *n, Node *phase)
{
    bool up = true;

    for (int to = *n - 1; to >= 0; to--) {
        Node *into = k->phase[to];

        if ((up || (into->parts != NULL && may_wait(k, to, *n))) && merge(k->p, &into, phase)) {
            for (int i = to; !up && i + 1 < *n; i++)
                k->phase[i] = k->phase[i + 1];
            k->phase[up ? to : *n - 1] = into;
            return true;
        }
        up = up && are_independent(k->p, k->phase[to], phase);
    }
    return false;
}

void lower_joins(Kernel *k)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        if (!join(k, &n, k->phase[i]))
            k->phase[n++] = k->phase[i];
    k->n = n;
    lower_done(k, k->p->stage);
}
