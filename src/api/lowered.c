/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Lowers a program to the C text of a kernel.  The trees of the passes are many times larger than
 * the program, and are freed when the text is written.  Runs and plans need only what is kept: the
 * declarations, the arrays and phases of the text, and the work in each phase. */
#include "api/api_int.h"
#include "emit/emit.h"
#include "jit/jit.h"
#include "lower/lower.h"

#include <string.h>

static void narrow(const Body *body, Prog *p, const VariantKey *key)
{
    for (int i = 0; i < body->narg; i++)
        if (key->index[i] == T_i32)
            lower_narrow(p, p->axis[body->arg[i].axis->id],
                         body->arg[i].kind == ARG_START ? -1 : body->arg[i].k);
}

static void set_strides(const Body *body, Prog *p, const VariantKey *key)
{
    for (int i = 0; i < body->narg && key->stride != NULL; i++)
        if (key->stride[i] != NULL)
            lower_strided(p, p->buf[body->arg[i].buf->id], key->stride[i], body->arg[i].ndim);
}

/* The sizes that vector loops run up to. */
static void note_lanes(const Node *n, bool *in_lanes)
{
    if (n->kind == N_FOR && n->how == FOR_VECTOR && n->hi->op == OP_size)
        in_lanes[n->hi->size->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_lanes(n->body[i], in_lanes);
}

static const char *copy_text(Arena *arena, const char *s)
{
    return s == NULL ? NULL : arena_copy(arena, s, strlen(s) + 1);
}

static EmitPhase keep_phase(Prog *own, const EmitPhase *f)
{
    EmitPhase to = *f;

    to.name = copy_text(own->arena, f->name);
    to.kernel = copy_text(own->arena, f->kernel);
    to.why = copy_text(own->arena, f->why);
    to.extent = f->extent == NULL ? NULL : ir_import(own, f->extent);
    to.balance = loop_same_buf(own, f->balance);
    to.parts = loop_same_buf(own, f->parts);
    to.builds = f->builds == NULL ? NULL : own->axis[f->builds->id];
    return to;
}

/* The same, as objects of the program that stays. */
static EmitKernel *keep_info(Prog *own, const EmitKernel *info)
{
    EmitKernel *to = arena_copy(own->arena, info, sizeof *info);

    to->phase = arena_array(own->arena, info->nphase, sizeof *to->phase);
    to->array = arena_array(own->arena, info->narray, sizeof *to->array);
    to->count = arena_array(own->arena, info->ncount, sizeof *to->count);
    for (int i = 0; i < info->nphase; i++)
        to->phase[i] = keep_phase(own, &info->phase[i]);
    for (int i = 0; i < info->narray; i++)
        to->array[i] = loop_same_buf(own, info->array[i]);
    for (int i = 0; i < info->ncount; i++)
        to->count[i] = own->axis[info->count[i]->id];
    return to;
}

static Lowered *keep(Arena *arena, Prog *p, const EmitKernel *info, const Aim *aim)
{
    Lowered *l = arena_alloc(arena, sizeof *l);
    Prog *own = ir_copy_declared(arena, p);
    LowerWork *work = arena_array(arena, p->nphase, sizeof *work);

    *l = (Lowered){ .prog = own,
                    .target = aim->target,
                    .skip = aim->skip,
                    .info = keep_info(own, info),
                    .work = work };
    l->use = hold_uses(arena, p, info);
    l->label = arena_array(arena, p->nphase, sizeof *l->label);
    l->in_lanes = arena_array(arena, p->nsize, sizeof *l->in_lanes);
    for (int i = 0; i < p->nphase; i++) {
        const char *label = p->phase[i]->label;

        note_lanes(p->phase[i], l->in_lanes);
        work[i] = lower_note_work(own, p->phase[i]);
        if (lower_has_slices(p, p->phase[i]))
            work[i].sliced = own->axis[p->phase[i]->parts->of->id];
        l->label[i] = label != NULL ? copy_text(arena, label) : l->info->phase[i].name;
    }
    return l;
}

const Lowered *kernel_lower(weft_ctx *ctx, Arena *arena, const Body *body, const VariantKey *key,
                            Text *source)
{
    const Prog *prog = body->prog;
    const Target *target = api_target(ctx);
    const EmitKernel *info;
    const Lowered *l;
    Prog *p;
    Aim aim;

    if (prog->stage != STAGE_COORDINATES) /* a stranger's tree may store anywhere */
        err_throw(&ctx->err, ST_LIMIT,
                  "%s is at stage %s, and a tree that is read from text is only "
                  "interpreted, where every index is checked",
                  prog->name, ir_stage[prog->stage]);
    p = api_trees(ctx, prog);
    narrow(body, p, key);
    set_strides(body, p, key);
    for (int i = 0; i < prog->nsize && key->size != NULL; i++)
        p->size[i]->is = key->size[i];
    aim = api_aim_of(ctx, target, key->sched);
    api_passes(p, &aim);
    info = emit_text(source, target->dialect, p, p->phase, p->nphase, p->name);
    l = keep(arena, p, info, &aim);
    arena_free(&ctx->trees);
    return l;
}

JitRequest *kernel_request(Arena *arena, const Lowered *l, const Text *source)
{
    const char **flag = arena_array(arena, 16, sizeof *flag);
    const char **symbol = arena_array(arena, l->info->nphase, sizeof *symbol);
    Text identity = { .arena = arena };
    JitRequest *r = arena_alloc(arena, sizeof *r);

    *r = (JitRequest){ .source = source->s,
                       .nsource = source->n,
                       .flag = flag,
                       .nflag = 3,
                       .symbol = symbol,
                       .nsymbol = l->info->nphase };
    flag[0] = "-O2";
    flag[1] = "-std=gnu11";
    flag[2] = "-ffp-contract=off";
    for (int i = 0; l->target->flag[i] != NULL; i++)
        flag[r->nflag++] = l->target->flag[i];
    for (int i = 0; i < l->info->nphase; i++)
        symbol[i] = l->info->phase[i].name;
    text_f(&identity, "weft %s, %s", weft_version(), target_name(l->target));
    for (int i = 0; api_pass[i].name != NULL; i++)
        if (l->skip >> i & 1)
            text_f(&identity, ", without %s", api_pass[i].name);
    r->identity = identity.s;
    return r;
}
