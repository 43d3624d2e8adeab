/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions of one instance, evaluated when something asks for them: so the side that a select
 * does not choose, and all behind a guard that is false, is never looked at. */
#include "interp/interp_int.h"

#include <assert.h>

/* An entry variable tells what it hangs on, also where the access leaves that out. */
static Expr **full_index(Run *x, Expr *load)
{
    const Buf *b = load->buf;
    const LaySlot *slot = x->buf[b->id].layout.slot;
    Expr **ix = arena_array(x->arena, b->nfull, sizeof *ix);

    for (int s = 0; s < b->nslot; s++)
        if (load->arg[s]->op != OP_none)
            ix[b->place_in_full[s]] = load->arg[s];
    for (int k = b->nfull - 1; k >= 0; k--)
        if (ix[k] != NULL && ix[k]->op == OP_var && slot[k].parent >= 0 &&
            ix[slot[k].parent] == NULL)
            ix[slot[k].parent] = ix[k]->var->parent;
    return ix;
}

static int deeper(int a, int b)
{
    return a > b ? a : b;
}

static int use_load(Run *x, Expr *e)
{
    Known *n = &x->node[e->id];
    int depth = 0;

    if (!x->buf[e->buf->id].ready)
        interp_fail(x, "%s is not complete here; the last |= of its axes comes later",
                    e->buf->name);
    if (n->index == NULL)
        n->index = full_index(x, e);
    for (int k = 0; k < e->buf->nfull; k++)
        if (n->index[k] != NULL)
            depth = deeper(depth, interp_use(x, n->index[k]));
    return depth;
}

int interp_use(Run *x, Expr *e)
{
    Known *n = &x->node[e->id];
    int depth = 0;

    if (n->nest == x->nest)
        return n->depth;
    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc) {
        depth = x->depth_of[e->var->id];
        assert(depth > 0);
    } else if (e->op == OP_load) {
        depth = use_load(x, e);
    } else if (e->op == OP_count && !x->axis[e->axis->id].ready) {
        interp_fail(x, "axis %s is not complete here; its last |= comes later", e->axis->name);
    }
    for (int i = 0; i < e->nargs && e->op != OP_load; i++)
        depth = deeper(depth, interp_use(x, e->arg[i]));
    n->nest = x->nest;
    return n->depth = depth;
}

int64_t interp_coord(const AxisState *s, int k, int64_t p, int64_t first)
{
    return s->coord[k].data != NULL ? ir_array_int(&s->coord[k], p) : p - first;
}

/* How the coordinates at p compare with a key. */
static int compare(const Axis *a, const AxisState *s, int64_t p, int64_t first, const int64_t *key)
{
    for (int k = 0; k < a->ncoord; k++) {
        int64_t c = interp_coord(s, k, p, first);

        if (c != key[k])
            return c < key[k] ? -1 : 1;
    }
    return 0;
}

/* The first position in lo..hi whose coordinates are not below the key, where they are sorted. */
static int64_t bisect(const Axis *a, const AxisState *s, int64_t lo, int64_t hi, const int64_t *key)
{
    int64_t first = lo;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (compare(a, s, mid, first, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The position in lo..hi that has the coordinates of an index, or -1. */
static int64_t search(Run *x, const Axis *a, Expr *index, int64_t lo, int64_t hi)
{
    const AxisState *s = &x->axis[a->id];
    int64_t key[IR_MAX_RANK], p = lo;

    for (int k = 0; k < a->ncoord; k++)
        key[k] = interp_eval(x, index->op == OP_tuple ? index->arg[k] : index).i;
    if ((a->flags & AX_SORTED) && s->exists == NULL) {
        p = bisect(a, s, lo, hi, key);
        return p < hi && compare(a, s, p, lo, key) == 0 ? p : -1;
    }
    while (p < hi && !((s->exists == NULL || s->exists[p]) && compare(a, s, p, lo, key) == 0))
        p++;
    return p < hi ? p : -1;
}

static const char *spot_text(Run *x, const Spot *spot)
{
    Text t = { .arena = x->arena };

    if (spot->buf == NULL)
        text_f(&t, "%s above %s", spot->axis->name, spot->below);
    for (int s = 0; spot->buf != NULL && s < spot->buf->nslot; s++)
        if (spot->buf->place_in_full[s] == spot->place)
            text_f(&t, "%s's slot %d", spot->buf->name, s + 1);
    return t.s;
}

static int64_t position(Run *x, int64_t p, const Spot *spot)
{
    const AxisState *s = &x->axis[spot->axis->id];

    if (p < 0 || p >= s->span.total)
        interp_fail(x, "position %lld of %s is outside 0..%lld", (long long)p, spot_text(x, spot),
                    (long long)s->span.total);
    if (s->exists != NULL && !s->exists[p])
        interp_fail(x, "position %lld of %s is padding", (long long)p, spot_text(x, spot));
    return p;
}

int64_t interp_index(Run *x, Expr *index, const Spot *spot)
{
    const AxisState *s = &x->axis[spot->axis->id];
    int64_t lo, hi, c;

    if (index->op == OP_var)
        return x->pos[index->var->id];
    if (index->op == OP_at)
        return position(x, interp_eval(x, index->arg[0]).i, spot);
    lo = ir_span_first(&s->span, spot->parent);
    hi = ir_span_first(&s->span, spot->parent + 1);
    if (!ir_is_ident(spot->axis))
        return search(x, spot->axis, index, lo, hi);
    c = interp_eval(x, index).i;
    if (c < 0 || c >= hi - lo)
        interp_fail(x, "index %lld of %s is outside 0..%lld", (long long)c, spot_text(x, spot),
                    (long long)(hi - lo));
    return s->exists == NULL || s->exists[lo + c] ? lo + c : -1;
}

/* The parent's position above position p. */
static int64_t above(const Span *s, int64_t p)
{
    int64_t lo = 0, hi = s->parents;

    if (s->width >= 0)
        return p / s->width;
    while (hi - lo > 1) { /* the last parent whose first is at most p */
        int64_t mid = lo + (hi - lo) / 2;

        if (ir_array_int(&s->start, mid) <= p)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Sets place k, and above it what the access leaves to @ to tell. */
static void settle(Run *x, const Layout *l, int64_t *pos, int k, int64_t p)
{
    int up = l->slot[k].parent;
    int64_t q;

    pos[k] = p;
    if (up < 0)
        return;
    q = above(&l->slot[k].span, p);
    if (pos[up] < 0)
        settle(x, l, pos, up, q);
    else if (pos[up] != q)
        interp_fail(x, "%s: position %lld of %s is under position %lld of %s, not %lld",
                    l->buf->name, (long long)p, l->buf->full[k]->name, (long long)q,
                    l->buf->full[up]->name, (long long)pos[up]);
}

/* Slot by slot, left to right; the first that misses decides. */
static int64_t find_place(Run *x, Expr *load)
{
    const Buf *b = load->buf;
    const Layout *l = &x->buf[b->id].layout;
    Expr **ix = x->node[load->id].index;
    int64_t pos[IR_MAX_FULL];

    for (int k = 0; k < b->nfull; k++) {
        int up = l->slot[k].parent;

        pos[k] = -1;
        if (ix[k] == NULL)
            continue;
        pos[k] = interp_index(x, ix[k], &(Spot){ b->full[k], up < 0 ? 0 : pos[up], b, k, NULL });
        if (pos[k] < 0)
            return -1;
        if (ix[k]->op == OP_at)
            settle(x, l, pos, k, pos[k]);
    }
    return ir_layout_at(l, pos);
}

int64_t interp_place(Run *x, Expr *load)
{
    Known *n = &x->node[load->id];

    if (n->placed != x->epoch[n->depth]) {
        n->place = find_place(x, load);
        n->placed = x->epoch[n->depth];
    }
    return n->place;
}

static Val load_value(Run *x, Expr *e)
{
    const BufState *b = &x->buf[e->buf->id];
    int64_t at = interp_place(x, e);

    return at < 0 ? b->fill : interp_get(&b->data, at);
}

static Val operate(Run *x, Expr *e)
{
    Val a = interp_eval(x, e->arg[0]), b = { 0 };

    if (e->nargs > 1)
        b = interp_eval(x, e->arg[1]);
    return interp_apply(x, e, a, b);
}

static Val compute(Run *x, Expr *e)
{
    Expr *side;

    switch (e->op) {
    case OP_int: return (Val){ .i = e->i };
    case OP_real: return (Val){ .f = e->f };
    case OP_size: return (Val){ .i = x->env->size[e->size->id] };
    case OP_count: return (Val){ .i = x->axis[e->axis->id].span.total };
    case OP_pos: return (Val){ .i = x->pos[e->var->id] };
    case OP_loc: return (Val){ .i = x->pos[e->var->id] - x->first[e->var->id] };
    case OP_coord:
        return (Val){ .i = interp_coord(&x->axis[e->var->axis->id], e->k, x->pos[e->var->id],
                                        x->first[e->var->id]) };
    case OP_load: return load_value(x, e);
    case OP_stored: return (Val){ .i = interp_place(x, e->arg[0]) >= 0 };
    case OP_and: return (Val){ .i = interp_eval(x, e->arg[0]).i && interp_eval(x, e->arg[1]).i };
    case OP_or: return (Val){ .i = interp_eval(x, e->arg[0]).i || interp_eval(x, e->arg[1]).i };
    case OP_not: return (Val){ .i = !interp_eval(x, e->arg[0]).i };
    case OP_select:
        side = e->arg[interp_eval(x, e->arg[0]).i ? 1 : 2];
        return interp_convert(interp_eval(x, side), side->type, e->type);
    default: return operate(x, e);
    }
}

Val interp_eval(Run *x, Expr *e)
{
    Known *n = &x->node[e->id];

    if (n->valued != x->epoch[n->depth]) {
        n->val = compute(x, e);
        n->valued = x->epoch[n->depth];
    }
    return n->val;
}
