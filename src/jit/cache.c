/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The cache as a whole, for the command that shows, verifies and clears it. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* One call: what is asked, and room for the answer. */
typedef struct Query {
    void (*ask)(Job *, int dir, struct Query *);
    Arena *to; /* of the list */
    JitEntry *entry;
    int n, cap;
    const char *key, *fault;
} Query;

static void answer(Job *j, void *to)
{
    Query *q = to;

    dir_open_cache(j);
    if (j->dir[DIR_CACHE].fd >= 0)
        q->ask(j, j->dir[DIR_CACHE].fd, q);
}

static void run(Jit *jit, Err *err, Query *q)
{
    JitReport report = { 0 };
    Job j;

    job_enter(jit);
    pthread_mutex_lock(&jit->building);
    job_init(&j, jit, err, &report);
    job_run(&j, answer, q);
    job_end(&j);
    pthread_mutex_unlock(&jit->building);
    if (err->code != ST_OK)
        err_jump(err);
}

static bool is_entry(const char *name)
{
    const char *suffix = dir_suffix(name);

    return suffix != NULL && *suffix == 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const JitEntry *)a)->key, ((const JitEntry *)b)->key);
}

static void ask_list(Job *j, int dir, Query *q)
{
    int64_t now = j->os->clock(j->os, CLOCK_REALTIME) / JIT_SECOND;
    const char **list;
    int n;

    list = dir_list(j, dir, &n);
    for (int i = 0; i < n; i++) {
        struct stat st;
        JitEntry *e;

        if (!is_entry(list[i]) ||
            j->os->fstatat(j->os, dir, list[i], &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        q->entry = arena_grow(q->to, q->entry, q->n, &q->cap, sizeof *q->entry);
        e = &q->entry[q->n++];
        *e = (JitEntry){ .bytes = st.st_size, .age = now - st.st_mtime };
        memcpy(e->key, list[i], JIT_KEY);
    }
    array_sort(q->entry, q->n, sizeof *q->entry, by_key);
}

JitEntry *jit_cache_list(Jit *jit, Arena *a, int *n)
{
    Query q = { .ask = ask_list, .to = a };

    run(jit, a->err, &q);
    *n = q.n;
    return q.entry;
}

static void ask_check(Job *j, int dir, Query *q)
{
    Bytes lib;

    if (entry_read(j, dir, q->key, &lib, &q->fault) == 0)
        q->fault = NULL;
}

const char *jit_cache_check(Jit *jit, Err *err, const JitEntry *e)
{
    Query q = { .ask = ask_check, .key = e->key, .fault = "the cache cannot be used" };

    run(jit, err, &q);
    return q.fault;
}

/* All of ours goes, temporary files of running compiles too: they notice and do without. */
static void ask_clear(Job *j, int dir, Query *q)
{
    const char **list;
    int n;

    list = dir_list(j, dir, &n);
    for (int i = 0; i < n; i++) {
        struct stat st;

        if (dir_suffix(list[i]) == NULL)
            continue;
        dir_remove(j, dir, list[i], 2);
        if (j->os->fstatat(j->os, dir, list[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            err_throw(j->err, ST_IO, "cannot remove %s", job_path(j, DIR_CACHE, list[i]));
        q->n += is_entry(list[i]);
    }
}

int jit_cache_clear(Jit *jit, Err *err)
{
    Query q = { .ask = ask_clear };

    run(jit, err, &q);
    return q.n;
}
