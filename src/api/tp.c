/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_tp: a tensor product on plain arrays.  Each function is a program, the product itself or a
 * derivative of it by what the caller asks for, that is compiled when it is first called for.
 * Everything here is done by the public functions on programs and kernels. */
#include "api/api_int.h"

#include <string.h>

enum { X, Y, W, Z, OPERANDS };

/* Arrays of the product and of its derivatives: what they are of, and what they are called. */
typedef enum Slot {
    AT_X, AT_Y, AT_W, AT_Z,
    D_X, D_Y, D_W, D_Z,
    D2_X, D2_Y, D2_W, D2_D_Z,
    ALONG_X, ALONG_Y, ALONG_W,
    SLOTS
} Slot;

static const struct {
    const char *name;
    int operand;
} slots[SLOTS] = {
    [AT_X] = { "X", X },          [AT_Y] = { "Y", Y },
    [AT_W] = { "Wt", W },         [AT_Z] = { "Z", Z },
    [D_X] = { "d_X", X },         [D_Y] = { "d_Y", Y },
    [D_W] = { "d_Wt", W },        [D_Z] = { "d_Z", Z },
    [D2_X] = { "d2_X", X },       [D2_Y] = { "d2_Y", Y },
    [D2_W] = { "d2_Wt", W },      [D2_D_Z] = { "d2_d_Z", Z },
    [ALONG_X] = { "d2_d_X", X },  [ALONG_Y] = { "d2_d_Y", Y },
    [ALONG_W] = { "d2_d_Wt", W },
};

typedef struct Ready { /* one program, ready to run */
    int order;
    unsigned wanted, along; /* bits of slots: what it gives; cotangents of gradients it takes */
    unsigned arrays;        /* what the program has of these and of its inputs */
    weft_kernel *kernel;    /* NULL: nothing is to be computed */
    weft_args *args;
    int64_t n; /* items of the last run, or -1 */
} Ready;

enum { MOST_READY = 16 };

struct weft_tp {
    Handle h;
    weft_prog *prog;
    weft_tp_info info;
    int64_t dim[OPERANDS]; /* elements of an item; 0: there is none */
    bool item[OPERANDS];   /* each item has its own */
    Type type[OPERANDS];
    int ndim[OPERANDS];
    int64_t shape[OPERANDS][WEFT_MAX_NDIM]; /* for one item */
    Ready ready[MOST_READY];
    int nready, next; /* when all are taken, the next to go */
};

typedef struct Call { /* of one of the functions */
    int order;
    int64_t n;
    const void *array[SLOTS]; /* outputs are written to all the same */
    unsigned wanted, along, needed;
} Call;

static weft_status fault(weft_tp *tp, Status code, const char *message, const char *what)
{
    weft_ctx *ctx = tp->h.ctx;

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

static weft_status read_operand(weft_tp *tp, weft_args *args, int o)
{
    const Arg *a = find_arg(tp->prog, slots[o].name);
    int64_t *shape = tp->shape[o];
    weft_status s;

    if (a == NULL)
        return WEFT_OK;
    s = weft_args_shape(args, a->name, shape);
    if (s != WEFT_OK)
        return s;
    tp->type[o] = a->type;
    tp->ndim[o] = a->ndim;
    tp->dim[o] = 1;
    for (int k = 0; k < a->ndim; k++)
        tp->dim[o] *= shape[k];
    return WEFT_OK;
}

/* The program has the operands of a product, and no others. */
static weft_status check_operands(weft_tp *tp)
{
    const Body *body = tp->prog->body;

    for (int i = 0; i < body->narg; i++) {
        const Arg *a = &body->arg[i];
        bool known = a->role == WEFT_SIZE;

        for (int o = 0; o < OPERANDS; o++)
            known = known || (strcmp(a->name, slots[o].name) == 0 &&
                              a->role == (o == Z ? WEFT_OUTPUT : WEFT_INPUT));
        if (!known)
            return fault(tp, ST_ARG, "the problem has an array %s, which a tensor product has not; "
                                     "compile its program instead (weft_prog_o3)", a->name);
    }
    return WEFT_OK;
}

/* For two items, and for one: what shrinks is of each item. */
static weft_status read_operands(weft_tp *tp)
{
    weft_args *args;
    weft_status s = weft_args_new(tp->prog, &args);

    if (s != WEFT_OK)
        return s;
    for (int n = 2; n >= 1 && s == WEFT_OK; n--) {
        s = weft_args_size(args, "n", n);
        for (int o = 0; o < OPERANDS && s == WEFT_OK; o++) {
            int64_t before = tp->shape[o][0];

            s = read_operand(tp, args, o);
            tp->item[o] = before != tp->shape[o][0];
        }
    }
    weft_args_free(args);
    return s;
}

static weft_status open_product(weft_tp *tp, const char *spec)
{
    weft_status s = weft_prog_o3(tp->h.ctx, spec, &tp->prog);

    if (s == WEFT_OK)
        s = check_operands(tp);
    if (s == WEFT_OK)
        s = read_operands(tp);
    tp->info = (weft_tp_info){ tp->dim[X], tp->dim[Y],  tp->dim[W],  tp->dim[Z],
                               tp->dim[W] > 0 && !tp->item[W], api_type_of[tp->type[X]],
                               api_type_of[tp->type[W]] };
    return s;
}

static weft_status new_handle(weft_ctx *context, weft_tp **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = api_handle_new(ctx, TAG_TP, sizeof **out);
    return api_leave(ctx);
}

weft_status weft_tp_new(weft_ctx *ctx, const char *spec, weft_tp **out)
{
    weft_status s = new_handle(ctx, out);

    if (s != WEFT_OK)
        return s;
    s = open_product(*out, spec);
    if (s != WEFT_OK) {
        weft_tp_free(*out); /* which leaves the message */
        *out = NULL;
    }
    return s;
}

static void close_ready(Ready *r)
{
    if (r->args != NULL)
        weft_args_free(r->args);
    if (r->kernel != NULL)
        weft_kernel_free(r->kernel);
    *r = (Ready){ .kernel = NULL };
}

void weft_tp_free(weft_tp *tp)
{
    if (api_ctx_of(tp, TAG_TP) == NULL)
        return;
    for (int i = 0; i < tp->nready; i++)
        close_ready(&tp->ready[i]);
    if (tp->prog != NULL)
        weft_prog_free(tp->prog);
    api_handle_free(tp);
}

weft_status weft_tp_get(weft_tp *tp, weft_tp_info *out)
{
    weft_ctx *ctx = api_ctx_of(tp, TAG_TP);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = tp->info;
    return api_leave(ctx);
}

/* The operands of a set that the program has, by their names in it. */
static int names_of(const weft_prog *prog, unsigned set, const Slot *own, const char **out)
{
    int n = 0;

    for (int o = 0; o < OPERANDS; o++)
        if ((set >> o & 1) != 0 && find_arg(prog, slots[own[o]].name) != NULL)
            out[n++] = slots[own[o]].name;
    return n;
}

/* The gradient by these; NULL when the program depends on none of them. */
static weft_status derive(weft_prog *prog, unsigned set, const Slot *own, weft_prog **out)
{
    const char *wrt[OPERANDS];
    weft_grad g = { .wrt = wrt, .nwrt = names_of(prog, set, own, wrt) };

    *out = NULL;
    return g.nwrt > 0 ? weft_prog_grad(prog, &g, out) : WEFT_OK;
}

/* Bits of operands from bits of slots that begin at `first`. */
static unsigned operands(unsigned set, Slot first)
{
    return set >> first & ((1u << OPERANDS) - 1);
}

static weft_status program_of(weft_tp *tp, const Call *c, weft_prog **out)
{
    static const Slot once[] = { AT_X, AT_Y, AT_W, AT_Z }, twice[] = { AT_X, AT_Y, AT_W, D_Z };
    weft_prog *first;
    weft_status s;

    if (c->order == 1)
        return derive(tp->prog, operands(c->wanted, D_X), once, out);
    *out = NULL;
    s = derive(tp->prog, operands(c->along, ALONG_X), once, &first);
    if (s == WEFT_OK && first != NULL)
        s = derive(first, operands(c->wanted, D2_X), twice, out);
    if (first != NULL)
        weft_prog_free(first);
    return s;
}

static unsigned arrays_of(const weft_prog *prog)
{
    unsigned all = 0;

    for (int i = 0; i < SLOTS; i++)
        if (find_arg(prog, slots[i].name) != NULL)
            all |= 1u << i;
    return all;
}

/* The kernel comes last: its warning is the caller's. */
static weft_status compile(Ready *r, weft_prog *prog)
{
    weft_status s = weft_args_new(prog, &r->args);

    r->arrays = arrays_of(prog);
    return s == WEFT_OK ? weft_kernel_compile(prog, &r->kernel) : s;
}

static weft_status open_ready(weft_tp *tp, const Call *c, Ready *r)
{
    weft_prog *prog = tp->prog;
    weft_status s = c->order == 0 ? WEFT_OK : program_of(tp, c, &prog);

    *r = (Ready){ .order = c->order, .wanted = c->wanted, .along = c->along, .n = -1 };
    if (s == WEFT_OK && prog != NULL)
        s = compile(r, prog);
    if (prog != NULL && prog != tp->prog)
        weft_prog_free(prog);
    if (s != WEFT_OK)
        close_ready(r);
    return s;
}

static weft_status ready_of(weft_tp *tp, const Call *c, Ready **out)
{
    Ready made;
    weft_status s;

    for (int i = 0; i < tp->nready; i++) {
        Ready *r = &tp->ready[i];

        if (r->order == c->order && r->wanted == c->wanted && r->along == c->along) {
            *out = r;
            return WEFT_OK;
        }
    }
    s = open_ready(tp, c, &made);
    if (s != WEFT_OK)
        return s;
    if (tp->nready < MOST_READY) {
        *out = &tp->ready[tp->nready++];
    } else {
        *out = &tp->ready[tp->next];
        tp->next = (tp->next + 1) % MOST_READY;
        close_ready(*out);
    }
    **out = made;
    return WEFT_OK;
}

static weft_status bind(const weft_tp *tp, Ready *r, const Call *c, Slot i)
{
    int o = slots[i].operand;
    int64_t shape[WEFT_MAX_NDIM];
    weft_tensor t = { (void *)(uintptr_t)c->array[i], api_type_of[tp->type[o]], tp->ndim[o], shape,
                      NULL };

    memcpy(shape, tp->shape[o], sizeof shape);
    if (tp->item[o])
        shape[0] = c->n;
    return weft_args_bind(r->args, slots[i].name, &t);
}

static weft_status run(weft_tp *tp, Ready *r, const Call *c)
{
    weft_status s = WEFT_OK;

    if (r->n != c->n) { /* what is bound has the old number of items */
        for (int i = 0; i < SLOTS && s == WEFT_OK && r->n >= 0; i++)
            if ((r->arrays >> i & 1) != 0)
                s = weft_args_bind(r->args, slots[i].name, NULL);
        r->n = -1;
        if (s == WEFT_OK)
            s = weft_args_size(r->args, "n", c->n);
    }
    for (int i = 0; i < SLOTS && s == WEFT_OK; i++)
        if ((r->arrays >> i & 1) != 0)
            s = bind(tp, r, c, (Slot)i);
    r->n = s == WEFT_OK ? c->n : -1;
    return s == WEFT_OK ? weft_kernel_run(r->kernel, r->args) : s;
}

/* Gradients that nothing depends on. */
static void clear(const weft_tp *tp, const Ready *r, const Call *c)
{
    for (int i = 0; i < SLOTS; i++) {
        int o = slots[i].operand;
        int64_t n = tp->dim[o] * (tp->item[o] ? c->n : 1);

        if ((c->wanted & ~r->arrays) >> i & 1)
            memset((void *)(uintptr_t)c->array[i], 0,
                   (size_t)n * (size_t)ir_type[tp->type[o]].bytes);
    }
}

/* Arrays without elements may be NULL, as anywhere. */
static weft_status check_call(weft_tp *tp, Call *c)
{
    if (c->n < 0)
        return fault(tp, ST_ARG, "a negative number of items%s", "");
    for (int i = 0; i < SLOTS; i++) {
        int o = slots[i].operand;
        bool there = tp->dim[o] > 0 && (c->n > 0 || !tp->item[o]);

        if (!there || c->array[i] == NULL) {
            c->wanted &= c->order == 0 ? c->wanted : ~(1u << i);
            c->along &= ~(1u << i);
        }
        if (there && c->array[i] == NULL && (c->needed >> i & 1) != 0)
            return fault(tp, ST_ARG, "%s is NULL", slots[i].name);
    }
    return WEFT_OK;
}

static weft_status call(weft_tp *tp, Call *c)
{
    weft_ctx *ctx = api_ctx_of(tp, TAG_TP);
    char warning[MAX_MESSAGE] = "";
    Ready *r = NULL;
    weft_status s;

    if (ctx == NULL)
        return WEFT_E_ARG;
    s = check_call(tp, c);
    if (s != WEFT_OK || (c->order > 0 && c->wanted == 0))
        return s;
    ctx->warning[0] = 0;
    s = ready_of(tp, c, &r);
    if (s != WEFT_OK)
        return s;
    memcpy(warning, ctx->warning, sizeof warning);
    if (r->kernel != NULL)
        s = run(tp, r, c);
    if (s == WEFT_OK)
        clear(tp, r, c);
    if (warning[0] != 0)
        memcpy(ctx->warning, warning, sizeof warning);
    return s;
}

#define BIT(slot) (1u << (slot))

weft_status weft_tp_forward(weft_tp *tp, int64_t n, const void *x, const void *y, const void *w,
                            void *z)
{
    Call c = { .order = 0,
               .n = n,
               .array = { [AT_X] = x, [AT_Y] = y, [AT_W] = w, [AT_Z] = z },
               .wanted = BIT(AT_Z),
               .needed = BIT(AT_X) | BIT(AT_Y) | BIT(AT_W) | BIT(AT_Z) };

    return call(tp, &c);
}

weft_status weft_tp_backward(weft_tp *tp, int64_t n, const void *x, const void *y, const void *w,
                             const void *dz, void *dx, void *dy, void *dw)
{
    Call c = { .order = 1,
               .n = n,
               .array = { [AT_X] = x, [AT_Y] = y, [AT_W] = w, [D_Z] = dz,
                          [D_X] = dx, [D_Y] = dy, [D_W] = dw },
               .wanted = BIT(D_X) | BIT(D_Y) | BIT(D_W),
               .needed = BIT(AT_X) | BIT(AT_Y) | BIT(AT_W) | BIT(D_Z) };

    return call(tp, &c);
}

weft_status weft_tp_double_backward(weft_tp *tp, int64_t n, const void *x, const void *y,
                                    const void *w, const void *dz, const void *ddx,
                                    const void *ddy, const void *ddw, void *gx, void *gy, void *gw,
                                    void *gdz)
{
    Call c = { .order = 2,
               .n = n,
               .array = { [AT_X] = x, [AT_Y] = y, [AT_W] = w, [D_Z] = dz,
                          [ALONG_X] = ddx, [ALONG_Y] = ddy, [ALONG_W] = ddw,
                          [D2_X] = gx, [D2_Y] = gy, [D2_W] = gw, [D2_D_Z] = gdz },
               .wanted = BIT(D2_X) | BIT(D2_Y) | BIT(D2_W) | BIT(D2_D_Z),
               .along = BIT(ALONG_X) | BIT(ALONG_Y) | BIT(ALONG_W),
               .needed = BIT(AT_X) | BIT(AT_Y) | BIT(AT_W) | BIT(D_Z) };

    return call(tp, &c);
}
