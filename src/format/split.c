/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Assigns entries to parts: each entry belongs to the first part whose condition holds.  Conditions
 * that depend on a few small numbers, such as the number of a column part and the bits of a length,
 * are evaluated once for each combination of these. */
#include "format/format_int.h"

#include <stdatomic.h>
#include <string.h>

enum { LIMIT_ATOMS = 4, LIMIT_CELLS = 4096, NONE = UINT16_MAX };

typedef struct Exist {
    const FmtEntries *from;
    int64_t blocks;
    int64_t before[FMT_MOST_BLOCKS + 1]; /* by block: entries that exist; then, before it */
    FmtCol list;
} Exist;

static bool exists(const FmtEntries *from, int64_t e)
{
    bool inside = true;

    for (int k = 0; k < from->ncoord; k++) {
        int64_t v = fmt_int(&from->coord[k], e);

        inside = inside && v >= 0 && v < from->bound[k];
    }
    return inside;
}

static bool all_inside(const Array *a, int64_t from, int64_t end, int64_t bound)
{
    bool outside = false;

    if (a->type == T_i64)
        for (int64_t e = from; e < end; e++)
            outside |= (uint64_t)((const int64_t *)a->data)[e] >= (uint64_t)bound;
    else
        for (int64_t e = from; e < end; e++)
            outside |= (uint64_t)((const int32_t *)a->data)[e] >= (uint64_t)bound;
    return !outside;
}

static void count_existing(void *arg, int64_t b)
{
    Exist *x = arg;
    int64_t n = 0, from = fmt_cut(x->from->n, x->blocks, b);
    int64_t end = fmt_cut(x->from->n, x->blocks, b + 1);
    bool all = true;

    for (int k = 0; k < x->from->ncoord && all; k++)
        all = all_inside(&x->from->coord[k], from, end, x->from->bound[k]);
    for (int64_t e = from; e < end && !all; e++)
        n += exists(x->from, e);
    x->before[b + 1] = all ? end - from : n;
}

static void list_block(void *arg, int64_t b)
{
    Exist *x = arg;
    int64_t at = x->before[b], end = fmt_cut(x->from->n, x->blocks, b + 1);

    for (int64_t e = fmt_cut(x->from->n, x->blocks, b); e < end; e++)
        if (exists(x->from, e))
            fmt_set(&x->list, at++, e);
}

void fmt_list_existing(FmtBuild *b)
{
    const FmtEntries *from = b->eval.from;
    Exist x = { .from = from, .blocks = fmt_blocks(from->n) };

    fmt_each(b->run, x.blocks, count_existing, &x);
    for (int64_t k = 0; k < x.blocks; k++)
        x.before[k + 1] += x.before[k];
    b->eval.n = x.before[x.blocks];
    if (b->eval.n == from->n)
        return;
    x.list = fmt_column(b->run, 0, from->n);
    fmt_each(b->run, x.blocks, list_block, &x);
    b->eval.list = x.list;
}

typedef struct Split {
    const FmtBuild *b;
    uint16_t *part; /* by entry of the list */
    int64_t (*count)[FMT_MOST_BLOCKS]; /* by part, then block: how many; then, where to go */
    FmtCol list;
    int natom; /* what conditions compare with numbers; 0: there is no table */
    const FmtExpr *atom[LIMIT_ATOMS];
    int64_t lo[LIMIT_ATOMS], range[LIMIT_ATOMS], cells;
    uint16_t *table; /* by the values of all: the part */
} Split;

static bool is_logic(FmtOp op)
{
    return op == F_AND || op == F_OR || op == F_NOT;
}

static bool is_relation(FmtOp op)
{
    return op >= F_LT && op <= F_NE;
}

/* Finds what a condition depends on; false: too much for a table. */
static bool find_atoms(Split *s, const FmtExpr *e)
{
    int64_t hi, v;

    for (int i = 0; i < e->nargs && (is_logic(e->op) || is_relation(e->op)); i++)
        if (!find_atoms(s, e->arg[i]))
            return false;
    if (is_logic(e->op) || is_relation(e->op) || e->op == F_INT || e->op == F_BOUND ||
        fmt_expr_const(e, &v))
        return true;
    for (int i = 0; i < s->natom; i++)
        if (fmt_expr_cmp(s->atom[i], e) == 0)
            return true;
    if (s->natom == LIMIT_ATOMS || !fmt_range(&s->b->eval, e, &s->lo[s->natom], &hi) ||
        int_sub(hi, s->lo[s->natom], &hi) || hi >= LIMIT_CELLS)
        return false;
    s->range[s->natom] = hi + 1;
    s->cells *= hi + 1;
    s->atom[s->natom++] = e;
    return s->cells <= LIMIT_CELLS;
}

/* The value of a condition where the atoms have these. */
static int64_t value_at(const Split *s, const FmtExpr *e, const int64_t *at)
{
    int64_t v[2] = { 0, 0 };

    for (int i = 0; i < s->natom; i++)
        if (fmt_expr_cmp(s->atom[i], e) == 0)
            return at[i];
    if (e->op == F_INT || e->op == F_BOUND)
        return fmt_size(e, s->b->eval.from);
    for (int i = 0; i < e->nargs; i++)
        v[i] = value_at(s, e->arg[i], at);
    return fmt_op(e->op, v[0], v[1]);
}

static void make_table(Split *s)
{
    const FmtUse *u = s->b->use;

    s->cells = 1;
    for (int i = 0; i < u->nshape; i++)
        if (u->shape[i].where != NULL && !find_atoms(s, u->shape[i].where)) {
            s->natom = 0;
            return;
        }
    s->table = arena_raw(s->b->run->scratch, s->cells, sizeof *s->table);
    for (int64_t c = 0; c < s->cells; c++) {
        int64_t at[LIMIT_ATOMS], rest = c;
        int part = 0;

        for (int i = s->natom - 1; i >= 0; i--, rest /= s->range[i + 1])
            at[i] = s->lo[i] + rest % s->range[i];
        while (part < u->nshape && u->shape[part].where != NULL &&
               value_at(s, u->shape[part].where, at) <= 0)
            part++;
        s->table[c] = (uint16_t)(part < u->nshape ? part : NONE);
    }
}

static void look_up(const Split *s, int64_t from, int64_t n, uint16_t *part)
{
    int64_t cell[FMT_RUN] = { 0 }, v[FMT_RUN];

    for (int i = 0; i < s->natom; i++) {
        fmt_eval_run(&s->b->eval, s->atom[i], from, n, v);
        for (int64_t t = 0; t < n; t++)
            cell[t] = cell[t] * s->range[i] + v[t] - s->lo[i];
    }
    for (int64_t t = 0; t < n; t++)
        part[t] = s->table[cell[t]];
}

static void try_all(const Split *s, int64_t from, int64_t n, uint16_t *part)
{
    const FmtUse *u = s->b->use;
    int64_t holds[FMT_RUN];

    for (int64_t t = 0; t < n; t++)
        part[t] = NONE;
    for (int i = 0; i < u->nshape; i++) {
        if (u->shape[i].where != NULL)
            fmt_eval_run(&s->b->eval, u->shape[i].where, from, n, holds);
        for (int64_t t = 0; t < n; t++)
            if (part[t] == NONE && (u->shape[i].where == NULL || holds[t] > 0))
                part[t] = (uint16_t)i;
    }
}

static void find_parts(void *arg, int64_t b)
{
    Split *s = arg;
    int64_t n = s->b->eval.n, from = fmt_cut(n, s->b->blocks, b);
    int64_t end = fmt_cut(n, s->b->blocks, b + 1);

    for (; from < end; from += FMT_RUN) {
        int64_t run = end - from < FMT_RUN ? end - from : FMT_RUN;

        if (s->table != NULL)
            look_up(s, from, run, s->part + from);
        else
            try_all(s, from, run, s->part + from);
        for (int64_t t = from; t < from + run; t++)
            s->count[s->part[t] == NONE ? s->b->use->nshape : s->part[t]][b]++;
    }
}

static void list_parts(void *arg, int64_t b)
{
    Split *s = arg;
    int64_t n = s->b->eval.n, end = fmt_cut(n, s->b->blocks, b + 1);

    for (int64_t t = fmt_cut(n, s->b->blocks, b); t < end; t++)
        fmt_set(&s->list, s->count[s->part[t]][b]++, fmt_entry(&s->b->eval, t));
}

static _Noreturn void in_no_part(const Split *s)
{
    Text text = { .arena = s->b->arena };
    int64_t t = 0;

    while (s->part[t] != NONE)
        t++;
    fmt_print_entry(&text, s->b, t);
    text_f(&text, " is in no part");
    fmt_refuse(s->b, ST_BIND, text.s);
}

/* The one part that has all entries; or -1. */
static int only_part(FmtBuild *b)
{
    for (int i = 0; i < b->use->nshape; i++) {
        const FmtExpr *where = b->use->shape[i].where;
        int64_t lo, hi;

        if (where == NULL || (fmt_range(&b->eval, where, &lo, &hi) && lo > 0))
            return i;
        if (!fmt_range(&b->eval, where, &lo, &hi) || hi > 0)
            return -1;
    }
    return -1;
}

/* Where the list of each part begins in each block; how long each is. */
static void add_up(const Split *s, int64_t *count)
{
    int64_t at = 0;

    for (int i = 0; i < s->b->use->nshape; i++) {
        int64_t first = at;

        for (int64_t b = 0; b < s->b->blocks; b++) {
            int64_t n = s->count[i][b];

            s->count[i][b] = at;
            at += n;
        }
        count[i] = at - first;
    }
}

/* The lists of the parts, one after the other.  Data NULL: one part has all, as they stand. */
FmtCol fmt_split(FmtBuild *b, int64_t *count)
{
    const FmtUse *u = b->use;
    Arena *scratch = b->run->scratch;
    Split s = { .b = b };
    int only = only_part(b);

    if (only >= 0) {
        count[only] = b->eval.n;
        return b->eval.list;
    }
    b->blocks = fmt_blocks(b->eval.n);
    for (int i = 0; i < u->nshape; i++)
        if (u->shape[i].where != NULL)
            fmt_prepare(&b->eval, u->shape[i].where);
    make_table(&s);
    s.part = arena_raw(scratch, b->eval.n, sizeof *s.part);
    s.count = arena_array(scratch, u->nshape + 1, sizeof *s.count);
    fmt_each(b->run, b->blocks, find_parts, &s);
    add_up(&s, count);
    for (int64_t k = 0; k < b->blocks; k++)
        if (s.count[u->nshape][k] > 0)
            in_no_part(&s);
    s.list = fmt_column(b->run, 0, b->eval.from->n);
    fmt_each(b->run, b->blocks, list_parts, &s);
    fmt_forget(&b->eval);
    return s.list;
}
