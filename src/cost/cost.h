/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The analytic model: what a machine can do, what a program asks of it, and how long that takes.
 * Stands beside the flow: knows programs and sizes, never how they are compiled or timed. */
#ifndef WEFT_COST_H
#define WEFT_COST_H

#include "ir/loop.h"

/* machine.c: a machine as it was measured (api/machine.c), its text, and rates in between.  Rates
 * are for one thread ([0]) and for all threads together ([1]); bandwidths are GB/s of what the
 * program reads and writes, so that the lines which a store fetches first are not counted. */
enum { COST_ONE, COST_ALL, COST_THREADS };
typedef enum CostStream {
    COST_READ,        /* sum of one array */
    COST_TRIAD,       /* a = b + s * c */
    COST_COPY,        /* a = b */
    COST_NONTEMPORAL, /* the triad, storing past the caches */
    COST_STREAMS
} CostStream;
extern const char *const cost_stream_name[COST_STREAMS];
typedef enum CostCall { /* operators that take more than one instruction: see shape.c */
    COST_DIV,
    COST_SQRT,
    COST_RSQRT,
    COST_EXP,
    COST_LOG,
    COST_SIN,
    COST_COS,
    COST_TANH,
    COST_SIGMOID,
    COST_SILU,
    COST_CALLS
} CostCall;
extern const char *const cost_call_name[COST_CALLS];

/* A multiprocessor or compute unit of a GPU, as the tables of its vendor have it. */
typedef struct GpuUnit {
    int lanes;                    /* of a warp; 0: this is no GPU */
    int block;                    /* warps of a block, as kernels are launched */
    int most_registers;           /* of a thread, each of 32 bits; */
    int registers;                /* of all threads that are there at a time */
    int warps, blocks;            /* that are there at a time, at most */
    int64_t shared, shared_block; /* bytes of shared memory: of the unit; of a block at most */
    bool parts; /* a part of a warp may have an iteration of its own */
} GpuUnit;

enum { COST_LEVELS = 4, COST_ROWS = 6, COST_TABLES = 6, COST_NAME = 64 };

typedef struct Machine {
    char cpu[COST_NAME], isa[COST_NAME]; /* what it was measured on and with */
    int threads;                         /* of COST_ALL */
    bool measured;                       /* else guessed */
    int64_t cache[COST_LEVELS - 1];      /* bytes: L1 and L2 of a core, L3 of all */
    double clock[COST_THREADS];          /* GHz */
    double fma[2][COST_THREADS];         /* GFLOP/s: f32, f64 */
    double call[COST_CALLS][2][COST_THREADS]; /* 1e9 results a second, as kernels compute them: in
                                               * lanes where these exist, else one by one */
    double stream[COST_LEVELS][COST_STREAMS][COST_THREADS]; /* in L1, L2, L3, memory */
    int64_t row[COST_ROWS], table[COST_TABLES];             /* bytes, ascending */
    double gather[COST_ROWS][COST_TABLES][COST_THREADS];    /* of random rows of a table */
} Machine;

void cost_machine_default(Machine *, const int64_t cache[COST_LEVELS - 1], int threads);
void cost_machine_print(Text *, const Machine *);
bool cost_machine_parse(Bytes, Machine *out); /* false: not what cost_machine_print wrote */

/* The level, 0 to 3, that holds this many bytes when `threads` threads share them equally. */
int cost_level(const Machine *, double bytes, int threads);
/* GB/s of a stream over a working set of this many bytes, of GFLOP/s. */
double cost_stream(const Machine *, CostStream, double bytes, int threads);
double cost_gather(const Machine *, double row, double table, int threads);
double cost_fma(const Machine *, Type, int threads);
double cost_call(const Machine *, CostCall, Type, int threads); /* 1e9 results a second */

/* shape.c: what a program asks for, whatever its schedule, as long as every result is kept in
 * registers while it grows and nothing is computed twice. */
enum { COST_GATHERS = 8 };

typedef struct CostGather { /* rows of an array at places that only the data tell */
    const Buf *buf;
    double count;           /* rows that are read, or for a scatter read and written */
    double far;             /* of these, in another cache line than the one before and the next */
    double row, table;      /* bytes of a row, and of the array */
    double element;         /* bytes */
    /* The table of this many bytes, of which every row is as likely as any other, that a cache
     * serves as often as it serves this one: popular rows stay. */
    double like;
    bool write;
    bool shared; /* several rows of a block take the same: a tile of sums */
    bool fixed;  /* by a loop of one length, which is foreseen */
} CostGather;

typedef struct CostShape {
    double flops[2];      /* of f32 (and f16, bf16, integers), f64 */
    double other[2];      /* instructions that are no flops: comparisons, choices, conversions */
    double calls[COST_CALLS][2]; /* results of functions and divisions */
    double read, written; /* compulsory bytes: every array once, an inout twice */
    double loads, stores; /* bytes that pass the load and the store ports */
    double turned;        /* elements whose neighbours are of the same iteration: rows of a few */
    double chunk;         /* largest share of the work that has to be done by one thread */
    double straight[2], straight_loads; /* flops and loads of what has no gathered row of its own */
    double rows;          /* loops that are begun whose length only the data tell */
    double alone;         /* single elements of statements that gather no rows */
    CostGather gather[COST_GATHERS];
    int ngather;
} CostShape;

/* env has sizes and structure, of buffers it needs nothing.  Without a machine no entry is looked
 * at: each table is then like itself. */
void cost_shape(Arena *, Prog *, const Env *, const Machine *, CostShape *out);

/* cost.c: seconds. */
typedef struct Cost {
    double compute; /* flops at the FMA peak, functions at their measured rates */
    double ports;   /* loads and stores, all hits */
    double stream;  /* compulsory bytes at the rate of the level that holds them all */
    double gather;  /* gathered bytes at the rate of their row length and table size */
    double limit;   /* the largest of compute, stream and gather */
    double seconds; /* predicted: popular rows stay near, and threads may be out of balance */
} Cost;
Cost cost_estimate(const CostShape *, const Machine *, int threads);
double cost_calls(const CostShape *, const Machine *, int threads); /* functions, and `other` */
/* loops.c: of elements that are exchanged between rows and lanes; of loops that are begun whose
 * length only the data tell, each so many times. */
double cost_turned(const CostShape *, const Machine *, int threads);
double cost_rows(const CostShape *, const Machine *, double passes, int threads);

/* loops.c: seconds of one arrangement of the loops, to choose among several. */
typedef struct CostLoops {
    const VectorUnit *unit;
    int registers; /* that sums may take; 0: they are added to in memory */
    int ahead;     /* bytes that are asked for ahead */
    int panel;     /* elements of a row that are done at a time; 0: all */
    bool pack;     /* from a copy without gaps */
} CostLoops;
double cost_loops(const CostShape *, const Machine *, const CostLoops *, int threads);

/* By which plans and runs choose, in time, bytes and elements of real machines. */
enum {
    COST_HOT = 100000000,    /* ns of runs that make code for their own sizes worth a compile */
    COST_SHORT = 1024,       /* elements of a row that is worth code of its own length: what a loop
                              * over lanes asks before and after its few turns is known then */
    COST_STRIDED = 1 << 16,  /* elements of an array with gaps that is worth code of its own */
    COST_GROUPS = 4096,      /* groups of threads in a launch; each takes units in turns */
    COST_GROUP_THREADS = 64, /* threads of a group whose threads run iterations of their own */
    COST_FAR = 8 << 20,      /* bytes below which nothing that is gathered is far away */
    COST_REUSE = 16,         /* reads of a row that a copy of all rows has to serve to pay */
    COST_CHECKED = 1 << 15,  /* positions of a structure that are worth a thread's check */
    COST_MOVED = 1 << 16,    /* bytes that are worth a chunk of a copy */
    COST_ELEMENTS = 16,      /* elements of a dense row that take as long as a stored entry */
    COST_LOOKED = 64         /* bits of a set of coordinates that cost as much as a stored entry */
};
/* The model may be wrong: a copy has to take at most this part of the default's time, and loops
 * without prefetch this part of that with it. */
#define COST_GAIN 0.75
#define COST_NO_HINTS 0.97

#endif
