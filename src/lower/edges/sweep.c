/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Sweeps over the entries of a row.  A loop over entries contains several loops that add
 * products to the elements of the row, as a convolution over constant relations does.  The
 * entries are processed in tiles.  First, values that are the same for all elements of an entry
 * are computed for the whole tile.  Then, for a group of sums and lanes at a time, the entries
 * of the tile pass while the sums stay in registers, and the operands of the next tile are
 * prefetched. */
#include "lower/algebra/factor_int.h"
#include "lower/lanes/lanes_int.h"
#include "lower/storage/storage_int.h"

/* Of the registers there are, eighths that hold sums; the others are for what is multiplied.
 * Sums that a loop wants at least to have enough to do while a chain of additions waits. */
typedef struct Sweep {
    Segments *s;
    const Node *loop; /* over entries */
    int most;         /* entries of a tile */
    Path *path;
    int n;
    Local *entry, *first, *last; /* of a tile: the entry, where it begins, where it ends */
    Buf *work;                   /* what is computed first: value by value, entry by entry */
    Expr **value;
    int nvalue, cap;
    Memo moved;           /* places of values by entry, for those by value */
    Memo at, once, asked; /* what stands for a value; what has been asked for */
    Expr **hinted;        /* the last list of elements that has been asked for */
    NodeList before, body;
    Expr *number;  /* of the group that is being made, */
    Memo group_of; /* and of the last one that has a sum */
} Sweep;

static bool is_swept(const Sweep *w, const Path *path)
{
    Prog *p = w->s->p;
    const Node *in = path->loop;

    if (tree_mentions(p, in->lo, w->loop->local) || tree_mentions(p, in->hi, w->loop->local))
        return false;
    for (int i = 0; i < path->f.n; i++)
        if (!path->f.sum[i].moves || tree_mentions(p, path->f.sum[i].cell, w->loop->local) ||
            !lower_is_bound_inside(p, w->s->binders, path->f.sum[i].cell))
            return false;
    return path->f.n > 0;
}

/* Whether the loop has nothing but sums inside, and all of them stay where they are while it runs:
 * a single one that fits the registers is for registers/accumulate.c. */
static bool find_paths(Sweep *w)
{
    const Node *n = w->loop;
    bool several = n->nbody > 1;

    if (n->kind != N_FOR || n->how != FOR_SERIAL || n->lanes > 1 || n->nbody == 0 ||
        w->s->phase->scheduled || !lower_is_invariant(w->s->p, w->s->phase, n->lo, w->s->kept) ||
        !lower_is_invariant(w->s->p, w->s->phase, n->hi, w->s->kept))
        return false;
    w->path = arena_array(w->s->p->arena, n->nbody, sizeof *w->path);
    for (w->n = 0; w->n < n->nbody; w->n++) {
        Node *in = lower_factor_local(w->s, n->body[w->n], w->path, w->n);

        if (!lower_factor_path(w->s, in, &w->path[w->n]) || !is_swept(w, &w->path[w->n]))
            return false;
        several = several || w->path[w->n].f.n > w->s->how.registers;
    }
    return several;
}

/* How many sums of a path the group that is being made has not. */
static int new_sums(Sweep *w, const Path *path)
{
    int n = 0;

    for (int i = 0; i < path->f.n; i++)
        n += *ir_memo(w->s->p, &w->group_of, path->f.sum[i].cell) != w->number;
    return n;
}

/* Registers that a line of each sum takes; sums that fit. */
static int line_of(const Sweep *w)
{
    Type type = lower_factor_type(w->path[0].loop);
    int line = CACHE_LINE / ir_type[type].bytes, lanes = lanes_of(w->s->how.unit, type);

    return line > lanes ? line / lanes : 1;
}

static int fitting(const Sweep *w)
{
    int fit = w->s->p->policy.sweep_sums / line_of(w);

    return fit > 0 ? fit : 1;
}

/* Paths of more sums than fit become several. */
static void split_paths(Sweep *w)
{
    int fit = fitting(w);
    Path *all;
    int n = 0, many = 0;

    for (int i = 0; i < w->n; i++)
        many += (w->path[i].f.n + fit - 1) / fit;
    all = arena_array(w->s->p->arena, many, sizeof *all);
    for (int i = 0; i < w->n; i++) {
        int sums = w->path[i].f.n, parts = (sums + fit - 1) / fit;

        for (int k = 0; k < parts; k++) {
            Path *path = &all[n++];

            *path = w->path[i];
            path->f.sum += sums * k / parts;
            path->f.n = sums * (k + 1) / parts - sums * k / parts;
        }
    }
    w->path = all;
    w->n = n;
}

/* A loop joins a small group in any case, another one if they share an element, and a full one if
 * it has no sums of its own. */
static GroupWants wants(const Sweep *w, const Group *g)
{
    return g->parts * line_of(w) < w->s->p->policy.few_sums ? GROUP_ANY
           : g->parts < fitting(w)                          ? GROUP_SHARED
                                                            : GROUP_SUMS;
}

static bool may_join(Sweep *w, const Group *g, const Path *path)
{
    return g->n == 0 ||
           (g->parts + new_sums(w, path) <= fitting(w) && lower_factor_range(g->path[0], path));
}

static void join(Sweep *w, Group *g, Path *path)
{
    g->parts += new_sums(w, path);
    for (int i = 0; i < path->f.n; i++)
        *ir_memo(w->s->p, &w->group_of, path->f.sum[i].cell) = w->number;
    g->path[g->n++] = path;
}

/* Elements of an entry where values of one are side by side: four are loaded at once, and of eight
 * entries no two begin in the same bank of shared memory. */
static int64_t entry_row(const Sweep *w)
{
    return ((int64_t)w->nvalue + 3) / 8 * 8 + 4;
}

/* The place of a value of the entry that is swept, entry by entry, value by value: a sum, by whose
 * factor lanes know how far their elements are apart. */
static Expr *entry_cell(Sweep *w, int value)
{
    Prog *p = w->s->p;
    int64_t entry = entry_row(w);
    Expr *at = tree_add(p, ir_int(p, value),
                        tree_add(p, tree_mul(p, loop_use(p, w->entry), ir_int(p, entry)),
                                 tree_mul(p, loop_use(p, w->first), ir_int(p, -entry))));

    return loop_cell(p, w->work, &at, 1, 1);
}

/* Value by value, entry by entry. */
static Expr *work_cell(Sweep *w, int value)
{
    Prog *p = w->s->p;
    Expr *at = tree_add(p, ir_int(p, (int64_t)value * w->most),
                        tree_sub(p, loop_use(p, w->entry), loop_use(p, w->first)));

    return loop_cell(p, w->work, &at, 1, 1);
}

static Expr *by_entry(Prog *p, Expr *e, void *ctx)
{
    Sweep *w = ctx;
    Expr **to = e->op == OP_cell && e->buf == w->work ? ir_memo(p, &w->moved, e) : NULL;

    return to != NULL && *to != NULL ? *to : e;
}

/* With an entry a lane, values of an entry are side by side: the lanes that sum up read them
 * together. */
static void put_values_by_entry(Sweep *w)
{
    Prog *p = w->s->p;
    Memo met = { 0 };

    for (int i = 0; i < w->nvalue; i++)
        *ir_memo(p, &w->moved, work_cell(w, i)) = entry_cell(w, i);
    for (int i = 0; i < w->body.n; i++)
        w->body.node[i] = loop_rewrite(p, w->body.node[i], by_entry, w, &met);
}

/* What does not change in the loops inside: a number of the tile, or one for all entries. */
static Expr *fixed(void *ctx, Expr *e)
{
    Sweep *w = ((Group *)ctx)->sweep;
    Prog *p = w->s->p;
    bool moves = tree_mentions(p, e, w->entry);
    Expr **known = ir_memo(p, moves ? &w->at : &w->once, e);

    if (e->nargs == 0 || (moves && e->op == OP_cell))
        return e;
    if (*known != NULL)
        return *known;
    if (moves) {
        w->value = arena_grow(p->arena, w->value, w->nvalue, &w->cap, sizeof *w->value);
        w->value[w->nvalue] = e;
        return *known = work_cell(w, w->nvalue++);
    }
    return *known = loop_use(p, lower_factor_register(ctx, &w->before,
                                                      &(Sum){ .cell = e, .label = w->loop->label },
                                                      1, e));
}

typedef struct Later {
    Sweep *w;
    Expr *entry; /* the one to come */
} Later;

static Expr *later(Prog *p, Expr *e, void *ctx)
{
    const Later *l = ctx;

    (void)p;
    return e->op == OP_local && e->local == l->w->entry ? l->entry : e;
}

/* Hints for what each entry of the next tile has, once a line: what the tiles of a row, and the
 * next row, read in the order of entries. */
static void put_hints(Sweep *w, const Path *path, NodeList *to)
{
    Prog *p = w->s->p;
    const Buf *start = w->loop->lo->op == OP_cell ? w->loop->lo->buf : NULL;
    Expr *far, *end;
    Later l = { .w = w };

    if (path->moving == w->hinted) /* a part of the same loop */
        return;
    w->hinted = path->moving;
    if (start == NULL || start->of == NULL || start->of_k >= 0 || start->kind == B_CONST)
        return;
    far = tree_add(p, loop_use(p, w->entry),
                   tree_sub(p, loop_use(p, w->last), loop_use(p, w->first)));
    end = tree_sub(p, loop_positions(p, start->of), ir_int(p, 1));
    l.entry = ir_op2(p, OP_min, far, end);
    for (int i = 0; i < path->nmoving; i++) {
        Expr *cell = path->moving[i], **asked, *at;
        Memo memo = { 0 };

        if (cell->op != OP_cell || !tree_mentions(p, cell, w->entry) ||
            lower_is_recomputed(w->s, cell->buf))
            continue;
        asked = ir_memo(p, &w->asked, cell);
        if (*asked != NULL)
            continue;
        *asked = cell;
        at = ir_rewrite(p, cell->arg[0], later, &l, &memo);
        tree_append(p, to,
                    loop_node(p, &(Node){ .kind = N_AHEAD,
                                          .far = true,
                                          .label = w->loop->label,
                                          .out = loop_cell(p, cell->buf, &at, 1, 1) }));
    }
}

/* Registers of each sum: as many as there are, and as the loop has work for. */
static int registers_of(const Sweep *w, const Group *g)
{
    const Node *n = g->path[0]->loop;
    int fit = w->s->p->policy.sweep_sums / g->parts;
    int64_t turns = (int64_t)lower_factor_turns(w->s, n);

    return tree_power_below(turns < fit ? turns : fit);
}

/* One loop in lanes: registers, the entries of the tile, and then the sums. */
static void put_group(Sweep *w, Group *g)
{
    Prog *p = w->s->p;
    NodeList body = { 0 }, inner = { 0 }, sums = { 0 };
    Node loop = *g->path[0]->loop, entries = {
        .kind = N_FOR, .label = w->loop->label, .local = w->entry, .over = w->loop->over
    };
    Memo held = { 0 };

    for (int i = 0; i < g->n; i++) {
        const Factored *f = &g->path[i]->f;

        put_hints(w, g->path[i], &inner);
        lower_write_draft(g->path[i]->draft, fixed, g);
        for (int k = 0; k < f->n; k++) {
            const Sum *sum = &f->sum[k];
            Expr **reg = ir_memo(p, &held, sum->cell);

            if (*reg == NULL) {
                *reg = loop_use(
                    p, lower_factor_register(g, &body, sum, g->lanes, lower_factor_begin(p)));
                lower_factor_store(g, &g->after, sum, sum->cell, *reg);
            }
            lower_factor_store(g, &sums, sum, *reg, sum->value);
        }
    }
    tree_append_all(p, &inner, &sums);
    entries.lo = loop_use(p, w->first);
    entries.hi = loop_use(p, w->last);
    tree_append(p, &body, tree_with_body(p, &entries, &inner));
    tree_append_all(p, &body, &g->after);
    loop.how = FOR_VECTOR;
    loop.lanes = g->lanes;
    loop.regs = registers_of(w, g);
    tree_append(p, &w->body, tree_with_body(p, &loop, &body));
}

/* Whether each group can run in lanes; those of a group are side by side in *list. */
static bool find_groups(Sweep *w, Path **list, Group *group, int *n)
{
    Grouping *in = lower_grouping(w->s->p, w->path, w->n);
    int at = 0;

    *n = 0;
    for (int i = 0; i < w->n; i++) {
        Group *g = &group[*n];

        if (w->path[i].taken)
            continue;
        *g = (Group){ .s = w->s, .path = list + at, .sweep = w };
        w->number = ir_int(w->s->p, *n);
        lower_begin_group(in, i);
        for (int k = i; k >= 0; k = lower_next_for_group(in, k, wants(w, g)))
            if (may_join(w, g, &w->path[k])) {
                join(w, g, &w->path[k]);
                lower_join_group(in, k);
            }
        at += g->n;
        g->lanes = lower_factor_lanes(g);
        if (g->lanes <= 1)
            return false;
        ++*n;
    }
    return true;
}

/* Elements of an entry in the array of a tile. */
static int64_t values_of(const Sweep *w)
{
    return w->s->p->policy.entry_lanes ? entry_row(w) : w->nvalue;
}

/* Values of all entries of the tile: all that can be one a lane, with an entry a lane, or the
 * others. */
static void put_values_of(Sweep *w, bool lanes, NodeList *to)
{
    Prog *p = w->s->p;
    Type type = w->work->type;
    NodeList body = { 0 };
    Node entries = {
        .kind = N_FOR, .label = w->loop->label, .local = w->entry, .over = w->loop->over
    };

    for (int i = 0; i < w->nvalue; i++) {
        bool can = p->policy.entry_lanes && lower_can_step(p, w->value[i], w->entry, type);

        if (can == lanes)
            tree_append(p, &body,
                        loop_node(p, &(Node){ .kind = N_STORE,
                                              .label = w->loop->label,
                                              .op = A_SET,
                                              .out = p->policy.entry_lanes ? entry_cell(w, i)
                                                                           : work_cell(w, i),
                                              .value = w->value[i] }));
    }
    if (body.n == 0)
        return;
    if (lanes) {
        entries.how = FOR_VECTOR;
        entries.lanes = lanes_of(w->s->how.unit, type);
    }
    entries.lo = loop_use(p, w->first);
    entries.hi = loop_use(p, w->last);
    tree_append(p, to, tree_with_body(p, &entries, &body));
}

/* What the groups want of each entry, for all entries of the tile. */
static void put_values(Sweep *w, NodeList *to)
{
    if (w->nvalue == 0)
        return;
    w->work->full[0] = ir_dense(w->s->p, ir_int(w->s->p, values_of(w) * w->most));
    put_values_of(w, true, to);
    put_values_of(w, false, to);
}

static Local *put_number(Segments *s, const Node *loop, NodeList *to, const char *name, Expr *value)
{
    Local *l = loop_local(s->p, name, T_i64, 1);

    tree_append(
        s->p, to,
        loop_node(s->p,
                  &(Node){ .kind = N_LET, .label = loop->label, .local = l, .value = value }));
    return l;
}

/* Where number `tile` of the tiles begins. */
static Expr *begin_of(Segments *s, const Node *loop, Expr *tile, Local *count, Local *tiles)
{
    Prog *p = s->p;
    Expr *before = ir_op2(p, OP_div, tree_mul(p, loop_use(p, count), tile), loop_use(p, tiles));

    return tree_add(p, loop->lo, before);
}

Node lower_open_tiles(Segments *s, const Node *loop, int most, NodeList *body, Local **first,
                      Local **last)
{
    Prog *p = s->p;
    Local *count = put_number(s, loop, &s->out, "count", tree_sub(p, loop->hi, loop->lo));
    Local *many = put_number(
        s, loop, &s->out, "tiles",
        ir_op2(p, OP_div, tree_add(p, loop_use(p, count), ir_int(p, most - 1)), ir_int(p, most)));
    Local *number = loop_local(p, "tile", T_i64, 1);
    Expr *tile = loop_use(p, number);

    *first = put_number(s, loop, body, "first", begin_of(s, loop, tile, count, many));
    *last = put_number(s, loop, body, "last",
                       begin_of(s, loop, tree_add(p, tile, ir_int(p, 1)), count, many));
    return (Node){ .kind = N_FOR,
                   .label = loop->label,
                   .local = number,
                   .lo = ir_int(p, 0),
                   .hi = loop_use(p, many),
                   .over = loop_over_tiles(p, loop->over, most) };
}

static void put_tiles(Sweep *w, const Group *group, int n)
{
    Prog *p = w->s->p;
    NodeList body = { 0 };
    Node tiles = lower_open_tiles(w->s, w->loop, w->most, &body, &w->first, &w->last);

    for (int i = 0; i < n; i++)
        put_group(w, (Group *)&group[i]);
    tree_append_all(p, &w->s->out, &w->before);
    if (p->policy.entry_lanes)
        put_values_by_entry(w);
    put_values(w, &body);
    lower_recompute(&(TileOf){ w->s, w->entry, w->first, w->last, w->most }, &w->body, &body);
    tree_append_all(p, &body, &w->body);
    tree_append(p, &w->s->out, tree_with_body(p, &tiles, &body));
}

/* By tiles of so many entries; false: it is no such loop, or has too many values an entry. */
static bool sweep_by(Segments *s, const Node *n, int most, Buf **work)
{
    Sweep w = { .s = s, .loop = n, .most = most, .entry = n->local };
    int groups, before = s->out.n;
    Path **list;
    Group *group;

    if (!find_paths(&w))
        return false;
    w.n = lower_factor_alike(s, w.path, w.n);
    split_paths(&w);
    list = arena_array(s->p->arena, w.n, sizeof *list);
    group = arena_array(s->p->arena, w.n, sizeof *group);
    if (!find_groups(&w, list, group, &groups))
        return false;
    for (int i = 0; i < w.n; i++)
        w.path[i].draft = lower_draft(s->p, &w.path[i].f, lower_factor_turns(s, w.path[i].loop));
    if (*work == NULL)
        *work =
            lower_scratch(s->p, w.path[0].f.sum[0].cell->buf, lower_factor_type(w.path[0].loop), 1);
    w.work = *work;
    put_tiles(&w, group, groups);
    if (values_of(&w) * most * ir_type[w.work->type].bytes <= s->p->policy.scratch)
        return true;
    s->out.n = before;
    return false;
}

bool lower_sweep(Segments *s, const Node *n)
{
    Buf *work = NULL;

    for (int most = s->how.sweep; most > 0 && n->kind == N_FOR; most = work != NULL ? most / 2 : 0)
        if (sweep_by(s, n, most, &work))
            return true;
    return false;
}
