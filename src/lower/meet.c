/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases over the same rows become one, each iteration of which runs theirs one after the other, so
 * that what an iteration has made, or has just read, is near when it is wanted again:
 *
 *   - all phases that touch a temporary, each in its own row alone.  The row becomes an array of
 *     the iteration, and the temporary is no more;
 *   - phases that read the same long rows of entries.
 *
 * Needs loops whose lanes are chosen: what runs inside an iteration stays as it is. */
#include "lower/lower_int.h"

enum { LONG = 1024 }; /* bytes of a row of an entry */

typedef struct Meet {
    Kernel *k;
    Touches *touches; /* by phase */
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

/* Whether phase a may wait for phase b, and run before it in each iteration. */
static bool can_meet(const Meet *m, int a, int b)
{
    bool can = have_one_range(m->k->phase[a], m->k->phase[b]);

    for (int i = a + 1; i <= b && can; i++)
        can = !lower_clash(&m->touches[a], &m->touches[i], NULL);
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
    for (int i = 0; i < m->touches[b].n; i++) {
        m->touches[b].read[i] = m->touches[b].read[i] || m->touches[a].read[i];
        m->touches[b].written[i] = m->touches[b].written[i] || m->touches[a].written[i];
    }
    for (int i = a; i + 1 < m->k->n; i++) {
        m->k->phase[i] = m->k->phase[i + 1];
        m->touches[i] = m->touches[i + 1];
    }
    m->k->n--;
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

    r.work = lower_work(p, m->temp, m->temp->type, m->width);
    m->k->phase[at] = loop_rewrite(p, m->k->phase[at], of_row, &r, &memo);
}

/* Whether all phases that touch the temporary can meet in the last one. */
static bool can_all_meet(const Meet *m, int last)
{
    bool can = true;

    for (int a = 0; a < last && can; a++)
        for (int i = a + 1; lower_does_touch(&m->touches[a], m->temp) && i <= last && can; i++) {
            bool other = lower_does_touch(&m->touches[i], m->temp);

            can = !lower_clash(&m->touches[a], &m->touches[i], other ? m->temp : NULL) &&
                  (!other || have_one_range(m->k->phase[a], m->k->phase[i]));
        }
    return can;
}

/* The width of the rows of the temporary, where each iteration of a phase keeps to its own; else 0.
 * How many phases touch it, and the last one. */
static int find_touching(Meet *m, int *last)
{
    int n = 0;

    m->width = -1;
    for (int i = 0; i < m->k->n && m->width != 0; i++) {
        if (!lower_does_touch(&m->touches[i], m->temp))
            continue;
        m->phase = m->k->phase[i];
        if (is_range(m->phase))
            see_rows(m, m->phase, NULL);
        else
            m->width = 0;
        *last = i;
        n++;
    }
    return n;
}

static void meet_in_row(Meet *m, Buf *temp)
{
    int last = 0, n;

    m->temp = temp;
    n = find_touching(m, &last);
    if (n < 2 || m->width <= 0 || m->width > LOWER_MOST_WORK / ir_type[temp->type].bytes ||
        !can_all_meet(m, last))
        return;
    for (int a = last - 1; a >= 0; a--)
        if (lower_does_touch(&m->touches[a], temp))
            meet(m, a, last--);
    make_work(m, last);
}

/* Whether both read long rows of the entries that they go over. */
static bool share_entries(const Meet *m, int a, int b)
{
    const Prog *p = m->k->p;
    const Buf *start = loop_balance(m->k->phase[a]);
    bool share = false;

    if (start == NULL || start != loop_balance(m->k->phase[b]))
        return false;
    for (int i = 0; i < p->nbuf && !share; i++) {
        const Buf *x = p->buf[i];

        share = m->touches[a].read[i] && m->touches[b].read[i] && x->nslot > 0 &&
                x->slot[0] == start->of && lower_slot_bytes(x, 0) >= LONG;
    }
    return share;
}

void lower_meets(Kernel *k)
{
    Prog *p = k->p;
    Meet m = { .k = k, .touches = arena_array(p->arena, k->n, sizeof *m.touches) };
    int naux = p->naux;

    for (int i = 0; i < k->n; i++)
        m.touches[i] = lower_touched(p, k->phase[i]);
    for (int i = 0; i < p->nbuf + naux; i++) {
        Buf *b = i < p->nbuf ? p->buf[i] : p->aux[i - p->nbuf];

        if (b->kind == B_TEMP && b->of == NULL && ir_type[b->type].floats)
            meet_in_row(&m, b);
    }
    for (int b = 1; b < k->n; b++)
        for (int a = b - 1; a >= 0; a--)
            if (can_meet(&m, a, b) && share_entries(&m, a, b)) {
                meet(&m, a, b);
                b--;
            }
    lower_done(k, p->stage);
}
