/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One level of a part: the choice of how its positions are found, and helpers of all ways. */
#include "format/format_int.h"

#include <string.h>

/* More positions than the first number are refused if there are more than the second per entry. */
enum { LIMIT_POSITIONS = 1 << 24, LIMIT_PADDING = 256 };

static bool is_narrow(int64_t lo, int64_t hi)
{
    return lo >= INT32_MIN && hi <= INT32_MAX;
}

Array fmt_room(const FmtWork *w, int64_t n, int64_t lo, int64_t hi)
{
    Type type = is_narrow(lo, hi) ? T_i32 : T_i64;

    return (Array){ arena_raw(w->b->arena, n, ir_type[type].bytes), n, type };
}

typedef struct Blank {
    Array to;
    int64_t blocks;
} Blank;

static void blank_block(void *arg, int64_t b)
{
    Blank *k = arg;
    int64_t first = fmt_cut(k->to.n, k->blocks, b), end = fmt_cut(k->to.n, k->blocks, b + 1);
    size_t bytes = ir_type[k->to.type].bytes;

    memset((char *)k->to.data + (size_t)first * bytes, 0xff, (size_t)(end - first) * bytes);
}

Array fmt_blank(const FmtWork *w, int64_t n, int64_t lo, int64_t hi)
{
    Blank k = { fmt_room(w, n, lo, hi), fmt_blocks(n) };

    fmt_each(w->b->run, k.blocks, blank_block, &k);
    return k.to;
}

/* For a coordinate that is stored, one place a position. */
Array fmt_coord_room(const FmtWork *w, int k, bool blank)
{
    int64_t lo, hi, n = w->out->total;

    if (!fmt_range(&w->b->eval, w->axis->load[k], &lo, &hi))
        lo = INT64_MIN;
    return blank ? fmt_blank(w, n, lo, hi) : fmt_room(w, n, lo, hi);
}

/* Positions of the level above are overwritten where nobody else has them. */
void fmt_to_room(FmtWork *w)
{
    const FmtBuild *b = w->b;
    int64_t most = w->out->total > 0 ? w->out->total - 1 : 0;

    w->to = b->pos;
    if (w->to.data == NULL || !fmt_owns(&b->eval, &w->to) || w->to.wide != (most > INT32_MAX))
        w->to = fmt_column(b->run, 0, most);
    w->to.lo = 0;
    w->to.hi = most;
}

bool fmt_is_outside(const FmtWork *w, int k, int64_t v)
{
    return !w->sure[k] && (v < 0 || v >= w->bound[k]);
}

/* Formats that pad may ask for more than any memory has: said before it is asked for. */
void fmt_set_total(FmtWork *w, int64_t width)
{
    const FmtEntries *from = w->b->eval.from;
    int64_t n = from->n;
    Text t = { .arena = w->b->arena };

    w->out->width = width;
    if (width >= 0 && int_mul(w->out->parents, width, &w->out->total))
        w->out->total = INT64_MAX;
    for (int k = 0; k < from->ncoord; k++)
        if (int_add(n, from->bound[k], &n))
            n = INT64_MAX;
    if (w->out->total < LIMIT_POSITIONS || w->out->total / LIMIT_PADDING < n)
        return;
    text_f(&t, "%lld positions for %lld entries are too many; take another format",
           (long long)w->out->total, (long long)from->n);
    fmt_refuse(w->b, ST_LIMIT, t.s);
}

_Noreturn void fmt_place_outside(const FmtWork *w, int64_t t, int64_t place, int64_t width)
{
    Text text = { .arena = w->b->arena };

    fmt_print_entry(&text, w->b, t);
    if (place == INT64_MIN)
        text_f(&text, " has no position on axis %s that fits 64 bits", w->out->name);
    else
        text_f(&text, " would be at %lld of axis %s, which has %lld positions there",
               (long long)place, w->out->name, (long long)width);
    fmt_refuse(w->b, ST_BIND, text.s);
}

/* Without `padded` each position that stores something within a bound needs an entry. */
void fmt_check_full(const FmtWork *w)
{
    Text t = { .arena = w->b->arena };

    for (int k = 0; k < w->out->ncoord; k++) {
        const Array *a = &w->out->coord[k];

        if (a->data == NULL || w->axis->bound[k] == NULL || w->axis->axis->flags & AX_PADDED)
            continue;
        for (int64_t p = 0; p < w->out->total; p++)
            if (fmt_int(a, p) < 0) {
                text_f(&t, "no entry is at position %lld of axis %s, which is not padded",
                       (long long)p, w->out->name);
                fmt_refuse(w->b, ST_BIND, t.s);
            }
    }
}

static void set_bounds(FmtWork *w)
{
    for (int k = 0; k < w->out->ncoord; k++) {
        int64_t lo, hi;

        w->sure[k] = w->axis->load[k] == NULL || w->axis->bound[k] == NULL;
        if (w->sure[k])
            continue;
        fmt_prepare(&w->b->eval, w->axis->load[k]);
        w->bound[k] = fmt_size(w->axis->bound[k], w->b->eval.from);
        w->sure[k] = fmt_range(&w->b->eval, w->axis->load[k], &lo, &hi) && lo >= 0 &&
                     hi < w->bound[k];
    }
}

void fmt_level(FmtBuild *b, int n)
{
    const FmtAxis *axis = &b->shape->level[n];
    FmtLevel *out = &b->part->level[n];
    FmtWork w = { .b = b, .axis = axis, .out = out, .root = n == 0,
                  .last = n == b->shape->nlevel - 1 };
    const FmtExpr zero = { .op = F_INT };

    *out = (FmtLevel){ .name = axis->axis->name, .ncoord = axis->axis->ncoord };
    out->parents = n == 0 ? 1 : out[-1].total;
    set_bounds(&w);
    if (axis->loc != NULL)
        fmt_place_mapped(&w, axis->loc);
    else if (axis->axis->extent == X_ONE)
        fmt_place_mapped(&w, &zero);
    else if (!fmt_place_bits(&w))
        fmt_place_numbered(&w);
    if (b->pos.data != w.to.data)
        fmt_done(&b->eval, &b->pos);
    b->pos = w.to;
}
