/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of loops: making their nodes, rebuilding them, and the arrays that axes stand for. */
#include "ir/loop.h"
#include "ir/ir_int.h"

#include <stdio.h>

const char *loop_fault(Fault f)
{
    static const char *const text[FAULT_COUNT] = {
        [FAULT_NONE] = "no fault",
        [FAULT_INDEX] = "an index is outside its axis",
        [FAULT_MISS] = "a value is written to an entry that is not stored",
        [FAULT_OVERFLOW] = "an integer overflows or is divided by zero",
        [FAULT_SIZE] = "a size is no multiple of the blocks that the schedule says are exact",
        [FAULT_TWICE] = "an element is set twice by =",
    };

    return text[f];
}

const char *const loop_level_word[LEVEL_COUNT] = { "", "thread", "warp", "block" };

Local *loop_local(Prog *p, const char *name, Type type, int lanes)
{
    Local *l = arena_alloc(p->arena, sizeof *l);

    *l = (Local){ .name = name, .type = type, .lanes = lanes, .id = p->nlocal++ };
    return l;
}

Expr *loop_use(Prog *p, Local *l)
{
    return ir_intern(p, (struct Expr){ .op = OP_local, .type = (uint8_t)l->type, .local = l });
}

Expr *loop_cell(Prog *p, Buf *b, Expr *const *index, int n, int lanes)
{
    return ir_intern(p, (struct Expr){ .op = OP_cell,
                                       .buf = b,
                                       .arg = index,
                                       .k = lanes,
                                       .nargs = (uint16_t)n,
                                       .type = b->rows ? T_real : ir_type[b->type].value });
}

Expr *loop_find(Prog *p, Axis *a, Expr *lo, Expr *hi, Expr *const *value, int n)
{
    Expr *arg[IR_MAX_RANK + 2] = { lo, hi };

    for (int i = 0; i < n; i++)
        arg[i + 2] = value[i];
    return ir_intern(
        p, (struct Expr){
               .op = OP_find, .type = T_i64, .axis = a, .arg = arg, .nargs = (uint16_t)(n + 2) });
}

const char *const loop_find_word[FIND_COUNT] = { "find", "near", "lookup", "first" };

Expr *loop_found_by(Prog *p, Expr *find, FindHow how)
{
    struct Expr e = *find;

    e.k = (int32_t)how;
    return ir_intern(p, e);
}

bool loop_is_ordered(const Axis *a)
{
    return (a->flags & AX_SORTED) && !(a->flags & AX_PADDED);
}

Expr *loop_above(Prog *p, Axis *a, Expr *pos)
{
    return ir_intern(
        p, (struct Expr){ .op = OP_above, .type = T_i64, .axis = a, .arg = &pos, .nargs = 1 });
}

/* Adds the leaves of a coordinate's expression to out[0..n); the new n, or more than `most`. */
static int add_context(const Axis *a, Expr *e, Expr **out, int n, int most)
{
    bool leaf = e->op == OP_coord || e->op == OP_loc || e->op == OP_pos;

    for (int i = 0; i < e->nargs && n <= most; i++)
        n = add_context(a, e->arg[i], out, n, most);
    if (!leaf || e->var->axis == a)
        return n;
    for (int i = 0; i < n && i < most; i++)
        if (out[i] == e)
            return n;
    if (n < most)
        out[n] = e;
    return n + 1;
}

int loop_context(const Axis *a, Expr **out, int most)
{
    int n = 0;

    for (int k = 0; k < a->ncoord && n <= most; k++)
        if (a->coord[k].kind == C_EXPR)
            n = add_context(a, a->coord[k].expr, out, n, most);
    return n;
}

Node *loop_node(Prog *p, const Node *n)
{
    Node *c = arena_copy(p->arena, n, sizeof *n);

    c->body = arena_copy(p->arena, n->body, (size_t)n->nbody * sizeof *n->body);
    c->at = arena_copy(p->arena, n->at, (size_t)n->nat * sizeof *n->at);
    if (c->lanes == 0) /* as the text has it */
        c->lanes = 1;
    return c;
}

Axis *loop_builds(const Node *n)
{
    Axis *a = n->kind == N_BUILD ? n->axis : NULL;

    for (int i = 0; i < n->nbody && a == NULL; i++)
        a = loop_builds(n->body[i]);
    return a;
}

Expr *loop_key(Prog *p, const Axis *a, Expr *row, Expr *const *coord)
{
    Expr *key = row;

    for (int k = 0; k < a->ncoord; k++)
        key = key == NULL ? coord[k]
                          : ir_op2(p, OP_add, ir_op2(p, OP_mul, key, a->coord[k].bound), coord[k]);
    return key;
}

/* The array with this name: the old one, or *b. */
static Buf *aux(Prog *p, const char *axis, const char *part, const Buf *b)
{
    char room[4 * IR_MAX_NAME];
    Text name = { .arena = p->arena };
    Buf c = *b;

    c.name = room;
    c.type = T_i64;
    if (snprintf(room, sizeof room, "%s.%s", axis, part) >= (int)sizeof room) {
        text_f(&name, "%s.%s", axis, part);
        c.name = name.s;
    }
    return loop_own(p, &c);
}

Buf *loop_table(Prog *p, const char *name, const int64_t *v, int64_t n)
{
    return aux(p, name, "base", &(Buf){ .kind = B_CONST, .ival = v, .n = n });
}

Buf *loop_base(Prog *p, const char *name, Axis **full, int n, int place)
{
    return aux(p, name, "base",
               &(Buf){ .kind = B_ARG, .of = full[place], .of_k = place, .full = full, .nfull = n });
}

Buf *loop_start(Prog *p, Axis *a)
{
    if (a->extent == X_TABLE)
        return aux(p, a->name, "start",
                   &(Buf){ .kind = B_CONST, .ival = a->starts, .n = a->n + 1 });
    return aux(p, a->name, "start", &(Buf){ .kind = B_ARG, .of = a, .of_k = -1 });
}

Buf *loop_map(Prog *p, Axis *a)
{
    return aux(p, a->name, "find.map", &(Buf){ .kind = B_ARG, .of = a, .of_k = LOOP_MAP });
}

Type loop_type(const Prog *p, const Axis *a, int k)
{
    for (int i = 0; i < p->naux; i++) {
        const Buf *b = p->aux[i];

        if (b->of == a && b->of_k == (k < 0 ? -1 : k) && b->nfull == 0)
            return b->type;
    }
    return T_i64;
}

Buf *loop_extent(Prog *p, Axis *a)
{
    return aux(p, a->name, "size", &(Buf){ .kind = B_CONST, .ival = a->table, .n = a->n });
}

Buf *loop_coord(Prog *p, Axis *a, int k)
{
    const Coord *c = &a->coord[k];
    const char *name = c->name != NULL ? c->name : "coord";

    if (c->kind == C_TABLE)
        return aux(p, a->name, name, &(Buf){ .kind = B_CONST, .ival = c->table, .n = c->n });
    return aux(p, a->name, name, &(Buf){ .kind = B_ARG, .of = a, .of_k = k });
}

static Expr *maybe(Prog *p, Expr *e, Rewrite *fn, void *ctx, Memo *memo)
{
    return e == NULL ? NULL : ir_rewrite(p, e, fn, ctx, memo);
}

/* What the loop runs over, with the row and the tile rewritten. */
static const Over *over(Prog *p, const Over *o, Rewrite *fn, void *ctx, Memo *memo)
{
    Expr *row = o != NULL ? maybe(p, o->row, fn, ctx, memo) : NULL;

    return o != NULL ? loop_over_at(p, o, row, maybe(p, o->tile, fn, ctx, memo)) : NULL;
}

Node *loop_rewrite(Prog *p, Node *n, Rewrite *fn, void *ctx, Memo *memo)
{
    Node c = *n;
    Node **body = arena_array(p->arena, n->nbody, sizeof *body);
    At *at = arena_array(p->arena, n->nat, sizeof *at);

    c.lo = maybe(p, n->lo, fn, ctx, memo);
    c.hi = maybe(p, n->hi, fn, ctx, memo);
    c.cond = maybe(p, n->cond, fn, ctx, memo);
    c.out = maybe(p, n->out, fn, ctx, memo);
    c.value = maybe(p, n->value, fn, ctx, memo);
    for (int k = 0; k < n->nat; k++)
        at[k] = (At){ ir_rewrite(p, n->at[k].out, fn, ctx, memo),
                      ir_rewrite(p, n->at[k].value, fn, ctx, memo) };
    for (int i = 0; i < n->nbody; i++)
        body[i] = loop_rewrite(p, n->body[i], fn, ctx, memo);
    c.over = over(p, n->over, fn, ctx, memo); /* last: it makes no expression that others have */
    c.at = at;
    c.body = body;
    return loop_node(p, &c);
}

typedef struct Replace {
    const Local *local;
    Expr *by;
} Replace;

static Expr *replace(Prog *p, Expr *e, void *ctx)
{
    const Replace *r = ctx;

    (void)p;
    return e->op == OP_local && e->local == r->local ? r->by : e;
}

Node *loop_replace(Prog *p, Node *n, const Local *local, Expr *by)
{
    Replace r = { local, by };
    Memo memo = { 0 };

    return loop_rewrite(p, n, replace, &r, &memo);
}

static Expr *same(Prog *p, Expr *e, void *ctx)
{
    (void)p;
    (void)ctx;
    return e;
}

typedef struct Binding {
    Prog *p;
    Memo local; /* uses of locals that are bound somewhere before */
} Binding;

static bool is_bound_again(Binding *b, Local *l)
{
    Expr *use = loop_use(b->p, l), **met = ir_memo(b->p, &b->local, use);
    bool again = *met != NULL;

    *met = use;
    return again;
}

static Local *like(Prog *p, const Local *l)
{
    Local *c = loop_local(p, l->name, l->type, l->lanes);

    c->path = l->path;
    return c;
}

/* The same tree, where each local is bound once: passes copy loops with their locals. */
static Node *bound_once(Binding *b, Node *n)
{
    Node *c = n, **body = NULL;
    Local *old = n->local;

    if (n->kind == N_FOR && is_bound_again(b, old)) {
        Local *l = like(b->p, old);

        c = loop_node(b->p, loop_replace(b->p, n, old, loop_use(b->p, l)));
        c->local = l;
    }
    for (int i = 0; i < c->nbody; i++) {
        Node *was = body != NULL ? body[i] : c->body[i], *in = was;

        old = in->kind == N_LET ? in->local : NULL;
        if (old != NULL && is_bound_again(b, old)) {
            Local *l = like(b->p, old);

            if (body == NULL)
                body = arena_copy(b->p->arena, c->body, (size_t)c->nbody * sizeof *body);
            for (int k = i + 1; k < c->nbody; k++)
                body[k] = loop_replace(b->p, body[k], old, loop_use(b->p, l));
            in = loop_node(b->p, in);
            in->local = l;
        }
        in = bound_once(b, in);
        if (in != was && body == NULL)
            body = arena_copy(b->p->arena, c->body, (size_t)c->nbody * sizeof *body);
        if (body != NULL)
            body[i] = in;
    }
    if (body == NULL)
        return c;
    c = loop_node(b->p, c);
    c->body = body;
    return c;
}

/* Makes a new local for each that is bound in n, which the memo tells. */
static void rename_locals(Prog *p, const Node *n, Memo *memo)
{
    if (n->local != NULL) {
        Expr *use = loop_use(p, n->local), *by = loop_use(p, like(p, n->local));

        *ir_memo(p, memo, use) = by;
    }
    for (int i = 0; i < n->nbody; i++)
        rename_locals(p, n->body[i], memo);
}

/* Lets the nodes of n, which nobody else has, bind the new ones. */
static void bind_renamed(Prog *p, Node *n, Memo *memo)
{
    if (n->local != NULL)
        n->local = (Local *)(*ir_memo(p, memo, loop_use(p, n->local)))->local;
    for (int i = 0; i < n->nbody; i++)
        bind_renamed(p, n->body[i], memo);
}

Node *loop_fresh(Prog *p, const Node *n)
{
    Binding b = { .p = p };
    Memo memo = { 0 };
    Node *c = bound_once(&b, (Node *)n);

    rename_locals(p, c, &memo);
    c = loop_rewrite(p, c, same, NULL, &memo);
    bind_renamed(p, c, &memo);
    return c;
}

const char *loop_path(const Node *n)
{
    return n->local->path != NULL   ? n->local->path
           : n->local->name != NULL ? n->local->name
                                    : "";
}
