/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_conv: a tensor product on the edges of a graph, summed into their receivers.  It is a layer
 * (layer.c) over edges that were sorted once (edges.c), in two forms: one for lists that are in
 * sorted order already, and one for all others. */
#include "api/layer_int.h"

#include <string.h>

enum { SORTED, ANY, FORMS };

struct weft_conv {
    Handle h;
    Box *box;
    const char *spec[FORMS];
    Layer layer[FORMS]; /* without a program: not called for yet */
    weft_conv_info info;
    weft_conv_strides next; /* of the next call */
};

static bool has_arg(const Body *body, const char *name)
{
    for (int i = 0; i < body->narg; i++)
        if (strcmp(body->arg[i].name, name) == 0)
            return true;
    return false;
}

/* A derivative that is 0 everywhere has not all sizes and arrays of the graph. */
static weft_status set_size(weft_args *args, const char *name, int64_t value)
{
    return has_arg(args->body, name) ? weft_args_size(args, name, value) : WEFT_OK;
}

static weft_status bind_index(weft_args *args, const char *name, const int64_t *data, int64_t n)
{
    weft_tensor t = { (void *)(uintptr_t)data, WEFT_I64, 1, &n, NULL };

    return has_arg(args->body, name) ? weft_args_bind(args, name, &t) : WEFT_OK;
}

static weft_status place(weft_args *args, const void *with)
{
    const weft_edges *e = with;
    weft_status s = set_size(args, "nodes", e->nodes);

    if (s == WEFT_OK)
        s = set_size(args, "senders", e->senders);
    if (s == WEFT_OK)
        s = set_size(args, "edges", e->n);
    if (s == WEFT_OK)
        s = bind_index(args, "E.start", e->start, e->nodes + 1);
    if (s == WEFT_OK)
        s = bind_index(args, "E.j", e->sender, e->n);
    return s == WEFT_OK && e->place != NULL ? bind_index(args, "E.edge", e->place, e->n) : s;
}

/* Reads the operands off the program, by graphs of two rows and of one. */
static weft_status open_layer(weft_conv *conv, int form)
{
    static const int64_t number[] = { 0, 1, 2 };
    const int64_t *order = form == ANY ? number : NULL;
    weft_edges two = { .nodes = 2, .senders = 2, .n = 2, .start = number, .sender = number };
    weft_edges one = { .nodes = 1, .senders = 1, .n = 1, .start = number, .sender = number };
    const char *names[LAYER_OPERANDS] = { "X", "Y", "Wt", "M", "Z" };
    weft_prog *prog;
    weft_status s = weft_prog_o3(conv->h.ctx, conv->spec[form], &prog);

    if (s != WEFT_OK)
        return s;
    two.place = one.place = order;
    if (has_arg(prog->body, "H"))
        names[LAYER_W] = "H";
    return layer_open(&conv->layer[form], prog, names, place, &two, &one);
}

static weft_status open_conv(weft_conv *conv)
{
    const Layer *l = &conv->layer[SORTED];
    weft_status s = open_layer(conv, SORTED);
    int64_t hidden = s == WEFT_OK && l->dim[LAYER_M] > 0 ? l->dim[LAYER_W] : 0;

    conv->info = (weft_conv_info){
        .x = l->dim[LAYER_X], .y = l->dim[LAYER_Y], .z = l->dim[LAYER_Z],
        .w = hidden > 0 ? l->dim[LAYER_M] / hidden : l->dim[LAYER_W],
        .hidden = hidden,
        .shared = l->dim[LAYER_W] > 0 && !l->rows[LAYER_W],
        .type = api_type_of[l->type[LAYER_X]],
        .weight_type = api_type_of[l->type[LAYER_W]],
    };
    return s;
}

static weft_status new_handle(weft_ctx *context, const char *spec, weft_conv **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Text sorted, any;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, spec, "the problem");
    sorted = any = (Text){ .arena = &api_box(ctx)->arena };
    text_f(&sorted, "%s; edges=sorted", spec);
    text_f(&any, "%s; edges=any", spec);
    *out = api_handle_new(ctx, TAG_CONV, sizeof **out);
    (*out)->spec[SORTED] = sorted.s;
    (*out)->spec[ANY] = any.s;
    (*out)->box = api_keep(ctx);
    return api_leave(ctx);
}

weft_status weft_conv_new(weft_ctx *ctx, const char *spec, weft_conv **out)
{
    weft_status s = new_handle(ctx, spec, out);

    if (s != WEFT_OK)
        return s;
    s = open_conv(*out);
    if (s != WEFT_OK) {
        weft_conv_free(*out); /* which leaves the message */
        *out = NULL;
    }
    return s;
}

void conv_drop(weft_conv *conv)
{
    box_drop(conv->box);
}

void weft_conv_free(weft_conv *conv)
{
    if (api_ctx_of(conv, TAG_CONV) == NULL)
        return;
    for (int i = 0; i < FORMS; i++)
        layer_close(&conv->layer[i]);
    api_handle_free(conv);
}

weft_status weft_conv_get(weft_conv *conv, weft_conv_info *out)
{
    weft_ctx *ctx = api_ctx_of(conv, TAG_CONV);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = conv->info;
    return api_leave(ctx);
}

/* The first look at a call, which every function has to survive. */
static weft_status check_call(weft_conv *conv, weft_edges *edges, const void *at, const void *other)
{
    weft_ctx *ctx = api_ctx_of(conv, TAG_CONV);

    API_ENTER(ctx);
    api_need(ctx, edges, "edges");
    if (api_ctx_of(edges, TAG_EDGES) != ctx)
        err_throw(&ctx->err, ST_ARG, "edges of a convolution of this context expected");
    api_need(ctx, at, "at");
    api_need(ctx, other, "the list of arrays to write or to read");
    return api_leave(ctx);
}

weft_status weft_conv_next_strides(weft_conv *conv, const weft_conv_strides *strides)
{
    weft_ctx *ctx = api_ctx_of(conv, TAG_CONV);

    API_ENTER(ctx);
    api_need(ctx, strides, "strides");
    conv->next = *strides;
    return api_leave(ctx);
}

static void take_strides(weft_conv *conv, LayerRows *rows)
{
    const weft_conv_strides *s = &conv->next;
    const int64_t *at[] = { s->x, s->y, s->w, s->m }, *along[] = { s->along_x, s->along_y,
                                                                   s->along_w, s->along_m };

    for (int o = LAYER_X; o < LAYER_Z; o++) {
        rows->stride[LAYER_SLOT(LAYER_AT, o)] = at[o];
        rows->stride[LAYER_SLOT(LAYER_ALONG, o)] = along[o];
    }
    rows->stride[LAYER_SLOT(LAYER_D, LAYER_Z)] = s->dz;
    conv->next = (weft_conv_strides){ .x = NULL };
}

/* The layer for these edges, and what it is over. */
static weft_status layer_of(weft_conv *conv, const weft_edges *e, Layer **layer, LayerRows *rows)
{
    int form = e->place != NULL ? ANY : SORTED;
    weft_status s = WEFT_OK;

    *layer = &conv->layer[form];
    *rows = (LayerRows){ { [LAYER_X] = e->senders, [LAYER_Y] = e->n, [LAYER_W] = e->n,
                           [LAYER_Z] = e->nodes }, e->number, place, e, { NULL } };
    take_strides(conv, rows);
    if ((*layer)->prog == NULL) {
        s = open_layer(conv, form);
        if (s != WEFT_OK)
            layer_close(*layer);
    }
    return s;
}

weft_status weft_conv_forward(weft_conv *conv, weft_edges *edges, const weft_conv_in *at, void *z)
{
    weft_status s = check_call(conv, edges, at, at);
    Layer *layer;
    LayerRows rows;

    if (s == WEFT_OK)
        s = layer_of(conv, edges, &layer, &rows);
    return s == WEFT_OK ? layer_forward(layer, &rows, at, z) : s;
}

weft_status weft_conv_backward(weft_conv *conv, weft_edges *edges, const weft_conv_in *at,
                               const void *dz, const weft_conv_out *d)
{
    weft_status s = check_call(conv, edges, at, d);
    Layer *layer;
    LayerRows rows;

    if (s == WEFT_OK)
        s = layer_of(conv, edges, &layer, &rows);
    return s == WEFT_OK ? layer_backward(layer, &rows, at, dz, d) : s;
}

weft_status weft_conv_double_backward(weft_conv *conv, weft_edges *edges, const weft_conv_in *at,
                                      const void *dz, const weft_conv_in *along,
                                      const weft_conv_out *g, void *gdz)
{
    weft_status s = check_call(conv, edges, at, along);
    Layer *layer;
    LayerRows rows;

    if (s == WEFT_OK)
        s = check_call(conv, edges, at, g);
    if (s == WEFT_OK)
        s = layer_of(conv, edges, &layer, &rows);
    return s == WEFT_OK ? layer_double_backward(layer, &rows, at, dz, along, g, gdz) : s;
}
