/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Every OS call and every allocation of a compile, a publication and a load made to fail in turn:
 * once, and from then on, with each error that a full, limited, read-only or broken disk gives. */
#include "jit/jit_test.h"

static const int errnos[] = { ENOSPC, EDQUOT, EROFS, EIO, EACCES };
enum { ERRNOS = sizeof errnos / sizeof *errnos };

static void fresh(Bed *b)
{
    inject_init(&b->inject, &os_libc);
    b->inject.getenv = bed_getenv;
    b->inject.no_sync = true;
    b->inject.piece = 5000;
}

/* Compiles a kernel, finds it again, compiles another; how many answers were right.  One that is
 * wrong is a failure of the test, no answer but a message is none. */
static int scenario(Bed *b)
{
    int right = 0;

    for (int i = 0; i < 3; i++) {
        int value = 51 + i / 2, answer;
        JitModule *m;

        if (b->jit == NULL && bed_again(b) != ST_OK)
            continue;
        if (bed_get(b, value, &m) != ST_OK) {
            CHECK(b->err.msg[0] != 0);
            continue;
        }
        answer = bed_answer(m);
        CHECK(answer == value || answer == -1); /* -1: it was dlsym that failed */
        right += answer == value;
        jit_release(m);
    }
    return right;
}

/* The next process finds no entry half there, and all works. */
static void check_after(Bed *b, InjectKind kind, int64_t k)
{
    int damaged = 0;
    JitModule *m;

    fresh(b);
    CHECK_EQ(bed_again(b), ST_OK);
    bed_whole(b, &damaged);
    if (damaged != 0 || bed_get(b, 52, &m) != ST_OK || bed_answer(m) != 52)
        test_fail(__FILE__, __LINE__, "after %s %lld: %d damaged: %s", inject_name[kind],
                  (long long)k, damaged, b->err.msg);
    jit_release(m);
    bed_free(b);
    bed_remove(bed_cache(b));
    bed_remove(bed_path(b, "tmp"));
    CHECK(mkdir(bed_path(b, "tmp"), 0700) == 0);
}

/* True when there was such a call. */
static bool one_failure(Bed *b, InjectKind kind, int64_t k, bool sticky, int code)
{
    bool failed;

    fresh(b);
    inject_at(&b->inject, kind, k, sticky, code);
    scenario(b);
    failed = b->inject.failed > 0;
    bed_free(b);
    while (waitpid(-1, NULL, 0) > 0) { /* of a waitid that failed */
    }
    check_after(b, kind, k);
    return failed;
}

/* All points of a kind; each worker takes its share, and in a short run one point in `step`. */
static int64_t fail_kind(Bed *b, InjectKind kind, Share s, int64_t step)
{
    int64_t points = 0;
    bool more = true;

    for (int64_t k = 1; more; k += step)
        for (int e = 0; e < (kind == INJECT_ALLOC ? 2 : ERRNOS + 1); e++) {
            bool sticky = e == 0;

            if ((k / step * (ERRNOS + 1) + e) % s.of != s.who && e != 0)
                continue; /* e == 0: all have to see where the calls end */
            more = one_failure(b, kind, k, sticky, errnos[(e + k) % ERRNOS]);
            points += more;
        }
    return points;
}

void worker_failures(Share s)
{
    int64_t points = 0;
    Bed b;

    bed_init(&b, "failures", "");
    bed_free(&b);
    for (InjectKind kind = 0; kind < INJECT_KINDS; kind++)
        points += fail_kind(&b, kind, s, s.n);
    CHECK(points > 20);
}

TEST(every_call_may_fail_and_no_answer_is_wrong)
{
    run_workers("failures", 4, test_scale(100) < 50 ? 5 : 1);
}
