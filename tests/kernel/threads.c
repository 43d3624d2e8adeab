/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A kernel as the runtime runs it: on several numbers of threads, cut as finely as can be, each
 * time into arrays that hold garbage, to the same bits and the same fault. */
#include "kernel/kernel_test.h"
#include "run/run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const int counts[] = { 1, 2, 3, 7, 16 };
enum { NCOUNT = sizeof counts / sizeof *counts };

static Pool *pool_of(Arena *a, int i)
{
    static Pool *pool[NCOUNT];

    if (pool[i] == NULL)
        pool[i] = pool_new(&os_libc, a->err, counts[i]);
    return pool[i];
}

static bool is_output(const Buf *b)
{
    return b->kind != B_CONST && b->of == NULL && (b->written || b->kind == B_TEMP);
}

/* What a run may write begins as garbage, or as what was given; all else is as it was. */
static void fill(Arena *a, const Subject *s, const Env *given, const Array *had, Array *to,
                 void **pointer)
{
    for (int i = 0; i < s->kernel->narray; i++) {
        const Buf *b = s->kernel->array[i];
        size_t bytes = (size_t)had[i].n * ir_type[had[i].type].bytes;

        to[i] = had[i];
        if (is_output(b)) {
            to[i].data = arena_alloc(a, bytes + 1);
            memset(to[i].data, 0x5a, bytes);
            if (b->kind == B_INOUT && bytes > 0)
                memcpy(to[i].data, given->buf[b->id].data, bytes);
        }
        pointer[i] = to[i].data;
    }
}

static RunPhase *phases(Arena *a, const Batch *batch, const Subject *s, const Env *env,
                        const Array *had)
{
    const EmitKernel *k = s->kernel;
    RunPhase *p = arena_array(a, k->nphase, sizeof *p);

    for (int i = 0; i < k->nphase; i++) {
        const EmitPhase *f = &k->phase[i];

        p[i] = (RunPhase){ .n = f->parallel ? lower_value(a, s->prog, env, f->extent) : 1,
                           .serial = !f->parallel,
                           .grain = 1 };
        *(void **)&p[i].fn = dlsym(batch->lib, f->name);
        if (f->parts != NULL)
            p[i].part = env->coord[f->parts->of->id][f->parts->of_k].data;
        if (f->balance != NULL)
            p[i].rounds = lower_rounds(s->prog, env, f->balance, p[i].n);
        for (int j = 0; j < k->narray && p[i].rounds > 0; j++)
            if (k->array[j] == f->balance) {
                p[i].balance = had[j].data;
                p[i].balance_bytes = ir_type[had[j].type].bytes;
            }
    }
    return p;
}

static const char *differs(Arena *a, const Subject *s, const Array *had, const Array *got, int n)
{
    for (int i = 0; i < s->kernel->narray; i++) {
        const Buf *b = s->kernel->array[i];
        size_t bytes = (size_t)had[i].n * ir_type[had[i].type].bytes;
        Text t = { .arena = a };

        if (!is_output(b) || b->kind == B_TEMP || bytes == 0 ||
            memcmp(had[i].data, got[i].data, bytes) == 0)
            continue;
        text_f(&t, "%s is another on %d threads", b->name, n);
        return t.s;
    }
    return NULL;
}

const char *threads_agree(Arena *a, const Batch *batch, const Subject *s, const Env *env,
                          const int64_t *size, const Array *had, int64_t fault)
{
    Env *given = data_bind(a, s->in, s->prog);
    Array *got = arena_array(a, s->kernel->narray, sizeof *got);
    void **pointer = arena_array(a, s->kernel->narray, sizeof *pointer);
    RunPhase *phase = phases(a, batch, s, env, had);
    const char *bad = NULL;

    for (int i = 0; i < NCOUNT && bad == NULL; i++) {
        int64_t now;

        fill(a, s, given, had, got, pointer);
        now = run_phases(pool_of(a, i), phase, s->kernel->nphase, pointer, size);
        if ((now != 0) != (fault != 0))
            bad = "a fault comes and goes with the number of threads";
        else if (fault == 0)
            bad = differs(a, s, had, got, counts[i]);
    }
    return bad;
}
