/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs as C, compiled without the library and with every warning an error: what they compute
 * is what a kernel computes, bit for bit, and the arrays of their plans are those of the library.
 * What a kernel refuses, they refuse. */
#include "api/api_int.h"
#include "kernel/kernel_test.h"
#include "unit/trap.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MEMBERS = 400 };

typedef int64_t Call(const int64_t *size, void *const *array, int64_t **member);

typedef struct Pair { /* a program in both forms */
    Emitted *tally;
    Arena arena;
    Err err;
    const char *path, *text, *sched;
    Example x;
    Env *env; /* of the inputs */
    const char *source;
    int nmember;
    const char *member[MOST_MEMBERS]; /* of the plan, as C names them */
    int64_t *value[MOST_MEMBERS];
    void *lib;
    void **out; /* by argument: what the text has computed */
    bool failed;
} Pair;

static void fail(Pair *p, const char *what, const char *more)
{
    if (!p->failed)
        printf("==== %s, `%s`: %s %s\n", p->path, p->sched, what, more), fflush(stdout);
    p->tally->failed += !p->failed;
    p->failed = true;
}

/* The members of the struct, from its text. */
static void list_members(Pair *p)
{
    const char *s = strstr(p->source, "\nstruct weft_plan_"), *end;

    if (s == NULL)
        return;
    end = strstr(s, "\n};");
    for (s = strchr(s + 1, '\n'); s < end && p->nmember < MOST_MEMBERS; s = strchr(s + 1, '\n')) {
        const char *from = s + strlen("\n    int64_t ");
        size_t n;

        from += *from == '*';
        n = strcspn(from, ";");
        if (strncmp(s, "\n    int64_t ", 13) != 0)
            continue;
        p->member[p->nmember] = arena_alloc(&p->arena, n + 1);
        memcpy((char *)p->member[p->nmember++], from, n);
    }
}

static void put_arguments(const Pair *p, Text *t, bool structure)
{
    const Body *body = p->x.args->body;

    for (int i = 0, n = 0; i < body->narg; i++)
        if (body->arg[i].kind == ARG_SIZE)
            text_f(t, "%ssize[%d]", n++ > 0 ? ", " : "", i);
        else if (!structure || body->arg[i].kind != ARG_BUF)
            text_f(t, "%sarray[%d]", n++ > 0 ? ", " : "", i);
}

/* One function for all programs, around that of this one. */
static void put_call(const Pair *p, Text *t)
{
    const char *name = p->x.args->body->prog->name;
    bool any = p->x.args->body->narg > 0;

    text_f(t, "\nint64_t weft_test_call(const int64_t *size, void *const *array,\n"
              "                       int64_t **member)\n{\n    (void)size, (void)array, (void)member;\n");
    if (p->nmember > 0) {
        text_f(t, "    static struct weft_plan_%s plan;\n    int64_t fault = weft_plan_%s_make(",
               name, name);
        put_arguments(p, t, true);
        text_str(t, any ? ", &plan);\n    if (fault != 0)\n        return fault;\n"
                        : "&plan);\n    if (fault != 0)\n        return fault;\n");
    }
    for (int i = 0; i < p->nmember; i++)
        if (strncmp(p->member[i], "n_", 2) != 0)
            text_f(t, "    member[%d] = plan.%s;\n", i, p->member[i]);
    text_f(t, "    return weft_run_%s(", name);
    put_arguments(p, t, false);
    text_f(t, "%s);\n}\n", p->nmember == 0 ? "" : any ? ", &plan" : "&plan");
}

static bool compile(Pair *p)
{
    char dir[] = "/tmp/weft-emitted-XXXXXX";
    Text file = { .arena = &p->arena }, all = { .arena = &p->arena }, cc = { .arena = &p->arena };
    const char *name = getenv("WEFT_CC"), *more = getenv("WEFT_CFLAGS");

    if (mkdtemp(dir) == NULL)
        return false;
    text_f(&file, "%s/e.c", dir);
    text_str(&all, p->source);
    put_call(p, &all);
    file_write(&p->arena, file.s, all.s, all.n);
    text_f(&cc,
           "%s $(sed -n 's/^ \\*     cc \\(.*\\) \\.\\.\\. -lm$/\\1/p' %s) %s -O0 -std=gnu11 "
           "-Wall -Wextra -Werror -Wno-missing-prototypes -shared -fPIC %s -o %s/e.so -lm",
           name != NULL && *name != 0 ? name : "cc", file.s, more == NULL ? "" : more, file.s, dir);
    if (system(cc.s) == 0) {
        text_f(&file, "%s", "");
        file.n = 0;
        text_f(&file, "%s/e.so", dir);
        p->lib = dlopen(file.s, RTLD_NOW | RTLD_LOCAL);
    }
    cc.n = 0;
    text_f(&cc, "rm -rf %s", dir);
    if (getenv("WEFT_TEST_KEEP") == NULL && system(cc.s) != 0)
        fail(p, "cannot remove", dir);
    return p->lib != NULL;
}

/* An array as the emitted function takes it: structure is of int64_t, outputs hold garbage. */
static void *argument(Pair *p, int i)
{
    const Arg *a = &p->x.args->body->arg[i];
    const Array *from = api_place(p->env, a);
    size_t bytes = ir_type[a->kind == ARG_BUF ? a->type : T_i64].bytes;
    Layout l;
    void *to;

    if (a->kind == ARG_BUF && a->role == WEFT_OUTPUT) {
        ir_layout(&p->arena, p->x.args->body->prog, p->env, a->buf, &l);
        to = arena_raw(&p->arena, l.n + 1, bytes);
        memset(to, 0x77, (size_t)l.n * bytes);
        return to;
    }
    to = arena_raw(&p->arena, from->n + 1, bytes);
    for (int64_t k = 0; k < from->n && a->kind != ARG_BUF; k++)
        ((int64_t *)to)[k] = ir_array_int(from, k);
    if (a->kind == ARG_BUF && from->n > 0)
        memcpy(to, from->data, (size_t)from->n * bytes);
    return to;
}

static int64_t call(Pair *p)
{
    const Body *body = p->x.args->body;
    int64_t *size = arena_array(&p->arena, body->narg, sizeof *size);
    Call *fn;

    p->out = arena_array(&p->arena, body->narg, sizeof *p->out);
    for (int i = 0; i < body->narg; i++)
        if (body->arg[i].kind == ARG_SIZE)
            size[i] = p->env->size[body->arg[i].size->id];
        else
            p->out[i] = argument(p, i);
    *(void **)&fn = dlsym(p->lib, "weft_test_call");
    return fn(size, p->out, p->value);
}

static void compare_results(Pair *p)
{
    const Body *body = p->x.args->body;

    for (int i = 0; i < body->narg; i++) {
        const Arg *a = &body->arg[i];
        weft_tensor t;
        size_t n = ir_type[a->type].bytes;

        if (a->kind != ARG_BUF || a->role == WEFT_INPUT)
            continue;
        if (weft_args_get(p->x.args, a->name, &t) != WEFT_OK) {
            fail(p, a->name, weft_message(p->x.ctx));
            return;
        }
        for (int d = 0; d < t.ndim; d++)
            n *= (size_t)t.shape[d];
        if (n > 0 && memcmp(t.data, p->out[i], n) != 0)
            fail(p, a->name, "differs");
    }
}

static void compare_array(Pair *p, const char *axis, const char *part, const Array *want)
{
    Text name = { .arena = &p->arena };

    text_f(&name, "%s_%s", axis, part);
    for (int i = 0; i < p->nmember; i++) {
        if (strcmp(p->member[i], name.s) != 0)
            continue;
        for (int64_t k = 0; k < want->n; k++)
            if (p->value[i][k] != ir_array_int(want, k)) {
                fail(p, "another array of the plan:", name.s);
                return;
            }
        p->member[i] = "";
    }
}

static void compare_axis(Pair *p, const Prog *q, const Env *env, const Axis *a)
{
    Array map;

    if (a->name == NULL)
        return;
    if (ir_is_made(q, a) && a->extent == X_SEG)
        compare_array(p, a->name, "start", &env->start[a->id]);
    for (int k = 0; k < a->ncoord && ir_is_made(q, a); k++)
        if (a->coord[k].kind == C_LOAD)
            compare_array(p, a->name, a->coord[k].name != NULL ? a->coord[k].name : "coord",
                          &env->coord[a->id][k]);
    if (a->extent == X_BUILT)
        return;
    map = lower_hash_table(&p->arena, q, env, a);
    compare_array(p, a->name, "find_map", &map);
}

/* The arrays of the plan against those that the library makes for the loops as text. */
static void compare_plan(Pair *p)
{
    Example y = { .arena = &p->arena, .ctx = p->x.ctx };
    const char *text;
    Env *env;

    memcpy(y.folder, p->x.folder, sizeof y.folder);
    if (weft_prog_print_after(p->x.prog, "cse", &text) != WEFT_OK ||
        weft_prog_parse(y.ctx, "loops", text, strlen(text), &y.prog) != WEFT_OK ||
        weft_args_new(y.prog, &y.args) != WEFT_OK) {
        fail(p, "the loops as text:", weft_message(y.ctx));
        return;
    }
    example_bind(&y, p->text);
    if (CATCH(&y.ctx->err, env = api_env(y.args, &p->arena, NULL)) != ST_OK) {
        fail(p, "the plan of the text:", y.ctx->err.msg);
        return;
    }
    for (int i = 0; i < y.args->body->prog->naxis; i++)
        compare_axis(p, y.args->body->prog, env, y.args->body->prog->axis[i]);
    for (int i = 0; i < p->nmember; i++)
        if (p->member[i][0] != 0 && strncmp(p->member[i], "n_", 2) != 0 &&
            strstr(p->member[i], "_base") == NULL)
            fail(p, "an array of the plan that the library does not make:", p->member[i]);
}

static void run_both(Pair *p, weft_kernel *k)
{
    weft_status status;
    int64_t fault;

    if (CATCH(&p->x.ctx->err, p->env = api_env(p->x.args, &p->arena, NULL)) != ST_OK) {
        fail(p, "inputs:", p->x.ctx->err.msg);
        return;
    }
    list_members(p);
    if (!compile(p)) {
        fail(p, "does not compile", "");
        return;
    }
    status = weft_kernel_run(k, p->x.args);
    fault = call(p);
    if ((status == WEFT_OK) != (fault == 0))
        fail(p, fault == 0 ? "only the library refuses:" : "only the text refuses:",
             weft_message(p->x.ctx));
    else if (status == WEFT_OK)
        compare_results(p);
    if (status == WEFT_OK && fault == 0 && p->nmember > 0)
        compare_plan(p);
    p->tally->passed += !p->failed;
}

/* Whether both forms refuse, or neither. */
static bool is_refused(Pair *p, weft_kernel **k)
{
    weft_info info = { 0 };
    weft_status kernel = weft_kernel_compile(p->x.prog, k), emit;
    char why[500];

    snprintf(why, sizeof why, "%s", weft_message(p->x.ctx));
    if (kernel == WEFT_OK && weft_kernel_info(*k, &info) == WEFT_OK)
        kernel = strcmp(info.target, "interp") == 0 ? WEFT_E_LIMIT : WEFT_OK;
    emit = weft_prog_emit(p->x.prog, "c", WEFT_SOURCE, &p->source);
    if (emit == WEFT_E_LIMIT && strstr(weft_message(p->x.ctx), "is a built axis") != NULL)
        return true;
    if ((kernel == WEFT_OK) != (emit == WEFT_OK))
        fail(p, "refused by one:", emit == WEFT_OK ? why : weft_message(p->x.ctx));
    return kernel != WEFT_OK || emit != WEFT_OK;
}

static void check_open(Pair *p)
{
    weft_kernel *k = NULL;

    p->text = example_text(&p->x, p->path);
    example_open(&p->x, p->path, p->text);
    if (weft_prog_schedule(p->x.prog, p->sched) != WEFT_OK)
        return;
    if (is_refused(p, &k)) {
        p->tally->refused++;
        return;
    }
    p->source = arena_copy(&p->arena, p->source, strlen(p->source) + 1);
    run_both(p, k);
}

static void check(Emitted *e, const char *path, const char *sched)
{
    Pair *p = calloc(1, sizeof *p);

    *p = (Pair){ .tally = e, .path = path, .sched = sched };
    arena_init(&p->arena, &os_libc, &p->err);
    p->x.arena = &p->arena;
    if (CATCH(&p->err, check_open(p)) != ST_OK)
        fail(p, "an error:", p->err.msg);
    if (p->lib != NULL)
        dlclose(p->lib);
    if (p->x.ctx != NULL) {
        arena_free(&p->x.ctx->scratch);
        weft_ctx_free(p->x.ctx);
    }
    arena_free(&p->arena);
    free(p);
}

static const char *const formats[] = {
    "csr()",      "csc()",      "coo()",         "dcsr()",     "ell(0)",           "sell(2, 4)",
    "bsr(2, 2)",  "dbsr(2, 3)", "sr_bcrs(2, 2)", "dia()",      "band(2, 1)",       "n_m(2, 4)",
    "csf()",      "ragged()",   "padded_csr(3)", "hyb(2, 2)",  "hyb3(2, 1)",       "band_rest(1)",
    "blocks_rest(2, 2, 2)",
};
enum { NFORMATS = sizeof formats / sizeof *formats };

/* Calls check with each schedule in turn; one of `share` of them is looked at. */
static void each_schedule(Emitted *e, const char *path, const Prog *prog, const char *loops,
                          int share, int turn)
{
    char text[200];

    for (int i = 0; i < prog->naxis; i++)
        for (int f = 0; f < NFORMATS && prog->axis[i]->name != NULL; f++, turn++) {
            snprintf(text, sizeof text, "format %s %s", prog->axis[i]->name, formats[f]);
            if (turn % share == 0)
                check(e, path, text);
        }
    for (const char *s = loops; s != NULL && *s != 0; s += strcspn(s, "\n") + 1, turn++) {
        int n = (int)strcspn(s += strspn(s, " "), " \n");

        snprintf(text, sizeof text, turn % 2 == 0 ? "split %.*s 4" : "unroll %.*s", n, s);
        if (n > 0 && turn % share == 0)
            check(e, path, text);
    }
}

void emitted_check(Emitted *e, const char *path, int share, int turn)
{
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *prog;
    const char *loops = NULL;

    check(e, path, "");
    if (weft_prog_read(ctx, path, &prog) == WEFT_OK) {
        Arena arena;
        Prog *copy;

        arena_init(&arena, &os_libc, &ctx->err);
        copy = ir_copy(&arena, prog->body->prog);
        if (weft_prog_explain(prog, &loops) == WEFT_OK)
            loops = strstr(loops, "loops:\n") + strlen("loops:\n");
        each_schedule(e, path, copy, loops, share, turn);
        arena_free(&arena);
    }
    weft_ctx_free(ctx);
}
