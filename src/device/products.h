/* SPDX-License-Identifier: MIT */
/*
 * Matrix products whose shapes no usual tile fits, and for which a device with product_kernels has operations of its
 * own: of very long sums and few elements, which are cut along k, and of very many tiny matrices. By the extents alone,
 * so that who plans a product and who computes it agree.
 */
#ifndef TN_DEVICE_PRODUCTS_H
#define TN_DEVICE_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#define TN__TALL_TILE   64   /* rows and columns of a tile, at most */
#define TN__TALL_TILES  4    /* that a result may have */
#define TN__TALL_DEPTH  4096 /* the extent of k from which on it is worth cutting */
#define TN__TALL_FEW    3072 /* elements up to which a library is slower whatever k is, as measured */
#define TN__TALL_WORK   ((int64_t)1 << 27) /* multiplications up to which it is so, too */
#define TN__TALL_FAST   1024 /* elements up to which tensor cores would not be faster */
#define TN__TINY_EXTENT 16   /* of m, n and k */
#define TN__TINY_BATCH  1024 /* fewer are not worth a kernel that joins nothing else */

/* `fast`: in TF32, if that is faster. */
static inline bool tn__product_is_tall(int64_t batch, int64_t m, int64_t k, int64_t n, bool fast)
{
    return batch == 1 && m > 1 && n > 1 && k >= TN__TALL_DEPTH && m <= TN__TALL_TILE * TN__TALL_TILES &&
           n <= TN__TALL_TILE * TN__TALL_TILES &&
           (m + TN__TALL_TILE - 1) / TN__TALL_TILE * ((n + TN__TALL_TILE - 1) / TN__TALL_TILE) <= TN__TALL_TILES &&
           (m * n <= TN__TALL_FEW || m * n * k <= TN__TALL_WORK) && (!fast || m * n <= TN__TALL_FAST);
}

static inline bool tn__product_is_tiny(int64_t batch, int64_t m, int64_t k, int64_t n)
{
    return batch >= TN__TINY_BATCH && m > 0 && k > 0 && n > 0 && m <= TN__TINY_EXTENT && k <= TN__TINY_EXTENT &&
           n <= TN__TINY_EXTENT;
}

#endif
