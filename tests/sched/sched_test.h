/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedule steps against their meaning: chains of random steps on random programs give the same
 * bits or a reason, and no step is taken, or refused, that trying all iterations says otherwise
 * of. */
#ifndef WEFT_SCHED_TEST_H
#define WEFT_SCHED_TEST_H

#include "kernel/kernel_test.h"
#include "sched/step.h"

typedef struct Base { /* a random program at stage positions, and what it computes */
    uint64_t seed;
    const char *text;
    Prog *prog, *tree; /* over coordinates; its loops */
    Data *in;
    Env *want;
    Status status; /* of the run that gave it */
    bool rounds;   /* constants are no integers: results differ as rounding does */
} Base;
/* base.c: false: only the interpreter of coordinates runs it.  May throw. */
bool base_random(Arena *, uint64_t seed, Base *);
bool base_file(Arena *, const char *path, Base *); /* a program with a command in its heading */
/* NULL, or what is wrong with the results of a tree. */
const char *base_compare(Arena *, const Base *, Prog *tree);
/* A run of a tree on data; NULL: it ends with an error.  And whether two runs gave the same. */
Env *base_run(Arena *, const Base *, const Data *, Prog *tree);
bool base_same(const Base *, const Env *, const Env *);
/* Whether the run ends because blocks that a step says are exact are not. */
bool base_is_unfit(Arena *, const Base *, Prog *tree);
/* Other values, and other entries and positions where the program allows any. */
Data *base_redraw(Arena *, const Base *, Rng *);
/* All loops of a tree. */
int base_loops(Arena *, const Prog *, Node ***out);
const char *base_name(Arena *, const Node *loop); /* c.k.0 */
const StepTarget *base_target(void);            /* with 16 registers of 32 bytes */

enum { CHAIN_STEPS = 8 };
typedef struct Chain {
    const Base *base;
    Prog *prog;                    /* with the steps that were taken */
    const char *text;              /* of it; NULL: it has changed */
    const char *taken[CHAIN_STEPS * 2];
    int ntaken, refused;
    int *took, *left; /* by step: counts of those taken, of those refused */
    const char *bad;  /* what is wrong; NULL: nothing */
    bool levels;      /* in: draw steps that bind loops to warps and threads */
    bool bound;       /* out: a loop is bound so */
    bool unfit;       /* blocks are said to be exact, and by the data's sizes they are not */
} Chain;
/* chain.c: random steps of stage positions, then of stage loops. */
void chain_random(Arena *, Rng *, Chain *);
/* What is wrong with the loops of a tree when lanes and warps are threads; NULL: nothing. */
const char *chain_threads(Arena *, const Base *, const Prog *);
void chain_to_loops(Prog *); /* from one stage to the other */

/* more.c: the text of a random step that moves values: caches, where values are computed. */
void bind_step(Rng *, Text *, const char *loop, bool outermost); /* to any level */
void shared_step(Arena *, Rng *, Text *, Prog *, Node *const *loop, int n);
void more_step(Arena *, Rng *, Text *, Prog *, Node *const *loop, int n);

/* fixed.c: programs that steps are written for: a table of what they give, then chains. */
typedef struct Fixed {
    int64_t passed, failed;
    int *took, *left; /* by step */
} Fixed;
void fixed_base(Arena *, uint64_t seed, Base *); /* one of them */
void fixed_try(Fixed *, int64_t chains, uint64_t seed);
void fixed_add(Arena *, Subjects *, uint64_t seed); /* rows of the table that give something */

/* compiled.c: the rest of the way to C; what only the interpreter runs is left out. */
void compiled_add(Arena *, Subjects *, const Chain *);

typedef struct Verdicts { /* of one step */
    int64_t legal, refused;   /* by trying; of those, refused by the step */
    int64_t illegal, accepted; /* by trying; of those, accepted by the step: defects */
    int64_t unsure;            /* no data showed all of the loops */
} Verdicts;
/* brute.c: all orders of all nests of a program, all loops as parallel ones, backwards. */
typedef struct Brute {
    Verdicts reorder, parallel, backwards;
    int shown;
} Brute;
/* `ordered`: with sums that only keep their last term, so that the order of everything counts. */
void brute_try(Arena *, const Base *, bool ordered, Brute *);

#endif
