/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Declarations: names, sizes, variables, buffers and statements of a program.  What can be judged
 * at the declaration is judged here, where the place is known; check.c judges the whole. */
#include "ir/ir.h"
#include "ir/ir_int.h"
#include "ir/loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The line of the source that holds p->at, for the message. */
static const char *source_line(const Prog *p, size_t *n)
{
    const char *s = p->src, *end = s + p->nsrc, *stop;

    for (int line = 1; line < p->at.line; line++)
        s = (const char *)memchr(s, '\n', (size_t)(end - s)) + 1;
    stop = memchr(s, '\n', (size_t)(end - s));
    *n = (size_t)((stop != NULL ? stop : end) - s);
    return s;
}

static void note_place(const Prog *p)
{
    size_t n;
    const char *line;

    if (p->src != NULL && p->at.line > 0) {
        line = source_line(p, &n);
        err_place(p->arena->err, p->file, p->at.line, p->at.col, line, n);
    }
}

_Noreturn void ir_throw(Prog *p, Status code, const char *fmt, ...)
{
    va_list ap;

    note_place(p);
    va_start(ap, fmt);
    err_setv(p->arena->err, code, fmt, ap);
    va_end(ap);
    err_jump(p->arena->err);
}

static Symbol **find_slot(const Prog *p, const char *s, size_t n)
{
    for (uint64_t at = hash_bytes(0, s, n);; at++) {
        Symbol **slot = &p->sym[at & (p->cap_sym - 1)];

        if (*slot == NULL || (strncmp((*slot)->name, s, n) == 0 && (*slot)->name[n] == 0))
            return slot;
    }
}

static void grow_symbols(Prog *p)
{
    Prog old = *p;

    p->cap_sym = old.cap_sym == 0 ? 64 : old.cap_sym * 2;
    p->sym = arena_array(p->arena, p->cap_sym, sizeof *p->sym);
    for (uint32_t i = 0; i < old.cap_sym; i++)
        if (old.sym[i] != NULL)
            *find_slot(p, old.sym[i]->name, strlen(old.sym[i]->name)) = old.sym[i];
}

Symbol *ir_symbol(Prog *p, const char *s, size_t n)
{
    Symbol **slot;
    char *name;

    if (p->nsym * 2 >= p->cap_sym)
        grow_symbols(p);
    slot = find_slot(p, s, n);
    if (*slot == NULL) {
        *slot = arena_alloc(p->arena, sizeof **slot);
        name = arena_alloc(p->arena, n + 1);
        memcpy(name, s, n);
        (*slot)->name = name;
        p->nsym++;
    }
    return *slot;
}

Symbol *ir_find_symbol(const Prog *p, const char *s, size_t n)
{
    return p->cap_sym == 0 ? NULL : *find_slot(p, s, n);
}

Axis *ir_find_axis(const Prog *p, const char *name)
{
    Symbol *s = ir_find_symbol(p, name, strlen(name));

    return s == NULL ? NULL : s->axis;
}

Buf *ir_find_buf(const Prog *p, const char *name)
{
    Symbol *s = ir_find_symbol(p, name, strlen(name));

    return s == NULL ? NULL : s->buf;
}

Size *ir_find_size(const Prog *p, const char *name)
{
    Symbol *s = ir_find_symbol(p, name, strlen(name));

    return s == NULL ? NULL : s->size;
}

/* Words that no name may be: those of this stage, of the later ones, and the functions. */
/* clang-format off */
static const char *const keywords[] = {
    "program", "axis", "temp", "inout", "const", "for", "in", "let", "if", "and", "or", "not",
    "at", "fill", "rows", "seg", "one", "built", "load", "table", "ident", "sorted", "unique",
    "padded", "dense", "compressed", "ragged", "ell", "inf", "nan", "size", "stage", "phase",
    "reg", "parallel", "unroll", "vector", "prefetch", "sort", "balance", "find", "schedule", "_",
    NULL,
};
/* clang-format on */

const char *const *ir_keywords(void)
{
    return keywords;
}

static bool same(const char *word, const char *s, size_t n)
{
    return strlen(word) == n && memcmp(word, s, n) == 0;
}

bool ir_is_reserved(const char *s, size_t n)
{
    for (int i = 0; keywords[i] != NULL; i++)
        if (same(keywords[i], s, n))
            return true;
    for (int i = 0; i < OP_COUNT; i++)
        if ((ir_op[i].props & (CALL | VARCALL)) && same(ir_op[i].text, s, n))
            return true;
    for (int i = 0; i < T_COUNT; i++)
        if (ir_type[i].element && same(ir_type[i].name, s, n))
            return true;
    return false;
}

Symbol *ir_new_name(Prog *p, const char *s, char first)
{
    size_t n = strlen(s);
    bool good = ir_is_letter(s[0]);

    for (size_t i = 0; i < n; i++)
        good = good && (ir_is_letter(s[i]) || ir_is_digit(s[i]));
    if (!good || n > IR_MAX_NAME)
        ir_throw(p, ST_CHECK, "a name is a letter or _ and up to %d letters, digits or _",
                 IR_MAX_NAME - 1);
    if (first == 'A' && !ir_is_capital(s[0]))
        ir_throw(p, ST_CHECK, "the name of an axis begins with a capital, and %s does not", s);
    if (first == 'a' && ir_is_capital(s[0]))
        ir_throw(p, ST_CHECK, "%s begins with a capital, which is for axes; use a small letter", s);
    if (ir_is_reserved(s, n))
        ir_throw(p, ST_CHECK, "%s is a word of the language; choose another name", s);
    return ir_symbol(p, s, n);
}

void ir_refuse_taken(Prog *p, const Symbol *s)
{
    if (s->size != NULL || s->axis != NULL || s->buf != NULL)
        ir_throw(p, ST_CHECK, "%s is already the name of %s; choose another", s->name,
                 s->size != NULL   ? "a size"
                 : s->axis != NULL ? "an axis"
                                   : "a buffer");
}

/* A program is for any machine until a target is known. */
Prog *ir_prog(Arena *arena, const char *name)
{
    static const VectorUnit usual = { VECTOR_LANES(4, 2), 16, VECTOR_CORE };
    Prog *p = arena_alloc(arena, sizeof *p);

    p->arena = arena;
    p->policy = policy_for(&usual);
    p->name = ir_new_name(p, name, 0)->name;
    return p;
}

Size *ir_size(Prog *p, const char *name)
{
    Symbol *sym = ir_new_name(p, name, 'a');
    Size *s;

    ir_refuse_taken(p, sym);
    if (sym->of_var != NULL)
        ir_throw(p, ST_CHECK, "%s is the variable of axis %s and cannot be a size; rename one",
                 name, sym->of_var->name);
    s = arena_alloc(p->arena, sizeof *s);
    *s = (Size){ .name = sym->name, .id = p->nsize };
    p->size = arena_grow(p->arena, p->size, p->nsize, &p->cap_size, sizeof *p->size);
    p->size[p->nsize++] = s;
    return sym->size = s;
}

/* The axis may be open still, without an id: its name or extent stands for it. */
static uint64_t hash_var(const char *name, const Axis *axis, Expr *parent)
{
    uint64_t h = hash_bytes(parent == NULL ? 0 : parent->id + 1, name, strlen(name));

    if (axis->name == NULL)
        return hash_int(h, axis->size->id);
    return hash_bytes(h, axis->name, strlen(axis->name));
}

static Var **find_var(const Prog *p, const char *name, const Axis *axis, Expr *parent)
{
    for (uint64_t at = hash_var(name, axis, parent);; at++) {
        Var **slot = &p->var_table[at & (p->cap_var_table - 1)], *v = *slot;

        if (v == NULL || (v->name == name && v->axis == axis && v->parent == parent))
            return slot;
    }
}

static void grow_vars(Prog *p)
{
    p->cap_var_table = p->cap_var_table == 0 ? 16 : p->cap_var_table * 2;
    p->var_table = arena_array(p->arena, p->cap_var_table, sizeof *p->var_table);
    for (int i = 0; i < p->nvar; i++)
        *find_var(p, p->var[i]->name, p->var[i]->axis, p->var[i]->parent) = p->var[i];
}

Var *ir_var(Prog *p, const char *name, Axis *axis, Expr *parent)
{
    Symbol *sym = ir_new_name(p, name, 'a');
    Var **slot, *v;

    if ((uint32_t)p->nvar * 2 >= p->cap_var_table)
        grow_vars(p);
    slot = find_var(p, sym->name, axis, parent);
    if (*slot != NULL)
        return *slot;
    if (sym->size != NULL)
        ir_throw(p, ST_CHECK,
                 "%s is already the name of a size and cannot be a variable (the variable of an "
                 "axis is its name in small letters); rename one",
                 name);
    v = arena_alloc(p->arena, sizeof *v);
    *v = (Var){ .name = sym->name, .axis = axis, .parent = parent, .id = p->nvar };
    p->var = arena_grow(p->arena, p->var, p->nvar, &p->cap_var, sizeof *p->var);
    p->var[p->nvar++] = v;
    return *slot = sym->var = v;
}

static bool is_taken(const Symbol *s, bool label)
{
    if (label)
        return s->label || ir_is_reserved(s->name, strlen(s->name));
    return s->size != NULL || s->axis != NULL || s->buf != NULL || s->var != NULL ||
           s->of_var != NULL || ir_is_reserved(s->name, strlen(s->name));
}

const char *ir_fresh(Prog *p, const char *stem, bool label)
{
    Symbol *base = ir_symbol(p, stem, strlen(stem)), *s = base;

    while (is_taken(s, label)) {
        Text name = { .arena = p->arena };

        text_f(&name, "%s%d", stem, ++base->last);
        s = ir_symbol(p, name.s, name.n);
    }
    return s->name;
}

/* Implied ancestors stand just before their first child. */
int ir_full(Prog *p, Buf *b)
{
    int n = 0;

    for (int s = 0; s < b->nslot; s++) {
        int missing = 0;

        for (Axis *up = b->slot[s]->parent; up != NULL; up = up->parent) {
            bool there = false;

            for (int k = 0; k < n; k++)
                there = there || b->full[k] == up;
            if (there)
                break;
            missing++;
        }
        if (n + missing + 1 > IR_MAX_FULL)
            ir_throw(p, ST_LIMIT, "%s: more than %d axes, ancestors included", b->name,
                     IR_MAX_FULL);
        b->place_in_full[s] = n + missing;
        for (Axis *up = b->slot[s]; missing >= 0; up = up->parent)
            b->full[n + missing--] = up;
        n = b->place_in_full[s] + 1;
    }
    return n;
}

/* Each slot once, unless it is a root axis that nothing hangs on; parents before children. */
static void check_slots(Prog *p, const Buf *b)
{
    for (int s = 0; s < b->nslot; s++)
        for (int t = 0; t < s; t++) {
            Axis *x = b->slot[s], *before = b->slot[t];

            if (ir_is_ancestor(x, before))
                ir_throw(p, ST_CHECK, "%s: axis %s stands after its child %s; put it before",
                         b->name, x->name, before->name);
            if (x == before && x->parent != NULL)
                ir_throw(p, ST_CHECK, "%s: axis %s stands twice; only an axis without parent may",
                         b->name, x->name);
            for (int r = 0; r < b->nslot; r++)
                if (x == before && ir_is_ancestor(x, b->slot[r]))
                    ir_throw(p, ST_CHECK,
                             "%s: axis %s stands twice, so it is not clear which one %s is under",
                             b->name, x->name, b->slot[r]->name);
        }
}

static void check_const(Prog *p, const Buf *b)
{
    Layout layout;

    for (int k = 0; k < b->nfull; k++)
        if (ir_const_total(b->full[k]) < 0)
            ir_throw(p, ST_CHECK, "%s: a const buffer needs axes of constant size, and %s is not",
                     b->name, b->full[k]->name != NULL ? b->full[k]->name : "a slot");
    if (b->val == NULL && b->ival == NULL)
        ir_throw(p, ST_CHECK, "%s: a const buffer needs its values, = { ... }", b->name);
    note_place(p); /* for what ir_layout may throw: it does not know the text */
    ir_layout(p->arena, p, NULL, b, &layout);
    p->arena->err->line = 0;
    if (layout.n != b->n)
        ir_throw(p, ST_CHECK, "%s has %lld elements and %lld values are given", b->name,
                 (long long)layout.n, (long long)b->n);
    for (int64_t i = 0; b->type == T_i32 && i < b->n; i++)
        if (b->ival[i] != (int32_t)b->ival[i])
            ir_throw(p, ST_CHECK, "%s: %lld does not fit an i32", b->name, (long long)b->ival[i]);
}

static void check_fill(Prog *p, const Buf *b)
{
    double most = b->type == T_i32 ? 0x1p31 : 0x1p53;

    if (b->has_fill && !ir_type[b->type].floats &&
        !(b->fill == floor(b->fill) && fabs(b->fill) < most))
        ir_throw(p, ST_CHECK, "%s: the fill of an %s buffer is an integer below 2^%d", b->name,
                 ir_type[b->type].name, b->type == T_i32 ? 31 : 53);
}

/* Below coordinates a kernel has arrays of its own beside a buffer X, X.acc and the like. */
static Symbol *own_name(Prog *p, const Buf *b)
{
    const char *dot = strchr(b->name, '.');
    const Symbol *of = ir_find_symbol(p, b->name, (size_t)(dot - b->name));

    if (of == NULL || of->buf == NULL ||
        (b->kind != B_TEMP && b->kind != B_WORK && b->kind != B_SHARED))
        ir_throw(p, ST_CHECK,
                 "%s: only a temp that belongs to a buffer declared before it has a name with a "
                 "dot", b->name);
    return ir_symbol(p, b->name, strlen(b->name));
}

Buf *ir_buf(Prog *p, const Buf *decl)
{
    bool own = p->stage != STAGE_COORDINATES && strchr(decl->name, '.') != NULL;
    Symbol *sym = own ? own_name(p, decl) : ir_new_name(p, decl->name, 0);
    Buf *b = arena_copy(p->arena, decl, sizeof *decl);

    ir_refuse_taken(p, sym);
    if (b->nslot > IR_MAX_RANK)
        ir_throw(p, ST_LIMIT, "%s: more than %d slots", b->name, IR_MAX_RANK);
    b->name = sym->name;
    b->slot = arena_copy(p->arena, decl->slot, (size_t)decl->nslot * sizeof *b->slot);
    b->full = arena_array(p->arena, IR_MAX_FULL, sizeof *b->full);
    b->place_in_full = arena_array(p->arena, b->nslot, sizeof *b->place_in_full);
    b->place = p->at;
    b->written = false;
    b->id = p->nbuf;
    check_slots(p, b);
    b->nfull = ir_full(p, b);
    if (b->kind == B_CONST)
        check_const(p, b);
    else if (b->val != NULL || b->ival != NULL)
        ir_throw(p, ST_CHECK, "%s: only a const buffer has values in the text; write const",
                 b->name);
    check_fill(p, b);
    p->buf = arena_grow(p->arena, p->buf, p->nbuf, &p->cap_buf, sizeof *p->buf);
    p->buf[p->nbuf++] = b;
    p->decl = arena_grow(p->arena, p->decl, p->ndecl, &p->cap_decl, sizeof *p->decl);
    p->decl[p->ndecl++] = (Decl){ .buf = b };
    return sym->buf = b;
}

const char *ir_lower_case(Prog *p, const char *s)
{
    char *low = arena_copy(p->arena, s, strlen(s) + 1);

    for (char *c = low; *c != 0; c++)
        if (ir_is_capital(*c))
            *c = (char)(*c - 'A' + 'a');
    return low;
}

static const char *take_label(Prog *p, const Assign *a)
{
    const char *out = a->op == A_INSERT ? a->out->axis->name : a->out->buf->name;
    const char *name = a->label != NULL ? a->label : ir_fresh(p, ir_lower_case(p, out), true);
    Symbol *s = ir_symbol(p, name, strlen(name));

    if (a->place.line > 0 && p->at.line > 0)
        p->at = a->place;
    if (ir_is_reserved(name, strcspn(name, ".("))) /* f32.1: or i64(X): would not read back */
        ir_throw(p, ST_CHECK, "%s is a word of the language; choose another label", name);
    if (s->label)
        ir_throw(p, ST_CHECK, "the label %s is used twice; labels are unique", name);
    s->label = true;
    return s->name;
}

Stmt *ir_stmt(Prog *p, Var *const *bind, int nbind, const Assign *assign, int nassign)
{
    Stmt *s = arena_alloc(p->arena, sizeof *s);
    Var *binds[IR_MAX_BINDS];

    if (bind == NULL) {
        nbind = ir_default_binds(p, assign, nassign, binds);
        bind = binds;
    }
    if (nbind > IR_MAX_BINDS)
        ir_throw(p, ST_LIMIT, "more than %d variables in one statement", IR_MAX_BINDS);
    s->place = p->at;
    s->nbind = nbind;
    s->bind = arena_copy(p->arena, bind, (size_t)nbind * sizeof *s->bind);
    s->nassign = nassign;
    s->assign = arena_copy(p->arena, assign, (size_t)nassign * sizeof *assign);
    for (int i = 0; i < nassign; i++) {
        Assign *a = &s->assign[i];

        a->label = take_label(p, a);
        a->at = arena_copy(p->arena, a->at, (size_t)a->nat * sizeof *a->at);
        if (a->op != A_INSERT)
            a->out->buf->written = true;
        for (int k = 0; k < a->nat; k++)
            a->at[k].out->buf->written = true;
    }
    p->stmt = arena_grow(p->arena, p->stmt, p->nstmt, &p->cap_stmt, sizeof *p->stmt);
    p->stmt[p->nstmt++] = s;
    return s;
}
