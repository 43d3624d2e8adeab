/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The fuzzing driver.  `weft_fuzz READER N SEED` gives the reader N inputs, each some good input
 * changed at random; input k depends on SEED and k alone.  A child process runs them while its
 * parent watches: a child that dies, or works on one input for more than two seconds of processor
 * time or a minute on the clock, is a failure, its input is kept in ./fuzz-READER-K.input, and another child goes on after it.  `weft_fuzz READER FILE`
 * runs one kept input.  Ends with "fuzz READER: N inputs, M accepted, K failures". */
#include "fuzz/fuzz.h"
#include "unit/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One row a reader. */
static const struct Reader {
    const char *name;
    FuzzRun *run;
    FuzzSeed *seed;
    FuzzMend *mend;     /* or NULL */
    FuzzChange *change; /* or NULL */
} readers[] = {
    { "ir", fuzz_ir, fuzz_ir_seed, NULL, fuzz_ir_change },
    { "mtx", fuzz_mtx, fuzz_mtx_seed, NULL, NULL },
    { "npy", fuzz_npy, fuzz_npy_seed, fuzz_npy_mend, NULL },
    { "npz", fuzz_npz, fuzz_npz_seed, fuzz_npz_mend, NULL },
    { "xyz", fuzz_xyz, fuzz_xyz_seed, NULL, NULL },
    { "inflate", fuzz_inflate, fuzz_inflate_seed, NULL, NULL },
};
typedef struct Reader Reader;

enum { MAX_SEEDS = 64, MAX_FAILURES = 10, HANG_MS = 2000, STILL_MS = 60000 };

typedef struct Input {
    size_t n;
    uint8_t p[FUZZ_MAX];
} Input;

/* What the child tells its parent; in memory that both see. */
typedef struct Shared {
    volatile int64_t next; /* the input that is being run */
    volatile int64_t accepted;
    Input input;
} Shared;

_Noreturn void fuzz_abort(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
    abort();
}

static size_t below(uint64_t *rng, size_t n)
{
    return n == 0 ? 0 : (size_t)(test_random(rng) % n);
}

/* Replaces `cut` bytes at `at` by the n bytes of p, if they fit. */
static void splice(Input *in, size_t at, size_t cut, const void *p, size_t n)
{
    if (in->n - cut + n > FUZZ_MAX)
        return;
    memmove(in->p + at + n, in->p + at + cut, in->n - at - cut);
    if (n > 0)
        memcpy(in->p + at, p, n);
    in->n += n - cut;
}

static void put_number(uint64_t *rng, Input *in)
{
    static const uint64_t magic[] = { 0,          1,          2,          0x7f,        0x80,
                                      0xff,       0x100,      0x7fff,     0xffff,      0x10000,
                                      0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, INT64_MAX,
                                      UINT64_MAX, 16,         17,         46,          64 };
    size_t size = (size_t)1 << below(rng, 4), at = below(rng, in->n);
    uint64_t v = magic[below(rng, sizeof magic / sizeof *magic)];

    for (size_t i = 0; i < size && at + i < in->n; i++)
        in->p[at + i] = (uint8_t)(v >> 8 * i);
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* The next run of such bytes becomes one of the n texts. */
static void put_text(uint64_t *rng, Input *in, bool (*is)(uint8_t), const char *const *texts,
                     size_t n)
{
    const char *text = texts[below(rng, n)];
    size_t at = below(rng, in->n), cut = 0;

    while (at < in->n && !is(in->p[at]))
        at++;
    while (at + cut < in->n && is(in->p[at + cut]))
        cut++;
    splice(in, at, cut, text, strlen(text));
}

static const char *const numbers[] = { "0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "10",
                                       "65536",
                                       "1e9",
                                       "nan",
                                       "-inf",
                                       "0.1",
                                       "1e-400",
                                       "4294967296",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "99999999999999999999",
                                       "1.7976931348623157e308",
                                       "12345678901234567e-20" };
static const char *const words[] = { "coordinate", "array",     "real",
                                     "integer",    "pattern",   "complex",
                                     "general",    "symmetric", "skew-symmetric",
                                     "hermitian",  "True",      "False",
                                     "f",          "i",         "u",
                                     "b",          "O",         "V",
                                     "descr",      "shape",     "fortran_order",
                                     "npy",        "" };

static void change(uint64_t *rng, Input *in, const Input *other)
{
    static const char signs[] = " \t\r\n%'\"(){}[],:<>=|+-.eE0123456789";
    size_t at = below(rng, in->n), n = 1 + below(rng, 1 + below(rng, 16));
    uint8_t noise[16];

    n = n < in->n - at ? n : in->n - at;
    switch (below(rng, 13)) {
    case 0:
    case 1: in->p[at] = (uint8_t)(in->p[at] ^ 1u << below(rng, 8)); break;
    case 2: in->p[at] = (uint8_t)test_random(rng); break;
    case 3: in->p[at] = (uint8_t)signs[below(rng, sizeof signs - 1)]; break;
    case 4: in->p[at] = (uint8_t)(in->p[at] + below(rng, 9) - 4); break;
    case 5:
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)test_random(rng);
        splice(in, at, 0, noise, n);
        break;
    case 6: splice(in, at, n, NULL, 0); break;
    case 7: /* a piece twice */
        memcpy(noise, in->p + at, n);
        splice(in, at, 0, noise, n);
        break;
    case 8: put_number(rng, in); break;
    case 9:
    case 10: put_text(rng, in, is_digit, numbers, sizeof numbers / sizeof *numbers); break;
    case 11: put_text(rng, in, is_letter, words, sizeof words / sizeof *words); break;
    default: /* goes on as another input does */
        n = below(rng, other->n);
        splice(in, at, in->n - at, other->p + n, other->n - n);
    }
}

typedef struct Corpus {
    int n;
    Input seed[MAX_SEEDS];
} Corpus;

static void make_input(const Reader *r, const Corpus *corpus, uint64_t seed, int64_t k, Input *in)
{
    uint64_t rng = seed * 0x9e3779b97f4a7c15u ^ (uint64_t)k;
    const Input *other = &corpus->seed[below(&rng, (size_t)corpus->n)];
    int changes = 1;

    *in = corpus->seed[below(&rng, (size_t)corpus->n)];
    while (changes < 16 && below(&rng, 2) == 0)
        changes++;
    for (; changes > 0 && in->n > 0; changes--)
        if (r->change != NULL && below(&rng, 8) > 0)
            in->n = r->change(&rng, in->p, in->n);
        else
            change(&rng, in, other);
    if (below(&rng, 64) == 0)
        in->n = below(&rng, in->n + 1);
    if (r->mend != NULL && below(&rng, 2) == 0)
        r->mend(in->p, in->n);
}

static int run_one(const Reader *r, const Input *in)
{
    uint8_t *block = malloc(in->n > 0 ? in->n : 1);
    int accepted;

    FUZZ_CHECK(block != NULL);
    memcpy(block, in->p, in->n);
    accepted = r->run(block, in->n);
    free(block);
    return accepted;
}

static void child(const Reader *r, const Corpus *corpus, uint64_t seed, int64_t n, Shared *s)
{
    for (; s->next < n; s->next++) {
        make_input(r, corpus, seed, s->next, &s->input);
        s->accepted += run_one(r, &s->input);
    }
}

/* Milliseconds of processor time of the child: they say the same on a busy machine. */
static int64_t child_ms(pid_t pid)
{
    struct timespec t;
    clockid_t id;

    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for the child; false when it had to be stopped. */
static bool watch(pid_t pid, const Shared *s, int *status)
{
    int64_t last = -1, since = 0;
    int still = 0;

    while (waitpid(pid, status, WNOHANG) == 0) {
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        still += 20;
        if (s->next != last) {
            last = s->next;
            since = child_ms(pid);
            still = 0;
        }
        if (child_ms(pid) - since > HANG_MS || still > STILL_MS) {
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return false;
        }
    }
    return true;
}

static void keep(const Reader *r, const Shared *s, const char *why)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "fuzz-%s-%lld.input", r->name, (long long)s->next);
    f = fopen(path, "wb");
    if (f != NULL) {
        fwrite(s->input.p, 1, s->input.n, f);
        fclose(f);
    }
    printf("fuzz %s: input %lld %s; kept in %s\n", r->name, (long long)s->next, why, path);
}

static int fuzz(const Reader *r, const Corpus *corpus, int64_t n, uint64_t seed)
{
    Shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0;

    FUZZ_CHECK(s != MAP_FAILED);
    while (s->next < n && failures < MAX_FAILURES) {
        int status;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        FUZZ_CHECK(pid >= 0);
        if (pid == 0) {
            child(r, corpus, seed, n, s);
            exit(0); /* not _exit: the sanitizer looks for leaks here */
        }
        if (!watch(pid, s, &status))
            keep(r, s, "took more than 2 s");
        else if (s->next < n)
            keep(r, s, "crashed");
        else if (status != 0)
            printf("fuzz %s: the process failed at its end; memory was lost\n", r->name);
        else
            break;
        failures++;
        s->next++;
    }
    printf("fuzz %s: %lld inputs, %lld accepted, %d failures\n", r->name,
           (long long)(s->next < n ? s->next : n), (long long)s->accepted, failures);
    munmap(s, sizeof *s);
    return failures > 0;
}

static int replay(const Reader *r, const char *path)
{
    static Input in;
    FILE *f = fopen(path, "rb");

    if (f == NULL) {
        fprintf(stderr, "weft_fuzz: cannot open %s\n", path);
        return 2;
    }
    in.n = fread(in.p, 1, sizeof in.p, f);
    fclose(f);
    printf("fuzz %s: %s is %s\n", r->name, path, run_one(r, &in) ? "accepted" : "refused");
    return 0;
}

/* A seed that its own reader refuses would test nothing. */
static void read_seeds(const Reader *r, Corpus *corpus)
{
    for (; corpus->n < MAX_SEEDS; corpus->n++) {
        Input *in = &corpus->seed[corpus->n];
        int n = r->seed(corpus->n, in->p);

        if (n < 0)
            break;
        in->n = (size_t)n;
        if (!run_one(r, in)) {
            printf("fuzz %s: seed %d is refused\n", r->name, corpus->n);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static Corpus corpus;
    char *end = NULL;
    long long n;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: weft_fuzz READER N [SEED]\n       weft_fuzz READER FILE\n");
        return 2;
    }
    n = strtoll(argv[2], &end, 10);
    for (size_t k = 0; k < sizeof readers / sizeof *readers; k++) {
        if (strcmp(readers[k].name, argv[1]) != 0)
            continue;
        if (*end != 0)
            return replay(&readers[k], argv[2]);
        read_seeds(&readers[k], &corpus);
        return fuzz(&readers[k], &corpus, n, argc == 4 ? strtoull(argv[3], NULL, 10) : test_seed());
    }
    fprintf(stderr, "weft_fuzz: there is no reader %s\n", argv[1]);
    return 2;
}
