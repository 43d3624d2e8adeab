/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What can be chosen: one function for each dimension, from the machine and from sizes; then what
 * makes no difference to this program is taken out again, and the rest is put in order. */
#include "tune/tune.h"
#include "sched/sched.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond these the space holds only points with few changes. */
enum { MOST_POINTS = 4096 };

static TuneDim *add_dim(TuneSpace *s, const char *name, bool rounds)
{
    TuneDim *d;

    s->dim = arena_grow(s->arena, s->dim, s->ndim, &s->dimcap, sizeof *s->dim);
    d = &s->dim[s->ndim++];
    *d = (TuneDim){ .name = name, .rounds = rounds };
    d->text = arena_grow(s->arena, d->text, d->n, &d->cap, sizeof *d->text);
    d->text[d->n++] = "";
    return d;
}

static void add_text(TuneSpace *s, TuneDim *d, const char *text)
{
    d->text = arena_grow(s->arena, d->text, d->n, &d->cap, sizeof *d->text);
    d->text[d->n++] = text;
}

static void add_number(TuneSpace *s, TuneDim *d, const char *format, int number)
{
    Text t = { .arena = s->arena };

    text_f(&t, "%s %d%s", d->name, number, format);
    add_text(s, d, t.s);
}

/* Sums in registers: powers of two up to all of them but two, which hold what is multiplied; what
 * is more than a row can fill is the same as all that it fills. */
static void add_tile(TuneSpace *s, const TuneFacts *f)
{
    TuneDim *d = add_dim(s, "tile", true);
    Type type = f->element > ir_type[T_f32].bytes ? T_f64 : T_f32;
    double own = sched_default(f->unit).policy.tile, before = 0,
           most = f->widest > 0 ? ceil(f->widest / lanes_of(f->unit, type)) : INFINITY;

    for (int n = 1; n <= f->unit->registers - 2; n *= 2) {
        double fills = fmin(n, most);

        if (fills > before && (fills < fmin(own, most) || fills > fmin(own, most)))
            add_number(s, d, "", n);
        before = fills;
    }
    add_number(s, d, "", 0);
}

static void add_ahead(TuneSpace *s, const TuneFacts *f)
{
    TuneDim *d = add_dim(s, "ahead", false);

    (void)f;
    for (int n = 1024; n <= 16384; n *= 4)
        add_number(s, d, "", n);
    add_number(s, d, "", 0);
}

/* From two registers to half of the longest row, each with and without a copy. */
static void add_panel(TuneSpace *s, const TuneFacts *f)
{
    TuneDim *d = add_dim(s, "panel", false);
    double most = f->widest > 0 ? f->widest / 2 : 256;

    for (int n = 2 * lanes_of(f->unit, T_f32); n <= most && n <= 1024; n *= 2) {
        add_number(s, d, "; pack 1", n);
        add_number(s, d, "", n);
    }
}

static void add_stream(TuneSpace *s, const TuneFacts *f)
{
    (void)f;
    add_number(s, add_dim(s, "stream", false), "", 1);
}

static void add_jam(TuneSpace *s, const TuneFacts *f)
{
    (void)f;
    add_number(s, add_dim(s, "jam", true), "", 0);
}

static void add_formats(TuneSpace *s, const TuneFacts *f)
{
    for (int a = 0; a < f->naxis; a++) {
        TuneDim *d = add_dim(s, "format", true);

        d->family = true;
        for (int i = 0; f->axis[a].format[i] != NULL; i++) {
            Text t = { .arena = s->arena };

            text_f(&t, "format %s %s", f->axis[a].name, f->axis[a].format[i]);
            add_text(s, d, t.s);
        }
    }
}

static void add_steps(TuneSpace *s, const TuneFacts *f)
{
    for (int i = 0; i < f->nsteps; i++)
        add_text(s, add_dim(s, f->steps[i].name, f->steps[i].rounds), f->steps[i].text);
}

/* A new dimension is a function above and a row here. */
static void (*const dimension[])(TuneSpace *, const TuneFacts *) = {
    add_formats, add_steps, add_panel, add_tile, add_ahead, add_stream, add_jam,
};

/* What has a prediction as it is, and none with a piece, does not fit that: a format that cannot
 * hold these entries. */
static bool fits(const TuneAsk *ask, const char *text)
{
    return isnan(ask->predict(ask->user, "")) || !isnan(ask->predict(ask->user, text));
}

/* Keeps the pieces that give loops which no piece before has given. */
static void reduce(TuneSpace *s, TuneDim *d, const TuneAsk *ask, uint64_t plain)
{
    uint64_t *met = arena_array(s->arena, d->n, sizeof *met);
    int n = 1;

    met[0] = plain;
    for (int i = 1; i < d->n; i++) {
        bool known = !ask->tree(ask->user, d->text[i], &met[n]) || !fits(ask, d->text[i]);

        for (int k = 0; k < n && !known; k++)
            known = met[k] == met[n];
        if (!known)
            d->text[n++] = d->text[i];
    }
    d->n = n;
}

static void reduce_all(TuneSpace *s, const TuneAsk *ask)
{
    uint64_t plain;
    int n = 0;

    if (!ask->tree(ask->user, "", &plain)) {
        s->ndim = 0;
        return;
    }
    for (int i = 0; i < s->ndim; i++) {
        reduce(s, &s->dim[i], ask, plain);
        if (s->dim[i].n > 1)
            s->dim[n++] = s->dim[i];
    }
    s->ndim = n;
}

/* How many points have at most so many changes: sums of products of the numbers of pieces. */
static double count_points(const TuneSpace *s, int most)
{
    double with[64] = { 1 }, sum = 0; /* with[c]: points with c changes */

    for (int i = 0; i < s->ndim; i++)
        for (int c = most < 63 ? most : 63; c > 0; c--)
            with[c] += with[c - 1] * (s->dim[i].n - 1);
    for (int c = 0; c <= most && c < 64; c++)
        sum += with[c];
    return sum;
}

/* The dimensions of families come first, so the points of one stand together. */
static int family_of(TuneSpace *s, const int *choice)
{
    const int *last = s->npoint > 0 ? s->point[s->npoint - 1].choice : NULL;
    bool same = last != NULL;

    for (int i = 0; i < s->ndim && same; i++)
        same = !s->dim[i].family || choice[i] == last[i];
    s->nfamily += !same;
    return s->nfamily - 1;
}

static void finish_point(TuneSpace *s, const TuneAsk *ask, const int *choice)
{
    TunePoint *p = &s->point[s->npoint];
    Text t = { .arena = s->arena };
    int *own;

    *p = (TunePoint){ .family = family_of(s, choice), .exact = true };
    s->npoint++;
    own = arena_array(s->arena, s->ndim, sizeof *own);
    memcpy(own, choice, (size_t)s->ndim * sizeof *own);
    p->choice = own;
    text_put(&t, "", 0);
    for (int i = 0; i < s->ndim; i++) {
        if (choice[i] == 0)
            continue;
        text_f(&t, "%s%s", t.n > 0 ? "; " : "", s->dim[i].text[choice[i]]);
        p->changes++;
        p->exact = p->exact && !s->dim[i].rounds;
    }
    p->text = t.s;
    p->predicted = ask->predict(ask->user, p->text);
}

/* All points with at most `most` changes, the default first. */
static void add_points(TuneSpace *s, const TuneAsk *ask, int *choice, int dim, int most)
{
    if (dim == s->ndim) {
        finish_point(s, ask, choice);
        return;
    }
    for (int i = 0; i < (most > 0 ? s->dim[dim].n : 1); i++) {
        choice[dim] = i;
        add_points(s, ask, choice, dim + 1, most - (i > 0));
    }
    choice[dim] = 0;
}

static bool comes_before(const TuneSpace *s, int a, int b)
{
    const TunePoint *p = &s->point[a], *q = &s->point[b];
    double x = isnan(p->predicted) ? INFINITY : p->predicted;
    double y = isnan(q->predicted) ? INFINITY : q->predicted;

    if (x < y || x > y)
        return x < y;
    return p->changes != q->changes ? p->changes < q->changes : a < b;
}

/* By merging, as the order of equals is part of the result. */
static void sort(const TuneSpace *s, int *order, int *room, int n)
{
    int half = n / 2, a = 0, b = half;

    if (n < 2)
        return;
    sort(s, order, room, half);
    sort(s, order + half, room, n - half);
    for (int i = 0; i < n; i++)
        room[i] = b == n || (a < half && !comes_before(s, order[b], order[a])) ? order[a++]
                                                                                : order[b++];
    memcpy(order, room, (size_t)n * sizeof *order);
}

void tune_space(Arena *arena, const TuneFacts *facts, const TuneAsk *ask, TuneSpace *out)
{
    int most, *choice, *room;

    *out = (TuneSpace){ .arena = arena };
    for (size_t i = 0; i < sizeof dimension / sizeof *dimension; i++)
        dimension[i](out, facts);
    reduce_all(out, ask);
    most = out->ndim;
    while (most > 1 && count_points(out, most) > MOST_POINTS)
        most--;
    choice = arena_array(arena, out->ndim, sizeof *choice);
    out->point = arena_array(arena, (int64_t)count_points(out, most), sizeof *out->point);
    add_points(out, ask, choice, 0, most);
    out->order = arena_array(arena, out->npoint, sizeof *out->order);
    room = arena_array(arena, out->npoint, sizeof *room);
    for (int i = 0; i < out->npoint; i++)
        out->order[i] = i;
    sort(out, out->order, room, out->npoint);
}

bool tune_is_near(const TuneSpace *s, int a, int b)
{
    int n = 0;

    for (int i = 0; i < s->ndim; i++)
        n += s->point[a].choice[i] != s->point[b].choice[i];
    return n == 1;
}
