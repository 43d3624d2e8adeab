/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Unrolls loops over constant relations, so that their tables become constants of straight-line
 * code. Beyond a budget of code size the loop stays and reads its tables. */
#include "lower/constants/constants_int.h"
#include "lower/facts/facts_int.h"

typedef struct Unroll {
    Prog *p;
    int64_t left; /* nodes that may still be made */
    bool keep;    /* all loops: a schedule has arranged them */
    bool tables;  /* the program has constant arrays */
    Memo simple;  /* of ir_simplify */
} Unroll;

typedef struct Scope { /* what is known of the locals around a node */
    const Ranges *r;
    Memo decided; /* of lower_decided */
} Scope;

static Expr *folded(Unroll *u, Expr *e, Scope *s)
{
    return e == NULL ? NULL
                     : lower_decided(u->p, s->r, ir_simplify(u->p, e, &u->simple), &s->decided);
}

/* Folds the expressions of one node; its body is folded when its turn comes. */
static Node *fold_node(Unroll *u, const Node *n, Scope *s)
{
    Node *c = loop_node(u->p, n);
    Expr **slot[LIMIT_SLOTS];
    int k = tree_slots(c, slot);

    for (int i = 0; i < k; i++)
        *slot[i] = folded(u, *slot[i], s);
    if (c->over != NULL)
        c->over = loop_over_at(u->p, c->over, folded(u, c->over->row, s),
                               folded(u, c->over->tile, s));
    return c;
}

typedef struct Relation {
    const Local *local;
    bool found;
} Relation;

static bool is_moved_by(Expr *index, const Local *l)
{
    bool sum = index->op == OP_add;

    for (int i = 0; i < 2 && sum; i++)
        if (index->arg[i]->op == OP_local && index->arg[i]->local == l)
            return true;
    return index->op == OP_local && index->local == l;
}

static void see_table(Expr *e, void *ctx)
{
    Relation *r = ctx;

    if (e->op == OP_cell && e->buf->kind == B_CONST)
        for (int i = 0; i < e->nargs; i++)
            r->found = r->found || is_moved_by(e->arg[i], r->local);
}

/* Whether the loop's variable selects an entry of a constant table: then unrolling removes it. */
static bool is_relation(Unroll *u, const Node *n)
{
    Relation r = { .local = n->local };
    Memo met = { 0 };

    for (int i = 0; i < n->nbody && u->tables; i++)
        loop_visit(u->p, n->body[i], see_table, &r, &met);
    return r.found;
}

static int64_t count_nodes(const Node *n)
{
    int64_t count = 1;

    for (int i = 0; i < n->nbody; i++)
        count += count_nodes(n->body[i]);
    return count;
}

static bool wants_unrolling(Unroll *u, const Node *n, int64_t trips)
{
    if (n->how == FOR_PARALLEL || u->keep)
        return false;
    if (trips <= 1)
        return true;
    return trips <= u->p->policy.unroll_trips && trips * count_nodes(n) <= u->left &&
           is_relation(u, n);
}

static void unroll_into(Unroll *u, Node *n, Scope *s, NodeList *out);

/* What a let is counts in the nodes after it. */
static void unroll_body(Unroll *u, const Node *n, const Ranges *r, NodeList *out)
{
    Scope s = { .r = r };

    for (int i = 0; i < n->nbody; i++) {
        unroll_into(u, n->body[i], &s, out);
        if (n->body[i]->kind == N_LET) {
            Ranges let = lower_range_of(s.r, n->body[i]);

            s = (Scope){ .r = arena_copy(u->p->arena, &let, sizeof let) };
        }
    }
}

static void unroll_for(Unroll *u, Node *n, const Ranges *r, NodeList *out)
{
    NodeList body = { 0 };
    bool constant = n->lo->op == OP_int && n->hi->op == OP_int;
    int64_t trips;
    Ranges inner = lower_range_of(r, n);

    if (constant && !int_sub(n->hi->i, n->lo->i, &trips) && wants_unrolling(u, n, trips)) {
        if (trips > 1)
            u->left -= trips * count_nodes(n);
        for (int64_t i = n->lo->i; i < n->hi->i; i++) {
            Node *turn = loop_replace(u->p, n, n->local, ir_int(u->p, i));

            unroll_body(u, trips > 1 ? tree_renamed(u->p, turn) : turn, r, out);
        }
        return;
    }
    unroll_body(u, n, &inner, &body);
    n->body = body.node;
    n->nbody = body.n;
    if (body.n > 0)
        tree_append(u->p, out, n);
}

static void unroll_into(Unroll *u, Node *n, Scope *s, NodeList *out)
{
    Node *c = fold_node(u, n->kind == N_FOR && !u->keep ? lower_collapsed(u->p, n) : n, s);
    NodeList body = { 0 };
    Truth t = c->cond != NULL ? lower_truth(s->r, c->cond) : UNKNOWN;

    if (c->kind == N_FOR) {
        unroll_for(u, c, s->r, out);
        return;
    }
    if ((c->kind == N_CHECK && t == YES) || (c->kind == N_IF && t == NO))
        return;
    if (c->kind == N_IF && t == YES) {
        unroll_body(u, c, s->r, out);
        return;
    }
    unroll_body(u, c, s->r, &body);
    c->body = body.node;
    c->nbody = body.n;
    if (c->kind != N_IF || body.n > 0)
        tree_append(u->p, out, c);
}

static bool has_tables(const Prog *p)
{
    bool found = false;

    for (int i = 0; i < p->nbuf && !found; i++)
        found = p->buf[i]->kind == B_CONST;
    for (int i = 0; i < p->naux && !found; i++)
        found = p->aux[i]->kind == B_CONST;
    return found;
}

void lower_unroll(Kernel *k)
{
    Unroll u = { .p = k->p, .left = k->p->policy.unroll_nodes, .tables = has_tables(k->p) };
    int n = 0;

    for (int i = 0; i < k->n; i++) {
        NodeList list = { 0 };
        Node *phase;

        u.keep = k->phase[i]->scheduled;
        if (!lower_has_registers(k->phase[i]))
            unroll_into(&u, k->phase[i], &(Scope){ 0 }, &list);
        else
            tree_append(u.p, &list, k->phase[i]);
        phase = lower_phase(u.p, &list);
        if (phase != NULL && u.keep)
            phase->scheduled = true;
        if (phase != NULL)
            k->phase[n++] = phase;
    }
    k->n = n;
    lower_done(k, k->p->stage);
}
