/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tensor products of representations of O(3): irreps, Wigner 3j symbols and D matrices, and the
 * programs of products, linear layers and spherical harmonics.  What leaves this folder is the text
 * of a program that anybody could have written, and everything else treats it as such.
 * docs/tensor-products.md has the conventions. */
#ifndef WEFT_O3_H
#define WEFT_O3_H

#include "ir/ir.h"

enum {
    O3_MAX_L = 16,       /* of every irrep and every symbol */
    O3_MAX_PATHS = 20000 /* of a tensor product */
};

/* irreps.c: a direct sum of irreps, as in "128x0e + 64x1o". */
typedef struct O3Irrep {
    int l, p; /* degree; parity, 1 or -1 */
} O3Irrep;

typedef struct O3Slot { /* mul copies of an irrep, side by side */
    int64_t mul;
    O3Irrep ir;
} O3Slot;

typedef struct O3Irreps {
    int n;
    const O3Slot *at;
} O3Irreps;

typedef struct O3Sorted {
    O3Irreps irreps;
    const int *to, *from; /* slot i goes to to[i]; slot k of the result was from[k] */
} O3Sorted;

/* Throws ST_PARSE, with the text and the place in it, for a text that is no irreps. */
O3Irreps o3_irreps(Arena *, const char *text);
O3Irreps o3_irreps_n(Arena *, const char *text, size_t n);
void o3_irreps_print(Text *, O3Irreps); /* as e3nn does: 128x0e+64x1o */
O3Irreps o3_irreps_sh(Arena *, int lmax, int p);
int64_t o3_dim(O3Irreps); /* of all its vectors */
int64_t o3_num(O3Irreps); /* the sum of the multiplicities */
int o3_lmax(O3Irreps);    /* -1 of empty ones */
int64_t o3_count(O3Irreps, O3Irrep);
bool o3_has(O3Irreps, O3Irrep); /* in a slot, were it of multiplicity 0 */
bool o3_irreps_equal(O3Irreps, O3Irreps);
bool o3_allows(O3Irrep, O3Irrep, O3Irrep); /* the third is in the product of the first two */
/* By degree, then parity, odd first; slots of one irrep keep their order. */
O3Sorted o3_sort(Arena *, O3Irreps);
O3Irreps o3_simplify(Arena *, O3Irreps); /* neighbours of one irrep become one; none of mul 0 */
O3Irreps o3_regroup(Arena *, O3Irreps);  /* sorted, then simplified */
O3Irreps o3_filter(Arena *, O3Irreps, O3Irreps which, bool keep); /* or drop */
int64_t *o3_slices(Arena *, O3Irreps); /* where each slot begins, and the end */

static inline int o3_ir_dim(O3Irrep ir)
{
    return 2 * ir.l + 1;
}
static inline bool o3_ir_same(O3Irrep a, O3Irrep b)
{
    return a.l == b.l && a.p == b.p;
}

/* wigner.c: 3j symbols in the real basis, with squares that sum to 1.  Every one is a signed square
 * root of a rational, and is given as the nearest double.  The two conventions differ by the sign
 * of some whole symbols: those of e3nn from 0.5 on, and those of e3nn 0.4. */
typedef enum O3Signs { O3_SIGNS_NOW, O3_SIGNS_04 } O3Signs;

/* What multiplies a symbol, under the root: num[0] * num[1] * ... / den.  Each is
 * between 2^-60 and 2^60; a num may be 0. */
enum { O3_SCALES = 4 };
typedef struct O3Scale {
    double num[O3_SCALES], den;
} O3Scale;
extern const O3Scale o3_unscaled;

typedef struct O3Term { /* a coefficient that is not 0 */
    int m1, m2, m3;     /* from 0 */
    double c;
} O3Term;

typedef struct O3Terms { /* sorted by m1, m2, m3 */
    int n;
    const O3Term *at;
} O3Terms;

/* The symbol times sqrt(scale), each product rounded once.  Throws ST_ARG when there is none. */
O3Terms o3_3j(Arena *, int l1, int l2, int l3, O3Signs, const O3Scale *);
double o3_root(double num, double den); /* sqrt(num / den), rounded once; integers in 0..2^53 */

/* rotation.c: D matrices of dim x dim, by rows, of O(3): a matrix with determinant -1 is a rotation
 * after the inversion, which multiplies by the parity. */
void o3_matrix_of_angles(double alpha, double beta, double gamma, double r[9]); /* Y X Y */
void o3_matrix_of_quaternion(const double q[4], double r[9]); /* real part first; any length */
double *o3_wigner_d(Arena *, O3Irrep, const double r[9]);
double *o3_irreps_d(Arena *, O3Irreps, const double r[9]); /* block by block, mul_ir */

/* problem.c: what a tensor product computes; all fields as e3nn's TensorProduct has them. */
typedef enum O3Mode {
    O3_UVW,
    O3_UVU,
    O3_UVV,
    O3_UUW,
    O3_UUU,
    O3_UVUV,
    O3_UVUV_LESS, /* uvu<v */
    O3_UVW_LESS,  /* u<vw */
    O3_MODES
} O3Mode;
extern const char *const o3_mode[O3_MODES];

typedef struct O3Path { /* an instruction */
    int in1, in2, out;  /* slots */
    O3Mode mode;
    bool weighted;
    double weight; /* the path weight: a factor under the root, 1 by default */
} O3Path;

typedef enum O3Norm { O3_COMPONENT, O3_NORM, O3_NONE } O3Norm;
typedef enum O3PathNorm { O3_ELEMENT, O3_PATH, O3_PLAIN } O3PathNorm;
typedef enum O3Layout { O3_MUL_IR, O3_IR_MUL } O3Layout;

/* Edges of a graph: of each row that receives, one after the other; or in any order, when each has
 * its place `edge` in the arrays of edges. */
typedef enum O3Edges { O3_NO_EDGES, O3_EDGES_SORTED, O3_EDGES_ANY } O3Edges;

typedef struct O3Problem {
    O3Irreps in1, in2, out;
    int npath;
    const O3Path *path;
    const double *var1, *var2, *var_out; /* one for each slot; NULL: all 1 */
    O3Norm norm;
    O3PathNorm path_norm;
    O3Signs signs;
    O3Layout layout1, layout2, layout_out;
    Type type, weight_type; /* T_f32, ...; T_none: f32, and the other's */
    bool per_item;          /* weights: a set for each item, not one for all */
    bool square;            /* the second input is the first */
    bool root;              /* the output is the square root of the product: norms */
    O3Edges edges;          /* a convolution: items are edges, summed into rows */
    int hidden;             /* of it: features of an edge that weights are made of; 0: none */
    const char *name;       /* of the program; NULL: tp */
} O3Problem;

void o3_check(Arena *, const O3Problem *);          /* throws ST_ARG, naming the path */
O3Scale o3_path_scale(const O3Problem *, int path); /* (normalisation coefficient)^2 */
/* The weights of a path: how many along u, v and w (1 where the mode has none). */
void o3_weight_shape(const O3Problem *, int path, int64_t shape[3]);
int64_t o3_weights(const O3Problem *); /* in all, in the order of the paths */

/* forms.c: paths and outputs as e3nn's modules make them.  Each fills in1, in2, out, path and what
 * else the form says, and leaves the rest of the problem alone. */
/* Every allowed triple of slots. */
void o3_form_connected(Arena *, O3Problem *, O3Mode, bool weighted);
/* A slot of the output for each allowed triple, sorted; only irreps of `keep` when it is not NULL.
 * by_out: paths in the order of the output slots, not of the pairs of inputs. */
void o3_form_slots(Arena *, O3Problem *, O3Mode, bool weighted, const O3Irreps *keep, bool by_out);
void o3_form_elementwise(Arena *, O3Problem *, const O3Irreps *keep);
void o3_form_square(Arena *, O3Problem *, const O3Irreps *keep, bool connected);
void o3_form_norm(Arena *, O3Problem *, bool squared);

/* product.c: the program of a problem: X[B, ...] and Y[B, ...] to Z[B, ...], n items.  Of a
 * convolution: X[senders, ...] and Y[E, ...] to Z[I, ...]; H[E, L] and M[L, ...] to weights. */
void o3_write_product(Text *, const O3Problem *);

/* linear.c: e3nn's Linear. */
typedef struct O3Pair { /* slots */
    int in, out;
} O3Pair;

typedef struct O3Linear {
    O3Irreps in, out;
    int npath;
    const O3Pair *path; /* NULL: all that fit */
    bool bias;          /* of every slot of scalars */
    O3PathNorm path_norm;
    O3Layout layout_in, layout_out;
    Type type;
    bool per_item;
    const char *name;
} O3Linear;
void o3_write_linear(Text *, const O3Linear *);

/* contract.c: MACE's SymmetricContraction, all slots of one multiplicity.  Item b uses the weights
 * Wt[el[b], k, u] of its element, or with per_item its own, Wt[b, k, u]; k goes over output slots,
 * then degrees from 1, then couplings. */
enum { O3_MAX_DEGREE = 3 };
typedef struct O3Contraction {
    O3Irreps in, out;
    int degree; /* the correlation */
    O3Layout layout_in, layout_out;
    O3Signs signs;
    Type type;
    bool per_item;
    const char *name;
} O3Contraction;
void o3_write_contraction(Text *, const O3Contraction *);

/* sh.c: real spherical harmonics of the degrees l[0..n), X[B, 3] to Y[B, ...]. */
typedef enum O3ShNorm { O3_SH_COMPONENT, O3_SH_NORM, O3_SH_INTEGRAL } O3ShNorm;
typedef struct O3Sh {
    int n;
    const int *l;
    O3ShNorm norm;
    bool normalize; /* the vectors first */
    Type type;
    const char *name;
} O3Sh;
void o3_write_sh(Text *, const O3Sh *);

/* write.c, tell.c: a problem as text, "tp; in1=8x0e+8x1o; in2=0e+1o; out=0e+1o; mode=uvu". */
void o3_write(Text *out, const char *spec);
/* A fact as text: "irreps; of=2x1o+0e; do=sort", "wigner; l=1 1 2", "D; ir=1o; angles=0 1 2". */
void o3_tell(Text *out, const char *spec);

#endif
