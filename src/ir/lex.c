/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Program text to tokens.  Lines end statements except inside brackets; an indented line begins
 * a block, the first line further out ends it.  Blocks inside blocks are for later stages. */
#include "ir/ir_int.h"
#include "ir/parse_int.h"

#include <string.h>

static bool is_name_part(char c)
{
    return ir_is_letter(c) || ir_is_digit(c);
}

static char peek(const Lex *x, size_t ahead)
{
    return (size_t)(x->end - x->s) > ahead ? x->s[ahead] : 0;
}

static void set(Lex *x, Tok tok, size_t n)
{
    x->tok = tok;
    x->text = x->s;
    x->n = n;
    x->at = (Place){ x->line, (int)(x->s - x->line_start) + 1 };
    x->s += n;
}

static void end_line(Lex *x)
{
    x->s++;
    x->line++;
    x->line_start = x->s;
}

static void skip_blank(Lex *x)
{
    while (x->s < x->end) {
        if (*x->s == ' ' || *x->s == '\t' || *x->s == '\r' || (*x->s == '\n' && x->brackets > 0)) {
            if (*x->s == '\n')
                end_line(x);
            else
                x->s++;
        } else if (*x->s == '#') {
            while (x->s < x->end && *x->s != '\n')
                x->s++;
        } else {
            return;
        }
    }
}

/* Lines with nothing on them do not count, and neither does their indentation. */
static void skip_empty_lines(Lex *x)
{
    for (;;) {
        skip_blank(x);
        if (x->s == x->end || *x->s != '\n')
            return;
        end_line(x);
    }
}

static int columns_of(const Lex *x, int level)
{
    return level == 0 ? 0 : x->indent[level - 1];
}

/* At the first token of a line: the next of the tokens that its indentation makes, if any. */
static bool line_start(Prog *p, Lex *x)
{
    int columns, block = columns_of(x, x->level), outer;

    skip_empty_lines(x);
    columns = x->s == x->end ? 0 : (int)(x->s - x->line_start);
    p->at = (Place){ x->line, columns + 1 };
    if (memchr(x->line_start, '\t', (size_t)columns) != NULL)
        ir_throw(p, ST_PARSE, "a tab in the indentation; indent with spaces");
    if (columns > block && x->level == LOOP_MAX_NEST)
        ir_throw(p, ST_LIMIT, "blocks nested more than %d deep", LOOP_MAX_NEST);
    if (columns > block && (x->level == 0 || x->tree)) {
        x->indent[x->level++] = columns;
        set(x, TOK_INDENT, 0);
        return true;
    }
    outer = columns < block ? columns_of(x, x->level - 1) : block;
    if (columns > outer)
        ir_throw(p, ST_PARSE,
                 "this line is indented by %d columns and its block by %d; use the same", columns,
                 block);
    if (columns < block) {
        x->level--;
        set(x, TOK_DEDENT, 0);
        return true;
    }
    x->fresh = false;
    return false;
}

static void lex_number(Lex *x)
{
    size_t n = 0;
    Tok tok = TOK_INT;

    while (ir_is_digit(peek(x, n)))
        n++;
    if (peek(x, n) == '.' && ir_is_digit(peek(x, n + 1))) {
        tok = TOK_REAL;
        n++;
        while (ir_is_digit(peek(x, n)))
            n++;
    }
    if (peek(x, n) == 'e' || peek(x, n) == 'E') {
        size_t sign = peek(x, n + 1) == '-' || peek(x, n + 1) == '+';

        if (ir_is_digit(peek(x, n + 1 + sign))) {
            tok = TOK_REAL;
            n += 1 + sign;
            while (ir_is_digit(peek(x, n)))
                n++;
        }
    }
    set(x, tok, n);
}

static void lex_name(Lex *x)
{
    size_t n = 1;

    while (is_name_part(peek(x, n)) ||
           (x->tree && peek(x, n) == '.' && is_name_part(peek(x, n + 1))))
        n++;
    if (n == 3 && peek(x, 3) == '=' && peek(x, 4) != '=' &&
        (memcmp(x->s, "max", 3) == 0 || memcmp(x->s, "min", 3) == 0))
        set(x, x->s[1] == 'a' ? TOK_MAX : TOK_MIN, 4);
    else
        set(x, TOK_NAME, n);
}

static const struct {
    const char *text;
    Tok tok;
} pairs[] = {
    { "+=", TOK_ADD }, { "|=", TOK_OR }, { "->", TOK_ARROW }, { "<=", TOK_LE },
    { ">=", TOK_GE },  { "==", TOK_EQ }, { "!=", TOK_NE },    { "..", TOK_RANGE },
};

static void lex_sign(Prog *p, Lex *x)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (peek(x, 0) == pairs[i].text[0] && peek(x, 1) == pairs[i].text[1]) {
            set(x, pairs[i].tok, 2);
            return;
        }
    if (*x->s == 0 || strchr("()[]{},:;=<>+-*/%@", *x->s) == NULL) {
        bool shows = *x->s > ' ' && *x->s < 127;

        p->at = (Place){ x->line, (int)(x->s - x->line_start) + 1 };
        ir_throw(p, ST_PARSE, shows ? "'%c' means nothing here" : "byte %d means nothing here",
                 (unsigned char)*x->s);
    }
    if (strchr("([{", *x->s) != NULL)
        x->brackets++;
    if (strchr(")]}", *x->s) != NULL && x->brackets > 0)
        x->brackets--;
    set(x, (Tok)(unsigned char)*x->s, 1);
}

/* The last line ends, then the blocks around it, then the text. */
static void end_of_text(Lex *x)
{
    if (x->tok != TOK_NEWLINE && x->tok != TOK_DEDENT && x->tok != TOK_END) {
        set(x, TOK_NEWLINE, 0);
    } else if (x->level > 0) {
        x->level--;
        set(x, TOK_DEDENT, 0);
    } else {
        set(x, TOK_END, 0);
    }
}

void lex_next(Prog *p, Lex *x)
{
    if (x->fresh && line_start(p, x))
        return;
    skip_blank(x);
    if (x->s == x->end) {
        end_of_text(x);
    } else if (*x->s == '\n' || (*x->s == ';' && x->brackets == 0)) {
        bool line = *x->s == '\n';

        set(x, TOK_NEWLINE, 1);
        if (line) {
            x->line++;
            x->line_start = x->s;
            x->fresh = true;
        }
    } else if (ir_is_digit(*x->s)) {
        lex_number(x);
    } else if (ir_is_letter(*x->s)) {
        lex_name(x);
    } else {
        lex_sign(p, x);
    }
}

static const char *scan_words(const char *s, const char *end, Text *out)
{
    for (; s < end && (is_name_part(*s) || (*s == '.' && s + 1 < end && is_name_part(s[1]))); s++)
        text_char(out, *s);
    return s;
}

/* label = words | words "(" label {"," label} ")" {"." word}, where words are a name and, after
 * dots, names or digits; its end, or NULL. */
static const char *scan_label(const char *s, const char *end, Text *out, int depth)
{
    if (depth > PARSE_DEPTH || s == end || !ir_is_letter(*s))
        return NULL;
    s = scan_words(s, end, out);
    if (s == end || *s != '(')
        return s;
    do {
        text_char(out, *s);
        for (s++; s < end && *s == ' '; s++)
            ;
        s = scan_label(s, end, out, depth + 1);
        if (s == NULL || s == end)
            return NULL;
    } while (*s == ',');
    if (*s != ')')
        return NULL;
    text_char(out, *s++);
    return s < end && *s == '.' ? scan_words(s, end, out) : s;
}

/* Goes on after a label that ends at `end`. */
static const char *take_label(Prog *p, Lex *x, const Text *label, const char *end)
{
    if (label->n > 4 * IR_MAX_NAME)
        ir_throw(p, ST_LIMIT, "a label of more than %d characters", 4 * IR_MAX_NAME);
    x->s = end;
    x->brackets = 0;
    lex_next(p, x);
    return label->s;
}

const char *lex_label(Prog *p, Lex *x)
{
    Text label = { .arena = p->arena };
    const char *s = x->tok == TOK_NAME ? scan_label(x->text, x->end, &label, 0) : NULL;

    while (s != NULL && s < x->end && *s == ' ')
        s++;
    if (s == NULL || s == x->end || *s != ':' || strcmp(label.s, "for") == 0)
        return NULL;
    return take_label(p, x, &label, s + 1);
}

const char *lex_phase(Prog *p, Lex *x)
{
    Text label = { .arena = p->arena };
    const char *s = x->tok == TOK_NAME ? scan_label(x->text, x->end, &label, 0) : NULL;

    return s == NULL ? NULL : take_label(p, x, &label, s);
}
