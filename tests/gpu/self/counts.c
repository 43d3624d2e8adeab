/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What is counted: memory traffic of kernels whose accesses are known, instructions by class, warps
 * that an SM holds; and the matrices that kernels are counted on. */
#include "gpu/self/self.h"

#include "gpu/sass/matrix.h"

#include <stdlib.h>
#include <string.h>

static float in[1 << 14], out[1 << 14];

static SassCount counted(const char *name, SassShape shape, int64_t n, size_t bytes)
{
    SassGpu *gpu = sass_gpu();
    SassParams p = { .size = 0 };
    SassCount c;

    sass_param64(&p, sass_buffer(gpu, "in", in, bytes, SASS_INPUT));
    sass_param64(&p, sass_buffer(gpu, "out", out, bytes, SASS_INOUT));
    if (n >= 0)
        sass_param32(&p, (uint32_t)n);
    self_run(gpu, self_code("warp", "o3"), name, shape, &p);
    c = sass_count(gpu);
    sass_gpu_free(gpu);
    return c;
}

TEST(a_turned_tile_has_the_traffic_of_its_elements)
{
    const SassCount c =
        counted("turn_tile", (SassShape){ { 2, 2 }, { 32, 4 }, 0 }, 64, 64 * 64 * 4);

    CHECK_EQ(c.of[SASS_LDG], 64 * 64 / 32);
    CHECK_EQ(c.of[SASS_STG], 64 * 64 / 32);
    CHECK_EQ(c.of[SASS_LDS], 64 * 64 / 32);
    CHECK_EQ(c.of[SASS_STS], 64 * 64 / 32);
    for (int k = 0; k < 2; k++) {
        CHECK_EQ(c.bytes[k], 64 * 64 * 4);
        CHECK_EQ(c.sectors[k], 64 * 64 * 4 / 32);
        CHECK_EQ(c.shared[k], 64 * 64 * 4);
        CHECK_EQ(c.waves[k], 64 * 64 / 32); /* 33 words a row: no two lanes share a bank */
    }
    CHECK_EQ(c.bytes[2], 0);
    CHECK(c.of[SASS_SYNC] >= 4 * 4); /* one barrier a warp, and meetings of lanes */
}

TEST(strides_cost_sectors_and_wavefronts)
{
    const SassCount c = counted("strided", (SassShape){ { 1 }, { 64 }, 0 }, 8, 64 * 8 * 4);

    CHECK_EQ(c.of[SASS_LDG], 2);
    CHECK_EQ(c.sectors[0], 64);  /* 8 floats apart: a sector each */
    CHECK_EQ(c.waves[1], 2 * 8); /* 8 words apart: 4 banks of 32, 8 lanes on each */
    CHECK_EQ(c.waves[0], 2);     /* all lanes of a warp read one word */
    CHECK_EQ(c.sectors[1], 64 * 4 / 32);
}

TEST(wide_accesses_go_by_quarters_of_a_warp)
{
    const SassCount c = counted("wide_copy", (SassShape){ { 1 }, { 32 }, 0 }, -1, 32 * 16);

    CHECK_EQ(c.of[SASS_LDG], 1);
    CHECK_EQ(c.of[SASS_STS], 1);
    CHECK_EQ(c.bytes[0], 32 * 16);
    CHECK_EQ(c.sectors[0], 16);
    CHECK_EQ(c.waves[1], 4);
    CHECK_EQ(c.waves[0], 4);
}

TEST(arithmetic_is_counted_by_class)
{
    const SassCount c = counted("arithmetic", (SassShape){ { 3 }, { 64 }, 0 }, -1, 3 * 64 * 4);
    uint64_t sum = 0;

    CHECK_EQ(c.of[SASS_FFMA], 3 * 2 * 5);
    CHECK_EQ(c.of[SASS_FMUL], 3 * 2);
    CHECK_EQ(c.of[SASS_FADD], 3 * 2 * 2);
    CHECK_EQ(c.of[SASS_SHFL], 3 * 2);
    CHECK_EQ(c.of[SASS_ATOM], 0);
    CHECK_EQ(c.diverged, 0);
    for (int k = 0; k < SASS_CLASSES; k++)
        sum += c.of[k];
    CHECK_EQ(sum, c.all);
    CHECK_EQ(c.lanes, 32 * c.all);
}

TEST(a_branch_that_lanes_take_both_ways_diverges)
{
    const SassCount c = counted("half_shuffle", (SassShape){ { 1 }, { 32 }, 0 }, 16, 32 * 4);

    CHECK_EQ(c.diverged, 1);
    CHECK(c.lanes < 32 * c.all);
}

/* ---- Text that no nvcc has to write */
static Sass *parsed(const char *usage, const char *code)
{
    char why[SASS_TEXT], text[4096];
    Sass *s;

    snprintf(text, sizeof text, "\t\tFunction : k\n%s", code);
    s = sass_parse(text, usage, NULL, 0, why);
    if (s == NULL)
        test_fail(__FILE__, __LINE__, "%s", why);
    return s;
}

TEST(an_sm_holds_what_registers_warps_and_shared_memory_allow)
{
    static const struct {
        int registers, shared, threads, dynamic, warps;
    } row[] = {
        { 32, 0, 256, 0, 64 },     { 33, 0, 256, 0, 48 },       { 64, 0, 128, 0, 32 },
        { 255, 0, 256, 0, 8 },     { 128, 0, 96, 0, 15 },       { 16, 0, 32, 0, 32 },
        { 32, 40000, 256, 0, 32 }, { 32, 1024, 128, 80896, 8 }, { 32, 0, 64, 166912, 2 },
        { 32, 0, 1024, 0, 64 },
    };

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char usage[256];
        Sass *s;

        snprintf(usage, sizeof usage, " Function k:\n  REG:%d STACK:0 SHARED:%d LOCAL:0\n",
                 row[k].registers, row[k].shared);
        s = parsed(usage, "        /*0000*/                   EXIT ;  /* 0x000000000000794d */\n");
        CHECK_EQ(sass_use(sass_kernel(s, "k")).registers, row[k].registers);
        CHECK_EQ(sass_warps(sass_kernel(s, "k"), row[k].threads, row[k].dynamic), row[k].warps);
        sass_free(s);
    }
}

TEST(an_instruction_that_is_not_known_is_told_and_ends_a_launch)
{
    static const char *const bad[] = { "FROB R0, R1", "FADD.NEW R0, R1, R2",
                                       "MOV R0, cx[UR4][0x10]", "IADD3 R0, R1, {R2}, RZ" };

    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char text[512];
        SassGpu *gpu = sass_gpu();
        Sass *s;

        snprintf(text, sizeof text,
                 "        /*0000*/                   %s ;  /* 0x0 */\n"
                 "        /*0010*/                   EXIT ;  /* 0x0 */\n",
                 bad[k]);
        s = parsed(" Function k:\n  REG:8 STACK:0 SHARED:0\n", text);
        FILE *null = fopen("/dev/null", "w");

        CHECK(null != NULL);
        CHECK_EQ(sass_unknown(s, null), 1);
        fclose(null);
        CHECK(!sass_launch(gpu, sass_kernel(s, "k"), &(SassShape){ { 1 }, { 32 }, 0 },
                           &(SassParams){ .size = 0 }));
        CHECK_HAS(sass_error(gpu, 0), "does not know this instruction");
        sass_gpu_free(gpu);
        sass_free(s);
    }
}

TEST(every_instruction_of_the_tests_is_known)
{
    static const char *const file[] = { "ops", "warp", "plants" };

    for (int f = 0; f < 3; f++)
        for (int v = 0; v < VARIANTS; v++)
            if (f < 2 || v != 1)
                CHECK_EQ(sass_unknown(self_code(file[f], variant_name[v]), stdout), 0);
}

TEST(a_block_that_an_sm_cannot_hold_is_refused)
{
    Sass *s = parsed(" Function k:\n  REG:128 STACK:0 SHARED:0\n",
                     "        /*0000*/                   EXIT ;  /* 0x0 */\n");
    SassGpu *gpu = sass_gpu();
    const SassParams none = { .size = 0 };

    CHECK(!sass_launch(gpu, sass_kernel(s, "k"), &(SassShape){ { 1 }, { 1024 }, 0 }, &none));
    CHECK_HAS(sass_error(gpu, 0), "128 registers a thread");
    CHECK(!sass_launch(gpu, sass_kernel(s, "k"), &(SassShape){ { 1 }, { 1025 }, 0 }, &none));
    CHECK_HAS(sass_error(gpu, 0), "1024 are the most");
    CHECK(!sass_launch(gpu, sass_kernel(s, "k"), &(SassShape){ { 1 }, { 32 }, 170000 }, &none));
    CHECK_HAS(sass_error(gpu, 0), "166912 are the most");
    CHECK(sass_launch(gpu, sass_kernel(s, "k"), &(SassShape){ { 1 }, { 512 }, 0 }, &none));
    sass_gpu_free(gpu);
    sass_free(s);
}

/* ---- Matrices */
TEST(matrices_have_the_rows_that_they_promise)
{
    for (int kind = 0; kind < MATRICES; kind++) {
        Matrix m = matrix_make((enum MatrixKind)kind, 3);
        int least = INT32_MAX, most = 0;

        CHECK_EQ(m.cols, 256);
        for (int r = 0; r < m.rows; r++) {
            const int n = m.start[r + 1] - m.start[r];

            least = n < least ? n : least;
            most = n > most ? n : most;
            for (int k = m.start[r]; k < m.start[r + 1]; k++) {
                CHECK(m.coord[k] >= 0 && m.coord[k] < m.cols);
                CHECK(k == m.start[r] || m.coord[k - 1] < m.coord[k] ||
                      (kind == MATRIX_LONG && m.coord[k - 1] == m.coord[k]));
            }
        }
        const int want[MATRICES][4] = { { 16, 96, 96, 16 * 96 }, { 16, 160, 160, 16 * 160 },
                                        { 16, 32, 32, 512 },     { 48, 0, 115, 766 },
                                        { 16, 0, 0, 0 },         { 4, 0, 10000, 10015 } };

        CHECK_EQ(m.rows, want[kind][0]);
        CHECK_EQ(least, want[kind][1]);
        CHECK_EQ(most, want[kind][2]);
        CHECK_EQ(m.nnz, want[kind][3]);
        matrix_free(&m);
    }
}

/* ---- A kernel on these matrices */
enum { WIDTH = 128 };

static void multiply(const Matrix *m, const float *b, float *c)
{
    for (int r = 0; r < m->rows; r++)
        for (int k = m->start[r]; k < m->start[r + 1]; k++)
            for (int f = 0; f < WIDTH; f++)
                c[r * WIDTH + f] += m->value[k] * b[m->coord[k] * WIDTH + f];
}

static void check_matrix(enum MatrixKind kind, const char *variant, uint64_t seed)
{
    Matrix m = matrix_make(kind, 5);
    float *b = calloc((size_t)(m.cols * WIDTH), 4), *c = calloc((size_t)(m.rows * WIDTH), 4),
          *want = calloc((size_t)(m.rows * WIDTH), 4);
    SassGpu *gpu = sass_gpu();
    SassParams p = { .size = 0 };
    SassCount n;

    CHECK(b != NULL && c != NULL && want != NULL);
    for (int k = 0; k < m.cols * WIDTH; k++)
        b[k] = (float)(k % 7) - 3;
    sass_seed(gpu, seed);
    sass_param32(&p, (uint32_t)m.rows);
    sass_param64(&p, sass_buffer(gpu, "start", m.start, (size_t)(m.rows + 1) * 4, SASS_INPUT));
    sass_param64(&p, sass_buffer(gpu, "coord", m.coord, (size_t)m.nnz * 4, SASS_INPUT));
    sass_param64(&p, sass_buffer(gpu, "value", m.value, (size_t)m.nnz * 4, SASS_INPUT));
    sass_param64(&p, sass_buffer(gpu, "b", b, (size_t)(m.cols * WIDTH) * 4, SASS_INPUT));
    sass_param64(&p, sass_buffer(gpu, "c", c, (size_t)(m.rows * WIDTH) * 4, SASS_FRESH));
    self_run(gpu, self_code("warp", variant), "sparse_rows",
             (SassShape){ { (unsigned)(m.rows + 3) / 4 }, { 128 }, 0 }, &p);
    n = sass_count(gpu);
    multiply(&m, b, want);
    CHECK(memcmp(c, want, (size_t)(m.rows * WIDTH) * 4) == 0);
    /* an instruction that its predicate turns off is counted too, at the end of a row */
    CHECK(n.of[SASS_FFMA] >= 4 * (uint64_t)m.nnz);
    CHECK(n.of[SASS_FFMA] <= 4 * (uint64_t)(m.nnz + m.rows));
    CHECK_EQ(n.bytes[1], m.rows * WIDTH * 4);
    /* an entry's row of b, the entry itself, two starts of each row by each lane */
    CHECK_EQ(n.bytes[0], (int64_t)m.nnz * (WIDTH * 4 + 8) + (int64_t)m.rows * 2 * 32 * 4);
    sass_gpu_free(gpu);
    matrix_free(&m);
    free(b);
    free(c);
    free(want);
}

TEST(a_sparse_product_is_right_and_counted_on_every_matrix)
{
    for (int kind = 0; kind < MATRICES; kind++)
        for (int v = 0; v < 2; v++) /* debug code loads more than it needs */
            for (uint64_t seed = 0; seed < 2; seed++)
                check_matrix((enum MatrixKind)kind, variant_name[v], seed);
}
