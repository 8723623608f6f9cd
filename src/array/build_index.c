/* SPDX-License-Identifier: MIT */
/*
 * Positions that users give: as int64, and looked at. What gathers or scatters by them looks at them itself while it
 * runs; here is what looks where nothing is gathered, or nothing has any elements.
 */
#include "array/build_parts.h"
#include "core/memory.h"
#include "core/position.h"

#include <string.h>

/* 2^63 and more would become negative, which counts from the end. */
static tn__node *saturated(tn__node *indices)
{
    if (indices->dtype != TN_UINT64)
        return indices;
    tn__node *most = tn__const_scalar((tn__scalar){.bits = INT64_MAX}, TN_UINT64, indices->shape, indices->device);
    return tn__binary(TN__OP_MINIMUM, indices, most);
}

tn__node *tn__integers(tn__node *x)
{
    TN__PASS_ERROR(x);
    return tn__cast(saturated(x), TN_INT64);
}

tn__node *tn__positions(const char *operation, tn__node *indices)
{
    TN__PASS_ERROR(indices);
    if (!tn_dtype_is_integer(indices->dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation,
                   "indices must be integers, got %s; cast them with tn_cast(indices, TN_INT64)",
                   tn_dtype_name(indices->dtype));
    return tn__integers(tn__strong(indices));
}

/* Those below `least` shifted. */
static tn__node *shifted_below(tn__node *t, int least, int64_t shift)
{
    TN__PASS_ERROR(t);
    bool is_signed = tn__dtypes[t->dtype].class == TN__CLASS_SIGNED;
    tn__node *index = tn__integers(t);
    if (!is_signed && least == 0)
        return index;
    tn__node *below = tn__binary(TN__OP_LESS, index, tn__const_like(index, least));
    tn__node *named = index;
    if (t->dtype == TN_INT64)
        named = tn__binary(TN__OP_MAXIMUM, index, tn__const_like(index, TN__LABEL_LEAST));
    tn__node *by = tn__const_scalar((tn__scalar){.i = shift}, TN_INT64, index->shape, index->device);
    return tn__where(below, tn__binary(TN__OP_SUBTRACT, named, by), index);
}

tn__node *tn__labels(tn__node *t) { return shifted_below(t, 0, TN__LABEL_SHIFT); }

tn__node *tn__lengths(tn__node *t) { return shifted_below(t, 1, TN__LENGTH_SHIFT); }

/* What shifted_below makes of them: from where on they are valid. */
static bool is_shifted(const tn__node *n, tn__position_least *least)
{
    const tn__node *shifted = n->op == TN__OP_WHERE ? n->in[1] : NULL;
    if (!shifted || shifted->op != TN__OP_SUBTRACT)
        return false;
    const tn__node *named = shifted->in[0];
    if (named != n->in[2] && (named->op != TN__OP_MAXIMUM || named->in[0] != n->in[2]))
        return false;
    const tn__node *by = shifted->in[1];
    int64_t shift = by->op == TN__OP_CONST ? tn__scalar_to_int(by->attr.scalar, TN_INT64) : 0;
    if (shift == TN__LABEL_SHIFT || shift == TN__LENGTH_SHIFT)
        *least = shift == TN__LABEL_SHIFT ? TN__FROM_ZERO : TN__FROM_ONE;
    return shift == TN__LABEL_SHIFT || shift == TN__LENGTH_SHIFT;
}

/* What n's integers were made of, one of one; NULL where they were computed, or came from elsewhere. */
static tn__node *made_of(const tn__node *n, tn__position_least *least)
{
    if (!tn__node_pending(n))
        return NULL;
    bool saturates = n->op == TN__OP_MINIMUM && n->dtype == TN_UINT64 && n->in[1]->op == TN__OP_CONST;
    if (n->op == TN__OP_RESHAPE || saturates ||
        (n->op == TN__OP_CAST && tn_dtype_is_integer((tn_dtype)n->in[0]->dtype)))
        return n->in[0];
    return is_shifted(n, least) ? n->in[2] : NULL;
}

tn__node *tn__given_indices(tn__node *positions, tn__position_least *least)
{
    *least = TN__FROM_END;
    for (tn__node *n = positions;; positions = n) {
        n = tn__node_pending(n) && n->op == TN__OP_EXPAND ? n->in[0] : made_of(n, least);
        if (!n)
            return positions;
    }
}

/* The shape in which the user gave them, and from where on they are valid, where some were replaced by a constant, too:
 * those that do not count, or are wrong in another way. */
static const tn__shape *given_shape(const tn__node *given, tn__position_least *least)
{
    for (const tn__node *n = given;; given = n) {
        bool replaces = tn__node_pending(n) && n->op == TN__OP_WHERE;
        if (replaces && n->in[2]->op == TN__OP_CONST)
            n = n->in[1];
        else
            n = replaces && n->in[1]->op == TN__OP_CONST ? n->in[2] : made_of(n, least);
        if (!n)
            return given->shape;
    }
}

/* ---- looking while a graph runs, where nothing is gathered ---- */

tn__node *tn__positions_within(tn__node *positions, int axis, int64_t extent)
{
    TN__PASS_ERROR(positions);
    if (positions->shape->ndim == 0) {
        tn__node *one = tn__positions_within(tn__reshape(positions, 1, (int64_t[]){1}), 0, extent);
        return tn__reshape_like(one, positions->shape);
    }
    tn__node *from_end = tn__binary(TN__OP_ADD, positions, tn__const_like(positions, (double)extent));
    tn__node *place =
        tn__where(tn__binary(TN__OP_LESS, positions, tn__const_like(positions, 0)), from_end, positions);
    /* Whoever gathers by them without a look of its own may run before the failure is known: on a GPU, or fused. */
    place = tn__binary(TN__OP_MAXIMUM, place, tn__const_like(place, 0));
    place = tn__binary(TN__OP_MINIMUM, place, tn__const_like(place, extent > 0 ? (double)(extent - 1) : 0));
    if (positions->shape->size == 0)
        return place;
    /* A gather of nothing: one element in memory, best of the indices themselves, seen `extent` times. */
    tn__position_least least;
    tn__node *given = tn__given_indices(positions, &least);
    int64_t zero[TN_MAX_NDIM] = {0}, one[TN_MAX_NDIM], dim[TN_MAX_NDIM];
    for (int i = 0; i < TN_MAX_NDIM; i++)
        one[i] = dim[i] = 1;
    dim[axis] = extent;
    tn__node *any = tn__slice_node(given->storage ? given : positions, zero, one, one);
    any = tn__reshape(any, positions->shape->ndim, one);
    TN__PASS_ERROR(any);
    const tn__shape *seen = tn__shape_intern(positions->shape->ndim, dim);
    if (!seen) {
        tn__fail_memory("take", sizeof *seen);
        return tn__failed();
    }
    tn__node *looked = tn__cast(tn__gather(tn__expand(any, seen), positions, axis), TN_INT64);
    TN__PASS_ERROR(looked);
    return tn__binary(TN__OP_ADD, place, tn__binary(TN__OP_MULTIPLY, looked, tn__const_like(looked, 0)));
}

/* ---- looking at once ---- */

/* " at position (i, j)" of element `at`. */
static void say_where(char text[TN__SHAPE_TEXT + 16], const tn__shape *shape, int64_t at)
{
    int64_t place[TN_MAX_NDIM];
    char list[TN__SHAPE_TEXT];
    text[0] = 0;
    for (int i = shape->ndim; i-- > 0; at /= shape->dim[i])
        place[i] = at % shape->dim[i];
    if (shape->ndim == 1)
        snprintf(text, TN__SHAPE_TEXT + 16, " at position %lld", (long long)place[0]);
    else if (shape->ndim > 1)
        snprintf(text, TN__SHAPE_TEXT + 16, " at position %s", tn__shape_text(shape->ndim, place, list));
}

/* An integer in memory; of uint64 at most the largest int64. */
static int64_t integer_at(const char *memory, tn_dtype dtype)
{
    tn__scalar scalar = {.bits = 0};
    memcpy(scalar.bytes, memory, tn_dtype_size(dtype));
    int64_t value = tn__scalar_to_int(scalar, dtype);
    return dtype == TN_UINT64 && value < 0 ? INT64_MAX : value;
}

/* Integers as they were given or, where `least` is TN__FROM_END and `said` is not, were computed of those; told of as
 * elements of `shape`, valid as `said`. */
static tn_status look_at(const char *operation, const char *memory, tn_dtype dtype, const tn__shape *shape,
                         tn__position_least least, tn__position_least said, int64_t extent)
{
    for (int64_t i = 0; i < shape->size; i++) {
        int64_t index = integer_at(memory + i * (int64_t)tn_dtype_size(dtype), dtype);
        if (index < extent && index >= (least == TN__FROM_END ? -extent : least == TN__FROM_ONE))
            continue;
        char where[TN__SHAPE_TEXT + 16], text[TN__POSITION_TEXT];
        say_where(where, shape, i);
        bool is_signed = tn__dtypes[dtype].class != TN__CLASS_UNSIGNED;
        said = said == TN__FROM_END && !is_signed ? TN__FROM_ZERO : said;
        return tn__fail(TN_ERR_INDEX, operation, "%s",
                        least == TN__FROM_END && index < 0 ? tn__position_met(text, index, where, extent)
                                                           : tn__position_text(text, index, said, where, extent));
    }
    return TN_OK;
}

/* The value of a node in C order, on the host; the caller frees it. NULL with a latched failure. */
static char *value_on_host(tn__node *node)
{
    if (tn__node_pending(node) && tn__engine.evaluate(node) != TN_OK)
        return NULL;
    if (node->strides) {
        node = tn__node_new(TN__OP_COPY, (tn_dtype)node->dtype, node->shape, node->device, 1, &node, (tn__attr){0});
        if (tn__node_is_error(node) || tn__engine.evaluate(node) != TN_OK)
            return NULL;
    }
    size_t item = tn_dtype_size((tn_dtype)node->dtype), bytes = (size_t)node->shape->size * item;
    char *memory = tn__alloc(bytes + 1);
    if (!memory) {
        tn__fail_memory("take", bytes);
        return NULL;
    }
    tn_status status = tn__storage_check(node->storage);
    if (status == TN_OK)
        status = tn__storage_read(node->storage, memory,
                                  (char *)node->storage->memory + node->offset * (int64_t)item, bytes);
    if (status == TN_OK)
        return memory;
    tn__free(memory);
    return NULL;
}

tn_status tn__positions_look(const char *operation, tn__node *positions, int64_t extent)
{
    tn__position_least least;
    tn__node *given = tn__given_indices(positions, &least);
    if (tn__node_is_error(given))
        return tn__error_raise(given->error);
    if (given->shape->size == 0)
        return TN_OK;
    tn__position_least said = least;
    const tn__shape *shape = given_shape(given, &said); /* before it is computed, and forgets of what */
    char *memory = value_on_host(given);
    if (!memory)
        return tn__error_status(tn__error_last());
    tn_status status = look_at(operation, memory, (tn_dtype)given->dtype, shape, least, said, extent);
    tn__free(memory);
    return status;
}

tn__node *tn__positions_of(const tn__node *node, int64_t *extent)
{
    int kind = tn__ops[node->op].kind;
    if (node->storage || (kind != TN__KIND_SCATTER && (kind != TN__KIND_GATHER || node->attr.known)))
        return NULL;
    *extent = node->in[0]->shape->dim[node->attr.axis];
    return node->in[1];
}

tn_status tn__indices_look(tn__node *node)
{
    tn__node **stack = NULL;
    size_t depth = 0, capacity = 0;
    uint32_t stamp = tn__stamp();
    tn_status status = TN_OK;
    for (tn__node *next = node; next && status == TN_OK; next = depth ? stack[--depth] : NULL) {
        if (!(next->flags & TN__NODE_LOOKS) || next->mark >> 32 == stamp)
            continue;
        next->mark = (uint64_t)stamp << 32 | (uint32_t)next->mark; /* the lower half is the engine's */
        int64_t extent;
        tn__node *positions = tn__positions_of(next, &extent);
        if (positions)
            status = tn__positions_look(tn__ops[next->op].name, positions, extent);
        for (int i = 0; i < next->arity && status == TN_OK; i++) {
            if (!tn__grow((void **)&stack, &capacity, depth + 1, sizeof *stack))
                status = tn__fail_memory("assign", (depth + 1) * sizeof *stack);
            else
                stack[depth++] = next->in[i];
        }
    }
    tn__free(stack);
    return status;
}
