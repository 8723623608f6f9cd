/* SPDX-License-Identifier: MIT */
/* Joining and splitting: the stack and split families, append, trimming, blocks. */
#include "numpy/compose.h"

#include "array/build_parts.h"
#include "core/memory.h"

/* ---- joining ---- */

/* Each array brought into form by `form`, then joined along `axis`; of vectors along `vector_axis`. */
static tn_array *stacked(const char *operation, int count, const tn_array *const *arrays,
                         tn_array *(*form)(const tn_array *), int axis, int vector_axis)
{
    if (count < 1 || !arrays)
        return tn__refused(TN_ERR_VALUE, operation, "expected 1 or more arrays, got %d%s", count,
                           arrays ? "" : ", and NULL for them");
    tn_array **formed = tn__alloc(sizeof *formed * (size_t)count);
    if (!formed)
        return tn__refused(TN_ERR_MEMORY, operation, "no memory for %d arrays", count);
    for (int i = 0; i < count; i++)
        formed[i] = form(arrays[i]);
    tn_array *result =
        tn_concatenate(count, (const tn_array *const *)formed, tn_ndim(formed[0]) == 1 ? vector_axis : axis);
    tn__free(formed);
    return result;
}

/* A vector as a column. */
static tn_array *as_column(const tn_array *x)
{
    tn_array *y = tn_atleast_1d(x);
    return tn_ndim(y) == 1 ? tn_expand_dims(y, 1) : y;
}

tn_array *tn_vstack(int count, const tn_array *const *arrays)
{
    TN__COMPOSE(stacked("vstack", count, arrays, tn_atleast_2d, 0, 0));
}

tn_array *tn_hstack(int count, const tn_array *const *arrays)
{
    TN__COMPOSE(stacked("hstack", count, arrays, tn_atleast_1d, 1, 0));
}

/* ---- with options ---- */

enum { JOINED, STACKED, VERTICAL, HORIZONTAL };

static tn_array *join_by(int how, int count, const tn_array *const *arrays, int axis)
{
    return how == JOINED     ? tn_concatenate(count, arrays, axis)
           : how == STACKED  ? tn_stack(count, arrays, axis)
           : how == VERTICAL ? tn_vstack(count, arrays)
                             : tn_hstack(count, arrays);
}

static tn_array *join_with(const char *operation, int how, int count, const tn_array *const *arrays, int axis,
                           const tn_out_opts *opts)
{
    tn_out_opts as_out = opts ? *opts : (tn_out_opts){.dtype = TN_DTYPE_DEFAULT};
    tn_array *wrong = tn__wrong_options(operation, as_out.dtype, as_out.casting);
    if (wrong)
        return wrong;
    if (as_out.out && !as_out.dtype && !tn_is_error(as_out.out)) { /* each part is cast to it, not the whole */
        as_out.dtype = tn_dtype_of(as_out.out);
        opts = &as_out;
    }
    if (count < 1 || !arrays || !opts || !opts->dtype) {
        tn_array *result = join_by(how, count, arrays, axis);
        for (int i = 0; opts && opts->casting && i < count && !tn_is_error(result); i++)
            if (!tn_can_cast_by(tn_dtype_of(arrays[i]), tn_dtype_of(result), opts->casting))
                return tn__refused(TN_ERR_DTYPE, operation, "array %d is %s, which may not be cast to %s", i,
                                   tn_dtype_name(tn_dtype_of(arrays[i])), tn_dtype_name(tn_dtype_of(result)));
        return tn__given_out(operation, result, opts);
    }
    tn_array **own = tn__alloc((size_t)count * sizeof *own), *error = NULL;
    if (!own) {
        tn__fail_memory(operation, (size_t)count * sizeof *own);
        return tn__failed_array();
    }
    for (int i = 0; i < count; i++)
        own[i] = tn__again(arrays[i]);
    error = tn__operands_as(operation, count, own, opts);
    tn_array *result =
        error ? error : tn__given_out(operation, join_by(how, count, (const tn_array *const *)own, axis), opts);
    tn__free(own);
    return result;
}

tn_array *tn_concatenate_with(int count, const tn_array *const *arrays, int axis, const tn_out_opts *opts)
{
    TN__COMPOSE(join_with("concatenate", JOINED, count, arrays, axis, opts));
}

tn_array *tn_stack_with(int count, const tn_array *const *arrays, int axis, const tn_out_opts *opts)
{
    TN__COMPOSE(join_with("stack", STACKED, count, arrays, axis, opts));
}

tn_array *tn_vstack_with(int count, const tn_array *const *arrays, const tn_out_opts *opts)
{
    TN__COMPOSE(join_with("vstack", VERTICAL, count, arrays, 0, opts));
}

tn_array *tn_hstack_with(int count, const tn_array *const *arrays, const tn_out_opts *opts)
{
    TN__COMPOSE(join_with("hstack", HORIZONTAL, count, arrays, 0, opts));
}

tn_array *tn_dstack(int count, const tn_array *const *arrays)
{
    TN__COMPOSE(stacked("dstack", count, arrays, tn_atleast_3d, 2, 2));
}

tn_array *tn_column_stack(int count, const tn_array *const *arrays)
{
    TN__COMPOSE(stacked("column_stack", count, arrays, as_column, 1, 1));
}

static tn_array *append(const tn_array *x, const tn_array *values, tn_axes axis)
{
    if (!tn__axes_fit("append", axis, 1))
        return tn__failed_array();
    if (axis.count == 0)
        return tn_concatenate(2, (const tn_array *const[]){tn_ravel(x), tn_ravel(values)}, 0);
    return tn_concatenate(2, (const tn_array *const[]){x, values}, axis.axis[0]);
}

tn_array *tn_append(const tn_array *x, const tn_array *values, tn_axes axis)
{
    TN__COMPOSE(append(x, values, axis));
}

/* ---- splitting ---- */

tn_status tn_split_at(const tn_array *x, int count, const int64_t *positions, int axis, tn_array **out)
{
    if (count < 0 || (count > 0 && !positions) || !out)
        return tn__fail(TN_ERR_VALUE, "split", "expected 0 or more positions, got %d, and an array for the parts",
                        count);
    int along = tn__axis_of("split", x, axis);
    tn_scope_push();
    for (int i = 0; i <= count; i++) {
        int64_t start = i ? positions[i - 1] : 0, stop = i < count ? positions[i] : TN_NONE;
        out[i] = tn_is_error(x) ? tn__again(x)
                 : along < 0    ? tn__failed_array()
                                : tn_slice_axis(x, along, start, stop, 1);
    }
    return tn__composed_all(count + 1, out);
}

tn_status tn_array_split(const tn_array *x, int sections, int axis, tn_array **out)
{
    if (sections < 1 || !out)
        return tn__fail(TN_ERR_VALUE, "array_split", "expected 1 or more sections, got %d, and an array for them",
                        sections);
    int along = tn__axis_of("array_split", x, axis);
    int64_t extent = along < 0 ? 0 : tn_dim(x, along), each = extent / sections, longer = extent % sections;
    tn_scope_push();
    for (int i = 0; i < sections; i++) {
        int64_t start = each * i + (i < longer ? i : longer);
        out[i] = tn_is_error(x) ? tn__again(x)
                 : along < 0    ? tn__failed_array()
                                : tn__cut(x, along, start, each + (i < longer));
    }
    return tn__composed_all(sections, out);
}

tn_status tn_separate(const tn_array *x, int axis, tn_array **out)
{
    if (!out)
        return tn__fail(TN_ERR_VALUE, "separate", "expected an array for the parts, got NULL");
    if (tn_is_error(x))
        return tn__fail(tn_status_of(x), "separate", "%s", tn_message_of(x));
    int along = tn__axis_of("separate", x, axis);
    if (along < 0)
        return tn_error_code();
    int64_t count = tn_dim(x, along);
    if (count > INT32_MAX)
        return tn__fail(TN_ERR_VALUE, "separate", "expected an extent below 2^31, got %lld", (long long)count);
    tn_scope_push();
    for (int64_t i = 0; i < count; i++)
        out[i] = tn_squeeze(tn__cut(x, along, i, 1), TN_AXES(along));
    return tn__composed_all((int)count, out);
}

/* ---- trimming ---- */

/* Along one axis: without its ends at which all is zero. */
static tn_array *trimmed_along(const tn_array *y, int axis, bool front, bool back)
{
    tn_axes others = {.count = 0};
    for (int d = 0; d < tn_ndim(y); d++)
        if (d != axis)
            others.axis[others.count++] = d;
    const tn_reduce_opts opts = {.axis = others};
    tn_array *x = others.count ? tn_any_with(y, &opts) : tn__again(y);
    int64_t n = tn_size(x), first = 0, last = n;
    unsigned char *set = tn__alloc((size_t)n + 1);
    if (!set || tn_to_host(tn_cast(x, TN_BOOL), set, (size_t)n + 1) != TN_OK) {
        tn__free(set);
        return tn__failed_array();
    }
    while (front && first < n && !set[first])
        first++;
    while (back && last > first && !set[last - 1])
        last--;
    tn__free(set);
    return tn__cut(y, axis, first, last - first);
}

/* No axes: along all of them. */
static tn_array *trimmed(const tn_array *x, bool front, bool back, tn_axes axes)
{
    tn_array *y = tn__axes_fit("trim_zeros", axes, TN_MAX_NDIM) ? tn__again(x) : tn__failed_array();
    for (int i = 0; !tn_is_error(y) && i < (axes.count ? axes.count : tn_ndim(y)); i++) {
        int axis = axes.count ? tn__axis_of("trim_zeros", x, axes.axis[i]) : i;
        y = axis < 0 ? tn__failed_array() : trimmed_along(y, axis, front, back);
    }
    return y;
}

tn_array *tn_trim_zeros(const tn_array *x, bool front, bool back)
{
    TN__COMPOSE(trimmed(x, front, back, (tn_axes){0}));
}

tn_array *tn_trim_zeros_along(const tn_array *x, bool front, bool back, tn_axes axes)
{
    TN__COMPOSE(trimmed(x, front, back, axes));
}

/* ---- blocks ---- */

static tn_array *block(int rows, int columns, const tn_array *const *blocks)
{
    if (rows < 1 || columns < 1 || rows > INT32_MAX / columns)
        return tn__refused(TN_ERR_VALUE, "block", "expected at least one row and column of blocks, got %d and %d", rows,
                           columns);
    if (!blocks)
        return tn__refused(TN_ERR_VALUE, "block", "expected %d blocks, got NULL", rows * columns);
    int ndim = 2;
    for (int i = 0; i < rows * columns; i++)
        ndim = tn_ndim(blocks[i]) > ndim ? tn_ndim(blocks[i]) : ndim;
    tn_array *whole = NULL;
    for (int i = 0; i < rows; i++) {
        tn_array *row = tn__at_least(blocks[i * columns], ndim);
        for (int j = 1; j < columns; j++)
            row = tn_concatenate(2, (const tn_array *const[]){row, tn__at_least(blocks[i * columns + j], ndim)}, -1);
        whole = whole ? tn_concatenate(2, (const tn_array *const[]){whole, row}, -2) : row;
    }
    return whole;
}

tn_array *tn_block(int rows, int columns, const tn_array *const *blocks)
{
    TN__COMPOSE(block(rows, columns, blocks));
}
