/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/: contexts, handles and programs, used rightly and wrongly. */
#include "unit/api_bed.h"

TEST(the_version_is_that_of_the_header)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
             WEFT_VERSION_PATCH);
    CHECK_STR(weft_version(), text);
}

TEST(a_product_runs_from_bound_arrays_and_again_from_a_matrix)
{
    open_prog(spmm);
    bind_csr();
    OK(weft_run(args));
    check_floats("C", product, 6);
    for (int i = 0; i < 2; i++) {
        OK(weft_args_bind(args, "J.start", NULL));
        OK(weft_args_bind(args, "J.coord", NULL));
        OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
        OK(weft_run(args));
        check_floats("C", product, 6);
    }
    CHECK_STR(weft_message(ctx), "");
    close_prog();
}

/* A call of every function that takes a program or arguments. */
static weft_status call_add(void *h)
{
    return weft_prog_add(h, "");
}
static weft_status call_check(void *h)
{
    return weft_prog_check(h);
}
static weft_status call_args_new(void *h)
{
    weft_args *out;

    return weft_args_new(h, &out);
}
static weft_status call_rows(void *h)
{
    weft_rows rows = { 0 };

    return weft_prog_rows(h, &rows);
}
static weft_status call_print(void *h)
{
    const char *out;

    return weft_prog_print(h, &out);
}
static weft_status call_nargs(void *h)
{
    int out;

    return weft_prog_nargs(h, &out);
}
static weft_status call_arg(void *h)
{
    weft_arg out;

    return weft_prog_arg(h, 0, &out);
}
static weft_status call_prog_free(void *h)
{
    weft_prog_free(h);
    return WEFT_E_ARG;
}
static weft_status call_size(void *h)
{
    return weft_args_size(h, "n", 1);
}
static weft_status call_bind(void *h)
{
    return weft_args_bind(h, "A", NULL);
}
static weft_status call_read(void *h)
{
    return weft_args_read(h, "A", "a.mtx");
}
static weft_status call_run(void *h)
{
    return weft_run(h);
}
static weft_status call_get(void *h)
{
    weft_tensor out;

    return weft_args_get(h, "C", &out);
}
static weft_status call_write(void *h)
{
    return weft_args_write(h, "C", "c.npy");
}
static weft_status call_show(void *h)
{
    const char *out;

    return weft_args_print(h, "C", &out);
}
static weft_status call_args_free(void *h)
{
    weft_args_free(h);
    return WEFT_E_ARG;
}
static weft_status call_parse(void *h)
{
    weft_prog *out;

    return weft_prog_parse(h, NULL, spmm, sizeof spmm - 1, &out);
}
static weft_status call_prog_read(void *h)
{
    weft_prog *out;

    return weft_prog_read(h, "spmm.weft", &out);
}
static weft_status call_new(void *h)
{
    weft_prog *out;

    return weft_prog_new(h, "a()", &out);
}
static weft_status call_ctx_free(void *h)
{
    weft_ctx_free(h);
    return WEFT_E_ARG;
}

typedef weft_status Call(void *handle);
static Call *const on_prog[] = { call_add,   call_check, call_args_new, call_rows,
                                 call_print, call_nargs, call_arg,      call_prog_free };
static Call *const on_args[] = { call_size, call_bind,  call_read, call_run,
                                 call_get,  call_write, call_show, call_args_free };
static Call *const on_ctx[] = { call_parse, call_prog_read, call_new, call_ctx_free };

static void try_all(Call *const *call, int n, void *handle, const char *part)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(call[i](handle), WEFT_E_ARG);
        if (part != NULL)
            CHECK_HAS(weft_message(ctx), part);
    }
}

TEST(a_handle_that_is_null_stale_or_of_another_kind_is_refused)
{
    static uint64_t blank[64];
    weft_prog *old_prog;
    weft_args *old_args;

    open_prog(spmm);
    old_prog = prog;
    old_args = args;
    OK(weft_prog_parse(ctx, NULL, spmm, sizeof spmm - 1, &prog));
    OK(weft_args_new(prog, &args));
    weft_prog_free(old_prog);
    weft_args_free(old_args);
    try_all(on_prog, 8, NULL, NULL);
    try_all(on_prog, 8, blank, NULL);
    try_all(on_prog, 8, old_prog, "was freed before");
    try_all(on_prog, 8, args, "and arguments given");
    try_all(on_prog, 8, ctx, "and a context given");
    try_all(on_args, 8, NULL, NULL);
    try_all(on_args, 8, blank, NULL);
    try_all(on_args, 8, old_args, "was freed before");
    try_all(on_args, 8, prog, "and a program given");
    try_all(on_args, 8, ctx, "and a context given");
    try_all(on_ctx, 4, NULL, NULL);
    try_all(on_ctx, 4, blank, NULL);
    try_all(on_ctx, 4, old_prog, "was freed before");
    try_all(on_ctx, 4, args, "and arguments given");
    try_all(on_ctx, 4, prog, "and a program given");
    CHECK_HAS(weft_message(NULL), "no context");
    CHECK_HAS(weft_message((weft_ctx *)blank), "no context");
    CHECK_HAS(weft_message((weft_ctx *)prog), "no context");
    CHECK_HAS(weft_message((weft_ctx *)args), "no context");
    CHECK_HAS(weft_message((weft_ctx *)old_prog), "no context");
    OK(weft_prog_check(prog));
    close_prog();
}

TEST(a_stale_handle_is_known_while_64_others_are_freed)
{
    weft_args *old;

    open_prog(spmm);
    old = args;
    weft_args_free(old);
    for (int i = 0; i < 63; i++) {
        OK(weft_args_new(prog, &args));
        weft_args_free(args);
        BAD(weft_run(old), WEFT_E_ARG, "was freed before");
    }
    for (int i = 0; i < 100; i++) {
        OK(weft_args_new(prog, &args));
        weft_args_free(args);
    }
    close_prog();
}

TEST(arguments_outlive_their_program_and_the_context_frees_what_is_left)
{
    open_prog(spmm);
    bind_csr();
    weft_prog_free(prog);
    OK(weft_run(args));
    check_floats("C", product, 6);
    close_prog();
}

TEST(tables_list_their_rows_and_nothing_else)
{
    const char *note = "x";
    int n = 0;

    CHECK_STR(weft_list(NULL, 0, NULL), "types");
    CHECK_STR(weft_list("types", 0, &note), "i32");
    CHECK_STR(note, "integer");
    CHECK_STR(weft_list("keywords", 0, NULL), "program");
    for (const char *what; (what = weft_list(NULL, n, NULL)) != NULL; n++)
        for (int i = 0; weft_list(what, i, &note) != NULL; i++)
            CHECK(note != NULL && i < 100);
    CHECK(n >= 8);
    CHECK(weft_list("types", 6, &note) == NULL && note == NULL);
    CHECK(weft_list("types", -1, NULL) == NULL);
    CHECK(weft_list(NULL, -1, NULL) == NULL);
    CHECK(weft_list(NULL, n, NULL) == NULL);
    CHECK_STR(weft_list("passes", 0, NULL), "formats");
    CHECK(weft_list("passes", 1000, NULL) == NULL);
    CHECK(weft_list("nothing", 0, NULL) == NULL);
    CHECK(weft_list("axes", 1000, NULL) == NULL);
    CHECK(weft_list("keywords", 1000, NULL) == NULL);
    CHECK(weft_list("functions", 1000, NULL) == NULL);
}

TEST(a_program_that_does_not_read_says_where_with_the_line_and_a_caret)
{
    const char *bad = "program p(n)\nf32 A[n], B[n]\nb: for i in n: B[i] = \xc3\xa9 A[i]\n";
    weft_prog *out = (weft_prog *)1;

    open_prog(spmm);
    CHECK_EQ(weft_prog_parse(ctx, "x.weft", bad, strlen(bad), &out), WEFT_E_PARSE);
    CHECK(out == NULL);
    CHECK_HAS(weft_message(ctx), "x.weft:3:23: error: ");
    CHECK_HAS(weft_message(ctx),
              "\n    b: for i in n: B[i] = \xc3\xa9 A[i]\n                          ^");
    CHECK_EQ(weft_prog_parse(ctx, NULL, "program", 7, &out), WEFT_E_PARSE);
    CHECK_HAS(weft_message(ctx), "program:1:");
    BAD(weft_prog_parse(ctx, "x", NULL, 0, &out), WEFT_E_ARG, "NULL");
    BAD(weft_prog_parse(ctx, "x", spmm, 10, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_prog_parse(ctx, "x", spmm, (size_t)65 << 20, &out), WEFT_E_LIMIT, "at most");
    CHECK_EQ(weft_prog_parse(ctx, "x", "", 0, &out), WEFT_E_PARSE);
    CHECK_EQ(weft_prog_parse(ctx, "x", "\0\0", 2, &out), WEFT_E_PARSE);
    CHECK(out == NULL);
    close_prog();
}

TEST(a_fault_far_to_the_right_has_no_caret)
{
    char text[400];
    weft_prog *out;

    open_prog(spmm);
    snprintf(text, sizeof text, "program p(n)\nf64 X[n]; %300s ?\n", "");
    CHECK_EQ(weft_prog_parse(ctx, "x", text, strlen(text), &out), WEFT_E_PARSE);
    CHECK_HAS(weft_message(ctx), "x:2:312: error: ");
    CHECK_HAS(weft_message(ctx), "\n    f64 X[n]; ");
    CHECK(strchr(weft_message(ctx), '^') == NULL);
    close_prog();
}

TEST(a_program_is_read_from_a_file)
{
    weft_prog *out;

    open_prog(spmm);
    OK(weft_prog_read(ctx, write_text("p.weft", spmm), &out));
    OK(weft_prog_check(out));
    BAD(weft_prog_read(ctx, "/nowhere/p.weft", &out), WEFT_E_IO, "/nowhere/p.weft");
    CHECK(out == NULL);
    BAD(weft_prog_read(ctx, "/", &out), WEFT_E_IO, "directory");
    BAD(weft_prog_read(ctx, "", &out), WEFT_E_IO, "cannot open");
    BAD(weft_prog_read(ctx, NULL, &out), WEFT_E_ARG, "path is NULL");
    BAD(weft_prog_read(ctx, "x", NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_prog_read(ctx, write_text("q.weft", "program p(n\nx\x1by"), &out), WEFT_E_PARSE,
        "q.weft:");
    CHECK(strchr(weft_message(ctx), '\x1b') == NULL);
    close_prog();
}

TEST(a_program_is_built_piece_by_piece_and_a_wrong_piece_changes_nothing)
{
    const char *text, *whole;
    char before[400];
    weft_prog *p, *q;

    open_prog(spmm);
    OK(weft_prog_print(prog, &whole));
    OK(weft_prog_new(ctx, "spmm(m, n, f)", &p));
    OK(weft_prog_add(p, "axis I = dense(m), J = compressed(I, n), K = dense(f)"));
    OK(weft_prog_add(p, "f32 A[I, J], B[n, K], C[I, K]"));
    OK(weft_prog_print(p, &text));
    snprintf(before, sizeof before, "%s", text);
    BAD(weft_prog_add(p, "f32 D[m]\nc: C[i, k] += X[i, j]"), WEFT_E_CHECK, "spmm:5:15: error: ");
    CHECK_HAS(weft_message(ctx), "\n    c: C[i, k] += X[i, j]\n                  ^");
    BAD(weft_prog_add(p, "axis"), WEFT_E_PARSE, "spmm:4:");
    CHECK(weft_prog_add(p, "program q(n)") != WEFT_OK);
    CHECK_HAS(weft_message(ctx), "spmm:4:");
    BAD(weft_prog_add(p, "f32 A[m]"), WEFT_E_CHECK, "already");
    BAD(weft_prog_add(p, NULL), WEFT_E_ARG, "NULL");
    OK(weft_prog_print(p, &text));
    CHECK_STR(text, before);
    OK(weft_prog_add(p, "c: C[i, k] += A[i, j] * B[j, k]\n"));
    OK(weft_prog_add(p, ""));
    OK(weft_prog_print(p, &text));
    CHECK_STR(text, whole);
    BAD(weft_prog_new(ctx, NULL, &q), WEFT_E_ARG, "head");
    BAD(weft_prog_new(ctx, "p(n)", NULL), WEFT_E_ARG, "out");
    CHECK_EQ(weft_prog_new(ctx, "", &q), WEFT_E_PARSE);
    CHECK_EQ(weft_prog_new(ctx, "3(n)", &q), WEFT_E_PARSE);
    CHECK_EQ(weft_prog_new(ctx, "p(n, n)", &q), WEFT_E_CHECK);
    CHECK(q == NULL);
    BAD(weft_prog_print(p, NULL), WEFT_E_ARG, "out");
    close_prog();
}

TEST(arguments_see_the_program_as_it_was)
{
    weft_prog *p;
    weft_args *a, *b;
    weft_tensor t;

    open_prog(spmm);
    OK(weft_prog_new(ctx, "p()", &p));
    OK(weft_prog_add(p, "f64 X[3]\nx: for i in 3: X[i] = 2"));
    OK(weft_args_new(p, &a));
    OK(weft_prog_add(p, "f64 Y[3]\ny: for i in 3: Y[i] = X[i]"));
    OK(weft_args_new(p, &b));
    OK(weft_run(a));
    OK(weft_run(b));
    BAD(weft_args_get(a, "Y", &t), WEFT_E_ARG, "p has no argument Y; it has X");
    OK(weft_args_get(b, "Y", &t));
    CHECK_SAME(((double *)t.data)[2], 2);
    close_prog();
}

TEST(a_constant_relation_comes_from_arrays)
{
    static const char *const pair[] = { "a", "b" }, *const one[] = { "m1" };
    static const int64_t table[] = { 0, 1, 1, 0, 2, 2 }, count[] = { 2, 0, 1 };
    static const double value[] = { 0.5, -0.1, 1e300 };
    weft_rows rows = { .axis = "P", .coord = one, .ncoord = 1, .n = 3, .table = table };
    weft_rows child = { .axis = "Q",
                        .parent = "P",
                        .count = count,
                        .ncount = 3,
                        .coord = pair,
                        .ncoord = 2,
                        .n = 3,
                        .table = table,
                        .value = "c",
                        .values = value };
    weft_prog *p, *q;
    const char *text, *again;
    char first[1000];
    weft_tensor t;

    open_prog(spmm);
    OK(weft_prog_new(ctx, "rel()", &p));
    OK(weft_prog_rows(p, &rows));
    OK(weft_prog_rows(p, &child));
    OK(weft_prog_add(p, "f64 Z[3]\nz: Z[b(q)] += c[q]"));
    OK(weft_prog_print(p, &text));
    snprintf(first, sizeof first, "%s", text);
    OK(weft_prog_parse(ctx, "again", first, strlen(first), &q));
    OK(weft_prog_print(q, &again));
    CHECK_STR(again, first);
    OK(weft_args_new(p, &args));
    OK(weft_run(args));
    OK(weft_args_get(args, "Z", &t));
    CHECK_SAME(((double *)t.data)[0], -0.1);
    CHECK_SAME(((double *)t.data)[1], 0.5);
    CHECK_SAME(((double *)t.data)[2], 1e300);
    close_prog();
}

TEST(a_relation_that_is_not_whole_is_refused)
{
    static const char *const name[] = { "a", NULL };
    static const int64_t table[] = { 0, 1 }, short_count[] = { 1 }, bad_count[] = { 3, -1 };
    const weft_rows good = { .axis = "P", .coord = name, .ncoord = 1, .n = 2, .table = table };
    weft_rows r;
    weft_prog *p;

    open_prog(spmm);
    OK(weft_prog_new(ctx, "rel()", &p));
    BAD(weft_prog_rows(p, NULL), WEFT_E_ARG, "rows is NULL");
    r = good, r.axis = NULL;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "name of the axis");
    r = good, r.coord = NULL;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "names of the coordinates");
    r = good, r.ncoord = 2;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "name of a coordinate");
    r = good, r.ncoord = 0;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "0 coordinates");
    r = good, r.ncoord = 17;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "17 coordinates");
    r = good, r.n = -1;
    BAD(weft_prog_rows(p, &r), WEFT_E_LIMIT, "-1 entries");
    r = good, r.n = INT64_MAX;
    BAD(weft_prog_rows(p, &r), WEFT_E_LIMIT, "entries");
    r = good, r.table = NULL;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "table");
    r = good, r.value = "c";
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "values");
    r = good, r.parent = "S", r.ncount = 1;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "counts is NULL");
    r.count = short_count;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "must sum to its 2 entries");
    r.count = bad_count, r.ncount = 2;
    BAD(weft_prog_rows(p, &r), WEFT_E_ARG, "must sum");
    r = good, r.axis = "p";
    BAD(weft_prog_rows(p, &r), WEFT_E_CHECK, "capital");
    r = good;
    OK(weft_prog_rows(p, &r));
    CHECK_EQ(weft_prog_rows(p, &r), WEFT_E_CHECK);
    close_prog();
}

TEST(arguments_are_listed_with_name_role_type_and_rank)
{
    static const weft_arg want[] = {
        { "m", WEFT_SIZE, WEFT_I64, 0, 0 },         { "n", WEFT_SIZE, WEFT_I64, 0, 0 },
        { "J.start", WEFT_INPUT, WEFT_I64, 1, 1 },  { "J.coord", WEFT_INPUT, WEFT_I64, 1, 1 },
        { "L.q", WEFT_INPUT, WEFT_I64, 2, 1 },      { "U.start", WEFT_OUTPUT, WEFT_I64, 1, 1 },
        { "U.coord", WEFT_OUTPUT, WEFT_I64, 1, 1 }, { "A", WEFT_INPUT, WEFT_BF16, 2, 0 },
        { "C", WEFT_OUTPUT, WEFT_F64, 1, 0 },       { "D", WEFT_INOUT, WEFT_I32, 0, 0 },
    };
    weft_arg a;
    int n;

    open_prog("program p(m, n)\n"
              "axis I = m, J = compressed(I, n), L(I) = 3 : q < n padded, U(I) = built : load < n\n"
              "bf16 A[J, 4]\nf64 C[U]\ntemp f32 T[m]\ninout i32 D[]\nconst f32 W[2] = {1, 2}\n"
              "u: U(i) |= j\nt: T[i] = 1\nc: C[u] = T[i]\nd: for i: D[] += 1\n");
    OK(weft_prog_nargs(prog, &n));
    CHECK_EQ(n, 10);
    for (int i = 0; i < n; i++) {
        OK(weft_prog_arg(prog, i, &a));
        CHECK_STR(a.name, want[i].name);
        CHECK_EQ(a.role, want[i].role);
        CHECK_EQ(a.type, want[i].type);
        CHECK_EQ(a.ndim, want[i].ndim);
        CHECK_EQ(a.structure, want[i].structure);
    }
    BAD(weft_prog_arg(prog, n, &a), WEFT_E_ARG, "10 arguments");
    BAD(weft_prog_arg(prog, -1, &a), WEFT_E_ARG, "no number -1");
    BAD(weft_prog_arg(prog, INT32_MAX, &a), WEFT_E_ARG, "no number");
    BAD(weft_prog_arg(prog, 0, NULL), WEFT_E_ARG, "out");
    BAD(weft_prog_nargs(prog, NULL), WEFT_E_ARG, "out");
    BAD(weft_args_size(args, "T", 1), WEFT_E_ARG, "(it is a temp)");
    BAD(weft_args_size(args, "W", 1), WEFT_E_ARG, "(it is a const)");
    BAD(weft_args_size(args, "I", 1), WEFT_E_ARG, "(it is an axis)");
    close_prog();
}

TEST(a_program_without_meaning_gets_no_arguments)
{
    weft_prog *p;
    weft_args *a;
    const char *text = "program p(n)\nf64 X[n], Y[n]\ny: for i in n: Y[i] += X[i]\n"
                       "z: for i in n: Y[i] max= X[i]\n";

    open_prog(spmm);
    OK(weft_prog_parse(ctx, "p", text, strlen(text), &p));
    CHECK_EQ(weft_prog_check(p), WEFT_E_CHECK);
    CHECK_EQ(weft_args_new(p, &a), WEFT_E_CHECK);
    CHECK(a == NULL);
    BAD(weft_args_new(prog, NULL), WEFT_E_ARG, "out");
    close_prog();
}
