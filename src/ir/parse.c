/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Program text to IR: the header and the statements.  docs/ir.md has the grammar. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"

#include <string.h>

static void add_bind(Parser *s, Var *v)
{
    for (int i = 0; i < s->nbind; i++)
        if (s->bind[i]->name == v->name)
            ir_throw(s->p, ST_CHECK, "the variable %s stands twice in the `for`", v->name);
    if (s->nbind == IR_MAX_BINDS)
        ir_throw(s->p, ST_LIMIT, "more than %d variables in one `for`", IR_MAX_BINDS);
    s->bind[s->nbind++] = v;
}

/* The variables that v hangs on come before it; those of axes may be left out of the text. */
static void add_with_ancestors(Parser *s, Var *v)
{
    Var *need[IR_MAX_BINDS];
    int n = ir_vars(s->p, ir_var_expr(s->p, v), need, 0);

    for (int i = 0; i < n; i++) {
        bool there = false;

        for (int k = 0; k < s->nbind; k++)
            there = there || s->bind[k] == need[i];
        if (need[i] == v || !there)
            add_bind(s, need[i]);
    }
}

/* The index of the parent that a variable of axis a is under when the text does not say. */
static Expr *default_parent(Parser *s, const Axis *a)
{
    return a->parent == NULL ? NULL : ir_var_expr(s->p, a->parent->var);
}

static Var *var_in_axis(Parser *s, const char *name, Axis *a)
{
    Expr *parent = default_parent(s, a);
    Place at;

    if (parse_take(s, (Tok)'(')) {
        at = s->lex.at;
        if (a->parent == NULL)
            ir_throw(s->p, ST_CHECK, "axis %s has no parent, so %s in %s needs none", a->name, name,
                     a->name);
        parent = parse_index(s);
        s->p->at = at;
        parent = ir_index(s->p, a->parent, parent);
        parse_need(s, (Tok)')', "`)`");
    }
    return ir_var(s->p, name, a, parent);
}

/* var ["in" (Name ["(" index ")"] | expr)] */
static void binder(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "a variable");
    Symbol *sym = ir_symbol(s->p, name, strlen(name));
    bool in = parse_take_word(s, "in");
    Axis *a = sym->of_var;
    Var *v;

    if (in && s->lex.tok == TOK_NAME && ir_is_capital(s->lex.text[0]))
        a = ir_find_axis(s->p, parse_name(s, "an axis"));
    else if (in)
        a = parse_dense(s);
    s->p->at = at;
    if (a == NULL)
        ir_throw(s->p, ST_CHECK,
                 in ? "%s runs over an axis that is not declared; declare it"
                    : "%s is not the variable of an axis; name the axis that it runs over, "
                      "as in `%s in I`",
                 name, name);
    if (sym->of_var != NULL && sym->of_var != a)
        ir_throw(s->p, ST_CHECK, "%s is the variable of axis %s; take another name here", name,
                 sym->of_var->name);
    v = in ? var_in_axis(s, name, a) : a->var;
    s->p->at = at;
    add_with_ancestors(s, v);
}

static void binders(Parser *s)
{
    s->bound = true;
    if (parse_take(s, (Tok)':')) /* over no variable: once */
        return;
    do
        binder(s);
    while (parse_take(s, (Tok)','));
    parse_need(s, (Tok)':', "`:`");
}

static At companion(Parser *s)
{
    At at = { .out = parse_access(s) };

    parse_need(s, (Tok)'=', "`=`");
    at.value = parse_value(s);
    return at;
}

static void companions(Parser *s, Assign *a)
{
    At at[IR_MAX_RANK];

    do {
        if (a->nat == IR_MAX_RANK)
            ir_throw(s->p, ST_LIMIT, "more than %d companions", IR_MAX_RANK);
        at[a->nat++] = companion(s);
    } while (parse_take(s, (Tok)','));
    a->at = arena_copy(s->p->arena, at, (size_t)a->nat * sizeof *at);
}

/* Name ["(" index ")"] "|=" (expr | tuple): the output and the coordinates that are inserted. */
static void insertion(Parser *s, Assign *a)
{
    const char *name = parse_name(s, "a statement");
    Axis *axis = ir_find_axis(s->p, name);
    Expr *parent = ir_none(s->p);

    s->p->at = a->place;
    if (axis == NULL && ir_is_reserved(name, strlen(name)))
        ir_throw(s->p, ST_PARSE, "expected a statement, found `%s`", name);
    if (axis == NULL)
        ir_throw(s->p, ST_CHECK,
                 ir_find_buf(s->p, name) != NULL
                     ? "a buffer is written with its indices, as in %s[i] += ..."
                     : "%s is neither a buffer nor an axis; declare it",
                 name);
    if (parse_take(s, (Tok)'(')) {
        parent = parse_index(s);
        parse_need(s, (Tok)')', "`)`");
    }
    s->p->at = a->place;
    a->op = A_INSERT;
    a->out = ir_row(s->p, axis, parent);
    parse_need(s, TOK_OR, "`|=`");
    a->value = parse_expr(s);
}

AssignOp parse_operator(Parser *s)
{
    if (parse_take(s, (Tok)'='))
        return A_SET;
    if (parse_take(s, TOK_ADD))
        return A_ADD;
    if (parse_take(s, TOK_MAX))
        return A_MAX;
    if (!parse_take(s, TOK_MIN))
        parse_unexpected(s, "`=`, `+=`, `max=` or `min=`");
    return A_MIN;
}

static Assign assignment(Parser *s, const char *label)
{
    Assign a = { .label = label, .place = s->lex.at };
    Lex ahead = s->lex;

    if (s->lex.tok != TOK_NAME)
        parse_unexpected(s, "a statement");
    lex_next(s->p, &ahead);
    if (ahead.tok != '[') {
        insertion(s, &a);
    } else {
        a.out = parse_access(s);
        a.op = parse_operator(s);
        a.value = parse_value(s);
        if (parse_take_word(s, "at"))
            companions(s, &a);
    }
    if (parse_take_word(s, "if"))
        a.guard = parse_cond(s);
    return a;
}

void parse_end_of_line(Parser *s)
{
    parse_need(s, TOK_NEWLINE, "the end of the line");
}

static bool is_variable(const Parser *s, const Symbol *sym)
{
    for (int i = 0; i < s->nbind; i++)
        if (s->bind[i]->name == sym->name)
            return true;
    return sym->of_var != NULL;
}

/* Below coordinates there are no variables of axes: their names are free for locals. */
Symbol *parse_local_name(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "a name");
    Symbol *sym;

    s->p->at = at;
    sym = ir_new_name(s->p, name, 'a');
    if (sym->size != NULL || sym->let != NULL || (!s->tree && is_variable(s, sym)))
        ir_throw(s->p, ST_CHECK, "%s is already the name of a %s; choose another", name,
                 sym->size != NULL          ? "size"
                 : sym->let == NULL         ? "variable"
                 : sym->let->op == OP_local ? "local"
                                            : "let");
    return sym;
}

void parse_let(Parser *s, Symbol *sym, Expr *value)
{
    s->let = arena_grow(s->p->arena, s->let, s->nlet, &s->cap_let, sizeof *s->let);
    s->let[s->nlet++] = sym;
    sym->let = value;
}

static void let(Parser *s)
{
    Place at = s->lex.at;
    Symbol *sym = parse_local_name(s);
    Expr *value;

    parse_need(s, (Tok)'=', "`=`");
    value = parse_any(s);
    s->p->at = at;
    if (value->type == T_none)
        ir_throw(s->p, ST_CHECK, "%s: a let names a value, not a tuple", sym->name);
    parse_let(s, sym, value);
}

void parse_forget(Parser *s, int n)
{
    while (s->nlet > n)
        s->let[--s->nlet]->let = NULL;
}

/* Variables of a `for` and lets are known in their own statement only. */
static void forget_names(Parser *s)
{
    parse_forget(s, 0);
    s->nbind = 0;
    s->bound = false;
}

/* "for" binders ":" on a line of its own, then an indented block of lets and assigns. */
static void group(Parser *s, Place at)
{
    Assign *list = NULL;
    int n = 0, cap = 0;

    parse_take(s, TOK_INDENT);
    while (!parse_take(s, TOK_DEDENT)) {
        if (parse_take_word(s, "let")) {
            let(s);
        } else {
            const char *label = lex_label(s->p, &s->lex);

            s->p->at = s->lex.at;
            list = arena_grow(s->p->arena, list, n, &cap, sizeof *list);
            list[n++] = assignment(s, label);
        }
        parse_end_of_line(s);
        while (parse_take(s, TOK_NEWLINE))
            ;
    }
    s->p->at = at;
    if (n == 0)
        ir_throw(s->p, ST_CHECK, "a group without a statement");
    ir_stmt(s->p, s->bind, s->nbind, list, n);
}

static void statement(Parser *s)
{
    Place at = s->lex.at;
    const char *label = lex_label(s->p, &s->lex);
    Assign a;

    s->p->at = s->lex.at;
    if (parse_take_word(s, "for")) {
        binders(s);
        if (label == NULL && parse_take(s, TOK_NEWLINE)) {
            if (s->lex.tok != TOK_INDENT)
                parse_unexpected(s, "the indented statements of the group");
            group(s, at);
            return;
        }
    }
    a = assignment(s, label);
    s->p->at = at;
    ir_stmt(s->p, s->bound ? s->bind : NULL, s->nbind, &a, 1);
    parse_end_of_line(s);
}

static bool declaration(Parser *s)
{
    if (parse_take_word(s, "axis"))
        parse_axes(s);
    else if (!parse_buffers(s))
        return false;
    parse_end_of_line(s);
    return true;
}

static void phase(Parser *s)
{
    Prog *p = s->p;

    if (parse_take_word(s, "init")) {
        parse_init(s);
        return;
    }
    if (!parse_take_word(s, "phase"))
        parse_unexpected(s, "a declaration, an initial value or a phase");
    s->phase = arena_grow(p->arena, s->phase, p->nphase, &s->cap_phase, sizeof *s->phase);
    s->phase[p->nphase++] = parse_phase(s);
    p->phase = s->phase;
}

/* One step of the schedule: its words with one space between. */
static void add_step(Text *out, const char *s, const char *end)
{
    bool first = true;

    while (s < end) {
        const char *from = s;

        while (s < end && *s != ' ' && *s != '\t' && *s != '\r')
            s++;
        if (s > from) {
            text_f(out, "%s%.*s", !first ? " " : out->n > 0 ? "\n" : "", (int)(s - from), from);
            first = false;
        }
        s += s < end;
    }
}

/* A zero byte would end the text of the schedule, and hide all that comes after it. */
static void refuse_zero(Parser *s, const char *at, const char *end)
{
    const char *zero = memchr(at, 0, (size_t)(end - at)), *line = s->lex.line_start;
    Place place = { s->lex.line, 0 };

    if (zero == NULL)
        return;
    for (const char *c = line; c < zero; c++)
        if (*c == '\n') {
            place.line++;
            line = c + 1;
        }
    place.col = (int)(zero - line) + 1;
    s->p->at = place;
    ir_throw(s->p, ST_PARSE, "byte 0 means nothing here");
}

/* "schedule", and the steps to the end of the text, `;` or a line's end between them.  What they
 * are is for src/sched to say. */
static bool schedule(Parser *s)
{
    const char *at = s->lex.text + s->lex.n, *end = s->lex.end;
    Text text = { .arena = s->p->arena };

    if (!parse_is(s, "schedule"))
        return false;
    text_put(&text, "", 0);
    while (at < end) {
        const char *from = at;

        while (at < end && *at != '\n' && *at != ';' && *at != '#')
            at++;
        refuse_zero(s, from, at);
        add_step(&text, from, at);
        while (at < end && *at == '#' && *at != '\n')
            at = memchr(at, '\n', (size_t)(end - at)) != NULL
                     ? memchr(at, '\n', (size_t)(end - at))
                     : end;
        at += at < end;
    }
    s->p->sched = text.s;
    return true;
}

static void lines(Parser *s)
{
    while (s->lex.tok != TOK_END && !schedule(s)) {
        if (parse_take(s, TOK_NEWLINE) || declaration(s))
            continue;
        if (s->p->stage == STAGE_COORDINATES)
            statement(s);
        else
            phase(s);
        forget_names(s);
    }
}

static void begin(Parser *s, const char *file, const char *text, size_t n)
{
    s->lex = (Lex){ .s = text,
                    .end = text + n,
                    .line_start = text,
                    .line = 1,
                    .fresh = true,
                    .tok = TOK_NEWLINE,
                    .indent = s->indent,
                    .tree = s->p->stage != STAGE_COORDINATES };
    s->phase = (Node **)s->p->phase;
    s->cap_phase = s->p->nphase;
    s->p->file = file;
    s->p->src = text;
    s->p->nsrc = n;
    lex_next(s->p, &s->lex);
    s->p->at = s->lex.at;
}

static Stage stage(Parser *s)
{
    for (int i = 0; i < STAGE_COUNT; i++)
        if (parse_take_word(s, ir_stage[i]))
            return (Stage)i;
    s->p->threads = parse_take_word(s, ir_stage_threads);
    if (s->p->threads)
        return STAGE_LOOPS;
    parse_unexpected(s, "coordinates, positions, loops or threads");
}

/* "program" name "(" [size {"," size}] ")" ["stage" stage] */
static void header(Parser *s)
{
    Place at;
    const char *name;

    while (parse_take(s, TOK_NEWLINE))
        ;
    if (!parse_take_word(s, "program"))
        parse_unexpected(s, "`program name(sizes)`");
    at = s->lex.at;
    name = parse_name(s, "the program's name");
    s->p->at = at;
    s->p->name = ir_new_name(s->p, name, 0)->name;
    parse_need(s, (Tok)'(', "`(` and the sizes");
    while (s->lex.tok != ')') {
        at = s->lex.at;
        name = parse_name(s, "a size");
        s->p->at = at;
        ir_size(s->p, name);
        if (s->lex.tok != ')')
            parse_need(s, (Tok)',', "`,` or `)`");
    }
    parse_take(s, (Tok)')');
    if (parse_take_word(s, "stage"))
        s->p->stage = stage(s);
    s->lex.tree = s->p->stage != STAGE_COORDINATES;
    parse_end_of_line(s);
}

Prog *ir_parse(Arena *arena, const char *file, const char *text, size_t n)
{
    Parser *s = arena_alloc(arena, sizeof *s);

    s->p = ir_prog(arena, "unnamed");
    begin(s, arena_copy(arena, file, strlen(file) + 1), arena_copy(arena, text, n), n);
    header(s);
    lines(s);
    return s->p;
}

void ir_parse_more(Prog *p, const char *file, const char *text, size_t n)
{
    Parser *s = arena_alloc(p->arena, sizeof *s);

    s->p = p;
    begin(s, file, text, n);
    lines(s);
    p->file = p->src = NULL; /* places of several texts would be taken for one another */
    p->nsrc = 0;
}
