/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Mutants of C source: one small change each, as a programmer's slip would make it.
 *
 *   mutate list FILE...              every change that is possible, one a line
 *   mutate draw N SEED FILE...       N of them at random: first the operator, then the place
 *   mutate apply FILE K              the text of FILE with its change number K
 *
 * A line has FILE, K, LINE, OPERATOR, the line before and the line after, with tabs between them.
 * Changes are made to tokens of function bodies: comments, strings, the preprocessor, asserts,
 * sizes of declared arrays and tables of static data are left alone.  Not every change compiles. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEGATE, RELATE, DROP, SWAP, CONSTANT, OPERATORS };
static const char *const operator_name[] = { "negate", "relate", "drop", "swap", "constant" };

typedef struct Token {
    const char *s;
    int n, line;
    bool header; /* between round or square brackets */
    bool usable; /* part of a function body, and of nothing that is left alone */
} Token;

typedef struct Change { /* text [from, to) becomes `text`, and [from2, to2) becomes `text2` */
    int op, line;
    const char *from, *to, *from2, *to2;
    char text[400], text2[200];
} Change;

typedef struct Source {
    const char *path;
    char *text;
    Token *tok;
    int ntok;
    Change *change;
    int nchange;
} Source;

static void *more(void *p, int n, size_t size) /* room for one element after n */
{
    if ((n & (n - 1)) == 0)
        p = realloc(p, (size_t)(n == 0 ? 1 : 2 * n) * size);
    if (p == NULL)
        exit(3);
    return p;
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long n;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0) {
        fprintf(stderr, "mutate: cannot read %s\n", path);
        exit(2);
    }
    rewind(f);
    text = malloc((size_t)n + 1);
    if (text == NULL || fread(text, 1, (size_t)n, f) != (size_t)n)
        exit(2);
    text[n] = 0;
    fclose(f);
    return text;
}

/* The end of what begins at s and is no token: a blank, a comment or a line of the preprocessor. */
static const char *skip(const char *s, bool line_start)
{
    if (isspace((unsigned char)*s))
        return s + 1;
    if (s[0] == '/' && s[1] == '*') {
        const char *end = strstr(s + 2, "*/");
        return end != NULL ? end + 2 : s + strlen(s);
    }
    if (s[0] == '/' && s[1] == '/')
        return s + strcspn(s, "\n");
    if (*s == '#' && line_start) {
        while (*s != 0 && *s != '\n')
            s += s[0] == '\\' && s[1] != 0 ? 2 : 1;
        return s;
    }
    return s;
}

static int token_length(const char *s)
{
    static const char *const longer[] = { "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=",
                                          ">=",  "==",  "!=",  "&&", "||", "+=", "-=", "*=", "/=",
                                          "%=",  "&=",  "|=",  "^=" };
    int n = 1;

    if (isalnum((unsigned char)*s) || *s == '_') {
        bool number = isdigit((unsigned char)*s);

        while (isalnum((unsigned char)s[n]) || s[n] == '_' || (number && s[n] == '.') ||
               (number && (s[n] == '-' || s[n] == '+') && strchr("eEpP", s[n - 1]) != NULL &&
                s[1] != 'x'))
            n++;
        return n;
    }
    if (*s == '"' || *s == '\'') {
        while (s[n] != 0 && s[n] != *s)
            n += s[n] == '\\' ? 2 : 1;
        return n + 1;
    }
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
        if (strncmp(s, longer[i], strlen(longer[i])) == 0)
            return (int)strlen(longer[i]);
    return n;
}

static void read_tokens(Source *src)
{
    bool line_start = true;
    int line = 1;

    for (const char *s = src->text; *s != 0;) {
        const char *after = skip(s, line_start);

        if (after == s) {
            src->tok = more(src->tok, src->ntok, sizeof *src->tok);
            src->tok[src->ntok] = (Token){ .s = s, .n = token_length(s), .line = line };
            after = s + src->tok[src->ntok++].n;
            line_start = false;
        }
        for (; s < after; s++)
            if (*s == '\n') {
                line++;
                line_start = true;
            }
    }
}

static bool is(const Source *src, int i, const char *text)
{
    return i >= 0 && i < src->ntok && src->tok[i].n == (int)strlen(text) &&
           strncmp(src->tok[i].s, text, strlen(text)) == 0;
}

static bool is_one(const Source *src, int i, const char *const *texts)
{
    for (; *texts != NULL; texts++)
        if (is(src, i, *texts))
            return true;
    return false;
}

static bool is_word(const Source *src, int i)
{
    return i >= 0 && i < src->ntok &&
           (isalpha((unsigned char)src->tok[i].s[0]) || src->tok[i].s[0] == '_');
}

static bool is_number(const Source *src, int i)
{
    return i >= 0 && i < src->ntok && isdigit((unsigned char)src->tok[i].s[0]);
}

static bool is_keyword(const Source *src, int i)
{
    static const char *const words[] = { "if",     "for",    "while",  "switch",   "return",
                                         "sizeof", "do",     "else",   "case",     "goto",
                                         "break",  "const",  "static", "continue", "struct",
                                         "enum",   NULL };
    return is_one(src, i, words);
}

/* The bracket that closes (step 1) or opens (step -1) the one at i. */
static int match(const Source *src, int i, int step)
{
    int depth = 0;

    for (; i >= 0 && i < src->ntok; i += step) {
        char c = src->tok[i].s[0];

        if (src->tok[i].n == 1 && strchr("([{", c) != NULL)
            depth += step;
        else if (src->tok[i].n == 1 && strchr(")]}", c) != NULL)
            depth -= step;
        if (depth == 0)
            return i;
    }
    return -1;
}

/* Declarations begin with a type: a keyword, or a name before another name or before "* name". */
static bool is_declaration(const Source *src, int i)
{
    static const char *const types[] = { "static", "const",    "struct",   "enum",   "union",
                                         "char",   "int",      "unsigned", "long",   "double",
                                         "float",  "bool",     "void",     "size_t", "volatile",
                                         "short",  "int64_t",  "uint64_t", "int32_t", "uint32_t",
                                         "uint8_t", "int16_t", "uint16_t", NULL };
    int k = i + 1;

    if (is_one(src, i, types))
        return true;
    while (is(src, k, "*") || is(src, k, "const"))
        k++;
    return is_word(src, i) && !is_keyword(src, i) && is_word(src, k) && !is(src, k, "sizeof") &&
           (k == i + 1 || is(src, k + 1, "=") || is(src, k + 1, ";") || is(src, k + 1, ",") ||
            is(src, k + 1, "["));
}

/* A statement begins after these, and after the bracket of an if, a for or a while. */
static bool begins_statement(const Source *src, int i)
{
    static const char *const before[] = { ";", "{", "}", "else", "do", NULL };
    int open;

    if (i < 1 || src->tok[i].header)
        return false;
    if (is_one(src, i - 1, before))
        return true;
    if (is(src, i - 1, ":")) { /* of a case: no question mark on the way */
        for (int k = i - 2; k > 0 && !is_one(src, k, before); k--)
            if (is(src, k, "case") || is(src, k, "default"))
                return true;
        return false;
    }
    if (!is(src, i - 1, ")"))
        return false;
    open = match(src, i - 1, -1);
    return is(src, open - 1, "if") || is(src, open - 1, "for") || is(src, open - 1, "while");
}

static void leave_alone(Source *src, int from, int to)
{
    for (int i = from; i <= to && i >= 0; i++)
        src->tok[i].usable = false;
}

/* Inside [from, to] of a body: asserts, tables of static data, sizes of arrays. */
static void leave_parts_alone(Source *src, int from, int to)
{
    for (int i = from; i < to; i++) {
        if ((is(src, i, "assert") || is(src, i, "_Static_assert")) && is(src, i + 1, "("))
            leave_alone(src, i, match(src, i + 1, 1));
        if (!begins_statement(src, i) || !is_declaration(src, i))
            continue;
        for (int k = i; k < to && !is(src, k, ";"); k++) {
            int end = is(src, k, "[") || is(src, k, "{") ? match(src, k, 1) : k;

            if (is(src, k, "[") && !is(src, i, "return"))
                leave_alone(src, k, end);
            if (is(src, k, "{") && is(src, i, "static"))
                leave_alone(src, k, end);
            if (is(src, k, "=") && !is(src, i, "static"))
                break; /* what a variable begins with is an expression */
            k = end;
        }
    }
}

static void find_headers(Source *src)
{
    for (int i = 0; i < src->ntok; i++)
        for (int end = is(src, i, "(") || is(src, i, "[") ? match(src, i, 1) : i; i < end; i++)
            src->tok[i].header = true;
}

static void find_bodies(Source *src)
{
    for (int i = 0; i < src->ntok; i++) {
        int end = is(src, i, "{") || is(src, i, "(") || is(src, i, "[") ? match(src, i, 1) : i;

        if (end < 0)
            return;
        if (is(src, i, "{") && is(src, i - 1, ")")) {
            for (int k = i; k <= end; k++)
                src->tok[k].usable = true;
            leave_parts_alone(src, i, end);
        }
        i = end;
    }
}

static Change *add_change(Source *src, int op, int first, int last)
{
    Change *c;

    src->change = more(src->change, src->nchange, sizeof *src->change);
    c = &src->change[src->nchange++];
    *c = (Change){ .op = op, .line = src->tok[first].line, .from = src->tok[first].s };
    c->to = src->tok[last].s + src->tok[last].n;
    return c;
}

/* The same text behind "!(" and before ")". */
static void add_negation(Source *src, int first, int last)
{
    const char *from = src->tok[first].s, *to = src->tok[last].s + src->tok[last].n;
    Change *c;

    if (first > last || to - from > 380)
        return;
    c = add_change(src, NEGATE, first, last);
    snprintf(c->text, sizeof c->text, "!(%.*s)", (int)(to - from), from);
}

static void negations(Source *src, int i)
{
    int end;

    if (!is(src, i + 1, "("))
        return;
    end = match(src, i + 1, 1);
    if (is(src, i, "if") || is(src, i, "while")) {
        add_negation(src, i + 2, end - 1);
    } else if (is(src, i, "for")) {
        int part[2], n = 0;

        for (int k = i + 2; k < end && n < 2; k++) {
            if (is(src, k, "(") || is(src, k, "{") || is(src, k, "["))
                k = match(src, k, 1);
            if (is(src, k, ";"))
                part[n++] = k;
        }
        if (n == 2)
            add_negation(src, part[0] + 1, part[1] - 1);
    }
}

static void relations(Source *src, int i)
{
    static const char *const pair[][2] = {
        { "<", "<=" }, { "<=", "<" }, { ">", ">=" }, { ">=", ">" }
    };

    for (int k = 0; k < 4; k++)
        if (is(src, i, pair[k][0]))
            strcpy(add_change(src, RELATE, i, i)->text, pair[k][1]);
}

/* Statements that are expressions, and break and continue.  A return is left: what a function gives
 * without one is not defined. */
static void drops(Source *src, int i)
{
    int end = i;

    if (!begins_statement(src, i) || is_declaration(src, i))
        return;
    if (!is(src, i, "break") && !is(src, i, "continue") && !is(src, i, "*") && !is(src, i, "(") &&
        (is_keyword(src, i) || !is_word(src, i)))
        return;
    for (; end < src->ntok && !is(src, end, ";"); end++) {
        if (is(src, end, "(") || is(src, end, "[") || is(src, end, "{"))
            end = match(src, end, 1);
        if (end < 0 || is(src, end, ":") || is(src, end, "}"))
            return; /* a label, or a macro that begins a block */
    }
    if (end - i > 0)
        strcpy(add_change(src, DROP, i, end - 1)->text, "(void)0");
}

/* The first token of the operand that ends at i, the last of the one that begins at i; -1: none. */
static int operand_start(const Source *src, int i)
{
    while (is(src, i, ")") || is(src, i, "]")) {
        i = match(src, i, -1);
        if (i < 0 || !(is_word(src, i - 1) || is(src, i - 1, "]") || is(src, i - 1, ")")))
            return i;
        i--;
    }
    if (!(is_word(src, i) || is_number(src, i)) || is_keyword(src, i))
        return -1;
    if (is(src, i - 1, "->") || is(src, i - 1, "."))
        return operand_start(src, i - 2);
    return i;
}

static int operand_end(const Source *src, int i)
{
    if (is(src, i, "("))
        i = match(src, i, 1);
    else if (!(is_word(src, i) || is_number(src, i)) || is_keyword(src, i))
        return -1;
    for (;;) {
        if (is(src, i + 1, "(") || is(src, i + 1, "["))
            i = match(src, i + 1, 1);
        else if ((is(src, i + 1, "->") || is(src, i + 1, ".")) && is_word(src, i + 2))
            i += 2;
        else
            return i;
        if (i < 0)
            return -1;
    }
}

static void add_swap(Source *src, int a, int a_end, int b, int b_end)
{
    const char *x = src->tok[a].s, *y = src->tok[b].s;
    int nx = (int)(src->tok[a_end].s + src->tok[a_end].n - x);
    int ny = (int)(src->tok[b_end].s + src->tok[b_end].n - y);
    Change *c;

    if ((nx == ny && strncmp(x, y, (size_t)nx) == 0) || nx > 190 || ny > 190)
        return;
    c = add_change(src, SWAP, a, a_end);
    c->from2 = y;
    c->to2 = y + ny;
    snprintf(c->text, sizeof c->text, "%.*s", ny, y);
    snprintf(c->text2, sizeof c->text2, "%.*s", nx, x);
}

/* Both sides of an operator that does not commute. */
static void swaps(Source *src, int i)
{
    static const char *const signs[] = { "-", "/", "%", "<<", ">>", "<", "<=", ">", ">=", NULL };
    int a, b;

    if (!is_one(src, i, signs))
        return;
    a = operand_start(src, i - 1);
    b = operand_end(src, i + 1);
    if (a >= 0 && b >= 0)
        add_swap(src, a, i - 1, i + 1, b);
}

/* The first two arguments of a call, but of a test whether two texts are equal. */
static void call_swaps(Source *src, int i)
{
    static const char *const compare[] = { "strcmp", "strncmp", "strcasecmp", "memcmp", NULL };
    int comma[2] = { -1, -1 }, n = 0, end;

    if (!is_word(src, i) || is_keyword(src, i) || !is(src, i + 1, "("))
        return;
    end = match(src, i + 1, 1);
    if (is_one(src, i, compare) && (is(src, end + 1, "==") || is(src, end + 1, "!=")))
        return;
    for (int k = i + 2; k < end && n < 2; k++) {
        if (is(src, k, "(") || is(src, k, "[") || is(src, k, "{"))
            k = match(src, k, 1);
        if (is(src, k, ","))
            comma[n++] = k;
    }
    if (n > 0)
        add_swap(src, i + 2, comma[0] - 1, comma[0] + 1, (n == 2 ? comma[1] : end) - 1);
}

/* n becomes n + 1, and 1 becomes 0. */
static void constants(Source *src, int i)
{
    char *end = NULL;
    unsigned long long v;
    Change *c;

    if (!is_number(src, i))
        return;
    v = strtoull(src->tok[i].s, &end, 0);
    if (*end == '.' || ((*end == 'e' || *end == 'E') && v < 10)) {
        c = add_change(src, CONSTANT, i, i);
        snprintf(c->text, sizeof c->text, "(%.*s + 1)", src->tok[i].n, src->tok[i].s);
        return;
    }
    c = add_change(src, CONSTANT, i, i);
    snprintf(c->text, sizeof c->text, "%llu%.*s", v == 1 ? 0 : v + 1,
             (int)(src->tok[i].s + src->tok[i].n - end), end);
}

static void find_changes(Source *src, const char *path)
{
    *src = (Source){ .path = path, .text = read_all(path) };
    read_tokens(src);
    find_headers(src);
    find_bodies(src);
    for (int i = 0; i < src->ntok; i++) {
        if (!src->tok[i].usable)
            continue;
        negations(src, i);
        relations(src, i);
        drops(src, i);
        swaps(src, i);
        call_swaps(src, i);
        constants(src, i);
    }
}

/* The text from a to b with a change made, on one line: runs of blanks become one. */
static void print_changed(const char *a, const char *b, const Change *c, bool one_line)
{
    bool blank = true;

    for (const char *s = a; s < b;) {
        const char *put = s, *next = s + 1;
        int n = 1;

        if (c != NULL && s == c->from) {
            put = c->text, n = (int)strlen(put), next = c->to;
        } else if (c != NULL && s == c->from2) {
            put = c->text2, n = (int)strlen(put), next = c->to2;
        }
        for (int k = 0; k < n; k++) {
            bool space = isspace((unsigned char)put[k]);

            if (!one_line)
                putchar(put[k]);
            else if (!space)
                putchar(put[k]);
            else if (!blank)
                putchar(' ');
            blank = space;
        }
        s = next;
    }
}

static void print_line(const Source *src, int k)
{
    const Change *c = &src->change[k];
    const char *a = c->from, *b = c->to2 != NULL ? c->to2 : c->to;

    while (a > src->text && a[-1] != '\n')
        a--;
    b += strcspn(b, "\n");
    printf("%s\t%d\t%d\t%s\t", src->path, k, c->line, operator_name[c->op]);
    print_changed(a, b, NULL, true);
    putchar('\t');
    print_changed(a, b, c, true);
    putchar('\n');
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t hash_text(uint64_t h, const char *a, const char *b)
{
    for (; a < b; a++)
        if (!isspace((unsigned char)*a))
            h = (h ^ (unsigned char)*a) * 0x100000001b3u;
    return mix(h);
}

/* The lot of a change, from what it does to its line alone: work on other code leaves the lots as they
 * are, and so what a seed draws.  Its place counts only among equal changes of equal lines. */
static uint64_t lot(const Change *c, uint64_t seed)
{
    const char *a = c->from, *b = c->to2 != NULL ? c->to2 : c->to;
    uint64_t h = mix(seed + 0x9e3779b97f4a7c15u) ^ (uint64_t)c->op;

    while (a[-1] != '\n')
        a--;
    h = hash_text(h, a, c->from);
    h = hash_text(h, c->text, c->text + strlen(c->text));
    return hash_text(h, c->from, b + strcspn(b, "\n"));
}

typedef struct Lot {
    uint64_t lot;
    int file, k;
} Lot;

static int by_lot(const void *a, const void *b)
{
    const Lot *x = a, *y = b;

    if (x->lot != y->lot)
        return x->lot < y->lot ? -1 : 1;
    return x->file != y->file ? x->file - y->file : x->k - y->k;
}

/* An operator is drawn, then the change of it with the least lot that is left. */
static void draw(Source *src, int nsrc, int n, uint64_t seed)
{
    Lot *lots[OPERATORS] = { NULL };
    int have[OPERATORS] = { 0 }, next[OPERATORS] = { 0 };

    for (int f = 0; f < nsrc; f++)
        for (int k = 0; k < src[f].nchange; k++) {
            int op = src[f].change[k].op;

            lots[op] = more(lots[op], have[op], sizeof **lots);
            lots[op][have[op]++] = (Lot){ lot(&src[f].change[k], seed), f, k };
        }
    for (int op = 0; op < OPERATORS; op++) {
        qsort(lots[op], (size_t)have[op], sizeof **lots, by_lot);
        for (int i = have[op] - 1; i > 0; i--) { /* the first of equal lots keeps its place */
            int first = i;

            while (first > 0 && lots[op][first - 1].lot == lots[op][i].lot)
                first--;
            if (first < i)
                lots[op][i].lot = mix(lots[op][i].lot + (uint64_t)(i - first));
        }
        qsort(lots[op], (size_t)have[op], sizeof **lots, by_lot);
    }
    for (int i = 0; i < n; i++) {
        int op = (int)(mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)i + 1) % OPERATORS);

        while (next[op] == have[op]) /* ends, as there are more places than are drawn */
            op = (op + 1) % OPERATORS;
        print_line(&src[lots[op][next[op]].file], lots[op][next[op]].k);
        next[op]++;
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int first = strcmp(mode, "draw") == 0 ? 4 : 2, n = argc - first, all = 0;
    Source *src = calloc((size_t)(n > 0 ? n : 1), sizeof *src);

    if (n < 1 || src == NULL || strchr("lda", mode[0]) == NULL) {
        fprintf(stderr, "usage: mutate list FILE... | draw N SEED FILE... | apply FILE K\n");
        return 2;
    }
    if (strcmp(mode, "apply") == 0 && n == 2) {
        int k = atoi(argv[3]);

        find_changes(src, argv[2]);
        if (k < 0 || k >= src->nchange)
            return 2;
        print_changed(src->text, src->text + strlen(src->text), &src->change[k], false);
        return 0;
    }
    for (int f = 0; f < n; f++) {
        find_changes(&src[f], argv[first + f]);
        all += src[f].nchange;
        for (int k = 0; k < src[f].nchange && strcmp(mode, "list") == 0; k++)
            print_line(&src[f], k);
    }
    if (strcmp(mode, "draw") == 0) {
        if (atoi(argv[2]) > all)
            return 2;
        draw(src, n, atoi(argv[2]), strtoull(argv[3], NULL, 10));
    }
    return 0;
}
