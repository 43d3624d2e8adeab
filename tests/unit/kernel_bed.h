/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of kernels share: the bed of api/ with a kernel, a cache that all tests of the
 * process fill, and an Os whose environment and failures a test can set. */
#ifndef WEFT_KERNEL_BED_H
#define WEFT_KERNEL_BED_H

#include "unit/api_bed.h"

#include "api/api_int.h"
#include "fail/inject.h"

#include <stdlib.h>

static __attribute__((unused)) weft_kernel *kernel;

static inline void set_cache(void)
{
    setenv("WEFT_CACHE_DIR", test_path("cache"), 1);
}

/* It never gets hot by itself: what a test sees must not depend on how long its runs take. */
static inline void compile(void)
{
    OK(weft_kernel_compile(prog, &kernel));
    kernel->busy = INT64_MIN / 2;
}

static inline void open_kernel(const char *text)
{
    set_cache();
    open_prog(text);
    compile();
}

/* The environment that the Os of a test shows: PATH, the cache, the tests' own flags, and one
 * more. */
static __attribute__((unused)) const char *more_name, *more_value;

static inline const char *bed_environment(const char *name)
{
    if (more_name != NULL && strcmp(name, more_name) == 0)
        return more_value;
    if (strcmp(name, "WEFT_CACHE_DIR") == 0)
        return test_path("cache");
    return strcmp(name, "PATH") == 0 || strcmp(name, "WEFT_CFLAGS") == 0 ? getenv(name) : NULL;
}

static inline void open_inject(Inject *j, const char *name, const char *value)
{
    inject_init(j, &os_libc);
    j->getenv = bed_environment;
    more_name = name;
    more_value = value;
    weft_ctx_free(ctx); /* of a test that failed half way */
    ctx = api_ctx_new(&j->os);
    CHECK(ctx != NULL);
}

/* A program in a context with this variable set. */
static inline void open_with(Inject *j, const char *name, const char *value, const char *text)
{
    open_inject(j, name, value);
    OK(weft_prog_parse(ctx, "test.weft", text, strlen(text), &prog));
    OK(weft_args_new(prog, &args));
}

static inline void close_inject(Inject *j)
{
    weft_ctx_free(ctx);
    ctx = NULL;
    CHECK(inject_is_clean(j));
}

/* Vector widths that a kernel can be compiled for on x86-64. */
static __attribute__((unused)) const char *const bed_widths[] = { "sse2", "avx2", "avx512" };

/* False: this machine has other widths. */
static inline bool open_width(Inject *j, const char *width, const char *text)
{
    open_with(j, "WEFT_MAX_ISA", width, text);
    if (weft_kernel_compile(prog, &kernel) == WEFT_OK)
        return true;
    close_inject(j);
    return false;
}

static inline void check_source(const char *has)
{
    const char *text;

    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, has);
}

static inline weft_info info_of(weft_kernel *k)
{
    weft_info info;

    OK(weft_kernel_info(k, &info));
    return info;
}

#endif
