/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Common subexpression elimination: an expression that a list of nodes surely evaluates more
 * than once, or that an innermost loop does not change, is computed once, into a let.  Needs
 * flat loops; the last pass. */
#include "lower/finish/finish_int.h"

typedef struct Named { /* an expression and the local that holds it */
    Expr *e, *use;
    const struct Named *outer;
} Named;

typedef struct Share { /* one list of nodes */
    Prog *p;
    const Node *phase;
    Invariants *kept; /* see lower_is_invariant, */
    Memo *total;  /* lower_is_total */
    const Named *named; /* newest first */
    Memo let;           /* the same as a map, for rewriting */
    Memo seen;          /* to itself: met once; to `often`: more than once */
    Memo split;         /* in lanes: what name_same has looked into, to itself */
    Expr *often;
    Local *var; /* of the loop, in meet_fixed */
    Memo uses;  /* whether an expression depends on it */
    Local *lane; /* of the vector loop around; or NULL */
    int lanes;
    Memo differs; /* from lane to lane: whether an expression does */
    Expr **fixed;
    int nfixed, cap;
    const char *label;
    NodeList out;
} Share;

static Share new_list(const Share *outer)
{
    Share s = { .p = outer->p,
                .phase = outer->phase,
                .kept = outer->kept,
                .total = outer->total,
                .named = outer->named,
                .often = outer->often,
                .lane = outer->lane,
                .lanes = outer->lanes };

    for (const Named *n = s.named; n != NULL; n = n->outer)
        *ir_memo(s.p, &s.let, n->e) = n->use;
    return s;
}

static bool is_kept(Share *s, Expr *e)
{
    return lower_is_invariant(s->p, s->phase, e, s->kept);
}

/* Worth a name when it is used twice; elements and floating-point work also when used often. */
static bool is_heavy(Expr *e)
{
    return e->nargs > 0 && e->type != T_bool && (e->op == OP_cell || ir_is_float(e));
}

static bool is_work(const Prog *p, Expr *e)
{
    return is_heavy(e) || (e->tree > (uint32_t)p->policy.shared_tree && e->op != OP_fits);
}

/* How many arguments may be evaluated whenever the expression is: of a choice also the sides, where
 * nothing can go wrong in them, so that what they share is computed once.  What `fits` tests may
 * not be computed before it. */
static int sure_args(Share *s, Expr *e)
{
    if (e->op == OP_and || e->op == OP_or ||
        (e->op == OP_select && !lower_is_total(s->p, s->phase, e, s->total)))
        return 1;
    return e->op == OP_fits ? 0 : e->nargs;
}

typedef void Each(Share *, Expr *);

/* What a node itself surely evaluates; of the elements it writes only the places.  The condition of
 * a store past the caches is no part of it: only some forms of the store ask for it. */
static void each_sure(Share *s, const Node *n, Each *fn)
{
    Expr *part[] = { n->lo, n->hi, n->kind == N_STORE ? NULL : n->cond, n->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL && n->how != FOR_PARALLEL)
            fn(s, part[i]);
    for (int i = 0; n->out != NULL && i < n->out->nargs; i++)
        fn(s, n->out->arg[i]);
    for (int k = 0; k < n->nat; k++)
        for (int i = 0; i < n->at[k].out->nargs; i++)
            fn(s, n->at[k].out->arg[i]);
}

/* Counts uses, those that are evaluated under a condition too. */
static void meet(Share *s, Expr *e)
{
    Expr **seen = ir_memo(s->p, &s->seen, e);

    if (*seen != NULL) {
        *seen = s->often;
        return;
    }
    *seen = e;
    for (int i = 0; i < e->nargs && e->op != OP_fits; i++)
        meet(s, e->arg[i]);
}

/* The largest parts that the loop's variable does not change. */
static void meet_fixed(Share *s, Expr *e)
{
    Expr **seen = ir_memo(s->p, &s->seen, e);

    if (*seen != NULL)
        return;
    *seen = e;
    if (!tree_uses(s->p, e, s->var, &s->uses) && is_heavy(e) && is_kept(s, e)) {
        s->fixed = arena_grow(s->p->arena, s->fixed, s->nfixed, &s->cap, sizeof *s->fixed);
        s->fixed[s->nfixed++] = e;
        return;
    }
    for (int i = 0; i < sure_args(s, e); i++)
        meet_fixed(s, e->arg[i]);
}

static Expr *same(Prog *p, Expr *e, void *ctx)
{
    (void)p;
    (void)ctx;
    return e;
}

static Expr *renamed(Share *s, Expr *e)
{
    return ir_rewrite(s->p, e, same, NULL, &s->let);
}

/* A long expression as it is now: its arguments may have got names since it was renamed last.  (In
 * lanes expressions are short, and places keep their form.) */
static void rename_again(Share *s, Expr *e)
{
    Expr *arg[IR_MAX_FULL + 2], *known = *ir_memo(s->p, &s->let, e);

    if (s->lane != NULL || e->tree <= (uint32_t)s->p->policy.long_text ||
        (known != NULL && known->op == OP_local))
        return;
    for (int i = 0; i < e->nargs; i++)
        arg[i] = renamed(s, e->arg[i]);
    *ir_memo(s->p, &s->let, e) = ir_with_args(s->p, e, arg);
}

static Expr *renamed_place(Share *s, Expr *cell)
{
    Expr *arg[IR_MAX_FULL];

    for (int i = 0; i < cell->nargs; i++)
        arg[i] = renamed(s, cell->arg[i]);
    return ir_with_args(s->p, cell, arg);
}

static Node *renamed_node(Share *s, const Node *n)
{
    Node *c = loop_node(s->p, n);
    Expr **part[] = { &c->lo, &c->hi, &c->cond, &c->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (*part[i] != NULL && n->how != FOR_PARALLEL)
            *part[i] = renamed(s, *part[i]);
    if (n->out != NULL)
        c->out = renamed_place(s, n->out);
    for (int k = 0; k < n->nat; k++)
        c->at[k] = (At){ renamed_place(s, n->at[k].out), renamed(s, n->at[k].value) };
    return c;
}

/* Whether e has a value for each lane: it depends on the variable, or on a local that does. */
static bool is_in_lanes(Share *s, Expr *e)
{
    Expr *no = ir_int(s->p, 0), *known;

    if (s->lane == NULL || e->nargs == 0)
        return s->lane != NULL && e->op == OP_local &&
               (e->local == s->lane || e->local->lanes > 1);
    known = *ir_memo(s->p, &s->differs, e);
    if (known == NULL) {
        known = no;
        for (int i = 0; i < e->nargs && known == no; i++)
            if (is_in_lanes(s, e->arg[i]))
                known = e;
        *ir_memo(s->p, &s->differs, e) = known;
    }
    return known == e;
}

static bool differs(void *ctx, Expr *e)
{
    return is_in_lanes(ctx, e);
}

/* What the names leave of an expression may still be long as a text: in arms of choices, and in
 * tests, nothing has a name. */
static Expr *unfolded(Share *s, Expr *e)
{
    LowerUnfold u = { s->p, s->phase, s->total, s->label, s->lanes, differs, s };

    return e == NULL ? NULL : lower_unfolded(&u, e, &s->out);
}

static Node *unfolded_node(Share *s, Node *n)
{
    n->cond = unfolded(s, n->cond);
    n->value = unfolded(s, n->value);
    for (int k = 0; k < n->nat; k++)
        n->at[k].value = unfolded(s, n->at[k].value);
    return n;
}

static void add_let(Share *s, Expr *e)
{
    Local *l = loop_local(s->p, NULL, (Type)e->type, is_in_lanes(s, e) ? s->lanes : 1);
    Named *n = arena_alloc(s->p->arena, sizeof *n);
    Expr *value = unfolded(s, renamed(s, e));

    tree_append(
        s->p, &s->out,
        loop_node(s->p, &(Node){ .kind = N_LET, .label = s->label, .local = l, .value = value }));
    *n = (Named){ e, loop_use(s->p, l), s->named };
    s->named = n;
    *ir_memo(s->p, &s->let, e) = n->use;
}

/* Lets for what is surely evaluated and used often, children first, when first met.  In lanes the
 * place of an element stays where it is, so that the element is seen to move. */
static void name_often(Share *s, Expr *e)
{
    Expr **seen = ir_memo(s->p, &s->seen, e), *was = *seen;
    bool named = was == s->often && is_work(s->p, e) && is_kept(s, e);

    if (was == NULL)
        return;
    *seen = NULL;
    for (int i = 0; i < sure_args(s, e); i++)
        name_often(s, e->arg[i]);
    rename_again(s, e);
    if (named && renamed(s, e)->op != OP_local && !(is_in_lanes(s, e) && !ir_is_float(e)))
        add_let(s, e);
}

/* In lanes: lets for the largest parts that are the same in all of them, which every register of
 * the loop wants. */
static void name_same(Share *s, Expr *e)
{
    if (is_in_lanes(s, e)) {
        Expr **split = ir_memo(s->p, &s->split, e);

        for (int i = 0; *split == NULL && i < sure_args(s, e); i++)
            name_same(s, e->arg[i]);
        *ir_memo(s->p, &s->split, e) = e;
        return;
    }
    if (is_work(s->p, e) && is_kept(s, e) && renamed(s, e)->op != OP_local)
        add_let(s, e);
}

static NodeList share_list(Share *, Node *const *n, int count);

static Node *share_body(const Share *s, Node *n)
{
    Share inside;
    NodeList body;

    if (n->nbody == 0)
        return n;
    inside = new_list(s);
    if (n->lanes > 1) {
        inside.lane = n->local;
        inside.lanes = n->lanes;
    }
    body = share_list(&inside, n->body, n->nbody);
    n->body = body.node;
    n->nbody = body.n;
    return n;
}

static bool has_only_stores(const Node *n)
{
    for (int i = 0; i < n->nbody; i++)
        if (n->body[i]->kind != N_STORE)
            return false;
    return n->how != FOR_PARALLEL;
}

/* An innermost loop: what is fixed comes before it, and only where the loop runs at all. */
static void add_loop(Share *outer, const Node *n)
{
    Share s = new_list(outer);
    bool runs = n->lo->op == OP_int && n->hi->op == OP_int && n->lo->i < n->hi->i;
    Node branch = { .kind = N_IF, .label = n->label };

    s.var = n->local;
    s.label = n->label;
    for (int i = 0; i < n->nbody && has_only_stores(n); i++)
        each_sure(&s, n->body[i], meet_fixed);
    for (int i = 0; i < s.nfixed; i++)
        if (renamed(&s, s.fixed[i])->op != OP_local)
            add_let(&s, s.fixed[i]);
    tree_append(s.p, &s.out, share_body(&s, renamed_node(&s, n)));
    if (s.out.n == 1 || runs) {
        for (int i = 0; i < s.out.n; i++)
            tree_append(s.p, &outer->out, s.out.node[i]);
        return;
    }
    branch.cond = ir_op2(s.p, OP_lt, renamed(outer, n->lo), renamed(outer, n->hi));
    branch.body = s.out.node;
    branch.nbody = s.out.n;
    tree_append(s.p, &outer->out, loop_node(s.p, &branch));
}

static void add_node(Share *s, const Node *n)
{
    Node *c = unfolded_node(s, renamed_node(s, n));

    tree_append(s->p, &s->out, share_body(s, c));
}

static NodeList share_list(Share *s, Node *const *n, int count)
{
    for (int i = 0; i < count; i++)
        each_sure(s, n[i], meet);
    for (int i = 0; i < count; i++) {
        s->label = n[i]->label;
        each_sure(s, n[i], name_often);
        if (s->lane != NULL && (n[i]->kind == N_STORE || n[i]->kind == N_AHEAD))
            each_sure(s, n[i], name_same);
        if (n[i]->kind == N_FOR)
            add_loop(s, n[i]);
        else
            add_node(s, n[i]);
    }
    return s->out;
}

static void mark_local(Expr *e, void *ctx)
{
    if (e->op == OP_local)
        lower_put_in(ctx, e->local);
}

static bool never_runs(const Node *n)
{
    return n->kind == N_FOR && n->how != FOR_PARALLEL && n->lo->op == OP_int &&
           n->hi->op == OP_int && n->hi->i <= n->lo->i;
}

/* From the last node to the first: a let that nothing after it uses is no more, nor is a loop that
 * never runs. */
static void drop_unused(Prog *p, Node *n, LocalSet *used, Memo *met)
{
    Expr **slot[LIMIT_SLOTS];
    int keep = n->nbody, k = tree_slots(n, slot);
    Node **body = arena_copy(p->arena, n->body, (size_t)n->nbody * sizeof *body);

    for (int i = n->nbody - 1; i >= 0; i--) {
        if (never_runs(body[i]))
            continue;
        drop_unused(p, body[i], used, met);
        if (body[i]->kind != N_LET || lower_has_in(used, body[i]->local))
            body[--keep] = body[i];
    }
    n->body = body + keep;
    n->nbody -= keep;
    if (n->kind == N_LET && !lower_has_in(used, n->local))
        return;
    for (int i = 0; i < k; i++)
        ir_visit(p, *slot[i], mark_local, used, met);
}

static Node *share_phase(Prog *p, Node *phase, LocalSet *used)
{
    Invariants kept = { 0 };
    Memo total = { 0 }, met = { 0 };
    Share s = {
        .p = p, .phase = phase, .kept = &kept, .total = &total, .often = ir_int(p, 0)
    };
    NodeList out = share_list(&s, &phase, 1);

    phase = lower_phase(p, &out);
    lower_empty_set(p, used);
    drop_unused(p, phase, used, &met);
    return phase;
}

void lower_cse(Kernel *k)
{
    LocalSet used = { 0 };

    for (int i = 0; i < k->n; i++)
        k->phase[i] = share_phase(k->p, k->phase[i], &used);
    lower_done(k, k->p->stage);
}
