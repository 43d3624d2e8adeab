/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Compensated sums: where a loop over entries, whose number is known only at run time, adds to
 * the same element or register again and again, a second register sums the rounding errors of the
 * additions (Knuth's two-sum, the sum in twice the precision of Ogita, Rump and Oishi), and is
 * added at the end.  Runs near the end of the pipeline, because no other pass recognises such
 * sums. */
#include "lower/lanes/lanes_int.h"
#include "lower/storage/storage_int.h"

typedef struct Nest { /* the loops around a node, the innermost first */
    const Node *loop;
    const struct Nest *outer;
} Nest;

typedef struct Added { /* an array that is added to again */
    Buf *buf, *err;
    bool part;   /* sums of parts: errors stay beside them until they are added up */
    bool begun;  /* its errors are */
    bool here;   /* the phase adds to it */
} Added;

typedef struct Sums {
    Kernel *k;
    const VectorUnit *unit;
    const Node *phase;
    Added *added;
    int n, cap, nlocal;
    const Buf **whole; /* arrays that are read otherwise than to be added to a sum */
    int nwhole, cap_whole;
    Memo reg;   /* the error of a register */
    int *depth; /* of each local: loops of entries around its let */
    int *lanes; /* and vector loops */
    char *use;  /* of each register: what reads it */
} Sums;

/* Of a register that is only added to elements with errors, the error goes to theirs. */
enum { UNREAD, CARRIED, READ };

/* Whether only a run tells how often the loop runs. */
static bool is_open(const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_SERIAL &&
           !(n->lo->op == OP_int && n->hi->op == OP_int);
}

/* Whether each iteration of the loop has an element of its own. */
static bool is_own(Prog *p, Expr *index, Local *l)
{
    bool own = false;
    LoopIndex x;

    if (!tree_mentions(p, index, l))
        return false;
    if (loop_index(index, l, &x))
        return x.stride != 0;
    for (int i = 0; i < 2 && (index->op == OP_add || index->op == OP_mul); i++)
        own = own || is_own(p, index->arg[i], l);
    return own || lower_index_owner(index) == l;
}

static bool is_float(Type t)
{
    return t == T_f32 || t == T_f64;
}

/* A sum whose terms are of its own type: others are rounded as they are added. */
static bool is_sum(const Node *n)
{
    return n->kind == N_STORE && n->op == A_ADD && n->nat == 0 &&
           (n->value->type == n->out->type || n->value->type == T_real);
}

static bool sets(const Node *n, const Buf *b)
{
    bool any = n->kind == N_STORE && n->op == A_SET && n->out->op == OP_cell && n->out->buf == b;

    for (int i = 0; i < n->nbody && !any; i++)
        any = sets(n->body[i], b);
    return any;
}

/* Whether sums into the array go on from iteration to iteration of the loop: an array of the
 * iteration may begin anew in each. */
static bool goes_on(const Node *loop, const Buf *b)
{
    return is_open(loop) && !(loop_is_work(b) && sets(loop, b));
}

/* Whether the store adds to an element that other iterations add to as well. */
static bool meets_again(const Sums *s, const Node *n, const Nest *nest)
{
    if (!is_sum(n) || n->out->op != OP_cell || !is_float(n->out->buf->type))
        return false;
    for (; nest != NULL; nest = nest->outer)
        if (goes_on(nest->loop, n->out->buf) &&
            !is_own(s->k->p, n->out->arg[0], nest->loop->local))
            return true;
    return false;
}

static bool is_again(const Sums *s, const Node *n, int open, int vectors)
{
    const Local *l = is_sum(n) && n->out->op == OP_local ? n->out->local : NULL;

    return l != NULL && is_float(l->type) && s->depth[l->id] < open && s->lanes[l->id] == vectors;
}

static int find_buf(const Sums *s, const Buf *b)
{
    int i = 0;

    while (i < s->n && s->added[i].buf != b)
        i++;
    return i;
}

/* An array of the same shape, beside it. */
static Buf *error_array(Prog *p, const Buf *b)
{
    Buf t = { .type = b->type,
              .kind = loop_is_work(b) ? b->kind : B_TEMP,
              .written = true,
              .nslot = b->nslot,
              .nfull = b->nfull,
              .slot = b->slot,
              .full = b->full,
              .place_in_full = b->place_in_full };

    t.name = lower_beside(p, b, "err");
    return loop_own(p, &t);
}

static bool is_whole(const Sums *s, const Buf *b)
{
    bool whole = !loop_is_own(b) || loop_is_work(b);

    for (int i = 0; i < s->nwhole && !whole; i++)
        whole = s->whole[i] == b;
    return whole;
}

static void note_buf(Sums *s, Buf *b)
{
    Prog *p = s->k->p;
    int i = find_buf(s, b);

    if (i == s->n) {
        s->added = arena_grow(p->arena, s->added, s->n, &s->cap, sizeof *s->added);
        s->added[s->n++] = (Added){ b, error_array(p, b), !is_whole(s, b), false, false };
    }
    s->added[i].here = true;
}

static void see_read(Expr *e, void *ctx)
{
    Sums *s = ctx;

    if (e->op == OP_local && e->local->id < s->nlocal)
        s->use[e->local->id] = READ;
}

/* Whether the store puts a register into the sum of a part. */
static bool sets_part(const Sums *s, const Node *n)
{
    return n->kind == N_STORE && n->op == A_SET && n->nat == 0 && n->out->op == OP_cell &&
           n->value->op == OP_local && n->value->type == n->out->type &&
           n->out->buf->kind == B_TEMP && !is_whole(s, n->out->buf);
}

static void note_use(Sums *s, const Node *n, bool again)
{
    const Local *l = again && n->value->op == OP_local ? n->value->local : NULL;
    Memo met = { 0 };

    if (l != NULL)
        s->use[l->id] = s->use[l->id] == READ ? READ : CARRIED;
    else if (n->value != NULL)
        ir_visit(s->k->p, n->value, see_read, s, &met);
}

static void note_local(Sums *s, const Node *n, int open, int vectors)
{
    if (n->kind != N_LET)
        return;
    s->depth[n->local->id] = open;
    s->lanes[n->local->id] = vectors;
}

static void see_whole(Expr *e, void *ctx)
{
    Sums *s = ctx;

    if (e->op != OP_cell || is_whole(s, e->buf))
        return;
    s->whole = arena_grow(s->k->p->arena, s->whole, s->nwhole, &s->cap_whole, sizeof *s->whole);
    s->whole[s->nwhole++] = e->buf;
}

/* Finds arrays of the kernel's own that are not only added to sums. */
static void find_whole(Sums *s, const Node *n, const Nest *outer, int open, int vectors)
{
    Nest here = { n, outer };
    const Nest *nest = n->kind == N_FOR ? &here : outer;
    bool again = meets_again(s, n, nest) || is_again(s, n, open, vectors) ||
                 (n->kind == N_LET && loop_assigns(s->phase, n->local));
    Memo met = { 0 };

    note_local(s, n, open, vectors);
    if (n->value != NULL && !(again && n->value->op == OP_cell))
        ir_visit(s->k->p, n->value, see_whole, s, &met);
    open += is_open(n);
    vectors += n->kind == N_FOR && n->lanes > 1;
    for (int i = 0; i < n->nbody; i++)
        find_whole(s, n->body[i], nest, open, vectors);
}

/* Finds what is added to again; registers get an error that is named, not yet declared. */
static void find_sums(Sums *s, const Node *n, const Nest *outer, int open, int vectors)
{
    Prog *p = s->k->p;
    Nest here = { n, outer };
    const Nest *nest = n->kind == N_FOR ? &here : outer;
    bool again = meets_again(s, n, nest) || sets_part(s, n);

    note_local(s, n, open, vectors);
    if (again)
        note_buf(s, n->out->buf);
    note_use(s, n, again);
    if (is_again(s, n, open, vectors)) {
        Expr **err = ir_memo(p, &s->reg, n->out);

        if (*err == NULL)
            *err = loop_use(p, loop_local(p, NULL, n->out->local->type, n->out->local->lanes));
    }
    open += is_open(n);
    vectors += n->kind == N_FOR && n->lanes > 1;
    for (int i = 0; i < n->nbody; i++)
        find_sums(s, n->body[i], nest, open, vectors);
}

static Node *store(Prog *p, const char *label, AssignOp op, Expr *out, Expr *value)
{
    return loop_node(p, &(Node){ .kind = N_STORE,
                                 .label = label,
                                 .op = op,
                                 .out = out,
                                 .value = value });
}

/* What rounding takes from a + b. */
static Expr *lost(Prog *p, Expr *a, Expr *b)
{
    Expr *sum = ir_op2(p, OP_add, a, b), *part = ir_op2(p, OP_sub, sum, a);

    return ir_op2(p, OP_add, ir_op2(p, OP_sub, a, ir_op2(p, OP_sub, sum, part)),
                  ir_op2(p, OP_sub, b, part));
}

typedef struct Run { /* stores that follow each other: errors first, as elements are read there */
    NodeList err, sum;
} Run;

static void flush(Sums *s, Run *run, NodeList *to)
{
    tree_append_all(s->k->p, to, &run->err);
    tree_append_all(s->k->p, to, &run->sum);
    *run = (Run){ { 0 }, { 0 } };
}

static bool has_stored(const Run *run, Expr *out)
{
    for (int i = 0; i < run->sum.n; i++)
        if (run->sum.node[i]->out == out)
            return true;
    return false;
}

static Expr *error_cell(const Sums *s, Expr *cell)
{
    return loop_cell(s->k->p, s->added[find_buf(s, cell->buf)].err, cell->arg, cell->nargs,
                     cell->k);
}

/* The error of a register, or of a part, that is carried to that of a sum; or NULL. */
static Expr *carried(Sums *s, Expr *e)
{
    if (e->op == OP_local && e->local->id < s->nlocal && s->use[e->local->id] == CARRIED)
        return *ir_memo(s->k->p, &s->reg, e);
    if (e->op == OP_cell && find_buf(s, e->buf) < s->n && s->added[find_buf(s, e->buf)].part)
        return error_cell(s, e);
    return NULL;
}

static void add_store(Sums *s, Run *run, const Node *n, Expr *err)
{
    Prog *p = s->k->p;
    Expr *more = carried(s, n->value), *less = lost(p, n->out, n->value);

    if (n->op == A_SET) { /* the sum of a part: nothing is added to it */
        tree_append(p, &run->err, store(p, n->label, A_SET, err, more));
        tree_append(p, &run->sum, loop_node(p, n));
        return;
    }
    if (more != NULL)
        less = ir_op2(p, OP_add, more, less);
    tree_append(p, &run->err, store(p, n->label, A_ADD, err, less));
    tree_append(p, &run->sum,
                 store(p, n->label, A_SET, n->out, ir_op2(p, OP_add, n->out, n->value)));
}

/* The error of what a store adds to again; NULL: it does not. */
static Expr *error_of(Sums *s, const Node *n, const Nest *nest, int open, int vectors)
{
    if (meets_again(s, n, nest) || (sets_part(s, n) && carried(s, n->value) != NULL))
        return error_cell(s, n->out);
    return is_again(s, n, open, vectors) ? *ir_memo(s->k->p, &s->reg, n->out) : NULL;
}

static Node *rewrite(Sums *s, const Node *n, const Nest *outer, int open, int vectors);

/* A register begins with no error, or with that of a part, and takes it after each loop that adds
 * to it. */
static void put_lets(Sums *s, const Node *n, NodeList *to)
{
    Prog *p = s->k->p;
    Expr *err = n->kind == N_LET ? *ir_memo(p, &s->reg, loop_use(p, n->local)) : NULL;
    Expr *first = err != NULL ? carried(s, n->value) : NULL;

    if (err != NULL)
        tree_append(p, to,
                     loop_node(p, &(Node){ .kind = N_LET,
                                           .label = n->label,
                                           .local = (Local *)err->local,
                                           .value = first != NULL ? first : ir_real(p, 0.0) }));
}

static void put_ends(Sums *s, Node *const *before, int n, const Node *loop, NodeList *to)
{
    Prog *p = s->k->p;

    for (int i = 0; i < n && loop->kind == N_FOR; i++) {
        Expr *reg = before[i]->kind == N_LET ? loop_use(p, before[i]->local) : NULL;
        Expr *err = reg != NULL ? *ir_memo(p, &s->reg, reg) : NULL;

        if (err == NULL || !loop_assigns(loop, reg->local) || carried(s, reg) != NULL)
            continue;
        tree_append(p, to, store(p, before[i]->label, A_ADD, reg, err));
        tree_append(p, to, store(p, before[i]->label, A_SET, err, ir_real(p, 0.0)));
    }
}

/* A loop over all elements of an array, a phase of its own or, of an array of the iteration, a part
 * of one: its errors begin, or are added to it. */
static Node *everywhere(const Sums *s, const Added *a, bool add)
{
    Prog *p = s->k->p;
    Local *x = loop_local(p, "x", T_i64, 1);
    Expr *at = loop_use(p, x), *all = ir_int(p, 1);
    Expr *err = loop_cell(p, a->err, &at, 1, 1), *out = loop_cell(p, a->buf, &at, 1, 1);
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(a->buf, dim);
    NodeList body = { 0 };
    Node *phase, *lanes;

    for (int d = 0; d < n; d++)
        all = tree_mul(p, all, lower_dim_extent(p, a->buf, dim[d]));
    tree_append(p, &body,
                 add ? store(p, a->err->name, A_ADD, out, err)
                     : store(p, a->err->name, A_SET, err, ir_real(p, 0.0)));
    phase = tree_with_body(p,
                            &(Node){ .kind = N_FOR,
                                     .how = loop_is_work(a->buf) ? FOR_SERIAL : FOR_PARALLEL,
                                     .label = a->err->name,
                                     .local = x,
                                     .lo = ir_int(p, 0),
                                     .hi = all },
                            &body);
    lanes = lower_in_lanes(p, phase, s->unit);
    return lanes != NULL ? lanes : phase;
}

/* Around the outermost loop that adds to an array of the iteration: its errors. */
static void put_work(Sums *s, const Node *loop, const Nest *nest, bool add, NodeList *to)
{
    for (int i = 0; i < s->n && loop->kind == N_FOR; i++) {
        const Buf *b = s->added[i].buf;
        bool outermost = loop_is_work(b) && loop_writes(loop, b) && goes_on(loop, b);

        for (const Nest *n = nest; n != NULL && outermost; n = n->outer)
            outermost = !goes_on(n->loop, b);
        if (outermost)
            tree_append(s->k->p, to, everywhere(s, &s->added[i], add));
    }
}

static NodeList rewrite_list(Sums *s, const Node *n, const Nest *nest, int open, int vectors)
{
    NodeList out = { 0 };
    Run run = { { 0 }, { 0 } };

    for (int i = 0; i < n->nbody; i++) {
        const Node *b = n->body[i];
        Expr *err = error_of(s, b, nest, open, vectors);

        if (err == NULL || has_stored(&run, b->out))
            flush(s, &run, &out);
        if (err != NULL) {
            add_store(s, &run, b, err);
            continue;
        }
        put_work(s, b, nest, false, &out);
        tree_append(s->k->p, &out, rewrite(s, b, nest, open, vectors));
        put_work(s, b, nest, true, &out);
        put_lets(s, b, &out);
        put_ends(s, n->body, i, b, &out);
    }
    flush(s, &run, &out);
    return out;
}

static Node *rewrite(Sums *s, const Node *n, const Nest *outer, int open, int vectors)
{
    Nest here = { n, outer };
    const Nest *nest = n->kind == N_FOR ? &here : outer;
    NodeList body = rewrite_list(s, n, nest, open + is_open(n),
                                 vectors + (n->kind == N_FOR && n->lanes > 1));

    return tree_with_body(s->k->p, n, &body);
}

static bool has_phases(const Added *a)
{
    return a->here && !loop_is_work(a->buf);
}

static void compensate(Sums *s, Node *phase, NodeList *out)
{
    Prog *p = s->k->p;

    for (int i = 0; i < s->n; i++)
        s->added[i].here = false;
    find_sums(s, phase, NULL, 0, 0);
    for (int i = 0; i < s->n; i++) {
        Added *a = &s->added[i];

        if (has_phases(a) && !(a->part && a->begun))
            tree_append(p, out, everywhere(s, a, false));
        a->begun = a->begun || a->here;
    }
    tree_append(p, out, rewrite(s, phase, NULL, 0, 0));
    for (int i = 0; i < s->n; i++)
        if (has_phases(&s->added[i]) && !s->added[i].part)
            tree_append(p, out, everywhere(s, &s->added[i], true));
}

void lower_compensate(Kernel *k, const VectorUnit *unit)
{
    Prog *p = k->p;
    Sums s = { .k = k, .unit = unit, .nlocal = p->nlocal };
    NodeList out = { 0 };

    s.depth = arena_array(p->arena, p->nlocal + 1, sizeof *s.depth);
    s.lanes = arena_array(p->arena, p->nlocal + 1, sizeof *s.lanes);
    s.use = arena_array(p->arena, p->nlocal + 1, sizeof *s.use);
    for (int i = 0; i < k->n; i++) {
        s.phase = k->phase[i];
        find_whole(&s, k->phase[i], NULL, 0, 0);
    }
    for (int i = 0; i < k->n; i++)
        if (loop_builds(k->phase[i]) == NULL)
            compensate(&s, k->phase[i], &out);
        else
            tree_append(p, &out, k->phase[i]);
    k->phase = out.node;
    k->n = out.n;
    k->cap = out.cap;
    lower_done(k, p->stage);
}
