/* SPDX-License-Identifier: MIT */
/* First and second derivatives of polynomials, windows' functions, and of products, joins and choices with options. */
#include "numpy/gradients.h"

#define F64 TN_OPTS(tn_out_opts, .dtype = TN_FLOAT64)

static tn_array *row(const tn_array *x, int i) { return tn_index(x, i); }
static tn_array *parts_of_quotient(const tn_array *p, const tn_array *q)
{
    tn_array *quotient, *remainder;
    (void)tn_polydiv(p, q, &quotient, &remainder);
    return tn_add(tn_sum(tn_square(quotient)), tn_sum(tn_multiply(remainder, remainder)));
}
static tn_array *into_other(const tn_array *x)
{
    tn_array *y = tn_zeros(TN_SHAPE(3, 4), .dtype = TN_FLOAT64);
    return tn_concatenate_with(1, (const tn_array *const[]){x}, 0, TN_OPTS(tn_out_opts, .out = y));
}
static tn_array *weighted(const tn_array *x)
{
    tn_array *w = tn_from_doubles((double[]){1, 2, 0.5, 3}, 4);
    return tn_quantile(x, 0.4, .axis = TN_AXES(1), .method = "inverted_cdf", .weights = w);
}

RULE(polyval, tn_polyval(row(x, 0), y))
RULE(polyadd, tn_polyadd(row(x, 0), tn_slice_axis(row(y, 1), 0, 0, 2, 1)))
RULE(polysub, tn_polysub(tn_slice_axis(row(x, 0), 0, 0, 3, 1), row(y, 1)))
RULE(polymul, tn_polymul(row(x, 0), row(y, 1)))
RULE(polydiv, parts_of_quotient(row(x, 0), tn_add(tn_slice_axis(row(y, 1), 0, 0, 2, 1), 4)))
RULE(polyder, tn_polyder(row(x, 0), 2))
RULE(polyint, tn_polyint(row(x, 0), 2, row(y, 1)))
RULE(poly, tn_poly(row(x, 0)))
RULE(i0, tn_i0(tn_multiply(x, 8)))
RULE(unwrap, tn_unwrap(tn_multiply(x, 3), NULL, 0, 1))
RULE(block, tn_block(2, 1, ((const tn_array *[]){x, y})))
RULE(piecewise, tn_piecewise(x, 1, ((const tn_array *[]){mask()}), ((const tn_array *[]){tn_square(y)}), x))
RULE(concatenate_with, tn_multiply(tn_concatenate_with(LIST(x, y), 0, F64), 2))
RULE(concatenate_out, into_other(tn_square(x)))
RULE(stack_with, tn_stack_with(LIST(x, y), 1, F64))
RULE(vstack_with, tn_vstack_with(LIST(x, y), F64))
RULE(hstack_with, tn_hstack_with(LIST(x, y), F64))
RULE(matmul_with, tn_binary(tn_matmul, x, tn_transpose(y, (tn_axes){0}), .dtype = TN_FLOAT64))
RULE(vecdot_with, tn_vecdot_with(x, y, 1, F64))
RULE(einsum_with, tn_einsum_with("ij,kj->ik", LIST(x, y), F64))
RULE(trace_with, tn_trace_with(x, 1, 0, 1, F64))
RULE(choose_with, tn_choose_with(tn_cast(mask(), TN_INT64), LIST(x, y), NULL, F64))
RULE(compress_with, tn_compress_with(tn_from_int64s((int64_t[]){1, 0, 1}, 3), x, TN_AXES(0), F64))
RULE(clip_with, tn_clip_with(x, tn_weak_float(-1.03), NULL, NULL))
RULE(quantile_weights, weighted(x))
RULE(var_fraction, tn_var(x, .axis = TN_AXES(1), .ddof = 0.5))

static const gradient_case cases[] = {
    TWO(polyval), TWO(polyadd), TWO(polysub), TWO(polymul), TWO(polydiv), ONE(polyder), TWO(polyint), ONE(poly),
    ONE(i0), ONE(unwrap),
    TWO(block), TWO(piecewise), TWO(concatenate_with), ONE(concatenate_out), TWO(stack_with), TWO(vstack_with),
    TWO(hstack_with),
    TWO(matmul_with), TWO(vecdot_with), TWO(einsum_with), ONE(trace_with), TWO(choose_with),
    ONE(compress_with), ONE(clip_with), ONE(quantile_weights), ONE(var_fraction),
};

int main(void) { return gradients_main(cases, sizeof cases / sizeof *cases); }
