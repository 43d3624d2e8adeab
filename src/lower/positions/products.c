/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Gives products of blocks statements of their own, which later passes block in registers.  Of a
 * gradient
 *
 *     for p, l, bi, bj, v:
 *         U[p, l, bi, bj] += G[p, bi, v] * V[j(l), bj, v]
 *         W[j(l), bj, v] += G[p, bi, v] * A[p, l, bi, bj]
 *
 * each assignment is a product of matrices with a block of constant size: rows m, which only one
 * operand has, terms k, which are summed, and columns n, the last index of the result.  It becomes
 *
 *     for b, bj, v: VT[b, v, bj] = V[b, bj, v]
 *     for p, l, bi, v, bj: U[p, l, bi, bj] += G[p, bi, v] * VT[j(l), v, bj]
 *     for p, l, bj, bi, v: W[j(l), bj, v] += G[p, bi, v] * A[p, l, bi, bj]
 *
 *   - each assignment is a statement of its own: a register block uses a loaded element in many
 *     multiply-adds, which saves more loads than the assignments of one nest share;
 *   - its loops are in the order rows, terms, columns, inside all others.  Terms keep their order;
 *   - an operand that stores terms side by side where the result has columns is first copied with
 *     both exchanged.  Otherwise each element of the result would be a sum over lanes;
 *   - a scatter moves behind the statements that do not touch its operands, so that fuse/rows.c can
 *     fuse these.
 *
 * Blocks of fewer rows, terms or columns than policy.block stay as they are: there the loads
 * that assignments share are worth more.  A statement of one assignment that needs no copy
 * stays, too.  Needs a checked program; gives an equal one, to the last bit. */
#include "lower/lower.h"

#include <string.h>

typedef struct Product {
    Expr *by_rows, *by_columns; /* the operand that has m, and the one that has n */
    Var *m, *k, *n;
    int exchange; /* the slot of by_columns that has n, where the last one has k; else -1 */
} Product;

typedef struct List {
    Stmt **stmt;
    bool *sinks; /* it goes behind what it does not touch */
    int n, cap, cap_sinks;
} List;

static void append(Prog *p, List *l, Stmt *s, bool sinks)
{
    int n = l->n;

    l->stmt = arena_grow(p->arena, l->stmt, n, &l->cap, sizeof *l->stmt);
    l->sinks = arena_grow(p->arena, l->sinks, n, &l->cap_sinks, sizeof *l->sinks);
    l->stmt[n] = s;
    l->sinks[n] = sinks;
    l->n++;
}

/* The variable that an index is, of a plain axis that hangs on nothing; or NULL. */
static Var *var_of(const Expr *index)
{
    const Axis *a = index->op == OP_var || index->op == OP_coord ? index->var->axis : NULL;
    bool plain = a != NULL && a->parent == NULL && a->extent == X_EXPR && ir_is_ident(a) &&
                 !(a->flags & AX_PADDED);

    return plain ? index->var : NULL;
}

static int slot_of(const Expr *load, const Var *v)
{
    int at = -1;

    for (int s = 0; s < load->nargs; s++)
        if (var_of(load->arg[s]) == v)
            at = at < 0 ? s : load->nargs; /* twice: a diagonal */
    return at == load->nargs ? -1 : at;
}

static bool mentions(Prog *p, Expr *e, const Var *v)
{
    Var *var[IR_MAX_BINDS];
    int n = ir_vars(p, e, var, 0);

    for (int i = 0; i < n; i++)
        if (var[i] == v)
            return true;
    return false;
}

/* A block of an operand: a variable of constant extent that has a slot of it. */
static bool has_block(const Expr *load, const Var *v, int64_t least)
{
    int64_t n;

    return ir_const_int(v->axis->size, &n) && n >= least && slot_of(load, v) >= 0;
}

/* The factors of a product that vary: two loads; false: it is another value. */
static bool find_operands(Prog *p, Expr *e, Expr *out[2], int *n)
{
    Var *var[IR_MAX_BINDS];

    if (e->op == OP_mul)
        return find_operands(p, e->arg[0], out, n) && find_operands(p, e->arg[1], out, n);
    if (ir_vars(p, e, var, 0) == 0)
        return true;
    if (e->op != OP_load || *n == 2)
        return false;
    out[(*n)++] = e;
    return true;
}

/* The block that both loads have and the third expression has not; the last one bound. */
static Var *common(Prog *p, const Stmt *s, Expr *a, Expr *b, Expr *not, int64_t least)
{
    Var *found = NULL;

    for (int i = 0; i < s->nbind; i++) {
        Var *v = s->bind[i];

        if (var_of(ir_var_expr(p, v)) == v && has_block(a, v, least) && has_block(b, v, least) &&
            !mentions(p, not, v))
            found = v;
    }
    return found;
}

static bool is_dense(const Buf *b)
{
    bool dense = b->kind != B_CONST;

    for (int s = 0; s < b->nslot && dense; s++)
        dense = b->slot[s]->parent == NULL && b->slot[s]->extent == X_EXPR &&
                ir_is_ident(b->slot[s]) && !(b->slot[s]->flags & AX_PADDED);
    return dense;
}

static bool is_sum(const Assign *a)
{
    return a->op == A_ADD && a->guard == NULL && a->nat == 0 && a->out->nargs > 0 &&
           ir_type[a->out->buf->type].floats;
}

/* Whether no later variable is summed up as well: then k may go inside it all. */
static bool is_last_sum(const Stmt *s, const Assign *a, const Var *k)
{
    bool after = false, last = true;

    for (int i = 0; i < s->nbind; i++) {
        last = last && (!after || ir_reach(a, s->bind[i]) == REACH_SPATIAL);
        after = after || s->bind[i] == k;
    }
    return last;
}

/* The slot that stands for columns in an operand that has terms side by side; -1: it need not be
 * copied, or cannot. */
static int to_exchange(const Product *x)
{
    const Expr *e = x->by_columns;

    return var_of(e->arg[e->nargs - 1]) == x->k && is_dense(e->buf) ? slot_of(e, x->n) : -1;
}

static bool find_product(Prog *p, const Stmt *s, const Assign *a, int64_t least, Product *out)
{
    Expr *by[2];
    int n = 0;

    *out = (Product){ 0 };
    if (!is_sum(a) || !find_operands(p, a->value, by, &n) || n != 2)
        return false;
    out->n = var_of(a->out->arg[a->out->nargs - 1]);
    if (out->n == NULL || slot_of(a->out, out->n) < 0 ||
        mentions(p, by[0], out->n) == mentions(p, by[1], out->n))
        return false;
    out->by_columns = by[mentions(p, by[1], out->n)];
    out->by_rows = by[!mentions(p, by[1], out->n)];
    if (!has_block(out->by_columns, out->n, least))
        return false;
    out->m = common(p, s, a->out, out->by_rows, out->by_columns, least);
    out->k = common(p, s, out->by_rows, out->by_columns, a->out, least);
    if (out->m == NULL || out->k == NULL || !is_last_sum(s, a, out->k))
        return false;
    out->exchange = to_exchange(out);
    return s->nassign > 1 || out->exchange >= 0;
}

/* The loops of a product: all others, rows, terms, columns. */
static void order_binds(Prog *p, Stmt *s, const Product *x)
{
    Var **bind = arena_array(p->arena, s->nbind, sizeof *bind);
    int n = 0;

    for (int i = 0; i < s->nbind; i++)
        if (s->bind[i] != x->m && s->bind[i] != x->k && s->bind[i] != x->n)
            bind[n++] = s->bind[i];
    bind[n++] = x->m;
    bind[n++] = x->k;
    bind[n++] = x->n;
    s->bind = bind;
}

/* Declares a copy of b with two slots exchanged, and the statement that fills it. */
static Buf *copy_exchanged(Prog *p, Buf *b, int x, int y, List *out)
{
    Text name = { .arena = p->arena };
    Var *bind[IR_MAX_FULL];
    Expr *from = ir_everywhere(p, b, bind), *arg[IR_MAX_RANK], *t;
    Buf decl = { .type = b->type, .kind = B_TEMP, .nslot = b->nslot }, *to;
    Assign set = { .op = A_SET };

    decl.slot = arena_copy(p->arena, b->slot, (size_t)b->nslot * sizeof *b->slot);
    decl.slot[x] = b->slot[y];
    decl.slot[y] = b->slot[x];
    text_f(&name, "%.40s_T", b->name);
    decl.name = ir_fresh(p, name.s, false);
    to = ir_buf(p, &decl);
    memcpy(arg, from->arg, (size_t)from->nargs * sizeof *arg);
    t = arg[x];
    arg[x] = arg[y];
    arg[y] = t;
    set.out = ir_load(p, to, arg, from->nargs);
    set.value = from;
    append(p, out, ir_stmt(p, bind, b->nslot, &set, 1), false);
    return to;
}

typedef struct Exchange {
    Expr *from, *to;
} Exchange;

static Expr *exchange(Prog *p, Expr *e, void *ctx)
{
    const Exchange *x = ctx;

    (void)p;
    return e == x->from ? x->to : e;
}

typedef struct Copies { /* that were made: of a buffer, with this slot and its last exchanged */
    const Buf *of[IR_MAX_RANK];
    int slot[IR_MAX_RANK];
    Buf *copy[IR_MAX_RANK];
    int n;
} Copies;

static Buf *copy_of(Prog *p, Copies *c, Buf *b, int slot, List *out)
{
    int i = 0;

    while (i < c->n && (c->of[i] != b || c->slot[i] != slot))
        i++;
    if (i == c->n) {
        c->of[i] = b;
        c->slot[i] = slot;
        c->copy[i] = copy_exchanged(p, b, slot, b->nslot - 1, out);
        c->n++;
    }
    return c->copy[i];
}

/* The operand that has columns becomes its copy. */
static void exchange_columns(Prog *p, Copies *c, Assign *a, const Product *x, List *out)
{
    Expr *from = x->by_columns, *arg[IR_MAX_RANK];
    int at = x->exchange, last = from->nargs - 1;
    Memo memo = { 0 };
    Exchange e = { .from = from };

    if (at < 0 || c->n == IR_MAX_RANK)
        return;
    memcpy(arg, from->arg, (size_t)from->nargs * sizeof *arg);
    arg[last] = from->arg[at];
    arg[at] = from->arg[last];
    e.to = ir_load(p, copy_of(p, c, from->buf, at, out), arg, from->nargs);
    a->value = ir_rewrite(p, a->value, exchange, &e, &memo);
}

/* How many assigns of the statement write each buffer, by id; `by` is -1 to forget them. */
static void count_writes(const Stmt *s, int *writes, int by)
{
    for (int k = 0; k < s->nassign; k++)
        if (s->assign[k].op != A_INSERT)
            writes[s->assign[k].out->buf->id] += by;
}

static Stmt *alone(Prog *p, const Stmt *s, const Assign *a)
{
    Stmt *to = arena_copy(p->arena, s, sizeof *s);

    to->assign = arena_copy(p->arena, a, sizeof *a);
    to->nassign = 1;
    return to;
}

/* The products of a statement apart, each with its copies before it; the rest stays together. */
static void part_stmt(Prog *p, Stmt *s, int64_t least, int *writes, List *out)
{
    Stmt *rest = arena_copy(p->arena, s, sizeof *s);
    Copies copies = { .n = 0 };

    rest->assign = arena_array(p->arena, s->nassign, sizeof *rest->assign);
    rest->nassign = 0;
    count_writes(s, writes, 1);
    for (int k = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];
        Product x;
        Stmt *product;

        if (!find_product(p, s, a, least, &x) || writes[a->out->buf->id] > 1) {
            rest->assign[rest->nassign++] = *a;
            continue;
        }
        product = alone(p, s, a);
        exchange_columns(p, &copies, product->assign, &x, out);
        order_binds(p, product, &x);
        append(p, out, product, ir_reach(a, s->bind[0]) != REACH_SPATIAL && s->nassign > 1);
    }
    count_writes(s, writes, -1);
    if (rest->nassign > 0)
        append(p, out, rest, false);
}

typedef struct Use { /* of a buffer in a statement */
    const Buf *buf;
    bool read, written;
} Use;

static void see_use(Expr *e, void *ctx)
{
    Use *u = ctx;

    u->read = u->read || (e->op == OP_load && e->buf == u->buf) || e->op == OP_stored;
}

static bool uses(Prog *p, const Stmt *s, const Buf *b, bool written)
{
    Use u = { .buf = b };
    Memo met = { 0 };

    for (int k = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];

        u.written = u.written || a->op == A_INSERT || a->out->buf == b;
        for (int i = 0; i < a->nat; i++)
            u.written = u.written || a->at[i].out->buf == b;
        if (!written)
            ir_visit_assign(p, a, see_use, &u, &met);
    }
    return u.written || u.read;
}

typedef struct Between {
    Prog *p;
    const Stmt *next;
    bool clash;
} Between;

static void see_read(Expr *e, void *ctx)
{
    Between *b = ctx;

    if (e->op == OP_load)
        b->clash = b->clash || uses(b->p, b->next, e->buf, true);
}

/* Whether the scatter may run after the next statement. */
static bool can_pass(Prog *p, const Stmt *s, const Stmt *next)
{
    Between b = { p, next, uses(p, next, s->assign->out->buf, false) };
    Memo met = { 0 };

    if (!b.clash)
        ir_visit_assign(p, s->assign, see_read, &b, &met);
    return !b.clash;
}

static void sink(Prog *p, List *l)
{
    for (int i = l->n - 1; i >= 0; i--)
        for (int k = i; l->sinks[k] && k + 1 < l->n && can_pass(p, l->stmt[k], l->stmt[k + 1]);
             k++) {
            Stmt *s = l->stmt[k];

            l->stmt[k] = l->stmt[k + 1];
            l->stmt[k + 1] = s;
            l->sinks[k] = l->sinks[k + 1];
            l->sinks[k + 1] = true;
        }
}

void lower_products(Prog *p, int64_t least)
{
    Stmt **stmt = p->stmt;
    int n = p->nstmt, *writes = arena_array(p->arena, p->nbuf, sizeof *writes);
    List all = { 0 };

    for (int i = 0; i < n; i++) {
        p->nstmt = 0; /* of copies, ir_stmt appends to a list that is of no use here */
        p->cap_stmt = 0;
        part_stmt(p, stmt[i], least, writes, &all);
    }
    sink(p, &all);
    p->stmt = all.stmt;
    p->nstmt = p->cap_stmt = all.n;
}
