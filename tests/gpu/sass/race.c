/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Data races, by what happens before what.  Each 4-byte word has a cell with its last write and the
 * reads since then.  Two accesses of different threads, one of which writes and not both of which
 * are atomic, are a race unless
 *
 *     they are in different launches,
 *     or in one block with a barrier of the block between them,
 *     or in one warp with a __syncwarp of both lanes between them.
 *
 * An *era* is a number for the time between two barriers of one block; eras rise through all blocks
 * and launches.  A lane's *clock* counts its synchronisations in the warp; a lane knows up to which
 * clock of another lane all has happened.  As long as whole warps synchronise, one clock serves all
 * lanes.
 *
 * That lanes of a warp execute an instruction together orders nothing: CUDA does not promise it. */
#include "gpu/sass/sass_int.h"

#include <stdlib.h>
#include <string.h>

/* In w_clock beside the clock: an atomic access; and of several ones by other lanes, warps, blocks.
 * */
#define ATOMIC (UINT32_C(1) << 31)
#define LANES_TOO (UINT32_C(1) << 30)
#define WARPS_TOO (UINT32_C(1) << 29)
#define BLOCKS_TOO (UINT32_C(1) << 28)
#define CLOCK (BLOCKS_TOO - 1)
enum { WHO_THREAD = 1023 };

static uint32_t thread_of(uint32_t who)
{
    return who & WHO_THREAD;
}
static uint32_t warp_of(uint32_t who)
{
    return thread_of(who) / LANES;
}
static uint32_t lane_of(uint32_t who)
{
    return who % LANES;
}

static uint32_t who_is(const Warp *w, const Ins *i, uint32_t lane)
{
    return (uint32_t)(i - w->run->ins) << 10 | (w->number * LANES + lane);
}

static uint32_t clock_of(const Warp *w, uint32_t lane)
{
    return w->uniform ? w->clock : w->lane_clock[lane];
}

/* What lane `other` of the warp did at `clock` happened before what `lane` does now. */
static bool before(const Warp *w, uint32_t lane, uint32_t other, uint32_t clock)
{
    return lane == other || (w->uniform ? clock < w->clock : clock <= w->know[lane][other]);
}

/* ---- Synchronisation in a warp */
static void spread(Warp *w) /* one clock becomes 32 */
{
    if (!w->uniform)
        return;
    for (int l = 0; l < LANES; l++) {
        w->lane_clock[l] = w->clock;
        for (int m = 0; m < LANES; m++)
            w->know[l][m] = w->clock - 1;
    }
    w->uniform = false;
}

void sync_lanes(Warp *w, uint32_t mask)
{
    uint32_t all[LANES] = { 0 };

    mask &= w->live;
    if (mask == w->live) {
        uint32_t most = w->clock;

        if (!w->uniform)
            for (int l = 0; l < LANES; l++)
                most = w->lane_clock[l] > most ? w->lane_clock[l] : most;
        w->clock = most + 1;
        w->uniform = true;
        return;
    }
    spread(w);
    for (EACH(l, mask))
        for (int m = 0; m < LANES; m++)
            all[m] = w->know[l][m] > all[m] ? w->know[l][m] : all[m];
    for (EACH(l, mask)) {
        all[l] = w->lane_clock[l];
        w->lane_clock[l]++;
    }
    for (EACH(l, mask))
        memcpy(w->know[l], all, sizeof all);
}

/* ---- What is told */
typedef struct Word {
    Run *run;
    Warp *w;
    const Ins *i;
    const Cells *cells;
    size_t at; /* byte address in its place */
    int word;  /* of the access */
    uint32_t lane;
    enum Access access;
} Word;

static const char *verb(enum Access a)
{
    return a == READS ? "reads" : a == WRITES ? "writes" : "updates";
}

static void name_place(const Word *x, char to[80])
{
    if (x->cells->buffer != NULL)
        snprintf(to, 80, "%s+%zu", x->cells->buffer->name, x->at);
    else
        snprintf(to, 80, "shared memory at %zu", x->at);
}

static unsigned block_of(const Run *r, uint32_t era)
{
    uint32_t low = 0, high = r->blocks;

    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;

        if (r->first_eras[middle] <= era)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void tell_race(const Word *x, uint32_t era, uint32_t who, const char *did,
                      const char *missing)
{
    Run *r = x->run;
    const uint32_t me = who_is(x->w, x->i, x->lane);
    const Ins *other = &r->ins[who >> 10];
    const unsigned block = block_of(r, era);
    char place[80], mine[48], their[48];

    name_place(x, place);
    report(r, (uint64_t)(who >> 10) << 32 | me >> 10,
           "race on %s: thread %s %s it at /*%04llx*/ %s; "
           "thread %s of block %u %s it at /*%04llx*/ %s; %s",
           place, thread_name(r, thread_of(me), mine), verb(x->access),
           (unsigned long long)x->i->address, x->i->text, thread_name(r, thread_of(who), their),
           block, did, (unsigned long long)other->address, other->text, missing);
}

static const char *const no_barrier = "no barrier of the block is between them";
static const char *const no_syncwarp = "they are in one warp, and no __syncwarp is between them";
static const char *const no_order = "blocks of one launch have no order";

/* The first era whose accesses are of interest: shared memory is new in each block. */
static uint32_t oldest(const Word *x)
{
    return x->cells->place == IN_SHARED ? x->run->block_first : x->run->launch_first;
}

/* ---- The last write */
static void check_write(const Word *x, const Cell *c)
{
    const Run *r = x->run;
    const uint32_t clock = c->w_clock & CLOCK;
    const bool atomic = c->w_clock >> 31;
    const char *did = atomic ? "updated" : "wrote";

    if (c->w_era < oldest(x) || (atomic && x->access == UPDATES))
        return;
    if (c->w_era < r->block_first) {
        tell_race(x, c->w_era, c->w_who, did, no_order);
        return;
    }
    if (c->w_clock & BLOCKS_TOO)
        tell_race(x, c->w_era, c->w_who, did, no_order);
    if (c->w_era < r->era)
        return;
    if (warp_of(c->w_who) != x->w->number || c->w_clock & WARPS_TOO)
        tell_race(x, c->w_era, c->w_who, did, no_barrier);
    else if (!before(x->w, x->lane, lane_of(c->w_who), clock) ||
             (c->w_clock & LANES_TOO && x->w->uniform && clock >= x->w->clock))
        tell_race(x, c->w_era, c->w_who, did, no_syncwarp);
}

/* ---- Reads since the last write */
static uint32_t reader_clock(const Run *r, const Cell *c, uint32_t lane)
{
    return c->r_each != 0 ? r->each[c->r_each - 1][lane] : c->r_clock;
}

static void check_reads(const Word *x, const Cell *c)
{
    const Run *r = x->run;

    if (c->o_era >= oldest(x) && c->o_era < r->block_first)
        tell_race(x, c->o_era, c->o_who, "read", no_order);
    if (c->r_era < oldest(x))
        return;
    if (c->r_era < r->block_first) {
        tell_race(x, c->r_era, c->r_who, "read", no_order);
        return;
    }
    if (c->r_era < r->era)
        return;
    if (warp_of(c->r_who) != x->w->number) {
        tell_race(x, c->r_era, c->r_who, "read", no_barrier);
        return;
    }
    if (c->r_other != 0)
        tell_race(x, c->r_era, c->r_other, "read", no_barrier);
    for (EACH(l, c->r_lanes))
        if (!before(x->w, x->lane, l, reader_clock(r, c, l))) {
            tell_race(x, c->r_era, (c->r_who & ~(uint32_t)(LANES - 1)) | l, "read", no_syncwarp);
            return;
        }
}

/* Room for a clock of each reader. */
static void read_apart(Run *r, Cell *c)
{
    if (c->r_each != 0)
        return;
    if (r->eaches == r->each_room) {
        r->each_room = r->each_room == 0 ? 256 : 2 * r->each_room;
        r->each = realloc(r->each, r->each_room * sizeof *r->each);
        if (r->each == NULL)
            abort();
    }
    for (int l = 0; l < LANES; l++)
        r->each[r->eaches][l] = c->r_clock;
    c->r_each = ++r->eaches;
}

static void first_reader(const Word *x, Cell *c, uint32_t lanes, uint32_t me)
{
    c->r_era = x->run->era;
    c->r_who = me;
    c->r_lanes = lanes;
    c->r_clock = clock_of(x->w, x->lane);
    c->r_other = 0;
    c->r_each = 0;
}

static void record_read(const Word *x, Cell *c, uint32_t lanes)
{
    Run *r = x->run;
    Warp *w = x->w;
    const uint32_t me = who_is(w, x->i, x->lane);

    if (c->r_era != r->era) {
        if (c->r_era >= oldest(x) && c->r_era < r->block_first) {
            c->o_era = c->r_era;
            c->o_who = c->r_who;
        }
        first_reader(x, c, lanes, me);
        if (!w->uniform)
            read_apart(r, c);
    } else if (warp_of(c->r_who) != w->number) {
        const uint32_t other = c->r_who;

        first_reader(x, c, lanes, me);
        c->r_other = other;
    } else if (w->uniform && c->r_each == 0) {
        /* earlier readers have synchronised with these, which stand for them */
        c->r_lanes = c->r_clock < w->clock ? lanes : c->r_lanes | lanes;
        c->r_clock = w->clock;
        c->r_who = me;
    } else {
        read_apart(r, c);
        c->r_lanes |= lanes;
        c->r_who = me;
    }
    if (c->r_each != 0)
        for (EACH(l, lanes))
            r->each[c->r_each - 1][l] = clock_of(w, l);
}

static void record_write(const Word *x, Cell *c, uint32_t lanes)
{
    const Run *r = x->run;
    const uint32_t me = who_is(x->w, x->i, x->lane);
    uint32_t clock = clock_of(x->w, x->lane) & CLOCK;

    if (x->access == UPDATES) {
        clock |= ATOMIC | ((lanes & (lanes - 1)) != 0 ? LANES_TOO : 0);
        if (c->w_clock & ATOMIC && c->w_era >= oldest(x)) {
            clock |= c->w_clock & BLOCKS_TOO;
            if (c->w_era < r->block_first)
                clock |= BLOCKS_TOO;
            else if (c->w_era == r->era)
                clock |= (c->w_clock & (WARPS_TOO | LANES_TOO)) |
                         (warp_of(c->w_who) != x->w->number ? WARPS_TOO : 0) |
                         (thread_of(c->w_who) != thread_of(me) ? LANES_TOO : 0);
        }
    }
    c->w_era = r->era;
    c->w_who = me;
    c->w_clock = clock;
    c->r_era = c->r_other = c->r_lanes = c->r_each = 0;
    c->o_era = 0;
}

static void tell_unwritten(const Word *x)
{
    char place[80], mine[48];

    name_place(x, place);
    report(x->run, UINT64_C(1) << 63 | (uint64_t)(x->i - x->run->ins),
           "nobody wrote %s before thread %s updates it at /*%04llx*/ %s", place,
           thread_name(x->run, x->w->number * LANES + x->lane, mine),
           (unsigned long long)x->i->address, x->i->text);
}

/* ---- One access of one word, or of one byte of it */
static void access_cell(const Word *x, Cell *c, uint32_t lanes)
{
    const Run *r = x->run;

    if (x->cells->fresh && x->access != WRITES &&
        (x->cells->place == IN_SHARED ? c->w_era < r->block_first : c->w_era == 0)) {
        if (x->access == READS)
            note_undefined(x->w, x->i, x->cells, x->at, x->word, lanes);
        else
            tell_unwritten(x);
    }
    if (!r->look) {
        c->w_era = x->access == READS ? c->w_era : r->era;
        return;
    }
    if (x->access == READS) {
        Word y = *x;

        if (c->w_era == r->era || (c->w_era >= oldest(x) && c->w_era < r->block_first) ||
            c->w_clock & BLOCKS_TOO) {
            for (EACH(l, lanes)) {
                y.lane = l;
                check_write(&y, c);
            }
        }
        record_read(x, c, lanes);
        return;
    }
    if ((lanes & (lanes - 1)) != 0 && x->access == WRITES)
        tell_race(x, r->era, who_is(x->w, x->i, (uint32_t)__builtin_ctz(lanes & (lanes - 1))),
                  "wrote", no_syncwarp);
    check_write(x, c);
    check_reads(x, c);
    record_write(x, c, lanes);
}

/* Bytes of a word have cells of their own from the first access of less than a word. */
static Cell *split(Run *r, Cell *c)
{
    if (c->split == 0) {
        if (r->splits == r->split_room) {
            r->split_room = r->split_room == 0 ? 256 : 2 * r->split_room;
            r->split = realloc(r->split, r->split_room * sizeof *r->split);
            if (r->split == NULL)
                abort();
        }
        for (int k = 0; k < 4; k++)
            r->split[r->splits][k] = *c;
        c->split = ++r->splits;
    }
    return r->split[c->split - 1];
}

/* `lanes` access `bytes` bytes at byte `at` of the place; at is a multiple of bytes. */
void access_word(Warp *w, const Ins *i, const Cells *cells, size_t at, int bytes, uint32_t lanes,
                 enum Access access)
{
    Word x = { w->run, w, i, cells, at, 0, (uint32_t)__builtin_ctz(lanes), access };

    if (i->atomic && access == READS) /* of a loop of compare and swap */
        x.access = UPDATES;
    for (size_t word = at / 4; word * 4 < at + (size_t)bytes; word++) {
        Cell *c = &cells->cell[word];

        x.at = word * 4 > at ? word * 4 : at;
        x.word = (int)(word - at / 4);
        if (bytes >= 4 && c->split == 0) {
            access_cell(&x, c, lanes);
            continue;
        }
        c = split(w->run, c);
        for (size_t b = 0; b < 4; b++)
            if (bytes >= 4 || (word * 4 + b >= at && word * 4 + b < at + (size_t)bytes))
                access_cell(&x, &c[b], lanes);
    }
}
