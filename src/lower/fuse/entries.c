/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fuses the readers of a per-edge temporary into its producer.  One phase computes a row of the
 * temporary for each entry, such as the gradient by weights that are themselves computed.  If
 * every reader runs over the same entries and reads the row of its own entry only, all these
 * phases become one phase over rows and their entries, and the temporary shrinks to one row of
 * scratch.  Sums into elements of all iterations are left to split/reductions.c.  Needs stage
 * positions and a plan. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

enum { LIMIT_LOOPS = 16 };

typedef struct User { /* a phase that reads the rows */
    int at;
    Node *row, *entry;       /* its loops over rows and over their entries, */
    Node *loop[LIMIT_LOOPS]; /* and all others, which have constant ends */
    int n;
    Node *inner; /* the innermost of all, around its sums */
} User;

/* Cached facts about all phases.  Phases keep their numbers: a phase that was fused into a later
 * one is NULL, and `now` is the number of that one. */
typedef struct Phases {
    Mentions of;
    Touches *touches; /* by phase; made when first asked for */
    bool *known;
    int *now;
} Phases;

typedef struct Within {
    Kernel *k;
    Phases *all;
    Buf *buf, *work;
    int *make, nmake; /* the phases that add to the rows, */
    User *user;       /* and those that read them */
    int n;
    int64_t width;
    bool shared; /* something is added to elements that all iterations have */
} Within;

/* Whether the array has rows of a constant width, which all begin with one value. */
static bool has_rows(Within *w)
{
    Dim dim[IR_MAX_FULL];
    Expr *width;

    if (w->buf->init == NULL || w->buf->init_at != NULL || ir_dims(w->buf, dim) != 2)
        return false;
    width = lower_dim_extent(w->k->p, w->buf, dim[1]);
    w->width = width->op == OP_int ? width->i : 0;
    return w->width > 0;
}

typedef struct Rows {
    Expr *row;
    const Buf *buf;
    bool good;
} Rows;

static void see_row(Expr *e, void *ctx)
{
    Rows *r = ctx;

    if (e->op == OP_cell && e->buf == r->buf)
        r->good = r->good && e->arg[0] == r->row;
}

/* Whether all elements of the array that are mentioned are of the entry's row. */
static bool at_row(const Within *w, const Node *n, Local *entry)
{
    Rows r = { loop_use(w->k->p, entry), w->buf, true };
    Memo met = { 0 };

    loop_visit(w->k->p, n, see_row, &r, &met);
    return r.good;
}

/* Whether all that is stored below n are sums, and none is read again. */
static bool are_sums(const Within *w, const Node *n, const Node *phase, Invariants *kept)
{
    bool good = n->kind == N_FOR ? n->how == FOR_SERIAL && n->lanes <= 1
                                 : n->kind == N_STORE && n->op == A_ADD && n->nat == 0 &&
                                       n->out->op == OP_cell && ir_type[n->out->buf->type].floats;

    if (n->kind == N_STORE)
        good = good && lower_is_invariant(w->k->p, phase, n->value, kept);
    for (int i = 0; i < n->nbody && good; i++)
        good = are_sums(w, n->body[i], phase, kept);
    return good;
}

/* The phase whose rows and entries all of them have. */
static const Node *first_of(const Within *w)
{
    return w->k->phase[w->make[0]];
}

static bool is_make(const Within *w, const Node *n)
{
    Invariants kept = { 0 };

    return n->kind == N_FOR && n->how == FOR_PARALLEL && !n->scheduled && n->nbody == 1 &&
           !lower_has_registers(n) && lower_entries(w->k->p, n, n->body[0]) != NULL &&
           (w->nmake == 0 || n->body[0]->lo->buf == first_of(w)->body[0]->lo->buf) &&
           are_sums(w, n->body[0], n, &kept) && at_row(w, n->body[0], n->body[0]->local);
}

/* Whether the sum is not the entry's own.  The element of an array without dimensions has no index
 * and is shared by all entries. */
static bool is_shared(const User *u, Expr *out)
{
    return out->nargs == 0 || lower_index_owner(out->arg[0]) != u->entry->local;
}

/* Whether it is one of few elements, which no row has for itself: sums of a row are better kept in
 * registers while its entries pass. */
static bool may_share(const Within *w, const User *u, Expr *out)
{
    Prog *p = w->k->p;
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(out->buf, dim);
    int64_t all = 1;

    for (int d = 0; d < n; d++) {
        Expr *extent = lower_dim_extent(p, out->buf, dim[d]);

        if (tree_mentions(p, out->arg[d], u->row->local) ||
            tree_mentions(p, out->arg[d], u->entry->local) || extent->op != OP_int ||
            int_mul(all, extent->i, &all) || all > p->policy.shared)
            return false;
    }
    return true;
}

/* Sorts the loops of a phase that does nothing but sums in the innermost one. */
static bool take_loops(const Within *w, Node *n, User *u)
{
    const Node *make = first_of(w);

    for (;; n = n->body[0]) {
        if (n->kind != N_FOR || n->nbody == 0 || n->lanes > 1)
            return false;
        if (u->row != NULL && u->entry == NULL && n->lo->op == OP_cell &&
            n->lo->buf == make->body[0]->lo->buf &&
            lower_entries(w->k->p, u->row, n) != NULL)
            u->entry = n;
        else if (u->row == NULL && n->lo == make->lo && n->hi == make->hi)
            u->row = n;
        else if (n->lo->op == OP_int && n->hi->op == OP_int && u->n < LIMIT_LOOPS)
            u->loop[u->n++] = n;
        else
            return false;
        if (n->body[0]->kind != N_FOR || n->nbody > 1)
            break;
    }
    u->inner = n;
    return u->entry != NULL && u->n > 0;
}

static bool take_user(Within *w, int at, User *u)
{
    Node *n = w->k->phase[at];
    Invariants kept = { 0 };

    *u = (User){ .at = at };
    if (n->scheduled || !take_loops(w, n, u) || !at_row(w, n, u->entry->local))
        return false;
    for (int i = 0; i < u->inner->nbody; i++) {
        const Node *s = u->inner->body[i];

        if (s->kind != N_STORE || !are_sums(w, s, n, &kept) ||
            (is_shared(u, s->out) && !may_share(w, u, s->out)))
            return false;
        w->shared = w->shared || is_shared(u, s->out);
    }
    return true;
}

/* Whether the phase becomes a part of the one. */
static bool is_moved(const Within *w, int phase)
{
    bool moved = false;

    for (int i = 0; i < w->nmake; i++)
        moved = moved || w->make[i] == phase;
    for (int i = 0; i < w->n; i++)
        moved = moved || w->user[i].at == phase;
    return moved;
}

static const Touches *touches_of(const Within *w, int phase)
{
    if (!w->all->known[phase])
        w->all->touches[phase] = lower_touched(w->k->p, w->k->phase[phase]);
    w->all->known[phase] = true;
    return &w->all->touches[phase];
}

/* Whether all of them can wait for the last: nothing in between has to do with them, and nothing
 * but the rows goes from one to another. */
static bool can_wait(const Within *w)
{
    int last = w->user[w->n - 1].at;

    for (int i = w->make[0]; i < last; i++)
        for (int j = i + 1; j <= last && is_moved(w, i); j++)
            if (w->k->phase[j] != NULL && lower_clash(touches_of(w, i), touches_of(w, j),
                                                      is_moved(w, j) ? w->buf : NULL))
                return false;
    return true;
}

static int now(const Phases *all, int phase)
{
    while (all->now[phase] != phase)
        phase = all->now[phase] = all->now[all->now[phase]];
    return phase;
}

/* The phases that mention the array, ascending; how many. */
static int users_of(const Within *w, int *out)
{
    const MentionList *l = lower_mentions_of(&w->all->of, w->buf);
    int n = 0;

    for (int i = 0; i < l->n; i++) {
        int phase = now(w->all, l->phase[i]), at = n;

        while (at > 0 && out[at - 1] > phase)
            at--;
        if ((at > 0 && out[at - 1] == phase) || w->k->phase[phase] == NULL ||
            !tree_touches(w->k->p, w->k->phase[phase], w->buf))
            continue;
        for (int k = n++; k > at; k--)
            out[k] = out[k - 1];
        out[at] = phase;
    }
    return n;
}

/* Finds the phases of an array; false: it is not such a one. */
static bool find_phases(Within *w)
{
    Kernel *k = w->k;
    int most = lower_mentions_of(&w->all->of, w->buf)->n, n;
    int *phase = arena_array(k->p->arena, most, sizeof *phase);

    n = users_of(w, phase);
    if (!has_rows(w))
        return false;
    w->make = arena_array(k->p->arena, n, sizeof *w->make);
    w->user = arena_array(k->p->arena, n, sizeof *w->user);
    for (int m = 0; m < n; m++) {
        int i = phase[m];

        if (loop_writes(k->phase[i], w->buf) && w->n == 0 && is_make(w, k->phase[i]))
            w->make[w->nmake++] = i;
        else if (w->nmake == 0 || loop_writes(k->phase[i], w->buf) ||
                 !take_user(w, i, &w->user[w->n++]))
            return false;
    }
    return w->n > 0 && w->width <= w->k->p->policy.edge_scratch / ir_type[w->buf->type].bytes &&
           can_wait(w);
}

static Expr *in_work(Prog *p, Expr *e, void *ctx)
{
    const Within *w = ctx;
    Expr *at;

    if (e->op != OP_cell || e->buf != w->buf)
        return e;
    at = e->arg[1];
    return loop_cell(p, w->work, &at, 1, 1);
}

static Node *begin_row(const Within *w)
{
    Prog *p = w->k->p;
    const char *label = loop_init_label(p, w->buf);
    Local *x = loop_local(p, "x1", T_i64, 1);
    Expr *at = loop_use(p, x);
    NodeList body = { 0 };
    Node loop = { .kind = N_FOR, .label = label, .local = x, .lo = ir_int(p, 0) };

    loop.hi = ir_int(p, w->width);
    tree_append(p, &body, loop_node(p, &(Node){ .kind = N_STORE,
                                                 .label = label,
                                                 .op = A_SET,
                                                 .out = loop_cell(p, w->work, &at, 1, 1),
                                                 .value = w->buf->init }));
    return tree_with_body(p, &loop, &body);
}

/* What another phase does for an entry, as a part of the first. */
static Node *moved(const Within *w, Node *n, const Local *row, const Local *entry)
{
    Prog *p = w->k->p;
    Memo memo = { 0 };

    n = loop_replace(p, n, row, loop_use(p, first_of(w)->local));
    n = loop_replace(p, n, entry, loop_use(p, first_of(w)->body[0]->local));
    return loop_fresh(p, loop_rewrite(p, n, in_work, (void *)w, &memo));
}

/* One sum of a phase that uses the row, inside its other loops. */
static Node *use_row(const Within *w, const User *u, Node *sum)
{
    Prog *p = w->k->p;

    for (int i = u->n - 1; i >= 0; i--) {
        NodeList body = { 0 };
        Node loop = *u->loop[i];

        tree_append(p, &body, sum);
        loop.how = FOR_SERIAL;
        loop.why = NULL;
        sum = tree_with_body(p, &loop, &body);
    }
    return moved(w, sum, u->row->local, u->entry->local);
}

/* The phase of all: where iterations add to the same elements it is serial, for
 * split/reductions.c. */
static Node *fused(Within *w)
{
    Prog *p = w->k->p;
    NodeList body = { 0 }, all = { 0 };
    Node phase = *first_of(w);

    w->work = lower_scratch(p, w->buf, w->buf->type, w->width);
    tree_append(p, &body, begin_row(w));
    for (int i = 0; i < w->nmake; i++) {
        const Node *make = w->k->phase[w->make[i]], *entries = make->body[0];

        for (int k = 0; k < entries->nbody; k++)
            tree_append(p, &body, moved(w, entries->body[k], make->local, entries->local));
    }
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < w->user[i].inner->nbody; k++)
            tree_append(p, &body, use_row(w, &w->user[i], w->user[i].inner->body[k]));
    tree_append(p, &all, tree_with_body(p, phase.body[0], &body));
    phase.how = w->shared ? FOR_SERIAL : FOR_PARALLEL;
    return tree_with_body(p, &phase, &all);
}

static void use_within(Kernel *k, Phases *all, Buf *b)
{
    Within w = { .k = k, .all = all, .buf = b };
    Node *phase;
    int last;

    if (b->kind != B_TEMP || (b->type != T_f32 && b->type != T_f64) || lower_is_elsewhere(k, b) ||
        !find_phases(&w))
        return;
    phase = fused(&w);
    last = w.user[w.n - 1].at;
    loop_drop_init(b);
    for (int i = w.make[0]; i < last; i++)
        if (is_moved(&w, i)) {
            k->phase[i] = NULL;
            all->now[i] = last;
        }
    k->phase[last] = phase;
    all->known[last] = false;
}

void lower_fuse_entries(Kernel *k)
{
    Prog *p = k->p;
    Phases all = { .of = lower_mentioned(k) };
    int n = 0;

    all.touches = arena_array(p->arena, k->n, sizeof *all.touches);
    all.known = arena_array(p->arena, k->n, sizeof *all.known);
    all.now = arena_array(p->arena, k->n, sizeof *all.now);
    for (int i = 0; i < k->n; i++)
        all.now[i] = i;
    for (int i = 0; i < p->nbuf; i++)
        use_within(k, &all, p->buf[i]);
    for (int i = 0; i < k->n; i++)
        if (k->phase[i] != NULL)
            k->phase[n++] = k->phase[i];
    k->n = n;
    lower_done(k, p->stage);
}
