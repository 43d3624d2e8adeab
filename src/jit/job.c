/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A Job: what one call holds, and files read and written for it. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* After a fork the child has a copy of the Jit, but of the threads only the one that forked: locks
 * that others held would stay for ever, so they are made anew.  What they guard is whole at any
 * moment: links of the table are single stores.  The private directory is the parent's. */
void job_enter(Jit *jit)
{
    int pid = getpid(), seen = atomic_load(&jit->pid);

    while (seen != pid) {
        if (seen != -pid && atomic_compare_exchange_strong(&jit->pid, &seen, -pid)) {
            pthread_mutex_init(&jit->building, NULL);
            pthread_mutex_init(&jit->table, NULL);
            jit->own[0] = 0;
            if (jit->stop != NULL)
                jit->stop->busy = 0; /* calls of the parent's */
            atomic_store(&jit->pid, pid);
        }
        sched_yield();
        seen = atomic_load(&jit->pid);
    }
}

void job_init(Job *j, Jit *jit, Err *err, JitReport *report)
{
    *j = (Job){ .jit = jit, .os = jit->os, .err = err, .report = report, .lock = -1 };
    arena_init(&j->arena, j->os, err);
    for (int i = 0; i < JIT_MAX_HELD; i++)
        j->held[i] = -1;
    for (int i = 0; i < DIRS; i++)
        j->dir[i].fd = -1;
}

void job_run(Job *j, JobStep *step, void *to)
{
    jmp_buf trap, *outer = j->err->trap;

    j->err->trap = &trap;
    if (setjmp(trap) == 0)
        step(j, to);
    j->err->trap = outer;
}

/* Removing needs memory, so it may throw: nobody but the next sweep has to know. */
static void clear_work(Job *j)
{
    Err quiet = { .code = ST_OK }, *err = j->err;

    j->err = j->arena.err = &quiet;
    job_run(j, compile_clear, NULL);
    j->err = j->arena.err = err;
}

void job_end(Job *j)
{
    process_stop(j);
    clear_work(j);
    dir_leave_own(j);
    lock_drop(j);
    if (j->list != NULL)
        j->os->closedir(j->os, j->list);
    for (int i = 0; i < JIT_MAX_HELD; i++)
        if (j->held[i] >= 0)
            j->os->close(j->os, j->held[i]);
    load_free(j->os, j->module);
    arena_free(&j->arena);
}

void job_check_stop(Job *j)
{
    if (j->jit->stop != NULL && j->jit->stop->asked)
        err_throw(j->err, ST_IO, "interrupted before the kernel was compiled");
}

int job_hold(Job *j, int fd)
{
    int i = 0;

    while (j->held[i] >= 0)
        i++;
    if (fd >= 0)
        j->held[i] = fd;
    return fd;
}

int job_close(Job *j, int fd)
{
    int code = errno, i = 0;

    while (j->held[i] != fd)
        i++;
    j->held[i] = -1;
    if (j->os->close(j->os, fd) != 0)
        return -1;
    errno = code;
    return 0;
}

void job_note(Job *j, const char *fmt, ...)
{
    char *note = j->report->note;
    size_t n = strlen(note);
    va_list ap;

    n += (size_t)snprintf(note + n, JIT_NOTE - n, "%s", n > 0 ? "; " : "");
    if (n >= JIT_NOTE)
        return;
    va_start(ap, fmt);
    vsnprintf(note + n, JIT_NOTE - n, fmt, ap);
    va_end(ap);
}

const char *job_quote(Arena *a, const char *s, int most)
{
    size_t n = strnlen(s, (size_t)most);
    char *text = arena_copy(a, s, n + 1);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 32 || text[i] == 127)
            text[i] = ' ';
    text[n] = 0;
    return text;
}

const char *job_path(Job *j, int dir, const char *name)
{
    Text path = { .arena = &j->arena };

    text_f(&path, "%s/%s", j->dir[dir].path, name);
    return path.s;
}

Bytes job_read(Job *j, int fd, int64_t most)
{
    struct stat st;
    uint8_t *p;
    size_t n = 0;

    if (j->os->fstat(j->os, fd, &st) != 0)
        return (Bytes){ 0 };
    if (st.st_size > most) {
        errno = EFBIG;
        return (Bytes){ 0 };
    }
    p = arena_alloc(&j->arena, (size_t)st.st_size + 1);
    while (n < (size_t)st.st_size) {
        ptrdiff_t got = j->os->read(j->os, fd, p + n, (size_t)st.st_size - n);

        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return (Bytes){ 0 };
        n += got > 0 ? (size_t)got : 0;
    }
    return (Bytes){ p, n };
}

int job_write(Job *j, int dir, const char *name, int mode, const Bytes *part, int n, bool sync)
{
    int fd = job_hold(
        j, j->os->openat(j->os, dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    int code = fd < 0 ? errno : 0;

    if (fd < 0)
        return code;
    for (int i = 0; i < n && code == 0; i++)
        code = file_put(j->os, fd, part[i].p, part[i].n);
    if (code == 0 && sync && j->os->fsync(j->os, fd) != 0)
        code = errno;
    if (job_close(j, fd) != 0 && code == 0)
        code = errno;
    return code;
}
