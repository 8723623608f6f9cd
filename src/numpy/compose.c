/* SPDX-License-Identifier: MIT */
/* What the composed functions share. */
#include "numpy/compose.h"

#include <stdarg.h>
#include <stdio.h>

#include "array/build_parts.h"
#include "core/memory.h"
#include "core/number.h"

tn_array *tn__composed(tn_array *result)
{
    tn_keep(result);
    tn_scope_pop();
    return result;
}

tn_status tn__composed_all(int count, tn_array **results)
{
    tn_status status = TN_OK;
    for (int i = 0; i < count; i++) {
        tn_keep(results[i]);
        if (status == TN_OK)
            status = tn_status_of(results[i]);
    }
    tn_scope_pop();
    return status;
}

tn_array *tn__into(tn_array *out, tn_array *result)
{
    if (!out)
        return result;
    tn__call call = tn__enter();
    return tn__deliver(call, tn__node_of(result, "out"), out);
}

static bool may_cast(tn_dtype from, tn_dtype to, const tn_out_opts *opts)
{
    return tn_can_cast_by(from, to, opts->casting ? opts->casting : "same_kind");
}

tn_array *tn__operands_as(const char *operation, int count, tn_array **operands, const tn_out_opts *opts)
{
    tn_array *wrong = opts ? tn__wrong_options(operation, opts->dtype, opts->casting) : NULL;
    if (wrong)
        return wrong;
    for (int i = 0; i < count && opts && opts->dtype; i++) {
        if (tn_is_error(operands[i]))
            return tn__again(operands[i]);
        if (!tn__is_weak(operands[i]) && !may_cast(tn_dtype_of(operands[i]), opts->dtype, opts))
            return tn__refused(TN_ERR_DTYPE, operation, "operand %d is %s, which may not be cast to %s", i,
                               tn_dtype_name(tn_dtype_of(operands[i])), tn_dtype_name(opts->dtype));
        operands[i] = tn_cast(operands[i], opts->dtype);
    }
    return NULL;
}

tn_array *tn__given_out(const char *operation, tn_array *result, const tn_out_opts *opts)
{
    if (!opts || !opts->out || tn_is_error(result) || tn_is_error(opts->out))
        return tn__into(opts ? opts->out : NULL, result);
    tn_array *wrong = tn__wrong_options(operation, opts->dtype, opts->casting);
    if (wrong)
        return wrong;
    tn_dtype to = tn_dtype_of(opts->out);
    if (!may_cast(tn_dtype_of(result), to, opts))
        return tn__refused(TN_ERR_DTYPE, operation, "a result of %s may not be cast to out's %s",
                           tn_dtype_name(tn_dtype_of(result)), tn_dtype_name(to));
    return tn__into(opts->out, tn_cast(result, to));
}

tn_array *tn__refused(tn_status code, const char *operation, const char *format, ...)
{
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    tn__vprint_into(reason, sizeof reason, format, arguments);
    va_end(arguments);
    tn__call call = tn__enter();
    tn__fail(code, operation, "%s", reason);
    return tn__leave_error(call);
}

tn_array *tn__again(const tn_array *x)
{
    TN__RETURN(tn__node_of(x, "copy"));
}

tn_array *tn__failure(const tn_array *x)
{
    return tn_is_error(x) ? tn__again(x) : tn__failed_array();
}

tn_array *tn__array_of(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "asarray");
    return tn__leave_array(call, tn__node_is_error(node) ? node : tn__strong(node));
}

bool tn__is_weak(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "asarray");
    bool weak = !tn__node_is_error(node) && node->flags & TN__NODE_WEAK;
    tn__leave(call);
    return weak;
}

const tn_array *tn__number_as(const tn_array *x, const tn_array *values)
{
    return tn__is_weak(values) && !tn_is_error(x) ? tn_cast(values, tn_dtype_of(x)) : values;
}

int tn__axis_of(const char *operation, const tn_array *x, int axis)
{
    return tn_is_error(x) ? -1 : tn__axis_check(operation, axis, tn_ndim(x));
}

tn_axes tn__axes_of(int count, const int *axis)
{
    tn_axes axes = {.count = count};
    for (int i = 0; i < count && i < TN_MAX_NDIM; i++)
        axes.axis[i] = axis[i];
    return axes;
}

tn_shape tn__vector(int64_t n)
{
    return (tn_shape){.ndim = 1, .dim = {n}};
}

tn_array *tn__cut(const tn_array *x, int axis, int64_t start, int64_t count)
{
    return tn_slice_axis(x, axis, start, start + count, 1);
}

tn_array *tn__positions_like(const tn_array *x, const int64_t *values, int64_t count)
{
    const tn_create_opts opts = {.device = tn_device_of(x)};
    return tn_from_host_with(values, tn__vector(count), TN_INT64, &opts);
}

tn_array *tn__count_up(const tn_array *x, int64_t count)
{
    const tn_create_opts opts = {.device = tn_device_of(x), .dtype = TN_INT64};
    return tn_arange_with(0, (double)count, 1, &opts);
}

tn_array *tn__as_float(const tn_array *x)
{
    tn_dtype dtype = tn_dtype_of(x);
    if (dtype && tn__dtypes[dtype].class == TN__CLASS_COMPLEX)
        return tn__refused(TN_ERR_DTYPE, "float", "takes real numbers, got %s; see tn_real, tn_imag, tn_abs",
                           tn_dtype_name(dtype));
    return tn_cast(x, tn__dtype_to_float(dtype ? dtype : TN_FLOAT32));
}

tn_array *tn__as_positions(const tn_array *x)
{
    if (!tn_is_error(x) && tn_dtype_of(x) == TN_UINT64 && !tn__is_weak(x))
        x = tn_minimum(x, tn_weak_int(INT64_MAX));
    return tn_cast(x, TN_INT64);
}

int64_t *tn__integers_of(const char *operation, const tn_array *x)
{
    if (tn_is_error(x))
        return NULL;
    if (!tn_dtype_is_integer(tn_dtype_of(x)) && tn_size(x) > 0) {
        tn__fail(TN_ERR_DTYPE, operation, "expected integers, got %s", tn_dtype_name(tn_dtype_of(x)));
        return NULL;
    }
    size_t bytes = (size_t)tn_size(x) * sizeof(int64_t);
    int64_t *values = tn__alloc(bytes + 1);
    if (!values) {
        tn__fail_memory(operation, bytes);
        return NULL;
    }
    tn_array *wide = tn__as_positions(x);
    tn_status status = tn_to_host(wide, values, bytes);
    tn_free(wide);
    if (status == TN_OK)
        return values;
    tn__free(values);
    return NULL;
}
