/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The declaration of an axis as text, in the long form or by a short name. */
#include "random/gen.h"

static const char *table_text(Gen *g, const int64_t *v, int64_t n)
{
    const char *s = "{";

    for (int64_t i = 0; i < n; i++)
        s = gen_f(g, "%s%s%lld", s, i > 0 ? ", " : "", (long long)v[i]);
    return gen_f(g, "%s}", s);
}

static const char *flags_text(Gen *g, unsigned flags)
{
    return gen_f(g, "%s%s%s", flags & AX_SORTED ? " sorted" : "",
                 flags & AX_UNIQUE ? " unique" : "", flags & AX_PADDED ? " padded" : "");
}

static const char *rows_text(Gen *g, const GAxis *x)
{
    const char *s = "rows";

    for (int k = 0; k < x->ncoord; k++)
        s = gen_f(g, "%s %s", s, x->coord[k].name);
    if (x->rows_value != NULL)
        s = gen_f(g, "%s -> %s", s, x->rows_value);
    s = gen_f(g, "%s {", s);
    for (int64_t q = 0, up = x->parent == NULL ? 1 : x->parent->n; q < up; q++) {
        s = gen_f(g, "%s%s", s, q > 0 ? ";" : "");
        for (int64_t p = x->start[q]; p < x->start[q + 1]; p++) {
            s = gen_f(g, "%s%s", s, p > x->start[q] ? "," : "");
            for (int k = 0; k < x->ncoord; k++)
                s = gen_f(g, "%s %lld", s, (long long)x->coord[k].val[p]);
            if (x->rows_value != NULL)
                s = gen_f(g, "%s -> %.17g", s, x->value[p]);
        }
    }
    return gen_f(g, "%s }", s);
}

static const char *coord_text(Gen *g, const GAxis *x, const GCoord *c)
{
    const char *s = c->name;

    if (c->name == NULL)
        s = c->kind == C_TABLE ? gen_f(g, "table %s", table_text(g, c->val, x->n)) : "load";
    else if (c->kind == C_TABLE)
        s = gen_f(g, "%s = %s", s, table_text(g, c->val, x->n));
    else if (c->kind != C_LOAD)
        s = gen_f(g, "%s = %s", s, c->kind == C_IDENT ? "ident" : c->text);
    return c->bound == NULL ? s : gen_f(g, "%s < %s", s, c->bound);
}

/* The short name of the axis when one fits, or NULL. */
static const char *short_text(Gen *g, const GAxis *x)
{
    const GCoord *c = &x->coord[0];
    bool plain = x->ncoord == 1 && c->name == NULL;
    bool load = plain && c->kind == C_LOAD && c->bound != NULL;
    bool ident = plain && c->kind == C_IDENT && c->bound == NULL;
    const char *s = NULL;

    if (ident && x->extent == X_EXPR && x->parent == NULL)
        s = gen_f(g, "dense(%s)", x->size);
    else if (ident && x->extent == X_SEG)
        s = gen_f(g, "ragged(%s)", x->parent->name);
    else if (load && x->extent == X_SEG)
        s = gen_f(g, "compressed(%s, %s)", x->parent->name, c->bound);
    else if (load && x->extent == X_EXPR && x->parent != NULL && (x->flags & AX_PADDED))
        return gen_f(g, "ell(%s, %s, %s)%s", x->parent->name, x->size, c->bound,
                     flags_text(g, x->flags & ~(unsigned)AX_PADDED));
    return s == NULL ? NULL : gen_f(g, "%s%s", s, flags_text(g, x->flags));
}

static const char *extent_text(Gen *g, const GAxis *x)
{
    int64_t *count;

    switch (x->extent) {
    case X_EXPR: return x->size;
    case X_SEG: return "seg";
    case X_ONE: return "one";
    case X_BUILT: return "built";
    default: break;
    }
    count = arena_array(g->arena, x->parent->n + 1, sizeof *count);
    for (int64_t q = 0; q < x->parent->n; q++)
        count[q] = x->start[q + 1] - x->start[q];
    return table_text(g, count, x->parent->n);
}

const char *gen_axis_text(Gen *g, GAxis *x)
{
    const char *s, *shorter = x->rows ? NULL : short_text(g, x);

    if (shorter != NULL && gen_p(g, 50)) {
        gen_has(g, F_short_name);
        return gen_f(g, "%s = %s", x->name, shorter);
    }
    s = x->parent == NULL ? x->name : gen_f(g, "%s(%s)", x->name, x->parent->name);
    if (x->rows)
        return gen_f(g, "%s = %s%s", s, rows_text(g, x), flags_text(g, x->flags));
    s = gen_f(g, "%s = %s", s, extent_text(g, x));
    for (int k = 0; k < x->ncoord; k++)
        if (x->coord[k].name != NULL || x->coord[k].kind != C_IDENT)
            s = gen_f(g, "%s%s %s", s, k == 0 ? " :" : ",", coord_text(g, x, &x->coord[k]));
    return gen_f(g, "%s%s", s, flags_text(g, x->extent == X_BUILT && gen_p(g, 50) ? 0 : x->flags));
}
