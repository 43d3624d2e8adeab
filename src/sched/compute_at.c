/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * compute_at LABEL at LOOP: computes the element of a temporary that an iteration of the loop reads
 * in that iteration, in a register.  The phases that computed the temporary are removed, unless
 * others read it. */
#include "sched/step.h"

#include <string.h>

typedef struct Move {
    StepCall *call;
    const Made *made;
    const Node *loop;
    Expr *cell; /* that it reads */
    Local *reg;
    int first;    /* node of its body that does */
    int moved;    /* loops that have been done */
} Move;

static Expr *to_register(Prog *p, Expr *e, void *ctx)
{
    const Move *m = ctx;

    return e == m->cell ? loop_use(p, m->reg) : e;
}

static void find_use(Move *m)
{
    StepCall *c = m->call;
    bool many;

    m->cell = step_only_cell(c->p, m->loop, m->made->buf, &many);
    if (many)
        step_refuse(c, "%s reads several elements of %s", c->line->word[2], m->made->buf->name);
    for (m->first = 0; m->cell != NULL && m->first < m->loop->nbody; m->first++)
        if (step_only_cell(c->p, m->loop->body[m->first], m->made->buf, &many) != NULL)
            return;
}

static void check_use(Move *m, const Spot *at)
{
    StepCall *c = m->call;
    const Node *phase = c->phase[at->phase], *in;

    if (at->phase <= m->made->last)
        step_refuse(c, "%s is not complete there", m->made->buf->name);
    if (!step_is_steady(phase, m->cell))
        step_refuse(c, "the index of %s depends on values that the phase stores",
                    m->made->buf->name);
    in = step_bound_below(c->p, m->cell, m->loop->body + m->first, m->loop->nbody - m->first);
    if (in != NULL)
        step_refuse(c, "the index of %s depends on %s, which is defined only inside",
                    m->made->buf->name,
                    in->local->name != NULL ? in->local->name : "a let");
    if (!step_is_inside(c->p, phase, m->cell))
        step_refuse(c, "an element of %s may not exist where nothing inside reads it",
                    m->made->buf->name);
    step_check_inputs(c, m->made, at->phase);
}

/* The nodes that make the element: the first that mentions it gives the register its value. */
static void put_maker(Move *m, const Node *phase, NodeList *out)
{
    StepCall *c = m->call;
    NodeList make = { 0 };
    Memo memo = { 0 };
    Node let = { .kind = N_LET };
    int i = 0;

    step_make(c, m->made, phase, m->cell->arg, &make);
    for (; i < make.n && !step_mentions(c, make.node[i], m->made->buf); i++)
        tree_append(c->p, out, make.node[i]);
    if (i == make.n || make.node[i]->kind != N_STORE || make.node[i]->op != A_SET ||
        make.node[i]->out != m->cell)
        step_refuse(c, "%s has no first value that is set before all else", m->made->buf->name);
    let.label = make.node[i]->label;
    let.local = m->reg;
    let.value = make.node[i]->value;
    tree_append(c->p, out, loop_node(c->p, &let));
    for (i++; i < make.n; i++)
        tree_append(c->p, out, loop_rewrite(c->p, make.node[i], to_register, m, &memo));
}

static void move(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Move *m = ctx;
    NodeList body = { 0 };
    Memo memo = { 0 };

    m->loop = at->node;
    find_use(m);
    if (m->cell == NULL) { /* a copy that does not need it */
        tree_append(c->p, out, at->node);
        return;
    }
    check_use(m, at);
    m->reg = loop_local(c->p, NULL, m->made->buf->type, 1);
    for (int i = 0; i < at->node->nbody; i++) {
        if (i == m->first)
            put_maker(m, c->phase[at->phase], &body);
        tree_append(c->p, &body, i < m->first ? at->node->body[i]
                                              : loop_rewrite(c->p, at->node->body[i], to_register,
                                                             m, &memo));
    }
    m->moved++;
    tree_append(c->p, out, tree_with_body(c->p, at->node, &body));
}

static bool is_read(StepCall *c, const Buf *b)
{
    bool many, read = false;

    for (int i = 0; i < c->n; i++)
        read = read || (!loop_writes(c->phase[i], b) &&
                        step_only_cell(c->p, c->phase[i], b, &many) != NULL);
    return read;
}

void step_compute_at(StepCall *c)
{
    Made made;
    Move m = { .call = c, .made = &made };

    step_count(c, 3, 3);
    if (strcmp(c->line->word[1], "at") != 0)
        step_refuse(c, "`at` and a loop come after the label, not %s", c->line->word[1]);
    made = step_made(c, c->line->word[0]);
    if (made.buf->type != T_f32 && made.buf->type != T_f64)
        step_refuse(c, "elements of %s are %s, and registers hold f32 or f64", made.buf->name,
                    ir_type[made.buf->type].name);
    step_edit(c, c->line->word[2], move, &m);
    if (m.moved == 0)
        step_refuse(c, "%s does not read %s", c->line->word[2], made.buf->name);
    if (!is_read(c, made.buf))
        step_remove_made(c, made.buf);
}
