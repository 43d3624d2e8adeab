/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program beside its two derivatives: binds and runs all three, and tests what holds for any
 * derivative: its text, its pruning, and that the two modes are each other's transpose. */
#include "grad/grad_test.h"

#include "interp/interp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Noreturn void test_wrong(Tester *t, const char *fmt, ...)
{
    char why[900];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    err_throw(t->arena->err, ST_RUN, "%s", why);
}

bool is_wrt(const Buf *b)
{
    return b->kind == B_ARG && !b->written && ir_type[b->type].floats;
}

bool is_of(const Buf *b)
{
    return b->written && b->kind != B_TEMP && ir_type[b->type].floats;
}

const Array *item_of(const Data *d, const char *name)
{
    for (int i = 0; d != NULL && i < d->n; i++)
        if (!d->item[i].is_size && strcmp(d->item[i].name, name) == 0)
            return &d->item[i].array;
    return NULL;
}

static const char *join(Arena *a, const char *prefix, const char *name)
{
    Text t = { .arena = a };

    text_f(&t, "%s%s", prefix, name);
    return t.s;
}

const Array *array_of(const Prog *p, const Env *env, const char *prefix, const char *name)
{
    const Buf *b = ir_find_buf(p, join(p->arena, prefix, name));

    return b == NULL || env->buf[b->id].data == NULL ? NULL : &env->buf[b->id];
}

Env *sample_run(Tester *t, const Sample *s, const Data *v, double h)
{
    Env *env = data_bind(t->arena, s->in, s->prog);

    for (int i = 0; v != NULL && i < s->prog->nbuf; i++) {
        const Array *dir = item_of(v, s->prog->buf[i]->name);

        for (int64_t k = 0; dir != NULL && k < dir->n; k++)
            array_set(&env->buf[i], k, 0, array_float(&env->buf[i], k) + h * array_float(dir, k));
    }
    interp_run(t->arena, s->prog, env);
    return env;
}

/* d_, d2_, ...: the one that all of the new program's names of this letter have. */
static const char *prefix_of(Tester *t, const Prog *p, const Prog *derivative, char letter)
{
    for (int k = 1; k < 10; k++) {
        Text pre = { .arena = t->arena };

        text_char(&pre, letter);
        if (k > 1)
            text_f(&pre, "%d", k);
        text_char(&pre, '_');
        for (int i = 0; i < p->nbuf; i++) {
            const char *name = join(t->arena, pre.s, p->buf[i]->name);

            if ((letter == 'd' ? is_wrt(p->buf[i]) : is_of(p->buf[i])) &&
                ir_find_buf(derivative, name) != NULL && ir_find_buf(p, name) == NULL)
                return pre.s;
        }
    }
    test_wrong(t, "no name of the derivative begins with %c", letter);
}

static void add_all(Arena *a, Data *to, const Data *from)
{
    for (int i = 0; i < from->n; i++)
        if (from->item[i].is_size)
            data_size(a, to, from->item[i].name, from->item[i].size);
        else
            data_array(a, to, from->item[i].name, from->item[i].array);
}

/* A built axis without parent has its number of entries as a new size of the derivative. */
static void add_built_sizes(Tester *t, Dual *d)
{
    const Prog *p = d->s.prog;

    for (int i = 0; i < p->naxis; i++) {
        const Axis *x = p->axis[i], *y;

        if (x->extent != X_BUILT || x->parent != NULL)
            continue;
        y = ir_find_axis(d->reverse, x->name);
        y = y != NULL ? y : ir_find_axis(d->forward, x->name);
        if (y != NULL)
            data_size(t->arena, d->known, y->size->size->name, d->env->coord[i][0].n);
    }
}

static void log_program(Tester *t, const char *title, Prog *p)
{
    text_f(&t->log, "---- %s\n", title);
    ir_print(&t->log, p);
}

void dual_init(Tester *t, Dual *d, Sample s)
{
    *d = (Dual){ .s = s, .known = arena_alloc(t->arena, sizeof *d->known) };
    t->log.n = 0;
    log_program(t, "program", s.prog);
    d->env = sample_run(t, &s, NULL, 0);
    d->reverse = grad_reverse(t->arena, s.prog, &(GradOptions){ 0 });
    log_program(t, "reverse", d->reverse);
    d->forward = grad_forward(t->arena, s.prog, &(GradOptions){ 0 });
    log_program(t, "forward", d->forward);
    d->d = prefix_of(t, s.prog, d->reverse, 'd');
    d->t = prefix_of(t, s.prog, d->forward, 't');
    add_all(t->arena, d->known, s.in); /* first, for the first content of inout buffers */
    add_all(t->arena, d->known, data_of_env(t->arena, s.prog, d->env));
    add_built_sizes(t, d);
}

/* One array for each chosen buffer, drawn; zeros for all but one of them when only one counts. */
static Data *draw_like(Tester *t, const Dual *d, bool (*chosen)(const Buf *), Draw *draw,
                       bool one_buffer)
{
    const Prog *p = d->s.prog;
    Data *out = arena_alloc(t->arena, sizeof *out);
    int n = 0, only;

    for (int i = 0; i < p->nbuf; i++)
        n += chosen(p->buf[i]);
    only = rng_int(&t->rng, 0, n > 0 ? n - 1 : 0);
    for (int i = 0; i < p->nbuf; i++) {
        Array a = array_new(t->arena, p->buf[i]->type, d->env->buf[i].n);

        if (!chosen(p->buf[i]))
            continue;
        for (int64_t k = 0; k < a.n && (!one_buffer || only == 0); k++)
            array_set(&a, k, 0, draw(&t->rng));
        data_array(t->arena, out, p->buf[i]->name, a);
        only--;
    }
    return out;
}

static const Env *run_derivative(Tester *t, const Dual *d, const Prog *p, const char *prefix,
                                 const Data *given)
{
    Data *in = arena_alloc(t->arena, sizeof *in);
    Env *env;

    add_all(t->arena, in, d->known);
    for (int i = 0; i < given->n; i++)
        data_array(t->arena, in, join(t->arena, prefix, given->item[i].name), given->item[i].array);
    for (int i = 0; i < d->s.prog->nbuf; i++) /* a first content that was not given a tangent */
        if (d->s.prog->buf[i]->kind == B_INOUT)
            data_array(t->arena, in, join(t->arena, prefix, d->s.prog->buf[i]->name),
                       array_new(t->arena, d->s.prog->buf[i]->type, d->env->buf[i].n));
    env = data_bind(t->arena, in, p);
    interp_run(t->arena, p, env);
    return env;
}

void dual_run(Tester *t, Dual *d, Draw *draw, bool one_buffer)
{
    d->v = draw_like(t, d, is_wrt, draw, one_buffer);
    d->w = draw_like(t, d, is_of, draw, one_buffer);
    d->vjp = run_derivative(t, d, d->reverse, d->d, d->w);
    d->jvp = run_derivative(t, d, d->forward, d->t, d->v);
}

static bool is_inout(const Buf *b)
{
    return b->kind == B_INOUT && ir_type[b->type].floats;
}

void dual_move_inout(Tester *t, Dual *d, Draw *draw)
{
    add_all(t->arena, d->v, draw_like(t, d, is_inout, draw, false));
    d->jvp = run_derivative(t, d, d->forward, d->t, d->v);
}

/* The product of given and found arrays; adds its absolute value to *size. */
static double dot(Tester *t, const Data *given, const Prog *p, const Env *env, const char *prefix,
                  double *size)
{
    double sum = 0;

    for (int i = 0; i < given->n; i++) {
        const Array *a = &given->item[i].array, *b = array_of(p, env, prefix, given->item[i].name);

        if (b == NULL || b->n != a->n)
            test_wrong(t, "%s%s has %lld elements, not %lld", prefix, given->item[i].name,
                       b == NULL ? -1LL : (long long)b->n, (long long)a->n);
        for (int64_t k = 0; k < a->n; k++) {
            double x = array_float(a, k) * array_float(b, k);

            sum += x;
            *size += fabs(x);
        }
    }
    return sum;
}

static double norm(const Data *d)
{
    double sum = 0;

    for (int i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->item[i].array.n; k++)
            sum += fabs(array_float(&d->item[i].array, k));
    return sum;
}

void dual_check_adjoint(Tester *t, Dual *d, double tol)
{
    double size = norm(d->v) * norm(d->w) / 100; /* an entry of J may be a sum that cancels */
    double jv = dot(t, d->w, d->forward, d->jvp, d->t, &size);
    double jw = dot(t, d->v, d->reverse, d->vjp, d->d, &size);

    if (!isfinite(size))
        test_wrong(t, "the derivative is not finite");
    if (!(fabs(jv - jw) <= tol * size))
        test_wrong(t, "<J v, w> is %.17g, but <v, J' w> is %.17g", jv, jw);
}

Sample dual_next(Tester *t, const Dual *d, Draw *draw)
{
    Sample s = { .prog = d->reverse, .in = arena_alloc(t->arena, sizeof *s.in) };
    const Data *w = draw_like(t, d, is_of, draw, false);

    add_all(t->arena, s.in, d->known);
    for (int i = 0; i < w->n; i++)
        data_array(t->arena, s.in, join(t->arena, d->d, w->item[i].name), w->item[i].array);
    return s;
}

typedef struct Alive { /* what the statements and the buffers mention */
    bool *buf, *axis, *size;
    Prog *p;
    Memo met;
} Alive;

static void mention(Expr *e, void *ctx);

static void mention_expr(Alive *m, Expr *e)
{
    if (e != NULL)
        ir_visit(m->p, e, mention, m, &m->met);
}

static void mention_axis(Alive *m, const Axis *a)
{
    for (; a != NULL && !m->axis[a->id]; a = a->parent) {
        m->axis[a->id] = true;
        mention_expr(m, a->size);
        for (int k = 0; k < a->ncoord; k++) {
            mention_expr(m, a->coord[k].expr);
            mention_expr(m, a->coord[k].bound);
        }
    }
}

static void mention(Expr *e, void *ctx)
{
    Alive *m = ctx;

    if (e->op == OP_size)
        m->size[e->size->id] = true;
    if (e->op == OP_count)
        mention_axis(m, e->axis);
    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc)
        mention_axis(m, e->var->axis);
    if (e->op == OP_load) {
        m->buf[e->buf->id] = true;
        for (int k = 0; k < e->buf->nfull; k++)
            mention_axis(m, e->buf->full[k]);
    }
}

static void mention_stmt(Alive *m, const Stmt *s)
{
    for (int k = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];

        mention_expr(m, a->value);
        mention_expr(m, a->guard);
        for (int i = 0; i < a->out->nargs; i++)
            mention_expr(m, a->out->arg[i]);
        if (a->nat > 0) /* its value may serve the companions alone */
            mention_expr(m, a->out);
        for (int i = 0; i < a->nat; i++)
            mention_expr(m, a->at[i].value);
    }
    for (int k = 0; k < s->nbind; k++) {
        mention_axis(m, s->bind[k]->axis);
        mention_expr(m, s->bind[k]->parent);
    }
}

/* Every declaration is needed, and every temporary is read. */
static void check_pruned(Tester *t, Prog *p)
{
    Alive m = { .p = p,
                .buf = arena_array(t->arena, p->nbuf, 1),
                .axis = arena_array(t->arena, p->naxis, 1),
                .size = arena_array(t->arena, p->nsize, 1) };

    for (int i = 0; i < p->nstmt; i++)
        mention_stmt(&m, p->stmt[i]);
    for (int i = 0; i < p->nbuf; i++) {
        bool output = p->buf[i]->written && p->buf[i]->kind != B_TEMP;

        if (!m.buf[i] && !output)
            test_wrong(t, "%s is declared and not needed", p->buf[i]->name);
        for (int k = 0; k < p->buf[i]->nfull; k++)
            mention_axis(&m, p->buf[i]->full[k]);
    }
    for (int i = 0; i < p->naxis; i++)
        if (!m.axis[i] && p->axis[i]->name != NULL)
            test_wrong(t, "axis %s is declared and not needed", p->axis[i]->name);
    for (int i = 0; i < p->nsize; i++)
        if (!m.size[i])
            test_wrong(t, "size %s is declared and not needed", p->size[i]->name);
}

static const char *text_of(Tester *t, Prog *p)
{
    Text text = { .arena = t->arena };

    ir_print(&text, p);
    return text.s;
}

/* The text is a fixed point; gives the program that is read from it. */
static Prog *check_text(Tester *t, Prog *p)
{
    const char *text = text_of(t, p);
    Prog *q = ir_parse(t->arena, "printed", text, strlen(text));

    ir_check(q);
    if (strcmp(text, text_of(t, q)) != 0 || !ir_equal(p, q))
        test_wrong(t, "the text is not a fixed point:\n%s", text_of(t, q));
    check_pruned(t, p);
    return q;
}

/* Through a pipe as without: the next derivative has the same text. */
void dual_check_text(Tester *t, Dual *d)
{
    Prog *read = check_text(t, d->reverse);
    GradOptions none = { 0 };

    check_text(t, d->forward);
    if (sample_is_of_use(&(Sample){ read, NULL }) &&
        strcmp(text_of(t, grad_reverse(t->arena, read, &none)),
               text_of(t, grad_reverse(t->arena, d->reverse, &none))) != 0)
        test_wrong(t, "the derivative of the text is not that of the program");
}
