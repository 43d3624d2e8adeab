/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/pipeline.c: the table of passes.  Properties hold the passes in their order, and a list of
 * names leaves out optional passes alone. */
#include "unit/api_bed.h"

#include "api/api_int.h"

enum { MOST = 64 };

static int length(void)
{
    int n = 0;

    while (api_pass[n].name != NULL)
        n++;
    return n;
}

TEST(the_order_of_the_table_is_right)
{
    const char *property;

    CHECK(api_misplaced(api_pass, &property) == NULL);
    CHECK(length() < MOST); /* a bit of Aim.skip each */
}

/* For each property: the pass that gives it, moved behind one that needs it. */
TEST(a_pass_behind_one_that_needs_it_is_found)
{
    int n = length();

    for (unsigned bit = 1; bit < 1u << PROPERTIES; bit <<= 1) {
        int gives = -1, moved = 0;

        for (int i = 0; i < n; i++)
            if (api_pass[i].gives & bit) {
                CHECK(gives < 0); /* one pass gives it */
                gives = i;
            }
        CHECK(gives >= 0);
        for (int i = 0; i < n && gives >= 0; i++) {
            Pass table[MOST];
            const char *property = NULL;
            const Pass *bad;

            if ((api_pass[i].needs & bit) == 0)
                continue;
            memcpy(table, api_pass, (size_t)(n + 1) * sizeof *table);
            memmove(&table[gives], &table[gives + 1], (size_t)(i - gives) * sizeof *table);
            table[i] = api_pass[gives];
            bad = api_misplaced(table, &property);
            CHECK(bad != NULL && (bad->needs & bit) != 0);
            CHECK(property != NULL && strstr(api_pass[gives].note, property) != NULL);
            moved++;
        }
        CHECK(moved > 0); /* a property that nothing needs says nothing */
    }
}

TEST(a_pass_that_runs_too_early_is_refused)
{
    Target target = { .unit = { VECTOR_LANES(8, 4), 16, VECTOR_CORE } };
    Aim aim = api_aim(&target);
    jmp_buf trap;
    struct weft_ctx *c;

    open_prog(spmm);
    c = ctx;
    c->err.trap = &trap;
    if (setjmp(trap) == 0) {
        Prog *p = api_trees(c, prog->body->prog);
        const Pass *last = api_find_pass(p, "flatten");
        struct Kernel *k = api_lower_to(p, &aim, last);

        api_run_pass(api_find_pass(p, "gallop"), k, &aim);
        test_fail(__FILE__, __LINE__, "it ran");
    }
    c->err.trap = NULL;
    CHECK_HAS(c->err.msg, "pass gallop needs HOISTED, which no pass before it has given");
    arena_free(&c->trees); /* as the end of a call does */
    arena_free(&c->scratch);
    close_prog();
}

TEST(optional_passes_can_be_named)
{
    jmp_buf trap;

    open_prog(spmm);
    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        Prog *p = prog->body->prog;
        uint64_t jam = (uint64_t)1 << (api_find_pass(p, "jam") - api_pass);
        uint64_t cse = (uint64_t)1 << (api_find_pass(p, "cse") - api_pass);

        CHECK(api_skipped(ctx, NULL) == 0);
        CHECK(api_skipped(ctx, " , ") == 0);
        CHECK(api_skipped(ctx, "jam") == jam);
        CHECK(api_skipped(ctx, "jam, cse") == (jam | cse));
    } else {
        test_fail(__FILE__, __LINE__, "%s", ctx->err.msg);
    }
    ctx->err.trap = NULL;
    close_prog();
}

static void refuses(const char *names, const char *part)
{
    jmp_buf trap;

    open_prog(spmm);
    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        api_skipped(ctx, names);
        test_fail(__FILE__, __LINE__, "%s is taken", names);
    }
    ctx->err.trap = NULL;
    CHECK_HAS(ctx->err.msg, part);
    CHECK_HAS(ctx->err.msg, "these can be skipped: products, transpose, ");
    arena_free(&ctx->scratch); /* as the end of a call does */
    close_prog();
}

TEST(other_names_are_refused)
{
    refuses("jam,lunch", "there is no pass lunch;");
    refuses("positions", "no kernel can do without pass positions;");
    refuses("ja", "there is no pass ja;");
}
