/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_sass: the interpreter of sm_80 machine code as a command, and its own tests. */
#include "gpu/sass/matrix.h"
#include "gpu/sass/sass.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: weft_sass FILE.cubin                     kernels and what an SM holds of them\n"
    "       weft_sass FILE.cubin KERNEL [OPTION] ARG...   runs one and counts its instructions\n"
    "       weft_sass test [-v | -t] [PART]          the tests of the interpreter itself\n"
    "options: -g X[,Y[,Z]]  blocks; -b X[,Y[,Z]]  threads of a block\n"
    "         -s BYTES      dynamic shared memory\n"
    "         -m MATRIX     rows96, rows160, deg32, skew, empty, long;\n"
    "                       steady: the slope between the first two\n"
    "         -seed N       draws the order of warps; -profile  counts of each instruction\n"
    "         -repeat N     runs it so often, and prints how fast the interpreter is\n"
    "ARG: i32:N, i64:N, f32:X, f64:X; in:N, inout:N, out:N: a buffer of so many floats;\n"
    "     ints:N: a buffer of four i32, each N;\n"
    "     start, coord, values: of the matrix.  N is a product such as rows*128 or, rounded up,\n"
    "     rows/8, of numbers and the matrix's rows, cols and nnz.\n";

typedef struct Job {
    const char *cubin, *kernel, *matrix, *grid, *block;
    char **arg;
    int args, dynamic, repeat;
    uint64_t seed;
    bool profile;
} Job;

typedef struct Result {
    SassCount count;
    int nnz;
    bool good;
} Result;

/* rows*128, nnz, rows/8: numbers and sizes, multiplied and divided from left to right, up. */
static int64_t number_of(const char *s, const Matrix *m)
{
    int64_t v = 1;
    char op = '*';

    for (;;) {
        char *end;
        int64_t x = strtoll(s, &end, 0);

        if (end == s) {
            const size_t n = strcspn(s, "*/,");

            x = strncmp(s, "rows", n) == 0   ? m->rows
                : strncmp(s, "cols", n) == 0 ? m->cols
                : strncmp(s, "nnz", n) == 0  ? m->nnz
                                             : -1;
            end += n;
        }
        if (x <= 0 && op == '/') {
            fprintf(stderr, "weft_sass: a division by %lld in %s\n", (long long)x, s);
            exit(2);
        }
        v = op == '*' ? v * x : (v + x - 1) / x;
        if (*end != '*' && *end != '/')
            return v;
        op = *end;
        s = end + 1;
    }
}

static void shape_of(const char *s, const Matrix *m, unsigned to[3])
{
    for (int d = 0; d < 3 && s != NULL; d++) {
        to[d] = (unsigned)number_of(s, m);
        s = strchr(s, ',');
        s += s != NULL;
    }
}

/* A buffer of small integers, which the caller frees. */
static float *drawn(size_t n)
{
    float *p = calloc(n + 1, sizeof *p);
    uint64_t state = 7;

    for (size_t k = 0; p != NULL && k < n; k++)
        p[k] = (float)(int)(test_random(&state) % 17) - 8;
    if (p == NULL)
        abort();
    return p;
}

static bool add_arg(SassGpu *gpu, SassParams *p, const char *s, const Matrix *m, float **own)
{
    const char *v = strchr(s, ':');
    const size_t n = v == NULL ? 0 : (size_t)(v++ - s);
    double d;

    if (strcmp(s, "start") == 0) {
        sass_param64(p, sass_buffer(gpu, s, m->start, (size_t)(m->rows + 1) * 4, SASS_INPUT));
    } else if (strcmp(s, "coord") == 0) {
        sass_param64(p, sass_buffer(gpu, s, m->coord, (size_t)m->nnz * 4, SASS_INPUT));
    } else if (strcmp(s, "values") == 0) {
        sass_param64(p, sass_buffer(gpu, s, m->value, (size_t)m->nnz * 4, SASS_INPUT));
    } else if (n == 4 && strncmp(s, "ints", 4) == 0) {
        *own = drawn(4);
        for (int k = 0; k < 4; k++)
            memcpy(*own + k, &(int32_t){ (int32_t)number_of(v, m) }, 4);
        sass_param64(p, sass_buffer(gpu, s, *own, 16, SASS_INPUT));
    } else if (n == 3 && strncmp(s, "i32", 3) == 0) {
        sass_param32(p, (uint32_t)number_of(v, m));
    } else if (n == 3 && strncmp(s, "i64", 3) == 0) {
        sass_param64(p, (uint64_t)number_of(v, m));
    } else if (n == 3 && strncmp(s, "f32", 3) == 0) {
        sass_param_float(p, strtof(v, NULL));
    } else if (n == 3 && strncmp(s, "f64", 3) == 0) {
        d = strtod(v, NULL);
        sass_param_bytes(p, &d, 8, 8);
    } else if (n > 0 && (strncmp(s, "in", n) == 0 || strncmp(s, "inout", n) == 0 ||
                         strncmp(s, "out", n) == 0)) {
        const size_t floats = (size_t)number_of(v, m);

        *own = drawn(floats);
        sass_param64(p, sass_buffer(gpu, s, *own, floats * 4,
                                    n == 2   ? SASS_INPUT
                                    : n == 3 ? SASS_FRESH
                                             : SASS_INOUT));
    } else {
        return false;
    }
    return true;
}

static Result run_job(const Sass *code, const Job *job, enum MatrixKind kind)
{
    const SassKernel *k = sass_kernel(code, job->kernel);
    Matrix m = matrix_make(kind, 1);
    SassGpu *gpu = sass_gpu();
    SassShape shape = { .dynamic = job->dynamic };
    SassParams params = { .size = 0 };
    float *own[64] = { NULL };
    Result r = { .nnz = m.nnz };

    shape_of(job->grid, &m, shape.grid);
    shape_of(job->block, &m, shape.block);
    for (int a = 0; a < job->args; a++)
        if (a == 64 || !add_arg(gpu, &params, job->arg[a], &m, &own[a])) {
            fprintf(stderr, "weft_sass: %s is no argument\n%s", job->arg[a], usage);
            exit(2);
        }
    sass_seed(gpu, job->seed);
    const clock_t begun = clock();

    for (int n = 0; n < (job->repeat > 0 ? job->repeat : 1); n++)
        r.good = sass_launch(gpu, k, &shape, &params);
    r.count = sass_count(gpu);
    if (job->repeat > 0)
        printf("%.2f million warp instructions a second of processor time\n",
               (double)r.count.all * job->repeat / ((double)(clock() - begun) / CLOCKS_PER_SEC) /
                   1e6);
    for (int e = 0; e < sass_errors(gpu); e++)
        fprintf(stderr, "%s\n", sass_error(gpu, e));
    if (job->profile)
        sass_profile(gpu, stdout);
    sass_gpu_free(gpu);
    for (int a = 0; a < 64; a++)
        free(own[a]);
    matrix_free(&m);
    return r;
}

static void print_line(const char *name, uint64_t n, double per)
{
    if (n == 0)
        return;
    printf("%-22s %12llu", name, (unsigned long long)n);
    if (per > 0)
        printf(" %10.3f", (double)n / per);
    printf("\n");
}

static void print_count(const SassCount *c, int nnz)
{
    static const char *const traffic[] = { "loads", "stores", "atomics" };
    char name[64];

    printf("%-22s %12s%s\n", "", "in all", nnz > 0 ? "  per entry" : "");
    print_line("warp instructions", c->all, nnz);
    for (int k = 0; k < SASS_CLASSES; k++) {
        snprintf(name, sizeof name, "  %s", sass_class_name[k]);
        print_line(name, c->of[k], nnz);
    }
    print_line("lanes", c->lanes, nnz);
    for (int k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "bytes of %s", traffic[k]);
        print_line(name, c->bytes[k], nnz);
        snprintf(name, sizeof name, "sectors of %s", traffic[k]);
        print_line(name, c->sectors[k], nnz);
    }
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "shared bytes, %s", traffic[k]);
        print_line(name, c->shared[k], nnz);
        snprintf(name, sizeof name, "wavefronts, %s", traffic[k]);
        print_line(name, c->waves[k], nnz);
    }
    print_line("diverging branches", c->diverged, nnz);
}

/* The difference of two counts, class by class. */
static SassCount slope(const SassCount *a, const SassCount *b)
{
    SassCount d = *a;
    uint64_t *to = (uint64_t *)&d;
    const uint64_t *from = (const uint64_t *)b;

    for (size_t k = 0; k < sizeof d / sizeof *to; k++)
        to[k] -= from[k];
    return d;
}

static int run_command(const Sass *code, const Job *job)
{
    enum MatrixKind kind = 0;
    Result r;

    if (sass_kernel(code, job->kernel) == NULL) {
        fprintf(stderr, "weft_sass: there is no kernel %s in %s\n", job->kernel, job->cubin);
        return 2;
    }
    if (strcmp(job->matrix, "steady") == 0) {
        const Result low = run_job(code, job, MATRIX_96);

        r = run_job(code, job, MATRIX_160);
        r.count = slope(&r.count, &low.count);
        r.nnz -= low.nnz;
        r.good &= low.good;
    } else {
        while (kind < MATRICES && strcmp(matrix_name[kind], job->matrix) != 0)
            kind++;
        if (kind == MATRICES) {
            fprintf(stderr, "weft_sass: there is no matrix %s\n%s", job->matrix, usage);
            return 2;
        }
        r = run_job(code, job, kind);
    }
    print_count(&r.count, r.nnz);
    return r.good ? 0 : 1;
}

static int list_kernels(const Sass *code)
{
    const SassKernel *k;
    int unknown;

    printf("%-32s %9s %6s %6s %6s  warps of an SM with 128, 256, 512 threads a block\n", "kernel",
           "registers", "stack", "shared", "spills");
    for (int n = 0; (k = sass_kernel_at(code, n)) != NULL; n++) {
        const SassUse u = sass_use(k);

        if (u.registers >= 0)
            printf("%-32s %9d %6d %6d %6d  %d, %d, %d\n", sass_name(k), u.registers, u.stack,
                   u.shared, u.spills, sass_warps(k, 128, 0), sass_warps(k, 256, 0),
                   sass_warps(k, 512, 0));
    }
    unknown = sass_unknown(code, stdout);
    if (unknown > 0)
        printf("%d instructions are not known to the interpreter\n", unknown);
    return unknown > 0;
}

int main(int argc, char **argv)
{
    Job job = { .matrix = "deg32", .grid = "1", .block = "32" };
    char why[SASS_TEXT];
    Sass *code;
    int code_of;

    if (argc >= 2 && strcmp(argv[1], "test") == 0)
        return test_main(argc - 1, argv + 1);
    for (int a = 1; a < argc; a++) {
        const bool more = a + 1 < argc;

        if (strcmp(argv[a], "-profile") == 0)
            job.profile = true;
        else if (more && strcmp(argv[a], "-g") == 0)
            job.grid = argv[++a];
        else if (more && strcmp(argv[a], "-b") == 0)
            job.block = argv[++a];
        else if (more && strcmp(argv[a], "-m") == 0)
            job.matrix = argv[++a];
        else if (more && strcmp(argv[a], "-s") == 0)
            job.dynamic = (int)strtol(argv[++a], NULL, 0);
        else if (more && strcmp(argv[a], "-repeat") == 0)
            job.repeat = (int)strtol(argv[++a], NULL, 0);
        else if (more && strcmp(argv[a], "-seed") == 0)
            job.seed = strtoull(argv[++a], NULL, 0);
        else if (job.cubin == NULL)
            job.cubin = argv[a];
        else if (job.kernel == NULL)
            job.kernel = argv[a], job.arg = argv + a + 1;
        else
            argv[(job.arg - argv) + job.args++] = argv[a]; /* options may stand between them */
    }
    if (job.cubin == NULL || *job.cubin == '-') {
        fputs(usage, stderr);
        return 2;
    }
    code = sass_load(job.cubin, why);
    if (code == NULL) {
        fprintf(stderr, "weft_sass: %s\n", why);
        return 1;
    }
    code_of = job.kernel == NULL ? list_kernels(code) : run_command(code, &job);
    sass_free(code);
    return code_of;
}
