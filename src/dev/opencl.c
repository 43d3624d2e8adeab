/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * OpenCL 1.2 through the ICD loader of the system.  The types and constants are those of the
 * standard; handles of the driver are pointers. */
#include "dev/dev.h"

#include <stdio.h>
#include <string.h>

enum {
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_ROUNDS_DIVISION = 1 << 7,
    CL_GPU = 1 << 2,
    CL_MEM_READ_WRITE = 1
};
#define CL_ANY 0xffffffffu

/* The functions of the driver: the name without "cl", the result, the arguments. */
#define CL_FUNCTIONS(X)                                                                         \
    X(GetPlatformIDs, int, (uint32_t, void **, uint32_t *))                                     \
    X(GetDeviceIDs, int, (void *, uint64_t, uint32_t, void **, uint32_t *))                     \
    X(GetDeviceInfo, int, (void *, uint32_t, size_t, void *, size_t *))                         \
    X(CreateContext, void *,                                                                    \
      (const intptr_t *, uint32_t, void *const *, void (*)(void), void *, int *))               \
    X(ReleaseContext, int, (void *))                                                            \
    X(CreateCommandQueue, void *, (void *, void *, uint64_t, int *))                            \
    X(ReleaseCommandQueue, int, (void *))                                                       \
    X(CreateProgramWithSource, void *, (void *, uint32_t, const char **, const size_t *, int *)) \
    X(BuildProgram, int,                                                                        \
      (void *, uint32_t, void *const *, const char *, void (*)(void), void *))                  \
    X(GetProgramBuildInfo, int, (void *, void *, uint32_t, size_t, void *, size_t *))           \
    X(ReleaseProgram, int, (void *))                                                            \
    X(CreateKernel, void *, (void *, const char *, int *))                                      \
    X(ReleaseKernel, int, (void *))                                                             \
    X(SetKernelArg, int, (void *, uint32_t, size_t, const void *))                              \
    X(CreateBuffer, void *, (void *, uint64_t, size_t, void *, int *))                          \
    X(ReleaseMemObject, int, (void *))                                                          \
    X(EnqueueWriteBuffer, int,                                                                  \
      (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *, void *))       \
    X(EnqueueReadBuffer, int,                                                                   \
      (void *, const void *, uint32_t, size_t, size_t, void *, uint32_t, void *, void *))       \
    X(EnqueueNDRangeKernel, int,                                                                \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,      \
       void *, void *))                                                                         \
    X(Finish, int, (void *))

struct Dev {
    const Os *os;
    void *lib, *device, *context, *queue;
    bool rounds; /* divisions of f32 can be exact to the last bit */
    char name[128];
#define MEMBER(name, result, args) result(*name) args;
    CL_FUNCTIONS(MEMBER)
#undef MEMBER
};

struct DevModule {
    Dev *dev;
    void *program;
    int n;
    void *kernel[];
};

const char *dev_name(const Dev *d)
{
    return d->name;
}

void dev_close(Dev *d)
{
    if (d == NULL)
        return;
    if (d->queue != NULL)
        d->ReleaseCommandQueue(d->queue);
    if (d->context != NULL)
        d->ReleaseContext(d->context);
    if (d->lib != NULL)
        d->os->dlclose(d->os, d->lib);
    d->os->alloc(d->os, d, 0);
}

static const char *load(Dev *d)
{
    void *f;

    d->lib = d->os->dlopen(d->os, "libOpenCL.so.1");
    if (d->lib == NULL)
        return "there is no OpenCL on this machine (libOpenCL.so.1); install the loader and a "
               "driver, for example ocl-icd-libopencl1 with your GPU's, or pocl-opencl-icd";
#define FIND(member, result, args)                                                             \
    f = d->os->dlsym(d->os, d->lib, "cl" #member);                                             \
    if (f == NULL)                                                                             \
        return "the OpenCL loader has no cl" #member "; install one of OpenCL 1.2 or later";   \
    memcpy(&d->member, &f, sizeof f);
    CL_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

/* The first device of a type, of all platforms. */
static bool find(Dev *d, uint64_t type)
{
    enum { MOST = 16 };
    void *platform[MOST];
    uint32_t n = 0, found = 0;

    if (d->GetPlatformIDs(MOST, platform, &n) != 0)
        n = 0;
    for (uint32_t i = 0; i < n && i < MOST && found == 0; i++)
        if (d->GetDeviceIDs(platform[i], type, 1, &d->device, &found) != 0)
            found = 0;
    return found > 0;
}

static const char *open_device(Dev *d)
{
    uint64_t single = 0, wide = 0;
    int status = 0;

    if (!find(d, CL_GPU) && !find(d, CL_ANY))
        return "OpenCL has no device on this machine; install the driver of your GPU, or "
               "pocl-opencl-icd, which runs kernels on the CPU";
    d->GetDeviceInfo(d->device, CL_DEVICE_NAME, sizeof d->name - 1, d->name, NULL);
    d->GetDeviceInfo(d->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    d->GetDeviceInfo(d->device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof wide, &wide, NULL);
    if (wide == 0)
        return "the OpenCL device has no 64-bit floats, which kernels of Weft need";
    d->rounds = (single & CL_ROUNDS_DIVISION) != 0;
    d->context = d->CreateContext(NULL, 1, &d->device, NULL, NULL, &status);
    if (d->context != NULL)
        d->queue = d->CreateCommandQueue(d->context, d->device, 0, &status);
    return d->queue == NULL ? "the OpenCL driver gives no context or queue" : NULL;
}

Dev *dev_open_opencl(const Os *os, Err *err)
{
    Dev *d = os->alloc(os, NULL, sizeof *d);
    const char *why;

    if (d == NULL)
        err_throw(err, ST_NOMEM, "out of memory for a device");
    memset(d, 0, sizeof *d);
    d->os = os;
    why = load(d);
    if (why == NULL)
        why = open_device(d);
    if (why != NULL) {
        dev_close(d);
        err_throw(err, ST_IO, "%s", why);
    }
    return d;
}

void dev_module_free(DevModule *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < m->n; i++)
        if (m->kernel[i] != NULL)
            m->dev->ReleaseKernel(m->kernel[i]);
    if (m->program != NULL)
        m->dev->ReleaseProgram(m->program);
    m->dev->os->alloc(m->dev->os, m, 0);
}

/* The beginning of what the driver's compiler has said. */
static void read_log(DevModule *m, char *to, size_t room)
{
    Dev *d = m->dev;
    size_t n = 0;
    char *log;

    to[0] = 0;
    if (m->program == NULL ||
        d->GetProgramBuildInfo(m->program, d->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) != 0)
        return;
    log = d->os->alloc(d->os, NULL, n + 1);
    if (log == NULL)
        return;
    if (d->GetProgramBuildInfo(m->program, d->device, CL_PROGRAM_BUILD_LOG, n, log, NULL) == 0)
        snprintf(to, room, ": %.*s", (int)(n < room ? n : room), log);
    d->os->alloc(d->os, log, 0);
}

static _Noreturn void refuse(DevModule *m, Err *err, const char *what, int status)
{
    char log[600];

    read_log(m, log, sizeof log);
    err_set(err, ST_IO, "OpenCL on %s %s (error %d)%s", m->dev->name, what, status, log);
    dev_module_free(m);
    err_jump(err);
}

DevModule *dev_build(Dev *d, Err *err, const char *source, const char *const *kernel, int n)
{
    size_t size = sizeof(DevModule) + (size_t)n * sizeof(void *);
    DevModule *m = d->os->alloc(d->os, NULL, size);
    int status = 0;

    if (m == NULL)
        err_throw(err, ST_NOMEM, "out of memory for a kernel");
    memset(m, 0, size);
    m->dev = d;
    m->n = n;
    m->program = d->CreateProgramWithSource(d->context, 1, &source, NULL, &status);
    if (m->program == NULL)
        refuse(m, err, "takes no kernels", status);
    status = d->BuildProgram(m->program, 1, &d->device,
                             d->rounds ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                                       : "-cl-std=CL1.2",
                             NULL, NULL);
    if (status != 0)
        refuse(m, err, "could not compile a kernel", status);
    for (int i = 0; i < n; i++) {
        m->kernel[i] = d->CreateKernel(m->program, kernel[i], &status);
        if (m->kernel[i] == NULL)
            refuse(m, err, "has lost a kernel", status);
    }
    return m;
}

void *dev_alloc(Dev *d, int64_t bytes)
{
    int status = 0;

    return d->CreateBuffer(d->context, CL_MEM_READ_WRITE, bytes > 0 ? (size_t)bytes : 16, NULL,
                           &status);
}

void dev_free(Dev *d, void *memory)
{
    if (memory != NULL)
        d->ReleaseMemObject(memory);
}

bool dev_write(Dev *d, void *to, const void *from, int64_t bytes)
{
    return bytes <= 0 || d->EnqueueWriteBuffer(d->queue, to, 1, 0, (size_t)bytes, from, 0, NULL,
                                               NULL) == 0;
}

bool dev_read(Dev *d, const void *from, void *to, int64_t bytes)
{
    return (bytes <= 0 || d->EnqueueReadBuffer(d->queue, from, 1, 0, (size_t)bytes, to, 0, NULL,
                                               NULL) == 0) &&
           d->Finish(d->queue) == 0;
}

bool dev_launch(DevModule *m, int kernel, const DevArg *arg, int narg, int64_t groups,
                int64_t threads)
{
    void *k = m->kernel[kernel];
    size_t all = (size_t)(groups * threads), group = (size_t)threads;

    for (int i = 0; i < narg; i++) {
        bool value = arg[i].bytes > 0;

        if (m->dev->SetKernelArg(k, (uint32_t)i,
                                 value ? (size_t)arg[i].bytes : sizeof arg[i].memory,
                                 value                     ? arg[i].value
                                 : arg[i].memory != NULL ? (const void *)&arg[i].memory
                                                           : NULL) != 0)
            return false;
    }
    return m->dev->EnqueueNDRangeKernel(m->dev->queue, k, 1, NULL, &all, &group, 0, NULL, NULL) ==
           0;
}
