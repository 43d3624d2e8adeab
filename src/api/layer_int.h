/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Layers: a program whose operands are plain arrays of the caller, and its derivatives, each
 * compiled at its first call.  weft_tp and weft_conv are layers. */
#ifndef WEFT_API_LAYER_INT_H
#define WEFT_API_LAYER_INT_H

#include "api/api_int.h"

/* The operands of a program: the last is what it computes. */
enum { LAYER_X, LAYER_Y, LAYER_W, LAYER_M, LAYER_Z, LAYER_OPERANDS };

/* Its arrays and those of its derivatives, an operand of a kind each: the operand; the gradient by
 * it; the second gradient by it, of the last operand the one by its cotangent; the cotangent of the
 * gradient by it. */
typedef enum LayerKind { LAYER_AT, LAYER_D, LAYER_D2, LAYER_ALONG, LAYER_KINDS } LayerKind;
#define LAYER_SLOT(kind, operand) ((kind) * LAYER_OPERANDS + (operand))

enum { LAYER_SLOTS = LAYER_KINDS * LAYER_OPERANDS, LIMIT_LAYER_NAME = 12, LIMIT_READY = 16 };

typedef struct LayerReady { /* one program, ready to run */
    int order;
    unsigned wanted, along; /* bits of slots: what it gives; cotangents of gradients it takes */
    unsigned arrays;        /* what the program has of these and of its inputs */
    weft_kernel *kernel;    /* NULL: nothing is to be computed */
    weft_args *args;
    uint64_t stamp; /* of the last run; 0: there was none */
} LayerReady;

typedef struct Layer {
    weft_ctx *ctx;
    weft_prog *prog;
    char name[LAYER_SLOTS][LIMIT_LAYER_NAME];
    int64_t dim[LAYER_OPERANDS]; /* elements of a row; 0: there is none */
    bool rows[LAYER_OPERANDS];   /* it has rows, as many as a call says */
    Type type[LAYER_OPERANDS];
    int ndim[LAYER_OPERANDS];
    int64_t shape[LAYER_OPERANDS][WEFT_MAX_NDIM]; /* of one row */
    LayerReady ready[LIMIT_READY];
    int nready, next; /* when all are taken, the next to go */
} Layer;

/* Sets the sizes and binds the structure of arguments; what was bound before is unbound. */
typedef weft_status LayerPlace(weft_args *, const void *with);

typedef struct LayerRows { /* what a call is over */
    int64_t n[LAYER_OPERANDS];
    uint64_t stamp; /* not 0; the same for calls with the same sizes and structure */
    LayerPlace *place;
    const void *with;
    const int64_t *stride[LAYER_SLOTS]; /* of arrays that are read; NULL: without gaps */
} LayerRows;

/* The layer of a program, which is the layer's from now on.  `name` has the operands' names; the
 * program may have no other arrays but structure.  `place` takes `two` for two rows of each
 * operand, and `one` for one. */
weft_status layer_open(Layer *, weft_prog *, const char *const name[LAYER_OPERANDS],
                       LayerPlace *place, const void *two, const void *one);
void layer_close(Layer *);
weft_status layer_forward(Layer *, const LayerRows *, const weft_conv_in *at, void *z);
weft_status layer_backward(Layer *, const LayerRows *, const weft_conv_in *at, const void *dz,
                           const weft_conv_out *d);
weft_status layer_double_backward(Layer *, const LayerRows *, const weft_conv_in *at,
                                  const void *dz, const weft_conv_in *along,
                                  const weft_conv_out *g, void *gdz);
weft_status layer_fault(Layer *, Status, const char *message, const char *what);

#endif
