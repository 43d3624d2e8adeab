/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Dialects, a row each.  The prelude of a dialect defines the names that all texts have in common:
 * vector types, loads, stores, folds, checked integers.  A row has what a prelude cannot define:
 * keywords and their order. */
#include "emit/emit.h"

const Dialect emit_dialect_c = {
    .name = "c",
    .prelude = emit_simd_h,
    .type = { [T_none] = "int64_t",
              [T_bool] = "int",
              [T_i32] = "int32_t",
              [T_i64] = "int64_t",
              [T_real] = "double",
              [T_f16] = "uint16_t",
              [T_bf16] = "uint16_t",
              [T_f32] = "float",
              [T_f64] = "double" },
    .array = " *restrict ",
    .constant = "static const ",
    .own = "_Alignas(64) ",
    .pointer = "void *",
    .entry = "int64_t ",
    .entry_args = "(WEFT_ARGS)",
    .part = "WEFT_PART int64_t ",
    .part_args = "(WEFT_DATA, ",
    .prefetch = "__builtin_prefetch(&",
    .near = ");",
    .far = ", 0, 2);",
    .function = "static ",
    .inlined = "static inline ",
    .pass = "(weft_array, weft_size",
    .elementary = emit_elementary_h,
    .negate = "~",
    .guard = { "\n#if WEFT_BYTES != ", "\n#error \"this text is for ", "\"\n#endif\n" },
};

/* Addresses are global: structure, values and the scratch memory of a unit.  What is spelled
 * differently from one of these languages to the next is a macro of the prelude. */
#define GPU_DIALECT(language)                                                                     \
    {                                                                                             \
        .name = language, .prelude = emit_gpu_h,                                                  \
        .type = { [T_none] = "int64_t",                                                           \
                  [T_bool] = "int",                                                               \
                  [T_i32] = "int32_t",                                                            \
                  [T_i64] = "int64_t",                                                            \
                  [T_real] = "double",                                                            \
                  [T_f16] = "uint16_t",                                                           \
                  [T_bf16] = "uint16_t",                                                          \
                  [T_f32] = "float",                                                              \
                  [T_f64] = "double" },                                                           \
        .array = " WEFT_GLOBAL *WEFT_ALONE ", .constant = "WEFT_CONSTANT ",                       \
        .pointer = "WEFT_ADDRESS ", .entry = "WEFT_FN int64_t ", .entry_args = "(WEFT_ARGS)",     \
        .part = "WEFT_FN int64_t ", .part_args = "(WEFT_DATA, ", .function = "WEFT_FN ",          \
        .inlined = "WEFT_FN ", .pass = "(WEFT_SAME", .elementary = "", .negate = "!",             \
        .one = "WEFT_ONE ", .barrier = "WEFT_BARRIER;",                                           \
        .work = "(WEFT_GLOBAL void *)(weft_work + ", .work_end = ")", .guard = { "", "", "" },    \
    }
const Dialect emit_dialect_opencl = GPU_DIALECT("opencl"), emit_dialect_cuda = GPU_DIALECT("cuda"),
              emit_dialect_hip = GPU_DIALECT("hip");
