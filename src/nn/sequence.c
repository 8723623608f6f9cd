/* SPDX-License-Identifier: MIT */
/* Sequences of several lengths as one array. */
#include <inttypes.h>
#include <tanso/recurrent.h>

#include "core/memory.h"
#include "nn/terms.h"

/* Checked operands: the longest, in *longest; an error node, or NULL. */
static tn__node *longest_of(int count, tn__node *const *x, int64_t *longest)
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    for (int i = 0; i < count; i++) {
        const tn__shape *a = x[i]->shape, *b = x[0]->shape;
        bool fits = a->ndim == b->ndim && a->ndim >= 1 && a->ndim < TN_MAX_NDIM && x[i]->dtype == x[0]->dtype;
        for (int k = 1; fits && k < a->ndim; k++)
            fits = a->dim[k] == b->dim[k];
        if (!fits)
            TN__REFUSE(TN_ERR_SHAPE, "pad_sequence",
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
    tn__node *error = longest_of(count, x, &longest);
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

tn_array *tn_pad_sequence(int count, const tn_array *const *xs, int64_t length, double padding)
{
    static const char operation[] = "pad_sequence";
    tn__call call = tn__enter();
    if (count < 1 || !xs || length < 0) {
        tn__fail(TN_ERR_VALUE, operation, "expected 1 or more sequences and a length >= 0, got %d and %" PRId64,
                 xs ? count : 0, length);
        return tn__leave_error(call);
    }
    tn__node **x = tn__calloc((size_t)count, sizeof *x);
    if (!x) {
        tn__fail_memory(operation, (size_t)count * sizeof *x);
        return tn__leave_error(call);
    }
    for (int i = 0; i < count; i++)
        x[i] = tn__node_of(xs[i], operation);
    tn__node *error = tn__first_error(count, x);
    tn__node *y = error ? error : padded(count, x, length, padding);
    tn__free(x);
    return tn__leave_array(call, y);
}
