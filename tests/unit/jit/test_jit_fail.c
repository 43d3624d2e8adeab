/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/jit when things go wrong: compilers that fail in every way, systems without memfd.  Every OS
 * call made to fail in turn: tests/jit/failures.c. */
#include "unit/jit_bed.h"

#include <signal.h>
#include <time.h>

/* The message has the compiler's name, the variables, and a source that is there. */
static void check_message(const char *msg)
{
    char path[600] = "", text[400] = "";
    const char *at = strstr(msg, "\nsource: "), *command = strstr(msg, "\ncommand: ");

    CHECK_HAS(msg, bed_stub());
    CHECK_HAS(msg, "WEFT_CC and WEFT_CFLAGS");
    CHECK(at != NULL);
    at += strlen("\nsource: ");
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, " "), at);
    CHECK_HAS(command, bed_text(" -o kernel.so -lm < %s", path));
    bed_slurp(path, text, sizeof text - 1);
    CHECK_HAS(text, "int answer(void)");
    memcpy(path + strlen(path) - 2, ".log", 5);
    CHECK(access(path, F_OK) == 0);
}

typedef struct Case {
    const char *mode, *word; /* of the message */
} Case;

/* No process is left.  By a clock that runs fast, the time in which a killed one is waited for may
 * be over before it has ended: then it is waited for here. */
static bool has_no_child(const Bed *b)
{
    for (int k = 0; k < 10000; k++) {
        if (waitpid(-1, NULL, WNOHANG) == -1)
            return errno == ECHILD;
        if (b->inject.clock_speed == 0)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

/* Returns the message. */
static const char *compiler_fails(Bed *b, const Case *c)
{
    const char *msg;

    bed_set("WEFT_CC", bed_text("%s %s", bed_stub(), c->mode));
    CHECK_EQ(bed_again(b), ST_OK);
    CHECK_EQ(bed_fails(b, 31), ST_IO);
    CHECK_HAS(b->err.msg, c->word);
    msg = bed_text("%s", b->err.msg);
    for (const char *s = msg; *s != 0; s++)
        CHECK((unsigned char)*s >= 32 || *s == '\n');
    CHECK(has_no_child(b));
    CHECK_EQ(bed_whole(b, NULL), 0);
    CHECK_EQ(bed_count(bed_cache(b), ".lock") + bed_count(bed_cache(b), ".tmp"), 0);
    return msg;
}

TEST(a_compiler_that_fails_is_named_and_its_source_kept)
{
    static const Case cases[] = {
        { "stub-fail",
          "failed with exit code 1\n  kernel.c:1: error:  [1mno such thing\n  second" },
        { "stub-flood stub-fail", "failed with exit code 1\n  the same words" },
        { "stub-die", "was ended by signal 11" },
        { "stub-nothing", "ended well but left no library" },
        { "stub-huge", "ended well but left no library that can be read" },
    };
    struct stat st;
    Bed b;

    bed_init(&b, "cc-fails", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_message(compiler_fails(&b, &cases[i]));
    compiler_fails(&b, &cases[1]);
    CHECK(stat(bed_text("%s.log", bed_entry(&b)), &st) == 0);
    CHECK(st.st_size >= 65536 && st.st_size < 80000); /* not all 1.3 MB of it */
    bed_free(&b);
    CHECK_EQ(bed_count(bed_path(&b, "tmp"), ""), 0);
}

TEST(without_a_cache_the_source_stays_in_the_private_directory)
{
    static const Case fail = { "stub-fail", "exit code 1" };
    Bed b;

    bed_init(&b, "kept", "");
    bed_put(bed_cache(&b), "x", 1);
    bed_set("WEFT_CC", bed_text("%s %s", bed_stub(), fail.mode));
    bed_again(&b);
    CHECK_EQ(bed_fails(&b, 31), ST_IO);
    bed_free(&b);
    check_message(b.err.msg);
    CHECK_EQ(bed_count(bed_own(&b), ""), 2);
}

TEST(the_command_can_be_pasted_into_a_shell)
{
    Bed b;

    bed_init(&b, "a_shell", "stub-fail");
    bed_set("WEFT_CFLAGS", "-DA=$(id) -DB='c -O1");
    CHECK_EQ(bed_again(&b), ST_OK);
    CHECK_EQ(bed_fails(&b, 32), ST_IO);
    CHECK_HAS(b.err.msg, " '-DA=$(id)' '-DB='\\''c' -O1 ");
    bed_set("WEFT_CFLAGS", NULL);
    bed_free(&b);
}

TEST(a_source_that_cannot_be_kept_is_not_spoken_of)
{
    JitModule *m;
    Bed b;

    bed_init(&b, "not-kept", "stub-fail");
    CHECK_EQ(bed_get(&b, 31, &m), ST_IO);
    for (int64_t k = 0; k < 2; k++) { /* neither the log, nor the source beside the log */
        inject_at(&b.inject, INJECT_WRITE, b.inject.calls[INJECT_WRITE] + 3 + k, true, ENOSPC);
        CHECK_EQ(bed_fails(&b, 31), ST_IO);
        CHECK_HAS(b.err.msg, "failed with exit code 1");
        CHECK_HAS(b.err.msg, " -lm < kernel.c");
        CHECK(strstr(b.err.msg, "source: ") == NULL);
    }
    bed_free(&b);
    bed_remove(bed_path(&b, "tmp"));
}

TEST(a_long_command_and_long_lines_are_cut)
{
    char flags[3000], folder[100];
    Bed b;

    memset(folder, 'd', sizeof folder - 1);
    folder[sizeof folder - 1] = 0;
    bed_init(&b, folder, "");
    memset(flags, 'f', sizeof flags - 1);
    flags[sizeof flags - 1] = 0;
    bed_set("WEFT_CC", bed_text("%s stub-babble stub-fail", bed_stub()));
    bed_set("WEFT_CFLAGS", flags);
    bed_again(&b);
    CHECK_EQ(bed_fails(&b, 31), ST_IO);
    CHECK_HAS(b.err.msg, bed_text("ff< %s", bed_entry(&b))); /* the end is still there */
    CHECK_HAS(b.err.msg, "babble");
    bed_free(&b);
}

TEST(a_compiler_that_hangs_is_ended_with_all_it_started)
{
    static const Case cases[] = {
        { "stub-hang", "took more than 1200 seconds and was ended" },
        { "stub-hush-hang", "took more than 1200 seconds and was ended" },
        { "stub-child stub-hang", "took more than 1200 seconds and was ended" },
    };
    Bed b;

    bed_init(&b, "hangs", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t begin = os_libc.clock(&os_libc, CLOCK_MONOTONIC);

        b.inject.clock_speed = 4000; /* twenty minutes in 0.3 s */
        check_message(compiler_fails(&b, &cases[i]));
        b.inject.clock_speed = 0;
        CHECK(os_libc.clock(&os_libc, CLOCK_MONOTONIC) - begin < 5000000000);
    }
    bed_free(&b);
}

TEST(a_compiler_has_a_limit_of_cpu_time)
{
    static const char *const bad[] = { "0", "-1", "1.5", "soon", "86401", "99999999999999999999" };
    const char *msg;
    Bed b;

    bed_init(&b, "burns", "");
    bed_set("WEFT_CC_SECONDS", "1");
    msg = compiler_fails(&b, &(Case){ "stub-burn", "used up its 1 seconds of CPU time" });
    check_message(msg);
    CHECK_HAS(msg, "set WEFT_CC_SECONDS to a larger number");
    bed_set("WEFT_CC_SECONDS", "2");
    b.inject.clock_speed = 100;
    msg = compiler_fails(&b, &(Case){ "stub-hang", "took more than 20 seconds" });
    check_message(msg);
    b.inject.clock_speed = 0;
    CHECK_HAS(msg, "10 times WEFT_CC_SECONDS");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bed_set("WEFT_CC_SECONDS", bad[i]);
        CHECK_EQ(bed_again(&b), ST_ARG);
        CHECK_HAS(b.err.msg, "set it to a number of seconds from 1 to 86400");
    }
    bed_free(&b);
}

TEST(a_child_of_the_compiler_that_lives_on_does_not_hold_us)
{
    Bed b;

    bed_init(&b, "orphan", "stub-child");
    bed_use(&b, 4, JIT_COMPILED);
    CHECK(b.report.ms < 5000);
    bed_free(&b);
}

TEST(what_is_no_library_is_never_loaded_nor_published)
{
    struct stat st;
    Bed b;

    bed_init(&b, "garbage", "");
    compiler_fails(&b, &(Case){ "stub-garbage", "cannot be used: it is no library" });
    CHECK(stat(bed_text("%s.so", bed_stub()), &st) == 0);
    for (int64_t n = 1; n < st.st_size; n += n < 1024 ? 61 : 512) { /* loading half would crash */
        const char *mode = bed_text("stub-cut=%lld", (long long)n);

        compiler_fails(&b, &(Case){ mode, "cannot be used: " });
    }
    compiler_fails(&b, &(Case){ bed_text("stub-cut=%lld", (long long)st.st_size - 1),
                                "cannot be used: the library is cut off" });
    bed_free(&b);
}

/* Headers that lie about what is in the file. */
TEST(a_library_with_wrong_headers_is_refused)
{
    static const struct {
        size_t at;
        uint8_t value;
    } lies[] = {
        { 0, 0 },      /* magic */
        { 4, 1 },      /* 32 bits */
        { 16, 2 },     /* a program */
        { 0x27, 1 },   /* program headers far away */
        { 0x2f, 1 },   /* section headers far away */
        { 0x36, 57 },  /* their size */
        { 0x39, 255 }, /* their number */
        { 0x3d, 255 }, /* number of sections */
        { 0x4f, 1 },   /* a segment that begins far away */
        { 0x67, 1 },   /* a segment that is too long */
    };
    static uint8_t lib[1 << 18];
    char path[600];
    size_t n;
    Bed b;

    bed_init(&b, "headers", "");
    CHECK(link(bed_stub(), bed_path(&b, "cc")) == 0);
    snprintf(path, sizeof path, "%s/cc.so", b.root);
    n = bed_slurp(bed_text("%s.so", bed_stub()), lib, sizeof lib);
    bed_set("WEFT_CC", bed_path(&b, "cc"));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t truth = lib[lies[i].at];

        lib[lies[i].at] = lies[i].value;
        bed_put(path, lib, n);
        lib[lies[i].at] = truth;
        CHECK_EQ(bed_again(&b), ST_OK);
        CHECK_EQ(bed_fails(&b, (int)i), ST_IO);
        CHECK_HAS(b.err.msg, "cannot be used: ");
    }
    bed_put(path, lib, n);
    bed_use(&b, 1, JIT_COMPILED);
    bed_free(&b);
}

TEST(a_compiler_that_cannot_be_started_is_named)
{
    char path[600];
    Bed b;

    bed_init(&b, "start", "");
    snprintf(path, sizeof path, "%s/cc", b.root);
    bed_put(path, "neither ELF nor script", 22);
    bed_set("WEFT_CC", path);
    bed_again(&b);
    CHECK(jit_compiler(b.jit) == NULL); /* not executable */
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, "no C compiler: ");
    CHECK(chmod(path, 0700) == 0);
    bed_again(&b);
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, path);
    if (strstr(b.err.msg, "exit code 127") == NULL) /* where a spawn is a fork (valgrind, qemu) */
        CHECK_HAS(b.err.msg, bed_text("cannot be started: %s", strerror(ENOEXEC)));
    bed_set("WEFT_CC", b.root); /* a folder */
    bed_again(&b);
    CHECK(jit_compiler(b.jit) == NULL);
    bed_free(&b);
}

static int64_t slept;

static void no_sleep(const Os *os, int64_t ns)
{
    (void)os;
    slept += ns;
}

TEST(a_machine_short_of_processes_is_tried_again_for_a_while)
{
    Bed b;

    bed_init(&b, "eagain", "");
    b.inject.os.sleep = no_sleep;
    inject_at(&b.inject, INJECT_SPAWN, 1, true, EAGAIN);
    slept = 0;
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, strerror(EAGAIN));
    CHECK_EQ(b.inject.calls[INJECT_SPAWN], 9);
    CHECK(slept > 1000000000 && slept < 2000000000);
    inject_at(&b.inject, INJECT_SPAWN, 10, false, EAGAIN);
    b.inject.os.sleep = os_libc.sleep;
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_EQ(b.inject.calls[INJECT_SPAWN], 11);
    bed_free(&b);
}

/* Without memfd, sealing, /proc: from a file, wherever one can be mapped as code. */
TEST(where_memory_cannot_be_loaded_a_file_is)
{
    static const InjectKind kinds[] = { INJECT_MEMFD, INJECT_SEAL, INJECT_DLOPEN };
    Bed b;

    bed_init(&b, "from-file", "");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        InjectKind k = kinds[i];

        inject_at(&b.inject, k, b.inject.calls[k] + 1, k != INJECT_DLOPEN, ENOSYS);
        bed_use(&b, 40 + (int)i, JIT_COMPILED);
        CHECK_HAS(b.report.note, "loaded from a file");
        inject_at(&b.inject, k, b.inject.calls[k] + 1, k != INJECT_DLOPEN, ENOSYS);
        bed_use(&b, 40 + (int)i, JIT_ON_DISK);
        CHECK_HAS(b.report.note, "loaded from a file");
        CHECK_EQ(bed_count(bed_cache(&b), ".tmp") + bed_count(bed_path(&b, "tmp"), ""), 0);
    }
    bed_free(&b);
}

static void *only_from(const Os *os, const char *path)
{
    return strstr(path, "/cache/") == NULL ? NULL : os_libc.dlopen(os, path);
}

TEST(where_nothing_can_be_loaded_from_there_is_a_message)
{
    Bed b;

    bed_init(&b, "nowhere", "");
    inject_at(&b.inject, INJECT_DLOPEN, 1, true, ENOMEM); /* and the loader says nothing */
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, "cannot be used: there is no room to load it from");
    bed_put(bed_path(&b, "nodir"), "x", 1);
    bed_set("WEFT_CACHE_DIR", bed_path(&b, "nodir"));
    bed_again(&b);
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    inject_at(&b.inject, INJECT_ALLOC, 0, false, 0);
    bed_use(&b, 1, JIT_COMPILED);
    for (int64_t k = 1; b.inject.failed == 0 || k < 12; k++) { /* no memory for the module */
        JitModule *m;

        inject_at(&b.inject, INJECT_ALLOC, b.inject.calls[INJECT_ALLOC] + k, false, ENOMEM);
        if (bed_get(&b, 1, &m) == ST_OK)
            jit_release(m);
        else
            CHECK_EQ(b.err.code, ST_NOMEM);
    }
    bed_free(&b);
}

static ptrdiff_t read_nothing(const Os *os, int fd, void *to, size_t n)
{
    (void)os, (void)fd, (void)to, (void)n;
    return 0;
}

/* Somebody cuts the file between look and read. */
TEST(a_file_that_ends_early_is_too_short)
{
    Bed b;

    bed_init(&b, "early", "");
    bed_use(&b, 1, JIT_COMPILED);
    b.inject.os.read = read_nothing;
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.report.note, "cache entry removed: it is no kernel");
    CHECK_HAS(b.err.msg, "cannot be used: it is no library: too short");
    bed_free(&b);
}

TEST(notes_are_cut_at_their_room)
{
    Bed b;

    bed_init(&b, "notes", "");
    bed_set("WEFT_CACHE_DIR", bed_text("%s/%0200d/%0190d", b.root, 1, 2));
    bed_again(&b);
    bed_use(&b, 1, JIT_COMPILED);
    inject_at(&b.inject, INJECT_RENAMEAT, b.inject.calls[INJECT_RENAMEAT] + 1, true, EIO);
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_EQ(strlen(b.report.note), JIT_NOTE - 1);
    bed_free(&b);
}

TEST(if_nothing_else_can_be_mapped_the_cache_serves)
{
    Bed b;

    bed_init(&b, "noexec", "");
    b.inject.os.dlopen = only_from;
    b.inject.os.dlclose = os_libc.dlclose;
    bed_use(&b, 40, JIT_COMPILED);
    bed_use(&b, 40, JIT_ON_DISK);
    CHECK_HAS(b.report.note, "loaded from a file");
    bed_free(&b);
}

TEST(interrupted_calls_are_made_again)
{
    static const InjectKind kinds[] = { INJECT_READ, INJECT_WRITE, INJECT_POLL, INJECT_WAITID,
                                        INJECT_FLOCK };
    Bed b;

    bed_init(&b, "jit_eintr", "");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        InjectKind kind = kinds[i];

        for (int64_t k = 1; k <= 3; k++) {
            inject_at(&b.inject, kind, b.inject.calls[kind] + k, false, EINTR);
            bed_use(&b, 60 + (int)(3 * i + (size_t)k), JIT_COMPILED);
        }
    }
    bed_free(&b);
}
