/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The tables of operators and types. */
#include "ir/ir.h"
#include "ir/ir_int.h"

const char *const ir_stage[STAGE_COUNT] = { "coordinates", "positions", "loops" };
const char ir_stage_threads[] = "threads";

const OpInfo ir_op[OP_COUNT] = {
#define OP(name, nargs, result, text, props) { #name, text, nargs, result, props },
#include "ir/op.def"
#undef OP
};

int ir_precedence(Op op)
{
    switch (op) {
    case OP_or: return P_OR;
    case OP_and: return P_AND;
    case OP_not: return P_NOT;
    case OP_lt:
    case OP_le:
    case OP_gt:
    case OP_ge:
    case OP_eq:
    case OP_ne: return P_COMPARE;
    case OP_add:
    case OP_sub: return P_SUM;
    case OP_mul:
    case OP_div:
    case OP_mod: return P_PRODUCT;
    case OP_neg: return P_UNARY;
    default: return P_PRIMARY;
    }
}

/* clang-format off */
const TypeInfo ir_type[T_COUNT] = {
    [T_none] = { "none", 0, T_none, false, false },
    [T_bool] = { "bool", 0, T_bool, false, false },
    [T_i32] = { "i32", 4, T_i64, false, true },
    [T_i64] = { "i64", 8, T_i64, false, true },
    [T_real] = { "real", 0, T_real, true, false },
    [T_f16] = { "f16", 2, T_f32, true, true },
    [T_bf16] = { "bf16", 2, T_f32, true, true },
    [T_f32] = { "f32", 4, T_f32, true, true },
    [T_f64] = { "f64", 8, T_f64, true, true },
};
/* clang-format on */
