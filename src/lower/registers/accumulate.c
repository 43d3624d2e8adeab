/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Accumulates in registers.  An element that a loop adds to again and again is kept in a
 * register while the loop runs.
 *
 *     for j in J.start[i]..J.start[i + 1]      vector for k in 0..f step 8 by 4
 *         for k in 0..f                            let s = C[i * f + k]
 *             C[i * f + k] += ...                  for j in J.start[i]..J.start[i + 1]
 *                                                      s += ...
 *                                                  C[i * f + k] = s
 *
 * Where the elements are those of a vector loop inside, the vector loop moves outside and takes
 * as many registers as there are.  A loop over rows that share an operand moves outside too, for
 * registers/block_rows.c.  Each element still adds its terms in the same order, with one exception:
 * where each of many iterations adds a long sum, that sum has registers of its own, which are added
 * to the others at the end of the iteration.  Rounding errors grow with the length of a chain. */
#include "lower/lanes/lanes_int.h"
#include "lower/registers/registers_int.h"

typedef struct Tile {
    Prog *p;
    const Node *phase;
    Binders binders; /* of the phase */
    LowerTile how;
    Invariants kept; /* see lower_is_invariant */
} Tile;

/* Sums through registers: let r = out, for each; then what adds to them; then out = r.  With a
 * vector loop around all of it, and loops over rows inside that, or not. */
typedef struct Unit {
    const Node *vector; /* its head; or NULL */
    NodeList space;     /* heads of the loops over rows, innermost first */
    NodeList let, core, store;
    int loops; /* that the registers outlive */
} Unit;

static bool is_sum(Tile *t, const Node *n)
{
    return n->kind == N_STORE && n->nat == 0 && n->op != A_SET && n->out->op == OP_cell &&
           (n->out->buf->type == T_f32 || n->out->buf->type == T_f64) &&
           lower_is_invariant(t->p, t->phase, n->value, &t->kept);
}

static bool are_sums(Tile *t, const Node *n)
{
    for (int i = 0; i < n->nbody; i++)
        if (!is_sum(t, n->body[i]))
            return false;
    return n->nbody > 0;
}

/* Two elements of one array may be the same one: only what surely differs has registers apart. */
static bool are_apart(Node *const *store, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (store[i]->out != store[k]->out && store[i]->out->buf == store[k]->out->buf &&
                !tree_differ(store[i]->out->arg[0], store[k]->out->arg[0]))
                return false;
    return true;
}

static Local *register_of(const Unit *u, Expr *out)
{
    for (int i = 0; i < u->let.n; i++)
        if (u->let.node[i]->value == out)
            return u->let.node[i]->local;
    return NULL;
}

/* The store, to a register: one for all stores to one element. */
static Node *through_register(Tile *t, Unit *u, const Node *store)
{
    Prog *p = t->p;
    Local *l = register_of(u, store->out);
    Node n = *store, let = { .kind = N_LET, .label = n.label, .value = n.out },
         set = { .kind = N_STORE, .label = n.label, .op = A_SET, .out = n.out };

    if (l == NULL) {
        l = loop_local(p, NULL, (Type)store->out->type, u->vector != NULL ? u->vector->lanes : 1);
        let.local = l;
        set.value = loop_use(p, l);
        tree_append(p, &u->let, loop_node(p, &let));
        tree_append(p, &u->store, loop_node(p, &set));
    }
    n.out = loop_use(p, l);
    return loop_node(p, &n);
}

/* An innermost loop of sums: in lanes, over lanes, or one by one. */
static bool innermost(Tile *t, const Node *n, Unit *u)
{
    Node *in = lower_in_lanes(t->p, n, t->how.unit), *over = NULL;
    NodeList sum = { 0 };
    Memo memo = { 0 };

    *u = (Unit){ .vector = in };
    if (in == NULL) {
        over = lower_over_lanes(t->p, n, t->how.unit);
        n = over != NULL ? over : n;
        for (int i = 0; i < n->nbody; i++)
            if (tree_uses(t->p, n->body[i]->out, n->local, &memo) ||
                !lower_is_bound_inside(t->p, &t->binders, n->body[i]->out))
                return false;
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(t->p, &sum, through_register(t, u, (in != NULL ? in : n)->body[i]));
    if (in != NULL) {
        u->core = sum;
        return true;
    }
    tree_append(t->p, &u->core, tree_with_body(t->p, n, &sum));
    if (over != NULL)
        u->core.node[0]->regs = t->p->policy.sum_registers;
    u->loops = 1;
    return true;
}

/* Whether e is as it is for every iteration of the block: no loop or let of it is in e. */
static bool is_outside(Tile *t, const Node *block, Expr *e)
{
    if (block->kind == N_FOR && tree_mentions(t->p, e, block->local))
        return false;
    for (int i = 0; i < block->nbody; i++)
        if (block->body[i]->kind == N_LET && tree_mentions(t->p, e, block->body[i]->local))
            return false;
    return true;
}

static bool has_range_outside(Tile *t, const Node *block, const Node *loop)
{
    return is_outside(t, block, loop->lo) && is_outside(t, block, loop->hi) &&
           lower_is_bound_sure(t->p, &t->binders, loop->lo) &&
           lower_is_bound_sure(t->p, &t->binders, loop->hi);
}

static bool can_leave(Tile *t, const Node *block, const Unit *u)
{
    for (int i = 0; i < u->let.n; i++)
        if (!is_outside(t, block, u->let.node[i]->value) ||
            !lower_is_bound_inside(t->p, &t->binders, u->let.node[i]->value))
            return false;
    for (int i = 0; i < u->space.n; i++)
        if (!has_range_outside(t, block, u->space.node[i]))
            return false;
    return u->vector == NULL || has_range_outside(t, block, u->vector);
}

/* A branch decided whether there is a store, and now there is one in any case: of elements that no
 * other iteration of the phase has. */
static bool are_owned(Tile *t, const Unit *u)
{
    if (t->phase->kind != N_FOR || t->phase->how != FOR_PARALLEL)
        return true;
    for (int i = 0; i < u->let.n; i++)
        if (!tree_is_stepped(t->p, u->let.node[i]->value->arg[0], t->phase->local))
            return false;
    return true;
}

typedef struct Shared {
    Tile *t;
    Local *row, *lane;
    bool found;
} Shared;

static void see_shared(Expr *e, void *ctx)
{
    Shared *s = ctx;

    if (e->op == OP_cell && ir_is_float(e) && tree_mentions(s->t->p, e, s->lane) &&
        !tree_mentions(s->t->p, e, s->row))
        s->found = true;
}

/* Whether there is an operand in lanes that is the same for all rows. */
static bool share_lanes(Tile *t, const Node *rows, const Unit *u)
{
    Shared s = { t, rows->local, u->vector->local, false };
    Memo met = { 0 };

    for (int i = 0; i < u->core.n; i++)
        loop_visit(t->p, u->core.node[i], see_shared, &s, &met);
    return s.found;
}

/* Whether the loop moves all sums, each to elements of its own, and little else: then it may be
 * around everything. */
static bool is_over_rows(Tile *t, const Node *n, const Unit *u)
{
    Local *lane = u->vector != NULL ? u->vector->local : NULL;

    if (n->kind != N_FOR || lane == NULL)
        return false;
    for (int i = 0; i < u->let.n; i++) {
        Expr *out = u->let.node[i]->value;
        int row = lower_dim_of(t->p, t->phase, out, n->local);

        if (row < 0 || row == lower_dim_of(t->p, t->phase, out, lane))
            return false;
        for (int k = 0; k < i; k++)
            if (u->let.node[k]->value->buf == out->buf)
                return false;
    }
    return share_lanes(t, n, u);
}

/* The body of a loop over rows is the unit's: nothing of it decides how far other loops go. */
static bool take_rows(Tile *t, const Node *n, const NodeList *body, Unit *u)
{
    Node head = *n, lets = *n;

    lets.kind = N_IF; /* a block without a local */
    for (int i = 0; i < u->let.n; i++)
        if (!is_outside(t, &lets, u->let.node[i]->value))
            return false;
    for (int i = 0; i < u->space.n; i++)
        if (!has_range_outside(t, n, u->space.node[i]))
            return false;
    if (!has_range_outside(t, n, u->vector) ||
        !lower_can_jam(t->p, body->node, body->n, n->local))
        return false;
    head.nbody = 0;
    tree_append(t->p, &u->space, loop_node(t->p, &head));
    u->core = *body;
    return true;
}

static bool unit_of(Tile *t, const Node *n, Unit *u);

static bool is_closed(const Node *n)
{
    return n->kind == N_FOR && n->lo->op == OP_int && n->hi->op == OP_int;
}

/* How many terms a run of the node adds to a register; 0: only a run tells, or it does not add. */
static int64_t terms_of(const Node *n)
{
    int64_t most = n->kind == N_STORE && n->op == A_ADD && n->out->op == OP_local, k;

    if (n->kind == N_STORE && !most)
        return 0;
    for (int i = 0; i < n->nbody; i++) {
        k = terms_of(n->body[i]);
        if (k == 0 && n->body[i]->kind != N_LET && n->body[i]->kind != N_CHECK)
            return 0;
        most = k > most ? k : most;
    }
    if (n->kind != N_FOR)
        return most;
    k = is_closed(n) ? n->hi->i - n->lo->i : 0;
    return k > 0 && k < INT32_MAX && most < INT32_MAX ? most * k : 0;
}

/* Whether only a run tells how often the loop runs, and each time the unit adds so many terms. */
static bool adds_long_sums(const Node *loop, const Unit *u, int terms)
{
    bool any = false;

    if (loop->kind != N_FOR || loop->how != FOR_SERIAL || is_closed(loop))
        return false;
    for (int i = 0; i < u->core.n; i++) {
        int64_t k = terms_of(u->core.node[i]);

        if (k == 0)
            return false;
        any = any || k >= terms;
    }
    return any;
}

/* Registers of an iteration, which its end adds to those of the unit. */
static void append_own_sums(Tile *t, const Unit *u, NodeList *to)
{
    Prog *p = t->p;
    NodeList end = { 0 }, core = u->core;

    for (int i = 0; i < u->let.n; i++) {
        const Node *of = u->let.node[i];
        Local *l = loop_local(p, NULL, of->local->type, of->local->lanes);
        Node let = { .kind = N_LET, .label = of->label, .local = l, .value = ir_real(p, -0.0) },
             add = { .kind = N_STORE, .label = of->label, .op = A_ADD };

        tree_append(p, to, loop_node(p, &let));
        for (int k = 0; k < core.n; k++)
            core.node[k] = loop_replace(p, core.node[k], of->local, loop_use(p, l));
        add.out = loop_use(p, of->local);
        add.value = loop_use(p, l);
        tree_append(p, &end, loop_node(p, &add));
    }
    for (int i = 0; i < core.n; i++)
        tree_append(p, to, core.node[i]);
    for (int i = 0; i < end.n; i++)
        tree_append(p, to, end.node[i]);
}

/* A loop or a branch whose last node is a unit, after nothing but lets and checks. */
static bool around(Tile *t, const Node *n, Unit *u)
{
    NodeList body = { 0 };
    bool rows;

    for (int i = 0; i + 1 < n->nbody; i++) {
        if (n->body[i]->kind != N_LET && n->body[i]->kind != N_CHECK)
            return false;
        tree_append(t->p, &body, n->body[i]);
    }
    if (n->nbody == 0 || !unit_of(t, n->body[n->nbody - 1], u))
        return false;
    rows = is_over_rows(t, n, u);
    if (!rows && !can_leave(t, n, u))
        return false;
    if (!rows && !t->p->policy.compensate && adds_long_sums(n, u, t->p->policy.long_for_registers))
        append_own_sums(t, u, &body);
    else
        for (int i = 0; i < u->core.n; i++)
            tree_append(t->p, &body, u->core.node[i]);
    if (rows)
        return take_rows(t, n, &body, u);
    u->core = (NodeList){ 0 };
    tree_append(t->p, &u->core, tree_with_body(t->p, n, &body));
    u->loops += n->kind == N_FOR;
    return true;
}

static bool unit_of(Tile *t, const Node *n, Unit *u)
{
    if (n->kind == N_IF)
        return around(t, n, u) && are_owned(t, u);
    if (n->kind != N_FOR || n->how != FOR_SERIAL)
        return false;
    if (!are_sums(t, n))
        return around(t, n, u);
    return n->nbody <= t->how.registers && are_apart(n->body, n->nbody) && innermost(t, n, u);
}

typedef struct Nest { /* the loops around a unit, the innermost first */
    const Node *loop;
    const struct Nest *outer;
} Nest;

/* Whether iterations of a loop around the unit add long sums to the same elements. */
static bool meets_again(Tile *t, const Unit *u, const Nest *nest)
{
    for (; nest != NULL; nest = nest->outer)
        if (adds_long_sums(nest->loop, u, t->p->policy.long_for_array))
            for (int i = 0; i < u->let.n; i++)
                if (!tree_mentions(t->p, u->let.node[i]->value, nest->loop->local))
                    return true;
    return false;
}

/* Registers begin at 0, and elements have them added at the end. */
static void begin_at_zero(Tile *t, Unit *u)
{
    for (int i = 0; i < u->let.n; i++) {
        Node let = *u->let.node[i], add = *u->store.node[i];

        let.value = ir_real(t->p, -0.0);
        add.op = A_ADD;
        u->let.node[i] = loop_node(t->p, &let);
        u->store.node[i] = loop_node(t->p, &add);
    }
}

static void put_unit(Tile *t, const Unit *u, NodeList *out)
{
    const NodeList *part[] = { &u->let, &u->core, &u->store };
    NodeList body = { 0 }, *to = u->vector != NULL ? &body : out;
    Node *v;

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < part[i]->n; k++)
            tree_append(t->p, to, part[i]->node[k]);
    if (u->vector == NULL)
        return;
    for (int i = 0; i < u->space.n; i++) {
        v = tree_with_body(t->p, u->space.node[i], &body);
        body = (NodeList){ 0 };
        tree_append(t->p, &body, v);
    }
    v = tree_with_body(t->p, u->vector, &body);
    v->regs = tree_power_below(t->how.registers / u->let.n);
    tree_append(t->p, out, v);
}

static NodeList tile_list(Tile *t, Node *const *n, int count, const Nest *outer)
{
    NodeList out = { 0 }, body;
    Unit u;

    for (int i = 0; i < count; i++)
        if (unit_of(t, n[i], &u) && u.loops > 0) {
            if (meets_again(t, &u, outer))
                begin_at_zero(t, &u);
            put_unit(t, &u, &out);
        } else {
            Nest nest = { n[i], outer };

            body = tile_list(t, n[i]->body, n[i]->nbody, &nest);
            tree_append(t->p, &out, tree_with_body(t->p, n[i], &body));
        }
    return out;
}

Node *lower_accumulated(Prog *p, Node *phase, Node *nest, LowerTile how)
{
    Tile t = { .p = p, .phase = phase, .binders = lower_binders(p, phase), .how = how };
    NodeList out = { 0 };
    Unit u;

    if (!unit_of(&t, nest, &u) || u.loops == 0 || u.vector == NULL)
        return NULL;
    put_unit(&t, &u, &out);
    return out.node[0];
}

void lower_accumulate(Kernel *k, LowerTile how)
{
    for (int i = 0; i < k->n; i++) {
        Tile t = { .p = k->p, .phase = k->phase[i], .how = how };
        NodeList out;

        if (lower_has_registers(k->phase[i]))
            continue;
        t.binders = lower_binders(k->p, k->phase[i]);
        out = tile_list(&t, &k->phase[i], 1, NULL);
        k->phase[i] = lower_phase(k->p, &out);
        k->phase[i]->label = t.phase->label;
    }
    lower_done(k, k->p->stage);
}
