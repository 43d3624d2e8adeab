/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_count: the CUDA text of a program, compiled by nvcc and run without a GPU, its host's part
 * too: random data, results against those of the library on this machine, and counts. */
#include "gpu/count/cudart.h"
#include "unit/test.h"
#include "weft.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: weft_count PROGRAM.weft [OPTION]... NAME=SIZE...\n"
    "       weft_count --o3 'conv; in1=...' [--grad] ...\n"
    "Runs the CUDA text of a program in the interpreter of sm_80 machine code, and compares with\n"
    "the library on this machine; with --o3, in f64.  Inputs are random\n"
    "between -1 and 1, or small integers; E.start=8 gives each row 8 entries, E.start=0,3,1 repeats\n"
    "these lengths; coordinates are drawn.\n"
    "options: --grad           the program's gradient by all of its inputs\n"
    "         --target T       cuda:sm_80, or another target that nvcc compiles for sm_80\n"
    "         --schedule TEXT  --exact (small integers, results bit for bit)\n"
    "         --bound X        the largest error, of the largest element; 1e-6, with --grad 5e-6\n"
    "         --per N          counts are divided by N\n"
    "         --seed N         order of warps and of lanes; --profile  counts of each instruction\n"
    "         --keep DIR       the text and the library stay there\n";

enum { MOST_ARGS = 256 };

typedef struct Job {
    const char *path, *o3, *target, *schedule, *keep;
    char **size;
    int sizes;
    bool grad, exact, profile;
    double bound, per;
    uint64_t seed;
} Job;

typedef struct Array { /* of the caller */
    weft_arg arg;
    int64_t shape[WEFT_MAX_NDIM], n, value; /* value: of a size */
    size_t bytes;
    void *host; /* as it is bound */
    void *device;
    int64_t *wide; /* structure as emitted functions take it */
} Array;

typedef struct Problem {
    weft_ctx *ctx;
    weft_prog *prog;
    weft_args *args;
    Array a[MOST_ARGS];
    int n;
    uint64_t state;
} Problem;

typedef int64_t Make(const int64_t *size, void *const *array, void *plan);
typedef int64_t RunPlan(void *const *array, const void *plan);
typedef int64_t Fault(const void *plan);
typedef void Free(void *plan);

static _Noreturn void stop(const char *fmt, ...)
{
    va_list list;

    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static void need(const Problem *p, weft_status s)
{
    if (s != WEFT_OK)
        stop("weft_count: %s", weft_message(p->ctx));
}

static const char *given(const Job *job, const char *name)
{
    const size_t n = strlen(name);

    for (int i = 0; i < job->sizes; i++)
        if (strncmp(job->size[i], name, n) == 0 && job->size[i][n] == '=')
            return job->size[i] + n + 1;
    return NULL;
}

static void open_problem(Problem *p, const Job *job)
{
    weft_prog *of;

    p->ctx = weft_ctx_new();
    if (p->ctx == NULL)
        stop("out of memory");
    need(p, job->o3 != NULL ? weft_prog_o3(p->ctx, job->o3, &p->prog)
                            : weft_prog_read(p->ctx, job->path, &p->prog));
    if (job->grad) {
        of = p->prog;
        need(p, weft_prog_grad(of, NULL, &p->prog));
        weft_prog_free(of);
    }
    if (job->schedule != NULL)
        need(p, weft_prog_schedule(p->prog, job->schedule));
    need(p, weft_prog_nargs(p->prog, &p->n));
    if (p->n > MOST_ARGS)
        stop("too many arguments");
    need(p, weft_args_new(p->prog, &p->args));
}

static size_t bytes_of(weft_type t)
{
    return t == WEFT_F16 || t == WEFT_BF16 ? 2 : t == WEFT_I32 || t == WEFT_F32 ? 4 : 8;
}

static const Array *array_named(const Problem *p, const char *name, size_t n, const char *end)
{
    for (int i = 0; i < p->n; i++)
        if (strncmp(p->a[i].arg.name, name, n) == 0 && strcmp(p->a[i].arg.name + n, end) == 0)
            return &p->a[i];
    return NULL;
}

/* "nodes + 1", "size(E)": numbers, sizes and counts of entries, added and multiplied from left to
 * right; -1: not known yet. */
static int64_t number_of(const Problem *p, const char *s)
{
    int64_t sum = 0;
    char op = '+';

    while (op != 0) {
        const bool entries = strncmp(s, "size(", 5) == 0;
        const char *from = s += entries ? 5 : 0;
        const size_t n = strcspn(s, " )");
        const Array *a = array_named(p, from, n, entries ? ".start" : "");
        int64_t v = strtoll(s, NULL, 10);

        if (*s < '0' || *s > '9') {
            if (a == NULL || (entries && a->wide == NULL))
                return -1;
            v = entries ? a->wide[a->n - 1] : a->value;
        }
        sum = op == '+' ? sum + v : op == '*' ? sum * v : sum - v;
        s += n + entries;
        op = *s == 0 ? 0 : s[1];
        s += op == 0 ? 0 : 3;
    }
    return sum;
}

static void fill_start(Array *a, const char *lengths)
{
    const char *s = lengths;

    for (int64_t i = 0, sum = 0; i < a->n; i++) {
        char *end;

        a->wide[i] = sum;
        sum += strtoll(s, &end, 10);
        s = *end == ',' ? end + 1 : lengths;
    }
}

static void fill_structure(Problem *p, const Job *job, Array *a)
{
    const char *how = given(job, a->arg.name), *bound = "";
    const size_t n = strlen(a->arg.name);
    int64_t most;

    if (n > 6 && strcmp(a->arg.name + n - 6, ".start") == 0) {
        fill_start(a, how != NULL ? how : "3,0,5");
        return;
    }
    need(p, weft_prog_bound(p->prog, a->arg.name, &bound));
    most = number_of(p, bound);
    if (most <= 0)
        stop("%s: no bound of its coordinates", a->arg.name);
    for (int64_t i = 0; i < a->n; i++)
        a->wide[i] = (int64_t)(test_random(&p->state) % (uint64_t)most);
}

static void fill_values(Problem *p, const Job *job, Array *a)
{
    for (int64_t i = 0; i < a->n; i++) {
        const double r = (double)(test_random(&p->state) >> 11) * 0x1p-53;
        const double x = job->exact ? floor(r * 9) - 4 : 2 * r - 1;

        if (a->arg.type == WEFT_F32)
            ((float *)a->host)[i] = (float)x;
        else if (a->arg.type == WEFT_F64)
            ((double *)a->host)[i] = x;
        else
            stop("%s: an input of this type is not drawn here", a->arg.name);
    }
}

/* False: its shape is not known yet. */
static bool make_array(Problem *p, const Job *job, Array *a)
{
    const char *text = "";
    weft_tensor t;

    if (a->arg.structure) {
        need(p, weft_prog_extent(p->prog, a->arg.name, 0, &text));
        a->shape[0] = number_of(p, text);
        if (a->shape[0] < 0)
            return false;
    } else if (weft_args_shape(p->args, a->arg.name, a->shape) != WEFT_OK) {
        return false;
    }
    a->n = 1;
    for (int d = 0; d < a->arg.ndim; d++)
        a->n *= a->shape[d];
    a->bytes = (size_t)a->n * bytes_of(a->arg.type);
    a->host = calloc(1, a->bytes + 8);
    a->wide = a->arg.structure ? calloc((size_t)a->n + 1, 8) : NULL;
    if (a->host == NULL)
        stop("out of memory");
    if (a->arg.structure) {
        fill_structure(p, job, a);
        a->arg.type = WEFT_I64;
        free(a->host);
        a->host = a->wide;
    } else if (a->arg.role != WEFT_OUTPUT) {
        fill_values(p, job, a);
    }
    t = (weft_tensor){ a->host, a->arg.type, a->arg.ndim, a->shape, NULL };
    need(p, weft_args_bind(p->args, a->arg.name, &t));
    return true;
}

/* Sizes, then the arrays, each when its shape follows from those before it. */
static void make_arrays(Problem *p, const Job *job)
{
    for (int i = 0; i < p->n; i++)
        need(p, weft_prog_arg(p->prog, i, &p->a[i].arg));
    for (int i = 0; i < p->n; i++) {
        const char *v = given(job, p->a[i].arg.name);

        if (p->a[i].arg.role != WEFT_SIZE)
            continue;
        if (v == NULL)
            stop("%s=? is missing", p->a[i].arg.name);
        p->a[i].value = strtoll(v, NULL, 10);
        need(p, weft_args_size(p->args, p->a[i].arg.name, p->a[i].value));
    }
    for (int left = MOST_ARGS, before; left > 0;) {
        before = left;
        left = 0;
        for (int i = 0; i < p->n; i++)
            if (p->a[i].arg.role != WEFT_SIZE && p->a[i].host == NULL)
                left += !make_array(p, job, &p->a[i]);
        if (left == before)
            stop("weft_count: %s", weft_message(p->ctx));
    }
}

/* ---- The text, with functions around it that are of one type for all programs. */

static const char *ctype_of(weft_type t)
{
    return t == WEFT_F64   ? "double"
           : t == WEFT_F32 ? "float"
           : t == WEFT_I64 ? "int64_t"
           : t == WEFT_I32 ? "int32_t"
                           : "uint16_t";
}

static void put_arguments(FILE *f, const Problem *p, bool plan)
{
    for (int i = 0; i < p->n; i++) {
        const weft_arg *a = &p->a[i].arg;

        if (a->role == WEFT_SIZE && plan)
            fprintf(f, ", size[%d]", i);
        else if (a->structure && plan)
            fprintf(f, ", (const int64_t *)array[%d]", i);
        else if (a->role != WEFT_SIZE && !a->structure && !plan)
            fprintf(f, ", (%s *)array[%d]", ctype_of(a->type), i);
    }
}

static void put_functions(FILE *f, const Problem *p, const char *name)
{
    fprintf(f,
            "\nextern \"C\" {\nint64_t weft_test_make(const int64_t *size, void *const *array,\n"
            "                       struct weft_plan_%s *plan)\n{\n"
            "    (void)size, (void)array;\n    return weft_plan_%s_make(0",
            name, name);
    put_arguments(f, p, true);
    fprintf(
        f,
        ", plan);\n}\nint64_t weft_test_run(void *const *array, const struct weft_plan_%s *plan)\n"
        "{\n    return weft_run_%s(0",
        name, name);
    put_arguments(f, p, false);
    fprintf(f,
            ", plan);\n}\nint64_t weft_test_fault(const struct weft_plan_%s *plan)\n"
            "{\n    return weft_fault_%s(0, plan);\n}\n"
            "void weft_test_free(struct weft_plan_%s *plan)\n{\n    weft_plan_%s_free(plan);\n}\n"
            "size_t weft_test_bytes = sizeof(struct weft_plan_%s);\n}\n",
            name, name, name, name, name);
}

/* The name of the program is in the text: struct weft_plan_NAME. */
static void name_of(const char *text, char to[128])
{
    const char *s = strstr(text, "weft_fault_");
    size_t n;

    if (s == NULL)
        stop("the text has no function weft_fault_NAME");
    s += strlen("weft_fault_");
    n = strcspn(s, " (");
    snprintf(to, 128, "%.*s", (int)n, s);
}

static void *compile(Problem *p, const Job *job)
{
    char dir[] = "/tmp/weft-cuda-XXXXXX", path[300], command[1000], name[128];
    const char *text, *to = job->keep;
    void *lib;
    FILE *f;

    need(p, weft_prog_emit(p->prog, job->target, WEFT_SOURCE, &text));
    name_of(text, name);
    if (to == NULL && (to = mkdtemp(dir)) == NULL)
        stop("no temporary folder");
    snprintf(path, sizeof path, "%s/k.cu", to);
    f = fopen(path, "w");
    if (f == NULL)
        stop("%s cannot be written", path);
    fputs(text, f);
    put_functions(f, p, name);
    fclose(f);
    snprintf(command, sizeof command,
             "nvcc -Werror all-warnings -arch=sm_80 -fmad=false -O3 --no-compress -cudart none "
             "-shared -Xcompiler -fPIC -o %s/k.so %s >&2",
             to, path);
    if (system(command) != 0)
        stop("nvcc failed");
    snprintf(path, sizeof path, "%s/k.so", to);
    lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL)
        stop("%s", dlerror());
    snprintf(command, sizeof command, "rm -rf %s", to);
    if (job->keep == NULL && system(command) != 0)
        stop("cannot remove %s", to);
    return lib;
}

/* ---- Runs and verdicts */

static void run_text(Problem *p, void *lib)
{
    void *host[MOST_ARGS] = { NULL }, *device[MOST_ARGS] = { NULL }, *plan;
    int64_t size[MOST_ARGS], fault;
    Make *make;
    RunPlan *run;
    Fault *told;
    Free *done;

    *(void **)&make = dlsym(lib, "weft_test_make");
    *(void **)&run = dlsym(lib, "weft_test_run");
    *(void **)&told = dlsym(lib, "weft_test_fault");
    *(void **)&done = dlsym(lib, "weft_test_free");
    plan = calloc(1, *(size_t *)dlsym(lib, "weft_test_bytes"));
    for (int i = 0; i < p->n; i++) {
        Array *a = &p->a[i];

        size[i] = a->value;
        host[i] = a->host;
        if (a->arg.role != WEFT_SIZE && !a->arg.structure)
            device[i] = a->device =
                cudart_memory(a->arg.role == WEFT_OUTPUT ? NULL : a->host, a->bytes);
    }
    fault = make(size, host, plan);
    if (fault == 0)
        fault = run(device, plan);
    if (fault == 0)
        fault = told(plan);
    if (fault != 0)
        stop("the text ends with fault %lld", (long long)fault);
    done(plan);
    free(plan);
}

static double value_at(const Array *a, const void *at, int64_t i)
{
    return a->arg.type == WEFT_F32   ? (double)((const float *)at)[i]
           : a->arg.type == WEFT_F64 ? ((const double *)at)[i]
           : a->arg.type == WEFT_I64 ? (double)((const int64_t *)at)[i]
                                     : NAN;
}

/* The largest error of an output, of its largest element. */
static double error_of(const Array *a, const Array *reference)
{
    double most = 0, error = 0;
    const void *got = cudart_host(a->device);

    for (int64_t i = 0; i < a->n; i++) {
        const double want = value_at(reference, reference->host, i);
        const double e = fabs(value_at(a, got, i) - want);

        most = fabs(want) > most ? fabs(want) : most;
        error = !(e <= error) ? e : error;
    }
    return error == 0 ? 0 : error / most;
}

/* The same problem in f64, its inputs those of p, exactly. */
static void open_wide(Problem *wide, const Problem *p, const Job *job)
{
    char spec[1000];
    Job more = *job;

    snprintf(spec, sizeof spec, "%s; type=f64", job->o3);
    more.o3 = spec;
    open_problem(wide, &more);
    make_arrays(wide, &more);
    for (int i = 0; i < p->n; i++) {
        const Array *from = &p->a[i];
        Array *to = &wide->a[i];

        if (strcmp(from->arg.name, to->arg.name) != 0 || from->n != to->n)
            stop("%s: the problem in f64 has other arguments", from->arg.name);
        for (int64_t k = 0; k < from->n && from->arg.role != WEFT_SIZE; k++)
            if (from->arg.structure)
                to->wide[k] = from->wide[k];
            else
                ((double *)to->host)[k] = value_at(from, from->host, k);
    }
}

/* Results by the library on this machine, in f64 where there is such a problem, against what is in
 * the device's memory: whether all are right. */
static bool compare(const Problem *p, const Job *job, double *worst)
{
    static Problem wide;
    const Problem *by = p;
    weft_kernel *k;
    bool good = true;

    if (job->o3 != NULL && !job->exact) {
        wide.state = 7;
        open_wide(&wide, p, job);
        by = &wide;
    }
    need(by, weft_kernel_compile(by->prog, &k));
    need(by, weft_kernel_run(k, by->args));
    *worst = 0;
    for (int i = 0; i < p->n; i++) {
        const Array *a = &p->a[i];
        double e;

        if (a->arg.role != WEFT_OUTPUT && a->arg.role != WEFT_INOUT)
            continue;
        e = error_of(a, &by->a[i]);
        *worst = !(e <= *worst) ? e : *worst;
        if (!(e <= (job->exact ? 0 : job->bound))) {
            good = false;
            printf("%s is wrong by %.3g of its largest element\n", a->arg.name, e);
        }
    }
    weft_kernel_free(k);
    return good;
}

static void print_kernel(const CudartKernel *k, double per)
{
    const SassUse u = sass_use(k->code);

    printf("%s: %d launches, %d registers, %d bytes of stack, %d of shared memory, %d spills, "
           "%d warps an SM\n  %.2f instructions",
           k->name, k->launches, u.registers, u.stack, u.shared + k->dynamic, u.spills,
           sass_warps(k->code, k->threads, k->dynamic), (double)k->count.all / per);
    for (int c = 0; c < SASS_CLASSES; c++)
        if (k->count.of[c] > 0)
            printf(", %s %.2f", sass_class_name[c], (double)k->count.of[c] / per);
    printf("\n  bytes: %.0f loaded, %.0f stored, %.0f atomic; sectors %.0f, %.0f\n",
           (double)k->count.bytes[0] / per, (double)k->count.bytes[1] / per,
           (double)k->count.bytes[2] / per, (double)k->count.sectors[0] / per,
           (double)k->count.sectors[1] / per);
}

static int run_job(const Job *job)
{
    static Problem p;
    double worst, all = 0, atomics = 0;
    int registers = 0, spills = 0, warps = 64;
    bool good;
    void *lib;

    p.state = 7;
    cudart.gpu = sass_gpu();
    cudart.profile = job->profile;
    sass_seed(cudart.gpu, job->seed);
    open_problem(&p, job);
    make_arrays(&p, job);
    lib = compile(&p, job);
    run_text(&p, lib);
    good = compare(&p, job, &worst) && cudart.errors == 0;
    for (int i = 0; i < cudart.kernels; i++) {
        const CudartKernel *k = &cudart.kernel[i];
        const SassUse u = sass_use(k->code);
        const int resident = sass_warps(k->code, k->threads, k->dynamic);

        if (k->launches == 0)
            continue;
        print_kernel(k, job->per);
        all += (double)k->count.all;
        atomics += (double)k->count.of[SASS_ATOM];
        registers = u.registers > registers ? u.registers : registers;
        spills += u.spills;
        warps = resident < warps ? resident : warps;
    }
    printf("total: %s error %.2g instructions %.2f registers %d spills %d atomics %.0f warps %d\n",
           good ? "right" : "WRONG", worst, all / job->per, registers, spills, atomics, warps);
    cudart_close();
    return good ? 0 : 1;
}

/* An option with a value. */
static const char *value(int argc, char **argv, int *i, const char *name)
{
    if (strcmp(argv[*i], name) != 0)
        return NULL;
    if (*i + 1 == argc)
        stop("%s wants a value\n%s", name, usage);
    return argv[++*i];
}

int main(int argc, char **argv)
{
    Job job = { .target = "cuda:sm_80", .per = 1 };

    job.size = argv;
    for (int i = 1; i < argc; i++) {
        const char *v;

        if (strcmp(argv[i], "--grad") == 0)
            job.grad = true;
        else if (strcmp(argv[i], "--exact") == 0)
            job.exact = true;
        else if (strcmp(argv[i], "--profile") == 0)
            job.profile = true;
        else if ((v = value(argc, argv, &i, "--o3")) != NULL)
            job.o3 = v;
        else if ((v = value(argc, argv, &i, "--target")) != NULL)
            job.target = v;
        else if ((v = value(argc, argv, &i, "--schedule")) != NULL)
            job.schedule = v;
        else if ((v = value(argc, argv, &i, "--keep")) != NULL)
            job.keep = v;
        else if ((v = value(argc, argv, &i, "--bound")) != NULL)
            job.bound = strtod(v, NULL);
        else if ((v = value(argc, argv, &i, "--per")) != NULL)
            job.per = strtod(v, NULL);
        else if ((v = value(argc, argv, &i, "--seed")) != NULL)
            job.seed = strtoull(v, NULL, 0);
        else if (strchr(argv[i], '=') != NULL)
            job.size[job.sizes++] = argv[i];
        else if (*argv[i] != '-' && job.path == NULL)
            job.path = argv[i];
        else
            stop("weft_count: %s?\n%s", argv[i], usage);
    }
    if ((job.path == NULL) == (job.o3 == NULL) || job.per <= 0)
        stop("%s", usage);
    if (job.bound == 0)
        job.bound = job.grad ? 5e-6 : 1e-6;
    return run_job(&job);
}
