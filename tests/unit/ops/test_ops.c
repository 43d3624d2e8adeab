/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * ops/ops.c, ops/sparse.c, api/op.c: every operator of sparse matrices in every form is a
 * program with a meaning and a gradient, and computes what plain loops over a list of entries
 * compute. */
#include "unit/kernel_bed.h"

#include <math.h>

enum { ROWS = 3, COLS = 4, NNZ = 7, F = 3, MANY = 2, ROOM = 2 * 8 * 2 * 3 };

typedef struct Form { /* of a spec */
    const char *op, *type, *format;
    bool turn, heads, batch, values, nodes, arg;
} Form;

static const char *const types[] = { "f64", "f32", "f16", "bf16" };
static const char *const formats[] = { "csr", "csc", "coo" };
static const char *const names[] = { "spmv",         "spmm",        "sddmm",       "segment_sum",
                                     "segment_mean", "segment_max", "segment_min", "softmax" };
enum { NAMES = sizeof names / sizeof *names };

static const char *spec_of(const Form *f, char out[128])
{
    snprintf(out, 128, "%s:%s:%s%s%s%s%s%s%s", f->op, f->type, f->format, f->turn ? ":t" : "",
             f->heads ? ":heads" : "", f->batch ? ":batch" : "", f->values ? ":values" : "",
             f->nodes ? ":nodes" : "", f->arg ? ":arg" : "");
    return out;
}

static bool is_op(const Form *f, const char *op)
{
    return strcmp(f->op, op) == 0;
}

static bool is_segment(const Form *f)
{
    return strncmp(f->op, "segment_", 8) == 0;
}

/* Form number k of an operator; false after the last.  Options that it does not take are left out,
 * so some forms come more than once. */
static bool form_of(int op, int k, int ntype, Form *f)
{
    *f = (Form){ .op = names[op] };
    f->turn = k & 1;
    f->heads = k & 2;
    f->batch = k & 4;
    f->values = (k & 8) && is_op(f, "sddmm");
    f->nodes = (k & 8) && is_segment(f);
    f->arg = (k & 16) && (is_op(f, "segment_max") || is_op(f, "segment_min"));
    f->format = formats[k / 32 % 3];
    f->type = types[k / 96 % 4];
    return k < 96 * ntype;
}

TEST(every_operator_in_every_form_has_a_meaning_and_a_gradient)
{
    char spec[128];
    weft_prog *grad;
    const char *text;
    Form f;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    for (int op = 0; op < NAMES; op++)
        for (int k = 0; form_of(op, k, 4, &f); k++) {
            OK(weft_prog_op(ctx, spec_of(&f, spec), &prog));
            OK(weft_prog_check(prog));
            OK(weft_prog_grad(prog, NULL, &grad));
            OK(weft_prog_check(grad));
            if (k < 96) /* what is lowered does not depend on the type */
                OK(weft_prog_print_after(prog, "flatten", &text));
            weft_prog_free(grad);
            weft_prog_free(prog);
        }
    close_prog();
}

/* Entries, by row; of one row there are none, of another all, and one place has two. */
static const int64_t row_of[NNZ] = { 0, 0, 2, 2, 2, 2, 2 }, col_of[NNZ] = { 3, 0, 1, 0, 2, 3, 1 };

typedef struct Problem {
    const Form *form;
    int64_t i[NNZ], j[NNZ], start[COLS + 2]; /* entries in the order of the format */
    int64_t m, n, h, l;                      /* rows and columns of the operator; or 1 */
    double a[ROOM], x[ROOM], y[ROOM];        /* values, first and second dense operand */
    double want[ROOM], got[ROOM];
    int64_t where[ROOM], which[ROOM];
} Problem;

/* By row for csr, by column for csc, backwards for coo. */
static void place_entries(Problem *p)
{
    bool by_col = strcmp(p->form->format, "csc") == 0, coo = strcmp(p->form->format, "coo") == 0;
    int64_t n = 0, rows = by_col ? COLS : ROWS;

    for (int64_t r = 0; r < rows; r++)
        for (int e = 0; e < NNZ; e++)
            if ((by_col ? col_of : row_of)[e] == r) {
                int64_t at = coo ? NNZ - 1 - n : n;

                p->i[at] = row_of[e];
                p->j[at] = col_of[e];
                p->start[r + 1] = ++n;
            } else if (p->start[r + 1] < n) {
                p->start[r + 1] = n;
            }
    p->m = p->form->turn ? COLS : ROWS;
    p->n = p->form->turn ? ROWS : COLS;
    p->h = p->form->heads ? MANY : 1;
    p->l = p->form->batch ? MANY : 1;
}

static void fill(Problem *p)
{
    uint64_t seed = 1;

    for (int i = 0; i < ROOM; i++) {
        p->a[i] = (double)(test_random(&seed) % 9) - 4;
        p->x[i] = (double)(test_random(&seed) % 9) - 4;
        p->y[i] = (double)(test_random(&seed) % 9) - 4;
        p->got[i] = 99;
        p->which[i] = 99;
    }
}

static int64_t row(const Problem *p, int64_t e)
{
    return p->form->turn ? p->j[e] : p->i[e];
}
static int64_t col(const Problem *p, int64_t e)
{
    return p->form->turn ? p->i[e] : p->j[e];
}

/* The element (l, r, h, k) of an array with n rows and f columns. */
static int64_t at(const Problem *p, int64_t l, int64_t n, int64_t r, int64_t h, int64_t f,
                  int64_t k)
{
    return ((l * n + r) * p->h + h) * f + k;
}

static void reduce(Problem *p, int64_t l, int64_t h, int64_t k)
{
    const Form *f = p->form;
    int64_t count[COLS] = { 0 };

    for (int64_t r = 0; r < p->m; r++) {
        p->want[at(p, l, p->m, r, h, F, k)] = 0;
        p->where[at(p, l, p->m, r, h, F, k)] = -1;
    }
    for (int64_t e = 0; e < NNZ; e++) {
        int64_t o = at(p, l, p->m, row(p, e), h, F, k);
        double v =
            f->nodes ? p->x[at(p, l, p->n, col(p, e), h, F, k)] : p->x[at(p, l, NNZ, e, h, F, k)];
        bool first = count[row(p, e)]++ == 0;

        if (is_op(f, "segment_sum") || is_op(f, "segment_mean"))
            p->want[o] += v;
        else if (first || (is_op(f, "segment_max") ? v > p->want[o] : v < p->want[o])) {
            p->want[o] = v;
            p->where[o] = e;
        }
    }
    for (int64_t r = 0; r < p->m && is_op(f, "segment_mean"); r++)
        p->want[at(p, l, p->m, r, h, F, k)] /= count[r] > 0 ? (double)count[r] : 1;
}

static void soften(Problem *p, int64_t l, int64_t h)
{
    for (int64_t e = 0; e < NNZ; e++) {
        double sum = 0;

        for (int64_t o = 0; o < NNZ; o++)
            if (row(p, o) == row(p, e))
                sum += exp(p->x[at(p, l, NNZ, o, h, 1, 0)]);
        p->want[at(p, l, NNZ, e, h, 1, 0)] = exp(p->x[at(p, l, NNZ, e, h, 1, 0)]) / sum;
    }
}

static void multiply(Problem *p, int64_t l, int64_t h)
{
    int64_t f = is_op(p->form, "spmv") ? 1 : F;

    for (int64_t e = 0; e < NNZ; e++)
        for (int64_t k = 0; k < f; k++) {
            double x = p->x[at(p, l, p->m, row(p, e), h, f, k)];

            if (is_op(p->form, "sddmm"))
                p->want[at(p, l, NNZ, e, h, 1, 0)] += (p->form->values ? p->a[e * p->h + h] : 1) *
                                                      x * p->y[at(p, l, p->n, col(p, e), h, f, k)];
            else
                p->want[at(p, l, p->m, row(p, e), h, f, k)] +=
                    p->a[e * p->h + h] * p->x[at(p, l, p->n, col(p, e), h, f, k)];
        }
}

static void compute(Problem *p)
{
    for (int64_t l = 0; l < p->l; l++)
        for (int64_t h = 0; h < p->h; h++) {
            for (int64_t k = 0; k < F && is_segment(p->form); k++)
                reduce(p, l, h, k);
            if (is_op(p->form, "softmax"))
                soften(p, l, h);
            else if (!is_segment(p->form))
                multiply(p, l, h);
        }
}

/* Binds an array of l * n * h * f elements, with the dimensions that the form has; returns n of
 * all. */
static int64_t put(Problem *p, const char *name, void *data, weft_type type, bool batch, int64_t n,
                   int64_t f)
{
    int64_t shape[4];
    int d = 0;

    if (batch && p->form->batch)
        shape[d++] = MANY;
    shape[d++] = n;
    if (p->form->heads)
        shape[d++] = MANY;
    if (f > 0)
        shape[d++] = f;
    bind(name, data, type, d, shape);
    return (batch ? p->l : 1) * n * p->h * (f > 0 ? f : 1);
}

/* Returns how many elements the output has. */
static int64_t bind_operands(Problem *p)
{
    const Form *f = p->form;

    if (is_op(f, "spmv") || is_op(f, "spmm") || f->values)
        put(p, "A", p->a, WEFT_F64, false, NNZ, 0);
    if (is_op(f, "spmv")) {
        put(p, "X", p->x, WEFT_F64, true, p->n, 0);
        return put(p, "Y", p->got, WEFT_F64, true, p->m, 0);
    }
    if (is_op(f, "spmm")) {
        put(p, "B", p->x, WEFT_F64, true, p->n, F);
        return put(p, "C", p->got, WEFT_F64, true, p->m, F);
    }
    if (is_op(f, "sddmm")) {
        put(p, "X", p->x, WEFT_F64, true, p->m, F);
        put(p, "Y", p->y, WEFT_F64, true, p->n, F);
        return put(p, "Z", p->got, WEFT_F64, true, NNZ, 0);
    }
    if (is_op(f, "softmax")) {
        put(p, "S", p->x, WEFT_F64, true, NNZ, 0);
        return put(p, "P", p->got, WEFT_F64, true, NNZ, 0);
    }
    put(p, "X", p->x, WEFT_F64, true, f->nodes ? p->n : NNZ, F);
    if (f->arg)
        put(p, "W", p->which, WEFT_I64, true, p->m, F);
    return put(p, "Y", p->got, WEFT_F64, true, p->m, F);
}

static void bind_structure(Problem *p)
{
    int64_t rows = strcmp(p->form->format, "csc") == 0 ? COLS : ROWS;
    weft_arg a;
    int n;

    OK(weft_prog_nargs(prog, &n));
    for (int i = 0; i < n; i++) {
        OK(weft_prog_arg(prog, i, &a));
        if (strcmp(a.name, "E.start") == 0)
            bind(a.name, p->start, WEFT_I64, 1, SHAPE(rows + 1));
        if (strcmp(a.name, "E.i") == 0)
            bind(a.name, p->i, WEFT_I64, 1, SHAPE(NNZ));
        if (strcmp(a.name, "E.j") == 0)
            bind(a.name, p->j, WEFT_I64, 1, SHAPE(NNZ));
        if (strcmp(a.name, "m") == 0)
            OK(weft_args_size(args, "m", ROWS));
        if (strcmp(a.name, "n") == 0)
            OK(weft_args_size(args, "n", COLS));
    }
}

static void try_form(const Form *f, bool by_kernel)
{
    static Problem p;
    char spec[128];
    int64_t n;

    p = (Problem){ .form = f };
    place_entries(&p);
    fill(&p);
    compute(&p);
    OK(weft_prog_op(ctx, spec_of(f, spec), &prog));
    OK(weft_args_new(prog, &args));
    bind_structure(&p);
    n = bind_operands(&p);
    if (by_kernel) {
        OK(weft_kernel_compile(prog, &kernel));
        CHECK_STR(info_of(kernel).target, "c");
        OK(weft_kernel_run(kernel, args));
    } else {
        OK(weft_run(args));
    }
    for (int64_t i = 0; i < n; i++) {
        double off = is_op(f, "softmax") ? 1e-15 : 0;

        if (!(fabs(p.got[i] - p.want[i]) <= off) || (f->arg && p.which[i] != p.where[i]))
            test_fail(__FILE__, __LINE__, "%s: element %d is %g, not %g", spec, (int)i, p.got[i],
                      p.want[i]);
    }
    weft_args_free(args);
    weft_prog_free(prog);
}

TEST(every_operator_in_every_form_computes_its_formula)
{
    Form f;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    for (int op = 0; op < NAMES; op++)
        for (int k = 0; form_of(op, k, 1, &f); k++)
            try_form(&f, false);
    close_prog();
}

TEST(kernels_of_operators_compute_their_formulas)
{
    static const Form some[] = {
        { "spmm", "f64", "csr", .heads = true, .batch = true },
        { "spmm", "f64", "csr", .turn = true },
        { "sddmm", "f64", "csc", .values = true },
        { "spmv", "f64", "coo", .batch = true },
        { "segment_mean", "f64", "csr", .nodes = true },
        { "segment_max", "f64", "csr", .arg = true, .turn = true },
        { "softmax", "f64", "csr", .heads = true },
    };

    set_cache();
    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        try_form(&some[i], true);
    close_prog();
}

TEST(the_order_of_options_does_not_matter_and_defaults_need_not_be_said)
{
    const char *text;
    char kept[512];

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_op(ctx, "spmm", &prog));
    OK(weft_prog_print(prog, &text));
    snprintf(kept, sizeof kept, "%s", text);
    CHECK_STR(kept, "program spmm(m, n, f)\naxis I = m, E(I) = seg : j < n\naxis K = f\n"
                    "f32 A[E], B[n, K], C[m, K]\nc: C[i, k] += A[e] * B[j(e), k]\n");
    OK(weft_prog_op(ctx, "spmm:csr:f32", &prog));
    OK(weft_prog_print(prog, &text));
    CHECK_STR(text, kept);
    OK(weft_prog_op(ctx, "spmm:heads:t:coo:bf16", &prog));
    OK(weft_prog_print(prog, &text));
    snprintf(kept, sizeof kept, "%s", text);
    CHECK_HAS(kept, "program spmm_bf16_coo_t_heads(nnz, m, n, heads, f)\n");
    OK(weft_prog_op(ctx, "spmm:bf16:t:coo:heads", &prog));
    OK(weft_prog_print(prog, &text));
    CHECK_STR(text, kept);
    close_prog();
}

TEST(a_size_that_a_spec_fixes_is_a_constant_of_the_program)
{
    const char *text;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_op(ctx, "segment_mean:nodes:f=64:f64:n=7", &prog));
    OK(weft_prog_check(prog));
    OK(weft_prog_print(prog, &text));
    CHECK_HAS(text, "program segment_mean_f64_nodes_n_7_f_64(m)\n");
    CHECK_HAS(text, "axis I = m, E(I) = seg : j < 7\naxis K = 64\nf64 X[7, K], Y[m, K]\n");
    BAD(weft_prog_op(ctx, "spmv:f=3", &prog), WEFT_E_ARG, "spmv has no size f; leave out f=3");
    BAD(weft_prog_op(ctx, "spmm:f=0", &prog), WEFT_E_ARG, "spmm: f=0: give a number from 1");
    BAD(weft_prog_op(ctx, "spmm:f=", &prog), WEFT_E_ARG, "spmm: f=: give a number from 1");
    BAD(weft_prog_op(ctx, "spmm:f=1e3", &prog), WEFT_E_ARG, "spmm: f=1e3: give a number");
    BAD(weft_prog_op(ctx, "spmm:f=9999999999", &prog), WEFT_E_ARG, "to 999999999");
    BAD(weft_prog_op(ctx, "spmm:f=3:f=3", &prog), WEFT_E_ARG, "the size f is given twice");
    BAD(weft_prog_op(ctx, "spmm:q=3", &prog), WEFT_E_ARG, "spmm has no option q=3; it takes f32");
    close_prog();
}

TEST(a_spec_without_a_meaning_is_refused_with_what_there_is)
{
    weft_prog *out = (weft_prog *)1;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    BAD(weft_prog_op(ctx, "spm", &out), WEFT_E_ARG, "no operator spm; there are spmv spmm");
    CHECK(out == NULL);
    BAD(weft_prog_op(ctx, "", &out), WEFT_E_ARG, "there is no operator ");
    BAD(weft_prog_op(ctx, ":f32", &out), WEFT_E_ARG, "there is no operator ");
    BAD(weft_prog_op(ctx, "spmm:f8", &out), WEFT_E_ARG, "spmm has no option f8; it takes f32 f64");
    BAD(weft_prog_op(ctx, "spmm:", &out), WEFT_E_ARG, "spmm has no option ;");
    BAD(weft_prog_op(ctx, "spmm:f32:", &out), WEFT_E_ARG, "spmm has no option ;");
    BAD(weft_prog_op(ctx, "spmm:values", &out), WEFT_E_ARG, "spmm has no option values");
    BAD(weft_prog_op(ctx, "segment_sum:arg", &out), WEFT_E_ARG, "segment_sum has no option arg");
    BAD(weft_prog_op(ctx, "spmm:f32:f64", &out), WEFT_E_ARG, "f32 and f64 exclude each other");
    BAD(weft_prog_op(ctx, "spmm:csc:t:csr", &out), WEFT_E_ARG, "csc and csr exclude each other");
    BAD(weft_prog_op(ctx, "spmm:t:t", &out), WEFT_E_ARG, "t is given twice");
    BAD(weft_prog_op(ctx, NULL, &out), WEFT_E_ARG, "the operator is NULL");
    BAD(weft_prog_op(ctx, "spmm", NULL), WEFT_E_ARG, "out is NULL");
    CHECK_EQ(weft_prog_op(NULL, "spmm", &out), WEFT_E_ARG);
    CHECK(weft_list("ops", 1000, NULL) == NULL && weft_list("options", 1000, NULL) == NULL);
    close_prog();
}
