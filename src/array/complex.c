/* SPDX-License-Identifier: MIT */
/* Complex numbers made of parts, their parts, and products of complex matrices by products of real ones. */
#include <tanso/complex.h>

#include "array/build_parts.h"
#include "tn_op_functions.h"

tn__node *tn__complex(tn__node *re, tn__node *im)
{
    TN__PASS_ERROR(re);
    TN__PASS_ERROR(im);
    bool weak;
    tn_dtype dtype = tn__common_dtype(2, (tn__node *[]){re, im}, &weak);
    if (tn_dtype_is_complex(dtype))
        TN__REFUSE(TN_ERR_DTYPE, "complex", "parts are real numbers, got %s", tn_dtype_name(dtype));
    if (!tn__dtype_inexact(dtype))
        dtype = weak ? TN_FLOAT32 : TN_FLOAT64;
    dtype = tn__dtype_to_complex(dtype);
    tn__node *result = tn__binary(TN__OP_PACK, tn__cast(re, dtype), tn__cast(im, dtype));
    TN__PASS_ERROR(result);
    return result;
}

tn__node *tn__real(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn_dtype_is_complex((tn_dtype)a->dtype) ? tn__cast(a, (tn_dtype)tn__dtypes[a->dtype].component) : a;
}

tn__node *tn__imaginary(tn__node *a)
{
    TN__PASS_ERROR(a);
    if (!tn_dtype_is_complex((tn_dtype)a->dtype))
        return tn__const(0, (tn_dtype)a->dtype, a->shape, a->device);
    return tn__unary(TN__OP_IMAGINARY, a);
}

tn__node *tn__conjugate(tn__node *a)
{
    TN__PASS_ERROR(a);
    return tn_dtype_is_complex((tn_dtype)a->dtype) ? tn__unary(TN__OP_CONJUGATE, a) : a;
}

tn__node *tn__complex_matmul(tn__node *a, tn__node *b)
{
    bool first = tn_dtype_is_complex((tn_dtype)a->dtype), second = tn_dtype_is_complex((tn_dtype)b->dtype);
    tn__node *ar = tn__real(a), *br = tn__real(b), *ai = first ? tn__imaginary(a) : NULL,
             *bi = second ? tn__imaginary(b) : NULL;
    tn__node *re = tn__matmul_node(ar, br), *im = NULL;
    if (first && second)
        re = tn__binary(TN__OP_SUBTRACT, re, tn__matmul_node(ai, bi));
    if (second)
        im = tn__matmul_node(ar, bi);
    if (first)
        im = im ? tn__binary(TN__OP_ADD, im, tn__matmul_node(ai, br)) : tn__matmul_node(ai, br);
    return tn__complex(re, im);
}

/* ---- the public calls ---- */

tn_array *tn_complex(const tn_array *re, const tn_array *im)
{
    TN__RETURN(tn__complex(tn__node_of(re, "complex"), tn__node_of(im, "complex")));
}

tn_array *tn_real(const tn_array *x)
{
    TN__RETURN(tn__real(tn__strong(tn__node_of(x, "real"))));
}

tn_array *tn_imag(const tn_array *x)
{
    TN__RETURN(tn__imaginary(tn__strong(tn__node_of(x, "imag"))));
}

static tn__node *angle(tn__node *a)
{
    TN__PASS_ERROR(a);
    a = a->dtype == TN_BOOL ? tn__cast(a, TN_INT64) : a; /* NumPy's imaginary part of a bool is an integer */
    return tn__binary(TN__OP_ARCTAN2, tn__imaginary(a), tn__real(a));
}

tn_array *tn_angle(const tn_array *x)
{
    TN__RETURN(angle(tn__strong(tn__node_of(x, "angle"))));
}

/* A constant has no imaginary part, so that this is an expression of two; it promotes weakly all the same. */
static tn__node *weak_complex(double re, double im)
{
    tn__device *device = tn__device_current();
    if (!device)
        return tn__failed();
    const tn__shape *scalar = tn__shape_scalar();
    tn__node *node = tn__complex(tn__const(re, TN_FLOAT64, scalar, device), tn__const(im, TN_FLOAT64, scalar, device));
    if (!tn__node_is_error(node))
        node->flags |= TN__NODE_WEAK;
    return node;
}

tn_array *tn_weak_complex_parts(double re, double im)
{
    TN__RETURN(weak_complex(re, im));
}

tn_array *tn_from_complex_parts(const double *parts, int64_t count)
{
    return tn_from_host_with(parts, (tn_shape){.ndim = 1, .dim = {count}}, TN_COMPLEX128, NULL);
}
