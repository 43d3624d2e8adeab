/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Vector loops: prints the body for as many registers at once as the loop asks for, for half as
 * many, and so on down to one, and for the remaining iterations with some lanes of a register.  A
 * sum over lanes has one register for each part of the sum.  It is folded after the loop or, where
 * outer loops use the sum for nothing else, after the outermost of them. */
#include "emit/emit_int.h"

enum { LIMIT_LEVELS = 4 }; /* nodes one in another from an outer loop to the vector loop */

/* The largest number of iterations that are left when the loops of so many have run; -1: not
 * known. */
static int64_t trips_of(const Node *n)
{
    bool size = n->hi->op == OP_size && n->hi->size->is > 0;
    int64_t hi = size ? n->hi->size->is : n->hi->i;

    if (n->how == FOR_PARALLEL || n->lo->op != OP_int || (!size && n->hi->op != OP_int))
        return -1;
    return hi > n->lo->i ? hi - n->lo->i : 0;
}

static void put_bound(Emit *o, const Node *n, bool end)
{
    if (n->how == FOR_PARALLEL)
        text_str(o->out, end ? "weft_end" : "weft_begin");
    else
        emit_expr(o, end ? n->hi : n->lo, L_SUM);
}

/* A local of all lanes, from outside the loop, that its lanes add to. */
static bool is_fold(const Node *n)
{
    return n->kind == N_STORE && n->out->op == OP_local && n->out->local->lanes == 1;
}

void emit_fold(Emit *o, const Local *l)
{
    emit_local(o, l);
    text_f(o->out, "_%d", o->reg);
}

static void declare_fold(Emit *o, const Node *n, int regs, bool carried)
{
    const Local *l = n->out->local;
    const char *type = emit_suffix(l->type);

    for (o->reg = 0; o->reg < regs; o->reg++) {
        emit_line(o);
        text_f(o->out, "weft_v%s ", type);
        emit_fold(o, l);
        if (n->op == A_ADD && !carried) {
            text_str(o->out, " = { 0 };");
            continue;
        }
        text_f(o->out, " = WEFT_SPLAT_%s(", l->type == T_f32 ? "F32" : "F64");
        if (n->op == A_ADD) /* nothing, although the loop may not run */
            text_str(o->out, "-0.0");
        else
            emit_local(o, l);
        text_str(o->out, ");");
    }
    o->reg = 0;
}

static const char *fold_name(const Node *n)
{
    return n->op == A_ADD ? "add" : n->op == A_MAX ? "max" : "min";
}

/* The parts of a sum, halves by halves, until one is left. */
static void join_fold(Emit *o, const Node *n, int regs)
{
    const Local *l = n->out->local;

    for (int half = regs / 2; half > 0; half /= 2)
        for (int r = 0; r < half; r++) {
            emit_line(o);
            emit_local(o, l);
            text_f(o->out, "_%d = weft_%s_v%s(", r, fold_name(n), emit_suffix(l->type));
            emit_local(o, l);
            text_f(o->out, "_%d, ", r);
            emit_local(o, l);
            text_f(o->out, "_%d);", r + half);
        }
}

static void close_fold(Emit *o, const Node *n)
{
    const Local *l = n->out->local;
    const char *type = emit_suffix(l->type);

    emit_line(o);
    emit_local(o, l);
    text_f(o->out, " = weft_%s_%s(", fold_name(n), type);
    emit_local(o, l);
    text_f(o->out, ", weft_fold_%s_v%s(", fold_name(n), type);
    emit_local(o, l);
    text_str(o->out, "_0));");
}

static void close_four(Emit *o, const Node *const *n)
{
    const char *type = emit_suffix(n[0]->out->local->type);

    emit_line(o);
    text_f(o->out, "{ %s sum[4]; weft_fold4_add_v%s(", emit_ctype(o, n[0]->out->local->type),
           type);
    for (int i = 0; i < 4; i++) {
        emit_local(o, n[i]->out->local);
        text_str(o->out, "_0, ");
    }
    text_str(o->out, "sum);");
    for (int i = 0; i < 4; i++) {
        text_char(o->out, ' ');
        emit_local(o, n[i]->out->local);
        text_f(o->out, " += sum[%d];", i);
    }
    text_str(o->out, " }");
}

static bool are_four(const Node *const *n)
{
    for (int i = 0; i < 4; i++)
        if (n[i]->op != A_ADD || n[i]->out->local->type != n[0]->out->local->type)
            return false;
    return true;
}

static bool is_carried(const Emit *o, const Node *fold)
{
    bool is = false;

    for (int i = 0; i < o->ncarried && !is; i++)
        is = o->carried[i]->out == fold->out;
    return is;
}

/* The folds of a loop that are its own, each once. */
static const Node **folds_of(Emit *o, const Node *loop, int *n)
{
    const Node **list = arena_array(o->p->arena, loop->nbody, sizeof *list);

    *n = 0;
    for (int i = 0; i < loop->nbody; i++) {
        bool met = !is_fold(loop->body[i]) || is_carried(o, loop->body[i]);

        for (int k = 0; k < *n && !met; k++)
            met = list[k]->out == loop->body[i]->out;
        if (!met)
            list[(*n)++] = loop->body[i];
    }
    return list;
}

static void close_folds(Emit *o, const Node *const *fold, int n, int regs)
{
    for (int i = 0; i < n; i++)
        join_fold(o, fold[i], regs);
    for (int i = 0; i < n;)
        if (i + 4 <= n && are_four(fold + i)) {
            close_four(o, fold + i);
            i += 4;
        } else {
            close_fold(o, fold[i++]);
        }
}

static bool has_loop(const Node *n)
{
    bool found = false;

    for (int i = 0; i < n->nbody && !found; i++)
        found = n->body[i]->kind == N_FOR || has_loop(n->body[i]);
    return found;
}

/* A few turns one after the other: what they share, as the addresses of rows, is known once. */
static void put_turns(Emit *o, const Node *n, int64_t turns)
{
    if (turns < 2 || turns > o->p->policy.vector_turns || has_loop(n))
        return;
    emit_line(o);
    text_f(o->out, "WEFT_TURNS(%d)", (int)turns);
}

static void put_loop(Emit *o, const Node *n, const char *v, int regs, int64_t trips)
{
    put_turns(o, n, trips / (n->lanes * regs));
    emit_line(o);
    text_f(o->out, "for (; %s + %d <= ", v, n->lanes * regs);
    put_bound(o, n, true);
    text_f(o->out, "; %s += %d)", v, n->lanes * regs);
    o->regs = regs;
    o->step = n->lanes;
    o->packed = n->packed && o->dialect->one != NULL ? n : NULL;
    o->pack = o->packed != NULL ? regs : 1;
    emit_vector_on(o, n->local);
    emit_strides_on(o, n);
    emit_block(o, n->body, n->nbody);
    emit_vector_on(o, NULL);
    o->regs = o->pack = 1;
    o->packed = NULL;
}

/* The element type of what the loop stores: all of it has one. */
static Type type_of(const Node *n)
{
    for (int i = 0; i < n->nbody; i++) {
        Type t = n->body[i]->kind == N_STORE ? (Type)n->body[i]->out->type : type_of(n->body[i]);

        if (t != T_none)
            return t;
    }
    return T_none;
}

static void put_one_by_one(Emit *o, const Node *n, const char *v)
{
    emit_line(o);
    text_f(o->out, "for (; %s < ", v);
    put_bound(o, n, true);
    text_f(o->out, "; %s++)", v);
    o->step = 1;
    emit_block(o, n->body, n->nbody);
}

/* Whether a list of the block, or one below, is to be cut. */
static bool has_cut(const Emit *o, Node *const *n, int count)
{
    bool cut = emit_is_long(o, n, count);

    for (int i = 0; i < count && !cut; i++)
        cut = has_cut(o, n[i]->body, n[i]->nbody);
    return cut;
}

/* Fewer than a register has, at once: the lanes that are left over do nothing.  What is long enough
 * for several functions stays short without masks. */
static void put_rest(Emit *o, const Node *n, const char *v)
{
    Type t = type_of(n);

    if (has_cut(o, n->body, n->nbody)) {
        put_one_by_one(o, n, v);
        return;
    }
    emit_line(o);
    text_f(o->out, "if (%s < ", v);
    put_bound(o, n, true);
    text_str(o->out, ") {");
    o->indent++;
    emit_line(o);
    text_f(o->out, "const weft_mf%d weft_mask WEFT_USED = WEFT_MASK_F%d(", ir_type[t].bytes * 8,
           ir_type[t].bytes * 8);
    put_bound(o, n, true);
    text_f(o->out, " - %s);", v);
    emit_line(o);
    text_str(o->out, "const int64_t weft_left WEFT_USED = ");
    put_bound(o, n, true);
    text_f(o->out, " - %s;", v);
    o->step = n->lanes;
    o->masked = true;
    emit_vector_on(o, n->local);
    emit_strides_on(o, n);
    emit_nodes(o, n->body, n->nbody);
    emit_vector_on(o, NULL);
    o->masked = false;
    o->indent--;
    emit_line(o);
    text_char(o->out, '}');
}

void emit_vector_loop(Emit *o, const Node *n)
{
    int64_t trips = trips_of(n);
    int regs = n->regs > 1 ? n->regs : 1, nfold;
    const Node **fold = folds_of(o, n, &nfold);
    bool whole = n->packed && o->dialect->one != NULL;
    Text v = { .arena = o->p->arena };

    emit_local_name(o, &v, n->local);
    emit_line(o);
    text_f(o->out, "{ int64_t %s = ", v.s);
    put_bound(o, n, false);
    text_str(o->out, ";");
    for (int i = 0; i < nfold; i++)
        declare_fold(o, fold[i], regs, false);
    for (int r = regs; r > 0; r = whole ? 0 : r / 2) {
        if (trips < 0 || trips >= n->lanes * r)
            put_loop(o, n, v.s, r, trips);
        trips = trips < 0 ? trips : trips % (n->lanes * r);
    }
    if (trips != 0 && !whole)
        put_rest(o, n, v.s);
    close_folds(o, fold, nfold, regs);
    text_str(o->out, " }");
}

typedef struct Carry { /* of one sum over lanes in a loop */
    Emit *o;
    const Node *fold;
    int regs;
    bool other; /* something else than such sums has to do with it */
} Carry;

static bool is_local(Expr *e, const void *ctx)
{
    return e->op == OP_local && e->local == ctx;
}

static bool mentions(const Carry *c, Expr *e)
{
    return e != NULL && ir_any(c->o->p, e, is_local, c->fold->out->local);
}

static void see_node(Carry *c, const Node *n, const Node *in)
{
    bool fold = n->kind == N_STORE && n->out == c->fold->out;

    c->other = c->other || mentions(c, n->lo) || mentions(c, n->hi) || mentions(c, n->cond) ||
               mentions(c, n->value) || (!fold && mentions(c, n->out)) ||
               (n->kind == N_LET && n->local == c->fold->out->local) ||
               (fold && (in->kind != N_FOR || in->lanes <= 1 || in->regs != c->regs ||
                         n->op != c->fold->op || n->nat > 0));
    for (int i = 0; i < n->nat; i++)
        c->other = c->other || mentions(c, n->at[i].out) || mentions(c, n->at[i].value);
    for (int i = 0; i < n->nbody && !c->other; i++)
        see_node(c, n->body[i], n);
}

/* Adds the sums over lanes of a vector loop that began before the loop around. */
static void add_carried(Emit *o, const Node *loop, const Node *vector)
{
    for (int i = 0; i < vector->nbody; i++) {
        Carry c = { .o = o, .fold = vector->body[i], .regs = vector->regs };

        if (!is_fold(c.fold) || is_carried(o, c.fold) || c.fold->out->local->id >= o->nlocal ||
            !o->begun[c.fold->out->local->id])
            continue;
        see_node(&c, loop, loop);
        if (c.other)
            continue;
        o->carried = arena_grow(o->p->arena, o->carried, o->ncarried, &o->cap_carried,
                                sizeof *o->carried);
        o->carried[o->ncarried++] = c.fold;
    }
}

/* Of the vector loops a few levels below that have this many registers for each sum. */
static void find_carried(Emit *o, const Node *loop, const Node *n, int regs, int levels)
{
    if (n->kind == N_FOR && n->lanes > 1 && n->regs == regs)
        add_carried(o, loop, n);
    for (int i = 0; i < n->nbody && levels > 0; i++)
        find_carried(o, loop, n->body[i], regs, levels - 1);
}

/* The most registers that such a vector loop has for a sum; -1: there is none. */
static int most_regs(const Node *n, int levels)
{
    int most = n->kind == N_FOR && n->lanes > 1 ? n->regs : -1;

    for (int i = 0; i < n->nbody && levels > 0; i++) {
        int below = most_regs(n->body[i], levels - 1);

        most = below > most ? below : most;
    }
    return most;
}

Carried emit_open_carried(Emit *o, const Node *n)
{
    Carried c = { o->ncarried, 0, o->vector == NULL ? most_regs(n, LIMIT_LEVELS) : -1 };

    if (c.regs < 0 || has_cut(o, n->body, n->nbody))
        return c;
    find_carried(o, n, n, c.regs, LIMIT_LEVELS);
    c.regs = c.regs > 1 ? c.regs : 1;
    if ((o->ncarried - c.first) * c.regs > o->p->policy.lane_sums)
        o->ncarried = c.first;
    c.n = o->ncarried - c.first;
    if (c.n == 0)
        return c;
    emit_line(o);
    text_char(o->out, '{');
    o->indent++;
    for (int i = 0; i < c.n; i++)
        declare_fold(o, o->carried[c.first + i], c.regs, true);
    return c;
}

void emit_close_carried(Emit *o, Carried c)
{
    if (c.n == 0)
        return;
    o->ncarried = c.first;
    close_folds(o, o->carried + c.first, c.n, c.regs);
    o->indent--;
    emit_line(o);
    text_char(o->out, '}');
}

/* One hint for each cache line that the registers will want: for the first cache, or, of rows that
 * are many loops away, for the second, as they would push each other out of the first. */
void emit_ahead(Emit *o, const Node *n)
{
    int bytes = ir_type[n->out->buf->type].bytes * (o->step > 0 ? o->step : 1);
    int regs = CACHE_LINE / bytes;

    for (o->reg = 0; o->reg < o->regs && o->dialect->prefetch != NULL;
         o->reg += regs > 0 ? regs : 1) {
        emit_line(o);
        text_str(o->out, o->dialect->prefetch);
        emit_place(o, n->out);
        text_str(o->out, n->far || o->inner > 1 ? o->dialect->far : o->dialect->near);
    }
    o->reg = 0;
}
