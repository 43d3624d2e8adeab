/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The failing Os of inject.h. */
#include "fail/inject.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

const char *const inject_name[INJECT_KINDS] = {
    "alloc",   "open",     "read",      "write",   "size",    "fsync",    "close",    "rename",
    "unlink",  "openat",   "fstat",     "fstatat", "mkdirat", "unlinkat", "renameat", "flock",
    "mkdtemp", "realpath", "fdopendir", "readdir", "pipe",    "poll",     "spawn",    "waitid",
    "killpg",  "terminal", "memfd",     "seal",    "dlopen",  "dlsym",    "thread",
};

static Inject *self(const Os *os)
{
    return (Inject *)(uintptr_t)os; /* the table is const to its users, the counters are ours */
}

/* Counts the call; true when it has to fail. */
static bool fails(Inject *j, InjectKind kind)
{
    int64_t k = ++j->calls[kind];

    j->total += kind != INJECT_ALLOC;
    if (j->total == j->kill_at && j->kill_at != 0)
        raise(SIGKILL);
    if (kind != j->kind || (j->sticky ? k < j->at : k != j->at))
        return false;
    j->failed++;
    errno = j->code;
    return true;
}

typedef union Head { /* before each block: its size */
    size_t size;
    max_align_t align;
} Head;

/* Threads of the library allocate too. */
static void count_bytes(Inject *j, int64_t more)
{
    int64_t now = __atomic_add_fetch(&j->bytes, more, __ATOMIC_RELAXED);

    if (now > j->peak)
        j->peak = now;
}

static void *inject_alloc(const Os *os, void *old, size_t size)
{
    Inject *j = self(os);
    Head *block = old == NULL ? NULL : (Head *)old - 1;
    int64_t had = block == NULL ? 0 : (int64_t)block->size;

    if (size == 0) {
        j->blocks -= old != NULL;
        count_bytes(j, -had);
        return j->real->alloc(j->real, block, 0);
    }
    if (fails(j, INJECT_ALLOC) || size > SIZE_MAX - sizeof *block)
        return NULL;
    block = j->real->alloc(j->real, block, sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->size = size;
    j->blocks += old == NULL;
    count_bytes(j, (int64_t)size - had);
    return block + 1;
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

    if (fails(j, INJECT_FSYNC))
        return -1;
    return j->no_sync ? 0 : j->real->fsync(j->real, fd);
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

static int inject_openat(const Os *os, int dir, const char *name, int flags, int mode)
{
    Inject *j = self(os);
    int fd = fails(j, INJECT_OPENAT) ? -1 : j->real->openat(j->real, dir, name, flags, mode);

    j->files += fd >= 0;
    return fd;
}

static int inject_fstat(const Os *os, int fd, struct stat *st)
{
    Inject *j = self(os);

    return fails(j, INJECT_FSTAT) ? -1 : j->real->fstat(j->real, fd, st);
}

static int inject_fstatat(const Os *os, int dir, const char *name, struct stat *st, int flags)
{
    Inject *j = self(os);

    return fails(j, INJECT_FSTATAT) ? -1 : j->real->fstatat(j->real, dir, name, st, flags);
}

static int inject_mkdirat(const Os *os, int dir, const char *name, int mode)
{
    Inject *j = self(os);

    return fails(j, INJECT_MKDIRAT) ? -1 : j->real->mkdirat(j->real, dir, name, mode);
}

static int inject_unlinkat(const Os *os, int dir, const char *name, int flags)
{
    Inject *j = self(os);

    return fails(j, INJECT_UNLINKAT) ? -1 : j->real->unlinkat(j->real, dir, name, flags);
}

static int inject_renameat(const Os *os, int dir, const char *from, int todir, const char *to)
{
    Inject *j = self(os);

    return fails(j, INJECT_RENAMEAT) ? -1 : j->real->renameat(j->real, dir, from, todir, to);
}

static int inject_flock(const Os *os, int fd, int how)
{
    Inject *j = self(os);

    return fails(j, INJECT_FLOCK) ? -1 : j->real->flock(j->real, fd, how);
}

static char *inject_mkdtemp(const Os *os, char *path)
{
    Inject *j = self(os);

    return fails(j, INJECT_MKDTEMP) ? NULL : j->real->mkdtemp(j->real, path);
}

static char *inject_realpath(const Os *os, const char *path, char *to)
{
    Inject *j = self(os);

    return fails(j, INJECT_REALPATH) ? NULL : j->real->realpath(j->real, path, to);
}

static void *inject_fdopendir(const Os *os, int fd)
{
    Inject *j = self(os);

    return fails(j, INJECT_FDOPENDIR) ? NULL : j->real->fdopendir(j->real, fd);
}

static const char *inject_readdir(const Os *os, void *list)
{
    Inject *j = self(os);

    return fails(j, INJECT_READDIR) ? NULL : j->real->readdir(j->real, list);
}

static int inject_closedir(const Os *os, void *list)
{
    Inject *j = self(os);

    j->files--;
    return j->real->closedir(j->real, list);
}

static int inject_pipe(const Os *os, int fd[2])
{
    Inject *j = self(os);
    int status = fails(j, INJECT_PIPE) ? -1 : j->real->pipe(j->real, fd);

    j->files += status == 0 ? 2 : 0;
    return status;
}

static int inject_poll(const Os *os, int fd, int ms)
{
    Inject *j = self(os);

    return fails(j, INJECT_POLL) ? -1 : j->real->poll(j->real, fd, ms);
}

static int inject_spawn(const Os *os, const OsSpawn *s, int *pid)
{
    Inject *j = self(os);

    return fails(j, INJECT_SPAWN) ? -1 : j->real->spawn(j->real, s, pid);
}

static int inject_waitid(const Os *os, int pid, int flags, int *status)
{
    Inject *j = self(os);

    return fails(j, INJECT_WAITID) ? -1 : j->real->waitid(j->real, pid, flags, status);
}

static int inject_killpg(const Os *os, int group, int sig)
{
    Inject *j = self(os);

    return fails(j, INJECT_KILLPG) ? -1 : j->real->killpg(j->real, group, sig);
}

static int inject_terminal(const Os *os, char name[OS_TERMINAL])
{
    Inject *j = self(os);
    int fd = fails(j, INJECT_TERMINAL) ? -1 : j->real->terminal(j->real, name);

    j->files += fd >= 0;
    return fd;
}

static int inject_memfd(const Os *os, const char *name)
{
    Inject *j = self(os);
    int fd = fails(j, INJECT_MEMFD) ? -1 : j->real->memfd(j->real, name);

    j->files += fd >= 0;
    return fd;
}

static int inject_seal(const Os *os, int fd)
{
    Inject *j = self(os);

    return fails(j, INJECT_SEAL) ? -1 : j->real->seal(j->real, fd);
}

static void *inject_dlopen(const Os *os, const char *path)
{
    Inject *j = self(os);
    void *lib = fails(j, INJECT_DLOPEN) ? NULL : j->real->dlopen(j->real, path);

    j->libs += lib != NULL;
    return lib;
}

static void *inject_dlsym(const Os *os, void *lib, const char *name)
{
    Inject *j = self(os);

    return fails(j, INJECT_DLSYM) ? NULL : j->real->dlsym(j->real, lib, name);
}

static int inject_dlclose(const Os *os, void *lib)
{
    Inject *j = self(os);

    j->libs--;
    return j->real->dlclose(j->real, lib);
}

static const char *inject_dlerror(const Os *os)
{
    Inject *j = self(os);

    return j->real->dlerror(j->real);
}

static const char *inject_getenv(const Os *os, const char *name)
{
    Inject *j = self(os);

    return j->getenv != NULL ? j->getenv(name) : j->real->getenv(j->real, name);
}

static int64_t inject_clock(const Os *os, int id)
{
    Inject *j = self(os);
    int64_t now = j->real->clock(j->real, id);

    if (j->clock_speed == 0 || id != CLOCK_MONOTONIC)
        return now;
    return j->clock_begin + (now - j->clock_begin) * j->clock_speed;
}

static void inject_sleep(const Os *os, int64_t ns)
{
    Inject *j = self(os);

    j->real->sleep(j->real, ns);
}

static unsigned inject_euid(const Os *os)
{
    Inject *j = self(os);

    return j->real->euid(j->real) + j->euid_plus;
}

static int inject_cpus(const Os *os)
{
    Inject *j = self(os);

    return j->real->cpus(j->real);
}

static int inject_cpu(const Os *os)
{
    Inject *j = self(os);

    return j->real->cpu(j->real);
}

static void inject_leave(const Os *os, int cpu)
{
    Inject *j = self(os);

    j->real->leave(j->real, cpu);
}

static void inject_large(const Os *os, void *p, size_t n)
{
    Inject *j = self(os);

    j->real->large(j->real, p, n);
}

static int inject_thread_new(const Os *os, pthread_t *thread, void *(*run)(void *), void *arg)
{
    Inject *j = self(os);
    int status = fails(j, INJECT_THREAD) ? j->code : j->real->thread_new(j->real, thread, run, arg);

    j->threads += status == 0;
    return status;
}

static int inject_thread_join(const Os *os, pthread_t thread)
{
    Inject *j = self(os);

    j->threads--;
    return j->real->thread_join(j->real, thread);
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
            .openat = inject_openat,
            .fstat = inject_fstat,
            .fstatat = inject_fstatat,
            .mkdirat = inject_mkdirat,
            .unlinkat = inject_unlinkat,
            .renameat = inject_renameat,
            .flock = inject_flock,
            .mkdtemp = inject_mkdtemp,
            .realpath = inject_realpath,
            .fdopendir = inject_fdopendir,
            .readdir = inject_readdir,
            .closedir = inject_closedir,
            .pipe = inject_pipe,
            .poll = inject_poll,
            .spawn = inject_spawn,
            .waitid = inject_waitid,
            .killpg = inject_killpg,
            .terminal = inject_terminal,
            .memfd = inject_memfd,
            .seal = inject_seal,
            .dlopen = inject_dlopen,
            .dlsym = inject_dlsym,
            .dlclose = inject_dlclose,
            .dlerror = inject_dlerror,
            .getenv = inject_getenv,
            .clock = inject_clock,
            .sleep = inject_sleep,
            .euid = inject_euid,
            .cpus = inject_cpus,
            .cpu = inject_cpu,
            .leave = inject_leave,
            .large = inject_large,
            .thread_new = inject_thread_new,
            .thread_join = inject_thread_join,
        },
        .real = real,
        .clock_begin = real->clock(real, CLOCK_MONOTONIC),
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
    return j->blocks == 0 && j->files == 0 && j->libs == 0 && j->threads == 0;
}
