/* SPDX-License-Identifier: MIT */
/* Inserting and deleting along an axis: a few stretches joined, or a table of which elements come where, made on the
 * host. */
#include "numpy/compose.h"

#include <stdlib.h>

#include "array/build_parts.h"
#include "core/memory.h"

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
