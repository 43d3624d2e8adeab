/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft::run: any program of the library as an operator of torch.  The program is a text: a line that
 * says where it begins, then one for each derivative that is taken of it:
 *     o3 tp; in1=8x0e; in2=1o; out=1o; mode=uvu
 *     grad of=Z wrt=X,Wt
 *     jvp of=d_X,d_Wt wrt=Y
 * Arrays are its inputs in the order of weft_prog_arg, results its outputs in the same order. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text is none that this file knows; other statuses come with the library's message. */
#define NOT_READ ((weft_status)-1)

typedef struct Entry { /* a program that was compiled */
    struct Entry *next;
    uint64_t hash;
    char *text;
    weft_prog *prog; /* names of arguments are its */
    weft_kernel *kernel;
    weft_args *args;
    int nin, nout;
    const char *in[MOST_ARRAYS], *out[MOST_ARRAYS];
    weft_type out_type[MOST_ARRAYS];
    int out_ndim[MOST_ARRAYS];
    /* of the last run: */
    bool known;
    int ndim[MOST_ARRAYS];
    int64_t shape[MOST_ARRAYS][WEFT_MAX_NDIM], out_shape[MOST_ARRAYS][WEFT_MAX_NDIM];
} Entry;

enum { BUCKETS = 1024 };
static Entry *table[BUCKETS]; /* used by who is between state_enter and state_leave */

typedef struct Call {
    Plain in[MOST_ARRAYS], out[MOST_ARRAYS];
    int nin, nout;
    char message[2048]; /* what went wrong; "" at first */
} Call;

static void say(Call *c, const char *fmt, const char *what)
{
    snprintf(c->message, sizeof c->message, fmt, what);
}

static uint64_t hash_of(const char *s)
{
    uint64_t h = 14695981039346656037u;

    for (; *s != 0; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

/* The words of "a,b,c" in place; how many. */
static int split(char *s, const char **out)
{
    int n = 0;

    while (*s != 0 && n < MOST_ARRAYS) {
        out[n++] = s;
        s += strcspn(s, ",");
        if (*s == ',')
            *s++ = 0;
    }
    return n;
}

/* "grad of=Z wrt=X,Wt" or "jvp of=Z wrt=X,Wt", which is written to. */
static weft_status derive(weft_prog **prog, char *line)
{
    const char *of[MOST_ARRAYS], *wrt[MOST_ARRAYS];
    char *o = strstr(line, " of="), *w = strstr(line, " wrt=");
    weft_grad g = { .of = of, .wrt = wrt, .forward = strncmp(line, "jvp ", 4) == 0 };
    weft_prog *out;
    weft_status s;

    if (w == NULL || o == NULL || o > w || (!g.forward && strncmp(line, "grad ", 5) != 0))
        return NOT_READ;
    *w = 0;
    g.nof = split(o + 4, of);
    g.nwrt = split(w + 5, wrt);
    s = weft_prog_grad(*prog, &g, &out);
    if (s == WEFT_OK) {
        weft_prog_free(*prog);
        *prog = out;
    }
    return s;
}

static weft_status read_program(weft_ctx *ctx, char *text, weft_prog **out)
{
    char *line = text + strcspn(text, "\n"), *end;
    weft_status s = NOT_READ;

    *out = NULL;
    end = line + (*line != 0);
    *line = 0;
    if (strncmp(text, "o3 ", 3) == 0)
        s = weft_prog_o3(ctx, text + 3, out);
    else if (strncmp(text, "op ", 3) == 0)
        s = weft_prog_op(ctx, text + 3, out);
    while (s == WEFT_OK && *end != 0) {
        line = end;
        end += strcspn(end, "\n");
        if (*end != 0)
            *end++ = 0;
        s = derive(out, line);
    }
    return s;
}

static weft_status list_arrays(weft_prog *prog, Entry *e)
{
    weft_arg a;
    int n = 0;
    weft_status s = weft_prog_nargs(prog, &n);

    for (int i = 0; i < n && s == WEFT_OK; i++) {
        s = weft_prog_arg(prog, i, &a);
        if (s != WEFT_OK || a.role == WEFT_SIZE)
            continue;
        if (a.role == WEFT_INOUT || e->nin == MOST_ARRAYS || e->nout == MOST_ARRAYS)
            return NOT_READ;
        if (a.role == WEFT_INPUT) {
            e->in[e->nin++] = a.name;
            continue;
        }
        e->out_type[e->nout] = a.type;
        e->out_ndim[e->nout] = a.ndim;
        e->out[e->nout++] = a.name;
    }
    return s;
}

static weft_status compile(weft_ctx *ctx, Entry *e, char *copy)
{
    weft_status s = read_program(ctx, copy, &e->prog);

    if (s == WEFT_OK)
        s = list_arrays(e->prog, e);
    if (s == WEFT_OK)
        s = weft_args_new(e->prog, &e->args);
    if (s == WEFT_OK)
        s = weft_kernel_compile(e->prog, &e->kernel);
    return s;
}

/* The library's message stays. */
static void close_entry(Entry *e)
{
    weft_args_free(e->args);
    weft_kernel_free(e->kernel);
    weft_prog_free(e->prog);
    free(e->text);
    free(e);
}

void run_drop(const char *spec)
{
    for (int i = 0; i < BUCKETS; i++)
        for (Entry **at = &table[i], *e; (e = *at) != NULL;)
            if (strncmp(e->text, "o3 ", 3) == 0 && is_of_problem(e->text + 3, spec)) {
                *at = e->next;
                close_entry(e);
            } else {
                at = &e->next;
            }
}

static Entry *open_entry(Call *c, weft_ctx *ctx, const char *text, uint64_t hash)
{
    size_t n = strlen(text) + 1;
    Entry *e = calloc(1, sizeof *e);
    char *copy = malloc(n), *work = malloc(n);
    weft_status s;

    if (e == NULL || copy == NULL || work == NULL) {
        say(c, "%s", "out of memory");
    } else {
        memcpy(copy, text, n);
        memcpy(work, text, n);
        e->text = copy;
        e->hash = hash;
        s = compile(ctx, e, work);
        if (s == WEFT_OK) {
            free(work);
            return e;
        }
        say(c, "%s", s == NOT_READ ? "not the text of a program: expected o3 or op and a problem, then "
                                     "lines as grad of=Z wrt=X or jvp of=Z wrt=X" : weft_message(ctx));
    }
    free(work);
    if (e != NULL) {
        e->text = copy;
        close_entry(e);
    } else {
        free(copy);
    }
    return NULL;
}

static Entry *find_entry(Call *c, weft_ctx *ctx, const char *text)
{
    uint64_t hash = hash_of(text);
    Entry **at = &table[hash % BUCKETS], *e = *at;

    for (; e != NULL; e = e->next)
        if (e->hash == hash && strcmp(e->text, text) == 0)
            return e;
    e = open_entry(c, ctx, text, hash);
    if (e != NULL) {
        e->next = *at;
        *at = e;
    }
    return e;
}

static bool same_shapes(const Entry *e, const Call *c)
{
    for (int i = 0; i < c->nin; i++)
        if (e->ndim[i] != c->in[i].ndim ||
            memcmp(e->shape[i], c->in[i].shape, (size_t)e->ndim[i] * sizeof(int64_t)) != 0)
            return false;
    return e->known;
}

static weft_status bind(weft_args *args, const char *name, const Plain *p)
{
    weft_tensor t = { p->data, p->type, p->ndim, p->shape, p->stride };

    return weft_args_bind(args, name, &t);
}

/* What was bound for other shapes goes first, as all that is bound has to fit. */
static weft_status unbind(Entry *e)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nin && s == WEFT_OK; i++)
        s = weft_args_bind(e->args, e->in[i], NULL);
    for (int i = 0; i < e->nout && s == WEFT_OK; i++)
        s = weft_args_bind(e->args, e->out[i], NULL);
    return s;
}

static weft_status learn_shapes(Entry *e, const Call *c)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nout && s == WEFT_OK; i++)
        s = weft_args_shape(e->args, e->out[i], e->out_shape[i]);
    for (int i = 0; i < e->nin; i++) {
        e->ndim[i] = c->in[i].ndim;
        memcpy(e->shape[i], c->in[i].shape, sizeof e->shape[i]);
    }
    e->known = s == WEFT_OK;
    return s;
}

static weft_status bind_inputs(Entry *e, const Call *c)
{
    bool same = same_shapes(e, c);
    weft_status s = same ? WEFT_OK : unbind(e);

    e->known = false;
    for (int i = 0; i < e->nin && s == WEFT_OK; i++)
        s = bind(e->args, e->in[i], &c->in[i]);
    if (s == WEFT_OK && !same)
        s = learn_shapes(e, c);
    e->known = s == WEFT_OK;
    return s;
}

static weft_status bind_outputs(Entry *e, Call *c)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nout && s == WEFT_OK; i++) {
        c->nout = i + 1;
        if (!plain_new(e->out_type[i], e->out_ndim[i], e->out_shape[i], &c->out[i]))
            return WEFT_E_NOMEM;
        s = bind(e->args, e->out[i], &c->out[i]);
    }
    return s;
}

static void run(Call *c, weft_ctx *ctx, const char *text)
{
    Entry *e = find_entry(c, ctx, text);
    weft_status s;

    if (e == NULL)
        return;
    if (c->nin != e->nin) {
        snprintf(c->message, sizeof c->message, "the program takes %d arrays, not %d", e->nin,
                 c->nin);
        return;
    }
    s = bind_inputs(e, c);
    if (s == WEFT_OK)
        s = bind_outputs(e, c);
    if (s == WEFT_OK)
        s = weft_kernel_run(e->kernel, e->args);
    if (s != WEFT_OK)
        say(c, "%s", weft_message(ctx)[0] != 0 ? weft_message(ctx) : "out of memory");
}

void op_run(Value *stack, uint64_t nargs, uint64_t nresults)
{
    AtenString *program = (AtenString *)(uintptr_t)stack[1];
    const char *text = "", *why;
    Call c;
    weft_ctx *ctx;

    (void)nargs;
    (void)nresults;
    c.nin = c.nout = 0;
    c.message[0] = 0;
    why = list_take((AtenList *)(uintptr_t)stack[0], c.in, MOST_ARRAYS, &c.nin);
    if (why == NULL)
        why = text_take(program, &text);
    if (why != NULL)
        say(&c, "%s", why);
    if (c.message[0] == 0) {
        ctx = state_enter();
        if (ctx != NULL)
            run(&c, ctx, text);
        else
            say(&c, "%s", "out of memory");
        state_leave();
    }
    shim.string_delete(program);
    if (c.message[0] == 0)
        stack[0] = list_give(c.out, c.nout);
    plain_free(c.in, c.nin);
    plain_free(c.out, c.nout);
    if (c.message[0] != 0)
        op_fail(c.message);
}
