/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Cuts the range of a phase into chunks of about equal work.  Each cut is found by a search in the
 * start array when a thread needs it.  Nothing is stored, and a cut does not depend on the thread
 * that asks. */
#include "run/run.h"

static int64_t rounds_of(const RunPhase *p)
{
    return p->rounds > 1 ? p->rounds : 1;
}

/* Of one round: each is cut in the same way. */
static int64_t rows_of(const RunPhase *p)
{
    return p->n / rounds_of(p);
}

static int64_t start_at(const RunPhase *p, int64_t i)
{
    return p->balance_bytes == 4 ? ((const int32_t *)p->balance)[i]
                                 : ((const int64_t *)p->balance)[i];
}

/* The work of rows 0..i, which grows with every row.  Unsigned: entries may come near 2^63. */
static uint64_t work_before(const RunPhase *p, int64_t i)
{
    if (p->balance == NULL)
        return (uint64_t)i;
    return (uint64_t)start_at(p, i) - (uint64_t)start_at(p, 0) + RUN_ROW_WORK * (uint64_t)i;
}

/* The first row i with work_before(i) >= goal. */
static int64_t find_row(const RunPhase *p, uint64_t goal)
{
    int64_t lo = 0, hi = rows_of(p);

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (work_before(p, mid) < goal)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int64_t chunks_of_round(const RunPhase *p)
{
    uint64_t grain = p->grain > 0 ? (uint64_t)p->grain : RUN_GRAIN,
             most = (uint64_t)(RUN_MAX_CHUNKS / rounds_of(p)),
             work = work_before(p, rows_of(p));

    most = most > 0 ? most : 1;
    if (work / grain >= most)
        return (int64_t)most;
    return (int64_t)(work / grain + (work % grain != 0));
}

int64_t run_chunks(const RunPhase *p)
{
    if (p->n <= 0)
        return 0;
    if (p->slices != NULL)
        return p->slices->pieces;
    if (p->serial || p->n == 1)
        return 1;
    if (p->part != NULL)
        return p->part[p->n - 1] + 1;
    return chunks_of_round(p) * rounds_of(p);
}

static int64_t cut_of_round(const RunPhase *p, int64_t nchunk, int64_t c)
{
    uint64_t work, share, rest, goal;
    int64_t i;

    if (c <= 0 || c >= nchunk)
        return c <= 0 ? 0 : rows_of(p);
    work = work_before(p, rows_of(p));
    share = work / (uint64_t)nchunk;
    rest = work % (uint64_t)nchunk; /* the first so many chunks get one more */
    goal = share * (uint64_t)c + ((uint64_t)c < rest ? (uint64_t)c : rest);
    if (p->balance == NULL)
        return (int64_t)goal;
    i = find_row(p, goal);
    if (i > 0 && goal - work_before(p, i - 1) <= work_before(p, i) - goal)
        i--; /* the nearer end of the row that the goal falls into */
    return i;
}

/* The first iteration of a part. */
static int64_t find_part(const RunPhase *p, int64_t part)
{
    int64_t lo = 0, hi = p->n;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (p->part[mid] < part)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int64_t run_cut(const RunPhase *p, int64_t nchunk, int64_t c)
{
    int64_t each = nchunk / rounds_of(p);

    if (p->part != NULL && nchunk > 1)
        return find_part(p, c);
    if (rounds_of(p) == 1 || each == 0 || c >= nchunk)
        return c >= nchunk && nchunk > 0 ? p->n : cut_of_round(p, nchunk, c);
    return c / each * rows_of(p) + cut_of_round(p, each, c % each);
}
