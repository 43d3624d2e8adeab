/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/target.c: the table of targets, and what passes ask of a row. */
#include "unit/kernel_bed.h"

#include "api/api_int.h"

TEST(lanes_are_by_the_type_of_values)
{
    static const VectorUnit avx2 = { VECTOR_LANES(8, 4), 16, VECTOR_CORE },
                            warp = { VECTOR_LANES(32, 32), 96, VECTOR_CORE },
                            none = { .registers = 16 };

    CHECK_EQ(lanes_of(&avx2, T_f32), 8);
    CHECK_EQ(lanes_of(&avx2, T_f64), 4);
    CHECK_EQ(lanes_of(&avx2, T_i64), 4);
    CHECK_EQ(lanes_of(&avx2, T_f16), 8); /* loaded as f32 */
    CHECK_EQ(lanes_of(&avx2, T_bf16), 8);
    CHECK_EQ(lanes_of(&avx2, T_i32), 4); /* loaded as i64 */
    CHECK_EQ(lanes_of(&warp, T_f32), 32);
    CHECK_EQ(lanes_of(&warp, T_f64), 32);
    CHECK_EQ(lanes_of(&warp, T_f16), 32);
    for (int t = T_bool; t < T_COUNT; t++)
        CHECK_EQ(lanes_of(&none, (Type)t), 1);
}

static bool is_power(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Each row that is listed, "c" at the front and "interp" at the end apart. */
TEST(every_row_of_the_table_is_whole)
{
    const char *name, *note;
    int n = 0;

    CHECK_STR(api_target_row(0, &note), "c");
    for (int i = 1; strcmp(name = api_target_row(i, &note), "interp") != 0; i++) {
        const Target *t = api_target_named(name);
        Sched s;

        CHECK(t != NULL && t->name == name && *note != 0);
        CHECK_STR(strchr(name, ':') != NULL ? strchr(name, ':') + 1 : name, target_name(t));
        CHECK(is_power(lanes_of(&t->unit, T_f32)) && is_power(lanes_of(&t->unit, T_f64)));
        CHECK(lanes_of(&t->unit, T_f32) >= lanes_of(&t->unit, T_f64));
        CHECK(t->unit.registers >= 16);
        s = sched_default(&t->unit);
        CHECK(s.policy.tile >= (lanes_of(&t->unit, T_f32) > 32 ? 2 : 4) &&
               s.policy.tile <= t->unit.registers / 2);
        n++;
    }
    CHECK(n >= 6);
    CHECK(api_target_row(n + 2, &note) == NULL);
    CHECK(api_target_named("c:mmx") == NULL);
    CHECK(api_target_named("warp") == NULL);
}

TEST(a_target_of_every_cpu_is_used_where_it_is_named)
{
    const Target *warp = api_target_named("c:warp");
    Inject j;

    CHECK(warp != NULL && lanes_of(&warp->unit, T_f64) == 32);
    open_kernel(spmm);
    compile();
    CHECK(strcmp(info_of(kernel).isa, "warp") != 0);
    close_prog();
    open_with(&j, "WEFT_MAX_ISA", "warp", spmm);
    compile();
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    CHECK_STR(info_of(kernel).isa, "warp");
    check_source("v_k + 32 <= ");
    close_inject(&j);
}
