/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Places initial values.  Until here they are attributes of arrays.  Each is placed where it costs
 * least: in the register that sums up the element, in the first store to the element, or else in
 * loops of its own before the first phase that mentions the array. */
#include "lower/init/init_int.h"
#include "lower/storage/storage_int.h"

#include <string.h>

enum { LIMIT_BESIDE = 3 };

/* The arrays with initial values that share this one's label, it included; how many. */
static int beside(Prog *p, const Buf *b, Buf **out)
{
    static const char *const end[LIMIT_BESIDE] = { "", ".acc", ".hit" };
    const char *label = loop_init_label(p, b);
    int stem = (int)strlen(label) - (int)strlen(".init"), n = 0;

    for (int i = 0; i < LIMIT_BESIDE; i++) {
        Text name = { .arena = p->arena };
        const Symbol *s;

        text_f(&name, "%.*s%s", stem, label, end[i]);
        s = ir_find_symbol(p, name.s, name.n);
        if (s != NULL && s->buf != NULL && s->buf->init != NULL)
            out[n++] = s->buf;
    }
    return n;
}

/* The loops over all elements of these arrays, of the same axes. */
static Node *nest_of(Prog *p, Buf *const *b, int n)
{
    Elements e = lower_elements(p, b[0]);
    NodeList body = { 0 };

    for (int i = 0; i < n; i++)
        tree_append(p, &body,
                     loop_node(p, &(Node){ .kind = N_STORE,
                                           .op = A_SET,
                                           .out = loop_cell(p, b[i], e.index, e.n, 1),
                                           .value = loop_init(p, b[i], e.index) }));
    return lower_over_elements(p, b[0], &e, loop_init_label(p, b[0]), body);
}

Node *lower_init_nest(Prog *p, Buf *b)
{
    Buf *all[LIMIT_BESIDE];
    Node *nest = nest_of(p, all, beside(p, b, all));

    return p->stage == STAGE_LOOPS ? lower_flattened(p, nest) : nest;
}

typedef struct Placing {
    Kernel *k;
    Mentions of;
    Sites *sites;  /* by phase */
    NodeList *own; /* by phase: loops that come before it; one more list for the end */
} Placing;

/* The first phase that mentions the array; the end, if none does. */
static int first_use(const Placing *s, const Buf *b)
{
    int phase = lower_next_mention(&s->of, b, -1);

    return phase < 0 ? s->k->n : phase;
}

static bool place_inside(Placing *s, Buf *b)
{
    Prog *p = s->k->p;
    int to = first_use(s, b);
    Node *nest, *left = NULL;

    if (to == s->k->n)
        return b->kind == B_TEMP; /* nobody asks for it */
    nest = lower_flattened(p, nest_of(p, &b, 1));
    lower_sites(p, &s->k->phase[to], &s->sites[to]);
    if (!lower_init_register(p, nest, &s->sites[to]) &&
        !lower_init_store(p, nest, s->k->phase[to], &s->sites[to], &left))
        return false;
    if (left != NULL)
        tree_append(p, &s->own[to], left);
    return true;
}

static void place_before(Placing *s, Buf *b)
{
    Prog *p = s->k->p;
    Buf *all[LIMIT_BESIDE];
    int n = beside(p, b, all), to = s->k->n;

    for (int i = 0; i < n; i++)
        to = first_use(s, all[i]) < to ? first_use(s, all[i]) : to;
    tree_append(p, &s->own[to], lower_flattened(p, nest_of(p, all, n)));
    for (int i = 0; i < n; i++)
        loop_drop_init(all[i]);
}

void lower_init(Kernel *k)
{
    Prog *p = k->p;
    Placing s = { k, lower_mentioned(k), arena_array(p->arena, k->n, sizeof *s.sites),
                arena_array(p->arena, k->n + 1, sizeof *s.own) };
    NodeList out = { 0 };

    for (int i = 0; loop_buf(p, i) != NULL; i++)
        if (loop_buf(p, i)->init != NULL && place_inside(&s, loop_buf(p, i)))
            loop_drop_init(loop_buf(p, i));
    for (int i = 0; loop_buf(p, i) != NULL; i++)
        if (loop_buf(p, i)->init != NULL)
            place_before(&s, loop_buf(p, i));
    for (int i = 0; i <= k->n; i++) {
        tree_append_all(p, &out, &s.own[i]);
        if (i < k->n)
            tree_append(p, &out, k->phase[i]);
    }
    k->phase = out.node;
    k->n = k->cap = out.n;
    lower_done(k, p->stage);
}
