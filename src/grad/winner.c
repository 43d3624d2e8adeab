/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Which instance of max= or min= won: told by companions that record the position of every
 * variable that the output's element does not tell, and the number of the statement when there are
 * several. */
#include "grad/grad_int.h"

#include <string.h>

/* The statements that write one buffer. */
typedef struct Writers {
    const Stmt **stmt;
    Assign **assign;
    int n, cap, cap2;
} Writers;

static Writers writers_of(Grad *g, const Buf *b)
{
    Writers w = { 0 };

    for (int i = 0; i < g->nstmt; i++)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            Assign *a = &g->p->stmt[i]->assign[k];

            if (a->op == A_INSERT || a->out->buf != b)
                continue;
            w.stmt = arena_grow(g->p->arena, w.stmt, w.n, &w.cap, sizeof *w.stmt);
            w.assign = arena_grow(g->p->arena, w.assign, w.n, &w.cap2, sizeof *w.assign);
            w.stmt[w.n] = g->p->stmt[i];
            w.assign[w.n++] = a;
        }
    return w;
}

static bool hangs_on(const Var *v, const Var *up)
{
    for (; v->parent != NULL && v->parent->op == OP_var; v = v->parent->var)
        if (v->parent->var == up)
            return true;
    return false;
}

/* The variables whose positions tell the instance apart from others of the same element: those
 * that are not spatial, less those that a recorded descendant tells. */
static int telling(const Stmt *s, const Assign *a, Var **out)
{
    int n = 0;

    for (int i = 0; i < s->nbind; i++) {
        bool told = ir_reach(a, s->bind[i]) == REACH_SPATIAL;

        for (int k = 0; k < s->nbind; k++)
            told = told ||
                   (hangs_on(s->bind[k], s->bind[i]) && ir_reach(a, s->bind[k]) != REACH_SPATIAL);
        if (!told)
            out[n++] = s->bind[i];
    }
    return n;
}

/* The companion of a that records this value, or NULL. */
static Expr *recorded(const Assign *a, Expr *value)
{
    for (int k = 0; k < a->nat; k++)
        if (a->at[k].value == value)
            return a->at[k].out;
    return NULL;
}

static void add_companion(Grad *g, Assign *a, Buf *w, Expr *value)
{
    At *at = arena_array(g->p->arena, a->nat + 1, sizeof *at);

    if (a->nat > 0)
        memcpy(at, a->at, (size_t)a->nat * sizeof *at);
    at[a->nat++] = (At){ ir_load(g->p, w, a->out->arg, a->out->nargs), value };
    a->at = at;
}

/* at_M, or at_M_e when there are several */
static Buf *new_companion(Grad *g, const Buf *b, const char *end)
{
    Text stem = { .arena = g->p->arena };
    Buf w = { .type = T_i64, .kind = B_TEMP, .slot = b->slot, .nslot = b->nslot };

    text_f(&stem, "at_%s%s%s", b->name, end != NULL ? "_" : "", end != NULL ? end : "");
    w.name = ir_fresh(g->p, stem.s, false);
    return ir_buf(g->p, &w);
}

/* The companion in which each writer records its number, as one access of writer i; or NULL. */
static Expr *number_of(Grad *g, const Writers *w, int i)
{
    for (int k = 0; k < w->assign[i]->nat; k++) {
        Expr *out = w->assign[i]->at[k].out;
        int hits = 0;

        for (int j = 0; j < w->n; j++)
            for (int c = 0; c < w->assign[j]->nat; c++)
                hits += w->assign[j]->at[c].out->buf == out->buf &&
                        w->assign[j]->at[c].value == ir_int(g->p, j);
        if (hits == w->n)
            return out;
    }
    return NULL;
}

static bool all_recorded(Grad *g, const Writers *w)
{
    Var *v[IR_MAX_BINDS];

    for (int i = 0; i < w->n; i++) {
        int n = telling(w->stmt[i], w->assign[i], v);

        for (int k = 0; k < n; k++)
            if (recorded(w->assign[i], ir_of_var(g->p, OP_pos, v[k])) == NULL)
                return false;
    }
    return w->n == 1 || number_of(g, w, 0) != NULL;
}

/* Makes all writers record place k of their telling variables; false when none has so many.
 * Writers that have fewer record 0. */
static bool record_place(Grad *g, const Buf *b, const Writers *w, int k)
{
    Var *v[IR_MAX_BINDS], *first = NULL;
    bool only = w->n == 1 && k == 0;
    Buf *at;

    for (int i = w->n - 1; i >= 0; i--) {
        int n = telling(w->stmt[i], w->assign[i], v);

        first = k < n ? v[k] : first;
        only = only && n == 1;
    }
    if (first == NULL)
        return false;
    at = new_companion(g, b, only ? NULL : first->name);
    for (int i = 0; i < w->n; i++) {
        int n = telling(w->stmt[i], w->assign[i], v);

        add_companion(g, w->assign[i], at, k < n ? ir_of_var(g->p, OP_pos, v[k]) : ir_int(g->p, 0));
    }
    return true;
}

/* Makes every writer record its telling variables and, if there are several writers, its number. */
static void record(Grad *g, const Buf *b, const Writers *w)
{
    Buf *at;

    if (g->saved[b->id])
        ir_throw(g->p, ST_ARG,
                 "save: the winners of %s are not recorded, so its value alone does "
                 "not tell them; add `at W[...] = pos(...)` to %s, or do not save it",
                 b->name, w->assign[0]->label);
    for (int k = 0; record_place(g, b, w, k); k++)
        ;
    if (w->n == 1)
        return;
    at = new_companion(g, b, "by");
    for (int i = 0; i < w->n; i++)
        add_companion(g, w->assign[i], at, ir_int(g->p, i));
}

static Expr *condition(Grad *g, const Writers *w, int i)
{
    const Assign *a = w->assign[i];
    Var *v[IR_MAX_BINDS];
    int n = telling(w->stmt[i], a, v);
    Expr *all = NULL;

    for (int k = 0; k < n; k++) {
        Expr *value = ir_of_var(g->p, OP_pos, v[k]);

        all = grad_and(g, all, ir_op2(g->p, OP_eq, recorded(a, value), value));
    }
    if (w->n > 1)
        all = grad_and(g, all, ir_op2(g->p, OP_eq, number_of(g, w, i), ir_int(g->p, i)));
    return all;
}

Expr *grad_winner(Grad *g, const Assign *a)
{
    const Buf *b;
    Writers w;

    if (a->op != A_MAX && a->op != A_MIN)
        return NULL;
    b = a->out->buf;
    if (g->old->buf[b->id]->kind == B_INOUT)
        ir_throw(g->p, ST_CHECK,
                 "%s: the derivative of max= and min= into an inout buffer is not "
                 "defined, as its first content may win; use a temporary",
                 a->label);
    w = writers_of(g, b);
    if (!all_recorded(g, &w))
        record(g, b, &w);
    for (int i = 0; i < w.n; i++)
        if (w.assign[i] == a)
            return condition(g, &w, i);
    return NULL;
}
