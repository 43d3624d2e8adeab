/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * cache_read and cache_write LABEL ARRAY at LOOP shared: the elements of an array that an iteration
 * of the loop reads, or stores to, are held in an array that its lanes and warps share.  A loop
 * inside numbers them; loops like it copy them, dealt to all threads.  What is stored begins in the
 * loop.
 *
 *     for j1 in 0..32                       for x in 0..32 on thread
 *         C[i] += A[i, j0 * 32 + j1]            A.tile[x] = A[i, j0 * 32 + x]
 *                                       >   for j1 in 0..32
 *                                               C[i] += A.tile[j1]                              */
#include "sched/step.h"

#include <string.h>

enum { LIMIT_TILE = LOOP_MOST_SHARED / 2 };

typedef struct Tile {
    StepCall *call;
    const Node *phase, *block; /* the block that is the loop's body */
    Cells cells;
    const Node *number[LIMIT_STEP_CELLS]; /* of each cell, the loop that numbers it */
    Buf *shared;
    Local *x;     /* of loops that copy, and */
    Expr *cell;   /* the element that it stands for */
    const Node *loop; /* one like them */
    bool stores, done;
} Tile;

int64_t step_most_trips(const Node *loop)
{
    Expr *hi = loop->hi;
    int64_t n = step_trips(loop);

    if (n >= 0 || loop->lo->op != OP_int || hi->op != OP_min)
        return n;
    for (int k = 0; k < 2 && n < 0; k++)
        if (hi->arg[k]->op == OP_int && !int_sub(hi->arg[k]->i, loop->lo->i, &n))
            n = n < 0 ? 0 : n;
    return n;
}

/* The loops below that number the element: one, or there is a refusal. */
static void find_number(Tile *t, const Node *n, Expr *cell, const Node **out)
{
    StepCall *c = t->call;

    if (n->local != NULL && tree_mentions(c->p, cell, n->local)) {
        if (n->kind != N_FOR)
            step_refuse(c, "the index of %s depends on a let inside", cell->buf->name);
        if (*out != NULL && *out != n)
            step_refuse(c, "%s and %s both number elements of %s; one loop may", loop_path(*out),
                        loop_path(n), cell->buf->name);
        *out = n;
    }
    for (int i = 0; i < n->nbody; i++)
        find_number(t, n->body[i], cell, out);
}

static void has_guard(Tile *t, const Node *n)
{
    if (n->kind == N_IF && step_mentions(t->call, n, t->cells.buf))
        step_refuse(t->call, "%s is used only where a condition holds", t->cells.buf->name);
    for (int i = 0; i < n->nbody; i++)
        has_guard(t, n->body[i]);
}

static Expr *by_counter(Tile *t, int i)
{
    Prog *p = t->call->p;
    Node store = { .kind = N_STORE, .out = t->cells.cell[i], .value = ir_int(p, 0) };

    return loop_replace(p, loop_node(p, &store), t->number[i]->local, loop_use(p, t->x))->out;
}

static void check_loop(Tile *t, const Node *n, const Buf *b)
{
    StepCall *c = t->call;
    int64_t most = step_most_trips(n);

    if (step_bound_below(c->p, n->lo, t->block->body, t->block->nbody) != NULL ||
        step_bound_below(c->p, n->hi, t->block->body, t->block->nbody) != NULL)
        step_refuse(c, "the range of %s depends on what is defined only inside", loop_path(n));
    if (most < 0 || most > LIMIT_TILE)
        step_refuse(c, "%s may have any number of iterations; split it first", loop_path(n));
    if (b->of != NULL && (n->over == NULL || n->over->axis != b->of))
        step_refuse(c, "%s does not run over positions of %s", loop_path(n), b->of->name);
}

static void check_cells(Tile *t)
{
    StepCall *c = t->call;
    const Buf *b = t->cells.buf;

    for (int i = 0; i < t->cells.n; i++) {
        Expr *cell = t->cells.cell[i];

        for (int k = 0; k < t->block->nbody; k++)
            find_number(t, t->block->body[k], cell, &t->number[i]);
        if (t->number[i] == NULL)
            step_refuse(c, "no loop inside numbers elements of %s; leave `shared` out", b->name);
        if (!step_is_steady(t->phase, cell))
            step_refuse(c, "the index of %s depends on values that the phase stores", b->name);
        if (b->of == NULL && !step_is_inside(c->p, t->phase, cell))
            step_refuse(c, "an element of %s may not exist where nothing inside uses it", b->name);
        check_loop(t, t->number[i], b);
        if (t->cell != NULL && (by_counter(t, i) != t->cell || t->number[i]->lo != t->loop->lo ||
                                t->number[i]->hi != t->loop->hi))
            step_refuse(c, "it uses several elements of %s in an iteration", b->name);
        t->cell = by_counter(t, i);
        t->loop = t->number[i];
    }
}

void step_check_together(StepCall *c, const Spot *at)
{
    const Node *phase = c->phase[at->phase];

    if (phase->level != LEVEL_WARP && phase->level != LEVEL_BLOCK)
        step_refuse(c, "its phase is on no warp or block; write bind %s.%s warp", phase->label,
                    phase->kind == N_FOR ? loop_path(phase) : "");
    for (int i = 1; i <= at->depth; i++) {
        const Node *n = i < at->depth ? at->around[i] : at->node;

        if (n->level != LEVEL_NONE)
            step_refuse(c, "%s is dealt to %ss, which do not share what is inside it", loop_path(n),
                        loop_level_word[n->level]);
    }
}

Expr *step_shared_cell(Prog *p, Buf *b, Expr *at)
{
    return loop_cell(p, b, &at, 1, 1);
}

Node *step_together(Prog *p, const Node *like, const char *label, Local *x, Node *body)
{
    Node loop = { .kind = N_FOR, .how = FOR_SERIAL, .level = LEVEL_THREAD, .label = label };

    loop.local = x;
    loop.lo = like->lo;
    loop.hi = like->hi;
    loop.over = like->over;
    return tree_around(p, &loop, body);
}

static Expr *tile_at(const Tile *t, const Local *l)
{
    Prog *p = t->call->p;

    return step_shared_cell(p, t->shared, tree_sub(p, loop_use(p, (Local *)l), t->loop->lo));
}

/* A loop that copies all elements, one way or the other. */
static Node *copy(Tile *t, bool back)
{
    Prog *p = t->call->p;
    Expr *own = tile_at(t, t->x);
    Node store = { .kind = N_STORE, .op = A_SET, .label = t->call->line->word[0] }, *body, *to;

    store.out = back ? t->cell : own;
    store.value = back ? own : t->cell;
    body = loop_node(p, &store);
    to = step_together(p, t->loop, store.label, t->x, body);
    return loop_fresh(p, to);
}

static Expr *to_tile(Prog *p, Expr *e, void *ctx)
{
    Tile *t = ctx;

    (void)p;
    for (int i = 0; i < t->cells.n; i++)
        if (t->cells.cell[i] == e)
            return tile_at(t, t->number[i]->local);
    return e;
}

/* The first node that uses the elements sets all of them. */
static bool begins(const Tile *t, const Node *n)
{
    const Node *s = n->kind == N_FOR && n->nbody == 1 ? n->body[0] : n;

    return n == t->number[0] && s->kind == N_STORE && s->op == A_SET &&
           s->out == t->cells.cell[0] && !step_mentions(t->call, loop_node(t->call->p, &(Node){
               .kind = N_LET, .value = s->value }), t->cells.buf);
}

static void tile(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Tile *t = ctx;
    NodeList body = { 0 };
    Memo memo = { 0 };
    int first = -1, last = -1;

    *t = (Tile){ .call = c, .phase = c->phase[at->phase], .block = at->node, .cells = t->cells,
                 .stores = t->stores, .done = t->done };
    t->cells.n = 0;
    for (int i = 0; i < at->node->nbody; i++)
        if (step_mentions(c, at->node->body[i], t->cells.buf)) {
            first = first < 0 ? i : first;
            last = i;
            has_guard(t, at->node->body[i]);
            step_cells(&t->cells, at->node->body[i]);
        }
    if (t->cells.n == 0) { /* a copy of the loop that has none */
        tree_append(c->p, out, at->node);
        return;
    }
    step_check_together(c, at);
    t->x = step_counter(c->p, "x", 0);
    check_cells(t);
    t->shared = step_new_shared(c, t->phase, t->cells.buf, "tile",
                                step_most_trips(t->loop));
    for (int i = 0; i < at->node->nbody; i++) {
        Node *n = at->node->body[i];

        if (i == first && t->stores && !begins(t, n))
            step_refuse(c, "elements of %s begin with what was there; write decompose_reduction %s "
                        "at %s before", t->cells.buf->name, c->line->word[0], c->line->word[3]);
        if (i == first && !t->stores)
            tree_append(c->p, &body, copy(t, false));
        tree_append(c->p, &body,
                    i >= first && i <= last ? loop_rewrite(c->p, n, to_tile, t, &memo) : n);
        if (i == last && t->stores)
            tree_append(c->p, &body, copy(t, true));
    }
    t->done = true;
    tree_append(c->p, out, tree_with_body(c->p, at->node, &body));
}

static void refuse_companions(StepCall *c, const Node *n, const Buf *b)
{
    if (n->kind == N_STORE && n->nat > 0 && n->out->op == OP_cell && n->out->buf == b)
        step_refuse(c, "a store to %s has companions", b->name);
    if (n->kind == N_AHEAD && n->out->buf == b)
        step_refuse(c, "%s is prefetched; put the prefetch line after this one", b->name);
    for (int i = 0; i < n->nbody; i++)
        refuse_companions(c, n->body[i], b);
}

void step_cache_shared(StepCall *c, bool stores)
{
    const Symbol *s = ir_find_symbol(c->p, c->line->word[1], strlen(c->line->word[1]));
    Spot at = step_find(c, c->line->word[3]);
    Tile t = { .call = c, .stores = stores };

    if (s == NULL || s->buf == NULL)
        step_refuse(c, "there is no array %s", c->line->word[1]);
    t.cells = (Cells){ .call = c, .buf = s->buf };
    for (int i = 0; i < c->n; i++)
        refuse_companions(c, c->phase[i], s->buf);
    if (loop_writes(c->phase[at.phase], s->buf) != stores)
        step_refuse(c,
                    stores ? "%s is not written in the phase" : "%s is written in the same phase",
                    s->buf->name);
    step_edit(c, c->line->word[3], tile, &t);
    if (!t.done)
        step_refuse(c, "%s uses no %s in %s", c->line->word[0], s->buf->name, c->line->word[3]);
    if (stores)
        step_check_phases(c, s->buf);
}
