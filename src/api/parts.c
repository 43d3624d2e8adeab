/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fills the axes that lower/split/reductions.c makes: where long rows, sums and scatters are cut.
 */
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

/* What an iteration of a sum that is cut has to do. */
static double weight_of(Arena *arena, const Lowered *l, const Env *env, const Axis *e)
{
    double weight = 1;

    for (int i = 0; l->info != NULL && i < l->info->nphase; i++) {
        const Buf *b = l->work[i].balance;

        if (b != NULL && b->of == e)
            weight = lower_weight(arena, l->prog, env, &l->work[i]);
    }
    return weight;
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
    int64_t each = most_elements(l, env, parts);
    double weight = weight_of(arena, l, env, e), terms;

    n = n > 0 ? n : 0;
    terms = (double)n * weight;
    k = run_count_pieces(n, (int64_t)((double)(part > 0 ? part : RUN_PART) / weight) + 1, each);
    if (part == 0) /* a part adds at least as many terms as it has elements */
        k = terms < (double)each ? k > 0 : terms < (double)(k * each) ? (int64_t)terms / each : k;
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

/* Where the entries below each row at the top begin, and their number. */
static int64_t *starts_below(Arena *arena, const Prog *p, const Env *env, const Axis *a)
{
    const Axis *up = a->parent;
    int64_t rows, *out;

    if (up->parent == NULL) {
        rows = ir_axis_total(p, env, up);
        out = arena_array(arena, rows + 1, sizeof *out);
        for (int64_t i = 0; i <= rows; i++)
            out[i] = ir_array_int(&env->start[a->id], i);
        return out;
    }
    out = starts_below(arena, p, env, up);
    while (up->parent != NULL)
        up = up->parent;
    rows = ir_axis_total(p, env, up);
    for (int64_t i = 0; i <= rows; i++)
        out[i] = ir_array_int(&env->start[a->id], out[i]);
    return out;
}

/* Parts of rows with about as many entries each. */
static void fill_rows(Arena *arena, const Prog *p, Env *env, const Axis *r, int64_t part)
{
    const Axis *parts = r->parent, *of = r->from, *top = of;
    const Array *names = &env->coord[of->id][r->part];
    int64_t *range = new_array(arena, &env->start[parts->id], 2);
    RunRows cut = { .start = starts_below(arena, p, env, of),
                    .name = names->data,
                    .bytes = ir_type[names->type].bytes,
                    .named = ir_eval_size(p, env, of->coord[r->part].bound) };

    while (top->parent != NULL)
        top = top->parent;
    cut.rows = ir_axis_total(p, env, top);
    cut.low = arena_array(arena, cut.rows, sizeof *cut.low);
    cut.high = arena_array(arena, cut.rows, sizeof *cut.high);
    run_count_rows(&cut, part);
    cut.first_row = new_array(arena, &env->start[r->id], cut.parts + 1);
    cut.part = new_array(arena, &env->coord[r->id][0], cut.rows);
    cut.first = new_array(arena, &env->coord[parts->id][0], cut.parts);
    cut.end = new_array(arena, &env->coord[parts->id][1], cut.parts);
    run_fill_rows(&cut);
    range[1] = cut.parts;
    env->start[r->id].n = cut.parts + 1;
    env->coord[parts->id][0].n = env->coord[parts->id][1].n = cut.parts;
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
    double weight = lower_weight(arena, l->prog, env, &l->work[phase]) / COST_ELEMENTS;

    return weight <= 1 ? RUN_GRAIN : (int64_t)(RUN_GRAIN / weight) + 1;
}
