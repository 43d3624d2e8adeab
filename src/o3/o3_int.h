/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Inside o3/: natural numbers of fixed room, for roots that are rounded once, and what the writers
 * of programs share. */
#ifndef WEFT_O3_INT_H
#define WEFT_O3_INT_H

#include "o3/o3.h"

/* nat.c.  The room is for the largest symbol of O3_MAX_L with every scale at its limit, which
 * wigner.c asserts. */
enum { NAT_LIMBS = 64 };
typedef struct Nat {
    int n; /* limbs in use: the last one is not 0 */
    uint32_t limb[NAT_LIMBS];
} Nat;

void nat_set(Nat *, uint64_t v);
void nat_mul(Nat *, uint64_t v);
/* a = m * 2^e with an odd m below 2^53: num or den, as the sign of e says, gets its part. */
void nat_mul_double(Nat *num, Nat *den, double a);
double nat_root(const Nat *num, const Nat *den); /* sqrt(num / den), to nearest */

/* A table {1, 3, 5}, and how many of its values are not 1. */
void o3_put_ints(Text *, const int64_t *, int n);
bool o3_all_one(const int64_t *, int n);

/* irreps.c: the same for the slots of irreps. */
int64_t *o3_muls(Arena *, O3Irreps);
int64_t *o3_dims(Arena *, O3Irreps);

/* product.c: "axis SX = 2, MX(SX) = {1, 3}, UX(SX) = {4, 2}" and "X[B, SX, UX, MX]"; no axis for
 * multiplicities that are all 1. */
typedef struct O3Operand {
    const char *buf;  /* X */
    const char *axis; /* the letter of its axes: X */
    O3Irreps irreps;
    O3Layout layout;
    const char *row, *at; /* the axis of its rows, and which of them: B, b */
} O3Operand;
void o3_put_axes(Text *, const O3Operand *);
void o3_put_buf(Text *, const O3Operand *);
/* X[b, SLOT, CHANNEL, COMPONENT] in the order of its layout; an empty channel is 0. */
void o3_put_load(Text *, const O3Operand *, const char *slot, const char *channel,
                 const char *component);
const char *o3_type_name(Type); /* f32 for T_none */

/* copy.c: an operand that has components side by side; the same otherwise, in a temp; and one is
 * a copy of the other in each row. */
bool o3_is_turned(const O3Operand *);
O3Operand o3_turned(const O3Operand *, const char *buf);
void o3_put_temp(Text *, const O3Operand *, Type);
void o3_put_copy(Text *, O3Operand to, O3Operand from, const char *row);

/* span.c: vectors by their elements that are not 0.  Vector `of` is the sum of c times vector
 * kept[to] over its shares; a kept one has one share, of itself; one of zeros has none. */
typedef struct O3Vector {
    int n;
    int *at;
    double *c;
} O3Vector;

typedef struct O3Share {
    int to, of;
    double c;
} O3Share;

typedef struct O3Span {
    int n, nshare, cap;
    int *kept;
    O3Share *share;
} O3Span;
O3Span o3_span(Arena *, const O3Vector *, int n, int width);

/* tell.c, linear.c, contract.c: what a problem has, a line each: its irreps, how many weights,
 * and its paths in the order of the weights. */
void o3_tell_product(Text *, const O3Problem *);
void o3_tell_linear(Text *, const O3Linear *);
int o3_linear_terms(Arena *, const O3Linear *); /* how many paths and slots with biases it has */
void o3_tell_contraction(Text *, const O3Contraction *);
void o3_put_irreps(Text *, const char *name, O3Irreps); /* a line "out 2x0e+1x1o" */

/* spec.c: settings by name.  A function that gives one throws ST_ARG where it makes no sense. */
enum { SPEC_FIELDS = 32 };
typedef struct SpecField {
    const char *key, *value;
} SpecField;

typedef struct Spec {
    Arena *arena;
    const char *form;
    bool facts; /* asked for: what the problem has, not its program */
    int n;
    SpecField field[SPEC_FIELDS];
} Spec;

typedef struct SpecForm {     /* a table ends in a row of NULL */
    const char *name, *takes; /* " in1 in2 out ": blanks around each setting */
    void (*run)(Text *, const Spec *);
} SpecForm;

/* write.c: the forms that have programs; tell.c asks for their facts. */
extern const SpecForm o3_forms[];

/* Reads the text and runs the form that it names. */
void spec_run(Text *out, const char *text, const SpecForm *forms, bool facts);
const char *spec_get(const Spec *, const char *key); /* NULL: not given */
/* The number of a word in a list that ends in NULL; `otherwise` where it is not given. */
int spec_choice(const Spec *, const char *key, const char *const *word, int otherwise);
bool spec_yes(const Spec *, const char *key); /* yes or no; no where it is not given */
O3Irreps spec_irreps(const Spec *, const char *key);
Type spec_type(const Spec *, const char *key);       /* T_none: not given */
O3Layout spec_layout(const Spec *, const char *key); /* otherwise that of "layout" */
O3Signs spec_signs(const Spec *);
/* The next word of *at, and what stands between words; NULL at the end. */
const char *spec_word(Arena *, const char **at, const char *between);
double spec_number(const Spec *, const char *key, const char *word);
int spec_integer(const Spec *, const char *key, const char *word);
/* Numbers: n of them, or with n < 0 as many as there are.  NULL: not given. */
double *spec_numbers(const Spec *, const char *key, int n, int *count);

#endif
