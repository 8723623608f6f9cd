/* SPDX-License-Identifier: MIT */
/* What the functions of linear algebra and Fourier transforms share. */
#ifndef TN_LINALG_MATRIX_H
#define TN_LINALG_MATRIX_H

#include "array/build_library.h"
#include "array/build_parts.h"

/* The operand as LAPACK takes it: at least `ndim` axes, integers as float64. Refuses float16 and bfloat16, as NumPy the
 * first. */
tn__node *tn__matrix_operand(const char *operation, tn__node *a, int ndim);
/* The same for square matrices. */
tn__node *tn__square_operand(const char *operation, tn__node *a);

static inline int64_t tn__row_count(const tn__node *a) { return a->shape->dim[a->shape->ndim - 2]; }
static inline int64_t tn__column_count(const tn__node *a) { return a->shape->dim[a->shape->ndim - 1]; }

/* A library operation whose results are `n` numbers a matrix, packed: shape (..., 1, n). */
tn__node *tn__packed(tn__op op, tn_dtype dtype, tn__node *a, int64_t n, int modes, const int64_t *mode);
/* x of a x = b; leading axes broadcast. With `loose`, singular matrices give NaN instead of an error. */
tn__node *tn__solve(const char *operation, tn__node *a, tn__node *b, bool loose);
tn__node *tn__inverse(const char *operation, tn__node *a, bool loose);
/* Singular values, (..., min(m, n)), largest first; of a Hermitian matrix by its eigenvalues. */
tn__node *tn__singular_values(tn__node *a, bool hermitian);
/* Reduced u, s as a row (..., 1, k), vh. */
void tn__singular_vectors(tn__node *a, bool hermitian, tn__node *part[3]);
/* 1 / s of rows of singular values, 0 for those that are not above rcond times the largest; which are, if wanted. */
tn__node *tn__inverted_values(tn__node *s, double rcond, tn__node **above);
/* Of a = u s vh, vh^H / s u^H, `part` being u, s, vh, and `inverse` 1 / s; with a gradient if a has one. */
tn__node *tn__pseudo_inverse(tn__node *a, tn__node *const part[3], tn__node *inverse);
/* The largest of numbers that are not negative along the axes: 0 where there are none. */
tn__node *tn__largest(tn__node *a, uint32_t axes);
/* The square of the size of each element, real. */
tn__node *tn__squared_size(tn__node *a);
/* Ones on the diagonal of n x n, in a's dtype, device and leading axes. */
tn__node *tn__eye_like(tn__node *a, int64_t n);

/* True if all elements are finite, evaluated; an error is latched, and false, if that fails or one is not. */
bool tn__check_finite(const char *operation, tn__node *a);

#endif
