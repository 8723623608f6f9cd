/* SPDX-License-Identifier: MIT */
/*
 * Evaluation: computing recorded arrays, reading them on the host, printing them, and seeing what a plan does.
 *
 * An array's value is computed when it is read, by tn_eval, at the end of an optimizer's step, or when a recording
 * grows past a fixed depth. One evaluation compiles everything it needs into one plan; plans are cached by the shape
 * of the graph, so a loop compiles in its first rounds and then only looks its plan up.
 *
 * Arrays that tn_assign, tn_add_assign and their kin, or `out`, wrote into are what a loop carries from round to round:
 * those of the device that are pending are computed along with whatever is read, and where such a recording grows deep.
 *
 * On a GPU evaluation only starts the work and returns; reading waits for it. What fails there, an index out of range,
 * is told of by the first call after it that evaluates, reads or synchronizes (tn_synchronize). Arrays that the failed
 * evaluation, or one started after it, would have computed give the error whenever they are used; what was to be
 * overwritten in place, such as parameters, is as the failed evaluation found it.
 */
#ifndef TANSO_ENGINE_H
#define TANSO_ENGINE_H

#include <stdio.h>
#include <tanso/base.h>
#include <tanso/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Computes x. TN_OK at once when it has a value already. */
TN_API tn_status tn_eval(const tn_array *x) TN_MUST_CHECK;
/* Computes several arrays together: those of one device in one plan, where they need no other device's values. */
TN_API tn_status tn_eval_all(int count, const tn_array *const *arrays) TN_MUST_CHECK;

/* The value of a one-element array, computed and converted as tn_cast does; NaN / 0 with a latched error for any
 * other array, or when computing fails. */
TN_API double tn_item(const tn_array *x);
TN_API int64_t tn_item_int(const tn_array *x);
/* Copies x in C order to `destination`, which holds `bytes` >= size * itemsize. */
TN_API tn_status tn_to_host(const tn_array *x, void *destination, size_t bytes) TN_MUST_CHECK;
/* The elements of an array in host memory, computed, C order; valid until x is freed or assigned to, and not to be
 * written. NULL with a latched error; an array whose device's memory the host can't read is TN_ERR_DEVICE: use
 * tn_to_host. */
TN_API const void *tn_data(const tn_array *x);

/* NumPy's str() and repr() of the array, as a string the caller frees with tn_string_free; "<error: ...>" with a
 * latched error for an array that is one or can't be computed; NULL without memory. */
TN_API char *tn_string(const tn_array *x);
TN_API char *tn_repr(const tn_array *x);
TN_API void tn_string_free(char *string);
/* Prints str(x) and a newline to stdout / to `stream`; of what cannot be computed, its error, which is latched, too. */
TN_API void tn_print(const tn_array *x);
TN_API void tn_fprint(FILE *stream, const tn_array *x);

/* What evaluating x now would do: its kernels with what each reads and writes, library calls, bytes, operations, and
 * memory; as a string the caller frees with tn_string_free; NULL with a latched error. Evaluates nothing. */
TN_API char *tn_plan_describe(const tn_array *x);

/* Counters of all threads since the process began. */
typedef struct tn_engine_counters {
    uint64_t evaluations;  /* plans run */
    uint64_t plan_hits;    /* found in the plan cache */
    uint64_t plan_misses;  /* compiled */
    uint64_t compilations; /* kernels that went to the compiler */
    uint64_t kernel_hits;  /* kernels found loaded already or in the cache on disk */
    uint64_t kernels;      /* kernels and library calls run */
} tn_engine_counters;
TN_API tn_engine_counters tn_engine_stats(void);

/* Switches of the whole process, for measurements and tests; all on by default (compile: "auto"). Changing one drops
 * cached plans. A mode that is none latches TN_ERR_VALUE and changes nothing. */
typedef enum tn_compile_mode {
    TN_COMPILE_AUTO = 0, /* small evaluations by the reference evaluator until they recur as in a loop, then compiled */
    TN_COMPILE_ALWAYS,
    TN_COMPILE_NEVER /* the reference evaluator runs everything */
} tn_compile_mode;
TN_API void tn_set_compile(tn_compile_mode mode);
TN_API void tn_set_fusion(bool on);
TN_API void tn_set_memory_planning(bool on);

/* How GPUs multiply float32 matrices, in the whole process; TN_MATMUL_FLOAT32 unless set. Setting another one drops
 * cached plans. The CPU always multiplies in float32, whatever is set, and so, with TN_MATMUL_TF32, do a GPU's kernels
 * for small products, which gain nothing; other dtypes are not concerned (products of float16 and bfloat16 add in
 * float32). A precision that is none latches TN_ERR_VALUE and changes nothing. */
TN_API void tn_set_matmul_precision(tn_matmul_precision precision);
TN_API tn_matmul_precision tn_get_matmul_precision(void);

#ifndef TN_NO_MACROS
#define tn_set_compile(...) TN_HERE(tn_set_compile(__VA_ARGS__))
#define tn_set_matmul_precision(...) TN_HERE(tn_set_matmul_precision(__VA_ARGS__))
#define tn_eval_all(...) TN_HERE(tn_eval_all(__VA_ARGS__))
#define tn_string(...) TN_HERE(tn_string(__VA_ARGS__))
#define tn_repr(...) TN_HERE(tn_repr(__VA_ARGS__))
#define tn_print(...) TN_HERE(tn_print(__VA_ARGS__))
#define tn_fprint(...) TN_HERE(tn_fprint(__VA_ARGS__))
#define tn_plan_describe(...) TN_HERE(tn_plan_describe(__VA_ARGS__))
#define tn_eval(...) TN_HERE(tn_eval(__VA_ARGS__))
#define tn_item(x) TN_AT(tn_item)(x)
#define tn_item_int(x) TN_AT(tn_item_int)(x)
#define tn_to_host(...) TN_HERE(tn_to_host(__VA_ARGS__))
#define tn_data(x) TN_AT(tn_data)(x)
#endif

#ifdef __cplusplus
}
#endif
#endif
