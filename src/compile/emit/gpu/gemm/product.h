/* SPDX-License-Identifier: MIT */
/*
 * Matrix products as kernels of our own: which products become nests, what may join them, and which tile computes them.
 * A product's nest runs over the elements of the result; the sum over k is its kernel's main loop (product.cuh), and
 * elementwise neighbours and short reductions are computed from the tile before it leaves the multiprocessor.
 */
#ifndef TN_COMPILE_EMIT_GPU_GEMM_PRODUCT_H
#define TN_COMPILE_EMIT_GPU_GEMM_PRODUCT_H

#include "compile/loops/nest.h"

/* Is the product v computed by a kernel of our own on this device? Else it is a step: a library's, unless the backend
 * has something better for its extents (device/products.h). */
bool tn__product_own(const tn__draft *draft, int v, const tn__device *device);
bool tn__product_of_library(const tn__draft *draft, int v, const tn__device *device);
/* May these two nests, at least one with a product, share loops? Whether they do share values is not asked. */
bool tn__product_joins(const tn__nest *a, const tn__nest *b);

/* Can the blocks of `first` compute `next` behind it? If `first` is a skinny product, of which a block has a few
 * whole rows, and `next` multiplies these rows by the transpose of the factor that `first` has in registers, and reads
 * nothing else that `first` stores. A last layer and the gradient of what is in front of it are such products. */
bool tn__product_fits_back_to_back(const tn__nest *first, const tn__nest *next, const tn__device *device);
/* Do the threads of a skinny product, whose tile is chosen, cover all of k in one step? */
bool tn__product_skinny_once(const tn__nest *nest);
/* Is a product's second factor contiguous, k its slowest axis? */
bool tn__product_in_one_piece(const tn__nest *nest);
/* Makes `next` the product that the blocks of `first` compute behind it. Both nests have been collapsed, and `first`
 * has its tile. */
void tn__product_join_back_to_back(tn__nest *first, tn__nest *next);

/* The tiles there are. */
int tn__product_tile_count(void);
tn__product_tile tn__product_tile_of(int i);
/* Chooses the tile of a nest whose loops have been collapsed: by its shape, the layout of its factors and the device
 * alone. */
void tn__product_settle(tn__nest *nest, const tn__device *device);
/* The same for a product that shares the launch of a larger one, `main`: prefers a tile that makes at most `blocks`
 * blocks and takes no longer than `main` does. */
void tn__product_settle_horizontal(tn__nest *nest, const tn__nest *main, int64_t blocks, const tn__device *device);
/* Does a block compute for about a microsecond or longer? */
bool tn__product_is_long(const tn__nest *nest);
/* Bytes of shared memory. */
int tn__product_shared(const tn__nest *nest);
/* Are a factor's elements of successive k neighbours in memory? */
bool tn__product_along_k(const tn__nest *nest, int factor);

#endif
