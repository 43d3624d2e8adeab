/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The beginning and the end of a derivative: a copy of the program whose outputs became
 * temporaries, the buffers that matter, and at last the program without what nothing needs. */
#include "grad/grad_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_ORDER = 999 }; /* of derivatives that names count */

static Buf *find(Grad *g, const char *list, const char *name)
{
    Buf *b = ir_find_buf(g->p, name);

    if (b == NULL)
        ir_throw(g->p, ST_ARG, "%s: %s is not a buffer of the program", list, name);
    return b;
}

static void want_float(Grad *g, const Buf *b)
{
    if (b->kind == B_CONST)
        ir_throw(g->p, ST_ARG, "%s is constant and has no derivative", b->name);
    if (!ir_type[b->type].floats)
        ir_throw(g->p, ST_ARG, "%s holds integers (%s), which have no derivative", b->name,
                 ir_type[b->type].name);
}

static bool is_input(const Buf *b)
{
    return b->kind == B_ARG && !b->written && ir_type[b->type].floats;
}

static bool is_output(const Buf *b)
{
    return b->kind != B_TEMP && b->written && ir_type[b->type].floats;
}

/* The default: every buffer of a kind; `what` is that kind. */
static void choose_all(Grad *g, bool *set, bool (*wanted)(const Buf *), const char *what)
{
    bool any = false;

    for (int i = 0; i < g->nbuf; i++)
        any = (set[i] = wanted(g->p->buf[i])) || any;
    if (!any)
        ir_throw(g->p, ST_ARG, "the program has no floating-point %s, so there is no derivative",
                 what);
}

static void choose_wrt(Grad *g)
{
    if (g->opt->nwrt == 0)
        choose_all(g, g->wrt, is_input, "input");
    for (int i = 0; i < g->opt->nwrt; i++) {
        const Buf *b = find(g, "wrt", g->opt->wrt[i]);

        want_float(g, b);
        if (b->kind == B_INOUT)
            ir_throw(g->p, ST_ARG,
                     "%s is inout and no input: where it is added to, the cotangent of its first "
                     "content is that of its last; choose an input",
                     b->name);
        if (!is_input(b))
            ir_throw(g->p, ST_ARG, "%s is computed by the program; choose an input", b->name);
        g->wrt[b->id] = true;
    }
}

static void choose_of(Grad *g)
{
    if (g->opt->nof == 0)
        choose_all(g, g->of, is_output, "output");
    for (int i = 0; i < g->opt->nof; i++) {
        const Buf *b = find(g, "of", g->opt->of[i]);

        want_float(g, b);
        if (!is_output(b))
            ir_throw(g->p, ST_ARG, "%s is not an output of the program", b->name);
        g->of[b->id] = true;
    }
}

/* A saved buffer is an input of the derivative, and so are the companions it was found with. */
static void choose_saved(Grad *g)
{
    for (int i = 0; i < g->opt->nsave; i++) {
        const Buf *b = find(g, "save", g->opt->save[i]);

        if (!b->written)
            ir_throw(g->p, ST_ARG, "%s is not computed by the program and cannot be saved; name "
                                   "a temporary or an output",
                     b->name);
        g->saved[b->id] = true;
    }
    for (int i = 0; i < g->nstmt; i++)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            const Assign *a = &g->p->stmt[i]->assign[k];

            for (int c = 0; c < a->nat; c++)
                if (g->saved[a->out->buf->id])
                    g->saved[a->at[c].out->buf->id] = true;
        }
}

bool grad_depends(Grad *g, Expr *e, const bool *set, Memo *memo)
{
    Expr **known = ir_memo(g->p, memo, e);
    bool yes = e->op == OP_load && (int)e->buf->id < g->nbuf && set[e->buf->id];

    if (!ir_is_float(e))
        return false;
    if (*known != NULL)
        return *known == e;
    for (int i = 0; i < e->nargs && e->op != OP_load && !yes; i++)
        yes = !grad_is_flat((Op)e->op, i) && grad_depends(g, e->arg[i], set, memo);
    *ir_memo(g->p, memo, e) = yes ? e : ir_none(g->p);
    return yes;
}

void grad_mark_read(Grad *g, Expr *e, bool *set, Memo *met)
{
    Expr **known = ir_memo(g->p, met, e);

    if (*known != NULL || !ir_is_float(e))
        return;
    *known = e;
    if (e->op == OP_load)
        set[e->buf->id] = true;
    for (int i = 0; i < e->nargs && e->op != OP_load; i++)
        if (!grad_is_flat((Op)e->op, i))
            grad_mark_read(g, e->arg[i], set, met);
}

/* Which buffers vary with wrt (forwards), and which vary something asked for (backwards). */
static void find_active(Grad *g, bool inout)
{
    bool *varies = arena_copy(g->p->arena, g->wrt, (size_t)g->nbuf * sizeof *varies);
    bool *useful = arena_copy(g->p->arena, g->of, (size_t)g->nbuf * sizeof *useful);

    for (int b = 0; b < g->nbuf; b++)
        varies[b] = varies[b] || (inout && g->p->buf[b]->kind == B_INOUT);
    for (int i = 0; i < g->nstmt; i++)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            const Assign *a = &g->p->stmt[i]->assign[k];

            if (a->op != A_INSERT && !varies[a->out->buf->id])
                varies[a->out->buf->id] = grad_depends(g, a->value, varies, &(Memo){ 0 });
        }
    for (int i = g->nstmt - 1; i >= 0; i--)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            const Assign *a = &g->p->stmt[i]->assign[k];

            if (a->op != A_INSERT && useful[a->out->buf->id])
                grad_mark_read(g, a->value, useful, &(Memo){ 0 });
        }
    for (int b = 0; b < g->nbuf; b++)
        g->active[b] = varies[b] && useful[b];
}

/* The structure that the program built is given to its derivative. */
static void unbuild_axes(Grad *g)
{
    for (int i = 0; i < g->p->naxis; i++) {
        Axis *a = g->p->axis[i];
        Text name = { .arena = g->p->arena };

        if (a->extent != X_BUILT)
            continue;
        a->extent = a->parent != NULL ? X_SEG : X_EXPR;
        if (a->parent != NULL)
            continue;
        text_f(&name, "n_%s", a->var->name);
        a->size = ir_size_expr(g->p, ir_size(g->p, ir_fresh(g->p, name.s, false)));
    }
}

/* Outputs of the old program are temporaries of its derivative. */
static void demote_outputs(Grad *g)
{
    for (int i = 0; i < g->nbuf; i++)
        if (g->p->buf[i]->written)
            g->p->buf[i]->kind = B_TEMP;
}

/* An inout buffer that is still needed begins with its first content. */
static void restore_inout(const Grad *g, Prog *p)
{
    for (int i = 0; i < p->nbuf; i++) {
        const Buf *old = ir_find_buf(g->old, p->buf[i]->name);

        if (old != NULL && old->kind == B_INOUT && p->buf[i]->kind == B_TEMP)
            p->buf[i]->kind = B_INOUT;
    }
}

/* The number in a name like d2_X (1 for d_X), 0 when it is no such name; `end` is what follows. */
static int order_in(const char *s, char letter, char end)
{
    char *stop;
    long k;

    if (s[0] != letter)
        return 0;
    k = strtol(s + 1, &stop, 10);
    return *stop != end || k > LIMIT_ORDER ? 0 : k > 1 ? (int)k : 1;
}

/* The number of this pass: one more than the largest that a name or a label has. */
static int order_of(const Prog *p, char letter)
{
    int most = 0, k;

    for (int i = 0; i < p->nsize; i++)
        most = (k = order_in(p->size[i]->name, letter, '_')) > most ? k : most;
    for (int i = 0; i < p->nbuf; i++)
        most = (k = order_in(p->buf[i]->name, letter, '_')) > most ? k : most;
    for (int i = 0; i < p->nstmt; i++)
        for (int j = 0; j < p->stmt[i]->nassign; j++)
            most = (k = order_in(p->stmt[i]->assign[j].label, letter, '(')) > most ? k : most;
    return most + 1;
}

void grad_begin(Grad *g, Arena *arena, const Prog *p, const GradOptions *opt, char letter)
{
    int order = order_of(p, letter);

    *g = (Grad){
        .old = p, .p = ir_rebuild(arena, p), .opt = opt, .nstmt = p->nstmt, .nbuf = p->nbuf
    };
    if (order == 1)
        snprintf(g->mark, sizeof g->mark, "%c", letter);
    else
        snprintf(g->mark, sizeof g->mark, "%c%d", letter, order);
    snprintf(g->prefix, sizeof g->prefix, "%.12s_", g->mark);
    g->wrt = arena_array(arena, g->nbuf, sizeof *g->wrt);
    g->of = arena_array(arena, g->nbuf, sizeof *g->of);
    g->saved = arena_array(arena, g->nbuf, sizeof *g->saved);
    g->active = arena_array(arena, g->nbuf, sizeof *g->active);
    g->dual = arena_array(arena, g->nbuf, sizeof *g->dual);
    choose_wrt(g);
    choose_of(g);
    choose_saved(g);
    find_active(g, letter == 't');
    unbuild_axes(g);
    demote_outputs(g);
}

Buf *grad_dual(Grad *g, const Buf *b, const char *name, BufKind kind)
{
    Text t = { .arena = g->p->arena };
    Buf d = { .name = name, .type = b->type, .kind = kind, .slot = b->slot, .nslot = b->nslot };

    text_f(&t, "%s%s", g->prefix, b->name);
    if (name == NULL)
        d.name = t.s;
    if (strlen(d.name) > IR_MAX_NAME)
        ir_throw(g->p, ST_LIMIT, "the name %s is longer than %d characters; shorten that of %s",
                 d.name, IR_MAX_NAME, b->name);
    return ir_buf(g->p, &d);
}

const char *grad_label(Grad *g, const char *label, const char *buf, int occurrence)
{
    Text t = { .arena = g->p->arena };

    text_f(&t, "%s(%s", g->mark, label);
    if (buf != NULL)
        text_f(&t, ",%s", buf);
    if (occurrence > 0)
        text_f(&t, ".%d", occurrence);
    text_char(&t, ')');
    if (t.n > 4 * IR_MAX_NAME)
        ir_throw(g->p, ST_LIMIT, "the label %s is longer than %d characters; shorten the names",
                 t.s, 4 * IR_MAX_NAME);
    return t.s;
}

void grad_set_all(Grad *g, Buf *b, AssignOp op, const char *label, Buf *from)
{
    Var *bind[IR_MAX_FULL];
    Assign a = {
        .label = label, .op = op, .out = ir_everywhere(g->p, b, bind), .value = ir_int(g->p, 0)
    };

    if (from != NULL)
        a.value = ir_load(g->p, from, a.out->arg, a.out->nargs);
    ir_stmt(g->p, bind, b->nfull, &a, 1);
}

/* A quotient is as cheap as reading it, so only a saved one counts. */
Expr *grad_result(const Grad *g, const Assign *a)
{
    const Buf *b = a->out->buf;
    bool cheap = a->value->op == OP_div && !g->saved[b->id];

    return a->op == A_SET && a->value->type == b->type && !cheap ? a->out : NULL;
}

static void drop_saved_companions(const Grad *g, Assign *a)
{
    int n = 0;

    for (int k = 0; k < a->nat; k++)
        if (a->at[k].out->buf->id >= g->nbuf || !g->saved[a->at[k].out->buf->id])
            a->at[n++] = a->at[k];
    a->nat = n;
}

/* stored(C[...]) asks for structure alone, which the dual of C has too: then C itself need not be
 * there. */
static Expr *structure_of(Prog *p, Expr *e, void *ctx)
{
    const Grad *g = ctx;
    Expr *load = e->op == OP_stored ? e->arg[0] : NULL;
    Buf *dual = load != NULL && load->buf->id < g->nbuf ? g->dual[load->buf->id] : NULL;

    if (dual == NULL || dual->kind == B_TEMP)
        return e;
    return ir_op1(p, OP_stored, ir_load(p, dual, load->arg, load->nargs));
}

static Expr *structure(Grad *g, Expr *e)
{
    return e == NULL ? NULL : ir_rewrite(g->p, e, structure_of, g, &g->structure);
}

Expr *grad_tidy(Grad *g, Expr *e)
{
    return e == NULL ? NULL : ir_simplify(g->p, structure(g, e), &g->simple);
}

/* Insertions, and what computes a saved buffer, are not done again. */
static void tidy_old(Grad *g)
{
    for (int i = 0; i < g->nstmt; i++) {
        Stmt *s = g->p->stmt[i];
        int n = 0;

        for (int k = 0; k < s->nassign; k++) {
            if (s->assign[k].op == A_INSERT || g->saved[s->assign[k].out->buf->id])
                continue;
            drop_saved_companions(g, &s->assign[k]);
            s->assign[k].value = structure(g, s->assign[k].value);
            s->assign[k].guard = structure(g, s->assign[k].guard);
            s->assign[n++] = s->assign[k];
        }
        s->nassign = n;
    }
    for (int i = 0; i < g->nbuf; i++)
        if (g->saved[i]) {
            g->p->buf[i]->kind = B_ARG;
            g->p->buf[i]->written = false;
        }
}

Prog *grad_end(Grad *g, Arena *arena)
{
    Text name = { .arena = g->p->arena };
    Prog *p;

    text_f(&name, "%s%.*s", g->prefix, (int)(IR_MAX_NAME - strlen(g->prefix)), g->p->name);
    g->p->name = name.s;
    tidy_old(g);
    p = ir_prune(arena, g->p);
    restore_inout(g, p);
    ir_check(p);
    return p;
}
