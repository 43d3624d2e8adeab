/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What an emitted program stores entries in a format with: groups of entries, and one level of axes
 * after the other.  src/format does the same for the library, by blocks and in narrow types; here
 * all is of int64_t and on one thread, and tests compare the arrays.  Stands after plan.h.
 *
 * Columns have one number for each entry of a list.  A number that overflowed or was divided by 0
 * is INT64_MIN. */
#ifndef WEFT_CONVERT_H
#define WEFT_CONVERT_H

enum { WEFT_MOST_COORDS = 16, WEFT_DIGIT = 11 };

#define WEFT_BAD INT64_MIN

static WEFT_USED int64_t weft_f_add(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD || __builtin_add_overflow(a, b, &a) ? WEFT_BAD : a;
}

static WEFT_USED int64_t weft_f_sub(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD || __builtin_sub_overflow(a, b, &a) ? WEFT_BAD : a;
}

static WEFT_USED int64_t weft_f_mul(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD || __builtin_mul_overflow(a, b, &a) ? WEFT_BAD : a;
}

static WEFT_USED int64_t weft_f_div(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD || b == 0 ? WEFT_BAD : weft_plan_div(a, b);
}

static WEFT_USED int64_t weft_f_mod(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD || b == 0 ? WEFT_BAD : weft_plan_mod(a, b);
}

static WEFT_USED int64_t weft_f_min(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD ? WEFT_BAD : a < b ? a : b;
}

static WEFT_USED int64_t weft_f_max(int64_t a, int64_t b)
{
    return a == WEFT_BAD || b == WEFT_BAD ? WEFT_BAD : a > b ? a : b;
}

static WEFT_USED int64_t weft_f_neg(int64_t a) { return weft_f_sub(0, a); }
static WEFT_USED int64_t weft_f_abs(int64_t a) { return a == WEFT_BAD ? a : a < 0 ? -a : a; }
static WEFT_USED int64_t weft_f_not(int64_t a) { return a == WEFT_BAD ? a : !a; }

#define WEFT_COMPARE(name, op)                                       \
    static WEFT_USED int64_t weft_f_##name(int64_t a, int64_t b)     \
    {                                                                \
        return a == WEFT_BAD || b == WEFT_BAD ? WEFT_BAD : a op b;   \
    }
WEFT_COMPARE(lt, <)
WEFT_COMPARE(le, <=)
WEFT_COMPARE(eq, ==)
WEFT_COMPARE(ne, !=)
WEFT_COMPARE(and, &&)
WEFT_COMPARE(or, ||)

/* The least b with 2^b >= a. */
static WEFT_USED int64_t weft_f_bits(int64_t a)
{
    int64_t b = 0;

    while (b < 62 && ((int64_t)1 << b) < a)
        b++;
    return a == WEFT_BAD ? a : b;
}

static WEFT_USED int64_t weft_f_exp2(int64_t a)
{
    return a < 0 || a > 62 ? WEFT_BAD : (int64_t)1 << a;
}

/* One stable pass over a digit of a column; counts has room for 2^WEFT_DIGIT + 1. */
static WEFT_USED void weft_sort_digit(int64_t n, const int64_t *col, uint64_t least, int shift,
                                      const int64_t *order, int64_t *to, int64_t *count)
{
    const uint64_t mask = ((uint64_t)1 << WEFT_DIGIT) - 1;

    memset(count, 0, ((size_t)mask + 2) * sizeof *count);
    for (int64_t t = 0; t < n; t++)
        count[((((uint64_t)col[t] - least) >> shift) & mask) + 1]++;
    for (uint64_t d = 0; d < mask; d++)
        count[d + 1] += count[d];
    for (int64_t t = 0; t < n; t++)
        to[count[(((uint64_t)col[order[t]] - least) >> shift) & mask]++] = order[t];
}

/* The numbers 0..n in the order of the columns, the first one first; equal rows as they stand. */
static WEFT_USED int64_t *weft_order(weft_heap *tmp, int64_t n, int ncol,
                                     const int64_t *const *col)
{
    int64_t *order = weft_take(tmp, n), *to = weft_take(tmp, n);
    int64_t *count = weft_take(tmp, ((int64_t)1 << WEFT_DIGIT) + 1);

    if (tmp->fault != 0)
        return 0;
    for (int64_t t = 0; t < n; t++)
        order[t] = t;
    for (int c = ncol - 1; c >= 0; c--) {
        int64_t lo = n > 0 ? col[c][0] : 0, hi = lo;

        for (int64_t t = 0; t < n; t++) {
            lo = col[c][t] < lo ? col[c][t] : lo;
            hi = col[c][t] > hi ? col[c][t] : hi;
        }
        if (lo == WEFT_BAD)
            tmp->fault = WEFT_MISFIT;
        for (int shift = 0; shift < 64 && ((uint64_t)hi - (uint64_t)lo) >> shift != 0;
             shift += WEFT_DIGIT) {
            int64_t *had = order;

            weft_sort_digit(n, col[c], (uint64_t)lo, shift, order, to, count);
            order = to;
            to = had;
        }
    }
    return order;
}

/* Whether the first ncol columns of the t-th row differ from those of the one before. */
static WEFT_USED int weft_differs(const int64_t *order, int64_t t, int ncol,
                                  const int64_t *const *col)
{
    int differs = t == 0;

    for (int c = 0; c < ncol && !differs; c++)
        differs = col[c][order[t]] != col[c][order[t - 1]];
    return differs;
}

/* By entry: how many have the same values, or how many of these come before it. */
static WEFT_USED int64_t *weft_group(weft_heap *tmp, int64_t n, int ncol,
                                     const int64_t *const *col, int rank)
{
    const int64_t *order = weft_order(tmp, n, ncol, col);
    int64_t *out = weft_take(tmp, n);

    if (tmp->fault != 0)
        return 0;
    for (int64_t t = 0, end; t < n; t = end) {
        for (end = t + 1; end < n && !weft_differs(order, end, ncol, col); end++)
            ;
        for (int64_t k = t; k < end; k++)
            out[order[k]] = rank ? k - t : end - t;
    }
    return out;
}

/* By entry: different rows before it that have the same first `keys` values. */
static WEFT_USED int64_t *weft_index(weft_heap *tmp, int64_t n, int ncol,
                                     const int64_t *const *col, int keys)
{
    const int64_t *order = weft_order(tmp, n, ncol, col);
    int64_t *out = weft_take(tmp, n), index = 0;

    for (int64_t t = 0; t < n && tmp->fault == 0; t++) {
        index = weft_differs(order, t, keys, col) ? 0 : index + weft_differs(order, t, ncol, col);
        out[order[t]] = index;
    }
    return out;
}

/* By entry: where its value is when the values below `bound`, in windows of so many, are sorted by
 * the largest `by` that each has, the largest first. */
static WEFT_USED int64_t *weft_places(weft_heap *tmp, int64_t n, const int64_t *value,
                                      const int64_t *by, int64_t bound, int64_t window)
{
    int64_t *most = weft_take_filled(tmp, bound, 0), *in = weft_take(tmp, bound);
    int64_t *place = weft_take(tmp, bound), *out = weft_take(tmp, n);
    const int64_t *const col[] = { in, most };
    const int64_t *order;

    if (tmp->fault != 0)
        return 0;
    for (int64_t e = 0; e < n; e++)
        most[value[e]] = by[e] > most[value[e]] ? by[e] : most[value[e]];
    for (int64_t v = 0; v < bound; v++) {
        in[v] = v / window;
        most[v] = -most[v];
    }
    order = weft_order(tmp, bound, 2, col);
    for (int64_t t = 0; t < bound && tmp->fault == 0; t++)
        place[order[t]] = t;
    for (int64_t e = 0; e < n && tmp->fault == 0; e++)
        out[e] = place[value[e]];
    return out;
}

/* The position on the axis above of each of n positions; at NULL: of 0, 1, ...  And its number
 * inside that one. */
static WEFT_USED int64_t *weft_climb(weft_heap *tmp, int64_t n, const int64_t *at,
                                     const weft_span *s, int place)
{
    int64_t *out = weft_take(tmp, n);

    for (int64_t e = 0; e < n && out != 0; e++) {
        int64_t p = at != 0 ? at[e] : e, q = weft_above(s, p);

        out[e] = place ? p - weft_first(s, q) : q;
    }
    return out;
}

/* The entries whose coordinates are all inside their bounds; how many. */
static WEFT_USED int64_t weft_existing(int64_t n, int ncoord, const int64_t *const *coord,
                                       const int64_t *bound, int64_t *list)
{
    int64_t there = 0;

    for (int64_t e = 0; e < n; e++) {
        int inside = 1;

        for (int k = 0; k < ncoord; k++)
            inside = inside && coord[k][e] >= 0 && coord[k][e] < bound[k];
        if (inside)
            list[there++] = e;
    }
    return there;
}

/* The entries of part i, from the part of each; how many. */
static WEFT_USED int64_t weft_select(int64_t n, const int64_t *part, int64_t i,
                                     const int64_t *list, int64_t *out)
{
    int64_t to = 0;

    for (int64_t t = 0; t < n; t++)
        if (part[t] == i)
            out[to++] = list[t];
    return to;
}

typedef struct weft_level { /* an axis of a format, filled */
    int64_t parents, total, width; /* width: under each parent; -1: start tells */
    int64_t *start, *coord[WEFT_MOST_COORDS];
    int64_t *entry; /* of the last axis: which entry a position has; -1: none */
} weft_level;

enum { WEFT_UNIQUE = 1, WEFT_SORTED = 2, WEFT_PADDED = 4, WEFT_LAST = 8 };

typedef struct weft_part { /* of a format, while its levels are made */
    weft_heap *h, *tmp;
    int64_t n;           /* entries */
    const int64_t *list; /* which they are */
    int64_t all;         /* entries of all parts, and their bounds added up */
    int64_t *pos;        /* of each on the last level that was made; NULL: there is none */
} weft_part;

typedef struct weft_rule { /* of one level */
    int flags, ncoord;
    int64_t width;       /* -1: what the longest needs; -2: rows of their own length; -3: bad */
    const int64_t *loc;  /* the place of each entry under its parent; NULL: by what is stored */
    const int64_t *load[WEFT_MOST_COORDS]; /* what each stores; NULL: nothing */
    int64_t bound[WEFT_MOST_COORDS];       /* -1: none */
} weft_rule;

static WEFT_USED int64_t weft_width(int64_t n)
{
    return n < 0 ? -3 : n;
}

static WEFT_USED void weft_misfit(weft_part *p, int bad)
{
    if (bad && p->h->fault == 0)
        p->h->fault = WEFT_MISFIT;
}

/* The total of a level, which must not be far more than what there is to store. */
static WEFT_USED void weft_set_total(weft_part *p, weft_level *out, int64_t width)
{
    out->width = width;
    if (width >= 0 && __builtin_mul_overflow(out->parents, width, &out->total))
        out->total = INT64_MAX;
    weft_misfit(p, out->total >= 1 << 24 && out->total / 256 >= p->all);
}

/* Starts from how many positions each parent has, which is in start[q + 1]. */
static WEFT_USED int64_t weft_sum_starts(weft_part *p, weft_level *out)
{
    int64_t longest = 0;

    for (int64_t q = 0; q < out->parents && p->h->fault == 0; q++) {
        longest = out->start[q + 1] > longest ? out->start[q + 1] : longest;
        weft_misfit(p, __builtin_add_overflow(out->start[q], out->start[q + 1],
                                              &out->start[q + 1]));
    }
    return longest;
}

/* The position of each entry where the place under its parent is known. */
static WEFT_USED void weft_map_places(weft_part *p, const weft_rule *r, weft_level *out,
                                      int64_t *to)
{
    int64_t most = -1;

    for (int64_t t = 0; t < p->n; t++) {
        weft_misfit(p, r->loc[t] < 0 || r->loc[t] == INT64_MAX ||
                           (r->width >= 0 && r->loc[t] >= r->width));
        most = r->loc[t] > most ? r->loc[t] : most;
    }
    if (r->width == -2)
        out->start = weft_take_filled(p->h, out->parents + 1, 0);
    if (p->h->fault != 0)
        return;
    for (int64_t t = 0; t < p->n && r->width == -2; t++) {
        int64_t *n = &out->start[(p->pos != 0 ? p->pos[t] : 0) + 1];

        *n = r->loc[t] + 1 > *n ? r->loc[t] + 1 : *n;
    }
    if (r->width == -2) {
        weft_sum_starts(p, out);
        out->total = out->start[out->parents];
    }
    weft_set_total(p, out, r->width == -2 ? -1 : r->width >= 0 ? r->width : most + 1);
    for (int64_t t = 0; t < p->n && p->h->fault == 0; t++) {
        int64_t up = p->pos != 0 ? p->pos[t] : 0;

        to[t] = r->loc[t] + (out->start != 0 ? out->start[up] : up * out->width);
    }
}

/* The same where it is the number of what is stored, among all that the parent has. */
static WEFT_USED void weft_number_places(weft_part *p, const weft_rule *r, weft_level *out,
                                         int64_t *to)
{
    const int64_t *col[WEFT_MOST_COORDS + 1], *order;
    int64_t *place = weft_take(p->tmp, p->n), next = 0, longest;
    int ncol = 0;

    if (p->pos != 0)
        col[ncol++] = p->pos;
    for (int k = 0; k < r->ncoord && r->flags & (WEFT_SORTED | WEFT_UNIQUE); k++)
        if (r->load[k] != 0)
            col[ncol++] = r->load[k];
    order = weft_order(p->tmp, p->n, ncol, col);
    out->start = weft_take_filled(r->width == -2 ? p->h : p->tmp, out->parents + 1, 0);
    if (p->h->fault != 0 || p->tmp->fault != 0)
        return;
    for (int64_t t = 0; t < p->n; t++) {
        int64_t up = p->pos != 0 ? p->pos[order[t]] : 0;

        next = out->start[up + 1];
        if (!(r->flags & WEFT_UNIQUE) || weft_differs(order, t, ncol, col))
            out->start[up + 1] = ++next;
        place[order[t]] = next - 1;
    }
    longest = weft_sum_starts(p, out);
    out->total = out->start[out->parents];
    weft_misfit(p, r->width >= 0 && longest > r->width);
    weft_set_total(p, out, r->width == -2 ? -1 : r->width >= 0 ? r->width : longest);
    for (int64_t t = 0; t < p->n && p->h->fault == 0; t++) {
        int64_t up = p->pos != 0 ? p->pos[t] : 0;

        to[t] = place[t] + (r->width == -2 ? out->start[up] : up * out->width);
    }
    if (r->width != -2)
        out->start = 0;
}

/* What the positions of a level store; entries that share one store the same there. */
static WEFT_USED void weft_store_coord(weft_part *p, const weft_rule *r, weft_level *out, int k,
                                       const int64_t *to)
{
    int64_t *c = out->coord[k] = weft_take_filled(p->h, out->total, -1);

    for (int64_t t = 0; t < p->n && c != 0; t++) {
        weft_misfit(p, r->bound[k] >= 0 && (r->load[k][t] < 0 || r->load[k][t] >= r->bound[k]));
        c[to[t]] = r->load[k][t];
    }
    for (int64_t t = 0; t < p->n && c != 0; t++)
        weft_misfit(p, c[to[t]] != r->load[k][t]);
    for (int64_t q = 0; q < out->total && c != 0; q++)
        weft_misfit(p, c[q] < 0 && r->bound[k] >= 0 && !(r->flags & WEFT_PADDED));
}

/* One level, after those above it. */
static WEFT_USED void weft_make_level(weft_part *p, const weft_rule *r, int64_t parents,
                                      weft_level *out)
{
    int64_t *to = weft_take(p->tmp, p->n);

    *out = (weft_level){ .parents = parents };
    weft_misfit(p, r->width < -2);
    if (p->tmp->fault != 0)
        p->h->fault = p->tmp->fault;
    if (p->h->fault != 0)
        return;
    if (r->loc != 0)
        weft_map_places(p, r, out, to);
    else
        weft_number_places(p, r, out, to);
    if (p->tmp->fault != 0)
        p->h->fault = p->tmp->fault;
    for (int k = 0; k < r->ncoord && p->h->fault == 0; k++)
        if (r->load[k] != 0)
            weft_store_coord(p, r, out, k, to);
    if (r->flags & WEFT_LAST)
        out->entry = weft_take_filled(p->h, out->total, -1);
    for (int64_t t = 0; t < p->n && r->flags & WEFT_LAST && p->h->fault == 0; t++) {
        weft_misfit(p, out->entry[to[t]] >= 0);
        out->entry[to[t]] = p->list[t];
    }
    p->pos = to;
}

#endif
