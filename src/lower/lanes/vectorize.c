/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Vectorises innermost loops: a loop of stores whose elements lie side by side, or are the same
 * in all lanes, runs as many iterations at once as a register has lanes. */
#include "lower/lanes/lanes_int.h"
#include "lower/storage/storage_int.h"

enum { LIMIT_TREE = 10000 };

typedef struct Lanes {
    Prog *p;
    Local *v;  /* the loop's variable: one value a lane */
    Memo uses; /* whether an expression depends on it */
    Type type; /* of all elements */
} Lanes;

static bool is_same_in_lanes(Lanes *l, Expr *e)
{
    return !tree_uses(l->p, e, l->v, &l->uses);
}

static bool moves(void *lanes, Expr *e)
{
    return !is_same_in_lanes(lanes, e);
}

static bool can_be_vector(Lanes *l, Expr *e)
{
    if (is_same_in_lanes(l, e))
        return e->type != T_bool;
    if (e->type != l->type || e->tree > LIMIT_TREE)
        return false;
    if (e->op == OP_cell)
        return loop_has_lanes(e->buf) && tree_stride(e->arg[0], moves, l) == 1;
    if (!loop_has_vector_form((Op)e->op, (Type)e->type))
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!can_be_vector(l, e->arg[i]))
            return false;
    return true;
}

/* Whether all stores of the loop move by `step` elements an iteration. */
static bool can_be_vector_loop(Lanes *l, const Node *n, int step)
{
    l->type = n->nbody > 0 && n->body[0]->kind == N_STORE ? (Type)n->body[0]->out->type : T_none;
    if (l->type != T_f32 && l->type != T_f64)
        return false;
    for (int i = 0; i < n->nbody; i++) {
        const Node *s = n->body[i];

        if (s->kind != N_STORE || s->nat > 0 || s->out->op != OP_cell ||
            (Type)s->out->type != l->type || !loop_has_lanes(s->out->buf) ||
            tree_stride(s->out->arg[0], moves, l) != step || !can_be_vector(l, s->value))
            return false;
        if (step == 0 && (s->op == A_SET || s->out->buf->type != l->type ||
                          is_same_in_lanes(l, s->value)))
            return false;
    }
    return true;
}

/* Whether no element is that of another store in a later iteration: lanes do store after store. */
static bool are_apart(Prog *p, const Node *loop)
{
    Expr *trips = tree_sub(p, loop->hi, loop->lo);

    for (int i = 0; i < loop->nbody; i++)
        for (int k = 0; k < i; k++) {
            Expr *a = loop->body[i]->out, *b = loop->body[k]->out;
            int64_t apart = a->buf == b->buf ? tree_apart(a->arg[0], b->arg[0]) : 0;

            if (apart != 0 && (trips->op != OP_int || apart < trips->i))
                return false;
        }
    return true;
}

/* A product as (what is the same in all lanes) * (what is not). */
static Expr *scalars_first(Prog *p, Expr *e, void *ctx)
{
    Lanes *l = ctx;
    Expr *a, *b, *x, *y;

    if (e->op != OP_mul || !ir_is_float(e))
        return e;
    a = e->arg[0];
    b = e->arg[1];
    if (is_same_in_lanes(l, a) || is_same_in_lanes(l, b)) {
        x = is_same_in_lanes(l, a) ? a : b; /* the scalar */
        y = x == a ? b : a;
        if (y->op == OP_mul && is_same_in_lanes(l, y->arg[0]) && !is_same_in_lanes(l, y->arg[1]) &&
            ir_promote((Type)x->type, (Type)y->arg[0]->type) <= e->type)
            return ir_op2(p, OP_mul, ir_op2(p, OP_mul, x, y->arg[0]), y->arg[1]);
        return ir_op2(p, OP_mul, x, y);
    }
    if (a->op == OP_mul && is_same_in_lanes(l, a->arg[0]))
        return ir_op2(p, OP_mul, a->arg[0], ir_op2(p, OP_mul, a->arg[1], b));
    return e;
}

static Node *with_lanes(Prog *p, const Node *n, const VectorUnit *unit, int step)
{
    Lanes l = { .p = p, .v = n->local };
    Memo memo = { 0 };
    Node c;

    if (n->kind != N_FOR || n->lanes > 1 || !can_be_vector_loop(&l, n, step) ||
        lanes_of(unit, l.type) <= 1 || (step == 1 && !are_apart(p, n)))
        return NULL;
    c = *loop_rewrite(p, loop_node(p, n), scalars_first, &l, &memo);
    c.how = n->how == FOR_PARALLEL ? FOR_PARALLEL : FOR_VECTOR;
    c.lanes = lanes_of(unit, l.type);
    return loop_node(p, &c);
}

static bool can_step(Lanes *l, Expr *e)
{
    LoopIndex x;

    if (is_same_in_lanes(l, e))
        return e->type != T_bool;
    if (e->type != l->type)
        return false;
    if (e->op == OP_cell)
        return loop_has_lanes(e->buf) && loop_index(e->arg[0], l->v, &x) &&
               (x.stride == 1 || (x.stride > 1 && x.stride <= LOOP_WINDOW &&
                                  e->buf->type == l->type));
    if (!loop_has_vector_form((Op)e->op, (Type)e->type) || e->tree > LIMIT_TREE)
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!can_step(l, e->arg[i]))
            return false;
    return true;
}

bool lower_can_step(Prog *p, Expr *e, Local *v, Type type)
{
    Lanes l = { .p = p, .v = v, .type = type };

    return can_step(&l, e);
}

Node *lower_in_lanes(Prog *p, const Node *n, const VectorUnit *unit)
{
    return with_lanes(p, n, unit, 1);
}

Node *lower_over_lanes(Prog *p, const Node *n, const VectorUnit *unit)
{
    return with_lanes(p, n, unit, 0);
}

/* Of a loop that has lanes already: whether they are as many as a register holds. */
static bool has_right_lanes(const Node *n, int lanes, const VectorUnit *unit)
{
    bool right = n->kind == N_STORE && lanes == lanes_of(unit, (Type)n->out->type);

    for (int i = 0; i < n->nbody && !right; i++)
        right = has_right_lanes(n->body[i], lanes, unit);
    return right;
}

static Node *vectors(Prog *p, Node *n, const VectorUnit *unit)
{
    Node c = *n, *v;
    NodeList body = { 0 };

    if (n->kind == N_FOR && n->lanes > 1) {
        if (!has_right_lanes(n, n->lanes, unit)) {
            c.lanes = c.regs = 1;
            c.how = n->how == FOR_VECTOR ? FOR_SERIAL : n->how;
        }
        return loop_node(p, &c);
    }
    v = lower_in_lanes(p, n, unit);
    if (v == NULL)
        v = lower_transposed_copy(p, n, unit);
    if (v != NULL)
        return v;
    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, vectors(p, n->body[i], unit));
    return tree_with_body(p, n, &body);
}

void lower_vectorize(Kernel *k, const VectorUnit *unit)
{
    for (int i = 0; i < k->n; i++)
        k->phase[i] = vectors(k->p, k->phase[i], unit);
    lower_done(k, k->p->stage);
}
