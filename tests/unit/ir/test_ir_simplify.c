/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/simplify.c: the same value bit for bit, judged by a small evaluator of its own, and the
 * rules one by one. */
#include "unit/ir_bed.h"
#include "unit/ir_gen.h"

#define P "program p(m, n)\n"
#define H \
    P "f64 D[8], S[]\nf32 F[8]\ni64 W[8]\naxis R = rows a -> c { 0 -> 0.1, 1 -> -0, 2 -> 3 }\n"

typedef union Value {
    int64_t i; /* bool and i64 */
    double f;  /* the others; of f32, the value rounded */
} Value;

typedef struct Data {
    double d[8];
    float f[8];
    int64_t w[8], size[2];
    bool fault; /* an integer overflowed or was divided by zero */
} Data;

static Value convert(Value v, Type from, Type to)
{
    double f = from == T_i64 ? (double)v.i : v.f;

    if (to == T_i64)
        return v;
    if (to == T_f32) /* from an integer at once: not by way of a double */
        return (Value){ .f = (double)(from == T_i64 ? (float)v.i : (float)f) };
    return (Value){ .f = f };
}

static bool compare(Op op, bool less, bool equal, bool greater)
{
    switch (op) {
    case OP_lt: return less;
    case OP_le: return less || equal;
    case OP_gt: return greater;
    case OP_ge: return greater || equal;
    case OP_eq: return equal;
    default: return !equal;
    }
}

static int64_t on_ints(Data *d, Op op, int64_t x, int64_t y)
{
    int64_t r = 0;

    switch (op) {
    case OP_neg: d->fault |= int_sub(0, x, &r); break;
    case OP_add: d->fault |= int_add(x, y, &r); break;
    case OP_sub: d->fault |= int_sub(x, y, &r); break;
    case OP_mul: d->fault |= int_mul(x, y, &r); break;
    case OP_div: d->fault |= int_div(x, y, &r); break;
    case OP_mod: d->fault |= int_mod(x, y, &r); break;
    case OP_min: r = x <= y ? x : y; break;
    case OP_max: r = x >= y ? x : y; break;
    case OP_relu: r = x > 0 ? x : 0; break;
    case OP_step: r = x > 0; break;
    case OP_sign: r = (x > 0) - (x < 0); break;
    case OP_abs: d->fault |= x < 0 ? int_sub(0, x, &r) : (r = x, false); break;
    case OP_stop: r = x; break;
    default: r = compare(op, x<y, x == y, x> y); break;
    }
    return r;
}

static double on_floats(Op op, double x, double y)
{
    switch (op) {
    case OP_neg: return -x;
    case OP_add: return x + y;
    case OP_sub: return x - y;
    case OP_mul: return x * y;
    case OP_div: return x / y;
    case OP_min: return x <= y || x != x ? x : y;
    case OP_max: return x >= y || x != x ? x : y;
    case OP_relu: return x >= 0 || x != x ? x : 0;
    case OP_step: return x > 0;
    case OP_sign: return (x > 0) - (x < 0);
    case OP_abs: return fabs(x);
    default: return x; /* stop, f32, f64 */
    }
}

static double function(Op op, double x)
{
    switch (op) {
    case OP_exp: return exp(x);
    case OP_log: return log(x);
    case OP_sqrt: return sqrt(x);
    case OP_rsqrt: return 1 / sqrt(x);
    case OP_sin: return sin(x);
    case OP_cos: return cos(x);
    case OP_tanh: return tanh(x);
    case OP_sigmoid: return 1 / (1 + exp(-x));
    default: return x / (1 + exp(-x)); /* silu */
    }
}

static Value eval(Data *d, Expr *e);

static Value eval_leaf(Data *d, Expr *e)
{
    Expr *index = e->nargs == 0 ? NULL : e->arg[0]->op == OP_at ? e->arg[0]->arg[0] : e->arg[0];
    int64_t at = index == NULL ? 0 : eval(d, index).i;

    switch (e->op) {
    case OP_int: return (Value){ .i = e->i };
    case OP_real: return (Value){ .f = e->f };
    case OP_size: return (Value){ .i = d->size[e->size->id] };
    default: break;
    }
    if (e->buf->name[0] == 'W')
        return (Value){ .i = d->w[at & 7] };
    if (e->buf->name[0] == 'F')
        return (Value){ .f = (double)d->f[at & 7] };
    return (Value){ .f = e->buf->name[0] == 'D' ? d->d[at & 7] : e->buf->val[at] };
}

/* What is f32 is computed in f64 and rounded: for these operators that is the f32 result. */
static Value operate(Data *d, Expr *e)
{
    bool calls = e->op >= OP_exp && e->op <= OP_silu;
    Type type = (Type)e->type;
    Value x, y = { 0 };

    if (type == T_bool)
        type = ir_promote((Type)e->arg[0]->type, (Type)e->arg[1]->type);
    x = convert(eval(d, e->arg[0]), (Type)e->arg[0]->type, type);
    if (e->nargs > 1)
        y = convert(eval(d, e->arg[1]), (Type)e->arg[1]->type, type);
    if (type == T_i64)
        return (Value){ .i = on_ints(d, (Op)e->op, x.i, y.i) };
    if (e->type == T_bool)
        return (Value){ .i = compare((Op)e->op, x.f<y.f, x.f == y.f, x.f> y.f) };
    x.f = calls ? function((Op)e->op, x.f) : on_floats((Op)e->op, x.f, y.f);
    return convert(x, T_f64, type);
}

static Value eval(Data *d, Expr *e)
{
    Expr *side;

    switch (e->op) {
    case OP_stored: return (Value){ .i = 1 };
    case OP_not: return (Value){ .i = !eval(d, e->arg[0]).i };
    case OP_and: return (Value){ .i = eval(d, e->arg[0]).i && eval(d, e->arg[1]).i };
    case OP_or: return (Value){ .i = eval(d, e->arg[0]).i || eval(d, e->arg[1]).i };
    case OP_select:
        side = e->arg[eval(d, e->arg[0]).i ? 1 : 2];
        return convert(eval(d, side), (Type)side->type, (Type)e->type);
    default: return e->op <= OP_load ? eval_leaf(d, e) : operate(d, e);
    }
}

/* Equal in every bit; there is one NaN. */
static bool same(Value a, Value b, Type t)
{
    return a.i == b.i || (ir_type[t].floats && a.f != a.f && b.f != b.f);
}

static void fill(Gen *g, Data *d)
{
    static const double nasty[] = { 0, -0.0, 1, -1, NAN, INFINITY, -INFINITY, 1e-310, 1e308, 0.1 };
    static const int64_t ints[] = { 0, 1, -1, 2, INT64_MAX, INT64_MIN, 1 << 24 | 1, -7 };

    for (int i = 0; i < 8; i++) {
        d->d[i] =
            gen_below(g, 3) ? nasty[gen_below(g, 10)] : ldexp((double)gen_below(g, 1 << 30), -20);
        d->f[i] = gen_below(g, 3) ? (float)nasty[gen_below(g, 10)] : (float)gen_below(g, 1000) / 7;
        d->w[i] = gen_below(g, 2) ? ints[gen_below(g, 8)] : gen_below(g, 100) - 50;
    }
    for (int i = 0; i < 2; i++)
        d->size[i] = gen_below(g, 2) ? ints[gen_below(g, 5)] : gen_below(g, 100);
}

static void keeps_value(Bed *b, Gen *g)
{
    Expr *e, *s, *cond;
    Memo memo = { 0 };

    CHECK_EQ(CATCH(&b->err, e = gen_number(g, 1 + gen_below(g, 6));
                   cond = ir_op2(g->p, OP_lt, e, gen_number(g, 2));
                   e = gen_below(g, 2) ? e : ir_node(g->p, OP_select, (Expr *[]){ cond, e, e }, 3);
                   s = ir_simplify(g->p, e, &memo)),
             ST_OK);
    CHECK_EQ(s->type, e->type);
    CHECK(s->tree <= e->tree + 1); /* a sign may come out of a product */
    CHECK_EQ(CATCH(&b->err, CHECK(ir_simplify(g->p, e, &memo) == s)), ST_OK);
    for (int i = 0; i < 8; i++) {
        Data d = { .fault = false };
        Value v, w;

        fill(g, &d);
        v = eval(&d, e);
        if (d.fault) /* an error may vanish with what was not needed */
            continue;
        w = eval(&d, s);
        if (d.fault || !same(v, w, (Type)e->type)) {
            Text t = { .arena = &b->arena }, u = { .arena = &b->arena };

            ir_print_expr(&t, g->p, e);
            ir_print_expr(&u, g->p, s);
            test_fail(__FILE__, __LINE__, "%s is %016llx, %s is %016llx", t.s,
                      (unsigned long long)v.i, u.s, (unsigned long long)w.i);
        }
    }
}

TEST(a_simplified_expression_has_the_same_value_bit_for_bit)
{
    for (int64_t i = 0; i < test_scale(40000); i++) {
        Bed b;
        Gen g = { .rng = (uint64_t)i, .tame = i % 2 == 0 };

        bed_open(&b);
        g.p = bed_read(&b, H "S[] += D[0] + D[1] + F[0] + F[1] + W[0] + W[1] + D[W[2]] + m + n + "
                             "c[@0] + c[@1] + c[@2]\n");
        ir_visit(g.p, g.p->stmt[0]->assign[0].value, gen_leaf, &g, &(Memo){ 0 });
        keeps_value(&b, &g);
        bed_close(&b);
    }
}

static const struct {
    const char *text, *simple;
} rules[] = {
    { "1 + 2 * 3", "7" },
    { "7 / 7 - 8 % 3", "-1" },
    { "-7 % 3", "2" },
    { "min(1, 2) + max(1, 2)", "3" },
    { "relu(-1) + step(3) + sign(-5) + abs(-7)", "7" },
    { "relu(3) + step(-1) + abs(7)", "10" },
    { "9223372036854775807 + 1", "9223372036854775807 + 1" },
    { "abs(-9223372036854775807 - 1)", "abs(-9223372036854775808)" },
    { "n / (1 - 1)", "n / 0" },
    { "n % (1 - 1)", "n % 0" },
    { "0.5 + 0.25 - 1 * 2.0 / 4", "0.25" },
    { "min(0.5, 1) + max(2, 1.5)", "2.5" },
    { "min(nan, 1)", "nan" },
    { "max(1, nan)", "nan" },
    { "min(1, nan)", "nan" },
    { "max(nan, 1)", "nan" },
    { "relu(-0.5) + relu(0.5)", "0.5" },
    { "relu(nan)", "nan" },
    { "step(0.5) + step(-0.5) + sign(-0.5) + abs(-2.5)", "2.5" },
    { "0.1 * F[0]", "0.1 * F[0]" },
    { "exp(0)", "exp(0)" },
    { "D[0] * 1", "D[0]" },
    { "1.0 * D[0]", "D[0]" },
    { "D[0] / 1", "D[0]" },
    { "1 / D[0]", "1 / D[0]" },
    { "W[0] * 1.0", "W[0] * 1.0" },
    { "D[0] - 0", "D[0]" },
    { "D[0] - -0.0", "D[0] - -0.0" },
    { "D[0] + 0", "D[0] + 0" },
    { "0 + D[0]", "0 + D[0]" },
    { "D[0] * 0", "D[0] * 0" },
    { "W[0] + 0", "W[0]" },
    { "0 + W[0]", "W[0]" },
    { "W[0] - 0", "W[0]" },
    { "W[0] + 2 + 3", "W[0] + 5" },
    { "2 + (W[0] + (1 + 2)) + 4", "W[0] + 9" },
    { "W[0] + -2 + -3", "W[0] + -5" },
    { "W[0] + 2 + -3", "W[0] + 2 + -3" },
    { "W[0] + 9223372036854775807 + 1", "W[0] + 9223372036854775807 + 1" },
    { "D[0] + 2 + 3", "D[0] + 2 + 3" },
    { "D[W[0] + 1 + 2]", "D[W[0] + 3]" },
    { "-(-D[0])", "D[0]" },
    { "-D[0] * F[0]", "-(D[0] * F[0])" },
    { "D[0] / -F[0]", "-(D[0] / F[0])" },
    { "D[0] + -F[0]", "D[0] - F[0]" },
    { "D[0] - -F[0]", "D[0] + F[0]" },
    { "D[0] * -W[0]", "D[0] * -W[0]" },
    { "D[0] + -W[0]", "D[0] + -W[0]" },
    { "W[0] * -W[1]", "W[0] * -W[1]" },
    { "select(D[0] < 1, D[1] * 1, D[1])", "D[1]" },
    { "select(D[0] < 1, F[1], D[1])", "select(D[0] < 1, F[1], D[1])" },
    { "D[W[0] + 0]", "D[W[0]]" },
    { "D[2 * 3]", "D[6]" },
};

TEST(each_rule_of_simplification_does_what_it_says)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        Bed b;
        Text out = { .arena = &b.arena };
        char text[512];
        Expr *e;

        bed_open(&b);
        snprintf(text, sizeof text, H "S[] += %s\n", rules[i].text);
        e = bed_read(&b, text)->stmt[0]->assign[0].value;
        ir_print_expr(&out, b.p, ir_simplify(b.p, e, &(Memo){ 0 }));
        CHECK_STR(out.s, rules[i].simple);
        bed_close(&b);
    }
}

TEST(an_entry_under_a_parent_that_could_be_simpler_stays_that_entry)
{
    Bed b;
    Text out = { .arena = &b.arena };
    Expr *e;

    bed_open(&b);
    e = bed_read(&b, P "axis J = n, F(J) = seg : k < n, G(F) = 2\nf64 A[J, F, G], B[F, G], S[]\n"
                       "S[] += 1\n"
                       "for i in n, f in F(i + 0), g in G(f): S[] += A[g] * B[f, g + 0]\n")
            ->stmt[1]
            ->assign[0]
            .value;
    ir_print_expr(&out, b.p, ir_simplify(b.p, e, &(Memo){ 0 }));
    CHECK_STR(out.s, "A[i + 0, f, g] * B[f, g]");
    bed_close(&b);
}
