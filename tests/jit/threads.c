/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One Jit, many threads; and forks in the midst of their calls. */
#include "jit/jit_test.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { THREADS = 8, KERNELS = 6 };

typedef struct Team {
    Jit *jit;
    int64_t rounds;
    _Atomic bool stop;
} Team;

typedef struct Member {
    Team *team;
    uint64_t seed;
    int64_t done, bad;
} Member;

/* Safe in threads, as bed_get is not. */
static bool get_and_ask(Jit *jit, int value)
{
    static const char *const symbols[] = { "answer" };
    char source[80];
    int n = snprintf(source, sizeof source, "int answer(void) { return %d; } /* value %08d */",
                     value, value);
    JitRequest r = { .source = source,
                     .nsource = (size_t)n,
                     .identity = "threads",
                     .symbol = symbols,
                     .nsymbol = 1 };
    Err err = { .code = ST_OK };
    JitModule *volatile m = NULL;
    bool right;

    if (CATCH(&err, m = jit_get(jit, &err, &r, NULL)) != ST_OK)
        return false;
    right = bed_answer(m) == value;
    jit_release(m);
    return right;
}

static void *work(void *arg)
{
    Member *m = arg;

    for (; m->done < m->team->rounds && !m->team->stop; m->done++)
        m->bad += !get_and_ask(m->team->jit, (int)(test_random(&m->seed) % KERNELS));
    return NULL;
}

static void start(Team *t, Member m[THREADS], pthread_t id[THREADS])
{
    for (int i = 0; i < THREADS; i++) {
        m[i] = (Member){ .team = t, .seed = (uint64_t)i };
        CHECK_EQ(pthread_create(&id[i], NULL, work, &m[i]), 0);
    }
}

static void finish(Member m[THREADS], pthread_t id[THREADS])
{
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(id[i], NULL), 0);
        CHECK_EQ(m[i].bad, 0);
    }
}

/* With the real table of calls: the counters of the other are for one thread. */
static Jit *team_jit(Bed *b, const char *name, const char *mode)
{
    static const char *const names[] = { "PATH", "TMPDIR", "HOME", "WEFT_CACHE_DIR", "WEFT_CC" };
    Jit *volatile jit = NULL;

    bed_init(b, name, mode);
    bed_free(b);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], bed_getenv(names[i]), 1);
    CHECK_EQ(CATCH(&b->err, jit = jit_new(&os_libc, &b->err)), ST_OK);
    return jit;
}

static void team_free(Jit *jit)
{
    jit_free(jit);
    unsetenv("WEFT_CC");
    unsetenv("WEFT_CACHE_DIR");
    unsetenv("TMPDIR");
}

TEST(threads_share_a_jit)
{
    pthread_t id[THREADS];
    Member m[THREADS];
    struct stat st;
    Team t = { .rounds = test_scale(4000) };
    Bed b;

    bed_stub();
    t.jit = team_jit(&b, "threads", bed_text("stub-count=%s", test_path("thread-count")));
    start(&t, m, id);
    finish(m, id);
    CHECK(stat(test_path("thread-count"), &st) == 0);
    CHECK(st.st_size <= KERNELS); /* each kernel was compiled once */
    team_free(t.jit);
}

/* The child has a Jit whose locks were held by threads that it does not have.  The status of the
 * child, which must not take long. */
static int fork_once(Team *t, int value)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(20);
        _exit(!get_and_ask(t->jit, value) || !get_and_ask(t->jit, 1000 + value));
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

TEST(a_child_forked_in_the_midst_of_calls_can_call_too)
{
    pthread_t id[THREADS];
    Member m[THREADS];
    Team t = { .rounds = INT64_MAX };
    int bad = 0;
    Bed b;

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    test_skip("the sanitizer's own locks do not outlive a fork with threads");
#endif
    t.jit = team_jit(&b, "forks", "");
    start(&t, m, id);
    for (int64_t i = 0; i < test_scale(1000) && bad == 0; i++)
        bad = fork_once(&t, (int)(i % 50));
    t.stop = true;
    finish(m, id);
    CHECK_EQ(bad, 0);
    CHECK(get_and_ask(t.jit, 1)); /* and the parent is as it was */
    team_free(t.jit);
}
