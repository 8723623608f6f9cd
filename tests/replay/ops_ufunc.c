/* SPDX-License-Identifier: MIT */
/* Replaying elementwise functions: NumPy's ufuncs with out, where and dtype, and their methods. */
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define UNARY "x out where dtype casting order subok"
#define BINARY "x1 x2 out where dtype casting order subok"
enum { MAX_OPERANDS = 2 };

/* Options that stand behind the `operands` first arguments. */
static tn_ufunc_opts options(call *c, int operands)
{
    tn_ufunc_opts opts = {.dtype = dtype(c, operands + 2, TN_DTYPE_DEFAULT)};
    if (given(c, operands)) {
        const value *out = c->slot[operands]; /* an array, or a tuple of one */
        opts.out = array_of(c, out->kind == LIST && out->list.count == 1 ? out->list.item : out);
    }
    if (given(c, operands + 1) && !(c->slot[operands + 1]->kind == BOOL && c->slot[operands + 1]->i))
        opts.where = array(c, operands + 1);
    return opts;
}

static bool plain(const tn_ufunc_opts *o) { return !o->out && !o->where && !o->dtype; }

static void unary(call *c, const row *r)
{
    tn_ufunc_opts o = options(c, 1);
    tn_unary_function *f = (tn_unary_function *)r->function;
    tn_array *x = array(c, 0);
    give(c, plain(&o) ? f(x) : tn_unary_with(f, x, &o));
}

static void binary(call *c, const row *r)
{
    tn_ufunc_opts o = options(c, 2);
    tn_binary_function *f = (tn_binary_function *)r->function;
    tn_array *a = operand(c, 0, 0, 1), *b = operand(c, 1, 0, 1);
    give(c, plain(&o) ? f(a, b) : tn_binary_with(f, a, b, &o));
}

/* ---- functions of two results ---- */

static void two_of_one(call *c, const row *r)
{
    tn_array *first, *second;
    tn_status (*f)(const tn_array *, tn_array **, tn_array **) = (tn_status(*)(const tn_array *, tn_array **, tn_array **))r->function;
    f(array(c, 0), &first, &second);
    give(c, first);
    give(c, second);
}

static void divmod(call *c, const row *r)
{
    (void)r;
    tn_array *quotient, *remainder;
    tn_divmod(operand(c, 0, 0, 1), operand(c, 1, 0, 1), &quotient, &remainder);
    give(c, quotient);
    give(c, remainder);
}

/* ---- casts, rounding ---- */

static void round_off(call *c, const row *r)
{
    (void)r;
    tn_array *y = tn_round(array(c, 0), (int)integer(c, 1, 0));
    give(c, given(c, 2) ? tn_write(array(c, 2), y, NULL) : y);
}

static void clip(call *c, const row *r)
{
    (void)r;
    int first = given(c, 1) ? 1 : 4, second = given(c, 2) ? 2 : 5; /* newer NumPys: min, max */
    tn_array *x = operand(c, 0, 0, 2);
    tn_array *low = given(c, first) ? operand(c, first, 0, 2) : NULL, *high = given(c, second) ? operand(c, second, 0, 2) : NULL;
    if (!low && !high) refuse(c, "neither a lower nor an upper limit");
    tn_array *y = c->refused ? x : low && high ? tn_clip(x, low, high) : low ? tn_maximum(x, low) : tn_minimum(x, high);
    give(c, given(c, 3) ? tn_write(array(c, 3), y, NULL) : y);
}

static void nan_to_num(call *c, const row *r)
{
    (void)r;
    give(c, tn_nan_to_num(array(c, 0), number(c, 2, 0), number(c, 3, NAN), number(c, 4, NAN)));
}

static void where(call *c, const row *r)
{
    (void)r;
    if (given(c, 1)) {
        give(c, tn_where(array(c, 0), operand(c, 1, 1, 2), operand(c, 2, 1, 2)));
        return;
    }
    tn_array *x = array(c, 0), *places[TN_MAX_NDIM];
    tn_nonzero(x, places);
    for (int d = 0; d < (tn_ndim(x) ? tn_ndim(x) : 1); d++) give(c, places[d]);
}

static void astype(call *c, const row *r)
{
    (void)r;
    give(c, tn_cast(array(c, 0), dtype(c, 1, TN_FLOAT64)));
}

/* ---- whole arrays ---- */

static tn_close_opts close_options(call *c)
{
    double rtol = number(c, 2, 1e-5), atol = number(c, 3, 1e-8);
    return (tn_close_opts){.rtol = rtol == 0 ? -1 : rtol, .atol = atol == 0 ? -1 : atol, .equal_nan = boolean(c, 4, false)};
}

static void isclose(call *c, const row *r)
{
    (void)r;
    tn_close_opts o = close_options(c);
    give(c, tn_isclose_with(operand(c, 0, 0, 1), operand(c, 1, 0, 1), &o));
}

static void allclose(call *c, const row *r)
{
    (void)r;
    tn_close_opts o = close_options(c);
    give_bool(c, tn_allclose_with(operand(c, 0, 0, 1), operand(c, 1, 0, 1), &o));
}

static void array_equal(call *c, const row *r)
{
    (void)r;
    give_bool(c, tn_array_equal(array(c, 0), array(c, 1), boolean(c, 2, false)));
}

static void array_equiv(call *c, const row *r)
{
    (void)r;
    give_bool(c, tn_array_equiv(array(c, 0), array(c, 1)));
}

/* ---- methods ---- */

static void outer(call *c, const row *r) { give(c, tn_outer_with((tn_binary_function *)r->function, array(c, 0), array(c, 1))); }

/* reduce has the first axis by default; None stands for all. */
static void reduce(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    tn_reduce_opts o = {.axis = c->slot[1] ? axes(c, 1) : (tn_axes){1, {0}}, .dtype = dtype(c, 2, TN_DTYPE_DEFAULT),
                        .keepdims = boolean(c, 4, false)};
    tn_array *y = ((tn_array * (*)(const tn_array *, const tn_reduce_opts *)) r->function)(x, &o);
    give(c, given(c, 3) ? tn_write(array(c, 3), y, NULL) : y);
}

static void accumulate(call *c, const row *r)
{
    tn_axis_opts o = {.axis = {1, {(int)integer(c, 1, 0)}}, .dtype = dtype(c, 2, TN_DTYPE_DEFAULT)};
    tn_array *y = ((tn_array * (*)(const tn_array *, const tn_axis_opts *)) r->function)(array(c, 0), &o);
    give(c, given(c, 3) ? tn_write(array(c, 3), y, NULL) : y);
}

#define ROW1(name) {#name, UNARY, unary, NAME(tn_##name)}
#define ROW2(name) {#name, BINARY, binary, NAME(tn_##name)}, {#name ".outer", "A B", outer, NAME(tn_##name)}
static const row rows[] = {
    ROW1(negative), ROW1(positive), ROW1(sign), ROW1(square), ROW1(reciprocal), ROW1(exp), ROW1(exp2), ROW1(expm1), ROW1(log),
    ROW1(log2), ROW1(log10), ROW1(log1p), ROW1(sqrt), ROW1(cbrt), ROW1(sin), ROW1(cos), ROW1(tan), ROW1(arcsin), ROW1(arccos),
    ROW1(arctan), ROW1(sinh), ROW1(cosh), ROW1(tanh), ROW1(arcsinh), ROW1(arccosh), ROW1(arctanh), ROW1(floor), ROW1(ceil),
    ROW1(trunc), ROW1(rint), ROW1(isnan), ROW1(isinf), ROW1(isfinite), ROW1(signbit), ROW1(logical_not), ROW1(invert),
    ROW1(fabs), ROW1(fix), ROW1(deg2rad), ROW1(rad2deg), ROW1(sinc), ROW1(spacing), ROW1(isposinf), ROW1(isneginf),
    ROW1(bitwise_count),
    {"absolute", UNARY, unary, NAME(tn_abs)}, {"abs", UNARY, unary, NAME(tn_abs)},
    {"radians", UNARY, unary, NAME(tn_deg2rad)}, {"degrees", UNARY, unary, NAME(tn_rad2deg)},
    {"bitwise_not", UNARY, unary, NAME(tn_invert)}, {"bitwise_invert", UNARY, unary, NAME(tn_invert)},
    {"asin", UNARY, unary, NAME(tn_arcsin)}, {"acos", UNARY, unary, NAME(tn_arccos)}, {"atan", UNARY, unary, NAME(tn_arctan)},
    {"asinh", UNARY, unary, NAME(tn_arcsinh)}, {"acosh", UNARY, unary, NAME(tn_arccosh)},
    {"atanh", UNARY, unary, NAME(tn_arctanh)},
    ROW2(add), ROW2(subtract), ROW2(multiply), ROW2(divide), ROW2(floor_divide), ROW2(remainder), ROW2(fmod), ROW2(power),
    ROW2(maximum), ROW2(minimum), ROW2(fmax), ROW2(fmin), ROW2(arctan2), ROW2(hypot), ROW2(copysign), ROW2(logaddexp),
    ROW2(logaddexp2), ROW2(heaviside), ROW2(nextafter), ROW2(ldexp), ROW2(gcd), ROW2(lcm), ROW2(float_power), ROW2(equal),
    ROW2(not_equal), ROW2(less), ROW2(less_equal), ROW2(greater), ROW2(greater_equal), ROW2(logical_and), ROW2(logical_or),
    ROW2(logical_xor), ROW2(bitwise_and), ROW2(bitwise_or), ROW2(bitwise_xor), ROW2(left_shift), ROW2(right_shift),
    {"true_divide", BINARY, binary, NAME(tn_divide)}, {"mod", BINARY, binary, NAME(tn_remainder)},
    {"pow", BINARY, binary, NAME(tn_power)}, {"atan2", BINARY, binary, NAME(tn_arctan2)},
    {"bitwise_left_shift", BINARY, binary, NAME(tn_left_shift)}, {"bitwise_right_shift", BINARY, binary, NAME(tn_right_shift)},
    {"frexp", UNARY, two_of_one, NAME(tn_frexp)}, {"modf", UNARY, two_of_one, NAME(tn_modf)}, {"divmod", BINARY, divmod},
    {"round", "a decimals out", round_off}, {"around", "a decimals out", round_off}, {"round_", "a decimals out", round_off},
    {"clip", "a a_min a_max out min max", clip}, {"nan_to_num", "x copy nan posinf neginf", nan_to_num},
    {"where", "condition x y", where}, {"astype", "x dtype order casting subok copy", astype},
    {"isclose", "a b rtol atol equal_nan", isclose}, {"allclose", "a b rtol atol equal_nan", allclose},
    {"array_equal", "a1 a2 equal_nan", array_equal}, {"array_equiv", "a1 a2", array_equiv},
    {"add.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_sum_with)},
    {"multiply.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_prod_with)},
    {"maximum.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_max_with)},
    {"minimum.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_min_with)},
    {"logical_and.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_all_with)},
    {"logical_or.reduce", "array axis dtype out keepdims initial where", reduce, NAME(tn_any_with)},
    {"add.accumulate", "array axis dtype out", accumulate, NAME(tn_cumsum_with)},
    {"multiply.accumulate", "array axis dtype out", accumulate, NAME(tn_cumprod_with)},
    {"maximum.accumulate", "array axis dtype out", accumulate, NAME(tn_cummax_with)},
    {"minimum.accumulate", "array axis dtype out", accumulate, NAME(tn_cummin_with)},
};
REPLAY_ROWS(rows)
