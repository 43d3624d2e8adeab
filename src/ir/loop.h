/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a program becomes below coordinates: a tree of loops, branches and stores over elements of
 * arrays.  The tree is made of immutable nodes in the program's arena; its expressions are the
 * program's own.  Two stages share it: in `positions` an element has one index per interface
 * dimension, in `loops` one flat index. */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "ir/ir.h"

typedef enum NodeKind {
    N_FOR,   /* local from lo up to hi, body */
    N_IF,    /* cond, body */
    N_LET,   /* local = value, in the nodes after it */
    N_STORE, /* out op= value, with companions */
    N_CHECK, /* cond must hold, or the run ends with `fault` */
    N_BUILD, /* body inserts the entries of a built axis: below position lo of its parent, or, when
              * lo is NULL, all of them */
    N_INSERT, /* value into the axis of the build around it: its key */
    N_AHEAD,  /* out will be wanted soon: a hint, which reads nothing */
    N_BARRIER /* lanes that are threads wait here for each other, and see each other's stores */
} NodeKind;

typedef enum ForKind { FOR_SERIAL, FOR_PARALLEL, FOR_VECTOR } ForKind;

/* Who runs an iteration of a loop on a machine whose lanes are threads.  Of a phase: a thread, a
 * warp (or `width` of its lanes), or a block of `width` warps takes one.  Of a loop inside: the
 * iterations are dealt in turns to the warps of the block, or to the threads of whoever has the
 * iteration of the phase.  LEVEL_NONE: of a phase, as its vector loops say; of a loop inside, all
 * of them run all iterations.  N_BARRIER: who meets, LEVEL_BLOCK or, NONE, the lanes. */
typedef enum LoopLevel {
    LEVEL_NONE,
    LEVEL_THREAD,
    LEVEL_WARP,
    LEVEL_BLOCK,
    LEVEL_COUNT
} LoopLevel;
extern const char *const loop_level_word[LEVEL_COUNT]; /* in the text */
enum { LOOP_MOST_WIDTH = 64 }; /* lanes of a warp; warps of a block */

/* Why a kernel gives up; the words are in loop.c. */
typedef enum Fault {
    FAULT_NONE,
    FAULT_INDEX,
    FAULT_MISS,
    FAULT_OVERFLOW,
    FAULT_SIZE,
    FAULT_TWICE,
    FAULT_COUNT
} Fault;
/* What the function of a phase that builds an axis returns when its scratch memory is too small;
 * whoever runs it gives it more. */
enum { FAULT_ROOM = FAULT_COUNT };

struct Local { /* a loop's variable, a let or a register */
    const char *name;
    const char *path; /* of a loop that a schedule made: k.0, what it is called; NULL: its name */
    Type type;
    int lanes; /* 1: a scalar */
    int id;
};

/* The vector machine that loops are for. */
typedef struct VectorUnit {
    int lanes[T_COUNT]; /* of a register, by the type of values; 0: this type has none */
    int registers;
    int ports, latency; /* multiply-adds that begin in a cycle; cycles that one takes */
    int cache[3]; /* bytes of caches that are usual for it: the text is the same everywhere */
} VectorUnit;
/* The last three, as the cores of all rows have them. */
#define VECTOR_CORE 2, 4, { 32 << 10, 2 << 20, 32 << 20 }
/* Lanes of f32 and of f64, as an initializer; integers and literals are as wide as f64. */
#define VECTOR_LANES(f32, f64) \
    { [T_i64] = (f64), [T_real] = (f64), [T_f32] = (f32), [T_f64] = (f64) }
/* How many values a register holds of what elements of a type are when loaded; at least 1. */
static inline int lanes_of(const VectorUnit *u, Type type)
{
    int n = u->lanes[ir_type[type].value];

    return n > 1 ? n : 1;
}

/* What the iterations of a loop are: positions of an axis, or tiles of them.  `Node.lo..hi` says
 * which of them the loop runs over; the checker proves that these are among them. */
typedef enum OverKind {
    OVER_POSITIONS, /* the variable is a position */
    OVER_OFFSETS,   /* the variable counts from the first position of tile `tile` */
    OVER_TILES,     /* the variable is the number of a tile of at most `size` positions */
    OVER_ROUNDS,    /* all positions, again and again: the variable modulo their number is one */
    OVER_KINDS
} OverKind;

typedef struct Over {
    OverKind kind;
    int size;   /* of a tile; 0: of no tile */
    bool fixed; /* below one position of the parent, whichever: all have as many.  Positions count
                 * from the first of them. */
    Axis *axis; /* has a name */
    Expr *row;  /* the position of the parent that all are below; or NULL */
    Expr *tile; /* the number of the tile that all are in; or NULL */
} Over;

struct Node { /* members of one size stand together: trees are most of a compiler's memory */
    const char *label; /* of the statement it came from; or NULL */
    const char *why;   /* of a phase: why it is not parallel; NULL: it is, or no pass has said */
    Buf *parts;        /* of a parallel phase: an array with a number for each iteration, never
                        * falling: those with the same one run in order, on one thread; or NULL */
    Local *local;
    Expr *lo, *hi;     /* N_FOR; N_BUILD has lo */
    const Over *over;  /* N_FOR: what its iterations are; NULL: numbers */
    Axis *axis;        /* N_BUILD, N_INSERT */
    Expr *cond;        /* N_IF, N_CHECK; of a store past the caches: where that pays, or NULL */
    Expr *out, *value; /* N_STORE: out is OP_cell or OP_local */
    At *at;
    Node *const *body;
    int nat, nbody;
    int lanes; /* FOR_VECTOR: the iterations that one register takes, */
    int regs;  /* and how many registers run at once; 0 is 1 */
    int width; /* of level: lanes of a warp, warps of a block; 0: as many as the machine has */
    NodeKind kind;
    ForKind how;
    LoopLevel level;
    Fault fault;
    AssignOp op;
    Place place;    /* in the text that it was read from */
    bool scheduled; /* of a phase: a schedule arranged its loops, and no pass arranges them */
    bool stream;    /* N_STORE: past the caches, a hint */
    bool far;       /* N_AHEAD: wanted after much else, so for the second cache */
    bool packed;    /* FOR_VECTOR: a lane has `regs` iterations that follow each other */
    bool atomic;    /* N_STORE: others may store to the element meanwhile, in no order */
};

Local *loop_local(Prog *, const char *name, Type, int lanes);
Expr *loop_use(Prog *, Local *);
/* An element: one index per dimension, or one flat index; lanes > 1: that many from it on. */
Expr *loop_cell(Prog *, Buf *, Expr *const *index, int n, int lanes);
/* The position in lo..hi, which is all below one parent, that exists (is not padding) and has the
 * coordinates arg[0..ncoord); -1 when there is none.  After the coordinates comes the context: what
 * loop_context lists, for the parent. */
Expr *loop_find(Prog *, Axis *, Expr *lo, Expr *hi, Expr *const *arg, int n);
/* How a search is done: Expr.k of an OP_find.  `first` gives the first position whose coordinates
 * do not come before these, or hi; the others give the same, and differ in how they come to it.
 * `near` begins where the same search ended last; its axis is sorted and not padded.  `lookup` asks
 * a table of all entries that a plan has made; lo..hi are then all positions under one parent. */
typedef enum FindHow { FIND_PLAIN, FIND_NEAR, FIND_LOOKUP, FIND_FIRST, FIND_COUNT } FindHow;
extern const char *const loop_find_word[FIND_COUNT]; /* in the text */
Expr *loop_found_by(Prog *, Expr *find, FindHow);    /* the same search, done so */
bool loop_is_ordered(const Axis *); /* sorted, and no position is padding: it can be bisected */
/* The leaves OP_coord, OP_loc, OP_pos of ancestors that coordinates of the axis are computed from,
 * each once; how many, or more than `most`. */
int loop_context(const Axis *, Expr **out, int most);
/* The position that position pos of the axis is under. */
Expr *loop_above(Prog *, Axis *, Expr *pos);
/* Integer arithmetic in a tree wraps nowhere: what may overflow or divide by zero has been tested
 * by a check of ir_op1(p, OP_fits, e) before, on the same path.  Sums into an element (N_STORE) and
 * stores to i32 are tested by the store itself. */
Node *loop_node(Prog *, const Node *); /* a copy in the arena, body included */
/* The axis that a phase builds; or NULL. */
Axis *loop_builds(const Node *);
/* What is inserted into a built axis is one integer, a key: its coordinates as digits, the first
 * most significant, each below its bound; where a build is of all entries, the parent's position
 * before them.  So keys are in the order of entries. */
Expr *loop_key(Prog *, const Axis *, Expr *row, Expr *const *coord); /* row may be NULL */
const char *loop_fault(Fault);
const char *loop_fault_word(Fault); /* in the text */

/* Arrays that are not buffers of the text: E.start, E.j, and constant tables Q.m1, U.size. */
Buf *loop_start(Prog *, Axis *);  /* seg, built: run-time; table: constant */
Buf *loop_extent(Prog *, Axis *); /* table: constant */
Buf *loop_coord(Prog *, Axis *, int k);
/* The type that these have, of the start array (k < 0) or a coordinate; makes nothing. */
Type loop_type(const Prog *, const Axis *, int k);
Buf *loop_table(Prog *, const char *name, const int64_t *v, int64_t n);
/* The table that `lookup` asks where a parent has more than a few entries: LOOP_MAP in of_k.
 * lower/search/hash.c says what is in it. */
enum { LOOP_MAP = -2, LOOP_FEW = 32 };
Buf *loop_map(Prog *, Axis *);
/* Tuples of the places full[0..n) before each position of full[place]: see LaySlot.before. */
Buf *loop_base(Prog *, const char *name, Axis **full, int n, int place);

/* Rebuilds a tree: each expression through fn; the same nodes when nothing changed. */
Node *loop_rewrite(Prog *, Node *, Rewrite *fn, void *ctx, Memo *);
/* e with `local` replaced by another expression. */
Node *loop_replace(Prog *, Node *, const Local *local, Expr *by);
/* A copy whose lets and loops have locals of their own. */
Node *loop_fresh(Prog *, const Node *);
/* What a loop is called after the label and a dot: k, k.0. */
const char *loop_path(const Node *);

/* loop_over.c: what loops run over.  NULL in gives NULL, as does an axis without a name.  Below a
 * row of an axis of constant tables, positions count from the first, too. */
const Over *loop_over(Prog *, Axis *, Expr *row); /* NULL: all positions of the axis */
const Over *loop_over_tiles(Prog *, const Over *, int64_t size);
const Over *loop_over_tile(Prog *, const Over *tiles, Expr *tile, OverKind);
const Over *loop_over_rounds(Prog *, const Over *);
const Over *loop_over_at(Prog *, const Over *, Expr *row, Expr *tile); /* another row and tile */
/* The number of positions of an axis. */
Expr *loop_positions(Prog *, Axis *);
/* The ends of the loop over all that it says; false: there are none (offsets, rounds). */
bool loop_ends(Prog *, const Over *, Expr **lo, Expr **hi);
bool loop_is_all(Prog *, const Node *); /* the loop has these ends */
/* What is known of each local where a loop begins, by Local.id: its loop, or its let's value. */
typedef struct LoopKnown {
    const Node *loop;
    Expr *value;
} LoopKnown;
/* Whether the ends of the loop are proven to be what the loop says (loop_over_check.c).  It makes
 * no expressions when loop_touch_over has seen the tree. */
bool loop_over_holds(Prog *, const LoopKnown *, const Node *);
void loop_touch_over(Prog *, const Node *);
/* Keeps what loops say that they run over where it is still provable, and drops it elsewhere: a
 * rewrite may move a loop out of the row that it names, or give it ends in a form that no proof
 * knows (loop_settle.c). */
void loop_settle(Prog *, Node **phase, int n);
/* The start array of the axis, one of whose rows the loop runs over, or a part of it; or NULL. */
Buf *loop_row_start(Prog *, const Node *);

/* loop_index.c: a flat index as stride * local + constant + the rest, a sum of leaves in the order
 * of their ids that the local is not in.  False: it is not such a sum. */
enum { LOOP_LEAVES = 8 };
typedef struct LoopIndex {
    const Buf *buf; /* of an element; NULL of an index as such */
    int64_t stride, constant;
    int n;
    Expr *leaf[LOOP_LEAVES];
    int64_t times[LOOP_LEAVES];
} LoopIndex;
bool loop_index(Expr *index, const Local *, LoopIndex *out);
bool loop_index_of(Expr *cell, const Local *, LoopIndex *out); /* of an element */
bool loop_is_near(const LoopIndex *, const LoopIndex *); /* they differ by a constant alone */
/* Which of n different indices are all elements between two iterations: of each the first one of
 * its window, `stride` neighbours; -1: it is in none. */
enum { LOOP_WINDOW = 16 };
void loop_windows(Prog *, const LoopIndex *, int n, int *window);
/* Elements between those of n different indices, up to the last one that is used of a row, where
 * more than half are: they are there, and may be loaded too.  `like` says which index each is a
 * neighbour of. */
LoopIndex *loop_gaps(Prog *, const LoopIndex *, int n, int **like, int *count);
/* Which of n different indices, each a row apart from one iteration to the next, are among as many
 * neighbours as there are lanes: rows of a square of columns, which can be turned into lanes.  Of
 * each the first one of its square; -1: it is in none.  The last square may begin inside the one
 * before it. */
void loop_columns(Prog *, const LoopIndex *, int n, int lanes, int *first);

/* loop_level.c: who runs the iterations of loops. */
bool loop_has_vector(const Node *); /* a vector loop is in the tree */
/* Of a phase: its own level, or the one that its vector loops give it. */
LoopLevel loop_level(const Node *phase);
/* A number that surely divides e; 0: e is 0.  `known`: of each let its value, by Local.id; or NULL.
 * A size that a kernel is for (Size.is) counts as its value. */
int64_t loop_divisor(Expr *e, const LoopKnown *known);
/* Whether the iterations of a vector loop fill all registers of all rounds. */
bool loop_is_whole(const Node *, const LoopKnown *known);
/* Whether the `regs` elements of a lane of a packed loop are neighbours, the first at a multiple of
 * `regs`: one wide load or store then takes them. */
bool loop_is_wide(const Node *, Expr *cell, const LoopKnown *known);
/* Why levels, packed loops, shared arrays and atomic stores of these phases do not fit each other,
 * and the node; NULL: they do. */
const char *loop_level_objection(Prog *, Node *const *phase, int n, const Node **at);
/* Whether a vector loop that no loop on warp is around is the first warp's alone, in a phase on
 * block: it stores to elements and to no local from outside.  Else all warps run it. */
bool loop_is_of_first(const Node *vector);
/* Throws it as ST_CHECK; a part of loop_check. */
void loop_check_levels(Prog *);

/* loop_threads.c: throws ST_CHECK where lanes or warps that are threads touch one element, one of
 * them storing, with no barrier between, or where a barrier is not met by all; a part of loop_check
 * for programs at stage `threads`. */
void loop_check_threads(Prog *);

/* loop_init.c: initial values.  An array's is an attribute of the array, from the stage `positions`
 * on until a pass or a step of a schedule places it: in a register, in a store, or in a nest of
 * loops.  It is made of literals, sizes, structure that no phase builds, and the indices of the
 * element, one for each dimension at any stage. */
bool loop_is_known(Prog *, Expr *); /* whether a value is made of those */
Expr *loop_init(Prog *, const Buf *, Expr *const *index); /* of the element at these indices */
void loop_drop_init(Buf *);
/* The label of the loops that give the array its initial value: C.init.  An array and those that
 * accompany it, C.acc and C.hit, have one label. */
const char *loop_init_label(Prog *, const Buf *);
/* Array i of the buffers of p and then of its own arrays; NULL: there are no more. */
Buf *loop_buf(const Prog *, int i);

/* loop_array.c: the arrays of trees.  Apart from buffers they have a dot in their name: those that
 * an axis stands for, and the kernel's own, declared in the text.  What a pass makes has ids from
 * LOOP_OWN on. */
enum { LOOP_OWN = 1 << 24 };
Buf *loop_own(Prog *, const Buf *); /* a copy of *b, or the array that has this name already */
Buf *loop_same_buf(const Prog *, const Buf *); /* of a copy of the program: its array for this */
/* "J.start", "Q.m1", "U.size", "X.S.base"; NULL: not of an axis. */
Buf *loop_named(Prog *, const char *name);
bool loop_is_own(const Buf *);     /* the kernel's */
/* Whether each iteration of a phase has one of its own: B_WORK, B_SHARED. */
bool loop_is_work(const Buf *);
/* Bytes of the shared arrays of a phase, each begun at a multiple of 16. */
int64_t loop_shared_bytes(Prog *, const Node *phase);
enum { LOOP_MOST_SHARED = 227 << 10 }; /* of any machine */
int loop_rank(const Buf *, Stage); /* indices that an element of it takes */
/* Calls fn for each expression of the tree that this memo has not met yet. */
void loop_visit(Prog *, const Node *, Visit *fn, void *ctx, Memo *met);
/* All arrays that the phases of p mention, in the order of the text. */
Buf **loop_arrays(Prog *p, int *n);
/* Whether a node of the tree stores to the array, or builds the axis that it is of. */
bool loop_writes(const Node *, const Buf *);
/* Whether one stores to the local, which then is a register. */
bool loop_assigns(const Node *, const Local *);
/* Whether an operation, and an array's elements, can be one a lane; 16 bits are widened and rounded
 * as they are loaded and stored. */
bool loop_has_vector_form(Op, Type);
bool loop_has_lanes(const Buf *);
/* The start array that a loop which begins at e goes by, at the element of this row; NULL: any. */
Buf *loop_start_in(Expr *e, const Local *row);
/* The start array of the entries that a phase's loop runs over: what its rows weigh; or NULL. */
Buf *loop_balance(const Node *);
/* The companion that tells whether max= or min= has reached the element; or NULL. */
const At *loop_mark(const Node *);

/* loop_print.c, loop_parse.c: what ir_print and ir_parse do below coordinates. */
enum { LOOP_MAX_NEST = 256 }; /* of blocks */
void loop_print(Text *, Prog *);

/* loop_check.c: what ir_check does below coordinates: throws ST_CHECK for the first promise of its
 * stage that the tree breaks. */
void loop_check(Prog *);

#endif
