/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_jit: the tests of tests/jit, or one of their workers. */
#include "jit/jit_test.h"

#include <sys/statvfs.h>
#include <time.h>

static const struct {
    const char *name;
    Worker *run;
} workers[] = {
    { "kill", worker_kill }, { "kill-real", worker_kill_real }, { "failures", worker_failures },
    { "race", worker_race }, { "secure", worker_secure },
};

double ms_since(int64_t begin)
{
    return (double)(os_libc.clock(&os_libc, CLOCK_MONOTONIC) - begin) / 1e6;
}

void run_workers(const char *name, int of, int64_t n)
{
    char who[16], all[16], count[24],
        *argv[] = { "weft_jit", "--worker", (char *)(uintptr_t)name, who, all, count, NULL };
    int failed = 0, status;

    setenv("WEFT_STUB", bed_stub(), 1);
    snprintf(all, sizeof all, "%d", of);
    snprintf(count, sizeof count, "%lld", (long long)n);
    fflush(stdout);
    for (int i = 0; i < of; i++) {
        snprintf(who, sizeof who, "%d", i);
        if (fork() == 0) {
            execv("/proc/self/exe", argv);
            _exit(127);
        }
    }
    for (int i = 0; i < of; i++)
        failed += wait(&status) < 0 || status != 0;
    CHECK_EQ(failed, 0);
}

static int run_worker(char **argv)
{
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
        if (strcmp(argv[0], workers[i].name) == 0) {
            workers[i].run((Share){ atoi(argv[1]), atoi(argv[2]), atoll(argv[3]) });
            return 0;
        }
    return 2;
}

/* Thousands of small files come and go: in memory, where programs may lie there. */
static void choose_scratch(void)
{
    struct statvfs fs;

    if (statvfs("/dev/shm", &fs) == 0 && (fs.f_flag & ST_NOEXEC) == 0 &&
        access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}

int main(int argc, char **argv)
{
    choose_scratch();
    if (argc == 6 && strcmp(argv[1], "--worker") == 0)
        return run_worker(argv + 2);
    return test_main(argc, argv);
}
