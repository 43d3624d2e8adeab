/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tuning of kernels: what is searched, kept and used again.  The clock is made up: a run takes as
 * long as the test says for its schedule. */
#include "unit/kernel_bed.h"

#include "tune/tune.h"
#include "unit/trap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 40, COLUMNS = 50, MEAN = 6, WIDE = 32 };

static Os fake; /* the system, but for its clock and, where compiles are counted, its CPUs */
static _Atomic int64_t now_ns; /* compilers ask for it, too, as often as they like */
static const char *fast; /* a run whose schedule has this takes 2 ms, any other 5 */
static int told, stop_after;
static bool brief; /* a search ends when its best is a fast one */
static char wrong[8000], cache[200];
static bool homeless; /* there is no directory for a cache */

static int64_t start[ROWS + 1], col[ROWS * 2 * MEAN];
static float a[ROWS * 2 * MEAN], b[COLUMNS * WIDE], c[COLUMNS * WIDE], want[ROWS * WIDE];

static int64_t fake_clock(const Os *os, int id)
{
    const char *sched = kernel != NULL ? kernel->sched : NULL;
    int64_t step = sched != NULL && fast != NULL && strstr(sched, fast) != NULL ? 2000000 : 5000000;

    (void)os;
    if (id == CLOCK_REALTIME)
        return os_libc.clock(&os_libc, id);
    return atomic_fetch_add(&now_ns, step) + step;
}

static int one_cpu(const Os *os)
{
    (void)os;
    return 1;
}

static const char *environment(const Os *os, const char *name)
{
    (void)os;
    if (homeless && (strstr(name, "CACHE") != NULL || strcmp(name, "HOME") == 0))
        return NULL;
    return strcmp(name, "WEFT_CACHE_DIR") == 0 ? cache
           : strcmp(name, "WEFT_CFLAGS") == 0  ? "-O0" /* compiles faster */
           : more_name != NULL && strcmp(name, more_name) == 0 ? more_value
                                                               : getenv(name);
}

static void fill_values(void)
{
    for (int64_t e = 0; e < start[ROWS]; e++)
        a[e] = (float)(e % 17) / 8 - 1;
    for (int i = 0; i < COLUMNS * WIDE; i++)
        b[i] = (float)(i % 13) / 8 - 1;
    memset(want, 0, sizeof want);
    for (int i = 0; i < ROWS; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            for (int k = 0; k < WIDE; k++)
                want[i * WIDE + k] += a[e] * b[col[e] * WIDE + k];
}

/* Columns may occur twice in a row, which few formats can hold. */
static void fill(uint64_t seed)
{
    for (int i = 0; i < ROWS; i++) {
        start[i + 1] = start[i] + MEAN + (i % 3 - 1);
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            col[e] = (int64_t)(test_random(&seed) % 8) + (e - start[i]) * 6;
    }
    fill_values();
}

static void bind_all(void)
{
    bind("J.start", start, WEFT_I64, 1, SHAPE(ROWS + 1));
    bind("J.coord", col, WEFT_I64, 1, SHAPE(start[ROWS]));
    bind("A", a, WEFT_F32, 1, SHAPE(start[ROWS]));
    bind("B", b, WEFT_F32, 2, SHAPE(COLUMNS, WIDE));
    bind("C", c, WEFT_F32, 2, SHAPE(ROWS, WIDE));
}

static void close_tune(void)
{
    kernel = NULL; /* which the clock asks, to the last */
    close_prog();
}

static void make_context(void)
{
    close_tune();
    fake = os_libc;
    fake.clock = fake_clock;
    fake.getenv = environment;
    ctx = api_ctx_new(&fake);
    CHECK(ctx != NULL);
    OK(weft_ctx_threads(ctx, 2));
}

static void open_text(const char *text)
{
    make_context();
    OK(weft_prog_parse(ctx, "test.weft", text, strlen(text), &prog));
    OK(weft_args_new(prog, &args));
    OK(weft_kernel_compile(prog, &kernel));
}

/* A product of its own in a new context; records stay on disk. */
static void open_spmm(uint64_t seed)
{
    fill(seed);
    open_text(spmm);
    bind_all();
}

static const char *record_path(void)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/tuned.txt", cache);
    return path;
}

/* No records; kernels of other tests stay. */
static void begin(void)
{
    snprintf(cache, sizeof cache, "%s", test_path("tune"));
    unlink(record_path());
    more_name = NULL;
    fast = NULL;
    homeless = brief = false;
    stop_after = told = 0;
    wrong[0] = 0;
}

static int tell(void *user, const weft_tuning *t)
{
    (void)user;
    told++;
    if (strcmp(t->what, "wrong") == 0)
        snprintf(wrong + strlen(wrong), sizeof wrong - strlen(wrong), "%s: %.200s\n", t->schedule,
                 t->why);
    if (brief && t->best != NULL && strncmp(t->best, fast, strlen(fast)) == 0)
        return 1;
    return stop_after > 0 && told >= stop_after;
}

static weft_tuned tune_it(int top)
{
    weft_tune opt = { .top = top, .seconds = 1e6, .tell = tell };
    weft_tuned out;

    OK(weft_kernel_tune(kernel, args, &opt, &out));
    return out;
}

static void check_product(void)
{
    for (int i = 0; i < ROWS * WIDE; i++)
        CHECK_SAME((double)c[i], (double)want[i]);
}

static void run_it(void)
{
    memset(c, 0x55, sizeof c);
    OK(weft_kernel_run(kernel, args));
    check_product();
}

/* The schedule of the last run. */
static const char *used(void)
{
    return kernel->last->key.sched == NULL ? "default" : kernel->last->key.sched;
}

TEST(tuning_finds_keeps_and_uses_the_fastest)
{
    weft_tuned t;
    FILE *f;
    char line[800];

    begin();
    fast = "ahead 0";
    open_spmm(1);
    memset(c, 0x55, sizeof c);
    t = tune_it(6);
    CHECK_STR(t.schedule, "ahead 0");
    CHECK_NEAR(t.seconds, 0.002, 1e-9);
    CHECK_NEAR(t.default_s, 0.005, 1e-9);
    CHECK_NEAR(t.pick_s, 0.002, 1e-9);
    CHECK(t.points > 8 && t.timed > 3 && t.timed <= t.compiled && t.wrong == 0 && !t.stopped);
    check_product(); /* as after a run */
    CHECK_STR(used(), "ahead 0");
    run_it();
    CHECK_STR(used(), "ahead 0");
    f = fopen(record_path(), "r");
    CHECK(f != NULL && fgets(line, sizeof line, f) != NULL);
    CHECK_HAS(line, "weft-tuned 1 spmm program=");
    CHECK_HAS(line, " threads=2 us=2000 default_us=5000 ");
    CHECK_HAS(line, "schedule=\"ahead 0\"");
    CHECK(fgets(line, sizeof line, f) == NULL);
    fclose(f);

    open_spmm(1); /* another context, and another process too */
    run_it();
    CHECK_STR(used(), "ahead 0");
    open_spmm(2); /* another graph of the same kind */
    run_it();
    CHECK_STR(used(), "ahead 0");
    OK(weft_ctx_threads(ctx, 1)); /* another machine, as far as records go */
    open_text(spmm);
    OK(weft_ctx_threads(ctx, 1));
    bind_all();
    run_it();
    CHECK_STR(used(), "default");
    close_tune();
}

TEST(a_schedule_of_the_caller_comes_first)
{
    begin();
    fast = "ahead 0";
    open_spmm(1);
    tune_it(4);
    OK(weft_kernel_schedule(kernel, "tile 4"));
    run_it();
    CHECK_STR(used(), "tile 4");
    CHECK_STR(tune_it(4).schedule, "ahead 0"); /* it may tune all the same */
    check_product();
    run_it();
    CHECK_STR(used(), "tile 4");
    OK(weft_kernel_schedule(kernel, NULL));
    run_it();
    CHECK_STR(used(), "ahead 0");
    close_tune();
}

/* Blocks of 4 x 4 on the diagonal, two for each row of blocks. */
static void fill_blocks(void)
{
    for (int i = 0; i < ROWS; i++) {
        start[i + 1] = start[i] + 8;
        for (int e = 0; e < 8; e++)
            col[start[i] + e] = i / 4 * 4 + e;
    }
    fill_values();
}

TEST(a_format_is_found_checked_and_used)
{
    weft_tuned t;

    begin();
    fast = "format J";
    brief = true;
    fill_blocks();
    open_text(spmm);
    bind_all();
    t = tune_it(8);
    CHECK_HAS(t.schedule, "format J ");
    CHECK_EQ(t.wrong, 0);
    check_product();
    run_it();
    CHECK_HAS(used(), "format J ");
    close_tune();
}

/* Where values are brought into order once, another schedule is the fastest. */
TEST(what_is_held_has_records_of_its_own)
{
    begin();
    fast = "ahead 0";
    open_spmm(1);
    OK(weft_args_hold(args, "A", 1));
    CHECK_STR(tune_it(4).schedule, "ahead 0");
    run_it();
    CHECK_STR(used(), "ahead 0");
    open_spmm(1);
    run_it();
    CHECK_STR(used(), "default");
    open_spmm(1);
    OK(weft_args_hold(args, "A", 1));
    run_it();
    CHECK_STR(used(), "ahead 0");
    close_tune();
}

static double predicted(const char *schedule)
{
    const weft_point *p;
    int n;

    OK(weft_kernel_space(kernel, args, &p, &n));
    for (int i = 0; i < n; i++)
        if (strcmp(p[i].schedule, schedule) == 0)
            return p[i].predicted_s;
    return 0;
}

TEST(the_model_knows_what_is_held)
{
    double each, once, plain;

    begin();
    fill_blocks();
    open_text(spmm);
    bind_all();
    each = predicted("format J bsr(4, 4)");
    plain = predicted("");
    OK(weft_args_hold(args, "A", 1));
    once = predicted("format J bsr(4, 4)");
    CHECK(once > 0 && once < 0.9 * each);
    CHECK(predicted("") == plain);
    OK(weft_args_hold(args, "A", 0));
    OK(weft_args_hold(args, "B", 1));
    CHECK(predicted("format J bsr(4, 4)") == each);
    close_tune();
}

/* A rule of the user's, and steps, are in the space of a kernel that has them. */
TEST(the_kernels_own_schedule_is_in_its_space)
{
    static const char rule[] =
        "format J mine(d = 16) { part low where j < d; axis I = m, E(I) = seg : j < n sorted; "
        "part high; axis I = m, E(I) = seg : j < n sorted }";
    char text[400];

    begin();
    open_spmm(1);
    CHECK(predicted(rule) == 0);
    snprintf(text, sizeof text, "tile 2; %s\nsplit c.k 16 # by sixteen\nreorder c.i c.k.0 c.j c.k.1",
             rule);
    OK(weft_kernel_schedule(kernel, text));
    CHECK(predicted(rule) > 0);
    CHECK(predicted("split c.k 16; reorder c.i c.k.0 c.j c.k.1") > 0);
    CHECK(predicted("") > 0);
    OK(weft_kernel_schedule(kernel, "split c.k 16"));
    fast = "split c.k 16";
    brief = true;
    CHECK_HAS(tune_it(24).schedule, "split c.k 16");
    close_tune();
}

TEST(temporaries_that_need_not_be_stored_are_a_choice)
{
    static const char text[] = "program p(n, f)\naxis I = n, K = f\nf32 X[I, K], Y[I, K]\n"
                               "temp f32 T[I, K]\nt: T[i, k] = 2 * X[i, k]\n"
                               "y: Y[i, k] = T[i, k] + 1\n";

    begin();
    open_text(text);
    bind("X", b, WEFT_F32, 2, SHAPE(COLUMNS, WIDE));
    bind("Y", c, WEFT_F32, 2, SHAPE(COLUMNS, WIDE));
    CHECK(predicted("compute_inline t") > 0);
    CHECK(predicted("compute_inline y") == 0);
    close_tune();
}

TEST(the_default_can_win)
{
    begin();
    open_spmm(1);
    CHECK_STR(tune_it(4).schedule, "");
    run_it();
    CHECK_STR(used(), "");
    close_tune();
}

TEST(a_new_kernel_of_the_same_arguments_is_planned_anew)
{
    weft_kernel *tuned, *other;

    begin();
    fast = "ahead 0";
    open_spmm(1);
    run_it();
    OK(weft_kernel_compile(prog, &other));
    tune_it(4);
    tuned = kernel;
    OK(weft_kernel_run(other, args));
    check_product();
    OK(weft_kernel_run(tuned, args));
    check_product();
    CHECK_STR(used(), "ahead 0");
    weft_kernel_free(tuned);
    kernel = other;
    run_it();
    close_tune();
}

/* Sums of an inout grow with each run: tuning counts as one. */
TEST(an_inout_is_as_after_one_run)
{
    static const char text[] = "program add(m, n, f)\n"
                               "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                               "f32 A[I, J], B[n, K]\ninout f32 C[I, K]\n"
                               "c: C[i, k] += A[i, j] * B[j, k]\n";

    begin();
    fast = "ahead 0";
    brief = true;
    fill(1);
    open_text(text);
    bind_all();
    for (int i = 0; i < ROWS * WIDE; i++)
        c[i] = 1;
    CHECK_STR(tune_it(4).schedule, "ahead 0");
    for (int i = 0; i < ROWS * WIDE; i++)
        CHECK_SAME((double)c[i], (double)want[i] + 1);
    close_tune();
}

TEST(results_in_the_librarys_memory_can_be_read_after_tuning)
{
    weft_tensor t;

    begin();
    fast = "tile 1";
    open_spmm(3);
    OK(weft_args_bind(args, "C", NULL));
    tune_it(6);
    OK(weft_args_get(args, "C", &t));
    CHECK_EQ(t.shape[0], ROWS);
    memcpy(c, t.data, sizeof want);
    check_product();
    close_tune();
}

TEST(a_stopped_search_keeps_the_best_so_far)
{
    weft_tuned t;
    int all;

    begin();
    fast = "ahead";
    open_spmm(1);
    tune_it(4);
    all = told;
    for (stop_after = all - 1; stop_after > 0; stop_after -= (all + 3) / 4) {
        told = 0;
        t = tune_it(4);
        CHECK(t.stopped);
        check_product();
        run_it();
    }
    stop_after = 1; /* before anything was compared: nothing new is kept */
    told = 0;
    unlink(record_path());
    CHECK_EQ(tune_it(4).timed, 1);
    CHECK(access(record_path(), F_OK) != 0);
    close_tune();
}

/* A compiler that gets one step wrong, the one that would be the fastest, and fails for another. */
TEST(what_is_wrong_or_does_not_compile_is_dropped)
{
    static char path[300];
    FILE *f;

    begin();
    snprintf(path, sizeof path, "%s", test_path("wrong_cc"));
    f = fopen(path, "w");
    CHECK(f != NULL);
    fputs("#!/bin/sh\nsed '/weft_div_i64(16384,/,$ s/ = a_A\\[v_j\\];/ = 2 * a_A[v_j];/\n"
          "/weft_div_i64(1024,/ s/^/#error no\\n/' | exec cc \"$@\"\n",
          f);
    fclose(f);
    CHECK_EQ(chmod(path, 0700), 0);
    more_name = "WEFT_CC";
    more_value = path;
    fast = "ahead 1";
    open_spmm(1);
    CHECK(tune_it(8).wrong >= 2);
    CHECK_HAS(wrong, "ahead 16384: element ");
    CHECK_HAS(wrong, "of C is ");
    CHECK_HAS(wrong, "ahead 1024: ");
    CHECK_HAS(wrong, "the C compiler");
    run_it();
    check_product();
    CHECK(strcmp(used(), "ahead 16384") != 0 && strcmp(used(), "ahead 1024") != 0);
    close_tune();
}

static char notes[2000];

static void note(void *user, const char *line)
{
    (void)user;
    if (strncmp(line, "weft,records,", 13) == 0)
        snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", line);
}

TEST(damaged_records_are_passed_over)
{
    FILE *f;

    begin();
    fast = "ahead 0";
    open_spmm(1);
    tune_it(4);
    f = fopen(record_path(), "r+");
    CHECK(f != NULL && fseek(f, 30, SEEK_SET) == 0);
    fputc('#', f);
    fseek(f, 0, SEEK_END);
    fputs("not a record\n", f);
    fclose(f);
    open_spmm(1);
    notes[0] = 0;
    OK(weft_ctx_verbose(ctx, note, NULL));
    run_it();
    CHECK_STR(used(), "default");
    CHECK_HAS(notes, "tuned.txt,\"2 lines of it: not a record");
    tune_it(4); /* puts a good one behind them */
    open_spmm(1);
    run_it();
    CHECK_STR(used(), "ahead 0");
    close_tune();
}

/* A record of a later version, whose schedule this one does not know. */
TEST(a_record_that_does_not_read_is_not_used)
{
    Err err = { .code = ST_OK };
    Arena arena;
    TuneRecords all = { .arena = &arena };
    Text text = { .arena = &arena };

    begin();
    fast = "ahead 0";
    open_spmm(1);
    tune_it(4);
    arena_init(&arena, &os_libc, &err);
    CHECK_EQ(CATCH(&err, tune_records_add(&all, file_read(&arena, record_path(), 1 << 20))), ST_OK);
    CHECK_EQ(all.n, 1);
    all.r[0].schedule = "frobnicate 3";
    tune_record_print(&text, &all.r[0]);
    CHECK_EQ(CATCH(&err, file_write(&arena, record_path(), text.s, text.n)), ST_OK);
    open_spmm(1);
    notes[0] = 0;
    OK(weft_ctx_verbose(ctx, note, NULL));
    run_it();
    CHECK_STR(used(), "default");
    CHECK_HAS(notes, "frobnicate");
    arena_free(&arena);
    close_tune();
}

TEST(records_of_files_are_put_together)
{
    const char *path[2], *text, *again;

    begin();
    fast = "ahead 0";
    open_spmm(1);
    tune_it(4);
    open_text("program twice(n)\nf32 X[n], Y[n]\ny: for i in n: Y[i] = 2 * X[i]\n");
    path[0] = record_path();
    path[1] = record_path();
    OK(weft_tuned_merge(ctx, path, 2, &text));
    CHECK_HAS(text, "weft-tuned 1 spmm");
    CHECK(strchr(text, '\n')[1] == 0); /* one line */
    text = write_text("merged.txt", text);
    path[0] = text;
    OK(weft_tuned_merge(ctx, path, 2, &again));
    CHECK(strchr(again, '\n')[1] == 0);
    CHECK_STR(weft_warning(ctx), "");
    path[0] = write_text("junk.txt", "junk\n");
    OK(weft_tuned_merge(ctx, path, 1, &again));
    CHECK_STR(again, "");
    CHECK_HAS(weft_warning(ctx), "1 line: not a record");
    path[0] = test_path("no such file");
    BAD(weft_tuned_merge(ctx, path, 1, &again), WEFT_E_IO, "no such file");
    CHECK(again == NULL);
    close_tune();
}

TEST(a_space_is_listed_best_first)
{
    const weft_point *p;
    int n, bare;
    bool plain = false;

    begin();
    open_spmm(1);
    OK(weft_kernel_space(kernel, args, &p, &n));
    CHECK(n > 8);
    for (int i = 0; i < n; i++) {
        CHECK(p[i].predicted_s > 0);
        CHECK(i == 0 || p[i - 1].predicted_s <= p[i].predicted_s);
        plain = plain || p[i].schedule[0] == 0;
    }
    CHECK(plain);
    OK(weft_kernel_space(kernel, NULL, &p, &bare));
    CHECK(bare >= n); /* without sizes no width of a row is too wide */
    CHECK_STR(p[0].schedule, "");
    CHECK(p[0].predicted_s == 0);
    close_tune();
}

TEST(what_cannot_be_tuned_is_refused)
{
    weft_tune opt = { .seconds = -1 };
    weft_args *other;

    begin();
    open_spmm(1);
    BAD(weft_kernel_tune(kernel, NULL, NULL, NULL), WEFT_E_ARG, "args is NULL");
    BAD(weft_kernel_tune(kernel, args, &opt, NULL), WEFT_E_ARG, "seconds");
    opt = (weft_tune){ .top = -1 };
    BAD(weft_kernel_tune(kernel, args, &opt, NULL), WEFT_E_ARG, "top");
    opt = (weft_tune){ .top = 4097 };
    BAD(weft_kernel_tune(kernel, args, &opt, NULL), WEFT_E_ARG, "top");
    opt = (weft_tune){ .seconds = 2e6 };
    BAD(weft_kernel_tune(kernel, args, &opt, NULL), WEFT_E_ARG, "seconds");
    OK(weft_args_bind(args, "B", NULL));
    BAD(weft_kernel_tune(kernel, args, NULL, NULL), WEFT_E_BIND, "B");
    OK(weft_args_new(prog, &other));
    bind_all();
    run_it();
    close_tune();
    more_name = "WEFT_DISABLE_JIT";
    more_value = "1";
    open_spmm(1);
    BAD(weft_kernel_tune(kernel, args, NULL, NULL), WEFT_E_LIMIT, "interpreted");
    close_tune();
}

/* What was found holds all the same, as long as the context lives. */
TEST(a_record_that_cannot_be_kept_holds_for_its_context)
{
    begin();
    homeless = true;
    fast = "ahead 0";
    brief = true;
    open_spmm(1);
    tune_it(4);
    CHECK_HAS(weft_warning(ctx), "is not kept in a cache directory");
    run_it();
    CHECK_STR(used(), "ahead 0");
    begin();
    fast = "ahead 0";
    brief = true;
    CHECK(mkdir(cache, 0700) == 0 || errno == EEXIST);
    CHECK_EQ(mkdir(record_path(), 0700), 0); /* no file can be there */
    open_spmm(1);
    tune_it(4);
    CHECK_HAS(weft_warning(ctx), "is not kept in ");
    CHECK_HAS(weft_warning(ctx), "tuned.txt: ");
    CHECK_EQ(rmdir(record_path()), 0);
    close_tune();
}

TEST(a_tree_of_loops_has_no_space)
{
    static const char text[] = "program p(n) stage loops\nf32 Y[n]\n"
                               "phase y for i in 0..n\n    Y[i] = 0.0\n";
    const weft_point *p;
    int n;

    begin();
    open_text(text);
    BAD(weft_kernel_space(kernel, NULL, &p, &n), WEFT_E_LIMIT, "is at stage loops");
    BAD(weft_kernel_space(kernel, NULL, NULL, &n), WEFT_E_ARG, "out is NULL");
    BAD(weft_kernel_space(kernel, NULL, &p, NULL), WEFT_E_ARG, "n is NULL");
    close_tune();
}

/* Panels, copies of them and formats go together: pack is a number here and no step. */
TEST(a_format_has_panels_too)
{
    begin();
    fill_blocks();
    open_text(spmm);
    bind_all();
    OK(weft_kernel_schedule(kernel, "format J bsr(4, 4); panel 16; pack 1; tile 1"));
    run_it();
    CHECK_HAS(used(), "pack 1");
    close_tune();
}

static int no_thread(const Os *os, pthread_t *out, void *(*fn)(void *), void *arg)
{
    (void)os, (void)out, (void)fn, (void)arg;
    return EAGAIN;
}

/* One compiler is enough, and time that is up after the first candidate, too. */
TEST(a_search_without_threads_for_compilers_goes_on)
{
    begin();
    fast = "ahead 0";
    open_spmm(1);
    run_it();
    fake.thread_new = no_thread;
    CHECK_STR(tune_it(4).schedule, "ahead 0");
    run_it();
    close_tune();
}

typedef struct Writer {
    pthread_t id;
    int i, bad;
} Writer;

enum { WRITERS = 4, LINES = 50 };

static bool keep_many(weft_ctx *own, weft_args *mine, int first)
{
    if (setjmp(*api_enter(own)) != 0)
        return false;
    for (int i = 0; i < LINES; i++) {
        TuneRecord r = { .seconds = 1, .default_s = 2, .when = i, .schedule = "tile 1" };

        api_tuned_keep(mine, mine->result->env, first + i, &r);
    }
    return api_leave(own) == WEFT_OK && weft_warning(own)[0] == 0;
}

/* Its own context; tunes, then adds many records. */
static void *write_records(void *arg)
{
    Writer *w = arg;
    weft_ctx *own = weft_ctx_new();
    weft_prog *p;
    weft_args *mine;
    weft_kernel *k;
    int64_t n = 4;
    float x[4] = { 1, 2, 3, 4 }, y[4];
    weft_tensor in = { x, WEFT_F32, 1, &n, NULL }, out = { y, WEFT_F32, 1, &n, NULL };
    weft_tune opt = { .seconds = 0.05, .top = 2 };
    const char *text = "program p(n)\nf32 X[n], Y[n]\ny: for i in n: Y[i] = 2 * X[i]\n";

    w->bad = weft_ctx_threads(own, 2) || weft_prog_parse(own, NULL, text, strlen(text), &p) ||
             weft_kernel_compile(p, &k) || weft_args_new(p, &mine) ||
             weft_args_bind(mine, "X", &in) || weft_args_bind(mine, "Y", &out);
    for (int i = 0; i < 3 && w->bad == 0; i++)
        w->bad = weft_kernel_tune(k, mine, &opt, NULL) || y[3] != 8;
    w->bad = w->bad || !keep_many(own, mine, 10 + w->i * LINES);
    weft_ctx_free(own);
    return NULL;
}

TEST(several_threads_tune_and_keep_at_the_same_time)
{
    Writer w[WRITERS];
    Err err = { .code = ST_OK };
    Arena arena;
    TuneRecords all = { .arena = &arena };
    char path[300];

    setenv("WEFT_CACHE_DIR", test_path("tune11"), 1);
    snprintf(path, sizeof path, "%s/tuned.txt", test_path("tune11"));
    for (int i = 0; i < WRITERS; i++) {
        w[i] = (Writer){ .i = i };
        CHECK_EQ(pthread_create(&w[i].id, NULL, write_records, &w[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        CHECK_EQ(pthread_join(w[i].id, NULL), 0);
        CHECK_EQ(w[i].bad, 0);
    }
    set_cache();
    arena_init(&arena, &os_libc, &err);
    CHECK_EQ(CATCH(&err, tune_records_add(&all, file_read(&arena, path, 1 << 20))), ST_OK);
    CHECK_EQ(all.damaged, 0);
    CHECK(all.n >= WRITERS * LINES && all.n <= WRITERS * LINES + 1);
    arena_free(&arena);
}

/* Memory that runs out anywhere: a status, nothing lost, and the arguments still run. */
TEST(tuning_without_memory_fails_and_leaves_all_as_it_was)
{
    weft_tune opt = { .top = 2, .seconds = 1 };
    int64_t failed = 1;
    int refused = 0;

    begin();
    fill(1);
    for (int64_t k = 1; failed > 0; k += 1 + k / 4) {
        Inject j;
        weft_status status;

        open_inject(&j, "WEFT_CACHE_DIR", cache);
        j.os.cpus = one_cpu; /* what compiles beside it would count too */
        j.os.clock = fake_clock;
        OK(weft_prog_parse(ctx, "test.weft", spmm, strlen(spmm), &prog));
        OK(weft_args_new(prog, &args));
        kernel = NULL;
        OK(weft_kernel_compile(prog, &kernel));
        bind_all();
        inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + k, false, ENOMEM);
        status = weft_kernel_tune(kernel, args, &opt, NULL);
        failed = j.failed;
        refused += status != WEFT_OK;
        if (status != WEFT_OK)
            CHECK_EQ(status, WEFT_E_NOMEM);
        run_it();
        kernel = NULL;
        close_inject(&j);
    }
    CHECK(refused > 10);
}
