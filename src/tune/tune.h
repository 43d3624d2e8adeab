/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The search for the best schedule of a program on a structure, and records of what was found.
 * Knows texts of schedules and seconds; how a candidate is lowered, compiled and timed is asked of
 * whoever calls (api/tune.c, or a test). */
#ifndef WEFT_TUNE_H
#define WEFT_TUNE_H

#include "ir/loop.h"

/* space.c: the space is a product of dimensions, each a list of pieces of schedule text.  The first
 * piece, "", leaves things as they are by default. */
typedef struct TuneDim {
    const char *name;
    const char **text;
    int n, cap;
    bool rounds; /* a choice here may change how sums are rounded */
    bool family; /* points with the same choice here are of one family */
} TuneDim;

typedef struct TunePoint {
    const int *choice; /* by dimension */
    const char *text;  /* the schedule; "" is the default */
    int changes;       /* dimensions that are not at their first piece */
    int family;        /* that of the default is 0 */
    bool exact;        /* it has to give the bits that the default gives */
    double predicted;  /* seconds of a run; NAN: not known */
} TunePoint;

typedef struct TuneSpace {
    Arena *arena;
    TuneDim *dim;
    int ndim, dimcap;
    TunePoint *point; /* the first is the default, */
    int npoint, nfamily;
    int *order; /* and this is the order of all: by prediction, then by changes */
} TuneSpace;

typedef struct TuneAxis { /* of sparse entries */
    const char *name;
    const char *const *format; /* `bsr(16, 16)`, ..., up to NULL */
} TuneAxis;

typedef struct TuneSteps { /* that can be taken or left, all together */
    const char *name, *text;
    bool rounds;
} TuneSteps;

typedef struct TuneFacts {
    const VectorUnit *unit;
    double widest, element;   /* elements of the longest row that is gathered, 0: not known; and
                               * bytes of one, at least 4 */
    const TuneAxis *axis;     /* whose format can be chosen */
    int naxis;
    const TuneSteps *steps; /* of this program, or of whoever wrote a schedule for it */
    int nsteps;
} TuneFacts;

typedef struct TuneAsk { /* may throw */
    void *user;
    /* A hash of the loops that a schedule gives; false: it cannot be applied. */
    bool (*tree)(void *user, const char *schedule, uint64_t *hash);
    double (*predict)(void *user, const char *schedule); /* seconds; NAN: not known */
} TuneAsk;

/* Pieces that change no loop, or the same way as one before them, are left out. */
void tune_space(Arena *, const TuneFacts *, const TuneAsk *, TuneSpace *out);
bool tune_is_near(const TuneSpace *, int a, int b); /* they differ in one dimension */

/* formats.c: formats that suit the entries of an axis, for vectors of so many lanes; none where it
 * is not a matrix by rows. */
const char *const *tune_formats(Arena *, const Env *, const Axis *, int lanes);

/* search.c: the best few of each family are built, checked and timed in turns, half of them dropped
 * after each round; then neighbours of the best, until that brings nothing or time is up. */
typedef struct TuneTold { /* where a search is */
    const char *what;     /* "compile", "time", "wrong" */
    const char *schedule; /* that it is at */
    const char *why;      /* of a wrong one; else "" */
    int done, of;         /* of what this round compiles, or has left to choose from */
    double elapsed, budget;
    const char *best; /* so far; NULL: nothing was timed yet */
    double best_s, default_s;
} TuneTold;

typedef struct TuneDo {
    void *user;
    /* Compiles a few, until some time on the clock of `now`; how many, from the first. */
    int (*build)(void *user, const char *const *schedule, int n, double until);
    /* NULL when its results are right, else what is wrong. */
    const char *(*check)(void *user, const TunePoint *);
    double (*time)(void *user, const TunePoint *); /* seconds of a run, once */
    void (*drop)(void *user, const TunePoint *);   /* it is not timed again in this round */
    double (*now)(void *user);                     /* seconds */
    bool (*tell)(void *user, const TuneTold *);    /* true: stop here */
} TuneDo;

typedef struct TuneLimits {
    double seconds, since; /* for all; and since when, on the clock of `now` */
    int top;          /* candidates of the first round */
    int together;     /* that are handed to `build` at a time */
    const char *pick; /* a schedule to try in any case; or NULL */
} TuneLimits;

typedef struct TuneFound {
    const TunePoint *best;
    double seconds, default_s;  /* medians of the match; of the default, lower quartiles */
    double pick_s;              /* a lower quartile; 0: not timed */
    double spread;              /* of the times of the match; 0: there was none */
    int turns;                  /* that the best and the default had in it; 0: none */
    int compiled, wrong, timed; /* how many candidates */
    int refuted;                /* that were the best for a while, but won no match */
    bool stopped;               /* by whoever was told */
} TuneFound;

void tune_search(TuneSpace *, const TuneAsk *, const TuneDo *, const TuneLimits *, TuneFound *out);

/* confirm.c: a match of a candidate and the default, in turns: 20 each, or as many as fit into
 * `seconds`, but at least TUNE_LEAST_TURNS.  True: the candidate takes TUNE_GAIN of the default's
 * time, or less. */
#define TUNE_GAIN 0.98
enum { TUNE_LEAST_TURNS = 5 };
typedef struct TuneMatch {
    double default_s, seconds; /* medians */
    double spread;             /* the middle half of the times by their median; of both */
    int turns;
} TuneMatch;
bool tune_confirm(const TuneDo *, const TunePoint *base, const TunePoint *, double seconds,
                  TuneMatch *out);

/* bound.c: a program that computes, beside what p computes, how far rounding may move each element
 * of each float buffer that p writes; (*bound)[b->id] is the buffer of these bounds, f64, or NULL
 * where b is exact.  NULL: not known, as p builds axes or records companions.  Buffers and axes of
 * p have the same ids in both. */
Prog *tune_bound(Arena *, Prog *p, Buf ***bound);
bool tune_calls(const Prog *); /* functions are called whose last bit depends on the schedule */

/* compare.c: NULL when two results are the same bits, or (not exact) as near as rounding explains;
 * else what differs, in the arena.  Two results may differ by twice the bound of an element (f64,
 * one for each), or, without bounds, by a share of the largest of all elements. */
typedef struct TuneArray {
    const char *name;
    Type type;
    int64_t n;
    const void *data;
} TuneArray;
const char *tune_compare(Arena *, const TuneArray *want, const TuneArray *got, bool exact,
                         const double *bound);

/* key.c: what a record is for.  The kind of a structure is its sizes, to about a third of an octave
 * where they are large, and how many entries its rows have; another graph of the same origin falls
 * together with it.  Structure that a run builds is left out. */
typedef struct TuneKey {
    uint64_t program, exact, kind, machine;
    int threads;
} TuneKey;
uint64_t tune_key_program(Arena *, const Prog *);
uint64_t tune_key_exact(const Prog *, const Env *);
uint64_t tune_key_kind(const Prog *, const Env *);

/* record.c: one line of text for each.
 *
 *     weft-tuned 1 spmm program=... exact=... kind=... machine=... threads=2 us=812.5
 *         default_us=1430.2 when=1767225600 schedule="panel 64; pack 1" sum=...
 */
enum { TUNE_NAME = 64, TUNE_TEXT = 2048 }; /* bytes of a name; of a schedule */
typedef struct TuneRecord {
    char name[TUNE_NAME]; /* of the program, for people */
    TuneKey key;
    double seconds, default_s;
    int64_t when; /* seconds since 1970 */
    const char *schedule;
} TuneRecord;

typedef struct TuneRecords {
    Arena *arena;
    TuneRecord *r;
    int n, cap;
    int damaged; /* lines that were left out */
} TuneRecords;

void tune_record_print(Text *, const TuneRecord *); /* with the end of the line */
/* Adds what the text holds, the last or (of the same second) the fastest for each key.  Adding the
 * same again changes nothing, and neither does the order of files. */
void tune_records_add(TuneRecords *, Bytes text);
void tune_records_put(TuneRecords *, const TuneRecord *);
void tune_records_sort(TuneRecords *);
/* The one for this very structure, else the last of its kind; NULL: there is none. */
const TuneRecord *tune_records_find(const TuneRecords *, const TuneKey *);
bool tune_records_know(const TuneRecords *, const TuneKey *); /* any of the program */

#endif
