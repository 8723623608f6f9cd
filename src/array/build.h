/* SPDX-License-Identifier: MIT */
/*
 * Building graphs from nodes, for gradient rules and composites: NumPy's semantics with full checks, like the public
 * functions, but over borrowed nodes (see node.h). An error operand gives that error; a failed check a new error node.
 */
#ifndef TN_ARRAY_BUILD_H
#define TN_ARRAY_BUILD_H

#include "array/node.h"
#include "core/position.h"

/* Elementwise, with promotion and broadcasting. */
tn__node *tn__unary(tn__op op, tn__node *a);
tn__node *tn__binary(tn__op op, tn__node *a, tn__node *b);
tn__node *tn__where(tn__node *condition, tn__node *a, tn__node *b);
tn__node *tn__cast(tn__node *a, tn_dtype dtype);

/* re + i im, and the parts; the conjugate (of real numbers, the operand). */
tn__node *tn__complex(tn__node *re, tn__node *im);
tn__node *tn__real(tn__node *a);
tn__node *tn__imaginary(tn__node *a);
tn__node *tn__conjugate(tn__node *a);
/* The product of matrices, at least one of them complex, by products of real ones. */
tn__node *tn__complex_matmul(tn__node *a, tn__node *b);

/* One scalar everywhere, in the dtype, shape and device of `like`. */
tn__node *tn__const_like(tn__node *like, double value);
tn__node *tn__const(double value, tn_dtype dtype, const tn__shape *shape, tn__device *device);
tn__node *tn__const_scalar(tn__scalar value, tn_dtype dtype, const tn__shape *shape, tn__device *device);
/* y, which is inexact, as what the xs made, though its derivative by each of them is zero: of a y that does not depend
 * on their values, as nothing does on those of an array without elements. Backward reaches them, and finds zeros. Of
 * fewer than TN__MAX_INPUTS xs. */
tn__node *tn__tied(tn__node *y, int count, tn__node *const *xs);
/* y, to which x would have given its elements if it had any: tied to it where a gradient may be asked for. */
tn__node *tn__made_of_none(tn__node *y, tn__node *x);
/* A binary operation with a C number, which promotes weakly: tn__with(TN__OP_MULTIPLY, a, 0.5). */
tn__node *tn__with(tn__op op, tn__node *a, double b);
/* int64 positions along `axis`, in a shape. */
tn__node *tn__iota(const tn__shape *shape, int axis, tn__device *device);
tn__node *tn__random(tn__op op, tn_dtype dtype, const tn__shape *shape, tn__device *device, uint64_t key,
                     uint64_t offset);

/* Views. Shapes are checked; extents of -1 are not expanded here. */
tn__node *tn__reshape(tn__node *a, int ndim, const int64_t *dim);
tn__node *tn__reshape_like(tn__node *a, const tn__shape *shape);
tn__node *tn__permute(tn__node *a, const uint8_t perm[TN_MAX_NDIM]);
/* Swaps the last two axes. */
tn__node *tn__swap_last(tn__node *a);
/* NumPy's broadcast_to (new leading axes too). */
tn__node *tn__expand(tn__node *a, const tn__shape *shape);
/* start and step an axis (start is where element 0 of the result comes from; steps may be negative), extents in dim. */
tn__node *tn__slice_node(tn__node *a, const int64_t *start, const int64_t *step, const int64_t *dim);
tn__node *tn__update(tn__node *base, tn__node *value, const tn__ints *window);
/* `base` with `value`, of as many axes, in it: from `at` on along an axis, from 0 on along the others. */
tn__node *tn__update_along(tn__node *base, tn__node *value, int axis, int64_t at);
/* Arrays one behind the other along an axis; the first error, if one of them is one. */
tn__node *tn__joined(int count, tn__node *const *parts, int axis);

/* Reductions over a set of axes, which stay with extent 1 (dtype of the input; int64 for TN_ARG reductions). */
tn__node *tn__reduce(tn__op op, tn__node *a, uint32_t axes);
/* Drops the axes in the set (of extent 1). */
tn__node *tn__drop_axes(tn__node *a, uint32_t axes);
/* The root of a sum that is not negative: a power between 0 and 1 of it. Its slope where the sum is 0 is 0, as that of
 * |x| at 0 is: of infinity times the 0 behind it only NaN would come, for whatever is in front. */
tn__node *tn__root_of_sum(tn__node *sum, double power);
/* Sums a down to a shape that broadcasts to a's: the reverse of broadcasting. */
tn__node *tn__sum_to(tn__node *a, const tn__shape *shape);

/* SOFTMAX or LOG_SOFTMAX of an array in the dtype it is computed in, over axes. */
tn__node *tn__softmax(tn__op op, tn__node *a, uint32_t axes);
/* SOFTMAX over axes as it is kept: zeros where it is not allowed (bool, broadcast to a; NULL: all is), rounded to a
 * dtype that may be narrower than a's. Its gradient is one of that, so that backward needs no second array of a's size
 * beside what a product reads; what is not allowed must not depend on what a gradient is asked for. */
tn__node *tn__softmax_kept(tn__node *a, tn__node *allowed, tn_dtype dtype, uint32_t axes);
/* FIRST_MAX of a real array over axes, none of them of extent 0: where elements tie, MAX divides the gradient among
 * them. */
tn__node *tn__first_max(tn__node *a, uint32_t axes);
/* DEVIATIONS of a real array in the dtype it is computed in, over axes. */
tn__node *tn__deviations(tn__node *a, uint32_t axes);
/* The sum over axes divided by the number of elements. */
tn__node *tn__average(tn__node *a, uint32_t axes);
/* So many along the axes that a variance of them is worth the care that a rounded mean takes. */
bool tn__reduced_many(const tn__node *a, uint32_t axes);
tn__node *tn__matmul_node(tn__node *a, tn__node *b);
tn__node *tn__gather(tn__node *a, tn__node *indices, int axis);
/* The same where whoever calls knows that no index is negative or out of range; below: elements are known to lie in
 * 0..below-1, 0 if not. */
tn__node *tn__gather_known(tn__node *a, tn__node *indices, int axis, int64_t below);
/* As int64; of uint64 what is 2^63 or more as the largest int64, and not as a negative number, which has a meaning. */
tn__node *tn__integers(tn__node *x);
/* Integers as positions for tn__gather where negative ones, which would count from the end, are out of range too: a
 * label or token of -1 is a mistake. */
tn__node *tn__labels(tn__node *t);
/* The same of lengths, which are 1 at least. */
tn__node *tn__lengths(tn__node *t);
/* int64 positions as 0..extent-1. Who computes them looks at them, as a gather along `axis` (of theirs) would: for what
 * depends on positions and gathers nothing, or by tn__gather_known. Those out of range become the nearest ones. */
tn__node *tn__positions_within(tn__node *positions, int axis, int64_t extent);
/* Looks at the values of positions at once: TN_ERR_INDEX, with the index and its position as they were given. It
 * evaluates and reads them. */
tn_status tn__positions_look(const char *operation, tn__node *positions, int64_t extent);
/* The positions that a pending node looks at itself while it runs, and the extent that they must fit; NULL: none. */
tn__node *tn__positions_of(const tn__node *node, int64_t *extent);
/* Looks at once at all indices that a pending node depends on. */
tn_status tn__indices_look(tn__node *node);
/* What the user gave as such positions, as far as that can be told, and from where on they are valid. */
tn__node *tn__given_indices(tn__node *positions, tn__position_least *least);
/* SCATTER_ADD or SCATTER_SET. */
tn__node *tn__scatter_node(tn__op op, tn__node *base, tn__node *indices, tn__node *values, int axis);
tn__node *tn__scatter_add_node(tn__node *base, tn__node *indices, tn__node *values, int axis);

/* An operation of kind SORT_SCAN along the last axis; b: its second input, or NULL. A device that has no such operation
 * gets it computed on the CPU, at once. */
tn__node *tn__sort_scan(tn__op op, tn__node *a, tn__node *b);
/* The positions of the true elements of a vector of bools, of which there are `count`. */
tn__node *tn__nonzero(tn__node *mask, int64_t count);
/* How many elements lie between each two neighbours of an ascending vector of one or more; elements equal to the last
 * are counted. */
tn__node *tn__histogram(tn__node *edges, tn__node *values);
/* The last axis the other way round. */
tn__node *tn__reverse_rows(tn__node *a);
/* With `axis` as the last one, the others in order; and back. */
tn__node *tn__axis_to_last(tn__node *a, int axis);
tn__node *tn__axis_from_last(tn__node *a, int axis);

/* a on a device: a itself where it is there, else a copy, recorded. */
tn__node *tn__to(tn__node *a, tn__device *device);
/* The same, evaluated. */
tn__node *tn__to_at_once(tn__node *a, tn__device *device);

/* A set of axes from a user's list (empty: all); latches and returns false for bad ones. Negative axes count from the
 * end. */
bool tn__axes_set(const char *operation, tn_axes axes, int ndim, uint32_t *set);
/* One axis, negative allowed; -1 and latched if out of range. */
int tn__axis_check(const char *operation, int axis, int ndim);
/* Has a user's list no more axes than `most`, which is TN_MAX_NDIM at most? Latches if not, and if its count is
 * negative. */
bool tn__axes_fit(const char *operation, tn_axes axes, int most);
/* The one axis in a list, `absent` if that is empty; -1 and latched if there are more, or it is out of range. */
int tn__axis_of_list(const char *operation, tn_axes axes, int absent, int ndim);

/* Gradient recording on/off for this thread (autograd's switch, read by tn__node_new). */
extern _Thread_local int tn__no_grad_depth __attribute__((tls_model("initial-exec")));

#endif
