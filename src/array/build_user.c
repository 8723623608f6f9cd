/* SPDX-License-Identifier: MIT */
/*
 * Calls of users' kernels as nodes: which dtypes the letters stand for, operands made to fit, one USER node an output,
 * a USER_REDUCE node for a combination. What a text mentions beside its parameters (i, size, ...) is an operand like
 * any other: positions are IOTA nodes, extents constants.
 */
#include <string.h>

#include "array/build_parts.h"
#include "array/user.h"

/* ---- dtypes ---- */

/* NumPy's casting rule same_kind, for operands of parameters that name their dtype. */
static bool castable(tn_dtype from, tn_dtype to)
{
    int a = tn__dtypes[from].class, b = tn__dtypes[to].class;
    return a <= b || (a == TN__CLASS_UNSIGNED && b == TN__CLASS_SIGNED);
}

static bool check_cast(const tn_kernel *kernel, const tn__user_param *param, const tn__node *in)
{
    bool weak_integer = tn__weak_integer(in) && param->dtype != TN_BOOL;
    if (weak_integer || castable(in->dtype, param->dtype))
        return true;
    tn__fail(TN_ERR_DTYPE, kernel->name,
             "argument %s is %s, got %s, which does not become that without loss: use tn_cast", param->name,
             tn_dtype_name(param->dtype), tn_dtype_name(in->dtype));
    return false;
}

/* The dtype of each letter that inputs fix. */
static bool find_letters(const tn_kernel *kernel, const tn__user_part *part, tn__node *const *in, tn_dtype fallback,
                         tn_dtype letter[26])
{
    for (int k = 0; k < part->in_count; k++) {
        const tn__user_param *param = &part->in[k];
        if (!param->letter) {
            if (param->dtype && !check_cast(kernel, param, in[k]))
                return false;
            continue;
        }
        if (letter[param->letter - 'A'])
            continue;
        tn__node *same[TN__USER_PARAMS];
        int count = 0;
        bool weak;
        for (int j = k; j < part->in_count; j++)
            if (part->in[j].letter == param->letter)
                same[count++] = in[j];
        tn_dtype dtype = tn__common_dtype(count, same, &weak);
        letter[param->letter - 'A'] = weak && fallback ? fallback : dtype;
    }
    return true;
}

/* Parameters without letter and dtype are the library's own: a map's result, and the reduced value. */
static bool find_dtypes(const tn_kernel *kernel, const tn__user_part *part, tn__node *const *in,
                        const tn__user_wish *wish, tn__user *user)
{
    tn_dtype letter[26] = {0}, fallback = wish->dtype;
    if (!find_letters(kernel, part, in, fallback, letter))
        return false;
    for (int k = 0; k < part->in_count; k++) {
        const tn__user_param *param = &part->in[k];
        user->in[k] = param->letter  ? letter[param->letter - 'A']
                      : param->dtype ? param->dtype
                                     : (tn_dtype)in[k]->dtype;
        user->raw |= (uint32_t)param->raw << k;
        if (param->raw && tn__dtypes[user->in[k]].compute != (unsigned char)user->in[k])
            return tn__fail(TN_ERR_DTYPE, kernel->name,
                            "the raw argument %s is %s, which is computed in another dtype than it "
                            "is stored in: tn_cast it to float32",
                            param->name, tn_dtype_name(user->in[k])),
                   false;
    }
    for (int k = 0; k < part->out_count; k++) {
        const tn__user_param *param = &part->out[k];
        user->out[k] = param->letter  ? letter[param->letter - 'A']
                       : param->dtype ? param->dtype
                                      : wish->accumulator;
        if (!user->out[k] && param->letter)
            user->out[k] = letter[param->letter - 'A'] = fallback;
        if (!user->out[k])
            return tn__fail(TN_ERR_DTYPE, kernel->name,
                            "nothing says what the dtype %c of output %s is: give the option .dtype "
                            "or .out, or name the dtype in the parameter list",
                            param->letter, param->name),
                   false;
    }
    return true;
}

/* ---- operands ---- */

/* An operand whose memory is whole and in C order when the kernel reads it. */
static tn__node *as_memory(tn__node *a, tn_dtype dtype, tn__device *device)
{
    a = tn__adapt(a, dtype, a->shape, device);
    TN__PASS_ERROR(a);
    bool view = a->storage ? a->strides != NULL : tn__ops[a->op].kind == TN__KIND_VIEW;
    return view ? tn__apply(TN__OP_COPY, dtype, a->shape, 1, &a, (tn__attr){.raw = {0}}) : a;
}

/* The shape that the operands which are walked through have together, or the one asked for. */
static const tn__shape *loop_shape(const tn_kernel *kernel, const tn__user_part *part, tn__node *const *in,
                                   const tn__shape *wanted)
{
    tn__node *walked[TN__USER_PARAMS];
    int count = 0;
    bool arrays = false;
    for (int k = 0; k < part->in_count; k++)
        if (!part->in[k].raw) {
            walked[count++] = in[k];
            arrays = arrays || !(in[k]->flags & TN__NODE_WEAK);
        }
    if (!arrays && !wanted) {
        tn__fail(TN_ERR_SHAPE, kernel->name,
                 "no argument says over which shape to run (all are raw or numbers): give the option .shape or .out");
        return NULL;
    }
    const tn__shape *shape = count ? tn__common_shape(kernel->name, count, walked, TN_UINT8) : wanted;
    tn_shape both;
    if (!shape || !wanted || shape == wanted)
        return shape;
    if (tn__shape_broadcast(shape, wanted, &both) && tn__shape_intern(both.ndim, both.dim) == wanted)
        return wanted;
    char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT];
    tn__fail(TN_ERR_SHAPE, kernel->name,
             "the arguments have shape %s together, which does not broadcast to the shape %s asked for",
             tn__shape_text(shape->ndim, shape->dim, first), tn__shape_text(wanted->ndim, wanted->dim, second));
    return NULL;
}

typedef struct operands {
    const tn_kernel *kernel;
    tn__user user;        /* the instance that is wanted */
    tn__device *device;
    tn__node *in[TN__MAX_INPUTS];
    bool failed;
} operands;

static void add(operands *o, tn__node *node)
{
    if (o->failed)
        return;
    if (tn__node_is_error(node)) {
        tn__error_raise(node->error);
        o->failed = true;
    } else if (o->user.in_count == TN__MAX_INPUTS) {
        tn__fail(TN_ERR_VALUE, o->kernel->name,
                 "arguments, _ind, _shape and the like are more than %d operands together", TN__MAX_INPUTS);
        o->failed = true;
    } else {
        o->user.in[o->user.in_count] = (tn_dtype)node->dtype;
        o->in[o->user.in_count++] = node;
    }
}

static void add_number(operands *o, int64_t number, const tn__shape *shape)
{
    add(o, tn__const_scalar((tn__scalar){.i = number}, TN_INT64, shape, o->device));
}

/* In the order in which user_text.c declares them. */
static void add_extras(operands *o, const tn__user_part *part, const tn__shape *shape, int64_t reduced,
                       tn__node *const *in)
{
    if (part->extras & TN__USER_I)
        add(o, tn__node_new(TN__OP_IOTA, TN_INT64, shape, o->device, 0, NULL, (tn__attr){.raw = {0}}));
    if (part->extras & TN__USER_SIZE)
        add_number(o, shape->size, shape);
    if (part->extras & TN__USER_COUNT)
        add_number(o, reduced, shape);
    if (part->extras & (TN__USER_IND | TN__USER_SHAPE))
        o->user.ndim = shape->ndim;
    for (int d = 0; d < shape->ndim && part->extras & TN__USER_IND; d++)
        add(o, tn__iota(shape, d, o->device));
    for (int d = 0; d < shape->ndim && part->extras & TN__USER_SHAPE; d++)
        add_number(o, shape->dim[d], shape);
    for (int k = 0; k < part->in_count; k++) {
        if (part->sizes >> k & 1)
            add_number(o, in[k]->shape->size, shape);
        if (!(part->shapes >> k & 1))
            continue;
        o->user.raw_ndim[k] = in[k]->shape->ndim;
        for (int d = 0; d < in[k]->shape->ndim; d++)
            add_number(o, in[k]->shape->dim[d], shape);
    }
}

/* ---- calls ---- */

/* Operands of one dtype, shape and device for parameters of one letter, as most are, need no inference. */
static bool is_plain(const tn__user_part *part, int count, tn__node *const *in, const tn__shape *wanted)
{
    const tn__node *first = in[0];
    if (!part->plain || count != part->in_count || (wanted && wanted != first->shape))
        return false;
    for (int k = 0; k < count; k++)
        if (in[k]->dtype != first->dtype || in[k]->shape != first->shape || in[k]->device != first->device ||
            in[k]->flags & TN__NODE_WEAK || tn__node_is_error(in[k]))
            return false;
    return true;
}

/* Finds dtypes and shape, and makes the operands fit. */
static bool prepare(operands *o, int which, int count, tn__node *const *in, const tn__user_wish *wish, int64_t reduced,
                    const tn__shape **shape)
{
    const tn_kernel *kernel = o->kernel;
    const tn__user_part *part = &kernel->part[which];
    if (count && is_plain(part, count, in, wish->shape)) {
        o->device = in[0]->device;
        o->user.in_count = count;
        o->user.out_count = part->out_count;
        for (int k = 0; k < count; k++) {
            o->in[k] = in[k];
            o->user.in[k] = (tn_dtype)in[k]->dtype;
        }
        for (int k = 0; k < part->out_count; k++)
            o->user.out[k] = (tn_dtype)in[0]->dtype;
        *shape = in[0]->shape;
        return true;
    }
    if (count != part->in_count)
        return tn__fail(TN_ERR_VALUE, kernel->name, "got %d arguments, expected %d", count, part->in_count), false;
    for (int k = 0; k < count; k++)
        if (tn__node_is_error(in[k]))
            return tn__error_raise(in[k]->error), false;
    o->device = count ? tn__common_device(kernel->name, count, in) : wish->device;
    if (!o->device || !find_dtypes(kernel, part, in, wish, &o->user) ||
        !(*shape = loop_shape(kernel, part, in, wish->shape)))
        return false;
    o->user.out_count = part->out_count;
    for (int k = 0; k < count; k++)
        add(o, part->in[k].raw ? as_memory(in[k], o->user.in[k], o->device)
                               : tn__adapt(in[k], o->user.in[k], *shape, o->device));
    add_extras(o, part, *shape, reduced, in);
    return !o->failed;
}

static bool apply_part(const tn_kernel *kernel, int which, int count, tn__node *const *in, const tn__user_wish *wish,
                       int64_t reduced, tn__node **fitted, tn__node **out)
{
    operands o;
    memset(&o.user, 0, sizeof o.user);
    o.kernel = kernel;
    o.failed = false;
    const tn__shape *shape;
    if (!prepare(&o, which, count, in, wish, reduced, &shape))
        return false;
    if (kernel->function && o.device->capabilities.target != TN__TARGET_C)
        return tn__fail(TN_ERR_UNSUPPORTED, kernel->name,
                        "the function is known by its address only, which %s cannot call: define it with TN_UFUNC",
                        o.device->name),
               false;
    const tn__user *user = tn__user_instance(kernel, which, &o.user);
    if (!user)
        return false;
    for (int k = 0; k < count && fitted; k++)
        fitted[k] = o.in[k];
    for (int k = 0; k < user->out_count; k++) {
        out[k] = tn__node_new(TN__OP_USER, user->out[k], shape, o.device, user->in_count, o.in,
                              (tn__attr){.output = (uint32_t)k, .user = user});
        if (tn__node_is_error(out[k]))
            return tn__error_raise(out[k]->error), false;
    }
    return true;
}

/* An output as backward sees it: with the kernel's gradient to its inputs, or an error there if it has none. */
static tn__node *with_gradient(const tn_kernel *kernel, int count, tn__node *const *fitted, int output, tn__node *y)
{
    tn__node *in[TN__USER_PARAMS + 1] = {y};
    bool needed = kernel->gradient || kernel->gradient_kernel;
    for (int k = 0; k < count; k++) {
        in[k + 1] = fitted[k];
        needed = needed || (tn__no_grad_depth == 0 && tn__dtype_inexact((tn_dtype)fitted[k]->dtype));
    }
    if (!needed || !tn__dtype_inexact((tn_dtype)y->dtype))
        return y;
    return tn__node_new(TN__OP_CUSTOM, (tn_dtype)y->dtype, y->shape, y->device, count + 1, in,
                        (tn__attr){.custom = {kernel, output}});
}

bool tn__user_apply(const tn_kernel *kernel, int count, tn__node *const *in, const tn__user_wish *wish, tn__node **out)
{
    tn__node *fitted[TN__USER_PARAMS];
    if (!apply_part(kernel, TN__PART_MAP, count, in, wish, 0, fitted, out))
        return false;
    for (int k = 0; k < kernel->part[TN__PART_MAP].out_count; k++)
        out[k] = with_gradient(kernel, count, fitted, k, out[k]);
    return true;
}

/* ---- reductions ---- */

static tn__node *combine(const tn_kernel *kernel, tn__node *a, uint32_t axes)
{
    tn__user wanted = {.in_count = 2, .out_count = 1, .in = {(tn_dtype)a->dtype, (tn_dtype)a->dtype},
                       .out = {(tn_dtype)a->dtype}};
    const tn__user *user = tn__user_instance(kernel, TN__PART_COMBINE, &wanted);
    tn_shape value = tn__shape_value(a->shape);
    for (int d = 0; d < value.ndim; d++)
        value.dim[d] = axes >> d & 1 ? 1 : value.dim[d];
    const tn__shape *shape = user ? tn__shape_make(kernel->name, value, (tn_dtype)a->dtype) : NULL;
    if (!shape)
        return tn__failed();
    if (shape == a->shape)
        return a;
    return tn__apply(TN__OP_USER_REDUCE, (tn_dtype)a->dtype, shape, 1, &a, (tn__attr){.axes = axes, .user = user});
}

/* The dtype of a letter: that of inputs, else the one asked for. */
static tn_dtype dtype_of(const tn_kernel *kernel, tn__node *const *in, const tn__user_wish *wish, char letter)
{
    tn_dtype letters[26] = {0};
    if (!find_letters(kernel, &kernel->part[TN__PART_MAP], in, wish->dtype, letters))
        return TN_DTYPE_DEFAULT;
    tn_dtype found = letters[letter - 'A'] ? letters[letter - 'A'] : wish->dtype;
    if (!found)
        tn__fail(TN_ERR_DTYPE, kernel->name, "nothing says what the dtype %c is: give the option .dtype", letter);
    return found;
}

tn__node *tn__user_reduce(const tn_kernel *kernel, int count, tn__node *const *in, const tn__user_wish *wish,
                          tn_axes axes)
{
    const tn__user_param *accumulator = &kernel->part[TN__PART_COMBINE].in[0],
                         *out = &kernel->part[TN__PART_POST].out[0];
    tn__node *fitted[TN__USER_PARAMS], *y;
    tn__user_wish map_wish = *wish, post_wish = *wish;
    uint32_t set;
    for (int k = 0; k < count; k++)
        TN__PASS_ERROR(in[k]);
    if (count == kernel->part[TN__PART_MAP].in_count) { /* else the map says what is wrong */
        map_wish.accumulator =
            accumulator->letter ? dtype_of(kernel, in, wish, accumulator->letter) : accumulator->dtype;
        post_wish.dtype = out->letter ? dtype_of(kernel, in, wish, out->letter) : out->dtype;
        post_wish.shape = NULL;
        if (!map_wish.accumulator || !post_wish.dtype)
            return tn__failed();
    }
    if (!apply_part(kernel, TN__PART_MAP, count, in, &map_wish, 0, fitted, &y) ||
        !tn__axes_set(kernel->name, axes, y->shape->ndim, &set))
        return tn__failed();
    int64_t reduced = 1;
    for (int d = 0; d < y->shape->ndim; d++)
        reduced *= set >> d & 1 ? y->shape->dim[d] : 1;
    y = combine(kernel, y, set);
    TN__PASS_ERROR(y);
    if (!apply_part(kernel, TN__PART_POST, 1, &y, &post_wish, reduced, NULL, &y))
        return tn__failed();
    return with_gradient(kernel, count, fitted, 0, y);
}
