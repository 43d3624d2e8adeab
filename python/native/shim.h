/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What Weft uses of torch's stable C interface, declared by hand: torch's own headers are C++.  All
 * functions are found in the libtorch that the process has loaded, so there is no link to torch.
 * The files of this folder become libweft_torch, on top of weft.h alone. */
#ifndef WEFT_SHIM_H
#define WEFT_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft.h>

typedef uint64_t Value; /* torch's StableIValue: an integer, or a handle that the receiver owns */
typedef struct AtenTensor AtenTensor;
typedef struct AtenList AtenList;
typedef struct AtenString AtenString;
typedef struct AtenLibrary AtenLibrary;
typedef void Op(Value *stack, uint64_t nargs, uint64_t nresults);

/* Each function returns 0, or anything else for a failure; types are asked for once. */
typedef struct Shim {
    int32_t (*library_init_fragment)(const char *space, const char *file, uint32_t line,
                                     AtenLibrary **out);
    int32_t (*library_init_impl)(const char *space, const char *key, const char *file,
                                 uint32_t line, AtenLibrary **out);
    int32_t (*library_def)(AtenLibrary *, const char *schema);
    int32_t (*library_impl)(AtenLibrary *, const char *name, Op *, uint64_t version);
    int32_t (*call_dispatcher)(const char *name, const char *overload, Value *stack,
                               uint64_t version);
    int32_t (*list_new)(size_t n, AtenList **out);
    int32_t (*list_size)(AtenList *, size_t *out);
    int32_t (*list_get)(AtenList *, size_t i, Value *out);
    int32_t (*list_push)(AtenList *, Value);
    int32_t (*list_delete)(AtenList *);
    int32_t (*string_text)(AtenString *, const char **out);
    int32_t (*string_length)(AtenString *, size_t *out);
    int32_t (*string_delete)(AtenString *);
    int32_t (*tensor_delete)(AtenTensor *);
    int32_t (*tensor_data)(AtenTensor *, void **out);
    int32_t (*tensor_dim)(AtenTensor *, int64_t *out);
    int32_t (*tensor_sizes)(AtenTensor *, int64_t **out);
    int32_t (*tensor_strides)(AtenTensor *, int64_t **out);
    int32_t (*tensor_dtype)(AtenTensor *, int32_t *out);
    int32_t (*tensor_is_contiguous)(AtenTensor *, bool *out);
    int32_t (*tensor_empty)(int64_t ndim, const int64_t *sizes, const int64_t *strides,
                            int32_t dtype, int32_t device, int32_t device_index,
                            AtenTensor **out);
    /* Makes a tensor of an array, and passes the array to `deleter` when its last view is gone.  NULL:
     * torch before 2.11, which lacks the function. */
    int32_t (*from_blob)(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, int32_t dtype, int32_t device, int32_t device_index,
                         AtenTensor **out, int32_t layout, const uint8_t *opaque,
                         int64_t opaque_bytes, void (*deleter)(void *data, void *ctx), void *ctx);
    int32_t (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                            void (*fn)(int64_t begin, int64_t end, void *), void *);
    int32_t (*num_threads)(uint32_t *out);
    int32_t (*storage_size)(AtenTensor *, int64_t *out); /* bytes */
    /* How often torch has seen the elements change; not for tensors of inference mode, which do not
     * count.  NULL: this torch does not export the two functions. */
    int64_t (*version)(const AtenTensor *);
    bool (*is_inference)(const AtenTensor *);
    /* C++'s throw, with a message; it does not return */
    void (*fail)(const char *function, const char *file, uint32_t line, const char *message);
    int32_t dtype[6]; /* by weft_type */
} Shim;

/* What the process has of torch, once weft_torch_load has found it. */
extern Shim shim;

enum { MOST_ARRAYS = 64 }; /* that an operator takes or gives */

/* A tensor as the library sees it. */
typedef struct Plain {
    AtenTensor *handle; /* owned; NULL: none */
    void *data;
    int64_t shape[WEFT_MAX_NDIM], stride[WEFT_MAX_NDIM];
    int ndim;
    weft_type type;
} Plain;

/* A tensor whose elements were looked at.  It is kept alive, so that another tensor at the same address
 * shares its memory, and torch's count of changes tells whether the elements are the same. */
typedef struct Held {
    AtenTensor *handle; /* owned; NULL: none */
    const void *data;
    weft_type type;
    int64_t version;
} Held;

/* Arrays of at most this many bytes are compared in whole, which sees changes that torch does not
 * count too: those through NumPy and Tensor.data. */
enum { HELD_LEAST = 1 << 15 };

/* Has the tensor the memory of the one that is held, without gaps and with no change since?  Shapes
 * are for the caller to compare. */
bool held_is(const Held *h, const Plain *p);
/* Holds the tensor in place of the one before; its data stays valid, its handle is no longer of *p.
 * Holds nothing where torch does not count changes, where elements have gaps, and where a large
 * storage would live for a part of it. */
void held_set(Held *h, Plain *p);
void held_drop(Held *h);

/* Takes `handle` over, with its strides.  False: torch refused, or a type that the library has not;
 * then *why says so. */
bool plain_take(AtenTensor *handle, Plain *out, const char **why);
/* The same without gaps: a copy, where there are some.  NULL, or what is wrong. */
const char *plain_pack(Plain *p, int n);
size_t type_bytes(weft_type type); /* of an element */
bool is_packed(const Plain *p);    /* its elements are in C order without gaps */
bool plain_new(weft_type type, int ndim, const int64_t *shape, Plain *out);
void plain_free(Plain *p, int n);
/* The tensors of a list, which goes; how many is added to *count.  NULL, or what is wrong;
 * those taken are the caller's either way. */
const char *list_take(AtenList *list, Plain *out, int most, int *count);
/* The text of a string, which stays torch's.  NULL, or what is wrong: a NUL would end it early. */
const char *text_take(AtenString *string, const char **out);
/* A list that owns them. */
Value list_give(Plain *p, int n);

/* The one context of the operators; whoever uses it holds it from here to state_leave.  Kernels run
 * on torch's threads, as many as torch wants now.  NULL: out of memory. */
weft_ctx *state_enter(void);
void state_leave(void);

/* Nobody uses this problem any more: its kernels are freed, now or by the next call.  Any thread may
 * say so at any time.  Whoever runs it again gets new ones. */
WEFT_API void weft_torch_drop(const char *spec);
/* How many times weft::run has worked out what it keeps for the structure of its arguments. */
WEFT_API uint64_t weft_torch_plans(void);
/* How many calls of both operators had to read the structure to find what is kept for it. */
WEFT_API uint64_t weft_torch_looks(void);
void state_count_look(void); /* between state_enter and state_leave */
/* run.c, conv.c: frees the kernels of a problem, of any type of elements. */
void run_drop(const char *spec);
void conv_drop(const char *spec);
bool is_of_problem(const char *text, const char *spec); /* the first line of a text */

/* Throws what the operators of this process cannot go on with; does not return. */
void op_fail(const char *message);

/* pool.c: pool_take gives memory for a result of `bytes`, and in *all how many bytes it really has;
 * NULL: out of memory.  pool_give takes it back, with `all` as a pointer. */
void *pool_take(size_t bytes, size_t *all);
void pool_give(void *data, void *all);
void pool_before_fork(void);
void pool_after_fork(void);
/* Frees unused blocks, the oldest first, until at most `most` bytes of them remain; a negative `most`
 * frees none.  Returns the bytes that remain. */
WEFT_API uint64_t weft_torch_pool(int64_t most);
/* Asks for pages of 2 MB where some fit into the array. */
WEFT_API void weft_torch_large(void *data, uint64_t bytes);

Op op_run, op_conv; /* run.c, conv.c */
Op op_coo_rows, op_edge_rows, op_edge_tiles, op_kernel_map, op_kernel_map_turn, op_mask_blocks,
    op_mask_random, op_mask_pages; /* structure.c */

#endif
