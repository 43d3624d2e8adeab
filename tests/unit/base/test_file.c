/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/base/file.c and os.c: whole files, and every OS call of them made to fail. */
#include "base/base.h"
#include "fail/inject.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Bed {
    Err err;
    Inject inject;
    Arena arena;
} Bed;

static void bed_open(Bed *b)
{
    memset(&b->err, 0, sizeof b->err);
    inject_init(&b->inject, &os_libc);
    arena_init(&b->arena, &b->inject.os, &b->err);
}

static void bed_close(Bed *b)
{
    arena_free(&b->arena);
    CHECK(inject_is_clean(&b->inject));
}

/* A folder of its own, so that a temporary left behind is seen. */
static const char *own_folder(const char *name)
{
    const char *dir = test_path(name);

    CHECK(mkdir(dir, 0700) == 0);
    return dir;
}

static int count_files(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;

    CHECK(d != NULL);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

static bool has_content(const char *path, const char *want, size_t n)
{
    char *buf = malloc(n + 1);
    FILE *f = fopen(path, "rb");
    size_t got;
    bool same;

    CHECK(f != NULL && buf != NULL);
    got = fread(buf, 1, n + 1, f);
    same = got == n && memcmp(buf, want, n) == 0;
    fclose(f);
    free(buf);
    return same;
}

TEST(a_written_file_reads_back)
{
    static char data[200000];
    const char *path = test_path("back");
    uint64_t seed = 1;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)test_random(&seed);
    for (size_t n = 0; n <= sizeof data; n = n * 3 + 1)
        for (size_t piece = 0; piece < 3; piece++) { /* whole, and in partial transfers */
            Bed b;
            Bytes got;

            bed_open(&b);
            b.inject.piece = piece * 1000;
            file_write(&b.arena, path, data, n);
            got = file_read(&b.arena, path, INT64_MAX);
            CHECK_EQ(got.n, n);
            CHECK(memcmp(got.p, data, n) == 0);
            bed_close(&b);
        }
}

TEST(a_file_at_the_limit_is_read_and_one_byte_more_refused)
{
    const char *path = test_path("limit");
    Bed b;
    Bytes got = { 0 };

    bed_open(&b);
    file_write(&b.arena, path, "0123456789", 10);
    CHECK_EQ(CATCH(&b.err, got = file_read(&b.arena, path, 10)), ST_OK);
    CHECK_EQ(got.n, 10);
    CHECK_EQ(CATCH(&b.err, file_read(&b.arena, path, 9)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "limit of 9 bytes");
    CHECK_HAS(b.err.msg, path);
    bed_close(&b);
}

TEST(what_cannot_be_read_says_why)
{
    Bed b;

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, file_read(&b.arena, test_path("none"), 10)), ST_IO);
    CHECK_HAS(b.err.msg, "none");
    CHECK_HAS(b.err.msg, strerror(ENOENT));
    CHECK_EQ(CATCH(&b.err, file_read(&b.arena, test_path(""), 10)), ST_IO);
    CHECK_HAS(b.err.msg, strerror(EISDIR));
    CHECK_EQ(CATCH(&b.err, file_read(&b.arena, "", 10)), ST_IO);
    bed_close(&b);
}

TEST(a_folder_or_a_missing_one_cannot_be_written)
{
    const char *dir = own_folder("write-folder");
    char inside[600];
    Bed b;

    bed_open(&b);
    snprintf(inside, sizeof inside, "%s/none/file", dir);
    CHECK_EQ(CATCH(&b.err, file_write(&b.arena, inside, "x", 1)), ST_IO);
    CHECK_HAS(b.err.msg, inside);
    snprintf(inside, sizeof inside, "%s/sub", dir);
    CHECK(mkdir(inside, 0700) == 0);
    CHECK_EQ(CATCH(&b.err, file_write(&b.arena, inside, "x", 1)), ST_IO);
    CHECK_EQ(count_files(dir), 1);
    bed_close(&b);
}

/* Standard input or output replaced by a file or pipe for the length of a test. */
static int replace_fd(int fd, int by)
{
    int saved = dup(fd);

    CHECK(saved >= 0 && dup2(by, fd) == fd);
    close(by);
    return saved;
}

static void restore_fd(int fd, int saved)
{
    dup2(saved, fd);
    close(saved);
}

TEST(a_pipe_on_standard_input_is_read_to_its_end)
{
    static char data[60000];
    int ends[2], saved;
    Bed b;
    Bytes got = { 0 };

    memset(data, 'w', sizeof data);
    CHECK(pipe(ends) == 0);
    CHECK_EQ(write(ends[1], data, sizeof data), sizeof data);
    close(ends[1]);
    saved = replace_fd(0, ends[0]);
    bed_open(&b);
    CATCH(&b.err, got = file_read(&b.arena, "-", 100000));
    restore_fd(0, saved);
    CHECK_EQ(b.err.code, ST_OK);
    CHECK_EQ(got.n, sizeof data);
    CHECK(memcmp(got.p, data, sizeof data) == 0);
    CHECK_EQ(b.inject.calls[INJECT_CLOSE], 0); /* standard input is not ours to close */
    bed_close(&b);
}

TEST(a_long_stream_grows_its_buffer_up_to_the_limit)
{
    Bed b;
    int64_t limit = 1 << 20;

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, file_read(&b.arena, "/dev/zero", limit)), ST_LIMIT);
    CHECK(b.inject.calls[INJECT_ALLOC] > 2 && b.inject.calls[INJECT_ALLOC] < 10);
    bed_close(&b);
}

TEST(each_growth_of_a_stream_may_fail)
{
    for (int64_t k = 1; k <= 5; k++) {
        Bed b;

        bed_open(&b);
        inject_at(&b.inject, INJECT_ALLOC, k, false, ENOMEM);
        CHECK_EQ(CATCH(&b.err, file_read(&b.arena, "/dev/zero", 1 << 22)), ST_NOMEM);
        CHECK_EQ(b.inject.failed, 1);
        bed_close(&b);
    }
}

TEST(a_dash_writes_to_standard_output)
{
    const char *path = test_path("stdout");
    int saved;
    Bed b;

    bed_open(&b);
    fflush(stdout);
    saved = replace_fd(1, open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    CATCH(&b.err, file_write(&b.arena, "-", "weft\n", 5));
    restore_fd(1, saved);
    CHECK_EQ(b.err.code, ST_OK);
    CHECK(has_content(path, "weft\n", 5));
    inject_at(&b.inject, INJECT_WRITE, 2, true, EPIPE);
    CHECK_EQ(CATCH(&b.err, file_write(&b.arena, "-", "weft\n", 5)), ST_IO);
    CHECK_HAS(b.err.msg, "standard output");
    CHECK_EQ(b.inject.calls[INJECT_CLOSE], 0);
    bed_close(&b);
}

TEST(an_interrupted_read_or_write_goes_on)
{
    const char *path = test_path("eintr");
    Bed b;
    Bytes got = { 0 };

    bed_open(&b);
    inject_at(&b.inject, INJECT_WRITE, 1, false, EINTR);
    CHECK_EQ(CATCH(&b.err, file_write(&b.arena, path, "abc", 3)), ST_OK);
    CHECK_EQ(b.inject.failed, 1);
    inject_at(&b.inject, INJECT_READ, 1, false, EINTR);
    CHECK_EQ(CATCH(&b.err, got = file_read(&b.arena, path, 10)), ST_OK);
    CHECK_EQ(b.inject.failed, 2);
    CHECK_EQ(got.n, 3);
    bed_close(&b);
}

static const int errnos[] = { EIO, ENOSPC, EACCES, EMFILE, EDQUOT };

/* One failing call somewhere in a write: the old content stays, no temporary, nothing open. */
static void write_fails(const char *dir, InjectKind kind, int64_t k, bool sticky, int code,
                        int64_t *failed)
{
    char path[600];
    Status status;
    Bed b;

    snprintf(path, sizeof path, "%s/file", dir);
    bed_open(&b);
    file_write(&b.arena, path, "old", 3);
    arena_free(&b.arena);
    bed_open(&b);
    b.inject.piece = 4;
    inject_at(&b.inject, kind, k, sticky, code);
    status = CATCH(&b.err, file_write(&b.arena, path, "new content", 11));
    *failed = b.inject.failed;
    if (status == ST_OK)
        CHECK(has_content(path, "new content", 11));
    else
        CHECK(has_content(path, "old", 3));
    /* the first open and close only look whether the path is a device */
    if (b.inject.failed > 0 && kind != INJECT_UNLINK && (k > 1 || kind > INJECT_CLOSE))
        CHECK_EQ(status, kind == INJECT_ALLOC ? ST_NOMEM : ST_IO);
    if (status == ST_IO)
        CHECK_HAS(b.err.msg, strerror(code));
    CHECK_EQ(count_files(dir), 1);
    bed_close(&b);
}

TEST(a_failing_write_keeps_the_old_file_and_leaves_no_temporary)
{
    const char *dir = own_folder("write-fails");

    for (InjectKind kind = 0; kind < INJECT_KINDS; kind++)
        for (size_t e = 0; e < sizeof errnos / sizeof *errnos; e++)
            for (int sticky = 0; sticky < 2; sticky++)
                for (int64_t k = 1, failed = 1; failed > 0; k++)
                    write_fails(dir, kind, k, sticky, errnos[e], &failed);
}

static ptrdiff_t write_nothing(const Os *os, int fd, const void *from, size_t n)
{
    (void)os, (void)fd, (void)from, (void)n;
    return 0;
}

TEST(a_write_that_moves_nothing_is_an_error_and_no_endless_loop)
{
    Os os = os_libc;
    Err err = { 0 };
    Arena arena;

    os.write = write_nothing;
    arena_init(&arena, &os, &err);
    CHECK_EQ(CATCH(&err, file_write(&arena, test_path("nothing"), "x", 1)), ST_IO);
    arena_free(&arena);
}

TEST(a_pipe_or_device_is_written_in_place_and_stays_what_it_is)
{
    const char *dir = own_folder("special");
    char path[600], got[8] = "";
    struct stat st;
    int fd;
    Bed b;

    snprintf(path, sizeof path, "%s/fifo", dir);
    CHECK(mkfifo(path, 0600) == 0);
    fd = open(path, O_RDONLY | O_NONBLOCK);
    CHECK(fd >= 0);
    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, file_write(&b.arena, path, "weft", 4)), ST_OK);
    CHECK_EQ(read(fd, got, sizeof got - 1), 4);
    CHECK_STR(got, "weft");
    CHECK(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    CHECK_EQ(count_files(dir), 1);
    for (InjectKind kind = INJECT_WRITE; kind <= INJECT_CLOSE; kind++) {
        inject_at(&b.inject, kind, b.inject.calls[kind] + 1, false, EIO);
        CHECK_EQ(CATCH(&b.err, file_write(&b.arena, path, "weft", 4)),
                 kind == INJECT_FSYNC ? ST_OK : ST_IO);
        CHECK(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    }
    close(fd);
    bed_close(&b);
}

TEST(a_failing_read_gives_a_status_and_closes_the_file)
{
    const char *path = test_path("read-fails");
    Bed b;

    bed_open(&b);
    file_write(&b.arena, path, "some content", 12);
    bed_close(&b);
    for (InjectKind kind = 0; kind < INJECT_KINDS; kind++)
        for (size_t e = 0; e < sizeof errnos / sizeof *errnos; e++)
            for (int64_t k = 1, failed = 1; failed > 0; k++) {
                Status status;

                bed_open(&b);
                b.inject.piece = 5;
                inject_at(&b.inject, kind, k, false, errnos[e]);
                status = CATCH(&b.err, file_read(&b.arena, path, 100));
                failed = b.inject.failed;
                if (failed > 0 && kind != INJECT_CLOSE) /* what was read is whole */
                    CHECK_EQ(status, kind == INJECT_ALLOC ? ST_NOMEM : ST_IO);
                if (status == ST_IO)
                    CHECK_HAS(b.err.msg, strerror(errnos[e]));
                bed_close(&b);
            }
}

TEST(the_size_of_a_bad_descriptor_is_an_error)
{
    int64_t bytes = 5;

    CHECK_EQ(os_libc.size(&os_libc, -1, &bytes), -1);
    CHECK_EQ(errno, EBADF);
    CHECK_EQ(bytes, -1);
}
