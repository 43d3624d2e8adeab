/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finds torch in the process and registers the operators with it.  A kernel of torch gets no
 * pointer of ours, so what they share, torch's functions and one context, belongs to the process. */
#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

Shim shim;

/* Torch's interface as of 2.10, which later versions keep: major in the first byte, then minor. */
#define TORCH_VERSION ((uint64_t)2 << 56 | (uint64_t)10 << 48)

static struct {
    pthread_mutex_t lock;
    weft_ctx *ctx;
    uint32_t threads; /* that the context was told last; 0: none yet */
    bool loaded;
    bool forked; /* this process is a child of the one that loaded the operators */
    uint64_t looks;
    AtenTensor **gone; /* tensors that are held no more, */
    size_t ngone, room; /* for state_leave to free, which may take Python's lock */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct {
    const char *name;
    size_t at; /* in Shim */
} functions[] = {
    { "aoti_torch_library_init_fragment", offsetof(Shim, library_init_fragment) },
    { "aoti_torch_library_init_impl", offsetof(Shim, library_init_impl) },
    { "aoti_torch_library_def", offsetof(Shim, library_def) },
    { "torch_library_impl", offsetof(Shim, library_impl) },
    { "torch_call_dispatcher", offsetof(Shim, call_dispatcher) },
    { "torch_new_list_reserve_size", offsetof(Shim, list_new) },
    { "torch_list_size", offsetof(Shim, list_size) },
    { "torch_list_get_item", offsetof(Shim, list_get) },
    { "torch_list_push_back", offsetof(Shim, list_push) },
    { "torch_delete_list", offsetof(Shim, list_delete) },
    { "torch_string_c_str", offsetof(Shim, string_text) },
    { "torch_string_length", offsetof(Shim, string_length) },
    { "torch_delete_string", offsetof(Shim, string_delete) },
    { "aoti_torch_delete_tensor_object", offsetof(Shim, tensor_delete) },
    { "aoti_torch_get_data_ptr", offsetof(Shim, tensor_data) },
    { "aoti_torch_get_dim", offsetof(Shim, tensor_dim) },
    { "aoti_torch_get_sizes", offsetof(Shim, tensor_sizes) },
    { "aoti_torch_get_strides", offsetof(Shim, tensor_strides) },
    { "aoti_torch_get_dtype", offsetof(Shim, tensor_dtype) },
    { "aoti_torch_is_contiguous", offsetof(Shim, tensor_is_contiguous) },
    { "aoti_torch_empty_strided", offsetof(Shim, tensor_empty) },
    { "torch_parallel_for", offsetof(Shim, parallel_for) },
    { "torch_get_num_threads", offsetof(Shim, num_threads) },
    { "aoti_torch_get_storage_size", offsetof(Shim, storage_size) },
};

static const char *const types[6] = { /* by weft_type */
    "aoti_torch_dtype_int32",    "aoti_torch_dtype_int64",   "aoti_torch_dtype_float16",
    "aoti_torch_dtype_bfloat16", "aoti_torch_dtype_float32", "aoti_torch_dtype_float64",
};

/* The address as a pointer to a function, of whatever type. */
static void put(void *to, void *fn)
{
    memcpy(to, &fn, sizeof fn);
}

static const char *find_functions(void *torch, void *c10)
{
    void *fn;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        fn = dlsym(torch, functions[i].name);
        if (fn == NULL)
            return functions[i].name;
        put((char *)&shim + functions[i].at, fn);
    }
    for (int i = 0; i < 6; i++) {
        int32_t (*get)(void);

        fn = dlsym(torch, types[i]);
        if (fn == NULL)
            return types[i];
        put(&get, fn);
        shim.dtype[i] = get();
    }
    put(&shim.from_blob, dlsym(torch, "torch_from_blob")); /* torch 2.10 has none */
    /* The interface in C does not tell versions: at::TensorBase::_version, at::native::is_inference. */
    put(&shim.version, dlsym(torch, "_ZNK2at10TensorBase8_versionEv"));
    put(&shim.is_inference, dlsym(torch, "_ZN2at6native12is_inferenceERKNS_6TensorE"));
    /* The interface in C has no way to raise an error: c10::detail::torchCheckFail. */
    fn = c10 == NULL ? NULL : dlsym(c10, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
    put(&shim.fail, fn);
    return fn == NULL ? "torchCheckFail" : NULL;
}

/* name(arguments) -> results; the raw ones are the same without a derivative, for inner calls. */
static const struct {
    const char *schema, *name;
    Op *op;
} ops[] = {
    { "run(Tensor[] arrays, str program, SymInt[] sizes=[]) -> Tensor[]", "run", op_run },
    { "run_raw(Tensor[] arrays, str program, SymInt[] sizes=[]) -> Tensor[]", "run_raw", op_run },
    { "conv(Tensor[] arrays, Tensor rows, Tensor cols, SymInt nodes, str task) -> Tensor[]", "conv",
      op_conv },
    { "conv_raw(Tensor[] arrays, Tensor rows, Tensor cols, SymInt nodes, str task) -> Tensor[]",
      "conv_raw", op_conv },
    { "coo_rows(Tensor row, Tensor col, SymInt rows) -> Tensor[]", "coo_rows", op_coo_rows },
    { "edge_rows(Tensor edge_index, SymInt receivers, SymInt senders, int loops, int bits) -> Tensor[]",
      "edge_rows", op_edge_rows },
    { "edge_tiles(Tensor edge_index, Tensor edge_type, SymInt receivers, SymInt senders, "
      "SymInt relations, SymInt most) -> Tensor[]",
      "edge_tiles", op_edge_tiles },
    { "kernel_map(Tensor coords, int kind, int[] settings, int batch) -> Tensor[]", "kernel_map",
      op_kernel_map },
    { "kernel_map_turn(Tensor[] arrays, SymInt n_in, SymInt n_out, int offsets, int strip) -> "
      "Tensor[]",
      "kernel_map_turn", op_kernel_map_turn },
    { "mask_blocks(Tensor start, Tensor col, Tensor lq, Tensor lk, str source, SymInt n, SymInt m, "
      "int block, bool causal, bool wide, SymInt copies, int most, int w, bool split, int pieces, "
      "int patterns) -> Tensor[]",
      "mask_blocks", op_mask_blocks },
    { "mask_random(Tensor seed, bool second, SymInt n) -> Tensor[]", "mask_random", op_mask_random },
    { "mask_pages(Tensor block_table, Tensor lengths, SymInt npages, SymInt page) -> Tensor[]",
      "mask_pages", op_mask_pages },
};

static const char *register_ops(void)
{
    AtenLibrary *define, *cpu;

    if (shim.library_init_fragment("weft", "weft", 0, &define) != 0 ||
        shim.library_init_impl("weft", "CPU", "weft", 0, &cpu) != 0)
        return "torch refused the library of operators";
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (shim.library_def(define, ops[i].schema) != 0 ||
            shim.library_impl(cpu, ops[i].name, ops[i].op, TORCH_VERSION) != 0)
            return ops[i].schema;
    return NULL; /* the libraries live as long as the process: deleting them takes the operators */
}

static void before_fork(void)
{
    pthread_mutex_lock(&state.lock);
    pool_before_fork();
}

static void after_fork(void)
{
    pool_after_fork();
    pthread_mutex_unlock(&state.lock);
}

/* Torch's threads are not in the child, but its OpenMP library believes that they are and would wait
 * for them for ever.  So the context gets its own threads, which it starts anew after a fork. */
static void after_fork_in_child(void)
{
    state.forked = true;
    state.threads = 0;
    after_fork();
}

/* Handlers that are registered later run earlier before a fork.  A call holds the lock of this file
 * while it takes the library's lock of the loader, so a fork has to take them in this order too: the
 * context, which registers the library's handlers, is made first. */
static const char *watch_forks(void)
{
    state.ctx = weft_ctx_new();
    if (state.ctx == NULL ||
        pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
        return "out of memory";
    return NULL;
}

/* Registers the operators of the namespace weft with the torch of this process; a second call does
 * nothing.  NULL, or what is missing: a name, or a word on it. */
WEFT_API const char *weft_torch_load(void);
const char *weft_torch_load(void)
{
    void *torch, *c10;
    const char *fault;

    if (state.loaded)
        return NULL;
    torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    c10 = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
    if (torch == NULL)
        return "libtorch_cpu.so is not loaded in this process";
    fault = find_functions(torch, c10);
    if (fault == NULL)
        fault = register_ops();
    if (fault == NULL)
        fault = watch_forks();
    state.loaded = fault == NULL;
    return fault;
}

typedef struct Work {
    weft_task *task;
    void *arg;
} Work;

static void do_range(int64_t begin, int64_t end, void *user)
{
    Work *w = user;

    for (int64_t i = begin; i < end; i++)
        w->task(w->arg, i);
}

static void run_on_torch(void *user, int64_t n, weft_task *task, void *arg)
{
    Work w = { task, arg };

    (void)user;
    if (n == 1 || shim.parallel_for(0, n, 1, do_range, &w) != 0)
        do_range(0, n, &w);
}

typedef struct Dropped { /* problems whose kernels are to be freed */
    struct Dropped *next;
    char spec[];
} Dropped;

static _Atomic(Dropped *) dropped;

bool is_of_problem(const char *text, const char *spec)
{
    size_t n = strlen(spec);

    return strncmp(text, spec, n) == 0 &&
           (text[n] == 0 || text[n] == '\n' || strncmp(text + n, "; type=", 7) == 0);
}

static void free_dropped(void)
{
    Dropped *d = atomic_exchange(&dropped, NULL), *next;

    for (; d != NULL; d = next) {
        next = d->next;
        run_drop(d->spec);
        conv_drop(d->spec);
        free(d);
    }
}

/* A collector of garbage may call this in the middle of anything, so nothing here waits. */
void weft_torch_drop(const char *spec)
{
    size_t n = strlen(spec) + 1;
    Dropped *d = malloc(sizeof *d + n);

    if (d == NULL)
        return;
    memcpy(d->spec, spec, n);
    d->next = atomic_load(&dropped);
    while (!atomic_compare_exchange_weak(&dropped, &d->next, d))
        ;
    if (pthread_mutex_trylock(&state.lock) != 0)
        return;
    free_dropped();
    state_leave();
}

weft_ctx *state_enter(void)
{
    weft_executor *executor;
    uint32_t threads = 1;

    pthread_mutex_lock(&state.lock);
    free_dropped();
    executor = state.forked ? NULL : run_on_torch; /* NULL: the context's own threads */
    if (shim.num_threads(&threads) == 0 && threads != state.threads) {
        threads = threads < 1 ? 1 : threads > 1024 ? 1024 : threads;
        if (weft_ctx_executor(state.ctx, executor, NULL, (int)threads) == WEFT_OK)
            state.threads = threads;
    }
    return state.ctx;
}

void state_leave(void)
{
    AtenTensor **gone = state.gone;
    size_t n = state.ngone;

    state.gone = NULL;
    state.ngone = state.room = 0;
    pthread_mutex_unlock(&state.lock);
    for (size_t i = 0; i < n; i++)
        shim.tensor_delete(gone[i]);
    free(gone);
}

void state_count_look(void)
{
    state.looks++;
}

uint64_t weft_torch_looks(void)
{
    uint64_t n;

    (void)state_enter();
    n = state.looks;
    state_leave();
    return n;
}

/* Without memory for the list the tensor is lost, which is better than to wait for a lock here. */
void held_drop(Held *h)
{
    AtenTensor **more = state.gone;

    if (h->handle != NULL && state.ngone == state.room) {
        state.room = state.room * 2 + 16;
        more = realloc(state.gone, state.room * sizeof *more);
        if (more == NULL)
            state.room = state.ngone;
        else
            state.gone = more;
    }
    if (h->handle != NULL && more != NULL)
        state.gone[state.ngone++] = h->handle;
    *h = (Held){ .handle = NULL };
}

bool is_packed(const Plain *p)
{
    int64_t n = 1;

    for (int i = p->ndim - 1; i >= 0; i--) {
        if (p->shape[i] != 1 && p->stride[i] != n)
            return false;
        n *= p->shape[i];
    }
    return true;
}

bool held_is(const Held *h, const Plain *p)
{
    return h->handle != NULL && h->data == p->data && h->type == p->type && is_packed(p) &&
           !shim.is_inference(p->handle) && shim.version(h->handle) == h->version &&
           shim.version(p->handle) == h->version;
}

void held_set(Held *h, Plain *p)
{
    int64_t bytes = (int64_t)type_bytes(p->type), storage = 0;

    held_drop(h);
    for (int i = 0; i < p->ndim; i++)
        bytes *= p->shape[i];
    if (shim.version == NULL || shim.is_inference == NULL || !is_packed(p) ||
        shim.is_inference(p->handle) || shim.storage_size(p->handle, &storage) != 0 || storage > 4 * bytes)
        return;
    *h = (Held){ p->handle, p->data, p->type, shim.version(p->handle) };
    p->handle = NULL;
}

void op_fail(const char *message)
{
    shim.fail("weft", "weft", 0, message);
}

/* A copy in C order without gaps; takes `handle` over. */
static AtenTensor *contiguous(AtenTensor *handle)
{
    Value stack[2] = { (Value)(uintptr_t)handle, 0 }; /* 0: torch.contiguous_format */

    if (shim.call_dispatcher("aten::contiguous", "", stack, TORCH_VERSION) != 0)
        return NULL;
    return (AtenTensor *)(uintptr_t)stack[0];
}

static bool find_type(int32_t dtype, weft_type *out)
{
    for (int i = 0; i < 6; i++)
        if (shim.dtype[i] == dtype) {
            *out = (weft_type)i;
            return true;
        }
    return false;
}

bool plain_take(AtenTensor *handle, Plain *out, const char **why)
{
    int64_t ndim = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = 0;

    *out = (Plain){ .handle = handle };
    *why = "torch refused to tell what a tensor is";
    if (shim.tensor_dim(handle, &ndim) != 0 || shim.tensor_sizes(handle, &sizes) != 0 ||
        shim.tensor_strides(handle, &strides) != 0 || shim.tensor_dtype(handle, &dtype) != 0 ||
        shim.tensor_data(handle, &out->data) != 0)
        return false;
    *why = "a tensor of more than 32 dimensions, or of a type other than int32, int64, float16, "
           "bfloat16, float32 and float64";
    if (ndim > WEFT_MAX_NDIM || !find_type(dtype, &out->type))
        return false;
    out->ndim = (int)ndim;
    if (ndim > 0) {
        memcpy(out->shape, sizes, (size_t)ndim * sizeof *sizes);
        memcpy(out->stride, strides, (size_t)ndim * sizeof *strides);
    }
    return true;
}

const char *plain_pack(Plain *p, int n)
{
    const char *why;

    for (int i = 0; i < n; i++) {
        bool packed = false;
        AtenTensor *copy;

        if (shim.tensor_is_contiguous(p[i].handle, &packed) == 0 && packed)
            continue;
        copy = contiguous(p[i].handle);
        p[i].handle = NULL;
        if (copy == NULL || !plain_take(copy, &p[i], &why))
            return "torch refused to give a tensor without gaps";
    }
    return NULL;
}

size_t type_bytes(weft_type type)
{
    static const size_t bytes[] = { 4, 8, 2, 2, 4, 8 }; /* by weft_type */

    return bytes[type];
}

/* Smaller results are torch's, whose allocator reuses them too. */
enum { MIN_POOLED = 1 << 17 }; /* bytes */

/* A tensor whose memory goes back to the pool with it. */
static bool pooled_new(Plain *out, size_t bytes)
{
    size_t all;

    out->data = pool_take(bytes, &all);
    if (out->data == NULL)
        return false;
    if (shim.from_blob(out->data, out->ndim, out->shape, out->stride, 0, shim.dtype[out->type], 0, -1,
                       &out->handle, 0, NULL, 0, pool_give, (void *)(uintptr_t)all) == 0)
        return true;
    pool_give(out->data, (void *)(uintptr_t)all);
    return false;
}

bool plain_new(weft_type type, int ndim, const int64_t *shape, Plain *out)
{
    int64_t n = 1;

    *out = (Plain){ .ndim = ndim, .type = type };
    for (int i = ndim - 1; i >= 0; i--) {
        out->shape[i] = shape[i];
        out->stride[i] = n;
        n *= shape[i] > 0 ? shape[i] : 1;
    }
    if (shim.from_blob != NULL && (uint64_t)n >= MIN_POOLED / type_bytes(type))
        return pooled_new(out, (size_t)n * type_bytes(type));
    if (shim.tensor_empty(ndim, out->shape, out->stride, shim.dtype[type], 0, 0, &out->handle) != 0 ||
        shim.tensor_data(out->handle, &out->data) != 0)
        return false;
    weft_torch_large(out->data, (uint64_t)n * type_bytes(type));
    return true;
}

void plain_free(Plain *p, int n)
{
    for (int i = 0; i < n; i++)
        if (p[i].handle != NULL)
            shim.tensor_delete(p[i].handle);
}

const char *list_take(AtenList *list, Plain *out, int most, int *count)
{
    size_t n = 0;
    const char *why = NULL, *fault = NULL;
    Value v;

    shim.list_size(list, &n);
    for (size_t i = 0; i < n && shim.list_get(list, i, &v) == 0; i++) {
        AtenTensor *t = (AtenTensor *)(uintptr_t)v;

        if (*count == most) {
            fault = "more arrays than this operator takes";
            shim.tensor_delete(t);
        } else if (!plain_take(t, &out[(*count)++], &why)) {
            fault = why;
        }
    }
    shim.list_delete(list);
    return fault;
}

const char *text_take(AtenString *string, const char **out)
{
    size_t n = 0;

    *out = "";
    if (shim.string_text(string, out) != 0 || shim.string_length(string, &n) != 0)
        return "torch refused to give a text";
    return strlen(*out) == n ? NULL : "the text of the problem has a NUL character; remove it";
}

Value list_give(Plain *p, int n)
{
    AtenList *list = NULL;

    if (shim.list_new((size_t)n, &list) != 0)
        op_fail("out of memory");
    for (int i = 0; i < n; i++) {
        shim.list_push(list, (Value)(uintptr_t)p[i].handle);
        p[i].handle = NULL;
    }
    return (Value)(uintptr_t)list;
}
