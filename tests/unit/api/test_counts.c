/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Counts that no memory holds are refused by every public function that takes one, without
 * arithmetic that overflows. */
#include "unit/kernel_bed.h"

static const int64_t huge[] = { INT64_MAX, INT64_MAX - 1, (int64_t)1 << 62, (int64_t)1 << 48 };

enum { HUGE_COUNTS = sizeof huge / sizeof *huge };

/* The call must fail, and say why. */
#define REFUSED(call)                          \
    do {                                       \
        CHECK((call) != WEFT_OK);              \
        CHECK(weft_message(ctx)[0] != 0);      \
    } while (0)

TEST(lists_of_too_many_edges_are_refused)
{
    static const int64_t end[1] = { 0 };
    weft_edges *e;

    open_prog(spmm);
    for (int i = 0; i < HUGE_COUNTS; i++) {
        weft_edge_list nodes = { huge[i], 1, 1, WEFT_I64, end, end }, senders = nodes, n = nodes;

        senders.nodes = n.nodes = 1;
        senders.senders = huge[i];
        n.n = huge[i];
        BAD(weft_edges_new(ctx, &nodes, &e), WEFT_E_LIMIT, "rows; kernels take sizes below 2^48");
        BAD(weft_edges_new(ctx, &senders, &e), WEFT_E_LIMIT, "senders");
        BAD(weft_edges_new(ctx, &n, &e), WEFT_E_LIMIT, "edges");
        CHECK(e == NULL);
    }
    close_prog();
}

TEST(sizes_and_shapes_that_are_too_large_are_refused)
{
    float one[1] = { 0 };
    int64_t shape[2];

    set_cache();
    for (int i = 0; i < HUGE_COUNTS; i++) {
        weft_tensor b = tensor(one, WEFT_F32, 2, SHAPE(huge[i], huge[i]));

        open_prog(spmm);
        REFUSED(weft_args_bind(args, "B", &b));
        OK(weft_args_size(args, "m", huge[i]));
        OK(weft_args_size(args, "n", huge[i]));
        OK(weft_args_size(args, "f", huge[i]));
        (void)!weft_args_shape(args, "B", shape);
        REFUSED(weft_run(args));
        close_prog();
    }
}

TEST(graphs_and_atoms_that_are_too_large_are_refused)
{
    static const char *const graph[] = {
        "uniform:n=9223372036854775807:nnz=8", "uniform:n=8:nnz=9223372036854775807",
        "banded:n=9223372036854775807:w=3", "banded:n=9223372036854775807:w=9223372036854775807",
        "powerlaw:n=9223372036854775807:nnz=9223372036854775807:a=2.1:max=300",
        "rmat:n=9223372036854775807:nnz=9223372036854775807:a=0.57:b=0.19:c=0.19",
    };
    static const char *const crystal[] = {
        "crystal:silicon:repeat=9223372036854775807", "water:molecules=9223372036854775807",
        "crystal:nacl:n1=9223372036854775807:n2=9223372036854775807:n3=2",
    };
    weft_graph g;
    weft_atoms a;

    open_prog(spmm);
    for (size_t i = 0; i < sizeof graph / sizeof *graph; i++)
        REFUSED(weft_graph_make(ctx, graph[i], WEFT_I64, &g));
    for (size_t i = 0; i < sizeof crystal / sizeof *crystal; i++)
        REFUSED(weft_atoms_make(ctx, crystal[i], &a));
    close_prog();
}

TEST(too_many_atoms_and_rows_are_refused)
{
    double pos[3] = { 0, 0, 0 };
    weft_atoms a = { .pos = pos, .cell = { 1, 0, 0, 0, 1, 0, 0, 0, 1 } };
    const char *const coord[] = { "x" };
    weft_rows rows = { .axis = "Q", .coord = coord, .ncoord = 1, .table = (const int64_t[]){ 0 } };
    int64_t nnz;

    open_prog(spmm);
    for (int i = 0; i < HUGE_COUNTS; i++) {
        a.n = rows.n = huge[i];
        REFUSED(weft_neighbours_find(ctx, &a, 1, &nnz));
        REFUSED(weft_prog_rows(prog, &rows));
    }
    close_prog();
}
