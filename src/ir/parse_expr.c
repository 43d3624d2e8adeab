/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions, indices and accesses: from tokens to interned nodes, by precedence climbing. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"

#include <stdio.h>
#include <string.h>

_Noreturn void parse_unexpected(Parser *s, const char *wanted)
{
    const Lex *x = &s->lex;
    char got[48];

    switch (x->tok) {
    case TOK_END: snprintf(got, sizeof got, "the end of the text"); break;
    case TOK_NEWLINE: snprintf(got, sizeof got, "the end of the line"); break;
    case TOK_INDENT: snprintf(got, sizeof got, "an indented line"); break;
    default:
        snprintf(got, sizeof got, "`%.*s`%s", (int)(x->n > 32 ? 32 : x->n), x->text,
                 x->n > 32 ? "..." : "");
    }
    s->p->at = x->at;
    ir_throw(s->p, ST_PARSE, "expected %s, found %s", wanted, got);
}

static void next(Parser *s)
{
    lex_next(s->p, &s->lex);
    s->p->at = s->lex.at;
}

static bool is_text(const Lex *x, const char *text)
{
    return x->n == strlen(text) && memcmp(x->text, text, x->n) == 0;
}

bool parse_is(const Parser *s, const char *word)
{
    return s->lex.tok == TOK_NAME && is_text(&s->lex, word);
}

bool parse_take(Parser *s, Tok tok)
{
    if (s->lex.tok != tok)
        return false;
    next(s);
    return true;
}

bool parse_take_word(Parser *s, const char *word)
{
    if (!parse_is(s, word))
        return false;
    next(s);
    return true;
}

void parse_need(Parser *s, Tok tok, const char *wanted)
{
    if (!parse_take(s, tok))
        parse_unexpected(s, wanted);
}

const char *parse_name(Parser *s, const char *wanted)
{
    const char *name;
    size_t most = s->lex.tree ? 4 * IR_MAX_NAME : IR_MAX_NAME; /* with dots; its parts, later */

    if (s->lex.tok != TOK_NAME)
        parse_unexpected(s, wanted);
    if (s->lex.n > most)
        ir_throw(s->p, ST_LIMIT, "a name of more than %zu characters", most);
    name = ir_symbol(s->p, s->lex.text, s->lex.n)->name;
    next(s);
    return name;
}

int64_t parse_int(Parser *s)
{
    char text[32];
    bool minus = parse_take(s, (Tok)'-');
    const char *digits = s->lex.text;
    size_t n = s->lex.n;
    int64_t v;

    if (s->lex.tok != TOK_INT)
        parse_unexpected(s, "an integer");
    for (; n > 1 && *digits == '0'; n--)
        digits++;
    snprintf(text, sizeof text, "%s%.*s", minus ? "-" : "", (int)(n < 25 ? n : 25), digits);
    if (!num_parse_int(text, strlen(text), &v))
        ir_throw(s->p, ST_LIMIT, "an integer outside 64 bits");
    next(s);
    return v;
}

static bool is_number(const Parser *s)
{
    return s->lex.tok == TOK_INT || s->lex.tok == TOK_REAL || parse_is(s, "inf") ||
           parse_is(s, "nan");
}

double parse_number(Parser *s)
{
    bool minus = parse_take(s, (Tok)'-');
    double v;

    if (!is_number(s))
        parse_unexpected(s, "a number");
    if (!num_parse(s->lex.text, s->lex.n, &v))
        ir_throw(s->p, ST_LIMIT, "a number of more than 1024 characters");
    next(s);
    return minus && v == v ? -v : v; /* there is one nan */
}

/* What a bare name stands for where a variable may stand; NULL when it is none. */
static Var *find_var(Parser *s, const Symbol *sym)
{
    for (int i = 0; i < s->nbind; i++)
        if (s->bind[i]->name == sym->name)
            return s->bind[i];
    if (s->in_axis != NULL) {
        bool near = sym->of_var == s->in_axis ||
                    (sym->of_var != NULL && ir_is_ancestor(sym->of_var, s->in_axis));

        return near ? sym->of_var->var : NULL;
    }
    if (sym->of_var == NULL)
        return NULL;
    if (s->bound)
        ir_throw(s->p, ST_CHECK, "the variable %s is not in the `for`; add it there", sym->name);
    return sym->of_var->var;
}

static Expr *bare_name(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "a name");
    Symbol *sym = ir_symbol(s->p, name, strlen(name));
    int k = s->in_axis == NULL ? -1 : ir_find_coord(s->in_axis, name);
    Var *v;

    s->p->at = at;
    if (sym->let != NULL)
        return sym->let;
    if (k >= 0)
        return ir_coord(s->p, s->in_axis->var, k);
    if (sym->size != NULL)
        return ir_size_expr(s->p, sym->size);
    if (s->tree)
        ir_throw(s->p, ST_CHECK,
                 "%s is not known here: no size, local or let has this name; below coordinates a "
                 "variable is a loop's",
                 name);
    v = find_var(s, sym);
    if (v != NULL && v->axis == s->in_axis)
        return ir_of_var(s->p, OP_loc, v);
    if (v != NULL)
        return ir_var_value(s->p, v);
    if (sym->buf != NULL)
        ir_throw(s->p, ST_CHECK, "%s is a buffer; write %s[...] for a value of it", name, name);
    if (sym->axis != NULL)
        ir_throw(s->p, ST_CHECK,
                 "%s is an axis; its variable is %s, its number of positions size(%s)", name,
                 sym->axis->var->name, name);
    if (ir_is_reserved(name, strlen(name)))
        ir_throw(s->p, ST_PARSE, "expected a value, found `%s`", name);
    ir_throw(s->p, ST_CHECK,
             "%s is not known here: no size, variable or let has this name; declare it", name);
}

static Expr *count_call(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "an axis");
    Axis *a = ir_find_axis(s->p, name);

    s->p->at = at;
    if (a == NULL)
        ir_throw(s->p, ST_CHECK,
                 "size(E) wants an axis, and %s is none; a size is written by its name alone",
                 name);
    return ir_count(s->p, a);
}

/* The variable in name(var), or NULL. */
static Var *call_var(Parser *s)
{
    Var *v;

    if (s->lex.tok != TOK_NAME)
        return NULL;
    v = find_var(s, ir_symbol(s->p, s->lex.text, s->lex.n));
    if (v != NULL)
        next(s);
    return v;
}

static Expr *coordinate_call(Parser *s, const char *name, Place at)
{
    Var *v = call_var(s);
    int k = v == NULL ? -1 : ir_find_coord(v->axis, name);

    s->p->at = at;
    if (v == NULL)
        ir_throw(s->p, ST_CHECK,
                 "%s is not a function, and a coordinate is written with its variable, as in j(e)",
                 name);
    if (k < 0)
        ir_throw(s->p, ST_CHECK, "%s is neither a function nor a coordinate of axis %s", name,
                 v->axis->name != NULL ? v->axis->name : "(dense)");
    return ir_coord(s->p, v, k);
}

static Expr *position_call(Parser *s, Op op, Place at)
{
    Var *v = call_var(s);

    s->p->at = at;
    if (v == NULL)
        ir_throw(s->p, ST_CHECK, "%s wants a variable, as in %s(e)", ir_op[op].text,
                 ir_op[op].text);
    return ir_of_var(s->p, op, v);
}

static Expr *binary(Parser *s, int least);

static Expr *function_call(Parser *s, Op op, Place at)
{
    Expr *arg[4];
    int n = 0;

    do {
        if (n == 4)
            parse_unexpected(s, "`)`");
        arg[n++] = op == OP_stored ? parse_access(s) : binary(s, P_OR);
    } while (parse_take(s, (Tok)','));
    s->p->at = at;
    return ir_node(s->p, op, arg, n);
}

static Op find_function(const Parser *s, const char *name)
{
    if (s->tree && strcmp(name, ir_op[OP_fma].text) == 0)
        return OP_fma;
    if (s->tree && strcmp(name, ir_op[OP_fits].text) == 0)
        return OP_fits;
    for (int i = 0; i < OP_COUNT; i++)
        if ((ir_op[i].props & (CALL | VARCALL)) && strcmp(ir_op[i].text, name) == 0)
            return (Op)i;
    return OP_COUNT;
}

static _Noreturn void not_below(Parser *s, const char *name, Place at)
{
    s->p->at = at;
    ir_throw(s->p, ST_CHECK,
             "%s means nothing below coordinates: there are functions of numbers, size(E), find(E, "
             "from, to, value), above(E, position), fits(a) and fma(a, b, c)",
             name);
}

static Expr *call(Parser *s)
{
    Place at = s->lex.at;
    const char *name = parse_name(s, "a function");
    Op op = find_function(s, name);
    Expr *e;

    next(s); /* the ( that made this a call */
    if (strcmp(name, "size") == 0)
        e = count_call(s);
    else if (s->tree && parse_is_search(name))
        e = parse_search(s, name);
    else if (s->tree && (op == OP_COUNT || op == OP_stored || (ir_op[op].props & VARCALL)))
        not_below(s, name, at);
    else if (op == OP_COUNT)
        e = coordinate_call(s, name, at);
    else if (ir_op[op].props & VARCALL)
        e = position_call(s, op, at);
    else
        e = function_call(s, op, at);
    parse_need(s, (Tok)')', "`)`");
    return e;
}

static Lex peek(const Parser *s)
{
    Lex ahead = s->lex;

    lex_next(s->p, &ahead);
    return ahead;
}

static Expr *literal(Parser *s)
{
    return s->lex.tok == TOK_INT ? ir_int(s->p, parse_int(s)) : ir_real(s->p, parse_number(s));
}

/* `(a + b)` is a value or a condition, `(a, b)` a tuple; what it may not be, its user refuses. */
static Expr *parenthesis(Parser *s)
{
    Expr *arg[IR_MAX_RANK];
    Place at = s->lex.at;
    int n = 0;

    do {
        if (n == IR_MAX_RANK)
            ir_throw(s->p, ST_LIMIT, "more than %d coordinates", IR_MAX_RANK);
        next(s); /* the ( or the comma */
        arg[n++] = binary(s, P_OR);
    } while (s->lex.tok == ',');
    parse_need(s, (Tok)')', "`)`");
    s->p->at = at;
    return n == 1 ? arg[0] : ir_node(s->p, OP_tuple, arg, n);
}

/* Every way to nest passes here or through a prefix operator. */
static void deeper(Parser *s)
{
    if (++s->depth > PARSE_DEPTH)
        ir_throw(s->p, ST_LIMIT, "expressions nested more than %d deep", PARSE_DEPTH);
}

static Expr *primary(Parser *s)
{
    Tok ahead;
    Expr *e;

    deeper(s);
    if (s->lex.tok == '(') {
        e = parenthesis(s);
    } else if (is_number(s)) {
        e = literal(s);
    } else {
        if (s->lex.tok != TOK_NAME)
            parse_unexpected(s, "a value");
        ahead = peek(s).tok;
        e = ahead == '[' ? parse_access(s) : ahead == '(' ? call(s) : bare_name(s);
    }
    s->depth--;
    return e;
}

static Expr *unary(Parser *s)
{
    Place at = s->lex.at;
    bool minus = s->lex.tok == '-';
    Expr *e;

    if (minus && peek(s).tok == TOK_INT)
        return ir_int(s->p, parse_int(s));
    if (!minus && !parse_is(s, "not"))
        return primary(s);
    deeper(s);
    next(s);
    e = minus ? unary(s) : binary(s, P_COMPARE);
    s->depth--;
    s->p->at = at;
    return ir_op1(s->p, minus ? OP_neg : OP_not, e);
}

static void refuse_inexact(Parser *s, Expr *a, Expr *b)
{
    int64_t rest;

    if (!s->tree && a->op == OP_int && b->op == OP_int && (int_mod(a->i, b->i, &rest) || rest != 0))
        ir_throw(s->p, ST_CHECK, "%lld / %lld is an integer division; write %lld.0 for a fraction",
                 (long long)a->i, (long long)b->i, (long long)a->i);
}

/* The operator that the token is the text of, or OP_COUNT. */
static Op binary_operator(const Lex *x)
{
    for (int op = OP_add; op <= OP_or; op++)
        if (is_text(x, ir_op[op].text))
            return (Op)op;
    return OP_COUNT;
}

/* Operators that bind at least as tightly as `least`, each to the left. */
static Expr *binary(Parser *s, int least)
{
    Expr *e = unary(s), *b;
    Op op;

    while ((op = binary_operator(&s->lex)) != OP_COUNT && ir_precedence(op) >= least) {
        Place at = s->lex.at;

        next(s);
        b = binary(s, ir_precedence(op) + 1);
        s->p->at = at;
        if (op == OP_div)
            refuse_inexact(s, e, b);
        e = ir_op2(s->p, op, e, b);
    }
    return e;
}

Expr *parse_expr(Parser *s)
{
    return binary(s, P_SUM);
}

Expr *parse_any(Parser *s)
{
    return binary(s, P_OR);
}

Expr *parse_value(Parser *s)
{
    Place at = s->lex.at;
    Expr *e = parse_expr(s);

    s->p->at = at;
    if (e->type < T_i64)
        ir_throw(s->p, ST_CHECK,
                 e->type == T_bool ? "a number is needed here, and this is a "
                                     "condition; write select(..., 1, 0)"
                                   : "a number is needed here, and this is a "
                                     "tuple");
    return e;
}

Expr *parse_cond(Parser *s)
{
    Place at = s->lex.at;
    Expr *e = binary(s, P_OR);

    s->p->at = at;
    if (e->type != T_bool)
        ir_throw(s->p, ST_CHECK, "a condition is needed here, such as i < j");
    return e;
}

/* A variable that stands alone in an index is its entry; ir_load decides what that means. */
static Expr *lone_var(Parser *s)
{
    Tok after = s->lex.tok == TOK_NAME ? peek(s).tok : TOK_END;
    Symbol *sym;
    Var *v;

    if (after != ',' && after != ']' && after != ')')
        return NULL;
    sym = ir_symbol(s->p, s->lex.text, s->lex.n);
    if (sym->let != NULL || sym->size != NULL)
        return NULL;
    v = find_var(s, sym);
    if (v == NULL)
        return NULL;
    next(s);
    return ir_var_expr(s->p, v);
}

Expr *parse_index(Parser *s)
{
    Place at = s->lex.at;
    Expr *e;

    if (parse_take(s, (Tok)'@')) {
        e = primary(s);
        s->p->at = at;
        return ir_op1(s->p, OP_at, e);
    }
    if (parse_take_word(s, "_"))
        return ir_none(s->p);
    e = lone_var(s);
    return e != NULL ? e : parse_expr(s);
}

Expr *parse_access(Parser *s)
{
    Place at = s->lex.at;
    const char *name;
    Buf *b;
    Expr *index[IR_MAX_RANK];
    int n = 0;

    if (s->tree)
        return parse_cell(s);
    name = parse_name(s, "a buffer");
    b = ir_find_buf(s->p, name);
    s->p->at = at;
    if (b == NULL)
        ir_throw(s->p, ST_CHECK, "%s is not a buffer; declare it, as in `f32 %s[...]`", name, name);
    parse_need(s, (Tok)'[', "`[`");
    while (s->lex.tok != ']') {
        if (n == IR_MAX_RANK)
            ir_throw(s->p, ST_LIMIT, "more than %d indices", IR_MAX_RANK);
        index[n++] = parse_index(s);
        if (s->lex.tok != ']')
            parse_need(s, (Tok)',', "`,` or `]`");
    }
    next(s);
    s->p->at = at;
    return ir_load(s->p, b, index, n);
}
