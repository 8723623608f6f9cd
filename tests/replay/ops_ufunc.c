/* SPDX-License-Identifier: MIT */
/* Replaying elementwise functions: NumPy's ufuncs with out, where and dtype, and their methods. */
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define UNARY "x out | where dtype casting order subok"
#define BINARY "x1 x2 out | where dtype casting order subok"
enum { MAX_OPERANDS = 2 };

/* Options that stand behind the `operands` first arguments. */
static tn_ufunc_opts options(call *c, int operands)
{
    tn_ufunc_opts opts = {.dtype = dtype(c, operands + 2, TN_DTYPE_DEFAULT), .casting = string(c, operands + 3, NULL)};
    if (given(c, operands)) {
        const value *out = c->slot[operands]; /* an array, or a tuple of one */
        if (out->kind == LIST && out->list.count != 1)
            refuse(c, "one array is written into, not %d", out->list.count);
        opts.out = array_of(c, out->kind == LIST && out->list.count == 1 ? out->list.item : out);
    }
    opts.where = mask(c, operands + 1);
    if (given(c, operands + 4) &&
        (strlen(string(c, operands + 4, "K")) != 1 || !strchr("CFAKcfak", *string(c, operands + 4, "K"))))
        refuse(c, "order");
    return opts;
}

static bool plain(const tn_ufunc_opts *o) { return !o->out && !o->where && !o->dtype && !o->casting; }

/* NumPy 1 rounds integers to floats, and has the sign of complex numbers by their real part first. */
static tn_array *first_unary(const row *r, tn_array *x)
{
    tn_dtype of = tn_dtype_of(x);
    bool rounds =
        !strcmp(r->name, "floor") || !strcmp(r->name, "ceil") || !strcmp(r->name, "trunc") || !strcmp(r->name, "fix");
    if (rounds && (of == TN_BOOL || tn_dtype_is_integer(of)))
        return tn_cast(x, tn_dtype_of(tn_exp(tn_zeros(TN_SHAPE(0), .dtype = of))));
    if (!strcmp(r->name, "sinc"))
        return first_inexact(x);
    if (strcmp(r->name, "sign") || !tn_dtype_is_complex(of))
        return x;
    tn_array *re = tn_real(x);
    return tn_cast(tn_where(tn_equal(re, 0), tn_imag(x), re), of);
}

static void unary(call *c, const row *r)
{
    tn_ufunc_opts o = options(c, 1);
    tn_unary_function *f = (tn_unary_function *)r->function;
    tn_array *x = numpy_1 ? first_unary(r, array(c, 0)) : array(c, 0);
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

/* Their `out` is a tuple of two. */
static void no_single_out(call *c, int i)
{
    if (given(c, i) && c->slot[i]->kind != LIST)
        refuse(c, "'out' must be a tuple of arrays");
}

/* Into the arrays of a tuple, which may hold None, or new ones. */
static void give_two(call *c, int out, tn_array *first, tn_array *second)
{
    tn_array *result[] = {first, second};
    const value *v = given(c, out) ? c->slot[out] : NULL;
    if (v && v->list.count != 2)
        refuse(c, "'out' must be a tuple of two");
    for (int i = 0; i < 2 && !c->refused; i++) {
        const value *one = v ? &v->list.item[i] : NULL;
        give(c, one && one->kind != NONE ? tn_write(array_of(c, one), result[i], mask(c, out + 1)) : result[i]);
    }
}

static void two_of_one(call *c, const row *r)
{
    tn_array *first, *second;
    no_single_out(c, 1);
    tn_dtype of = tn_dtype_of(array(c, 0)), to = dtype(c, 3, TN_FLOAT64);
    if (given(c, 3) && *r->name == 'f')
        refuse(c, "an exponent is no float"); /* one dtype is that of all results */
    const char *rule = string(c, 4, "same_kind");
    if (!tn_can_cast_by(TN_BOOL, TN_BOOL, rule))
        refuse(c, "casting '%s'", rule);
    if ((strcmp(rule, "unsafe") && !tn_dtype_is_float(of) && (!strcmp(rule, "no") || !strcmp(rule, "equiv"))) ||
        !tn_dtype_is_float(to))
        refuse(c, "casting");
    tn_status (*f)(const tn_array *, tn_array **, tn_array **) =
        (tn_status(*)(const tn_array *, tn_array **, tn_array **))r->function;
    f(given(c, 3) ? tn_cast(array(c, 0), to) : array(c, 0), &first, &second);
    give_two(c, 1, first, second);
}

static void divmod(call *c, const row *r)
{
    (void)r;
    tn_array *quotient, *remainder;
    no_single_out(c, 2);
    if (!tn_can_cast_by(TN_BOOL, TN_BOOL, string(c, 5, "same_kind")))
        refuse(c, "casting");
    if (given(c, 4)) { /* dtype */
        tn_ufunc_opts o = {.dtype = dtype(c, 4, TN_DTYPE_DEFAULT), .casting = string(c, 5, NULL)};
        give(c, tn_binary_with((tn_floor_divide), operand(c, 0, 0, 1), operand(c, 1, 0, 1), &o));
        give(c, tn_binary_with((tn_remainder), operand(c, 0, 0, 1), operand(c, 1, 0, 1), &o));
        return;
    }
    tn_divmod(operand(c, 0, 0, 1), operand(c, 1, 0, 1), &quotient, &remainder);
    give_two(c, 2, quotient, remainder);
}

/* ---- casts, rounding ---- */

static void round_off(call *c, const row *r)
{
    (void)r;
    const tn_out_opts o = {.out = given(c, 2) ? array(c, 2) : NULL};
    give(c, tn_round_with(array(c, 0), (int)integer(c, 1, 0), &o));
}

/* NumPy 2: an integer at its own end of the dtype or beyond limits nothing. */
static tn_array *limit(call *c, int i, tn_dtype of)
{
    const value *v = c->slot[i];
    if (!v || v->kind == NONE)
        return NULL;
    /* no limit */
    if (numpy_1 && v->kind == FLOAT && isnan(v->f))
        return tn_scalar(i == 1 || i == 4 ? -INFINITY : INFINITY, .dtype = TN_FLOAT64);
    if (numpy_1 || v->kind != INT || !tn_dtype_is_integer(of) || c->slot[0]->kind != ARRAY)
        return operand(c, i, 0, 2);
    int bits = 8 * (int)tn_dtype_size(of);
    bool is_signed = tn_dtype_name(of)[0] == 'i', low = i == 1 || i == 4,
         negative = v->digits ? *v->digits == '-' : v->i < 0;
    long long most = is_signed || bits < 64 ? (long long)(UINT64_MAX >> (64 - bits + is_signed)) : INT64_MAX,
              least = is_signed ? -most - 1 : 0;
    if (v->digits && !negative && of == TN_UINT64)
        return array(c, i);
    bool below = v->digits ? negative : v->i <= least,
         above = v->digits ? !negative : v->i > most || (v->i == most && of != TN_UINT64);
    if (low ? below : above)
        return NULL;
    return tn_weak_int(v->i);
}

static void clip(call *c, const row *r)
{
    (void)r;
    int first = given(c, 1) ? 1 : 4, second = given(c, 2) ? 2 : 5; /* newer NumPys: min, max */
    tn_array *x = operand(c, 0, 0, 2);
    tn_dtype of = tn_dtype_of(x);
    tn_array *low = limit(c, first, of), *high = limit(c, second, of);
    const tn_ufunc_opts o = {.out = given(c, 3) ? array(c, 3) : NULL,
                             .dtype = dtype(c, 6, TN_DTYPE_DEFAULT),
                             .where = mask(c, 7),
                             .casting = string(c, 8, numpy_1 ? "unsafe" : NULL)};
    if (numpy_1 && !given(c, first) && !given(c, second))
        refuse(c, "no limit");
    if (!low && !high && of == TN_BOOL)
        refuse(c, "bool has no positive");
    if (!c->refused)
        give(c, tn_clip_with(x, low, high, &o));
}

static void nan_to_num(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *part[2] = {x, NULL};
    bool several = false, complex = tn_dtype_is_complex(tn_dtype_of(x));
    for (int i = 2; i <= 4; i++)
        several |= given(c, i) && c->slot[i]->kind >= LIST && tn_ndim(array(c, i)) > 0;
    if (!several) {
        give(c, tn_nan_to_num(x, number(c, 2, 0), number(c, 3, NAN), number(c, 4, NAN)));
        return;
    }
    if (complex)
        part[0] = tn_real(x), part[1] = tn_imag(x);
    for (int k = 0; k <= complex; k++) { /* of arrays: element by element */
        tn_array *y = tn_nan_to_num(part[k], 0, NAN, NAN),
                 *where[] = {tn_isnan(part[k]), tn_isposinf(part[k]), tn_isneginf(part[k])};
        for (int i = 0; i < 3; i++)
            if (given(c, 2 + i))
                y = tn_where(where[i], tn_cast(array(c, 2 + i), tn_dtype_of(y)), y);
        part[k] = y;
    }
    give(c, complex ? tn_complex(part[0], part[1]) : part[0]);
}

/* Python's integers are cast to the dtype of integers beside them: they may wrap around here, until NumPy 2.5. */
static tn_array *chosen(call *c, int i)
{
    const value *v = c->slot[i], *other = c->slot[3 - i];
    bool wraps = !numpy_1 && !numpy_2_5 && v && v->kind == INT && other && other->kind == ARRAY &&
                 tn_dtype_is_integer(tn_dtype_of(other->array));
    return wraps ? tn_cast(array(c, i), tn_dtype_of(other->array)) : operand(c, i, 1, 2);
}

static void where(call *c, const row *r)
{
    (void)r;
    if (given(c, 1)) {
        give(c, tn_where(array(c, 0), chosen(c, 1), chosen(c, 2)));
        return;
    }
    tn_array *x = numpy_1 ? tn_atleast_1d(array(c, 0)) : array(c, 0), *places[TN_MAX_NDIM];
    tn_nonzero(x, places);
    for (int d = 0; d < (tn_ndim(x) ? tn_ndim(x) : 1); d++)
        give(c, places[d]);
}

static void astype(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_dtype to = dtype(c, 1, TN_FLOAT64);
    const char *rule = string(c, 3, "unsafe");
    if (!tn_can_cast_by(TN_BOOL, TN_BOOL, rule) || !tn_can_cast_by(tn_dtype_of(x), to, rule))
        refuse(c, "casting '%s'", rule);
    give(c, tn_cast(x, to));
}

/* ---- whole arrays ---- */

static tn_close_opts close_options(call *c)
{
    double rtol = number(c, 2, 1e-5), atol = number(c, 3, 1e-8);
    return (tn_close_opts){
        ._ = ".rtol, .atol", .rtol = rtol, .atol = atol, .equal_nan = boolean(c, 4, false)}; /* zero, too */
}

static void isclose(call *c, const row *r)
{
    bool several = false;
    for (int i = 2; i < 4; i++)
        several |= given(c, i) && c->slot[i]->kind >= LIST && tn_ndim(array(c, i)) > 0;
    if (several) { /* a tolerance an element */
        tn_array *a = array(c, 0), *b = array(c, 1),
                 *rtol = given(c, 2) ? array(c, 2) : tn_scalar(1e-5, .dtype = TN_FLOAT64);
        tn_array *near = tn_less_equal(tn_abs(tn_subtract(a, b)),
                                       tn_add(given(c, 3) ? array(c, 3) : tn_scalar(1e-8, .dtype = TN_FLOAT64),
                                              tn_multiply(rtol, tn_abs(b))));
        tn_array *y = tn_logical_or(tn_logical_and(near, tn_isfinite(b)), tn_equal(a, b));
        y = boolean(c, 4, false) ? tn_logical_or(y, tn_logical_and(tn_isnan(a), tn_isnan(b))) : y;
        give(c, r->number ? tn_all(y) : y);
        return;
    }
    tn_close_opts o = close_options(c);
    tn_array *a = operand(c, 0, 0, 1), *b = operand(c, 1, 0, 1);
    if (r->number)
        give_bool(c, tn_allclose_with(a, b, &o));
    else
        give(c, tn_isclose_with(a, b, &o));
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

static void outer(call *c, const row *r)
{
    tn_ufunc_opts o = options(c, 2);
    tn_array *a = numpy_1 ? operand(c, 0, 0, 1) : array(c, 0), *b = numpy_1 ? operand(c, 1, 0, 1) : array(c, 1);
    give(c, tn_outer_with((tn_binary_function *)r->function, a, b, &o));
}

/* What nothing reduces to, by the names of those that have it; REORDERABLE ones take several axes. */
static const struct {
    const char *name;
    double identity; /* NAN: none */
} reorderable[] = {{"add", 0},         {"multiply", 1},     {"maximum", NAN},         {"minimum", NAN},
                   {"fmax", NAN},      {"fmin", NAN},       {"logical_and", 1},       {"logical_or", 0},
                   {"logical_xor", 0}, {"bitwise_and", -1}, {"bitwise_or", 0},        {"bitwise_xor", 0},
                   {"gcd", 0},         {"hypot", 0},        {"logaddexp", -INFINITY}, {"logaddexp2", -INFINITY}};

static int reorderable_of(const row *r)
{
    size_t length = strcspn(r->name, ".");
    for (size_t i = 0; i < sizeof reorderable / sizeof *reorderable; i++)
        if (strlen(reorderable[i].name) == length && !strncmp(r->name, reorderable[i].name, length))
            return (int)i;
    return -1;
}

/* ufunc.reduce writes into arrays with the result's axes only. */
static tn_array *reduced_out(call *c, const tn_array *x, const tn_reduce_opts *o)
{
    tn_array *out = array(c, 3);
    int ndim = o->keepdims ? tn_ndim(x) : o->axis.count ? tn_ndim(x) - o->axis.count : 0;
    bool fits = tn_ndim(out) == ndim;
    for (int d = 0, at = 0; fits && !o->keepdims && o->axis.count == 1 && d < tn_ndim(x); d++)
        if (d != (o->axis.axis[0] + tn_ndim(x)) % tn_ndim(x))
            fits = tn_dim(out, at++) == tn_dim(x, d);
    if (!fits)
        refuse(c, "out does not have the result's shape");
    return out;
}

/* Into out by any cast, as the methods have it. */
static tn_array *into(tn_array *out, tn_array *y)
{
    return tn_write(out, tn_cast(y, tn_dtype_of(out)), NULL);
}

tn_array *scanned_into(call *c, tn_array *out, tn_array *y)
{
    tn_key first[TN_MAX_NDIM + 1] = {{.kind = TN_KEY_ELLIPSIS}};
    int ndim = tn_ndim(y), more = tn_ndim(out) - ndim;
    bool fits = more >= 0 && !tn_is_error(y);
    for (int d = 0; fits && d < ndim; d++)
        fits = tn_dim(out, d) == tn_dim(y, d);
    for (int i = 0; i < more; i++)
        first[1 + i] = (tn_key){.kind = TN_KEY_NUMBER, .slice = {0, TN_NONE, TN_NONE}};
    if (!fits && !tn_is_error(y))
        refuse(c, "out does not have the result's shape");
    if (c->refused)
        return y;
    return tn_setitem(out, tn_cast(y, tn_dtype_of(out)), 1 + more, first) == TN_OK ? out : y;
}

/* The dtype of sums into out where none is asked for: one that holds both. */
static tn_dtype wider(tn_dtype asked, const tn_array *x, const tn_array *out)
{
    tn_dtype of = tn_dtype_of(x), to = tn_dtype_of(out);
    bool floats =
        (tn_dtype_is_float(of) || tn_dtype_is_complex(of)) && (tn_dtype_is_float(to) || tn_dtype_is_complex(to));
    return asked || !floats ? asked : tn_dtype_promote(of, to);
}

/* reduce has the first axis by default; None stands for all. r->number: by the function of two operands, else a
 * reduction. */
static void reduce(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    bool nothing = given(c, 1) && c->slot[1]->kind == LIST && c->slot[1]->list.count == 0;
    long long number_axis = c->slot[1] && c->slot[1]->kind == INT ? c->slot[1]->i : 0;
    if (tn_ndim(x) == 0 && number_axis != 0 && number_axis != -1)
        refuse(c, "a number has no axis %lld", number_axis);
    if (tn_ndim(x) == 0 || nothing)
        x = tn_expand_dims(x, 0);
    tn_reduce_opts o = {.axis = nothing || tn_ndim(array(c, 0)) == 0 ? TN_AXES(0)
                                : c->slot[1]                         ? axes(c, 1)
                                                                     : (tn_axes){1, {0}},
                        .dtype = dtype(c, 2, TN_DTYPE_DEFAULT),
                        .keepdims = boolean(c, 4, false) && !nothing && tn_ndim(array(c, 0)) > 0,
                        .where = mask(c, 6)};
    if (given(c, 5))
        o.initial = numpy_1 ? tn_cast(array(c, 5), o.dtype ? o.dtype : tn_dtype_of(x)) : operand(c, 5, 0, 0);
    if (given(c, 5) && c->slot[5]->kind == COMPLEX && !tn_dtype_is_complex(o.dtype ? o.dtype : tn_dtype_of(x)))
        refuse(c, "a complex initial value");
    bool sums = !strncmp(r->name, "add", 3) || !strncmp(r->name, "multiply", 8);
    if (given(c, 5) && !numpy_1 && (o.dtype || !sums))
        check_assigned(c, c->slot[5], o.dtype ? o.dtype : tn_dtype_of(x));
    bool nothing_left = o.where != NULL;
    for (int d = 0; d < tn_ndim(x); d++) {
        bool reduced = o.axis.count == 0;
        for (int i = 0; i < o.axis.count; i++)
            reduced |= o.axis.axis[i] == d || o.axis.axis[i] == d - tn_ndim(x);
        nothing_left |= reduced && tn_dim(x, d) == 0;
    }
    if (c->slot[5] && !given(c, 5) && nothing_left) /* initial=None: as if the function had no identity */
        refuse(c, "no identity");
    int known = reorderable_of(r);
    if (known < 0 && o.axis.count != 1 && tn_ndim(x) > 1)
        refuse(c, "not reorderable: one axis");
    bool logical = !strncmp(r->name, "logical", 7);
    if (logical && o.dtype && o.dtype != TN_BOOL)
        refuse(c, "gives bool");
    if (given(c, 3) && !o.dtype && r->number && !logical && tn_dtype_of(x) != TN_BOOL) /* in what holds both */
        x = tn_cast(x, tn_dtype_promote(tn_dtype_of(x), tn_dtype_of(array(c, 3))));
    if (r->number) {
        if (logical)
            x = tn_cast(x, TN_BOOL);
        if (known >= 0 && !isnan(reorderable[known].identity) && !o.initial &&
            (tn_size(x) == 0 || o.where || !strncmp(r->name, "hypot", 5) || !strncmp(r->name, "gcd", 3)))
            o.initial = isinf(reorderable[known].identity) ? tn_weak_float(reorderable[known].identity)
                        : reorderable[known].identity < 0  ? tn_invert(tn_zeros((tn_shape){0}, .dtype = tn_dtype_of(x)))
                                                           : tn_weak_int((long long)reorderable[known].identity);
        tn_array *y = tn_reduce_by((tn_binary_function *)r->function, x, &o);
        give(c, given(c, 3) ? into(reduced_out(c, x, &o), y) : y);
        return;
    }
    if (logical && o.initial) { /* any and all have no initial value: they are joined to it */
        tn_array *y = ((tn_array * (*)(const tn_array *, const tn_reduce_opts *))
                           r->function)(x, &(tn_reduce_opts){.axis = o.axis, .keepdims = o.keepdims, .where = o.where});
        y = r->name[8] == 'a' ? tn_logical_and(y, o.initial) : tn_logical_or(y, o.initial);
        give(c, given(c, 3) ? into(reduced_out(c, x, &o), y) : y);
        return;
    }
    bool extreme = known >= 0 && !strncmp(r->name, "m", 1) && r->name[1] != 'u';
    if (given(c, 3) && sums)
        o.dtype = wider(o.dtype, x, array(c, 3));
    if (extreme && o.dtype)
        x = tn_cast(x, o.dtype);
    tn_array *y = ((tn_array * (*)(const tn_array *, const tn_reduce_opts *)) r->function)(x, &o);
    give(c, given(c, 3) ? into(reduced_out(c, x, &o), y) : y);
}

static void accumulate(call *c, const row *r)
{
    tn_axis_opts o = {.axis = {1, {(int)integer(c, 1, 0)}}, .dtype = dtype(c, 2, TN_DTYPE_DEFAULT)};
    tn_array *x = array(c, 0);
    if (given(c, 3) && !r->number)
        o.dtype = wider(o.dtype, x, array(c, 3));
    if (c->slot[1] && !given(c, 1) && tn_ndim(x) > 1)
        refuse(c, "one axis");
    if (!strncmp(r->name, "logical", 7) && o.dtype && o.dtype != TN_BOOL)
        refuse(c, "gives bool");
    if (r->number == 1 && !strncmp(r->name, "logical", 7))
        x = tn_cast(x, TN_BOOL);
    tn_array *y = r->number == 1 ? tn_accumulate_by((tn_binary_function *)r->function, x, &o)
                                 : ((tn_array * (*)(const tn_array *, const tn_axis_opts *)) r->function)(x, &o);
    give(c, given(c, 3) ? scanned_into(c, array(c, 3), y) : y);
}

static void reduceat(call *c, const row *r)
{
    long long read[MAX_ARGUMENTS];
    int64_t place[MAX_ARGUMENTS];
    int count = c->slot[1] ? integers(c, c->slot[1], read, MAX_ARGUMENTS) : 0;
    for (int i = 0; i < count; i++)
        place[i] = read[i];
    tn_axis_opts o = {.axis = {1, {(int)integer(c, 2, 0)}},
                      .dtype = dtype(c, 3, TN_DTYPE_DEFAULT),
                      .out = given(c, 4) ? array(c, 4) : NULL};
    tn_array *x = array(c, 0);
    bool sums = !given(c, 3) && (!strncmp(r->name, "add", 3) || !strncmp(r->name, "multiply", 8));
    if (sums && (tn_dtype_is_integer(tn_dtype_of(x)) || tn_dtype_of(x) == TN_BOOL))
        x = tn_cast(x, tn_dtype_name(tn_dtype_of(x))[0] == 'u' ? TN_UINT64 : TN_INT64);
    if (!strncmp(r->name, "logical", 7))
        x = tn_cast(x, TN_BOOL);
    if (!c->refused)
        give(c, tn_reduceat_by((tn_binary_function *)r->function, x, count, place, &o));
}

static void at(call *c, const row *r)
{
    tn_key keys[MAX_ARGUMENTS];
    tn_array *x = array(c, 0), *y = numpy_1 ? array(c, 2) : operand(c, 2, 0, 2);
    int count = c->slot[1] ? index_keys(c, c->slot[1], keys) : 0;
    tn_array *once = ((tn_binary_function *)r->function)(tn_zeros(TN_SHAPE(1), .dtype = tn_dtype_of(x)),
                                                         tn_is_error(y) || !tn_ndim(y)
                                                             ? y
                                                             : tn_zeros(TN_SHAPE(1), .dtype = tn_dtype_of(y)));
    if (tn_is_error(once))
        refuse(c, "%s", tn_message_of(once));
    if (!c->refused && tn_apply_at((tn_binary_function *)r->function, x, y, count, keys) == TN_OK)
        give(c, x);
}

/* x[indices] = f(x[indices]), by a function of two operands that leaves out the second. */
#define OF_ONE(f) static tn_array *one_##f(const tn_array *a, const tn_array *b) { (void)b; return tn_##f(a); }
OF_ONE(negative) OF_ONE(positive) OF_ONE(abs) OF_ONE(sign) OF_ONE(square) OF_ONE(reciprocal) OF_ONE(exp) OF_ONE(log)
OF_ONE(sqrt)
OF_ONE(sin) OF_ONE(cos) OF_ONE(tanh) OF_ONE(floor) OF_ONE(ceil) OF_ONE(rint) OF_ONE(trunc) OF_ONE(invert)
OF_ONE(logical_not)
OF_ONE(tan) OF_ONE(arcsin) OF_ONE(arccos) OF_ONE(arctan) OF_ONE(sinh) OF_ONE(cosh) OF_ONE(arcsinh) OF_ONE(arccosh)
OF_ONE(arctanh) OF_ONE(exp2)
OF_ONE(expm1) OF_ONE(log2) OF_ONE(log10) OF_ONE(log1p) OF_ONE(cbrt) OF_ONE(fabs) OF_ONE(deg2rad) OF_ONE(rad2deg)
OF_ONE(isnan) OF_ONE(isinf)
OF_ONE(isfinite) OF_ONE(signbit) OF_ONE(spacing) OF_ONE(conjugate) OF_ONE(bitwise_count)

static void at_one(call *c, const row *r)
{
    tn_key keys[MAX_ARGUMENTS];
    tn_array *x = array(c, 0);
    int count = c->slot[1] ? index_keys(c, c->slot[1], keys) : 0;
    tn_array *once = ((tn_binary_function *)r->function)(tn_zeros(TN_SHAPE(0), .dtype = tn_dtype_of(x)), NULL);
    if (tn_is_error(once))
        refuse(c, "%s", tn_message_of(once));
    if (!c->refused && tn_apply_at((tn_binary_function *)r->function, x, tn_weak_int(0), count, keys) == TN_OK)
        give(c, x);
}

#define ROW1(name) {#name, UNARY, unary, NAME(tn_##name)}
/* NumPy's ufunc knows no bool. */
static tn_array *conjugate(const tn_array *x)
{
    return tn_conjugate(tn_dtype_of(x) == TN_BOOL ? tn_cast(x, TN_INT8) : x);
}

/* Its first operand is not weak, and exponents may be bool. */
static void ldexp_of(call *c, const row *r)
{
    tn_ufunc_opts o = options(c, 2);
    tn_array *a = array(c, 0), *b = numpy_1 ? array(c, 1) : operand(c, 1, 0, 1);
    if (tn_dtype_of(b) == TN_BOOL)
        b = tn_cast(b, TN_INT8);
    if (tn_dtype_of(b) == TN_UINT64)
        refuse(c, "exponents of uint64");
    if (o.dtype) { /* of the first operand and the result */
        if (!tn_dtype_is_float(o.dtype) ||
            !tn_can_cast_by(tn_dtype_of(a), o.dtype, o.casting ? o.casting : "same_kind"))
            refuse(c, "dtype");
        a = tn_cast(a, o.dtype);
        o.dtype = TN_DTYPE_DEFAULT;
    }
    give(c, plain(&o) ? tn_ldexp(a, b) : tn_binary_with((tn_binary_function *)r->function, a, b, &o));
}

#define OUTER(name, f) {#name ".outer", "A B out | where dtype casting order subok", outer, NAME(tn_##f)}
#define AT_ONE(name, f) {#name ".at", "a indices", at_one, NAME(one_##f)}
#define AT(name, f)    {#name ".at", "a indices b", at, NAME(tn_##f)}
#define REDUCE_ARGUMENTS "array axis dtype out keepdims initial where"
#define METHODS(name, f) \
    {#name ".reduce", REDUCE_ARGUMENTS, reduce, NAME(tn_##f), 1}, \
    { \
#name ".accumulate", "array axis dtype out", accumulate, NAME(tn_##f), 1 \
    }
#define REDUCEAT(name, f) {#name ".reduceat", "array indices axis dtype out", reduceat, NAME(tn_##f)}
#define ROW2(name) {#name, BINARY, binary, NAME(tn_##name)}, OUTER(name, name)
static const row rows[] = {
    ROW1(negative), ROW1(positive), ROW1(sign), ROW1(square), ROW1(reciprocal), ROW1(exp), ROW1(exp2), ROW1(expm1),
    ROW1(log),
    ROW1(log2), ROW1(log10), ROW1(log1p), ROW1(sqrt), ROW1(cbrt), ROW1(sin), ROW1(cos), ROW1(tan), ROW1(arcsin),
    ROW1(arccos),
    ROW1(arctan), ROW1(sinh), ROW1(cosh), ROW1(tanh), ROW1(arcsinh), ROW1(arccosh), ROW1(arctanh), ROW1(floor),
    ROW1(ceil),
    ROW1(trunc), ROW1(rint), ROW1(isnan), ROW1(isinf), ROW1(isfinite), ROW1(signbit), ROW1(logical_not), ROW1(invert),
    ROW1(fabs), ROW1(fix), ROW1(deg2rad), ROW1(rad2deg), ROW1(sinc), ROW1(spacing), ROW1(isposinf), ROW1(isneginf),
    ROW1(bitwise_count),
    {"absolute", UNARY, unary, NAME(tn_abs)}, {"abs", UNARY, unary, NAME(tn_abs)},
    {"radians", UNARY, unary, NAME(tn_deg2rad)}, {"degrees", UNARY, unary, NAME(tn_rad2deg)},
    {"bitwise_not", UNARY, unary, NAME(tn_invert)}, {"bitwise_invert", UNARY, unary, NAME(tn_invert)},
    {"asin", UNARY, unary, NAME(tn_arcsin)}, {"acos", UNARY, unary, NAME(tn_arccos)},
    {"atan", UNARY, unary, NAME(tn_arctan)},
    {"asinh", UNARY, unary, NAME(tn_arcsinh)}, {"acosh", UNARY, unary, NAME(tn_arccosh)},
    {"atanh", UNARY, unary, NAME(tn_arctanh)},
    ROW2(add), ROW2(subtract), ROW2(multiply), ROW2(divide), ROW2(floor_divide), ROW2(remainder), ROW2(fmod),
    ROW2(power),
    ROW2(maximum), ROW2(minimum), ROW2(fmax), ROW2(fmin), ROW2(arctan2), ROW2(hypot), ROW2(copysign), ROW2(logaddexp),
    ROW2(logaddexp2), ROW2(heaviside), ROW2(nextafter), {"ldexp", BINARY, ldexp_of, NAME(tn_ldexp)},
    OUTER(ldexp, ldexp), ROW2(gcd), ROW2(lcm), ROW2(float_power), ROW2(equal),
    ROW2(not_equal), ROW2(less), ROW2(less_equal), ROW2(greater), ROW2(greater_equal), ROW2(logical_and),
    ROW2(logical_or),
    ROW2(logical_xor), ROW2(bitwise_and), ROW2(bitwise_or), ROW2(bitwise_xor), ROW2(left_shift), ROW2(right_shift),
    {"true_divide", BINARY, binary, NAME(tn_divide)}, {"mod", BINARY, binary, NAME(tn_remainder)},
    {"pow", BINARY, binary, NAME(tn_power)}, {"atan2", BINARY, binary, NAME(tn_arctan2)},
    {"bitwise_left_shift", BINARY, binary, NAME(tn_left_shift)},
    {"bitwise_right_shift", BINARY, binary, NAME(tn_right_shift)},
    {"frexp", UNARY, two_of_one, NAME(tn_frexp)}, {"modf", UNARY, two_of_one, NAME(tn_modf)},
    {"divmod", BINARY, divmod},
    {"round", "a decimals out", round_off}, {"around", "a decimals out", round_off},
    {"round_", "a decimals out", round_off},
    {"clip", "a a_min a_max out | min max dtype where casting", clip},
    {"nan_to_num", "x copy nan posinf neginf", nan_to_num},
    {"where", "condition x y", where}, {"astype", "x dtype order casting subok copy", astype},
    {"isclose", "a b rtol atol equal_nan", isclose}, {"allclose", "a b rtol atol equal_nan", isclose, NULL, 1},
    {"array_equal", "a1 a2 equal_nan", array_equal}, {"array_equiv", "a1 a2", array_equiv},
    {"conj", UNARY, unary, NAME(conjugate)}, {"conjugate", UNARY, unary, NAME(conjugate)},
    OUTER(true_divide, divide), OUTER(mod, remainder), OUTER(pow, power), OUTER(atan2, arctan2),
    OUTER(bitwise_left_shift, left_shift), OUTER(bitwise_right_shift, right_shift),
#define ALL_METHODS(name, f) METHODS(name, f), AT(name, f), REDUCEAT(name, f)
    METHODS(subtract, subtract), REDUCEAT(subtract, subtract), REDUCEAT(add, add), REDUCEAT(multiply, multiply),
    AT(multiply, multiply),
    REDUCEAT(maximum, maximum), REDUCEAT(minimum, minimum), AT(maximum, maximum), AT(minimum, minimum),
    REDUCEAT(logical_and, logical_and), REDUCEAT(logical_or, logical_or), AT(logical_and, logical_and),
    AT(logical_or, logical_or),
    {"logical_and.accumulate", "array axis dtype out", accumulate, NAME(tn_logical_and), 1},
    {"logical_or.accumulate", "array axis dtype out", accumulate, NAME(tn_logical_or), 1},
    ALL_METHODS(logical_xor, logical_xor), ALL_METHODS(divide, divide), ALL_METHODS(true_divide, divide),
    ALL_METHODS(floor_divide, floor_divide),
    ALL_METHODS(remainder, remainder), ALL_METHODS(mod, remainder), ALL_METHODS(fmod, fmod), ALL_METHODS(power, power),
    ALL_METHODS(pow, power),
    ALL_METHODS(fmax, fmax), ALL_METHODS(fmin, fmin), ALL_METHODS(arctan2, arctan2), ALL_METHODS(atan2, arctan2),
    ALL_METHODS(hypot, hypot),
    ALL_METHODS(copysign, copysign), ALL_METHODS(logaddexp, logaddexp), ALL_METHODS(logaddexp2, logaddexp2),
    ALL_METHODS(heaviside, heaviside),
    ALL_METHODS(nextafter, nextafter), ALL_METHODS(gcd, gcd), ALL_METHODS(lcm, lcm),
    ALL_METHODS(float_power, float_power),
    ALL_METHODS(bitwise_and, bitwise_and), ALL_METHODS(bitwise_or, bitwise_or), ALL_METHODS(bitwise_xor, bitwise_xor),
    ALL_METHODS(left_shift, left_shift), ALL_METHODS(right_shift, right_shift),
    ALL_METHODS(bitwise_left_shift, left_shift),
    ALL_METHODS(bitwise_right_shift, right_shift), ALL_METHODS(ldexp, ldexp),
    ALL_METHODS(equal, equal), ALL_METHODS(not_equal, not_equal), ALL_METHODS(less, less),
    ALL_METHODS(less_equal, less_equal),
    ALL_METHODS(greater, greater), ALL_METHODS(greater_equal, greater_equal),
    AT_ONE(negative, negative), AT_ONE(positive, positive), AT_ONE(absolute, abs), AT_ONE(abs, abs), AT_ONE(sign, sign),
    AT_ONE(square, square),
    AT_ONE(reciprocal, reciprocal), AT_ONE(exp, exp), AT_ONE(log, log), AT_ONE(sqrt, sqrt), AT_ONE(sin, sin),
    AT_ONE(cos, cos), AT_ONE(tanh, tanh),
    AT_ONE(tan, tan), AT_ONE(arcsin, arcsin), AT_ONE(asin, arcsin), AT_ONE(arccos, arccos), AT_ONE(acos, arccos),
    AT_ONE(arctan, arctan),
    AT_ONE(atan, arctan), AT_ONE(sinh, sinh), AT_ONE(cosh, cosh), AT_ONE(arcsinh, arcsinh), AT_ONE(asinh, arcsinh),
    AT_ONE(arccosh, arccosh),
    AT_ONE(acosh, arccosh), AT_ONE(arctanh, arctanh), AT_ONE(atanh, arctanh), AT_ONE(exp2, exp2), AT_ONE(expm1, expm1),
    AT_ONE(log2, log2),
    AT_ONE(log10, log10), AT_ONE(log1p, log1p), AT_ONE(cbrt, cbrt), AT_ONE(fabs, fabs), AT_ONE(deg2rad, deg2rad),
    AT_ONE(radians, deg2rad),
    AT_ONE(rad2deg, rad2deg), AT_ONE(degrees, rad2deg), AT_ONE(isnan, isnan), AT_ONE(isinf, isinf),
    AT_ONE(isfinite, isfinite),
    AT_ONE(signbit, signbit), AT_ONE(spacing, spacing), AT_ONE(conjugate, conjugate), AT_ONE(conj, conjugate),
    AT_ONE(bitwise_count, bitwise_count),
    AT_ONE(bitwise_not, invert), AT_ONE(bitwise_invert, invert), AT_ONE(floor, floor), AT_ONE(ceil, ceil),
    AT_ONE(rint, rint), AT_ONE(trunc, trunc), AT_ONE(invert, invert), AT_ONE(logical_not, logical_not),
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
