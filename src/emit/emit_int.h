/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The state of one text: shared by the files of emit/. */
#ifndef WEFT_EMIT_INT_H
#define WEFT_EMIT_INT_H

#include "emit/emit.h"

enum { EMIT_MOST = 32 << 20 }; /* bytes of C */
enum { EMIT_INDENT = 16 };                     /* the deepest block that is indented */

typedef struct Places { /* of arrays or counts among a function's arguments */
    int *at, n, cap;
} Places;

typedef struct Mention { /* what a function mentions */
    int serial;          /* of the function */
    bool *size;          /* by place in Prog.size */
    Places count, array; /* see emit_sort */
    Text *fixed;         /* declarations of what is computed from sizes alone, */
    Memo *known;         /* and what has one */
} Mention;

typedef struct Stored { /* the arrays that a list of nodes writes */
    int *by, serial; /* by place: the serial of the last list that writes it */
    Places work;     /* of those among Emit.work */
} Stored;

typedef struct Strides Strides; /* emit_stride.c */

typedef struct Wide { /* the neighbours of a lane, loaded as w7_0 and so on */
    Expr *cell;
    int number;
} Wide;

typedef struct Emit {
    Prog *p;
    const Dialect *dialect;
    Text *out;
    Mention used; /* in the function that is being written */
    Node *phase;  /* the one that is being written, */
    Text *parts;  /* and the functions that its long lists are cut into */
    int nparts, nlists;
    int most; /* lines that a list may have without being cut */
    const char *prefix; /* of what is visible outside a function */
    EmitKernel *k;
    int cap_array, cap_count;
    int *place[2], cap_place[2]; /* of an array, and 1, by Buf.id; those from LOOP_OWN on apart */
    int *count_place;            /* of a count, and 1, by Axis.id */
    int *noted_array, *noted_count, functions; /* by place: the last function that mentions it */
    Stored stored, phase_stored; /* the second: by the phase that is being written */
    Buf **work; /* that iterations have: they follow k->array wherever arrays are counted */
    int nwork, cap_work;
    const char **array_name; /* by place in k->array, then in work */
    bool *assigned; /* by Local.id: a register, not a constant */
    bool *begun;    /* by Local.id: its let has been written */
    bool *hides;    /* by Local.id: one around it has the same name; */
    int nlocal;     /* of those of the tree */
    int indent;
    const Local *vector; /* the variable whose lanes are side by side here; or NULL */
    int step, regs, reg; /* how many in a register, how many registers; the one that is written */
    int inner;           /* loops inside the vector loop, around what is written */
    const Node **carried; /* sums over lanes whose registers loops around share */
    int ncarried, cap_carried;
    bool warp;           /* the phase runs in lanes that are threads; */
    bool alone; /* each call is for one iteration of the phase */
    bool parts_of_team;  /* several parts of a warp have one iteration: the first stores, or, in a
                          * loop that is dealt to them, those that have an iteration */
    const Node *packed;  /* the packed loop around; or NULL: */
    int pack;            /* neighbours that a lane has; else 1 */
    Wide *wide;          /* what the node that is written has loaded */
    int nwide, cap_wide, wides;
    LoopKnown *known; /* by Local.id: values of lets of integers */
    bool *narrow;     /* by Local.id: an int32_t */
    bool folds;          /* lanes add to what is being stored to */
    bool masked;         /* only the first lanes count: weft_mask tells which */
    Memo lanes;          /* whether an expression differs from lane to lane */
    bool checked;        /* inside `fits` */
    Strides *strides;    /* of the vector loop around; or NULL */
} Emit;

typedef struct Carried { /* what one loop added to Emit.carried */
    int first, n, regs;
} Carried;

/* How tightly text holds together, as C has it. */
enum Level { L_COMMA, L_SELECT, L_OR, L_AND, L_COMPARE, L_SUM, L_PRODUCT, L_UNARY, L_PRIMARY };

/* emit_expr.c */
const char *emit_ctype(const Emit *, Type);
const char *emit_suffix(Type);                    /* f32, f64, i64 */
const char *emit_lanes(Type);                     /* F16, BF16, F32, F64: of an element */
void emit_expr(Emit *, Expr *, enum Level least); /* in parentheses when it holds less tightly */
void emit_as(Emit *, Expr *, Type, enum Level least); /* as a value of this type */
/* As emit_as, but in a vector loop a scalar is spread over the lanes. */
void emit_operand(Emit *, Expr *, Type, enum Level least);
void emit_place(Emit *, Expr *cell); /* a_X[i] */
void emit_vector_on(Emit *, const Local *);
bool emit_is_vector(Emit *, Expr *);                /* has a value for each lane here */
bool emit_in_lanes(const Emit *, const Local *);    /* holds one */
void emit_local(Emit *, const Local *);
void emit_local_name(const Emit *, Text *to, const Local *); /* of all registers at once */

/* emit_array.c */
void emit_need(Emit *, Node *const *phase, int n); /* finds what the text will mention */
void emit_array_name(Emit *, const Buf *);
void emit_count_name(Emit *, const Axis *); /* the positions of an axis */
Buf *emit_array(const Emit *, int place);   /* of all arrays that the text mentions */
void emit_sort(Places *);                   /* each once, in ascending order */
void emit_find_stores(Emit *, Stored *, Node *const *tree, int n);
bool emit_is_stored(Emit *, const Stored *, const Buf *);

/* emit_find.c: the function that searches an axis so. */
void emit_finder(Emit *, Axis *, FindHow);

/* emit_built.c: phases that build an axis. */
void emit_note_build(Emit *, const Node *, EmitPhase *);
void emit_open_build(Emit *, const EmitPhase *);
void emit_close_build(Emit *, const Node *);
void emit_insert(Emit *, const Node *);

/* emit_vector.c */
void emit_vector_loop(Emit *, const Node *);
/* A loop around vector loops: sums over their lanes that outlive it have registers meanwhile. */
Carried emit_open_carried(Emit *, const Node *);
void emit_close_carried(Emit *, Carried);
void emit_fold(Emit *, const Local *); /* the part of the sum over lanes in this register */
void emit_ahead(Emit *, const Node *);

/* emit_stride.c: elements that are several apart from lane to lane.  emit_strides_on begins a body
 * of a vector loop; what a node of it needs is loaded before it; an element is then the register
 * that holds it; a store is opened, its value written, closed.  False: it is no such element. */
void emit_stride_functions(Emit *, Node *const *phase, int n);
void emit_strides_on(Emit *, const Node *loop);
void emit_strided_loads(Emit *, const Node *);
bool emit_strided_cell(Emit *, Expr *);
bool emit_strided_open(Emit *, const Node *store);
void emit_strided_close(Emit *, const Node *store);
void emit_pays(Emit *, const Node *store); /* the last argument of a store past the caches */

/* emit_wide.c: elements of lanes that are threads.  A packed loop loads elements
 * of neighbours before it uses them; false: the element or store is not of that kind. */
void emit_note_lets(Emit *, const Node *phase);
bool emit_fits_i32(const Emit *, Expr *); /* whatever the data */
bool emit_is_start(const Emit *, Expr *); /* a local that is an i32 from 0 on: of a start array */
void emit_wide_loads(Emit *, const Node *);
bool emit_wide_store(Emit *, const Node *);
bool emit_lane_cell(Emit *, Expr *);
bool emit_lane_open(Emit *, const Node *store); /* its value, and `);`, follow */

/* emit_kernel.c: the kernel around the function of phase i. */
void emit_kernel(Emit *, const Node *phase, EmitPhase *, int i);
void emit_note_team(Emit *, const Node *phase, EmitPhase *);
void emit_work(Emit *, EmitPhase *); /* emit_room.c: declares the arrays of an iteration */
int emit_teams(const EmitPhase *);              /* teams of 32 lanes */
void emit_open_team(Emit *, const EmitPhase *); /* which lane and part a thread is */

/* emit_registers.c: those that a thread needs for a phase, estimated. */
int emit_registers(Emit *, const Node *phase);

/* emit_hint.c: for dialects without prefetches. */
Node *emit_without_hints(Prog *, Node *phase);

/* emit_turn.c: weft_columns_f32 and weft_rows_f32, which load and store a square of rows. */
void emit_turn_functions(Emit *, Type, int lanes);

/* emit_part.c: lists that are too long for one function. */
bool emit_is_long(const Emit *, Node *const *, int n);
void emit_parts(Emit *, Node *const *, int n);

/* emit.c: a function is opened, its body written, closed, and put after its head: declarations of
 * what it mentions come first, and `tree` says which arrays it writes. */
typedef struct Function {
    Text *body, *outer;
    Mention used;
    int indent; /* of the outer one */
} Function;
Function emit_open(Emit *);
void emit_close(Emit *, Function *);
void emit_body(Emit *, Text *out, Function *, Node *const *tree, int n);
void emit_line(Emit *);
void emit_block(Emit *, Node *const *body, int n); /* in braces */
void emit_nodes(Emit *, Node *const *, int n);
void emit_node(Emit *, const Node *);
void emit_let(Emit *, const Node *);
void emit_combined(Emit *, const Node *store, Type); /* the element after the store */
const char *emit_local_type(const Emit *, const Local *);

#endif
