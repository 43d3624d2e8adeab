/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a record is for, as hashes: a program by its text, a structure by all its elements, and its
 * kind by what decides how fast loops over it are. */
#include "tune/tune.h"

#include <math.h>
#include <string.h>

uint64_t tune_key_program(Arena *arena, const Prog *p)
{
    Text t = { .arena = arena };

    ir_print(&t, ir_copy(arena, p));
    return hash_bytes(1, t.s, t.n);
}

/* Eight bytes at a time: structure has millions of entries. */
static uint64_t hash_array(uint64_t h, const Array *a)
{
    size_t n = a->data == NULL ? 0 : (size_t)a->n * ir_type[a->type].bytes, i = 0;
    const char *p = a->data;
    uint64_t w = 0;

    h = hash_int(hash_int(h, (uint64_t)a->type), n);
    for (; i + sizeof w <= n; i += sizeof w) {
        memcpy(&w, p + i, sizeof w);
        h = hash_int(h, w);
    }
    return n > i ? hash_bytes(h, p + i, n - i) : h;
}

uint64_t tune_key_exact(const Prog *p, const Env *env)
{
    uint64_t h = 2;

    for (int i = 0; i < p->nsize; i++)
        h = hash_int(h, (uint64_t)env->size[i]);
    for (int i = 0; i < p->naxis; i++) {
        if (p->axis[i]->extent == X_BUILT) /* a run tells */
            continue;
        h = hash_array(h, &env->start[i]);
        for (int k = 0; k < p->axis[i]->ncoord; k++)
            h = hash_array(h, &env->coord[i][k]);
    }
    return h;
}

/* Small numbers as they are (widths of rows); of large ones three steps an octave. */
static uint64_t about(int64_t n)
{
    return n <= 1024 ? (uint64_t)n : 1024 + (uint64_t)llround(3 * log2((double)n));
}

static int octave(int64_t n)
{
    int k = 0;

    while (n > 1) {
        n /= 2;
        k++;
    }
    return k;
}

/* Which octave of row lengths a share of all entries is reached in: middle, and far end. */
static uint64_t hash_rows(uint64_t h, const Array *start)
{
    static const double share[] = { 0.1, 0.5, 0.9 };
    double in[64] = { 0 }, all = 0, below = 0;
    size_t next = 0;

    for (int64_t i = 0; i + 1 < start->n; i++) {
        int64_t d = ir_array_int(start, i + 1) - ir_array_int(start, i);

        if (d > 0)
            in[octave(d)] += (double)d;
        all += d > 0 ? (double)d : 0;
    }
    for (int k = 0; k < 64; k++) {
        below += in[k];
        while (next < sizeof share / sizeof *share && below > 0 && below >= share[next] * all) {
            h = hash_int(h, (uint64_t)k);
            next++;
        }
    }
    return h;
}

uint64_t tune_key_kind(const Prog *p, const Env *env)
{
    uint64_t h = 3;

    for (int i = 0; i < p->nsize; i++)
        h = hash_int(h, about(env->size[i]));
    for (int i = 0; i < p->naxis; i++) {
        const Array *start = &env->start[i];

        if (p->axis[i]->extent == X_BUILT)
            continue;
        for (int k = 0; k < p->axis[i]->ncoord; k++) {
            const Array *coord = &env->coord[i][k];

            h = hash_int(h, coord->data == NULL ? 0 : (uint64_t)coord->type);
            h = hash_int(h, coord->data == NULL ? 0 : about(coord->n));
        }
        if (start->data != NULL)
            h = hash_rows(hash_int(h, (uint64_t)start->type), start);
    }
    return h;
}
