/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The two directories of kernels: the cache, and a private one that lives as long as the process,
 * for scratch files and for when the cache cannot be used.  Who owns a directory and who can write
 * it is what keeps foreign code out, so both are looked at each time, on the open descriptor. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OWN_TRIES = 8 };

static const char *fault(const Os *os, const struct stat *st)
{
    if (st->st_uid != os->euid(os))
        return "it belongs to another user";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others can write to it";
    return NULL;
}

/* -1 and *why; errno is ENOENT only when there is nothing of that name. */
static int open_safe(Job *j, const char *path, const char **why)
{
    int fd = j->os->openat(j->os, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    struct stat st;

    if (fd < 0) {
        *why = errno == ENOTDIR || errno == ELOOP ? "it is a symbolic link or no directory"
                                                  : strerror(errno);
        return -1;
    }
    *why = j->os->fstat(j->os, fd, &st) != 0 ? strerror(errno) : fault(j->os, &st);
    if (*why == NULL)
        return job_hold(j, fd);
    j->os->close(j->os, fd);
    errno = EACCES;
    return -1;
}

static void make_all(Job *j, const char *path)
{
    char *part = arena_copy(&j->arena, path, strlen(path) + 1);

    for (char *s = strchr(part + 1, '/'); s != NULL; s = strchr(s + 1, '/')) {
        *s = 0;
        j->os->mkdirat(j->os, AT_FDCWD, part, 0700); /* the last one tells whether it went well */
        *s = '/';
    }
    j->os->mkdirat(j->os, AT_FDCWD, part, 0700);
}

static void warn_once(Job *j, const char *why)
{
    Jit *jit = j->jit;

    job_note(j, "cache not used: %s", why);
    pthread_mutex_lock(&jit->table);
    if (!jit->warned)
        snprintf(jit->warning, sizeof jit->warning,
                 "the kernel cache %s is not used: %s; kernels are compiled anew by each process; "
                 "set WEFT_CACHE_DIR to a directory that you alone can write",
                 jit->cache == NULL ? "" : job_quote(&j->arena, jit->cache, 150), why);
    jit->warned = true;
    pthread_mutex_unlock(&jit->table);
}

void dir_open_cache(Job *j)
{
    Dir *d = &j->dir[DIR_CACHE];
    const char *why = "neither XDG_CACHE_HOME nor HOME is set";

    d->path = j->jit->cache;
    if (d->path != NULL) {
        d->fd = open_safe(j, d->path, &why);
        if (d->fd < 0 && errno == ENOENT) {
            make_all(j, d->path);
            d->fd = open_safe(j, d->path, &why);
        }
    }
    if (d->fd < 0)
        warn_once(j, why);
}

/* The lock tells others that somebody works in it: see sweep.c.  It is the system's, so it dies
 * with its holder.  False: the directory is gone, or about to go. */
static bool is_ours_now(Job *j, int fd)
{
    struct stat st;

    if (j->os->flock(j->os, fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return j->os->fstat(j->os, fd, &st) == 0 && st.st_nlink > 0;
}

bool dir_find_own(Job *j)
{
    Dir *d = &j->dir[DIR_OWN];
    const char *why;

    if (d->fd < 0 && j->jit->own[0] != 0) {
        d->path = j->jit->own;
        d->fd = open_safe(j, d->path, &why);
        if (d->fd >= 0 && !is_ours_now(j, d->fd)) {
            job_close(j, d->fd);
            d->fd = -1;
        }
        if (d->fd < 0) /* somebody cleaned up: another one is made when it is needed */
            j->jit->own[0] = 0;
    }
    return d->fd >= 0;
}

int dir_open_own(Job *j)
{
    Jit *jit = j->jit;

    if (dir_find_own(j))
        return 0;
    for (int i = 0; i < OWN_TRIES; i++) { /* a sweep may take a new one before it is locked */
        int code;

        snprintf(jit->own, jit->nown, "%s/weft-jit-XXXXXX", jit->tmp);
        if (j->os->mkdtemp(j->os, jit->own) == NULL) {
            jit->own[0] = 0;
            return errno;
        }
        if (dir_find_own(j))
            return 0;
        code = errno;
        jit->own[0] = '/'; /* dir_find_own has forgotten it */
        j->os->unlinkat(j->os, AT_FDCWD, jit->own, AT_REMOVEDIR);
        jit->own[0] = 0;
        errno = code;
    }
    return errno;
}

const char **dir_list(Job *j, int fd, int *n)
{
    int own = j->os->openat(j->os, fd, ".", O_RDONLY | O_DIRECTORY, 0), cap = 0;
    const char **list = NULL, *name;

    *n = 0;
    if (own < 0)
        return NULL;
    j->list = j->os->fdopendir(j->os, own);
    if (j->list == NULL) {
        j->os->close(j->os, own);
        return NULL;
    }
    while ((name = j->os->readdir(j->os, j->list)) != NULL) {
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        list = arena_grow(&j->arena, list, *n, &cap, sizeof *list);
        list[(*n)++] = arena_copy(&j->arena, name, strlen(name) + 1);
    }
    j->os->closedir(j->os, j->list);
    j->list = NULL;
    return list;
}

const char *dir_suffix(const char *name)
{
    return strspn(name, "0123456789abcdef") == JIT_KEY ? name + JIT_KEY : NULL;
}

const char *dir_temp(Job *j)
{
    int64_t now = j->os->clock(j->os, CLOCK_REALTIME);
    uint64_t h = hash_int(hash_int((uint64_t)getpid(), (uint64_t)now), (uint64_t)++j->temps);
    Text name = { .arena = &j->arena };

    text_f(&name, "%s.%016llx.tmp", j->key, (unsigned long long)h);
    return name.s;
}

void dir_remove(Job *j, int at, const char *name, int depth)
{
    const char **list;
    int fd, n;

    if (j->os->unlinkat(j->os, at, name, 0) == 0 || depth == 0)
        return;
    fd = job_hold(j, j->os->openat(j->os, at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
    if (fd < 0)
        return;
    list = dir_list(j, fd, &n);
    for (int i = 0; i < n; i++)
        dir_remove(j, fd, list[i], depth - 1);
    job_close(j, fd);
    j->os->unlinkat(j->os, at, name, AT_REMOVEDIR);
}

void dir_leave_own(Job *j)
{
    if (j->dir[DIR_OWN].fd < 0)
        return;
    if (j->os->unlinkat(j->os, AT_FDCWD, j->jit->own, AT_REMOVEDIR) == 0)
        j->jit->own[0] = 0;
    j->os->flock(j->os, j->dir[DIR_OWN].fd, LOCK_UN); /* a child of fork may hold the same file */
}

/* A failed compile leaves source and log for the user to read. */
static bool is_kept(const char *name)
{
    const char *suffix = dir_suffix(name);

    return suffix != NULL && (strcmp(suffix, ".c") == 0 || strcmp(suffix, ".log") == 0);
}

void dir_empty(Job *j, int fd)
{
    int n;
    const char **list = dir_list(j, fd, &n);

    for (int i = 0; i < n; i++)
        if (!is_kept(list[i]))
            dir_remove(j, fd, list[i], 2);
}

void dir_drop_own(Job *j, void *unused)
{
    (void)unused;
    if (dir_find_own(j))
        dir_empty(j, j->dir[DIR_OWN].fd);
}
