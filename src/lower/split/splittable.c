/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Decides which sums of a phase can be split, and says why not.  Everything that the phase does
 * must be a sum, maximum or minimum that can be combined from those of the chunks, to the same
 * bits where no operation rounds. */
#include "lower/split/split_int.h"
#include "lower/storage/storage_int.h"

bool split_is_row_loop(const Cut *c, const Node *n)
{
    return n->kind == N_FOR && c->start != NULL && n->lo == c->lo && n->hi == c->hi;
}

/* The entries that hang on the phase's rows, which are all that there are: the first loop over
 * some. */
static void find_entries(Cut *c, const Node *n)
{
    Expr *row = loop_use(c->p, c->row);

    for (int i = 0; i < n->nbody && c->start == NULL; i++) {
        const Node *b = n->body[i];
        Expr *lo = b->kind == N_FOR ? b->lo : NULL;

        if (lo != NULL && lo->op == OP_cell && lo->buf->of != NULL && lo->buf->of_k == -1 &&
            lo->buf->of->extent == X_SEG && lo->arg[0] == row &&
            c->phase->hi == loop_positions(c->p, lo->buf->of->parent)) {
            c->start = lo->buf;
            c->lo = lo;
            c->hi = tree_cell(c->p, lo->buf, tree_add(c->p, row, ir_int(c->p, 1)));
        }
        find_entries(c, b);
    }
}

void split_find(Cut *c)
{
    find_entries(c, c->phase);
}

/* Whether the loops go over all of a dimension, or it is short: so that to begin it for each part
 * costs no more than what is added to it. */
static bool is_covered(Cut *c, Expr *index, Expr *extent)
{
    const Node *loop = index->op == OP_local ? tree_binder(c->phase, index->local) : NULL;

    if (extent->op == OP_int && extent->i <= c->p->policy.part_short)
        return true;
    return loop != NULL && loop->kind == N_FOR && loop->lo->op == OP_int && loop->lo->i == 0 &&
           loop->hi == extent;
}

/* Whether an element is its row's own, and no other than its row's iteration can tell it. */
static bool is_of_row(Cut *c, Expr *out, int *row_dim)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(out->buf, dim);
    Memo memo = { 0 };

    *row_dim = -1;
    for (int d = 0; d < n; d++) {
        Expr *extent = lower_dim_extent(c->p, out->buf, dim[d]);

        if (*row_dim < 0 && out->arg[d] == loop_use(c->p, c->row) && extent == c->phase->hi)
            *row_dim = d;
        else if (tree_uses(c->p, out->arg[d], c->row, &memo) ||
                 !is_covered(c, out->arg[d], extent))
            return false;
    }
    return *row_dim >= 0;
}

/* Whether the local is the phase's, or that of a loop over entries of its row. */
static bool is_own_index(Cut *c, Expr *index)
{
    const Local *l = lower_index_owner(index);
    const Node *loop = l != NULL ? tree_binder(c->phase, l) : NULL;

    return loop != NULL && ((loop == c->phase && index->op == OP_local) ||
                            lower_entries(c->p, c->phase, loop) != NULL);
}

/* Whether an iteration has the element for itself, so that rows can be cut around it. */
static bool is_own(Cut *c, Expr *out)
{
    bool own = loop_is_work(out->buf);

    for (int d = 0; d < out->nargs && !own; d++)
        own = is_own_index(c, out->arg[d]);
    return own && c->start == NULL;
}

static bool is_small(Cut *c, Expr *out)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(out->buf, dim);
    int64_t all = 1;
    bool covered = true;

    for (int d = 0; d < n; d++) {
        Expr *e = lower_dim_extent(c->p, out->buf, dim[d]);

        covered = covered && (out->arg[d]->op == OP_local || out->arg[d]->op == OP_cell) &&
                  is_covered(c, out->arg[d], e);
        if (e->op != OP_int || int_mul(all, e->i, &all) ||
            all > (covered ? c->p->policy.part_covered : c->p->policy.part))
            return false;
    }
    return true;
}

static const char *say(Cut *c, const char *fmt, const Buf *b)
{
    Text t = { .arena = c->p->arena };

    text_f(&t, fmt, b->name);
    return t.s;
}

/* Why this store cannot be cut; NULL: it can. */
static const char *refuse_store(Cut *c, const Node *n, int *row_dim)
{
    const Buf *b = n->out->op == OP_cell ? n->out->buf : NULL;

    *row_dim = -1;
    if (b == NULL)
        return "it uses registers";
    if (n->op == A_SET)
        return say(c, "iterations may write the same element of %s", b);
    if (n->nat > 0)
        return say(c, "the first winner of %s counts, so they are met in order", b);
    if (n->op == A_ADD && !ir_type[b->type].floats)
        return say(c, "%s is a sum of integers, and whether it overflows depends on the order", b);
    if (b->nfull + 4 > IR_MAX_RANK)
        return say(c, "%s has too many dimensions to be cut", b);
    if (c->is_small && !is_small(c, n->out))
        return say(c, "iterations add to the same elements of %s, which may be many", b);
    if (!c->is_small && !is_of_row(c, n->out, row_dim))
        return say(c, "rows of %s are not one iteration's", b);
    return NULL;
}

static void note_own(Cut *c, const Buf *b)
{
    int i = 0;

    while (i < c->nown && c->own[i] != b)
        i++;
    if (i == IR_MAX_RANK)
        c->no = "it writes too many arrays to be cut";
    else if (!loop_is_work(b))
        c->own[i] = b, c->nown += i == c->nown;
}

static void note_store(Cut *c, const Node *n)
{
    int row_dim, i = 0;

    if (c->is_small && n->out->op == OP_cell && is_own(c, n->out)) {
        note_own(c, n->out->buf);
        return;
    }
    c->no = c->no != NULL ? c->no : refuse_store(c, n, &row_dim);
    if (c->no != NULL)
        return;
    while (i < c->n && c->whole[i] != n->out->buf)
        i++;
    if (i == IR_MAX_RANK || (i < c->n && c->row_dim[i] != row_dim)) {
        c->no = "it writes too many arrays to be cut";
        return;
    }
    c->whole[i] = n->out->buf;
    c->row_dim[i] = row_dim;
    c->n = i == c->n ? i + 1 : c->n;
}

/* Looks at all stores; each is to be inside of one loop over the entries that are cut. */
static void note_stores(Cut *c, const Node *n, bool inside)
{
    bool row = split_is_row_loop(c, n);

    if (n->kind > N_CHECK)
        c->no = "it builds an axis";
    else if (n->kind == N_STORE && c->start != NULL && !inside)
        c->no = "not all that it adds is of the entries of a row";
    else if (row && inside)
        c->no = "a row is gone over inside of itself";
    else if (n->kind == N_STORE)
        note_store(c, n);
    for (int i = 0; i < n->nbody && c->no == NULL; i++)
        note_stores(c, n->body[i], inside || row);
}

static void see_read(Expr *e, void *ctx)
{
    Cut *c = ctx;

    for (int i = 0; e->op == OP_cell && i < c->n + c->nown; i++)
        if (e->buf == (i < c->n ? c->whole[i] : c->own[i - c->n]))
            c->no = say(c, "%s is read where it is added to", e->buf);
}

static void note_reads(Cut *c, const Node *n, Memo *met)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL)
            ir_visit(c->p, part[i], see_read, c, met);
    for (int i = 0; n->kind == N_STORE && i < n->out->nargs; i++)
        ir_visit(c->p, n->out->arg[i], see_read, c, met);
    for (int i = 0; i < n->nbody; i++)
        note_reads(c, n->body[i], met);
}

/* No array is both: a part's share of it would be added to elements that others write. */
static void note_both(Cut *c)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->nown; k++)
            if (c->whole[i] == c->own[k])
                c->no = say(c, "rows of %s are not one iteration's", c->own[k]);
}

bool split_reads(Cut *c)
{
    Memo met = { 0 };

    note_reads(c, c->phase, &met);
    return c->no != NULL;
}

bool split_can_cut(Cut *c)
{
    c->no = NULL;
    c->n = c->nown = 0;
    note_stores(c, c->phase, false);
    if (c->no == NULL)
        note_both(c);
    if (c->no == NULL)
        split_reads(c);
    return c->no == NULL && c->n > 0;
}
