/* SPDX-License-Identifier: MIT */
/*
 * Indexing, as NumPy has it: numbers, slices, ellipsis and new axes, integer arrays, boolean masks, in any mixture, for
 * reading, replacing and adding.
 *
 *     tn_get(x, TN_I(0), TN_DOTS, TN_RANGE(1, TN_NONE, 2))           x[0, ..., 1::2]
 *     tn_get(x, TN_PICK(rows), TN_PICK(columns))                      x[rows, columns]
 *     tn_set(x, y, TN_PICK(tn_less(x, 0)))                            x[x < 0] = y
 *
 * A mask is read on the host for the number of its elements, so it is evaluated; so are the functions that say so. An
 * integer array's range is checked when the result is evaluated. Reading is differentiable, and so are tn_index_update
 * and tn_index_add.
 */
#ifndef TANSO_INDEX_H
#define TANSO_INDEX_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys ---- */

typedef enum tn_key_kind { TN_KEY_NUMBER, TN_KEY_SLICE, TN_KEY_ELLIPSIS, TN_KEY_NEWAXIS, TN_KEY_ARRAY } tn_key_kind;

typedef struct tn_key {
    tn_key_kind kind;
    tn_slice_range slice;  /* SLICE; NUMBER: start */
    const tn_array *array; /* ARRAY: integers, or bool */
} tn_key;

#ifndef __cplusplus
#define TN_I(i) ((tn_key){.kind = TN_KEY_NUMBER, .slice = {i, TN_NONE, TN_NONE}})
#define TN_RANGE(start, stop, step) ((tn_key){.kind = TN_KEY_SLICE, .slice = {start, stop, step}})
#define TN_WHOLE ((tn_key){.kind = TN_KEY_SLICE, .slice = {TN_NONE, TN_NONE, TN_NONE}})
#define TN_DOTS ((tn_key){.kind = TN_KEY_ELLIPSIS})
#define TN_NEWAXIS ((tn_key){.kind = TN_KEY_NEWAXIS})
#define TN_PICK(x) ((tn_key){.kind = TN_KEY_ARRAY, .array = TN_ARG(x)})
#else
}
inline tn_key TN_RANGE(int64_t start, int64_t stop, int64_t step)
{
    return tn_key{TN_KEY_SLICE, {start, stop, step}, nullptr};
}
inline tn_key TN_I(int64_t i) { return tn_key{TN_KEY_NUMBER, {i, TN_NONE, TN_NONE}, nullptr}; }
inline tn_key TN_PICK(const tn_array *x) { return tn_key{TN_KEY_ARRAY, {TN_NONE, TN_NONE, TN_NONE}, x}; }
#define TN_WHOLE TN_RANGE(TN_NONE, TN_NONE, TN_NONE)
#define TN_DOTS (tn_key{TN_KEY_ELLIPSIS, {TN_NONE, TN_NONE, TN_NONE}, nullptr})
#define TN_NEWAXIS (tn_key{TN_KEY_NEWAXIS, {TN_NONE, TN_NONE, TN_NONE}, nullptr})
extern "C" {
#endif
/* Keys as the two arguments `count, keys`: tn_index_add(x, y, TN_KEYS(TN_I(0), TN_DOTS)). */
#define TN_KEYS(...) TN__LIST(tn_key, __VA_ARGS__)

/* x[keys]. Axes that integer arrays give stand where the arrays do, or first if something else stands between them. */
TN_API tn_array *tn_getitem(const tn_array *x, int count, const tn_key *keys);
/* A copy of x in which x[keys] is `value` (broadcast, cast to x's dtype); of positions that repeat, the last one's
 * value stands. */
TN_API tn_array *tn_index_update(const tn_array *x, const tn_array *value, int count, const tn_key *keys);
/* A copy of x with `value` added at x[keys]: all of it where positions repeat, in order (NumPy's add.at). */
TN_API tn_array *tn_index_add(const tn_array *x, const tn_array *value, int count, const tn_key *keys);
/* The same, into the handle x (as tn_assign does). Integer arrays are looked at first, for which they are computed, and
 * a GPU is waited for: with an index out of range, TN_ERR_INDEX, x stays as it is. So do tn_put and
 * tn_put_along_axis. */
TN_API tn_status tn_setitem(tn_array *x, const tn_array *value, int count, const tn_key *keys);
TN_API tn_status tn_add_at(tn_array *x, const tn_array *value, int count, const tn_key *keys);

/* ---- positions along an axis, or in the flat array ---- */

typedef struct tn_take_opts {
    const char *_;
    tn_axes axis;     /* one axis; default: the flat array */
    const char *mode; /* of positions out of range: "raise" (default), "wrap" around, "clip" to the ends */
    tn_array *out;    /* receives the result, as tn_assign does; of its shape */
} tn_take_opts;

/* NumPy's take with all its options (tn_take needs an axis, and raises). */
TN_API tn_array *tn_take_with(const tn_array *x, const tn_array *indices, const tn_take_opts *opts);
/* A copy of x with `values` written at the indices along `axis`; shapes as tn_scatter_add. */
TN_API tn_array *tn_scatter_set(const tn_array *x, const tn_array *indices, const tn_array *values, int axis);
/* x with `values`, again and again if they are too few, at positions of the flat array. Into the handle x, as those
 * below. */
TN_API tn_status tn_put(tn_array *x, const tn_array *indices, const tn_array *values, const char *mode);
/* The writing counterpart of tn_take_along_axis. */
TN_API tn_status tn_put_along_axis(tn_array *x, const tn_array *indices, const tn_array *values, int axis);
/* `value` (again and again) on the diagonal of a matrix, or where all positions are equal in an array of equal extents;
 * wrap: again below the end of a tall matrix. */
TN_API tn_status tn_fill_diagonal(tn_array *x, const tn_array *value, bool wrap);
/* `value`s where the mask, of x's shape, is true: its first elements there in order (place), or those at the same
 * positions of the repeated values (putmask). place reads the mask. */
TN_API tn_status tn_place(tn_array *x, const tn_array *mask, const tn_array *values);
TN_API tn_status tn_putmask(tn_array *x, const tn_array *mask, const tn_array *values);

/* ---- what is not zero: read on the host for their number, so these evaluate ---- */

/* Positions of elements that are not zero, one int64 vector an axis, into out; a 0-d array has none, and is refused. */
TN_API tn_status tn_nonzero(const tn_array *x, tn_array **out);
TN_API tn_array *tn_flatnonzero(const tn_array *x);
/* The same as rows of a matrix. */
TN_API tn_array *tn_argwhere(const tn_array *x);
/* The subarrays along an axis (the elements of the flat array, if the list is empty) for which the vector `condition`
 * is true. */
TN_API tn_array *tn_compress(const tn_array *condition, const tn_array *x, tn_axes axis);
TN_API tn_array *tn_compress_with(const tn_array *condition, const tn_array *x, tn_axes axis, const tn_out_opts *opts);
/* The elements where `condition`, of as many elements, is true. */
TN_API tn_array *tn_extract(const tn_array *condition, const tn_array *x);

/* ---- choosing ---- */

/* For each position the element of the array that `which` names; all broadcast. mode as tn_take_with. */
TN_API tn_array *tn_choose(const tn_array *which, int count, const tn_array *const *choices, const char *mode);
TN_API tn_array *tn_choose_with(const tn_array *which, int count, const tn_array *const *choices, const char *mode,
                                const tn_out_opts *opts);
/* The element of the first choice whose condition is true, else `otherwise`. */
TN_API tn_array *tn_select(int count, const tn_array *const *conditions, const tn_array *const *choices,
                           const tn_array *otherwise);

/* Of x's shape and dtype: the value of the last condition that is true, else `otherwise` (NULL: 0). Conditions have x's
 * shape. */
TN_API tn_array *tn_piecewise(const tn_array *x, int count, const tn_array *const *conditions,
                              const tn_array *const *values, const tn_array *otherwise);

/* ---- positions as numbers ---- */

/* Flat positions in an array of `shape` as one int64 array an axis, into out. */
TN_API tn_status tn_unravel_index(const tn_array *indices, tn_shape shape, tn_array **out);
/* The reverse; mode as tn_take_with, one for all axes. */
TN_API tn_array *tn_ravel_multi_index(int count, const tn_array *const *indices, tn_shape shape, const char *mode);
/* Rows and columns at and below / above the k-th diagonal of an n x m matrix (m < 0: n). They evaluate. */
TN_API tn_status tn_tril_indices(int64_t n, int k, int64_t m, tn_array *out[2]);
TN_API tn_status tn_triu_indices(int64_t n, int k, int64_t m, tn_array *out[2]);

#ifndef TN_NO_MACROS
#define tn_index_update(...) TN_HERE(tn_index_update(__VA_ARGS__))
#define tn_index_add(...) TN_HERE(tn_index_add(__VA_ARGS__))
#define tn_add_at(...) TN_HERE(tn_add_at(__VA_ARGS__))
#define tn_select(...) TN_HERE(tn_select(__VA_ARGS__))
#define tn_piecewise(...) TN_HERE(tn_piecewise(__VA_ARGS__))
#define tn_ravel_multi_index(...) TN_HERE(tn_ravel_multi_index(__VA_ARGS__))
#define tn_tril_indices(...) TN_HERE(tn_tril_indices(__VA_ARGS__))
#define tn_triu_indices(...) TN_HERE(tn_triu_indices(__VA_ARGS__))
#define tn_scatter_set(x, indices, values, axis) \
    TN_AT(tn_scatter_set)(TN_ARG(x), TN_ARG(indices), TN_ARG(values), axis)
#define tn_put(x, indices, values, mode) TN_AT(tn_put)(x, TN_ARG(indices), TN_ARG(values), mode)
#define tn_put_along_axis(x, indices, values, axis) TN_AT(tn_put_along_axis)(x, TN_ARG(indices), TN_ARG(values), axis)
#define tn_fill_diagonal(x, value, wrap) TN_AT(tn_fill_diagonal)(x, TN_ARG(value), wrap)
#define tn_place(x, mask, values) TN_AT(tn_place)(x, TN_ARG(mask), TN_ARG(values))
#define tn_putmask(x, mask, values) TN_AT(tn_putmask)(x, TN_ARG(mask), TN_ARG(values))
#define tn_nonzero(x, out) TN_AT(tn_nonzero)(TN_ARG(x), out)
#define tn_flatnonzero(x) TN_AT(tn_flatnonzero)(TN_ARG(x))
#define tn_argwhere(x) TN_AT(tn_argwhere)(TN_ARG(x))
#define tn_compress(condition, x, axis) TN_AT(tn_compress)(TN_ARG(condition), TN_ARG(x), axis)
#define tn_extract(condition, x) TN_AT(tn_extract)(TN_ARG(condition), TN_ARG(x))
#define tn_choose_with(which, ...) TN_AT(tn_choose_with)(TN_ARG(which), __VA_ARGS__)
#define tn_compress_with(condition, x, ...) TN_AT(tn_compress_with)(TN_ARG(condition), TN_ARG(x), __VA_ARGS__)
#define tn_choose(which, ...) TN_AT(tn_choose)(TN_ARG(which), __VA_ARGS__)
#define tn_unravel_index(indices, shape, out) TN_AT(tn_unravel_index)(TN_ARG(indices), shape, out)
#define tn_take_any(...) TN__CALL_AA(tn_take_with, tn_take_opts, __VA_ARGS__, )
#define tn_get(x, ...) TN_AT(tn_getitem)(TN_ARG(x), TN_KEYS(__VA_ARGS__))
#define tn_set(x, value, ...) TN_AT(tn_setitem)(x, TN_ARG(value), TN_KEYS(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
