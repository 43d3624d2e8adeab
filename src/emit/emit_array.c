/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The arrays and counts that a text uses: their places among the arguments of a function, their
 * names, and which of them each function reads and writes. */
#include "emit/emit_int.h"

#include <string.h>

/* The entry of an array in o->place: its place and 1, or 0. */
static int *entry(Emit *o, const Buf *b)
{
    int own = b->id >= LOOP_OWN, at = own ? b->id - LOOP_OWN : b->id, old = o->cap_place[own];

    if (at >= old) {
        int n = at + at / 2 + 16, *to = arena_array(o->p->arena, n, sizeof *to);

        if (old > 0)
            memcpy(to, o->place[own], (size_t)old * sizeof *to);
        o->place[own] = to;
        o->cap_place[own] = n;
    }
    return &o->place[own][at];
}

/* Arrays, counts and searches that the text mentions, each once. */
static void need_array(Emit *o, Buf *b)
{
    EmitKernel *k = o->k;
    int *at = entry(o, b);

    if (*at != 0)
        return;
    if (loop_is_work(b)) {
        o->work = arena_grow(o->p->arena, o->work, o->nwork, &o->cap_work, sizeof *o->work);
        o->work[o->nwork++] = b;
        *at = o->nwork;
        return;
    }
    k->array = arena_grow(o->p->arena, k->array, k->narray, &o->cap_array, sizeof *k->array);
    k->array[k->narray++] = b;
    *at = k->narray;
}

static void need_count(Emit *o, Axis *a)
{
    EmitKernel *k = o->k;

    if (o->count_place[a->id] != 0)
        return;
    k->count = arena_grow(o->p->arena, k->count, k->ncount, &o->cap_count, sizeof *k->count);
    k->count[k->ncount++] = a;
    o->count_place[a->id] = k->ncount;
}

static void need(Expr *e, void *ctx)
{
    Emit *o = ctx;

    if (e->op == OP_cell)
        need_array(o, e->buf);
    if (e->op == OP_count)
        need_count(o, e->axis);
    if (e->op == OP_above) {
        need_array(o, loop_start(o->p, e->axis));
        need_count(o, e->axis->parent);
    }
    for (int k = 0; e->op == OP_find && k < e->axis->ncoord; k++)
        if (e->axis->coord[k].kind == C_LOAD || e->axis->coord[k].kind == C_TABLE)
            need_array(o, loop_coord(o->p, e->axis, k));
    if (e->op == OP_find && e->k == FIND_LOOKUP)
        need_array(o, loop_map(o->p, e->axis));
}

/* What a phase that builds an axis writes. */
static void need_built(Emit *o, Axis *a)
{
    need_array(o, loop_start(o->p, a));
    for (int k = 0; k < a->ncoord; k++)
        need_array(o, loop_coord(o->p, a, k));
}

Buf *emit_array(const Emit *o, int i)
{
    return i < o->k->narray ? o->k->array[i] : o->work[i - o->k->narray];
}

static int place_of(Emit *o, const Buf *b)
{
    return *entry(o, b) - 1 + (loop_is_work(b) ? o->k->narray : 0);
}

static uint64_t hash_of(const Text *t)
{
    return hash_bytes(0, t->s, t->n);
}

/* The slot of a name in a table of places and 1: the one that has it, or the free one. */
static int64_t name_slot(const Emit *o, const int *taken, int64_t cap, const Text *t)
{
    int64_t at = (int64_t)(hash_of(t) % (uint64_t)cap);

    while (taken[at] != 0 && strcmp(o->array_name[taken[at] - 1], t->s) != 0)
        at = (at + 1) % cap;
    return at;
}

/* a_X: dots become underscores, and who comes later gives way. */
static void name_arrays(Emit *o)
{
    int n = o->k->narray + o->nwork;
    int64_t cap = 2 * (int64_t)n + 1, at;
    int *taken = arena_array(o->p->arena, cap, sizeof *taken);

    o->array_name = arena_array(o->p->arena, n, sizeof *o->array_name);
    for (int i = 0; i < n; i++) {
        Text t = { .arena = o->p->arena };

        if (emit_array(o, i)->kind == B_CONST)
            text_f(&t, "%s_", o->prefix);
        text_f(&t, "a_%s", emit_array(o, i)->name);
        for (char *s = t.s; *s != 0; s++)
            *s = *s == '.' ? '_' : *s;
        while (taken[at = name_slot(o, taken, cap, &t)] != 0)
            text_char(&t, '_');
        taken[at] = i + 1;
        o->array_name[i] = t.s;
    }
}

void emit_need(Emit *o, Node *const *phase, int n)
{
    Memo met = { 0 };
    int all;

    o->count_place = arena_array(o->p->arena, o->p->naxis, sizeof *o->count_place);
    for (int i = 0; i < n; i++) {
        loop_visit(o->p, phase[i], need, o, &met);
        if (loop_builds(phase[i]) != NULL)
            need_built(o, loop_builds(phase[i]));
    }
    all = o->k->narray + o->nwork;
    o->stored.by = arena_array(o->p->arena, all, sizeof *o->stored.by);
    o->phase_stored.by = arena_array(o->p->arena, all, sizeof *o->phase_stored.by);
    o->noted_array = arena_array(o->p->arena, all, sizeof *o->noted_array);
    o->noted_count = arena_array(o->p->arena, o->k->ncount, sizeof *o->noted_count);
    name_arrays(o);
}

/* A place is on the list of a function once, or once more after each function inside. */
static void note(Emit *o, Places *to, int *noted, int place)
{
    if (noted[place] == o->used.serial)
        return;
    noted[place] = o->used.serial;
    to->at = arena_grow(o->p->arena, to->at, to->n, &to->cap, sizeof *to->at);
    to->at[to->n++] = place;
}

void emit_array_name(Emit *o, const Buf *b)
{
    int i = place_of(o, b);

    note(o, &o->used.array, o->noted_array, i);
    text_str(o->out, o->array_name[i]);
}

void emit_count_name(Emit *o, const Axis *a)
{
    note(o, &o->used.count, o->noted_count, o->count_place[a->id] - 1);
    text_f(o->out, "n_%s", a->name);
}

static int by_place(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void emit_sort(Places *s)
{
    int n = 0;

    array_sort(s->at, s->n, sizeof *s->at, by_place);
    for (int i = 0; i < s->n; i++)
        if (n == 0 || s->at[n - 1] != s->at[i])
            s->at[n++] = s->at[i];
    s->n = n;
}

static void store(Emit *o, Stored *s, const Buf *b)
{
    int place = place_of(o, b);

    if (s->by[place] == s->serial)
        return;
    s->by[place] = s->serial;
    if (loop_is_work(b)) {
        s->work.at = arena_grow(o->p->arena, s->work.at, s->work.n, &s->work.cap,
                                sizeof *s->work.at);
        s->work.at[s->work.n++] = place - o->k->narray;
    }
}

static void see_stores(Emit *o, Stored *s, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell)
        store(o, s, n->out->buf);
    for (int k = 0; k < n->nat; k++)
        store(o, s, n->at[k].out->buf);
    if (n->kind == N_BUILD) {
        store(o, s, loop_start(o->p, n->axis));
        for (int k = 0; k < n->axis->ncoord; k++)
            store(o, s, loop_coord(o->p, n->axis, k));
    }
    for (int i = 0; i < n->nbody; i++)
        see_stores(o, s, n->body[i]);
}

void emit_find_stores(Emit *o, Stored *s, Node *const *tree, int n)
{
    s->serial++;
    s->work.n = 0;
    for (int i = 0; i < n; i++)
        see_stores(o, s, tree[i]);
    emit_sort(&s->work);
}

bool emit_is_stored(Emit *o, const Stored *s, const Buf *b)
{
    return s->by[place_of(o, b)] == s->serial;
}
