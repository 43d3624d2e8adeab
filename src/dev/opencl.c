/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * OpenCL 1.2 through the ICD loader of the system.  The types and constants are those of the
 * standard; handles of the driver are pointers. */
#include "dev/dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VERSION = 0x102F,
    CL_DRIVER_VERSION = 0x102D,
    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
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
    X(RetainCommandQueue, int, (void *))                                                        \
    X(ReleaseCommandQueue, int, (void *))                                                       \
    X(GetCommandQueueInfo, int, (void *, uint32_t, size_t, void *, size_t *))                   \
    X(RetainContext, int, (void *))                                                             \
    X(CreateProgramWithBinary, void *,                                                          \
      (void *, uint32_t, void *const *, const size_t *, const uint8_t *const *, int *, int *))  \
    X(GetProgramInfo, int, (void *, uint32_t, size_t, void *, size_t *))                        \
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
    const char *flags; /* of its compiler */
    char name[128], identity[640];
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

enum { MOST = 32 }; /* platforms, and devices */

/* All devices of a type. */
static int find(const Dev *d, uint64_t type, void **device, int n)
{
    void *platform[MOST];
    uint32_t platforms = 0, found;

    if (d->GetPlatformIDs(MOST, platform, &platforms) != 0)
        platforms = 0;
    for (uint32_t i = 0; i < platforms && i < MOST && n < MOST; i++) {
        found = 0;
        if (d->GetDeviceIDs(platform[i], type, (uint32_t)(MOST - n), device + n, &found) == 0)
            n += (int)found < MOST - n ? (int)found : MOST - n;
    }
    return n;
}

/* GPUs first, each once. */
static int find_all(const Dev *d, void **device)
{
    void *all[MOST];
    int n = find(d, CL_GPU, device, 0), m = find(d, CL_ANY, all, 0), gpus = n;

    for (int i = 0; i < m && n < MOST; i++) {
        bool met = false;

        for (int k = 0; k < gpus; k++)
            met = met || device[k] == all[i];
        if (!met)
            device[n++] = all[i];
    }
    return n;
}

static void text_of(const Dev *d, void *device, uint32_t what, char *to, size_t room)
{
    to[0] = 0;
    if (d->GetDeviceInfo(device, what, room - 1, to, NULL) != 0)
        to[0] = 0;
    to[room - 1] = 0;
}

/* The device with this part in its name, or of this number. */
static bool choose(Dev *d, const char *name)
{
    void *device[MOST];
    char *end = NULL, is[sizeof d->name];
    int n = find_all(d, device);
    long number = name == NULL ? 0 : strtol(name, &end, 10);

    if (name == NULL || (end != name && *end == 0)) {
        d->device = number >= 0 && number < n ? device[number] : NULL;
        return d->device != NULL;
    }
    for (int i = 0; i < n && d->device == NULL; i++) {
        text_of(d, device[i], CL_DEVICE_NAME, is, sizeof is);
        if (strstr(is, name) != NULL)
            d->device = device[i];
    }
    return d->device != NULL;
}

/* A queue of the caller brings its device and its context. */
static const char *take_queue(Dev *d, void *queue)
{
    void *context = NULL;

    if (d->GetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof d->device, &d->device, NULL) != 0 ||
        d->GetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) != 0 ||
        d->RetainContext(context) != 0)
        return "this is no command queue of OpenCL";
    d->context = context;
    if (d->RetainCommandQueue(queue) != 0)
        return "this is no command queue of OpenCL";
    d->queue = queue;
    return NULL;
}

static const char *describe(Dev *d)
{
    char version[128], driver[128];
    uint64_t single = 0, wide = 0;

    text_of(d, d->device, CL_DEVICE_NAME, d->name, sizeof d->name);
    text_of(d, d->device, CL_DEVICE_VERSION, version, sizeof version);
    text_of(d, d->device, CL_DRIVER_VERSION, driver, sizeof driver);
    d->GetDeviceInfo(d->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    d->GetDeviceInfo(d->device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof wide, &wide, NULL);
    if (wide == 0)
        return "the OpenCL device has no 64-bit floats, which kernels of Weft need; choose "
               "another one by its name";
    d->flags = (single & CL_ROUNDS_DIVISION) != 0
                   ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                   : "-cl-std=CL1.2";
    snprintf(d->identity, sizeof d->identity, "%s; %s; %s; %s", d->name, version, driver, d->flags);
    return NULL;
}

static const char *open_device(Dev *d, const DevWanted *w)
{
    const char *why;
    int status = 0;

    if (w->queue == NULL && !choose(d, w->name))
        return w->name == NULL
                   ? "OpenCL has no device on this machine; install the driver of your GPU, or "
                     "pocl-opencl-icd, which runs kernels on the CPU"
                   : "OpenCL has no device of this name or number; weft_devices lists them";
    why = w->queue != NULL ? take_queue(d, w->queue) : NULL;
    if (why == NULL)
        why = describe(d);
    if (why != NULL || w->queue != NULL)
        return why;
    d->context = d->CreateContext(NULL, 1, &d->device, NULL, NULL, &status);
    if (d->context != NULL)
        d->queue = d->CreateCommandQueue(d->context, d->device, 0, &status);
    return d->queue == NULL ? "the OpenCL driver gives no context or queue" : NULL;
}

static Dev *new_dev(const Os *os, Err *err)
{
    Dev *d = os->alloc(os, NULL, sizeof *d);
    const char *why;

    if (d == NULL)
        err_throw(err, ST_NOMEM, "out of memory for a device");
    memset(d, 0, sizeof *d);
    d->os = os;
    why = load(d);
    if (why != NULL) {
        dev_close(d);
        err_throw(err, ST_IO, "%s", why);
    }
    return d;
}

Dev *dev_open_opencl(const Os *os, Err *err, const DevWanted *w)
{
    Dev *d = new_dev(os, err);
    const char *why = open_device(d, w);

    if (why != NULL) {
        dev_close(d);
        err_throw(err, ST_IO, "%s", why);
    }
    return d;
}

void dev_list_opencl(const Os *os, Err *err, Text *out)
{
    Dev *d = new_dev(os, err);
    void *device[MOST];
    char name[MOST][sizeof d->name];
    int n = find_all(d, device);

    for (int i = 0; i < n; i++)
        text_of(d, device[i], CL_DEVICE_NAME, name[i], sizeof name[i]);
    dev_close(d);
    text_put(out, "", 0);
    for (int i = 0; i < n; i++)
        text_f(out, "%s\n", name[i]);
}

const char *dev_identity(const Dev *d)
{
    return d->identity;
}

Dev *dev_of(const DevModule *m)
{
    return m->dev;
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

static DevModule *new_module(Dev *d, Err *err, int n)
{
    size_t size = sizeof(DevModule) + (size_t)n * sizeof(void *);
    DevModule *m = d->os->alloc(d->os, NULL, size);

    if (m == NULL)
        err_throw(err, ST_NOMEM, "out of memory for a kernel");
    memset(m, 0, size);
    m->dev = d;
    m->n = n;
    return m;
}

/* NULL, or what the driver does not do, and *status. */
static const char *finish(DevModule *m, const char *const *kernel, int *status)
{
    Dev *d = m->dev;

    *status = d->BuildProgram(m->program, 1, &d->device, d->flags, NULL, NULL);
    if (*status != 0)
        return "could not compile a kernel";
    for (int i = 0; i < m->n; i++) {
        m->kernel[i] = d->CreateKernel(m->program, kernel[i], status);
        if (m->kernel[i] == NULL)
            return "has lost a kernel";
    }
    return NULL;
}

DevModule *dev_build(Dev *d, Err *err, const char *source, const char *const *kernel, int n)
{
    DevModule *m = new_module(d, err, n);
    const char *why = "takes no kernels";
    int status = 0;

    m->program = d->CreateProgramWithSource(d->context, 1, &source, NULL, &status);
    if (m->program != NULL)
        why = finish(m, kernel, &status);
    if (why != NULL)
        refuse(m, err, why, status);
    return m;
}

DevModule *dev_load(Dev *d, Err *err, Bytes b, const char *const *kernel, int n)
{
    DevModule *m = new_module(d, err, n);
    int status = 0, taken = 0;

    m->program =
        d->CreateProgramWithBinary(d->context, 1, &d->device, &b.n, &b.p, &taken, &status);
    if (m->program == NULL || taken != 0 || finish(m, kernel, &status) != NULL) {
        dev_module_free(m);
        return NULL;
    }
    return m;
}

Bytes dev_binary(const DevModule *m, Arena *to)
{
    Dev *d = m->dev;
    size_t n = 0;
    uint8_t *p;

    if (d->GetProgramInfo(m->program, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL) != 0 || n == 0)
        return (Bytes){ NULL, 0 };
    p = arena_alloc(to, n);
    if (d->GetProgramInfo(m->program, CL_PROGRAM_BINARIES, sizeof p, &p, NULL) != 0)
        return (Bytes){ NULL, 0 };
    return (Bytes){ p, n };
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
