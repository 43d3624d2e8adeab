/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/device.c: kernels on a device.  What needs one runs where WEFT_TEST_DEVICE is set, as drivers
 * leak and race in ways that are not ours; tests/kernel/device.c compares many programs. */
#include "unit/kernel_bed.h"

#include "dev/dev.h"
#include "weft_device.h"

static bool open_device(const char *text)
{
    if (getenv("WEFT_TEST_DEVICE") == NULL)
        return false;
    set_cache();
    open_prog(text);
    OK(weft_ctx_target(ctx, "opencl"));
    if (weft_kernel_compile(prog, &kernel) != WEFT_OK || weft_warning(ctx)[0] != 0) {
        printf("skipped: kernels on a device: %s%s\n", weft_message(ctx), weft_warning(ctx));
        close_prog();
        return false;
    }
    return true;
}

TEST(a_target_has_to_be_one_that_runs)
{
    open_prog(spmm);
    OK(weft_ctx_target(ctx, NULL));
    OK(weft_ctx_target(ctx, "c"));
    OK(weft_ctx_target(ctx, "opencl"));
    BAD(weft_ctx_target(ctx, "cuda:sm_1"), WEFT_E_ARG, "there is no target cuda:sm_1");
#if defined(__x86_64__)
    BAD(weft_ctx_target(ctx, "c:neon"), WEFT_E_ARG, "this machine does not run c:neon");
#endif
    CHECK(weft_ctx_target(NULL, "c") == WEFT_E_ARG);
    close_prog();
}

TEST(a_kernel_of_a_device_is_told_as_one)
{
    weft_info info;

    if (!open_device(spmm))
        return;
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.target, "opencl");
    CHECK(info.phases > 0);
    close_prog();
}

TEST(runs_on_a_device_see_what_changed)
{
    if (!open_device(spmm))
        return;
    bind_csr();
    csr_value[0] = 1.5f;
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    csr_value[0] = 3;
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 8, 13, 0, 0, 1, 0.5f }, 6);
    csr_value[0] = 1.5f;
    OK(weft_args_hold(args, "A", 1));
    OK(weft_kernel_run(kernel, args));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_prog();
}

TEST(a_target_is_that_of_later_kernels)
{
    weft_kernel *here;
    weft_info info;

    if (!open_device(spmm))
        return;
    OK(weft_ctx_target(ctx, NULL));
    OK(weft_kernel_compile(prog, &here));
    OK(weft_kernel_info(here, &info));
    CHECK_STR(info.target, "c");
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    OK(weft_kernel_run(here, args));
    check_floats("C", product, 6);
    weft_kernel_free(kernel); /* before the arguments that have a plan for it */
    OK(weft_kernel_run(here, args));
    close_prog();
}

TEST(kernels_work_in_place_on_memory_of_the_device)
{
    float got[6] = { 0 };
    weft_tensor t = { NULL, WEFT_F32, 2, SHAPE(3, 2), NULL };

    if (!open_device(spmm))
        return;
    t.data = dev_alloc(ctx->dev, sizeof got);
    bind_csr();
    OK(weft_args_device(args, "C", &t));
    OK(weft_kernel_run(kernel, args));
    CHECK(dev_read(ctx->dev, t.data, got, sizeof got));
    for (int i = 0; i < 6; i++)
        CHECK(got[i] == product[i]);
    dev_free(ctx->dev, t.data);
    close_prog();
}

TEST(a_matrix_without_entries_gives_zeros)
{
    static int64_t start[4] = { 0 }, coord[1] = { 0 };
    static float value[1] = { 0 };

    if (!open_device(spmm))
        return;
    bind_csr();
    bind("J.start", start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", coord, WEFT_I64, 1, SHAPE(0));
    bind("A", value, WEFT_F32, 1, SHAPE(0));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 0, 0, 0, 0, 0, 0 }, 6);
    close_prog();
}
