/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Matrix Market text to matrix and back.  The reader goes line by line over the bytes; what a file
 * declares is held against the bytes that are left before memory is asked for.  coo.c then puts the
 * entries in order. */
#include "io/io_int.h"

#include <stdio.h>

typedef enum Symmetry { GENERAL, SYMMETRIC, SKEW } Symmetry;

typedef struct Mtx {
    Cursor c;
    IoMatrix *out;
    Symmetry sym;
    int64_t declared; /* entries or values in the file */
} Mtx;

static _Noreturn void fail_word(Mtx *t, Bytes word, const char *expected)
{
    char quote[IO_QUOTE];

    if (word.n == 0)
        io_fail(&t->c, word.p, ST_PARSE, "expected %s, but the line ends here", expected);
    io_fail(&t->c, word.p, ST_PARSE, "expected %s, found '%s'", expected,
            io_quote(quote, word.p, word.n));
}

static void end_line(Mtx *t, const char *expected)
{
    Bytes word = io_take_word(&t->c);

    if (word.n > 0)
        fail_word(t, word, expected);
}

/* To the next line that says something; false when there is none. */
static bool next_line(Cursor *c)
{
    for (;;) {
        io_skip_blanks(c);
        if (c->p < c->end && *c->p == '%')
            while (c->p < c->end && *c->p != '\n')
                c->p++;
        if (c->p == c->end)
            return false;
        if (*c->p != '\n')
            return true;
        c->p++;
    }
}

/* A word that the banner may hold, and why it is refused if it is. */
typedef struct Choice {
    const char *word, *refused;
} Choice;

/* Which of the n words comes next; `expected` says what may stand there. */
static int take_choice(Mtx *t, const Choice *choice, int n, const char *expected)
{
    Bytes word = io_take_word(&t->c);

    for (int k = 0; k < n; k++) {
        if (!io_is_word(word, choice[k].word))
            continue;
        if (choice[k].refused != NULL)
            io_fail(&t->c, word.p, ST_PARSE, "%s", choice[k].refused);
        return k;
    }
    fail_word(t, word, expected);
}

static void check_pattern(const Mtx *t)
{
    if (t->out->dense)
        io_fail(&t->c, t->c.begin, ST_PARSE,
                "an array has no pattern; use the format 'coordinate'");
    if (t->sym == SKEW)
        io_fail(&t->c, t->c.begin, ST_PARSE,
                "a pattern has no signs, so it cannot be skew-symmetric; use the field 'real'");
}

static void read_banner(Mtx *t)
{
    static const Choice objects[] = { { "matrix", NULL } };
    static const Choice formats[] = { { "coordinate", NULL }, { "array", NULL } };
    static const Choice fields[] = {
        { "real", NULL },
        { "integer", NULL },
        { "pattern", NULL },
        { "complex", "complex matrices are not supported; write the real and the imaginary part "
                     "as two real files" },
    };
    static const Choice symmetries[] = {
        { "general", NULL },
        { "symmetric", NULL },
        { "skew-symmetric", NULL },
        { "hermitian", "hermitian matrices are complex and not supported; a real one is called "
                       "'symmetric'" },
    };
    int field;

    if (!io_is_word(io_take_word(&t->c), "%%matrixmarket"))
        io_fail(&t->c, t->c.begin, ST_PARSE,
                "a Matrix Market file begins with '%%%%MatrixMarket'; if this is one, that first "
                "line is missing");
    take_choice(t, objects, 1, "the object 'matrix'");
    t->out->dense = take_choice(t, formats, 2, "the format 'coordinate' or 'array'") == 1;
    field = take_choice(t, fields, 4, "the field 'real', 'integer' or 'pattern'");
    t->out->integer = field == 1;
    t->out->pattern = field == 2;
    t->sym = (Symmetry)take_choice(t, symmetries, 4,
                                   "the symmetry 'general', 'symmetric' or 'skew-symmetric'");
    if (t->out->pattern)
        check_pattern(t);
    end_line(t, "the end of the line after the symmetry");
}

static int64_t take_count(Mtx *t, const char *expected)
{
    Cursor *c = &t->c;
    const uint8_t *start;
    int64_t v = 0;

    io_skip_blanks(c);
    start = c->p;
    for (; c->p < c->end && (unsigned)(*c->p - '0') <= 9; c->p++)
        if (int_mul(v, 10, &v) || int_add(v, *c->p - '0', &v))
            io_fail(c, start, ST_PARSE, "expected %s, but this number exceeds 64 bits", expected);
    if (c->p == start || (c->p < c->end && !io_is_blank(*c->p) && *c->p != '\n')) {
        c->p = start;
        fail_word(t, io_take_word(c), expected);
    }
    return v;
}

static int64_t take_index(Mtx *t, int64_t size, const char *expected)
{
    const uint8_t *at;
    int64_t i;

    io_skip_blanks(&t->c);
    at = t->c.p;
    i = take_count(t, expected);
    if (i < 1 || i > size)
        io_fail(&t->c, at, ST_PARSE,
                "%s is %lld, outside 1..%lld; indices count from 1 to the size that the "
                "header declares",
                expected, (long long)i, (long long)size);
    return i - 1;
}

/* Reads value p of the file's matrix. */
static void take_value(Mtx *t, int64_t p)
{
    IoMatrix *a = t->out;
    Bytes word;

    if (a->pattern) {
        a->val[p] = 1;
        return;
    }
    word = io_take_word(&t->c);
    if (a->integer) {
        if (!num_parse_int((const char *)word.p, word.n, &a->ival[p]))
            fail_word(t, word, "an integer of 64 bits (declare the field real for others)");
    } else if (!io_real_parse(word, &a->val[p])) {
        fail_word(t, word, "a number");
    }
}

/* Value `to` becomes the mirror image of value `from`. */
static void mirror_value(Mtx *t, const uint8_t *at, int64_t to, int64_t from)
{
    IoMatrix *a = t->out;

    if (!a->integer)
        a->val[to] = t->sym == SKEW ? -a->val[from] : a->val[from];
    else if (t->sym == SYMMETRIC)
        a->ival[to] = a->ival[from];
    else if (int_sub(0, a->ival[from], &a->ival[to]))
        io_fail(&t->c, at, ST_PARSE,
                "the negative of this value exceeds 64 bits; declare the field real");
}

static void check_triangle(Mtx *t, const uint8_t *at, int64_t i, int64_t j)
{
    if (i < j)
        io_fail(&t->c, at, ST_PARSE,
                "this entry lies above the diagonal; a %s file holds only the lower "
                "triangle: swap its indices, or declare the file general",
                t->sym == SKEW ? "skew-symmetric" : "symmetric");
    if (i == j && t->sym == SKEW)
        io_fail(&t->c, at, ST_PARSE,
                "a skew-symmetric matrix has a zero diagonal; leave this entry out, or "
                "declare the file general");
}

static void read_entry(Mtx *t, const uint8_t *at)
{
    IoMatrix *a = t->out;
    int64_t i = take_index(t, a->m, "a row index"), j = take_index(t, a->n, "a column index");
    int64_t p = a->nnz++;

    take_value(t, p);
    a->row[p] = i;
    a->col[p] = j;
    if (t->sym != GENERAL) {
        check_triangle(t, at, i, j);
        if (i > j) {
            mirror_value(t, at, p + 1, p);
            a->row[p + 1] = j;
            a->col[p + 1] = i;
            a->nnz++;
        }
    }
    end_line(t, "one entry a line");
}

/* Goes to entry k of those declared, and says where it is. */
static const uint8_t *need_line(Mtx *t, int64_t k)
{
    if (!next_line(&t->c))
        io_fail(&t->c, t->c.p, ST_PARSE,
                "the file ends after %lld of the %lld entries that its header declares; "
                "it is incomplete, or the size line is wrong",
                (long long)k, (long long)t->declared);
    return t->c.p;
}

static void new_values(Mtx *t, Arena *arena, int64_t n)
{
    if (t->out->integer)
        t->out->ival = arena_array(arena, n, sizeof *t->out->ival);
    else
        t->out->val = arena_array(arena, n, sizeof *t->out->val);
}

static void read_coordinate(Mtx *t, Arena *arena)
{
    IoMatrix *a = t->out;
    int64_t room = t->sym == GENERAL ? t->declared : t->declared + t->declared;

    a->row = arena_array(arena, room, sizeof *a->row);
    a->col = arena_array(arena, room, sizeof *a->col);
    new_values(t, arena, room);
    for (int64_t k = 0; k < t->declared; k++)
        read_entry(t, need_line(t, k));
}

/* Column by column; of a symmetric file only the lower triangle, of a skew one without diagonal. */
static void read_array(Mtx *t, Arena *arena)
{
    IoMatrix *a = t->out;
    int64_t k = 0;

    a->nnz = a->m * a->n;
    new_values(t, arena, a->nnz);
    for (int64_t j = 0; k < t->declared; j++) {
        for (int64_t i = t->sym == GENERAL ? 0 : t->sym == SYMMETRIC ? j : j + 1; i < a->m; i++) {
            const uint8_t *at = need_line(t, k++);

            take_value(t, i * a->n + j);
            if (t->sym != GENERAL && i > j)
                mirror_value(t, at, j * a->n + i, i * a->n + j);
            end_line(t, "one value a line");
        }
    }
}

/* How many values an array file holds; -1 when it is beyond counting. */
static int64_t count_values(const Mtx *t)
{
    int64_t n;

    if (int_mul(t->out->m, t->out->n, &n))
        return -1;
    if (t->sym == SYMMETRIC)
        return n / 2 + (t->out->n + 1) / 2;
    return t->sym == SKEW ? n / 2 - t->out->n / 2 : n;
}

static void read_sizes(Mtx *t)
{
    IoMatrix *a = t->out;
    Cursor *c = &t->c;
    const uint8_t *at;
    int64_t shortest, room;

    if (!next_line(c))
        io_fail(c, c->p, ST_PARSE, "the file ends before its size line; it is incomplete");
    at = c->p;
    a->m = take_count(t, "the number of rows");
    a->n = take_count(t, "the number of columns");
    if (t->sym != GENERAL && a->m != a->n)
        io_fail(c, at, ST_PARSE,
                "a symmetric matrix is square, but the size is %lld x %lld; mend the size, or "
                "declare the file general",
                (long long)a->m, (long long)a->n);
    t->declared = a->dense ? count_values(t) : take_count(t, "the number of entries");
    end_line(t, "the end of the size line");
    c->p += c->p < c->end; /* the line's end */
    /* "1\n", "1 1\n", "1 1 1\n", and the last line may lack its end */
    shortest = a->dense ? 2 : a->pattern ? 4 : 6;
    room = (int64_t)((io_left(c) + 1) / (size_t)shortest);
    if (t->declared < 0 || t->declared > room)
        io_fail(c, at, ST_PARSE,
                "the size line declares more entries than the rest of the file has room for; "
                "it is incomplete, or the size line is wrong");
}

void io_mtx_parse(Arena *arena, Bytes b, const char *file, IoMatrix *out)
{
    Mtx t = { .c = io_cursor(arena->err, file, b), .out = out };

    *out = (IoMatrix){ 0 };
    t.c.text = true;
    read_banner(&t);
    read_sizes(&t);
    if (out->dense)
        read_array(&t, arena);
    else
        read_coordinate(&t, arena);
    if (next_line(&t.c))
        io_fail(&t.c, t.c.p, ST_PARSE,
                "the file goes on after the %lld entries that its header declares; remove the "
                "rest, or mend the size line",
                (long long)t.declared);
    if (!out->dense)
        io_coo_sort(arena, file, out);
}

static void print_value(Text *out, const IoMatrix *a, int64_t p)
{
    char s[NUM_TEXT];
    int n;

    if (a->integer)
        n = snprintf(s, sizeof s, "%lld", (long long)a->ival[p]);
    else
        n = num_print(s, a->val[p]);
    text_put(out, s, (size_t)n);
}

static void print_entry(Text *out, const IoMatrix *a, int64_t p)
{
    char s[48];
    int n = snprintf(s, sizeof s, "%lld %lld", (long long)a->row[p] + 1, (long long)a->col[p] + 1);

    text_put(out, s, (size_t)n);
    if (!a->pattern) {
        text_char(out, ' ');
        print_value(out, a, p);
    }
    text_char(out, '\n');
}

void io_mtx_print(Text *out, const IoMatrix *a)
{
    text_f(out, "%%%%MatrixMarket matrix %s %s general\n%lld %lld",
           a->dense ? "array" : "coordinate",
           a->pattern   ? "pattern"
           : a->integer ? "integer"
                        : "real",
           (long long)a->m, (long long)a->n);
    if (!a->dense) {
        text_f(out, " %lld\n", (long long)a->nnz);
        for (int64_t p = 0; p < a->nnz; p++)
            print_entry(out, a, p);
        return;
    }
    text_char(out, '\n');
    for (int64_t j = 0; j < a->n && a->m > 0; j++) {
        for (int64_t i = 0; i < a->m; i++) {
            print_value(out, a, i * a->n + j);
            text_char(out, '\n');
        }
    }
}
