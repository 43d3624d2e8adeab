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
    .stored = " *restrict ",
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
    .table = "(const int64_t[]){ ",
    .table_end = "}",
    .blocks = "",
    .guard = { "\n#if WEFT_BYTES != ", "\n#error \"this text is for ", "\"\n#endif\n" },
};

/* Addresses are global: structure, values and the scratch memory of a unit.  What is spelled
 * differently from one of these languages to the next is a macro of the prelude. */
#define GPU_DIALECT(language, ...)                                                                \
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
        .array = " WEFT_GLOBAL *WEFT_ALONE ", .stored = " WEFT_GLOBAL *WEFT_STORED ",             \
        .constant = "WEFT_CONSTANT ",                                                             \
        .pointer = "WEFT_ADDRESS ", .entry = "WEFT_FN int64_t ", .entry_args = "(WEFT_ARGS)",     \
        .part = "WEFT_FN int64_t ", .part_args = "(WEFT_DATA, ", .function = "WEFT_FN ",          \
        .inlined = "WEFT_FN ", .pass = "(WEFT_SAME", .elementary = "", .negate = "!",             \
        .one = "WEFT_ONE ", .barrier = "WEFT_BARRIER;",                                           \
        .work = "(WEFT_GLOBAL void *)(weft_work + ", .work_end = ")", .guard = { "", "", "" },    \
        .blocks = "(void **)",                                                                    \
        __VA_ARGS__                                                                               \
    }
/* A pointer to a table that stays, as C++ has it. */
#define CXX_TABLE                                      \
    .table = "[] { static const int64_t table[] = { ", \
    .table_end = "}; return (const int64_t *)table; }()"
/* Pointers of these know no address space. */
#define SHARED_ROOM .shared = "(void *)(weft_room + ", .shared_end = ")"
const Dialect emit_dialect_opencl = GPU_DIALECT(
    "opencl", .table = "(const int64_t[]){ ", .table_end = "}",
    .build =
        "clBuildProgram with -cl-std=CL1.2 for the kernels, cc -c -x c for the functions below",
    .suffix = ".cl", .kernels = "\n#if defined(WEFT_OPENCL)\n", .host = "\n#else\n",
    .end = "#endif\n");
const Dialect emit_dialect_cuda =
    GPU_DIALECT("cuda", CXX_TABLE, SHARED_ROOM, .build = "nvcc -c -O3", .suffix = ".cu",
                .kernels = "", .host = "", .end = "");
const Dialect emit_dialect_hip = GPU_DIALECT(
    "hip", CXX_TABLE, SHARED_ROOM, .build = "hipcc -c -O3", .suffix = ".hip", .kernels = "",
    .host = "\n#if __has_include(<hip/hip_runtime.h>)\n", .end = "#endif\n");
