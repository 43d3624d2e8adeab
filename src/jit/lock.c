/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One process compiles a kernel, the others wait for it.  The lock is the system's (flock), so it
 * dies with its holder, and it is only to save work: who waits too long, or finds that the file
 * system has no locks, compiles too, and publishes the same entry.
 *
 * The holder removes the file while it holds the lock.  Who gets the lock of a file that is gone by
 * then tries again with the new one. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { WAIT_SECONDS = 60, LONGEST_PAUSE_MS = 20 };

/* 0 when the lock is ours, else an errno: EWOULDBLOCK after the wait. */
static int wait_for(Job *j, int fd, int64_t deadline)
{
    int64_t pause = JIT_SECOND / 2000;

    while (j->os->flock(j->os, fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        if (j->os->clock(j->os, CLOCK_MONOTONIC) > deadline)
            return EWOULDBLOCK;
        job_check_stop(j);
        j->os->sleep(j->os, pause);
        if (pause < LONGEST_PAUSE_MS * JIT_SECOND / 1000)
            pause *= 2;
    }
    return 0;
}

void lock_take(Job *j)
{
    int64_t deadline = j->os->clock(j->os, CLOCK_MONOTONIC) + WAIT_SECONDS * JIT_SECOND;
    int dir = j->dir[DIR_CACHE].fd;

    snprintf(j->lock_name, sizeof j->lock_name, "%s.lock", j->key);
    while (dir >= 0 && j->lock < 0) {
        int fd = job_hold(
            j, j->os->openat(j->os, dir, j->lock_name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
        int code = fd < 0 ? errno : wait_for(j, fd, deadline);
        struct stat st;

        if (code == 0 && j->os->fstat(j->os, fd, &st) != 0)
            code = errno;
        if (code == 0 && st.st_nlink > 0)
            j->lock = fd;
        else if (fd >= 0)
            job_close(j, fd);
        if (code == EWOULDBLOCK)
            job_note(j, "waited %d s for another process that compiles it", WAIT_SECONDS);
        else if (code != 0)
            job_note(j, "no lock: %s", strerror(code));
        if (code != 0)
            return;
    }
}

void lock_drop(Job *j)
{
    if (j->lock < 0)
        return;
    j->os->unlinkat(j->os, j->dir[DIR_CACHE].fd, j->lock_name, 0);
    j->os->flock(j->os, j->lock, LOCK_UN); /* a child of fork may hold the same open file */
    job_close(j, j->lock);
    j->lock = -1;
}
