/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What every other folder stands on: the table of OS calls, the error record, arenas, interned
 * strings, growing text, hashing, checked integers and number text.  Knows libc and no more. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* os.c: every call that leaves the process goes through this table, so that a test can make any of
 * them fail.  Functions return what their POSIX namesake returns and leave errno set. */
typedef struct Os Os;
struct stat;

/* A program to run: in the folder / and a process group of its own, without any other descriptor,
 * its signals as they are by default. */
/* Bytes.  Arrays of kernels and plans begin at one, and no two threads write to the same. */
enum { CACHE_LINE = 64 };

enum { OS_TERMINAL = 64 }; /* bytes of the name of a terminal */
typedef struct OsSpawn {
    const char *path;
    char *const *argv, *const *env; /* each ends in NULL */
    int in, out;                    /* its standard input; its standard output and error */
    const char *terminal;           /* that controls it: see Os.terminal; or NULL */
    int64_t cpu_seconds;            /* CPU time of each process of the group; then SIGXCPU */
} OsSpawn;

struct Os {
    void *(*alloc)(const Os *, void *old, size_t size); /* realloc; size 0 frees, returns NULL */
    int (*open)(const Os *, const char *path, int flags, int mode);
    ptrdiff_t (*read)(const Os *, int fd, void *to, size_t n);
    ptrdiff_t (*write)(const Os *, int fd, const void *from, size_t n);
    int (*size)(const Os *, int fd, int64_t *bytes); /* *bytes = -1: a pipe or device */
    int (*fsync)(const Os *, int fd);
    int (*close)(const Os *, int fd);
    int (*rename)(const Os *, const char *from, const char *to);
    int (*unlink)(const Os *, const char *path);

    /* folders, by descriptor */
    int (*openat)(const Os *, int dir, const char *name, int flags, int mode);
    int (*fstat)(const Os *, int fd, struct stat *);
    int (*fstatat)(const Os *, int dir, const char *name, struct stat *, int flags);
    int (*mkdirat)(const Os *, int dir, const char *name, int mode);
    int (*unlinkat)(const Os *, int dir, const char *name, int flags);
    int (*renameat)(const Os *, int dir, const char *from, int todir, const char *to);
    int (*flock)(const Os *, int fd, int how);
    char *(*mkdtemp)(const Os *, char *path);
    char *(*realpath)(const Os *, const char *path, char *to); /* to: PATH_MAX bytes */
    void *(*fdopendir)(const Os *, int fd);                    /* takes the descriptor over */
    const char *(*readdir)(const Os *, void *list);            /* NULL: errno is 0 at the end */
    int (*closedir)(const Os *, void *list);

    /* processes */
    int (*pipe)(const Os *, int fd[2]);
    int (*poll)(const Os *, int fd, int ms); /* 1: there is something to read, or the end */
    int (*spawn)(const Os *, const OsSpawn *, int *pid);
    /* 1: ended, with an exit code or 128 + signal; 0: runs (WNOHANG) */
    int (*waitid)(const Os *, int pid, int flags, int *status);
    int (*killpg)(const Os *, int group, int sig);
    /* A new terminal.  When its descriptor is closed, also because its holder was killed, the
     * system sends SIGHUP to the programs that it controls: no compiler outlives its caller. */
    int (*terminal)(const Os *, char name[OS_TERMINAL]);

    /* shared libraries, and memory that dlopen takes for a file */
    int (*memfd)(const Os *, const char *name);
    int (*seal)(const Os *, int fd); /* nobody can change the content from now on */
    void *(*dlopen)(const Os *, const char *path);
    void *(*dlsym)(const Os *, void *lib, const char *name);
    int (*dlclose)(const Os *, void *lib);
    const char *(*dlerror)(const Os *);

    /* what cannot fail */
    const char *(*getenv)(const Os *, const char *name); /* NULL for all in a setuid process */
    int64_t (*clock)(const Os *, int id);                /* ns of CLOCK_MONOTONIC, CLOCK_REALTIME */
    void (*sleep)(const Os *, int64_t ns);
    unsigned (*euid)(const Os *);
    int (*cpus)(const Os *); /* that this process may run on; at least 1 */
    int (*cpu)(const Os *);  /* that this thread is on */
    void (*leave)(const Os *, int cpu); /* a hint: this thread goes to another one */
    void (*large)(const Os *, void *p, size_t n); /* a hint: large pages for these whole ones */

    /* threads; 0 or an errno, as their POSIX namesakes */
    int (*thread_new)(const Os *, pthread_t *, void *(*run)(void *), void *arg); /* no signals */
    int (*thread_join)(const Os *, pthread_t);
};
extern const Os os_libc;
/* From now on a fork waits until no thread is in dlopen of os_libc.  Before a fork, handlers run in
 * the reverse order of their registration: a caller whose own handler takes a lock around calls of
 * the library registers it after this, so that both take the two locks in the same order. */
void os_watch_forks(void);

/* err.c: the error record.  The first failure is thrown to the trap that the entry point (api/)
 * has set, so no code in between tests for it.  What a throw may pass over lives in an arena;
 * whoever holds a descriptor closes it before it throws.  See docs/architecture.md, "Errors". */
/* The same values as weft_status in weft.h. */
typedef enum Status {
    ST_OK,
    ST_ARG,   /* a call that makes no sense: NULL, an unknown name, a wrong type */
    ST_PARSE, /* text or file that does not read */
    ST_CHECK, /* a program that reads but has no meaning */
    ST_BIND,  /* sizes, shapes or structure that do not fit the program */
    ST_RUN,   /* data that a run cannot go on with: index out of range, integer overflow */
    ST_IO,    /* the system refused a file */
    ST_LIMIT, /* larger than a stated limit */
    ST_NOMEM, /* out of memory */
    ST_COUNT
} Status;

typedef struct Err {
    Status code;
    int line, col;  /* 1-based; 0 when there is no place */
    char file[128]; /* "" when there is no file */
    char msg[1024]; /* what is wrong, and the remedy */
    char src[200];  /* the source line of the place, or "" */
    jmp_buf *trap;
} Err;

void err_clear(Err *); /* forgets the failure, keeps the trap */
void err_set(Err *, Status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void err_setv(Err *, Status, const char *fmt, va_list) __attribute__((format(printf, 3, 0)));
void err_place(Err *, const char *file, int line, int col, const char *src, size_t nsrc);
_Noreturn void err_jump(Err *); /* to the trap, with what err_set recorded */
_Noreturn void err_throw(Err *, Status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* arena.c: memory that dies together.  Never returns NULL: it throws ST_NOMEM. */
typedef struct Chunk Chunk;
typedef struct Arena {
    const Os *os;
    Err *err;
    Chunk *chunk;
    size_t used, total; /* in the newest chunk; in all of them */
} Arena;

void arena_init(Arena *, const Os *, Err *);
void arena_free(Arena *);                           /* leaves an empty arena */
void *arena_alloc(Arena *, size_t size);            /* zeroed, aligned for any type */
void *arena_array(Arena *, int64_t n, size_t elem); /* n * elem, checked */
void *arena_raw(Arena *, int64_t n, size_t elem);   /* the same, with any content */
void *arena_copy(Arena *, const void *from, size_t size);
/* Room for element n of an array of n elements: the old pointer or a larger copy. */
void *arena_grow(Arena *, void *old, int n, int *cap, size_t elem);
/* qsort, which has no meaning for n = 0 without an array. */
void array_sort(void *, int64_t n, size_t elem, int (*order)(const void *, const void *));

/* str.c: interned names (equal names are the same pointer) and growing text. */
typedef struct Names {
    Arena *arena;
    const char **slot;
    uint32_t n, cap; /* cap is a power of two */
} Names;

const char *name_intern(Names *, const char *s, size_t n);

typedef struct Text {
    Arena *arena;
    char *s; /* always ends in NUL once something was put */
    size_t n, cap;
} Text;

void text_put(Text *, const char *s, size_t n);
void text_str(Text *, const char *s);
void text_char(Text *, char c);
void text_f(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* hash.c */
uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);
uint64_t hash_int(uint64_t seed, uint64_t v);
uint64_t hash_place(uint64_t h, uint64_t n); /* below n, in proportion to h; for n > 0 */

/* sha.c: SHA-256, for what must not collide. */
enum { SHA_SIZE = 32 };
typedef struct Sha {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    uint8_t block[64];
} Sha;

void sha_init(Sha *);
void sha_add(Sha *, const void *p, size_t n);
void sha_end(Sha *, uint8_t out[SHA_SIZE]);

/* int.h part: checked 64-bit arithmetic; true when the result does not fit. */
static inline bool int_add(int64_t a, int64_t b, int64_t *r)
{
    return __builtin_add_overflow(a, b, r);
}
static inline bool int_sub(int64_t a, int64_t b, int64_t *r)
{
    return __builtin_sub_overflow(a, b, r);
}
static inline bool int_mul(int64_t a, int64_t b, int64_t *r)
{
    return __builtin_mul_overflow(a, b, r);
}
bool int_div(int64_t a, int64_t b, int64_t *r); /* floor; also true for b == 0 */
bool int_mod(int64_t a, int64_t b, int64_t *r); /* sign of b; also true for b == 0 */

/* num.c: numbers as text, the same in every locale, and 16-bit floats. */
bool num_parse(const char *s, size_t n, double *out);      /* decimal, [+-]inf, nan: all of s */
bool num_parse_int(const char *s, size_t n, int64_t *out); /* [+-]digits: all of s */
enum { NUM_TEXT = 32 };
int num_print(char out[NUM_TEXT], double v); /* shortest that reads back the same; its length */
float num_f16(uint16_t h);
float num_bf16(uint16_t h);
uint16_t num_to_f16(double v); /* one rounding, to nearest even */
uint16_t num_to_bf16(double v);

/* file.c: whole files. */
typedef struct Bytes {
    const uint8_t *p;
    size_t n;
} Bytes;

/* Reads all of `path` ("-" is standard input); at most `most` bytes, else ST_LIMIT. */
Bytes file_read(Arena *, const char *path, int64_t most);
int file_put(const Os *, int fd, const void *p, size_t n); /* all of it; 0 or an errno */
/* Writes a temporary beside `path` and renames it ("-" is standard output): all or nothing. */
void file_write(Arena *, const char *path, const void *p, size_t n);

#endif
