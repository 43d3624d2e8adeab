/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft bench: verifies a problem, then times it, beside another one if asked, and says how far that
 * is from what the machine can do. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 500, WARM = 2 };

typedef struct Options {
    const char *problem[64], *baseline, *target; /* target NULL: this machine */
    int n;
    double seconds;
    bool json, again, verify;
} Options;

typedef struct Timing {
    double *round; /* seconds of each */
    int n, inner;  /* runs in a round: of short ones several */
    double median;
} Timing;

typedef struct Result {
    weft_cost cost;
    const char *verified;
    double plan_s, compile_s, seconds, baseline_s;
    double entries, bytes; /* of the graph, or 0; of memory that runs need besides the arrays */
} Result;

static bool run(Problem *p, weft_args *args)
{
    if (weft_kernel_run(p->kernel, args) == WEFT_OK)
        return true;
    cli_failed(p->ctx);
    return false;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *a, int n)
{
    qsort(a, (size_t)n, sizeof *a, by_value);
    return n % 2 == 1 ? a[n / 2] : (a[n / 2 - 1] + a[n / 2]) / 2;
}

static bool time_round(Problem *p, Timing *t)
{
    double begin = problem_now();

    for (int i = 0; i < t->inner; i++)
        if (!run(p, p->args))
            return false;
    t->round[t->n++] = (problem_now() - begin) / t->inner;
    return true;
}

/* Seconds after which a kernel has code for its sizes. */
#define HOT 0.15

/* How many runs make a round of about a millisecond; warms up, too. */
static bool warm(Problem *p, Timing *t)
{
    double all = problem_now(), begin, took = 1;

    for (int i = 0; i < WARM || problem_now() - all < HOT; i++) {
        begin = problem_now();
        if (!run(p, p->args))
            return false;
        took = problem_now() - begin;
    }
    t->inner = took < 1e-3 ? (int)(1e-3 / fmax(took, 1e-6)) : 1;
    return true;
}

/* In turns, so that what disturbs the one disturbs the other; q may be NULL. */
static bool time_both(Problem *p, Problem *q, double seconds, Result *r)
{
    double room[2][MOST_ROUNDS], begin;
    Timing t[2] = { { .round = room[0] }, { .round = room[1] } };

    if (!warm(p, &t[0]) || (q != NULL && !warm(q, &t[1])))
        return false;
    begin = problem_now();
    for (int i = 0; i < MOST_ROUNDS && (i < LEAST_ROUNDS || problem_now() - begin < seconds); i++)
        if (!time_round(p, &t[0]) || (q != NULL && !time_round(q, &t[1])))
            return false;
    r->seconds = median(t[0].round, t[0].n);
    r->baseline_s = q != NULL ? median(t[1].round, t[1].n) : 0;
    return true;
}

/* The first run compiles what it needs besides, the first of new arguments plans. */
static bool time_first(Problem *p, double *first, double *planned)
{
    double begin = problem_now();
    weft_args *args;
    bool good;

    if (!run(p, p->args))
        return false;
    *first = problem_now() - begin;
    args = problem_bind(p, true);
    if (args == NULL)
        return false;
    begin = problem_now();
    good = run(p, args);
    *planned = problem_now() - begin;
    weft_args_free(args);
    return good;
}

static bool measure(Problem *p, Problem *q, const Options *o, Result *r)
{
    double first, planned;
    weft_plan plan;

    if (!time_first(p, &first, &planned))
        return false;
    if (weft_args_cost(p->args, p->threads, &r->cost) != WEFT_OK)
        r->cost = (weft_cost){ 0 }; /* not known: columns stay empty */
    r->verified = o->verify ? bench_verify(p, r->cost.flops) : "no";
    if (o->target != NULL)
        r->cost = (weft_cost){ 0 }; /* that of this machine says nothing about a device */
    if (r->verified == NULL || !time_both(p, q, o->seconds, r))
        return false;
    r->entries = (double)p->graph.nnz;
    r->bytes = weft_args_plan(p->args, &plan) == WEFT_OK ? (double)plan.bytes : NAN;
    r->plan_s = fmax(planned - r->seconds, 0);
    r->compile_s = p->compile_s + fmax(first - planned, 0);
    return true;
}

/* The numbers of a result, in the order of both kinds of output. */
typedef struct Column {
    const char *head, *key;
    double value;
    const char *format;
} Column;

enum { COLUMNS = 12 };

static void fill(const Result *r, Column out[COLUMNS])
{
    const weft_cost *c = &r->cost;
    const double unknown = NAN, bytes = c->read + c->written;
    const bool known = c->limit_s > 0;
    const Column column[COLUMNS] = {
        { "ms", "ms", r->seconds * 1e3, "%.4g" },
        { "us/entry", "us_entry", r->entries > 0 ? r->seconds * 1e6 / r->entries : unknown,
          "%.3g" },
        { "GFLOP/s", "gflops", known ? c->flops / r->seconds / 1e9 : unknown, "%.3g" },
        { "GB/s", "gbs", known ? bytes / r->seconds / 1e9 : unknown, "%.3g" },
        { "gathered", "gathered_gbs", known ? c->gathered / r->seconds / 1e9 : unknown, "%.3g" },
        { "limit ms", "limit_ms", known ? c->limit_s * 1e3 : unknown, "%.4g" },
        { "share %", "share", known ? c->limit_s / r->seconds * 100 : unknown, "%.0f" },
        { "model ms", "predicted_ms", known ? c->predicted_s * 1e3 : unknown, "%.4g" },
        { "plan ms", "plan_ms", r->plan_s * 1e3, "%.3g" },
        { "plan MB", "plan_mb", r->bytes / 1e6, "%.3g" },
        { "compile ms", "compile_ms", r->compile_s * 1e3, "%.3g" },
        { "baseline x", "baseline", r->baseline_s > 0 ? r->baseline_s / r->seconds : unknown,
          "%.3g" },
    };

    memcpy(out, column, sizeof column);
}

static void put_json(const Problem *p, const Result *r, const Options *o)
{
    Column column[COLUMNS];

    fill(r, column);
    printf("{\"problem\": ");
    cli_json(p->text);
    printf(", \"m\": %lld, \"n\": %lld, \"nnz\": %lld, \"threads\": %d, \"verified\": ",
           (long long)p->graph.m, (long long)p->graph.n, (long long)p->graph.nnz, p->threads);
    cli_json(r->verified);
    if (o->baseline != NULL) {
        printf(", \"against\": ");
        cli_json(o->baseline);
    }
    for (int i = 0; i < COLUMNS; i++)
        if (!isnan(column[i].value))
            printf(", \"%s\": %.6g", column[i].key, column[i].value);
    printf("}\n");
}

static void put_line(const Problem *p, const Result *r, bool head)
{
    Column column[COLUMNS];
    char cell[32];

    fill(r, column);
    for (int i = 0; head && i < COLUMNS; i++)
        printf("%11s", column[i].head);
    if (head)
        printf("  %-11s  problem\n", "verified");
    for (int i = 0; i < COLUMNS; i++) {
        if (isnan(column[i].value))
            snprintf(cell, sizeof cell, "-");
        else
            snprintf(cell, sizeof cell, column[i].format, column[i].value);
        printf("%11s", cell);
    }
    printf("  %-11s  %s\n", r->verified, p->text);
    fflush(stdout);
}

/* Whose times these are, before the first of them. */
static bool is_on_target(const Problem *p, const Options *o, int i)
{
    weft_info info;

    if (o->target == NULL)
        return true;
    if (weft_kernel_info(p->kernel, &info) != WEFT_OK)
        return cli_failed(p->ctx) == EXIT_GOOD;
    if (strcmp(info.target, "interp") == 0) {
        fprintf(stderr, "weft: error: %s\n", info.why);
        return false;
    }
    if (i == 0)
        fprintf(stderr,
                "weft: note: these are times of %s on %s, with the copies from and to the host; "
                "they are not times of a kernel on a GPU\n",
                o->target, info.isa);
    return true;
}

static int bench_one(const Options *o, int i)
{
    Problem p, q = { .ctx = NULL };
    Result r = { .seconds = 0 };
    int code = EXIT_FAILED;

    if (!problem_parse(&p, o->problem[i]) ||
        (o->baseline != NULL && !problem_parse(&q, o->baseline)))
        return EXIT_USAGE;
    p.target = q.target = o->target;
    if (problem_open(&p, NULL) && (o->baseline == NULL || problem_open(&q, NULL)) &&
        is_on_target(&p, o, i) && measure(&p, o->baseline != NULL ? &q : NULL, o, &r)) {
        code = EXIT_GOOD;
        if (o->json)
            put_json(&p, &r, o);
        else
            put_line(&p, &r, i == 0);
    }
    problem_close(&p);
    problem_close(&q);
    return code;
}

/* What the numbers of a line are, which begins with this word; "": it has none to explain. */
static const char *unit_of(const char *line)
{
    static const char *const unit[][2] = {
        { "cache ", "bytes" }, { "clock ", "GHz" }, { "fma ", "GFLOP/s" },
        { "call ", "1e9 results/s" },
        { "stream ", "GB/s" }, { "gather ", "GB/s" },
    };

    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (strncmp(line, unit[i][0], strlen(unit[i][0])) == 0)
            return unit[i][1];
    return "";
}

/* The text of a machine, with a unit behind each line that has numbers. */
static void put_machine(const char *text)
{
    printf("# rates are those of one thread, then of one thread for each CPU\n");
    for (const char *s = text; *s != 0;) {
        int n = (int)strcspn(s, "\n");
        const char *unit = unit_of(s);

        if (unit[0] != 0)
            printf("%-36.*s  %s\n", n, s, unit);
        else
            printf("%.*s\n", n, s);
        s += n + (s[n] != 0);
    }
}

static int machine(const Options *o)
{
    weft_ctx *ctx = cli_ctx();
    weft_machine m;
    int code = EXIT_GOOD;

    if (weft_machine_get(ctx, o->again, &m) != WEFT_OK) {
        code = cli_failed(ctx);
    } else {
        if (weft_warning(ctx)[0] != 0)
            fprintf(stderr, "weft: note: %s\n", weft_warning(ctx));
        put_machine(m.text);
    }
    cli_free(ctx);
    return code;
}

static int parse(const Command *c, Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        char *end = NULL;

        if (strcmp(arg, "--json") == 0)
            o->json = true;
        else if (strcmp(arg, "--again") == 0)
            o->again = true;
        else if (strcmp(arg, "--no-verify") == 0)
            o->verify = false;
        else if (strcmp(arg, "--baseline") == 0 && i + 1 < argc)
            o->baseline = argv[++i];
        else if (strcmp(arg, "-t") == 0 && i + 1 < argc)
            o->target = argv[++i];
        else if (strcmp(arg, "--seconds") == 0 && i + 1 < argc)
            o->seconds = strtod(argv[++i], &end);
        else if (arg[0] == '-')
            return cli_usage(c, "there is no option %s, or a word is missing after it", arg);
        else if (o->n == (int)(sizeof o->problem / sizeof *o->problem))
            return cli_usage(c, "at most %d problems", o->n);
        else
            o->problem[o->n++] = arg;
        if (end != NULL && (*end != 0 || !(o->seconds >= 0 && o->seconds <= 3600)))
            return cli_usage(c, "--seconds wants a number, 0 to 3600");
    }
    return o->n > 0 ? EXIT_GOOD : cli_usage(c, "a problem is missing");
}

static int bench(const Command *c, int argc, char **argv)
{
    Options o = { .seconds = 0.5, .verify = true };
    int code = parse(c, &o, argc, argv);

    if (code != EXIT_GOOD)
        return code;
    if (strcmp(o.problem[0], "machine") == 0)
        return o.n == 1 ? machine(&o) : cli_usage(c, "machine stands alone");
    for (int i = 0; i < o.n && code == EXIT_GOOD; i++)
        code = bench_one(&o, i);
    return code;
}

const Command cmd_bench = {
    "bench",
    "verify and time a problem, or measure the machine",
    "usage: weft bench PROBLEM... [-t TARGET] [--baseline PROBLEM] [--seconds S]\n"
    "                             [--no-verify] [--json]\n"
    "       weft bench machine [--again]\n\n"
    "A problem is words with colons between them:\n\n"
    "  spmm, sddmm, ...  an operator of weft list ops, and its options (weft list options);\n"
    "  file:PATH         or a program\n"
    "  tp:NAME           or a tensor product: a name, or IN1*IN2>OUT; then a mode (uvu), item,\n"
    "                    shared or none for its weights, a type, a layout, backward or double;\n"
    "                    n items. It has no graph\n"
    "  conv:NAME         or such a product on the edges of a graph, summed; system=silicon,\n"
    "                    water, oxide or a crystal, atoms=512, cutoff=5: whose neighbours;\n"
    "                    hidden=64: features that weights are made of\n"
    "  a.mtx, a.npz      a graph: a file;\n"
    "  powerlaw:n=..:..  or a generator and its parameters, see weft gen --help\n"
    "  k=128, NAME=N     sizes; k is the operators' f. Others are those of the graph\n"
    "  i32, i64          indices; i32 without a word\n"
    "  t=2               threads; without it, one for each CPU\n"
    "  sched=TEXT        how loops are arranged, \"sched=tile 8; ahead 0\" (weft list steps)\n"
    "  hold=A            an input whose elements do not change from run to run\n"
    "  data=FILE.npz     instead of a graph, the structure arrays of the program by their names:\n"
    "                    for structures that are no matrix (three coordinates, n:m, several\n"
    "                    axes); sizes that these do not tell are words, NAME=N\n\n"
    "The result is compared with the interpreter's, or of a large problem with that of a plain\n"
    "loop, or the program is verified on a small graph. Then it is timed; a line has medians.\n\n"
    "  -t TARGET     for opencl, on a device: a time with the copies from and to the host\n"
    "  --baseline P  time another problem in turns; the last column is its time over this one's\n"
    "  --seconds S   for timing, at least 5 rounds; 0.5 without it\n"
    "  --no-verify   do not compare\n"
    "  --json        one object a line\n"
    "  --again       measure the machine anew; what was measured is kept in the cache directory\n\n"
    "docs/bench.md has what the columns mean and how they are measured.\n\n"
    "examples:\n"
    "  weft bench spmm:graph.mtx:k=128:f32:t=2\n"
    "  weft bench sddmm:powerlaw:n=169000:nnz=2300000:a=2.1:k=64:t=1 --json\n"
    "  weft bench file:mine.weft:graph.npz:feat=64 --baseline spmm:graph.npz:k=64\n"
    "  weft bench file:mttkrp_csf.weft:data=csf.npz:f=16\n"
    "  weft bench tp:mace-large:n=2000:t=1 tp:'8x0e+8x1o*0e+1o>0e+1o':uvu:backward\n"
    "  weft bench conv:sevennet0-main:system=water:atoms=1000:backward:t=1\n"
    "  weft bench machine\n",
    bench,
};
