/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program with its arrays, and storage: how many positions an axis has, and where the element of
 * a tuple of positions stands.  Used by whoever binds, runs or lowers a program. */
#include "ir/ir.h"

enum { MOST_BITS = 60 }; /* a count of positions below 2^60 leaves room for sums of a few */

Env *ir_env(Arena *arena, const Prog *p)
{
    Env *env = arena_alloc(arena, sizeof *env);

    env->size = arena_array(arena, p->nsize, sizeof *env->size);
    env->start = arena_array(arena, p->naxis, sizeof *env->start);
    env->coord = arena_array(arena, p->naxis, sizeof *env->coord);
    env->buf = arena_array(arena, p->nbuf, sizeof *env->buf);
    for (int i = 0; i < p->nsize; i++)
        env->size[i] = -1;
    for (int i = 0; i < p->naxis; i++)
        env->coord[i] = arena_array(arena, p->axis[i]->ncoord, sizeof **env->coord);
    return env;
}

int64_t ir_array_int(const Array *a, int64_t i)
{
    return a->type == T_i32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

double ir_array_float(const Array *a, int64_t i)
{
    switch (a->type) {
    case T_f16: return (double)num_f16(((const uint16_t *)a->data)[i]);
    case T_bf16: return (double)num_bf16(((const uint16_t *)a->data)[i]);
    case T_f32: return (double)((const float *)a->data)[i];
    default: return ((const double *)a->data)[i];
    }
}

int64_t ir_eval_size(const Prog *p, const Env *env, Expr *e)
{
    int64_t a, b = 0, r = 0;
    bool bad;

    if (e->op == OP_int)
        return e->i;
    if (e->op == OP_size) {
        if (env->size[e->size->id] < 0)
            err_throw(p->arena->err, ST_BIND, "size %s is %s; set it, or bind an array whose "
                                              "shape contains it",
                      e->size->name, env->size[e->size->id] == -1 ? "not known" : "negative");
        return env->size[e->size->id];
    }
    a = ir_eval_size(p, env, e->arg[0]);
    if (e->nargs > 1)
        b = ir_eval_size(p, env, e->arg[1]);
    switch (e->op) {
    case OP_neg: bad = int_sub(0, a, &r); break;
    case OP_add: bad = int_add(a, b, &r); break;
    case OP_sub: bad = int_sub(a, b, &r); break;
    case OP_mul: bad = int_mul(a, b, &r); break;
    case OP_div: bad = int_div(a, b, &r); break;
    default: bad = int_mod(a, b, &r); break;
    }
    if (bad)
        err_throw(p->arena->err, ST_LIMIT, "a size overflows or is divided by zero: %lld %s %lld",
                  (long long)a, ir_op[e->op].text, (long long)b);
    return r;
}

static const char *axis_name(const Axis *a)
{
    return a->name != NULL ? a->name : "of a slot";
}

/* The start array of a seg or built axis, of the length that its parent asks for. */
static Array start_array(const Prog *p, const Env *env, const Axis *a, int64_t parents)
{
    Array s = env->start[a->id];

    if (s.data == NULL)
        err_throw(p->arena->err, ST_BIND, "axis %s: the array %s.start is not there%s", a->name,
                  a->name, a->extent == X_BUILT ? " before the last |=" : "; give it");
    if (s.type != T_i32 && s.type != T_i64)
        err_throw(p->arena->err, ST_BIND, "axis %s: %s.start is %s; give it as i32 or i64", a->name,
                  a->name, ir_type[s.type].name);
    if (s.n != parents + 1)
        err_throw(p->arena->err, ST_BIND,
                  "axis %s: %s.start has %lld elements, but there are %lld parent positions, so it "
                  "needs %lld",
                  a->name, a->name, (long long)s.n, (long long)parents, (long long)parents + 1);
    if (ir_array_int(&s, parents) < 0)
        err_throw(p->arena->err, ST_BIND, "axis %s: %s.start ends with %lld, not with a count",
                  a->name, a->name, (long long)ir_array_int(&s, parents));
    return s;
}

static int64_t width_of(const Prog *p, const Env *env, const Axis *a)
{
    int64_t n = a->extent == X_ONE ? 1 : ir_eval_size(p, env, a->size);

    if (n < 0)
        err_throw(p->arena->err, ST_BIND, "axis %s: the extent is %lld; it cannot be negative",
                  axis_name(a), (long long)n);
    return n;
}

Span ir_axis_span(const Prog *p, const Env *env, const Axis *a)
{
    Span s = { .parents = 1, .width = -1 };
    bool over = false;

    if (a->parent != NULL)
        s.parents = ir_axis_span(p, env, a->parent).total;
    if (a->extent == X_TABLE)
        s.start = (Array){ .data = (void *)a->starts, .n = a->n + 1, .type = T_i64 };
    else if (a->extent == X_SEG || a->extent == X_BUILT)
        s.start = start_array(p, env, a, s.parents);
    else
        s.width = width_of(p, env, a);
    if (s.width < 0)
        s.total = ir_array_int(&s.start, s.parents);
    else
        over = int_mul(s.parents, s.width, &s.total);
    if (over || s.total >> MOST_BITS != 0)
        err_throw(p->arena->err, ST_LIMIT, "axis %s has 2^%d positions or more", axis_name(a),
                  MOST_BITS);
    return s;
}

int64_t ir_span_first(const Span *s, int64_t parent)
{
    return s->width >= 0 ? parent * s->width : ir_array_int(&s->start, parent);
}

int64_t ir_span_parent(const Span *s, int64_t pos)
{
    int64_t lo = 0, hi = s->parents;

    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if (ir_span_first(s, mid) <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

int64_t ir_axis_total(const Prog *p, const Env *env, const Axis *a)
{
    return ir_axis_span(p, env, a).total;
}

int64_t ir_axis_start(const Prog *p, const Env *env, const Axis *a, int64_t parent)
{
    Span s = ir_axis_span(p, env, a);

    return ir_span_first(&s, parent);
}

/* The nearest earlier place of the parent axis, or -1. */
int ir_parent_place(const Buf *b, int k)
{
    int up = k - 1;

    while (up >= 0 && b->full[up] != b->full[k]->parent)
        up--;
    return up;
}

int ir_dims(const Buf *b, Dim out[IR_MAX_FULL])
{
    int n = 0;

    for (int k = 0; k < b->nfull; k++) {
        Extent x = b->full[k]->extent;
        int first = k;

        if (x == X_ONE) { /* adds nothing to the dimension before it */
            out[n - 1].last = k;
            continue;
        }
        if (x != X_EXPR)
            for (int up = ir_parent_place(b, k); up >= 0; up = ir_parent_place(b, up))
                first = up;
        while (n > 0 && out[n - 1].last >= first) { /* folds that overlap are one */
            n--;
            if (out[n].first < first)
                first = out[n].first;
        }
        out[n++] = (Dim){ first, k };
    }
    return n;
}

static _Noreturn void too_many(Arena *arena, const Layout *l)
{
    err_throw(arena->err, ST_LIMIT, "%s has more elements than a 64-bit number can count",
              l->buf->name);
}

static int64_t product(Arena *arena, const Layout *l, int64_t a, int64_t b)
{
    int64_t r;

    if (int_mul(a, b, &r))
        too_many(arena, l);
    return r;
}

/* Tuples below all positions of place k before position p. */
static int64_t before(const Layout *l, int k, int64_t p)
{
    const LaySlot *s = &l->slot[k];

    for (; s->only >= 0; s = &l->slot[s->only])
        p = ir_span_first(&l->slot[s->only].span, p);
    return s->below >= 0 ? p * s->below : s->before[p];
}

/* Tuples of place k and what hangs below it, under position q of its parent. */
static int64_t under(const Layout *l, int k, int64_t q)
{
    const Span *s = &l->slot[k].span;

    return before(l, k, ir_span_first(s, q + 1)) - before(l, k, ir_span_first(s, q));
}

static bool is_uniform(const LaySlot *s)
{
    return s->span.width >= 0 && s->below >= 0;
}

/* Tuples of a uniform place and what hangs below it, under each position of its parent. */
static int64_t each(Arena *arena, const Layout *l, const LaySlot *s)
{
    return product(arena, l, s->span.width, s->below);
}

/* The table of a place below which several branches hang: prefix sums of the product of them. */
static int64_t *count_tuples(Arena *arena, const Layout *l, int k, int last)
{
    int64_t n = l->slot[k].span.total;
    int64_t *sum = arena_array(arena, n + 1, sizeof *sum);

    for (int64_t p = 0; p < n; p++) {
        int64_t tuples = 1;

        for (int c = k + 1; c <= last; c++)
            if (l->slot[c].parent == k)
                tuples = product(arena, l, tuples, under(l, c, p));
        if (int_add(sum[p], tuples, &sum[p + 1]))
            too_many(arena, l);
    }
    return sum;
}

/* Sets how the tuples below place k are counted, from the places up to `last` that hang on it. */
static void count_below(Arena *arena, Layout *l, int k, int last)
{
    LaySlot *s = &l->slot[k];
    int nchild = 0, child = -1;

    s->below = 1;
    for (int c = last; c > k; c--) {
        const LaySlot *t = &l->slot[c];

        if (t->parent != k)
            continue;
        nchild++;
        child = c;
        if (s->below >= 0)
            s->below = is_uniform(t) ? product(arena, l, s->below, each(arena, l, t)) : -1;
    }
    s->only = s->below < 0 && nchild == 1 ? child : -1;
    s->before = s->below < 0 && nchild > 1 ? count_tuples(arena, l, k, last) : NULL;
    if (s->below >= 0) /* no sum of products that a lookup makes overflows then */
        product(arena, l, s->span.total, s->below);
}

/* Counts the tuples of the places first..last as if there were no others.  What hangs on a place
 * before `first` is uniform: ir_dims cuts nowhere else. */
static int64_t measure(Arena *arena, Layout *l, int first, int last)
{
    int64_t n = 1;

    for (int k = last; k >= first; k--) {
        const LaySlot *s = &l->slot[k];

        count_below(arena, l, k, last);
        if (s->parent < first)
            n = product(arena, l, n, s->parent < 0 ? under(l, k, 0) : each(arena, l, s));
    }
    return n;
}

/* How many tuples there are of the places after k that hang on places before it. */
static int64_t pending(const Layout *l, int k, const int64_t *pos)
{
    int64_t n = 1;

    for (int c = k + 1; c < l->buf->nfull; c++)
        if (l->slot[c].parent < k)
            n *= under(l, c, l->slot[c].parent < 0 ? 0 : pos[l->slot[c].parent]);
    return n;
}

static void find_stride(Arena *arena, Layout *l, int k)
{
    LaySlot *s = &l->slot[k];

    s->head = k > 0 && l->slot[k - 1].only == k ? l->slot[k - 1].head : k;
    s->stride = 1;
    for (int c = k + 1; c < l->buf->nfull; c++) {
        const LaySlot *t = &l->slot[c];

        if (t->parent >= k || s->stride < 0)
            continue;
        if (t->parent < 0)
            s->stride = product(arena, l, s->stride, under(l, c, 0));
        else
            s->stride = is_uniform(t) ? product(arena, l, s->stride, each(arena, l, t)) : -1;
    }
}

void ir_layout(Arena *arena, const Prog *p, const Env *env, const Buf *b, Layout *l)
{
    *l = (Layout){ .buf = b };
    l->ndim = ir_dims(b, l->dim);
    l->slot = arena_array(arena, b->nfull, sizeof *l->slot);
    for (int k = 0; k < b->nfull; k++) {
        l->slot[k].span = ir_axis_span(p, env, b->full[k]);
        l->slot[k].parent = ir_parent_place(b, k);
    }
    for (int d = 0; d < l->ndim; d++)
        l->extent[d] = measure(arena, l, l->dim[d].first, l->dim[d].last);
    l->n = measure(arena, l, 0, b->nfull - 1);
    for (int k = 0; k < b->nfull; k++)
        find_stride(arena, l, k);
}

/* Storage is lexicographic: for each place, the tuples that agree up to there and have a smaller
 * position in it.  Along a chain of only children these sums telescope into one. */
int64_t ir_layout_at(const Layout *l, const int64_t *pos)
{
    int64_t at = 0;

    for (int k = 0; k < l->buf->nfull; k++) {
        const LaySlot *s = &l->slot[k];
        int64_t n;

        if (s->only == k + 1)
            continue;
        n = before(l, k, pos[k]);
        if (l->slot[s->head].parent >= 0)
            n -= before(l, s->head,
                        ir_span_first(&l->slot[s->head].span, pos[l->slot[s->head].parent]));
        at += n * (s->stride >= 0 ? s->stride : pending(l, k, pos));
    }
    return at;
}
