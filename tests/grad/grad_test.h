/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Derivatives of random programs against the truth: central differences on real data, exact
 * differences on integers, and the adjoint identity <J v, w> = <v, J' w> between the two modes.
 * Higher orders are the same tests on a derivative. */
#ifndef WEFT_GRAD_TEST_H
#define WEFT_GRAD_TEST_H

#include "grad/grad.h"
#include "random/random.h"

typedef struct Sample { /* a program and what it reads, by name */
    Prog *prog;
    Data *in;
} Sample;

typedef struct Tester {
    Arena *arena; /* of one case */
    Rng rng;
    Text log; /* the programs of the case that is being tested, for the message of a failure */
    int64_t elements, kinks; /* of outputs that were compared; that changed too abruptly */
    int64_t orders[4];       /* derivatives that were tested, by order */
} Tester;

/* What went wrong; leaves the case. */
_Noreturn void test_wrong(Tester *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* sample.c: random programs made fit for differences. */
bool sample_real(Tester *, uint64_t seed, const Knobs *, Sample *); /* f64, smooth; false: no use */
Prog *sample_f64(Tester *, const char *name, const char *text);     /* all floats made f64 */
bool sample_exact(Tester *, uint64_t seed, Sample *);               /* polynomial, of integers */
void sample_redraw(Tester *, Sample *);                  /* other real data, the same structure */
Data *sample_data(Tester *, const Prog *, const Data *); /* of it, what the program declares */
bool sample_is_of_use(const Sample *);                   /* has floating-point inputs and outputs */

/* known.c: a program from a file, with random structure and data. */
void sample_file(Tester *, const char *path, Sample *);

/* dual.c: a program beside its derivatives. */
typedef struct Dual {
    Sample s;
    const Env *env; /* s after a run */
    Prog *reverse, *forward;
    const char *d, *t;    /* prefixes of cotangents and tangents */
    Data *known;          /* what both derivatives may read */
    Data *v, *w;          /* tangents of the inputs, cotangents of the outputs, by name of these */
    const Env *vjp, *jvp; /* the derivatives after a run */
} Dual;

typedef double Draw(Rng *);
double draw_real(Rng *), draw_small(Rng *);

void dual_init(Tester *, Dual *, Sample);
/* New v and w (of one buffer each, or of all), and both derivatives run with them. */
void dual_run(Tester *, Dual *, Draw *, bool one_buffer);
/* Adds tangents of the first content of inout buffers to v, and runs forward mode again. */
void dual_move_inout(Tester *, Dual *, Draw *);
void dual_check_text(Tester *, Dual *);                /* prints, parses, checks; nothing is dead */
void dual_check_adjoint(Tester *, Dual *, double tol); /* <J v, w> = <v, J' w> */
Sample dual_next(Tester *, const Dual *, Draw *);      /* the reverse derivative as a sample */
Env *sample_run(Tester *, const Sample *, const Data *v, double h); /* at x + h v; v may be NULL */
bool is_wrt(const Buf *), is_of(const Buf *); /* what is differentiated by default */
const Array *array_of(const Prog *, const Env *, const char *prefix, const char *name);
const Array *item_of(const Data *, const char *name); /* NULL: there is none */

/* differ.c: J v against central differences; false when some element met a kink. */
bool check_differences(Tester *, Dual *);
/* exact.c: J v and J' w bit for bit; false when the numbers grew too large to be exact. */
bool check_exact(Tester *, Dual *);

#endif
