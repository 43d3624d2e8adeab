/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels as CUDA: nvcc compiles the text for sm_80, and the interpreter of tests/gpu/sass runs
 * the machine code.  A race, an access that is not allowed, and a value that nobody has written are
 * failures; each launch draws another order of the warps. */
#include "gpu/sass/sass.h"
#include "kernel/kernel_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARPS = 2, LANES = 32 };

typedef struct Memory { /* of the device */
    uint64_t at;
    void *host;
} Memory;

typedef struct Module {
    Sass *code;
    const SassKernel **kernel;
} Module;

static SassGpu *gpu;
static int buffers; /* that are there */
static uint64_t launches;

static bool is_here(void)
{
    char where[SASS_TEXT];

    return sass_tools(where) && system("nvcc --version >/dev/null 2>&1") == 0;
}

static void *build(Arena *a, const char *text, const char *const *name, int n)
{
    char dir[] = "/tmp/weft-sass-XXXXXX", command[400], why[SASS_TEXT];
    Module *m = arena_alloc(a, sizeof *m);
    Text file = { .arena = a };
    int status;

    if (mkdtemp(dir) == NULL)
        err_throw(a->err, ST_IO, "no temporary folder");
    text_f(&file, "%s/k.cu", dir);
    file_write(a, file.s, text, strlen(text));
    snprintf(command, sizeof command,
             "nvcc -Werror all-warnings -arch=sm_80 -fmad=false -cubin -o %s/k.cubin %s/k.cu >&2",
             dir, dir);
    status = system(command);
    snprintf(command, sizeof command, "%s/k.cubin", dir);
    m->code = status == 0 ? sass_load(command, why) : NULL;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (getenv("WEFT_TEST_KEEP") == NULL && system(command) != 0)
        err_throw(a->err, ST_IO, "cannot remove %s", dir);
    if (m->code == NULL)
        err_throw(a->err, ST_IO, "%s", status == 0 ? why : "nvcc failed");
    m->kernel = arena_array(a, n, sizeof *m->kernel);
    for (int i = 0; i < n; i++)
        m->kernel[i] = sass_kernel(m->code, name[i]);
    gpu = gpu != NULL ? gpu : sass_gpu();
    return m;
}

static void close_module(void *module)
{
    sass_free(((Module *)module)->code);
}

static void *put(const void *from, int64_t bytes)
{
    Memory *m = malloc(sizeof *m);
    size_t n = bytes > 0 ? (size_t)bytes : 1;

    m->host = calloc(1, n);
    if (from != NULL && bytes > 0)
        memcpy(m->host, from, n);
    m->at = sass_buffer(gpu, "an array", m->host, n, from != NULL ? SASS_INOUT : SASS_FRESH);
    buffers++;
    return m;
}

static bool get(void *memory, void *to, int64_t bytes)
{
    if (bytes > 0)
        memcpy(to, ((Memory *)memory)->host, (size_t)bytes);
    return true;
}

/* The interpreter forgets all buffers at a time, when the last of them goes. */
static void drop(void *memory)
{
    if (--buffers == 0)
        sass_drop_buffers(gpu);
    free(((Memory *)memory)->host);
    free(memory);
}

static bool launch(void *module, int kernel, const DevArg *arg, int narg, int64_t groups,
                   int64_t threads)
{
    const Module *m = module;
    SassParams p = { .size = 0 };
    SassShape shape = { { (unsigned)groups }, { (unsigned)threads }, 0 };

    for (int i = 0; i < narg; i++)
        if (arg[i].bytes > 0)
            sass_param_bytes(&p, arg[i].value, (size_t)arg[i].bytes, 8);
        else
            sass_param64(&p, arg[i].memory != NULL ? ((Memory *)arg[i].memory)->at : 0);
    if (m->kernel[kernel] == NULL) {
        printf("a kernel is not in the machine code\n");
        return false;
    }
    sass_seed(gpu, launches++);
    if (sass_launch(gpu, m->kernel[kernel], &shape, &p))
        return true;
    for (int i = 0; i < 3 && sass_error(gpu, i) != NULL; i++)
        printf("%s: %s\n", sass_name(m->kernel[kernel]), sass_error(gpu, i));
    return false;
}

const Backend backend_sass = { .dialect = &emit_dialect_cuda,
                               .warps = WARPS,
                               .threads = WARPS * LANES,
                               .is_here = is_here,
                               .build = build,
                               .close = close_module,
                               .put = put,
                               .get = get,
                               .drop = drop,
                               .launch = launch };
