/* SPDX-License-Identifier: MIT */
/* Matrix products inside the CPU backend: out = alpha a b + beta out over batches of strided matrices. */
#ifndef TN_BACKENDS_CPU_MATMUL_MATMUL_H
#define TN_BACKENDS_CPU_MATMUL_MATMUL_H

#include "backends/cpu/base/simd.h"
#include "backends/cpu/base/step.h"

enum { TN__MATMUL_OUT, TN__MATMUL_A, TN__MATMUL_B, TN__MATMUL_OPERANDS };

/* A product as every way of computing it needs it; strides in bytes. */
typedef struct tn__matmul {
    int64_t m, n, k;
    struct {
        int64_t row, column;
    } step[TN__MATMUL_OPERANDS];
    tn__cpu_space batch;
    tn_dtype work; /* the dtype accumulated in */
    bool beta;
} tn__matmul;

/* alpha as a number of the work dtype. */
typedef union tn__matmul_factor {
    double f64;
    float f32;
    int64_t i64;
} tn__matmul_factor;

/* One product of row-major matrices or their transposes, with leading dimensions in elements. */
typedef struct tn__matmul_matrix {
    char *place;
    int64_t ld;
    bool transposed;
} tn__matmul_matrix;

typedef struct tn__matmul_product {
    int64_t m, n, k;
    tn__matmul_matrix a, b, out; /* out is never a transpose */
    tn__matmul_factor alpha;
    bool beta;
    /* Packed tiles: for so many threads, in memory of tn__matmul_packed_bytes. */
    int team;
    char *workspace;
} tn__matmul_product;

/* A way of computing a product; false if it is refused. */
typedef bool (*tn__matmul_function)(const tn__matmul_product *p);

/* A step's extents, steps and batch; its alpha for a run, 1 without a scalar, its sign changed where the step asks. */
void tn__matmul_describe(const tn__cpu_step *step, tn__matmul *matmul);
tn__matmul_factor tn__matmul_alpha(const tn__cpu_step *step, const uint64_t *scalars);

/* Prepares the product by oneDNN or CBLAS if one is built in and fits, else by plain loops. */
tn_status tn__matmul_prepare_library(tn__cpu_step *step);
/* float32 by register tiles: whether they are the fastest for such a product (its places and alpha are not looked at),
 * and doing it. */
bool tn__matmul_tile_suits(const tn__matmul_product *p);
bool tn__matmul_tile_suits_stretch(const tn__matmul_product *p); /* of a long product with few results */
bool tn__matmul_tile(const tn__matmul_product *p);
/* float32 by tiles of packed operands, for large products: whether they are faster than oneDNN, or at least than plain
 * loops. */
bool tn__matmul_packed_suits(const tn__matmul_product *p);
bool tn__matmul_packed_can(const tn__matmul_product *p);
int tn__matmul_packed_team(const tn__matmul_product *p); /* the number of threads that the product is worth */
size_t tn__matmul_packed_bytes(const tn__matmul_product *p);
void tn__matmul_packed_prepare(size_t bytes); /* also may allocate memory that all such products share */
bool tn__matmul_packed(const tn__matmul_product *p);
/* float32 in stretches of k, whose results are added up in float64: whether the product is so long, and has so few
 * results; doing it, each stretch by `multiply`; and the most memory that packed tiles need for a stretch. */
enum { TN__MATMUL_STRETCH = 8192, TN__MATMUL_FEW = 4096 };
bool tn__matmul_stretches_suit(const tn__matmul_product *p);
bool tn__matmul_stretches(const tn__matmul_product *p, tn__matmul_function multiply);
size_t tn__matmul_stretches_bytes(const tn__matmul_product *stretch, int64_t k);
/* Rows times a column, or a row times columns: whether they are next to one another along k, and doing it. */
bool tn__matmul_dot_suits(const tn__matmul_product *p);
bool tn__matmul_dot_f32(const tn__matmul_product *p);
bool tn__matmul_dot_f64(const tn__matmul_product *p);
/* A column times a row: k = 1. */
bool tn__matmul_outer_f32(const tn__matmul_product *p);
bool tn__matmul_outer_f64(const tn__matmul_product *p);
/* Plain loops, for every dtype. */
tn_status tn__matmul_prepare_plain(tn__cpu_step *step);

#endif
