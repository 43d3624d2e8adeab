/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of src/jit stand on: an environment of their own, folders of their own, and the
 * stub compiler of tests/jit/stub, made once in each test program by the real one. */
#ifndef WEFT_JIT_BED_H
#define WEFT_JIT_BED_H

#include "fail/inject.h"
#include "jit/jit.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Bed {
    Err err;
    Inject inject;
    Jit *jit;
    JitReport report;
    char root[400]; /* has cache/ and tmp/ */
} Bed;

enum { BED_VARS = 16 };

static struct BedVar {
    char name[32];
    char *value; /* NULL: not set */
} bed_vars[BED_VARS];

static inline const char *bed_getenv(const char *name)
{
    for (int i = 0; i < BED_VARS; i++)
        if (strcmp(bed_vars[i].name, name) == 0)
            return bed_vars[i].value;
    return NULL;
}

static inline void bed_set(const char *name, const char *value)
{
    struct BedVar *v = bed_vars;

    while (v->name[0] != 0 && strcmp(v->name, name) != 0)
        v++;
    CHECK(v < bed_vars + BED_VARS - 1);
    snprintf(v->name, sizeof v->name, "%s", name);
    free(v->value);
    v->value = value == NULL ? NULL : strdup(value);
}

static inline void bed_unset_all(void)
{
    for (int i = 0; i < BED_VARS; i++)
        free(bed_vars[i].value);
    memset(bed_vars, 0, sizeof bed_vars);
}

/* A formatted text; the last 32 stay. */
__attribute__((format(printf, 1, 2))) static inline const char *bed_text(const char *fmt, ...)
{
    static char texts[32][2048];
    static unsigned next;
    char *text = texts[next++ % 32];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof texts[0], fmt, ap);
    va_end(ap);
    return text;
}

static inline int bed_system(char *const *argv)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static inline bool bed_compile(const char *flag, const char *from, const char *to)
{
    char *argv[] = { "cc", "-O1", (char *)(uintptr_t)flag, "-fPIC",
                     "-s", "-o",  (char *)(uintptr_t)to,   (char *)(uintptr_t)from,
                     NULL };

    return bed_system(argv) == 0;
}

/* The stub's path; the test is skipped when there is no compiler to make it. */
static inline const char *bed_stub(void)
{
    static char path[512];
    const char *made = getenv("WEFT_STUB"); /* by the parent of this process */

    if (made != NULL)
        return made;
    if (path[0] != 0)
        return path;
    snprintf(path, sizeof path, "%s", test_path("stub"));
    if (!bed_compile("-shared", WEFT_STUB_DIR "/template.c", bed_text("%s.so", path)) ||
        (!bed_compile("-static", WEFT_STUB_DIR "/cc.c", path) &&
         !bed_compile("-O2", WEFT_STUB_DIR "/cc.c", path))) {
        path[0] = 0;
        test_skip("no C compiler");
    }
    return path;
}

static inline const char *bed_path(const Bed *b, const char *name)
{
    return bed_text("%s/%s", b->root, name);
}

static inline void bed_free(Bed *b)
{
    jit_free(b->jit);
    b->jit = NULL;
    CHECK_EQ(b->inject.blocks, 0);
    CHECK_EQ(b->inject.files, 0);
    CHECK_EQ(b->inject.libs, 0);
}

/* A new Jit for the same folders. */
static inline Status bed_again(Bed *b)
{
    Jit *volatile jit = NULL;
    Status s;

    if (b->jit != NULL)
        bed_free(b);
    s = CATCH(&b->err, jit = jit_new(&b->inject.os, &b->err));
    b->jit = s == ST_OK ? jit : NULL;
    return s;
}

/* Folders and environment, but no Jit yet. */
static inline void bed_prepare(Bed *b, const char *name)
{
    const char *path = getenv("PATH");

    memset(b, 0, sizeof *b);
    bed_unset_all();
    inject_init(&b->inject, &os_libc);
    b->inject.getenv = bed_getenv;
    b->inject.no_sync = true;
    snprintf(b->root, sizeof b->root, "%s", test_path(name));
    CHECK(mkdir(b->root, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(bed_path(b, "tmp"), 0700) == 0 || errno == EEXIST);
    bed_set("PATH", path == NULL ? "/usr/bin:/bin" : path);
    bed_set("TMPDIR", bed_path(b, "tmp"));
    bed_set("HOME", b->root);
    bed_set("WEFT_CACHE_DIR", bed_path(b, "cache"));
}

/* With the stub as compiler; `mode` has its words, or is "". */
static inline void bed_init(Bed *b, const char *name, const char *mode)
{
    const char *stub = bed_stub();

    bed_prepare(b, name);
    bed_set("WEFT_CC", bed_text("%s %s", stub, mode));
    CHECK_EQ(bed_again(b), ST_OK);
}

/* With the real compiler, or the test is skipped. */
static inline void bed_real(Bed *b, const char *name)
{
    bed_prepare(b, name);
    CHECK_EQ(bed_again(b), ST_OK);
    if (jit_compiler(b->jit) == NULL) {
        bed_free(b);
        test_skip("no C compiler");
    }
}

/* The kernel whose answer is `value`; stub and real compilers understand its source. */
static inline Status bed_get(Bed *b, int value, JitModule **out)
{
    static const char *const flags[] = { "-O1" }, *const symbols[] = { "answer" };
    const char *source = bed_text("int answer(void) { return %d; } /* value %08d */", value, value);
    JitRequest r = { .source = source,
                     .nsource = strlen(source),
                     .flag = flags,
                     .nflag = 1,
                     .identity = "test",
                     .symbol = symbols,
                     .nsymbol = 1 };
    JitModule *volatile m = NULL;
    Status s = CATCH(&b->err, m = jit_get(b->jit, &b->err, &r, &b->report));

    *out = s == ST_OK ? m : NULL;
    return s;
}

static inline int bed_answer(const JitModule *m) /* -1: no such symbol */
{
    int (*answer)(void);

    *(void **)&answer = jit_symbol(m, "answer");
    return answer == NULL ? -1 : answer();
}

/* Gets it, asks it, lets go of it. */
static inline void bed_use(Bed *b, int value, JitHow how)
{
    JitModule *m;

    if (bed_get(b, value, &m) != ST_OK)
        test_fail(__FILE__, __LINE__, "kernel %d: %s", value, b->err.msg);
    CHECK_EQ(bed_answer(m), value);
    jit_release(m);
    if (b->report.how != how) {
        char text[1000];

        jit_explain(&b->report, text, sizeof text);
        test_fail(__FILE__, __LINE__, "kernel %d: %s", value, text);
    }
}

static inline Status bed_fails(Bed *b, int value)
{
    JitModule *m;
    Status s = bed_get(b, value, &m);

    CHECK(s != ST_OK && m == NULL);
    return s;
}

/* Files in a folder whose name ends so ("" for all); 0 when the folder is not there. */
static inline int bed_count(const char *dir, const char *end)
{
    DIR *d = opendir(dir);
    int n = 0;

    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t len = strlen(e->d_name), k = strlen(end);

        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && len >= k &&
             strcmp(e->d_name + len - k, end) == 0;
    }
    if (d != NULL)
        closedir(d);
    return n;
}

static inline const char *bed_cache(const Bed *b)
{
    return bed_path(b, "cache");
}

static inline const char *bed_entry(const Bed *b) /* of the last get */
{
    return bed_text("%s/cache/%s", b->root, b->report.key);
}

/* How many entries are whole; with `damaged` also how many are not. */
static inline int bed_whole(Bed *b, int *damaged)
{
    Arena a;
    int n, whole = 0;
    JitEntry *e;

    arena_init(&a, &os_libc, &b->err);
    CHECK_EQ(CATCH(&b->err, e = jit_cache_list(b->jit, &a, &n)), ST_OK);
    for (int i = 0; i < n; i++)
        whole += jit_cache_check(b->jit, &b->err, &e[i]) == NULL;
    arena_free(&a);
    if (damaged != NULL)
        *damaged = n - whole;
    return whole;
}

/* The private directory of this bed's Jit. */
static inline const char *bed_own(const Bed *b)
{
    DIR *d = opendir(bed_path(b, "tmp"));
    const char *path = NULL;

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "weft-jit-", 9) == 0)
            path = bed_text("%s/tmp/%s", b->root, e->d_name);
    closedir(d);
    CHECK(path != NULL);
    return path;
}

static inline void bed_put(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);

    CHECK(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
}

/* At most `most` bytes of a file; how many there are. */
static inline size_t bed_slurp(const char *path, void *to, size_t most)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, to, most);

    CHECK(fd >= 0 && n >= 0);
    close(fd);
    return (size_t)n;
}

static inline int bed_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline void bed_remove(const char *path)
{
    nftw(path, bed_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
