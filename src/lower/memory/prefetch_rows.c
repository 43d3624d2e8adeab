/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prefetches the next rows: iterations that read consecutive rows in pieces that lie apart
 * prefetch the pieces of a later row.  Hardware prefetchers follow a row that is read from end
 * to end, but not a dozen short pieces of one. */
#include "lower/memory/memory_int.h"
#include "lower/storage/storage_int.h"

typedef struct Next {
    Prog *p;
    const Node *phase, *loop; /* loop: in lanes, right in the phase */
    const Touches *touches;   /* of the phase */
    int64_t far;              /* rows ahead */
    Expr **cell;              /* what the loop reads, each once */
    LoopIndex *at;
    int *window, n, cap, cap_at;
    int *first;               /* by node of the loop: the first that it reads */
    Memo met;
} Next;

/* Elements between the long rows of two iterations of the phase; 0: it is not such an element. */
static int64_t row_of(const Next *t, Expr *cell)
{
    const Touch *touch = lower_touch_of(t->touches, cell->buf);
    LoopIndex x;

    if (cell->buf->kind == B_CONST || cell->buf->of != NULL || touch == NULL || touch->written ||
        !loop_index(cell->arg[0], t->phase->local, &x))
        return 0;
    return x.stride >= t->p->policy.long_row / ir_type[cell->buf->type].bytes ? x.stride : 0;
}

static void see(Expr *e, void *ctx)
{
    Next *t = ctx;
    LoopIndex x;

    if (e->op != OP_cell || row_of(t, e) <= 0 || !loop_index_of(e, t->loop->local, &x) ||
        x.stride < 1 || x.stride > LOOP_WINDOW)
        return;
    t->cell = arena_grow(t->p->arena, t->cell, t->n, &t->cap, sizeof *t->cell);
    t->at = arena_grow(t->p->arena, t->at, t->n, &t->cap_at, sizeof *t->at);
    t->cell[t->n] = e;
    t->at[t->n++] = x;
}

/* Whether cell k stands for a piece: it lies beside its neighbours, or is the first of a window. */
static bool begins(const Next *t, int k)
{
    return t->at[k].stride == 1 || t->window[k] == k;
}

/* A hint for each register of a window, or for the one of neighbours. */
static void put_hints(const Next *t, int i, const char *label, NodeList *out)
{
    int64_t far;

    if (int_mul(row_of(t, t->cell[i]), t->far, &far))
        return;
    for (int k = 0; k < t->at[i].stride; k++) {
        Expr *at = tree_add(t->p, t->cell[i]->arg[0],
                             ir_int(t->p, far + (int64_t)k * t->loop->lanes));

        Node hint = { .kind = N_AHEAD, .far = true, .label = label };

        hint.out = loop_cell(t->p, t->cell[i]->buf, &at, 1, 1);
        tree_append(t->p, out, loop_node(t->p, &hint));
    }
}

/* Finds what the loop reads; how many pieces of rows that is. */
static int find_pieces(Next *t)
{
    int pieces = 0;

    t->first = arena_array(t->p->arena, t->loop->nbody + 1, sizeof *t->first);
    for (int i = 0; i < t->loop->nbody; i++) {
        if (t->loop->body[i]->value != NULL)
            ir_visit(t->p, t->loop->body[i]->value, see, t, &t->met);
        t->first[i + 1] = t->n;
    }
    t->window = arena_array(t->p->arena, t->n + 1, sizeof *t->window);
    loop_windows(t->p, t->at, t->n, t->window);
    for (int k = 0; k < t->n; k++)
        pieces += begins(t, k);
    return pieces;
}

/* The loop with hints before what first reads each piece. */
static Node *with_hints(const Next *t)
{
    NodeList body = { 0 };

    for (int i = 0; i < t->loop->nbody; i++) {
        for (int k = t->first[i]; k < t->first[i + 1]; k++)
            if (begins(t, k))
                put_hints(t, k, t->loop->body[i]->label, &body);
        tree_append(t->p, &body, t->loop->body[i]);
    }
    return tree_with_body(t->p, t->loop, &body);
}

static Node *with_next(Prog *p, Node *phase, int64_t far)
{
    Next *t = arena_array(p->arena, phase->nbody, sizeof *t);
    Touches touches = lower_touched(p, phase);
    NodeList body = { 0 };
    int pieces = 0;

    for (int i = 0; i < phase->nbody; i++) {
        t[i] = (Next){ .p = p, .phase = phase, .loop = phase->body[i], .touches = &touches,
                       .far = far };
        if (t[i].loop->kind == N_FOR && t[i].loop->lanes > 1)
            pieces += find_pieces(&t[i]);
    }
    if (pieces <= p->policy.streams)
        return phase;
    for (int i = 0; i < phase->nbody; i++)
        tree_append(p, &body, t[i].n > 0 ? with_hints(&t[i]) : phase->body[i]);
    return tree_with_body(p, phase, &body);
}

/* The rows of a phase, and those of the entries of each. */
static Node *with_rows(Prog *p, Node *phase, const Node *n, int bytes)
{
    int64_t row = n->lanes > 1 ? 0 : lower_row_bytes(p, n);
    NodeList body = { 0 };
    Node *to = loop_node(p, n);

    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, n == phase && lower_entries(p, phase, n->body[i]) != NULL
                                   ? with_rows(p, phase, n->body[i], bytes)
                                   : n->body[i]);
    to->body = body.node;
    return row > 0 ? with_next(p, to, bytes / row + 1) : to;
}

void lower_prefetch_rows(Kernel *k, int bytes)
{
    for (int i = 0; i < k->n && bytes > 0; i++)
        if (k->phase[i]->kind == N_FOR)
            k->phase[i] = with_rows(k->p, k->phase[i], k->phase[i], bytes);
    lower_done(k, k->p->stage);
}
