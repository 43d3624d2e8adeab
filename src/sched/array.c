/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Arrays that steps add to a program, and the loops that fill and read them. */
#include "sched/step.h"

#include <string.h>

static Buf *new_array(Prog *p, Buf b, const Buf *of, const char *suffix, Axis *const *axis)
{
    int n = b.nfull;
    Text name = { .arena = p->arena };
    const Symbol *s;
    int number = 0;

    do {
        name.n = 0;
        text_f(&name, "%s.%s", of->name, suffix);
        if (number++ > 0)
            text_f(&name, "%d", number);
        s = ir_find_symbol(p, name.s, name.n);
    } while (s != NULL && s->buf != NULL);
    b.name = name.s;
    b.full = b.slot = arena_copy(p->arena, axis, (size_t)n * sizeof *axis);
    b.place_in_full = arena_array(p->arena, n, sizeof *b.place_in_full);
    for (int i = 0; i < n; i++)
        b.place_in_full[i] = i;
    return loop_own(p, &b);
}

Buf *step_new_array(Prog *p, const Buf *of, const char *suffix, Axis *const *axis, int n)
{
    Buf b = { .type = of->type, .kind = B_TEMP, .nslot = n, .nfull = n, .written = true };

    return new_array(p, b, of, suffix, axis);
}

/* The array that the tree stores to first. */
static const Buf *stored_in(const Node *n)
{
    const Buf *b = n->kind == N_STORE && n->out->op == OP_cell ? n->out->buf : NULL;

    for (int i = 0; i < n->nbody && b == NULL; i++)
        b = stored_in(n->body[i]);
    return b;
}

Buf *step_new_shared(StepCall *c, const Node *phase, const Buf *like, const char *suffix,
                     int64_t n)
{
    const Buf *of = strchr(like->name, '.') == NULL ? like : stored_in(phase);
    Buf b = { .type = like->type, .kind = B_SHARED, .nslot = 1, .nfull = 1, .written = true };
    Axis *axis = ir_dense(c->p, ir_int(c->p, n));
    const char *name = arena_copy(c->p->arena, of->name, strlen(of->name) + 1);

    ((char *)name)[strcspn(name, ".")] = 0; /* beside a buffer of the program */
    return new_array(c->p, b, &(Buf){ .name = name }, suffix, &axis);
}

Node *step_nest(Prog *p, const char *label, Local *const *var, Expr *const *hi, int n, Node *body)
{
    for (int i = n - 1; i >= 0; i--) {
        Node loop = { .kind = N_FOR, .label = label, .local = var[i], .hi = hi[i] };

        loop.lo = ir_int(p, 0);
        loop.how = i == 0 ? FOR_PARALLEL : FOR_SERIAL;
        body = tree_around(p, &loop, body);
    }
    return body;
}

Local *step_counter(Prog *p, const char *stem, int i)
{
    Text t = { .arena = p->arena };

    text_f(&t, "%s%d", stem, i);
    return loop_local(p, t.s, T_i64, 1);
}
