/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prefetches gathered rows: a vector loop that gathers rows by the coordinates of entries
 * prefetches the rows of later entries. */
#include "lower/storage/storage_int.h"

typedef struct Ahead {
    Prog *p;
    int bytes;         /* that are on their way at a time */
    const Node *loop;  /* over entries, around what is looked at; or NULL */
    const Node *lanes; /* the vector loop around; or NULL */
    int64_t row;       /* bytes that an entry gathers in all, as far as that is known */
    Expr **cell;       /* what is gathered below, each once */
    int n, cap;
    Memo met;
    Expr *far; /* how many entries ahead */
} Ahead;

/* Whether every coordinate is inside its bound, so that no place that is made of it overflows. */
static bool is_bounded(const Buf *b)
{
    return b->of->coord[b->of_k].bound != NULL && !(b->of->flags & AX_PADDED);
}

/* A coordinate of the entry that the loop is at: the entries after it are the next elements. */
static bool is_coordinate(const Ahead *a, Expr *e)
{
    Expr *at = e->op == OP_cell && e->buf->of != NULL && e->buf->of_k >= 0 && e->buf->nfull == 0
                   ? e->arg[0]
                   : NULL;
    Expr *var = loop_use(a->p, a->loop->local);

    if (at == NULL || e->buf->kind == B_CONST || !is_bounded(e->buf))
        return false;
    return at == var || (at->op == OP_add && (at->arg[0] == var || at->arg[1] == var) &&
                         !(tree_mentions(a->p, at->arg[0], a->loop->local) &&
                           tree_mentions(a->p, at->arg[1], a->loop->local)));
}

/* How many entries ahead: fewer of long rows, and of those that are long in all the next ones. */
static Expr *distance(const Ahead *a, Expr *cell)
{
    Prog *p = a->p;
    bool known = a->lanes->lo->op == OP_int && !tree_has_local(p, a->lanes->hi);
    Expr *row = tree_mul(p, tree_sub(p, a->lanes->hi, a->lanes->lo),
                          ir_int(p, ir_type[cell->buf->type].bytes));
    Expr *n = ir_op2(p, OP_div, ir_int(p, a->bytes), ir_op2(p, OP_max, row, ir_int(p, 1)));
    Expr *least;

    if (a->row > a->bytes / p->policy.ahead_least)
        return ir_int(p, a->bytes / a->row + 1);
    if (!known) /* a part of a row */
        return ir_int(p, p->policy.ahead_usual);
    least = ir_int(p, p->policy.ahead_least);
    return ir_op2(p, OP_max, ir_op2(p, OP_min, n, ir_int(p, p->policy.ahead_most)), least);
}

/* The coordinate of an entry to come; near the end that of the last one. */
static Expr *shifted(Prog *p, Expr *e, void *ctx)
{
    const Ahead *a = ctx;
    Expr *last, *at;

    if (!is_coordinate(a, e))
        return e;
    last = tree_sub(p, loop_positions(p, e->buf->of), ir_int(p, 1));
    at = ir_op2(p, OP_min, tree_add(p, e->arg[0], a->far), last);
    return loop_cell(p, e->buf, &at, 1, 1);
}

static void meet(Expr *e, void *ctx)
{
    Ahead *a = ctx;
    Memo memo = { 0 };

    if (e->op != OP_cell || e->buf->of != NULL || e->buf->kind == B_CONST ||
        !tree_mentions(a->p, e, a->lanes->local))
        return;
    a->far = distance(a, e);
    if (ir_rewrite(a->p, e->arg[0], shifted, a, &memo) == e->arg[0])
        return;
    a->cell = arena_grow(a->p->arena, a->cell, a->n, &a->cap, sizeof *a->cell);
    a->cell[a->n++] = e;
}

/* A hint among the rows of an entry, which all come at once: where the table may be in a cache
 * nearby, it would only cost. */
static Node *where_far(const Ahead *a, Node *hint)
{
    const Buf *b = hint->out->buf;
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim);
    Expr *bytes = ir_int(a->p, ir_type[b->type].bytes);
    Node branch = { .kind = N_IF, .label = hint->label };
    NodeList body = { 0 };

    for (int d = 0; d < n; d++)
        bytes = tree_mul(a->p, bytes, lower_dim_extent(a->p, b, dim[d]));
    branch.cond = ir_op2(a->p, OP_gt, bytes, ir_int(a->p, a->p->policy.near));
    tree_append(a->p, &body, hint);
    return tree_with_body(a->p, &branch, &body);
}

/* Before the stores of a list: hints for what they gather. */
static void add_hints(Ahead *a, Node *const *n, int count, bool rows, NodeList *out)
{
    for (int i = 0; i < count; i++)
        if (n[i]->kind == N_STORE)
            ir_visit(a->p, n[i]->value, meet, a, &a->met);
    for (int i = 0; i < a->n; i++) {
        Node hint = { .kind = N_AHEAD, .label = n[0]->label, .far = a->row > a->bytes }, *c;
        Memo memo = { 0 };
        Expr *at;

        a->far = distance(a, a->cell[i]);
        at = ir_rewrite(a->p, a->cell[i]->arg[0], shifted, a, &memo);
        hint.out = loop_cell(a->p, a->cell[i]->buf, &at, 1, 1);
        c = loop_node(a->p, &hint);
        tree_append(a->p, out, rows ? where_far(a, c) : c);
    }
    a->n = 0;
}

/* All positions of an axis without parent that are entries: they have coordinates. */
static bool is_over_all(Prog *p, const Node *n)
{
    for (int i = 0; i < p->naxis; i++) {
        Axis *a = p->axis[i];

        if (a->parent == NULL && a->extent == X_EXPR && a->coord[0].kind == C_LOAD &&
            loop_positions(p, a) == n->hi)
            return n->lo == ir_int(p, 0);
    }
    return false;
}

/* A loop over entries of a run-time structure. */
static bool is_over_entries(Prog *p, const Node *n)
{
    const Buf *b = n->kind == N_FOR && n->lo->op == OP_cell ? n->lo->buf : NULL;

    if (n->kind != N_FOR || n->lanes > 1)
        return false;
    if (b == NULL)
        return is_over_all(p, n);
    return b->of != NULL && b->of_k < 0 && b->kind != B_CONST;
}

/* The bytes of all pieces that are gathered below n, whose lengths are constants. */
static int64_t gathered(const Ahead *a, const Node *n)
{
    Ahead in = { .p = a->p, .bytes = a->bytes, .loop = a->loop, .lanes = a->lanes };
    int64_t sum = 0;

    if (n->kind == N_FOR && n->lanes > 1)
        in.lanes = n;
    for (int i = 0; i < n->nbody; i++) {
        sum += gathered(&in, n->body[i]);
        if (n == in.lanes && n->body[i]->value != NULL)
            ir_visit(a->p, n->body[i]->value, meet, &in, &in.met);
    }
    if (n != in.lanes || n->lo->op != OP_int || n->hi->op != OP_int)
        return sum;
    for (int i = 0; i < in.n; i++)
        sum += (n->hi->i - n->lo->i) * ir_type[in.cell[i]->buf->type].bytes;
    return sum;
}

static Node *ahead(Ahead *a, Node *n)
{
    Ahead in = { .p = a->p, .bytes = a->bytes, .loop = a->loop, .lanes = a->lanes, .row = a->row };
    NodeList body = { 0 };

    if (is_over_entries(a->p, n)) {
        in.loop = n;
        in.row = in.lanes == NULL ? gathered(&in, n) : 0;
    }
    if (n->kind == N_FOR && n->lanes > 1)
        in.lanes = n;
    if (in.loop != NULL && in.lanes != NULL)
        add_hints(&in, n->body, n->nbody, n->kind == N_FOR && n != in.loop && n != in.lanes, &body);
    for (int i = 0; i < n->nbody; i++)
        tree_append(a->p, &body, ahead(&in, n->body[i]));
    return tree_with_body(a->p, n, &body);
}

void lower_prefetch_gathers(Kernel *k, int bytes)
{
    for (int i = 0; i < k->n && bytes > 0; i++) {
        Ahead a = { .p = k->p, .bytes = bytes };

        k->phase[i] = ahead(&a, k->phase[i]);
    }
    lower_done(k, k->p->stage);
}
