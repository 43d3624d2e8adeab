/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random programs made fit for differences.  Real ones: every float an f64, functions kept inside
 * their domain, `stop` taken out (differences do not see it), data of order one. */
#include "grad/grad_test.h"

#include <math.h>
#include <string.h>

double draw_real(Rng *r)
{
    double x = 0.25 + (double)(rng_bits(r) >> 11) * 0x1p-53;

    return rng_p(r, 50) ? x : -x;
}

double draw_small(Rng *r)
{
    return rng_int(r, -2, 2);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The text with f64 for every floating-point type. */
static const char *all_f64(Arena *a, const char *s)
{
    Text t = { .arena = a };

    while (*s != 0) {
        size_t n = 1;

        while (is_word(s[0]) && is_word(s[n]))
            n++;
        if ((n == 3 && (memcmp(s, "f32", n) == 0 || memcmp(s, "f16", n) == 0)) ||
            (n == 4 && memcmp(s, "bf16", n) == 0))
            text_str(&t, "f64");
        else
            text_put(&t, s, n);
        s += n;
    }
    return t.s;
}

static bool is_mild(double v)
{
    return fabs(v) <= 4 && (v == 0 || fabs(v) >= 1e-3);
}

/* a * a + 1/2 */
static Expr *positive(Prog *p, Expr *a)
{
    return ir_op2(p, OP_add, ir_op2(p, OP_mul, a, a), ir_real(p, 0.5));
}

static Expr *tame_node(Prog *p, Expr *e, void *ctx)
{
    (void)ctx;
    switch (e->op) {
    case OP_real: return is_mild(e->f) ? e : ir_real(p, 0.75);
    case OP_stop: return e->arg[0];
    case OP_exp: return ir_op1(p, OP_exp, ir_op1(p, OP_sin, e->arg[0]));
    case OP_log:
    case OP_sqrt:
    case OP_rsqrt: return ir_op1(p, (Op)e->op, positive(p, e->arg[0]));
    case OP_div: return e->type == T_i64 ? e : ir_op2(p, OP_div, e->arg[0], positive(p, e->arg[1]));
    default: return e;
    }
}

/* The derivative of max= and min= into inout is not defined; an empty one is not finite. */
static void tame_max(const Assign *a)
{
    Buf *b = a->op == A_MAX || a->op == A_MIN ? a->out->buf : NULL;

    if (b == NULL || !ir_type[b->type].floats)
        return;
    b->has_fill = true;
    if (b->kind == B_INOUT)
        b->kind = B_ARG;
}

static void tame_constants(Prog *p)
{
    for (int i = 0; i < p->nbuf; i++) {
        Buf *b = p->buf[i];
        size_t bytes = (size_t)b->n * sizeof *b->val;
        double *val = b->val == NULL ? NULL : arena_copy(p->arena, b->val, bytes);

        if (!is_mild(b->fill))
            b->fill = 0.75;
        for (int64_t k = 0; val != NULL && k < b->n; k++)
            if (!is_mild(val[k]))
                val[k] = 0.75;
        b->val = val;
    }
}

static Prog *read_again(Arena *a, Prog *p)
{
    Text t = { .arena = a };
    Prog *q;

    ir_print(&t, p);
    q = ir_parse(a, "tame.weft", t.s, t.n);
    ir_check(q);
    return q;
}

Prog *sample_f64(Tester *t, const char *name, const char *text)
{
    const char *s = all_f64(t->arena, text);
    Prog *p = ir_parse(t->arena, name, s, strlen(s));

    ir_check(p);
    return p;
}

static Prog *tame(Tester *t, const char *text)
{
    Prog *p = sample_f64(t, "case.weft", text);
    Memo memo = { 0 };

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++) {
            Assign *as = &p->stmt[i]->assign[k];

            as->value = ir_rewrite(p, as->value, tame_node, NULL, &memo);
            tame_max(as);
            if (as->guard != NULL)
                as->guard = ir_rewrite(p, as->guard, tame_node, NULL, &memo);
        }
    tame_constants(p);
    return read_again(t->arena, p);
}

static Data *all_reals(Tester *t, Data *d)
{
    for (int i = 0; i < d->n; i++) {
        Item *it = &d->item[i];

        if (it->is_size || !ir_type[it->array.type].floats)
            continue;
        it->array = array_new(t->arena, T_f64, it->array.n);
        for (int64_t k = 0; k < it->array.n; k++)
            array_set(&it->array, k, 0, draw_real(&t->rng));
    }
    return d;
}

void sample_redraw(Tester *t, Sample *s)
{
    all_reals(t, s->in);
}

/* What the program declares, of all that was drawn. */
Data *sample_data(Tester *t, const Prog *p, const Data *d)
{
    return data_of_env(t->arena, p, data_bind(t->arena, d, p));
}

/* Something to differentiate, and something to differentiate by. */
bool sample_is_of_use(const Sample *s)
{
    bool wrt = false, of = false;

    for (int i = 0; i < s->prog->nbuf; i++) {
        wrt = wrt || is_wrt(s->prog->buf[i]);
        of = of || is_of(s->prog->buf[i]);
    }
    return wrt && of;
}

bool sample_real(Tester *t, uint64_t seed, const Knobs *knobs, Sample *out)
{
    Case *c = gen_text(t->arena, seed, knobs);

    out->prog = tame(t, c->text);
    out->in = sample_data(t, out->prog, all_reals(t, c->data));
    return sample_is_of_use(out);
}

bool sample_exact(Tester *t, uint64_t seed, Sample *out)
{
    Case *c = gen_case(t->arena, seed, &(Knobs){ .poly = true, .no_max = true, .risk = -1 });

    *out = (Sample){ c->prog, sample_data(t, c->prog, c->data) };
    return sample_is_of_use(out);
}
