/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Decides into how many pieces the parts of a scatter are divided, for a plan: as many as there are
 * threads, where the work of a piece is worth it.  The bits do not depend on it (run/slices.c). */
#include "api/api_int.h"
#include "emit/emit.h"
#include "lower/lower.h"
#include "run/run.h"

#include <string.h>

/* Where a start array stands among the arrays of a kernel; -1: no phase reads it. */
static int array_of(const Lowered *l, const Axis *a)
{
    for (int i = 0; i < l->info->narray; i++)
        if (l->info->array[i]->of == a && l->info->array[i]->of_k == -1)
            return i;
    return -1;
}

/* The levels from the rows at the top down to the entries; false: they are not those of a call. */
static bool set_levels(const Lowered *l, const Env *env, const Axis *entries, RunScatter *s,
                       RunSlices *out)
{
    for (const Axis *a = entries; a->parent != NULL; a = a->parent)
        s->levels++;
    if (s->levels > RUN_LEVELS)
        return false;
    for (int k = s->levels - 1; k >= 0; k--, entries = entries->parent) {
        const Array *start = &env->start[entries->id];
        int at = array_of(l, entries);

        if (at < 0)
            return false;
        out->start_at[k] = at;
        out->start_bytes[k] = s->start_bytes[k] = ir_type[start->type].bytes;
        s->start[k] = start->data;
    }
    return true;
}

/* Pieces of each part: threads have one at least, and each is worth a chunk. */
static int64_t classes_of(const RunPhase *p, int64_t parts, int64_t entries, int64_t part,
                          int threads)
{
    int64_t most = entries / (part > 0 ? part : p->grain) / parts;
    int64_t classes = (threads + parts - 1) / parts;

    return classes < most ? classes : most;
}

const RunSlices *api_slices(Arena *arena, const Lowered *l, const Env *env, int phase,
                            const RunPhase *p, int64_t part, int threads)
{
    const Axis *r = l->work[phase].sliced, *entries = r->from;
    const Array *name = &env->coord[entries->id][r->part], *first = &env->start[r->id];
    RunScatter s = { .name = name->data,
                     .name_bytes = ir_type[name->type].bytes,
                     .first_row = first->data,
                     .parts = first->n - 1 };
    RunSlices levels = { 0 }, *out;
    int64_t n = ir_axis_total(l->prog, env, entries), classes;

    if (s.parts < 1 || p->part == NULL || !set_levels(l, env, entries, &s, &levels))
        return NULL;
    classes = classes_of(p, s.parts, n, part, threads);
    if (classes < 2)
        return NULL;
    s.named = ir_eval_size(l->prog, env, entries->coord[r->part].bound);
    out = run_slices(arena, &s, classes);
    if (part == 0 && out->first[out->pieces] > n / RUN_SLICE_WORK * (RUN_GRAIN / p->grain))
        return NULL; /* calls would take longer than the entries */
    out->narray = l->info->narray;
    memcpy(out->start_at, levels.start_at, sizeof out->start_at);
    memcpy(out->start_bytes, levels.start_bytes, sizeof out->start_bytes);
    return out;
}
