/* SPDX-License-Identifier: MIT */
/* Functions composed of public ones: their temporaries live in a scope of the call's own, and die with it. */
#ifndef TN_NUMPY_COMPOSE_H
#define TN_NUMPY_COMPOSE_H

#include <tanso/complex.h>
#include <tanso/engine.h>
#include <tanso/index.h>
#include <tanso/manipulate.h>
#include <tanso/product.h>
#include <tanso/sort.h>
#include <tanso/statistics.h>
#include <tanso/ufunc.h>

#include "array/node.h"

/* A public function's body: `result`, an expression over public functions, handed to the caller's scope. */
#define TN__COMPOSE(result) \
    do { \
        tn_scope_push(); \
        return tn__composed(result); \
    } while (0)
/* Ends the scope; its argument survives in the one around. */
tn_array *tn__composed(tn_array *result);
/* The same for several results. */
tn_status tn__composed_all(int count, tn_array **results);

/* What a call returns: the result, written into `out` unless that is NULL. */
tn_array *tn__into(tn_array *out, tn_array *result);

/* Operands cast to opts->dtype (NULL, 0: as they are), if opts->casting allows it; an error, or NULL. */
tn_array *tn__operands_as(const char *operation, int count, tn_array **operands, const tn_out_opts *opts);
/* tn__into(opts->out), if opts->casting allows the result there. */
tn_array *tn__given_out(const char *operation, tn_array *result, const tn_out_opts *opts);

/* Options that name no dtype or no casting rule, as an error array; NULL if they are right. */
tn_array *tn__wrong_options(const char *operation, tn_dtype dtype, const char *casting);
/* A failed check, as an error array: tn__refused(TN_ERR_SHAPE, "roll", "expected ..., got ..."). */
tn_array *tn__refused(tn_status code, const char *operation, const char *format, ...) TN_PRINTF(3, 4);
/* Another handle to x's value. */
tn_array *tn__again(const tn_array *x);
/* What a call of x returns that has failed: x if that is an error, else the latched failure. */
tn_array *tn__failure(const tn_array *x);
/* A weak scalar as an ordinary array, anything else as it is. */
tn_array *tn__array_of(const tn_array *x);
/* Is it a C number given as an operand? */
bool tn__is_weak(const tn_array *x);
/* What is written among x's elements: a C number in x's dtype, or an error if that does not hold it; anything else as
 * it is. */
const tn_array *tn__number_as(const tn_array *x, const tn_array *values);
/* The axis, counted from the start; -1 and a latched failure if the array has no such axis. */
int tn__axis_of(const char *operation, const tn_array *x, int axis);
/* x with its axes in the order of a permutation, written as a list. */
tn_axes tn__axes_of(int count, const int *axis);
/* x with axes of extent 1 in front until there are ndim. */
tn_array *tn__at_least(const tn_array *x, int ndim);
tn_shape tn__vector(int64_t n);
/* x cut along an axis, from `start` for `count` elements. */
tn_array *tn__cut(const tn_array *x, int axis, int64_t start, int64_t count);
/* Host integers as an array on x's device. */
tn_array *tn__positions_like(const tn_array *x, const int64_t *values, int64_t count);
/* Integers (or bools) as int64 positions; of uint64 what is larger than int64 is its largest, and not negative. */
tn_array *tn__as_positions(const tn_array *x);
/* 0, 1, ... of count elements, int64, on x's device. */
tn_array *tn__count_up(const tn_array *x, int64_t count);
/* Points x at a new value, and frees its handle. Indices that the value depends on are looked at before, on every
 * device: one out of range leaves x as it is. */
tn_status tn__replace(tn_array *x, tn_array *value);
/* x in the float dtype that elementwise functions give for it. */
tn_array *tn__as_float(const tn_array *x);
/* The elements as integers in host memory, freed with tn__free; NULL and a latched failure if x holds no integers. */
int64_t *tn__integers_of(const char *operation, const tn_array *x);

#endif
