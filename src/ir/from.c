/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Axes that are made from others, in the text of a program that passes have changed:
 *
 *     T_E(R_E) = seg : entry, row < n from transpose(E, i)    entries of E, ordered by coordinate i
 *     E_E(P_E) = seg from long(E)      entries of the long rows of E, under parts, under rows
 *     E_K(P_K) = seg from cut(K)       entries of K, or positions of a dense axis, under parts
 *     S_E(P_E) = seg : part from rows(E, i)    rows of E, under parts, for a scatter by i
 *     L_E(I_E) = 4 : j < n, entry padded from part(E, 0, ell(4))    part 0 of E in a format
 *
 * Whoever runs the program makes the arrays of such an axis and of those above it; they are no
 * arguments. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"
#include "ir/print_int.h"

#include <string.h>

static const struct {
    const char *word;
    int from_k;
    bool by; /* a coordinate follows */
} kinds[] = {
    { "transpose", 0, true },       { "long", FROM_LONG, false }, { "cut", FROM_CUT, false },
    { "rows", FROM_ROWS, true },    { "part", FROM_FORMAT, false },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static const char *coord_name(const Coord *c)
{
    return c->name != NULL ? c->name : "coord";
}

void print_from(Printer *o, const Axis *a)
{
    int kind = 0;

    if (a->from == NULL)
        return;
    for (int i = 1; i < NKINDS; i++)
        kind = a->from_k == kinds[i].from_k ? i : kind;
    text_f(o->out, " from %s(", kinds[kind].word);
    if (a->from->name != NULL)
        text_str(o->out, a->from->name);
    else
        print_expr(o, a->from->size);
    if (kinds[kind].by)
        text_f(o->out, ", %s", coord_name(&a->from->coord[kind == 0 ? a->from_k : a->part]));
    if (a->from_k == FROM_FORMAT)
        text_f(o->out, ", %d, %s", a->part, a->format);
    text_char(o->out, ')');
}

bool ir_is_made(const Prog *p, const Axis *a)
{
    for (int i = a->id; i < p->naxis; i++)
        if (p->axis[i]->from != NULL &&
            (p->axis[i] == a || (p->axis[i]->id > a->id && ir_is_ancestor(a, p->axis[i]))))
            return true;
    return false;
}

static bool is_root(const Axis *a, int loads)
{
    return a != NULL && a->parent == NULL && a->extent == X_EXPR && a->size->op == OP_int &&
           a->size->i == 1 && (loads == 0 ? ir_is_ident(a) : a->ncoord == loads);
}

/* An axis of rows of their own length with so many coordinates, all of them stored. */
static bool is_rows(const Axis *a, int loads)
{
    bool good = a != NULL && a->parent != NULL && a->extent == X_SEG && a->flags == 0 &&
                (loads == 0 ? ir_is_ident(a) : a->ncoord == loads);

    for (int k = 0; k < loads && good; k++)
        good = a->coord[k].kind == C_LOAD;
    return good;
}

static bool is_long(const Axis *e)
{
    const Axis *parts = e->parent, *rows;

    if (!is_rows(e, 0) || !is_rows(parts, 2))
        return false;
    rows = parts->parent;
    return is_rows(rows, 1) && is_root(rows->parent, 1) &&
           rows->parent->coord[0].kind == C_LOAD && e->from->extent == X_SEG &&
           e->from->parent != NULL;
}

static bool is_cut(const Axis *e)
{
    const Axis *of = e->from;

    return is_rows(e, 0) && is_rows(e->parent, 2) && is_root(e->parent->parent, 0) &&
           (of->extent == X_SEG ? of->parent != NULL
                                : of->extent == X_EXPR && of->parent == NULL);
}

static bool is_scatter(const Axis *r)
{
    bool good = is_rows(r, 1) && is_rows(r->parent, 2) && is_root(r->parent->parent, 0) &&
                r->from->parent != NULL && r->from->coord[r->part].bound != NULL;

    for (const Axis *a = r->from; a->parent != NULL && good; a = a->parent)
        good = a->extent == X_SEG;
    return good;
}

static bool stores_all(const Axis *e)
{
    bool all = true;

    for (int k = 0; k < e->ncoord && all; k++)
        all = e->coord[k].kind == C_LOAD;
    return all;
}

/* Entries that can be sorted: of dense rows, of a list of rows, or of none.  Padding is left out,
 * so stored coordinates have to tell which entries are padding. */
static bool is_transpose(const Axis *t)
{
    const Axis *e = t->from, *up = e->parent, *rows = t->parent;
    const Coord *by = &e->coord[t->from_k];
    int loads = up != NULL ? 2 : 1;

    for (int k = 0; k < e->ncoord; k++)
        loads += k != t->from_k && e->coord[k].kind == C_LOAD;
    for (int k = 0; up != NULL && k < up->ncoord; k++)
        loads += up->coord[k].kind == C_LOAD;
    if (by->kind != C_LOAD || by->bound == NULL || !is_rows(t, loads) ||
        (e->flags & AX_PADDED && !(up != NULL && stores_all(e))))
        return false;
    if (rows->parent != NULL || rows->extent != X_EXPR || !ir_is_ident(rows) ||
        rows->size != by->bound)
        return false;
    if (up == NULL)
        return e->extent == X_EXPR;
    if (e->extent == X_SEG)
        return ir_is_dense(up);
    return e->extent == X_EXPR && !(up->flags & AX_PADDED) && up->parent == NULL &&
           up->extent == X_EXPR && (ir_is_ident(up) || stores_all(up));
}

static void check(Prog *p, const Axis *a)
{
    bool good = true;
    const Axis *root = a;

    while (root->parent != NULL)
        root = root->parent;
    if (a->from->name != NULL && a->from->id > root->id)
        good = false;
    else if (a->from_k == FROM_LONG)
        good = is_long(a);
    else if (a->from_k == FROM_CUT)
        good = is_cut(a);
    else if (a->from_k == FROM_ROWS)
        good = is_scatter(a);
    else if (a->from_k >= 0)
        good = is_transpose(a);
    if (!good)
        ir_throw(p, ST_CHECK,
                 "axis %s cannot be made from %s so; `weft print --after` shows axes that can",
                 a->name, a->from->name != NULL ? a->from->name : "a dense axis");
}

static int parse_coord(Parser *s, const Axis *of)
{
    const char *name;

    parse_need(s, (Tok)',', "`,`");
    name = parse_name(s, "a coordinate");
    for (int k = 0; k < of->ncoord; k++)
        if (strcmp(coord_name(&of->coord[k]), name) == 0)
            return k;
    ir_throw(s->p, ST_CHECK, "axis %s has no coordinate %s", of->name, name);
}

/* The rest up to the bracket that closes this one, as it stands. */
static const char *parse_raw(Parser *s)
{
    Lex *x = &s->lex;
    const char *c = x->text, *from = c;
    int open = 0;
    char *out;

    for (; c < x->end && *c != '\n' && (open > 0 || *c != ')'); c++)
        open += (strchr("([{", *c) != NULL) - (strchr(")]}", *c) != NULL);
    if (c == x->end || *c == '\n' || c == from)
        parse_unexpected(s, "a format and `)`");
    out = arena_alloc(s->p->arena, (size_t)(c - from) + 1);
    memcpy(out, from, (size_t)(c - from));
    x->s = c;
    lex_next(s->p, x);
    return out;
}

static void parse_part(Parser *s, Axis *a)
{
    int64_t part;

    parse_need(s, (Tok)',', "`,`");
    part = parse_int(s);
    if (part < 0 || part > 1 << 20)
        ir_throw(s->p, ST_CHECK, "a format has no part %lld: their numbers are 0 to %d",
                 (long long)part, 1 << 20);
    if (s->lex.tok != ',')
        parse_unexpected(s, "`,`");
    parse_take(s, (Tok)',');
    a->part = (int)part;
    a->format = parse_raw(s);
}

static int parse_kind(Parser *s)
{
    for (int i = 0; i < NKINDS; i++)
        if (parse_take_word(s, kinds[i].word))
            return i;
    parse_unexpected(s, "what it is made as: transpose, long, cut, rows or part");
}

/* After the word from, for an axis that is closed. */
void parse_from(Parser *s, Axis *a)
{
    Place at = s->lex.at;
    int kind = parse_kind(s), k = 0;
    Axis *of;

    parse_need(s, (Tok)'(', "`(`");
    of = parse_slot(s);
    if (kinds[kind].by)
        k = parse_coord(s, of);
    if (kinds[kind].from_k == FROM_FORMAT)
        parse_part(s, a);
    parse_need(s, (Tok)')', "`)`");
    s->p->at = at;
    a->from = of;
    a->from_k = kind == 0 ? k : kinds[kind].from_k;
    a->part = kinds[kind].from_k == FROM_FORMAT ? a->part : kind == 0 ? 0 : k;
    if (of == a || ir_is_ancestor(a, of) || ir_is_ancestor(of, a))
        ir_throw(s->p, ST_CHECK, "axis %s is made from itself", a->name);
    check(s->p, a);
}
