/* SPDX-License-Identifier: MIT */
/* Gradient rules of decompositions, solutions and Fourier transforms, and of complex numbers, against differences, to
 * second order. Complex arrays are made of real ones, and results are made real, so that differences are those of real
 * functions. */
#include "autograd/helpers.h"

#include <tanso.h>

#define FUNCTION(name, ...) \
    static tn_array *name(int count, tn_array *const *xs, void *user) \
    { \
        (void)count, (void)user; \
        __VA_ARGS__ \
    }
#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            return tn_zeros(TN_SHAPE(1)); \
    } while (0)

/* Well conditioned and symmetric, of any matrix. */
static tn_array *positive(tn_array *x)
{
    return tn_add(tn_matmul(x, tn_swapaxes(x, -1, -2)), tn_eye(tn_dim(x, -2), -1, .dtype = TN_FLOAT64));
}

/* A matrix whose singular values (and eigenvalues, of its symmetric part) are far from each other and from zero, where
 * they have no derivatives or large ones. */
static tn_array *apart(tn_shape shape, int phase)
{
    int64_t rows = shape.dim[shape.ndim - 2], columns = shape.dim[shape.ndim - 1];
    tn_array *diagonal = tn_multiply(tn_eye(rows, columns, .dtype = TN_FLOAT64),
                                     tn_multiply(tn_arange(1, (double)columns + 1, 1), 1.5));
    return tn_add(diagonal, spread(shape, -0.3, 0.3, phase));
}

FUNCTION(solve, return tn_linalg_solve(positive(xs[0]), xs[1]);)
FUNCTION(solve_vector, return tn_linalg_solve(positive(xs[0]), xs[1]);)
FUNCTION(inv, return tn_linalg_inv(positive(xs[0]));)
FUNCTION(det, return tn_linalg_det(xs[0]);)
FUNCTION(slogdet, tn_array *s, *l; MUST(tn_linalg_slogdet(xs[0], &s, &l)); return l;)
FUNCTION(cholesky, return tn_linalg_cholesky(positive(xs[0]));)
FUNCTION(cholesky_upper, return tn_linalg_cholesky(positive(xs[0]), .upper = true);)
FUNCTION(qr, tn_array *q, *r; MUST(tn_linalg_qr(xs[0], &q, &r)); return tn_matmul(tn_square(q), tn_sin(r));)
FUNCTION(svdvals, return tn_square(tn_linalg_svdvals(xs[0]));)
FUNCTION(svd, tn_array *u, *s, *vh; MUST(tn_linalg_svd(xs[0], &u, &s, &vh, .reduced = true));
         return tn_matmul(tn_multiply(tn_square(u), tn_sin(tn_expand_dims(s, -2))), tn_square(vh));)
FUNCTION(eigvalsh, return tn_sin(tn_linalg_eigvalsh(tn_add(xs[0], tn_swapaxes(xs[0], -1, -2))));)
FUNCTION(eigh, tn_array *w, *v; MUST(tn_linalg_eigh(tn_add(xs[0], tn_swapaxes(xs[0], -1, -2)), &w, &v));
         return tn_matmul(tn_square(v), tn_expand_dims(tn_sin(w), -1));)
/* With eigenvalues that are real, and with a pair that is not. */
static tn_array *turning(const tn_array *x)
{
    const double quarter[] = {0, -4, 0, 4, 0, 0, 0, 0, 0};
    return tn_add(x, tn_from_host(quarter, TN_SHAPE(3, 3), TN_FLOAT64));
}
FUNCTION(eigvals, return tn_sin(tn_linalg_eigvals(xs[0]));)
FUNCTION(eig, tn_array *w, *v; MUST(tn_linalg_eig(xs[0], &w, &v));
         return tn_matmul(tn_square(v), tn_expand_dims(tn_sin(w), -1));)
FUNCTION(eigvals_turning, tn_array *w = tn_linalg_eigvals(turning(xs[0]));
         return tn_add(tn_real(w), tn_multiply(tn_abs(w), tn_imag(w)));)
FUNCTION(eig_turning, tn_array *w, *v; MUST(tn_linalg_eig(turning(xs[0]), &w, &v));
         return tn_matmul(tn_square(tn_abs(v)), tn_expand_dims(tn_add(tn_sin(tn_real(w)), tn_imag(w)), -1));)
FUNCTION(roots, tn_array *r = tn_roots(tn_ravel(xs[0])); return tn_add(tn_real(r), tn_square(tn_imag(r)));)
FUNCTION(pinv, return tn_linalg_pinv(xs[0]);)
FUNCTION(least, tn_array *x; MUST(tn_linalg_lstsq(xs[0], xs[1], &x, NULL, NULL, NULL)); return x;)
FUNCTION(pinv_hermitian, return tn_linalg_pinv(tn_add(xs[0], tn_matrix_transpose(xs[0])), .hermitian = true);)
FUNCTION(power, return tn_linalg_matrix_power(positive(xs[0]), -2);)
FUNCTION(norm, return tn_linalg_norm(xs[0], .ord = *(tn_norm_order *)user, .axis = TN_AXES(-2, -1));)
FUNCTION(vector_norm, return tn_linalg_norm(xs[0], .ord = *(tn_norm_order *)user, .axis = TN_AXES(-1));)

static void test_solutions(void **state)
{
    (void)state;
    const tn_array *one[] = {spread(TN_SHAPE(3, 3), -1, 1, 0), spread(TN_SHAPE(3, 2), -1, 1, 1)};
    const tn_array *batch[] = {spread(TN_SHAPE(2, 3, 3), -1, 1, 0), spread(TN_SHAPE(3, 2), -1, 1, 1)};
    const tn_array *vector[] = {one[0], spread(TN_SHAPE(3), -1, 1, 2)};
    const tn_array *regular = apart(TN_SHAPE(2, 3, 3), 0); /* evenly spread values alone are a singular matrix now and
                                                              then */
    check_gradients("solve", solve, NULL, 2, one);
    check_gradients("solve, batch", solve, NULL, 2, batch);
    check_gradients("solve, vector", solve_vector, NULL, 2, vector);
    check_gradients("inv", inv, NULL, 1, batch);
    check_gradients("det", det, NULL, 1, &regular);
    check_gradients("slogdet", slogdet, NULL, 1, &regular);
    check_gradients("matrix_power", power, NULL, 1, one);
}

/* ---- equal values, and zeros among them ---- */

/* Made of values alone, though vectors are computed: the sum of their squares, which has the gradient 2 a. */
FUNCTION(values_eigh, tn_array *w, *v; MUST(tn_linalg_eigh(xs[0], &w, &v)); return tn_square(w);)
FUNCTION(values_eigvalsh, return tn_square(tn_linalg_eigvalsh(xs[0]));)
FUNCTION(values_eig, tn_array *w, *v; MUST(tn_linalg_eig(xs[0], &w, &v)); return tn_square(tn_abs(w));)
FUNCTION(values_eigvals, return tn_square(tn_abs(tn_linalg_eigvals(xs[0])));)
FUNCTION(values_svd, tn_array *u, *s, *vh; MUST(tn_linalg_svd(xs[0], &u, &s, &vh, .reduced = true));
         return tn_square(s);)
FUNCTION(values_svdvals, return tn_square(tn_linalg_svdvals(xs[0]));)

static void check_twice(const char *name, tn_function f, const tn_array *a)
{
    tn_array *x = tn_requires_grad(tn_to(tn_cast(a, tn_dtype_of(a)), tn_device_of(a)));
    tn_array *y = tn_real(f(1, &x, NULL));
    if (tn_backward(tn_sum(y)) != TN_OK)
        fail_msg("%s: %s", name, tn_error());
    double worst = tn_item(tn_max(tn_abs(tn_subtract(tn_grad(x), tn_multiply(a, 2)))));
    if (!(worst < 1e-10))
        fail_msg("%s of %s: the gradient is wrong by %g", name, tn_dtype_name(tn_dtype_of(a)), worst);
}

/* Q D Q^H of an orthogonal Q, or of one that is none. */
static const tn_array *with_values(const double *d, int64_t n, bool turned, bool is_complex)
{
    tn_array *diagonal = tn_diag(tn_from_doubles(d, n), 0), *q, *r;
    tn_array *any = tn_random_normal(TN_SHAPE(n, n), .dtype = TN_FLOAT64);
    if (is_complex)
        any = tn_complex(any, tn_random_normal(TN_SHAPE(n, n), .dtype = TN_FLOAT64));
    assert_int_equal(tn_linalg_qr(any, &q, &r), TN_OK);
    tn_array *a = turned ? tn_matmul(tn_matmul(q, diagonal), tn_conjugate(tn_swapaxes(q, 0, 1))) : diagonal;
    return is_complex ? tn_cast(a, TN_COMPLEX128) : a;
}

static void test_equal_values(void **state)
{
    (void)state;
    const double values[][4] = {{1, 1, 1, 1}, {3, 1, 1, 2}, {0, 0, 2, 0}, {0, 0, 0, 0}, {-1, 1, 1, -1}};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        for (int kind = 0; kind < 4; kind++)
            TN_SCOPE {
                const tn_array *a = with_values(values[k], 4, kind / 2, kind % 2);
                check_twice("eigh", values_eigh, a);
                check_twice("eigvalsh", values_eigvalsh, a);
                check_twice("svd", values_svd, a);
                check_twice("svdvals", values_svdvals, a);
                if (kind / 2 == 0) { /* turned, general matrices' vectors are not orthogonal */
                    check_twice("eig", values_eig, a);
                    check_twice("eigvals", values_eigvals, a);
                }
            }
    check_twice("svd, tall", values_svd, tn_eye(5, 3, .dtype = TN_FLOAT64));
    check_twice("svd, wide", values_svd, tn_eye(3, 5, .dtype = TN_FLOAT64));
    check_twice("svd, of rank 1", values_svd, tn_ones(TN_SHAPE(2, 4, 3), .dtype = TN_FLOAT64));
    check_twice("svd, of rank 1, wide", values_svd, tn_ones(TN_SHAPE(2, 4), .dtype = TN_COMPLEX128));
}

/* Norms made of singular values: of the identity the nuclear norm has the gradient 1; the largest value's is shared. */
static void test_norms_of_equal_values(void **state)
{
    (void)state;
    const struct {
        tn_norm_order order;
        double trace;
    } norms[] = {{TN_NUC, 3}, {TN_ORD(2), 1}, {TN_ORD(-2), 1}};
    for (size_t k = 0; k < 3; k++) {
        tn_array *x = tn_requires_grad(tn_add(tn_eye(3, -1, .dtype = TN_FLOAT64), tn_zeros(TN_SHAPE(3, 3))));
        assert_int_equal(tn_backward(tn_linalg_norm(x, .ord = norms[k].order, .axis = TN_AXES(0, 1))), TN_OK);
        assert_float_equal(tn_item(tn_sum(tn_diag(tn_grad(x), 0))), norms[k].trace, 1e-12);
        assert_true(tn_item(tn_all(tn_isfinite(tn_grad(x)))) == 1);
    }
}

static void test_decompositions(void **state)
{
    (void)state;
    const tn_array *square = apart(TN_SHAPE(3, 3), 0), *batch = apart(TN_SHAPE(2, 3, 3), 1);
    const tn_array *tall = apart(TN_SHAPE(4, 2), 0), *wide = apart(TN_SHAPE(2, 4), 1);
    check_gradients("cholesky", cholesky, NULL, 1, &batch);
    check_gradients("cholesky, upper", cholesky_upper, NULL, 1, &square);
    check_gradients("qr", qr, NULL, 1, &square);
    check_gradients("qr, tall", qr, NULL, 1, &tall);
    check_gradients("svdvals", svdvals, NULL, 1, &batch);
    check_gradients("svd", svd, NULL, 1, &square);
    check_gradients("svd, tall", svd, NULL, 1, &tall);
    check_gradients("svd, wide", svd, NULL, 1, &wide);
    check_gradients("eigvalsh", eigvalsh, NULL, 1, &batch);
    check_gradients("eigh", eigh, NULL, 1, &square);
    check_gradients("eigvals", eigvals, NULL, 1, &batch);
    check_gradients("eig", eig, NULL, 1, &square);
    check_gradients("eigvals, complex", eigvals_turning, NULL, 1, &square);
    check_gradients("eig, complex", eig_turning, NULL, 1, &square);
    check_gradients("roots", roots, NULL, 1, &wide);
    check_gradients("pinv", pinv, NULL, 1, &tall);
    check_gradients("pinv, wide", pinv, NULL, 1, &wide);
    check_gradients("pinv, batch", pinv, NULL, 1, &batch);
    check_gradients("pinv, Hermitian", pinv_hermitian, NULL, 1, &square);
    const tn_array *tall_sides[] = {tall, spread(TN_SHAPE(4, 3), -1, 1, 1)},
                   *wide_side[] = {wide, spread(TN_SHAPE(2), -1, 1, 2)};
    check_gradients("lstsq, tall", least, NULL, 2, tall_sides);
    check_gradients("lstsq, wide", least, NULL, 2, wide_side);
}

/* Of a lower rank, which the arguments do not change: the product of a column and a row. */
FUNCTION(pinv_of_product, return tn_linalg_pinv(tn_matmul(xs[0], xs[1]), .rcond = 1e-6);)
FUNCTION(least_of_product, tn_array *x;
         MUST(tn_linalg_lstsq(tn_matmul(xs[0], xs[1]), xs[2], &x, NULL, NULL, NULL, .rcond = 1e-6)); return x;)

/* Where vectors have no derivatives: singular values that are equal, or 0. */
static void test_inverses(void **state)
{
    (void)state;
    const tn_array *tall = tn_eye(4, 2, .dtype = TN_FLOAT64), *wide = tn_eye(2, 3, .dtype = TN_FLOAT64);
    const tn_array *square = tn_eye(3, 3, .dtype = TN_FLOAT64);
    check_gradients("pinv, equal values", pinv, NULL, 1, &tall);
    check_gradients("pinv, equal values, wide", pinv, NULL, 1, &wide);
    check_gradients("pinv, Hermitian, equal values", pinv_hermitian, NULL, 1, &square);
    const tn_array *sides[] = {tall, spread(TN_SHAPE(4, 2), -1, 1, 1)}, *side[] = {wide, spread(TN_SHAPE(2), -1, 1, 2)};
    check_gradients("lstsq, equal values", least, NULL, 2, sides);
    check_gradients("lstsq, equal values, wide", least, NULL, 2, side);
    const tn_array *lower[] = {spread(TN_SHAPE(3, 1), 0.5, 1.5, 0), spread(TN_SHAPE(1, 4), 0.5, 1.5, 1),
                               spread(TN_SHAPE(3), -1, 1, 2)};
    check_gradients("pinv of rank 1", pinv_of_product, NULL, 2, lower);
    check_gradients("lstsq of rank 1", least_of_product, NULL, 3, lower);
}

static void test_norms(void **state)
{
    (void)state;
    const tn_array *x = apart(TN_SHAPE(3, 4), 0);
    tn_norm_order matrices[] = {TN_FRO, TN_NUC, TN_ORD(1), TN_ORD(2), TN_ORD(-2)};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        check_gradients("norm", norm, &matrices[i], 1, &x);
    tn_norm_order vectors[] = {TN_ORD(1), TN_ORD(2), TN_ORD(3), TN_ORD(0.5)};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check_gradients("norm", vector_norm, &vectors[i], 1, &x);
}

/* ---- complex numbers ---- */

static tn_array *number(tn_array *const *xs) { return tn_complex(xs[0], xs[1]); }
static tn_array *parts(tn_array *z) { return tn_add(tn_sin(tn_real(z)), tn_square(tn_imag(z))); }

typedef tn_array *unary(const tn_array *x);
typedef tn_array *binary(const tn_array *a, const tn_array *b);
FUNCTION(of_one, return parts((*(unary **)user)(number(xs)));)
FUNCTION(of_two, return parts((*(binary **)user)(number(xs), number(xs + 2)));)
FUNCTION(sizes, return tn_multiply(tn_abs(number(xs)), tn_angle(number(xs)));)
FUNCTION(sign, return parts(tn_sign(number(xs)));)
FUNCTION(product, return parts(tn_matmul(number(xs), tn_swapaxes(number(xs + 2), 0, 1)));)
FUNCTION(sums, return parts(tn_multiply(tn_sum(number(xs)), tn_prod(number(xs))));)
FUNCTION(mixed, return parts(tn_multiply(tn_where(tn_greater(xs[0], 0), number(xs), xs[1]), tn_conjugate(number(xs))));)

static void test_complex(void **state)
{
    (void)state;
    const tn_array *x[] = {spread(TN_SHAPE(2, 3), -1.5, 1.5, 0), spread(TN_SHAPE(2, 3), 0.2, 1.5, 1),
                           spread(TN_SHAPE(2, 3), 0.3, 2, 2), spread(TN_SHAPE(2, 3), -1, 1, 1)};
    unary *ones[] = {(tn_exp), (tn_log), (tn_sqrt), (tn_sin), (tn_cos), (tn_tan), (tn_tanh), (tn_sinh), (tn_square),
                     (tn_reciprocal), (tn_negative), (tn_conjugate), (tn_log1p), (tn_expm1), (tn_arctan), (tn_arcsinh)};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        check_gradients("a complex function", of_one, &ones[i], 2, x);
    binary *twos[] = {(tn_add), (tn_subtract), (tn_multiply), (tn_divide)};
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++)
        check_gradients("a complex function of two", of_two, &twos[i], 4, x);
    check_gradients("abs and angle", sizes, NULL, 2, x);
    check_gradients("sign", sign, NULL, 2, x);
    check_gradients("complex products", product, NULL, 4, x);
    check_gradients("complex sums", sums, NULL, 2, x);
    check_gradients("complex and real", mixed, NULL, 2, x);
}

/* Hermitian and positive, of any complex matrix. */
static tn_array *complex_positive(tn_array *const *xs)
{
    tn_array *z = number(xs);
    return tn_add(tn_matmul(z, tn_conjugate(tn_swapaxes(z, -1, -2))), tn_eye(tn_dim(z, -2), -1, .dtype = TN_FLOAT64));
}
FUNCTION(complex_solve, return parts(tn_linalg_solve(complex_positive(xs), number(xs + 2)));)
FUNCTION(complex_slogdet, tn_array *s, *l; MUST(tn_linalg_slogdet(number(xs), &s, &l)); return tn_add(parts(s), l);)
FUNCTION(complex_pinv, return parts(tn_linalg_pinv(number(xs)));)
FUNCTION(complex_cholesky, return parts(tn_linalg_cholesky(complex_positive(xs)));)
FUNCTION(complex_qr, tn_array *q, *r; MUST(tn_linalg_qr(number(xs), &q, &r));
         return parts(tn_matmul(tn_multiply(q, tn_abs(q)), r));)
FUNCTION(complex_svdvals, return tn_square(tn_linalg_svdvals(number(xs)));)
FUNCTION(complex_svd, tn_array *u, *s, *vh; MUST(tn_linalg_svd(number(xs), &u, &s, &vh, .reduced = true));
         return parts(tn_matmul(tn_multiply(u, tn_sin(s)), vh));)
FUNCTION(complex_eig, tn_array *w, *v; MUST(tn_linalg_eig(number(xs), &w, &v));
         return tn_matmul(tn_abs(v), tn_expand_dims(parts(w), -1));)
FUNCTION(complex_eigh, tn_array *w, *v; MUST(tn_linalg_eigh(complex_positive(xs), &w, &v));
         return tn_matmul(tn_abs(v), tn_sin(w));)

static void test_complex_matrices(void **state)
{
    (void)state;
    const tn_array *x[] = {apart(TN_SHAPE(3, 3), 0), spread(TN_SHAPE(3, 3), -0.3, 0.3, 1), apart(TN_SHAPE(3, 2), 2),
                           spread(TN_SHAPE(3, 2), -0.3, 0.3, 1)};
    check_gradients("complex solve", complex_solve, NULL, 4, x);
    check_gradients("complex slogdet", complex_slogdet, NULL, 2, x);
    check_gradients("complex pinv", complex_pinv, NULL, 2, x + 2);
    check_gradients("complex cholesky", complex_cholesky, NULL, 2, x);
    check_gradients("complex qr", complex_qr, NULL, 2, x);
    check_gradients("complex svdvals", complex_svdvals, NULL, 2, x);
    check_gradients("complex svd", complex_svd, NULL, 2, x);
    check_gradients("complex svd, tall", complex_svd, NULL, 2, x + 2);
    check_gradients("complex eigh", complex_eigh, NULL, 2, x);
    check_gradients("complex eig", complex_eig, NULL, 2, x);
}

/* ---- Fourier transforms ---- */

FUNCTION(fft, return parts(tn_fft_fft(number(xs), .n = 5, .norm = TN_FFT_ORTHO));)
FUNCTION(ifft, return parts(tn_fft_ifft(number(xs), .n = 2));)
FUNCTION(rfft, return parts(tn_fft_rfft(xs[0]));)
FUNCTION(irfft, return tn_sin(tn_fft_irfft(number(xs), .n = 5));)
FUNCTION(irfft_even, return tn_sin(tn_fft_irfft(number(xs)));)
FUNCTION(hfft, return tn_sin(tn_fft_hfft(number(xs)));)
FUNCTION(ihfft, return parts(tn_fft_ihfft(xs[0]));)
FUNCTION(fftn, return parts(tn_fft_fftn(number(xs)));)
FUNCTION(rfftn, return parts(tn_fft_rfftn(xs[0]));)
FUNCTION(shift, return tn_sin(tn_fft_fftshift(xs[0], TN_AXES(1)));)

static void test_transforms(void **state)
{
    (void)state;
    const tn_array *x[] = {spread(TN_SHAPE(2, 4), -1, 1, 0), spread(TN_SHAPE(2, 4), -1, 1, 1)};
    check_gradients("fft", fft, NULL, 2, x);
    check_gradients("ifft", ifft, NULL, 2, x);
    check_gradients("rfft", rfft, NULL, 1, x);
    check_gradients("irfft", irfft, NULL, 2, x);
    check_gradients("irfft, even", irfft_even, NULL, 2, x);
    check_gradients("hfft", hfft, NULL, 2, x);
    check_gradients("ihfft", ihfft, NULL, 1, x);
    check_gradients("fftn", fftn, NULL, 2, x);
    check_gradients("rfftn", rfftn, NULL, 1, x);
    check_gradients("fftshift", shift, NULL, 1, x);
}

static void test_refusals(void **state)
{
    (void)state;
    tn_array *x = tn_cast(spread(TN_SHAPE(2, 3), -1, 1, 0), TN_FLOAT64), *q, *r, *u, *s, *vh;
    tn_requires_grad(x);
    assert_int_equal(tn_linalg_qr(x, &q, &r), TN_OK);
    assert_int_not_equal(tn_backward(tn_sum(r)), TN_OK);
    assert_error(TN_ERR_UNSUPPORTED, "at least as many rows as columns");
    assert_int_equal(tn_linalg_svd(x, &u, &s, &vh), TN_OK);
    assert_int_not_equal(tn_backward(tn_sum(vh)), TN_OK);
    assert_error(TN_ERR_UNSUPPORTED, "reduced");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_solutions), TEST(test_decompositions),   TEST(test_norms),
                                       TEST(test_complex),   TEST(test_complex_matrices), TEST(test_transforms),
                                       TEST(test_refusals),  TEST(test_equal_values),   TEST(test_inverses),
                                       TEST(test_norms_of_equal_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
