/* SPDX-License-Identifier: MIT */
/* What the files that choose a nest's form share (form.c, reduced.c). */
#ifndef TN_COMPILE_EMIT_GPU_CHOOSE_H
#define TN_COMPILE_EMIT_GPU_CHOOSE_H

#include "compile/emit/gpu/form.h"

static inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t power_of_two(int64_t least)
{
    int64_t n = 1;
    while (n < least)
        n *= 2;
    return n;
}

static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* Does an access count when a form is chosen? Those of elements do; a product's factors, raw arguments and partial
 * results do not. */
static inline bool counts(const tn__access *a)
{
    return (a->kind == TN__ACCESS_LOAD && !a->raw && !a->factor) || (a->kind == TN__ACCESS_STORE && a->value >= 0);
}

/* Bytes that are loaded for a vector, where an element counts as `least` if it is less: 4 where it takes a register.
 * What other vectors load as well comes from caches and does not count. */
int64_t tn__gpu_loaded_bytes(const tn__nest *nest, int loop, int width, size_t least);

/* The form of a whole reduction, in *f; what of it changes for the partial, and for the final pass of a split one. */
void tn__gpu_form_reduction(const tn__capabilities *chip, const tn__nest *nest, tn__gpu_form *f);
void tn__gpu_form_partial(const tn__nest *nest, tn__gpu_form *f);
void tn__gpu_form_combination(const tn__capabilities *chip, const tn__nest *nest, tn__gpu_form *f);

#endif
