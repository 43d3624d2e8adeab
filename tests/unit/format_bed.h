/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random matrices and uses of every format, for the tests of format/. */
#ifndef WEFT_FORMAT_BED_H
#define WEFT_FORMAT_BED_H

#include "format/format.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <stdio.h>
#include <string.h>

enum { FMT_MOST_ENTRIES = 400 };

typedef struct Entries { /* coordinates of a random tensor */
    FmtEntries e;
    int64_t at[3][FMT_MOST_ENTRIES];
    int32_t narrow[3][FMT_MOST_ENTRIES]; /* the same, when e is of these */
    bool twice; /* two entries are at one place */
} Entries;

/* A format with parameters that any matrix fits, drawn at random. */
typedef struct FormatCase {
    const char *spec; /* # a number from 1 to 5, $ one of 0 to 3 */
    int ncoord;
    bool twice; /* holds two entries at one place, */
    bool rest;  /* or a part of it does */
} FormatCase;

static const FormatCase format_case[] = {
    { "csr()", 2, true, false },
    { "csc()", 2, true, false },
    { "coo()", 2, true, false },
    { "dcsr()", 2, true, false },
    { "ell(0)", 2, true, false },
    { "sell(#, #)", 2, true, false },
    { "bsr(#, #)", 2, false, true },
    { "dbsr(#, #)", 2, false, true },
    { "sr_bcrs(#, #)", 2, false, true },
    { "dia()", 2, false, false },
    { "band(20, 20)", 2, false, false },
    { "n_m(400, #)", 2, true, false },
    { "ragged()", 2, false, false },
    { "padded_csr(#)", 2, true, false },
    { "hyb(#, $)", 2, true, false },
    { "band_rest($)", 2, false, true },
    { "blocks_rest(#, #, #)", 2, false, true },
    { "csf()", 3, true, false },
    { "hyb3(#, $)", 3, true, false },
};
enum { NFORMATS = sizeof format_case / sizeof *format_case };

static inline int64_t fmt_draw(uint64_t *seed, int64_t n)
{
    return n <= 0 ? 0 : (int64_t)(test_random(seed) % (uint64_t)n);
}

static inline const char *fmt_spec(const FormatCase *c, uint64_t *seed, char *out)
{
    char *to = out;

    for (const char *s = c->spec; *s != '\0'; s++)
        if (*s == '#' || *s == '$')
            to += sprintf(to, "%d", (int)(*s == '#' ? 1 + fmt_draw(seed, 5) : fmt_draw(seed, 4)));
        else
            *to++ = *s;
    *to = '\0';
    return out;
}

static inline void note_twice(Entries *m)
{
    m->twice = false;
    for (int64_t a = 0; a < m->e.n; a++)
        for (int64_t b = 0; b < a; b++) {
            bool same = true;

            for (int k = 0; k < m->e.ncoord; k++)
                same = same && m->at[k][a] == m->at[k][b];
            m->twice = m->twice || same;
        }
}

/* e has what `at` holds, in 64 bits or in 32. */
static inline void fmt_bind(Entries *m, bool narrow)
{
    for (int k = 0; k < 3; k++) {
        for (int64_t e = 0; e < m->e.n; e++)
            m->narrow[k][e] = (int32_t)m->at[k][e];
        m->e.coord[k] = narrow ? (Array){ m->narrow[k], m->e.n, T_i32 }
                               : (Array){ m->at[k], m->e.n, T_i64 };
    }
}

/* Sorted by rows or not, with entries at one place or not; the first few are empty, without rows,
 * of one row, with one dense row. */
static inline void fmt_random(Entries *m, uint64_t *seed, int ncoord, int kind, bool twice)
{
    int64_t most;

    *m = (Entries){ .e = { .ncoord = ncoord } };
    for (int k = 0; k < ncoord; k++)
        m->e.bound[k] = 1 + fmt_draw(seed, 20);
    if (kind == 1)
        m->e.bound[0] = 0;
    if (kind == 2)
        m->e.bound[0] = 1;
    most = kind < 2 ? 0 : fmt_draw(seed, 60);
    for (int64_t e = 0; e < most; e++) {
        for (int k = 0; k < ncoord; k++)
            m->at[k][e] = kind == 3 && k == 0 ? m->e.bound[0] / 2 : fmt_draw(seed, m->e.bound[k]);
        m->e.n = e + 1;
        if (!twice) {
            note_twice(m);
            m->e.n -= m->twice;
            if (m->twice)
                break;
        }
    }
    note_twice(m);
    fmt_bind(m, kind % 2 == 1);
}

#endif
