/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The checker: what no single declaration can show.  Needs a program made by the builders (so each
 * node is well typed); gives, or throws with the place: every variable bound, each buffer written
 * by one group and read after it, built axes frozen before use, constant indices inside. */
#include "ir/ir_int.h"
#include "ir/loop.h"

#include <string.h>

/* What the statements do to each buffer and built axis; -1 where they do nothing. */
typedef struct Facts {
    Prog *p;
    int *first, *last; /* by Buf.id: statements that write it */
    AssignOp *op;      /* by Buf.id */
    Buf **leader;      /* by Buf.id: for a companion, the buffer that it accompanies */
    int *followers;    /* by Buf.id: its companions */
    int *frozen;       /* by Axis.id: the last statement that inserts */
    int stmt;          /* the one being looked at */
    Var *const *bind;  /* its variables, as far as they are bound yet */
    int nbind;
    const Var *binder; /* the one whose parent is being looked at; or NULL */
} Facts;

static const char *const op_text[] = { "=", "+=", "max=", "min=", "|=" };

static const Axis *built_above(const Axis *a)
{
    for (; a != NULL; a = a->parent)
        if (a->extent == X_BUILT)
            return a;
    return NULL;
}

static void note_write(Facts *f, Buf *b, AssignOp op, Buf *leader)
{
    Prog *p = f->p;

    if (b->kind == B_CONST)
        ir_throw(p, ST_CHECK, "%s is const and cannot be written", b->name);
    if (f->first[b->id] >= 0 && f->op[b->id] != op)
        ir_throw(p, ST_CHECK,
                 "%s is written with %s here and with %s before; all statements that write a "
                 "buffer use one operator: take a temporary",
                 b->name, op_text[op], op_text[f->op[b->id]]);
    if (f->first[b->id] >= 0 && f->leader[b->id] != leader)
        ir_throw(p, ST_CHECK,
                 "%s accompanies one buffer and is written otherwise too; take another one here",
                 b->name);
    if (f->first[b->id] < 0) {
        f->first[b->id] = f->stmt;
        if (leader != NULL)
            f->followers[leader->id]++;
    }
    f->last[b->id] = f->stmt;
    f->op[b->id] = op;
    f->leader[b->id] = leader;
}

static void note_assign(Facts *f, const Assign *a)
{
    f->p->at = a->place;
    if (a->op == A_INSERT) {
        f->frozen[a->out->axis->id] = f->stmt;
        return;
    }
    note_write(f, a->out->buf, a->op, NULL);
    for (int k = 0; k < a->nat; k++)
        note_write(f, a->at[k].out->buf, A_SET, a->out->buf);
}

static void note_all(Facts *f)
{
    for (int i = 0; i < f->p->nstmt; i++) {
        const Stmt *s = f->p->stmt[i];

        f->stmt = i;
        for (int k = 0; k < s->nassign; k++)
            note_assign(f, &s->assign[k]);
    }
}

static void check_frozen(Facts *f, const Axis *a)
{
    const Axis *u = built_above(a);

    if (u == NULL || (f->frozen[u->id] >= 0 && f->frozen[u->id] < f->stmt))
        return;
    ir_throw(f->p, ST_CHECK,
             f->frozen[u->id] < 0
                 ? "axis %s is built by the program, but nothing inserts into it; add `%s |= ...`"
                 : "axis %s is used before its last insertion; move this after every `%s |= ...`",
             u->name, u->name);
}

static void check_exists(Facts *f, const Buf *b)
{
    if (f->first[b->id] < 0 && b->kind == B_TEMP)
        ir_throw(f->p, ST_CHECK, "the temporary %s is read but nothing writes it", b->name);
}

static void check_read(Facts *f, const Buf *b)
{
    bool written = f->first[b->id] >= 0;

    check_exists(f, b);
    if (written && f->last[b->id] == f->stmt)
        ir_throw(f->p, ST_CHECK,
                 "%s is read in the statement that writes it; read another buffer, or split the "
                 "statement",
                 b->name);
    if (written && f->last[b->id] > f->stmt)
        ir_throw(f->p, ST_CHECK,
                 "%s is read before the last statement that writes it (%s); move this after it",
                 b->name, f->p->stmt[f->last[b->id]]->assign[0].label);
}

static bool has_var(Var *const *set, int n, const Var *v)
{
    for (int i = 0; i < n; i++)
        if (set[i] == v)
            return true;
    return false;
}

static void check_var(Facts *f, const Var *v)
{
    if (has_var(f->bind, f->nbind, v))
        return;
    if (f->binder != NULL)
        ir_throw(f->p, ST_CHECK,
                 "the variable %s is bound before %s, which it hangs on; put %s first",
                 f->binder->name, v->name, v->name);
    ir_throw(f->p, ST_CHECK, "the variable %s is used but not bound; add it to the `for`", v->name);
}

static void check_node(Expr *e, void *ctx)
{
    Facts *f = ctx;

    switch (e->op) {
    case OP_var:
    case OP_coord:
    case OP_pos:
    case OP_loc: check_var(f, e->var); break;
    case OP_count: check_frozen(f, e->axis); break;
    case OP_load:
        check_read(f, e->buf);
        for (int k = 0; k < e->buf->nfull; k++)
            check_frozen(f, e->buf->full[k]);
        break;
    default: break;
    }
}

/* stored(C[...]) asks for the structure of C and not for its values, so C may be written here. */
static void check_expr(Facts *f, Expr *e, Memo *met)
{
    Expr **seen = ir_memo(f->p, met, e);
    bool structure = e->op == OP_stored;

    if (*seen != NULL)
        return;
    *seen = e;
    if (structure)
        e = e->arg[0];
    for (int i = 0; i < e->nargs; i++)
        check_expr(f, e->arg[i], met);
    if (structure)
        check_exists(f, e->buf);
    else
        check_node(e, f);
    for (int k = 0; structure && k < e->buf->nfull; k++)
        check_frozen(f, e->buf->full[k]);
}

/* Everything that an assign reads: the output itself is not, but its indices are. */
static void check_reads(Facts *f, const Assign *a, Memo *met)
{
    if (a->guard != NULL)
        check_expr(f, a->guard, met);
    check_expr(f, a->value, met);
    for (int i = 0; i < a->out->nargs; i++)
        check_expr(f, a->out->arg[i], met);
    for (int k = 0; k < a->nat; k++)
        check_expr(f, a->at[k].value, met);
}

static void check_binds(Facts *f, const Stmt *s, Memo *met)
{
    f->p->at = s->place;
    f->bind = s->bind;
    for (f->nbind = 0; f->nbind < s->nbind; f->nbind++) {
        f->binder = s->bind[f->nbind];
        for (int k = 0; k < f->nbind; k++)
            if (s->bind[k]->name == f->binder->name)
                ir_throw(f->p, ST_CHECK, "the variable %s is bound twice", f->binder->name);
        if (f->binder->parent != NULL)
            ir_visit(f->p, f->binder->parent, check_node, f, met);
        check_frozen(f, f->binder->axis);
    }
    f->binder = NULL;
}

static bool mentions(Expr *e, const Var *v)
{
    bool here =
        (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc) && e->var == v;

    for (int i = 0; i < e->nargs; i++)
        here = here || mentions(e->arg[i], v);
    return here;
}

/* Whether the coordinate of a root axis tells its positions apart.  A formula of sizes alone has
 * one value: `unique` then says that there is at most one position, not that the value moves. */
static bool is_own(const Axis *a)
{
    const Coord *c = &a->coord[0];

    if (c->kind == C_IDENT)
        return true;
    return (a->flags & (AX_UNIQUE | AX_PADDED)) == AX_UNIQUE &&
           (c->kind != C_EXPR || mentions(c->expr, a->var));
}

/* The variable that owns the values of a coordinate: no other position has the same. */
static const Var *owner_of(Expr *index)
{
    const Var *v = index->var;
    const Axis *a = v->axis, *owner = a->coord[index->k].owner;

    while (owner != NULL && v != NULL && v->axis != owner)
        v = v->parent != NULL && v->parent->op == OP_var ? v->parent->var : NULL;
    if (owner != NULL || a->coord[index->k].once)
        return v;
    return a->parent == NULL && a->ncoord == 1 && is_own(a) ? v : NULL;
}

/* The variable that an index is as itself: its entry, the number of a row of a plain root, a
 * coordinate that one position alone has, a position given by such a coordinate, or the place that
 * a format took its entry from. */
static const Var *itself(Expr *index)
{
    Expr *value = index->op == OP_at ? index->arg[0] : index;

    if (index->op == OP_var)
        return index->var;
    if (value->op != OP_coord)
        return NULL;
    if (value != index && value->var->axis->from_k == FROM_FORMAT &&
        value->k == value->var->axis->ncoord - 1)
        return value->var;
    return owner_of(value);
}

/* Whether the index is of 0..n for certain: the number of a row of a small axis. */
static bool is_below(Expr *index, int64_t n)
{
    const Axis *a = index->op == OP_coord ? index->var->axis : NULL;
    int64_t size;

    return a != NULL && a->parent == NULL && a->coord[index->k].kind == C_IDENT &&
           a->extent == X_EXPR && ir_const_int(a->size, &size) && size <= n;
}

/* Whether v is a digit of the number row * n + column, with 0 <= column < n. */
static bool is_digit(Expr *index, const Var *v)
{
    if (index->op != OP_add)
        return itself(index) == v;
    for (int i = 0; i < 2; i++) {
        Expr *m = index->arg[i], *column = index->arg[1 - i];

        for (int k = 0; k < 2 && m->op == OP_mul; k++)
            if (m->arg[k]->op == OP_int && is_below(column, m->arg[k]->i))
                return is_digit(m->arg[1 - k], v) || itself(column) == v;
    }
    return false;
}

/* Whether v, or a variable that hangs on v, stands as itself in the output. */
static bool stands_in(Expr *out, const Var *v)
{
    for (int i = 0; i < out->nargs; i++) {
        if (is_digit(out->arg[i], v))
            return true;
        for (const Var *x = itself(out->arg[i]); x != NULL;
             x = x->parent != NULL && x->parent->op == OP_var ? x->parent->var : NULL)
            if (x == v)
                return true;
    }
    return false;
}

Reach ir_reach(const Assign *a, const Var *v)
{
    if (a->op != A_INSERT && stands_in(a->out, v))
        return REACH_SPATIAL;
    return mentions(a->out, v) || (a->op == A_INSERT && mentions(a->value, v)) ? REACH_SCATTER
                                                                               : REACH_NONE;
}

bool ir_runs_once(const Axis *a)
{
    int64_t n;

    return a->extent == X_ONE || (a->extent == X_EXPR && ir_const_int(a->size, &n) && n == 1);
}

/* Whether the variable runs over entries that name one element each: those of a row of a transpose.
 * How many there are only the data tell, and once.c looks after it. */
static bool is_transposed(const Var *v)
{
    return v->axis->from != NULL && v->axis->from_k >= 0;
}

/* What a variable of the output hangs on reaches the output through it. */
static void check_once(Facts *f, const Stmt *s, const Assign *a)
{
    Var *reach[IR_MAX_BINDS];
    int n;

    if (a->op != A_SET || a->guard != NULL)
        return;
    n = ir_vars(f->p, a->out, reach, 0);
    for (int i = 0; i < s->nbind; i++)
        if (!has_var(reach, n, s->bind[i]) && !ir_runs_once(s->bind[i]->axis) &&
            !is_transposed(s->bind[i]))
            ir_throw(f->p, ST_CHECK,
                     "= writes each element once, but %s runs over many and does not reach the "
                     "output; use +=, max= or min=",
                     s->bind[i]->name);
}

static void check_companions(Facts *f, const Assign *a)
{
    const Buf *b = a->out->buf;

    if (a->nat > 0 && a->op != A_MAX && a->op != A_MIN)
        ir_throw(f->p, ST_CHECK, "`at` goes with max= and min=, which have a winner; %s has none",
                 op_text[a->op]);
    for (int k = 0; k < a->nat; k++) {
        const At *at = &a->at[k];
        const Buf *c = at->out->buf;

        if (ir_type[c->type].floats || at->value->type != T_i64)
            ir_throw(f->p, ST_CHECK,
                     "the companion %s records an integer; make it i32 or i64 and its value an "
                     "integer",
                     c->name);
        if (c == b || c->nslot != b->nslot ||
            (b->nslot > 0 &&
             (memcmp(c->slot, b->slot, (size_t)b->nslot * sizeof *b->slot) != 0 ||
              memcmp(at->out->arg, a->out->arg, (size_t)b->nslot * sizeof *a->out->arg) != 0)))
            ir_throw(f->p, ST_CHECK,
                     "the companion %s has the axes and the indices of %s, and no others", c->name,
                     b->name);
    }
}

static void check_insert(Facts *f, const Assign *a)
{
    const Axis *u = a->out->axis;
    int n = a->value->op == OP_tuple ? a->value->nargs : 1;

    if (a->value->tree > IR_MAX_INDEX)
        ir_throw(f->p, ST_LIMIT,
                 "axis %s: a coordinate of more than %d operators; compute it into an integer "
                 "buffer",
                 u->name, IR_MAX_INDEX);
    if (n != u->ncoord || (a->value->op != OP_tuple && a->value->type != T_i64))
        ir_throw(f->p, ST_CHECK, "axis %s has %d coordinate%s: insert %s", u->name, u->ncoord,
                 u->ncoord == 1 ? "" : "s",
                 u->ncoord == 1 ? "one integer" : "(a, b), one for each");
    if (u->parent != NULL)
        check_frozen(f, u->parent);
}

static void check_assign(Facts *f, const Stmt *s, const Assign *a)
{
    f->p->at = a->place;
    if (a->guard != NULL && a->guard->type != T_bool)
        ir_throw(f->p, ST_CHECK, "%s: `if` wants a condition", a->label);
    if (a->op == A_INSERT) {
        check_insert(f, a);
        return;
    }
    if (a->value->type < T_i64 || (!ir_type[a->out->buf->type].floats && ir_is_float(a->value)))
        ir_throw(f->p, ST_CHECK, "%s is %s and the value is %s; %s", a->out->buf->name,
                 ir_type[a->out->buf->type].name, ir_type[a->value->type].name,
                 "an integer buffer takes integers");
    for (int k = 0; k < a->out->buf->nfull; k++)
        check_frozen(f, a->out->buf->full[k]);
    check_once(f, s, a);
    check_companions(f, a);
    if (a->nat != f->followers[a->out->buf->id])
        ir_throw(f->p, ST_CHECK, "every statement that writes %s records the same companions",
                 a->out->buf->name);
}

static void check_stmt(Facts *f, const Stmt *s)
{
    Memo met = { 0 };

    check_binds(f, s, &met);
    for (int i = 0; i < s->nassign; i++)
        check_assign(f, s, &s->assign[i]);
    for (int i = 0; i < s->nassign; i++) {
        f->p->at = s->assign[i].place;
        check_reads(f, &s->assign[i], &met);
    }
}

static void check_buffers(Facts *f)
{
    for (int i = 0; i < f->p->nbuf; i++) {
        const Buf *b = f->p->buf[i];

        f->p->at = b->place;
        for (int k = 0; k < b->nfull; k++)
            if (built_above(b->full[k]) != NULL && (f->first[i] < 0 || b->kind == B_INOUT))
                ir_throw(f->p, ST_CHECK,
                         "%s is over the built axis %s, whose size is known only during a run, "
                         "and cannot "
                         "be an input; write it, and not as inout",
                         b->name, built_above(b->full[k])->name);
        if (b->kind == B_INOUT && f->first[i] < 0)
            ir_throw(f->p, ST_CHECK, "%s is inout but nothing writes it; drop inout", b->name);
    }
}

static void check_stmts(Prog *p)
{
    Facts f = { .p = p,
                .first = arena_array(p->arena, p->nbuf, sizeof *f.first),
                .last = arena_array(p->arena, p->nbuf, sizeof *f.last),
                .op = arena_array(p->arena, p->nbuf, sizeof *f.op),
                .leader = arena_array(p->arena, p->nbuf, sizeof *f.leader),
                .followers = arena_array(p->arena, p->nbuf, sizeof *f.followers),
                .frozen = arena_array(p->arena, p->naxis, sizeof *f.frozen) };

    memset(f.first, -1, (size_t)p->nbuf * sizeof *f.first);
    memset(f.frozen, -1, (size_t)p->naxis * sizeof *f.frozen);
    note_all(&f);
    check_buffers(&f);
    for (f.stmt = 0; f.stmt < p->nstmt; f.stmt++)
        check_stmt(&f, p->stmt[f.stmt]);
    ir_check_bounds(p);
    ir_judge_once(p);
}

void ir_check(Prog *p)
{
    if (p->stage == STAGE_COORDINATES)
        check_stmts(p);
    else
        loop_check(p);
}
