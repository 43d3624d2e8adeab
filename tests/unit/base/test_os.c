/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/base/os.c: a fork and the lock of the loader. */
#include "base/base.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft.h>

/* A caller's lock around calls of the library, which its handler takes before a fork. */
static struct {
    atomic_bool forking, loaded, in_order;
} meet;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = 0, .tv_nsec = ms * 1000000 }, NULL);
}

/* The other thread is inside a call, and loads a kernel.  It must get through, as the fork waits
 * for the end of its call. */
static void wait_for_call(void)
{
    if (!meet.forking)
        return;
    for (int k = 0; k < 5000 && !meet.loaded; k++)
        pause_ms(1);
    meet.in_order = meet.loaded;
    meet.forking = false;
}

static void *load(void *arg)
{
    (void)arg;
    while (!meet.forking)
        pause_ms(1);
    pause_ms(50); /* fork has begun to run handlers */
    os_libc.dlopen(&os_libc, "no such library");
    meet.loaded = true;
    return NULL;
}

TEST(a_fork_takes_the_lock_of_a_caller_before_that_of_the_loader)
{
    weft_ctx *ctx = weft_ctx_new();
    pthread_t thread;
    int status = -1;
    pid_t pid;

    CHECK(ctx != NULL);
    CHECK_EQ(pthread_atfork(wait_for_call, NULL, NULL), 0);
    os_libc.dlopen(&os_libc, "no such library"); /* not the first call that takes the lock */
    CHECK_EQ(pthread_create(&thread, NULL, load, NULL), 0);
    meet.forking = true;
    pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    pthread_join(thread, NULL);
    CHECK(meet.in_order);
    weft_ctx_free(ctx);
}
