/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of api/ share: one context, program and arguments at a time, and a product of a
 * sparse and a dense matrix to try things on. */
#ifndef WEFT_API_BED_H
#define WEFT_API_BED_H

#include "unit/test.h"

#include "weft.h"

#include <stdio.h>
#include <string.h>

static __attribute__((unused)) const char spmm[] =
    "program spmm(m, n, f)\n"
    "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
    "f32 A[I, J], B[n, K], C[I, K]\n"
    "c: C[i, k] += A[i, j] * B[j, k]\n";

static __attribute__((unused)) weft_ctx *ctx; /* of the test that runs */
static __attribute__((unused)) weft_prog *prog;
static __attribute__((unused)) weft_args *args;

#define OK(call) ok((call), #call, __LINE__)
static inline void ok(weft_status status, const char *call, int line)
{
    if (status != WEFT_OK)
        test_fail(__FILE__, line, "%s: status %d: %s", call, (int)status, weft_message(ctx));
}

/* The call fails with this status and a message that has this part. */
#define BAD(call, status, part)               \
    do {                                      \
        CHECK_EQ((call), (status));           \
        CHECK_HAS(weft_message(ctx), (part)); \
    } while (0)

static inline void open_prog(const char *text)
{
    weft_ctx_free(ctx); /* of a test that failed half way */
    ctx = weft_ctx_new();
    OK(weft_prog_parse(ctx, "test.weft", text, strlen(text), &prog));
    OK(weft_args_new(prog, &args));
}

static inline void close_prog(void)
{
    weft_ctx_free(ctx);
    ctx = NULL;
}

/* A tensor in C order; the shape must outlive it. */
static inline weft_tensor tensor(void *data, weft_type type, int ndim, const int64_t *shape)
{
    return (weft_tensor){ data, type, ndim, shape, NULL };
}

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static inline void bind(const char *name, void *data, weft_type type, int ndim,
                        const int64_t *shape)
{
    weft_tensor t = tensor(data, type, ndim, shape);

    ok(weft_args_bind(args, name, &t), name, __LINE__);
}

static inline const char *write_text(const char *name, const char *text)
{
    const char *path = test_path(name);
    FILE *f = fopen(path, "wb");

    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
    return path;
}

static __attribute__((unused)) const char small_mtx[] =
    "%%MatrixMarket matrix coordinate real general\n"
    "3 4 4\n1 1 1.5\n1 3 2\n3 2 -1\n3 4 0.5\n";

/* [[1.5, 0, 2, 0], [0, 0, 0, 0], [0, -1, 0, 0.5]] as CSR */
static int64_t csr_start[] = { 0, 2, 2, 4 };
static int32_t csr_coord[] = { 0, 2, 1, 3 };
static float csr_value[] = { 1.5f, 2, -1, 0.5f };
static float dense_b[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static __attribute__((unused)) const float product[] = { 8, 11.5f, 0, 0, 1, 0.5f };

static inline void bind_csr(void)
{
    bind("J.start", csr_start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", csr_coord, WEFT_I32, 1, SHAPE(4));
    bind("A", csr_value, WEFT_F32, 1, SHAPE(4));
    bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
}

static inline void check_floats(const char *name, const float *want, int64_t n)
{
    weft_tensor t;
    int64_t count = 1;

    OK(weft_args_get(args, name, &t));
    for (int d = 0; d < t.ndim; d++)
        count *= t.shape[d];
    CHECK_EQ(count, n);
    for (int64_t i = 0; i < n; i++)
        CHECK_SAME((double)((float *)t.data)[i], (double)want[i]);
}

#endif
