/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A kernel on copies of its arrays, each of exactly its size between guards and no better aligned
 * than its elements; what it is to write holds garbage first.  Every phase that may be cut is cut
 * into uneven ranges, last to first, each on what the phase found: no two may write one element. */
#include "kernel/kernel_test.h"
#include "run/run.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t PhaseFn(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                        void *work);

enum { GUARD = 64, GARBAGE = 0xa5 };

typedef struct Exec {
    Arena *arena;
    const Batch *batch;
    const Subject *s;
    Env *env;        /* of the run */
    Array *array;    /* as the kernel sees them, in its order */
    void **pointer;  /* the same, as it gets them */
    int64_t *size;
    void *work;      /* scratch memory of the phase that runs; or NULL */
    const char *bad; /* what is wrong; or NULL */
} Exec;

static const char *wrong(Exec *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *wrong(Exec *x, const char *fmt, ...)
{
    Text t = { .arena = x->arena };
    char line[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    text_str(&t, line);
    return t.s;
}

/* Bytes before and after an array; the sanitizer has its own. */
static size_t guard(Type type)
{
    return SANITIZED ? 0 : GUARD + ir_type[type].bytes; /* no better aligned than an element */
}

static Array guarded(Type type, int64_t n, const void *from)
{
    size_t bytes = (size_t)n * ir_type[type].bytes;
    char *p = malloc(bytes + 2 * guard(type) > 0 ? bytes + 2 * guard(type) : 1);

    memset(p, GARBAGE, bytes + 2 * guard(type));
    if (from != NULL && bytes > 0)
        memcpy(p + guard(type), from, bytes);
    return (Array){ p + guard(type), n, type };
}

static bool is_intact(const Array *a)
{
    size_t bytes = (size_t)a->n * ir_type[a->type].bytes;
    const unsigned char *p = (const unsigned char *)a->data;

    for (size_t i = 1; i <= guard(a->type); i++)
        if (p[-(ptrdiff_t)i] != GARBAGE)
            return false;
    for (size_t i = 0; i < guard(a->type); i++)
        if (p[bytes + i] != GARBAGE)
            return false;
    return true;
}

static bool hangs_on(const Axis *a, const Axis *u)
{
    for (; a != NULL; a = a->parent)
        if (a == u)
            return true;
    return false;
}

static bool depends_on(const Buf *b, const Axis *u)
{
    bool on = hangs_on(b->of, u);

    for (int k = 0; k < b->nfull; k++)
        on = on || hangs_on(b->full[k], u);
    return on;
}

static void drop_array(Exec *x, int i)
{
    if (x->array[i].data != NULL)
        free((char *)x->array[i].data - guard(x->array[i].type));
    x->array[i].data = NULL;
}

/* What a caller passes for it. */
static Array array_for(const Exec *x, const Buf *b)
{
    return strides_spread(x->arena, x->s, x->env, b,
                          lower_array(x->arena, x->s->prog, x->env, b));
}

/* The arrays that depend on axis u, of the size that they have now; NULL: all. */
static void bind_arrays(Exec *x, const Axis *u)
{
    const EmitKernel *k = x->s->kernel;

    for (int i = 0; i < k->narray; i++) {
        const Buf *b = k->array[i];
        Array a;

        if (u != NULL && !depends_on(b, u))
            continue;
        if (b->id < x->s->prog->nbuf && b->written && u != NULL)
            x->env->buf[b->id].data = NULL;
        a = array_for(x, b);
        drop_array(x, i);
        x->array[i] = guarded(a.type, a.n, a.data);
        if (b->id < x->s->prog->nbuf && b->written)
            x->env->buf[b->id] = x->array[i];
        x->pointer[i] = x->array[i].data;
    }
    for (int i = 0; i < k->ncount; i++)
        x->size[x->s->prog->nsize + i] = ir_axis_total(x->s->prog, x->env, k->count[i]);
}

/* What the ranges of a phase do to one array, when each begins with what the phase found. */
typedef struct Parts {
    uint8_t *found, *result;
    uint8_t *owner; /* of each byte: 1 + the range that changed it, 0: none */
    size_t bytes;
} Parts;

static bool is_built(const Buf *b)
{
    return b->of != NULL && b->of->extent == X_BUILT && b->nfull == 0;
}

static bool is_output(const Buf *b)
{
    return is_built(b) ||
           (b->kind != B_CONST && b->of == NULL && (b->written || b->kind == B_TEMP));
}

static Parts new_parts(Exec *x, int i)
{
    const Array *a = &x->array[i];
    Parts p = { .bytes =
                    is_output(x->s->kernel->array[i]) ? (size_t)a->n * ir_type[a->type].bytes : 0 };

    p.found = arena_copy(x->arena, a->data, p.bytes);
    p.result = arena_copy(x->arena, a->data, p.bytes);
    p.owner = arena_alloc(x->arena, p.bytes + 1);
    return p;
}

/* Takes over what range c has changed; false when another has changed it too. */
static bool collect(const Exec *x, Parts *p, int i, int c)
{
    uint8_t *now = x->array[i].data;

    for (size_t k = 0; k < p->bytes; k++) {
        if (now[k] == p->found[k])
            continue;
        if (p->owner[k] != 0)
            return false;
        p->owner[k] = (uint8_t)(c + 1);
        p->result[k] = now[k];
    }
    if (p->bytes > 0)
        memcpy(now, p->found, p->bytes);
    return true;
}

/* As many threads would run it: no range sees what another has written. */
static int64_t run_parts(Exec *x, PhaseFn *fn, const int64_t *cut, int ncut)
{
    int narray = x->s->kernel->narray;
    Parts *part = arena_array(x->arena, narray, sizeof *part);
    int64_t fault = 0;

    for (int i = 0; i < narray; i++)
        part[i] = new_parts(x, i);
    for (int c = ncut - 1; c >= 0 && fault == 0; c--) {
        fault = fn(x->pointer, x->size, cut[c], cut[c + 1], x->work);
        for (int i = 0; i < narray; i++)
            if (!collect(x, &part[i], i, c) && x->bad == NULL)
                x->bad = wrong(x, "two ranges of a phase write %s", x->s->kernel->array[i]->name);
    }
    for (int i = 0; i < narray; i++)
        if (part[i].bytes > 0)
            memcpy(x->array[i].data, part[i].result, part[i].bytes);
    return fault;
}

static int64_t run_phase(Exec *x, int i)
{
    const EmitPhase *f = &x->s->kernel->phase[i];
    int64_t n = f->parallel ? lower_value(x->arena, x->s->prog, x->env, f->extent) : 1, cut[64];
    int ncut = 0;
    PhaseFn *fn;

    if (x->batch->device != NULL) {
        const int64_t *part = f->parts == NULL ? NULL
                                               : x->env->coord[f->parts->of->id][f->parts->of_k].data;

        return device_phase(x->batch, x->s, i, n, part, x->array, x->size);
    }
    *(void **)&fn = dlsym(x->batch->lib, f->name);
    for (int64_t at = 0; at < n && ncut < 62; at += ncut)
        cut[ncut++] = at;
    cut[ncut] = n;
    if (ncut > 1)
        return run_parts(x, fn, cut, ncut);
    return ncut == 0 ? 0 : fn(x->pointer, x->size, 0, n, x->work);
}

/* A built axis without entries, or with the n that its starts tell. */
static void shape_axis(Exec *x, const Axis *u, Array start, int64_t n)
{
    x->env->start[u->id] = start;
    for (int k = 0; k < u->ncoord; k++)
        x->env->coord[u->id][k] = array_new(x->arena, T_i64, n);
}

/* Those below `up`, or all; parents come first. */
static void empty_axes(Exec *x, const Axis *up)
{
    for (int i = 0; i < x->s->prog->naxis; i++) {
        const Axis *u = x->s->prog->axis[i];
        int64_t n = 1;

        if (u->extent != X_BUILT || (up != NULL && (u == up || !hangs_on(u, up))))
            continue;
        if (u->parent != NULL)
            n = ir_axis_total(x->s->prog, x->env, u->parent);
        shape_axis(x, u, array_new(x->arena, T_i64, n + 1), 0);
    }
}

static int array_of(const Exec *x, const Axis *u, int k)
{
    int i = 0;

    while (x->s->kernel->array[i] != (k < 0 ? loop_start(x->s->prog, (Axis *)u)
                                            : loop_coord(x->s->prog, (Axis *)u, k)))
        i++;
    return i;
}

/* What the interpreter will be asked for in place of what the kernel has built. */
static void take_axis(Exec *x, const Axis *u)
{
    const Array *start = &x->array[array_of(x, u, -1)];

    x->env->start[u->id] = array_new(x->arena, T_i64, start->n);
    memcpy(x->env->start[u->id].data, start->data, (size_t)start->n * sizeof(int64_t));
    for (int k = 0; k < u->ncoord; k++) {
        const Array *c = &x->array[array_of(x, u, k)];

        x->env->coord[u->id][k] = array_new(x->arena, T_i64, c->n);
        if (c->n > 0)
            memcpy(x->env->coord[u->id][k].data, c->data, (size_t)c->n * sizeof(int64_t));
    }
}

/* Counts and fills, with bits or, now and then, with a list that is too short at first. */
static int64_t run_build(Exec *x, int i)
{
    const EmitPhase *f = &x->s->kernel->phase[i];
    const Axis *u = f->builds;
    int64_t *how = x->size + x->s->prog->nsize + x->s->kernel->ncount + f->how, fault, *start;
    int64_t n = u->parent == NULL ? 1 : ir_axis_total(x->s->prog, x->env, u->parent);

    how[EMIT_KEYS] = f->whole ? n : 1;
    for (int k = 0; k < u->ncoord; k++)
        how[EMIT_KEYS] *= how[EMIT_BOUNDS + k] =
            ir_eval_size(x->s->prog, x->env, u->coord[k].bound);
    how[EMIT_ROOM] = x->s->seed % 2 == 0 ? 0 : 2;
    start = x->array[array_of(x, u, -1)].data;
    for (int turn = 0; turn < 2; turn++) {
        how[EMIT_FILL] = turn;
        do {
            x->work = calloc(1, (size_t)run_set_bytes(how[EMIT_KEYS], how[EMIT_ROOM]));
            if (turn == 0)
                memset(start, 0, (size_t)(n + 1) * sizeof *start);
            fault = run_phase(x, i);
            free(x->work);
            x->work = NULL;
            how[EMIT_ROOM] *= fault == FAULT_ROOM ? 2 : 1;
        } while (fault == FAULT_ROOM);
        if (fault != 0)
            return fault;
        if (turn == 0) {
            run_sum_starts(start, n);
            memcpy(x->env->start[u->id].data, start, (size_t)(n + 1) * sizeof *start);
            shape_axis(x, u, x->env->start[u->id], start[n]);
            empty_axes(x, u);
            bind_arrays(x, u);
            start = x->array[array_of(x, u, -1)].data;
        }
    }
    take_axis(x, u);
    return 0;
}

static int64_t run_all(Exec *x)
{
    const EmitKernel *k = x->s->kernel;
    const Prog *p = x->s->prog;
    int64_t fault = 0;

    x->pointer = arena_array(x->arena, k->narray, sizeof *x->pointer);
    x->size = arena_array(x->arena, p->nsize + k->ncount + k->nhow, sizeof *x->size);
    x->array = arena_array(x->arena, k->narray, sizeof *x->array);
    for (int i = 0; i < p->nsize; i++)
        x->size[i] = x->env->size[i];
    empty_axes(x, NULL);
    bind_arrays(x, NULL);
    for (int i = 0; i < k->nphase && fault == 0; i++)
        fault = k->phase[i].builds != NULL ? run_build(x, i) : run_phase(x, i);
    return fault;
}

static bool same_element(const Array *a, const Array *b, int64_t i)
{
    size_t n = ir_type[a->type].bytes;

    if (memcmp((const char *)a->data + (size_t)i * n, (const char *)b->data + (size_t)i * n, n) ==
        0)
        return true;
    return ir_type[a->type].floats && isnan(array_float(a, i)) && isnan(array_float(b, i));
}

/* Whether a value may have been computed in f32: an f64 buffer can hold one. */
static bool has_f32(const Prog *p)
{
    bool has = false;

    for (int i = 0; i < p->nbuf && !has; i++)
        has = ir_type[p->buf[i]->type].floats && p->buf[i]->type != T_f64;
    return has;
}

/* The error that the element may have. */
static double tolerance(const Exec *x, const Array *want)
{
    double most = 0;

    for (int64_t i = 0; i < want->n && ir_type[want->type].floats; i++)
        most = fmax(most, fabs(array_float(want, i)));
    return most * (x->s->tolerance * (want->type == T_f64 ? 1 : 1e8) +
                   x->s->functions * (has_f32(x->s->prog) ? 1e8 : 1));
}

static bool is_near(const Array *a, const Array *b, int64_t i, double tol)
{
    return tol > 0 && fabs(array_float(a, i) - array_float(b, i)) <= tol;
}

static const char *compare(Exec *x, const Buf *b)
{
    const Array *got = &x->env->buf[b->id], *want = &x->s->want->buf[b->id];
    double tol = x->s->tolerance > 0 || x->s->functions > 0 ? tolerance(x, want) : 0;

    if (got->data == NULL)
        return want->n == 0 ? NULL : wrong(x, "%s is not written", b->name);
    if (got->n != want->n)
        return wrong(x, "%s has %lld elements, not %lld", b->name, (long long)got->n,
                     (long long)want->n);
    for (int64_t i = 0; i < got->n; i++)
        if (!same_element(got, want, i) && !is_near(got, want, i, tol)) {
            bool f = ir_type[b->type].floats;

            return wrong(x, "%s[%lld] is %.17g, but should be %.17g", b->name, (long long)i,
                         f ? array_float(got, i) : (double)array_int(got, i),
                         f ? array_float(want, i) : (double)array_int(want, i));
        }
    return NULL;
}

static const char *compare_ints(Exec *x, const Axis *u, const char *part, const Array *got,
                                const Array *want)
{
    if (got->n != want->n)
        return wrong(x, "%s.%s has %lld elements, not %lld", u->name, part, (long long)got->n,
                     (long long)want->n);
    for (int64_t i = 0; i < got->n; i++)
        if (array_int(got, i) != array_int(want, i))
            return wrong(x, "%s.%s[%lld] is %lld, but should be %lld", u->name, part, (long long)i,
                         (long long)array_int(got, i), (long long)array_int(want, i));
    return NULL;
}

static const char *compare_axis(Exec *x, const Axis *u)
{
    const char *bad =
        compare_ints(x, u, "start", &x->env->start[u->id], &x->s->want->start[u->id]);

    for (int k = 0; k < u->ncoord && bad == NULL; k++)
        bad = compare_ints(x, u, u->coord[k].name != NULL ? u->coord[k].name : "coord",
                           &x->env->coord[u->id][k], &x->s->want->coord[u->id][k]);
    return bad;
}

static const char *compare_all(Exec *x)
{
    const Prog *p = x->s->prog;
    const char *bad = NULL;

    for (int i = 0; i < p->naxis && bad == NULL; i++)
        if (p->axis[i]->extent == X_BUILT)
            bad = compare_axis(x, p->axis[i]);

    for (int i = 0; i < p->nbuf && bad == NULL; i++)
        if (p->buf[i]->written && p->buf[i]->kind != B_TEMP)
            bad = compare(x, p->buf[i]);
    return bad;
}

/* Guards, and the arrays that are only read. */
static const char *check_intact(Exec *x)
{
    const EmitKernel *k = x->s->kernel;

    for (int i = 0; i < k->narray; i++) {
        const Buf *b = k->array[i];
        Array old;

        if (!is_intact(&x->array[i]))
            return wrong(x, "%s is written outside", b->name);
        if (b->written || b->kind != B_ARG || is_built(b))
            continue;
        old = array_for(x, b);
        if (old.n > 0 && old.data != NULL &&
            memcmp(old.data, x->array[i].data, (size_t)old.n * ir_type[old.type].bytes) != 0)
            return wrong(x, "%s is an input and has changed", b->name);
    }
    return NULL;
}

static const char *check_result(Exec *x, int64_t fault)
{
    const Subject *s = x->s;

    if (fault < 0)
        return wrong(x, "the device refuses, or finds an error");
    if ((fault != 0) != (s->status == ST_RUN))
        return wrong(x, "the kernel says %lld (%s), the interpreter: %.200s", (long long)fault,
                     loop_fault((Fault)fault), s->status == ST_RUN ? s->error : "no error");
    return fault != 0 ? NULL : compare_all(x);
}

static bool builds(const EmitKernel *k)
{
    bool any = false;

    for (int i = 0; i < k->nphase; i++)
        any = any || k->phase[i].builds != NULL;
    return any;
}

const char *execute(Arena *a, const Batch *b, const Subject *s)
{
    Exec x = { .arena = a, .batch = b, .s = s };
    const char *bad;
    int64_t fault;

    x.env = data_bind(a, s->in, s->prog);
    for (int i = 0; i < s->prog->naxis; i++)
        if (s->prog->axis[i]->from != NULL)
            data_made(a, s->prog, x.env, s->prog->axis[i], 1 + (int64_t)(s->seed % 4));
    fault = run_all(&x);
    bad = x.bad != NULL ? x.bad : check_intact(&x);
    if (bad == NULL)
        bad = check_result(&x, fault);
    if (bad == NULL && !builds(s->kernel) && b->device == NULL)
        bad = threads_agree(a, b, s, x.env, x.size, x.array, fault);
    for (int i = 0; i < s->kernel->narray; i++)
        drop_array(&x, i);
    return bad;
}
