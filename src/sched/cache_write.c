/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * cache_write LABEL ARRAY at LOOP: keeps the elements of an array that an iteration of the loop
 * writes in registers, and stores them at the end of the iteration.  Loops that number these
 * elements first move outside the others, so that each element is one register, whose lanes step
 * vectorize chooses.  Each element adds its terms in the same order. */
#include "sched/step.h"

#include <string.h>

/* A store with companions says which of them won, and has to see them. */
static void check_stores(StepCall *c, const Node *n, const Buf *b)
{
    bool beside = false;

    for (int k = 0; k < n->nat; k++)
        beside = beside || n->at[k].out->buf == b;
    if (n->kind == N_AHEAD && n->out->buf == b)
        step_refuse(c, "it is prefetched; put the prefetch line after this one");
    if (n->kind == N_STORE && (beside || (n->nat > 0 && n->out->op == OP_cell && n->out->buf == b)))
        step_refuse(c, "a store to %s has companions", b->name);
    for (int i = 0; i < n->nbody; i++)
        check_stores(c, n->body[i], b);
}

typedef struct Kept { /* a block whose elements are held */
    StepCall *call;
    const Node *phase, *block;
    Cells cells;
    int first, last; /* nodes of the block that mention the array */
    Local *reg[LIMIT_STEP_CELLS];
    const Node *begin[LIMIT_STEP_CELLS]; /* the store of its first value; NULL: it is loaded */
} Kept;

static void find_range(Kept *k)
{
    k->first = -1;
    for (int i = 0; i < k->block->nbody; i++)
        if (step_mentions(k->call, k->block->body[i], k->cells.buf)) {
            k->first = k->first < 0 ? i : k->first;
            k->last = i;
        }
}

/* Whether a node gives the element a value that is known before all of the block. */
static bool is_begin(const Kept *k, const Node *n, Expr *cell)
{
    return n->kind == N_STORE && n->op == A_SET && n->out == cell &&
           !step_reads(k->call->p, n->value) &&
           step_bound_below(k->call->p, n->value, k->block->body + k->first,
                       k->block->nbody - k->first) == NULL;
}

/* The first node of the block that mentions the element, if it sets it there. */
static const Node *begin_of(Kept *k, Expr *cell)
{
    for (int i = k->first; i <= k->last; i++) {
        const Node *n = k->block->body[i];
        Cells here = { .call = k->call, .buf = k->cells.buf };

        step_cells(&here, n);
        for (int j = 0; j < here.n; j++)
            if (here.cell[j] == cell)
                return is_begin(k, n, cell) ? n : NULL;
    }
    return NULL;
}

static bool has_values(const StepCall *c, const Node *phase, const Buf *b)
{
    if (b->kind == B_INOUT || step_has_init(c, b))
        return true;
    for (int i = 0; i < c->n && c->phase[i] != phase; i++)
        if (loop_writes(c->phase[i], b))
            return true;
    return false;
}

static void check_element(Kept *k, int i)
{
    StepCall *c = k->call;
    Expr *cell = k->cells.cell[i];
    const Node *let = step_bound_below(c->p, cell, k->block->body + k->first,
                                  k->block->nbody - k->first);

    if (!step_is_steady(k->phase, cell))
        step_refuse(c, "the index of %s depends on values that the phase stores",
                    cell->buf->name);
    if (let != NULL)
        step_refuse(c, "the index of %s depends on %s, which is defined only inside",
                    cell->buf->name,
                    let->local->name != NULL ? let->local->name : "a let");
    k->begin[i] = begin_of(k, cell);
    if (k->begin[i] != NULL)
        return;
    if (!has_values(c, k->phase, cell->buf))
        step_refuse(c, "elements of %s have no values before it", cell->buf->name);
    if (!step_is_inside(c->p, k->phase, cell))
        step_refuse(c, "an element of %s may not exist where a loop inside runs no iteration",
                    cell->buf->name);
}

static void check_apart(Kept *k)
{
    for (int i = 0; i < k->cells.n; i++)
        for (int j = 0; j < i; j++)
            if (!step_are_apart(k->cells.cell[i], k->cells.cell[j]))
                step_refuse(k->call, "two elements of %s in it may be the same one",
                            k->cells.buf->name);
}

static Expr *to_register(Prog *p, Expr *e, void *ctx)
{
    Kept *k = ctx;

    for (int i = 0; i < k->cells.n; i++)
        if (k->cells.cell[i] == e)
            return loop_use(p, k->reg[i]);
    return e;
}

static bool begins(const Kept *k, const Node *n)
{
    for (int i = 0; i < k->cells.n; i++)
        if (k->begin[i] == n)
            return true;
    return false;
}

static void put_lets(Kept *k, NodeList *out)
{
    Prog *p = k->call->p;

    for (int i = 0; i < k->cells.n; i++) {
        const Node *begin = k->begin[i];
        Node let = { .kind = N_LET, .label = k->block->label, .local = k->reg[i] };

        let.value = begin != NULL ? begin->value : k->cells.cell[i];
        tree_append(p, out, loop_node(p, &let));
    }
}

static void put_stores(Kept *k, NodeList *out)
{
    Prog *p = k->call->p;

    for (int i = 0; i < k->cells.n; i++)
        tree_append(p, out,
                    loop_node(p, &(Node){ .kind = N_STORE,
                                          .label = k->block->label,
                                          .op = A_SET,
                                          .out = k->cells.cell[i],
                                          .value = loop_use(p, k->reg[i]) }));
}

static Node *with_registers(Kept *k)
{
    Prog *p = k->call->p;
    NodeList body = { 0 };
    Memo memo = { 0 };

    for (int i = 0; i < k->block->nbody; i++) {
        Node *n = k->block->body[i];

        if (i == k->first)
            put_lets(k, &body);
        if (i < k->first || i > k->last)
            tree_append(p, &body, n);
        else if (!begins(k, n))
            tree_append(p, &body, loop_rewrite(p, n, to_register, k, &memo));
        if (i == k->last)
            put_stores(k, &body);
    }
    return tree_with_body(p, k->block, &body);
}

/* C is held in c: locals begin with a small letter. */
static const char *reg_name(Prog *p, const Buf *b)
{
    char *name = arena_copy(p->arena, b->name, strlen(b->name) + 1);

    name[strcspn(name, ".")] = 0;
    if (name[0] >= 'A' && name[0] <= 'Z')
        name[0] = (char)(name[0] + ('a' - 'A'));
    return name;
}

static void keep(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const Buf *b = ctx;
    Kept *k = arena_alloc(c->p->arena, sizeof *k);

    *k = (Kept){ .call = c, .phase = c->phase[at->phase], .block = at->node };
    k->cells = (Cells){ .call = c, .buf = b };
    for (int i = 0; i < at->node->nbody; i++)
        step_cells(&k->cells, at->node->body[i]);
    if (!loop_writes(at->node, b)) { /* a copy of the loop that has none */
        tree_append(c->p, out, at->node);
        return;
    }
    check_stores(c, at->node, b);
    find_range(k);
    check_apart(k);
    for (int i = 0; i < k->cells.n; i++) {
        check_element(k, i);
        k->reg[i] = loop_local(c->p, reg_name(c->p, b), b->type, 1);
    }
    tree_append(c->p, out, with_registers(k));
}

void step_check_phases(StepCall *c, const Buf *b)
{
    for (int i = 0; i < c->n; i++) {
        Spot root = { i, c->phase[i], NULL, 0 };
        const char *why;

        if (c->phase[i]->kind != N_FOR || c->phase[i]->how != FOR_PARALLEL ||
            !c->phase[i]->scheduled || !loop_writes(c->phase[i], b))
            continue;
        why = dep_race(c->p, c->phase[i], &root, false);
        if (why != NULL)
            step_refuse(c, "%s", why);
    }
}

static bool stores_here(const Node *n, const char *label, const Buf *b)
{
    bool has = n->kind == N_STORE && n->label != NULL && strcmp(n->label, label) == 0 &&
               n->out->op == OP_cell && n->out->buf == b;

    for (int i = 0; i < n->nbody && !has; i++)
        has = stores_here(n->body[i], label, b);
    return has;
}

void step_cache_write(StepCall *c)
{
    const Buf *b;

    if (step_at_shared(c)) {
        step_cache_shared(c, true);
        return;
    }
    b = step_array(c, c->line->word[1]);
    if (!stores_here(step_find(c, c->line->word[3]).node, c->line->word[0], b))
        step_refuse(c, "%s stores nothing to %s in %s", c->line->word[0], b->name,
                    c->line->word[3]);
    if (b->type != T_f32 && b->type != T_f64)
        step_refuse(c, "elements of %s are %s, and registers hold f32 or f64", b->name,
                    ir_type[b->type].name);
    step_edit(c, step_innermost(c, b, c->line->word[3]), keep, (void *)b);
    step_check_phases(c, b);
}
