/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/atoms.c and api/neighbours.c: what generators make, atoms and neighbours through files. */
#include "unit/api_bed.h"

#include "base/base.h"

#include <math.h>

static weft_atoms a;
static weft_neighbours e;

static void make(const char *spec)
{
    OK(weft_atoms_make(ctx, spec, &a));
}

static uint64_t digest(void)
{
    return hash_bytes(hash_bytes(0, a.pos, (size_t)a.n * 24), a.kind, (size_t)a.n * 4);
}

/* Each atom has `neighbours` others nearer than the cutoff, the nearest at this distance. */
static void crystal(const char *spec, int64_t n, double cutoff, int64_t neighbours, double nearest)
{
    double least = INFINITY;

    make(spec);
    CHECK_EQ(a.n, n);
    OK(weft_neighbours_make(ctx, &a, cutoff, WEFT_I32, &e));
    CHECK_EQ(e.n, n);
    for (int64_t i = 0; i < n && neighbours > 0; i++)
        CHECK_EQ(((int32_t *)e.start)[i + 1] - ((int32_t *)e.start)[i], neighbours);
    for (int64_t p = 0; p < e.nnz; p++)
        least = fmin(least, e.dist[p]);
    CHECK_NEAR(least, nearest, 1e-9);
}

TEST(crystals_have_the_neighbours_of_their_lattice)
{
    ctx = weft_ctx_new();
    crystal("crystal:silicon:repeat=2", 64, 2.5, 4, 5.431 * sqrt(3) / 4);
    crystal("crystal:silicon:a=4:n1=3:n3=2", 48, 2, 4, sqrt(3));
    CHECK_SAME(a.cell[0], 12.0);
    CHECK_SAME(a.cell[4], 4.0);
    CHECK_SAME(a.cell[8], 8.0);
    crystal("crystal:copper", 4, 3, 12, 3.615 / sqrt(2));
    crystal("crystal:iron:repeat=3", 54, 2.7, 8, 2.866 * sqrt(3) / 2);
    crystal("crystal:mgo", 8, 2.5, 6, 4.212 / 2);
    crystal("crystal:nacl:repeat=2", 64, 3, 6, 5.64 / 2);
    crystal("crystal:srtio3", 5, 2, 0, 3.905 / 2);
    CHECK_EQ(e.nnz, 12);
    CHECK_EQ(a.kinds, 3);
    CHECK_STR(a.name[1], "Ti");
    crystal("crystal:sio2", 24, 2, 0, 7.16 * sqrt(3) / 8);
    for (int64_t p = 0; p < e.nnz; p++) /* bonds are of silicon and oxygen */
        CHECK(a.kind[((int32_t *)e.receiver)[p]] != a.kind[((int32_t *)e.sender)[p]]);
    CHECK_EQ(e.nnz, 64);
    close_prog();
}

TEST(rattled_atoms_are_off_their_places_by_so_much)
{
    double sum = 0, square = 0;
    const double *still;
    weft_atoms b;
    weft_ctx *other;

    ctx = weft_ctx_new();
    other = weft_ctx_new();
    make("crystal:silicon:repeat=5:rattle=0.1:seed=4");
    CHECK_EQ(weft_atoms_make(other, "crystal:silicon:repeat=5", &b), WEFT_OK);
    still = b.pos;
    for (int64_t k = 0; k < 3 * a.n; k++) {
        sum += a.pos[k] - still[k];
        square += (a.pos[k] - still[k]) * (a.pos[k] - still[k]);
    }
    CHECK_NEAR(sum / (3 * (double)a.n), 0, 0.01);
    CHECK_NEAR(sqrt(square / (3 * (double)a.n)), 0.1, 0.01);
    weft_ctx_free(other);
    close_prog();
}

TEST(water_has_its_density_and_nothing_overlaps)
{
    static const int count[] = { 1, 2, 64, 65, 171, 500 };

    ctx = weft_ctx_new();
    for (size_t k = 0; k < sizeof count / sizeof *count; k++) {
        char spec[60];
        double volume;

        snprintf(spec, sizeof spec, "water:molecules=%d:seed=%d", count[k], (int)k);
        make(spec);
        CHECK_EQ(a.n, 3 * count[k]);
        volume = a.cell[0] * a.cell[4] * a.cell[8];
        /* grams of a molecule in A^3 to g/cm^3 */
        CHECK_NEAR(count[k] * 18.01528 / 6.02214076e23 / (volume * 1e-24), 1, 1e-4);
        OK(weft_neighbours_make(ctx, &a, 1.6, WEFT_I64, &e));
        CHECK_EQ(e.nnz, 6 * count[k]); /* of an atom the others of its molecule */
        for (int64_t p = 0; p < e.nnz; p++) {
            int64_t i = ((int64_t *)e.receiver)[p], j = ((int64_t *)e.sender)[p];

            CHECK_EQ(i / 3, j / 3);
            CHECK_NEAR(e.dist[p], a.kind[i] == a.kind[j] ? 1.5139 : 0.9572, 1e-4);
        }
    }
    close_prog();
}

TEST(a_spec_of_atoms_is_the_same_everywhere)
{
    ctx = weft_ctx_new();
    make("crystal:mgo:repeat=2:rattle=0.05:seed=3");
    CHECK(digest() == UINT64_C(0xca6e8021ae129929));
    make("water:molecules=10:seed=3");
    CHECK(digest() == UINT64_C(0xd0d66b62bb18146a));
    close_prog();
}

TEST(atoms_that_make_no_sense_are_not_made)
{
    static const char *const bad[][2] = {
        { "crystal", "this crystal is unknown" },
        { "crystal:", "this crystal is unknown" },
        { "crystal:silicone", "this crystal is unknown" },
        { "crystal:gold:repeat=2", "silicon, copper, iron" },
        { "crystal:silicon:repeat=0", "repeat must be an integer" },
        { "crystal:silicon:repeat=2:b=3", "b=3 is no parameter" },
        { "crystal:silicon:repeat=10000", "more than 2^31 atoms" },
        { "water", "molecules= is missing" },
        { "water:molecules=0", "molecules must be" },
        { "water:molecules=2:rattle=1", "rattle=1 is no parameter" },
        { "ice:molecules=2", "begin with a generator" },
        { "file.pdb", "ends in .xyz" },
        { "none.xyz", "cannot open" },
    };

    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(weft_atoms_make(ctx, bad[i][0], &a) != WEFT_OK);
        CHECK_HAS(weft_message(ctx), bad[i][1]);
    }
    BAD(weft_atoms_make(ctx, NULL, &a), WEFT_E_ARG, "the source is NULL");
    BAD(weft_atoms_make(ctx, "water", NULL), WEFT_E_ARG, "out is NULL");
    close_prog();
}

TEST(atoms_go_through_a_file)
{
    uint64_t first;

    ctx = weft_ctx_new();
    make("crystal:srtio3:n1=2:rattle=0.1");
    first = digest();
    OK(weft_atoms_write(ctx, &a, test_path("a.xyz")));
    make(test_path("a.xyz"));
    CHECK(digest() == first);
    CHECK_SAME(a.cell[0], 7.81);
    CHECK(a.pbc[0] == 1 && a.pbc[2] == 1);
    a.kind = NULL; /* atoms of no known kind */
    OK(weft_atoms_write(ctx, &a, test_path("b.xyz")));
    make(test_path("b.xyz"));
    CHECK_EQ(a.kinds, 1);
    CHECK_STR(a.name[0], "X");
    a.kinds = 0;
    BAD(weft_atoms_write(ctx, &a, test_path("b.xyz")), WEFT_E_ARG, "atom 0 has kind 0");
    a.kind = (int32_t[]){ -1, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    BAD(weft_atoms_write(ctx, &a, test_path("b.xyz")), WEFT_E_ARG, "atom 0 has kind -1");
    a.name = NULL;
    BAD(weft_atoms_write(ctx, &a, test_path("b.xyz")), WEFT_E_ARG, "name is NULL");
    BAD(weft_atoms_write(ctx, &a, test_path("b.pdb")), WEFT_E_ARG, "ends in .xyz");
    BAD(weft_atoms_write(ctx, NULL, "b.xyz"), WEFT_E_ARG, "the atoms is NULL");
    a = (weft_atoms){ 0 };
    OK(weft_atoms_write(ctx, &a, test_path("b.xyz")));
    a.n = -1;
    BAD(weft_atoms_write(ctx, &a, test_path("b.xyz")), WEFT_E_ARG, "-1 atoms");
    a.n = 1;
    BAD(weft_atoms_write(ctx, &a, test_path("b.xyz")), WEFT_E_ARG, "pos is NULL");
    close_prog();
}

TEST(neighbours_are_found_and_then_written_to_arrays_of_the_caller)
{
    double pos[] = { 0, 0, 0, 0.5, 0, 0, 5, 5, 5 };
    int32_t start[4], shift[6];
    int64_t sender[2], nnz;
    weft_graph g;

    ctx = weft_ctx_new();
    a = (weft_atoms){ .n = 3, .pos = pos };
    e = (weft_neighbours){ .type = WEFT_I32, .start = start };
    BAD(weft_neighbours_get(ctx, &e), WEFT_E_ARG, "there are no neighbours yet");
    BAD(weft_neighbours_write(ctx, "x.npz"), WEFT_E_ARG, "there are no neighbours yet");
    OK(weft_neighbours_find(ctx, &a, 1, &nnz));
    CHECK_EQ(nnz, 2);
    pos[3] = 100; /* the context has its own */
    OK(weft_neighbours_get(ctx, &e));
    CHECK_EQ(e.n, 3);
    CHECK_EQ(e.nnz, 2);
    CHECK_EQ(start[1], 1);
    CHECK_EQ(start[3], 2);
    e = (weft_neighbours){ .type = WEFT_I64, .sender = sender, .shift = shift };
    OK(weft_neighbours_get(ctx, &e));
    CHECK_EQ(sender[0], 1);
    CHECK_EQ(sender[1], 0);
    CHECK_EQ(shift[0], 0);
    BAD(weft_neighbours_find(ctx, &a, -1, &nnz), WEFT_E_ARG, "the cutoff is -1");
    OK(weft_neighbours_write(ctx, test_path("e.npz"))); /* of the last that succeeded */
    OK(weft_graph_make(ctx, test_path("e.npz"), WEFT_I64, &g));
    CHECK_EQ(g.nnz, 2);
    BAD(weft_neighbours_write(ctx, test_path("e.mtx")), WEFT_E_ARG, "ends in .npz");
    e.type = WEFT_F32;
    BAD(weft_neighbours_get(ctx, &e), WEFT_E_ARG, "WEFT_I32 or WEFT_I64");
    BAD(weft_neighbours_make(ctx, &a, 1, WEFT_F64, &e), WEFT_E_ARG, "WEFT_I32 or WEFT_I64");
    BAD(weft_neighbours_find(ctx, NULL, 1, &nnz), WEFT_E_ARG, "the atoms is NULL");
    BAD(weft_neighbours_get(ctx, NULL), WEFT_E_ARG, "to is NULL");
    close_prog();
}

TEST(neighbours_are_the_same_for_any_number_of_threads)
{
    uint64_t first = 0;

    ctx = weft_ctx_new();
    make("water:molecules=900");
    for (int threads = 1; threads <= 4; threads++) {
        uint64_t h;

        OK(weft_ctx_threads(ctx, threads));
        OK(weft_neighbours_make(ctx, &a, 6, WEFT_I32, &e));
        h = hash_bytes(0, e.sender, (size_t)e.nnz * 4);
        h = hash_bytes(h, e.shift, (size_t)e.nnz * 12);
        h = hash_bytes(h, e.vec, (size_t)e.nnz * 24);
        first = threads == 1 ? h : first;
        CHECK(h == first);
    }
    close_prog();
}
