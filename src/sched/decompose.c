/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * decompose_reduction LABEL at LOOP: the elements that an iteration of the loop adds to get their
 * first values at its beginning; the phase that gave them to all elements before goes.  Needs loops
 * that meet each element in one iteration. */
#include "sched/step.h"

#include <string.h>

typedef struct First { /* a store of the phase that goes */
    const Node *store;
    Expr *cell;             /* what the loop calls the element */
    const Node *tile[LIMIT_STEP_WORDS]; /* loops inside it that number elements, outermost first */
    int ntile;
} First;

typedef struct Begin {
    StepCall *call;
    int copies; /* loops of this name */
    int phase, from; /* of the loop; that gives first values */
    Spot at;
    const Node *loop[IR_MAX_FULL]; /* of the phase that goes */
    int nloop;
    First first[IR_MAX_RANK];
    int n;
} Begin;

/* A nest of loops around stores of what no later phase changes. */
static bool is_begin(Begin *b, const Node *n)
{
    b->nloop = 0;
    for (; n->kind == N_FOR && n->nbody > 0; n = n->body[0]) {
        if ((n->body[0]->kind == N_FOR && n->nbody != 1) || b->nloop == IR_MAX_FULL)
            return false;
        b->loop[b->nloop++] = n;
    }
    n = b->nloop > 0 ? b->loop[b->nloop - 1] : NULL;
    b->n = 0;
    for (int i = 0; n != NULL && i < n->nbody; i++) {
        const Node *s = n->body[i];

        if (s->kind != N_STORE || s->op != A_SET || s->nat > 0 || s->out->op != OP_cell ||
            b->n == IR_MAX_RANK)
            return false;
        b->first[b->n++].store = s;
    }
    return b->n > 0;
}

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

/* The last phase before the loop's that mentions the array; -1: none does. */
static int begin_of(StepCall *c, int phase, const Buf *b)
{
    int i = phase - 1;

    while (i >= 0 && mentions_of(c->p, c->phase[i], b).cell == NULL)
        i--;
    return i;
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
        step_needs(p, f->cell, n->local)) {
        if (f->ntile == LIMIT_STEP_WORDS)
            step_refuse(b->call, "too many loops number elements of %s", f->cell->buf->name);
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

        if ((x->local != NULL && !is_among(but, n, x) && step_needs(p, e, x->local)) ||
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
            step_refuse(b->call, "how far %s.%s goes is known only inside other blocks", t->label,
                        loop_path(t));
    }
    if (needs_inner(p, f->cell, at, f->tile, f->ntile))
        step_refuse(b->call, "the index of %s depends on a let inside", f->cell->buf->name);
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

typedef struct Reads {
    Begin *begin;
    bool kept;
} Reads;

static void see_read(Expr *e, void *ctx)
{
    Reads *r = ctx;
    Begin *b = r->begin;

    for (int i = b->from + 1; i <= b->phase && e->op == OP_cell; i++)
        if (loop_writes(b->call->phase[i], e->buf))
            r->kept = false;
}

/* What a first value is made of stays as it is until the loop runs. */
static void check_value(Begin *b, const First *f)
{
    Reads r = { b, true };
    Memo met = { 0 };

    ir_visit(b->call->p, f->store->value, see_read, &r, &met);
    for (int i = 0; i < b->n; i++)
        if (mentions_of(b->call->p, f->store, b->first[i].cell->buf).cell != NULL &&
            b->first[i].cell->buf != f->cell->buf)
            r.kept = false;
    if (!r.kept)
        step_refuse(b->call, "the first values of %s change before the loop", f->cell->buf->name);
    for (int d = 0; d < f->store->out->nargs; d++) {
        Expr *x = f->store->out->arg[d];
        bool loop = false;

        for (int i = 0; i < b->nloop; i++)
            loop = loop || x == loop_use(b->call->p, b->loop[i]->local);
        if (!loop)
            step_refuse(b->call, "the first values of %s are not one for each element",
                        f->cell->buf->name);
    }
}

/* The store of a first value, in the loops that number elements. */
static Node *first_nest(Begin *b, const First *f)
{
    Prog *p = b->call->p;
    Node *n = loop_node(p, f->store);
    const char *label = step_join(p, b->call->line->word[0], ".init");

    for (int d = 0; d < f->cell->nargs; d++)
        n = loop_replace(p, n, f->store->out->arg[d]->local, f->cell->arg[d]);
    n->label = label;
    for (int i = f->ntile - 1; i >= 0; i--) {
        Node loop = *f->tile[i];

        loop.label = label;
        loop.how = FOR_SERIAL;
        n = step_with_body(p, &loop, &n, 1);
    }
    return f->ntile > 0 ? loop_fresh(p, n) : n;
}

/* A register that begins with the element takes the value instead. */
static bool put_in_register(Begin *b, const First *f, Nodes *body)
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

static void begin(StepCall *c, const Spot *at, Nodes *out, void *ctx)
{
    Begin *b = ctx;
    Nodes body = { 0 }, all = { 0 };

    if (b->copies++ > 0)
        step_refuse(c, "there are copies of the loop; do this before unroll and peel");
    for (int i = 0; i < at->node->nbody; i++)
        step_append(c->p, &body, at->node->body[i]);
    for (int i = 0; i < b->n; i++)
        if (!put_in_register(b, &b->first[i], &body))
            step_append(c->p, &all, first_nest(b, &b->first[i]));
    for (int i = 0; i < body.n; i++)
        step_append(c->p, &all, body.node[i]);
    step_append(c->p, out, step_with_body(c->p, at->node, all.node, all.n));
}

static void remove_phase(StepCall *c, int from)
{
    Nodes to = { 0 };

    for (int i = 0; i < c->n; i++)
        if (i != from)
            step_append(c->p, &to, c->phase[i]);
    c->phase = to.node;
    c->n = to.n;
}

/* One cell of each array that begins there, inside the loop, and none elsewhere in its phase. */
static void match(Begin *b, First *f)
{
    StepCall *c = b->call;
    const Buf *buf = f->store->out->buf;
    Mentions in = mentions_of(c->p, b->at.node, buf);

    if (in.cell == NULL || !loop_writes(b->at.node, buf))
        step_refuse(c, "%s begins in the same phase, and %s does not store to it", buf->name,
                    c->line->word[2]);
    if (in.many || mentions_outside(c->p, c->phase[b->phase], b->at.node, buf))
        step_refuse(c, "%s is stored to in several places", buf->name);
    if (begin_of(c, b->phase, buf) != b->from)
        step_refuse(c, "a phase between uses %s", buf->name);
    f->cell = in.cell;
    f->ntile = 0;
    for (int i = 0; i < b->at.node->nbody; i++)
        find_tile(b, f, b->at.node->body[i]);
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
    b.from = begin_of(c, b.phase, buf);
    if (b.from < 0 || !is_begin(&b, c->phase[b.from]))
        step_refuse(c, "no phase before it only gives %s first values", buf->name);
    for (int i = 0; i < b.n; i++)
        match(&b, &b.first[i]);
    for (int i = 0; i < b.n; i++) {
        check_tile(&b, &b.first[i]);
        check_cover(&b, &b.first[i]);
        check_value(&b, &b.first[i]);
    }
    step_edit(c, c->line->word[2], begin, &b);
    remove_phase(c, b.from);
}
