/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions: typed, checked and interned as they are made, so that no ill-typed node exists.
 * The resolution of an access's indices (entry, coordinate, position) happens here. */
#include "ir/ir.h"
#include "ir/ir_int.h"
#include "ir/loop.h"

#include <math.h>
#include <string.h>

bool ir_is_int(Expr *e)
{
    return e->type == T_i64;
}

bool ir_is_float(Expr *e)
{
    return ir_type[e->type].floats;
}

Type ir_promote(Type a, Type b)
{
    return a > b ? a : b;
}

/* The live member of the union as bits; objects by their number, never by address. */
static uint64_t payload(Expr *e)
{
    switch (e->op) {
    case OP_size: return (uint64_t)e->size->id;
    case OP_var:
    case OP_coord:
    case OP_pos:
    case OP_loc: return (uint64_t)e->var->id;
    case OP_count:
    case OP_find:
    case OP_above:
    case OP_row: return (uint64_t)e->axis->id;
    case OP_cell:
    case OP_load: return (uint64_t)e->buf->id;
    case OP_local: return (uint64_t)e->local->id;
    default: return (uint64_t)e->i;
    }
}

static uint64_t node_hash(Expr *e)
{
    uint64_t h = hash_int(e->op, payload(e));

    h = hash_int(h, (uint64_t)e->k);
    for (int i = 0; i < e->nargs; i++)
        h = hash_int(h, e->arg[i]->id);
    return h;
}

static bool node_equal(Expr *a, Expr *b)
{
    return a->op == b->op && a->k == b->k && a->nargs == b->nargs && payload(a) == payload(b) &&
           (a->nargs == 0 || memcmp(a->arg, b->arg, a->nargs * sizeof *a->arg) == 0);
}

static uint32_t *find_slot(const Prog *p, Expr *e)
{
    for (uint64_t at = node_hash(e);; at++) {
        uint32_t *slot = &p->table[at & (p->cap_table - 1)];

        if (*slot == 0 || node_equal(p->expr[*slot - 1], e))
            return slot;
    }
}

/* Makes the table anew, with room for twice the expressions. */
void ir_reindex(Prog *p)
{
    for (p->cap_table = 256; p->cap_table <= (uint32_t)p->nexpr * 2;)
        p->cap_table *= 2;
    p->table = arena_array(p->arena, p->cap_table, sizeof *p->table);
    for (int i = 0; i < p->nexpr; i++)
        *find_slot(p, p->expr[i]) = (uint32_t)i + 1;
}

static void measure_below(struct Expr *e, Expr *below)
{
    if (below->depth >= e->depth)
        e->depth = (uint16_t)(below->depth + 1);
}

/* a + b + c nests nothing: the left operand stands bare; so do the parts of an index. */
static int nest_of(const struct Expr *e, int i)
{
    int prec = ir_precedence((Op)e->op);
    bool bare = i == 0 && prec < P_UNARY && ir_precedence((Op)e->arg[i]->op) >= prec;

    return e->arg[i]->nest + (e->type != T_none && !bare);
}

static void measure(struct Expr *e)
{
    bool var = e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc;

    e->depth = e->nest = 0;
    e->tree = 1;
    if (var && e->var->parent != NULL)
        measure_below(e, e->var->parent);
    for (int i = 0; i < e->nargs; i++) {
        uint32_t more = e->arg[i]->tree;

        measure_below(e, e->arg[i]);
        if (nest_of(e, i) > e->nest)
            e->nest = (uint16_t)nest_of(e, i);
        e->tree = more > UINT32_MAX - e->tree ? UINT32_MAX : e->tree + more;
    }
}

/* The one node equal to *proto: the old one, or a copy of *proto with its arguments. */
Expr *ir_intern(Prog *p, struct Expr proto)
{
    uint32_t *slot;
    struct Expr *e;

    measure(&proto);
    if (proto.depth > IR_MAX_DEPTH)
        ir_throw(p, ST_LIMIT, "an expression more than %d operators deep; use temporaries",
                 IR_MAX_DEPTH);
    if ((uint32_t)p->nexpr * 2 >= p->cap_table)
        ir_reindex(p);
    slot = find_slot(p, &proto);
    if (*slot != 0)
        return p->expr[*slot - 1];
    if (p->nexpr >= IR_MAX_NODES)
        ir_throw(p, ST_LIMIT, "more than %d expressions in one program", IR_MAX_NODES);
    proto.id = (uint32_t)p->nexpr;
    if (proto.nargs > 0)
        proto.arg = arena_copy(p->arena, proto.arg, proto.nargs * sizeof *proto.arg);
    e = arena_copy(p->arena, &proto, sizeof proto);
    p->expr = arena_grow(p->arena, p->expr, p->nexpr, &p->cap_expr, sizeof(Expr *));
    p->expr[p->nexpr++] = e;
    *slot = (uint32_t)p->nexpr;
    return e;
}

Expr *ir_int(Prog *p, int64_t v)
{
    return ir_intern(p, (struct Expr){ .op = OP_int, .type = T_i64, .i = v });
}

Expr *ir_real(Prog *p, double v)
{
    return ir_intern(
        p, (struct Expr){ .op = OP_real, .type = T_real, .f = isnan(v) ? (double)NAN : v });
}

Expr *ir_none(Prog *p)
{
    return ir_intern(p, (struct Expr){ .op = OP_none, .type = T_none });
}

Expr *ir_size_expr(Prog *p, Size *s)
{
    return ir_intern(p, (struct Expr){ .op = OP_size, .type = T_i64, .size = s });
}

Expr *ir_var_expr(Prog *p, Var *v)
{
    return ir_intern(p, (struct Expr){ .op = OP_var, .type = T_none, .var = v });
}

Expr *ir_of_var(Prog *p, Op op, Var *v)
{
    return ir_intern(p, (struct Expr){ .op = (uint8_t)op, .type = T_i64, .var = v });
}

Expr *ir_coord(Prog *p, Var *v, int k)
{
    return ir_intern(p, (struct Expr){ .op = OP_coord, .type = T_i64, .var = v, .k = k });
}

Expr *ir_count(Prog *p, Axis *a)
{
    return ir_intern(p, (struct Expr){ .op = OP_count, .type = T_i64, .axis = a });
}

Expr *ir_var_value(Prog *p, Var *v)
{
    const Coord *c = v->axis->coord;

    if (v->axis->ncoord == 1 && c->name == NULL)
        return ir_coord(p, v, 0);
    if (v->axis->ncoord == 0)
        ir_throw(p, ST_CHECK, "%s has no value yet: axis %s is being declared", v->name,
                 v->axis->name);
    ir_throw(p, ST_CHECK,
             "%s has no value of its own: axis %s names its coordinate%s; write %s(%s), pos(%s) or "
             "loc(%s)",
             v->name, v->axis->name, v->axis->ncoord > 1 ? "s" : "", c->name, v->name, v->name,
             v->name);
}

static _Noreturn void wrong_type(Prog *p, const OpInfo *op, const char *wants, Expr *got)
{
    ir_throw(p, ST_CHECK, "%s wants %s, not %s", op->text, wants,
             got->type == T_none ? "an index" : ir_type[got->type].name);
}

static Type widest_number(Prog *p, const OpInfo *op, Expr *const *arg, int from, int n)
{
    Type t = T_i64;

    for (int i = from; i < n; i++) {
        if (arg[i]->type < T_i64)
            wrong_type(p, op, "numbers", arg[i]);
        t = ir_promote(t, arg[i]->type);
    }
    return t;
}

static void all_of_type(Prog *p, const OpInfo *op, Expr *const *arg, int n, Type t,
                        const char *wants)
{
    for (int i = 0; i < n; i++)
        if (arg[i]->type != t)
            wrong_type(p, op, wants, arg[i]);
}

static Type result_type(Prog *p, Op op, Expr *const *arg, int n)
{
    const OpInfo *info = &ir_op[op];

    switch (info->result) {
    case R_BOOL:
        if (op == OP_stored && arg[0]->op != OP_load)
            ir_throw(p, ST_CHECK, "stored wants an access, as in stored(A[i, j])");
        widest_number(p, info, arg, 0, n);
        return T_bool;
    case R_LOGIC: all_of_type(p, info, arg, n, T_bool, "conditions"); return T_bool;
    case R_SAME: return widest_number(p, info, arg, 0, n);
    case R_FLOAT: return ir_promote(T_real, widest_number(p, info, arg, 0, n));
    case R_SELECT:
        all_of_type(p, info, arg, 1, T_bool, "a condition first");
        return widest_number(p, info, arg, 1, n);
    case R_F32: return widest_number(p, info, arg, 0, n), T_f32;
    case R_F64: return widest_number(p, info, arg, 0, n), T_f64;
    default: /* R_INT: mod; R_NONE: at, tuple */
        all_of_type(p, info, arg, n, T_i64, "integers");
        return info->result == R_INT ? T_i64 : T_none;
    }
}

/* -x of a literal is a literal: so negative numbers read back as they were. */
static Expr *negative_literal(Prog *p, Expr *e)
{
    if (e->op == OP_int && e->i != INT64_MIN)
        return ir_int(p, -e->i);
    if (e->op == OP_real)
        return ir_real(p, -e->f);
    return NULL;
}

Expr *ir_node(Prog *p, Op op, Expr *const *arg, int n)
{
    Expr *literal;

    if (ir_op[op].nargs >= 0 && n != ir_op[op].nargs)
        ir_throw(p, ST_CHECK, "%s takes %d argument%s, not %d", ir_op[op].text, ir_op[op].nargs,
                 ir_op[op].nargs == 1 ? "" : "s", n);
    if (n > IR_MAX_RANK)
        ir_throw(p, ST_LIMIT, "%s of more than %d values", ir_op[op].text, IR_MAX_RANK);
    if (op == OP_neg && (literal = negative_literal(p, arg[0])) != NULL)
        return literal;
    return ir_intern(p, (struct Expr){ .op = (uint8_t)op,
                                       .nargs = (uint16_t)n,
                                       .arg = arg,
                                       .type = (uint8_t)result_type(p, op, arg, n) });
}

Expr *ir_op1(Prog *p, Op op, Expr *a)
{
    return ir_node(p, op, &a, 1);
}

Expr *ir_op2(Prog *p, Op op, Expr *a, Expr *b)
{
    return ir_node(p, op, (Expr *[]){ a, b }, 2);
}

/* The variable whose own entry an index may mean, or NULL. */
static Var *entry_of(Expr *index)
{
    if (index->op == OP_var)
        return index->var;
    if (index->op == OP_coord && index->var->axis->coord[index->k].name == NULL)
        return index->var;
    return NULL;
}

/* An entry variable tells where it hangs: fills the ancestors that were left out. */
static void fill_ancestors(const Buf *b, Expr **ix, int k)
{
    Var *v = entry_of(ix[k]);
    int up = ir_parent_place(b, k);

    while (v != NULL && v->axis == b->full[k] && up >= 0 && ix[up]->op == OP_none) {
        ix[up] = v->parent;
        k = up;
        v = entry_of(ix[k]);
        up = ir_parent_place(b, k);
    }
}

static int places_below(const Buf *b, Expr **ix, int k, Op op)
{
    int n = 0;

    for (int j = k + 1; j < b->nfull; j++)
        n += ix[j]->op == op && ir_is_ancestor(b->full[k], b->full[j]);
    return n;
}

static const char *axis_text(Axis *a)
{
    return a->name != NULL ? a->name : "a dense slot";
}

static bool is_listed(const Buf *b, int k)
{
    for (int s = 0; s < b->nslot; s++)
        if (b->place_in_full[s] == k)
            return true;
    return false;
}

static void check_left_out(Prog *p, const Buf *b, Expr **ix, int k)
{
    const char *axis = axis_text(b->full[k]);

    if (places_below(b, ix, k, OP_at) > 0)
        return;
    if (is_listed(b, k))
        ir_throw(p, ST_CHECK,
                 "%s: the index of axis %s is left out, and no index below determines it; give it",
                 b->name, axis);
    ir_throw(p, ST_CHECK,
             "%s is declared without axis %s, so an index has to tell the place in %s: use the "
             "variable of its axis or @position, or declare %s[%s, ...]",
             b->name, axis, axis, b->name, axis);
}

static void check_position(Prog *p, const Buf *b, Expr **ix, int k)
{
    for (int up = ir_parent_place(b, k); up >= 0; up = ir_parent_place(b, up))
        if (ix[up]->op != OP_none)
            ir_throw(p, ST_CHECK,
                     "%s: @ gives the position in %s over all parents; leave the index of %s out",
                     b->name, axis_text(b->full[k]), axis_text(b->full[up]));
}

static void check_search(Prog *p, const Buf *b, Expr **ix, int k, int nvalue)
{
    Axis *x = b->full[k];
    int up = ir_parent_place(b, k);

    if (nvalue != x->ncoord)
        ir_throw(p, ST_CHECK, "%s: axis %s has %d coordinate%s and the index gives %d; write %s",
                 b->name, axis_text(x), x->ncoord, x->ncoord == 1 ? "" : "s", nvalue,
                 x->ncoord > 1 ? "(a, b) with one value for each" : "one value");
    if (!ir_is_ident(x) && !(x->flags & AX_UNIQUE))
        ir_throw(p, ST_CHECK,
                 "%s: finding an entry of axis %s by its coordinate needs `unique`; declare it "
                 "(sum duplicates first), or use the axis' own variable",
                 b->name, axis_text(x));
    if (up >= 0 && ix[up]->op == OP_none)
        ir_throw(p, ST_CHECK,
                 "%s: an index of axis %s by value needs to know its parent; give the index of %s",
                 b->name, axis_text(x), axis_text(b->full[up]));
}

/* One place, all places before it resolved: the entry, a position, or a coordinate. */
static Expr *resolve(Prog *p, const Buf *b, Expr **ix, int k)
{
    Expr *e = ix[k];
    Var *v = entry_of(e);
    int up = ir_parent_place(b, k);

    if (e->tree > IR_MAX_INDEX)
        ir_throw(p, ST_LIMIT,
                 "%s: an index of more than %d operators; compute it into an integer buffer",
                 b->name, IR_MAX_INDEX);
    if (e->op == OP_none)
        return check_left_out(p, b, ix, k), e;
    if (e->op == OP_at)
        return check_position(p, b, ix, k), e;
    if (v != NULL && v->axis == b->full[k] && (up < 0 || ix[up] == v->parent))
        return ir_var_expr(p, v);
    if (e->op == OP_tuple)
        return check_search(p, b, ix, k, e->nargs), e;
    if (e->op == OP_var)
        e = ir_var_value(p, v);
    if (e->type != T_i64)
        ir_throw(p, ST_CHECK, "%s: an index is an integer, not %s", b->name, ir_type[e->type].name);
    check_search(p, b, ix, k, 1);
    return e;
}

/* Spreads the given indices over the slots, then over b->full: OP_none where none was given. */
static void spread(Prog *p, const Buf *b, Expr *const *index, int n, Expr **ix)
{
    int given = 0, leaves = 0;
    bool is_leaf[IR_MAX_RANK];

    for (int s = 0; s < b->nslot; s++) {
        is_leaf[s] = true;
        for (int t = s + 1; t < b->nslot; t++)
            is_leaf[s] = is_leaf[s] && !ir_is_ancestor(b->slot[s], b->slot[t]);
        leaves += is_leaf[s];
    }
    if (n != b->nslot && n != leaves)
        ir_throw(p, ST_CHECK, "%s has %d slot%s and the access gives %d ind%s", b->name, b->nslot,
                 b->nslot == 1 ? "" : "s", n, n == 1 ? "ex" : "ices");
    for (int k = 0; k < b->nfull; k++)
        ix[k] = ir_none(p);
    for (int s = 0; s < b->nslot; s++)
        if (n == b->nslot || is_leaf[s])
            ix[b->place_in_full[s]] = index[given++];
}

static void resolve_all(Prog *p, const Buf *b, Expr *const *index, int n, Expr **ix)
{
    spread(p, b, index, n, ix);
    for (int k = 0; k < b->nfull; k++)
        fill_ancestors(b, ix, k);
    for (int k = 0; k < b->nfull; k++)
        ix[k] = resolve(p, b, ix, k);
}

Expr *ir_load(Prog *p, Buf *b, Expr *const *index, int n)
{
    Expr *ix[IR_MAX_FULL], *arg[IR_MAX_RANK];

    resolve_all(p, b, index, n, ix);
    for (int s = 0; s < b->nslot; s++)
        arg[s] = ix[b->place_in_full[s]];
    return ir_intern(p, (struct Expr){ .op = OP_load,
                                       .buf = b,
                                       .nargs = (uint16_t)b->nslot,
                                       .arg = arg,
                                       .type = b->rows ? T_real : ir_type[b->type].value });
}

void ir_full_index(Prog *p, Expr *load, Expr **out)
{
    const Buf *b = load->buf;

    for (int k = 0; k < b->nfull; k++)
        out[k] = ir_none(p);
    for (int s = 0; s < b->nslot; s++)
        out[b->place_in_full[s]] = load->arg[s];
    for (int k = 0; k < b->nfull; k++)
        fill_ancestors(b, out, k);
}

Expr *ir_index(Prog *p, Axis *a, Expr *index)
{
    Axis *full[IR_MAX_FULL];
    Expr *ix[IR_MAX_FULL];
    int at;
    Buf alone = {
        .name = axis_text(a), .nslot = 1, .slot = &a, .full = full, .place_in_full = &at
    };
    Var *v = entry_of(index);

    if (a->parent != NULL && index->op != OP_at && (v == NULL || v->axis != a))
        ir_throw(p, ST_CHECK,
                 "axis %s hangs under %s, so a value does not tell its position; use a variable of "
                 "%s or @position",
                 a->name, a->parent->name, a->name);
    alone.nfull = ir_full(p, &alone);
    resolve_all(p, &alone, &index, 1, ix);
    return ix[at];
}

Expr *ir_row(Prog *p, Axis *a, Expr *parent)
{
    if (a->extent != X_BUILT)
        ir_throw(p, ST_CHECK,
                 "|= inserts into a built axis, and %s is not one; declare it as `%s = built : "
                 "...`",
                 a->name, a->name);
    if ((a->parent == NULL) != (parent->op == OP_none))
        ir_throw(p, ST_CHECK,
                 a->parent == NULL ? "axis %s has no parent; write %s |= ..."
                                   : "say where: %s(i) |= ... under the parent of %s",
                 a->name, a->name);
    if (a->parent != NULL)
        parent = ir_index(p, a->parent, parent);
    return ir_intern(
        p, (struct Expr){ .op = OP_row, .type = T_none, .axis = a, .nargs = 1, .arg = &parent });
}
