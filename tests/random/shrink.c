/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Makes a failing case small.  Text: lines, then ever shorter runs of pieces are dropped or
 * replaced by a number, as long as the case fails in the same way.  Data: sizes are lowered,
 * entries dropped, values made plain. */
#include "random/random.h"
#include "random/token.h"
#include "unit/trap.h"

#include <string.h>

typedef struct Shrink {
    Arena *arena;
    Case best;
    Mode mode;
    Defect defect;
    Report want;
    int tries; /* left */
} Shrink;

/* Zeros for inputs that have no data: what was an output, before its statement was dropped. */
static void complete(Arena *a, Case *c)
{
    Space space;

    case_parse(a, c);
    space_init(&space, a, c->prog, c->env);
    for (int i = 0; i < c->prog->nbuf; i++) {
        const Buf *b = c->prog->buf[i];

        if (c->env->buf[i].data == NULL && b->kind == B_ARG && !b->written)
            c->env->buf[i] = array_new(a, b->type, space_tuples(&space, b).n);
    }
    c->data = data_of_env(a, c->prog, c->env);
}

static bool still_fails(Shrink *s, const Case *new)
{
    Case c = *new;
    Report r;

    if (s->tries <= 0)
        return false;
    s->tries--;
    if (s->mode == MODE_RUN && CATCH(s->arena->err, complete(s->arena, &c)) != ST_OK)
        return false;
    r = check_case(&c, s->mode, s->defect);
    if (r.outcome != s->want.outcome || r.kind != s->want.kind)
        return false;
    s->best = c;
    s->want = r;
    return true;
}

static bool try_text(Shrink *s, const char *text)
{
    Case c = s->best;

    c.text = text;
    return strcmp(text, s->best.text) != 0 && still_fails(s, &c);
}

static bool drop_lines(Shrink *s)
{
    Pieces p;
    bool any = false;

    pieces_split(s->arena, &p, s->best.text);
    for (int end = p.n; end > 0;) {
        int from = end - 1;

        while (from > 0 && *p.piece[from - 1].s != '\n')
            from--;
        if (try_text(s, pieces_join(s->arena, &p, from, end, ""))) {
            pieces_split(s->arena, &p, s->best.text);
            any = true;
        }
        end = from;
    }
    return any;
}

static bool drop_pieces(Shrink *s, int run, const char *instead)
{
    Pieces p;
    bool any = false;

    pieces_split(s->arena, &p, s->best.text);
    for (int i = 0; i + run <= p.n; i++) {
        if (*p.piece[i].s == ' ' || !pieces_balanced(&p, i, i + run) ||
            (run == 1 && *instead != 0 && *p.piece[i].s <= '1'))
            continue;
        if (try_text(s, pieces_join(s->arena, &p, i, i + run, instead))) {
            pieces_split(s->arena, &p, s->best.text);
            any = true;
            i--;
        }
    }
    return any;
}

static bool shrink_text(Shrink *s)
{
    bool any = drop_lines(s);

    for (int run = 128; run >= 1; run = run > 12 ? run / 2 : run - 1) {
        any = drop_pieces(s, run, "") || any;
        if (run <= 64)
            any = drop_pieces(s, run, "1") || any;
        any = drop_lines(s) || any;
    }
    return any;
}

typedef struct Cut { /* what a smaller structure keeps */
    Space *space;
    Env *env, *to;
    bool **keep; /* by axis id, then position */
} Cut;

static bool keeps(const Cut *c, const Axis *x, int64_t p, const Axis *drop, int64_t at)
{
    const Level *v = &c->space->level[x->id];
    Space small = *c->space;

    small.env = c->to;
    if (x->parent != NULL && !c->keep[x->parent->id][v->parent[p]])
        return false;
    if (x->extent == X_EXPR)
        return v->loc[p] < space_size(&small, x->size);
    if (x->extent != X_SEG)
        return true;
    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].bound != NULL && !(x->flags & AX_PADDED) &&
            v->coord[k][p] >= space_size(&small, x->coord[k].bound))
            return false;
    return x != drop || p != at;
}

static Array filter(Arena *a, const Array *from, const bool *keep)
{
    Array to = array_new(a, from->type, from->n);

    to.n = 0;
    for (int64_t i = 0; i < from->n; i++)
        if (keep[i])
            array_set(&to, to.n++, ir_type[from->type].floats ? 0 : array_int(from, i),
                      ir_type[from->type].floats ? array_float(from, i) : 0);
    return to;
}

static void cut_axis(Arena *a, Cut *c, const Axis *x, const Axis *drop, int64_t at)
{
    const Level *v = &c->space->level[x->id];
    bool *keep = c->keep[x->id] = arena_array(a, v->n + 1, sizeof *keep);
    int64_t up, n = 0, parents = 0;

    if (!v->known)
        return;
    for (int64_t p = 0; p < v->n; p++)
        keep[p] = keeps(c, x, p, drop, at);
    for (int k = 0; k < x->ncoord; k++)
        if (c->env->coord[x->id][k].data != NULL)
            c->to->coord[x->id][k] = filter(a, &c->env->coord[x->id][k], keep);
    if (x->extent != X_SEG)
        return;
    up = c->space->level[x->parent->id].n;
    c->to->start[x->id] = array_new(a, T_i64, up + 1);
    for (int64_t q = 0, p = 0; q < up; q++) {
        for (; p < v->n && v->parent[p] == q; p++)
            n += keep[p];
        if (c->keep[x->parent->id][q])
            array_set(&c->to->start[x->id], ++parents, n, 0);
    }
    c->to->start[x->id].n = parents + 1;
}

static void cut_buf(Arena *a, Cut *c, const Buf *b)
{
    Tuples t = space_tuples(c->space, b);
    bool *keep = arena_array(a, t.n + 1, sizeof *keep);

    for (int64_t i = 0; i < t.n; i++) {
        keep[i] = true;
        for (int k = 0; k < t.width; k++)
            keep[i] = keep[i] && c->keep[b->full[k]->id][t.row[i * t.width + k]];
    }
    c->to->buf[b->id] = filter(a, &c->env->buf[b->id], keep);
}

/* The data with size `lower` one less (or none), and entry `at` of axis `drop` left out. */
static Data *cut(Shrink *s, const Prog *p, Env *env, int lower, const Axis *drop, int64_t at)
{
    Space space;
    Cut c = { .space = &space, .env = env, .to = ir_env(s->arena, p) };

    space_init(&space, s->arena, p, env);
    memcpy(c.to->size, env->size, (size_t)p->nsize * sizeof *env->size);
    if (lower >= 0)
        c.to->size[lower]--;
    c.keep = arena_array(s->arena, p->naxis, sizeof *c.keep);
    for (int i = 0; i < p->naxis; i++)
        cut_axis(s->arena, &c, p->axis[i], drop, at);
    for (int i = 0; i < p->nbuf; i++)
        if (env->buf[i].data != NULL)
            cut_buf(s->arena, &c, p->buf[i]);
    return data_of_env(s->arena, p, c.to);
}

static bool try_cut(Shrink *s, int lower, const Axis *drop, int64_t at)
{
    Case c = s->best;
    Err *err = s->arena->err;

    case_parse(s->arena, &c);
    if (CATCH(err, c.data = cut(s, c.prog, c.env, lower, drop, at)) != ST_OK)
        return false;
    return still_fails(s, &c);
}

static bool shrink_structure(Shrink *s)
{
    Case c = s->best;
    bool any = false;

    case_parse(s->arena, &c);
    for (int i = 0; i < c.prog->nsize; i++)
        for (int64_t n = c.env->size[i]; n > 0 && try_cut(s, i, NULL, 0); n--)
            any = true;
    for (int i = 0; i < c.prog->naxis; i++) {
        const Axis *x = c.prog->axis[i];
        int64_t n = x->extent == X_SEG ? c.env->start[i].n : 0;

        for (int64_t p = n > 0 ? array_int(&c.env->start[i], n - 1) : 0; p-- > 0;) {
            Case now = s->best;

            case_parse(s->arena, &now);
            any = try_cut(s, -1, now.prog->axis[i], p) || any;
        }
    }
    return any;
}

static bool try_value(Shrink *s, int item, int64_t from, int64_t to, int value)
{
    Case c = s->best;
    Data *d = arena_copy(s->arena, c.data, sizeof *d);
    Array *a;

    d->item = arena_copy(s->arena, d->item, (size_t)d->n * sizeof *d->item);
    a = &d->item[item].array;
    a->data = arena_copy(s->arena, a->data, (size_t)a->n * ir_type[a->type].bytes);
    for (int64_t i = from; i < to; i++)
        array_set(a, i, value, value);
    if (memcmp(a->data, c.data->item[item].array.data, (size_t)a->n * ir_type[a->type].bytes) == 0)
        return false;
    c.data = d;
    return still_fails(s, &c);
}

static void shrink_values(Shrink *s)
{
    for (int i = 0; i < s->best.data->n; i++) {
        const Item *it = &s->best.data->item[i];

        if (it->is_size || strstr(it->name, ".start") != NULL)
            continue;
        if (try_value(s, i, 0, it->array.n, 0) || try_value(s, i, 0, it->array.n, 1))
            continue;
        for (int64_t k = 0; k < it->array.n && k < 30; k++)
            if (!try_value(s, i, k, k + 1, 0))
                try_value(s, i, k, k + 1, 1);
    }
}

/* Only arrays that the text still speaks of are worth showing. */
static void drop_unused(Shrink *s)
{
    Case c = s->best;

    if (CATCH(s->arena->err, case_parse(s->arena, &c)) == ST_OK)
        s->best.data = data_of_env(s->arena, c.prog, c.env);
}

static void shrink_data(Shrink *s)
{
    if (s->mode == MODE_PARSE)
        return;
    drop_unused(s);
    CATCH(s->arena->err, shrink_structure(s));
    shrink_values(s);
}

Case *shrink(Arena *a, const Case *c, Mode mode, Defect defect, Report *r)
{
    Shrink *s = arena_alloc(a, sizeof *s);

    *s = (Shrink){
        .arena = a, .best = *c, .mode = mode, .defect = defect, .want = *r, .tries = 30000
    };
    for (bool again = true; again && s->tries > 0;) {
        again = shrink_text(s);
        shrink_data(s);
    }
    *r = s->want;
    return arena_copy(a, &s->best, sizeof s->best);
}
