/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of formats, each the text of a rule.  A new format is one more row. */
#include "format/format_int.h"

#include <string.h>

static const struct {
    const char *head, *note, *text;
} rules[] = {
    { "csr()", "the entries of each row",
      "axis I = m, E(I) = seg : j < n sorted\n" },

    { "csc()", "the entries of each column",
      "axis J = n, E(J) = seg : i < m sorted\n" },

    { "coo()", "row and column of each entry, as they come",
      "fit kept\n"
      "axis E = kept : i < m, j < n\n" },

    { "dcsr()", "the entries of each row that has some",
      "fit kept\n"
      "axis R = kept : i < m sorted unique, E(R) = seg : j < n sorted\n" },

    { "ell(w)", "w places in each row; 0: as many as the longest row needs",
      "fit w\n"
      "axis I = m, L(I) = w : j < n padded\n"
      "map l = rank(i)\n" },

    { "sell(c, sigma)", "slices of c rows, sorted by length in windows of sigma rows",
      "axis S = (m + c - 1) / c, W(S) = seg, L(W) = c : i < m, j < n padded\n"
      "map s = place(i, count(i), sigma) / c, l = place(i, count(i), sigma) % c, w = rank(i)\n" },

    { "bsr(b, c)", "dense blocks of b x c; what is at an edge that no block fits is stored apart",
      "part blocks where i / b < m / b and j / c < n / c\n"
      "axis IB = m / b, JB(IB) = seg : load < n / c sorted unique\n"
      "axis BI(JB) = b : i = b*ib + bi < m, BJ(BI) = c : j = c*jb + bj < n\n"
      "map ib = i / b, jb = j / c, bi = i % b, bj = j % c\n"
      "zeros\n"
      "part edge\n"
      "fit kept\n"
      "axis R = kept : i < m sorted unique, E(R) = seg : j < n sorted\n" },

    { "dbsr(b, c)", "as bsr, without the rows of blocks that have none",
      "part blocks where i / b < m / b and j / c < n / c\n"
      "fit kept\n"
      "axis IB = kept : load < m / b sorted unique, JB(IB) = seg : load < n / c sorted unique\n"
      "axis BI(JB) = b : i = b*ib + bi < m, BJ(BI) = c : j = c*jb + bj < n\n"
      "map ib = i / b, jb = j / c, bi = i % b, bj = j % c\n"
      "zeros\n"
      "part edge\n"
      "fit kept\n"
      "axis R = kept : i < m sorted unique, E(R) = seg : j < n sorted\n" },

    { "sr_bcrs(t, g)", "strips of t rows: t x 1 tiles of the columns with entries, in groups of g",
      "part tiles where i / t < m / t\n"
      "axis S = m / t, Q(S) = seg, C(Q) = g : j < n padded, R(C) = t : i = t*s + r < m\n"
      "map s = i / t, q = index(i / t; j) / g, c = index(i / t; j) % g, r = i % t\n"
      "zeros\n"
      "part edge\n"
      "fit kept\n"
      "axis R = kept : i < m sorted unique, E(R) = seg : j < n sorted\n" },

    { "dia()", "whole diagonals, whose offsets are stored",
      "fit diagonals\n"
      "axis O = diagonals : off sorted unique, R(O) = m : i = r < m, j = r + off(o) < n padded\n"
      "map off = j - i, r = i\n"
      "zeros\n" },

    { "band(l, u)", "l diagonals below and u above the main one, by rows",
      "axis I = m, B(I) = l + u + 1 : j = i + b - l < n padded\n"
      "map b = j - i + l\n"
      "zeros\n" },

    { "n_m(k, g)", "k places in each group of g columns of a row",
      "axis I = m, Q(I) = (n + g - 1) / g, L(Q) = k : o < g, j = g*q + o < n padded\n"
      "map q = j / g, l = rank(i, j / g), o = j % g\n" },

    { "csf()", "compressed levels one under another, of three coordinates",
      "of i < a, j < b, k < c\n"
      "axis I = a, J(I) = seg : load < b sorted unique, E(J) = seg : k < c sorted\n" },

    { "ragged()", "rows of their own length, whose columns are 0, 1, ...",
      "axis I = m, E(I) = seg : j = e < n\n"
      "map e = j\n"
      "zeros\n" },

    { "padded_csr(w)", "as csr, with the length of each row a multiple of w",
      "axis I = m, Q(I) = seg, L(Q) = w : j < n padded\n"
      "map q = rank(i) / w, l = rank(i) % w\n" },

    { "hyb(c, k)", "c column parts, in each rows of 1, 2, 4, ... 2^k places; longer ones in pieces",
      "let cols = max(1, (n + c - 1) / c)\n"
      "let len = count(i, j / cols)\n"
      "part b for p in c, q in k + 1 where j / cols == p and bits(len) == q\n"
      "let w = exp2(q)\n"
      "fit kept\n"
      "axis R = kept : i < m sorted unique, L(R) = w : j < n padded\n"
      "map l = rank(i)\n"
      "part long for p in c where j / cols == p\n"
      "let w = exp2(k)\n"
      "fit kept\n"
      "axis R = kept : i < m sorted unique, Q(R) = seg, L(Q) = w : j < n padded\n"
      "map q = rank(i) / w, l = rank(i) % w\n" },

    { "hyb3(c, k)", "hyb of each relation r of a graph, rows sorted by r",
      "of r < nr, i < m, j < n\n"
      "let cols = max(1, (n + c - 1) / c)\n"
      "let len = count(r, i, j / cols)\n"
      "part b for p in c, s in k + 1 where j / cols == p and bits(len) == s\n"
      "let w = exp2(s)\n"
      "fit kept\n"
      "axis D = kept : r < nr, i < m sorted unique, L(D) = w : j < n padded\n"
      "map l = rank(r, i)\n"
      "part long for p in c where j / cols == p\n"
      "let w = exp2(k)\n"
      "fit kept\n"
      "axis D = kept : r < nr, i < m sorted unique, Q(D) = seg, L(Q) = w : j < n padded\n"
      "map q = rank(r, i) / w, l = rank(r, i) % w\n" },

    { "band_rest(w)", "a band of w diagonals to each side, and csr for the rest",
      "part band where abs(i - j) <= w\n"
      "axis I = m, B(I) = 2*w + 1 : j = i + b - w < n padded\n"
      "map b = j - i + w\n"
      "zeros\n"
      "part rest\n"
      "axis I = m, E(I) = seg : j < n sorted\n" },

    { "blocks_rest(b, c, t)", "blocks of b x c with at least t entries, and csr for the rest",
      "part rest where i / b >= m / b or j / c >= n / c or count(i / b, j / c) < t\n"
      "axis I = m, E(I) = seg : j < n sorted\n"
      "part blocks where i / b < m / b and j / c < n / c\n"
      "axis IB = m / b, JB(IB) = seg : load < n / c sorted unique\n"
      "axis BI(JB) = b : i = b*ib + bi < m, BJ(BI) = c : j = c*jb + bj < n\n"
      "map ib = i / b, jb = j / c, bi = i % b, bj = j % c\n"
      "zeros\n" },

};
enum { NRULES = sizeof rules / sizeof *rules };

const char *fmt_list(int i, const char **note)
{
    if (i < 0 || i >= NRULES)
        return NULL;
    *note = rules[i].note;
    return rules[i].head;
}

const char *fmt_find_rule(Arena *arena, const char *name)
{
    Text t = { .arena = arena };

    for (int i = 0; i < NRULES; i++)
        if (strcspn(rules[i].head, "(") == strlen(name) &&
            strncmp(rules[i].head, name, strlen(name)) == 0) {
            text_f(&t, "format %s  # %s\n%s", rules[i].head, rules[i].note, rules[i].text);
            return t.s;
        }
    return NULL;
}
