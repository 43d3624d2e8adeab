/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Barriers: where the lanes of a vector are threads, an element that one lane stores is seen by
 * another only after both have met.  This pass puts a barrier between two accesses of one element
 * by different lanes, one of which stores; a barrier of the block where they are of different
 * warps.
 *
 *     Y.work[0] = X[i]                      Y.work[0] = X[i]
 *     vector for k in 0..64 step 32   >     barrier
 *         Z[i * 64 + k] = Y.work[0]         vector for k in 0..64 step 32
 *                                               Z[i * 64 + k] = Y.work[0]
 *
 * ir/meet.c says which accesses these are.  A loop around both is walked twice, the second time
 * behind the accesses of its iteration before; so is the phase, for the arrays that an iteration
 * has, which the next one on the same lanes takes over.
 *
 * Needs flat indices; runs last, as passes after it would have to keep the places of barriers.
 * Gives stage `threads`.  Phases at thread level are run by single threads, and get none. */
#include "ir/meet.h"
#include "lower/facts/facts_int.h"

static Meeting meeting(const Meet *m, const AccessList *before, const AccessList *now)
{
    Meeting most = MEET_NONE, one;

    for (int i = 0; i < before->n; i++)
        for (int k = 0; k < now->n && most < MEET_WARPS; k++) {
            one = meet_between(m, &before->access[i], &now->access[k]);
            most = one > most ? one : most;
        }
    return most;
}

static NodeList walk(Meet *m, Node *const *n, int count, AccessList *s);

/* A loop or branch: what its body leaves comes to what was there, as it may not run. */
static Node *walk_block(Meet *m, Node *n, AccessList *s)
{
    bool dealt = n->lanes > 1 || (n != m->phase && n->level == LEVEL_THREAD);
    Meet outer = *m;
    AccessList below = { 0 };
    NodeList body = { 0 };

    meet_enter(m, n);
    if (dealt && n != m->phase) { /* no barrier stands in it */
        for (int i = 0; i < n->nbody; i++)
            meet_entry(m, n->body[i], &below);
    } else {
        body = walk(m, n->body, n->nbody, &below);
        if (n->how == FOR_PARALLEL && n->kind == N_FOR)
            meet_next_iteration(m, &below);
        else if (n->kind == N_FOR)
            meet_end(m, n, &below, true);
        if (n->kind == N_FOR)
            body = walk(m, body.node, body.n, &below);
        n = tree_with_body(m->p, n, &body);
    }
    meet_end(m, n, &below, false);
    outer.now = m->now;
    *m = outer;
    for (int i = 0; i < below.n; i++)
        meet_add(m, s, &below.access[i]);
    return n;
}

/* What the blocks inside need is found first: a barrier that their accesses stand behind serves
 * those before the block, too. */
static NodeList walk(Meet *m, Node *const *n, int count, AccessList *s)
{
    NodeList to = { 0 };

    for (int i = 0; i < count; i++) {
        AccessList own = { 0 }, left = { 0 };
        Node *node = n[i]->nbody > 0 ? walk_block(m, n[i], &left) : n[i];
        Node barrier = { .kind = N_BARRIER, .label = node->label };
        Meeting need;

        meet_entry(m, node, &own);
        need = meeting(m, s, &own);
        barrier.level = need == MEET_WARPS ? LEVEL_BLOCK : LEVEL_NONE;
        if (need != MEET_NONE) {
            tree_append(m->p, &to, loop_node(m->p, &barrier));
            meet_at_barrier(m, barrier.level, s);
        }
        if (node->kind == N_BARRIER)
            meet_at_barrier(m, node->level, s);
        meet_accesses(m, node, s);
        for (int k = 0; k < left.n; k++)
            meet_add(m, s, &left.access[k]);
        tree_append(m->p, &to, node);
    }
    return to;
}

void lower_barriers(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        AccessList s = { 0 };
        NodeList to;
        Meet m;

        if (loop_level(k->phase[i]) == LEVEL_THREAD)
            continue;
        m = meet_phase(k->p, k->phase[i]);
        to = walk(&m, &k->phase[i], 1, &s);
        k->phase[i] = to.node[to.n - 1];
    }
    lower_done(k, k->p->stage);
    k->p->threads = true;
    loop_check_threads(k->p); /* the one pass whose result is always checked: threads would wait */
}
