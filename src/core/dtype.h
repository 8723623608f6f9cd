/* SPDX-License-Identifier: MIT */
/* The table of dtypes, and scalars of any dtype in eight bytes. */
#ifndef TN_CORE_DTYPE_H
#define TN_CORE_DTYPE_H

#include <tanso/base.h>
#include "core/plugin.h"

typedef enum tn__dtype_class { TN__CLASS_BOOL, TN__CLASS_SIGNED, TN__CLASS_UNSIGNED, TN__CLASS_FLOAT,
                               TN__CLASS_COMPLEX } tn__dtype_class;

typedef struct tn__dtype_info {
    const char *name;    /* NumPy's name */
    const char *suffix;  /* of scalar functions: "f32" */
    const char *ctype;   /* in kernels, as stored: "tn_f32" */
    unsigned char size;
    unsigned char class; /* tn__dtype_class */
    unsigned char compute; /* the dtype arithmetic happens in: float32 for float16 and bfloat16, else itself */
    unsigned char component; /* of complex dtypes, the dtype of their parts, else itself */
} tn__dtype_info;
TN__PLUGIN_BEGIN
extern const tn__dtype_info tn__dtypes[TN_DTYPE_COUNT];
TN__PLUGIN_END

/* Floats and complex numbers: what has gradients, and what NumPy calls inexact. */
static inline bool tn__dtype_inexact(tn_dtype d) { return tn__dtypes[d].class >= TN__CLASS_FLOAT; }
/* The complex dtype whose parts hold a float dtype's values; of a complex dtype itself. */
static inline tn_dtype tn__dtype_to_complex(tn_dtype d)
{
    return d == TN_FLOAT64 || d == TN_COMPLEX128 ? TN_COMPLEX128 : TN_COMPLEX64;
}
/* The dtype of twice the precision that float32 and complex64 have; of others itself. */
static inline tn_dtype tn__dtype_wide(tn_dtype d)
{
    return d == TN_FLOAT32 ? TN_FLOAT64 : d == TN_COMPLEX64 ? TN_COMPLEX128 : d;
}
static inline bool tn__dtype_valid(tn_dtype d) { return d > TN_DTYPE_DEFAULT && d < TN_DTYPE_COUNT; }
/* The dtype that NumPy's float functions give for x: int8 -> float16, int16 -> float32, wider -> float64; complex
 * stays. */
tn_dtype tn__dtype_to_float(tn_dtype dtype);
/* NEP 50: the dtype of an operation between an array dtype and a weak scalar of a class. */
tn_dtype tn__dtype_with_weak(tn_dtype dtype, tn__dtype_class weak);

/* One element of any dtype, stored in its low bytes as in an array; of a complex dtype a real number, as its part is
 * stored: constants have no imaginary part. */
typedef union tn__scalar {
    uint64_t bits;
    int64_t i;
    double f64;
    float f32;
    unsigned char bytes[8];
} tn__scalar;
TN__PLUGIN_BEGIN
/* Conversions with the semantics of tn_cast. */
tn__scalar tn__scalar_from_double(double value, tn_dtype dtype);
tn__scalar tn__scalar_from_int(int64_t value, tn_dtype dtype);
double tn__scalar_to_double(tn__scalar scalar, tn_dtype dtype);
int64_t tn__scalar_to_int(tn__scalar scalar, tn_dtype dtype);
TN__PLUGIN_END

#endif
