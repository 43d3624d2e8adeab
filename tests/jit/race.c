/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Processes that race: sixteen for the same kernel, and one that swaps the entry while it is
 * read. */
#include "jit/jit_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { RACERS = 16 };

static void *shared(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static pthread_barrier_t *new_barrier(unsigned n)
{
    pthread_barrier_t *b = shared(sizeof *b);
    pthread_barrierattr_t attr;

    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    CHECK_EQ(pthread_barrier_init(b, &attr, n), 0);
    return b;
}

/* One racer; all start each round together.  Returns how much went wrong. */
static int race(Bed *b, pthread_barrier_t *gate, int64_t rounds)
{
    struct stat st;
    int bad = 0;

    for (int round = 0; round < rounds; round++) {
        JitModule *m;

        pthread_barrier_wait(gate);
        if (bed_get(b, round, &m) != ST_OK) {
            printf("round %d: %s\n", round, b->err.msg);
            bad++;
        } else {
            bad += bed_answer(m) != round;
            jit_release(m);
        }
        pthread_barrier_wait(gate);
        /* one compile a round, and between two gates nobody changes anything */
        bad += stat(bed_path(b, "counter"), &st) != 0 || st.st_size != round + 1;
        bad += bed_count(bed_cache(b), "") != round + 1;
    }
    return bad;
}

void worker_race(Share s)
{
    pthread_barrier_t *gate = new_barrier(RACERS);
    int failed = 0, damaged, status;
    Bed b;

    bed_init(&b, "race", "");
    bed_set("WEFT_CC",
            bed_text("%s stub-sleep-us=2000 stub-count=%s", bed_stub(), bed_path(&b, "counter")));
    CHECK_EQ(bed_again(&b), ST_OK);
    for (int i = 0; i < RACERS; i++)
        if (fork() == 0) {
            b.jit = NULL;
            _exit(bed_again(&b) != ST_OK || race(&b, gate, s.n) != 0);
        }
    for (int i = 0; i < RACERS; i++)
        failed += wait(&status) < 0 || status != 0;
    CHECK_EQ(failed, 0);
    CHECK_EQ(bed_whole(&b, &damaged), s.n);
    CHECK_EQ(damaged, 0);
    bed_free(&b);
}

TEST(of_sixteen_processes_one_compiles_and_all_get_the_answer)
{
    run_workers("race", 1, test_scale(200));
}

/* What the swapper puts in the place of the entry: all but the first must be refused. */
enum { GOOD, OTHER, CUT, WRITABLE, LINK, FOLDER, BAITS };

static void make_baits(Bed *b, char bait[BAITS][600])
{
    static uint8_t image[1 << 18];
    size_t n;

    for (int i = 0; i < BAITS; i++)
        snprintf(bait[i], sizeof bait[i], "%s/bait%d", b->root, i);
    bed_use(b, 666, JIT_COMPILED);
    n = bed_slurp(bed_entry(b), image, sizeof image);
    bed_put(bait[OTHER], image, n);
    bed_use(b, 7, JIT_COMPILED);
    n = bed_slurp(bed_entry(b), image, sizeof image);
    bed_put(bait[GOOD], image, n);
    bed_put(bait[CUT], image, n / 2);
    bed_put(bait[WRITABLE], image, n);
    CHECK(chmod(bait[WRITABLE], 0666) == 0);
}

static void swap(char bait[BAITS][600], int which, const char *entry, const char *temp)
{
    if (which == FOLDER) {
        if (mkdir(temp, 0700) == 0 && rename(temp, entry) != 0)
            rmdir(temp);
    } else if (which == LINK ? symlink(bait[OTHER], temp) == 0 : link(bait[which], temp) == 0) {
        rename(temp, entry);
        unlink(temp); /* still there if entry is a folder, or the same file */
    }
}

static void swap_for_ever(char bait[BAITS][600], const char *entry, const char *temp,
                          volatile int64_t *rounds)
{
    uint64_t seed = 1;

    for (;; ++*rounds) {
        uint64_t r = test_random(&seed);

        swap(bait, r % 2 == 0 ? GOOD : (int)(r / 2 % BAITS), entry, temp);
        if (r / 256 % 16 == 0)
            usleep(200);
    }
}

TEST(an_entry_swapped_between_look_and_load_is_never_run)
{
    volatile int64_t *rounds = shared(sizeof *rounds);
    char bait[BAITS][600], entry[600], temp[600];
    int64_t goal = test_scale(10000), loads = 0, refused = 0;
    pid_t pid;
    Bed b;

    bed_init(&b, "swap", "");
    make_baits(&b, bait);
    snprintf(entry, sizeof entry, "%s", bed_entry(&b));
    snprintf(temp, sizeof temp, "%s/temp", b.root);
    pid = fork();
    if (pid == 0)
        swap_for_ever(bait, entry, temp, rounds);
    for (; *rounds < goal || loads < goal / 20; loads++) {
        JitModule *m;
        Status s = bed_get(&b, 7, &m);
        int answer = s == ST_OK ? bed_answer(m) : 7;

        if (s == ST_OK)
            jit_release(m);
        if (s != ST_OK || answer != 7) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            test_fail(__FILE__, __LINE__, "load %lld: %d: %s", (long long)loads, answer, b.err.msg);
        }
        refused += strstr(b.report.note, "removed") != NULL;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK(goal < 1000 || (refused > loads / 50 && refused < loads));
    bed_free(&b);
}
