/* SPDX-License-Identifier: MIT */
/*
 * Matrix products as generated kernels: which products become nests, what may join their loops, and which tile computes
 * them. A product's nest runs over the elements of the result; the sum over k is its kernel's main loop (product.cuh),
 * and elementwise neighbours and short reductions are computed from the tile while it is still in registers or shared
 * memory.
 */
#ifndef TN_COMPILE_EMIT_GPU_GEMM_PRODUCT_H
#define TN_COMPILE_EMIT_GPU_GEMM_PRODUCT_H

#include "compile/loops/nest.h"

/* Is product v computed by a generated kernel on this device? Otherwise it is a step of its own: a library's, unless
 * the backend has a better way for its extents (device/products.h). */
bool tn__product_own(const tn__draft *draft, int v, const tn__device *device);
bool tn__product_of_library(const tn__draft *draft, int v, const tn__device *device);
/* May these two nests, at least one of which has a product, share their loops? The caller has made sure that they have
 * values in common. */
bool tn__product_joins(const tn__nest *a, const tn__nest *b);

/* Can each block of `first` go on to compute its part of `next` (a back-to-back product)? It can if `first` is a skinny
 * product, of which a block has a few whole rows, and `next` multiplies these rows by the transpose of the factor that
 * `first` keeps in registers, and reads nothing else that `first` stores. The last layer's product and the gradient by
 * its input are such a pair. */
bool tn__product_fits_back_to_back(const tn__nest *first, const tn__nest *next, const tn__device *device);
/* Do the threads of a skinny product, whose tile has been chosen, cover all of k in a single round of the main loop? */
bool tn__product_skinny_once(const tn__nest *nest);
/* Is a product's second factor contiguous, k its slowest axis? */
bool tn__product_in_one_piece(const tn__nest *nest);
/* Attaches `next` to `first` as its back-to-back product. The loops of both nests have been collapsed, and the tile of
 * `first` has been chosen. */
void tn__product_join_back_to_back(tn__nest *first, tn__nest *next);

/* The number of tiles to choose from. */
int tn__product_tile_count(void);
tn__product_tile tn__product_tile_of(int i);
/* Chooses the tile of a nest whose loops have been collapsed: by its shape, the layout of its factors and the device
 * alone. */
void tn__product_settle(tn__nest *nest, const tn__device *device);
/* The same for a product that shares the launch of a larger one, `main`: prefers a tile that makes at most `blocks`
 * blocks and takes no longer than `main` does. */
void tn__product_settle_horizontal(tn__nest *nest, const tn__nest *main, int64_t blocks, const tn__device *device);
/* Does a block of the product take about a microsecond or longer? */
bool tn__product_is_long(const tn__nest *nest);
/* Bytes of shared memory that the product's main loop takes. */
int tn__product_shared(const tn__nest *nest);
/* Are a factor's elements of successive k neighbours in memory? */
bool tn__product_along_k(const tn__nest *nest, int factor);

#endif
