/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * C text to the bytes of a shared library.  The text goes in by standard input and the compiler
 * runs in /, so that no name of a file or folder can get into the binary: the same source gives
 * the same bytes everywhere. */
#include "jit/jit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

static const char source_name[] = "kernel.c", library_name[] = "kernel.so";

/* The key in the library itself proves after loading that it is the one that was asked for. */
static int write_source(Job *j, int work)
{
    Text key = { .arena = &j->arena };
    Bytes part[2] = { { (const uint8_t *)j->req->source, j->req->nsource } };

    text_f(&key,
           "\n__attribute__((visibility(\"default\"))) const char " JIT_KEY_SYMBOL "[] = \"%s\";\n",
           j->key);
    part[1] = (Bytes){ (const uint8_t *)key.s, key.n };
    return job_write(j, work, source_name, 0600, part, 2, false);
}

void compile_clear(Job *j, void *unused)
{
    (void)unused;
    if (j->work != NULL)
        dir_remove(j, j->dir[j->work_in].fd, j->work, 2);
    j->work = NULL;
}

/* Its descriptor, or -1 and errno. */
static int make_work(Job *j, int dir)
{
    int work, code;

    j->work = dir_temp(j);
    j->work_in = dir;
    if (j->dir[dir].fd < 0 || j->os->mkdirat(j->os, j->dir[dir].fd, j->work, 0700) != 0) {
        j->work = NULL;
        return -1;
    }
    work = job_hold(
        j, j->os->openat(j->os, j->dir[dir].fd, j->work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
    code = work < 0 ? errno : write_source(j, work);
    if (code == 0)
        return work;
    if (work >= 0)
        job_close(j, work);
    compile_clear(j, NULL);
    errno = code;
    return -1;
}

/* A scratch folder with the source in it, also for the compiler's temporaries: in the private
 * directory, or in the cache if that is full. */
static int prepare(Job *j)
{
    int code = dir_open_own(j), work = -1;

    for (int dir = DIR_OWN; dir >= DIR_CACHE && work < 0; dir--) {
        work = make_work(j, dir);
        if (work < 0 && code == 0)
            code = errno;
    }
    if (work < 0)
        err_throw(j->err, ST_IO,
                  "no room to compile in %s: %s; set TMPDIR to a directory that can be written",
                  job_quote(&j->arena, j->jit->tmp, 300), strerror(code));
    return work;
}

static char **make_argv(Job *j, const char *output)
{
    const Jit *jit = j->jit;
    const char *const ours[] = { "-shared", "-fPIC", "-x", "c", "-", "-o", output, "-lm" };
    int nours = (int)(sizeof ours / sizeof *ours), n = 0;
    int64_t all = (int64_t)jit->cc.n + j->req->nflag + jit->cflags.n + nours + 1;
    const char **argv = arena_array(&j->arena, all, sizeof *argv);

    argv[n++] = jit->program[0];
    for (int i = 1; i < jit->cc.n; i++)
        argv[n++] = jit->cc.word[i];
    for (int i = 0; i < j->req->nflag; i++)
        argv[n++] = j->req->flag[i];
    for (int i = 0; i < jit->cflags.n; i++)
        argv[n++] = jit->cflags.word[i];
    for (int i = 0; i < nours; i++)
        argv[n++] = ours[i];
    return (char **)(uintptr_t)argv; /* posix_spawn does not write to it */
}

static char **make_env(Job *j, const char *work)
{
    const char *const var[][2] = {
        { "PATH", j->jit->search }, { "HOME", j->jit->home }, { "LD_LIBRARY_PATH", j->jit->libs },
        { "TMPDIR", work },         { "LC_ALL", "C" },        { "LANG", "C" }
    };
    int n = 0, all = (int)(sizeof var / sizeof *var);
    char **env = arena_array(&j->arena, all + 1, sizeof *env);

    for (int i = 0; i < all; i++)
        if (var[i][1] != NULL) {
            Text t = { .arena = &j->arena };

            text_f(&t, "%s=%s", var[i][0], var[i][1]);
            env[n++] = t.s;
        }
    return env;
}

/* A word as a shell takes it: as it is, or in single quotes. */
static void put_word(Text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";

    if (*word != 0 && word[strspn(word, plain)] == 0) {
        text_str(t, word);
        return;
    }
    text_char(t, '\'');
    for (; *word != 0; word++)
        if (*word == '\'')
            text_str(t, "'\\''");
        else
            text_char(t, *word);
    text_char(t, '\'');
}

/* For the user to repeat by hand in a shell, so with another place for the library.  A long command
 * is cut so that the message, of which `taken` bytes are there, has room for the source's path. */
static const char *command_text(Job *j, char **argv, const char *source, size_t taken)
{
    enum { LEAST = 40, MOST = 400 };
    Text t = { .arena = &j->arena }, out = { .arena = &j->arena }, path = { .arena = &j->arena };
    size_t room;

    put_word(&path, source);
    taken += path.n + sizeof "< ";
    room = taken < sizeof j->err->msg ? sizeof j->err->msg - taken : 0;
    for (int i = 0; argv[i] != NULL; i++) {
        put_word(&t, i > 0 && strcmp(argv[i - 1], "-o") == 0 ? library_name : argv[i]);
        text_char(&t, ' ');
    }
    room = room > MOST ? MOST : room < LEAST ? LEAST : room;
    text_f(&out, "%s< %s", job_quote(&j->arena, t.s, (int)room), path.s);
    return out.s;
}

/* The first lines, with blanks for control characters other than the ends of lines. */
static const char *first_words(Job *j, const Text *log)
{
    Text t = { .arena = &j->arena };
    size_t at = 0;

    text_put(&t, "", 0);
    for (int line = 0; line < 5 && at < log->n && t.n < 300; line++) {
        size_t n = strcspn(log->s + at, "\n");

        text_f(&t, "\n  %.*s", n < 160 ? (int)n : 160, log->s + at);
        at += n + 1;
    }
    for (size_t i = 0; i < t.n; i++)
        if ((unsigned char)t.s[i] < 32 && t.s[i] != '\n')
            t.s[i] = ' ';
    return t.s;
}

/* What a failed compile leaves for its user: KEY.c and KEY.log.  Returns the path of the source, or
 * NULL. */
static const char *keep(Job *j, const Text *log)
{
    Text c = { .arena = &j->arena }, l = { .arena = &j->arena };
    const Bytes source = { (const uint8_t *)j->req->source, j->req->nsource };
    const Bytes words = { (const uint8_t *)log->s, log->n };

    text_f(&c, "%s.c", j->key);
    text_f(&l, "%s.log", j->key);
    for (int i = 0; i < DIRS; i++) {
        int dir = j->dir[i].fd;

        if (dir < 0)
            continue;
        j->os->unlinkat(j->os, dir, c.s, 0);
        j->os->unlinkat(j->os, dir, l.s, 0);
        if (job_write(j, dir, l.s, 0600, &words, 1, false) == 0 &&
            job_write(j, dir, c.s, 0600, &source, 1, false) == 0)
            return job_path(j, i, c.s);
    }
    return NULL;
}

static _Noreturn void fail(Job *j, const Outcome *o, char **argv, const char *what)
{
    const char *kept = keep(j, &o->log);
    Text t = { .arena = &j->arena };

    text_f(&t, "the C compiler %s %s%s\n", job_quote(&j->arena, argv[0], 150), what,
           first_words(j, &o->log));
    if (kept != NULL)
        text_f(&t, "source: %s (and .log); ", kept);
    text_str(&t, "WEFT_CC and WEFT_CFLAGS choose the compiler and its flags\ncommand: ");
    text_str(&t, command_text(j, argv, kept == NULL ? source_name : kept, t.n));
    err_throw(j->err, ST_IO, "%s", t.s);
}

static void check_status(Job *j, const Outcome *o, char **argv)
{
    Text t = { .arena = &j->arena };

    if (o->status == 0)
        return;
    if (o->cpu_over)
        text_f(&t,
               "used up its %lld seconds of CPU time and was ended; "
               "set WEFT_CC_SECONDS to a larger number",
               (long long)j->jit->cpu_seconds);
    else if (o->status < 0)
        text_f(&t,
               "took more than %lld seconds and was ended; that is %d times WEFT_CC_SECONDS, which "
               "can be set to a larger number",
               (long long)(JIT_WALL * j->jit->cpu_seconds), JIT_WALL);
    else if (o->status > 128)
        text_f(&t, "was ended by signal %d", o->status - 128);
    else
        text_f(&t, "failed with exit code %d", o->status);
    fail(j, o, argv, t.s);
}

static Bytes read_library(Job *j, int work)
{
    int fd = job_hold(
        j, j->os->openat(j->os, work, library_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    Bytes lib = { 0 };

    if (fd >= 0) {
        lib = job_read(j, fd, JIT_MAX_ENTRY);
        job_close(j, fd);
    }
    return lib;
}

static Outcome run(Job *j, int work, char **argv, const char *folder)
{
    char name[OS_TERMINAL];
    int terminal = job_hold(j, j->os->terminal(j->os, name)); /* without one it goes, too */
    OsSpawn s = { .path = argv[0],
                  .argv = argv,
                  .env = make_env(j, folder),
                  .terminal = terminal < 0 ? NULL : name,
                  .cpu_seconds = j->jit->cpu_seconds };
    int ends[2];
    Outcome out;

    s.in = job_hold(j, j->os->openat(j->os, work, source_name, O_RDONLY | O_NOFOLLOW, 0));
    if (s.in < 0 || j->os->pipe(j->os, ends) != 0)
        err_throw(j->err, ST_IO, "cannot open the files of the C compiler: %s", strerror(errno));
    s.out = job_hold(j, ends[1]);
    out = process_run(j, &s, job_hold(j, ends[0]));
    job_close(j, ends[0]);
    job_close(j, s.in);
    if (terminal >= 0)
        job_close(j, terminal);
    return out;
}

Bytes compile_run(Job *j)
{
    int64_t begin = j->os->clock(j->os, CLOCK_MONOTONIC);
    int work = prepare(j);
    const char *folder = job_path(j, j->work_in, j->work);
    Text output = { .arena = &j->arena };
    char **argv;
    Outcome out;
    Bytes lib;

    text_f(&output, "%s/%s", folder, library_name);
    argv = make_argv(j, output.s);
    out = run(j, work, argv, folder);
    j->report->compile_ms = (double)(j->os->clock(j->os, CLOCK_MONOTONIC) - begin) / 1e6;
    check_status(j, &out, argv);
    lib = read_library(j, work);
    if (lib.p == NULL)
        fail(j, &out, argv, "ended well but left no library that can be read");
    job_close(j, work);
    return lib;
}
