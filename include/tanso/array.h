/* SPDX-License-Identifier: MIT */
/*
 * Arrays: creation, elementwise functions, views, reductions, products, indexing, with NumPy's names and semantics.
 *
 * Every function here only records: it checks shapes, dtypes and devices, and returns a new array owned by the
 * innermost scope. Values are computed when they are read (tanso/engine.h). None returns NULL; a failed check gives
 * an error array. Operands broadcast and promote as in NumPy (NEP 50): a C number given for an operand is a weak
 * scalar, which takes the other operand's dtype when their kinds agree, so 2.0 never turns float32 into float64.
 */
#ifndef TANSO_ARRAY_H
#define TANSO_ARRAY_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what an array is ---- */

/* An error array reports shape (), dtype TN_DTYPE_DEFAULT and the zero device. */
TN_API tn_shape tn_shape_of(const tn_array *x);
TN_API tn_dtype tn_dtype_of(const tn_array *x);
TN_API int tn_ndim(const tn_array *x);
/* Number of elements. */
TN_API int64_t tn_size(const tn_array *x);
/* Extent of an axis (negative: from the end); -1 and a latched TN_ERR_INDEX if there is no such axis. */
TN_API int64_t tn_dim(const tn_array *x, int axis);
/* Bytes between neighbours along each axis, as NumPy's strides; evaluates nothing: for an array still to be
 * computed these are the strides it will have (C order). */
TN_API void tn_strides_of(const tn_array *x, int64_t strides[TN_MAX_NDIM]);
/* True if x is an error array; its own code and message (not the thread's latched one), TN_OK and "" for any other.
 * The message is valid while x is. */
TN_API bool tn_is_error(const tn_array *x);
TN_API const char *tn_message_of(const tn_array *x);
TN_API tn_status tn_status_of(const tn_array *x);

/* ---- scalars as operands ---- */

/* 0-d arrays that promote weakly; made on the other operand's device when combined. A whole number that does not fit
 * the other operand's integer dtype is TN_ERR_VALUE, but in comparisons. */
TN_API tn_array *tn_weak_int(long long value);
TN_API tn_array *tn_weak_uint(unsigned long long value);
TN_API tn_array *tn_weak_float(double value);
TN_API tn_array *tn_weak_bool(bool value);

#ifdef __cplusplus
}
inline const tn_array *TN_ARG(const tn_array *x) { return x; }
inline const tn_array *TN_ARG(double x) { return tn_weak_float(x); }
inline const tn_array *TN_ARG(long double x) { return tn_weak_float(static_cast<double>(x)); }
inline const tn_array *TN_ARG(float x) { return tn_weak_float(x); }
inline const tn_array *TN_ARG(int x) { return tn_weak_int(x); }
inline const tn_array *TN_ARG(long x) { return tn_weak_int(x); }
inline const tn_array *TN_ARG(long long x) { return tn_weak_int(x); }
inline const tn_array *TN_ARG(unsigned x) { return tn_weak_int(x); }
inline const tn_array *TN_ARG(unsigned long x) { return tn_weak_uint(x); }
inline const tn_array *TN_ARG(unsigned long long x) { return tn_weak_uint(x); }
inline const tn_array *TN_ARG(bool x) { return tn_weak_bool(x); }
extern "C" {
#else
static inline const tn_array *tn__same(const tn_array *x) { return x; }
/* An operand: an array, or a C number of any arithmetic type. (NULL is an array that is missing, not 0.) */
#define TN_ARG(x) \
    _Generic((x), tn_array *: tn__same, const tn_array *: tn__same, void *: tn__same, bool: tn_weak_bool, \
             float: tn_weak_float, double: tn_weak_float, long double: tn_weak_float, unsigned long: tn_weak_uint, \
             unsigned long long: tn_weak_uint, default: tn_weak_int)(x)
#endif

/* ---- creation ---- */

typedef struct tn_create_opts {
    const char *_;
    tn_dtype dtype;   /* default: see each function */
    tn_device device; /* default: the thread's current device */
} tn_create_opts;

/* All zeros, all ones, all `value` (a long double, as that holds all integers of 64 bits); dtype float32 by default. */
TN_API tn_array *tn_zeros_with(tn_shape shape, const tn_create_opts *opts);
TN_API tn_array *tn_ones_with(tn_shape shape, const tn_create_opts *opts);
TN_API tn_array *tn_full_with(tn_shape shape, long double value, const tn_create_opts *opts);
/* start, start + step, ... below stop (NumPy's arange; count = ceil((stop - start) / step), but the start alone of a
 * step so long that this is 0). Default dtype: int64 when all three are whole numbers, else float32. A step of 0 is
 * TN_ERR_VALUE. */
TN_API tn_array *tn_arange_with(double start, double stop, double step, const tn_create_opts *opts);
/* `count` numbers from start to stop, both included; float32 by default. */
TN_API tn_array *tn_linspace_with(double start, double stop, int64_t count, const tn_create_opts *opts);
/* Ones on the main diagonal of an n x m matrix (m < 0: m = n); float32 by default. */
TN_API tn_array *tn_eye_with(int64_t n, int64_t m, const tn_create_opts *opts);
/* A 0-d array of the value; float32 by default. Unlike a weak scalar it promotes like any array. */
TN_API tn_array *tn_scalar_with(long double value, const tn_create_opts *opts);
/* A copy of host memory: shape's product of elements of `dtype` (not a default) in C order at `data`, which may be
 * freed afterwards. opts: the device; its dtype is not read. A compound literal needs parentheses around it, since a
 * macro stands before the function: tn_from_host(((float[]){1, 2}), TN_SHAPE(2), TN_FLOAT32). */
TN_API tn_array *tn_from_host_with(const void *data, tn_shape shape, tn_dtype dtype, const tn_create_opts *opts);
/* A copy of `count` floats / doubles / 64-bit integers as a vector of float32 / float64 / int64. */
TN_API tn_array *tn_from_floats(const float *data, int64_t count);
TN_API tn_array *tn_from_doubles(const double *data, int64_t count);
TN_API tn_array *tn_from_int64s(const int64_t *data, int64_t count);
/* Zeros or ones with x's shape, dtype and device. */
TN_API tn_array *tn_zeros_like(const tn_array *x);
TN_API tn_array *tn_ones_like(const tn_array *x);

/* ---- elementwise functions of one operand ---- */
/* Of x's shape. Integers and bool become floats where NumPy does so (int8 -> float16, int16 -> float32, else float64);
 * a dtype that a function does not take is TN_ERR_DTYPE. Angles are in radians. What is beyond a function's domain is
 * NaN or infinite, as IEEE has it, and no error; isnan to logical_not give bool. */

TN_API tn_array *tn_negative(const tn_array *x);
TN_API tn_array *tn_abs(const tn_array *x);
TN_API tn_array *tn_sign(const tn_array *x); /* -1, 0, 1; of complex numbers x / |x| */
TN_API tn_array *tn_square(const tn_array *x);
TN_API tn_array *tn_reciprocal(const tn_array *x);
TN_API tn_array *tn_exp(const tn_array *x);
TN_API tn_array *tn_exp2(const tn_array *x);
TN_API tn_array *tn_expm1(const tn_array *x); /* exp(x) - 1 */
TN_API tn_array *tn_log(const tn_array *x);
TN_API tn_array *tn_log2(const tn_array *x);
TN_API tn_array *tn_log10(const tn_array *x);
TN_API tn_array *tn_log1p(const tn_array *x); /* log(1 + x) */
TN_API tn_array *tn_sqrt(const tn_array *x);
TN_API tn_array *tn_rsqrt(const tn_array *x); /* 1 / sqrt(x) */
TN_API tn_array *tn_cbrt(const tn_array *x);
TN_API tn_array *tn_sin(const tn_array *x);
TN_API tn_array *tn_cos(const tn_array *x);
TN_API tn_array *tn_tan(const tn_array *x);
TN_API tn_array *tn_arcsin(const tn_array *x);
TN_API tn_array *tn_arccos(const tn_array *x);
TN_API tn_array *tn_arctan(const tn_array *x);
TN_API tn_array *tn_sinh(const tn_array *x);
TN_API tn_array *tn_cosh(const tn_array *x);
TN_API tn_array *tn_tanh(const tn_array *x);
TN_API tn_array *tn_arcsinh(const tn_array *x);
TN_API tn_array *tn_arccosh(const tn_array *x);
TN_API tn_array *tn_arctanh(const tn_array *x);
TN_API tn_array *tn_erf(const tn_array *x);
TN_API tn_array *tn_erfc(const tn_array *x); /* 1 - erf(x) */
TN_API tn_array *tn_sigmoid(const tn_array *x);  /* 1 / (1 + exp(-x)) */
TN_API tn_array *tn_softplus(const tn_array *x); /* log(1 + exp(x)) */
TN_API tn_array *tn_relu(const tn_array *x);     /* max(x, 0) */
TN_API tn_array *tn_gelu(const tn_array *x);     /* x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016) */
TN_API tn_array *tn_floor(const tn_array *x);
TN_API tn_array *tn_ceil(const tn_array *x);
TN_API tn_array *tn_trunc(const tn_array *x);
TN_API tn_array *tn_rint(const tn_array *x); /* to nearest, ties to even */
TN_API tn_array *tn_frexp_fraction(const tn_array *x); /* f of x = f 2^e with 1/2 <= |f| < 1 */
TN_API tn_array *tn_frexp_exponent(const tn_array *x); /* e of that, as a float */
TN_API tn_array *tn_isnan(const tn_array *x);
TN_API tn_array *tn_isinf(const tn_array *x);
TN_API tn_array *tn_isfinite(const tn_array *x);
TN_API tn_array *tn_signbit(const tn_array *x);
TN_API tn_array *tn_logical_not(const tn_array *x);
TN_API tn_array *tn_invert(const tn_array *x); /* bitwise not; logical for bool */

/* x as another dtype; integers wrap around; to bool, everything but 0 is true. Float to integer truncates toward zero;
 * what is beyond the range becomes what NumPy makes of it on x86-64, on every device: narrow integers (and uint32) are
 * the low bits of the integer of 32 (64) bits, and NaN and what is beyond that is the least of these (of uint64:
 * 2^63). */
TN_API tn_array *tn_cast(const tn_array *x, tn_dtype dtype);

/* ---- elementwise functions of two and three operands ---- */
/* Operands broadcast, and their dtypes promote as NumPy 2's do (NEP 50); shapes that do not fit are TN_ERR_SHAPE,
 * operands on different devices TN_ERR_DEVICE (but for constants: tn_ones, tn_full, tn_scalar and what is made of such
 * alone take no memory anywhere yet, and go where the others are). Comparisons and logic give bool. */

TN_API tn_array *tn_add(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_subtract(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_multiply(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_divide(const tn_array *a, const tn_array *b);       /* true division */
TN_API tn_array *tn_floor_divide(const tn_array *a, const tn_array *b); /* integers: by 0 gives 0, as the next two */
TN_API tn_array *tn_remainder(const tn_array *a, const tn_array *b);    /* sign of b */
TN_API tn_array *tn_fmod(const tn_array *a, const tn_array *b);         /* sign of a */
/* Integers to a negative integer power are TN_ERR_VALUE; integer exponents in an array are read for that. */
TN_API tn_array *tn_power(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_maximum(const tn_array *a, const tn_array *b); /* NaN wins */
TN_API tn_array *tn_minimum(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_fmax(const tn_array *a, const tn_array *b); /* NaN loses */
TN_API tn_array *tn_fmin(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_arctan2(const tn_array *a, const tn_array *b);    /* the angle of (b, a), in radians, -pi to pi */
TN_API tn_array *tn_hypot(const tn_array *a, const tn_array *b);      /* sqrt(a^2 + b^2), without overflow on the way */
TN_API tn_array *tn_copysign(const tn_array *a, const tn_array *b);   /* |a| with b's sign */
TN_API tn_array *tn_logaddexp(const tn_array *a, const tn_array *b);  /* log(exp(a) + exp(b)) */
TN_API tn_array *tn_logaddexp2(const tn_array *a, const tn_array *b); /* log2(2^a + 2^b) */
TN_API tn_array *tn_heaviside(const tn_array *a, const tn_array *b);  /* 0 where a < 0, 1 where a > 0, else b */
TN_API tn_array *tn_nextafter(const tn_array *a, const tn_array *b);  /* the neighbour of a toward b */
TN_API tn_array *tn_ldexp(const tn_array *a, const tn_array *b);      /* a 2^b for whole b */
TN_API tn_array *tn_gcd(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_lcm(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_equal(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_not_equal(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_less(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_less_equal(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_greater(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_greater_equal(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_logical_and(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_logical_or(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_logical_xor(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_bitwise_and(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_bitwise_or(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_bitwise_xor(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_left_shift(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_right_shift(const tn_array *a, const tn_array *b);
/* condition ? a : b, elementwise; condition is cast to bool, a and b promote. All three broadcast. */
TN_API tn_array *tn_where(const tn_array *condition, const tn_array *a, const tn_array *b);
/* min(max(x, low), high); NaN stays. */
TN_API tn_array *tn_clip(const tn_array *x, const tn_array *low, const tn_array *high);

/* Points the handle x at the value x + y (x - y, x * y, x / y), cast to x's dtype; x's shape must not change. The old
 * value's memory is reused where nobody else holds it. Returns x's status. */
TN_API tn_status tn_add_assign(tn_array *x, const tn_array *y);
TN_API tn_status tn_subtract_assign(tn_array *x, const tn_array *y);
TN_API tn_status tn_multiply_assign(tn_array *x, const tn_array *y);
TN_API tn_status tn_divide_assign(tn_array *x, const tn_array *y);
/* Points the handle x at y's value, broadcast and cast to x's shape and dtype. As with those above, where failures are
 * known at once (not on a GPU) indices that the value depends on are looked at first: with one out of range,
 * TN_ERR_INDEX, x stays as it is. */
TN_API tn_status tn_assign(tn_array *x, const tn_array *y);

/* ---- views and shape ---- */

/* One extent may be -1: it is computed. */
TN_API tn_array *tn_reshape(const tn_array *x, tn_shape shape);
/* Axes permuted: result axis i is x's axis axes.axis[i]; an empty list reverses them. */
TN_API tn_array *tn_transpose(const tn_array *x, tn_axes axes);
TN_API tn_array *tn_swapaxes(const tn_array *x, int a, int b);
/* x repeated along new axes in front and those of extent 1. */
TN_API tn_array *tn_broadcast_to(const tn_array *x, tn_shape shape);
/* The reverse, and its gradient: sums over the axes along which `shape` would be repeated to give x's. */
TN_API tn_array *tn_sum_to(const tn_array *x, tn_shape shape);
/* A new axis of extent 1 at position `axis` of the result. */
TN_API tn_array *tn_expand_dims(const tn_array *x, int axis);
/* Drops axes of extent 1: those listed, or all when the list is empty. */
TN_API tn_array *tn_squeeze(const tn_array *x, tn_axes axes);
/* One axis, C order. */
TN_API tn_array *tn_flatten(const tn_array *x);

/* Absent start, stop or step in a slice. */
#define TN_NONE INT64_MIN
/* Python's slice start:stop:step; negative values count from the end. step 0 stands for 1. */
typedef struct tn_slice_range {
    int64_t start, stop, step;
} tn_slice_range;
/* x[r0, r1, ...]: one range an axis, from the first; axes without a range are whole. */
TN_API tn_array *tn_slice(const tn_array *x, int count, const tn_slice_range *ranges);
/* x[..., start:stop:step, ...] along one axis. */
TN_API tn_array *tn_slice_axis(const tn_array *x, int axis, int64_t start, int64_t stop, int64_t step);
/* x[i] : the i-th subarray of the first axis (negative i from the end). */
TN_API tn_array *tn_index(const tn_array *x, int64_t i);
/* A copy of x in which x[ranges] is `value` (broadcast, cast to x's dtype). */
TN_API tn_array *tn_slice_update(const tn_array *x, int count, const tn_slice_range *ranges, const tn_array *value);
/* The order of elements reversed along axes; an empty list: along all. */
TN_API tn_array *tn_flip(const tn_array *x, tn_axes axes);

/* Joins along an existing axis; stacks along a new one. count >= 1; shapes must agree but for the axis; dtypes
 * promote. */
TN_API tn_array *tn_concatenate(int count, const tn_array *const *arrays, int axis);
TN_API tn_array *tn_stack(int count, const tn_array *const *arrays, int axis);
typedef struct tn_out_opts tn_out_opts; /* below: out, dtype, casting */
TN_API tn_array *tn_concatenate_with(int count, const tn_array *const *arrays, int axis, const tn_out_opts *opts);
TN_API tn_array *tn_stack_with(int count, const tn_array *const *arrays, int axis, const tn_out_opts *opts);
/* Splits into `sections` parts along an axis into out[0 .. sections-1]; the extent must be a multiple. On an error
 * all of out are error arrays. */
TN_API tn_status tn_split(const tn_array *x, int sections, int axis, tn_array **out);

/* ---- reductions ---- */

typedef struct tn_reduce_opts {
    const char *_;
    tn_axes axis;   /* default: all axes */
    bool keepdims;  /* keep reduced axes with extent 1 */
    tn_dtype dtype; /* sum, prod, mean, var, std: dtype of the result; default as NumPy (bool and small ints sum as
                       int64); means and variances of an integer dtype are cut to it */
    double ddof;    /* var, std: divisor is count - ddof; NaN or infinity where that is not positive, as NumPy */
    tn_array *out;  /* receives the result, as tn_assign does; of its shape; floats are summed in its dtype if that is
                       wider */
    const tn_array *where;   /* bool (integers are refused), broadcasts to x: only elements where it is true count (max
                                and min need `initial`) */
    const tn_array *initial; /* sum, prod, max, min: one more operand of the reduction, tn_scalar(0) say (a bare 0 is
                                TN_ERR_VALUE, as of `where` and `mean`: to C it is a null pointer, no array) */
    const tn_array *mean;    /* var, std: the mean where it is known, of a shape that broadcasts to x's (keepdims); in
                                the variance's dtype, of complex elements complex */
} tn_reduce_opts;

/* Of integers and bool, means, variances and deviations are float64. Over nothing a sum is 0, a product 1, a mean NaN.
 * Variances are means of |x - mean|^2. The gradient of a deviation that is 0 is 0.
 *
 * A sum of n numbers differs from the exact one by at most k u times the sum of their absolute values. Numbers of
 * float32 and complex64 (u = 2^-24) are added up a few at a time, what these come to in float64: k is 20 + n 2^-29 on a
 * CPU and 300 + n 2^-29 on a GPU, but 16 + n / 8 there for up to 16384 numbers along axes that are not the last. Those
 * of float64 (u = 2^-53) are added up as they are, those of float16 and bfloat16 in float32, and rounded at the end: k
 * is 520 + n / 512 on a CPU, 40 + n / 8 on a GPU. Means are these sums, divided. Variances are about the mean as it is
 * rounded, which adds the square of its error, but of more than 2^20 numbers (16384 on a GPU) about the exact one.
 */
TN_API tn_array *tn_sum_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_prod_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_mean_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_var_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_std_with(const tn_array *x, const tn_reduce_opts *opts);
/* An empty extent is an error, as in NumPy; NaN wins. */
TN_API tn_array *tn_max_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_min_with(const tn_array *x, const tn_reduce_opts *opts);
/* Whether any element, whether every one is not 0; bool. Over nothing false, true. */
TN_API tn_array *tn_any_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_all_with(const tn_array *x, const tn_reduce_opts *opts);
/* int64 index of the first largest / smallest element (first NaN, if any) along one axis, or of the flat array; out:
 * bool or integers that int64 holds. */
TN_API tn_array *tn_argmax_with(const tn_array *x, const tn_reduce_opts *opts);
TN_API tn_array *tn_argmin_with(const tn_array *x, const tn_reduce_opts *opts);
/* log(sum(exp(x))), computed stably; of integers in floats, as tn_exp. */
TN_API tn_array *tn_logsumexp_with(const tn_array *x, const tn_reduce_opts *opts);

/*
 * Options of joins, choices and products, where NumPy has them. They come as a pointer, which TN_OPTS makes:
 * tn_concatenate_with(2, parts, 0, TN_OPTS(tn_out_opts, .out = y)). Functions of two arrays alone, tn_matmul, tn_dot,
 * tn_outer among them, get theirs by tn_binary(tn_matmul, a, b, .out = y) of ufunc.h.
 */
struct tn_out_opts {
    const char *_;
    tn_array *out;       /* receives the result, as tn_assign does: of the result's shape, and a dtype of its kind or a
                            higher one */
    tn_dtype dtype;      /* of the operands, and so of the result; default: theirs, promoted */
    const char *casting; /* by which rule operands may be cast to dtype, and the result to out's: "no", "equiv", "safe",
                            "same_kind" (default), "unsafe" */
};

/* exp(x) / sum(exp(x)) and its logarithm, computed stably, along one axis (negative: from the end); of integers in
 * floats, as tn_exp. */
TN_API tn_array *tn_softmax(const tn_array *x, int axis);
TN_API tn_array *tn_log_softmax(const tn_array *x, int axis);

/* ---- products and indexing ---- */

/* NumPy's matmul: 1-d operands are row/column vectors, leading axes broadcast. */
TN_API tn_array *tn_matmul(const tn_array *a, const tn_array *b);
/* The subarrays of `axis` at the integer `indices` (any shape): NumPy's take. A negative index counts from the end;
 * one out of range is an error (TN_ERR_INDEX), never wrapped, when the array or what depends on it is evaluated, though
 * of the array a window without the index is read, or nothing. */
TN_API tn_array *tn_take(const tn_array *x, const tn_array *indices, int axis);
/* x's elements at `indices` along `axis`; x and indices broadcast on the other axes. Range as tn_take. */
TN_API tn_array *tn_take_along_axis(const tn_array *x, const tn_array *indices, int axis);
/* A copy of x with values added at the indices along `axis` (values has the shape tn_take gives); indices that repeat
 * accumulate, in the order of the indices. Range as tn_take. */
TN_API tn_array *tn_scatter_add(const tn_array *x, const tn_array *indices, const tn_array *values, int axis);
/* float32 (or `dtype`) array of shape indices.shape + (count,), 1 where the last index equals the element: an index
 * out of range gives a row of zeros. */
TN_API tn_array *tn_one_hot(const tn_array *indices, int64_t count, tn_dtype dtype);

/* ---- the macros that remember the caller's place ---- */
#ifndef TN_NO_MACROS
#include <tanso/array_macros.h>
#endif

#ifdef __cplusplus
}
#endif
#endif
