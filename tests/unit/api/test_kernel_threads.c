/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One kernel, many callers: eight threads, each with a context and a pool of its own, run the same
 * machine code on the same inputs. */
#include "unit/kernel_bed.h"

#include <errno.h>
#include <pthread.h>

enum { CALLERS = 8, LONG = 12000 };

static const char text[] = "program p(n)\nf32 X[n], Y[n], S[]\n"
                           "y: for i in n: Y[i] = 2 * X[i]\ns: for i in n: S[] += X[i]\n";

typedef struct Caller {
    pthread_t id;
    const float *x;
    int64_t calls, bad;
} Caller;

static bool bind_to(weft_args *to, const char *name, void *data, int ndim, int64_t n)
{
    weft_tensor t = { data, WEFT_F32, ndim, &n, NULL };

    return weft_args_bind(to, name, &t) == WEFT_OK;
}

/* Its own context; nothing of the harness, which is one thread's. */
static void *call(void *arg)
{
    Caller *c = arg;
    weft_ctx *own = weft_ctx_new();
    weft_prog *p;
    weft_kernel *k;
    weft_args *a;
    float *y = malloc(LONG * sizeof *y), s = 0;

    c->bad = weft_ctx_threads(own, 3) || weft_prog_parse(own, NULL, text, sizeof text - 1, &p) ||
             weft_kernel_compile(p, &k) || weft_args_new(p, &a) ||
             !bind_to(a, "X", (void *)(uintptr_t)c->x, 1, LONG) || !bind_to(a, "Y", y, 1, LONG) ||
             !bind_to(a, "S", &s, 0, 0);
    for (int64_t i = 0; i < c->calls && c->bad == 0; i++) {
        s = y[i % LONG] = -1;
        c->bad += weft_kernel_run(k, a) != WEFT_OK || s != 6000 ||
                  y[i % LONG] != c->x[i % LONG] * 2;
    }
    weft_ctx_free(own);
    free(y);
    return NULL;
}

TEST(eight_threads_run_one_kernel)
{
    static float x[LONG];
    Caller c[CALLERS];

    for (int i = 0; i < LONG; i++)
        x[i] = (float)(i % 2);
    open_kernel(text); /* compiled once */
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (Caller){ .x = x, .calls = test_scale(10000) };
        CHECK_EQ(pthread_create(&c[i].id, NULL, call, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        CHECK_EQ(pthread_join(c[i].id, NULL), 0);
        CHECK_EQ(c[i].bad, 0);
    }
    close_prog();
}

/* The system may have no thread for us at any time: then those that are there do it. */
TEST(a_run_goes_on_with_the_threads_it_gets)
{
    static float x[LONG];
    float s;

    for (int i = 0; i < LONG; i++)
        x[i] = (float)(i % 2);
    for (int at = 1; at <= 4; at++)
        for (int sticky = 0; sticky < 2; sticky++) {
            Inject j;

            open_with(&j, "WEFT_NUM_THREADS", "4", text);
            compile();
            inject_at(&j, INJECT_THREAD, at, sticky, EAGAIN);
            bind("X", x, WEFT_F32, 1, SHAPE(LONG));
            bind("S", &s, WEFT_F32, 0, NULL);
            OK(weft_kernel_run(kernel, args));
            CHECK_SAME((double)s, 6000);
            CHECK(j.failed > 0 || at > 2); /* which need not be asked for */
            close_inject(&j);
        }
}
