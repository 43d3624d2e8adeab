/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Stores past the caches: results that are stored once, in lanes, and that the kernel does not
 * read, need not take the place of what it reads. */
#include "lower/lower_int.h"

static void see_read(Expr *e, void *ctx)
{
    const Buf **b = ctx;

    if (e->op == OP_cell && e->buf == b[0])
        b[1] = b[0];
}

/* Whether any phase reads the array, or adds to it. */
static bool is_read(Prog *p, const Node *n, Buf *b)
{
    const Buf *seen[2] = { b, NULL };
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };
    bool read = n->kind == N_STORE && n->op != A_SET && n->out->op == OP_cell && n->out->buf == b;

    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        Memo met = { 0 };

        if (part[i] != NULL)
            ir_visit(p, part[i], see_read, seen, &met);
    }
    read = read || seen[1] != NULL;
    for (int i = 0; i < n->nbody && !read; i++)
        read = is_read(p, n->body[i], b);
    return read;
}

static bool is_only_written(const Kernel *k, Buf *b)
{
    for (int i = 0; i < k->n; i++)
        if (is_read(k->p, k->phase[i], b))
            return false;
    return true;
}

static Node *stream(const Kernel *k, Node *n, bool lanes)
{
    NodeList body = { 0 };
    Node c = *n;

    lanes = lanes || (n->kind == N_FOR && n->lanes > 1);
    if (n->kind == N_STORE && lanes && n->op == A_SET && n->nat == 0 && n->out->op == OP_cell) {
        c.stream = is_only_written(k, n->out->buf);
        return loop_node(k->p, &c);
    }
    for (int i = 0; i < n->nbody; i++)
        lower_append(k->p, &body, stream(k, n->body[i], lanes));
    return lower_with_body(k->p, n, &body);
}

void lower_streams(Kernel *k)
{
    for (int i = 0; i < k->n; i++)
        k->phase[i] = stream(k, k->phase[i], false);
    lower_done(k, k->p->stage);
}
