/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Seconds from a shape and a machine: each resource by itself, the limit that they set, and a
 * prediction. */
#include "cost/cost.h"

#include <math.h>

#define GIGA 1e9

/* Gathered bytes by the rate at the table's size, or at that of the table it is like. */
static double gather_seconds(const CostShape *s, const Machine *m, int threads, bool like)
{
    double sum = 0;

    for (int i = 0; i < s->ngather; i++) {
        const CostGather *g = &s->gather[i];
        double bytes = g->count * g->row * (g->write ? 2 : 1);

        sum += bytes / cost_gather(m, g->row, like ? g->like : g->table, threads) / GIGA;
    }
    return sum;
}

/* Bytes that are read and written in order: all but the tables that are gathered. */
static double in_order(const CostShape *s)
{
    double bytes = s->read + s->written;

    for (int i = 0; i < s->ngather; i++)
        bytes -= s->gather[i].table;
    return fmax(bytes, 0);
}

/* An instruction that is no flop takes the place of a multiply-add, which counts as two. */
double cost_calls(const CostShape *s, const Machine *m, int threads)
{
    static const Type type[2] = { T_f32, T_f64 };
    double sum = 0;

    for (int t = 0; t < 2; t++) {
        sum += 2 * s->other[t] / cost_fma(m, type[t], threads);
        for (int c = 0; c < COST_CALLS; c++)
            sum += s->calls[c][t] / cost_call(m, (CostCall)c, type[t], threads);
    }
    return sum / GIGA;
}

static Cost on_threads(const CostShape *s, const Machine *m, int threads)
{
    double bytes = s->read + s->written, rate = cost_stream(m, COST_TRIAD, bytes, threads) * GIGA;
    Cost c = { .compute = (s->flops[0] / cost_fma(m, T_f32, threads) +
                           s->flops[1] / cost_fma(m, T_f64, threads)) /
                              GIGA +
                          cost_calls(s, m, threads),
               .stream = bytes / rate,
               .gather = gather_seconds(s, m, threads, false) };

    /* a copy that hits passes one byte through each port for two that it counts */
    c.ports = fmax(s->loads / cost_stream(m, COST_READ, 1, threads),
                   s->stores / cost_stream(m, COST_COPY, 1, threads) * 2) /
              GIGA;
    c.limit = fmax(c.compute, fmax(c.stream, c.gather));
    c.seconds = gather_seconds(s, m, threads, true) + in_order(s) / rate;
    /* a loop of unforeseen length ends with a wrong guess, after which nothing is in flight */
    c.seconds = fmax(c.seconds, fmax(c.compute + cost_turned(s, m, threads), c.ports)) +
                cost_rows(s, m, 1, threads);
    return c;
}

Cost cost_estimate(const CostShape *s, const Machine *m, int threads)
{
    Cost c = on_threads(s, m, threads);

    if (threads > 1)
        c.seconds = fmax(c.seconds, s->chunk * on_threads(s, m, 1).seconds);
    return c;
}
