/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * SpMM from C, with arrays of our own: a 3 x 4 matrix in CSR times a dense 4 x 2 matrix.
 *
 *     cc spmm.c -o spmm $(pkg-config --cflags --libs weft) && ./spmm */
#include <weft.h>

#include <stdio.h>
#include <string.h>

static const char text[] = "program spmm(m, n, f)\n"
                           "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                           "f32 A[I, J], B[n, K], C[I, K]\n"
                           "c: C[i, k] += A[i, j] * B[j, k]\n";

/* Rows 0 and 2 have two entries each, row 1 has none. */
static int32_t start[] = { 0, 2, 2, 4 }, column[] = { 0, 3, 1, 2 };
static float a[] = { 1, 2, 3, 4 };
static float b[4][2] = { { 1, 10 }, { 2, 20 }, { 3, 30 }, { 4, 40 } };
static float c[3][2];

static weft_status bind(weft_args *args, const char *name, void *data, weft_type type, int64_t rows,
                        int64_t columns)
{
    int64_t shape[] = { rows, columns };
    weft_tensor t = { .data = data, .type = type, .ndim = columns > 0 ? 2 : 1, .shape = shape };

    return weft_args_bind(args, name, &t);
}

static weft_status multiply(weft_ctx *ctx)
{
    weft_status s;
    weft_prog *prog;
    weft_args *args;

    /* The sizes m, n and f follow from the shapes. */
    if ((s = weft_prog_parse(ctx, "spmm.c", text, strlen(text), &prog)) == WEFT_OK &&
        (s = weft_args_new(prog, &args)) == WEFT_OK &&
        (s = bind(args, "J.start", start, WEFT_I32, 4, 0)) == WEFT_OK &&
        (s = bind(args, "J.coord", column, WEFT_I32, 4, 0)) == WEFT_OK &&
        (s = bind(args, "A", a, WEFT_F32, 4, 0)) == WEFT_OK &&
        (s = bind(args, "B", b, WEFT_F32, 4, 2)) == WEFT_OK &&
        (s = bind(args, "C", c, WEFT_F32, 3, 2)) == WEFT_OK)
        s = weft_run(args);
    return s;
}

int main(void)
{
    weft_ctx *ctx = weft_ctx_new();
    weft_status s = multiply(ctx);

    if (s == WEFT_OK)
        for (int i = 0; i < 3; i++)
            printf("%g %g\n", (double)c[i][0], (double)c[i][1]);
    else
        fprintf(stderr, "%s\n", weft_message(ctx));
    weft_ctx_free(ctx); /* and with it the program and its arguments */
    return s != WEFT_OK;
}
