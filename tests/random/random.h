/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random programs with their data, an evaluator written apart from src/interp, and a shrinker.
 * One 64-bit seed makes one case; a case is a program text and arrays by name, so that a smaller
 * text can be tried with the same arrays. */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include "ir/ir.h"

/* rng.c */
typedef struct Rng {
    uint64_t state;
} Rng;
uint64_t rng_bits(Rng *);
int rng_int(Rng *, int lo, int hi); /* both included */
bool rng_p(Rng *, int percent);

/* data.c: arrays by name ("n", "E.start", "E.j", "X"), what a caller of the library would bind. */
typedef struct Item {
    const char *name;
    bool is_size;
    int64_t size;
    Array array;
} Item;

typedef struct Data {
    Item *item;
    int n, cap;
} Data;

void data_size(Arena *, Data *, const char *name, int64_t value);
void data_array(Arena *, Data *, const char *name, Array);
/* What the program declares and the data has: copies, so that a run cannot change the data. */
Env *data_bind(Arena *, const Data *, const Prog *);
/* The inverse: all that env holds. */
/* Fills the axes that e is the last of, a transpose or parts, from e->from (tests/random/parts.c);
 * those of formats are left alone. */
void data_made(Arena *, const Prog *, Env *, const Axis *e, int64_t limit);
Data *data_of_env(Arena *, const Prog *, const Env *);
void data_print(Text *, const Data *);
Array array_new(Arena *, Type, int64_t n);
int64_t array_int(const Array *, int64_t i); /* our own: layout.c is under test */
double array_float(const Array *, int64_t i);
void array_set(Array *, int64_t i, int64_t iv, double fv); /* rounds to the type */

typedef enum Feature {
#define FEATURE(name, text) F_##name,
#include "random/feature.def"
#undef FEATURE
    F_COUNT
} Feature;

/* gen.c: the generator; gen.h has its parts. */
typedef struct Knobs { /* zero is the default: everything the language has */
    bool exact;        /* integer-valued data, no rounding: results do not depend on the order */
    bool poly;         /* f64 and + - * only (implies exact): derivatives are exact too */
    bool no_built;     /* no built axes */
    bool no_ints;      /* no integer outputs */
    bool no_max;       /* no max= and min= */
    bool no_groups;    /* one assign a statement */
    int stmts;         /* at most; 0: 5 */
    int risk;          /* percent of programs that may end in a run error; negative: none */
} Knobs;

typedef struct Case {
    uint64_t seed;
    const char *text;
    Data *data;
    bool risky;        /* a run error is possible */
    bool has[F_COUNT]; /* features the generator put in */
    Prog *prog;        /* set by case_parse */
    Env *env;
} Case;

Case *gen_text(Arena *, uint64_t seed, const Knobs *); /* text and data only */
void case_parse(Arena *, Case *);                      /* parses, checks, binds: may throw */
Case *gen_case(Arena *, uint64_t seed, const Knobs *);

/* feature.c: adds to c->has what the parsed program and its data show; ops: uses of each operator. */
void feature_find(Arena *, Case *, int64_t *ops);
extern const char *const feature_text[F_COUNT];

/* space.c: every position of every axis written out. */
typedef struct Level {
    bool known; /* false: a built axis (or one below it) before its last insert */
    int64_t n;
    int64_t *parent, *loc; /* by position; the parent of a root is 0 */
    int64_t **coord;       /* by coordinate, then position */
    bool *exists;
} Level;

typedef struct Tuples { /* the elements of a buffer: rows of positions, in storage order */
    int width;
    int64_t n;
    int64_t *row;
} Tuples;

typedef struct Space {
    Arena *arena;
    const Prog *prog;
    const Env *env;
    Level *level; /* by axis id */
} Space;

enum { SPACE_MOST = 20000 }; /* positions of an axis, elements of a buffer */
void space_init(Space *, Arena *, const Prog *, const Env *); /* throws ST_BIND */
void space_grow(Space *);                                     /* the axes that have become known */
int64_t space_size(const Space *, Expr *);                    /* of sizes */
int space_parent_place(const Buf *, int place);
Tuples space_tuples(Space *, const Buf *);
int64_t space_find(const Tuples *, const int64_t *row); /* -1: none */

/* dense.c: the evaluator; `out` gets the outputs and the built structure.  Throws ST_BIND and
 * ST_RUN as the interpreter should, and ST_LIMIT for what it has no patience for. */
typedef struct DenseStats {
    int64_t hits, misses, instances; /* of searches; of statements */
} DenseStats;
void dense_run(Arena *, const Prog *, const Env *in, Env *out, DenseStats *);

/* defect.c: planted by the self-test, to see them found. */
typedef enum Defect {
    DEFECT_NONE,
#define DEFECT(name, always, text) DEFECT_##name,
#include "random/defect.def"
#undef DEFECT
    DEFECT_COUNT
} Defect;

typedef struct DefectInfo {
    const char *text;
    bool always; /* shows in every result */
} DefectInfo;
extern const DefectInfo defect_info[DEFECT_COUNT];
/* Each damages what it is given, and returns false when there is nothing to damage. */
bool defect_output(Defect, const Prog *, Env *);
bool defect_program(Defect, Prog *);
bool defect_text(char *text);
bool defect_copy(Prog *copy);

/* check.c: one case through one test; the outcome tells failures apart, for the shrinker. */
typedef enum Outcome {
    GOOD,
    ERROR_BOTH, /* both evaluators gave an error of the same kind */
    REFUSED,    /* by parser or checker */
    TOO_LARGE,  /* for the dense evaluator: not run */
    FAIL_GEN,   /* refused though it was generated */
    FAIL_PLACE, /* an error without place or message */
    FAIL_PRINT, /* what was printed does not read */
    FAIL_FIXED, /* printing again gives another text */
    FAIL_EQUAL, /* parsed and printed are not equal */
    FAIL_HASH,
    FAIL_COPY,
    FAIL_SIMPLE, /* the simplified program gives another result */
    FAIL_PRUNE,  /* the pruned one does */
    FAIL_CODE,   /* one evaluator gave an error, or an error of another kind */
    FAIL_VALUE,  /* outputs differ */
    FAIL_ERROR,  /* a run error in a program that cannot have one */
    OUTCOME_COUNT
} Outcome;
extern const char *const outcome_text[OUTCOME_COUNT];

typedef struct Report {
    Outcome outcome;
    int kind;     /* of the errors of both evaluators: part of how it fails */
    bool planted; /* the defect found something to damage */
    char why[600];
    DenseStats stats;
} Report;

typedef enum Mode { MODE_PARSE, MODE_RUN, MODE_MUTATE } Mode;
/* Puts the case's text and data through a mode's tests.  Only here is anything caught. */
Report check_case(const Case *, Mode, Defect);

/* crash.c: fn says what is at work, by what a signal handler may call. */
void crash_watch(void (*fn)(void));

/* mutate.c, shrink.c */
const char *mutate(Arena *, uint64_t seed, const char *text);
/* The smallest case found that fails as *r says; *r becomes its report. */
Case *shrink(Arena *, const Case *, Mode, Defect, Report *r);

/* sets.c: lines of a schedule that change some fields of the policy. */
const char *random_sets(Arena *, const Policy *usual, uint64_t seed);

#endif
