/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft::run: any program of the library as an operator of torch.  The program is a text: where it
 * begins, which is a problem (o3), the name of an operator (op) or the lines of a program, then a
 * line for each derivative that is taken of it, or batch of inputs that it is made for:
 *     o3 tp; in1=8x0e; in2=1o; out=1o; mode=uvu
 *     grad of=Z wrt=X,Wt
 *     jvp of=d_X,d_Wt wrt=Y
 *     batch of=X,Y
 * Arrays are its inputs in the order of weft_prog_arg, results its outputs in the same order.
 * Sizes are those of the program in this order too, each -1 if shapes tell it; or none at all.
 *
 * What was worked out for structure arrays is kept with arguments of the library, several for each
 * program.  A call finds its own by shapes, sizes and the structure: large tensors that are those of an
 * earlier call, unchanged by torch's count, are known as such; of others the call hashes all elements,
 * and the library compares them with its copies. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text is none that this file knows; other statuses come with the library's message. */
#define NOT_READ ((weft_status)-1)
#define HAS_INOUT ((weft_status)-2)
#define TOO_MANY ((weft_status)-3)

enum { BUCKETS = 1024, MOST_SITES = 16 };

typedef struct Site { /* arguments for calls of these shapes, sizes and structure */
    weft_args *args;
    uint64_t sizes;     /* hash of the sizes that were given */
    uint64_t structure; /* hash of its elements and of the sizes */
    Held held[MOST_ARRAYS]; /* inputs that are structure */
    uint64_t used;      /* when */
    int64_t plans;      /* that it has made */
    bool known;         /* what follows is of the last run */
    int ndim[MOST_ARRAYS];
    int64_t shape[MOST_ARRAYS][WEFT_MAX_NDIM], out_shape[MOST_ARRAYS][WEFT_MAX_NDIM];
    bool later[MOST_ARRAYS]; /* the shape of an output that only a run tells */
} Site;

typedef struct Entry { /* a program that was compiled */
    struct Entry *next;
    uint64_t hash;
    char *text;
    weft_prog *prog; /* names of arguments are its */
    weft_kernel *kernel;
    int nsize, nin, nout, nstructure;
    const char *size[MOST_ARRAYS], *in[MOST_ARRAYS], *out[MOST_ARRAYS];
    bool structure[MOST_ARRAYS]; /* of inputs */
    weft_type out_type[MOST_ARRAYS];
    int out_ndim[MOST_ARRAYS];
    Site *site[MOST_SITES];
    int nsite;
    uint64_t now; /* calls so far */
} Entry;

static Entry *table[BUCKETS]; /* used by who is between state_enter and state_leave */
static uint64_t plans;        /* made so far, by all of them; likewise */

typedef struct Call {
    Plain in[MOST_ARRAYS], out[MOST_ARRAYS];
    int64_t size[MOST_ARRAYS];
    int nin, nout, nsize;
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

static void replace_program(weft_prog **prog, weft_prog *by)
{
    weft_prog_free(*prog);
    *prog = by;
}

/* "batch of=X,Y", which is written to. */
static weft_status add_batch(weft_prog **prog, char *line)
{
    const char *name[MOST_ARRAYS];
    int n = split(line + strlen("batch of="), name);
    weft_prog *out;
    weft_status s = weft_prog_batch(*prog, name, n, &out);

    if (s == WEFT_OK)
        replace_program(prog, out);
    return s;
}

/* "grad of=Z wrt=X,Wt" or "jvp of=Z wrt=X,Wt", which is written to. */
static weft_status derive(weft_prog **prog, char *line)
{
    const char *of[MOST_ARRAYS], *wrt[MOST_ARRAYS];
    char *o = strstr(line, " of="), *w = strstr(line, " wrt=");
    weft_grad g = { .of = of, .wrt = wrt, .forward = strncmp(line, "jvp ", 4) == 0 };
    weft_prog *out;
    weft_status s;

    if (strncmp(line, "batch of=", 9) == 0)
        return add_batch(prog, line);
    if (w == NULL || o == NULL || o > w || (!g.forward && strncmp(line, "grad ", 5) != 0))
        return NOT_READ;
    *w = 0;
    g.nof = split(o + 4, of);
    g.nwrt = split(w + 5, wrt);
    s = weft_prog_grad(*prog, &g, &out);
    if (s == WEFT_OK)
        replace_program(prog, out);
    return s;
}

/* The line of the first derivative; the end of the text where there is none.  A problem is one line,
 * a program all up to there. */
static char *find_derivative(char *text)
{
    char *line = text;

    if (strncmp(text, "program ", 8) != 0)
        return text + strcspn(text, "\n") + (strchr(text, '\n') != NULL);
    while (*line != 0 && strncmp(line, "grad of=", 8) != 0 && strncmp(line, "jvp of=", 7) != 0 &&
           strncmp(line, "batch of=", 9) != 0) {
        line += strcspn(line, "\n");
        line += *line != 0;
    }
    return line;
}

static weft_status read_first(weft_ctx *ctx, char *text, size_t n, weft_prog **out)
{
    if (n > 8 && memcmp(text, "program ", 8) == 0)
        return weft_prog_parse(ctx, "program", text, n, out);
    text[n > 0 && text[n - 1] == '\n' ? n - 1 : n] = 0;
    if (strncmp(text, "o3 ", 3) == 0)
        return weft_prog_o3(ctx, text + 3, out);
    return strncmp(text, "op ", 3) == 0 ? weft_prog_op(ctx, text + 3, out) : NOT_READ;
}

/* The text is written to. */
static weft_status read_program(weft_ctx *ctx, char *text, weft_prog **out)
{
    char *end = find_derivative(text), *line, first = *end;
    weft_status s;

    *out = NULL;
    s = read_first(ctx, text, (size_t)(end - text), out);
    *end = first;
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
        if (s != WEFT_OK)
            break;
        if (a.role == WEFT_INOUT)
            return HAS_INOUT;
        if (e->nin == MOST_ARRAYS || e->nout == MOST_ARRAYS || e->nsize == MOST_ARRAYS)
            return TOO_MANY;
        if (a.role == WEFT_SIZE) {
            e->size[e->nsize++] = a.name;
        } else if (a.role == WEFT_INPUT) {
            e->structure[e->nin] = a.structure != 0;
            e->nstructure += a.structure != 0;
            e->in[e->nin++] = a.name;
        } else {
            e->out_type[e->nout] = a.type;
            e->out_ndim[e->nout] = a.ndim;
            e->out[e->nout++] = a.name;
        }
    }
    return s;
}

static weft_status compile(weft_ctx *ctx, Entry *e, char *copy)
{
    weft_status s = read_program(ctx, copy, &e->prog);

    if (s == WEFT_OK)
        s = list_arrays(e->prog, e);
    if (s == WEFT_OK)
        s = weft_kernel_compile(e->prog, &e->kernel);
    return s;
}

static void drop_held(Site *site)
{
    for (int i = 0; i < MOST_ARRAYS; i++)
        held_drop(&site->held[i]);
}

static void close_site(Site *site)
{
    if (site == NULL)
        return;
    drop_held(site);
    weft_args_free(site->args);
    free(site);
}

/* The library's message stays. */
static void close_entry(Entry *e)
{
    for (int i = 0; i < e->nsite; i++)
        close_site(e->site[i]);
    weft_kernel_free(e->kernel);
    weft_prog_free(e->prog);
    free(e->text);
    free(e);
}

/* An o3 problem is told without that word; other texts as they are. */
static bool is_dropped(const char *text, const char *spec)
{
    return is_of_problem(strncmp(text, "o3 ", 3) == 0 ? text + 3 : text, spec);
}

void run_drop(const char *spec)
{
    for (int i = 0; i < BUCKETS; i++)
        for (Entry **at = &table[i], *e; (e = *at) != NULL;)
            if (is_dropped(e->text, spec)) {
                *at = e->next;
                close_entry(e);
            } else {
                at = &e->next;
            }
}

static const char *why(weft_ctx *ctx, weft_status s)
{
    if (s == NOT_READ)
        return "not the text of a program: expected o3 or op and a problem, or the lines of a "
               "program, then lines as grad of=Z wrt=X or jvp of=Z wrt=X";
    if (s == HAS_INOUT)
        return "the program has a buffer that is inout, which torch's operators cannot change in "
               "place; declare an input and an output instead";
    if (s == TOO_MANY)
        return "the program has more than 64 sizes, inputs or outputs";
    return weft_message(ctx)[0] != 0 ? weft_message(ctx) : "out of memory";
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
        say(c, "%s", why(ctx, s));
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

/* A word at a time in four lanes, so that memory is what limits it. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    static const uint64_t odd[4] = { 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                                     0xd6e8feb86659fd93 };
    const unsigned char *at = data;
    uint64_t lane[4] = { h, h ^ odd[1], h ^ odd[2], h ^ n }, word[4];

    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int k = 0; k < 4; k++) {
            lane[k] = (lane[k] ^ word[k]) * odd[k];
            lane[k] ^= lane[k] >> 32;
        }
    }
    for (; n > 0; n--, at++)
        lane[n % 4] = (lane[n % 4] ^ *at) * odd[0];
    for (int k = 1; k < 4; k++)
        lane[0] = (lane[0] ^ lane[k] ^ lane[k] >> 29) * odd[k];
    return lane[0] ^ lane[0] >> 32;
}

/* The elements of an array with gaps, in C order, from dimension d on. */
static uint64_t hash_strided(uint64_t h, const Plain *p, int d, const char *at)
{
    size_t bytes = type_bytes(p->type);

    if (d == p->ndim)
        return hash_bytes(h, at, bytes);
    for (int64_t i = 0; i < p->shape[d]; i++)
        h = hash_strided(h, p, d + 1, at + i * p->stride[d] * (int64_t)bytes);
    return h;
}

static size_t bytes_of(const Plain *p)
{
    size_t n = type_bytes(p->type);

    for (int k = 0; k < p->ndim; k++)
        n *= (size_t)p->shape[k];
    return n;
}

static uint64_t hash_sizes(const Call *c)
{
    return hash_bytes(1, c->size, (size_t)c->nsize * sizeof *c->size);
}

/* Of what a plan is made of, but for shapes. */
static uint64_t hash_structure(const Entry *e, const Call *c)
{
    uint64_t h = hash_sizes(c);

    for (int i = 0; i < e->nin; i++) {
        const Plain *p = &c->in[i];

        if (!e->structure[i])
            continue;
        h += (uint64_t)p->type;
        h = is_packed(p) ? hash_bytes(h, p->data, bytes_of(p)) : hash_strided(h, p, 0, p->data);
    }
    return h;
}

static bool same_shapes(const Site *s, const Call *c)
{
    for (int i = 0; i < c->nin; i++)
        if (s->ndim[i] != c->in[i].ndim ||
            memcmp(s->shape[i], c->in[i].shape, (size_t)s->ndim[i] * sizeof(int64_t)) != 0)
            return false;
    return s->known;
}

static weft_status bind(weft_args *args, const char *name, const Plain *p)
{
    weft_tensor t = { p->data, p->type, p->ndim, p->shape, p->stride };

    return weft_args_bind(args, name, &t);
}

/* What was bound for other shapes goes first, as all that is bound has to fit. */
static weft_status unbind(Entry *e, Site *site)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nin && s == WEFT_OK; i++)
        s = weft_args_bind(site->args, e->in[i], NULL);
    for (int i = 0; i < e->nout && s == WEFT_OK; i++)
        s = weft_args_bind(site->args, e->out[i], NULL);
    return s;
}

/* A size that was set cannot be taken back, so other sizes are for other arguments. */
static weft_status renew(Entry *e, Site *site, const Call *c)
{
    weft_status s;

    drop_held(site);
    weft_args_free(site->args);
    site->plans = 0;
    s = weft_args_new(e->prog, &site->args);
    for (int i = 0; i < c->nsize && i < e->nsize && s == WEFT_OK; i++)
        if (c->size[i] >= 0)
            s = weft_args_size(site->args, e->size[i], c->size[i]);
    return s;
}

/* Where there is structure, the one of these shapes and this structure; else there is one at most,
 * of these sizes.  NULL: none. */
static Site *find_site(Entry *e, const Call *c, uint64_t structure)
{
    for (int i = 0; i < e->nsite; i++)
        if (e->site[i]->structure == structure &&
            (e->nstructure == 0 || same_shapes(e->site[i], c)))
            return e->site[i];
    return NULL;
}

/* The one that was not used for longest, when there is no room for another. */
static Site *place_for_site(Entry *e)
{
    int most = e->nstructure == 0 ? 1 : MOST_SITES, oldest = 0;

    for (int i = 1; i < e->nsite; i++)
        if (e->site[i]->used < e->site[oldest]->used)
            oldest = i;
    if (e->nsite == most)
        return e->site[oldest];
    e->site[e->nsite] = calloc(1, sizeof(Site));
    return e->site[e->nsite] == NULL ? NULL : e->site[e->nsite++];
}

/* Is the structure so large that to know it by its tensors is worth it? */
static bool is_large(const Entry *e, const Call *c)
{
    size_t n = 0;

    for (int i = 0; i < e->nin; i++)
        n += e->structure[i] ? bytes_of(&c->in[i]) : 0;
    return n > HELD_LEAST;
}

static bool has_held(const Entry *e, const Site *site, const Call *c)
{
    for (int i = 0; i < e->nin; i++)
        if (e->structure[i] && !held_is(&site->held[i], &c->in[i]))
            return false;
    return true;
}

/* The one whose structure are the very tensors of the call, unchanged.  NULL: none. */
static Site *find_held(Entry *e, const Call *c)
{
    uint64_t sizes = hash_sizes(c);

    for (int i = 0; i < e->nsite; i++)
        if (e->site[i]->sizes == sizes && same_shapes(e->site[i], c) && has_held(e, e->site[i], c))
            return e->site[i];
    return NULL;
}

/* *held: its structure is bound, and the same. */
static weft_status take_site(Entry *e, const Call *c, Site **out, bool *held)
{
    uint64_t structure;
    weft_status s = WEFT_OK;

    *out = e->nstructure > 0 && is_large(e, c) ? find_held(e, c) : NULL;
    *held = *out != NULL;
    if (!*held) {
        structure = hash_structure(e, c);
        *out = find_site(e, c, structure);
        if (e->nstructure > 0)
            state_count_look();
        if (*out == NULL) {
            *out = place_for_site(e);
            if (*out == NULL)
                return WEFT_E_NOMEM;
            (*out)->known = false;
            (*out)->structure = structure;
            (*out)->sizes = hash_sizes(c);
            s = renew(e, *out, c);
        }
    }
    (*out)->used = ++e->now;
    return s;
}

static weft_status learn_shapes(Entry *e, Site *site, const Call *c)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nout && s == WEFT_OK; i++) {
        s = weft_args_shape(site->args, e->out[i], site->out_shape[i]);
        site->later[i] = s == WEFT_E_ARG;
        s = site->later[i] ? WEFT_OK : s;
    }
    for (int i = 0; i < e->nin; i++) {
        site->ndim[i] = c->in[i].ndim;
        memcpy(site->shape[i], c->in[i].shape, sizeof site->shape[i]);
    }
    return s;
}

/* held: what is bound as structure stays, and is not read again. */
static weft_status bind_inputs(Entry *e, Site *site, const Call *c, bool held)
{
    bool same = same_shapes(site, c);
    weft_status s = same ? WEFT_OK : unbind(e, site);

    site->known = false;
    for (int i = 0; i < e->nin && s == WEFT_OK; i++)
        if (!held || !e->structure[i])
            s = bind(site->args, e->in[i], &c->in[i]);
    if (s == WEFT_OK && !same)
        s = learn_shapes(e, site, c);
    site->known = s == WEFT_OK;
    return s;
}

static weft_status bind_outputs(Entry *e, Site *site, Call *c)
{
    weft_status s = WEFT_OK;

    for (int i = 0; i < e->nout && s == WEFT_OK; i++) {
        c->out[i] = (Plain){ .handle = NULL };
        c->nout = i + 1;
        if (site->later[i])
            continue;
        if (!plain_new(e->out_type[i], e->out_ndim[i], site->out_shape[i], &c->out[i]))
            return WEFT_E_NOMEM;
        s = bind(site->args, e->out[i], &c->out[i]);
    }
    return s;
}

/* Outputs over axes that the run has built. */
static weft_status take_later(Entry *e, Site *site, Call *c)
{
    weft_status s = WEFT_OK;
    weft_tensor t;

    for (int i = 0; i < e->nout && s == WEFT_OK; i++) {
        size_t n = type_bytes(e->out_type[i]);

        if (!site->later[i])
            continue;
        s = weft_args_get(site->args, e->out[i], &t);
        if (s == WEFT_OK && !plain_new(t.type, t.ndim, t.shape, &c->out[i]))
            return WEFT_E_NOMEM;
        for (int k = 0; k < t.ndim && s == WEFT_OK; k++)
            n *= (size_t)t.shape[k];
        if (s == WEFT_OK && n > 0)
            memcpy(c->out[i].data, t.data, n);
    }
    return s;
}

uint64_t weft_torch_plans(void)
{
    uint64_t n;

    (void)state_enter();
    n = plans;
    state_leave();
    return n;
}

/* After a run that has taken the structure of the call. */
static void hold_structure(const Entry *e, Site *site, Call *c)
{
    if (!is_large(e, c))
        return;
    for (int i = 0; i < e->nin; i++)
        if (e->structure[i])
            held_set(&site->held[i], &c->in[i]);
}

static void count_plans(Site *site)
{
    weft_plan plan;

    if (weft_args_plan(site->args, &plan) != WEFT_OK)
        return;
    plans += (uint64_t)(plan.made - site->plans);
    site->plans = plan.made;
}

static void run(Call *c, weft_ctx *ctx, const char *text)
{
    Entry *e = find_entry(c, ctx, text);
    Site *site = NULL;
    bool held = false;
    weft_status s;

    if (e == NULL)
        return;
    if (c->nsize == 1 && c->size[0] == -1)
        c->nsize = 0; /* traced calls have a list that is not empty: see _torch.py */
    if (c->nin != e->nin || (c->nsize != 0 && c->nsize < e->nsize)) {
        bool arrays = c->nin != e->nin;

        snprintf(c->message, sizeof c->message, "the program takes %d %s, not %d",
                 arrays ? e->nin : e->nsize, arrays ? "arrays" : "sizes",
                 arrays ? c->nin : c->nsize);
        return;
    }
    s = take_site(e, c, &site, &held);
    if (s == WEFT_OK)
        s = bind_inputs(e, site, c, held);
    if (s == WEFT_OK)
        s = bind_outputs(e, site, c);
    if (s == WEFT_OK)
        s = weft_kernel_run(e->kernel, site->args);
    if (s == WEFT_OK)
        count_plans(site);
    if (s == WEFT_OK && !held)
        hold_structure(e, site, c);
    if (s == WEFT_OK)
        s = take_later(e, site, c);
    if (s != WEFT_OK)
        say(c, "%s", why(ctx, s));
}

static const char *take_sizes(AtenList *list, Call *c)
{
    size_t n = 0;
    Value v = 0;
    const char *fault = NULL;

    shim.list_size(list, &n);
    if (n > MOST_ARRAYS)
        fault = "more sizes than a program has";
    for (size_t i = 0; i < n && fault == NULL; i++)
        if (shim.list_get(list, i, &v) == 0)
            c->size[c->nsize++] = (int64_t)v;
    shim.list_delete(list);
    return fault;
}

void op_run(Value *stack, uint64_t nargs, uint64_t nresults)
{
    AtenString *program = (AtenString *)(uintptr_t)stack[1];
    const char *text = "", *fault, *wrong;
    Call c;
    weft_ctx *ctx;

    (void)nargs;
    (void)nresults;
    c.nin = c.nout = c.nsize = 0;
    c.message[0] = 0;
    fault = list_take((AtenList *)(uintptr_t)stack[0], c.in, MOST_ARRAYS, &c.nin);
    wrong = take_sizes((AtenList *)(uintptr_t)stack[2], &c);
    fault = fault == NULL ? wrong : fault;
    if (fault == NULL)
        fault = text_take(program, &text);
    if (fault != NULL)
        say(&c, "%s", fault);
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
