/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_gpu: programs on GPU targets against the interpreter, with a line of counts for each. */
#include "gpu/run/run.h"
#include "unit/trap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: weft_gpu cuda|opencl LIST [OPTION...]\n"
    "LIST has lines NAME<tab>SCHEDULE; the program is NAME.weft beside it.\n"
    "options: -share N,K      one program in N, from the Kth\n"
    "         -rows KIND      small, deg32, rows96, rows160, skew, empty, long\n"
    "         -set NAME=SIZE  a size of the programs; *=SIZE: all others\n"
    "         -seed N         draws the arguments\n"
    "         -fail           each call of the CUDA runtime fails in turn\n"
    "         -serial         a phase on one block without a reason is a failure\n"
    "         -quiet          lines of failures alone\n";

typedef struct Options {
    const char *list;
    bool cuda, quiet, fail, serial;
    int share, from;
    Draw draw;
} Options;

typedef struct Tally {
    int passed, failed, refused, slow, serial;
} Tally;

typedef struct Case {
    Arena arena;
    Err err;
    char name[160], sched[400], path[600];
    weft_ctx *ctx;
    weft_prog *prog;
    weft_args *want, *args; /* interpreted; the same again */
    weft_status status;
    int64_t entries;
    double flops;
    const char *source;
    Env *env;
    int64_t *size;
    void **host, **device; /* by argument */
    size_t *bytes;
    bool bad;
} Case;

static void fail(Tally *t, Case *c, const char *what, const char *more)
{
    if (!c->bad)
        printf("==== %s, `%s`: %s%.1000s\n", c->name, c->sched, what, more);
    t->failed += !c->bad;
    c->bad = true;
}

/* ---- A program and its results by the interpreter. */

static bool open_case(Tally *t, Case *c, const Options *o)
{
    weft_cost cost;

    c->ctx = weft_ctx_new();
    if (c->ctx == NULL || weft_prog_read(c->ctx, c->path, &c->prog) != WEFT_OK ||
        weft_prog_schedule(c->prog, c->sched[0] != 0 ? c->sched : NULL) != WEFT_OK ||
        weft_args_new(c->prog, &c->want) != WEFT_OK ||
        weft_args_new(c->prog, &c->args) != WEFT_OK ||
        !draw_args(&c->arena, &o->draw, c->want, &c->entries) ||
        !draw_args(&c->arena, &o->draw, c->args, &c->entries)) {
        fail(t, c, "arguments: ", weft_message(c->ctx));
        return false;
    }
    c->status = weft_run(c->want);
    if (c->status != WEFT_OK && c->status != WEFT_E_RUN) {
        fail(t, c, "the interpreter: ", weft_message(c->ctx));
        return false;
    }
    c->flops = weft_args_cost(c->args, 1, &cost) == WEFT_OK ? cost.flops : 0;
    return true;
}

static void close_case(Case *c)
{
    if (c->ctx != NULL) {
        arena_free(&c->ctx->scratch);
        weft_ctx_free(c->ctx);
    }
    arena_free(&c->arena);
    free(c);
}

/* The error that an element may have, of the largest one. */
static double tolerance(Type type)
{
    return type == T_f64 ? 1e-11 : type == T_f32 ? 2e-5 : type == T_f16 ? 4e-3 : 3e-2;
}

static void compare(Tally *t, Case *c, const Arg *a, const void *data)
{
    weft_tensor w;
    Array got = { (void *)(uintptr_t)data, 1, a->type }, want;
    double most = 1e-3, off = 0;
    char text[200];

    if (weft_args_get(c->want, a->name, &w) != WEFT_OK) {
        fail(t, c, a->name, weft_message(c->ctx));
        return;
    }
    for (int d = 0; d < w.ndim; d++)
        got.n *= w.shape[d];
    want = (Array){ w.data, got.n, a->type };
    for (int64_t i = 0; i < got.n && !ir_type[a->type].floats; i++)
        if (ir_array_int(&got, i) != ir_array_int(&want, i)) {
            snprintf(text, sizeof text, "[%lld] is %lld, not %lld", (long long)i,
                     (long long)ir_array_int(&got, i), (long long)ir_array_int(&want, i));
            fail(t, c, a->name, text);
            return;
        }
    if (!ir_type[a->type].floats)
        return;
    for (int64_t i = 0; i < got.n; i++)
        if (isfinite(ir_array_float(&want, i)))
            most = fmax(most, fabs(ir_array_float(&want, i)));
    for (int64_t i = 0; i < got.n; i++) {
        const double g = ir_array_float(&got, i), x = ir_array_float(&want, i);

        off = fabs(g - x);
        if (g == x || (isnan(g) && isnan(x)) || off <= most * tolerance(a->type))
            continue;
        snprintf(text, sizeof text, "[%lld] is %.9g, not %.9g", (long long)i, g, x);
        fail(t, c, a->name, text);
        return;
    }
}

/* A program that builds structure is refused; so is a format that does not hold such a matrix,
 * for every target. */
static bool is_right(Case *c)
{
    char why[300];
    const char *text;

    snprintf(why, sizeof why, "%s", weft_message(c->ctx));
    return strstr(why, "is a built axis") != NULL ||
           (weft_prog_emit(c->prog, "c", WEFT_SOURCE, &text) != WEFT_OK &&
            strncmp(why, weft_message(c->ctx), 200) == 0);
}

/* ---- OpenCL, by the library. */

static void run_opencl(Tally *t, Case *c)
{
    const Body *body = c->args->body;
    weft_kernel *k;
    weft_tensor got;
    weft_status status;

    if (weft_ctx_target(c->ctx, "opencl") != WEFT_OK ||
        weft_kernel_compile(c->prog, &k) != WEFT_OK) {
        if (!is_right(c))
            fail(t, c, "no kernel: ", weft_message(c->ctx));
        t->refused += !c->bad;
        return;
    }
    status = weft_kernel_run(k, c->args);
    if (status != c->status)
        fail(t, c, "the run: ", status != WEFT_OK ? weft_message(c->ctx) : "is no error");
    for (int i = 0; i < body->narg && !c->bad && status == WEFT_OK; i++) {
        const Arg *a = &body->arg[i];

        if (a->kind != ARG_BUF || a->role == WEFT_INPUT)
            continue;
        if (weft_args_get(c->args, a->name, &got) != WEFT_OK)
            fail(t, c, a->name, weft_message(c->ctx));
        else
            compare(t, c, a, got.data);
    }
}

/* ---- CUDA, as emitted. */

static void make_arguments(Case *c)
{
    const Body *body = c->args->body;

    c->size = arena_array(&c->arena, body->narg, sizeof *c->size);
    c->host = arena_array(&c->arena, body->narg, sizeof *c->host);
    c->bytes = arena_array(&c->arena, body->narg, sizeof *c->bytes);
    c->device = arena_array(&c->arena, body->narg, sizeof *c->device);
    if (CATCH(&c->ctx->err, c->env = api_env(c->args, &c->arena, NULL)) != ST_OK)
        err_throw(&c->err, ST_BIND, "%s", c->ctx->err.msg);
    for (int i = 0; i < body->narg; i++) {
        const Arg *a = &body->arg[i];
        const Array *from = a->kind == ARG_SIZE ? NULL : api_place(c->env, a);
        Layout l;

        if (a->kind == ARG_SIZE) {
            c->size[i] = c->env->size[a->size->id];
        } else if (a->kind == ARG_BUF && a->role == WEFT_OUTPUT) {
            ir_layout(&c->arena, body->prog, c->env, a->buf, &l);
            c->bytes[i] = (size_t)l.n * ir_type[a->type].bytes;
            c->host[i] = arena_raw(&c->arena, (int64_t)c->bytes[i] + 1, 1);
        } else {
            c->host[i] = from->data;
            c->bytes[i] = (size_t)from->n * ir_type[from->type].bytes;
        }
    }
}

/* The arrays of structure are the host's, all others those of the device. */
static void put_arguments(Case *c)
{
    const Body *body = c->args->body;

    for (int i = 0; i < body->narg; i++) {
        const Arg *a = &body->arg[i];

        c->device[i] = a->kind != ARG_BUF ? c->host[i]
                       : a->role == WEFT_OUTPUT
                           ? runtime_output(a->name, c->host[i], c->bytes[i])
                           : runtime_input(a->name, c->host[i], c->bytes[i], a->role == WEFT_INOUT);
    }
}

static int64_t call_all(const CudaText *x, Case *c)
{
    int64_t fault = text_call(x, c->name, TEXT_PLAN, c->size, c->device);

    if (fault != 0)
        return fault;
    fault = text_call(x, c->name, TEXT_RUN, c->size, c->device);
    if (fault == 0)
        fault = text_call(x, c->name, TEXT_FAULT, c->size, c->device);
    text_call(x, c->name, TEXT_FREE, c->size, c->device);
    return fault;
}

/* The reason that the heading gives for a kernel that one thread or warp runs. */
static bool gives_reason(const Case *c, const char *kernel, char *why, size_t room)
{
    char head[300];
    const char *at, *end, *one;

    snprintf(head, sizeof head, " *     %s: ", kernel);
    at = strstr(c->source, head);
    end = at != NULL ? strchr(at, '\n') : NULL;
    one = at != NULL ? strstr(at, "; one unit: ") : NULL;
    if (one == NULL || one > end)
        return false;
    one += strlen("; one unit: ");
    snprintf(why, room, "%.*s", (int)(end - one), one);
    return true;
}

/* A share of the instructions that is worth more than one block. */
static bool is_serial(const Launch *l, uint64_t all)
{
    return l->groups == 1 && l->count.all > 4000 && l->count.all * 10 > all;
}

static void tell_cuda(Tally *t, const Options *o, const Case *c, const Ran *r)
{
    SassCount sum = { .all = 0 };
    int registers = 0, spills = 0, shared = 0, warps = 64;
    char note[400] = "", why[300];
    double per = (double)c->entries, ratio;

    for (int i = 0; i < r->n; i++) {
        const Launch *l = &r->launch[i];

        sum.all += l->count.all;
        for (int k = 0; k < 3; k++)
            sum.bytes[k] += l->count.bytes[k];
        registers = l->use.registers > registers ? l->use.registers : registers;
        shared = l->use.shared > shared ? l->use.shared : shared;
        warps = l->warps < warps ? l->warps : warps;
        spills += l->use.spills;
    }
    for (int i = 0; i < r->n; i++) {
        const Launch *l = &r->launch[i];

        if (!o->serial || !is_serial(l, sum.all))
            continue;
        if (gives_reason(c, l->kernel, why, sizeof why)) {
            snprintf(note, sizeof note, "  one unit: %.300s", why);
        } else {
            snprintf(note, sizeof note, "  ONE BLOCK: %.200s", l->kernel);
            t->serial++;
        }
    }
    ratio = c->flops > 0 ? (double)sum.all / (c->flops / 64) : 0;
    t->slow += ratio > 6;
    if (!o->quiet || strstr(note, "ONE BLOCK") != NULL)
        printf("%-26s %-10s %-5s %2d %10.2f %8.2f %4d %3d %6d %3d %9.1f%s\n", c->name, "cuda:sm_80",
               "yes", r->n, (double)sum.all / per, ratio, registers, spills, shared, warps,
               (double)(sum.bytes[0] + sum.bytes[1] + sum.bytes[2]) / per, note);
}

static void check_ran(Tally *t, Case *c, int64_t fault)
{
    const Body *body = c->args->body;
    const Ran *r = runtime_ran();
    char text[80];

    snprintf(text, sizeof text, "%lld", (long long)fault);
    if (r->errors > 0)
        fail(t, c, r->error, "");
    else if ((fault != 0) != (c->status != WEFT_OK))
        fail(t, c, "the fault is ", text);
    else if (r->live != 0)
        fail(t, c, "memory of the device is not freed", "");
    for (int i = 0; i < body->narg && fault == 0 && !c->bad; i++)
        if (body->arg[i].kind == ARG_BUF && body->arg[i].role != WEFT_INPUT)
            compare(t, c, &body->arg[i], c->host[i]);
}

/* Each call of the runtime fails in turn: the program says so, and frees what it had. */
static void fail_each(Tally *t, Case *c, const CudaText *x)
{
    const int calls = runtime_ran()->calls;
    char text[80];

    for (int at = 0; at < calls && !c->bad; at++) {
        int64_t fault;

        runtime_begin(at);
        put_arguments(c);
        fault = call_all(x, c);
        snprintf(text, sizeof text, "call %d of the runtime failed: ", at);
        if (fault >= 0)
            fail(t, c, text, "nobody noticed");
        else if (runtime_ran()->live != 0)
            fail(t, c, text, "memory of the device is not freed");
        runtime_end();
    }
}

static void run_cuda(Tally *t, const Options *o, Case *c, const CudaText *x)
{
    int64_t fault;

    runtime_begin(-1);
    make_arguments(c);
    put_arguments(c);
    fault = call_all(x, c);
    check_ran(t, c, fault);
    if (!c->bad)
        tell_cuda(t, o, c, runtime_ran());
    runtime_end();
    if (o->fail && !c->bad)
        fail_each(t, c, x);
}

static bool emit(Tally *t, const Options *o, Case *c)
{
    if (weft_prog_emit(c->prog, "cuda:sm_80", WEFT_SOURCE, &c->source) == WEFT_OK) {
        c->source = arena_copy(&c->arena, c->source, strlen(c->source) + 1);
        return true;
    }
    if (!o->quiet)
        printf("%-26s %-10s refused: %.150s\n", c->name, "cuda:sm_80", weft_message(c->ctx));
    if (!is_right(c))
        fail(t, c, "no text: ", weft_message(c->ctx));
    t->refused += !c->bad;
    return false;
}

enum { BATCH = 8 };

static void run_batch(Tally *t, const Options *o, Case **all, int n)
{
    TextCase text[BATCH];
    Arena arena;
    Err err = { 0 };
    const char *why = "";
    CudaText *x = NULL;

    arena_init(&arena, &os_libc, &err);
    for (int i = 0; i < n; i++)
        text[i] = (TextCase){ all[i]->name, all[i]->source, all[i]->args->body };
    if (n > 0 && CATCH(&err, x = text_load(&arena, text, n, &why)) != ST_OK)
        why = err.msg;
    for (int i = 0; i < n; i++) {
        if (x == NULL)
            fail(t, all[i], "nvcc: ", i == 0 ? why : "as above");
        else if (CATCH(&all[i]->err, run_cuda(t, o, all[i], x)) != ST_OK)
            fail(t, all[i], "an error: ", all[i]->err.msg);
        t->passed += !all[i]->bad;
        fflush(stdout);
    }
    text_free(x);
    arena_free(&arena);
    for (int i = 0; i < n; i++)
        close_case(all[i]);
}

/* ---- The list. */

static bool read_line(FILE *f, const Options *o, Case *c)
{
    char line[700], *tab;
    const char *slash = strrchr(o->list, '/');

    if (fgets(line, sizeof line, f) == NULL)
        return false;
    line[strcspn(line, "\n")] = 0;
    tab = strchr(line, '\t');
    if (tab != NULL)
        *tab = 0;
    snprintf(c->name, sizeof c->name, "%.150s", line);
    snprintf(c->sched, sizeof c->sched, "%.390s", tab != NULL ? tab + 1 : "");
    snprintf(c->path, sizeof c->path, "%.*s/%s.weft", slash != NULL ? (int)(slash - o->list) : 1,
             slash != NULL ? o->list : ".", c->name);
    return true;
}

static void check_opencl(Tally *t, const Options *o, Case *c)
{
    const int refused = t->refused;

    run_opencl(t, c);
    if (!c->bad && !o->quiet && t->refused == refused)
        printf("%-26s %-10s yes\n", c->name, "opencl");
    t->passed += !c->bad;
    fflush(stdout);
}

static void run_list(Tally *t, const Options *o, FILE *f)
{
    Case *batch[BATCH];
    int n = 0;

    for (int line = 0;; line++) {
        Case *c = calloc(1, sizeof *c);
        bool open;

        arena_init(&c->arena, &os_libc, &c->err);
        if (!read_line(f, o, c)) {
            close_case(c);
            break;
        }
        open = (line - o->from) % o->share == 0 && open_case(t, c, o);
        if (open && !o->cuda)
            check_opencl(t, o, c);
        if (open && o->cuda && emit(t, o, c))
            batch[n++] = c;
        else
            close_case(c);
        if (n == BATCH)
            run_batch(t, o, batch, n), n = 0;
    }
    run_batch(t, o, batch, n);
}

static bool take_set(Draw *d, char *word)
{
    char *value = strchr(word, '=');

    if (value == NULL || d->nset == MOST_SETS)
        return false;
    *value++ = 0;
    d->set_name[d->nset] = word;
    d->set_value[d->nset++] = strtoll(value, NULL, 10);
    return true;
}

static bool take_rows(Draw *d, const char *word)
{
    for (int i = 0; i < ROWS_COUNT; i++)
        if (strcmp(rows_name[i], word) == 0) {
            d->rows = (Rows)i;
            return true;
        }
    return false;
}

static bool take_options(Options *o, int argc, char **argv)
{
    if (argc < 3 || (strcmp(argv[1], "cuda") != 0 && strcmp(argv[1], "opencl") != 0))
        return false;
    *o = (Options){ .list = argv[2], .cuda = argv[1][0] == 'c', .share = 1 };
    for (int i = 3; i < argc; i++) {
        bool more = i + 1 < argc, good = true;

        if (strcmp(argv[i], "-quiet") == 0)
            o->quiet = true;
        else if (strcmp(argv[i], "-fail") == 0)
            o->fail = true;
        else if (strcmp(argv[i], "-serial") == 0)
            o->serial = true;
        else if (more && strcmp(argv[i], "-share") == 0)
            good = sscanf(argv[++i], "%d,%d", &o->share, &o->from) == 2 && o->share > 0;
        else if (more && strcmp(argv[i], "-rows") == 0)
            good = take_rows(&o->draw, argv[++i]);
        else if (more && strcmp(argv[i], "-set") == 0)
            good = take_set(&o->draw, argv[++i]);
        else if (more && strcmp(argv[i], "-seed") == 0)
            o->draw.seed = strtoull(argv[++i], NULL, 0);
        else
            good = false;
        if (!good)
            return false;
    }
    o->from %= o->share;
    return true;
}

int main(int argc, char **argv)
{
    Options o;
    Tally t = { 0 };
    FILE *f;

    if (!take_options(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    f = fopen(o.list, "r");
    if (f == NULL) {
        fprintf(stderr, "weft_gpu: cannot read %s\n", o.list);
        return 1;
    }
    run_list(&t, &o, f);
    fclose(f);
    if (o.cuda)
        printf("%d refused with a reason; %d phases on one block without a reason; "
               "%d programs of more than 6 times their arithmetic\n",
               t.refused, t.serial, t.slow);
    printf("%d passed, %d failed\n", t.passed, t.failed + t.serial);
    return t.failed + t.serial > 0;
}
