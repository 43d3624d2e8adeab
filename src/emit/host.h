/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The host's side of a program that is printed for a GPU: memory, copies and launches, by the
 * runtime of CUDA or HIP, or by OpenCL.  Stands after gpu.h. */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <stdlib.h>
#include <string.h>

#define WEFT_NO_MEMORY INT64_C(-1)
#define WEFT_REFUSED INT64_C(-3)
#define WEFT_TOO_MANY INT64_C(-4)
#define WEFT_MOST_GROUPS INT64_C(1048576)

#if defined( \
    WEFT_PLAIN) /* OpenCL: its kernels are compiled by the driver, this part by a C compiler */
#if !defined(CL_TARGET_OPENCL_VERSION)
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

typedef struct weft_queue { /* where kernels run, and what they were built from: this file */
    cl_command_queue queue;
    cl_program program;
} weft_queue;
typedef cl_mem weft_memory;
typedef cl_kernel weft_kernel;
#define WEFT_ARRAY(type) cl_mem
#define WEFT_KERNEL_OF(queue, name) clCreateKernel((queue).program, #name, 0)
#define WEFT_THREADS_OF_GROUP 64

static inline WEFT_USED weft_memory weft_new(weft_queue q, size_t bytes)
{
    cl_context context;

    if (clGetCommandQueueInfo(q.queue, CL_QUEUE_CONTEXT, sizeof context, &context, 0) != CL_SUCCESS)
        return 0;
    return clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, 0, 0);
}

static inline WEFT_USED void weft_delete(weft_memory m)
{
    if (m != 0)
        clReleaseMemObject(m);
}

static inline WEFT_USED void weft_drop(weft_kernel k)
{
    if (k != 0)
        clReleaseKernel(k);
}

static inline WEFT_USED int weft_put(weft_queue q, weft_memory to, const void *from, size_t bytes)
{
    return clEnqueueWriteBuffer(q.queue, to, 1, 0, bytes, from, 0, 0, 0) == CL_SUCCESS;
}

static inline WEFT_USED int weft_get(weft_queue q, weft_memory from, void *to, size_t bytes)
{
    return clEnqueueReadBuffer(q.queue, from, 1, 0, bytes, to, 0, 0, 0) == CL_SUCCESS;
}

/* The last argument is `bytes` of numbers, the others are memory. */
static inline WEFT_USED int weft_start(weft_queue q, weft_kernel k, size_t groups, size_t threads,
                                       weft_memory *arg, int n, void *numbers, size_t bytes)
{
    const size_t all = groups * threads;
    int good = 1;

    for (int i = 0; i < n && good; i++)
        good = clSetKernelArg(k, (cl_uint)i, sizeof *arg, arg[i] != 0 ? &arg[i] : 0) == CL_SUCCESS;
    return good && clSetKernelArg(k, (cl_uint)n, bytes, numbers) == CL_SUCCESS &&
           clEnqueueNDRangeKernel(q.queue, k, 1, 0, &all, &threads, 0, 0, 0) == CL_SUCCESS;
}
#else
#if defined(__HIP__)
#define WEFT_RUNTIME(name) hip##name
#else
#define WEFT_RUNTIME(name) cuda##name
#endif
typedef WEFT_RUNTIME(Stream_t) weft_queue;
typedef void *weft_memory;
typedef const void *weft_kernel;
#define WEFT_ARRAY(type) type *
#define WEFT_KERNEL_OF(queue, name) ((const void *)name)
#define WEFT_THREADS_OF_GROUP WEFT_BLOCK
#define WEFT_MOST_ARGUMENTS 256

static inline WEFT_USED weft_memory weft_new(weft_queue, size_t bytes)
{
    void *p = 0;

    return WEFT_RUNTIME(Malloc)(&p, bytes) == WEFT_RUNTIME(Success) ? p : 0;
}

static inline WEFT_USED void weft_delete(weft_memory m)
{
    if (m != 0)
        (void)WEFT_RUNTIME(Free)(m);
}

static inline WEFT_USED void weft_drop(weft_kernel) {}

static inline WEFT_USED int weft_put(weft_queue q, weft_memory to, const void *from, size_t bytes)
{
    return WEFT_RUNTIME(MemcpyAsync)(to, from, bytes, WEFT_RUNTIME(MemcpyHostToDevice), q) ==
               WEFT_RUNTIME(Success) &&
           WEFT_RUNTIME(StreamSynchronize)(q) == WEFT_RUNTIME(Success);
}

static inline WEFT_USED int weft_get(weft_queue q, weft_memory from, void *to, size_t bytes)
{
    return WEFT_RUNTIME(MemcpyAsync)(to, from, bytes, WEFT_RUNTIME(MemcpyDeviceToHost), q) ==
               WEFT_RUNTIME(Success) &&
           WEFT_RUNTIME(StreamSynchronize)(q) == WEFT_RUNTIME(Success);
}

/* The last argument is `bytes` of numbers, the others are memory. */
static inline WEFT_USED int weft_start(weft_queue q, weft_kernel k, size_t groups, size_t threads,
                                       weft_memory *arg, int n, void *numbers, size_t)
{
    void *to[WEFT_MOST_ARGUMENTS];

    for (int i = 0; i < n; i++)
        to[i] = &arg[i];
    to[n] = numbers;
    return WEFT_RUNTIME(LaunchKernel)(k, dim3((unsigned)groups), dim3((unsigned)threads), to, 0,
                                      q) == WEFT_RUNTIME(Success);
}
#endif

/* A length that fits into no memory is the largest number. */
static inline WEFT_USED int64_t weft_times(int64_t a, int64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a;
}

/* n elements of a device, with a copy of `from` or, where that is NULL, any content. */
static inline WEFT_USED weft_memory weft_copy(weft_queue q, const void *from, int64_t n,
                                              size_t bytes, int64_t *fault)
{
    weft_memory m = 0;

    if (*fault != 0)
        return 0;
    if (n >= 0 && n <= INT64_MAX / 16 / (int64_t)bytes)
        m = weft_new(q, (size_t)n * bytes + 16);
    if (m == 0)
        *fault = WEFT_NO_MEMORY;
    else if (from != 0 && n > 0 && !weft_put(q, m, from, (size_t)n * bytes))
        *fault = WEFT_REFUSED;
    return m;
}

/* A copy of structure as i32, which has to count less than 2^31. */
static inline WEFT_USED weft_memory weft_copy_i32(weft_queue q, const int64_t *from, int64_t n,
                                                  int64_t *fault)
{
    int32_t *to = *fault == 0 && n >= 0 ? (int32_t *)malloc(((size_t)n + 1) * sizeof *to) : 0;
    weft_memory m = 0;

    for (int64_t i = 0; i < n && to != 0 && *fault == 0; i++) {
        to[i] = (int32_t)from[i];
        if (to[i] != from[i])
            *fault = WEFT_TOO_MANY;
    }
    if (to == 0 && *fault == 0)
        *fault = WEFT_NO_MEMORY;
    m = weft_copy(q, to, n, sizeof *to, fault);
    free(to);
    return m;
}

/* Places of a table for searches: two for each entry, or none where no parent has more than `few`.
 * `width` entries are under each parent, or, where that is less than 0, as `start` says. */
static inline WEFT_USED int64_t weft_map_length(int64_t parents, int64_t width,
                                                const int64_t *start, int64_t few)
{
    int64_t most = 0;

    for (int64_t q = 0; q < parents; q++) {
        const int64_t n = width >= 0 ? width : start[q + 1] - start[q];

        most = n > most ? n : most;
    }
    return most <= few ? 0 : 2 * (width >= 0 ? parents * width : start[parents]);
}

typedef struct weft_phase { /* a kernel, and the units of work that its warps or threads take */
    weft_kernel kernel;
    int64_t n, units, step,
        work; /* iterations; a unit is `step` of them; bytes of scratch memory */
    size_t groups, threads;
    weft_memory unit; /* or where units begin and, last, end */
} weft_phase;

/* Iterations with one number in `part` are a unit. */
static inline WEFT_USED void weft_cut_units(weft_queue q, weft_phase *p, const int64_t *part,
                                            int64_t *fault)
{
    int64_t *begin = (int64_t *)malloc(((size_t)p->n + 1) * sizeof *begin);
    int64_t units = 0;

    if (begin == 0) {
        *fault = WEFT_NO_MEMORY;
        return;
    }
    for (int64_t i = 0; i < p->n; i++)
        if (i == 0 || part[i] != part[i - 1])
            begin[units++] = i;
    begin[units] = p->n;
    p->units = units;
    p->unit = weft_copy(q, begin, units + 1, sizeof *begin, fault);
    free(begin);
}

/* team: neighbouring threads that take a unit; 0: one does.  each: the launch has a team for each
 * unit.  `part` may be NULL. */
static inline WEFT_USED void weft_prepare(weft_queue q, weft_phase *p, weft_kernel kernel,
                                          int64_t n, int64_t step, int64_t work, int team, int each,
                                          const int64_t *part, int64_t *scratch, int64_t *fault)
{
    const int64_t threads = team > 0 ? WEFT_WARPS * WEFT_LANES : WEFT_THREADS_OF_GROUP;
    const int64_t takers = team > 0 ? threads / team : threads;
    const int64_t room = work > 0 ? (INT64_C(1) << 28) / (work * takers) : WEFT_MOST_GROUPS;
    int64_t groups;

    p->kernel = kernel;
    if (kernel == 0 && *fault == 0)
        *fault = WEFT_REFUSED;
    p->n = n > 0 ? n : 0;
    p->step = step;
    p->work = work;
    p->units = (p->n + step - 1) / step;
    p->threads = (size_t)threads;
    if (part != 0 && p->n > 0 && *fault == 0)
        weft_cut_units(q, p, part, fault);
    groups = (p->units + takers - 1) / takers;
    if (!each) {
        groups = groups > room ? room : groups;
        groups = groups > WEFT_MOST_GROUPS ? WEFT_MOST_GROUPS : groups;
    }
    groups = groups < 1 ? 1 : groups;
    if (each && p->units > INT32_MAX && *fault == 0) /* what a grid has at most */
        *fault = WEFT_REFUSED;
    p->groups = (size_t)groups;
    if (groups * takers * work > *scratch)
        *scratch = groups * takers * work;
}

/* arg: arrays of the kernel, with room for three more; numbers: sizes, with room for four more. */
static inline WEFT_USED int64_t weft_launch_one(weft_queue q, const weft_phase *p, weft_memory *arg,
                                                int narray, int64_t *number, int nsize,
                                                weft_memory scratch, weft_memory fault)
{
    arg[narray] = p->unit;
    arg[narray + 1] = scratch;
    arg[narray + 2] = fault;
    number[nsize] = p->n;
    number[nsize + 1] = p->units;
    number[nsize + 2] = p->step;
    number[nsize + 3] = p->work;
    return p->units == 0 || weft_start(q, p->kernel, p->groups, p->threads, arg, narray + 3, number,
                                       ((size_t)nsize + 4) * sizeof *number)
               ? 0
               : WEFT_REFUSED;
}

/* The lowest unit with a fault since the last call: what it was, or 0.  Waits for the queue. */
static inline WEFT_USED int64_t weft_read_fault(weft_queue q, weft_memory at)
{
    const uint32_t none = 0xffffffffu;
    uint32_t fault;

    if (!weft_get(q, at, &fault, sizeof fault))
        return WEFT_REFUSED;
    if (fault == none)
        return 0;
    return weft_put(q, at, &none, sizeof none) ? (int64_t)(fault & 0xff) : WEFT_REFUSED;
}

#endif
