/* SPDX-License-Identifier: MIT */
/* What the builders share among themselves: failing, recording, folding constants, the inference of
 * dtypes. */
#ifndef TN_ARRAY_BUILD_PARTS_H
#define TN_ARRAY_BUILD_PARTS_H

#include "array/build.h"

/* A public function's body: `node`, an expression over builders, as a handle. */
#define TN__RETURN(node) \
    do { \
        tn__call tn__this_call = tn__enter(); \
        return tn__leave_array(tn__this_call, node); \
    } while (0)

/* Returns a failed check from a builder. */
#define TN__REFUSE(code, ...) return tn__node_error(tn__error_new(code, __VA_ARGS__))
/* Returns an operand that is an error. */
#define TN__PASS_ERROR(node) \
    do { \
        if (tn__node_is_error(node)) \
            return node; \
    } while (0)

/* The interned shape of checked extents; NULL with a latched failure. */
const tn__shape *tn__shape_make(const char *operation, tn_shape shape, tn_dtype dtype);

/* Records an operation on the device of its first input. */
tn__node *tn__apply(tn__op op, tn_dtype dtype, const tn__shape *shape, int arity,
                    tn__node *const *in, tn__attr attr);

/* Ends a public call whose option `out` may name an array for the result: that is cast to its dtype, whatever kinds
 * they are, as NumPy's reductions do it. */
tn_array *tn__deliver(tn__call call, tn__node *result, tn_array *out);
/* A library's operation of the last axis alone. */
static inline bool tn__is_transform(tn__op op) { return op == TN__OP_FFT || op == TN__OP_RFFT || op == TN__OP_IRFFT; }
/* Does the device compute it of operands whose first one has that dtype and shape, or is it for the CPU? */
bool tn__native(const tn__device *device, tn__op op, tn_dtype dtype, const tn__shape *shape);
/* Records an operation, or, for one that the device does not have, its value computed on the CPU at once. */
tn__node *tn__apply_anywhere(tn__op op, tn_dtype dtype, const tn__shape *shape, int arity,
                             tn__node *const *in, tn__attr attr);

/* True for a constant that may be made anew with another dtype, shape or device: one that is no
 * leaf of backward. */
static inline bool tn__foldable(const tn__node *a)
{
    return a->op == TN__OP_CONST && !(a->flags & TN__NODE_NEEDS_GRAD);
}
/* True for a view that a view of it may pass over: nothing else (backward, a reader) needs it to be
 * on the way, and no gradient ends there that would go on without it. */
static inline bool tn__collapsible(const tn__node *a, tn__op op)
{
    int needed = TN__NODE_NEEDS_GRAD | TN__NODE_RELEASED | (tn__no_grad_depth ? 0 : TN__NODE_NO_GRAD);
    return a->op == op && !a->storage && !(a->flags & needed);
}
/* A constant's scalar as another dtype, by the rules of tn_cast. */
tn__scalar tn__scalar_cast(tn__scalar scalar, tn_dtype from, tn_dtype to);
/* Has the dtype a number, cut to a whole one if it is an integer dtype? Latches, and names the range, if not. Float
 * dtypes and bool have all. */
bool tn__number_fits(const char *operation, long double value, tn_dtype dtype);
/* The same of a weak scalar; anything else fits. */
bool tn__weak_fits(const char *operation, const tn__node *a, tn_dtype dtype);
/* Is it a weak scalar, and a whole number: of int64, or of uint64 beyond that? */
static inline bool tn__weak_integer(const tn__node *a)
{
    return a->flags & TN__NODE_WEAK && tn_dtype_is_integer((tn_dtype)a->dtype) && tn__foldable(a);
}
/* Whether a dtype has it. Latches nothing. */
bool tn__weak_holds(const tn__node *integer, tn_dtype dtype);
/* Its digits, in `text`, of TN__NUMBER_TEXT bytes. */
const char *tn__weak_text(const tn__node *integer, char *text);
#define TN__NUMBER_TEXT 32
/* A weak scalar as an ordinary array: bool, int64, uint64 or float32; anything else as it is. */
tn__node *tn__strong(tn__node *a);

/* How an elementwise operation computes its operands. */
typedef struct tn__map_rule {
    tn__op op;        /* the operation that does it: logical for bool */
    tn_dtype compute; /* T */
    tn_dtype result;
    bool weak; /* all operands are weak scalars */
} tn__map_rule;
/* Fills in the rule; false with a latched failure. */
bool tn__map_infer(tn__op op, int arity, tn__node *const *in, tn__map_rule *rule);
/* NumPy's common dtype of operands, some of them weak. */
tn_dtype tn__common_dtype(int count, tn__node *const *in, bool *all_weak);
/* The error node of two operands that are on different devices. */
tn__node *tn__two_devices(const char *operation, const tn__node *a, const tn__node *b);
/* The device that operands agree on (constants agree with any); NULL with a latched failure. */
tn__device *tn__common_device(const char *operation, int count, tn__node *const *in);
/* The shape that operands broadcast to, of elements of a dtype; NULL with a latched failure. */
const tn__shape *tn__common_shape(const char *operation, int count, tn__node *const *in, tn_dtype dtype);
/* The operand in a dtype, shape and device: constants are made anew, others cast and expanded. */
tn__node *tn__adapt(tn__node *a, tn_dtype dtype, const tn__shape *shape, tn__device *device);

/* What a handle of node `old` may be pointed at instead, of its shape, dtype and device: `value` broadcast and cast. */
tn__node *tn__assignable(const char *operation, tn__node *old, tn__node *value);

/* The option `where`: bools, or a C number; other dtypes are refused, as in NumPy. */
tn__node *tn__mask(const char *operation, const tn_array *where);
/* Without the axes of extent 1 in front that it has more than `ndim` axes. */
tn__node *tn__without_front(tn__node *a, int ndim);
/* An integer operand as int64 positions; an error node for other dtypes. Of uint64 what is larger than int64 is its
 * largest. */
tn__node *tn__positions(const char *operation, tn__node *indices);
/* The shape with one axis more, of extent 1, at position `axis`. */
tn__node *tn__insert_axis(const char *operation, tn__node *a, int axis);

#endif
