/* SPDX-License-Identifier: MIT */
/*
 * Random arrays from a counter-based generator, Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random
 * Numbers: As Easy as 1, 2, 3", SC 2011). Each call takes the next stretch of its generator's sequence; the same
 * seed gives the same numbers on every device. Calls without a generator use the thread's own, seeded by tn_seed
 * (0 at the start).
 */
#ifndef TANSO_RANDOM_H
#define TANSO_RANDOM_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A generator's whole state: copy it to snapshot it. */
typedef struct tn_generator {
    uint64_t key;
    uint64_t counter;
} tn_generator;

/* Seeds the thread's generator. */
TN_API void tn_seed(uint64_t seed);
/* The thread's generator, for reading or restoring its state. Valid in this thread. */
TN_API tn_generator *tn_default_generator(void);

typedef struct tn_random_opts {
    char _; /* unused: lets the macros take no options */
    tn_dtype dtype;          /* default float32 (integers: int64) */
    tn_device device;        /* default: current */
    tn_generator *generator; /* default: the thread's; advanced by the call */
    double low, high;        /* uniform: [low, high), default [0, 1) */
    double loc, scale;       /* normal: mean loc and deviation scale, default 0 and 1 (scale 0 means 1) */
} tn_random_opts;

/* Uniform floats in [low, high); low must not be above high. */
TN_API tn_array *tn_random_uniform_with(tn_shape shape, const tn_random_opts *opts);
/* Normal floats by Box and Muller's transform. */
TN_API tn_array *tn_random_normal_with(tn_shape shape, const tn_random_opts *opts);
/* Integers in [low, high) of opts->dtype, which must hold them; an empty range is TN_ERR_VALUE. `low` and `high` here
 * are arguments, those of opts are not read. */
TN_API tn_array *tn_random_integers_with(int64_t low, int64_t high, tn_shape shape, const tn_random_opts *opts);
/* A random permutation of 0..n-1, int64, made on the host and moved to the device. */
TN_API tn_array *tn_random_permutation_with(int64_t n, const tn_random_opts *opts);
/* True with probability p, as bool (or opts->dtype, 0 and 1): the mask of a dropout. p outside [0, 1] is
 * TN_ERR_VALUE. */
TN_API tn_array *tn_random_bernoulli_with(double p, tn_shape shape, const tn_random_opts *opts);

#if !defined(__cplusplus) && !defined(TN_NO_MACROS)
#define tn_random_uniform(shape, ...) TN_AT(tn_random_uniform_with)(shape, TN_OPTS(tn_random_opts, __VA_ARGS__))
#define tn_random_normal(shape, ...) TN_AT(tn_random_normal_with)(shape, TN_OPTS(tn_random_opts, __VA_ARGS__))
#define tn_random_integers(low, high, shape, ...) \
    TN_AT(tn_random_integers_with)(low, high, shape, TN_OPTS(tn_random_opts, __VA_ARGS__))
#define tn_random_permutation(n, ...) TN_AT(tn_random_permutation_with)(n, TN_OPTS(tn_random_opts, __VA_ARGS__))
#define tn_random_bernoulli(p, shape, ...) \
    TN_AT(tn_random_bernoulli_with)(p, shape, TN_OPTS(tn_random_opts, __VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
