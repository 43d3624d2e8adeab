/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One case through the tests of a mode: print and parse are inverses; interpreter and dense
 * evaluator agree in every bit, or both refuse with the same kind of error. */
#include "interp/interp.h"
#include "random/random.h"
#include "unit/trap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const outcome_text[OUTCOME_COUNT] = {
    "good",
    "both gave an error",
    "refused",
    "too large to run",
    "a generated program was refused",
    "an error without place or message",
    "the printed text does not read",
    "printing again gives another text",
    "what was printed is another program",
    "equal programs with different hashes",
    "a copy is not equal",
    "the simplified program gives another result",
    "the pruned program gives another result",
    "the evaluators disagree about an error",
    "outputs differ",
    "an error that cannot be",
};

typedef struct Check {
    Arena arena; /* of everything the check makes */
    Err err;
    Case c;
    Report r;
} Check;

static void fail(Check *k, Outcome o, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void fail(Check *k, Outcome o, const char *fmt, ...)
{
    va_list ap;

    if (k->r.outcome >= FAIL_GEN)
        return;
    k->r.outcome = o;
    va_start(ap, fmt);
    vsnprintf(k->r.why, sizeof k->r.why, fmt, ap);
    va_end(ap);
}

static void parse(Check *k)
{
    Status st = CATCH(&k->err, case_parse(&k->arena, &k->c));

    if (st == ST_OK)
        return;
    fail(k, k->err.line < 1 || k->err.col < 1 || k->err.msg[0] == 0 ? FAIL_PLACE : REFUSED,
         "%d:%d: %s", k->err.line, k->err.col, k->err.msg);
}

static Prog *read_again(Check *k, const char *text)
{
    Prog *p = NULL;

    if (CATCH(&k->err, (p = ir_parse(&k->arena, "printed", text, strlen(text)), ir_check(p))) ==
        ST_OK)
        return p;
    fail(k, FAIL_PRINT, "%d:%d: %s\nprinted:\n%s", k->err.line, k->err.col, k->err.msg, text);
    return NULL;
}

static void check_print(Check *k, Prog *p, Defect defect)
{
    Text first = { .arena = &k->arena }, second = { .arena = &k->arena };
    Prog *q;

    ir_print(&first, p);
    k->r.planted = k->r.planted || (defect == DEFECT_printed && defect_text(first.s));
    q = read_again(k, first.s);
    if (q == NULL)
        return;
    ir_print(&second, q);
    if (strcmp(first.s, second.s) != 0)
        fail(k, FAIL_FIXED, "first:\n%s\nsecond:\n%s", first.s, second.s);
    if (!ir_equal(p, q))
        fail(k, FAIL_EQUAL, "printed:\n%s", first.s);
    if (ir_hash(p) != ir_hash(q))
        fail(k, FAIL_HASH, "printed:\n%s", first.s);
}

static void check_copy(Check *k, Defect defect)
{
    Text first = { .arena = &k->arena }, second = { .arena = &k->arena };
    Prog *copy = ir_copy(&k->arena, k->c.prog);

    k->r.planted = k->r.planted || (defect == DEFECT_copied && defect_copy(copy));
    ir_print(&first, k->c.prog);
    ir_print(&second, copy);
    if (!ir_equal(copy, k->c.prog) || ir_hash(copy) != ir_hash(k->c.prog) ||
        strcmp(first.s, second.s) != 0)
        fail(k, FAIL_COPY, "the copy:\n%s", second.s);
}

static bool same_element(const Array *a, const Array *b, int64_t i)
{
    size_t n = ir_type[a->type].bytes;

    if (memcmp((const char *)a->data + (size_t)i * n, (const char *)b->data + (size_t)i * n, n) ==
        0)
        return true;
    return ir_type[a->type].floats && isnan(array_float(a, i)) && isnan(array_float(b, i));
}

static void element_text(char out[64], const Array *a, int64_t i)
{
    if (ir_type[a->type].floats)
        snprintf(out, 64, "%.17g", array_float(a, i));
    else
        snprintf(out, 64, "%lld", (long long)array_int(a, i));
}

static void compare(Check *k, Outcome o, const char *name, const Array *got, const Array *want)
{
    char a[64], b[64];

    if (got->data == NULL || want->data == NULL || got->n != want->n || got->type != want->type) {
        fail(k, o, "%s: %lld elements of %s, but %lld of %s", name, (long long)got->n,
             ir_type[got->type].name, (long long)want->n, ir_type[want->type].name);
        return;
    }
    for (int64_t i = 0; i < got->n; i++)
        if (!same_element(got, want, i)) {
            element_text(a, got, i);
            element_text(b, want, i);
            fail(k, o, "%s[%lld] is %s, but should be %s", name, (long long)i, a, b);
            return;
        }
}

static void compare_all(Check *k, Outcome o, const Env *got, const Env *want)
{
    const Prog *p = k->c.prog;

    for (int i = 0; i < p->naxis; i++) {
        const Axis *x = p->axis[i];

        if (x->extent != X_BUILT)
            continue;
        compare(k, o, x->name, &got->start[i], &want->start[i]);
        for (int c = 0; c < x->ncoord; c++)
            compare(k, o, x->name, &got->coord[i][c], &want->coord[i][c]);
    }
    for (int i = 0; i < p->nbuf; i++)
        if (p->buf[i]->written && p->buf[i]->kind != B_TEMP)
            compare(k, o, p->buf[i]->name, &got->buf[i], &want->buf[i]);
}

/* Messages that differ in places and names only are one kind. */
static int kind_of_message(const char *s)
{
    uint64_t h = 0;

    for (; *s != 0 && *s != '\n'; s++)
        if (*s == ' ')
            h = hash_int(h, (uint64_t)(s[1] >= 'a' && s[1] <= 'z' ? s[1] : 0));
    return (int)(h & 0xffff);
}

/* Which errors count as the same: those of binding, and those of running. */
static int kind_of(Status st)
{
    return st == ST_OK ? 0 : st == ST_BIND || st == ST_LIMIT ? 1 : st == ST_RUN ? 2 : 3 + (int)st;
}

static Status run(Check *k, const Prog *p, Env **got)
{
    *got = data_bind(&k->arena, k->c.data, p);
    return CATCH(&k->err, interp_run(&k->arena, p, *got));
}

static void simplify_all(Prog *p)
{
    Memo memo = { 0 };

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++) {
            Assign *a = &p->stmt[i]->assign[k];

            a->value = ir_simplify(p, a->value, &memo);
            a->out = ir_simplify(p, a->out, &memo);
            if (a->guard != NULL)
                a->guard = ir_simplify(p, a->guard, &memo);
            for (int c = 0; c < a->nat; c++) {
                a->at[c].out = ir_simplify(p, a->at[c].out, &memo);
                a->at[c].value = ir_simplify(p, a->at[c].value, &memo);
            }
        }
}

/* The program read once more, so that it may be changed; ids are the same again. */
static Prog *second_prog(Check *k)
{
    Prog *p = ir_parse(&k->arena, "again", k->c.text, strlen(k->c.text));

    ir_check(p);
    return p;
}

/* Simplifying must not change a bit.  It may drop an error: select(c, a, a) no longer asks c. */
static void check_simple(Check *k, const Env *want)
{
    Env *got;
    Prog *p = second_prog(k);

    if (CATCH(&k->err, simplify_all(p)) != ST_OK || run(k, p, &got) != ST_OK)
        fail(k, FAIL_SIMPLE, "%s", k->err.msg);
    else
        compare_all(k, FAIL_SIMPLE, got, want);
}

/* What pruning leaves gives the same outputs. */
static void check_prune(Check *k, const Env *want)
{
    Env *got;
    const Prog *p = k->c.prog, *q = NULL;

    if (CATCH(&k->err, q = ir_prune(&k->arena, k->c.prog)) != ST_OK || run(k, q, &got) != ST_OK) {
        fail(k, FAIL_PRUNE, "%s", k->err.msg);
        return;
    }
    for (int i = 0; i < p->nbuf; i++) {
        const Buf *b = ir_find_buf(q, p->buf[i]->name);

        if (p->buf[i]->written && p->buf[i]->kind != B_TEMP && b == NULL)
            fail(k, FAIL_PRUNE, "%s is gone", p->buf[i]->name);
        else if (p->buf[i]->written && p->buf[i]->kind != B_TEMP)
            compare(k, FAIL_PRUNE, b->name, &got->buf[b->id], &want->buf[i]);
    }
}

static void check_run(Check *k, Defect defect)
{
    Prog *p = k->c.prog, *damaged = second_prog(k);
    Env *want = ir_env(&k->arena, p), *got;
    Text why = { .arena = &k->arena };
    Status a, b;

    a = CATCH(&k->err, dense_run(&k->arena, p, k->c.env, want, &k->r.stats));
    if (a == ST_LIMIT) {
        fail(k, TOO_LARGE, "%s", k->err.msg);
        return;
    }
    text_str(&why, a == ST_OK ? "no error" : k->err.msg);
    k->r.planted = defect_program(defect, damaged);
    b = run(k, damaged, &got);
    if ((defect == DEFECT_hidden_error && b != ST_OK) ||
        (defect == DEFECT_false_error && b == ST_OK)) {
        b = b == ST_OK ? ST_RUN : ST_OK;
        k->r.planted = true;
    }
    k->r.kind = kind_of(a) * 16 + kind_of(b);
    if (kind_of(a) != kind_of(b))
        fail(k, FAIL_CODE, "interpreter: %s\ndense: %s", b == ST_OK ? "no error" : k->err.msg,
             why.s);
    else if (a != ST_OK)
        fail(k, ERROR_BOTH, "%s", k->err.msg);
    if (a == ST_OK && b == ST_OK) {
        k->r.planted = defect_output(defect, p, got) || k->r.planted;
        compare_all(k, FAIL_VALUE, got, want);
    }
    if (defect == DEFECT_NONE && k->r.outcome == GOOD && b == ST_OK) {
        check_simple(k, got);
        check_prune(k, got);
    }
}

/* Of the program itself, of a copy, and of what passes make of it. */
static void check_texts(Check *k, Defect defect)
{
    check_print(k, k->c.prog, defect);
    check_copy(k, defect);
    check_print(k, ir_prune(&k->arena, k->c.prog), DEFECT_NONE);
}

Report check_case(const Case *c, Mode mode, Defect defect)
{
    Check *k = &(Check){ .c = *c };
    Report r;

    arena_init(&k->arena, &os_libc, &k->err);
    parse(k);
    if (k->r.outcome == GOOD) {
        if (CATCH(&k->err, check_texts(k, defect)) != ST_OK)
            fail(k, FAIL_PRINT, "%s", k->err.msg);
        if (mode != MODE_PARSE && k->r.outcome == GOOD)
            check_run(k, defect);
    }
    if (k->r.outcome == REFUSED && mode != MODE_MUTATE)
        k->r.outcome = FAIL_GEN;
    if (k->r.outcome == FAIL_GEN || k->r.outcome == FAIL_PRINT)
        k->r.kind = kind_of_message(k->r.why);
    if (k->r.outcome == ERROR_BOTH && mode == MODE_RUN && !c->risky)
        k->r.outcome = FAIL_ERROR;
    r = k->r;
    arena_free(&k->arena);
    return r;
}
