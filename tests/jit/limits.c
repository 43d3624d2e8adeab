/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Limits of the system, setuid, two builds of one source, and how long a warm start takes. */
#include "jit/jit_test.h"

#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>

enum { NOBODY = 65534 };

/* In a child that is nobody, with room for no further process. */
static int without_processes(Bed *b)
{
    struct rlimit none = { 0, 0 };
    JitModule *m;

    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 2;
    if (bed_again(b) != ST_OK || setrlimit(RLIMIT_NPROC, &none) != 0)
        return 3;
    if (bed_get(b, 5, &m) != ST_IO || strstr(b->err.msg, strerror(EAGAIN)) == NULL) {
        printf("%s\n", b->err.msg);
        return 4;
    }
    return 0;
}

TEST(at_the_limit_of_processes_there_is_a_message)
{
    int status = -1;
    pid_t pid;
    Bed b;

    bed_init(&b, "nproc", "");
    bed_free(&b);
    if (geteuid() == 0) {
        CHECK(chmod(test_path(""), 0755) == 0);
        CHECK(chown(b.root, NOBODY, NOBODY) == 0 &&
              chown(bed_path(&b, "tmp"), NOBODY, NOBODY) == 0);
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(without_processes(&b));
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
}

/* 0: all variables are ignored, 3: this process is not setuid. */
void worker_secure(Share s)
{
    Err err = { .code = ST_OK };
    Jit *volatile jit = NULL;

    (void)s;
    if (!getauxval(AT_SECURE))
        _exit(3);
    CHECK_EQ(CATCH(&err, jit = jit_new(&os_libc, &err)), ST_OK);
    CHECK(jit_cache_dir(jit) == NULL && !jit_is_disabled(jit));
    CHECK(jit_compiler(jit) == NULL || strncmp(jit_compiler(jit), "/usr/", 5) == 0);
    jit_free(jit);
    _exit(0); /* the leak checker cannot look into a setuid process */
}

/* A copy of this program that belongs to nobody: run by root it is a setuid process. */
TEST(a_setuid_process_sees_no_variable)
{
    char self[64], program[600], *argv[] = { program, "--worker", "secure", "0", "1", "1", NULL };
    int status;

    if (geteuid() != 0)
        test_skip("only root can make a program setuid");
    snprintf(self, sizeof self, "/proc/%ld/exe", (long)getpid());
    snprintf(program, sizeof program, "%s", test_path("setuid"));
    CHECK_EQ(bed_system((char *[]){ "cp", self, program, NULL }), 0);
    CHECK(chmod(test_path(""), 0755) == 0);
    CHECK(chown(program, NOBODY, NOBODY) == 0 && chmod(program, 04755) == 0);
    setenv("WEFT_CC", bed_stub(), 1);
    setenv("WEFT_DISABLE_JIT", "1", 1);
    setenv("WEFT_CACHE_DIR", test_path("evil"), 1);
    status = bed_system(argv);
    unsetenv("WEFT_CC");
    unsetenv("WEFT_DISABLE_JIT");
    unsetenv("WEFT_CACHE_DIR");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        test_skip("the scratch folder does not allow setuid programs");
    CHECK_EQ(status, 0);
}

TEST(two_builds_of_a_source_have_the_same_bytes)
{
    static uint8_t first[1 << 20], second[1 << 20];
    static const char *const flags[] = { "", "-g", "-O3 -g3" };
    size_t n;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        Bed b;

        bed_real(&b, bed_text("same-%zu", i));
        bed_set("WEFT_CFLAGS", flags[i]);
        bed_again(&b);
        bed_use(&b, 12, JIT_COMPILED);
        n = bed_slurp(bed_entry(&b), first, sizeof first);
        CHECK(unlink(bed_entry(&b)) == 0);
        bed_set("TMPDIR", bed_path(&b, "tmp/elsewhere"));
        CHECK(mkdir(bed_path(&b, "tmp/elsewhere"), 0700) == 0);
        bed_again(&b);
        bed_use(&b, 12, JIT_COMPILED);
        CHECK_EQ(bed_slurp(bed_entry(&b), second, sizeof second), n);
        CHECK(memcmp(first, second, n) == 0);
        bed_free(&b);
    }
}

/* A source with a table of so many numbers. */
static const char *long_source(int64_t numbers)
{
    static char s[1 << 20];
    size_t n = (size_t)snprintf(s, sizeof s, "int answer(void) { return 3; }\nconst int t[] = { 1");

    for (int64_t i = 0; i < numbers; i++)
        n += (size_t)snprintf(s + n, sizeof s - n, ",%lld", (long long)i);
    n += (size_t)snprintf(s + n, sizeof s - n, " };\n");
    CHECK(n < sizeof s);
    return s;
}

/* A new Jit, a kernel from disk, its first call: processor time, which other work does not change. */
static double warm_start(Bed *b, const JitRequest *r)
{
    int64_t begin = os_libc.clock(&os_libc, CLOCK_PROCESS_CPUTIME_ID);
    JitModule *volatile m = NULL;
    double ms;

    CHECK_EQ(bed_again(b), ST_OK);
    CHECK_EQ(CATCH(&b->err, m = jit_get(b->jit, &b->err, r, &b->report)), ST_OK);
    CHECK_EQ(bed_answer(m), 3);
    ms = (double)(os_libc.clock(&os_libc, CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e6;
    CHECK_EQ(b->report.how, JIT_ON_DISK);
    jit_release(m);
    return ms;
}

/* The figure is for people; the bound only catches what went wrong altogether. */
static void measure(const char *name, int64_t numbers)
{
    static const char *const flags[] = { "-O2" };
    const char *source = long_source(numbers);
    JitRequest r = {
        .source = source, .nsource = strlen(source), .flag = flags, .nflag = 1, .identity = "warm"
    };
    JitModule *volatile m = NULL;
    double best = 1e9, cold;
    struct stat st;
    Bed b;

    bed_real(&b, name);
    CHECK_EQ(CATCH(&b.err, m = jit_get(b.jit, &b.err, &r, &b.report)), ST_OK);
    jit_release(m);
    cold = b.report.ms;
    CHECK(stat(bed_entry(&b), &st) == 0);
    for (int k = 0; k < 20; k++) {
        double ms = warm_start(&b, &r);

        best = ms < best ? ms : best;
    }
    printf("start with %lld KB of source, %lld KB of library: warm %.2f ms, cold %.0f ms\n",
           (long long)r.nsource >> 10, (long long)st.st_size >> 10, best, cold);
    CHECK(best < 100);
    bed_free(&b);
}

TEST(a_warm_start_takes_milliseconds)
{
    measure("warm-1", 1);
    measure("warm-2", 10000);
    measure("warm-3", 80000);
}
