/* SPDX-License-Identifier: MIT */
/* Replaying reductions, statistics, scans and counts. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)

typedef tn_array *reduction(const tn_array *x, const tn_reduce_opts *opts);
typedef tn_array *scan(const tn_array *x, const tn_axis_opts *opts);

/* axis=() reduces nothing, which an empty list of axes does not say here: over a new axis of extent 1, then. */
static void over_nothing(call *c, int i, tn_array **x, tn_axes *list, bool *keepdims)
{
    if (!given(c, i) || c->slot[i]->kind != LIST || c->slot[i]->list.count != 0)
        return;
    *x = tn_expand_dims(*x, 0);
    *list = (tn_axes){1, {0}};
    *keepdims = false;
}

/* An axis of a number: of the vector of one that NumPy makes of it. */
static tn_array *vector_of(call *c, int x, int axis)
{
    tn_array *a = array(c, x);
    long long k = given(c, axis) && is_integer(c, axis) ? integer(c, axis, 0) : 1;
    return tn_ndim(a) == 0 && (k == 0 || k == -1) ? tn_reshape(a, TN_SHAPE(1)) : a;
}

/* ufunc.reduce writes into arrays of the result's shape only. */
static tn_array *fitting_out(call *c, int i, const tn_array *x, const tn_reduce_opts *o)
{
    if (!given(c, i))
        return NULL;
    tn_array *out = array(c, i);
    int ndim = o->keepdims ? tn_ndim(x) : o->axis.count && tn_ndim(x) ? tn_ndim(x) - o->axis.count : 0;
    if (tn_ndim(out) != ndim)
        refuse(c, "out has %d axes, the result %d", tn_ndim(out), ndim);
    return out;
}

enum { WITH_DTYPE = 1 };

/* a axis dtype out keepdims initial where */
static void reduce(call *c, const row *r)
{
    bool typed = r->number & WITH_DTYPE;
    int at = typed ? 3 : 2; /* of out */
    tn_array *x = array(c, 0);
    tn_reduce_opts o = {.axis = axes(c, 1), .dtype = typed ? dtype(c, 2, TN_DTYPE_DEFAULT) : TN_DTYPE_DEFAULT,
                        .keepdims = boolean(c, at + 1, false)};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    o.where = mask(c, at + 3);
    o.initial = given(c, at + 2) ? operand(c, at + 2, 0, 0) : NULL;
    tn_dtype summed = o.dtype                                   ? o.dtype
                      : !typed                                  ? tn_dtype_of(x)
                      : tn_dtype_name(tn_dtype_of(x))[0] == 'u' ? TN_UINT64
                                                                : TN_INT64;
    if (given(c, at + 2))
        check_assigned(c, c->slot[at + 2],
                       tn_dtype_of(x) == TN_BOOL || tn_dtype_is_integer(tn_dtype_of(x)) || !typed || o.dtype
                           ? summed
                           : tn_dtype_of(x));
    if (numpy_1 && o.initial)
        o.initial = tn_cast(array(c, at + 2), summed);
    o.out = fitting_out(c, at, x, &o);
    give(c, ((reduction *)r->function)(x, &o));
}

static bool inexact(tn_dtype dtype) { return tn_dtype_is_float(dtype) || tn_dtype_is_complex(dtype); }

/* The functions that skip NaN take a float's axis 0, the others none. */
static tn_array *skipping(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    return !strncmp(r->name, "nan", 3) && inexact(tn_dtype_of(x)) ? vector_of(c, 0, 1) : x;
}

/* The functions that skip NaN keep floats what they are, in dtype (slot 2) and out (slot 3). */
static void stays_inexact(call *c, const row *r, const tn_array *x)
{
    bool nan = !strncmp(r->name, "nan", 3) && inexact(tn_dtype_of(x));
    if (nan && given(c, 2) && !inexact(dtype(c, 2, TN_FLOAT64)))
        refuse(c, "dtype must be inexact");
    if (nan && given(c, 3) && !inexact(tn_dtype_of(array(c, 3))))
        refuse(c, "out must be inexact");
}

/* a axis dtype out keepdims where */
static void mean(call *c, const row *r)
{
    tn_array *x = boolean(c, 4, false) ? array(c, 0) : skipping(c, r);
    stays_inexact(c, r, x);
    tn_reduce_opts o = {.axis = axes(c, 1), .dtype = dtype(c, 2, TN_DTYPE_DEFAULT), .keepdims = boolean(c, 4, false)};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    o.where = mask(c, 5);
    o.out = fitting_out(c, 3, x, &o);
    give(c, ((reduction *)r->function)(x, &o));
}

/* a axis dtype out ddof keepdims where */
static void variance(call *c, const row *r)
{
    tn_array *x = boolean(c, 5, false) ? array(c, 0) : skipping(c, r);
    tn_reduce_opts o = {.axis = axes(c, 1), .ddof = number(c, 4, 0), .keepdims = boolean(c, 5, false),
                        .dtype = dtype(c, 2, TN_DTYPE_DEFAULT)};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    if (given(c, 8) && given(c, 4) && number(c, 4, 0) != 0)
        refuse(c, "ddof and correction");
    if (given(c, 8))
        o.ddof = number(c, 8, 0);
    o.where = mask(c, 6);
    o.mean = given(c, 7) ? operand(c, 7, 0, 0) : NULL;
    o.out = fitting_out(c, 3, x, &o);
    stays_inexact(c, r, x);
    /* a root is no whole number, but one alone is made one */
    bool root = strstr(r->name, "std"), whole = o.dtype && !inexact(o.dtype);
    if (root && o.out && !inexact(tn_dtype_of(o.out)))
        refuse(c, "the root may not be cast to out");
    if (c->refused)
        return;
    tn_array *y = ((reduction *)r->function)(x, &o);
    if (root && whole && tn_ndim(y))
        refuse(c, "the root may not be cast to dtype");
    give(c, root && whole ? tn_cast(y, o.dtype) : y);
}

/* a axis out keepdims where */
static void whether(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    tn_reduce_opts o = {.axis = axes(c, 1), .keepdims = boolean(c, 3, false)};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    o.where = mask(c, 4);
    o.out = fitting_out(c, 2, x, &o);
    give(c, ((reduction *)r->function)(x, &o));
}

/* a axis out keepdims */
static void position(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    if (strcmp(r->name, "ptp"))
        (void)one_axis(c, 1);
    tn_reduce_opts o = {.axis = axes(c, 1), .keepdims = boolean(c, 3, false)};
    if (!strcmp(r->name, "ptp"))
        over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    o.out = fitting_out(c, 2, x, &o);
    give(c, ((reduction *)r->function)(x, &o));
}

/* a axis out overwrite_input keepdims */
static void median(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    tn_reduce_opts o = {.axis = axes(c, 1), .keepdims = boolean(c, 4, false), .out = given(c, 2) ? array(c, 2) : NULL};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    give(c, ((reduction *)r->function)(x, &o));
}

static void count_nonzero(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_reduce_opts o = {.axis = axes(c, 1), .keepdims = boolean(c, 2, false)};
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    give(c, tn_count_nonzero_with(x, &o));
}

/* NumPy 1's closest_observation, whose ties are at even places; along one axis or all. */
static tn_array *first_closest(tn_array *x, tn_array *q, tn_axes list, bool keepdims)
{
    tn_shape ones = tn_shape_of(x), flat = {.ndim = tn_ndim(q)};
    for (int d = 0; list.count == 0 && d < ones.ndim; d++)
        ones.dim[d] = 1;
    x = list.count ? x : tn_ravel(x);
    int axis = list.count ? list.axis[0] + (list.axis[0] < 0 ? tn_ndim(x) : 0) : 0;
    if (list.count > 1 || axis < 0 || axis >= tn_ndim(x))
        return tn_median(x, .axis = list, .keepdims = keepdims);
    double n = (double)tn_dim(x, axis);
    tn_array *h = tn_subtract(tn_multiply(q, n), 1.5), *below = tn_floor(h);
    tn_array *tie = tn_logical_and(tn_equal(h, below), tn_equal(tn_remainder(below, 2), 0));
    tn_array *place = tn_cast(tn_clip(tn_where(tie, below, tn_add(below, 1)), 0, n - 1), TN_INT64);
    tn_array *y =
        tn_moveaxis(tn_take(tn_sort(x, .axis = TN_AXES(axis)), tn_ravel(place), axis), TN_AXES(axis), TN_AXES(0));
    for (int d = 0; d < flat.ndim; d++)
        flat.dim[d] = tn_dim(q, d);
    if (list.count)
        ones.dim[axis] = 1;
    for (int d = 0; d < (list.count || keepdims ? ones.ndim : 0); d++)
        if (keepdims || d != axis)
            flat.dim[flat.ndim++] = ones.dim[d];
    return tn_reshape(y, flat);
}

typedef tn_array *quantile_function(const tn_array *, const tn_array *, const tn_quantile_opts *);

/* NumPy 1's quantiles of complex numbers: between those at the places that the quantiles of 0, 1, 2, ... name. */
static tn_array *first_of_complex(quantile_function *f, tn_array *x, tn_array *q, const tn_quantile_opts *o)
{
    int ndim = tn_ndim(x), at = 0;
    bool reduced[TN_MAX_NDIM] = {false};
    for (int i = 0; i < o->axis.count; i++)
        reduced[(o->axis.axis[i] + ndim) % ndim] = true;
    tn_axes order = {.count = ndim};
    tn_shape kept = {0}, rows, shape = tn_shape_of(q);
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < ndim; d++)
            if ((reduced[d] || o->axis.count == 0) == pass)
                order.axis[at++] = d;
    for (int d = 0; d < ndim; d++)
        if (!(reduced[d] || o->axis.count == 0))
            kept.dim[kept.ndim++] = tn_dim(x, d);
    rows = kept;
    rows.dim[rows.ndim++] = -1;
    tn_array *sorted = tn_sort(tn_reshape(ndim ? tn_transpose(x, order) : x, rows), .axis = TN_AXES(-1)),
             *number = tn_arange(0, (double)tn_dim(sorted, -1), 1, .dtype = TN_FLOAT64);
    const tn_quantile_opts plain = {.method = o->method};
    tn_array *place = tn_ravel(f(number, q, &plain)), *low = tn_floor(place), *t = tn_subtract(place, low);
    tn_array *a = tn_take(sorted, tn_cast(low, TN_INT64), -1),
             *b = tn_take(sorted, tn_cast(tn_ceil(place), TN_INT64), -1), *d = tn_subtract(b, a);
    tn_array *y =
        tn_where(tn_less(t, 0.5), tn_add(a, tn_multiply(d, t)), tn_subtract(b, tn_multiply(d, tn_subtract(1, t))));
    const char *const picks[] = {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"};
    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++)
        if (o->method && !strcmp(o->method, picks[i]))
            y = tn_cast(y, tn_dtype_of(x));
    for (int d = 0, k = 0; d < ndim; d++) {
        bool gone = reduced[d] || o->axis.count == 0;
        if (!gone || o->keepdims)
            shape.dim[shape.ndim++] = gone ? 1 : kept.dim[k];
        k += !gone;
    }
    y = tn_reshape(tn_moveaxis(y, TN_AXES(-1), TN_AXES(0)), shape);
    return o->out ? tn_write(o->out, tn_cast(y, tn_dtype_of(o->out)), NULL) : y;
}

/* a q axis out overwrite_input method keepdims interpolation */
static void quantile(call *c, const row *r)
{
    tn_quantile_opts o = {.axis = axes(c, 2),
                          .method = string(c, given(c, 7) ? 7 : 5, NULL),
                          .keepdims = boolean(c, 6, false),
                          .out = given(c, 3) ? array(c, 3) : NULL,
                          .weights = given(c, 8) ? array(c, 8) : NULL};
    tn_array *x = array(c, 0);
    if (o.weights && given(c, 2) && c->slot[2]->kind == LIST && c->slot[2]->list.count == 0)
        o.weights = tn_expand_dims(o.weights, 0);
    over_nothing(c, 2, &x, &o.axis, &o.keepdims);
    const value *v = c->slot[1];
    tn_array *q = numpy_1 ? tn_cast(array(c, 1), TN_FLOAT64)
                  : v && (v->kind == FLOAT || v->kind == INT) && tn_dtype_of(x) != TN_FLOAT64
                      ? (v->kind == INT ? tn_weak_int(v->i) : tn_weak_float(number(c, 1, 0)))
                      : array(c, 1);
    if (numpy_1 && o.method && !strcmp(o.method, "closest_observation") && tn_size(x) && !o.out &&
        !tn_item(tn_any(tn_isnan(x))))
        give(c, first_closest(x, strstr(r->name, "percentile") ? tn_divide(q, 100.0) : q, o.axis, o.keepdims));
    else if (numpy_1 && tn_dtype_is_complex(tn_dtype_of(x)) && tn_size(x) && !c->refused)
        give(c, first_of_complex((quantile_function *)r->function, x, q, &o));
    else
        give(c, ((quantile_function *)r->function)(x, q, &o));
}

static void average(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *total = NULL;
    tn_reduce_opts o = {.axis = axes(c, 1), .keepdims = boolean(c, 4, false)};
    tn_array *weights = given(c, 2) ? array(c, 2) : NULL;
    if (tn_ndim(x) == 0 && o.axis.count && !numpy_1)
        refuse(c, "a number has no axes");
    bool nothing = given(c, 1) && c->slot[1]->kind == LIST && c->slot[1]->list.count == 0;
    if (weights && nothing)
        weights = tn_expand_dims(weights, 0);
    over_nothing(c, 1, &x, &o.axis, &o.keepdims);
    tn_array *y = weights && tn_size(x) == 0 && nothing ? tn_mean_with(x, &o) : tn_average_with(x, weights, &total, &o);
    if (!weights && tn_size(y) == 0)
        refuse(c, "there is nothing to divide by");
    give(c, y);
    if (boolean(c, 3, false))
        give(c, total ? total : y);
}

/* ---- scans ---- */

static void scan_along(call *c, const row *r)
{
    tn_axis_opts o = {.axis = one_axis(c, 1), .dtype = dtype(c, 2, TN_DTYPE_DEFAULT)};
    tn_array *x = vector_of(c, 0, 1);
    if (r->number && !given(c, 1) && tn_ndim(x) > 1)
        refuse(c, "an axis is needed");
    if (c->refused)
        return;
    bool own = given(c, 3) && !r->number && tn_ndim(array(c, 3)) == (given(c, 1) ? tn_ndim(x) : 1);
    if (own)
        o.out = array(c, 3);
    tn_array *y = ((scan *)r->function)(x, &o);
    if (r->number && boolean(c, 4, false) && !tn_is_error(y)) {
        int axis = (int)integer(c, 1, 0);
        tn_array *first = tn_slice_axis(y, axis, 0, 0, 1);
        tn_shape one = tn_shape_of(first);
        one.dim[axis < 0 ? axis + one.ndim : axis] = 1;
        first = r->number == 2 ? tn_ones(one, .dtype = tn_dtype_of(y)) : tn_zeros(one, .dtype = tn_dtype_of(y));
        tn_array *both[] = {first, y};
        y = tn_concatenate(2, (const tn_array *const *)both, axis);
    }
    give(c, given(c, 3) && !own ? scanned_into(c, array(c, 3), y) : y);
}

static void diff(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    int axis = (int)integer(c, 2, -1);
    if (integer(c, 1, 1) == 0) { /* as it is, whatever stands beside it */
        give(c, x);
        return;
    }
    if (axis < -tn_ndim(x) || axis >= tn_ndim(x))
        refuse(c, "no axis %d", axis);
    for (int side = 3; side <= 4 && !c->refused; side++)
        if (given(c, side)) {
            tn_array *more = array(c, side);
            if (tn_ndim(more) == 0) {
                tn_shape one = tn_shape_of(x);
                one.dim[axis < 0 ? axis + one.ndim : axis] = 1;
                more = tn_broadcast_to(more, one);
            }
            x = tn_append(side == 3 ? more : x, side == 3 ? x : more, TN_AXES(axis));
        }
    give(c, tn_diff(x, (int)integer(c, 1, 1), axis));
}

static void ediff1d(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_array *end[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        end[i] = given(c, 1 + i) ? array(c, 1 + i) : NULL;
        /* by its value */
        if (end[i] && numpy_1 && c->slot[1 + i]->kind == INT)
            end[i] = tn_cast(end[i], tn_dtype_of(x));
    }
    give(c, tn_ediff1d(x, end[0], end[1]));
}

/* f, then distances: none, one for all, or one an axis; axis and edge_order by keyword. */
static void gradient(call *c, const row *r)
{
    (void)r;
    if (c->rest_count < 1) {
        refuse(c, "no array");
        return;
    }
    tn_array *x = array_of(c, c->rest[0]);
    tn_axes list = axes(c, 1);
    if (integer(c, 2, 1) > 2)
        refuse(c, "edge_order");
    if (!given(c, 1)) {
        list.count = tn_ndim(x);
        for (int d = 0; d < list.count; d++)
            list.axis[d] = d;
    }
    int distances = c->rest_count - 1;
    bool one = distances == 1 &&
               (c->rest[1]->kind <= COMPLEX || (c->rest[1]->kind == ARRAY && tn_ndim(c->rest[1]->array) == 0));
    if (distances > 0 && !one && distances != list.count)
        refuse(c, "%d distances for %d axes", distances, list.count);
    for (int i = 0; i < list.count && !c->refused; i++) {
        const value *v = distances == 0 ? NULL : c->rest[distances == 1 ? 1 : 1 + i];
        double spacing = 1;
        tn_array *coordinates = NULL;
        if (v && (v->kind == ARRAY || v->kind == LIST) && !(v->kind == ARRAY && tn_ndim(v->array) == 0))
            coordinates = array_of(c, v);
        else if (v)
            spacing = tn_item(array_of(c, v));
        give(c, tn_gradient(x, spacing, coordinates, list.axis[i], (int)integer(c, 2, 1)));
    }
}

static void trapezoid(call *c, const row *r)
{
    (void)r;
    give(c, tn_trapezoid(array(c, 0), given(c, 1) ? array(c, 1) : NULL, number(c, 2, 1), (int)integer(c, 3, -1)));
}

static double *part_of(call *c, int i, int k, double *out)
{
    double both[2] = {0};
    if (!given(c, i) || tn_item_parts(array(c, i), both) != TN_OK)
        return NULL;
    *out = both[k];
    return out;
}

static void interp(call *c, const row *r)
{
    (void)r;
    /* part by part */
    if (!given(c, 5) && tn_dtype_is_complex(tn_dtype_of(array(c, 2))) &&
        ((given(c, 3) && c->slot[3]->kind == COMPLEX) || (given(c, 4) && c->slot[4]->kind == COMPLEX))) {
        tn_array *y[2];
        for (int k = 0; k < 2; k++) {
            double left = 0, right = 0;
            tn_array *part = k ? tn_imag(array(c, 2)) : tn_real(array(c, 2));
            y[k] = tn_interp(array(c, 0), array(c, 1), part, part_of(c, 3, k, &left), part_of(c, 4, k, &right));
        }
        give(c, tn_complex(y[0], y[1]));
        return;
    }
    if (given(c, 5)) {
        give(c, tn_interp_periodic(array(c, 0), array(c, 1), array(c, 2), number(c, 5, 0)));
        return;
    }
    double left = number(c, 3, 0), right = number(c, 4, 0);
    if (!c->refused)
        give(c, tn_interp(array(c, 0), array(c, 1), array(c, 2), given(c, 3) ? &left : NULL,
                          given(c, 4) ? &right : NULL));
}

/* ---- pairs, counts ---- */

/* m y rowvar bias ddof */
static void cov(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    bool by_columns = !boolean(c, 2, true);
    if (given(c, 1) && !(tn_ndim(x) == 2 && tn_dim(x, by_columns) == 0)) {
        tn_array *both[] = {tn_atleast_2d(x), tn_atleast_2d(array(c, 1))};
        for (int i = 0; i < 2; i++)
            if (by_columns && tn_ndim(array(c, i)) == 2 && !(numpy_1 && tn_dim(both[i], 0) == 1))
                both[i] = tn_transpose(both[i], (tn_axes){0});
        x = tn_concatenate(2, (const tn_array *const *)both, 0);
        by_columns = false;
    }
    if (numpy_1 && tn_ndim(x) == 2 && tn_dim(x, 0) == 1)
        by_columns = false;
    int ddof = given(c, 4) ? (int)integer(c, 4, 1) : boolean(c, 3, false) ? 0 : 1;
    const tn_cov_opts o = {._ = ".ddof", /* zero, too */
                           .by_columns = by_columns,
                           .ddof = ddof,
                           .fweights = r->number || !given(c, 5) ? NULL : array(c, 5),
                           .aweights = r->number || !given(c, 6) ? NULL : array(c, 6),
                           .dtype = r->number ? TN_DTYPE_DEFAULT : dtype(c, 7, TN_DTYPE_DEFAULT)};
    tn_array *y = r->number ? tn_corrcoef(x, by_columns) : tn_cov_with(x, &o);
    give(c, r->number ? tn_cast(y, dtype(c, 5, tn_dtype_of(y))) : y);
}

static void convolve(call *c, const row *r)
{
    tn_array *a = tn_atleast_1d(array(c, 0)), *b = tn_atleast_1d(array(c, 1));
    static const char *const modes[] = {"valid", "same", "full"};
    const char *mode = r->number ? "valid" : "full", *word = "";
    if (c->slot[2] && c->slot[2]->kind == INT && c->slot[2]->i >= 0 &&
        c->slot[2]->i <= 2) /* as they were called once */
        mode = modes[c->slot[2]->i];
    else if (c->slot[2])
        mode = word = string(c, 2, NULL) ? string(c, 2, NULL) : "None";
    for (int i = 0; i < 3; i++)
        if (strlen(word) == 1 && *word == *modes[i])
            mode = modes[i];
    if (r->number && (tn_ndim(array(c, 0)) == 0 || tn_ndim(array(c, 1)) == 0))
        refuse(c, "expected vectors");
    give(c, r->number ? tn_correlate(a, b, mode) : tn_convolve(a, b, mode));
}

static void bincount(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (c->slot[0] && c->slot[0]->kind == ARRAY && inexact(tn_dtype_of(x)))
        refuse(c, "expected integers");
    if (numpy_1 && tn_dtype_of(x) == TN_UINT64)
        refuse(c, "no safe cast");
    if (tn_dtype_of(x) == TN_UINT64 || inexact(tn_dtype_of(x)))
        x = tn_cast(x, TN_INT64);
    give(c, tn_bincount(x, given(c, 1) ? array(c, 1) : NULL, integer(c, 2, 0)));
}

/* a bins range density weights | a bins range weights */
static void histogram(call *c, const row *r)
{
    tn_histogram_opts o = {.bins = 10};
    tn_array *x = array(c, 0), *edges = NULL;
    if (given(c, 1) && c->slot[1]->kind == STRING)
        o.rule = c->slot[1]->text;
    else if (given(c, 1) && (is_integer(c, 1) || c->slot[1]->kind == BOOL))
        o.bins = integer(c, 1, 10) ? integer(c, 1, 10) : -1;
    else if (given(c, 1))
        o.edges = array(c, 1);
    if (numpy_1 && o.rule)
        x = first_inexact(x); /* bins of integers as of others */
    if (!o.edges && given(c, 2) && c->slot[2]->kind == LIST && c->slot[2]->list.count == 2) {
        tn_array *limits = array(c, 2);
        o.low = tn_item(tn_index(limits, 0));
        o.high = tn_item(tn_index(limits, 1));
        if (o.low == 0 && o.high == 0) { /* the library's "not given" */
            o.low = -0.5;
            o.high = 0.5;
        }
        if (!(o.low <= o.high))
            refuse(c, "limits in the wrong order");
    }
    if (r->number) {
        o.weights = given(c, 3) ? array(c, 3) : NULL;
        give(c, tn_histogram_bin_edges_with(x, &o));
        return;
    }
    o.density = boolean(c, 3, false);
    o.weights = given(c, 4) ? array(c, 4) : NULL;
    give(c, tn_histogram_with(x, &edges, &o));
    give(c, edges);
}

#define SUM "a axis dtype out keepdims initial where"
#define EXTREME "a axis out keepdims initial where"
#define VAR "a axis dtype out ddof keepdims where mean correction"
#define QUANTILE "a q axis out overwrite_input method keepdims interpolation weights"
#define SCAN "a axis dtype out"
#define POSITION "a axis out keepdims"
static const row rows[] = {
    {"sum", SUM, reduce, NAME(tn_sum_with), WITH_DTYPE},
    {"prod", SUM, reduce, NAME(tn_prod_with), WITH_DTYPE},
    {"nansum", SUM, reduce, NAME(tn_nansum_with), WITH_DTYPE},
    {"nanprod", SUM, reduce, NAME(tn_nanprod_with), WITH_DTYPE},
    {"max", EXTREME, reduce, NAME(tn_max_with)},
    {"amax", EXTREME, reduce, NAME(tn_max_with)},
    {"min", EXTREME, reduce, NAME(tn_min_with)},
    {"amin", EXTREME, reduce, NAME(tn_min_with)},
    {"nanmax", EXTREME, reduce, NAME(tn_nanmax_with)},
    {"nanmin", EXTREME, reduce, NAME(tn_nanmin_with)},
    {"product", SUM, reduce, NAME(tn_prod_with), WITH_DTYPE}, {"cumproduct", SCAN, scan_along, NAME(tn_cumprod_with)},
    {"alltrue", "a axis out keepdims where", whether, NAME(tn_all_with)},
    {"sometrue", "a axis out keepdims where", whether, NAME(tn_any_with)},
    {"ptp", POSITION, position, NAME(tn_ptp_with)},
    {"mean", "a axis dtype out keepdims where", mean, NAME(tn_mean_with)},
    {"nanmean", "a axis dtype out keepdims where", mean, NAME(tn_nanmean_with)},
    {"var", VAR, variance, NAME(tn_var_with)},
    {"std", VAR, variance, NAME(tn_std_with)},
    {"nanvar", VAR, variance, NAME(tn_nanvar_with)},
    {"nanstd", VAR, variance, NAME(tn_nanstd_with)},
    {"any", "a axis out keepdims where", whether, NAME(tn_any_with)},
    {"all", "a axis out keepdims where", whether, NAME(tn_all_with)},
    {"argmax", POSITION, position, NAME(tn_argmax_with)},
    {"argmin", POSITION, position, NAME(tn_argmin_with)},
    {"nanargmax", POSITION, position, NAME(tn_nanargmax_with)},
    {"nanargmin", POSITION, position, NAME(tn_nanargmin_with)},
    {"median", "a axis out overwrite_input keepdims", median, NAME(tn_median_with)},
    {"nanmedian", "a axis out overwrite_input keepdims", median, NAME(tn_nanmedian_with)},
    {"count_nonzero", "a axis keepdims", count_nonzero},
    {"quantile", QUANTILE, quantile, NAME(tn_quantile_with)},
    {"percentile", QUANTILE, quantile, NAME(tn_percentile_with)},
    {"nanquantile", QUANTILE, quantile, NAME(tn_nanquantile_with)},
    {"nanpercentile", QUANTILE, quantile, NAME(tn_nanpercentile_with)},
    {"average", "a axis weights returned keepdims", average},
    {"cumsum", SCAN, scan_along, NAME(tn_cumsum_with)},
    {"cumprod", SCAN, scan_along, NAME(tn_cumprod_with)},
    {"nancumsum", SCAN, scan_along, NAME(tn_nancumsum_with)},
    {"nancumprod", SCAN, scan_along, NAME(tn_nancumprod_with)},
    {"cumulative_sum", "x | axis dtype out include_initial", scan_along, NAME(tn_cumsum_with), 1},
    {"cumulative_prod", "x | axis dtype out include_initial", scan_along, NAME(tn_cumprod_with), 2},
    {"diff", "a n axis prepend append", diff},
    {"ediff1d", "ary to_end to_begin", ediff1d},
    {"gradient", "*varargs axis edge_order", gradient},
    {"trapz", "y x dx axis", trapezoid},
    {"trapezoid", "y x dx axis", trapezoid},
    {"interp", "x xp fp left right period", interp},
    {"cov", "m y rowvar bias ddof fweights aweights dtype", cov},
    {"corrcoef", "x y rowvar bias ddof dtype", cov, NULL, 1},
    {"convolve", "a v mode", convolve},
    {"correlate", "a v mode", convolve, NULL, 1},
    {"bincount", "x weights minlength", bincount},
    {"histogram", "a bins range density weights", histogram},
    {"histogram_bin_edges", "a bins range weights", histogram, NULL, 1},
};
REPLAY_ROWS(rows)
