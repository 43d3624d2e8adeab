/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs to text: declarations and statements, in the order they were made.  Short names where
 * they fit exactly, `for` only where it differs from the default, `let` where an expression of a
 * group is used more than once. */
#include "ir/ir_int.h"
#include "ir/loop.h"
#include "ir/print_int.h"

#include <string.h>

enum {
    LET_PART = 4,   /* a part that is shared has at least so many nodes */
    LET_NEST = 100, /* a part that nests so deeply gets a name too: PARSE_DEPTH is the limit */
    LIST_COLUMNS = PRINT_COLUMNS - 12 /* what stands before a declaration takes some */
};

static void print_bound(Printer *o, const Coord *c)
{
    if (c->bound != NULL) {
        text_str(o->out, " < ");
        print_expr(o, c->bound);
    }
    if (c->once)
        text_str(o->out, " once");
}

static size_t line_of(const Text *out)
{
    size_t at = out->n;

    while (at > 0 && out->s[at - 1] != '\n')
        at--;
    return at;
}

/* A list inside braces that goes on on another line where one is full. */
typedef struct List {
    Text *out;
    size_t line, entry; /* where this line, and its last entry, began */
} List;

static List begin_list(Text *out, const char *brace)
{
    List l = { .out = out, .line = line_of(out) };

    text_str(out, brace);
    l.entry = out->n;
    return l;
}

/* After an entry and what follows it: moves the entry to a new line if it does not fit. */
static void fit_entry(List *l)
{
    static const char gap[] = "\n    ";
    Text *t = l->out;
    size_t n = t->n - l->entry, grow = sizeof gap - 2;

    if (t->n - l->line <= LIST_COLUMNS || t->s[l->entry - 1] != ' ')
        return;
    text_put(t, gap, grow);
    memmove(t->s + l->entry + grow, t->s + l->entry, n);
    memcpy(t->s + l->entry - 1, gap, sizeof gap - 1);
    l->line = l->entry;
    l->entry += grow;
}

static void next_entry(List *l, const char *sign)
{
    text_str(l->out, sign);
    fit_entry(l);
    text_char(l->out, ' ');
    l->entry = l->out->n;
}

static void end_list(List *l, const char *brace)
{
    text_str(l->out, brace);
    fit_entry(l);
}

static void print_ints(Text *out, const int64_t *v, int64_t n)
{
    List l = begin_list(out, "{");

    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            next_entry(&l, ",");
        text_f(out, "%lld", (long long)v[i]);
    }
    end_list(&l, "}");
}

static void print_reals(Text *out, const double *v, int64_t n)
{
    List l = begin_list(out, "{");

    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            next_entry(&l, ",");
        print_number(out, v[i], false);
    }
    end_list(&l, "}");
}

static void print_coordinate(Printer *o, const Coord *c)
{
    if (c->name != NULL)
        text_str(o->out, c->name);
    else
        text_str(o->out, c->kind == C_TABLE ? "table " : "load");
    if (c->name != NULL && c->kind != C_LOAD)
        text_str(o->out, c->kind == C_IDENT ? " = ident" : " = ");
    if (c->kind == C_TABLE)
        print_ints(o->out, c->table, c->n);
    if (c->kind == C_EXPR)
        print_expr(o, c->expr);
    print_bound(o, c);
}

/* The values that `rows` declares with the axis: the next declaration, or NULL. */
static const Buf *rows_values(const Prog *p, int decl)
{
    const Buf *b = decl + 1 < p->ndecl ? p->decl[decl + 1].buf : NULL;

    return b != NULL && b->rows && b->slot[0] == p->decl[decl].axis ? b : NULL;
}

static bool is_rows(const Axis *a, const Buf *values)
{
    bool tables =
        a->extent == X_TABLE || (a->extent == X_EXPR && a->parent == NULL && a->size->op == OP_int);

    for (int k = 0; k < a->ncoord; k++)
        tables = tables && a->coord[k].kind == C_TABLE && a->coord[k].name != NULL &&
                 a->coord[k].bound == NULL;
    return tables && (a->ncoord > 1 || values != NULL);
}

static void print_row(Text *out, const Axis *a, const Buf *values, int64_t pos)
{
    for (int k = 0; k < a->ncoord; k++)
        text_f(out, k > 0 ? " %lld" : "%lld", (long long)a->coord[k].table[pos]);
    if (values != NULL) {
        text_str(out, " -> ");
        print_number(out, values->val[pos], false);
    }
}

static void print_rows(Text *out, const Axis *a, const Buf *values)
{
    int64_t parents = a->extent == X_TABLE ? a->n : 1, pos = 0;
    List l;

    text_str(out, "rows");
    for (int k = 0; k < a->ncoord; k++)
        text_f(out, " %s", a->coord[k].name);
    if (values != NULL)
        text_f(out, " -> %s", values->name);
    l = begin_list(out, " { ");
    for (int64_t q = 0; q < parents; q++) {
        int64_t n = a->extent == X_TABLE ? a->table[q] : a->size->i;

        for (int64_t i = 0; i < n; i++) {
            if (i > 0)
                next_entry(&l, ",");
            print_row(out, a, values, pos++);
        }
        if (q + 1 < parents)
            next_entry(&l, ";");
    }
    end_list(&l, " }");
}

static bool print_short(Printer *o, const Axis *a)
{
    const Coord *c = a->coord;
    bool load = a->ncoord == 1 && c->kind == C_LOAD && c->name == NULL && c->bound != NULL &&
                !c->once;

    if (a->extent == X_SEG && load) {
        text_f(o->out, "%s = compressed(%s, ", a->name, a->parent->name);
    } else if (a->extent == X_SEG && ir_is_ident(a) && c->name == NULL) {
        text_f(o->out, "%s = ragged(%s)", a->name, a->parent->name);
        return true;
    } else if (a->extent == X_EXPR && a->parent != NULL && load && (a->flags & AX_PADDED)) {
        text_f(o->out, "%s = ell(%s, ", a->name, a->parent->name);
        print_expr(o, a->size);
        text_str(o->out, ", ");
    } else {
        return false;
    }
    print_expr(o, c->bound);
    text_char(o->out, ')');
    return true;
}

static void print_extent(Printer *o, const Axis *a)
{
    switch (a->extent) {
    case X_EXPR: print_expr(o, a->size); break;
    case X_TABLE: print_ints(o->out, a->table, a->n); break;
    case X_SEG: text_str(o->out, "seg"); break;
    case X_ONE: text_str(o->out, "one"); break;
    case X_BUILT: text_str(o->out, "built"); break;
    }
}

static void print_long(Printer *o, const Axis *a, const Buf *values)
{
    text_str(o->out, a->name);
    if (a->parent != NULL)
        text_f(o->out, "(%s)", a->parent->name);
    text_str(o->out, " = ");
    if (is_rows(a, values)) {
        print_rows(o->out, a, values);
        return;
    }
    print_extent(o, a);
    for (int k = 0; k < a->ncoord && !(ir_is_ident(a) && a->coord->name == NULL); k++) {
        text_str(o->out, k > 0 ? ", " : " : ");
        print_coordinate(o, &a->coord[k]);
    }
}

static void print_axis(Printer *o, const Axis *a, const Buf *values)
{
    bool ell, brief;

    o->in_axis = a;
    brief = print_short(o, a);
    ell = brief && a->extent == X_EXPR;
    if (!brief)
        print_long(o, a, values);
    o->in_axis = NULL;
    if (a->extent != X_BUILT && (a->flags & AX_SORTED))
        text_str(o->out, " sorted");
    if (a->extent != X_BUILT && (a->flags & AX_UNIQUE))
        text_str(o->out, " unique");
    if ((a->flags & AX_PADDED) && !ell)
        text_str(o->out, " padded");
    print_from(o, a);
}

static void print_buf(Printer *o, const Buf *b)
{
    text_f(o->out, "%s[", b->name);
    for (int s = 0; s < b->nslot; s++) {
        text_str(o->out, s > 0 ? ", " : "");
        if (b->slot[s]->name != NULL)
            text_str(o->out, b->slot[s]->name);
        else
            print_expr(o, b->slot[s]->size);
    }
    text_char(o->out, ']');
    if (b->has_fill) {
        text_str(o->out, " fill ");
        print_number(o->out, b->fill, false);
    }
    if (b->kind != B_CONST)
        return;
    text_str(o->out, " = ");
    if (b->ival != NULL)
        print_ints(o->out, b->ival, b->n);
    else
        print_reals(o->out, b->val, b->n);
}

static const Axis *root_of(const Axis *a)
{
    while (a->parent != NULL)
        a = a->parent;
    return a;
}

static const char *kind_word(BufKind k)
{
    static const char *const word[] = {
        [B_TEMP] = "temp ", [B_INOUT] = "inout ", [B_CONST] = "const ", [B_WORK] = "temp work ",
        [B_SHARED] = "temp shared "
    };

    return k == B_ARG ? "" : word[k];
}

/* Whether the declaration goes on on the line of the one before: one line a tree of axes, one a
 * kind and type of buffers. */
static bool same_line(const Decl *a, const Decl *b)
{
    if (a->axis != NULL && b->axis != NULL)
        return root_of(a->axis) == root_of(b->axis);
    return a->buf != NULL && b->buf != NULL && a->buf->type == b->buf->type &&
           a->buf->kind == b->buf->kind && !a->buf->rows && !b->buf->rows;
}

static void print_decls(Printer *o)
{
    const Prog *p = o->p;
    const Decl *before = NULL;
    Text one = { .arena = p->arena }, *out = o->out;

    for (int i = 0; i < p->ndecl; i++) {
        const Decl *d = &p->decl[i];

        if (d->buf != NULL && (d->buf->rows || strchr(d->buf->name, '.') != NULL))
            continue; /* printed with its axis; with the tree that uses it */
        one.n = 0;
        o->out = &one;
        if (d->axis != NULL)
            print_axis(o, d->axis, rows_values(p, i));
        else
            print_buf(o, d->buf);
        o->out = out;
        if (before != NULL && same_line(before, d) &&
            out->n - line_of(out) + one.n + 2 <= PRINT_COLUMNS) {
            text_str(out, ", ");
        } else {
            text_str(out, "\n");
            if (d->axis != NULL)
                text_str(out, "axis ");
            else
                text_f(out, "%s%s ", kind_word(d->buf->kind), ir_type[d->buf->type].name);
        }
        text_put(out, one.s, one.n);
        before = d;
    }
}

void print_decl(Printer *o, const Buf *b)
{
    text_f(o->out, "%s%s ", kind_word(b->kind), ir_type[b->type].name);
    print_buf(o, b);
    text_char(o->out, '\n');
}

void print_head(Printer *o)
{
    const Prog *p = o->p;

    text_f(o->out, "program %s(", p->name);
    for (int i = 0; i < p->nsize; i++)
        text_f(o->out, i > 0 ? ", %s" : "%s", p->size[i]->name);
    text_char(o->out, ')');
    if (p->stage != STAGE_COORDINATES)
        text_f(o->out, " stage %s", p->threads ? ir_stage_threads : ir_stage[p->stage]);
    print_decls(o);
    text_char(o->out, '\n');
}

static void print_bind(Printer *o, const Var *v)
{
    const Axis *a = v->axis;
    bool usual = a->parent == NULL || (v->parent->op == OP_var && v->parent->var == a->parent->var);

    text_str(o->out, v->name);
    if (v == a->var)
        return;
    text_str(o->out, " in ");
    if (a->name == NULL) {
        print_expr(o, a->size);
        return;
    }
    text_str(o->out, a->name);
    if (!usual) {
        text_char(o->out, '(');
        print_index(o, v->parent);
        text_char(o->out, ')');
    }
}

static void print_for(Printer *o, const Stmt *s)
{
    text_str(o->out, "for");
    for (int i = 0; i < s->nbind; i++) {
        text_str(o->out, i > 0 ? ", " : " ");
        print_bind(o, s->bind[i]);
    }
    text_char(o->out, ':');
}

static void print_assign(Printer *o, const Assign *a)
{
    static const char *const sign[] = { "=", "+=", "max=", "min=", "|=" };

    if (a->op == A_INSERT) {
        text_str(o->out, a->out->axis->name);
        if (a->out->axis->parent != NULL) {
            text_char(o->out, '(');
            print_index(o, a->out->arg[0]);
            text_char(o->out, ')');
        }
    } else {
        print_index(o, a->out);
    }
    text_f(o->out, " %s ", sign[a->op]);
    print_index(o, a->value);
    for (int k = 0; k < a->nat; k++) {
        text_str(o->out, k > 0 ? ", " : " at ");
        print_index(o, a->at[k].out);
        text_str(o->out, " = ");
        print_expr(o, a->at[k].value);
    }
    if (a->guard != NULL) {
        text_str(o->out, " if ");
        print_expr(o, a->guard);
    }
}

/* What cannot have a name is written again for each use, so its parts are used again too. */
void print_count(Uses *u, Expr *e)
{
    Expr *from = e->op == OP_stored ? e->arg[0] : e; /* stored(...) writes the access itself */
    bool met = u->count[e->id]++ > 0;

    if (met && e->type != T_none)
        return;
    for (int i = 0; i < from->nargs; i++)
        print_count(u, from->arg[i]);
    if (!met)
        u->order[u->n++] = e;
}

/* Counts what an assign uses; the nodes of all its trees. */
static uint64_t count_assign(Uses *u, const Assign *a)
{
    uint64_t tree = (uint64_t)a->out->tree + a->value->tree;

    for (int i = 0; i < a->out->nargs; i++)
        print_count(u, a->out->arg[i]);
    print_count(u, a->value);
    if (a->guard != NULL) {
        print_count(u, a->guard);
        tree += a->guard->tree;
    }
    for (int k = 0; k < a->nat; k++) { /* its indices are those of the output */
        print_count(u, a->at[k].value);
        tree += a->at[k].value->tree;
    }
    return tree;
}

static void forget(Printer *o, Uses *u)
{
    for (int i = 0; i < u->n; i++) {
        Expr *e = u->order[i];

        if (o->let[e->id] != NULL)
            ir_symbol(o->p, o->let[e->id], strlen(o->let[e->id]))->let = NULL;
        if (e->op == OP_load)
            u->loads[e->buf->id] = 0;
        u->count[e->id] = 0;
        o->let[e->id] = NULL;
    }
    u->n = u->others = 0;
}

static bool is_deep(Expr *e)
{
    return e->nest > 0 && e->nest % LET_NEST == 0 && e->arg[0]->nest != e->nest;
}

bool print_is_shared(const Uses *u, Expr *e)
{
    return (u->count[e->id] > 1 || is_deep(e)) && e->tree >= LET_PART && e->type != T_none;
}

static bool name_taken(const Stmt *s, const Symbol *sym)
{
    for (int i = 0; i < s->nbind; i++)
        if (strcmp(s->bind[i]->name, sym->name) == 0)
            return true;
    return sym->size != NULL || sym->of_var != NULL || sym->buf != NULL || sym->let != NULL ||
           ir_is_reserved(sym->name, strlen(sym->name));
}

/* X[...] is x, x1, ...; all else t0, t1, ... */
static const char *let_name(Prog *p, const Stmt *s, Uses *u, Expr *e)
{
    bool load = e->op == OP_load && strlen(e->buf->name) < IR_MAX_NAME - 8;
    int *number = load ? &u->loads[e->buf->id] : &u->others;
    Text name = { .arena = p->arena };
    Symbol *sym;

    do {
        name.n = 0;
        for (const char *c = load ? e->buf->name : "t"; *c != 0; c++)
            text_char(&name, ir_is_capital(*c) ? (char)(*c - 'A' + 'a') : *c);
        if (!load || *number > 0)
            text_f(&name, "%d", *number);
        ++*number;
        sym = ir_symbol(p, name.s, name.n);
    } while (name_taken(s, sym));
    sym->let = e;
    return sym->name;
}

/* Prints the lets of a group, and makes later uses print their names. */
static void print_lets(Printer *o, const Stmt *s, Uses *u)
{
    for (int i = 0; i < u->n; i++) {
        const char *name;

        if (!print_is_shared(u, u->order[i]))
            continue;
        name = let_name(o->p, s, u, u->order[i]);
        text_f(o->out, "    let %s = ", name);
        print_expr(o, u->order[i]);
        text_char(o->out, '\n');
        o->let[u->order[i]->id] = name;
    }
}

static bool shares(const Uses *u)
{
    for (int i = 0; i < u->n; i++)
        if (print_is_shared(u, u->order[i]))
            return true;
    return false;
}

static bool has_default_binds(Prog *p, const Stmt *s)
{
    Var *bind[IR_MAX_BINDS];
    int n = ir_default_binds(p, s->assign, s->nassign, bind);

    if (n != s->nbind)
        return false;
    for (int i = 0; i < n; i++)
        if (bind[i] != s->bind[i] || bind[i] != bind[i]->axis->var)
            return false;
    return true;
}

static void print_group(Printer *o, const Stmt *s, Uses *u)
{
    print_for(o, s);
    text_char(o->out, '\n');
    print_lets(o, s, u);
    for (int i = 0; i < s->nassign; i++) {
        text_f(o->out, "    %s: ", s->assign[i].label);
        print_assign(o, &s->assign[i]);
        text_char(o->out, '\n');
    }
}

static void print_stmt(Printer *o, const Stmt *s, Uses *u)
{
    uint64_t tree = 0;

    for (int i = 0; i < s->nassign; i++)
        tree += count_assign(u, &s->assign[i]);
    if (s->nassign > 1 || (tree > LET_STMT && shares(u))) {
        print_group(o, s, u);
    } else {
        text_f(o->out, "%s: ", s->assign[0].label);
        if (!has_default_binds(o->p, s)) {
            print_for(o, s);
            text_char(o->out, ' ');
        }
        print_assign(o, &s->assign[0]);
        text_char(o->out, '\n');
    }
    forget(o, u);
}

static void print_stmts(Text *out, Prog *p)
{
    Printer o = { .out = out, .p = p, .let = arena_array(p->arena, p->nexpr, sizeof *o.let) };
    Uses u = { .count = arena_array(p->arena, p->nexpr, sizeof *u.count),
               .order = arena_array(p->arena, p->nexpr, sizeof *u.order),
               .loads = arena_array(p->arena, p->nbuf, sizeof *u.loads) };

    print_head(&o);
    for (int i = 0; i < p->nstmt; i++)
        print_stmt(&o, p->stmt[i], &u);
}

static void print_schedule(Text *out, const char *s)
{
    text_str(out, "schedule\n");
    for (size_t n; *s != 0; s += n + (s[n] != 0)) {
        n = strcspn(s, "\n");
        text_f(out, "    %.*s\n", (int)n, s);
    }
}

void ir_print(Text *out, Prog *p)
{
    for (uint32_t i = 0; i < p->cap_sym; i++) /* what a print that threw has left */
        if (p->sym[i] != NULL)
            p->sym[i]->let = NULL;
    if (p->stage == STAGE_COORDINATES)
        print_stmts(out, p);
    else
        loop_print(out, p);
    if (p->sched != NULL)
        print_schedule(out, p->sched);
}
