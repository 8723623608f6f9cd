/* SPDX-License-Identifier: MIT */
/* Joining and splitting: the stack and split families, append, insert, delete. */
#include "numpy/compose.h"

#include <stdlib.h>

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

/* ---- insert and delete: a few stretches joined, or a table of which elements come where, made on the host ---- */

enum { MOST_PARTS = 48 };

/* Stretches of arrays along an axis, one behind the other; more than MOST_PARTS of them are counted only. */
typedef struct parts {
    int count, along;
    tn_array *part[MOST_PARTS];
} parts;

static void add_part(parts *p, const tn_array *x, int64_t start, int64_t end)
{
    if (start >= end)
        return;
    if (p->count < MOST_PARTS)
        p->part[p->count] = tn__cut(x, p->along, start, end - start);
    p->count++;
}

static tn_array *joined(const parts *p)
{
    return tn_concatenate(p->count, (const tn_array *const *)p->part, p->along);
}

/* The one axis, or the flat array; -1 and a latched failure. */
static int one_axis(const char *operation, tn_array **x, tn_axes axis)
{
    if (axis.count == 0) {
        *x = tn_ravel(*x);
        return tn_is_error(*x) ? -1 : 0;
    }
    return tn_is_error(*x) ? -1 : tn__axis_of_list(operation, axis, 0, tn_ndim(*x));
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* All places but those at the `count` ascending positions. */
static tn_array *places_but(const tn_array *like, int64_t extent, const int64_t *gone, int count)
{
    int64_t *places = tn__alloc(sizeof *places * (size_t)(extent + 1)), kept = 0;
    if (!places)
        return tn__refused(TN_ERR_MEMORY, "delete", "no memory for %lld places", (long long)extent);
    int next = 0;
    for (int64_t i = 0; i < extent; i++) {
        for (; next < count && gone[next] < i; next++)
            ;
        if (next == count || gone[next] != i)
            places[kept++] = i;
    }
    tn_array *result = tn__positions_like(like, places, kept);
    tn__free(places);
    return result;
}

static tn_array *without(const tn_array *x, int count, const int64_t *positions, tn_axes axis)
{
    if (count < 0 || (count > 0 && !positions))
        return tn__refused(TN_ERR_VALUE, "delete", "expected positions, got %d of them%s", count,
                           positions ? "" : ", NULL");
    tn_array *y = tn__again(x);
    int along = one_axis("delete", &y, axis);
    if (along < 0)
        return tn__failure(y);
    int64_t extent = tn_dim(y, along), *gone = tn__alloc(sizeof *gone * (size_t)count);
    tn_array *result = gone ? NULL : tn__refused(TN_ERR_MEMORY, "delete", "no memory for %d positions", count);
    for (int i = 0; i < count && !result; i++) {
        gone[i] = positions[i] < 0 ? positions[i] + extent : positions[i];
        if (gone[i] < 0 || gone[i] >= extent)
            result = tn__refused(TN_ERR_INDEX, "delete", "position %lld is out of range for an axis of extent %lld",
                                 (long long)positions[i], (long long)extent);
    }
    if (!result) {
        if (count > 1)
            qsort(gone, (size_t)count, sizeof *gone, by_value);
        parts stretches = {.along = along};
        for (int i = 0; i <= count && stretches.count <= MOST_PARTS; i++)
            add_part(&stretches, y, i ? gone[i - 1] + 1 : 0, i < count ? gone[i] : extent);
        result = stretches.count > 0 && stretches.count <= MOST_PARTS
                     ? joined(&stretches)
                     : tn_take(y, places_but(y, extent, gone, count), along);
    }
    tn__free(gone);
    return result;
}

tn_array *tn_delete(const tn_array *x, int count, const int64_t *positions, tn_axes axis)
{
    TN__COMPOSE(without(x, count, positions, axis));
}

/* The values in y's axes: `count` places along `along`, or, for one position, all that there are; the other extents
 * y's. */
static tn_array *insertable(const tn_array *values, const tn_array *y, int along, int count)
{
    tn_shape shape = tn_shape_of(y);
    tn_array *v = tn_cast(values, tn_dtype_of(y));
    while (!tn_is_error(v) && tn_ndim(v) > shape.ndim && tn_dim(v, 0) == 1)
        v = tn_squeeze(v, tn__axes_of(1, (int[]){0}));
    shape.dim[along] = count;
    if (count == 1 && tn_ndim(v) <= shape.ndim && !tn_is_error(v)) { /* NumPy: the first axis of values goes there */
        v = tn_moveaxis(tn__at_least(v, shape.ndim), tn__axes_of(1, (int[]){0}), tn__axes_of(1, &along));
        shape.dim[along] = tn_dim(v, along);
    }
    return tn_broadcast_to(v, shape);
}

/* A value to insert: its position, its number. */
typedef struct placed {
    int64_t position, number;
} placed;

static int by_position(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->position != y->position ? (x->position > y->position) - (x->position < y->position)
                                      : (x->number > y->number) - (x->number < y->number);
}

/* For each place of the result the number of the element of y, or extent + the number of the value, that goes there. */
static void interleave(const placed *order, int64_t n, int64_t extent, int64_t *places)
{
    int64_t at = 0, next = 0;
    for (int64_t i = 0; i <= extent; i++) {
        for (; next < n && order[next].position == i; next++)
            places[at++] = extent + order[next].number;
        if (i < extent)
            places[at++] = i;
    }
}

/* The same as stretches of y and of the values v. */
static void stretches_of(const placed *order, int64_t n, const tn_array *y, int64_t extent, const tn_array *v, parts *p)
{
    int64_t done = 0;
    for (int64_t next = 0, end; next < n && p->count <= MOST_PARTS; next = end) {
        for (end = next + 1; end < n && order[end].position == order[next].position; end++)
            if (order[end].number != order[end - 1].number + 1)
                break;
        add_part(p, y, done, order[next].position);
        add_part(p, v, order[next].number, order[next].number + end - next);
        done = order[next].position;
    }
    add_part(p, y, done, extent);
}

static tn_array *inserted(const tn_array *x, int count, const int64_t *positions, const tn_array *values, tn_axes axis)
{
    if (count < 0 || (count > 0 && !positions))
        return tn__refused(TN_ERR_VALUE, "insert", "expected positions, got %d of them%s", count,
                           positions ? "" : ", NULL");
    tn_array *y = tn__again(x);
    int along = one_axis("insert", &y, axis);
    if (along < 0)
        return tn__failure(y);
    tn_array *v = insertable(values, y, along, count);
    if (tn_is_error(v))
        return v;
    int64_t extent = tn_dim(y, along), n = tn_dim(v, along);
    placed *order = tn__alloc(sizeof *order * (size_t)(n + 1));
    int64_t *places = tn__alloc(sizeof(int64_t) * (size_t)(extent + n + 1));
    tn_array *result =
        order && places ? NULL : tn__refused(TN_ERR_MEMORY, "insert", "no memory for %lld places", (long long)n);
    for (int64_t i = 0; i < n && !result; i++) {
        int64_t given = positions[count == 1 ? 0 : i], at = given < 0 ? given + extent : given;
        order[i] = (placed){at, i};
        if (at < 0 || at > extent)
            result = tn__refused(TN_ERR_INDEX, "insert", "position %lld is out of range for an axis of extent %lld",
                                 (long long)given, (long long)extent);
    }
    if (!result) {
        if (count > 1)
            qsort(order, (size_t)n, sizeof *order, by_position);
        parts stretches = {.along = along};
        stretches_of(order, n, y, extent, v, &stretches);
        if (stretches.count > 0 && stretches.count <= MOST_PARTS) {
            result = joined(&stretches);
        } else {
            interleave(order, n, extent, places);
            tn_array *both = tn_concatenate(2, (const tn_array *const[]){y, v}, along);
            result = tn_take(both, tn__positions_like(y, places, extent + n), along);
        }
    }
    tn__free(order);
    tn__free(places);
    return result;
}

tn_array *tn_insert(const tn_array *x, int count, const int64_t *positions, const tn_array *values, tn_axes axis)
{
    TN__COMPOSE(inserted(x, count, positions, values, axis));
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
