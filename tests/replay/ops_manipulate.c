/* SPDX-License-Identifier: MIT */
/* Replaying creation and rearrangement; joining is in ops_join.c. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)
#define EACH(i, n) (int i = 0; i < (n); i++)

/* Elements have one order here: the word is checked alone. */
static void check_order(call *c, int i, const char *known)
{
    const char *order = string(c, i, "C");
    if (strlen(order) != 1 || !strchr(known, *order))
        refuse(c, "order '%s'", order);
}

static bool whole_value(const call *c, int i)
{
    return !c->slot[i] || c->slot[i]->kind <= INT ||
           (c->slot[i]->kind == ARRAY && tn_dtype_is_integer(tn_dtype_of(c->slot[i]->array)));
}

/* Are the elements read with the first axis fastest: asked for, or by A and K as they lie? */
static bool fortran(call *c, int i)
{
    char order = *string(c, i, "C") & ~32;
    bool lies_so = c->slot[0] && c->slot[0]->kind == ARRAY && c->slot[0]->fortran;
    return order == 'F' || ((order == 'A' || order == 'K') && lies_so);
}

/* ---- creation: NumPy's float is float64 ---- */

static void filled(call *c, const row *r)
{
    tn_create_opts o = {.dtype = dtype(c, 1, TN_FLOAT64)};
    check_order(c, 2, "CFcf");
    give(c, r->number ? tn_ones_with(shape(c, 0), &o) : tn_zeros_with(shape(c, 0), &o));
}

static void full(call *c, const row *r)
{
    (void)r;
    tn_array *v = array(c, 1);
    check_order(c, 3, "CFcf");
    if (given(c, 2) && c->slot[1] && c->slot[1]->kind == INT)
        check_assigned(c, c->slot[1], dtype(c, 2, TN_FLOAT64));
    give(c, tn_broadcast_to(tn_cast(v, dtype(c, 2, tn_dtype_of(v))), shape(c, 0)));
}

/* a dtype order subok shape (fill_value second for full_like) */
static void filled_like(call *c, const row *r)
{
    int at = r->number == 2;
    tn_array *x = array(c, 0);
    tn_create_opts o = {.dtype = dtype(c, 1 + at, tn_dtype_of(x))};
    tn_shape s = given(c, 4 + at) ? shape(c, 4 + at) : tn_shape_of(x);
    check_order(c, 2 + at, "CFAKcfak");
    if (at && c->slot[1] && c->slot[1]->kind == INT)
        check_assigned(c, c->slot[1], o.dtype);
    give(c, at          ? tn_broadcast_to(tn_cast(array(c, 1), o.dtype), s)
            : r->number ? tn_ones_with(s, &o)
                        : tn_zeros_with(s, &o));
}

static void arange(call *c, const row *r)
{
    (void)r;
    if (!given(c, 0) && !given(c, 1))
        refuse(c, "no stop");
    if (given(c, 0) && !given(c, 1) && c->by_keyword[0])
        refuse(c, "no stop");
    bool one = !given(c, 1), whole = whole_value(c, 0) && (one || whole_value(c, 1)) && whole_value(c, 2);
    double start = one ? 0 : number(c, 0, 0), stop = one ? number(c, 0, 0) : number(c, 1, 0);
    tn_create_opts o = {.dtype = dtype(c, 3, whole ? TN_INT64 : TN_FLOAT64)};
    bool exact = whole && fabs(start) < 0x1p53 && fabs(stop) < 0x1p53;
    if (!exact && whole && tn_dtype_is_integer(o.dtype))
        give(c, tn_arange_int64_with(one ? 0 : integer(c, 0, 0), one ? integer(c, 0, 0) : integer(c, 1, 0),
                                     integer(c, 2, 1), &o));
    else
        give(c, tn_arange_with(start, stop, number(c, 2, 1), &o));
}

static bool several_bases(const call *c)
{
    return given(c, 4) && (c->slot[4]->kind == LIST || (c->slot[4]->kind == ARRAY && tn_ndim(c->slot[4]->array) > 0));
}

/* start stop num endpoint retstep dtype axis | start stop num endpoint base dtype axis | start stop num endpoint dtype
 * axis */
static void spaced(call *c, const row *r)
{
    int last = r->number == 2 ? 4 : 5;
    tn_space_opts o = {.open = !boolean(c, 3, true),
                       .dtype = dtype(c, last, TN_DTYPE_DEFAULT),
                       .axis = (int)integer(c, last + 1, 0),
                       .base = r->number == 1 && !several_bases(c) ? number(c, 4, 10) : 0};
    tn_array *a = operand(c, 0, 0, 1), *b = operand(c, 1, 0, 1);
    int64_t count = integer(c, 2, 50);
    if (numpy_1 && tn_ndim(a) == 0 && tn_ndim(b) == 0) {
        a = first_inexact(a);
        b = first_inexact(b);
    }
    bool whole = tn_ndim(a) == 0 && tn_ndim(b) == 0, bases = r->number == 1 && several_bases(c);
    if (r->number == 2 && !o.dtype && (!numpy_1 || whole)) /* at least double precision */
        o.dtype = tn_dtype_promote(tn_dtype_promote(tn_dtype_of(array(c, 0)), tn_dtype_of(array(c, 1))), TN_FLOAT64);
    if (r->number == 2) { /* whose ends are arrays, whatever they are */
        a = array(c, 0);
        b = array(c, 1);
    }
    if (bases) { /* powers of each base, along a new axis beside theirs */
        tn_array *base = array(c, 4), *zero = tn_multiply(base, 0);
        tn_array *y = tn_power(tn_expand_dims(base, o.axis), tn_linspace_arrays(tn_add(a, zero), tn_add(b, zero), count,
                                                                                .open = o.open, .axis = o.axis));
        give(c, o.dtype ? tn_cast(y, o.dtype) : y);
        return;
    }
    tn_array *y = r->number == 0   ? tn_linspace_arrays_with(a, b, count, &o)
                  : r->number == 1 ? tn_logspace_with(a, b, count, &o)
                                   : tn_geomspace_with(a, b, count, &o);
    give(c, y);
    if (r->number == 0 && boolean(c, 4, false)) {
        int64_t parts = o.open ? count : count - 1;
        tn_dtype as =
            o.dtype ? tn_dtype_promote(tn_dtype_promote(tn_dtype_of(array(c, 0)), tn_dtype_of(array(c, 1))), TN_FLOAT64)
                    : tn_dtype_of(y);
        tn_array *whole = tn_subtract(tn_cast(b, as), tn_cast(a, as));
        give(c, parts > 0 ? tn_divide(whole, (double)parts) : tn_multiply(whole, NAN));
    }
}

static void eye(call *c, const row *r)
{
    tn_create_opts o = {.dtype = dtype(c, r->number ? 1 : 3, TN_FLOAT64)};
    int64_t n = integer(c, 0, 0), m = r->number ? n : integer(c, 1, n);
    if (n < 0 || m < 0)
        refuse(c, "negative dimensions");
    int k = r->number ? 0 : (int)integer(c, 2, 0);
    tn_create_opts bit = {.dtype = TN_BOOL};
    tn_array *below = tn_tri_with(n, m, k, &bit), *above = tn_tri_with(n, m, k - 1, &bit);
    give(c, k ? tn_cast(tn_logical_xor(below, above), o.dtype) : tn_eye_with(n, m, &o));
}

static void tri(call *c, const row *r)
{
    (void)r;
    tn_create_opts o = {.dtype = dtype(c, 3, TN_FLOAT64)};
    give(c, tn_tri_with(integer(c, 0, 0), integer(c, 1, -1), (int)integer(c, 2, 0), &o));
}

static void of_diagonal(call *c, const row *r)
{
    give(c, ((tn_array * (*)(const tn_array *, int)) r->function)(array(c, 0), (int)integer(c, 1, 0)));
}

static void diagonal(call *c, const row *r)
{
    int a = (int)integer(c, 2, 0), b = (int)integer(c, 3, 1), k = (int)integer(c, 1, 0);
    give(c, r->number ? tn_trace_with(array(c, 0), k, a, b,
                                      &(tn_out_opts){.out = given(c, 5) ? array(c, 5) : NULL,
                                                     .dtype = dtype(c, 4, TN_DTYPE_DEFAULT),
                                                     .casting = "unsafe"})
                      : tn_diagonal(array(c, 0), k, a, b));
}

static void vander(call *c, const row *r)
{
    (void)r;
    if (integer(c, 1, 0) < 0)
        refuse(c, "negative dimensions");
    give(c, tn_vander(array(c, 0), integer(c, 1, -1), boolean(c, 2, false)));
}

static void meshgrid(call *c, const row *r)
{
    (void)r;
    tn_array *in[TN_MAX_NDIM], *out[TN_MAX_NDIM];
    if (c->rest_count > TN_MAX_NDIM)
        refuse(c, "too many vectors");
    for EACH(i, c->refused ? 0 : c->rest_count) in[i] = array_of(c, c->rest[i]);
    const char *indexing = string(c, 3, "xy");
    if (strcmp(indexing, "xy") && strcmp(indexing, "ij"))
        refuse(c, "indexing '%s'", indexing);
    tn_grid_opts o = {.ij = !strcmp(indexing, "ij"), .sparse = boolean(c, 2, false)};
    if (c->refused || tn_meshgrid_with(c->rest_count, (const tn_array *const *)in, out, &o) != TN_OK)
        return;
    for EACH(i, c->rest_count) give(c, out[i]);
}

static void grid_positions(call *c, const row *r)
{
    (void)r;
    tn_create_opts o = {.dtype = dtype(c, 1, TN_INT64)};
    if (is_integer(c, 0) || (c->slot[0] && c->slot[0]->kind <= COMPLEX))
        refuse(c, "expected a tuple of extents");
    tn_shape s = shape(c, 0);
    for EACH(d, boolean(c, 2, false) ? s.ndim : 0) {
        tn_shape own = {.ndim = s.ndim};
        for EACH(k, s.ndim) own.dim[k] = k == d ? s.dim[d] : 1;
        give(c, tn_reshape(tn_arange_with(0, (double)s.dim[d], 1, &o), own));
    }
    if (!boolean(c, 2, false))
        give(c, tn_indices_with(s, &o));
}

static void asarray(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    if (given(c, 1))
        check_assigned(c, c->slot[0], dtype(c, 1, TN_FLOAT64));
    x = tn_cast(x, dtype(c, 1, tn_dtype_of(x)));
    int least = (int)(strstr(r->name, "contiguous") || strstr(r->name, "fortran") ? 1
                      : !strcmp(r->name, "array")                                 ? integer(c, 5, 0)
                                                                                  : 0);
    if (strstr(r->name, "chkfinite") && !tn_item(tn_all(tn_isfinite(x))))
        refuse(c, "not finite");
    if (least > TN_MAX_NDIM)
        refuse(c, "ndmin=%d", least);
    while (!c->refused && tn_ndim(x) < least && !tn_is_error(x))
        x = tn_expand_dims(x, 0);
    give(c, x);
}

/* NumPy 1's: of floats at least. */
static void asfarray(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_dtype to = dtype(c, 1, tn_dtype_of(x));
    give(c, tn_cast(x, tn_dtype_is_float(to) || tn_dtype_is_complex(to) ? to : TN_FLOAT64));
}

/* ---- axes and shapes ---- */

static void reshape(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    if (c->slot[1] && !given(c, 1) && !given(c, 3)) { /* None: as it is */
        give(c, x);
        return;
    }
    tn_shape s = shape(c, given(c, 3) ? 3 : 1);
    check_order(c, 2, "CFAcfa");
    if (fortran(c, 2)) { /* the reversed axes in C order */
        tn_shape back = {.ndim = s.ndim};
        for EACH(d, s.ndim) back.dim[d] = s.dim[s.ndim - 1 - d];
        give(c, tn_transpose(tn_reshape(tn_transpose(x, (tn_axes){0}), back), (tn_axes){0}));
    } else {
        give(c, tn_reshape(x, s));
    }
}

static void ravel(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    check_order(c, 1, "CFAKcfak");
    if (r->number) { /* copy */
        give(c, x);
        return;
    }
    give(c, tn_ravel(fortran(c, 1) ? tn_transpose(x, (tn_axes){0}) : x));
}

/* The method: extents one by one, or as one argument. */
static void method_reshape(call *c, const row *r)
{
    tn_shape s = {.ndim = c->rest_count - 1};
    for EACH(i, s.ndim) if (c->rest[1 + i]->kind != INT || s.ndim > TN_MAX_NDIM) refuse(c, "expected extents");
    for EACH(i, c->refused ? 0 : s.ndim) s.dim[i] = c->rest[1 + i]->i;
    tn_axes list = {.count = s.ndim};
    for EACH(i, c->refused ? 0 : s.ndim) list.axis[i] = (int)s.dim[i];
    if (!c->refused)
        give(c, r->number ? tn_transpose(array_of(c, c->rest[0]), list) : tn_reshape(array_of(c, c->rest[0]), s));
}

/* The method with one argument is the function. */
static void method(call *c, const row *r)
{
    if (c->rest_count > 2) {
        method_reshape(c, r);
        return;
    }
    if (c->rest_count < 1) {
        refuse(c, "no array");
        return;
    }
    tn_array *x = array_of(c, c->rest[0]);
    long long read[TN_MAX_NDIM];
    int count = c->rest_count == 2 && c->rest[1]->kind != NONE ? integers(c, c->rest[1], read, TN_MAX_NDIM) : 0;
    if (!r->number && c->slot[1]) { /* in an order: the function's */
        const value *order = c->slot[1];
        c->slot[0] = c->rest[0], c->slot[1] = c->rest_count == 2 ? c->rest[1] : NULL, c->slot[2] = order,
        c->slot[3] = NULL;
        reshape(c, r);
        return;
    }
    tn_shape s = {.ndim = count};
    tn_axes list = {.count = count};
    for EACH(i, count) list.axis[i] = (int)(s.dim[i] = read[i]);
    if (!c->refused)
        give(c, r->number ? tn_transpose(x, list) : tn_reshape(x, s));
}

static void transpose(call *c, const row *r)
{
    (void)r;
    tn_axes list = axes(c, 1);
    tn_array *x = array(c, 0);
    if (given(c, 1) && list.count != tn_ndim(x))
        refuse(c, "axes don't match array");
    give(c, tn_transpose(x, list));
}

static void of_each(call *c, const row *r)
{
    for EACH(i, c->rest_count) give(c, ((tn_array * (*)(const tn_array *)) r->function)(array_of(c, c->rest[i])));
}

static void matrix_transpose(call *c, const row *r)
{
    (void)r;
    give(c, tn_matrix_transpose(array(c, 0)));
}

static void sliding_windows(call *c, const row *r)
{
    (void)r;
    tn_shape window = shape(c, 1);
    tn_axes list = axes(c, 2);
    give(c, tn_sliding_window_view(array(c, 0), window, list));
}

/* Of slices: positions in every axis, or an axis each (ogrid). */
static void grid(call *c, const row *r)
{
    tn_array *vector[TN_MAX_NDIM], *out[TN_MAX_NDIM];
    if (c->rest_count == 0 || c->rest_count > TN_MAX_NDIM)
        refuse(c, "expected slices");
    for EACH(i, c->refused ? 0 : c->rest_count) {
        const value *v = c->rest[i];
        if (v->kind != SLICE || v->slice.stop == TN_NONE)
            refuse(c, "expected slices with an end");
        if (c->refused)
            return;
        double start = v->slice.start == TN_NONE ? 0 : (double)v->slice.start,
               step = v->slice.step == TN_NONE ? 1 : (double)v->slice.step;
        vector[i] = tn_arange(start, (double)v->slice.stop, step, .dtype = TN_INT64);
    }
    if (c->refused ||
        tn_meshgrid(c->rest_count, (const tn_array *const *)vector, out, .ij = true, .sparse = r->number) != TN_OK)
        return;
    if (r->number)
        for EACH(i, c->rest_count) give(c, out[i]);
    else
        give(c, c->rest_count == 1 ? out[0] : tn_stack(c->rest_count, (const tn_array *const *)out, 0));
}

static void swapaxes(call *c, const row *r)
{
    (void)r;
    give(c, tn_swapaxes(array(c, 0), (int)integer(c, 1, 0), (int)integer(c, 2, 0)));
}

static void moveaxis(call *c, const row *r)
{
    (void)r;
    if (!given(c, 1) || !given(c, 2))
        refuse(c, "no axes");
    give(c, tn_moveaxis(array(c, 0), axes(c, 1), axes(c, 2)));
}

static void rollaxis(call *c, const row *r)
{
    (void)r;
    give(c, tn_rollaxis(own_array(c, 0), (int)integer(c, 1, 0), (int)integer(c, 2, 0)));
}

static void expand_dims(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_axes list = axes(c, 1);
    int ndim = tn_ndim(x) + list.count;
    unsigned set = 0;
    for EACH(i, list.count) {
        int axis = list.axis[i] < 0 ? list.axis[i] + ndim : list.axis[i];
        if (axis < 0 || axis >= ndim || set >> axis & 1)
            refuse(c, "axis %d", list.axis[i]);
        set |= 1u << (axis & 15);
    }
    for (int axis = 0; axis < ndim && !c->refused; axis++)
        if (set >> axis & 1)
            x = tn_expand_dims(x, axis);
    give(c, x);
}

static void squeeze(call *c, const row *r)
{
    (void)r;
    tn_axes list = axes(c, 1);
    tn_array *x = array(c, 0);
    /* as of one element */
    bool number =
        tn_ndim(x) == 0 && given(c, 1) && c->slot[1]->kind != LIST && (list.axis[0] == 0 || list.axis[0] == -1);
    give(c, (given(c, 1) && list.count == 0) || number ? x : tn_squeeze(x, list));
}

static void broadcast_to(call *c, const row *r)
{
    (void)r;
    give(c, tn_broadcast_to(array(c, 0), shape(c, 1)));
}

static void broadcast_arrays(call *c, const row *r)
{
    (void)r;
    tn_array *in[MAX_ARGUMENTS], *out[MAX_ARGUMENTS];
    for EACH(i, c->rest_count) in[i] = array_of(c, c->rest[i]);
    tn_broadcast_arrays(c->rest_count, (const tn_array *const *)in, out);
    for EACH(i, c->rest_count) give(c, out[i]);
}

static void broadcast_shapes(call *c, const row *r)
{
    (void)r;
    tn_shape in[MAX_ARGUMENTS], out;
    for EACH(i, c->rest_count) {
        long long read[TN_MAX_NDIM];
        in[i].ndim = integers(c, c->rest[i], read, TN_MAX_NDIM);
        for EACH(d, in[i].ndim) in[i].dim[d] = read[d];
    }
    if (c->refused || tn_broadcast_shapes(c->rest_count, in, &out) != TN_OK)
        return;
    for EACH(d, out.ndim) give_integer(c, out.dim[d]);
}

/* ---- rearranging ---- */

static void flip(call *c, const row *r)
{
    (void)r;
    tn_axes list = axes(c, 1);
    tn_array *x = array(c, 0);
    give(c, given(c, 1) && list.count == 0 ? x : tn_flip(x, list));
}

static void roll(call *c, const row *r)
{
    (void)r;
    long long read[TN_MAX_NDIM];
    int64_t shift[TN_MAX_NDIM];
    bool fraction = c->slot[1] && c->slot[1]->kind == FLOAT; /* truncated */
    int count = fraction ? 1 : c->slot[1] ? integers(c, c->slot[1], read, TN_MAX_NDIM) : 0;
    if (fraction)
        read[0] = (long long)c->slot[1]->f;
    tn_axes list = axes(c, 2);
    for EACH(i, count) shift[i] = read[i];
    for (int i = 1; list.count == 0 && i < count; i++)
        shift[0] += shift[i];
    give(c, tn_roll(array(c, 0), list.count ? count : 1, shift, list));
}

static void rot90(call *c, const row *r)
{
    (void)r;
    give(c, tn_rot90(array(c, 0), (int)integer(c, 1, 1), axes(c, 2)));
}

static void tile(call *c, const row *r)
{
    (void)r;
    give(c, tn_tile(array(c, 0), shape(c, 1)));
}

static void repeat(call *c, const row *r)
{
    (void)r;
    const value *v = c->slot[1];
    bool one = v && (v->kind == INT || v->kind == BOOL || v->kind == FLOAT); /* a float is truncated */
    tn_array *x = array(c, 0);
    if (tn_ndim(x) == 0)
        x = tn_reshape(x, TN_SHAPE(1));
    give(c,
         one ? tn_repeat(x, (int64_t)number(c, 1, 1), one_axis(c, 2)) : tn_repeat_each(x, array(c, 1), one_axis(c, 2)));
}

static void resize(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    tn_shape to = shape(c, 1);
    int64_t size = tn_size(x), wanted = 1;
    for (int d = 0; d < to.ndim; d++)
        wanted *= to.dim[d];
    if (r->number && wanted > size) { /* the method: zeros behind what there is, not the same once more */
        tn_array *parts[] = {tn_ravel(x), tn_zeros(TN_SHAPE(wanted - size), .dtype = tn_dtype_of(x))};
        give(c, tn_reshape(tn_concatenate(2, (const tn_array *const *)parts, 0), to));
    } else
        give(c, tn_resize(x, to));
}

/* number: 0 ndim, 1 size, 2 shape */
static void fact(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    tn_shape s = tn_shape_of(x);
    bool along = given(c, 1);
    tn_axes list = axes(c, 1);
    int64_t size = along ? 1 : tn_size(x);
    for EACH(i, list.count)
        if (list.axis[i] < -s.ndim || list.axis[i] >= s.ndim)
            refuse(c, "axis");
        else
            size *= tn_dim(x, list.axis[i]);
    if (c->refused)
        return;
    if (r->number == 0)
        give_integer(c, s.ndim);
    if (r->number == 1)
        give_integer(c, size);
    for EACH(d, r->number == 2 ? s.ndim : 0) give_integer(c, s.dim[d]);
}

static const row rows[] = {
    {"ndim", "a", fact, NULL, 0}, {"size", "a axis", fact, NULL, 1}, {"shape", "a", fact, NULL, 2},
    {"zeros", "shape dtype order", filled, NULL, 0}, {"ones", "shape dtype order", filled, NULL, 1},
    {"empty", "shape dtype order", filled, NULL, 0},
    {"empty_like", "prototype dtype order subok shape", filled_like, NULL, 0},
    {"full", "shape fill_value dtype order", full},
    {"zeros_like", "a dtype order subok shape", filled_like, NULL, 0},
    {"ones_like", "a dtype order subok shape", filled_like, NULL, 1},
    {"full_like", "a fill_value dtype order subok shape", filled_like, NULL, 2},
    {"arange", "start stop step dtype", arange},
    {"linspace", "start stop num endpoint retstep dtype axis", spaced, NULL, 0},
    {"logspace", "start stop num endpoint base dtype axis", spaced, NULL, 1},
    {"geomspace", "start stop num endpoint dtype axis", spaced, NULL, 2},
    {"eye", "N M k dtype order", eye, NULL, 0}, {"identity", "n dtype", eye, NULL, 1}, {"tri", "N M k dtype", tri},
    {"diag", "v k", of_diagonal, NAME(tn_diag)}, {"diagflat", "v k", of_diagonal, NAME(tn_diagflat)},
    {"tril", "m k", of_diagonal, NAME(tn_tril)}, {"triu", "m k", of_diagonal, NAME(tn_triu)},
    {"diagonal", "a offset axis1 axis2", diagonal, NULL, 0},
    {"trace", "a offset axis1 axis2 dtype out", diagonal, NULL, 1}, {"vander", "x N increasing", vander},
    {"meshgrid", "*xi copy sparse indexing", meshgrid}, {"indices", "dimensions dtype sparse", grid_positions},
    {"ndarray.reshape", "*args order copy", method, NULL, 0}, {"ndarray.transpose", "*args", method, NULL, 1},
    {"array", "object dtype | copy order subok ndmin", asarray}, {"asanyarray", "a dtype order | device copy", asarray},
    {"asarray_chkfinite", "a dtype order", asarray}, {"asarray", "a dtype order | device copy", asarray},
    {"ascontiguousarray", "a dtype", asarray},
    {"asfortranarray", "a dtype", asarray}, {"copy", "a order subok", ravel, NULL, 1},
    {"reshape", "a newshape order shape copy", reshape}, {"ravel", "a order", ravel}, {"flatten", "a order", ravel},
    {"transpose", "a axes", transpose}, {"permute_dims", "a axes", transpose},
    {"matrix_transpose", "x", matrix_transpose},
    {"lib.stride_tricks.sliding_window_view", "x window_shape axis | subok writeable", sliding_windows},
    {"sliding_window_view", "x window_shape axis | subok writeable", sliding_windows}, {"mgrid", "*slices", grid},
    {"ogrid", "*slices", grid, NULL, 1},
    {"asfarray", "a dtype", asfarray},
    {"swapaxes", "a axis1 axis2", swapaxes}, {"moveaxis", "a source destination", moveaxis},
    {"rollaxis", "a axis start", rollaxis}, {"expand_dims", "a axis", expand_dims}, {"squeeze", "a axis", squeeze},
    {"broadcast_to", "array shape subok", broadcast_to}, {"broadcast_arrays", "*args subok", broadcast_arrays},
    {"broadcast_shapes", "*args", broadcast_shapes}, {"atleast_1d", "*arys", of_each, NAME(tn_atleast_1d)},
    {"atleast_2d", "*arys", of_each, NAME(tn_atleast_2d)},
    {"atleast_3d", "*arys", of_each, NAME(tn_atleast_3d)},
    {"flip", "m axis", flip}, {"fliplr", "m", of_one, NAME(tn_fliplr)}, {"flipud", "m", of_one, NAME(tn_flipud)},
    {"roll", "a shift axis", roll}, {"rot90", "m k axes", rot90}, {"tile", "A reps", tile},
    {"repeat", "a repeats axis", repeat},
    {"resize", "a new_shape", resize}, {"ndarray.resize", "a new_shape refcheck", resize, NULL, 1},
};
REPLAY_ROWS(rows)
