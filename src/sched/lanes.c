/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fits vector loops of a schedule to the registers of the machine: a loop that asks for more lanes
 * than a register has runs in several registers, one that asks for fewer in a part of a register.
 */
#include "sched/step.h"

enum { LIMIT_REGISTERS = 64 };

static Type type_of(const Node *n)
{
    Type t = n->kind == N_STORE ? (Type)n->out->type : T_none;

    for (int i = 0; i < n->nbody && t == T_none; i++)
        t = type_of(n->body[i]);
    return t;
}

/* The locals of lanes below a node, with other lanes. */
static Node *relaned(Prog *p, const Node *n, int lanes, Memo *memo)
{
    Node c = *n;
    NodeList body = { 0 };

    if (n->kind == N_LET && n->local->lanes > 1) {
        c.local = loop_local(p, n->local->name, n->local->type, lanes);
        *ir_memo(p, memo, loop_use(p, n->local)) = loop_use(p, c.local);
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, relaned(p, n->body[i], lanes, memo));
    return tree_with_body(p, &c, &body);
}

Node *step_relaned(Prog *p, const Node *loop, int lanes)
{
    Memo memo = { 0 };
    Node *n = relaned(p, loop, lanes, &memo);

    return tree_rewritten(p, n, &memo);
}

/* `most`: lanes of the part of a warp that has an iteration of the phase; 0: it is not said. */
static Node *fit(Prog *p, Node *n, const VectorUnit *unit, int most)
{
    Node c = *n;
    NodeList body = { 0 };
    int lanes;

    if (n->kind != N_FOR || n->lanes <= 1) {
        for (int i = 0; i < n->nbody; i++)
            tree_append(p, &body, fit(p, n->body[i], unit, most));
        return n->nbody > 0 ? tree_with_body(p, n, &body) : n;
    }
    lanes = lanes_of(unit, type_of(n) == T_none ? T_f32 : type_of(n));
    lanes = most > 0 && most < lanes ? most : lanes;
    if (lanes == n->lanes)
        return n;
    c.regs = n->lanes * (n->regs > 1 ? n->regs : 1) / lanes;
    c.regs = c.regs < 1 ? 1 : c.regs > LIMIT_REGISTERS ? LIMIT_REGISTERS : c.regs;
    c.lanes = lanes;
    c.packed = n->packed && (c.regs == 2 || c.regs == 4 || c.regs == 8);
    return step_relaned(p, &c, lanes);
}

void step_fit_lanes(Prog *p, const VectorUnit *unit)
{
    Node **phase = arena_copy(p->arena, p->phase, (size_t)p->nphase * sizeof *phase);

    for (int i = 0; i < p->nphase; i++)
        if (phase[i]->scheduled)
            phase[i] = fit(p, phase[i], unit,
                           phase[i]->level == LEVEL_WARP ? phase[i]->width : 0);
    p->phase = phase;
}

void step_whole_warps(Prog *p, const VectorUnit *unit)
{
    Node **phase = arena_copy(p->arena, p->phase, (size_t)p->nphase * sizeof *phase);

    for (int i = 0; i < p->nphase; i++) {
        Node n = *fit(p, phase[i], unit, 0);

        n.width = n.level == LEVEL_WARP ? 0 : n.width;
        phase[i] = loop_node(p, &n);
    }
    p->phase = phase;
}
