/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/format/apply.c: programs over every format against the program as it was, interpreted before
 * and after all passes.  Data are small integers, so that every order of a sum gives the same. */
#include "unit/format_bed.h"

#include "api/api_int.h"
#include "interp/interp.h"
#include "random/random.h"

static const char rows_of_entries[] = "axis I = m, E(I) = seg : j < n, K = f\n";

/* Programs over entries e of rows i, with columns j(e). */
static const char *const over_rows[] = {
    "f64 A[E], B[n, K], C[I, K]\n"
    "c: C[i, k] += A[e] * B[j(e), k]\n",

    "f64 A[E], X[m, K], Y[n, K], S[E]; temp f64 D[E]\n"
    "d: D[e] += X[i, k] * Y[j(e), k]\n"
    "s: S[e] = D[e] * A[e]\n",

    "f64 A[E], X[I], Y[n]\n"
    "y: Y[j(e)] += A[e] * X[i]\n",

    "f64 A[E], M[I]\n"
    "m: M[i] max= A[e]\n",

    "f64 A[E], P[E], V[n, K], C[I, K]; temp f64 M[I], D[E], Z[I]\n"
    "m: M[i] max= A[e]\n"
    "d: D[e] = M[i] - A[e] + 1\n"
    "z: Z[i] += D[e]\n"
    "p: P[e] = D[e] * Z[i]\n"
    "c: C[i, k] += P[e] * V[j(e), k]\n",

    "f64 A[E], W[E], B[n, K], C[I, K]\n"
    "c: C[i, k] += A[e] * W[e] * B[j(e), k]\n",

    "f64 A[E, K], B[n, K], C[I, K]; i64 deg[I]\n"
    "c: C[i, k] += A[e, k] * B[j(e), k]\n"
    "n: for i, e: deg[i] += 1\n",

    "f64 A[E], X[n], S[I], Q[I]\n"
    "for i, e:\n"
    "    let t = A[e] * X[j(e)]\n"
    "    s: S[i] += t if i != j(e)\n"
    "    q: Q[i] += t * t\n",

    "f64 A[E], C[n, n]\n"
    "c: for i, e, g in E(i): C[j(e), j(g)] += A[e] * A[g]\n",
};

static const char rows_without_names[] = "axis I = m, E = compressed(I, n), K = f\n";

static const char *const over_rows_without_names[] = {
    "f64 A[I, E], B[n, K], C[I, K], Y[n]\n"
    "c: C[i, k] += A[i, e] * B[e, k]\n"
    "y: Y[e] += A[i, e]\n",
};

static const char of_pairs[] = "axis E = nnz : i < m, j < n, K = f\n";

static const char *const over_pairs[] = {
    "f64 A[E], B[n, K], C[m, K]\n"
    "c: C[i(e), k] += A[e] * B[j(e), k]\n",

    "f64 X[m, K], Y[n, K], S[E]\n"
    "s: S[e] += X[i(e), k] * Y[j(e), k]\n",
};

static const char of_relations[] = "axis R = q, I(R) = m, E(I) = seg : j < n, K = f\n";

static const char *const over_relations[] = {
    "f64 A[E], W[R], B[n, K], C[m, K]\n"
    "c: C[i, k] += A[e] * W[r] * B[j(e), k]\n",
};

typedef struct Bed {
    Err err;
    Arena arena, scratch;
    Prog *prog;
    Env *env;
    uint64_t *seed;
} Bed;

static void open_bed(Bed *b, const char *axes, const char *body, uint64_t *seed)
{
    Text t;

    memset(b, 0, sizeof *b);
    b->seed = seed;
    arena_init(&b->arena, &os_libc, &b->err);
    arena_init(&b->scratch, &os_libc, &b->err);
    t = (Text){ .arena = &b->arena };
    CHECK_EQ(CATCH(&b->err, text_f(&t, "program p(%s)\n%s%s",
                                   axes == of_pairs        ? "m, n, f, nnz"
                                   : axes == of_relations ? "m, n, f, q"
                                                          : "m, n, f",
                                   axes, body)),
             ST_OK);
    if (CATCH(&b->err, b->prog = ir_parse(&b->arena, "test", t.s, t.n); ir_check(b->prog);
              b->env = ir_env(&b->arena, b->prog)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b->err.msg, t.s);
}

static void close_bed(Bed *b)
{
    arena_free(&b->arena);
    arena_free(&b->scratch);
}

static void set_size(Bed *b, const char *name, int64_t v)
{
    Size *s = ir_find_size(b->prog, name);

    if (s != NULL)
        b->env->size[s->id] = v;
}

/* Integers, in 32 bits or in 64. */
static Array ints(Bed *b, const int64_t *from, int64_t n, bool wide)
{
    Array a = { arena_array(&b->arena, n, 8), n, wide ? T_i64 : T_i32 };

    for (int64_t x = 0; x < n; x++)
        if (wide)
            ((int64_t *)a.data)[x] = from[x];
        else
            ((int32_t *)a.data)[x] = (int32_t)from[x];
    return a;
}

/* Entries in rows, numbered by all coordinates but the last. */
static void bind_rows(Bed *b, const Entries *m, bool wide)
{
    Axis *e = ir_find_axis(b->prog, "E");
    int64_t rows = 1, *start, *col, n = m->e.n;

    for (int k = 0; k + 1 < m->e.ncoord; k++)
        rows *= m->e.bound[k];
    start = arena_array(&b->arena, rows + 1, sizeof *start);
    col = arena_array(&b->arena, n, sizeof *col);
    for (int64_t r = 0, at = 0; r < rows; r++) {
        start[r] = at;
        for (int64_t x = 0; x < n; x++) {
            int64_t row = m->at[0][x];

            for (int k = 1; k + 1 < m->e.ncoord; k++)
                row = row * m->e.bound[k] + m->at[k][x];
            if (row == r)
                col[at++] = m->at[m->e.ncoord - 1][x];
        }
        start[r + 1] = at;
    }
    b->env->start[e->id] = ints(b, start, rows + 1, wide);
    b->env->coord[e->id][0] = ints(b, col, n, wide);
}

static void bind_pairs(Bed *b, const Entries *m, bool wide)
{
    Axis *e = ir_find_axis(b->prog, "E");

    set_size(b, "nnz", m->e.n);
    for (int k = 0; k < 2; k++)
        b->env->coord[e->id][k] = ints(b, m->at[k], m->e.n, wide);
}

/* Small integers in every buffer that is read; the others are empty. */
static void bind_buffers(Bed *b)
{
    for (int i = 0; i < b->prog->nbuf; i++) {
        Buf *buf = b->prog->buf[i];
        Layout layout;
        double *to;

        if (buf->kind == B_TEMP || buf->written)
            continue;
        ir_layout(&b->arena, b->prog, b->env, buf, &layout);
        to = arena_array(&b->arena, layout.n, sizeof *to);
        for (int64_t x = 0; x < layout.n; x++)
            to[x] = (double)(fmt_draw(b->seed, 9) - 4);
        b->env->buf[buf->id] = (Array){ to, layout.n, T_f64 };
    }
}

static void bind_all(Bed *b, const Entries *m, bool pairs)
{
    int n = m->e.ncoord;

    set_size(b, "m", m->e.bound[n - 2]);
    set_size(b, "n", m->e.bound[n - 1]);
    set_size(b, "q", m->e.bound[0]);
    set_size(b, "f", 1 + fmt_draw(b->seed, 3));
    if (pairs)
        bind_pairs(b, m, fmt_draw(b->seed, 2) > 0);
    else
        bind_rows(b, m, fmt_draw(b->seed, 2) > 0);
    interp_check(&b->arena, b->prog, b->env);
    bind_buffers(b);
}

/* The environment of a program that began as a copy of the bed's, its format axes filled. */
static Env *env_of(Bed *b, Prog *p, const FmtPool *pool)
{
    Env *env = ir_env(&b->arena, p);

    memcpy(env->size, b->env->size, (size_t)b->prog->nsize * sizeof *env->size);
    memcpy(env->start, b->env->start, (size_t)b->prog->naxis * sizeof *env->start);
    memcpy(env->coord, b->env->coord, (size_t)b->prog->naxis * sizeof *env->coord);
    for (int i = 0; i < b->prog->nbuf; i++)
        if (!b->prog->buf[i]->written)
            env->buf[i] = b->env->buf[i];
    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from_k == FROM_FORMAT && p->axis[i]->part == 0)
            fmt_fill(&b->arena, &b->scratch, pool, p, env, p->axis[i]);
        else if (p->axis[i]->from != NULL)
            data_made(&b->arena, p, env, p->axis[i], 3);
    return env;
}

static void check_outputs(Bed *b, const Env *want, const Env *got, const char *what)
{
    for (int i = 0; i < b->prog->nbuf; i++) {
        const Buf *buf = b->prog->buf[i];
        const Array *x = &want->buf[i], *y = &got->buf[i];

        if (buf->kind == B_TEMP || !buf->written)
            continue;
        CHECK_EQ(x->n, y->n);
        for (int64_t k = 0; k < x->n; k++)
            if (ir_array_float(x, k) != ir_array_float(y, k))
                test_fail(__FILE__, __LINE__, "%s: %s[%lld]: %g, not %g", what, buf->name,
                          (long long)k, ir_array_float(y, k), ir_array_float(x, k));
    }
}

/* What is printed reads back as the same program. */
static void check_text(Bed *b, Prog *p)
{
    Text t = { .arena = &b->arena }, again = { .arena = &b->arena };

    ir_print(&t, p);
    ir_print(&again, ir_parse(&b->arena, "again", t.s, t.n));
    CHECK_STR(t.s, again.s);
}

static void apply_and_run(Bed *b, const char *spec)
{
    Prog *p = ir_copy(&b->arena, b->prog), *low;
    Env *want = env_of(b, b->prog, NULL), *got;
    const Target *target;
    Aim aim;
    static weft_ctx *ctx;

    interp_run(&b->arena, b->prog, want);
    fmt_apply(p, ir_find_axis(p, "E"), spec);
    ir_check(p);
    check_text(b, p);
    got = env_of(b, p, NULL);
    interp_run(&b->arena, p, got);
    check_outputs(b, want, got, "format");
    ctx = ctx == NULL ? weft_ctx_new() : ctx;
    target = api_find_target(ctx, "c:avx2");
    aim = api_aim(target);
    low = ir_copy(&b->arena, p);
    api_passes(low, &aim);
    got = env_of(b, low, NULL);
    interp_run(&b->arena, low, got);
    check_outputs(b, want, got, "loops");
}

static void try_program(const char *axes, const char *body, int ncoord, uint64_t *seed, int kind)
{
    for (int f = 0; f < NFORMATS; f++) {
        const FormatCase *c = &format_case[f];
        Entries m;
        Bed b;
        char spec[64];

        if (c->ncoord != ncoord)
            continue;
        fmt_spec(c, seed, spec);
        fmt_random(&m, seed, ncoord, kind, c->twice);
        open_bed(&b, axes, body, seed);
        if (CATCH(&b.err, bind_all(&b, &m, axes == of_pairs); apply_and_run(&b, spec)) != ST_OK)
            test_fail(__FILE__, __LINE__, "%s: %s\n%s", spec, b.err.msg, body);
        close_bed(&b);
    }
}

TEST(programs_over_every_format_give_the_same)
{
    uint64_t seed = 3;

    for (int k = 0; k < test_scale(40); k++) {
        for (size_t i = 0; i < sizeof over_rows / sizeof *over_rows; i++)
            try_program(rows_of_entries, over_rows[i], 2, &seed, (3 * k + 4) % 8);
        try_program(rows_without_names, over_rows_without_names[0], 2, &seed, (3 * k + 4) % 8);
        for (size_t i = 0; i < sizeof over_pairs / sizeof *over_pairs; i++)
            try_program(of_pairs, over_pairs[i], 2, &seed, (3 * k + 4) % 8);
        for (size_t i = 0; i < sizeof over_relations / sizeof *over_relations; i++)
            try_program(of_relations, over_relations[i], 3, &seed, (3 * k + 4) % 8);
    }
}

static void refuses(const char *axes, const char *body, const char *spec, const char *why)
{
    uint64_t seed = 6;
    Bed b;

    open_bed(&b, axes, body, &seed);
    CHECK_EQ(CATCH(&b.err, fmt_apply(b.prog, ir_find_axis(b.prog, "E"), spec)), ST_CHECK);
    CHECK_HAS(b.err.msg, why);
    close_bed(&b);
}

TEST(a_statement_that_needs_more_than_a_format_keeps_is_refused)
{
    refuses(rows_of_entries, "f64 A[E], M[I]; i64 W[I]\nm: M[i] max= A[e] at W[i] = pos(e)\n",
            "csr()", "m: over axis E as csr: which of equal values wins depends on the order");
    refuses(rows_of_entries, "f64 A[E], S[E]\ns: S[e] = A[e] * loc(e)\n", "ell(0)",
            "s: over axis E as ell: the format does not keep what is asked of variable e");
    refuses("axis I = m, E(I) = seg : j < n, U(I) = built : load < n\n",
            "f64 S[I, U]\nu: U(i) |= j(e)\ns: S[i, j(e)] += 1\n", "csr()",
            "u: over axis E as csr: a statement that inserts");
    refuses("axis I = f : load < m sorted unique, E(I) = seg : j < n\n",
            "f64 A[E], S[I]\ns: S[i] += A[e]\n", "csr()",
            "s: over axis E as csr: the format does not keep the positions of axis I");
    refuses("axis I = m, E(I) = seg : j\n", "f64 A[E], S[I]\ns: S[i] += A[e]\n", "csr()",
            "a format needs the bound of each coordinate");
    refuses(rows_of_entries, "f64 A[E], S[I]\ns: S[i] = 1.0\n", "csr()",
            "no statement runs over the entries of axis E");
    refuses("axis I = m, E(I) = 4 : j = e + i < n padded\n", "f64 A[E], S[I]\ns: S[i] += A[e]\n",
            "csr()", "a format takes entries whose coordinates are stored, and those of E are not");
    refuses(rows_of_entries, "f64 A[E], S[I]\ns: S[i] += A[e]\n",
            "f() { axis I = m, E(I) = 9000000000000000000 * 9 : j < n padded; map e = rank(i) }",
            "a number that is too large");
    refuses(rows_of_entries, "f64 A[E], S[I]\ns: S[i] += A[e]\n",
            "f(z = 0) { axis I = m, E(I) = 9 / (z + 1) - 8 % z : j < n padded; map e = rank(i) }",
            "divides by zero");
    refuses(rows_of_entries, "f64 A[E], S[I]\ns: S[i] += A[e]\n", "csf()",
            "format csf is for entries with 3 coordinates, but those of E have 2");
}
