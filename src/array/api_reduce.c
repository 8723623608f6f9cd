/* SPDX-License-Identifier: MIT */
/* Reductions, and the functions composed of them: mean, variance, softmax, logsumexp. */
#include <tanso/array.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "tn_op_functions.h"

/* One reduction: its result with the reduced axes kept. `set` are the axes. */
typedef tn__node *(*reduction)(const char *operation, tn__op op, tn__node *a, uint32_t set,
                               const tn_reduce_opts *opts);

static int64_t count_of(const tn__node *a, uint32_t set)
{
    int64_t count = 1;
    for (int i = 0; i < a->shape->ndim; i++)
        if (set >> i & 1)
            count *= a->shape->dim[i];
    return count;
}

/* The operations that join one more operand to a reduction's result. */
static const unsigned char joins[TN__OP_COUNT] = {[TN__OP_SUM] = TN__OP_ADD,
                                                  [TN__OP_PROD] = TN__OP_MULTIPLY,
                                                  [TN__OP_MAX] = TN__OP_MAXIMUM,
                                                  [TN__OP_MIN] = TN__OP_MINIMUM};

static tn__node *with_initial(tn__op op, tn__node *result, tn__node *initial)
{
    TN__PASS_ERROR(result);
    TN__PASS_ERROR(initial);
    return joins[op] ? tn__binary((tn__op)joins[op], result, tn__cast(initial, (tn_dtype)result->dtype))
                     : result;
}

/* The elements that count, and `identity` in the place of the others. */
static tn__node *counted(tn__node *a, const tn_reduce_opts *opts, double identity)
{
    if (!opts->where)
        return a;
    tn__node *where = tn__expand(tn__mask("where", opts->where), a->shape);
    return tn__where(where, a, tn__const_like(a, identity));
}

static tn__node *mean(const char *operation, tn__op op, tn__node *a, uint32_t set, const tn_reduce_opts *opts);
static tn__node *variance(const char *operation, tn__op op, tn__node *a, uint32_t set, const tn_reduce_opts *opts);
static tn__node *logsumexp(const char *operation, tn__op op, tn__node *a, uint32_t set, const tn_reduce_opts *opts);

static tn__node *reduced(const char *operation, tn__op op, const tn_array *x,
                         const tn_reduce_opts *opts, reduction rule)
{
    static const tn_reduce_opts defaults = {.dtype = TN_DTYPE_DEFAULT};
    opts = opts ? opts : &defaults;
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    if (!TN__AXES_GIVEN(operation, opts, axis) || !TN__OPERANDS_GIVEN(operation, opts))
        return tn__failed();
    tn_reduce_opts of_number = *opts;
    bool ufunc = rule != mean && rule != variance && rule != logsumexp;
    if (ufunc && a->shape->ndim == 0 && opts->axis.count == 1 &&
        (opts->axis.axis[0] == 0 || opts->axis.axis[0] == -1)) {
        of_number.axis.count = 0; /* the one axis that NumPy lets a number have */
        opts = &of_number;
    }
    uint32_t set;
    if (!tn__axes_set(operation, opts->axis, a->shape->ndim, &set))
        return tn__failed();
    if (opts->dtype && !tn__dtype_valid(opts->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation,
                   "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128",
                   (int)opts->dtype);
    tn__node *result = rule(operation, op, a, set, opts);
    if (opts->initial)
        result = with_initial(op, result, tn__node_of(opts->initial, operation));
    return opts->keepdims ? result : tn__drop_axes(result, set);
}

/* A public reduction's result, in the array that the caller wants it in. */
static tn_array *delivered(const char *operation, tn__op op, const tn_array *x,
                           const tn_reduce_opts *opts, reduction rule)
{
    tn__call call = tn__enter();
    tn__node *result = reduced(operation, op, x, opts, rule);
    bool positions = op == TN__OP_ARGMAX || op == TN__OP_ARGMIN;
    tn_dtype out = positions && opts && opts->out ? tn_dtype_of(opts->out) : TN_DTYPE_DEFAULT;
    if (out && tn_dtype_promote(out, TN_INT64) != TN_INT64 && !tn__node_is_error(result)) {
        tn__fail(TN_ERR_DTYPE, operation, "positions are integers, out is %s", tn_dtype_name(out));
        result = tn__failed();
    }
    return tn__deliver(call, result, opts ? opts->out : NULL);
}

/* The dtype that float16 and bfloat16 are computed in when several steps follow each other; others
 * stay. */
static tn_dtype wide(tn_dtype dtype)
{
    return (tn_dtype)tn__dtypes[dtype].compute;
}

/* The dtype that inexact numbers are summed in where none is asked for: one that holds what `out` holds, too, as in
 * NumPy. */
static tn_dtype summed_in(tn_dtype dtype, const tn_reduce_opts *opts)
{
    tn_dtype out = opts->out && !tn_is_error(opts->out) ? tn_dtype_of(opts->out) : dtype;
    return tn__dtype_inexact(out) ? tn_dtype_promote(dtype, out) : dtype;
}

/* Sum and product: small integers as int64 or uint64, unless a dtype is asked for. */
static tn__node *total(const char *operation, tn__op op, tn__node *a, uint32_t set,
                       const tn_reduce_opts *opts)
{
    (void)operation;
    tn_dtype dtype = opts->dtype;
    if (!dtype)
        dtype = tn__dtype_inexact((tn_dtype)a->dtype)              ? summed_in((tn_dtype)a->dtype, opts)
                : tn__dtypes[a->dtype].class == TN__CLASS_UNSIGNED ? TN_UINT64
                                                                   : TN_INT64;
    a = counted(tn__cast(a, dtype), opts, op == TN__OP_PROD);
    if (dtype == TN_BOOL)
        op = op == TN__OP_SUM ? TN__OP_ANY : TN__OP_ALL;
    return tn__reduce(op, a, set);
}

static tn__node *plain(const char *operation, tn__op op, tn__node *a, uint32_t set,
                       const tn_reduce_opts *opts)
{
    bool extreme = op == TN__OP_MAX || op == TN__OP_MIN;
    if (!extreme)
        return tn__reduce(op, counted(tn__cast(a, TN_BOOL), opts, op == TN__OP_ALL), set);
    if (opts->where && !opts->initial)
        TN__REFUSE(TN_ERR_VALUE, operation, "has no value where the mask leaves nothing; give `initial`");
    if (!opts->initial)
        return tn__reduce(op, a, set);
    tn__node *initial = tn__cast(tn__node_of(opts->initial, operation), (tn_dtype)a->dtype);
    if (opts->where) {
        a = tn__where(tn__expand(tn__mask("where", opts->where), a->shape), a, tn__expand(initial, a->shape));
        TN__PASS_ERROR(a);
    }
    tn_shape shape = tn__shape_value(a->shape);
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = set >> i & 1 ? 1 : shape.dim[i];
    bool nothing = count_of(a, set) == 0; /* then the initial value is all there is */
    const tn__shape *kept = nothing ? tn__shape_make(operation, shape, (tn_dtype)a->dtype) : NULL;
    return !nothing ? tn__reduce(op, a, set) : kept ? tn__expand(initial, kept) : tn__failed();
}

/* Along one axis; with none given, over the array as if it were flat. */
static tn__node *position(const char *operation, tn__op op, tn__node *a, uint32_t set,
                          const tn_reduce_opts *opts)
{
    if (opts->axis.count > 1)
        TN__REFUSE(TN_ERR_VALUE, operation,
                   "%d axes given; give one, or none for the position in the flat array",
                   opts->axis.count);
    int ndim = a->shape->ndim;
    if (opts->axis.count == 1 || ndim == 1)
        return tn__reduce(op, a, set);
    int64_t size = a->shape->size, ones[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        ones[i] = 1;
    return tn__reshape(tn__reduce(op, tn__reshape(a, 1, &size), 1), ndim, ones);
}

static tn__node *average(tn__node *a, uint32_t set, double count)
{
    return tn__with(TN__OP_DIVIDE, tn__reduce(TN__OP_SUM, a, set), count);
}

/* That number of elements less `less`, or 0. */
static double count_less(const tn__node *a, uint32_t set, double less)
{
    double count = (double)count_of(a, set);
    return count > less ? count - less : 0;
}

/* The mean of the elements that count, or their sum over their number less `less`. */
static tn__node *average_where(tn__node *a, uint32_t set, const tn_reduce_opts *opts, double less)
{
    if (!opts->where)
        return average(a, set, count_less(a, set, less));
    tn__node *ones = tn__cast(counted(tn__const(1, TN_INT64, a->shape, a->device), opts, 0), TN_INT64);
    tn_dtype dtype = tn__dtype_inexact((tn_dtype)a->dtype) ? (tn_dtype)a->dtype : TN_FLOAT64;
    tn__node *number = tn__cast(tn__reduce(TN__OP_SUM, ones, set), less == 0 ? TN_INT64 : dtype);
    number = tn__with(TN__OP_MAXIMUM, less == 0 ? number : tn__with(TN__OP_SUBTRACT, number, less), 0);
    TN__PASS_ERROR(number);
    return tn__binary(TN__OP_DIVIDE, tn__reduce(TN__OP_SUM, counted(a, opts, 0), set), tn__cast(number, dtype));
}

static tn__node *mean(const char *operation, tn__op op, tn__node *a, uint32_t set,
                      const tn_reduce_opts *opts)
{
    (void)op;
    tn_dtype dtype = opts->dtype                   ? opts->dtype
                     : tn__dtype_inexact((tn_dtype)a->dtype) ? summed_in((tn_dtype)a->dtype, opts)
                                                   : TN_FLOAT64;
    if (dtype == TN_BOOL)
        TN__REFUSE(TN_ERR_DTYPE, operation, "a mean is a fraction: expected a dtype of numbers, got bool");
    if (!tn__dtype_inexact(dtype)) /* summed in it, then cut */
        return tn__cast(average_where(tn__cast(a, dtype), set, opts, 0), dtype);
    return tn__cast(average_where(tn__cast(a, wide(dtype)), set, opts, 0), dtype);
}

/* What is averaged for a variance: squares of what elements differ from their mean by. *dtype: that of the variance,
 * here it becomes real, and that of the sum. `whole`: it is no fraction. */
static tn__node *squares_of(tn__node *a, uint32_t set, const tn_reduce_opts *opts, bool whole, tn_dtype *dtype)
{
    /* then the mean alone is real */
    bool parts = tn_dtype_is_complex((tn_dtype)a->dtype) && !tn_dtype_is_complex(*dtype) && !whole;
    tn__node *counted = tn__cast(a, whole ? *dtype : wide(*dtype));
    tn__node *mean = opts->mean ? tn__node_of(opts->mean, "mean") : average_where(counted, set, opts, 0);
    TN__PASS_ERROR(mean);
    tn_dtype both = tn_dtype_promote((tn_dtype)a->dtype, wide(*dtype));
    bool given_parts = opts->mean && tn_dtype_is_complex((tn_dtype)a->dtype); /* the imaginary one counts, too */
    if (opts->mean) {
        mean = tn__cast(tn__strong(mean), given_parts ? both : (tn_dtype)counted->dtype);
        mean = tn__expand(tn__without_front(mean, a->shape->ndim), a->shape);
        TN__PASS_ERROR(mean);
    }
    tn__node *deviation = parts ? tn__binary(TN__OP_SUBTRACT, tn__cast(a, both), tn__cast(mean, both))
                          : whole ? tn__binary(TN__OP_SUBTRACT, a, given_parts ? mean : tn__cast(mean, *dtype))
                                  : tn__binary(TN__OP_SUBTRACT, counted, mean);
    TN__PASS_ERROR(deviation);
    if (!whole && !opts->mean && tn__reduced_many(a, set)) /* from a mean that is rounded */
        deviation = tn__binary(TN__OP_SUBTRACT, deviation, average_where(deviation, set, opts, 0));
    TN__PASS_ERROR(deviation);
    if (whole && tn_dtype_is_complex((tn_dtype)deviation->dtype))
        deviation = tn__unary(TN__OP_ABS, deviation);
    TN__PASS_ERROR(deviation);
    if (parts) {
        deviation = tn__cast(tn__unary(TN__OP_ABS, deviation), wide(*dtype));
    } else if (tn_dtype_is_complex(*dtype)) { /* of a complex number, its square is that of its size */
        *dtype = opts->dtype ? opts->dtype : (tn_dtype)tn__dtypes[*dtype].component;
        deviation = tn__unary(TN__OP_ABS, deviation);
    }
    tn__node *squares = tn__unary(TN__OP_SQUARE, deviation);
    squares = whole ? tn__cast(squares, *dtype) : squares;
    TN__PASS_ERROR(squares);
    if (!opts->dtype && !whole) { /* the sum alone is in what out holds, too */
        *dtype = summed_in(*dtype, opts);
        squares = tn__cast(squares, wide(*dtype));
    }
    return squares;
}

/* Nothing but real numbers that all count, summed in the dtype they are in: DIVIDE of DEVIATIONS. */
static bool is_plain(const tn__node *a, const tn_reduce_opts *opts, tn_dtype dtype)
{
    return !opts->where && !opts->mean && tn_dtype_is_float(dtype) && !tn_dtype_is_complex((tn_dtype)a->dtype) &&
           (opts->dtype || summed_in(dtype, opts) == dtype);
}

/* The mean first, then the mean square about it. */
static tn__node *variance(const char *operation, tn__op op, tn__node *a, uint32_t set,
                          const tn_reduce_opts *opts)
{
    tn_dtype dtype = opts->dtype                   ? opts->dtype
                     : tn__dtype_inexact((tn_dtype)a->dtype) ? (tn_dtype)a->dtype
                                                   : TN_FLOAT64;
    if (dtype == TN_BOOL)
        TN__REFUSE(TN_ERR_DTYPE, operation, "a variance is a fraction: expected a dtype of numbers, got bool");
    bool whole = !tn__dtype_inexact(dtype); /* then the mean, each square and their mean are cut to it */
    if (whole && op == TN__OP_SQRT &&
        (opts->keepdims || set + 1 != 1u << a->shape->ndim)) /* NumPy's rule: of all as one number only */
        TN__REFUSE(TN_ERR_DTYPE, operation, "a root is a fraction: expected a float or complex dtype, got %s",
                   tn_dtype_name(dtype));
    tn__node *result;
    if (is_plain(a, opts, dtype)) {
        result = tn__with(TN__OP_DIVIDE, tn__deviations(tn__cast(a, wide(dtype)), set), count_less(a, set, opts->ddof));
    } else {
        tn__node *squares = squares_of(a, set, opts, whole, &dtype);
        TN__PASS_ERROR(squares);
        result = average_where(squares, set, opts, opts->ddof);
    }
    if (op == TN__OP_SQRT)
        result = tn__root_of_sum(result, 0.5);
    return tn__cast(result, dtype);
}

/* The largest along axes, as a constant for backward: the functions that subtract it do not depend
 * on it. */
static tn__node *shift_of(tn__node *a, uint32_t set)
{
    tn__no_grad_depth++;
    tn__node *largest = tn__reduce(TN__OP_MAX, a, set);
    tn__no_grad_depth--;
    return largest;
}

/* The float dtype of a softmax, in *dtype; the operand in the dtype it is computed in. */
static tn__node *exponent(tn__node *a, tn_dtype *dtype)
{
    *dtype = tn__dtype_to_float(a->dtype);
    return tn__cast(a, wide(*dtype));
}

static tn__node *logsumexp(const char *operation, tn__op op, tn__node *a, uint32_t set,
                           const tn_reduce_opts *opts)
{
    (void)operation;
    (void)op;
    (void)opts;
    tn_dtype dtype;
    a = exponent(a, &dtype);
    tn__node *shift = shift_of(a, set);
    TN__PASS_ERROR(shift);
    /* an infinite shift would make inf - inf */
    shift = tn__where(tn__unary(TN__OP_ISFINITE, shift), shift, tn__const_like(shift, 0));
    tn__node *sum =
        tn__reduce(TN__OP_SUM, tn__unary(TN__OP_EXP, tn__binary(TN__OP_SUBTRACT, a, shift)), set);
    return tn__cast(tn__binary(TN__OP_ADD, tn__unary(TN__OP_LOG, sum), shift), dtype);
}

#define REDUCTION(name, ID, rule) \
    tn_array *tn_##name##_with(const tn_array *x, const tn_reduce_opts *opts) \
    { \
        return delivered(#name, TN__OP_##ID, x, opts, rule); \
    }
REDUCTION(sum, SUM, total)
REDUCTION(prod, PROD, total)
REDUCTION(mean, SUM, mean)
REDUCTION(var, SUM, variance)
REDUCTION(std, SQRT, variance)
REDUCTION(max, MAX, plain)
REDUCTION(min, MIN, plain)
REDUCTION(any, ANY, plain)
REDUCTION(all, ALL, plain)
REDUCTION(argmax, ARGMAX, position)
REDUCTION(argmin, ARGMIN, position)
REDUCTION(logsumexp, SUM, logsumexp)

static tn__node *softmax(const char *operation, tn__op op, const tn_array *x, int axis)
{
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    axis = tn__axis_check(operation, axis, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    if (a->shape->size == 0)
        return tn__cast(a, tn__dtype_to_float(a->dtype));
    tn_dtype dtype;
    a = exponent(a, &dtype);
    return tn__cast(tn__softmax(op, a, 1u << axis), dtype);
}

tn_array *tn_softmax(const tn_array *x, int axis)
{
    TN__RETURN(softmax("softmax", TN__OP_SOFTMAX, x, axis));
}

tn_array *tn_log_softmax(const tn_array *x, int axis)
{
    TN__RETURN(softmax("log_softmax", TN__OP_LOG_SOFTMAX, x, axis));
}
