/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The reader of XYZ files under the fuzzing driver: what it accepts reads back the same after it
 * was printed. */
#include "fuzz/fuzz.h"
#include "io/io.h"
#include "unit/trap.h"

#include <math.h>
#include <string.h>

static void check_same(const IoAtoms *a, const IoAtoms *b)
{
    FUZZ_CHECK(a->n == b->n && a->kinds == b->kinds);
    FUZZ_CHECK(memcmp(a->pbc, b->pbc, sizeof a->pbc) == 0);
    for (int k = 0; k < 9; k++)
        FUZZ_CHECK(a->cell[k] == b->cell[k]);
    for (int64_t i = 0; i < a->n; i++) {
        FUZZ_CHECK(a->kind[i] == b->kind[i] && a->kind[i] >= 0 && a->kind[i] < a->kinds);
        FUZZ_CHECK(strcmp(a->name[a->kind[i]], b->name[b->kind[i]]) == 0);
        for (int d = 0; d < 3; d++)
            FUZZ_CHECK(isfinite(a->pos[3 * i + d]) && a->pos[3 * i + d] == b->pos[3 * i + d]);
    }
}

int fuzz_xyz(const uint8_t *p, size_t n)
{
    Err err = { 0 };
    Arena arena;
    IoAtoms a, again;
    Text t = { .arena = &arena };
    Status s;

    arena_init(&arena, &os_libc, &err);
    s = CATCH(&err, io_xyz_parse(&arena, (Bytes){ p, n }, "fuzz", &a));
    if (s == ST_OK) {
        s = CATCH(&err, io_xyz_print(&t, &a);
                  io_xyz_parse(&arena, (Bytes){ (const uint8_t *)t.s, t.n }, "again", &again));
        FUZZ_CHECK(s == ST_OK);
        check_same(&a, &again);
    } else {
        FUZZ_CHECK(err.line > 0 && err.msg[0] != 0 && (s == ST_PARSE || s == ST_LIMIT));
    }
    FUZZ_CHECK(arena.total <= FUZZ_MEMORY);
    arena_free(&arena);
    return s == ST_OK;
}

int fuzz_xyz_seed(int k, uint8_t *out)
{
    static const char *const seeds[] = {
        "3\nwater\nO 0 0 0\nH 0.9572 0 0\nH -0.24 0.93 0\n",
        "1\n\nAr 1e3 -2.5 .5 extra\n",
        "0\n",
        "2\nLattice=\"5.4 0 0 0 5.4 0 0 0 5.4\" Properties=species:S:1:pos:R:3 pbc=\"T T F\"\n"
        "Si 0 0 0\nSi 1.35 1.35 1.35\n",
        "1\r\nProperties=id:I:1:pos:R:3:species:S:1:ok:L:1 Lattice='1 0 0 0 1 0 0 0 1'\r\n"
        "7 0 0 0 H T\r\n",
        "1\nenergy=-1.5 note=\"a \\\" b\" list={1 2} flag pbc=\"false 0 F\"\nXe 1 2 3\n1\n\nXe 0 0 0\n",
    };

    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return -1;
    memcpy(out, seeds[k], strlen(seeds[k]));
    return (int)strlen(seeds[k]);
}
