/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Plain and extended XYZ to atoms and back: a line with the number of atoms, a line of properties,
 * a line for each atom.  What a file declares is held against the bytes that are left before memory
 * is asked for. */
#include "io/io_int.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 1000, MOST_NAME = 40 };

typedef struct Xyz {
    Cursor c;
    Names names;
    IoAtoms *out;
    const char **name;
    int cap;
    bool has_cell, has_pbc;
    int columns, species, pos; /* how many there are; where these two begin, -1: not there */
} Xyz;

static _Noreturn void fail_word(const Xyz *t, Bytes word, const char *expected)
{
    char quote[IO_QUOTE];

    if (word.n == 0)
        io_fail(&t->c, word.p, ST_PARSE, "expected %s, but there is nothing here", expected);
    io_fail(&t->c, word.p, ST_PARSE, "expected %s, found '%s'", expected,
            io_quote(quote, word.p, word.n));
}

/* Nothing but blanks is left of a line or a value. */
static void end_line(const Xyz *t, Cursor *c, const char *expected)
{
    Bytes word = io_take_word(c);

    if (word.n > 0)
        fail_word(t, word, expected);
}

/* Goes to the next line, of which `what` tells what is on it. */
static void next_line(Xyz *t, const char *what)
{
    end_line(t, &t->c, "the end of the line");
    if (t->c.p == t->c.end)
        io_fail(&t->c, t->c.p, ST_PARSE, "the file ends before %s; it is incomplete", what);
    t->c.p++;
}

static double take_real(const Xyz *t, Cursor *c, const char *expected)
{
    Bytes word = io_take_word(c);
    double v;

    if (!io_real_parse(word, &v) || !isfinite(v))
        fail_word(t, word, expected);
    return v;
}

static void read_count(Xyz *t)
{
    Bytes word = io_take_word(&t->c);

    if (!num_parse_int((const char *)word.p, word.n, &t->out->n) || t->out->n < 0)
        fail_word(t, word, "the number of atoms");
    next_line(t, "its second line");
    /* "H 0 0 0\n"; the last line may lack its end */
    if (t->out->n > (int64_t)((io_left(&t->c) + 1) / 8))
        io_fail(&t->c, word.p, ST_PARSE,
                "the file has no room for so many atoms; it is incomplete, or this number is "
                "wrong");
}

/* The value of a property as a cursor of its own, so that what goes wrong in it has its place. */
static Cursor value_of(const Xyz *t, Bytes value)
{
    Cursor c = t->c;

    c.p = value.p;
    c.end = value.p + value.n;
    return c;
}

static void read_lattice(Xyz *t, Bytes value)
{
    Cursor c = value_of(t, value);

    for (int k = 0; k < 9; k++)
        t->out->cell[k] = take_real(t, &c, "a Lattice of nine numbers");
    end_line(t, &c, "a Lattice of nine numbers");
    t->has_cell = true;
}

static void read_pbc(Xyz *t, Bytes value)
{
    Cursor c = value_of(t, value);

    for (int k = 0; k < 3; k++) {
        Bytes word = io_take_word(&c);
        bool yes = io_is_word(word, "t") || io_is_word(word, "true") || io_is_word(word, "1");

        if (!yes && !io_is_word(word, "f") && !io_is_word(word, "false") && !io_is_word(word, "0"))
            fail_word(t, word, "a pbc of three T or F");
        t->out->pbc[k] = yes;
    }
    end_line(t, &c, "a pbc of three T or F");
    t->has_pbc = true;
}

/* Up to the next colon, which is taken. */
static Bytes take_field(Cursor *c)
{
    const uint8_t *p = c->p;

    while (c->p < c->end && *c->p != ':')
        c->p++;
    c->p += c->p < c->end;
    return (Bytes){ p, (size_t)(c->p - p) - (c->p > p && c->p[-1] == ':') };
}

/* name:type:columns, and again */
static void read_columns(Xyz *t, Bytes value)
{
    Cursor c = value_of(t, value);

    t->columns = 0;
    t->species = t->pos = -1;
    while (c.p < c.end) {
        Bytes name = take_field(&c), type = take_field(&c), count = take_field(&c);
        int64_t n;

        if (type.n != 1 || memchr("SRIL", type.p[0], 4) == NULL)
            fail_word(t, type, "a type of a column, S, R, I or L");
        if (!num_parse_int((const char *)count.p, count.n, &n) || n < 1 || n > MOST_COLUMNS)
            fail_word(t, count, "a number of columns, 1 to 1000");
        if (io_is_word(name, "species") && type.p[0] == 'S' && n == 1)
            t->species = t->columns;
        if (io_is_word(name, "pos") && type.p[0] == 'R' && n == 3)
            t->pos = t->columns;
        t->columns += (int)n;
        if (t->columns > MOST_COLUMNS)
            fail_word(t, count, "at most 1000 columns");
    }
    if (t->species < 0 || t->pos < 0)
        io_fail(&t->c, value.p, ST_PARSE, "Properties must have species:S:1 and pos:R:3");
}

/* A word, or what is in quotes or braces; none of them goes over the end of the line. */
static Bytes take_value(Xyz *t)
{
    Cursor *c = &t->c;
    const uint8_t *p = c->p;
    uint8_t close;

    if (p == c->end || (*p != '"' && *p != '\'' && *p != '{'))
        return io_take_word(c);
    close = *p == '{' ? '}' : *p;
    for (c->p++; c->p < c->end && *c->p != close && *c->p != '\n'; c->p++)
        if (*c->p == '\\' && c->p + 1 < c->end && c->p[1] == close)
            c->p++;
    if (c->p == c->end || *c->p == '\n')
        io_fail(c, p, ST_PARSE, "this value has no end; close it with %c", close);
    c->p++;
    return (Bytes){ p + 1, (size_t)(c->p - p) - 2 };
}

/* key=value; one without a value, and words of a plain comment, mean nothing here. */
static void read_property(Xyz *t)
{
    Cursor *c = &t->c;
    Bytes key = { c->p, 0 };

    while (c->p < c->end && *c->p != '=' && !io_is_blank(*c->p) && *c->p != '\n')
        c->p++;
    key.n = (size_t)(c->p - key.p);
    if (c->p < c->end && *c->p == '=') {
        Bytes value;

        c->p++;
        value = take_value(t);
        if (io_is_word(key, "lattice"))
            read_lattice(t, value);
        else if (io_is_word(key, "pbc"))
            read_pbc(t, value);
        else if (io_is_word(key, "properties"))
            read_columns(t, value);
    }
    io_skip_blanks(c);
}

static void read_properties(Xyz *t)
{
    io_skip_blanks(&t->c);
    while (t->c.p < t->c.end && *t->c.p != '\n')
        read_property(t);
    for (int k = 0; k < 3 && t->has_cell && !t->has_pbc; k++)
        t->out->pbc[k] = true;
    for (int k = 0; k < 3; k++)
        if (t->out->pbc[k] && !t->has_cell)
            io_fail(&t->c, t->c.begin, ST_PARSE,
                    "the atoms are periodic, but there is no Lattice; add Lattice=\"...\" to the "
                    "second line, or remove pbc");
}

static int32_t kind_of(Xyz *t, Bytes word, int32_t last)
{
    const char *name;

    for (size_t k = 0; k < word.n; k++)
        if (word.n > MOST_NAME || word.p[k] < 32 || word.p[k] == 127)
            fail_word(t, word, "a name of at most 40 characters that can be printed");
    name = name_intern(&t->names, (const char *)word.p, word.n);
    if (last < t->out->kinds && t->name[last] == name)
        return last;
    for (int k = 0; k < t->out->kinds; k++)
        if (t->name[k] == name)
            return k;
    if (t->out->kinds == IO_KINDS)
        io_fail(&t->c, word.p, ST_LIMIT, "more than %d kinds of atoms", IO_KINDS);
    t->name = arena_grow(t->names.arena, t->name, t->out->kinds, &t->cap, sizeof *t->name);
    t->name[t->out->kinds] = name;
    return t->out->kinds++;
}

/* Plain files may have more columns, of which nothing is known; extended ones have those that the
 * properties say. */
static void read_atom(Xyz *t, int64_t i)
{
    Cursor *c = &t->c;
    int k = 0;

    for (; k < t->columns; k++) {
        if (k == t->species) {
            Bytes word = io_take_word(c);

            if (word.n == 0)
                fail_word(t, word, "the name of an atom");
            t->out->kind[i] = kind_of(t, word, i > 0 ? t->out->kind[i - 1] : 0);
        } else if (k >= t->pos && k < t->pos + 3) {
            t->out->pos[3 * i + k - t->pos] = take_real(t, c, "a coordinate, a finite number");
        } else if (io_take_word(c).n == 0) {
            fail_word(t, (Bytes){ c->p, 0 }, "a column, as Properties say");
        }
    }
}

static void read_atoms(Xyz *t, Arena *arena)
{
    bool plain = t->columns == 0;

    if (plain) {
        t->columns = 4;
        t->pos = 1;
    }
    t->out->pos = arena_array(arena, 3 * t->out->n, sizeof *t->out->pos);
    t->out->kind = arena_array(arena, t->out->n, sizeof *t->out->kind);
    for (int64_t i = 0; i < t->out->n; i++) {
        next_line(t, "its last atom");
        read_atom(t, i);
        while (plain && io_take_word(&t->c).n > 0)
            continue;
    }
    end_line(t, &t->c, "the end of the line");
}

void io_xyz_parse(Arena *arena, Bytes b, const char *file, IoAtoms *out)
{
    Xyz t = { .c = io_cursor(arena->err, file, b), .out = out, .names = { .arena = arena } };

    *out = (IoAtoms){ 0 };
    t.c.text = true;
    read_count(&t);
    read_properties(&t);
    read_atoms(&t, arena);
    out->name = t.name;
}

static void print_reals(Text *out, const double *v, int n)
{
    for (int k = 0; k < n; k++) {
        char s[NUM_TEXT];
        int length = num_print(s, v[k]);

        if (k > 0)
            text_char(out, ' ');
        text_put(out, s, (size_t)length);
    }
}

void io_xyz_print(Text *out, const IoAtoms *a)
{
    bool periodic = a->pbc[0] || a->pbc[1] || a->pbc[2];

    for (int k = 0; k < 9; k++)
        periodic = periodic || a->cell[k] != 0;
    text_f(out, "%lld\n", (long long)a->n);
    if (periodic) {
        text_str(out, "Lattice=\"");
        print_reals(out, a->cell, 9);
        text_str(out, "\" ");
    }
    text_str(out, "Properties=species:S:1:pos:R:3");
    if (periodic)
        text_f(out, " pbc=\"%c %c %c\"", a->pbc[0] ? 'T' : 'F', a->pbc[1] ? 'T' : 'F',
               a->pbc[2] ? 'T' : 'F');
    text_char(out, '\n');
    for (int64_t i = 0; i < a->n; i++) {
        text_str(out, a->name[a->kind[i]]);
        text_char(out, ' ');
        print_reals(out, a->pos + 3 * i, 3);
        text_char(out, '\n');
    }
}
