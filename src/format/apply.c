/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Rewrites programs for a format.  Each statement over the entries of an axis becomes one statement
 * for each part, over the axes of that part.  Coordinates come from the new axes; a buffer over the
 * old axis is read at `@entry`.  Positions without an entry are left out: by the axis, where it
 * stores an outside coordinate for them, otherwise by a guard.  In a format that says `zeros`, a
 * sum of products with one factor over the entries gets a copy of that factor with zeros in it, and
 * runs over all positions.  Needs a program at stage coordinates; gives one that passes ir_check.
 */
#include "format/apply_int.h"

#include <string.h>

typedef struct Apply {
    Prog *p;
    const FmtUse *use;
    FmtSource source;
    FmtMade *made; /* by part */
    Stmt **stmt;   /* of the new program */
    int nstmt, cap;
    int changed;         /* statements that run over the format now */
    Buf ***filled;       /* by part, then Buf.id: the copy with zeros; or NULL */
    const Stmt *from;    /* the statement that is being made anew, */
    const FmtMade *to;   /* over these, */
    const FmtShape *shape;
    int part;
    Var *old[IR_MAX_RANK]; /* with its variables of the old axis, entry first, and those above */
    int nold, nvar;
    Var **moved; /* by Var.id, of nvar: what hangs on those, as it hangs now; or NULL */
} Apply;

static _Noreturn void refuse(const Apply *c, const char *label, const char *what, const char *name)
{
    ir_throw(c->p, ST_CHECK, "%s: over axis %s as %s: %s%s", label, c->source.axis->name,
             c->use->rule->name, what, name);
}

static const char *label_of(const Apply *c)
{
    return c->from->assign[0].label;
}

static int old_place(const Apply *c, const Var *v)
{
    for (int i = 0; i < c->nold; i++)
        if (c->old[i] == v)
            return i;
    return -1;
}

static Expr *entry_of(const Apply *c)
{
    return ir_coord(c->p, c->to->last->var, c->to->last->ncoord - 1);
}

/* A coordinate of the entry, as the new axes have it. */
static Expr *value_of(const Apply *c, const Axis *axis, int k)
{
    int s = 0;
    Axis *a;

    while (c->source.of[s] != axis || c->source.k[s] != k)
        s++;
    a = c->to->axis[c->shape->from_level[s]];
    return ir_coord(c->p, a->var, c->shape->from_k[s]);
}

/* The index that stands for a variable now; NULL: the variable still does. */
static Expr *index_of(const Apply *c, const Var *v)
{
    int i = old_place(c, v);

    if (i < 0)
        return v->id < c->nvar && c->moved[v->id] != NULL ? ir_var_expr(c->p, c->moved[v->id])
                                                          : NULL;
    if (i == 0)
        return ir_op1(c->p, OP_at, entry_of(c));
    if (!ir_is_ident(v->axis))
        refuse(c, label_of(c), "the format does not keep the positions of axis ", v->axis->name);
    return value_of(c, v->axis, 0);
}

/* Ancestors of what has moved are told by it. */
static Expr *move_load(Apply *c, Expr *load)
{
    Expr *arg[IR_MAX_RANK];
    const Buf *b = load->buf;
    bool told[IR_MAX_RANK] = { false };

    memcpy(arg, load->arg, (size_t)load->nargs * sizeof(Expr *));
    for (int s = 0; s < load->nargs; s++) {
        Var *v = load->arg[s]->op == OP_var ? load->arg[s]->var : NULL;
        bool entry = v != NULL && (old_place(c, v) == 0 || (v->id < c->nvar && c->moved[v->id]));

        for (int u = 0; u < load->nargs && entry; u++)
            told[u] = told[u] || ir_is_ancestor(b->slot[u], b->slot[s]);
    }
    for (int s = 0; s < load->nargs; s++) {
        Expr *to = load->arg[s]->op == OP_var && !told[s] ? index_of(c, load->arg[s]->var) : NULL;

        arg[s] = told[s] ? ir_none(c->p) : to != NULL ? to : arg[s];
    }
    return ir_load(c->p, load->buf, arg, load->nargs);
}

static Expr *move(Prog *p, Expr *e, void *ctx)
{
    Apply *c = ctx;
    Var *v = e->op == OP_coord || e->op == OP_pos || e->op == OP_loc ? e->var : NULL;
    int i = v == NULL ? -1 : old_place(c, v);

    if (e->op == OP_load)
        return move_load(c, e);
    if (i < 0 && v != NULL && v->id < c->nvar && c->moved[v->id] != NULL)
        return e->op == OP_coord ? ir_coord(p, c->moved[v->id], e->k)
                                 : ir_of_var(p, (Op)e->op, c->moved[v->id]);
    if (i < 0)
        return e;
    if (e->op == OP_coord)
        return value_of(c, v->axis, e->k);
    if (e->op == OP_pos && i == 0)
        return entry_of(c);
    if (ir_is_ident(v->axis) && (e->op == OP_loc || v->axis->parent == NULL))
        return value_of(c, v->axis, 0);
    if (e->op == OP_loc && i == 0 && v->axis->parent == NULL)
        return entry_of(c);
    refuse(c, label_of(c), "the format does not keep what is asked of variable ", v->name);
}

/* What hangs on the entry, or on what is above it, hangs on where it was. */
static Var *move_var(Apply *c, Var *v)
{
    Memo memo = { 0 };
    Expr *up = v->parent;

    if (up == NULL)
        return v;
    up = up->op == OP_var ? index_of(c, up->var) : ir_rewrite(c->p, up, move, c, &memo);
    if (up == NULL || up == v->parent)
        return v;
    return c->moved[v->id] = ir_var(c->p, v->name, v->axis, ir_index(c->p, v->axis->parent, up));
}

/* The new axes come where the first of the old variables was. */
static void move_binds(Apply *c, Stmt *out)
{
    const Stmt *s = c->from;
    int n = 0;
    bool placed = false;

    if (s->nbind + c->to->n > IR_MAX_BINDS)
        refuse(c, label_of(c), "too many variables", "");
    c->nvar = c->p->nvar;
    c->moved = arena_array(c->p->arena, c->nvar, sizeof *c->moved);
    out->bind = arena_array(c->p->arena, s->nbind + c->to->n, sizeof *out->bind);
    for (int b = 0; b < s->nbind; b++) {
        bool old = old_place(c, s->bind[b]) >= 0;

        for (int l = 0; old && !placed && l < c->to->n; l++)
            out->bind[n++] = c->to->axis[l]->var;
        placed = placed || old;
        if (!old)
            out->bind[n++] = move_var(c, s->bind[b]);
    }
    out->nbind = n;
}

/* Whether positions of the last axis can be without an entry, and nothing but `entry` says so. */
static bool needs_guard(const FmtShape *s)
{
    const FmtAxis *last = &s->level[s->nlevel - 1];

    if (last->loc == NULL)
        return false;
    for (int k = 0; k < last->axis->ncoord; k++)
        if (last->load[k] != NULL && last->bound[k] != NULL && last->axis->flags & AX_PADDED)
            return false;
    return true;
}

static Expr *has_entry(const Apply *c)
{
    return ir_op2(c->p, OP_ge, entry_of(c), ir_int(c->p, 0));
}

typedef struct Factors { /* of a product, as far as they depend on the entry itself */
    const Apply *c;
    int n;
    Expr *only; /* the one that does */
    bool found;
    Memo without; /* products that do not */
} Factors;

static void look_for_entry(Expr *e, void *ctx)
{
    Factors *f = ctx;
    bool var = e->op == OP_var || e->op == OP_pos || e->op == OP_loc;

    f->found = f->found || (var && old_place(f->c, e->var) == 0);
}

/* Counts such factors, to 2: more are no better. */
static void split_product(Factors *f, Expr *e)
{
    Memo met = { 0 };
    int before = f->n;

    if (f->n > 1 || *ir_memo(f->c->p, &f->without, e) != NULL)
        return;
    if (e->op == OP_mul) {
        split_product(f, e->arg[0]);
        split_product(f, e->arg[1]);
        if (f->n == before)
            *ir_memo(f->c->p, &f->without, e) = e;
        return;
    }
    f->found = false;
    ir_visit(f->c->p, e, look_for_entry, f, &met);
    f->n += f->found;
    f->only = f->found ? e : f->only;
}

static bool is_old_axis(const Apply *c, const Axis *a)
{
    return a == c->source.axis || ir_is_ancestor(a, c->source.axis);
}

/* A load whose other indices are of root axes, so that a copy has a place for each. */
static bool can_fill(const Apply *c, const Expr *load)
{
    bool good = load->op == OP_load;

    for (int s = 0; good && s < load->buf->nslot; s++)
        good = is_old_axis(c, load->buf->slot[s]) || load->buf->slot[s]->parent == NULL;
    return good;
}

/* The factor that a sum of products has of the entry, and of nothing else; or NULL. */
static Expr *only_factor(const Apply *c, const Assign *a)
{
    Factors f = { .c = c };
    Memo met = { 0 };

    if (!c->shape->zeros || a->op != A_ADD || a->guard != NULL)
        return NULL;
    ir_visit(c->p, a->out, look_for_entry, &f, &met);
    if (f.found)
        return NULL;
    split_product(&f, a->value);
    return f.n == 1 && can_fill(c, f.only) ? f.only : NULL;
}

static const char *fresh_name(Prog *p, const char *stem, const char *with, bool label)
{
    Text t = { .arena = p->arena };

    text_f(&t, "%.30s_%.24s", stem, with);
    return ir_fresh(p, t.s, label);
}

static void add_stmt(Apply *c, const Stmt *s)
{
    c->stmt = arena_grow(c->p->arena, c->stmt, c->nstmt, &c->cap, sizeof *c->stmt);
    c->stmt[c->nstmt++] = arena_copy(c->p->arena, s, sizeof *s);
}

/* The indices of a copy and of what it copies: the position and the entry, else the same. */
static int fill_indices(Apply *c, Expr *load, Expr **to, Expr **from)
{
    int n = 0;
    bool placed = false;

    for (int s = 0; s < load->buf->nslot; s++) {
        bool old = is_old_axis(c, load->buf->slot[s]);

        from[s] = !old ? load->arg[s]
                  : load->buf->slot[s] == c->source.axis ? ir_op1(c->p, OP_at, entry_of(c))
                                                         : ir_none(c->p);
        if (!old)
            to[n++] = load->arg[s];
        else if (!placed)
            to[n++] = ir_var_expr(c->p, c->to->last->var);
        placed = placed || old;
    }
    return n;
}

static Buf *declare_copy(Apply *c, const Buf *b)
{
    Axis *slot[IR_MAX_RANK];
    bool placed = false;
    Buf copy = { .name = fresh_name(c->p, b->name, c->to->last->var->name, false),
                 .type = b->type,
                 .kind = B_TEMP,
                 .slot = slot };
    Buf *out;

    for (int s = 0; s < b->nslot; s++) {
        bool old = is_old_axis(c, b->slot[s]);

        if (!old || !placed)
            slot[copy.nslot++] = old ? c->to->last : b->slot[s];
        placed = placed || old;
    }
    out = ir_buf(c->p, &copy);
    out->written = true;
    return out;
}

/* What a copy holds: the element of the entry, or 0. */
static Expr *or_zero(const Apply *c, Expr *load)
{
    Expr *zero = ir_is_int(load) ? ir_int(c->p, 0) : ir_real(c->p, 0);

    if (!needs_guard(c->shape))
        return load;
    return ir_node(c->p, OP_select, (Expr *[]){ has_entry(c), load, zero }, 3);
}

/* The statement that copies: over the new axes, then those of the other slots. */
static void add_copy(Apply *c, Buf *to, Expr *load)
{
    Prog *p = c->p;
    Buf *b = load->buf;
    Expr *index[IR_MAX_RANK], *from[IR_MAX_RANK], *each[IR_MAX_RANK];
    Stmt s = { .bind = arena_array(p->arena, IR_MAX_BINDS, sizeof *s.bind), .nassign = 1 };
    Assign *a = arena_alloc(p->arena, sizeof *a);
    int n;

    for (int l = 0; l < c->to->n; l++)
        s.bind[s.nbind++] = c->to->axis[l]->var;
    memcpy(each, load->arg, (size_t)load->nargs * sizeof *each);
    for (int k = 0; k < b->nslot; k++)
        if (!is_old_axis(c, b->slot[k])) {
            Var *v = ir_var(p, ir_fresh(p, "x", false), b->slot[k], NULL);

            s.bind[s.nbind++] = v;
            each[k] = ir_var_expr(p, v);
        }
    n = fill_indices(c, ir_load(p, b, each, b->nslot), index, from);
    *a = (Assign){ .label = fresh_name(p, "fill", to->name, true),
                   .op = A_SET,
                   .out = ir_load(p, to, index, n),
                   .value = or_zero(c, ir_load(p, b, from, b->nslot)) };
    ir_symbol(p, a->label, strlen(a->label))->label = true;
    s.assign = a;
    add_stmt(c, &s);
}

/* The factor at a position: 0 where there is no entry.  One copy serves all statements. */
static Expr *fill(Apply *c, Expr *load)
{
    Buf **known = &c->filled[c->part][load->buf->id];
    Expr *index[IR_MAX_RANK], *from[IR_MAX_RANK];
    int n;

    if (*known == NULL) {
        *known = declare_copy(c, load->buf);
        add_copy(c, *known, load);
    }
    n = fill_indices(c, load, index, from);
    return ir_load(c->p, *known, index, n);
}

/* c.band for a part band of statement c; d.band(c,X) for d(c,X). */
static const char *part_label(const Apply *c, const char *label)
{
    Text t = { .arena = c->p->arena };
    size_t n = strcspn(label, "(");
    Symbol *s;

    if (c->use->nshape == 1)
        return label;
    text_put(&t, label, n);
    text_f(&t, ".%s%s", c->shape->name, label + n);
    s = ir_symbol(c->p, t.s, t.n);
    while (s->label) {
        t.n = n;
        text_f(&t, "_.%s%s", c->shape->name, label + n);
        s = ir_symbol(c->p, t.s, t.n);
        n++;
    }
    s->label = true;
    return s->name;
}

static void move_assign(Apply *c, const Assign *a, Assign *to)
{
    Prog *p = c->p;
    Memo memo = { 0 };
    Expr *factor = only_factor(c, a);

    if (a->op == A_INSERT || a->nat > 0)
        refuse(c, a->label,
               a->op == A_INSERT ? "a statement that inserts keeps its axis"
                                 : "which of equal values wins depends on the order of entries",
               "");
    *to = *a;
    if (factor != NULL)
        *ir_memo(p, &memo, factor) = fill(c, factor);
    to->label = part_label(c, a->label);
    to->out = ir_rewrite(p, a->out, move, c, &memo);
    to->value = ir_rewrite(p, a->value, move, c, &memo);
    if (a->guard != NULL)
        to->guard = ir_rewrite(p, a->guard, move, c, &memo);
    if (factor == NULL && needs_guard(c->shape))
        to->guard = to->guard == NULL ? has_entry(c) : ir_op2(p, OP_and, has_entry(c), to->guard);
}

/* The variable of the axis that a statement binds, with those above; false: it binds none, or not
 * as one entry after the other. */
static bool find_old(Apply *c, const Stmt *s)
{
    Var *v = NULL;

    for (int b = 0; b < s->nbind && v == NULL; b++)
        if (s->bind[b]->axis == c->source.axis)
            v = s->bind[b];
    c->nold = 0;
    for (; v != NULL; v = v->parent->var) {
        c->old[c->nold++] = v;
        if (v->parent == NULL)
            return true;
        if (v->parent->op != OP_var)
            return false;
    }
    return false;
}

static void apply_part(Apply *c, const Stmt *s, int part)
{
    Stmt out = *s;

    c->from = s;
    c->part = part;
    c->to = &c->made[part];
    c->shape = &c->use->shape[part];
    c->p->at = s->place;
    move_binds(c, &out);
    out.assign = arena_array(c->p->arena, s->nassign, sizeof *out.assign);
    for (int k = 0; k < s->nassign; k++)
        move_assign(c, &s->assign[k], &out.assign[k]);
    add_stmt(c, &out);
}

static void make_parts(Apply *c)
{
    int n = c->use->nshape;

    c->made = arena_array(c->p->arena, n, sizeof *c->made);
    c->filled = arena_array(c->p->arena, n, sizeof *c->filled);
    for (int i = 0; i < n; i++) {
        c->filled[i] = arena_array(c->p->arena, c->p->nbuf, sizeof **c->filled);
        fmt_make_axes(c->p, c->use, i, &c->source, &c->made[i]);
    }
}

void fmt_apply(Prog *p, Axis *e, const char *use)
{
    Apply c = { .p = p };

    p->at = (Place){ 0 };
    if (p->stage != STAGE_COORDINATES)
        ir_throw(p, ST_CHECK, "a format is for a program at stage coordinates, and %s is at %s",
                 p->name, ir_stage[p->stage]);
    if (e->name == NULL)
        ir_throw(p, ST_CHECK, "a format is for an axis that has a name");
    c.use = fmt_use(p->arena, use);
    fmt_sources(p, e, &c.source);
    if (c.source.n != c.use->rule->ncoord)
        ir_throw(p, ST_CHECK,
                 "format %s is for entries with %d coordinates, but those of %s have %d",
                 c.use->rule->name, c.use->rule->ncoord, e->name, c.source.n);
    ir_judge_once(p); /* the parts of a statement have its verdict */
    make_parts(&c);
    for (int i = 0; i < p->nstmt; i++) {
        bool over = find_old(&c, p->stmt[i]);

        for (int k = 0; k < c.use->nshape && over; k++)
            apply_part(&c, p->stmt[i], k);
        if (!over)
            add_stmt(&c, p->stmt[i]);
        c.changed += over;
    }
    if (c.changed == 0)
        ir_throw(p, ST_CHECK, "no statement runs over the entries of axis %s", e->name);
    p->stmt = c.stmt;
    p->nstmt = c.nstmt;
    p->cap_stmt = c.cap;
}
