/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A random program, its loops, and whether a tree computes the same. */
#include "api/api_int.h"
#include "interp/interp.h"
#include "sched/sched_test.h"
#include "unit/trap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Interprets and lowers. */
static bool make(Arena *a, Base *b)
{
    bool good;

    b->want = data_bind(a, b->in, b->prog);
    b->status = CATCH(a->err, interp_run(a, b->prog, b->want));
    good = b->status == ST_OK || b->status == ST_RUN;
    err_clear(a->err);
    if (!good)
        return false;
    b->tree = ir_copy(a, b->prog);
    if (CATCH(a->err, lower_positions(b->tree)) == ST_OK)
        return true;
    if (a->err->code != ST_LIMIT)
        err_jump(a->err);
    err_clear(a->err);
    return false;
}

/* What kernel/example.c hands on. */
void subject_and_gradient(Arena *a, Subjects *all, Subject s, bool exact_gradient)
{
    (void)exact_gradient;
    all->s = arena_grow(a, all->s, all->n, &all->cap, sizeof *all->s);
    all->s[all->n++] = s;
}

/* Small integers for all floats, so that sums are the same in any order. */
static Data *whole(Arena *a, const Base *b)
{
    Rng r = { 1 };
    Data *d = base_redraw(a, b, &r);

    for (int i = 0; i < d->n; i++) /* positions and coordinates stay */
        if (!d->item[i].is_size && !ir_type[d->item[i].array.type].floats)
            d->item[i].array = b->in->item[i].array;
    return d;
}

bool base_file(Arena *a, const char *path, Base *b)
{
    Subjects all = { .unit = { .registers = 0 } };

    example_add(a, &all, path);
    *b = (Base){ .seed = 1, .text = all.s[0].text, .prog = all.s[0].prog, .in = all.s[0].in };
    b->in = whole(a, b);
    b->rounds = true;
    return make(a, b);
}

bool base_random(Arena *a, uint64_t seed, Base *b)
{
    Knobs knobs = { .exact = true,
                    .poly = seed % 3 == 0,
                    .no_built = seed % 4 > 0,
                    .stmts = seed % 2 ? 2 : 4,
                    .risk = seed % 7 == 0 ? 100 : -1 };
    Case *c = gen_case(a, seed, &knobs);

    *b = (Base){ .seed = seed, .text = c->text, .prog = c->prog, .in = c->data };
    return make(a, b);
}

/* Far less than a term of a sum, far more than rounding. */
static bool is_near(const Array *x, const Array *y, int64_t i)
{
    double a = array_float(x, i), b = array_float(y, i);
    double eps = x->type == T_f64 ? 1e-11 : x->type == T_f32 ? 1e-4 : 0.03;

    return fabs(a - b) <= eps * fmax(1, fabs(b));
}

static bool same(const Base *b, const Array *x, const Array *y, int64_t i)
{
    size_t n = ir_type[x->type].bytes;

    if (b->rounds && ir_type[x->type].floats && is_near(x, y, i))
        return true;

    if (memcmp((char *)x->data + (size_t)i * n, (char *)y->data + (size_t)i * n, n) == 0)
        return true;
    return ir_type[x->type].floats &&
           ((isnan(array_float(x, i)) && isnan(array_float(y, i))) ||
            array_float(x, i) == array_float(y, i)); /* 0 and -0, of which max= keeps the first */
}

static bool same_ints(const Array *x, const Array *y)
{
    bool equal = x->n == y->n;

    for (int64_t i = 0; i < y->n && equal; i++)
        equal = array_int(x, i) == array_int(y, i);
    return equal;
}

/* Of trees that are copies of b->tree: all of them number alike. */
bool base_same(const Base *b, const Env *x, const Env *y)
{
    bool equal = true;

    for (int i = 0; i < b->prog->naxis && equal; i++)
        for (int k = -1; b->prog->axis[i]->extent == X_BUILT && k < b->prog->axis[i]->ncoord; k++)
            equal = equal && same_ints(k < 0 ? &x->start[i] : &x->coord[i][k],
                                       k < 0 ? &y->start[i] : &y->coord[i][k]);
    for (int i = 0; i < b->prog->nbuf; i++)
        if (b->prog->buf[i]->written && b->prog->buf[i]->kind != B_TEMP)
            for (int64_t k = 0; k < y->buf[i].n && equal; k++)
                equal = x->buf[i].n == y->buf[i].n && same(b, &x->buf[i], &y->buf[i], k);
    return equal;
}

Env *base_run(Arena *a, const Base *b, const Data *in, Prog *tree)
{
    Env *got = data_bind(a, in, tree);
    Status st = CATCH(a->err, interp_loops(a, tree, got, NULL, NULL));

    (void)b;
    err_clear(a->err);
    return st == ST_OK ? got : NULL;
}

bool base_is_unfit(Arena *a, const Base *b, Prog *tree)
{
    Status st = CATCH(a->err, interp_loops(a, tree, data_bind(a, b->in, tree), NULL, NULL));
    bool unfit = st == ST_RUN && strstr(a->err->msg, loop_fault(FAULT_SIZE)) != NULL;

    err_clear(a->err);
    return unfit;
}

/* Floats are drawn anew; integers, which may be places, are drawn from those that were there. */
static void redraw(Rng *r, Array *x)
{
    Array old = *x;

    for (int64_t i = 0; i < x->n; i++) {
        int64_t from = rng_int(r, 0, (int)x->n - 1);

        if (ir_type[x->type].floats)
            array_set(x, i, 0, rng_int(r, -2, 2));
        else
            array_set(x, i, array_int(&old, from), 0);
    }
}

Data *base_redraw(Arena *a, const Base *b, Rng *r)
{
    Data *d = arena_alloc(a, sizeof *d);

    for (int i = 0; i < b->in->n; i++) {
        const Item *x = &b->in->item[i];
        const char *dot = strchr(x->name, '.');
        char name[IR_MAX_NAME + 1] = "";
        const Axis *e;
        Array c = x->array;

        if (x->is_size) {
            data_size(a, d, x->name, x->size);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", dot != NULL ? (int)(dot - x->name) : 0, x->name);
        e = dot != NULL ? ir_find_axis(b->prog, name) : NULL;
        c.data = arena_copy(a, c.data, (size_t)c.n * ir_type[c.type].bytes);
        if (dot == NULL || (e != NULL && strcmp(dot, ".start") != 0 &&
                            !(e->flags & (AX_SORTED | AX_UNIQUE))))
            redraw(r, &c);
        data_array(a, d, x->name, c);
    }
    return d;
}

static const char *message(Arena *a, const char *what, const char *name)
{
    Text t = { .arena = a };

    text_f(&t, "%s %s", what, name);
    return t.s;
}

static const char *compare(Arena *a, const Base *b, const Prog *q, const Env *got)
{
    for (int i = 0; i < b->prog->naxis; i++) {
        const Axis *u = b->prog->axis[i], *v;

        if (u->extent != X_BUILT)
            continue;
        v = ir_find_axis(q, u->name);
        for (int k = -1; k < u->ncoord; k++)
            if (!same_ints(k < 0 ? &got->start[v->id] : &got->coord[v->id][k],
                           k < 0 ? &b->want->start[i] : &b->want->coord[i][k]))
                return message(a, "other entries of", u->name);
    }
    for (int i = 0; i < b->prog->nbuf; i++) {
        const Buf *x = b->prog->buf[i], *y = ir_find_buf(q, x->name);

        if (!x->written || x->kind == B_TEMP)
            continue;
        for (int64_t k = 0; k < b->want->buf[i].n; k++)
            if (!same(b, &got->buf[y->id], &b->want->buf[i], k))
                return message(a, "other elements of", x->name);
    }
    return NULL;
}

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

const char *base_compare(Arena *a, const Base *b, Prog *tree)
{
    Env *got = data_bind(a, b->in, tree);
    Rng rng = { b->seed };
    Status st = CATCH(a->err, interp_threads(a, tree, got, cut, &rng, 1 + b->seed));
    Text t = { .arena = a };

    text_f(&t, "the run ends with: %s", st == ST_OK ? "no error" : a->err->msg);
    err_clear(a->err);
    if (st == ST_OK && b->status == ST_OK)
        return compare(a, b, tree, got);
    return st == b->status ? NULL : t.s;
}

const StepTarget *base_target(void)
{
    static const Target machine = { .kind = KIND_WARP,
                                    .unit = { VECTOR_LANES(8, 4), 16, VECTOR_CORE } };
    static Aim aim;
    static StepTarget target;

    aim = api_aim(&machine);
    target = api_step_target(&aim);
    return &target;
}

const char *base_name(Arena *a, const Node *n)
{
    Text t = { .arena = a };

    text_f(&t, "%s.%s", n->label, loop_path(n));
    return t.s;
}

static void add_loops(Arena *a, Node *n, Node ***out, int *count, int *cap)
{
    if (n->kind == N_FOR) {
        *out = arena_grow(a, *out, *count, cap, sizeof **out);
        (*out)[(*count)++] = n;
    }
    for (int i = 0; i < n->nbody; i++)
        add_loops(a, n->body[i], out, count, cap);
}

int base_loops(Arena *a, const Prog *p, Node ***out)
{
    int n = 0, cap = 0;

    *out = NULL;
    for (int i = 0; i < p->nphase; i++)
        add_loops(a, p->phase[i], out, &n, &cap);
    return n;
}
