/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Damages a program text: a piece dropped, doubled, exchanged or replaced, a line moved, a byte
 * changed, the end cut off.  Most results must be refused politely; some are programs. */
#include "random/random.h"
#include "random/token.h"

#include <string.h>

static const char *const words[] = {
    "0",
    "1",
    "-1",
    "7",
    "1000000",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "0.5",
    "1e400",
    "nan",
    "inf",
    "seg",
    "one",
    "built",
    "rows",
    "load",
    "table",
    "ident",
    "sorted",
    "unique",
    "padded",
    "once",
    "for",
    "in",
    "let",
    "if",
    "at",
    "and",
    "or",
    "not",
    "temp",
    "inout",
    "const",
    "axis",
    "f32",
    "f64",
    "i32",
    "i64",
    "f16",
    "fill",
    "stored",
    "select",
    "exp",
    "pos",
    "loc",
    "size",
    "max",
    "dense",
    "compressed",
    "ell",
    "program",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "<=",
    "==",
    "!=",
    "=",
    "+=",
    "max=",
    "|=",
    "->",
    "@",
    "_",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "\n",
    "\n    ",
    " ",
    "#",
    "I",
    "i",
    "x",
};

static int any_piece(Rng *r, const Pieces *p)
{
    return rng_int(r, 0, p->n - 1);
}

static const char *copy_piece(Arena *a, Piece x)
{
    char *s = arena_alloc(a, x.n + 1);

    memcpy(s, x.s, x.n);
    return s;
}

/* A piece of the same sort as piece i, so that the text still reads and means something else. */
static const char *cousin(Arena *a, Rng *r, const Pieces *p, int i)
{
    for (int tries = 0; tries < 40; tries++) {
        Piece x = p->piece[any_piece(r, p)], y = p->piece[i];
        bool name = x.s[0] >= 'A', was = y.s[0] >= 'A';
        bool digit = x.s[0] >= '0' && x.s[0] <= '9', had = y.s[0] >= '0' && y.s[0] <= '9';

        if (name == was && digit == had && (x.n != y.n || memcmp(x.s, y.s, x.n) != 0))
            return copy_piece(a, x);
    }
    return words[rng_int(r, 0, (int)(sizeof words / sizeof *words) - 1)];
}

static int line_start(const Pieces *p, int i)
{
    while (i > 0 && *p->piece[i - 1].s != '\n')
        i--;
    return i;
}

static int line_end(const Pieces *p, int i)
{
    while (i < p->n && *p->piece[i].s != '\n')
        i++;
    return i < p->n ? i + 1 : i;
}

/* The line of piece i moved to before line piece `to`. */
static const char *move_line(Arena *a, const Pieces *p, int i, int to)
{
    int from = line_start(p, i), end = line_end(p, i);
    Text line = { .arena = a };
    Pieces rest;

    text_str(&line, "");
    for (int k = from; k < end; k++)
        text_put(&line, p->piece[k].s, p->piece[k].n);
    pieces_split(a, &rest, pieces_join(a, p, from, end, ""));
    to = line_start(&rest, to < rest.n ? to : rest.n);
    return pieces_join(a, &rest, to, to, line.s);
}

static const char *change_byte(Arena *a, Rng *r, const char *text)
{
    static const char signs[] = "0123456789,;:()[]{}=+-*/%@<>_ \n\tabIJx";
    char *s = arena_copy(a, text, strlen(text) + 1);
    int at = rng_int(r, 0, (int)strlen(s) - 1);

    if (rng_p(r, 15))
        s[at] = 0; /* cut off */
    else
        s[at] = rng_p(r, 50) ? (char)rng_int(r, 1, 255) : signs[rng_int(r, 0, sizeof signs - 2)];
    return s;
}

static const char *mutate_once(Arena *a, Rng *r, const char *text)
{
    Pieces p;
    int i;

    if (strlen(text) < 2)
        return text;
    pieces_split(a, &p, text);
    i = any_piece(r, &p);
    while (*p.piece[i].s == ' ' && rng_p(r, 90))
        i = any_piece(r, &p);
    switch (rng_int(r, 0, 9)) {
    case 0: return pieces_join(a, &p, i, i + 1, "");
    case 1: return pieces_join(a, &p, i, i, copy_piece(a, p.piece[i]));
    case 2: return pieces_join(a, &p, i, i, copy_piece(a, p.piece[any_piece(r, &p)]));
    case 3: return pieces_join(a, &p, line_start(&p, i), line_end(&p, i), "");
    case 4: return move_line(a, &p, i, any_piece(r, &p));
    case 5: return change_byte(a, r, text);
    case 6:
        return pieces_join(a, &p, i, i + 1,
                           words[rng_int(r, 0, (int)(sizeof words / sizeof *words) - 1)]);
    default: return pieces_join(a, &p, i, i + 1, cousin(a, r, &p, i));
    }
}

const char *mutate(Arena *a, uint64_t seed, const char *text)
{
    Rng r = { seed ^ 0x6d757461u };

    do
        text = mutate_once(a, &r, text);
    while (rng_p(&r, 25));
    return text;
}
