/* SPDX-License-Identifier: MIT */
/*
 * What the files that print kernels around a matrix product share: main_loop.c (computes the tile, and fetches what
 * else can be fetched meanwhile), kernel.c (what is computed from the tile) and kernel_reduced.c (reductions of its
 * rows or columns).
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
        tn__printer *p);      /* prints what else is to be done before the kernel waits for the kernels before it;
                                 NULL: nothing */
    const char *any;          /* the condition that this thread has an element; NULL: every thread has one */
    bool sums;                /* a thread's elements are the ones it has summed, which stay in its registers, sum[] */
} tn__product_spread;

/* The C type of the product's elements. */
const char *tn__product_type(const tn__nest *n);
/* Opens a C scope for the tile's element at `row` and `column` (C expressions), with variables of these names and those
 * of the loops. Values are computed unconditionally, at the nearest element that exists, so that the loads of several
 * elements are under way together; only stores and accumulations ask whether the element exists. */
void tn__product_open_element(tn__printer *p, bool values, const char *row, const char *column);
/* Sets the notes `early`, `free` and `same` of each expression of the nest (see emit.h). */
void tn__product_find(tn__printer *p);
/* Marks as `kept` the loads that a thread issues before the product, for each of its `each` elements, as far as its
 * registers suffice. */
void tn__product_mark(tn__printer *p, int each);
/* Prints the offset, in elements, of the access's element at `row` and `column`, which are C expressions. */
void tn__product_print_place(tn__printer *p, const tn__access *a, const char *row, const char *column);
/* Prints, for each access, the address of the first element of the tile at row `top` and column `left`. */
void tn__product_emit_origins(tn__printer *p);
/* Writes, as text, by how many elements an access moves per row (down) and per column (across) of the tile; the access
 * is addressed relative to the tile's first element. */
void tn__product_steps(const tn__nest *n, int access, char down[24], char across[24]);
/* Prints the computation of the block's tile from its number. */
void tn__product_emit_place(tn__printer *p);
/* Prints the main loop, which brings the tile into shared memory or registers, and the loads of what tn__product_mark
 * has marked. */
void tn__product_emit_main_loop(tn__printer *p, const tn__product_spread *spread);

/* ---- kernel.c ---- */

/* A pass over elements keeps values between its loads and its stores; these print their declaration, their computation
 * for one element, and their stores. */
void tn__product_declare_kept(tn__printer *p, int level);
void tn__product_keep_values(tn__printer *p, int level);
void tn__product_store_kept(tn__printer *p, int level);
/* Prints the expressions that have the same value for all elements and are no loads. */
void tn__product_emit_constants(tn__printer *p);
/* For a back-to-back product: prints the loads of what the second nest needs besides the block's rows, before the first
 * product; and the call of the second nest, once the rows are in memory. */
void tn__product_prepare_next(tn__printer *p);
void tn__product_emit_next(tn__printer *p);

/* ---- kernel_reduced.c ---- */

/* Prints the code after the main loop of a product whose rows (or columns) are reduced. */
void tn__product_emit_rows(tn__printer *p);
void tn__product_emit_columns(tn__printer *p);

#endif
