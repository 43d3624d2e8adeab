/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reads a format back: the entries that its parts hold, in the order of storage, with the
 * coordinates that the axes give them.  It uses only what the conversion stored. */
#include "format/format_int.h"

typedef struct Walk {
    const FmtUse *use;
    const FmtShape *shape;
    const FmtPart *part;
    const FmtEntries *bounds;
    int64_t *const *coord;
    int64_t *entry, n;
    int64_t loc[IR_MAX_RANK], pos[IR_MAX_RANK]; /* by level */
} Walk;

static int64_t value(const Walk *w, const FmtExpr *e)
{
    int64_t v[2] = { 0, 0 };

    switch (e->op) {
    case F_INT: return e->v;
    case F_BOUND: return w->bounds->bound[e->v];
    case F_LOC: return w->loc[e->v];
    case F_LOAD: return fmt_int(&w->part->level[e->v].coord[e->k], w->pos[e->v]);
    default:
        for (int i = 0; i < e->nargs; i++)
            v[i] = value(w, e->arg[i]);
        return fmt_op(e->op, v[0], v[1]);
    }
}

/* Padding needs no test of its coordinates: it holds entry -1. */
static void walk(Walk *w, int l)
{
    const FmtLevel *level = &w->part->level[l];
    int64_t up = l == 0 ? 0 : w->pos[l - 1];
    bool seg = level->start.data != NULL;
    int64_t first = seg ? fmt_int(&level->start, up) : up * level->width;
    int64_t n = seg ? fmt_int(&level->start, up + 1) - first : level->width;

    for (int64_t x = 0; x < n; x++) {
        w->loc[l] = x;
        w->pos[l] = first + x;
        if (l + 1 < w->part->nlevel) {
            walk(w, l + 1);
        } else if (fmt_int(&w->part->entry, first + x) >= 0) {
            for (int k = 0; k < w->use->rule->ncoord; k++)
                w->coord[k][w->n] =
                    value(w, w->shape->level[w->shape->from_level[k]].coord[w->shape->from_k[k]]);
            w->entry[w->n++] = fmt_int(&w->part->entry, first + x);
        }
    }
}

int64_t fmt_back(Arena *arena, const FmtUse *u, const FmtParts *parts, const FmtEntries *bounds,
                 int64_t *const *coord, int64_t *entry)
{
    Walk w = { .use = u, .bounds = bounds, .coord = coord, .entry = entry };

    if (parts->n != u->nshape)
        err_throw(arena->err, ST_ARG, "these are the parts of another format than %s",
                  u->rule->name);
    for (int i = 0; i < parts->n; i++) {
        w.shape = &u->shape[i];
        w.part = &parts->part[i];
        walk(&w, 0);
    }
    return w.n;
}
