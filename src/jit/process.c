/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The compiler as a process: started without a shell, in a session of its own, watched until it
 * ends or its time is over, and then ended with all that it started.
 *
 * Its time is CPU time, which a busy machine does not use up, and the system counts it; a limit of
 * wall-clock time, ten times as long, ends a compiler that waits for ever.  Its session is
 * controlled by a terminal whose other end we hold: should this process be killed, by whatever
 * signal, the system closes that end and sends SIGHUP to the session. */
#include "jit/jit_int.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { KILL_WAIT = 5, LONGEST_PAUSE_MS = 50, FIRST_RETRY_MS = 5, RETRIES = 8 };
#define MS (JIT_SECOND / 1000)

/* A machine at its limit of processes may have room a moment later: 5 ms, 10 ms, ... 640 ms. */
static void start(Job *j, const OsSpawn *s)
{
    int64_t pause = FIRST_RETRY_MS * MS;
    int pid, code = 0;

    for (int i = 0; i <= RETRIES; i++, pause *= 2) {
        if (j->os->spawn(j->os, s, &pid) == 0) {
            j->pid = pid;
            return;
        }
        code = errno;
        if (code != EAGAIN)
            break;
        if (i < RETRIES)
            j->os->sleep(j->os, pause);
    }
    err_throw(j->err, ST_IO, "the C compiler %s cannot be started: %s; see WEFT_CC",
              job_quote(&j->arena, s->path, 300), strerror(code));
}

/* True when it has ended.  A process that ignores SIGCHLD, or waits for all children, takes the
 * exit code from us (ECHILD): then the result has to speak for itself. */
static bool has_ended(Job *j, int *status)
{
    int code = j->os->waitid(j->os, j->pid, WNOHANG | WNOWAIT, status);

    if (code < 0 && errno != EINTR) {
        *status = 0;
        return true;
    }
    return code == 1;
}

/* Reads what there is, up to `ms` later; false when nothing more will come. */
static bool listen(Job *j, int said, Text *log, int ms)
{
    char buf[4096];
    int ready = j->os->poll(j->os, said, ms);
    ptrdiff_t n;

    if (ready <= 0)
        return ready == 0 || errno == EINTR;
    n = j->os->read(j->os, said, buf, sizeof buf);
    if (n > 0 && log->n < JIT_MAX_LOG)
        text_put(log, buf, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

/* A compiler that starts others tells how they ended, in the words of the C library. */
static bool is_cpu_over(const Outcome *o)
{
    return o->status == 128 + SIGXCPU ||
           (o->status > 0 && strstr(o->log.s, strsignal(SIGXCPU)) != NULL);
}

Outcome process_run(Job *j, const OsSpawn *s, int said)
{
    int64_t deadline = j->os->clock(j->os, CLOCK_MONOTONIC) +
                       JIT_WALL * j->jit->cpu_seconds * JIT_SECOND;
    Outcome out = { .status = -1, .log = { .arena = &j->arena } };
    bool open = true;

    text_put(&out.log, "", 0);
    job_check_stop(j);
    start(j, s);
    job_close(j, s->out); /* so that the pipe ends with the compiler */
    for (int pause = 1; !has_ended(j, &out.status);) {
        bool was = open;

        job_check_stop(j);
        if (j->os->clock(j->os, CLOCK_MONOTONIC) > deadline) {
            out.status = -1;
            break;
        }
        if (open)
            open = listen(j, said, &out.log, pause);
        else
            j->os->sleep(j->os, pause * MS);
        pause = was && !open ? 1 : pause < LONGEST_PAUSE_MS ? pause * 2 : pause;
    }
    process_stop(j);
    while (open && out.log.n < JIT_MAX_LOG && j->os->poll(j->os, said, 0) > 0) /* last words */
        open = listen(j, said, &out.log, 0);
    out.cpu_over = is_cpu_over(&out);
    return out;
}

/* The group is ended before its leader is waited for: until then its number cannot be used
 * again. */
void process_stop(Job *j)
{
    int64_t deadline = j->os->clock(j->os, CLOCK_MONOTONIC) + KILL_WAIT * JIT_SECOND;
    int status;

    if (j->pid == 0)
        return;
    j->os->killpg(j->os, j->pid, SIGKILL);
    while (j->os->waitid(j->os, j->pid, WNOHANG, &status) == 0 &&
           j->os->clock(j->os, CLOCK_MONOTONIC) < deadline)
        j->os->sleep(j->os, MS);
    j->pid = 0;
}
