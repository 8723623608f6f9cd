/* SPDX-License-Identifier: MIT */
/*
 * Matrix products as kernels of our own: which products become nests, what may join them, and which tile computes them.
 * A product nest is a nest over the elements of the result; the sum over k is the core of its kernel (product.cuh), and
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

/* Can the blocks of `first` go on with `next`? There a few rows of a thin product are complete, of which `next` is the
 * product by the transpose of the factor that `first` has in registers, and nothing else that `first` stores is needed
 * of other rows. So do the gradients of a last layer and of what is in front of it. */
bool tn__product_fits_back_to_back(const tn__nest *first, const tn__nest *next, const tn__device *device);
/* Do the threads of a settled thin product have all of k at once? */
bool tn__product_skinny_once(const tn__nest *nest);
/* Does all of a product's second factor lie in one piece, by k? */
bool tn__product_in_one_piece(const tn__nest *nest);
/* Lets it do so; both have been collapsed, and `first` is settled. */
void tn__product_join_back_to_back(tn__nest *first, tn__nest *next);

/* The tiles there are. */
int tn__product_tile_count(void);
tn__product_tile tn__product_tile_of(int i);
/* Chooses the tile of a nest whose loops have been collapsed: by its shape, the layout of its factors and the device
 * alone. */
void tn__product_settle(tn__nest *nest, const tn__device *device);
/* The same for a product beside a larger one, `main`: where another tile takes no more than `blocks` blocks, and no
 * longer than that one, it is that. */
void tn__product_settle_horizontal(tn__nest *nest, const tn__nest *main, int64_t blocks, const tn__device *device);
/* Does a block compute for about a microsecond or longer? */
bool tn__product_is_long(const tn__nest *nest);
/* Bytes of shared memory. */
int tn__product_shared(const tn__nest *nest);
/* Does a factor's line lie along k in memory? */
bool tn__product_along_k(const tn__nest *nest, int factor);

#endif
