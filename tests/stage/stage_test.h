/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs through every pass of the pipeline: after each, what it gave prints, reads back, passes
 * the check of its stage and runs in the interpreter to the same bits. */
#ifndef WEFT_STAGE_TEST_H
#define WEFT_STAGE_TEST_H

#include "random/random.h"

typedef struct Trial { /* a program with its arrays */
    Arena *arena;
    uint64_t seed;
    Prog *prog;
    const char *text;
    Data *in;
    bool exact;    /* no operation rounds: passes that re-associate keep every bit */
    bool rerooted; /* scatters go over a transpose */
    bool warp;     /* lanes are threads */
} Trial;

typedef enum Plant { /* a defect, to see it found */
                     PLANT_NONE,
                     PLANT_TEXT,  /* a digit of the printed text */
                     PLANT_BOUND, /* a loop ends one earlier */
                     PLANT_ORDER, /* += becomes = */
                     PLANT_INDEX, /* an element is taken one further */
                     PLANT_RACE,  /* a serial loop at the top is run in parallel */
                     PLANT_SCOPE, /* a local is used outside its block */
                     PLANT_RANK,  /* an index is left out */
                     PLANT_COUNT
} Plant;
extern const char *const plant_text[PLANT_COUNT];
/* Damages the tree or the text after a pass; false: there is nothing to damage. */
bool plant_tree(Plant, Prog *);
bool plant_print(Plant, char *text);

typedef struct Finding {
    bool limited; /* only the interpreter of coordinates runs it */
    bool failed;  /* the run ended in an error, in both */
    bool planted;
    int stages;        /* that were compared */
    const char *bad;   /* what is wrong; NULL: nothing */
    const char *after; /* which pass */
    const char *shown; /* its text */
} Finding;

/* trial.c: all passes on one program; throws nothing. */
Finding trial_run(const Trial *, Plant);
/* All passes but `skipped` (NULL: all), with a loop that ends one earlier planted after `defect`
 * (NULL: none) unless that is the pass that is skipped; only the end is compared. */
struct Pass;
Finding trial_without(const Trial *, const struct Pass *skipped, const struct Pass *defect);
/* All passes for lanes that are threads.  Then each barrier of the result is left out in turn: the
 * checker refuses the tree, or no order of threads has a race. */
typedef struct Barriers {
    int n, refused; /* by the checker; and of these, */
    int raced;      /* so many as the interpreter found a race without */
} Barriers;
Finding trial_tree(const Trial *); /* a tree of stage loops with its barriers */
Finding trial_barriers(const Trial *, Barriers *);
/* The random program of a seed; its gradient, or false when it has none. */
Trial trial_random(Arena *, uint64_t seed);
/* shapes.c: a random tree for warps or blocks. */
Trial trial_shape(Arena *, uint64_t seed);
bool trial_gradient(const Trial *, Trial *out);

#endif
