/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The end of the command by a signal: a C compiler that runs is ended first, and its files go. */
#include "cli.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

enum { MOST_CTX = 64, MOST_MOMENTS = 5000 }; /* milliseconds to remove files in */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weft_ctx *open_ctx[MOST_CTX];
static int watched;

/* Those that end a program from outside, but for ones that its caller ignores (nohup). */
static sigset_t ending_signals(void)
{
    static const int sig[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction now;
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof sig / sizeof *sig; i++)
        if (sigaction(sig[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaddset(&set, sig[i]);
    return set;
}

static int interrupt_all(void)
{
    int busy = 0;

    for (int i = 0; i < MOST_CTX; i++)
        if (open_ctx[i] != NULL && weft_ctx_interrupt(open_ctx[i]))
            busy = 1;
    return busy;
}

/* A thread that waits for the signal, as a handler may do next to nothing. */
static void *end_by_signal(void *unused)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    sigset_t set = ending_signals();
    int sig;

    if (sigwait(&set, &sig) != 0)
        return unused;
    pthread_mutex_lock(&lock); /* for good: no context comes or goes any more */
    for (int i = 0; i < MOST_MOMENTS && interrupt_all(); i++)
        nanosleep(&moment, NULL);
    signal(sig, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(sig);
    return unused;
}

/* Threads that start later have the same mask, so only that one sees the signals. */
static void watch(void)
{
    sigset_t set = ending_signals(), old;
    pthread_t thread;

    if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0)
        return;
    if (pthread_create(&thread, NULL, end_by_signal, NULL) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void cli_watch(weft_ctx *ctx)
{
    int i = 0;

    pthread_mutex_lock(&lock);
    while (i < MOST_CTX && open_ctx[i] != NULL)
        i++;
    if (i < MOST_CTX)
        open_ctx[i] = ctx;
    if (!watched)
        watch();
    watched = 1;
    pthread_mutex_unlock(&lock);
}

void cli_free(weft_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CTX; i++)
        if (open_ctx[i] == ctx)
            open_ctx[i] = NULL;
    pthread_mutex_unlock(&lock);
    weft_ctx_free(ctx);
}
