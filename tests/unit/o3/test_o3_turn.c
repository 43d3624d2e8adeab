/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * o3/: linear layers, spherical harmonics and contractions turn with their inputs; what irreps, D
 * matrices and settings say at their edges. */
#include "unit/o3_bed.h"

typedef struct Turned { /* a spec of f64, with its input and output */
    const char *spec, *in, *out;
    int64_t wt[3]; /* the shape of the weights; 0: no more */
    int64_t bias;  /* how many; 0: none */
} Turned;

/* Two items with weights that are the same for both. */
static void bind_weights(Bed *b, const Turned *t, uint64_t *seed)
{
    int64_t n = 1;
    int rank = 0;
    double *w;

    for (; rank < 3 && t->wt[rank] > 0; rank++)
        n *= t->wt[rank];
    if (rank == 0)
        return;
    w = drawn(b, n, seed);
    for (int64_t i = n / 2; rank == 2 && i < n; i++)
        w[i] = w[i - n / 2]; /* of each item */
    bind("Wt", w, WEFT_F64, rank, t->wt);
    if (t->bias > 0)
        bind("Bias", drawn(b, t->bias, seed), WEFT_F64, 1, SHAPE(t->bias));
}

static void check_turns(Bed *b, const Turned *t)
{
    static int64_t element[] = { 1, 1 };
    uint64_t seed = 5;
    O3Irreps in = o3_irreps(&b->arena, t->in), out = o3_irreps(&b->arena, t->out);
    double r[9], *x = drawn(b, o3_dim(in), &seed), *want;
    bool sh = t->spec[0] == 's';
    weft_tensor z;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_o3(ctx, t->spec, &prog));
    OK(weft_args_new(prog, &args));
    o3_matrix_of_angles(0.4, 2, -1, r);
    for (int i = 0; i < 9; i++)
        r[i] = -r[i];
    turn(b, in, r, x);
    bind("X", x, WEFT_F64, 2, SHAPE(2, o3_dim(in)));
    bind_weights(b, t, &seed);
    if (t->wt[2] > 0)
        bind("el", element, WEFT_I64, 1, SHAPE(2));
    OK(weft_run(args));
    OK(weft_args_get(args, sh ? "Y" : "Z", &z));
    CHECK_EQ(z.shape[1], o3_dim(out));
    want = arena_array(&b->arena, 2 * o3_dim(out), sizeof *want);
    memcpy(want, z.data, (size_t)o3_dim(out) * sizeof *want);
    turn(b, out, r, want);
    for (int64_t i = 0; i < 2 * o3_dim(out); i++)
        CHECK_NEAR(((double *)z.data)[i], want[i], 1e-11);
    close_prog();
}

TEST(layers_harmonics_and_contractions_turn_with_their_inputs)
{
    static const Turned row[] = {
        { "linear; in1=2x0e+3x1o+0o; out=3x0e+2x1o; type=f64; bias=yes",
          "2x0e+3x1o+0o",
          "3x0e+2x1o",
          { 12 },
          3 },
        { "linear; in1=2x0e+3x1o+2x0e; out=3x0e+2x1o; type=f64; weights=item; path_norm=path",
          "2x0e+3x1o+2x0e",
          "3x0e+2x1o",
          { 2, 18 },
          0 },
        { "linear; in1=2x0e+3x1o; out=3x0e+2x1o; type=f64; paths=1 1",
          "2x0e+3x1o",
          "3x0e+2x1o",
          { 6 },
          0 },
        { "sh; lmax=6; type=f64", "1o", "0e+1o+2e+3o+4e+5o+6e", { 0 }, 0 },
        { "sh; l=4 2; type=f64; norm=norm; normalize=yes", "1o", "4e+2e", { 0 }, 0 },
        { "sh; l=0 3; type=f64; norm=integral", "1o", "0e+3o", { 0 }, 0 },
        { "contraction; in1=2x0e+2x1o+2x2e; out=2x0e+2x1o+2x2e; correlation=2; type=f64",
          "2x0e+2x1o+2x2e",
          "2x0e+2x1o+2x2e",
          { 2, 14, 2 },
          0 },
        { "contraction; in1=1o+2e; out=1o+3o; type=f64; signs=e3nn-0.4",
          "1o+2e",
          "1o+3o",
          { 2, 27, 1 },
          0 },
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bed b;

        bed_open(&b);
        check_turns(&b, &row[i]);
        bed_close(&b);
    }
}

/* Of a vector there is one polynomial of degree 3 that is a vector, x |x|^2.  Three couplings make
 * it: by way of a scalar with 1 / sqrt(3), of an axial vector with 0, of a tensor with
 * 2 / sqrt(15). */
/* Two items; each uses the weights of its element, or its own. */
static void check_couplings(const char *spec, bool per_item)
{
    static double wt[2 * 4 * 2], x[2 * 2 * 3];
    static int64_t el[] = { 1, 0 };
    uint64_t seed = 9;
    weft_tensor z;

    for (size_t i = 0; i < sizeof wt / sizeof *wt; i++)
        wt[i] = uniform(&seed);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = uniform(&seed);
    OK(weft_prog_o3(ctx, spec, &prog));
    OK(weft_args_new(prog, &args));
    bind("X", x, WEFT_F64, 2, SHAPE(2, 6));
    bind("Wt", wt, WEFT_F64, 3, SHAPE(2, 4, 2));
    if (!per_item)
        bind("el", el, WEFT_I64, 1, SHAPE(2));
    OK(weft_run(args));
    OK(weft_args_get(args, "Z", &z));
    for (int b = 0; b < 2; b++)
        for (int u = 0; u < 2; u++) {
            const double *w = &wt[(per_item ? b : el[b]) * 8 + u], *v = &x[b * 6 + u * 3];
            double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
            double c = w[0] + square * (w[2] / sqrt(3) + 2 * w[6] / sqrt(15));

            for (int m = 0; m < 3; m++)
                CHECK_NEAR(((double *)z.data)[b * 6 + u * 3 + m], c * v[m], 1e-14);
        }
}

TEST(couplings_to_one_polynomial_add_up_their_weights)
{
    ctx = weft_ctx_new();
    check_couplings("contraction; in1=2x1o; out=2x1o; type=f64", false);
    close_prog();
}

TEST(items_of_a_contraction_can_have_their_own_weights)
{
    ctx = weft_ctx_new();
    check_couplings("contraction; in1=2x1o; out=2x1o; type=f64; weights=item", true);
    close_prog();
}

static const double *harmonics(const char *spec, double *x)
{
    weft_tensor z;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_o3(ctx, spec, &prog));
    OK(weft_args_new(prog, &args));
    bind("X", x, WEFT_F64, 2, SHAPE(1, 3));
    OK(weft_run(args));
    OK(weft_args_get(args, "Y", &z));
    return z.data;
}

TEST(harmonics_have_the_length_of_their_normalisation)
{
    static const struct {
        const char *spec;
        double squares; /* of degree 8 */
    } row[] = {
        { "sh; l=8; type=f64", 17 },
        { "sh; l=8; type=f64; norm=norm", 1 },
        { "sh; l=8; type=f64; norm=integral", 17 / (4 * 3.14159265358979323846) },
        { "sh; l=8; type=f64; normalize=yes", 17 },
    };
    double x[3] = { 2.0 / 7, -3.0 / 7, 6.0 / 7 };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double *y = harmonics(row[i].spec, x);
        double sum = 0;

        for (int k = 0; k < 17; k++)
            sum += y[k] * y[k];
        CHECK_NEAR(sum, row[i].squares, 1e-13 * row[i].squares);
        for (int k = 0; i == 2 && k < 3; k++)
            x[k] *= 5; /* only the direction counts from here on */
        close_prog();
    }
}

typedef struct Told {
    const char *question, *answer;
} Told;

static void check_told(const Told *row, size_t n)
{
    const char *text;

    for (size_t i = 0; i < n; i++) {
        ok(weft_o3_tell(ctx, row[i].question, &text), row[i].question, __LINE__);
        CHECK_STR(text, row[i].answer);
    }
}

TEST(facts_about_irreps_and_rotations_are_told)
{
    static const Told row[] = {
        { "irreps; of=1o+2x0e+1o", "1x1o+2x0e+1x1o\n" },
        { "irreps; of=1o+2x0e+1o; do=num", "4\n" },
        { "irreps; of=1o+2x0e+1o; do=lmax", "1\n" },
        { "irreps; of=1o+2x0e+1o; do=dim", "8\n" },
        { "irreps; of=1o+2x0e+1o; do=regroup", "2x0e+2x1o\n" },
        { " irreps ; of = 1o+1o ; do = simplify ", "2x1o\n" },
        { "irreps; of=1o+2x0e; do=filter; keep=0e", "2x0e\n" },
        { "irreps; of=1o+2x0e; do=filter; drop=0e", "1x1o\n" },
        { "D; of=1o; angles=0 0 0", "1 0 0\n0 1 0\n0 0 1\n" },
        { "D; of=1o; quaternion=0 0 1 0", "-1 0 0\n0 1 0\n0 0 -1\n" },
        { "D; of=1e; matrix=-1 0 0 0 -1 0 0 0 -1", "1 0 0\n0 1 0\n0 0 1\n" },
    };
    const char *text;

    ctx = weft_ctx_new();
    check_told(row, sizeof row / sizeof *row);
    BAD(weft_o3_tell(ctx, "irreps; of=0e; do=filter", &text), WEFT_E_ARG, "keep is missing");
    BAD(weft_o3_tell(ctx, "D; of=0e; angles=1 2 3; quaternion=1 0 0 0", &text), WEFT_E_ARG,
        "one of matrix, angles, quaternion");
    close_prog();
}

TEST(what_a_problem_has_is_told)
{
    static const Told row[] = {
        { "tp; in1=2x0e+1o; in2=0e+1o; out=1o; mode=uvu",
          "in1 2x0e+1x1o\nin2 1x0e+1x1o\nout 2x1o+1x1o\nweights 3\n"
          "path 0 1 0 uvu yes 1\npath 1 0 1 uvu yes 1\n" },
        { "tp; in1=3x0e; in2=3x0e; out=2x0e+3x0e; paths=0 0 0 uuw, 0 0 1 uuu no 0.5",
          "in1 3x0e\nin2 3x0e\nout 2x0e+3x0e\nweights 6\n"
          "path 0 0 0 uuw yes 1\npath 0 0 1 uuu no 0.5\n" },
        { "square; in1=1o; keep=0e",
          "in1 1x1o\nout 1x0e\nweights 0\npath 0 0 0 uuu no 0.2\n" },
        { "linear; in1=2x0e+1o; out=3x0e+1o; bias=yes",
          "in1 2x0e+1x1o\nout 3x0e+1x1o\nweights 7\nbias 3\npath 0 0\npath 1 1\n" },
        { "contraction; in1=2x0e+2x1o; out=2x1o; correlation=2",
          "in1 2x0e+2x1o\nout 2x1o\nweights 3\npath 0 1\npath 0 2\npath 0 2\n" },
        { "sh; l=0 3 2", "out 1x0e+1x3o+1x2e\n" },
    };
    const char *text;

    ctx = weft_ctx_new();
    check_told(row, sizeof row / sizeof *row);
    BAD(weft_o3_tell(ctx, "tp; in1=0e; in2=0e; out=1o; paths=0 0 0 uvw", &text), WEFT_E_ARG,
        "path 0");
    BAD(weft_o3_tell(ctx, "sh; l=99", &text), WEFT_E_ARG, "99");
    close_prog();
}

TEST(a_call_without_a_place_for_its_result_is_refused)
{
    const char *text = "";

    ctx = weft_ctx_new();
    BAD(weft_o3_tell(ctx, "wigner; l=0 0 0", NULL), WEFT_E_ARG, "out");
    BAD(weft_prog_o3(ctx, "sh; lmax=1", NULL), WEFT_E_ARG, "out");
    BAD(weft_prog_o3(ctx, NULL, &prog), WEFT_E_ARG, "the problem");
    CHECK(weft_prog_o3(NULL, "sh; lmax=1", &prog) != WEFT_OK);
    CHECK(weft_o3_tell(NULL, "wigner; l=0 0 0", &text) != WEFT_OK);
    CHECK(prog == NULL && text == NULL);
    close_prog();
}

/* Irreps that differ in length, multiplicity, degree or parity. */
TEST(irreps_are_equal_slot_by_slot)
{
    static const char *const other[] = { "2x1o", "2x1o+0e+0e", "3x1o+0e", "2x2o+0e", "2x1e+0e" };
    Bed b;
    O3Irreps irreps;

    bed_open(&b);
    irreps = o3_irreps(&b.arena, "2x1o+0e");
    CHECK(o3_irreps_equal(irreps, o3_irreps(&b.arena, " 2 x 1o + 1x0e")));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        CHECK(!o3_irreps_equal(irreps, o3_irreps(&b.arena, other[i])));
    bed_close(&b);
}

TEST(a_product_has_limits_and_known_modes)
{
    Bed b;
    O3Path path = { 0, 0, 0, O3_MODES, true, 1 };
    O3Problem t;

    bed_open(&b);
    t = (O3Problem){ .in1 = o3_irreps(&b.arena, "0e"),
                     .in2 = o3_irreps(&b.arena, "0e"),
                     .out = o3_irreps(&b.arena, "0e"),
                     .path = &path,
                     .npath = 1 };
    CHECK_EQ(CATCH(&b.err, o3_check(&b.arena, &t)), ST_ARG);
    t.npath = O3_MAX_PATHS + 1;
    CHECK_EQ(CATCH(&b.err, o3_check(&b.arena, &t)), ST_LIMIT);
    bed_close(&b);
}

TEST(forms_without_a_mode_have_programs)
{
    static const char *const spec[] = {
        "connected; in1=2x0e+1o; in2=1o; out=3x0e+1e",
        "full; in1=2x0e+2x0e; in2=1o; keep=1o",
        "elementwise; in1=2x1o; in2=2x1o; keep=0e",
        "norm; in1=2x1o+0e; squared=yes",
        "tp; in1=2x1o; in2=1o; mode=uvu; order=in; name=mine",
        "linear; in1=0e; out=0e; paths=; empty=zeros",
        "square; in1=1o; keep=0e",
        "tp; in1=0e; in2=0e; out=0e; paths=0 0 0 uvu no; weights=none",
    };

    check_specs(spec, sizeof spec / sizeof *spec);
}

TEST(settings_that_exclude_each_other_are_refused)
{
    static const struct {
        const char *spec, *part;
    } row[] = {
        { "sh; l=2000", "no spherical harmonics of degree -1" },
        { "sh; lmax=-1", "spherical harmonics of no degree" },
        { "tp; in1=0e; in2=0e; out=0e; order=in; paths=0 0 0 uvu", "their own mode and order" },
        { "tp; in1=0e; in2=0e; out=0e; paths=0 0 0", "there is no mode \"\"" },
    };

    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        BAD(weft_prog_o3(ctx, row[i].spec, &prog), WEFT_E_ARG, row[i].part);
    close_prog();
}

TEST(there_are_not_too_many_slots)
{
    Text many = { 0 };
    Bed b;

    bed_open(&b);
    many.arena = &b.arena;
    bed_repeat(&many, "0e", "+", 100001);
    CHECK_EQ(CATCH(&b.err, o3_irreps(&b.arena, many.s)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "slots");
    bed_close(&b);
}

/* Squares under each normalisation, connected and not. */
TEST(squares_are_normalised_each_way)
{
    static const char *const norm[] = { "component", "norm", "none" };
    static const char *const more[] = { "", "; keep=0e+2e", "; out=2x0e+2e; weights=item" };

    for (int i = 0; i < 9; i++) {
        char spec[120];

        snprintf(spec, sizeof spec, "square; in1=2x1o+0e; norm=%s%s", norm[i / 3], more[i % 3]);
        weft_ctx_free(ctx);
        ctx = weft_ctx_new();
        ok(weft_prog_o3(ctx, spec, &prog), spec, __LINE__);
        ok(weft_prog_check(prog), spec, __LINE__);
    }
    close_prog();
}
