/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels on an OpenCL device: a driver such as PoCL. */
#include "kernel/kernel_test.h"
#include "unit/trap.h"

static Dev *device; /* one for the whole process: opening takes a while */

static Dev *open_device(Err *err)
{
    if (device == NULL)
        device = dev_open_opencl(&os_libc, err, &(DevWanted){ NULL, NULL });
    return device;
}

static bool is_here(void)
{
    Err err = { 0 };

    return CATCH(&err, open_device(&err)) == ST_OK;
}

static void *build(Arena *a, const char *text, const char *const *name, int n)
{
    return dev_build(open_device(a->err), a->err, text, name, n);
}

static void close_module(void *module)
{
    dev_module_free(module);
}

static void *put(const void *from, int64_t bytes)
{
    void *memory = dev_alloc(device, bytes);

    if (memory != NULL && from != NULL)
        dev_write(device, memory, from, bytes);
    return memory;
}

static bool get(void *memory, void *to, int64_t bytes)
{
    return dev_read(device, memory, to, bytes);
}

static void drop(void *memory)
{
    dev_free(device, memory);
}

static bool launch(void *module, int kernel, const DevArg *arg, int narg, int64_t groups,
                   int64_t threads)
{
    return dev_launch(module, kernel, arg, narg, groups, threads);
}

const Backend backend_opencl = { .dialect = &emit_dialect_opencl,
                                 .warps = 1,
                                 .threads = 16,
                                 .is_here = is_here,
                                 .build = build,
                                 .close = close_module,
                                 .put = put,
                                 .get = get,
                                 .drop = drop,
                                 .launch = launch };
