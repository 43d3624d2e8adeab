/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The program of a symmetric contraction: polynomials of an item's own features, up to a degree,
 * channel by channel.  A path of degree n couples n inputs one after the other,
 *     z[m] += sum W U[m, i1, ..., in] x[i1] ... x[in],
 * with U made of 3j symbols from left to right, as MACE makes it; W depends on the item's element,
 * or each item has its own.
 * As the factors commute, terms that differ in their order are one row of the program.  So are many
 * couplings: their polynomials are sums of those of others, which get their weights instead, in V.
 * Features are copied to have channels side by side, and weights to lie beside their item. */
#include "o3/o3_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Term {
    int m;                /* component of the result */
    int i[O3_MAX_DEGREE]; /* components of the inputs, over all slots, ascending; then -1 */
    double c;
} Term;

typedef struct Coupling { /* of some inputs to an irrep */
    O3Irrep ir;
    int n;
    Term *term;
} Coupling;

typedef struct Level { /* all couplings of so many inputs, by irrep */
    int n, cap;
    Coupling *at;
} Level;

typedef struct Path {
    int slot, degree;
    const Coupling *coupling;
    int kept; /* its place among those that the program has; -1: it is a sum of them */
} Path;

typedef struct Writer {
    Text *out;
    Arena *arena;
    const O3Contraction *t;
    int64_t *start; /* where the components of each slot begin */
    Level level[O3_MAX_DEGREE + 1];
    int npath, cap;
    Path *path; /* in the order of the weights */
    int nkept, nshare, cap_share;
    O3Share *share; /* of paths in those that are kept */
    O3Operand x, z; /* as they are run over */
} Writer;

static int compare(const void *a, const void *b)
{
    const Term *x = a, *y = b;

    if (x->m != y->m)
        return x->m < y->m ? -1 : 1;
    for (int k = 0; k < O3_MAX_DEGREE; k++)
        if (x->i[k] != y->i[k])
            return x->i[k] < y->i[k] ? -1 : 1;
    return 0;
}

/* Terms with equal indices become one.  What cancels leaves rounding errors behind, and goes. */
static void merge(Coupling *c)
{
    double largest = 0;
    int n = 0, kept = 0;

    array_sort(c->term, c->n, sizeof *c->term, compare);
    for (int k = 0; k < c->n; k++) {
        largest = fmax(largest, fabs(c->term[k].c));
        if (n > 0 && compare(&c->term[n - 1], &c->term[k]) == 0)
            c->term[n - 1].c += c->term[k].c;
        else
            c->term[n++] = c->term[k];
    }
    for (int k = 0; k < n; k++)
        if (fabs(c->term[k].c) > 1e-12 * largest)
            c->term[kept++] = c->term[k];
    c->n = kept;
}

/* Puts a factor where it belongs among those of a term. */
static void insert(Term *t, int degree, int i)
{
    int k = degree;

    for (; k > 0 && t->i[k - 1] > i; k--)
        t->i[k] = t->i[k - 1];
    t->i[k] = i;
}

/* One more input, from a slot, to a coupling; the result is of an irrep. */
static Coupling couple(Writer *w, const Coupling *left, int degree, int slot, O3Irrep ir)
{
    Coupling c = { .ir = ir };
    O3Scale scale = o3_unscaled;
    O3Terms s;

    scale.num[0] = o3_ir_dim(ir);
    s = o3_3j(w->arena, ir.l, left->ir.l, w->t->in.at[slot].ir.l, w->t->signs, &scale);
    c.term = arena_array(w->arena, (int64_t)s.n * left->n, sizeof *c.term);
    for (int k = 0; k < s.n; k++)
        for (int j = 0; j < left->n; j++) {
            Term *t = &c.term[c.n];

            if (left->term[j].m != s.at[k].m2)
                continue;
            *t = left->term[j];
            t->m = s.at[k].m1;
            t->c *= s.at[k].c;
            insert(t, degree, (int)w->start[slot] + s.at[k].m3);
            c.n++;
        }
    merge(&c);
    return c;
}

static void add_coupling(Writer *w, Level *to, const Coupling *c)
{
    to->at = arena_grow(w->arena, to->at, to->n, &to->cap, sizeof *to->at);
    to->at[to->n++] = *c;
}

/* In MACE's order: by what stands to the left, then by slot; in the end, from two inputs on, by
 * irrep. */
static void next_level(Writer *w, int degree)
{
    const Level *from = &w->level[degree];
    Level raw = { 0 }, *to = &w->level[degree + 1];
    bool last = degree + 1 == w->t->degree;

    for (int k = 0; k < from->n; k++)
        for (int slot = 0; slot < w->t->in.n; slot++)
            for (int l = 0; l <= O3_MAX_L; l++) {
                O3Irrep x = from->at[k].ir, y = w->t->in.at[slot].ir, ir = { l, x.p * y.p };
                Coupling c;

                if (!o3_allows(x, y, ir) || (last && !o3_has(w->t->out, ir)))
                    continue;
                c = couple(w, &from->at[k], degree, slot, ir);
                add_coupling(w, &raw, &c);
            }
    if (degree == 0) {
        *to = raw;
        return;
    }
    for (int p = 0; p <= 2 * O3_MAX_L + 1; p++)
        for (int k = 0; k < raw.n; k++)
            if (2 * raw.at[k].ir.l + (raw.at[k].ir.p > 0) == p)
                add_coupling(w, to, &raw.at[k]);
}

/* The paths: for each output slot and degree, the couplings to its irrep. */
static void find_paths(Writer *w)
{
    Coupling none = { .ir = { 0, 1 }, .n = 1 };

    none.term = arena_alloc(w->arena, sizeof *none.term);
    *none.term = (Term){ .i = { -1, -1, -1 }, .c = 1 };
    add_coupling(w, &w->level[0], &none);
    for (int d = 0; d < w->t->degree; d++)
        next_level(w, d);
    for (int z = 0; z < w->t->out.n; z++)
        for (int d = 1; d <= w->t->degree; d++)
            for (int k = 0; k < w->level[d].n; k++)
                if (o3_ir_same(w->level[d].at[k].ir, w->t->out.at[z].ir)) {
                    w->path = arena_grow(w->arena, w->path, w->npath, &w->cap, sizeof *w->path);
                    w->path[w->npath++] = (Path){ z, d, &w->level[d].at[k], -1 };
                }
}

/* Terms of component 0, without their coefficients, of all paths of a range; each once, sorted. */
static Coupling find_monomials(Writer *w, int from, int to)
{
    Coupling all = { 0 };
    int64_t n = 0;

    for (int k = from; k < to; k++)
        n += w->path[k].coupling->n;
    all.term = arena_array(w->arena, n, sizeof *all.term);
    for (int k = from; k < to; k++) {
        const Coupling *c = w->path[k].coupling;

        for (int i = 0; i < c->n && c->term[i].m == 0; i++) {
            all.term[all.n] = c->term[i];
            all.term[all.n++].c = 1;
        }
    }
    merge(&all);
    return all;
}

static O3Vector vector_of(Writer *w, const Coupling *c, const Coupling *monomials)
{
    O3Vector v = { 0 };

    v.at = arena_array(w->arena, c->n, sizeof *v.at);
    v.c = arena_array(w->arena, c->n, sizeof *v.c);
    for (; v.n < c->n && c->term[v.n].m == 0; v.n++) {
        const Term *t =
            bsearch(&c->term[v.n], monomials->term, (size_t)monomials->n, sizeof *t, compare);

        v.at[v.n] = (int)(t - monomials->term);
        v.c[v.n] = c->term[v.n].c;
    }
    return v;
}

/* Of paths to one slot, of one degree.  Their components turn together: what holds of the first
 * holds of all. */
static void keep_some(Writer *w, int from, int to)
{
    Coupling monomials = find_monomials(w, from, to);
    O3Vector *v = arena_array(w->arena, to - from, sizeof *v);
    O3Span span;

    for (int k = from; k < to; k++)
        v[k - from] = vector_of(w, w->path[k].coupling, &monomials);
    span = o3_span(w->arena, v, to - from, monomials.n);
    for (int i = 0; i < span.nshare; i++) {
        const O3Share *s = &span.share[i];

        w->share = arena_grow(w->arena, w->share, w->nshare, &w->cap_share, sizeof *w->share);
        w->share[w->nshare++] = (O3Share){ w->nkept + s->to, from + s->of, s->c };
    }
    for (int i = 0; i < span.n; i++)
        w->path[from + span.kept[i]].kept = w->nkept++;
}

static int by_kept(const void *a, const void *b)
{
    const O3Share *x = a, *y = b;

    return x->to != y->to ? (x->to < y->to ? -1 : 1) : (x->of > y->of) - (x->of < y->of);
}

static void keep(Writer *w)
{
    for (int from = 0, to = 0; from < w->npath; from = to) {
        while (to < w->npath && w->path[to].slot == w->path[from].slot &&
               w->path[to].degree == w->path[from].degree)
            to++;
        keep_some(w, from, to);
    }
    array_sort(w->share, w->nshare, sizeof *w->share, by_kept);
}

static void put_terms(Writer *w, const Coupling *c, int degree)
{
    char number[NUM_TEXT];

    for (int k = 0; k < c->n; k++) {
        text_f(w->out, "%s%d", k > 0 ? ", " : "", c->term[k].m);
        for (int d = 0; d < degree; d++) {
            int slot = 0, i = c->term[k].i[d];

            while (w->start[slot + 1] <= i)
                slot++;
            text_f(w->out, " %d %d", slot, i - (int)w->start[slot]);
        }
        num_print(number, c->term[k].c);
        text_f(w->out, " -> %s", number);
    }
}

static bool has(const Writer *w, int k, int degree)
{
    return w->path[k].degree == degree && w->path[k].kept >= 0;
}

static bool has_any(const Writer *w, int degree)
{
    bool any = false;

    for (int k = 0; k < w->npath; k++)
        any = any || has(w, k, degree);
    return any;
}

static void put_relation(Writer *w, int degree)
{
    const char *between = " ";

    text_f(w->out, "axis P%d = rows sz kp {", degree);
    for (int k = 0; k < w->npath; k++)
        if (has(w, k, degree)) {
            text_f(w->out, "%s%d %d", between, w->path[k].slot, w->path[k].kept);
            between = ", ";
        }
    text_f(w->out, " }, Q%d(P%d) = rows m", degree, degree);
    for (int d = 1; d <= degree; d++)
        text_f(w->out, " s%d m%d", d, d);
    text_f(w->out, " -> c%d {", degree);
    between = "\n    ";
    for (int k = 0; k < w->npath; k++)
        if (has(w, k, degree)) {
            text_str(w->out, between);
            put_terms(w, w->path[k].coupling, degree);
            between = ";\n    ";
        }
    text_str(w->out, " }\n");
}

/* Which weights a kept path has: "to of -> f". */
static void put_shares(Writer *w)
{
    char number[NUM_TEXT];

    text_f(w->out, "axis %sK = %d, R = rows to of -> f {", w->t->per_item ? "" : "A = ne, ",
           w->nkept);
    for (int i = 0; i < w->nshare; i++) {
        num_print(number, w->share[i].c);
        text_f(w->out, "%s%d %d -> %s", i > 0 ? ", " : " ", w->share[i].to, w->share[i].of, number);
    }
    text_str(w->out, " }\n");
}

static void put_weights(Writer *w)
{
    const char *type = w->t->type == T_f64 ? "f64" : "f32";

    if (w->t->per_item)
        text_f(w->out,
               "temp %s VB[B, K, U]\n"
               "for b, r, u: VB[b, to(r), u] += f[r] * Wt[b, of(r), u]\n",
               type);
    else
        text_f(w->out,
               "temp %s V[A, K, U], VB[B, K, U]\n"
               "for a, r, u: V[a, to(r), u] += f[r] * Wt[a, of(r), u]\n"
               "for b, k, u: VB[b, k, u] = V[el[b], k, u]\n",
               type);
}

static void put_statement(Writer *w, int degree)
{
    char slot[32], component[32];

    snprintf(slot, sizeof slot, "sz(p%d)", degree);
    snprintf(component, sizeof component, "m(q%d)", degree);
    text_f(w->out, "z%d: ", degree);
    o3_put_load(w->out, &w->z, slot, "u", component);
    text_f(w->out, " += c%d[q%d]", degree, degree);
    for (int d = 1; d <= degree; d++) {
        snprintf(slot, sizeof slot, "s%d(q%d)", d, degree);
        snprintf(component, sizeof component, "m%d(q%d)", d, degree);
        text_str(w->out, " * ");
        o3_put_load(w->out, &w->x, slot, "u", component);
    }
    text_f(w->out, " * VB[b, kp(p%d), u]\n", degree);
}

static void check(Writer *w)
{
    const O3Contraction *t = w->t;

    if (t->degree < 1 || t->degree > O3_MAX_DEGREE)
        err_throw(w->arena->err, ST_ARG, "contraction: a correlation of %d; it goes from 1 to %d",
                  t->degree, O3_MAX_DEGREE);
    for (int i = 0; i < t->in.n + t->out.n; i++) {
        const O3Slot *s = i < t->in.n ? &t->in.at[i] : &t->out.at[i - t->in.n];

        if (t->in.n == 0 || s->mul != t->in.at[0].mul)
            err_throw(w->arena->err, ST_ARG,
                      "contraction: a slot of multiplicity %lld; all slots "
                      "of the input and the output have the same",
                      (long long)s->mul);
        if (s->ir.l * (t->degree - 1) > O3_MAX_L)
            err_throw(w->arena->err, ST_ARG, "contraction: degree %d is too large for %d factors",
                      s->ir.l, t->degree);
    }
}

static Writer begin(Text *out, const O3Contraction *t)
{
    Writer w = { .out = out, .arena = out->arena, .t = t };
    O3Slot *one = arena_array(out->arena, t->in.n, sizeof *one);

    check(&w);
    for (int i = 0; i < t->in.n; i++)
        one[i] = (O3Slot){ 1, t->in.at[i].ir };
    w.start = o3_slices(out->arena, (O3Irreps){ t->in.n, one });
    find_paths(&w);
    return w;
}

static void put_statements(Writer *w)
{
    O3Operand x = w->x, z = w->z;

    if (o3_is_turned(&x)) {
        w->x = o3_turned(&x, "XT");
        o3_put_temp(w->out, &w->x, w->t->type);
        o3_put_copy(w->out, w->x, x, "b");
    }
    if (o3_is_turned(&z)) {
        w->z = o3_turned(&z, "ZT");
        o3_put_temp(w->out, &w->z, w->t->type);
    }
    put_weights(w);
    for (int d = 1; d <= w->t->degree; d++)
        if (has_any(w, d))
            put_statement(w, d);
    if (w->z.buf != z.buf)
        o3_put_copy(w->out, z, w->z, "b");
}

void o3_write_contraction(Text *out, const O3Contraction *t)
{
    Writer w = begin(out, t);

    keep(&w);
    w.x = (O3Operand){ "X", "X", t->in, t->layout_in, "B", "b" };
    w.z = (O3Operand){ "Z", "Z", t->out, t->layout_out, "B", "b" };
    text_f(out, "program %s(n%s)\naxis B = n\n", t->name != NULL ? t->name : "contraction",
           t->per_item ? "" : ", ne");
    o3_put_axes(out, &w.x);
    o3_put_axes(out, &w.z);
    text_f(out, "axis U = %lld\n", t->in.n > 0 ? (long long)t->in.at[0].mul : 0);
    put_shares(&w);
    for (int d = 1; d <= t->degree; d++)
        if (has_any(&w, d))
            put_relation(&w, d);
    if (!t->per_item)
        text_str(out, "i64 el[B]\n");
    text_f(out, "%s ", o3_type_name(t->type));
    o3_put_buf(out, &w.x);
    text_str(out, ", ");
    o3_put_buf(out, &w.z);
    text_f(out, ", Wt[%s, %d, U]\n", t->per_item ? "B" : "ne", w.npath);
    if (w.nkept > 0) {
        put_statements(&w);
        return;
    }
    o3_put_load(out, &w.z, "sz", "uz", "mz"); /* something has to write Z */
    text_str(out, " = 0\n");
}

void o3_tell_contraction(Text *out, const O3Contraction *t)
{
    Writer w = begin(out, t);

    o3_put_irreps(out, "in1", t->in);
    o3_put_irreps(out, "out", t->out);
    text_f(out, "weights %d\n", w.npath);
    for (int k = 0; k < w.npath; k++)
        text_f(out, "path %d %d\n", w.path[k].slot, w.path[k].degree);
}
