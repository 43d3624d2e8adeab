/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Declarations of axes and buffers, from tokens. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"

#include <string.h>

typedef struct Ints { /* a growing list of integers, and of reals beside them */
    int64_t *v;
    double *f;
    int n, cap, nf, cap_f;
} Ints;

static void add_int(Parser *s, Ints *l, int64_t v)
{
    l->v = arena_grow(s->p->arena, l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = v;
}

static void add_real(Parser *s, Ints *l, double v)
{
    l->f = arena_grow(s->p->arena, l->f, l->nf, &l->cap_f, sizeof *l->f);
    l->f[l->nf++] = v;
}

/* "{" int {"," int} "}" */
static Ints int_list(Parser *s)
{
    Ints l = { 0 };

    parse_need(s, (Tok)'{', "`{`");
    while (s->lex.tok != '}') {
        add_int(s, &l, parse_int(s));
        if (s->lex.tok != '}')
            parse_need(s, (Tok)',', "`,` or `}`");
    }
    parse_take(s, (Tok)'}');
    l.v = l.n == 0 ? arena_alloc(s->p->arena, sizeof *l.v) : l.v;
    return l;
}

static Axis *known_axis(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an axis");
    Axis *a = ir_find_axis(s->p, name);

    s->p->at = at;
    if (a == NULL)
        ir_throw(s->p, ST_CHECK, "axis %s is not declared before this; declare it first", name);
    return a;
}

/* ("load" | "table" ints | name ["=" ("ident" | ints | expr)]) ["<" expr ["once"]] */
static void coordinate(Parser *s, Axis *a)
{
    Coord c = { .kind = C_LOAD };
    Place at = s->lex.at;
    Ints l;

    if (parse_take_word(s, "table")) {
        c.kind = C_TABLE;
    } else if (!parse_take_word(s, "load")) {
        c.name = parse_name(s, "a coordinate: load, table {...}, or a name");
        if (parse_take(s, (Tok)'='))
            c.kind = s->lex.tok == '{' ? C_TABLE : parse_take_word(s, "ident") ? C_IDENT : C_EXPR;
    }
    if (c.kind == C_TABLE) {
        l = int_list(s);
        c.table = l.v;
        c.n = l.n;
    } else if (c.kind == C_EXPR) {
        c.expr = parse_expr(s);
    }
    if (parse_take(s, (Tok)'<')) {
        c.bound = parse_expr(s);
        c.once = parse_take_word(s, "once");
    }
    s->p->at = at;
    ir_axis_coord(s->p, a, &c);
}

/* One comma separates coordinates and axes: what begins with a capital is an axis. */
static bool another_coordinate(Parser *s)
{
    Lex ahead = s->lex;

    if (s->lex.tok != ',')
        return false;
    lex_next(s->p, &ahead);
    if (ahead.tok == TOK_NAME && ir_is_capital(ahead.text[0]))
        return false;
    return parse_take(s, (Tok)',');
}

static void coordinates(Parser *s, Axis *a)
{
    do
        coordinate(s, a);
    while (another_coordinate(s));
}

static void flags(Parser *s, Axis *a)
{
    for (;;) {
        if (parse_take_word(s, "sorted"))
            a->flags |= AX_SORTED;
        else if (parse_take_word(s, "unique"))
            a->flags |= AX_UNIQUE;
        else if (parse_take_word(s, "padded"))
            a->flags |= AX_PADDED;
        else
            return;
    }
}

/* rows name {name} ["->" buffer] "{" row {("," | ";") row} "}", row = int {int} ["->" number] */
typedef struct Rows {
    const char *name[IR_MAX_RANK], *values;
    Ints col[IR_MAX_RANK], value, count; /* count: entries of each parent */
    int ncol;
} Rows;

static void rows_head(Parser *s, Rows *r)
{
    while (s->lex.tok == TOK_NAME) {
        if (r->ncol == IR_MAX_RANK)
            ir_throw(s->p, ST_LIMIT, "more than %d coordinates", IR_MAX_RANK);
        r->name[r->ncol++] = parse_name(s, "a coordinate's name");
    }
    if (r->ncol == 0)
        parse_unexpected(s, "the names of the coordinates");
    if (parse_take(s, TOK_ARROW))
        r->values = parse_name(s, "the name of the values");
    parse_need(s, (Tok)'{', "`{`");
}

static void rows_body(Parser *s, Rows *r)
{
    int64_t count = 0;

    while (s->lex.tok != '}') {
        if (parse_take(s, (Tok)';')) {
            add_int(s, &r->count, count);
            count = 0;
            continue;
        }
        for (int k = 0; k < r->ncol; k++)
            add_int(s, &r->col[k], parse_int(s));
        if (r->values != NULL) {
            parse_need(s, TOK_ARROW, "`->` and the value of this row");
            add_real(s, &r->value, parse_number(s));
        }
        count++;
        if (s->lex.tok != '}' && s->lex.tok != ';')
            parse_need(s, (Tok)',', "`,`, `;` or `}`");
    }
    parse_take(s, (Tok)'}');
    add_int(s, &r->count, count);
}

static void rows_values(Parser *s, const Rows *r, Axis *a)
{
    Buf b = { .name = r->values,
              .type = T_f64,
              .kind = B_CONST,
              .nslot = 1,
              .slot = &a,
              .n = r->value.nf,
              .val = r->value.f,
              .rows = true };

    if (b.val == NULL)
        b.val = arena_alloc(s->p->arena, sizeof *b.val);
    ir_buf(s->p, &b);
}

static void rows_axis(Parser *s, Axis *a)
{
    Rows r = { .ncol = 0 };
    Place at = s->p->at;
    int64_t up = a->parent == NULL ? 1 : ir_const_total(a->parent);

    rows_head(s, &r);
    rows_body(s, &r);
    s->p->at = at;
    if (a->parent == NULL && r.count.n > 1)
        ir_throw(s->p, ST_CHECK,
                 "axis %s: `;` goes on to the next parent, and it has none; use `,`", a->name);
    if (a->parent == NULL) {
        a->size = ir_int(s->p, r.count.v[0]);
    } else {
        a->extent = X_TABLE;
        a->table = r.count.v;
        a->n = up == 0 && r.count.n == 1 && r.count.v[0] == 0 ? 0 : r.count.n;
    }
    for (int k = 0; k < r.ncol; k++)
        ir_axis_coord(s->p, a,
                      &(Coord){ .name = r.name[k],
                                .kind = C_TABLE,
                                .n = r.col[k].n,
                                .table = r.col[k].n > 0 ? r.col[k].v : r.count.v });
    flags(s, a);
    s->p->at = at;
    ir_axis_close(s->p, a);
    if (r.values != NULL)
        rows_values(s, &r, a);
}

static Expr *short_argument(Parser *s)
{
    parse_need(s, (Tok)',', "`,`");
    return parse_expr(s);
}

/* dense(n), compressed(I, n), ragged(I), ell(I, width, n): opened once the parent is known. */
static Axis *short_axis(Parser *s, const char *name)
{
    bool compressed = parse_is(s, "compressed"), ell = parse_is(s, "ell");
    bool dense = parse_is(s, "dense");
    Place at = s->p->at;
    Axis *parent = NULL, *a;

    parse_take(s, TOK_NAME);
    parse_need(s, (Tok)'(', "`(`");
    if (!dense)
        parent = known_axis(s);
    s->p->at = at;
    a = ir_axis_open(s->p, name, parent);
    a->extent = dense || ell ? X_EXPR : X_SEG;
    if (dense)
        a->size = parse_expr(s);
    if (ell)
        a->size = short_argument(s);
    if (compressed || ell)
        ir_axis_coord(s->p, a, &(Coord){ .kind = C_LOAD, .bound = short_argument(s) });
    if (ell)
        a->flags |= AX_PADDED;
    parse_need(s, (Tok)')', "`)`");
    return a;
}

static bool is_short(const Parser *s)
{
    return parse_is(s, "dense") || parse_is(s, "compressed") || parse_is(s, "ragged") ||
           parse_is(s, "ell");
}

static void extent(Parser *s, Axis *a)
{
    Ints l;

    if (parse_take_word(s, "seg")) {
        a->extent = X_SEG;
    } else if (parse_take_word(s, "one")) {
        a->extent = X_ONE;
    } else if (parse_take_word(s, "built")) {
        a->extent = X_BUILT;
    } else if (s->lex.tok == '{') {
        l = int_list(s);
        a->extent = X_TABLE;
        a->table = l.v;
        a->n = l.n;
    } else {
        a->extent = X_EXPR;
        a->size = parse_expr(s);
    }
}

static void axis(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "the name of an axis");
    Axis *parent = NULL, *a;

    if (parse_take(s, (Tok)'(')) {
        parent = known_axis(s);
        parse_need(s, (Tok)')', "`)`");
    }
    parse_need(s, (Tok)'=', "`=`");
    s->p->at = at;
    if (parent == NULL && is_short(s)) {
        a = short_axis(s, name);
    } else {
        a = ir_axis_open(s->p, name, parent);
        if (parse_take_word(s, "rows")) {
            s->p->at = at;
            rows_axis(s, a);
            return;
        }
        extent(s, a);
        s->in_axis = a;
        if (parse_take(s, (Tok)':'))
            coordinates(s, a);
        s->in_axis = NULL;
    }
    flags(s, a);
    s->p->at = at;
    ir_axis_close(s->p, a);
    if (parse_take_word(s, "from"))
        parse_from(s, a);
}

void parse_axes(Parser *s)
{
    do
        axis(s);
    while (parse_take(s, (Tok)','));
}

/* "{" number {"," number} "}" */
static void values(Parser *s, Buf *b)
{
    Ints l = { 0 };
    bool floats = ir_type[b->type].floats;

    parse_need(s, (Tok)'{', "`{`");
    while (s->lex.tok != '}') {
        if (floats)
            add_real(s, &l, parse_number(s));
        else
            add_int(s, &l, parse_int(s));
        if (s->lex.tok != '}')
            parse_need(s, (Tok)',', "`,` or `}`");
    }
    parse_take(s, (Tok)'}');
    b->n = floats ? l.nf : l.n;
    b->val = floats ? l.f : NULL;
    b->ival = floats ? NULL : l.v;
    if (b->n == 0) { /* not NULL: NULL means that no values are given */
        b->val = floats ? arena_alloc(s->p->arena, sizeof *b->val) : NULL;
        b->ival = floats ? NULL : arena_alloc(s->p->arena, sizeof *b->ival);
    }
}

Axis *parse_dense(Parser *s)
{
    Place at = s->lex.at;
    Expr *extent = parse_expr(s);

    s->p->at = at;
    return ir_dense(s->p, extent);
}

/* An axis by its name, or the dense one of an extent. */
Axis *parse_slot(Parser *s)
{
    bool capital = s->lex.tok == TOK_NAME && ir_is_capital(s->lex.text[0]);

    return capital ? known_axis(s) : parse_dense(s);
}

/* name "[" [slot {"," slot}] "]" ["fill" number] ["=" "{" ... "}"] */
static void buffer(Parser *s, BufKind kind, Type type)
{
    Axis *slots[IR_MAX_RANK];
    Place at = s->lex.at;
    Buf b = {
        .name = parse_name(s, "the name of a buffer"), .type = type, .kind = kind, .slot = slots
    };

    parse_need(s, (Tok)'[', "`[`");
    while (s->lex.tok != ']') {
        if (b.nslot == IR_MAX_RANK)
            ir_throw(s->p, ST_LIMIT, "%s: more than %d slots", b.name, IR_MAX_RANK);
        slots[b.nslot++] = parse_slot(s);
        if (s->lex.tok != ']')
            parse_need(s, (Tok)',', "`,` or `]`");
    }
    parse_take(s, (Tok)']');
    if (parse_take_word(s, "fill")) {
        b.has_fill = true;
        b.fill = parse_number(s);
    }
    if (parse_take(s, (Tok)'='))
        values(s, &b);
    s->p->at = at;
    ir_buf(s->p, &b);
}

static bool type_word(Parser *s, Type *type)
{
    for (int t = 0; t < T_COUNT; t++)
        if (ir_type[t].element && parse_take_word(s, ir_type[t].name))
            return *type = (Type)t, true;
    return false;
}

bool parse_buffers(Parser *s)
{
    BufKind kind = parse_take_word(s, "temp")    ? B_TEMP
                   : parse_take_word(s, "inout") ? B_INOUT
                   : parse_take_word(s, "const") ? B_CONST
                                                 : B_ARG;
    Type type;

    if (kind == B_TEMP && s->p->stage != STAGE_COORDINATES)
        kind = parse_take_word(s, "work")     ? B_WORK
               : parse_take_word(s, "shared") ? B_SHARED
                                              : B_TEMP;
    if (!type_word(s, &type)) {
        if (kind != B_ARG)
            parse_unexpected(s, "a type: f16, bf16, f32, f64, i32 or i64");
        return false;
    }
    do
        buffer(s, kind, type);
    while (parse_take(s, (Tok)','));
    return true;
}
