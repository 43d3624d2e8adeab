/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Facts that can be asked for by text: about irreps, 3j symbols and D matrices, and what the
 * problems of write.c have. */
#include "o3/o3_int.h"

#include <string.h>

static void put_number(Text *out, double v, char after)
{
    char digits[NUM_TEXT];

    num_print(digits, v + 0.0); /* no -0 */
    text_f(out, "%s%c", digits, after);
}

static void put_sorted(Text *out, O3Sorted s)
{
    o3_irreps_print(out, s.irreps);
    text_str(out, "\nto");
    for (int i = 0; i < s.irreps.n; i++)
        text_f(out, " %d", s.to[i]);
    text_str(out, "\nfrom");
    for (int i = 0; i < s.irreps.n; i++)
        text_f(out, " %d", s.from[i]);
}

static void put_slices(Text *out, O3Irreps of)
{
    const int64_t *start = o3_slices(out->arena, of);

    for (int i = 0; i < of.n; i++)
        text_f(out, "%s%lld %lld", i > 0 ? "\n" : "", (long long)start[i], (long long)start[i + 1]);
}

static O3Irreps filtered(const Spec *s, O3Irreps of)
{
    bool keep = spec_get(s, "drop") == NULL;

    return o3_filter(s->arena, of, spec_irreps(s, keep ? "keep" : "drop"), keep);
}

static void tell_irreps(Text *out, const Spec *s)
{
    enum { PRINT, DIM, NUM, LMAX, SORT, SIMPLIFY, REGROUP, SLICES, FILTER };
    static const char *const what[] = { "print",    "dim",     "num",    "lmax",   "sort",
                                        "simplify", "regroup", "slices", "filter", NULL };
    O3Irreps of = spec_irreps(s, "of");

    switch (spec_choice(s, "do", what, PRINT)) {
    case DIM: text_f(out, "%lld", (long long)o3_dim(of)); break;
    case NUM: text_f(out, "%lld", (long long)o3_num(of)); break;
    case LMAX: text_f(out, "%d", o3_lmax(of)); break;
    case SORT: put_sorted(out, o3_sort(s->arena, of)); break;
    case SIMPLIFY: o3_irreps_print(out, o3_simplify(s->arena, of)); break;
    case REGROUP: o3_irreps_print(out, o3_regroup(s->arena, of)); break;
    case SLICES: put_slices(out, of); break;
    case FILTER: o3_irreps_print(out, filtered(s, of)); break;
    default: o3_irreps_print(out, of);
    }
    text_char(out, '\n');
}

static void tell_wigner(Text *out, const Spec *s)
{
    const char *at = spec_get(s, "l") != NULL ? spec_get(s, "l") : "";
    int l[3];
    O3Terms terms;

    for (int i = 0; i < 3; i++)
        l[i] = spec_integer(s, "l", spec_word(s->arena, &at, " ,"));
    terms = o3_3j(s->arena, l[0], l[1], l[2], spec_signs(s), &o3_unscaled);
    for (int i = 0; i < terms.n; i++) {
        text_f(out, "%d %d %d ", terms.at[i].m1, terms.at[i].m2, terms.at[i].m3);
        put_number(out, terms.at[i].c, '\n');
    }
}

static void tell_d(Text *out, const Spec *s)
{
    const double *matrix = spec_numbers(s, "matrix", 9, NULL),
                 *angles = spec_numbers(s, "angles", 3, NULL);
    const double *q = spec_numbers(s, "quaternion", 4, NULL), *d;
    O3Irreps of = spec_irreps(s, "of");
    int64_t n = o3_dim(of);
    double r[9];

    if ((matrix != NULL) + (angles != NULL) + (q != NULL) != 1)
        err_throw(s->arena->err, ST_ARG, "D: a rotation by one of matrix, angles, quaternion");
    if (matrix != NULL)
        memcpy(r, matrix, sizeof r);
    else if (angles != NULL)
        o3_matrix_of_angles(angles[0], angles[1], angles[2], r);
    else
        o3_matrix_of_quaternion(q, r);
    d = o3_irreps_d(s->arena, of, r);
    for (int64_t i = 0; i < n * n; i++)
        put_number(out, d[i], (i + 1) % n == 0 ? '\n' : ' ');
}

void o3_put_irreps(Text *out, const char *name, O3Irreps irreps)
{
    text_f(out, "%s ", name);
    o3_irreps_print(out, irreps);
    text_char(out, '\n');
}

void o3_tell_product(Text *out, const O3Problem *t)
{
    o3_check(out->arena, t);
    o3_put_irreps(out, "in1", t->in1);
    if (!t->square)
        o3_put_irreps(out, "in2", t->in2);
    o3_put_irreps(out, "out", t->out);
    text_f(out, "weights %lld\n", (long long)o3_weights(t));
    for (int k = 0; k < t->npath; k++) {
        const O3Path *p = &t->path[k];

        text_f(out, "path %d %d %d %s %s ", p->in1, p->in2, p->out, o3_mode[p->mode],
               p->weighted ? "yes" : "no");
        put_number(out, p->weight, '\n');
    }
}

static int count(const SpecForm *form)
{
    int n = 0;

    while (form[n].name != NULL)
        n++;
    return n;
}

void o3_tell(Text *out, const char *text)
{
    static const SpecForm own[] = {
        { "irreps", " of do keep drop ", tell_irreps },
        { "wigner", " l signs ", tell_wigner },
        { "D", " of matrix angles quaternion ", tell_d },
        { NULL, NULL, NULL },
    };
    int n = count(own), more = count(o3_forms);
    SpecForm *all = arena_array(out->arena, n + more + 1, sizeof *all); /* ends in a row of NULL */

    memcpy(all, own, (size_t)n * sizeof *all);
    memcpy(all + n, o3_forms, (size_t)more * sizeof *all);
    spec_run(out, text, all, true);
}
