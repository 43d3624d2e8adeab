/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Turns a scatter into a sum that each row owns.  O[j(e), ...] += v over the entries e of rows
 * i, or of no rows, becomes the same sum over the rows j of the transpose: a new axis R with the
 * extent of j, and below it an axis T(R) that holds, for each entry that is not padding, its
 * position, its row, its other coordinates and the stored coordinates of its row.  The row is a
 * position of the parent of e, which may be dense under further dense axes.  The plan fills T by
 * a stable sort, so each element adds its terms in the same order as before.
 *
 * The rows i that v reads are then gathered, once for each entry.  If they are long compared
 * with the rows of O, the statement stays a scatter, and split/scatter.c splits it.  Needs a
 * checked program; gives an equivalent one. */
#include "lower/facts/facts_int.h"

#include <string.h>

typedef struct Reroot {
    Prog *p;
    Var *i, *e, *r, *t; /* row, or NULL, and entry before; row and entry of the transpose */
    int k;              /* the coordinate of e that is the new row */
    int nvar;
    Var **moved; /* by Var.id, of nvar: what hangs on i or e, as it hangs on t; or NULL */
    bool bad;    /* something that the transpose does not know is used */
} Reroot;

/* Rows of one length, some of whose entries may be padding: the plan leaves these out, so it has to
 * know them by what is stored.  An axis that a format made keeps the order of the format. */
static bool are_even(const Axis *e)
{
    bool good = e->extent == X_EXPR && e->from == NULL;

    for (int k = 0; k < e->ncoord && good; k++)
        good = e->coord[k].kind == C_LOAD;
    return good;
}

/* Rows that a plan can number: plain ones, or a list that has stored coordinates. */
static bool are_listed(const Axis *rows)
{
    bool good = rows->parent == NULL && rows->extent == X_EXPR && !(rows->flags & AX_PADDED);

    for (int k = 0; k < rows->ncoord && good && !ir_is_ident(rows); k++)
        good = rows->coord[k].kind == C_LOAD;
    return good;
}

/* Entries that a plan can sort: of dense rows, of listed rows, or of none. */
static bool can_sort(const Var *v)
{
    const Axis *e = v->axis, *up = e->parent;

    if (e->ncoord + (up == NULL ? 0 : up->ncoord) >= IR_MAX_RANK)
        return false;
    if (up == NULL)
        return e->extent == X_EXPR && !(e->flags & AX_PADDED);
    if (v->parent->op != OP_var)
        return false;
    if (e->extent == X_SEG && !(e->flags & AX_PADDED))
        return ir_is_dense(up);
    return are_even(e) && are_listed(up);
}

/* The variable that this one hangs on; NULL: on none, or on no variable. */
static const Var *above(const Var *v)
{
    return v->parent != NULL && v->parent->op == OP_var ? v->parent->var : NULL;
}

static bool is_above(const Var *up, const Var *v)
{
    while (v != NULL && v != up)
        v = above(v);
    return v == up;
}

/* Entries below two or more levels of rows, as the pairs of a relation that are grouped in strips:
 * a plan does not sort those, but the rows at the top can be cut into parts. */
static bool is_nested(const Var *v)
{
    int depth = 0;

    for (; v->axis->parent != NULL; v = v->parent->var, depth++)
        if (v->axis->extent != X_SEG || v->axis->flags & AX_PADDED || v->parent->op != OP_var)
            return false;
    return depth > 1 && v->axis->extent == X_EXPR && ir_is_ident(v->axis);
}

/* The slot of an output that scatters by a coordinate of an entry of a kind that `fits`. */
static Expr *scatter_index(const Assign *a, bool (*fits)(const Var *))
{
    for (int s = 0; s < a->out->nargs; s++) {
        Expr *x = a->out->arg[s];
        const Axis *slot = a->out->buf->slot[s];
        const Coord *k = x->op == OP_coord ? &x->var->axis->coord[x->k] : NULL;

        if (k != NULL && k->kind == C_LOAD && ir_is_ident(slot) && slot->parent == NULL &&
            k->bound == slot->size && fits(x->var))
            return x;
    }
    return NULL;
}

static Axis *open_axis(Prog *p, const char *letter, const Axis *of, Axis *parent)
{
    Text name = { .arena = p->arena };
    int n = 0;

    do {
        name.n = 0;
        text_f(&name, "%s_%.40s", letter, of->name);
        if (n++ > 0)
            text_f(&name, "%d", n);
    } while (ir_find_symbol(p, name.s, name.n) != NULL);
    return ir_axis_open(p, name.s, parent);
}

/* The name of a coordinate of the transpose: the one it has, if any, where that means nothing
 * else. */
static const char *coord_name(Prog *p, const Axis *t, const char *own)
{
    Text stem = { .arena = p->arena };
    const char *name;

    text_f(&stem, "%.40s", own != NULL ? own : "value");
    while (name = ir_fresh(p, stem.s, false), ir_find_coord(t, name) >= 0)
        text_f(&stem, "_");
    return name;
}

static void add_coord(Prog *p, Axis *t, const char *name, Expr *bound)
{
    ir_axis_coord(p, t, &(Coord){ .kind = C_LOAD, .name = coord_name(p, t, name), .bound = bound });
}

/* After the coordinates of the entry those of its row. */
static const Axis *also_carried(const Axis *e, const Axis *of)
{
    return of == e ? e->parent : NULL;
}

int lower_carried(const Axis *t, int n, const Axis **of)
{
    const Axis *e = t->from;
    int at = e->parent != NULL ? 2 : 1;

    for (*of = e; *of != NULL; *of = also_carried(e, *of))
        for (int k = 0; k < (*of)->ncoord; k++)
            if ((*of != e || k != t->from_k) && (*of)->coord[k].kind == C_LOAD && at++ == n)
                return k;
    return -1;
}

/* The coordinate of the transpose that is this one of the entry, or of its row; -1: it has none. */
static int carried_as(const Axis *t, const Axis *axis, int k)
{
    const Axis *of;

    for (int n = 0; n < t->ncoord; n++)
        if (lower_carried(t, n, &of) == k && of == axis)
            return n;
    return -1;
}

/* What is as long as the entries has a type that counts them; what they bring keeps its own. */
static void narrow(Prog *p, Axis *t)
{
    Axis *e = t->from;

    for (int n = -1; n < t->ncoord; n++) {
        const Axis *of;
        int k = lower_carried(t, n, &of);
        const Buf *like = k >= 0               ? loop_coord(p, (Axis *)of, k)
                          : e->parent == NULL  ? loop_coord(p, e, t->from_k)
                          : e->extent == X_SEG ? loop_start(p, e)
                                               : NULL;

        if (like != NULL && like->type == T_i32)
            lower_narrow(p, t, n);
    }
}

/* How many positions a dense axis has. */
static Expr *total(Prog *p, const Axis *a)
{
    return a->parent == NULL ? a->size : ir_op2(p, OP_mul, total(p, a->parent), a->size);
}

/* The transpose of an axis by a coordinate: made once. */
static Axis *transpose(Prog *p, Axis *e, int k)
{
    Axis *rows, *t;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from == e && p->axis[i]->from_k == k)
            return p->axis[i];
    rows = open_axis(p, "R", e, NULL);
    rows->extent = X_EXPR;
    rows->size = e->coord[k].bound;
    ir_axis_close(p, rows);
    t = open_axis(p, "T", e, rows);
    t->extent = X_SEG;
    add_coord(p, t, "entry", NULL);
    if (e->parent != NULL)
        add_coord(p, t, "row", total(p, e->parent));
    for (const Axis *of = e; of != NULL; of = also_carried(e, of))
        for (int n = 0; n < of->ncoord; n++)
            if ((of != e || n != k) && of->coord[n].kind == C_LOAD)
                add_coord(p, t, of->coord[n].name, of->coord[n].bound);
    ir_axis_close(p, t);
    t->from = e;
    t->from_k = k;
    narrow(p, t);
    return t;
}

static Var *moved(const Reroot *c, const Var *v)
{
    return v->id < c->nvar ? c->moved[v->id] : NULL;
}

/* Whether the row has its position as its number: a row of a root axis without coordinates. */
static bool has_plain_rows(const Reroot *c)
{
    return c->i->parent == NULL && ir_is_ident(c->i->axis);
}

/* The index that now stands for a variable: the entry and its row are found by their positions.
 * NULL: the variable still does. */
static Expr *moved_index(const Reroot *c, const Var *v)
{
    if (v == c->e)
        return ir_op1(c->p, OP_at, ir_coord(c->p, c->t, 0));
    if (v == c->i && has_plain_rows(c))
        return ir_coord(c->p, c->t, 1);
    if (v == c->i)
        return ir_op1(c->p, OP_at, ir_coord(c->p, c->t, 1));
    return moved(c, v) != NULL ? ir_var_expr(c->p, moved(c, v)) : NULL;
}

/* Ancestors of what has moved are told by it; those of the row are known no other way. */
static Expr *move_load(Reroot *c, Expr *load)
{
    Expr *arg[IR_MAX_RANK];
    const Buf *b = load->buf;

    memcpy(arg, load->arg, (size_t)load->nargs * sizeof(Expr *));
    for (int s = 0; s < load->nargs; s++) {
        Expr *x = load->arg[s], *to = x->op == OP_var ? moved_index(c, x->var) : NULL;

        if (to == NULL || arg[s]->op == OP_none)
            continue;
        arg[s] = to;
        for (int u = 0; u < load->nargs; u++)
            if (ir_is_ancestor(b->slot[u], b->slot[s]))
                arg[u] = ir_none(c->p);
    }
    for (int s = 0; s < load->nargs && c->i != NULL; s++)
        c->bad = c->bad || (arg[s]->op == OP_var && is_above(arg[s]->var, above(c->i)));
    return c->bad ? load : ir_load(c->p, load->buf, arg, load->nargs);
}

static Expr *with_var(Prog *p, Expr *e, Var *v)
{
    return e->op == OP_coord ? ir_coord(p, v, e->k) : ir_of_var(p, (Op)e->op, v);
}

static Expr *move(Prog *p, Expr *e, void *ctx)
{
    Reroot *c = ctx;
    Var *v = e->op == OP_coord || e->op == OP_pos || e->op == OP_loc ? e->var : NULL;
    int n;

    if (e->op == OP_load)
        return move_load(c, e);
    if (v != NULL && moved(c, v) != NULL)
        return with_var(p, e, moved(c, v));
    if (v == NULL || !is_above(v, c->e))
        return e;
    if (v == c->i && (e->op == OP_pos || has_plain_rows(c)))
        return ir_coord(p, c->t, 1); /* of plain rows all three are the row */
    if (v == c->i && e->op == OP_coord && carried_as(c->t->axis, v->axis, e->k) >= 0)
        return ir_coord(p, c->t, carried_as(c->t->axis, v->axis, e->k));
    if (v == c->i && e->op == OP_loc && v->parent == NULL)
        return ir_coord(p, c->t, 1);
    if (v != c->e)
        return c->bad = true, e;
    if (e->op == OP_pos || (e->op == OP_loc && c->i == NULL))
        return ir_coord(p, c->t, 0);
    if (e->op == OP_coord && e->k == c->k)
        return ir_var_value(p, c->r);
    n = e->op == OP_coord ? carried_as(c->t->axis, v->axis, e->k) : -1;
    c->bad = c->bad || n < 0;
    return n < 0 ? e : ir_coord(p, c->t, n);
}

/* Whether the entry and all that it hangs on are bound one right after the other: a loop between
 * them would be outside all rows then, and change the order of the terms. */
static bool are_neighbours(const Stmt *s, const Var *entry)
{
    int b = 0;

    while (s->bind[b] != entry)
        b++;
    for (const Var *up = above(entry); up != NULL; up = above(up))
        if (b-- == 0 || s->bind[b] != up)
            return false;
    return true;
}

/* Whether each variable hangs on another, if on anything. */
static bool is_plain(const Stmt *s)
{
    for (int b = 0; b < s->nbind; b++)
        if (s->bind[b]->parent != NULL && s->bind[b]->parent->op != OP_var)
            return false;
    return true;
}

/* What hangs on the old row or entry now hangs on where the entry was. */
static Var *move_var(Reroot *c, Var *v)
{
    Expr *up = v->parent == NULL ? NULL : moved_index(c, v->parent->var);

    if (up == NULL)
        return v;
    up = ir_index(c->p, v->axis->parent, up);
    return c->moved[v->id] = ir_var(c->p, v->name, v->axis, up);
}

static void move_binds(Reroot *c, const Stmt *s, Stmt *out)
{
    int n = 0;

    c->nvar = c->p->nvar;
    c->moved = arena_array(c->p->arena, c->nvar, sizeof *c->moved);
    out->bind = arena_array(c->p->arena, s->nbind + 1, sizeof *out->bind);
    for (int b = 0; b < s->nbind; b++) {
        if (s->bind[b] == c->e) {
            out->bind[n++] = c->r;
            out->bind[n++] = c->t;
        } else if (!is_above(s->bind[b], c->e)) {
            out->bind[n++] = move_var(c, s->bind[b]);
        }
    }
    out->nbind = n;
}

static void move_assign(Reroot *c, const Assign *a, Stmt *out)
{
    Prog *p = c->p;
    Memo memo = { 0 };
    Assign *to = arena_copy(p->arena, a, sizeof *a);

    to->out = ir_rewrite(p, a->out, move, c, &memo);
    to->value = ir_rewrite(p, a->value, move, c, &memo);
    if (a->guard != NULL)
        to->guard = ir_rewrite(p, a->guard, move, c, &memo);
    to->at = arena_array(p->arena, a->nat, sizeof *to->at);
    for (int n = 0; n < a->nat; n++)
        to->at[n] = (At){ ir_rewrite(p, a->at[n].out, move, c, &memo),
                          ir_rewrite(p, a->at[n].value, move, c, &memo) };
    out->assign = to;
    out->nassign = 1;
}

/* The assign over the transpose's rows; false when it cannot be. */
static bool reroot(Prog *p, const Stmt *s, const Assign *a, Stmt *out)
{
    Expr *x = scatter_index(a, can_sort);
    Reroot c = { .p = p };
    Axis *t;

    if (x == NULL || s->nbind == IR_MAX_BINDS)
        return false;
    c.e = x->var;
    c.i = c.e->parent == NULL ? NULL : c.e->parent->var;
    c.k = x->k;
    if (!are_neighbours(s, c.e) || !is_plain(s))
        return false;
    t = transpose(p, c.e->axis, c.k);
    c.t = t->var;
    c.r = t->parent->var;
    move_binds(&c, s, out);
    move_assign(&c, a, out);
    return !c.bad;
}

typedef struct Gathered {
    const Var *row, *entry;
    int64_t rows, entries; /* bytes of what is read of the row, and of the entry */
    bool *met;             /* by Buf.id */
} Gathered;

static void see_load(Expr *e, void *ctx)
{
    Gathered *g = ctx;

    if (e->op != OP_load || g->met[e->buf->id])
        return;
    g->met[e->buf->id] = true;
    for (int s = 0; s < e->nargs; s++)
        if (e->arg[s]->op == OP_var && (e->arg[s]->var == g->row || e->arg[s]->var == g->entry))
            *(e->arg[s]->var == g->row ? &g->rows : &g->entries) += lower_slot_bytes(e->buf, s);
}

/* The row that all rows of an entry are below. */
static const Var *top_of(const Var *v)
{
    while (v->parent != NULL)
        v = v->parent->var;
    return v;
}

/* Whether a scatter costs less in the order of its rows: each entry reads and writes a row of O,
 * and parts are added up after that.  In the order of what it names it reads rows from anywhere,
 * and its entries a second time if others go over them too. */
static bool stays(Prog *p, const Stmt *s, const Assign *a)
{
    Expr *x = scatter_index(a, can_sort);
    bool sorts = x != NULL;
    Memo met = { 0 };
    Gathered g = { .met = arena_array(p->arena, p->nbuf, sizeof *g.met) };
    int64_t own = 0;

    x = sorts ? x : scatter_index(a, is_nested);
    if (x == NULL || a->op != A_ADD || a->nat > 0 || !ir_type[a->out->buf->type].floats ||
        x->var->parent == NULL || x->var->axis->extent != X_SEG ||
        s->bind[0] != top_of(x->var))
        return false;
    g.row = x->var->parent->var;
    g.entry = x->var;
    for (int n = 0; n < a->out->nargs; n++)
        if (a->out->arg[n] == x)
            own = lower_slot_bytes(a->out->buf, n);
    ir_visit(p, a->value, see_load, &g, &met);
    return own > 0 && (!sorts || g.rows + (s->nassign > 1 ? g.entries : 0) >
                                     p->policy.gather_gain * own);
}

/* Whether iterations of the first variable write different elements. */
static bool is_owned(const Stmt *s, const Assign *a)
{
    return s->nbind > 0 && ir_reach(a, s->bind[0]) == REACH_SPATIAL;
}

typedef struct Stmts {
    Stmt **stmt;
    int n, cap;
} Stmts;

static void add_stmt(Prog *p, Stmts *l, const Stmt *s)
{
    l->stmt = arena_grow(p->arena, l->stmt, l->n, &l->cap, sizeof *l->stmt);
    l->stmt[l->n++] = arena_copy(p->arena, s, sizeof *s);
}

static bool writes(const Stmt *s, const Buf *b)
{
    for (int k = 0; k < s->nassign; k++)
        if (s->assign[k].op != A_INSERT && s->assign[k].out->buf == b)
            return true;
    return false;
}

/* The scatter as a statement of its own; false when it has to stay where it is. */
static bool apart(Prog *p, const Stmt *s, const Assign *a, Stmt *out)
{
    if (!stays(p, s, a))
        return reroot(p, s, a, out);
    out->assign = arena_copy(p->arena, a, sizeof *a);
    out->nassign = 1;
    out->in_order = true;
    return true;
}

/* Assigns that own their rows stay together; scatters go apart, rerooted where that is possible.
 * Those that write one buffer keep their order. */
static void reroot_stmt(Prog *p, const Stmt *s, Stmts *out)
{
    Stmt owned = *s;

    owned.assign = arena_array(p->arena, s->nassign, sizeof *owned.assign);
    owned.nassign = 0;
    for (int k = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];
        Stmt moved = *s;

        if (a->op == A_INSERT || is_owned(s, a) || !apart(p, s, a, &moved)) {
            owned.assign[owned.nassign++] = *a;
            continue;
        }
        if (writes(&owned, a->out->buf)) {
            add_stmt(p, out, &owned);
            owned.assign += owned.nassign;
            owned.nassign = 0;
        }
        add_stmt(p, out, &moved);
    }
    if (owned.nassign > 0)
        add_stmt(p, out, &owned);
}

void lower_transpose(Prog *p)
{
    Stmts all = { 0 };

    for (int i = 0; i < p->nstmt; i++)
        reroot_stmt(p, p->stmt[i], &all);
    p->stmt = all.stmt;
    p->nstmt = p->cap_stmt = all.n;
}
