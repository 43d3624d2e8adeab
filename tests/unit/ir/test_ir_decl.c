/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/prog.c, axis.c and parse_decl.c: the header, axes and buffers. */
#include "unit/ir_bed.h"

#define P "program p(m, n)\n"

static const Refusal headers[] = {
    { "progam p()", ST_PARSE, 1, 1, "expected `program name(sizes)`, found `progam`" },
    { "program 3()", ST_PARSE, 1, 9, "expected the program's name, found `3`" },
    { "program p", ST_PARSE, 1, 10, "expected `(` and the sizes, found the end of the line" },
    { "program p(3)", ST_PARSE, 1, 11, "expected a size, found `3`" },
    { "program p(m n)", ST_PARSE, 1, 13, "expected `,` or `)`, found `n`" },
    { "program p(m", ST_PARSE, 1, 12, "expected `,` or `)`, found the end of the line" },
    { "program p(m) axis", ST_PARSE, 1, 14, "expected the end of the line, found `axis`" },
    { "program p(m, m)", ST_CHECK, 1, 14, "m is already the name of a size; choose another" },
    { "program p(M)", ST_CHECK, 1, 11,
      "M begins with a capital, which is for axes; use a small letter" },
    { "program p(for)", ST_CHECK, 1, 11, "for is a word of the language; choose another name" },
    { "program p(exp)", ST_CHECK, 1, 11, "exp is a word of the language" },
    { "program p(f32)", ST_CHECK, 1, 11, "f32 is a word of the language" },
    { "program p(_)", ST_CHECK, 1, 11, "_ is a word of the language" },
    { "program axis()", ST_CHECK, 1, 9, "axis is a word of the language" },
    { "program aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa()", ST_LIMIT, 1, 9,
      "a name of more than 64 characters" },
};

TEST(a_wrong_header_is_refused_where_it_is_wrong)
{
    REFUSES(headers);
}

static const Refusal axes[] = {
    { P "axis i = m", ST_CHECK, 2, 6, "the name of an axis begins with a capital, and i does not" },
    { P "axis I = m, k = n", ST_CHECK, 2, 13,
      "the name of an axis begins with a capital, and k does not" },
    { P "axis = m", ST_PARSE, 2, 6, "expected the name of an axis, found `=`" },
    { P "axis I m", ST_PARSE, 2, 8, "expected `=`, found `m`" },
    { P "axis I = m\naxis I = n", ST_CHECK, 3, 6,
      "I is already the name of an axis; choose another" },
    { P "f64 A[m]\naxis A = n", ST_CHECK, 3, 6,
      "A is already the name of a buffer; choose another" },
    { P "axis M = 3", ST_CHECK, 2, 6, "m is already the name of a size and cannot be a variable" },
    { P "axis Ab = m, AB = n", ST_CHECK, 2, 14,
      "axes Ab and AB would have the same variable ab; rename one" },
    { P "axis Size = m", ST_CHECK, 2, 6, "size is a word of the language" },
    { P "axis E(I) = seg", ST_CHECK, 2, 8, "axis I is not declared before this; declare it first" },
    { P "axis E = compressed(I, n)", ST_CHECK, 2, 21, "axis I is not declared before this" },
    { P "axis I = compressed(m, n)", ST_CHECK, 2, 21, "axis m is not declared before this" },
    { P "axis E(3) = seg", ST_PARSE, 2, 8, "expected an axis, found `3`" },
    { P "axis E(I = seg", ST_CHECK, 2, 8, "axis I is not declared" },
    { P "axis I = m, E(I = seg", ST_PARSE, 2, 17, "expected `)`, found `=`" },
    { P "axis E = seg", ST_CHECK, 2, 6, "axis E: seg needs a parent, as in E(I) = seg" },
    { P "axis E = one", ST_CHECK, 2, 6, "axis E: one needs a parent, as in E(I) = one" },
    { P "axis E = {1, 2}", ST_CHECK, 2, 6,
      "axis E: a table of extents needs a parent, as in E(I) = {1, 3}" },
    { P "axis I = m, E(I) = {1, 2}", ST_CHECK, 2, 13,
      "a table of 2 extents needs a parent of constant size, and I is not" },
    { P "axis I = 3, E(I) = {1, 2}", ST_CHECK, 2, 13,
      "axis E gives 2 extents, but its parent I has 3 positions" },
    { P "axis I = 2, E(I) = {1, -2}", ST_CHECK, 2, 13, "axis E: -2 is not an extent" },
    { P "axis I = 2, E(I) = {9223372036854775807, 1}", ST_CHECK, 2, 13,
      "axis E: 1 is not an extent" },
    { P "axis I = 2, E(I) = {1 2}", ST_PARSE, 2, 23, "expected `,` or `}`, found `2`" },
    { P "axis I = 2, E(I) = {1, x}", ST_PARSE, 2, 24, "expected an integer, found `x`" },
    { P "axis I = 2, E(I) = {1, 9223372036854775808}", ST_LIMIT, 2, 24,
      "an integer outside 64 bits" },
    { P "axis I = 2, E(I) = {1, -9223372036854775809}", ST_LIMIT, 2, 25,
      "an integer outside 64 bits" },
    { P "axis I = 1.5", ST_CHECK, 2, 6, "axis I: the extent is an integer expression of sizes" },
    { P "axis I = (1, 2)", ST_CHECK, 2, 6, "axis I: the extent is an integer expression of sizes" },
    { P "axis I = (m < n)", ST_CHECK, 2, 6,
      "axis I: the extent is an integer expression of sizes" },
    { P "axis I = abs(m)", ST_CHECK, 2, 6, "axis I: the extent may use sizes and + - * / % only" },
    { P "axis K = m\naxis I = size(K)", ST_CHECK, 3, 6,
      "axis I: the extent may use sizes and + - * / % only" },
    { P "axis K = m\naxis I = k", ST_CHECK, 3, 6,
      "axis I: the extent may use sizes and + - * / % only" },
    { P "axis I = i", ST_CHECK, 2, 10, "i has no value yet: axis I is being declared" },
    { P "axis I = q", ST_CHECK, 2, 10,
      "q is not known here: no size, variable or let has this name; declare it" },
    { P "axis K = m\naxis I = K", ST_CHECK, 3, 10,
      "K is an axis; its variable is k, its number of positions size(K)" },
    { P "axis I = dense m", ST_PARSE, 2, 16, "expected `(`, found `m`" },
    { P "axis I = dense(m", ST_PARSE, 2, 17, "expected `)`, found the end of the line" },
    { P "axis I = m, J = compressed(I)", ST_PARSE, 2, 29, "expected `,`, found `)`" },
    { P "axis I = m, J = ell(I, 3)", ST_PARSE, 2, 25, "expected `,`, found `)`" },
    { P "axis I = m, J(I) = compressed(I, n)", ST_CHECK, 2, 20, "compressed is not a function" },
    { P "axis I = m : 3", ST_PARSE, 2, 14,
      "expected a coordinate: load, table {...}, or a name, found `3`" },
    { P "axis I = m : load < n, j < n", ST_CHECK, 2, 24,
      "axis I has several coordinates; give each a name" },
    { P "axis I = m : j < n, load < n", ST_CHECK, 2, 21,
      "axis I has several coordinates; give each a name" },
    { P "axis I = m : j < n, j < m", ST_CHECK, 2, 21, "axis I has two coordinates named j" },
    { P "axis I = m : i < n", ST_CHECK, 2, 14,
      "axis I: a coordinate cannot have the name of the variable i; rename it" },
    { P "axis I = m, E(I) = seg : i < n", ST_CHECK, 2, 26,
      "axis E: a coordinate cannot have the name of the variable i" },
    { P "axis I = m : start < n", ST_CHECK, 2, 14,
      "axis I: a coordinate cannot be named start; I.start is where the entries of each parent" },
    { P "axis I = m : n < n", ST_CHECK, 2, 14,
      "axis I: a coordinate cannot have the name of the size n" },
    { P "axis I = m : table 3", ST_PARSE, 2, 20, "expected `{`, found `3`" },
    { P "axis I = m : table {1, 2}", ST_CHECK, 2, 6,
      "axis I: a table of 2 coordinates needs an axis of constant size" },
    { P "axis I = 3 : table {1, 2}", ST_CHECK, 2, 6,
      "axis I: a table of 2 coordinates, but the axis has 3 positions" },
    { P "axis I = m : j = {1, 2}", ST_CHECK, 2, 6,
      "axis I: a table of 2 coordinates needs an axis of constant size" },
    { P "axis I = m : j = 1.5", ST_CHECK, 2, 6,
      "axis I: coordinate j may use its own position, earlier coordinates" },
    { P "axis I = m : j = j + 1", ST_CHECK, 2, 18, "j is not known here" },
    { P "axis I = m : j = pos(i)", ST_CHECK, 2, 6, "axis I: coordinate j may use" },
    { P "axis I = m : j = k(i), k = i", ST_CHECK, 2, 18,
      "k is neither a function nor a coordinate of axis I" },
    { P "axis I = m, E(I) = seg, F(I) = seg : j = e", ST_CHECK, 2, 42, "e is not known here" },
    { P "axis I = m, K = n : j = i", ST_CHECK, 2, 25, "i is not known here" },
    { P "i64 X[m]\naxis I = m : j = X[0]", ST_CHECK, 3, 6, "axis I: coordinate j may use" },
    { P "i64 X[m]\naxis I = m : j = X[i]", ST_CHECK, 3, 18,
      "i has no value yet: axis I is being declared" },
    { P "axis I = m : j = size(I)", ST_CHECK, 2, 23, "size(E) wants an axis, and I is none" },
    { P "axis K = m\naxis I = m : j = size(K)", ST_CHECK, 3, 6, "axis I: coordinate j may use" },
    { P "axis I = m : j = max(i, 2)", ST_CHECK, 2, 6, "axis I: coordinate j may use" },
    { P "axis I = m : j < 1.5", ST_CHECK, 2, 6,
      "axis I: the bound is an integer expression of sizes" },
    { P "axis I = m : j < i", ST_CHECK, 2, 6,
      "axis I: the bound may use sizes and + - * / % only" },
    { P "axis I = m padded", ST_CHECK, 2, 6,
      "axis I: padded skips coordinates outside their bound, and none has a bound" },
    { P "axis I = m : j padded", ST_CHECK, 2, 6,
      "axis I: padded skips coordinates outside their bound" },
    { P "axis I = m sortd", ST_PARSE, 2, 12, "expected the end of the line, found `sortd`" },
    { P "axis U = built", ST_CHECK, 2, 6,
      "axis U is built by the program and needs a coordinate to insert" },
    { P "axis U = built : load", ST_CHECK, 2, 6,
      "axis U is built by the program: each coordinate is a load with a bound" },
    { P "axis U = built : j = u < n", ST_CHECK, 2, 6,
      "axis U is built by the program: each coordinate is a load with a bound" },
    { P "axis U = built : load < n, E(U) = seg", ST_CHECK, 2, 28,
      "axis E hangs under a built axis, whose size is known only during a run, and cannot be seg" },
    { P "axis U = built : load < n, E(U) = 2 : load < n", ST_CHECK, 2, 28,
      "axis E hangs under a built axis, whose size is known only during a run, and cannot load "
      "coordinates" },
    { P "axis U = built : load < n, E(U) = 2, F(E) = seg", ST_CHECK, 2, 38,
      "axis F hangs under a built axis" },
    { P
      "axis A0 = m, A1(A0) = 2, A2(A1) = 2, A3(A2) = 2, A4(A3) = 2, A5(A4) = 2, A6(A5) = 2, A7(A6) = 2, A8(A7) = 2, A9(A8) = 2, A10(A9) = 2, A11(A10) = 2, A12(A11) = 2, A13(A12) = 2, A14(A13) = 2, A15(A14) = 2, A16(A15) = 2",
      ST_LIMIT, 2, 205, "axis A16: more than 16 axes one under another" },
    { P "axis I = m : c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16",
      ST_LIMIT, 2, 84, "axis I: more than 16 coordinates" },
    { P "f64 S[]\nfor a in 3: S[] += 1\naxis A = m", ST_CHECK, 4, 6,
      "axis A: a statement before has a variable named a; rename one, or declare the axis first" },
    { P
      "axis I = m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m",
      ST_LIMIT, 2, 6, "axis I: the extent has more than 256 operators; give it a size of its own" },
    { P
      "axis I = m : j < m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m+m",
      ST_LIMIT, 2, 6, "axis I: the bound has more than 256 operators" },
    { P
      "axis I = m : j = i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i",
      ST_LIMIT, 2, 6, "axis I: coordinate j has more than 256 operators; load it instead" },
};

TEST(a_wrong_axis_is_refused_with_its_remedy)
{
    REFUSES(axes);
}

static const Refusal rows[] = {
    { P "axis P = rows { 1 }", ST_PARSE, 2, 15,
      "expected the names of the coordinates, found `{`" },
    { P "axis P = rows a -> { 1 }", ST_PARSE, 2, 20, "expected the name of the values, found `{`" },
    { P "axis P = rows a 1 }", ST_PARSE, 2, 17, "expected `{`, found `1`" },
    { P "axis P = rows a { x }", ST_PARSE, 2, 19, "expected an integer, found `x`" },
    { P "axis P = rows a b { 1 }", ST_PARSE, 2, 23, "expected an integer, found `}`" },
    { P "axis P = rows a -> c { 1 }", ST_PARSE, 2, 26,
      "expected `->` and the value of this row, found `}`" },
    { P "axis P = rows a -> c { 1 -> x }", ST_PARSE, 2, 29, "expected a number, found `x`" },
    { P "axis P = rows a { 1 2 }", ST_PARSE, 2, 21, "expected `,`, `;` or `}`, found `2`" },
    { P "axis P = rows a { 1; 2 }", ST_CHECK, 2, 6,
      "axis P: `;` goes on to the next parent, and it has none; use `,`" },
    { P "axis I = 3, P(I) = rows a { 1; 2 }", ST_CHECK, 2, 13,
      "axis P gives 2 extents, but its parent I has 3 positions" },
    { P "axis I = m, P(I) = rows a { 1; 2 }", ST_CHECK, 2, 13,
      "a table of 2 extents needs a parent of constant size, and I is not" },
    { P "axis P = rows A { 1 }", ST_CHECK, 2, 6, "A begins with a capital, which is for axes" },
    { P "axis P = rows a a { 1 1 }", ST_CHECK, 2, 6, "axis P has two coordinates named a" },
    { P "axis P = rows p { 1 }", ST_CHECK, 2, 6,
      "a coordinate cannot have the name of the variable p" },
    { P "f64 c[m]\naxis P = rows a -> c { 1 -> 2 }", ST_CHECK, 3, 6,
      "c is already the name of a buffer" },
    { P "axis P = rows c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11 c12 c13 c14 c15 c16 { }", ST_LIMIT, 2,
      69, "more than 16 coordinates" },
    { P "axis P = rows a { 1 } padded", ST_CHECK, 2, 6,
      "axis P: padded skips coordinates outside their bound" },
};

TEST(wrong_rows_are_refused)
{
    REFUSES(rows);
}

static const Refusal buffers[] = {
    { P "f64 3", ST_PARSE, 2, 5, "expected the name of a buffer, found `3`" },
    { P "f64 A", ST_PARSE, 2, 6, "expected `[`, found the end of the line" },
    { P "f64 A[m n]", ST_PARSE, 2, 9, "expected `,` or `]`, found `n`" },
    { P "temp A[m]", ST_PARSE, 2, 6,
      "expected a type: f16, bf16, f32, f64, i32 or i64, found `A`" },
    { P "f64 m[n]", ST_CHECK, 2, 5, "m is already the name of a size; choose another" },
    { P "axis I = m\nf64 I[n]", ST_CHECK, 3, 5,
      "I is already the name of an axis; choose another" },
    { P "f64 A[n], A[m]", ST_CHECK, 2, 11, "A is already the name of a buffer; choose another" },
    { P "f64 exp[n]", ST_CHECK, 2, 5, "exp is a word of the language; choose another name" },
    { P "f64 A[I]", ST_CHECK, 2, 7, "axis I is not declared before this; declare it first" },
    { P "f64 A[1.5]", ST_CHECK, 2, 7,
      "axis of a slot: the extent is an integer expression of sizes" },
    { P "i64 A[m]\nf64 B[A[0]]", ST_CHECK, 3, 7, "axis A is not declared before this" },
    { P "i64 w[m]\nf64 B[w[0]]", ST_CHECK, 3, 7, "axis of a slot: the extent may use sizes" },
    { P "f64 A[m,m,m,m,m,m,m,m,m,m,m,m,m,m,m,m,m]", ST_LIMIT, 2, 39, "A: more than 16 slots" },
    { P "axis I = m, E(I) = seg\nf64 A[E, I]", ST_CHECK, 3, 5,
      "A: axis I stands after its child E; put it before" },
    { P "axis I = m, E(I) = seg\nf64 A[E, E]", ST_CHECK, 3, 5,
      "A: axis E stands twice; only an axis without parent may" },
    { P "axis I = m, E(I) = seg\nf64 A[I, I, E]", ST_CHECK, 3, 5,
      "A: axis I stands twice, so it is not clear which one E is under" },
    { P "const f64 A[3]", ST_CHECK, 2, 11, "A: a const buffer needs its values, = { ... }" },
    { P "const f64 A[m] = {1}", ST_CHECK, 2, 11,
      "A: a const buffer needs axes of constant size, and a slot is not" },
    { P "axis I = m\nconst f64 A[I] = {1}", ST_CHECK, 3, 11,
      "A: a const buffer needs axes of constant size, and I is not" },
    { P "const f64 A[3] = {1, 2}", ST_CHECK, 2, 11, "A has 3 elements and 2 values are given" },
    { P "const f64 A[3] = 1", ST_PARSE, 2, 18, "expected `{`, found `1`" },
    { P "const f64 A[1] = {x}", ST_PARSE, 2, 19, "expected a number, found `x`" },
    { P "const f64 A[2] = {1 2}", ST_PARSE, 2, 21, "expected `,` or `}`, found `2`" },
    { P "const i64 A[1] = {1.5}", ST_PARSE, 2, 19, "expected an integer, found `1.5`" },
    { P "const i32 A[1] = {2147483648}", ST_CHECK, 2, 11, "A: 2147483648 does not fit an i32" },
    { P "f64 A[3] = {1, 2, 3}", ST_CHECK, 2, 5,
      "A: only a const buffer has values in the text; write const" },
    { P "f64 A[m] fill x", ST_PARSE, 2, 15, "expected a number, found `x`" },
    { P "i64 A[m] fill 1.5", ST_CHECK, 2, 5,
      "A: the fill of an i64 buffer is an integer below 2^53" },
    { P "i64 A[m] fill nan", ST_CHECK, 2, 5,
      "A: the fill of an i64 buffer is an integer below 2^53" },
    { P "i64 A[m] fill 9007199254740992", ST_CHECK, 2, 5,
      "A: the fill of an i64 buffer is an integer below 2^53" },
    { P "i32 A[m] fill -2147483649", ST_CHECK, 2, 5,
      "A: the fill of an i32 buffer is an integer below 2^31" },
};

TEST(a_wrong_buffer_is_refused_with_its_remedy)
{
    REFUSES(buffers);
}

#define AX(text) P "axis " text "\n"
#define SAME(text)         \
    {                      \
        AX(text), AX(text) \
    }

/* Short names where they fit exactly, rows for two or more tables; flags in one order. */
static const Canon axis_texts[] = {
    { AX("I = dense(m)"), AX("I = m") },
    { AX("I = dense(2*m + 1)"), AX("I = 2 * m + 1") },
    { AX("I = m\naxis J = n"), AX("I = m\naxis J = n") },
    { AX("I = m, J = n"), AX("I = m\naxis J = n") },
    { AX("I = m\naxis J(I) = seg"), AX("I = m, J = ragged(I)") },
    { AX("I = m, J(I) = seg : load < n"), AX("I = m, J = compressed(I, n)") },
    { AX("I = m, J(I) = seg : load < n padded unique sorted"),
      AX("I = m, J = compressed(I, n) sorted unique padded") },
    SAME("I = m, J(I) = seg : load"),
    SAME("I = m, E(I) = seg : j < n"),
    SAME("I = m, J(I) = seg : a < m, b < 2 * n, c sorted"),
    { AX("I = m, J(I) = 3 : load < n padded"), AX("I = m, J = ell(I, 3, n)") },
    { AX("I = m, J = ell(I, 3, n) padded sorted"), AX("I = m, J = ell(I, 3, n) sorted") },
    SAME("I = m, J(I) = 3 : load < n"),
    SAME("I = m : load < n padded"),
    SAME("I = m, J(I) = one : load < n"),
    SAME("I = m, J(I) = one"),
    SAME("I = m, J(I) = n"),
    SAME("I = m : a = ident < n"),
    SAME("I = m, B(I) = 5 : j = i + b - 2 < n padded"),
    SAME("I = m : ib = i / 2 < n, bi = i % 2 < 2"),
    { AX("I = m, G(I) = n, L(G) = 2 : o < 4, j = 4*g + o(l) < 4*n unique"),
      AX("I = m, G(I) = n, L(G) = 2 : o < 4, j = 4 * g + o < 4 * n unique") },
    { AX("D = m : off, R(D) = n : j = loc(r) + off(d) + pos(d) - loc(d)"),
      AX("D = m : off, R(D) = n : j = r + off(d) + pos(d) - loc(d)") },
    SAME("I = 2 : table {5, -1} < m"),
    SAME("I = 2 : c = {5, -1} < m unique"),
    SAME("I = 3, T(I) = {1, 0, 2}"),
    SAME("I = 0, T(I) = {}"),
    SAME("I = 3 - 3, T(I) = {}, U(T) = {}"),
    SAME("U = built : load < n"),
    { AX("I = m, U(I) = built : a < n, b < m unique sorted"),
      AX("I = m, U(I) = built : a < n, b < m") },
    SAME("U = built : load < n, V(U) = 3, W(U) = built : load < m, T(W) = one"),
    { AX("P = rows a { 1, 2, }"), AX("P = 2 : a = {1, 2}") },
    { AX("P = 2 : a = {1, 2}, b = {3, -4}"), AX("P = rows a b { 1 3, 2 -4 }") },
    SAME("P = 2 : a = {1, 2}, b = {3, -4} < m"),
    { AX("P = 2 : a = {1, 2}, j < n"), AX("P = 2 : a = {1, 2}, j < n") },
    { AX("P = 1 + 1 : a = {1, 2}, b = {3, 4}"), AX("P = 1 + 1 : a = {1, 2}, b = {3, 4}") },
    { AX("P = rows a b { 1 3,\n  2 -4 } unique"), AX("P = rows a b { 1 3, 2 -4 } unique") },
    SAME("P = rows a b {  }"),
    SAME("P = rows a -> c { 1 -> 0.5, 2 -> -0, 3 -> nan, 4 -> -inf, 5 -> 1e-300 }"),
    { AX("I = 4, Q(I) = rows a -> c { 1 -> 1; ; 2 -> 2, 3 -> 3; }"),
      AX("I = 4, Q(I) = rows a -> c { 1 -> 1; ; 2 -> 2, 3 -> 3;  }") },
    { AX("I = 1, Q(I) = rows a -> c { }"), AX("I = 1, Q(I) = rows a -> c {  }") },
    { AX("I = 0, Q(I) = rows a -> c { }"), AX("I = 0, Q(I) = rows a -> c {  }") },
    { AX("I = 2, Q(I) = rows a b { 1 1; 2 2 }, R(Q) = one : a = {1, 2}, b = {3, 4}"),
      AX("I = 2, Q(I) = rows a b { 1 1; 2 2 }, R(Q) = one : a = {1, 2}, b = {3, 4}") },
};

TEST(every_kind_of_axis_is_printed_in_its_shortest_form)
{
    CANONS(axis_texts);
}

/* One line a kind and type of buffers, as long as it stays within 100 columns. */
static const Canon buffer_texts[] = {
    { P "f64 A[ m ,n ], s[]\nf64 B[2*m]\nf32 C[]", P "f64 A[m, n], s[], B[2 * m]\nf32 C[]\n" },
    { P "f64 A[]\ntemp f64 B[]\ninout f16 C[]\nC[] = 1\nbf16 D[]\ni32 E[]\ni64 F[]\n",
      P "f64 A[]\ntemp f64 B[]\ninout f16 C[]\nbf16 D[]\ni32 E[]\ni64 F[]\nc: C[] = 1\n" },
    { P "f64 A[m] fill -0, B[] fill 1e300, C[] fill inf, D[] fill -nan",
      P "f64 A[m] fill -0, B[] fill 1e+300, C[] fill inf, D[] fill nan\n" },
    { P "i64 A[m] fill -9007199254740991\ni32 B[] fill 2147483647",
      P "i64 A[m] fill -9007199254740991\ni32 B[] fill 2147483647\n" },
    { P "const f64 A[2] = {1, -nan}, B[0] = {}, C[] = {1e400}",
      P "const f64 A[2] = {1, nan}, B[0] = {}, C[] = {inf}\n" },
    { P "const i64 A[2] = {-9223372036854775808, 9223372036854775807}, B[0] = {}",
      P "const i64 A[2] = {-9223372036854775808, 9223372036854775807}, B[0] = {}\n" },
    { P "const f16 A[2, 1] = {0.1, 99999999999999999999}", P "const f16 A[2, 1] = {0.1, 1e+20}\n" },
    { P "const i32 A[1] = {-2147483648} ; f64 B[m] ;;",
      P "const i32 A[1] = {-2147483648}\nf64 B[m]\n" },
    { P "axis I = 2, T(I) = {1, 2}\nconst f64 A[T] = {1, 2, 3}",
      P "axis I = 2, T(I) = {1, 2}\nconst f64 A[T] = {1, 2, 3}\n" },
    { P "axis P = rows a -> c { 1 -> 2 }\nf64 A[P]\nconst f64 d[1] = {1}",
      P "axis P = rows a -> c { 1 -> 2 }\nf64 A[P]\nconst f64 d[1] = {1}\n" },
};

TEST(buffers_are_printed_by_kind_and_type)
{
    CANONS(buffer_texts);
}

TEST(tables_of_any_length_wrap_within_100_columns_and_read_back)
{
    Bed b;
    Text text = { .arena = &b.arena };
    const char *out;
    int width = 0;

    bed_open(&b);
    text_str(&text, P "axis I = 300, J(I) = {");
    bed_repeat(&text, "2", ",", 300);
    text_str(&text, "}, K = 300 : a = {");
    bed_repeat(&text, "-1234567890", ",", 300);
    text_str(&text, "}\naxis Q = rows a b -> c {");
    bed_repeat(&text, "-1234567 12345678 -> -0.1234567890123456", ",", 50);
    text_str(&text, "}\nconst f64 A[J] = {");
    bed_repeat(&text, "-0.12345678901234e-100", ",", 600);
    text_str(&text, "}, B[2] = {1, 2}\nconst i64 C[I] = {");
    bed_repeat(&text, "-1000000000000000000", ",", 300);
    text_str(&text, "}\n");
    out = bed_canonical(&b, text.s);
    for (; *out != 0; out++) {
        width = *out == '\n' ? 0 : width + 1;
        CHECK(width <= 100);
    }
    bed_close(&b);
}

TEST(ancestors_that_a_buffer_does_not_list_stand_before_their_first_child)
{
    Bed b;
    const Buf *x;

    bed_open(&b);
    bed_read(&b,
             P "axis S = 2, V(S) = {1, 3}, U(S) = {4, 2}, E(V) = seg\nf64 X[U, n, E], Y[S, U]\n");
    x = ir_find_buf(b.p, "X");
    CHECK_EQ(x->nslot, 3);
    CHECK_EQ(x->nfull, 5);
    CHECK_STR(x->full[0]->name, "S");
    CHECK_STR(x->full[1]->name, "U");
    CHECK(x->full[2]->name == NULL);
    CHECK_STR(x->full[3]->name, "V");
    CHECK_STR(x->full[4]->name, "E");
    CHECK_EQ(x->place_in_full[0], 1);
    CHECK_EQ(x->place_in_full[1], 2);
    CHECK_EQ(x->place_in_full[2], 4);
    CHECK_EQ(ir_find_buf(b.p, "Y")->nfull, 2);
    bed_close(&b);
}

TEST(sizes_are_integers_of_sizes_and_totals_are_known_when_constant)
{
    static const struct {
        const char *axis;
        int64_t total;
    } row[] = {
        { "A", 6 },  { "B", -1 }, { "C", 12 }, { "D", 6 },  { "E", -1 }, { "F", 3 },
        { "G", 21 }, { "H", -1 }, { "K", -1 }, { "L", -1 }, { "M", 0 },  { "O", -1 },
        { "Q", 3 },  { "R", -1 }, { "S", -1 }, { "T", -1 },
    };
    Bed b;

    bed_open(&b);
    bed_read(&b, "program p(n)\n"
                 "axis A = 2*(7 - 4) + 5 % 3 - 4/2, B = n, C(A) = 2, D(A) = one, E(B) = one\n"
                 "axis F(D) = {1, 0, 0, 0, 0, 2}, G(F) = 7, H = -1, K(A) = seg\n"
                 "axis L(C) = 9223372036854775807, M = 0, O = 1/(1 - 1), Q = -(1 - 4), R = -n\n"
                 "axis S = -(-9223372036854775807 - 1), T = 3 + n\n");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        CHECK_EQ(ir_const_total(ir_find_axis(b.p, row[i].axis)), row[i].total);
    bed_close(&b);
}

TEST(an_axis_made_by_a_pass_is_checked_too)
{
    Bed b;
    Axis *a;

    bed_open(&b);
    bed_read(&b, P);
    a = ir_axis_open(b.p, "I", NULL);
    a->size = ir_int(b.p, 3);
    ir_axis_coord(b.p, a, &(Coord){ .kind = C_EXPR, .expr = ir_of_var(b.p, OP_loc, a->var) });
    CHECK_EQ(CATCH(&b.err, ir_axis_close(b.p, a)), ST_CHECK);
    CHECK_HAS(b.err.msg,
              "axis I: a coordinate that is an expression or has a bound of its own needs");
    bed_read(&b, P);
    a = ir_axis_open(b.p, "I", NULL);
    a->size = ir_int(b.p, 3);
    ir_axis_coord(b.p, a, &(Coord){ .kind = C_IDENT, .bound = ir_int(b.p, 3) });
    CHECK_EQ(CATCH(&b.err, ir_axis_close(b.p, a)), ST_CHECK);
    CHECK_HAS(b.err.msg, "needs a name");
    bed_close(&b);
}
