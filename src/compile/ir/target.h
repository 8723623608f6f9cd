/* SPDX-License-Identifier: MIT */
/*
 * What passes ask of the target that kernels are written for: which products are nests, what joins them, how they are
 * computed, and when a reduction is better split. A target that leaves products to libraries has none of it
 * (tn__emit_target's `policy` is NULL): then no nest has a product, and nobody asks.
 */
#ifndef TN_COMPILE_IR_TARGET_H
#define TN_COMPILE_IR_TARGET_H

#include "device/device.h"

struct tn__draft;
struct tn__nest;

typedef struct tn__target_policy {
    /* owns: is product v of the draft's graph a nest, which our own kernels compute? leaves_to_library: is it a step
     * that a library computes? If neither, it is one for which the backend has its own way (device/products.h). */
    bool (*owns)(const struct tn__draft *draft, int v, const tn__device *device);
    bool (*leaves_to_library)(const struct tn__draft *draft, int v, const tn__device *device);
    /* May these two nests, one with a product, share loops? Whether they share values is not asked. */
    bool (*joins)(const struct tn__nest *a, const struct tn__nest *b);
    /* Back-to-back products: can the blocks that compute `first` compute `next` behind it? The second function has them
     * do so, once both nests have been collapsed and `first` has its tile. */
    bool (*fits_back_to_back)(const struct tn__nest *first, const struct tn__nest *next, const tn__device *device);
    void (*join_back_to_back)(struct tn__nest *first, struct tn__nest *next);
    /* Chooses a product's tile; settle_horizontal that of a product which shares the launch of the larger product
     * `main` and is to have at most `blocks` blocks. */
    void (*settle)(struct tn__nest *nest, const tn__device *device);
    void (*settle_horizontal)(struct tn__nest *nest, const struct tn__nest *main, int64_t blocks,
                              const tn__device *device);
    /* needs_splitting: would a reduction leave much of the chip idle unless it is split? holds_rows: does a cluster of
     * blocks keep each row in registers, so that several passes over it read memory once? */
    bool (*needs_splitting)(const tn__capabilities *chip, const struct tn__nest *nest);
    bool (*holds_rows)(const tn__capabilities *chip, const struct tn__nest *nest);
} tn__target_policy;

#endif
