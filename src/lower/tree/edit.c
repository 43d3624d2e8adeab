/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Node lists, bodies and expressions of nodes: helpers of all rooms. */
#include "lower/storage/storage_int.h"

#include <string.h>

void lower_append(Prog *p, NodeList *l, Node *n)
{
    l->node = arena_grow(p->arena, l->node, l->n, &l->cap, sizeof *l->node);
    l->node[l->n++] = n;
}

void lower_append_all(Prog *p, NodeList *l, const NodeList *more)
{
    for (int i = 0; i < more->n; i++)
        lower_append(p, l, more->node[i]);
}

int lower_power_below(int64_t n)
{
    int r = 1;

    while (2 * r <= n)
        r *= 2;
    return r;
}

static void see_read(Expr *e, void *ctx)
{
    const Buf **b = ctx;

    if (e->op == OP_cell && e->buf == b[0])
        b[1] = b[0];
}

bool lower_reads(Prog *p, Expr *e, const Buf *b)
{
    const Buf *seen[2] = { b, NULL };
    Memo met = { 0 };

    ir_visit(p, e, see_read, seen, &met);
    return seen[1] != NULL;
}

bool lower_touches(Prog *p, const Node *n, const Buf *b)
{
    const Buf *seen[2] = { b, NULL };
    Memo met = { 0 };

    loop_visit(p, n, see_read, seen, &met);
    return seen[1] != NULL;
}

bool lower_is_elsewhere(const Kernel *k, const Buf *b)
{
    bool is = false;

    for (int i = 0; i < k->nother && !is; i++)
        is = lower_touches(k->p, k->other[i], b);
    return is;
}

const char *lower_beside(Prog *p, const Buf *b, const char *what)
{
    Text name = { .arena = p->arena };
    const Symbol *taken;
    int number = 1;

    do {
        name.n = 0;
        text_f(&name, "%.*s.%s%d", (int)strcspn(b->name, "."), b->name, what, number++);
        taken = ir_find_symbol(p, name.s, name.n);
    } while (taken != NULL && taken->buf != NULL);
    return name.s;
}

Buf *lower_scratch(Prog *p, const Buf *beside, Type type, int64_t n)
{
    Buf b = { .type = type, .kind = B_WORK, .written = true, .nslot = 1, .nfull = 1 };

    b.name = lower_beside(p, beside, "work");
    b.full = b.slot = arena_array(p->arena, 1, sizeof *b.full);
    b.place_in_full = arena_array(p->arena, 1, sizeof *b.place_in_full);
    b.full[0] = ir_dense(p, ir_int(p, n));
    return loop_own(p, &b);
}

bool lower_has_registers(const Node *n)
{
    bool has = n->kind == N_STORE && n->out->op == OP_local;

    for (int i = 0; i < n->nbody && !has; i++)
        has = lower_has_registers(n->body[i]);
    return has;
}

int lower_slots(Node *n, Expr ***out)
{
    Expr **slot[] = { &n->lo, &n->hi, &n->cond, &n->out, &n->value };
    int k = 0;

    for (size_t i = 0; i < sizeof slot / sizeof *slot; i++)
        if (*slot[i] != NULL)
            out[k++] = slot[i];
    for (int i = 0; i < n->nat; i++) {
        out[k++] = &n->at[i].out;
        out[k++] = &n->at[i].value;
    }
    return k;
}

void lower_done(Kernel *k, Stage stage)
{
    k->p->stage = stage;
    k->p->phase = k->phase;
    k->p->nphase = k->n;
}

Node *lower_phase(Prog *p, const NodeList *l)
{
    int n = l->n;

    while (n > 0 && l->node[n - 1]->kind == N_LET) /* for nobody */
        n--;
    if (n <= 1)
        return n == 0 ? NULL : l->node[0];
    return loop_node(p, &(Node){ .kind = N_FOR,
                                 .label = l->node[0]->label,
                                 .scheduled = l->node[n - 1]->scheduled,
                                 .body = l->node,
                                 .nbody = n,
                                 .lo = ir_int(p, 0),
                                 .hi = ir_int(p, 1),
                                 .local = loop_local(p, "once", T_i64, 1) });
}

Node *lower_with_body(Prog *p, const Node *n, const NodeList *body)
{
    Node c = *n;

    c.body = body->node;
    c.nbody = body->n;
    return loop_node(p, &c);
}

Expr *lower_split_index(Expr *e, int64_t *constant)
{
    *constant = 0;
    if (e->op == OP_int)
        return *constant = e->i, NULL;
    for (int i = 0; i < 2 && e->op == OP_add; i++)
        if (e->arg[i]->op == OP_int)
            return *constant = e->arg[i]->i, e->arg[1 - i];
    return e;
}

int64_t lower_apart(Expr *a, Expr *b)
{
    int64_t x, y, d;

    if (lower_split_index(a, &x) != lower_split_index(b, &y) || int_sub(x, y, &d) || d == INT64_MIN)
        return 0;
    return d < 0 ? -d : d;
}

bool lower_differ(Expr *a, Expr *b)
{
    return lower_apart(a, b) != 0;
}

bool lower_is_stepped(Prog *p, Expr *e, Local *l)
{
    Memo memo = { 0 };
    bool a, b;

    if (e->op != OP_add && e->op != OP_mul)
        return e == loop_use(p, l);
    a = lower_uses(p, e->arg[0], l, &memo);
    b = lower_uses(p, e->arg[1], l, &memo);
    return a != b && lower_is_stepped(p, e->arg[a ? 0 : 1], l);
}

enum { SMALL_TREE = 32 }; /* nodes that are walked faster than looked up */

static bool uses_in_tree(const Expr *e, const Local *l)
{
    bool uses = e->op == OP_local && e->local == l;

    for (int i = 0; i < e->nargs && !uses; i++)
        uses = uses_in_tree(e->arg[i], l);
    return uses;
}

bool lower_uses(Prog *p, Expr *e, Local *l, Memo *memo)
{
    Expr *known; /* the local, or e where that does not use it */
    bool uses = false;

    if (e->tree <= SMALL_TREE)
        return uses_in_tree(e, l);
    known = *ir_memo(p, memo, e);
    if (known != NULL)
        return known != e;
    for (int i = 0; i < e->nargs && !uses; i++)
        uses = lower_uses(p, e->arg[i], l, memo);
    *ir_memo(p, memo, e) = uses ? loop_use(p, l) : e;
    return uses;
}

bool lower_mentions(Prog *p, Expr *e, Local *l)
{
    Memo memo = { 0 };

    return lower_uses(p, e, l, &memo);
}

static void see_local(Expr *e, void *ctx)
{
    if (e->op == OP_local)
        *(bool *)ctx = true;
}

bool lower_has_local(Prog *p, Expr *e)
{
    bool found = false;
    Memo met = { 0 };

    ir_visit(p, e, see_local, &found, &met);
    return found;
}

void lower_empty_set(Prog *p, LocalSet *s)
{
    if (s->n < p->nlocal) {
        s->n = 2 * p->nlocal;
        s->round = arena_array(p->arena, s->n, sizeof *s->round);
        s->now = 0;
    }
    s->now++;
}

static Expr *same(Prog *p, Expr *e, void *ctx)
{
    (void)p;
    (void)ctx;
    return e;
}

/* Gives each let below n a new local, which the memo tells. */
static Node *rename_lets(Prog *p, const Node *n, Memo *memo)
{
    Node *c = loop_node(p, n);
    NodeList body = { 0 };

    if (n->kind == N_LET) {
        c->local = loop_local(p, n->local->name, n->local->type, n->local->lanes);
        *ir_memo(p, memo, loop_use(p, n->local)) = loop_use(p, c->local);
    }
    for (int i = 0; i < n->nbody; i++)
        lower_append(p, &body, rename_lets(p, n->body[i], memo));
    c->body = body.node;
    return c;
}

static bool has_let(const Node *n)
{
    bool has = n->kind == N_LET;

    for (int i = 0; i < n->nbody; i++)
        has = has || has_let(n->body[i]);
    return has;
}

Node *lower_renamed(Prog *p, Node *n)
{
    Memo memo = { 0 };

    if (!has_let(n))
        return n;
    n = rename_lets(p, n, &memo);
    return loop_rewrite(p, n, same, NULL, &memo);
}

Local *lower_index_owner(Expr *e)
{
    const Buf *b = e->op == OP_cell && e->buf->of_k >= 0 && e->buf->nfull == 0 ? e->buf : NULL;

    if (b != NULL && b->of != NULL &&
        (b->of->coord[b->of_k].once || (b->of->from != NULL && b->of->from_k >= 0 && b->of_k == 0)))
        e = e->arg[0];
    return e->op == OP_local ? (Local *)e->local : NULL;
}

/* Of a phase over batches, and the loop over the iterations of one: how many there are in all; or
 * NULL. */
static Expr *batched(Prog *p, const Node *phase, const Node *n)
{
    bool strip = phase->kind == N_FOR && n->kind == N_FOR && n->how == FOR_SERIAL &&
                 n->lo->op == OP_mul && n->hi->op == OP_min && phase->hi->op == OP_div;

    for (int i = 0; i < 2 && strip; i++)
        for (int k = 0; k < 2; k++) {
            Expr *size = n->lo->arg[i], *all = n->hi->arg[k];

            if (size->op == OP_int && n->lo->arg[1 - i] == loop_use(p, phase->local) &&
                n->hi->arg[1 - k] == lower_add(p, n->lo, size) &&
                phase->hi == lower_batch_count(p, all, size->i))
                return all;
        }
    return NULL;
}

Expr *lower_batch_count(Prog *p, Expr *all, int64_t size)
{
    return ir_op2(p, OP_div, lower_add(p, all, ir_int(p, size - 1)), ir_int(p, size));
}

Expr *lower_entries(Prog *p, const Node *phase, const Node *n)
{
    const Buf *start = n->kind == N_FOR && n->lo->op == OP_cell ? n->lo->buf : NULL;
    Expr *row;

    if (start == NULL || start->of == NULL || start->of_k != -1 || start->nfull > 0 ||
        n->how != FOR_SERIAL || n->lanes > 1 || start->of->parent == NULL ||
        phase->kind != N_FOR || phase->lo != ir_int(p, 0) ||
        phase->hi != lower_count(p, start->of->parent))
        return batched(p, phase, n);
    row = loop_use(p, phase->local);
    return n->lo->arg[0] == row &&
                   n->hi == lower_first(p, start->of, lower_add(p, row, ir_int(p, 1)))
               ? lower_count(p, start->of)
               : NULL;
}
