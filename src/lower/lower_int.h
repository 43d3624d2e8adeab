/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of lower/ share: expressions of integers, and where entries are. */
#ifndef WEFT_LOWER_INT_H
#define WEFT_LOWER_INT_H

#include "lower/lower.h"

/* facts/range.c: what the loops, lets and sizes around a condition decide. */
typedef struct Ranges {
    const Local *local;
    int64_t lo, hi; /* both inside */
    Expr *below;    /* the loop's end: the local is less; or NULL */
    const struct Ranges *outer;
} Ranges;
typedef enum Truth { NO, YES, UNKNOWN } Truth;
Truth lower_truth(const Ranges *, Expr *cond);
/* e without the conditions that are known; the memo: one for each Ranges. */
Expr *lower_decided(Prog *, const Ranges *, Expr *e, Memo *);
Ranges lower_range_of(const Ranges *, const Node *); /* of the local of a loop or let */

typedef struct NodeList {
    Node **node;
    int n, cap;
} NodeList;
void lower_append(Prog *, NodeList *, Node *);
void lower_append_all(Prog *, NodeList *, const NodeList *);
int lower_power_below(int64_t); /* the largest power of 2 that is not above it; at least 1 */
bool lower_reads(Prog *, Expr *, const Buf *);
bool lower_touches(Prog *, const Node *, const Buf *); /* reads it, or stores to it */
/* Whether a phase that the pass does not see touches the array, so that it has to stay. */
bool lower_is_elsewhere(const Kernel *, const Buf *);
/* A name that no array has, of one of the kernel's own beside b: X.work1. */
const char *lower_beside(Prog *, const Buf *b, const char *what);
/* tree/edit.c: whether a local is assigned to.  Only a text does that: such a phase stays as it
 * is. */
bool lower_has_registers(const Node *);
/* The expressions of one node; its body's are not among them. */
enum { LOWER_SLOTS = 6 + 2 * (IR_MAX_RANK + 1) };
Node *lower_with_body(Prog *, const Node *, const NodeList *);
/* An index as a base and a constant; NULL: a constant alone. */
Expr *lower_split_index(Expr *, int64_t *constant);
/* Whether two indices are surely not the same; how far they are surely apart, or 0. */
bool lower_differ(Expr *, Expr *);
int64_t lower_apart(Expr *, Expr *);
/* Whether e is the local, times something, plus something. */
bool lower_is_stepped(Prog *, Expr *, Local *);
int lower_slots(Node *, Expr ***out); /* where they stand; none is NULL */
/* How many batches of this size there are; the loop over one is from its number times the size to
 * the least of that plus the size and the end of all. */
Expr *lower_batch_count(Prog *, Expr *all, int64_t size);
/* How many entries an axis has, of whose rows the phase is over all, and the loop inside it over
 * the entries of the row: each entry is met once; or iterations, of a phase over batches.  NULL: it
 * is no such loop. */
Expr *lower_entries(Prog *, const Node *phase, const Node *loop);
/* The local that the index is, or whose entry it is a coordinate of that no other entry has, as the
 * place in a list or, in a transpose, the entry; NULL: it is neither. */
Local *lower_index_owner(Expr *index);
/* Each phase that `merge` has put into later ones goes. */
void lower_drop_phases(Kernel *, bool (*merge)(Kernel *, int phase, void *ctx), void *ctx);
/* One phase of these nodes: a node that runs them all, NULL for none. */
Node *lower_phase(Prog *, const NodeList *);
void lower_done(Kernel *, Stage);                 /* the program is now these phases */
bool lower_uses(Prog *, Expr *, Local *, Memo *); /* the memo: one for each local */
bool lower_mentions(Prog *, Expr *, Local *);     /* the same, asked once */
bool lower_has_local(Prog *, Expr *);
/* Whether e reads nothing that the phase writes, so that it keeps its value while its locals do.
 * What was found is remembered: one for each phase, {0} to begin with. */
typedef struct Invariants {
    Memo known;
    bool ready;
    const Buf **written; /* by the phase, and the locals that it assigns to; both ascend by id */
    const Local **assigned;
    int nwritten, nassigned, cap_written, cap_assigned;
    bool builds;
} Invariants;
bool lower_is_invariant(Prog *, const Node *phase, Expr *e, Invariants *);
/* A set of locals that is emptied for each phase; {0} to begin with. */
typedef struct LocalSet {
    int *round, n, now;
} LocalSet;
void lower_empty_set(Prog *, LocalSet *); /* room for all locals that there are, and none in it */
static inline bool lower_has_in(const LocalSet *s, const Local *l)
{
    return s->round[l->id] == s->now;
}
static inline void lower_put_in(LocalSet *s, const Local *l)
{
    s->round[l->id] = s->now;
}
Node *lower_renamed(Prog *, Node *); /* a copy with lets of its own */

/* facts/owned.c: the loops around a node, the innermost first; whether the ends of a loop are
 * constants; the width of the rows of an array, when the element is surely of the row of the
 * iteration of `rows`, else 0. */
typedef struct Around {
    const Node *loop;
    const struct Around *outer;
} Around;
bool lower_is_known(const Node *loop);
int64_t lower_own_width(Prog *, const Node *rows, const Around *, const Expr *cell,
                        const Buf **by); /* the coordinate that names the row, or NULL */
/* An index as stride * row + the rest, where the row is that of an iteration of `rows`: its number,
 * or a coordinate of its entry that no other entry has, which is returned.  NULL: it is none. */
Expr *lower_row_index(Prog *, Expr *index, const Node *rows, LoopIndex *);
/* The index that this is, in one form, for an iteration of its loop. */
Expr *lower_index(Prog *, const LoopIndex *, Expr *local);

/* The bytes of all that hangs on one position of a slot; 0: that is no constant. */
int64_t lower_slot_bytes(const Buf *, int slot);

/* facts/touches.c: the arrays of a phase, ascending by Buf.id.  Two phases clash where one
 * writes what the other touches: they cannot change places. */
typedef struct Touch {
    const Buf *buf;
    bool read, written;
} Touch;
typedef struct Touches {
    Touch *touch;
    int n, cap;
    bool builds; /* an axis */
} Touches;
Touches lower_touched(Prog *, const Node *phase);
Touches lower_touch_both(Prog *, const Touches *, const Touches *); /* of two phases as one */
const Touch *lower_touch_of(const Touches *, const Buf *);          /* NULL: it does not touch it */
bool lower_does_read(const Touches *, const Touches *other);        /* what the other writes */
bool lower_clash(const Touches *, const Touches *, const Buf *but); /* but for this one; or NULL */

/* facts/touches.c, too: the phases of a kernel that mention each array, ascending, as they were
 * when the lists were made.  Arrays that were made later are in none. */
typedef struct MentionList {
    int *phase, n, cap;
} MentionList;
typedef struct Mentions {
    Prog *p;
    MentionList *of;
    int n;
} Mentions;
Mentions lower_mentioned(const Kernel *);
const MentionList *lower_mentions_of(const Mentions *, const Buf *);
int lower_next_mention(const Mentions *, const Buf *, int after); /* -1: there is none */

/* facts/sites.c: where a phase mentions arrays.  Passes that change some nodes of long phases
 * again and again find them here, in a copy of the phase that is theirs to change. */
typedef struct Site { /* a node; its parent's number, -1: it is the phase */
    Node *node;
    int up;
} Site;
typedef struct SiteOf { /* an element of the array, in the node's own expressions */
    const Buf *buf;
    int spot;
} SiteOf;
typedef struct Sites {
    Site *spot; /* parents first, in order; NULL: there is no copy yet */
    int n, cap;
    SiteOf *of; /* sorted by Buf.id, then by spot */
    int nof, cap_of;
} Sites;
void lower_sites(Prog *, Node **phase, Sites *); /* makes the copy, if there is none */
const SiteOf *lower_sites_of(const Sites *, const Buf *, int *n);
/* The nodes from the phase to the spot, in `out`, which has room for `most`; how many there are, or
 * 0: too many. */
int lower_site_path(const Sites *, int spot, Node **out, int most);

/* memory/stream.c: bytes that an iteration of a phase has of all arrays with a row for each; 0:
 * none. */
int64_t lower_row_bytes(Prog *, const Node *phase);

/* facts/exists.c: whether the element surely exists wherever its locals do. */
bool lower_is_inside(Prog *, const Node *phase, Expr *cell);
/* The one dimension in which the element moves with the local, by a constant, and is inside; so
 * each of its iterations has elements of its own.  -1: none is, or it is not known. */
int lower_dim_of(Prog *, const Node *phase, Expr *cell, Local *);
/* Whether e has a value wherever its locals do. */
bool lower_is_sure(Prog *, const Node *phase, Expr *e);
/* The same two for a phase that is asked about often, as long as it stays as it is. */
typedef struct Binders { /* by Local.id, less `from`: what loop or let binds it, if several do */
    const Node *phase, **by;
    bool *several;
    int from, n;
} Binders;
Binders lower_binders(Prog *, const Node *phase);
bool lower_is_bound_inside(Prog *, const Binders *, Expr *cell);
bool lower_is_bound_sure(Prog *, const Binders *, Expr *e);
/* Whether e, a float or a condition, may be evaluated wherever its locals are known, also where the
 * program does not: its elements exist, and there are no integers in it that might overflow.  The
 * memo: one for each phase. */
bool lower_is_total(Prog *, const Node *phase, Expr *e, Memo *);

/* finish/unfold.c: an expression that is short as a graph and long as a text, with names for the
 * parts that it shares: the nodes that compute them are appended to `out`.  Else the expression. */
typedef struct LowerUnfold {
    Prog *p;
    const Node *phase;
    Memo *total; /* of lower_is_total */
    const char *label;
    int lanes;                           /* of the vector loop around */
    bool (*is_in_lanes)(void *, Expr *); /* whether an expression has a value for each of them */
    void *ctx;
} LowerUnfold;
Expr *lower_unfolded(const LowerUnfold *, Expr *, NodeList *out);

/* edges/sweep.c: an array of the iteration beside another one, of so many elements. */
Buf *lower_scratch(Prog *, const Buf *beside, Type, int64_t n);
enum { LOWER_MOST_SCRATCH = 64 << 10 }; /* bytes of one: it is on a stack */

/* registers/block_rows.c: whether iterations of a loop with this variable and body may run side
 * by side, as far as loops and branches inside are the same in all of them. */
bool lower_can_jam(Prog *, Node *const *body, int n, Local *row);

/* registers/accumulate.c, registers/block_rows.c: the two halves of lower_tensor. */
Node *lower_accumulated(Prog *, Node *phase, Node *nest,
                        LowerTile); /* sums in registers; or NULL */
Node *lower_row_blocked(Prog *, Node *phase, Node *vector,
                        LowerTile); /* rows side by side; or NULL */

/* registers/strips.c: a phase over rows, each one vector loop, as one over blocks of rows: those
 * that the program makes by / and % (NULL: none), or so many at a time. */
Node *lower_in_blocks(Prog *, Node *phase);
Node *lower_in_strips(Prog *, Node *phase, int n);

/* registers/shape.c: how many rows of a loop inside a vector loop run side by side, in how many
 * registers each. */
enum { LOWER_ROWS = 16 };
typedef struct LowerShape {
    int rows, registers;
} LowerShape;
LowerShape lower_shape(Prog *, const Node *vector, const Node *rows, LowerTile);

/* constants/collapse.c: a loop over rows of a constant table around one over what is under each,
 * as one loop over all of it; else the loop itself. */
Node *lower_collapsed(Prog *, Node *);

/* positions/marks.c: marks of what is reached go where structure tells the same. */
void lower_drop_marks(struct Kernel *);

/* lanes/vectorize.c: the loop of stores with its lanes, as many as fit so many bytes; NULL when
 * it cannot be one.  In lanes: each iteration has elements of its own, side by side.  Over
 * lanes: all iterations add to the same elements. */
Node *lower_in_lanes(Prog *, const Node *, int bytes);
Node *lower_over_lanes(Prog *, const Node *, int bytes);
/* Whether a value, or an element that is stored to, of a loop with this variable can be one a lane:
 * its elements lie side by side, or so many apart that registers of neighbours hold them. */
bool lower_can_step(Prog *, Expr *, Local *, Type);

/* lanes/transpose_copy.c: a short loop around one that copies, as one loop in lanes; NULL when
 * it cannot be. */
Node *lower_transposed_copy(Prog *, const Node *, int bytes);

/* storage/offset.c: sums and products in one order, and where elements stand. */
Expr *lower_add(Prog *, Expr *, Expr *);
Expr *lower_sub(Prog *, Expr *, Expr *);
Expr *lower_mul(Prog *, Expr *, Expr *);
Expr *lower_cell(Prog *, Buf *, Expr *index);     /* folded when both are constant */
Expr *lower_count(Prog *, Axis *);                /* positions in all */
Expr *lower_first(Prog *, Axis *, Expr *parent);  /* first position under a parent's */
Expr *lower_extent(Prog *, Axis *, Expr *parent); /* number of positions under it */

/* storage/entry.c: an entry of an axis.  One of pos and loc at least is known; the rest follows. */
typedef struct Entry Entry;
struct Entry {
    Axis *axis;
    Entry *up;       /* what it hangs on */
    Expr *pos, *loc; /* its number over all parents, and under its own */
};
Entry *lower_entry(Prog *, Axis *, Entry *up, Expr *pos, Expr *loc);
Entry *lower_up(Prog *, Entry *); /* NULL for a root axis */
Expr *lower_pos(Prog *, Entry *);
Expr *lower_loc(Prog *, Entry *);
Expr *lower_parent(Prog *, Entry *); /* the position that it hangs on; 0 for a root axis */
Expr *lower_coord(Prog *, Entry *, int k);
Expr *lower_leaf(Prog *, Entry *, Expr *leaf); /* OP_coord, OP_loc, OP_pos of it or above it */
Expr *lower_exists(Prog *,
                   Entry *); /* that it is not padding, if what it hangs on is not; or NULL */
Expr *lower_inside(Prog *, Expr *, Expr *extent);
Expr *lower_both(Prog *, Expr *a, Expr *b); /* each may be NULL: true */

/* storage/offset.c, too: the index in each interface dimension of the element at these entries. */
void lower_dims(Prog *, const Buf *, Entry *const *at, Expr **out);
Expr *lower_dim_extent(Prog *, const Buf *, Dim);
/* storage/arrays.c: of a buffer that has strides, that of a dimension. */
Expr *lower_stride(Prog *, const Buf *, int d);

#endif
