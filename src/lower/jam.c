/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Several entries at once: a loop each of whose iterations is a sum over lanes of its own takes
 * four in one, so that what the sums share is loaded once and their chains run side by side.  The
 * iterations that are left go one by one. */
#include "lower/lower_int.h"

enum { AT_ONCE = 4 };

typedef struct Jam {
    Prog *p;
    const Node *phase;
    Memo kept;
} Jam;

/* A vector loop that only adds to locals from outside it. */
static bool is_fold(Jam *j, const Node *n)
{
    int sums = 0;

    if (n->kind != N_FOR || n->how != FOR_VECTOR)
        return false;
    for (int i = 0; i < n->nbody; i++) {
        const Node *s = n->body[i];
        bool sum = s->kind == N_STORE && s->out->op == OP_local && s->out->local->lanes == 1 &&
                   lower_is_kept(j->p, j->phase, s->value, &j->kept);

        if (!sum && s->kind != N_AHEAD)
            return false;
        sums += sum;
    }
    return sums == 1;
}

/* Lets and checks, the fold, and stores of what it gives.  Where the fold is; -1: it is not so. */
static int fold_in(Jam *j, const Node *n)
{
    int at = 0;

    while (at < n->nbody && (n->body[at]->kind == N_LET || n->body[at]->kind == N_CHECK))
        at++;
    if (at == n->nbody || !is_fold(j, n->body[at]) ||
        lower_mentions(j->p, n->body[at]->lo, n->local) ||
        lower_mentions(j->p, n->body[at]->hi, n->local))
        return -1;
    for (int i = 0; i < at; i++) {
        const Node *x = n->body[i];

        if (x->kind == N_LET && (lower_mentions(j->p, n->body[at]->lo, x->local) ||
                                 lower_mentions(j->p, n->body[at]->hi, x->local)))
            return -1;
    }
    for (int i = at + 1; i < n->nbody; i++)
        if (n->body[i]->kind != N_STORE || n->body[i]->nat > 0 || n->body[i]->out->op != OP_cell ||
            !lower_is_stepped(j->p, n->body[i]->out->arg[0], n->local))
            return -1;
    return at;
}

/* What an iteration reads of what it writes is its own: then it may run beside the next. */
static bool is_apart(Jam *j, const Node *n, int at)
{
    for (int i = 0; i < at; i++) {
        Expr *e = n->body[i]->kind == N_LET ? n->body[i]->value : n->body[i]->cond;

        if (!lower_is_kept(j->p, j->phase, e, &j->kept))
            return e->op == OP_cell && at + 1 < n->nbody && n->body[at + 1]->out == e;
    }
    return true;
}

/* Iteration `entry` of the loop, with locals of its own. */
static Node *iteration(Jam *j, Node *n, Expr *entry)
{
    return loop_replace(j->p, lower_renamed(j->p, n), n->local, entry);
}

static Node *many(Jam *j, Node *n, int at, Expr *count)
{
    Prog *p = j->p;
    Local *q = loop_local(p, "q", T_i64, 1);
    Node loop = {
        .kind = N_FOR, .label = n->label, .local = q, .lo = ir_int(p, 0), .hi = count, .lanes = 1
    };
    Expr *first = lower_add(p, n->lo, lower_mul(p, loop_use(p, q), ir_int(p, AT_ONCE)));
    Node *one[AT_ONCE], *fold;
    NodeList body = { 0 }, sums = { 0 };

    for (int u = 0; u < AT_ONCE; u++) {
        one[u] = iteration(j, n, lower_add(p, first, ir_int(p, u)));
        for (int i = 0; i < at; i++)
            lower_append(p, &body, one[u]->body[i]);
        for (int i = 0; i < one[u]->body[at]->nbody; i++)
            lower_append(p, &sums,
                         u == 0
                             ? one[u]->body[at]->body[i]
                             : loop_replace(p, one[u]->body[at]->body[i], one[u]->body[at]->local,
                                            loop_use(p, one[0]->body[at]->local)));
    }
    fold = lower_with_body(p, one[0]->body[at], &sums);
    lower_append(p, &body, fold);
    for (int u = 0; u < AT_ONCE; u++)
        for (int i = at + 1; i < n->nbody; i++)
            lower_append(p, &body, one[u]->body[i]);
    return lower_with_body(p, &loop, &body);
}

static void put_jam(Jam *j, Node *n, int at, NodeList *out)
{
    Prog *p = j->p;
    Expr *count = ir_op2(p, OP_div, lower_sub(p, n->hi, n->lo), ir_int(p, AT_ONCE));
    Node rest = *n;

    lower_append(p, out, many(j, n, at, count));
    rest.lo = lower_add(p, n->lo, lower_mul(p, count, ir_int(p, AT_ONCE)));
    lower_append(p, out, loop_node(p, &rest));
}

static NodeList jam(Jam *j, Node *const *n, int count)
{
    NodeList out = { 0 }, body;

    for (int i = 0; i < count; i++) {
        int at = n[i]->kind == N_FOR && n[i]->how == FOR_SERIAL ? fold_in(j, n[i]) : -1;

        if (at >= 0 && is_apart(j, n[i], at)) {
            put_jam(j, n[i], at, &out);
        } else {
            body = jam(j, n[i]->body, n[i]->nbody);
            lower_append(j->p, &out, lower_with_body(j->p, n[i], &body));
        }
    }
    return out;
}

void lower_jams(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Jam j = { .p = k->p, .phase = k->phase[i] };
        NodeList out = jam(&j, &k->phase[i], 1);

        k->phase[i] = lower_phase(k->p, &out);
        k->phase[i]->label = j.phase->label;
    }
    lower_done(k, k->p->stage);
}
