/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Splits scatters.  In a phase over rows whose entries add to rows that a coordinate names,
 * O[j(e), ...] += v, several iterations may add to one row of O.  The rows of the phase are
 * split into a few chunks.  Each chunk adds to a private copy of O, in order; then the copies
 * are summed.  A row that the phase reads stays in cache while its entries are processed; only
 * the rows of O are visited out of order.  A chunk initializes, and adds to O, the rows of its
 * copy from the first to the last that its entries name.  The entries may be below several
 * levels of rows; the rows at the top are split.  The plan chooses the boundaries (api/parts.c)
 * from the structure alone. positions/transpose.c decides which scatters come here.  Works at
 * stage positions, as a part of split/reductions.c. */
#include "lower/split/split_int.h"
#include "lower/storage/storage_int.h"

/* The rows of an axis in parts, under one position; made once for a coordinate. */
static Axis *parts_of(Prog *p, Axis *of, int k)
{
    Axis *o, *q, *r;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from == of && p->axis[i]->from_k == FROM_ROWS && p->axis[i]->part == k)
            return p->axis[i];
    o = split_axis(p, "O", of->name, NULL);
    ir_axis_close(p, o);
    q = split_axis(p, "P", of->name, o);
    ir_axis_coord(p, q, &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, "first", false) });
    ir_axis_coord(p, q, &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, "end", false) });
    ir_axis_close(p, q);
    r = split_axis(p, "S", of->name, q);
    ir_axis_coord(p, r, &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, "part", false) });
    ir_axis_close(p, r);
    r->from = of;
    r->from_k = FROM_ROWS;
    r->part = k;
    return r;
}

/* Whether an index is an entry of the axis, below the row of the iteration. */
static bool is_below_row(Cut *c, const Expr *index, const Axis *of)
{
    const Node *loop = index->op == OP_local ? tree_binder(c->phase, index->local) : NULL;
    const Expr *lo = loop != NULL ? loop->lo : NULL;

    if (index == loop_use(c->p, c->row))
        return of == c->start->of->parent;
    return lo != NULL && lo->op == OP_cell && lo->buf->of == of && lo->buf->of_k == -1 &&
           is_below_row(c, lo->arg[0], of->parent);
}

/* The coordinate of the entries below a row that names the row which is added to; or -1.  All other
 * dimensions are constant. */
static int named_by(Cut *c, Expr *out, int *scatter_dim, Axis **of)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(out->buf, dim), k = -1;

    for (int d = 0; d < n; d++) {
        const Expr *x = out->arg[d];

        if (lower_dim_extent(c->p, out->buf, dim[d])->op == OP_int)
            continue;
        if (k >= 0 || x->op != OP_cell || x->buf->of == NULL || x->buf->of_k < 0 ||
            x->buf->of->coord[x->buf->of_k].bound == NULL ||
            !is_below_row(c, x->arg[0], x->buf->of))
            return -1;
        k = x->buf->of_k;
        *of = x->buf->of;
        *scatter_dim = d;
    }
    return k;
}

/* All stores of a phase name rows by one coordinate.  The plan chooses the number of parts by the
 * number of rows that this coordinate may name; rows that another coordinate names could be far
 * more, and each part would have an array of all of them. */
static bool note_store(Cut *c, const Node *n, int *k)
{
    Axis *of = NULL;
    int dim = 0, by = n->out->op == OP_cell ? named_by(c, n->out, &dim, &of) : -1, i = 0;

    if (by < 0 || (*k >= 0 && (by != *k || of != c->named)) || n->op != A_ADD || n->nat > 0 ||
        !ir_type[n->out->buf->type].floats || n->out->buf->nfull + 2 > IR_MAX_RANK)
        return false;
    *k = by;
    c->named = of;
    while (i < c->n && c->whole[i] != n->out->buf)
        i++;
    if (i == IR_MAX_RANK || (i < c->n && c->scatter_dim[i] != dim))
        return false;
    c->whole[i] = n->out->buf;
    c->scatter_dim[i] = dim;
    c->row_dim[i] = -1;
    c->n = i == c->n ? i + 1 : c->n;
    return true;
}

static bool note_stores(Cut *c, const Node *n, int *k)
{
    bool good = n->kind <= N_CHECK && (n->kind != N_STORE || note_store(c, n, k));

    for (int i = 0; i < n->nbody && good; i++)
        good = note_stores(c, n->body[i], k);
    return good;
}

bool split_can_scatter(Cut *c, int *k)
{
    *k = -1;
    c->n = 0;
    c->no = NULL;
    return c->start != NULL && note_stores(c, c->phase, k) && c->n > 0 && !split_reads(c);
}

/* Whether entries of part q can name row x: the others of its array are neither begun nor read. */
static Expr *is_in_part(Cut *c, Expr *x)
{
    Prog *p = c->p;
    Expr *first = tree_cell(p, loop_coord(p, c->axis, 0), c->q),
         *end = tree_cell(p, loop_coord(p, c->axis, 1), c->q);

    return ir_op2(p, OP_and, ir_op2(p, OP_le, first, x), ir_op2(p, OP_lt, x, end));
}

static Node *only_if(Prog *p, const char *label, Expr *cond, Node *in)
{
    NodeList body = { 0 };

    tree_append(p, &body, in);
    return loop_node(p, &(Node){ .kind = N_IF,
                                 .label = label,
                                 .cond = cond,
                                 .body = body.node,
                                 .nbody = body.n });
}

/* For all rows that may be added to, those of all parts: they begin, or are added to the whole. */
static Node *all_rows(Cut *c, int i, bool add)
{
    Prog *p = c->p;
    Buf *b = c->whole[i];
    const char *label = split_label(p, add ? b->name : c->part[i]->name, add ? ".sum" : ".init");
    Dim dim[IR_MAX_FULL];
    Local *x[IR_MAX_FULL], *q = split_local(p, "q");
    Expr *index[IR_MAX_FULL], *out, *part;
    int n = ir_dims(b, dim), at = c->scatter_dim[i];
    Node *in;

    for (int d = 0; d < n; d++) {
        Text name = { .arena = p->arena };

        text_f(&name, "x%d", d);
        x[d] = loop_local(p, name.s, T_i64, 1);
        index[d] = loop_use(p, x[d]);
    }
    c->q = loop_use(p, q);
    out = loop_cell(p, b, index, n, 1);
    part = split_cell(c, out, i);
    in = loop_node(p, &(Node){ .kind = N_STORE,
                               .label = label,
                               .op = add ? A_ADD : A_SET,
                               .out = add ? out : part,
                               .value = add ? part : ir_real(p, -0.0) });
    for (int d = n - 1; d >= 0; d--)
        if (d != at)
            in = split_loop(p, label, x[d], lower_dim_extent(p, b, dim[d]),
                            lower_dim_over(p, b, dim[d]), in);
    in = only_if(p, label, is_in_part(c, index[at]), in);
    in = split_loop(p, label, q, ir_count(p, c->axis), loop_over(p, c->axis, NULL), in);
    in = split_loop(p, label, x[at], lower_dim_extent(p, b, dim[at]),
                    lower_dim_over(p, b, dim[at]), in);
    in->how = FOR_PARALLEL;
    return in;
}

static Node *in_parts(Cut *c, Node *n)
{
    Node *to = loop_node(c->p, n);
    NodeList body = { 0 };

    for (int i = 0; n->kind == N_STORE && i < c->n; i++)
        if (n->out->buf == c->whole[i])
            to->out = split_cell(c, n->out, i);
    for (int i = 0; i < n->nbody; i++)
        tree_append(c->p, &body, in_parts(c, n->body[i]));
    to->body = body.node;
    return to;
}

static Sum *waiting(Sums *s, const Cut *c, int i)
{
    for (int k = 0; k < s->n; k++)
        if (s->sum[k].whole == c->whole[i] && s->sum[k].axis == c->axis)
            return &s->sum[k];
    return NULL;
}

/* The sums of what a phase reads, or writes otherwise, cannot wait for later scatters. */
void split_end_sums(Prog *p, Sums *s, const Node *before, NodeList *out)
{
    int n = 0;

    for (int k = 0; k < s->n; k++) {
        if (before == NULL || tree_touches(p, before, s->sum[k].whole))
            tree_append(p, out, s->sum[k].phase);
        else
            s->sum[n++] = s->sum[k];
    }
    s->n = n;
}

void split_scatter(Cut *c, Node *phase, int k, Sums *sums, NodeList *out)
{
    Prog *p = c->p;
    Axis *rows = parts_of(p, c->named, k);
    Buf *part = loop_coord(p, rows, 0);
    Node *n;

    c->axis = rows->parent;
    for (int i = 0; i < c->n; i++) {
        Sum *old = waiting(sums, c, i);

        if (old != NULL) {
            c->part[i] = old->part;
            continue;
        }
        c->part[i] = split_array(c, i);
        tree_append(p, out, all_rows(c, i, false));
        sums->sum = arena_grow(p->arena, sums->sum, sums->n, &sums->cap, sizeof *sums->sum);
        sums->sum[sums->n++] = (Sum){ c->whole[i], c->part[i], c->axis, all_rows(c, i, true) };
    }
    c->q = tree_cell(p, part, loop_use(p, c->row));
    n = in_parts(c, phase);
    n->how = FOR_PARALLEL;
    n->parts = part;
    split_end_sums(p, sums, n, out); /* of what it reads */
    tree_append(p, out, n);
}
