/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One program through the pipeline, looked at after each pass. */
#include "api/api_int.h"
#include "grad/grad.h"
#include "interp/interp.h"
#include "ir/loop.h"
#include "lower/lower.h"
#include "stage/stage_test.h"
#include "unit/trap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Run {
    const Trial *t;
    Arena *a;
    Finding f;
    Env *want;
    Status status; /* of the run that gave it */
    const char *error;
} Run;

static void fail(Run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(Run *r, const char *fmt, ...)
{
    Text t = { .arena = r->a };
    char why[2000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    text_str(&t, why);
    r->f.bad = r->f.bad != NULL ? r->f.bad : t.s;
}

static bool same(const Array *x, const Array *y, int64_t i)
{
    size_t n = ir_type[x->type].bytes;

    if (memcmp((char *)x->data + (size_t)i * n, (char *)y->data + (size_t)i * n, n) == 0)
        return true;
    return ir_type[x->type].floats && isnan(array_float(x, i)) && isnan(array_float(y, i));
}

static void compare_ints(Run *r, const Axis *u, const Array *x, const Array *y)
{
    bool equal = x->n == y->n;

    for (int64_t k = 0; k < y->n && equal; k++)
        equal = array_int(x, k) == array_int(y, k);
    if (!equal)
        fail(r, "the built axis %s has other entries", u->name);
}

static void compare_built(Run *r, const Prog *q, const Env *got)
{
    for (int i = 0; i < r->t->prog->naxis; i++) {
        const Axis *u = r->t->prog->axis[i], *v;

        if (u->extent != X_BUILT)
            continue;
        v = ir_find_axis(q, u->name);
        compare_ints(r, u, &got->start[v->id], &r->want->start[i]);
        for (int k = 0; k < u->ncoord; k++)
            compare_ints(r, u, &got->coord[v->id][k], &r->want->coord[i][k]);
    }
}

static void compare(Run *r, const Prog *q, const Env *got)
{
    compare_built(r, q, got);
    for (int i = 0; i < r->t->prog->nbuf; i++) {
        const Buf *b = r->t->prog->buf[i], *c = ir_find_buf(q, b->name);
        const Array *y = &r->want->buf[i], *x = c == NULL ? NULL : &got->buf[c->id];

        if (!b->written || b->kind == B_TEMP || loop_is_work(b))
            continue;
        if (x == NULL || x->n != y->n || x->type != y->type) {
            fail(r, "%s has another length or type", b->name);
            return;
        }
        for (int64_t k = 0; k < y->n; k++)
            if (!same(x, y, k)) {
                fail(r, "%s[%lld] is %.17g, not %.17g", b->name, (long long)k,
                     ir_type[x->type].floats ? array_float(x, k) : (double)array_int(x, k),
                     ir_type[x->type].floats ? array_float(y, k) : (double)array_int(y, k));
                return;
            }
    }
}

/* Uneven ranges, the last first. */
static void cut(void *with, int64_t n, InterpRange *run, void *job)
{
    Rng *rng = with;

    while (n > 0) {
        int64_t begin = n - rng_int(rng, 1, 5);

        begin = begin < 0 ? 0 : begin;
        run(job, begin, n);
        n = begin;
    }
}

/* The arrays of the axes that passes have made; a text says of each what it is made from. */
static Env *bind(Run *r, const Prog *q)
{
    Env *env = data_bind(r->a, r->t->in, q);

    for (int i = 0; i < q->naxis; i++)
        if (q->axis[i]->from != NULL)
            data_made(r->a, q, env, q->axis[i], 1 + (int64_t)(r->t->seed % 4));
    return env;
}

/* What a tree may end with: what it checks, sums that overflow, what does not fit an i32.  Anything
 * else it ought to have checked. */
static bool is_promised(const char *msg)
{
    for (int f = FAULT_NONE + 1; f < FAULT_COUNT; f++)
        if (strstr(msg, loop_fault((Fault)f)) != NULL)
            return true;
    return strstr(msg, "the sum of an element overflows") != NULL ||
           strstr(msg, "does not fit an i32") != NULL;
}

/* The tree that a pass gave, or its text read again: these are the same. */
static void check_run(Run *r, Prog *of, Prog *read)
{
    Rng rng = { r->t->seed };
    Prog *q = r->t->seed % 2 == 0 ? of : read;
    Env *got = bind(r, q);
    Err *err = r->a->err;
    Status st = CATCH(err, interp_threads(r->a, q, got, cut, &rng, 1 + r->t->seed));

    if (st == ST_OK && r->status == ST_OK)
        compare(r, q, got);
    else if (st == ST_OK)
        fail(r, "no error, but over coordinates: %s", r->error);
    else if (st != ST_OK && r->status == ST_OK)
        fail(r, "%s", err->msg);
    else if (st != ST_OK && (st != ST_RUN || !is_promised(err->msg)))
        fail(r, "an error of the tree itself: %s", err->msg);
    err_clear(err); /* the trap around this one asks it too */
    r->f.stages++;
}

/* p is checked, and printed and read again to a program that is the same in every way. */
static Prog *check_text(Run *r, Prog *p, Plant plant)
{
    Text first = { .arena = r->a }, second = { .arena = r->a };
    Prog *q;

    ir_print(&first, p);
    r->f.shown = first.s;
    ir_check(p);
    r->f.planted = plant_print(plant, first.s) || r->f.planted;
    q = ir_parse(r->a, "printed", first.s, first.n);
    ir_check(q);
    ir_print(&second, q);
    if (strcmp(first.s, second.s) != 0)
        fail(r, "printed again it is\n%s", second.s);
    else if (!ir_equal(p, q) || ir_hash(p) != ir_hash(q))
        fail(r, "what was printed reads as another program");
    else if (!ir_equal(p, ir_copy(r->a, p)) || !ir_equal(q, ir_copy(r->a, q)))
        fail(r, "the copy is another program");
    return q;
}

/* Passes that add or multiply in another order are for programs whose numbers do not round. */
static bool is_for_us(const Run *r, const Pass *s)
{
    if (strcmp(s->name, "transpose") == 0)
        return r->t->rerooted;
    return r->t->exact || (s->flags & PASS_REORDERS) == 0;
}

static Aim aim_of(const Run *r, Target *target)
{
    uint64_t seed = r->t->seed;
    int wide = 2 << seed % 3; /* lanes of f64 */
    Aim aim;

    *target = (Target){ .unit = { VECTOR_LANES(2 * wide, wide), 16 << seed % 2, VECTOR_CORE } };
    if (r->t->warp) /* as many of each type */
        *target = (Target){ .kind = KIND_WARP,
                            .unit = { VECTOR_LANES(wide, wide), 96, VECTOR_CORE } };
    aim = api_aim(target);
    sched_parse(r->a->err, random_sets(r->a, &aim.sched.policy, seed), &aim.sched);
    aim.sched.policy.panel = seed % 5 < 2 ? 3 + 5 * (int)(seed % 2) : 0;
    aim.sched.policy.stream = seed % 2 == 0;
    aim.sched.policy.pack = seed % 3 != 0;
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (!is_for_us(r, s))
            aim.skip |= (uint64_t)1 << (s - api_pass);
    return aim;
}

static void passes(Run *r, Plant plant)
{
    Prog *p = ir_copy(r->a, r->t->prog);
    Kernel k = { .p = p };
    Target target;
    Aim aim = aim_of(r, &target);

    for (const Pass *s = api_pass; s->name != NULL && r->f.bad == NULL; s++) {
        r->f.after = s->name;
        api_run_pass(s, &k, &aim);
        if (p->stage == STAGE_COORDINATES) {
            check_text(r, p, PLANT_NONE);
            continue;
        }
        r->f.planted = plant_tree(plant, p) || r->f.planted;
        check_run(r, p, check_text(r, p, plant));
        if (plant != PLANT_NONE && r->f.planted)
            return;
    }
}

/* All passes but one, with a defect in another; only the end is compared. */
static void passes_without(Run *r, const Pass *skipped, const Pass *defect)
{
    Prog *p = ir_copy(r->a, r->t->prog);
    Kernel k = { .p = p };
    Target target;
    Aim aim = aim_of(r, &target);

    if (skipped != NULL)
        aim.skip |= (uint64_t)1 << (skipped - api_pass);
    for (const Pass *s = api_pass; s->name != NULL; s++) {
        api_run_pass(s, &k, &aim);
        if (s == defect && (aim.skip >> (s - api_pass) & 1) == 0) {
            r->f.planted = plant_tree(PLANT_BOUND, p);
            k.phase = (Node **)p->phase;
        }
    }
    r->f.after = skipped != NULL ? skipped->name : "all";
    check_run(r, p, check_text(r, p, PLANT_NONE));
}

/* The program itself first: false when there is nothing to compare with. */
static bool start(Run *r)
{
    Err *err = r->a->err;
    Text msg = { .arena = r->a };

    r->want = data_bind(r->a, r->t->in, r->t->prog);
    r->status = CATCH(err, interp_run(r->a, r->t->prog, r->want));
    text_str(&msg, err->msg);
    r->error = msg.s;
    r->f.failed = r->status != ST_OK;
    return r->status != ST_BIND;
}

static void end(Run *r, Status status)
{
    Err *err = r->a->err;

    if (status == ST_LIMIT)
        r->f.limited = true;
    else if (err->code != ST_OK)
        fail(r, "%d:%d: %s\n%s", err->line, err->col, err->msg, err->src);
}

Finding trial_run(const Trial *t, Plant plant)
{
    Run r = { .t = t, .a = t->arena };

    if (start(&r))
        end(&r, CATCH(t->arena->err, passes(&r, plant)));
    return r.f;
}

enum { ORDERS = 3 }; /* of threads */

/* Whether some order of the threads of this tree has a race; its message. */
static const char *race_of(Run *r, Prog *p)
{
    const char *race = NULL;

    for (uint64_t i = 0; i < ORDERS && race == NULL; i++) {
        Rng rng = { r->t->seed + i };
        Text msg = { .arena = r->a };
        Env *env = bind(r, p);

        CATCH(r->a->err, interp_threads(r->a, p, env, cut, &rng, r->t->seed * ORDERS + i));
        text_str(&msg, r->a->err->msg);
        race = strstr(msg.s, "race: ");
        err_clear(r->a->err);
    }
    return race;
}

/* The tree without its barrier number *n, counted down. */
static Node *less_barrier(Prog *p, const Node *from, int *n)
{
    Node *c = loop_node(p, from);
    Node **body = (Node **)c->body;
    int m = 0;

    for (int i = 0; i < c->nbody; i++) {
        if (body[i]->kind == N_BARRIER && (*n)-- == 0)
            continue;
        body[m++] = less_barrier(p, body[i], n);
    }
    c->nbody = m;
    return c;
}

/* False: there is no such barrier. */
static bool without_barrier(Run *r, const Prog *of, int n, Barriers *sum)
{
    Prog *p = ir_copy(r->a, of);
    Node **phase = arena_copy(r->a, p->phase, (size_t)p->nphase * sizeof *phase);
    Text text = { .arena = r->a };
    bool refused;
    const char *race;

    for (int i = 0; i < p->nphase && n >= 0; i++)
        phase[i] = less_barrier(p, phase[i], &n);
    if (n >= 0)
        return false;
    p->phase = phase;
    refused = CATCH(r->a->err, ir_check(p)) != ST_OK;
    err_clear(r->a->err);
    race = race_of(r, p);
    sum->n++;
    sum->refused += refused;
    sum->raced += refused && race != NULL;
    if (refused || race == NULL)
        return true;
    ir_print(&text, p);
    r->f.shown = text.s;
    fail(r, "the checker takes a tree without one of its barriers, and it has a %s", race);
    return true;
}

/* The program as threads run it: a tree gets its barriers, any other one all passes. */
static Prog *threads_of(Run *r)
{
    Prog *p = ir_copy(r->a, r->t->prog);
    Kernel k = { .p = p, .phase = (Node **)p->phase, .n = p->nphase };
    Target target;
    Aim aim = aim_of(r, &target);

    if (p->stage == STAGE_LOOPS)
        lower_barriers(&k);
    else
        for (const Pass *s = api_pass; s->name != NULL; s++)
            api_run_pass(s, &k, &aim);
    return p;
}

/* The barriers of a tree: all together they are enough. */
static void tree(Run *r)
{
    Prog *p = threads_of(r);
    const char *race;

    r->f.after = "barriers";
    check_run(r, p, check_text(r, p, PLANT_NONE));
    race = race_of(r, p);
    if (race != NULL)
        fail(r, "%s", race);
}

Finding trial_tree(const Trial *t)
{
    Run r = { .t = t, .a = t->arena };

    if (start(&r))
        end(&r, CATCH(t->arena->err, tree(&r)));
    return r.f;
}

static void barriers(Run *r, Barriers *sum)
{
    Prog *p = threads_of(r);

    for (int i = 0; r->f.bad == NULL && without_barrier(r, p, i, sum); i++)
        ;
}

Finding trial_barriers(const Trial *t, Barriers *sum)
{
    Run r = { .t = t, .a = t->arena };

    if (start(&r))
        end(&r, CATCH(t->arena->err, barriers(&r, sum)));
    return r.f;
}

Finding trial_without(const Trial *t, const Pass *skipped, const Pass *defect)
{
    Run r = { .t = t, .a = t->arena };

    if (start(&r))
        end(&r, CATCH(t->arena->err, passes_without(&r, skipped, defect)));
    return r.f;
}

Trial trial_random(Arena *a, uint64_t seed)
{
    Knobs knobs = { .exact = seed % 4 != 3, .poly = seed % 4 == 0, .stmts = seed % 8 > 5 ? 2 : 0 };
    Case *c = gen_case(a, seed, &knobs);

    return (Trial){ .arena = a,
                    .seed = seed,
                    .prog = c->prog,
                    .text = c->text,
                    .in = c->data,
                    .exact = knobs.exact,
                    .rerooted = seed % 3 == 0 };
}

/* Small integers for what a gradient reads beyond the arrays of its program. */
static void draw_rest(Trial *t)
{
    Env *env = data_bind(t->arena, t->in, t->prog);
    Rng r = { t->seed };

    interp_check(t->arena, t->prog, env);
    for (int i = 0; i < t->prog->nbuf; i++) {
        const Buf *b = t->prog->buf[i];
        Layout l;
        Array x;

        if (env->buf[i].data != NULL || b->kind == B_CONST || b->kind == B_TEMP ||
            (b->written && b->kind != B_INOUT))
            continue;
        ir_layout(t->arena, t->prog, env, b, &l);
        x = array_new(t->arena, b->type, l.n);
        for (int64_t k = 0; k < l.n; k++)
            array_set(&x, k, 0, rng_int(&r, -2, 2));
        data_array(t->arena, t->in, b->name, x);
    }
}

static void gradient(const Trial *t, Trial *out)
{
    Env *env = data_bind(t->arena, t->in, t->prog);
    Text text = { .arena = t->arena };

    interp_run(t->arena, t->prog, env);
    *out = *t;
    out->prog = grad_reverse(t->arena, t->prog, &(GradOptions){ 0 });
    out->in = data_of_env(t->arena, t->prog, env);
    out->exact = t->seed % 4 == 0; /* of polynomials only */
    draw_rest(out);
    ir_print(&text, out->prog);
    out->text = text.s;
}

bool trial_gradient(const Trial *t, Trial *out)
{
    return CATCH(t->arena->err, gradient(t, out)) == ST_OK;
}
