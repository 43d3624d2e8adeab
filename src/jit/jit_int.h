/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of jit/ share.  Everything that one call holds (descriptors, memory, the compiler,
 * the module it makes) hangs on its Job, and job_end lets go of it: code in between may throw. */
#ifndef WEFT_JIT_INT_H
#define WEFT_JIT_INT_H

#include "jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    JIT_FORMAT = 1, /* of entries and keys: another number never finds old entries */
    JIT_MAX_ENTRY = 256 << 20,
    JIT_MAX_VARIABLE = 64 << 10,
    JIT_MAX_LOG = 64 << 10, /* of what is kept of the compiler's words */
    JIT_MAX_HELD = 16,      /* descriptors at a time */
};
#define JIT_SECOND ((int64_t)1000000000)
#define JIT_KEY_SYMBOL "weft_jit_key" /* every module defines its key */

typedef struct Words {
    const char **word;
    int n;
} Words;

struct JitModule {
    Jit *jit;
    void *lib;
    int refs;
    char key[JIT_KEY + 1];
    JitModule *_Atomic next;
};

struct Jit {
    const Os *os;
    Arena arena; /* of the texts below; jit_new alone allocates in it */
    bool disabled;
    Words cc, cflags;
    bool cc_given;                 /* by WEFT_CC */
    const char **program;          /* by word of cc: the file that it names, or NULL */
    const char *search;            /* PATH */
    const char *home, *libs, *tmp; /* HOME and LD_LIBRARY_PATH, or NULL; TMPDIR */
    const char *cache;             /* or NULL */
    int64_t cpu_seconds;           /* of each process of a compile */
    JitStop *stop;                 /* or NULL */

    _Atomic int pid;          /* the process that the rest belongs to: see job_enter */
    pthread_mutex_t building; /* one call at a time looks at the disk or compiles */
    pthread_mutex_t table; /* guards modules and warning; held for moments, also inside building */
    JitModule *_Atomic modules;
    char warning[JIT_NOTE];
    bool warned, swept;
    char *own; /* path of this process's private directory, "" until it is needed */
    size_t nown;
};

typedef struct Dir {
    int fd; /* -1 when it cannot be used */
    const char *path;
} Dir;

enum { DIR_CACHE, DIR_OWN, DIRS };

typedef struct Job {
    Jit *jit;
    const Os *os;
    Err *err;
    Arena arena;
    const JitRequest *req;
    JitReport *report;
    bool building; /* holds the mutex of that name */
    bool has_compiler;
    uint8_t program[SHA_SIZE], compiler[SHA_SIZE]; /* the two halves of the key: see key.c */
    char key[JIT_KEY + 1];
    Dir dir[DIRS];
    int held[JIT_MAX_HELD]; /* descriptors, -1 where there is none */
    void *list;             /* of fdopendir */
    int temps;              /* names given out by dir_temp */
    int lock;               /* -1, or the descriptor of the file lock_name */
    char lock_name[JIT_KEY + 8];
    const char *work; /* the compiler's scratch folder in dir[work_in], or NULL */
    int work_in;
    int pid; /* of the compiler while it runs, else 0 */
    JitModule *module;
} Job;

/* job.c */
typedef void JobStep(Job *, void *to);
void job_enter(Jit *); /* first of all in each way into a Jit */
void job_init(Job *, Jit *, Err *, JitReport *);
void job_run(Job *, JobStep *, void *to); /* returns also when the step throws: see j->err */
void job_end(Job *);
void job_check_stop(Job *);   /* throws when another thread has asked for it */
int job_hold(Job *, int fd);  /* fd; it is closed when the job ends, if not before */
int job_close(Job *, int fd); /* as close, but keeps errno when all is well */
void job_note(Job *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* At most `most` bytes of a text from outside, with blanks for its control characters. */
const char *job_quote(Arena *, const char *s, int most);
const char *job_path(Job *, int dir, const char *name);
/* All of an open file of at most `most` bytes; p is NULL when errno says why. */
Bytes job_read(Job *, int fd, int64_t most);
/* Makes a new file of the parts, one after the other; 0 or an errno. */
int job_write(Job *, int dir, const char *name, int mode, const Bytes *part, int n, bool sync);

/* config.c */
void config_read(Jit *);

/* key.c */
void key_make(Job *);
bool key_has_compiler(Job *);
void key_of_blob(Job *, const JitBlob *);
void key_name(char out[JIT_KEY + 1], const uint8_t *program, const uint8_t *compiler);

/* dir.c */
void dir_open_cache(Job *);
bool dir_find_own(Job *); /* opens the private directory if there is one */
int dir_open_own(Job *);  /* makes it if there is none; 0 or an errno */
const char **dir_list(Job *, int fd, int *n);
/* What follows the key in a name of ours: "" for an entry, ".lock", ...; NULL: not ours. */
const char *dir_suffix(const char *name);
const char *dir_temp(Job *); /* a name that nobody has */
void dir_remove(Job *, int at, const char *name, int depth);
void dir_leave_own(Job *); /* it goes when it is empty: a process may end without jit_free */
void dir_empty(Job *, int fd); /* removes all but what was kept for the user */
JobStep dir_drop_own;      /* all that is in it, but for what was kept for the user */

/* sweep.c */
void dir_sweep(Job *);

/* entry.c */
/* The library in the entry, verified.  Else *why, and ENOENT, another errno, or EBADMSG when
 * what is there cannot be trusted. */
int entry_read(Job *, int dir, const char *key, Bytes *lib, const char **why);
bool entry_find(Job *, int dir, Bytes *lib);  /* of j->key; a damaged one is removed */
int entry_publish(Job *, int dir, Bytes lib); /* 0 or an errno */

/* lock.c */
void lock_take(Job *); /* or goes on without: j->lock is -1 */
void lock_drop(Job *);

/* compile.c */
Bytes compile_run(Job *); /* throws when it fails */
JobStep compile_clear;    /* removes its scratch folder */

/* process.c */
typedef struct Outcome { /* of the compiler */
    int status;          /* exit code, 128 + signal, or -1 when the wall-clock time was over */
    bool cpu_over;       /* a process of it had used up its CPU time */
    Text log;            /* what it said, cut */
} Outcome;

enum { JIT_WALL = 10 }; /* the limit of wall-clock time, in limits of CPU time */
Outcome process_run(Job *, const OsSpawn *, int said); /* said: the end of its pipe that we read */
void process_stop(Job *);

/* load.c */
const char *load_module(Job *, Bytes lib); /* into j->module; NULL, or what is wrong */
void load_free(const Os *, JitModule *);   /* NULL is allowed */

#endif
