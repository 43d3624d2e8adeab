/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The failing Os of inject.h. */
#include "fail/inject.h"

#include <errno.h>

const char *const inject_name[INJECT_KINDS] = { "alloc", "open",  "read",   "write", "size",
                                                "fsync", "close", "rename", "unlink" };

static Inject *self(const Os *os)
{
    return (Inject *)(uintptr_t)os; /* the table is const to its users, the counters are ours */
}

/* Counts the call; true when it has to fail. */
static bool fails(Inject *j, InjectKind kind)
{
    int64_t k = ++j->calls[kind];

    if (kind != j->kind || (j->sticky ? k < j->at : k != j->at))
        return false;
    j->failed++;
    errno = j->code;
    return true;
}

static void *inject_alloc(const Os *os, void *old, size_t size)
{
    Inject *j = self(os);
    void *p;

    if (size == 0) {
        j->blocks -= old != NULL;
        return j->real->alloc(j->real, old, 0);
    }
    if (fails(j, INJECT_ALLOC))
        return NULL;
    p = j->real->alloc(j->real, old, size);
    j->blocks += p != NULL && old == NULL;
    return p;
}

static int inject_open(const Os *os, const char *path, int flags, int mode)
{
    Inject *j = self(os);
    int fd = fails(j, INJECT_OPEN) ? -1 : j->real->open(j->real, path, flags, mode);

    j->files += fd >= 0;
    return fd;
}

static size_t piece(const Inject *j, size_t n)
{
    return j->piece != 0 && n > j->piece ? j->piece : n;
}

static ptrdiff_t inject_read(const Os *os, int fd, void *to, size_t n)
{
    Inject *j = self(os);

    return fails(j, INJECT_READ) ? -1 : j->real->read(j->real, fd, to, piece(j, n));
}

static ptrdiff_t inject_write(const Os *os, int fd, const void *from, size_t n)
{
    Inject *j = self(os);

    return fails(j, INJECT_WRITE) ? -1 : j->real->write(j->real, fd, from, piece(j, n));
}

static int inject_size(const Os *os, int fd, int64_t *bytes)
{
    Inject *j = self(os);

    *bytes = -1;
    return fails(j, INJECT_SIZE) ? -1 : j->real->size(j->real, fd, bytes);
}

static int inject_fsync(const Os *os, int fd)
{
    Inject *j = self(os);

    return fails(j, INJECT_FSYNC) ? -1 : j->real->fsync(j->real, fd);
}

static int inject_close(const Os *os, int fd)
{
    Inject *j = self(os);
    int status = j->real->close(j->real, fd);

    j->files--;
    return fails(j, INJECT_CLOSE) ? -1 : status;
}

static int inject_rename(const Os *os, const char *from, const char *to)
{
    Inject *j = self(os);

    return fails(j, INJECT_RENAME) ? -1 : j->real->rename(j->real, from, to);
}

static int inject_unlink(const Os *os, const char *path)
{
    Inject *j = self(os);

    return fails(j, INJECT_UNLINK) ? -1 : j->real->unlink(j->real, path);
}

void inject_init(Inject *j, const Os *real)
{
    *j = (Inject){
        .os = {
            .alloc = inject_alloc,
            .open = inject_open,
            .read = inject_read,
            .write = inject_write,
            .size = inject_size,
            .fsync = inject_fsync,
            .close = inject_close,
            .rename = inject_rename,
            .unlink = inject_unlink,
        },
        .real = real,
        .kind = INJECT_NONE,
    };
}

void inject_at(Inject *j, InjectKind kind, int64_t at, bool sticky, int code)
{
    j->kind = kind;
    j->at = at;
    j->sticky = sticky;
    j->code = code;
}

bool inject_is_clean(const Inject *j)
{
    return j->blocks == 0 && j->files == 0;
}
