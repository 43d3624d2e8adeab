/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Who runs the iterations of loops, where the lanes of vectors are threads: what levels mean, and
 * which of them fit each other. */
#include "ir/ir_int.h"
#include "ir/loop.h"

#include <stdio.h>

bool loop_has_vector(const Node *n)
{
    bool has = n->kind == N_FOR && n->lanes > 1;

    for (int i = 0; i < n->nbody && !has; i++)
        has = loop_has_vector(n->body[i]);
    return has;
}

LoopLevel loop_level(const Node *phase)
{
    return phase->level != LEVEL_NONE ? phase->level
           : loop_has_vector(phase)   ? LEVEL_WARP
                                      : LEVEL_THREAD;
}

static bool binds(const Node *n, const Local *l)
{
    bool does = n->local == l;

    for (int i = 0; i < n->nbody && !does; i++)
        does = binds(n->body[i], l);
    return does;
}

/* To elements, or to locals from outside of the loop. */
static bool stores(const Node *n, bool elements, const Node *loop)
{
    bool does = n->kind == N_STORE && (n->out->op == OP_cell) == elements &&
                (elements || !binds(loop, n->out->local));

    for (int i = 0; i < n->nbody && !does; i++)
        does = stores(n->body[i], elements, loop);
    return does;
}

bool loop_is_of_first(const Node *vector)
{
    return stores(vector, true, vector) && !stores(vector, false, vector);
}

static int64_t common(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int64_t loop_divisor(Expr *e, const LoopKnown *known)
{
    enum { MOST = 1 << 20 }; /* of a divisor: more is of no use, and products stay small */
    int64_t a, b;

    switch (e->op) {
    case OP_int: return e->i == INT64_MIN ? 1 : e->i < 0 ? -e->i : e->i;
    case OP_size: return e->size->is > 0 ? e->size->is : 1;
    case OP_local:
        e = known != NULL ? known[e->local->id].value : NULL;
        return e != NULL ? loop_divisor(e, known) : 1;
    case OP_add:
    case OP_sub:
    case OP_mul: break;
    default: return 1;
    }
    a = loop_divisor(e->arg[0], known);
    b = loop_divisor(e->arg[1], known);
    if (e->op != OP_mul)
        return common(a, b);
    a = a > MOST ? common(a, MOST) : a;
    b = b > MOST ? common(b, MOST) : b;
    return a * b;
}

static bool divides(int64_t m, Expr *e, const LoopKnown *known)
{
    return loop_divisor(e, known) % m == 0;
}

bool loop_is_whole(const Node *n, const LoopKnown *known)
{
    int64_t round = (int64_t)n->lanes * (n->regs > 1 ? n->regs : 1);

    if (n->lo->op == OP_int && n->hi->op == OP_int)
        return (n->hi->i - n->lo->i) % round == 0;
    return divides(round, n->lo, known) && divides(round, n->hi, known);
}

bool loop_is_wide(const Node *n, Expr *cell, const LoopKnown *known)
{
    LoopIndex x;
    bool wide = n->packed && loop_index_of(cell, n->local, &x) && x.stride == 1;

    wide = wide && x.constant % n->regs == 0 && divides(n->regs, n->lo, known);
    for (int i = 0; wide && i < x.n; i++)
        wide = x.times[i] % n->regs == 0 || divides(n->regs, x.leaf[i], known);
    return wide;
}

typedef struct Levels {
    Prog *p;
    const Node *phase;
    const Node *warp, *thread, *vector; /* the loop around that is dealt out; or NULL */
    bool shared;     /* an array of one was seen */
    const char *why; /* what is wrong first, and at which node; NULL: nothing */
    const Node *at;
    const Node **bound_in; /* by Local.id: the innermost of these around its let */
} Levels;

static void object(Levels *v, const Node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void object(Levels *v, const Node *n, const char *fmt, ...)
{
    Text t = { .arena = v->p->arena };
    char why[400];
    va_list ap;

    if (v->why != NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    text_str(&t, why);
    v->why = t.s;
    v->at = n;
}

static const char *name_of(const Node *n)
{
    return n->local->name != NULL ? n->local->name : "(unnamed)";
}

static void check_width(Levels *v, const Node *n)
{
    bool power = (n->width & (n->width - 1)) == 0;

    if (n->width == 0)
        return;
    if (n->level == LEVEL_THREAD || n->level == LEVEL_NONE || n != v->phase)
        object(v, n, "a width is said of a phase on warp (lanes) or on block (warps)");
    if (n->level == LEVEL_WARP && (!power || n->width < 2))
        object(v, n, "a part of a warp has 2, 4, 8, 16, 32 or 64 lanes, not %d", n->width);
    if (n->level == LEVEL_BLOCK && n->width > 32)
        object(v, n, "a block has 1 to 32 warps, not %d", n->width);
}

/* A loop inside a phase that is dealt to its warps or threads. */
static void check_dealt(Levels *v, const Node *n)
{
    LoopLevel of = loop_level(v->phase);

    if (v->phase->kind != N_FOR || v->phase->how != FOR_PARALLEL)
        object(v, n, "%s is on %s, but its phase has no loop; write `phase %s for ...`",
               name_of(n), loop_level_word[n->level], v->phase->label);
    if (n->level == LEVEL_BLOCK)
        object(v, n, "only the loop of a phase is on block, and %s is inside one", name_of(n));
    if (n->level == LEVEL_WARP && of != LEVEL_BLOCK)
        object(v, n, "%s is on warp, but only a phase on block has several warps", name_of(n));
    if (n->level == LEVEL_THREAD && of == LEVEL_THREAD)
        object(v, n, "%s is on thread, but its phase has one thread for an iteration", name_of(n));
    if (n->lanes > 1)
        object(v, n, "the vector loop %s has its lanes; it is on no level", name_of(n));
    if (v->vector != NULL || v->thread != NULL || (n->level == LEVEL_WARP && v->warp != NULL))
        object(v, n, "%s is on %s inside of %s, which is dealt out already", name_of(n),
               loop_level_word[n->level],
               name_of(v->vector != NULL   ? v->vector
                       : v->thread != NULL ? v->thread
                                           : v->warp));
}

static void check_vector(Levels *v, const Node *n)
{
    const Node *phase = v->phase;

    if (loop_level(phase) == LEVEL_THREAD || v->thread != NULL)
        object(v, n, "the vector loop %s is run by one thread; put %s on warp", name_of(n),
               v->thread != NULL ? name_of(v->thread) : "the phase");
    if (phase->level == LEVEL_WARP && phase->width > 0 && n->lanes != phase->width)
        object(v, n, "the vector loop %s has %d lanes, and its phase is on warp %d", name_of(n),
               n->lanes, phase->width);
    if (n->packed && n->regs != 2 && n->regs != 4 && n->regs != 8)
        object(v, n, "a lane of a packed loop has 2, 4 or 8 iterations; write `by 2 packed`");
}

/* What one warp or thread stores to a local, the others do not see. */
static void check_store(Levels *v, const Node *n)
{
    const Node *own = v->thread != NULL ? v->thread : v->warp;

    if (n->atomic && (n->out->op != OP_cell || n->op == A_SET || n->nat > 0))
        object(v, n, "an atomic store adds to an element, or keeps the larger or smaller");
    if (own != NULL && n->out->op == OP_local && v->bound_in[n->out->local->id] != own)
        object(v, n,
               "the local %s is from outside of %s, which is on %s: each would have its own; store "
               "to an element of a shared array",
               n->out->local->name != NULL ? n->out->local->name : "(unnamed)", name_of(own),
               loop_level_word[own->level]);
}

static void check_node(Levels *v, const Node *n)
{
    Levels outer = *v;

    if (n->local != NULL)
        v->bound_in[n->local->id] = v->thread != NULL ? v->thread : v->warp;
    if (n->kind == N_FOR) {
        check_width(v, n);
        if (n == v->phase && n->level != LEVEL_NONE && n->how != FOR_PARALLEL)
            object(v, n, "%s is on %s, but its iterations run one after the other", name_of(n),
                   loop_level_word[n->level]);
        if (n->level != LEVEL_NONE && n != v->phase)
            check_dealt(v, n);
        if (n->lanes > 1)
            check_vector(v, n);
        v->vector = n->lanes > 1 ? n : v->vector;
        v->warp = n != v->phase && n->level == LEVEL_WARP ? n : v->warp;
        v->thread = n != v->phase && n->level == LEVEL_THREAD ? n : v->thread;
    }
    if (n->kind == N_STORE)
        check_store(v, n);
    for (int i = 0; i < n->nbody; i++)
        check_node(v, n->body[i]);
    v->vector = outer.vector;
    v->warp = outer.warp;
    v->thread = outer.thread;
}

static void check_shared(Levels *v, const Buf *b)
{
    v->shared = true;
    if (b->nfull != 1 || ir_const_total(b->full[0]) < 0)
        object(v, v->phase, "%s is shared, so it has one dimension of a constant length", b->name);
    if (b->init != NULL)
        object(v, v->phase, "%s is shared, so it has no initial value; store to it", b->name);
}

static void see(Expr *e, void *ctx)
{
    if (e->op == OP_cell && e->buf->kind == B_SHARED)
        check_shared(ctx, e->buf);
}

const char *loop_level_objection(Prog *p, Node *const *phase, int n, const Node **at)
{
    Levels v = { .p = p, .bound_in = arena_array(p->arena, p->nlocal, sizeof *v.bound_in) };
    Memo met = { 0 };

    for (int i = 0; i < n && v.why == NULL; i++) {
        int64_t bytes;

        v.phase = phase[i];
        loop_visit(p, v.phase, see, &v, &met);
        bytes = v.shared ? loop_shared_bytes(p, v.phase) : 0;
        if (bytes > LOOP_MOST_SHARED)
            object(&v, v.phase,
                   "its shared arrays take %lld bytes, and no machine has more than %d",
                   (long long)bytes, LOOP_MOST_SHARED);
        check_node(&v, v.phase);
    }
    *at = v.at;
    return v.why;
}

void loop_check_levels(Prog *p)
{
    const Node *at;
    const char *why = loop_level_objection(p, p->phase, p->nphase, &at);

    if (why == NULL)
        return;
    p->at = at->place;
    ir_throw(p, ST_CHECK, "%s%s%s", at->label != NULL ? at->label : "",
             at->label != NULL ? ": " : "", why);
}
