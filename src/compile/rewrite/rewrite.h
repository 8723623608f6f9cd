/* SPDX-License-Identifier: MIT */
/* Passes from a graph to a graph. */
#ifndef TN_COMPILE_REWRITE_REWRITE_H
#define TN_COMPILE_REWRITE_REWRITE_H

#include "compile/ir/graph.h"
#include "compile/ir/target.h"
#include "device/program.h"

/* Convolutions that the device's library computes become values of their data and weights, instead of products of
 * windows. */
void tn__keep_convolutions(tn__graph *graph, const tn__device *device, int precision);

/* On devices whose products are kernels of their own, those of large matrices and vectors become sums of elementwise
 * products, and large ones with k = 1 elementwise products. False without memory. */
bool tn__sum_vector_products(tn__graph *graph, const tn__device *device);

/* Are there convolutions that are to get arrays with their channels last? Uses are counted. */
bool tn__any_channels_last(const tn__graph *graph);
/* Convolutions that are to get arrays with their channels last, and what follows them. False without memory; *changed:
 * whether there are any. */
bool tn__lay_channels_last(tn__graph *graph, bool *changed);

/* Rewrites in place: common subexpressions become one value, reshapes move toward leaves. `one_pass`: reductions may be
 * `about_mean`. False without memory. */
bool tn__rewrite(tn__graph *graph, bool one_pass);

/* Makes a SLICE of what was written into read from what was written, or from what that was written into, if its
 * elements are all from one of these. */
bool tn__look_through(const tn__graph *graph, tn__value *slice);

/* Sees to it that all indices which the recording gathers by are looked at, though not all of what is gathered is read,
 * and that what else may fail is computed, though nothing is read of it: by further results, which nobody asked for.
 * False without memory. */
bool tn__keep_looks(tn__graph *graph);
/* Of gathers from one element, of which only the look at the indices is of use, those become that element whose indices
 * another one looks at. Uses are counted, before and after. False without memory. */
bool tn__drop_second_looks(tn__graph *graph);

/* What is kept for products and windows, has `least` elements or more, and is little work on one array that is there
 * anyway, is computed again by those who need it much later. False without memory. */
bool tn__make_again(tn__graph *graph, int64_t least);

/* Operands of a library's batches of products that lie at no equal distances are copied, where that saves calls. False
 * without memory. */
bool tn__pack_batches(tn__graph *graph, const tn__device *device, const tn__target_policy *policy, int precision);

#endif
