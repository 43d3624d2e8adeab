/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random arguments of the steps that move values rather than loops: arrays and statements that a
 * program has, at loops that may or may not be around them. */
#include "sched/sched_test.h"

typedef struct Use { /* what a loop mentions */
    const Buf *stored[16], *read[16];
    const char *label[16]; /* of the stores */
    int nstored, nread;
} Use;

static void see(Expr *e, void *ctx)
{
    Use *u = ctx;

    if (e->op == OP_cell && e->buf->of == NULL && u->nread < 16)
        u->read[u->nread++] = e->buf;
}

static void collect(Use *u, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell && u->nstored < 16) {
        u->stored[u->nstored] = n->out->buf;
        u->label[u->nstored++] = n->label;
    }
    for (int i = 0; i < n->nbody; i++)
        collect(u, n->body[i]);
}

/* A loop, and often one that stores something. */
static const Node *pick(Rng *r, Prog *p, Node *const *loop, int n, Use *u)
{
    const Node *at = NULL;

    for (int tries = 0; tries < 4 && (at == NULL || u->nstored == 0); tries++) {
        Memo met = { 0 };

        at = loop[rng_int(r, 0, n - 1)];
        *u = (Use){ .nstored = 0 };
        collect(u, at);
        loop_visit(p, at, see, u, &met);
    }
    return at;
}

/* A phase, and often one that makes a temp. */
static const char *statement(Rng *r, const Prog *p)
{
    const Node *n = NULL;
    Use u = { .nstored = 0 };

    for (int tries = 0; tries < 6 && (u.nstored == 0 || u.stored[0]->kind != B_TEMP); tries++) {
        n = p->phase[rng_int(r, 0, p->nphase - 1)];
        u.nstored = 0;
        collect(&u, n);
    }
    return n->label;
}

/* Phases that follow one another, or stand somewhere. */
static void merge(Rng *r, Text *t, const Prog *p)
{
    int at = rng_int(r, 0, p->nphase - 1), n = rng_int(r, 2, 3);

    text_str(t, "merge");
    for (int i = 0; i < n; i++) {
        text_f(t, " %s", p->phase[at]->label);
        if (at + 1 < p->nphase)
            at = rng_int(r, at + 1, at + 2 < p->nphase ? at + 2 : at + 1);
    }
    if (rng_p(r, 50))
        text_f(t, " %s %d", rng_p(r, 50) ? "by" : "each", rng_int(r, 1, 5));
}

/* A step that moves values to shared arrays. */
void shared_step(Arena *a, Rng *r, Text *t, Prog *p, Node *const *loop, int n)
{
    Use u;
    const Node *at = pick(r, p, loop, n, &u);
    const char *name = base_name(a, at);
    int k = u.nstored > 0 ? rng_int(r, 0, u.nstored - 1) : 0;
    const char *label = u.nstored > 0 && u.label[k] != NULL ? u.label[k] : at->label;

    if (rng_p(r, 35))
        text_f(t, "rfactor %s shared", name);
    else if (rng_p(r, 45))
        text_f(t, "cache_write %s %s at %s shared", label,
               u.nstored > 0 ? u.stored[k]->name : "none", name);
    else
        text_f(t, "cache_read %s %s at %s shared", label,
               u.nread > 0 ? u.read[rng_int(r, 0, u.nread - 1)]->name : "none", name);
}

void bind_step(Rng *r, Text *t, const char *name, bool outermost)
{
    static const char *const level[] = { "grid", "block", "warp", "thread", "threads" };
    int k = rng_int(r, outermost ? 0 : 2, outermost && rng_p(r, 90) ? 2 : 4);

    text_f(t, "bind %s %s", name, level[k]);
    if (k == 1 && rng_p(r, 80))
        text_f(t, " %d", rng_int(r, 1, 4));
    if (k == 2 && outermost && rng_p(r, 30))
        text_f(t, " %d", 2 << rng_int(r, 0, 3));
}

void more_step(Arena *a, Rng *r, Text *t, Prog *p, Node *const *loop, int n)
{
    Use u;
    const Node *at = pick(r, p, loop, n, &u);
    const char *name = base_name(a, at);
    int k = u.nstored > 0 ? rng_int(r, 0, u.nstored - 1) : 0;
    const char *label = u.nstored > 0 && u.label[k] != NULL ? u.label[k] : at->label;
    const char *out = u.nstored > 0 ? u.stored[k]->name : "none";
    const char *in = u.nread > 0 ? u.read[rng_int(r, 0, u.nread - 1)]->name : "none";

    switch (rng_int(r, 0, 15)) {
    case 0:
    case 1:
    case 2: text_f(t, "cache_write %s %s at %s", label, out, name); break;
    case 3:
    case 4: text_f(t, "decompose_reduction %s at %s", label, name); break;
    case 5:
    case 6: text_f(t, "compute_at %s at %s", statement(r, p), name); break;
    case 7: text_f(t, "compute_inline %s", statement(r, p)); break;
    case 8: text_f(t, "prefetch %s %s at %s %d", label, in, name, rng_int(r, 1, 8)); break;
    case 9:
        text_f(t, "bind %s %s", name, rng_p(r, 80) ? "threads" : rng_p(r, 50) ? "lanes" : "core");
        break;
    case 10:
    case 11: text_f(t, "cache_read %s %s at %s", label, in, name); break;
    case 12: text_f(t, "rfactor %s", name); break;
    case 13: text_f(t, "pack %s %s by %d", label, in, rng_int(r, 1, 5)); break;
    default: merge(r, t, p); break;
    }
}
