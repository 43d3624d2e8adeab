/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prints the conversion of a use as C, for programs that run without the library: the expressions
 * of the rule as loops over the entries of each part, and calls of emit/convert.h.  The arrays are
 * those of convert.c. */
#include "format/format_int.h"

enum { LIMIT_KNOWN = 64 };

typedef struct Writer { /* of one function of the text */
    Text *out;
    const FmtUse *use;
    const char *name; /* of the whole conversion */
    int columns;      /* that the function has so far */
    int nknown;       /* functions of many entries whose columns are there */
    const FmtExpr *known[LIMIT_KNOWN];
    int column[LIMIT_KNOWN];
} Writer;

static int find_known(const Writer *w, const FmtExpr *e)
{
    for (int i = 0; i < w->nknown; i++)
        if (fmt_expr_cmp(w->known[i], e) == 0)
            return w->column[i];
    return -1;
}

static const char *op_name(FmtOp op)
{
    static const char *const name[] = {
        [F_NEG] = "neg", [F_ADD] = "add", [F_SUB] = "sub", [F_MUL] = "mul",   [F_DIV] = "div",
        [F_MOD] = "mod", [F_LT] = "lt",   [F_LE] = "le",   [F_EQ] = "eq",     [F_NE] = "ne",
        [F_AND] = "and", [F_OR] = "or",   [F_NOT] = "not", [F_ABS] = "abs",   [F_MIN] = "min",
        [F_MAX] = "max", [F_BITS] = "bits", [F_EXP2] = "exp2",
    };

    return name[op];
}

/* The value for the t-th entry of the list; functions of many entries have columns already. */
static void put_value(const Writer *w, const FmtExpr *e)
{
    if (e->op >= F_COUNT) {
        text_f(w->out, "c%d[t]", find_known(w, e));
    } else if (e->op == F_INT) {
        text_f(w->out, "INT64_C(%lld)", (long long)e->v);
    } else if (e->op == F_COORD) {
        text_f(w->out, "x[%d][p->list[t]]", (int)e->v);
    } else if (e->op == F_BOUND) {
        text_f(w->out, "bound[%d]", (int)e->v);
    } else {
        text_f(w->out, "weft_f_%s(", op_name(e->op));
        for (int i = 0; i < e->nargs; i++) {
            text_str(w->out, i > 0 ? ", " : "");
            put_value(w, e->arg[i]);
        }
        text_char(w->out, ')');
    }
}

static void put_groups(Writer *, const FmtExpr *);

/* A column with the values of an expression; its number. */
static int put_column(Writer *w, const FmtExpr *e)
{
    int c;

    put_groups(w, e);
    if (e->op >= F_COUNT)
        return find_known(w, e);
    c = w->columns++;
    text_f(w->out,
           "    int64_t *c%d = weft_take(p->tmp, p->n);\n"
           "    for (int64_t t = 0; t < p->n && p->tmp->fault == 0; t++)\n        c%d[t] = ",
           c, c);
    put_value(w, e);
    text_str(w->out, ";\n");
    return c;
}

static void put_list(Writer *w, int c, const int *column, int n)
{
    text_f(w->out, "    const int64_t *const l%d[] = { ", c);
    for (int i = 0; i < n; i++)
        text_f(w->out, "c%d, ", column[i]);
    text_str(w->out, "};\n");
}

static int put_group(Writer *w, const FmtExpr *e)
{
    int column[FMT_MOST], c;

    if (e->op == F_PLACE) {
        column[0] = put_column(w, e->arg[0]);
        column[1] = put_column(w, e->arg[1]);
        c = w->columns++;
        text_f(w->out,
               "    int64_t *c%d = weft_places(p->tmp, p->n, c%d, c%d, bound[%d], "
               "INT64_C(%lld));\n",
               c, column[0], column[1], (int)e->arg[0]->v, (long long)e->arg[2]->v);
        return c;
    }
    for (int i = 0; i < e->nargs; i++)
        column[i] = put_column(w, e->arg[i]);
    c = w->columns++;
    put_list(w, c, column, e->nargs);
    text_f(w->out, "    int64_t *c%d = weft_%s(p->tmp, p->n, %d, l%d, %d);\n", c,
           e->op == F_INDEX ? "index" : "group", e->nargs, c,
           e->op == F_INDEX ? e->keys : e->op == F_RANK);
    return c;
}

/* The functions of many entries in an expression, the inner ones first. */
static void put_groups(Writer *w, const FmtExpr *e)
{
    int c;

    if (e->op < F_COUNT) {
        for (int i = 0; i < e->nargs; i++)
            put_groups(w, e->arg[i]);
        return;
    }
    if (find_known(w, e) >= 0)
        return;
    c = put_group(w, e);
    if (w->nknown == LIMIT_KNOWN)
        err_throw(w->out->arena->err, ST_LIMIT, "format %s: more than %d functions of entries",
                  w->use->rule->name, LIMIT_KNOWN);
    w->column[w->nknown] = c;
    w->known[w->nknown++] = e;
}

static void put_width(Writer *w, const FmtAxis *a)
{
    if (a->axis->extent == X_SEG) {
        text_str(w->out, "-2");
    } else if (a->axis->extent == X_ONE) {
        text_str(w->out, "1");
    } else if (a->extent == NULL) {
        text_str(w->out, "-1");
    } else {
        text_str(w->out, "weft_width(");
        put_value(w, a->extent);
        text_char(w->out, ')');
    }
}

static void put_flags(Writer *w, unsigned flags, bool last)
{
    text_f(w->out, "0%s%s%s%s", flags & AX_UNIQUE ? " | WEFT_UNIQUE" : "",
           flags & AX_SORTED ? " | WEFT_SORTED" : "", flags & AX_PADDED ? " | WEFT_PADDED" : "",
           last ? " | WEFT_LAST" : "");
}

/* What each coordinate stores and its bound, in the order of the struct, as C++ wants it. */
static void put_stored(Writer *w, const FmtAxis *a, const int *load)
{
    int n = a->axis->ncoord;

    while (n > 0 && load[n - 1] < 0)
        n--;
    for (int k = 0; k < n; k++) {
        text_str(w->out, k == 0 ? ", .load = { " : ", ");
        if (load[k] >= 0)
            text_f(w->out, "c%d", load[k]);
        else
            text_char(w->out, '0');
    }
    for (int k = 0; k < n; k++) {
        text_str(w->out, k == 0 ? " }, .bound = { " : ", ");
        if (load[k] >= 0 && a->bound[k] != NULL)
            put_value(w, a->bound[k]);
        else
            text_str(w->out, "-1");
    }
    text_str(w->out, n > 0 ? " }" : "");
}

static void put_level(Writer *w, const FmtShape *shape, int l)
{
    const FmtAxis *a = &shape->level[l];
    const FmtExpr zero = { .op = F_INT };
    const FmtExpr *loc = a->loc == NULL && a->axis->extent == X_ONE ? &zero : a->loc;
    int load[IR_MAX_RANK], place = loc != NULL ? put_column(w, loc) : -1;

    for (int k = 0; k < a->axis->ncoord; k++)
        load[k] = a->load[k] != NULL ? put_column(w, a->load[k]) : -1;
    text_f(w->out, "    const weft_rule r%d = { .flags = ", l);
    put_flags(w, a->axis->flags, l == shape->nlevel - 1);
    text_f(w->out, ", .ncoord = %d, .width = ", a->axis->ncoord);
    put_width(w, a);
    if (place >= 0)
        text_f(w->out, ", .loc = c%d", place);
    put_stored(w, a, load);
    text_str(w->out, " };\n");
    text_f(w->out, "    weft_make_level(p, &r%d, ", l);
    if (l == 0)
        text_char(w->out, '1');
    else
        text_f(w->out, "level[%d].total", l - 1);
    text_f(w->out, ", &level[%d]);\n", l);
}

static const char arguments[] = "weft_part *p, const int64_t *const *x WEFT_USED, "
                                "const int64_t *bound WEFT_USED, weft_level *level";

static void put_part(const Writer *of, int i)
{
    const FmtShape *shape = &of->use->shape[i];
    Writer w = { .out = of->out, .use = of->use, .name = of->name };

    text_f(w.out, "\nstatic void %s_%d(%s)\n{\n", w.name, i, arguments);
    for (int l = 0; l < shape->nlevel; l++)
        put_level(&w, shape, l);
    text_str(w.out, "}\n");
}

/* The part of each entry: the first whose condition holds. */
static void put_split(Writer *w)
{
    const FmtUse *u = w->use;

    for (int i = 0; i < u->nshape; i++)
        if (u->shape[i].where != NULL)
            put_groups(w, u->shape[i].where);
    text_str(w->out, "    for (int64_t t = 0; t < p->n && p->tmp->fault == 0; t++) {\n");
    for (int i = 0; i < u->nshape; i++) {
        if (u->shape[i].where == NULL) {
            text_f(w->out, "        part[t] = %d;\n        continue;\n", i);
            break;
        }
        text_str(w->out, "        if (");
        put_value(w, u->shape[i].where);
        text_f(w->out, " > 0) {\n            part[t] = %d;\n            continue;\n        }\n", i);
    }
    if (u->shape[u->nshape - 1].where != NULL)
        text_str(w->out, "        part[t] = -1;\n        weft_misfit(p, 1);\n");
    text_str(w->out, "    }\n");
}

static void put_parts(Writer *w)
{
    int level = 0;

    for (int i = 0; i < w->use->nshape; i++) {
        text_f(w->out,
               "    if (p->h->fault == 0) {\n"
               "        weft_part q = { .h = p->h, .tmp = p->tmp, .list = mine };\n\n"
               "        q.all = p->all;\n"
               "        q.n = weft_select(p->n, part, %d, p->list, mine);\n"
               "        %s_%d(&q, x, bound, level + %d);\n    }\n",
               i, w->name, i, level);
        level += w->use->shape[i].nlevel;
    }
}

int fmt_nlevels(const FmtUse *u, int part)
{
    return u->shape[part].nlevel;
}

int fmt_ncoords(const FmtUse *u, int part, int level)
{
    return u->shape[part].level[level].axis->ncoord;
}

void fmt_emit(Text *out, const char *name, const FmtUse *u)
{
    Writer w = { .out = out, .use = u, .name = name };

    for (int i = 0; i < u->nshape; i++)
        put_part(&w, i);
    text_f(out, "\n/* The entries of p in the axes of %s. */\n", u->rule->name);
    text_f(out, "static void %s(%s)\n{\n", name, arguments);
    text_str(out, "    int64_t *part = weft_take(p->tmp, p->n);\n"
                  "    int64_t *mine = weft_take(p->tmp, p->n);\n");
    put_split(&w);
    text_str(out, "    if (p->tmp->fault != 0 && p->h->fault == 0)\n"
                  "        p->h->fault = p->tmp->fault;\n");
    put_parts(&w);
    text_str(out, "}\n");
}
