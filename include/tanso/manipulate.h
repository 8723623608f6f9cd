/* SPDX-License-Identifier: MIT */
/*
 * Making and rearranging arrays, as NumPy has it: ranges, grids, diagonals and triangles; moving axes, rolling, tiling,
 * padding, joining, splitting. All are differentiable; shapes and axes follow NumPy, negative axes count from the end.
 * What tanso/array.h has under the same subject is not repeated here.
 */
#ifndef TANSO_MANIPULATE_H
#define TANSO_MANIPULATE_H

#include <tanso/array.h>
#include <tanso/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creation ---- */

/* An array whose elements the caller will replace: zeros here. float32 by default. */
TN_API tn_array *tn_empty_with(tn_shape shape, const tn_create_opts *opts);
/* x's shape, dtype and device, but for what opts say; all zero, all `value`. */
TN_API tn_array *tn_empty_like_with(const tn_array *x, const tn_create_opts *opts);
TN_API tn_array *tn_full_like_with(const tn_array *x, long double value, const tn_create_opts *opts);
/* n x n, ones on the diagonal; float32 by default. */
TN_API tn_array *tn_identity_with(int64_t n, const tn_create_opts *opts);
/* n x m (m < 0: n) of ones at and below the k-th diagonal, zeros above; float32 by default. */
TN_API tn_array *tn_tri_with(int64_t n, int64_t m, int k, const tn_create_opts *opts);

/* tn_arange of integers that a double does not hold: start, start + step, ... before stop; dtype int64 by default,
 * TN_ERR_VALUE for one that does not hold them. */
TN_API tn_array *tn_arange_int64_with(int64_t start, int64_t stop, int64_t step, const tn_create_opts *opts);

typedef struct tn_space_opts {
    const char *_;
    tn_dtype dtype; /* default: float64, or the float dtype of start and stop where those are narrower */
    bool open;      /* without stop (NumPy's endpoint=False) */
    int axis;       /* of the result along which the numbers go; default 0 */
    double base;    /* logspace; default 10 */
} tn_space_opts;

/* `count` numbers from start to stop, which broadcast; evenly spaced, or their logarithms are. linspace to an integer
 * dtype rounds down. */
TN_API tn_array *tn_linspace_arrays_with(const tn_array *start, const tn_array *stop, int64_t count,
                                         const tn_space_opts *opts);
TN_API tn_array *tn_logspace_with(const tn_array *start, const tn_array *stop, int64_t count,
                                  const tn_space_opts *opts);
/* Both of one sign and not 0, the ends exact. */
TN_API tn_array *tn_geomspace_with(const tn_array *start, const tn_array *stop, int64_t count,
                                   const tn_space_opts *opts);

typedef struct tn_grid_opts {
    const char *_;
    bool ij;     /* the first vector along the first axis (indexing='ij'); default: along the second */
    bool sparse; /* extents of 1 instead of repeated elements */
} tn_grid_opts;

/* Coordinate arrays of `count` vectors, into out. */
TN_API tn_status tn_meshgrid_with(int count, const tn_array *const *vectors, tn_array **out, const tn_grid_opts *opts);
/* (ndim,) + shape: int64 positions along each axis (or opts->dtype). */
TN_API tn_array *tn_indices_with(tn_shape shape, const tn_create_opts *opts);
/* Powers of a vector as columns, highest first, or lowest first with `increasing`; columns < 0: as many as elements. */
TN_API tn_array *tn_vander(const tn_array *x, int64_t columns, bool increasing);

/* A vector as the k-th diagonal of a matrix; the k-th diagonal of a matrix as a vector. */
TN_API tn_array *tn_diag(const tn_array *x, int k);
/* The flat array as a diagonal. */
TN_API tn_array *tn_diagflat(const tn_array *x, int k);
/* The diagonals of the matrices along two axes, as a last axis; their sums. */
TN_API tn_array *tn_diagonal(const tn_array *x, int offset, int axis1, int axis2);
TN_API tn_array *tn_trace(const tn_array *x, int offset, int axis1, int axis2, tn_dtype dtype);
TN_API tn_array *tn_trace_with(const tn_array *x, int offset, int axis1, int axis2, const tn_out_opts *opts);
/* The last two axes with zeros above / below the k-th diagonal. */
TN_API tn_array *tn_tril(const tn_array *x, int k);
TN_API tn_array *tn_triu(const tn_array *x, int k);

/* ---- axes ---- */

/* One axis, C order. */
TN_API tn_array *tn_ravel(const tn_array *x);
/* The axes `source` at the places `destination`, the others in order. */
TN_API tn_array *tn_moveaxis(const tn_array *x, tn_axes source, tn_axes destination);
/* The axis in front of the axis `start`. */
TN_API tn_array *tn_rollaxis(const tn_array *x, int axis, int start);
/* With axes of extent 1 added in front; of 3: a vector of n as (1, n, 1), a matrix as (m, n, 1). */
TN_API tn_array *tn_atleast_1d(const tn_array *x);
TN_API tn_array *tn_atleast_2d(const tn_array *x);
TN_API tn_array *tn_atleast_3d(const tn_array *x);
/* The shape that shapes broadcast to; TN_ERR_SHAPE if there is none. */
TN_API tn_status tn_broadcast_shapes(int count, const tn_shape *shapes, tn_shape *out);
/* All in their common shape, into out[0 .. count-1]. */
TN_API tn_status tn_broadcast_arrays(int count, const tn_array *const *arrays, tn_array **out);

/* ---- rearranging ---- */

/* The second axis reversed (of at least two); the first. */
TN_API tn_array *tn_fliplr(const tn_array *x);
TN_API tn_array *tn_flipud(const tn_array *x);
/* Elements moved by `shift` places, those that leave come in at the other end: along each of `axes` by its own shift
 * (one shift serves all), or over the flat array when the list is empty. */
TN_API tn_array *tn_roll(const tn_array *x, int count, const int64_t *shift, tn_axes axes);
/* Turned k times by 90 degrees from the first toward the second of two axes (an empty list: 0 and 1). */
TN_API tn_array *tn_rot90(const tn_array *x, int k, tn_axes axes);
/* reps[i] copies along each axis; axes are added in front as needed. */
TN_API tn_array *tn_tile(const tn_array *x, tn_shape reps);
/* Each element `count` times along an axis, or of the flat array when the list is empty. */
TN_API tn_array *tn_repeat(const tn_array *x, int64_t count, tn_axes axis);
/* The same with a count for each place of the axis: reads the counts, so it evaluates them. */
TN_API tn_array *tn_repeat_each(const tn_array *x, const tn_array *counts, tn_axes axis);
/* The flat elements again and again until they fill a shape. */
TN_API tn_array *tn_resize(const tn_array *x, tn_shape shape);

typedef struct tn_pad_opts {
    const char *_;
    const char *mode; /* NumPy's: "constant" (default), "edge", "linear_ramp", "maximum", "mean", "median",
                         "minimum", "reflect", "symmetric", "wrap", "empty" */
    const double (*values)[2];       /* constant, linear_ramp: before and after, a pair an axis; default 0 */
    const int64_t (*stat_length)[2]; /* maximum, mean, median, minimum: of how many elements; default: all */
    bool odd;                        /* reflect, symmetric: 2 edge - reflection (reflect_type='odd') */
    const tn_array *constants;       /* instead of values, of any dtype: a shape that broadcasts to (axes, 2) */
} tn_pad_opts;

/* width[i][0] elements before and width[i][1] behind axis i. */
TN_API tn_array *tn_pad_with(const tn_array *x, const int64_t (*width)[2], const tn_pad_opts *opts);

/* ---- joining and splitting ---- */

/* `count` >= 1 arrays one below the other, vectors as rows; side by side, vectors one behind the other; one behind the
 * other along a third axis; vectors as the columns of a matrix, beside matrices. Dtypes promote. */
TN_API tn_array *tn_vstack(int count, const tn_array *const *arrays);
TN_API tn_array *tn_hstack(int count, const tn_array *const *arrays);
TN_API tn_array *tn_vstack_with(int count, const tn_array *const *arrays, const tn_out_opts *opts);
TN_API tn_array *tn_hstack_with(int count, const tn_array *const *arrays, const tn_out_opts *opts);
TN_API tn_array *tn_dstack(int count, const tn_array *const *arrays);
TN_API tn_array *tn_column_stack(int count, const tn_array *const *arrays);
/* A matrix of blocks, row after row: each row's joined along the last axis, the rows along the one before it. */
TN_API tn_array *tn_block(int rows, int columns, const tn_array *const *blocks);
/* Joined along an axis; both flat when the list is empty. */
TN_API tn_array *tn_append(const tn_array *x, const tn_array *values, tn_axes axis);
/* x with `values` put in front of the `count` positions along an axis, or in the flat array when the list is empty. One
 * position: all of the values there, broadcast on the other axes; several: one value each. */
TN_API tn_array *tn_insert(const tn_array *x, int count, const int64_t *positions, const tn_array *values,
                           tn_axes axis);
/* x without the positions. */
TN_API tn_array *tn_delete(const tn_array *x, int count, const int64_t *positions, tn_axes axis);
/* `sections` parts, the first ones longer by one where the extent is no multiple. */
TN_API tn_status tn_array_split(const tn_array *x, int sections, int axis, tn_array **out);
/* count + 1 parts, cut in front of the positions. */
TN_API tn_status tn_split_at(const tn_array *x, int count, const int64_t *positions, int axis, tn_array **out);
/* The elements of an axis, each without it, into out[0 .. extent-1] (Chainer's separate, NumPy's unstack). */
TN_API tn_status tn_separate(const tn_array *x, int axis, tn_array **out);
/* The last two axes exchanged. */
TN_API tn_array *tn_matrix_transpose(const tn_array *x);
/* Windows that slide along axes (none: along every one): x's axes, each shorter by its window's extent less 1, then the
 * windows' own. A window's elements are read where they are used: none are stored beforehand. */
TN_API tn_array *tn_sliding_window_view(const tn_array *x, tn_shape window, tn_axes axes);
/* Place i of `shape` holds x's element offset + i[0] strides[0] + i[1] strides[1] ..., counted in C order: strides are
 * in elements, as Chainer's and PyTorch's as_strided has them. A copy, unlike theirs; gradients add up where places
 * meet. TN_ERR_INDEX where one lies outside x. */
TN_API tn_array *tn_as_strided(const tn_array *x, tn_shape shape, tn_shape strides, int64_t offset);
/* An array without what is all zero at its front and back (either may be left out), along every axis or those given;
 * evaluates it. */
TN_API tn_array *tn_trim_zeros(const tn_array *x, bool front, bool back);
TN_API tn_array *tn_trim_zeros_along(const tn_array *x, bool front, bool back, tn_axes axes);

#ifndef TN_NO_MACROS
#define tn_broadcast_shapes(...) TN_HERE(tn_broadcast_shapes(__VA_ARGS__))
#define tn_vander(x, columns, increasing) TN_AT(tn_vander)(TN_ARG(x), columns, increasing)
#define tn_diag(x, k) TN_AT(tn_diag)(TN_ARG(x), k)
#define tn_diagflat(x, k) TN_AT(tn_diagflat)(TN_ARG(x), k)
#define tn_diagonal(x, offset, axis1, axis2) TN_AT(tn_diagonal)(TN_ARG(x), offset, axis1, axis2)
#define tn_trace_with(x, ...) TN_AT(tn_trace_with)(TN_ARG(x), __VA_ARGS__)
#define tn_trace(x, offset, axis1, axis2, dtype) TN_AT(tn_trace)(TN_ARG(x), offset, axis1, axis2, dtype)
#define tn_tril(x, k) TN_AT(tn_tril)(TN_ARG(x), k)
#define tn_triu(x, k) TN_AT(tn_triu)(TN_ARG(x), k)
#define tn_ravel(x) TN_AT(tn_ravel)(TN_ARG(x))
#define tn_moveaxis(x, source, destination) TN_AT(tn_moveaxis)(TN_ARG(x), source, destination)
#define tn_rollaxis(x, axis, start) TN_AT(tn_rollaxis)(TN_ARG(x), axis, start)
#define tn_atleast_1d(x) TN_AT(tn_atleast_1d)(TN_ARG(x))
#define tn_atleast_2d(x) TN_AT(tn_atleast_2d)(TN_ARG(x))
#define tn_atleast_3d(x) TN_AT(tn_atleast_3d)(TN_ARG(x))
#define tn_broadcast_arrays(...) TN_AT(tn_broadcast_arrays)(__VA_ARGS__)
#define tn_fliplr(x) TN_AT(tn_fliplr)(TN_ARG(x))
#define tn_flipud(x) TN_AT(tn_flipud)(TN_ARG(x))
#define tn_roll(x, ...) TN_AT(tn_roll)(TN_ARG(x), __VA_ARGS__)
#define tn_rot90(x, k, axes) TN_AT(tn_rot90)(TN_ARG(x), k, axes)
#define tn_tile(x, reps) TN_AT(tn_tile)(TN_ARG(x), reps)
#define tn_repeat(x, count, axis) TN_AT(tn_repeat)(TN_ARG(x), count, axis)
#define tn_repeat_each(x, counts, axis) TN_AT(tn_repeat_each)(TN_ARG(x), TN_ARG(counts), axis)
#define tn_resize(x, shape) TN_AT(tn_resize)(TN_ARG(x), shape)
#define tn_vstack_with(...) TN_AT(tn_vstack_with)(__VA_ARGS__)
#define tn_hstack_with(...) TN_AT(tn_hstack_with)(__VA_ARGS__)
#define tn_vstack(...) TN_AT(tn_vstack)(__VA_ARGS__)
#define tn_hstack(...) TN_AT(tn_hstack)(__VA_ARGS__)
#define tn_dstack(...) TN_AT(tn_dstack)(__VA_ARGS__)
#define tn_column_stack(...) TN_AT(tn_column_stack)(__VA_ARGS__)
#define tn_block(...) TN_AT(tn_block)(__VA_ARGS__)
#define tn_append(x, values, axis) TN_AT(tn_append)(TN_ARG(x), TN_ARG(values), axis)
#define tn_insert(...) TN__INSERT(__VA_ARGS__)
#define TN__INSERT(x, count, positions, values, axis) \
    TN_AT(tn_insert)(TN_ARG(x), count, positions, TN_ARG(values), axis)
#define tn_delete(x, ...) TN_AT(tn_delete)(TN_ARG(x), __VA_ARGS__)
#define tn_array_split(x, sections, axis, out) TN_AT(tn_array_split)(TN_ARG(x), sections, axis, out)
#define tn_separate(...) TN_HERE(tn_separate(__VA_ARGS__))
#define tn_split_at(x, ...) TN_AT(tn_split_at)(TN_ARG(x), __VA_ARGS__)
#define tn_matrix_transpose(x) TN_AT(tn_matrix_transpose)(TN_ARG(x))
#define tn_sliding_window_view(x, window, axes) TN_AT(tn_sliding_window_view)(TN_ARG(x), window, axes)
#define tn_as_strided(x, ...) TN_AT(tn_as_strided)(TN_ARG(x), __VA_ARGS__)
#define tn_trim_zeros(x, front, back) TN_AT(tn_trim_zeros)(TN_ARG(x), front, back)
#define tn_trim_zeros_along(x, front, back, axes) TN_AT(tn_trim_zeros_along)(TN_ARG(x), front, back, axes)
#define tn_empty(...) TN__CALL_V(tn_empty_with, tn_create_opts, __VA_ARGS__, )
#define tn_empty_like(...) TN__CALL_A(tn_empty_like_with, tn_create_opts, __VA_ARGS__, )
#define tn_full_like(...) TN__CALL_AV(tn_full_like_with, tn_create_opts, __VA_ARGS__, )
#define tn_arange_int64(...) TN__CALL_VVV(tn_arange_int64_with, tn_create_opts, __VA_ARGS__, )
#define tn_identity(...) TN__CALL_V(tn_identity_with, tn_create_opts, __VA_ARGS__, )
#define tn_tri(...) TN__CALL_VVV(tn_tri_with, tn_create_opts, __VA_ARGS__, )
#define tn_linspace_arrays(...) TN__CALL_AAV(tn_linspace_arrays_with, tn_space_opts, __VA_ARGS__, )
#define tn_logspace(...) TN__CALL_AAV(tn_logspace_with, tn_space_opts, __VA_ARGS__, )
#define tn_geomspace(...) TN__CALL_AAV(tn_geomspace_with, tn_space_opts, __VA_ARGS__, )
#define tn_meshgrid(...) TN__CALL_VVV(tn_meshgrid_with, tn_grid_opts, __VA_ARGS__, )
#define tn_indices(...) TN__CALL_V(tn_indices_with, tn_create_opts, __VA_ARGS__, )
#define tn_pad(...) TN__CALL_AV(tn_pad_with, tn_pad_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
