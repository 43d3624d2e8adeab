/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Non-temporal stores: a result that is stored once, in lanes, and that the kernel does not read
 * bypasses the caches.  That pays where the phase, or its loop over all entries, touches more rows
 * than the caches hold: the first results would be evicted before the end anyway. */
#include "lower/memory/memory_int.h"


typedef struct Reads { /* of all phases */
    Prog *p;
    bool *buf, *own; /* by id of a buffer, and of an array that a pass made */
    Memo met;
} Reads;

typedef struct Stream {
    Prog *p;
    const Reads *reads;
    const Node *phase;
    int64_t bytes;
    const Node *rows; /* the phase, or its loop over entries */
    Expr *count;      /* of rows in all */
    int64_t least;    /* from how many on; 0: any; -1: never */
} Stream;

static bool *is_read(const Reads *r, const Buf *b)
{
    return b->id < LOOP_OWN ? &r->buf[b->id] : &r->own[b->id - LOOP_OWN];
}

static void see_read(Expr *e, void *ctx)
{
    if (e->op == OP_cell)
        *is_read(ctx, e->buf) = true;
}

/* The arrays that a tree reads, or adds to. */
static void note_reads(Reads *r, const Node *n)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };
    bool cell = n->out != NULL && n->out->op == OP_cell;

    if (cell && n->kind == N_STORE && n->op != A_SET)
        *is_read(r, n->out->buf) = true;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL)
            ir_visit(r->p, part[i], see_read, r, &r->met);
    for (int i = 0; cell && i < n->out->nargs; i++)
        ir_visit(r->p, n->out->arg[i], see_read, r, &r->met);
    for (int i = 0; i < n->nat; i++)
        ir_visit(r->p, n->at[i].value, see_read, r, &r->met);
    for (int i = 0; i < n->nbody; i++)
        note_reads(r, n->body[i]);
}

static Reads reads_of(const Kernel *k)
{
    Reads r = { .p = k->p };

    r.buf = arena_array(k->p->arena, k->p->nbuf, sizeof *r.buf);
    r.own = arena_array(k->p->arena, k->p->naux, sizeof *r.own);
    for (int i = 0; i < k->n; i++)
        note_reads(&r, k->phase[i]);
    return r;
}

/* Bytes between the element and that of the next row; 0: not known. */
static int64_t row_of(Prog *p, const Node *rows, Expr *cell)
{
    int64_t bytes;
    LoopIndex x;

    return rows->kind == N_FOR && lower_row_index(p, cell->arg[0], rows, &x) != NULL &&
                   x.stride > 0 && !int_mul(x.stride, ir_type[cell->buf->type].bytes, &bytes)
               ? bytes
               : 0;
}

typedef struct RowOf { /* what a row has of an array */
    const Buf *buf;
    int64_t bytes;
    int at; /* its turn */
} RowOf;

typedef struct Rows {
    Prog *p;
    const Node *rows;
    RowOf *of;
    int n, cap;
} Rows;

static void see_row(Expr *e, void *ctx)
{
    Rows *r = ctx;
    int64_t bytes = e->op == OP_cell ? row_of(r->p, r->rows, e) : 0;

    if (bytes == 0)
        return;
    r->of = arena_grow(r->p->arena, r->of, r->n, &r->cap, sizeof *r->of);
    r->of[r->n] = (RowOf){ e->buf, bytes, r->n };
    r->n++;
}

static int by_buf(const void *a, const void *b)
{
    const RowOf *x = a, *y = b;

    return x->buf == y->buf ? (x->at > y->at) - (x->at < y->at)
                            : (x->buf->id > y->buf->id) - (x->buf->id < y->buf->id);
}

/* Of an array that is met several times, the first tells. */
int64_t lower_row_bytes(Prog *p, const Node *rows)
{
    Rows r = { .p = p, .rows = rows };
    Memo met = { 0 };
    int64_t bytes = 0, more;

    loop_visit(p, rows, see_row, &r, &met);
    array_sort(r.of, r.n, sizeof *r.of, by_buf);
    for (int i = 0; i < r.n; i++)
        if ((i == 0 || r.of[i].buf != r.of[i - 1].buf) && !int_add(bytes, r.of[i].bytes, &more))
            bytes = more;
    return bytes;
}

static bool may_stream(const Stream *s, const Node *n)
{
    return n->kind == N_STORE && n->op == A_SET && n->nat == 0 && n->out->op == OP_cell &&
           !*is_read(s->reads, n->out->buf) && s->least >= 0 &&
           (s->least == 0 || (row_of(s->p, s->rows, n->out) > 0 &&
                              row_of(s->p, s->rows, n->out) % CACHE_LINE == 0));
}

/* The number of rows that touch so many bytes; -1: as far as known, none do. */
static int64_t least_of(Prog *p, const Node *rows, Expr *count, int64_t bytes)
{
    int64_t row = bytes > 1 ? lower_row_bytes(p, rows) : 0;

    if (bytes <= 1)
        return 0;
    if (row == 0 || count->op == OP_int)
        return row > 0 && count->i > bytes / row ? 0 : -1;
    return bytes / row + 1;
}

static Node *stream(const Stream *s, Node *n, bool lanes)
{
    Prog *p = s->p;
    NodeList body = { 0 };
    Node c = *n;
    Expr *entries = n == s->phase ? NULL : lower_entries(p, s->phase, n);
    Stream in = *s;

    if (entries != NULL) {
        in.rows = n;
        in.count = entries;
        in.least = least_of(p, n, entries, s->bytes);
    }
    lanes = lanes || (n->kind == N_FOR && n->lanes > 1);
    if (lanes && may_stream(s, n)) {
        c.stream = true;
        if (s->least > 0)
            c.cond = ir_op2(p, OP_ge, s->count, ir_int(p, s->least));
        return loop_node(p, &c);
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, stream(&in, n->body[i], lanes));
    return tree_with_body(p, n, &body);
}

void lower_stream(Kernel *k, int64_t bytes)
{
    Reads reads = reads_of(k);

    for (int i = 0; i < k->n && bytes > 0; i++) {
        Node *phase = k->phase[i];
        Stream s = { .p = k->p, .reads = &reads, .phase = phase, .bytes = bytes };

        s.rows = phase;
        s.count = phase->hi;
        if (phase->kind != N_FOR)
            continue;
        s.least = least_of(k->p, phase, phase->hi, bytes);
        k->phase[i] = stream(&s, phase, false);
    }
    lower_done(k, k->p->stage);
}
