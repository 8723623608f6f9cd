/* SPDX-License-Identifier: MIT */
/* What NumPy hangs on its ufuncs: the options out, where, dtype and casting, and the methods outer, reduce, accumulate
 * and at. */
#include "numpy/compose.h"

#include <string.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "core/memory.h"

/* ---- options ---- */

static tn_array *refused_cast(tn_dtype from, tn_dtype to)
{
    return tn__refused(TN_ERR_DTYPE, "dtype",
                       "%s would lose its kind as %s; expected a dtype of the same kind or a higher one",
                       tn_dtype_name(from), tn_dtype_name(to));
}

/* NumPy's casting rules by name; same_kind is the default. */
static bool may_cast(tn_dtype from, tn_dtype to, const char *rule)
{
    if (!rule || strcmp(rule, "same_kind") == 0)
        return tn_can_cast(from, to);
    if (strcmp(rule, "safe") == 0)
        return tn_dtype_promote(from, to) == to;
    return strcmp(rule, "unsafe") == 0 || from == to;
}

static bool known_rule(const char *rule)
{
    static const char *const rules[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
    for (size_t i = 0; rule && i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rule, rules[i]) == 0)
            return true;
    return !rule;
}

tn_array *tn__wrong_options(const char *operation, tn_dtype dtype, const char *casting)
{
    if (!known_rule(casting))
        return tn__refused(TN_ERR_NAME, operation,
                           "no casting rule '%s'; there are no, equiv, safe, same_kind and unsafe", casting);
    if (dtype && !tn_dtype_size(dtype))
        return tn__refused(TN_ERR_DTYPE, operation,
                           "%d is no dtype; expected one of tn_dtype, TN_BOOL to TN_COMPLEX128", (int)dtype);
    return NULL;
}

bool tn_can_cast_by(tn_dtype from, tn_dtype to, const char *rule)
{
    return from && to && known_rule(rule) && may_cast(from, to, rule);
}

enum { MANY = 64 };

tn_dtype tn_result_type(int count, const tn_array *const *operands)
{
    tn__node *node[MANY];
    bool all_weak, failed = !operands || count < 1 || count > MANY;
    tn__call call = tn__enter();
    for (int i = 0; i < count && !failed; i++)
        failed = tn__node_is_error(node[i] = tn__node_of(operands[i], "result_type"));
    tn_dtype dtype = failed ? TN_DTYPE_DEFAULT : tn__common_dtype(count, node, &all_weak);
    tn__leave(call);
    return dtype;
}

/* May an operand be cast? A C number is of any dtype of its kind. */
static bool operand_may(const tn_array *x, tn_dtype to, const char *rule)
{
    tn_dtype from = tn_dtype_of(x);
    if (!tn__is_weak(x))
        return may_cast(from, to, rule);
    int kind = tn__dtypes[from].class, wanted = tn__dtypes[to].class;
    if (tn_dtype_is_integer(from) && tn_dtype_is_integer(to))
        return true;
    bool strict = rule && (strcmp(rule, "no") == 0 || strcmp(rule, "equiv") == 0);
    return strict ? kind == wanted : kind <= wanted || (rule && strcmp(rule, "unsafe") == 0);
}

/* The result of a call, if its operands may be cast to what it computes in: its own dtype, but for what gives bool or a
 * real number of complex ones, which computes in the operands' common dtype. */
static tn_array *permitted(tn_array *y, const tn_array *a, const tn_array *b, const char *rule, bool of_any)
{
    if (!rule || of_any || tn_is_error(y) || tn_is_error(a) || (b && tn_is_error(b)))
        return y;
    const tn_array *const operands[] = {a, b};
    tn_dtype common = tn_result_type(b ? 2 : 1, operands), in = tn_dtype_of(y);
    bool whole = b && tn_dtype_is_integer(tn_dtype_of(a)) && tn_dtype_is_integer(tn_dtype_of(b));
    if (in == TN_BOOL && whole && tn_dtype_is_float(common)) /* int64 and uint64 compare as they are */
        return y;
    if (in == TN_BOOL || tn_dtype_is_complex(common) || in == TN_UINT8)
        in = common;
    for (int i = 0; i < (b ? 2 : 1); i++)
        if (in && !operand_may(operands[i], in, rule))
            return tn__refused(TN_ERR_DTYPE, "casting", "%s may not be cast to %s by the rule '%s'",
                               tn_dtype_name(tn_dtype_of(operands[i])), tn_dtype_name(in), rule);
    return y;
}

static tn_array *mask_of(const tn_array *where)
{
    TN__RETURN(tn__mask("where", where));
}

static tn_array *finished(tn_array *result, const tn_ufunc_opts *opts)
{
    if (opts && !TN__ARRAY_GIVEN("where", opts, where, "tn_weak_bool(false)"))
        return tn__failed_array();
    if (opts && opts->out) {
        if (!opts->casting || tn_is_error(result) || tn__is_weak(result))
            return tn_write(opts->out, result, opts->where);
        tn_dtype from = tn_dtype_of(result), to = tn_dtype_of(opts->out);
        return may_cast(from, to, opts->casting) ? tn_write(opts->out, tn_cast(result, to), opts->where)
                                                 : refused_cast(from, to);
    }
    return opts && opts->where ? tn_where(mask_of(opts->where), result, tn_zeros_like(result)) : result;
}

/* A call of f with one operand or two. */
static tn_array *call(tn_unary_function *one, tn_binary_function *two, const tn_array *a, const tn_array *b)
{
    return two ? two(a, b) : one(a);
}

/* With .dtype: operands of that dtype, if they may be cast and the result is of it; else a result that is of it anyway
 * (a comparison's bool); else there is no such function. */
static tn_array *typed(tn_unary_function *one, tn_binary_function *two, const tn_array *a, const tn_array *b,
                       const tn_ufunc_opts *opts)
{
    if (!one && !two)
        return tn__refused(TN_ERR_VALUE, "ufunc", "expected an elementwise function such as tn_add, got NULL");
    tn_array *wrong = opts ? tn__wrong_options("ufunc", opts->dtype, opts->casting) : NULL;
    if (wrong)
        return wrong;
    bool of_any = two == tn_logical_and || two == tn_logical_or || two == tn_logical_xor || one == tn_logical_not;
    bool own = one == tn_bitwise_count && opts && opts->dtype == TN_UINT8; /* which it gives for all dtypes */
    if (!opts || !opts->dtype || own || tn_is_error(a) || (b && tn_is_error(b)))
        return permitted(call(one, two, a, b), a, b, opts ? opts->casting : NULL, of_any);
    tn_dtype dtype = opts->dtype, bad = TN_DTYPE_DEFAULT;
    if (dtype == TN_BOOL && b) { /* of comparisons the result alone is bool */
        tn_array *compared = permitted(two(a, b), a, b, opts->casting, of_any);
        bool is_bool = !tn_is_error(compared) && tn_dtype_of(compared) == TN_BOOL;
        if (is_bool && tn_result_type(2, (const tn_array *const[]){a, b}) != TN_BOOL)
            return compared;
    }
    if (!operand_may(a, dtype, opts->casting))
        bad = tn_dtype_of(a);
    if (b && !operand_may(b, dtype, opts->casting))
        bad = tn_dtype_of(b);
    tn_array *y = bad ? NULL : call(one, two, tn_cast(a, dtype), b ? tn_cast(b, dtype) : NULL);
    if (y && (tn_is_error(y) || tn_dtype_of(y) == dtype))
        return y;
    bool wide = dtype == TN_FLOAT64;
    /* complex numbers have real sizes */
    bool sized = one == tn_abs && bad && tn_dtype_is_complex(bad) && tn_dtype_is_float(dtype);
    if (sized && operand_may(a, wide ? TN_COMPLEX128 : TN_COMPLEX64, opts->casting))
        return tn_cast(tn_abs(tn_cast(a, wide ? TN_COMPLEX128 : TN_COMPLEX64)), dtype);
    if (bad && dtype != TN_BOOL)
        return refused_cast(bad, dtype);
    tn_array *plain = permitted(call(one, two, a, b), a, b, opts->casting, of_any);
    if (tn_is_error(plain) || tn_dtype_of(plain) == dtype)
        return plain;
    return bad ? refused_cast(bad, dtype)
               : tn__refused(TN_ERR_DTYPE, "dtype", "this function gives no %s", tn_dtype_name(dtype));
}

tn_array *tn_unary_with(tn_unary_function *f, const tn_array *x, const tn_ufunc_opts *opts)
{
    TN__COMPOSE(finished(typed(f, NULL, x, NULL, opts), opts));
}

tn_array *tn_binary_with(tn_binary_function *f, const tn_array *a, const tn_array *b, const tn_ufunc_opts *opts)
{
    TN__COMPOSE(finished(typed(NULL, f, a, b, opts), opts));
}

/* x within limits, either of which may be missing. */
static tn_array *limited(const tn_array *x, const tn_array *low, const tn_array *high)
{
    return low && high ? tn_clip(x, low, high)
           : low       ? tn_maximum(x, low)
           : high      ? tn_minimum(x, high)
                       : tn__array_of(x);
}

static tn_array *clip(const tn_array *x, const tn_array *low, const tn_array *high, const tn_ufunc_opts *opts)
{
    const tn_array *operand[] = {x, low, high};
    for (int i = 0; i < 3 && opts && opts->dtype; i++) {
        if (!operand[i] || tn_is_error(operand[i]))
            continue;
        if (!operand_may(operand[i], opts->dtype, opts->casting))
            return refused_cast(tn_dtype_of(operand[i]), opts->dtype);
        operand[i] = tn_cast(operand[i], opts->dtype);
    }
    return finished(limited(operand[0], operand[1], operand[2]), opts);
}

tn_array *tn_clip_with(const tn_array *x, const tn_array *low, const tn_array *high, const tn_ufunc_opts *opts)
{
    TN__COMPOSE(clip(x, low, high, opts));
}

/* ---- outer ---- */

static tn_array *outer(tn_binary_function *f, const tn_array *a, const tn_array *b, const tn_ufunc_opts *opts)
{
    tn_shape shape = tn_shape_of(a);
    if (tn_is_error(a) || tn_is_error(b))
        return tn__again(tn_is_error(a) ? a : b);
    if (shape.ndim + tn_ndim(b) > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "outer", "the result would have %d axes, the most is %d",
                           shape.ndim + tn_ndim(b), TN_MAX_NDIM);
    for (int i = 0; i < tn_ndim(b); i++)
        shape.dim[shape.ndim++] = 1;
    return tn_binary_with(f, tn_reshape(a, shape), b, opts);
}

tn_array *tn_outer_with(tn_binary_function *f, const tn_array *a, const tn_array *b, const tn_ufunc_opts *opts)
{
    TN__COMPOSE(outer(f, a, b, opts));
}

/* ---- reduce and accumulate: an operation an element, in order ---- */

/* x in the dtype that f gives for it, in which NumPy folds. */
static tn_array *as_folded(tn_binary_function *f, const tn_array *x, tn_dtype dtype)
{
    if (!f)
        return tn__refused(TN_ERR_VALUE, "reduce", "expected an elementwise function such as tn_add, got NULL");
    tn_array *y = dtype ? tn_cast(x, dtype) : tn__array_of(x);
    if (tn_is_error(y))
        return y;
    const tn_create_opts like = {.dtype = tn_dtype_of(y), .device = tn_device_of(y)};
    /* which no function refuses for its value */
    tn_array *one = tn_ones_with(tn__vector(1), &like), *once = f(one, one);
    if (tn_is_error(once))
        return once;
    if (tn_dtype_of(once) == TN_BOOL && tn_dtype_of(y) != TN_BOOL) /* a comparison: its result is no operand of it */
        return tn__refused(TN_ERR_DTYPE, "reduce", "gives bool of %s, of which it then has nothing to compare",
                           tn_dtype_name(tn_dtype_of(y)));
    if (dtype && tn_dtype_of(once) != dtype)
        return tn__refused(TN_ERR_DTYPE, "reduce", "does not compute in %s", tn_dtype_name(dtype));
    return tn_cast(y, tn_dtype_of(once));
}

/* x folded along an axis, which stays with extent 1; mask and initial may be NULL. */
static tn_array *folded(tn_binary_function *f, const tn_array *x, int axis, const tn_array *mask,
                        const tn_array *initial)
{
    int64_t n = tn_dim(x, axis);
    if (n == 0 && !initial)
        return tn__refused(TN_ERR_VALUE, "reduce", "axis %d has extent 0, and nothing has no result; give `initial`",
                           axis);
    tn_array *sum = NULL;
    if (!initial) {
        sum = tn__cut(x, axis, 0, 1);
    } else {
        tn_shape shape = tn_shape_of(x);
        shape.dim[axis] = 1;
        sum = tn_broadcast_to(tn_cast(initial, tn_dtype_of(x)), shape);
    }
    for (int64_t i = initial ? 0 : 1; i < n && !tn_is_error(sum); i++) {
        tn_array *next = f(sum, tn__cut(x, axis, i, 1));
        sum = mask ? tn_where(tn__cut(mask, axis, i, 1), next, sum) : next;
    }
    return sum;
}

/* With the axes of a set behind the others, as one. */
static tn_array *set_behind(const tn_array *x, uint32_t set)
{
    tn_axes order = {.count = tn_ndim(x)};
    tn_shape shape = {0};
    int at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < tn_ndim(x); d++)
            if ((set >> d & 1) == (uint32_t)pass) {
                order.axis[at++] = d;
                if (!pass)
                    shape.dim[shape.ndim++] = tn_dim(x, d);
            }
    shape.dim[shape.ndim++] = -1;
    return tn_reshape(tn_transpose(x, order), shape);
}

static tn_array *reduce_by(tn_binary_function *f, const tn_array *x, const tn_reduce_opts *opts)
{
    static const tn_reduce_opts defaults = {.dtype = TN_DTYPE_DEFAULT};
    opts = opts ? opts : &defaults;
    uint32_t set;
    if (tn_is_error(x) || !TN__AXES_GIVEN("reduce", opts, axis) ||
        !TN__OPERANDS_GIVEN("reduce", opts) || !tn__axes_set("reduce", opts->axis, tn_ndim(x), &set))
        return tn_is_error(x) ? tn__again(x) : tn__failed_array();
    if (opts->where && !opts->initial)
        return tn__refused(TN_ERR_VALUE, "reduce", "has no value where the mask leaves nothing; give `initial`");
    tn_array *y = as_folded(f, x, opts->dtype);
    tn_array *mask = opts->where ? tn_broadcast_to(mask_of(opts->where), tn_shape_of(x)) : NULL;
    const tn_array *initial = opts->initial;
    int axis[TN_MAX_NDIM], count = 0;
    for (int d = 0; initial && d < tn_ndim(x); d++)
        if ((set >> d & 1) && tn_dim(x, d) == 0) { /* of nothing: the first value alone */
            tn_shape left = tn_shape_of(x);
            for (int k = 0; k < left.ndim; k++)
                left.dim[k] = set >> k & 1 ? 1 : left.dim[k];
            y = tn_is_error(y) ? y : tn_broadcast_to(tn_cast(initial, tn_dtype_of(y)), left);
            for (int k = 0; k < left.ndim; k++)
                if (set >> k & 1)
                    axis[count++] = k;
            return opts->keepdims || tn_is_error(y) ? y : tn_squeeze(y, tn__axes_of(count, axis));
        }
    tn_shape ones = tn_shape_of(x);
    for (int d = 0; d < ones.ndim; d++)
        if (set >> d & 1) {
            ones.dim[d] = 1;
            axis[count++] = d;
        }
    if (initial && count > 1 && !tn_is_error(y)) { /* which counts once, not for each of the other axes' elements */
        y = folded(f, set_behind(y, set), ones.ndim - count, mask ? set_behind(mask, set) : NULL, initial);
        y = tn_reshape(y, ones);
    } else {
        for (int i = 0; i < count && !tn_is_error(y); i++)
            y = folded(f, y, axis[i], i == 0 ? mask : NULL, i == 0 ? initial : NULL);
    }
    return opts->keepdims || count == 0 || tn_is_error(y) ? y : tn_squeeze(y, tn__axes_of(count, axis));
}

tn_array *tn_reduce_by(tn_binary_function *f, const tn_array *x, const tn_reduce_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, reduce_by(f, x, opts)));
}

static tn_array *accumulate_by(tn_binary_function *f, const tn_array *x, const tn_axis_opts *opts)
{
    if (opts && !TN__AXES_GIVEN("accumulate", opts, axis))
        return tn__failed_array();
    int axis = tn_is_error(x) ? -1 : tn__axis_of_list("accumulate", opts ? opts->axis : (tn_axes){0}, 0, tn_ndim(x));
    if (tn_is_error(x))
        return tn__again(x);
    if (axis < 0)
        return tn__failed_array();
    tn_array *y = as_folded(f, x, opts ? opts->dtype : TN_DTYPE_DEFAULT);
    int64_t n = tn_dim(x, axis), count = 1;
    if (tn_is_error(y) || n == 0)
        return tn_is_error(y) ? y : tn__cut(y, axis, 0, 0);
    const tn_array **sums = tn__alloc((size_t)n * sizeof *sums);
    if (!sums) {
        tn__fail_memory("accumulate", (size_t)n * sizeof *sums);
        return tn__failed_array();
    }
    sums[0] = tn__cut(y, axis, 0, 1);
    while (count < n && !tn_is_error(sums[count - 1])) {
        sums[count] = f(sums[count - 1], tn__cut(y, axis, count, 1));
        count++;
    }
    tn_array *result =
        tn_is_error(sums[count - 1]) ? tn__again(sums[count - 1]) : tn_concatenate((int)count, sums, axis);
    tn__free(sums);
    return result;
}

tn_array *tn_accumulate_by(tn_binary_function *f, const tn_array *x, const tn_axis_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, accumulate_by(f, x, opts)));
}

/* From each place to the next one (alone where that does not lie behind), and from the last to the end. */
static tn_array *reduceat_by(tn_binary_function *f, const tn_array *x, int count, const int64_t *place,
                             const tn_axis_opts *opts)
{
    if (opts && !TN__AXES_GIVEN("reduceat", opts, axis))
        return tn__failed_array();
    int axis = tn_is_error(x) ? -1 : tn__axis_of_list("reduceat", opts ? opts->axis : (tn_axes){0}, 0, tn_ndim(x));
    if (tn_is_error(x))
        return tn__again(x);
    if (count > 0 && !place)
        return tn__refused(TN_ERR_VALUE, "reduceat", "expected %d places, got NULL", count);
    if (axis < 0)
        return tn__failed_array();
    int64_t n = tn_dim(x, axis);
    tn_array *y = as_folded(f, x, opts ? opts->dtype : TN_DTYPE_DEFAULT),
             *result = tn_is_error(y) ? y : tn__cut(y, axis, 0, 0);
    for (int i = 0; i < count && !tn_is_error(result); i++) {
        int64_t start = place[i], stop = i + 1 < count ? place[i + 1] : n;
        if (start < 0 || start >= n)
            return tn__refused(TN_ERR_INDEX, "reduceat", "place %lld is not from 0 to %lld", (long long)start,
                               (long long)n - 1);
        tn_array *part = folded(f, tn__cut(y, axis, start, stop > start ? stop - start : 1), axis, NULL, NULL);
        result = i ? tn_concatenate(2, (const tn_array *const[]){result, part}, axis) : part;
    }
    return result;
}

tn_array *tn_reduceat_by(tn_binary_function *f, const tn_array *x, int count, const int64_t *places,
                         const tn_axis_opts *opts)
{
    TN__COMPOSE(tn__into(opts ? opts->out : NULL, reduceat_by(f, x, count, places, opts)));
}

/* ---- at ---- */

/* Positions that repeat take turns: the k-th time that a position occurs is in round k, so that no round has it
 * twice. */
static tn_array *at(tn_binary_function *f, const tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    if (tn_is_error(x) || tn_is_error(value))
        return tn__again(tn_is_error(x) ? x : value);
    if (!f)
        return tn__refused(TN_ERR_VALUE, "at", "expected an elementwise function such as tn_add, got NULL");
    tn_array *all = tn_reshape(tn__count_up(x, tn_size(x)), tn_shape_of(x)), *places = tn_getitem(all, count, keys);
    bool weak = tn__is_weak(value);
    tn_array *v = weak ? NULL : tn_ravel(tn_broadcast_to(value, tn_shape_of(places)));
    if (tn_is_error(places) || (v && tn_is_error(v)))
        return tn_is_error(places) ? places : v;
    int64_t n = tn_size(places);
    if (n == 0)
        return tn__again(x);
    tn_array *order = tn_argsort_with(tn_ravel(places), NULL), *sorted = tn_take(tn_ravel(places), order, 0);
    tn_array *fresh = tn_not_equal(tn__cut(sorted, 0, 1, n - 1), tn__cut(sorted, 0, 0, n - 1)),
             *up = tn__count_up(x, n);
    tn_array *start = tn_where(fresh, tn__cut(up, 0, 1, n - 1), tn_weak_int(0));
    start = tn_cummax_with(tn_concatenate(2, (const tn_array *const[]){tn__cut(up, 0, 0, 1), start}, 0), NULL);
    tn_array *round = tn_subtract(up, start), *flat = tn_ravel(x);
    tn_array *last = tn_max_with(round, NULL);
    if (tn_eval(last) != TN_OK)
        return tn__failed_array();
    int64_t rounds = tn_item_int(last) + 1;
    for (int64_t r = 0; r < rounds && !tn_is_error(flat); r++) {
        tn_array *those = tn_flatnonzero(tn_equal(round, tn_weak_int(r))), *here = tn_take(sorted, those, 0);
        const tn_array *add = weak ? value : tn_take(v, tn_take(order, those, 0), 0);
        tn_array *y = f(tn_take(flat, here, 0), add);
        flat = tn_scatter_set(flat, here, tn_is_error(y) ? y : tn_cast(y, tn_dtype_of(x)), 0);
    }
    return tn_is_error(flat) ? flat : tn_reshape(flat, tn_shape_of(x));
}

tn_status tn_apply_at(tn_binary_function *f, tn_array *x, const tn_array *value, int count, const tn_key *keys)
{
    tn_scope_push();
    tn_array *y = at(f, x, value, count, keys);
    return tn__replace(x, tn__composed(y));
}
