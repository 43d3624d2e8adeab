/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Loops of several statements over the same piece of a relation become one path, so that one draft
 * (lower/factor.c) is made for all their sums: what the gradient by one operand sums up serves the
 * others.  They are told by an element that no statement reads in two of its loops. */
#include "lower/segment_int.h"

#include <string.h>

enum { MOST_LIKE = 16 }; /* loops that read one element */

typedef struct Readers { /* of an element */
    int path[MOST_LIKE], n;
    bool common; /* a statement reads it in several loops */
} Readers;

typedef struct Like {
    Segments *s;
    Path *path;
    int n;
    int *at; /* by Expr.id: 1 + its place in the list */
    Readers *list;
    int nlist, cap;
} Like;

static const char *label_of(const Path *path)
{
    return path->loop->body[0]->label != NULL ? path->loop->body[0]->label : "";
}

static void note(Like *l, int path, const Expr *e)
{
    Readers *r;

    if (l->at[e->id] == 0) {
        l->list = arena_grow(l->s->p->arena, l->list, l->nlist, &l->cap, sizeof *l->list);
        l->list[l->nlist] = (Readers){ .n = 0 };
        l->at[e->id] = ++l->nlist;
    }
    r = &l->list[l->at[e->id] - 1];
    for (int i = 0; i < r->n; i++)
        r->common = r->common ||
                    strcmp(label_of(&l->path[r->path[i]]), label_of(&l->path[path])) == 0;
    if (r->n == MOST_LIKE)
        r->common = true;
    else
        r->path[r->n++] = path;
}

/* Whether the two read an element that only loops like them do. */
static bool are_like(const Like *l, int a, int b)
{
    const Path *x = &l->path[a];
    bool like = false;

    if (!lower_segment_range(x, &l->path[b]))
        return false;
    for (int i = 0; i < x->nmoving && !like; i++) {
        const Readers *r = &l->list[l->at[x->moving[i]->id] - 1];

        for (int k = 0; k < r->n && !r->common; k++)
            like = like || r->path[k] == b;
    }
    return like;
}

static Node *one_loop(Prog *p, const Path *a, const Path *b)
{
    NodeList body = { 0 };

    for (int i = 0; i < a->loop->nbody; i++)
        lower_append(p, &body, a->loop->body[i]);
    for (int i = 0; i < b->loop->nbody; i++)
        lower_append(p, &body, b->loop->body[i]);
    return lower_with_body(p, a->loop, &body);
}

static void draft(Segments *s, Path *path)
{
    path->draft = lower_draft(s->p, &path->f, lower_segment_turns(s, path->loop));
}

/* The path with all that are like it, where that takes fewer operations. */
static Path with_likes(Like *l, int i, bool *gone)
{
    Path all = l->path[i], more;
    int *member = arena_array(l->s->p->arena, l->n, sizeof *member);
    int n = 0, cost = l->path[i].f.cost;

    for (int k = i + 1; k < l->n; k++) {
        if (gone[k] || !are_like(l, i, k) ||
            !lower_segment_path(l->s, one_loop(l->s->p, &all, &l->path[k]), &more))
            continue;
        all = more;
        cost += l->path[k].f.cost;
        member[n++] = k;
    }
    if (n > 0)
        draft(l->s, &all);
    if (n == 0 || all.f.cost >= cost)
        return l->path[i];
    for (int k = 0; k < n; k++)
        gone[member[k]] = true;
    return all;
}

int lower_segment_likes(Segments *s, Path *path, int n)
{
    Like l = { .s = s, .path = path, .n = n };
    bool *gone = arena_array(s->p->arena, n, sizeof *gone);
    int left = 0;

    l.at = arena_array(s->p->arena, s->p->nexpr, sizeof *l.at);
    for (int i = 0; i < n; i++) {
        draft(s, &path[i]);
        for (int k = 0; k < path[i].nmoving; k++)
            note(&l, i, path[i].moving[k]);
    }
    for (int i = 0; i < n; i++)
        if (!gone[i]) {
            path[left] = with_likes(&l, i, gone);
            lower_move_draft(path[left].draft, &path[left].f);
            left++;
        }
    return left;
}
