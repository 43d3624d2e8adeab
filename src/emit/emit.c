/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of flat loops to C, node by node: one function a phase. */
#include "emit/emit_int.h"

#include <limits.h>
#include <string.h>

/* Blocks that are very deep are not indented any further: the text would grow with their square. */
void emit_line(Emit *o)
{
    text_f(o->out, "\n%*s", 4 * (o->indent < EMIT_INDENT ? o->indent : EMIT_INDENT), "");
}

Function emit_open(Emit *o)
{
    Arena *arena = o->p->arena;
    Function f = { .body = arena_alloc(arena, sizeof *f.body),
                   .outer = o->out,
                   .used = o->used,
                   .indent = o->indent };

    f.body->arena = arena;
    text_put(f.body, "", 0);
    o->out = f.body;
    o->indent = 1;
    o->used = (Mention){ .serial = ++o->functions,
                         .size = arena_array(arena, o->p->nsize, 1),
                         .fixed = arena_alloc(arena, sizeof(Text)),
                         .known = arena_alloc(arena, sizeof(Memo)) };
    *o->used.fixed = (Text){ .arena = arena };
    *o->used.known = (Memo){ 0 };
    return f;
}

void emit_close(Emit *o, Function *f)
{
    Mention used = o->used;

    o->out = f->outer;
    o->used = f->used;
    o->indent = f->indent;
    f->used = used;
}

static void emit_size(Text *out, const Size *s)
{
    if (s->is > 0)
        text_f(out, "\n    const int64_t n_%s = %lld;", s->name, (long long)s->is);
    else
        text_f(out, "\n    const int64_t n_%s = weft_size[%d];", s->name, s->id);
}

void emit_body(Emit *o, Text *out, Function *f, Node *const *tree, int n)
{
    Places *counts = &f->used.count, *arrays = &f->used.array;

    emit_sort(counts);
    emit_sort(arrays);
    emit_find_stores(o, &o->stored, tree, n);
    for (int i = 0; i < o->p->nsize; i++)
        if (f->used.size[i])
            emit_size(out, o->p->size[i]);
    for (int i = 0; i < counts->n; i++)
        text_f(out, "\n    const int64_t n_%s = weft_size[%d];",
               o->k->count[counts->at[i]]->name, o->p->nsize + counts->at[i]);
    if (f->used.fixed->n > 0)
        text_put(out, f->used.fixed->s, f->used.fixed->n);
    for (int i = 0; i < arrays->n; i++) {
        const Buf *b = emit_array(o, arrays->at[i]);
        bool stored = emit_is_stored(o, &o->stored, b);

        if (b->kind != B_CONST)
            text_f(out, "\n    %s%s%s%s = weft_array[%d];", stored ? "" : "const ",
                   emit_ctype(o, b->type), stored ? o->dialect->stored : o->dialect->array,
                   o->array_name[arrays->at[i]], arrays->at[i]);
    }
    if (out->n + f->body->n > EMIT_MOST)
        ir_throw(o->p, ST_LIMIT, "a kernel of more than %d MB of C", EMIT_MOST >> 20);
    text_put(out, f->body->s, f->body->n);
}

void emit_block(Emit *o, Node *const *body, int n)
{
    text_str(o->out, " {");
    o->indent++;
    emit_nodes(o, body, n);
    o->indent--;
    emit_line(o);
    text_char(o->out, '}');
}

/* Where a loop begins and ends, as text; the range of a phase is its caller's. */
static void put_bound(Emit *o, const Node *n, bool end)
{
    Expr *e = end ? n->hi : n->lo;

    if (n->how == FOR_PARALLEL)
        text_str(o->out, end ? "weft_end" : "weft_begin");
    else if (e->op == OP_local)
        emit_local(o, e->local);
    else
        emit_expr(o, end ? n->hi : n->lo, L_SUM);
}

/* The head of a loop whose variable has another name than that of the node, or NULL. */
static void put_head(Emit *o, const Node *n, const char *name, const char *step)
{
    bool narrow = n->local->id < o->nlocal && o->narrow[n->local->id];
    Text own = { .arena = o->p->arena };

    emit_local_name(o, &own, n->local);
    name = name != NULL ? name : own.s;
    emit_line(o);
    text_f(o->out, "for (%s %s = %s", narrow ? "int32_t" : "int64_t", name,
           narrow ? "(int32_t)(" : "");
    put_bound(o, n, false);
    text_f(o->out, "%s; %s < ", narrow ? ")" : "", name);
    put_bound(o, n, true);
    text_f(o->out, "; %s%s)", name, step);
}

/* As many turns of `turns` iterations as there are, each written out. */
static void put_turns(Emit *o, const Node *n, const char *at, int turns)
{
    emit_line(o);
    text_str(o->out, "WEFT_TURNS(1)");
    emit_line(o);
    text_str(o->out, "for (; ");
    put_bound(o, n, true);
    text_f(o->out, " - %s >= %d; %s += %d)", at, turns, at, turns);
    o->indent++;
    if (turns > 1) {
        text_f(o->out, " { %s weft_from = %s; WEFT_HIDE(weft_from);", emit_local_type(o, n->local),
               at);
        emit_line(o);
        text_f(o->out, "WEFT_TURNS(%d)", turns);
        emit_line(o);
        text_f(o->out, "for (int32_t weft_turn = 0; weft_turn < %d; weft_turn++)", turns);
    }
    text_str(o->out, " {");
    o->indent++;
    emit_line(o);
    text_f(o->out, "const %s ", emit_local_type(o, n->local));
    emit_local(o, n->local);
    text_f(o->out, turns > 1 ? " = weft_from + weft_turn;" : " = %s;", at);
    emit_nodes(o, n->body, n->nbody);
    o->indent--;
    emit_line(o);
    text_char(o->out, '}');
    o->indent--;
    if (turns > 1)
        text_str(o->out, " }");
}

enum { LIMIT_REST = 4 }; /* turns of the iterations that are left */

static void emit_in_turns(Emit *o, const Node *n)
{
    Text at = { .arena = o->p->arena };

    text_f(&at, "weft_at%d", n->local->id);
    emit_line(o);
    text_f(o->out, "{ %s %s = (%s)(", emit_local_type(o, n->local), at.s,
           emit_local_type(o, n->local));
    put_bound(o, n, false);
    text_str(o->out, ");");
    put_turns(o, n, at.s, n->regs);
    if (n->regs > 2 * LIMIT_REST)
        put_turns(o, n, at.s, LIMIT_REST);
    put_turns(o, n, at.s, 1);
    text_str(o->out, " }");
}

/* The parts of a team take iterations in turns, all as often: where there are too few, what the
 * last ones compute is that of the first, and is not stored. */
static void emit_dealt(Emit *o, const Node *n)
{
    bool narrow = n->local->id < o->nlocal && o->narrow[n->local->id];

    put_head(o, n, "weft_turn", " += weft_parts");
    text_str(o->out, " {");
    o->indent++;
    emit_line(o);
    text_str(o->out, "const bool weft_on WEFT_USED = weft_turn + weft_part < ");
    put_bound(o, n, true);
    text_char(o->out, ';');
    emit_line(o);
    text_str(o->out, narrow ? "const int32_t " : "const int64_t ");
    emit_local(o, n->local);
    text_str(o->out, " = weft_on ? weft_turn + weft_part : weft_turn;");
    emit_nodes(o, n->body, n->nbody);
    o->indent--;
    emit_line(o);
    text_char(o->out, '}');
}

static void emit_for(Emit *o, const Node *n)
{
    Carried carried;

    if (n->lanes > 1) {
        emit_vector_loop(o, n);
        return;
    }
    if (n->level == LEVEL_WARP && n != o->phase && o->parts_of_team) {
        emit_dealt(o, n);
        return;
    }
    carried = emit_open_carried(o, n);
    if (n == o->phase && o->alone) {
        emit_line(o);
        text_str(o->out, "const int64_t ");
        emit_local(o, n->local);
        text_str(o->out, " WEFT_USED = weft_begin;");
        emit_nodes(o, n->body, n->nbody);
        emit_close_carried(o, carried);
        return;
    }
    o->inner += o->vector != NULL;
    if (n->regs > 1 && o->dialect->one != NULL) {
        emit_in_turns(o, n);
    } else {
        put_head(o, n, NULL, "++");
        emit_block(o, n->body, n->nbody);
    }
    o->inner -= o->vector != NULL;
    emit_close_carried(o, carried);
}

static void note_assigned(Emit *o, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_local)
        o->assigned[n->out->local->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_assigned(o, n->body[i]);
}

typedef struct Around { /* the locals that have a name */
    const Local **local;
    int n, cap;
} Around;

/* Passes name the loops they make without a look at those around. */
static void note_names(Emit *o, const Node *n, Around *s)
{
    int outer = s->n;

    if (n->local != NULL && n->local->name != NULL) {
        for (int i = 0; i < s->n; i++)
            if (s->local[i] != n->local && strcmp(s->local[i]->name, n->local->name) == 0)
                o->hides[n->local->id] = true;
        s->local = arena_grow(o->p->arena, s->local, s->n, &s->cap, sizeof *s->local);
        s->local[s->n++] = n->local;
    }
    for (int i = 0; i < n->nbody; i++)
        note_names(o, n->body[i], s);
    if (n->kind != N_LET) /* which holds for the nodes after it */
        s->n = outer;
}

const char *emit_local_type(const Emit *o, const Local *l)
{
    if (emit_in_lanes(o, l))
        return l->type == T_f32 ? "weft_vf32" : "weft_vf64";
    return l->id < o->nlocal && o->narrow[l->id] ? "int32_t" : emit_ctype(o, l->type);
}

static void put_let(Emit *o, const Node *n)
{
    bool vector = emit_in_lanes(o, n->local);
    Type t = n->local->type;

    emit_line(o);
    text_f(o->out, "%s%s ", o->assigned[n->local->id] ? "" : "const ",
           emit_local_type(o, n->local));
    emit_local(o, n->local);
    text_str(o->out, o->dialect->one != NULL && t == T_i64 ? " WEFT_USED = " : " = ");
    text_str(o->out, o->narrow[n->local->id] ? "(int32_t)(" : "");
    if (vector)
        emit_operand(o, n->value, t, L_SELECT);
    else
        emit_as(o, n->value, t, L_SELECT);
    text_str(o->out, o->narrow[n->local->id] ? ");" : ";");
}

void emit_let(Emit *o, const Node *n)
{
    for (o->reg = 0; o->reg < (emit_in_lanes(o, n->local) ? o->regs : 1); o->reg++)
        put_let(o, n);
    o->reg = 0;
    if (n->local->id < o->nlocal)
        o->begun[n->local->id] = true;
}

static void put_operand(Emit *o, Expr *e, Type as, enum Level least, bool vector)
{
    if (vector)
        emit_operand(o, e, as, least);
    else
        emit_as(o, e, as, least);
}

/* What is stored to, as a value. */
static void put_target(Emit *o, Expr *out)
{
    if (o->folds)
        emit_fold(o, out->local);
    else
        emit_expr(o, out, L_PRODUCT);
}

/* Where lanes are threads, scalars are in all of them, and one stores. */
static bool is_guarded(const Emit *o, const Expr *place)
{
    return o->warp && o->vector == NULL && place->op == OP_cell;
}

static const char *guard_of(const Emit *o)
{
    return o->parts_of_team ? "WEFT_ON_ONE " : o->dialect->one;
}

/* A fault of a store that one lane makes must not change the course of that lane alone. */
static const char *fault_of(const Emit *o, const Expr *place)
{
    return is_guarded(o, place) ? "late" : "fault";
}

/* The element after the store: the value, or what the two give together.  max and min take their
 * first operand where they can: so the first of equals stays, and the first NaN. */
void emit_combined(Emit *o, const Node *n, Type as)
{
    bool vector = o->vector != NULL && (n->out->op == OP_cell || emit_is_vector(o, n->value) ||
                                        n->out->local->lanes > 1);
    bool fused = n->op == A_ADD && n->value->op == OP_mul && n->value->type == as && as != T_i64;
    bool checked = n->op == A_ADD && as == T_i64;

    if (n->op == A_SET) {
        put_operand(o, n->value, as, L_SELECT, vector);
    } else if (n->op == A_ADD && !fused && !checked) {
        put_operand(o, n->value, as, L_SUM, vector);
        text_str(o->out, " + ");
        put_target(o, n->out);
    } else {
        text_f(o->out, "weft_%s_%s%s(",
               fused            ? "fma"
               : n->op == A_ADD ? "add"
               : n->op == A_MAX ? "max"
                                : "min",
               vector ? "v" : "", checked ? "ck" : emit_suffix(as));
        for (int i = 0; fused && i < 2; i++) {
            put_operand(o, n->value->arg[i], as, L_SELECT, vector);
            text_str(o->out, ", ");
        }
        put_target(o, n->out);
        if (!fused) {
            text_str(o->out, ", ");
            put_operand(o, n->value, as, L_SELECT, vector);
        }
        text_f(o->out, checked ? ", &%s)" : ")", fault_of(o, n->out));
    }
}

static void put_stored(Emit *o, Expr *place)
{
    emit_line(o);
    if (is_guarded(o, place))
        text_str(o->out, guard_of(o));
    emit_place(o, place);
    text_str(o->out, " = ");
}

/* An integer of the program, to where a companion or a mark is kept. */
static void emit_companion(Emit *o, const At *at)
{
    bool narrow = at->out->buf->type == T_i32 && at->value->op != OP_int;

    put_stored(o, at->out);
    text_str(o->out, narrow ? "weft_to_i32(" : "");
    emit_as(o, at->value, T_i64, L_SELECT);
    text_f(o->out, narrow ? ", &%s);" : ";", fault_of(o, at->out));
}

/* max= and min= with companions: they are of the value that stays, and the first to come stays. */
static void emit_winner(Emit *o, const Node *n)
{
    Type as = (Type)ir_type[n->out->buf->type].value;
    const At *mark = loop_mark(n);
    bool warp = o->warp;

    emit_line(o);
    text_f(o->out, "%s{ const %s best = ", is_guarded(o, n->out) ? guard_of(o) : "",
           emit_ctype(o, as));
    o->warp = false;
    emit_as(o, n->value, as, L_SELECT);
    text_char(o->out, ';');
    emit_line(o);
    text_f(o->out, "if (weft_%s_%s(best, ", n->op == A_MAX ? "over" : "under", emit_suffix(as));
    emit_expr(o, n->out, L_SELECT);
    text_char(o->out, ')');
    if (mark != NULL) {
        text_str(o->out, " || !");
        emit_place(o, mark->out);
    }
    text_str(o->out, ") {");
    o->indent++;
    put_stored(o, n->out);
    text_str(o->out, "best;");
    for (int k = 0; k < n->nat; k++)
        emit_companion(o, &n->at[k]);
    o->indent--;
    o->warp = warp;
    emit_line(o);
    text_str(o->out, "} }");
}

/* Whether the store goes past the caches: by whole lines only, a part of one costs twice. */
static bool fills_lines(const Emit *o, const Node *n, Type t)
{
    return n->stream && !o->masked && (t == T_f32 || t == T_f64) &&
           o->regs * o->step * ir_type[t].bytes % CACHE_LINE == 0;
}

void emit_pays(Emit *o, const Node *n)
{
    text_str(o->out, ", ");
    if (n->cond != NULL)
        emit_expr(o, n->cond, L_SELECT);
    else
        text_char(o->out, '1');
}

static bool has_stream(const Node *n)
{
    bool has = n->stream;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_stream(n->body[i]);
    return has;
}

static void put_store(Emit *o, const Node *n)
{
    bool local = n->out->op == OP_local, vector = o->vector != NULL && !local;
    Type t = local ? n->out->local->type : n->out->buf->type;
    bool half = !vector && (t == T_f16 || t == T_bf16);
    bool whole = t == T_i32 && n->value->op != OP_int;

    if (emit_lane_open(o, n)) {
        emit_combined(o, n, (Type)ir_type[t].value);
        text_str(o->out, ");");
        return;
    }
    if (emit_strided_open(o, n)) {
        emit_combined(o, n, (Type)ir_type[t].value);
        emit_strided_close(o, n);
        return;
    }
    if (vector && fills_lines(o, n, t)) {
        emit_line(o);
        text_f(o->out, "weft_stream_%s(&", emit_suffix(t));
        emit_place(o, n->out);
        text_str(o->out, ", ");
    } else if (vector) {
        emit_line(o);
        text_str(o->out, o->parts_of_team ? "WEFT_ON " : "");
        text_f(o->out, "WEFT_STORE%s_%s(&", o->masked ? "M" : "", emit_lanes(t));
        emit_place(o, n->out);
        text_str(o->out, ", ");
    } else if (o->folds) {
        emit_line(o);
        emit_fold(o, n->out->local);
        text_str(o->out, " = ");
        if (o->masked)
            text_f(o->out, "WEFT_PICK_%s(weft_mask, ", t == T_f32 ? "F32" : "F64");
    } else {
        put_stored(o, n->out);
    }
    if (half || whole)
        text_f(o->out, "weft_to_%s(", ir_type[t].name);
    emit_combined(o, n, t == T_real ? T_f64 : (Type)ir_type[t].value);
    if (o->folds && o->masked) {
        text_str(o->out, ", ");
        emit_fold(o, n->out->local);
    }
    if (vector && o->masked)
        text_str(o->out, ", weft_mask");
    else if (vector && fills_lines(o, n, t))
        emit_pays(o, n);
    if (whole)
        text_f(o->out, ", &%s);", fault_of(o, n->out));
    else
        text_str(o->out, half || vector || (o->folds && o->masked) ? ");" : ";");
    for (int k = 0; k < n->nat; k++)
        emit_companion(o, &n->at[k]);
}

static void emit_store(Emit *o, const Node *n)
{
    bool local = n->out->op == OP_local, lanes = o->vector != NULL;

    if (n->nat > 0 && n->op != A_ADD) {
        emit_winner(o, n);
        return;
    }
    if (local && n->out->local->lanes == 1)
        lanes = lanes && emit_is_vector(o, n->value);
    o->folds = lanes && local && n->out->local->lanes == 1;
    if (emit_wide_store(o, n))
        return;
    for (o->reg = 0; o->reg < (lanes ? o->regs : 1); o->reg++)
        put_store(o, n);
    o->reg = 0;
    o->folds = false;
}

void emit_node(Emit *o, const Node *n)
{
    emit_strided_loads(o, n);
    emit_wide_loads(o, n);
    switch (n->kind) {
    case N_FOR: emit_for(o, n); break;
    case N_LET: emit_let(o, n); break;
    case N_STORE: emit_store(o, n); break;
    case N_IF:
        emit_line(o);
        text_str(o->out, "if (");
        emit_expr(o, n->cond, L_SELECT);
        text_char(o->out, ')');
        emit_block(o, n->body, n->nbody);
        break;
    case N_CHECK:
        emit_line(o);
        text_str(o->out, "if (!");
        emit_expr(o, n->cond, L_PRIMARY);
        text_f(o->out, ") return %d;", n->fault);
        break;
    case N_BUILD:
        emit_nodes(o, n->body, n->nbody);
        emit_close_build(o, n);
        break;
    case N_INSERT: emit_insert(o, n); break;
    case N_AHEAD: emit_ahead(o, n); break;
    case N_BARRIER:
        if (o->dialect->barrier == NULL)
            break;
        emit_line(o);
        text_str(o->out, o->dialect->barrier);
        break;
    }
}

void emit_nodes(Emit *o, Node *const *n, int count)
{
    if (o->regs == 1 && emit_is_long(o, n, count)) {
        emit_parts(o, n, count);
        return;
    }
    for (int i = 0; i < count; i++)
        emit_node(o, n[i]);
}

static void emit_constant(Emit *o, int i)
{
    const Buf *b = o->k->array[i];
    Type t = b->rows ? T_f64 : b->type;

    text_f(o->out, "\n%s%s %s[] = {", o->dialect->constant, emit_ctype(o, t), o->array_name[i]);
    for (int64_t j = 0; j < b->n; j++) {
        text_str(o->out, j % 8 == 0 ? "\n    " : " ");
        if (t == T_f16 || t == T_bf16)
            text_f(o->out, "%d", t == T_f16 ? num_to_f16(b->val[j]) : num_to_bf16(b->val[j]));
        else if (b->ival != NULL)
            emit_expr(o, ir_int(o->p, b->ival[j]), L_SELECT);
        else
            emit_as(o, ir_real(o->p, b->val[j]), t, L_SELECT);
        text_char(o->out, ',');
    }
    text_str(o->out, b->n == 0 ? " 0 };" : "\n};");
}

typedef struct Finders {
    Emit *o;
    bool *done[FIND_COUNT]; /* by Axis.id */
} Finders;

static void find_search(Expr *e, void *ctx)
{
    Finders *f = ctx;

    if (e->op != OP_find || f->done[e->k][e->axis->id])
        return;
    f->done[e->k][e->axis->id] = true;
    emit_finder(f->o, e->axis, (FindHow)e->k);
}

/* Where each search that goes on from its last end keeps that. */
static void declare_near(Expr *e, void *ctx)
{
    Emit *o = ctx;

    if (e->op == OP_find && e->k == FIND_NEAR)
        text_f(o->out, "\n    int64_t near%u = 0;", (unsigned)e->id);
}

static void emit_phase(Emit *o, Node *n, int i)
{
    EmitPhase *f = &o->k->phase[i];
    Text name = { .arena = o->p->arena }, parts = { .arena = o->p->arena };
    Memo met = { 0 };
    Function fn;
    bool once = !n->scheduled && n->kind == N_FOR && n->how == FOR_SERIAL &&
                n->lo->op == OP_int && n->lo->i == 0 &&
                n->hi->op == OP_int && n->hi->i == 1;

    text_f(&name, "%s_phase_%d", o->prefix, i);
    text_put(&parts, "", 0);
    *f = (EmitPhase){ .name = name.s,
                      .parallel = n->kind == N_FOR && n->how == FOR_PARALLEL,
                      .why = n->why };
    emit_find_stores(o, &o->phase_stored, &n, 1);
    note_assigned(o, n);
    note_names(o, n, &(Around){ 0 });
    o->phase = n;
    o->parts = &parts;
    f->lanes = loop_has_vector(n);
    f->step = n->lanes > 1 ? n->lanes * (n->regs > 1 ? n->regs : 1) : 1;
    o->warp = f->lanes && o->dialect->one != NULL;
    emit_note_lets(o, n);
    emit_note_team(o, n, f);
    if (f->parallel) {
        f->extent = n->hi;
        f->balance = loop_balance(n);
        f->parts = n->parts;
    }
    f->each = f->parallel && f->parts == NULL && o->phase_stored.work.n == 0;
    o->alone = o->dialect->one != NULL && f->each && n->lanes <= 1;
    emit_note_build(o, n, f);
    fn = emit_open(o);
    if (f->builds != NULL)
        emit_open_build(o, f);
    loop_visit(o->p, n, declare_near, o, &met);
    emit_nodes(o, once ? n->body : &n, once ? n->nbody : 1);
    emit_close(o, &fn);
    text_put(o->out, parts.s, parts.n);
    text_f(o->out, "\n\n/* %s */\n%s%s%s\n{\n    int64_t fault = 0%s;",
           n->label != NULL ? n->label : "", o->dialect->entry, f->name, o->dialect->entry_args,
           o->warp ? ", late = 0" : "");
    emit_work(o, f);
    if (o->warp)
        emit_open_team(o, f);
    emit_body(o, o->out, &fn, &n, 1);
    if (has_stream(n)) /* whoever waits for the phase reads what it stored */
        text_str(o->out, "\n    WEFT_FENCE;");
    text_f(o->out, "\n    return %s;\n}", o->warp ? "fault != 0 ? fault : late" : "fault");
    if (o->dialect->one != NULL)
        emit_kernel(o, n, f, i);
}

static void see_function(Expr *e, void *ctx)
{
    *(bool *)ctx = *(bool *)ctx || (e->op >= OP_exp && e->op <= OP_silu);
}

static void put_headers(Emit *o, Node *const *phase, int n)
{
    bool calls = false, builds = false;
    Memo met = { 0 };

    for (int i = 0; i < n; i++) {
        loop_visit(o->p, phase[i], see_function, &calls, &met);
        builds = builds || loop_builds(phase[i]) != NULL;
    }
    if (calls)
        text_f(o->out, "\n%s", o->dialect->elementary);
    if (builds)
        text_f(o->out, "\n%s", emit_set_h);
}

EmitKernel *emit_functions(Text *out, const Dialect *dialect, Prog *p, Node *const *phase, int n,
                           const char *prefix)
{
    return emit_functions_cut(out, dialect, p, phase, n, prefix, 0);
}

EmitKernel *emit_functions_cut(Text *out, const Dialect *dialect, Prog *p, Node *const *given,
                               int n, const char *prefix, int most)
{
    EmitKernel *k = arena_alloc(p->arena, sizeof *k);
    Node **phase = arena_array(p->arena, n, sizeof *phase);
    Emit o = { .p = p,
               .dialect = dialect,
               .out = out,
               .k = k,
               .prefix = prefix,
               .most = dialect->one != NULL ? INT_MAX /* threads inline all of it */
                       : most > 0           ? most
                                            : p->policy.function_lines,
               .regs = 1,
               .pack = 1 };
    Finders f = { .o = &o };
    Memo again = { 0 };

    for (int i = 0; i < n; i++)
        phase[i] = dialect->prefetch != NULL ? given[i] : emit_without_hints(p, given[i]);
    k->phase = arena_array(p->arena, n, sizeof *k->phase);
    k->nphase = n;
    emit_need(&o, phase, n);
    for (int i = 0; i < FIND_COUNT; i++)
        f.done[i] = arena_array(p->arena, p->naxis, sizeof *f.done[i]);
    o.assigned = arena_array(p->arena, p->nlocal, sizeof *o.assigned);
    o.begun = arena_array(p->arena, p->nlocal, sizeof *o.begun);
    o.hides = arena_array(p->arena, p->nlocal, sizeof *o.hides);
    o.narrow = arena_array(p->arena, p->nlocal, sizeof *o.narrow);
    o.known = arena_array(p->arena, p->nlocal, sizeof *o.known);
    o.nlocal = p->nlocal;
    put_headers(&o, phase, n);
    for (int i = 0; i < k->narray; i++)
        if (k->array[i]->kind == B_CONST)
            emit_constant(&o, i);
    for (int i = 0; i < n; i++)
        loop_visit(p, phase[i], find_search, &f, &again);
    emit_stride_functions(&o, phase, n);
    if (dialect->one != NULL)
        text_f(out, "\n\n#undef weft_launch\n#define weft_launch %s_launch\nWEFT_LAUNCH_OF(%d)",
               prefix, p->nsize + k->ncount + 1);
    for (int i = 0; i < n; i++)
        emit_phase(&o, phase[i], i);
    text_char(out, '\n');
    return k;
}

EmitKernel *emit_text(Text *out, const Dialect *dialect, Prog *p, Node *const *phase, int n,
                      const char *heading)
{
    text_f(out, "/* weft: %s */\n%s", heading, dialect->prelude);
    return emit_functions(out, dialect, p, phase, n, "weft");
}
