/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The part of the CUDA runtime that emitted programs use.  Its device is the interpreter of sm_80
 * machine code.  Memory that the host has not written has no value; a wrong call is an error of the
 * program; any call can be made to fail. */
#include "gpu/run/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEMORY = 512, MOST_KERNELS = 1024, MOST_PARAMS = 300 };
enum { SUCCESS = 0, OUT_OF_MEMORY = 2, INVALID = 1 }; /* cudaError_t */
enum { TO_DEVICE = 1, TO_HOST = 2 };                  /* cudaMemcpyKind */

typedef struct Memory {
    uint64_t at;
    unsigned char *host;
    size_t bytes;
    bool own, freed;
} Memory;

static Memory memory[MOST_MEMORY];
static int memories;
static struct {
    const void *stub;
    char *name;
} kernel[MOST_KERNELS];
static int kernels;
static SassGpu *gpu;
static const Sass *code;
static Ran ran;
static int fail_at;
static uint64_t launches;

void runtime_code(const Sass *s)
{
    for (int i = 0; i < kernels; i++)
        free(kernel[i].name);
    kernels = 0;
    code = s;
}

void runtime_begin(int at)
{
    memset(&ran, 0, sizeof ran);
    fail_at = at;
}

Ran *runtime_ran(void)
{
    return &ran;
}

static void complain(const char *format, ...)
{
    va_list args;

    if (ran.errors++ > 0)
        return;
    va_start(args, format);
    vsnprintf(ran.error, sizeof ran.error, format, args);
    va_end(args);
}

static bool fails(void)
{
    return ran.calls++ == fail_at;
}

static void *add(const char *name, void *host, size_t bytes, bool own, enum SassBuffer kind)
{
    gpu = gpu != NULL ? gpu : sass_gpu();
    if (memories == MOST_MEMORY) {
        complain("more than %d arrays", MOST_MEMORY);
        return NULL;
    }
    memory[memories] =
        (Memory){ sass_buffer(gpu, name, host, bytes, kind), host, bytes, own, false };
    return (void *)(uintptr_t)memory[memories++].at;
}

void *runtime_input(const char *name, void *host, size_t bytes, bool is_written)
{
    return add(name, host, bytes, false, is_written ? SASS_INOUT : SASS_INPUT);
}

void *runtime_output(const char *name, void *host, size_t bytes)
{
    return add(name, host, bytes, false, SASS_FRESH);
}

void runtime_end(void)
{
    for (int i = 0; i < memories; i++)
        if (memory[i].own)
            free(memory[i].host);
    memories = 0;
    if (gpu != NULL)
        sass_drop_buffers(gpu);
}

static Memory *find(const void *p, size_t bytes)
{
    const uint64_t at = (uintptr_t)p;

    for (int i = 0; i < memories; i++)
        if (!memory[i].freed && at >= memory[i].at && at - memory[i].at + bytes <= memory[i].bytes)
            return &memory[i];
    return NULL;
}

/* ---- What emitted programs call.  The declarations are those of NVIDIA's headers, with integers
 * for enumerations. */
typedef struct Dim3 {
    unsigned x, y, z;
} Dim3;
#pragma GCC visibility push(default)
int cudaMalloc(void **to, size_t bytes);
int cudaFree(void *p);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamSynchronize(void *stream);
int cudaLaunchKernel(const void *f, Dim3 grid, Dim3 block, void **arg, size_t shared, void *stream);
int __cudaLaunchKernel(void *f, Dim3 grid, Dim3 block, void **arg, size_t shared, void *stream);
int __cudaGetKernel(void **to, const void *f);
char __cudaInitModule(void **handle);
int __cudaPopCallConfiguration(Dim3 *grid, Dim3 *block, size_t *shared, void *stream);
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *f, const char *name, int limit,
                            void *tid, void *bid, Dim3 *block, Dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *var, char *address, const char *name, int ext,
                       size_t size, int constant, int global);
#pragma GCC visibility pop

int cudaMalloc(void **to, size_t bytes)
{
    void *host;

    if (fails())
        return OUT_OF_MEMORY;
    host = calloc(bytes + 1, 1);
    *to = add("memory of the plan", host, bytes, true, SASS_FRESH);
    ran.live++;
    return SUCCESS;
}

int cudaFree(void *p)
{
    Memory *m = p != NULL ? find(p, 0) : NULL;

    if (p == NULL)
        return SUCCESS;
    if (m == NULL || m->at != (uintptr_t)p || !m->own) {
        complain("cudaFree of what cudaMalloc did not give, or again");
        return INVALID;
    }
    m->freed = true;
    ran.live--;
    return SUCCESS;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    Memory *m = find(kind == TO_DEVICE ? to : from, bytes);

    (void)stream;
    if (fails())
        return INVALID;
    if (m == NULL || (kind != TO_DEVICE && kind != TO_HOST)) {
        complain("a copy of %zu bytes outside the memory of the device", bytes);
        return INVALID;
    }
    if (kind == TO_DEVICE) {
        memcpy(m->host + ((uintptr_t)to - m->at), from, bytes);
        sass_filled(gpu, m->at);
    } else {
        memcpy(to, m->host + ((uintptr_t)from - m->at), bytes);
    }
    return SUCCESS;
}

int cudaStreamSynchronize(void *stream)
{
    (void)stream;
    return fails() ? INVALID : SUCCESS;
}

static const char *name_of(const void *stub)
{
    for (int i = 0; i < kernels; i++)
        if (kernel[i].stub == stub)
            return kernel[i].name;
    return NULL;
}

static void keep(const SassKernel *k, const SassShape *shape)
{
    Launch *l = &ran.launch[ran.n < MOST_LAUNCHES ? ran.n++ : MOST_LAUNCHES - 1];

    *l = (Launch){ sass_name(k),   sass_count(gpu),
                   sass_use(k),    sass_warps(k, (int)shape->block[0], shape->dynamic),
                   shape->grid[0], shape->block[0] };
}

int cudaLaunchKernel(const void *f, Dim3 grid, Dim3 block, void **arg, size_t shared, void *stream)
{
    const char *name = name_of(f);
    const SassKernel *k = name != NULL && code != NULL ? sass_kernel(code, name) : NULL;
    SassShape shape = { { grid.x, grid.y, grid.z }, { block.x, block.y, block.z }, (int)shared };
    SassParam param[MOST_PARAMS];
    SassParams p = { .size = 0 };
    int n;

    (void)stream;
    if (fails())
        return INVALID;
    if (k == NULL || grid.x == 0 || block.x == 0 || block.x > 1024) {
        complain("a launch of %s with %u blocks of %u threads", name != NULL ? name : "no kernel",
                 grid.x, block.x);
        return INVALID;
    }
    n = sass_kernel_params(k, param, MOST_PARAMS);
    for (int i = 0; i < n && i < MOST_PARAMS; i++) {
        if ((size_t)param[i].offset + (size_t)param[i].size > sizeof p.bytes)
            complain("%s has more than 4 kB of parameters", name);
        else
            memcpy(p.bytes + param[i].offset, arg[i], (size_t)param[i].size);
        p.size = (size_t)(param[i].offset + param[i].size);
    }
    sass_seed(gpu, launches++);
    if (!sass_launch(gpu, k, &shape, &p))
        complain("%s: %s", name, sass_error(gpu, 0) != NULL ? sass_error(gpu, 0) : "an error");
    keep(k, &shape);
    return SUCCESS;
}

void __cudaRegisterFunction(void **handle, const char *stub, char *f, const char *name, int limit,
                            void *tid, void *bid, Dim3 *block, Dim3 *grid, int *warp)
{
    (void)handle, (void)f, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    if (kernels < MOST_KERNELS) {
        kernel[kernels].stub = stub;
        kernel[kernels++].name = strdup(name);
    }
}

void __cudaRegisterVar(void **handle, char *var, char *address, const char *name, int ext,
                       size_t size, int constant, int global)
{
    (void)handle, (void)var, (void)address, (void)name, (void)ext, (void)size, (void)constant;
    (void)global;
}

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;

    handle = binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 0;
}

/* Of launches with <<< >>>, which the text does not have. */
int __cudaLaunchKernel(void *f, Dim3 grid, Dim3 block, void **arg, size_t shared, void *stream)
{
    return cudaLaunchKernel(f, grid, block, arg, shared, stream);
}

int __cudaGetKernel(void **to, const void *f)
{
    *to = (void *)(uintptr_t)f;
    return SUCCESS;
}

int __cudaPopCallConfiguration(Dim3 *grid, Dim3 *block, size_t *shared, void *stream)
{
    (void)grid, (void)block, (void)shared, (void)stream;
    return INVALID;
}
