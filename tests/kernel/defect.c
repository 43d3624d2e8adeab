/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Planted defects: programs whose tree or C text is changed in one way must be reported, or the
 * comparison of kernels with the interpreter says nothing. */
#include "kernel/kernel_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 60, LEAST = 5, FOUND = 'f' };

/* The text with `extra` put in at a place. */
static const char *insert(Arena *a, const char *text, const char *at, const char *extra)
{
    Text t = { .arena = a };

    text_put(&t, text, (size_t)(at - text));
    text_str(&t, extra);
    text_str(&t, at);
    return t.s;
}

/* The same after the first `mark`, or NULL when there is none. */
static const char *insert_after(Arena *a, const char *text, const char *mark, const char *extra)
{
    const char *at = strstr(text, mark);

    return at == NULL ? NULL : insert(a, text, at + strlen(mark), extra);
}

static const char *wrong_lane(Arena *a, const char *text)
{
    static const char *const load[] = { "WEFT_LOADM_F32(", "WEFT_LOADM_F64(", "WEFT_LOAD_F32(",
                                        "WEFT_LOAD_F64(" };
    const char *s = NULL;

    for (size_t i = 0; i < sizeof load / sizeof *load && s == NULL; i++)
        s = insert_after(a, text, load[i], "1 + ");
    return s;
}

/* The iterations that do not fill a register: under a mask, or one by one. */
static const char *no_rest(Arena *a, const char *text)
{
    const char *mask = strstr(text, "const weft_mf");

    if (mask == NULL)
        return NULL;
    while (mask > text && strncmp(mask, "if (", 4) != 0)
        mask--;
    return insert(a, text, mask + 4, "0 && ");
}

static const char *one_too_many(Arena *a, const char *text)
{
    const char *loop = strstr(text, "for (int64_t v_"), *less;

    less = loop == NULL ? NULL : strstr(loop, " < ");
    return less == NULL ? NULL : insert(a, text, less + 2, "=");
}

static const char *no_fill(Arena *a, const char *text)
{
    const char *init = strstr(text, ".init */"), *open;

    open = init == NULL ? NULL : strstr(init, "\n{");
    return open == NULL ? NULL : insert(a, text, open + 2, "\n    return 0;");
}

static const char *lost_between_functions(Arena *a, const char *text)
{
    const char *kept = strstr(text, "\n    live->t");

    return kept == NULL ? NULL : insert(a, text, kept + strlen("\n    "), "if (0) ");
}

static Expr *swap_operands(Prog *p, Expr *e, void *ctx)
{
    (void)ctx;
    return e->op == OP_sub && ir_is_float(e) ? ir_op2(p, OP_sub, e->arg[1], e->arg[0]) : e;
}

static Expr *max_for_min(Prog *p, Expr *e, void *ctx)
{
    (void)ctx;
    return e->op == OP_min ? ir_op2(p, OP_max, e->arg[0], e->arg[1]) : e;
}

static Expr *next_element(Prog *p, Expr *e, void *ctx)
{
    Expr *index;

    (void)ctx;
    if (e->op != OP_cell || e->buf->kind != B_ARG || e->buf->of != NULL || !ir_is_float(e))
        return e;
    index = ir_op2(p, OP_add, e->arg[0], ir_int(p, 1));
    return loop_cell(p, e->buf, &index, 1, e->k);
}

typedef const char *Edit(Arena *, const char *text);

static const struct {
    const char *name;
    Edit *edit;     /* of the text; or */
    Rewrite *plant; /* of the tree */
} defects[] = {
    { "a vector is loaded one lane too far", wrong_lane, NULL },
    { "the rest of a vector loop is left out", no_rest, NULL },
    { "a loop has <= for <", one_too_many, NULL },
    { "an output does not begin with its fill", no_fill, NULL },
    { "a value is lost between two functions", lost_between_functions, NULL },
    { "the operands of a subtraction are swapped", NULL, swap_operands },
    { "max stands for min", NULL, max_for_min },
    { "inputs are read one element too far", NULL, next_element },
};

enum { NDEFECT = sizeof defects / sizeof *defects };

/* In a process of its own, as the defect may make it crash or run for ever: that is found, too. */
static bool is_found(Arena *a, const Batch *b, const Subject *s)
{
    static const int crash[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL };
    const struct rlimit cpu = { .rlim_cur = 5, .rlim_max = 5 }; /* seconds */
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        for (size_t i = 0; i < sizeof crash / sizeof *crash; i++)
            signal(crash[i], SIG_DFL);
        setrlimit(RLIMIT_CPU, &cpu);
        close(2);
        _exit(execute(a, b, s) != NULL ? FOUND : 0);
    }
    return waitpid(pid, &status, 0) == pid && status != 0;
}

/* The subjects that the defect changes are left; those that never run or whose error the
 * interpreter reports are not. */
static int plant(Arena *a, Subjects *all, const Subjects *sound, int d)
{
    int n = 0;

    for (int i = 0; i < all->n; i++) {
        Subject *s = &all->s[i];
        const char *text = s->kernel == NULL || s->status != ST_OK ? NULL : s->source;

        if (text != NULL && defects[d].edit != NULL)
            text = defects[d].edit(a, text);
        if (text == NULL || strcmp(text, sound->s[i].source) == 0) {
            s->kernel = NULL;
            continue;
        }
        s->source = text;
        n++;
    }
    return n;
}

static void draw(Arena *a, Subjects *all)
{
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        subject_random(a, all, seed);
}

/* Whether enough of the planted ones are found.  Many change nothing: what they touch is zero, or
 * nobody reads it. */
static bool try_defect(Arena *a, const Toolchain *t, const Subjects *sound, int d)
{
    Subjects all = { .unit = sound->unit, .plant = defects[d].plant };
    int planted, found = 0;
    Batch b;

    if (all.plant != NULL) {
        draw(a, &all);
    } else {
        all.n = sound->n;
        all.s = arena_copy(a, sound->s, (size_t)sound->n * sizeof *sound->s);
    }
    planted = plant(a, &all, sound, d);
    b = batch_load(a, t, &all);
    for (int i = 0; i < all.n && b.lib != NULL; i++)
        if (all.s[i].kernel != NULL)
            found += is_found(a, &b, &all.s[i]);
    printf("%-45s %3d planted, %3d found%s\n", defects[d].name, planted, found,
           b.lib == NULL ? ", no library" : "");
    batch_close(&b);
    return found >= LEAST && 4 * found >= planted;
}

int defect_test(Arena *a, const Toolchain *t, int *failed)
{
    Subjects sound = { .unit = toolchain_unit(t) };
    int passed = 0;

    draw(a, &sound);
    for (int d = 0; d < NDEFECT; d++) {
        Arena own; /* small processes fork faster */
        bool good;

        arena_init(&own, &os_libc, a->err);
        fflush(stdout);
        good = try_defect(&own, t, &sound, d);
        arena_free(&own);
        passed += good;
        *failed += !good;
    }
    return passed;
}
