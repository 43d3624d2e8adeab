/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * dev/opencl.c, api/device.c and api/devices.c against a driver of the test: it counts what is
 * given out and not given back, and makes any of its calls fail.  Its kernels do nothing. */
#include "unit/kernel_bed.h"

#include "weft_device.h"

enum { KINDS = 6 };
typedef enum Kind { CONTEXT, QUEUE, PROGRAM, KERNEL, MEMORY, DEVICE } Kind;

typedef struct Object { /* what a handle is */
    Kind kind;
    int refs;
    size_t bytes;
    char *data;
} Object;

static struct Fake {
    int calls, fail_at; /* fail_at 0: none */
    int live[KINDS], devices;
    int written, read, launched, passed;
    const void *watched; /* memory: how often it was passed to a kernel */
    int gpus;
    uint64_t wide; /* the configuration of doubles */
    Object device[3];
} fake;

static int fails(void)
{
    return ++fake.calls == fake.fail_at;
}

static Object *make(Kind kind, size_t bytes)
{
    Object *o = calloc(1, sizeof *o + bytes + 1);

    *o = (Object){ kind, 1, bytes, (char *)(o + 1) };
    fake.live[kind]++;
    return o;
}

static Object *give(Kind kind, size_t bytes, int *status)
{
    int bad = fails();

    if (status != NULL)
        *status = bad ? -5 : 0;
    return bad ? NULL : make(kind, bytes);
}

static int drop(void *p, Kind kind)
{
    Object *o = p;

    CHECK_EQ(o->kind, kind);
    if (--o->refs == 0) {
        fake.live[kind]--;
        free(o);
    }
    return 0;
}

static int keep(void *p)
{
    if (fails())
        return -5;
    ((Object *)p)->refs++;
    return 0;
}

static int answer(const void *from, size_t n, size_t room, void *to, size_t *size)
{
    if (fails())
        return -5;
    if (size != NULL)
        *size = n;
    if (to != NULL)
        memcpy(to, from, n < room ? n : room);
    return 0;
}

static int clGetPlatformIDs(uint32_t n, void **to, uint32_t *found)
{
    (void)n;
    to[0] = &fake;
    *found = 1;
    return fails() ? -5 : 0;
}

static int clGetDeviceIDs(void *platform, uint64_t type, uint32_t n, void **to, uint32_t *found)
{
    int all = type == 1 << 2 ? fake.gpus : fake.devices;

    (void)platform;
    for (int i = 0; i < all && i < (int)n; i++)
        to[i] = &fake.device[i];
    *found = (uint32_t)all;
    return all == 0 ? -1 : fails() ? -5 : 0;
}

static int clGetDeviceInfo(void *device, uint32_t what, size_t room, void *to, size_t *size)
{
    static const char *const names[] = { "Alpha One", "Beta Two", "Gamma Three" };
    uint64_t config = what == 0x1032 ? fake.wide : 0xff;
    const char *name = names[(Object *)device - fake.device];

    if (what == 0x102B)
        return answer(name, strlen(name) + 1, room, to, size);
    if (what == 0x102F || what == 0x102D)
        return answer("1.2", 4, room, to, size);
    return answer(&config, sizeof config, room, to, size);
}

static void *clCreateContext(const intptr_t *p, uint32_t n, void *const *d, void (*f)(void),
                             void *user, int *status)
{
    (void)p, (void)n, (void)d, (void)f, (void)user;
    return give(CONTEXT, 0, status);
}

static void *clCreateCommandQueue(void *context, void *device, uint64_t flags, int *status)
{
    (void)context, (void)device, (void)flags;
    return give(QUEUE, 0, status);
}

static int clGetCommandQueueInfo(void *queue, uint32_t what, size_t room, void *to, size_t *size)
{
    static Object context = { CONTEXT, 1 << 20, 0, NULL };
    void *is = what == 0x1090 ? &context : &fake.device[1];

    CHECK_EQ(((Object *)queue)->kind, QUEUE);
    return answer(&is, sizeof is, room, to, size);
}

static void *clCreateProgramWithSource(void *c, uint32_t n, const char **s, const size_t *l, int *status)
{
    (void)c, (void)n, (void)s, (void)l;
    return give(PROGRAM, 0, status);
}

static void *clCreateProgramWithBinary(void *c, uint32_t n, void *const *d, const size_t *size,
                                       const uint8_t *const *p, int *taken, int *status)
{
    bool good = *size == 4 && memcmp(*p, "code", 4) == 0;

    (void)c, (void)n, (void)d;
    *taken = good ? 0 : -42;
    return give(PROGRAM, 0, status);
}

static int clGetProgramInfo(void *p, uint32_t what, size_t room, void *to, size_t *size)
{
    size_t n = 4;

    (void)p;
    if (what == 0x1165)
        return answer(&n, sizeof n, room, to, size);
    memcpy(*(char **)to, "code", 4);
    return fails() ? -5 : 0;
}

static int clBuildProgram(void *p, uint32_t n, void *const *d, const char *flags, void (*f)(void),
                          void *user)
{
    (void)p, (void)n, (void)d, (void)flags, (void)f, (void)user;
    return fails() ? -11 : 0;
}

static int clGetProgramBuildInfo(void *p, void *d, uint32_t what, size_t room, void *to, size_t *size)
{
    (void)p, (void)d, (void)what;
    return answer("line 1: no", 11, room, to, size);
}

static void *clCreateKernel(void *p, const char *name, int *status)
{
    (void)p, (void)name;
    return give(KERNEL, 0, status);
}

static int clSetKernelArg(void *k, uint32_t i, size_t n, const void *p)
{
    (void)i;
    CHECK_EQ(((Object *)k)->kind, KERNEL);
    fake.passed += n == sizeof(void *) && p != NULL && *(void *const *)p == fake.watched;
    return fails() ? -5 : 0;
}

static void *clCreateBuffer(void *c, uint64_t flags, size_t bytes, void *p, int *status)
{
    (void)c, (void)flags, (void)p;
    return give(MEMORY, bytes, status);
}

static int clEnqueueWriteBuffer(void *q, void *m, uint32_t wait, size_t at, size_t n, const void *from,
                                uint32_t k, void *e, void *f)
{
    (void)q, (void)wait, (void)k, (void)e, (void)f;
    if (fails())
        return -5;
    CHECK(at + n <= ((Object *)m)->bytes);
    memcpy(((Object *)m)->data + at, from, n);
    fake.written++;
    return 0;
}

static int clEnqueueReadBuffer(void *q, const void *m, uint32_t wait, size_t at, size_t n, void *to,
                               uint32_t k, void *e, void *f)
{
    (void)q, (void)wait, (void)k, (void)e, (void)f;
    if (fails())
        return -5;
    CHECK(at + n <= ((const Object *)m)->bytes);
    memcpy(to, ((const Object *)m)->data + at, n);
    fake.read++;
    return 0;
}

static int clEnqueueNDRangeKernel(void *q, void *k, uint32_t d, const size_t *o, const size_t *all,
                                  const size_t *group, uint32_t n, void *e, void *f)
{
    (void)q, (void)d, (void)o, (void)n, (void)e, (void)f;
    CHECK_EQ(((Object *)k)->kind, KERNEL);
    CHECK(*all % *group == 0);
    fake.launched++;
    return fails() ? -5 : 0;
}

static int clFinish(void *q)
{
    (void)q;
    return fails() ? -5 : 0;
}

static int clRetainCommandQueue(void *p) { return keep(p); }
static int clRetainContext(void *p) { return keep(p); }
static int clReleaseCommandQueue(void *p) { return drop(p, QUEUE); }
static int clReleaseContext(void *p) { return drop(p, CONTEXT); }
static int clReleaseProgram(void *p) { return drop(p, PROGRAM); }
static int clReleaseKernel(void *p) { return drop(p, KERNEL); }
static int clReleaseMemObject(void *p) { return drop(p, MEMORY); }

static const struct {
    const char *name;
    void (*fn)(void);
} functions[] = {
#define F(name) { #name, (void (*)(void))name }
    F(clGetPlatformIDs),      F(clGetDeviceIDs),           F(clGetDeviceInfo),
    F(clCreateContext),       F(clCreateCommandQueue),     F(clGetCommandQueueInfo),
    F(clBuildProgram),        F(clCreateProgramWithSource), F(clCreateProgramWithBinary),
    F(clGetProgramInfo),      F(clGetProgramBuildInfo),    F(clCreateKernel),
    F(clSetKernelArg),        F(clCreateBuffer),           F(clEnqueueWriteBuffer),
    F(clEnqueueReadBuffer),   F(clEnqueueNDRangeKernel),   F(clFinish),
    F(clRetainCommandQueue),  F(clRetainContext),          F(clReleaseCommandQueue),
    F(clReleaseContext),      F(clReleaseProgram),         F(clReleaseKernel),
    F(clReleaseMemObject),
#undef F
};

static void *fake_dlopen(const Os *os, const char *path)
{
    return strcmp(path, "libOpenCL.so.1") == 0 ? (void *)&fake : os_libc.dlopen(os, path);
}

static void *fake_dlsym(const Os *os, void *lib, const char *name)
{
    void *p;

    for (size_t i = 0; lib == (void *)&fake && i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0) {
            memcpy(&p, &functions[i].fn, sizeof p);
            return p;
        }
    return lib == (void *)&fake ? NULL : os_libc.dlsym(os, lib, name);
}

static int fake_dlclose(const Os *os, void *lib)
{
    return lib == (void *)&fake ? 0 : os_libc.dlclose(os, lib);
}

static Os fake_os;

static const char *environment(const char *name)
{
    return strcmp(name, "WEFT_CACHE_DIR") == 0 ? test_path("device-cache") : NULL;
}

static void open_fake(Inject *j)
{
    fake_os = os_libc;
    fake_os.dlopen = fake_dlopen;
    fake_os.dlsym = fake_dlsym;
    fake_os.dlclose = fake_dlclose;
    fake = (struct Fake){ .devices = 3, .gpus = 1, .wide = 1 };
    for (int i = 0; i < 3; i++)
        fake.device[i].kind = DEVICE;
    inject_init(j, &fake_os);
    j->getenv = environment;
    weft_ctx_free(ctx); /* of a test that failed half way */
    ctx = api_ctx_new(&j->os);
}

static void check_nothing_left(const Inject *j, const char *when)
{
    for (int i = 0; i < KINDS; i++)
        if (fake.live[i] != 0)
            test_fail(__FILE__, __LINE__, "%d objects of kind %d are left: %s %d", fake.live[i], i,
                      when, fake.fail_at);
    if (!inject_is_clean(j))
        test_fail(__FILE__, __LINE__, "memory or libraries are left: %s %d", when, fake.fail_at);
}

static void close_fake(Inject *j, const char *when)
{
    weft_ctx_free(ctx);
    ctx = NULL;
    check_nothing_left(j, when);
}

static void open_product(void)
{
    OK(weft_prog_parse(ctx, "test.weft", spmm, strlen(spmm), &prog));
    OK(weft_args_new(prog, &args));
    OK(weft_ctx_target(ctx, "opencl"));
}

/* A kernel on the device; false: the failure came before it, and the reason was told. */
static bool compiles(weft_status allowed)
{
    weft_info info;
    weft_status status = weft_kernel_compile(prog, &kernel);

    if (status != WEFT_OK) {
        CHECK_EQ(status, allowed);
        CHECK(weft_message(ctx)[0] != 0);
        return false;
    }
    OK(weft_kernel_info(kernel, &info));
    if (strcmp(info.target, "opencl") == 0)
        return true;
    CHECK_STR(info.target, "interp");
    CHECK(info.why[0] != 0);
    return false;
}

/* A run that meets the failure says so, and made again it works. */
static void run_twice(int k)
{
    weft_status status = weft_kernel_run(kernel, args);

    if (status == WEFT_OK)
        return;
    if (status != WEFT_E_IO && status != WEFT_E_NOMEM)
        test_fail(__FILE__, __LINE__, "status %d, call %d", (int)status, k);
    CHECK(weft_message(ctx)[0] != 0);
    OK(weft_kernel_run(kernel, args));
}

/* Everything that a program does on a device, with the k-th call of the driver failing. */
static bool try_driver(int k)
{
    Inject j;

    open_fake(&j);
    open_product();
    fake.fail_at = k;
    if (compiles(WEFT_E_IO)) {
        bind_csr();
        for (int i = 0; i < 2; i++)
            run_twice(k);
    }
    close_fake(&j, "call");
    return fake.calls >= k;
}

TEST(every_call_of_the_driver_may_fail)
{
    int cold = 0, warm = 0;

    for (int k = 1; try_driver(k); k++) /* the first that get there fill the cache, */
        cold++;
    for (int k = 1; try_driver(k); k++) /* which all of these use */
        warm++;
    CHECK(cold > 60 && warm > 60);
}

TEST(every_allocation_on_the_way_to_a_device_may_fail)
{
    for (int64_t k = 1;; k++) {
        Inject j;
        weft_status status;

        open_fake(&j);
        open_product();
        inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + k, false, 12);
        if (compiles(WEFT_E_NOMEM)) {
            bind_csr();
            status = weft_kernel_run(kernel, args);
            CHECK(status == WEFT_OK || status == WEFT_E_NOMEM);
        }
        weft_ctx_free(ctx);
        ctx = NULL;
        check_nothing_left(&j, "allocation");
        if (j.failed == 0)
            break;
    }
}

TEST(what_was_compiled_is_found_in_the_cache)
{
    Inject j;
    weft_info info;

    for (int i = 0; i < 2; i++) {
        open_fake(&j);
        open_product();
        CHECK(compiles(WEFT_OK));
        OK(weft_kernel_info(kernel, &info));
        CHECK_STR(info.isa, "Alpha One");
        CHECK(i == 0 || strcmp(info.how, "disk") == 0);
        close_fake(&j, "cache");
    }
}

/* Each byte of the entry changed in turn: a miss, and the kernel is there all the same. */
TEST(a_damaged_binary_is_a_miss)
{
    Inject j;
    weft_info info;
    char path[400];

    for (int at = 0; at < 400; at += 7) {
        FILE *f;
        int c;

        open_fake(&j);
        open_product();
        CHECK(compiles(WEFT_OK));
        OK(weft_kernel_info(kernel, &info));
        snprintf(path, sizeof path, "%s/%s", test_path("device-cache"), info.key);
        close_fake(&j, "damage");
        f = fopen(path, "r+b");
        CHECK(f != NULL);
        fseek(f, at, SEEK_SET);
        c = fgetc(f);
        fseek(f, at, SEEK_SET);
        if (c != EOF)
            fputc(c ^ 1, f);
        fclose(f);
        open_fake(&j);
        open_product();
        CHECK(compiles(WEFT_OK));
        OK(weft_kernel_info(kernel, &info));
        if (c != EOF)
            CHECK_STR(info.how, "compiled");
        close_fake(&j, "damage");
    }
}

TEST(a_device_is_chosen_by_name_or_number)
{
    Inject j;
    const char *names;
    weft_info info;

    open_fake(&j);
    OK(weft_devices(ctx, &names));
    CHECK_STR(names, "Alpha One\nBeta Two\nGamma Three\n");
    OK(weft_ctx_device(ctx, "Two"));
    open_product();
    CHECK(compiles(WEFT_OK));
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.isa, "Beta Two");
    OK(weft_ctx_device(ctx, "2"));
    CHECK(compiles(WEFT_OK));
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.isa, "Gamma Three");
    BAD(weft_ctx_device(ctx, "Four"), WEFT_E_IO, "no device of this name or number");
    BAD(weft_ctx_device(ctx, "3"), WEFT_E_IO, "no device of this name or number");
    BAD(weft_ctx_device(ctx, ""), WEFT_E_ARG, "1 to 127 characters");
    CHECK(compiles(WEFT_OK)); /* the choice before stays */
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.isa, "Gamma Three");
    OK(weft_ctx_device(ctx, NULL));
    CHECK(compiles(WEFT_OK));
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.isa, "Alpha One");
    for (int i = 0; i < 5; i++) { /* the same devices again, and no more of them */
        OK(weft_ctx_device(ctx, "Two"));
        OK(weft_ctx_device(ctx, "2"));
        BAD(weft_ctx_device(ctx, "Four"), WEFT_E_IO, "no device of this name or number");
        OK(weft_ctx_device(ctx, NULL));
        CHECK(compiles(WEFT_OK));
    }
    CHECK_EQ(fake.live[CONTEXT], 3);
    BAD(weft_devices(ctx, NULL), WEFT_E_ARG, "out is NULL");
    CHECK(weft_devices(NULL, &names) == WEFT_E_ARG && weft_ctx_device(NULL, "0") == WEFT_E_ARG);
    CHECK(weft_ctx_queue(NULL, NULL) == WEFT_E_ARG);
    close_fake(&j, "choice");
}

TEST(machines_without_a_device_are_told_so)
{
    Inject j;

    open_fake(&j);
    fake.wide = 0;
    BAD(weft_ctx_device(ctx, "0"), WEFT_E_IO, "64-bit floats");
    fake.devices = fake.gpus = 0;
    fake.wide = 1;
    BAD(weft_ctx_device(ctx, "0"), WEFT_E_IO, "no device of this name");
    open_product();
    CHECK(!compiles(WEFT_OK));
    CHECK_HAS(weft_warning(ctx), "");
    close_fake(&j, "none");
    fake_os.dlopen = os_libc.dlopen;
}

TEST(a_queue_of_the_caller_is_used_and_given_back)
{
    Inject j;
    weft_info info;
    Object *queue;

    open_fake(&j);
    queue = make(QUEUE, 0);
    OK(weft_ctx_queue(ctx, queue));
    open_product();
    CHECK(compiles(WEFT_OK));
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.isa, "Beta Two");
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(fake.live[QUEUE], 1);
    OK(weft_ctx_queue(ctx, NULL));
    OK(weft_ctx_queue(ctx, queue));
    CHECK_EQ(queue->refs, 2); /* kept once */
    OK(weft_ctx_queue(ctx, NULL));
    weft_ctx_free(ctx);
    ctx = NULL;
    CHECK_EQ(queue->refs, 1);
    drop(queue, QUEUE);
    check_nothing_left(&j, "queue");
}

TEST(arrays_on_the_device_are_not_copied)
{
    Inject j;
    Object *c;
    weft_tensor t, got;
    const char *text;
    int written, read;

    open_fake(&j);
    open_product();
    CHECK(compiles(WEFT_OK));
    c = make(MEMORY, 6 * sizeof(float));
    t = tensor(c, WEFT_F32, 2, SHAPE(3, 2));
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    written = fake.written;
    read = fake.read;
    OK(weft_kernel_run(kernel, args));
    written = fake.written - written;
    read = fake.read - read;
    fake.watched = c;
    OK(weft_args_device(args, "C", &t));
    OK(weft_kernel_run(kernel, args)); /* a new plan: structure is written again */
    fake.written = fake.read = 0;
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(fake.written, written);
    CHECK_EQ(fake.read, read - 1);
    CHECK_EQ(fake.passed, 2); /* to the kernel of each of these two runs */
    OK(weft_args_get(args, "C", &got));
    CHECK(got.data == c);
    BAD(weft_args_print(args, "C", &text), WEFT_E_ARG, "C is in the memory of a device");
    BAD(weft_run(args), WEFT_E_ARG, "C is in the memory of a device");
    BAD(weft_args_device(args, "m", &t), WEFT_E_ARG, "m is a size");
    BAD(weft_args_device(args, "J.start", &t), WEFT_E_ARG, "structure");
    t.stride = SHAPE(4, 1);
    BAD(weft_args_device(args, "C", &t), WEFT_E_ARG, "without gaps");
    t.stride = NULL;
    t.data = NULL;
    BAD(weft_args_device(args, "C", &t), WEFT_E_ARG, "data is NULL");
    OK(weft_ctx_target(ctx, NULL));
    OK(weft_args_device(args, "C", NULL));
    OK(weft_kernel_run(kernel, args));
    weft_ctx_free(ctx);
    ctx = NULL;
    drop(c, MEMORY);
    check_nothing_left(&j, "memory");
}
