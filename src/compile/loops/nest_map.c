/* SPDX-License-Identifier: MIT */
/* Maps: where an element of a value is, as a function of a nest's loops, and where what a view shows of it is. */
#include "compile/loops/nest.h"

#include <string.h>

bool tn__map_identity(const tn__nest *nest, const tn__shape *shape, bool row, tn__map *map)
{
    int loop = 0;
    memset(map, 0, sizeof *map);
    for (int d = 0; d < shape->ndim; d++) {
        map->loop[d] = -1;
        if (shape->dim[d] == 1)
            continue;
        while (row && loop < nest->loop_count && nest->reduced >> loop & 1)
            loop++;
        if (loop >= nest->loop_count || nest->extent[loop] != shape->dim[d])
            return false;
        map->loop[d] = (int8_t)loop++;
        map->coefficient[d] = 1;
    }
    while (row && loop < nest->loop_count && nest->reduced >> loop & 1)
        loop++;
    return loop == nest->loop_count;
}

bool tn__map_equal(const tn__map *a, const tn__map *b, int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (a->loop[d] != b->loop[d] || a->offset[d] != b->offset[d] ||
            (a->loop[d] >= 0 && a->coefficient[d] != b->coefficient[d]))
            return false;
    return true;
}

bool tn__map_through(const tn__graph *graph, const tn__value *v, const tn__map *out, tn__map *in)
{
    const tn__shape *shape = graph->value[v->in[0]].shape;
    memset(in, 0, sizeof *in);
    if (v->op == TN__OP_WINDOWS) /* two loops along one dimension */
        return false;
    int other = 0;
    for (int d = 0; d < shape->ndim; d++) {
        int from = d; /* the view's dimension that dimension d follows */
        if (v->op == TN__OP_PERMUTE) {
            for (from = 0; v->attr.perm[from] != d;)
                from++;
        } else if (v->op == TN__OP_RESHAPE) {
            in->loop[d] = -1;
            if (shape->dim[d] == 1)
                continue;
            while (other < v->shape->ndim && v->shape->dim[other] == 1)
                other++;
            if (other == v->shape->ndim || v->shape->dim[other] != shape->dim[d])
                return false;
            from = other++;
        } else if (v->op == TN__OP_EXPAND && shape->dim[d] == 1) {
            in->loop[d] = -1;
            continue;
        }
        in->loop[d] = out->loop[from];
        in->coefficient[d] = out->coefficient[from];
        in->offset[d] = out->offset[from];
        if (v->op == TN__OP_SLICE) {
            in->offset[d] = v->attr.ints->v[2 * d] + v->attr.ints->v[2 * d + 1] * out->offset[d];
            in->coefficient[d] *= v->attr.ints->v[2 * d + 1];
        }
    }
    while (v->op == TN__OP_RESHAPE && other < v->shape->ndim)
        if (v->shape->dim[other++] != 1)
            return false;
    return true;
}
