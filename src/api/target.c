/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What programs are compiled for: for this machine, the widest vector registers that its CPU has
 * and the user allows (WEFT_MAX_ISA). */
#include "api/api_int.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Of each architecture from narrow to wide. */
static const Isa isas[] = {
    { "c:sse2", "x86-64", 16, 16, { NULL }, NULL, KIND_CPU },
    { "c:avx2", "x86-64", 32, 16, { "-mavx2", "-mfma", "-mf16c" }, "__AVX2__", KIND_CPU },
    { "c:avx512",
      "x86-64",
      64,
      32,
      { "-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma", "-mf16c" },
      "__AVX512F__", KIND_CPU },
    { "c:neon", "aarch64", 16, 32, { NULL }, "__ARM_NEON", KIND_CPU },
    { "c:generic", "other CPUs", 16, 16, { NULL }, NULL, KIND_CPU },
};

enum { NISA = sizeof isas / sizeof *isas };

#if defined(__x86_64__)
static const char arch[] = "x86-64";
#elif defined(__aarch64__)
static const char arch[] = "aarch64";
#else
static const char arch[] = "other CPUs";
#endif

#if defined(__x86_64__)
/* Not all compilers know it as a name of __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && has_avx2();
}
#endif

static bool has(const Isa *isa)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (isa->bytes > 16)
        return isa->bytes == 64 ? has_avx512() : has_avx2();
#endif
    return isa->bytes == 16;
}

static void names_of(Text *out, const char *of_arch)
{
    text_put(out, "", 0);
    for (int i = 0; i < NISA; i++)
        if (of_arch == NULL || strcmp(isas[i].arch, of_arch) == 0)
            text_f(out, out->n > 0 ? ", %s" : "%s", isa_name(&isas[i]));
}

const Isa *api_isa(weft_ctx *ctx)
{
    const char *cap = ctx->os->getenv(ctx->os, "WEFT_MAX_ISA");
    bool capped = cap != NULL && *cap != 0, found = !capped;
    const Isa *best = NULL;
    Text names = { .arena = &ctx->scratch };

    for (int i = 0; i < NISA; i++) {
        if (strcmp(isas[i].arch, arch) != 0 || (capped && found))
            continue;
        found = found || strcmp(isa_name(&isas[i]), cap) == 0;
        if (best == NULL || has(&isas[i]))
            best = &isas[i];
    }
    names_of(&names, arch);
    if (!found)
        err_throw(&ctx->err, ST_ARG, "WEFT_MAX_ISA is %.40s; this machine knows %s", cap, names.s);
    return best;
}

const Isa *api_find_isa(weft_ctx *ctx, const char *target)
{
    Text names = { .arena = &ctx->scratch };

    if (strcmp(target, "c") == 0)
        return api_isa(ctx);
    for (int i = 0; i < NISA; i++)
        if (strcmp(target, isas[i].target) == 0)
            return &isas[i];
    names_of(&names, NULL);
    err_throw(&ctx->err, ST_ARG, "there is no target %.40s; there is c, or c: and one of %s",
              target, names.s);
}

const char *api_target(int i, const char **note)
{
    static const char here[] = "C, for the vector registers of this machine";

    *note = i == 0 ? here : i <= NISA ? isas[i - 1].arch : "the interpreter: right, not fast";
    return i == 0 ? "c" : i <= NISA ? isas[i - 1].target : i == NISA + 1 ? "interp" : NULL;
}
