/* SPDX-License-Identifier: MIT */
/* Strided index spaces and cursors over them. */
#include "backends/cpu/base/strided.h"

#include "core/dtype.h"

/* True if axis `next`, just inside axis `last`, continues it for every operand. */
static bool merges(const tn__cpu_space *space, int last, int64_t dim, const int64_t *const *stride,
                   const int64_t *itemsize, int axis)
{
    for (int k = 0; k < space->count; k++)
        if (space->stride[k][last] != stride[k][axis] * itemsize[k] * dim)
            return false;
    return true;
}

void tn__cpu_space_make(tn__cpu_space *space, uint32_t mask, int ndim, const int64_t *dim, int count,
                        const int64_t *const *stride, const int64_t *itemsize)
{
    space->ndim = 0;
    space->count = count;
    space->size = 1;
    for (int i = 0; i < ndim; i++) {
        if (!(mask >> i & 1) || dim[i] == 1)
            continue;
        space->size *= dim[i];
        int last = space->ndim - 1;
        if (last >= 0 && merges(space, last, dim[i], stride, itemsize, i))
            space->dim[last] *= dim[i];
        else
            space->dim[++last] = dim[i];
        for (int k = 0; k < count; k++)
            space->stride[k][last] = stride[k][i] * itemsize[k];
        space->ndim = last + 1;
    }
}

void tn__cpu_space_of(tn__cpu_space *space, int count, const tn__operand *operand)
{
    const int64_t *stride[TN__CPU_OPERANDS];
    int64_t itemsize[TN__CPU_OPERANDS];
    for (int k = 0; k < count; k++) {
        stride[k] = operand[k].stride;
        itemsize[k] = tn__dtypes[operand[k].dtype].size;
    }
    tn__cpu_space_make(space, ~0u, operand[0].ndim, operand[0].dim, count, stride, itemsize);
}

void tn__cpu_cursor_set(tn__cpu_cursor *cursor, const tn__cpu_space *space, char *const *base, int64_t start)
{
    cursor->space = space;
    for (int k = 0; k < space->count; k++)
        cursor->p[k] = base[k];
    for (int i = space->ndim - 1; i >= 0 && space->size > 0; i--) {
        cursor->index[i] = start % space->dim[i];
        start /= space->dim[i];
        for (int k = 0; k < space->count; k++)
            cursor->p[k] += cursor->index[i] * space->stride[k][i];
    }
}

void tn__cpu_cursor_move(tn__cpu_cursor *cursor, int64_t count)
{
    const tn__cpu_space *space = cursor->space;
    for (int i = space->ndim - 1; i >= 0; i--) {
        cursor->index[i] += count;
        for (int k = 0; k < space->count; k++)
            cursor->p[k] += count * space->stride[k][i];
        if (cursor->index[i] < space->dim[i])
            return;
        for (int k = 0; k < space->count; k++)
            cursor->p[k] -= cursor->index[i] * space->stride[k][i];
        cursor->index[i] = 0;
        count = 1;
    }
}
