/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Structures of graph operators from lists of edges: entries by receiver, with loops or not, and
 * tiles of pairs (relation, receiver).  All by counting, in time linear in edges and rows. */
#include "geom/geom.h"

/* Counts in start[key + 1] become the place of the first of each key. */
static void sum_up(int64_t *start, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        start[i + 1] += start[i];
}

/* The numbers 0..n by key, those of a key in the order of `from`; NULL: ascending. */
static int64_t *sort_by(Arena *arena, const int64_t *key, int64_t n, int64_t rows,
                        const int64_t *from)
{
    int64_t *next = arena_array(arena, rows + 1, sizeof *next);
    int64_t *to = arena_array(arena, n, sizeof *to);

    for (int64_t k = 0; k < n; k++)
        next[key[k] + 1]++;
    sum_up(next, rows);
    for (int64_t k = 0; k < n; k++) {
        int64_t one = from != NULL ? from[k] : k;

        to[next[key[one]]++] = one;
    }
    return to;
}

static void put(int64_t *next, int64_t *sender, int64_t *at, int64_t row, int64_t from,
                int64_t edge)
{
    int64_t p = next[row]++;

    sender[p] = from;
    at[p] = edge;
}

/* The loop that each node keeps: of the list, or the new one. */
static int64_t *choose_loops(Arena *arena, const GeomList *l, int loops)
{
    int64_t both = l->nodes < l->senders ? l->nodes : l->senders;
    int64_t *loop = arena_array(arena, both, sizeof *loop);

    for (int64_t i = 0; i < both; i++)
        loop[i] = l->n + i;
    for (int64_t k = 0; k < l->n && loops == 2; k++)
        if (l->receiver[k] == l->sender[k])
            loop[l->receiver[k]] = k;
    return loop;
}

static void rows_with_loops(Arena *arena, const GeomList *l, int loops, int64_t *start,
                            int64_t *sender, int64_t *at)
{
    int64_t *loop = choose_loops(arena, l, loops), bin = l->nodes;
    int64_t both = l->nodes < l->senders ? l->nodes : l->senders;
    int64_t *next = arena_array(arena, l->nodes + 1, sizeof *next);

    for (int64_t i = 0; i < l->nodes + 2; i++)
        start[i] = 0;
    for (int64_t k = 0; k < l->n; k++)
        start[(l->receiver[k] == l->sender[k] ? bin : l->receiver[k]) + 1]++;
    for (int64_t i = 0; i < both; i++)
        start[i + 1]++;
    sum_up(start, l->nodes + 1);
    for (int64_t i = 0; i <= l->nodes; i++)
        next[i] = start[i];
    for (int64_t k = 0; k < l->n; k++) {
        bool is_loop = l->receiver[k] == l->sender[k];

        if (!is_loop || loop[l->receiver[k]] != k)
            put(next, sender, at, is_loop ? bin : l->receiver[k], l->sender[k], k);
    }
    for (int64_t i = 0; i < both; i++) {
        put(next, sender, at, i, i, loop[i]);
        if (loop[i] < l->n)
            put(next, sender, at, bin, i, l->n + i);
    }
}

void geom_rows(Arena *arena, const GeomList *l, int loops, int64_t *start, int64_t *sender,
               int64_t *at)
{
    int64_t *next = arena_array(arena, l->nodes + 1, sizeof *next);

    if (loops != 0) {
        rows_with_loops(arena, l, loops, start, sender, at);
        return;
    }
    for (int64_t i = 0; i <= l->nodes; i++)
        start[i] = 0;
    for (int64_t k = 0; k < l->n; k++)
        start[l->receiver[k] + 1]++;
    sum_up(start, l->nodes);
    for (int64_t i = 0; i < l->nodes; i++)
        next[i] = start[i];
    for (int64_t k = 0; k < l->n; k++)
        put(next, sender, at, l->receiver[k], l->sender[k], k);
}

/* Whether edge number k in the order of pairs is the first of its pair. */
static bool begins_pair(const GeomList *l, const int64_t *type, const int64_t *by, int64_t k)
{
    return k == 0 || type[by[k]] != type[by[k - 1]] || l->receiver[by[k]] != l->receiver[by[k - 1]];
}

/* How many tiles the pairs of each relation fill, summed over those before. */
static int64_t *count_tiles(Arena *arena, const GeomList *l, const int64_t *type,
                            const int64_t *by, int64_t relations, int64_t tile)
{
    int64_t *first = arena_array(arena, relations + 1, sizeof *first);

    for (int64_t k = 0; k < l->n; k++)
        first[type[by[k]] + 1] += begins_pair(l, type, by, k);
    for (int64_t r = 0; r < relations; r++)
        first[r + 1] = (first[r + 1] + tile - 1) / tile;
    sum_up(first, relations);
    return first;
}

static void place_pairs(const GeomList *l, const int64_t *type, const int64_t *by,
                        const int64_t *first, int64_t tile, int64_t *receiver, GeomTiles *out)
{
    int64_t place = -1, places = out->tiles * tile;

    for (int64_t k = 0; k < l->n; k++) {
        if (begins_pair(l, type, by, k)) {
            bool same = k > 0 && type[by[k]] == type[by[k - 1]];
            int64_t to = same ? place + 1 : first[type[by[k]]] * tile;

            while (place < to)
                out->start[++place] = k;
            receiver[out->pairs++] = l->receiver[by[k]];
            out->place[out->pairs - 1] = place;
        }
        out->relation[place / tile] = type[by[k]];
        out->sender[k] = l->sender[by[k]];
        out->at[k] = by[k];
    }
    while (place < places)
        out->start[++place] = l->n;
}

void geom_tiles(Arena *arena, const GeomList *l, const int64_t *type, int64_t relations,
                int64_t tile, int64_t least, GeomTiles *out)
{
    int64_t *by = sort_by(arena, l->receiver, l->n, l->nodes, NULL), *order, *place;
    int64_t *receiver = arena_array(arena, l->n, sizeof *receiver), *first;

    by = sort_by(arena, type, l->n, relations, by);
    first = count_tiles(arena, l, type, by, relations, tile);
    *out = (GeomTiles){ .tiles = first[relations] > least ? first[relations] : least };
    out->relation = arena_array(arena, out->tiles, sizeof *out->relation);
    out->start = arena_array(arena, out->tiles * tile + 1, sizeof *out->start);
    out->sender = arena_array(arena, l->n, sizeof *out->sender);
    out->at = arena_array(arena, l->n, sizeof *out->at);
    out->place = arena_array(arena, l->n, sizeof *out->place);
    out->first = arena_array(arena, l->nodes + 1, sizeof *out->first);
    place_pairs(l, type, by, first, tile, receiver, out);
    order = sort_by(arena, receiver, out->pairs, l->nodes, NULL);
    place = arena_array(arena, out->pairs, sizeof *place);
    for (int64_t k = 0; k < out->pairs; k++) {
        place[k] = out->place[order[k]];
        out->first[receiver[k] + 1]++;
    }
    sum_up(out->first, l->nodes);
    out->place = place;
}
