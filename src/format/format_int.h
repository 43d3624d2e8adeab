/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Shared by the files of format/: rules as parsed, and as used. */
#ifndef WEFT_FORMAT_INT_H
#define WEFT_FORMAT_INT_H

#include "format/format.h"

/* Expressions of maps and conditions: integers that belong to an entry.  A name becomes what it
 * stands for when the rule is used; those of positions come from the axes (the inverse). */
typedef enum FmtOp {
    F_INT,
    F_NAME,
    F_COORD, /* v: which coordinate of the entry */
    F_BOUND, /* v: of which coordinate */
    F_LOC,   /* v: level; the number of a position inside its parent */
    F_LOAD,  /* v: level, k: coordinate */
    F_NEG,
    F_ADD,
    F_SUB,
    F_MUL,
    F_DIV,
    F_MOD,
    F_LT,
    F_LE,
    F_EQ,
    F_NE,
    F_AND,
    F_OR,
    F_NOT,
    F_ABS,
    F_MIN,
    F_MAX,
    F_BITS, /* the least b with 2^b >= x; 0 for x < 2 */
    F_EXP2,
    F_COUNT, /* entries with the same values */
    F_RANK,  /* of these, how many come before */
    F_INDEX, /* distinct values of the arguments from `keys` on, below this one, with the others */
    F_PLACE  /* of the first among all its values: windows of so many, by falling second */
} FmtOp;

typedef struct FmtExpr FmtExpr;
struct FmtExpr {
    FmtOp op;
    int k, nargs, keys;
    int64_t v;
    const char *name;
    FmtExpr **arg;
};

typedef struct FmtNamed { /* name = expr */
    const char *name;
    FmtExpr *expr;
} FmtNamed;

enum { FMT_MOST = 16 }; /* parameters, names, lines of one kind */

typedef struct FmtRulePart { /* as it is written */
    const char *name;
    int nloop, nlet, nfit, nmap, naxis;
    FmtNamed loop[FMT_MOST], let[FMT_MOST], map[FMT_MOST]; /* loop: one part for each value */
    const char *fit[FMT_MOST];
    const char *axis[FMT_MOST]; /* lines */
    int axis_line[FMT_MOST];
    FmtExpr *where; /* or NULL */
    bool zeros;
} FmtRulePart;

typedef struct FmtRule {
    const char *name, *note, *text;
    int nparam, ncoord, npart, nlet;
    const char *param[FMT_MOST];
    const char *coord[FMT_MOST], *bound[FMT_MOST]; /* of an entry */
    FmtNamed let[FMT_MOST];                        /* of all parts */
    FmtRulePart *part;
} FmtRule;

/* rule.c: reads one rule; *rest: where its text ends. */
FmtRule *fmt_rule(Arena *, const char *text, const char **rest);
bool fmt_is_rule(const char *text); /* a line `format ...` comes next */
/* unfold.c: `f(b = 4) { axis ... }` as the text of a rule and its use; NULL: it has no rule. */
const char *fmt_unfold(Arena *, const char *use);
/* rules.c: of the library, by name; NULL: there is none. */
const char *fmt_find_rule(Arena *, const char *name);

typedef struct FmtAxis { /* an axis of a part */
    Axis *axis;
    FmtExpr *extent;                 /* or NULL: seg, one, or a size that fits */
    Size *fit;                       /* that size; or NULL */
    FmtExpr *loc;                    /* the place under its parent; NULL: by its coordinates */
    FmtExpr *load[IR_MAX_RANK];      /* what is stored, of those that are; else NULL */
    FmtExpr *coord[IR_MAX_RANK];     /* each as an expression of positions and stored ones */
    FmtExpr *bound[IR_MAX_RANK];     /* or NULL */
} FmtAxis;

typedef struct FmtShape { /* a part of a use */
    const char *name;     /* "" when it is the only one */
    Prog *prog;           /* has the axes */
    int nlevel;
    FmtAxis *level;
    FmtExpr *where;                        /* or NULL: all that is left */
    int from_level[FMT_MOST], from_k[FMT_MOST]; /* which coordinate is that of the entry */
    bool zeros;
    int nname;
    FmtNamed *name_of; /* what the names of the part mean */
} FmtShape;

struct FmtUse {
    const char *text;
    FmtRule *rule;
    int64_t param[FMT_MOST];
    int nshape;
    FmtShape *shape;
};

FmtExpr *fmt_name(const FmtShape *, const char *); /* what a name means in a part; or NULL */
FmtExpr *fmt_node(Arena *, FmtOp, int64_t v, FmtExpr *a, FmtExpr *b);
int fmt_expr_cmp(const FmtExpr *, const FmtExpr *); /* one order of all; 0: the same */
void fmt_expr_print(Text *, const FmtRule *, const FmtExpr *);
/* False: it depends on more than numbers. */
bool fmt_expr_const(const FmtExpr *, int64_t *out);
/* An operator on numbers; what overflows, or is divided by 0, is INT64_MIN. */
int64_t fmt_op(FmtOp, int64_t a, int64_t b);

/* prove.c: throws unless each coordinate of an entry comes back from where the map puts it. */
void fmt_prove(Arena *, const FmtUse *, const FmtShape *);

/* A number for each of a list.  It is 32 bits wide where lo and hi, which no number is outside of,
 * allow it. */
typedef struct FmtCol {
    void *data;
    bool wide;
    int64_t lo, hi;
} FmtCol;

static inline int64_t fmt_get(const void *data, bool wide, int64_t t)
{
    return wide ? ((const int64_t *)data)[t] : ((const int32_t *)data)[t];
}

static inline void fmt_put(void *data, bool wide, int64_t t, int64_t v)
{
    if (wide)
        ((int64_t *)data)[t] = v;
    else
        ((int32_t *)data)[t] = (int32_t)v;
}

static inline int64_t fmt_at(const FmtCol *c, int64_t t)
{
    return fmt_get(c->data, c->wide, t);
}

static inline void fmt_set(const FmtCol *c, int64_t t, int64_t v)
{
    fmt_put(c->data, c->wide, t, v);
}

static inline int64_t fmt_int(const Array *a, int64_t t)
{
    return fmt_get(a->data, a->type == T_i64, t);
}

/* sort.c: work in blocks.  Columns of one number an entry are used again: new memory is dear. */
enum { FMT_SPARE = 16 };
typedef struct FmtSpare {
    int64_t cap;  /* of each */
    int n[2];     /* of 32 and of 64 bits */
    void *column[2][FMT_SPARE];
} FmtSpare;

typedef struct FmtRun {
    Arena *scratch;
    const FmtPool *pool;
    FmtSpare *spare;
    const char *name; /* of the format, for messages */
} FmtRun;
FmtCol fmt_column(const FmtRun *, int64_t lo, int64_t hi); /* with any content */
void fmt_give(const FmtRun *, const FmtCol *);             /* one that nobody needs */
enum { FMT_BLOCK = 1 << 14, FMT_MOST_BLOCKS = 64 };
int64_t fmt_blocks(int64_t n);
static inline int64_t fmt_cut(int64_t n, int64_t blocks, int64_t b)
{
    int64_t rest = n % blocks;

    return n / blocks * b + (b < rest ? b : rest);
}
void fmt_each(const FmtRun *, int64_t n, FmtTask *, void *arg);

/* Rows of columns in order, equal ones as they stand. */
typedef struct FmtSort {
    const FmtCol *col;
    int ncol, prefix; /* prefix: columns that lead */
    int64_t n;
    bool whole;  /* equal rows are asked for, not only equal first columns */
    Arena *keep; /* where the order is to be, if it can; or NULL */
    /* what comes of it */
    FmtCol order; /* order[t]: which comes t-th; data NULL: they are in order as they stand */
    FmtCol key;   /* then NULL too; else by t: the row, or its first column, as one number */
    int below;    /* bits of a key that are not of the prefix */
    bool kept;
} FmtSort;
void fmt_sort(const FmtRun *, FmtSort *);
void fmt_sorted(const FmtRun *, const FmtSort *); /* gives its columns back */

static inline int64_t fmt_from(const FmtSort *s, int64_t t)
{
    return s->order.data != NULL ? fmt_at(&s->order, t) : t;
}

/* Whether the first n columns of the t-th row are not those of the one before. */
static inline bool fmt_differs(const FmtSort *s, int64_t t, int n, int below)
{
    if (s->key.data != NULL)
        return fmt_at(&s->key, t) >> below != fmt_at(&s->key, t - 1) >> below;
    for (int k = 0; k < n; k++)
        if (fmt_at(&s->col[k], t) != fmt_at(&s->col[k], t - 1))
            return true;
    return false;
}

static inline bool fmt_begins(const FmtSort *s, int64_t t) /* rows that are all equal */
{
    return t == 0 || fmt_differs(s, t, s->ncol, 0);
}

static inline bool fmt_leads(const FmtSort *s, int64_t t) /* those with the same prefix */
{
    return t == 0 || fmt_differs(s, t, s->prefix, s->below);
}

/* The first column, of prefix 1.  It holds positions of the level above, so its lowest value is 0,
 * and a key has the value itself. */
static inline int64_t fmt_lead(const FmtSort *s, int64_t t)
{
    return s->key.data != NULL ? fmt_at(&s->key, t) >> s->below : fmt_at(s->col, t);
}

/* eval.c: the values of expressions for a list of entries. */
typedef struct FmtEval {
    const FmtRun *run;
    const FmtUse *use;
    const FmtEntries *from;
    FmtCol list; /* of n entries; data NULL: all */
    int64_t n;
    struct FmtKnown *known; /* functions of many entries that were worked out */
} FmtEval;
enum { FMT_RUN = 256 };
void fmt_prepare(FmtEval *, const FmtExpr *); /* before fmt_eval_run, which threads call */
/* Entries from..from + n of the list, n <= FMT_RUN. */
void fmt_eval_run(const FmtEval *, const FmtExpr *, int64_t from, int64_t n, int64_t *out);
FmtCol fmt_eval(FmtEval *, const FmtExpr *);
void fmt_done(const FmtEval *, const FmtCol *); /* with what fmt_eval gave */
bool fmt_owns(const FmtEval *, const FmtCol *); /* whether nobody else has it */
void fmt_forget(FmtEval *);                     /* all that is known */
int64_t fmt_size(const FmtExpr *, const FmtEntries *); /* of bounds only */
static inline int64_t fmt_entry(const FmtEval *c, int64_t t)
{
    return c->list.data != NULL ? fmt_at(&c->list, t) : t;
}

/* range.c: numbers that no value is outside of.  False: one may be too large, or no number. */
bool fmt_range(const FmtEval *, const FmtExpr *, int64_t *lo, int64_t *hi);

/* group.c: a function of many entries, such as count, for all of the list. */
FmtCol fmt_group(FmtEval *, const FmtExpr *);

/* convert.c, split.c: the parts as they are made. */
typedef struct FmtBuild {
    Arena *arena; /* of the result */
    const FmtRun *run;
    const FmtUse *use;
    const FmtShape *shape;
    FmtEval eval;
    FmtPart *part;
    FmtCol pos; /* by entry of the list: its position on the level above; data NULL: none */
    int64_t blocks;
    _Atomic uint8_t *seen; /* by entry: whether a part has it */
} FmtBuild;
_Noreturn void fmt_refuse(const FmtBuild *, Status, const char *what);
void fmt_print_entry(Text *, const FmtBuild *, int64_t t); /* "entry 7 at i = 2, j = 5" */
int64_t fmt_see(FmtBuild *); /* how many positions of a part that is made have an entry */
/* The entries that exist, in b->eval; then the lists of the parts, and how long each is. */
void fmt_list_existing(FmtBuild *);
FmtCol fmt_split(FmtBuild *, int64_t *count);

/* level.c: one axis of a part, while it is made. */
typedef struct FmtWork {
    FmtBuild *b;
    const FmtAxis *axis;
    FmtLevel *out;
    bool last, root;
    int64_t bound[IR_MAX_RANK]; /* of coordinates that are stored, */
    bool sure[IR_MAX_RANK];     /* and whether all are inside */
    FmtCol to;                  /* by entry of the list: its position; data NULL: nobody asks */
    _Atomic bool bad;           /* two entries differ, or a coordinate is outside */
} FmtWork;
void fmt_level(FmtBuild *, int level);
Array fmt_room(const FmtWork *, int64_t n, int64_t lo, int64_t hi); /* in the result */
Array fmt_blank(const FmtWork *, int64_t n, int64_t lo, int64_t hi); /* with -1 */
void fmt_set_total(FmtWork *, int64_t width); /* throws for what is too large */
Array fmt_coord_room(const FmtWork *, int k, bool blank);
void fmt_to_room(FmtWork *); /* for `to`, where each entry writes its own */
bool fmt_is_outside(const FmtWork *, int k, int64_t v);
_Noreturn void fmt_place_outside(const FmtWork *, int64_t t, int64_t place, int64_t width);
void fmt_check_full(const FmtWork *);
/* mapped.c: places are what the map says.  numbered.c: the number of what is stored. */
void fmt_place_mapped(FmtWork *, const FmtExpr *loc);
void fmt_place_numbered(FmtWork *);
/* bits.c: the same for distinct values that are not many; false: they are. */
bool fmt_place_bits(FmtWork *);

#endif
