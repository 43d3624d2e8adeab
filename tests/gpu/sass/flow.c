/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Lanes that go different ways.  The lanes that run together are w->act at w->pc; others wait in
 * groups.  BSSY notes in a register of barriers which lanes shall meet again, BSYNC waits for them.
 * Each lane has registers of its own, so that lanes that have diverged elsewhere do not disturb
 * each other. */
#include "gpu/sass/ops.h"

#include <stdlib.h>
#include <string.h>

void park(Warp *w, uint32_t pc, uint32_t mask, enum State state, int index)
{
    if (mask == 0)
        return;
    for (int g = 0; g < w->groups; g++)
        if (w->group[g].pc == pc && w->group[g].state == state && w->group[g].index == index) {
            w->group[g].mask |= mask;
            return;
        }
    w->group[w->groups++] = (Group){ pc, mask, (uint8_t)state, (uint8_t)index };
}

static void remove_group(Warp *w, int g)
{
    w->group[g] = w->group[--w->groups];
}

/* The next lanes to run: those at the lowest address, so that lanes meet again as early as they
 * can; with a seed, any.  False: all lanes wait. */
bool pick(Warp *w)
{
    uint32_t ready = 0, chosen = UINT32_MAX;
    int nth;

    w->limit = UINT32_MAX;
    for (int g = 0; g < w->groups; g++)
        ready += w->group[g].state == READY;
    w->act = 0;
    if (ready == 0)
        return false;
    nth = w->run->random == 0 ? -1 : (int)(draw(w->run) % ready);
    for (int g = 0; g < w->groups; g++) {
        if (w->group[g].state != READY)
            continue;
        if (nth < 0 ? w->group[g].pc < chosen : nth-- == 0)
            chosen = w->group[g].pc;
        if (nth == -1 && w->run->random != 0)
            break;
    }
    for (int g = w->groups - 1; g >= 0; g--)
        if (w->group[g].state == READY && w->group[g].pc == chosen) {
            w->act |= w->group[g].mask;
            remove_group(w, g);
        }
    w->pc = chosen;
    if (w->run->random == 0)
        for (int g = 0; g < w->groups; g++)
            if (w->group[g].state == READY && w->group[g].pc < w->limit)
                w->limit = w->group[g].pc;
    return true;
}

/* Lanes that go on at another address than the rest. */
static void split_off(Warp *w, uint32_t mask, uint32_t to)
{
    const uint32_t stay = w->act & ~mask;

    if (mask == 0) {
        w->pc++;
        return;
    }
    if (stay == 0) {
        w->pc = to;
        return;
    }
    w->run->diverged++;
    park(w, w->pc + 1, stay, READY, 0);
    park(w, to, mask, READY, 0);
    pick(w);
}

/* ---- Waiting */

/* The lanes for which a lane of a waiting group waits, if all have come; else 0. */
static uint32_t complete(const Warp *w, const Group *x, uint32_t lane)
{
    const uint32_t *mask = x->state == AT_BSYNC ? w->b[x->index] : w->wait;
    const uint32_t want = (mask[lane] & w->live) | 1u << lane;
    uint32_t come = 0;

    for (int g = 0; g < w->groups; g++)
        if (w->group[g].state == x->state && w->group[g].index == x->index)
            come |= w->group[g].mask;
    return (want & ~come) == 0 ? want : 0;
}

static void wake(Warp *w, uint8_t state, uint8_t index, uint32_t mask)
{
    if (state == AT_WARPSYNC)
        sync_lanes(w, mask);
    for (int g = w->groups - 1; g >= 0; g--) {
        const uint32_t pc = w->group[g].pc, awake = w->group[g].mask & mask;

        if (w->group[g].state != state || w->group[g].index != index)
            continue;
        w->group[g].mask &= ~mask;
        if (w->group[g].mask == 0)
            remove_group(w, g);
        park(w, pc, awake, READY, 0);
    }
}

/* Lanes at BSYNC or WARPSYNC go on when all for which they wait have come. */
static void release(Warp *w)
{
    for (int g = 0; g < w->groups; g++) {
        const Group x = w->group[g];
        uint32_t all = 0;

        if (x.state != AT_BSYNC && x.state != AT_WARPSYNC)
            continue;
        for (EACH(l, x.mask))
            all = all != 0 ? all : complete(w, &x, l);
        if (all != 0) {
            wake(w, x.state, x.index, all);
            g = -1; /* groups have changed: from the first again */
        }
    }
}

/* Each distinct mask in `want` is a meeting of its own: lanes wait in a group for it. */
static void wait_for(Warp *w, uint32_t mask, enum State state, int index)
{
    const uint32_t *want = state == AT_BSYNC ? w->b[index] : w->wait, next = w->pc + 1;
    uint32_t others = w->act & ~mask, left = mask;

    if (others == 0 && w->act != 0) { /* the usual case: all are here */
        bool here = true;
        const uint32_t first = want[__builtin_ctz(mask)];

        for (EACH(l, mask))
            here &= want[l] == first;
        if (here && (first & w->live & ~mask) == 0) {
            if (state == AT_WARPSYNC)
                sync_lanes(w, first);
            w->pc++;
            return;
        }
    }
    while (left != 0) {
        const uint32_t first = want[__builtin_ctz(left)];
        uint32_t same = 0;

        for (EACH(l, left))
            same |= (uint32_t)(want[l] == first) << l;
        /* groups of one place merge, also of different masks: release looks at the lanes' own */
        park(w, next, same, state, index);
        left &= ~same;
    }
    park(w, next, others, READY, 0);
    release(w);
    pick(w);
}

void leave(Warp *w, uint32_t mask)
{
    const uint32_t rest = w->act & ~mask;

    w->live &= ~mask;
    w->act = rest;
    w->pc++;
    release(w);
    if (rest == 0) {
        pick(w);
    } else if (w->groups > 0) {
        park(w, w->pc, rest, READY, 0);
        pick(w);
    }
}

/* What NOP is: lanes that wait for others by a mask of their own are ordered with these alone. */
void syncwarp_passed(Warp *w, uint32_t mask)
{
    uint32_t left = mask & w->pending;

    if (left == 0) {
        sync_lanes(w, mask);
        return;
    }
    while (left != 0) {
        const uint32_t want = w->sync[__builtin_ctz(left)];
        uint32_t same = 0;

        for (EACH(l, left))
            same |= (uint32_t)(w->sync[l] == want) << l;
        sync_lanes(w, want & mask);
        left &= ~same;
    }
    w->pending &= ~mask;
}

static void warpsync(Warp *w, const Ins *i, uint32_t mask)
{
    const uint32_t *want = raw(w, &i->arg[0]);

    for (EACH(l, mask)) {
        w->wait[l] = i->arg[0].inv ? ~want[l] : want[l];
        w->sync[l] = w->wait[l];
        if (!(w->wait[l] >> l & 1)) {
            fail(w, i, l, "the lane is not in the mask %#x that it waits for", w->wait[l]);
            return;
        }
    }
    w->pending |= mask;
    wait_for(w, mask, AT_WARPSYNC, 0);
}

/* Lanes stop waiting, and being waited for, at a barrier of convergence. */
static void break_off(Warp *w, int n, uint32_t mask)
{
    for (EACH(l, w->b[n][__builtin_ctz(mask)]))
        w->b[n][l] &= ~mask;
    for (EACH(l, mask))
        w->b[n][l] = 0;
    w->pc++;
    release(w);
    if (w->groups > 0) {
        park(w, w->pc, w->act, READY, 0);
        pick(w);
    }
}

static int barrier_number(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *a = &i->arg[i->args > 1 && is_pred(&i->arg[0]) ? 1 : 0];

    if (a->kind == ARG_NAME && a->name[0] == 'B' && a->name[1] >= '0' && a->name[1] <= '9')
        return atoi(a->name + 1);
    fail(w, i, (uint32_t)__builtin_ctz(mask), "the barrier of convergence is not known");
    return 0;
}

static void block_barrier(Warp *w, const Ins *i, uint32_t mask)
{
    Run *r = w->run;
    const uint32_t others = w->act & ~mask;

    if (i->arg[0].kind != ARG_VALUE || i->arg[0].value != 0 || has(i, M_ARV) ||
        (has(i, M_SYNC) && i->args > 1)) {
        fail(w, i, (uint32_t)__builtin_ctz(mask),
             "of barriers only number 0, of the whole block, is known");
        return;
    }
    if (has(i, M_RED)) {
        r->reduced[0] += __builtin_popcount(pred(w, &i->arg[i->args - 1]) & mask);
        r->reduced[1] += __builtin_popcount(mask);
        r->reduced[2] = has(i, M_POPC) ? M_POPC : has(i, M_AND) ? M_AND : M_OR;
    }
    park(w, w->pc + 1, mask, AT_BARRIER, 0);
    park(w, w->pc + 1, others, READY, 0);
    pick(w);
}

void synchronise(Warp *w, const Ins *i, uint32_t mask)
{
    const char *name = i->op->name;

    if (mask == 0) {
        w->pc++;
    } else if (strcmp(name, "BSSY") == 0) {
        const int n = barrier_number(w, i, mask) & (BARRIERS - 1);

        for (EACH(l, mask))
            w->b[n][l] = mask;
        w->pc++;
    } else if (strcmp(name, "BSYNC") == 0) {
        wait_for(w, mask, AT_BSYNC, barrier_number(w, i, mask) & (BARRIERS - 1));
    } else if (strcmp(name, "BREAK") == 0) {
        break_off(w, barrier_number(w, i, mask) & (BARRIERS - 1), mask);
    } else if (strcmp(name, "WARPSYNC") == 0) {
        warpsync(w, i, mask);
    } else {
        block_barrier(w, i, mask);
    }
}

/* When all lanes of a block wait, they go on; a new era begins.  False: they wait in different
 * places. */
bool release_barrier(Run *r)
{
    uint32_t pc = UINT32_MAX;
    const int result = r->reduced[2] == M_POPC  ? r->reduced[0]
                       : r->reduced[2] == M_AND ? r->reduced[0] == r->reduced[1]
                                                : r->reduced[0] != 0;

    for (int k = 0; k < r->warps; k++) {
        Warp *w = &r->warp[k];

        for (int g = 0; g < w->groups; g++) {
            if (w->group[g].state != AT_BARRIER) {
                fail(w, &r->ins[w->group[g].pc - 1], (uint32_t)__builtin_ctz(w->group[g].mask),
                     "the lane waits for lanes that never come");
                return false;
            }
            if (pc != UINT32_MAX && w->group[g].pc != pc) {
                fail(w, &r->ins[w->group[g].pc - 1], (uint32_t)__builtin_ctz(w->group[g].mask),
                     "threads of one block wait at different barriers; others are at /*%04llx*/",
                     (unsigned long long)r->ins[pc - 1].address);
                return false;
            }
            pc = w->group[g].pc;
            w->group[g].state = READY;
        }
        w->voted = result;
    }
    r->reduced[0] = r->reduced[1] = 0;
    r->era++;
    return true;
}

/* ---- Branches */
static uint32_t lanes_to(const Warp *w, const Ins *i, uint32_t mask)
{
    if (i->args > 1 && is_pred(&i->arg[0]))
        return mask & pred(w, &i->arg[0]);
    return mask;
}

/* BRA.CONV goes on when all lanes of the mask are here; BRA.DIV when one is missing. */
static uint32_t if_together(Warp *w, const Ins *i, uint32_t mask)
{
    const uint32_t v = raw(w, &i->arg[0])[0], want = (i->arg[0].inv ? ~v : v) & w->live;
    const bool here = (want & ~w->act) == 0;

    if (has(i, M_DIV))
        return here ? 0 : mask;
    if (!here)
        return 0;
    w->pending &= ~mask;
    if (i->conv >= 0 || i->conv_mask != ALL_LANES) {
        for (EACH(l, mask))
            w->sync[l] = i->conv >= 0 ? w->r[i->conv][l] : i->conv_mask;
        w->pending |= mask;
    }
    return mask;
}

/* Branches whose address is in a register go one address at a time. */
static void branch_far(Warp *w, const Ins *i, uint32_t mask)
{
    const Arg *a = &i->arg[0], *off = &i->arg[i->args - 1];
    const Run *r = w->run;
    const Function *f = &r->sass->function[i->function];
    const bool relative = strcmp(i->op->name, "BRX") == 0; /* to the next instruction */
    uint32_t left = mask;

    park(w, w->pc + 1, w->act & ~mask, READY, 0);
    for (EACH(l, left)) {
        const uint64_t v = raw(w, a)[l] | (relative ? 0 : (uint64_t)raw(w, a)[LANES + l] << 32);
        const int64_t to = (relative ? (int64_t)i->address + 16 + (int32_t)v : (int64_t)v) +
                           (off != a ? off->value : 0);
        const uint64_t p = (uint64_t)(to >> 4) + (has(i, M_ABS) ? 0 : f->first);

        if (to < 0 || p >= r->sass->count) {
            fail(w, i, l, "there is no code at %#llx", (unsigned long long)to);
            return;
        }
        park(w, (uint32_t)p, 1u << l, READY, 0);
    }
    pick(w);
}

void branch(Warp *w, const Ins *i, uint32_t mask)
{
    if (mask == 0) {
        w->pc++;
        return;
    }
    if (i->target <= w->pc)
        w->quantum--;
    if (strcmp(i->op->name, "BRX") == 0 || strcmp(i->op->name, "RET") == 0) {
        branch_far(w, i, mask);
        return;
    }
    if (has(i, M_ABS))
        set_constants(w->run, w->run->ins[i->target].function);
    split_off(w, has(i, M_CONV) || has(i, M_DIV) ? if_together(w, i, mask) : lanes_to(w, i, mask),
              i->target);
}
