/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Scratch memory for the sets of keys (emit/set.h) from which a run builds the structure of an
 * axis, and the sum of counts that gives starts. */
#include "run/run.h"

/* Bits are faster by far; this many keys are 16 MB of them. */
#define MOST_BITS (INT64_C(1) << 27)

enum { FIRST_ROOM = 4096, GROWTH = 8, TOP_WORDS = 64 };

int64_t run_set_room(int64_t keys, int64_t had)
{
    int64_t room;

    if (keys <= MOST_BITS)
        return 0;
    if (had <= 0)
        return FIRST_ROOM;
    return int_mul(had, GROWTH, &room) ? INT64_MAX : room;
}

int64_t run_set_bytes(int64_t keys, int64_t room)
{
    int64_t bytes = 0, words = keys / 64 + (keys % 64 != 0); /* not speed: bits */

    if (room > 0) { /* how many there are, the list, and as much to sort it */
        bool over = int_mul(room, 2 * (int64_t)sizeof(int64_t), &bytes);

        return over || int_add(bytes, sizeof(int64_t), &bytes) ? -1 : bytes;
    }
    for (; words > TOP_WORDS; words = (words + 63) / 64) /* not speed: bits */
        bytes += words * (int64_t)sizeof(uint64_t);
    return bytes + (words + 1) * (int64_t)sizeof(uint64_t);
}

void run_sum_starts(int64_t *start, int64_t n)
{
    start[0] = 0;
    for (int64_t i = 0; i < n; i++)
        start[i + 1] += start[i];
}
