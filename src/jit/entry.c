/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * An entry of the cache is one file, all little-endian:
 *
 *     magic 8, format 8, size of the library 8, digest of the program 32, of the compiler 32,
 *     the library, SHA-256 of all before 32
 *
 * It appears under its name by one rename, complete and synced; whatever else is found under such a
 * name is damaged, is removed, and counts as not there. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[8] = "weft-jit";

enum {
    AT_FORMAT = 8,
    AT_SIZE = 16,
    AT_PROGRAM = 24,
    AT_COMPILER = AT_PROGRAM + SHA_SIZE,
    HEAD = AT_COMPILER + SHA_SIZE,
    LEAST = HEAD + SHA_SIZE
};

static void put_int(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_int(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static void digest(uint8_t out[SHA_SIZE], Bytes a, Bytes b)
{
    Sha s;

    sha_init(&s);
    sha_add(&s, a.p, a.n);
    sha_add(&s, b.p, b.n);
    sha_end(&s, out);
}

static const char *content_fault(Bytes e, const char *key)
{
    uint8_t sum[SHA_SIZE];
    char name[JIT_KEY + 1];

    if (e.n < LEAST || memcmp(e.p, magic, sizeof magic) != 0)
        return "it is no kernel";
    if (get_int(e.p + AT_FORMAT) != JIT_FORMAT)
        return "it has another format";
    if (get_int(e.p + AT_SIZE) != e.n - LEAST)
        return "it has the wrong length";
    key_name(name, e.p + AT_PROGRAM, e.p + AT_COMPILER);
    if (strcmp(name, key) != 0)
        return "it is another kernel";
    digest(sum, (Bytes){ e.p, e.n - SHA_SIZE }, (Bytes){ 0 });
    if (memcmp(sum, e.p + e.n - SHA_SIZE, SHA_SIZE) != 0)
        return "its checksum differs";
    return NULL;
}

static const char *file_fault(const Os *os, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "it is no plain file";
    if (st->st_uid != os->euid(os))
        return "it belongs to another user";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others can write to it";
    if (st->st_size > JIT_MAX_ENTRY)
        return "it is too large";
    return NULL;
}

/* 0, an errno, or EBADMSG and *fault for a file that cannot be trusted. */
static int read_checked(Job *j, int fd, const char *key, Bytes *e, const char **fault)
{
    struct stat st;

    if (j->os->fstat(j->os, fd, &st) != 0)
        return errno;
    *fault = file_fault(j->os, &st);
    if (*fault != NULL)
        return EBADMSG;
    *e = job_read(j, fd, JIT_MAX_ENTRY);
    if (e->p == NULL)
        return errno;
    *fault = content_fault(*e, key);
    return *fault == NULL ? 0 : EBADMSG;
}

int entry_read(Job *j, int dir, const char *key, Bytes *lib, const char **why)
{
    /* O_NONBLOCK: a pipe in the place of the file must not stop us */
    int fd = job_hold(j, j->os->openat(j->os, dir, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    int code = fd < 0 ? errno : 0;
    Bytes e = { 0 };

    *why = "it is a symbolic link";
    if (fd >= 0) {
        code = read_checked(j, fd, key, &e, why);
        job_close(j, fd);
    }
    if (code == ELOOP)
        code = EBADMSG;
    if (code != 0 && code != EBADMSG)
        *why = strerror(code);
    if (code == 0)
        *lib = (Bytes){ e.p + HEAD, e.n - LEAST };
    return code;
}

bool entry_find(Job *j, int dir, Bytes *lib)
{
    const char *why;
    int code = entry_read(j, dir, j->key, lib, &why);

    if (code == EBADMSG) {
        job_note(j, "cache entry removed: %s", why);
        dir_remove(j, dir, j->key, 1);
    } else if (code != 0 && code != ENOENT) {
        job_note(j, "cache entry cannot be read: %s", why);
    }
    return code == 0;
}

int entry_publish(Job *j, int dir, Bytes lib)
{
    uint8_t head[HEAD], sum[SHA_SIZE];
    const Bytes part[] = { { head, HEAD }, lib, { sum, SHA_SIZE } };
    const char *temp = dir_temp(j);
    int code;

    memcpy(head, magic, sizeof magic);
    put_int(head + AT_FORMAT, JIT_FORMAT);
    put_int(head + AT_SIZE, lib.n);
    memcpy(head + AT_PROGRAM, j->program, SHA_SIZE);
    memcpy(head + AT_COMPILER, j->compiler, SHA_SIZE);
    digest(sum, part[0], lib);
    code = job_write(j, dir, temp, 0600, part, 3, true);
    if (code == 0 && j->os->renameat(j->os, dir, temp, dir, j->key) != 0)
        code = errno;
    if (code != 0)
        j->os->unlinkat(j->os, dir, temp, 0);
    else if (j->os->fsync(j->os, dir) != 0)
        job_note(j, "the cache directory could not be synced: %s", strerror(errno));
    return code;
}
