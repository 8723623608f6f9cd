/* SPDX-License-Identifier: MIT */
/* Every operation of ops.def as functions over strips of elements, for each dtype computed in; and all the casts. */
#ifndef TN_BACKENDS_CPU_FUNCTIONS_FUNCTIONS_H
#define TN_BACKENDS_CPU_FUNCTIONS_FUNCTIONS_H

#include <tanso/base.h>

/* Placed before a loop: no iteration reads what an earlier one has written. (Clang tests that at run time.) */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* p: the output, then the inputs; s: their steps in bytes. */
typedef void (*tn__cpu_map)(char *const *p, const int64_t *s, int64_t n);

typedef struct tn__cpu_reduce {
    void (*fill)(void *to, int64_t n);                   /* fills n elements with the identity */
    void (*each)(void *to, const void *from, int64_t n); /* to[i] = to[i] o from[i] */
    void (*lanes)(void *to, const void *from, int64_t n); /* to[i mod L] = to[i mod L] o from[i], in turn */
    void (*halve)(void *to);                             /* combines the lanes by halves, into lane 0 */
    /* Positions: updates *best and *position with the elements that are first, first + 1, ... of their reduction. */
    void (*scan)(void *best, int64_t *position, const void *from, int64_t first, int64_t n);
} tn__cpu_reduce;

/* Values number first, first + 1, ... */
typedef void (*tn__cpu_generate)(void *to, int64_t first, int64_t n, unsigned long long k, unsigned long long o);

typedef struct tn__cpu_functions {
    const tn__cpu_map *map;           /* indexed by operation; NULL: there is none */
    const tn__cpu_reduce *reduce;
    const tn__cpu_generate *generate;
} tn__cpu_functions;

/* The functions of a compute dtype; NULL for dtypes that are only stored. */
const tn__cpu_functions *tn__cpu_functions_of(tn_dtype dtype);

/* Converts n elements from one dtype to another; strides in bytes. */
typedef void (*tn__cpu_cast)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);
tn__cpu_cast tn__cpu_cast_of(tn_dtype to, tn_dtype from);

#endif
