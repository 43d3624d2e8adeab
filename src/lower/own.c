/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What phases have to do with each other: which arrays they read and write, and whether the
 * elements are those of an iteration's own row.  For passes that make one phase of several. */
#include "lower/lower_int.h"

bool lower_is_known(const Node *loop)
{
    return loop->lo->op == OP_int && loop->hi->op == OP_int;
}

static const Node *loop_of(const Around *a, const Local *l)
{
    while (a != NULL && a->loop->local != l)
        a = a->outer;
    return a != NULL && lower_is_known(a->loop) ? a->loop : NULL;
}

/* A coordinate of the iteration's entry that no other entry has. */
static bool is_name(const Expr *e, const Local *entry)
{
    return e->op == OP_cell && e->buf->of != NULL && e->buf->of_k >= 0 && e->buf->nfull == 0 &&
           e->buf->of->coord[e->buf->of_k].once && e->arg[0]->op == OP_local &&
           e->arg[0]->local == entry;
}

Expr *lower_row_index(Prog *p, Expr *index, const Node *rows, LoopIndex *x)
{
    static const Local none;
    Expr *name = NULL;

    if (loop_index(index, rows->local, x) && x->stride != 0)
        return loop_use(p, rows->local);
    if (!loop_index(index, &none, x))
        return NULL;
    for (int i = 0; i < x->n && name == NULL; i++)
        if (is_name(x->leaf[i], rows->local)) {
            name = x->leaf[i];
            x->stride = x->times[i];
            x->n--;
            for (int k = i; k < x->n; k++) {
                x->leaf[k] = x->leaf[k + 1];
                x->times[k] = x->times[k + 1];
            }
        }
    for (int i = 0; i < x->n; i++)
        if (lower_mentions(p, x->leaf[i], rows->local))
            return NULL;
    return name;
}

int64_t lower_own_width(Prog *p, const Node *rows, const Around *around, const Expr *cell,
                        const Buf **by)
{
    LoopIndex x;
    Expr *row = lower_row_index(p, cell->arg[0], rows, &x);
    int64_t lo, hi;

    if (row == NULL || x.stride <= 0)
        return 0;
    *by = row->op == OP_cell ? row->buf : NULL;
    lo = hi = x.constant;
    for (int i = 0; i < x.n; i++) {
        const Node *loop = x.leaf[i]->op == OP_local ? loop_of(around, x.leaf[i]->local) : NULL;
        int64_t a, b;

        if (loop == NULL || loop->lo->i >= loop->hi->i || int_mul(x.times[i], loop->lo->i, &a) ||
            int_mul(x.times[i], loop->hi->i - 1, &b) || int_add(lo, a < b ? a : b, &lo) ||
            int_add(hi, a < b ? b : a, &hi))
            return 0;
    }
    return 0 <= lo && hi < x.stride ? x.stride : 0;
}

Expr *lower_index(Prog *p, const LoopIndex *x, Expr *local)
{
    Expr *at = lower_mul(p, local, ir_int(p, x->stride));

    for (int i = 0; i < x->n; i++)
        at = lower_add(p, at, lower_mul(p, x->leaf[i], ir_int(p, x->times[i])));
    return lower_add(p, at, ir_int(p, x->constant));
}

int64_t lower_slot_bytes(const Buf *b, int slot)
{
    int64_t bytes = ir_type[b->type].bytes;

    for (int s = 0; s < b->nslot; s++) {
        bool above = s == slot || ir_is_ancestor(b->slot[s], b->slot[slot]);
        int64_t n = above ? 1 : ir_const_total(b->slot[s]);

        for (int u = 0; u < b->nslot && n != 1; u++)
            if (ir_is_ancestor(b->slot[s], b->slot[u]))
                n = 1; /* which counts them all */
        if (n < 0 || int_mul(bytes, n, &bytes))
            return 0;
    }
    return bytes;
}

static bool *mark_of(bool *mark, const Prog *p, const Buf *b)
{
    return &mark[b->id < LOOP_OWN ? b->id : p->nbuf + b->id - LOOP_OWN];
}

typedef struct Marking {
    const Prog *p;
    bool *read;
} Marking;

static void see(Expr *e, void *ctx)
{
    Marking *m = ctx;

    if (e->op == OP_cell)
        *mark_of(m->read, m->p, e->buf) = true;
}

/* An element that is stored to is not read, what its index is made of is. */
static void see_target(Prog *p, const Expr *out, Marking *m, Memo *met)
{
    for (int i = 0; i < out->nargs; i++)
        ir_visit(p, out->arg[i], see, m, met);
}

static void mark(Prog *p, const Node *n, Touches *t, Memo *met)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };
    Marking m = { p, t->read };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL)
            ir_visit(p, part[i], see, &m, met);
    if (n->out != NULL)
        see_target(p, n->out, &m, met);
    if (n->kind == N_STORE && n->out->op == OP_cell)
        *mark_of(t->written, p, n->out->buf) = true;
    for (int k = 0; k < n->nat; k++) {
        see_target(p, n->at[k].out, &m, met);
        ir_visit(p, n->at[k].value, see, &m, met);
        *mark_of(t->written, p, n->at[k].out->buf) = true;
    }
    for (int i = 0; i < n->nbody; i++)
        mark(p, n->body[i], t, met);
}

Touches lower_touched(Prog *p, const Node *phase)
{
    Touches t = { .p = p, .n = p->nbuf + p->naux, .builds = loop_builds(phase) != NULL };
    Memo met = { 0 };

    t.read = arena_array(p->arena, t.n, sizeof *t.read);
    t.written = arena_array(p->arena, t.n, sizeof *t.written);
    mark(p, phase, &t, &met);
    return t;
}

bool lower_does_touch(const Touches *t, const Buf *b)
{
    return *mark_of(t->read, t->p, b) || *mark_of(t->written, t->p, b);
}

bool lower_does_read(const Touches *t, const Touches *other)
{
    bool does = false;

    for (int i = 0; i < t->n && !does; i++)
        does = t->read[i] && other->written[i];
    return does;
}

bool lower_clash(const Touches *a, const Touches *b, const Buf *but)
{
    const bool *not = but == NULL ? NULL : mark_of(a->read, a->p, but);
    bool clash = a->builds || b->builds;

    for (int i = 0; i < a->n && !clash; i++)
        clash = &a->read[i] != not && ((a->written[i] && (b->read[i] || b->written[i])) ||
                                       (b->written[i] && a->read[i]));
    return clash;
}
