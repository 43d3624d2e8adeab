/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The program of a tensor product.  Paths of one mode share a statement: P lists them with the
 * slots they couple, U, V and W their channels, Q(P) their coefficients, normalisation included.
 * An axis of multiplicities that are all 1 is left out, as is one of components of scalars. */
#include "o3/o3_int.h"

#include <stdio.h>
#include <string.h>

void o3_put_ints(Text *out, const int64_t *v, int n)
{
    text_char(out, '{');
    for (int i = 0; i < n; i++)
        text_f(out, "%s%lld", i > 0 ? ", " : "", (long long)v[i]);
    text_char(out, '}');
}

bool o3_all_one(const int64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v[i] != 1)
            return false;
    return true;
}

const char *o3_type_name(Type type)
{
    return ir_type[type == T_none ? T_f32 : type].name;
}

static bool has_channels(const O3Operand *o)
{
    for (int i = 0; i < o->irreps.n; i++)
        if (o->irreps.at[i].mul != 1)
            return true;
    return false;
}

static bool has_components(const O3Operand *o)
{
    for (int i = 0; i < o->irreps.n; i++)
        if (o->irreps.at[i].ir.l != 0)
            return true;
    return false;
}

void o3_put_axes(Text *out, const O3Operand *o)
{
    const char *a = o->axis;

    text_f(out, "axis S%s = %d", a, o->irreps.n);
    if (has_components(o)) {
        text_f(out, ", M%s(S%s) = ", a, a);
        o3_put_ints(out, o3_dims(out->arena, o->irreps), o->irreps.n);
    }
    if (has_channels(o)) {
        text_f(out, ", U%s(S%s) = ", a, a);
        o3_put_ints(out, o3_muls(out->arena, o->irreps), o->irreps.n);
    }
    text_char(out, '\n');
}

/* The two indices behind the slot, those that there are, in the order of the layout. */
static void put_inner(Text *out, const O3Operand *o, const char *channel, const char *component)
{
    const char *first = has_channels(o) ? channel : "", *last = has_components(o) ? component : "";

    if (o->layout == O3_IR_MUL) {
        const char *other = first;

        first = last;
        last = other;
    }
    text_f(out, "%s%s%s%s", first[0] != 0 ? ", " : "", first, last[0] != 0 ? ", " : "", last);
}

void o3_put_buf(Text *out, const O3Operand *o)
{
    char u[8], m[8];

    snprintf(u, sizeof u, "U%s", o->axis);
    snprintf(m, sizeof m, "M%s", o->axis);
    text_f(out, "%s[%s, S%s", o->buf, o->row, o->axis);
    put_inner(out, o, u, m);
    text_char(out, ']');
}

void o3_put_load(Text *out, const O3Operand *o, const char *slot, const char *channel,
                 const char *component)
{
    text_f(out, "%s[%s, %s", o->buf, o->at, slot);
    put_inner(out, o, channel[0] != 0 ? channel : "0", component);
    text_char(out, ']');
}

/* The channels of each mode: which of U, V, W it runs over, and the index of each operand: one of
 * these, '*' for u and v as one number, '>' for the second and '#' for the number of a pair u < v.
 * Of pairs, V hangs on U: position v under u is the pair of channels u and u + v + 1. */
typedef struct Channels {
    const char *axes;
    char x, y, z;
    bool pairs;
} Channels;

static const Channels channels[O3_MODES] = {
    [O3_UVW] = { "UVW", 'U', 'V', 'W', false },     [O3_UVU] = { "UV", 'U', 'V', 'U', false },
    [O3_UVV] = { "UV", 'U', 'V', 'V', false },      [O3_UUW] = { "UW", 'U', 'U', 'W', false },
    [O3_UUU] = { "U", 'U', 'U', 'U', false },       [O3_UVUV] = { "UV", 'U', 'V', '*', false },
    [O3_UVUV_LESS] = { "UV", 'U', '>', '#', true }, [O3_UVW_LESS] = { "UVW", 'U', '>', 'W', true },
};

enum { MAX_TABLE = 1000000 }; /* of the numbers of pairs under each channel */

/* The rows of each operand, as axes and as indices in a statement. */
typedef struct Rows {
    const char *x, *y, *z, *at_x, *at_y, *at_z;
} Rows;

static const Rows rows[] = {
    [O3_NO_EDGES] = { "B", "B", "B", "b", "b", "b" },
    [O3_EDGES_SORTED] = { "senders", "E", "I", "j(e)", "e", "i" },
    [O3_EDGES_ANY] = { "senders", "edges", "I", "j(e)", "edge(e)", "i" },
};

typedef struct Writer {
    Text *out;
    Arena *arena;
    const O3Problem *t;
    const Rows *rows;
    O3Operand x, y, z;
    int ngroup, nweighted; /* statements; those with weights */
} Writer;

typedef struct Group { /* paths of one mode, all with weights or none */
    O3Mode mode;
    bool weighted;
    int n;
    int *path;
    int64_t *mul[3]; /* of each path: u, v, w */
    char suffix[16]; /* of its names */
} Group;

static int64_t *group_muls(const Group *g, char axis)
{
    return g->mul[axis == 'U' ? 0 : axis == 'V' ? 1 : 2];
}

/* Whether the group runs over an axis, which it does not where all would have one position. */
static bool runs(const Group *g, char axis)
{
    if (strchr(channels[g->mode].axes, axis) == NULL)
        return false;
    return (channels[g->mode].pairs && axis != 'W') || !o3_all_one(group_muls(g, axis), g->n);
}

static Group group_of(const Writer *w, int first)
{
    const O3Problem *t = w->t;
    Group g = { .mode = t->path[first].mode, .weighted = t->path[first].weighted };

    g.path = arena_array(w->arena, t->npath, sizeof *g.path);
    for (int k = first; k < t->npath; k++)
        if (t->path[k].mode == g.mode && t->path[k].weighted == g.weighted)
            g.path[g.n++] = k;
    for (int i = 0; i < 3; i++)
        g.mul[i] = arena_array(w->arena, g.n, sizeof *g.mul[i]);
    for (int k = 0; k < g.n; k++) {
        const O3Path *p = &t->path[g.path[k]];

        g.mul[0][k] = t->in1.at[p->in1].mul;
        g.mul[1][k] = t->in2.at[p->in2].mul;
        g.mul[2][k] = t->out.at[p->out].mul;
    }
    return g;
}

static bool begins_group(const O3Problem *t, int k)
{
    for (int i = 0; i < k; i++)
        if (t->path[i].mode == t->path[k].mode && t->path[i].weighted == t->path[k].weighted)
            return false;
    return true;
}

/* Where one statement has all the weights, its own axes are those of the weights; otherwise they
 * have axes of their own, over the weighted paths in order. */
static bool own_weight_axes(const Writer *w)
{
    return w->nweighted > 1;
}

/* The multiplicity that the number of a pair of channels is counted by: of in2 where all pairs
 * have a number, of in1 where u < v; ' ' where no number is needed. */
static char counted_by(const Writer *w, const Group *g)
{
    const Channels *c = &channels[g->mode];

    if (c->pairs && (c->z == '#' || (g->weighted && own_weight_axes(w))))
        return 'U';
    return c->z == '*' && runs(g, 'U') && runs(g, 'V') ? 'V' : ' ';
}

static int weight_number(const O3Problem *t, int path)
{
    int n = 0;

    for (int k = 0; k < path; k++)
        n += t->path[k].weighted;
    return n;
}

static void put_paths(Writer *w, const Group *g)
{
    Text *out = w->out;
    bool weights = g->weighted && own_weight_axes(w);
    char by = counted_by(w, g);

    text_f(out, "axis P%s = rows sx sy sz%s%s {", g->suffix, by != ' ' ? " mul" : "",
           weights ? " k" : "");
    for (int k = 0; k < g->n; k++) {
        const O3Path *p = &w->t->path[g->path[k]];

        text_f(out, "%s%d %d %d", k > 0 ? ", " : " ", p->in1, p->in2, p->out);
        if (by != ' ')
            text_f(out, " %lld", (long long)group_muls(g, by)[k]);
        if (weights)
            text_f(out, " %d", weight_number(w->t, g->path[k]));
    }
    text_str(out, " }");
}

static void put_terms(Writer *w, const Group *g)
{
    Text *out = w->out;
    char number[NUM_TEXT];

    text_f(out, ", Q%s(P%s) = rows m1 m2 m3 -> c%s {", g->suffix, g->suffix, g->suffix);
    for (int k = 0; k < g->n; k++) {
        const O3Path *p = &w->t->path[g->path[k]];
        O3Scale scale = o3_path_scale(w->t, g->path[k]);
        O3Terms terms = o3_3j(w->arena, w->t->in1.at[p->in1].ir.l, w->t->in2.at[p->in2].ir.l,
                              w->t->out.at[p->out].ir.l, w->t->signs, &scale);

        text_str(out, k > 0 ? ";\n" : "\n");
        for (int i = 0; i < terms.n; i++) {
            num_print(number, terms.at[i].c);
            text_f(out, "%s%d %d %d -> %s", i > 0 ? ", " : "    ", terms.at[i].m1, terms.at[i].m2,
                   terms.at[i].m3, number);
        }
    }
    text_str(out, " }");
}

/* Under channel u of n there are n - 1 - u pairs. */
static void put_pairs(Writer *w, const Group *g)
{
    const char *between = "";
    int64_t n = 0;

    text_f(w->out, ", V%s(U%s) = {", g->suffix, g->suffix);
    for (int k = 0; k < g->n; k++) {
        if ((n += g->mul[0][k]) > MAX_TABLE)
            err_throw(w->arena->err, ST_LIMIT, "%s: more than %d channels in all paths",
                      o3_mode[g->mode], MAX_TABLE);
        for (int64_t u = 0; u < g->mul[0][k]; u++) {
            text_f(w->out, "%s%lld", between, (long long)(g->mul[0][k] - 1 - u));
            between = ", ";
        }
    }
    text_char(w->out, '}');
}

/* Channels come before coefficients, so that all coefficients of a path meet in one loop. */
static void put_group_axes(Writer *w, const Group *g)
{
    put_paths(w, g);
    for (const char *a = channels[g->mode].axes; *a != 0; a++) {
        if (!runs(g, *a))
            continue;
        if (*a == 'V' && channels[g->mode].pairs) {
            put_pairs(w, g);
            continue;
        }
        text_f(w->out, ", %c%s(P%s) = ", *a, g->suffix, g->suffix);
        o3_put_ints(w->out, group_muls(g, *a), g->n);
    }
    put_terms(w, g);
    text_char(w->out, '\n');
}

/* An index of Channels as text: "" where it is always 0. */
static void channel_index(const Group *g, char index, char to[128])
{
    const char *s = g->suffix;

    to[0] = 0;
    if (index == '>')
        snprintf(to, 128, "u%s + v%s + 1", s, s);
    else if (index == '#')
        snprintf(to, 128, "u%s * (2 * mul(p%s) - u%s - 1) / 2 + v%s", s, s, s, s);
    else if (index == '*' && runs(g, 'U') && runs(g, 'V'))
        snprintf(to, 128, "u%s * mul(p%s) + v%s", s, s, s);
    else if (index == '*')
        channel_index(g, runs(g, 'U') ? 'U' : 'V', to);
    else if (runs(g, index))
        snprintf(to, 128, "%c%s", index - 'A' + 'a', s);
}

static void put_operand(Writer *w, const Group *g, const O3Operand *o, int operand)
{
    static const char letter[] = " xyz";
    const Channels *c = &channels[g->mode];
    char slot[32], channel[128], component[32];

    snprintf(slot, sizeof slot, "s%c(p%s)", letter[operand], g->suffix);
    snprintf(component, sizeof component, "m%d(q%s)", operand, g->suffix);
    channel_index(g, operand == 1 ? c->x : operand == 2 ? c->y : c->z, channel);
    o3_put_load(w->out, o, slot, channel, component);
}

/* Where the weights are, by axes or, `small` added to their letters, by variables. */
static void put_weight_indices(Writer *w, const Group *only, int small)
{
    if (own_weight_axes(w)) {
        text_str(w->out, small == 0 ? "K, UK, VK, WK" : "k, uk, vk, wk");
        return;
    }
    text_f(w->out, "%c%s", 'P' + small, only->suffix);
    for (const char *a = channels[only->mode].axes; *a != 0; a++)
        if (runs(only, *a))
            text_f(w->out, ", %c%s", *a + small, only->suffix);
}

static void put_weight(Writer *w, const Group *g)
{
    const Channels *c = &channels[g->mode];
    const char *s = g->suffix;
    char index[128];

    text_str(w->out, " * Wt[");
    if (w->t->per_item)
        text_f(w->out, "%s, ", w->t->hidden > 0 ? "e" : w->rows->at_y);
    if (!own_weight_axes(w)) {
        put_weight_indices(w, g, 'a' - 'A');
    } else {
        text_f(w->out, "k(p%s)", s);
        for (const char *a = c->pairs ? "# W" : "UVW"; *a != 0; a++) {
            channel_index(g, *a, index);
            text_f(w->out, ", %s", index[0] != 0 ? index : "0");
        }
    }
    text_char(w->out, ']');
}

static void put_statement(Writer *w, const Group *g)
{
    O3Operand z = w->z;

    if (w->t->root)
        z.buf = "S";
    text_f(w->out, "z%s: ", g->suffix);
    put_operand(w, g, &z, 3);
    text_f(w->out, " += c%s[q%s] * ", g->suffix, g->suffix);
    put_operand(w, g, &w->y, 2);
    text_str(w->out, " * ");
    put_operand(w, g, &w->x, 1);
    if (g->weighted)
        put_weight(w, g);
    text_char(w->out, '\n');
}

/* The axes of the weights when they are nobody else's. */
static void put_weight_axes(Writer *w)
{
    const O3Problem *t = w->t;
    int64_t *shape[3], one[3];
    int n = 0;

    for (int i = 0; i < 3; i++)
        shape[i] = arena_array(w->arena, t->npath, sizeof *shape[i]);
    for (int k = 0; k < t->npath; k++) {
        o3_weight_shape(t, k, one);
        for (int i = 0; t->path[k].weighted && i < 3; i++)
            shape[i][n] = one[i];
        n += t->path[k].weighted;
    }
    text_f(w->out, "axis K = %d", n);
    for (int i = 0; i < 3; i++) {
        text_f(w->out, ", %cK(K) = ", "UVW"[i]);
        o3_put_ints(w->out, shape[i], n);
    }
    text_char(w->out, '\n');
}

static void put_weight_buf(Writer *w, const Group *only)
{
    const O3Problem *t = w->t;
    Type type = t->weight_type != T_none ? t->weight_type : t->type;

    if (t->hidden > 0) {
        text_f(w->out, "%s H[%s, L], M[L, ", o3_type_name(type), w->rows->y);
        put_weight_indices(w, only, 0);
        text_f(w->out, "]\ntemp %s Wt[E, ", type == T_f64 ? "f64" : "f32");
    } else {
        text_f(w->out, "%s Wt[", o3_type_name(type));
        if (t->per_item)
            text_f(w->out, "%s, ", w->rows->y);
    }
    put_weight_indices(w, only, 0);
    text_str(w->out, "]\n");
}

/* The weights of an edge are the product of its features and a matrix. */
static void put_hidden(Writer *w, const Group *only)
{
    text_str(w->out, "w: Wt[e, ");
    put_weight_indices(w, only, 'a' - 'A');
    text_f(w->out, "] += H[%s, l] * M[l, ", w->rows->at_y);
    put_weight_indices(w, only, 'a' - 'A');
    text_str(w->out, "]\n");
}

static void put_bufs(Writer *w, const Group *weighted)
{
    text_f(w->out, "%s ", o3_type_name(w->t->type));
    o3_put_buf(w->out, &w->x);
    if (!w->t->square) {
        text_str(w->out, ", ");
        o3_put_buf(w->out, &w->y);
    }
    text_str(w->out, ", ");
    o3_put_buf(w->out, &w->z);
    text_char(w->out, '\n');
    if (w->t->root && w->ngroup > 0) {
        O3Operand sum = w->z;

        sum.buf = "S";
        text_f(w->out, "temp %s ", w->t->type == T_f64 ? "f64" : "f32");
        o3_put_buf(w->out, &sum);
        text_char(w->out, '\n');
    }
    if (weighted != NULL)
        put_weight_buf(w, weighted);
}

/* Z = sqrt(S), with a derivative of 0 where S is 0. */
static void put_root(Writer *w)
{
    O3Operand sum = w->z;
    Text load = { .arena = w->arena };

    sum.buf = "S";
    o3_put_load(&load, &sum, "sz", "uz", "mz");
    o3_put_load(w->out, &w->z, "sz", "uz", "mz");
    text_f(w->out, " = select(%s > 0, sqrt(%s), 0)\n", load.s, load.s);
}

static void count_groups(Writer *w)
{
    for (int k = 0; k < w->t->npath; k++)
        if (begins_group(w->t, k)) {
            w->ngroup++;
            w->nweighted += w->t->path[k].weighted;
        }
}

static void put_head(Writer *w)
{
    const O3Problem *t = w->t;

    if (t->edges == O3_NO_EDGES) {
        text_f(w->out, "program %s(n)\naxis B = n\n", t->name != NULL ? t->name : "tp");
        return;
    }
    text_f(w->out, "program %s(nodes, senders%s)\naxis I = nodes, E(I) = seg : j < senders%s",
           t->name != NULL ? t->name : "conv", t->edges == O3_EDGES_ANY ? ", edges" : "",
           t->edges == O3_EDGES_ANY ? ", edge < edges once" : "");
    if (t->hidden > 0) {
        if (w->nweighted == 0)
            err_throw(w->arena->err, ST_ARG, "conv: hidden=%d, but no path has weights", t->hidden);
        text_f(w->out, ", L = %d", t->hidden);
    }
    text_char(w->out, '\n');
}

/* Edges are many more than rows: a convolution reads and writes channels side by side. */
static bool is_turned(const Writer *w, const O3Operand *o)
{
    return w->t->edges != O3_NO_EDGES && o3_is_turned(o);
}

void o3_write_product(Text *out, const O3Problem *t)
{
    Writer w = { .out = out, .arena = out->arena, .t = t };
    Group *group, *weighted = NULL;
    O3Operand given;
    int n = 0;

    o3_check(out->arena, t);
    count_groups(&w);
    w.rows = &rows[t->edges];
    w.x = (O3Operand){ "X", "X", t->in1, t->layout1, w.rows->x, w.rows->at_x };
    w.y = (O3Operand){ "Y", "Y", t->in2, t->layout2, w.rows->y, w.rows->at_y };
    w.y = t->square ? w.x : w.y;
    w.z = (O3Operand){ "Z", "Z", t->out, t->layout_out, w.rows->z, w.rows->at_z };
    put_head(&w);
    o3_put_axes(out, &w.x);
    if (!t->square)
        o3_put_axes(out, &w.y);
    o3_put_axes(out, &w.z);
    group = arena_array(out->arena, w.ngroup, sizeof *group);
    for (int k = 0; k < t->npath; k++)
        if (begins_group(t, k)) {
            group[n] = group_of(&w, k);
            if (w.ngroup > 1)
                snprintf(group[n].suffix, sizeof group[n].suffix, "%d", n + 1);
            weighted = group[n].weighted ? &group[n] : weighted;
            put_group_axes(&w, &group[n++]);
        }
    if (own_weight_axes(&w))
        put_weight_axes(&w);
    put_bufs(&w, weighted);
    given = w.z;
    if (n > 0 && is_turned(&w, &w.x)) {
        O3Operand x = w.x;

        w.x = o3_turned(&x, "XT");
        o3_put_temp(out, &w.x, t->type);
        o3_put_copy(out, w.x, x, "s");
    }
    if (n > 0 && is_turned(&w, &w.z)) {
        w.z = o3_turned(&given, "ZT");
        o3_put_temp(out, &w.z, t->type);
    }
    if (t->hidden > 0)
        put_hidden(&w, weighted);
    for (int i = 0; i < n; i++)
        put_statement(&w, &group[i]);
    if (w.z.buf != given.buf)
        o3_put_copy(out, given, w.z, "i");
    if (n == 0) { /* something has to write Z */
        o3_put_load(out, &w.z, "sz", "uz", "mz");
        text_str(out, " = 0\n");
    }
    if (t->root && n > 0)
        put_root(&w);
}
