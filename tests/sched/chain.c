/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random steps, one after the other.  One that is refused has a reason and leaves the program as
 * it was; what is left at the end computes the same. */
#include "sched/sched_test.h"
#include "unit/trap.h"

#include <string.h>

static const char *pick(Arena *a, Rng *r, Node *const *loop, int n)
{
    return base_name(a, loop[rng_int(r, 0, n - 1)]);
}

/* The loops from one on inwards, some of them, in another order. */
static void reorder(Arena *a, Rng *r, Text *t, Node *const *loop, int n)
{
    const Node *at = loop[rng_int(r, 0, n - 1)];
    const char *name[6];
    int k = 0;

    while (at != NULL && k < 6) {
        const Node *next = at->nbody > 0 ? at->body[at->nbody - 1] : NULL;

        if (at->kind == N_FOR && !(k > 0 && rng_p(r, 15)))
            name[k++] = base_name(a, at);
        at = next;
        if (k > 1 && rng_p(r, 25))
            break;
    }
    text_str(t, "reorder");
    if (k < 2 || rng_p(r, 3))
        name[k++] = pick(a, r, loop, n);
    for (; k > 0; k--) {
        int i = rng_int(r, 0, k - 1);

        text_f(t, " %s", name[i]);
        name[i] = name[k - 1];
    }
}

static void fuse(Arena *a, Rng *r, Text *t, Node *const *loop, int n)
{
    int i = rng_int(r, 0, n - 1);

    text_f(t, "fuse %s %s", base_name(a, loop[i]),
           i + 1 < n && !rng_p(r, 5) ? base_name(a, loop[i + 1]) : pick(a, r, loop, n));
}

/* The text of a random step with arguments that may make sense. */
static const char *random_step(Arena *a, Rng *r, Prog *p, bool levels)
{
    static const char *const rest[] = { "", " tail", " mask", " exact" };
    Node **loop;
    int n = base_loops(a, p, &loop);
    Text t = { .arena = a };

    if (n == 0)
        return NULL;
    if (p->stage == STAGE_LOOPS && rng_p(r, 30)) {
        text_f(&t, "tensorize %s", pick(a, r, loop, n));
        if (rng_p(r, 60))
            text_f(&t, " %d %d", rng_int(r, 1, 5), rng_int(r, 1, 40));
        return t.s;
    }
    if (p->stage == STAGE_LOOPS) {
        text_f(&t, "vectorize %s", pick(a, r, loop, n));
        if (rng_p(r, 70))
            text_f(&t, " %d", 2 << rng_int(r, 0, 3));
        if (t.s[t.n - 1] <= '9' && rng_p(r, 30) && strchr(t.s, ' ') != strrchr(t.s, ' '))
            text_f(&t, " by %d%s", rng_int(r, 1, 4), levels && rng_p(r, 50) ? " packed" : "");
        return t.s;
    }
    if (levels && rng_p(r, 45)) {
        const Node *phase = p->phase[rng_int(r, 0, p->nphase - 1)];
        bool outermost = phase->kind == N_FOR && rng_p(r, 50);

        bind_step(r, &t, outermost ? base_name(a, phase) : pick(a, r, loop, n), outermost);
        return t.s;
    }
    if (levels && rng_p(r, 35)) {
        shared_step(a, r, &t, p, loop, n);
        return t.s;
    }
    switch (rng_int(r, 0, 12)) {
    case 0:
    case 1:
    case 2:
        text_f(&t, "split %s %d%s", pick(a, r, loop, n), rng_int(r, 1, 5), rest[rng_int(r, 0, 3)]);
        break;
    case 3:
    case 4:
    case 5: reorder(a, r, &t, loop, n); break;
    case 6: fuse(a, r, &t, loop, n); break;
    case 7: text_f(&t, "unroll %s", pick(a, r, loop, n)); break;
    case 8: text_f(&t, "peel %s", pick(a, r, loop, n)); break;
    case 9: text_f(&t, "parallel %s", pick(a, r, loop, n)); break;
    default: more_step(a, r, &t, p, loop, n); break;
    }
    return t.s;
}

static const char *printed(Arena *a, Prog *p)
{
    Text t = { .arena = a };

    ir_print(&t, p);
    return t.s;
}

static void fail(Arena *a, Chain *c, const char *what, const char *step)
{
    Text t = { .arena = a };

    text_f(&t, "%s: %s", step, what);
    c->bad = c->bad != NULL ? c->bad : t.s;
}

static int index_of(const Step *s)
{
    return (int)(s - step_table);
}

/* The step is taken, or refused for a reason that names it. */
static void take(Arena *a, Chain *c, const char *text)
{
    StepLine *line;
    Prog *p = c->prog;
    const char *before = c->text != NULL ? c->text : printed(a, p);

    c->text = before;

    if (step_lines(p, text, &line) != 1) {
        fail(a, c, "is no step", text);
        return;
    }
    if (CATCH(a->err, step_apply(p, line, base_target())) != ST_OK) {
        c->refused++;
        c->left[index_of(line->step)]++;
        if (a->err->code != ST_ARG || strstr(a->err->msg, line->step->name) == NULL ||
            strstr(a->err->msg, ": ") == NULL)
            fail(a, c, a->err->msg, text);
        if (strcmp(before, printed(a, p)) != 0)
            fail(a, c, "is refused and has changed the program", text);
        err_clear(a->err); /* the trap around this one asks it too */
        return;
    }
    c->text = NULL;
    c->took[index_of(line->step)]++;
    c->taken[c->ntaken++] = text;
    if (CATCH(a->err, ir_check(p)) != ST_OK)
        fail(a, c, a->err->msg, text);
    err_clear(a->err);
}

/* Prints, reads back and is the same, names of loops included. */
static void check_text(Arena *a, Chain *c)
{
    const char *text = printed(a, c->prog);
    Prog *q = ir_parse(a, "printed", text, strlen(text));

    ir_check(q);
    if (strcmp(text, printed(a, q)) != 0 || !ir_equal(c->prog, q))
        fail(a, c, "reads back as another program", text);
}

void chain_to_loops(Prog *p)
{
    Kernel k = { .p = p, .phase = (Node **)p->phase, .n = p->nphase, .cap = p->nphase };

    lower_flatten(&k);
    lower_hoist(&k);
    loop_settle(p, k.phase, k.n); /* as every pass does */
}

static bool has_level(const Node *n)
{
    bool has = n->level != LEVEL_NONE;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_level(n->body[i]);
    return has;
}

/* Every barrier that is needed can be met, or the checker says what cannot; no order of threads has
 * a race. */
const char *chain_threads(Arena *a, const Base *b, const Prog *tree)
{
    Prog *p = ir_copy(a, tree);
    Kernel k;
    Status st;

    if (p->stage == STAGE_POSITIONS)
        chain_to_loops(p);
    k = (Kernel){ .p = p, .phase = (Node **)p->phase, .n = p->nphase, .cap = p->nphase };
    st = CATCH(a->err, lower_barriers(&k));
    if (st != ST_OK) {
        bool apart = strstr(a->err->msg, "put it outside") != NULL;
        const char *why = arena_copy(a, a->err->msg, strlen(a->err->msg) + 1);

        err_clear(a->err);
        return apart ? NULL : why;
    }
    ir_check(p);
    return base_compare(a, b, p);
}

void chain_random(Arena *a, Rng *r, Chain *c)
{
    int n = rng_int(r, 1, CHAIN_STEPS), lanes = rng_p(r, 40) ? rng_int(r, 1, 3) : 0;
    const char *step;

    c->prog = ir_copy(a, c->base->tree);
    for (int i = 0; i < n && c->bad == NULL; i++)
        if ((step = random_step(a, r, c->prog, c->levels)) != NULL)
            take(a, c, step);
    if (c->bad == NULL && c->ntaken > 0 && rng_p(r, 70))
        step_cut_tails(c->prog);
    if (c->bad == NULL && lanes > 0) {
        chain_to_loops(c->prog);
        c->text = NULL;
        for (int i = 0; i < lanes && c->bad == NULL; i++)
            if ((step = random_step(a, r, c->prog, c->levels)) != NULL)
                take(a, c, step);
    }
    if (c->bad == NULL && rng_p(r, 20))
        check_text(a, c);
    c->unfit = c->bad == NULL && base_is_unfit(a, c->base, c->prog);
    if (c->bad == NULL && c->ntaken > 0 && !c->unfit)
        c->bad = base_compare(a, c->base, c->prog);
    for (int i = 0; i < c->prog->nphase; i++)
        c->bound = c->bound || has_level(c->prog->phase[i]);
    if (c->bad == NULL && c->bound && !c->unfit)
        c->bad = chain_threads(a, c->base, c->prog);
}
