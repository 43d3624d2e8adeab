/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_tp: a tensor product on plain arrays, a layer (layer.c) of n items. */
#include "api/layer_int.h"

static const char *const names[LAYER_OPERANDS] = { "X", "Y", "Wt", "", "Z" };

struct weft_tp {
    Handle h;
    Layer layer;
    weft_tp_info info;
};

static weft_status place(weft_args *args, const void *n)
{
    return weft_args_size(args, "n", *(const int64_t *)n);
}

static weft_status open_product(weft_tp *tp, const char *spec)
{
    static const int64_t one = 1, two = 2; /* not speed: the values of sizes */
    Layer *l = &tp->layer;
    weft_prog *prog;
    weft_status s = weft_prog_o3(tp->h.ctx, spec, &prog);

    if (s == WEFT_OK)
        s = layer_open(l, prog, names, place, &two, &one);
    tp->info = (weft_tp_info){ l->dim[LAYER_X], l->dim[LAYER_Y], l->dim[LAYER_W], l->dim[LAYER_Z],
                               l->dim[LAYER_W] > 0 && !l->rows[LAYER_W],
                               api_type_of[l->type[LAYER_X]], api_type_of[l->type[LAYER_W]] };
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

void weft_tp_free(weft_tp *tp)
{
    if (api_ctx_of(tp, TAG_TP) == NULL)
        return;
    layer_close(&tp->layer);
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

/* Every array that has rows has one for each item. */
static LayerRows rows_of(const int64_t *n)
{
    return (LayerRows){ { *n, *n, *n, *n, *n }, (uint64_t)*n + 1, place, n, { NULL } };
}

/* Arrays of 2^45 elements and more fill the address space, so no caller has them. */
static bool has_arrays(const weft_tp *tp, int64_t n)
{
    int64_t elements;

    for (int i = 0; i < LAYER_OPERANDS; i++)
        if (i != LAYER_W && i != LAYER_M &&
            (int_mul(n, tp->layer.dim[i], &elements) || elements >= LIMIT_ELEMENTS))
            return false;
    return true;
}

static weft_status check_call(weft_tp *tp, int64_t n)
{
    if (api_ctx_of(tp, TAG_TP) == NULL)
        return WEFT_E_ARG;
    if (n < 0)
        return layer_fault(&tp->layer, ST_ARG, "a negative number of items%s", "");
    if (!has_arrays(tp, n))
        return layer_fault(&tp->layer, ST_LIMIT, "more items than memory can hold%s", "");
    return WEFT_OK;
}

weft_status weft_tp_forward(weft_tp *tp, int64_t n, const void *x, const void *y, const void *w,
                            void *z)
{
    LayerRows rows = rows_of(&n);
    weft_status s = check_call(tp, n);

    return s != WEFT_OK ? s : layer_forward(&tp->layer, &rows, &(weft_conv_in){ x, y, w, NULL }, z);
}

weft_status weft_tp_backward(weft_tp *tp, int64_t n, const void *x, const void *y, const void *w,
                             const void *dz, void *dx, void *dy, void *dw)
{
    LayerRows rows = rows_of(&n);
    weft_conv_in at = { x, y, w, NULL };
    weft_conv_out d = { dx, dy, dw, NULL };
    weft_status s = check_call(tp, n);

    return s != WEFT_OK ? s : layer_backward(&tp->layer, &rows, &at, dz, &d);
}

weft_status weft_tp_double_backward(weft_tp *tp, int64_t n, const void *x, const void *y,
                                    const void *w, const void *dz, const void *ddx,
                                    const void *ddy, const void *ddw, void *gx, void *gy, void *gw,
                                    void *gdz)
{
    LayerRows rows = rows_of(&n);
    weft_conv_in at = { x, y, w, NULL }, along = { ddx, ddy, ddw, NULL };
    weft_conv_out g = { gx, gy, gw, NULL };
    weft_status s = check_call(tp, n);

    return s != WEFT_OK ? s
                        : layer_double_backward(&tp->layer, &rows, &at, dz, &along, &g, gdz);
}
