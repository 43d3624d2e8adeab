/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * An Os that counts calls by kind and makes the k-th of a kind fail, once or from then on.  To try
 * every point of failure of a scenario:
 *
 *     Inject j;
 *     for (int64_t k = 1;; k++) {
 *         inject_init(&j, &os_libc);
 *         inject_at(&j, INJECT_ALLOC, k, false, ENOMEM);
 *         ... run the scenario with &j.os, look at its status ...
 *         CHECK(inject_is_clean(&j));
 *         if (j.failed == 0)
 *             break;           // the scenario makes fewer than k such calls
 *     }
 */
#ifndef WEFT_INJECT_H
#define WEFT_INJECT_H

#include "base/base.h"

typedef enum InjectKind {
    INJECT_ALLOC, /* frees are not counted and never fail */
    INJECT_OPEN,
    INJECT_READ,
    INJECT_WRITE,
    INJECT_SIZE,
    INJECT_FSYNC,
    INJECT_CLOSE, /* fails as close does: the descriptor is gone all the same */
    INJECT_RENAME,
    INJECT_UNLINK,
    INJECT_OPENAT,
    INJECT_FSTAT,
    INJECT_FSTATAT,
    INJECT_MKDIRAT,
    INJECT_UNLINKAT,
    INJECT_RENAMEAT,
    INJECT_FLOCK,
    INJECT_MKDTEMP,
    INJECT_REALPATH,
    INJECT_FDOPENDIR,
    INJECT_READDIR,
    INJECT_PIPE,
    INJECT_POLL,
    INJECT_SPAWN,
    INJECT_WAITID,
    INJECT_KILLPG,
    INJECT_TERMINAL,
    INJECT_MEMFD,
    INJECT_SEAL,
    INJECT_DLOPEN,
    INJECT_DLSYM,
    INJECT_THREAD,
    INJECT_KINDS,
    INJECT_NONE = INJECT_KINDS
} InjectKind;

typedef struct Inject {
    Os os; /* first: the functions of the table find the Inject from it */
    const Os *real;
    InjectKind kind;
    int64_t at;     /* 1 is the first call of the kind */
    bool sticky;    /* all calls from `at` on */
    int code;       /* errno of a failing call */
    size_t piece;   /* when not 0, a read or write moves at most so many bytes */
    int64_t failed; /* calls that were made to fail */
    int64_t calls[INJECT_KINDS];
    int64_t kill_at; /* when not 0, the process dies by SIGKILL at its call of this number */
    int64_t total;   /* calls of all kinds, allocations not counted */
    int64_t blocks, files, libs; /* allocated, opened, loaded, and not given back */
    int64_t bytes, peak;         /* in all blocks; the most there were at a time */
    int64_t threads;             /* begun and not joined */
    /* Tests of time and place; NULL or 0: as it is. */
    const char *(*getenv)(const char *name);
    bool no_sync; /* fsync is counted and left out: it takes 10 ms, and no test cuts the power */
    int64_t clock_begin, clock_speed; /* time since the beginning runs so many times as fast */
    unsigned euid_plus;               /* added to the user's number */
} Inject;

extern const char *const inject_name[INJECT_KINDS];

/* Nothing fails yet; *j must not move while its os is in use. */
void inject_init(Inject *j, const Os *real);
void inject_at(Inject *j, InjectKind kind, int64_t at, bool sticky, int code);
/* Every block freed, every descriptor and library closed, every thread joined. */
bool inject_is_clean(const Inject *j);

#endif
