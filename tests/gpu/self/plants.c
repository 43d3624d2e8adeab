/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The defects of plants.cu are each found, with the words that name them, and the same kernels
 * without the defect are clean.  Both with lanes and warps in order and in drawn orders. */
#include "gpu/self/self.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

static const struct Plant {
    const char *kernel, *message;
    unsigned blocks, threads;
    uint32_t n;             /* the third parameter */
    int a_bytes, out_bytes; /* sizes of the buffers */
    enum SassBuffer a, out;
    bool same_buffer; /* one pointer alone */
} plant[] = {
    { "no_syncthreads", "race on shared memory", 1, 128, 0, 512, 512, SASS_INPUT, SASS_FRESH,
      false },
    { "no_second_syncthreads", "race on shared memory", 1, 64, 3, 768, 256, SASS_INPUT, SASS_FRESH,
      false },
    { "no_syncwarp", "no __syncwarp is between them", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH,
      false },
    { "syncwarp_of_halves", "no __syncwarp is between them", 1, 64, 16, 256, 256, SASS_INPUT,
      SASS_FRESH, false },
    { "barrier_of_a_branch", "different barriers", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH,
      false },
    { "blocks_race", "blocks of one launch have no order", 3, 64, 0, 768, 256, SASS_INPUT,
      SASS_INOUT, false },
    { "blocks_read", "blocks of one launch have no order", 3, 64, 0, 768, 768, SASS_INOUT,
      SASS_FRESH, false },
    { "reader_of_another_block", "blocks of one launch have no order", 2, 64, 0, 256, 512,
      SASS_INOUT, SASS_FRESH, false },
    { "one_byte", "race on out+32", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH, false },
    { "syncwarp_of_some_readers", "no __syncwarp is between them", 1, 32, 0, 256, 256, SASS_INPUT,
      SASS_FRESH, false },
    { "readers_in_branches", "no __syncwarp is between them", 1, 32, 0, 256, 256, SASS_INPUT,
      SASS_FRESH, false },
    { "atomics_of_blocks", "blocks of one launch have no order", 2, 64, 0, 4, 512, SASS_INOUT,
      SASS_FRESH, false },
    { "half_without_second_syncwarp", "no __syncwarp is between them", 1, 32, 0, 256, 256,
      SASS_INPUT, SASS_FRESH, false },
    { "global_race", "race on a+", 1, 64, 0, 512, 512, SASS_INOUT, SASS_INOUT, true },
    { "one_cell", "race on out+0", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH, false },
    { "atomic_and_plain", "race on a+0", 1, 64, 0, 4, 256, SASS_INOUT, SASS_FRESH, false },
    { "out_of_bounds", "in no buffer; the nearest is a", 2, 64, 100, 400, 400, SASS_INPUT,
      SASS_FRESH, false },
    { "shared_out_of_bounds", "of shared memory, of which the block has 256", 1, 64, 1, 256, 256,
      SASS_INPUT, SASS_FRESH, false },
    { "writes_input", "which is an input", 1, 64, 0, 256, 256, SASS_INPUT, SASS_INOUT, false },
    { "misaligned", "no multiple of 16", 1, 64, 2, 1088, 1024, SASS_INPUT, SASS_FRESH, false },
    { "uninitialised_shared", "nobody wrote shared memory at 20", 1, 64, 5, 256, 256, SASS_INPUT,
      SASS_FRESH, false },
    { "uninitialised_local", "nobody wrote local memory at", 1, 64, 0, 260, 256, SASS_INPUT,
      SASS_FRESH, false },
    { "uninitialised_output", "nobody wrote out+", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH,
      false },
    { "deadlock", "the launch has not ended after", 1, 64, 0, 256, 256, SASS_INPUT, SASS_FRESH,
      false },
};
enum { PLANTS = sizeof plant / sizeof *plant };

static bool told(const SassGpu *gpu, const char *message)
{
    for (int e = 0; e < sass_errors(gpu); e++)
        if (strstr(sass_error(gpu, e), message) != NULL)
            return true;
    return false;
}

static void run_plant(const struct Plant *p, const char *file, const char *variant, uint64_t seed,
                      bool right)
{
    static int32_t a[ROOM], out[ROOM];
    SassGpu *gpu = sass_gpu();
    SassParams params = { .size = 0 };
    const SassKernel *k = sass_kernel(self_code(file, variant), p->kernel);
    const SassShape shape = { { p->blocks }, { p->threads }, 0 };

    CHECK(k != NULL);
    for (int i = 0; i < ROOM; i++)
        a[i] = i, out[i] = 0;
    sass_seed(gpu, seed);
    sass_limit(gpu, 2000000);
    sass_param64(&params, sass_buffer(gpu, "a", a, (size_t)p->a_bytes, p->a));
    if (!p->same_buffer)
        sass_param64(&params, sass_buffer(gpu, "out", out, (size_t)p->out_bytes, p->out));
    sass_param32(&params, p->n);
    const bool clean = sass_launch(gpu, k, &shape, &params);

    if (right && !clean)
        test_fail(__FILE__, __LINE__, "%s, %s, seed %d: %s", p->kernel, variant, (int)seed,
                  sass_error(gpu, 0));
    if (!right && !told(gpu, p->message))
        test_fail(__FILE__, __LINE__, "%s, %s, seed %d: not found; the first error is %s",
                  p->kernel, variant, (int)seed, clean ? "none" : sass_error(gpu, 0));
    sass_gpu_free(gpu);
}

static void run_all(const char *file, bool right)
{
    static const char *const variants[] = { "o3", "g" };

    for (int v = 0; v < 2; v++)
        for (int p = 0; p < PLANTS; p++)
            for (uint64_t seed = 0; seed < 3; seed++)
                run_plant(&plant[p], file, variants[v], seed, right);
}

TEST(planted_defects_are_found)
{
    run_all("plants", false);
}

TEST(kernels_without_the_defects_are_clean)
{
    run_all("plants-right", true);
}
