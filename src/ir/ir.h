/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The IR: programs over axes, buffers and statements.  docs/ir.md says what they mean; this header
 * says how they are held.  All of a program lives in one arena and dies with it; expressions are
 * immutable and interned, so equal expressions of a program are the same pointer. */
#ifndef WEFT_IR_H
#define WEFT_IR_H

#include "base/base.h"
#include "ir/policy.h"

/* Element types of buffers, and the types of values: bool, i64, real (a literal that takes the
 * precision of what it meets), f32, f64.  In this order a value is promoted to the later type. */
typedef enum Type {
    T_none,
    T_bool,
    T_i32,
    T_i64,
    T_real,
    T_f16,
    T_bf16,
    T_f32,
    T_f64,
    T_COUNT
} Type;

typedef struct TypeInfo {
    const char *name;
    uint8_t bytes, value; /* of an element in memory; the type of a load */
    bool floats, element; /* a floating-point type; one that a buffer may have */
} TypeInfo;
extern const TypeInfo ir_type[T_COUNT];

typedef enum Op {
#define OP(name, nargs, result, text, props) OP_##name,
#include "ir/op.def"
#undef OP
    OP_COUNT
} Op;

enum OpProps { READS = 1, COMMUTES = 2, FOLDS = 4, CALL = 8, VARCALL = 16 };

typedef struct OpInfo {
    const char *name, *text;
    int8_t nargs; /* -1: any number */
    uint8_t result, props;
} OpInfo;
extern const OpInfo ir_op[OP_COUNT];

typedef struct Size Size;
typedef struct Axis Axis;
typedef struct Var Var;
typedef struct Buf Buf;
typedef struct Local Local; /* these two: ir/loop.h */
typedef struct Node Node;
typedef struct Prog Prog;
typedef const struct Expr Expr; /* const: only build.c can write a node */

struct Expr {
    uint8_t op, type;
    uint16_t nargs, depth; /* depth: of the tree below and of what its variables hang on */
    uint16_t nest;         /* how deep its text nests brackets, calls and signs */
    int32_t k;             /* OP_coord: which coordinate */
    uint32_t id;           /* order of making, from 0 without gaps */
    uint32_t tree;         /* nodes when shared ones are counted each time; UINT32_MAX: more */
    Expr *const *arg;
    union { /* op says which member is live */
        int64_t i;
        double f;
        Size *size;
        Var *var;
        Axis *axis;
        Buf *buf;
        Local *local;
    };
};

typedef struct Place {
    int line, col; /* in the source; 0 when made by a pass */
} Place;

struct Size {
    const char *name;
    int id;
    int64_t is; /* its value, where a kernel is for this one alone; else 0 */
};

typedef enum Extent { X_EXPR, X_TABLE, X_SEG, X_ONE, X_BUILT } Extent;
typedef enum CoordKind { C_IDENT, C_LOAD, C_TABLE, C_EXPR } CoordKind;

typedef struct Coord {
    const char *name; /* NULL: the variable itself is the value */
    CoordKind kind;
    const int64_t *table; /* C_TABLE: one value a position */
    int64_t n;
    Expr *expr;  /* C_EXPR: of loc(self), ancestors' coordinates and own earlier ones */
    Expr *bound; /* of sizes; or NULL */
    bool once;   /* no two positions of the axis have the same value; only of a load */
    /* Made by a pass that has proven it: an ancestor, or the axis itself, no two positions of which
     * have the same value below.  Or NULL. */
    Axis *owner;
} Coord;

enum AxisFrom {
    FROM_LONG = -1, /* the entries of long rows, under parts, under long rows, under one position */
    FROM_CUT = -2,  /* all entries, or the positions of a dense axis, under parts, under one */
    FROM_FORMAT = -3, /* those of a part of a format; its last coordinate is where they were */
    FROM_ROWS = -4    /* not entries but the rows at their top, each with its part, under parts */
};

enum AxisFlags { AX_SORTED = 1, AX_UNIQUE = 2, AX_PADDED = 4 };

struct Axis {
    const char *name; /* NULL: a dense axis that a slot or a binder made; printed as its extent */
    Axis *parent;     /* or NULL */
    Extent extent;
    Expr *size;            /* X_EXPR: of sizes */
    const int64_t *table;  /* X_TABLE: one extent for each of the parent's n positions */
    const int64_t *starts; /* X_TABLE: n + 1 prefix sums */
    int64_t n;
    int ncoord;
    Coord *coord; /* at least one */
    unsigned flags;
    Var *var; /* its own variable; the parent is the parent axis' own variable */
    /* Made by a pass: its entries are those of this axis, ordered by coordinate from_k; its
     * coordinates are theirs, and where they were (lower/positions/transpose.c, run/plan.c).  Or,
     * where from_k is an AxisFrom, the last of a family that has them in parts
     * (lower/split/reductions.c).  Or NULL. */
    Axis *from;
    int from_k;
    const char *format; /* FROM_FORMAT: the text of its use, and the number of the part (format/) */
    int part;
    int id; /* order of declaration */
    Place place;
};

struct Var {
    const char *name;
    Axis *axis;
    Expr *parent; /* an index of axis->parent: OP_var, OP_at or a coordinate; NULL: a root axis */
    int id;
};

/* B_WORK: below coordinates only; each iteration of a phase has such an array of its own, and what
 * it holds is gone with the iteration.  B_SHARED: the same, in the memory that the threads of a
 * block share. */
typedef enum BufKind { B_ARG, B_INOUT, B_TEMP, B_CONST, B_WORK, B_SHARED } BufKind;

typedef struct Stride { /* elements between neighbours in a dimension */
    Size *size;         /* that a run tells; NULL: it is */
    int64_t is;
} Stride;

struct Buf {
    const char *name;
    Type type;
    BufKind kind;
    int nslot, nfull;
    Axis **slot; /* as declared */
    Axis **full; /* with the implied ancestors: storage is the lexicographic order of these */
    int *place_in_full; /* of each slot */
    bool has_fill;
    double fill; /* what a read that misses gives, what an output element never reached holds */
    int64_t n;   /* B_CONST: values, in storage order */
    const double *val;   /* floating-point types */
    const int64_t *ival; /* integer types */
    bool rows;           /* B_CONST declared by `rows ... -> name`: loads have type real */
    bool written;        /* by a statement; kept up by ir_stmt */
    int id;
    Place place;
    /* An array of an axis (ir/loop.h): E.start or, from 0, coordinate of_k; where nfull is not 0,
     * the tuples before each position of place of_k.  Or NULL. */
    Axis *of;
    int of_k;
    /* An input that a kernel reads as it lies, by interface dimension; NULL: without gaps. */
    const Stride *stride;
    int nstride;
    /* What each element holds until a phase stores to it (ir/loop.h); NULL: nothing.  `init_at`:
     * the locals that stand for its indices there; NULL: the value is the same for all. */
    Expr *init;
    Local **init_at;
};

typedef enum AssignOp { A_SET, A_ADD, A_MAX, A_MIN, A_INSERT } AssignOp;

typedef struct At { /* a companion of max= and min=: written where the winner is */
    Expr *out, *value;
} At;

/* Whether `=` may set an element twice (once.c). */
typedef enum OnceKind {
    ONCE_UNKNOWN, /* not looked at yet */
    ONCE_PROVEN,  /* it cannot */
    ONCE_TESTED   /* only the data tell: the run tests it */
} OnceKind;

typedef struct Assign {
    const char *label; /* unique in the program */
    AssignOp op;
    OnceKind once; /* A_SET */
    Expr *out;   /* OP_load; OP_row for A_INSERT */
    Expr *value; /* for A_INSERT: the coordinate, or an OP_tuple of them */
    Expr *guard; /* T_bool; or NULL */
    int nat;
    At *at;
    Place place;
} Assign;

typedef struct Stmt { /* one domain; none of its assigns reads what another writes */
    int nbind, nassign;
    Var **bind; /* outermost first; a parent's variable before its children's */
    Assign *assign;
    Place place;
    bool in_order; /* set by pass transpose: the first variable stays the outermost */
} Stmt;

typedef struct Decl { /* declarations in the order of the text; one of the two */
    Axis *axis;
    Buf *buf;
} Decl;

typedef struct Symbol { /* what a name stands for; the name spaces are the members */
    const char *name;
    Size *size;
    Axis *axis, *of_var; /* of_var: the axis whose own variable has this name */
    Buf *buf;
    Var *var;  /* the latest of this name */
    Expr *let; /* while the group that names it is read */
    bool label;
    int last; /* the last number that ir_fresh gave out for this stem */
    int free; /* while a tree is printed: names of this stem with smaller numbers are taken */
} Symbol;

/* What a program is written in: statements over coordinates, or a tree of loops. */
typedef enum Stage { STAGE_COORDINATES, STAGE_POSITIONS, STAGE_LOOPS, STAGE_COUNT } Stage;
extern const char *const ir_stage[STAGE_COUNT];
extern const char ir_stage_threads[];

struct Prog {
    Arena *arena;
    Symbol **sym; /* open addressing */
    uint32_t nsym, cap_sym;
    const char *name;
    const char *file, *src; /* the text it was read from, for messages; or NULL */
    size_t nsrc;
    Place at; /* what is being built now, for messages */
    int nsize, naxis, nvar, nbuf, nstmt, ndecl;
    Size **size;
    Axis **axis; /* anonymous ones included */
    Var **var;
    Buf **buf;
    Stmt **stmt;
    Decl *decl;
    int cap_size, cap_axis, cap_var, cap_buf, cap_stmt, cap_decl;
    Expr **expr; /* by id */
    int nexpr, cap_expr;
    uint32_t *table; /* open addressing: id + 1 */
    uint32_t cap_table;
    Var **var_table; /* open addressing */
    uint32_t cap_var_table;
    Axis **dense; /* the anonymous dense axes, by the id of their extent */
    int ndense;
    int naux, nlocal; /* arrays and locals made below coordinates */
    int cap_aux;
    Buf **aux;
    Stage stage; /* below coordinates it is the declarations and these phases, in order; */
    bool threads; /* stage `threads`: STAGE_LOOPS where lanes are threads, which barriers order */
    int nphase;  /* statements, if there are any, are what they were made from */
    Node *const *phase;
    const char *sched; /* the program's own schedule, a step a line; or NULL */
    /* Bytes of the arena when its garbage was last collected.  0: the arena holds more than the
     * program, and is not collected. */
    size_t collected;
    unsigned properties; /* of its loops, for who runs the passes */
    Policy policy;       /* by which passes choose */
};

enum {
    IR_MAX_RANK = 16,  /* slots of a buffer, coordinates of an axis */
    IR_MAX_FULL = 32,  /* slots with implied ancestors */
    IR_MAX_BINDS = 64, /* variables of a statement */
    IR_MAX_NAME = 64,
    IR_MAX_DEPTH = 1000, /* of an expression, so that passes may recurse */
    IR_MAX_INDEX = 256,  /* nodes of an index or a size, so that passes may walk it as a tree */
    IR_MAX_NODES = 1000000
};

/* prog.c, axis.c: declarations.  Each throws with the place of p->at when it is wrong. */
Prog *ir_prog(Arena *, const char *name);
Symbol *ir_symbol(Prog *, const char *s, size_t n);            /* made when new */
Symbol *ir_find_symbol(const Prog *, const char *s, size_t n); /* NULL when there is none */
Size *ir_size(Prog *, const char *name);
/* An axis is opened (its name and variable exist, so that its coordinates may use them), filled in
 * by the caller (extent, size, table, n, flags, ir_axis_coord for each), and closed: checked and
 * declared.  No coordinate means ident. */
Axis *ir_axis_open(Prog *, const char *name, Axis *parent);
void ir_axis_coord(Prog *, Axis *, const Coord *);
void ir_axis_close(Prog *, Axis *);
Axis *ir_dense(Prog *, Expr *extent); /* the anonymous dense axis of this extent */
/* Declares the buffer described by *decl (name, type, kind, slot, nslot, has_fill, fill, val or
 * ival with n, rows). */
Buf *ir_buf(Prog *, const Buf *decl);
Var *ir_var(Prog *, const char *name, Axis *, Expr *parent); /* interned by all three */
/* Appends a statement; the binders are the default ones when bind is NULL.  Labels that are NULL
 * get a fresh one. */
Stmt *ir_stmt(Prog *, Var *const *bind, int nbind, const Assign *assign, int nassign);
Axis *ir_find_axis(const Prog *, const char *name); /* NULL when there is none */
Buf *ir_find_buf(const Prog *, const char *name);
Size *ir_find_size(const Prog *, const char *name);
int ir_find_coord(const Axis *, const char *name);     /* -1 when there is none */
bool ir_is_ancestor(const Axis *up, const Axis *down); /* proper */
bool ir_is_ident(const Axis *);                        /* one coordinate, the position itself */
bool ir_is_dense(const Axis *); /* sizes alone say how many positions it has; all of them exist */
/* from.c: whether whoever runs the program makes its arrays: it, or one below it, has `from`. */
bool ir_is_made(const Prog *, const Axis *);
/* a op b; false: it does not fit, or the operator is no arithmetic of two integers. */
bool ir_int_op(Op, int64_t a, int64_t b, int64_t *out);
bool ir_const_int(Expr *, int64_t *out);               /* of literals only */
int64_t ir_const_total(const Axis *); /* positions in all when that is a constant, else -1 */
/* A name that nothing has yet (that no label has): stem, stem1, ... */
const char *ir_fresh(Prog *, const char *stem, bool label);
const char *const *ir_keywords(void); /* NULL at the end */
_Noreturn void ir_throw(Prog *, Status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* build.c: expressions. */
Expr *ir_int(Prog *, int64_t);
Expr *ir_real(Prog *, double);
Expr *ir_size_expr(Prog *, Size *);
Expr *ir_var_expr(Prog *, Var *);  /* the entry, for an index */
Expr *ir_var_value(Prog *, Var *); /* its value: the single unnamed coordinate */
Expr *ir_coord(Prog *, Var *, int k);
Expr *ir_of_var(Prog *, Op, Var *); /* OP_pos, OP_loc */
Expr *ir_count(Prog *, Axis *);
Expr *ir_none(Prog *);
Expr *ir_load(Prog *, Buf *, Expr *const *index, int n); /* resolves each index: see docs/ir.md */
Expr *ir_row(Prog *, Axis *, Expr *parent);
Expr *ir_node(Prog *, Op, Expr *const *arg, int n); /* every other op; checks count and types */
Expr *ir_op1(Prog *, Op, Expr *);
Expr *ir_op2(Prog *, Op, Expr *, Expr *);
Type ir_promote(Type, Type);
bool ir_is_int(const Expr *), ir_is_float(const Expr *); /* of its value; real counts as float */
/* The index of a load at each place of buf->full, implied ancestors included: what the entry
 * variable below them says, or OP_none where only an OP_at below tells. */
void ir_full_index(Prog *, Expr *load, Expr **out);
/* Resolves an index that stands alone, as in F(j(e)). */
Expr *ir_index(Prog *, Axis *, Expr *index);

/* walk.c */
typedef struct Memo { /* a map from expressions; {0} to begin with */
    Expr **key, **to;
    uint32_t n, cap;
} Memo;
Expr **ir_memo(Prog *, Memo *, Expr *); /* the entry of an expression, NULL at first */
/* Rebuilds e bottom up.  fn gets each node with its arguments already rebuilt and returns it or
 * what stands for it; shared nodes are rebuilt once for each memo. */
typedef Expr *Rewrite(Prog *, Expr *, void *ctx);
Expr *ir_rewrite(Prog *, Expr *, Rewrite *, void *ctx, Memo *);
Expr *ir_with_args(Prog *, Expr *, Expr *const *arg); /* the same operator on other arguments */
/* Calls fn for each node below e, children first, that this memo has not met yet. */
typedef void Visit(Expr *, void *ctx);
void ir_visit(Prog *, Expr *, Visit *, void *ctx, Memo *met);
/* Whether the test holds for a node of e; stops at the first, and tests a shared node once (a few
 * times, where e is small). */
typedef bool ExprTest(Expr *, const void *ctx);
bool ir_any(Prog *, Expr *, ExprTest *, const void *ctx);
/* Calls ir_visit on all expressions of an assign: output, value, guard, companions. */
void ir_visit_assign(Prog *, const Assign *, Visit *, void *ctx, Memo *met);
/* Adds to the set out[0..n) the variables of e and those that they hang on; the new n. */
int ir_vars(Prog *, Expr *, Var **out, int n);
/* The variables that run over all elements of a buffer (room for IR_MAX_FULL), and its access at
 * them. */
Expr *ir_everywhere(Prog *, Buf *, Var **bind);
/* The binders a statement has when it states none: its variables in declaration order of their
 * axes.  out has room for IR_MAX_BINDS. */
int ir_default_binds(Prog *, const Assign *, int nassign, Var **out);

/* copy.c, equal.c: a copy in another arena; equality and hash (places and source apart). */
Prog *ir_copy(Arena *, const Prog *);
/* A copy that is the only thing in the empty arena `own`, so that its garbage can be collected.
 * The Prog itself is in `holder`: its address stays the same. */
Prog *ir_copy_alone(Arena *holder, Arena *own, const Prog *);
/* Moves what such a program uses to new memory and frees the rest of its arena.  Expressions are
 * numbered anew in the same order.  Pointers to parts of the program are no longer valid. */
void ir_collect(Prog *);
/* A copy of the declarations, without statements and phases.  Scratch memory is taken from the
 * arena of the old program. */
Prog *ir_copy_declared(Arena *, const Prog *);
/* An expression without locals of the program that `to` was copied from, as one of `to`. */
Expr *ir_import(Prog *to, Expr *);
bool ir_equal(const Prog *, const Prog *);
uint64_t ir_hash(const Prog *);

/* prune.c: p without what no output needs, in another arena; and all of p, made anew, so that ids
 * are in the order of the text whatever made p. */
Prog *ir_prune(Arena *, const Prog *p);
Prog *ir_rebuild(Arena *, const Prog *p);
/* p for a batch: the named inputs, and what depends on them, have a new first axis, of a new size.
 * Throws ST_ARG for a name that is no input, and where the structure that p builds depends on
 * them. */
Prog *ir_batch(Arena *, const Prog *p, const char *const *name, int n);

/* simplify.c: the same value, bit for bit, in fewer nodes. */
Expr *ir_simplify(Prog *, Expr *, Memo *);

/* lex.c, parse.c, parse_expr.c: text to program.  ir_parse_more adds declarations and statements
 * to a program (which must be thrown away when this throws). */
Prog *ir_parse(Arena *, const char *file, const char *text, size_t n);
void ir_parse_more(Prog *, const char *file, const char *text, size_t n);

/* print.c: program to text; ir_parse(ir_print(p)) equals p. */
void ir_print(Text *, Prog *);
void ir_print_expr(Text *, Prog *, Expr *);

/* check.c: throws ST_CHECK for the first rule of docs/ir.md that the program breaks. */
void ir_check(Prog *);
/* How a variable reaches the output of an assign. */
typedef enum Reach { REACH_NONE, REACH_SCATTER, REACH_SPATIAL } Reach;
Reach ir_reach(const Assign *, const Var *);

/* once.c: sets Assign.once where it is not known yet, and throws ST_CHECK where `=` sets an element
 * twice for certain.  ir_check calls it; passes that make several statements of one keep what it
 * said of that one. */
void ir_judge_once(Prog *);

/* layout.c: a program with its arrays; how positions become places in storage. */
typedef struct Array {
    void *data;
    int64_t n;
    Type type;
} Array;

typedef struct Env { /* arrays by id; data is NULL for what is not there yet */
    int64_t *size;   /* by Size.id; -1 unknown */
    Array *start;    /* by Axis.id: X_SEG, X_BUILT */
    Array **coord;   /* by Axis.id, then k: C_LOAD */
    Array *buf;      /* by Buf.id */
} Env;

Env *ir_env(Arena *, const Prog *);
int64_t ir_array_int(const Array *, int64_t i);
double ir_array_float(const Array *, int64_t i);
int64_t ir_eval_size(const Prog *, const Env *, Expr *); /* of sizes only */
/* Where the positions of an axis stand: those below position q of the parent are first(q) ..
 * first(q + 1).  A root axis stands below one position, 0. */
typedef struct Span {
    int64_t parents, total; /* positions of the parent; of the axis, in all */
    int64_t width;          /* below each of the parent's, when the same for all; else -1, and */
    Array start;            /* the first below each, and the total */
} Span;
Span ir_axis_span(const Prog *, const Env *, const Axis *);
int64_t ir_span_first(const Span *, int64_t parent);
int64_t ir_span_parent(const Span *, int64_t pos); /* the last that begins at pos or before */
int64_t ir_axis_total(const Prog *, const Env *, const Axis *); /* positions in all */
int64_t ir_axis_start(const Prog *, const Env *, const Axis *, int64_t parent); /* first position */
/* An interface dimension: the slots first..last of buf->full that fold into one. */
typedef struct Dim {
    int first, last;
} Dim;
int ir_dims(const Buf *, Dim out[IR_MAX_FULL]);
int ir_parent_place(const Buf *, int k); /* in buf->full, of what place k hangs on; or -1 */

/* One place of buf->full in a layout; "tuples" are those of the places that hang below it. */
typedef struct LaySlot {
    Span span;
    int parent;      /* place of the parent axis, or -1 */
    int64_t below;   /* tuples below each position, when the same for all; else -1, and */
    int only;        /* the one place below, which counts them; or -1, and */
    int64_t *before; /* tuples below all earlier positions, one entry a position and the total */
    int head;        /* first place of the chain of only children that ends here */
    int64_t stride;  /* tuples of later places that hang elsewhere, when constant; else -1 */
} LaySlot;

/* Where the elements of a buffer are, for one Env whose structure arrays have been validated. */
typedef struct Layout {
    const Buf *buf;
    int64_t n; /* elements in all */
    int ndim;
    Dim dim[IR_MAX_FULL];
    int64_t extent[IR_MAX_FULL]; /* of each dimension */
    LaySlot *slot;               /* by place in full */
} Layout;
void ir_layout(Arena *, const Prog *, const Env *, const Buf *, Layout *out);
int64_t ir_layout_at(const Layout *, const int64_t *pos); /* pos: by place in full */

#endif
