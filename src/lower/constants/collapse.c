/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Collapses two constant loops over contiguous storage.
 *
 *     for p in 0..n                            for q in 0..size(U)
 *         for u in 0..U.size[p]                    ... q ...
 *             ... U.start[p] + u ...
 *
 * Legal when the body uses p and u only as U.start[p] + u.  Runs before the loop over p is
 * unrolled, which would make one loop of each row. */
#include "lower/constants/constants_int.h"

typedef struct Flat {
    const Node *rows, *under;
    Expr *place; /* start[row] + local */
    Local *all;
} Flat;

static bool is_local(Expr *e, const Local *l)
{
    return e->op == OP_local && e->local == l;
}

/* Whether e is an element of a constant table, at the row. */
static bool is_table(Expr *e, const Local *row)
{
    return e->op == OP_cell && e->nargs == 1 && e->buf->kind == B_CONST && e->buf->ival != NULL &&
           is_local(e->arg[0], row);
}

static void see_place(Expr *e, void *ctx)
{
    Flat *f = ctx;

    for (int i = 0; i < 2 && e->op == OP_add; i++)
        if (is_table(e->arg[i], f->rows->local) && is_local(e->arg[1 - i], f->under->local))
            f->place = e;
}

/* Whether each row's range begins where that of the row before ends; the first at 0. */
static bool are_in_line(const Flat *f)
{
    Expr *a = f->place->arg[0], *b = f->place->arg[1];
    const Buf *start = (is_local(a, f->under->local) ? b : a)->buf, *size = f->under->hi->buf;
    int64_t rows = f->rows->hi->i, end = 0;

    if (rows < 1 || start->n <= rows || size->n < rows)
        return false;
    for (int64_t i = 0; i < rows; i++) {
        if (start->ival[i] != end)
            return false;
        end += size->ival[i];
    }
    return start->ival[rows] == end;
}

static Expr *in_all(Prog *p, Expr *e, void *ctx)
{
    Flat *f = ctx;

    return e == f->place ? loop_use(p, f->all) : e;
}

static void see_local(Expr *e, void *ctx)
{
    Flat *f = ctx;

    if (is_local(e, f->rows->local) || is_local(e, f->under->local))
        f->place = NULL;
}

Node *lower_collapsed(Prog *p, Node *n)
{
    Node *in = n->nbody == 1 ? n->body[0] : NULL, c;
    Flat f = { .rows = n, .under = in };
    Memo met = { 0 }, left = { 0 }, memo = { 0 };
    int64_t all;

    if (in == NULL || n->how != FOR_SERIAL || n->lo != ir_int(p, 0) || n->hi->op != OP_int ||
        in->kind != N_FOR || in->how != FOR_SERIAL || in->lo != ir_int(p, 0) ||
        !is_table(in->hi, n->local))
        return n;
    for (int i = 0; i < in->nbody; i++)
        loop_visit(p, in->body[i], see_place, &f, &met);
    if (f.place == NULL || !are_in_line(&f))
        return n;
    all = ((is_local(f.place->arg[0], in->local) ? f.place->arg[1] : f.place->arg[0])->buf)
              ->ival[n->hi->i];
    f.all = loop_local(p, in->local->name, T_i64, 1);
    c = *in;
    c.local = f.all;
    c.hi = ir_int(p, all);
    c.over = in->over != NULL ? loop_over(p, in->over->axis, NULL) : NULL;
    c = *loop_rewrite(p, loop_node(p, &c), in_all, &f, &memo);
    loop_visit(p, &c, see_local, &f, &left);
    return f.place != NULL ? loop_node(p, &c) : n;
}
