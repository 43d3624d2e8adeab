/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Factors innermost loops of sums of products, as constant relations give them, one loop after
 * the other.  Values that a loop does not change are computed once, before it.  Loops over the
 * same range that share elements become one loop, so that shared elements are loaded and stored
 * once.  Elements that all iterations add to are summed in registers.  Where elements move by a
 * constant, the loop runs in lanes. */
#include "lower/algebra/factor_int.h"
#include "lower/lanes/lanes_int.h"

#include <stdlib.h>

Type lower_factor_type(const Node *loop)
{
    return loop->nbody > 0 && loop->body[0]->kind == N_STORE ? (Type)loop->body[0]->out->type
                                                             : T_none;
}

static bool is_sum(Segments *s, const Node *n, Type type, Local *loop)
{
    LoopIndex x;

    return n->kind == N_STORE && n->op == A_ADD && n->nat == 0 && n->out->op == OP_cell &&
           n->out->buf->type == type && (type == T_f32 || type == T_f64) &&
           loop_index(n->out->arg[0], loop, &x) &&
           lower_is_invariant(s->p, s->phase, n->value, s->kept);
}

typedef struct Element { /* of an element among the sums */
    Expr *cell;
    int array, first; /* the stores that are the first to its array, and to itself */
    int store;
} Element;

static int by_cell(const void *a, const void *b)
{
    const Element *x = a, *y = b;

    if (x->cell->buf != y->cell->buf)
        return (x->cell->buf->id > y->cell->buf->id) - (x->cell->buf->id < y->cell->buf->id);
    if (x->cell != y->cell)
        return (x->cell->id > y->cell->id) - (x->cell->id < y->cell->id);
    return (x->store > y->store) - (x->store < y->store);
}

static int by_place(const void *a, const void *b)
{
    const Element *x = a, *y = b;

    if (x->array != y->array)
        return (x->array > y->array) - (x->array < y->array);
    if (x->first != y->first)
        return (x->first > y->first) - (x->first < y->first);
    return (x->store > y->store) - (x->store < y->store);
}

/* Elements of one array, in the order of by_cell: each is the same as another or surely apart from
 * it, as all are at constant distances. */
static bool are_apart(Element *place, int n)
{
    int64_t low, high, c, d;
    Expr *base = tree_split_index(place->cell->arg[0], &low);
    bool apart = true;

    high = low;
    for (int i = 0; i < n && apart; i++) {
        apart = place[i].cell == place->cell ||
                tree_split_index(place[i].cell->arg[0], &c) == base;
        if (place[i].cell == place->cell)
            continue;
        low = c < low ? c : low;
        high = c > high ? c : high;
    }
    return apart && !int_sub(low, high, &d) && d != INT64_MIN;
}

static void find_firsts(Element *place, int n)
{
    int array = place->store;

    for (int i = 0; i < n; i++) {
        place[i].first = i > 0 && place[i].cell == place[i - 1].cell ? place[i - 1].first
                                                                     : place[i].store;
        array = place[i].store < array ? place[i].store : array;
    }
    for (int i = 0; i < n; i++)
        place[i].array = array;
}

/* Makes the sum of each element that the loop stores to, those of one array side by side; `which`
 * gets that of each store.  False: two elements may be one. */
static bool place_sums(Prog *p, Path *path, int *which)
{
    const Node *n = path->loop;
    Element *place = arena_array(p->arena, n->nbody, sizeof *place);
    LoopIndex x;

    for (int i = 0; i < n->nbody; i++)
        place[i] = (Element){ .cell = n->body[i]->out, .store = i };
    qsort(place, (size_t)n->nbody, sizeof *place, by_cell);
    for (int i = 0, end; i < n->nbody; i = end) {
        for (end = i + 1; end < n->nbody && place[end].cell->buf == place[i].cell->buf;)
            end++;
        if (!are_apart(&place[i], end - i))
            return false;
        find_firsts(&place[i], end - i);
    }
    qsort(place, (size_t)n->nbody, sizeof *place, by_place);
    for (int i = 0; i < n->nbody; i++) {
        const Node *store = n->body[place[i].store];

        if (i == 0 || place[i].cell != place[i - 1].cell) {
            loop_index(store->out->arg[0], n->local, &x);
            path->f.sum[path->f.n++] =
                (Sum){ .cell = store->out, .label = store->label, .moves = x.stride != 0 };
        }
        which[place[i].store] = path->f.n - 1;
    }
    return true;
}

static void add_moving(Prog *p, Path *path, Memo *met, Expr *e)
{
    Expr **known = ir_memo(p, met, e);

    if (*known == NULL)
        path->moving[path->nmoving++] = *known = e;
}

typedef struct Count {
    Prog *p;
    Path *path;
    Memo uses;
} Count;

static void see_operation(Expr *e, void *ctx)
{
    Count *c = ctx;

    if (ir_is_float(e) && e->nargs > 0 && e->op != OP_cell &&
        tree_uses(c->p, e, c->path->loop->local, &c->uses))
        c->path->before++;
}

/* What moves, and how many operations there are. */
static bool look_at(Segments *s, Path *path)
{
    Count count = { .p = s->p, .path = path };
    Memo met = { 0 }, moving = { 0 };
    int most = 0;

    for (int i = 0; i < path->f.n; i++)
        most += 1 + LIMIT_FACTORS * path->f.sum[i].poly.n;
    path->moving = arena_array(s->p->arena, most, sizeof *path->moving);
    for (int i = 0; i < path->f.n; i++) {
        const Sum *sum = &path->f.sum[i];

        if (sum->moves)
            add_moving(s->p, path, &moving, sum->cell);
        for (int k = 0; k < sum->poly.n; k++) {
            if (sum->poly.term[k].n == 0)
                return false;
            for (int j = 0; j < sum->poly.term[k].n; j++)
                add_moving(s->p, path, &moving, sum->poly.term[k].f[j]);
        }
    }
    for (int i = 0; i < path->loop->nbody; i++)
        ir_visit(s->p, path->loop->body[i]->value, see_operation, &count, &met);
    path->before += path->loop->nbody;
    return true;
}

/* Whether what is computed before the loop, and stored after it, is there although the loop may not
 * run. */
static bool is_safe(Segments *s, const Path *path)
{
    const Node *n = path->loop;

    if (n->lo->op == OP_int && n->hi->op == OP_int)
        return n->lo->i < n->hi->i;
    for (int i = 0; i < path->f.n; i++) {
        const Sum *sum = &path->f.sum[i];

        if (!sum->moves && !lower_is_bound_inside(s->p, s->binders, sum->cell))
            return false;
        for (int k = 0; k < sum->poly.n; k++)
            if (sum->poly.term[k].c != NULL &&
                !lower_is_bound_sure(s->p, s->binders, sum->poly.term[k].c))
                return false;
    }
    return true;
}

/* How often the loop runs, in lanes. */
double lower_factor_turns(const Segments *s, const Node *n)
{
    bool known = n->lo->op == OP_int && n->hi->op == OP_int;
    int64_t trips = known ? n->hi->i - n->lo->i : s->p->policy.usual_trips;
    int64_t lanes = lanes_of(s->how.unit, lower_factor_type(n));

    return (double)((trips + lanes - 1) / lanes);
}

bool lower_factor_path(Segments *s, const Node *n, Path *path)
{
    Type type = n->kind == N_FOR ? lower_factor_type(n) : T_none;
    Memo uses = { 0 };
    int *which;

    *path = (Path){ .loop = n };
    if (n->kind != N_FOR || n->how != FOR_SERIAL || n->lanes > 1 || n->nbody == 0 ||
        !lower_is_invariant(s->p, s->phase, n->lo, s->kept) ||
        !lower_is_invariant(s->p, s->phase, n->hi, s->kept))
        return false;
    path->f.sum = arena_array(s->p->arena, n->nbody, sizeof *path->f.sum);
    which = arena_array(s->p->arena, n->nbody, sizeof *which);
    for (int i = 0; i < n->nbody; i++)
        if (!is_sum(s, n->body[i], type, n->local))
            return false;
    if (!place_sums(s->p, path, which))
        return false;
    for (int i = 0; i < n->nbody; i++)
        if (!lower_expand(s->p, n->body[i]->value, type, n->local, &uses,
                          &path->f.sum[which[i]].poly))
            return false;
    return look_at(s, path) && is_safe(s, path);
}

bool lower_factor_range(const Path *a, const Path *b)
{
    return a->loop->lo == b->loop->lo && a->loop->hi == b->loop->hi &&
           lower_factor_type(a->loop) == lower_factor_type(b->loop);
}

/* Registers that the path wants beside those that the group has. */
static int new_parts(const Group *g, const Path *path)
{
    int n = path->f.nparts;

    for (int i = 0; i < path->f.n && !path->f.apart; i++) {
        bool has = false;

        for (int k = 0; k < g->n && !path->f.sum[i].moves; k++)
            for (int j = 0; j < g->path[k]->f.n && !g->path[k]->f.apart; j++)
                has = has || g->path[k]->f.sum[j].cell == path->f.sum[i].cell;
        n -= has;
    }
    return n;
}

static bool may_join(const Group *g, const Path *path)
{
    return g->n == 0 || (lower_factor_range(g->path[0], path) &&
                         g->cost + path->f.cost <= g->s->p->policy.loop_operations &&
                         g->parts + new_parts(g, path) <= g->s->p->policy.loop_sums);
}

static void join(Group *g, Path *path)
{
    g->parts += new_parts(g, path);
    g->cost += path->f.cost;
    g->path[g->n++] = path;
}

/* Whether two elements are one in different iterations of the loop. */
static bool meet(const Node *loop, const LoopIndex *a, const LoopIndex *b)
{
    bool known = loop->lo->op == OP_int && loop->hi->op == OP_int;
    int64_t d;

    return loop_is_near(a, b) && !int_sub(a->constant, b->constant, &d) && d != 0 &&
           d % a->stride == 0 &&
           !(known && (d / a->stride >= loop->hi->i - loop->lo->i ||
                       d / a->stride <= loop->lo->i - loop->hi->i));
}

/* Elements that are stored to lie side by side, or fill what is between two iterations. */
static bool fill_windows(const Group *g, const Node *loop)
{
    int n = 0, most = 0, *window;
    LoopIndex *x;
    bool filled = true;

    for (int i = 0; i < g->n; i++)
        most += g->path[i]->f.n;
    x = arena_array(g->s->p->arena, most, sizeof *x);
    window = arena_array(g->s->p->arena, most, sizeof *window);
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->path[i]->f.n; k++) {
            const Sum *sum = &g->path[i]->f.sum[k];

            if (sum->moves && loop_index_of(sum->cell, loop->local, &x[n]))
                n++;
        }
    loop_windows(g->s->p, x, n, window);
    for (int i = 0; i < n; i++) {
        filled = filled && (x[i].stride == 1 || window[i] >= 0);
        for (int k = 0; k < i; k++)
            filled = filled && !meet(loop, &x[i], &x[k]);
    }
    return filled;
}

int lower_factor_lanes(const Group *g)
{
    const Node *n = g->path[0]->loop;
    Type type = lower_factor_type(n);

    for (int i = 0; i < g->n; i++) {
        for (int k = 0; k < g->path[i]->nmoving && g->path[i]->moving != g->s->stepped; k++)
            if (!lower_can_step(g->s->p, g->path[i]->moving[k], n->local, type))
                return 0;
        g->s->stepped = g->path[i]->moving;
    }
    return fill_windows(g, n) ? lanes_of(g->s->how.unit, type) : 0;
}

/* A value that the loop does not change, as a local. */
Expr *lower_factor_fixed(void *ctx, Expr *e)
{
    Group *g = ctx;
    Prog *p = g->s->p;
    Expr **known = ir_memo(p, &g->s->let, e);
    Local *l;

    if (e->nargs == 0)
        return e;
    if (*known == NULL) {
        l = loop_local(p, NULL, (Type)e->type, 1);
        tree_append(p, &g->before,
                     loop_node(p, &(Node){ .kind = N_LET,
                                           .label = g->path[0]->loop->label,
                                           .local = l,
                                           .value = e }));
        *known = loop_use(p, l);
    }
    return *known;
}

void lower_factor_store(Group *g, NodeList *to, const Sum *sum, Expr *out, Expr *value)
{
    tree_append(g->s->p, to,
                 loop_node(g->s->p, &(Node){ .kind = N_STORE,
                                             .label = sum->label,
                                             .op = A_ADD,
                                             .out = out,
                                             .value = value }));
}

Local *lower_factor_register(Group *g, NodeList *to, const Sum *sum, int lanes, Expr *value)
{
    Local *l = loop_local(g->s->p, NULL, (Type)sum->cell->type, lanes > 1 ? lanes : 1);

    tree_append(g->s->p, to,
                 loop_node(g->s->p, &(Node){ .kind = N_LET,
                                             .label = sum->label,
                                             .local = l,
                                             .value = value }));
    return l;
}

/* What path i adds to this element, or NULL. */
static Sum *same_sum(const Group *g, int i, Expr *cell)
{
    for (int k = 0; k < g->path[i]->f.n; k++)
        if (g->path[i]->f.sum[k].cell == cell)
            return &g->path[i]->f.sum[k];
    return NULL;
}

static bool has_sum(const Group *g, int from, int to, Expr *cell)
{
    bool has = false;

    for (int i = from; i < to && !has; i++)
        has = same_sum(g, i, cell) != NULL;
    return has;
}

/* An element that several paths add to is a register from the first of them to the last. */
static void put_moving(Group *g, int i, Sum *sum)
{
    bool earlier = has_sum(g, 0, i, sum->cell), later = has_sum(g, i + 1, g->n, sum->cell);
    Prog *p = g->s->p;
    Expr **held = ir_memo(p, &g->s->let, sum->cell);

    if (earlier)
        lower_factor_store(g, &g->body, sum, *held, sum->value);
    else if (later)
        *held = loop_use(p, lower_factor_register(g, &g->body, sum, g->lanes, sum->value));
    if (!later)
        lower_factor_store(g, &g->body, sum, sum->cell, earlier ? *held : sum->value);
}

Expr *lower_factor_begin(Prog *p)
{
    return ir_real(p, -0.0);
}

/* Sums of all iterations.  Where each sum is a part, one register serves all paths. */
static void put_parts(Group *g, int i)
{
    Factored *f = &g->path[i]->f;
    Prog *p = g->s->p;

    for (int k = 0; k < f->n; k++) {
        Sum *sum = &f->sum[k];

        for (int t = 0; t < (f->apart ? sum->poly.n : 1) && !sum->moves; t++) {
            Part *part = &f->part[f->which[k][t]];
            Expr **held = ir_memo(p, &g->s->let, sum->cell);

            if (part->local != NULL)
                continue;
            if (!f->apart && *held != NULL) {
                part->local = (Local *)(*held)->local;
            } else {
                part->local = lower_factor_register(g, &g->before, sum, 1, lower_factor_begin(p));
                if (!f->apart)
                    *held = loop_use(p, part->local);
            }
            lower_factor_store(g, &g->body, sum, loop_use(p, part->local), part->value);
        }
    }
}

static Expr *of_parts(Group *g, const Factored *f, int k)
{
    Prog *p = g->s->p;
    Expr *sum = NULL;

    for (int t = 0; t < f->sum[k].poly.n; t++) {
        Expr *part = loop_use(p, f->part[f->which[k][t]].local), *c = f->sum[k].poly.term[t].c;

        if (c != NULL && sum != NULL)
            sum = ir_node(p, OP_fma, (Expr *[]){ c, part, sum }, 3);
        else if (c != NULL)
            sum = ir_op2(p, OP_mul, c, part);
        else
            sum = sum == NULL ? part : ir_op2(p, OP_add, sum, part);
    }
    return sum;
}

static bool is_whole(const Group *g, int i, Expr *cell)
{
    for (int k = 0; k < i; k++)
        if (!g->path[k]->f.apart && same_sum(g, k, cell) != NULL)
            return true;
    return false;
}

static void put_after(Group *g, int i)
{
    Factored *f = &g->path[i]->f;

    for (int k = 0; k < f->n; k++) {
        Sum *sum = &f->sum[k];

        if (sum->moves || (!f->apart && is_whole(g, i, sum->cell)))
            continue;
        lower_factor_store(g, &g->after, sum, sum->cell,
                           f->apart ? of_parts(g, f, k)
                                    : loop_use(g->s->p, f->part[f->which[k][0]].local));
    }
}

/* What a segment held of elements is of no use to the next. */
static void forget(Group *g)
{
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->path[i]->f.n; k++)
            *ir_memo(g->s->p, &g->s->let, g->path[i]->f.sum[k].cell) = NULL;
}

/* Whether one loop is as good as it was, and some other pass finds its lanes. */
static bool stays(const Group *g)
{
    const Path *path = g->path[0];
    int stores = path->f.nparts;

    for (int i = 0; i < path->f.n; i++)
        stores += path->f.sum[i].moves;
    return g->n == 1 && g->cost + stores >= path->before &&
           (g->lanes == 0 || lower_in_lanes(g->s->p, path->loop, g->s->how.unit) != NULL ||
            lower_over_lanes(g->s->p, path->loop, g->s->how.unit) != NULL);
}

/* Whether the loop adds to the same elements in each iteration of the one around it. */
static bool is_again(const Segments *s, const Path *path)
{
    for (int i = 0; i < path->f.n; i++)
        if (!path->f.sum[i].moves ||
            tree_mentions(s->p, path->f.sum[i].cell, s->around->local))
            return false;
    return true;
}

bool lower_factor_strided(const Path *path)
{
    bool strided = false;
    LoopIndex x;

    for (int i = 0; i < path->f.n; i++)
        strided = strided || (loop_index(path->f.sum[i].cell->arg[0], path->loop->local, &x) &&
                              x.stride > 1);
    return strided;
}

static void put_group(Group *g)
{
    Segments *s = g->s;
    Node loop = *g->path[0]->loop;

    g->lanes = lower_factor_lanes(g);
    if (stays(g)) {
        tree_append(s->p, &s->out, loop_node(s->p, &loop));
        return;
    }
    if (g->n == 1 && s->around != NULL && is_again(s, g->path[0]) &&
        !lower_factor_strided(g->path[0]))
        g->lanes = 0; /* in registers: registers/accumulate.c */
    for (int i = 0; i < g->n; i++) {
        Path *path = g->path[i];

        lower_write_draft(path->draft, lower_factor_fixed, g);
        for (int k = 0; k < path->f.n; k++)
            if (path->f.sum[k].moves)
                put_moving(g, i, &path->f.sum[k]);
        put_parts(g, i);
        put_after(g, i);
    }
    forget(g);
    loop.how = g->lanes > 1 ? FOR_VECTOR : FOR_SERIAL;
    loop.lanes = g->lanes > 1 ? g->lanes : 1;
    tree_append_all(s->p, &s->out, &g->before);
    tree_append(s->p, &s->out, tree_with_body(s->p, &loop, &g->body));
    tree_append_all(s->p, &s->out, &g->after);
}

/* Loops that follow each other, all of them sums: they may change places. */
static void put_run(Segments *s, Path *path, int n)
{
    Path **list = arena_array(s->p->arena, n, sizeof *list);
    Grouping *in;

    s->let = (Memo){ 0 };
    n = lower_factor_alike(s, path, n);
    in = lower_grouping(s->p, path, n);
    for (int i = 0; i < n; i++) {
        Group g = { .s = s, .path = list };

        if (path[i].taken)
            continue;
        lower_begin_group(in, i);
        for (int k = i; k >= 0; k = lower_next_for_group(in, k, GROUP_SHARED))
            if (may_join(&g, &path[k])) {
                join(&g, &path[k]);
                lower_join_group(in, k);
            }
        put_group(&g);
    }
}

/* The loop with the variable of an earlier one of the same range, so that equal elements are one
 * expression. */
Node *lower_factor_local(Segments *s, Node *n, const Path *path, int count)
{
    for (int i = 0; i < count; i++)
        if (n->kind == N_FOR && path[i].loop->lo == n->lo && path[i].loop->hi == n->hi) {
            Node c = *loop_replace(s->p, n, n->local, loop_use(s->p, path[i].loop->local));

            c.local = path[i].loop->local;
            return loop_node(s->p, &c);
        }
    return n;
}

static bool does(const Segments *s, unsigned edit)
{
    return (s->how.without & edit) == 0;
}

NodeList lower_factor_in(const Segments *outer, const Node *around, Node *const *n, int count)
{
    Segments s = { .p = outer->p,
                   .made = outer->made,
                   .phase = outer->phase,
                   .binders = outer->binders,
                   .kept = outer->kept,
                   .around = around,
                   .how = outer->how,
                   .turned = outer->turned };
    Path *path = arena_array(s.p->arena, count, sizeof *path);

    for (int i = 0; i < count;) {
        int run = 0;

        while (i + run < count &&
               lower_factor_path(&s, lower_factor_local(&s, n[i + run], path, run), &path[run]))
            run++;
        if (run > 0 && does(&s, EDIT_FACTOR)) {
            put_run(&s, path, run);
            i += run;
        } else if (run > 0) {
            for (int end = i + run; i < end; i++)
                tree_append(s.p, &s.out, n[i]);
        } else if ((does(&s, EDIT_SWEEP) && lower_sweep(&s, n[i])) ||
                   (does(&s, EDIT_CONSUME) && lower_consume(&s, n[i])) ||
                   (does(&s, EDIT_INTERCHANGE) && lower_interchange(&s, n[i]))) {
            i++;
        } else {
            NodeList body =
                lower_factor_in(&s, n[i]->kind == N_FOR ? n[i] : around, n[i]->body, n[i]->nbody);

            tree_append(s.p, &s.out, tree_with_body(s.p, n[i], &body));
            i++;
        }
    }
    return s.out;
}

static Node *segments_of(Kernel *k, Node *phase, LowerTile how, RecomputedList made)
{
    bool turned = false;
    Invariants kept = { 0 };
    Segments s = { .p = k->p, .how = how, .made = made, .kept = &kept, .turned = &turned };
    Binders binders;
    NodeList out;

    if (lower_has_registers(phase) || phase->kind != N_FOR)
        return phase;
    s.phase = phase = loop_fresh(k->p, phase); /* so that a local tells its loop */
    binders = lower_binders(k->p, phase);
    s.binders = &binders;
    out = lower_factor_in(&s, phase->how == FOR_PARALLEL ? NULL : phase, phase->body, phase->nbody);
    if (turned) /* no other pass will put sums into registers */
        out = lower_factor_in(&s, phase->how == FOR_PARALLEL ? NULL : phase, phase->body,
                              phase->nbody);
    return tree_with_body(k->p, phase, &out);
}

/* Of what is made in sweeps, some is still read elsewhere: it stays an array. */
static bool keep_read(const Kernel *k, RecomputedList made)
{
    bool any = false;

    for (int i = 0; i < made.n; i++)
        if (!made.made[i].off && lower_still_read(k, &made.made[i]))
            any = made.made[i].off = true;
    return any;
}

void lower_factor(Kernel *k, LowerTile how)
{
    RecomputedList made = { 0 };
    Kernel out = *k;
    int n = 0;

    if ((how.without & EDIT_RECOMPUTE) == 0)
        made = lower_find_recomputed(k, how);
    out.phase = arena_array(k->p->arena, k->n, sizeof *out.phase);
    do
        for (int i = 0; i < k->n; i++) {
            Node *phase = lower_without_recomputed(k->p, made, k->phase[i]);

            out.phase[i] = phase == NULL ? NULL : segments_of(k, phase, how, made);
        }
    while (keep_read(&out, made));
    for (int i = 0; i < k->n; i++)
        if (out.phase[i] != NULL)
            k->phase[n++] = out.phase[i];
    k->n = n;
    for (int i = 0; i < made.n; i++)
        if (!made.made[i].off)
            loop_drop_init(made.made[i].buf);
    lower_done(k, k->p->stage);
}
