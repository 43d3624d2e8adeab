/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Axes: an extent rule and coordinate rules, each checked when the axis is closed. */
#include "ir/ir.h"
#include "ir/ir_int.h"

#include <string.h>

bool ir_is_ancestor(const Axis *up, const Axis *down)
{
    for (down = down->parent; down != NULL; down = down->parent)
        if (down == up)
            return true;
    return false;
}

bool ir_is_ident(const Axis *a)
{
    return a->ncoord == 1 && a->coord[0].kind == C_IDENT;
}

bool ir_is_dense(const Axis *a)
{
    while (a != NULL && a->extent == X_EXPR && !(a->flags & AX_PADDED))
        a = a->parent;
    return a == NULL;
}

int ir_find_coord(const Axis *a, const char *name)
{
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].name != NULL && strcmp(a->coord[k].name, name) == 0)
            return k;
    return -1;
}

bool ir_int_op(Op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case OP_add: return !int_add(a, b, out);
    case OP_sub: return !int_sub(a, b, out);
    case OP_mul: return !int_mul(a, b, out);
    case OP_div: return !int_div(a, b, out);
    case OP_mod: return !int_mod(a, b, out);
    case OP_min: return *out = a < b ? a : b, true;
    case OP_max: return *out = a > b ? a : b, true;
    default: return false;
    }
}

bool ir_const_int(Expr *e, int64_t *out)
{
    int64_t a, b;

    if (e->op == OP_int)
        return *out = e->i, true;
    if (e->op < OP_neg || e->op > OP_mod || !ir_const_int(e->arg[0], &a))
        return false;
    if (e->op == OP_neg)
        return !int_sub(0, a, out);
    if (!ir_const_int(e->arg[1], &b))
        return false;
    return ir_int_op((Op)e->op, a, b, out);
}

int64_t ir_const_total(const Axis *a)
{
    int64_t up = a->parent == NULL ? 1 : ir_const_total(a->parent), n;

    if (a->extent == X_TABLE)
        return a->starts[a->n];
    if (a->extent == X_ONE)
        return up;
    if (a->extent != X_EXPR || up < 0 || !ir_const_int(a->size, &n) || n < 0 || int_mul(up, n, &n))
        return -1;
    return n;
}

Axis *ir_axis_open(Prog *p, const char *name, Axis *parent)
{
    Symbol *sym = ir_new_name(p, name, 'A'), *var;
    Axis *a = arena_alloc(p->arena, sizeof *a);
    int depth = 1;

    ir_refuse_taken(p, sym);
    var = ir_new_name(p, ir_lower_case(p, name), 'a');
    if (var->of_var != NULL)
        ir_throw(p, ST_CHECK, "axes %s and %s would have the same variable %s; rename one",
                 var->of_var->name, name, var->name);
    if (var->var != NULL)
        ir_throw(p, ST_CHECK,
                 "axis %s: a statement before has a variable named %s; rename one, or declare the "
                 "axis first",
                 name, var->name);
    for (Axis *up = parent; up != NULL; up = up->parent)
        depth++;
    if (depth > IR_MAX_RANK)
        ir_throw(p, ST_LIMIT, "axis %s: more than %d axes one under another", name, IR_MAX_RANK);
    *a = (Axis){ .name = sym->name, .parent = parent, .place = p->at };
    a->coord = arena_array(p->arena, IR_MAX_RANK, sizeof *a->coord);
    a->var = ir_var(p, var->name, a, parent == NULL ? NULL : ir_var_expr(p, parent->var));
    var->of_var = a;
    return a;
}

/* A coordinate's bare name is its value inside the declaration, so it may not mean another thing
 * there. */
static void check_coord_name(Prog *p, const Axis *a, const Symbol *s)
{
    bool var = s->of_var != NULL && (s->of_var == a || ir_is_ancestor(s->of_var, a));

    if (var || s->size != NULL)
        ir_throw(p, ST_CHECK, "axis %s: a coordinate cannot have the name of the %s %s; rename it",
                 a->name, var ? "variable" : "size", s->name);
    if (strcmp(s->name, "start") == 0)
        ir_throw(p, ST_CHECK,
                 "axis %s: a coordinate cannot be named start; %s.start is where the entries of "
                 "each parent begin",
                 a->name, a->name);
    if (ir_find_coord(a, s->name) >= 0)
        ir_throw(p, ST_CHECK, "axis %s has two coordinates named %s", a->name, s->name);
}

void ir_axis_coord(Prog *p, Axis *a, const Coord *c)
{
    Symbol *sym;

    if (a->ncoord == IR_MAX_RANK)
        ir_throw(p, ST_LIMIT, "axis %s: more than %d coordinates", a->name, IR_MAX_RANK);
    a->coord[a->ncoord] = *c;
    if (c->name != NULL) {
        sym = ir_new_name(p, c->name, 'a');
        check_coord_name(p, a, sym);
        a->coord[a->ncoord].name = sym->name;
    }
    if (a->ncoord > 0 && (c->name == NULL || a->coord[0].name == NULL))
        ir_throw(p, ST_CHECK, "axis %s has several coordinates; give each a name", a->name);
    a->ncoord++;
}

/* An extent or a bound may depend on sizes and on nothing that varies inside a run. */
static void check_of_sizes(Prog *p, const Axis *a, const char *what, Expr *e)
{
    const char *name = a->name != NULL ? a->name : "of a slot";

    if (e->tree > IR_MAX_INDEX)
        ir_throw(p, ST_LIMIT,
                 "axis %s: the %s has more than %d operators; give it a size of its own", name,
                 what, IR_MAX_INDEX);
    if (e->type != T_i64)
        ir_throw(p, ST_CHECK, "axis %s: the %s is an integer expression of sizes", name, what);
    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc ||
        e->op == OP_load || e->op == OP_count || e->op > OP_mod)
        ir_throw(p, ST_CHECK, "axis %s: the %s may use sizes and + - * / %% only", name, what);
    for (int i = 0; i < e->nargs; i++)
        check_of_sizes(p, a, what, e->arg[i]);
}

static void close_table(Prog *p, Axis *a)
{
    int64_t up = a->parent == NULL ? -1 : ir_const_total(a->parent);
    int64_t *starts = arena_array(p->arena, a->n + 1, sizeof *starts);

    if (a->parent == NULL)
        ir_throw(p, ST_CHECK, "axis %s: a table of extents needs a parent, as in %s(I) = {1, 3}",
                 a->name, a->name);
    if (up != a->n)
        ir_throw(p, ST_CHECK,
                 up < 0 ? "axis %s: a table of %lld extents needs a parent of constant "
                          "size, and %s is not"
                        : "axis %s gives %lld extents, but its parent %s has %lld "
                          "positions",
                 a->name, (long long)a->n, a->parent->name, (long long)up);
    for (int64_t i = 0; i < a->n; i++)
        if (a->table[i] < 0 || int_add(starts[i], a->table[i], &starts[i + 1]))
            ir_throw(p, ST_CHECK, "axis %s: %lld is not an extent", a->name,
                     (long long)a->table[i]);
    a->starts = starts;
}

static bool has_built_ancestor(const Axis *a)
{
    for (a = a->parent; a != NULL; a = a->parent)
        if (a->extent == X_BUILT)
            return true;
    return false;
}

static void check_extent(Prog *p, Axis *a)
{
    if (a->extent == X_EXPR)
        check_of_sizes(p, a, "extent", a->size);
    else if (a->extent == X_TABLE)
        close_table(p, a);
    else if (a->extent == X_SEG && has_built_ancestor(a))
        ir_throw(p, ST_CHECK,
                 "axis %s hangs under a built axis, whose size is known only during a run, and "
                 "cannot be "
                 "seg",
                 a->name);
    else if (a->extent != X_BUILT && a->parent == NULL)
        ir_throw(p, ST_CHECK, "axis %s: %s needs a parent, as in %s(I) = %s", a->name,
                 a->extent == X_SEG ? "seg" : "one", a->name, a->extent == X_SEG ? "seg" : "one");
}

/* An expression coordinate may use what is known when the position is: see docs/ir.md. */
static void check_coord_expr(Prog *p, const Axis *a, int k, Expr *e)
{
    Var *v = e->op == OP_coord || e->op == OP_loc || e->op == OP_pos ? e->var : NULL;
    bool good = e->type == T_i64 && e->op != OP_load && e->op != OP_count && e->op <= OP_mod;

    if (e->tree > IR_MAX_INDEX)
        ir_throw(p, ST_LIMIT, "axis %s: coordinate %s has more than %d operators; load it instead",
                 a->name, a->coord[k].name, IR_MAX_INDEX);
    if (v != NULL && v->axis == a)
        good = good && (e->op == OP_loc || (e->op == OP_coord && e->k < k));
    else if (v != NULL)
        good = good && ir_is_ancestor(v->axis, a) && v == v->axis->var;
    if (!good)
        ir_throw(p, ST_CHECK,
                 "axis %s: coordinate %s may use its own position, earlier coordinates, those of "
                 "its ancestors, sizes and + - * / %% only",
                 a->name, a->coord[k].name);
    for (int i = 0; i < e->nargs; i++)
        check_coord_expr(p, a, k, e->arg[i]);
}

static void check_coord(Prog *p, const Axis *a, int k)
{
    const Coord *c = &a->coord[k];
    int64_t total = ir_const_total(a);

    if (c->name == NULL && (c->kind == C_EXPR || (c->kind == C_IDENT && c->bound != NULL)))
        ir_throw(p, ST_CHECK,
                 "axis %s: a coordinate that is an expression or has a bound of its own needs a "
                 "name",
                 a->name);
    if (c->bound != NULL)
        check_of_sizes(p, a, "bound", c->bound);
    if (c->kind == C_EXPR)
        check_coord_expr(p, a, k, c->expr);
    if (c->kind == C_TABLE && c->n != total)
        ir_throw(p, ST_CHECK,
                 total < 0 ? "axis %s: a table of %lld coordinates needs an axis of "
                             "constant size"
                           : "axis %s: a table of %lld coordinates, but the axis has "
                             "%lld positions",
                 a->name, (long long)c->n, (long long)total);
    if (c->kind == C_LOAD && a->extent != X_BUILT && has_built_ancestor(a))
        ir_throw(p, ST_CHECK,
                 "axis %s hangs under a built axis, whose size is known only during a run, and "
                 "cannot load "
                 "coordinates",
                 a->name);
    if (c->once && (c->kind != C_LOAD || a->extent == X_BUILT || (a->flags & AX_PADDED)))
        ir_throw(p, ST_CHECK,
                 "axis %s: once is said of a coordinate that is loaded, of an axis that is neither "
                 "padded nor built",
                 a->name);
    if (a->extent == X_BUILT && (c->kind != C_LOAD || c->bound == NULL))
        ir_throw(p, ST_CHECK,
                 "axis %s is built by the program: each coordinate is a load with a bound, as in "
                 "`built : load < n`",
                 a->name);
}

static void add_axis(Prog *p, Axis *a)
{
    a->id = p->naxis;
    p->axis = arena_grow(p->arena, p->axis, p->naxis, &p->cap_axis, sizeof *p->axis);
    p->axis[p->naxis++] = a;
}

void ir_axis_close(Prog *p, Axis *a)
{
    bool bounded = false;

    check_extent(p, a);
    if (a->ncoord == 0 && a->extent != X_BUILT)
        a->ncoord = 1; /* ident, unnamed: all zero */
    if (a->ncoord == 0)
        ir_throw(p, ST_CHECK,
                 "axis %s is built by the program and needs a coordinate to insert, as in `built : "
                 "load < n`",
                 a->name);
    for (int k = 0; k < a->ncoord; k++) {
        check_coord(p, a, k);
        bounded = bounded || a->coord[k].bound != NULL;
    }
    if ((a->flags & AX_PADDED) && !bounded)
        ir_throw(p, ST_CHECK,
                 "axis %s: padded skips coordinates outside their bound, and none has a bound; "
                 "write `: load < n padded`",
                 a->name);
    if (a->extent == X_BUILT)
        a->flags |= AX_SORTED | AX_UNIQUE;
    add_axis(p, a);
    ir_symbol(p, a->name, strlen(a->name))->axis = a;
    p->decl = arena_grow(p->arena, p->decl, p->ndecl, &p->cap_decl, sizeof *p->decl);
    p->decl[p->ndecl++] = (Decl){ .axis = a };
}

/* The entry of p->dense for an extent: the anonymous axes by the number of their expression. */
static Axis **dense_slot(Prog *p, Expr *extent)
{
    if ((int)extent->id >= p->ndense) {
        Axis **old = p->dense;
        int n = p->ndense;

        p->ndense = p->nexpr * 2;
        p->dense = arena_array(p->arena, p->ndense, sizeof *p->dense);
        if (n > 0)
            memcpy(p->dense, old, (size_t)n * sizeof *old);
    }
    return &p->dense[extent->id];
}

void ir_set_dense(Prog *p, Expr *extent, Axis *a)
{
    *dense_slot(p, extent) = a;
}

Axis *ir_dense(Prog *p, Expr *extent)
{
    Axis **slot = dense_slot(p, extent);

    if (*slot == NULL) {
        *slot = arena_alloc(p->arena, sizeof **slot);
        **slot = (Axis){ .extent = X_EXPR, .size = extent, .ncoord = 1, .place = p->at };
        (*slot)->coord = arena_alloc(p->arena, sizeof *(*slot)->coord);
        check_of_sizes(p, *slot, "extent", extent);
        add_axis(p, *slot);
    }
    return *slot;
}
