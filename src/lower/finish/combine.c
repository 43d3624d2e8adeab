/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Combines stores of straight-line code: the terms that one element gets are added in a
 * register, by fused multiply-adds, and stored once. */
#include "lower/facts/facts_int.h"


enum { LIMIT_DEPTH = 250 }; /* of a sum, which nests; more terms are another store */

static bool can_begin(const Node *n)
{
    return n->kind == N_STORE && (n->op == A_ADD || n->op == A_SET) && n->nat == 0 &&
           n->out->op == OP_cell && n->out->type >= T_f32 && ir_is_float(n->value);
}

static Expr *sum_of(Prog *p, Expr *sum, Expr *term)
{
    if (sum == NULL)
        return term;
    if (term->op == OP_mul && ir_is_float(term) && term->type == sum->type)
        return ir_node(p, OP_fma, (Expr *[]){ term->arg[0], term->arg[1], sum }, 3);
    return ir_op2(p, OP_add, sum, term);
}

typedef struct Store { /* of a block */
    const Node *node;
    int at; /* in the body */
    const Expr *base; /* of its index, which is that and a constant; NULL: a constant alone */
    int64_t constant;
    int same; /* the next store in the body to the same array, base and constant; or the end */
    int other; /* the next one to the same array with another base; or the end */
    int end;   /* the next node that no store may pass; or the end */
} Store;

static int order(const void *a, const void *b)
{
    const Store *x = *(const Store *const *)a, *y = *(const Store *const *)b;
    int64_t key[4][2] = { { x->node->out->buf->id, y->node->out->buf->id },
                          { x->base == NULL ? -1 : (int64_t)x->base->id,
                            y->base == NULL ? -1 : (int64_t)y->base->id },
                          { x->constant, y->constant },
                          { x->at, y->at } };
    int i = 0;

    while (i < 3 && key[i][0] == key[i][1])
        i++;
    return (key[i][0] > key[i][1]) - (key[i][0] < key[i][1]);
}

static int order_in_array(const void *a, const void *b)
{
    const Store *x = *(const Store *const *)a, *y = *(const Store *const *)b;
    int p = x->node->out->buf->id, q = y->node->out->buf->id;

    return p != q ? (p > q) - (p < q) : (x->at > y->at) - (x->at < y->at);
}

/* Fills in `same` and `other` of all stores. */
static void link_stores(Prog *p, Store *store, int n)
{
    Store **sorted = arena_array(p->arena, n, sizeof *sorted);

    for (int i = 0; i < n; i++)
        sorted[i] = &store[i];
    array_sort(sorted, n, sizeof *sorted, order);
    for (int i = 0; i + 1 < n; i++) {
        const Store *x = sorted[i], *y = sorted[i + 1];

        if (x->node->out->buf == y->node->out->buf && x->base == y->base &&
            x->constant == y->constant)
            sorted[i]->same = y->at;
    }
    array_sort(sorted, n, sizeof *sorted, order_in_array);
    for (int i = n - 2; i >= 0; i--) {
        const Store *x = sorted[i], *y = sorted[i + 1];

        if (x->node->out->buf == y->node->out->buf)
            sorted[i]->other = x->base == y->base ? y->other : y->at;
    }
}

typedef struct Block { /* the nodes of one body */
    Prog *p;
    const Node *phase;
    Invariants *kept;
    Node *const *body;
    int n;
    Store *store; /* of those that can begin a sum */
    int *number;  /* by place in the body: of its store */
    bool *done;   /* by place: it is a part of an earlier sum */
} Block;

/* No store passes one that reads what the phase writes, or a node that is no store. */
static void find_stores(Block *b)
{
    int n = 0, end = b->n;

    b->store = arena_array(b->p->arena, b->n, sizeof *b->store);
    b->number = arena_array(b->p->arena, b->n, sizeof *b->number);
    b->done = arena_array(b->p->arena, b->n, sizeof *b->done);
    for (int i = 0; i < b->n; i++)
        if (can_begin(b->body[i])) {
            Store *s = &b->store[b->number[i] = n++];

            *s = (Store){ .node = b->body[i], .at = i, .same = b->n, .other = b->n };
            s->base = tree_split_index(b->body[i]->out->arg[0], &s->constant);
        }
    for (int i = b->n - 1; i >= 0; i--) {
        if (can_begin(b->body[i]))
            b->store[b->number[i]].end = end;
        if (!can_begin(b->body[i]) ||
            !lower_is_invariant(b->p, b->phase, b->body[i]->value, b->kept))
            end = i;
    }
    link_stores(b->p, b->store, n);
}

/* Joins to body[i] the later stores of the same element, as far as nothing stands between: no
 * store of what may be the same element, and none that reads what the phase writes. */
static Node *join_from(Block *b, int i)
{
    const Store *s = &b->store[b->number[i]];
    int end = s->other < s->end ? s->other : s->end;
    Node c = *b->body[i];
    Expr *sum = c.value;

    for (int k = s->same; k < end; k = b->store[b->number[k]].same) {
        const Node *n = b->body[k];

        if (n->out != c.out || n->op != A_ADD)
            break;
        if (b->done[k] || (n->value->type != sum->type && sum->op != OP_real))
            continue;
        if (sum->depth >= LIMIT_DEPTH)
            break;
        sum = sum_of(b->p, sum, n->value);
        b->done[k] = true;
    }
    c.value = sum;
    return loop_node(b->p, &c);
}

static Node *block(Prog *p, const Node *phase, Invariants *kept, const Node *n)
{
    Block b = { .p = p, .phase = phase, .kept = kept, .body = n->body, .n = n->nbody };
    Node c = *n;
    NodeList body = { 0 };

    find_stores(&b);
    for (int i = 0; i < n->nbody; i++)
        if (!can_begin(n->body[i]))
            tree_append(p, &body, block(p, phase, kept, n->body[i]));
        else if (!b.done[i])
            tree_append(p, &body, join_from(&b, i));
    c.body = body.node;
    c.nbody = body.n;
    return loop_node(p, &c);
}

void lower_combine(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Invariants kept = { 0 };

        k->phase[i] = block(k->p, k->phase[i], &kept, k->phase[i]);
    }
    lower_done(k, k->p->stage);
}
