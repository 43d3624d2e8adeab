/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * vectorize LOOP [LANES [by N [packed]]]: runs several iterations of a loop at once, in lanes.
 * Their stores lie side by side, or add to sums over lanes, each of which gets its own register. */
#include "sched/step.h"

#include <math.h>
#include <string.h>

enum { LIMIT_LANES = 64, LIMIT_REGISTERS = 64 };

typedef struct Lanes {
    StepCall *call;
    Prog *p;
    const Node *loop;
    Local *v; /* the loop's variable: one value a lane */
    int n;    /* lanes */
    Type type;
    Memo moved; /* locals that differ between lanes, to what stands for them */
    Memo moving; /* expressions to whether they differ between lanes */
    Memo checked; /* values that are known to have a form in lanes */
    NodeList before, after; /* the registers of sums, and what is done with them */
} Lanes;

static bool moves(void *lanes, Expr *e)
{
    Lanes *l = lanes;
    Expr *no = ir_int(l->p, 0), *yes = ir_int(l->p, 1), *known;

    if (e->nargs == 0)
        return e->op == OP_local && (e->local == l->v || e->local->lanes > 1);
    known = *ir_memo(l->p, &l->moving, e);
    if (known == NULL) {
        known = no;
        for (int i = 0; i < e->nargs && known == no; i++)
            known = moves(l, e->arg[i]) ? yes : no;
        *ir_memo(l->p, &l->moving, e) = known;
    }
    return known == yes;
}

static void check_value(Lanes *l, Expr *e)
{
    if (*ir_memo(l->p, &l->checked, e) != NULL)
        return;
    *ir_memo(l->p, &l->checked, e) = e;
    if (!moves(l, e)) {
        if (e->type == T_bool)
            step_refuse(l->call, "a condition has no lanes");
        return;
    }
    if ((Type)e->type != l->type)
        step_refuse(l->call, "a value of type %s stands beside one of type %s",
                    ir_type[e->type].name, ir_type[l->type].name);
    if (e->op == OP_local)
        return;
    if (e->op == OP_cell) {
        if (!loop_has_lanes(e->buf) || tree_stride(e->arg[0], moves, l) != 1)
            step_refuse(l->call, "the elements of %s that it reads do not lie side by side",
                        e->buf->name);
        return;
    }
    if (!loop_has_vector_form((Op)e->op, (Type)e->type))
        step_refuse(l->call, "%s of %s has no form in lanes", ir_op[e->op].text,
                    ir_type[e->type].name);
    for (int i = 0; i < e->nargs; i++)
        check_value(l, e->arg[i]);
}

static bool is_float_value(Type t)
{
    return t == T_f32 || t == T_f64;
}

/* The type of all that is stored. */
static void find_type(Lanes *l, const Node *n)
{
    if (n->kind == N_STORE) {
        Type t = (Type)n->out->type;

        if (!is_float_value(t) || (l->type != T_none && l->type != t))
            step_refuse(l->call, "its stores must be all f32 or all f64");
        l->type = t;
    }
    for (int i = 0; i < n->nbody; i++)
        find_type(l, n->body[i]);
}

static Expr *moved(Prog *p, Expr *e, void *ctx)
{
    Lanes *l = ctx;
    Expr *to = e->op == OP_local ? *ir_memo(p, &l->moved, e) : NULL;

    return to != NULL ? to : e;
}

static Expr *in_lanes(Lanes *l, Expr *e)
{
    Memo memo = { 0 };

    return ir_rewrite(l->p, e, moved, l, &memo);
}

/* An end or a condition of a block, which has to be the same in all lanes. */
static Expr *same_in_lanes(Lanes *l, Expr *e, const char *what, const Node *n)
{
    e = e == NULL ? NULL : in_lanes(l, e);
    if (e != NULL && moves(l, e))
        step_refuse(l->call, "%s%s%s differs between lanes", what, n != NULL ? " " : "",
                    n != NULL ? loop_path(n) : "");
    return e;
}

/* A value in each lane is a local of lanes; an index is written out where it is used. */
static void put_let(Lanes *l, const Node *n, NodeList *out)
{
    Node c = *n;
    bool reg = loop_assigns(l->loop, n->local);

    c.value = in_lanes(l, n->value);
    if (!reg && !moves(l, c.value)) {
        tree_append(l->p, out, loop_node(l->p, &c));
        return;
    }
    if (!is_float_value(n->local->type)) {
        if (reg)
            step_refuse(l->call, "%s is an integer register, and lanes hold floating-point values",
                        n->local->name);
        *ir_memo(l->p, &l->moved, loop_use(l->p, n->local)) = c.value;
        return;
    }
    if (n->local->type != l->type)
        step_refuse(l->call, "a value of type %s stands beside one of type %s",
                    ir_type[n->local->type].name, ir_type[l->type].name);
    check_value(l, c.value);
    c.local = loop_local(l->p, n->local->name, n->local->type, l->n);
    *ir_memo(l->p, &l->moved, loop_use(l->p, n->local)) = loop_use(l->p, c.local);
    tree_append(l->p, out, loop_node(l->p, &c));
}

static Expr *neutral(Lanes *l, AssignOp op)
{
    double inf = (double)INFINITY;

    return ir_real(l->p, op == A_ADD ? 0.0 : op == A_MAX ? -inf : inf);
}

/* All lanes add to one element: a register takes the sum, and the element the register. */
static void put_sum(Lanes *l, const Node *n, NodeList *out, bool direct)
{
    Node c = *n, add = *n;
    Node let = { .kind = N_LET, .label = n->label, .value = neutral(l, n->op) };

    if (n->op == A_SET)
        step_refuse(l->call, "all iterations write one element of %s", n->out->buf->name);
    if (!direct || moves(l, n->out->arg[0]) || n->out->buf->type != l->type ||
        !moves(l, n->value))
        step_refuse(l->call, "the elements of %s that it writes do not lie side by side",
                    n->out->buf->name);
    let.local = loop_local(l->p, "sum", l->type, 1);
    tree_append(l->p, &l->before, loop_node(l->p, &let));
    c.out = loop_use(l->p, let.local);
    tree_append(l->p, out, loop_node(l->p, &c));
    add.value = c.out;
    tree_append(l->p, &l->after, loop_node(l->p, &add));
}

static void put_store(Lanes *l, const Node *n, NodeList *out, bool direct)
{
    Node c = *n;

    c.out = in_lanes(l, n->out);
    c.value = in_lanes(l, n->value);
    if (n->nat > 0)
        step_refuse(l->call, "a store has companions");
    check_value(l, c.value);
    if (c.out->op == OP_local) {
        if (c.out->local->lanes == 1 && (!direct || c.op == A_SET || !moves(l, c.value)))
            step_refuse(l->call, "all iterations store to the register %s", c.out->local->name);
        tree_append(l->p, out, loop_node(l->p, &c));
        return;
    }
    if (!loop_has_lanes(c.out->buf))
        step_refuse(l->call, "elements of %s are %s, which vector loops do not store",
                    c.out->buf->name, ir_type[c.out->buf->type].name);
    if (tree_stride(c.out->arg[0], moves, l) == 1)
        tree_append(l->p, out, loop_node(l->p, &c));
    else
        put_sum(l, &c, out, direct);
}

static void put_nodes(Lanes *l, const Node *of, NodeList *out);

static void put_block(Lanes *l, const Node *n, NodeList *out)
{
    Node c = *n;
    NodeList body = { 0 };

    c.lo = same_in_lanes(l, n->lo, "the range of the loop", n);
    c.hi = same_in_lanes(l, n->hi, "the range of the loop", n);
    if (n->over != NULL)
        c.over = loop_over_at(l->p, n->over,
                              n->over->row != NULL ? in_lanes(l, n->over->row) : NULL,
                              n->over->tile != NULL ? in_lanes(l, n->over->tile) : NULL);
    c.cond = same_in_lanes(l, n->cond, "a branch or a check", NULL);
    if (n->kind == N_AHEAD)
        c.out = in_lanes(l, n->out);
    if (n->kind == N_FOR && n->lanes > 1)
        step_refuse(l->call, "%s.%s inside it runs in lanes", n->label, loop_path(n));
    put_nodes(l, n, &body);
    tree_append(l->p, out, tree_with_body(l->p, &c, &body));
}

static void put_nodes(Lanes *l, const Node *of, NodeList *out)
{
    for (int i = 0; i < of->nbody; i++) {
        const Node *n = of->body[i];

        if (n->kind == N_LET)
            put_let(l, n, out);
        else if (n->kind == N_STORE)
            put_store(l, n, out, of == l->loop);
        else if (n->kind == N_BUILD || n->kind == N_INSERT)
            step_refuse(l->call, "insertions into an axis cannot run in lanes");
        else
            put_block(l, n, out);
    }
}

typedef struct How {
    int lanes, regs; /* 0: not said */
    bool packed;
} How;

typedef struct Wide {
    const Node *loop;
    bool any;
} Wide;

static void see_wide(Expr *e, void *ctx)
{
    Wide *w = ctx;

    w->any = w->any || (e->op == OP_cell && loop_is_wide(w->loop, e, NULL));
}

/* A lane that has neighbours is of use where one load takes them. */
static void check_packed(StepCall *c, const Node *n)
{
    Wide w = { n, false };
    Memo met = { 0 };

    if (!c->target->levels)
        step_refuse(c, "packed loops are for lanes that are threads; leave packed out");
    if (!loop_is_whole(n, NULL))
        step_refuse(c, "its iterations are not known to be a multiple of %d", n->lanes * n->regs);
    loop_visit(c->p, n, see_wide, &w, &met);
    if (!w.any)
        step_refuse(c, "no elements in it are known to begin at a multiple of %d", n->regs);
}

static int registers(const Lanes *l, const How *how)
{
    int64_t trips = step_trips(l->loop);
    int n = 1;

    if (how->regs > 0)
        return how->regs;
    while (n < l->p->policy.block_registers && trips >= 2 * (int64_t)n * l->n)
        n *= 2;
    return n;
}

static void vectorize(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const How *how = ctx;
    Lanes l = { .call = c, .p = c->p, .loop = at->node, .v = at->node->local };
    Node n = *at->node;
    NodeList body = { 0 };
    const char *why;

    if (n.lanes > 1)
        step_refuse(c, "it runs in lanes already");
    for (int i = 0; i < at->depth; i++)
        if (at->around[i]->kind == N_FOR && at->around[i]->lanes > 1)
            step_refuse(c, "a loop around it runs in lanes");
    find_type(&l, &n);
    if (l.type == T_none)
        step_refuse(c, "it stores nothing");
    l.n = how->lanes > 0 ? how->lanes : CACHE_LINE / ir_type[l.type].bytes;
    why = dep_race(c->p, c->phase[at->phase], at, true);
    if (why != NULL)
        step_refuse(c, "%s", why);
    put_nodes(&l, at->node, &body);
    if (n.how == FOR_PARALLEL && l.before.n > 0)
        step_refuse(c, "all iterations of a parallel phase add to one element");
    n.lanes = l.n;
    n.regs = registers(&l, how);
    n.how = n.how == FOR_PARALLEL ? FOR_PARALLEL : FOR_VECTOR;
    n.packed = how->packed;
    n.body = body.node;
    n.nbody = body.n;
    if (n.packed)
        check_packed(c, &n);
    for (int i = 0; i < l.before.n; i++)
        tree_append(c->p, out, l.before.node[i]);
    tree_append(c->p, out, tree_with_body(c->p, &n, &body));
    for (int i = 0; i < l.after.n; i++)
        tree_append(c->p, out, l.after.node[i]);
}

void step_vectorize(StepCall *c)
{
    How how = { 0, 0, false };
    Spot first;

    step_count(c, 1, 5);
    if (c->line->nword > 1)
        how.lanes = (int)step_int(c, 1, 2, LIMIT_LANES);
    if ((c->line->nword > 2 && (c->line->nword < 4 || strcmp(c->line->word[2], "by") != 0)) ||
        (c->line->nword == 5 && strcmp(c->line->word[4], "packed") != 0))
        step_refuse(c, "write it as: %s %s", c->line->step->name, c->line->step->args);
    if (c->line->nword >= 4)
        how.regs = (int)step_int(c, 3, 1, LIMIT_REGISTERS);
    how.packed = c->line->nword == 5;
    first = step_find(c, c->line->word[0]);
    step_edit(c, c->line->word[0], vectorize, &how);
    step_edit_tails(c, first.node, vectorize, &how);
}
