/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A request's way to its module: the table of what is loaded, the cache on disk, the compiler.  The
 * table has a mutex of its own, so a kernel that is there is never waited for; everything else is
 * done by one thread at a time, which also means one compiler at a time. */
#include "jit/jit_int.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void config_trapped(Jit *jit, Err *err)
{
    jmp_buf trap, *outer = err->trap;

    err->trap = &trap;
    if (setjmp(trap) == 0)
        config_read(jit);
    err->trap = outer;
}

Jit *jit_new(const Os *os, Err *err)
{
    Jit *jit = os->alloc(os, NULL, sizeof *jit);

    if (jit == NULL)
        err_throw(err, ST_NOMEM, "out of memory");
    memset(jit, 0, sizeof *jit);
    jit->os = os;
    arena_init(&jit->arena, os, err);
    config_trapped(jit, err);
    if (err->code != ST_OK) {
        arena_free(&jit->arena);
        os->alloc(os, jit, 0);
        err_jump(err);
    }
    job_enter(jit);
    return jit;
}

void jit_set_stop(Jit *jit, JitStop *stop)
{
    jit->stop = stop;
}

bool jit_stop(JitStop *stop)
{
    stop->asked = 1;
    return stop->busy > 0;
}

static JitModule *find_loaded(Job *j)
{
    size_t n = j->has_compiler ? JIT_KEY : JIT_KEY / 2; /* of any compiler, if there is none */
    JitModule *m;

    pthread_mutex_lock(&j->jit->table);
    for (m = j->jit->modules; m != NULL && strncmp(m->key, j->key, n) != 0;)
        m = m->next;
    if (m != NULL) {
        m->refs++;
        memcpy(j->key, m->key, sizeof j->key);
        j->report->how = JIT_IN_MEMORY;
    }
    pthread_mutex_unlock(&j->jit->table);
    return m;
}

static void keep_loaded(Jit *jit, JitModule *m)
{
    pthread_mutex_lock(&jit->table);
    atomic_store(&m->next, jit->modules);
    atomic_store(&jit->modules, m);
    pthread_mutex_unlock(&jit->table);
}

/* Also a good entry may not load: a library that it needs has changed, memory is short.  It
 * stays. */
static bool load_entry(Job *j, int dir)
{
    Bytes lib;
    const char *why;

    if (!entry_find(j, dir, &lib))
        return false;
    why = load_module(j, lib);
    if (why != NULL)
        job_note(j, "cache entry does not load: %s", why);
    return why == NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Without a compiler the kernel of any compiler will do. */
static bool load_any(Job *j, int dir)
{
    char program[JIT_KEY / 2 + 1];
    const char **list;
    int n;

    memcpy(program, j->key, JIT_KEY / 2);
    program[JIT_KEY / 2] = 0;
    list = dir_list(j, dir, &n);
    array_sort(list, n, sizeof *list, by_name);
    for (int i = 0; i < n; i++) {
        const char *suffix = dir_suffix(list[i]);

        if (suffix == NULL || *suffix != 0 || strncmp(list[i], program, JIT_KEY / 2) != 0)
            continue;
        memcpy(j->key, list[i], JIT_KEY);
        if (load_entry(j, dir))
            return true;
    }
    return false;
}

static bool load_cached(Job *j)
{
    for (int i = 0; i < DIRS; i++)
        if (j->dir[i].fd >= 0 &&
            (j->has_compiler ? load_entry(j, j->dir[i].fd) : load_any(j, j->dir[i].fd))) {
            j->report->how = JIT_ON_DISK;
            return true;
        }
    return false;
}

/* Why there is no compiler. */
static const char *missing(const Jit *jit, Arena *a)
{
    const char *given = jit->cc_given ? job_quote(a, jit->cc.word[0], 200) : NULL;
    Text t = { .arena = a };

    if (given == NULL)
        text_str(&t, "none of cc, gcc, clang is a program on PATH");
    else
        text_f(&t, "WEFT_CC is %s, which is not a program%s", given,
               given[0] == '/' ? "" : " on PATH");
    if (given == NULL || given[0] != '/')
        text_f(&t, " (%s)", job_quote(a, jit->search, 200));
    return t.s;
}

#define INSTALL "install gcc or clang, or set WEFT_CC to the path of a compiler"
#define DISABLED "WEFT_DISABLE_JIT is 1, so no kernel is compiled; unset it"

static _Noreturn void no_compiler(Job *j)
{
    err_throw(j->err, ST_IO, "no C compiler: %s, and the kernel is not in the cache; " INSTALL,
              missing(j->jit, &j->arena));
}

static void need_compiler(Job *j, void *unused)
{
    (void)unused;
    if (j->jit->disabled)
        err_throw(j->err, ST_IO, DISABLED);
    if (!key_has_compiler(j))
        err_throw(j->err, ST_IO, "no C compiler: %s; " INSTALL, missing(j->jit, &j->arena));
}

void jit_need_compiler(Jit *jit, Err *err)
{
    JitReport report = { 0 };
    Job j;

    job_enter(jit);
    job_init(&j, jit, err, &report);
    job_run(&j, need_compiler, NULL);
    job_end(&j);
    if (err->code != ST_OK)
        err_jump(err);
}

/* Into the cache, or at least into the private directory. */
static void publish(Job *j, Bytes lib)
{
    for (int i = 0; i < DIRS; i++) {
        int code;

        if (j->dir[i].fd < 0)
            continue;
        code = entry_publish(j, j->dir[i].fd, lib);
        if (code == 0)
            return;
        job_note(j, "not kept in %s: %s", j->dir[i].path, strerror(code));
    }
}

/* A library that does not load is never published. */
static void compile(Job *j)
{
    Bytes lib = compile_run(j);
    const char *why = load_module(j, lib);

    if (why != NULL)
        err_throw(j->err, ST_IO, "the output of the C compiler %s cannot be used: %s; set "
                                 "WEFT_CC to another compiler",
                  job_quote(&j->arena, j->jit->program[0], 300), why);
    publish(j, lib);
    j->report->how = JIT_COMPILED;
}

static void build(Job *j)
{
    dir_open_cache(j);
    dir_find_own(j);
    if (load_cached(j))
        return;
    if (!j->has_compiler)
        no_compiler(j);
    job_check_stop(j);
    lock_take(j);
    if (load_cached(j)) /* who held the lock before has made it */
        return;
    dir_sweep(j);
    compile(j);
}

static void get(Job *j, void *unused)
{
    (void)unused;
    if (j->jit->disabled)
        err_throw(j->err, ST_IO, DISABLED);
    key_make(j);
    j->module = find_loaded(j);
    if (j->module != NULL)
        return;
    pthread_mutex_lock(&j->jit->building);
    j->building = true;
    j->module = find_loaded(j); /* another thread may have made it */
    if (j->module != NULL)
        return;
    build(j);
    keep_loaded(j->jit, j->module);
}

JitModule *jit_get(Jit *jit, Err *err, const JitRequest *req, JitReport *report)
{
    int64_t begin = jit->os->clock(jit->os, CLOCK_MONOTONIC);
    JitReport local;
    JitModule *m = NULL;
    Job j;

    if (report == NULL)
        report = &local;
    memset(report, 0, sizeof *report);
    job_enter(jit);
    if (jit->stop != NULL)
        jit->stop->busy++; /* before what is asked is looked at */
    job_init(&j, jit, err, report);
    j.req = req;
    job_run(&j, get, NULL);
    if (err->code == ST_OK) {
        m = j.module;
        j.module = NULL;
    }
    memcpy(report->key, j.key, sizeof report->key);
    job_end(&j);
    if (j.building)
        pthread_mutex_unlock(&jit->building);
    if (jit->stop != NULL)
        jit->stop->busy--;
    report->ms = (double)(jit->os->clock(jit->os, CLOCK_MONOTONIC) - begin) / 1e6;
    if (m == NULL)
        err_jump(err);
    return m;
}

typedef struct Stored { /* a blob on its way to or from the cache */
    const JitBlob *blob;
    Arena *to;
    Bytes bytes;
    bool found;
} Stored;

static void find_stored(Job *j, void *to)
{
    Stored *s = to;
    Bytes b;

    key_of_blob(j, s->blob);
    dir_open_cache(j);
    dir_find_own(j);
    for (int i = 0; i < DIRS && !s->found; i++)
        s->found = j->dir[i].fd >= 0 && entry_find(j, j->dir[i].fd, &b);
    if (s->found)
        s->bytes = (Bytes){ arena_copy(s->to, b.p, b.n + 1), b.n };
}

static void keep_stored(Job *j, void *from)
{
    Stored *s = from;

    key_of_blob(j, s->blob);
    dir_open_cache(j);
    dir_sweep(j);
    publish(j, s->bytes);
}

/* A cache that cannot be used is no failure. */
static void run_stored(Jit *jit, Err *err, JobStep *step, Stored *s, JitReport *report)
{
    jmp_buf *trap = err->trap;
    Job j;

    memset(report, 0, sizeof *report);
    job_enter(jit);
    pthread_mutex_lock(&jit->building);
    job_init(&j, jit, err, report);
    job_run(&j, step, s);
    memcpy(report->key, j.key, sizeof report->key);
    job_end(&j);
    pthread_mutex_unlock(&jit->building);
    if (err->code == ST_NOMEM)
        err_jump(err);
    s->found = s->found && err->code == ST_OK;
    err_clear(err);
    err->trap = trap;
}

bool jit_find(Jit *jit, Err *err, const JitBlob *blob, Arena *to, Bytes *out, JitReport *report)
{
    Stored s = { .blob = blob, .to = to };

    run_stored(jit, err, find_stored, &s, report);
    report->how = s.found ? JIT_ON_DISK : JIT_FAILED;
    *out = s.bytes;
    return s.found;
}

void jit_keep(Jit *jit, Err *err, const JitBlob *blob, Bytes bytes, JitReport *report)
{
    Stored s = { .blob = blob, .bytes = bytes };

    run_stored(jit, err, keep_stored, &s, report);
    report->how = JIT_COMPILED;
}

void *jit_symbol(const JitModule *m, const char *name)
{
    return m->jit->os->dlsym(m->jit->os, m->lib, name);
}

void jit_release(JitModule *m)
{
    Jit *jit = m->jit;
    JitModule *_Atomic *at = &jit->modules;
    bool last;

    job_enter(jit);
    pthread_mutex_lock(&jit->table);
    last = --m->refs == 0;
    while (last && *at != m)
        at = &(*at)->next;
    if (last)
        atomic_store(at, m->next);
    pthread_mutex_unlock(&jit->table);
    if (last)
        load_free(jit->os, m);
}

static void drop_own(Jit *jit)
{
    JitReport report = { 0 };
    Err quiet = { .code = ST_OK };
    Job j;

    job_init(&j, jit, &quiet, &report);
    job_run(&j, dir_drop_own, NULL);
    job_end(&j);
}

void jit_free(Jit *jit)
{
    if (jit == NULL)
        return;
    job_enter(jit);
    drop_own(jit);
    pthread_mutex_destroy(&jit->building);
    pthread_mutex_destroy(&jit->table);
    arena_free(&jit->arena);
    jit->os->alloc(jit->os, jit, 0);
}

bool jit_warning(Jit *jit, char out[JIT_NOTE])
{
    job_enter(jit);
    pthread_mutex_lock(&jit->table);
    memcpy(out, jit->warning, JIT_NOTE);
    jit->warning[0] = 0;
    pthread_mutex_unlock(&jit->table);
    return out[0] != 0;
}

void jit_explain(const JitReport *r, char *out, size_t size)
{
    static const char *const how[] = { "failed", "found in memory", "found in the cache",
                                       "compiled" };
    const char *sep = r->note[0] == 0 ? "" : "; ";

    snprintf(out, size, "%s in %.3g ms, key %s%s%s", how[r->how], r->ms, r->key, sep, r->note);
}
