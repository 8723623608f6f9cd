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
    /* Is product v of the draft's graph a kernel of our own; else, a library's, and not a special operation of the
     * backend's for its extents (device/products.h)? */
    bool (*owns)(const struct tn__draft *draft, int v, const tn__device *device);
    bool (*leaves_to_library)(const struct tn__draft *draft, int v, const tn__device *device);
    /* May these two nests, one with a product, share loops? Whether they share values is not asked. */
    bool (*joins)(const struct tn__nest *a, const struct tn__nest *b);
    /* Can the blocks of `first` go on with `next`; and have them do it, when both have been collapsed and `first` is
     * settled. */
    bool (*fits_back_to_back)(const struct tn__nest *first, const struct tn__nest *next, const tn__device *device);
    void (*join_back_to_back)(struct tn__nest *first, struct tn__nest *next);
    /* Chooses the tile of a product; of one in the launch of a larger one, with so many blocks to spare. */
    void (*settle)(struct tn__nest *nest, const tn__device *device);
    void (*settle_horizontal)(struct tn__nest *nest, const struct tn__nest *main, int64_t blocks,
                              const tn__device *device);
    /* Is there too little to do side by side for the chip, unless a reduction is split; and do several blocks have its
     * rows in registers, so that passes over them read memory once? */
    bool (*needs_splitting)(const tn__capabilities *chip, const struct tn__nest *nest);
    bool (*holds_rows)(const tn__capabilities *chip, const struct tn__nest *nest);
} tn__target_policy;

#endif
