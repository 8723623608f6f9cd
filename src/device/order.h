/* SPDX-License-Identifier: MIT */
/*
 * The one order in which reductions combine, on every path (reference evaluator, fused, unfused), so that all give the
 * same bits. It depends on the logical shape alone.
 *
 * A reduction over a set of axes of a shape: for each kept index, the reduced elements are numbered r = 0..R-1 in C
 * order of the reduced axes, and combined in blocks.
 *
 *     Inner order, when the last axis with extent > 1 is reduced (or no axis has an extent > 1): block k holds r in
 *     [k B, (k+1) B), B = TN__REDUCE_BLOCK. In a block, lane j of L = TN__REDUCE_LANES starts from the identity and
 *     combines r = kB + j, kB + j + L, ... in turn; then lanes combine pairwise: lane j with lane j + L/2 for j < L/2,
 *     and so on by halves, leaving the block's result in lane 0. Block results combine the same way: k in lane k mod L,
 *     in turn from the identity, lanes pairwise at the end. With a single block, its result is the answer.
 *
 *     Outer order, otherwise: block k holds r in [k C, (k+1) C), C = TN__REDUCE_OUTER_BLOCK, and combines them in turn
 *     from the identity; block results combine in turn from the identity. With a single block, its result is the
 *     answer.
 *
 * Accumulation is in the compute dtype (float32 for float16 and bfloat16, rounded once at the end). Positions (ARGMAX,
 * ARGMIN) do not depend on the order: the first position wins.
 *
 * Sums of single precision (TN_WIDENED: of float32, complex64) of more than a stretch of elements go on in double
 * precision. A block's stretches are S = TN__REDUCE_STRETCH elements, TN__REDUCE_OUTER_STRETCH in the outer order. What
 * a stretch comes to in a lane (in the outer order: in turn), from the identity, in single precision, is added to the
 * block's lane (the block's sum) in double precision, and so are the results of blocks; the answer is rounded once, at
 * the end. An element is part of S / L additions in single precision, of S / L + 4 where there is no
 * other stretch, or of as many as a stretch of the outer order is long: that is the bound that array.h gives
 * (N. Higham, "The accuracy of floating point summation", 1993).
 */
#ifndef TN_DEVICE_ORDER_H
#define TN_DEVICE_ORDER_H

#define TN__REDUCE_LANES 16
#define TN__REDUCE_BLOCK 4096
#define TN__REDUCE_OUTER_BLOCK 512
#define TN__REDUCE_STRETCH 256
#define TN__REDUCE_OUTER_STRETCH 16

#endif
