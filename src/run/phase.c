/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Runs a kernel: in each phase, lanes take one chunk after the other until all are done. */
#include "run/run_int.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct Job { /* one phase of one call, on the caller's stack */
    const RunPhase *phase;
    void *const *array;
    const int64_t *size;
    char *work; /* stride bytes for each lane */
    int64_t stride, nchunk;
    pthread_mutex_t lock; /* to write the two below */
    int64_t fault;
    _Atomic int64_t failed;                  /* the lowest chunk with a fault; none: nchunk */
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* to be handed out; apart, as everyone writes it */
} Job;

/* To whole cache lines. */
static int64_t round_up(int64_t bytes)
{
    return bytes > 0 ? (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE : 0;
}

static void note_fault(Job *job, int64_t c, int64_t fault)
{
    pthread_mutex_lock(&job->lock);
    if (c < job->failed) {
        job->failed = c;
        job->fault = fault;
    }
    pthread_mutex_unlock(&job->lock);
}

static int64_t run_rows(const Job *job, int64_t c, void *work)
{
    const RunPhase *p = job->phase;
    int64_t begin = run_cut(p, job->nchunk, c), end = run_cut(p, job->nchunk, c + 1);

    return begin < end ? p->fn(job->array, job->size, begin, end, work) : 0;
}

/* Behind the scratch memory of a lane is room for a table of arrays of its own. */
static void run_chunk(Job *job, int64_t c, char *work)
{
    const RunPhase *p = job->phase;
    int64_t fault = p->slices == NULL ? run_rows(job, c, work)
                                      : run_piece_of(p, c, job->array, job->size, work,
                                                     (void **)(work + round_up(p->work_bytes)));

    if (fault != 0)
        note_fault(job, c, fault);
}

/* Chunks go out in ascending order, so once one has failed, all that are lower have been taken. */
static void run_lane(void *arg, int64_t lane)
{
    Job *job = arg;
    char *work = NULL;
    int64_t c;

    while ((c = job->next++) < job->failed) {
        if (work == NULL && job->stride > 0) {
            work = job->work + lane * job->stride;
            memset(work, 0, (size_t)job->phase->work_bytes);
        }
        run_chunk(job, c, work);
    }
}

/* As many as could ever be of use.  Does not look at the start array. */
static int64_t most_lanes(const Pool *pool, const RunPhase *p)
{
    int64_t threads = pool_threads(pool);
    int64_t most = p->slices != NULL ? p->slices->pieces : p->n;

    return p->serial ? 1 : most < threads ? most : threads;
}

static void run_phase(Pool *pool, Job *job)
{
    int64_t lanes = most_lanes(pool, job->phase);

    job->nchunk = run_chunks(job->phase);
    job->failed = job->nchunk;
    job->next = 0;
    if (job->nchunk > 0)
        pool_run(pool, job->nchunk < lanes ? job->nchunk : lanes, run_lane, job);
}

/* The distance of two lanes' scratch memories; -1 when it does not fit. */
static int64_t stride_of(const RunPhase *p)
{
    int64_t table = p->slices != NULL ? round_up(run_slice_bytes(p->slices)) : 0, bytes;

    if (int_add(p->work_bytes > 0 ? p->work_bytes : 0, table + CACHE_LINE, &bytes))
        return -1;
    return table + round_up(p->work_bytes);
}

/* Enough for all lanes of the phase that needs most; true when it does not fit. */
static bool work_of(const Pool *pool, const RunPhase *phase, int nphase, int64_t *most)
{
    *most = 0;
    for (int k = 0; k < nphase; k++) {
        int64_t bytes;

        if (phase[k].n <= 0)
            continue;
        bytes = stride_of(&phase[k]);
        if (bytes < 0 || int_mul(bytes, most_lanes(pool, &phase[k]), &bytes))
            return true;
        *most = bytes > *most ? bytes : *most;
    }
    return false;
}

int64_t run_phases(Pool *pool, const RunPhase *phase, int nphase, void *const *array,
                   const int64_t *size)
{
    Job job = { .array = array, .size = size, .lock = PTHREAD_MUTEX_INITIALIZER };
    int64_t bytes;

    if (work_of(pool, phase, nphase, &bytes))
        return RUN_NOMEM;
    if (bytes > 0 && (job.work = run_alloc(pool_os(pool), bytes)) == NULL)
        return RUN_NOMEM;
    for (int k = 0; k < nphase && job.fault == 0; k++) {
        job.phase = &phase[k];
        job.stride = stride_of(&phase[k]);
        run_phase(pool, &job);
    }
    run_free(pool_os(pool), job.work);
    return job.fault;
}
