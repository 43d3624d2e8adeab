/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Turns an expression that would be much longer as text than it is in memory into a list of lets
 * and branches.  In memory equal parts are one node; text writes each part where it is used, so a
 * chain of n choices, each of which uses the one before it twice, has 2^n parts.
 *
 *     y = select(c, a * a, 0)            let y: f32 = 0
 *     where a = select(d, X[j], 1)       if c:
 *                                            let a: f32 = select(d, X[j], 1)
 *                                            y = a * a
 *
 * A part is computed once, in the innermost block around all its uses, if it may be computed there:
 * every way through the block needs it, or nothing in it can go wrong (lower_is_total).  Else, when
 * the uses are in several arms below that block, it is computed under the condition that one of
 * these arms is taken.  Where that condition is not known early enough, each arm has its own copy;
 * a text that becomes too long by that is refused.
 *
 * finish/cse.c calls this for each expression of a node.  All of a node's expressions are evaluated
 * before it stores, so also elements that the phase writes keep their values. */
#include "lower/finish/finish_int.h"

#include <stdlib.h>

enum {
    LIMIT_DEPTH = 200,        /* blocks in blocks: C compilers have a limit of 256 */
    LIMIT_COPIES = 1 << 16 /* operators that are written again */
};

typedef struct Value Value;
typedef struct Region Region;

typedef struct Term { /* a condition, or its contrary */
    Value *cond;
    Expr *e;
    bool negated;
} Term;

struct Region { /* the block around the node, an arm of a choice, or the block below a guard */
    Region *outer;
    const Value *of; /* the choice; NULL of other blocks */
    int depth;
    Term *term; /* it is run when one of these holds */
    int nterm, cap;
    Value *first; /* the values in it, smaller expressions first */
    int named;    /* how many of them have a name */
};

struct Value { /* a part of the expression */
    Expr *e, *to; /* to: what stands for it where it is used */
    int order;    /* of the parts: after those that it is made of */
    Region **use; /* each once */
    int nuse, cap;
    int64_t uses; /* how often it is written, if it has no name */
    Region *at, *guard; /* where it is computed, and the block below its guard; or NULL */
    Region *arm[3];     /* by argument: the blocks of a choice */
    bool copied, whole; /* written where it is used; with all that it is made of */
    bool named;
    Value *next; /* in its region */
};

typedef struct Unfold {
    const LowerUnfold *in;
    Prog *p;
    Memo place; /* of an expression, its number among the values and 1 */
    Value *value;
    int n, cap;
    int64_t copies;
} Unfold;

static Value *find(Unfold *u, Expr *e)
{
    Expr *number = e->nargs == 0 ? NULL : *ir_memo(u->p, &u->place, e);

    return number == NULL ? NULL : &u->value[number->i - 1];
}

/* What `fits` tests is computed with checks, which a name would take from it. */
static int args_of(const Expr *e)
{
    return e->op == OP_fits ? 0 : e->nargs;
}

static void collect(Unfold *u, Expr *e)
{
    if (e->nargs == 0 || *ir_memo(u->p, &u->place, e) != NULL)
        return;
    *ir_memo(u->p, &u->place, e) = e;
    for (int i = 0; i < args_of(e); i++)
        collect(u, e->arg[i]);
    u->value = arena_grow(u->p->arena, u->value, u->n, &u->cap, sizeof *u->value);
    u->value[u->n] = (Value){ .e = e, .order = u->n };
    u->n++;
}

static int by_depth(const void *a, const void *b)
{
    const Value *x = a, *y = b;

    if (x->e->depth != y->e->depth)
        return x->e->depth < y->e->depth ? -1 : 1;
    return x->order - y->order;
}

static bool is_in_lanes(const Unfold *u, Expr *e)
{
    return u->in->is_in_lanes(u->in->ctx, e);
}

/* Lanes compute both sides of a choice. */
static bool is_choice(const Unfold *u, Expr *e)
{
    return (e->op == OP_select || e->op == OP_and || e->op == OP_or) && !is_in_lanes(u, e);
}

static bool may_be_early(const Unfold *u, Expr *e)
{
    return is_in_lanes(u, e) || lower_is_total(u->p, u->in->phase, e, u->in->total);
}

static Region *new_region(Unfold *u, Region *outer)
{
    Region *r = arena_alloc(u->p->arena, sizeof *r);

    *r = (Region){ .outer = outer, .depth = outer == NULL ? 0 : outer->depth + 1 };
    return r;
}

static void add_term(Unfold *u, Region *r, Term t)
{
    for (int i = 0; i < r->nterm; i++)
        if (r->term[i].e == t.e && r->term[i].negated == t.negated)
            return;
    r->term = arena_grow(u->p->arena, r->term, r->nterm, &r->cap, sizeof *r->term);
    r->term[r->nterm++] = t;
}

static void add_use(Unfold *u, Expr *e, Region *at, int64_t times)
{
    Value *v = find(u, e);
    int i = 0;

    if (v == NULL)
        return;
    v->uses += times;
    while (i < v->nuse && v->use[i] != at)
        i++;
    if (i < v->nuse)
        return;
    v->use = arena_grow(u->p->arena, v->use, v->nuse, &v->cap, sizeof *v->use);
    v->use[v->nuse++] = at;
}

typedef struct Where { /* a block in which a value is used; sure: in each run of the block */
    Region *at;
    bool sure;
} Where;

/* Two arms of one choice that both need a value: whoever runs the choice needs it. */
static bool are_sides(const Region *a, const Region *b)
{
    return a != b && a->of != NULL && a->of == b->of && a->outer == b->outer &&
           a->of->e->op == OP_select;
}

static int find_where(const Where *s, int n, int but, const Region *at, bool side)
{
    for (int i = 0; i < n; i++)
        if (i != but && (side ? are_sides(s[i].at, at) : s[i].at == at))
            return i;
    return -1;
}

/* The innermost block around all uses of the value, and whether each run of it needs the value. */
static Where meet(Unfold *u, const Value *v)
{
    Where *s = arena_array(u->p->arena, v->nuse, sizeof *s);
    int n = v->nuse;

    for (int i = 0; i < n; i++)
        s[i] = (Where){ v->use[i], true };
    while (n > 1) {
        int deep = 0, with;
        Where up;

        for (int i = 1; i < n; i++)
            if (s[i].at->depth > s[deep].at->depth)
                deep = i;
        with = find_where(s, n, deep, s[deep].at, true);
        up = (Where){ s[deep].at->outer, with >= 0 && s[with].sure && s[deep].sure };
        s[deep] = up;
        if (with >= 0) {
            s[with] = s[--n];
            deep = deep == n ? with : deep;
        }
        with = find_where(s, n, deep, up.at, false);
        if (with >= 0) {
            s[with].sure = s[with].sure || up.sure;
            s[deep] = s[--n];
        }
    }
    return s[0];
}

/* The block below a guard of a value that some arms in `at` need: its terms are the conditions of
 * these arms.  NULL: they are not all known before the value. */
static Region *guard_of(Unfold *u, const Value *v, Region *at)
{
    Region *g = new_region(u, at);

    for (int i = 0; i < v->nuse; i++) {
        if (v->use[i]->outer != at || v->use[i]->nterm == 0)
            return NULL;
        for (int k = 0; k < v->use[i]->nterm; k++) {
            Term t = v->use[i]->term[k];

            if (t.cond != NULL && t.cond >= v)
                return NULL;
            add_term(u, g, t);
        }
    }
    for (int k = 0; k < g->nterm; k++)
        add_use(u, g->term[k].e, at, 1);
    return g;
}

static Region *arm_of(Unfold *u, Value *v, int i, Region *at)
{
    Region *r = new_region(u, at);
    Expr *cond = v->e->arg[0];

    r->of = v;
    add_term(u, r,
             (Term){ find(u, cond), cond, v->e->op == OP_or || (v->e->op == OP_select && i == 2) });
    return v->arm[i] = r;
}

static _Noreturn void refuse(const Unfold *u, const char *what)
{
    ir_throw(u->p, ST_LIMIT,
             "%s: %s; store a part of the expression in a temporary",
             u->in->label == NULL ? "a statement" : u->in->label, what);
}

/* The arguments of a value that is written where it is used are in all these places. */
static void place_copied(Unfold *u, Value *v)
{
    v->copied = true;
    u->copies += v->uses;
    if (u->copies > LIMIT_COPIES)
        refuse(u, "choices that share what only some of them may compute are too deep");
    for (int i = 0; i < args_of(v->e); i++) {
        Value *arg = find(u, v->e->arg[i]);

        for (int k = 0; k < v->nuse; k++)
            add_use(u, v->e->arg[i], v->use[k], k == 0 ? v->uses : 0);
        if (arg != NULL && (v->whole || (i > 0 && is_choice(u, v->e))))
            arg->copied = arg->whole = true;
    }
}

static void place(Unfold *u, Value *v)
{
    Where s = meet(u, v);
    Region *inner;

    if (!s.sure && !v->copied && !may_be_early(u, v->e))
        v->guard = guard_of(u, v, s.at);
    if (v->copied || (!s.sure && v->guard == NULL && !may_be_early(u, v->e))) {
        place_copied(u, v);
        return;
    }
    v->at = s.at;
    v->next = s.at->first;
    s.at->first = v;
    inner = v->guard != NULL ? v->guard : s.at;
    if (inner->depth > LIMIT_DEPTH)
        refuse(u, "choices in choices are too deep");
    for (int i = 0; i < args_of(v->e); i++)
        add_use(u, v->e->arg[i], i > 0 && is_choice(u, v->e) ? arm_of(u, v, i, inner) : inner, 1);
}

static bool has_block(const Value *v)
{
    return (v->arm[1] != NULL && v->arm[1]->named > 0) ||
           (v->arm[2] != NULL && v->arm[2]->named > 0);
}

static bool is_long(Prog *p, Expr *e);

/* The type of what a condition in lanes compares; T_bool: there is none, or no register has it. */
static Type compared(Expr *cond)
{
    Type t = (Type)cond->arg[0]->type;

    while (t == T_bool) {
        cond = cond->arg[0];
        if (cond->nargs == 0)
            return T_bool;
        t = (Type)cond->arg[0]->type;
    }
    if (cond->op < OP_lt || cond->op > OP_ne)
        return T_bool;
    t = ir_promote(t, (Type)cond->arg[1]->type);
    return t == T_f32 || t == T_f64 ? t : T_bool;
}

/* Registers of lanes hold numbers, so a condition is kept as 1 or 0. */
static bool has_register(const Unfold *u, Expr *e)
{
    return !is_in_lanes(u, e) || ir_is_float(e) || (e->type == T_bool && compared(e) != T_bool);
}

/* Which values get a name.  A long test gets one so that it can be cut: see put_fits. */
static void name_values(Unfold *u)
{
    for (Value *v = u->value; v < u->value + u->n; v++) {
        bool can = !v->copied && has_register(u, v->e);

        v->named = can && (v->uses > 1 || v->guard != NULL || has_block(v) ||
                           (v->e->op == OP_fits && is_long(u->p, v->e->arg[0])));
        if (v->named)
            v->at->named++;
    }
}

static Expr *written(Unfold *u, Expr *e)
{
    Value *v = find(u, e);
    Expr *arg[IR_MAX_FULL + 2];

    if (v == NULL || v->to != NULL)
        return v == NULL ? e : v->to;
    for (int i = 0; i < e->nargs; i++)
        arg[i] = i < args_of(e) ? written(u, e->arg[i]) : e->arg[i];
    return v->to = ir_with_args(u->p, e, arg);
}

static Expr *add_let(Unfold *u, NodeList *out, Type t, Expr *value)
{
    int lanes = is_in_lanes(u, value) ? u->in->lanes : 1;
    Local *l = loop_local(u->p, NULL, t, lanes);

    tree_append(
        u->p, out,
        loop_node(u->p,
                  &(Node){ .kind = N_LET, .label = u->in->label, .local = l, .value = value }));
    return loop_use(u->p, l);
}

static Expr *add_name(Unfold *u, NodeList *out, Expr *of, Expr *value)
{
    Type t = of->type == T_bool && is_in_lanes(u, of) ? compared(of) : T_bool;
    Op as = t == T_f32 ? OP_f32 : OP_f64;
    Expr *yes = ir_int(u->p, 1), *no = ir_int(u->p, 0), *arg[3];

    if (t == T_bool)
        return add_let(u, out, (Type)of->type, value);
    arg[0] = value;
    arg[1] = ir_op1(u->p, as, yes);
    arg[2] = ir_op1(u->p, as, no);
    return ir_op2(u->p, OP_ne, add_let(u, out, t, ir_node(u->p, OP_select, arg, 3)), no);
}

static void add_branch(Unfold *u, NodeList *out, Expr *cond, NodeList *body, Expr *to, Expr *value)
{
    tree_append(u->p, body,
                 loop_node(u->p, &(Node){ .kind = N_STORE,
                                          .label = u->in->label,
                                          .op = A_SET,
                                          .out = to,
                                          .value = value }));
    tree_append(u->p, out,
                 loop_node(u->p, &(Node){ .kind = N_IF,
                                          .label = u->in->label,
                                          .cond = cond,
                                          .body = body->node,
                                          .nbody = body->n }));
}

static Expr *zero(Prog *p, Type t)
{
    if (t == T_bool)
        return ir_op2(p, OP_ne, ir_int(p, 0), ir_int(p, 0));
    return t == T_i64 ? ir_int(p, 0) : ir_real(p, 0);
}

static Expr *term_of(Unfold *u, const Term *t)
{
    Expr *e = written(u, t->e);

    return t->negated ? ir_op1(u->p, OP_not, e) : e;
}

static Expr *condition(Unfold *u, const Region *r)
{
    Expr *e = term_of(u, &r->term[0]);

    for (int i = 1; i < r->nterm; i++)
        e = ir_op2(u->p, OP_or, e, term_of(u, &r->term[i]));
    return e;
}

static void put_region(Unfold *u, const Region *r, NodeList *out);

/* A choice as branches that store to a register. */
static Expr *put_choice(Unfold *u, const Value *v, NodeList *out)
{
    Type t = (Type)v->e->type;
    Expr *to = add_let(u, out, t,
                       v->e->op == OP_select ? zero(u->p, t) : written(u, v->e->arg[0]));

    for (int i = 1; i < v->e->nargs; i++) {
        NodeList body = { 0 };

        put_region(u, v->arm[i], &body);
        add_branch(u, out, condition(u, v->arm[i]), &body, to, written(u, v->e->arg[i]));
    }
    return to;
}

typedef struct Count {
    Unfold *u;
    Memo seen;   /* to itself: met once; to `often`: more often */
    Expr **list; /* those that are met often, parts first */
    int n, cap;
} Count;

static void count_sure(Count *c, Expr *e)
{
    Expr **seen = ir_memo(c->u->p, &c->seen, e), *often = ir_int(c->u->p, 0);
    bool lazy = e->op == OP_select || e->op == OP_and || e->op == OP_or;

    if (*seen == often || e->nargs == 0)
        return;
    if (*seen != NULL) {
        *seen = often;
        if (e->type == T_i64 && e->op != OP_cell) {
            c->list = arena_grow(c->u->p->arena, c->list, c->n, &c->cap, sizeof *c->list);
            c->list[c->n++] = e;
        }
        return;
    }
    *seen = e;
    for (int i = 0; i < (lazy ? 1 : e->nargs); i++)
        count_sure(c, e->arg[i]);
}

static int by_size(const void *a, const void *b)
{
    Expr *x = *(Expr *const *)a, *y = *(Expr *const *)b;

    return x->depth != y->depth ? (x->depth < y->depth ? -1 : 1) : (x->id < y->id ? -1 : 1);
}

static Expr *same(Prog *p, Expr *e, void *ctx)
{
    (void)p;
    (void)ctx;
    return e;
}

/* A test of integer arithmetic part by part: what is used twice is tested, then computed, then used
 * by the tests after it. */
static Expr *put_fits(Unfold *u, Expr *test, NodeList *out)
{
    Prog *p = u->p;
    Count c = { .u = u };
    Memo to = { 0 };
    Expr *ok = NULL;

    count_sure(&c, test->arg[0]);
    qsort(c.list, (size_t)c.n, sizeof *c.list, by_size);
    for (int i = 0; i <= c.n; i++) {
        Expr *e = i < c.n ? c.list[i] : test->arg[0], *part = ir_rewrite(p, e, same, NULL, &to);
        Expr *fits = ir_op1(p, OP_fits, part);

        ok = ok == NULL ? fits : ir_op2(p, OP_and, ok, fits);
        if (i == c.n)
            break;
        ok = add_let(u, out, T_bool, ok);
        part = ir_node(p, OP_select, (Expr *[]){ ok, part, ir_int(p, 0) }, 3);
        *ir_memo(p, &to, e) = add_let(u, out, T_i64, part);
    }
    return ok;
}

static Expr *put_value(Unfold *u, Value *v, NodeList *out)
{
    if (v->e->op == OP_fits && is_long(u->p, v->e->arg[0]))
        return put_fits(u, v->e, out);
    return has_block(v) ? put_choice(u, v, out) : written(u, v->e);
}

static void put_guarded(Unfold *u, Value *v, NodeList *out)
{
    Expr *to = add_let(u, out, (Type)v->e->type, zero(u->p, (Type)v->e->type));
    NodeList body = { 0 };

    put_region(u, v->guard, &body);
    add_branch(u, out, condition(u, v->guard), &body, to, put_value(u, v, &body));
    v->to = to;
}

static void put_region(Unfold *u, const Region *r, NodeList *out)
{
    for (Value *v = r->first; v != NULL; v = v->next) {
        if (!v->named)
            continue;
        if (v->guard != NULL) {
            put_guarded(u, v, out);
            continue;
        }
        v->to = put_value(u, v, out);
        if (v->uses > 1 && v->to->op != OP_local)
            v->to = add_name(u, out, v->e, v->to);
    }
}

static void count_part(Expr *e, void *ctx)
{
    (void)e;
    ++*(int64_t *)ctx;
}

static bool is_long(Prog *p, Expr *e)
{
    int64_t parts = 0;
    Memo met = { 0 };

    if (e->tree <= (uint32_t)p->policy.long_text)
        return false;
    ir_visit(p, e, count_part, &parts, &met);
    return e->tree > p->policy.repeats * parts;
}

Expr *lower_unfolded(const LowerUnfold *in, Expr *e, NodeList *out)
{
    Unfold u = { .in = in, .p = in->p };
    Region *top;

    if (!is_long(in->p, e))
        return e;
    collect(&u, e);
    qsort(u.value, (size_t)u.n, sizeof *u.value, by_depth);
    for (int i = 0; i < u.n; i++)
        *ir_memo(u.p, &u.place, u.value[i].e) = ir_int(u.p, i + 1);
    top = new_region(&u, NULL);
    add_use(&u, e, top, 1);
    for (int i = u.n - 1; i >= 0; i--)
        place(&u, &u.value[i]);
    name_values(&u);
    put_region(&u, top, out);
    return written(&u, e);
}
