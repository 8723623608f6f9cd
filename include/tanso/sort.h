/* SPDX-License-Identifier: MIT */
/*
 * Sorting, searching, scans, and sets, as NumPy has them.
 *
 * Elements are in NumPy's order: numbers ascending, NaN last; zeros of either sign are equal. Sorting is stable. A GPU
 * without a kernel of its own for one of the operations beneath (sort, argsort, cumsum and its kin, search) has it
 * computed on the CPU: the operand is moved there and the result back, at once.
 */
#ifndef TANSO_SORT_H
#define TANSO_SORT_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_axis_opts {
    const char *_;
    tn_axes axis;   /* one axis; default: see each function */
    tn_dtype dtype; /* cumsum, cumprod: dtype of the result; default as NumPy (bool and small integers as int64) */
    tn_array *out;  /* receives the result, as tn_assign does; of its shape */
} tn_axis_opts;

/* ---- sorting: along the last axis by default ---- */

/* The elements in ascending order. */
TN_API tn_array *tn_sort_with(const tn_array *x, const tn_axis_opts *opts);
/* int64 positions that sort x along the axis. */
TN_API tn_array *tn_argsort_with(const tn_array *x, const tn_axis_opts *opts);
/* An order in which the elements at the `count` positions kth are where sorting puts them, smaller ones before and
 * larger ones behind; of short rows, for several positions and on a GPU it is the sorted order. Each kth is checked
 * against the extent, negative ones count from the end. */
TN_API tn_array *tn_partition_with(const tn_array *x, int count, const int64_t *kth, const tn_axis_opts *opts);
TN_API tn_array *tn_argpartition_with(const tn_array *x, int count, const int64_t *kth, const tn_axis_opts *opts);
/* The k largest elements along the axis, largest first, NaN before all; their int64 positions into *positions unless
 * that is NULL. */
TN_API tn_array *tn_topk_with(const tn_array *x, int64_t k, tn_array **positions, const tn_axis_opts *opts);
/* int64 positions that sort by the last of `count` keys (equal shapes), ties by the one before it, and so on. */
TN_API tn_array *tn_lexsort_with(int count, const tn_array *const *keys, const tn_axis_opts *opts);

/* Sorted along the last axis, as complex numbers: complex64 of complex64 and of integers of 8 and 16 bits, else
 * complex128. */
TN_API tn_array *tn_sort_complex(const tn_array *x);

/* ---- scans: of the flat array by default ---- */

/* Sums, products of the elements up to each one. On the CPU sums of float32 and complex64 go on in 64 bits: each is off
 * by a rounding. */
TN_API tn_array *tn_cumsum_with(const tn_array *x, const tn_axis_opts *opts);
TN_API tn_array *tn_cumprod_with(const tn_array *x, const tn_axis_opts *opts);
/* NumPy's maximum.accumulate and minimum.accumulate; NaN wins. The gradient goes to the element, of equal ones the
 * last. */
TN_API tn_array *tn_cummax_with(const tn_array *x, const tn_axis_opts *opts);
TN_API tn_array *tn_cummin_with(const tn_array *x, const tn_axis_opts *opts);
/* The scans with NaN as 0, as 1. */
TN_API tn_array *tn_nancumsum_with(const tn_array *x, const tn_axis_opts *opts);
TN_API tn_array *tn_nancumprod_with(const tn_array *x, const tn_axis_opts *opts);

/* ---- searching ---- */

typedef struct tn_search_opts {
    const char *_;
    bool right; /* behind elements equal to the value (NumPy's side='right') */
} tn_search_opts;

/* Where each of `values` (any shape) goes in a sorted vector so that it stays sorted; int64. */
TN_API tn_array *tn_searchsorted_with(const tn_array *sorted, const tn_array *values, const tn_search_opts *opts);
/* The number of the bin of each x: i with bins[i-1] <= x < bins[i] for ascending bins, the other way round for
 * descending ones (found by reading the first and the last bin); .right moves the equality to the other end. */
TN_API tn_array *tn_digitize_with(const tn_array *x, const tn_array *bins, const tn_search_opts *opts);

/* ---- sets: read on the host how many elements they have, so they evaluate; results are sorted vectors ---- */

typedef struct tn_unique_opts {
    const char *_;
    tn_array **index;   /* out: int64 positions of the first occurrences in the flat array */
    tn_array **inverse; /* out: int64 positions in the result that rebuild x, in x's shape (with an axis: a vector of
                           its extent) */
    tn_array **counts;  /* out: int64 numbers of occurrences */
    tn_axes axis;       /* one: compares the subarrays along it; default: the elements of the flat array */
    bool distinct_nan;  /* NumPy's equal_nan=False */
} tn_unique_opts;

/* The distinct elements in ascending order; NaNs count as one, but with distinct_nan. With an axis: the distinct
 * subarrays along it, in the order of their elements; of those, NaNs make all that hold one distinct, but in a vector,
 * whose elements they are. */
TN_API tn_array *tn_unique_with(const tn_array *x, const tn_unique_opts *opts);
/* Which elements of x are in `set`: bool of x's shape; the other way round with `invert`. */
TN_API tn_array *tn_isin(const tn_array *x, const tn_array *set, bool invert);
/* The elements of both; of either; of a that b has not; of one of them only. */
TN_API tn_array *tn_intersect1d(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_union1d(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_setdiff1d(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_setxor1d(const tn_array *a, const tn_array *b);

#ifndef TN_NO_MACROS
#define tn_isin(x, set, invert) TN_AT(tn_isin)(TN_ARG(x), TN_ARG(set), invert)
#define tn_sort_complex(x) TN_AT(tn_sort_complex)(TN_ARG(x))
#define tn_intersect1d(a, b) TN_AT(tn_intersect1d)(TN_ARG(a), TN_ARG(b))
#define tn_union1d(a, b) TN_AT(tn_union1d)(TN_ARG(a), TN_ARG(b))
#define tn_setdiff1d(a, b) TN_AT(tn_setdiff1d)(TN_ARG(a), TN_ARG(b))
#define tn_setxor1d(a, b) TN_AT(tn_setxor1d)(TN_ARG(a), TN_ARG(b))
#define tn_sort(...) TN__CALL_A(tn_sort_with, tn_axis_opts, __VA_ARGS__, )
#define tn_argsort(...) TN__CALL_A(tn_argsort_with, tn_axis_opts, __VA_ARGS__, )
#define tn_partition(...) TN__CALL_AVV(tn_partition_with, tn_axis_opts, __VA_ARGS__, )
#define tn_argpartition(...) TN__CALL_AVV(tn_argpartition_with, tn_axis_opts, __VA_ARGS__, )
#define tn_topk(...) TN__CALL_AVV(tn_topk_with, tn_axis_opts, __VA_ARGS__, )
#define tn_lexsort(...) TN__CALL_VV(tn_lexsort_with, tn_axis_opts, __VA_ARGS__, )
#define tn_cumsum(...) TN__CALL_A(tn_cumsum_with, tn_axis_opts, __VA_ARGS__, )
#define tn_cumprod(...) TN__CALL_A(tn_cumprod_with, tn_axis_opts, __VA_ARGS__, )
#define tn_cummax(...) TN__CALL_A(tn_cummax_with, tn_axis_opts, __VA_ARGS__, )
#define tn_cummin(...) TN__CALL_A(tn_cummin_with, tn_axis_opts, __VA_ARGS__, )
#define tn_nancumsum(...) TN__CALL_A(tn_nancumsum_with, tn_axis_opts, __VA_ARGS__, )
#define tn_nancumprod(...) TN__CALL_A(tn_nancumprod_with, tn_axis_opts, __VA_ARGS__, )
#define tn_searchsorted(...) TN__CALL_AA(tn_searchsorted_with, tn_search_opts, __VA_ARGS__, )
#define tn_digitize(...) TN__CALL_AA(tn_digitize_with, tn_search_opts, __VA_ARGS__, )
#define tn_unique(...) TN__CALL_A(tn_unique_with, tn_unique_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
