/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The text of a format rule: lines, each begun by a word, and the expressions of maps and
 * conditions.  Lines of axes are kept as they are: use.c reads them as those of a program.
 *
 *     format bsr(b, c)        # a note
 *     axis IB = (m + b - 1) / b, JB(IB) = seg : load < (n + c - 1) / c sorted unique
 *     axis BI(JB) = b : i = b*ib + bi < m padded, BJ(BI) = c : j = c*jb + bj < n padded
 *     map ib = i / b, jb = j / c, bi = i % b, bj = j % c
 *     zeros */
#include "format/format_int.h"

#include <string.h>

enum { LIMIT_NEST = 64 };

typedef struct Reader {
    Arena *arena;
    const char *p; /* what comes next */
    int line, nest;
    FmtRule *rule;
    FmtRulePart *part; /* the one that lines go to */
} Reader;

static _Noreturn void fail(const Reader *r, const char *what)
{
    err_throw(r->arena->err, ST_PARSE, "format %s, line %d: %s",
              r->rule->name != NULL ? r->rule->name : "", r->line, what);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static bool at_end(Reader *r)
{
    r->p = skip_blanks(r->p);
    return *r->p == '\n' || *r->p == '#' || *r->p == '\0';
}

/* The sign or word s, when it comes next. */
static bool take(Reader *r, const char *s)
{
    size_t n = strlen(s);

    r->p = skip_blanks(r->p);
    if (strncmp(r->p, s, n) != 0)
        return false;
    if (is_letter(s[0]) && (is_letter(r->p[n]) || is_digit(r->p[n])))
        return false;
    r->p += n;
    return true;
}

static void want(Reader *r, const char *s)
{
    Text t = { .arena = r->arena };

    if (take(r, s))
        return;
    text_f(&t, "`%s` is missing", s);
    fail(r, t.s);
}

static const char *copy_text(Arena *arena, const char *s, size_t n)
{
    char *to = arena_alloc(arena, n + 1);

    memcpy(to, s, n);
    return to;
}

static const char *name_here(Reader *r)
{
    const char *from = r->p = skip_blanks(r->p);

    if (!is_letter(*r->p))
        fail(r, "a name is missing");
    while (is_letter(*r->p) || is_digit(*r->p))
        r->p++;
    if (r->p - from > IR_MAX_NAME)
        fail(r, "a name of more than 64 characters");
    return copy_text(r->arena, from, (size_t)(r->p - from));
}

FmtExpr *fmt_node(Arena *arena, FmtOp op, int64_t v, FmtExpr *a, FmtExpr *b)
{
    FmtExpr *e = arena_alloc(arena, sizeof *e);

    *e = (FmtExpr){ .op = op, .v = v, .nargs = (a != NULL) + (b != NULL) };
    e->arg = arena_array(arena, 2, sizeof *e->arg);
    e->arg[0] = a;
    e->arg[1] = b;
    return e;
}

static FmtExpr *parse_cond(Reader *);
static FmtExpr *parse_sum(Reader *);

static const struct {
    const char *name;
    FmtOp op;
    int least, most; /* arguments */
} functions[] = {
    { "abs", F_ABS, 1, 1 },     { "min", F_MIN, 2, 2 },   { "max", F_MAX, 2, 2 },
    { "bits", F_BITS, 1, 1 },   { "exp2", F_EXP2, 1, 1 }, { "count", F_COUNT, 1, 8 },
    { "rank", F_RANK, 1, 8 },   { "index", F_INDEX, 1, 8 },
    { "place", F_PLACE, 3, 3 },
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* Arguments up to the bracket.  `;` in those of index: the keys come after it. */
static FmtExpr *parse_call(Reader *r, int f)
{
    FmtExpr *e = fmt_node(r->arena, functions[f].op, 0, NULL, NULL);
    bool keyed = false;

    e->arg = arena_array(r->arena, functions[f].most, sizeof *e->arg);
    for (;;) {
        if (e->op == F_INDEX && take(r, ";")) {
            if (keyed)
                fail(r, "index has one `;`");
            keyed = true;
            e->keys = e->nargs;
        }
        if (e->nargs == functions[f].most)
            fail(r, "more arguments than the function takes");
        e->arg[e->nargs++] = parse_sum(r);
        if (take(r, ")"))
            break;
        if (e->op != F_INDEX || *skip_blanks(r->p) != ';')
            want(r, ",");
    }
    if (e->nargs < functions[f].least)
        fail(r, "fewer arguments than the function takes");
    return e;
}

static FmtExpr *parse_number(Reader *r)
{
    const char *from = r->p;
    int64_t v;

    while (is_digit(*r->p))
        r->p++;
    if (!num_parse_int(from, (size_t)(r->p - from), &v))
        fail(r, "a number that does not fit 64 bits");
    return fmt_node(r->arena, F_INT, v, NULL, NULL);
}

static FmtExpr *parse_primary(Reader *r)
{
    const char *name;
    FmtExpr *e;

    r->p = skip_blanks(r->p);
    if (++r->nest > LIMIT_NEST)
        fail(r, "an expression that nests too deeply");
    if (take(r, "-")) {
        e = fmt_node(r->arena, F_NEG, 0, parse_primary(r), NULL);
    } else if (take(r, "(")) {
        e = parse_cond(r);
        want(r, ")");
    } else if (is_digit(*r->p)) {
        e = parse_number(r);
    } else {
        int f = 0;

        name = name_here(r);
        while (f < NFUNCTIONS && strcmp(functions[f].name, name) != 0)
            f++;
        if (f < NFUNCTIONS && take(r, "(")) {
            e = parse_call(r, f);
        } else {
            e = fmt_node(r->arena, F_NAME, 0, NULL, NULL);
            e->name = name;
        }
    }
    r->nest--;
    return e;
}

static FmtExpr *parse_product(Reader *r)
{
    FmtExpr *e = parse_primary(r);

    for (;;) {
        FmtOp op = take(r, "*") ? F_MUL : take(r, "/") ? F_DIV : take(r, "%") ? F_MOD : F_INT;

        if (op == F_INT)
            return e;
        e = fmt_node(r->arena, op, 0, e, parse_primary(r));
    }
}

static FmtExpr *parse_sum(Reader *r)
{
    FmtExpr *e = parse_product(r);

    for (;;) {
        FmtOp op = take(r, "+") ? F_ADD : take(r, "-") ? F_SUB : F_INT;

        if (op == F_INT)
            return e;
        e = fmt_node(r->arena, op, 0, e, parse_product(r));
    }
}

static FmtExpr *parse_relation(Reader *r)
{
    static const struct {
        const char *sign;
        FmtOp op;
        bool turn;
    } signs[] = { { "<=", F_LE, false }, { ">=", F_LE, true }, { "==", F_EQ, false },
                  { "!=", F_NE, false }, { "<", F_LT, false }, { ">", F_LT, true } };
    FmtExpr *a, *b;

    if (take(r, "not"))
        return fmt_node(r->arena, F_NOT, 0, parse_relation(r), NULL);
    a = parse_sum(r);
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
        if (take(r, signs[k].sign)) {
            b = parse_sum(r);
            return fmt_node(r->arena, signs[k].op, 0, signs[k].turn ? b : a,
                            signs[k].turn ? a : b);
        }
    return a;
}

static FmtExpr *parse_both(Reader *r)
{
    FmtExpr *e = parse_relation(r);

    while (take(r, "and"))
        e = fmt_node(r->arena, F_AND, 0, e, parse_relation(r));
    return e;
}

static FmtExpr *parse_cond(Reader *r)
{
    FmtExpr *e = parse_both(r);

    while (take(r, "or"))
        e = fmt_node(r->arena, F_OR, 0, e, parse_both(r));
    return e;
}

/* name SIGN expr, each after a comma. */
static void parse_named(Reader *r, const char *sign, FmtNamed *list, int *n)
{
    do {
        if (*n == FMT_MOST)
            fail(r, "more than 16 of a kind");
        list[*n].name = name_here(r);
        want(r, sign);
        list[(*n)++].expr = parse_sum(r);
    } while (take(r, ","));
}

static void parse_names(Reader *r, const char **list, int *n)
{
    do {
        if (*n == FMT_MOST)
            fail(r, "more than 16 of a kind");
        list[(*n)++] = name_here(r);
    } while (take(r, ","));
}

static FmtRulePart *new_part(Reader *r, const char *name)
{
    FmtRule *rule = r->rule;
    int cap = rule->npart;

    rule->part = arena_grow(r->arena, rule->part, rule->npart, &cap, sizeof *rule->part);
    r->part = &rule->part[rule->npart++];
    *r->part = (FmtRulePart){ .name = name };
    return r->part;
}

/* The one part of a rule that names none. */
static FmtRulePart *part_here(Reader *r)
{
    return r->part != NULL ? r->part : new_part(r, "");
}

static void parse_part(Reader *r)
{
    FmtRulePart *part;

    if (r->rule->npart > 0 && r->rule->part[0].name[0] == '\0')
        fail(r, "lines of a part before the first `part`");
    part = new_part(r, name_here(r));
    if (take(r, "for"))
        parse_named(r, "in", part->loop, &part->nloop);
    if (take(r, "where"))
        part->where = parse_cond(r);
}

static void parse_coords(Reader *r)
{
    r->rule->ncoord = 0;
    do {
        if (r->rule->ncoord == FMT_MOST)
            fail(r, "more than 16 coordinates");
        r->rule->coord[r->rule->ncoord] = name_here(r);
        want(r, "<");
        r->rule->bound[r->rule->ncoord++] = name_here(r);
    } while (take(r, ","));
}

static void keep_axis(Reader *r)
{
    FmtRulePart *part = part_here(r);
    const char *from = r->p;

    if (part->naxis == FMT_MOST)
        fail(r, "more than 16 lines of axes");
    while (*r->p != '\n' && *r->p != '#' && *r->p != '\0')
        r->p++;
    part->axis_line[part->naxis] = r->line;
    part->axis[part->naxis++] = copy_text(r->arena, from, (size_t)(r->p - from));
}

static void parse_line(Reader *r)
{
    FmtRule *rule = r->rule;
    FmtRulePart *part;

    if (take(r, "part")) {
        parse_part(r);
    } else if (take(r, "of")) {
        parse_coords(r);
    } else if (take(r, "axis")) {
        keep_axis(r);
    } else if (take(r, "map")) {
        part = part_here(r);
        parse_named(r, "=", part->map, &part->nmap);
    } else if (take(r, "fit")) {
        part = part_here(r);
        parse_names(r, part->fit, &part->nfit);
    } else if (take(r, "let")) {
        if (r->part != NULL)
            parse_named(r, "=", r->part->let, &r->part->nlet);
        else
            parse_named(r, "=", rule->let, &rule->nlet);
    } else if (take(r, "zeros")) {
        part_here(r)->zeros = true;
    } else if (!at_end(r)) {
        fail(r, "a line begins with of, let, part, fit, axis, map or zeros");
    }
    if (!at_end(r))
        fail(r, "the line goes on after its end");
}

/* To the beginning of the next line. */
static void next_line(Reader *r)
{
    while (*r->p != '\n' && *r->p != '\0')
        r->p++;
    if (*r->p == '\n')
        r->p++;
    r->line++;
}

static void parse_head(Reader *r)
{
    FmtRule *rule = r->rule;
    const char *note;

    want(r, "format");
    rule->name = name_here(r);
    want(r, "(");
    if (!take(r, ")")) {
        parse_names(r, rule->param, &rule->nparam);
        want(r, ")");
    }
    if (!at_end(r))
        fail(r, "the line goes on after its end");
    note = *r->p == '#' ? skip_blanks(r->p + 1) : r->p;
    next_line(r);
    rule->note = copy_text(r->arena, note, strcspn(note, "\n"));
}

bool fmt_is_rule(const char *text)
{
    text += strspn(text, " \t\r\n");
    return strncmp(text, "format", 6) == 0 && (text[6] == ' ' || text[6] == '\t');
}

/* A use, `name(...)`, ends the text of a rule that is followed by one. */
static bool is_use(const char *line)
{
    const char *p = line = skip_blanks(line);

    while (is_letter(*p) || is_digit(*p))
        p++;
    return p > line && *skip_blanks(p) == '(';
}

FmtRule *fmt_rule(Arena *arena, const char *text, const char **rest)
{
    FmtRule *rule = arena_alloc(arena, sizeof *rule);
    Reader r = { .arena = arena, .p = text, .line = 1, .rule = rule };

    rule->coord[0] = "i";
    rule->coord[1] = "j";
    rule->bound[0] = "m";
    rule->bound[1] = "n";
    rule->ncoord = 2;
    while (*skip_blanks(r.p) == '\n')
        next_line(&r);
    parse_head(&r);
    while (*r.p != '\0' && !fmt_is_rule(r.p) && !is_use(r.p)) {
        parse_line(&r);
        next_line(&r);
    }
    if (rule->npart == 0)
        fail(&r, "a format needs axes");
    *rest = r.p;
    rule->text = copy_text(arena, text, (size_t)(r.p - text));
    return rule;
}
