/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Splits sums that one iteration would compute alone into chunks.  Each chunk adds into an
 * element of a temporary array, then the chunks of a sum are combined in order.  Three kinds:
 *
 *   - rows with many entries.  The phase treats them as empty, and two phases follow: one over the
 *     chunks of all long rows, one over the long rows.  Without long rows they do nothing;
 *   - sums into few elements that every iteration adds to, split into chunks of similar length,
 *     which are summed in groups;
 *   - scatters, sums into rows that a coordinate names: split/scatter.c.
 *
 * The plan chooses the boundaries (run/plan.c) from the structure alone, so that the result
 * depends on nothing else.  It fills the axes that this pass makes; the last one of a family has
 * `from`.  Needs stage positions; gives a program of that stage. */
#include "lower/split/split_int.h"
#include "lower/storage/storage_int.h"

#include <math.h>
#include <string.h>

enum { GROUPS = 16 };      /* of the parts of a sum */

Axis *split_axis(Prog *p, const char *letter, const char *stem, Axis *parent)
{
    Text name = { .arena = p->arena };
    int n = 0;
    Axis *a;

    do {
        name.n = 0;
        text_f(&name, "%s_%.40s", letter, stem);
        if (n++ > 0)
            text_f(&name, "%d", n);
    } while (ir_find_symbol(p, name.s, name.n) != NULL);
    a = ir_axis_open(p, name.s, parent);
    a->extent = parent == NULL ? X_EXPR : X_SEG;
    a->size = parent == NULL ? ir_int(p, 1) : NULL;
    return a;
}

static void loaded(Prog *p, Axis *a, const char *name)
{
    ir_axis_coord(p, a, &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, name, false) });
}

/* The entries of parts of the long rows of an axis, under their parts, under their rows, under one
 * position that knows what is long; made once. */
static Axis *long_rows(Prog *p, Axis *of)
{
    Axis *o, *l, *q, *e;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from == of && p->axis[i]->from_k == FROM_LONG)
            return p->axis[i];
    o = split_axis(p, "O", of->name, NULL);
    loaded(p, o, "limit");
    ir_axis_close(p, o);
    if (p->policy.index == 32 && loop_type(p, of, -1) == T_i32) /* it is at most all entries */
        lower_narrow(p, o, 0);
    l = split_axis(p, "L", of->name, o);
    loaded(p, l, "row");
    ir_axis_close(p, l);
    q = split_axis(p, "P", of->name, l);
    loaded(p, q, "row");
    loaded(p, q, "shift");
    ir_axis_close(p, q);
    e = split_axis(p, "E", of->name, q);
    ir_axis_close(p, e);
    e->from = of;
    e->from_k = FROM_LONG;
    return e;
}

/* The entries of an axis, or the positions of a dense one, in parts. */
static Axis *pieces(Prog *p, Axis *of, const char *stem)
{
    Axis *o, *q, *e;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from == of && p->axis[i]->from_k == FROM_CUT)
            return p->axis[i];
    o = split_axis(p, "O", stem, NULL);
    ir_axis_close(p, o);
    q = split_axis(p, "P", stem, o);
    loaded(p, q, "row");
    loaded(p, q, "end");
    ir_axis_close(p, q);
    e = split_axis(p, "E", stem, q);
    ir_axis_close(p, e);
    e->from = of;
    e->from_k = FROM_CUT;
    return e;
}

static bool is_same_shape(const Buf *a, const Buf *b)
{
    bool same = a->type == b->type && a->kind == b->kind && a->nfull == b->nfull;

    for (int k = 0; k < a->nfull && same; k++)
        same = a->full[k] == b->full[k];
    return same;
}

static Buf *declare(Prog *p, const Buf *of, Buf *b)
{
    Text name = { .arena = p->arena };
    const Symbol *sym;
    int n = 1;

    do {
        name.n = 0;
        text_f(&name, "%s.part", of->name);
        if (n++ > 1)
            text_f(&name, "%d", n - 1);
        sym = ir_find_symbol(p, name.s, name.n);
    } while (sym != NULL && sym->buf != NULL && !is_same_shape(sym->buf, b));
    b->name = name.s;
    return loop_own(p, b);
}

static void add_slot(Buf *t, Axis *a)
{
    t->place_in_full[t->nslot] = t->nfull;
    t->slot[t->nslot++] = a;
}

/* A dimension of b, as one of t; a plain one without what it may hang on. */
static void add_dim(Prog *p, Buf *t, const Buf *b, Dim dim)
{
    bool plain = b->full[dim.first]->extent == X_EXPR;

    for (int k = dim.first + 1; k <= dim.last; k++) /* which has as many positions */
        plain = plain && b->full[k]->extent == X_ONE;
    for (int k = dim.first; k <= (plain ? dim.first : dim.last); k++) {
        Axis *a = plain ? ir_dense(p, b->full[k]->size) : b->full[k];
        bool slot = plain;

        for (int s = 0; s < b->nslot; s++)
            slot = slot || b->place_in_full[s] == k;
        if (slot)
            add_slot(t, a);
        t->full[t->nfull++] = a;
    }
}

/* The array of parts: what is added to, for each part instead of for each row. */
Buf *split_array(Cut *c, int i)
{
    const Buf *b = c->whole[i];
    Buf t = { .type = b->type, .kind = B_TEMP, .written = true };
    Axis *up[IR_MAX_RANK];
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim), nup = 0;

    t.full = arena_array(c->p->arena, IR_MAX_FULL, sizeof *t.full);
    t.slot = arena_array(c->p->arena, IR_MAX_RANK, sizeof *t.slot);
    t.place_in_full = arena_array(c->p->arena, IR_MAX_RANK, sizeof *t.place_in_full);
    for (Axis *a = c->axis; a != NULL; a = a->parent)
        up[nup++] = a;
    while (nup > 0)
        t.full[t.nfull++] = up[--nup];
    t.place_in_full[0] = t.nfull - 1;
    t.slot[t.nslot++] = c->axis;
    for (int d = 0; d < n; d++)
        if (d != c->row_dim[i])
            add_dim(c->p, &t, b, dim[d]);
    return declare(c->p, b, &t);
}

/* The element that stands for an element in row q of an array of parts or of groups. */
static Expr *cell_in(Cut *c, Buf *b, Expr *q, Expr *out, int i)
{
    Expr *index[IR_MAX_FULL] = { q };
    int n = 1;

    for (int d = 0; d < out->nargs; d++)
        if (d != c->row_dim[i])
            index[n++] = out->arg[d];
    return loop_cell(c->p, b, index, n, 1);
}

Expr *split_cell(Cut *c, Expr *out, int i)
{
    return cell_in(c, c->part[i], c->q, out, i);
}

/* A local whose name no variable of the program has. */
Local *split_local(Prog *p, const char *name)
{
    return loop_local(p, ir_fresh(p, name, false), T_i64, 1);
}

/* The loop over `over`; lo and hi are its ends where it runs over a part of that. */
static Node *new_loop(Prog *p, const char *label, Local *l, Expr *lo, Expr *hi, const Over *over,
                      NodeList body)
{
    return loop_node(p, &(Node){ .kind = N_FOR,
                                 .label = label,
                                 .local = l,
                                 .lo = lo,
                                 .hi = hi,
                                 .over = over,
                                 .body = body.node,
                                 .nbody = body.n });
}

Node *split_loop(Prog *p, const char *label, Local *l, Expr *hi, const Over *over, Node *in)
{
    NodeList body = { 0 };

    tree_append(p, &body, in);
    return new_loop(p, label, l, ir_int(p, 0), hi, over, body);
}

static Expr *element_at(Prog *p, Buf *b, Expr *i)
{
    return loop_cell(p, b, &i, 1, 1);
}

/* A loop over the entries of a row, or over what a part has of them. */
static Node *cut_loop(Cut *c, Node *n)
{
    Prog *p = c->p;
    Local *e = loop_local(p, n->local->name, T_i64, 1);
    Expr *x = loop_use(p, e);
    Node *to = loop_node(p, n);

    if (c->shift != NULL) { /* the part is of this row alone */
        to->lo = c->from;
        to->hi = c->to;
        to->over = c->over;
        x = ir_op2(p, OP_add, x, c->shift);
    } else {
        to->lo = ir_op2(p, OP_max, n->lo, c->from);
        to->hi = ir_op2(p, OP_min, n->hi, c->to);
    }
    to->local = e;
    for (int i = 0; i < n->nbody; i++)
        ((Node **)to->body)[i] = loop_replace(p, n->body[i], n->local, x);
    return to;
}

static Node *cut_node(Cut *c, Node *n)
{
    Node *to = split_is_row_loop(c, n) ? cut_loop(c, n) : loop_node(c->p, n);
    NodeList body = { 0 };

    for (int i = 0; n->kind == N_STORE && i < c->n; i++)
        if (n->out->buf == c->whole[i])
            to->out = split_cell(c, n->out, i);
    for (int i = 0; i < to->nbody; i++)
        tree_append(c->p, &body, cut_node(c, to->body[i]));
    to->body = body.node;
    return to;
}

/* What changes no bit of what is combined with it: 0 would, of -0. */
static Expr *neutral(Prog *p, const Buf *b, AssignOp op)
{
    if (op == A_ADD)
        return ir_real(p, -0.0);
    if (ir_type[b->type].floats)
        return ir_real(p, op == A_MAX ? -(double)INFINITY : (double)INFINITY);
    return ir_int(p, op == A_MAX ? INT64_MIN : INT64_MAX);
}

static AssignOp op_on(const Node *n, const Buf *b)
{
    AssignOp op = n->kind == N_STORE && n->out->buf == b ? n->op : A_SET;

    for (int i = 0; i < n->nbody && op == A_SET; i++)
        op = op_on(n->body[i], b);
    return op;
}

typedef enum Step { BEGIN, ADD, GATHER, JOIN } Step;

static Op joint(AssignOp op)
{
    return op == A_ADD ? OP_add : op == A_MAX ? OP_max : OP_min;
}

/* What groups from..to give together, halves by halves. */
static Expr *join_groups(Cut *c, int i, AssignOp op, Expr *out, int from, int to)
{
    int half = from + (to - from) / 2;

    if (to - from == 1)
        return cell_in(c, c->group[i], ir_int(c->p, from), out, i);
    return ir_op2(c->p, joint(op), join_groups(c, i, op, out, from, half),
                  join_groups(c, i, op, out, half, to));
}

/* Loops over all of an array but the row; inside, parts begin, are added to the row of what is
 * whole or to the row of their group, or groups are added to what is whole. */
static Node *everywhere(Cut *c, int i, Step step, Expr *row, const char *label)
{
    Prog *p = c->p;
    Buf *b = c->whole[i];
    Dim dim[IR_MAX_FULL];
    Local *x[IR_MAX_FULL];
    Expr *index[IR_MAX_FULL], *out, *part;
    int n = ir_dims(b, dim);
    AssignOp op = op_on(c->phase, b);
    Node *in;

    for (int d = 0; d < n; d++) {
        Text name = { .arena = p->arena };

        text_f(&name, "x%d", d);
        x[d] = loop_local(p, name.s, T_i64, 1);
        index[d] = d == c->row_dim[i] ? row : loop_use(p, x[d]);
    }
    out = loop_cell(p, b, index, n, 1);
    part = step == JOIN ? join_groups(c, i, op, out, 0, GROUPS) : split_cell(c, out, i);
    if (step == GATHER)
        out = cell_in(c, c->group[i], row, out, i);
    in = loop_node(p, &(Node){ .kind = N_STORE,
                               .label = label,
                               .op = step == BEGIN ? A_SET : op,
                               .out = step == BEGIN ? part : out,
                               .value = step == BEGIN ? neutral(p, b, op) : part });
    for (int d = n - 1; d >= 0; d--)
        if (d != c->row_dim[i])
            in = split_loop(p, label, x[d], lower_dim_extent(p, b, dim[d]),
                            lower_dim_over(p, b, dim[d]), in);
    return in;
}

static Node *new_let(Prog *p, const char *label, Local *l, Expr *value)
{
    return loop_node(p, &(Node){ .kind = N_LET, .label = label, .local = l, .value = value });
}

const char *split_label(Prog *p, const char *a, const char *b)
{
    Text t = { .arena = p->arena };

    text_f(&t, "%s%s", a, b);
    return t.s;
}

/* The phase over the parts begins: what each part adds up is empty. */
static void begin_parts(Cut *c, Local *q, const char *label, NodeList *body)
{
    Prog *p = c->p;
    Buf *start = loop_start(p, c->axis);

    c->q = loop_use(p, q);
    c->over = loop_over(p, c->axis, c->q);
    c->axis = c->axis->parent;
    c->from = element_at(p, start, c->q);
    c->to = element_at(p, start, tree_add(p, c->q, ir_int(p, 1)));
    for (int i = 0; i < c->n; i++) {
        c->part[i] = split_array(c, i);
        tree_append(p, body, everywhere(c, i, BEGIN, c->q, label));
    }
}

static void add_cut_body(Cut *c, Local *row, NodeList *out)
{
    for (int i = 0; i < c->phase->nbody; i++) {
        Node *n = cut_node(c, c->phase->body[i]);

        tree_append(c->p, out, loop_replace(c->p, n, c->row, loop_use(c->p, row)));
    }
}

/* Lets with locals of their own, as the phase stays beside its copy. */
static NodeList renamed(Prog *p, NodeList l, const char *label)
{
    Node *all = tree_renamed(p, new_loop(p, label, NULL, NULL, NULL, NULL, l));

    return (NodeList){ .node = (Node **)all->body, .n = all->nbody };
}

static Node *add_parts_of_row(Cut *c, const char *label)
{
    Prog *p = c->p;
    Axis *rows = c->axis->parent;
    Buf *start = loop_start(p, c->axis);
    Local *l = split_local(p, "l"), *q = split_local(p, "q"),
          *row = loop_local(p, c->row->name, T_i64, 1);
    Expr *x = loop_use(p, l);
    NodeList body = { 0 }, out = { 0 };
    Node *phase;

    c->q = loop_use(p, q);
    for (int i = 0; i < c->n; i++)
        tree_append(p, &body, everywhere(c, i, ADD, loop_use(p, row), label));
    tree_append(p, &out,
                 new_let(p, label, row, element_at(p, loop_coord(p, rows, 0), x)));
    tree_append(p, &out,
                 new_loop(p, label, q, element_at(p, start, x),
                          element_at(p, start, tree_add(p, x, ir_int(p, 1))),
                          loop_over(p, c->axis, x), body));
    phase = new_loop(p, label, l, ir_int(p, 0), ir_count(p, rows), loop_over(p, rows, NULL), out);
    phase->how = FOR_PARALLEL;
    return phase;
}

static Node *stop_at(Cut *c, Node *n, Expr *stop)
{
    Node *to = loop_node(c->p, n);
    NodeList body = { 0 };

    if (split_is_row_loop(c, n))
        to->hi = stop;
    for (int i = 0; i < n->nbody; i++)
        tree_append(c->p, &body, stop_at(c, n->body[i], stop));
    to->body = body.node;
    return to;
}

/* The phase as if long rows were empty: they are begun and completed as all others are. */
static Node *without_long(Cut *c, const Node *phase, Expr *limit)
{
    Prog *p = c->p;
    Local *stop = split_local(p, "end");
    Expr *is_short = ir_op2(p, OP_le, ir_op2(p, OP_sub, c->hi, c->lo), limit);
    NodeList body = { 0 };
    Node *n = loop_node(p, phase);

    tree_append(p, &body,
                 new_let(p, phase->label, stop,
                         ir_node(p, OP_select, (Expr *[]){ is_short, c->hi, c->lo }, 3)));
    for (int i = 0; i < phase->nbody; i++)
        tree_append(p, &body, stop_at(c, phase->body[i], loop_use(p, stop)));
    n->body = body.node;
    n->nbody = body.n;
    return n;
}

/* The phase without long rows, their parts, and what the parts give together. */
static void cut_long_rows(Cut *c, Node *phase, NodeList *out)
{
    Prog *p = c->p;
    const char *label = split_label(p, c->whole[0]->name, ".parts");
    Axis *entries = long_rows(p, c->start->of), *parts = entries->parent;
    Axis *limit = parts->parent->parent;
    Local *q = split_local(p, "q"), *row = loop_local(p, c->row->name, T_i64, 1),
          *shift = split_local(p, "shift");
    NodeList body = { 0 };
    Node *n;

    c->axis = entries;
    begin_parts(c, q, label, &body);
    tree_append(p, &body,
                 new_let(p, label, row, element_at(p, loop_coord(p, parts, 0), c->q)));
    tree_append(p, &body,
                 new_let(p, label, shift, element_at(p, loop_coord(p, parts, 1), c->q)));
    c->shift = loop_use(p, shift);
    add_cut_body(c, row, &body);
    body = renamed(p, body, label);
    tree_append(p, out,
                 without_long(c, phase, element_at(p, loop_coord(p, limit, 0), ir_int(p, 0))));
    n = new_loop(p, label, q, ir_int(p, 0), ir_count(p, parts), loop_over(p, parts, NULL), body);
    n->how = FOR_PARALLEL;
    tree_append(p, out, n);
    tree_append(p, out, add_parts_of_row(c, split_label(p, c->whole[0]->name, ".sum")));
}

static bool is_of_sizes(const Expr *e)
{
    bool good = e->op == OP_int || e->op == OP_size || (e->op >= OP_neg && e->op <= OP_mod);

    for (int i = 0; i < e->nargs && good; i++)
        good = is_of_sizes(e->arg[i]);
    return good;
}

/* The first part of group g: groups have about as many parts each. */
static Expr *first_of_group(Prog *p, Expr *g, const Axis *parts)
{
    Expr *all = ir_op2(p, OP_mul, g, ir_count(p, (Axis *)parts));

    return ir_op2(p, OP_div, all, ir_int(p, GROUPS));
}

/* Parts are added up in groups, then the groups by halves: no element is the end of a long chain of
 * sums, whose rounding errors grow with its length. */
static void add_groups(Cut *c, const char *name, NodeList *out)
{
    Prog *p = c->p;
    const Axis *parts = c->axis;
    const char *label = split_label(p, c->whole[0]->name, ".groups");
    Local *q = loop_local(p, name, T_i64, 1), *g = split_local(p, "g");
    Expr *group = loop_use(p, g);
    NodeList body = { 0 }, add = { 0 }, sum = { 0 };
    Node *n;

    c->axis = ir_dense(p, ir_int(p, GROUPS));
    for (int i = 0; i < c->n; i++)
        c->group[i] = split_array(c, i);
    c->q = loop_use(p, q);
    for (int i = 0; i < c->n; i++)
        tree_append(p, &add, everywhere(c, i, GATHER, group, label));
    c->q = group;
    memcpy(c->part, c->group, sizeof c->part);
    for (int i = 0; i < c->n; i++)
        tree_append(p, &body, everywhere(c, i, BEGIN, group, label));
    tree_append(p, &body,
                 new_loop(p, label, q, first_of_group(p, group, parts),
                          first_of_group(p, tree_add(p, group, ir_int(p, 1)), parts),
                          loop_over(p, (Axis *)parts, NULL), add));
    n = new_loop(p, label, g, ir_int(p, 0), ir_int(p, GROUPS), NULL, body);
    n->how = FOR_PARALLEL;
    tree_append(p, out, n);
    label = split_label(p, c->whole[0]->name, ".sum");
    for (int i = 0; i < c->n; i++)
        tree_append(p, &sum, everywhere(c, i, JOIN, NULL, label));
    n = lower_phase(p, &sum);
    n->why = "it adds up parts";
    tree_append(p, out, n);
}

/* A loop that adds to a few elements: its rows, or the entries of its rows, in parts. */
static void cut_sum(Cut *c, Node *phase, NodeList *out)
{
    Prog *p = c->p;
    const char *label = split_label(p, c->whole[0]->name, ".parts");
    Local *q = split_local(p, "q"), *row = loop_local(p, c->row->name, T_i64, 1);
    Axis *of = c->start != NULL ? c->start->of : ir_dense(p, phase->hi), *parts;
    NodeList body = { 0 }, rows = { 0 };
    Node *n;

    c->axis = pieces(p, of, of->name != NULL ? of->name : "sum");
    begin_parts(c, q, label, &body);
    parts = c->axis;
    add_cut_body(c, row, &rows);
    rows = renamed(p, rows, label);
    n = c->start == NULL ? new_loop(p, label, row, c->from, c->to, c->over, rows)
                         : new_loop(p, label, row, element_at(p, loop_coord(p, parts, 0), c->q),
                                    element_at(p, loop_coord(p, parts, 1), c->q), NULL, rows);
    tree_append(p, &body, n);
    n = new_loop(p, label, q, ir_int(p, 0), ir_count(p, parts), loop_over(p, parts, NULL), body);
    n->how = FOR_PARALLEL;
    tree_append(p, out, n);
    add_groups(c, q->name, out);
}

static bool is_loop(const Node *phase)
{
    return phase->kind == N_FOR && phase->lo->op == OP_int && phase->lo->i == 0 &&
           is_of_sizes(phase->hi) && !(phase->hi->op == OP_int && phase->hi->i <= 1);
}

static void cut_serial(Cut *c, Node *phase, NodeList *out)
{
    Node *n = loop_node(c->p, phase);

    c->is_small = true;
    n->why = "it has no outer loop that could be cut";
    if (!is_loop(phase)) {
        tree_append(c->p, out, n);
        return;
    }
    split_find(c);
    if (!split_can_cut(c) && c->start != NULL) {
        c->start = NULL; /* then rows */
        split_can_cut(c);
    }
    if (c->no == NULL && c->n > 0) {
        cut_sum(c, phase, out);
        return;
    }
    n->why = c->no != NULL ? c->no : "it writes nothing";
    tree_append(c->p, out, n);
}

static int count_nodes(const Node *n)
{
    int count = 1;

    for (int i = 0; i < n->nbody; i++)
        count += count_nodes(n->body[i]);
    return count;
}

static void cut_phase(Prog *p, Node *phase, Sums *sums, NodeList *out)
{
    Cut c = { .p = p, .phase = phase, .row = phase->local };
    bool serial = phase->kind != N_FOR || phase->how != FOR_PARALLEL;
    int k;

    if (serial && is_loop(phase)) {
        split_find(&c);
        if (split_can_scatter(&c, &k)) {
            split_scatter(&c, phase, k, sums, out);
            return;
        }
        c.start = NULL;
    }
    split_end_sums(p, sums, phase, out);
    if (serial) {
        cut_serial(&c, phase, out);
        return;
    }
    split_find(&c);
    if (c.start != NULL && phase->lo->op == OP_int && phase->lo->i == 0 &&
        count_nodes(phase) <= c.p->policy.twice_nodes && split_can_cut(&c))
        cut_long_rows(&c, phase, out);
    else
        tree_append(p, out, phase);
}

void lower_split_sums(Kernel *k)
{
    NodeList out = { 0 };
    Sums sums = { 0 };

    for (int i = 0; i < k->n; i++) {
        if (lower_has_registers(k->phase[i])) {
            split_end_sums(k->p, &sums, k->phase[i], &out);
            tree_append(k->p, &out, k->phase[i]);
        } else {
            cut_phase(k->p, k->phase[i], &sums, &out);
        }
    }
    split_end_sums(k->p, &sums, NULL, &out);
    k->phase = out.node;
    k->n = out.n;
    k->cap = out.cap;
    lower_done(k, k->p->stage);
}
