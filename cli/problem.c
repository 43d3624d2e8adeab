/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From a string to arrays and a kernel:
 *
 *     spmm:graph.mtx:k=128:f32:t=2
 *     sddmm:powerlaw:n=1000:nnz=8000:k=64:i64
 *     spmm:graph.mtx:k=128:sched=panel 64; pack 1
 *     file:mine.weft:graph.npz:feat=32
 *     file:mttkrp_csf.weft:data=csf.npz:f=16
 *     tp:mace-large:n=2000:backward
 *     conv:sevennet0-main:system=water:atoms=1000
 *
 * An operator and its options, or file and a path; a graph, be it a file or a generator with its
 * parameters; sizes of the program (k is the operators' f); t threads; the type of indices; a
 * schedule.  A size without a value is that of the graph.  A program whose structure is no matrix
 * gets it from a file instead of a graph.  Tensor products (tp.c) have no graph, that of a
 * convolution (conv.c) is of atoms. */
#include "problem.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const generators[] = { "uniform", "powerlaw", "rmat", "banded", NULL };
static const char *const parameters[] = { "n", "nnz", "a", "b", "c", "max", "seed", "w", NULL };

#define NO_MATRIX "its structure is not that of one matrix; give data=FILE.npz, with the array "

enum { ITEMS = 1000, FEW_ITEMS = 5 }; /* of a tensor product: by default, and to verify it */

double problem_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool bad(const Problem *p, const char *what, const char *word)
{
    fprintf(stderr, "weft bench: %s: %s%s; see weft bench --help\n", p->text, what, word);
    return false;
}

static bool is_one_of(const char *const *list, const char *s, size_t n)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == n && memcmp(*list, s, n) == 0)
            return true;
    return false;
}

static bool is_option(const char *s)
{
    const char *name;

    for (int i = 0; (name = weft_list("options", i, NULL)) != NULL; i++)
        if (strcmp(name, s) == 0)
            return true;
    return false;
}

/* Adds ":word" (or the word, when it is the first); false when it does not fit. */
static bool append(char to[MAX_WORD], const char *word)
{
    size_t n = strlen(to);

    return snprintf(to + n, MAX_WORD - n, "%s%s", n > 0 ? ":" : "", word) < (int)(MAX_WORD - n);
}

static bool take_number(Problem *p, const char *word)
{
    size_t n = strcspn(word, "=");
    char *end;
    int64_t v;

    errno = 0;
    v = strtoimax(word + n + 1, &end, 10);
    if (*end != 0 || errno != 0 || v < 0 || word[n + 1] == 0)
        return bad(p, "not a size: ", word);
    if (n == 1 && word[0] == 't') {
        p->threads = v > 1024 ? 1025 : (int)v;
        return true;
    }
    if (p->nsize == MAX_SIZES)
        return bad(p, "too many sizes", "");
    memcpy(p->size_name[p->nsize], word, n);
    p->size[p->nsize++] = v;
    return true;
}

static bool is_product(const Problem *p)
{
    return strcmp(p->op, "tp") == 0 || strcmp(p->op, "conv") == 0;
}

static bool is_conv(const Problem *p)
{
    return strcmp(p->op, "conv") == 0;
}

/* One word between colons, of those after the first. */
static bool take_word(Problem *p, const char *word, bool *generated)
{
    size_t n = strcspn(word, "=");

    if (p->op[0] == 0 && p->file[0] == 0)
        return append(p->file, word);
    if (is_conv(p) && conv_take(p, word) != 0)
        return conv_take(p, word) > 0 || bad(p, "a number that makes no sense: ", word);
    if (is_product(p) && tp_is_word(word)) {
        if (p->ntp == MAX_TP_WORDS)
            return bad(p, "too many words", "");
        memcpy(p->tp[p->ntp++], word, strlen(word) + 1);
        return true;
    }
    if (strcmp(word, "i32") == 0 || strcmp(word, "i64") == 0) {
        p->index = word[1] == '3' ? WEFT_I32 : WEFT_I64;
        return true;
    }
    if (strncmp(word, "sched=", 6) == 0)
        return append(p->sched, word + 6);
    if (strncmp(word, "hold=", 5) == 0)
        return append(p->hold, word + 5);
    if (strncmp(word, "data=", 5) == 0 && p->op[0] == 0)
        return append(p->archive, word + 5);
    if (p->op[0] != 0 && is_option(word))
        return append(p->spec, word);
    if (p->source[0] == 0 && (p->archive[0] == 0 || word[n] == 0)) {
        *generated = is_one_of(generators, word, strlen(word));
        return append(p->source, word);
    }
    if (*generated && word[n] != 0 && is_one_of(parameters, word, n))
        return append(p->source, word);
    return word[n] != 0 ? take_number(p, word) : bad(p, "what is ", word);
}

bool problem_parse(Problem *p, const char *text)
{
    char word[MAX_WORD];
    bool generated = false;

    *p = (Problem){ .text = text, .index = WEFT_I32 };
    for (const char *s = text;; s++) {
        size_t n = strcspn(s, ":");

        if (n == 0 || n >= MAX_WORD)
            return bad(p, "a part is empty or too long", "");
        memcpy(word, s, n);
        word[n] = 0;
        if (s == text) {
            append(p->spec, word);
            append(p->op, strcmp(word, "file") == 0 ? "" : word);
            p->op[0] = strcmp(word, "file") == 0 ? 0 : p->op[0];
        } else if (!take_word(p, word, &generated)) {
            return false;
        }
        s += n;
        if (*s == 0)
            break;
    }
    if (p->archive[0] != 0)
        return p->source[0] == 0 || bad(p, "both a graph and data=: ", p->source);
    return p->source[0] != 0 || bad(p, is_product(p) ? "it has no irreps" : "it has no graph", "");
}

static bool failed(const Problem *p)
{
    cli_failed(p->ctx);
    return false;
}

static bool has_size(const Problem *p, const char *name)
{
    weft_arg a;

    for (int i = 0; weft_prog_arg(p->prog, i, &a) == WEFT_OK && a.role == WEFT_SIZE; i++)
        if (strcmp(a.name, name) == 0)
            return true;
    return false;
}

static weft_status make_product(Problem *p)
{
    char spec[4 * MAX_WORD];
    int order;
    weft_status status;

    if (!tp_spec(p, spec, sizeof spec, &order)) {
        bad(p, "neither a named product nor IN1*IN2>OUT: ", p->source);
        return WEFT_E_ARG;
    }
    status = weft_prog_o3(p->ctx, spec, &p->prog);
    for (int i = 0; i < order && status == WEFT_OK; i++)
        status = weft_prog_grad(p->prog, NULL, &p->prog);
    return status;
}

static bool make_program(Problem *p)
{
    weft_status status = is_product(p)   ? make_product(p)
                         : p->op[0] != 0 ? weft_prog_op(p->ctx, p->spec, &p->prog)
                                         : weft_prog_read(p->ctx, p->file, &p->prog);

    if (status != WEFT_OK && weft_message(p->ctx)[0] == 0)
        return false; /* said so */
    if (status != WEFT_OK ||
        weft_prog_schedule(p->prog, p->sched[0] != 0 ? p->sched : NULL) != WEFT_OK)
        return failed(p);
    for (int i = 0; i < p->nsize; i++) {
        if (strcmp(p->size_name[i], "k") == 0 && !has_size(p, "k") && has_size(p, "f"))
            p->size_name[i][0] = 'f';
        if (!has_size(p, p->size_name[i]))
            return bad(p, "the program has no size ", p->size_name[i]);
    }
    return true;
}

/* The structure arrays of the program that a graph gives: X.start and a coordinate, or the two
 * coordinates of COO. */
static bool find_structure(Problem *p)
{
    weft_arg a;

    for (int i = 0; weft_prog_arg(p->prog, i, &a) == WEFT_OK; i++) {
        const char *dot = strrchr(a.name, '.');

        if (!a.structure || a.role != WEFT_INPUT || dot == NULL)
            continue;
        if (strcmp(dot, ".start") == 0 && p->start == NULL)
            p->start = a.name;
        else if (p->start == NULL && p->row_name == NULL)
            p->row_name = a.name;
        else if (p->col == NULL)
            p->col = a.name;
        else
            return bad(p, NO_MATRIX, a.name);
    }
    if (p->col == NULL && p->row_name != NULL)
        return bad(p, NO_MATRIX, p->row_name);
    return p->start != NULL || p->col != NULL || bad(p, "the program has no sparse structure", "");
}

/* Every structure array, by its name in the file. */
static bool read_structure(Problem *p, weft_args *args)
{
    weft_arg a;

    for (int i = 0; weft_prog_arg(p->prog, i, &a) == WEFT_OK; i++)
        if (a.structure && a.role == WEFT_INPUT &&
            weft_args_read(args, a.name, p->archive) != WEFT_OK)
            return failed(p);
    return true;
}

static bool set_sizes(Problem *p, weft_args *args)
{
    weft_arg a;

    for (int i = 0; weft_prog_arg(p->prog, i, &a) == WEFT_OK && a.role == WEFT_SIZE; i++) {
        int64_t v = strcmp(a.name, "m") == 0     ? p->graph.m
                    : strcmp(a.name, "nnz") == 0 ? p->graph.nnz
                                                 : p->graph.n;
        bool given = p->archive[0] == 0 && (strcmp(a.name, "f") != 0 || p->op[0] == 0);

        for (int k = 0; k < p->nsize; k++)
            if (strcmp(p->size_name[k], a.name) == 0 && !p->few) {
                v = p->size[k];
                given = true;
            }
        if (!given && p->archive[0] != 0)
            continue; /* the file's arrays tell it, or its lack is found by the first shape */
        if (!given)
            return bad(p, "a size is missing: ", strcmp(a.name, "f") == 0 ? "k" : a.name);
        if (weft_args_size(args, a.name, v) != WEFT_OK)
            return failed(p);
    }
    return true;
}

static bool bind(Problem *p, weft_args *args, const char *name, const void *data, int64_t n)
{
    weft_tensor t = { (void *)(uintptr_t)data, p->index, 1, &n, NULL };

    return name == NULL || weft_args_bind(args, name, &t) == WEFT_OK || failed(p);
}

static bool bind_structure(Problem *p, weft_args *args)
{
    const weft_graph *g = &p->graph;

    if (p->archive[0] != 0)
        return set_sizes(p, args) && read_structure(p, args);
    return set_sizes(p, args) && bind(p, args, p->start, g->start, g->m + 1) &&
           bind(p, args, p->row_name, p->row, g->nnz) && bind(p, args, p->col, g->col, g->nnz);
}

static bool hold(Problem *p, weft_args *args)
{
    char name[MAX_WORD];

    for (const char *s = p->hold; *s != 0;) {
        size_t n = strcspn(s, ":");

        memcpy(name, s, n);
        name[n] = 0;
        if (weft_args_hold(args, name, 1) != WEFT_OK)
            return failed(p);
        s += n + (s[n] != 0);
    }
    return true;
}

weft_args *problem_bind(Problem *p, bool outputs)
{
    weft_args *args;

    if (weft_args_new(p->prog, &args) != WEFT_OK) {
        cli_failed(p->ctx);
        return NULL;
    }
    if (!bind_structure(p, args) || !hold(p, args))
        return NULL;
    for (int i = 0; i < p->ndata; i++)
        if ((!p->data[i].output || outputs) &&
            weft_args_bind(args, p->data[i].name, &p->data[i].tensor) != WEFT_OK) {
            cli_failed(p->ctx);
            return NULL;
        }
    return args;
}

/* A multiple of 1/8 from -1 to 1, as f16: exponents of 2^-3 to 2^0. */
static uint16_t half_of(int eighths)
{
    static const uint16_t bits[] = { 0,      0x3000, 0x3400, 0x3600, 0x3800,
                                     0x3900, 0x3a00, 0x3b00, 0x3c00 };

    return (uint16_t)(bits[eighths < 0 ? -eighths : eighths] | (eighths < 0 ? 0x8000 : 0));
}

static void fill(const weft_tensor *t, int64_t n, uint64_t state)
{
    for (int64_t i = 0; i < n; i++) {
        int v;
        float f;
        uint32_t bits;

        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        v = (int)(state >> 33) % 17 - 8;
        f = (float)v / 8;
        memcpy(&bits, &f, sizeof bits);
        switch (t->type) {
        case WEFT_I32: ((int32_t *)t->data)[i] = 0; break;
        case WEFT_I64: ((int64_t *)t->data)[i] = 0; break;
        case WEFT_F16: ((uint16_t *)t->data)[i] = half_of(v); break;
        case WEFT_BF16: ((uint16_t *)t->data)[i] = (uint16_t)(bits >> 16); break;
        case WEFT_F32: ((float *)t->data)[i] = f; break;
        case WEFT_F64: ((double *)t->data)[i] = f; break;
        }
    }
}

double data_get(const weft_tensor *t, int64_t i)
{
    uint16_t h;
    uint32_t bits;
    float f;

    switch (t->type) {
    case WEFT_I32: return ((const int32_t *)t->data)[i];
    case WEFT_I64: return (double)((const int64_t *)t->data)[i];
    case WEFT_F32: return ((const float *)t->data)[i];
    case WEFT_F64: return ((const double *)t->data)[i];
    default: break;
    }
    h = ((const uint16_t *)t->data)[i];
    if (t->type == WEFT_F16) { /* an f32 of the same bits is 2^112 times smaller */
        bits = (uint32_t)(h & 0x8000) << 16 | (uint32_t)(h & 0x7fff) << 13;
        memcpy(&f, &bits, sizeof f);
        return (h & 0x7c00) == 0x7c00 ? NAN : (double)f * 0x1p112;
    }
    bits = (uint32_t)h << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static bool add_data(Problem *p, weft_args *args, const weft_arg *a)
{
    static const size_t bytes[] = { [WEFT_I32] = 4,  [WEFT_I64] = 8, [WEFT_F16] = 2,
                                    [WEFT_BF16] = 2, [WEFT_F32] = 4, [WEFT_F64] = 8 };
    Data *d = &p->data[p->ndata];

    if (p->ndata == MAX_ARRAYS || strlen(a->name) >= MAX_WORD)
        return bad(p, "the program has too many arrays", "");
    memcpy(d->name, a->name, strlen(a->name) + 1);
    d->output = a->role == WEFT_OUTPUT;
    if (weft_args_shape(args, a->name, d->shape) != WEFT_OK)
        return failed(p);
    d->n = 1;
    for (int k = 0; k < a->ndim; k++)
        d->n *= d->shape[k];
    d->tensor = (weft_tensor){ NULL, a->type, a->ndim, d->shape, NULL };
    d->tensor.data = aligned_alloc(64, ((size_t)d->n * bytes[a->type] + 127) / 64 * 64);
    if (d->tensor.data == NULL)
        return bad(p, "out of memory", "");
    p->ndata++;
    fill(&d->tensor, d->n, (uint64_t)p->ndata);
    return true;
}

static bool make_data(Problem *p)
{
    weft_args *args;
    weft_arg a;
    bool good = true;

    if (weft_args_new(p->prog, &args) != WEFT_OK)
        return failed(p);
    good = bind_structure(p, args);
    for (int i = 0; good && weft_prog_arg(p->prog, i, &a) == WEFT_OK; i++)
        if (a.role != WEFT_SIZE && !(a.structure && a.role == WEFT_INPUT))
            good = add_data(p, args, &a);
    weft_args_free(args);
    return good;
}

static int64_t start_at(const weft_graph *g, int64_t i)
{
    return g->type == WEFT_I32 ? ((const int32_t *)g->start)[i] : ((const int64_t *)g->start)[i];
}

static bool make_rows(Problem *p)
{
    const weft_graph *g = &p->graph;

    if (p->row_name == NULL)
        return true;
    p->row = malloc((size_t)(g->nnz + 1) * 8);
    if (p->row == NULL)
        return bad(p, "out of memory", "");
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t e = start_at(g, i); e < start_at(g, i + 1); e++)
            if (p->index == WEFT_I32)
                ((int32_t *)p->row)[e] = (int32_t)i;
            else
                ((int64_t *)p->row)[e] = i;
    return true;
}

static bool make_graph(Problem *p, const char *source)
{
    if (p->archive[0] != 0)
        return true;
    if (is_conv(p))
        return conv_graph(p);
    if (!is_product(p))
        return weft_graph_make(p->ctx, source != NULL ? source : p->source, p->index, &p->graph) ==
               WEFT_OK;
    p->graph.n = p->few ? FEW_ITEMS : ITEMS;
    return true;
}

bool problem_open(Problem *p, const char *source)
{
    double begin;

    p->ctx = cli_ctx();
    if (weft_ctx_threads(p->ctx, p->threads) != WEFT_OK ||
        weft_ctx_target(p->ctx, p->target) != WEFT_OK)
        return failed(p);
    if (!make_program(p) ||
        ((!is_product(p) || is_conv(p)) && p->archive[0] == 0 && !find_structure(p)))
        return false;
    begin = problem_now();
    if (weft_kernel_compile(p->prog, &p->kernel) != WEFT_OK)
        return failed(p);
    p->compile_s = problem_now() - begin;
    if (weft_warning(p->ctx)[0] != 0)
        fprintf(stderr, "weft: note: %s\n", weft_warning(p->ctx));
    p->few = is_product(p) && source != NULL;
    if (!make_graph(p, source))
        return failed(p);
    if (!make_rows(p) || !make_data(p))
        return false;
    p->args = problem_bind(p, true);
    return p->args != NULL;
}

void problem_close(Problem *p)
{
    for (int i = 0; i < p->ndata; i++)
        free(p->data[i].tensor.data);
    free(p->row);
    cli_free(p->ctx);
    p->ndata = 0;
    p->row = NULL;
    p->ctx = NULL;
}

const Data *problem_data(const Problem *p, const char *name)
{
    for (int i = 0; i < p->ndata; i++)
        if (strcmp(p->data[i].name, name) == 0)
            return &p->data[i];
    return NULL;
}
