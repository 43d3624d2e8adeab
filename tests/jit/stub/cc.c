/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A compiler for tests of the JIT, fast and obedient:
 *
 *     cc [MODE...] ... -o OUTPUT ...
 *
 * It reads its source from standard input, takes the key and the text "value NNNNNNNN" out of it,
 * and writes the library beside its own program (TEMPLATE.so) with both put in.  A word that begins
 * with "stub-" makes it behave otherwise; see main. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
static char source[1 << 16], library[1 << 18];

static size_t read_all(int fd, char *to, size_t most)
{
    size_t n = 0;
    ssize_t got;

    while (n < most && (got = read(fd, to + n, most - n)) > 0)
        n += (size_t)got;
    return n;
}

static void write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);

        if (put <= 0)
            exit(9);
        p += put;
        n -= (size_t)put;
    }
}

/* Copies n bytes of the source, behind the mark, to each place in the library with a row of c. */
static void put_in(size_t size, const char *mark, char c, size_t n)
{
    const char *from = strstr(source, mark);
    char row[65] = "";

    if (from == NULL)
        exit(8);
    memset(row, c, n);
    for (size_t i = 0; i + n <= size; i++)
        if (memcmp(library + i, row, n) == 0)
            memcpy(library + i, from + strlen(mark), n);
}

static size_t make_library(const char *self)
{
    char path[4096];
    size_t n;
    int fd;

    snprintf(path, sizeof path, "%s.so", self);
    fd = open(path, O_RDONLY);
    n = read_all(fd, library, sizeof library);
    close(fd);
    put_in(n, "weft_jit_key[] = \"", 'K', 64);
    put_in(n, "value ", 'V', 8);
    return n;
}

/* Arguments, environment and open descriptors, one a line. */
static void report(const char *path, char **argv)
{
    FILE *f = fopen(path, "w");
    DIR *d;
    char cwd[4096];

    if (f == NULL)
        exit(7);
    for (; *argv != NULL; argv++)
        fprintf(f, "arg %s\n", *argv);
    for (char **e = environ; *e != NULL; e++)
        fprintf(f, "env %s\n", *e);
    fprintf(f, "cwd %s\n", getcwd(cwd, sizeof cwd));
    fprintf(f, "group %s\n", getpgrp() == getpid() ? "own" : "shared");
    d = opendir("/proc/self/fd");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != fileno(f) && atoi(e->d_name) != dirfd(d))
            fprintf(f, "fd %s\n", e->d_name);
    fclose(f);
}

static void say(const char *text)
{
    write_all(2, text, strlen(text));
}

static void flood(void)
{
    for (int i = 0; i < 20000; i++)
        say("the same words again and again, more than anybody wants to keep\n");
}

static void count(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    write_all(fd, "x", 1);
    close(fd);
}

static const char *after(const char *s, const char *head)
{
    return strncmp(s, head, strlen(head)) == 0 ? s + strlen(head) : NULL;
}

int main(int argc, char **argv)
{
    const char *output = "/dev/null", *v;
    size_t size, cut = 0;

    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "-o") == 0)
            output = argv[i + 1];
    read_all(0, source, sizeof source - 1);
    size = make_library(argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "stub-fail") == 0) {
            say("kernel.c:1: error: \033[1mno such thing\nsecond line\n");
            return 1;
        } else if (strcmp(argv[i], "stub-flood") == 0) {
            flood();
        } else if (strcmp(argv[i], "stub-babble") == 0) {
            for (int k = 0; k < 100; k++)
                say("babble ");
            say("\177\n\n\n\n");
        } else if (strcmp(argv[i], "stub-die") == 0) {
            raise(SIGSEGV);
        } else if (strcmp(argv[i], "stub-hang") == 0) {
            sleep(1000);
        } else if (strcmp(argv[i], "stub-burn") == 0) {
            for (volatile unsigned n = 0;; n++)
                continue;
        } else if (strcmp(argv[i], "stub-hush-hang") == 0) {
            close(1), close(2), sleep(1000);
        } else if (strcmp(argv[i], "stub-child") == 0) {
            if (fork() == 0) /* lives on with the pipe open */
                sleep(1000);
        } else if (strcmp(argv[i], "stub-nothing") == 0) {
            return 0;
        } else if (strcmp(argv[i], "stub-huge") == 0) {
            return ftruncate(open(output, O_WRONLY | O_CREAT, 0600), (off_t)1 << 40) != 0;
        } else if (strcmp(argv[i], "stub-garbage") == 0) {
            memset(library, 'g', size);
        } else if (strcmp(argv[i], "stub-litter") == 0) {
            if (chdir(getenv("TMPDIR")) == 0)
                count("temporary.s");
        } else if ((v = after(argv[i], "stub-cut=")) != NULL) {
            cut = (size_t)atol(v);
        } else if ((v = after(argv[i], "stub-count=")) != NULL) {
            count(v);
        } else if ((v = after(argv[i], "stub-report=")) != NULL) {
            report(v, argv);
        } else if ((v = after(argv[i], "stub-sleep-us=")) != NULL) {
            usleep((useconds_t)atol(v));
        }
    }
    if (cut > 0 && cut < size)
        size = cut;
    write_all(open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600), library, size);
    return 0;
}
