/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A kernel on copies of its arrays, each of exactly its size between guards and no better aligned
 * than its elements; what it is to write holds garbage first.  Every phase that may be cut is cut
 * into uneven ranges, last to first, each on what the phase found: no two may write one element. */
#include "kernel/kernel_test.h"

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

/* The entries of an axis by one of its coordinates, those of a row in their order: a slow sort. */
static void transpose(Exec *x, const Axis *t)
{
    const Axis *e = t->from;
    int64_t rows = ir_axis_total(x->s->prog, x->env, t->parent), up = 0, n = 0;
    Array start = array_new(x->arena, T_i64, rows + 1), entry, row;
    Span span = ir_axis_span(x->s->prog, x->env, e);

    entry = array_new(x->arena, T_i64, span.total);
    row = array_new(x->arena, T_i64, span.total);
    for (int64_t r = 0; r < rows; r++) {
        array_set(&start, r, n, 0);
        up = 0;
        for (int64_t p = 0; p < span.total; p++) {
            while (ir_span_first(&span, up + 1) <= p)
                up++;
            if (array_int(&x->env->coord[e->id][t->from_k], p) != r)
                continue;
            array_set(&entry, n, p, 0);
            array_set(&row, n++, up, 0);
        }
    }
    array_set(&start, rows, n, 0);
    x->env->start[t->id] = start;
    x->env->coord[t->id][0] = entry;
    x->env->coord[t->id][1] = row;
}

static void bind_arrays(Exec *x, void **pointer)
{
    const EmitKernel *k = x->s->kernel;

    for (int i = 0; i < k->narray; i++) {
        const Buf *b = k->array[i];
        Array a = lower_array(x->arena, x->s->prog, x->env, b);

        x->array[i] = guarded(a.type, a.n, a.data);
        if (b->id < x->s->prog->nbuf && b->written)
            x->env->buf[b->id] = x->array[i];
        pointer[i] = x->array[i].data;
    }
}

/* What the ranges of a phase do to one array, when each begins with what the phase found. */
typedef struct Parts {
    uint8_t *found, *result;
    uint8_t *owner; /* of each byte: 1 + the range that changed it, 0: none */
    size_t bytes;
} Parts;

static bool is_output(const Buf *b)
{
    return b->kind != B_CONST && b->of == NULL && (b->written || b->kind == B_TEMP);
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
static int64_t run_parts(Exec *x, PhaseFn *fn, void *const *array, const int64_t *size,
                         const int64_t *cut, int ncut)
{
    int narray = x->s->kernel->narray;
    Parts *part = arena_array(x->arena, narray, sizeof *part);
    int64_t fault = 0;

    for (int i = 0; i < narray; i++)
        part[i] = new_parts(x, i);
    for (int c = ncut - 1; c >= 0 && fault == 0; c--) {
        fault = fn(array, size, cut[c], cut[c + 1], NULL);
        for (int i = 0; i < narray; i++)
            if (!collect(x, &part[i], i, c) && x->bad == NULL)
                x->bad = wrong(x, "two ranges of a phase write %s", x->s->kernel->array[i]->name);
    }
    for (int i = 0; i < narray; i++)
        if (part[i].bytes > 0)
            memcpy(x->array[i].data, part[i].result, part[i].bytes);
    return fault;
}

static int64_t run_phase(Exec *x, int i, void *const *array, const int64_t *size)
{
    const EmitPhase *f = &x->s->kernel->phase[i];
    int64_t n = f->parallel ? lower_value(x->arena, x->s->prog, x->env, f->extent) : 1, cut[64];
    int ncut = 0;
    PhaseFn *fn;

    *(void **)&fn = dlsym(x->batch->lib, f->name);
    for (int64_t at = 0; at < n && ncut < 62; at += ncut)
        cut[ncut++] = at;
    cut[ncut] = n;
    if (ncut > 1)
        return run_parts(x, fn, array, size, cut, ncut);
    return ncut == 0 ? 0 : fn(array, size, 0, n, NULL);
}

static int64_t run_phases(Exec *x)
{
    const EmitKernel *k = x->s->kernel;
    const Prog *p = x->s->prog;
    void **array = arena_array(x->arena, k->narray, sizeof *array);
    int64_t *size = arena_array(x->arena, p->nsize + k->ncount, sizeof *size), fault = 0;

    x->array = arena_array(x->arena, k->narray, sizeof *x->array);
    for (int i = 0; i < p->nsize; i++)
        size[i] = x->env->size[i];
    for (int i = 0; i < k->ncount; i++)
        size[p->nsize + i] = ir_axis_total(p, x->env, k->count[i]);
    bind_arrays(x, array);
    for (int i = 0; i < k->nphase && fault == 0; i++)
        fault = run_phase(x, i, array, size);
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

/* The error that the element may have. */
static double tolerance(const Exec *x, const Array *want)
{
    double most = 0;

    for (int64_t i = 0; i < want->n && ir_type[want->type].floats; i++)
        most = fmax(most, fabs(array_float(want, i)));
    return most * x->s->tolerance * (want->type == T_f64 ? 1 : 1e8);
}

static bool is_near(const Array *a, const Array *b, int64_t i, double tol)
{
    return tol > 0 && fabs(array_float(a, i) - array_float(b, i)) <= tol;
}

static const char *compare(Exec *x, const Buf *b)
{
    const Array *got = &x->env->buf[b->id], *want = &x->s->want->buf[b->id];
    double tol = x->s->tolerance > 0 ? tolerance(x, want) : 0;

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

static const char *compare_all(Exec *x)
{
    const Prog *p = x->s->prog;
    const char *bad = NULL;

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
        if (b->written || b->kind != B_ARG)
            continue;
        old = lower_array(x->arena, x->s->prog, x->env, b);
        if (old.n > 0 && old.data != NULL &&
            memcmp(old.data, x->array[i].data, (size_t)old.n * ir_type[old.type].bytes) != 0)
            return wrong(x, "%s is an input and has changed", b->name);
    }
    return NULL;
}

static const char *check_result(Exec *x, int64_t fault)
{
    const Subject *s = x->s;

    if (s->status == ST_RUN && strstr(s->error, "is written twice") != NULL)
        return NULL; /* a kernel does not count writes */
    if ((fault != 0) != (s->status == ST_RUN))
        return wrong(x, "the kernel says %lld (%s), the interpreter: %.200s", (long long)fault,
                     loop_fault((Fault)fault), s->status == ST_RUN ? s->error : "no error");
    return fault != 0 ? NULL : compare_all(x);
}

const char *execute(Arena *a, const Batch *b, const Subject *s)
{
    Exec x = { .arena = a, .batch = b, .s = s };
    const char *bad;
    int64_t fault;

    x.env = data_bind(a, s->in, s->prog);
    for (int i = 0; i < s->prog->naxis; i++)
        if (s->prog->axis[i]->from != NULL)
            transpose(&x, s->prog->axis[i]);
    fault = run_phases(&x);
    bad = x.bad != NULL ? x.bad : check_intact(&x);
    if (bad == NULL)
        bad = check_result(&x, fault);
    for (int i = 0; i < s->kernel->narray; i++)
        free((char *)x.array[i].data - guard(x.array[i].type));
    return bad;
}
