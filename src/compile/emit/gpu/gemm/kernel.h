/* SPDX-License-Identifier: MIT */
/*
 * Between the files that write kernels around a matrix product: main_loop.c (the tile, and what is fetched along with
 * it), kernel.c (what is computed from the tile) and kernel_reduced.c (reductions of its rows or columns).
 */
#ifndef TN_COMPILE_EMIT_GPU_GEMM_KERNEL_H
#define TN_COMPILE_EMIT_GPU_GEMM_KERNEL_H

#include "compile/emit/emit.h"
#include "compile/emit/gpu/gemm/product.h"

/* How a form spreads a tile's elements over threads: each has the elements u = 0, 1, ... < each. */
typedef struct tn__product_spread {
    int each;
    const char *row, *column; /* of element u */
    void (*ready)(
        tn__printer *p);      /* emits what else is to be done before the kernel waits for those in front; or NULL */
    const char *any;          /* a condition: has this thread an element? NULL: every thread has */
    bool sums;                /* a thread's elements are those that it has summed: they stay in its registers, sum[] */
} tn__product_spread;

/* The C type of the product's elements. */
const char *tn__product_type(const tn__nest *n);
/* Opens the scope of the tile's element at `row` and `column`, which are expressions: variables of those names, and the
 * loops'. Values are computed without a condition, at the nearest element that there is, so that the loads of several
 * elements are under way together; what is done with them asks whether the element is there. */
void tn__product_open_element(tn__printer *p, bool values, const char *row, const char *column);
/* Sets `early`, `free` and `same` of the nest's expressions. */
void tn__product_find(tn__printer *p);
/* Marks (`kept`) the loads that a thread does before the product, for its `each` elements, as far as registers go. */
void tn__product_mark(tn__printer *p, int each);
/* Where an access has the element at `row` and `column`, which are expressions, as an offset. */
void tn__product_print_place(tn__printer *p, const tn__access *a, const char *row, const char *column);
/* Where the tile at `top` and `left` begins in what its elements read and write. */
void tn__product_emit_origins(tn__printer *p);
/* The steps in memory, down and across the tile, of an access that is near its tile's first element, as text. */
void tn__product_steps(const tn__nest *n, int access, char down[24], char across[24]);
/* Which tile is the block's. */
void tn__product_emit_place(tn__printer *p);
/* The tile into shared memory or registers, and what has been marked into registers. */
void tn__product_emit_main_loop(tn__printer *p, const tn__product_spread *spread);

/* ---- kernel.c ---- */

/* What a pass over elements keeps between its loads and its stores: declared, computed for an element, stored. */
void tn__product_declare_kept(tn__printer *p, int level);
void tn__product_keep_values(tn__printer *p, int level);
void tn__product_store_kept(tn__printer *p, int level);
/* What is the same for all elements, and no load. */
void tn__product_emit_constants(tn__printer *p);
/* For a back-to-back product: what it needs beside the block's rows is fetched before the first product; its nest is
 * called once the rows are in memory. */
void tn__product_prepare_next(tn__printer *p);
void tn__product_emit_next(tn__printer *p);

/* ---- kernel_reduced.c ---- */

/* The code behind the main loop of a product whose rows, or whose columns, are reduced. */
void tn__product_emit_rows(tn__printer *p);
void tn__product_emit_columns(tn__printer *p);

#endif
