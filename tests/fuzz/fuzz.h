/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a reader gives to be fuzzed: two to four functions and one row in the table of fuzz.c. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_MAX = 4096 }; /* bytes of an input */

/* Reads the bytes: 1 when they were accepted, 0 when refused.  What was accepted is printed, read
 * again and compared; abort() reports a defect.  The block has just n bytes. */
typedef int FuzzRun(const uint8_t *p, size_t n);
/* Good input number k into out, which has room for FUZZ_MAX; its size, or -1 past the last. */
typedef int FuzzSeed(int k, uint8_t *out);
/* Makes lengths and checksums right again, in place, so that a change gets past them. */
typedef void FuzzMend(uint8_t *p, size_t n);

/* One change of the reader's own kind to the n bytes, in place, up to FUZZ_MAX; the new size. */
typedef size_t FuzzChange(uint64_t *rng, uint8_t *p, size_t n);

FuzzRun fuzz_ir, fuzz_mtx, fuzz_npy, fuzz_npz, fuzz_xyz, fuzz_inflate;
FuzzSeed fuzz_ir_seed, fuzz_mtx_seed, fuzz_npy_seed, fuzz_npz_seed, fuzz_xyz_seed,
    fuzz_inflate_seed;
FuzzMend fuzz_npy_mend, fuzz_npz_mend;
FuzzChange fuzz_ir_change;

/* Aborts with a message unless the condition holds. */
#define FUZZ_CHECK(cond) ((cond) ? (void)0 : fuzz_abort(__FILE__, __LINE__, #cond))
_Noreturn void fuzz_abort(const char *file, int line, const char *what);

/* An input of at most FUZZ_MAX bytes may take this much memory. */
enum { FUZZ_MEMORY = 64 << 20 };

#endif
