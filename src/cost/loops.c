/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the arrangement of loops changes: how often entries are passed, how long the chains of sums
 * are, how wide the rows are that come from a table, and how large the table is then. */
#include "cost/cost.h"

#include <math.h>

#define GIGA 1e9

/* Cycles, about: of a multiply-add until the next can use it; of what an entry takes beside its
 * vectors (index, value, address, loop), less where its loop is foreseen; of a hint; of a single
 * element at an index, beside other work and alone; of a loop that ends where nobody has foreseen
 * it. */
#define CHAIN 4.0
#define ENTRY 5
#define FORESEEN 2
#define HINT 0.5
#define SINGLE 1
#define ALONE 8
#define ROW 16
/* Of an element that is exchanged between rows and lanes: as many shuffles as halvings of a
 * register, of all its lanes at once. */
#define TURN 0.22
/* What of the peak a tile of registers reaches. */
#define REACHED 0.7
/* What of the shorter of the two, instructions and waiting, is not hidden behind the other; what of
 * a row of results it costs to write it in one more piece. */
#define OVERLAP 0.5
#define PIECES 0.4
/* Gathers without hints wait longer; rows with gaps between them cost more pages. */
#define UNASKED 1.15
#define GAPS 1.15

enum { SHORT = 8 }; /* lanes of f32: two registers of so many, or one of more, start in a cycle */

static double each_cycle(const CostLoops *l)
{
    return lanes_of(l->unit, T_f32) > SHORT ? 1 : 2;
}

static double cycle(const Machine *m, const CostLoops *l)
{
    double lanes = lanes_of(l->unit, T_f32), each = each_cycle(l);

    return 2 * lanes * each / (cost_fma(m, T_f32, 1) * GIGA);
}

static double seconds_of_cycle(const Machine *m, int threads)
{
    return 1 / (m->clock[threads > 1 ? COST_ALL : COST_ONE] * GIGA * threads);
}

double cost_turned(const CostShape *s, const Machine *m, int threads)
{
    return TURN * s->turned * seconds_of_cycle(m, threads);
}

double cost_rows(const CostShape *s, const Machine *m, double passes, int threads)
{
    return ROW * s->rows * passes * seconds_of_cycle(m, threads);
}

/* Bytes of a row that are done at a time. */
static double width(const CostGather *g, const CostLoops *l)
{
    double w = l->panel > 0 ? l->panel * g->element : g->row;

    return w < g->row ? w : g->row;
}

/* Bytes of a row that fill a register. */
static double filled(const CostGather *g, const CostLoops *l)
{
    Type type = g->element > ir_type[T_f32].bytes ? T_f64 : T_f32;

    return lanes_of(l->unit, type) * ir_type[type].bytes;
}

static double slices_of(const CostGather *g, const CostLoops *l)
{
    return ceil(width(g, l) / (fmax(l->registers, 1) * filled(g, l)));
}

/* How often the entries of a row are gone through. */
static double passes_of(const CostGather *g, const CostLoops *l)
{
    return ceil(g->row / width(g, l)) * slices_of(g, l);
}

/* Cycles of one entry, all its passes together. */
static double entry_cycles(const CostGather *g, const CostLoops *l)
{
    double w = width(g, l), panels = ceil(g->row / w), slices = slices_of(g, l),
           vectors = w / filled(g, l),
           loads = vectors / each_cycle(l), hints = l->ahead > 0 ? HINT * w / CACHE_LINE : 0;

    if (l->registers == 0) /* what is added to is in memory: a load and a store more each time */
        loads += 2 * vectors;
    return panels * fmax(slices * CHAIN, slices * (ENTRY - FORESEEN * g->fixed) + loads + hints);
}

/* A pass takes the part of a row that registers hold, and the next pass the next, soon after: it is
 * as if the row came at once.  A panel comes after all other rows.  What lies between the panels of
 * a table that is not packed keeps its place in caches and page tables. */
static double gather_of(const CostGather *g, const Machine *m, const CostLoops *l, int threads)
{
    double w = width(g, l), table = l->pack ? g->like * w / g->row : g->like,
           bytes = g->far * g->row * (g->write ? 2 : 1),
           seconds = bytes / cost_gather(m, w, table, threads) / GIGA;

    if (l->ahead == 0 && table > (double)m->cache[1])
        seconds *= UNASKED;
    return w < g->row && !l->pack ? seconds * GAPS : seconds;
}

/* What panels cost beside: indices and values once for each, rows of results in pieces, the copy,
 * and the table as it comes nearer. */
static double panels_cost(const CostShape *s, const CostGather *g, const Machine *m,
                          const CostLoops *l, int threads)
{
    double panels = ceil(g->row / width(g, l)),
           bytes = (panels - 1) * (g->count * 8 + PIECES * s->written);

    if (panels > 1)
        bytes += g->table * (l->pack ? 3 : 1);
    return bytes / cost_stream(m, COST_COPY, fmax(bytes, s->read), threads) / GIGA;
}

/* Seconds of all instructions: rows that are gathered, single elements, loops that begin; and what
 * runs in tiles, where nothing is in the way. */
static double issue_of(const CostShape *s, const Machine *m, const CostLoops *l, int threads)
{
    double cycles = 0, passes = 1, straight = 0, all = 0;

    for (int i = 0; i < s->ngather; i++) {
        const CostGather *g = &s->gather[i];
        bool single = g->row <= g->element;

        if (single)
            cycles += SINGLE * g->count;
        else if (!g->shared)
            cycles += g->count * entry_cycles(g, l);
        if (!single)
            passes = fmax(passes, passes_of(g, l));
    }
    for (int i = 0; i < 2; i++) {
        double rate = cost_fma(m, i == 0 ? T_f32 : T_f64, threads) * GIGA;

        straight += s->straight[i] / rate / REACHED;
        all += (s->flops[i] - s->straight[i]) / rate;
    }
    straight = fmax(straight, s->straight_loads / cost_stream(m, COST_READ, 1, threads) / GIGA);
    cycles += ALONE * s->alone;
    return fmax(cycles * cycle(m, l) / threads + cost_rows(s, m, passes, threads), all) + straight +
           cost_calls(s, m, threads);
}

double cost_loops(const CostShape *s, const Machine *m, const CostLoops *l, int threads)
{
    double issue = issue_of(s, m, l, threads), gather = 0, more = 0,
           in_order = s->read + s->written,
           rate = cost_stream(m, COST_TRIAD, in_order, threads) * GIGA;

    for (int i = 0; i < s->ngather; i++) {
        const CostGather *g = &s->gather[i];

        gather += gather_of(g, m, l, threads);
        more += panels_cost(s, g, m, l, threads);
        in_order -= g->far < g->count ? 0 : g->table;
    }
    gather += fmax(in_order, 0) / rate;
    return fmax(issue, gather) + OVERLAP * fmin(issue, gather) + more;
}
