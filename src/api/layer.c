/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Layers on plain arrays.  Each function of a layer is a program, that of the layer or a derivative
 * of it, compiled at its first call.  This file uses only the public functions for programs and
 * kernels. */
#include "api/layer_int.h"

#include <stdio.h>
#include <string.h>

#define SLOT LAYER_SLOT
#define BIT(kind, operand) (1u << SLOT(kind, operand))
#define INPUTS(kind) (BIT(kind, LAYER_Z) - BIT(kind, LAYER_X))

typedef struct Call {
    int order;
    const LayerRows *rows;
    const void *array[LAYER_SLOTS]; /* outputs are written to all the same */
    unsigned wanted, along, needed; /* bits of slots */
} Call;

static int operand_of(int slot)
{
    return slot % LAYER_OPERANDS;
}

weft_status layer_fault(Layer *l, Status code, const char *message, const char *what)
{
    weft_ctx *ctx = l->ctx;

    API_ENTER(ctx);
    err_throw(&ctx->err, code, message, what);
}

static const Arg *find_arg(const weft_prog *prog, const char *name)
{
    const Body *body = prog->body;

    for (int i = 0; i < body->narg; i++)
        if (strcmp(body->arg[i].name, name) == 0)
            return &body->arg[i];
    return NULL;
}

static void name_slots(Layer *l, const char *const *name)
{
    static const char *const before[] = { "", "d_", "d2_", "d2_d_" };

    for (int i = 0; i < LAYER_SLOTS; i++) {
        int kind = i / LAYER_OPERANDS, o = operand_of(i);

        if (kind == LAYER_ALONG && o == LAYER_Z)
            continue;
        if (kind == LAYER_D2 && o == LAYER_Z)
            kind = LAYER_ALONG; /* the second gradient by the cotangent */
        snprintf(l->name[i], LIMIT_LAYER_NAME, "%s%s", before[kind], name[o]);
    }
}

static weft_status read_operand(Layer *l, weft_args *args, int o)
{
    const Arg *a = find_arg(l->prog, l->name[o]);
    int64_t *shape = l->shape[o];
    weft_status s;

    if (a == NULL)
        return WEFT_OK;
    s = weft_args_shape(args, a->name, shape);
    if (s != WEFT_OK)
        return s;
    l->type[o] = a->type;
    l->ndim[o] = a->ndim;
    l->dim[o] = 1;
    for (int k = 0; k < a->ndim; k++)
        l->dim[o] *= shape[k];
    return WEFT_OK;
}

/* The program has the operands, and no others. */
static weft_status check_operands(Layer *l)
{
    const Body *body = l->prog->body;

    for (int i = 0; i < body->narg; i++) {
        const Arg *a = &body->arg[i];
        bool known = a->kind != ARG_BUF;

        for (int o = 0; o < LAYER_OPERANDS; o++)
            known = known || (strcmp(a->name, l->name[o]) == 0 &&
                              a->role == (o == LAYER_Z ? WEFT_OUTPUT : WEFT_INPUT));
        if (!known)
            return layer_fault(l, ST_ARG,
                               "the problem has an array %s, which a tensor product has not; "
                               "compile its program instead (weft_prog_o3)", a->name);
    }
    return WEFT_OK;
}

/* For two rows, and for one: what shrinks has rows. */
static weft_status read_operands(Layer *l, LayerPlace *place, const void *const with[2])
{
    weft_args *args;
    weft_status s = weft_args_new(l->prog, &args);

    if (s != WEFT_OK)
        return s;
    for (int n = 0; n < 2 && s == WEFT_OK; n++) {
        s = place(args, with[n]);
        for (int o = 0; o < LAYER_OPERANDS && s == WEFT_OK; o++) {
            int64_t before = l->shape[o][0];

            s = read_operand(l, args, o);
            l->rows[o] = before != l->shape[o][0];
        }
    }
    weft_args_free(args);
    return s;
}

weft_status layer_open(Layer *l, weft_prog *prog, const char *const name[LAYER_OPERANDS],
                       LayerPlace *place, const void *two, const void *one)
{
    weft_status s;

    *l = (Layer){ .ctx = prog->h.ctx, .prog = prog };
    name_slots(l, name);
    s = check_operands(l);
    return s == WEFT_OK ? read_operands(l, place, (const void *const[]){ two, one }) : s;
}

static void close_ready(LayerReady *r)
{
    if (r->args != NULL)
        weft_args_free(r->args);
    if (r->kernel != NULL)
        weft_kernel_free(r->kernel);
    *r = (LayerReady){ .kernel = NULL };
}

void layer_close(Layer *l)
{
    for (int i = 0; i < l->nready; i++)
        close_ready(&l->ready[i]);
    if (l->prog != NULL)
        weft_prog_free(l->prog);
    *l = (Layer){ .prog = NULL };
}

/* The gradient of `prog` by these operands, the last of which is there by its cotangent; NULL when
 * the program depends on none of them. */
static weft_status derive(Layer *l, weft_prog *prog, unsigned operands, weft_prog **out)
{
    const char *wrt[LAYER_OPERANDS];
    weft_grad g = { .wrt = wrt };

    for (int o = 0; o < LAYER_OPERANDS; o++) {
        int kind = o == LAYER_Z ? LAYER_D : LAYER_AT;
        const char *name = l->name[SLOT(kind, o)];

        if ((operands >> o & 1) != 0 && find_arg(prog, name) != NULL)
            wrt[g.nwrt++] = name;
    }
    *out = NULL;
    return g.nwrt > 0 ? weft_prog_grad(prog, &g, out) : WEFT_OK;
}

/* Bits of operands, from those of slots of a kind. */
static unsigned operands(unsigned set, LayerKind kind)
{
    return set >> kind * LAYER_OPERANDS & ((1u << LAYER_OPERANDS) - 1);
}

static weft_status program_of(Layer *l, const Call *c, weft_prog **out)
{
    weft_prog *first;
    weft_status s;

    if (c->order == 1)
        return derive(l, l->prog, operands(c->wanted, LAYER_D), out);
    *out = NULL;
    s = derive(l, l->prog, operands(c->along, LAYER_ALONG), &first);
    if (s == WEFT_OK && first != NULL)
        s = derive(l, first, operands(c->wanted, LAYER_D2), out);
    if (first != NULL)
        weft_prog_free(first);
    return s;
}

static unsigned arrays_of(const Layer *l, const weft_prog *prog)
{
    unsigned all = 0;

    for (int i = 0; i < LAYER_SLOTS; i++)
        if (find_arg(prog, l->name[i]) != NULL)
            all |= 1u << i;
    return all;
}

/* The kernel comes last: its warning is the caller's. */
static weft_status compile(const Layer *l, LayerReady *r, weft_prog *prog)
{
    weft_status s = weft_args_new(prog, &r->args);

    r->arrays = arrays_of(l, prog);
    return s == WEFT_OK ? weft_kernel_compile(prog, &r->kernel) : s;
}

static weft_status open_ready(Layer *l, const Call *c, LayerReady *r)
{
    weft_prog *prog = l->prog;
    weft_status s = c->order == 0 ? WEFT_OK : program_of(l, c, &prog);

    *r = (LayerReady){ .order = c->order, .wanted = c->wanted, .along = c->along };
    if (s == WEFT_OK && prog != NULL)
        s = compile(l, r, prog);
    if (prog != NULL && prog != l->prog)
        weft_prog_free(prog);
    if (s != WEFT_OK)
        close_ready(r);
    return s;
}

static weft_status ready_of(Layer *l, const Call *c, LayerReady **out)
{
    LayerReady made;
    weft_status s;

    for (int i = 0; i < l->nready; i++) {
        LayerReady *r = &l->ready[i];

        if (r->order == c->order && r->wanted == c->wanted && r->along == c->along) {
            *out = r;
            return WEFT_OK;
        }
    }
    s = open_ready(l, c, &made);
    if (s != WEFT_OK)
        return s;
    if (l->nready < LIMIT_READY) {
        *out = &l->ready[l->nready++];
    } else {
        *out = &l->ready[l->next];
        l->next = (l->next + 1) % LIMIT_READY;
        close_ready(*out);
    }
    **out = made;
    return WEFT_OK;
}

static weft_status bind(const Layer *l, LayerReady *r, const Call *c, int slot)
{
    int o = operand_of(slot);
    int64_t shape[WEFT_MAX_NDIM];
    weft_tensor t = { (void *)(uintptr_t)c->array[slot], api_type_of[l->type[o]], l->ndim[o], shape,
                      c->rows->stride[slot] };

    memcpy(shape, l->shape[o], sizeof shape);
    if (l->rows[o])
        shape[0] = c->rows->n[o];
    return weft_args_bind(r->args, l->name[slot], &t);
}

static weft_status run(Layer *l, LayerReady *r, const Call *c)
{
    weft_status s = WEFT_OK;

    if (r->stamp != c->rows->stamp) { /* what is bound has the old numbers of rows */
        for (int i = 0; i < LAYER_SLOTS && s == WEFT_OK; i++)
            if ((r->arrays >> i & 1) != 0)
                s = weft_args_bind(r->args, l->name[i], NULL);
        r->stamp = 0;
        if (s == WEFT_OK)
            s = c->rows->place(r->args, c->rows->with);
    }
    for (int i = 0; i < LAYER_SLOTS && s == WEFT_OK; i++)
        if ((r->arrays >> i & 1) != 0)
            s = bind(l, r, c, i);
    r->stamp = s == WEFT_OK ? c->rows->stamp : 0;
    return s == WEFT_OK ? weft_kernel_run(r->kernel, r->args) : s;
}

/* Gradients that nothing depends on. */
static void clear(const Layer *l, const LayerReady *r, const Call *c)
{
    for (int i = 0; i < LAYER_SLOTS; i++) {
        int o = operand_of(i);
        int64_t n = l->dim[o] * (l->rows[o] ? c->rows->n[o] : 1);

        if ((c->wanted & ~r->arrays) >> i & 1)
            memset((void *)(uintptr_t)c->array[i], 0,
                   (size_t)n * (size_t)ir_type[l->type[o]].bytes);
    }
}

/* Arrays without elements may be NULL, as anywhere. */
static weft_status check_call(Layer *l, Call *c)
{
    for (int i = 0; i < LAYER_SLOTS; i++) {
        int o = operand_of(i);
        bool there = l->dim[o] > 0 && (c->rows->n[o] > 0 || !l->rows[o]);

        if (!there || c->array[i] == NULL) {
            c->wanted &= c->order == 0 ? c->wanted : ~(1u << i);
            c->along &= ~(1u << i);
        }
        if (there && c->array[i] == NULL && (c->needed >> i & 1) != 0)
            return layer_fault(l, ST_ARG, "%s is NULL", l->name[i]);
    }
    return WEFT_OK;
}

static weft_status call(Layer *l, Call *c)
{
    weft_ctx *ctx = l->ctx;
    char warning[LIMIT_MESSAGE] = "";
    LayerReady *r = NULL;
    weft_status s = check_call(l, c);

    if (s != WEFT_OK || (c->order > 0 && c->wanted == 0))
        return s;
    ctx->warning[0] = 0;
    s = ready_of(l, c, &r);
    if (s != WEFT_OK)
        return s;
    memcpy(warning, ctx->warning, sizeof warning);
    if (r->kernel != NULL)
        s = run(l, r, c);
    if (s == WEFT_OK)
        clear(l, r, c);
    if (warning[0] != 0)
        memcpy(ctx->warning, warning, sizeof warning);
    return s;
}

static void put(Call *c, LayerKind kind, const weft_conv_in *v)
{
    const void **to = c->array + SLOT(kind, LAYER_X);

    to[LAYER_X] = v->x;
    to[LAYER_Y] = v->y;
    to[LAYER_W] = v->w;
    to[LAYER_M] = v->m;
}

static void put_out(Call *c, LayerKind kind, const weft_conv_out *v)
{
    put(c, kind, &(weft_conv_in){ v->x, v->y, v->w, v->m });
}

weft_status layer_forward(Layer *l, const LayerRows *rows, const weft_conv_in *at, void *z)
{
    Call c = { .order = 0, .rows = rows, .wanted = BIT(LAYER_AT, LAYER_Z) };

    c.needed = INPUTS(LAYER_AT) | c.wanted;
    put(&c, LAYER_AT, at);
    c.array[SLOT(LAYER_AT, LAYER_Z)] = z;
    return call(l, &c);
}

weft_status layer_backward(Layer *l, const LayerRows *rows, const weft_conv_in *at, const void *dz,
                           const weft_conv_out *d)
{
    Call c = { .order = 1, .rows = rows, .wanted = INPUTS(LAYER_D) };

    c.needed = INPUTS(LAYER_AT) | BIT(LAYER_D, LAYER_Z);
    put(&c, LAYER_AT, at);
    put_out(&c, LAYER_D, d);
    c.array[SLOT(LAYER_D, LAYER_Z)] = dz;
    return call(l, &c);
}

weft_status layer_double_backward(Layer *l, const LayerRows *rows, const weft_conv_in *at,
                                  const void *dz, const weft_conv_in *along,
                                  const weft_conv_out *g, void *gdz)
{
    Call c = { .order = 2, .rows = rows, .along = INPUTS(LAYER_ALONG) };

    c.wanted = INPUTS(LAYER_D2) | BIT(LAYER_D2, LAYER_Z);
    c.needed = INPUTS(LAYER_AT) | BIT(LAYER_D, LAYER_Z);
    put(&c, LAYER_AT, at);
    put(&c, LAYER_ALONG, along);
    put_out(&c, LAYER_D2, g);
    c.array[SLOT(LAYER_D, LAYER_Z)] = dz;
    c.array[SLOT(LAYER_D2, LAYER_Z)] = gdz;
    return call(l, &c);
}
