/* SPDX-License-Identifier: MIT */
/*
 * Plain C functions of numbers as functions of arrays, with broadcasting, reduce, accumulate and outer, as NumPy's
 * ufuncs and Numba's vectorize have them.
 *
 *     TN_UFUNC(float, relative, (float a, float b), { return (a - b) / b; })
 *
 *     tn_kernel *f = tn_vectorize(relative);
 *     tn_array *y = tn_call(f, TN_ARGS(x, 2.0f));
 *
 * TN_UFUNC defines the function, so that the program can call it, and keeps its text, which is compiled into kernels:
 * it is inlined, fused, and runs on GPUs. A function without its text is called through its address, on the CPU only
 * and from several threads at once.
 */
#ifndef TANSO_VECTORIZE_H
#define TANSO_VECTORIZE_H

#include <tanso/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any function of numbers, cast to this type. */
typedef void (*tn_scalar_function)(void);

typedef struct tn_vectorize_opts {
    const char *_;
    const char *preamble; /* functions that this one calls: as in tn_kernel_opts */
    const char *identity; /* "0": what changes nothing in a reduction. With it, and a text, tn_ufunc_reduce is a
                             recorded reduction in tn_sum's order; without, a left fold computed at once */
    const char *gradient; /* as in tn_kernel_opts; the output is called `result` */
    tn_gradient_function backward;
    void *user;
} tn_vectorize_opts;

/* A kernel for tn_call from a definition, "float f(float a, float b) { return a + b; }", or, with only a declaration,
 * "float f(float, float)" (names may be left out), from the function itself. Types are C's numbers: bool, float,
 * double, and integers by any of their usual names; arguments become them if they are of the same kind. The text sees
 * what kernels' texts see (tanso/kernel.h). `function` may be NULL where there is a body. */
TN_API tn_kernel *tn_vectorize_with(tn_scalar_function function, const char *text, const tn_vectorize_opts *opts);

typedef struct tn_ufunc_reduce_opts {
    const char *_;
    int axis;      /* default: the first */
    bool keepdims; /* reduce: keep the axis with extent 1 */
    tn_array *out; /* written: keeps shape and dtype, and is returned */
} tn_ufunc_reduce_opts;

/* For functions of two arguments whose result has their type. f(...f(f(x[0], x[1]), x[2])...) along an axis; an extent
 * of 0 gives the identity, or an error where there is none. */
TN_API tn_array *tn_ufunc_reduce_with(const tn_kernel *f, const tn_array *x, const tn_ufunc_reduce_opts *opts);
/* All intermediate results of that, in x's shape; computed at once, one row after another on the CPU, a thread a row on
 * a GPU. */
TN_API tn_array *tn_ufunc_accumulate_with(const tn_kernel *f, const tn_array *x, const tn_ufunc_reduce_opts *opts);
/* f of every pair: a result of shape a.shape + b.shape. */
TN_API tn_array *tn_ufunc_outer(const tn_kernel *f, const tn_array *a, const tn_array *b);

/* TN_UFUNC(type, name, (parameters), { body }) at file scope; then tn_vectorize(name). */
#define TN_UFUNC(type, name, parameters, ...) \
    static type name parameters __VA_ARGS__ \
    static const char tn__text_of_##name[] = #type " " #name #parameters "\n" #__VA_ARGS__;

#ifndef TN_NO_MACROS
#define tn_ufunc_outer(f, a, b) TN_AT(tn_ufunc_outer)(f, a, b)
#define tn_vectorize(...) TN__VECTORIZE(__VA_ARGS__, )
#define TN__VECTORIZE(name, ...) \
    TN_AT(tn_vectorize_with)(TN__SCALAR_FUNCTION(name), tn__text_of_##name, TN_OPTS(tn_vectorize_opts, __VA_ARGS__))
#ifdef __cplusplus
#define TN__SCALAR_FUNCTION(name) reinterpret_cast<tn_scalar_function>(name)
#else
#define TN__SCALAR_FUNCTION(name) ((tn_scalar_function)name)
#endif
#define tn_ufunc_reduce(...) TN__CALL_VV(tn_ufunc_reduce_with, tn_ufunc_reduce_opts, __VA_ARGS__, )
#define tn_ufunc_accumulate(...) TN__CALL_VV(tn_ufunc_accumulate_with, tn_ufunc_reduce_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
