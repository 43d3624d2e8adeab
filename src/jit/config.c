/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The environment, read once: which compiler, which flags, which directory.  Values are the user's
 * own, but nothing of them ever meets a shell: words are split at blanks and that is all. */
#include "jit/jit_int.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_SECONDS = 120, MOST_SECONDS = 24 * 3600 };

/* A copy, as the environment may change; NULL when unset or empty. */
static const char *variable(Jit *jit, const char *name)
{
    const char *v = jit->os->getenv(jit->os, name);
    size_t n = v == NULL ? 0 : strlen(v);

    if (n > JIT_MAX_VARIABLE)
        err_throw(jit->arena.err, ST_ARG, "%s is %zu bytes long; it may have %d", name, n,
                  JIT_MAX_VARIABLE);
    return n == 0 ? NULL : arena_copy(&jit->arena, v, n + 1);
}

static Words split(Arena *a, const char *text)
{
    static const char blank[] = " \t\n\v\f\r";
    Words w = { 0 };
    int cap = 0;

    for (const char *s = text; s != NULL && *(s += strspn(s, blank)) != 0;) {
        size_t n = strcspn(s, blank);
        char *word = arena_alloc(a, n + 1);

        memcpy(word, s, n);
        w.word = arena_grow(a, w.word, w.n, &cap, sizeof *w.word);
        w.word[w.n++] = word;
        s += n;
    }
    return w;
}

static bool is_program(const Os *os, const char *path)
{
    struct stat st;

    return os->fstatat(os, AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode) &&
           (st.st_mode & 0111) != 0;
}

/* An absolute path is taken as it is, a plain name is looked for in PATH.  Folders of PATH that are
 * not absolute are left out: what runs must not depend on the working directory. */
static const char *find_program(Jit *jit, const char *name)
{
    if (name[0] == '/')
        return is_program(jit->os, name) ? name : NULL;
    if (strchr(name, '/') != NULL)
        return NULL;
    for (const char *s = jit->search; *s != 0; s += *s == ':') {
        size_t n = strcspn(s, ":");
        Text path = { .arena = &jit->arena };

        text_put(&path, s, n);
        text_char(&path, '/');
        text_str(&path, name);
        if (*s == '/' && is_program(jit->os, path.s))
            return path.s;
        s += n;
    }
    return NULL;
}

/* WEFT_CC, or the first of the usual names that is there.  In `ccache gcc` both words are programs,
 * and the identity of both is in the key. */
static void read_compiler(Jit *jit)
{
    static const char *const usual[] = { "cc", "gcc", "clang" };
    const char *value = variable(jit, "WEFT_CC");

    jit->cc = split(&jit->arena, value);
    jit->cc_given = jit->cc.n > 0;
    for (size_t i = 0; jit->cc.n == 0 && i < sizeof usual / sizeof *usual; i++)
        if (find_program(jit, usual[i]) != NULL)
            jit->cc = split(&jit->arena, usual[i]);
    if (jit->cc.n == 0)
        jit->cc = split(&jit->arena, "cc"); /* which is not there: program[0] will be NULL */
    if (jit->cc.word[0][0] != '/' && strchr(jit->cc.word[0], '/') != NULL)
        err_throw(jit->arena.err, ST_ARG,
                  "WEFT_CC is %s; give a name on PATH or a path that begins with /",
                  job_quote(&jit->arena, value, 200));
    jit->program = arena_array(&jit->arena, jit->cc.n, sizeof *jit->program);
    for (int i = 0; i < jit->cc.n; i++)
        if (jit->cc.word[i][0] != '-')
            jit->program[i] = find_program(jit, jit->cc.word[i]);
}

static void read_cache(Jit *jit)
{
    const char *cache = variable(jit, "WEFT_CACHE_DIR"), *xdg = variable(jit, "XDG_CACHE_HOME");
    Text path = { .arena = &jit->arena };

    if (cache != NULL && cache[0] != '/')
        err_throw(jit->arena.err, ST_ARG, "WEFT_CACHE_DIR is %s; give a path that begins with /",
                  job_quote(&jit->arena, cache, 200));
    if (cache != NULL)
        text_str(&path, cache);
    else if (xdg != NULL && xdg[0] == '/')
        text_f(&path, "%s/weft", xdg);
    else if (jit->home != NULL && jit->home[0] == '/')
        text_f(&path, "%s/.cache/weft", jit->home);
    while (path.n > 1 && path.s[path.n - 1] == '/') /* a link with a slash behind is followed */
        path.s[--path.n] = 0;
    jit->cache = path.s;
}

static bool read_switch(Jit *jit, const char *name)
{
    const char *value = variable(jit, name);

    if (value == NULL || strcmp(value, "0") == 0)
        return false;
    if (strcmp(value, "1") != 0)
        err_throw(jit->arena.err, ST_ARG, "%s is %s; set it to 1 or 0", name,
                  job_quote(&jit->arena, value, 200));
    return true;
}

/* Enough for the largest kernel there is a name for, several times over. */
static int64_t read_seconds(Jit *jit)
{
    const char *value = variable(jit, "WEFT_CC_SECONDS");
    int64_t n;

    if (value == NULL)
        return DEFAULT_SECONDS;
    if (!num_parse_int(value, strlen(value), &n) || n < 1 || n > MOST_SECONDS)
        err_throw(jit->arena.err, ST_ARG,
                  "WEFT_CC_SECONDS is %s; set it to a number of seconds from 1 to %d",
                  job_quote(&jit->arena, value, 200), MOST_SECONDS);
    return n;
}

void config_read(Jit *jit)
{
    const char *search = variable(jit, "PATH"), *tmp = variable(jit, "TMPDIR");

    jit->search = search == NULL ? "/usr/local/bin:/usr/bin:/bin" : search;
    jit->tmp = tmp == NULL || tmp[0] != '/' ? "/tmp" : tmp;
    jit->nown = strlen(jit->tmp) + 32;
    jit->own = arena_alloc(&jit->arena, jit->nown);
    jit->home = variable(jit, "HOME");
    jit->libs = variable(jit, "LD_LIBRARY_PATH");
    jit->disabled = read_switch(jit, "WEFT_DISABLE_JIT");
    jit->cflags = split(&jit->arena, variable(jit, "WEFT_CFLAGS"));
    jit->cpu_seconds = read_seconds(jit);
    read_compiler(jit);
    read_cache(jit);
}

bool jit_is_disabled(const Jit *jit)
{
    return jit->disabled;
}

const char *jit_compiler(const Jit *jit)
{
    return jit->program[0];
}

const char *jit_cache_dir(const Jit *jit)
{
    return jit->cache;
}
