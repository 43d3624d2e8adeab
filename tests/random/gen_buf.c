/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Buffers of the generated program, made when an access wants one, and their data. */
#include "random/gen.h"

#include <math.h>
#include <string.h>

static const char *const buf_names[] = { "A",   "X",   "Y",  "Z",   "Wt",   "val", "x_in",
                                         "Out", "Tmp", "Q_", "d_X", "feat", NULL };

/* The slots with their ancestors, each implied one just before its first child. */
static void set_full(GBuf *b)
{
    for (int s = 0; s < b->nslot; s++) {
        GAxis *missing[G_FULL];
        int n = 0;

        for (GAxis *up = b->slot[s]->parent; up != NULL; up = up->parent) {
            bool there = false;

            for (int k = 0; k < b->nfull; k++)
                there = there || b->full[k] == up;
            if (there)
                break;
            missing[n++] = up;
        }
        while (n > 0)
            b->full[b->nfull++] = missing[--n];
        b->place[s] = b->nfull;
        b->full[b->nfull++] = b->slot[s];
    }
}

GBuf *gen_buf(Gen *g, BufKind kind, Type type, GAxis *const *slot, int nslot)
{
    GBuf *b = arena_alloc(g->arena, sizeof *b);

    b->name = gen_name(g, buf_names);
    b->kind = kind;
    b->type = type;
    b->nslot = nslot;
    memcpy(b->slot, slot, (size_t)nslot * sizeof *slot);
    set_full(b);
    g->buf[g->nbuf++] = b;
    return b;
}

Type gen_float_type(Gen *g)
{
    static const Type types[] = { T_f32, T_f64, T_f32, T_f64, T_f16, T_bf16 };

    return g->knobs.poly ? T_f64 : types[gen_pick(g, 6)];
}

double gen_limit(const Gen *g, Type t)
{
    if (!g->knobs.exact)
        return INFINITY;
    return t == T_bf16 ? 0x1p8 : t == T_f16 ? 0x1p11 : t == T_f32 ? 0x1p24 : 0x1p53;
}

/* Rounded, infinite, not a number, minus zero: what the exact mode leaves out. */
static double draw_float(Gen *g)
{
    static const double odd[] = { -0.0, INFINITY, -INFINITY, NAN, 1e300, 1e-310, 65504, 3e38, 0.1 };

    if (g->knobs.exact)
        return gen_pick(g, 9) - 4;
    if (gen_p(g, 5))
        return odd[gen_pick(g, 9)];
    return gen_p(g, 50) ? (double)(gen_pick(g, 9) - 4) : (double)(gen_pick(g, 4001) - 2000) / 700;
}

static int64_t draw_int(Gen *g, const GBuf *b)
{
    const GAxis *x = b->positions;
    int64_t nth;

    if (x == NULL)
        return (int64_t)b->range.lo + gen_pick(g, (int)(b->range.hi - b->range.lo + 1));
    nth = gen_pick(g, (int)x->live);
    for (int64_t p = 0; p < x->n; p++)
        if (x->exists[p] && nth-- == 0)
            return p;
    return 0;
}

typedef struct Fill { /* the array being filled, tuple after tuple */
    Gen *g;
    const GBuf *buf;
    int64_t pos[G_FULL];
    Array array;
    bool count; /* only count them */
} Fill;

static void put_element(Fill *f, bool exists)
{
    Gen *g = f->g;
    bool floats = ir_type[f->buf->type].floats;

    if (!f->count && floats) /* what is padding must never be looked at */
        array_set(&f->array, f->array.n, 0, exists ? draw_float(g) : NAN);
    else if (!f->count)
        array_set(&f->array, f->array.n, exists ? draw_int(g, f->buf) : -77777, 0);
    f->array.n++;
}

static void fill_from(Fill *f, int place, bool exists)
{
    const GBuf *b = f->buf;
    const GAxis *x;
    int up = place - 1;
    int64_t lo, hi;

    if (place == b->nfull) {
        put_element(f, exists);
        return;
    }
    x = b->full[place];
    while (up >= 0 && b->full[up] != x->parent)
        up--;
    lo = x->parent == NULL ? 0 : x->start[f->pos[up]];
    hi = x->parent == NULL ? x->n : x->start[f->pos[up] + 1];
    for (int64_t p = lo; p < hi; p++) {
        f->pos[place] = p;
        fill_from(f, place + 1, exists && x->exists[p]);
    }
}

static Array draw_array(Gen *g, const GBuf *b)
{
    Fill f = { .g = g, .buf = b, .count = true };

    fill_from(&f, 0, true);
    f.count = false;
    f.array = array_new(g->arena, b->type, f.array.n);
    f.array.n = 0;
    fill_from(&f, 0, true);
    return f.array;
}

/* A const buffer carries its data in the text: then its axes must be constant. */
static bool make_const(Gen *g, GBuf *b, const Array *a)
{
    bool floats = ir_type[b->type].floats;

    for (int k = 0; k < b->nfull; k++)
        if (!b->full[k]->constant)
            return false;
    if (a->n > 30 || !gen_p(g, 50))
        return false;
    b->kind = B_CONST;
    b->literal = "";
    for (int64_t i = 0; i < a->n; i++) {
        const char *sep = i > 0 ? ", " : "";
        char text[NUM_TEXT];

        if (floats)
            num_print(text, array_float(a, i));
        b->literal = floats ? gen_f(g, "%s%s%s", b->literal, sep, text)
                            : gen_f(g, "%s%s%lld", b->literal, sep, (long long)array_int(a, i));
    }
    return true;
}

static void draw_fill(Gen *g, GBuf *b)
{
    static const char *const odd[] = { "inf", "-inf", "nan", "-0.0", "0.5", "1e-3" };

    if (!gen_p(g, 25))
        return;
    b->fill_value = gen_pick(g, 9) - 4;
    b->fill = gen_f(g, "%g", b->fill_value);
    if (!g->knobs.exact && ir_type[b->type].floats && gen_p(g, 30)) {
        b->fill = odd[gen_pick(g, 6)];
        b->fill_value = INFINITY;
    }
}

static void bind_array(Gen *g, GBuf *b)
{
    Array a = draw_array(g, b);

    if (b->kind != B_ARG || !make_const(g, b, &a))
        data_array(g->arena, g->out->data, b->name, a);
}

GBuf *gen_input(Gen *g, Type type, GAxis *const *slot, int nslot)
{
    GBuf *b = gen_buf(g, B_ARG, type, slot, nslot);

    b->range = ival(gen_p(g, 50) ? 0 : -4, gen_pick(g, 6));
    b->mag = ir_type[type].floats ? 4 : 5;
    draw_fill(g, b);
    if (b->fill != NULL && !ir_type[type].floats) {
        b->range.lo = fmin(b->fill_value, b->range.lo);
        b->range.hi = fmax(b->fill_value, b->range.hi);
    }
    bind_array(g, b);
    return b;
}

GBuf *gen_position_map(Gen *g, GAxis *of, GAxis *const *slot, int nslot)
{
    GBuf *b = gen_buf(g, B_ARG, gen_p(g, 50) ? T_i32 : T_i64, slot, nslot);

    b->positions = of;
    b->range = ival(0, of->n - 1);
    b->mag = (double)of->n;
    bind_array(g, b);
    return b;
}

void gen_inout_data(Gen *g, GBuf *b)
{
    b->range = ival(-4, 4);
    b->mag = 4;
    bind_array(g, b);
}
