/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of targets.  This machine's target has the widest vector registers that its CPU has and
 * the user allows (WEFT_MAX_ISA). */
#include "api/api_int.h"
#include "emit/emit.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Text for a GPU of one maker: resident warps and blocks, and bytes of shared memory, of which a
 * block gets all but 1 kB; lanes and registers of a compute unit. */
#define CUDA(arch, gpus, warps, blocks, shared)                                                \
    {                                                                                          \
        "cuda:sm_" arch, "text for nvcc: " gpus, &emit_dialect_cuda, KIND_WARP,                \
            { VECTOR_LANES(32, 32), 96, VECTOR_CORE }, TARGET_BY_NAME | TARGET_TEXT,           \
            { "-arch=sm_" arch, "-fmad=false" },                                               \
        {                                                                                      \
            32, 4, 255, 65536, warps, blocks, shared, (shared) - (1 << 10), true               \
        }                                                                                      \
    }
#define HIP(arch, gpus, lanes, registers)                                                      \
    {                                                                                          \
        "hip:" arch, "text for hipcc: " gpus, &emit_dialect_hip, KIND_WARP,                    \
            { VECTOR_LANES(lanes, lanes), 96, VECTOR_CORE }, TARGET_BY_NAME | TARGET_TEXT,     \
            { "--offload-arch=" arch, "-ffp-contract=off" },                                   \
        {                                                                                      \
            lanes, 4, 256, registers, 32, 16, 64 << 10, 64 << 10, true                         \
        }                                                                                      \
    }

#define NO_GPU { .lanes = 0 }

/* Of each architecture from narrow to wide: a machine gets the last row that it can run. */
static const Target targets[] = {
    { "c:sse2",
      "x86-64",
      &emit_dialect_c,
      KIND_CPU,
      { VECTOR_LANES(4, 2), 16, VECTOR_CORE },
      0,
      { NULL },
      NO_GPU },
    { "c:avx2",
      "x86-64",
      &emit_dialect_c,
      KIND_CPU,
      { VECTOR_LANES(8, 4), 16, VECTOR_CORE },
      TARGET_AVX2,
      { "-mavx2", "-mfma", "-mf16c" },
      NO_GPU },
    { "c:avx512",
      "x86-64",
      &emit_dialect_c,
      KIND_CPU,
      { VECTOR_LANES(16, 8), 32, VECTOR_CORE },
      TARGET_AVX2 | TARGET_AVX512,
      { "-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma", "-mf16c" },
      NO_GPU },
    { "c:neon",
      "aarch64",
      &emit_dialect_c,
      KIND_CPU,
      { VECTOR_LANES(4, 2), 32, VECTOR_CORE },
      0,
      { NULL },
      NO_GPU },
    { "c:generic",
      "other CPUs",
      &emit_dialect_c,
      KIND_CPU,
      { VECTOR_LANES(4, 2), 16, VECTOR_CORE },
      0,
      { NULL },
      NO_GPU },
    { "c:warp",
      "every CPU: 32 lanes of each type, as a GPU has them, in plain C",
      &emit_dialect_c,
      KIND_WARP,
      { VECTOR_LANES(32, 32), 96, VECTOR_CORE },
      TARGET_BY_NAME,
      { "-DWEFT_WARP=32", "-Wno-psabi" },
      NO_GPU },
    { "opencl",
      "every GPU with OpenCL 1.2 and 64-bit floats; a CPU by PoCL",
      &emit_dialect_opencl,
      KIND_WARP,
      { VECTOR_LANES(32, 32), 96, VECTOR_CORE },
      TARGET_BY_NAME,
      { NULL },
      { 32, 1, 255, 65536, 64, 32, 48 << 10, 32 << 10, false } },
    CUDA("80", "A100", 64, 32, 164 << 10),
    CUDA("90", "H100, H200", 64, 32, 228 << 10),
    CUDA("100", "B200", 64, 32, 228 << 10),
    CUDA("120", "GeForce RTX 50", 48, 24, 100 << 10),
    HIP("gfx90a", "MI200", 64, 131072),
    HIP("gfx942", "MI300", 64, 131072),
    HIP("gfx1100", "Radeon RX 7900", 32, 98304),
};

enum { NTARGET = sizeof targets / sizeof *targets };

#if defined(__x86_64__)
static const char arch[] = "x86-64";
#elif defined(__aarch64__)
static const char arch[] = "aarch64";
#else
static const char arch[] = "other CPUs";
#endif

/* The flags of the rows that this CPU runs. */
#if defined(__x86_64__)
/* Not all compilers know it as a name of __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static unsigned cpu_read(void)
{
    bool avx2, avx512;

    __builtin_cpu_init();
    avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return TARGET_BY_NAME | (avx2 ? TARGET_AVX2 : 0) | (avx512 ? TARGET_AVX512 : 0);
}
#else
static unsigned cpu_read(void)
{
    return TARGET_BY_NAME;
}
#endif

/* The same, read once: in a virtual machine cpuid takes as long as a small kernel. */
static unsigned cpu(void)
{
    static _Atomic unsigned known; /* TARGET_BY_NAME is always one of them */

    if (known == 0)
        known = cpu_read();
    return known;
}

static bool can_run(const Target *target)
{
    return (target->flags & ~cpu()) == 0;
}

static bool is_for_here(const Target *target)
{
    return strcmp(target->arch, arch) == 0 || (target->flags & TARGET_BY_NAME) != 0;
}

/* All, or what WEFT_MAX_ISA may be here. */
static void names_of(Text *out, bool here)
{
    text_put(out, "", 0);
    for (int i = 0; i < NTARGET; i++)
        if (!here || (is_for_here(&targets[i]) && targets[i].gpu.lanes == 0))
            text_f(out, out->n > 0 ? ", %s" : "%s",
                   here ? target_name(&targets[i]) : targets[i].name);
}

const Target *api_target(weft_ctx *ctx)
{
    const char *cap = ctx->os->getenv(ctx->os, "WEFT_MAX_ISA");
    bool capped = cap != NULL && *cap != 0, found = !capped;
    const Target *best = NULL;
    Text names = { .arena = &ctx->scratch };

    if (ctx->target != NULL)
        return ctx->target;
    for (int i = 0; i < NTARGET; i++) {
        bool named = capped && strcmp(target_name(&targets[i]), cap) == 0;

        if (!is_for_here(&targets[i]) || targets[i].gpu.lanes > 0 || (capped && found))
            continue;
        if ((targets[i].flags & TARGET_BY_NAME) != 0 && !named)
            continue;
        found = found || named;
        if (best == NULL || can_run(&targets[i]))
            best = &targets[i];
    }
    names_of(&names, true);
    if (!found)
        err_throw(&ctx->err, ST_ARG, "WEFT_MAX_ISA is %.40s; this machine knows %s", cap, names.s);
    return best;
}

/* The name, or that of the dialect for its first row; "c" is for this machine. */
const Target *api_target_named(const char *name)
{
    for (int i = 0; i < NTARGET; i++)
        if (strcmp(name, targets[i].name) == 0 ||
            (targets[i].gpu.lanes > 0 && strcmp(name, targets[i].dialect->name) == 0))
            return &targets[i];
    return NULL;
}

const Target *api_find_target(weft_ctx *ctx, const char *name)
{
    Text names = { .arena = &ctx->scratch };
    const Target *found = api_target_named(name);

    if (found != NULL)
        return found;
    if (strcmp(name, "c") == 0)
        return api_target(ctx);
    names_of(&names, false);
    err_throw(&ctx->err, ST_ARG, "there is no target %.40s; there are c, %s", name,
              names.s);
}

const Target *api_runs_here(weft_ctx *ctx, const char *name)
{
    const Target *target = api_find_target(ctx, name);

    if (target->flags & TARGET_TEXT)
        err_throw(&ctx->err, ST_ARG,
                  "%s is text for another compiler (weft emit -t %s); the library runs kernels on "
                  "devices through OpenCL: -t opencl",
                  name, name);
    if (target->gpu.lanes == 0 && (!is_for_here(target) || !can_run(target)))
        err_throw(&ctx->err, ST_ARG, "this machine does not run %s", name);
    return target;
}

void api_put_lanes(Text *out, const Target *target)
{
    const GpuUnit *u = &target->gpu;

    text_f(out,
           "#define WEFT_LANES %d\n#define WEFT_WARPS %d\n#define WEFT_RESIDENT %d\n"
           "#define WEFT_REGISTERS %d\n",
           u->lanes, u->block, u->warps / 2 / u->block, u->registers);
}

const char *api_target_row(int i, const char **note)
{
    static const char here[] = "C for the vector registers of this machine";

    *note = i == 0         ? here
            : i <= NTARGET ? targets[i - 1].arch
                           : "the interpreter: the reference, slow";
    return i == 0 ? "c" : i <= NTARGET ? targets[i - 1].name : i == NTARGET + 1 ? "interp" : NULL;
}
