/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The pairs of a kernel map by strips of outputs.  Group g is a strip and an offset that it has
 * pairs of; the groups of a strip are in order of offsets, the pairs of a group in order of
 * outputs.  So one matrix of weights serves a whole group, and the outputs of a strip stay in a
 * cache. */
#include "geom/near_int.h"

#include <string.h>

typedef struct Fill {
    const int32_t *input; /* by output and offset; -1: none */
    GeomMap *m;
    int32_t *at; /* by strip and offset: pairs, then the place of the next one */
} Fill;

static void count_pairs(void *arg, int64_t strip)
{
    Fill *f = arg;
    const GeomMap *m = f->m;
    int64_t end = (strip + 1) * m->strip < m->out ? (strip + 1) * m->strip : m->out;
    int32_t *at = f->at + strip * m->offsets;

    for (int64_t i = strip * m->strip; i < end; i++)
        for (int64_t d = 0; d < m->offsets; d++)
            at[d] += f->input[i * m->offsets + d] >= 0;
}

static void put_pairs(void *arg, int64_t strip)
{
    Fill *f = arg;
    GeomMap *m = f->m;
    int64_t end = (strip + 1) * m->strip < m->out ? (strip + 1) * m->strip : m->out;
    int32_t *at = f->at + strip * m->offsets;

    for (int64_t i = strip * m->strip; i < end; i++)
        for (int64_t d = 0; d < m->offsets; d++) {
            int32_t v = f->input[i * m->offsets + d];

            if (v >= 0) {
                m->row[at[d]] = (int32_t)(i - strip * m->strip);
                m->input[at[d]++] = v;
            }
        }
}

/* Groups, and room for the pairs, of the counts in `at`, which become the places of first pairs. */
static void open_groups(Arena *keep, GeomMap *m, int32_t *at)
{
    int64_t n = m->strips * m->offsets, groups = 0, pairs = 0;

    for (int64_t i = 0; i < n; i++) {
        groups += at[i] > 0;
        pairs += at[i];
    }
    if (pairs > INT32_MAX)
        err_throw(keep->err, ST_LIMIT, "the kernel map has %lld pairs; 2^31 are possible",
                  (long long)pairs);
    m->groups = groups;
    m->pairs = pairs;
    m->group_start = arena_raw(keep, m->strips + 1, sizeof *m->group_start);
    m->offset = arena_raw(keep, groups, sizeof *m->offset);
    m->pair_start = arena_raw(keep, groups + 1, sizeof *m->pair_start);
    m->row = arena_raw(keep, pairs, sizeof *m->row);
    m->input = arena_raw(keep, pairs, sizeof *m->input);
    groups = pairs = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t count = at[i];

        if (i % m->offsets == 0)
            m->group_start[i / m->offsets] = (int32_t)groups;
        if (count > 0) {
            m->offset[groups] = (int32_t)(i % m->offsets);
            m->pair_start[groups++] = (int32_t)pairs;
        }
        at[i] = (int32_t)pairs;
        pairs += count;
    }
    m->group_start[m->strips] = (int32_t)groups;
    m->pair_start[groups] = (int32_t)pairs;
}

void geom_strips_of(Arena *keep, Arena *scratch, const GeomPool *pool, const int32_t *input,
                    GeomMap *m)
{
    Fill f = { .input = input, .m = m };

    f.at = arena_array(scratch, m->strips * m->offsets, sizeof *f.at);
    near_each(pool, m->strips, count_pairs, &f);
    open_groups(keep, m, f.at);
    near_each(pool, m->strips, put_pairs, &f);
}

/* Counts the pairs of each strip of inputs and offset; `put` writes them, too. */
static void turn_pairs(const GeomMap *from, GeomMap *to, int32_t *at, bool put)
{
    for (int64_t s = 0; s < from->strips; s++)
        for (int32_t g = from->group_start[s]; g < from->group_start[s + 1]; g++)
            for (int32_t p = from->pair_start[g]; p < from->pair_start[g + 1]; p++) {
                int32_t v = from->input[p];
                int32_t *place = &at[v / to->strip * to->offsets + from->offset[g]];

                if (put) {
                    to->row[*place] = (int32_t)(v % to->strip);
                    to->input[*place] = (int32_t)(s * from->strip + from->row[p]);
                }
                ++*place;
            }
}

void geom_map_turn(Arena *keep, Arena *scratch, const GeomMap *from, GeomMap *to)
{
    int32_t *at;

    to->in = from->out;
    to->out = from->in;
    to->offsets = from->offsets;
    to->strip = from->strip;
    to->strips = (to->out + to->strip - 1) / to->strip;
    at = arena_array(scratch, to->strips * to->offsets, sizeof *at);
    turn_pairs(from, to, at, false);
    open_groups(keep, to, at);
    turn_pairs(from, to, at, true);
}
