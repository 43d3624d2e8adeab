/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Structures that are made rather than read: graphs and atoms by generators, and the neighbours of
 * atoms.  Knows arrays, no programs. */
#ifndef WEFT_GEOM_H
#define WEFT_GEOM_H

#include "base/base.h"

/* graph.c: a graph as CSR; the columns of a row ascend, each at most once. */
typedef struct GeomGraph {
    int64_t m, n, nnz;
    int64_t *start, *col; /* m + 1 and nnz */
} GeomGraph;

/* Whether a spec begins with the name of a generator. */
bool geom_is_spec(const char *spec);

/* From such a spec: "powerlaw:n=1000:nnz=8000:a=2.1:seed=1"; weft.h has the others.  The same
 * graph on every machine, in time and memory proportional to n + nnz.  Throws ST_ARG. */
void geom_graph(Arena *, const char *spec, GeomGraph *out);

/* From n entries (row, col) in any order, below out->m and out->n: sorted, each place once. */
void geom_graph_of(Arena *, const int64_t *row, const int64_t *col, int64_t n, GeomGraph *out);

/* edges.c: structures of graph operators, from n edges in any order. */
typedef struct GeomList {
    int64_t nodes, senders, n;        /* receivers are below nodes */
    const int64_t *receiver, *sender; /* n each */
} GeomList;

/* Entries by receiver, those of a receiver in the order of the list: start has nodes + 1 elements,
 * sender and at (the number in the list) have n.  With loops != 0 each node that receives and sends
 * has an entry from itself, the last of its row, numbered n + node: 1, every edge of the list from
 * a node to itself is left out; 2, the last of those of a node takes the place of the new one.
 * What is left out is in a row more, after all others, so start has nodes + 2 elements, and the
 * others n + the smaller of nodes and senders. */
void geom_rows(Arena *, const GeomList *, int loops, int64_t *start, int64_t *sender, int64_t *at);

/* Pairs (relation, receiver) of edges, by relation, then receiver, in tiles of `tile` pairs of one
 * relation; pairs that fill up a tile have no edges. */
typedef struct GeomTiles {
    int64_t tiles, pairs;         /* pairs: those with edges */
    int64_t *relation;            /* of each tile */
    int64_t *start, *sender, *at; /* edges by place of their pair: tiles * tile + 1, n, n */
    int64_t *first, *place;       /* by receiver the places of its pairs: nodes + 1, pairs */
} GeomTiles;
/* At least `least` tiles: those that are not needed come last, of relation 0, without edges. */
void geom_tiles(Arena *, const GeomList *, const int64_t *type, int64_t relations, int64_t tile,
                int64_t least, GeomTiles *out);

/* atoms.c: atoms in a cell.  The vectors of the cell are its rows; one that is not periodic is not
 * looked at. */
typedef struct GeomAtoms {
    int64_t n;
    double *pos; /* n x 3 */
    double cell[9];
    bool pbc[3];
    int32_t *kind; /* by atom: which name */
    int kinds;
    const char *const *name;
} GeomAtoms;

/* From "crystal:silicon:repeat=4:rattle=0.05:seed=1" or "water:molecules=64"; weft.h has the
 * others.  The same atoms on every machine.  Throws ST_ARG. */
bool geom_is_atoms(const char *spec);
void geom_atoms(Arena *, const char *spec, GeomAtoms *out);

/* Who works on blocks: calls task(arg, b) for each b in 0..n, in any order, at the same time or
 * not.  NULL: this thread. */
typedef struct GeomPool {
    void (*run)(void *with, int64_t n, void (*task)(void *arg, int64_t b), void *arg);
    void *with;
} GeomPool;

/* near.c: all pairs of an atom, the receiver, and an image of an atom, the sender, with
 *     D = (r_sender - r_receiver) + (S0 * cell0 + S1 * cell1 + S2 * cell2),  D . D < cutoff^2,
 * in double precision as written here, but for an atom with itself at S = 0.  So a pair and its
 * reverse, -S, are both there or neither is.  In order of receiver, sender, S; the same for any
 * number of threads.  Throws ST_ARG for a cell or positions that make no sense, ST_LIMIT for more
 * than 2^31 images.  The atoms' positions are needed as long as the result is. */
typedef struct GeomNear GeomNear;
GeomNear *geom_near(Arena *, const GeomPool *, const GeomAtoms *, double cutoff);
int64_t geom_near_count(const GeomNear *);

/* Room for what is asked for; NULL is not. */
typedef struct GeomEdges {
    bool wide;                       /* the first three are i64, else i32 */
    void *start, *receiver, *sender; /* n + 1, and the number of pairs */
    int32_t *shift;                  /* pairs x 3: S */
    double *vec, *dist;              /* pairs x 3: D; its length */
} GeomEdges;
void geom_near_fill(const GeomNear *, const GeomPool *, const GeomEdges *);

/* mask.c: which keys the queries of attention see, as blocks.  A tile is `bi` queries, a block `bj`
 * keys, at most GEOM_MASK_TILE and 64. */
enum { GEOM_MASK_TILE = 64 };
typedef struct GeomMaskIn {
    const char *spec;          /* a generator, "band:w=256"; NULL: the entries of */
    const int64_t *start, *col; /* a matrix, of which one is `block` x `block` tokens */
    int64_t block;
    int64_t n, m, copies;    /* queries, keys; heads of all batches */
    const int64_t *lq, *lk;  /* of each copy: how many of them there are; NULL: all */
    int bi, bj;
    int64_t w;               /* places of a piece; 0: as many as the widest tile needs */
    bool causal, wide;       /* keys up to the query only; x of f64 */
} GeomMaskIn;

typedef struct GeomMask {
    int64_t nnz, tiles, blocks; /* pairs in all copies; tiles and blocks of a copy */
    int64_t pieces, w, most, patterns;
    bool split;                 /* some tile has more than one piece; else each has one */
    int64_t *start, *row;       /* of the pieces of tiles; of each piece its tile */
    int64_t *j, *pat;           /* pieces x w: the block, -1 for none, and its pattern */
    void *x;                    /* patterns x bi x bj: 0 or -inf */
} GeomMask;

/* Throws ST_ARG for a spec that has no meaning.  Sizes and entries were checked. */
void geom_mask(Arena *, const GeomMaskIn *, GeomMask *out);

/* n random numbers below 2^31. */
void geom_random(uint64_t seed, int64_t n, int64_t *out);

/* voxels.c: the kernel map of a sparse convolution.  A pair is an offset k of the kernel, an output
 * and an input with, in each dimension,
 *     input = output * stride + k * dilation - padding,
 * or with the two exchanged when it is transposed.  Offsets are numbered with the last dimension
 * fastest.  Outputs are the inputs (subm), or all places that a pair reaches, in order of batch
 * index and coordinates.  The same for any number of threads. */
enum { GEOM_KERNEL = 64 };          /* the largest size of a kernel in one dimension */
#define GEOM_FAR ((int64_t)1 << 40) /* coordinates and sizes are below */

typedef struct GeomVoxels {
    int64_t n;
    bool wide; /* coordinates are i64, else i32 */
    const void *coord; /* n x 4: batch index, three coordinates */
    int64_t batch, shape[3]; /* of the grid; 0: no bound */
    bool subm, transposed;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    int64_t extra[3]; /* places more in the output grid of a transposed one */
    int64_t strip;    /* outputs of a strip */
} GeomVoxels;

/* Groups are a strip of outputs and an offset that it has pairs of. */
typedef struct GeomMap {
    int64_t in, out, offsets, strip, strips, groups, pairs;
    int64_t shape[3];       /* of the output grid; 0: no bound */
    int64_t *coord;         /* out x 4 */
    int32_t *group_start;   /* strips + 1 */
    int32_t *offset;        /* by group */
    int32_t *pair_start;    /* groups + 1 */
    int32_t *row, *input;   /* by pair: the output's place in its strip, and the input */
} GeomMap;

/* Throws ST_ARG for voxels that repeat or lie outside the grid, ST_LIMIT. */
void geom_kernel_map(Arena *keep, Arena *scratch, const GeomPool *, const GeomVoxels *,
                     GeomMap *out);

/* strips.c: the same pairs with inputs and outputs exchanged.  Coordinates and shape are not looked
 * at and not set. */
void geom_map_turn(Arena *keep, Arena *scratch, const GeomMap *from, GeomMap *to);

/* places.c: a pruned weight in a format of the operator sparse_linear. */
typedef struct GeomPlacesIn {
    const char *format; /* csr, bsr(b, c), dbsr(b, c), sr_bcrs(b, g), n_m(k, g) */
    const unsigned char *mask; /* rows x columns; 0: pruned */
    int64_t rows, columns;
} GeomPlacesIn;

typedef struct GeomPlaces {
    int64_t n, starts, indices, stored; /* lengths of the arrays */
    int64_t *at;            /* row * columns + column of each stored element; -1: padding */
    int64_t *start, *index; /* NULL where a format has none */
    int64_t *row;           /* dbsr: rows of blocks that are stored */
} GeomPlaces;

/* Throws ST_ARG for a format that there is not, or that the weight or its mask does not fit. */
void geom_places(Arena *, const GeomPlacesIn *, GeomPlaces *out);

#endif
