/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases from tokens: the inverse of loop_print.c.  A block's names (loop variables, lets, locals)
 * are known to its end; expressions are read by parse_expr.c, which asks here for elements. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"

#include <string.h>

enum { MOST_LANES = 1024, MOST_REGISTERS = 64 };

typedef struct Body {
    Node **node;
    int n, cap;
} Body;

static void append(Parser *s, Body *b, const Node *n)
{
    b->node = arena_grow(s->p->arena, b->node, b->n, &b->cap, sizeof *b->node);
    b->node[b->n++] = loop_node(s->p, n);
}

static Expr *integer(Parser *s)
{
    Place at = s->lex.at;
    Expr *e = parse_expr(s);

    s->p->at = at;
    if (e->type != T_i64)
        ir_throw(s->p, ST_CHECK, "an integer is needed here, not %s",
                 e->type == T_none ? "a tuple" : ir_type[e->type].name);
    return e;
}

static Buf *array(Parser *s, const char *name)
{
    Buf *b = strchr(name, '.') != NULL ? loop_named(s->p, name) : NULL;

    return b != NULL ? b : ir_find_buf(s->p, name);
}

/* name "[" [expr {"," expr}] "]" */
Expr *parse_cell(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an array");
    Buf *b = array(s, name);
    Expr *index[IR_MAX_FULL];
    int n = 0, rank;

    s->p->at = at;
    if (b == NULL)
        ir_throw(s->p, ST_CHECK, "%s is not an array; declare it, as in `f32 %s[...]`", name, name);
    parse_need(s, (Tok)'[', "`[`");
    while (s->lex.tok != ']') {
        if (n == IR_MAX_FULL)
            ir_throw(s->p, ST_LIMIT, "more than %d indices", IR_MAX_FULL);
        index[n++] = integer(s);
        if (s->lex.tok != ']')
            parse_need(s, (Tok)',', "`,` or `]`");
    }
    parse_take(s, (Tok)']');
    rank = loop_rank(b, s->p->stage);
    s->p->at = at;
    if (n != rank)
        ir_throw(s->p, ST_CHECK, "%s takes %d ind%s at stage %s, and %d %s given", name, rank,
                 rank == 1 ? "ex" : "ices", ir_stage[s->p->stage], n, n == 1 ? "is" : "are");
    return loop_cell(s->p, b, index, n, 1);
}

static int search_word(const char *word)
{
    int how = 0;

    while (how < FIND_COUNT && strcmp(word, loop_find_word[how]) != 0)
        how++;
    return how;
}

bool parse_is_search(const char *word)
{
    return search_word(word) < FIND_COUNT || strcmp(word, ir_op[OP_above].text) == 0;
}

/* Axis "," from "," to {"," value} {"," context}, or Axis "," position */
Expr *parse_search(Parser *s, const char *word)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an axis");
    Axis *a = ir_find_axis(s->p, name);
    Expr *arg[IR_MAX_RANK + 2], *leaf[IR_MAX_RANK];
    int how = search_word(word), n = 0, most = 1;
    bool find = how < FIND_COUNT;

    s->p->at = at;
    if (a == NULL || (!find && a->parent == NULL))
        ir_throw(s->p, ST_CHECK, "%s(E, ...) wants an axis%s, and %s is none", word,
                 find ? "" : " under another", name);
    if (find)
        most = 2 + a->ncoord + loop_context(a, leaf, IR_MAX_RANK - a->ncoord);
    if (most > IR_MAX_RANK + 2)
        ir_throw(s->p, ST_LIMIT, "axis %s has too many coordinates to be searched", name);
    while (parse_take(s, (Tok)',')) {
        if (n == most)
            parse_unexpected(s, "`)`");
        arg[n++] = integer(s);
    }
    s->p->at = at;
    if (n != most)
        ir_throw(s->p, ST_CHECK, "%s on axis %s takes %d values after it, but %d %s given", word,
                 name, most, n, n == 1 ? "is" : "are");
    if (!find)
        return loop_above(s->p, a, arg[0]);
    return loop_found_by(s->p, loop_find(s->p, a, arg[0], arg[1], arg + 2, n - 2), (FindHow)how);
}

static void block(Parser *s, Node *of);

static int lanes(Parser *s)
{
    int64_t n;

    if (!parse_take_word(s, "step"))
        parse_unexpected(s, "`step` and the number of lanes");
    n = parse_int(s);
    if (n < 2 || n > MOST_LANES)
        ir_throw(s->p, ST_LIMIT, "a vector loop takes 2 to %d steps at once, not %lld", MOST_LANES,
                 (long long)n);
    return (int)n;
}

static int registers(Parser *s)
{
    int64_t n = parse_take_word(s, "by") ? parse_int(s) : 1;

    if (n < 1 || n > MOST_REGISTERS)
        ir_throw(s->p, ST_LIMIT, "a vector loop takes 1 to %d registers at once, not %lld",
                 MOST_REGISTERS, (long long)n);
    return (int)n;
}

/* Whether what a loop runs over stands here: E, E[i], tiles(E, 8), rounds(E). */
static bool is_over(Parser *s)
{
    Lex ahead = s->lex;
    const Symbol *sym;

    if (s->lex.tok != TOK_NAME)
        return false;
    sym = ir_symbol(s->p, s->lex.text, s->lex.n);
    lex_next(s->p, &ahead);
    if (parse_is(s, "tiles") || parse_is(s, "rounds"))
        return ahead.tok == '(';
    return sym->axis != NULL && sym->let == NULL && sym->buf == NULL &&
           (ahead.tok == '[' || ahead.tok == TOK_NAME || ahead.tok == TOK_NEWLINE);
}

/* Axis ["[" ( row | "_" ) "]"] */
static const Over *rows_of(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an axis");
    Axis *a = ir_find_axis(s->p, name);
    bool row = parse_take(s, (Tok)'[');
    bool fixed = row && parse_take_word(s, "_");
    Expr *x = row ? fixed ? ir_int(s->p, 0) : integer(s) : NULL;

    if (row)
        parse_need(s, (Tok)']', "`]`");
    s->p->at = at;
    if (a == NULL || a->extent == X_ONE)
        ir_throw(s->p, ST_CHECK, "%s is not an axis that a loop can run over", name);
    if (row && a->parent == NULL && (a->extent == X_EXPR || x->op != OP_int || x->i != 0))
        ir_throw(s->p, ST_CHECK, "axis %s has one row; write %s", name, name);
    if (row && fixed != (a->extent == X_EXPR))
        ir_throw(s->p, ST_CHECK,
                 fixed ? "rows of %s differ in length; write which, as in %s[i]"
                       : "all rows of %s have one length; write %s[_]",
                 name, name);
    return loop_over(s->p, a, x);
}

/* rows | "tiles" "(" rows "," int ")" ["[" tile "]"] | "rounds" "(" rows ")" */
static const Over *over(Parser *s, bool offsets)
{
    bool tiles = parse_is(s, "tiles"), rounds = parse_is(s, "rounds");
    const Over *o;
    int64_t size;
    Expr *tile;

    if (!is_over(s))
        parse_unexpected(s, "an axis, tiles(E, 8) or rounds(E)");
    if (tiles || rounds) {
        parse_take(s, TOK_NAME);
        parse_take(s, (Tok)'(');
    }
    o = rows_of(s);
    if (rounds && (o = loop_over_rounds(s->p, o)) == NULL)
        ir_throw(s->p, ST_CHECK, "rounds are of all positions of an axis, not of a row");
    if (tiles) {
        parse_need(s, (Tok)',', "`,` and the positions of a tile");
        size = parse_int(s);
        if ((o = loop_over_tiles(s->p, o, size)) == NULL)
            ir_throw(s->p, ST_LIMIT, "a tile has 1 to %d positions, not %lld", INT32_MAX,
                     (long long)size);
    }
    if (tiles || rounds)
        parse_need(s, (Tok)')', "`)`");
    if (tiles && parse_take(s, (Tok)'[')) {
        tile = integer(s);
        parse_need(s, (Tok)']', "`]`");
        o = loop_over_tile(s->p, o, tile, offsets ? OVER_OFFSETS : OVER_POSITIONS);
    }
    if (offsets != (o->kind == OVER_OFFSETS))
        parse_unexpected(s, "after `within` a tile, as in tiles(E, 8)[t]");
    return o;
}

/* over | expr ".." expr [("of" | "within") over] */
static void ends(Parser *s, Node *n)
{
    if (is_over(s)) {
        n->over = over(s, false);
        if (!loop_ends(s->p, n->over, &n->lo, &n->hi))
            parse_unexpected(s, "rounds after a range: `0..n of rounds(E)`");
        return;
    }
    n->lo = integer(s);
    parse_need(s, TOK_RANGE, "`..`");
    n->hi = integer(s);
    if (parse_take_word(s, "of"))
        n->over = over(s, false);
    else if (parse_take_word(s, "within"))
        n->over = over(s, true);
}

/* ["on" level [int]]: who runs an iteration. */
static void level(Parser *s, Node *n)
{
    int64_t width;

    if (!parse_take_word(s, "on"))
        return;
    for (int i = LEVEL_NONE + 1; i < LEVEL_COUNT && n->level == LEVEL_NONE; i++)
        if (parse_take_word(s, loop_level_word[i]))
            n->level = (LoopLevel)i;
    if (n->level == LEVEL_NONE)
        parse_unexpected(s, "thread, warp or block");
    if (s->lex.tok != TOK_INT)
        return;
    width = parse_int(s);
    if (width < 1 || width > LOOP_MOST_WIDTH)
        ir_throw(s->p, ST_LIMIT, "an iteration is run by 1 to %d lanes or warps, not %lld",
                 LOOP_MOST_WIDTH, (long long)width);
    n->width = (int)width;
}

/* ["vector"] "for" var "in" ends ["step" int ["by" int ["packed"]]] ["as" path] ["on" level [int]],
 * the lanes and registers of a vector loop, what a schedule calls it, who runs its iterations; and
 * the name of the variable for what follows.  False: there is no loop here. */
static bool range(Parser *s, Node *n)
{
    bool vector = parse_take_word(s, "vector");
    Symbol *sym;

    if (!parse_take_word(s, "for")) {
        if (vector)
            parse_unexpected(s, "`for`");
        return false;
    }
    sym = parse_local_name(s);
    n->kind = N_FOR;
    if (!parse_take_word(s, "in"))
        parse_unexpected(s, "`in` and a range");
    ends(s, n);
    n->lanes = vector ? lanes(s) : 1;
    n->regs = registers(s);
    n->packed = vector && parse_take_word(s, "packed");
    n->local = loop_local(s->p, sym->name, T_i64, 1);
    if (parse_take_word(s, "as"))
        n->local->path = parse_name(s, "what a schedule calls the loop");
    level(s, n);
    parse_let(s, sym, loop_use(s->p, n->local));
    return true;
}

static Fault fault(Parser *s)
{
    for (int f = FAULT_NONE + 1; f < FAULT_COUNT; f++)
        if (parse_take_word(s, loop_fault_word((Fault)f)))
            return (Fault)f;
    parse_unexpected(s, "index, miss or overflow");
}

/* f32, and f32x8 for one in each of 8 lanes */
static Type value_type(Parser *s, int *wide)
{
    const char *text = s->lex.text;
    size_t n = s->lex.tok == TOK_NAME ? s->lex.n : 0, m;
    int64_t many = 1;

    for (int t = T_bool; t < T_COUNT; t++) {
        m = strlen(ir_type[t].name);
        if (ir_type[t].value != t || n < m || memcmp(text, ir_type[t].name, m) != 0 ||
            (n > m && (text[m] != 'x' || !num_parse_int(text + m + 1, n - m - 1, &many))))
            continue;
        if (many < 1 || many > MOST_LANES)
            ir_throw(s->p, ST_LIMIT, "1 to %d lanes, not %lld", MOST_LANES, (long long)many);
        *wide = (int)many;
        parse_take(s, TOK_NAME);
        return (Type)t;
    }
    parse_unexpected(s, "a type: bool, i64, real, f32 or f64");
}

/* name ":" type "=" value: a local; without a type only a name for the value, and no node. */
static bool let(Parser *s, Node *n)
{
    Symbol *sym = parse_local_name(s);
    Type type = T_none;
    int wide = 1;

    if (parse_take(s, (Tok)':'))
        type = value_type(s, &wide);
    parse_need(s, (Tok)'=', "`=`");
    n->kind = N_LET;
    n->value = parse_any(s);
    s->p->at = n->place;
    if (n->value->type == T_none)
        ir_throw(s->p, ST_CHECK, "%s: a let names a value, not a tuple", sym->name);
    if (type == T_none) {
        parse_let(s, sym, n->value);
        return false;
    }
    n->local = loop_local(s->p, sym->name, type, wide);
    parse_let(s, sym, loop_use(s->p, n->local));
    return true;
}

static Expr *output(Parser *s)
{
    Expr *out = parse_cell(s);

    out->buf->written = true;
    return out;
}

/* element or local, operator, value ["at" element "=" value {"," element "=" value}] */
static void store(Parser *s, Node *n)
{
    At at[IR_MAX_RANK + 1];
    Symbol *sym = ir_symbol(s->p, s->lex.text, s->lex.n);
    bool local = sym->let != NULL && sym->let->op == OP_local;

    n->kind = N_STORE;
    if (local && sym->let->local->name == sym->name) { /* and not another name for it */
        n->out = sym->let;
        parse_take(s, TOK_NAME);
    } else {
        n->out = output(s);
    }
    n->op = parse_operator(s);
    n->value = n->out->type == T_bool ? parse_cond(s) : parse_value(s);
    n->at = at;
    if (!parse_take_word(s, "at"))
        return;
    do {
        if (n->nat == IR_MAX_RANK + 1)
            ir_throw(s->p, ST_LIMIT, "more than %d companions", IR_MAX_RANK + 1);
        at[n->nat].out = output(s);
        parse_need(s, (Tok)'=', "`=`");
        at[n->nat++].value = parse_value(s);
    } while (parse_take(s, (Tok)','));
    n->at = arena_copy(s->p->arena, at, (size_t)n->nat * sizeof *at);
}

/* The word that only the beginning of a line makes one: an array may have this name too. */
static bool is_check(Parser *s)
{
    Lex ahead = s->lex;

    if (!parse_is(s, "check"))
        return false;
    lex_next(s->p, &ahead);
    return ahead.tok != '[';
}

static void checked(Parser *s, Node *n)
{
    n->kind = N_CHECK;
    n->cond = parse_cond(s);
    if (!parse_take_word(s, "else"))
        parse_unexpected(s, "`else` and what is wrong then");
    n->fault = fault(s);
}

/* What comes after the name that begins a line; TOK_END: no name does. */
static Tok after_name(Parser *s, Lex *ahead)
{
    *ahead = s->lex;
    if (s->lex.tok == TOK_NAME)
        lex_next(s->p, ahead);
    return s->lex.tok == TOK_NAME ? ahead->tok : TOK_END;
}

static Axis *built_axis(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "a built axis");
    Axis *a = ir_find_axis(s->p, name);

    s->p->at = at;
    if (a == NULL || a->extent != X_BUILT)
        ir_throw(s->p, ST_CHECK, "%s is not a built axis", name);
    return a;
}

/* "build" Axis ["(" position ")"]; false: there is none here. */
static bool build(Parser *s, Node *n)
{
    Lex ahead;

    if (!parse_is(s, "build") || after_name(s, &ahead) != TOK_NAME)
        return false;
    parse_take(s, TOK_NAME);
    n->kind = N_BUILD;
    n->axis = built_axis(s);
    if (!parse_take(s, (Tok)'('))
        return true;
    n->lo = integer(s);
    parse_need(s, (Tok)')', "`)`");
    return true;
}

/* Axis "|=" key; false: there is none here. */
static bool insert(Parser *s, Node *n)
{
    Lex ahead;

    if (after_name(s, &ahead) != TOK_OR)
        return false;
    n->kind = N_INSERT;
    n->axis = built_axis(s);
    parse_take(s, TOK_OR);
    n->value = integer(s);
    return true;
}

/* "ahead" ["far"] element; false: there is none here. */
static bool ahead_of(Parser *s, Node *n)
{
    Lex ahead;

    if (!parse_is(s, "ahead") || after_name(s, &ahead) != TOK_NAME)
        return false;
    parse_take(s, TOK_NAME);
    n->kind = N_AHEAD;
    n->far = parse_is(s, "far") && after_name(s, &ahead) == TOK_NAME;
    if (n->far)
        parse_take(s, TOK_NAME);
    n->out = parse_cell(s);
    return true;
}

/* "barrier" ["block"]; false: there is none here. */
static bool barrier(Parser *s, Node *n)
{
    Lex ahead;
    Tok after = after_name(s, &ahead);

    if (!parse_is(s, "barrier") || (after != TOK_NEWLINE && after != TOK_NAME))
        return false;
    parse_take(s, TOK_NAME);
    n->kind = N_BARRIER;
    if (parse_take_word(s, loop_level_word[LEVEL_BLOCK]))
        n->level = LEVEL_BLOCK;
    return true;
}

/* "stream" store ["if" cond] | "atomic" store; false: there is none here. */
static bool marked_store(Parser *s, Node *n)
{
    bool atomic = parse_is(s, "atomic");
    Lex ahead;

    if ((!atomic && !parse_is(s, "stream")) || after_name(s, &ahead) != TOK_NAME)
        return false;
    parse_take(s, TOK_NAME);
    store(s, n);
    n->atomic = atomic;
    n->stream = !atomic;
    if (n->stream && parse_take_word(s, "if"))
        n->cond = parse_cond(s);
    return true;
}

/* A line without a block; false when it makes no node. */
static bool single(Parser *s, Node *n)
{
    bool node = true;

    if (is_check(s)) {
        parse_take(s, TOK_NAME);
        checked(s, n);
    } else if (parse_take_word(s, "let") || parse_take_word(s, "reg")) {
        node = let(s, n);
    } else if (insert(s, n) || ahead_of(s, n) || marked_store(s, n) || barrier(s, n)) {
        node = true;
    } else if (s->lex.tok == TOK_NAME) {
        store(s, n);
    } else {
        parse_unexpected(s, "a loop, a branch, a let or a store");
    }
    parse_end_of_line(s);
    return node;
}

/* One line and the block below it; false when it makes no node. */
static bool line(Parser *s, Node *n)
{
    int mark = s->nlet;

    if (range(s, n)) {
        n->how = n->lanes > 1 ? FOR_VECTOR : FOR_SERIAL;
    } else if (parse_take_word(s, "if")) {
        n->kind = N_IF;
        n->cond = parse_cond(s);
    } else if (!build(s, n)) {
        return single(s, n);
    }
    block(s, n);
    parse_forget(s, mark);
    return true;
}

/* NEWLINE [INDENT {[label ":"] line} DEDENT] */
static void block(Parser *s, Node *of)
{
    Body body = { 0 };
    int mark = s->nlet;

    parse_end_of_line(s);
    if (!parse_take(s, TOK_INDENT))
        return;
    while (!parse_take(s, TOK_DEDENT)) {
        Node n = { .place = s->lex.at };
        const char *label;

        if (parse_take(s, TOK_NEWLINE))
            continue;
        label = lex_label(s->p, &s->lex);
        n.label = label != NULL ? label : of->label;
        s->p->at = s->lex.at;
        if (line(s, &n))
            append(s, &body, &n);
    }
    of->body = body.node;
    of->nbody = body.n;
    parse_forget(s, mark);
}

static void balance(Parser *s, const Node *n, const char *name, Place at)
{
    const Buf *b = loop_balance(n);

    s->p->at = at;
    if (b == NULL || strcmp(b->name, name) != 0)
        ir_throw(s->p, ST_CHECK, "%s does not weigh this phase; %s%s", name,
                 b == NULL ? "no start array does: leave `balance` out" : "write ",
                 b == NULL ? "" : b->name);
}

static Buf *parts(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "the array of parts");
    Buf *b = array(s, name);

    s->p->at = at;
    if (b == NULL)
        ir_throw(s->p, ST_CHECK, "%s is not an array; after `parts` comes a coordinate, as in %s",
                 name, "`parts R.part`");
    return b;
}

/* label ["scheduled"] "for" range ["balance" array] ["parts" array] block | label ["scheduled"],
 * and one node below it that runs once */
static Node *phase(Parser *s)
{
    Node n = { .place = s->lex.at, .how = FOR_PARALLEL };
    const char *weight = NULL;
    Place at;

    n.label = lex_phase(s->p, &s->lex);
    s->p->at = s->lex.at;
    if (n.label == NULL)
        parse_unexpected(s, "the label of the phase");
    n.scheduled = parse_take_word(s, "scheduled");
    if (!range(s, &n)) {
        block(s, &n);
        s->p->at = n.place;
        if (n.nbody != 1)
            ir_throw(s->p, ST_CHECK,
                     "a phase without `for` has one line with its body below it, not "
                     "%d; begin a phase for each",
                     n.nbody);
        n.body[0]->scheduled = n.scheduled;
        return n.body[0];
    }
    at = s->lex.at;
    if (parse_take_word(s, "balance")) {
        at = s->lex.at;
        weight = parse_name(s, "a start array");
    }
    if (parse_take_word(s, "parts"))
        n.parts = parts(s);
    block(s, &n);
    if (weight != NULL)
        balance(s, &n, weight, at);
    return loop_node(s->p, &n);
}

/* "[" name {"," name} "]": the indices of an element, one for each dimension. */
static void indices(Parser *s, Buf *b)
{
    int rank = loop_rank(b, STAGE_POSITIONS), n = 0;

    b->init_at = arena_array(s->p->arena, rank, sizeof *b->init_at);
    do {
        Symbol *sym = parse_local_name(s);

        if (n == rank)
            ir_throw(s->p, ST_CHECK, "%s has %d dimension%s, and this names more", b->name, rank,
                     rank == 1 ? "" : "s");
        b->init_at[n] = loop_local(s->p, sym->name, T_i64, 1);
        parse_let(s, sym, loop_use(s->p, b->init_at[n++]));
    } while (parse_take(s, (Tok)','));
    parse_need(s, (Tok)']', "`]`");
    if (n != rank)
        ir_throw(s->p, ST_CHECK, "%s has %d dimensions, and this names %d", b->name, rank, n);
}

/* array ["[" names "]"] "=" value */
void parse_init(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an array");
    Buf *b = array(s, name);
    int mark = s->nlet;

    s->p->at = at;
    if (b == NULL)
        ir_throw(s->p, ST_CHECK, "%s is not an array; declare it, as in `f32 %s[...]`", name, name);
    if (b->init != NULL)
        ir_throw(s->p, ST_CHECK, "%s has an initial value already", name);
    s->tree = true;
    if (parse_take(s, (Tok)'['))
        indices(s, b);
    parse_need(s, (Tok)'=', "`=`");
    b->init = parse_value(s);
    b->written = true;
    parse_end_of_line(s);
    parse_forget(s, mark);
    s->tree = false;
}

Node *parse_phase(Parser *s)
{
    Node *n;

    s->tree = true;
    n = phase(s);
    s->tree = false;
    return n;
}
