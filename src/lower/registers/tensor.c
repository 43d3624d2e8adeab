/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Register-blocks the one nest that the step tensorize names, as the passes accumulate and
 * block_rows do with every nest that they find. */
#include "lower/registers/registers_int.h"

static Node *with_nest(Prog *p, Node *in, const Node *old, Node *by)
{
    NodeList body = { 0 };

    if (in == old)
        return by;
    for (int i = 0; i < in->nbody; i++)
        tree_append(p, &body, with_nest(p, in->body[i], old, by));
    return tree_with_body(p, in, &body);
}

/* Of a phase that is named itself, the sums are in what is last in it. */
static Node *sums_of(Node *phase, Node *nest)
{
    return nest == phase && nest->nbody > 0 ? nest->body[nest->nbody - 1] : nest;
}

Node *lower_tensor(Prog *p, Node *phase, Node *nest, LowerTile how)
{
    Node *sums = sums_of(phase, nest), *vector = lower_accumulated(p, phase, sums, how);

    if (vector == NULL)
        return NULL;
    phase = with_nest(p, phase, sums, vector);
    return lower_row_blocked(p, phase, sums == nest ? vector : phase, how);
}
