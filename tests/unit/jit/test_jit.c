/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/jit: the way of a request, the key, the environment, what the compiler process sees. */
#include "unit/jit_bed.h"

#include <signal.h>
#include <utime.h>

TEST(a_kernel_is_compiled_once_then_found_in_memory_then_on_disk)
{
    JitModule *m, *same;
    Bed b;

    bed_init(&b, "order", "");
    CHECK_EQ(bed_get(&b, 7, &m), ST_OK);
    CHECK_EQ(b.report.how, JIT_COMPILED);
    CHECK_STR(b.report.note, "");
    CHECK(b.report.compile_ms > 0 && b.report.compile_ms <= b.report.ms);
    CHECK_EQ(bed_get(&b, 7, &same), ST_OK);
    CHECK(same == m && b.report.how == JIT_IN_MEMORY);
    CHECK_EQ(bed_answer(m), 7);
    jit_release(m);
    CHECK_EQ(bed_answer(same), 7); /* one of two users has left */
    jit_release(same);
    bed_use(&b, 7, JIT_ON_DISK);
    CHECK_EQ(bed_again(&b), ST_OK);
    bed_use(&b, 7, JIT_ON_DISK);
    CHECK_EQ(bed_whole(&b, NULL), 1);
    CHECK_EQ(bed_count(bed_cache(&b), ""), 1); /* neither locks nor temporaries */
    bed_free(&b);
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 0);
}

TEST(a_hit_starts_no_process)
{
    Bed b;

    bed_init(&b, "no-process", "");
    bed_use(&b, 1, JIT_COMPILED);
    inject_at(&b.inject, INJECT_SPAWN, 1, true, EIO);
    bed_use(&b, 1, JIT_ON_DISK);
    CHECK_EQ(b.inject.failed, 0);
    CHECK_EQ(b.inject.calls[INJECT_MKDTEMP], 1); /* of the compile */
    bed_free(&b);
}

TEST(many_kernels_live_side_by_side)
{
    enum { N = 50 };
    JitModule *m[N];
    Bed b;

    bed_init(&b, "many", "");
    for (int round = 0; round < 2; round++) { /* from the compiler, and from disk */
        for (int i = 0; i < N; i++)
            CHECK_EQ(bed_get(&b, 1000 + i, &m[i]), ST_OK);
        for (int i = 0; i < N; i++)
            CHECK_EQ(bed_answer(m[i]), 1000 + i);
        for (int i = 0; i < N; i += 2)
            jit_release(m[i]);
        for (int i = 1; i < N; i += 2) {
            CHECK_EQ(bed_answer(m[i]), 1000 + i);
            jit_release(m[i]);
        }
    }
    bed_free(&b);
}

TEST(the_real_compiler_makes_a_kernel)
{
    JitModule *m;
    Bed b;

    bed_real(&b, "real");
    CHECK_EQ(bed_get(&b, 11, &m), ST_OK);
    CHECK_EQ(bed_answer(m), 11);
    CHECK(jit_symbol(m, "question") == NULL);
    jit_release(m);
    bed_use(&b, 11, JIT_ON_DISK);
    bed_free(&b);
}

TEST(a_symbol_that_is_not_there_is_an_error_and_nothing_is_published)
{
    static const char *const symbols[] = { "answer", "question" };
    JitRequest r = { .source = "/* value 00000001 */",
                     .nsource = 20,
                     .identity = "",
                     .symbol = symbols,
                     .nsymbol = 2 };
    Bed b;

    bed_init(&b, "symbol", "");
    CHECK_EQ(CATCH(&b.err, jit_get(b.jit, &b.err, &r, NULL)), ST_IO);
    CHECK_HAS(b.err.msg, "does not define question");
    CHECK_EQ(bed_count(bed_cache(&b), ""), 0);
    bed_free(&b);
}

static const char *key_of(Bed *b, const JitRequest *r)
{
    JitModule *volatile m = NULL;

    CHECK_EQ(CATCH(&b->err, m = jit_get(b->jit, &b->err, r, &b->report)), ST_OK);
    jit_release(m);
    return bed_text("%s", b->report.key);
}

TEST(the_key_knows_all_that_can_change_the_binary)
{
    static const char *const one[] = { "-O2", "-mavx2" }, *const two[] = { "-O2-", "mavx2" };
    JitRequest r = { .source = "/* value 00000001 */",
                     .nsource = 20,
                     .flag = one,
                     .nflag = 2,
                     .identity = "avx2 fma" };
    const char *keys[12], *path;
    struct utimbuf when = { .actime = 1000, .modtime = 1000 };
    int n = 0;
    Bed b;

    bed_init(&b, "key", "");
    keys[n++] = key_of(&b, &r);
    CHECK_STR(key_of(&b, &r), keys[0]);
    r.identity = "avx512 fma"; /* a cache from another CPU is not found */
    keys[n++] = key_of(&b, &r);
    r.flag = two;
    keys[n++] = key_of(&b, &r);
    r.nflag = 1;
    keys[n++] = key_of(&b, &r);
    r.source = "/* value 00000002 */";
    keys[n++] = key_of(&b, &r);
    bed_set("WEFT_CFLAGS", "-g");
    bed_again(&b);
    keys[n++] = key_of(&b, &r);
    bed_set("WEFT_CC", bed_text("%s -w", bed_stub()));
    bed_again(&b);
    keys[n++] = key_of(&b, &r);
    path = bed_path(&b, "cc"); /* the same program under another name */
    CHECK(link(bed_stub(), path) == 0 && symlink("cc", bed_path(&b, "link")) == 0);
    CHECK(link(bed_text("%s.so", bed_stub()), bed_text("%s.so", path)) == 0);
    CHECK(symlink("cc.so", bed_path(&b, "link.so")) == 0);
    bed_set("WEFT_CC", path);
    bed_again(&b);
    keys[n++] = key_of(&b, &r);
    CHECK(utime(path, &when) == 0); /* upgraded, while the process runs */
    keys[n++] = key_of(&b, &r);
    bed_set("WEFT_CC", bed_path(&b, "link"));
    bed_again(&b);
    keys[n++] = key_of(&b, &r);
    bed_set("WEFT_CC", bed_text("env %s", path)); /* the second word is a program, too */
    bed_again(&b);
    keys[n++] = key_of(&b, &r);
    when.modtime = 2000;
    CHECK(utime(path, &when) == 0);
    keys[n++] = key_of(&b, &r);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            CHECK(strcmp(keys[i], keys[k]) != 0);
    bed_free(&b);
}

static const char *cpuinfo;
static int (*plain_openat)(const Os *, int dir, const char *name, int flags, int mode);

static int open_cpuinfo(const Os *os, int dir, const char *name, int flags, int mode)
{
    if (strcmp(name, "/proc/cpuinfo") == 0)
        name = cpuinfo;
    return plain_openat(os, dir, name, flags, mode);
}

/* The key with this text as /proc/cpuinfo. */
static const char *key_on(Bed *b, const JitRequest *r, const char *text)
{
    cpuinfo = bed_path(b, "cpuinfo");
    bed_put(cpuinfo, text, strlen(text));
    return key_of(b, r);
}

TEST(a_native_kernel_is_not_taken_to_another_machine)
{
    static const char *const native[] = { "-march=native" };
    JitRequest r = {
        .source = "/* value 00000001 */", .nsource = 20, .flag = native, .nflag = 1, .identity = ""
    };
    const char *intel = "processor : 0\nflags : fma avx2\ncpu MHz : 1000\n\nflags : of another\n";
    const char *key;
    Bed b;

    bed_init(&b, "native", "");
    plain_openat = b.inject.os.openat;
    b.inject.os.openat = open_cpuinfo;
    key = key_on(&b, &r, intel);
    CHECK_STR(key_on(&b, &r, "processor : 0\nflags : fma avx2\ncpu MHz : 2000"), key);
    CHECK(strcmp(key_on(&b, &r, "processor : 0\nflags : fma avx2 avx512f\n"), key) != 0);
    CHECK(strcmp(key_on(&b, &r, ""), key) != 0);
    cpuinfo = "/nonexistent";
    key_of(&b, &r);
    bed_set("WEFT_CFLAGS", "-mtune=native");
    bed_again(&b);
    r.nflag = 0;
    key = key_on(&b, &r, intel);
    CHECK(strcmp(key_on(&b, &r, "flags : fma\n"), key) != 0);
    bed_free(&b);
}

TEST(without_a_compiler_what_is_in_the_cache_still_runs)
{
    JitModule *m, *same;
    Bed b;

    bed_init(&b, "no-compiler", "");
    for (int i = 10; i < 20; i++)
        bed_use(&b, i, JIT_COMPILED);
    bed_put(bed_path(&b, "cache/foreign"), "x", 1);
    bed_use(&b, 5, JIT_COMPILED);
    bed_put(bed_text("%s.log", bed_entry(&b)), "x", 1);
    bed_set("WEFT_CC", "there-is-no-such-compiler");
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK(jit_compiler(b.jit) == NULL);
    CHECK_EQ(bed_get(&b, 5, &m), ST_OK);
    CHECK_EQ(b.report.how, JIT_ON_DISK);
    CHECK_EQ(bed_get(&b, 5, &same), ST_OK);
    CHECK(same == m && b.report.how == JIT_IN_MEMORY);
    jit_release(m);
    jit_release(same);
    CHECK_EQ(bed_fails(&b, 6), ST_IO);
    CHECK_HAS(b.err.msg, "no C compiler: WEFT_CC is there-is-no-such-compiler, which is not a "
                         "program on PATH (");
    CHECK_HAS(b.err.msg, "set WEFT_CC");
    bed_set("WEFT_CC", NULL);
    bed_set("PATH", "/nonexistent:relative::");
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK_EQ(bed_fails(&b, 6), ST_IO);
    CHECK_HAS(b.err.msg, "no C compiler: none of cc, gcc, clang is a program on PATH (/nonexist");
    bed_use(&b, 5, JIT_ON_DISK);
    CHECK(truncate(bed_entry(&b), 100) == 0); /* a damaged one is passed over */
    CHECK_EQ(bed_fails(&b, 5), ST_IO);
    bed_free(&b);
}

TEST(a_compiler_that_vanishes_is_a_missing_one)
{
    Bed b;

    bed_init(&b, "vanishes", "");
    bed_use(&b, 5, JIT_COMPILED);
    inject_at(&b.inject, INJECT_REALPATH, b.inject.calls[INJECT_REALPATH] + 1, true, ENOENT);
    bed_use(&b, 5, JIT_ON_DISK);
    CHECK_EQ(bed_fails(&b, 6), ST_IO);
    CHECK_HAS(b.err.msg, "no C compiler");
    inject_at(&b.inject, INJECT_FSTATAT, b.inject.calls[INJECT_FSTATAT] + 1, true, ENOENT);
    CHECK_EQ(bed_fails(&b, 6), ST_IO);
    bed_free(&b);
}

TEST(the_switch_turns_it_off)
{
    static const char *const bad[] = { "yes", "2", "1 ", "-1", "\033[31m" };
    Bed b;

    bed_init(&b, "switch", "");
    CHECK(!jit_is_disabled(b.jit));
    bed_set("WEFT_DISABLE_JIT", "1");
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK(jit_is_disabled(b.jit));
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, "WEFT_DISABLE_JIT");
    bed_set("WEFT_DISABLE_JIT", "0");
    CHECK_EQ(bed_again(&b), ST_OK);
    bed_use(&b, 1, JIT_COMPILED);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bed_set("WEFT_DISABLE_JIT", bad[i]);
        CHECK_EQ(bed_again(&b), ST_ARG);
        CHECK_HAS(b.err.msg, "set it to 1 or 0");
        CHECK(strchr(b.err.msg, '\033') == NULL);
    }
    CHECK_EQ(b.inject.blocks, 0);
}

TEST(the_cache_is_where_the_variables_say)
{
    Bed b;

    bed_init(&b, "where", "");
    CHECK_STR(jit_cache_dir(b.jit), bed_cache(&b));
    bed_set("WEFT_CACHE_DIR", bed_text("%s/a/b/c///", b.root)); /* made, with its parents */
    bed_again(&b);
    CHECK_STR(jit_cache_dir(b.jit), bed_path(&b, "a/b/c"));
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_EQ(bed_count(bed_path(&b, "a/b/c"), ""), 1);
    bed_set("WEFT_CACHE_DIR", "");
    bed_set("XDG_CACHE_HOME", "/xdg");
    bed_again(&b);
    CHECK_STR(jit_cache_dir(b.jit), "/xdg/weft");
    bed_set("XDG_CACHE_HOME", "xdg"); /* to be ignored, says its specification */
    bed_again(&b);
    CHECK_STR(jit_cache_dir(b.jit), bed_path(&b, ".cache/weft"));
    bed_set("HOME", "home");
    bed_again(&b);
    CHECK(jit_cache_dir(b.jit) == NULL);
    bed_set("WEFT_CACHE_DIR", "here");
    CHECK_EQ(bed_again(&b), ST_ARG);
    CHECK_HAS(b.err.msg, "WEFT_CACHE_DIR is here; give a path that begins with /");
    bed_set("WEFT_CACHE_DIR", "//"); /* not ours to write, or a test as root: it says / */
    bed_again(&b);
    CHECK_STR(jit_cache_dir(b.jit), "/");
    bed_free(&b);
}

TEST(without_a_home_kernels_live_in_a_private_directory)
{
    char warning[JIT_NOTE];
    Bed b;

    bed_init(&b, "homeless", "");
    bed_set("WEFT_CACHE_DIR", NULL);
    bed_set("HOME", NULL);
    bed_again(&b);
    CHECK(!jit_warning(b.jit, warning));
    bed_use(&b, 3, JIT_COMPILED);
    CHECK(jit_warning(b.jit, warning));
    CHECK_HAS(warning, "neither XDG_CACHE_HOME nor HOME is set");
    CHECK_HAS(warning, "set WEFT_CACHE_DIR");
    bed_use(&b, 3, JIT_ON_DISK);
    CHECK(!jit_warning(b.jit, warning)); /* once */
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 1);
    bed_remove(bed_text("%s/tmp", b.root)); /* somebody cleans up */
    CHECK(mkdir(bed_path(&b, "tmp"), 0700) == 0);
    bed_use(&b, 3, JIT_COMPILED);
    bed_use(&b, 3, JIT_ON_DISK);
    bed_free(&b);
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 0);
}

/* In a setuid process no variable is seen. */
TEST(with_no_variable_at_all_the_defaults_are_safe)
{
    char warning[JIT_NOTE];
    Bed b;

    bed_prepare(&b, "secure");
    bed_unset_all();
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK(jit_cache_dir(b.jit) == NULL);
    CHECK(jit_compiler(b.jit) == NULL || jit_compiler(b.jit)[0] == '/');
    if (jit_compiler(b.jit) == NULL)
        test_skip("no C compiler in /usr/bin");
    bed_use(&b, 3, JIT_COMPILED);
    CHECK(jit_warning(b.jit, warning));
    bed_free(&b);
}

/* The lines of the stub's report that begin with `head`, joined by |. */
static const char *reported(const char *path, const char *head)
{
    char line[4096], all[2048] = "";
    FILE *f = fopen(path, "r");
    size_t n = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, head, strlen(head)) == 0) {
            line[strcspn(line, "\n")] = 0;
            n += (size_t)snprintf(all + n, sizeof all - n, "%s|", line + strlen(head));
            CHECK(n < sizeof all);
        }
    fclose(f);
    return bed_text("%s", all);
}

TEST(values_of_variables_are_words_and_never_meet_a_shell)
{
    const char *out, *args;
    Bed b;

    bed_init(&b, "shell", "");
    out = bed_path(&b, "report");
    bed_set("WEFT_CC", bed_text("\n %s\tstub-report=%s \v", bed_stub(), out));
    bed_set("WEFT_CFLAGS",
            bed_text("; touch %s/pwned $(touch %s/pwned)\n`touch`  \"a b\" 'c' * ~ \\", b.root,
                     b.root));
    CHECK_EQ(bed_again(&b), ST_OK);
    bed_use(&b, 2, JIT_COMPILED);
    args = reported(out, "arg ");
    CHECK_HAS(args, bed_text("%s|stub-report=%s|-O1|;|touch|%s/pwned|$(touch|%s/pwned)|`touch`|\"a|"
                             "b\"|'c'|*|~|\\|-shared|-fPIC|-x|c|-|-o|",
                             bed_stub(), out, b.root, b.root));
    CHECK(access(bed_path(&b, "pwned"), F_OK) != 0);
    bed_free(&b);
}

TEST(values_that_make_no_sense_are_refused_with_a_remedy)
{
    enum { MB = 1 << 20 };
    char *huge = malloc(MB + 1);
    Bed b;

    bed_init(&b, "nonsense", "");
    bed_set("WEFT_CC", " \t\n "); /* no word: the usual compilers */
    CHECK_EQ(bed_again(&b), ST_OK);
    bed_set("WEFT_CC", "./cc -O3");
    CHECK_EQ(bed_again(&b), ST_ARG);
    CHECK_HAS(b.err.msg, "WEFT_CC is ./cc -O3; give a name on PATH or a path that begins with /");
    CHECK(huge != NULL);
    memset(huge, 'x', MB);
    huge[MB] = 0;
    for (const char *const *name =
             (const char *const[]){ "WEFT_CC", "WEFT_CFLAGS", "TMPDIR", "WEFT_CACHE_DIR", NULL };
         *name != NULL; name++) {
        bed_set("WEFT_CC", "cc");
        bed_set(*name, huge);
        CHECK_EQ(bed_again(&b), ST_ARG);
        CHECK_HAS(b.err.msg, bed_text("%s is 1048576 bytes long; it may have 65536", *name));
        bed_set(*name, "");
    }
    huge[65536] = 0;
    bed_set("WEFT_CC", huge); /* as long as it may be, and no program */
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    bed_free(&b);
    free(huge);
}

TEST(the_compiler_sees_a_clean_world)
{
    int leak = open("/dev/null", O_RDONLY); /* a careless caller's, without O_CLOEXEC */
    const char *out, *env;
    Bed b;

    bed_init(&b, "world", "");
    out = bed_path(&b, "report");
    bed_set("WEFT_CC", bed_text("%s stub-report=%s", bed_stub(), out));
    bed_set("LD_LIBRARY_PATH", "/opt/cc/lib");
    bed_set("LD_PRELOAD", "/evil.so");
    CHECK(leak > 2 && bed_again(&b) == ST_OK);
    bed_use(&b, 2, JIT_COMPILED);
    close(leak);
    CHECK_STR(reported(out, "fd "), "0|1|2|");
    CHECK_STR(reported(out, "cwd "), "/|");
    CHECK_STR(reported(out, "group "), "own|");
    env = reported(out, "env ");
    CHECK_HAS(env, bed_text("PATH=%s|HOME=%s|LD_LIBRARY_PATH=/opt/cc/lib|TMPDIR=%s/tmp/weft-jit-",
                            bed_getenv("PATH"), b.root, b.root));
    CHECK_HAS(env, ".tmp|LC_ALL=C|LANG=C|");
    CHECK(strstr(env, "PRELOAD") == NULL);
    bed_free(&b);
}

TEST(a_relative_folder_for_temporaries_is_not_used)
{
    Bed b;

    bed_init(&b, "relative", "");
    bed_set("TMPDIR", "tmp");
    bed_again(&b);
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 0);
    CHECK_EQ(bed_count(".", "tmp"), 0);
    bed_free(&b);
}

TEST(the_compilers_temporaries_go_with_its_folder)
{
    Bed b;

    bed_init(&b, "litter", "stub-litter");
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 0);
    bed_free(&b);
}

/* A daemon may have closed 0, 1 and 2: our files then get these numbers. */
TEST(standard_descriptors_may_be_closed)
{
    int status = -1;
    Bed b;
    pid_t pid;

    bed_init(&b, "closed", "");
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        JitModule *m;
        int code = 0;

        close(0), close(1), close(2);
        for (int i = 0; i < 3; i++)
            code |= bed_get(&b, 80 + i, &m) != ST_OK || bed_answer(m) != 80 + i;
        _exit(code);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    bed_use(&b, 80, JIT_ON_DISK);
    bed_free(&b);
}

TEST(a_caller_that_ignores_its_children_gets_its_kernel)
{
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    Bed b;

    bed_init(&b, "sigchld", "");
    bed_use(&b, 4, JIT_COMPILED);
    bed_set("WEFT_CC", bed_text("%s stub-fail", bed_stub()));
    bed_again(&b);
    CHECK_EQ(bed_fails(&b, 4), ST_IO); /* by what is not there */
    CHECK_HAS(b.err.msg, "left no library");
    CHECK_HAS(b.err.msg, "no such thing");
    signal(SIGCHLD, old);
    bed_free(&b);
}

TEST(what_happened_is_told_in_one_line)
{
    char text[600], small[10];
    Bed b;

    bed_init(&b, "explain", "");
    bed_use(&b, 4, JIT_COMPILED);
    jit_explain(&b.report, text, sizeof text);
    CHECK_HAS(text, "compiled in ");
    CHECK_HAS(text, bed_text(" ms, key %s", b.report.key));
    CHECK(strchr(text, ';') == NULL);
    CHECK(truncate(bed_entry(&b), 0) == 0);
    bed_use(&b, 4, JIT_COMPILED);
    jit_explain(&b.report, text, sizeof text);
    CHECK_HAS(text, "; cache entry removed: it is no kernel");
    jit_explain(&b.report, small, sizeof small);
    CHECK_STR(small, "compiled ");
    inject_at(&b.inject, INJECT_SPAWN, b.inject.calls[INJECT_SPAWN] + 1, true, EIO);
    CHECK_EQ(bed_fails(&b, 5), ST_IO);
    jit_explain(&b.report, text, sizeof text);
    CHECK_HAS(text, "failed in ");
    bed_free(&b);
}

TEST(reports_and_handles_may_be_left_out)
{
    JitRequest r = { .source = "/* value 00000001 */", .nsource = 20, .identity = "" };
    JitModule *volatile m = NULL;
    Bed b;

    bed_init(&b, "left-out", "");
    CHECK_EQ(CATCH(&b.err, m = jit_get(b.jit, &b.err, &r, NULL)), ST_OK);
    CHECK_EQ(bed_answer(m), 1);
    jit_release(m);
    bed_free(&b);
    jit_free(NULL);
}
