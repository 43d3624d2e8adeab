/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/run/split.c: the cuts cover the range once, balance it, and depend on nothing but structure
 * and grain. */
#include "run/run.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_ROWS = 3000 };

static int64_t start8[MAX_ROWS + 1];
static int32_t start4[MAX_ROWS + 1];

static RunPhase phase_of(int64_t n, int64_t grain)
{
    return (RunPhase){ .n = n, .balance = start8, .balance_bytes = 8, .grain = grain };
}

static uint64_t row_work(const RunPhase *p, int64_t i)
{
    const int64_t *start = p->balance;

    return start == NULL ? 1 : (uint64_t)(start[i + 1] - start[i]) + RUN_ROW_WORK;
}

static uint64_t range_work(const RunPhase *p, int64_t begin, int64_t end)
{
    uint64_t sum = 0;

    for (int64_t i = begin; i < end; i++)
        sum += row_work(p, i);
    return sum;
}

static uint64_t largest_row(const RunPhase *p, int64_t begin, int64_t end)
{
    uint64_t most = 0;

    for (int64_t i = begin; i < end; i++)
        most = row_work(p, i) > most ? row_work(p, i) : most;
    return most;
}

/* All that run.h promises of one phase. */
static void check_split(const RunPhase *p)
{
    int64_t nchunk = run_chunks(p), last = 0;
    uint64_t all = range_work(p, 0, p->n), w = largest_row(p, 0, p->n), share;

    CHECK(nchunk >= 1 && nchunk <= RUN_MAX_CHUNKS);
    CHECK(p->n == 1 || nchunk == RUN_MAX_CHUNKS || (uint64_t)(nchunk * p->grain) >= all);
    CHECK((uint64_t)((nchunk - 1) * p->grain) < all);
    share = all / (uint64_t)nchunk + 1;
    for (int64_t c = 0; c < nchunk; c++) {
        int64_t begin = run_cut(p, nchunk, c), end = run_cut(p, nchunk, c + 1);
        uint64_t work = range_work(p, begin, end);

        CHECK_EQ(begin, last);
        CHECK(end >= begin);
        if (end - begin > 1) {
            CHECK(work <= 3 * share);
            CHECK(largest_row(p, begin, end) <= 2 * share);
        }
        CHECK(work <= share + w);
        last = end;
    }
    CHECK_EQ(last, p->n);
}

static int64_t random_length(uint64_t *seed, int kind)
{
    uint64_t r = test_random(seed);

    switch (kind) {
    case 0: return 0;
    case 1: return (int64_t)(r % 20);
    case 2: return r % 50 == 0 ? (int64_t)(r % 5000) : (int64_t)(r % 3); /* skewed */
    case 3: return r % 500 == 0 ? 1000000 : 0;                           /* few giants */
    default: return (int64_t)1 << (r % 12);
    }
}

TEST(random_structures_are_covered_once_and_balanced)
{
    uint64_t seed = 1;

    for (int64_t k = test_scale(3000); k > 0; k--) {
        int kind = (int)(test_random(&seed) % 5);
        int64_t n = 1 + (int64_t)(test_random(&seed) % (k % 10 == 0 ? MAX_ROWS : 60));
        int64_t grain = 1 + (int64_t)(test_random(&seed) % (k % 3 == 0 ? 20 : 5000));
        RunPhase p = phase_of(n, grain);

        start8[0] = (int64_t)(test_random(&seed) % 3); /* a slice of a larger array */
        for (int64_t i = 0; i < n; i++)
            start8[i + 1] = start8[i] + random_length(&seed, kind);
        check_split(&p);
    }
}

TEST(rows_without_a_start_array_are_cut_evenly)
{
    uint64_t seed = 2;

    for (int k = 0; k < 300; k++) {
        RunPhase p = { .n = 1 + (int64_t)(test_random(&seed) % MAX_ROWS) };
        int64_t nchunk;

        p.grain = 1 + (int64_t)(test_random(&seed) % 100);
        check_split(&p);
        nchunk = run_chunks(&p);
        for (int64_t c = 0; c < nchunk; c++) {
            int64_t rows = run_cut(&p, nchunk, c + 1) - run_cut(&p, nchunk, c);

            CHECK(rows == p.n / nchunk || rows == p.n / nchunk + 1);
        }
    }
}

TEST(thirty_two_and_sixty_four_bit_start_arrays_give_the_same_cuts)
{
    uint64_t seed = 3;
    RunPhase p8 = phase_of(MAX_ROWS, 100), p4 = p8;

    p4.balance = start4;
    p4.balance_bytes = 4;
    for (int64_t i = 0; i < MAX_ROWS; i++) {
        start8[i + 1] = start8[i] + random_length(&seed, 2);
        start4[i + 1] = (int32_t)start8[i + 1];
    }
    start4[0] = (int32_t)start8[0];
    CHECK_EQ(run_chunks(&p4), run_chunks(&p8));
    for (int64_t c = 0; c <= run_chunks(&p8); c++)
        CHECK_EQ(run_cut(&p4, run_chunks(&p4), c), run_cut(&p8, run_chunks(&p8), c));
}

TEST(a_row_of_a_million_entries_is_a_chunk_of_its_own)
{
    RunPhase p = phase_of(1000, 1000);
    int64_t nchunk;
    bool seen = false;

    for (int64_t i = 0; i <= 1000; i++)
        start8[i] = i * 10 + (i > 357 ? 1000000 : 0);
    nchunk = run_chunks(&p);
    CHECK_EQ(nchunk, (1000 * 12 + 1000000) / 1000);
    for (int64_t c = 0; c < nchunk; c++)
        seen |= run_cut(&p, nchunk, c) == 357 && run_cut(&p, nchunk, c + 1) == 358;
    CHECK(seen);
    check_split(&p);
}

TEST(empty_rows_are_work_too)
{
    RunPhase p = phase_of(2000, 100);

    memset(start8, 0, sizeof start8);
    CHECK_EQ(run_chunks(&p), 2000 * RUN_ROW_WORK / 100);
    CHECK_EQ(run_cut(&p, 40, 1), 50);
    CHECK_EQ(run_cut(&p, 40, 39), 1950);
}

TEST(no_rows_one_row_and_serial_phases)
{
    RunPhase p = phase_of(0, 1);

    start8[0] = 0;
    start8[1] = 1000000;
    start8[2] = 2000000;
    CHECK_EQ(run_chunks(&p), 0);
    p.n = -5;
    CHECK_EQ(run_chunks(&p), 0);
    p.n = 1;
    CHECK_EQ(run_chunks(&p), 1);
    CHECK_EQ(run_cut(&p, 1, 0), 0);
    CHECK_EQ(run_cut(&p, 1, 1), 1);
    p.n = 2;
    CHECK_EQ(run_chunks(&p), RUN_MAX_CHUNKS);
    p.serial = true;
    CHECK_EQ(run_chunks(&p), 1);
    CHECK_EQ(run_cut(&p, 1, 1), 2);
}

TEST(the_grain_has_a_default_and_the_number_of_chunks_a_limit)
{
    RunPhase p = { .n = 10 * RUN_GRAIN };

    CHECK_EQ(run_chunks(&p), 10);
    p.n = RUN_GRAIN;
    CHECK_EQ(run_chunks(&p), 1);
    p.n = RUN_GRAIN + 1;
    CHECK_EQ(run_chunks(&p), 2);
    p.n = (int64_t)1 << 40;
    p.grain = 1;
    CHECK_EQ(run_chunks(&p), RUN_MAX_CHUNKS);
    CHECK_EQ(run_cut(&p, RUN_MAX_CHUNKS, 1), ((int64_t)1 << 40) / RUN_MAX_CHUNKS);
    p.n = INT64_MAX;
    CHECK_EQ(run_chunks(&p), RUN_MAX_CHUNKS);
    CHECK_EQ(run_cut(&p, RUN_MAX_CHUNKS, RUN_MAX_CHUNKS), INT64_MAX);
    CHECK(run_cut(&p, RUN_MAX_CHUNKS, RUN_MAX_CHUNKS - 1) > INT64_MAX / RUN_MAX_CHUNKS * 4094);
}

TEST(entries_past_2_to_the_31_and_near_2_to_the_63)
{
    RunPhase p = phase_of(1000, (int64_t)1 << 30);

    for (int64_t i = 0; i <= 1000; i++)
        start8[i] = i << 30;
    CHECK_EQ(run_chunks(&p), 1001);
    check_split(&p);
    start8[999] = INT64_MAX - 7;
    start8[1000] = INT64_MAX;
    CHECK_EQ(run_chunks(&p), RUN_MAX_CHUNKS);
    CHECK_EQ(run_cut(&p, RUN_MAX_CHUNKS, 1), 998); /* row 998 has nearly all */
    CHECK_EQ(run_cut(&p, RUN_MAX_CHUNKS, RUN_MAX_CHUNKS - 1), 999);
}

/* Each round is cut as the rows alone would be, one after the other. */
static void check_rounds(RunPhase p, int64_t rounds)
{
    int64_t rows = p.n, alone, all;
    RunPhase one = p;

    p.n *= rounds;
    p.rounds = rounds;
    all = run_chunks(&p);
    CHECK_EQ(all % rounds, 0);
    alone = all / rounds;
    CHECK(alone >= 1 && (all <= RUN_MAX_CHUNKS || alone == 1));
    CHECK(alone == run_chunks(&one) || (alone + 1) * rounds > RUN_MAX_CHUNKS);
    for (int64_t c = 0; c <= all; c++)
        CHECK_EQ(run_cut(&p, all, c), c / alone * rows + (c < all ? run_cut(&one, alone, c % alone)
                                                                  : 0));
}

TEST(rounds_over_the_rows_are_cut_alike)
{
    uint64_t seed = 5;

    for (int64_t k = test_scale(300); k > 0; k--) {
        int kind = (int)(test_random(&seed) % 5);
        RunPhase p = phase_of(2 + (int64_t)(test_random(&seed) % 60),
                              1 + (int64_t)(test_random(&seed) % 5000));

        start8[0] = 0;
        for (int64_t i = 0; i < p.n; i++)
            start8[i + 1] = start8[i] + random_length(&seed, kind);
        check_rounds(p, 1 + (int64_t)(test_random(&seed) % (k % 5 == 0 ? 6000 : 9)));
        p.balance = NULL;
        check_rounds(p, 1 + (int64_t)(test_random(&seed) % 9));
    }
}

TEST(iterations_of_a_part_are_one_chunk)
{
    static const int64_t part[] = { 0, 0, 0, 1, 2, 2, 2, 2 };
    static const int64_t cut[] = { 0, 3, 4, 8 };
    RunPhase p = { .n = 8, .part = part, .grain = 1 };

    CHECK_EQ(run_chunks(&p), 3);
    for (int64_t c = 0; c <= 3; c++)
        CHECK_EQ(run_cut(&p, 3, c), cut[c]);
    p.n = 3;
    CHECK_EQ(run_chunks(&p), 1);
    CHECK_EQ(run_cut(&p, 1, 1), 3);
    p.n = 0;
    CHECK_EQ(run_chunks(&p), 0);
}

TEST(a_serial_phase_of_several_rounds_is_one_chunk)
{
    RunPhase p = { .n = 12, .rounds = 3, .serial = true };

    CHECK_EQ(run_chunks(&p), 1);
    CHECK_EQ(run_cut(&p, 1, 0), 0);
    CHECK_EQ(run_cut(&p, 1, 1), 12);
}

TEST(rows_past_2_to_the_31)
{
    int64_t n = ((int64_t)1 << 31) + 4096, last = 0;
    size_t bytes = (size_t)(n + 1) * sizeof(int32_t);
    RunPhase p = { .n = n, .balance_bytes = 4, .grain = 1 };
    void *zeros = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (zeros == MAP_FAILED)
        test_skip("no room to map 8 GB");
    p.balance = zeros;
    for (int64_t c = 0; c <= RUN_MAX_CHUNKS; c++) {
        int64_t cut = run_cut(&p, RUN_MAX_CHUNKS, c);

        CHECK(c == 0 || (cut > last && cut - last <= n / RUN_MAX_CHUNKS + 1));
        last = cut;
    }
    munmap(zeros, bytes);
    CHECK_EQ(last, n);
}
