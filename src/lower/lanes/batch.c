/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Batches iterations: scalars that an iteration of a phase computes before its vector loops are
 * computed for as many iterations at once as a register has lanes, into scratch of the batch.
 * Then the iterations run one by one and read them there.  Needs flat loops with initial values
 * placed; gives a phase over batches. */
#include "lower/lanes/lanes_int.h"
#include "lower/storage/storage_int.h"

/* A number that is computed is loaded afterwards, so it saves what takes more than one operation:
 * so many in all, and a part of what the loops take. */
enum { LIMIT_TREE = 10000 };

typedef struct Batch {
    Prog *p;
    const Node *phase;
    int lanes;
    Type type;
    Invariants kept;
    Memo met, inlined; /* inlined: by the use of a let, its value without lets */
    int operations;
    Local **let; /* those that are read in loops, */
    int n, cap;
    Buf *work;   /* and where they are: number, then iteration of the batch */
    Expr *first, *end; /* of the iterations of a batch, */
    const Over *over;  /* and what these are */
} Batch;

static Expr *inline_let(Prog *p, Expr *e, void *ctx)
{
    Batch *b = ctx;
    Expr *value = e->op == OP_local ? *ir_memo(p, &b->inlined, e) : NULL;

    return value != NULL ? value : e;
}

static void see_local(Expr *e, void *ctx)
{
    Batch *b = ctx;

    if (e->op == OP_local && e->local != b->phase->local && *ir_memo(b->p, &b->inlined, e) == NULL)
        b->type = T_none;
}

/* Whether the value is one of the row alone, for all that a let before it has to say. */
static bool is_of_row(Batch *b, Expr *value)
{
    Type type = b->type;
    Memo met = { 0 };
    bool good;

    ir_visit(b->p, value, see_local, b, &met);
    good = b->type == type;
    b->type = type;
    return good;
}

static bool is_assigned(const Node *phase, const Local *l)
{
    bool found = false;

    for (int i = 0; i < phase->nbody && !found; i++)
        found = loop_assigns(phase->body[i], l);
    return found;
}

static void count_operation(Expr *e, void *ctx)
{
    Batch *b = ctx;

    b->operations += ir_is_float(e) && e->nargs > 0 && e->op != OP_cell;
}

/* Takes a let of the phase: its value can be computed a lane each. */
static void take_let(Batch *b, const Node *n)
{
    Memo memo = { 0 };
    Expr *value;

    if (n->kind != N_LET || n->local->lanes > 1 || n->local->type != b->type ||
        is_assigned(b->phase, n->local) ||
        !lower_is_invariant(b->p, b->phase, n->value, &b->kept) || !is_of_row(b, n->value) ||
        !lower_can_step(b->p, n->value, b->phase->local, b->type))
        return;
    value = ir_rewrite(b->p, n->value, inline_let, b, &memo);
    if (value->tree > LIMIT_TREE)
        return;
    *ir_memo(b->p, &b->inlined, loop_use(b->p, n->local)) = value;
    ir_visit(b->p, value, count_operation, b, &b->met);
}

static void see_use(Expr *e, void *ctx)
{
    Batch *b = ctx;
    bool met = e->op != OP_local || *ir_memo(b->p, &b->inlined, e) == NULL;

    for (int i = 0; i < b->n && !met; i++)
        met = b->let[i] == e->local;
    if (met)
        return;
    b->let = arena_grow(b->p->arena, b->let, b->n, &b->cap, sizeof *b->let);
    b->let[b->n++] = (Local *)e->local;
}

static bool is_taken(Batch *b, const Node *n)
{
    return n->kind == N_LET && *ir_memo(b->p, &b->inlined, loop_use(b->p, n->local)) != NULL;
}

/* The type of the first number that is computed; T_none: there is none. */
static Type type_of(const Node *phase)
{
    for (int i = 0; i < phase->nbody; i++)
        if (phase->body[i]->kind == N_LET && (phase->body[i]->local->type == T_f32 ||
                                              phase->body[i]->local->type == T_f64))
            return phase->body[i]->local->type;
    return T_none;
}

static bool has_vectors(const Node *phase)
{
    bool has = false;

    for (int i = 0; i < phase->nbody && !has; i++)
        has = phase->body[i]->kind == N_FOR && phase->body[i]->how == FOR_VECTOR;
    return has;
}

/* Operations of an iteration in loops, a register each; about. */
static double work_of(Batch *b, const Node *n)
{
    bool known = n->kind == N_FOR && n->lo->op == OP_int && n->hi->op == OP_int;
    double trips = known ? (double)(n->hi->i - n->lo->i) : b->p->policy.usual_trips, sum = 0;
    Memo met = { 0 };

    b->operations = 0;
    for (int i = 0; i < n->nbody; i++)
        if (n->body[i]->value != NULL)
            ir_visit(b->p, n->body[i]->value, count_operation, b, &met);
    sum = b->operations;
    for (int i = 0; i < n->nbody; i++)
        sum += work_of(b, n->body[i]);
    return n->kind == N_FOR && n != b->phase ? sum * (n->lanes > 1 ? trips / n->lanes : trips)
                                             : sum;
}

/* Finds what a batch is worth: the lets, and those that something else reads. */
static bool find_lets(Batch *b)
{
    Memo met = { 0 };
    int saved;

    for (int i = 0; i < b->phase->nbody; i++)
        take_let(b, b->phase->body[i]);
    for (int i = 0; i < b->phase->nbody; i++)
        if (!is_taken(b, b->phase->body[i]))
            loop_visit(b->p, b->phase->body[i], see_use, b, &met);
    saved = b->operations - b->n;
    return saved >= b->p->policy.batch_saved && b->n <= b->p->policy.batch_values &&
           saved * b->p->policy.batch_share >= work_of(b, b->phase);
}

/* Number k of iteration `row`. */
static Expr *work_cell(const Batch *b, int k, Local *row)
{
    Prog *p = b->p;
    Expr *at = tree_add(p, ir_int(p, (int64_t)k * b->lanes),
                         tree_sub(p, loop_use(p, row), b->first));

    return loop_cell(p, b->work, &at, 1, 1);
}

/* The numbers of all iterations of the batch, in lanes. */
static Node *values_of(Batch *b)
{
    Prog *p = b->p;
    Local *row = loop_local(p, b->phase->local->name, T_i64, 1);
    Node loop = { .kind = N_FOR,
                  .label = b->phase->label,
                  .local = row,
                  .lo = b->first,
                  .hi = b->end,
                  .over = b->over,
                  .how = FOR_VECTOR,
                  .lanes = b->lanes };
    NodeList body = { 0 };

    for (int k = 0; k < b->n; k++) {
        Node set = { .kind = N_STORE,
                     .label = b->phase->label,
                     .op = A_SET,
                     .out = work_cell(b, k, row),
                     .value = *ir_memo(p, &b->inlined, loop_use(p, b->let[k])) };

        tree_append(p, &body,
                     loop_replace(p, loop_node(p, &set), b->phase->local, loop_use(p, row)));
    }
    return tree_with_body(p, &loop, &body);
}

/* The iterations, one after the other. */
static Node *rows_of(Batch *b)
{
    Prog *p = b->p;
    Node loop = *b->phase;
    NodeList body = { 0 };

    loop.how = FOR_SERIAL;
    loop.lo = b->first;
    loop.hi = b->end;
    loop.over = b->over;
    for (int i = 0; i < b->phase->nbody; i++) {
        Node *n = b->phase->body[i];

        for (int k = 0; k < b->n && !is_taken(b, n); k++)
            n = loop_replace(p, n, b->let[k], work_cell(b, k, b->phase->local));
        if (!is_taken(b, n))
            tree_append(p, &body, n);
    }
    return tree_with_body(p, &loop, &body);
}

/* The array that a phase stores to first: the numbers are beside it. */
static const Buf *stored_by(const Node *n)
{
    const Buf *buf = n->kind == N_STORE && n->out->op == OP_cell ? n->out->buf : NULL;

    for (int i = 0; i < n->nbody && buf == NULL; i++)
        buf = stored_by(n->body[i]);
    return buf;
}

static Node *in_batches(Batch *b)
{
    Prog *p = b->p;
    Local *block = loop_local(p, "block", T_i64, 1);
    Node outer = *b->phase;
    NodeList body = { 0 };

    b->first = tree_mul(p, loop_use(p, block), ir_int(p, b->lanes));
    b->end = ir_op2(p, OP_min, tree_add(p, b->first, ir_int(p, b->lanes)), b->phase->hi);
    b->work = lower_scratch(p, stored_by(b->phase), b->type, (int64_t)b->n * b->lanes);
    outer.local = block;
    outer.over = loop_over_tiles(p, b->phase->over, b->lanes);
    b->over = loop_over_tile(p, outer.over, loop_use(p, block), OVER_POSITIONS);
    outer.hi = lower_batch_count(p, b->phase->hi, b->lanes);
    tree_append(p, &body, values_of(b));
    tree_append(p, &body, rows_of(b));
    return tree_with_body(p, &outer, &body);
}

void lower_batch(Kernel *k, const VectorUnit *unit)
{
    for (int i = 0; i < k->n; i++) {
        const Node *n = k->phase[i];
        Batch b = { .p = k->p, .phase = n, .type = type_of(n) };

        if (n->kind != N_FOR || n->how != FOR_PARALLEL || n->lanes > 1 ||
            n->lo != ir_int(k->p, 0) || b.type == T_none || !has_vectors(n) ||
            stored_by(n) == NULL || loop_balance(n) != NULL)
            continue;
        b.lanes = lanes_of(unit, b.type);
        if (b.lanes > 1 && find_lets(&b))
            k->phase[i] = in_batches(&b);
    }
    lower_done(k, k->p->stage);
}
