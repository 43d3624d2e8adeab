/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Chains as machine code: many in one C file, each run on copies of its arrays. */
#include "api/api_int.h"
#include "sched/sched_test.h"
#include "unit/trap.h"

#include <string.h>

/* The rest of the pipeline. */
static void lower(Arena *a, const Chain *c, const Subjects *all, Subject *s)
{
    Target target = { .unit = all->unit };
    Aim aim;
    Text t = { .arena = a }, prefix = { .arena = a };
    Kernel *k;

    target.unit.registers = 16;
    aim = api_aim(&target);
    k = api_passes(c->prog, &aim);
    text_f(&prefix, "k%d", all->n);
    s->prog = c->prog;
    s->kernel = emit_functions_cut(&t, &emit_dialect_c, s->prog, k->phase, k->n, prefix.s,
                                   0);
    s->source = t.s;
}

void compiled_add(Arena *a, Subjects *all, const Chain *c)
{
    const Base *b = c->base;
    Subject s = { .seed = b->seed,
                  .exact = true,
                  .text = b->text,
                  .in = b->in,
                  .want = b->want,
                  .status = b->status,
                  .error = "" };

    if (CATCH(a->err, lower(a, c, all, &s)) != ST_OK) {
        if (a->err->code != ST_LIMIT)
            err_jump(a->err);
        err_clear(a->err);
        return;
    }
    all->s = arena_grow(a, all->s, all->n, &all->cap, sizeof *all->s);
    all->s[all->n++] = s;
}
