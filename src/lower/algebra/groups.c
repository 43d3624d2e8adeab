/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Groups loops that stand one after the other: a loop that shares an element with a group joins it.
 * For each element there is a list of the loops that use it, so that the time grows with the number
 * of loops and not with the number of pairs. */
#include "lower/algebra/factor_int.h"

#include <string.h>

enum { WORD = 64 };

typedef struct Reader { /* a list of elements that an element is in */
    const Expr *element;
    int list, at; /* at: its place among the elements of all lists */
} Reader;

/* Parts of one loop have its list of elements, and are side by side. */
struct Grouping {
    Path *path;
    int n;
    int *list;      /* by loop: its list of elements */
    int *first;     /* by list: its first loop, */
    int *begin;     /* and its elements that other lists have, too, as numbers */
    int *element;
    int *readers, *end; /* by element: where the lists that have it begin and end */
    int *by;
    bool *is_sum;   /* by element: a loop adds to it */
    int *round;     /* by element: the round in which its loops became near; */
    int *met, *added; /* by list: in which its elements were looked at, its loops became near */
    int now;        /* a round for each group, or two */
    int *member;    /* the loops of the group */
    int members;
    bool sums;      /* only loops that use an element which the group adds to are near */
    uint64_t *near; /* a bit for each loop that shares an element with the group */
    int word;       /* of near: the first that may have bits */
};

static int by_element(const void *a, const void *b)
{
    const Reader *x = a, *y = b;

    return x->element == y->element ? (x->at > y->at) - (x->at < y->at)
                                    : (x->element->id > y->element->id) -
                                          (x->element->id < y->element->id);
}

/* Finds the lists; how many elements they have together. */
static int find_lists(Prog *p, Grouping *g)
{
    int n = 0, all = 0;

    g->list = arena_array(p->arena, g->n, sizeof *g->list);
    g->first = arena_array(p->arena, g->n + 1, sizeof *g->first);
    g->begin = arena_array(p->arena, g->n + 1, sizeof *g->begin);
    for (int i = 0; i < g->n; i++) {
        if (i == 0 || g->path[i].moving != g->path[i - 1].moving) {
            g->first[n] = i;
            g->begin[n++] = all;
            all += g->path[i].nmoving;
        }
        g->list[i] = n - 1;
    }
    g->first[n] = g->n;
    g->begin[n] = all;
    return all;
}

/* Numbers the elements, and lists what has each. */
static void number(Prog *p, Grouping *g, int all)
{
    Reader *reader = arena_array(p->arena, all, sizeof *reader);
    int n = 0;

    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->path[i].nmoving && g->first[g->list[i]] == i; k++, n++)
            reader[n] = (Reader){ g->path[i].moving[k], g->list[i], n };
    array_sort(reader, all, sizeof *reader, by_element);
    n = 0;
    for (int i = 0, end; i < all; i = end) {
        for (end = i + 1; end < all && reader[end].element == reader[i].element;)
            end++;
        for (int k = i; k < end; k++) {
            g->element[reader[k].at] = end - i > 1 ? n : -1;
            g->by[k] = reader[k].list;
        }
        g->readers[n] = i;
        g->end[n] = end;
        n += end - i > 1;
    }
}

/* Elements that only one list has tell nothing of others. */
static void drop_unshared(Grouping *g)
{
    int n = 0;

    for (int l = 0, from = 0; g->first[l] < g->n; l++) {
        int end = g->begin[l + 1];

        g->begin[l] = n;
        for (int i = from; i < end; i++)
            if (g->element[i] >= 0)
                g->element[n++] = g->element[i];
        g->begin[l + 1] = n;
        from = end;
    }
}

static void find_sums(Prog *p, Grouping *g)
{
    for (int i = 0; i < g->n; i++) {
        Memo sums = { 0 };
        int from = g->begin[g->list[i]];

        if (g->first[g->list[i]] != i)
            continue;
        for (int part = i; part < g->n && g->list[part] == g->list[i]; part++)
            for (int k = 0; k < g->path[part].f.n; k++)
                *ir_memo(p, &sums, g->path[part].f.sum[k].cell) = g->path[part].f.sum[k].cell;
        for (int k = 0; k < g->path[i].nmoving; k++)
            if (g->element[from + k] >= 0 && *ir_memo(p, &sums, g->path[i].moving[k]) != NULL)
                g->is_sum[g->element[from + k]] = true;
    }
}

Grouping *lower_grouping(Prog *p, Path *path, int n)
{
    Grouping *g = arena_alloc(p->arena, sizeof *g);
    int all;

    *g = (Grouping){ .path = path, .n = n };
    if (n == 1) /* most runs */
        return g;
    all = find_lists(p, g);
    g->element = arena_array(p->arena, all, sizeof *g->element);
    g->by = arena_array(p->arena, all, sizeof *g->by);
    g->readers = arena_array(p->arena, all, sizeof *g->readers);
    g->end = arena_array(p->arena, all, sizeof *g->end);
    g->is_sum = arena_array(p->arena, all, sizeof *g->is_sum);
    g->round = arena_array(p->arena, all, sizeof *g->round);
    g->added = arena_array(p->arena, n, sizeof *g->added);
    g->met = arena_array(p->arena, n, sizeof *g->met);
    g->member = arena_array(p->arena, n, sizeof *g->member);
    g->near = arena_array(p->arena, n / WORD + 1, sizeof *g->near);
    number(p, g, all);
    find_sums(p, g);
    drop_unshared(g);
    return g;
}

/* The loops of a list after that one are near. */
static void add_near(Grouping *in, int list, int after)
{
    if (in->added[list] == in->now)
        return;
    in->added[list] = in->now;
    for (int k = in->first[list]; k < in->first[list + 1]; k++)
        if (k > after)
            in->near[k / WORD] |= (uint64_t)1 << k % WORD;
}

/* Later loops that use an element of this one are near: any element, or one that a loop adds to. */
static void mark_near(Grouping *in, int path, bool sums)
{
    int list = in->list[path];

    if (in->met[list] == in->now)
        return;
    in->met[list] = in->now;
    if (!sums) /* parts of one loop have sums of their own */
        add_near(in, list, path);
    for (int i = in->begin[list]; i < in->begin[list + 1]; i++) {
        int e = in->element[i];

        if (in->round[e] == in->now || (sums && !in->is_sum[e]))
            continue;
        in->round[e] = in->now;
        for (int k = in->readers[e]; k < in->end[e]; k++)
            add_near(in, in->by[k], path);
    }
}

void lower_begin_group(Grouping *in, int first)
{
    in->word = first / WORD;
    in->members = 0;
    in->sums = false;
    in->now++;
}

void lower_join_group(Grouping *in, int path)
{
    in->path[path].taken = true;
    if (in->n == 1)
        return;
    in->member[in->members++] = path;
    mark_near(in, path, in->sums);
}

/* From now on only loops that add to an element of the group are near. */
static void keep_sums(Grouping *in)
{
    if (in->sums)
        return;
    in->sums = true;
    in->now++;
    memset(&in->near[in->word], 0, (size_t)(in->n / WORD + 1 - in->word) * sizeof *in->near);
    for (int i = 0; i < in->members; i++)
        mark_near(in, in->member[i], true);
}

/* Bits are used up on the way. */
static int next_near(Grouping *in, int after)
{
    for (; in->word <= (in->n - 1) / WORD; in->word++)
        while (in->near[in->word] != 0) {
            uint64_t left = in->near[in->word];
            int b = 0;

            in->near[in->word] &= left - 1;
            for (left ^= in->near[in->word]; left > 1; left >>= 1)
                b++;
            if (in->word * WORD + b > after)
                return in->word * WORD + b;
        }
    return -1;
}

int lower_next_for_group(Grouping *in, int after, GroupWants wants)
{
    bool any = wants == GROUP_ANY;
    int k = after;

    if (in->n == 1)
        return -1;
    if (wants == GROUP_SUMS)
        keep_sums(in);
    do
        k = any && k + 1 < in->n ? k + 1 : next_near(in, any ? in->n : k);
    while (k >= 0 && in->path[k].taken);
    return k;
}
