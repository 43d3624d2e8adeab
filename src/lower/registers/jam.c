/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Unroll-and-jam of sums over lanes.  Where each iteration of a loop has its own sums over lanes,
 * four iterations (or two) run together: operands that their sums share are loaded once, and the
 * dependence chains of the sums overlap.  Remaining iterations run one by one. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

enum { LIMIT_JAMMED = 4 };

typedef struct Jam {
    Prog *p;
    const Node *phase;
    Invariants kept;
} Jam;

/* Whether each iteration of the loop stores in the vector loop to elements beyond those of the one
 * before. */
static bool has_own(const Node *loop, const Node *v, Expr *cell)
{
    LoopIndex x, y;
    int64_t wide;

    return v->lo->op == OP_int && v->hi->op == OP_int && v->hi->i > v->lo->i &&
           loop_index(cell->arg[0], loop->local, &x) &&
           loop_index(cell->arg[0], v->local, &y) && y.stride > 0 &&
           !int_mul(y.stride, v->hi->i - v->lo->i, &wide) && x.stride >= wide;
}

/* A vector loop that adds to locals from outside it, and stores to elements of its iteration of the
 * loop around: how many sums there are; 0: it is none. */
static int sums_of(Jam *j, const Node *loop, const Node *n)
{
    int sums = 0;

    if (n->kind != N_FOR || n->how != FOR_VECTOR)
        return 0;
    for (int i = 0; i < n->nbody; i++) {
        const Node *s = n->body[i];
        bool kept = s->kind == N_STORE && s->nat == 0 &&
                    lower_is_invariant(j->p, j->phase, s->value, &j->kept);
        bool sum = kept && s->out->op == OP_local && s->out->local->lanes == 1;

        if (!sum && s->kind != N_AHEAD &&
            !(kept && s->out->op == OP_cell && has_own(loop, n, s->out)))
            return 0;
        sums += sum;
    }
    return sums;
}

/* A store to an element of the iteration, or a sum in a register that has gone through all of them
 * before. */
static bool is_last(Jam *j, const Node *loop, const Node *n)
{
    return n->kind == N_STORE && n->nat == 0 &&
           (n->out->op == OP_cell ? tree_is_stepped(j->p, n->out->arg[0], loop->local)
                                  : n->op == A_ADD);
}

/* Lets and checks, the fold, and stores of what it gives.  Where the fold is; -1: it is not so. */
static int fold_in(Jam *j, const Node *n)
{
    int at = 0;

    while (at < n->nbody && (n->body[at]->kind == N_LET || n->body[at]->kind == N_CHECK))
        at++;
    if (at == n->nbody || sums_of(j, n, n->body[at]) == 0 ||
        tree_mentions(j->p, n->body[at]->lo, n->local) ||
        tree_mentions(j->p, n->body[at]->hi, n->local))
        return -1;
    for (int i = 0; i < at; i++) {
        const Node *x = n->body[i];

        if (x->kind == N_LET && (tree_mentions(j->p, n->body[at]->lo, x->local) ||
                                 tree_mentions(j->p, n->body[at]->hi, x->local)))
            return -1;
    }
    for (int i = at + 1; i < n->nbody; i++)
        if (!is_last(j, n, n->body[i]))
            return -1;
    return at;
}

/* Iterations whose sums take half of the registers; the other half is for what they share. */
static int at_once(Jam *j, const Node *n, int at)
{
    int sums = sums_of(j, n, n->body[at]), most = LIMIT_JAMMED;
    bool known = n->lo->op == OP_int && n->hi->op == OP_int;

    while (most > 1 && ((sums > 1 && most * sums > j->p->policy.jam_sums) ||
                        (known && n->hi->i - n->lo->i < most)))
        most /= 2;
    return most;
}

/* What an iteration reads of what it writes is its own: then it may run beside the next. */
static bool is_apart(Jam *j, const Node *n, int at)
{
    for (int i = 0; i < at; i++) {
        Expr *e = n->body[i]->kind == N_LET ? n->body[i]->value : n->body[i]->cond;

        if (!lower_is_invariant(j->p, j->phase, e, &j->kept))
            return e->op == OP_cell && at + 1 < n->nbody && n->body[at + 1]->out == e;
    }
    return true;
}

/* Iteration `entry` of the loop, with locals of its own. */
static Node *iteration(Jam *j, Node *n, Expr *entry)
{
    return loop_replace(j->p, tree_renamed(j->p, n), n->local, entry);
}

static Node *many(Jam *j, Node *n, int at, int most, Expr *count)
{
    Prog *p = j->p;
    Local *q = loop_local(p, "q", T_i64, 1);
    Node loop = {
        .kind = N_FOR, .label = n->label, .local = q, .lo = ir_int(p, 0), .hi = count, .lanes = 1
    };

    loop.over = loop_is_all(p, n) ? loop_over_tiles(p, n->over, most) : NULL;
    Expr *first = tree_add(p, n->lo, tree_mul(p, loop_use(p, q), ir_int(p, most)));
    Node *one[LIMIT_JAMMED], *fold;
    NodeList body = { 0 }, sums = { 0 };

    for (int u = 0; u < most; u++) {
        one[u] = iteration(j, n, tree_add(p, first, ir_int(p, u)));
        for (int i = 0; i < at; i++)
            tree_append(p, &body, one[u]->body[i]);
        for (int i = 0; i < one[u]->body[at]->nbody; i++)
            tree_append(p, &sums,
                         u == 0
                             ? one[u]->body[at]->body[i]
                             : loop_replace(p, one[u]->body[at]->body[i], one[u]->body[at]->local,
                                            loop_use(p, one[0]->body[at]->local)));
    }
    fold = tree_with_body(p, one[0]->body[at], &sums);
    tree_append(p, &body, fold);
    for (int u = 0; u < most; u++)
        for (int i = at + 1; i < n->nbody; i++)
            tree_append(p, &body, one[u]->body[i]);
    return tree_with_body(p, &loop, &body);
}

static void put_jam(Jam *j, Node *n, int at, int most, NodeList *out)
{
    Prog *p = j->p;
    Expr *count = ir_op2(p, OP_div, tree_sub(p, n->hi, n->lo), ir_int(p, most));
    Node rest = *n;

    tree_append(p, out, many(j, n, at, most, count));
    rest.lo = tree_add(p, n->lo, tree_mul(p, count, ir_int(p, most)));
    tree_append(p, out, loop_node(p, &rest));
}

static NodeList jam(Jam *j, Node *const *n, int count)
{
    NodeList out = { 0 }, body;

    for (int i = 0; i < count; i++) {
        int at = n[i]->kind == N_FOR && n[i]->how == FOR_SERIAL ? fold_in(j, n[i]) : -1;

        int most = at >= 0 && is_apart(j, n[i], at) ? at_once(j, n[i], at) : 1;

        if (most > 1) {
            put_jam(j, n[i], at, most, &out);
        } else {
            body = jam(j, n[i]->body, n[i]->nbody);
            tree_append(j->p, &out, tree_with_body(j->p, n[i], &body));
        }
    }
    return out;
}

void lower_jam(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Jam j = { .p = k->p, .phase = k->phase[i] };
        NodeList out = jam(&j, &k->phase[i], 1);

        k->phase[i] = lower_phase(k->p, &out);
        k->phase[i]->label = j.phase->label;
    }
    lower_done(k, k->p->stage);
}
