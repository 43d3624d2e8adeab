/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_tp_*: products on plain arrays.  A product is linear in each operand, and so are its
 * derivatives, so that differences check them without an error but rounding. */
#include "unit/layer_bed.h"

enum { N = 3 };

typedef struct Set { /* an array of each kind for N items */
    double x[MOST], y[MOST], w[MOST], z[MOST];
} Set;

static const char uvu_item[] = "tp; in1=2x0e+3x1o; in2=0e+1o; out=0e+1o; mode=uvu; weights=item; "
                              "type=f64";
static const char shared[] = "tp; in1=2x0e+1o; in2=0e+1o; out=2x0e+1o; mode=uvw; type=f64";
static const char layer[] = "linear; in1=2x0e+1o; out=3x0e+1o; type=f64";

static weft_tp *tp;
static weft_tp_info dim;

static void fill_all(Set *s)
{
    fill(s->x);
    fill(s->y);
    fill(s->w);
    fill(s->z);
}

/* Over all elements of N items. */
static double dot_w(const double *a, const double *b)
{
    return dot(a, b, dim.shared ? dim.w : N * dim.w);
}

static void open_tp(const char *spec, bool compile)
{
    if (compile)
        unsetenv("WEFT_DISABLE_JIT");
    else
        setenv("WEFT_DISABLE_JIT", "1", 1);
    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_tp_new(ctx, spec, &tp));
    OK(weft_tp_get(tp, &dim));
    CHECK(N * dim.x <= MOST && N * dim.y <= MOST && N * dim.w <= MOST && N * dim.z <= MOST);
}

static void close_tp(void)
{
    weft_tp_free(tp);
    weft_ctx_free(ctx);
    ctx = NULL;
    unsetenv("WEFT_DISABLE_JIT");
}

static void add(Set *s, const Set *v, const char *what)
{
    for (int i = 0; i < MOST; i++) {
        s->x[i] += strchr(what, 'x') != NULL ? v->x[i] : 0;
        s->y[i] += strchr(what, 'y') != NULL ? v->y[i] : 0;
        s->w[i] += strchr(what, 'w') != NULL ? v->w[i] : 0;
        s->z[i] += strchr(what, 'z') != NULL ? v->z[i] : 0;
    }
}

/* The number <s.z, forward(s.x, s.y, s.w)>. */
static double value(const Set *s)
{
    static double z[MOST];

    OK(weft_tp_forward(tp, N, s->x, s->y, s->w, z));
    return dot(z, s->z, N * dim.z);
}

/* The number <a, backward(s)>; s.z is dz. */
static double slope(const Set *s, const Set *a)
{
    static Set d;

    OK(weft_tp_backward(tp, N, s->x, s->y, s->w, s->z, d.x, d.y, d.w));
    return dot(d.x, a->x, N * dim.x) + dot(d.y, a->y, N * dim.y) + dot_w(d.w, a->w);
}

static double change(const Set *s, const Set *v, const Set *a, const char *what)
{
    Set moved = *s;

    add(&moved, v, what);
    return a != NULL ? slope(&moved, a) - slope(s, a) : value(&moved) - value(s);
}

static void check_derivatives(const char *spec, bool compile)
{
    static Set s, v, a, d, g;

    open_tp(spec, compile);
    fill_all(&s);
    fill_all(&v);
    fill_all(&a);
    OK(weft_tp_backward(tp, N, s.x, s.y, s.w, s.z, d.x, d.y, d.w));
    near(change(&s, &v, NULL, "x"), dot(d.x, v.x, N * dim.x));
    near(change(&s, &v, NULL, "y"), dot(d.y, v.y, N * dim.y));
    near(change(&s, &v, NULL, "w"), dot_w(d.w, v.w));
    OK(weft_tp_double_backward(tp, N, s.x, s.y, s.w, s.z, a.x, a.y, a.w, g.x, g.y, g.w, g.z));
    near(change(&s, &v, &a, "x"), dot(g.x, v.x, N * dim.x));
    near(change(&s, &v, &a, "y"), dot(g.y, v.y, N * dim.y));
    near(change(&s, &v, &a, "w"), dot_w(g.w, v.w));
    near(change(&s, &v, &a, "z"), dot(g.z, v.z, N * dim.z));
    CHECK(compile || dim.y == 0 || dot(g.x, g.x, N * dim.x) > 0);
    close_tp();
}

TEST(products_have_first_and_second_derivatives)
{
    check_derivatives(uvu_item, false);
    check_derivatives(shared, false);
    check_derivatives(layer, false);
}

TEST(compiled_products_have_them_too)
{
    check_derivatives(uvu_item, true);
}

TEST(what_an_item_has)
{
    open_tp(uvu_item, false);
    CHECK_EQ(dim.x, 2 + 9);
    CHECK_EQ(dim.y, 4);
    CHECK_EQ(dim.w, 2 + 3 + 2 + 3);
    CHECK_EQ(dim.z, 2 + 3 + 6 + 9);
    CHECK_EQ(dim.shared, 0);
    CHECK_EQ(dim.type, WEFT_F64);
    close_tp();
    open_tp("linear; in1=2x0e+1o; out=3x0e+1o; type=f32", false);
    CHECK_EQ(dim.y, 0);
    CHECK_EQ(dim.w, 7);
    CHECK_EQ(dim.shared, 1);
    CHECK_EQ(dim.type, WEFT_F32);
    close_tp();
}

TEST(a_choice_of_gradients_has_the_same_bits)
{
    static Set s, all, some;

    open_tp(uvu_item, false);
    fill_all(&s);
    OK(weft_tp_backward(tp, N, s.x, s.y, s.w, s.z, all.x, all.y, all.w));
    for (int k = 1; k < 8; k++) {
        memset(&some, 0, sizeof some);
        OK(weft_tp_backward(tp, N, s.x, s.y, s.w, s.z, (k & 1) != 0 ? some.x : NULL,
                            (k & 2) != 0 ? some.y : NULL, (k & 4) != 0 ? some.w : NULL));
        CHECK(((k & 1) == 0) || memcmp(some.x, all.x, (size_t)(N * dim.x) * 8) == 0);
        CHECK(((k & 2) == 0) || memcmp(some.y, all.y, (size_t)(N * dim.y) * 8) == 0);
        CHECK(((k & 4) == 0) || memcmp(some.w, all.w, (size_t)(N * dim.w) * 8) == 0);
    }
    OK(weft_tp_backward(tp, N, s.x, s.y, s.w, s.z, NULL, NULL, NULL));
    close_tp();
}

/* More choices than are kept; a cotangent that is left out is 0. */
TEST(choices_of_second_derivatives)
{
    static Set s, a, g, h, none;

    open_tp(uvu_item, false);
    fill_all(&s);
    fill_all(&a);
    for (int k = 0; k < 8; k++) {
        const double *x = (k & 1) != 0 ? a.x : NULL, *y = (k & 2) != 0 ? a.y : NULL;
        const double *w = (k & 4) != 0 ? a.w : NULL;

        memset(&g, 0x55, sizeof g);
        OK(weft_tp_double_backward(tp, N, s.x, s.y, s.w, s.z, x, y, w, g.x, g.y, g.w, g.z));
        OK(weft_tp_double_backward(tp, N, s.x, s.y, s.w, s.z, x != NULL ? x : none.x,
                                   y != NULL ? y : none.y, w != NULL ? w : none.w, h.x, h.y, h.w,
                                   h.z));
        for (int i = 0; i < N * dim.x; i++)
            near(g.x[i], h.x[i]);
        for (int i = 0; i < N * dim.w; i++)
            near(g.w[i], h.w[i]);
        OK(weft_tp_double_backward(tp, N, s.x, s.y, s.w, s.z, x, y, w, NULL, g.y, NULL, g.z));
        for (int i = 0; i < N * dim.y; i++)
            near(g.y[i], h.y[i]);
        OK(weft_tp_double_backward(tp, N, s.x, s.y, s.w, s.z, x, y, w, g.x, NULL, NULL, NULL));
    }
    close_tp();
}

TEST(any_number_of_items)
{
    static Set s, one, d;
    double all[MOST];

    open_tp(shared, false);
    fill_all(&s);
    OK(weft_tp_forward(tp, N, s.x, s.y, s.w, all));
    for (int i = 0; i < N; i++) {
        OK(weft_tp_forward(tp, 1, s.x + i * dim.x, s.y + i * dim.y, s.w, one.z));
        CHECK(memcmp(one.z, all + i * dim.z, (size_t)dim.z * 8) == 0);
        OK(weft_tp_forward(tp, 2, s.x, s.y, s.w, one.z));
        CHECK(memcmp(one.z, all, (size_t)(2 * dim.z) * 8) == 0);
    }
    OK(weft_tp_forward(tp, 0, NULL, NULL, s.w, NULL));
    fill_all(&d);
    OK(weft_tp_backward(tp, 0, NULL, NULL, s.w, NULL, NULL, NULL, d.w));
    for (int i = 0; i < dim.w; i++)
        CHECK(d.w[i] == 0);
    close_tp();
    open_tp("tp; in1=0x0e; in2=0e; out=0e; mode=uvu; type=f64", false);
    OK(weft_tp_forward(tp, N, NULL, s.y, NULL, NULL));
    close_tp();
}

TEST(bad_calls_of_products_are_refused)
{
    static Set s;
    weft_tp *no;

    weft_tp_free(NULL);
    CHECK_EQ(weft_tp_new(NULL, uvu_item, &no), WEFT_E_ARG);
    CHECK(no == NULL);
    CHECK_EQ(weft_tp_forward(NULL, 1, s.x, s.y, s.w, s.z), WEFT_E_ARG);
    open_tp(uvu_item, false);
    BAD(weft_tp_new(ctx, uvu_item, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_tp_new(ctx, NULL, &no), WEFT_E_ARG, "the problem is NULL");
    BAD(weft_tp_new(ctx, "tp; in1=7y", &no), WEFT_E_ARG, "");
    CHECK(no == NULL);
    BAD(weft_tp_new(ctx, "linear; in1=0e; out=0e; bias=yes", &no), WEFT_E_ARG, "an array Bias");
    BAD(weft_tp_new(ctx, "sh; lmax=2", &no), WEFT_E_ARG, "an array Y");
    BAD(weft_tp_get(tp, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_tp_forward(tp, -1, s.x, s.y, s.w, s.z), WEFT_E_ARG, "negative number of items");
    BAD(weft_tp_forward(tp, INT64_C(1) << 48, s.x, s.y, s.w, s.z), WEFT_E_LIMIT, "more items than");
    BAD(weft_tp_forward(tp, N, s.x, NULL, s.w, s.z), WEFT_E_ARG, "Y is NULL");
    BAD(weft_tp_forward(tp, N, s.x, s.y, NULL, s.z), WEFT_E_ARG, "Wt is NULL");
    BAD(weft_tp_forward(tp, N, s.x, s.y, s.w, NULL), WEFT_E_ARG, "Z is NULL");
    BAD(weft_tp_backward(tp, N, s.x, s.y, s.w, NULL, s.x, NULL, NULL), WEFT_E_ARG, "d_Z is NULL");
    BAD(weft_tp_forward(tp, N, s.x, s.y, s.w, s.x), WEFT_E_BIND, "Z");
    OK(weft_tp_forward(tp, N, s.x, s.y, s.w, s.z));
    CHECK_HAS(weft_warning(ctx), "");
    weft_tp_free(tp);
    BAD(weft_tp_forward(tp, N, s.x, s.y, s.w, s.z), WEFT_E_ARG, "a tensor product expected");
    weft_ctx_free(ctx);
    ctx = NULL;
    unsetenv("WEFT_DISABLE_JIT");
}

TEST(a_product_that_is_interpreted_says_so)
{
    static Set s;

    open_tp(uvu_item, false);
    fill_all(&s);
    OK(weft_tp_forward(tp, N, s.x, s.y, s.w, s.z));
    CHECK_HAS(weft_warning(ctx), "interpret");
    OK(weft_tp_forward(tp, N, s.x, s.y, s.w, s.z));
    weft_ctx_free(ctx); /* which frees the product, too */
    ctx = NULL;
    unsetenv("WEFT_DISABLE_JIT");
}
