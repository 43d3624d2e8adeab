/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What processes left behind that were killed.  Lock files and private directories go as soon as
 * nobody holds the system's lock on them, which dies with its holder; other temporary files, and
 * all of it where the file system has no locks, once they are older than any compile can be. */
#include "jit/jit_int.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { HOUR = 3600, WEEK = 7 * 24 * HOUR };

static const struct Rule {
    const char *end;
    int64_t age;
} rules[] = {
    { ".tmp", HOUR },
    { ".lock", HOUR }, /* should one be in use after all, two processes compile the same: no harm */
    { ".c", WEEK },    /* of failed compiles */
    { ".log", WEEK },
};

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Ours, and not touched for so many seconds. */
static bool is_old(Job *j, int dir, const char *name, int64_t seconds)
{
    int64_t now = j->os->clock(j->os, CLOCK_REALTIME) / JIT_SECOND;
    struct stat st;

    return j->os->fstatat(j->os, dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_uid == j->os->euid(j->os) && now - st.st_mtime > seconds;
}

typedef void Drop(Job *, int dir, const char *name, int fd);

/* Who holds the lock of a file that is gone tries again: lock.c, dir.c. */
static void drop_file(Job *j, int dir, const char *name, int fd)
{
    (void)fd;
    j->os->unlinkat(j->os, dir, name, 0);
}

static void drop_folder(Job *j, int dir, const char *name, int fd)
{
    dir_empty(j, fd);
    j->os->unlinkat(j->os, dir, name, AT_REMOVEDIR);
}

/* Removes what nobody holds the lock of. */
static void drop_free(Job *j, int dir, const char *name, int flags, Drop *drop)
{
    int fd = job_hold(j, j->os->openat(j->os, dir, name, O_RDONLY | O_NOFOLLOW | flags, 0));
    struct stat st;

    if (fd < 0)
        return;
    if (j->os->fstat(j->os, fd, &st) == 0 && st.st_uid == j->os->euid(j->os) &&
        j->os->flock(j->os, fd, LOCK_EX | LOCK_NB) == 0) {
        drop(j, dir, name, fd);
        j->os->flock(j->os, fd, LOCK_UN);
    }
    job_close(j, fd);
}

static void sweep_cache(Job *j, int dir)
{
    int n;
    const char **list = dir_list(j, dir, &n);

    for (int i = 0; i < n; i++) {
        const char *suffix = dir_suffix(list[i]);

        if (suffix != NULL && strcmp(suffix, ".lock") == 0)
            drop_free(j, dir, list[i], O_NONBLOCK, drop_file);
        for (size_t k = 0; suffix != NULL && k < sizeof rules / sizeof *rules; k++)
            if (ends_in(suffix, rules[k].end) && is_old(j, dir, list[i], rules[k].age))
                dir_remove(j, dir, list[i], 2);
    }
}

static void sweep_tmp(Job *j)
{
    int fd = job_hold(j, j->os->openat(j->os, AT_FDCWD, j->jit->tmp, O_RDONLY | O_DIRECTORY, 0));
    const char **list;
    int n;

    if (fd < 0)
        return;
    list = dir_list(j, fd, &n);
    for (int i = 0; i < n; i++) {
        if (strncmp(list[i], "weft-jit-", 9) != 0)
            continue;
        drop_free(j, fd, list[i], O_DIRECTORY, drop_folder);
        if (is_old(j, fd, list[i], HOUR))
            dir_remove(j, fd, list[i], 3);
    }
    job_close(j, fd);
}

void dir_sweep(Job *j)
{
    if (j->jit->swept)
        return;
    j->jit->swept = true;
    if (j->dir[DIR_CACHE].fd >= 0)
        sweep_cache(j, j->dir[DIR_CACHE].fd);
    sweep_tmp(j);
}
