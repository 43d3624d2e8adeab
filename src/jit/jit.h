/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From C text to a loaded kernel: a table of what is loaded, a cache on disk, the C compiler.
 *
 *     Jit *jit = jit_new(os, err);
 *     JitModule *m = jit_get(jit, err, &request, &report);
 *     void *kernel = jit_symbol(m, "kernel");
 *     ...
 *     jit_release(m);
 *     jit_free(jit);
 *
 * A Jit may be used by several threads, and on both sides of a fork.  Failures are thrown to the
 * trap of the Err that the call was given: each thread has its own.
 *
 * Environment, read once by jit_new and ignored in a setuid process:
 *     WEFT_CC           the compiler: words split at blanks, no shell (default cc, gcc, clang)
 *     WEFT_CFLAGS       flags added to every compile
 *     WEFT_CC_SECONDS   CPU time that each process of a compile may take (default 120)
 *     WEFT_CACHE_DIR    the cache (default $XDG_CACHE_HOME/weft, $HOME/.cache/weft)
 *     WEFT_DISABLE_JIT  1: jit_get always fails
 *     PATH, HOME, TMPDIR, LD_LIBRARY_PATH are handed on to the compiler; nothing else is. */
#ifndef WEFT_JIT_H
#define WEFT_JIT_H

#include "base/base.h"

typedef struct Jit Jit;
typedef struct JitModule JitModule; /* a loaded kernel */

enum { JIT_KEY = 64, JIT_NOTE = 400 };

/* config.c */
bool jit_is_disabled(const Jit *);
const char *jit_compiler(const Jit *);  /* its path, or NULL */
const char *jit_cache_dir(const Jit *); /* or NULL: there is none */

/* jit.c.  jit_new throws ST_ARG for a variable that makes no sense; a missing compiler is no error,
 * as what is in the cache can still be loaded. */
Jit *jit_new(const Os *, Err *);
/* Compiles of several Jits that another thread can stop: what is under way ends soon, with all
 * files removed, and nothing is compiled from then on. */
typedef struct JitStop {
    _Atomic int asked, busy; /* busy: calls that are looking for a module */
} JitStop;
void jit_set_stop(Jit *, JitStop *); /* before the first jit_get */
bool jit_stop(JitStop *);            /* whether a call is still busy */
void jit_free(Jit *); /* after the release of all modules; NULL is allowed */

typedef struct JitRequest {
    const char *source; /* C text; weft_jit_key is a name it may not define */
    size_t nsource;
    const char *const *flag; /* "-O2", "-mavx2" */
    int nflag;
    const char *identity;      /* all else that the binary depends on: CPU features, versions */
    const char *const *symbol; /* that the module has to define */
    int nsymbol;
} JitRequest;

typedef enum JitHow { JIT_FAILED, JIT_IN_MEMORY, JIT_ON_DISK, JIT_COMPILED } JitHow;

typedef struct JitReport { /* what jit_get did, also when it throws */
    JitHow how;
    char key[JIT_KEY + 1]; /* "" before it is known */
    double ms, compile_ms;
    char note[JIT_NOTE]; /* why it was not found, or not kept; "" when there is nothing to say */
} JitReport;

/* Throws ST_IO, with the remedy, unless kernels that are not in the cache can be compiled. */
void jit_need_compiler(Jit *, Err *);

/* The module of the request, from memory, from disk or from the compiler, in this order.  Throws
 * ST_IO when there is no compiler, when it fails, or takes too long: the message says what to do.
 * `report` may be NULL. */
JitModule *jit_get(Jit *, Err *, const JitRequest *, JitReport *report);
void *jit_symbol(const JitModule *, const char *name); /* NULL when it does not define it */
void jit_release(JitModule *);                         /* once for each jit_get */

/* jit.c: what another compiler than C's has made, as the driver of a device has: bytes that the
 * caller loads.  They are entries of the same cache. */
typedef struct JitBlob {
    const char *source, *identity; /* what is compiled: a text, and all else about it */
    const char *maker;             /* what compiles it: names and versions */
} JitBlob;
/* The bytes in `to`, whose Err is this one, or false: there are none, or they are damaged.  Throws
 * ST_NOMEM alone. */
bool jit_find(Jit *, Err *, const JitBlob *, Arena *to, Bytes *out, JitReport *);
/* Or does not keep it: report->note says why. */
void jit_keep(Jit *, Err *, const JitBlob *, Bytes, JitReport *);

/* "compiled in 213 ms, key 5f0c..." in one line. */
void jit_explain(const JitReport *, char *out, size_t size);
/* True once, if the cache directory cannot be used: why, and the remedy. */
bool jit_warning(Jit *, char out[JIT_NOTE]);

/* cache.c: for `weft cache`. */
typedef struct JitEntry {
    char key[JIT_KEY + 1];
    int64_t bytes, age; /* age in seconds */
} JitEntry;

JitEntry *jit_cache_list(Jit *, Arena *, int *n); /* ordered by key; n = 0 when there is no cache */
/* NULL when the entry is whole, else what is wrong with it. */
const char *jit_cache_check(Jit *, Err *, const JitEntry *);
int jit_cache_clear(Jit *, Err *); /* how many entries were removed; throws ST_IO */

#endif
