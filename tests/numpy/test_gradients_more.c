/* SPDX-License-Identifier: MIT */
/* First and second derivatives of what test_gradients.c leaves: joining, writing, methods of functions, linalg, Fourier
 * transforms. */
#include "numpy/gradients.h"

static tn_array *corner(const tn_array *x) { return tn_slice_axis(x, 1, 0, 3, 1); }
/* Columns' sums, singular values and the diagonal of R far from each other and from 0, where there are kinks and
 * poles. */
static tn_array *apart(const tn_array *x)
{
    double ramp[3][4] = {{10}, {0, 20}, {0, 0, 40}};
    return tn_add(x, tn_from_host(ramp, TN_SHAPE(3, 4), TN_FLOAT64));
}
/* Symmetric, and its eigenvalues far from each other and from 0: xx' has none above 35 (Weyl's inequality). */
static tn_array *definite(const tn_array *x)
{
    tn_array *ramp = tn_from_doubles((double[]){10, 50, 100}, 3);
    return tn_add(tn_matmul(x, tn_transpose(x, (tn_axes){0})), tn_diag(ramp, 0));
}
/* Parts of complex results as real numbers, so that signs count. */
static tn_array *parts(const tn_array *z)
{
    return tn_add(tn_square(tn_real(z)), tn_multiply(tn_imag(z), tn_add(tn_real(z), 2)));
}

static tn_array *all_of(int count, tn_array *const *part)
{
    tn_array *sum = tn_sum(tn_square(part[0]));
    for (int i = 1; i < count; i++)
        sum = tn_add(tn_multiply(sum, 2), tn_sum(tn_square(part[i])));
    return sum;
}
/* What a function that writes into a handle makes of a copy z of x. */
#define INTO(call) \
    __extension__({ \
        tn_array *z = tn_add(x, 0); \
        (void)call; \
        z; \
    })

/* ---- joining, rearranging ---- */
static tn_array *spread_out(tn_array *x, tn_array *y)
{
    tn_array *out[2];
    (void)tn_broadcast_arrays(LIST(x, tn_slice_axis(y, 0, 0, 1, 1)), out);
    return tn_multiply(out[0], out[1]);
}
static tn_array *cut_apart(tn_array *x)
{
    tn_array *out[3];
    (void)tn_split_at(x, 2, (int64_t[]){1, 3}, 1, out);
    return all_of(3, out);
}
RULE(stack, tn_stack(LIST(x, y), 1))
RULE(vstack, tn_vstack(LIST(x, y)))
RULE(hstack, tn_hstack(LIST(x, y)))
RULE(dstack, tn_dstack(LIST(x, y)))
RULE(column_stack, tn_column_stack(LIST(x, y)))
RULE(broadcast_arrays, spread_out(x, y))
RULE(split_at, cut_apart(x))
RULE(atleast_3d, tn_atleast_3d(x))
RULE(expand_squeeze, tn_squeeze(tn_expand_dims(x, 1), (tn_axes){0}))
RULE(moveaxis, tn_moveaxis(x, TN_AXES(0), TN_AXES(1)))
RULE(rollaxis, tn_rollaxis(x, 1, 0))
RULE(swapaxes, tn_swapaxes(x, 0, 1))
RULE(flips, tn_multiply(tn_fliplr(x), tn_flipud(x)))
RULE(resize, tn_resize(x, TN_SHAPE(5, 3)))
RULE(diagflat, tn_diagflat(x, 1))
RULE(triu, tn_triu(x, 1))
RULE(trim_zeros, tn_trim_zeros(tn_ravel(x), true, true))
static tn_array *mantissa(const tn_array *x)
{
    tn_array *fraction, *exponent;
    (void)tn_frexp(x, &fraction, &exponent);
    return tn_multiply(fraction, x);
}
static tn_array *fraction_and_rest(const tn_array *x, const tn_array *y)
{
    tn_array *fraction, *whole, *quotient, *rest;
    (void)tn_modf(tn_multiply(x, 0.3), &fraction, &whole);
    (void)tn_divmod(tn_add(tn_multiply(tn_square(x), 0.2), 9), tn_add(tn_multiply(tn_square(y), 0.2), 5), &quotient,
                    &rest);
    return tn_multiply(fraction, rest);
}
RULE(cummax, tn_multiply(tn_cummax(x, .axis = TN_AXES(1)), x))
RULE(cummin, tn_square(tn_cummin(x)))
RULE(frexp, mantissa(tn_add(tn_multiply(x, 0.3), 5)))
RULE(fractions, fraction_and_rest(x, y))
RULE(unique, tn_square(tn_unique(x)))
RULE(sort_complex, tn_square(tn_abs(tn_sort_complex(tn_complex(x, y)))))
RULE(bincount, tn_square(tn_bincount(tn_from_int64s((int64_t[]){0, 2, 1, 2}, 4), tn_index(x, 0), 5)))
RULE(windows, tn_multiply(tn_sliding_window_view(x, TN_SHAPE(2), TN_AXES(1)),
                          tn_sliding_window_view(x, TN_SHAPE(2), TN_AXES(-1))))
RULE(windows_of_both, tn_square(tn_sliding_window_view(x, TN_SHAPE(2, 3), (tn_axes){0})))
RULE(matvec, tn_matvec(x, tn_index(y, 1)))
RULE(vecmat, tn_vecmat(tn_take(x, 1, 1), y))
RULE(matrix_transpose, tn_multiply(tn_matrix_transpose(x), tn_matrix_transpose(y)))
RULE(trim_along, tn_trim_zeros_along(tn_pad(x, ((int64_t[][2]){{1, 1}, {0, 2}})), true, true, TN_AXES(0)))
RULE(linspace, tn_linspace_arrays(tn_index(x, 0), tn_index(y, 1), 5))
RULE(logspace, tn_logspace(tn_index(x, 0), tn_index(y, 1), 4, .base = 2))
RULE(geomspace, tn_geomspace(tn_exp(tn_index(x, 0)), tn_exp(tn_index(y, 1)), 4))

/* ---- indexing, writing ---- */
RULE(take_any, tn_take_any(x, rows(), .mode = "wrap"))
RULE(take_along, tn_take_along_axis(x, tn_argsort(tn_detach(x)), 1))
RULE(compress, tn_compress(tn_from_int64s((int64_t[]){1, 0, 1}, 3), x, TN_AXES(0)))
RULE(extract, tn_extract(mask(), x))
RULE(select,
     tn_select(2, ((const tn_array *[]){mask(), tn_logical_not(mask())}), ((const tn_array *[]){x, y}), tn_weak_int(0)))
RULE(where, tn_where(mask(), x, y))
RULE(put, INTO(tn_put(z, rows(), tn_index(y, 0), NULL)))
RULE(put_along, INTO(tn_put_along_axis(z, tn_argsort(tn_detach(x)), y, 1)))
RULE(place, INTO(tn_place(z, mask(), tn_index(y, 0))))
RULE(putmask, INTO(tn_putmask(z, mask(), y)))
RULE(fill_diagonal, INTO(tn_fill_diagonal(z, tn_index(y, 0), false)))
RULE(setitem, INTO(tn_set(z, tn_index(y, 0), TN_I(1))))
RULE(add_at, INTO(tn_add_at(z, y, 1, ((tn_key[]){TN_PICK(tn_from_int64s((int64_t[]){1, 1, 0}, 3))}))))
RULE(apply_at,
     INTO(tn_apply_at((tn_multiply), z, y, 1, ((tn_key[]){TN_PICK(tn_from_int64s((int64_t[]){1, 1, 0}, 3))}))))
RULE(write, tn_write(tn_zeros(TN_SHAPE(3, 4), .dtype = TN_FLOAT64), x, mask()))
RULE(masked, tn_unary(tn_exp, x, .where = mask()))

/* ---- elementwise, methods ---- */
RULE(angles, tn_add(tn_deg2rad(x), tn_rad2deg(y)))
RULE(fabs, tn_fabs(x))
RULE(nan_to_num, tn_nan_to_num(x, 0, 1, -1))
RULE(clip, tn_clip(x, -1.03, 1.03))
RULE(modulus, tn_abs(tn_complex(x, y)))
RULE(angle, tn_angle(tn_complex(tn_exp(x), y)))
RULE(conjugate, parts(tn_conjugate(tn_complex(x, y))))
RULE(reduce_by, tn_reduce_by((tn_hypot), x, &(tn_reduce_opts){.axis = TN_AXES(1)}))
RULE(accumulate_by, tn_accumulate_by((tn_multiply), x, NULL))
RULE(reduceat_by, tn_reduceat_by((tn_multiply), x, 2, (int64_t[]){0, 2}, &(tn_axis_opts){.axis = TN_AXES(1)}))
RULE(outer_with, tn_outer_with((tn_arctan2), tn_exp(x), tn_index(y, 0), NULL))

/* ---- statistics ---- */
RULE(prod, tn_prod(x, .axis = TN_AXES(0)))
RULE(extremes, tn_subtract(tn_max(x, .axis = TN_AXES(1)), tn_min(x, .axis = TN_AXES(1))))
RULE(std, tn_std(x, .axis = TN_AXES(1)))
RULE(softmax, tn_softmax(x, 1))
RULE(log_softmax, tn_log_softmax(x, 0))
RULE(logsumexp, tn_logsumexp(x, .axis = TN_AXES(1)))
RULE(nanprod, tn_nanprod(x, .axis = TN_AXES(1)))
RULE(nanstd, tn_nanstd(x, .axis = TN_AXES(1), .where = tn_logical_not(mask())))
RULE(nanmin, tn_nanmin(x, .axis = TN_AXES(1)))
RULE(nanmedian, tn_nanmedian(x, .axis = TN_AXES(1)))
RULE(nancumsum, tn_nancumsum(x, .axis = TN_AXES(1)))
RULE(nancumprod, tn_nancumprod(x, .axis = TN_AXES(1)))
RULE(percentile, tn_percentile(x, 30, .axis = TN_AXES(0)))
RULE(nanquantile, tn_nanquantile(x, 0.6))
RULE(partition, tn_partition_with(x, 1, (int64_t[]){1}, NULL))
/* Squares: rows of evenly spread numbers may be parallel, where a correlation of 1 is clipped or not as rounding has
 * it. */
RULE(corrcoef, tn_corrcoef(tn_square(x), false))
RULE(cov_weights,
     tn_cov_with(x, &(tn_cov_opts){.ddof = -1, .aweights = tn_add(tn_arange(0, 4, 1, .dtype = TN_FLOAT64), 1)}))
RULE(correlate, tn_correlate(tn_ravel(x), tn_index(y, 0), "same"))
RULE(ediff1d, tn_ediff1d(x, tn_index(y, 0), NULL))
RULE(interp_periodic, tn_interp_periodic(tn_multiply(tn_arange(0, 5, 1), 0.7), tn_arange(0, 12, 1), tn_ravel(x), 11.5))

/* ---- products, linalg ---- */
static tn_array *orthogonal(tn_array *x)
{
    tn_array *q, *r;
    (void)tn_linalg_qr(corner(apart(x)), &q, &r);
    return tn_add(tn_sum(tn_square(tn_index(q, 0))), tn_matmul(q, r));
}
static tn_array *decomposed(tn_array *x)
{
    tn_array *u, *s, *vh;
    (void)tn_linalg_svd(definite(x), &u, &s, &vh);
    return tn_add(tn_matmul(tn_multiply(u, tn_square(s)), vh), tn_sum(s));
}
static tn_array *spectrum(tn_array *x)
{
    tn_array *w, *v;
    (void)tn_linalg_eigh(definite(x), &w, &v);
    return tn_add(tn_square(v), w);
}
static tn_array *logarithm(tn_array *x)
{
    tn_array *sign, *log;
    (void)tn_linalg_slogdet(definite(x), &sign, &log);
    return log;
}
RULE(matmul, tn_matmul(x, tn_transpose(y, (tn_axes){0})))
RULE(dot, tn_dot(x, tn_index(y, 0)))
RULE(vdot, tn_vdot(x, y))
RULE(vecdot, tn_vecdot(x, y, -1))
RULE(norm_1, tn_linalg_norm(corner(apart(x)), .ord = TN_ORD(1)))
RULE(norm_2, tn_linalg_norm(apart(x), .ord = TN_ORD(2)))
RULE(norm_nuc, tn_linalg_norm(corner(apart(x)), .ord = TN_NUC))
RULE(norm_p, tn_linalg_norm(x, .ord = TN_ORD(3), .axis = TN_AXES(1)))
RULE(solve, tn_linalg_solve(definite(x), y))
RULE(inv, tn_linalg_inv(definite(x)))
RULE(det, tn_linalg_det(definite(x)))
RULE(slogdet, logarithm(x))
RULE(cholesky, tn_linalg_cholesky(definite(x)))
RULE(qr, orthogonal(x))
RULE(svd, decomposed(x))
RULE(svdvals, tn_linalg_svdvals(apart(x)))
RULE(eigh, spectrum(x))
RULE(eigvalsh, tn_linalg_eigvalsh(definite(x)))
RULE(pinv, tn_linalg_pinv(apart(x)))
RULE(cond, tn_linalg_cond(definite(x), TN_ORD(2)))
RULE(matrix_power, tn_linalg_matrix_power(corner(x), 3))
RULE(multi_dot, tn_linalg_multi_dot(LIST(x, tn_transpose(y, (tn_axes){0}), x)))
RULE(tensorsolve,
     tn_linalg_tensorsolve(tn_reshape(definite(x), TN_SHAPE(3, 1, 3)), tn_slice_axis(y, 1, 0, 1, 1), (tn_axes){0}))
RULE(tensorinv, tn_linalg_tensorinv(tn_reshape(definite(x), TN_SHAPE(3, 3, 1)), 1))

/* ---- Fourier transforms ---- */
RULE(fft, parts(tn_fft_fft(tn_complex(x, y))))
RULE(ifft, parts(tn_fft_ifft(x, .n = 5)))
RULE(rfft, parts(tn_fft_rfft(x)))
RULE(irfft, tn_fft_irfft(tn_complex(x, y)))
RULE(hfft, tn_fft_hfft(tn_complex(x, y)))
RULE(ihfft, parts(tn_fft_ihfft(x)))
RULE(fftn, parts(tn_fft_fftn(tn_complex(x, y), .norm = TN_FFT_ORTHO)))
RULE(irfftn, tn_fft_irfftn(tn_complex(x, y)))
RULE(fftshift, tn_fft_fftshift(x, (tn_axes){0}))

static const gradient_case cases[] = {
    TWO(stack), TWO(vstack), TWO(hstack), TWO(dstack), TWO(column_stack), TWO(broadcast_arrays), ONE(split_at),
    ONE(atleast_3d),
    ONE(expand_squeeze), ONE(moveaxis), ONE(rollaxis), ONE(swapaxes), ONE(flips), ONE(resize), ONE(diagflat), ONE(triu),
    ONE(cummax), ONE(cummin), ONE(frexp), TWO(fractions), ONE(unique), TWO(sort_complex), ONE(bincount),
    ONE(windows), ONE(windows_of_both), TWO(matvec), TWO(vecmat), TWO(matrix_transpose),
    ONE(trim_zeros), ONE(trim_along), TWO(linspace), TWO(logspace), TWO(geomspace), ONE(take_any), ONE(take_along),
    ONE(compress), ONE(extract),
    TWO(select), TWO(where), TWO(put), TWO(put_along), TWO(place), TWO(putmask), TWO(fill_diagonal), TWO(setitem),
    TWO(add_at),
    TWO(apply_at), ONE(write), ONE(masked), TWO(angles), ONE(fabs), ONE(nan_to_num), ONE(clip), TWO(modulus),
    TWO(angle),
    TWO(conjugate), ONE(reduce_by), ONE(accumulate_by), ONE(reduceat_by), TWO(outer_with), ONE(prod), ONE(extremes),
    ONE(std),
    ONE(softmax), ONE(log_softmax), ONE(logsumexp), ONE(nanprod), ONE(nanstd), ONE(nanmin), ONE(nanmedian),
    ONE(nancumsum),
    ONE(nancumprod), ONE(percentile), ONE(nanquantile), ONE(partition), ONE(corrcoef), ONE(cov_weights), TWO(correlate),
    TWO(ediff1d), ONE(interp_periodic), TWO(matmul), TWO(dot), TWO(vdot), TWO(vecdot), ONE(norm_1), ONE(norm_2),
    ONE(norm_nuc),
    ONE(norm_p), TWO(solve), ONE(inv), ONE(det), ONE(slogdet), ONE(cholesky), ONE(qr), ONE(svd), ONE(svdvals),
    ONE(eigh),
    ONE(eigvalsh), ONE(pinv), ONE(cond), ONE(matrix_power), TWO(multi_dot), TWO(tensorsolve), ONE(tensorinv), TWO(fft),
    ONE(ifft),
    ONE(rfft), TWO(irfft), TWO(hfft), ONE(ihfft), TWO(fftn), TWO(irfftn), ONE(fftshift),
};

int main(void) { return gradients_main(cases, sizeof cases / sizeof *cases); }
