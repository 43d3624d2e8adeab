/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The proof that a rule keeps where its entries are: each coordinate that the axes give, with the
 * map put in for positions and for what is stored, is the entry's own.  Expressions become sums of
 * integers times atoms, in one order; with a % c = a - c*(a / c), (c*a + b) / c = a + b / c and
 * (a / b) / c = a / (b*c) for positive numbers b, c, equal ones become the same sum.  This holds
 * for integers of any size, since division rounds down. */
#include "format/format_int.h"

#include <string.h>

enum { LIMIT_TERMS = 64 };

typedef struct Term {
    int64_t by;
    FmtExpr *atom;
} Term;

typedef struct Sum {
    int64_t constant;
    int n;
    Term term[LIMIT_TERMS];
    bool bad; /* too large for a proof */
} Sum;

typedef struct Proof {
    Arena *arena;
    const FmtShape *shape;
} Proof;

static void add_term(Sum *s, int64_t by, FmtExpr *atom)
{
    int k = 0;

    while (k < s->n && fmt_expr_cmp(s->term[k].atom, atom) < 0)
        k++;
    if (k < s->n && fmt_expr_cmp(s->term[k].atom, atom) == 0) {
        s->bad = s->bad || int_add(s->term[k].by, by, &s->term[k].by);
        if (s->term[k].by == 0) {
            s->n--;
            memmove(&s->term[k], &s->term[k + 1], (size_t)(s->n - k) * sizeof *s->term);
        }
        return;
    }
    if (s->n == LIMIT_TERMS || by == 0) {
        s->bad = s->bad || by != 0;
        return;
    }
    for (int i = s->n++; i > k; i--)
        s->term[i] = s->term[i - 1];
    s->term[k] = (Term){ by, atom };
}

/* s += by * t */
static void add_sum(Sum *s, int64_t by, const Sum *t)
{
    int64_t v;

    s->bad = s->bad || t->bad || int_mul(by, t->constant, &v) ||
             int_add(s->constant, v, &s->constant);
    for (int i = 0; i < t->n && !s->bad; i++) {
        s->bad = int_mul(by, t->term[i].by, &v);
        add_term(s, v, t->term[i].atom);
    }
}

static FmtExpr *number(const Proof *p, int64_t v)
{
    return fmt_node(p->arena, F_INT, v, NULL, NULL);
}

/* A sum as an expression again, always the same for the same sum. */
static FmtExpr *of_sum(const Proof *p, const Sum *s)
{
    FmtExpr *e = s->n == 0 ? number(p, s->constant) : NULL;

    for (int i = 0; i < s->n; i++) {
        int64_t by = s->term[i].by;
        bool minus = e != NULL && by < 0 && by > INT64_MIN;
        FmtExpr *term = s->term[i].atom;

        if (by != 1 && !(minus && by == -1))
            term = fmt_node(p->arena, F_MUL, 0, number(p, minus ? -by : by), term);
        e = e == NULL ? term : fmt_node(p->arena, minus ? F_SUB : F_ADD, 0, e, term);
    }
    if (s->n > 0 && s->constant != 0)
        e = fmt_node(p->arena, F_ADD, 0, e, number(p, s->constant));
    return e;
}

static void normal(const Proof *, const FmtExpr *, Sum *out);

/* q + r / c with the parts of s that c divides in q. */
static void divide(const Proof *p, const Sum *s, int64_t c, Sum *out)
{
    Sum rest = { .bad = s->bad };
    int64_t q = 0, r = 0;

    *out = (Sum){ .bad = int_div(s->constant, c, &out->constant) ||
                         int_mod(s->constant, c, &rest.constant) };
    for (int i = 0; i < s->n; i++) {
        out->bad = out->bad || int_div(s->term[i].by, c, &q) || int_mod(s->term[i].by, c, &r);
        add_term(out, q, s->term[i].atom);
        add_term(&rest, r, s->term[i].atom);
    }
    out->bad = out->bad || rest.bad;
    if (rest.n == 0)
        return; /* what is left of the constant is below c */
    if (rest.n == 1 && rest.constant == 0 && rest.term[0].by == 1 &&
        rest.term[0].atom->op == F_DIV && rest.term[0].atom->arg[1]->op == F_INT) {
        const FmtExpr *inner = rest.term[0].atom;

        out->bad = out->bad || int_mul(c, inner->arg[1]->v, &c);
        add_term(out, 1, fmt_node(p->arena, F_DIV, 0, inner->arg[0], number(p, c)));
        return;
    }
    add_term(out, 1, fmt_node(p->arena, F_DIV, 0, of_sum(p, &rest), number(p, c)));
}

/* What no rule looks into: the same operator on arguments in their normal form. */
static void opaque(const Proof *p, const FmtExpr *e, Sum *out)
{
    FmtExpr *to = arena_copy(p->arena, e, sizeof *e);
    Sum *arg = arena_alloc(p->arena, sizeof *arg);

    to->arg = arena_array(p->arena, e->nargs, sizeof *to->arg);
    for (int i = 0; i < e->nargs; i++) {
        normal(p, e->arg[i], arg);
        out->bad = out->bad || arg->bad;
        to->arg[i] = of_sum(p, arg);
    }
    add_term(out, 1, to);
}

static void binary(const Proof *p, const FmtExpr *e, Sum *out)
{
    Sum *a = arena_alloc(p->arena, sizeof *a), *b = arena_alloc(p->arena, sizeof *b);
    Sum *q = arena_alloc(p->arena, sizeof *q);

    normal(p, e->arg[0], a);
    normal(p, e->arg[1], b);
    if (e->op == F_ADD || e->op == F_SUB) {
        *out = *a;
        add_sum(out, e->op == F_ADD ? 1 : -1, b);
    } else if (e->op == F_MUL && (a->n == 0 || b->n == 0)) {
        add_sum(out, a->n == 0 ? a->constant : b->constant, a->n == 0 ? b : a);
    } else if (e->op != F_MUL && b->n == 0 && b->constant > 0) {
        divide(p, a, b->constant, q);
        if (e->op == F_DIV) {
            *out = *q;
        } else {
            *out = *a;
            add_sum(out, -b->constant, q);
        }
    } else {
        opaque(p, e, out);
    }
}

static void normal(const Proof *p, const FmtExpr *e, Sum *out)
{
    const FmtAxis *level = e->op == F_LOC || e->op == F_LOAD ? &p->shape->level[e->v] : NULL;
    const FmtExpr *put = level == NULL ? NULL : e->op == F_LOC ? level->loc : level->load[e->k];
    Sum *a;

    *out = (Sum){ 0 };
    if (put != NULL) {
        normal(p, put, out);
    } else if (e->op == F_INT) {
        out->constant = e->v;
    } else if (e->op == F_NEG) {
        a = arena_alloc(p->arena, sizeof *a);
        normal(p, e->arg[0], a);
        add_sum(out, -1, a);
    } else if (e->op >= F_ADD && e->op <= F_MOD) {
        binary(p, e, out);
    } else {
        opaque(p, e, out);
    }
}

void fmt_prove(Arena *arena, const FmtUse *u, const FmtShape *s)
{
    Proof p = { arena, s };
    Sum *sum = arena_alloc(arena, sizeof *sum);

    for (int i = 0; i < u->rule->ncoord; i++) {
        const FmtAxis *a = &s->level[s->from_level[i]];
        Text t = { .arena = arena };

        normal(&p, a->coord[s->from_k[i]], sum);
        if (!sum->bad && sum->n == 1 && sum->constant == 0 && sum->term[0].by == 1 &&
            sum->term[0].atom->op == F_COORD && sum->term[0].atom->v == i)
            continue;
        fmt_expr_print(&t, u->rule, of_sum(&p, sum));
        err_throw(arena->err, ST_CHECK,
                  "format %s%s%s: the axes do not reproduce the coordinates that the map "
                  "stores: coordinate %s "
                  "would come back as %.200s",
                  u->rule->name, s->name[0] != '\0' ? ", part " : "", s->name, u->rule->coord[i],
                  sum->bad ? "something too large for a proof" : t.s);
    }
}
