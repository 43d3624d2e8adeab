/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Writes sums of products with few operations.  What an iteration adds to its elements is
 * drafted in several ways: as it stands, with common factors taken out, or with the factors of
 * one array summed first, so that c*a[0]*b + d*a[1]*b becomes b * (c*a[0] + d*a[1]).  Within a
 * draft equal parts are one, so a way that shares parts with other elements costs less.  The
 * cheapest draft is written. */
#include "lower/algebra/draft_int.h"

#include <string.h>

enum { LIMIT_HEADS = 1024, LIMIT_CLASSES = 6 };
enum { LEAF = OP_COUNT, FIXED };

typedef struct Step { /* a leaf or an operation on earlier steps */
    int op, arg[3], next;
    Expr *leaf, *made;
} Step;

typedef struct Piece { /* a term, its factors as steps */
    Expr *c;
    int n, f[LIMIT_FACTORS];
    const void *of[LIMIT_FACTORS]; /* the array, or what else tells like factors */
} Piece;

typedef struct Way {
    const void *inner, *last; /* factors that are summed up first; that are multiplied last */
    bool pull;                /* factors that all terms have come before the sum */
} Way;

struct Draft {
    Prog *p;
    Factored *f;
    Step *step;
    int n, cap, operations;
    int *head, heads; /* of steps with one hash */
    int *value; /* by sum */
    int *part;
};

static unsigned slot_of(const Draft *d, const Step *s)
{
    uint64_t h = s->leaf != NULL ? s->leaf->id : 0;

    for (int i = 0; i < 3; i++)
        h = h * 1000003u + (unsigned)s->arg[i];
    h = (h * 31 + (unsigned)s->op) * 2654435761u; /* not speed: a hash */
    return (unsigned)(h >> 8) % (unsigned)d->heads;
}

static int step(Draft *d, const Step *s)
{
    unsigned h = slot_of(d, s);

    for (int i = d->head[h]; i >= 0; i = d->step[i].next) {
        const Step *x = &d->step[i];

        if (x->op == s->op && x->leaf == s->leaf && x->arg[0] == s->arg[0] &&
            x->arg[1] == s->arg[1] && x->arg[2] == s->arg[2])
            return i;
    }
    d->step = arena_grow(d->p->arena, d->step, d->n, &d->cap, sizeof *d->step);
    d->step[d->n] = *s;
    d->step[d->n].next = d->head[h];
    d->head[h] = d->n;
    d->operations += s->op < LEAF;
    return d->n++;
}

static int leaf(Draft *d, int kind, Expr *e)
{
    return step(d, &(Step){ .op = kind, .arg = { -1, -1, -1 }, .leaf = e });
}

static int operation(Draft *d, Op op, int a, int b, int c)
{
    bool turned = a > b;

    return step(d, &(Step){ .op = (int)op, .arg = { turned ? b : a, turned ? a : b, c } });
}

/* Forgets all steps from n on. */
static void cut_back(Draft *d, int n)
{
    while (d->n > n) {
        const Step *s = &d->step[--d->n];

        d->head[slot_of(d, s)] = s->next;
        d->operations -= s->op < LEAF;
    }
}

static int multiplied(Draft *d, int a, int b)
{
    return a < 0 ? b : b < 0 ? a : operation(d, OP_mul, a, b, -1);
}

/* The product of the factors; -1: there is none. */
static int product(Draft *d, const Piece *t, const Way *w)
{
    int x = -1, y = -1;

    for (int i = 0; i < t->n; i++)
        if (w->last != NULL && t->of[i] == w->last)
            y = multiplied(d, y, t->f[i]);
        else
            x = multiplied(d, x, t->f[i]);
    return multiplied(d, x, y);
}

/* sum + c * x; either may be -1. */
static int plus(Draft *d, int sum, int c, int x)
{
    if (c < 0 || x < 0) {
        c = c < 0 ? x : c;
        return sum < 0 ? c : operation(d, OP_add, sum, c, -1);
    }
    return sum < 0 ? operation(d, OP_mul, c, x, -1) : operation(d, OP_fma, c, x, sum);
}

static int fixed(Draft *d, Expr *c)
{
    return c == NULL ? -1 : leaf(d, FIXED, c);
}

/* The term without its factor i. */
static Piece without(const Piece *t, int i)
{
    Piece r = *t;

    r.n--;
    for (int k = i; k < r.n; k++) {
        r.f[k] = t->f[k + 1];
        r.of[k] = t->of[k + 1];
    }
    return r;
}

static int plain(Draft *d, const Piece *t, int n, const Way *w)
{
    int sum = -1;

    for (int i = 0; i < n; i++) {
        Piece rest = t[i];
        int c = fixed(d, t[i].c);

        if (c < 0 && rest.n > 1) { /* one factor goes into a fused multiply-add */
            int k = rest.n - 1;

            while (k > 0 && rest.of[k] != w->last)
                k--;
            c = rest.f[k];
            rest = without(&rest, k);
        }
        if (c < 0 && rest.n == 0)
            c = fixed(d, ir_real(d->p, 1));
        sum = plus(d, sum, c, product(d, &rest, w));
    }
    return sum;
}

static int inner_of(const Piece *t, const Way *w)
{
    for (int i = 0; i < t->n; i++)
        if (t->of[i] == w->inner)
            return i;
    return -1;
}

static bool is_like(const Piece *a, const Piece *b)
{
    bool same = a->n == b->n;

    for (int i = 0; i < a->n && same; i++)
        same = a->f[i] == b->f[i];
    return same;
}

/* Terms that differ in the inner factor alone are one: the rest times a sum. */
static int by_inner(Draft *d, const Piece *t, int n, const Way *w)
{
    bool *done = arena_array(d->p->arena, n, sizeof *done);
    Piece *like = arena_array(d->p->arena, n, sizeof *like), rest, other;
    int sum = -1;

    for (int i = 0; i < n; i++) {
        int at = inner_of(&t[i], w), many = 0;

        if (done[i] || at < 0)
            continue;
        rest = without(&t[i], at);
        for (int k = i; k < n; k++) {
            int in = inner_of(&t[k], w);

            other = in < 0 ? t[k] : without(&t[k], in);
            if (in < 0 || done[k] || !is_like(&rest, &other))
                continue;
            done[k] = true;
            like[many++] = (Piece){ .c = t[k].c, .n = 1, .f = { t[k].f[in] } };
        }
        sum = plus(d, sum, product(d, &rest, w), plain(d, like, many, w));
    }
    for (int i = 0; i < n; i++)
        if (!done[i])
            sum = plus(d, sum, -1, plain(d, &t[i], 1, w));
    return sum;
}

/* A factor of the first term that all others have; -1: none. */
static int common(const Piece *t, int n)
{
    for (int i = 0; i < t[0].n; i++) {
        int all = 0;

        for (int k = 0; k < n; k++) {
            bool has = false;

            for (int j = 0; j < t[k].n && !has; j++)
                has = t[k].f[j] == t[0].f[i];
            all += has;
        }
        if (all == n)
            return t[0].f[i];
    }
    return -1;
}

static bool have_one_factor(const Piece *t, int n)
{
    for (int i = 1; i < n; i++)
        if (t[i].c != t[0].c)
            return false;
    return n > 1 && t[0].c != NULL;
}

static int build(Draft *d, const Piece *t, int n, const Way *w)
{
    Piece *rest = arena_copy(d->p->arena, t, (size_t)n * sizeof *t);
    int f = w->pull && n > 1 ? common(t, n) : -1;

    if (have_one_factor(t, n)) {
        for (int i = 0; i < n; i++)
            rest[i].c = NULL;
        return operation(d, OP_mul, fixed(d, t[0].c), build(d, rest, n, w), -1);
    }
    if (f >= 0) {
        for (int i = 0; i < n; i++) {
            int k = 0;

            while (t[i].f[k] != f)
                k++;
            rest[i] = without(&t[i], k);
        }
        return operation(d, OP_mul, f, build(d, rest, n, w), -1);
    }
    return w->inner != NULL ? by_inner(d, t, n, w) : plain(d, t, n, w);
}

/* What tells like factors: the array; of sums (algebra/pairs.c) the type of what they are of, as
 * they are neither's. */
static const void *class_of(const Expr *e)
{
    if (e->op == OP_fma && e->arg[0]->op == OP_cell)
        return &e->arg[0]->buf->type;
    return e->op == OP_cell ? (const void *)e->buf : e;
}

static Piece *pieces(Draft *d, const Poly *poly)
{
    Piece *t = arena_array(d->p->arena, poly->n, sizeof *t);

    for (int i = 0; i < poly->n; i++) {
        t[i].c = poly->term[i].c;
        t[i].n = poly->term[i].n;
        for (int k = 0; k < t[i].n; k++) {
            Expr *e = poly->term[i].f[k];

            t[i].f[k] = leaf(d, LEAF, e);
            t[i].of[k] = class_of(e);
        }
    }
    return t;
}

/* Drafts the sums of [from, to) that are `moves`; the operations that are new. */
static int draft_sums(Draft *d, int from, int to, bool moves, const Way *w)
{
    int before = d->operations;

    for (int i = from; i < to; i++) {
        const Sum *s = &d->f->sum[i];

        if (s->moves == moves)
            d->value[i] = build(d, pieces(d, &s->poly), s->poly.n, w);
    }
    return d->operations - before;
}

/* What factors there are in the sums, by array; whether a term has more than two. */
static int classes(Draft *d, int from, int to, bool moves, const void **of, bool *three)
{
    int n = 0;

    *three = false;
    for (int i = from; i < to; i++) {
        const Poly *poly = &d->f->sum[i].poly;
        const Piece *t = pieces(d, poly);

        for (int k = 0; k < poly->n && d->f->sum[i].moves == moves; k++)
            for (int j = 0; j < t[k].n; j++) {
                int at = 0;

                *three = *three || t[k].n > 2;
                while (at < n && of[at] != t[k].of[j])
                    at++;
                if (at == n && n < LIMIT_CLASSES)
                    of[n++] = t[k].of[j];
            }
    }
    return n;
}

typedef int Try(Draft *, int from, int to, bool moves, const Way *);

/* The way that takes the fewest new operations. */
static Way cheapest(Draft *d, int from, int to, bool moves, Try *try)
{
    const void *of[LIMIT_CLASSES];
    bool three;
    int n = classes(d, from, to, moves, of, &three), best = -1, start;
    Way found = { 0 };

    start = d->n;
    for (int in = -1; in < n; in++)
        for (int last = -1; last < (three ? n : 0); last++)
            for (int pull = 0; pull < 2; pull++) {
                Way w = { in < 0 ? NULL : of[in], last < 0 ? NULL : of[last], pull };
                int cost = try(d, from, to, moves, &w);

                cut_back(d, start);
                if (best < 0 || cost < best) {
                    best = cost;
                    found = w;
                }
            }
    return found;
}

/* Each product of the sums that do not move is a part of its own. */
static int draft_parts(Draft *d, int from, int to, bool moves, const Way *w)
{
    int before = d->operations;
    Factored *f = d->f;

    f->nparts = 0;
    for (int i = from; i < to; i++) {
        const Poly *poly = &f->sum[i].poly;
        const Piece *t = pieces(d, poly);

        for (int k = 0; k < poly->n && f->sum[i].moves == moves; k++) {
            int x = t[k].n == 0 ? fixed(d, ir_real(d->p, 1)) : product(d, &t[k], w), at = 0;

            while (at < f->nparts && d->part[at] != x)
                at++;
            f->which[i][k] = at;
            d->part[at] = x;
            f->nparts += at == f->nparts;
        }
    }
    return d->operations - before;
}

/* Sums that do not move: either what each of them gets is added up, or each product, and what the
 * sums get of it comes after the loop. */
static void choose_parts(Draft *d, double turns)
{
    Factored *f = d->f;
    const Policy *policy = &d->p->policy;
    Way together = cheapest(d, 0, f->n, false, draft_sums),
        apart = cheapest(d, 0, f->n, false, draft_parts);
    int start = d->n, terms = 0, still = 0, one, many;

    for (int i = 0; i < f->n; i++) {
        still += !f->sum[i].moves;
        terms += f->sum[i].moves ? 0 : f->sum[i].poly.n;
    }
    one = draft_sums(d, 0, f->n, false, &together);
    cut_back(d, start);
    many = draft_parts(d, 0, f->n, false, &apart);
    if (f->nparts > policy->loop_sums)
        many += policy->spill * (f->nparts - policy->loop_sums);
    f->apart = many * turns + f->nparts * policy->fold + terms * policy->scalar <
               one * turns + still * policy->fold;
    if (f->apart)
        return;
    cut_back(d, start);
    draft_sums(d, 0, f->n, false, &together);
    f->nparts = 0;
    for (int i = 0; i < f->n; i++)
        if (!f->sum[i].moves) {
            f->which[i][0] = f->nparts;
            d->part[f->nparts++] = d->value[i];
        }
}

/* Elements of one array go one way.  What is drafted first others may share. */
static void draft_arrays(Draft *d, bool backwards)
{
    const Sum *sum = d->f->sum;
    int n = d->f->n, from = backwards ? n : 0, to = from;

    while (backwards ? from > 0 : to < n) {
        Way w;

        if (backwards) {
            for (to = from--; from > 0 && sum[from - 1].cell->buf == sum[from].cell->buf;)
                from--;
        } else {
            for (from = to++; to < n && sum[to].cell->buf == sum[from].cell->buf;)
                to++;
        }
        w = cheapest(d, from, to, true, draft_sums);
        draft_sums(d, from, to, true, &w);
    }
}

static Draft *draft_in(Prog *p, Factored *f, double turns, bool backwards)
{
    Draft *d = arena_alloc(p->arena, sizeof *d);
    int terms = 0;

    *d = (Draft){ .p = p, .f = f, .value = arena_array(p->arena, f->n, sizeof *d->value) };
    f->which = arena_array(p->arena, f->n, sizeof *f->which);
    for (int i = 0; i < f->n; i++) {
        f->which[i] = arena_array(p->arena, f->sum[i].poly.n, sizeof **f->which);
        terms += f->sum[i].poly.n;
    }
    for (d->heads = 16; d->heads < LIMIT_HEADS && d->heads < 8 * terms;)
        d->heads *= 2;
    d->head = arena_array(p->arena, d->heads, sizeof *d->head);
    memset(d->head, -1, (size_t)d->heads * sizeof *d->head);
    d->part = arena_array(p->arena, terms + 1, sizeof *d->part);
    draft_arrays(d, backwards);
    choose_parts(d, turns);
    f->cost = d->operations;
    return d;
}

/* The better of two: the second begins with the last array. */
static Draft *draft(Prog *p, Factored *f, double turns)
{
    Factored turned = *f;
    Draft *d = draft_in(p, f, turns, false), *other;

    if (f->n == 0 || f->sum[0].cell->buf == f->sum[f->n - 1].cell->buf)
        return d;
    other = draft_in(p, &turned, turns, true);
    if (turned.cost >= f->cost)
        return d;
    *f = turned;
    lower_move_draft(other, f);
    return other;
}

Draft *lower_draft(Prog *p, Factored *f, double turns)
{
    Factored bundled = *f;
    Draft *d = draft(p, f, turns), *other;
    int more = lower_pair_sums(p, &bundled);

    if (more == 0)
        return d;
    other = draft(p, &bundled, turns);
    if (bundled.cost + more >= f->cost)
        return d;
    *f = bundled;
    f->cost += more;
    lower_move_draft(other, f);
    return other;
}

void lower_move_draft(Draft *d, Factored *f)
{
    d->f = f;
}

static Expr *written(Draft *d, int at, Fixed *pass, void *ctx)
{
    Step s = d->step[at];
    Expr *arg[3];

    if (s.made != NULL)
        return s.made;
    if (s.op >= LEAF) {
        s.made = s.op == FIXED ? pass(ctx, s.leaf) : s.leaf;
    } else {
        for (int i = 0; i < ir_op[s.op].nargs; i++)
            arg[i] = written(d, s.arg[i], pass, ctx);
        s.made = ir_node(d->p, (Op)s.op, arg, ir_op[s.op].nargs);
    }
    return d->step[at].made = s.made;
}

void lower_write_draft(Draft *d, Fixed *pass, void *ctx)
{
    Factored *f = d->f;

    f->part = arena_array(d->p->arena, f->nparts, sizeof *f->part);
    for (int i = 0; i < f->n; i++)
        if (f->sum[i].moves)
            f->sum[i].value = written(d, d->value[i], pass, ctx);
    for (int i = 0; i < f->nparts; i++)
        f->part[i].value = written(d, d->part[i], pass, ctx);
}
