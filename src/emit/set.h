/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What kernels that build an axis begin with: a set of keys, in a thread's scratch memory, which is
 * emptied in ascending order.  Up to some number of keys it is bits: a tree of words, each bit of
 * an upper one telling that the word below it is not 0.  Beyond that it is a list that is sorted
 * when it is full, and can be too short.  Stands after simd.h. */
#ifndef WEFT_SET_H
#define WEFT_SET_H

enum { WEFT_SET_LEVELS = 11, WEFT_SET_TOP = 64 };

typedef struct weft_set { /* a value: what changes is in the scratch memory */
    uint64_t *bits[WEFT_SET_LEVELS]; /* of keys; then of the words before, down to a few */
    int top;
    int64_t words; /* of the last */
    int64_t *n, *list, *spare, room; /* room 0: it is bits */
    int fill;                        /* the entries are written; else only counted */
    int ncoord;
    const int64_t *bound; /* of each coordinate, which are the digits of a key */
} weft_set;

/* how: room, fill, the number of keys, the bound of each coordinate. */
WEFT_FN weft_set weft_set_open(void *work, const int64_t *how, int ncoord)
{
    weft_set s = { .room = how[0], .fill = how[1] != 0, .bound = how + 3, .ncoord = ncoord };
    int64_t words = (how[2] + 63) / 64;
    uint64_t *at = (uint64_t *)work;

    s.n = (int64_t *)work;
    s.list = s.n + 1;
    s.spare = s.list + s.room;
    s.bits[0] = at;
    while (s.room == 0 && words > WEFT_SET_TOP) {
        s.bits[++s.top] = at += words;
        words = (words + 63) / 64;
    }
    s.words = words;
    return s;
}

/* The list in ascending order, each key once. */
static WEFT_USED void weft_set_sort(const weft_set s)
{
    int64_t *a = s.list, *b = s.spare, n = *s.n, m = 0;

    for (int64_t w = 1; w < n; w *= 2) {
        int64_t *t = a;

        for (int64_t from = 0; from < n; from += 2 * w) {
            int64_t i = from, j = n - from > w ? from + w : n, to = from;
            int64_t mid = j, end = n - from > 2 * w ? from + 2 * w : n;

            while (i < mid || j < end)
                b[to++] = j == end || (i < mid && a[i] <= a[j]) ? a[i++] : a[j++];
        }
        a = b;
        b = t;
    }
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || a[i] != s.list[m - 1])
            s.list[m++] = a[i];
    *s.n = m;
}

static WEFT_USED int weft_set_append(const weft_set s, int64_t key)
{
    if (*s.n == s.room) {
        weft_set_sort(s);
        if (*s.n > s.room / 2)
            return 1;
    }
    s.list[(*s.n)++] = key;
    return 0;
}

/* 1: there is no room.  Without a branch that depends on the key: keys come from far away, and
 * while one is waited for the next ones can be on their way. */
WEFT_FN int weft_set_add(const weft_set s, int64_t key)
{
    uint64_t at = (uint64_t)key;

    if (s.room > 0)
        return weft_set_append(s, key);
    for (int l = 0; l <= s.top; l++, at >>= 6)
        s.bits[l][at >> 6] |= UINT64_C(1) << (at & 63);
    return 0;
}

/* Takes out the lowest word of bits that is not 0, below this one of the last; 0: there is none. */
WEFT_FN uint64_t weft_set_word(const weft_set s, int64_t last, int64_t *at)
{
    uint64_t i = (uint64_t)last, word;

    for (int l = s.top; l > 0; l--) {
        word = s.bits[l][i];
        if (word == 0)
            return 0;
        i = i * 64 + (uint64_t)__builtin_ctzll(word);
    }
    *at = (int64_t)i;
    word = s.bits[0][i];
    s.bits[0][i] = 0;
    for (int l = 1; l <= s.top; l++) {
        uint64_t *above = &s.bits[l][i >> 6];

        *above &= ~(UINT64_C(1) << (i & 63));
        if (*above != 0)
            break;
        i >>= 6;
    }
    return word;
}

/* An entry by its key: its coordinates to position p; where rows are in the key, its row counts. */
WEFT_FN void weft_set_put(const weft_set s, int64_t key, int64_t p, int whole, int64_t *start,
                          int64_t *const *coord)
{
    for (int k = s.ncoord - 1; k >= 0; k--) {
        int64_t digit = k > 0 || whole ? key % s.bound[k] : key;

        if (s.fill)
            coord[k][p] = digit;
        if (k > 0 || whole)
            key /= s.bound[k];
    }
    if (whole && !s.fill)
        start[key + 1]++;
}

/* Empties the set to positions from p on; how many there are. */
static WEFT_USED int64_t weft_set_drain(const weft_set s, int64_t p, int whole, int64_t *start,
                                        int64_t *const *coord)
{
    uint64_t word;
    int64_t at, n = 0;

    if (s.room > 0) {
        weft_set_sort(s);
        for (int64_t i = 0; i < *s.n && (whole || s.fill); i++)
            weft_set_put(s, s.list[i], p++, whole, start, coord);
        n = *s.n;
        *s.n = 0;
        return n;
    }
    for (int64_t i = 0; i < s.words; i++)
        while ((word = weft_set_word(s, i, &at)) != 0) {
            n += __builtin_popcountll(word);
            for (; word != 0 && (whole || s.fill); word &= word - 1)
                weft_set_put(s, at * 64 + __builtin_ctzll(word), p++, whole, start, coord);
        }
    return n;
}

/* The set is all entries below one position of the parent. */
WEFT_FN void weft_set_row(const weft_set s, int64_t row, int64_t *start, int64_t *const *coord)
{
    int64_t n = weft_set_drain(s, s.fill ? start[row] : 0, 0, start, coord);

    if (!s.fill)
        start[row + 1] = n;
}

/* The set is all entries of the axis, their rows in the keys. */
WEFT_FN void weft_set_all(const weft_set s, int64_t *start, int64_t *const *coord)
{
    weft_set_drain(s, 0, 1, start, coord);
}

#endif
