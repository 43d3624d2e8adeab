/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a plan puts into the axes that lower/split/reductions.c makes: where long rows and sums
 * are cut. */
#include "api/api_int.h"
#include "emit/emit.h"
#include "lower/lower.h"
#include "run/run.h"

static int64_t *new_array(Arena *arena, Array *to, int64_t n)
{
    *to = (Array){ arena_array(arena, n, sizeof(int64_t)), n, T_i64 };
    return to->data;
}

static void fill_long(Arena *arena, const Prog *p, Env *env, const Axis *e, int64_t part)
{
    const Axis *parts = e->parent, *rows = parts->parent, *one = rows->parent;
    const Array *start = &env->start[e->from->id];
    int64_t n = ir_axis_total(p, env, e->from->parent), *range;
    RunParts r;

    run_count_parts(start->data, ir_type[start->type].bytes, n, part, &r);
    new_array(arena, &env->coord[one->id][0], 1)[0] = r.limit;
    range = new_array(arena, &env->start[rows->id], 2);
    range[1] = r.rows;
    r.row = new_array(arena, &env->coord[rows->id][0], r.rows);
    r.first = new_array(arena, &env->start[parts->id], r.rows + 1);
    r.part_row = new_array(arena, &env->coord[parts->id][0], r.parts);
    r.shift = new_array(arena, &env->coord[parts->id][1], r.parts);
    r.start = new_array(arena, &env->start[e->id], r.parts + 1);
    run_fill_parts(start->data, ir_type[start->type].bytes, n, &r);
}

/* The least number of iterations that is worth a part: less, where each has much to do. */
static int64_t least(Arena *arena, const Lowered *l, const Env *env, const Axis *e, int64_t part)
{
    double weight = 1;

    for (int i = 0; l->info != NULL && i < l->info->nphase; i++) {
        const Buf *b = l->work[i].balance;

        if (b != NULL && b->of == e)
            weight = lower_weight(arena, l->prog, env, &l->work[i]);
    }
    return (int64_t)((double)(part > 0 ? part : RUN_PART) / weight) + 1;
}

int64_t api_most_extent(const Axis *a)
{
    int64_t most = a->extent == X_ONE ? 1 : a->extent == X_TABLE ? 0 : -1;

    for (int64_t i = 0; a->extent == X_TABLE && i < a->n; i++)
        most = a->table[i] > most ? a->table[i] : most;
    return most;
}

/* Elements that a part has for itself of an array that has a row for each, at most. */
static int64_t elements(const Prog *p, const Env *env, const Buf *b, const Axis *parts)
{
    int64_t all = 1;
    bool has = false;

    for (int k = 0; k < b->nfull; k++)
        if (b->full[k] == parts) {
            has = true;
        } else if (has) {
            int64_t n = b->full[k]->extent == X_EXPR ? ir_eval_size(p, env, b->full[k]->size)
                                                     : api_most_extent(b->full[k]);

            if (n < 0 || int_mul(all, n, &all))
                all = RUN_FINE_ROOM;
        }
    return has ? all : 0;
}

/* The most elements that a part has of one array. */
static int64_t most_elements(const Lowered *l, const Env *env, const Axis *parts)
{
    int64_t each = 1;

    for (int i = 0; l->info != NULL && i < l->info->nphase; i++)
        for (int k = 0; k < l->work[i].nstored; k++) {
            int64_t n = elements(l->prog, env, l->work[i].stored[k], parts);

            each = n > each ? n : each;
        }
    return each;
}

static void fill_pieces(Arena *arena, const Lowered *l, Env *env, const Axis *e, int64_t part)
{
    const Prog *p = l->prog;
    const Axis *parts = e->parent, *of = e->from;
    bool entries = of->extent == X_SEG;
    int64_t n = entries ? ir_axis_total(p, env, of) : ir_eval_size(p, env, of->size), k, *start;
    int64_t *row, *end, *range = new_array(arena, &env->start[parts->id], 2);

    n = n > 0 ? n : 0;
    k = run_count_pieces(n, least(arena, l, env, e, part), most_elements(l, env, parts));
    range[1] = k;
    row = new_array(arena, &env->coord[parts->id][0], k);
    end = new_array(arena, &env->coord[parts->id][1], k);
    start = new_array(arena, &env->start[e->id], k + 1);
    for (int64_t q = 0; q < k; q++) {
        const Array *s = &env->start[of->id];

        start[q + 1] = run_piece(n, k, q + 1);
        if (entries)
            run_rows_of(s->data, ir_type[s->type].bytes, ir_axis_total(p, env, of->parent),
                        start[q], start[q + 1], &row[q], &end[q]);
    }
}

enum { ROW_ENTRIES = PARTS_ROW_ENTRIES, MOST_ROW_PARTS = PARTS_OF_ROWS };

/* Parts of rows with about as many entries each. */
static void fill_rows(Arena *arena, const Prog *p, Env *env, const Axis *r, int64_t part)
{
    const Axis *parts = r->parent, *of = r->from;
    const Array *s = &env->start[of->id];
    int64_t rows = ir_axis_total(p, env, of->parent), n = ir_axis_total(p, env, of);
    int64_t named = ir_eval_size(p, env, of->coord[r->part].bound), row = 0, made = 0, k;
    int64_t *range = new_array(arena, &env->start[parts->id], 2), *start, *at, most;

    most = part > 0 ? n / part : n / (ROW_ENTRIES * (named > rows ? named : rows > 0 ? rows : 1));
    for (k = rows > 0; 0 < k && 2 * k <= most && k < MOST_ROW_PARTS;)
        k *= 2;
    start = new_array(arena, &env->start[r->id], k + 1);
    at = new_array(arena, &env->coord[r->id][0], rows);
    for (int64_t q = 0; q < k; q++) {
        int64_t first, end;

        run_rows_of(s->data, ir_type[s->type].bytes, rows, run_piece(n, k, q),
                    run_piece(n, k, q + 1), &first, &end);
        end = q + 1 == k ? rows : end;
        while (row < end)
            at[row++] = made;
        if (row > start[made])
            start[++made] = row;
    }
    range[1] = made;
    env->start[r->id].n = made + 1;
}

void api_fill_parts(Arena *arena, const Lowered *l, Env *env, const Axis *e, int64_t part)
{
    if (e->from_k == FROM_LONG)
        fill_long(arena, l->prog, env, e, part);
    else if (e->from_k == FROM_ROWS)
        fill_rows(arena, l->prog, env, e, part);
    else
        fill_pieces(arena, l, env, e, part);
}

/* Some 10 us of work: in a loop over dense rows an element takes less than an entry does. */
int64_t api_grain(Arena *arena, const Lowered *l, const Env *env, int phase)
{
    double weight = lower_weight(arena, l->prog, env, &l->work[phase]) / 16;

    return weight <= 1 ? RUN_GRAIN : (int64_t)(RUN_GRAIN / weight) + 1;
}
