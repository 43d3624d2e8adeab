/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Divides the parts of a scatter among more threads than there are parts, without more copies of
 * what is added to.  The rows that the entries of a part name are divided into ranges with about as
 * many entries each; a piece of work is the entries of one part that name rows of one range.  Two
 * pieces of a part add to different rows of its array.  Each row gets its terms in the order of the
 * entries, as if one thread did all, so the bits do not depend on the number of pieces.
 *
 * A piece is a list of slices: whole rows, or consecutive entries of one row.  The function of the
 * phase computes a slice of entries when its start arrays say that the row has no others. */
#include "run/run_int.h"

#include <string.h>

typedef struct List {
    RunSlice *slice;
    int64_t n, cap;
} List;

typedef struct Walk {
    const RunScatter *s;
    Arena *arena;
    int64_t *class_of; /* by row that is named, in the window of this part */
    List *list;        /* by class */
    int64_t at[RUN_LEVELS];
} Walk;

static int64_t int_at(const void *data, int bytes, int64_t i)
{
    return bytes == 4 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

static int64_t start_at(const RunScatter *s, int level, int64_t i)
{
    return int_at(s->start[level], s->start_bytes[level], i);
}

/* The first entry below row i at the top. */
static int64_t first_entry(const RunScatter *s, int64_t i)
{
    for (int k = 0; k < s->levels; k++)
        i = start_at(s, k, i);
    return i;
}

/* An entry that names nothing goes with those before it. */
static int64_t class_at(const Walk *w, int64_t e, int64_t otherwise)
{
    int64_t name = int_at(w->s->name, w->s->name_bytes, e);

    return name < 0 ? otherwise : w->class_of[name];
}

static RunSlice *append(Arena *arena, List *l)
{
    if (l->n == l->cap) {
        int64_t cap = l->cap > 0 ? 2 * l->cap : 64;
        RunSlice *more = arena_raw(arena, cap, sizeof *more);

        if (l->n > 0)
            memcpy(more, l->slice, (size_t)l->n * sizeof *more);
        l->slice = more;
        l->cap = cap;
    }
    return &l->slice[l->n++];
}

/* The row joins the rows before it where these are whole, too. */
static void add_row(Walk *w, int64_t class, int64_t i)
{
    List *l = &w->list[class];
    RunSlice *last = l->n > 0 ? &l->slice[l->n - 1] : NULL;

    if (last != NULL && last->rows > 0 && last->at[0] + last->rows == i)
        last->rows++;
    else
        *append(w->arena, l) = (RunSlice){ .at = { i }, .rows = 1 };
}

static void add_entries(Walk *w, int64_t lo, int64_t hi)
{
    while (lo < hi) {
        int64_t class = class_at(w, lo, 0), end = lo + 1;
        RunSlice *slice = append(w->arena, &w->list[class]);

        while (end < hi && class_at(w, end, class) == class)
            end++;
        *slice = (RunSlice){ .lo = lo, .hi = end };
        memcpy(slice->at, w->at, sizeof slice->at);
        lo = end;
    }
}

static void add_below(Walk *w, int level, int64_t i)
{
    int64_t lo = start_at(w->s, level, i), hi = start_at(w->s, level, i + 1);

    w->at[level] = i;
    if (level + 1 == w->s->levels) {
        add_entries(w, lo, hi);
        return;
    }
    for (; lo < hi; lo++)
        add_below(w, level + 1, lo);
}

static void walk_row(Walk *w, int64_t i)
{
    int64_t e = first_entry(w->s, i), end = first_entry(w->s, i + 1), class;

    if (e == end)
        return;
    class = class_at(w, e, 0);
    while (e < end && class_at(w, e, class) == class)
        e++;
    if (e == end)
        add_row(w, class, i);
    else
        add_below(w, 0, i);
}

/* Ranges of the rows that the entries from..to name, with about as many entries each. */
static void classify(Walk *w, int64_t from, int64_t to, int64_t classes)
{
    const RunScatter *s = w->s;
    int64_t all = 0, before = 0;

    memset(w->class_of, 0, (size_t)s->named * sizeof *w->class_of);
    for (int64_t e = from; e < to; e++) {
        int64_t name = int_at(s->name, s->name_bytes, e);

        all += name >= 0;
        if (name >= 0)
            w->class_of[name]++;
    }
    for (int64_t k = 0; k < s->named; k++) {
        int64_t n = w->class_of[k];
        double share = all > 0 ? ((double)before + (double)n / 2) / (double)all : 0;

        w->class_of[k] = (int64_t)(share * (double)classes);
        before += n;
    }
}

/* Appends the lists of a part to all slices. */
static void close_part(Walk *w, int64_t classes, List *all, RunSlices *out)
{
    for (int64_t c = 0; c < classes; c++) {
        List *l = &w->list[c];

        for (int64_t i = 0; i < l->n; i++)
            *append(w->arena, all) = l->slice[i];
        out->first[++out->pieces] = all->n;
        l->n = 0;
    }
}

RunSlices *run_slices(Arena *arena, const RunScatter *s, int64_t classes)
{
    Walk w = { .s = s, .arena = arena };
    List all = { 0 };
    RunSlices *out = arena_alloc(arena, sizeof *out);

    w.class_of = arena_array(arena, s->named > 0 ? s->named : 1, sizeof *w.class_of);
    w.list = arena_array(arena, classes, sizeof *w.list);
    *out = (RunSlices){ .levels = s->levels,
                        .first = arena_array(arena, s->parts * classes + 1, sizeof *out->first) };
    for (int64_t q = 0; q < s->parts; q++) {
        classify(&w, first_entry(s, s->first_row[q]), first_entry(s, s->first_row[q + 1]), classes);
        for (int64_t i = s->first_row[q]; i < s->first_row[q + 1]; i++)
            walk_row(&w, i);
        close_part(&w, classes, &all, out);
    }
    out->slice = all.slice;
    return out;
}

int64_t run_slice_bytes(const RunSlices *s)
{
    return s->narray * (int64_t)sizeof(void *);
}

/* Says that position i of a level has the positions lo..hi below it, and is all that there is. */
static void set_start(const RunSlices *s, int level, int64_t i, int64_t lo, int64_t hi,
                      int64_t *room, void **array)
{
    int bytes = s->start_bytes[level];

    if (bytes == 4) {
        ((int32_t *)room)[0] = (int32_t)lo;
        ((int32_t *)room)[1] = (int32_t)hi;
    } else {
        room[0] = lo;
        room[1] = hi;
    }
    array[s->start_at[level]] = (void *)((uintptr_t)room - (uintptr_t)i * (uintptr_t)bytes);
}

int64_t run_piece_of(const RunPhase *p, int64_t piece, void *const *array, const int64_t *size,
                     void *work, void **table)
{
    const RunSlices *s = p->slices;
    int64_t fault = 0, room[RUN_LEVELS][2];

    memcpy(table, array, (size_t)s->narray * sizeof *table);
    for (int64_t k = s->first[piece]; k < s->first[piece + 1] && fault == 0; k++) {
        const RunSlice *l = &s->slice[k];

        for (int n = 0; n < s->levels && l->rows == 0; n++) {
            bool last = n + 1 == s->levels;

            set_start(s, n, l->at[n], last ? l->lo : l->at[n + 1], last ? l->hi : l->at[n + 1] + 1,
                      room[n], table);
        }
        fault = p->fn(l->rows > 0 ? array : table, size, l->at[0],
                      l->at[0] + (l->rows > 0 ? l->rows : 1), work);
    }
    return fault;
}
