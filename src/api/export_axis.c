/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prints the code by which an emitted program makes the arrays of an axis that a plan fills
 * (transposes and formats), and tables for searches and layouts.  The text calls emit/plan.h and
 * emit/convert.h. */
#include "api/export_int.h"
#include "lower/lower.h"

#include <string.h>

/* parents, width, start: of an axis. */
static void put_members(const Export *x, const Axis *a)
{
    const Dialect *d = x->target->dialect;

    if (a->parent == NULL)
        text_str(x->out, "1");
    else
        export_put_total(x, a->parent);
    if (a->extent == X_SEG) {
        text_f(x->out, ", -1, %s", export_array_name(x, a, -1));
    } else if (a->extent == X_TABLE) {
        text_f(x->out, ", -1, %s", d->table);
        for (int64_t q = 0; q <= a->n; q++)
            text_f(x->out, "%lld, ", (long long)a->starts[q]);
        text_str(x->out, d->table_end);
    } else {
        text_str(x->out, ", ");
        if (a->extent == X_ONE)
            text_char(x->out, '1');
        else
            export_put_extent(x, a->size);
        text_str(x->out, ", 0");
    }
}

static void put_span(const Export *x, const Axis *a)
{
    text_str(x->out, "{ ");
    put_members(x, a);
    text_str(x->out, " }");
}

static void put_even_starts(const Export *x, const Axis *e)
{
    text_str(x->out, "    const int64_t *start = weft_even_starts(tmp, ");
    export_put_total(x, e->parent);
    text_str(x->out, ", ");
    export_put_extent(x, e->size);
    text_str(x->out, ");\n");
}

/* The coordinate to order by, -1 for entries that are padding. */
static void put_keys(const Export *x, const Axis *t)
{
    const Axis *e = t->from;

    text_str(x->out, "    int64_t *key = weft_keys(tmp, ");
    export_put_total(x, e);
    text_f(x->out, ", %s);\n", export_array_name(x, e, t->from_k));
    for (int k = 0; k < e->ncoord; k++) {
        if (e->coord[k].bound == NULL)
            continue;
        text_str(x->out, "    weft_leave_out(key, ");
        export_put_total(x, e);
        text_f(x->out, ", %s, ", export_array_name(x, e, k));
        export_put_extent(x, e->coord[k].bound);
        text_str(x->out, ");\n");
    }
}

void export_put_transpose(const Export *x, const Axis *t)
{
    const Axis *e = t->from;
    bool rows = e->parent != NULL, even = rows && e->extent == X_EXPR;
    bool padded = e->flags & AX_PADDED;

    if (even)
        put_even_starts(x, e);
    if (padded)
        put_keys(x, t);
    if (even || padded)
        text_str(x->out, "    h->fault = tmp->fault;\n    if (h->fault != 0)\n        return;\n");
    text_str(x->out, "    weft_transpose(h, ");
    export_put_total(x, e);
    text_f(x->out, ", %s, ", padded ? "key" : export_array_name(x, e, t->from_k));
    export_put_total(x, t->parent);
    text_f(x->out, ", %s, &%s, &%s, %s%s);\n",
           even   ? "start"
           : rows ? export_array_name(x, e, -1)
                  : "0",
           export_array_name(x, t, -1), export_array_name(x, t, 0), rows ? "&" : "0",
           rows ? export_array_name(x, t, 1) : "");
    for (int n = 0; n < t->ncoord; n++) {
        const Axis *of;
        int k = lower_carried(t, n, &of);

        if (k < 0 || export_array_name(x, t, n) == NULL)
            continue;
        text_str(x->out, "    if (h->fault == 0)\n        weft_gather(h, ");
        export_put_total(x, t);
        text_f(x->out, ", %s, %s, &%s);\n", export_array_name(x, of, k),
               export_array_name(x, t, of != e), export_array_name(x, t, n));
    }
}

static const char *conversion_of(const Export *x, const Axis *a)
{
    Text t = { .arena = x->arena };

    text_f(&t, "%s_format_%s", x->plan, a->name);
    return t.s;
}

void export_put_conversions(const Export *x)
{
    for (int i = 0; i < x->prog->naxis; i++) {
        const Axis *a = x->prog->axis[i];

        if (a->from != NULL && a->from_k == FROM_FORMAT && a->part == 0)
            fmt_emit(x->out, conversion_of(x, a), fmt_use(x->arena, a->format));
    }
}

static void put_table(const Export *x, const Coord *c)
{
    text_str(x->out, x->target->dialect->table);
    for (int64_t p = 0; p < c->n; p++)
        text_f(x->out, "%lld, ", (long long)c->table[p]);
    text_f(x->out, "%s%s", c->n == 0 ? "0 " : "", x->target->dialect->table_end);
}

/* A coordinate of all entries, `at` their positions on axis a (0: they are on it). */
static void put_coord(const Export *x, const Axis *a, int k, int coord, const char *at)
{
    const Coord *c = &a->coord[k];
    bool here = strcmp(at, "0") == 0;

    text_f(x->out, "    x[%d] = ", coord);
    if (c->kind == C_IDENT) {
        text_f(x->out, "weft_climb(tmp, n, %s, &s_%s, 1);\n", at, a->name);
    } else if (c->kind == C_LOAD && here) {
        text_f(x->out, "%s;\n", export_array_name(x, a, k));
    } else {
        text_f(x->out, "weft_take(tmp, n);\n    if (tmp->fault == 0)\n"
                       "        for (int64_t e = 0; e < n; e++)\n"
                       "            ((int64_t *)x[%d])[e] = ",
               coord);
        if (c->kind == C_LOAD)
            text_str(x->out, export_array_name(x, a, k));
        else
            put_table(x, c);
        text_f(x->out, here ? "[e];\n" : "[%s[e]];\n", at);
    }
    text_f(x->out, "    bound[%d] = ", coord);
    export_put_extent(x, c->bound != NULL ? c->bound : a->size);
    text_str(x->out, ";\n");
}

/* The coordinates of all entries of an axis, from the last one on; how many. */
static int put_entries(const Export *x, const Axis *e)
{
    int n = 0, coord;
    Text at = { .arena = x->arena };

    for (const Axis *a = e; a != NULL; a = a->parent)
        n += a->ncoord;
    text_f(x->out, "    int64_t bound[%d], n = ", n);
    export_put_total(x, e);
    text_f(x->out, ";\n    const int64_t *x[%d];\n", n);
    text_str(&at, "0");
    coord = n;
    for (const Axis *a = e; a != NULL; a = a->parent) {
        text_f(x->out, "    const weft_span s_%s WEFT_USED = ", a->name);
        put_span(x, a);
        text_str(x->out, ";\n");
        for (int k = a->ncoord - 1; k >= 0; k--)
            put_coord(x, a, k, --coord, at.s);
        if (a->parent == NULL)
            break;
        text_f(x->out, "    const int64_t *at_%s = weft_climb(tmp, n, %s, &s_%s, 0);\n"
                       "    if (tmp->fault != 0) {\n        h->fault = tmp->fault;\n"
                       "        return;\n    }\n",
               a->parent->name, at.s, a->name);
        at.n = 0;
        text_f(&at, "at_%s", a->parent->name);
    }
    return n;
}

/* The arrays of an axis are those of its level. */
static void put_level(const Export *x, const Axis *last, const Axis *a, int level, int ncoord)
{
    if (a->extent == X_SEG)
        text_f(x->out, "    %s = level[%d].start;\n", export_array_name(x, a, -1), level);
    for (int k = 0; k < a->ncoord; k++) {
        if (a->coord[k].kind != C_LOAD)
            continue;
        text_f(x->out, "    %s = ", export_array_name(x, a, k));
        if (k < ncoord)
            text_f(x->out, "level[%d].coord[%d];\n", level, k);
        else
            text_f(x->out, "level[%d].entry;\n", level);
    }
    for (int i = 0; i < x->nmember; i++)
        if (x->member[i].size != NULL && x->member[i].size == fmt_fitted(last, a))
            text_f(x->out, "    %s = level[%d].width;\n", x->member[i].use, level);
}

void export_put_format(const Export *x, const Axis *first)
{
    const FmtUse *u = fmt_use(x->arena, first->format);
    int n = put_entries(x, first->from), levels = 0;
    int *at = arena_array(x->arena, fmt_nparts(u), sizeof *at);

    for (int i = 0; i < fmt_nparts(u); i++) {
        at[i] = levels;
        levels += fmt_nlevels(u, i);
    }
    text_f(x->out,
           "    weft_level level[%d];\n"
           "    int64_t *list = weft_take(tmp, n);\n"
           "    weft_part p = { .h = h, .tmp = tmp, .list = list, .all = n };\n\n"
           "    if (tmp->fault != 0) {\n        h->fault = tmp->fault;\n        return;\n    }\n"
           "    memset(level, 0, sizeof level);\n"
           "    for (int k = 0; k < %d; k++)\n"
           "        if (__builtin_add_overflow(p.all, bound[k], &p.all))\n"
           "            p.all = INT64_MAX;\n"
           "    p.n = weft_existing(n, %d, x, bound, list);\n"
           "    %s(&p, x, bound, level);\n",
           levels, n, n, conversion_of(x, first));
    for (int i = 0; i < x->prog->naxis; i++) {
        const Axis *last = x->prog->axis[i], *a = last;

        if (a->from != first->from || a->from_k != FROM_FORMAT ||
            strcmp(a->format, first->format) != 0)
            continue;
        for (int l = fmt_nlevels(u, a->part) - 1; l >= 0; l--, a = a->parent)
            put_level(x, last, a, at[last->part] + l, fmt_ncoords(u, last->part, l));
    }
}

static void put_coordinate(const Export *x, const Axis *a, int k, const char *pos)
{
    const Coord *c = &a->coord[k];

    switch (c->kind) {
    case C_LOAD: text_f(x->out, "%s[%s]", export_array_name(x, a, k), pos); break;
    case C_TABLE:
        put_table(x, c);
        text_f(x->out, "[%s]", pos);
        break;
    case C_EXPR: export_put_computed(x, a, pos, c->expr); break;
    default: text_f(x->out, "(%s - weft_first(&s_%s, weft_above(&s_%s, %s)))", pos, a->name,
                    a->name, pos);
    }
}

void export_put_computed(const Export *x, const Axis *a, const char *pos, Expr *e)
{
    if (e->op == OP_coord || e->op == OP_loc || e->op == OP_pos) {
        Text at = { .arena = x->arena };

        text_str(&at, pos);
        for (; a != e->var->axis; a = a->parent) {
            Text up = { .arena = x->arena };

            text_f(&up, "weft_above(&s_%s, %s)", a->name, at.s);
            at = up;
        }
        if (e->op == OP_coord)
            put_coordinate(x, a, e->k, at.s);
        else if (e->op == OP_loc)
            text_f(x->out, "(%s - weft_first(&s_%s, weft_above(&s_%s, %s)))", at.s, a->name,
                   a->name, at.s);
        else
            text_str(x->out, at.s);
        return;
    }
    if (e->op == OP_int || e->op == OP_size) {
        export_put_extent(x, e);
        return;
    }
    text_f(x->out, "weft_plan_%s(%s", e->op == OP_neg ? "sub" : ir_op[e->op].name,
           e->op == OP_neg ? "0, " : "");
    for (int i = 0; i < e->nargs; i++) {
        text_str(x->out, i > 0 ? ", " : "");
        export_put_computed(x, a, pos, e->arg[i]);
    }
    text_char(x->out, ')');
}

void export_put_map(const Export *x, const Member *m)
{
    const Axis *a = m->axis;

    for (const Axis *up = a; up != NULL; up = up->parent) {
        text_f(x->out, "    const weft_span s_%s WEFT_USED = ", up->name);
        put_span(x, up);
        text_str(x->out, ";\n");
    }
    text_f(x->out,
           "\n    %s = weft_map_new(h, &s_%s, %d);\n"
           "    for (int64_t q = 0; q < s_%s.parents && h->fault == 0; q++) {\n"
           "        const int64_t first = weft_first(&s_%s, q), end = weft_first(&s_%s, q + 1);\n\n"
           "        for (int64_t p = first; end - first > %d && p < end; p++) {\n"
           "            uint64_t hash = 0;\n            int64_t v;\n\n",
           m->use, a->name, LOOP_FEW, a->name, a->name, a->name, LOOP_FEW);
    for (int k = 0; k < a->ncoord; k++) {
        text_str(x->out, "            v = ");
        put_coordinate(x, a, k, "p");
        if ((a->flags & AX_PADDED) && a->coord[k].bound != NULL) {
            text_str(x->out, ";\n            if (v < 0 || v >= ");
            export_put_extent(x, a->coord[k].bound);
            text_str(x->out, ")\n                continue");
        }
        text_str(x->out, ";\n            hash = weft_hash(hash, (uint64_t)v);\n");
    }
    text_f(x->out, "            weft_map_put(%s, first, end, p, hash);\n        }\n    }\n",
           m->use);
}

/* As an expression: the table is as long as weft_map_new makes it. */
void export_put_map_length(const Export *x, const Axis *a)
{
    text_str(x->out, "weft_map_length(");
    put_members(x, a);
    text_f(x->out, ", %d)", LOOP_FEW);
}

void export_put_base(const Export *x, const Member *m)
{
    const Buf *b = m->base;

    text_str(x->out, "    const weft_span span[] = {\n");
    for (int k = 0; k < b->nfull; k++) {
        text_str(x->out, "        ");
        put_span(x, b->full[k]);
        text_str(x->out, ",\n");
    }
    text_str(x->out, "    };\n    const int up[] = { ");
    for (int k = 0; k < b->nfull; k++)
        text_f(x->out, "%d, ", ir_parent_place(b, k));
    text_f(x->out, "};\n\n    %s = weft_tuples(h, tmp, %d, %d, span, up);\n", m->use, b->nfull,
           b->of_k);
}
