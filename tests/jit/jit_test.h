/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_jit: tests of the kernel cache with many processes.  Work that is shared out goes to
 * workers: this program once more, with the name of a worker and its share.  There a check that
 * fails ends the process, so whole processes can be killed, raced and forked without harm to
 * the harness. */
#ifndef WEFT_JIT_TEST_H
#define WEFT_JIT_TEST_H

#include "unit/jit_bed.h"

/* Worker number `who` of `of`, to do its part of n things. */
typedef struct Share {
    int who, of;
    int64_t n;
} Share;

typedef void Worker(Share);
Worker worker_kill, worker_kill_real, worker_failures, worker_race, worker_secure;

/* Runs `of` workers at a time; a failure of one is a failure of the test. */
void run_workers(const char *name, int of, int64_t n);
double ms_since(int64_t begin); /* of CLOCK_MONOTONIC */

#endif
