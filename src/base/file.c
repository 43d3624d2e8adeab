/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Whole files in and out.  A throw never passes over an open descriptor: the work that may fail
 * returns an errno, and the descriptor is closed before anything is thrown. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void throw_io(Arena *a, const char *verb, const char *path, int code)
{
    err_throw(a->err, code == EFBIG ? ST_LIMIT : ST_IO, "cannot %s %s: %s", verb, path,
              strerror(code));
}

/* A plain malloc'd buffer that grows while a stream of unknown length is read. */
typedef struct Stream {
    const Os *os;
    uint8_t *p;
    size_t n, cap;
} Stream;

static int read_all(Stream *s, int fd, size_t most)
{
    for (;;) {
        ptrdiff_t got;

        if (s->n == s->cap) {
            size_t cap = s->cap * 2;
            uint8_t *p = s->os->alloc(s->os, s->p, cap);

            if (p == NULL)
                return ENOMEM;
            s->p = p;
            s->cap = cap;
        }
        got = s->os->read(s->os, fd, s->p + s->n, s->cap - s->n);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return errno;
        s->n += got > 0 ? (size_t)got : 0;
        if (s->n > most)
            return EFBIG;
    }
}

static int read_open(Stream *s, int fd, size_t most)
{
    int64_t bytes;

    if (s->os->size(s->os, fd, &bytes) != 0)
        return errno;
    if (bytes > (int64_t)most)
        return EFBIG;
    s->cap = bytes > 0 ? (size_t)bytes + 1 : 65536; /* + 1: the read that finds the end */
    s->p = s->os->alloc(s->os, NULL, s->cap);
    return s->p == NULL ? ENOMEM : read_all(s, fd, most);
}

Bytes file_read(Arena *a, const char *path, int64_t most)
{
    bool std = strcmp(path, "-") == 0;
    int fd = std ? 0 : a->os->open(a->os, path, O_RDONLY, 0), code;
    Stream s = { .os = a->os };
    jmp_buf trap, *outer = a->err->trap;
    uint8_t *p = NULL;

    if (fd < 0)
        throw_io(a, "open", path, errno);
    code = read_open(&s, fd, (size_t)most);
    if (!std)
        a->os->close(a->os, fd);
    a->err->trap = &trap;
    if (code == 0 && setjmp(trap) == 0)
        p = arena_copy(a, s.p, s.n);
    a->err->trap = outer;
    a->os->alloc(a->os, s.p, 0);
    if (code == EFBIG)
        err_throw(a->err, ST_LIMIT, "%s is larger than the limit of %lld bytes", path,
                  (long long)most);
    if (code == ENOMEM)
        err_throw(a->err, ST_NOMEM, "out of memory reading %s", path);
    if (code != 0)
        throw_io(a, "read", path, code);
    if (a->err->code != ST_OK)
        err_jump(a->err);
    return (Bytes){ p, s.n };
}

int file_put(const Os *os, int fd, const void *from, size_t n)
{
    const char *p = from;

    while (n > 0) {
        ptrdiff_t put = os->write(os, fd, p, n);

        if (put < 0 && errno != EINTR)
            return errno;
        if (put == 0)
            return EIO;
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int write_temp(const Os *os, const char *temp, const void *p, size_t n)
{
    int fd = os->open(os, temp, O_WRONLY | O_CREAT | O_EXCL, 0666), code;

    if (fd < 0)
        return errno;
    code = file_put(os, fd, p, n);
    if (code == 0 && os->fsync(os, fd) != 0)
        code = errno;
    if (os->close(os, fd) != 0 && code == 0)
        code = errno;
    return code;
}

/* A device or pipe is written in place: a rename would put a plain file where it stands.  Returns
 * -1 when path is no such thing, else 0 or an errno. */
static int write_special(const Os *os, const char *path, const void *p, size_t n)
{
    int fd = os->open(os, path, O_WRONLY, 0), code = -1;
    int64_t bytes;

    if (fd < 0)
        return -1;
    if (os->size(os, fd, &bytes) != 0)
        code = errno;
    else if (bytes < 0)
        code = file_put(os, fd, p, n);
    if (os->close(os, fd) != 0 && code == 0)
        code = errno;
    return code;
}

static int write_and_rename(Arena *a, const char *path, const void *p, size_t n)
{
    Text temp = { .arena = a };
    int code;

    text_f(&temp, "%s.%ld.tmp", path, (long)getpid());
    code = write_temp(a->os, temp.s, p, n);
    if (code == 0 && a->os->rename(a->os, temp.s, path) != 0)
        code = errno;
    if (code != 0)
        a->os->unlink(a->os, temp.s);
    return code;
}

void file_write(Arena *a, const char *path, const void *p, size_t n)
{
    bool std = strcmp(path, "-") == 0;
    int code = std ? file_put(a->os, 1, p, n) : write_special(a->os, path, p, n);

    if (code < 0)
        code = write_and_rename(a, path, p, n);
    if (code != 0)
        throw_io(a, "write", std ? "standard output" : path, code);
}
