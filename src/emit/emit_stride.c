/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Elements that are several apart from lane to lane.  If a vector loop uses as many neighbours as
 * there are lanes (a square), the neighbours of each lane are loaded as one register and the square
 * is transposed.  If it uses all elements between two iterations (a window), they are loaded as
 * registers of neighbours and de-interleaved, and interleaved again for stores, by functions
 * written for each distance.  Other elements are loaded and stored one by one. */
#include "emit/emit_int.h"

typedef struct Cells { /* elements of a loop body, each once */
    Expr **cell;
    LoopIndex *x;
    int *square, *window;
    bool *begins; /* a square */
    bool *done;   /* loaded; stored */
    int n, cap;
    int *at; /* open addressing by the element's id: its number here and 1, or 0 */
    uint32_t room;
} Cells;

struct Strides { /* of the vector loop that is being written */
    const Node *loop;
    Cells load, store;
};

/* Where the number of the element is in the table, or would be. */
static uint32_t place_of(const Cells *c, const Expr *cell)
{
    uint32_t at = cell->id & (c->room - 1);

    while (c->at[at] != 0 && c->cell[c->at[at] - 1] != cell)
        at = (at + 1) & (c->room - 1);
    return at;
}

static int find(const Cells *c, const Expr *cell)
{
    return c->room == 0 ? -1 : c->at[place_of(c, cell)] - 1;
}

static void make_room(Emit *o, Cells *c)
{
    c->room = c->room == 0 ? 8 : 2 * c->room;
    c->at = arena_array(o->p->arena, c->room, sizeof *c->at);
    for (int i = 0; i < c->n; i++)
        c->at[place_of(c, c->cell[i])] = i + 1;
}

static bool is_strided(Expr *cell, const Local *v, LoopIndex *x)
{
    return loop_index_of(cell, v, x) && x->stride != 0 && x->stride != 1;
}

static void append(Emit *o, Cells *c, Expr *cell, const LoopIndex *x)
{
    int cap = c->cap;

    c->cell = arena_grow(o->p->arena, c->cell, c->n, &cap, sizeof *c->cell);
    c->x = arena_grow(o->p->arena, c->x, c->n, &c->cap, sizeof *c->x);
    if (2 * (uint32_t)c->n >= c->room)
        make_room(o, c);
    c->cell[c->n] = cell;
    c->at[place_of(c, cell)] = c->n + 1;
    c->x[c->n++] = *x;
}

/* Each is met once: loads by a memo, the stores to one element are one, and what is stored is
 * loaded by its store alone. */
static void add(Emit *o, Cells *c, Expr *cell, const Local *v)
{
    LoopIndex x;

    if (is_strided(cell, v, &x) && ir_type[cell->buf->type].bytes >= 4)
        append(o, c, cell, &x);
}

/* Loads what lies between elements that are loaded, too, where that makes them whole. */
static void fill_gaps(Emit *o, Cells *c)
{
    int *like = NULL, n;
    LoopIndex *gap = loop_gaps(o->p, c->x, c->n, &like, &n);

    for (int i = 0; i < n; i++) {
        Expr *near = c->cell[like[i]],
             *by = ir_int(o->p, gap[i].constant - c->x[like[i]].constant),
             *at = ir_op2(o->p, OP_add, near->arg[0], by);

        append(o, c, loop_cell(o->p, near->buf, &at, 1, near->k), &gap[i]);
    }
}

static void drop_window(Cells *c, int window)
{
    for (int i = 0; i < c->n; i++)
        if (c->window[i] == window)
            c->window[i] = -1;
}

/* A square is of all lanes, so that the rest of a loop has windows alone; elsewhere it is one of
 * the two. */
static void place(Emit *o, Cells *c, int lanes)
{
    c->square = arena_array(o->p->arena, c->n, sizeof *c->square);
    c->window = arena_array(o->p->arena, c->n, sizeof *c->window);
    c->begins = arena_array(o->p->arena, c->n, sizeof *c->begins);
    c->done = arena_array(o->p->arena, c->n, sizeof *c->done);
    loop_columns(o->p, c->x, c->n, lanes, c->square);
    loop_windows(o->p, c->x, c->n, c->window);
    for (int i = 0; i < c->n; i++)
        if (o->masked)
            c->square[i] = -1;
        else if (c->square[i] >= 0 && c->window[i] >= 0)
            drop_window(c, c->window[i]);
    for (int i = 0; i < c->n; i++)
        if (c->square[i] >= 0)
            c->begins[c->square[i]] = true;
}

typedef struct Loads {
    Emit *o;
    Strides *s;
} Loads;

static void see_load(Expr *e, void *ctx)
{
    Loads *l = ctx;

    if (e->op == OP_cell && ir_is_float(e) &&
        !emit_is_stored(l->o, &l->o->stored, e->buf))
        add(l->o, &l->s->load, e, l->s->loop->local);
}

/* Finds the elements that the loop stores to once: they stand for themselves in the memo. */
static void find_stores_once(Emit *o, const Node *loop, Memo *once)
{
    for (int i = 0; i < loop->nbody; i++)
        if (loop->body[i]->kind == N_STORE) {
            Expr *out = loop->body[i]->out, **known = ir_memo(o->p, once, out);

            *known = *known == NULL ? out : loop->lo; /* any other */
        }
}

static bool is_store_once(Emit *o, Memo *once, const Node *n)
{
    return n->out->op == OP_cell && (n->op == A_SET || n->op == A_ADD) &&
           *ir_memo(o->p, once, n->out) == n->out;
}

/* What the nodes of the loop itself, not of loops inside, load and store. */
static Strides *strides_of(Emit *o, const Node *loop)
{
    Strides *s = arena_alloc(o->p->arena, sizeof *s);
    Loads l = { o, s };
    Memo met = { 0 }, once = { 0 };

    *s = (Strides){ .loop = loop };
    emit_find_stores(o, &o->stored, loop->body, loop->nbody);
    find_stores_once(o, loop, &once);
    for (int i = 0; i < loop->nbody; i++) {
        const Node *n = loop->body[i];

        if (n->kind == N_LET || n->kind == N_STORE)
            ir_visit(o->p, n->value, see_load, &l, &met);
        if (n->kind == N_STORE && is_store_once(o, &once, n)) {
            add(o, &s->store, n->out, loop->local);
            if (n->op == A_ADD)
                add(o, &s->load, n->out, loop->local);
        }
    }
    fill_gaps(o, &s->load);
    place(o, &s->load, loop->lanes);
    place(o, &s->store, loop->lanes);
    return s;
}

void emit_strides_on(Emit *o, const Node *loop)
{
    bool apart = o->dialect->one != NULL; /* lanes load and store their own elements */
    bool plain = apart || o->regs > 1 || emit_is_long(o, loop->body, loop->nbody);

    o->strides = plain ? NULL : strides_of(o, loop);
}

/* The element of the window of i that is k further on. */
static int member(const Cells *c, int i, int k)
{
    for (int j = 0; j < c->n; j++)
        if (c->window[j] == c->window[i] &&
            c->x[j].constant == c->x[c->window[i]].constant + k)
            return j;
    return i;
}

static int stride_of(const Cells *c, int i)
{
    return (int)c->x[i].stride;
}

/* The element that is k further on than i; it may be in the square before. */
static int neighbour(const Cells *c, int i, int k)
{
    int j = 0;

    while (c->x[j].constant != c->x[i].constant + k || !loop_is_near(&c->x[j], &c->x[i]))
        j++;
    return j;
}

/* name(place, elements between rows. */
static void open_square(Emit *o, const Cells *c, int first, const char *what)
{
    emit_line(o);
    text_f(o->out, "weft_%s_%s(&", what, ir_type[c->cell[first]->buf->type].name);
    emit_place(o, c->cell[first]);
    text_f(o->out, ", %d", stride_of(c, first));
}

/* What has been loaded with another square already is not wanted. */
static void load_square(Emit *o, Cells *c, int first)
{
    const char *type = emit_suffix(c->cell[first]->buf->type);
    Text to = { .arena = o->p->arena };

    for (int k = 0; k < o->step; k++) {
        int j = neighbour(c, first, k);

        if (c->done[j]) {
            text_f(&to, ", &(weft_v%s){ 0 }", type);
            continue;
        }
        c->done[j] = true;
        emit_line(o);
        text_f(o->out, "weft_v%s s%u;", type, (unsigned)c->cell[j]->id);
        text_f(&to, ", &s%u", (unsigned)c->cell[j]->id);
    }
    open_square(o, c, first, "columns");
    text_f(o->out, "%s);", to.s);
}

static bool is_whole(const Emit *o, const Cells *c, int first, int last)
{
    bool has = false, all = true;

    for (int k = 0; k < o->step && all; k++) {
        int j = neighbour(c, first, k);

        has = has || j == last;
        all = c->done[j];
    }
    return has && all;
}

/* The squares that are whole with element i go to memory. */
static void store_squares(Emit *o, const Cells *c, int i)
{
    for (int first = 0; first < c->n; first++) {
        int64_t after = c->x[i].constant - c->x[first].constant;

        if (!c->begins[first] || after < 0 || after >= o->step ||
            !loop_is_near(&c->x[first], &c->x[i]) || !is_whole(o, c, first, i))
            continue;
        open_square(o, c, first, "rows");
        for (int k = 0; k < o->step; k++)
            text_f(o->out, ", z%u", (unsigned)c->cell[neighbour(c, first, k)]->id);
        text_str(o->out, ");");
    }
}

/* name(place, how many elements, each member of the window). */
static void put_window(Emit *o, const Cells *c, int i, const char *what, const char *prefix,
                       const Node *past)
{
    int stride = stride_of(c, i);

    emit_line(o);
    text_f(o->out, "weft_%s%s_%s_%d(&", what, o->masked ? "m" : "",
           ir_type[c->cell[i]->buf->type].name, stride);
    emit_place(o, c->cell[c->window[i]]);
    if (o->masked)
        text_f(o->out, ", weft_left * %d", stride);
    for (int k = 0; k < stride; k++)
        text_f(o->out, ", %s%u", prefix, (unsigned)c->cell[member(c, i, k)]->id);
    if (past != NULL)
        emit_pays(o, past);
    text_str(o->out, ");");
}

static void load_window(Emit *o, Cells *c, int i)
{
    int stride = stride_of(c, i);

    emit_line(o);
    text_f(o->out, "weft_v%s ", emit_suffix(c->cell[i]->buf->type));
    for (int k = 0; k < stride; k++) {
        int j = member(c, i, k);

        c->done[j] = true;
        text_f(o->out, "%ss%u", k > 0 ? ", " : "", (unsigned)c->cell[j]->id);
    }
    text_char(o->out, ';');
    put_window(o, c, i, "split", "&s", NULL);
}

static void see_use(Expr *e, void *ctx)
{
    Emit *o = ctx;
    Cells *c = &o->strides->load;
    int i = e->op == OP_cell ? find(c, e) : -1;

    if (i < 0 || c->done[i])
        return;
    if (c->square[i] >= 0)
        load_square(o, c, c->square[i]);
    else if (c->window[i] >= 0)
        load_window(o, c, i);
}

void emit_strided_loads(Emit *o, const Node *n)
{
    Memo met = { 0 };
    bool here = false;

    for (int i = 0; o->strides != NULL && i < o->strides->loop->nbody && !here; i++)
        here = o->strides->loop->body[i] == n;
    if (!here || n->value == NULL)
        return;
    ir_visit(o->p, n->value, see_use, o, &met);
    if (n->kind == N_STORE && n->op == A_ADD && n->out->op == OP_cell)
        see_use(n->out, o);
}

static void put_lanes(Emit *o)
{
    if (o->masked)
        text_str(o->out, "weft_left");
    else
        text_f(o->out, "%d", o->step);
}

bool emit_strided_cell(Emit *o, Expr *e)
{
    int i = o->strides != NULL ? find(&o->strides->load, e) : -1;
    LoopIndex x;

    if (o->vector == NULL || !is_strided(e, o->vector, &x))
        return false;
    if (i >= 0 && o->strides->load.done[i]) {
        text_f(o->out, "s%u", (unsigned)e->id);
        return true;
    }
    text_f(o->out, "weft_gather_%s(&", ir_type[e->buf->type].name);
    emit_place(o, e);
    text_f(o->out, ", %lld, ", (long long)x.stride);
    put_lanes(o);
    text_char(o->out, ')');
    return true;
}

/* Whether it goes to memory with others. */
static bool is_held(const Cells *c, int i)
{
    return i >= 0 && (c->square[i] >= 0 || c->window[i] >= 0);
}

bool emit_strided_open(Emit *o, const Node *n)
{
    int i = o->strides != NULL ? find(&o->strides->store, n->out) : -1;
    LoopIndex x;

    if (n->out->op != OP_cell || o->vector == NULL || !is_strided(n->out, o->vector, &x))
        return false;
    emit_line(o);
    if (i >= 0 && is_held(&o->strides->store, i)) {
        text_f(o->out, "const weft_v%s z%u = ", emit_suffix((Type)n->out->type),
               (unsigned)n->out->id);
        return true;
    }
    text_str(o->out, o->parts_of_team ? "WEFT_ON " : "");
    text_f(o->out, "weft_scatter_%s(&", ir_type[n->out->buf->type].name);
    emit_place(o, n->out);
    text_f(o->out, ", %lld, ", (long long)x.stride);
    put_lanes(o);
    text_str(o->out, ", ");
    return true;
}

/* A window goes to memory with its last member, and so does a square. */
void emit_strided_close(Emit *o, const Node *n)
{
    int i = o->strides != NULL ? find(&o->strides->store, n->out) : -1;
    Cells *c = i >= 0 ? &o->strides->store : NULL;

    text_str(o->out, c == NULL || !is_held(c, i) ? ");" : ";");
    if (c == NULL || !is_held(c, i))
        return;
    c->done[i] = true;
    if (c->square[i] >= 0) {
        store_squares(o, c, i);
        return;
    }
    for (int k = 0; k < stride_of(c, i); k++)
        if (!c->done[member(c, i, k)])
            return;
    if (n->stream && !o->masked)
        put_window(o, c, i, "past", "z", n);
    else
        put_window(o, c, i, "join", "z", NULL);
}

/* x from the registers r0, r1, ...: its lane i is lane[i] of register from[i].  They are mixed two
 * at a time. */
static void put_mixes(Text *t, Type type, const int *from, const int *lane, int lanes)
{
    int used[LOOP_WINDOW], n = 0;

    for (int j = 0; j < LOOP_WINDOW; j++)
        for (int i = 0; i < lanes; i++)
            if (from[i] == j) {
                used[n++] = j;
                break;
            }
    for (int k = 1; k < n || k == 1; k++) {
        int other = used[k < n ? k : 0];

        text_f(t, "\n    x = WEFT_MIX(weft_vi%d, ", ir_type[type].bytes * 8);
        text_f(t, k == 1 ? "r%d" : "x", used[0]);
        text_f(t, ", r%d", other);
        for (int i = 0; i < lanes; i++)
            text_f(t, ", %d",
                   from[i] == other && n > 1   ? lanes + lane[i]
                   : k > 1                     ? i
                   : from[i] == used[0]        ? lane[i]
                                               : 0);
        text_str(t, ");");
    }
}

typedef struct Shape { /* of the functions for one distance */
    const Emit *o;
    Type type;
    int stride, lanes;
    const char *suffix; /* "m": of the first `left` elements alone */
} Shape;

/* Several kernels may be in one file: each has what it needs, and the first counts. */
static void put_head(Text *t, const Shape *s, const char *what, const char *pointer, char member)
{
    const char *name = ir_type[s->type].name;

    for (int i = 0; i < 2; i++)
        text_f(t, "\n#%s WEFT_%s%s_%s_%d", i == 0 ? "ifndef" : "define", what, s->suffix, name,
               s->stride);
    text_f(t, "\nWEFT_FN void weft_%s%s_%s_%d(%s%s *p%s", what, s->suffix, name, s->stride,
           *pointer ? "const " : "", emit_ctype(s->o, s->type), *s->suffix ? ", int64_t left" : "");
    for (int k = 0; k < s->stride; k++)
        text_f(t, ", weft_v%s %s%c%d", name, pointer, member, k);
    text_str(t, *what == 'p' ? ", int pays)\n{" : ")\n{");
}

/* The mask of register k. */
static void put_mask(Text *t, const Shape *s, int k)
{
    if (*s->suffix)
        text_f(t, ", WEFT_MASK_%s(WEFT_UP_TO(left - %d, %d))", emit_lanes(s->type), k * s->lanes,
               s->lanes);
}

/* Element e of a window is lane e / stride of member e % stride. */
static void put_split(Text *t, const Shape *s)
{
    int from[CACHE_LINE], lane[CACHE_LINE];

    put_head(t, s, "split", "*", 'o');
    for (int k = 0; k < s->stride; k++) {
        text_f(t, "\n    const weft_v%s r%d = WEFT_LOAD%s_%s(p + %d", ir_type[s->type].name, k,
               *s->suffix ? "M" : "", emit_lanes(s->type), k * s->lanes);
        put_mask(t, s, k);
        text_str(t, ");");
    }
    text_f(t, "\n    weft_v%s x;", ir_type[s->type].name);
    for (int k = 0; k < s->stride; k++) {
        for (int i = 0; i < s->lanes; i++) {
            from[i] = (i * s->stride + k) / s->lanes;
            lane[i] = (i * s->stride + k) % s->lanes;
        }
        put_mixes(t, s->type, from, lane, s->lanes);
        text_f(t, "\n    *o%d = x;", k);
    }
    text_str(t, "\n}\n#endif\n");
}

static void put_join(Text *t, const Shape *s, bool past)
{
    int from[CACHE_LINE], lane[CACHE_LINE];

    put_head(t, s, past ? "past" : "join", "", 'r');
    text_f(t, "\n    weft_v%s x;", ir_type[s->type].name);
    if (past)
        text_str(t, "\n    const int past = WEFT_GOES_PAST(p, pays);");
    for (int k = 0; k < s->stride; k++) {
        for (int i = 0; i < s->lanes; i++) {
            from[i] = (k * s->lanes + i) % s->stride;
            lane[i] = (k * s->lanes + i) / s->stride;
        }
        put_mixes(t, s->type, from, lane, s->lanes);
        if (past)
            text_f(t, "\n    WEFT_EITHER(past, %s, ", emit_lanes(s->type));
        else
            text_f(t, "\n    WEFT_STORE%s_%s(", *s->suffix ? "M" : "", emit_lanes(s->type));
        text_f(t, "p + %d, x", k * s->lanes);
        put_mask(t, s, k);
        text_str(t, ");");
    }
    text_str(t, "\n}\n#endif\n");
}

typedef struct Written { /* by type, stride: what has been */
    bool split[T_COUNT][LOOP_WINDOW + 1], join[T_COUNT][LOOP_WINDOW + 1], turn[T_COUNT];
} Written;

static void put_turn(Emit *o, const Cells *c, int lanes, Written *w)
{
    for (int i = 0; i < c->n; i++) {
        Type type = c->cell[i]->buf->type;

        if (c->square[i] < 0 || w->turn[type])
            continue;
        emit_turn_functions(o, type, lanes);
        w->turn[type] = true;
    }
}

static void put_functions(Emit *o, const Node *loop, Written *w)
{
    const Strides *s = strides_of(o, loop);

    put_turn(o, &s->load, loop->lanes, w);
    put_turn(o, &s->store, loop->lanes, w);
    o->masked = true; /* the rest of the loop has windows where the loop has squares */
    s = strides_of(o, loop);
    o->masked = false;
    for (int i = 0; i < s->load.n; i++) {
        Shape all = { o, s->load.cell[i]->buf->type, stride_of(&s->load, i), loop->lanes, "" },
              some = { o, all.type, all.stride, all.lanes, "m" };

        if (s->load.window[i] < 0 || w->split[all.type][all.stride])
            continue;
        put_split(o->out, &all);
        put_split(o->out, &some);
        w->split[all.type][all.stride] = true;
    }
    for (int i = 0; i < s->store.n; i++) {
        Shape all = { o, s->store.cell[i]->buf->type, stride_of(&s->store, i), loop->lanes, "" },
              some = { o, all.type, all.stride, all.lanes, "m" };

        if (s->store.window[i] < 0 || w->join[all.type][all.stride])
            continue;
        put_join(o->out, &all, false);
        put_join(o->out, &all, true);
        put_join(o->out, &some, false);
        w->join[all.type][all.stride] = true;
    }
}

static void functions_below(Emit *o, const Node *n, Written *w)
{
    if (n->kind == N_FOR && n->lanes > 1)
        put_functions(o, n, w);
    for (int i = 0; i < n->nbody; i++)
        functions_below(o, n->body[i], w);
}

void emit_stride_functions(Emit *o, Node *const *phase, int n)
{
    Written *w = arena_alloc(o->p->arena, sizeof *w);

    *w = (Written){ 0 };
    for (int i = 0; i < n && o->dialect->one == NULL; i++)
        functions_below(o, phase[i], w);
}
