/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Limits of the IR, one below and one above; and hostile texts, which must be read, checked and
 * printed (or refused) in time and memory that grow with their length. */
#include "unit/ir_bed.h"

#include <time.h>

#define P "program p(m, n)\n"
#define H P "axis I = m, E(I) = seg : j < n\nf64 X[n], Y[I], S[]\ni64 W[I]\n"

/* A unit may have the number of its repetition, and the one before, as %d. */
typedef struct Repeat {
    const char *before, *unit, *after;
    int most; /* so many are accepted, one more is not */
    const char *part;
} Repeat;

static const Repeat limits[] = {
    { "program ", "a", "()", 64, "a name of more than 64 characters" },
    { P "axis A0 = m", ", A%d(A%d) = 2", "", 15, "more than 16 axes one under another" },
    { P "axis I = m : x", ", c%d", "", 15, "axis I: more than 16 coordinates" },
    { P "axis I = rows x", " c%d", " {}", 15, "more than 16 coordinates" },
    { P "axis I = m", "+m", "", 127, "the extent has more than 256 operators" },
    { P "axis I = m : j < m", "+m", "", 127, "the bound has more than 256 operators" },
    { P "axis I = m : j = i", "+i", "", 127, "coordinate j has more than 256 operators" },
    { P "f64 A[m", ",m", "]", 15, "A: more than 16 slots" },
    { P "axis A0=m,A1(A0)=1,A2(A1)=1,A3(A2)=1,A4(A3)=1,A5(A4)=1,A6(A5)=1,A7(A6)=1,A8(A7)=1,"
        "A9(A8)=1,AA(A9)=1,AB(AA)=1,AC(AB)=1,AD(AC)=1,AE(AD)=1,AF(AE)=1\n"
        "axis B0=m,B1(B0)=1,B2(B1)=1,B3(B2)=1,B4(B3)=1,B5(B4)=1,B6(B5)=1,B7(B6)=1,B8(B7)=1,"
        "B9(B8)=1,BA(B9)=1\nf64 A[AF, BA",
      ", m", "]", 5, "A: more than 32 axes, ancestors included" },
    { P "const f64 A[1] = {0.", "1", "}", 1022, "a number of more than 1024 characters" },
    { P "f64 S[]\nS[] = 0.", "1", "", 1022, "a number of more than 1024 characters" },
    { H "S[] += ", "(", "1", 255, "expressions nested more than 256 deep" },
    { H "S[] += ", "-", "1", 257, "expressions nested more than 256 deep" },
    { H "S[] += ", "-", "i", 255, "expressions nested more than 256 deep" },
    { H "S[] += 1 if ", "not ", "i < 1", 255, "expressions nested more than 256 deep" },
    { H "S[] += i", "+i", "", 1000, "an expression more than 1000 operators deep" },
    { H "S[] += X[i", "+i", "]", 127, "X: an index of more than 256 operators" },
    { H "S[] += ", "W[@", "0", 255, "expressions nested more than 256 deep" },
    { H "", "a", ": S[] += 1", 256, "a label of more than 256 characters" },
    { H "i64 V[]\nS[] max= X[i] at V[] = 1", ", V[] = 1", "", 15, "more than 16 companions" },
    { H "for i", ", v%d in 2", ": S[] += 1", 63, "more than 64 variables in one `for`" },
    { P "axis I = m, U(I) = built : load < n\nU(i) |= i", "+i", "", 127,
      "a coordinate of more than" },
};

static void repeat(Text *out, const Repeat *r, int n)
{
    out->n = 0;
    text_str(out, r->before);
    for (int i = 1; i <= n; i++) {
        char unit[64];

        snprintf(unit, sizeof unit, r->unit, i, i - 1);
        text_str(out, unit);
    }
    text_str(out, r->after);
}

TEST(each_limit_is_told_and_what_is_just_inside_is_accepted)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const Repeat *r = &limits[i];
        Text text = { 0 };
        Status s;
        Bed b;

        bed_open(&b);
        text.arena = &b.arena;
        repeat(&text, r, r->most);
        s = bed_try(&b, text.s);
        if (s == ST_OK)
            bed_round(&b, b.p);
        else if (strstr(b.err.msg, r->part) != NULL) /* it may be wrong otherwise */
            test_fail(__FILE__, __LINE__, "%d is too many: %s", r->most, b.err.msg);
        repeat(&text, r, r->most + 1);
        s = bed_try(&b, text.s);
        if (s != ST_LIMIT || strstr(b.err.msg, r->part) == NULL)
            test_fail(__FILE__, __LINE__, "%d give %s, not %s", r->most + 1,
                      s == ST_OK ? "no error" : b.err.msg, r->part);
        bed_close(&b);
    }
}

TEST(the_number_of_nodes_and_of_variables_is_limited)
{
    Bed b;
    Var *v[IR_MAX_BINDS + 1];
    Expr *sum;
    int n = 0;

    bed_open(&b);
    bed_read(&b, H);
    CHECK_EQ(CATCH(&b.err, for (;; n++) ir_int(b.p, n)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "more than 1000000 expressions in one program");
    CHECK_EQ(b.p->nexpr, IR_MAX_NODES);
    bed_read(&b, H);
    sum = ir_int(b.p, 0);
    for (int i = 0; i <= IR_MAX_BINDS; i++) {
        char name[16];

        snprintf(name, sizeof name, "v%d", i);
        v[i] = ir_var(b.p, name, ir_find_axis(b.p, "I"), NULL);
        if (i < IR_MAX_BINDS)
            sum = ir_op2(b.p, OP_add, sum, ir_var_value(b.p, v[i]));
    }
    CHECK_EQ(ir_vars(b.p, sum, v, 0), IR_MAX_BINDS);
    sum = ir_op2(b.p, OP_add, sum, ir_var_value(b.p, v[IR_MAX_BINDS]));
    CHECK_EQ(CATCH(&b.err, ir_vars(b.p, sum, v, 0)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "more than 64 variables in one statement");
    bed_close(&b);
}

/* Before, many units, after: each about as nasty as its length allows. */
static const Repeat hostile[] = {
    { "program p(a", ",s%d", ")\n", 0, NULL },
    { P, "axis A%d = n\n", "", 0, NULL },
    { P "axis Z = n", ", A%d = n", "\n", 0, NULL },
    { P "axis I = n\n", "axis A%d(I) = 2\n", "", 0, NULL },
    { P "axis A0 = n, A1(A0) = 1, A2(A1) = 1, A3(A2) = 1, A4(A3) = 1, A5(A4) = 1, A6(A5) = 1\n",
      "f64 B%d[A6]\n", "", 0, NULL },
    { H, "S[]+=1\n", "", 0, NULL },
    { H, "for i:S[]+=X[%d]\n", "", 0, NULL },
    { H, "l%d:S[]+=1\n", "", 0, NULL },
    { H "s1:S[]+=1\n", "S[]+=1\n", "", 0, NULL },
    { H, "f64 B%d[];B%d[]+=1\n", "", 0, NULL },
    { P, "f64 B%d[];i64 C%d[];", "\n", 0, NULL },
    { H, "for t in %d:S[]+=1\n", "", 0, NULL },
    { H, "for a%d in I:S[]+=1\n", "", 0, NULL },
    { H, "for t in E(%d):S[]+=1\n", "", 0, NULL },
    { H "for i:\n", " let x%d = X[i]*%d\n", " S[] += 1\n", 0, NULL },
    { H "for i:\n let t = X[i]*i\n", " S[]+=t\n", "", 0, NULL },
    { H "for i:\n let t = X[i]*i\n", " S[]+=t*t\n", "", 0, NULL },
    { H "for i:\n let t = i+i+i+i+i\n", " S[]+=X[t+%d]\n", "", 0, NULL },
    { H "S[] += 1", "+X[i]", "\n", 0, NULL },
    { H "S[] += ", "(", "1\n", 0, NULL },
    { H "S[] += ", "-", "1\n", 0, NULL },
    { H "S[] += 1 if ", "not ", "i < 1\n", 0, NULL },
    { H "S[] += 1 if ", "(i+1)*", "2 < 3\n", 0, NULL },
    { H "S[] += X[(", "(i+1)*", "2)]\n", 0, NULL },
    { H "S[] += ", "W[@", "1\n", 0, NULL },
    { H "S[] += 1", "     ", "+ 2\n", 0, NULL },
    { H, "#\n", "S[] += 1\n", 0, NULL },
    { H, "       \n", "S[] += 1\n", 0, NULL },
    { H, ";", "S[] += 1\n", 0, NULL },
    { H, "a", ": S[] += 1\n", 0, NULL },
    { H, "d(", "a: S[] += 1\n", 0, NULL },
    { H, "A", "[i] += 1\n", 0, NULL },
    { P "axis P = rows a b -> c { 0 0 -> 1", ", %d %d -> 0.1", "}\n", 0, NULL },
    { P "const f64 A[1] = {1", ",0.1", "}\n", 0, NULL },
    { P "axis I = 3000, J = 3000\nf64 A[6000], S[]\n", "S[]+=A[i+j+0*%d]\n", "", 0, NULL },
    { P "axis K = 100000000000, O = 0\nf64 A[6], S[]\n", "S[]+=A[k+o+%d]\n", "", 0, NULL },
};

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads, checks, prints and hashes a text of at least so many bytes; what throws is fine.  The
 * seconds it took. */
static double use(const Repeat *r, size_t most)
{
    Bed b;
    Arena source;
    Text text = { .arena = &source }, out = { .arena = &b.arena };
    double start;

    bed_open(&b);
    arena_init(&source, &os_libc, &b.err);
    for (int n = 64; text.n < most; n *= 2)
        repeat(&text, r, n);
    start = cpu_seconds();
    (void)CATCH(&b.err, b.p = ir_parse(&b.arena, "t", text.s, text.n); ir_check(b.p);
                ir_print(&out, b.p); ir_hash(b.p));
    if (b.arena.total > 1024 * text.n + (32 << 20))
        test_fail(__FILE__, __LINE__, "%zu MB for %zu kB of %s", b.arena.total >> 20, text.n >> 10,
                  r->unit);
    arena_free(&source);
    bed_close(&b);
    return cpu_seconds() - start;
}

/* Four times the text may take up to eight times as long: more than that is no line.  (A factor
 * holds in a slow build too; a megabyte takes under two seconds in a release one.) */
TEST(time_and_memory_grow_with_the_length_of_a_hostile_text)
{
    const size_t most = (size_t)test_scale(100) * 10486; /* a full run: a megabyte each */

    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        double part = use(&hostile[i], most / 4), all = use(&hostile[i], most);

        if (all > 8 * part + 0.3)
            test_fail(__FILE__, __LINE__, "%.2f s, and %.2f s for a quarter, of %s", all, part,
                      hostile[i].unit);
    }
}

/* Texts of a few lines whose tree, were it written out, would have more nodes than there are
 * atoms: each line uses the one before twice. */
static void doubles(const char *line, int n, const char *last)
{
    Bed b;
    Text text = { 0 };

    bed_open(&b);
    text.arena = &b.arena;
    text_str(&text,
             P "axis I = 3, J = n\nf64 X[n], Y[n], S[]\ni64 V[n]\nfor i, j:\n    let x0 = i\n");
    for (int k = 1; k <= n; k++) {
        char unit[128];

        snprintf(unit, sizeof unit, line, k, k - 1, k - 1);
        text_str(&text, unit);
    }
    text_str(&text, last);
    if (bed_try(&b, text.s) == ST_OK)
        bed_round(&b, b.p);
    else
        CHECK_EQ(b.err.code, ST_LIMIT);
    bed_close(&b);
}

TEST(sharing_never_grows_into_a_tree)
{
    doubles("    let x%d = x%d * x%d\n", 300, "    S[] += x300\n");
    doubles("    let x%d = x%d + x%d\n", 300, "    S[] += 1 if x300 < 1\n");
    doubles("    let x%d = x%d + x%d\n", 300, "    S[] += X[x300]\n");
    doubles("    let x%d = x%d + x%d\n", 300, "    Y[x300] += 1\n");
    doubles("    let x%d = V[x%d + x%d]\n", 300, "    S[] += x300\n");
    doubles("    let x%d = V[@x%d] + V[@(0 + x%d)]\n", 300, "    S[] += x300\n");
    doubles("    let x%d = exp(x%d) + tanh(x%d)\n", 300, "    S[] += x300\n");
    doubles("    let x%d = select(x%d < 5, 1, 2) + select(x%d < 5, 3, 4)\n", 300,
            "    S[] += x300\n");
    doubles("    let x%d = 1 - (1 - (1 - x%d))\n", 330, "    S[] += x330\n");
    doubles("    let x%d = -x%d\n", 999, "    S[] += x999\n");
    doubles("    let x%d = V[x%d]\n", 250, "    S[] += V[x250]\n");
    doubles("    let x%d = V[@x%d]\n", 120, "    S[] += x120\n");
    doubles("    let x%d = exp(x%d)\n", 998, "    S[] += exp(x998)\n");
    doubles("    let x%d = not 1 + select(not x%d < 1, 1, 2) < 2\n", 1, "    S[] += 1 if x1\n");
    doubles("    let x%d = select(not x%d < 1, x%d, 2)\n", 300, "    S[] += 1 if x300 < 2\n");
}

TEST(variables_that_hang_on_all_before_are_looked_at_once)
{
    Bed b;
    Text text = { 0 };

    bed_open(&b);
    text.arena = &b.arena;
    text_str(&text, P "axis J = n, F(J) = seg : k < n\nf64 S[]\nfor g0 in F(0)");
    for (int k = 1; k < 14; k++) {
        char unit[64];

        snprintf(unit, sizeof unit, ", g%d in F(k(g0)", k);
        text_str(&text, unit);
        for (int l = 1; l < k; l++) {
            snprintf(unit, sizeof unit, " + k(g%d)", l);
            text_str(&text, unit);
        }
        text_str(&text, ")");
    }
    text_str(&text, ": S[] = 1\n");
    CHECK_EQ(bed_try(&b, text.s), ST_CHECK);
    CHECK_HAS(b.err.msg, "= writes each element once, but g0 runs over many");
    bed_close(&b);
}
