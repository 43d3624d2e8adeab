/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Groups the loops of several statements over the same part of a constant relation, so that one
 * draft (algebra/draft.c) serves all their sums: a sum that the gradient by one operand needs
 * also serves the others.  Loops belong together when they read an element that no statement
 * reads in two of its loops. */
#include "lower/algebra/factor_int.h"

#include <string.h>

enum { LIMIT_LIKE = 16 }; /* loops that read one element */

typedef struct Readers { /* of an element */
    int path[LIMIT_LIKE], n;
    bool common; /* a statement reads it in several loops */
} Readers;

typedef struct Like {
    Segments *s;
    Path *path;
    int n;
    Expr **key; /* open addressing: elements, and their places in the list */
    int *at;
    uint32_t room;
    Readers *list;
    int nlist, cap;
} Like;

static const char *label_of(const Path *path)
{
    return path->loop->body[0]->label != NULL ? path->loop->body[0]->label : "";
}

static uint32_t place_of(const Like *l, Expr *e)
{
    uint32_t at = e->id & (l->room - 1);

    while (l->key[at] != NULL && l->key[at] != e)
        at = (at + 1) & (l->room - 1);
    return at;
}

static void note(Like *l, int path, Expr *e)
{
    uint32_t place = place_of(l, e);
    Readers *r;

    if (l->key[place] == NULL) {
        l->list = arena_grow(l->s->p->arena, l->list, l->nlist, &l->cap, sizeof *l->list);
        l->list[l->nlist] = (Readers){ .n = 0 };
        l->key[place] = e;
        l->at[place] = l->nlist++;
    }
    r = &l->list[l->at[place]];
    for (int i = 0; i < r->n; i++)
        r->common = r->common ||
                    strcmp(label_of(&l->path[r->path[i]]), label_of(&l->path[path])) == 0;
    if (r->n == LIMIT_LIKE)
        r->common = true;
    else
        r->path[r->n++] = path;
}

/* The later paths that read an element which only loops like path i do, ascending. */
static int likes_of(const Like *l, int i, int *out)
{
    const Path *x = &l->path[i];
    int n = 0;

    for (int e = 0; e < x->nmoving; e++) {
        const Readers *r = &l->list[l->at[place_of(l, x->moving[e])]];

        for (int k = 0; k < r->n && !r->common; k++) {
            int at = n;

            while (at > 0 && out[at - 1] > r->path[k])
                at--;
            if (r->path[k] <= i || (at > 0 && out[at - 1] == r->path[k]) ||
                !lower_factor_range(x, &l->path[r->path[k]]))
                continue;
            for (int m = n++; m > at; m--)
                out[m] = out[m - 1];
            out[at] = r->path[k];
        }
    }
    return n;
}

static Node *one_loop(Prog *p, const Path *a, const Path *b)
{
    NodeList body = { 0 };

    for (int i = 0; i < a->loop->nbody; i++)
        tree_append(p, &body, a->loop->body[i]);
    for (int i = 0; i < b->loop->nbody; i++)
        tree_append(p, &body, b->loop->body[i]);
    return tree_with_body(p, a->loop, &body);
}

static void draft(Segments *s, Path *path)
{
    path->draft = lower_draft(s->p, &path->f, lower_factor_turns(s, path->loop));
}

/* The path with all that are like it, where that takes fewer operations. */
static Path with_likes(Like *l, int i, bool *gone)
{
    Path all = l->path[i], more;
    int *member = arena_array(l->s->p->arena, (int64_t)all.nmoving * LIMIT_LIKE, sizeof *member);
    int n = 0, cost = l->path[i].f.cost, count = likes_of(l, i, member);

    for (int m = 0; m < count; m++) {
        int k = member[m];

        if (gone[k] || !lower_factor_path(l->s, one_loop(l->s->p, &all, &l->path[k]), &more))
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

int lower_factor_alike(Segments *s, Path *path, int n)
{
    Like l = { .s = s, .path = path, .n = n };
    bool *gone;
    int left = 0, moving = 0;

    if (n == 1) { /* most runs */
        draft(s, path);
        return 1;
    }
    gone = arena_array(s->p->arena, n, sizeof *gone);
    for (int i = 0; i < n; i++)
        moving += path[i].nmoving;
    for (l.room = 4; l.room < 2 * (uint64_t)moving;)
        l.room *= 2;
    l.key = arena_array(s->p->arena, l.room, sizeof *l.key);
    l.at = arena_array(s->p->arena, l.room, sizeof *l.at);
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
