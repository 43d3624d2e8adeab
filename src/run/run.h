/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Runs a kernel: phases are cut into chunks, which a pool of threads or the caller's own executor
 * processes.  Last in the flow; it knows functions, ranges and start arrays, and not what they
 * compute. */
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

typedef struct RunPhase RunPhase;
struct RunPhase {
    RunPhaseFn *fn;
    int64_t n;           /* the range is 0..n; for n <= 0 fn is not called */
    int64_t rounds;      /* the range is over all rows this many times; 0 is 1 */
    const void *balance; /* start array of n / rounds + 1 entries, never falling; or NULL */
    int balance_bytes;   /* of one entry: 4 or 8 */
    const int64_t *part; /* the chunk of each iteration, from 0 on, never falling; or NULL */
    const struct RunSlices *slices; /* its pieces, where parts are divided; or NULL */
    bool serial;         /* one chunk, whatever the work */
    int64_t grain;       /* least work that is worth a chunk: some 10 us; 0: RUN_GRAIN */
    int64_t work_bytes;  /* of scratch memory for each thread */
};

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
 * have it, in ascending order, and the row of each.  The structure is right: starts rise from 0 to
 * entries, coordinates are in 0..n, or negative: such entries are left out.  Room: n + 1, and for
 * entries and rows as many as are not left out.  False: out of memory. */
typedef struct RunTranspose {
    const void *start, *coord; /* start NULL: rows of `width` entries, or, where that is 0, none; */
    int64_t rows, width;       /* then out_row is not written */
    int64_t n, entries;
    void *out_start, *out_entry, *out_row;
    int start_bytes, coord_bytes, out_bytes; /* of an element, 4 or 8; of all three outputs */
} RunTranspose;
bool run_transpose(Pool *, const RunTranspose *);

/* built.c: a phase that builds the structure of an axis, run to count and then to fill.  A thread
 * collects the keys of a row in its scratch memory: as bits, room 0, or, when they are of too many,
 * as a list of so many keys.  When a list was too short, the phase is run with a longer one. */
int64_t run_set_room(int64_t keys, int64_t had); /* `had`: was too short; 0: to begin with */
int64_t run_set_bytes(int64_t keys, int64_t room); /* -1 when that does not fit 64 bits */
/* Counts of n rows, each one place further on, to the starts of the rows and the total. */
void run_sum_starts(int64_t *start, int64_t n);

/* parts.c: the parts of long rows: those with more than `limit` entries.  Each row is cut into as
 * few parts of at most so many as will do, of about equal length; the entries of parts are numbered
 * one after the other.  All this depends on the starts alone. */
enum { RUN_PART = 4096, RUN_MAX_PARTS = 64 };
typedef struct RunParts {
    int64_t limit, rows, parts;
    int64_t *row;      /* by long row: its number */
    int64_t *first;    /* by long row, and one more: its first part */
    int64_t *part_row; /* by part: the number of its row, and */
    int64_t *shift;    /* what to add to the number of an entry to have that in the row's axis */
    int64_t *start;    /* by part, and one more: its first entry */
} RunParts;
/* limit, rows and parts, from n rows with starts of so many bytes, where `part` entries (0:
 * RUN_PART) are worth a part; then all the rest, for which there is room. */
void run_count_parts(const void *start, int bytes, int64_t n, int64_t part, RunParts *out);
void run_fill_parts(const void *start, int bytes, int64_t n, RunParts *out);

/* 0..n in pieces that each have `each` elements to add to: how many, and where piece q begins.
 * There are enough of `part` or more for threads; and, as far as RUN_MAX_PIECES and memory allow,
 * so many that no more than RUN_CHAIN, or a quarter of `part`, are added up one after the other. */
enum {
    RUN_ROOM = 1 << 16,      /* elements of all pieces that are there for threads, */
    RUN_FINE_ROOM = 1 << 20, /* and of those that are there for short chains */
    RUN_LEAST_PIECES = 16,   /* for threads, however many elements each has */
    RUN_MAX_PIECES = 256,
    RUN_CHAIN = 256
};
int64_t run_count_pieces(int64_t n, int64_t part, int64_t each);
int64_t run_piece(int64_t n, int64_t pieces, int64_t q);
/* The rows, of n, that the entries from..to are in: from row up to end. */
void run_rows_of(const void *start, int bytes, int64_t n, int64_t from, int64_t to,
                 int64_t *out_row, int64_t *out_end);

/* Rows in parts of about as many entries each.  One thread takes a part, so their number is a power
 * of two, as numbers of threads mostly are, up to RUN_ROW_PARTS; slices.c serves more threads.  An
 * entry names a row of another array, and a part has an array of those from the first to the last
 * that its entries name: there are as many parts as have RUN_ROW_ENTRIES entries for each row of
 * those arrays, and for each row of their own; but two, where there is work for them. */
enum { RUN_ROW_PARTS = 16, RUN_ROW_ENTRIES = 3 };
typedef struct RunRows {
    int64_t rows, named;  /* rows that have entries, and rows that these may name */
    const int64_t *start; /* by row, and one more: its first entry */
    const void *name;     /* by entry: what it names; less than 0: nothing */
    int bytes;            /* of a name */
    int64_t *low, *high;  /* by row: the first name, and the last one and 1 */
    int64_t parts;
    int64_t *part;        /* by row: its part */
    int64_t *first_row;   /* by part, and one more */
    int64_t *first, *end; /* by part: what its entries name */
} RunRows;
/* Fills low and high, and finds the number of parts, where `part` entries (0: as above) are worth a
 * part; then all the rest, for which there is room; there may be fewer parts then. */
void run_count_rows(RunRows *, int64_t part);
void run_fill_rows(RunRows *);

/* slices.c: the parts of a scatter divided among more threads, by the rows that entries name.  A
 * slice is whole rows, or consecutive entries of one row, below positions at[] of all levels. */
enum { RUN_LEVELS = 4, RUN_SLICE_WORK = 32 }; /* the work of a call of the phase's function */
typedef struct RunSlice {
    int64_t at[RUN_LEVELS]; /* from the row at the top to the one that the entries are below */
    int64_t rows;           /* the slice is this number of rows from at[0]; 0: a part of one */
    int64_t lo, hi;         /* the entries */
} RunSlice;
typedef struct RunScatter {
    int levels;                   /* start arrays from the rows at the top down to entries */
    const void *start[RUN_LEVELS];
    int start_bytes[RUN_LEVELS];
    const void *name;             /* by entry: the row that it adds to; less than 0: nothing */
    int name_bytes;
    int64_t named, parts;
    const int64_t *first_row;     /* by part, and one more */
} RunScatter;
typedef struct RunSlices {
    int64_t pieces, *first; /* by piece, and one more: its first slice */
    RunSlice *slice;
    int levels, narray;     /* of the arrays of the phase; these are the start arrays: */
    int start_at[RUN_LEVELS], start_bytes[RUN_LEVELS];
} RunSlices;
/* `classes` pieces of each part.  Throws. */
RunSlices *run_slices(Arena *, const RunScatter *, int64_t classes);

/* memory.c: blocks that start at a cache line; copies and comparisons by all threads. */
void *run_alloc(const Os *, int64_t bytes); /* NULL when there is no memory, or bytes < 0 */
void run_free(const Os *, void *);          /* NULL is allowed */
void run_copy(Pool *, void *to, const void *from, int64_t bytes);
/* to[i] = from[index[i]] for i in 0..n; elements of 4 or 8 bytes each. */
typedef struct RunGather {
    void *to;
    const void *from, *index;
    int64_t n;
    int bytes, index_bytes;
} RunGather;
void run_gather(Pool *, const RunGather *);
bool run_is_same(Pool *, const void *, const void *, int64_t bytes);

#endif
