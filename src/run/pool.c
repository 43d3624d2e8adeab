/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Threads that help.  A call is put on the team's list, works itself, and takes itself off the list
 * again; a thread with nothing to do takes a lane of the first call on the list that has one left.
 * So a call never depends on anybody's help, and waits only for lanes that somebody is in.
 *
 * Fork: a child has none of its parent's threads, and a lock may be held by one that is gone.  So
 * the child leaves the parent's team untouched and makes a new one.  That it is a child it knows by
 * the count of forks, which a handler keeps: the only state outside of a pool. */
#include "run/run_int.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* How often an idle thread looks for work, and yields, before it sleeps: some 0.3 ms, so that it is
 * awake when one call follows the other.  To wake it takes 50 us. */
enum { SPIN = 1000 };

typedef struct Call Call;
struct Call { /* of pool_run, on its stack */
    PoolLane *lane;
    void *arg;
    int64_t lanes, taken;
    atomic_int helpers; /* in one of its lanes; when it falls to 0 off the list, the call ends */
    Call *next;
};

typedef struct Team Team;
struct Team {
    const Os *os;
    bool roomy;     /* there are as many CPUs as threads */
    unsigned forks; /* of the process that made it */
    Team *stale;    /* of the parent: freed with the pool, as another thread may be looking at it */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;  /* the list grew */
    pthread_cond_t done;  /* some call's last helper left */
    Call *calls;          /* oldest first */
    atomic_uint news;     /* changes when the list grows, and at the end */
    atomic_int cpu;       /* where the last call came from */
    int64_t spinning, sleeping, waiting;
    bool over;
    int n, most; /* threads */
    pthread_t thread[];
};

struct Pool {
    const Os *os;
    int threads;
    RunExecutor *executor; /* NULL: the team */
    void *ctx;
    _Atomic(Team *) team; /* NULL until the first call that has work for it */
};

static atomic_uint forks;

static void count_fork(void)
{
    forks++;
}

/* Two threads that both come first register twice; a fork then counts for two. */
static bool watch_forks(void)
{
    static atomic_bool watched;

    if (!watched && pthread_atfork(NULL, NULL, count_fork) != 0)
        return false;
    watched = true;
    return true;
}

/* A thread on the CPU that calls come from takes turns with them, and systems are slow to see that
 * it could be elsewhere. */
static void make_room(const Team *t)
{
    int cpu = t->cpu;

    if (t->roomy && t->os->cpu(t->os) == cpu)
        t->os->leave(t->os, cpu);
}

/* Called with the lock, as is all that takes a Team up to team_new. */
static void rest(Team *t)
{
    unsigned seen = t->news;

    t->spinning++;
    pthread_mutex_unlock(&t->lock);
    make_room(t);
    for (int k = 0; k < SPIN && t->news == seen; k++)
        sched_yield();
    pthread_mutex_lock(&t->lock);
    t->spinning--;
    t->sleeping++;
    while (t->news == seen)
        pthread_cond_wait(&t->wake, &t->lock);
    t->sleeping--;
}

static void help(Team *t, Call *c)
{
    int64_t lane = c->taken++;

    c->helpers++;
    pthread_mutex_unlock(&t->lock);
    make_room(t);
    c->lane(c->arg, lane);
    pthread_mutex_lock(&t->lock);
    if (--c->helpers == 0 && t->waiting > 0) /* from here on *c may be gone */
        pthread_cond_broadcast(&t->done);
}

static void *helper(void *arg)
{
    Team *t = arg;

    pthread_mutex_lock(&t->lock);
    while (!t->over) {
        Call *c = t->calls;

        while (c != NULL && c->taken == c->lanes)
            c = c->next;
        if (c != NULL)
            help(t, c);
        else
            rest(t);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* More threads until there are n.  One that is refused is not asked for again. */
static void grow(Team *t, const Os *os, int64_t n)
{
    while (t->n < n && t->n < t->most) {
        if (os->thread_new(os, &t->thread[t->n], helper, t) == 0)
            t->n++;
        else
            t->most = t->n;
    }
}

static void put_on_list(Team *t, Call *c)
{
    Call **at = &t->calls;

    while (*at != NULL)
        at = &(*at)->next;
    *at = c;
}

static void take_off_list(Team *t, const Call *c)
{
    Call **at = &t->calls;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

static Team *team_new(const Pool *p, unsigned now)
{
    size_t most = (size_t)p->threads - 1;
    Team *t = p->os->alloc(p->os, NULL, sizeof *t + most * sizeof t->thread[0]);

    if (t == NULL)
        return NULL;
    memset(t, 0, sizeof *t);
    t->os = p->os;
    t->roomy = p->threads <= p->os->cpus(p->os);
    t->forks = now;
    t->most = (int)most;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->done, NULL);
    return t;
}

static void team_free(Team *t, const Os *os)
{
    pthread_mutex_lock(&t->lock);
    t->over = true;
    t->news++;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (int k = 0; k < t->n; k++)
        os->thread_join(os, t->thread[k]);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    os->alloc(os, t, 0);
}

/* This process's team; NULL when there is no memory for one. */
static Team *team_of(Pool *p)
{
    unsigned now = forks;
    Team *old = p->team, *t;

    if (old != NULL && old->forks == now)
        return old;
    t = team_new(p, now);
    if (t == NULL)
        return NULL;
    t->stale = old;
    if (atomic_compare_exchange_strong(&p->team, &old, t))
        return t;
    team_free(t, p->os); /* another thread was faster; `old` is its team now */
    return old;
}

static void begin(Team *t, const Os *os, Call *c)
{
    int64_t had, idle;

    t->cpu = os->cpu(os);
    pthread_mutex_lock(&t->lock);
    had = t->n;
    grow(t, os, c->lanes - 1);
    put_on_list(t, c);
    t->news++;
    idle = c->lanes - 1 - t->spinning - (t->n - had); /* lanes that nobody awake will take */
    idle = idle < t->sleeping ? idle : t->sleeping;
    pthread_mutex_unlock(&t->lock);
    for (; idle > 0; idle--)
        pthread_cond_signal(&t->wake);
}

static void end(Team *t, Call *c)
{
    pthread_mutex_lock(&t->lock);
    take_off_list(t, c);
    pthread_mutex_unlock(&t->lock);
    if (c->taken < c->lanes)
        sched_yield(); /* one that was woken may be waiting for this CPU, to leave it */
    for (int k = 0; k < SPIN && c->helpers > 0; k++)
        sched_yield();
    if (c->helpers == 0)
        return;
    pthread_mutex_lock(&t->lock);
    t->waiting++;
    while (c->helpers > 0)
        pthread_cond_wait(&t->done, &t->lock);
    t->waiting--;
    pthread_mutex_unlock(&t->lock);
}

void pool_run(Pool *p, int64_t lanes, PoolLane *lane, void *arg)
{
    Call c = { .lane = lane, .arg = arg, .lanes = lanes, .taken = 1 };
    Team *t = NULL;

    if (lanes > 1 && p->executor != NULL)
        p->executor(p->ctx, lanes, lane, arg);
    else if (lanes > 1)
        t = team_of(p);
    if (t != NULL)
        begin(t, p->os, &c);
    lane(arg, 0); /* after an executor: what it left undone */
    if (t != NULL)
        end(t, &c);
}

static int default_threads(const Os *os, Err *err)
{
    const char *text = os->getenv(os, "WEFT_NUM_THREADS");
    int cpus = os->cpus(os);
    int64_t n;

    if (text == NULL || text[0] == 0)
        return cpus < POOL_MAX_THREADS ? cpus : POOL_MAX_THREADS;
    if (!num_parse_int(text, strlen(text), &n) || n < 1 || n > POOL_MAX_THREADS)
        err_throw(err, ST_ARG,
                  "WEFT_NUM_THREADS is \"%.40s\": set it to a number from 1 to %d, "
                  "or unset it to use all CPUs (%d here)",
                  text, POOL_MAX_THREADS, cpus);
    return (int)n;
}

Pool *pool_of_executor(const Os *os, Err *err, int threads, RunExecutor *executor, void *ctx)
{
    Pool *p;

    if (threads < 1 || threads > POOL_MAX_THREADS)
        err_throw(err, ST_ARG, "a pool of %d threads: from 1 to %d can be had", threads,
                  POOL_MAX_THREADS);
    p = watch_forks() ? os->alloc(os, NULL, sizeof *p) : NULL;
    if (p == NULL)
        err_throw(err, ST_NOMEM, "out of memory: no room for a thread pool");
    memset(p, 0, sizeof *p);
    p->os = os;
    p->threads = threads;
    p->executor = executor;
    p->ctx = ctx;
    return p;
}

Pool *pool_new(const Os *os, Err *err, int threads)
{
    return pool_of_executor(os, err, threads == 0 ? default_threads(os, err) : threads, NULL, NULL);
}

int pool_threads(const Pool *p)
{
    return p->threads;
}

const Os *pool_os(const Pool *p)
{
    return p->os;
}

void pool_free(Pool *p)
{
    Team *t, *stale;

    if (p == NULL)
        return;
    for (t = p->team; t != NULL; t = stale) {
        stale = t->stale;
        if (t->forks == forks)
            team_free(t, p->os);
        else
            p->os->alloc(p->os, t, 0); /* its threads are not here, its locks not ours to touch */
    }
    p->os->alloc(p->os, p, 0);
}
