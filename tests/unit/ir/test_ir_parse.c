/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/lex.c, parse.c and parse_expr.c: tokens, statements and expressions. */
#include "unit/ir_bed.h"

#include <locale.h>
#include <math.h>

#define P "program p(m, n)\n"
#define H                                                                           \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, K = n\n" \
      "f64 A[I, J], B[E], X[n], Y[I], S[]\n"                                        \
      "i64 W[I]\n"

static const Refusal tokens[] = {
    { "", ST_PARSE, 1, 1, "expected `program name(sizes)`, found the end of the text" },
    { "# only a comment", ST_PARSE, 1, 17,
      "expected `program name(sizes)`, found the end of the text" },
    { P "f64 Y[]; Y[] = $\n", ST_PARSE, 2, 16, "'$' means nothing here" },
    { P "a\001", ST_PARSE, 2, 2, "byte 1 means nothing here" },
    { P "caf\303\251 = 1", ST_PARSE, 2, 4, "byte 195 means nothing here" },
    { P "f64 A[1.]", ST_PARSE, 2, 8, "'.' means nothing here" },
    { P "f64 A[]; A[] = 1 | 2", ST_PARSE, 2, 18, "'|' means nothing here" },
    { P "f64 A[]; A[] = 1 ! 2", ST_PARSE, 2, 18, "'!' means nothing here" },
    { "  program p()", ST_PARSE, 1, 3, "expected `program name(sizes)`, found an indented line" },
    { P "  axis I = m", ST_PARSE, 2, 3, "expected a statement, found an indented line" },
    { P "axis I = m\nf64 Y[I], S[]\nfor i:\n    Y[i] += 1\n      S[] += 1\n", ST_PARSE, 6, 7,
      "indented by 6 columns and its block by 4" },
    { P "axis I = m\nf64 Y[I], S[]\nfor i:\n    Y[i] += 1\n  S[] += 1\n", ST_PARSE, 6, 3,
      "indented by 2 columns and its block by 4" },
    { P "axis I = m\nf64 Y[I]\nfor i:\n\tY[i] += 1\n", ST_PARSE, 5, 2, "a tab in the indentation" },
    { P "axis I = m\nf64 Y[I]\nfor i:\nY[i] += 1\n", ST_PARSE, 5, 1,
      "expected the indented statements of the group, found `Y`" },
    { P "axis I = m\nf64 Y[I]\nfor i:\n", ST_PARSE, 5, 1,
      "expected the indented statements of the group, found the end of the text" },
    { P "f64 A[m", ST_PARSE, 2, 8, "expected `,` or `]`, found the end of the line" },
    { P "f64 A[m b]", ST_PARSE, 2, 9, "expected `,` or `]`, found `b`" },
    { P "f64 A[] aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ST_PARSE, 2, 9,
      "found `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`..." },
};

TEST(what_is_no_token_or_stands_at_a_wrong_column_is_refused)
{
    REFUSES(tokens);
}

static const Refusal exprs[] = {
    { H "Y[i] += ", ST_PARSE, 5, 9, "expected a value, found the end of the line" },
    { H "Y[i] += )", ST_PARSE, 5, 9, "expected a value, found `)`" },
    { H "Y[i] += (1", ST_PARSE, 5, 11, "expected `)`, found the end of the line" },
    { H "Y[i] += 1 +", ST_PARSE, 5, 12, "expected a value, found the end of the line" },
    { H "Y[i] += 1 2", ST_PARSE, 5, 11, "expected the end of the line, found `2`" },
    { H "Y[i] += if", ST_PARSE, 5, 9, "expected a value, found `if`" },
    { H "Y[i] += q", ST_CHECK, 5, 9,
      "q is not known here: no size, variable or let has this name; declare it" },
    { H "Y[i] += X", ST_CHECK, 5, 9, "X is a buffer; write X[...] for a value of it" },
    { H "Y[i] += E", ST_CHECK, 5, 9,
      "E is an axis; its variable is e, its number of positions size(E)" },
    { H "Y[i] += e", ST_CHECK, 5, 9,
      "e has no value of its own: axis E names its coordinate; write j(e), pos(e) or loc(e)" },
    { P "axis E = m : a < n, b < n\nf64 Y[m]\nY[e] += 1", ST_CHECK, 4, 1,
      "e has no value of its own: axis E names its coordinates; write a(e), pos(e) or loc(e)" },
    { H "Y[i] += Q[i]", ST_CHECK, 5, 9, "Q is not a buffer; declare it, as in `f32 Q[...]`" },
    { H "Y[i] += sin2(X[i])", ST_CHECK, 5, 9,
      "sin2 is not a function, and a coordinate is written with its variable, as in j(e)" },
    { H "Y[i] += k(e)", ST_CHECK, 5, 9, "k is neither a function nor a coordinate of axis E" },
    { H "for i, t in 3: Y[i] += j(t)", ST_CHECK, 5, 24,
      "j is neither a function nor a coordinate of axis (dense)" },
    { H "Y[i] += j(3)", ST_CHECK, 5, 9, "j is not a function" },
    { H "Y[i] += pos(3)", ST_CHECK, 5, 9, "pos wants a variable, as in pos(e)" },
    { H "Y[i] += loc(Y)", ST_CHECK, 5, 9, "loc wants a variable, as in loc(e)" },
    { H "Y[i] += size(m)", ST_CHECK, 5, 14,
      "size(E) wants an axis, and m is none; a size is written by its name alone" },
    { H "Y[i] += size(3)", ST_PARSE, 5, 14, "expected an axis, found `3`" },
    { H "Y[i] += j(e", ST_PARSE, 5, 12, "expected `)`, found the end of the line" },
    { H "Y[i] += exp()", ST_PARSE, 5, 13, "expected a value, found `)`" },
    { H "Y[i] += exp(1, 2)", ST_CHECK, 5, 9, "exp takes 1 argument, not 2" },
    { H "Y[i] += max(1)", ST_CHECK, 5, 9, "max takes 2 arguments, not 1" },
    { H "Y[i] += max(1, 2, 3, 4, 5)", ST_PARSE, 5, 25, "expected `)`, found `5`" },
    { H "Y[i] += select(1, 2, 3)", ST_CHECK, 5, 9, "select wants a condition first, not i64" },
    { H "Y[i] += select(1 < 2, 1 < 2, 3)", ST_CHECK, 5, 9, "select wants numbers, not bool" },
    { H "Y[i] += exp(1 < 2)", ST_CHECK, 5, 9, "exp wants numbers, not bool" },
    { H "Y[i] += (1 < 2)", ST_CHECK, 5, 9,
      "a number is needed here, and this is a condition; write select(..., 1, 0)" },
    { H "Y[i] += (1, 2)", ST_CHECK, 5, 9, "a number is needed here, and this is a tuple" },
    { H "Y[i] += (1, 2) + 1", ST_CHECK, 5, 16, "+ wants numbers, not an index" },
    { H "Y[i] += ((1, 2), 3)", ST_CHECK, 5, 9, "tuple wants integers, not an index" },
    { H "Y[i] += 1 < 2", ST_PARSE, 5, 11, "expected the end of the line, found `<`" },
    { H "Y[i] += stored(B[e])", ST_CHECK, 5, 9,
      "a number is needed here, and this is a condition" },
    { H "Y[i] += 1 if stored(3)", ST_PARSE, 5, 21, "expected a buffer, found `3`" },
    { H "Y[i] += 1 if stored(B[e]", ST_PARSE, 5, 25, "expected `)`, found the end of the line" },
    { H "Y[i] += 1 if i", ST_CHECK, 5, 14, "a condition is needed here, such as i < j" },
    { H "Y[i] += 1 if", ST_PARSE, 5, 13, "expected a value, found the end of the line" },
    { H "Y[i] += 1 if 1 < 2 < 3", ST_CHECK, 5, 20, "< wants numbers, not bool" },
    { H "Y[i] += 1 if i < 1 and 2", ST_CHECK, 5, 20, "and wants conditions, not i64" },
    { H "Y[i] += 1 if not i", ST_CHECK, 5, 14, "not wants conditions, not i64" },
    { H "Y[i] += 1 if -(i < 1) < 2", ST_CHECK, 5, 14, "- wants numbers, not bool" },
    { H "Y[i] += X[i] % 2", ST_CHECK, 5, 14, "% wants integers, not f64" },
    { H "Y[i] += 1 / 2", ST_CHECK, 5, 11,
      "1 / 2 is an integer division; write 1.0 for a fraction" },
    { H "Y[i] += -7 / 2", ST_CHECK, 5, 12,
      "-7 / 2 is an integer division; write -7.0 for a fraction" },
    { H "Y[i] += 1 / 0", ST_CHECK, 5, 11, "1 / 0 is an integer division" },
    { H "Y[i] += 9223372036854775808", ST_LIMIT, 5, 9, "an integer outside 64 bits" },
};

TEST(a_wrong_expression_is_refused_at_the_operator_or_name)
{
    REFUSES(exprs);
}

static const Refusal stmts[] = {
    { H "3 += 1", ST_PARSE, 5, 1, "expected a statement, found `3`" },
    { H "Q[i] += 1", ST_CHECK, 5, 1, "Q is not a buffer; declare it, as in `f32 Q[...]`" },
    { H "Q += 1", ST_CHECK, 5, 1, "Q is neither a buffer nor an axis; declare it" },
    { H "Y += 1", ST_CHECK, 5, 1, "a buffer is written with its indices, as in Y[i] += ..." },
    { H "let t = 1", ST_PARSE, 5, 1, "expected a statement, found `let`" },
    { H "if i < 1: Y[i] += 1", ST_PARSE, 5, 1, "expected a statement, found `if`" },
    { H "Y[i] -= 1", ST_PARSE, 5, 6, "expected `=`, `+=`, `max=` or `min=`, found `-`" },
    { H "Y[i] max = 1", ST_PARSE, 5, 6, "expected `=`, `+=`, `max=` or `min=`, found `max`" },
    { H "I(i) |= 1", ST_CHECK, 5, 1,
      "|= inserts into a built axis, and I is not one; declare it as `I = built : ...`" },
    { H "I(i = 1", ST_PARSE, 5, 5, "expected `)`, found `=`" },
    { P "axis U = built : load < n, I = m\nU(i) |= 1", ST_CHECK, 3, 1,
      "axis U has no parent; write U |= ..." },
    { P "axis I = m, U(I) = built : load < n\nU |= 1", ST_CHECK, 3, 1,
      "say where: U(i) |= ... under the parent of U" },
    { P "axis I = m, U(I) = built : load < n\nU(i) += 1", ST_PARSE, 3, 6,
      "expected `|=`, found `+=`" },
    { H "c: Y[i] += 1\nc: S[] += 1", ST_CHECK, 6, 4,
      "the label c is used twice; labels are unique" },
    { H "y: S[] += 1\nY[i] += 1\ny1: Y[i] += 1", ST_CHECK, 7, 5, "the label y1 is used twice" },
    { H "for i:\n    a: Y[i] += 1\n    a: S[] += 1\n", ST_CHECK, 7, 8,
      "the label a is used twice" },
    { H "exp: Y[i] += 1", ST_CHECK, 5, 6, "exp is a word of the language; choose another label" },
    { H "c: for i:\n    Y[i] += 1", ST_PARSE, 5, 10,
      "expected a statement, found the end of the line" },
    { H "for i:\n    for k: Y[i] += 1", ST_PARSE, 6, 5, "expected a statement, found `for`" },
    { H "for i:\n    let t = 1\nS[] += 1", ST_CHECK, 5, 1, "a group without a statement" },
    { H "for i:\n    let 3 = 1", ST_PARSE, 6, 9, "expected a name, found `3`" },
    { H "for i:\n    let T = 1", ST_CHECK, 6, 9, "T begins with a capital" },
    { H "for i:\n    let t 1", ST_PARSE, 6, 11, "expected `=`, found `1`" },
    { H "for i:\n    let m = 1", ST_CHECK, 6, 9,
      "m is already the name of a size; choose another" },
    { H "for i:\n    let k = 1", ST_CHECK, 6, 9,
      "k is already the name of a variable; choose another" },
    { H "for i, a in I:\n    let a = 1", ST_CHECK, 6, 9,
      "a is already the name of a variable; choose another" },
    { H "for i:\n    let t = 1\n    let t = 2", ST_CHECK, 7, 9,
      "t is already the name of a let; choose another" },
    { H "for i:\n    let t = (1, 2)", ST_CHECK, 6, 9, "t: a let names a value, not a tuple" },
    { H "for i:\n    let t = 1\n    Y[i] += t\nS[] += t", ST_CHECK, 8, 8, "t is not known here" },
    { H "for i:\n    let t = 1\n    Y[i] += t\nf64 Z[t]", ST_CHECK, 8, 7, "t is not known here" },
    { H "for i, t in 3: Y[i] += t\nf64 Z[t]", ST_CHECK, 6, 7, "t is not known here" },
    { H "Y[i] += 1 at", ST_PARSE, 5, 13, "expected a buffer, found the end of the line" },
    { H "Y[i] max= 1 at W[i]", ST_PARSE, 5, 20, "expected `=`, found the end of the line" },
    { H "Y[i] max= 1 at W[i] = (1 < 2)", ST_CHECK, 5, 23,
      "a number is needed here, and this is a condition" },
    { H
      "Y[i] max= 1 at W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1, W[i] = 1",
      ST_LIMIT, 5, 176, "more than 16 companions" },
    { H "for", ST_PARSE, 5, 4, "expected a variable, found the end of the line" },
    { H "for i Y[i] += 1", ST_PARSE, 5, 7, "expected `:`, found `Y`" },
    { H "for q: Y[q] += 1", ST_CHECK, 5, 5,
      "q is not the variable of an axis; name the axis that it runs over, as in `q in I`" },
    { H "for q in Q: S[] += 1", ST_CHECK, 5, 5,
      "q runs over an axis that is not declared; declare it" },
    { H "for q in (1, 2): S[] += 1", ST_CHECK, 5, 10,
      "axis of a slot: the extent is an integer expression of sizes" },
    { H "for m in 3: S[] += 1", ST_CHECK, 5, 5,
      "m is already the name of a size and cannot be a variable" },
    { H "for T in 3: S[] += 1", ST_CHECK, 5, 5, "T begins with a capital" },
    { H "for in in 3: S[] += 1", ST_CHECK, 5, 5, "in is a word of the language" },
    { H "for i in K: S[] += 1", ST_CHECK, 5, 5,
      "i is the variable of axis I; take another name here" },
    { H "for i, i: S[] += 1", ST_CHECK, 5, 8, "the variable i stands twice in the `for`" },
    { H "for i, a in I, a in K: S[] += 1", ST_CHECK, 5, 16,
      "the variable a stands twice in the `for`" },
    { H "for e, i: S[] += 1", ST_CHECK, 5, 8, "the variable i stands twice in the `for`" },
    { H "for a in I(3): S[] += 1", ST_CHECK, 5, 12, "axis I has no parent, so a in I needs none" },
    { H "for f in E(3: S[] += 1", ST_PARSE, 5, 13, "expected `)`, found `:`" },
    { H "for f in E(q): S[] += 1", ST_CHECK, 5, 12, "q is not known here" },
    { H "for f in E(k): S[] += 1", ST_CHECK, 5, 12,
      "the variable k is not in the `for`; add it there" },
    { P "axis I = m, J(I) = 2, K(J) = 3\nf64 S[]\nfor a in K(3): S[] += 1", ST_CHECK, 4, 12,
      "axis J hangs under I, so a value does not tell its position; use a variable of J or @position" },
    { H "for i: Y[i] += X[k]", ST_CHECK, 5, 18,
      "the variable k is not in the `for`; add it there" },
};

TEST(a_wrong_statement_is_refused_with_its_remedy)
{
    REFUSES(stmts);
}

TEST(lines_blanks_and_comments_do_not_matter)
{
    bed_same(H "Y[i] += X[i] * 2\n", H "\r\n  \n# c\nY [ i ]\t+=X [i]*2 # c\r\n   # c");
    bed_same(H "Y[i] += 1\nS[] += 2\n", H ";; Y[i] += 1 ; S[] += 2;");
    bed_same(H "Y[i] += X[i] * (1 + 2)\n", H "Y[\n i # c\n] += X[i] * (1\n\n + 2)");
    bed_same("\n\n # c\nprogram p(m, n)\n", "program p (\nm,\nn,)");
    bed_same(P "f64 A[m,n,]\naxis I = 2, J(I) = {1,2,}\n",
             P "f64 A[m, n]\naxis I = 2, J(I) = {1, 2}\n");
    bed_same(H "for i:\n  Y[i] += 1\n  S[] += 2\n",
             H "for i:\n\n      Y[i] += 1; S[] += 2 ;\n # c\n\n");
    bed_same(H "for i:\n  Y[i] += 1\n  S[] += 2\n", H "for i:\n  Y[i] += (1\n)\n  S[] += 2");
}

TEST(numbers_read_to_the_last_bit)
{
    static const struct {
        const char *text;
        double f;
    } real[] = {
        { "0.1", 0.1 },
        { "1e0", 1 },
        { "1E+2", 100 },
        { "2.5e-3", 0.0025 },
        { "1e400", INFINITY },
        { "1e-400", 0 },
        { "-0.0", -0.0 },
        { "--0.0", 0.0 },
        { "inf", INFINITY },
        { "-inf", -INFINITY },
        { "nan", NAN },
        { "-nan", NAN },
        { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "4.9406564584124654e-324", 4.9406564584124654e-324 },
    };
    static const struct {
        const char *text;
        int64_t i;
    } integer[] = {
        { "0", 0 },
        { "-0", 0 },
        { "007", 7 },
        { "00000000000000000000000000000000000000042", 42 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
        { "- 9223372036854775808", INT64_MIN },
        { "-(-(5))", 5 },
    };
    Bed b;

    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        char text[128];

        bed_open(&b);
        snprintf(text, sizeof text, P "f64 S[]\nS[] = %s\n", real[i].text);
        bed_round(&b, bed_read(&b, text));
        CHECK_EQ(b.p->stmt[0]->assign[0].value->op, OP_real);
        CHECK_SAME(b.p->stmt[0]->assign[0].value->f, real[i].f);
        bed_close(&b);
    }
    for (size_t i = 0; i < sizeof integer / sizeof *integer; i++) {
        char text[128];

        bed_open(&b);
        snprintf(text, sizeof text, P "i64 S[]\nS[] = %s\n", integer[i].text);
        bed_round(&b, bed_read(&b, text));
        CHECK_EQ(b.p->stmt[0]->assign[0].value->op, OP_int);
        CHECK_EQ(b.p->stmt[0]->assign[0].value->i, integer[i].i);
        bed_close(&b);
    }
}

#define EXPR(text, printed)                                      \
    {                                                            \
        H "s: S[] += " text, H_PRINTED "s: S[] += " printed "\n" \
    }
#define COND(text, printed)                                                \
    {                                                                      \
        H "s: S[] += 1 if " text, H_PRINTED "s: S[] += 1 if " printed "\n" \
    }
#define H_PRINTED                                                            \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n\n" \
      "axis K = n\n"                                                         \
      "f64 A[I, J], B[E], X[n], Y[I], S[]\n"                                 \
      "i64 W[I]\n"

static const Canon exprs_printed[] = {
    EXPR("((1))", "1"),
    EXPR("i+m*n-3", "i + m * n - 3"),
    EXPR("(i+m)*n", "(i + m) * n"),
    EXPR("i*(m*n)", "i * (m * n)"),
    EXPR("(i*m)*n", "i * m * n"),
    EXPR("i-(m-n)", "i - (m - n)"),
    EXPR("i/(m%n)*3", "i / (m % n) * 3"),
    EXPR("-i*m", "-i * m"),
    EXPR("-(i*m)", "-(i * m)"),
    EXPR("i*-m", "i * -m"),
    EXPR("i - -m", "i - -m"),
    EXPR("i - -3", "i - -3"),
    EXPR("-(-i)", "--i"),
    EXPR("-(i+m)", "-(i + m)"),
    EXPR("-(-9223372036854775808)", "--9223372036854775808"),
    EXPR("4/2", "4 / 2"),
    EXPR("1.0/2", "1.0 / 2"),
    EXPR("1.5 * -0.0", "1.5 * -0.0"),
    EXPR("pos(e)+loc(e)+size(E)+j(e)", "pos(e) + loc(e) + size(E) + j(e)"),
    EXPR("exp(-(X[i]))", "exp(-X[i])"),
    EXPR("max(X[i],-inf)", "max(X[i], -inf)"),
    EXPR("f32(f64(1))", "f32(f64(1))"),
    EXPR("select((i<m) and not (m<n or n==i),1,(2))",
         "select(i < m and not (m < n or n == i), 1, 2)"),
    EXPR("select(stored(A[i,3]),A[i,3],0)", "select(stored(A[i, 3]), A[i, 3], 0)"),
    COND("i<m", "i < m"),
    COND("(i<=m)", "i <= m"),
    COND("i+1>=(m)*2", "i + 1 >= m * 2"),
    COND("(i+1)==m", "i + 1 == m"),
    COND("((i+1))!=(m-1)", "i + 1 != m - 1"),
    COND("i<m and m<n or n<i", "i < m and m < n or n < i"),
    COND("i<m or m<n and n<i", "i < m or m < n and n < i"),
    COND("(i<m or m<n) and n<i", "(i < m or m < n) and n < i"),
    COND("i<m or (m<n or n<i)", "i < m or (m < n or n < i)"),
    COND("not i<m and m<n", "not i < m and m < n"),
    COND("not (i<m and m<n)", "not (i < m and m < n)"),
    COND("not not stored(B[e])", "not not stored(B[e])"),
    COND("not (stored(B[e])) and select(i<m,1,0)>0",
         "not stored(B[e]) and select(i < m, 1, 0) > 0"),
};

TEST(every_operator_binds_as_the_grammar_says)
{
    CANONS(exprs_printed);
}

TEST(an_expression_keeps_the_order_of_its_writer)
{
    Bed b;
    const Assign *a;

    bed_open(&b);
    a = bed_read(&b, H "s: S[] += X[k] * Y[i] + Y[i] * X[k]\n")->stmt[0]->assign;
    CHECK(a->value->arg[0] != a->value->arg[1]);
    CHECK(a->value->arg[0]->arg[0] == a->value->arg[1]->arg[1]);
    bed_close(&b);
}

static const Canon label_texts[] = {
    { P "f64 S[]\nS[] += 1\nS[] += 2\ns2: S[] += 3\nS[] += 4",
      P "f64 S[]\ns: S[] += 1\ns1: S[] += 2\ns2: S[] += 3\ns3: S[] += 4\n" },
    { P "f64 S[]\ns1: S[] += 1\ns: S[] += 2\nS[] += 3",
      P "f64 S[]\ns1: S[] += 1\ns: S[] += 2\ns2: S[] += 3\n" },
    { P "f64 S[]\nd(z,  X) : S[] += 1\nd2(d(z.1, X),d(y,_Y)):S[] += 2\nc.k.0.init: S[] += 3",
      P "f64 S[]\nd(z,X): S[] += 1\nd2(d(z.1,X),d(y,_Y)): S[] += 2\nc.k.0.init: S[] += 3\n" },
    { P
      "f64 For[], Axis[], F64[], Let[], Exp[]\nFor[] = 1\nAxis[] = 1\nF64[] = 1\nLet[] = 1\nExp[] = 1",
      P "f64 For[], Axis[], F64[], Let[], Exp[]\nfor1: For[] = 1\naxis1: Axis[] = 1\n"
        "f641: F64[] = 1\nlet1: Let[] = 1\nexp1: Exp[] = 1\n" },
};

TEST(labels_nest_carry_numbers_and_are_made_when_missing)
{
    Bed b;

    CANONS(label_texts);
    bed_open(&b);
    CHECK_EQ(bed_try(&b, P "f64 S[]\nd( z,X ): S[] += 1"), ST_CHECK); /* a blank before ) */
    CHECK_EQ(bed_try(&b, P "axis U = built : load < n\nU |= 3\nu: U |= 4"), ST_CHECK);
    CHECK_HAS(b.err.msg, "the label u is used twice"); /* it was given to the first already */
    bed_close(&b);
}

static const Canon binder_texts[] = {
    { H "c: for i: Y[i] += 1", H_PRINTED "c: Y[i] += 1\n" },
    { H "c: for e: S[] += 1", H_PRINTED "c: for i, e: S[] += 1\n" },
    { H "c: for i, e: S[] += 1", H_PRINTED "c: for i, e: S[] += 1\n" },
    { H "c: for k, i: S[] += Y[i] * X[k]", H_PRINTED "c: for k, i: S[] += Y[i] * X[k]\n" },
    { H "c: for i, k: S[] += Y[i] * X[k]", H_PRINTED "c: S[] += Y[i] * X[k]\n" },
    { H "c: for i, k, e in E(i): S[] += Y[i] * X[k] * B[e]",
      H_PRINTED "c: for i, k, e: S[] += Y[i] * X[k] * B[e]\n" },
    { H "c: for i, a in I: S[] += Y[i] * Y[a]",
      H_PRINTED "c: for i, a in I: S[] += Y[i] * Y[a]\n" },
    { H "c: for t in 2*m: S[] += t", H_PRINTED "c: for t in 2 * m: S[] += t\n" },
    { H "c: for : S[] += 1", H_PRINTED "c: S[] += 1\n" },
    { H "for: S[] += 1", H_PRINTED "s: S[] += 1\n" },
    { H "c: for f in E(3): S[] += B[f]", H_PRINTED "c: for f in E(3): S[] += B[f]\n" },
    { H "c: for i, f in E(W[i]+1), g in E(j(f)): S[] += B[f]*B[g]",
      H_PRINTED "c: for i, f in E(W[i] + 1), g in E(j(f)): S[] += B[f] * B[g]\n" },
    { H "c: for i, h in E(@W[i]): S[] += B[h]",
      H_PRINTED "c: for i, h in E(@W[i]): S[] += B[h]\n" },
    { H "c: for i, h in E(i): S[] += B[h]", H_PRINTED "c: for i, h in E: S[] += B[h]\n" },
    { H "c: for k, h in E(k): S[] += B[h]", H_PRINTED "c: for k, h in E(k): S[] += B[h]\n" },
};

TEST(binders_are_printed_only_where_they_are_not_the_default)
{
    CANONS(binder_texts);
}

static const Canon stmt_texts[] = {
    { H "m: Y[i] max= X[k] at W[i] = k if k != i",
      H_PRINTED "m: Y[i] max= X[k] at W[i] = k if k != i\n" },
    { H "i64 V[I]\nm: Y[i] min= X[k] at W[i] = k, V[i] = 2*k",
      P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n\naxis K = n\n"
        "f64 A[I, J], B[E], X[n], Y[I], S[]\ni64 W[I], V[I]\n"
        "m: Y[i] min= X[k] at W[i] = k, V[i] = 2 * k\n" },
    { P "axis I = m, U(I) = built : a < n, b < m\nu: U(i) |= (i, i + 1) if i > 0",
      P "axis I = m, U(I) = built : a < n, b < m\nu: U(i) |= (i, i + 1) if i > 0\n" },
    { P "axis U = built : load < n, V(U) = built : load < n\nU |= 1\nfor v1 in 2: V(@v1) |= v1",
      P "axis U = built : load < n, V(U) = built : load < n\nu: U |= 1\n"
        "v: for v1 in 2: V(@v1) |= v1\n" },
};

TEST(statements_are_printed_as_they_were_written)
{
    CANONS(stmt_texts);
}

static const Canon group_texts[] = {
    { H "for i:\n  Y[i] += 1\n  S[] += 2",
      H_PRINTED "for i:\n    y: Y[i] += 1\n    s: S[] += 2\n" },
    { H "for :\n  a: S[] += 1\n  b: S[] += 2",
      H_PRINTED "for:\n    a: S[] += 1\n    b: S[] += 2\n" },
    { H "for i:\n  Y[i] += 1", H_PRINTED "y: Y[i] += 1\n" },
    { H "for i:\n  let t = X[i] * 2\n  Y[i] += t\n  S[] += t + 1",
      H_PRINTED "for i:\n    let t0 = X[i] * 2\n    y: Y[i] += t0\n    s: S[] += t0 + 1\n" },
    { H "for i:\n  let t = X[i] * 2\n  let u = t + 1\n  Y[i] += u",
      H_PRINTED "y: Y[i] += X[i] * 2 + 1\n" },
    { H "for i, t0 in 2:\n  let t = X[i] * 2\n  Y[i] += t\n  S[] += t",
      H_PRINTED "for i, t0 in 2:\n    let t1 = X[i] * 2\n    y: Y[i] += t1\n    s: S[] += t1\n" },
    { H "for i:\n  let c = X[i] < 2\n  Y[i] += 1 if c\n  S[] += select(c and not c, 1, 2)",
      H_PRINTED "for i:\n    let t0 = X[i] < 2\n    y: Y[i] += 1 if t0\n"
                "    s: S[] += select(t0 and not t0, 1, 2)\n" },
    { H "for i:\n  let k1 = 2*i + 1\n  X[k1] += Y[k1]\n  S[] += 1 if k1 < n", H_PRINTED
      "for i:\n    let t0 = 2 * i + 1\n    x: X[t0] += Y[t0]\n    s: S[] += 1 if t0 < n\n" },
    { H "for i:\n  let p = i\n  let q = 3\n  Y[p] += X[q]\n  S[] += B[@q]",
      H_PRINTED "for i:\n    y: Y[i] += X[3]\n    s: S[] += B[@3]\n" },
    { H "for i:\n  let t = A[i, 2*i+1]\n  Y[i] += t if stored(A[i, 2*i+1])\n  S[] += t",
      H_PRINTED "for i:\n    let t0 = 2 * i + 1\n    let a = A[i, t0]\n"
                "    y: Y[i] += a if stored(A[i, t0])\n    s: S[] += a\n" },
};

TEST(a_group_shares_by_let_what_it_uses_twice)
{
    CANONS(group_texts);
}

TEST(a_let_is_the_expression_itself)
{
    bed_same(H "for i:\n  let t = X[i] * 2\n  Y[i] += t\n  S[] += t\n",
             H "for i:\n  Y[i] += X[i] * 2\n  S[] += X[i] * 2\n");
}

TEST(names_of_one_statement_are_free_in_the_next)
{
    bed_same(
        H
        "for i:\n  let t = 1\n  Y[i] += t\nfor t in 3: S[] += t\nfor i:\n  let t = 2\n  Y[i] += t\n",
        H "y: Y[i] += 1\ns: for t in 3: S[] += t\ny1: Y[i] += 2\n");
}

TEST(letters_are_those_of_ascii_in_every_locale)
{
    static const char *const locale[] = { "tr_TR.ISO-8859-9", "de_DE.ISO-8859-1", "de_DE.UTF-8" };
    Bed b;

    for (size_t i = 0; i < sizeof locale / sizeof *locale; i++) {
        setlocale(LC_ALL, locale[i]); /* where there is no such locale the test is a plain one */
        bed_open(&b);
        CHECK_EQ(bed_try(&b, "program p(\xe9)\n"), ST_PARSE);
        CHECK_HAS(b.err.msg, "byte 233 means nothing here");
        CHECK_STR(bed_canonical(&b, P "axis I = m\nf64 S[]\nS[] += i * 0.5\n"),
                  P "axis I = m\nf64 S[]\ns: S[] += i * 0.5\n");
        bed_close(&b);
    }
    setlocale(LC_ALL, "C");
}

TEST(more_text_adds_to_a_program_and_takes_its_places_away)
{
    Bed b;
    static const char more[] = "axis K = m\nf64 Z[K]\nZ[k] = X[k]\n";
    Prog *whole;

    bed_open(&b);
    whole = bed_read(&b, P "f64 X[m]\naxis K = m\nf64 Z[K]\nZ[k] = X[k]\n");
    bed_read(&b, P "f64 X[m]\n");
    CHECK_EQ(CATCH(&b.err, ir_parse_more(b.p, "more", more, strlen(more))), ST_OK);
    CHECK(ir_equal(b.p, whole));
    CHECK_EQ(CATCH(&b.err, ir_parse_more(b.p, "more", "\n Z", 3)), ST_PARSE);
    CHECK_STR(b.err.file, "more");
    CHECK_EQ(b.err.line, 2);
    bed_read(&b, P "f64 X[m]\n");
    CHECK_EQ(CATCH(&b.err, ir_parse_more(b.p, "more", "X[0] = 1\nX[0] += 1", 18); ir_check(b.p)),
             ST_CHECK);
    CHECK_EQ(b.err.line, 0);
    bed_close(&b);
}

TEST(a_message_shows_file_line_and_column)
{
    Bed b;

    bed_open(&b);
    CHECK_EQ(bed_try(&b, "program p()\nf64 A[]\n  A[] = 1\x07 +"), ST_PARSE);
    CHECK_STR(b.err.file, "t.weft");
    CHECK_EQ(b.err.line, 3);
    CHECK_STR(b.err.src, "  A[] = 1  +");
    bed_close(&b);
}

/* It would end the text for whoever reads it as a C string, and hide what follows. */
TEST(a_zero_byte_in_a_schedule_is_refused)
{
    static const char text[] = "program p(n)\naxis I = n\nf32 y[I]\ny[i] = 1.0\nschedule\n"
                               "    ahead 0\n    tile 2\0 junk\n";
    Bed b;

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, ir_parse(&b.arena, "t.weft", text, sizeof text - 1)), ST_PARSE);
    CHECK_EQ(b.err.line, 7);
    CHECK_EQ(b.err.col, 11);
    CHECK_STR(b.err.msg, "byte 0 means nothing here");
    bed_close(&b);
}
