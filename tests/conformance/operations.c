/* SPDX-License-Identifier: MIT */
/* The operations of tanso/array.h by name, for cases. */
#include "conformance/cases.h"

#include <string.h>

typedef const tn_array *const *operands;

/* An operation of another form: the operands, then the case's integers. */
typedef tn_array *(*form)(operands in, int count, const int64_t *v, int integers);

typedef struct row {
    const char *name;
    tn_array *(*unary)(const tn_array *);
    tn_array *(*binary)(const tn_array *, const tn_array *);
    tn_array *(*ternary)(const tn_array *, const tn_array *, const tn_array *);
    tn_array *(*reduce)(const tn_array *, const tn_reduce_opts *);
    tn_status (*assign)(tn_array *, const tn_array *);
    form other;
} row;

static tn_shape shape_of(const int64_t *v, int count)
{
    tn_shape shape = {.ndim = count};
    for (int i = 0; i < count && i < TN_MAX_NDIM; i++)
        shape.dim[i] = v[i];
    return shape;
}

static tn_axes axes_of(const int64_t *v, int count)
{
    tn_axes axes = {.count = count};
    for (int i = 0; i < count && i < TN_MAX_NDIM; i++)
        axes.axis[i] = (int)v[i];
    return axes;
}

static int ranges_of(const int64_t *v, int integers, tn_slice_range *ranges)
{
    for (int i = 0; i < integers / 3; i++)
        ranges[i] = (tn_slice_range){v[3 * i], v[3 * i + 1], v[3 * i + 2]};
    return integers / 3;
}

#define FORM(name, expression) \
    static tn_array *name(operands in, int count, const int64_t *v, int integers) \
    { \
        (void)in, (void)count, (void)v, (void)integers; \
        return expression; \
    }
FORM(do_cast, tn_cast(in[0], (tn_dtype)(v[0] + 1)))
FORM(do_reshape, tn_reshape(in[0], shape_of(v, integers)))
FORM(do_transpose, tn_transpose(in[0], axes_of(v, integers)))
FORM(do_swapaxes, tn_swapaxes(in[0], (int)v[0], (int)v[1]))
FORM(do_expand_dims, tn_expand_dims(in[0], (int)v[0]))
FORM(do_squeeze, tn_squeeze(in[0], axes_of(v, integers)))
FORM(do_broadcast_to, tn_broadcast_to(in[0], shape_of(v, integers)))
FORM(do_flip, tn_flip(in[0], axes_of(v, integers)))
FORM(do_slice_axis, tn_slice_axis(in[0], (int)v[0], v[1], v[2], v[3]))
FORM(do_index, tn_index(in[0], v[0]))
FORM(do_concatenate, tn_concatenate(count, in, (int)v[0]))
FORM(do_stack, tn_stack(count, in, (int)v[0]))
FORM(do_take, tn_take(in[0], in[1], (int)v[0]))
FORM(do_take_along, tn_take_along_axis(in[0], in[1], (int)v[0]))
FORM(do_scatter_add, tn_scatter_add(in[0], in[1], in[2], (int)v[0]))
FORM(do_one_hot, tn_one_hot(in[0], v[0], (tn_dtype)(v[1] + 1)))
FORM(do_softmax, tn_softmax(in[0], (int)v[0]))
FORM(do_log_softmax, tn_log_softmax(in[0], (int)v[0]))
FORM(do_zeros, tn_zeros(shape_of(v + 1, integers - 1), .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_ones, tn_ones(shape_of(v + 1, integers - 1), .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_full, tn_full(shape_of(v + 2, integers - 2), (double)v[1], .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_scalar, tn_scalar((double)v[1], .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_eye, tn_eye(v[1], v[2], .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_arange, tn_arange((double)v[1], (double)v[2], (double)v[3], .dtype = (tn_dtype)(v[0] + 1)))
FORM(do_linspace, tn_linspace((double)v[1], (double)v[2], v[3], .dtype = (tn_dtype)(v[0] + 1)))

static tn_array *do_slice(operands in, int count, const int64_t *v, int integers)
{
    (void)count;
    tn_slice_range ranges[TN_MAX_NDIM];
    return tn_slice(in[0], ranges_of(v, integers, ranges), ranges);
}

static tn_array *do_slice_update(operands in, int count, const int64_t *v, int integers)
{
    (void)count;
    tn_slice_range ranges[TN_MAX_NDIM];
    return tn_slice_update(in[0], ranges_of(v, integers, ranges), ranges, in[1]);
}

static tn_array *do_split(operands in, int count, const int64_t *v, int integers)
{
    (void)count, (void)integers;
    tn_array *parts[4];
    return tn_split(in[0], (int)v[0], (int)v[1], parts) == TN_OK ? parts[v[2]] : NULL;
}

#define UNARY(op) \
    { \
        .name = #op, .unary = tn_##op \
    }
#define BINARY(op) \
    { \
        .name = #op, .binary = tn_##op \
    }
#define TERNARY(op) \
    { \
        .name = #op, .ternary = tn_##op \
    }
#define REDUCE(op) \
    { \
        .name = #op, .reduce = tn_##op##_with \
    }
#define ASSIGN(op) \
    { \
        .name = #op, .assign = tn_##op \
    }
#define OTHER(op, function) \
    { \
        .name = #op, .other = function \
    }

static const row rows[] = {
    UNARY(negative),
    UNARY(abs),
    UNARY(sign),
    UNARY(square),
    UNARY(reciprocal),
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(cbrt),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(arcsin),
    UNARY(arccos),
    UNARY(arctan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(arcsinh),
    UNARY(arccosh),
    UNARY(arctanh),
    UNARY(erf),
    UNARY(erfc),
    UNARY(sigmoid),
    UNARY(softplus),
    UNARY(relu),
    UNARY(gelu),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(rint),
    UNARY(isnan),
    UNARY(isinf),
    UNARY(isfinite),
    UNARY(signbit),
    UNARY(logical_not),
    UNARY(invert),
    UNARY(zeros_like),
    UNARY(ones_like),
    UNARY(flatten),
    BINARY(add),
    BINARY(subtract),
    BINARY(multiply),
    BINARY(divide),
    BINARY(floor_divide),
    BINARY(remainder),
    BINARY(fmod),
    BINARY(power),
    BINARY(maximum),
    BINARY(minimum),
    BINARY(fmax),
    BINARY(fmin),
    BINARY(arctan2),
    BINARY(hypot),
    BINARY(copysign),
    BINARY(logaddexp),
    BINARY(equal),
    BINARY(not_equal),
    BINARY(less),
    BINARY(less_equal),
    BINARY(greater),
    BINARY(greater_equal),
    BINARY(logical_and),
    BINARY(logical_or),
    BINARY(logical_xor),
    BINARY(bitwise_and),
    BINARY(bitwise_or),
    BINARY(bitwise_xor),
    BINARY(left_shift),
    BINARY(right_shift),
    BINARY(matmul),
    TERNARY(where),
    TERNARY(clip),
    REDUCE(sum),
    REDUCE(prod),
    REDUCE(mean),
    REDUCE(var),
    REDUCE(std),
    REDUCE(max),
    REDUCE(min),
    REDUCE(any),
    REDUCE(all),
    REDUCE(argmax),
    REDUCE(argmin),
    REDUCE(logsumexp),
    ASSIGN(assign),
    ASSIGN(add_assign),
    ASSIGN(subtract_assign),
    ASSIGN(multiply_assign),
    ASSIGN(divide_assign),
    OTHER(cast, do_cast),
    OTHER(reshape, do_reshape),
    OTHER(transpose, do_transpose),
    OTHER(swapaxes, do_swapaxes),
    OTHER(expand_dims, do_expand_dims),
    OTHER(squeeze, do_squeeze),
    OTHER(broadcast_to, do_broadcast_to),
    OTHER(flip, do_flip),
    OTHER(slice, do_slice),
    OTHER(slice_axis, do_slice_axis),
    OTHER(index, do_index),
    OTHER(slice_update, do_slice_update),
    OTHER(concatenate, do_concatenate),
    OTHER(stack, do_stack),
    OTHER(split, do_split),
    OTHER(take, do_take),
    OTHER(take_along_axis, do_take_along),
    OTHER(scatter_add, do_scatter_add),
    OTHER(one_hot, do_one_hot),
    OTHER(softmax, do_softmax),
    OTHER(log_softmax, do_log_softmax),
    OTHER(zeros, do_zeros),
    OTHER(ones, do_ones),
    OTHER(full, do_full),
    OTHER(scalar, do_scalar),
    OTHER(eye, do_eye),
    OTHER(arange, do_arange),
    OTHER(linspace, do_linspace),
};

const char *operation_name(int i)
{
    return i < (int)(sizeof rows / sizeof *rows) ? rows[i].name : NULL;
}

/* keepdims, dtype (1 + its position), ddof, number of axes, axes */
static tn_array *reduced(const row *r, const tn_array *x, const int64_t *v)
{
    tn_reduce_opts opts = {.keepdims = v[0],
                           .ddof = (int)v[2],
                           .axis = axes_of(v + 4, (int)v[3]),
                           .dtype = (tn_dtype)v[1]};
    return r->reduce(x, &opts);
}

tn_array *case_array(const one_case *c)
{
    tn_array *in[MAX_OPERANDS];
    const row *r = rows;
    while (r->name && strcmp(r->name, c->operation) != 0)
        if (++r == rows + sizeof rows / sizeof *rows)
            return NULL;
    for (int i = 0; i < c->operands; i++)
        in[i] = operand_array(&c->in[i]);
    if (r->unary)
        return r->unary(in[0]);
    if (r->binary)
        return r->binary(in[0], in[1]);
    if (r->ternary)
        return r->ternary(in[0], in[1], in[2]);
    if (r->reduce)
        return reduced(r, in[0], c->integer);
    if (r->assign)
        return r->assign(in[0], in[1]) == TN_OK ? in[0] : NULL;
    return r->other((operands)in, c->operands, c->integer, c->integers);
}
