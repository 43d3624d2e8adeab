/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The axes of a format in a program that uses it: those of the rule, with numbers for parameters
 * and the bounds of the old coordinates, and the old place of each entry. */
#include "format/apply_int.h"

#include <string.h>

/* Coordinates of the old axis and of those above it, in order. */
void fmt_sources(Prog *p, Axis *e, FmtSource *out)
{
    Axis *chain[IR_MAX_RANK];
    int n = 0;

    *out = (FmtSource){ .axis = e };
    for (Axis *a = e; a != NULL; a = a->parent)
        chain[n++] = a;
    while (n-- > 0)
        for (int k = 0; k < chain[n]->ncoord; k++) {
            const Coord *c = &chain[n]->coord[k];

            if (c->kind == C_EXPR || chain[n]->extent == X_BUILT)
                ir_throw(p, ST_CHECK,
                         "axis %s: a format takes entries whose coordinates are stored, and those "
                         "of %s are not",
                         e->name, chain[n]->name);
            if (out->n == FMT_MOST)
                ir_throw(p, ST_LIMIT, "axis %s: more coordinates than a format takes", e->name);
            out->of[out->n] = chain[n];
            out->k[out->n] = k;
            out->bound[out->n] = c->bound != NULL        ? c->bound
                                 : c->kind == C_IDENT && chain[n]->extent == X_EXPR ? chain[n]->size
                                                                                  : NULL;
            if (out->bound[out->n++] == NULL)
                ir_throw(p, ST_CHECK,
                         "axis %s: a format needs the bound of each coordinate; write `< n` after "
                         "that of %s",
                         e->name, chain[n]->name);
        }
}

typedef struct Making { /* of the axes of one part */
    Prog *p;
    const FmtUse *use;
    const FmtShape *shape;
    const FmtSource *source;
    FmtMade *made;
    Expr *fit[FMT_MOST]; /* by level: the size that the data tell */
} Making;

static Expr *size_named(const Making *m, const Size *s)
{
    const FmtRule *rule = m->use->rule;
    const FmtExpr *e;

    for (int l = 0; l < m->shape->nlevel; l++)
        if (m->shape->level[l].fit == s)
            return m->fit[l];
    for (int k = 0; k < rule->ncoord; k++)
        if (strcmp(rule->bound[k], s->name) == 0)
            return m->source->bound[k];
    e = fmt_name(m->shape, s->name);
    return ir_int(m->p, e->v);
}

static Expr *operate(Prog *p, Op op, Expr *a, Expr *b)
{
    int64_t x, y, r;
    bool bad = true;

    if (!ir_const_int(a, &x) || !ir_const_int(b, &y))
        return ir_op2(p, op, a, b);
    switch (op) {
    case OP_add: bad = int_add(x, y, &r); break;
    case OP_sub: bad = int_sub(x, y, &r); break;
    case OP_mul: bad = int_mul(x, y, &r); break;
    case OP_div: bad = int_div(x, y, &r); break;
    default: bad = int_mod(x, y, &r); break;
    }
    if (bad)
        ir_throw(p, ST_CHECK, "a format divides by zero, or has a number that is too large");
    return ir_int(p, r);
}

/* Numbers at the end of a sum are added up: (m + 16 - 1) is (m + 15). */
static Expr *sum(Prog *p, Op op, Expr *a, Expr *b)
{
    int64_t x, y, r;
    bool inner = (a->op == OP_add || a->op == OP_sub) && ir_const_int(a->arg[1], &x);

    if (!inner || !ir_const_int(b, &y) || x == INT64_MIN || y == INT64_MIN)
        return operate(p, op, a, b);
    x = a->op == OP_sub ? -x : x;
    y = op == OP_sub ? -y : y;
    if (int_add(x, y, &r) || r == INT64_MIN)
        return operate(p, op, a, b);
    return r == 0 ? a->arg[0]
                  : ir_op2(p, r < 0 ? OP_sub : OP_add, a->arg[0], ir_int(p, r < 0 ? -r : r));
}

static int level_of(const Making *m, const Axis *a)
{
    int l = 0;

    while (m->shape->level[l].axis != a)
        l++;
    return l;
}

/* An expression of the rule's axes as one of the program's. */
static Expr *take(const Making *m, Expr *e)
{
    Prog *p = m->p;
    Var *v;

    switch (e->op) {
    case OP_int: return ir_int(p, e->i);
    case OP_size: return size_named(m, e->size);
    case OP_loc: return ir_of_var(p, OP_loc, m->made->axis[level_of(m, e->var->axis)]->var);
    case OP_coord:
        v = m->made->axis[level_of(m, e->var->axis)]->var;
        return ir_coord(p, v, e->k);
    case OP_neg: return operate(p, OP_sub, ir_int(p, 0), take(m, e->arg[0]));
    case OP_add:
    case OP_sub: return sum(p, (Op)e->op, take(m, e->arg[0]), take(m, e->arg[1]));
    default: return operate(p, (Op)e->op, take(m, e->arg[0]), take(m, e->arg[1]));
    }
}

static const char *fresh_axis(const Making *m, const char *own)
{
    Text name = { .arena = m->p->arena }, var = { .arena = m->p->arena };
    int n = 0;

    do {
        name.n = var.n = 0;
        text_f(&name, "%.20s%s%.14s_%.24s", own, m->shape->name[0] != '\0' ? "_" : "",
               m->shape->name, m->source->axis->name);
        if (n++ > 0)
            text_f(&name, "%d", n);
        for (size_t i = 0; i < name.n; i++)
            text_char(&var, name.s[i] >= 'A' && name.s[i] <= 'Z' ? (char)(name.s[i] - 'A' + 'a')
                                                                : name.s[i]);
    } while (ir_find_symbol(m->p, name.s, name.n) != NULL ||
             ir_find_symbol(m->p, var.s, var.n) != NULL);
    return name.s;
}

/* Whether a coordinate of this axis cannot have the name. */
static bool means_other(const Making *m, const Axis *a, const Text *name)
{
    const Symbol *s = ir_find_symbol(m->p, name->s, name->n);

    if (ir_find_coord(a, name->s) >= 0 || (s != NULL && s->size != NULL))
        return true;
    return s != NULL && s->of_var != NULL && (s->of_var == a || ir_is_ancestor(s->of_var, a));
}

/* The name of a coordinate: the rule's, where that means nothing else. */
static const char *coord_name(const Making *m, const Axis *a, const char *own)
{
    Text name = { .arena = m->p->arena };

    text_f(&name, "%.40s", own);
    while (means_other(m, a, &name))
        text_char(&name, '_');
    return name.s;
}

static void add_coord(const Making *m, int l, int k)
{
    Axis *to = m->made->axis[l];
    Coord c = m->shape->level[l].axis->coord[k];

    c.owner = NULL;
    c.once = false;
    if (c.name != NULL)
        c.name = coord_name(m, to, c.name);
    if (c.expr != NULL)
        c.expr = take(m, c.expr);
    if (c.bound != NULL)
        c.bound = take(m, c.bound);
    ir_axis_coord(m->p, to, &c);
}

static void add_axis(Making *m, int l)
{
    const FmtAxis *from = &m->shape->level[l];
    Prog *p = m->p;
    Axis *up = l == 0 ? NULL : m->made->axis[l - 1];
    Axis *to = ir_axis_open(p, fresh_axis(m, from->axis->name), up);
    Text stem = { .arena = p->arena };

    m->made->axis[l] = to;
    to->extent = from->axis->extent;
    to->flags = from->axis->flags;
    if (from->fit != NULL) {
        text_f(&stem, "%.20s_%.30s", from->fit->name, to->var->name);
        m->fit[l] = ir_size_expr(p, ir_size(p, ir_fresh(p, stem.s, false)));
    }
    if (to->extent == X_EXPR)
        to->size = take(m, from->axis->size);
    for (int k = 0; k < from->axis->ncoord; k++)
        if (from->axis->coord[k].name != NULL || from->axis->coord[k].kind != C_IDENT)
            add_coord(m, l, k);
    if (l == m->shape->nlevel - 1)
        ir_axis_coord(p, to, &(Coord){ .kind = C_LOAD, .name = coord_name(m, to, "entry") });
    ir_axis_close(p, to);
}

/* Whether an expression is a function of one coordinate alone, whatever else an entry has. */
static bool is_of(const FmtExpr *e, int coord)
{
    if (e->op == F_RANK || (e->op == F_COORD && e->v != coord))
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!is_of(e->arg[i], coord))
            return false;
    return true;
}

/* Where the position on the first axis follows from a coordinate, no two positions share a value
 * of it. */
static void set_owners(const Making *m)
{
    const FmtAxis *root = &m->shape->level[0];

    for (int c = 0; c < m->use->rule->ncoord; c++) {
        bool owned = root->loc != NULL ? is_of(root->loc, c) : root->axis->flags & AX_UNIQUE;

        for (int k = 0; k < root->axis->ncoord && root->loc == NULL; k++)
            owned = owned && (root->load[k] == NULL || is_of(root->load[k], c));
        if (owned)
            m->made->axis[m->shape->from_level[c]]->coord[m->shape->from_k[c]].owner =
                m->made->axis[0];
    }
}

void fmt_make_axes(Prog *p, const FmtUse *u, int part, const FmtSource *source, FmtMade *out)
{
    Making m = { .p = p, .use = u, .shape = &u->shape[part], .source = source, .made = out };

    out->n = m.shape->nlevel;
    for (int l = 0; l < out->n; l++)
        add_axis(&m, l);
    set_owners(&m);
    out->last = out->axis[out->n - 1];
    out->last->from = source->axis;
    out->last->from_k = FROM_FORMAT;
    out->last->format = u->text;
    out->last->part = part;
}
