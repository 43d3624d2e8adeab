/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Initial values of arrays: an attribute, until a pass places them. */
#include "ir/loop.h"

#include <string.h>

static void see_unknown(Expr *e, void *ctx)
{
    bool structure = e->op == OP_cell && e->buf->of != NULL && e->buf->of->extent != X_BUILT;
    bool computed = e->op == OP_int || e->op == OP_real || e->op == OP_size || e->op == OP_count ||
                    e->op == OP_local || (e->op >= OP_neg && e->op <= OP_f64);

    if (!structure && !computed)
        *(bool *)ctx = false;
}

bool loop_is_known(Prog *p, Expr *e)
{
    bool known = true;
    Memo met = { 0 };

    ir_visit(p, e, see_unknown, &known, &met);
    return known;
}

Expr *loop_init(Prog *p, const Buf *b, Expr *const *index)
{
    Node *n = loop_node(p, &(Node){ .kind = N_LET, .value = b->init });

    for (int d = 0; b->init_at != NULL && d < loop_rank(b, STAGE_POSITIONS); d++)
        n = loop_replace(p, n, b->init_at[d], index[d]);
    return n->value;
}

void loop_drop_init(Buf *b)
{
    b->init = NULL;
    b->init_at = NULL;
}

const char *loop_init_label(Prog *p, const Buf *b)
{
    const char *dot = strchr(b->name, '.');
    bool beside = dot != NULL && (strcmp(dot, ".acc") == 0 || strcmp(dot, ".hit") == 0);
    Text t = { .arena = p->arena };

    text_f(&t, "%.*s.init", beside ? (int)(dot - b->name) : (int)strlen(b->name), b->name);
    return ir_symbol(p, t.s, t.n)->name;
}

Buf *loop_buf(const Prog *p, int i)
{
    return i < p->nbuf ? p->buf[i] : i < p->nbuf + p->naux ? p->aux[i - p->nbuf] : NULL;
}
