/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * decompose_reduction LABEL at LOOP: gives the elements that an iteration of the loop adds to their
 * initial values at the start of the iteration.  Needs loops that meet each element in one
 * iteration only. */
#include "sched/step.h"

#include <string.h>

typedef struct First { /* an array with an initial value */
    Buf *buf;
    Expr *cell;             /* what the loop calls the element */
    const Node *tile[LIMIT_STEP_WORDS]; /* loops inside it that number elements, outermost first */
    int ntile;
} First;

typedef struct Begin {
    StepCall *call;
    int copies; /* loops of this name */
    int phase;  /* of the loop */
    Spot at;
    First first[IR_MAX_RANK];
    int n;
} Begin;

typedef struct Mentions {
    const Buf *buf;
    Expr *cell; /* the only one; */
    bool many;  /* there are others */
} Mentions;

static void see(Expr *e, void *ctx)
{
    Mentions *m = ctx;

    if (e->op != OP_cell || e->buf != m->buf)
        return;
    m->many = m->many || (m->cell != NULL && m->cell != e);
    m->cell = e;
}

static Mentions mentions_of(Prog *p, const Node *n, const Buf *b)
{
    Mentions m = { .buf = b };
    Memo met = { 0 };

    loop_visit(p, n, see, &m, &met);
    return m;
}

static bool mentions_outside(Prog *p, const Node *n, const Node *block, const Buf *b)
{
    Node own = *n;
    bool any;

    if (n == block)
        return false;
    own.nbody = 0;
    any = mentions_of(p, &own, b).cell != NULL;
    for (int i = 0; i < n->nbody && !any; i++)
        any = mentions_outside(p, n->body[i], block, b);
    return any;
}

/* The first phase that mentions the array; -1: none does. */
static int first_use(StepCall *c, const Buf *b)
{
    for (int i = 0; i < c->n; i++)
        if (mentions_of(c->p, c->phase[i], b).cell != NULL)
            return i;
    return -1;
}

static const Buf *stored_by(const Node *n, const char *label)
{
    const Buf *b = n->kind == N_STORE && n->label != NULL && strcmp(n->label, label) == 0 &&
                           n->out->op == OP_cell
                       ? n->out->buf
                       : NULL;

    for (int i = 0; i < n->nbody && b == NULL; i++)
        b = stored_by(n->body[i], label);
    return b;
}

/* Loops inside the loop that number elements, down to the cell. */
static void find_tile(Begin *b, First *f, const Node *n)
{
    Prog *p = b->call->p;

    if (n->kind == N_FOR && mentions_of(p, n, f->cell->buf).cell != NULL &&
        tree_mentions(p, f->cell, n->local)) {
        if (f->ntile == LIMIT_STEP_WORDS)
            step_refuse(b->call, "the index of %s uses too many loops", f->cell->buf->name);
        f->tile[f->ntile++] = n;
    }
    for (int i = 0; i < n->nbody; i++)
        find_tile(b, f, n->body[i]);
}

static bool is_among(const Node *const *list, int n, const Node *x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

/* Whether e needs a local that is bound inside the block, these loops apart. */
static bool needs_inner(Prog *p, Expr *e, const Node *block, const Node *const *but, int n)
{
    for (int i = 0; i < block->nbody; i++) {
        const Node *x = block->body[i];

        if ((x->local != NULL && !is_among(but, n, x) && tree_mentions(p, e, x->local)) ||
            needs_inner(p, e, x, but, n))
            return true;
    }
    return false;
}

/* The loops inside go as far whatever other blocks inside are at. */
static void check_tile(Begin *b, const First *f)
{
    Prog *p = b->call->p;
    const Node *at = b->at.node;
    bool guarded = step_has(at, N_IF) || step_has(at, N_CHECK);

    for (int i = 0; i < f->ntile; i++) {
        const Node *t = f->tile[i];

        if (needs_inner(p, t->lo, at, f->tile, i) || needs_inner(p, t->hi, at, f->tile, i) ||
            (guarded && (step_reads(p, t->lo) || step_reads(p, t->hi))))
            step_refuse(b->call, "the end of %s.%s is known only inside other blocks", t->label,
                        loop_path(t));
    }
    if (needs_inner(p, f->cell, at, f->tile, f->ntile))
        step_refuse(b->call, "the index of %s uses a let that stands inside the loop",
                    f->cell->buf->name);
}

/* All loops and nothing else around the loop, and with those inside they meet each element once. */
static void check_cover(Begin *b, const First *f)
{
    StepCall *c = b->call;
    const Node *loop[LIMIT_STEP_NEST + LIMIT_STEP_WORDS];
    int n = 0;

    for (int i = 0; i < b->at.depth; i++) {
        if (b->at.around[i]->kind != N_FOR)
            step_refuse(c, "a branch is around the loop");
        loop[n++] = b->at.around[i];
    }
    loop[n++] = b->at.node;
    for (int i = 0; i < f->ntile; i++)
        loop[n++] = f->tile[i];
    if (!step_covers(c->p, c->phase[b->phase], f->cell, loop, n))
        step_refuse(c, "%s and the loops around it are not known to meet each element of %s once",
                    c->line->word[2], f->cell->buf->name);
}

/* The store of an initial value, in the loops that number elements. */
static Node *first_nest(Begin *b, const First *f)
{
    Prog *p = b->call->p;
    const char *label = step_join(p, b->call->line->word[0], ".init");
    Node *n = loop_node(p, &(Node){ .kind = N_STORE,
                                    .label = label,
                                    .op = A_SET,
                                    .out = f->cell,
                                    .value = loop_init(p, f->buf, f->cell->arg) });

    for (int i = f->ntile - 1; i >= 0; i--) {
        Node loop = *f->tile[i];

        loop.label = label;
        loop.how = FOR_SERIAL;
        n = tree_around(p, &loop, n);
    }
    return f->ntile > 0 ? loop_fresh(p, n) : n;
}

/* A register that begins with the element takes the value instead. */
static bool put_in_register(Begin *b, const First *f, NodeList *body)
{
    Node *nest = first_nest(b, f);

    for (int i = 0; i < body->n; i++) {
        if (body->node[i]->kind == N_LET && body->node[i]->value == f->cell &&
            nest->kind == N_STORE) {
            Node let = *body->node[i];

            let.value = nest->value;
            body->node[i] = loop_node(b->call->p, &let);
            return true;
        }
        if (mentions_of(b->call->p, body->node[i], f->cell->buf).cell != NULL)
            return false;
    }
    return false;
}

static void begin(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Begin *b = ctx;
    NodeList body = { 0 }, all = { 0 };

    if (b->copies++ > 0)
        step_refuse(c, "there are copies of the loop; do this before unroll and peel");
    for (int i = 0; i < at->node->nbody; i++)
        tree_append(c->p, &body, at->node->body[i]);
    for (int i = 0; i < b->n; i++)
        if (!put_in_register(b, &b->first[i], &body))
            tree_append(c->p, &all, first_nest(b, &b->first[i]));
    for (int i = 0; i < body.n; i++)
        tree_append(c->p, &all, body.node[i]);
    tree_append(c->p, out, tree_with_body(c->p, at->node, &all));
}

/* One cell of each array inside the loop, and none elsewhere in its phase or before it. */
static void match(Begin *b, First *f)
{
    StepCall *c = b->call;
    const Buf *buf = f->buf;
    Mentions in = mentions_of(c->p, b->at.node, buf);

    if (in.many || mentions_outside(c->p, c->phase[b->phase], b->at.node, buf))
        step_refuse(c, "several stores write %s, and the step moves the values of one", buf->name);
    if (first_use(c, buf) != b->phase)
        step_refuse(c, "phase %s uses %s first, so the loop is too late for its initial values",
                    c->phase[first_use(c, buf)]->label, buf->name);
    f->cell = in.cell;
    f->ntile = 0;
    for (int i = 0; i < b->at.node->nbody; i++)
        find_tile(b, f, b->at.node->body[i]);
}

/* The array, and those beside it that the loop stores to, the marks of what was reached. */
static void take_arrays(Begin *b, const Buf *buf)
{
    StepCall *c = b->call;
    const char *label = loop_init_label(c->p, buf);

    if (!step_has_init(c, buf))
        step_refuse(c, "%s has no initial value that could move", buf->name);
    for (int i = 0; loop_buf(c->p, i) != NULL && b->n < IR_MAX_RANK; i++) {
        Buf *x = loop_buf(c->p, i);

        if (step_has_init(c, x) && strcmp(loop_init_label(c->p, x), label) == 0 &&
            loop_writes(b->at.node, x))
            b->first[b->n++].buf = x;
    }
}

void step_decompose(StepCall *c)
{
    Begin b = { .call = c };
    const Buf *buf;

    step_count(c, 3, 3);
    if (strcmp(c->line->word[1], "at") != 0)
        step_refuse(c, "`at` and a loop come after the label, not %s", c->line->word[1]);
    b.at = step_find(c, c->line->word[2]);
    b.phase = b.at.phase;
    buf = stored_by(b.at.node, c->line->word[0]);
    if (buf == NULL)
        step_refuse(c, "%s stores nothing in %s", c->line->word[0], c->line->word[2]);
    take_arrays(&b, buf);
    for (int i = 0; i < b.n; i++)
        match(&b, &b.first[i]);
    for (int i = 0; i < b.n; i++) {
        check_tile(&b, &b.first[i]);
        check_cover(&b, &b.first[i]);
        step_placed(c, b.first[i].buf);
    }
    step_edit(c, c->line->word[2], begin, &b);
}
