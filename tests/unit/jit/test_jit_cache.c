/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/jit: the cache on disk.  Damage of every kind, directories that are not ours alone, locks,
 * what killed processes leave behind, and the functions behind `weft cache`. */
#include "unit/jit_bed.h"

#include <sys/file.h>
#include <time.h>
#include <utime.h>

static uint8_t image[1 << 18];

/* An entry that was changed is not used, is removed, and comes back as it was. */
static void expect_rebuild(Bed *b, int value, const char *entry, size_t n)
{
    static uint8_t again[sizeof image];

    bed_use(b, value, JIT_COMPILED);
    CHECK_HAS(b->report.note, "cache entry removed: ");
    CHECK_EQ(bed_slurp(entry, again, sizeof again), n);
    CHECK(memcmp(image, again, n) == 0);
    bed_use(b, value, JIT_ON_DISK);
}

TEST(an_entry_cut_anywhere_is_a_miss)
{
    const char *entry;
    size_t n;
    Bed b;

    bed_init(&b, "cut", "");
    bed_use(&b, 9, JIT_COMPILED);
    entry = bed_entry(&b);
    n = bed_slurp(entry, image, sizeof image);
    for (size_t cut = 0; cut < n; cut += 512) {
        CHECK(truncate(entry, (off_t)cut) == 0);
        expect_rebuild(&b, 9, entry, n);
        entry = bed_entry(&b);
    }
    for (size_t cut = n - 1; cut > n - 40; cut--) { /* in the checksum, and around it */
        CHECK(truncate(entry, (off_t)cut) == 0);
        expect_rebuild(&b, 9, entry, n);
        entry = bed_entry(&b);
    }
    bed_free(&b);
}

static void flip(Bed *b, size_t at, size_t n)
{
    const char *entry = bed_entry(b);
    uint8_t byte = image[at];

    image[at] ^= (uint8_t)(1 << at % 8);
    bed_put(entry, image, n);
    image[at] = byte;
    expect_rebuild(b, 9, entry, n);
}

TEST(one_changed_bit_anywhere_is_a_miss)
{
    enum { HEAD = 88, FOOT = 32 };
    size_t n, step = (size_t)(100 / test_scale(100));
    uint64_t seed = 1;
    Bed b;

    bed_init(&b, "flip", "");
    bed_use(&b, 9, JIT_COMPILED);
    n = bed_slurp(bed_entry(&b), image, sizeof image);
    for (size_t i = 0; i < HEAD; i += step)
        flip(&b, i, n);
    for (size_t i = 0; i < FOOT; i += step)
        flip(&b, n - 1 - i, n);
    for (int64_t i = test_scale(100); i > 0; i--)
        flip(&b, HEAD + (size_t)test_random(&seed) % (n - HEAD - FOOT), n);
    bed_free(&b);
}

TEST(an_entry_may_not_be_longer_either)
{
    size_t n;
    Bed b;

    bed_init(&b, "longer", "");
    bed_use(&b, 9, JIT_COMPILED);
    n = bed_slurp(bed_entry(&b), image, sizeof image);
    CHECK(truncate(bed_entry(&b), (off_t)n + 1) == 0);
    expect_rebuild(&b, 9, bed_entry(&b), n);
    CHECK(truncate(bed_entry(&b), (off_t)1 << 40) == 0); /* nothing is allocated for it */
    expect_rebuild(&b, 9, bed_entry(&b), n);
    bed_free(&b);
}

/* As a later version of the library may write it. */
TEST(an_entry_of_another_format_is_a_miss)
{
    size_t n;
    Bed b;

    bed_init(&b, "format", "");
    bed_use(&b, 9, JIT_COMPILED);
    n = bed_slurp(bed_entry(&b), image, sizeof image);
    image[8]++;
    bed_put(bed_entry(&b), image, n);
    bed_use(&b, 9, JIT_COMPILED);
    CHECK_HAS(b.report.note, "another format");
    bed_free(&b);
}

TEST(another_kernels_entry_under_this_name_is_refused)
{
    const char *nine;
    size_t n;
    Bed b;

    bed_init(&b, "other-name", "");
    bed_use(&b, 8, JIT_COMPILED);
    n = bed_slurp(bed_entry(&b), image, sizeof image);
    bed_use(&b, 9, JIT_COMPILED);
    nine = bed_entry(&b);
    bed_put(nine, image, n);
    bed_use(&b, 9, JIT_COMPILED);
    CHECK_HAS(b.report.note, "it is another kernel");
    bed_free(&b);
}

/* A file that passes all checks of bytes, but was made of something else. */
TEST(a_library_proves_its_key_after_it_is_loaded)
{
    uint8_t sum[SHA_SIZE];
    size_t n, i;
    Sha s;
    Bed b;

    bed_init(&b, "proof", "");
    bed_use(&b, 9, JIT_COMPILED);
    n = bed_slurp(bed_entry(&b), image, sizeof image);
    for (i = 88; i + JIT_KEY < n && memcmp(image + i, b.report.key, JIT_KEY) != 0;)
        i++;
    CHECK(i + JIT_KEY < n);
    image[i] ^= 1;
    sha_init(&s);
    sha_add(&s, image, n - SHA_SIZE);
    sha_end(&s, sum);
    memcpy(image + n - SHA_SIZE, sum, SHA_SIZE);
    bed_put(bed_entry(&b), image, n);
    bed_use(&b, 9, JIT_COMPILED);
    CHECK_HAS(b.report.note, "cache entry does not load: the library is not the one");
    bed_use(&b, 9, JIT_ON_DISK);
    bed_free(&b);
}

typedef void Plant(const Bed *, const char *entry);

static void plant_link(const Bed *b, const char *entry)
{
    CHECK(rename(entry, bed_path(b, "real")) == 0);
    CHECK(symlink(bed_path(b, "real"), entry) == 0);
}

static void plant_pipe(const Bed *b, const char *entry)
{
    (void)b;
    CHECK(unlink(entry) == 0 && mkfifo(entry, 0600) == 0);
}

static void plant_folder(const Bed *b, const char *entry)
{
    (void)b;
    CHECK(unlink(entry) == 0 && mkdir(entry, 0700) == 0);
    bed_put(bed_text("%s/file", entry), "x", 1);
}

static void plant_group_writable(const Bed *b, const char *entry)
{
    (void)b;
    CHECK(chmod(entry, 0620) == 0);
}

static void plant_world_writable(const Bed *b, const char *entry)
{
    (void)b;
    CHECK(chmod(entry, 0602) == 0);
}

TEST(only_a_plain_file_that_others_cannot_write_is_an_entry)
{
    static const struct {
        Plant *plant;
        const char *word;
    } cases[] = {
        { plant_link, "symbolic link" },
        { plant_pipe, "no plain file" },
        { plant_folder, "no plain file" },
        { plant_group_writable, "others can write" },
        { plant_world_writable, "others can write" },
    };
    Bed b;

    bed_init(&b, "plants", "");
    bed_use(&b, 9, JIT_COMPILED);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i].plant(&b, bed_entry(&b));
        bed_use(&b, 9, JIT_COMPILED);
        CHECK_HAS(b.report.note, cases[i].word);
        bed_use(&b, 9, JIT_ON_DISK);
    }
    bed_free(&b);
}

TEST(an_entry_of_another_user_is_refused)
{
    Bed b;

    bed_init(&b, "planted", "");
    bed_use(&b, 9, JIT_COMPILED);
    if (geteuid() != 0)
        test_skip("only root can give files away");
    CHECK(chown(bed_entry(&b), 65534, 65534) == 0);
    bed_use(&b, 9, JIT_COMPILED);
    CHECK_HAS(b.report.note, "another user");
    bed_use(&b, 9, JIT_ON_DISK);
    bed_free(&b);
}

/* The directory is refused for this reason, with one warning, and all works without it. */
static void refused(Bed *b, const char *why)
{
    char warning[JIT_NOTE];

    bed_use(b, 21, JIT_COMPILED);
    CHECK_HAS(b->report.note, why);
    CHECK(jit_warning(b->jit, warning));
    CHECK_HAS(warning, why);
    CHECK_HAS(warning, "set WEFT_CACHE_DIR");
    bed_use(b, 21, JIT_ON_DISK); /* the private one */
    CHECK(!jit_warning(b->jit, warning));
    CHECK_EQ(bed_count(bed_path(b, "tmp"), ""), 1);
    bed_free(b);
    CHECK_EQ(bed_count(bed_path(b, "tmp"), ""), 0);
    CHECK_EQ(bed_count(bed_cache(b), ""), 0);
}

/* Made anew with this mode, and used. */
static void with_mode(Bed *b, mode_t mode, const char *why)
{
    rmdir(bed_cache(b));
    CHECK(mkdir(bed_cache(b), 0700) == 0 && chmod(bed_cache(b), mode) == 0);
    CHECK_EQ(bed_again(b), ST_OK);
    refused(b, why);
}

TEST(a_directory_that_others_can_write_is_not_used)
{
    Bed b;

    bed_init(&b, "modes", "");
    with_mode(&b, 0720, "others can write to it");
    with_mode(&b, 0770, "others can write to it");
    with_mode(&b, 0702, "others can write to it");
    with_mode(&b, 01777, "others can write to it");
}

TEST(a_directory_of_another_user_is_not_used)
{
    Bed b;

    bed_init(&b, "owner", "");
    CHECK(mkdir(bed_cache(&b), 0700) == 0);
    if (geteuid() == 0) {
        CHECK(chown(bed_cache(&b), 65534, 65534) == 0);
        CHECK_EQ(bed_again(&b), ST_OK);
        refused(&b, "belongs to another user");
    }
    CHECK_EQ(bed_again(&b), ST_OK);
    b.inject.euid_plus = 1; /* now nothing is ours, not even what we make */
    CHECK_EQ(bed_fails(&b, 1), ST_IO);
    CHECK_HAS(b.err.msg, "no room to compile in ");
    bed_free(&b);
    bed_remove(bed_path(&b, "tmp"));
}

TEST(a_link_or_a_file_is_not_used_as_directory)
{
    Bed b;

    bed_init(&b, "link", "");
    CHECK(mkdir(bed_path(&b, "target"), 0700) == 0);
    CHECK(symlink("target", bed_cache(&b)) == 0);
    refused(&b, "symbolic link");
    bed_set("WEFT_CACHE_DIR", bed_path(&b, "cache//")); /* a slash behind would follow it */
    bed_again(&b);
    refused(&b, "symbolic link");
    CHECK_EQ(bed_count(bed_path(&b, "target"), ""), 0);
    CHECK(unlink(bed_cache(&b)) == 0);
    bed_put(bed_cache(&b), "x", 1);
    bed_again(&b);
    refused(&b, "no directory");
    bed_set("WEFT_CACHE_DIR", bed_path(&b, "cache/below"));
    bed_again(&b);
    refused(&b, "no directory");
}

TEST(a_directory_that_others_can_read_is_used)
{
    char warning[JIT_NOTE];
    Bed b;

    bed_init(&b, "readable", "");
    CHECK(mkdir(bed_cache(&b), 0755) == 0 && chmod(bed_cache(&b), 0755) == 0);
    bed_use(&b, 1, JIT_COMPILED);
    CHECK(!jit_warning(b.jit, warning));
    CHECK_EQ(bed_whole(&b, NULL), 1);
    bed_free(&b);
}

TEST(the_directory_is_made_for_us_alone)
{
    struct stat st;
    mode_t old = umask(0);
    Bed b;

    bed_init(&b, "made", "");
    bed_set("WEFT_CACHE_DIR", NULL);
    bed_again(&b);
    bed_use(&b, 1, JIT_COMPILED);
    umask(old);
    CHECK(stat(bed_path(&b, ".cache"), &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(stat(bed_path(&b, ".cache/weft"), &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(stat(bed_text("%s/.cache/weft/%s", b.root, b.report.key), &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    bed_free(&b);
}

/* A cache that can be read and not written, as on a read-only file system. */
TEST(a_read_only_cache_is_read)
{
    Bed b;

    bed_init(&b, "read-only", "");
    bed_use(&b, 1, JIT_COMPILED);
    bed_again(&b);
    inject_at(&b.inject, INJECT_RENAMEAT, b.inject.calls[INJECT_RENAMEAT] + 1, true, EROFS);
    bed_use(&b, 1, JIT_ON_DISK);
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_HAS(b.report.note, strerror(EROFS));
    bed_use(&b, 2, JIT_COMPILED);
    bed_free(&b);
}

TEST(a_full_cache_leaves_the_kernel_in_the_private_directory)
{
    Bed b;

    bed_init(&b, "full", "");
    CHECK(mkdir(bed_cache(&b), 0700) == 0);
    inject_at(&b.inject, INJECT_FSYNC, 1, false, ENOSPC);
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_HAS(b.report.note, bed_text("not kept in %s: %s", bed_cache(&b), strerror(ENOSPC)));
    CHECK_EQ(bed_count(bed_cache(&b), ""), 0);
    bed_use(&b, 1, JIT_ON_DISK);
    CHECK_EQ(bed_count(bed_own(&b), ""), 1);
    bed_free(&b);
}

TEST(a_directory_that_cannot_be_synced_is_noted)
{
    Bed b;

    bed_init(&b, "no-sync", "");
    inject_at(&b.inject, INJECT_FSYNC, 2, false, EIO);
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_HAS(b.report.note, bed_text("could not be synced: %s", strerror(EIO)));
    bed_use(&b, 1, JIT_ON_DISK);
    b.inject.no_sync = false; /* once with the real thing */
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_STR(b.report.note, "");
    bed_free(&b);
}

static void make_old(const char *path, int64_t seconds)
{
    struct utimbuf when = { .modtime = time(NULL) - seconds, .actime = 0 };

    CHECK(utime(path, &when) == 0);
}

TEST(what_killed_processes_left_is_swept_when_nobody_holds_it_or_it_is_old)
{
    enum { HOUR = 3600, DAY = 24 * HOUR };
    static const struct {
        const char *end;
        int64_t age;
        bool stays;
    } cases[] = {
        { ".0123456789abcdef.tmp", HOUR + 60, false },
        { ".0123456789abcdee.tmp", HOUR - 60, true },
        { ".lock", 60, false }, /* nobody holds it */
        { ".c", 8 * DAY, false },
        { ".log", 8 * DAY, false },
        { "", 1000 * DAY, true },
        { "x.tmp", 1000 * DAY, false },
        { ".weft", 1000 * DAY, true },
    };
    const char *key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", *dir;
    int held;
    Bed b;

    bed_init(&b, "sweep", "");
    CHECK(mkdir(bed_cache(&b), 0700) == 0);
    bed_put(bed_path(&b, "cache/foreign.tmp"), "x", 1);
    make_old(bed_path(&b, "cache/foreign.tmp"), 1000 * DAY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = bed_text("%s/cache/%s%s", b.root, key, cases[i].end);

        bed_put(path, "x", 1);
        make_old(path, cases[i].age);
    }
    dir = bed_text("%s/cache/%s.aaaaaaaaaaaaaaaa.tmp", b.root, key); /* a scratch folder */
    CHECK(mkdir(dir, 0700) == 0);
    bed_put(bed_text("%s/kernel.c", dir), "x", 1);
    make_old(dir, 2 * HOUR);
    /* private directories: old, young and held, not ours, young, young with what was kept */
    for (int i = 0; i < 5; i++) {
        dir = bed_text("%s/tmp/weft-%s-%d", b.root, i != 2 ? "jit" : "other", i);
        CHECK(mkdir(dir, 0700) == 0 && mkdir(bed_text("%s/work", dir), 0700) == 0);
        bed_put(bed_text("%s/work/kernel.c", dir), "x", 1);
        if (i == 4)
            bed_put(bed_text("%s/%s.c", dir, key), "x", 1);
        make_old(dir, i == 0 || i == 2 ? 2 * HOUR : 60);
    }
    held = open(bed_path(&b, "tmp/weft-jit-1"), O_RDONLY | O_DIRECTORY);
    CHECK(held >= 0 && flock(held, LOCK_EX) == 0);
    bed_use(&b, 1, JIT_COMPILED);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = bed_text("%s/cache/%s%s", b.root, key, cases[i].end);

        CHECK_EQ(access(path, F_OK) == 0, cases[i].stays);
    }
    CHECK(access(bed_text("%s/cache/%s.aaaaaaaaaaaaaaaa.tmp", b.root, key), F_OK) != 0);
    CHECK(access(bed_path(&b, "cache/foreign.tmp"), F_OK) == 0);
    CHECK(access(bed_path(&b, "tmp/weft-jit-0"), F_OK) != 0);
    CHECK(access(bed_path(&b, "tmp/weft-jit-1/work/kernel.c"), F_OK) == 0);
    CHECK(access(bed_path(&b, "tmp/weft-other-2/work/kernel.c"), F_OK) == 0);
    CHECK(access(bed_path(&b, "tmp/weft-jit-3"), F_OK) != 0);
    CHECK(access(bed_path(&b, "tmp/weft-jit-4/work"), F_OK) != 0);
    CHECK_EQ(bed_count(bed_path(&b, "tmp/weft-jit-4"), ".c"), 1);
    close(held);
    bed_free(&b);
}

TEST(who_compiles_holds_a_lock_and_who_waits_too_long_goes_on)
{
    const char *name;
    int fd;
    Bed b;

    bed_init(&b, "lock", "");
    bed_use(&b, 1, JIT_COMPILED);
    CHECK(unlink(bed_entry(&b)) == 0);
    name = bed_text("%s.lock", bed_entry(&b));
    fd = open(name, O_RDWR | O_CREAT, 0600); /* "another process": locks belong to open files */
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    b.inject.clock_speed = 500;
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_HAS(b.report.note, "waited 60 s");
    CHECK_EQ(bed_whole(&b, NULL), 1); /* published all the same */
    CHECK(access(name, F_OK) == 0);   /* not ours to remove */
    b.inject.clock_speed = 0;
    CHECK(unlink(bed_entry(&b)) == 0);
    close(fd); /* the holder died: its file stays, its lock does not */
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_STR(b.report.note, "");
    CHECK(access(name, F_OK) != 0);
    bed_free(&b);
}

/* The holder publishes and removes its lock file while another waits for it. */
TEST(who_waited_finds_the_entry)
{
    const char *name, *entry, *away;
    int fd, status;
    pid_t pid;
    static Bed b; /* so that memcheck finds what it points to in the child as well */

    bed_init(&b, "waited", "");
    bed_use(&b, 1, JIT_COMPILED);
    entry = bed_entry(&b);
    away = bed_path(&b, "away");
    name = bed_text("%s.lock", entry);
    CHECK(rename(entry, away) == 0);
    fd = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    pid = fork();
    if (pid == 0) {
        usleep(100000);
        _exit(rename(away, entry) != 0 || unlink(name) != 0 || flock(fd, LOCK_UN) != 0);
    }
    bed_use(&b, 1, JIT_ON_DISK);
    CHECK(b.report.ms > 50);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_EQ(bed_count(bed_cache(&b), ""), 1);
    close(fd);
    bed_free(&b);
}

TEST(without_locks_it_works_too)
{
    Bed b;

    bed_init(&b, "no-locks", "");
    inject_at(&b.inject, INJECT_FLOCK, 1, true, ENOLCK);
    bed_use(&b, 1, JIT_COMPILED);
    CHECK_HAS(b.report.note, bed_text("no lock: %s", strerror(ENOLCK)));
    inject_at(&b.inject, INJECT_FLOCK, b.inject.calls[INJECT_FLOCK] + 1, false, EINTR);
    bed_use(&b, 2, JIT_COMPILED);
    CHECK_STR(b.report.note, "");
    bed_free(&b);
}

TEST(the_cache_can_be_shown_verified_and_cleared)
{
    JitEntry *e = NULL;
    int n = -1;
    Arena a;
    Bed b;

    bed_init(&b, "show", "");
    arena_init(&a, &b.inject.os, &b.err);
    CHECK_EQ(CATCH(&b.err, e = jit_cache_list(b.jit, &a, &n)), ST_OK);
    CHECK_EQ(n, 0);
    for (int i = 0; i < 20; i++)
        bed_use(&b, i, JIT_COMPILED);
    make_old(bed_entry(&b), 100);
    CHECK(truncate(bed_entry(&b), 99) == 0);
    bed_put(bed_path(&b, "cache/foreign"), "x", 1);
    bed_put(bed_text("%s.log", bed_entry(&b)), "x", 1);
    CHECK_EQ(CATCH(&b.err, e = jit_cache_list(b.jit, &a, &n)), ST_OK);
    CHECK_EQ(n, 20);
    for (int i = 0; i < n; i++) {
        const char *why = jit_cache_check(b.jit, &b.err, &e[i]);
        bool bad = strcmp(e[i].key, b.report.key) == 0;

        CHECK(i == 0 || strcmp(e[i - 1].key, e[i].key) < 0);
        CHECK_EQ(why == NULL, !bad);
        CHECK(bad ? e[i].bytes == 99 : e[i].bytes > 10000);
        CHECK(e[i].age >= 0 && e[i].age < 200);
    }
    CHECK_STR(jit_cache_check(b.jit, &b.err, &(JitEntry){ .key = "none" }), strerror(ENOENT));
    CHECK_EQ(jit_cache_clear(b.jit, &b.err), 20);
    CHECK_EQ(bed_count(bed_cache(&b), ""), 1); /* what is not ours stays */
    bed_use(&b, 3, JIT_COMPILED);
    inject_at(&b.inject, INJECT_UNLINKAT, b.inject.calls[INJECT_UNLINKAT] + 1, true, EROFS);
    CHECK_EQ(CATCH(&b.err, jit_cache_clear(b.jit, &b.err)), ST_IO);
    CHECK_HAS(b.err.msg, "cannot remove ");
    arena_free(&a);
    bed_free(&b);
    bed_remove(bed_path(&b, "tmp"));
}

TEST(a_cache_that_cannot_be_used_is_shown_empty)
{
    char warning[JIT_NOTE];
    JitEntry none = { .key = "" };
    int n = -1;
    Arena a;
    Bed b;

    bed_init(&b, "show-none", "");
    bed_put(bed_cache(&b), "x", 1);
    arena_init(&a, &b.inject.os, &b.err);
    CHECK_EQ(CATCH(&b.err, jit_cache_list(b.jit, &a, &n)), ST_OK);
    CHECK_EQ(n, 0);
    CHECK(jit_warning(b.jit, warning));
    CHECK_EQ(jit_cache_clear(b.jit, &b.err), 0);
    CHECK_STR(jit_cache_check(b.jit, &b.err, &none), "the cache cannot be used");
    arena_free(&a);
    bed_free(&b);
}
