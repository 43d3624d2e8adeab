/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Which thread runs what, when lanes and warps are threads, and whether two of them have met
 * between their accesses to one element.  The interpreter runs threads one after the other; each
 * element remembers the last access of each kind, by whom, and how many barriers these had
 * passed.  So a race is found in whatever order they ran. */
#include "interp/threads.h"

#include "interp/interp_int.h"

#include <stdio.h>

enum { WARPS = 4, LANES = 32 }; /* where the phase does not tell how many */

static int lanes_in(const Node *n)
{
    int lanes = n->kind == N_FOR && n->lanes > 1 ? n->lanes : 0;

    for (int i = 0; i < n->nbody && lanes == 0; i++)
        lanes = lanes_in(n->body[i]);
    return lanes;
}

void threads_phase(Threads *t, const Node *phase)
{
    LoopLevel level = loop_level(phase);
    bool warp = phase->level == LEVEL_WARP && phase->width > 0;

    t->on = true;
    t->alone = level == LEVEL_THREAD;
    t->nwarp = level != LEVEL_BLOCK ? 1 : phase->width > 0 ? phase->width : WARPS;
    t->nlane = warp ? phase->width : lanes_in(phase);
    t->nlane = t->nlane > 0 ? t->nlane : LANES;
    t->now = (Thread){ t->nwarp > 1 ? SEVERAL : 0, t->alone ? 0 : SEVERAL };
    t->met++;
}

/* How many registers a vector loop takes when fewer iterations are left than fill so many. */
static int fewer(int regs)
{
    int r = 1;

    while (2 * r < regs)
        r *= 2;
    return r;
}

/* The lane that has iteration i of n. */
static int lane_of(const Node *loop, int64_t n, int64_t i)
{
    int64_t at = 0;

    for (int r = loop->packed ? loop->regs : 1; r > 1; r = fewer(r)) {
        int64_t chunk = (int64_t)loop->lanes * r, whole = (n - at) / chunk * chunk;

        if (i < at + whole)
            return (int)((i - at) % chunk / r);
        at += whole;
    }
    return (int)((i - at) % loop->lanes);
}

void threads_deal(Threads *t, const Node *loop, int64_t n, int64_t i)
{
    int all = t->nwarp * t->nlane;

    if (loop->lanes > 1) {
        t->now.lane = lane_of(loop, n, i);
    } else if (loop->level == LEVEL_WARP) {
        t->now.warp = (int)(i % t->nwarp);
    } else { /* the threads of the block, be it one warp */
        t->now.warp = (int)(i % all / t->nlane);
        t->now.lane = (int)(i % all % t->nlane);
    }
}

Thread threads_first(Threads *t)
{
    Thread was = t->now;

    t->now.warp = was.warp == SEVERAL ? 0 : was.warp;
    t->now.lane = was.lane == SEVERAL ? 0 : was.lane;
    return was;
}

void threads_meet(Threads *t, bool block)
{
    if (block)
        t->met++;
    else if (t->now.warp != SEVERAL)
        t->lanes_met[t->now.warp]++;
    else
        for (int w = 0; w < t->nwarp; w++)
            t->lanes_met[w]++;
}

static bool is_one(Thread a, Thread b)
{
    return a.warp == b.warp && a.lane == b.lane && a.warp != SEVERAL && a.lane != SEVERAL;
}

static bool is_race(const Threads *t, const Touched *a)
{
    bool lanes = a->by.warp == t->now.warp && a->by.warp != SEVERAL;

    return a->what != NULL && a->met == t->met && !is_one(a->by, t->now) &&
           (!lanes || a->lanes_met == t->lanes_met[a->by.warp]);
}

static Touched touch(const Threads *t, const char *what)
{
    int w = t->now.warp;

    return (Touched){ what, t->met, w == SEVERAL ? 0 : t->lanes_met[w], t->now };
}

static void put_thread(char *out, size_t n, Thread a)
{
    char lane[24] = "all lanes";

    if (a.lane != SEVERAL)
        snprintf(lane, sizeof lane, "lane %d", a.lane);
    if (a.warp == SEVERAL)
        snprintf(out, n, "%s of all warps", lane);
    else
        snprintf(out, n, "%s of warp %d", lane, a.warp);
}

static _Noreturn void fail(const Threads *t, Run *x, const char *did, const Touched *a,
                           const char *did_before, const PlaceOf *at)
{
    char now[64], before[64];

    put_thread(now, sizeof now, t->now);
    put_thread(before, sizeof before, a->by);
    interp_fail(x,
                "race: %s in %s %s element %lld of %s, which %s in %s %s, with no barrier "
                "between",
                now, x->what, did, (long long)at->element, at->array, before, a->what, did_before);
}

void threads_read(Threads *t, Run *x, Marks *m, const PlaceOf *at)
{
    if (t->alone)
        return;
    if (is_race(t, &m->stored))
        fail(t, x, "reads", &m->stored, "stores to", at);
    if (m->stored.what != NULL && m->stored.met > t->met) /* by a warp that ran before this one */
        interp_fail(x, "race: element %lld of %s is read in %s and stored to in %s, behind a later "
                    "barrier, by another warp", (long long)at->element, at->array, x->what,
                    m->stored.what);
    if (!is_race(t, &m->read)) {
        m->read = touch(t, x->what);
        return;
    }
    if (t->now.warp != m->read.by.warp) /* no race, but whoever stores has to meet both */
        m->read.by.warp = SEVERAL;
    m->read.by.lane = SEVERAL;
}

void threads_store(Threads *t, Run *x, Marks *m, bool atomic, const PlaceOf *at)
{
    if (t->alone)
        return;
    if (is_race(t, &m->stored) && !(atomic && m->atomic))
        fail(t, x, "stores to", &m->stored, "stores to", at);
    if (is_race(t, &m->read))
        fail(t, x, "stores to", &m->read, "reads", at);
    m->stored = touch(t, x->what);
    m->atomic = atomic;
}
