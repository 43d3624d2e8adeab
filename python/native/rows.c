/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft::coo_rows: the entries of a matrix in the order of their rows, as an operator of torch.  It gives
 * the starts of rows, the columns, and the place in the list that each entry had.  Columns are for
 * whoever reads them to check, by the name that they have there. */
#include "shim.h"

#include <stdio.h>

enum { ROW, COL, START = 0, INDEX, ORDER };

typedef struct Call {
    Plain in[2], out[3];
    int64_t rows;
    char message[1024]; /* what went wrong; "" at first */
} Call;

static void refuse(Call *c, const char *what)
{
    snprintf(c->message, sizeof c->message, "%s", what);
}

static void check(Call *c)
{
    const Plain *row = &c->in[ROW], *col = &c->in[COL];

    if (row->ndim != 1 || col->ndim != 1 || row->shape[0] != col->shape[0] ||
        row->type != col->type || (row->type != WEFT_I32 && row->type != WEFT_I64))
        refuse(c, "row, col: expected two lists of integers of one length and type");
    else if (c->rows < 0)
        refuse(c, "rows: expected a number that is not negative");
}

static void sort(Call *c, weft_ctx *ctx)
{
    int64_t n = c->in[ROW].shape[0], shape[3] = { c->rows + 1, n, n };
    weft_edge_list list = { c->rows, INT64_C(1) << 40, n, c->in[ROW].type, c->in[ROW].data,
                            c->in[COL].data };

    for (int i = START; i <= ORDER; i++)
        if (!plain_new(WEFT_I64, 1, &shape[i], &c->out[i])) {
            refuse(c, "out of memory");
            return;
        }
    if (weft_rows_make(ctx, &list, 0, c->out[START].data, c->out[INDEX].data, c->out[ORDER].data) !=
        WEFT_OK)
        refuse(c, weft_message(ctx));
}

void op_coo_rows(Value *stack, uint64_t nargs, uint64_t nresults)
{
    Call c = { .rows = (int64_t)stack[2] };
    const char *why = NULL, *packed;
    weft_ctx *ctx;

    (void)nargs;
    (void)nresults;
    for (int i = ROW; i <= COL; i++)
        if (!plain_take((AtenTensor *)(uintptr_t)stack[i], &c.in[i], &why))
            refuse(&c, why);
    if (c.message[0] == 0 && (packed = plain_pack(c.in, 2)) != NULL)
        refuse(&c, packed);
    if (c.message[0] == 0)
        check(&c);
    if (c.message[0] == 0) {
        ctx = state_enter();
        if (ctx != NULL)
            sort(&c, ctx);
        else
            refuse(&c, "out of memory");
        state_leave();
    }
    if (c.message[0] == 0)
        stack[0] = list_give(c.out, 3);
    plain_free(c.in, 2);
    plain_free(c.out, 3);
    if (c.message[0] != 0)
        op_fail(c.message);
}
