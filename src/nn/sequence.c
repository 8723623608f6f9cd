/* SPDX-License-Identifier: MIT */
/* Sequences of several lengths as one array. */
#include <inttypes.h>
#include <tanso/recurrent.h>

#include "core/memory.h"
#include "nn/terms.h"

/* Checked operands: the longest, in *longest; an error node, or NULL. */
static tn__node *longest_of(const char *operation, int count, tn__node *const *x, int64_t *longest)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    for (int i = 0; i < count; i++) {
        const tn__shape *a = x[i]->shape, *b = x[0]->shape;
        bool fits = a->ndim == b->ndim && a->ndim >= 1 && a->ndim < TN_MAX_NDIM && x[i]->dtype == x[0]->dtype;
        for (int k = 1; fits && k < a->ndim; k++)
            fits = a->dim[k] == b->dim[k];
        if (!fits)
            TN__REFUSE(TN_ERR_SHAPE, operation,
                       "expected sequences (length, ...) that are alike but for their lengths, of one dtype; got %s %s "
                       "and %s %s",
                       tn_dtype_name((tn_dtype)x[0]->dtype), tn__shape_text(b->ndim, b->dim, text),
                       tn_dtype_name((tn_dtype)x[i]->dtype), tn__shape_text(a->ndim, a->dim, other));
        if (a->dim[0] > *longest)
            *longest = a->dim[0];
    }
    return NULL;
}

static tn__node *padded(int count, tn__node *const *x, int64_t length, double padding)
{
    int64_t longest = 0, dim[TN_MAX_NDIM];
    tn__node *error = longest_of("pad_sequence", count, x, &longest);
    if (error)
        return error;
    if (length != 0 && length < longest)
        TN__REFUSE(TN_ERR_VALUE, "pad_sequence",
                   "expected a length of %" PRId64 ", the longest's, or more; got %" PRId64, longest, length);
    dim[0] = length ? length : longest;
    dim[1] = count;
    for (int k = 1; k < x[0]->shape->ndim; k++)
        dim[k + 1] = x[0]->shape->dim[k];
    const tn__shape *shape = tn__shape_intern(x[0]->shape->ndim + 1, dim);
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "pad_sequence", "no memory for a shape");
    tn__node *all = tn__const(padding, (tn_dtype)x[0]->dtype, shape, x[0]->device);
    for (int i = 0; i < count; i++)
        all = tn__update_along(all, tn__spread(x[i], 1), 1, i);
    return all;
}

/* The sequences' nodes, in memory of the caller's; NULL and latched if there is none. */
static tn__node **nodes_of(const char *operation, int count, const tn_array *const *xs, int more)
{
    tn__node **x = tn__calloc((size_t)count + (size_t)more, sizeof *x);
    if (!x)
        tn__fail_memory(operation, ((size_t)count + (size_t)more) * sizeof *x);
    for (int i = 0; i < count && x; i++)
        x[i] = tn__node_of(xs[i], operation);
    return x;
}

tn_array *tn_pad_sequence(int count, const tn_array *const *xs, int64_t length, double padding)
{
    static const char operation[] = "pad_sequence";
    tn__call call = tn__enter();
    if (count < 1 || !xs || length < 0) {
        tn__fail(TN_ERR_VALUE, operation, "expected 1 or more sequences and a length >= 0, got %d and %" PRId64,
                 xs ? count : 0, length);
        return tn__leave_error(call);
    }
    tn__node **x = nodes_of(operation, count, xs, 0);
    if (!x)
        return tn__leave_error(call);
    tn__node *error = tn__first_error(count, x);
    tn__node *y = error ? error : padded(count, x, length, padding);
    tn__free(x);
    return tn__leave_array(call, y);
}

/* ---- the other way round ---- */

static tn__node *longest_first(const char *operation, int count, tn__node *const *x)
{
    int64_t longest = 0;
    tn__node *error = tn__first_error(count, x);
    error = error ? error : longest_of(operation, count, x, &longest);
    for (int i = 1; i < count && !error; i++)
        if (x[i]->shape->dim[0] > x[i - 1]->shape->dim[0])
            TN__REFUSE(TN_ERR_VALUE, operation,
                       "expected sequences with the longest first; sequence %d has %" PRId64 " elements, the one "
                       "before it %" PRId64, i, x[i]->shape->dim[0], x[i - 1]->shape->dim[0]);
    return error;
}

tn_status tn_transpose_sequence(int count, const tn_array *const *xs, tn_array **out)
{
    static const char operation[] = "transpose_sequence";
    if (count < 1 || !xs || !out)
        return tn__fail(TN_ERR_VALUE, operation, "expected 1 or more sequences, got %d, and an array for the results",
                        xs ? count : 0);
    tn__call call = tn__enter();
    tn__node **x = nodes_of(operation, count, xs, count), **row = x + count;
    tn__node *error = x ? longest_first(operation, count, x) : tn__failed();
    int64_t steps = error ? 0 : x[0]->shape->dim[0];
    tn_status status = TN_OK;
    for (int64_t step = 0; step < steps && status == TN_OK; step++) {
        int rows = 0;
        for (; rows < count && x[rows]->shape->dim[0] > step; rows++)
            row[rows] = tn__piece(x[rows], 0, step, 1);
        out[step] = tn__leave_array(tn__enter(), tn__joined(rows, row, 0));
        status = tn_status_of(out[step]);
    }
    tn__free(x);
    if (error)
        return tn_status_of(tn__leave_array(call, error));
    tn__leave(call);
    return status;
}
