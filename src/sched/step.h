/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedule steps.  A step replaces the loops that it names by loops that compute the same, or
 * refuses and says why.  A step is a file with one function and a row of the table in table.c;
 * docs/schedule.md says how to add one. */
#ifndef WEFT_STEP_H
#define WEFT_STEP_H

#include "tree/tree.h"

typedef struct StepCall StepCall;

typedef struct Step {
    const char *name;
    Stage stage;            /* that it works on */
    bool last;              /* after all passes that arrange loops: what runs where */
    const char *args;       /* what comes after the name, for `weft list steps` */
    const char *note;       /* what it does */
    void (*apply)(StepCall *); /* puts new phases into the call, or refuses */
} Step;
extern const Step step_table[]; /* table.c; ends with a name that is NULL */
const Step *step_named(const char *word, size_t n); /* NULL: there is none */

enum { LIMIT_STEP_WORDS = 40, LIMIT_STEP_NEST = LOOP_MAX_NEST };

typedef struct StepLine { /* one step of a schedule's text */
    const Step *step;
    const char *text;                  /* name and words with one space between */
    const char *word[LIMIT_STEP_WORDS]; /* those after the name */
    int nword;
} StepLine;

/* What a step may ask of the passes and of the machine that the program is for. */
typedef struct StepTarget {
    const void *ctx;
    /* The loops that give an array, and those beside it, their initial values. */
    Node *(*init)(Prog *, Buf *);
    /* The nest of a phase as a tile of registers of so many rows and columns, 0: as many as the
     * machine likes best; NULL: it cannot be one. */
    Node *(*tile)(const void *ctx, Prog *, Node *phase, Node *nest, int rows, int columns);
    bool levels; /* lanes are threads: loops run on blocks, warps and threads; */
    int lanes;   /* so many are a warp, */
    bool parts;  /* a part of which may have an iteration of its own */
} StepTarget;

struct StepCall { /* a step at work */
    Prog *p;
    const StepLine *line;
    const StepTarget *target; /* NULL: none in particular */
    Node **phase; /* the new phases: at first a copy of the program's list */
    int n, cap;
    Buf **placed; /* arrays whose initial values the step places: then they are no attribute */
    int nplaced, cap_placed;
};

/* step.c: the steps of a schedule's text, in its order; the six numbers of sched.h are left out. */
int step_lines(Prog *, const char *text, StepLine **out);
/* Applies one step to the program, which is at the step's stage.  Throws ST_ARG with a reason when
 * it is refused: then p's phases are what they were. */
void step_apply(Prog *, const StepLine *, const StepTarget *);
/* Whether it has steps other than those that come after all passes. */
bool step_arranges(Prog *, const char *text);
/* Applies all steps of this stage, in the order of the text. */
void step_apply_all(Prog *, const char *text, Stage, bool last, const StepTarget *);
/* Refuses: "split c.k 16: why". */
_Noreturn void step_refuse(StepCall *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Argument i as an integer in least..most; refuses. */
int64_t step_int(StepCall *, int i, int64_t least, int64_t most);
/* Refuses unless there are so many arguments. */
void step_count(StepCall *, int least, int most);
/* The arguments are LABEL ARRAY at LOOP [shared]; whether `shared` is there.  Else refuses. */
bool step_at_shared(StepCall *);

/* tree.c: loops by name.  A name may stand for several loops, copies of one: a step is then applied
 * to each of them. */
typedef struct Spot { /* a loop, and where it is */
    int phase;        /* its number in the call */
    Node *node;
    Node *const *around; /* the nodes around it, the phase's own first */
    int depth;           /* how many */
} Spot;
/* The first loop of this name, "c.k.0"; refuses when there is none. */
Spot step_find(StepCall *, const char *name);
bool step_is_named(const Node *, const char *name); /* a loop that is called so */
/* Gives each loop of this name to fn, which appends what stands in its place to out.  The tree that
 * fn sees is the old one.  Phases that change are marked as scheduled. */
typedef void StepEdit(StepCall *, const Spot *, NodeList *out, void *ctx);
void step_edit(StepCall *, const char *name, StepEdit *fn, void *ctx);
/* The same in the rests that `peel` made of the nest of this loop: c.tail.k, c.tail.tail.k. */
void step_edit_tails(StepCall *, const Node *loop, StepEdit *fn, void *ctx);
/* Copies of a loop's body with the variable replaced, with locals of their own. */
void step_bodies(Prog *, const Node *loop, Expr *by, NodeList *out);
/* A variable for a loop that is made from another: its path is that of the old one and a suffix,
 * ".0"; its name is made of that. */
Local *step_local(Prog *, const char *path);
const char *step_join(Prog *, const char *a, const char *b);
/* Whether an expression reads an array. */
bool step_reads(Prog *, Expr *);
/* Whether a loop ends where it begins by its constants, or surely runs at least once. */
bool step_runs(const Node *loop);
/* Its iterations, if they are constant; or -1. */
int64_t step_trips(const Node *loop);
bool step_has(const Node *, NodeKind);

Node *step_simplified(Prog *, Node *); /* all expressions of a tree */

/* depend.c: what iterations share.  `around` ends with the loop itself in these. */
/* NULL when no two iterations of the loop write one element; else who does.  `sums`: but for terms
 * of sums, maxima and minima, which may come in any order. */
const char *dep_race(Prog *, const Node *phase, const Spot *loop, bool sums);
/* Whether the loops of a nest, `first` and those inside it, may be put in another order, both lists
 * with the outermost first.  NULL, or why not.  Sums may be added up in another order. */
const char *dep_order(Prog *, const Node *phase, const Spot *first, Node *const *loop,
                      Node *const *next, int n);

/* extent.c: how far indices go, at stage positions. */
/* The extent of dimension d of an array; NULL: it is no plain expression. */
Expr *step_extent(Prog *, const Buf *, int d);
Expr *step_positions(Prog *, Axis *); /* how many an axis has, as the ends of loops say it */
/* The loop or the let of a local in this phase; NULL: e is none, or a register. */
const Node *step_binder(const Node *phase, Expr *);
bool step_is_over_entries(Prog *, const Node *loop); /* of an axis, under one parent */
/* Whether the element surely exists wherever the loops of its variables run. */
bool step_is_inside(Prog *, const Node *phase, Expr *cell);
/* Whether these loops together, and nothing else, meet each element of the array once. */
bool step_covers(Prog *, const Node *phase, Expr *cell, const Node *const *loop, int n);

/* cells.c: the elements of an array that a block mentions. */
enum { LIMIT_STEP_CELLS = 64 };
typedef struct Cells {
    StepCall *call;
    const Buf *buf;
    Expr *cell[LIMIT_STEP_CELLS]; /* each once */
    int n;
} Cells;
void step_cells(Cells *, const Node *); /* adds those of a tree */
bool step_mentions(StepCall *, const Node *, const Buf *);
bool step_are_apart(Expr *a, Expr *b); /* surely two elements */
/* Whether the index of an element keeps its value while its locals keep theirs. */
bool step_is_steady(const Node *phase, Expr *cell);
Buf *step_array(StepCall *, const char *name); /* refuses when there is none */
/* The first of these nodes, or of those inside them, that binds a local of e; or NULL. */
const Node *step_bound_below(Prog *, Expr *, Node *const *, int n);
/* Puts the loops inside this one that number elements of the array around the others; the name of
 * the innermost of them, or of the loop itself. */
const char *step_innermost(StepCall *, const Buf *, const char *loop);
/* Refuses when iterations of a parallel phase that was changed write one element of the array. */
void step_check_phases(StepCall *, const Buf *);

/* Whether an iteration of the loop may read what another one stores to a work array. */
bool step_reads_others(StepCall *, const Node *loop); /* bind.c */
Node *step_relaned(Prog *, const Node *loop, int lanes); /* lanes.c: with locals of so many lanes */

/* shared.c: arrays that the lanes and warps of an iteration share. */
int64_t step_most_trips(const Node *loop); /* at most so many iterations; -1: any number */
void step_check_together(StepCall *, const Spot *); /* refuses where not all threads come */
Expr *step_shared_cell(Prog *, Buf *, Expr *at);
/* A loop with the ends of another one, dealt to all threads. */
Node *step_together(Prog *, const Node *like, const char *label, Local *, Node *body);
void step_rfactor_shared(StepCall *);            /* rfactor ... shared */
void step_cache_shared(StepCall *, bool stores); /* cache_read, cache_write ... shared */

/* producer.c: a temp and the phases that make it. */
enum { LIMIT_STEP_MAKERS = 8 };
typedef struct Made {
    const Buf *buf;
    int phase[LIMIT_STEP_MAKERS], n; /* in order; those whose values are all replaced left out */
    int last;                       /* the temp is complete after this one */
} Made;
Made step_made(StepCall *, const char *label); /* by the phase of this name; refuses */
/* Nodes that give the temp's element at this index, which phase `user` wants, its value. */
void step_make(StepCall *, const Made *, const Node *user, Expr *const *index, NodeList *out);
/* Refuses when what it is made of changes before phase `user` has ended. */
void step_check_inputs(StepCall *, const Made *, int user);
void step_remove_made(StepCall *, const Buf *); /* the phases that write it */
/* The element of the array that a tree mentions; NULL: none; *many: others as well. */
Expr *step_only_cell(Prog *, const Node *, const Buf *, bool *many);

/* init.c: initial values, which are attributes of arrays until a step or a pass places them. */
bool step_has_init(const StepCall *, const Buf *);
void step_placed(StepCall *, Buf *); /* it has none any more when the step is done */
/* Places it in loops of its own, C.init, before the first phase that mentions the array. */
void step_place_init(StepCall *, Buf *);
void step_place_named(StepCall *); /* those whose loops are words of the step */

/* array.c: arrays that steps make, and their phases. */
/* A temp with these axes, named after another array: "C.rf". */
Buf *step_new_array(Prog *, const Buf *of, const char *suffix, Axis *const *axis, int n);
/* A shared array of n elements like those of another array, for a phase. */
Buf *step_new_shared(StepCall *, const Node *phase, const Buf *like, const char *suffix,
                     int64_t n);
/* Loops from 0 around a node, the outermost parallel. */
Node *step_nest(Prog *, const char *label, Local *const *var, Expr *const *hi, int n, Node *body);
Local *step_counter(Prog *, const char *stem, int i); /* x0, x1, ... */

/* the steps, a file each */
void step_split(StepCall *);
void step_reorder(StepCall *);
void step_fuse(StepCall *);
void step_unroll(StepCall *);
void step_peel(StepCall *);
void step_parallel(StepCall *);
void step_vectorize(StepCall *);
void step_tensorize(StepCall *);
void step_cache_write(StepCall *);
void step_cache_read(StepCall *);
void step_decompose(StepCall *);
void step_rfactor(StepCall *);
void step_merge(StepCall *);
void step_pack(StepCall *);
void step_inline(StepCall *);
void step_compute_at(StepCall *);
void step_prefetch(StepCall *);
void step_bind(StepCall *);
void step_team(StepCall *);
void step_deal(StepCall *);
void step_wide(StepCall *);
void step_turns(StepCall *);

/* peel.c: what `split ... tail` leaves to the end: rests of loops become loops of their own. */
void step_cut_tails(Prog *);
/* lanes.c: vector loops of scheduled phases, for the lanes of a machine. */
void step_fit_lanes(Prog *, const VectorUnit *);
/* Vector loops of all lanes, for machines whose warps are never shared. */
void step_whole_warps(Prog *, const VectorUnit *);

#endif
