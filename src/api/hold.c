/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Held inputs: the caller promises that their elements do not change.  Phases that compute
 * temporaries from held inputs and structure alone, such as those that store values in a format,
 * then run once for a plan and not in every run. */
#include "api/api_int.h"
#include "emit/emit.h"

typedef struct Using { /* of one phase, by array */
    const EmitKernel *info;
    uint8_t *use;
} Using;

static void note(const Using *u, const Buf *b, int how)
{
    for (int a = 0; a < u->info->narray; a++)
        if (u->info->array[a] == b)
            u->use[a] |= (uint8_t)how;
}

static void note_cell(Expr *e, void *ctx)
{
    if (e->op == OP_cell)
        note(ctx, e->buf, HOLD_READS);
}

static void note_stores(const Using *u, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell)
        note(u, n->out->buf, HOLD_WRITES);
    for (int k = 0; k < n->nat; k++)
        note(u, n->at[k].out->buf, HOLD_WRITES);
    for (int i = 0; i < n->nbody; i++)
        note_stores(u, n->body[i]);
}

const uint8_t *hold_uses(Arena *arena, Prog *p, const EmitKernel *info)
{
    uint8_t *use = arena_array(arena, (int64_t)info->nphase * info->narray, sizeof *use);

    for (int i = 0; i < info->nphase; i++) {
        Using u = { info, use + (ptrdiff_t)i * info->narray };
        Memo met = { 0 };

        loop_visit(p, p->phase[i], note_cell, &u, &met);
        note_stores(&u, p->phase[i]);
    }
    return use;
}

static const uint8_t *uses_of(const Lowered *l, int phase)
{
    return l->use + (ptrdiff_t)phase * l->info->narray;
}

/* Whether an array is after a run what it was after the last. */
static bool stays(const Lowered *l, const HoldKind *kind, const bool *kept, int a)
{
    bool same = kind[a] != HOLD_CHANGES;

    for (int i = 0; i < l->info->nphase && kind[a] == HOLD_OWN; i++)
        same = same && (kept[i] || !(uses_of(l, i)[a] & HOLD_WRITES));
    return same;
}

static bool is_kept(const Lowered *l, const HoldKind *kind, const bool *kept, int phase)
{
    const uint8_t *use = uses_of(l, phase);
    bool good = true;

    for (int a = 0; a < l->info->narray && good; a++) {
        if (use[a] & HOLD_WRITES)
            good = kind[a] == HOLD_OWN;
        if (use[a] != 0)
            good = good && stays(l, kind, kept, a);
    }
    return good;
}

/* From all of them downwards: what one that changes writes, changes what reads it. */
void hold_mark(const Lowered *l, const HoldKind *kind, bool *kept)
{
    bool changed = true;

    for (int i = 0; i < l->info->nphase; i++)
        kept[i] = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < l->info->nphase; i++)
            if (kept[i] && !is_kept(l, kind, kept, i)) {
                kept[i] = false;
                changed = true;
            }
    }
}

static Bound *find_input(weft_ctx *ctx, weft_args *args, const char *name)
{
    const Arg *a = api_find_arg(ctx, args->body, name);

    if (a->kind == ARG_SIZE)
        err_throw(&ctx->err, ST_ARG, "%s is a size: only buffers can be held", name);
    if (a->kind != ARG_BUF)
        err_throw(&ctx->err, ST_ARG,
                  "%s is structure, which no run reads anew: bind it again after a change", name);
    if (a->role != WEFT_INPUT)
        err_throw(&ctx->err, ST_ARG, "%s is written by the program: only inputs can be held", name);
    return &args->bound[a - args->body->arg];
}

weft_status weft_args_hold(weft_args *args, const char *name, int held)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);
    Bound *b;

    API_ENTER(ctx);
    b = find_input(ctx, args, name);
    args->nheld += (held != 0) - b->held;
    b->held = held != 0;
    args->holds++;
    return api_leave(ctx);
}

weft_status weft_args_changed(weft_args *args, const char *name)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    if (!find_input(ctx, args, name)->held)
        err_throw(&ctx->err, ST_ARG, "%s is not held: every run reads it anew", name);
    args->holds++;
    return api_leave(ctx);
}
