/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators of torch that make structure: rows and tiles of edges, kernel maps, blocks of masks and rows
 * of pages.  A compiled or exported function calls them to make the structure of what it is given, and
 * a package of AOTInductor calls them without Python.  Messages name arguments as users of Python do. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As the operators rgms and attention have them: pairs or queries of a tile, keys of a block. */
enum { TILE = 16, KEYS = 64 };

typedef struct Call {
    Plain in[MOST_ARRAYS], out[MOST_ARRAYS];
    int nin, nout;
    AtenString *text;   /* owned; NULL: none */
    char message[2048]; /* what went wrong; "" at first */
} Call;

typedef void Work(Call *c, weft_ctx *ctx, const void *settings);

static void refuse(Call *c, const char *what)
{
    if (c->message[0] == 0)
        snprintf(c->message, sizeof c->message, "%s", what);
}

/* The library names its arrays of receivers, senders and types, which are rows of edge_index. */
static void refuse_edges(Call *c, const char *what)
{
    char end[16] = "";
    long long edge, value, most;

    if (sscanf(what, "%15[a-z][%lld] is %lld, but there are %lld rows", end, &edge, &value,
               &most) != 4)
        refuse(c, what);
    else if (strcmp(end, "type") == 0)
        snprintf(c->message, sizeof c->message,
                 "edge_type: that of edge %lld is %lld, but there are %lld relations", edge, value,
                 most);
    else
        snprintf(c->message, sizeof c->message,
                 "edge_index: the %s of edge %lld is %lld, but there are %lld nodes", end, edge,
                 value, most);
}

static Plain *take(Call *c, Value tensor)
{
    Plain *p = &c->in[c->nin++];
    const char *why;

    if (!plain_take((AtenTensor *)(uintptr_t)tensor, p, &why))
        refuse(c, why);
    return p;
}

/* How many tensors the list has. */
static int take_all(Call *c, Value list)
{
    int first = c->nin;
    const char *fault = list_take((AtenList *)(uintptr_t)list, c->in, MOST_ARRAYS, &c->nin);

    if (fault != NULL)
        refuse(c, fault);
    return c->nin - first;
}

static void need(Call *c, const Plain *p, const char *name, int ndim, bool wide)
{
    if (p->ndim == ndim && (p->type == WEFT_I64 || (!wide && p->type == WEFT_I32)))
        return;
    snprintf(c->message, sizeof c->message, "%s: expected %s, a tensor of %d dimensions", name,
             wide ? "int64" : "int32 or int64", ndim);
}

static bool fails(Call *c, weft_ctx *ctx, weft_status s)
{
    if (s != WEFT_OK)
        refuse(c, weft_message(ctx)[0] != 0 ? weft_message(ctx) : "out of memory");
    return s != WEFT_OK;
}

/* A new result; its data are NULL where there is no memory, and the call is refused. */
static Plain *give(Call *c, weft_type type, int ndim, const int64_t *shape)
{
    Plain *p = &c->out[c->nout];

    if (c->message[0] == 0 && plain_new(type, ndim, shape, p)) {
        c->nout++;
        return p;
    }
    refuse(c, "out of memory");
    p->data = NULL;
    return p;
}

static void give_copy(Call *c, weft_type type, int64_t n, const void *from)
{
    Plain *p = give(c, type, 1, &n);

    if (p->data != NULL && n > 0)
        memcpy(p->data, from, (size_t)n * type_bytes(type));
}

/* Packs the inputs, runs, and replaces the stack by the list of results. */
static void finish(Call *c, Value *stack, Work *work, const void *settings)
{
    const char *packed = c->message[0] == 0 ? plain_pack(c->in, c->nin) : NULL;
    weft_ctx *ctx;

    if (packed != NULL)
        refuse(c, packed);
    if (c->message[0] == 0) {
        ctx = state_enter();
        if (ctx != NULL)
            work(c, ctx, settings);
        else
            refuse(c, "out of memory");
        state_leave();
    }
    if (c->message[0] == 0)
        stack[0] = list_give(c->out, c->nout);
    plain_free(c->in, c->nin);
    plain_free(c->out, c->nout);
    if (c->text != NULL)
        shim.string_delete(c->text);
    if (c->message[0] != 0)
        op_fail(c->message);
}

/* ---- edges ---- */

typedef struct Edges {
    int64_t receivers, senders, relations, most;
    int loops;
    bool narrow;
} Edges;

static weft_edge_list list_of(const Plain *index, const Edges *e)
{
    const char *sender = index->data;
    int64_t n = index->shape[1];

    return (weft_edge_list){
        e->receivers, e->senders, n, index->type, sender + (size_t)n * type_bytes(index->type),
        sender
    };
}

/* The three arrays at `from`, one behind the other, as results of 32 bits. */
static void give_narrow(Call *c, const int64_t *from, const int64_t *n)
{
    for (int k = 0; k < 3; from += n[k++]) {
        int32_t *to = give(c, WEFT_I32, 1, &n[k])->data;

        for (int64_t i = 0; to != NULL && i < n[k]; i++)
            to[i] = (int32_t)from[i];
    }
}

static void make_rows(Call *c, weft_ctx *ctx, const void *settings)
{
    const Edges *e = settings;
    weft_edge_list list = list_of(&c->in[0], e);
    int64_t both = e->receivers < e->senders ? e->receivers : e->senders, size[3],
            *at[3] = { NULL };
    int64_t *all = NULL;

    size[0] = e->receivers + 1 + (e->loops != 0);
    size[1] = size[2] = list.n + (e->loops != 0 ? both : 0);
    if (e->narrow)
        all = malloc((size_t)(size[0] + 2 * size[1]) * sizeof *all);
    for (int k = 0; k < 3; k++)
        at[k] = !e->narrow    ? give(c, WEFT_I64, 1, &size[k])->data
                : all == NULL ? NULL
                : k == 0      ? all
                              : at[k - 1] + size[k - 1];
    if (at[0] == NULL)
        refuse(c, "out of memory");
    else if (c->message[0] == 0 &&
             weft_rows_make(ctx, &list, e->loops, at[0], at[1], at[2]) != WEFT_OK)
        refuse_edges(c, weft_message(ctx));
    if (e->narrow && c->message[0] == 0)
        give_narrow(c, all, size);
    free(all);
}

static const Plain *take_index(Call *c, Value tensor, const Edges *e)
{
    const Plain *p = take(c, tensor);

    need(c, p, "edge_index", 2, false);
    if (c->message[0] == 0 && p->shape[0] != 2)
        refuse(c, "edge_index: expected 2 rows, senders and receivers");
    if (e->receivers < 0 || e->senders < 0)
        refuse(c, "expected numbers of receivers and senders that are not negative");
    return p;
}

void op_edge_rows(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    Edges e = { .receivers = (int64_t)stack[1],
                .senders = (int64_t)stack[2],
                .loops = (int)(int64_t)stack[3],
                .narrow = (int64_t)stack[4] == 32 };

    (void)nargs;
    (void)nresults;
    take_index(&c, stack[0], &e);
    finish(&c, stack, make_rows, &e);
}

/* Entries of a matrix by row; columns are for who reads them to check. */
static void sort_coo(Call *c, weft_ctx *ctx, const void *settings)
{
    const Edges *e = settings;
    int64_t n = c->in[0].shape[0], starts = e->receivers + 1;
    weft_edge_list list = { e->receivers,  INT64_C(1) << 40, n,
                            c->in[0].type, c->in[0].data,    c->in[1].data };
    int64_t *start = give(c, WEFT_I64, 1, &starts)->data, *col = give(c, WEFT_I64, 1, &n)->data,
            *at = give(c, WEFT_I64, 1, &n)->data;

    if (c->message[0] == 0)
        fails(c, ctx, weft_rows_make(ctx, &list, 0, start, col, at));
}

void op_coo_rows(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    Edges e = { .receivers = (int64_t)stack[2] };
    const Plain *row = take(&c, stack[0]), *col = take(&c, stack[1]);

    (void)nargs;
    (void)nresults;
    if (row->ndim != 1 || col->ndim != 1 || row->shape[0] != col->shape[0] ||
        row->type != col->type || (row->type != WEFT_I32 && row->type != WEFT_I64))
        refuse(&c, "row, col: expected two lists of integers of one length and type");
    if (e.receivers < 0)
        refuse(&c, "rows: expected a number that is not negative");
    finish(&c, stack, sort_coo, &e);
}

/* Where shapes are told before the run, as many places as edges and relations can need: a row more
 * has places that no pair has, one for each edge that shares its pair with another. */
static void fill_places(Call *c, const weft_tiles *t, int64_t receivers, int64_t n)
{
    int64_t *first = give(c, WEFT_I64, 1, &(int64_t){ receivers + 2 })->data;
    int64_t *place = give(c, WEFT_I64, 1, &n)->data, at = t->pairs, places = TILE * t->tiles;
    unsigned char *taken = calloc((size_t)places + 1, 1);

    if (c->message[0] != 0 || taken == NULL) {
        refuse(c, "out of memory");
        free(taken);
        return;
    }
    memcpy(first, t->first, (size_t)(receivers + 1) * sizeof *first);
    first[receivers + 1] = n;
    for (int64_t k = 0; k < t->pairs; k++)
        taken[place[k] = t->place[k]] = 1;
    for (int64_t p = 0; p < places && at < n; p++)
        if (!taken[p])
            place[at++] = p;
    free(taken);
}

static void make_tiles(Call *c, weft_ctx *ctx, const void *settings)
{
    const Edges *e = settings;
    weft_edge_list list = list_of(&c->in[0], e);
    weft_tiles t;

    if (weft_tiles_make(ctx, &list, c->in[1].data, e->relations, e->most, &t) != WEFT_OK) {
        refuse_edges(c, weft_message(ctx));
        return;
    }
    give_copy(c, WEFT_I64, t.tiles, t.relation);
    give_copy(c, WEFT_I64, TILE * t.tiles + 1, t.start);
    give_copy(c, WEFT_I64, list.n, t.sender);
    give_copy(c, WEFT_I64, list.n, t.at);
    if (e->most > 0) {
        fill_places(c, &t, e->receivers, list.n);
    } else {
        give_copy(c, WEFT_I64, e->receivers + 1, t.first);
        give_copy(c, WEFT_I64, t.pairs, t.place);
    }
}

void op_edge_tiles(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    Edges e = { .receivers = (int64_t)stack[2],
                .senders = (int64_t)stack[3],
                .relations = (int64_t)stack[4],
                .most = (int64_t)stack[5] };
    const Plain *index = take_index(&c, stack[0], &e), *type = take(&c, stack[1]);

    (void)nargs;
    (void)nresults;
    need(&c, type, "edge_type", 1, false);
    if (c.message[0] == 0 && (type->type != index->type || type->shape[0] != index->shape[1]))
        refuse(&c, "edge_type: expected a relation for each edge, of the type of edge_index");
    finish(&c, stack, make_tiles, &e);
}

/* ---- kernel maps ---- */

/* Like lists of tensors, such a list is given to who takes it. */
static void take_numbers(Call *c, Value list, int64_t *out, size_t n)
{
    AtenList *of = (AtenList *)(uintptr_t)list;
    size_t there = 0;
    Value v = 0;

    shim.list_size(of, &there);
    if (there != n)
        refuse(c,
               "settings: expected six triples: shape, kernel, stride, padding, dilation, extra");
    for (size_t i = 0; i < n && there == n && shim.list_get(of, i, &v) == 0; i++)
        out[i] = (int64_t)v;
    shim.list_delete(of);
}

static void give_map(Call *c, const weft_kernel_map *m)
{
    give_copy(c, WEFT_I32, m->strips + 1, m->group_start);
    give_copy(c, WEFT_I32, m->groups, m->offset);
    give_copy(c, WEFT_I32, m->groups + 1, m->pair_start);
    give_copy(c, WEFT_I32, m->pairs, m->row);
    give_copy(c, WEFT_I32, m->pairs, m->input);
}

/* The places of outputs in the type of those of inputs. */
static void give_places(Call *c, weft_type type, int64_t n, const int64_t *coord)
{
    Plain *p = give(c, type, 2, (const int64_t[2]){ n, 4 });

    for (int64_t i = 0; p->data != NULL && i < 4 * n; i++)
        if (type == WEFT_I64)
            ((int64_t *)p->data)[i] = coord[i];
        else
            ((int32_t *)p->data)[i] = (int32_t)coord[i];
}

static void make_map(Call *c, weft_ctx *ctx, const void *settings)
{
    weft_voxels v = *(const weft_voxels *)settings;
    weft_kernel_map m;

    v.n = c->in[0].shape[0];
    v.type = c->in[0].type;
    v.coord = c->in[0].data;
    if (fails(c, ctx, weft_kernel_map_make(ctx, &v, &m)))
        return;
    give_map(c, &m);
    give_places(c, v.type, v.kind == WEFT_SUBMANIFOLD ? 0 : m.out, m.coord);
}

void op_kernel_map(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    weft_voxels v = { .kind = (weft_conv3d)stack[1], .batch = (int64_t)stack[3] };
    int64_t *to[6] = { v.shape, v.kernel, v.stride, v.padding, v.dilation, v.extra };
    int64_t all[18] = { 0 };
    const Plain *coords = take(&c, stack[0]);

    (void)nargs;
    (void)nresults;
    need(&c, coords, "coords", 2, false);
    if (c.message[0] == 0 && coords->shape[1] != 4)
        refuse(&c, "coords: expected a row for each voxel: batch index and three coordinates");
    take_numbers(&c, stack[2], all, 18);
    for (int k = 0; k < 6; k++)
        memcpy(to[k], &all[3 * k], sizeof v.shape);
    finish(&c, stack, make_map, &v);
}

static void turn_map(Call *c, weft_ctx *ctx, const void *settings)
{
    weft_kernel_map m = *(const weft_kernel_map *)settings, out;

    m.strips = c->in[0].shape[0] - 1;
    m.groups = c->in[1].shape[0];
    m.pairs = c->in[4].shape[0];
    m.group_start = c->in[0].data;
    m.offset = c->in[1].data;
    m.pair_start = c->in[2].data;
    m.row = c->in[3].data;
    m.input = c->in[4].data;
    if (!fails(c, ctx, weft_kernel_map_turn(ctx, &m, &out)))
        give_map(c, &out);
}

void op_kernel_map_turn(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    weft_kernel_map m = { .in = (int64_t)stack[1],
                          .out = (int64_t)stack[2],
                          .offsets = (int64_t)stack[3],
                          .strip = (int64_t)stack[4] };
    int n = take_all(&c, stack[0]);

    (void)nargs;
    (void)nresults;
    for (int i = 0; i < n && i < 5; i++)
        if (c.in[i].ndim != 1 || c.in[i].type != WEFT_I32)
            refuse(&c, "arrays: expected lists of int32");
    if (n != 5 || (c.message[0] == 0 && c.in[0].shape[0] == 0))
        refuse(&c, "arrays: expected G.start, G.d, E.start, E.r and E.v of a kernel map");
    finish(&c, stack, turn_map, &m);
}

/* ---- attention ---- */

/* Inputs are start, col, lq and lk; without elements: none. */
enum { START, COL, QUERIES, LENGTHS_END = 4 };

typedef struct Mask {
    weft_mask_in in;
    int64_t w;  /* blocks of a row of the results */
    bool split; /* whether rows and starts are results */
} Mask;

/* Rows of blocks, filled up to w of them. */
static void give_blocks(Call *c, const weft_mask *m, const int64_t *from, int64_t w, int64_t fill)
{
    int64_t *to = give(c, WEFT_I64, 2, (const int64_t[2]){ m->pieces, w })->data;

    for (int64_t p = 0; to != NULL && p < m->pieces; p++)
        for (int64_t k = 0; k < w; k++)
            *to++ = k < m->w ? from[p * m->w + k] : fill;
}

static void give_patterns(Call *c, const weft_mask *m, weft_type type)
{
    int64_t shape[3] = { m->patterns, TILE, KEYS };
    Plain *x = give(c, type, 3, shape);

    if (x->data != NULL)
        memcpy(x->data, m->x, (size_t)(m->patterns * TILE * KEYS) * type_bytes(type));
}

static const int64_t *elements(const Plain *p)
{
    return p->shape[0] > 0 ? p->data : NULL;
}

static void make_mask(Call *c, weft_ctx *ctx, const void *settings)
{
    const Mask *s = settings;
    weft_mask_in in = s->in;
    weft_mask m;

    in.start = elements(&c->in[START]);
    in.col = elements(&c->in[COL]);
    in.lq = elements(&c->in[QUERIES]);
    in.lk = elements(&c->in[QUERIES + 1]);
    if (in.start != NULL && in.start[c->in[START].shape[0] - 1] > c->in[COL].shape[0]) {
        refuse(c, "mask: fewer columns than its starts say");
        return;
    }
    if (fails(c, ctx, weft_mask_make(ctx, &in, &m)))
        return;
    give_blocks(c, &m, m.j, s->w, -1);
    give_blocks(c, &m, m.pat, s->w, 0);
    give_patterns(c, &m, in.type);
    if (s->split) {
        give_copy(c, WEFT_I64, m.pieces, m.row);
        give_copy(c, WEFT_I64, in.copies * m.tiles + 1, m.start);
    }
}

static void check_mask(Call *c, const Mask *s)
{
    const weft_mask_in *in = &s->in;
    int64_t starts;

    for (int i = START; i < LENGTHS_END; i++)
        need(c, &c->in[i], i < QUERIES ? "mask" : "lengths", 1, true);
    if (s->w < 1 || in->block < 1 || in->n < 0 || in->n > INT64_C(1) << 40)
        refuse(c, "n, block, w: expected sizes of a mask");
    if (c->message[0] != 0)
        return;
    for (int i = QUERIES; i < LENGTHS_END; i++)
        if (c->in[i].shape[0] != 0 && c->in[i].shape[0] != in->copies)
            refuse(c, "lengths: expected one for each batch and head");
    starts = in->source != NULL ? 0 : (in->n + in->block - 1) / in->block + 1;
    if (c->in[START].shape[0] != starts)
        refuse(c, "mask: expected a source, or a start for each row, and one more");
}

void op_mask_blocks(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .text = (AtenString *)(uintptr_t)stack[4] };
    const char *text = "", *fault = text_take(c.text, &text);
    Mask s = { .in = { .source = text[0] != 0 ? text : NULL,
                       .n = (int64_t)stack[5],
                       .m = (int64_t)stack[6],
                       .block = (int64_t)stack[7],
                       .causal = (uint8_t)stack[8] != 0,
                       .type = (uint8_t)stack[9] != 0 ? WEFT_F64 : WEFT_F32,
                       .copies = (int64_t)stack[10],
                       .w = (int64_t)stack[11] },
               .w = (int64_t)stack[12],
               .split = (uint8_t)stack[13] != 0 };

    (void)nargs;
    (void)nresults;
    for (int i = START; i < LENGTHS_END; i++)
        take(&c, stack[i]);
    if (fault != NULL)
        refuse(&c, fault);
    check_mask(&c, &s);
    finish(&c, stack, make_mask, &s);
}

typedef struct Random {
    int64_t n;
    bool second;
} Random;

static void make_random(Call *c, weft_ctx *ctx, const void *settings)
{
    const Random *r = settings;
    int64_t *to = give(c, WEFT_I64, 1, &r->n)->data;
    uint64_t seed = (uint64_t) * (const int64_t *)c->in[0].data;

    if (c->message[0] == 0)
        fails(c, ctx, weft_mask_random(ctx, 2 * seed + r->second, r->n, to));
}

void op_mask_random(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    Random r = { (int64_t)stack[2], (uint8_t)stack[1] != 0 };

    (void)nargs;
    (void)nresults;
    need(&c, take(&c, stack[0]), "seed", 0, true);
    if (r.n < 0)
        refuse(&c, "n: expected a number that is not negative");
    finish(&c, stack, make_random, &r);
}

typedef struct Pages {
    int64_t pages, page;
} Pages;

static void make_pages(Call *c, weft_ctx *ctx, const void *settings)
{
    const Pages *s = settings;
    const Plain *table = &c->in[0];
    int64_t batch = table->shape[0], width = table->shape[1], room = batch * width + 1, used;
    int64_t starts = batch + 1, *where = malloc((size_t)(2 * room) * sizeof *where);
    int64_t *start = give(c, WEFT_I64, 1, &starts)->data;

    if (where == NULL)
        refuse(c, "out of memory");
    if (c->message[0] == 0 &&
        !fails(c, ctx,
               weft_pages_make(ctx, table->data, c->in[1].data, batch, width, s->pages, s->page,
                               start, where, where + room))) {
        used = start[batch];
        give_copy(c, WEFT_I64, used, where);
        give_copy(c, WEFT_I64, used + 1, where + room);
    }
    free(where);
}

void op_mask_pages(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .nin = 0 };
    Pages s = { (int64_t)stack[2], (int64_t)stack[3] };
    const Plain *table = take(&c, stack[0]), *lengths = take(&c, stack[1]);

    (void)nargs;
    (void)nresults;
    need(&c, table, "block_table", 2, true);
    need(&c, lengths, "lengths", 1, true);
    if (c.message[0] == 0 && lengths->shape[0] != table->shape[0])
        refuse(&c, "lengths: expected one for each sequence of block_table");
    finish(&c, stack, make_pages, &s);
}
