/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random programs and their gradients, with what the interpreter makes of them. */
#include "grad/grad.h"
#include "interp/interp.h"
#include "kernel/kernel_test.h"
#include "sched/sched.h"
#include "unit/trap.h"

#include <string.h>

static const char *copy_text(Arena *a, const char *s)
{
    return arena_copy(a, s, strlen(s) + 1);
}

/* Structure that is i32 in the data is read as such. */
static void narrow(Prog *p, const Env *env)
{
    int naxis = p->naxis;

    for (int i = 0; i < naxis; i++) {
        Axis *a = p->axis[i];

        if (a->extent == X_SEG && env->start[i].type == T_i32)
            lower_narrow(p, a, -1);
        for (int k = 0; k < a->ncoord; k++)
            if (a->coord[k].kind == C_LOAD && env->coord[i][k].type == T_i32)
                lower_narrow(p, a, k);
    }
}

/* Of three programs in four with random fields. */
static Policy policy_of(Arena *a, const VectorUnit *unit, uint64_t seed)
{
    Sched sched = sched_default(unit);

    if (seed % 4 != 0)
        sched_parse(a->err, random_sets(a, &sched.policy, seed), &sched);
    return sched.policy;
}

/* As the pipeline does after every pass. */
static void after_pass(Kernel *k)
{
    loop_settle(k->p, k->phase, k->n);
    k->p->phase = k->phase;
    k->p->nphase = k->n;
    ir_check(k->p);
}

#define RUN(pass, ...) (pass(__VA_ARGS__), after_pass(k))

/* The last passes that CPUs alone run. */
static void lower_for_cpu(const Subject *s, Kernel *k, const VectorUnit *unit)
{
    if (lanes_of(unit, T_f32) > 1 && s->seed % 11 != 1)
        RUN(lower_vectorize_outer, k, unit);
    if (s->seed % 7 != 0)
        RUN(lower_fuse_rows, k);
    RUN(lower_prefetch_gathers, k, s->seed % 2 == 0 ? 4096 : 64);
    RUN(lower_prefetch_rows, k, s->seed % 2 == 0 ? 64 : 0);
    if (s->seed % 3 == 1)
        RUN(lower_stream, k, s->seed % 2 == 0 ? 1 : 256);
    if (s->seed % 3 != 0)
        RUN(lower_jam, k);
}

/* In the passes that re-associate, only exact data keep their bits. */
static void lower(Arena *a, Subject *s, const Subjects *all, const char *prefix)
{
    static const int lines[] = { 0, 8, 0, 0, 30, 0 };
    VectorUnit unit = all->unit;
    bool vectors = lanes_of(&unit, T_f32) > 1;
    Kernel *k;
    Text t = { .arena = a };

    unit.registers = 6 << s->seed % 4;
    s->prog->policy = policy_of(a, &unit, s->seed);
    if (s->seed % 3 != 0)
        narrow(s->prog, data_bind(a, s->in, s->prog));
    strides_set(a, s);
    if (s->seed % 17 != 0)
        lower_products(s->prog, 2);
    if (s->seed % 5 != 0) /* keeps the order of every sum */
        lower_transpose(s->prog);
    if (s->seed % 17 != 0)
        lower_relayout(s->prog);
    k = lower_positions(s->prog);
    after_pass(k);
    RUN(lower_unroll, k);
    if ((s->exact || s->tolerance > 0) && s->seed % 37 != 0)
        RUN(lower_fuse_entries, k);
    if ((s->exact || s->tolerance > 0) && s->seed % 11 != 0)
        RUN(lower_split_sums, k);
    RUN(lower_flatten, k);
    RUN(lower_unroll, k);
    if (s->seed % 7 != 0)
        RUN(lower_hoist, k);
    if (s->seed % 13 != 0) {
        RUN(lower_gallop, k);
        RUN(lower_hash, k);
    }
    if (s->exact || s->tolerance > 0) {
        LowerTile how = { .unit = &unit,
                          .registers = 4 << s->seed % 3,
                          .sweep = (const int[]){ 8, 0, 1, 3 }[s->seed / 4 % 4] };

        if (s->seed % 13 != 0)
            RUN(lower_fuse_sums, k);
        if (vectors && s->seed % 29 != 0)
            RUN(lower_factor, k, how);
        if (vectors && s->seed % 17 != 0)
            RUN(lower_accumulate, k, how);
        if (s->seed % 29 != 0)
            RUN(lower_accumulate_outer, k);
        RUN(lower_init, k);
        if (s->seed % 13 != 0 && !all->device)
            RUN(lower_batch, k, &unit);
        if (s->seed % 23 != 0)
            RUN(lower_block_rows, k, how);
        if (!all->device)
            RUN(lower_panel, k, s->seed % 4 == 1 ? 8 : s->seed % 4 == 2 ? 3 : 0, s->seed % 5 != 0);
        if (vectors)
            RUN(lower_vectorize, k, &unit);
        if (s->seed % 5 != 1)
            RUN(lower_fuse_straight, k);
        RUN(lower_combine, k);
        if (!all->device)
            lower_for_cpu(s, k, &unit);
    }
    RUN(lower_init, k); /* if no pass did above */
    if ((s->exact || s->tolerance > 0) && s->seed % 3 == 2) /* of exact data nothing is lost */
        RUN(lower_compensate, k, &unit);
    RUN(lower_cse, k);
    if (all->device)
        RUN(lower_barriers, k);
    for (int i = 0; i < k->n && all->plant != NULL; i++) {
        Memo memo = { 0 };

        k->phase[i] = loop_rewrite(s->prog, k->phase[i], all->plant, NULL, &memo);
    }
    for (int i = 0; i < k->n && all->device != NULL; i++)
        if (loop_builds(k->phase[i]) != NULL)
            ir_throw(s->prog, ST_LIMIT, "%s is a built axis", loop_builds(k->phase[i])->name);
    s->kernel = emit_functions_cut(&t, all->device ? all->device->dialect : &emit_dialect_c, s->prog, k->phase, k->n, prefix,
                                   lines[s->seed % 6]);
    s->source = t.s;
}

static void interpret(Arena *a, Subject *s)
{
    s->want = data_bind(a, s->in, s->prog);
    s->status = CATCH(a->err, interp_run(a, s->prog, s->want));
    s->error = s->status == ST_OK ? "" : copy_text(a, a->err->msg);
    err_clear(a->err);
}

static bool is_function(Expr *e, const void *ctx)
{
    (void)ctx;
    return e->op >= OP_exp && e->op <= OP_silu;
}

static bool calls(const Prog *p)
{
    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            if (ir_any((Prog *)p, p->stmt[i]->assign[k].value, is_function, NULL))
                return true;
    return false;
}

/* The functions of a device are not those of the C library: they differ by a few units in the last
 * place. */
enum { LAST_PLACES = 64 };

void subject_add(Arena *a, Subjects *all, Subject s)
{
    Text prefix = { .arena = a };

    if (all->device && calls(s.prog))
        s.functions = LAST_PLACES * 0x1p-53;

    text_f(&prefix, "k%d", all->n);
    strides_repeat(a, &s);
    interpret(a, &s);
    if (CATCH(a->err, lower(a, &s, all, prefix.s)) != ST_OK) {
        if (a->err->code != ST_LIMIT)
            err_jump(a->err);
        s.kernel = NULL;
        s.why = copy_text(a, a->err->msg);
        err_clear(a->err);
    }
    all->s = arena_grow(a, all->s, all->n, &all->cap, sizeof *all->s);
    all->s[all->n++] = s;
}

/* Small integers for what a gradient reads beyond the arrays of its program. */
static void draw_rest(Arena *a, Subject *s, Rng *r)
{
    Env *env = data_bind(a, s->in, s->prog);

    interp_check(a, s->prog, env);
    for (int i = 0; i < s->prog->nbuf; i++) {
        const Buf *b = s->prog->buf[i];
        Layout l;
        Array x;

        if (env->buf[i].data != NULL || b->kind == B_CONST || b->kind == B_TEMP ||
            (b->written && b->kind != B_INOUT))
            continue;
        ir_layout(a, s->prog, env, b, &l);
        x = array_new(a, b->type, l.n);
        for (int64_t k = 0; k < l.n; k++)
            array_set(&x, k, 0, rng_int(r, -2, 2));
        data_array(a, s->in, b->name, x);
    }
}

/* A built axis without parent has its number of entries as a new size of the gradient. */
static void add_built_sizes(Arena *a, Subject *s, const Subject *of)
{
    for (int i = 0; i < of->prog->naxis; i++) {
        const Axis *x = of->prog->axis[i], *y;

        if (x->extent != X_BUILT || x->parent != NULL)
            continue;
        y = ir_find_axis(s->prog, x->name);
        if (y != NULL)
            data_size(a, s->in, y->size->size->name, of->want->coord[i][0].n);
    }
}

static void add_gradient(Arena *a, Subjects *all, const Subject *of, bool exact)
{
    Subject s = { .seed = of->seed,
                  .name = of->name,
                  .gradient = true,
                  .exact = exact,
                  .tolerance = of->tolerance };
    Rng r = { of->seed };
    Text t = { .arena = a };

    if (CATCH(a->err, s.prog = grad_reverse(a, of->prog, &(GradOptions){ 0 })) != ST_OK) {
        if (a->err->code == ST_RUN || a->err->code == ST_NOMEM)
            err_jump(a->err);
        err_clear(a->err);
        return;
    }
    s.in = data_of_env(a, of->prog, of->want);
    add_built_sizes(a, &s, of);
    draw_rest(a, &s, &r);
    ir_print(&t, s.prog);
    s.text = t.s;
    subject_add(a, all, s);
}

void subject_and_gradient(Arena *a, Subjects *all, Subject s, bool exact_gradient)
{
    Prog *copy = ir_copy(a, s.prog); /* without what the lowering will add */

    subject_add(a, all, s);
    s = all->s[all->n - 1];
    s.prog = copy;
    if (s.status == ST_OK)
        add_gradient(a, all, &s, exact_gradient);
}

void subject_random(Arena *a, Subjects *all, uint64_t seed)
{
    Knobs knobs = { .exact = seed % 4 != 3,
                    .poly = seed % 4 == 0,
                    .stmts = seed % 8 > 5 ? 2 : 0,
                    .no_built = seed % 9 > 3 };
    Case *c = gen_case(a, seed, &knobs);

    subject_and_gradient(
        a, all,
        (Subject){
            .seed = seed, .exact = knobs.exact, .prog = c->prog, .text = c->text, .in = c->data },
        knobs.poly);
}
