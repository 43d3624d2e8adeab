/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Cuts long functions into several, which a compiler finishes much sooner.  A list of nodes is cut
 * where few values are live.  Values that are live across a cut are kept in a struct; elements of
 * arrays that are only read are read again.  A loop that is long by itself stays in the function of
 * its list, unless several such loops would make that function long again; then each becomes a
 * function. */
#include "emit/emit_int.h"

enum { OPERATION = 3 }; /* nodes that make a line: fma(a, b, c) */
enum { EMIT_KEEP = 2 }; /* times Emit.most: lines of large nodes in the function of their list */

enum { OUTSIDE = -1, INSIDE = -2 }; /* where a local is made that no node of the list makes */

typedef struct Segment {
    int from, to;
    bool inlined; /* one node that stays: see must_stay */
} Segment;

typedef struct Parts {
    Emit *o;
    Node *const *node;
    int n, number; /* of the list */
    int *def;      /* by Local.id: the node that makes it, OUTSIDE or INSIDE */
    int *last;     /* the last node that mentions it */
    const Local **local;
    bool *again;   /* is read again where it is used */
    bool *crosses; /* is kept in the struct */
    bool *here;    /* is known in the function that is being written */
    int *live;     /* by node: how many values live over the cut before it */
    bool *stays;   /* by node: see must_stay */
    Segment *segment;
    int nsegment, cap, at; /* at: the one in work */
} Parts;

static int64_t weigh_expr(const Expr *e)
{
    return e == NULL ? 0 : e->tree / OPERATION;
}

/* The lines of a node; a vector loop has its body for several registers at once, for fewer, and for
 * the rest. */
static int64_t weigh(const Node *n)
{
    int64_t w = 0;

    for (int i = 0; i < n->nbody; i++)
        w += weigh(n->body[i]);
    if (n->kind == N_FOR && n->lanes > 1)
        w *= n->regs > 1 ? 2 * n->regs : 2;
    for (int k = 0; k < n->nat; k++)
        w += 1 + weigh_expr(n->at[k].value);
    return w + 1 + weigh_expr(n->value) + weigh_expr(n->cond) + weigh_expr(n->lo) +
           weigh_expr(n->hi);
}

bool emit_is_long(const Emit *o, Node *const *n, int count)
{
    int64_t w = 0;

    for (int i = 0; i < count; i++)
        w += weigh(n[i]);
    return count > 1 && w > o->most;
}

/* A search that goes on from where it was has a variable for that. */
static void see_bound(Expr *e, void *ctx)
{
    if (e->op == OP_find && e->k == FIND_NEAR)
        *(bool *)ctx = true;
}

static bool has_build(const Node *n)
{
    bool found = n->kind == N_BUILD || n->kind == N_INSERT;

    for (int i = 0; i < n->nbody && !found; i++)
        found = has_build(n->body[i]);
    return found;
}

/* A loop or branch that is longer than a part. */
static bool is_large(const Emit *o, const Node *n)
{
    return n->nbody > 0 && weigh(n) > o->most;
}

/* The lines that a node leaves in the function of its list when it stays there: what is cut out of
 * its body leaves calls, and what a body keeps is bounded by find_cuts. */
static int64_t weigh_rest(const Emit *o, const Node *n)
{
    bool cut = emit_is_long(o, n->body, n->nbody);
    int64_t w = 0;

    if (!is_large(o, n))
        return weigh(n);
    for (int i = 0; i < n->nbody; i++)
        w += cut && !is_large(o, n->body[i]) ? 1 : weigh_rest(o, n->body[i]);
    if (cut && w > EMIT_KEEP * (int64_t)o->most)
        w = EMIT_KEEP * (int64_t)o->most;
    if (n->kind == N_FOR && n->lanes > 1)
        w *= n->regs > 1 ? 2 * n->regs : 2;
    return w + 1;
}

/* Whether the large nodes of a list may all stay in its function. */
static bool keeps_large(const Parts *s)
{
    int64_t w = 0;

    for (int i = 0; i < s->n; i++)
        if (is_large(s->o, s->node[i]))
            w += weigh_rest(s->o, s->node[i]);
    return w <= EMIT_KEEP * (int64_t)s->o->most;
}

/* Whether a node stays in the function of its list: it is large and there is room, or it shares
 * more with other nodes than locals.  (A sum over lanes has other registers than its local.) */
static bool must_stay(const Parts *s, const Node *n, bool room)
{
    bool fold = s->o->vector != NULL && n->kind == N_STORE && n->out->op == OP_local;
    bool bound = fold || (room && is_large(s->o, n)) || has_build(n);
    Memo met = { 0 };

    if (!bound)
        loop_visit(s->o->p, n, see_bound, &bound, &met);
    return bound;
}

/* What is made below the nodes of the list. */
static void note_inside(Parts *s, const Node *n)
{
    if (n->local != NULL)
        s->def[n->local->id] = INSIDE;
    for (int i = 0; i < n->nbody; i++)
        note_inside(s, n->body[i]);
}

static void note_use(Expr *e, void *ctx)
{
    Parts *s = ctx;

    if (e->op != OP_local)
        return;
    s->last[e->local->id] = s->at;
    s->local[e->local->id] = e->local;
}

typedef struct Fixed {
    const Parts *s;
    bool fixed;
} Fixed;

static void see_fixed(Expr *e, void *ctx)
{
    Fixed *f = ctx;

    if (e->op == OP_local &&
        (f->s->def[e->local->id] != OUTSIDE || f->s->o->assigned[e->local->id]))
        f->fixed = false;
    if (e->op == OP_find || e->op == OP_above ||
        (e->op == OP_cell && emit_is_stored(f->s->o, &f->s->o->phase_stored, e->buf)))
        f->fixed = false;
}

/* An element that stays as it is, at a place that is known before the list. */
static bool is_read_again(const Parts *s, const Node *let)
{
    Fixed f = { s, true };
    Memo met = { 0 };

    if (let->value->op != OP_cell || s->o->assigned[let->local->id])
        return false;
    ir_visit(s->o->p, let->value, see_fixed, &f, &met);
    return f.fixed;
}

static void find_lives(Parts *s)
{
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->node[i]->nbody; k++)
            note_inside(s, s->node[i]->body[k]);
        if (s->node[i]->local != NULL)
            s->def[s->node[i]->local->id] = s->node[i]->kind == N_LET ? i : INSIDE;
    }
    for (s->at = 0; s->at < s->n; s->at++) {
        Memo met = { 0 };

        loop_visit(s->o->p, s->node[s->at], note_use, s, &met);
    }
    for (int i = 0; i < s->n; i++) {
        int id = s->node[i]->kind == N_LET ? s->node[i]->local->id : -1;

        if (id < 0)
            continue;
        s->again[id] = is_read_again(s, s->node[i]);
        if (!s->again[id] && s->last[id] > i) {
            s->live[i + 1]++;
            s->live[s->last[id] + 1]--;
        }
    }
    for (int i = 1; i <= s->n; i++) /* until now: what begins to live less what ends */
        s->live[i] += s->live[i - 1];
}

static void add_segment(Parts *s, int from, int to, bool inlined)
{
    s->segment = arena_grow(s->o->p->arena, s->segment, s->nsegment, &s->cap, sizeof *s->segment);
    s->segment[s->nsegment++] = (Segment){ from, to, inlined };
}

/* Where the part that begins at `from` ends: over the last of the best cuts. */
static int cut_after(const Parts *s, int from)
{
    int64_t w = 0;
    int i = from, best = -1;

    while (i < s->n) {
        int64_t next = weigh(s->node[i]);

        if (i > from && (s->stays[i] || w + next > s->o->most))
            break;
        w += next;
        i++;
        if (w >= s->o->most / 2 && i < s->n && (best < 0 || s->live[i] <= s->live[best]))
            best = i;
    }
    return i == s->n || best < 0 ? i : best;
}

/* Whether anything leaves. */
static bool find_cuts(Parts *s)
{
    bool leaves = false, room = keeps_large(s);

    for (int i = 0; i < s->n; i++)
        s->stays[i] = must_stay(s, s->node[i], room);
    for (int from = 0, to; from < s->n; from = to) {
        to = s->stays[from] ? from + 1 : cut_after(s, from);
        add_segment(s, from, to, s->stays[from]);
        leaves = leaves || !s->stays[from];
    }
    return leaves;
}

static void note_crossing(Expr *e, void *ctx)
{
    Parts *s = ctx;
    const Segment *at = &s->segment[s->at];
    int id = e->op == OP_local ? e->local->id : -1, def = id < 0 ? INSIDE : s->def[id];

    if (def == OUTSIDE && (!at->inlined || s->o->assigned[id]))
        s->crosses[id] = true;
    if (def >= 0 && def < at->from && !s->again[id])
        s->crosses[id] = true;
}

static void find_crossing(Parts *s)
{
    for (s->at = 0; s->at < s->nsegment; s->at++) {
        Memo met = { 0 };

        for (int i = s->segment[s->at].from; i < s->segment[s->at].to; i++)
            loop_visit(s->o->p, s->node[i], note_crossing, s, &met);
    }
}

static void put_struct(Parts *s)
{
    Text *t = s->o->parts;

    text_f(t, "\n\nstruct %s_live_%d {", s->o->prefix, s->number);
    for (int id = 0; id < s->o->p->nlocal; id++)
        if (s->crosses[id])
            text_f(t, "\n    %s t%d;", emit_local_type(s->o, s->local[id]), id);
    text_str(t, "\n};");
}

static void put_member(const Parts *s, int id)
{
    if (s->segment[s->at].inlined)
        text_f(s->o->out, "live_%d.t%d", s->number, id);
    else
        text_f(s->o->out, "live->t%d", id);
}

/* Makes known what the next node mentions and an earlier segment has made. */
static void bring(Expr *e, void *ctx)
{
    Parts *s = ctx;
    Emit *o = s->o;
    const Segment *at = &s->segment[s->at];
    int id = e->op == OP_local ? e->local->id : -1, def = id < 0 ? INSIDE : s->def[id];
    Memo met = { 0 };

    if (def == INSIDE || s->here[id] || (def >= at->from && !s->again[id]) ||
        (def == OUTSIDE && !s->crosses[id]) ||
        (def == OUTSIDE && at->inlined && !o->assigned[id]))
        return;
    s->here[id] = true;
    if (s->again[id]) {
        ir_visit(o->p, s->node[def]->value, bring, s, &met);
        emit_let(o, s->node[def]);
        return;
    }
    emit_line(o);
    text_f(o->out, "%s%s ", o->assigned[id] ? "" : "const ", emit_local_type(o, e->local));
    emit_local(o, e->local);
    text_str(o->out, " = ");
    put_member(s, id);
    text_char(o->out, ';');
}

static void note_written(const Node *n, bool *written)
{
    if (n->kind == N_STORE && n->out->op == OP_local)
        written[n->out->local->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_written(n->body[i], written);
}

/* What later segments, or what comes after the list, need of this one. */
static void keep(const Parts *s)
{
    const Segment *at = &s->segment[s->at];
    bool *written = arena_array(s->o->p->arena, s->o->p->nlocal, sizeof *written);

    for (int i = at->from; i < at->to; i++) {
        note_written(s->node[i], written);
        if (s->node[i]->kind == N_LET)
            written[s->node[i]->local->id] = true;
    }
    for (int id = 0; id < s->o->p->nlocal; id++)
        if (written[id] && s->crosses[id]) {
            emit_line(s->o);
            put_member(s, id);
            text_str(s->o->out, " = ");
            emit_local(s->o, s->local[id]);
            text_char(s->o->out, ';');
        }
}

static void put_segment(Parts *s)
{
    const Segment *at = &s->segment[s->at];

    s->here = arena_array(s->o->p->arena, s->o->p->nlocal, sizeof *s->here);
    for (int i = at->from; i < at->to; i++) {
        Memo met = { 0 };

        if (s->node[i]->kind == N_LET && s->again[s->node[i]->local->id])
            continue;
        loop_visit(s->o->p, s->node[i], bring, s, &met);
        emit_node(s->o, s->node[i]);
    }
    keep(s);
}

static void put_function(Parts *s)
{
    Emit *o = s->o;
    const Segment *at = &s->segment[s->at];
    int number = o->nparts++;
    Function f = emit_open(o);

    put_segment(s);
    emit_close(o, &f);
    text_f(o->parts,
           "\n\n%s%s_part_%d%sstruct %s_live_%d%slive WEFT_USED)"
           "\n{\n    int64_t fault = 0;",
           o->dialect->part, o->prefix, number, o->dialect->part_args, o->prefix, s->number,
           o->dialect->array);
    emit_body(o, o->parts, &f, s->node + at->from, at->to - at->from);
    text_str(o->parts, "\n    return fault;\n}");
    emit_line(o);
    text_f(o->out, "if (fault == 0) fault = %s_part_%d%s, &live_%d);", o->prefix, number,
           o->dialect->pass, s->number);
    emit_line(o);
    text_str(o->out, "if (fault != 0) return fault;");
}

static void put_inlined(Parts *s)
{
    emit_line(s->o);
    text_char(s->o->out, '{');
    s->o->indent++;
    put_segment(s);
    s->o->indent--;
    emit_line(s->o);
    text_char(s->o->out, '}');
}

/* The values from outside into the struct; back again those that the list assigns to. */
static void put_outside(Parts *s, bool back)
{
    Emit *o = s->o;

    for (int id = 0; id < o->p->nlocal; id++) {
        if (!s->crosses[id] || s->def[id] != OUTSIDE || (back && !o->assigned[id]))
            continue;
        emit_line(o);
        if (!back)
            text_f(o->out, "live_%d.t%d = ", s->number, id);
        emit_local(o, s->local[id]);
        if (back)
            text_f(o->out, " = live_%d.t%d", s->number, id);
        text_char(o->out, ';');
    }
}

static Parts new_parts(Emit *o, Node *const *n, int count)
{
    Arena *arena = o->p->arena;
    int locals = o->p->nlocal;
    Parts s = { .o = o, .node = n, .n = count, .number = o->nlists++ };

    s.def = arena_array(arena, locals, sizeof *s.def);
    s.last = arena_array(arena, locals, sizeof *s.last);
    s.local = arena_array(arena, locals, sizeof *s.local);
    s.again = arena_array(arena, locals, sizeof *s.again);
    s.crosses = arena_array(arena, locals, sizeof *s.crosses);
    s.live = arena_array(arena, count + 1, sizeof *s.live);
    s.stays = arena_array(arena, count, sizeof *s.stays);
    for (int id = 0; id < locals; id++)
        s.def[id] = OUTSIDE;
    return s;
}

void emit_parts(Emit *o, Node *const *n, int count)
{
    Parts s = new_parts(o, n, count);

    find_lives(&s);
    if (!find_cuts(&s)) {
        for (int i = 0; i < count; i++)
            emit_node(o, n[i]);
        return;
    }
    find_crossing(&s);
    put_struct(&s);
    emit_line(o);
    text_f(o->out, "{ struct %s_live_%d live_%d;", o->prefix, s.number, s.number);
    put_outside(&s, false);
    for (s.at = 0; s.at < s.nsegment; s.at++)
        if (s.segment[s.at].inlined)
            put_inlined(&s);
        else
            put_function(&s);
    put_outside(&s, true);
    text_str(o->out, " }");
}
