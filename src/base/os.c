/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of OS calls as libc has them. */
#include "base/base.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *libc_alloc(const Os *os, void *old, size_t size)
{
    (void)os;
    if (size == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, size);
}

static int libc_open(const Os *os, const char *path, int flags, int mode)
{
    (void)os;
    return open(path, flags | O_CLOEXEC, mode);
}

static ptrdiff_t libc_read(const Os *os, int fd, void *to, size_t n)
{
    (void)os;
    return read(fd, to, n);
}

static ptrdiff_t libc_write(const Os *os, int fd, const void *from, size_t n)
{
    (void)os;
    return write(fd, from, n);
}

static int libc_size(const Os *os, int fd, int64_t *bytes)
{
    struct stat st;

    (void)os;
    *bytes = -1;
    if (fstat(fd, &st) != 0)
        return -1;
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (S_ISREG(st.st_mode))
        *bytes = st.st_size;
    return 0;
}

static int libc_fsync(const Os *os, int fd)
{
    (void)os;
    return fsync(fd);
}

static int libc_close(const Os *os, int fd)
{
    (void)os;
    return close(fd);
}

static int libc_rename(const Os *os, const char *from, const char *to)
{
    (void)os;
    return rename(from, to);
}

static int libc_unlink(const Os *os, const char *path)
{
    (void)os;
    return unlink(path);
}

static int libc_openat(const Os *os, int dir, const char *name, int flags, int mode)
{
    (void)os;
    return openat(dir, name, flags | O_CLOEXEC, mode);
}

static int libc_fstat(const Os *os, int fd, struct stat *st)
{
    (void)os;
    return fstat(fd, st);
}

static int libc_fstatat(const Os *os, int dir, const char *name, struct stat *st, int flags)
{
    (void)os;
    return fstatat(dir, name, st, flags);
}

static int libc_mkdirat(const Os *os, int dir, const char *name, int mode)
{
    (void)os;
    return mkdirat(dir, name, (mode_t)mode);
}

static int libc_unlinkat(const Os *os, int dir, const char *name, int flags)
{
    (void)os;
    return unlinkat(dir, name, flags);
}

static int libc_renameat(const Os *os, int dir, const char *from, int todir, const char *to)
{
    (void)os;
    return renameat(dir, from, todir, to);
}

static int libc_flock(const Os *os, int fd, int how)
{
    (void)os;
    return flock(fd, how);
}

static char *libc_mkdtemp(const Os *os, char *path)
{
    (void)os;
    return mkdtemp(path);
}

static char *libc_realpath(const Os *os, const char *path, char *to)
{
    (void)os;
    return realpath(path, to);
}

static void *libc_fdopendir(const Os *os, int fd)
{
    (void)os;
    return fdopendir(fd);
}

static const char *libc_readdir(const Os *os, void *list)
{
    struct dirent *entry;

    (void)os;
    errno = 0;
    entry = readdir(list);
    return entry == NULL ? NULL : entry->d_name;
}

static int libc_closedir(const Os *os, void *list)
{
    (void)os;
    return closedir(list);
}

static int libc_pipe(const Os *os, int fd[2])
{
    (void)os;
    return pipe2(fd, O_CLOEXEC);
}

static int libc_poll(const Os *os, int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    (void)os;
    return poll(&p, 1, ms);
}

/* A session has a process group of its own, too. */
#ifdef POSIX_SPAWN_SETSID
enum { SESSION = POSIX_SPAWN_SETSID };
#else
enum { SESSION = POSIX_SPAWN_SETPGROUP };
#endif

static int set_signals(posix_spawnattr_t *attr, bool session)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    return posix_spawnattr_setsigmask(attr, &none) != 0 ||
           posix_spawnattr_setsigdefault(attr, &all) != 0 ||
           posix_spawnattr_setpgroup(attr, 0) != 0 ||
           posix_spawnattr_setflags(attr, (short)((session ? SESSION : POSIX_SPAWN_SETPGROUP) |
                                                  POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF)) != 0;
}

/* The first terminal that the leader of a session opens controls the session. */
static int set_files(posix_spawn_file_actions_t *files, int in, int out, const char *terminal)
{
    int bad = posix_spawn_file_actions_addchdir_np(files, "/") != 0 ||
              posix_spawn_file_actions_adddup2(files, in, 0) != 0 ||
              posix_spawn_file_actions_adddup2(files, out, 1) != 0 ||
              posix_spawn_file_actions_adddup2(files, out, 2) != 0 ||
              (terminal != NULL &&
               posix_spawn_file_actions_addopen(files, 3, terminal, O_RDWR, 0) != 0);

#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
    return bad || posix_spawn_file_actions_addclosefrom_np(files, 3) != 0;
#else /* ours are closed by O_CLOEXEC; the caller's are most likely among these */
    for (int fd = 3; fd < 256 && !bad; fd++)
        bad = posix_spawn_file_actions_addclose(files, fd) != 0;
    return bad;
#endif
}

static int spawn_with(const OsSpawn *s, int in, int out, int *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int code = ENOMEM;

    if (posix_spawn_file_actions_init(&files) != 0)
        return code;
    if (posix_spawnattr_init(&attr) == 0) {
        if (set_signals(&attr, s->terminal != NULL) == 0 &&
            set_files(&files, in, out, s->terminal) == 0)
            code = posix_spawn(pid, s->path, &files, &attr, s->argv, s->env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/* What the program starts inherits the limit, as long as that happens after this call: a compiler
 * needs a millisecond to get there.  Should it be faster, the limit of wall-clock time is left. */
static void limit_cpu(int pid, int64_t seconds)
{
    struct rlimit limit = { (rlim_t)seconds, (rlim_t)seconds + 5 };

    if (seconds > 0)
        prlimit(pid, RLIMIT_CPU, &limit, NULL);
}

static int libc_spawn(const Os *os, const OsSpawn *s, int *pid)
{
    /* above 2, so that neither is overwritten when the other becomes 0, 1 or 2 */
    int in = fcntl(s->in, F_DUPFD_CLOEXEC, 3), out = fcntl(s->out, F_DUPFD_CLOEXEC, 3);
    int code = in < 0 || out < 0 ? errno : spawn_with(s, in, out, pid);

    (void)os;
    if (code == 0)
        limit_cpu(*pid, s->cpu_seconds);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    errno = code;
    return code == 0 ? 0 : -1;
}

static int libc_waitid(const Os *os, int pid, int flags, int *status)
{
    siginfo_t info = { .si_pid = 0 };

    (void)os;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | flags) != 0)
        return -1;
    if (info.si_pid == 0)
        return 0;
    *status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return 1;
}

static int libc_killpg(const Os *os, int group, int sig)
{
    (void)os;
    return killpg(group, sig);
}

static int libc_terminal(const Os *os, char name[OS_TERMINAL])
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), code;

    (void)os;
    if (fd < 0)
        return -1;
    if (grantpt(fd) == 0 && unlockpt(fd) == 0 && ptsname_r(fd, name, OS_TERMINAL) == 0)
        return fd;
    code = errno;
    close(fd);
    errno = code;
    return -1;
}

static int libc_memfd(const Os *os, const char *name)
{
    (void)os;
#ifdef MFD_ALLOW_SEALING
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
#else
    (void)name;
    errno = ENOSYS;
    return -1;
#endif
}

static int libc_seal(const Os *os, int fd)
{
    (void)os;
#ifdef F_ADD_SEALS
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
#else
    (void)fd;
    errno = ENOSYS;
    return -1;
#endif
}

/* A child of fork inherits the lock of the loader as it is: if another thread held it, the child
 * would wait for ever in its first dlopen.  So a fork waits until no thread is in the loader. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t loading_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&loading);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&loading);
}

static void register_handlers(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void os_watch_forks(void)
{
    pthread_once(&loading_once, register_handlers);
}

static void lock_loading(void)
{
    os_watch_forks();
    pthread_mutex_lock(&loading);
}

static void *libc_dlopen(const Os *os, const char *path)
{
    void *lib;

    (void)os;
    lock_loading();
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&loading);
    return lib;
}

static void *libc_dlsym(const Os *os, void *lib, const char *name)
{
    void *symbol;

    (void)os;
    lock_loading();
    symbol = dlsym(lib, name);
    pthread_mutex_unlock(&loading);
    return symbol;
}

static int libc_dlclose(const Os *os, void *lib)
{
    int code;

    (void)os;
    lock_loading();
    code = dlclose(lib);
    pthread_mutex_unlock(&loading);
    return code;
}

static const char *libc_dlerror(const Os *os)
{
    (void)os;
    return dlerror();
}

static const char *libc_getenv(const Os *os, const char *name)
{
    (void)os;
    return secure_getenv(name);
}

static int64_t libc_clock(const Os *os, int id)
{
    struct timespec t = { 0 };

    (void)os;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void libc_sleep(const Os *os, int64_t ns)
{
    struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    (void)os;
    nanosleep(&t, NULL);
}

static unsigned libc_euid(const Os *os)
{
    (void)os;
    return geteuid();
}

static int libc_cpus(const Os *os)
{
    cpu_set_t set[8]; /* 8192 CPUs: Linux knows no more */

    (void)os;
    return sched_getaffinity(0, sizeof set, set) == 0 ? CPU_COUNT_S(sizeof set, set) : 1;
}

static int libc_cpu(const Os *os)
{
    (void)os;
    return sched_getcpu();
}

/* It may not be where it must not, so it moves; then it may be anywhere again. */
static void libc_leave(const Os *os, int cpu)
{
    cpu_set_t all[8], others[8];

    (void)os;
    if (sched_getaffinity(0, sizeof all, all) != 0)
        return;
    memcpy(others, all, sizeof others);
    CPU_CLR_S((size_t)cpu, sizeof others, others);
    if (sched_setaffinity(0, sizeof others, others) == 0) /* not where it is the only one */
        sched_setaffinity(0, sizeof all, all);
}

/* Signals are for the program's own threads, but for those that a thread raises by its own fault:
 * they reach the handler that reports a crash. */
static int libc_thread_new(const Os *os, pthread_t *thread, void *(*run)(void *), void *arg)
{
    const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF };
    sigset_t others, old;
    int status;

    (void)os;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_BLOCK, &others, &old);
    status = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

static int libc_thread_join(const Os *os, pthread_t thread)
{
    (void)os;
    return pthread_join(thread, NULL);
}

static void libc_large(const Os *os, void *p, size_t n)
{
    (void)os;
#ifdef MADV_HUGEPAGE
    madvise(p, n, MADV_HUGEPAGE); /* whether it helps or not, nothing is wrong */
#else
    (void)p, (void)n;
#endif
}

const Os os_libc = {
    .alloc = libc_alloc,
    .open = libc_open,
    .read = libc_read,
    .write = libc_write,
    .size = libc_size,
    .fsync = libc_fsync,
    .close = libc_close,
    .rename = libc_rename,
    .unlink = libc_unlink,
    .openat = libc_openat,
    .fstat = libc_fstat,
    .fstatat = libc_fstatat,
    .mkdirat = libc_mkdirat,
    .unlinkat = libc_unlinkat,
    .renameat = libc_renameat,
    .flock = libc_flock,
    .mkdtemp = libc_mkdtemp,
    .realpath = libc_realpath,
    .fdopendir = libc_fdopendir,
    .readdir = libc_readdir,
    .closedir = libc_closedir,
    .pipe = libc_pipe,
    .poll = libc_poll,
    .spawn = libc_spawn,
    .waitid = libc_waitid,
    .killpg = libc_killpg,
    .terminal = libc_terminal,
    .memfd = libc_memfd,
    .seal = libc_seal,
    .dlopen = libc_dlopen,
    .dlsym = libc_dlsym,
    .dlclose = libc_dlclose,
    .dlerror = libc_dlerror,
    .getenv = libc_getenv,
    .clock = libc_clock,
    .sleep = libc_sleep,
    .euid = libc_euid,
    .cpus = libc_cpus,
    .cpu = libc_cpu,
    .leave = libc_leave,
    .large = libc_large,
    .thread_new = libc_thread_new,
    .thread_join = libc_thread_join,
};
