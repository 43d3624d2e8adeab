/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The key of a kernel: a digest of all that can change its binary.  It has two halves, what is
 * compiled and what compiles it, so that a machine without a compiler can look for the first
 * alone. */
#include "jit/jit_int.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#if defined __x86_64__
#define ARCH "x86_64"
#elif defined __aarch64__
#define ARCH "aarch64"
#elif defined __riscv
#define ARCH "riscv"
#elif defined __powerpc64__
#define ARCH "ppc64"
#else
#define ARCH "other" /* a library of another machine does not load: a miss, too */
#endif

static const char *libc_version(void)
{
#ifdef __GLIBC__
    return gnu_get_libc_version();
#else
    return "other";
#endif
}

/* The length goes before the bytes: "ab" "c" is not "a" "bc". */
static void add(Sha *s, const void *p, size_t n)
{
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)n >> (8 * i));
    sha_add(s, length, sizeof length);
    sha_add(s, p, n);
}

static void add_text(Sha *s, const char *text)
{
    add(s, text, strlen(text));
}

static void add_int(Sha *s, int64_t v)
{
    add(s, &v, sizeof v);
}

/* With -march=native the binary depends on this machine, and a shared home may be another's
 * tomorrow: what /proc/cpuinfo says of the first processor, but for what varies with time. */
static void add_cpu(Job *j, Sha *s)
{
    static const char *const lasting[] = { "vendor_id", "model name", "flags",
                                           "CPU part",  "Features",   "isa" };
    char text[8192];
    int fd = job_hold(j, j->os->openat(j->os, AT_FDCWD, "/proc/cpuinfo", O_RDONLY, 0));
    ptrdiff_t n = fd < 0 ? 0 : j->os->read(j->os, fd, text, sizeof text - 1);

    if (fd >= 0)
        job_close(j, fd);
    text[n < 0 ? 0 : n] = 0;
    for (const char *line = text; *line != 0 && *line != '\n';) {
        size_t len = strcspn(line, "\n");

        for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
            if (strncmp(line, lasting[i], strlen(lasting[i])) == 0)
                add(s, line, len);
        line += len + (line[len] == '\n');
    }
}

static bool has_native(const char *const *flag, int n)
{
    for (int i = 0; i < n; i++)
        if (strstr(flag[i], "native") != NULL)
            return true;
    return false;
}

static void digest_program(Job *j)
{
    const JitRequest *r = j->req;
    const Words *w = &j->jit->cflags;
    Sha s;

    sha_init(&s);
    add_int(&s, JIT_FORMAT);
    add_text(&s, ARCH);
    add_int(&s, (int64_t)sizeof(void *));
    add_text(&s, libc_version());
    add_text(&s, r->identity);
    add_int(&s, r->nflag);
    for (int i = 0; i < r->nflag; i++)
        add_text(&s, r->flag[i]);
    for (int i = 0; i < w->n; i++)
        add_text(&s, w->word[i]);
    if (has_native(r->flag, r->nflag) || has_native(w->word, w->n))
        add_cpu(j, &s);
    add(&s, r->source, r->nsource);
    sha_end(&s, j->program);
}

/* Which file it really is, its size and its time: an upgrade changes them, and no process has to be
 * started to ask for a version. */
static bool add_identity(Job *j, Sha *s, const char *program)
{
    char real[PATH_MAX];
    struct stat st;

    if (j->os->realpath(j->os, program, real) == NULL ||
        j->os->fstatat(j->os, AT_FDCWD, real, &st, 0) != 0)
        return false;
    add_text(s, real);
    add_int(s, st.st_size);
    add_int(s, st.st_mtim.tv_sec);
    add_int(s, st.st_mtim.tv_nsec);
    return true;
}

/* Digests what compiles; false: there is no compiler. */
bool key_has_compiler(Job *j)
{
    const Jit *jit = j->jit;
    Sha s;

    sha_init(&s);
    for (int i = 0; i < jit->cc.n; i++) {
        bool known = jit->program[i] != NULL && add_identity(j, &s, jit->program[i]);

        if (i == 0 && !known)
            return false;
        add_text(&s, jit->cc.word[i]);
    }
    sha_end(&s, j->compiler);
    return true;
}

static void put_hex(char *out, const uint8_t *p, int n)
{
    for (int i = 0; i < n; i++) {
        *out++ = "0123456789abcdef"[p[i] >> 4];
        *out++ = "0123456789abcdef"[p[i] & 15];
    }
    *out = 0;
}

/* 128 bits of each half: enough against accidents, and only we can write the directory. */
void key_name(char out[JIT_KEY + 1], const uint8_t *program, const uint8_t *compiler)
{
    put_hex(out, program, JIT_KEY / 4);
    put_hex(out + JIT_KEY / 2, compiler, JIT_KEY / 4);
}

void key_of_blob(Job *j, const JitBlob *b)
{
    Sha s;

    sha_init(&s);
    add_int(&s, JIT_FORMAT);
    add_text(&s, "for a device");
    add_text(&s, b->identity);
    add_text(&s, b->source);
    sha_end(&s, j->program);
    sha_init(&s);
    add_text(&s, b->maker);
    sha_end(&s, j->compiler);
    key_name(j->key, j->program, j->compiler);
}

void key_make(Job *j)
{
    digest_program(j);
    j->has_compiler = key_has_compiler(j);
    key_name(j->key, j->program, j->compiler);
}
