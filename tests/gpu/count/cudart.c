/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of CUDA's runtime that emitted text and the code of nvcc around it call. */
#include "gpu/count/cudart.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, FAILED = 1, TO_DEVICE = 1, MOST_MEMORY = 1024, MOST_PARAMS = 300 };

typedef struct Dim {
    unsigned x, y, z;
} Dim;
typedef struct Binary { /* what nvcc hands over: fatBinaryWrapper */
    int magic, version;
    const void *data;
    void *more;
} Binary;
typedef struct Memory {
    uint64_t at;
    char *host;
    size_t bytes;
} Memory;
typedef struct Function { /* the host's name of a kernel, and sizes of its parameters */
    const void *host;
    int kernel, params;
    SassParam param[MOST_PARAMS];
} Function;

/* The libraries that nvcc makes find them here. */
#pragma GCC visibility push(default)
int cudaMalloc(void **to, size_t bytes);
int cudaFree(void *at);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *queue);
int cudaStreamSynchronize(void *queue);
int cudaLaunchKernel(const void *f, Dim grid, Dim block, void **arg, size_t dynamic, void *queue);
void **__cudaRegisterFatBinary(Binary *b);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const void *host, char *name, const char *device, int n,
                            void *a, void *b, void *c, void *d, int *size);
int __cudaPopCallConfiguration(Dim *grid, Dim *block, size_t *dynamic, void *queue);
char __cudaInitModule(void **handle);
#pragma GCC visibility pop

Cudart cudart;
static Memory memory[MOST_MEMORY];
static int memories, functions;
static Function function[CUDART_KERNELS];
static char *elf; /* of the module */

static Memory *memory_at(const void *p)
{
    const uint64_t at = (uint64_t)(uintptr_t)p;

    for (int i = 0; i < memories; i++)
        if (memory[i].host != NULL && at >= memory[i].at && at - memory[i].at < memory[i].bytes)
            return &memory[i];
    return NULL;
}

void *cudart_memory(const void *from, size_t bytes)
{
    Memory *m = &memory[memories];

    if (memories == MOST_MEMORY)
        return NULL;
    memories++;
    m->bytes = bytes + 16;
    m->host = calloc(1, m->bytes);
    if (m->host == NULL)
        abort();
    if (from != NULL)
        memcpy(m->host, from, bytes);
    m->at = sass_buffer(cudart.gpu, "an array", m->host, m->bytes,
                        from != NULL ? SASS_INOUT : SASS_FRESH);
    return (void *)(uintptr_t)m->at;
}

void *cudart_host(const void *device)
{
    const Memory *m = memory_at(device);

    return m == NULL ? NULL : m->host + ((uint64_t)(uintptr_t)device - m->at);
}

int cudaMalloc(void **to, size_t bytes)
{
    *to = cudart_memory(NULL, bytes);
    return *to != NULL ? SUCCESS : FAILED;
}

/* The interpreter forgets buffers all at a time, in cudart_close. */
int cudaFree(void *at)
{
    return memory_at(at) != NULL ? SUCCESS : FAILED;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *queue)
{
    char *host = cudart_host(kind == TO_DEVICE ? to : from);

    (void)queue;
    if (host == NULL)
        return FAILED;
    if (kind == TO_DEVICE) {
        memcpy(host, from, bytes);
        sass_filled(cudart.gpu, (uint64_t)(uintptr_t)to);
    } else {
        memcpy(to, host, bytes);
    }
    return SUCCESS;
}

int cudaStreamSynchronize(void *queue)
{
    (void)queue;
    return SUCCESS;
}

/* ---- The module: nvcc's code registers it when the library is loaded. */

/* The bytes of the ELF file at `p`. */
static size_t elf_bytes(const char *p)
{
    Elf64_Ehdr h;
    size_t end;

    memcpy(&h, p, sizeof h);
    end = h.e_phoff + (size_t)h.e_phnum * h.e_phentsize;
    if (h.e_shoff + (size_t)h.e_shnum * h.e_shentsize > end)
        end = h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
    return end;
}

/* A header (magic, version, bytes of the header, bytes behind it) and, not compressed, the cubin. */
static const char *find_elf(const char *fat)
{
    uint64_t n;
    uint16_t head;

    memcpy(&head, fat + 6, sizeof head);
    memcpy(&n, fat + 8, sizeof n);
    for (const char *p = fat + head; p < fat + head + n; p++)
        if (memcmp(p, ELFMAG, SELFMAG) == 0)
            return p;
    return NULL;
}

static void load_module(const char *at)
{
    char path[] = "/tmp/weft-cubin-XXXXXX", why[SASS_TEXT] = "no temporary file";
    const size_t n = elf_bytes(at);
    const int file = mkstemp(path);

    elf = malloc(n);
    if (elf == NULL)
        abort();
    memcpy(elf, at, n);
    if (file >= 0 && write(file, at, n) == (ssize_t)n)
        cudart.code = sass_load(path, why);
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    if (cudart.code == NULL)
        fprintf(stderr, "%s\n", why);
}

void **__cudaRegisterFatBinary(Binary *b)
{
    const char *at = find_elf(b->data);

    if (at == NULL)
        fprintf(stderr, "there is no machine code, or it is compressed\n");
    else
        load_module(at);
    return (void **)&elf;
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
    return 1;
}

int __cudaPopCallConfiguration(Dim *grid, Dim *block, size_t *dynamic, void *queue)
{
    (void)grid, (void)block, (void)dynamic, (void)queue;
    return FAILED;
}

void __cudaRegisterFunction(void **handle, const void *host, char *name, const char *device, int n,
                            void *a, void *b, void *c, void *d, int *size)
{
    Function *f = &function[functions];

    (void)handle, (void)name, (void)n, (void)a, (void)b, (void)c, (void)d, (void)size;
    if (cudart.code == NULL || functions == CUDART_KERNELS)
        return;
    *f = (Function){ .host = host, .kernel = cudart.kernels };
    cudart.kernel[cudart.kernels] =
        (CudartKernel){ .name = device, .code = sass_kernel(cudart.code, device) };
    if (cudart.kernel[cudart.kernels].code != NULL)
        f->params = sass_kernel_params(cudart.kernel[cudart.kernels].code, f->param, MOST_PARAMS);
    cudart.kernels++;
    functions++;
}

/* ---- Launches */

static void add_count(SassCount *to, const SassCount *more)
{
    uint64_t *t = (uint64_t *)to;
    const uint64_t *m = (const uint64_t *)more;

    for (size_t k = 0; k < sizeof *to / sizeof *t; k++)
        t[k] += m[k];
}

int cudaLaunchKernel(const void *host, Dim grid, Dim block, void **arg, size_t dynamic, void *queue)
{
    const SassShape shape = { { grid.x, grid.y, grid.z },
                              { block.x, block.y, block.z },
                              (int)dynamic };
    SassParams p = { .size = 0 };
    int i = 0;

    (void)queue;
    while (i < functions && function[i].host != host)
        i++;
    if (i == functions || cudart.kernel[function[i].kernel].code == NULL)
        return FAILED;
    CudartKernel *k = &cudart.kernel[function[i].kernel];

    for (int n = 0; n < function[i].params; n++)
        sass_param_bytes(&p, arg[n], (size_t)function[i].param[n].size, 8);
    if (!sass_launch(cudart.gpu, k->code, &shape, &p))
        for (int e = 0; e < 4 && sass_error(cudart.gpu, e) != NULL; e++, cudart.errors++)
            fprintf(stderr, "%s: %s\n", k->name, sass_error(cudart.gpu, e));
    if (cudart.profile)
        sass_profile(cudart.gpu, stdout);
    const SassCount count = sass_count(cudart.gpu);

    add_count(&k->count, &count);
    k->launches++;
    k->threads = (int)(block.x * block.y * block.z);
    k->dynamic = (int)dynamic;
    return SUCCESS;
}

void cudart_count_anew(void)
{
    for (int i = 0; i < cudart.kernels; i++) {
        memset(&cudart.kernel[i].count, 0, sizeof cudart.kernel[i].count);
        cudart.kernel[i].launches = 0;
    }
}

void cudart_close(void)
{
    sass_gpu_free(cudart.gpu);
    sass_free(cudart.code);
    for (int i = 0; i < memories; i++)
        free(memory[i].host);
    free(elf);
}
