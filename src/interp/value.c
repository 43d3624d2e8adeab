/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Arithmetic on values: integers checked, f32 rounded after each operation, NaN and ties as docs/
 * ir.md has them.  And elements of arrays. */
#include "interp/interp_int.h"

#include <math.h>

Val interp_convert(Val v, Type from, Type to)
{
    if (from == to || !ir_type[to].floats)
        return v;
    if (!ir_type[from].floats)
        v.f = to == T_f32 ? (double)(float)v.i : (double)v.i;
    else if (to == T_f32)
        v.f = (double)(float)v.f;
    return v;
}

static _Noreturn void refuse(Run *x, Op op, int64_t a, int64_t b)
{
    if (ir_op[op].nargs == 1)
        interp_fail(x, "integer overflow: %s of %lld", ir_op[op].name, (long long)a);
    if ((op == OP_div || op == OP_mod) && b == 0)
        interp_fail(x, "division by zero: %lld %s 0", (long long)a, ir_op[op].text);
    interp_fail(x, "integer overflow: %lld %s %lld", (long long)a, ir_op[op].text, (long long)b);
}

static Val int_op(Run *x, Op op, int64_t a, int64_t b)
{
    Val r = { 0 };
    bool bad = false;

    switch (op) {
    case OP_neg: bad = int_sub(0, a, &r.i); break;
    case OP_abs: bad = a < 0 ? int_sub(0, a, &r.i) : (r.i = a, false); break;
    case OP_add: bad = int_add(a, b, &r.i); break;
    case OP_sub: bad = int_sub(a, b, &r.i); break;
    case OP_mul: bad = int_mul(a, b, &r.i); break;
    case OP_div: bad = int_div(a, b, &r.i); break;
    case OP_mod: bad = int_mod(a, b, &r.i); break;
    case OP_relu: r.i = a > 0 ? a : 0; break;
    case OP_step: r.i = a > 0; break;
    case OP_sign: r.i = (a > 0) - (a < 0); break;
    case OP_min: r.i = a < b ? a : b; break;
    case OP_max: r.i = a > b ? a : b; break;
    case OP_lt: r.i = a < b; break;
    case OP_le: r.i = a <= b; break;
    case OP_gt: r.i = a > b; break;
    case OP_ge: r.i = a >= b; break;
    case OP_eq: r.i = a == b; break;
    case OP_ne: r.i = a != b; break;
    case OP_fits: r.i = 1; break; /* a has been computed */
    default: r.i = a; break; /* stop */
    }
    if (bad)
        refuse(x, op, a, b);
    return r;
}

static bool float_compare(Op op, double a, double b)
{
    switch (op) {
    case OP_lt: return a < b;
    case OP_le: return a <= b;
    case OP_gt: return a > b;
    case OP_ge: return a >= b;
    case OP_eq: return a == b;
    default: return a != b;
    }
}

static double float_op(Op op, double a, double b)
{
    switch (op) {
    case OP_neg: return -a;
    case OP_add: return a + b;
    case OP_sub: return a - b;
    case OP_mul: return a * b;
    case OP_div: return a / b;
    case OP_min: return a <= b || a != a ? a : b;
    case OP_max: return a >= b || a != a ? a : b;
    case OP_abs: return fabs(a);
    case OP_relu: return a >= 0 || a != a ? a : 0;
    case OP_step: return a > 0;
    case OP_sign: return (a > 0) - (a < 0);
    case OP_exp: return exp(a);
    case OP_log: return log(a);
    case OP_sqrt: return sqrt(a);
    case OP_rsqrt: return 1 / sqrt(a);
    case OP_sin: return sin(a);
    case OP_cos: return cos(a);
    case OP_tanh: return tanh(a);
    case OP_sigmoid: return 1 / (1 + exp(-a));
    case OP_silu: return a * (1 / (1 + exp(-a)));
    default: return a; /* stop, f32, f64 */
    }
}

/* For + - * / and sqrt, computing in f64 and rounding once is what f32 arithmetic gives. */
Val interp_op(Run *x, Op op, Type t, Val a, Val b)
{
    if (!ir_type[t].floats)
        return int_op(x, op, a.i, b.i);
    if (op >= OP_lt && op <= OP_ne)
        return (Val){ .i = float_compare(op, a.f, b.f) };
    return interp_convert((Val){ .f = float_op(op, a.f, b.f) }, T_f64, t);
}

Val interp_apply(Run *x, Expr *e, Val a, Val b)
{
    Type t = e->arg[0]->type;

    if (e->nargs > 1)
        t = ir_promote(t, e->arg[1]->type);
    if (e->type != T_bool) /* that of exp(i), f32(x) is wider */
        t = e->type;
    a = interp_convert(a, e->arg[0]->type, t);
    if (e->nargs > 1)
        b = interp_convert(b, e->arg[1]->type, t);
    return interp_op(x, (Op)e->op, t, a, b);
}

Val interp_get(const Array *a, int64_t i)
{
    if (ir_type[a->type].floats)
        return (Val){ .f = ir_array_float(a, i) };
    return (Val){ .i = ir_array_int(a, i) };
}

bool interp_put(const Array *a, int64_t i, Val v)
{
    switch (a->type) {
    case T_i32:
        if (v.i != (int32_t)v.i)
            return false;
        ((int32_t *)a->data)[i] = (int32_t)v.i;
        break;
    case T_i64: ((int64_t *)a->data)[i] = v.i; break;
    case T_f16: ((uint16_t *)a->data)[i] = num_to_f16(v.f); break;
    case T_bf16: ((uint16_t *)a->data)[i] = num_to_bf16(v.f); break;
    case T_f32: ((float *)a->data)[i] = (float)v.f; break;
    default: ((double *)a->data)[i] = v.f; break;
    }
    return true;
}
