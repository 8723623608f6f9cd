/* SPDX-License-Identifier: MIT */
/* First and second derivatives of the composed functions, against differences. */
#include "numpy/gradients.h"

static const int64_t widths[][2] = {{1, 2}, {2, 0}};
static const int64_t places[] = {0, 2};
static const int64_t shifts[] = {2};
static tn_array *parts_of_split(tn_array *x)
{
    tn_array *part[3];
    (void)tn_array_split(x, 3, 1, part);
    return tn_multiply(part[0], tn_add(part[1], part[2]));
}
static tn_array *grid_sum(tn_array *x)
{
    tn_array *flat = tn_ravel(x), *out[2];
    (void)tn_meshgrid(2, ((const tn_array *[]){flat, flat}), out, .sparse = true);
    return tn_multiply(out[0], out[1]);
}

RULE(sort, tn_sort(x))
RULE(sort_first, tn_sort(x, .axis = TN_AXES(0)))
RULE(cumsum, tn_cumsum(x, .axis = TN_AXES(0)))
RULE(cumprod, tn_cumprod(x, .axis = TN_AXES(1)))
RULE(median, tn_median(x, .axis = TN_AXES(1)))
RULE(quantile, tn_quantile(x, 0.3, .axis = TN_AXES(0)))
RULE(topk, tn_topk(x, 2, NULL))
RULE(ptp, tn_ptp(x, .axis = TN_AXES(1)))
RULE(nansum, tn_nansum(x, .axis = TN_AXES(1)))
RULE(nanmean, tn_nanmean(x))
RULE(nanvar, tn_nanvar(x, .axis = TN_AXES(0), .ddof = 1))
RULE(nanmax, tn_nanmax(x, .axis = TN_AXES(0)))
RULE(average_of, tn_average(x, tn_exp(tn_transpose(y, TN_AXES(1, 0))), NULL, .axis = TN_AXES(1, 0)))
RULE(average, tn_average(x, tn_exp(y), NULL, .axis = TN_AXES(1)))
RULE(mean_where, tn_mean(x, .axis = TN_AXES(1), .where = tn_greater(y, -1)))
RULE(var_where, tn_var(x, .where = tn_greater(y, -1)))
RULE(cov, tn_cov(x, false, -1))
RULE(convolve, tn_convolve(tn_ravel(x), tn_ravel(y), "same"))
RULE(diff, tn_diff(x, 2, 1))
RULE(gradient, tn_gradient(x, 0.5, NULL, 1, 2))
RULE(trapezoid, tn_trapezoid(x, y, 1, 1))
RULE(interp, tn_interp(tn_from_doubles((double[]){-1, 0.2, 1.7, 9}, 4),
                       tn_from_doubles((double[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 12), tn_ravel(x), NULL, NULL))
RULE(pad_constant, tn_pad(x, widths))
RULE(pad_reflect, tn_pad(x, widths, .mode = "reflect"))
RULE(pad_wrap, tn_pad(x, widths, .mode = "wrap"))
RULE(pad_mean, tn_pad(x, widths, .mode = "mean"))
RULE(pad_ramp, tn_pad(x, widths, .mode = "linear_ramp"))
RULE(roll, tn_roll(x, 1, shifts, TN_AXES(1)))
RULE(rot90, tn_rot90(x, 1, (tn_axes){0}))
RULE(tile, tn_tile(x, TN_SHAPE(2, 2)))
RULE(repeat, tn_repeat(x, 3, TN_AXES(0)))
RULE(repeat_each, tn_repeat_each(x, tn_from_int64s((int64_t[]){2, 0, 1}, 3), TN_AXES(0)))
RULE(insert, tn_insert(x, 2, places, tn_slice_axis(y, 0, 0, 2, 1), TN_AXES(0)))
RULE(delete, tn_delete(x, 2, places, TN_AXES(1)))
RULE(append, tn_append(x, y, TN_AXES(1)))
RULE(split, parts_of_split(x))
RULE(meshgrid, grid_sum(x))
RULE(diag, tn_diag(tn_ravel(x), -1))
RULE(diagonal, tn_diagonal(x, 1, 0, 1))
RULE(trace, tn_trace(x, 0, 0, 1, TN_DTYPE_DEFAULT))
RULE(tril, tn_tril(x, -1))
RULE(vander, tn_vander(tn_ravel(x), 4, false))
RULE(getitem, tn_get(x, TN_PICK(rows()), TN_RANGE(0, TN_NONE, 2)))
RULE(getitem_pairs, tn_get(x, TN_PICK(rows()), TN_PICK(rows())))
RULE(getitem_mask, tn_get(x, TN_PICK(tn_greater(tn_detach(y), 0))))
RULE(update, tn_index_update(x, tn_index(y, 0), 1, (tn_key[]){TN_PICK(rows())}))
RULE(update_window, tn_index_update(x, tn_index(y, 0), 2, ((tn_key[]){TN_I(1), TN_WHOLE})))
RULE(index_add, tn_index_add(x, tn_index(y, 0), 1, (tn_key[]){TN_PICK(rows())}))
RULE(scatter_set,
     tn_scatter_set(x, rows(), tn_concatenate(2, ((const tn_array *[]){y, tn_slice_axis(y, 0, 0, 1, 1)}), 0), 0))
RULE(choose, tn_choose(tn_from_int64s((int64_t[]){1, 0, 1, 0}, 4), 2, ((const tn_array *[]){x, y}), NULL))
RULE(outer, tn_outer(x, y))
RULE(kron, tn_kron(x, tn_slice_axis(y, 0, 0, 2, 1)))
RULE(tensordot, tn_tensordot(x, y, TN_AXES(1), TN_AXES(1)))
RULE(inner, tn_inner(x, y))
RULE(cross, tn_cross(tn_slice_axis(x, 1, 0, 3, 1), tn_slice_axis(y, 1, 0, 2, 1)))
RULE(einsum, tn_einsum("ij,kj->ik", 2, ((const tn_array *[]){x, y})))
RULE(einsum_diagonal, tn_einsum("ii,ij->j", 2, ((const tn_array *[]){tn_slice_axis(x, 1, 0, 3, 1), y})))
RULE(logaddexp2, tn_logaddexp2(x, y))
RULE(ldexp, tn_ldexp(x, rows()))
RULE(sinc, tn_sinc(x))
RULE(float_power, tn_float_power(tn_exp(x), y))
RULE(written, tn_binary(tn_multiply, x, y, .out = tn_zeros(TN_SHAPE(3, 4), .dtype = TN_FLOAT64)))

static const gradient_case cases[] = {
    ONE(sort), ONE(sort_first), ONE(cumsum), ONE(cumprod), ONE(median), ONE(quantile), ONE(topk), ONE(ptp), ONE(nansum),
    ONE(nanmean), ONE(nanvar), ONE(nanmax), TWO(average), TWO(average_of), TWO(mean_where), TWO(var_where),
    ONE(cov), TWO(convolve), ONE(diff), ONE(gradient), TWO(trapezoid), ONE(interp), ONE(pad_constant), ONE(pad_reflect),
    ONE(pad_wrap), ONE(pad_mean), ONE(pad_ramp),
    ONE(roll), ONE(rot90), ONE(tile), ONE(repeat), ONE(repeat_each), TWO(insert), ONE(delete), TWO(append), ONE(split),
    ONE(meshgrid), ONE(diag), ONE(diagonal), ONE(trace), ONE(tril), ONE(vander), ONE(getitem), ONE(getitem_pairs),
    TWO(getitem_mask), TWO(update), TWO(update_window), TWO(index_add), TWO(scatter_set), TWO(choose), TWO(outer),
    TWO(kron),
    TWO(tensordot), TWO(inner), TWO(cross), TWO(einsum), TWO(einsum_diagonal), TWO(logaddexp2), ONE(ldexp), ONE(sinc),
    TWO(float_power), TWO(written),
};

int main(void) { return gradients_main(cases, sizeof cases / sizeof *cases); }
