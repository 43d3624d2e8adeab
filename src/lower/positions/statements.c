/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Turns statements into loops over stored entries.
 *
 *     c: C[i, k] += A[i, j] * B[j, k]      phase c for i in 0..m
 *                                              for j in J.start[i]..J.start[i + 1]
 *                                                  for k in 0..f
 *                                                      C[i, k] += A[j] * B[J.coord[j], k]
 *
 * Each assignment, or group of assignments, becomes one phase; phases after it complete the buffers
 * that it writes.  The initial value of a buffer becomes an attribute.  Needs a checked program. */
#include "lower/positions/positions_int.h"

#include <math.h>
#include <string.h>

void pos_add_phase(Pos *c, Node *n)
{
    Kernel *k = c->kernel;

    k->phase = arena_grow(c->p->arena, k->phase, k->n, &k->cap, sizeof *k->phase);
    k->phase[k->n++] = n;
}

static const char *join(Pos *c, const char *a, const char *b)
{
    Text t = { .arena = c->p->arena };

    text_f(&t, "%s%s", a, b);
    return t.s;
}

/* An array of the kernel's own with the axes of b. */
static Buf *own_array(Pos *c, const Buf *b, const char *suffix, Type type)
{
    Buf t = *b;

    t.name = join(c, b->name, suffix);
    t.type = type;
    t.kind = B_TEMP;
    t.has_fill = false;
    loop_drop_init(&t);
    return loop_own(c->p, &t);
}

/* A loop over every dimension of b; fn adds what is done to each element. */
typedef void Inside(Pos *, Buf *, Expr *const *index, int n, NodeList *out);

static void everywhere(Pos *c, Buf *b, const char *suffix, Inside *fn)
{
    Elements e = lower_elements(c->p, b);
    NodeList body = { 0 };

    fn(c, b, e.index, e.n, &body);
    pos_add_phase(c, lower_over_elements(c->p, b, &e, join(c, b->name, suffix), body));
}

static void add_set(Pos *c, NodeList *l, Expr *out, Expr *value)
{
    pos_add(c, l, &(Node){ .kind = N_STORE, .op = A_SET, .out = out, .value = value });
}

/* What an element holds before anything is combined with it. */
static Expr *identity(Pos *c, const Buf *b)
{
    AssignOp op = c->how[b->id].op;
    bool floats = ir_type[b->type].floats;

    if (c->how[b->id].companion)
        return ir_int(c->p, -1);
    if (op == A_SET && b->has_fill)
        return pos_fill(c, b);
    if (op != A_MAX && op != A_MIN)
        return floats ? ir_real(c->p, 0) : ir_int(c->p, 0);
    if (floats)
        return ir_real(c->p, op == A_MAX ? -(double)INFINITY : (double)INFINITY);
    if (b->type == T_i32)
        return ir_int(c->p, op == A_MAX ? INT32_MIN : INT32_MAX);
    return ir_int(c->p, op == A_MAX ? INT64_MIN : INT64_MAX);
}

/* The accumulator of an array that the caller gives begins with what is given. */
static void load_element(Pos *c, Buf *b, Expr *const *index, int n, NodeList *out)
{
    add_set(c, out, loop_cell(c->p, c->acc[b->id], index, n, 1), loop_cell(c->p, b, index, n, 1));
}

/* Elements never reached get the declared fill; accumulators are rounded once. */
static void end_element(Pos *c, Buf *b, Expr *const *index, int n, NodeList *out)
{
    Buf *acc = c->acc[b->id], *hit = c->hit[b->id];
    Expr *value = loop_cell(c->p, acc != NULL ? acc : b, index, n, 1), *reached;

    if (hit != NULL && b->has_fill) {
        reached = ir_op2(c->p, OP_ne, loop_cell(c->p, hit, index, n, 1), ir_int(c->p, 0));
        value = ir_node(c->p, OP_select, (Expr *[]){ reached, value, pos_fill(c, b) }, 3);
    }
    add_set(c, out, loop_cell(c->p, b, index, n, 1), value);
}

/* Whether it matters if an element was reached: for its fill, and where the first value wins
 * whatever it is, though no better than what stands there. */
static bool needs_marks(const Pos *c, const Buf *b, AssignOp op)
{
    if (b->kind == B_INOUT || op == A_SET)
        return false;
    return b->has_fill || (op != A_ADD && (b->type == T_i32 || c->how[b->id].has_companions));
}

static bool is_bound(const Stmt *s, const Var *v)
{
    for (int i = 0; i < s->nbind; i++)
        if (s->bind[i] == v)
            return true;
    return false;
}

/* Whether the variable, with those that it hangs on, takes all positions of its axis while the
 * statement runs.  Counts those that are met for the first time. */
static bool takes_all(const Stmt *s, const Var *v, const Var **met, int *nmet)
{
    for (; v != NULL; v = v->parent == NULL ? NULL : v->parent->var) {
        bool known = false;

        for (int i = 0; i < *nmet; i++)
            known = known || met[i] == v;
        if (known)
            return true;
        if (!is_bound(s, v) || (v->axis->flags & AX_PADDED) || v->axis->extent == X_BUILT ||
            (v->parent != NULL && v->parent->op != OP_var))
            return false;
        met[(*nmet)++] = v;
    }
    return true;
}

/* An axis of 0..n, for any n. */
static bool is_plain(const Axis *a)
{
    return a->parent == NULL && ir_is_dense(a) && ir_is_ident(a);
}

/* The variable whose position is the index of a slot; NULL: the index is something else. */
static const Var *slot_var(const Expr *index, const Axis *slot)
{
    const Axis *a = index->op == OP_var || index->op == OP_coord ? index->var->axis : NULL;

    if (a == NULL || (index->op == OP_var && a != slot))
        return NULL;
    if (index->op == OP_coord && !(is_plain(a) && is_plain(slot) && a->size == slot->size))
        return NULL;
    return index->var;
}

/* Variables of one axis are independent only where the buffer has a slot for each of them. */
static bool are_independent(const Buf *b, const Var *const *met, int n)
{
    for (int i = 0; i < n; i++) {
        const Axis *a = met[i]->axis;
        int vars = 0, slots = 0;

        for (int k = 0; k < n; k++)
            vars += met[k]->axis == a;
        for (int k = 0; k < b->nslot; k++)
            slots += b->slot[k] == a;
        if (vars > 1 && (slots < vars || a->parent != NULL))
            return false;
    }
    return true;
}

/* Whether an assign sets every element of its buffer, so that none needs an initial value: each
 * index is a variable of the slot's own axis, in the row that the slots before say, and the
 * statement runs over these variables alone. */
static bool sets_all(const Stmt *s, const Assign *a)
{
    const Buf *b = a->out->buf;
    const Var *met[IR_MAX_BINDS], *at[IR_MAX_RANK];
    int nmet = 0;

    if (a->op != A_SET || a->guard != NULL)
        return false;
    for (int i = 0; i < b->nslot; i++) {
        at[i] = slot_var(a->out->arg[i], b->slot[i]);
        if (at[i] == NULL)
            return false;
        for (int k = 0; k < i; k++)
            if (at[k] == at[i] ||
                (b->slot[k] == b->slot[i]->parent && at[i]->parent != a->out->arg[k]))
                return false;
        if (!takes_all(s, at[i], met, &nmet))
            return false;
    }
    return nmet == s->nbind && are_independent(b, met, nmet);
}

/* Before the first statement that writes the buffer: its initial value, and arrays beside it. */
static void begin_buffer(Pos *c, Buf *b)
{
    AssignOp op = c->how[b->id].op;
    bool narrow = b->type == T_f16 || b->type == T_bf16 || b->type == T_i32;

    if (narrow && op != A_SET)
        c->acc[b->id] = own_array(c, b, ".acc", b->type == T_i32 ? T_i64 : T_f32);
    if (needs_marks(c, b, op))
        c->hit[b->id] = own_array(c, b, ".hit", T_i32);
    if (b->kind == B_INOUT && c->acc[b->id] != NULL)
        everywhere(c, b, ".init", load_element);
    else if (b->kind != B_INOUT && (!c->how[b->id].whole || c->acc[b->id] != NULL))
        (c->acc[b->id] != NULL ? c->acc[b->id] : b)->init = identity(c, b);
    if (c->hit[b->id] != NULL)
        c->hit[b->id]->init = ir_int(c->p, 0);
    if (c->tested[b->id]) {
        c->set[b->id] = own_array(c, b, ".set", T_i32);
        c->set[b->id]->init = ir_int(c->p, 0);
    }
}

static void end_buffer(Pos *c, Buf *b)
{
    if (c->acc[b->id] != NULL || (c->hit[b->id] != NULL && b->has_fill))
        everywhere(c, b, ".done", end_element);
}

/* That a value wins over what the element holds: only then are the companions evaluated. */
static Expr *wins(Pos *c, AssignOp op, Expr *cell, Expr *value, Expr *hit)
{
    Expr *w, *nan;

    if (cell->type == T_f32 || cell->type == T_f64)
        value = ir_op1(c->p, cell->type == T_f32 ? OP_f32 : OP_f64, value);
    w = ir_op2(c->p, op == A_MAX ? OP_gt : OP_lt, value, cell);
    if (cell->type != T_i64) {
        nan = ir_op2(c->p, OP_and, ir_op2(c->p, OP_ne, value, value),
                     ir_op2(c->p, OP_eq, cell, cell));
        w = ir_op2(c->p, OP_or, w, nan);
    }
    if (hit != NULL)
        w = ir_op2(c->p, OP_or, w, ir_op2(c->p, OP_eq, hit, ir_int(c->p, 0)));
    return w;
}

/* The companions of a store, and the mark of its element, which comes last. */
static void add_companions(Pos *c, const Assign *a, Node *store, At *at)
{
    Buf *hit = c->hit[a->out->buf->id];
    Expr *mark = NULL, *there, *cond;

    if (hit != NULL)
        mark = pos_element(c, a->out, hit, &there);
    for (int k = 0; k < a->nat; k++) {
        cond = wins(c, a->op, store->out, store->value, mark);
        at[store->nat++] = (At){ pos_element(c, a->at[k].out, NULL, &there),
                                 pos_expr_if(c, cond, a->at[k].value) };
    }
    if (mark != NULL)
        at[store->nat++] = (At){ mark, ir_int(c->p, 1) };
    store->at = at;
}

void pos_take_checks(Pos *c, NodeList *to)
{
    for (int i = 0; i < c->checks.n; i++)
        tree_append(c->p, to, c->checks.node[i]);
    c->checks = (NodeList){ 0 };
}

static void add_check(Pos *c, const Assign *a, Fault fault, Expr *cond)
{
    pos_add(c, &c->checks,
            &(Node){ .kind = N_CHECK, .fault = fault, .label = a->label, .cond = cond });
}

static void lower_store(Pos *c, const Assign *a, NodeList *out)
{
    Node store = { .kind = N_STORE, .label = a->label, .op = a->op };
    At at[IR_MAX_RANK + 1];
    Expr *there;

    store.value = pos_expr(c, a->value);
    store.out = pos_element(c, a->out, c->acc[a->out->buf->id], &there);
    if (there != NULL)
        add_check(c, a, FAULT_MISS, there);
    add_companions(c, a, &store, at);
    pos_take_checks(c, out);
    pos_add(c, out, &store);
}

/* The element that an assign will set gets its mark, which it must not have yet. */
static void lower_mark(Pos *c, const Assign *a, NodeList *out)
{
    Expr *there, *mark = pos_element(c, a->out, c->set[a->out->buf->id], &there);

    if (there != NULL)
        add_check(c, a, FAULT_MISS, there);
    add_check(c, a, FAULT_TWICE, ir_op2(c->p, OP_eq, mark, ir_int(c->p, 0)));
    pos_take_checks(c, out);
    pos_add(c, out,
            &(Node){ .kind = N_STORE,
                     .label = a->label,
                     .op = A_SET,
                     .out = mark,
                     .value = ir_int(c->p, 1) });
}

/* One assign, its checks before it, inside its guard. */
static void lower_assign(Pos *c, const Assign *a, NodeList *out)
{
    NodeList inner = { 0 }, *to = out;
    Expr *guard = NULL;
    Scope scope;

    pos_begin(c, &scope, a->label);
    if (a->guard != NULL) {
        guard = pos_expr(c, a->guard);
        pos_take_checks(c, out);
        to = &inner;
    }
    if (a->op == A_INSERT)
        pos_insert(c, a, to);
    else if (c->tests)
        lower_mark(c, a, to);
    else
        lower_store(c, a, to);
    if (guard != NULL)
        pos_add(c, out,
                &(Node){ .kind = N_IF,
                         .label = a->label,
                         .cond = guard,
                         .body = inner.node,
                         .nbody = inner.n });
}

Node pos_open(Pos *c, Var *v, Entry *up, const char *label)
{
    Axis *a = v->axis;
    Expr *parent = up == NULL ? ir_int(c->p, 0) : lower_pos(c->p, up), *x;
    Node loop = { .kind = N_FOR, .label = label };

    if (a->extent == X_ONE) {
        c->var[v->id] = lower_entry(c->p, a, up, parent, ir_int(c->p, 0));
        return loop;
    }
    loop.local = loop_local(c->p, v->name, T_i64, 1);
    loop.over = loop_over(c->p, a, up == NULL && a->extent == X_TABLE ? NULL : parent);
    x = loop_use(c->p, loop.local);
    if (a->extent == X_SEG || a->extent == X_BUILT) {
        loop.lo = tree_first(c->p, a, parent);
        loop.hi = tree_cell(c->p, loop_start(c->p, a), tree_add(c->p, parent, ir_int(c->p, 1)));
        c->var[v->id] = lower_entry(c->p, a, up, x, NULL);
    } else {
        loop.lo = ir_int(c->p, 0);
        loop.hi = tree_extent(c->p, a, parent);
        c->var[v->id] = lower_entry(c->p, a, up, NULL, x);
    }
    return loop;
}

NodeList pos_under(Pos *c, Expr *cond, NodeList body, const char *label)
{
    NodeList out = { 0 };

    if (cond == NULL)
        return body;
    pos_add(
        c, &out,
        &(Node){ .kind = N_IF, .label = label, .cond = cond, .body = body.node, .nbody = body.n });
    return out;
}

void pos_nest(Pos *c, const Nest *s, int i, NodeList *out)
{
    const char *label = s->assign[0].label;
    NodeList body = { 0 }, all = { 0 };
    Expr *there, *exists;
    Entry *up;
    Node loop;
    Scope scope;

    if (i == s->nbind) {
        for (int k = 0; k < s->nassign; k++)
            lower_assign(c, &s->assign[k], out);
        return;
    }
    pos_begin(c, &scope, label);
    up = pos_parent(c, s->bind[i], &there);
    pos_take_checks(c, out);
    loop = pos_open(c, s->bind[i], up, label);
    exists = lower_exists(c->p, c->var[s->bind[i]->id]);
    pos_nest(c, s, i + 1, &body);
    body = pos_under(c, exists, body, label);
    loop.body = body.node;
    loop.nbody = body.n;
    if (loop.local != NULL)
        pos_add(c, &all, &loop);
    else
        all = body;
    all = pos_under(c, there, all, label);
    for (int k = 0; k < all.n; k++)
        tree_append(c->p, out, all.node[k]);
}

/* Whether this axis is a constant relation, which is to be unrolled, and another one is as long as
 * a run says: then that one is the loop of the phase, and the sum of its iterations is cut. */
static bool is_unrolled(const Stmt *s, const Axis *a)
{
    bool other = false;

    for (int i = 0; i < s->nbind; i++) {
        const Axis *b = s->bind[i]->axis;

        other = other || (b->parent == NULL && b->extent == X_EXPR && b->size->op != OP_int);
    }
    return other && a->coord[0].kind == C_TABLE;
}

/* A root variable that is spatial in every output goes outermost: each element still sees its
 * terms in the same order, and iterations of that loop touch different elements.  False: none. */
static bool order_binds(const Stmt *s, Nest *n)
{
    int front = -1, k = 0;

    for (int i = 0; i < s->nbind && front < 0 && !s->in_order; i++) {
        bool all = s->bind[i]->axis->parent == NULL && !is_unrolled(s, s->bind[i]->axis);

        for (int j = 0; j < n->nassign; j++)
            all = all && ir_reach(&n->assign[j], s->bind[i]) == REACH_SPATIAL;
        if (all)
            front = i;
    }
    if (front >= 0)
        n->bind[k++] = s->bind[front];
    for (int i = 0; i < s->nbind; i++)
        if (i != front)
            n->bind[k++] = s->bind[i];
    n->nbind = k;
    return front >= 0;
}

static void lower_part(Pos *c, const Stmt *s, const Assign *a, int n)
{
    Nest nest = { .assign = a, .nassign = n };
    NodeList out = { 0 };
    bool owned = order_binds(s, &nest);

    pos_nest(c, &nest, 0, &out);
    if (owned && out.n == 1 && out.node[0]->kind == N_FOR)
        out.node[0]->how = FOR_PARALLEL;
    if (out.n > 0)
        pos_add_phase(c, lower_phase(c->p, &out));
}

/* Assigns to one buffer go one after the other: elements see the terms of the first before those
 * of the second, and an element may be another instance's. */
static bool may_fuse(Pos *c, const Stmt *s)
{
    c->round++;
    for (int i = 0; i < s->nassign; i++) {
        int *written = &c->written[s->assign[i].out->buf->id];

        if (*written == c->round)
            return false;
        *written = c->round;
    }
    return true;
}

/* What begins or ends with a statement: lists of ids, each in ascending order. */
typedef struct Ids {
    int *first; /* by statement: its first id, or -1 */
    int *next;  /* by id */
} Ids;

typedef struct Turns { /* by Buf.id: first and last statement that writes it */
    int *first, *last;
    int *built; /* by Axis.id: the last that inserts into it */
} Turns;

static void note_turn(const Turns *t, const Buf *b, int stmt)
{
    if (t->first[b->id] < 0)
        t->first[b->id] = stmt;
    t->last[b->id] = stmt;
}

static void note_write(Pos *c, const Buf *b, AssignOp op, bool companion)
{
    Written *w = &c->how[b->id];

    if (!w->met)
        *w = (Written){ .op = op, .met = true, .companion = companion };
}

static Turns turns_of(Pos *c)
{
    Turns t = { arena_array(c->p->arena, c->p->nbuf, sizeof(int)),
                arena_array(c->p->arena, c->p->nbuf, sizeof(int)),
                arena_array(c->p->arena, c->p->naxis, sizeof(int)) };

    memset(t.built, -1, (size_t)c->p->naxis * sizeof(int));
    memset(t.first, -1, (size_t)c->p->nbuf * sizeof(int));
    memset(t.last, -1, (size_t)c->p->nbuf * sizeof(int));
    for (int i = 0; i < c->p->nstmt; i++)
        for (int k = 0; k < c->p->stmt[i]->nassign; k++) {
            const Assign *a = &c->p->stmt[i]->assign[k];

            if (a->op == A_INSERT) {
                t.built[a->out->axis->id] = i;
                continue;
            }
            note_turn(&t, a->out->buf, i);
            note_write(c, a->out->buf, a->op, false);
            c->how[a->out->buf->id].has_companions |= a->nat > 0;
            c->how[a->out->buf->id].whole |= t.first[a->out->buf->id] == i && a->op == A_SET &&
                                             sets_all(c->p->stmt[i], a);
            if (a->op == A_SET && a->once == ONCE_TESTED)
                c->tested[a->out->buf->id] = true;
            for (int m = 0; m < a->nat; m++) {
                note_turn(&t, a->at[m].out->buf, i);
                note_write(c, a->at[m].out->buf, A_SET, true);
            }
        }
    return t;
}

/* The ids of n things that belong to statements, `of` tells which. */
static Ids ids_by_statement(const Prog *p, const int *of, int n)
{
    Ids ids = { arena_array(p->arena, p->nstmt, sizeof(int)),
                arena_array(p->arena, n, sizeof(int)) };

    memset(ids.first, -1, (size_t)p->nstmt * sizeof(int));
    for (int id = n - 1; id >= 0; id--)
        if (of[id] >= 0) {
            ids.next[id] = ids.first[of[id]];
            ids.first[of[id]] = id;
        }
    return ids;
}

/* The statement without what it inserts: that is collected, and done after it. */
static Stmt only_stores(Pos *c, const Stmt *s)
{
    Stmt stores = *s;

    stores.assign = arena_array(c->p->arena, s->nassign, sizeof *s->assign);
    stores.nassign = 0;
    for (int k = 0; k < s->nassign; k++)
        if (s->assign[k].op != A_INSERT)
            stores.assign[stores.nassign++] = s->assign[k];
    return stores;
}

/* Where only the data tell whether = sets an element twice, a phase of its own tests it before
 * anything is set. */
static void lower_test(Pos *c, const Stmt *s, const Assign *a)
{
    Assign mark = *a;

    mark.label = join(c, a->label, ".once");
    c->tests = true;
    lower_part(c, s, &mark, 1);
    c->tests = false;
}

static void lower_stores(Pos *c, const Stmt *s)
{
    for (int k = 0; k < s->nassign; k++)
        if (s->assign[k].op == A_SET && s->assign[k].once == ONCE_TESTED)
            lower_test(c, s, &s->assign[k]);
    if (s->nassign > 0 && may_fuse(c, s))
        lower_part(c, s, s->assign, s->nassign);
    else
        for (int k = 0; k < s->nassign; k++)
            lower_part(c, s, &s->assign[k], 1);
}

Kernel *lower_positions(Prog *p)
{
    Pos c = { .p = p, .kernel = arena_alloc(p->arena, sizeof(Kernel)) };
    Ids begins, ends, builds;
    Turns t;

    ir_judge_once(p);
    c.tested = arena_array(p->arena, p->nbuf, sizeof *c.tested);
    c.written = arena_array(p->arena, p->nbuf, sizeof *c.written);
    c.how = arena_array(p->arena, p->nbuf, sizeof *c.how);
    t = turns_of(&c);
    begins = ids_by_statement(p, t.first, p->nbuf);
    ends = ids_by_statement(p, t.last, p->nbuf);
    builds = ids_by_statement(p, t.built, p->naxis);
    c.kernel->p = p;
    c.var = arena_array(p->arena, p->nvar, sizeof *c.var);
    c.acc = arena_array(p->arena, p->nbuf, sizeof *c.acc);
    c.hit = arena_array(p->arena, p->nbuf, sizeof *c.hit);
    c.set = arena_array(p->arena, p->nbuf, sizeof *c.set);
    for (int i = 0; i < p->nstmt; i++) {
        Stmt s = only_stores(&c, p->stmt[i]);

        for (int b = begins.first[i]; b >= 0; b = begins.next[b])
            begin_buffer(&c, p->buf[b]);
        lower_stores(&c, &s);
        for (int a = builds.first[i]; a >= 0; a = builds.next[a])
            pos_build(&c, p->axis[a]);
        for (int b = ends.first[i]; b >= 0; b = ends.next[b])
            end_buffer(&c, p->buf[b]);
    }
    lower_drop_marks(c.kernel);
    lower_done(c.kernel, STAGE_POSITIONS);
    return c.kernel;
}
