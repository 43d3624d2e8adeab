/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_fail: what happens when the system refuses.  Each scenario is a list of calls.  It is run
 * once for every allocation that it makes (that one fails; that one and all later ones fail) and
 * for every OS call with each of five errnos.  The call that meets the failure must return the
 * right status and a message and change nothing of the caller's; made again without the failure it
 * must succeed, and the scenario goes on to its result.  Nothing may leak. */
#include "fail/inject.h"
#include "unit/test.h"

#include "api/api_int.h"
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct World {
    Inject j;
    weft_ctx *ctx;
    weft_prog *prog;
    weft_args *args;
    bool hit;        /* a call has met the failure */
    double user[64]; /* the caller's arrays: unchanged by a call that fails */
    double before[64];
} World;

static long points; /* of failure, tried in all */

/* Nothing fails any more; what was counted stays. */
static void stop_failing(World *w)
{
    w->j.kind = INJECT_NONE;
    w->j.sticky = false;
}

/* A call returned `got` and not `want`: only the injected failure may be the reason. */
static void meet(World *w, weft_status got, const char *call)
{
    weft_status right = w->j.kind == INJECT_ALLOC ? WEFT_E_NOMEM : WEFT_E_IO;
    char at[200];

    snprintf(at, sizeof at, "%s, failing %s %lld: %s", call,
             w->j.kind < INJECT_KINDS ? inject_name[w->j.kind] : "nothing", (long long)w->j.at,
             weft_message(w->ctx));
    if (w->hit || w->j.failed == 0)
        test_fail(__FILE__, __LINE__, "status %d without a failure: %s", (int)got, at);
    if (got != right)
        test_fail(__FILE__, __LINE__, "status %d, not %d: %s", (int)got, (int)right, at);
    if (memcmp(w->user, w->before, sizeof w->user) != 0)
        test_fail(__FILE__, __LINE__, "the caller's arrays have changed: %s", at);
    CHECK(weft_message(w->ctx)[0] != 0);
    w->hit = true;
    stop_failing(w);
}

/* The call gives this status; when the failure comes first, then at the second try. */
#define GIVES(want, call)                                                       \
    do {                                                                        \
        weft_status got_;                                                       \
                                                                                \
        memcpy(w->before, w->user, sizeof w->user);                             \
        got_ = (call);                                                          \
        if (got_ != (want)) {                                                   \
            meet(w, got_, #call);                                               \
            got_ = (call);                                                      \
        }                                                                       \
        if (got_ != (want))                                                     \
            test_fail(__FILE__, __LINE__, "%s again: %d: %s", #call, (int)got_, \
                      weft_message(w->ctx));                                    \
    } while (0)
#define DO(call) GIVES(WEFT_OK, call)

typedef void Scenario(World *);

static void open_world(World *w)
{
    w->ctx = api_ctx_new(&w->j.os);
    if (w->ctx == NULL) {
        CHECK(w->j.failed > 0 && w->j.kind == INJECT_ALLOC);
        w->hit = true;
        stop_failing(w);
        w->ctx = api_ctx_new(&w->j.os);
    }
    CHECK(w->ctx != NULL);
    for (int i = 0; i < 64; i++)
        w->user[i] = i;
}

/* No temporary file is left, unless removing it is what failed. */
static void check_folder(const World *w)
{
    DIR *d = opendir(test_path("."));
    int n = 0;

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, ".tmp") != NULL;
    closedir(d);
    CHECK(n == 0 || w->j.calls[INJECT_UNLINK] > 0);
}

/* One run with the k-th call of a kind failing; false when there are fewer calls. */
static bool try_point(Scenario *s, InjectKind kind, int64_t k, bool sticky, int code)
{
    World w = { 0 };

    inject_init(&w.j, &os_libc);
    inject_at(&w.j, kind, k, sticky, code);
    open_world(&w);
    s(&w);
    weft_ctx_free(w.ctx);
    if (!inject_is_clean(&w.j))
        test_fail(__FILE__, __LINE__, "%lld blocks, %lld files left: %s %lld",
                  (long long)w.j.blocks, (long long)w.j.files, inject_name[kind], (long long)k);
    check_folder(&w);
    points += w.j.failed > 0;
    return w.j.failed > 0;
}

static void try_all(Scenario *s)
{
    static const int codes[] = { EIO, ENOSPC, EACCES, EINTR, EMFILE };

    for (int64_t k = 1; try_point(s, INJECT_ALLOC, k, false, ENOMEM); k++)
        try_point(s, INJECT_ALLOC, k, true, ENOMEM);
    for (InjectKind kind = INJECT_OPEN; kind < INJECT_KINDS; kind++)
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            for (int64_t k = 1; try_point(s, kind, k, false, codes[c]); k++)
                ;
}

#define SCENARIO(name)                  \
    static void name##_steps(World *w); \
    TEST(name)                          \
    {                                   \
        try_all(name##_steps);          \
    }                                   \
    static void name##_steps(World *w)

static void parse(World *w, const char *text)
{
    DO(weft_prog_parse(w->ctx, "p", text, strlen(text), &w->prog));
}

static void start(World *w, const char *text)
{
    parse(w, text);
    DO(weft_args_new(w->prog, &w->args));
}

static void bind(World *w, const char *name, void *data, weft_type type, int ndim,
                 const int64_t *shape, const int64_t *stride)
{
    weft_tensor t = { data, type, ndim, shape, stride };

    DO(weft_args_bind(w->args, name, &t));
}

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static void put_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(test_path(name), "wb");

    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

static void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static void check_double(World *w, const char *name, int64_t i, double want)
{
    weft_tensor t;

    DO(weft_args_get(w->args, name, &t));
    CHECK_SAME(((double *)t.data)[i], want);
}

static const char spmv[] = "program spmv(m, n)\naxis I = m, J = compressed(I, n)\n"
                           "f64 A[I, J], X[n], Y[m]\ny: Y[i] += A[i, j] * X[j]\n";
static const char matrix[] = "%%MatrixMarket matrix coordinate real general\n"
                             "3 4 4\n1 1 1.5\n1 3 2\n3 2 -1\n3 4 0.5\n";
static int64_t starts[] = { 0, 2, 2, 4 }, columns[] = { 0, 2, 1, 3 };
static double values[] = { 1.5, 2, -1, 0.5 };

static void bind_csr_of(World *w, const char *x)
{
    bind(w, "J.start", starts, WEFT_I64, 1, DIMS(4), NULL);
    bind(w, "J.coord", columns, WEFT_I64, 1, DIMS(4), NULL);
    bind(w, "A", values, WEFT_F64, 1, DIMS(4), NULL);
    bind(w, x, w->user, WEFT_F64, 1, DIMS(4), NULL);
}

static void bind_csr(World *w)
{
    bind_csr_of(w, "X");
}

SCENARIO(a_context)
{
    CHECK_STR(weft_message(w->ctx), "");
}

SCENARIO(a_second_context)
{
    World other = { 0 };

    parse(w, spmv);
    inject_init(&other.j, &os_libc);
    open_world(&other);
    weft_ctx_free(other.ctx);
    DO(weft_prog_check(w->prog));
}

SCENARIO(a_program_is_parsed)
{
    parse(w, spmv);
}

SCENARIO(a_long_program_is_parsed)
{
    char text[20000] = "program p(n)\nf64 X[n], Y[n]\n";

    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), 120, "y%d: for i in n: Y[i] += sin(X[i] + %d.5) * %d\n", i, i,
                 i % 7);
    parse(w, text);
    DO(weft_prog_check(w->prog));
}

SCENARIO(a_program_that_does_not_parse)
{
    const char *text = "program p(n)\nf64 X[n\n";

    GIVES(WEFT_E_PARSE, weft_prog_parse(w->ctx, "p", text, strlen(text), &w->prog));
    CHECK(w->prog == NULL);
}

SCENARIO(a_program_that_means_nothing)
{
    parse(w, "program p(n)\nf64 Y[n]\ny: for i in n: Y[i] = 1\nz: for i in n: Y[i] += 1\n");
    GIVES(WEFT_E_CHECK, weft_prog_check(w->prog));
    GIVES(WEFT_E_CHECK, weft_args_new(w->prog, &w->args));
}

SCENARIO(a_program_from_a_file)
{
    put_text("p.weft", spmv);
    DO(weft_prog_read(w->ctx, test_path("p.weft"), &w->prog));
    DO(weft_prog_check(w->prog));
}

SCENARIO(a_program_from_a_file_that_is_not_there)
{
    if (weft_prog_read(w->ctx, "/nowhere/p.weft", &w->prog) != WEFT_E_IO)
        CHECK(w->j.failed > 0 && strstr(weft_message(w->ctx), "memory") != NULL);
    CHECK(w->prog == NULL);
}

SCENARIO(a_program_is_printed)
{
    const char *text;

    parse(w, spmv);
    DO(weft_prog_print(w->prog, &text));
    CHECK_STR(text, spmv);
    DO(weft_prog_print(w->prog, &text));
    CHECK_STR(text, spmv);
}

SCENARIO(a_program_is_printed_after_a_pass_and_read_again)
{
    const char *text;
    weft_prog *later;

    parse(w, spmv);
    DO(weft_prog_print_after(w->prog, "cse", &text));
    DO(weft_prog_parse(w->ctx, "later", text, strlen(text), &later));
    DO(weft_prog_check(later));
}

SCENARIO(a_program_is_built_from_pieces)
{
    const char *text;

    DO(weft_prog_new(w->ctx, "spmv(m, n)", &w->prog));
    DO(weft_prog_add(w->prog, "axis I = m, J = compressed(I, n)"));
    DO(weft_prog_add(w->prog, "f64 A[I, J], X[n], Y[m]"));
    DO(weft_prog_add(w->prog, "y: Y[i] += A[i, j] * X[j]"));
    DO(weft_prog_print(w->prog, &text));
    CHECK_STR(text, spmv);
}

SCENARIO(a_piece_that_is_wrong_leaves_the_program)
{
    const char *text;

    parse(w, spmv);
    GIVES(WEFT_E_CHECK, weft_prog_add(w->prog, "f64 Z[m]\nz: Z[i] += Q[i]"));
    DO(weft_prog_print(w->prog, &text));
    CHECK_STR(text, spmv);
}

SCENARIO(a_gradient_of_a_gradient)
{
    const char *wrt[] = { "A", "d_Y" }, *text;
    weft_grad opt = { .wrt = wrt, .nwrt = 2 };
    weft_prog *first, *second;

    parse(w, spmv);
    DO(weft_prog_grad(w->prog, NULL, &first));
    DO(weft_prog_grad(first, &opt, &second));
    DO(weft_prog_print(second, &text));
    CHECK_HAS(text, "d2(d(y,X),A): d2_A[i, j] += d2_d_X[j] * d_Y[i]");
    wrt[0] = "X";
    opt.nwrt = opt.forward = 1;
    DO(weft_prog_grad(w->prog, &opt, &second));
    DO(weft_args_new(second, &w->args));
    bind_csr_of(w, "t_X");
    DO(weft_run(w->args));
    check_double(w, "t_Y", 0, 4);
}

SCENARIO(the_program_of_an_operator)
{
    const char *text;
    weft_prog *out;

    DO(weft_prog_op(w->ctx, "segment_mean:f64:csc:heads", &w->prog));
    DO(weft_prog_print(w->prog, &text));
    CHECK_HAS(text, "s: S[i(e), h, k] += X[e, h, k]");
    GIVES(WEFT_E_ARG, weft_prog_op(w->ctx, "segment_mean:arg", &out));
    CHECK(out == NULL);
}

SCENARIO(the_program_of_a_tensor_product)
{
    const char *text;
    weft_prog *out;

    DO(weft_prog_o3(w->ctx, "tp; in1=2x1o; in2=1o; out=0e+1e; mode=uvu", &w->prog));
    DO(weft_prog_print(w->prog, &text));
    CHECK_HAS(text, "z: Z[b, sz(p), u, m3(q)] += c[q]");
    GIVES(WEFT_E_ARG, weft_prog_o3(w->ctx, "tp; in1=2x1o", &out));
    CHECK(out == NULL);
    DO(weft_o3_tell(w->ctx, "irreps; of=1o+0e; do=sort", &text));
    CHECK_HAS(text, "1x0e+1x1o");
}

SCENARIO(a_gradient_that_does_not_exist)
{
    const char *wrt[] = { "Y" };
    weft_grad opt = { .wrt = wrt, .nwrt = 1 };
    weft_prog *out;

    parse(w, spmv);
    GIVES(WEFT_E_ARG, weft_prog_grad(w->prog, &opt, &out));
    CHECK(out == NULL);
}

SCENARIO(a_constant_relation)
{
    static const char *const coord[] = { "a", "b" };
    static const int64_t table[] = { 0, 1, 1, 0, 2, 2 }, count[] = { 2, 1 };
    static const double value[] = { 0.5, -0.25, 4 };
    weft_rows rows = { .axis = "Q",
                       .parent = "P",
                       .count = count,
                       .ncount = 2,
                       .coord = coord,
                       .ncoord = 2,
                       .n = 3,
                       .table = table,
                       .value = "c",
                       .values = value };

    DO(weft_prog_new(w->ctx, "rel()", &w->prog));
    DO(weft_prog_add(w->prog, "axis P = 2"));
    DO(weft_prog_rows(w->prog, &rows));
    DO(weft_prog_add(w->prog, "f64 Z[3]\nz: Z[b(q)] += c[q]"));
    DO(weft_args_new(w->prog, &w->args));
    DO(weft_run(w->args));
    check_double(w, "Z", 2, 4);
}

SCENARIO(a_constant_relation_without_parent)
{
    static const char *const coord[] = { "a" };
    static const int64_t table[] = { 2, 0 };
    weft_rows rows = { .axis = "Q", .coord = coord, .ncoord = 1, .n = 2, .table = table };

    DO(weft_prog_new(w->ctx, "rel()", &w->prog));
    DO(weft_prog_rows(w->prog, &rows));
    rows.n = -1;
    GIVES(WEFT_E_LIMIT, weft_prog_rows(w->prog, &rows));
}

SCENARIO(the_list_of_arguments)
{
    weft_arg a;
    int n;

    parse(w, spmv);
    DO(weft_prog_nargs(w->prog, &n));
    CHECK_EQ(n, 7);
    DO(weft_prog_arg(w->prog, 2, &a));
    CHECK_STR(a.name, "J.start");
    GIVES(WEFT_E_ARG, weft_prog_arg(w->prog, 7, &a));
}

SCENARIO(arguments_made_and_freed)
{
    weft_args *many[70];

    parse(w, spmv);
    for (int i = 0; i < 70; i++)
        DO(weft_args_new(w->prog, &many[i]));
    for (int i = 0; i < 70; i++)
        weft_args_free(many[i]);
    weft_prog_free(w->prog);
}

SCENARIO(arguments_misused)
{
    start(w, spmv);
    GIVES(WEFT_E_ARG, weft_args_size(w->args, "nothing", 1));
    GIVES(WEFT_E_ARG, weft_args_size(w->args, "n", -1));
    GIVES(WEFT_E_ARG, weft_args_read(w->args, "Y", "x.npy"));
    GIVES(WEFT_E_ARG, weft_args_read(w->args, "A", "x.txt"));
}

SCENARIO(a_run_on_the_callers_arrays)
{
    start(w, spmv);
    bind_csr(w);
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 4);
}

SCENARIO(a_run_on_strided_and_misaligned_arrays)
{
    static char room[100];

    memcpy(room + 1, values, sizeof values);
    start(w, spmv);
    bind_csr(w);
    bind(w, "X", w->user + 40, WEFT_F64, 1, DIMS(4), DIMS(-3));
    bind(w, "A", room + 1, WEFT_F64, 1, DIMS(4), NULL);
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 1.5 * 40 + 2 * 34);
}

SCENARIO(a_run_into_the_callers_strided_array)
{
    start(w, spmv);
    bind_csr(w);
    bind(w, "Y", w->user + 60, WEFT_F64, 1, DIMS(3), DIMS(-5));
    DO(weft_run(w->args));
    CHECK(w->user[60] == 4 && w->user[55] == 0 && w->user[50] == 0.5 && w->user[59] == 59);
}

SCENARIO(a_run_that_adds_to_its_first_content)
{
    start(w, "program p(n)\nf64 X[n]\ninout f64 Z[n]\nz: for i in n: Z[i] += X[i]\n");
    bind(w, "X", w->user, WEFT_F64, 1, DIMS(3), NULL);
    bind(w, "Z", w->user + 8, WEFT_F64, 1, DIMS(3), NULL);
    DO(weft_run(w->args));
    DO(weft_run(w->args));
    CHECK(w->user[8] == 8 && w->user[9] == 11 && w->user[10] == 14);
}

SCENARIO(a_run_that_fails_after_it_has_written)
{
    static int64_t x[] = { 1, 0 };

    start(w, "program p(n)\ni64 X[n]\nf64 Y[n], Z[n]\ny: for i in n: Y[i] = X[i]\n"
             "z: for i in n: Z[i] = 1 / X[i]\n");
    bind(w, "X", x, WEFT_I64, 1, DIMS(2), NULL);
    bind(w, "Y", w->user, WEFT_F64, 1, DIMS(2), NULL);
    bind(w, "Z", w->user + 2, WEFT_F64, 1, DIMS(2), NULL);
    GIVES(WEFT_E_RUN, weft_run(w->args));
    CHECK(memcmp(w->user, w->before, sizeof w->user) == 0);
}

SCENARIO(shapes_that_disagree)
{
    start(w, spmv);
    bind_csr(w);
    bind(w, "Y", w->user + 8, WEFT_F64, 1, DIMS(5), NULL);
    GIVES(WEFT_E_BIND, weft_run(w->args));
}

SCENARIO(a_size_that_nothing_tells)
{
    start(w, "program p(n)\nf64 Y[n]\ny: for i in n: Y[i] = 1\n");
    GIVES(WEFT_E_BIND, weft_run(w->args));
    DO(weft_args_size(w->args, "n", 3));
    DO(weft_run(w->args));
}

SCENARIO(arrays_that_share_memory)
{
    start(w, spmv);
    bind_csr(w);
    bind(w, "Y", w->user + 3, WEFT_F64, 1, DIMS(3), NULL);
    GIVES(WEFT_E_BIND, weft_run(w->args));
}

SCENARIO(structure_that_is_wrong)
{
    static int64_t bad[] = { 0, 2, 1, 4 };

    start(w, spmv);
    bind_csr(w);
    bind(w, "J.start", bad, WEFT_I64, 1, DIMS(4), NULL);
    GIVES(WEFT_E_BIND, weft_run(w->args));
}

/* Reads the small matrix into A of y = A x. */
static void run_matrix(World *w, const char *text, const char *path)
{
    put_text("a.mtx", matrix);
    start(w, text);
    DO(weft_args_read(w->args, "A", path));
    bind(w, "X", w->user, WEFT_F64, 1, DIMS(4), NULL);
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 4);
    check_double(w, "Y", 2, 0.5);
}

SCENARIO(a_matrix_as_csr)
{
    run_matrix(w, spmv, test_path("a.mtx"));
}

SCENARIO(a_matrix_as_dcsr)
{
    run_matrix(w,
               "program p(m, n, r)\naxis I = r : load < m sorted unique, J = compressed(I, n)\n"
               "f64 A[J], X[n], Y[m]\ny: Y[i] += A[j] * X[j]\n",
               test_path("a.mtx"));
}

SCENARIO(a_matrix_as_coo)
{
    run_matrix(w,
               "program p(m, n, r)\naxis E = r : i < m, j < n\nf64 A[E], X[n], Y[m]\n"
               "y: Y[i(e)] += A[e] * X[j(e)]\n",
               test_path("a.mtx"));
}

SCENARIO(a_matrix_as_ell)
{
    run_matrix(w,
               "program p(m, n, r)\naxis I = m, L = ell(I, r, n)\nf64 A[I, L], X[n], Y[m]\n"
               "y: Y[i] += A[i, l] * X[l]\n",
               test_path("a.mtx"));
}

SCENARIO(a_matrix_as_dense)
{
    run_matrix(w,
               "program p(m, n)\naxis I = m, J = n\nf64 A[I, J], X[n], Y[m]\n"
               "y: Y[i] += A[i, j] * X[j]\n",
               test_path("a.mtx"));
}

SCENARIO(a_matrix_transposed_as_csc)
{
    char path[600];

    snprintf(path, sizeof path, "%s:T", test_path("a.mtx"));
    run_matrix(w,
               "program p(m, n)\naxis J = n, E(J) = seg : i < m\nf64 A[E], X[n], Y[m]\n"
               "y: Y[i(e)] += A[e] * X[j]\n",
               path);
}

SCENARIO(a_matrix_that_does_not_read)
{
    put_text("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 1\n7 7 7\n");
    put_text("a.mtx", matrix);
    start(w, spmv);
    DO(weft_args_read(w->args, "A", test_path("a.mtx")));
    GIVES(WEFT_E_PARSE, weft_args_read(w->args, "A", test_path("b.mtx")));
    bind(w, "X", w->user, WEFT_F64, 1, DIMS(4), NULL);
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 4);
}

SCENARIO(matrices_of_different_structure)
{
    put_text("a.mtx", matrix);
    put_text("b.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 4 1\n2 2\n");
    start(w, "program p(m, n)\naxis I = m, J = compressed(I, n)\nf64 A[J], B[J], C[J]\n"
             "c: C[j] = A[j] * B[j]\n");
    DO(weft_args_read(w->args, "A", test_path("a.mtx")));
    DO(weft_args_read(w->args, "B", test_path("b.mtx")));
    GIVES(WEFT_E_BIND, weft_run(w->args));
}

/* An array of doubles as .npy, or in an archive, made with nothing failing. */
static void put_array(const char *file, const char *member)
{
    Arena arena;
    Err err = { 0 };
    Text bytes = { .arena = &arena };
    IoArray array = { .name = member != NULL ? member : "",
                      .type = IO_F64,
                      .ndim = 1,
                      .dim = { 4 },
                      .n = 4,
                      .data = values };
    IoNpz npz = { 1, &array };

    arena_init(&arena, &os_libc, &err);
    if (member != NULL)
        io_npz_print(&bytes, &npz);
    else
        io_npy_print(&bytes, &array);
    put_file(file, bytes.s, bytes.n);
    arena_free(&arena);
}

SCENARIO(an_array_from_a_file)
{
    put_array("x.npy", NULL);
    start(w, spmv);
    bind_csr(w);
    DO(weft_args_read(w->args, "X", test_path("x.npy")));
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 0.25);
}

SCENARIO(an_array_from_a_file_that_is_converted)
{
    put_array("x.npy", NULL);
    start(w, "program p(n)\nf16 X[n]\nf64 Y[n]\ny: for i in n: Y[i] = X[i]\n");
    DO(weft_args_read(w->args, "X", test_path("x.npy")));
    DO(weft_run(w->args));
    check_double(w, "Y", 1, 2);
}

SCENARIO(a_file_with_fractions_for_integers)
{
    put_array("x.npy", NULL);
    start(w, "program p(n)\ni32 X[n]\nf64 Y[n]\ny: for i in n: Y[i] = X[i]\n");
    GIVES(WEFT_E_BIND, weft_args_read(w->args, "X", test_path("x.npy")));
}

SCENARIO(an_array_from_an_archive)
{
    put_array("x.npz", "X");
    start(w, spmv);
    bind_csr(w);
    DO(weft_args_read(w->args, "X", test_path("x.npz")));
    DO(weft_run(w->args));
    check_double(w, "Y", 0, 0.25);
}

SCENARIO(a_result_to_an_array_file)
{
    start(w, spmv);
    bind_csr(w);
    DO(weft_run(w->args));
    DO(weft_args_write(w->args, "Y", test_path("y.npy")));
    DO(weft_args_read(w->args, "X", test_path("y.npy")));
}

SCENARIO(a_result_of_16_bits_to_an_array_file)
{
    start(w, "program p(n)\nbf16 Y[n]\ny: for i in n: Y[i] = 1\n");
    DO(weft_args_size(w->args, "n", 5));
    DO(weft_run(w->args));
    DO(weft_args_write(w->args, "Y", test_path("y.npy")));
}

SCENARIO(a_result_to_a_matrix_file)
{
    put_text("a.mtx", matrix);
    start(w, "program p(m, n)\naxis I = m, J = compressed(I, n)\nf64 A[J], B[J]\nb: B[j] = A[j]\n");
    DO(weft_args_read(w->args, "A", test_path("a.mtx")));
    DO(weft_run(w->args));
    DO(weft_args_write(w->args, "B", test_path("b.mtx")));
    DO(weft_args_read(w->args, "A", test_path("b.mtx")));
    DO(weft_run(w->args));
}

SCENARIO(an_old_file_stays_when_the_new_one_cannot_be_written)
{
    char text[200] = "";
    FILE *f;

    put_text("y.npy", "old");
    start(w, spmv);
    bind_csr(w);
    DO(weft_run(w->args));
    if (weft_args_write(w->args, "Y", test_path("y.npy")) != WEFT_OK) {
        f = fopen(test_path("y.npy"), "rb");
        CHECK(f != NULL && fread(text, 1, sizeof text - 1, f) == 3);
        CHECK_STR(text, "old");
        fclose(f);
        CHECK(w->j.failed > 0);
    }
}

SCENARIO(a_result_as_text)
{
    const char *text;

    start(w, spmv);
    bind_csr(w);
    DO(weft_run(w->args));
    DO(weft_args_print(w->args, "Y", &text));
    DO(weft_args_print(w->args, "Y", &text));
    CHECK_STR(text, "Y f64 [3]\n    4    0  0.5\n");
}

SCENARIO(a_product_that_builds_its_structure)
{
    static int64_t each[] = { 0, 1, 2, 3, 4 }, rows[] = { 2, 0, 1, 2 };

    put_text("a.mtx", matrix);
    start(w, "program p(m, n)\naxis I = m, E(I) = seg : j < n, J = n, F(J) = seg : k < m\n"
             "axis U(I) = built : load < m\nf64 A[E], B[F], C[I, U]\n"
             "sym: for i, e, f in F(j(e)): U(i) |= k(f)\n"
             "num: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]\n");
    DO(weft_args_read(w->args, "A", test_path("a.mtx")));
    bind(w, "F.start", each, WEFT_I64, 1, DIMS(5), NULL);
    bind(w, "F.k", rows, WEFT_I64, 1, DIMS(4), NULL);
    bind(w, "B", values, WEFT_F64, 1, DIMS(4), NULL);
    DO(weft_run(w->args));
}

SCENARIO(a_maximum_with_its_argument)
{
    start(w, "program p(ng, nk)\naxis G = ng, E(G) = seg, K = nk\nf64 X[E, K], M[G, K] fill 0\n"
             "i64 W[G, K]\nm: M[g, k] max= X[e, k] at W[g, k] = pos(e)\n");
    bind(w, "E.start", starts, WEFT_I64, 1, DIMS(4), NULL);
    bind(w, "X", w->user, WEFT_F64, 2, DIMS(4, 2), NULL);
    DO(weft_run(w->args));
    check_double(w, "M", 0, 2);
}

SCENARIO(a_softmax_with_temporaries)
{
    start(w, "program p(n, nh)\naxis I = n, E(I) = seg, H = nh\nf64 S[E, H], P[E, H]\n"
             "temp f64 M[I, H], T[E, H], Z[I, H]\nm: M[i, h] max= S[e, h]\n"
             "t: T[e, h] = exp(S[e, h] - M[i, h])\nz: Z[i, h] += T[e, h]\n"
             "p: P[e, h] = T[e, h] / Z[i, h]\n");
    bind(w, "E.start", starts, WEFT_I64, 1, DIMS(4), NULL);
    bind(w, "S", w->user, WEFT_F64, 2, DIMS(4, 2), DIMS(0, 1));
    DO(weft_run(w->args));
    check_double(w, "P", 3, 0.5);
}

SCENARIO(results_of_the_run_before_stay_when_a_run_fails)
{
    start(w, spmv);
    bind_csr(w);
    DO(weft_run(w->args));
    bind(w, "X", w->user + 4, WEFT_F64, 1, DIMS(4), NULL);
    if (weft_run(w->args) != WEFT_OK) {
        CHECK(w->j.failed > 0);
        stop_failing(w);
        check_double(w, "Y", 0, 4);
        DO(weft_run(w->args));
    }
    check_double(w, "Y", 0, 1.5 * 4 + 2 * 6);
}

SCENARIO(atoms_are_made_and_their_neighbours_found)
{
    weft_atoms a;
    weft_neighbours e;

    DO(weft_atoms_make(w->ctx, "water:molecules=2", &a));
    DO(weft_atoms_write(w->ctx, &a, test_path("a.xyz")));
    DO(weft_atoms_make(w->ctx, test_path("a.xyz"), &a));
    DO(weft_neighbours_make(w->ctx, &a, 3, WEFT_I32, &e));
    DO(weft_neighbours_write(w->ctx, test_path("a.npz")));
    CHECK(e.n == 6 && e.nnz >= 12);
}

SCENARIO(a_graph_is_made_and_goes_through_a_file)
{
    weft_graph g;

    DO(weft_graph_make(w->ctx, "powerlaw:n=20:nnz=60", WEFT_I32, &g));
    DO(weft_graph_write(w->ctx, test_path("g.npz")));
    DO(weft_graph_make(w->ctx, "rmat:n=20:nnz=60", WEFT_I64, &g));
    DO(weft_graph_write(w->ctx, test_path("g.mtx")));
    DO(weft_graph_make(w->ctx, test_path("g.npz"), WEFT_I64, &g));
    CHECK_EQ(g.nnz, 60);
    DO(weft_graph_make(w->ctx, test_path("g.mtx"), WEFT_I64, &g));
}

/* An environment in which the machine is guessed, and no other one is kept. */
static const char *no_compiler(const char *name)
{
    return strcmp(name, "WEFT_DISABLE_JIT") == 0 ? "1" : NULL;
}

SCENARIO(a_cost_is_estimated)
{
    weft_machine m;
    weft_cost cost;
    int64_t shape[1];

    w->j.getenv = no_compiler;
    start(w, spmv);
    bind_csr(w);
    DO(weft_machine_get(w->ctx, 0, &m));
    CHECK_EQ(m.measured, 0);
    DO(weft_args_shape(w->args, "Y", shape));
    CHECK_EQ(shape[0], 3);
    DO(weft_args_cost(w->args, 1, &cost));
    CHECK_SAME(cost.flops, 8);
}

/* What the caller has is not written by a call that fails: x, y, h, m, then results from 24 on. */
SCENARIO(a_convolution_over_edges_and_its_gradients)
{
    static const int32_t to[] = { 1, 0, 1 }, from[] = { 0, 1, 1 };
    weft_edge_list list = { 2, 2, 3, WEFT_I32, to, from };
    double *x = w->user, *z = w->user + 24;
    weft_conv_in at = { x, x + 4, x + 8, x + 16 };
    weft_conv_out d = { .x = z + 8, .y = z + 12, .w = z + 16, .m = z + 24 };
    weft_edges *edges;
    weft_conv *conv;

    w->j.getenv = no_compiler;
    DO(weft_edges_new(w->ctx, &list, &edges));
    DO(weft_conv_new(w->ctx, "conv; in1=2x0e; in2=0e; out=2x0e; mode=uvu; hidden=2; type=f64",
                     &conv));
    DO(weft_conv_forward(conv, edges, &at, z));
    CHECK_SAME(z[0], x[2] * x[5] * (x[10] * x[16] + x[11] * x[18]));
    DO(weft_conv_backward(conv, edges, &at, z, &d));
    CHECK_SAME(z[8], x[4] * z[2] * (x[8] * x[16] + x[9] * x[18]));
    weft_conv_free(conv);
    weft_edges_free(edges);
}

int main(int argc, char **argv)
{
    int code = test_main(argc, argv);

    fprintf(stderr, "%ld points of failure\n", points);
    return code;
}
