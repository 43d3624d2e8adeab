/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The programs that can be asked for by text: a table of forms with the settings of each. */
#include "o3/o3_int.h"

#include <string.h>

static const char *const sharing[] = { "shared", "item", "none", NULL };

/* The irreps of a setting, or NULL where it is not given. */
static const O3Irreps *keep_of(const Spec *s, const char *key, O3Irreps *room)
{
    if (spec_get(s, key) == NULL)
        return NULL;
    *room = spec_irreps(s, key);
    return room;
}

static O3Mode mode_of(const Spec *s, const char *key, const char *word)
{
    for (int m = 0; m < O3_MODES; m++)
        if (word != NULL && strcmp(o3_mode[m], word) == 0)
            return (O3Mode)m;
    err_throw(s->arena->err, ST_ARG,
              "%s: %s: there is no mode \"%.60s\"; there are uvw uvu uvv uuw uuu uvuv uvu<v u<vw",
              s->form, key, word != NULL ? word : "");
}

/* "0 0 0 uvw yes 1.5, 0 1 1 uvu": slots, mode, whether it has weights, path weight. */
static void read_paths(const Spec *s, O3Problem *t)
{
    const char *at = spec_get(s, "paths"), *one;
    O3Path *path = NULL;
    int cap = 0;

    while ((one = spec_word(s->arena, &at, ",")) != NULL) {
        O3Path p = { .weighted = true, .weight = 1 };
        const char *word;

        p.in1 = spec_integer(s, "paths", spec_word(s->arena, &one, " "));
        p.in2 = spec_integer(s, "paths", spec_word(s->arena, &one, " "));
        p.out = spec_integer(s, "paths", spec_word(s->arena, &one, " "));
        p.mode = mode_of(s, "paths", spec_word(s->arena, &one, " "));
        if ((word = spec_word(s->arena, &one, " ")) != NULL) {
            if (strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)
                err_throw(s->arena->err, ST_ARG,
                          "%s: paths: whether there are weights is yes or no, not \"%.60s\"",
                          s->form, word);
            p.weighted = word[0] == 'y';
        }
        if ((word = spec_word(s->arena, &one, " ")) != NULL)
            p.weight = spec_number(s, "paths", word);
        if (spec_word(s->arena, &one, " ") != NULL)
            err_throw(s->arena->err, ST_ARG, "%s: paths: more than six words in path %d", s->form,
                      t->npath);
        path = arena_grow(s->arena, path, t->npath, &cap, sizeof *path);
        path[t->npath++] = p;
    }
    t->path = path;
}

/* A tensor product by mode: in slots of its own where the mode tells their multiplicity. */
static void by_mode(const Spec *s, O3Problem *t)
{
    O3Mode mode = mode_of(s, "mode", spec_get(s, "mode") != NULL ? spec_get(s, "mode") : "uvw");
    bool in_order = spec_choice(s, "order", (const char *const[]){ "out", "in", NULL }, 0) == 0;
    bool weighted = spec_choice(s, "weights", sharing, 0) != 2;
    O3Irreps keep;

    if (mode == O3_UVW || mode == O3_UUW || mode == O3_UVW_LESS) {
        t->out = spec_irreps(s, "out");
        o3_form_connected(s->arena, t, mode, weighted);
        return;
    }
    o3_form_slots(s->arena, t, mode, weighted, keep_of(s, "out", &keep), in_order);
}

static void fill_tp(const Spec *s, O3Problem *t)
{
    if (spec_get(s, "paths") == NULL) {
        by_mode(s, t);
        return;
    }
    if (spec_get(s, "mode") != NULL || spec_get(s, "order") != NULL)
        err_throw(s->arena->err, ST_ARG, "tp: paths have their own mode and order");
    t->out = spec_irreps(s, "out");
    read_paths(s, t);
}

static void fill_connected(const Spec *s, O3Problem *t)
{
    t->out = spec_irreps(s, "out");
    o3_form_connected(s->arena, t, O3_UVW, true);
}

static void fill_full(const Spec *s, O3Problem *t)
{
    O3Irreps keep;

    t->in1 = o3_simplify(s->arena, t->in1);
    t->in2 = o3_simplify(s->arena, t->in2);
    o3_form_slots(s->arena, t, O3_UVUV, false, keep_of(s, "keep", &keep), false);
}

static void fill_elementwise(const Spec *s, O3Problem *t)
{
    O3Irreps keep;

    o3_form_elementwise(s->arena, t, keep_of(s, "keep", &keep));
}

static void fill_square(const Spec *s, O3Problem *t)
{
    bool connected = spec_get(s, "out") != NULL;
    O3Irreps keep;

    if (connected && spec_get(s, "keep") != NULL)
        err_throw(s->arena->err, ST_ARG, "square: out and keep exclude each other");
    if (connected)
        t->out = spec_irreps(s, "out");
    o3_form_square(s->arena, t, keep_of(s, "keep", &keep), connected);
}

static void fill_norm(const Spec *s, O3Problem *t)
{
    o3_form_norm(s->arena, t, spec_yes(s, "squared"));
}

enum { MOST_HIDDEN = 65536 };

/* What a convolution has beyond a product: how its edges lie, and what its weights are made of. */
static void read_edges(const Spec *s, O3Problem *t)
{
    static const char *const order[] = { "sorted", "any", NULL };
    const char *hidden = spec_get(s, "hidden");

    t->edges = spec_choice(s, "edges", order, 0) == 0 ? O3_EDGES_SORTED : O3_EDGES_ANY;
    if (spec_get(s, "weights") == NULL)
        t->per_item = true;
    if (hidden == NULL)
        return;
    t->hidden = spec_integer(s, "hidden", hidden);
    if (t->hidden < 1 || t->hidden > MOST_HIDDEN)
        err_throw(s->arena->err, ST_ARG, "conv: hidden is 1 to %d features, not %d", MOST_HIDDEN,
                  t->hidden);
    if (!t->per_item)
        err_throw(s->arena->err, ST_ARG, "conv: hidden makes weights of each edge: weights=item");
}

/* A problem without paths is 0 everywhere, most often by a wrong degree or parity. */
static void need_paths(const Spec *s, int n)
{
    static const char *const word[] = { "refuse", "zeros", NULL };
    static const char *const key[] = { "in1", "in2", "out", "keep", "paths" };
    Text given = { .arena = s->arena };

    if (spec_choice(s, "empty", word, 0) == 1 || n > 0)
        return;
    for (int i = 0; i < 5; i++)
        if (spec_get(s, key[i]) != NULL)
            text_f(&given, "%s%s=%.200s", i > 0 ? ", " : "", key[i], spec_get(s, key[i]));
    err_throw(s->arena->err, ST_ARG,
              "%s: %s allow no path, so the result would be 0 everywhere; empty=zeros permits that",
              s->form, given.s);
}

typedef void Fill(const Spec *, O3Problem *);

static void write_product(Text *out, const Spec *s, Fill *fill, bool two)
{
    static const char *const norms[] = { "component", "norm", "none", NULL };
    static const char *const path_norms[] = { "element", "path", "none", NULL };
    static const char *const sums[] = { "plain", "compensated", NULL };
    O3Problem t = { .name = spec_get(s, "name") };

    t.in1 = spec_irreps(s, "in1");
    if (two)
        t.in2 = spec_irreps(s, "in2");
    t.norm = (O3Norm)spec_choice(s, "norm", norms, O3_COMPONENT);
    t.path_norm = (O3PathNorm)spec_choice(s, "path_norm", path_norms, O3_ELEMENT);
    t.signs = spec_signs(s);
    t.layout1 = spec_layout(s, "layout_in1");
    t.layout2 = spec_layout(s, "layout_in2");
    t.layout_out = spec_layout(s, "layout_out");
    t.type = spec_type(s, "type");
    t.weight_type = spec_type(s, "weight_type");
    t.per_item = spec_choice(s, "weights", sharing, 0) == 1;
    if (strcmp(s->form, "conv") == 0)
        read_edges(s, &t);
    fill(s, &t);
    if (strcmp(s->form, "norm") != 0)
        need_paths(s, t.npath);
    t.var1 = spec_numbers(s, "var1", t.in1.n, NULL);
    t.var2 = spec_numbers(s, "var2", t.in2.n, NULL);
    t.var_out = spec_numbers(s, "var_out", t.out.n, NULL);
    for (int k = 0; spec_choice(s, "weights", sharing, 0) == 2 && k < t.npath; k++)
        if (t.path[k].weighted)
            err_throw(s->arena->err, ST_ARG, "%s: weights=none, but path %d has weights", s->form,
                      k);
    if (s->facts)
        o3_tell_product(out, &t);
    else
        o3_write_product(out, &t);
    if (!s->facts && spec_choice(s, "sums", sums, 0) == 1)
        text_str(out, "schedule\ncompensate 1\n");
}

static void write_linear(Text *out, const Spec *s)
{
    static const char *const path_norms[] = { "element", "path", NULL };
    O3Linear t = { .name = spec_get(s, "name"),
                   .in = spec_irreps(s, "in1"),
                   .out = spec_irreps(s, "out") };
    const char *at = spec_get(s, "paths"), *one;
    O3Pair *path = NULL;
    int cap = 0;

    while (at != NULL && (one = spec_word(s->arena, &at, ",")) != NULL) {
        path = arena_grow(s->arena, path, t.npath, &cap, sizeof *path);
        path[t.npath].in = spec_integer(s, "paths", spec_word(s->arena, &one, " "));
        path[t.npath++].out = spec_integer(s, "paths", spec_word(s->arena, &one, " "));
    }
    if (spec_get(s, "paths") != NULL)
        t.path = path != NULL ? path : arena_alloc(s->arena, sizeof *path);
    t.bias = spec_yes(s, "bias");
    t.path_norm = (O3PathNorm)spec_choice(s, "path_norm", path_norms, O3_ELEMENT);
    t.per_item = spec_choice(s, "weights", (const char *const[]){ "shared", "item", NULL }, 0) == 1;
    t.layout_in = spec_layout(s, "layout_in1");
    t.layout_out = spec_layout(s, "layout_out");
    t.type = spec_type(s, "type");
    need_paths(s, o3_linear_terms(s->arena, &t));
    if (s->facts)
        o3_tell_linear(out, &t);
    else
        o3_write_linear(out, &t);
}

/* The parity is that of the harmonics themselves. */
static void tell_sh(Text *out, const O3Sh *t)
{
    O3Slot *at = arena_array(out->arena, t->n, sizeof *at);
    Text program = { .arena = out->arena };

    o3_write_sh(&program, t); /* which refuses degrees that are none */
    for (int i = 0; i < t->n; i++)
        at[i] = (O3Slot){ 1, { t->l[i], t->l[i] % 2 == 0 ? 1 : -1 } };
    o3_put_irreps(out, "out", (O3Irreps){ t->n, at });
}

static void write_sh(Text *out, const Spec *s)
{
    static const char *const norms[] = { "component", "norm", "integral", NULL };
    O3Sh t = { .name = spec_get(s, "name"), .norm = (O3ShNorm)spec_choice(s, "norm", norms, 0) };
    double *degree = spec_numbers(s, "l", -1, &t.n);
    int *l;

    if ((degree == NULL) == (spec_get(s, "lmax") == NULL))
        err_throw(s->arena->err, ST_ARG, "sh: degrees by one of l and lmax, as in lmax=3");
    if (degree == NULL)
        t.n = spec_integer(s, "lmax", spec_get(s, "lmax")) + 1;
    l = arena_array(s->arena, t.n > 0 ? t.n : 0, sizeof *l);
    for (int i = 0; i < t.n; i++)
        l[i] = degree == NULL ? i : degree[i] >= 0 && degree[i] < 1000 ? (int)degree[i] : -1;
    t.l = l;
    t.normalize = spec_yes(s, "normalize");
    t.type = spec_type(s, "type");
    if (s->facts)
        tell_sh(out, &t);
    else
        o3_write_sh(out, &t);
}

static void write_contraction(Text *out, const Spec *s)
{
    O3Contraction t = { .name = spec_get(s, "name"),
                        .in = spec_irreps(s, "in1"),
                        .out = spec_irreps(s, "out"),
                        .degree = O3_MAX_DEGREE };

    if (spec_get(s, "correlation") != NULL)
        t.degree = spec_integer(s, "correlation", spec_get(s, "correlation"));
    t.layout_in = spec_layout(s, "layout_in1");
    t.layout_out = spec_layout(s, "layout_out");
    t.signs = spec_signs(s);
    t.type = spec_type(s, "type");
    t.per_item =
        spec_choice(s, "weights", (const char *const[]){ "element", "item", NULL }, 0) == 1;
    if (s->facts)
        o3_tell_contraction(out, &t);
    else
        o3_write_contraction(out, &t);
}

static void write_tp(Text *out, const Spec *s)
{
    write_product(out, s, fill_tp, true);
}

static void write_connected(Text *out, const Spec *s)
{
    write_product(out, s, fill_connected, true);
}

static void write_full(Text *out, const Spec *s)
{
    write_product(out, s, fill_full, true);
}

static void write_elementwise(Text *out, const Spec *s)
{
    write_product(out, s, fill_elementwise, true);
}

static void write_square(Text *out, const Spec *s)
{
    write_product(out, s, fill_square, false);
}

static void write_norm(Text *out, const Spec *s)
{
    write_product(out, s, fill_norm, false);
}

#define ALL                                                                            \
    " type weight_type weights layout layout_in1 layout_in2 layout_out norm path_norm" \
    " var1 var2 var_out signs empty name "

const SpecForm o3_forms[] = {
    { "tp", " in1 in2 out mode order paths" ALL, write_tp },
    { "conv", " in1 in2 out mode order paths edges hidden sums" ALL, write_tp },
    { "connected", " in1 in2 out" ALL, write_connected },
    { "full", " in1 in2 keep" ALL, write_full },
    { "elementwise", " in1 in2 keep" ALL, write_elementwise },
    { "square", " in1 out keep" ALL, write_square },
    { "norm", " in1 squared type layout layout_in1 layout_out name ", write_norm },
    { "linear",
      " in1 out paths bias weights type layout layout_in1 layout_out path_norm empty name ",
      write_linear },
    { "contraction",
      " in1 out correlation weights type layout layout_in1 layout_out signs name ",
      write_contraction },
    { "sh", " l lmax norm normalize type name ", write_sh },
    { NULL, NULL, NULL },
};

void o3_write(Text *out, const char *text)
{
    spec_run(out, text, o3_forms, false);
}
