/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Program text as a list of pieces, for the shrinker and the mutations: names, numbers, signs, and
 * line ends with the indentation after them.  Put one after another they give the text again. */
#include "random/token.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static size_t piece_length(const char *s)
{
    size_t n = 1;

    if (*s == '\n')
        while (s[n] == ' ')
            n++;
    else if (is_word(*s))
        while (is_word(s[n]))
            n++;
    else if (*s == '#')
        while (s[n] != 0 && s[n] != '\n')
            n++;
    else if (*s == ' ')
        while (s[n] == ' ')
            n++;
    else if (s[1] != 0 && strchr("=>", s[1]) != NULL && strchr("+|<>=!-", *s) != NULL)
        n = 2;
    return n;
}

void pieces_split(Arena *a, Pieces *p, const char *text)
{
    *p = (Pieces){ .n = 0 };
    for (size_t n; *text != 0; text += n) {
        n = piece_length(text);
        p->piece = arena_grow(a, p->piece, p->n, &p->cap, sizeof *p->piece);
        p->piece[p->n++] = (Piece){ text, n };
    }
}

const char *pieces_join(Arena *a, const Pieces *p, int from, int to, const char *instead)
{
    Text t = { .arena = a };

    text_str(&t, "");
    for (int i = 0; i < p->n; i++) {
        if (i == from)
            text_str(&t, instead);
        if (i < from || i >= to)
            text_put(&t, p->piece[i].s, p->piece[i].n);
    }
    if (from >= p->n)
        text_str(&t, instead);
    return t.s;
}

bool pieces_balanced(const Pieces *p, int from, int to)
{
    int depth = 0;

    for (int i = from; i < to; i++) {
        depth += strchr("([{", *p->piece[i].s) != NULL;
        depth -= strchr(")]}", *p->piece[i].s) != NULL;
        if (depth < 0)
            return false;
    }
    return depth == 0;
}
