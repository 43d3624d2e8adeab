/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Running a kernel: phases cut into chunks, handed out to a pool of threads or to the caller's own
 * executor.  Last in the flow; knows functions, ranges and start arrays, never what is computed. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include "base/base.h"

/* pool.c: who works.  A pool starts a thread when a call first has work for it, and keeps it.  The
 * thread that calls works too, so a pool of n has n - 1 threads of its own; they sleep when there
 * is nothing to do, and take no signals.  When the system refuses a thread, the pool goes on with
 * those it has, be it none.
 *
 * A pool may be used by many threads at a time, and from inside a phase: idle threads help the call
 * that came first, each caller works on its own call, and none waits for another call to end.
 * After a fork the child's first call makes new threads, whatever the parent's were doing. */
typedef struct Pool Pool;

enum { POOL_MAX_THREADS = 1024 };

/* Throws.  `threads` 0: as WEFT_NUM_THREADS says, else as many as there are CPUs that this process
 * may run on.  An empty variable is as good as none. */
Pool *pool_new(const Os *, Err *, int threads);

/* The caller's threads instead of ours: an executor runs task(arg, i) for each i in 0..n, in any
 * order, at the same time or not, and returns when all have ended.  `threads` is the largest n. */
typedef void RunExecutor(void *ctx, int64_t n, void (*task)(void *arg, int64_t i), void *arg);
Pool *pool_of_executor(const Os *, Err *, int threads, RunExecutor *, void *ctx);

int pool_threads(const Pool *);
void pool_free(Pool *); /* when no call is going on; NULL is allowed */

/* split.c: what is one piece of work.  Phases run one after the other.  A phase is a pure function
 * of a range: the ranges of one phase write different elements, so that they run in any order.
 *
 * 0..n is cut by work: where there is a start array, a row's entries plus RUN_ROW_WORK; else 1 a
 * row.  The number of chunks is work / grain, rounded up, but at most RUN_MAX_CHUNKS; the cuts are
 * the rows nearest to equal shares.  So they depend on the structure and on the grain alone, and
 *   - a row of more than two shares is a chunk of its own,
 *   - a chunk of several rows has at most three shares; where no row has more work than w, at most
 *     one share and w,
 *   - work up to one grain is one chunk: it runs on the calling thread and wakes nobody. */
typedef int64_t RunPhaseFn(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                           void *work); /* 0, or the fault that ended it */

typedef struct RunPhase {
    RunPhaseFn *fn;
    int64_t n;           /* the range is 0..n; for n <= 0 fn is not called */
    const void *balance; /* start array of n + 1 entries, never falling; or NULL */
    int balance_bytes;   /* of one entry: 4 or 8 */
    bool serial;         /* one chunk, whatever the work */
    int64_t grain;       /* least work that is worth a chunk: some 10 us; 0: RUN_GRAIN */
    int64_t work_bytes;  /* of scratch memory for each thread */
} RunPhase;

enum { RUN_ROW_WORK = 2, RUN_GRAIN = 4096, RUN_MAX_CHUNKS = 4096 };

int64_t run_chunks(const RunPhase *);
/* Chunk c of nchunk is run_cut(p, nchunk, c) .. run_cut(p, nchunk, c + 1); it may be empty. */
int64_t run_cut(const RunPhase *, int64_t nchunk, int64_t c);

/* phase.c: the run.  A start array is looked at when its phase begins: an earlier one may write it.
 *
 * Each thread's scratch memory starts at a cache line and is all zero when the thread takes its
 * first chunk of a phase; after that a chunk finds what the thread's last one left.  A function
 * that puts the zeros back may rely on them; no other content may reach its result.
 *
 * Returns 0 when all is done; RUN_NOMEM when there was no scratch memory: nothing has run; else the
 * fault of the lowest chunk that had one: the same for any number of threads.  No later phase runs
 * then, and of this one the chunks after that may or may not have run. */
#define RUN_NOMEM INT64_MIN
int64_t run_phases(Pool *, const RunPhase *, int nphase, void *const *array, const int64_t *size);

/* plan.c: the transpose of a structure: for each of the n values of a coordinate, the entries that
 * have it, in ascending order, and the row of each.  Room: n + 1, start[rows], start[rows]. */
void run_transpose(const int64_t *start, int64_t rows, const int64_t *coord, int64_t n,
                   int64_t *out_start, int64_t *out_entry, int64_t *out_row);

/* memory.c: blocks that start at a cache line. */
enum { RUN_LINE = 64 };
void *run_alloc(const Os *, int64_t bytes); /* NULL when there is no memory, or bytes < 0 */
void run_free(const Os *, void *);          /* NULL is allowed */

#endif
