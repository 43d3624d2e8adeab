/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * merge PHASE PHASE ... [by N | each N] [balance AXIS]: makes one parallel phase, and so one
 * launch, of several that do not depend on each other.  Each of N iterations runs its share of each
 * phase.  Where all phases run over the same rows, some of them through lists of row numbers, a
 * share is a range of rows with about as many entries as every other share; otherwise it is a share
 * of the phase's own iterations.  With `each`, a share is N rows, and a run tells how many shares
 * there are: a kernel for a device keeps it busy with any graph. */
#include "sched/depend.h"

#include <string.h>

enum { LIMIT_SHARES = 1 << 12 };

typedef struct Merge {
    StepCall *call;
    int phase[LIMIT_STEP_WORDS], n;
    int64_t shares, block;       /* block: rows of a share; 0: as many shares as that */
    Expr *rows;                  /* how many, of all of them; NULL: shares are of iterations */
    Axis *list[LIMIT_STEP_WORDS]; /* by phase: whose coordinates its rows are; or NULL */
    const Axis *by;              /* whose entries rows weigh; NULL: they weigh the same */
    Expr *from, *to;             /* of a share */
} Merge;

static int find_phase(StepCall *c, const char *label)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->phase[i]->label, label) == 0)
            return i;
    step_refuse(c, "no phase is called %s", label);
}

typedef struct Needs {
    const Node *own, *other;
    const Buf *buf;
} Needs;

static void see(Expr *e, void *ctx)
{
    Needs *n = ctx;

    if (e->op == OP_cell && loop_writes(n->other, e->buf) && !loop_writes(n->own, e->buf))
        n->buf = e->buf;
}

/* An array that phase a only reads and phase b writes; or NULL. */
static const Buf *read_of(Prog *p, const Node *a, const Node *b)
{
    Needs n = { a, b, NULL };
    Memo met = { 0 };

    loop_visit(p, a, see, &n, &met);
    return n.buf;
}

typedef struct Both {
    const Node *other;
    const Buf *buf;
} Both;

static void see_written(Expr *e, void *ctx)
{
    Both *n = ctx;

    if (e->op == OP_cell && loop_writes(n->other, e->buf))
        n->buf = e->buf;
}

/* An array that keeps two phases in their order: one writes it, and the other mentions it. */
static const Buf *between(Prog *p, const Node *a, const Node *b)
{
    Both x = { b, NULL }, y = { a, NULL };
    Memo m = { 0 }, n = { 0 };

    loop_visit(p, a, see_written, &x, &m);
    loop_visit(p, b, see_written, &y, &n);
    return x.buf != NULL ? x.buf : y.buf;
}

static void check_phase(Merge *m, const Node *n)
{
    if (n->kind != N_FOR || n->how != FOR_PARALLEL)
        step_refuse(m->call, "%s is no parallel loop", n->label);
    if (loop_builds(n) != NULL || step_has(n, N_BUILD))
        step_refuse(m->call, "%s builds an axis", n->label);
    if (n->lo->op != OP_int || n->lo->i != 0)
        step_refuse(m->call, "%s does not begin at 0", n->label);
}

/* Phase k goes to where the first one is: nothing between, that is not merged too, may need it, nor
 * it them. */
static void check_between(Merge *m, int k)
{
    StepCall *c = m->call;
    const Node *n = c->phase[m->phase[k]];

    for (int i = m->phase[0]; i < m->phase[k]; i++) {
        const Buf *b = between(c->p, n, c->phase[i]);
        bool merged = false;

        for (int j = 0; j < k; j++)
            merged = merged || m->phase[j] == i;
        if (loop_builds(c->phase[i]) != NULL)
            step_refuse(c, "an axis is built between %s and %s", c->phase[m->phase[0]]->label,
                        n->label);
        if (b != NULL && !merged)
            step_refuse(c, "%s, which is between, and %s share %s", c->phase[i]->label, n->label,
                        b->name);
    }
}

typedef struct Stores { /* of a phase */
    Merge *m;
    const Node *phase;
    Axis *list;
    Expr *rows;
    int n;
    bool good;
} Stores;

/* What an index is among the rows of a phase: its variable, or the row number on its list. */
static bool is_row(Stores *s, Expr *e, Expr *extent, Axis **list)
{
    Prog *p = s->m->call->p;
    Expr *row = loop_use(p, s->phase->local);
    Axis *a = e->op == OP_cell ? e->buf->of : NULL;

    *list = a;
    if (e == row)
        return s->phase->hi == extent;
    return a != NULL && e->buf->of_k == 0 && e->arg[0] == row && a->parent == NULL &&
           a->ncoord == 1 && e->buf->nfull == 0 && e->buf->kind != B_CONST && loop_is_ordered(a) &&
           s->phase->hi == step_positions(p, a);
}

static void see_element(Stores *s, Expr *cell)
{
    bool found = false;

    for (int d = 0; d < cell->nargs && !found; d++) {
        Expr *extent = step_extent(s->m->call->p, cell->buf, d);
        Axis *list;

        found = extent != NULL && is_row(s, cell->arg[d], extent, &list) &&
                (s->rows == NULL || (s->rows == extent && (s->n == 0 || s->list == list)));
        if (found) {
            s->rows = extent;
            s->list = list;
        }
    }
    s->n++;
    s->good = s->good && found;
}

static void see_stores(Stores *s, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell)
        see_element(s, n->out);
    for (int i = 0; i < n->nat; i++)
        see_element(s, n->at[i].out);
    for (int i = 0; i < n->nbody; i++)
        see_stores(s, n->body[i]);
}

/* Whether all phases go over rows of one kind. */
static void find_rows(Merge *m)
{
    for (int k = 0; k < m->n; k++) {
        Stores s = { .m = m, .phase = m->call->phase[m->phase[k]], .rows = m->rows, .good = true };

        see_stores(&s, s.phase);
        m->rows = s.good && s.n > 0 ? s.rows : NULL;
        m->list[k] = s.list;
        if (m->rows == NULL)
            return;
    }
}

/* Whether rows of this number may weigh what they have entries on the axis. */
static bool weighs(Merge *m, const Axis *a)
{
    return a->extent == X_SEG && a->parent != NULL && a->parent->parent == NULL &&
           step_positions(m->call->p, a->parent) == m->rows;
}

/* The axis that was named; else the one whose entries a phase runs over, or, where phases have
 * lists of rows, one that has entries for them. */
static void find_balance(Merge *m, const char *name)
{
    StepCall *c = m->call;

    if (name != NULL) {
        m->by = ir_find_axis(c->p, name);
        if (m->by == NULL || m->rows == NULL || !weighs(m, m->by))
            step_refuse(c, "%s has no entries for each row that all of them go over", name);
        return;
    }
    for (int k = 0; k < m->n && m->rows != NULL && m->by == NULL; k++) {
        const Buf *b = loop_balance(c->phase[m->phase[k]]);

        if (b != NULL && weighs(m, b->of))
            m->by = b->of;
        for (int i = 0; i < c->p->naxis && m->list[k] != NULL && m->by == NULL; i++)
            if (weighs(m, c->p->axis[i]))
                m->by = c->p->axis[i];
    }
}

/* The first place of a phase that is in a share of rows that begins at x. */
static Expr *place_of(Merge *m, int k, const Node *phase, Expr *x)
{
    Prog *p = m->call->p;
    Expr *find;

    if (m->list[k] == NULL)
        return x;
    find = loop_find(p, m->list[k], ir_int(p, 0), phase->hi, &x, 1);
    return loop_found_by(p, find, FIND_FIRST);
}

static Node *shared(Merge *m, int k, Expr *q)
{
    Prog *p = m->call->p;
    const Node *phase = m->call->phase[m->phase[k]];
    Node n = *phase;

    n.how = FOR_SERIAL;
    n.scheduled = false;
    n.over = NULL;
    if (m->rows != NULL) {
        n.lo = place_of(m, k, phase, m->from);
        n.hi = place_of(m, k, phase, m->to);
    } else {
        n.lo = dep_share(p, NULL, q, m->shares, phase->hi);
        n.hi = dep_share(p, NULL, tree_plus(p, q, ir_int(p, 1)), m->shares, phase->hi);
    }
    return loop_node(p, &n);
}

/* The rows of a share, which all phases in it ask for. */
static Expr *put_end(Merge *m, NodeList *out, const char *name, Expr *x)
{
    Prog *p = m->call->p;
    Node let = { .kind = N_LET, .local = loop_local(p, name, T_i64, 1) };

    let.label = m->call->phase[m->phase[0]]->label;
    let.value = m->block > 0 ? dep_block(p, x, m->block, m->rows)
                             : dep_share(p, m->by, x, m->shares, m->rows);
    tree_append(p, out, loop_node(p, &let));
    return loop_use(p, let.local);
}

static Node *merged(Merge *m)
{
    StepCall *c = m->call;
    Local *q = loop_local(c->p, "q", T_i64, 1);
    Expr *share = loop_use(c->p, q);
    NodeList body = { 0 };
    Node n = { .kind = N_FOR, .local = q, .how = FOR_PARALLEL };

    if (m->rows != NULL) {
        m->from = put_end(m, &body, "from", share);
        m->to = put_end(m, &body, "to", tree_plus(c->p, share, ir_int(c->p, 1)));
    }
    for (int k = 0; k < m->n; k++) {
        n.scheduled = n.scheduled || c->phase[m->phase[k]]->scheduled;
        tree_append(c->p, &body, shared(m, k, share));
    }
    n.label = step_join(c->p, c->phase[m->phase[0]]->label, ".merged");
    n.lo = ir_int(c->p, 0);
    n.hi = ir_int(c->p, m->block > 0 ? m->block : m->shares);
    if (m->block > 0)
        n.hi = ir_op2(c->p, OP_div, tree_plus(c->p, m->rows, ir_int(c->p, m->block - 1)), n.hi);
    return tree_with_body(c->p, &n, &body);
}

static void put(Merge *m, Node *all)
{
    StepCall *c = m->call;
    NodeList to = { 0 };

    for (int i = 0; i < c->n; i++) {
        bool goes = false;

        for (int k = 1; k < m->n; k++)
            goes = goes || m->phase[k] == i;
        if (!goes)
            tree_append(c->p, &to, i == m->phase[0] ? all : c->phase[i]);
    }
    c->phase = to.node;
    c->n = to.n;
}

/* What one phase writes, the others do not read, and each element is met in one share. */
static void check_race(Merge *m, Node *all)
{
    StepCall *c = m->call;
    Spot root = { m->phase[0], all, NULL, 0 };
    const char *why;

    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->n; k++) {
            const Node *x = c->phase[m->phase[i]], *y = c->phase[m->phase[k]];
            const Buf *b = read_of(c->p, x, y);

            if (b != NULL)
                step_refuse(c, "%s reads %s, which %s writes", x->label, b->name, y->label);
        }
    why = dep_race(c->p, all, &root, false);
    if (why != NULL)
        step_refuse(c, "%s", why);
}

/* The value after a word at the end of the step, which is then taken off; or NULL. */
static const char *take_word(StepCall *c, int *n, const char *word)
{
    if (*n < 3 || strcmp(c->line->word[*n - 2], word) != 0)
        return NULL;
    *n -= 2;
    return c->line->word[*n + 1];
}

static void read_phases(Merge *m, int n)
{
    StepCall *c = m->call;

    for (int i = 0; i < n; i++) {
        m->phase[m->n] = find_phase(c, c->line->word[i]);
        check_phase(m, c->phase[m->phase[m->n]]);
        if (m->n > 0 && m->phase[m->n] <= m->phase[m->n - 1])
            step_refuse(c, "%s does not come after %s", c->line->word[i], c->line->word[i - 1]);
        m->n++;
    }
}

void step_merge(StepCall *c)
{
    Merge m = { .call = c, .shares = c->p->policy.shares };
    int n = c->line->nword;
    const char *balance = take_word(c, &n, "balance");
    Node *all;

    if (take_word(c, &n, "by") != NULL)
        m.shares = step_int(c, n + 1, 1, LIMIT_SHARES);
    else if (take_word(c, &n, "each") != NULL)
        m.block = step_int(c, n + 1, 1, LIMIT_SHARES);
    if (m.block > 0 && balance != NULL)
        step_refuse(c, "shares of %lld rows each have no balance; leave it out, or write by N",
                    (long long)m.block);
    if (n < 2)
        step_refuse(c, "write it as: %s %s", c->line->step->name, c->line->step->args);
    read_phases(&m, n);
    for (int k = 1; k < m.n; k++)
        check_between(&m, k);
    find_rows(&m);
    if (m.block > 0 && m.rows == NULL)
        step_refuse(c,
                    "not all of them go over the same rows, of which each share would have %lld; "
                    "write by N",
                    (long long)m.block);
    find_balance(&m, balance);
    all = merged(&m);
    check_race(&m, all);
    put(&m, all);
}
