/* SPDX-License-Identifier: MIT */
/* Calling users' kernels. */
#include "array/build_parts.h"
#include "array/user.h"
#include "core/options.h"

#include <tanso/array.h>

tn_status tn__kernel_check(const tn_kernel *kernel, const char *operation, bool raw)
{
    if (!kernel)
        return tn__fail(TN_ERR_VALUE, operation, "the kernel is NULL: make it with %s",
                        raw ? "tn_raw_kernel" : "tn_elementwise");
    if (kernel->kind == TN__USER_BROKEN)
        return tn__error_raise(kernel->error);
    if ((kernel->kind == TN__USER_RAW) == raw)
        return TN_OK;
    return raw ? tn__fail(TN_ERR_VALUE, operation, "the kernel '%s' is not raw: call it with tn_call", kernel->name)
               : tn__fail(TN_ERR_VALUE, operation, "the kernel '%s' is raw: start it with tn_launch", kernel->name);
}

/* A number as a weak scalar. */
static tn__node *number_node(const tn_arg *arg, tn__device *device)
{
    bool real = tn_dtype_is_float(arg->dtype);
    tn__scalar scalar = real ? (tn__scalar){.f64 = arg->number.real} : (tn__scalar){.i = arg->number.whole};
    bool large = arg->dtype == TN_UINT64 && arg->number.whole < 0; /* beyond int64 */
    tn_dtype dtype = real ? TN_FLOAT64 : arg->dtype == TN_BOOL ? TN_BOOL : large ? TN_UINT64 : TN_INT64;
    tn__node *node = tn__const_scalar(scalar, dtype, tn__shape_scalar(), device);
    if (!tn__node_is_error(node))
        node->flags |= TN__NODE_WEAK;
    return node;
}

/* The arguments as nodes, and what the call asks for; false with a latched failure. `out` may be NULL. */
static bool operands(const tn_kernel *kernel, tn_args args, const tn_call_opts *opts, tn__node *out, int *count,
                     tn__node **in, tn__user_wish *wish)
{
    if (args.count < 0 || args.count > TN__USER_PARAMS - (kernel->function != NULL))
        return tn__fail(TN_ERR_VALUE, kernel->name, "got %d arguments, expected at most %d", args.count,
                        TN__USER_PARAMS),
               false;
    if (args.count && !args.arg)
        return tn__fail(TN_ERR_VALUE, kernel->name, "expected %d arguments, got NULL", args.count), false;
    *wish = (tn__user_wish){.shape = out ? out->shape : NULL, .dtype = opts->dtype,
                            .device = out ? out->device : tn__device_get(opts->device)};
    if (out && tn__node_is_error(out))
        return tn__error_raise(out->error), false;
    if (!wish->device)
        return false;
    if (!TN__SHAPE_GIVEN(kernel->name, opts, shape) || !TN__DEVICE_GIVEN(kernel->name, opts))
        return false;
    if (opts->shape.ndim && !(wish->shape = tn__shape_make(kernel->name, opts->shape, TN_UINT8)))
        return false;
    if (!wish->dtype && out)
        wish->dtype = (tn_dtype)out->dtype;
    for (int k = 0; k < args.count; k++)
        in[k] =
            args.arg[k].dtype ? number_node(&args.arg[k], wish->device) : tn__node_of(args.arg[k].array, kernel->name);
    *count = args.count;
    if (kernel->function) /* its address is the last operand */
        in[(*count)++] = tn__const_scalar((tn__scalar){.bits = (uintptr_t)kernel->function}, TN_UINT64,
                                          tn__shape_scalar(), wish->device);
    return true;
}

/* Points an array that a call was given to write at what it made. */
static tn_status write_out(const tn_kernel *kernel, tn_array *out, tn__node *y)
{
    tn__node *value = tn__assignable(kernel->name, tn__strong(tn__node_of(out, kernel->name)), y);
    if (tn__node_is_error(value))
        return tn__error_raise(value->error);
    return tn__array_write(out, value);
}

static tn__node *reduce(const tn_kernel *kernel, tn_args args, const tn_call_opts *opts)
{
    tn__node *in[TN__USER_PARAMS], *y;
    tn__user_wish wish;
    uint32_t set;
    int count;
    if (!TN__AXES_GIVEN(kernel->name, opts, axis) || !operands(kernel, args, opts, NULL, &count, in, &wish))
        return tn__failed();
    if (opts->out)
        wish.dtype = wish.dtype ? wish.dtype : tn_dtype_of(opts->out);
    y = tn__user_reduce(kernel, count, in, &wish, opts->axis);
    TN__PASS_ERROR(y);
    if (opts->keepdims || !tn__axes_set(kernel->name, opts->axis, y->shape->ndim, &set))
        return y;
    return tn__drop_axes(y, set);
}

static tn__node *elementwise(const tn_kernel *kernel, tn_args args, const tn_call_opts *opts)
{
    tn__node *in[TN__USER_PARAMS], *out[TN__USER_PARAMS];
    tn__user_wish wish;
    int count;
    if (kernel->part[TN__PART_MAP].out_count != 1)
        TN__REFUSE(TN_ERR_VALUE, kernel->name, "the kernel has %d outputs: call it with tn_call_into",
                   kernel->part[TN__PART_MAP].out_count);
    tn__node *written = opts->out ? tn__node_of(opts->out, kernel->name) : NULL;
    if (!operands(kernel, args, opts, written, &count, in, &wish) || !tn__user_apply(kernel, count, in, &wish, out))
        return tn__failed();
    return out[0];
}

static const tn_call_opts default_call;

tn_array *tn_call_with(const tn_kernel *kernel, tn_args args, const tn_call_opts *opts)
{
    opts = opts ? opts : &default_call;
    tn__call call = tn__enter();
    if (tn__kernel_check(kernel, "tn_call", false) != TN_OK)
        return tn__leave_error(call);
    tn__node *y = kernel->kind == TN__USER_REDUCTION ? reduce(kernel, args, opts) : elementwise(kernel, args, opts);
    if (!opts->out || tn__node_is_error(y))
        return tn__leave_array(call, y);
    if (write_out(kernel, opts->out, y) != TN_OK)
        return tn__leave_error(call);
    tn__leave(call);
    return opts->out;
}

/* The first array that is to be written says the shape. */
static tn__node *first_out(const tn_kernel *kernel, int count, tn_array *const *results)
{
    for (int k = 0; k < count; k++)
        if (results[k])
            return tn__node_of(results[k], kernel->name);
    return NULL;
}

static tn_status call_into(const tn_kernel *kernel, tn_args args, int count, tn_array **results,
                           const tn_call_opts *opts)
{
    tn__node *in[TN__USER_PARAMS], *out[TN__USER_PARAMS];
    tn__user_wish wish;
    int given;
    tn_status status = tn__kernel_check(kernel, "tn_call_into", false);
    if (status != TN_OK)
        return status;
    if (kernel->kind == TN__USER_REDUCTION || count != kernel->part[TN__PART_MAP].out_count || !results)
        return tn__fail(TN_ERR_VALUE, kernel->name, "got room for %d results, expected %d", results ? count : 0,
                        kernel->kind == TN__USER_REDUCTION ? 1 : kernel->part[TN__PART_MAP].out_count);
    if (!operands(kernel, args, opts, first_out(kernel, count, results), &given, in, &wish) ||
        !tn__user_apply(kernel, given, in, &wish, out))
        return tn__error_status(tn__error_last());
    for (int k = 0; k < count && status == TN_OK; k++)
        if (results[k])
            status = write_out(kernel, results[k], out[k]);
    for (int k = 0; k < count && status == TN_OK; k++)
        if (!results[k])
            results[k] = tn__leave_array(tn__enter(), out[k]);
    return status;
}

tn_status tn_call_into_with(const tn_kernel *kernel, tn_args args, int count, tn_array **results,
                            const tn_call_opts *opts)
{
    tn__call call = tn__enter();
    tn_status status = call_into(kernel, args, count, results, opts ? opts : &default_call);
    for (int k = 0; k < count && results && status != TN_OK; k++)
        if (!results[k])
            results[k] = tn__failed_array();
    tn__leave(call);
    return status;
}
