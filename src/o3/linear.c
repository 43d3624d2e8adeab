/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The program of a linear layer, e3nn's Linear: slots of one irrep are mixed channel by channel.
 * P lists the paths with their factors; Bias, the same for all items, has a value for each channel
 * of each slot of 0e. */
#include "o3/o3_int.h"

typedef struct Writer {
    Text *out;
    Arena *arena;
    const O3Linear *t;
    O3Operand x, z;
    int n;
    O3Pair *path;
    int64_t *u, *w, *m; /* of each path: channels in and out, components */
} Writer;

static void find_paths(Writer *w)
{
    const O3Linear *t = w->t;
    int cap = 0;

    for (int i = 0; t->path == NULL && i < t->in.n; i++)
        for (int k = 0; k < t->out.n; k++)
            if (o3_ir_same(t->in.at[i].ir, t->out.at[k].ir)) {
                w->path = arena_grow(w->arena, w->path, w->n, &cap, sizeof *w->path);
                w->path[w->n++] = (O3Pair){ i, k };
            }
    for (int p = 0; t->path != NULL && p < t->npath; p++) {
        int i = t->path[p].in, k = t->path[p].out;

        if (i < 0 || i >= t->in.n || k < 0 || k >= t->out.n ||
            !o3_ir_same(t->in.at[i].ir, t->out.at[k].ir))
            err_throw(
                w->arena->err, ST_ARG,
                "linear: path %d goes from slot %d to slot %d, which are no slots of one irrep", p,
                i, k);
        w->path = arena_grow(w->arena, w->path, w->n, &cap, sizeof *w->path);
        w->path[w->n++] = (O3Pair){ i, k };
    }
    w->u = arena_array(w->arena, w->n, sizeof *w->u);
    w->w = arena_array(w->arena, w->n, sizeof *w->w);
    w->m = arena_array(w->arena, w->n, sizeof *w->m);
    for (int p = 0; p < w->n; p++) {
        w->u[p] = t->in.at[w->path[p].in].mul;
        w->w[p] = t->out.at[w->path[p].out].mul;
        w->m[p] = o3_ir_dim(t->in.at[w->path[p].in].ir);
    }
}

/* 1 / sqrt(how many products are summed). */
static double factor(const Writer *w, int p)
{
    double x = 0;

    for (int k = 0; k < w->n; k++)
        if (w->path[k].out == w->path[p].out)
            x += (double)w->u[w->t->path_norm == O3_PATH ? p : k];
    return w->t->path_norm == O3_PLAIN || x == 0 ? 1 : o3_root(1, x);
}

static bool put_axis(Writer *w, char letter, const int64_t *v)
{
    if (o3_all_one(v, w->n))
        return false;
    text_f(w->out, ", %c(P) = ", letter);
    o3_put_ints(w->out, v, w->n);
    return true;
}

/* The rows of P, and of the biases. */
static void put_paths(Writer *w)
{
    char number[NUM_TEXT];

    text_str(w->out, "axis P = rows sx sz -> a {");
    for (int p = 0; p < w->n; p++) {
        num_print(number, factor(w, p));
        text_f(w->out, "%s%d %d -> %s", p > 0 ? ", " : " ", w->path[p].in, w->path[p].out, number);
    }
    text_str(w->out, " }");
}

static bool is_biased(const O3Linear *t, int k)
{
    return t->bias && t->out.at[k].ir.l == 0 && t->out.at[k].ir.p == 1;
}

int o3_linear_terms(Arena *arena, const O3Linear *t)
{
    Writer w = { .arena = arena, .t = t };

    find_paths(&w);
    for (int k = 0; k < t->out.n; k++)
        w.n += is_biased(t, k);
    return w.n;
}

/* Whether there are any. */
static bool put_bias_axes(Writer *w)
{
    int64_t *mul = arena_array(w->arena, w->t->out.n, sizeof *mul);
    int n = 0;

    for (int k = 0; k < w->t->out.n; k++)
        if (is_biased(w->t, k)) {
            text_f(w->out, n > 0 ? ", %d" : "axis O = rows sz { %d", k);
            mul[n++] = w->t->out.at[k].mul;
        }
    if (n == 0)
        return false;
    text_str(w->out, " }, V(O) = ");
    o3_put_ints(w->out, mul, n);
    text_char(w->out, '\n');
    return true;
}

void o3_write_linear(Text *out, const O3Linear *t)
{
    Writer w = { .out = out, .arena = out->arena, .t = t };
    const char *type = o3_type_name(t->type), *item = t->per_item ? "B, " : "";
    bool u, v, m, bias;

    w.x = (O3Operand){ "X", "X", t->in, t->layout_in, "B", "b" };
    w.z = (O3Operand){ "Z", "Z", t->out, t->layout_out, "B", "b" };
    find_paths(&w);
    text_f(out, "program %s(n)\naxis B = n\n", t->name != NULL ? t->name : "linear");
    o3_put_axes(out, &w.x);
    o3_put_axes(out, &w.z);
    put_paths(&w);
    m = put_axis(&w, 'M', w.m);
    u = put_axis(&w, 'U', w.u);
    v = put_axis(&w, 'W', w.w);
    text_char(out, '\n');
    bias = put_bias_axes(&w);
    text_f(out, "%s ", type);
    o3_put_buf(out, &w.x);
    text_str(out, ", ");
    o3_put_buf(out, &w.z);
    text_f(out, ", Wt[%sP%s%s]", item, u ? ", U" : "", v ? ", W" : "");
    text_str(out, bias ? ", Bias[O, V]\nz: " : "\nz: ");
    o3_put_load(out, &w.z, "sz(p)", v ? "w" : "", m ? "m" : "0");
    text_f(out, " += a[p] * Wt[%sp%s%s] * ", t->per_item ? "b, " : "", u ? ", u" : "",
           v ? ", w" : "");
    o3_put_load(out, &w.x, "sx(p)", u ? "u" : "", m ? "m" : "0");
    text_char(out, '\n');
    if (bias) {
        text_str(out, "bias: ");
        o3_put_load(out, &w.z, "sz(o)", "v", "0");
        text_str(out, " += Bias[o, v]\n");
    }
}

void o3_tell_linear(Text *out, const O3Linear *t)
{
    Writer w = { .out = out, .arena = out->arena, .t = t };
    int64_t weights = 0, bias = 0;

    find_paths(&w);
    for (int p = 0; p < w.n; p++)
        weights += w.u[p] * w.w[p];
    for (int k = 0; k < t->out.n; k++)
        bias += is_biased(t, k) ? t->out.at[k].mul : 0;
    o3_put_irreps(out, "in1", t->in);
    o3_put_irreps(out, "out", t->out);
    text_f(out, "weights %lld\nbias %lld\n", (long long)weights, (long long)bias);
    for (int p = 0; p < w.n; p++)
        text_f(out, "path %d %d\n", w.path[p].in, w.path[p].out);
}
