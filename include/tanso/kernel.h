/* SPDX-License-Identifier: MIT */
/*
 * Kernels of one's own, compiled for whatever device the arrays are on: by the system's C compiler for the CPU, by
 * NVRTC for a GPU; kept in the folder of compiled kernels, so that the next process finds them.
 *
 *     tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
 *     tn_array *z = tn_call(add, TN_ARGS(a, 2.0));
 *
 *     tn_kernel *norm = tn_reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm");
 *     tn_array *rows = tn_call(norm, TN_ARGS(a), .axis = TN_AXES(1));
 *
 * Elementwise kernels and reductions are operations like any other: they only record, and are fused with what is around
 * them. tn_launch runs a raw kernel at once.
 *
 * A kernel is known by its texts: it is made once, lives as long as the process, and is never freed; making an equal
 * one again gives the same. Constructors never return NULL: a kernel that could not be made (a parameter list that
 * can't be read) is an inert one, whose calls give its error. What only a compiler can find is reported when the kernel
 * is compiled, as TN_ERR_COMPILE with the compiler's words and the text's numbered lines. User texts can't be run by
 * the reference evaluator, so they need a compiler whatever tn_set_compile says.
 *
 * Texts are in the common part of C and CUDA C. Numbers are C's: 0.5 is a double, and makes float into double; write
 * (T)0.5. In them:
 *
 *     T, U, ...      a capital letter in a parameter list stands for a dtype: inputs with one letter promote to one
 *                    dtype, as NumPy's operands do, and the letter is that C type in the text. Other parameters name
 *                    their dtype: "float32 x, int64 k". float16 and bfloat16 are computed in float.
 *     raw T x        an argument that is not walked through: the text indexes it, x[j], 0 <= j < x_size (positions in
 *                    C order, not checked); x_ndim and x_shape[d] are its shape.
 *     i, size        the position in C order, and the number of positions; _ind[d] and _shape[d] the position and the
 *                    extent along axis d, _ndim the number of axes.
 *     exp(x), ...    abs, sqrt, cbrt, rsqrt, exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, asin, acos,
 *                    atan, sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, sigmoid, floor, ceil, trunc, rint, pow,
 *                    atan2, hypot, fmod, copysign, min, max, fmin, fmax, isnan, isinf, isfinite: for float and double,
 *                    the very functions that Tanso's own operations use (integers compute in double; abs, min and max
 *                    keep them).
 */
#ifndef TANSO_KERNEL_H
#define TANSO_KERNEL_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_kernel tn_kernel;

/* ---- arguments ---- */

/* An array, or a C number with its type. In tn_call a number promotes weakly, as operands do; tn_launch passes it as
 * the C type it has. */
typedef struct tn_arg {
    const tn_array *array; /* NULL: a number */
    tn_dtype dtype;        /* of the number */
    bool written;          /* tn_launch: the kernel writes into the array */
    union {
        double real;       /* floats */
        int64_t whole;     /* integers and bool */
    } number;
} tn_arg;

typedef struct tn_args {
    int count;
    const tn_arg *arg;
} tn_args;

/* TN_ARGS(x, 2.0, n): 1 to 16 arrays and numbers. TN_NO_ARGS: none. TN_WRITES(x), in the arguments of tn_launch: an
 * array that the kernel writes into. */
static inline tn_arg tn__arg_array(const tn_array *x)
{
    tn_arg arg = {x, TN_DTYPE_DEFAULT, false, {0}};
    return arg;
}
static inline tn_arg tn__arg_written(tn_array *x)
{
    tn_arg arg = {x, TN_DTYPE_DEFAULT, true, {0}};
    return arg;
}
static inline tn_arg tn__arg_same(tn_arg arg) { return arg; }
#define TN__ARG_REAL(name, type, dtype) \
    static inline tn_arg tn__arg_##name(type x) \
    { \
        tn_arg arg = {NULL, dtype, false, {0}}; \
        arg.number.real = TN__CAST(double, x); \
        return arg; \
    }
#define TN__ARG_WHOLE(name, type, dtype) \
    static inline tn_arg tn__arg_##name(type x) \
    { \
        tn_arg arg = {NULL, dtype, false, {0}}; \
        arg.number.whole = TN__CAST(int64_t, x); \
        return arg; \
    }
#define TN__SIGNED_DTYPE(type) \
    (sizeof(type) == 8 ? TN_INT64 : sizeof(type) == 4 ? TN_INT32 : sizeof(type) == 2 ? TN_INT16 : TN_INT8)
#define TN__UNSIGNED_DTYPE(type) \
    (sizeof(type) == 8 ? TN_UINT64 : sizeof(type) == 4 ? TN_UINT32 : sizeof(type) == 2 ? TN_UINT16 : TN_UINT8)
TN__ARG_REAL(f32, float, TN_FLOAT32)
TN__ARG_REAL(f64, double, TN_FLOAT64)
TN__ARG_WHOLE(b8, bool, TN_BOOL)
TN__ARG_WHOLE(i8, signed char, TN_INT8)
TN__ARG_WHOLE(i16, short, TN_INT16)
TN__ARG_WHOLE(i32, int, TN_INT32)
TN__ARG_WHOLE(long, long, TN__SIGNED_DTYPE(long))
TN__ARG_WHOLE(i64, long long, TN_INT64)
TN__ARG_WHOLE(u8, unsigned char, TN_UINT8)
TN__ARG_WHOLE(u16, unsigned short, TN_UINT16)
TN__ARG_WHOLE(u32, unsigned int, TN_UINT32)
TN__ARG_WHOLE(ulong, unsigned long, TN__UNSIGNED_DTYPE(unsigned long))
TN__ARG_WHOLE(u64, unsigned long long, TN_UINT64)
#undef TN__ARG_REAL
#undef TN__ARG_WHOLE
#undef TN__SIGNED_DTYPE
#undef TN__UNSIGNED_DTYPE

#define TN_WRITES(x) tn__arg_written(x)

#ifndef __cplusplus
#define TN_NO_ARGS ((tn_args){0, NULL})
#define TN_ARGS(...) \
    ((tn_args){TN__COUNT(tn_arg, TN__EACH(TN__ARG_OF, __VA_ARGS__)), (tn_arg[]){TN__EACH(TN__ARG_OF, __VA_ARGS__)}})
#define TN__ARG_OF(x) \
    _Generic((x), tn_array *: tn__arg_array, const tn_array *: tn__arg_array, tn_arg: tn__arg_same, bool: tn__arg_b8, \
             float: tn__arg_f32, double: tn__arg_f64, signed char: tn__arg_i8, char: tn__arg_i8, short: tn__arg_i16, \
             int: tn__arg_i32, long: tn__arg_long, long long: tn__arg_i64, unsigned char: tn__arg_u8, \
             unsigned short: tn__arg_u16, unsigned int: tn__arg_u32, unsigned long: tn__arg_ulong, \
             unsigned long long: tn__arg_u64)(x)
/* m of each of 1 to 16 arguments, with commas. */
#define TN__EACH(m, ...) \
    TN__SEVENTEENTH(__VA_ARGS__, TN__EACH16, TN__EACH15, TN__EACH14, TN__EACH13, TN__EACH12, TN__EACH11, TN__EACH10, \
                    TN__EACH9, TN__EACH8, TN__EACH7, TN__EACH6, TN__EACH5, TN__EACH4, TN__EACH3, TN__EACH2, TN__EACH1, \
                    ~)(m, __VA_ARGS__)
#define TN__SEVENTEENTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, ...) q
#define TN__EACH1(m, x) m(x)
#define TN__EACH2(m, x, ...) m(x), TN__EACH1(m, __VA_ARGS__)
#define TN__EACH3(m, x, ...) m(x), TN__EACH2(m, __VA_ARGS__)
#define TN__EACH4(m, x, ...) m(x), TN__EACH3(m, __VA_ARGS__)
#define TN__EACH5(m, x, ...) m(x), TN__EACH4(m, __VA_ARGS__)
#define TN__EACH6(m, x, ...) m(x), TN__EACH5(m, __VA_ARGS__)
#define TN__EACH7(m, x, ...) m(x), TN__EACH6(m, __VA_ARGS__)
#define TN__EACH8(m, x, ...) m(x), TN__EACH7(m, __VA_ARGS__)
#define TN__EACH9(m, x, ...) m(x), TN__EACH8(m, __VA_ARGS__)
#define TN__EACH10(m, x, ...) m(x), TN__EACH9(m, __VA_ARGS__)
#define TN__EACH11(m, x, ...) m(x), TN__EACH10(m, __VA_ARGS__)
#define TN__EACH12(m, x, ...) m(x), TN__EACH11(m, __VA_ARGS__)
#define TN__EACH13(m, x, ...) m(x), TN__EACH12(m, __VA_ARGS__)
#define TN__EACH14(m, x, ...) m(x), TN__EACH13(m, __VA_ARGS__)
#define TN__EACH15(m, x, ...) m(x), TN__EACH14(m, __VA_ARGS__)
#define TN__EACH16(m, x, ...) m(x), TN__EACH15(m, __VA_ARGS__)
#endif

/* ---- gradients ---- */

/* What a gradient function gets: the kernel's inputs as the text saw them (broadcast and cast), its outputs (of a
 * reduction with reduced axes kept as extents of 1), and the gradients of the outputs (zeros where nothing flows). It
 * sets result[k] to the gradient of inputs[k], made of any array functions (then it can be differentiated again); NULL
 * stands for zero. A result broadcasts and is cast to its input. All arrays belong to the call. */
typedef struct tn_gradient_call {
    int input_count, output_count;
    tn_array *const *inputs, *const *outputs, *const *gradients;
    tn_array **result;
    void *user;
} tn_gradient_call;
typedef void (*tn_gradient_function)(const tn_gradient_call *call);

/* ---- making kernels ---- */

typedef struct tn_kernel_opts {
    const char *_;
    const char *preamble;   /* functions and macros for the texts. A function is `static`, on a GPU `__device__` too:
                               write TN_FN for both */
    const char *gradient;   /* elementwise: statements that give gx for each floating input x from the inputs, the
                               outputs and gz for each output z: "gx = gz * y; gy = gz * x". Can't be differentiated */
    tn_gradient_function backward; /* the gradient as a function over arrays, of any order; overrides `gradient` */
    void *user;             /* for `backward`; must stay valid */
    const char *accumulate; /* reduction: the dtype that it combines in, "float64" or a letter of the inputs; default:
                               the output's */
} tn_kernel_opts;

/* A function of elements: `text` is statements that set every output from the inputs. Inputs broadcast; outputs have
 * their common shape. `name` is an identifier, for messages and plans. Up to 16 inputs and 16 outputs. */
TN_API tn_kernel *tn_elementwise_with(const char *inputs, const char *outputs, const char *text, const char *name,
                                      const tn_kernel_opts *opts);
/* A reduction over axes: `map` is an expression over the inputs, `reduce` an expression that combines a and b, `post`
 * statements that set the one output from a (and _count, the number of elements reduced), `identity` an expression that
 * changes nothing when combined. The order of combination is fixed by the shape (as that of tn_sum of float64), so
 * `reduce` must be associative, and its result depends on nothing else. */
TN_API tn_kernel *tn_reduction_with(const char *inputs, const char *output, const char *map, const char *reduce,
                                    const char *post, const char *identity, const char *name,
                                    const tn_kernel_opts *opts);
/* A whole source with the function `name`: for GPUs CUDA C, in which it is an extern "C" __global__ function; for the
 * CPU C, in which it is an ordinary one. */
TN_API tn_kernel *tn_raw_kernel(const char *source, const char *name);

/* TN_OK, or what is wrong with a kernel that could not be made. */
TN_API tn_status tn_kernel_status(const tn_kernel *kernel);
TN_API const char *tn_kernel_name(const tn_kernel *kernel);

/* ---- calling ---- */

typedef struct tn_call_opts {
    const char *_;
    tn_axes axis;     /* reduction: over these axes; default: all */
    bool keepdims;    /* reduction: keep reduced axes with extent 1 */
    tn_array *out;    /* written: keeps its shape and dtype, and is returned. Default: a new array */
    tn_shape shape;   /* of the outputs, where every input is raw or a number */
    tn_dtype dtype;   /* of outputs whose letter no array has; default: as the numbers', float32 or int64 */
    tn_device device; /* where no argument is an array */
} tn_call_opts;

/* Records a call of an elementwise kernel with one output, or of a reduction. */
TN_API tn_array *tn_call_with(const tn_kernel *kernel, tn_args args, const tn_call_opts *opts);
/* The same for several outputs, as many as the kernel has, into results[0], ...: an array there is written as by `out`,
 * a NULL becomes a new array (on failure an error array). */
TN_API tn_status tn_call_into_with(const tn_kernel *kernel, tn_args args, int count, tn_array **results,
                                   const tn_call_opts *opts);

typedef struct tn_launch_opts {
    const char *_;
    int grid[3], block[3]; /* blocks, and threads in each; 0 stands for 1. Not read on the CPU */
    int shared;            /* bytes of dynamic shared memory a block. Not read on the CPU */
} tn_launch_opts;

/* Runs a raw kernel now (on a GPU: starts it, in order with everything else). Arrays are computed first and passed as
 * pointers to their elements in C order; numbers as their C type; on a GPU up to 4 KiB together. Into arrays that are
 * not in TN_WRITES the kernel must not write: others may share their memory; into those of bool only 0 and 1, as nobody
 * looks at what it wrote. An array that it writes keeps shape and dtype, and has memory of its own. All arrays are on
 * one device, which decides the language of the source. Indices are not checked by anybody. On the CPU the function is
 * called once, in the calling thread. */
TN_API tn_status tn_launch_with(const tn_kernel *kernel, tn_args args, const tn_launch_opts *opts);

#ifndef TN_NO_MACROS
#define tn_raw_kernel(...) TN_AT(tn_raw_kernel)(__VA_ARGS__)
#define tn_elementwise(...) TN__CALL_VVVV(tn_elementwise_with, tn_kernel_opts, __VA_ARGS__, )
#define tn_reduction(...) TN__CALL_VVVVVVV(tn_reduction_with, tn_kernel_opts, __VA_ARGS__, )
#define tn_call(...) TN__CALL_VV(tn_call_with, tn_call_opts, __VA_ARGS__, )
#define tn_call_into(...) TN__CALL_VVVV(tn_call_into_with, tn_call_opts, __VA_ARGS__, )
#define tn_launch(...) TN__CALL_VV(tn_launch_with, tn_launch_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}

#define TN_NO_ARGS (tn_args{0, nullptr})
inline tn_arg tn__arg_of(const tn_array *x) { return tn__arg_array(x); }
inline tn_arg tn__arg_of(tn_arg x) { return x; }
inline tn_arg tn__arg_of(bool x) { return tn__arg_b8(x); }
inline tn_arg tn__arg_of(float x) { return tn__arg_f32(x); }
inline tn_arg tn__arg_of(double x) { return tn__arg_f64(x); }
inline tn_arg tn__arg_of(signed char x) { return tn__arg_i8(x); }
inline tn_arg tn__arg_of(char x) { return tn__arg_i8(static_cast<signed char>(x)); }
inline tn_arg tn__arg_of(short x) { return tn__arg_i16(x); }
inline tn_arg tn__arg_of(int x) { return tn__arg_i32(x); }
inline tn_arg tn__arg_of(long x) { return tn__arg_long(x); }
inline tn_arg tn__arg_of(long long x) { return tn__arg_i64(x); }
inline tn_arg tn__arg_of(unsigned char x) { return tn__arg_u8(x); }
inline tn_arg tn__arg_of(unsigned short x) { return tn__arg_u16(x); }
inline tn_arg tn__arg_of(unsigned int x) { return tn__arg_u32(x); }
inline tn_arg tn__arg_of(unsigned long x) { return tn__arg_ulong(x); }
inline tn_arg tn__arg_of(unsigned long long x) { return tn__arg_u64(x); }
template <size_t N> struct tn__arg_list {
    tn_arg arg[N];
    operator tn_args() const { return tn_args{static_cast<int>(N), arg}; }
};
template <class... X> inline tn__arg_list<sizeof...(X)> TN_ARGS(X... x)
{
    return tn__arg_list<sizeof...(X)>{{tn__arg_of(x)...}};
}
#endif
#endif
