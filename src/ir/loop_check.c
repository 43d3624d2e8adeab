/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a tree of loops promises to whoever runs it or makes code of it.  Needs expressions made by
 * the builders (so each is well typed); gives, or throws: locals used inside their blocks, as many
 * indices as the stage has, stores to what may be stored to, nothing read before it is written or
 * while another iteration of the same phase may write it. */
#include "ir/loop.h"

#include <stdio.h>

typedef struct State { /* of an array */
    bool set;          /* stored to with `=`, so far */
    int phase;         /* 1 + the last phase that writes it */
} State;

enum Moves { BY_PHASE = 1, BY_LANE = 2 }; /* with the variable of the phase; of the vector loop */

typedef struct Check {
    Prog *p;
    State *buf, *aux;  /* by id */
    bool *bound;       /* by Local.id: in scope */
    bool *register_of; /* by Local.id: a let's, which may be assigned */
    unsigned *moves;   /* by Local.id: what it changes with */
    uint32_t *seen;    /* by Expr.id: the last walk that met it */
    unsigned *moving;  /* by Expr.id: of that walk, what it changes with */
    uint32_t walk;
    int phase, nest, lanes; /* lanes: of the vector loop around; or 1 */
    bool parallel;          /* the phase's iterations are run in any order */
    int *built;             /* by Axis.id: 1 + the phase that builds it; 0: none does */
    const Axis *building;   /* of the block around; or NULL */
    unsigned guards;        /* branches around that only some of its iterations take */
    const Node *vector;     /* the vector loop around; or NULL */
    const Node **bound_in;  /* by Local.id: the vector loop around its let */
    LoopKnown *known;           /* by Local.id */
    const Node *node;

    /* Elements that the blocks around store to.  A let is its value, so that an element is the same
     * whatever parts of its index have names. */
    uint64_t *value, *let; /* by Expr.id, by Local.id: a hash of what it is; 0: not known yet */
    bool *assigned;        /* by Local.id: it has several values */
    struct Stored {
        uint64_t value;
        int n;
    } * stored;
    uint64_t cap_stored; /* a power of two */
} Check;

static _Noreturn void refuse(Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static _Noreturn void refuse(Check *c, const char *fmt, ...)
{
    const char *label = c->node->label;
    char why[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    c->p->at = c->node->place;
    ir_throw(c->p, ST_CHECK, "%s%s%s", label != NULL ? label : "", label != NULL ? ": " : "", why);
}

static State *state_of(Check *c, const Buf *b)
{
    return b->id < LOOP_OWN ? &c->buf[b->id] : &c->aux[b->id - LOOP_OWN];
}

static const char *name_of(const Local *l)
{
    return l->name != NULL ? l->name : "(unnamed)";
}

static bool is_value(Op op)
{
    return op == OP_int || op == OP_real || op == OP_size || op == OP_count || op == OP_local ||
           op == OP_cell || op == OP_find || op == OP_above || op == OP_fits || op == OP_fma ||
           (op >= OP_neg && op <= OP_f64);
}

/* What hangs on a built axis is there when the phase that builds it has ended. */
static void check_complete(Check *c, const Axis *a)
{
    for (; a != NULL; a = a->parent)
        if (c->built[a->id] >= c->phase)
            refuse(c, "axis %s is used before the phase that builds it has ended", a->name);
}

static void check_axes(Check *c, const Buf *b)
{
    check_complete(c, b->of);
    for (int k = 0; k < b->nfull; k++)
        check_complete(c, b->full[k]);
}

static void check_element(Check *c, Expr *e)
{
    const Buf *b = e->buf;
    int rank = loop_rank(b, c->p->stage);

    if (e->nargs != rank)
        refuse(c, "%s takes %d ind%s at stage %s, not %d", b->name, rank, rank == 1 ? "ex" : "ices",
               ir_stage[c->p->stage], e->nargs);
    if (e->k != 1)
        refuse(c, "%s: an element of %d lanes", b->name, e->k);
    check_axes(c, b);
    for (int i = 0; i < e->nargs; i++)
        if (e->arg[i]->type != T_i64)
            refuse(c, "%s: an index is an integer, not %s", b->name, ir_type[e->arg[i]->type].name);
}

static void check_find(Check *c, Expr *e)
{
    const Axis *a = e->axis;
    Expr *leaf[IR_MAX_RANK];
    int n = 2 + a->ncoord + loop_context(a, leaf, IR_MAX_RANK - a->ncoord);

    if (e->nargs != n)
        refuse(c, "a search on axis %s takes %d values, not %d", a->name, n, e->nargs);
    if ((e->k == FIND_NEAR || e->k == FIND_FIRST) && !loop_is_ordered(a))
        refuse(c, "%s(%s, ...) wants an axis that is sorted and not padded%s", loop_find_word[e->k],
               a->name, e->k == FIND_NEAR ? "; write find" : "");
}

/* No element: what begins it has gone, and what would store to it stores nothing. */
static bool is_empty(const Buf *b)
{
    for (int k = 0; k < b->nfull; k++)
        if (ir_const_total(b->full[k]) == 0)
            return true;
    return false;
}

static bool is_input(const Buf *b)
{
    return b->kind == B_CONST || b->kind == B_INOUT || b->of != NULL ||
           (b->kind == B_ARG && !b->written);
}

static uint64_t leaf_of(const Expr *e)
{
    switch (e->op) {
    case OP_size: return (uint64_t)e->size->id;
    case OP_count:
    case OP_find:
    case OP_above: return (uint64_t)e->axis->id;
    case OP_cell: return (uint64_t)e->buf->id;
    case OP_local: return (uint64_t)e->local->id;
    default: return (uint64_t)e->i;
    }
}

static uint64_t value_of(Check *c, Expr *e)
{
    uint64_t h = hash_int(hash_int(1, e->op), leaf_of(e));

    if (c->value[e->id] != 0)
        return c->value[e->id];
    for (int i = 0; i < e->nargs; i++)
        h = hash_int(h, value_of(c, e->arg[i]));
    if (e->op == OP_local && c->let[e->local->id] != 0)
        h = c->let[e->local->id];
    return c->value[e->id] = h == 0 ? 1 : h;
}

/* How many stores of the blocks around are to this element. */
static int *stores_to(Check *c, Expr *element)
{
    uint64_t v = value_of(c, element), at = v;

    while (c->stored[at & (c->cap_stored - 1)].value != 0 &&
           c->stored[at & (c->cap_stored - 1)].value != v)
        at++;
    c->stored[at & (c->cap_stored - 1)].value = v;
    return &c->stored[at & (c->cap_stored - 1)].n;
}

/* An array that a phase writes is read there only as an element that the same iteration writes. */
static void check_read(Check *c, Expr *e)
{
    const State *s = state_of(c, e->buf);

    if (!is_input(e->buf) && !s->set && !is_empty(e->buf))
        refuse(c, "%s is read before anything is stored in it", e->buf->name);
    if (s->phase == c->phase && *stores_to(c, e) == 0 && !loop_is_work(e->buf))
        refuse(c, "%s is read in the phase that writes it; put a phase between", e->buf->name);
}

/* Counts, or forgets, what a block stores to. */
static void count_stores(Check *c, Node *const *node, int n, int by)
{
    for (int i = 0; i < n; i++) {
        if (node[i]->kind == N_LET && !c->assigned[node[i]->local->id])
            c->let[node[i]->local->id] = value_of(c, node[i]->value);
        if (node[i]->kind == N_STORE)
            *stores_to(c, node[i]->out) += by;
        for (int k = 0; k < node[i]->nat; k++)
            *stores_to(c, node[i]->at[k].out) += by;
    }
}

/* Checks e and what is below it, once a walk; what it changes with. */
static unsigned check_expr(Check *c, Expr *e)
{
    unsigned moving = e->op == OP_local ? c->moves[e->local->id] : 0;

    if (c->seen[e->id] == c->walk)
        return c->moving[e->id];
    if (!is_value((Op)e->op))
        refuse(c, "%s means nothing below coordinates", ir_op[e->op].name);
    if (e->op == OP_local && !c->bound[e->local->id])
        refuse(c, "the local %s is used outside its block", name_of(e->local));
    if (e->op == OP_cell)
        check_element(c, e);
    if (e->op == OP_find)
        check_find(c, e);
    if (e->op == OP_find || e->op == OP_above || e->op == OP_count)
        check_complete(c, e->axis);
    for (int i = 0; i < e->nargs; i++)
        moving |= check_expr(c, e->arg[i]);
    if (e->op == OP_cell)
        check_read(c, e);
    c->seen[e->id] = c->walk;
    return c->moving[e->id] = moving;
}

static unsigned check_value(Check *c, Expr *e, Type type, const char *what)
{
    bool good = type == T_bool || type == T_i64 ? e->type == type : e->type >= T_i64;

    if (!good)
        refuse(c, "%s is %s and not %s", what, ir_type[e->type].name, ir_type[type].name);
    return check_expr(c, e);
}

/* A register that is stored to again may hold one value a lane although it begins with one for
 * all. */
static void bind(Check *c, const Local *l, bool is_register, unsigned moves)
{
    bool moved = is_register && c->assigned[l->id] && l->lanes > 1 && l->lanes == c->lanes;
    int lanes = is_register && ((moves & BY_LANE) || moved) ? c->lanes : 1;

    if (c->bound[l->id])
        refuse(c, "the local %s is bound in its own block again", name_of(l));
    if (l->lanes != lanes)
        refuse(c, "the local %s has %d lanes and its value %d", name_of(l), l->lanes, lanes);
    if (ir_type[l->type].value != l->type)
        refuse(c, "the local %s is no value", name_of(l));
    c->bound[l->id] = true;
    c->register_of[l->id] = is_register;
    c->moves[l->id] = moves | (moved ? BY_LANE : 0);
    c->bound_in[l->id] = c->vector;
}

static void check_target(Check *c, Expr *out)
{
    const Buf *b = out->buf;
    unsigned moving = 0;

    if (b->kind == B_CONST || b->of != NULL)
        refuse(c, "%s is constant here and cannot be written", b->name);
    check_element(c, out);
    for (int i = 0; i < out->nargs; i++)
        moving |= check_expr(c, out->arg[i]);
    if (c->vector != NULL && !(moving & BY_LANE) && !is_empty(b))
        refuse(c, "all lanes of a vector loop write the same element of %s", b->name);
    if (c->parallel && c->guards == 0 && !(moving & BY_PHASE) && !is_empty(b) &&
        !loop_is_work(b))
        refuse(c, "every iteration of the phase writes the same element of %s", b->name);
}

static void check_companion(Check *c, const Node *n, const At *at)
{
    const Buf *b = at->out->buf;

    if (n->out->op != OP_cell || at->out->op != OP_cell || ir_type[b->type].floats)
        refuse(c, "a companion records an integer beside an element");
    check_target(c, at->out);
    check_value(c, at->value, T_i64, "what a companion records");
    if (b == n->out->buf)
        refuse(c, "%s cannot be a companion of a store to itself", b->name);
}

/* Lanes do not see each other: a local that holds one value for all takes what is the same in all,
 * or, when it comes from outside their loop, a sum over them. */
static void check_lanes(Check *c, const Node *n, unsigned moving)
{
    const Local *l = n->out->op == OP_local ? n->out->local : NULL;

    if (n->nat > 0)
        refuse(c, "a store in a vector loop has no companions");
    if (l != NULL && l->lanes == 1 && (moving & BY_LANE) &&
        (c->bound_in[l->id] != NULL || n->op == A_SET))
        refuse(c, "the local %s has one value for all lanes", name_of(l));
    if (l != NULL && l->lanes == 1 && !(moving & BY_LANE) && c->bound_in[l->id] == NULL)
        refuse(c, "each lane stores the same to the local %s of all", name_of(l));
}

/* Lanes go the same way. */
static void check_same(Check *c, unsigned moving, const char *what)
{
    if (c->vector != NULL && (moving & BY_LANE))
        refuse(c, "%s differs between the lanes of a vector loop", what);
}

static void check_store(Check *c, const Node *n)
{
    const Buf *b = n->out->op == OP_cell ? n->out->buf : NULL;
    State *s = b != NULL ? state_of(c, b) : NULL;
    unsigned moving;

    if (n->op > A_MIN)
        refuse(c, "a store sets, adds, or keeps the larger or the smaller");
    if (n->stream && (n->op != A_SET || b == NULL))
        refuse(c, "only elements that are set are stored past the caches");
    if (b != NULL)
        check_target(c, n->out);
    else if (n->out->op != OP_local || !c->bound[n->out->local->id] ||
             !c->register_of[n->out->local->id])
        refuse(c, "only elements and locals that are no loop's variable are stored to");
    if (b != NULL && n->op != A_SET && !s->set && b->kind != B_INOUT && !is_empty(b))
        refuse(c, "%s is added to before anything is stored in it", b->name);
    if (n->cond != NULL)
        check_same(c, check_value(c, n->cond, T_bool, "the condition of a hint"),
                   "the condition of a hint");
    moving = check_value(c, n->value, n->out->type, "what is stored");
    if (c->vector != NULL)
        check_lanes(c, n, moving);
    for (int k = 0; k < n->nat; k++) {
        check_companion(c, n, &n->at[k]);
        state_of(c, n->at[k].out->buf)->set = true;
    }
    if (b != NULL)
        s->set = true;
}

static void check_vector(Check *c)
{
    if (c->p->stage != STAGE_LOOPS)
        refuse(c, "a vector loop at stage %s", ir_stage[c->p->stage]);
    if (c->vector != NULL)
        refuse(c, "a vector loop inside another");
}

static void check_nodes(Check *c, Node *const *node, int n);

/* The number of the part comes with the structure, one for each iteration. */
static void check_parts(Check *c, const Node *n)
{
    const Buf *b = n->parts;

    if (n->how != FOR_PARALLEL || n->lo->op != OP_int || n->lo->i != 0)
        refuse(c, "`parts` is said of a parallel phase from 0 on");
    if (b->of == NULL || b->of_k < 0 || b->type != T_i64 || b->of->extent != X_SEG)
        refuse(c, "%s has no parts: they are an i64 coordinate of a segmented axis", b->name);
}

/* What the loop says that its iterations are is so. */
static void check_over(Check *c, const Node *n)
{
    const Over *o = n->over;

    if (o->axis->name == NULL || o->axis->extent == X_ONE || o->kind >= OVER_KINDS ||
        (o->kind == OVER_TILES || o->tile != NULL) != (o->size > 0) ||
        (o->kind == OVER_OFFSETS && o->tile == NULL) ||
        (o->fixed && (o->axis->extent != X_EXPR || o->axis->parent == NULL || o->row != NULL)))
        refuse(c, "the loop of %s runs over no axis", name_of(n->local));
    check_complete(c, o->axis);
    if (o->row != NULL)
        check_value(c, o->row, T_i64, "the row of a loop");
    if (o->tile != NULL)
        check_value(c, o->tile, T_i64, "the tile of a loop");
    if (!loop_over_holds(c->p, c->known, n))
        refuse(c, "the range of %s is not known to be in %s; write the range alone",
               name_of(n->local), o->axis->name);
}

static void check_for(Check *c, const Node *n)
{
    unsigned moving = check_value(c, n->lo, T_i64, "where a loop begins");

    moving |= check_value(c, n->hi, T_i64, "where a loop ends");
    if (n->over != NULL)
        check_over(c, n);
    if (n->parts != NULL)
        check_parts(c, n);
    if (n->how == FOR_PARALLEL && c->nest > 0)
        refuse(c, "a parallel loop is a phase, not inside one");
    if ((n->how == FOR_VECTOR) != (n->lanes > 1) && n->how != FOR_PARALLEL)
        refuse(c, "a vector loop has 2 lanes or more and another loop 1, not %d", n->lanes);
    check_same(c, moving, "the range of a loop");
    if (n->lanes > 1)
        check_vector(c);
    if (n->local->type != T_i64)
        refuse(c, "the variable %s of a loop is %s", name_of(n->local),
               ir_type[n->local->type].name);
    moving |= (n->how == FOR_PARALLEL ? BY_PHASE : 0) | (n->lanes > 1 ? BY_LANE : 0);
    bind(c, n->local, false, moving);
    c->known[n->local->id] = (LoopKnown){ .loop = n };
    if (n->lanes > 1) {
        c->vector = n;
        c->lanes = n->lanes;
    }
    check_nodes(c, n->body, n->nbody);
    if (n->lanes > 1) {
        c->vector = NULL;
        c->lanes = 1;
    }
    c->bound[n->local->id] = false;
}

/* An iteration builds rows of its own, or, alone, all of them. */
static void check_build(Check *c, const Node *n)
{
    unsigned moving = n->lo != NULL ? check_value(c, n->lo, T_i64, "the row of a build") : 0;

    if (c->building != NULL)
        refuse(c, "axis %s is built inside the build of %s", n->axis->name, c->building->name);
    if (c->built[n->axis->id] != c->phase)
        refuse(c, "axis %s is built in two phases", n->axis->name);
    check_complete(c, n->axis->parent);
    if (c->parallel && c->guards == 0 && !(moving & BY_PHASE))
        refuse(c, "every iteration of the phase builds the same row of %s", n->axis->name);
    c->building = n->axis;
    check_nodes(c, n->body, n->nbody);
    c->building = NULL;
}

static void check_insert(Check *c, const Node *n)
{
    if (c->building != n->axis)
        refuse(c, "what is inserted into %s stands in a block `build %s`", n->axis->name,
               n->axis->name);
    check_value(c, n->value, T_i64, "what is inserted");
}

static void check_node(Check *c, const Node *n)
{
    unsigned guard;

    c->node = n;
    c->walk++;
    switch (n->kind) {
    case N_FOR: check_for(c, n); break;
    case N_IF:
        guard = check_value(c, n->cond, T_bool, "the condition of a branch");
        check_same(c, guard, "the condition of a branch");
        guard &= BY_PHASE;
        c->guards += guard;
        check_nodes(c, n->body, n->nbody);
        c->guards -= guard;
        break;
    case N_LET:
        bind(c, n->local, true, check_value(c, n->value, n->local->type, "a let"));
        c->known[n->local->id] =
            (LoopKnown){ .value = c->assigned[n->local->id] ? NULL : n->value };
        break;
    case N_STORE: check_store(c, n); break;
    case N_CHECK:
        check_same(c, check_value(c, n->cond, T_bool, "what is checked"), "what is checked");
        if (n->fault <= FAULT_NONE || n->fault >= FAULT_COUNT)
            refuse(c, "a check without a fault");
        break;
    case N_BUILD: check_build(c, n); break;
    case N_INSERT: check_insert(c, n); break;
    case N_AHEAD:
        check_element(c, n->out);
        for (int i = 0; i < n->out->nargs; i++)
            check_expr(c, n->out->arg[i]);
        break;
    case N_BARRIER: break;
    }
}

static void check_nodes(Check *c, Node *const *node, int n)
{
    if (++c->nest > LOOP_MAX_NEST)
        refuse(c, "blocks nested more than %d deep", LOOP_MAX_NEST);
    count_stores(c, node, n, 1);
    for (int i = 0; i < n; i++)
        check_node(c, node[i]);
    count_stores(c, node, n, -1);
    for (int i = 0; i < n; i++)
        if (node[i]->kind == N_LET)
            c->bound[node[i]->local->id] = false;
    c->nest--;
}

/* One axis a phase, so that its starts can be made when the phase has counted its entries. */
static void note_builds(Check *c, const Node *n, int phase)
{
    const Axis *a = loop_builds(n);

    if (n->kind == N_BUILD && c->built[n->axis->id] == 0)
        c->built[n->axis->id] = phase;
    if (n->kind == N_BUILD && a != loop_builds(c->p->phase[phase - 1])) {
        c->node = n;
        refuse(c, "a phase builds one axis, and %s is a second", n->axis->name);
    }
    for (int i = 0; i < n->nbody; i++)
        note_builds(c, n->body[i], phase);
}

static void note_writes(Check *c, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell)
        state_of(c, n->out->buf)->phase = c->phase;
    if (n->kind == N_STORE && n->out->op == OP_local)
        c->assigned[n->out->local->id] = true;
    for (int k = 0; k < n->nat; k++)
        if (n->at[k].out->op == OP_cell)
            state_of(c, n->at[k].out->buf)->phase = c->phase;
    for (int i = 0; i < n->nbody; i++)
        note_writes(c, n->body[i]);
}

/* Before all phases: what an initial value is made of is there, whichever phase comes first. */
static void check_init(Check *c, Buf *b)
{
    int n = b->init_at != NULL ? loop_rank(b, STAGE_POSITIONS) : 0;

    c->node = loop_node(c->p, &(Node){ .label = b->name, .place = b->place });
    c->walk++;
    if ((b->kind != B_ARG && b->kind != B_TEMP) || b->of != NULL)
        refuse(c, "it has no initial value: it is given, constant or of one iteration");
    if (!loop_is_known(c->p, b->init))
        refuse(c, "an initial value is made of literals, sizes and structure");
    for (int d = 0; d < n; d++)
        bind(c, b->init_at[d], false, 0);
    check_value(c, b->init, ir_type[b->type].value, "an initial value");
    for (int d = 0; d < n; d++)
        c->bound[b->init_at[d]->id] = false;
    state_of(c, b)->set = true;
}

static bool runs_once(const Node *n)
{
    return n->lo->op == OP_int && n->hi->op == OP_int && n->hi->i <= n->lo->i + 1;
}

static Check check_of(Prog *p)
{
    Check c = { .p = p,
                .lanes = 1,
                .buf = arena_array(p->arena, p->nbuf, sizeof *c.buf),
                .aux = arena_array(p->arena, p->naux, sizeof *c.aux),
                .bound = arena_array(p->arena, p->nlocal, sizeof *c.bound),
                .register_of = arena_array(p->arena, p->nlocal, sizeof *c.register_of),
                .moves = arena_array(p->arena, p->nlocal, sizeof *c.moves),
                .bound_in = arena_array(p->arena, p->nlocal, sizeof *c.bound_in),
                .seen = arena_array(p->arena, p->nexpr, sizeof *c.seen),
                .moving = arena_array(p->arena, p->nexpr, sizeof *c.moving),
                .value = arena_array(p->arena, p->nexpr, sizeof *c.value),
                .let = arena_array(p->arena, p->nlocal, sizeof *c.let),
                .assigned = arena_array(p->arena, p->nlocal, sizeof *c.assigned),
                .known = arena_array(p->arena, p->nlocal, sizeof *c.known),
                .built = arena_array(p->arena, p->naxis, sizeof *c.built) };

    for (c.cap_stored = 16; c.cap_stored < 2 * (uint64_t)p->nexpr;)
        c.cap_stored *= 2;
    c.stored = arena_array(p->arena, (int64_t)c.cap_stored, sizeof *c.stored);
    return c;
}

void loop_check(Prog *p)
{
    Check c;

    for (int i = 0; i < p->nphase; i++)
        loop_touch_over(p, p->phase[i]);
    c = check_of(p);
    for (int i = 0; i < p->nphase; i++)
        note_builds(&c, p->phase[i], i + 1);
    c.phase = 1;
    for (int i = 0; loop_buf(p, i) != NULL; i++)
        if (loop_buf(p, i)->init != NULL)
            check_init(&c, loop_buf(p, i));
    for (int i = 0; i < p->nphase; i++) {
        Node *n = p->phase[i];

        c.node = n;
        c.phase = i + 1;
        c.parallel = n->kind == N_FOR && n->how == FOR_PARALLEL && !runs_once(n);
        if (n->label == NULL)
            refuse(&c, "a phase is named");
        note_writes(&c, n);
        count_stores(&c, &n, 1, 1);
        check_node(&c, n);
        count_stores(&c, &n, 1, -1);
        if (n->local != NULL)
            c.bound[n->local->id] = false;
    }
    loop_check_levels(p);
    if (p->threads)
        loop_check_threads(p);
}
