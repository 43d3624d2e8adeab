/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/format: rules, their proof, and conversion there and back. */
#include "unit/format_bed.h"

#include "api/api_int.h"
#include "run/run.h"

#include <stdlib.h>

typedef struct Bench {
    Err err;
    Arena arena, scratch;
} Bench;

static void open_bench(Bench *b)
{
    memset(b, 0, sizeof *b);
    arena_init(&b->arena, &os_libc, &b->err);
    arena_init(&b->scratch, &os_libc, &b->err);
}

static void close_bench(Bench *b)
{
    arena_free(&b->arena);
    arena_free(&b->scratch);
}

/* Runs blocks from the last to the first: nothing may depend on their order. */
static void run_backwards(void *with, int64_t n, FmtTask *task, void *arg)
{
    (void)with;
    for (int64_t b = n - 1; b >= 0; b--)
        task(arg, b);
}
static const FmtPool backwards = { run_backwards, NULL };

/* To the format and back: the same entries, in the order of storage. */
static Status through(Bench *b, const char *spec, const Entries *from, int64_t *value, Entries *to)
{
    int64_t *coord[3] = { to->at[0], to->at[1], to->at[2] }, entry[FMT_MOST_ENTRIES], held = 0;
    int64_t out[FMT_MOST_ENTRIES];
    FmtUse *u = NULL;
    FmtParts *parts = NULL;
    Status st = CATCH(&b->err, u = fmt_use(&b->arena, spec);
                      parts = fmt_convert(&b->arena, &b->scratch, &backwards, u, &from->e));

    if (st != ST_OK)
        return st;
    for (int i = 0; i < parts->n; i++)
        held += parts->part[i].held;
    CHECK_EQ(held, from->e.n);
    *to = (Entries){ .e = from->e };
    CHECK_EQ(fmt_back(&b->arena, u, parts, &from->e, coord, entry), from->e.n);
    fmt_bind(to, from->e.coord[0].type == T_i64);
    for (int64_t e = 0; e < from->e.n; e++) {
        for (int k = 0; k < from->e.ncoord; k++)
            CHECK_EQ(to->at[k][e], from->at[k][entry[e]]);
        out[e] = value[entry[e]];
    }
    memcpy(value, out, (size_t)from->e.n * sizeof *out);
    return ST_OK;
}

/* Place and value of each entry, sorted: what a matrix is. */
typedef struct Cell {
    int64_t at[3], value;
} Cell;

static int by_cell(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    for (int k = 0; k < 4; k++)
        if (x[k] != y[k])
            return x[k] < y[k] ? -1 : 1;
    return 0;
}

static void cells(const Entries *m, const int64_t *value, Cell *out)
{
    for (int64_t e = 0; e < m->e.n; e++)
        out[e] = (Cell){ { m->at[0][e], m->at[1][e], m->at[2][e] }, value[e] };
    qsort(out, (size_t)m->e.n, sizeof *out, by_cell);
}

static void round_trip(const FormatCase *f, const FormatCase *g, uint64_t *seed, int kind)
{
    Bench b;
    char one[64], two[64];
    Entries m, first, second;
    int64_t value[FMT_MOST_ENTRIES];
    Cell before[FMT_MOST_ENTRIES], after[FMT_MOST_ENTRIES];

    open_bench(&b);
    fmt_random(&m, seed, f->ncoord, kind, f->twice && g->twice);
    for (int64_t e = 0; e < m.e.n; e++)
        value[e] = e + 1;
    cells(&m, value, before);
    if (through(&b, fmt_spec(f, seed, one), &m, value, &first) != ST_OK ||
        through(&b, fmt_spec(g, seed, two), &first, value, &second) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s, %s: %s", one, two, b.err.msg);
    cells(&second, value, after);
    CHECK(m.e.n == 0 || memcmp(before, after, (size_t)m.e.n * sizeof *before) == 0);
    close_bench(&b);
}

TEST(every_format_round_trips_every_other)
{
    uint64_t seed = 1;

    for (int f = 0; f < NFORMATS; f++)
        for (int g = 0; g < NFORMATS; g++)
            for (int k = 0; format_case[f].ncoord == format_case[g].ncoord && k < test_scale(200);
                 k++)
                round_trip(&format_case[f], &format_case[g], &seed, k % 8);
}

TEST(two_entries_at_one_place_are_kept_or_refused)
{
    uint64_t seed = 2;

    for (int f = 0; f < NFORMATS; f++)
        for (int k = 0; k < 50; k++) {
            Bench b;
            Entries m, to;
            int64_t value[FMT_MOST_ENTRIES] = { 0 };
            char spec[64];
            Status st;

            open_bench(&b);
            fmt_random(&m, &seed, format_case[f].ncoord, 4, true);
            st = through(&b, fmt_spec(&format_case[f], &seed, spec), &m, value, &to);
            if (format_case[f].twice || !m.twice)
                CHECK_EQ(st, ST_OK);
            else if (st != ST_OK)
                CHECK_HAS(b.err.msg, "have one position of axis");
            else
                CHECK(format_case[f].rest); /* they are in the part that can */
            close_bench(&b);
        }
}

static bool same_array(const Array *a, const Array *b)
{
    return a->n == b->n && a->type == b->type && (a->data == NULL) == (b->data == NULL) &&
           (a->data == NULL ||
            memcmp(a->data, b->data, (size_t)a->n * (size_t)ir_type[a->type].bytes) == 0);
}

static bool same_part(const FmtPart *a, const FmtPart *b)
{
    bool same = a->stored == b->stored && a->held == b->held && a->nlevel == b->nlevel &&
                same_array(&a->entry, &b->entry);

    for (int l = 0; l < a->nlevel && same; l++) {
        const FmtLevel *x = &a->level[l], *y = &b->level[l];

        same = x->total == y->total && x->width == y->width && same_array(&x->start, &y->start);
        for (int k = 0; k < x->ncoord && same; k++)
            same = same_array(&x->coord[k], &y->coord[k]);
    }
    return same;
}

/* Enough entries for many blocks, not sorted; places are different where the format wants that. */
static void make_many(Bench *b, FmtEntries *e, uint64_t *seed, int ncoord)
{
    int64_t n = 120000, *at[3];

    *e = (FmtEntries){ .n = n, .ncoord = ncoord };
    for (int k = 0; k < ncoord; k++) {
        at[k] = arena_array(&b->arena, n, sizeof **at);
        e->coord[k] = (Array){ at[k], n, T_i64 };
    }
    e->bound[0] = e->bound[1] = 500;
    e->bound[2] = 7;
    for (int64_t x = 0; x < n; x++) {
        int64_t place = x * 99991 % 250000; /* a permutation: 99991 is odd and no multiple of 5 */

        at[0][x] = place / 500;
        at[1][x] = place % 500;
        if (ncoord == 3)
            at[2][x] = fmt_draw(seed, 7);
    }
}

static FmtParts *convert_with(Bench *b, const char *spec, const FmtEntries *e, int threads)
{
    Pool *pool = NULL;
    FmtParts *parts = NULL;
    FmtPool workers;

    CHECK_EQ(CATCH(&b->err, pool = pool_new(&os_libc, &b->err, threads)), ST_OK);
    workers = api_workers(pool);
    if (CATCH(&b->err, parts = fmt_convert(&b->arena, &b->scratch, &workers,
                                           fmt_use(&b->arena, spec), e)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", spec, b->err.msg);
    pool_free(pool);
    return parts;
}

TEST(any_number_of_threads_gives_the_same_arrays)
{
    static const int threads[] = { 1, 2, 7 };
    uint64_t seed = 5;

    for (int f = 0; f < NFORMATS; f++) {
        Bench b;
        FmtEntries e;
        FmtParts *first = NULL;
        char spec[64];

        open_bench(&b);
        fmt_spec(&format_case[f], &seed, spec);
        if (strncmp(spec, "band(", 5) == 0)
            strcpy(spec, "band(499, 499)");
        if (strncmp(spec, "n_m(", 4) == 0)
            strcpy(spec, "n_m(20, 20)");
        make_many(&b, &e, &seed, format_case[f].ncoord);
        for (int t = 0; t < 3; t++) {
            FmtParts *parts = convert_with(&b, spec, &e, threads[t]);

            first = t == 0 ? parts : first;
            for (int i = 0; i < parts->n; i++)
                CHECK(same_part(&first->part[i], &parts->part[i]));
        }
        close_bench(&b);
    }
}

/* A use that is refused before any entry is looked at. */
static void refuses(const char *text, Status status, const char *why)
{
    Bench b;
    Status st;

    open_bench(&b);
    st = CATCH(&b.err, fmt_use(&b.arena, text));
    if (st != status || strstr(b.err.msg, why) == NULL)
        test_fail(__FILE__, __LINE__, "%d: %s\n%s", (int)st, b.err.msg, text);
    close_bench(&b);
}

TEST(an_inverse_that_is_not_one_is_refused)
{
    refuses("format f(b)\n"
            "axis IB = (m + b - 1) / b, JB(IB) = seg : load < n sorted unique\n"
            "axis BI(JB) = b : i = ib + b*bi < m, j = jb < n padded\n"
            "map ib = i / b, jb = j, bi = i % b\n"
            "f(4)",
            ST_CHECK, "coordinate i would come back as");
    refuses("format f()\naxis I = m, E(I) = seg : j < n\nmap j = j / 2\nf()", ST_CHECK,
            "coordinate j would come back as");
    refuses("format f()\naxis I = m, L(I) = n : j = l < n padded\nmap l = rank(i)\nf()", ST_CHECK,
            "coordinate j would come back as");
    refuses("format f(b)\naxis P = m / b + 2, Q(P) = b : i = b*p + q < m padded\n"
            "axis E(Q) = seg : j < n\nmap p = (i + 1) / b, q = i % b\nf(4)",
            ST_CHECK, "coordinate i would come back as");
    refuses("format f()\npart a where i < j\naxis I = m, E(I) = seg : j < n\n"
            "part b\naxis I = m, E(I) = seg : j = i < n\nmap e = 0\nf()",
            ST_CHECK, "part b: the axes do not reproduce");
}

TEST(divisions_that_are_the_same_are_found_to_be)
{
    static const char *const good[] = {
        "format f(b)\naxis IB = (m + b - 1) / b, BI(IB) = b : i = b*ib + bi < m padded\n"
        "axis E(BI) = seg : j < n\nmap ib = i / b, bi = i - i / b*b\nf(3)",
        "format f(b)\naxis P = (m + 5) / 6, Q(P) = 3, R(Q) = 2 : i = 6*p + 2*q + r < m padded\n"
        "axis E(R) = seg : j < n\nmap p = i / 2 / 3, q = i / 2 % 3, r = i % 2\nf(3)",
        "format f()\nfit d\naxis O = d : off sorted unique, R(O) = m : i = r, j = r - off(o) < n "
        "padded\nmap off = -(j - i), r = i\nf()",
    };

    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        Bench b;

        open_bench(&b);
        if (CATCH(&b.err, fmt_use(&b.arena, good[k])) != ST_OK)
            test_fail(__FILE__, __LINE__, "%s\n%s", b.err.msg, good[k]);
        close_bench(&b);
    }
}

TEST(a_rule_says_what_is_wrong_with_it)
{
    refuses("bsr", ST_ARG, "a format is written as");
    refuses("bsr(4)", ST_ARG, "format bsr has 2 parameters and not 1");
    refuses("bsr(4, x)", ST_ARG, "a format is written as");
    refuses("bsr(4, 4) and more", ST_ARG, "a format is written as");
    refuses("rsb(4, 4)", ST_ARG, "there is no format rsb");
    refuses("format f()\nf()", ST_PARSE, "a format needs axes");
    refuses("format f()\nbogus 3\nf()", ST_PARSE, "line 2: a line begins with");
    refuses("format f()\naxis I = m, E(I) = seg : j < n\nmap i = (j\nf()", ST_PARSE,
            "line 3: `)` is missing");
    refuses("format f()\naxis I = m, E(I) = seg\nf()", ST_CHECK, "which position an entry has");
    refuses("format f()\naxis I = m, J(I) = seg : load < n\nf()", ST_CHECK,
            "the last axis needs a name");
    refuses("format f()\naxis I = m, E = n : j < n\nf()", ST_CHECK, "each axis hangs on");
    refuses("format f()\naxis I = m, E(I) = seg : j < n\nmap x = j\nf()", ST_CHECK,
            "what no axis stores or counts: x");
    refuses("format f()\naxis I = m, E(I) = seg : k < n\nf()", ST_CHECK,
            "does not say what is stored as k");
    refuses("format f()\naxis J = n, E(J) = seg : k < n\nmap k = i\nf()", ST_CHECK,
            "no axis has the coordinate i");
    refuses("format f(a)\naxis I = m, E(I) = seg : j < n\nmap j = x\nf(1)", ST_CHECK,
            "there is no parameter or coordinate x");
    refuses("format f()\naxis I = m, E(I) = bogus : j < n\nf()", ST_CHECK, "bogus");
    refuses("format 4()\nf()", ST_PARSE, "a name is missing");
    refuses("format f(a b)\nf()", ST_PARSE, "`)` is missing");
    refuses("format f(a) b\nf()", ST_PARSE, "line 1: the line goes on after its end");
    refuses("format f()\nzeros 4\nf()", ST_PARSE, "line 2: the line goes on after its end");
    refuses("format f()\nmap e = min(1)\nf()", ST_PARSE, "fewer arguments");
    refuses("format f()\nmap e = abs(1, 2)\nf()", ST_PARSE, "more arguments");
    refuses("format f()\nmap e = index(i;)\nf()", ST_PARSE, "a name is missing");
    refuses("format f()\nmap e = index(i; j; i)\nf()", ST_PARSE, "index has one `;`");
    refuses("format f()\nmap e = rank(i; j)\nf()", ST_PARSE, "`,` is missing");
    refuses("format f()\nmap e = 99999999999999999999\nf()", ST_PARSE, "does not fit 64 bits");
    refuses("format f()\nmap e 4\nf()", ST_PARSE, "`=` is missing");
    refuses("format f()\nof i m\nf()", ST_PARSE, "`<` is missing");
    refuses("format f()\nzeros\npart a\nf()", ST_PARSE, "lines of a part before the first");
    refuses("format f()\nmap "
            "e23456789012345678901234567890123456789012345678901234567890123456789 = 1\nf()",
            ST_PARSE, "a name of more than 64 characters");
    refuses("format f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q)\nf()", ST_PARSE, "more than 16");
    refuses("format f()\nlet a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1\n"
            "f()",
            ST_PARSE, "more than 16");
    refuses("format f()\nof a<a,b<b,c<c,d<d,e<e,f<f,g<g,h<h,i<i,j<j,k<k,l<l,m<m,n<n,o<o,p<p,q<q\n"
            "f()",
            ST_PARSE, "more than 16 coordinates");
    refuses("format f()\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\n"
            "axis a\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\naxis a\nf()",
            ST_PARSE, "more than 16 lines of axes");
    refuses("format f()\nmap e = "
            "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1\nf()",
            ST_PARSE, "nests too deeply");
    refuses("format f()\nzeros\nf()", ST_CHECK, "a part needs axes");
    refuses("format f(k)\npart a for x in m\naxis I = m, E(I) = seg : j < n\nf(1)", ST_CHECK,
            "the number of parts is one of parameters");
    refuses("format f(k)\npart a for x in k\naxis I = m, E(I) = seg : j < n\nf(5000)", ST_LIMIT,
            "more than 4096 parts");
    refuses("format f()\nfit k\naxis I = k + 1, E(I) = seg : j < n\nf()", ST_CHECK,
            "only an extent can be a size that fits the data");
    refuses("bsr(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)", ST_ARG, "a format is written as");
    refuses("bsr(1 2)", ST_ARG, "a format is written as");
    refuses("\n\nformat f()\nzerosa\nf()", ST_PARSE, "a line begins with");
    refuses("format f()\naxis I = m, E(I) = built : j < n\nf()", ST_CHECK, "E");
    refuses("(4)", ST_ARG, "a format is written as");
}

/* One entry at each of (0, 0), (1, 5), (3, 2), in a matrix of 4 rows and 6 columns. */
static void cannot_hold(const char *text, const char *why)
{
    Bench b;
    int64_t row[] = { 0, 1, 3 }, col[] = { 0, 5, 2 };
    FmtEntries e = { .n = 3, .ncoord = 2, .bound = { 4, 6 },
                     .coord = { { row, 3, T_i64 }, { col, 3, T_i64 } } };

    open_bench(&b);
    CHECK_EQ(CATCH(&b.err,
                   fmt_convert(&b.arena, &b.scratch, NULL, fmt_use(&b.arena, text), &e)),
             ST_BIND);
    CHECK_HAS(b.err.msg, why);
    close_bench(&b);
}

TEST(entries_that_a_format_cannot_hold_are_named)
{
    cannot_hold("band(1, 1)", "entry 1 at i = 1, j = 5 would be at 5 of axis B, which has 3");
    cannot_hold("n_m(0, 4)", "entry 0 at i = 0, j = 0 would be at 0 of axis L, which has 0");
    cannot_hold("csf()", "entries with 3 coordinates, but these have 2");
    cannot_hold("format f()\npart a where i < 3\naxis I = m, E(I) = seg : j < n\nf()",
                "entry 2 at i = 3, j = 2 is in no part");
    cannot_hold("format f()\naxis I = m, E(I) = 1 : j < n\nmap e = rank(i)\nf()",
                "no entry is at position 2 of axis E, which is not padded");
    cannot_hold("format f()\naxis O = 1, E(O) = 3 : i < m, j < n padded\nmap o = 0, e = 0\nf()",
                "entry 0 at i = 0, j = 0 and entry 1 at i = 1, j = 5 have one position of axis E");
}

/* Rules that the library has none like: every operator in a condition, every way to a position. */
static const char *const own_rules[] = {
    "format f()\n"
    "part a where not (i < j) and abs(i - j) != 3 or min(i, j) == 2 and not i\n"
    "axis I = m, E(I) = seg : j < n sorted\n"
    "part b where max(i, -j) % 3 == 1 or bits(i + 1) >= 2 and exp2(j % 4) <= 4\n"
    "axis J = n, E(J) = seg : i < m sorted\n"
    "part c where i * j > 20 or -i * j < -90 or i / (j + 1) == 2 or count(i) == rank(j)\n"
    "axis I = m, E(I) = seg : j < n\n"
    "part d where abs(-j - 1) < 1 or exp2(j - 40) > 1\n"
    "axis I = m, E(I) = seg : j < n\n"
    "part e where 2 < 1\naxis I = m, E(I) = seg : j < n\n"
    "part f where i == i or 1 != 1\naxis I = m, E(I) = seg : j < n\nf()",
    "format f()\npart a where -i < 0\naxis I = m, E(I) = seg : j < n\n"
    "part b\naxis Z = 1, E(Z) = seg : i < m, j < n\nmap z = i\nf()",
    "format f()\npart a where i * j - -j >= 0 and (i == 3 or not (j != 2)) and "
    "exp2(bits(i + 1)) > 0 and max(min(i, 4), abs(i - 9)) >= 0 and abs(-i - 2) > 1 "
    "and -1 / (i + 1) < 0\n"
    "axis I = m, E(I) = seg : j < n sorted\n"
    "part b where i * 9000000000000000000 > 5\naxis I = m, E(I) = seg : j < n\n"
    "part c\naxis I = m, E(I) = seg : j < n\nf()",
    "format f()\npart a where j * 9000000000000000000 > 5\naxis I = m, E(I) = seg : j < n\n"
    "part b\naxis I = m, E(I) = seg : j < n\nf()",
    "format f()\nfit w\naxis I = m, E(I) = w : j < n sorted padded\nf()",
    "format f()\naxis I = m, E(I) = 60 : j < n sorted padded\nf()",
    "format f()\nfit k\naxis D = k : i < m, j < n sorted unique, E(D) = seg : o\nmap o = i\nf()",
    "format f()\nfit k\naxis D = k : s < m, t < n sorted unique, E(D) = one : i < m, j < n\n"
    "map s = i, t = j\nf()",
    "format f()\naxis P = 3 : x < 3 padded, E(P) = seg : i < m, j < n\n"
    "map p = i % 3, x = i % 3\nf()",
    "format f()\naxis O = 1, P(O) = seg : x < m padded, E(P) = seg : i < m, j < n\n"
    "map o = 0, p = i, x = i\nf()",
    "format f()\naxis O = 1, E(O) = seg : i < m, j < n padded\nmap o = 0, e = rank(0)\nf()",
    "format f()\naxis O = 1, P(O) = seg : x, E(P) = seg : i < m, j < n\n"
    "map o = 0, p = index(j), x = j\nf()",
};

/* With a coordinate in so many digits that the columns are wide, or not. */
static void through_own(const char *text, uint64_t *seed, int kind, int64_t scale)
{
    Bench b;
    Entries m, to;
    int64_t value[FMT_MOST_ENTRIES] = { 0 };

    open_bench(&b);
    fmt_random(&m, seed, 2, kind, false);
    for (int k = 0; k < 2 && scale > 1; k++) {
        m.e.bound[k] *= scale;
        for (int64_t e = 0; e < m.e.n; e++)
            m.at[k][e] *= scale;
    }
    fmt_bind(&m, scale == 1 && kind % 2 == 1);
    if (through(&b, text, &m, value, &to) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s\n%s", b.err.msg, text);
    close_bench(&b);
}

TEST(rules_of_ones_own_hold_every_entry)
{
    static const char *const far[] = {
        "coo()", "dcsr()",
        "format f()\nfit k\naxis D = k : i < m sorted unique, E(D) = seg : j < n sorted\nf()",
        "format f()\nfit k\naxis D = k : s < m, j < n sorted unique, E(D) = seg : i < m sorted\n"
        "map s = i / 1073741824\nf()",
        "format f()\npart a where count(j) > 1\nfit k\naxis D = k : j < n sorted unique, "
        "E(D) = seg : i < m\npart b\nfit k\naxis E = k : i < m, j < n\nf()",
    };
    uint64_t seed = 8;

    for (int k = 0; k < 16; k++) {
        for (size_t r = 0; r < sizeof own_rules / sizeof *own_rules; r++)
            through_own(own_rules[r], &seed, k % 8, 1);
        for (size_t r = 0; r < sizeof far / sizeof *far; r++)
            through_own(far[r], &seed, k % 8, k < 8 ? (int64_t)1 << 36 : (int64_t)1 << 20);
    }
}

TEST(entries_outside_their_bounds_do_not_exist)
{
    Bench b;
    int32_t row[] = { 0, -1, 3, 1, 2 }, col[] = { 0, 5, 2, 6, 1 };
    FmtEntries e = { .n = 5, .ncoord = 2, .bound = { 4, 6 },
                     .coord = { { row, 5, T_i32 }, { col, 5, T_i32 } } };
    static const char *const spec[] = { "csr()", "csc()", "bsr(2, 2)", "hyb(2, 1)", "dia()" };

    for (int k = 0; k < 5; k++) {
        FmtParts *parts = NULL;
        int64_t held = 0;

        open_bench(&b);
        CHECK_EQ(CATCH(&b.err, parts = fmt_convert(&b.arena, &b.scratch, NULL,
                                                   fmt_use(&b.arena, spec[k]), &e)),
                 ST_OK);
        for (int i = 0; i < parts->n; i++)
            held += parts->part[i].held;
        CHECK_EQ(held, 3);
        close_bench(&b);
    }
}

/* Of entries at (0, 0), (1, 5), (1, 5), (3, 2), the bounds so many times 4 and 6. */
static void stops(const char *text, int64_t times, Status status, const char *why)
{
    Bench b;
    int64_t row[] = { 0, 1, 1, 3 * times }, col[] = { 0, 5 * times, 5 * times, 2 };
    FmtEntries e = { .n = 4, .ncoord = 2, .bound = { 4 * times, 6 * times },
                     .coord = { { row, 4, T_i64 }, { col, 4, T_i64 } } };
    Status st;

    open_bench(&b);
    st = CATCH(&b.err, fmt_convert(&b.arena, &b.scratch, NULL, fmt_use(&b.arena, text), &e));
    if (st != status || strstr(b.err.msg, why) == NULL)
        test_fail(__FILE__, __LINE__, "%d: %s\n%s", (int)st, b.err.msg, text);
    close_bench(&b);
}

TEST(what_does_not_fit_stops_a_conversion)
{
    stops("format f()\nfit k\naxis E = k : i < m, j < n sorted unique\nf()", 1, ST_BIND,
          "entry 1 at i = 1, j = 5 and entry 2 at i = 1, j = 5 have one position of axis E");
    stops("format f()\naxis I = m, E(I) = 1 : j < n sorted padded\nf()", 1, ST_BIND,
          "would be at 1 of axis E, which has 1");
    stops("format f()\naxis I = m, E(I) = 2 : j < n sorted\nf()", 1, ST_BIND,
          "no entry is at position 1 of axis E, which is not padded");
    stops("format f()\naxis I = m - 100, E(I) = seg : j < n\nf()", 1, ST_BIND,
          "an axis has an extent below 0");
    stops("format f()\naxis E = m - 100 : i < m, j < n\nf()", 1, ST_BIND,
          "an axis has an extent below 0");
    stops("format f()\nfit k\naxis R = k : x < 2 sorted unique, E(R) = seg : i < m, j < n\n"
          "map x = i\nf()",
          1, ST_BIND, "axis R would store a coordinate outside its bound");
    stops("format f()\nfit k\naxis E = k : x < 2, i < m, j < n\nmap x = i\nf()", 1, ST_BIND,
          "axis E would store a coordinate outside its bound");
    stops("format f()\naxis P = 1, E(P) = 8 : x < 2, i < m, j < n padded\n"
          "map p = 0, e = rank(0), x = i\nf()",
          1, ST_BIND, "axis E would store a coordinate outside its bound");
    stops("format f()\naxis P = 1 : x < m padded, E(P) = seg : i < m, j < n\nmap p = 0, x = i\nf()",
          1, ST_BIND, "have one position of axis P");
    stops("format f()\naxis I = m, E(I) = 100000000000 : j < n padded\nmap e = j\nf()", 1,
          ST_LIMIT, "are too many; take another format");
    stops("format f()\naxis I = m, E(I) = 9000000000000000000 : j < n padded\nmap e = j\nf()", 1,
          ST_LIMIT, "are too many; take another format");
    stops("format f()\naxis I = m, E(I) = seg : j = e - 4611686018427387904 < n padded\n"
          "map e = j + 4611686018427387904\nf()",
          1, ST_LIMIT, "more positions than fit 64 bits");
    stops("format f()\naxis I = m, E(I) = 8 : j < n padded\nmap e = i / (j - j)\nf()", 1, ST_BIND,
          "has no position on axis E that fits 64 bits");
    stops("format f()\nfit k\naxis E = k : x, i < m, j < n sorted\nmap x = i / (j - j)\nf()", 1,
          ST_RUN, "a value that does not fit 64 bits, or is divided by zero");
    stops("format f()\nfit k\naxis E = k : j < n, i < m, x sorted\nmap x = j - i\nf()",
          (int64_t)1 << 40, ST_LIMIT, "more combinations of values than fit 64 bits");
    stops("format f()\naxis I = m, E(I) = seg : j < n\nmap e = place(i + 1, j, 4)\nf()", 1,
          ST_CHECK, "place(x, by, window) is that of a coordinate x");
    stops("format f()\naxis I = m, E(I) = seg : j < n\nmap e = place(i, j, 0)\nf()", 1, ST_CHECK,
          "place(x, by, window) is that of a coordinate x");
}

TEST(parts_of_another_format_are_not_read)
{
    Bench b;
    int64_t row[] = { 0 }, col[] = { 0 }, entry[1], *coord[] = { row, col };
    FmtEntries e = { .n = 1, .ncoord = 2, .bound = { 4, 6 },
                     .coord = { { row, 1, T_i64 }, { col, 1, T_i64 } } };
    FmtParts *parts = NULL;

    open_bench(&b);
    CHECK_EQ(CATCH(&b.err, parts = fmt_convert(&b.arena, &b.scratch, NULL,
                                               fmt_use(&b.arena, "bsr(2, 2)"), &e)),
             ST_OK);
    CHECK_EQ(CATCH(&b.err, fmt_back(&b.arena, fmt_use(&b.arena, "csr()"), parts, &e, coord, entry)),
             ST_ARG);
    CHECK_HAS(b.err.msg, "these are the parts of another format than csr");
    close_bench(&b);
}

TEST(what_cannot_be_proven_is_printed)
{
    refuses("format f()\naxis I = m, E(I) = seg : j < n\n"
            "map j = max(i, 3) - bits(j) + min(i, j) * abs(i) + exp2(j) / i\nf()",
            ST_CHECK, "max(i, 3)");
    refuses("format f()\naxis I = m, E(I) = seg : j < n\n"
            "map j = (i < j) + (i <= j) + (i == j) + (i != j) * (i or j) + (i and j or (not i)) "
            "+ count(i, j) + index(i; j) + place(i, j, 2) + m - j % i\nf()",
            ST_CHECK, "index(i; j)");
    refuses("format f()\naxis I = m, E(I) = seg : j < n\nmap j = j * 9000000000000000000 + "
            "j * 9000000000000000000\nf()",
            ST_CHECK, "something too large for a proof");
}

TEST(a_part_may_be_empty_and_a_rule_of_ones_own_may_be_used)
{
    Bench b;
    int64_t row[] = { 0, 1, 3 }, col[] = { 0, 5, 2 };
    FmtEntries e = { .n = 3, .ncoord = 2, .bound = { 4, 6 },
                     .coord = { { row, 3, T_i64 }, { col, 3, T_i64 } } };
    FmtParts *parts = NULL;
    FmtUse *u = NULL;

    open_bench(&b);
    CHECK_EQ(CATCH(&b.err,
                   u = fmt_use(&b.arena, "format upper(d)  # apart\n"
                                         "part far where j - i >= d\n"
                                         "axis I = m, E(I) = seg : j < n sorted\n"
                                         "part near\n"
                                         "axis J = n, E(J) = seg : i < m sorted\n"
                                         "upper( 100 )");
                   parts = fmt_convert(&b.arena, &b.scratch, NULL, u, &e)),
             ST_OK);
    CHECK_EQ(parts->n, 2);
    CHECK_EQ(parts->part[0].stored, 0);
    CHECK_EQ(parts->part[1].stored, 3);
    CHECK_EQ(ir_array_int(&parts->part[1].entry, 1), 2); /* by columns: 0, 2, 5 */
    CHECK_HAS(fmt_text(u), "upper(100)");
    CHECK_EQ(CATCH(&b.err, u = fmt_use(&b.arena, fmt_text(u))), ST_OK); /* reads back */
    CHECK_EQ(fmt_nparts(u), 2);
    close_bench(&b);
}

TEST(a_use_may_bring_its_rule_along)
{
    static const char text[] = "strips( t = 2, g = 3 ) { part tiles where i / t < m / t;"
                               "axis S = m / t, Q(S) = seg, C(Q) = g : j < n padded, "
                               "R(C) = t : i = t*s + r < m\n"
                               "map s = i / t, q = index(i / t; j) / g, c = index(i / t; j) % g, "
                               "r = i % t; part edge; axis I = m, E(I) = seg : j < n }";
    Bench b;
    FmtUse *u = NULL;

    open_bench(&b);
    CHECK_EQ(CATCH(&b.err, u = fmt_use(&b.arena, text); u = fmt_use(&b.arena, fmt_text(u))),
             ST_OK);
    CHECK_EQ(fmt_nparts(u), 2);
    CHECK_EQ(fmt_ncoord(u), 2);
    close_bench(&b);
    refuses("f(4) { axis I = m, E(I) = seg : j < n }", ST_ARG, "with a name for each parameter");
    refuses("f(b = (4) { axis I = m, E(I) = seg : j < n }", ST_ARG, "with a name for each");
    refuses("f(b = 4) more { axis I = m, E(I) = seg : j < n }", ST_ARG, "with a name for each");
    refuses("f { axis I = m, E(I) = seg : j < n }", ST_ARG, "with a name for each parameter");
    refuses("f() { axis I = m, E(I) = seg : j < n", ST_ARG, "with a name for each parameter");
    refuses("f() } {", ST_ARG, "with a name for each parameter");
    refuses("f() { axis I = m } g", ST_ARG, "with a name for each parameter");
    refuses("{ axis I = m }", ST_ARG, "with a name for each parameter");
    refuses("f() { bogus }", ST_PARSE, "line 2: a line begins with");
    refuses("f(b = x) { axis I = m, E(I) = seg : j < n }", ST_ARG, "a format is written as");
}

TEST(every_format_of_the_list_can_be_used)
{
    const char *head, *note;

    for (int i = 0; (head = fmt_list(i, &note)) != NULL; i++) {
        size_t n = strcspn(head, "(");
        bool tried = false;

        for (int f = 0; f < NFORMATS; f++)
            tried = tried || (strncmp(format_case[f].spec, head, n) == 0 &&
                              format_case[f].spec[n] == '(');
        if (!tried)
            test_fail(__FILE__, __LINE__, "%s is in no test", head);
        CHECK(note[0] != '\0');
    }
}
