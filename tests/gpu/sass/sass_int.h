/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of the interpreter share: decoded instructions, warps, memory and its shadow. */
#ifndef WEFT_SASS_INT_H
#define WEFT_SASS_INT_H

#include "gpu/sass/sass.h"

#define ALL_LANES 0xffffffffu
#define EACH(l, mask)                                         \
    uint32_t left_ = (mask), l;                               \
    left_ != 0 && (l = (uint32_t)__builtin_ctz(left_), true); \
    left_ &= left_ - 1

enum { LANES = 32, RZ = 255, URZ = 63, PT = 7, ARGS = 9 };

typedef struct Warp Warp;
typedef struct Run Run;
typedef struct Ins Ins;

/* ---- Instructions (decode.c) */
enum ArgKind {
    ARG_NONE,
    ARG_REG,
    ARG_UREG,
    ARG_PRED,
    ARG_UPRED,
    ARG_VALUE,
    ARG_CONST,
    ARG_MEM,
    ARG_NAME
};
typedef struct Arg {
    uint8_t kind;
    bool neg, abs, inv;         /* inv: ~ of a register, ! of a predicate */
    bool wide, narrow, decimal; /* .64; .U32 in an address; a number that is not hexadecimal */
    char part;                  /* of a register: h or H (halves), b to e (bytes), or 0 */
    int reg, ureg, bank, scale;
    int64_t value;         /* number, offset, address */
    double number;         /* a decimal one */
    const uint32_t *fixed; /* of constants: 32 lanes, and 32 of the upper half */
    char name[16];
} Arg;

/* What a run does about an instruction beyond calling its function. */
enum Flow { FLOW_NONE, FLOW_MEMORY, FLOW_BRANCH, FLOW_EXIT, FLOW_SYNC, FLOW_NOP };

typedef struct Op {
    const char *name;
    void (*run)(Warp *, const Ins *, uint32_t mask);
    uint8_t cls, flow;
    const char *mods; /* that the function knows */
} Op;

struct Ins {
    const Op *op;
    uint64_t mods[3]; /* see has() */
    Arg arg[ARGS];
    int args;
    Arg guard;
    bool uniform,
        atomic; /* of the uniform datapath; a load that belongs to a loop of compare and swap */
    uint8_t cls, bytes, lut, lut2;
    int mode;
    int8_t dest; /* the operand that is a register and the result, or -1 */
    uint8_t dest_words;
    int conv; /* of BRA.CONV: the mask that lanes wait for: a register, or -1 and conv_mask */
    uint32_t conv_mask;
    uint32_t target;   /* of a branch: number of an instruction */
    uint32_t function; /* its number */
    uint64_t address;  /* in the text of the function */
    uint64_t coded; /* the first half of its bits, or 0: a number of 32 bits is their upper half */
    const char *text;
};

/* Modifiers by number; has(i, M_X) is true of an instruction with ".X". */
enum Mod {
#define MOD(id, text) M_##id,
#include "gpu/sass/mods.def"
#undef MOD
    MODS
};
static inline bool has(const Ins *i, enum Mod m)
{
    return i->mods[m / 64] >> (m % 64) & 1;
}

enum { BANKS = 8 };
typedef struct Bank { /* of constants */
    const unsigned char *at;
    size_t bytes;
} Bank;

typedef struct Function {
    char *name;
    uint32_t first, count; /* instructions */
    SassUse use;
    Bank bank[BANKS];
    const unsigned char *info; /* section .nv.info of the function; or NULL */
    size_t info_bytes;
} Function;

struct SassKernel {
    const Sass *sass;
    uint32_t function;
};

typedef struct Symbol {
    const char *name;
    uint64_t value, size, address;
    int section, function;
} Symbol;

/* Initialised data of the module: sections .nv.global and .nv.global.init. */
typedef struct Data {
    unsigned char *at;
    size_t bytes;
    uint64_t address;
    int section;
} Data;

struct Sass {
    char *text, *usage;
    unsigned char *elf;
    size_t elf_bytes;
    Ins *ins;
    uint32_t count, room;
    Function *function;
    int functions;
    SassKernel *kernel;
    uint32_t (*number)[2 * LANES]; /* constants of operands */
    uint32_t numbers;
    Symbol *symbol;
    int symbols;
    Data data[4];
    int datas;
};

/* The address of an instruction as code sees it, for calls and returns. */
static inline uint64_t code_address(const Function *f, uint64_t at)
{
    return ((uint64_t)f->first << 4) + at;
}

bool decode(Ins *, char *text, char why[SASS_TEXT]);
void decode_links(Sass *);   /* what one instruction tells of others */
void decode_numbers(Sass *); /* room for constants */
void set_constants(Run *, uint32_t function);
const unsigned char *constant_bank(const Run *, uint32_t function, int bank, size_t *bytes);
bool elf_read(Sass *, char why[SASS_TEXT]);
const Op *op_find(const char *name, bool *uniform);
int mod_find(const char *name, size_t n);

/* ---- Memory */
typedef struct Cell { /* what is known of the accesses of a word; see race.c */
    uint32_t w_era, w_who, w_clock;
    uint32_t r_era, r_who, r_lanes, r_clock, r_other;
    uint32_t o_era, o_who;
    uint32_t split, r_each;
} Cell;

typedef struct Buffer {
    char name[32];
    unsigned char *host;
    size_t bytes;
    uint64_t base;
    enum SassBuffer kind;
    bool module; /* of the module, not of the caller */
    Cell *cell;
} Buffer;

enum Place { IN_GLOBAL, IN_SHARED, IN_LOCAL };
enum Access { READS, WRITES, UPDATES };
typedef struct Cells { /* the accessed words of one place */
    enum Place place;
    Cell *cell;
    const Buffer *buffer; /* NULL: shared memory */
    bool fresh;           /* reading what nobody wrote is an error */
} Cells;

/* Generic addresses of shared and of local memory. */
#define SHARED_WINDOW UINT64_C(0x7f0000000000)
#define LOCAL_WINDOW UINT64_C(0x7e0000000000)
#define CONSTANTS UINT64_C(0x7d0000000000)
#define BUFFERS UINT64_C(0x700000000)
enum { WINDOW = 1 << 24, STACK = 65536, SHARED_MOST = 166912, BARRIERS = 16 };

/* ---- A run */
typedef struct Group { /* lanes that do not run at present */
    uint32_t pc, mask;
    uint8_t state, index; /* index: of the barrier that BSYNC waits for */
} Group;
typedef struct Undefined { /* lanes of a register with a value that nobody wrote */
    uint32_t lanes;
    const Ins *load;
    size_t at;
    enum Place place;
    const Buffer *buffer;
    uint32_t lane; /* the one that loaded from `at` */
} Undefined;

enum State { READY, AT_BSYNC, AT_WARPSYNC, AT_BARRIER };

struct Warp {
    uint32_t r[260][LANES], ur[68][LANES], p[8], up[8], trash[4][LANES];
    uint32_t b[BARRIERS][LANES];
    uint32_t wait[LANES];          /* the mask of the WARPSYNC a lane is in */
    uint32_t pending, sync[LANES]; /* lanes with a mask of their own for the next __syncwarp */
    Run *run;
    uint32_t pc, act, live, limit, number;
    Group group[LANES];
    int groups;
    uint32_t tid[3][LANES];
    uint32_t *stack;    /* [word][lane] */
    uint8_t *written;   /* bits of the bytes that are */
    uint32_t stack_low; /* the lowest word that was written */
    bool uniform;       /* all lanes have synchronised together last */
    uint32_t clock, lane_clock[LANES], know[LANES][LANES];
    Undefined undef[260];
    bool undefined; /* there is one */
    int voted;      /* result of a reducing barrier */
    int64_t quantum;
};

struct Run {
    SassGpu *gpu;
    const Sass *sass;
    const SassKernel *kernel;
    const Ins *ins;
    Warp *warp;
    int warps;
    unsigned grid[3], block[3], at[3];
    uint64_t *executed, lanes, budget, diverged;
    unsigned char constant[8192];
    bool *ready; /* functions whose constants are set */
    unsigned char *shared;
    size_t shared_bytes;
    Cell *shared_cell;
    uint32_t era, block_first, launch_first;
    bool failed, look;
    SassCount count;
    int reduced[3]; /* threads whose predicate is true, that took part; barrier's sums */
    uint32_t barrier_pc;
    uint32_t (*each)[LANES]; /* clocks of the readers of a word, one by one */
    uint32_t eaches, each_room;
    Cell (*split)[4];
    uint32_t splits, split_room;
    uint32_t *first_eras; /* of the blocks */
    uint32_t blocks, block_room;
    uint64_t random;
};

enum { ERRORS = 32 };
struct SassGpu {
    Buffer *buffer;
    int buffers, room;
    uint64_t next, seed, limit;
    uint32_t era;
    bool look;
    SassCount count;
    char *error[ERRORS];
    uint64_t error_key[ERRORS];
    int errors;
    const Sass *sass;
    uint64_t *executed;
    Run *run;
};

/* run.c */
void fail(Warp *, const Ins *, uint32_t lane, const char *fmt, ...)
    __attribute__((format(printf, 4, 5))); /* ends the launch */
void report(Run *, uint64_t key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *thread_name(const Run *, uint32_t thread, char to[48]);
uint64_t draw(Run *);

/* race.c */
void access_word(Warp *, const Ins *, const Cells *, size_t at, int bytes, uint32_t lanes,
                 enum Access);
void sync_lanes(Warp *, uint32_t mask);

/* undefined.c */
void decode_dest(Ins *);
void note_undefined(Warp *, const Ins *, const Cells *, size_t at, int word, uint32_t lanes);
void watch_undefined(Warp *, const Ins *, uint32_t mask);

/* flow.c */
void branch(Warp *, const Ins *, uint32_t mask);
void leave(Warp *, uint32_t mask);
void synchronise(Warp *, const Ins *, uint32_t mask);
void syncwarp_passed(Warp *, uint32_t mask);
void park(Warp *, uint32_t pc, uint32_t mask, enum State, int index);
bool pick(Warp *);
bool release_barrier(Run *);

/* memory.c */
void buffer_free(Buffer *);

/* ---- Operands */
static inline const uint32_t *raw(const Warp *w, const Arg *a)
{
    return a->fixed != NULL ? a->fixed : a->kind == ARG_UREG ? w->ur[a->reg] : w->r[a->reg];
}

/* An integer: with - and ~. */
static inline const uint32_t *ints(const Warp *w, const Arg *a, uint32_t *to)
{
    const uint32_t *v = raw(w, a);

    if (!a->neg && !a->inv && a->part == 0)
        return v;
    for (int l = 0; l < LANES; l++) {
        uint32_t x = v[l];

        x = a->part == 'H'   ? x >> 16
            : a->part == 'h' ? x & 0xffff
            : a->part != 0   ? x >> 8 * (a->part - 'b') & 0xff
                             : x;
        to[l] = a->inv ? ~x : a->neg ? 0 - x : x;
    }
    return to;
}

/* The bits of a float: with - and | |. */
static inline const uint32_t *bits(const Warp *w, const Arg *a, uint32_t *to)
{
    const uint32_t *v = raw(w, a), sign = a->neg ? 0x80000000u : 0,
                   keep = a->abs ? 0x7fffffffu : ~0u;

    if (!a->neg && !a->abs)
        return v;
    for (int l = 0; l < LANES; l++)
        to[l] = (v[l] & keep) ^ sign;
    return to;
}

static inline uint64_t pair_at(const uint32_t *v, uint32_t l)
{
    return v[l] | (uint64_t)v[LANES + l] << 32;
}

static inline uint32_t *dest(Warp *w, const Arg *a)
{
    if (a->kind == ARG_UREG)
        return a->reg == URZ ? w->trash[0] : w->ur[a->reg];
    return a->reg == RZ ? w->trash[0] : w->r[a->reg];
}

static inline void put_to(uint32_t *to, const uint32_t *v, uint32_t mask)
{
    if (mask == ALL_LANES) {
        for (int l = 0; l < LANES; l++)
            to[l] = v[l];
        return;
    }
    for (EACH(l, mask))
        to[l] = v[l];
}

static inline void put(Warp *w, const Arg *a, const uint32_t *v, uint32_t mask)
{
    put_to(dest(w, a), v, mask);
}

static inline void put_pair(Warp *w, const Arg *a, const uint64_t *v, uint32_t mask)
{
    uint32_t *to = dest(w, a);

    for (EACH(l, mask)) {
        to[l] = (uint32_t)v[l];
        to[LANES + l] = (uint32_t)(v[l] >> 32);
    }
}

static inline uint32_t pred(const Warp *w, const Arg *a)
{
    const uint32_t v = a->kind == ARG_UPRED ? w->up[a->reg] : w->p[a->reg];

    return a->inv ? ~v : v;
}

static inline void put_pred(Warp *w, const Arg *a, uint32_t v, uint32_t mask)
{
    uint32_t *p = a->kind == ARG_UPRED ? w->up : w->p;

    if (a->reg != PT)
        p[a->reg] = (p[a->reg] & ~mask) | (v & mask);
}
static inline bool is_pred(const Arg *a)
{
    return a->kind == ARG_PRED || a->kind == ARG_UPRED;
}

#endif
