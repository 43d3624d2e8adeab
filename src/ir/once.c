/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * `=` sets each element at most once.  For every statement that sets elements this file finds out
 * which of three cases holds:
 *
 *   - no two instances can name the same element: nothing is left to test (ONCE_PROVEN);
 *   - two instances name the same element for certain: the program is refused here;
 *   - only the data can tell, as in Y[c(e)] = X[e]: the run tests it (ONCE_TESTED).  Interpreter
 *     and kernels (lower/positions/statements.c) then refuse a second write in the same way.
 *
 * One statement is proven when the element tells the position of every variable, or when all
 * combinations of the variables that it does not tell are constants and are tried.  Statements that
 * set the same buffer are told apart by the places of the output that are constant in all of them:
 * each statement enters its combinations of these into one table, so the work grows with the number
 * of statements and not with its square. */
#include "ir/ir_int.h"

#include <string.h>

enum {
    MOST_WORK = 2000000, /* steps of all enumerations of a program; the rest is left to the run */
    MOST_CHAIN = 64      /* statements with one combination that are compared with each other */
};

typedef struct Write {
    const Stmt *s;
    Assign *a;
    Expr *full[IR_MAX_FULL];  /* the index at each place of the buffer */
    uint32_t constant;        /* places whose index can be enumerated, */
    uint32_t searched;        /* of these, by a coordinate and not by the position */
    bool maybe;               /* only the data tell whether it sets an element twice */
} Write;

typedef struct Link { /* the writes that have one combination */
    Write *w;
    struct Link *next;
} Link;

typedef struct Cell {
    int64_t *key;
    Link *link;
    int n;
} Cell;

typedef struct Table { /* open addressing */
    Cell *cell;
    uint32_t cap, n;
    int width; /* numbers of a key */
} Table;

typedef struct Once {
    Prog *p;
    Table table;
    uint32_t places; /* what the keys are made of, */
    Var *told[IR_MAX_BINDS]; /* and the locations of these variables */
    int ntold;
    Write *w;        /* being entered */
    const Write *known; /* the last one it was compared with, */
    bool apart;         /* and what came out */
    bool twice;         /* two combinations of w have one key */
    int64_t work;       /* left */
} Once;

static void grow(Once *o)
{
    Table *t = &o->table, old = *t;

    t->cap = old.cap == 0 ? 64 : 2 * old.cap;
    t->cell = arena_array(o->p->arena, t->cap, sizeof *t->cell);
    for (uint32_t i = 0; i < old.cap; i++) {
        uint64_t h;

        if (old.cell[i].link == NULL)
            continue;
        h = hash_bytes(0, old.cell[i].key, (size_t)t->width * sizeof(int64_t));
        while (t->cell[h & (t->cap - 1)].link != NULL)
            h++;
        t->cell[h & (t->cap - 1)] = old.cell[i];
    }
}

/* The cell of a key, which is empty when the key is new. */
static Cell *find(Once *o, const int64_t *key)
{
    Table *t = &o->table;
    size_t bytes = (size_t)t->width * sizeof *key;
    uint64_t h = hash_bytes(0, key, bytes);
    Cell *c;

    if (2 * t->n >= t->cap)
        grow(o);
    for (c = &t->cell[h & (t->cap - 1)]; c->link != NULL; c = &t->cell[++h & (t->cap - 1)])
        if (bytes == 0 || memcmp(c->key, key, bytes) == 0)
            return c;
    c->key = arena_array(o->p->arena, t->width, sizeof *key);
    if (bytes > 0)
        memcpy(c->key, key, bytes);
    t->n++;
    return c;
}

static void put(Once *o, Cell *c, Write *w)
{
    Link *l = arena_alloc(o->p->arena, sizeof *l);

    *l = (Link){ w, c->link };
    c->link = l;
    c->n++;
}

static void empty_table(Once *o, int width)
{
    o->table = (Table){ .width = width };
}

/* The key at a combination; false: an index overflows, which is an error of the run. */
static bool key_at(const Once *o, Combos *c, int64_t *key)
{
    int n = 0;

    for (int k = 0; k < o->w->a->out->buf->nfull; k++)
        if (o->places >> k & 1 && !ir_combo_value(c, o->w->full[k], &key[n++]))
            return false;
    for (int i = 0; i < o->ntold; i++)
        key[n++] = c->loc[ir_combo_var(c, o->told[i])];
    return true;
}

static bool is_const_place(Prog *p, const Axis *axis, Expr *e)
{
    Combos c = { .n = 0 };

    if (e->op == OP_var ? e->var->axis != axis : !ir_is_const_index(e))
        return false;
    c.n = ir_vars(p, e, c.var, 0);
    return ir_combos_are_const(&c);
}

static bool uses(Prog *p, Expr *e, Var *const *var, int n)
{
    Var *of[IR_MAX_BINDS];
    int nof = ir_vars(p, e, of, 0);

    for (int i = 0; i < nof; i++)
        for (int k = 0; k < n; k++)
            if (of[i] == var[k])
                return true;
    return false;
}

static bool is_coord_of(Expr *e, const Var *v, int k)
{
    if (e->op == OP_tuple) {
        for (int i = 0; i < e->nargs; i++)
            if (is_coord_of(e->arg[i], v, k))
                return true;
        return false;
    }
    return e->op == OP_coord && e->var == v && e->k == k;
}

/* Whether all coordinates of a variable of a `unique` axis stand in the output: then the element
 * and the position above tell its position. */
static bool is_told_by_coords(const Assign *a, const Var *v)
{
    bool told = (v->axis->flags & AX_UNIQUE) != 0 && (v->parent == NULL || v->parent->op == OP_var);

    for (int k = 0; k < v->axis->ncoord && told; k++) {
        told = false;
        for (int i = 0; i < a->out->nargs && !told; i++)
            told = is_coord_of(a->out->arg[i], v, k);
    }
    return told;
}

/* The variables whose position the element does not tell. */
static int untold(const Write *w, Var **out)
{
    int n = 0;

    for (int i = 0; i < w->s->nbind; i++) {
        Var *v = w->s->bind[i];

        if (!ir_runs_once(v->axis) && ir_reach(w->a, v) != REACH_SPATIAL &&
            !is_told_by_coords(w->a, v))
            out[n++] = v;
    }
    return n;
}

static void enter_alone(Combos *c, void *ctx)
{
    Once *o = ctx;
    int64_t key[IR_MAX_FULL + IR_MAX_BINDS];
    Cell *cell;

    if (!key_at(o, c, key))
        return;
    cell = find(o, key);
    o->twice = o->twice || cell->link != NULL;
    if (cell->link == NULL)
        put(o, cell, o->w);
}

/* The variables to enumerate: those that are not told and all that stand beside them in constant
 * places.  Of the places, those that are made of these alone become keys. */
static void open_alone(Once *o, Var *const *var, int n, Combos *c)
{
    const Write *w = o->w;
    int places = 0;

    for (int i = 0; i < n; i++)
        c->n = ir_vars(o->p, ir_var_expr(o->p, var[i]), c->var, c->n);
    o->places = 0;
    for (int k = 0; k < w->a->out->buf->nfull; k++)
        if (w->constant >> k & 1 && uses(o->p, w->full[k], var, n)) {
            o->places |= UINT32_C(1) << k;
            places++;
            c->n = ir_vars(o->p, w->full[k], c->var, c->n);
        }
    o->ntold = 0;
    for (int i = 0; i < c->n; i++) {
        bool told = true;

        for (int k = 0; k < n; k++)
            told = told && c->var[i] != var[k];
        if (told)
            o->told[o->ntold++] = c->var[i];
    }
    empty_table(o, places + o->ntold);
}

/* A statement for a message: its label, and its line where it has one. */
static const char *name_of(const Once *o, const Write *w)
{
    Text t = { .arena = o->p->arena };

    text_str(&t, w->a->label);
    if (w->a->place.line > 0)
        text_f(&t, " (line %d)", w->a->place.line);
    return t.s;
}

static _Noreturn void refuse_alone(Once *o, const Var *v)
{
    const Write *w = o->w;

    o->p->at = w->a->place;
    ir_throw(o->p, ST_CHECK,
             "%s: = sets each element once, but %s sets the same element for several positions of "
             "%s; use +=, max= or min=",
             w->a->out->buf->name, name_of(o, w), v->name);
}

/* Whether one statement sets an element twice: never, for certain (refused), or perhaps. */
static void judge_alone(Once *o)
{
    Write *w = o->w;
    Var *var[IR_MAX_BINDS];
    Combos c = { .work = o->work };
    int n = untold(w, var);
    bool certain = w->a->guard == NULL;

    if (n == 0)
        return;
    open_alone(o, var, n, &c);
    w->maybe = !ir_combos_are_const(&c);
    if (w->maybe)
        return;
    o->twice = false;
    ir_combos(&c, enter_alone, o);
    o->work = c.work;
    for (int k = 0; k < w->a->out->buf->nfull; k++)
        certain = certain && (o->places >> k & 1 || !uses(o->p, w->full[k], var, n));
    if (o->twice && certain)
        refuse_alone(o, var[0]);
    w->maybe = o->twice || o->work <= 0;
}

/* Whether a statement sets every element of its buffer. */
static bool covers(const Write *w)
{
    const Buf *b = w->a->out->buf;

    if (w->a->guard != NULL)
        return false;
    for (int k = 0; k < b->nfull; k++) {
        Expr *e = w->full[k];
        const Axis *a = e->op == OP_var || e->op == OP_coord ? e->var->axis : NULL;

        if (a == NULL || (e->var->parent != NULL && e->var->parent->op != OP_var) ||
            (a != b->full[k] && (!ir_is_ident(a) || a->parent != NULL || a->extent != X_EXPR ||
                                 b->full[k]->extent != X_EXPR || b->full[k]->parent != NULL ||
                                 a->size != b->full[k]->size)))
            return false;
        if (e->op == OP_coord && a == b->full[k] && !ir_is_ident(a))
            return false;
        for (int i = 0; i < k; i++)
            if (w->full[i]->var == e->var)
                return false;
    }
    return true;
}

typedef struct Same { /* variables of two statements that stand for each other */
    Var *a[IR_MAX_BINDS], *b[IR_MAX_BINDS];
    int n;
} Same;

static bool same_index(Expr *x, Expr *y, Same *m);

static bool same_var(Var *v, Var *w, Same *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->a[i] == v || m->b[i] == w)
            return m->a[i] == v && m->b[i] == w;
    if (v->axis != w->axis || (v->parent == NULL) != (w->parent == NULL) ||
        (v->parent != NULL && !same_index(v->parent, w->parent, m)) || m->n == IR_MAX_BINDS)
        return false;
    m->a[m->n] = v;
    m->b[m->n++] = w;
    return true;
}

/* Whether two indices are the same but for the names of variables. */
static bool same_index(Expr *x, Expr *y, Same *m)
{
    bool of_var = x->op == OP_var || x->op == OP_coord || x->op == OP_pos || x->op == OP_loc;

    if (x->op != y->op || x->nargs != y->nargs || x->k != y->k)
        return false;
    if (of_var)
        return same_var(x->var, y->var, m);
    if (x->nargs == 0)
        return x == y;
    if (x->op == OP_load && x->buf != y->buf)
        return false;
    for (int i = 0; i < x->nargs; i++)
        if (!same_index(x->arg[i], y->arg[i], m))
            return false;
    return true;
}

static bool same_domain(const Write *v, const Write *w)
{
    return v->a->out == w->a->out && v->s->nbind == w->s->nbind &&
           (v->s->nbind == 0 ||
            memcmp(v->s->bind, w->s->bind, (size_t)v->s->nbind * sizeof *v->s->bind) == 0);
}

static bool is_not(Expr *a, Expr *b)
{
    return a != NULL && a->op == OP_not && a->arg[0] == b;
}

/* Whether two statements that share a combination name the same element for certain. */
static bool meet(const Once *o, const Write *v, const Write *w)
{
    Same m = { .n = 0 };
    Var *fixed[IR_MAX_BINDS];
    int n = 0;

    if (covers(v) || covers(w) || (same_domain(v, w) && v->a->guard == w->a->guard))
        return true;
    if (v->a->guard != NULL || w->a->guard != NULL)
        return false;
    for (int k = 0; k < v->a->out->buf->nfull; k++)
        if (o->places >> k & 1) {
            n = ir_vars(o->p, v->full[k], fixed, n);
            n = ir_vars(o->p, w->full[k], fixed, n);
        }
    for (int k = 0; k < v->a->out->buf->nfull; k++)
        if (!(o->places >> k & 1) &&
            (!same_index(v->full[k], w->full[k], &m) || uses(o->p, v->full[k], fixed, n) ||
             uses(o->p, w->full[k], fixed, n)))
            return false;
    return true;
}

static _Noreturn void refuse_both(Once *o, const Write *first, const Write *then)
{
    o->p->at = then->a->place;
    ir_throw(o->p, ST_CHECK,
             "%s: = sets each element once, but %s sets elements that %s has set; use one "
             "statement with select(...), or +=, or another buffer",
             then->a->out->buf->name, name_of(o, then), name_of(o, first));
}

/* w and an earlier write with the same combination: refused, told apart, or left to the run. */
static void judge_both(Once *o, Write *first)
{
    Write *w = o->w;

    if (o->known == first)
        return;
    o->known = first;
    if (same_domain(first, w) &&
        (is_not(first->a->guard, w->a->guard) || is_not(w->a->guard, first->a->guard)))
        return;
    if (meet(o, first, w))
        refuse_both(o, first, w);
    first->maybe = w->maybe = true;
}

static void enter_shared(Combos *c, void *ctx)
{
    Once *o = ctx;
    int64_t key[IR_MAX_FULL];
    Cell *cell;

    if (!key_at(o, c, key))
        return;
    cell = find(o, key);
    if (cell->link != NULL && cell->link->w == o->w)
        return;
    if (cell->n > MOST_CHAIN) {
        o->w->maybe = true;
        return;
    }
    for (const Link *l = cell->link; l != NULL; l = l->next)
        judge_both(o, l->w);
    put(o, cell, o->w);
}

/* All statements that set one buffer, in the order of the text. */
static void judge_shared(Once *o, Write *const *w, int n)
{
    int width = 0;

    o->places = ~UINT32_C(0);
    o->ntold = 0;
    for (int i = 0; i < n; i++)
        o->places &= w[i]->constant & ~(w[i]->searched ^ w[0]->searched);
    for (int k = 0; k < IR_MAX_FULL; k++)
        width += (int)(o->places >> k & 1);
    empty_table(o, width);
    for (int i = 0; i < n; i++) {
        Combos c = { .work = o->work };

        o->w = w[i];
        o->known = NULL;
        for (int k = 0; k < w[i]->a->out->buf->nfull; k++)
            if (o->places >> k & 1)
                c.n = ir_vars(o->p, w[i]->full[k], c.var, c.n);
        ir_combos(&c, enter_shared, o);
        o->work = c.work;
    }
    for (int i = 0; i < n && o->work <= 0; i++)
        w[i]->maybe = true;
}

static Write *new_write(Once *o, const Stmt *s, Assign *a)
{
    Write *w = arena_alloc(o->p->arena, sizeof *w);
    const Buf *b = a->out->buf;

    *w = (Write){ .s = s, .a = a };
    ir_full_index(o->p, a->out, w->full);
    for (int k = 0; k < b->nfull; k++)
        if (is_const_place(o->p, b->full[k], w->full[k])) {
            w->constant |= UINT32_C(1) << k;
            if (w->full[k]->op != OP_var && !ir_is_ident(b->full[k]))
                w->searched |= UINT32_C(1) << k;
        }
    return w;
}

/* What a pass has made of a statement that was judged keeps its verdict: the parts of a format set
 * what the statement set. */
static void judge_buffer(Once *o, Write **w, int n)
{
    bool known = true;

    for (int i = 0; i < n; i++)
        known = known && w[i]->a->once != ONCE_UNKNOWN;
    if (known)
        return;
    for (int i = 0; i < n; i++) {
        o->w = w[i];
        judge_alone(o);
    }
    if (n > 1)
        judge_shared(o, w, n);
    for (int i = 0; i < n; i++)
        w[i]->a->once = w[i]->maybe ? ONCE_TESTED : ONCE_PROVEN;
}

static void add_write(Once *o, const Stmt *s, Assign *a, Write **list[], int *n, int *cap)
{
    int b = a->out->buf->id;

    list[b] = arena_grow(o->p->arena, list[b], n[b], &cap[b], sizeof **list);
    list[b][n[b]++] = new_write(o, s, a);
}

void ir_judge_once(Prog *p)
{
    Once o = { .p = p, .work = MOST_WORK };
    int *n = arena_array(p->arena, p->nbuf, sizeof *n);
    int *cap = arena_array(p->arena, p->nbuf, sizeof *cap);
    Write ***list = arena_array(p->arena, p->nbuf, sizeof *list);

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            if (p->stmt[i]->assign[k].op == A_SET)
                add_write(&o, p->stmt[i], &p->stmt[i]->assign[k], list, n, cap);
    for (int b = 0; b < p->nbuf; b++)
        judge_buffer(&o, list[b], n[b]);
}
