/* SPDX-License-Identifier: MIT */
/* Polynomials as vectors of coefficients. Their roots are eigenvalues, their fits least squares. */
#include <tanso/linalg.h>
#include <tanso/polynomial.h>

#include <float.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "numpy/compose.h"

/* A vector: these take no number for one. */
static tn_array *listed(const char *operation, const tn_array *p)
{
    if (!tn_is_error(p) && tn_ndim(p) == 0)
        return tn__refused(TN_ERR_SHAPE, operation, "expected a vector of coefficients, got a number");
    return tn__array_of(p);
}

/* At least one axis, and no more. */
static tn_array *coefficients(const char *operation, const tn_array *p)
{
    tn_array *x = tn_atleast_1d(tn__array_of(p));
    if (!tn_is_error(x) && tn_ndim(x) != 1)
        return tn__refused(TN_ERR_SHAPE, operation, "expected a vector of coefficients, got %d axes", tn_ndim(x));
    return x;
}

/* In floats, or complex. */
static tn_array *inexact(const tn_array *x)
{
    return tn_cast(x, tn__dtype_inexact(tn_dtype_of(x)) ? tn_dtype_of(x) : TN_FLOAT64);
}

/* ---- values, sums, products ---- */

static tn_array *polyval(const tn_array *p, const tn_array *x)
{
    p = coefficients("polyval", listed("polyval", p));
    x = tn__array_of(x);
    if (tn_is_error(p))
        return tn__again(p);
    tn_array *y = tn_zeros_like(x);
    for (int64_t i = 0; i < tn_size(p) && !tn_is_error(y); i++)
        y = tn_add(tn_multiply(y, x), tn_index(p, i));
    return y;
}

tn_array *tn_polyval(const tn_array *p, const tn_array *x)
{
    TN__COMPOSE(polyval(p, x));
}

static tn_array *zeros_in_front(const tn_array *x, int64_t count)
{
    const int64_t width[1][2] = {{count, 0}};
    return count > 0 ? tn_pad_with(x, width, NULL) : tn__again(x);
}

static tn_array *sum_of(const char *operation, tn_binary_function *f, const tn_array *p, const tn_array *q)
{
    tn_array *a = coefficients(operation, p), *b = coefficients(operation, q);
    if (tn_is_error(a) || tn_is_error(b))
        return tn_is_error(a) ? a : b;
    int64_t n = tn_size(a), m = tn_size(b);
    return f(zeros_in_front(a, m - n), zeros_in_front(b, n - m));
}

tn_array *tn_polyadd(const tn_array *p, const tn_array *q)
{
    TN__COMPOSE(sum_of("polyadd", tn_add, p, q));
}

tn_array *tn_polysub(const tn_array *p, const tn_array *q)
{
    TN__COMPOSE(sum_of("polysub", tn_subtract, p, q));
}

/* Without zeros in front; at least one coefficient. */
static tn_array *trimmed(const char *operation, const tn_array *p)
{
    tn_array *x = coefficients(operation, p), *y = tn_is_error(x) ? x : tn_trim_zeros(x, true, false);
    const tn_create_opts like = {.dtype = tn_dtype_of(x), .device = tn_device_of(x)};
    return !tn_is_error(y) && tn_size(y) == 0 ? tn_zeros_with(tn__vector(1), &like) : y;
}

tn_array *tn_polymul(const tn_array *p, const tn_array *q)
{
    TN__COMPOSE(tn_convolve(trimmed("polymul", p), trimmed("polymul", q), "full"));
}

static bool nearly_zero(const tn_array *x)
{
    return tn_item(tn_abs(x)) <= 1e-8; /* NumPy's allclose(x, 0) */
}

static tn_status divided(const tn_array *p, const tn_array *q, tn_array *out[2])
{
    tn_array *u = coefficients("polydiv", p), *v = coefficients("polydiv", q);
    if (tn_is_error(u) || tn_is_error(v) || !tn_size(u) || !tn_size(v)) {
        out[0] = tn_is_error(u)   ? u
                 : tn_is_error(v) ? v
                                  : tn__refused(TN_ERR_SHAPE, "polydiv", "expected at least one coefficient each");
        out[1] = tn__again(out[0]);
        return tn__composed_all(2, out);
    }
    tn_dtype dtype = tn_dtype_promote(tn_dtype_of(inexact(u)), tn_dtype_of(inexact(v)));
    /* rounded in v's dtype, as NumPy's */
    tn_array *r = tn_cast(u, dtype), *scale = tn_cast(tn_reciprocal(tn_index(inexact(v), 0)), dtype);
    v = tn_cast(v, dtype);
    int64_t n = tn_size(u), m = tn_size(v), steps = n - m + 1;
    const tn_create_opts like = {.dtype = dtype, .device = tn_device_of(u)};
    tn_array *quotient = steps > 0 ? NULL : tn_zeros_with(tn__vector(1), &like);
    for (int64_t k = 0; k < steps; k++) {
        tn_array *d = tn_multiply(scale, tn__cut(r, 0, k, 1));
        const int64_t width[1][2] = {{k, n - m - k}};
        r = tn_subtract(r, tn_pad_with(tn_multiply(d, v), width, NULL));
        quotient = quotient ? tn_concatenate(2, (const tn_array *const[]){quotient, d}, 0) : d;
    }
    int64_t first = 0;
    while (first + 1 < tn_size(r) && nearly_zero(tn_index(r, first)))
        first++;
    out[0] = quotient;
    out[1] = tn_slice_axis(r, 0, first, TN_NONE, 1);
    return tn__composed_all(2, out);
}

tn_status tn_polydiv(const tn_array *p, const tn_array *q, tn_array **quotient, tn_array **remainder)
{
    if (!quotient || !remainder)
        return tn__fail_null("polydiv", "room for two arrays");
    tn_array *out[2];
    tn_scope_push();
    tn_status status = divided(p, q, out);
    *quotient = out[0];
    *remainder = out[1];
    return status;
}

/* ---- derivatives and integrals ---- */

/* n, n - 1, ..., 1 as int64. */
static tn_array *count_down(const tn_array *like, int64_t n)
{
    const tn_create_opts opts = {.dtype = TN_INT64, .device = tn_device_of(like)};
    return tn_arange_with((double)n, 0, -1, &opts);
}

static tn_array *derivative(const tn_array *p, int m)
{
    tn_array *y = coefficients("polyder", listed("polyder", p));
    if (m < 0)
        return tn__refused(TN_ERR_VALUE, "polyder", "expected an order of 0 or more, got %d", m);
    for (int i = 0; i < m && !tn_is_error(y) && (i == 0 || tn_size(y) > 0); i++) {
        int64_t n = tn_size(y) > 0 ? tn_size(y) - 1 : 0;
        y = tn_multiply(tn__cut(y, 0, 0, n), count_down(y, n));
    }
    return y;
}

tn_array *tn_polyder(const tn_array *p, int m)
{
    TN__COMPOSE(derivative(p, m));
}

/* Each has a coefficient more than the one before; beyond, all but the last ones have long been divided to 0. */
enum { MOST_INTEGRALS = 1000, HIGHEST_FIT = 10000 };

static tn_array *integral(const tn_array *p, int m, const tn_array *constants)
{
    tn_array *y = coefficients("polyint", listed("polyint", p)),
             *k = constants ? coefficients("polyint", constants) : NULL;
    if (m < 0 || m > MOST_INTEGRALS)
        return tn__refused(TN_ERR_VALUE, "polyint", "expected an order of 0 to %d, got %d", MOST_INTEGRALS, m);
    if (k && !tn_is_error(k) && tn_size(k) != 1 && tn_size(k) < m)
        return tn__refused(TN_ERR_VALUE, "polyint", "expected one constant, or %d, got %lld", m, (long long)tn_size(k));
    const tn_create_opts number = {.dtype = TN_FLOAT64, .device = tn_device_of(y)};
    for (int i = 0; i < m && !tn_is_error(y); i++) {
        tn_array *c = !k ? tn_zeros_with(tn__vector(1), &number) : tn__cut(k, 0, tn_size(k) > 1 ? i : 0, 1);
        tn_array *raised = tn_divide(y, count_down(y, tn_size(y)));
        y = tn_concatenate(2,
                           (const tn_array *const[]){raised, tn_cast(c, tn_dtype_promote(tn_dtype_of(c), TN_FLOAT64))},
                           0);
    }
    return y;
}

tn_array *tn_polyint(const tn_array *p, int m, const tn_array *constants)
{
    TN__COMPOSE(integral(p, m, constants));
}

/* ---- roots ---- */

static tn_array *from_roots(const tn_array *roots)
{
    tn_array *z = tn__array_of(roots);
    if (tn_is_error(z))
        return z;
    if (tn_ndim(z) == 2 && tn_dim(z, 0) == tn_dim(z, 1) && tn_size(z) > 0)
        z = tn_linalg_eigvals(z);
    else if (tn_ndim(z) != 1)
        return tn__refused(TN_ERR_SHAPE, "poly", "expected a vector of roots, or a square matrix");
    tn_dtype dtype = tn_dtype_of(z);
    bool kept = dtype == TN_FLOAT32 || tn_dtype_is_complex(dtype);
    z = tn_cast(z, kept ? dtype : TN_FLOAT64);
    const tn_create_opts like = {.dtype = tn_dtype_of(z), .device = tn_device_of(z)};
    if (tn_size(z) == 0)
        return tn_ones_with((tn_shape){0}, &(tn_create_opts){.dtype = TN_FLOAT64, .device = like.device});
    tn_array *one = tn_ones_with(tn__vector(1), &like), *p = one;
    for (int64_t i = 0; i < tn_size(z) && !tn_is_error(p); i++) {
        tn_array *factor = tn_concatenate(2, (const tn_array *const[]){one, tn_negative(tn__cut(z, 0, i, 1))}, 0);
        p = tn_convolve(p, factor, "full");
    }
    if (!tn_is_error(p) && tn_dtype_is_complex(tn_dtype_of(p)) &&
        tn_array_equal(tn_sort_with(z, NULL), tn_sort_with(tn_conjugate(z), NULL), false))
        return tn_add(tn_real(p), tn_weak_int(0));
    return p;
}

tn_array *tn_poly(const tn_array *roots)
{
    TN__COMPOSE(from_roots(roots));
}

static tn_array *roots_of(const tn_array *coefficient_list)
{
    tn_array *p = coefficients("roots", coefficient_list);
    if (tn_is_error(p))
        return p;
    tn_array *whole = tn_trim_zeros(p, true, true), *front = tn_trim_zeros(p, false, true);
    if (tn_is_error(whole) || tn_is_error(front))
        return tn_is_error(whole) ? whole : front;
    int64_t n = tn_size(whole), behind = n ? tn_size(p) - tn_size(front) : 0;
    whole = inexact(whole);
    const tn_create_opts number = {.dtype = TN_FLOAT64, .device = tn_device_of(p)};
    tn_array *found = tn_zeros_with(tn__vector(0), &number);
    if (n > 1) {
        const tn_create_opts like = {.dtype = tn_dtype_of(whole), .device = tn_device_of(whole)};
        tn_array *below = tn_diag(tn_ones_with(tn__vector(n - 2), &like), -1);
        tn_array *row = tn_negative(tn_divide(tn__cut(whole, 0, 1, n - 1), tn_index(whole, 0)));
        const tn_slice_range first[] = {{0, 1, 1}};
        found = tn_linalg_eigvals(tn_slice_update(below, 1, first, row));
    }
    return behind ? tn_concatenate(2,
                                   (const tn_array *const[]){found, tn_cast(tn_zeros_with(tn__vector(behind), &number),
                                                                            tn_dtype_of(found))},
                                   0)
                  : found;
}

tn_array *tn_roots(const tn_array *p)
{
    TN__COMPOSE(roots_of(p));
}

/* ---- fits ---- */

static double epsilon_of(tn_dtype dtype)
{
    return dtype == TN_FLOAT32 || dtype == TN_COMPLEX64 ? FLT_EPSILON : DBL_EPSILON;
}

/* The covariance of the coefficients; residuals are those of the fit. */
static tn_array *covariance_of(tn_array *powers, tn_array *scale, const tn_array *residuals, int64_t free,
                               const tn_array *y, bool unscaled)
{
    tn_array *base = tn_linalg_inv(tn_matmul(tn_transpose(powers, (tn_axes){0}), powers));
    base = tn_divide(base, tn_outer(scale, scale));
    if (!unscaled && free <= 0)
        return tn__refused(TN_ERR_VALUE, "polyfit",
                           "as many points as coefficients, or fewer, tell nothing of the covariance");
    tn_array *factor = unscaled ? tn__array_of(tn_weak_int(1)) : tn_divide(residuals, tn_weak_int(free));
    return tn_multiply(tn_ndim(y) == 1 ? base : tn_expand_dims(base, 2), unscaled ? tn_weak_int(1) : factor);
}

static tn_array *fit(const tn_array *xs, const tn_array *ys, int degree, const tn_polyfit_opts *opts)
{
    tn_array *x = inexact(tn__array_of(xs)), *y = inexact(tn__array_of(ys));
    const tn_array *w = opts ? opts->weights : NULL;
    if (opts && !TN__ARRAY_WRITTEN("polyfit", opts, weights))
        return tn__failed_array();
    if (tn_is_error(x) || tn_is_error(y))
        return tn_is_error(x) ? x : y;
    if (degree < 0 || degree > HIGHEST_FIT || tn_ndim(x) != 1 || tn_size(x) == 0 || tn_ndim(y) < 1 ||
        tn_ndim(y) > 2 || tn_dim(y, 0) != tn_size(x) || (w && (tn_ndim(w) != 1 || tn_size(w) != tn_size(x))))
        return tn__refused(TN_ERR_SHAPE, "polyfit",
                           "expected a degree of 0 to %d, vectors x and weights of one extent, which y's first axis "
                           "(of one or two) has too",
                           HIGHEST_FIT);
    int64_t n = tn_size(x);
    tn_array *powers = tn_vander(x, degree + 1, false), *values = y;
    if (w) {
        w = inexact(w);
        powers = tn_multiply(powers, tn_expand_dims(w, 1));
        values = tn_multiply(values, tn_ndim(y) == 2 ? tn_expand_dims(w, 1) : tn__again(w));
    }
    const tn_reduce_opts columns = {.axis = {1, {0}}};
    tn_array *scale = tn_sqrt(tn_sum_with(tn_multiply(powers, powers), &columns));
    powers = tn_divide(powers, scale);
    double rcond = TN__OPTION(opts, rcond, (double)n * epsilon_of(tn_dtype_of(x)));
    const tn_pinv_opts least = {._ = ".rcond", .rcond = rcond};
    tn_array *part[4];
    if (tn_linalg_lstsq_with(powers, values, &part[0], &part[1], &part[2], &part[3], &least) != TN_OK)
        return part[0];
    tn_array **wanted[] = {opts ? opts->residuals : NULL, opts ? opts->rank : NULL, opts ? opts->singular : NULL};
    for (int i = 0; i < 3; i++)
        if (wanted[i])
            *wanted[i] = tn_keep(part[1 + i]);
    if (opts && opts->covariance)
        *opts->covariance = tn_keep(covariance_of(powers, scale, part[1], n - degree - 1, y, opts->unscaled));
    return tn_divide(part[0], tn_ndim(y) == 2 ? tn_expand_dims(scale, 1) : scale);
}

tn_array *tn_polyfit_with(const tn_array *x, const tn_array *y, int degree, const tn_polyfit_opts *opts)
{
    TN__COMPOSE(fit(x, y, degree, opts));
}
