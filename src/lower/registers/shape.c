/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Chooses the shape of a register block: how many rows, and how many vectors of each.  The model
 * is one step of the loops inside on a core that starts two multiply-adds and two loads per
 * cycle and has a result after four cycles.  Of equal shapes it takes the one with fewer loads. */
#include "lower/registers/registers_int.h"

enum { LIMIT_TRIPS = 3360 }; /* longer loops count as this, which all rows and vectors divide */

typedef struct Step { /* of the loops inside, of one row */
    Prog *p;
    const VectorUnit *unit;
    Local *row, *lane;
    int sums;
    int vector[2], scalar[2]; /* operands: the same for all rows; each row's own */
} Step;

static void count_operand(Expr *e, void *ctx)
{
    Step *s = ctx;
    bool own;

    if (e->op != OP_cell || !ir_is_float(e))
        return;
    own = tree_mentions(s->p, e, s->row);
    if (tree_mentions(s->p, e, s->lane))
        s->vector[own]++;
    else
        s->scalar[own]++;
}

/* The sums of the innermost loops. */
static void count_step(Step *s, Node *const *n, int count, Memo *met)
{
    for (int i = 0; i < count; i++) {
        if (n[i]->kind == N_STORE && n[i]->out->op == OP_local) {
            s->sums++;
            ir_visit(s->p, n[i]->value, count_operand, s, met);
        }
        count_step(s, n[i]->body, n[i]->nbody, met);
    }
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

/* Loads of so many rows and vectors; a vector is worth more, as it comes from further away. */
static int loads(const Step *s, int rows, int vectors, int weight)
{
    return weight * vectors * (s->vector[0] + rows * s->vector[1]) + s->scalar[0] +
           rows * s->scalar[1];
}

/* In parts of a cycle, of which there are `ports`. */
static int cycles(const Step *s, int rows, int vectors)
{
    int work = max(rows * vectors * s->sums, loads(s, rows, vectors, 1));

    return max(s->unit->latency * s->unit->ports, work);
}

static bool fits(const Step *s, int rows, int vectors, int registers)
{
    return rows * vectors * s->sums + vectors * s->vector[0] + (s->scalar[1] > 0) <= registers;
}

/* What `count` rows or vectors make, in pieces of n and what is left: of vectors halves. */
typedef struct Cost {
    int64_t cycles, loads;
} Cost;

static Cost cost_of(const Step *s, int64_t rows, int64_t vectors, int r, int c)
{
    Cost sum = { 0, 0 };

    for (; c > 0; vectors %= c, c /= 2) {
        int rest = (int)(rows % r);

        sum.cycles += vectors / c * (rows / r * cycles(s, r, c));
        sum.loads += vectors / c * (rows / r * loads(s, r, c, 2));
        if (rest > 0) {
            sum.cycles += vectors / c * cycles(s, rest, c);
            sum.loads += vectors / c * loads(s, rest, c, 2);
        }
    }
    return sum;
}

static int64_t trips_of(const Node *n)
{
    bool known = n->lo->op == OP_int && n->hi->op == OP_int && n->hi->i > n->lo->i &&
                 n->hi->i - n->lo->i < LIMIT_TRIPS;

    return known ? n->hi->i - n->lo->i : LIMIT_TRIPS;
}

static bool is_better(Cost a, Cost b)
{
    return a.cycles < b.cycles || (a.cycles == b.cycles && a.loads < b.loads);
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Vectors that so many columns take. */
static int64_t vectors_in(const Prog *p, const Node *vector, LowerTile how)
{
    int64_t n = (how.columns + vector->lanes - 1) / vector->lanes;

    return least_of(n > 0 ? n : 1, p->policy.block_registers);
}

LowerShape lower_shape(Prog *p, const Node *vector, const Node *rows, LowerTile how)
{
    Step s = { .p = p, .row = rows->local, .lane = vector->local, .unit = how.unit };
    Memo met = { 0 };
    int64_t n = trips_of(rows), m = (trips_of(vector) + vector->lanes - 1) / vector->lanes;
    LowerShape best = { 1, vector->regs };
    Cost least = { INT64_MAX, INT64_MAX };

    count_step(&s, rows->body, rows->nbody, &met);
    if (s.sums == 0 || s.vector[0] == 0)
        return best;
    if (trips_of(vector) == LIMIT_TRIPS)
        m = LIMIT_TRIPS;
    if (how.rows > 0)
        return (LowerShape){ (int)least_of(how.rows, n),
                             (int)least_of(vectors_in(p, vector, how), m) };
    for (int r = 1; r <= LIMIT_ROWS && r <= n; r++)
        for (int c = 1; c <= p->policy.block_registers && c <= m; c++) {
            Cost cost = cost_of(&s, n, m, r, c);

            if (fits(&s, r, c, how.unit->registers) && is_better(cost, least) &&
                (n < LIMIT_TRIPS || (r & (r - 1)) == 0)) {
                least = cost;
                best = (LowerShape){ r, c };
            }
        }
    return best;
}
