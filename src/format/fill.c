/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fills the arrays of a format's axes in the environment of a run, from the structure of the
 * replaced axis, converted once. */
#include "format/apply_int.h"
#include "ir/loop.h"

#include <string.h>

typedef struct Climb { /* from the entries to an axis above them */
    const Span *span;
    Array at, to; /* by entry: the position on the axis below, data NULL: it is the entry; here */
    bool place;   /* the number of a position inside its parent is asked for, not the parent */
    const Array *from; /* or what is stored at the position; or NULL */
    const int64_t *table;
    int64_t blocks;
} Climb;

static int64_t at_entry(const Climb *c, int64_t e)
{
    return c->at.data != NULL ? fmt_int(&c->at, e) : e;
}

/* Entries mostly come one parent after the other: the next one is looked at first. */
static void climb_block(void *arg, int64_t b)
{
    Climb *c = arg;
    int64_t end = fmt_cut(c->to.n, c->blocks, b + 1), q = -1, first = 0, next = 0;
    bool wide = c->to.type == T_i64;

    for (int64_t e = fmt_cut(c->to.n, c->blocks, b); e < end; e++) {
        int64_t p = at_entry(c, e);

        if (p < first || p >= next) {
            bool near = q >= 0 && p == next && q + 1 < c->span->parents;

            q = near ? q + 1 : ir_span_parent(c->span, p);
            next = ir_span_first(c->span, q + 1);
            if (near && p >= next) {
                q = ir_span_parent(c->span, p);
                next = ir_span_first(c->span, q + 1);
            }
            first = ir_span_first(c->span, q);
        }
        fmt_put(c->to.data, wide, e, c->place ? p - first : q);
    }
}

static void take_block(void *arg, int64_t b)
{
    Climb *c = arg;
    int64_t end = fmt_cut(c->to.n, c->blocks, b + 1);
    bool wide = c->to.type == T_i64;

    for (int64_t e = fmt_cut(c->to.n, c->blocks, b); e < end; e++) {
        int64_t p = at_entry(c, e);

        fmt_put(c->to.data, wide, e, c->table != NULL ? c->table[p] : fmt_int(c->from, p));
    }
}

static Array new_array(const FmtRun *r, int64_t n, int64_t most)
{
    Type type = most <= INT32_MAX ? T_i32 : T_i64;

    return (Array){ arena_raw(r->scratch, n, ir_type[type].bytes), n, type };
}

/* A coordinate of all entries: what is stored for them is not copied. */
static Array take_coord(const FmtRun *r, const Env *env, const Axis *a, int k, Climb *c)
{
    const Coord *co = &a->coord[k];

    c->from = &env->coord[a->id][k];
    c->table = co->kind == C_TABLE ? co->table : NULL;
    c->place = true;
    if (co->kind == C_LOAD && c->at.data == NULL)
        return *c->from;
    c->to = new_array(r, c->to.n, co->kind == C_LOAD && c->from->type == T_i32 ? 0 : INT64_MAX);
    if (co->kind == C_IDENT)
        c->to = new_array(r, c->to.n, c->span->total);
    fmt_each(r, c->blocks, co->kind == C_IDENT ? climb_block : take_block, c);
    return c->to;
}

static int64_t bound_of(const Prog *p, const Env *env, const Axis *a, const Coord *c)
{
    return ir_eval_size(p, env, c->bound != NULL ? c->bound : a->size);
}

void fmt_entries(Arena *arena, const FmtPool *pool, const Prog *p, const Env *env, const Axis *e,
                 FmtEntries *out)
{
    FmtRun run = { .scratch = arena, .pool = pool };
    Climb c = { .to = { .n = ir_axis_total(p, env, e) } };
    int last = 0;

    *out = (FmtEntries){ .n = c.to.n };
    c.blocks = fmt_blocks(c.to.n);
    for (const Axis *a = e; a != NULL; a = a->parent)
        last += a->ncoord;
    out->ncoord = last;
    for (const Axis *a = e; a != NULL; a = a->parent) {
        Span s = ir_axis_span(p, env, a);

        c.span = &s;
        for (int k = a->ncoord - 1; k >= 0; k--) {
            out->bound[--last] = bound_of(p, env, a, &a->coord[k]);
            out->coord[last] = take_coord(&run, env, a, k, &c);
        }
        if (a->parent == NULL)
            break;
        c.place = false;
        c.to = new_array(&run, c.to.n, s.parents);
        fmt_each(&run, c.blocks, climb_block, &c);
        c.at = c.to;
    }
}

typedef struct Retype {
    Array from, to;
    int64_t blocks;
} Retype;

static void retype_block(void *arg, int64_t b)
{
    Retype *w = arg;
    int64_t end = fmt_cut(w->to.n, w->blocks, b + 1);

    for (int64_t x = fmt_cut(w->to.n, w->blocks, b); x < end; x++)
        fmt_put(w->to.data, w->to.type == T_i64, x, fmt_int(&w->from, x));
}

/* An array of the conversion in the type that the program reads. */
static Array typed(Arena *arena, const FmtRun *r, const char *name, const Array *from, Type type)
{
    Retype w = { *from, { .n = from->n, .type = type }, fmt_blocks(from->n) };

    if (from->type == type)
        return *from;
    if (type == T_i32)
        err_throw(arena->err, ST_LIMIT,
                  "axis %s has more positions than 32-bit indices count; bind 64-bit ones", name);
    w.to.data = arena_raw(arena, from->n, ir_type[type].bytes);
    fmt_each(r, w.blocks, retype_block, &w);
    return w.to;
}

static void fill_axis(Arena *arena, const FmtRun *r, const Prog *p, Env *env, const Axis *a,
                      const FmtLevel *level, const Array *entry)
{
    if (a->extent == X_SEG)
        env->start[a->id] = typed(arena, r, a->name, &level->start, loop_type(p, a, -1));
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD)
            env->coord[a->id][k] = typed(arena, r, a->name,
                                         k < level->ncoord ? &level->coord[k] : entry,
                                         loop_type(p, a, k));
    if (a->extent == X_EXPR && a->size->op == OP_size && env->size[a->size->size->id] < 0)
        env->size[a->size->size->id] = level->width;
}

/* That an axis of a program, which may come from a text, is this one of the rule. */
static bool is_level(const FmtAxis *rule, const Axis *a, bool last)
{
    bool good = a != NULL && a->extent == rule->axis->extent && a->flags == rule->axis->flags;

    for (int k = 0; good && k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD && k < rule->axis->ncoord)
            good = rule->load[k] != NULL;
        else if (a->coord[k].kind == C_LOAD)
            good = last && k == rule->axis->ncoord;
    return good;
}

void fmt_check_made(Prog *p, const Axis *last)
{
    const FmtUse *u = fmt_use(p->arena, last->format);
    const Axis *a = last;
    bool good = last->part < u->nshape;
    FmtSource source;

    fmt_sources(p, last->from, &source);
    good = good && source.n == u->rule->ncoord;
    for (int l = good ? u->shape[last->part].nlevel - 1 : -1; l >= 0 && good; l--, a = a->parent)
        good = is_level(&u->shape[last->part].level[l], a, a == last);
    if (!good || a != NULL)
        ir_throw(p, ST_CHECK, "axis %s is not that of part %d of format %s", last->name,
                 last->part, u->rule->name);
}

static bool mentions(Expr *e, const Size *s)
{
    bool is = e != NULL && e->op == OP_size && e->size == s;

    for (int i = 0; e != NULL && i < e->nargs && !is; i++)
        is = mentions(e->arg[i], s);
    return is;
}

const Size *fmt_fitted(const Axis *last, const Axis *a)
{
    const Size *s = a->extent == X_EXPR && a->size->op == OP_size ? a->size->size : NULL;

    if (last->from_k != FROM_FORMAT)
        return NULL;
    for (const Axis *up = last->from; up != NULL && s != NULL; up = up->parent) {
        if (mentions(up->size, s))
            return NULL;
        for (int k = 0; k < up->ncoord; k++)
            if (mentions(up->coord[k].bound, s))
                return NULL;
    }
    return s;
}

void fmt_fill(Arena *arena, Arena *scratch, const FmtPool *pool, const Prog *p, Env *env,
              const Axis *last)
{
    FmtRun run = { .scratch = scratch, .pool = pool };
    const FmtUse *u = fmt_use(scratch, last->format);
    FmtEntries from;
    FmtParts *parts;

    fmt_entries(scratch, pool, p, env, last->from, &from);
    parts = fmt_convert(arena, scratch, pool, u, &from);
    for (int i = 0; i < p->naxis; i++) {
        const Axis *a = p->axis[i];
        const FmtPart *part;

        if (a->from != last->from || a->from_k != FROM_FORMAT ||
            strcmp(a->format, last->format) != 0)
            continue;
        part = &parts->part[a->part];
        for (int l = part->nlevel - 1; l >= 0; l--, a = a->parent)
            fill_axis(arena, &run, p, env, a, &part->level[l], &part->entry);
    }
}
