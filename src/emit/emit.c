/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of flat loops to C, node by node: one function a phase. */
#include "emit/emit_int.h"

#include <string.h>

void emit_line(Emit *o)
{
    text_f(o->out, "\n%*s", 4 * o->indent, "");
}

/* Arrays, counts and searches that the text mentions, each once. */
static void need_array(Emit *o, Buf *b)
{
    EmitKernel *k = o->k;

    for (int i = 0; i < k->narray; i++)
        if (k->array[i] == b)
            return;
    k->array = arena_grow(o->p->arena, k->array, k->narray, &o->cap_array, sizeof *k->array);
    k->array[k->narray++] = b;
}

static void need_count(Emit *o, Axis *a)
{
    EmitKernel *k = o->k;

    for (int i = 0; i < k->ncount; i++)
        if (k->count[i] == a)
            return;
    k->count = arena_grow(o->p->arena, k->count, k->ncount, &o->cap_count, sizeof *k->count);
    k->count[k->ncount++] = a;
}

static void need(Expr *e, void *ctx)
{
    Emit *o = ctx;

    if (e->op == OP_cell)
        need_array(o, e->buf);
    if (e->op == OP_count)
        need_count(o, e->axis);
    if (e->op == OP_above) {
        need_array(o, loop_start(o->p, e->axis));
        need_count(o, e->axis->parent);
    }
    for (int k = 0; e->op == OP_find && k < e->axis->ncoord; k++)
        if (e->axis->coord[k].kind == C_LOAD || e->axis->coord[k].kind == C_TABLE)
            need_array(o, loop_coord(o->p, e->axis, k));
}

/* a_X: dots become underscores, and who comes later gives way. */
static void name_arrays(Emit *o)
{
    o->array_name = arena_array(o->p->arena, o->k->narray, sizeof *o->array_name);
    for (int i = 0; i < o->k->narray; i++) {
        Text t = { .arena = o->p->arena };
        int k = 0;

        if (o->k->array[i]->kind == B_CONST)
            text_f(&t, "%s_", o->prefix);
        text_f(&t, "a_%s", o->k->array[i]->name);
        for (char *s = t.s; *s != 0; s++)
            *s = *s == '.' ? '_' : *s;
        while (k < i) {
            bool taken = strcmp(o->array_name[k], t.s) == 0;

            if (taken)
                text_char(&t, '_');
            k = taken ? 0 : k + 1;
        }
        o->array_name[i] = t.s;
    }
}

typedef struct Mention { /* what a function mentions */
    Emit *o;
    bool *size, *count, *array;
} Mention;

static void mention(Expr *e, void *ctx)
{
    Mention *m = ctx;
    const EmitKernel *k = m->o->k;

    if (e->op == OP_size)
        m->size[e->size->id] = true;
    for (int i = 0; i < k->ncount; i++)
        if ((e->op == OP_count && k->count[i] == e->axis) ||
            (e->op == OP_above && k->count[i] == e->axis->parent))
            m->count[i] = true;
    for (int i = 0; i < k->narray; i++)
        if ((e->op == OP_cell && k->array[i] == e->buf) ||
            (e->op == OP_above && k->array[i] == loop_start(m->o->p, e->axis)))
            m->array[i] = true;
}

static bool is_written(const Node *n, const Buf *b)
{
    bool here = n->kind == N_STORE && n->out->op == OP_cell && n->out->buf == b;

    for (int k = 0; k < n->nat; k++)
        here = here || n->at[k].out->buf == b;
    for (int i = 0; i < n->nbody; i++)
        here = here || is_written(n->body[i], b);
    return here;
}

static void declare(Emit *o, const Mention *m, const Node *tree)
{
    for (int i = 0; i < o->p->nsize; i++)
        if (m->size[i])
            text_f(o->out, "\n    const int64_t n_%s = weft_size[%d];", o->p->size[i]->name, i);
    for (int i = 0; i < o->k->ncount; i++)
        if (m->count[i])
            text_f(o->out, "\n    const int64_t n_%s = weft_size[%d];", o->k->count[i]->name,
                   o->p->nsize + i);
    for (int i = 0; i < o->k->narray; i++)
        if (m->array[i] && o->k->array[i]->kind != B_CONST)
            text_f(o->out, "\n    %s%s *restrict %s = weft_array[%d];",
                   tree != NULL && is_written(tree, o->k->array[i]) ? "" : "const ",
                   emit_ctype(o->k->array[i]->type), o->array_name[i], i);
}

void emit_arguments(Emit *o, Expr *const *e, int n, const Node *tree)
{
    Arena *arena = o->p->arena;
    Mention m = { .o = o,
                  .size = arena_array(arena, o->p->nsize, 1),
                  .count = arena_array(arena, o->k->ncount, 1),
                  .array = arena_array(arena, o->k->narray, 1) };
    Memo met = { 0 };

    for (int i = 0; i < n; i++)
        ir_visit(o->p, e[i], mention, &m, &met);
    if (tree != NULL && tree->kind == N_FOR && tree->how == FOR_PARALLEL)
        for (int i = 0; i < tree->nbody; i++)
            loop_visit(o->p, tree->body[i], mention, &m, &met); /* its bounds are the caller's */
    else if (tree != NULL)
        loop_visit(o->p, tree, mention, &m, &met);
    declare(o, &m, tree);
}

static void emit_nodes(Emit *o, Node *const *n, int count);

static void emit_block(Emit *o, Node *const *body, int n)
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
    if (n->how == FOR_PARALLEL)
        text_str(o->out, end ? "weft_end" : "weft_begin");
    else
        emit_expr(o, end ? n->hi : n->lo, L_SUM);
}

/* As many iterations at once as there are lanes, then the rest one by one. */
static void emit_vector_loop(Emit *o, const Node *n)
{
    bool whole = n->how != FOR_PARALLEL && n->lo->op == OP_int && n->hi->op == OP_int &&
                 (n->hi->i - n->lo->i) % n->lanes == 0;
    Text v = { .arena = o->p->arena };

    text_f(&v, "v_%s", n->local->name);
    emit_line(o);
    text_f(o->out, "{ int64_t %s = ", v.s);
    put_bound(o, n, false);
    text_str(o->out, ";");
    emit_line(o);
    text_f(o->out, "for (; %s + %d <= ", v.s, n->lanes);
    put_bound(o, n, true);
    text_f(o->out, "; %s += %d)", v.s, n->lanes);
    emit_vector_on(o, n->local);
    emit_block(o, n->body, n->nbody);
    emit_vector_on(o, NULL);
    if (!whole) {
        emit_line(o);
        text_f(o->out, "for (; %s < ", v.s);
        put_bound(o, n, true);
        text_f(o->out, "; %s++)", v.s);
        emit_block(o, n->body, n->nbody);
    }
    text_str(o->out, " }");
}

static void emit_for(Emit *o, const Node *n)
{
    if (n->lanes > 1) {
        emit_vector_loop(o, n);
        return;
    }
    emit_line(o);
    text_f(o->out, "for (int64_t v_%s = ", n->local->name);
    put_bound(o, n, false);
    text_f(o->out, "; v_%s < ", n->local->name);
    put_bound(o, n, true);
    text_f(o->out, "; v_%s++)", n->local->name);
    emit_block(o, n->body, n->nbody);
}

static void note_assigned(Emit *o, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_local)
        o->assigned[n->out->local->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_assigned(o, n->body[i]);
}

static void emit_let(Emit *o, const Node *n)
{
    bool vector = o->vector != NULL && n->local->lanes > 1;
    Type t = n->local->type;

    emit_line(o);
    text_str(o->out, o->assigned[n->local->id] ? "" : "const ");
    text_f(o->out, vector ? "weft_v%s " : "%s ", vector ? emit_suffix(t) : emit_ctype(t));
    emit_local(o, n->local);
    text_str(o->out, " = ");
    if (vector)
        emit_operand(o, n->value, t, L_SELECT);
    else
        emit_as(o, n->value, t, L_SELECT);
    text_char(o->out, ';');
}

/* The element after the store: the value, or what the two give together.  max and min take their
 * first operand where they can: so the first of equals stays, and the first NaN. */
static void put_combined(Emit *o, const Node *n, Type as)
{
    bool fused = n->op == A_ADD && n->value->op == OP_mul && n->value->type == as && as != T_i64;
    bool checked = n->op == A_ADD && as == T_i64;

    if (n->op == A_SET) {
        emit_operand(o, n->value, as, L_SELECT);
    } else if (n->op == A_ADD && !fused && !checked) {
        emit_operand(o, n->value, as, L_SUM);
        text_str(o->out, " + ");
        emit_expr(o, n->out, L_PRODUCT);
    } else {
        text_f(o->out, "weft_%s_%s%s(",
               fused            ? "fma"
               : n->op == A_ADD ? "add"
               : n->op == A_MAX ? "max"
                                : "min",
               o->vector != NULL ? "v" : "", checked ? "ck" : emit_suffix(as));
        for (int i = 0; fused && i < 2; i++) {
            emit_operand(o, n->value->arg[i], as, L_SELECT);
            text_str(o->out, ", ");
        }
        emit_expr(o, n->out, L_SELECT);
        if (!fused) {
            text_str(o->out, ", ");
            emit_operand(o, n->value, as, L_SELECT);
        }
        text_str(o->out, checked ? ", &fault)" : ")");
    }
}

static void put_stored(Emit *o, Expr *place)
{
    emit_line(o);
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
    text_str(o->out, narrow ? ", &fault);" : ";");
}

/* max= and min= with companions: they are of the value that stays, and the first to come stays. */
static void emit_winner(Emit *o, const Node *n)
{
    Type as = (Type)ir_type[n->out->buf->type].value;
    const At *mark = loop_mark(n);

    emit_line(o);
    text_f(o->out, "{ const %s best = ", emit_ctype(as));
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
    emit_line(o);
    text_str(o->out, "} }");
}

static void emit_store(Emit *o, const Node *n)
{
    bool local = n->out->op == OP_local, vector = o->vector != NULL && !local;
    Type t = local ? n->out->local->type : n->out->buf->type;
    bool half = t == T_f16 || t == T_bf16, whole = t == T_i32 && n->value->op != OP_int;

    if (n->nat > 0 && n->op != A_ADD) {
        emit_winner(o, n);
        return;
    }
    if (vector) {
        emit_line(o);
        text_f(o->out, "WEFT_STORE_%s(&", t == T_f32 ? "F32" : "F64");
        emit_place(o, n->out);
        text_str(o->out, ", ");
    } else {
        put_stored(o, n->out);
    }
    if (half || whole)
        text_f(o->out, "weft_to_%s(", ir_type[t].name);
    put_combined(o, n, t == T_real ? T_f64 : (Type)ir_type[t].value);
    text_str(o->out, whole ? ", &fault);" : half || vector ? ");" : ";");
    for (int k = 0; k < n->nat; k++)
        emit_companion(o, &n->at[k]);
}

static void emit_node(Emit *o, const Node *n)
{
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
    }
}

static void emit_nodes(Emit *o, Node *const *n, int count)
{
    for (int i = 0; i < count; i++)
        emit_node(o, n[i]);
}

static void emit_constant(Emit *o, int i)
{
    const Buf *b = o->k->array[i];
    Type t = b->rows ? T_f64 : b->type;

    text_f(o->out, "\nstatic const %s %s[] = {", emit_ctype(t), o->array_name[i]);
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
    bool *done; /* by Axis.id */
} Finders;

static void find_search(Expr *e, void *ctx)
{
    Finders *f = ctx;

    if (e->op != OP_find || f->done[e->axis->id])
        return;
    f->done[e->axis->id] = true;
    emit_finder(f->o, e->axis);
}

static void emit_phase(Emit *o, Node *n, int i)
{
    EmitPhase *f = &o->k->phase[i];
    Text name = { .arena = o->p->arena };
    bool once = n->kind == N_FOR && n->how == FOR_SERIAL && n->lo->op == OP_int && n->lo->i == 0 &&
                n->hi->op == OP_int && n->hi->i == 1;

    text_f(&name, "%s_phase_%d", o->prefix, i);
    *f = (EmitPhase){ .name = name.s, .parallel = n->kind == N_FOR && n->how == FOR_PARALLEL };
    text_f(o->out, "\n\n/* %s */\nint64_t %s(WEFT_ARGS)\n{\n    int64_t fault = 0;",
           n->label != NULL ? n->label : "", f->name);
    emit_arguments(o, NULL, 0, n);
    note_assigned(o, n);
    o->indent = 1;
    if (f->parallel) {
        f->extent = n->hi;
        f->balance = loop_balance(n);
    }
    emit_nodes(o, once ? n->body : &n, once ? n->nbody : 1);
    text_str(o->out, "\n    return fault;\n}");
}

EmitKernel *emit_functions(Text *out, Prog *p, Node *const *phase, int n, const char *prefix)
{
    EmitKernel *k = arena_alloc(p->arena, sizeof *k);
    Emit o = { .p = p, .out = out, .k = k, .prefix = prefix };
    Finders f = { &o, arena_array(p->arena, p->naxis, sizeof *f.done) };
    Memo met = { 0 }, again = { 0 };

    k->phase = arena_array(p->arena, n, sizeof *k->phase);
    k->nphase = n;
    for (int i = 0; i < n; i++)
        loop_visit(p, phase[i], need, &o, &met);
    name_arrays(&o);
    o.assigned = arena_array(p->arena, p->nlocal, sizeof *o.assigned);
    for (int i = 0; i < k->narray; i++)
        if (k->array[i]->kind == B_CONST)
            emit_constant(&o, i);
    for (int i = 0; i < n; i++)
        loop_visit(p, phase[i], find_search, &f, &again);
    for (int i = 0; i < n; i++)
        emit_phase(&o, phase[i], i);
    text_char(out, '\n');
    return k;
}

EmitKernel *emit_c(Text *out, Prog *p, Node *const *phase, int n, const char *heading)
{
    text_f(out, "/* weft: %s */\n%s", heading, emit_simd_h);
    return emit_functions(out, p, phase, n, "weft");
}
