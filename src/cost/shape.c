/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From a program, its sizes and its structure to what it asks of a machine: flops, bytes, rows that
 * are gathered.  An operation runs once for each value of the variables that it depends on, so what
 * a loop does not change is not counted in it. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

typedef struct Walk {
    Arena *arena;
    Prog *p;
    const Env *env;
    const Machine *machine;
    const Stmt *stmt;
    const Assign *assign;
    double factor[IR_MAX_BINDS]; /* mean iterations of each binder under what it hangs on */
    uint64_t *mask;              /* by expression: the binders that it depends on */
    bool *data;                  /* by expression: only the data tell its value */
    bool gathers;                /* the assignment has rows of its own that are gathered; */
    double singles;              /* and so many single elements */
    Memo counted;                /* operations of the statement: its assignments share them */
    CostShape *out;
} Walk;

static double times(const Walk *w, uint64_t mask)
{
    double n = 1;

    for (int i = 0; i < w->stmt->nbind; i++)
        n *= mask >> i & 1 ? w->factor[i] : 1;
    return n;
}

static uint64_t index_mask(const Walk *w, Expr *e);

static uint64_t var_mask(const Walk *w, const Var *v)
{
    uint64_t mask = v->parent != NULL ? index_mask(w, v->parent) : 0;

    for (int i = 0; i < w->stmt->nbind; i++)
        mask |= w->stmt->bind[i] == v ? UINT64_C(1) << i : 0;
    return mask;
}

/* Of what a variable hangs on, which no visit of an expression passes. */
static uint64_t index_mask(const Walk *w, Expr *e)
{
    uint64_t mask = 0;

    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc)
        return var_mask(w, e->var);
    for (int i = 0; i < e->nargs; i++)
        mask |= index_mask(w, e->arg[i]);
    return mask;
}

static bool hangs_on_data(Expr *e);

static bool var_is_data(const Var *v)
{
    return v->parent != NULL && hangs_on_data(v->parent);
}

static bool hangs_on_data(Expr *e)
{
    bool data = e->op == OP_load || (e->op == OP_coord && e->var->axis->coord[e->k].kind == C_LOAD);

    if (e->op == OP_var || e->op == OP_coord)
        data = data || var_is_data(e->var);
    for (int i = 0; i < e->nargs; i++)
        data = data || hangs_on_data(e->arg[i]);
    return data;
}

/* Of a computed coordinate, whose expression is of the variables of axes: what of the binders it
 * depends on, which may be less than its own variable hangs on (a column of a block is the same in
 * all its rows), and whether a loaded coordinate is in it. */
static uint64_t computed_mask(const Walk *w, Expr *e, bool *data)
{
    uint64_t mask = 0;

    for (int i = 0; i < e->nargs; i++)
        mask |= computed_mask(w, e->arg[i], data);
    if (e->op != OP_var && e->op != OP_coord && e->op != OP_pos && e->op != OP_loc)
        return mask;
    for (int i = 0; i < w->stmt->nbind; i++) {
        const Var *v = w->stmt->bind[i];
        const Coord *c = e->op == OP_coord ? &v->axis->coord[e->k] : NULL;

        if (v->axis != e->var->axis)
            continue;
        *data = *data || (c != NULL && c->kind == C_LOAD);
        if (c != NULL && c->kind == C_EXPR)
            return computed_mask(w, c->expr, data);
        return c != NULL && c->kind == C_LOAD ? var_mask(w, v) : UINT64_C(1) << i;
    }
    return ~UINT64_C(0); /* it is no binder: all may change it */
}

/* An index that is a computed coordinate with data in it. */
static bool is_block_index(const Walk *w, Expr *at, uint64_t *mask)
{
    const Coord *c = at->op == OP_coord ? &at->var->axis->coord[at->k] : NULL;
    bool data = false;

    if (c == NULL || c->kind != C_EXPR)
        return false;
    *mask = computed_mask(w, c->expr, &data) & var_mask(w, at->var);
    return data;
}

static double elements(const Walk *w, const Buf *b)
{
    Layout layout;

    ir_layout(w->arena, w->p, w->env, b, &layout);
    return (double)layout.n;
}

/* How many rows stay in a cache with room for `room` of them, and what share of the reads they
 * serve, if rows are read at random, each as often as its degree says: a row is there if it was
 * read in the last t reads, with the t that fills the cache (Che's approximation). */
static double hit_rate(const int64_t *hist, int64_t most, double reads, double room)
{
    double low = 0, high = reads, hits = 0;

    for (int step = 0; step < 60; step++) {
        double t = (low + high) / 2, n = 0;

        for (int64_t d = 1; d <= most; d++)
            n += hist[d] == 0 ? 0 : (double)hist[d] * -expm1(-(double)d * t / reads);
        *(n < room ? &low : &high) = t;
    }
    for (int64_t d = 1; d <= most; d++)
        hits += hist[d] == 0 ? 0 : (double)hist[d] * (double)d * -expm1(-(double)d * low / reads);
    return hits / reads;
}

static double alike(const Walk *w, const CostGather *g, const Array *coord)
{
    double cache = (double)w->machine->cache[g->table > (double)w->machine->cache[2] ? 2 : 1];
    int64_t rows = (int64_t)(g->table / g->row), most = 0, *degree, *hist;
    double hits;

    if (g->table <= cache || coord->data == NULL || coord->n == 0 || rows <= 0)
        return g->table;
    degree = arena_array(w->arena, rows, sizeof *degree);
    for (int64_t i = 0; i < coord->n; i++) {
        int64_t c = ir_array_int(coord, i);

        if (c >= 0 && c < rows && ++degree[c] > most)
            most = degree[c];
    }
    hist = arena_array(w->arena, most + 1, sizeof *hist);
    for (int64_t c = 0; c < rows; c++)
        hist[degree[c]]++;
    hits = hit_rate(hist, most, (double)coord->n, cache / g->row);
    return hits > 0 ? fmin(g->table, fmax(cache, cache / hits)) : g->table;
}

/* Reads of short rows that go on where the one before was, or in the next line, come in order. */
static double count_far(const CostGather *g, const Array *coord)
{
    double each = CACHE_LINE / g->row;
    int64_t last = -1, n = 0;

    if (g->row >= CACHE_LINE || coord->data == NULL || coord->n == 0)
        return g->count;
    for (int64_t i = 0; i < coord->n; i++) {
        int64_t at = ir_array_int(coord, i), line = (int64_t)((double)at / each);

        n += at >= 0 && line != last && line != last + 1;
        last = at >= 0 ? line : last;
    }
    return g->count * (double)n / (double)coord->n;
}

/* Parts of a format gather from one table, and so they count as one. */
static void put_gather(CostShape *out, const CostGather *g)
{
    for (int i = 0; i < out->ngather; i++) {
        CostGather *a = &out->gather[i];

        if (a->buf == g->buf && a->row == g->row && a->write == g->write &&
            a->shared == g->shared && a->fixed == g->fixed) {
            a->like = (a->like * a->count + g->like * g->count) / (a->count + g->count);
            a->count += g->count;
            a->far += g->far;
            return;
        }
    }
    if (out->ngather < COST_GATHERS)
        out->gather[out->ngather++] = *g;
}

/* Whether the innermost loop that chooses a row is as long as any other of its kind. */
static bool is_fixed(const Walk *w, uint64_t outer)
{
    int i = w->stmt->nbind - 1;

    while (i >= 0 && !(outer >> i & 1))
        i--;
    return i >= 0 && w->stmt->bind[i]->axis->extent == X_EXPR;
}

static void add_gather(Walk *w, Expr *load, int slot, bool write)
{
    Expr *at = load->arg[slot];
    bool hangs = at->op == OP_var; /* the entry itself is in order, its parent is not */
    uint64_t inner = w->mask[at->id], outer = hangs ? index_mask(w, at->var->parent) : inner;
    const Array none = { NULL, 0, T_none }, *coord = &none;
    double bytes = ir_type[load->buf->type].bytes;
    CostGather g = { .buf = load->buf, .element = bytes, .write = write };

    g.shared = is_block_index(w, at, &outer);
    inner = g.shared ? outer : inner;
    for (int i = 0; i < load->nargs; i++)
        if (i != slot)
            *(i < slot ? &outer : &inner) |= w->mask[load->arg[i]->id];
    g.count = times(w, outer);
    g.row = bytes * times(w, inner & ~outer);
    g.table = bytes * elements(w, load->buf);
    if (g.row <= 0 || g.count <= 0)
        return;
    at = at->op == OP_at ? at->arg[0] : at;
    if (!hangs && at->op == OP_coord && at->var->axis->coord[at->k].kind == C_LOAD)
        coord = &w->env->coord[at->var->axis->id][at->k];
    g.like = w->machine != NULL ? alike(w, &g, coord) : g.table;
    g.far = w->machine != NULL ? count_far(&g, coord) : g.count;
    g.fixed = is_fixed(w, outer);
    w->gathers = w->gathers || (g.row > bytes && !g.shared);
    w->singles = fmax(w->singles, g.row <= bytes ? g.count : 0);
    put_gather(w->out, &g);
}

/* Whether iterations that run in lanes have elements that are a row apart: the last index is the
 * same in all of them. */
static bool is_turned(const Walk *w, const Expr *load)
{
    return load->nargs > 1 && w->mask[load->arg[load->nargs - 1]->id] == 0 &&
           w->mask[load->id] != 0;
}

static void add_load(Walk *w, Expr *load)
{
    bool out = load == w->assign->out;
    double bytes = times(w, w->mask[load->id]) * ir_type[load->buf->type].bytes;
    uint64_t unused;

    *(out ? &w->out->stores : &w->out->loads) += bytes;
    for (int i = 0; i < load->nargs; i++) {
        Expr *at = load->arg[i];

        if (at->op == OP_var ? var_is_data(at->var)
                             : w->data[at->id] || (!out && is_block_index(w, at, &unused))) {
            add_gather(w, load, i, out);
            return;
        }
    }
}

typedef struct OpCost { /* of one result that is a float, or a comparison of floats */
    double flops; /* as a program states them */
    double other; /* instructions that are no flops */
    int call;     /* 1 + CostCall; 0: none */
} OpCost;

/* A function counts as ten flops, about what its polynomial has; how long it takes was measured. */
static const OpCost op_cost[OP_COUNT] = {
    [OP_neg] = { 1, 0, 0 },
    [OP_add] = { 1, 0, 0 },
    [OP_sub] = { 1, 0, 0 },
    [OP_mul] = { 1, 0, 0 },
    [OP_fma] = { 2, 0, 0 },
    [OP_min] = { 1, 1, 0 }, /* and a test for NaN */
    [OP_max] = { 1, 1, 0 },
    [OP_relu] = { 1, 1, 0 },
    [OP_abs] = { 1, 0, 0 },
    [OP_sign] = { 0, 3, 0 },
    [OP_step] = { 0, 2, 0 },
    [OP_select] = { 0, 1, 0 },
    [OP_lt] = { 0, 1, 0 },
    [OP_le] = { 0, 1, 0 },
    [OP_gt] = { 0, 1, 0 },
    [OP_ge] = { 0, 1, 0 },
    [OP_eq] = { 0, 1, 0 },
    [OP_ne] = { 0, 1, 0 },
    [OP_f32] = { 0, 1, 0 },
    [OP_f64] = { 0, 1, 0 },
    [OP_div] = { 1, 0, 1 + COST_DIV },
    [OP_exp] = { 10, 0, 1 + COST_EXP },
    [OP_log] = { 10, 0, 1 + COST_LOG },
    [OP_sqrt] = { 10, 0, 1 + COST_SQRT },
    [OP_rsqrt] = { 10, 0, 1 + COST_RSQRT },
    [OP_sin] = { 10, 0, 1 + COST_SIN },
    [OP_cos] = { 10, 0, 1 + COST_COS },
    [OP_tanh] = { 10, 0, 1 + COST_TANH },
    [OP_sigmoid] = { 10, 0, 1 + COST_SIGMOID },
    [OP_silu] = { 10, 0, 1 + COST_SILU },
};

/* What an expression does, once for each value of the variables that it depends on.  An operator of
 * literals alone is folded, or computed once. */
static void add_op(Walk *w, const Expr *e)
{
    const OpCost *c = &op_cost[e->op];
    const Expr *of = e->type == T_bool && e->nargs > 0 ? e->arg[0] : e;
    double n = times(w, w->mask[e->id]);
    int wide = of->type == T_f64;

    if (!ir_is_float(of))
        return;
    w->out->flops[wide] += c->flops * n;
    w->out->other[wide] += c->other * n;
    if (c->call > 0)
        w->out->calls[c->call - 1][wide] += n;
}

static void visit(Expr *e, void *ctx)
{
    Walk *w = ctx;
    bool of_var = e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc;

    w->mask[e->id] = of_var ? var_mask(w, e->var) : 0;
    w->data[e->id] = e->op == OP_load || (e->op == OP_coord && hangs_on_data(e));
    for (int i = 0; i < e->nargs; i++) {
        w->mask[e->id] |= w->mask[e->arg[i]->id];
        w->data[e->id] = w->data[e->id] || w->data[e->arg[i]->id];
    }
    if (e->op == OP_load)
        add_load(w, e);
    if (*ir_memo(w->p, &w->counted, e) != NULL)
        return;
    *ir_memo(w->p, &w->counted, e) = e;
    add_op(w, e);
    w->out->turned += e->op == OP_load && is_turned(w, e) ? times(w, w->mask[e->id]) : 0;
}

static void add_assign(Walk *w, const Assign *a)
{
    Memo met = { 0 };
    CostShape *out = w->out;
    double flops[2] = { out->flops[0], out->flops[1] }, loads = out->loads;

    w->assign = a;
    w->gathers = false;
    w->singles = 0;
    ir_visit_assign(w->p, a, visit, w, &met);
    if (a->op == A_ADD && ir_type[a->out->type].floats)
        out->flops[a->out->type == T_f64] += times(w, ~UINT64_C(0));
    if (w->gathers)
        return;
    out->alone += w->singles;
    for (int i = 0; i < 2; i++)
        out->straight[i] += out->flops[i] - flops[i];
    out->straight_loads += out->loads - loads;
}

/* The longest row of a segmented axis, as a share of all: it is not cut. */
static double longest(const Walk *w, const Axis *a)
{
    Span s = ir_axis_span(w->p, w->env, a);
    int64_t most = 0;

    for (int64_t q = 0; s.width < 0 && q < s.parents; q++) {
        int64_t n = ir_span_first(&s, q + 1) - ir_span_first(&s, q);

        most = n > most ? n : most;
    }
    return s.total > 0 ? (double)most / (double)s.total : 0;
}

static void add_stmt(Walk *w, const Stmt *s)
{
    w->stmt = s;
    w->counted = (Memo){ 0 };
    for (int i = 0; i < s->nbind; i++) {
        const Axis *a = s->bind[i]->axis;
        Span span = ir_axis_span(w->p, w->env, a);

        w->factor[i] = (double)span.total / (double)(span.parents > 0 ? span.parents : 1);
        if (a->extent == X_SEG && i == 1)
            w->out->chunk = fmax(w->out->chunk, longest(w, a));
        if (a->extent == X_SEG && i > 0)
            w->out->rows += times(w, (UINT64_C(1) << i) - 1);
    }
    for (int i = 0; i < s->nassign; i++)
        add_assign(w, &s->assign[i]);
}

static void add_buffers(Walk *w)
{
    for (int i = 0; i < w->p->nbuf; i++) {
        const Buf *b = w->p->buf[i];
        double bytes =
            b->kind == B_ARG || b->kind == B_INOUT ? elements(w, b) * ir_type[b->type].bytes : 0;

        w->out->written += b->written ? bytes : 0;
        w->out->read += !b->written || b->kind == B_INOUT ? bytes : 0;
    }
    for (int i = 0; i < w->p->naxis; i++) { /* 4 bytes an index: more is nobody's need */
        const Axis *a = w->p->axis[i];

        w->out->read += 4 * (double)w->env->start[i].n;
        for (int k = 0; k < a->ncoord; k++)
            w->out->read += a->coord[k].kind == C_LOAD ? 4 * (double)w->env->coord[i][k].n : 0;
    }
}

static bool is_built(const Prog *p)
{
    bool built = false;

    for (int i = 0; i < p->naxis; i++)
        built = built || p->axis[i]->extent == X_BUILT;
    return built;
}

void cost_shape(Arena *arena, Prog *p, const Env *env, const Machine *m, CostShape *out)
{
    Walk w = { .arena = arena, .p = p, .env = env, .machine = m, .out = out };

    memset(out, 0, sizeof *out);
    if (p->stage != STAGE_COORDINATES || is_built(p))
        ir_throw(p, ST_LIMIT, "%s: the cost model does not cover programs with built axes or loops",
                 p->name);
    w.mask = arena_array(arena, p->nexpr, sizeof *w.mask);
    w.data = arena_array(arena, p->nexpr, sizeof *w.data);
    for (int i = 0; i < p->nstmt; i++)
        add_stmt(&w, p->stmt[i]);
    add_buffers(&w);
}
