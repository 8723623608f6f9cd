/* SPDX-License-Identifier: MIT */
/*
 * The straight way from a call to its node and handle, which most calls of elementwise functions can go: operands of
 * one float dtype, shape and device, that this thread may use, and an operation that such operands need no inference
 * for. Nothing is converted or broadcast and nothing can fail, so the one new node is the result, and it needs no place
 * in the list of temporaries. Whatever is not so goes through build_map.c, which gives the same node;
 * tests/array/test_plain.c compares.
 */
#include "array/plain.h"

#include "array/build.h"
#include "array/fresh.h"
#include "tn_op_functions.h"

/* What an operation makes of operands of one float dtype. */
enum {
    PLAIN = 1,         /* computes in that dtype, no operand is a condition */
    TRUTH = 2,         /* gives bool */
    DIFFERENTIABLE = 4 /* has a gradient rule, and gives that dtype */
};
#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, props, EXPR, doc) \
    [TN__OP_##ID] = ((TN__TYPES_##TYPES == TN__TYPES_FLOATS || TN__TYPES_##TYPES == TN__TYPES_NUMBERS || \
                      TN__TYPES_##TYPES == TN__TYPES_ALL) && !((props) & TN_CONDITION) && \
                     TN__RESULT_##RESULT != TN__RESULT_INT64 \
                         ? PLAIN : 0) | \
                    (TN__RESULT_##RESULT == TN__RESULT_BOOL ? TRUTH \
                     : __builtin_strcmp(#grad, "none") ? DIFFERENTIABLE : 0),
static const unsigned char manners[TN__OP_COUNT] = {
#include "ops/ops.def"
};

/* An operand of a float dtype, which errors have not, that can be recorded as it is. */
static inline bool is_fit(const tn__thread *self, const tn__node *a)
{
    return (a->storage || a->owner == self->number) && !(a->flags & (TN__NODE_WEAK | TN__NODE_RELEASED)) &&
           a->depth < tn__max_depth();
}

/* Nothing is posted, nobody has to look after guards, and there is memory at hand: what follows then calls nothing and
 * needs no stack. */
static inline bool is_ready(const tn__thread *self)
{
    return tn__thread_state(self) == TN__CALM && self->slabs[TN__SLAB_NODE].list && self->slabs[TN__SLAB_ARRAY].list &&
           self->pending_count < self->pending_capacity;
}

/* The handle of a new node over one or two fit operands. */
static inline __attribute__((always_inline)) tn_array *record(tn__thread *self, tn__op op, int manner, int arity,
                                                              tn__node *a, tn__node *b)
{
    tn__node *node = tn__slab_take_listed(&self->slabs[TN__SLAB_NODE], TN__SLAB_NODE);
    tn__handle *x = tn__slab_take_listed(&self->slabs[TN__SLAB_ARRAY], TN__SLAB_ARRAY);
    int flags = (arity == 2 ? a->flags | b->flags : a->flags) & (TN__NODE_NEEDS_GRAD | TN__NODE_LOOKS);
    if (__builtin_expect(tn__no_grad_depth > 0, 0))
        flags = (flags & TN__NODE_LOOKS) | TN__NODE_NO_GRAD;
    else if (flags && !(manner & DIFFERENTIABLE))
        flags &= TN__NODE_LOOKS;
    tn__node_begin(self, node, op, manner & TRUTH ? TN_BOOL : (tn_dtype)a->dtype, flags, a->shape, a->device);
    node->arity = (uint8_t)arity;
    node->depth = 1 + (arity == 2 && b->depth > a->depth ? b->depth : a->depth);
    node->in[0] = tn__node_retain(a);
    if (arity == 2)
        node->in[1] = tn__node_retain(b);
    tn__handle_begin(self, x, node);
    self->pending[self->pending_count++] = x;
    tn__pending_place(x, self->pending_count);
    tn__scope_add(self->innermost, x);
    tn__thread_count_live(self, 1);
    return tn__handle_array(x);
}

static __attribute__((noinline)) tn_array *map_1(tn__op op, const tn_array *x)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, tn__unary(op, tn__node_of(x, tn__ops[op].name)));
}

static __attribute__((noinline)) tn_array *map_2(tn__op op, const tn_array *x, const tn_array *y)
{
    const char *name = tn__ops[op].name;
    tn__call call = tn__enter();
    return tn__leave_array(call, tn__binary(op, tn__node_of(x, name), tn__node_of(y, name)));
}

tn_array *tn__map_1(tn__op op, const tn_array *x)
{
    tn__thread *self = tn__self();
    int manner = manners[op];
    if (__builtin_expect(x && manner & PLAIN && is_ready(self) && tn__handle_is_live(x), 1)) {
        tn__node *a = tn__array_node(x);
        if (__builtin_expect(tn__dtypes[a->dtype].class == TN__CLASS_FLOAT && is_fit(self, a), 1))
            return record(self, op, manner, 1, a, NULL);
    }
    return map_1(op, x);
}

tn_array *tn__map_2(tn__op op, const tn_array *x, const tn_array *y)
{
    tn__thread *self = tn__self();
    int manner = manners[op];
    if (__builtin_expect(x && y && manner & PLAIN && is_ready(self) && tn__handle_is_live(x) && tn__handle_is_live(y),
                         1)) {
        tn__node *a = tn__array_node(x), *b = tn__array_node(y);
        if (__builtin_expect(a->shape == b->shape && a->dtype == b->dtype && a->device == b->device &&
                                 tn__dtypes[a->dtype].class == TN__CLASS_FLOAT && is_fit(self, a) && is_fit(self, b),
                             1))
            return record(self, op, manner, 2, a, b);
    }
    return map_2(op, x, y);
}
