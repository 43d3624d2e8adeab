/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * CUDA texts of several programs, compiled by nvcc in one go: machine code for the interpreter, and
 * the host's functions as a shared library that finds the runtime in this program. */
#include "gpu/run/run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct CudaText {
    void *lib;
    Sass *code;
};

/* One function for all programs, around those of this one. */
static void put_calls(Text *t, const TextCase *c)
{
    const Body *body = c->body;
    int n = 0;

    text_f(
        t,
        "\nextern \"C\" int64_t weft_test_%s(int what, const int64_t *size, void *const *array)\n"
        "{\n    static struct weft_plan_%s plan;\n\n    (void)size, (void)array;\n"
        "    if (what == 0)\n        return weft_plan_%s_make(0",
        c->name, c->name, c->name);
    for (int i = 0; i < body->narg; i++)
        if (body->arg[i].kind == ARG_SIZE)
            text_f(t, ", size[%d]", i);
        else if (body->arg[i].kind != ARG_BUF)
            text_f(t, ", weft_test_any(array[%d])", i);
    text_f(t, ", &plan);\n    if (what == 1)\n        return weft_run_%s(0", c->name);
    for (int i = 0; i < body->narg; i++, n++)
        if (body->arg[i].kind == ARG_BUF)
            text_f(t, ", weft_test_any(array[%d])", i);
    text_f(t,
           ", &plan);\n    if (what == 2)\n        return weft_fault_%s(0, &plan);\n"
           "    weft_plan_%s_free(&plan);\n    return 0;\n}\n",
           c->name, c->name);
}

static Text text_of(Arena *a, const TextCase *c, int n)
{
    Text t = { .arena = a };

    for (int i = 0; i < n; i++)
        text_str(&t, c[i].source);
    text_str(&t, "\nstruct weft_test_any {\n    void *p;\n    weft_test_any(void *q) : p(q) {}\n"
                 "    template <class T> operator T *() const { return (T *)p; }\n};\n");
    for (int i = 0; i < n; i++)
        put_calls(&t, &c[i]);
    return t;
}

static const char *path_in(Arena *a, const char *dir, const char *name)
{
    Text t = { .arena = a };

    text_f(&t, "%s/%s", dir, name);
    return t.s;
}

static bool compile(Arena *a, const char *dir, const char **why)
{
    Text command = { .arena = a };
    Bytes log;
    char *s;

    text_f(
        &command,
        "nvcc -Werror all-warnings -arch=sm_80 -O3 -fmad=false -shared -cudart none "
        "-Xcompiler -fPIC,-O0,-Wall,-Werror --keep --keep-dir %s -o %s/all.so %s/all.cu >%s/log 2>&1",
        dir, dir, dir, dir);
    if (system(command.s) == 0)
        return true;
    log = file_read(a, path_in(a, dir, "log"), 1 << 20);
    s = arena_alloc(a, log.n + 1);
    memcpy(s, log.p, log.n);
    *why = s;
    return false;
}

CudaText *text_load(Arena *a, const TextCase *c, int n, const char **why)
{
    char dir[] = "/tmp/weft-cuda-XXXXXX", *message;
    Text t = text_of(a, c, n), command = { .arena = a };
    CudaText *x = arena_alloc(a, sizeof *x);

    *x = (CudaText){ NULL, NULL };
    if (mkdtemp(dir) == NULL)
        err_throw(a->err, ST_IO, "no temporary folder");
    file_write(a, path_in(a, dir, "all.cu"), t.s, t.n);
    if (compile(a, dir, why)) {
        message = arena_alloc(a, SASS_TEXT);
        x->code = sass_load(path_in(a, dir, "all.sm_80.cubin"), message);
        *why = message;
        runtime_code(x->code);
        if (x->code != NULL)
            x->lib = dlopen(path_in(a, dir, "all.so"), RTLD_NOW | RTLD_LOCAL);
        if (x->code != NULL && x->lib == NULL)
            *why = dlerror();
    }
    text_f(&command, "rm -rf %s", dir);
    if (getenv("WEFT_TEST_KEEP") == NULL && system(command.s) != 0)
        err_throw(a->err, ST_IO, "cannot remove %s", dir);
    return x->lib != NULL ? x : NULL;
}

void text_free(CudaText *x)
{
    if (x == NULL)
        return;
    dlclose(x->lib);
    runtime_code(NULL);
    sass_free(x->code);
}

int64_t text_call(const CudaText *x, const char *name, enum TextCall what, const int64_t *size,
                  void *const *array)
{
    int64_t (*fn)(int, const int64_t *, void *const *);
    char symbol[300];

    snprintf(symbol, sizeof symbol, "weft_test_%s", name);
    *(void **)&fn = dlsym(x->lib, symbol);
    return fn((int)what, size, array);
}
