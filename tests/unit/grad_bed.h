/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A test bed whose program is replaced by its derivative. */
#ifndef WEFT_GRAD_BED_H
#define WEFT_GRAD_BED_H

#include "grad/grad.h"
#include "unit/interp_bed.h"

static inline void grad_bed_by(Bed *b, const GradOptions *o,
                               Prog *(*mode)(Arena *, const Prog *, const GradOptions *))
{
    if (CATCH(&b->err, b->prog = mode(&b->arena, b->prog, o);
              b->env = ir_env(&b->arena, b->prog)) != ST_OK)
        test_fail(__FILE__, __LINE__, "derivative: %s", b->err.msg);
}

static inline void grad_bed(Bed *b, const GradOptions *o)
{
    grad_bed_by(b, o, grad_reverse);
}

static inline void grad_bed_forward(Bed *b, const GradOptions *o)
{
    grad_bed_by(b, o, grad_forward);
}

/* The program as text, which must read back to the same program. */
static inline const char *grad_text(Bed *b)
{
    Text text = { .arena = &b->arena }, again = { .arena = &b->arena };
    Prog *p = NULL;

    if (CATCH(&b->err, ir_print(&text, b->prog); p = ir_parse(&b->arena, "text", text.s, text.n);
              ir_check(p); ir_print(&again, p)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b->err.msg, text.s);
    CHECK_STR(again.s, text.s);
    CHECK(ir_equal(p, b->prog));
    return text.s;
}

static inline int grad_count(Bed *b) /* of assigns */
{
    int n = 0;

    for (int i = 0; i < b->prog->nstmt; i++)
        n += b->prog->stmt[i]->nassign;
    return n;
}

static inline int grad_distinct(Bed *b) /* of output and value together */
{
    int n = 0;

    for (int i = 0; i < b->prog->nstmt; i++)
        for (int k = 0; k < b->prog->stmt[i]->nassign; k++) {
            const Assign *a = &b->prog->stmt[i]->assign[k];
            bool met = false;

            for (int j = 0; j < k; j++)
                met = met || (b->prog->stmt[i]->assign[j].out == a->out &&
                              b->prog->stmt[i]->assign[j].value == a->value);
            n += !met;
        }
    return n;
}

/* Differentiating fails with this status, and this in the message. */
static inline void grad_fails(const char *text, const GradOptions *o, Status code, const char *part)
{
    Prog *(*const mode[])(Arena *, const Prog *, const GradOptions *) = { grad_reverse,
                                                                          grad_forward };

    for (int i = 0; i < 2; i++) {
        Bed b;
        Status got;

        bed_open(&b, text);
        got = CATCH(&b.err, mode[i](&b.arena, b.prog, o));
        CHECK_HAS(b.err.msg, part);
        CHECK_EQ(got, code);
        bed_close(&b);
    }
}

#endif
