/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * o3/: programs of tensor products.  Paths that make no sense are refused; every mode, layout and
 * form is a program with a meaning, has e3nn's number of weights, and turns with its inputs. */
#include "unit/o3_bed.h"

#include <stdlib.h>

static const O3Path one_path = { 0, 0, 0, O3_UVW, true, 1 };

static O3Problem problem(Bed *b, const char *in1, const char *in2, const char *out,
                         const O3Path *path, int n)
{
    return (O3Problem){ .in1 = o3_irreps(&b->arena, in1),
                        .in2 = o3_irreps(&b->arena, in2),
                        .out = o3_irreps(&b->arena, out),
                        .path = path,
                        .npath = n };
}

TEST(paths_that_make_no_sense_are_refused)
{
    static const struct {
        const char *in1, *in2, *out;
        O3Path path;
        const char *part;
    } row[] = {
        { "2x1o", "1o", "0e", { 1, 0, 0, O3_UVW, true, 1 }, "path 0: slots 1, 0, 0" },
        { "2x1o", "1o", "0e", { 0, 0, -1, O3_UVW, true, 1 }, "slots 0, 0, -1" },
        { "2x1o",
          "1o",
          "0o",
          { 0, 0, 0, O3_UVW, true, 1 },
          "0o is not in the product of 1o and 1o" },
        { "2x1o",
          "1o",
          "3e",
          { 0, 0, 0, O3_UVW, true, 1 },
          "3e is not in the product of 1o and 1o" },
        { "2x1o", "1o", "0e", { 0, 0, 0, O3_UVW, false, 1 }, "uvw needs weights" },
        { "2x1o",
          "1o",
          "0e",
          { 0, 0, 0, O3_UVU, true, 1 },
          "uvu needs the multiplicity of in1 in out" },
        { "2x1o", "1o", "2x0e", { 0, 0, 0, O3_UVV, true, 1 }, "uvv needs the multiplicity of in2" },
        { "2x1o", "1o", "2x0e", { 0, 0, 0, O3_UUW, true, 1 }, "uuw needs equal multiplicities" },
        { "2x1o", "2x1o", "2x0e", { 0, 0, 0, O3_UUW, false, 1 }, "uuw without weights needs" },
        { "2x1o", "2x1o", "0e", { 0, 0, 0, O3_UUU, true, 1 }, "it has 2, 2 and 1" },
        { "2x1o", "3x1o", "5x0e", { 0, 0, 0, O3_UVUV, true, 1 }, "uvuv needs the product" },
        { "3x1o", "3x1o", "6x0e", { 0, 0, 0, O3_UVUV_LESS, true, 1 }, "uvu<v needs n, n and" },
        { "3x1o", "2x1o", "6x0e", { 0, 0, 0, O3_UVW_LESS, true, 1 }, "u<vw needs equal" },
        { "3x1o", "3x1o", "6x0e", { 0, 0, 0, O3_UVW_LESS, false, 1 }, "u<vw needs weights" },
        { "2x1o", "1o", "0e", { 0, 0, 0, O3_MODES, true, 1 }, "there is no mode 8" },
        { "2x1o", "1o", "0e", { 0, 0, 0, O3_UVW, true, -1 }, "a path weight of -1" },
        { "2x1o", "1o", "0e", { 0, 0, 0, O3_UVW, true, 1e30 }, "a path weight of 1e+30" },
        { "2x1o", "1o", "0e", { 0, 0, 0, O3_UVW, true, NAN }, "a path weight of" },
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bed b;
        O3Problem t;

        bed_open(&b);
        t = problem(&b, row[i].in1, row[i].in2, row[i].out, &row[i].path, 1);
        CHECK_EQ(CATCH(&b.err, o3_check(&b.arena, &t)), ST_ARG);
        CHECK_HAS(b.err.msg, row[i].part);
        bed_close(&b);
    }
}

TEST(variances_and_squares_are_checked)
{
    static const double bad = -1;
    Bed b;
    O3Problem t;

    bed_open(&b);
    t = problem(&b, "1o", "1o", "0e", &one_path, 1);
    t.var2 = &bad;
    CHECK_EQ(CATCH(&b.err, o3_check(&b.arena, &t)), ST_ARG);
    CHECK_HAS(b.err.msg, "a variance of -1");
    t = problem(&b, "1o", "1x1o+1o", "0e", &one_path, 1);
    t.square = true;
    CHECK_EQ(CATCH(&b.err, o3_check(&b.arena, &t)), ST_ARG);
    CHECK_HAS(b.err.msg, "a square has one input");
    bed_close(&b);
}

/* (2 l3 + 1) * path weight * variance out / (variances in * products in all paths to the slot). */
TEST(paths_are_normalised_as_by_e3nn)
{
    static const O3Path path[] = { { 0, 0, 0, O3_UVW, true, 1 },
                                   { 1, 1, 0, O3_UVW, true, 3 },
                                   { 1, 0, 1, O3_UVU, true, 1 } };
    static const double var1[] = { 2, 1 }, var_out[] = { 1, 5 };
    Bed b;
    O3Problem t;
    O3Scale s;

    bed_open(&b);
    t = problem(&b, "4x1o+3x0e", "2x0e+5x1o", "7x1o+3x0e", path, 3);
    s = o3_path_scale(&t, 0);
    CHECK_NEAR(s.num[0] * s.num[1] * s.num[2] * s.num[3] / s.den, 3.0 / (4 * 2 + 3 * 5), 0);
    s = o3_path_scale(&t, 1);
    CHECK_NEAR(s.num[0] * s.num[1] * s.num[2] / s.den, 9.0 / 23, 0);
    s = o3_path_scale(&t, 2);
    CHECK_NEAR(s.num[0] * s.num[1] * s.num[2] / s.den, 1.0 / 2, 0);
    t.var1 = var1;
    t.var_out = var_out;
    t.norm = O3_NORM;
    t.path_norm = O3_PATH;
    s = o3_path_scale(&t, 0);
    CHECK_NEAR(s.num[0] * s.num[1] * s.num[2] / s.den, 3.0 / (2 * 8 * 2), 0);
    s = o3_path_scale(&t, 2);
    CHECK_NEAR(s.num[0] * s.num[1] * s.num[2] / s.den, 5.0 / 2, 0);
    t.norm = O3_NONE;
    t.path_norm = O3_PLAIN;
    CHECK_NEAR(o3_path_scale(&t, 1).num[0] / o3_path_scale(&t, 1).den, 1, 0);
    CHECK_EQ(o3_weights(&t), 4 * 2 * 7 + 3 * 5 * 7 + 3 * 2);
    bed_close(&b);
}

TEST(a_product_is_written_as_a_program)
{
    static const O3Path path[] = { { 0, 0, 0, O3_UVU, true, 1 }, { 0, 1, 1, O3_UVU, true, 1 } };
    Text out;
    Bed b;
    O3Problem t;

    bed_open(&b);
    t = problem(&b, "2x0e", "0e+1o", "2x0e+2x1o", path, 2);
    t.layout_out = O3_IR_MUL;
    t.per_item = true;
    out = (Text){ .arena = &b.arena };
    o3_write_product(&out, &t);
    CHECK_STR(bed_canonical(&b, out.s),
              "program tp(n)\n"
              "axis B = n\n"
              "axis SX = 1, UX(SX) = {2}\n"
              "axis SY = 2, MY(SY) = {1, 3}\n"
              "axis SZ = 2, MZ(SZ) = {1, 3}, UZ(SZ) = {2, 2}\n"
              "axis P = rows sx sy sz { 0 0 0, 0 1 1 }, U(P) = {2, 2}\n"
              "axis Q(P) = rows m1 m2 m3 -> c { 0 0 0 -> 1; 0 0 0 -> 1, 0 1 1 -> 1, 0 2 2 -> 1 }\n"
              "f32 X[B, SX, UX], Y[B, SY, MY], Z[B, SZ, MZ, UZ], Wt[B, P, U]\n"
              "z: Z[b, sz(p), m3(q), u] += c[q] * Y[b, sy(p), m2(q)] * X[b, sx(p), u]"
              " * Wt[b, p, u]\n");
    bed_close(&b);
}

/* The values of an input or output of the program, n of them for each of two rows. */
static double *fill(Bed *b, const char *name, int64_t n, uint64_t *seed)
{
    double *v = drawn(b, n, seed);

    bind(name, v, WEFT_F64, 2, SHAPE(2, n));
    return v;
}

/* A problem of each form and mode; false after the last. */
static bool make(Bed *b, int number, O3Problem *t)
{
    O3Irreps keep = o3_irreps(&b->arena, "0e+1o+1e+2e+0o");
    O3Mode mode = (O3Mode)(number % O3_MODES);

    *t = problem(b, "3x1o+3x0e+3x2o", "3x1e+3x2o", "2x0o+1o+2x2e+3x1e+4x2o", NULL, 0);
    t->type = T_f64;
    if (mode == O3_UVW || mode == O3_UUW || mode == O3_UVW_LESS)
        o3_form_connected(&b->arena, t, mode, true);
    else
        o3_form_slots(&b->arena, t, mode, number % 16 < O3_MODES, &keep, number % 3 == 0);
    if (number >= 16)
        t->norm = O3_NORM;
    if (number == 32) {
        t->in1 = o3_irreps(&b->arena, "4x1o+2x2o");
        o3_form_elementwise(&b->arena, t, &keep);
    }
    if (number >= 33 && number < 35)
        o3_form_square(&b->arena, t, NULL, number == 33);
    if (number >= 35)
        o3_form_norm(&b->arena, t, number == 35);
    return number <= 36;
}

/* The problem on an item, and on the same after a rotation and an inversion. */
static void check_turns(Bed *b, const O3Problem *t)
{
    uint64_t seed = 4;
    double r[9], *want, *w = arena_array(&b->arena, o3_weights(t), sizeof *w);
    Text text = { .arena = &b->arena };
    weft_tensor z;

    if (CATCH(&b->err, o3_write_product(&text, t)) != ST_OK)
        test_fail(__FILE__, __LINE__, "refused: %s", b->err.msg);
    open_prog(text.s);
    o3_matrix_of_angles(1, 2, 3, r);
    for (int i = 0; i < 9; i++)
        r[i] = -r[i];
    turn(b, t->in1, r, fill(b, "X", o3_dim(t->in1), &seed));
    if (!t->square)
        turn(b, t->in2, r, fill(b, "Y", o3_dim(t->in2), &seed));
    for (int64_t i = 0; i < o3_weights(t); i++)
        w[i] = uniform(&seed);
    if (o3_weights(t) > 0)
        bind("Wt", w, WEFT_F64, 1, SHAPE(o3_weights(t)));
    OK(weft_run(args));
    OK(weft_args_get(args, "Z", &z));
    CHECK_EQ(z.shape[1], o3_dim(t->out));
    want = arena_array(&b->arena, 2 * o3_dim(t->out), sizeof *want);
    memcpy(want, z.data, (size_t)o3_dim(t->out) * sizeof *want);
    turn(b, t->out, r, want);
    for (int64_t i = 0; i < 2 * o3_dim(t->out); i++)
        CHECK_NEAR(((double *)z.data)[i], want[i], 1e-12);
    close_prog();
}

TEST(products_of_every_form_and_mode_turn_with_their_inputs)
{
    for (int number = 0;; number++) {
        Bed b;
        O3Problem t;
        bool more;

        bed_open(&b);
        CHECK_EQ(CATCH(&b.err, more = make(&b, number, &t)), ST_OK);
        if (more)
            check_turns(&b, &t);
        bed_close(&b);
        if (!more)
            break;
    }
}

/* Other layouts and other types are other buffers and the same numbers. */
TEST(layouts_exchange_channels_and_components)
{
    static const char *const spec[] = {
        "tp; in1=2x1o; in2=1o; mode=uvu; weights=none; type=f64; out=1e",
        "tp; in1=2x1o; in2=1o; mode=uvu; weights=none; type=f64; out=1e; layout=ir_mul",
        "tp; in1=2x1o; in2=1o; mode=uvu; weights=none; type=f64; out=1e; layout_in1=ir_mul",
        ("tp; in1=2x1o; in2=1o; mode=uvu; weights=none; type=f64; out=1e; layout=ir_mul;"
         " layout_in1=mul_ir"),
    };
    double mul_ir[] = { 1, 2, 3, 4, 5, 6 }, ir_mul[] = { 1, 4, 2, 5, 3, 6 }, y[] = { 1, 0, 2 };

    for (int i = 0; i < 4; i++) {
        weft_tensor z;
        bool in = i == 1 || i == 2, out = i == 1 || i == 3;

        weft_ctx_free(ctx);
        ctx = weft_ctx_new();
        OK(weft_prog_o3(ctx, spec[i], &prog));
        OK(weft_args_new(prog, &args));
        bind("X", in ? ir_mul : mul_ir, WEFT_F64, 2, SHAPE(1, 6));
        bind("Y", y, WEFT_F64, 2, SHAPE(1, 3));
        OK(weft_run(args));
        OK(weft_args_get(args, "Z", &z));
        /* the cross product over sqrt(2): (4, 1, -2) and (10, -2, -5) */
        CHECK_NEAR(((double *)z.data)[0] * sqrt(2), 4, 1e-14);
        CHECK_NEAR(((double *)z.data)[out ? 2 : 1] * sqrt(2), 1, 1e-14);
        CHECK_NEAR(((double *)z.data)[out ? 5 : 5] * sqrt(2), -5, 1e-14);
        CHECK_NEAR(((double *)z.data)[out ? 1 : 3] * sqrt(2), 10, 1e-14);
        close_prog();
    }
}

TEST(problems_without_paths_or_slots_have_programs)
{
    static const char *const spec[] = {
        "tp; empty=zeros; in1=; in2=; out=; mode=uvw",
        "tp; empty=zeros; in1=2x0e; in2=0e; out=; mode=uvw",
        "tp; empty=zeros; in1=2x0e; in2=0e; out=3x1o; mode=uvw",
        "tp; empty=zeros; in1=0x0e+2x1o; in2=0x0e; out=0x0e+0x1o; mode=uvw",
        "tp; empty=zeros; in1=0x1o; in2=0x1o; mode=uvu<v",
        "full; empty=zeros; in1=; in2=1o",
        "square; empty=zeros; in1=",
        "norm; in1=",
        "linear; empty=zeros; in1=; out=2x0e",
        "linear; empty=zeros; in1=0x0e; out=0x0e; bias=yes",
        "linear; empty=zeros; in1=2x0e; out=",
        "contraction; in1=; out=",
        "contraction; in1=2x1o; out=2x0o; correlation=2",
        "contraction; in1=0x0e+0x1o; out=0x0e; correlation=3",
        "contraction; in1=; out=; weights=item",
        "contraction; in1=2x0e+2x1o; out=2x0e; correlation=2; weights=item",
    };

    check_specs(spec, sizeof spec / sizeof *spec);
}

TEST(specs_that_make_no_sense_are_refused)
{
    static const struct {
        const char *spec, *part;
    } row[] = {
        { "", "there is no form \"\" here; there are tp conv connected full" },
        { "tq; in1=0e", "there is no form \"tq\" here" },
        { "tp; in1=0e; in2=0e; mode", "tp: \"mode\" is no setting" },
        { "tp; in1=8x0e; in2=0e; out=4x1o", "tp: in1=8x0e, in2=0e, out=4x1o allow no path" },
        { "square; in1=1o; keep=3o", "square: in1=1o, keep=3o allow no path, so" },
        { "linear; in1=8x0e; out=4x1o; bias=yes", "out=4x1o allow no path" },
        { "tp; in3=0e", "tp has no setting \"in3\"; it takes in1 in2 out" },
        { "tp; in=0e", "tp has no setting \"in\"" },
        { "tp; =0e", "tp has no setting \"\"" },
        { "tp; in1 in2=0e", "tp has no setting \"in1 in2\"" },
        { "tp; in1=0e; in1=0e", "tp: in1 is given twice" },
        { "tp; in1=0e", "tp: in2 is missing" },
        { "tp; in1=0e; in2=0", "irreps \"0\"" },
        { "tp; in1=0e; in2=0e; mode=uvx", "there is no mode \"uvx\"; there are uvw uvu" },
        { "tp; in1=0e; in2=0e; out=0e; type=f8", "type is one of f16 bf16 f32 f64, not \"f8\"" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0", "paths: \"\" is no integer that fits" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 x uvw", "\"x\" is no integer" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvw maybe", "is yes or no, not \"maybe\"" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvw yes one", "\"one\" is no number" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvw yes 1 2", "more than six words in path 0" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvw; mode=uvu", "paths have their own mode" },
        { "tp; in1=0e; in2=0e; out=0e; weights=none", "path 0: uvw needs weights" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvu; weights=none", "path 0 has weights" },
        { "tp; in1=0e; in2=0e; out=0e; var1=1 2", "var1 has 2 numbers and needs 1" },
        { "elementwise; in1=2x0e; in2=0e", "the inputs have 2 and 1 irreps" },
        { "square; in1=2x0e; out=0e; keep=0e", "out and keep exclude each other" },
        { "linear; in1=2x0e; out=0e+1o; paths=0 1", "path 0 goes from slot 0 to slot 1" },
        { "sh; lmax=17", "no spherical harmonics of degree 17" },
        { "sh; l=-1", "no spherical harmonics of degree -1" },
        { "sh; l=", "spherical harmonics of no degree" },
        { "sh", "degrees by one of l and lmax" },
        { "sh; l=1; lmax=1", "degrees by one of l and lmax" },
        { "wigner; l=1 1 1", "there is no form \"wigner\" here" },
    };

    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        weft_status s = weft_prog_o3(ctx, row[i].spec, &prog);

        CHECK(s == WEFT_E_ARG || s == WEFT_E_PARSE);
        CHECK(prog == NULL);
        CHECK_HAS(weft_message(ctx), row[i].part);
    }
    close_prog();
}

TEST(questions_are_answered_in_lines)
{
    const char *text;

    ctx = weft_ctx_new();
    OK(weft_o3_tell(ctx, "irreps; of=1o+2x0e; do=sort", &text));
    CHECK_STR(text, "2x0e+1x1o\nto 1 0\nfrom 1 0\n");
    OK(weft_o3_tell(ctx, "irreps; of=1o+2x0e; do=slices", &text));
    CHECK_STR(text, "0 3\n3 5\n");
    OK(weft_o3_tell(ctx, "wigner; l=0 0 0", &text));
    CHECK_STR(text, "0 0 0 1\n");
    OK(weft_o3_tell(ctx, "D; of=0o+1o; matrix=-1 0 0 0 -1 0 0 0 -1", &text));
    CHECK_HAS(text, "-1 0 0 0\n0 -1 0 0\n");
    BAD(weft_o3_tell(ctx, "D; of=0e", &text), WEFT_E_ARG, "one of matrix, angles, quaternion");
    BAD(weft_o3_tell(ctx, "D; of=0e; angles=1 2", &text), WEFT_E_ARG, "2 numbers and needs 3");
    BAD(weft_o3_tell(ctx, "wigner; l=1", &text), WEFT_E_ARG, "\"\" is no integer");
    BAD(weft_o3_tell(ctx, "tq; in1=0e", &text), WEFT_E_ARG, "there is no form \"tq\" here");
    BAD(weft_o3_tell(ctx, NULL, &text), WEFT_E_ARG, "the question");
    CHECK(text == NULL);
    close_prog();
}

/* Whatever the text, there is a program or a message. */
TEST(specs_with_mistakes_do_no_harm)
{
    static const char *const spec[] = {
        "tp; in1=2x1o+0e; in2=1o; out=0e+1e; mode=uvu; weights=item; type=f64; layout=ir_mul",
        "tp; in1=2x1o; in2=2x1o; out=1x0e+2x1e; paths=0 0 0 u<vw yes 2, 0 0 1 uuu no; var1=1",
        "square; in1=3x1o+0e; keep=0e+2e; norm=norm",
        "linear; in1=2x0e+1o; out=3x0e+1o; bias=yes; paths=0 0, 1 1",
        "contraction; in1=2x0e+2x1o; out=2x1o; correlation=2; signs=e3nn-0.4",
        "sh; l=2 0 1; norm=integral; normalize=yes",
        "irreps; of=2x1o+0e; do=filter; keep=0e",
        "D; of=1o+2x0e; quaternion=1 2 3 4",
        "wigner; l=1 2 3",
    };
    static const char letters[] = "0123456789xeoy+;=,. -uvw<abpdltnms";
    uint64_t seed = 6;

    ctx = weft_ctx_new();
    for (int64_t i = 0; i < test_scale(3000); i++) {
        char text[256];
        const char *told;
        size_t n = (size_t)snprintf(text, sizeof text - 8, "%s", spec[test_random(&seed) % 9]);

        for (uint64_t k = test_random(&seed) % 3 + 1; k > 0; k--) {
            size_t at = test_random(&seed) % n;

            if (test_random(&seed) % 3 == 0)
                memmove(text + at, text + at + 1, n-- - at); /* one letter less */
            else
                text[at] = letters[test_random(&seed) % (sizeof letters - 1)];
        }
        if (weft_prog_o3(ctx, text, &prog) != WEFT_OK)
            CHECK(prog == NULL && weft_message(ctx)[0] != 0);
        weft_prog_free(prog);
        if (weft_o3_tell(ctx, text, &told) != WEFT_OK)
            CHECK(told == NULL && weft_message(ctx)[0] != 0);
    }
    close_prog();
}

TEST(limits_are_stated)
{
    static const struct {
        const char *spec, *part;
    } row[] = {
        { "tp; in1=600000x1o+600000x0e; in2=600000x1o; mode=uvu<v", "more than 1000000 channels" },
        { "contraction; in1=0e; out=0e; correlation=4", "a correlation of 4; it goes from 1 to 3" },
        { "contraction; in1=0e; out=0e; weights=shared", "weights is one of element item, not" },
        { "contraction; in1=2x0e; out=0e", "a slot of multiplicity 1; all slots" },
        { "contraction; in1=; out=0e", "a slot of multiplicity 1; all slots" },
        { "contraction; in1=9e; out=0e; correlation=3", "degree 9 is too large for 3 factors" },
    };
    Text many = { 0 };
    Bed b;

    bed_open(&b);
    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        CHECK(weft_prog_o3(ctx, row[i].spec, &prog) != WEFT_OK);
        CHECK_HAS(weft_message(ctx), row[i].part);
    }
    many.arena = &b.arena;
    text_str(&many, "tp; mode=uvu; in2=0e+0e+0e; in1=");
    bed_repeat(&many, "0e", "+", 7000);
    BAD(weft_prog_o3(ctx, many.s, &prog), WEFT_E_LIMIT, "more than 20000 paths");
    close_prog();
    bed_close(&b);
}
