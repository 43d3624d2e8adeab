/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * compute_inline LABEL: computes a temporary that a statement sets wherever it is read, and does
 * not store it. */
#include "sched/step.h"

typedef struct Inline {
    StepCall *call;
    const Made *made;
    const Node *user; /* the phase that reads it */
    int reads;
} Inline;

static Expr *expand(Prog *p, const NodeList *l, Expr *e)
{
    Node *x = loop_node(p, &(Node){ .kind = N_LET, .value = e });

    for (int i = l->n - 2; i >= 0; i--)
        x = loop_replace(p, x, l->node[i]->local, l->node[i]->value);
    return x->value;
}

/* The value as the element would have kept it. */
static Expr *kept(StepCall *c, const Buf *b, Expr *e)
{
    if (b->type == (Type)e->type)
        return e;
    if (b->type != T_f32 && b->type != T_f64)
        step_refuse(c, "elements of %s are %s, which rounds what is stored", b->name,
                    ir_type[b->type].name);
    return ir_op1(c->p, b->type == T_f32 ? OP_f32 : OP_f64, e);
}

static Expr *computed(Prog *p, Expr *e, void *ctx)
{
    Inline *s = ctx;
    NodeList body = { 0 };
    const Node *store;

    if (e->op != OP_cell || e->buf != s->made->buf)
        return e;
    s->reads++;
    step_make(s->call, s->made, s->user, e->arg, &body);
    store = body.n > 0 ? body.node[body.n - 1] : NULL;
    for (int i = 0; i + 1 < body.n; i++)
        if (body.node[i]->kind != N_LET)
            store = NULL;
    if (store == NULL || store->kind != N_STORE || store->op != A_SET)
        step_refuse(s->call, "%s is more than one `=`; compute_at moves it", e->buf->name);
    return kept(s->call, e->buf, expand(p, &body, store->value));
}

static void check_hints(StepCall *c, const Node *n, const Buf *b)
{
    if (n->kind == N_AHEAD && n->out->buf == b)
        step_refuse(c, "%s is prefetched", b->name);
    for (int i = 0; i < n->nbody; i++)
        check_hints(c, n->body[i], b);
}

void step_inline(StepCall *c)
{
    Made made;
    Inline s = { .call = c, .made = &made };
    Node **phase;

    step_count(c, 1, 1);
    made = step_made(c, c->line->word[0]);
    phase = arena_copy(c->p->arena, c->phase, (size_t)c->n * sizeof *phase);
    for (int i = made.last + 1; i < c->n; i++) {
        Memo memo = { 0 };
        int before = s.reads;
        Node *n;

        s.user = c->phase[i];
        check_hints(c, c->phase[i], made.buf);
        n = loop_rewrite(c->p, c->phase[i], computed, &s, &memo);
        if (s.reads == before)
            continue;
        step_check_inputs(c, &made, i);
        phase[i] = n;
    }
    if (s.reads == 0)
        step_refuse(c, "nothing reads %s", made.buf->name);
    for (int i = 0; i < made.last; i++) {
        bool many;

        if (!loop_writes(c->phase[i], made.buf) &&
            step_only_cell(c->p, c->phase[i], made.buf, &many) != NULL)
            step_refuse(c, "%s is read before it is complete", made.buf->name);
    }
    c->phase = phase;
    step_remove_made(c, made.buf);
}
