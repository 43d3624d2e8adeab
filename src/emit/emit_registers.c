/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Registers that a thread needs for a phase: what its locals hold at most at a time, and addresses,
 * counters and intermediate values besides.  The number becomes a launch bound: a compiler for GPUs
 * otherwise takes as many registers as it can use, and the fewer warps are resident. */
#include "emit/emit_int.h"

/* Besides locals: addresses of an array, the counter and the end of a loop, and what a compiler
 * has for itself; of all this, percent more than an estimate gives. */
enum { OF_ARRAY = 2, OF_LOOP = 3, OF_OTHERS = 16, MARGIN = 120 };

typedef struct Life { /* of a local: nodes of the phase, by number */
    int begin, end;   /* begin 0: it is none of the phase */
    int size;
} Life;

typedef struct Lives {
    Emit *o;
    Life *of;             /* by Local.id */
    int node, nodes;      /* the number of the last node; of all */
    int *loop_end, *loop; /* ends and beginnings of the loops around, from the outermost */
    int depth, room, deepest;
    int regs;          /* of the vector loop around */
    const Buf **array; /* that the phase mentions */
    int narray, cap;
} Lives;

static int count_nodes(const Node *n, int *deepest, int depth)
{
    int all = 1;

    depth += n->kind == N_FOR;
    *deepest = depth > *deepest ? depth : *deepest;
    for (int i = 0; i < n->nbody; i++)
        all += count_nodes(n->body[i], deepest, depth);
    return all;
}

static int size_of(const Lives *s, const Local *l, bool lanes)
{
    return (l->type == T_f64 ? 2 : 1) * (lanes ? s->regs : 1);
}

static void see_array(Lives *s, const Buf *b)
{
    for (int i = 0; i < s->narray; i++)
        if (s->array[i] == b)
            return;
    s->array = arena_grow(s->o->p->arena, s->array, s->narray, &s->cap, sizeof *s->array);
    s->array[s->narray++] = b;
}

/* A local that a loop uses and that began before it stays up to the end of the loop. */
static void see_use(Expr *e, void *ctx)
{
    Lives *s = ctx;
    Life *l;
    int end;

    if (e->op == OP_cell)
        see_array(s, e->buf);
    if (e->op != OP_local || e->local->id >= s->o->nlocal)
        return;
    l = &s->of[e->local->id];
    end = s->node;
    for (int i = 0; i < s->depth && end == s->node; i++)
        if (s->loop[i] > l->begin)
            end = s->loop_end[i];
    l->end = end > l->end ? end : l->end;
}

static void see_expr(Lives *s, Expr *e)
{
    Memo met = { 0 };

    if (e != NULL)
        ir_visit(s->o->p, e, see_use, s, &met);
}

static void begin(Lives *s, const Local *l, bool lanes)
{
    if (l->id >= s->o->nlocal)
        return;
    s->of[l->id] = (Life){ s->node, s->node, size_of(s, l, lanes) };
}

static void see_nodes(Lives *s, Node *const *n, int count);

static void see_loop(Lives *s, const Node *n)
{
    int deepest = 0, regs = s->regs, first = s->node;

    see_expr(s, n->lo);
    see_expr(s, n->hi);
    s->loop[s->depth] = first;
    s->loop_end[s->depth++] = first + count_nodes(n, &deepest, 0) - 1;
    s->regs = n->lanes > 1 && n->regs > 1 ? n->regs : s->regs;
    see_nodes(s, n->body, n->nbody);
    s->regs = regs;
    s->depth--;
}

/* A sum over lanes has a register for each part while the loop runs. */
static void see_store(Lives *s, const Node *n)
{
    see_expr(s, n->value);
    see_expr(s, n->cond);
    for (int i = 0; i < n->nat; i++) {
        see_expr(s, n->at[i].out);
        see_expr(s, n->at[i].value);
    }
    see_expr(s, n->out);
    if (n->out->op == OP_local && n->out->local->id < s->o->nlocal &&
        s->of[n->out->local->id].size < size_of(s, n->out->local, true))
        s->of[n->out->local->id].size = size_of(s, n->out->local, true);
}

static void see_nodes(Lives *s, Node *const *n, int count)
{
    for (int i = 0; i < count; i++) {
        s->node++;
        switch (n[i]->kind) {
        case N_LET:
            see_expr(s, n[i]->value);
            begin(s, n[i]->local, n[i]->local->lanes > 1);
            break;
        case N_STORE: see_store(s, n[i]); break;
        case N_FOR: see_loop(s, n[i]); break;
        default: see_expr(s, n[i]->cond); see_nodes(s, n[i]->body, n[i]->nbody);
        }
    }
}

/* The most that lives hold at a time. */
static int most_at_a_time(const Lives *s)
{
    int *change = arena_array(s->o->p->arena, s->nodes + 2, sizeof *change), most = 0;

    for (int i = 0; i < s->o->nlocal; i++)
        if (s->of[i].begin > 0) {
            change[s->of[i].begin] += s->of[i].size;
            change[s->of[i].end + 1] -= s->of[i].size;
        }
    for (int i = 1, now = 0; i <= s->nodes; i++) {
        now += change[i];
        most = now > most ? now : most;
    }
    return most;
}

int emit_registers(Emit *o, const Node *phase)
{
    Lives s = { .o = o, .regs = 1 };
    Arena *a = o->p->arena;

    s.nodes = count_nodes(phase, &s.deepest, 0);
    s.of = arena_array(a, o->nlocal, sizeof *s.of);
    s.loop = arena_array(a, s.deepest + 1, sizeof *s.loop);
    s.loop_end = arena_array(a, s.deepest + 1, sizeof *s.loop_end);
    see_nodes(&s, (Node *const *)&phase, 1);
    return (most_at_a_time(&s) + s.narray * OF_ARRAY + s.deepest * OF_LOOP + OF_OTHERS) * MARGIN /
           100;
}
