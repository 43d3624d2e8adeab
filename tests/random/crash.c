/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What was at work when a test program crashes: said before it ends as it would have. */
#include "random/random.h"

#include <signal.h>

static void (*say)(void);

static void on_signal(int sig)
{
    say();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Of the sanitizers' runtime, when it is there. */
extern void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

void crash_watch(void (*fn)(void))
{
    say = fn;
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(fn);
        return;
    }
    signal(SIGSEGV, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGFPE, on_signal);
    signal(SIGILL, on_signal);
}
