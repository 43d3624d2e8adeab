/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of loops to text: one line a node, its body indented below it.  Locals keep their names
 * where these are free; a part that long lines write more than once gets a name by `let`. */
#include "ir/ir_int.h"
#include "ir/loop.h"
#include "ir/print_int.h"

#include <string.h>

typedef struct Name { /* in scope: a name, and its stem with the number that was free before it */
    Symbol *sym, *stem;
    int free;
} Name;

typedef struct Tree {
    Printer o;
    Uses u;
    bool *assigned;     /* by Local.id: by a store */
    int *buf_n, *aux_n; /* names given in this phase to elements of an array: by id */
    int **named; /* those of the two that are not 0 */
    int nnamed, cap_named;
    Name *name;
    int nname, cap_name;
    int indent;
} Tree;

static void indent(Tree *t)
{
    text_f(t->o.out, "%*s", 4 * t->indent, "");
}

static bool is_taken(const Symbol *s)
{
    return s->size != NULL || s->let != NULL || s->buf != NULL ||
           ir_is_reserved(s->name, strlen(s->name)) || strcmp(s->name, "check") == 0;
}

/* A name for e up to the end of the block: stem, or the first of stem1, stem2, ... that is free. */
static const char *name_expr(Tree *t, Expr *e, const char *stem, int number)
{
    Text name = { .arena = t->o.p->arena };
    Symbol *sym, *of = ir_symbol(t->o.p, stem, strlen(stem));
    bool first = number <= of->free;

    if (first)
        number = of->free;
    do {
        name.n = 0;
        text_str(&name, stem);
        if (number > 0)
            text_f(&name, "%d", number);
        number++;
        sym = ir_symbol(t->o.p, name.s, name.n);
    } while (is_taken(sym));
    t->name = arena_grow(t->o.p->arena, t->name, t->nname, &t->cap_name, sizeof *t->name);
    t->name[t->nname++] = (Name){ sym, of, of->free };
    if (first)
        of->free = number;
    sym->let = e;
    return t->o.let[e->id] = sym->name;
}

static void forget(Tree *t, int n)
{
    while (t->nname > n) {
        Name *name = &t->name[--t->nname];

        t->o.let[name->sym->let->id] = NULL;
        name->sym->let = NULL;
        name->stem->free = name->free;
    }
}

/* A name that ends in a number, as this file gave it, is counted on from there: so a tree that was
 * read from text is named as it was. */
static const char *name_local(Tree *t, Local *l)
{
    const char *name = l->name != NULL ? l->name : "v";
    size_t n = strlen(name), stem = n;
    Text head = { .arena = t->o.p->arena };
    int64_t number;

    while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
        stem--;
    if (stem == 0 || stem == n || name[stem] == '0' || n - stem > 6 ||
        !num_parse_int(name + stem, n - stem, &number))
        return name_expr(t, loop_use(t->o.p, l), name, 0);
    text_put(&head, name, stem);
    return name_expr(t, loop_use(t->o.p, l), head.s, (int)number);
}

/* An element of X is x, x1, ...; all else t0, t1, ... */
static const char *name_shared(Tree *t, Expr *e)
{
    Text stem = { .arena = t->o.p->arena };
    int *n;

    if (e->op != OP_cell || strlen(e->buf->name) > IR_MAX_NAME - 8) {
        if (t->u.others++ == 0)
            return name_expr(t, e, "t0", 0);
        return name_expr(t, e, "t", t->u.others - 1);
    }
    for (const char *c = e->buf->name; *c != 0; c++)
        text_char(&stem, *c == '.' ? '_' : ir_is_capital(*c) ? (char)(*c - 'A' + 'a') : *c);
    n = e->buf->id < LOOP_OWN ? &t->buf_n[e->buf->id] : &t->aux_n[e->buf->id - LOOP_OWN];
    if (*n == 0) {
        t->named = arena_grow(t->o.p->arena, t->named, t->nnamed, &t->cap_named, sizeof *t->named);
        t->named[t->nnamed++] = n;
    }
    return name_expr(t, e, stem.s, (*n)++);
}

static uint64_t count(Tree *t, Expr *e)
{
    if (e == NULL)
        return 0;
    print_count(&t->u, e);
    return e->tree;
}

/* Counts what the line of a node writes; the nodes of all its expressions. */
static uint64_t count_node(Tree *t, const Node *n)
{
    uint64_t tree = count(t, n->cond) + count(t, n->value);

    if (!loop_is_all(t->o.p, n))
        tree += count(t, n->lo) + count(t, n->hi);
    if (n->over != NULL)
        tree += count(t, n->over->row) + count(t, n->over->tile);
    for (int i = 0; n->out != NULL && i < n->out->nargs; i++)
        tree += count(t, n->out->arg[i]);
    for (int k = 0; k < n->nat; k++) {
        for (int i = 0; i < n->at[k].out->nargs; i++)
            tree += count(t, n->at[k].out->arg[i]);
        tree += count(t, n->at[k].value);
    }
    return tree;
}

/* Lets for what the lines of these nodes write more than once, if they are long. */
static void print_shared(Tree *t, Node *const *n, int count_of)
{
    uint64_t tree = 0;

    for (int i = 0; i < count_of; i++)
        tree += count_node(t, n[i]);
    for (int i = 0; i < t->u.n; i++) {
        Expr *e = t->u.order[i];

        if (tree > LET_STMT && print_is_shared(&t->u, e) && t->o.let[e->id] == NULL) {
            const char *name;
            Text line = { .arena = t->o.p->arena }, *out = t->o.out;

            t->o.out = &line; /* before its own name is known */
            print_expr(&t->o, e);
            t->o.out = out;
            name = name_shared(t, e);
            indent(t);
            text_f(out, "let %s = %s\n", name, line.s);
        }
        t->u.count[e->id] = 0;
    }
    t->u.n = 0;
}

static void print_at(Tree *t, const char *word, Expr *e)
{
    text_str(t->o.out, word);
    print_expr(&t->o, e);
}

static void print_nodes(Tree *t, Node *const *n, int count_of, const char *label);

static void print_body(Tree *t, const Node *n, const char *label)
{
    int mark = t->nname;

    text_char(t->o.out, '\n');
    t->indent++;
    print_nodes(t, n->body, n->nbody, n->label != NULL ? n->label : label);
    t->indent--;
    forget(t, mark);
}

/* E, E[i], L[_], tiles(E[i], 8), tiles(E[i], 8)[t], rounds(E) */
static void print_over(Tree *t, const Over *o)
{
    text_f(t->o.out, "%s%s",
           o->size > 0                ? "tiles("
           : o->kind == OVER_ROUNDS ? "rounds("
                                      : "",
           o->axis->name);
    if (o->row != NULL) {
        print_at(t, "[", o->row);
        text_char(t->o.out, ']');
    }
    if (o->fixed)
        text_str(t->o.out, "[_]");
    if (o->size > 0)
        text_f(t->o.out, ", %d)", o->size);
    else if (o->kind == OVER_ROUNDS)
        text_char(t->o.out, ')');
    if (o->tile != NULL) {
        print_at(t, "[", o->tile);
        text_char(t->o.out, ']');
    }
}

/* The ends are written where the loop does not run over all that it says. */
static void print_range(Tree *t, const Node *n)
{
    Text line = { .arena = t->o.p->arena }, *out = t->o.out;
    bool all = loop_is_all(t->o.p, n);

    t->o.out = &line; /* before the name of the variable is known */
    text_str(&line, " in ");
    if (!all) {
        print_expr(&t->o, n->lo);
        print_at(t, "..", n->hi);
    }
    if (n->over != NULL && !all)
        text_str(&line, n->over->kind == OVER_OFFSETS ? " within " : " of ");
    if (n->over != NULL)
        print_over(t, n->over);
    t->o.out = out;
    text_f(out, "%sfor %s%s", n->lanes > 1 ? "vector " : "", name_local(t, n->local), line.s);
    if (n->lanes > 1)
        text_f(out, " step %d", n->lanes);
    if (n->regs > 1)
        text_f(out, " by %d", n->regs);
    if (n->packed)
        text_str(out, " packed");
    if (n->local->path != NULL)
        text_f(out, " as %s", n->local->path);
    if (n->level != LEVEL_NONE)
        text_f(out, " on %s", loop_level_word[n->level]);
    if (n->width > 0)
        text_f(out, " %d", n->width);
}

static void print_for(Tree *t, const Node *n, const char *label)
{
    int mark = t->nname;

    print_range(t, n);
    print_body(t, n, label);
    forget(t, mark);
}

static void print_let(Tree *t, const Node *n)
{
    Text line = { .arena = t->o.p->arena }, *out = t->o.out;

    t->o.out = &line;
    print_at(t, " = ", n->value);
    t->o.out = out;
    text_f(out, "%s %s: %s", t->assigned[n->local->id] ? "reg" : "let", name_local(t, n->local),
           ir_type[n->local->type].name);
    if (n->local->lanes > 1)
        text_f(out, "x%d", n->local->lanes);
    text_f(out, "%s\n", line.s);
}

/* What is written is written out, whatever name its value has. */
static void print_target(Tree *t, const char *word, Expr *out)
{
    const char *name = t->o.let[out->id];

    if (out->op == OP_cell)
        t->o.let[out->id] = NULL;
    print_at(t, word, out);
    t->o.let[out->id] = name;
}

static void print_store(Tree *t, const Node *n)
{
    static const char *const sign[] = { "=", "+=", "max=", "min=" };

    print_target(t, n->stream ? "stream " : n->atomic ? "atomic " : "", n->out);
    text_f(t->o.out, " %s ", sign[n->op]);
    print_expr(&t->o, n->value);
    for (int k = 0; k < n->nat; k++) {
        print_target(t, k > 0 ? ", " : " at ", n->at[k].out);
        print_at(t, " = ", n->at[k].value);
    }
    if (n->cond != NULL)
        print_at(t, " if ", n->cond);
    text_char(t->o.out, '\n');
}

static void print_build(Tree *t, const Node *n, const char *label)
{
    text_f(t->o.out, "build %s", n->axis->name);
    if (n->lo != NULL) {
        print_at(t, "(", n->lo);
        text_char(t->o.out, ')');
    }
    print_body(t, n, label);
}

static void print_node(Tree *t, const Node *n, const char *label)
{
    indent(t);
    if (n->label != NULL && (label == NULL || strcmp(n->label, label) != 0))
        text_f(t->o.out, "%s: ", n->label);
    switch (n->kind) {
    case N_FOR: print_for(t, n, label); break;
    case N_IF:
        print_at(t, "if ", n->cond);
        print_body(t, n, label);
        break;
    case N_LET: print_let(t, n); break;
    case N_STORE: print_store(t, n); break;
    case N_CHECK:
        print_at(t, "check ", n->cond);
        text_f(t->o.out, " else %s\n", loop_fault_word(n->fault));
        break;
    case N_AHEAD:
        print_target(t, n->far ? "ahead far " : "ahead ", n->out);
        text_char(t->o.out, '\n');
        break;
    case N_BARRIER:
        text_str(t->o.out, n->level == LEVEL_BLOCK ? "barrier block\n" : "barrier\n");
        break;
    case N_BUILD: print_build(t, n, label); break;
    case N_INSERT:
        text_f(t->o.out, "%s |= ", n->axis->name);
        print_expr(&t->o, n->value);
        text_char(t->o.out, '\n');
        break;
    }
}

/* Stores in a row share names, as they do products when they become code. */
static void print_nodes(Tree *t, Node *const *n, int count_of, const char *label)
{
    for (int i = 0, to; i < count_of; i = to) {
        to = i + 1;
        while (n[i]->kind == N_STORE && to < count_of && n[to]->kind == N_STORE)
            to++;
        print_shared(t, n + i, to - i);
        for (int k = i; k < to; k++)
            print_node(t, n[k], label);
    }
}

static void print_phase(Tree *t, Node *n)
{
    const Buf *weight = loop_balance(n);

    while (t->nnamed > 0)
        *t->named[--t->nnamed] = 0;
    t->u.others = 0;
    text_f(t->o.out, "phase %s%s", n->label, n->scheduled ? " scheduled" : "");
    if (n->kind == N_FOR && n->how == FOR_PARALLEL) {
        text_char(t->o.out, ' ');
        print_range(t, n);
        if (weight != NULL)
            text_f(t->o.out, " balance %s", weight->name);
        if (n->parts != NULL)
            text_f(t->o.out, " parts %s", n->parts->name);
        print_body(t, n, n->label);
    } else {
        text_char(t->o.out, '\n');
        t->indent++;
        print_nodes(t, &n, 1, n->label);
        t->indent--;
    }
    forget(t, 0);
}

/* The indices have names where the value is made of them. */
static void print_init(Tree *t, const Buf *b)
{
    int mark = t->nname;

    if (b->init == NULL)
        return;
    text_f(t->o.out, "init %s", b->name);
    for (int d = 0; b->init_at != NULL && d < loop_rank(b, STAGE_POSITIONS); d++)
        text_f(t->o.out, "%s%s", d == 0 ? "[" : ", ", name_local(t, b->init_at[d]));
    text_str(t->o.out, b->init_at != NULL ? "]" : "");
    print_at(t, " = ", b->init);
    text_char(t->o.out, '\n');
    forget(t, mark);
}

/* Before the first is printed: all locals, and the ends of what loops run over, are expressions and
 * have their ids. */
static void touch_locals(Tree *t, const Node *n)
{
    loop_is_all(t->o.p, n);
    if (n->local != NULL)
        loop_use(t->o.p, n->local);
    if (n->kind == N_STORE && n->out->op == OP_local)
        t->assigned[n->out->local->id] = true;
    for (int i = 0; i < n->nbody; i++)
        touch_locals(t, n->body[i]);
}

static void touch_init(Tree *t, const Buf *b)
{
    for (int d = 0; b->init_at != NULL && d < loop_rank(b, STAGE_POSITIONS); d++)
        loop_use(t->o.p, b->init_at[d]);
}

void loop_print(Text *out, Prog *p)
{
    Tree t = { .o = { .out = out, .p = p } };
    int n;
    Buf **array;

    t.assigned = arena_array(p->arena, p->nlocal, sizeof *t.assigned);
    for (int i = 0; i < p->nphase; i++)
        touch_locals(&t, p->phase[i]);
    array = loop_arrays(p, &n);
    for (int i = 0; i < p->nbuf; i++)
        touch_init(&t, p->buf[i]);
    for (int i = 0; i < n; i++)
        touch_init(&t, array[i]);
    t.o.let = arena_array(p->arena, p->nexpr, sizeof *t.o.let);
    t.u = (Uses){ .count = arena_array(p->arena, p->nexpr, sizeof *t.u.count),
                  .order = arena_array(p->arena, p->nexpr, sizeof *t.u.order) };
    t.buf_n = arena_array(p->arena, p->nbuf, sizeof *t.buf_n);
    t.aux_n = arena_array(p->arena, p->naux, sizeof *t.aux_n);
    print_head(&t.o);
    for (int i = 0; i < n; i++)
        if (loop_is_own(array[i]))
            print_decl(&t.o, array[i]);
    for (int i = 0; i < p->nbuf; i++)
        if (!loop_is_own(p->buf[i]))
            print_init(&t, p->buf[i]);
    for (int i = 0; i < n; i++)
        if (loop_is_own(array[i]))
            print_init(&t, array[i]);
    for (int i = 0; i < p->nphase; i++)
        print_phase(&t, p->phase[i]);
}
