/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Nests of loops over all elements of an array, at stage positions. */
#include "lower/storage/storage_int.h"

Elements lower_elements(Prog *p, const Buf *b)
{
    Elements e = { .n = ir_dims(b, e.dim) };

    for (int d = 0; d < e.n; d++) {
        Text name = { .arena = p->arena };

        text_f(&name, "x%d", d);
        e.x[d] = loop_local(p, name.s, T_i64, 1);
        e.index[d] = loop_use(p, e.x[d]);
    }
    return e;
}

Node *lower_over_elements(Prog *p, const Buf *b, const Elements *e, const char *label,
                          NodeList body)
{
    for (int i = 0; i < body.n; i++)
        body.node[i]->label = label;
    for (int d = e->n - 1; d >= 0; d--) {
        Node loop = { .kind = N_FOR,
                      .label = label,
                      .local = e->x[d],
                      .lo = ir_int(p, 0),
                      .how = d == 0 ? FOR_PARALLEL : FOR_SERIAL,
                      .hi = lower_dim_extent(p, b, e->dim[d]),
                      .over = lower_dim_over(p, b, e->dim[d]) };
        Node *n = tree_with_body(p, &loop, &body);

        body = (NodeList){ 0 };
        tree_append(p, &body, n);
    }
    return lower_phase(p, &body);
}
