/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Many kernels in one C file: one compiler process, one library. */
#include "kernel/kernel_test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define AVX2 "-mavx2", "-mfma", "-mf16c",
#define AVX2_LANES { 8, 4 }
#else
#define AVX2
#define AVX2_LANES { 4, 2 }
#endif

enum { NATIVE = -1 }; /* what this CPU has */

const Toolchain toolchains[] = {
    { "cc",
      "the system's compiler",
      NULL,
      { "-O0", AVX2 NULL },
      AVX2_LANES,
      5, NULL },
    { "clang", "clang, which compiles faster", "clang", { "-O0", AVX2 NULL }, AVX2_LANES, 65, NULL },
    { "plain",
      "clang, no vectors but those that every CPU has",
      "clang",
      { "-O0", NULL },
      { 4, 2 },
      10, NULL },
    { "wide",
      "clang, AVX-512",
      "clang",
      { "-O0", "-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma", "-mf16c", NULL },
      { 16, 8 },
      10, NULL },
    { "fast",
      "optimized for this CPU",
      NULL,
      { "-O3", "-march=native", NULL },
      { NATIVE },
      0, NULL },
    { "scalar", "clang, no vectors", "clang", { "-O0", NULL }, { 1, 1 }, 5, NULL },
    { "halves",
      "clang, the lanes of AVX-512 in two registers of AVX2",
      "clang",
      { "-O0", "-Wno-psabi", "-DWEFT_HALVES", "-mavx2", "-mfma", NULL },
      { 16, 8 },
      5, NULL },
    { "warp",
      "clang, 32 lanes of every type: the lanes of c:warp",
      "clang",
      { "-O0", "-Wno-psabi", "-DWEFT_WARP=32", NULL },
      { 32, 32 },
      10, NULL },
    { .name = "device",
      .what = "an OpenCL device; PoCL is one",
      .lanes = { 32, 32 },
      .device = &backend_opencl },
    { .name = "cuda",
      .what = "nvcc, and the interpreter of its machine code",
      .lanes = { 32, 32 },
      .device = &backend_sass },
    { "sanitize",
      "under sanitizers",
      NULL,
      { "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", NULL },
      { 4, 2 },
      0, NULL },
    { "race",
      "under the thread sanitizer",
      NULL,
      { "-O1", "-fsanitize=thread", NULL },
      { 4, 2 },
      0, NULL },
    { NULL, NULL, NULL, { NULL }, { 0 }, 0, NULL },
};

const Toolchain *toolchain_find(const char *name)
{
    for (const Toolchain *t = toolchains; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

static bool has_flag(const Toolchain *t, const char *flag)
{
    for (int i = 0; t->flag[i] != NULL; i++)
        if (strcmp(t->flag[i], flag) == 0)
            return true;
    return false;
}

#if defined(__x86_64__)
static bool has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
static bool has_avx512(void)
{
    return false;
}

static bool has_avx2(void)
{
    return false;
}
#endif

static bool has_cpu(const Toolchain *t)
{
    return (!has_flag(t, "-mavx512f") || has_avx512()) && (!has_flag(t, "-mavx2") || has_avx2());
}

VectorUnit toolchain_unit(const Toolchain *t)
{
    int wide = has_avx512() ? 8 : has_avx2() ? 4 : 2;
    const VectorUnit native = { VECTOR_LANES(2 * wide, wide), 0, VECTOR_CORE },
                     said = { VECTOR_LANES(t->lanes[0], t->lanes[1]), 0, VECTOR_CORE };

    return t->lanes[0] == NATIVE ? native : said;
}

/* Data that round: then a sum of products must round twice, and a function once, as the interpreter
 * does.  How far functions of f32 are from that, tests/elementary.c tells. */
#define EACH_FUNCTION(F) \
    F(exp) F(log) F(sqrt) F(rsqrt) F(sin) F(cos) F(tanh) F(sigmoid) F(silu)
#define UNDEF(name) "#undef weft_" #name "_f32\n"
#define WIDER(name) \
    "#define weft_" #name "_f32(x) ((float)weft_" #name "_f64((double)(x)))\n"
#define FUSED "\n#undef weft_fma_f32\n#undef weft_fma_f64\n" EACH_FUNCTION(UNDEF)
static const char fused[] = FUSED;
static const char apart[] = FUSED "#define weft_fma_f32(a, b, c) ((a) * (b) + (c))\n"
                                  "#define weft_fma_f64(a, b, c) ((a) * (b) + (c))\n"
                                  EACH_FUNCTION(WIDER);

static void write_source(Arena *a, const char *path, const Subjects *all)
{
    Text t = { .arena = a };

    text_f(&t, "%s%s", emit_simd_h, emit_elementary_h);
    for (int i = 0; i < all->n; i++)
        if (all->s[i].kernel != NULL) {
            text_str(&t, all->s[i].exact || all->s[i].tolerance > 0 ? fused : apart);
            text_str(&t, all->s[i].source);
        }
    file_write(a, path, t.s, t.n);
}

static int run_compiler(char *const *argv, const char *log)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        if (fd >= 0 && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0)
            execvp(argv[0], argv);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status;
}

static const char *compiler_of(const Toolchain *t)
{
    const char *cc = getenv("WEFT_CC");

    return t->cc != NULL ? t->cc : cc != NULL && *cc != 0 ? cc : "cc";
}

bool toolchain_here(const Toolchain *t)
{
    const char *argv[] = { compiler_of(t), "--version", NULL };

    if (t->device != NULL)
        return t->device->is_here();
    return has_cpu(t) && run_compiler((char *const *)argv, "/dev/null") == 0;
}

/* What the compiler says is a failure: emitted C is free of warnings under every compiler. */
static int compile(const Toolchain *t, const char *source, const char *lib, const char *log)
{
    const char *argv[32] = { compiler_of(t), "-std=gnu11", "-ffp-contract=off", "-Wall", "-Wextra",
                             "-shared",      "-fPIC",      "-o",                lib,     source,
                             "-lm" };
    int n = 11;

    for (int i = 0; t->flag[i] != NULL; i++)
        argv[n++] = t->flag[i];
    argv[n] = NULL;
    return run_compiler((char *const *)argv, log);
}

static void read_log(Batch *b, const char *log)
{
    FILE *f = fopen(log, "r");
    size_t n = f != NULL ? fread(b->message, 1, sizeof b->message - 1, f) : 0;

    b->message[n] = 0;
    if (f != NULL)
        fclose(f);
}

Batch batch_load(Arena *a, const Toolchain *t, const Subjects *all)
{
    char dir[] = "/tmp/weft-kernel-XXXXXX", source[64], lib[64], log[64];
    Batch b = { 0 };

    if (t->device != NULL) {
        device_load(a, &b, all);
        return b;
    }
    if (mkdtemp(dir) == NULL)
        err_throw(a->err, ST_IO, "no temporary folder");
    snprintf(source, sizeof source, "%s/k.c", dir);
    snprintf(lib, sizeof lib, "%s/k.so", dir);
    snprintf(log, sizeof log, "%s/log", dir);
    write_source(a, source, all);
    if (compile(t, source, lib, log) != 0)
        snprintf(b.message, sizeof b.message, "the compiler failed");
    else
        b.lib = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
    read_log(&b, log);
    if (b.lib == NULL && b.message[0] == 0)
        snprintf(b.message, sizeof b.message, "the library does not load: %.300s", dlerror());
    if (getenv("WEFT_TEST_KEEP") == NULL) {
        unlink(source);
        unlink(lib);
        unlink(log);
        rmdir(dir);
    }
    return b;
}

void batch_close(Batch *b)
{
    if (b->lib != NULL)
        dlclose(b->lib);
    device_close(b);
}
