/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft::conv: a convolution over the edges of a graph, and its derivatives, as an operator of torch.
 * The task is a text: the problem, then a line for each derivative that is taken of it:
 *     conv; in1=8x0e; in2=1o; out=1o; mode=uvu
 *     back wrt=xw
 *     back along=x wrt=ywz
 * Operands are x, y, w and m of weft_conv, and z.  Arrays are those of the problem, then the gradient
 * by z, then those by what the first derivative gives; results are the gradients by wrt, in order. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, Y, W, M, Z, OPERANDS, MOST_GRAPHS = 8, MOST_CONVS = 256, MOST = 2 * OPERANDS };

static const char letters[] = "xywmz";

typedef struct Graph { /* edges that were sorted, and the lists they were made of */
    weft_edges *edges;
    void *lists; /* receivers, then senders */
    weft_edge_list of;
    Held held[2]; /* the tensors of these lists in the last call, if they are large */
    uint64_t used; /* when */
} Graph;

typedef struct Conv {
    char *spec;
    weft_conv *conv;
    weft_conv_info info;
    uint64_t used; /* when */
} Conv;

/* Used by who is between state_enter and state_leave. */
static struct {
    Graph graph[MOST_GRAPHS];
    Conv conv[MOST_CONVS];
    int nconv;
    uint64_t now;
} kept;

typedef struct Set { /* arrays by operand; NULL: none */
    const void *data[OPERANDS];
    const int64_t *stride[OPERANDS];
} Set;

typedef struct Call {
    const char *task;
    Plain in[MOST], index[2], out[OPERANDS];
    int nin, nout;
    int64_t nodes;
    unsigned order, along, wrt; /* sets of operands */
    Conv *conv;
    char message[1024];
} Call;

static bool refuse(Call *c, const char *what)
{
    snprintf(c->message, sizeof c->message, "%s", what);
    return false;
}

static size_t list_bytes(const weft_edge_list *list)
{
    return (size_t)list->n * type_bytes(list->type);
}

static bool same_sizes(const Graph *g, const weft_edge_list *list)
{
    return g->edges != NULL && g->of.n == list->n && g->of.nodes == list->nodes &&
           g->of.senders == list->senders && g->of.type == list->type;
}

/* Has the graph the very tensors of the call, unchanged? */
static bool has_held(const Graph *g, const weft_edge_list *list, const Plain *index)
{
    return list_bytes(list) > HELD_LEAST && same_sizes(g, list) && held_is(&g->held[0], &index[0]) &&
           held_is(&g->held[1], &index[1]);
}

static bool same_graph(const Graph *g, const weft_edge_list *list)
{
    size_t bytes = list_bytes(list);

    return same_sizes(g, list) && memcmp(g->of.receiver, list->receiver, bytes) == 0 &&
           memcmp(g->of.sender, list->sender, bytes) == 0;
}

static void hold_lists(Graph *g, Plain *index)
{
    if (list_bytes(&g->of) <= HELD_LEAST)
        return;
    held_set(&g->held[0], &index[0]);
    held_set(&g->held[1], &index[1]);
}

/* The one that was not used for longest goes. */
static Graph *place_for_graph(void)
{
    Graph *g = &kept.graph[0];

    for (int i = 1; i < MOST_GRAPHS; i++)
        if (kept.graph[i].used < g->used)
            g = &kept.graph[i];
    weft_edges_free(g->edges);
    free(g->lists);
    held_drop(&g->held[0]);
    held_drop(&g->held[1]);
    *g = (Graph){ .edges = NULL };
    return g;
}

/* An index without a row, by the names of the arguments; false: there is none. */
static bool refuse_index(Call *c, const weft_edge_list *list)
{
    static const char *const name[] = { "rows", "cols" }, *const of[] = { "the result", "X" };
    const void *const at[] = { list->receiver, list->sender };
    const int64_t most[] = { list->nodes, list->senders };

    for (int a = 0; a < 2; a++)
        for (int64_t k = 0; k < list->n; k++) {
            int64_t row = list->type == WEFT_I64 ? ((const int64_t *)at[a])[k] :
                                                   ((const int32_t *)at[a])[k];

            if (row >= 0 && row < most[a])
                continue;
            snprintf(c->message, sizeof c->message, "%s[%lld] is %lld, but %s has %lld rows", name[a],
                     (long long)k, (long long)row, of[a], (long long)most[a]);
            return true;
        }
    return false;
}

/* A new graph of copies of the lists. */
static Graph *open_graph(Call *c, weft_ctx *ctx, const weft_edge_list *list)
{
    size_t bytes = list_bytes(list);
    Graph *g = place_for_graph();
    char *copy = malloc(2 * bytes + 1);

    if (copy == NULL || weft_edges_new(ctx, list, &g->edges) != WEFT_OK) {
        if (copy == NULL || !refuse_index(c, list))
            refuse(c, copy == NULL ? "out of memory" : weft_message(ctx));
        free(copy);
        return NULL;
    }
    if (bytes > 0) {
        memcpy(copy, list->receiver, bytes);
        memcpy(copy + bytes, list->sender, bytes);
    }
    g->lists = copy;
    g->of = *list;
    g->of.receiver = copy;
    g->of.sender = copy + bytes;
    return g;
}

static Graph *find_graph(Call *c, weft_ctx *ctx, const weft_edge_list *list)
{
    Graph *g;

    for (int i = 0; i < MOST_GRAPHS; i++)
        if (has_held(&kept.graph[i], list, c->index))
            return &kept.graph[i];
    state_count_look();
    for (int i = 0; i < MOST_GRAPHS; i++)
        if (same_graph(&kept.graph[i], list)) {
            hold_lists(&kept.graph[i], c->index);
            return &kept.graph[i];
        }
    g = open_graph(c, ctx, list);
    if (g != NULL)
        hold_lists(g, c->index);
    return g;
}

static weft_edges *find_edges(Call *c, weft_ctx *ctx, const weft_edge_list *list)
{
    Graph *g = find_graph(c, ctx, list);

    if (g == NULL)
        return NULL;
    g->used = ++kept.now;
    return g->edges;
}

static void close_conv(Conv *v)
{
    weft_conv_free(v->conv);
    free(v->spec);
    *v = kept.conv[--kept.nconv];
}

void conv_drop(const char *spec)
{
    for (int i = kept.nconv - 1; i >= 0; i--)
        if (is_of_problem(kept.conv[i].spec, spec))
            close_conv(&kept.conv[i]);
}

/* When all places are taken, the one that was not used for longest goes. */
static Conv *place_for_conv(void)
{
    Conv *v = &kept.conv[0];

    for (int i = 1; i < kept.nconv; i++)
        if (kept.conv[i].used < v->used)
            v = &kept.conv[i];
    if (kept.nconv == MOST_CONVS)
        close_conv(v);
    return &kept.conv[kept.nconv];
}

static bool find_conv(Call *c, weft_ctx *ctx)
{
    size_t n = strcspn(c->task, "\n");
    Conv *v;

    for (int i = 0; i < kept.nconv; i++)
        if (strncmp(kept.conv[i].spec, c->task, n) == 0 && kept.conv[i].spec[n] == 0) {
            c->conv = &kept.conv[i];
            c->conv->used = ++kept.now;
            return true;
        }
    v = place_for_conv();
    *v = (Conv){ .spec = calloc(n + 1, 1), .used = ++kept.now };
    if (v->spec == NULL)
        return refuse(c, "out of memory");
    memcpy(v->spec, c->task, n);
    if (weft_conv_new(ctx, v->spec, &v->conv) != WEFT_OK ||
        weft_conv_get(v->conv, &v->info) != WEFT_OK) {
        refuse(c, weft_message(ctx));
        free(v->spec);
        return false;
    }
    kept.nconv++;
    c->conv = v;
    return true;
}

/* The operands that follow `key` in the line. */
static unsigned read_set(const char *line, const char *key)
{
    const char *at = strstr(line, key), *letter;
    unsigned set = 0;

    for (at = at == NULL ? "" : at + strlen(key); *at != 0 && *at != ' ' && *at != '\n'; at++) {
        letter = strchr(letters, *at);
        set |= letter == NULL ? 0 : 1u << (letter - letters);
    }
    return set;
}

static void read_task(Call *c)
{
    const char *line = strchr(c->task, '\n');

    c->order = c->along = c->wrt = 0;
    while (line != NULL && c->order < 2) {
        c->order++;
        c->along = read_set(line, "along=");
        c->wrt = read_set(line, "wrt=");
        line = strchr(line + 1, '\n');
    }
    if (c->order == 0)
        c->wrt = 1u << Z;
}

/* The shape of an operand; 0 dimensions: the problem has none. */
static int shape_of(const Call *c, int o, int64_t *shape)
{
    const weft_conv_info *in = &c->conv->info;
    int64_t edges = c->index[0].shape[0];
    int64_t rows[] = { c->in[0].shape[0], edges, edges, in->hidden, c->nodes };
    int64_t cols[] = { in->x, in->y, in->hidden > 0 ? in->hidden : in->w, in->w, in->z };

    if ((o == M && in->hidden == 0) || (o == W && in->w == 0))
        return 0;
    shape[0] = rows[o];
    shape[1] = cols[o];
    if (o != W || !in->shared)
        return 2;
    shape[0] = in->w;
    return 1;
}

static weft_type type_of(const Call *c, int o)
{
    return o == W || o == M ? c->conv->info.weight_type : c->conv->info.type;
}

static bool check_array(Call *c, const Plain *p, int o, const char *of)
{
    int64_t shape[2] = { 0, 0 };
    int ndim = shape_of(c, o, shape);

    if (p->type == type_of(c, o) && p->ndim == ndim &&
        memcmp(p->shape, shape, (size_t)ndim * sizeof *shape) == 0)
        return true;
    snprintf(c->message, sizeof c->message,
             "%s%c: expected %d dimensions, %lld x %lld elements of %zu bytes; got %d dimensions, "
             "%lld x %lld elements of %zu bytes",
             of, letters[o], ndim, (long long)shape[0], (long long)shape[1], type_bytes(type_of(c, o)),
             p->ndim, (long long)(p->ndim > 0 ? p->shape[0] : 1),
             (long long)(p->ndim > 1 ? p->shape[1] : 1), type_bytes(p->type));
    return false;
}

/* The arrays of a set, from c->in[*next] on. */
static bool take_set(Call *c, unsigned set, const char *of, int *next, Set *out)
{
    int64_t shape[2];

    *out = (Set){ .data = { NULL } };
    for (int o = 0; o < OPERANDS; o++) {
        if ((set >> o & 1) == 0 || shape_of(c, o, shape) == 0)
            continue;
        if (*next == c->nin)
            return refuse(c, "an array is missing at the end of the list");
        if (!check_array(c, &c->in[*next], o, of))
            return false;
        out->data[o] = c->in[*next].data;
        out->stride[o] = c->in[(*next)++].stride;
    }
    return true;
}

static bool make_results(Call *c, void **out)
{
    int64_t shape[2];

    for (int o = 0; o < OPERANDS; o++) {
        int ndim = shape_of(c, o, shape);

        out[o] = NULL;
        if ((c->wrt >> o & 1) == 0 || ndim == 0)
            continue;
        if (!plain_new(type_of(c, o), ndim, shape, &c->out[c->nout++]))
            return refuse(c, "out of memory");
        out[o] = c->out[c->nout - 1].data;
    }
    return true;
}

static weft_conv_in in_of(const Set *s)
{
    return (weft_conv_in){ s->data[X], s->data[Y], s->data[W], s->data[M] };
}

static weft_status launch(Call *c, weft_edges *edges, const Set *at, const Set *dzs, const Set *dd,
                          void **out)
{
    weft_conv *v = c->conv->conv;
    weft_conv_in in = in_of(at), along = in_of(dd);
    const void *dz = dzs->data[Z];
    weft_conv_out g = { out[X], out[Y], out[W], out[M] };
    weft_conv_strides strides = { at->stride[X], at->stride[Y], at->stride[W],
                                  at->stride[M], dzs->stride[Z], dd->stride[X],
                                  dd->stride[Y], dd->stride[W], dd->stride[M] };
    weft_status s = weft_conv_next_strides(v, &strides);

    if (s != WEFT_OK)
        return s;
    if (c->order == 0)
        return weft_conv_forward(v, edges, &in, out[Z]);
    if (c->order == 1)
        return weft_conv_backward(v, edges, &in, dz, &g);
    return weft_conv_double_backward(v, edges, &in, dz, &along, &g, out[Z]);
}

static bool check_index(Call *c)
{
    const Plain *r = &c->index[0], *s = &c->index[1];

    if (r->ndim != 1 || s->ndim != 1 || r->shape[0] != s->shape[0] || r->type != s->type ||
        (r->type != WEFT_I32 && r->type != WEFT_I64))
        return refuse(c, "rows, cols: expected two lists of integers of one length and type");
    if (c->nodes < 0)
        return refuse(c, "nodes: expected a number that is not negative");
    if (c->nin == 0 || c->in[0].ndim != 2)
        return refuse(c, "x: expected two dimensions");
    return true;
}

static void run(Call *c, weft_ctx *ctx)
{
    Set at, dz, dd;
    void *out[OPERANDS];
    weft_edge_list list = { c->nodes, 0, 0, WEFT_I64, c->index[0].data, c->index[1].data };
    weft_edges *edges;
    int next = 0;

    read_task(c);
    if (!check_index(c) || !find_conv(c, ctx) ||
        !take_set(c, ~(1u << Z), "", &next, &at) ||
        !take_set(c, c->order > 0 ? 1u << Z : 0, "d", &next, &dz) ||
        !take_set(c, c->along, "dd", &next, &dd) || !make_results(c, out))
        return;
    list.senders = c->in[0].shape[0];
    list.n = c->index[0].shape[0];
    list.type = c->index[0].type;
    edges = find_edges(c, ctx, &list);
    if (edges != NULL && launch(c, edges, &at, &dz, &dd, out) != WEFT_OK)
        refuse(c, weft_message(ctx));
}

static void take_index(Call *c, Value rows, Value cols)
{
    const char *why = "";
    bool both = plain_take((AtenTensor *)(uintptr_t)rows, &c->index[0], &why);

    both = plain_take((AtenTensor *)(uintptr_t)cols, &c->index[1], &why) && both;
    if (!both && c->message[0] == 0)
        refuse(c, why);
}

void op_conv(Value *stack, uint64_t nargs, uint64_t nresults)
{
    AtenString *task = (AtenString *)(uintptr_t)stack[4];
    Call c = { .nin = 0 };
    weft_ctx *ctx;
    const char *why = list_take((AtenList *)(uintptr_t)stack[0], c.in, MOST, &c.nin);

    (void)nargs;
    (void)nresults;
    if (why == NULL)
        why = text_take(task, &c.task);
    if (why != NULL)
        refuse(&c, why);
    take_index(&c, stack[1], stack[2]);
    if (c.message[0] == 0 && (why = plain_pack(c.index, 2)) != NULL)
        refuse(&c, why);
    c.nodes = (int64_t)stack[3];
    if (c.message[0] == 0) {
        ctx = state_enter();
        if (ctx != NULL)
            run(&c, ctx);
        else
            refuse(&c, "out of memory");
        state_leave();
    }
    shim.string_delete(task);
    if (c.message[0] == 0)
        stack[0] = list_give(c.out, c.nout);
    plain_free(c.in, c.nin);
    plain_free(c.index, 2);
    plain_free(c.out, c.nout);
    if (c.message[0] != 0)
        op_fail(c.message);
}
