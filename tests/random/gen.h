/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The generator's own picture of the program that it writes.  Axes get their structure before
 * statements are made, so the generator knows every coordinate and can tell which indices stay
 * inside, which sums stay small and which elements are written once. */
#ifndef WEFT_GEN_H
#define WEFT_GEN_H

#include "random/random.h"

typedef struct Ival { /* of an integer; empty when lo > hi: no instance has a value */
    double lo, hi;
} Ival;

static inline Ival ival(int64_t lo, int64_t hi)
{
    return (Ival){ (double)lo, (double)hi };
}

typedef struct GSize {
    const char *name;
    int64_t value;
} GSize;

typedef struct GCoord {
    const char *name; /* NULL: unnamed */
    CoordKind kind;
    const char *text;  /* C_EXPR, C_TABLE: after the = */
    const char *bound; /* NULL: none */
    int64_t most;      /* its value */
    int64_t *val;      /* by position */
    Ival range;        /* over the positions that exist */
    Type type;         /* of its array */
} GCoord;

enum {
    G_COORDS = 4,
    G_AXES = 32,
    G_BUFS = 64,
    G_SIZES = 5,
    G_VARS = 8,
    G_SLOTS = 6,
    G_FULL = 24,
    G_LETS = 3,
    G_GUARDS = 16
};

typedef enum BuiltState { NOT_BUILT, OPEN, FROZEN } BuiltState;

typedef struct GAxis GAxis;
struct GAxis {
    const char *name, *var; /* NULL: anonymous */
    const char *size;       /* X_EXPR: text of the extent */
    GAxis *parent;
    Extent extent;
    bool constant; /* its positions are known when compiling */
    bool known;    /* false: built, or below a built axis; then n and live are what there may be */
    int64_t n, live, least, most; /* positions; those that exist; extents under a parent */
    int64_t *start, *up;          /* by parent position; by position */
    bool *exists;
    int ncoord;
    GCoord coord[G_COORDS];
    unsigned flags;
    BuiltState built;
    int inserts;
    const char *rows_value; /* the const buffer of a `rows` axis */
    const double *value;
    bool rows;
};

typedef struct GBuf {
    const char *name;
    Type type;
    BufKind kind;
    int nslot, nfull;
    GAxis *slot[G_SLOTS], *full[G_FULL];
    int place[G_SLOTS]; /* of each slot in full */
    const char *fill;   /* NULL: none */
    double fill_value;
    bool written, read, companion, rows, declared;
    bool guarded; /* all statements that write it have a guard */
    bool wild; /* may hold what no expression should meet: not to be read */
    int nat;   /* companions */
    AssignOp op;
    double mag;          /* no element is larger */
    Ival range;          /* of an integer buffer */
    GAxis *positions;    /* its values are positions of this axis that exist (or -1) */
    const char *literal; /* B_CONST: the values */
} GBuf;

typedef struct GVar GVar;
struct GVar {
    const char *name;
    GAxis *axis;
    GVar *up;          /* the variable of its parent position */
    const char *under; /* or the index that gives it: f in F(under) */
    bool own;
    uint32_t needs; /* variables that must stand before it, by their bits */
    int64_t count;  /* positions for one instance of what stands before, at most */
};

typedef struct Val { /* a piece of text with what is known about its value */
    const char *s;
    int prec; /* how tightly the text holds together: P_OR .. P_PRIMARY */
    Type type;
    Ival r;           /* i64 */
    double mag;       /* of any number */
    GAxis *positions; /* all its values are positions of this axis that exist */
} Val;

enum { P_OR, P_AND, P_NOT, P_COMPARE, P_SUM, P_PRODUCT, P_SIGN, P_PRIMARY };

typedef struct Scope { /* what a statement runs over */
    GVar *var[G_VARS];
    int nvar;
    double count;  /* instances, at most */
    bool dead;     /* a variable that has no position: nothing of it is ever evaluated */
    bool risky;    /* an index may be left to chance */
    bool no_guard; /* the text stands where no condition can protect it */
    const char *guard[G_GUARDS];
    int nguard;
    struct GLet {
        const char *name;
        Val val;
    } let[G_LETS];
    int nlet;
    GBuf *busy[8]; /* written by the statement: not to be read */
    int nbusy;
} Scope;

typedef struct Insert { /* how entries came into a built axis: the same domain writes them again */
    GAxis *axis;
    Scope scope;
    const char *parent, *index, *guard;
} Insert;

typedef struct Gen {
    Arena *arena;
    Rng rng;
    Knobs knobs;
    Case *out;
    GSize size[G_SIZES];
    int nsize;
    GAxis *axis[G_AXES];
    int naxis;
    GBuf *buf[G_BUFS];
    int nbuf;
    Insert insert[4];
    int ninsert;
    const char *taken[256]; /* names */
    int ntaken;
    Text body;
    size_t cut[16]; /* where statements begin in it: declarations may stand there */
    int ncut;
    int nlabel;
    int nest; /* accesses inside indices of accesses */
} Gen;

/* gen.c: small things that all parts use. */
const char *gen_f(Gen *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool gen_p(Gen *, int percent);
int gen_pick(Gen *, int n); /* 0 .. n - 1 */
void gen_has(Gen *, Feature);
const char *gen_name(Gen *,
                     const char *const *list); /* one of a list that ends in NULL, numbered */
const char *gen_lower(Gen *, const char *);
/* An expression of sizes (or a literal) whose value is in lo..hi. */
void gen_extent(Gen *, int64_t lo, int64_t hi, bool constant, const char **text, int64_t *value);

/* gen_axis.c */
GAxis *gen_axis(Gen *, GAxis *parent); /* parent NULL: any or none; NULL: there are enough */
GAxis *gen_axis_built(Gen *);
GAxis *gen_axis_dense(Gen *, const char *size, int64_t value, bool named);
GAxis *gen_axis_table(Gen *, const char *stem, GAxis *parent, const int64_t *extent);
/* The steps of making one: open, positions (so many under each parent position), coordinates with
 * their values, close. */
GAxis *gen_axis_open(Gen *, GAxis *parent, Extent, bool named);
void gen_axis_positions(Gen *, GAxis *, const int64_t *count);
GCoord *gen_axis_coord(Gen *, GAxis *, const char *name, CoordKind);
void gen_axis_close(Gen *, GAxis *);
void gen_rows_value(Gen *, GAxis *);       /* the const buffer of a rows axis */
const char *gen_axis_text(Gen *, GAxis *); /* gen_axis_text.c */
bool gen_is_literal(const char *size);     /* no size in it */
bool gen_is_ident(const GAxis *);
bool gen_is_above(const GAxis *up, const GAxis *); /* a proper ancestor */
bool gen_usable(const GAxis *);                    /* may be iterated and indexed now */

/* gen_format.c: axes of the known formats. */
void gen_format(Gen *);
/* A graph: edges below each row, with a named coordinate below `most`. */
GAxis *gen_axis_edges(Gen *, GAxis *rows, const char *coord, const char *most, int64_t value);

/* gen_buf.c */
GBuf *gen_buf(Gen *, BufKind, Type, GAxis *const *slot, int nslot);
GBuf *gen_input(Gen *, Type, GAxis *const *slot, int nslot); /* with data */
GBuf *gen_position_map(Gen *, GAxis *of, GAxis *const *slot, int nslot);
void gen_inout_data(Gen *, GBuf *);
Type gen_float_type(Gen *);
double gen_limit(const Gen *, Type); /* integers below it are exact */

/* gen_int.c */
#define GEN_MOST_INT 0x1p30 /* products of two still fit */
Val gen_int(Gen *, Scope *, int depth);
Val gen_int_val(const char *s, int prec, Ival);
Val gen_position_val(const char *s, GAxis *); /* a primary whose values are positions that exist */
Val gen_int_sum(Gen *, Val, Val), gen_int_product(Gen *, Val, Val);
Val gen_int_choice(Gen *, Scope *, Val, Val); /* min, max or select */
/* Makes the value stay in lo..hi, by %, by a clamp or by a guard; false: cannot. */
bool gen_fit(Gen *, Scope *, Val *, double lo, double hi);
bool gen_guard(Scope *,
               const char *cond); /* the statement runs only where it holds; false: no room */
const char *gen_at(Gen *, Val, int prec); /* its text, in parentheses when it needs them */

/* gen_load.c */
bool gen_load(Gen *, Scope *, bool floats, Val *);
bool gen_let(Gen *, Scope *, bool floats, Val *);
GBuf *gen_pick_buf(Gen *, Scope *, bool floats); /* one to read; NULL: found none */
bool gen_is_readable(const Scope *, const GBuf *, bool floats);
bool gen_slots_agree(GAxis *const *slot, int n);      /* a buffer may have them */
double gen_count_elements(GAxis *const *slot, int n); /* at most */

/* gen_expr.c */
Val gen_float(Gen *, Scope *, int depth);
Val gen_cond(Gen *, Scope *, int depth);

/* gen_access.c */
typedef struct Access {
    const char *s;
    bool may_miss;
} Access;
/* want: by slot, the variable to stand there; NULL: any index.  False: found none. */
bool gen_access(Gen *, Scope *, const GBuf *, GVar *const *want, Access *);
/* Makes the value a position in a dense slot of x. */
bool gen_fit_slot(Gen *, Scope *, Val *, const GAxis *x);
bool gen_is_long(const char *); /* an index may have so many operators, and no more */
bool gen_position(Gen *, Scope *, GAxis *, Val *);

/* gen_scope.c */
bool gen_scope(Gen *, Scope *);
const char *gen_binds(Gen *, const Scope *,
                      bool all);            /* "for i, e" or "" when the default will do */
GVar *gen_own_var(Gen *, Scope *, GAxis *); /* adds it and its ancestors' */

/* gen_stmt.c */
void gen_stmt(Gen *);
const char *gen_label(Gen *); /* with its colon, or "" */
const char *gen_guards_text(Gen *, const Scope *);
void gen_random_guard(Gen *, Scope *, AssignOp);
bool gen_choose_type(Gen *, const Scope *, AssignOp, Val, bool floats, Type *);
void gen_note_write(const Scope *, GBuf *, AssignOp, Val); /* what is known of it from now on */

/* gen_built.c: insertions into built axes, and what is written there afterwards. */
bool gen_built_stmt(Gen *);    /* sometimes; false: made none */
void gen_flush_inserts(Gen *); /* the axes that nothing has been inserted into */

/* gen_tensor.c: irreps, paths and their product. */
void gen_tensor(Gen *);

/* gen_rows.c: temporaries with a row for each edge, and sums that read them. */
void gen_rows(Gen *);

#endif
