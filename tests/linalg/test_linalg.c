/* SPDX-License-Identifier: MIT */
/* Linear algebra: what decompositions and solutions promise, for random matrices of all shapes, batches and dtypes;
 * refusals; and allocations that fail. Values against NumPy's are replayed (tests/replay). */
#include <math.h>

#include "support/random.h"
#include "support/starve.h"

static uint64_t seed;
static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_COMPLEX64, TN_COMPLEX128};
static const tn_shape shapes[] = {{2, {1, 1}}, {2, {3, 3}}, {2, {5, 2}}, {2, {2, 5}}, {3, {2, 4, 4}}, {4, {2, 1, 3, 6}},
                                  {2, {0, 3}}, {2, {3, 0}}, {3, {0, 2, 2}}};

static tn_array *normals(tn_shape shape, tn_dtype dtype)
{
    tn_array *re = tn_random_normal(shape, .dtype = TN_FLOAT64);
    return tn_dtype_is_complex(dtype) ? tn_complex(re, tn_random_normal(shape, .dtype = TN_FLOAT64)) : re;
}

static tn_array *adjoint(const tn_array *a) { return tn_conjugate(tn_swapaxes(a, -1, -2)); }

static tn_array *half_square(const tn_array *v)
{
    return tn_divide(tn_sum(tn_square(tn_abs(v)), .axis = TN_AXES(-2, -1), .keepdims = true), 2);
}

/* Singular values near 1, 2, 3 and so on between two random reflections. Normal numbers alone make a matrix that is as
 * good as singular once in some hundred runs, where what inverts it is off by any bound that says something. */
static tn_array *matrix(tn_shape shape, tn_dtype dtype)
{
    tn_shape column = shape, row = shape;
    column.dim[shape.ndim - 1] = row.dim[shape.ndim - 2] = 1;
    tn_array *v = normals(column, dtype), *w = normals(row, dtype);
    tn_array *values = tn_add(tn_random_uniform(column, .high = 0.5, .dtype = TN_FLOAT64),
                              tn_expand_dims(tn_arange(1, 1 + (double)tn_dim(v, -2), 1), -1));
    tn_array *a = tn_multiply(values, tn_eye(tn_dim(v, -2), tn_dim(w, -1), .dtype = TN_FLOAT64));
    a = tn_subtract(a, tn_matmul(v, tn_divide(tn_matmul(adjoint(v), a), half_square(v))));
    a = tn_subtract(a, tn_matmul(tn_divide(tn_matmul(a, adjoint(w)), half_square(w)), w));
    a = tn_cast(a, dtype);
    tn_set_compile(TN_COMPILE_NEVER); /* many small plans, and not what is to be tested */
    assert_int_equal(test_eval(a), TN_OK);
    tn_set_compile(TN_COMPILE_AUTO);
    return a;
}

static void assert_near(const char *what, tn_array *a, tn_array *b)
{
    tn_array *gap = tn_sum(tn_abs(tn_subtract(a, b)));
    double bound =
        (tn_dtype_of(a) == TN_FLOAT32 || tn_dtype_of(a) == TN_COMPLEX64 ? 1e-4 : 1e-11) * (1 + (double)tn_size(a));
    double found = tn_item(gap);
    if (!(found <= bound))
        fail_msg("%s: off by %g in all (%s), %s; seed %llu", what, found, tn_dtype_name(tn_dtype_of(a)), tn_error(),
                 (unsigned long long)seed);
    assert_int_equal(tn_dtype_of(a), tn_dtype_of(b));
}

static tn_array *eye_like(tn_array *a)
{
    return tn_multiply(tn_eye(tn_dim(a, -1), -1, .dtype = tn_dtype_of(a)), tn_ones_like(a));
}

static void each_shape(void (*check)(tn_array *a, int64_t m, int64_t n))
{
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            TN_SCOPE {
                tn_array *a = matrix(shapes[s], dtypes[d]);
                check(a, tn_dim(a, -2), tn_dim(a, -1));
            }
}

static void check_qr(tn_array *a, int64_t m, int64_t n)
{
    tn_array *q, *r;
    for (int mode = TN_QR_REDUCED; mode <= TN_QR_COMPLETE; mode++) {
        assert_int_equal(tn_linalg_qr(a, &q, &r, .mode = (tn_qr_mode)mode), TN_OK);
        assert_int_equal(tn_dim(q, -1), mode == TN_QR_COMPLETE ? m : m < n ? m : n);
        assert_near("q r", tn_matmul(q, r), a);
        tn_array *unit = tn_matmul(adjoint(q), q);
        assert_near("q^H q", unit, eye_like(unit));
    }
    tn_array *alone;
    assert_int_equal(tn_linalg_qr(a, NULL, &alone, .mode = TN_QR_R), TN_OK);
    assert_int_equal(tn_linalg_qr(a, NULL, &r), TN_OK);
    assert_near("r", alone, r);
}

static void check_svd(tn_array *a, int64_t m, int64_t n)
{
    tn_array *u, *s, *vh;
    assert_int_equal(tn_linalg_svd(a, &u, &s, &vh, .reduced = true), TN_OK);
    assert_near("u s vh", tn_matmul(tn_multiply(u, tn_cast(tn_expand_dims(s, -2), tn_dtype_of(a))), vh), a);
    assert_near("svdvals", tn_linalg_svdvals(a), s);
    tn_array *full_u, *full_vh;
    assert_int_equal(tn_linalg_svd(a, &full_u, NULL, &full_vh), TN_OK);
    assert_int_equal(tn_dim(full_u, -1), m);
    assert_int_equal(tn_dim(full_vh, -2), n);
    tn_array *unit = tn_matmul(full_vh, adjoint(full_vh));
    assert_near("vh vh^H", unit, eye_like(unit));
    tn_array *p = tn_linalg_pinv(a);
    assert_near("a a+ a", tn_matmul(tn_matmul(a, p), a), a);
}

static void check_square(tn_array *a, int64_t m, int64_t n)
{
    if (m != n)
        return;
    tn_array *inverse = tn_linalg_inv(a), *unit = tn_matmul(a, inverse);
    assert_near("a a^-1", unit, eye_like(a));
    tn_array *h = tn_add(a, adjoint(a)), *w, *v;
    assert_int_equal(tn_linalg_eigh(h, &w, &v), TN_OK);
    assert_near("v w v^H", tn_matmul(tn_multiply(v, tn_cast(tn_expand_dims(w, -2), tn_dtype_of(a))), adjoint(v)), h);
    assert_near("eigvalsh", tn_linalg_eigvalsh(h, .upper = true), w);
    tn_array *p = tn_add(tn_matmul(a, adjoint(a)), eye_like(a)), *l = tn_linalg_cholesky(p);
    assert_near("l l^H", tn_matmul(l, adjoint(l)), p);
    tn_array *upper = tn_linalg_cholesky(p, .upper = true);
    assert_near("u", upper, adjoint(l));
    tn_array *sign, *logdet;
    assert_int_equal(tn_linalg_slogdet(a, &sign, &logdet), TN_OK);
    assert_near("det", tn_multiply(sign, tn_cast(tn_exp(logdet), tn_dtype_of(a))), tn_linalg_det(a));
    assert_int_equal(tn_linalg_eig(a, &w, &v), TN_OK);
    tn_dtype whole = tn_dtype_promote(tn_dtype_of(a), TN_COMPLEX64);
    assert_near("a v = v w", tn_cast(tn_matmul(a, v), whole), tn_cast(tn_multiply(v, tn_expand_dims(w, -2)), whole));
}

/* With a gradient wanted, least squares go another way. */
static void check_least(tn_array *a, int64_t m, int64_t n)
{
    if (tn_ndim(a) != 2 ||
        (test_device().kind == TN_DEVICE_CUDA && tn_dtype_of(a) != TN_COMPLEX128)) /* whose kernels take their time */
        return;
    tn_array *b = matrix(TN_SHAPE(m, 2), tn_dtype_of(a)), *part[2][4];
    if (m > 2 && n > 2) /* a matrix that has not full rank, too */
        a = tn_multiply(a, tn_cast(tn_less(tn_arange(0, (double)n, 1), 2), tn_dtype_of(a)));
    tn_array *marked = tn_multiply(a, 1);
    assert_int_equal(tn_linalg_lstsq(a, b, &part[0][0], &part[0][1], &part[0][2], &part[0][3]), TN_OK);
    tn_requires_grad(marked);
    assert_int_equal(tn_linalg_lstsq(marked, b, &part[1][0], &part[1][1], &part[1][2], &part[1][3]), TN_OK);
    static const char *const names[] = {"x", "residuals", "rank", "s"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tn_ndim(part[0][i]), tn_ndim(part[1][i]));
        assert_int_equal(tn_size(part[0][i]), tn_size(part[1][i]));
        assert_near(names[i], part[1][i], part[0][i]);
    }
    assert_near("a^H (a x - b)", tn_matmul(adjoint(a), tn_subtract(tn_matmul(a, part[0][0]), b)),
                tn_zeros(TN_SHAPE(n, 2), .dtype = tn_dtype_of(a)));
}

static void test_least(void **state) { (void)state; each_shape(check_least); }
static void test_qr(void **state) { (void)state; each_shape(check_qr); }
static void test_svd(void **state) { (void)state; each_shape(check_svd); }

/* Hermitian matrices of less than full rank: vectors of a zero are vectors all the same. */
static void test_singular_hermitian(void **state)
{
    (void)state;
    tn_array *a = tn_diag(tn_from_doubles((const double[]){1, 0, -3, 0}, 4), 0), *u, *s, *vh;
    assert_int_equal(tn_linalg_svd(a, &u, &s, &vh, .hermitian = true), TN_OK);
    assert_near("vh vh^T", tn_matmul(vh, tn_transpose(vh, (tn_axes){0})), tn_eye(4, 4, .dtype = TN_FLOAT64));
    assert_near("u s vh", tn_matmul(tn_multiply(u, s), vh), a);
}
static void test_square(void **state) { (void)state; each_shape(check_square); }

static void refused(tn_array *x, tn_status code, const char *word)
{
    tn_status status = tn_is_error(x) ? tn_status_of(x) : tn_eval(tn_to(x, tn_cpu())); /* a GPU tells whoever reads */
    assert_int_equal(status, code);
    if (!strstr(tn_error(), word))
        fail_msg("expected '%s' in '%s'", word, tn_error());
    tn_clear_error();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *wide = tn_ones(TN_SHAPE(2, 3)), *zero = tn_zeros(TN_SHAPE(2, 2));
        refused(tn_linalg_inv(wide), TN_ERR_SHAPE, "square");
        refused(tn_linalg_det(tn_ones(TN_SHAPE(3))), TN_ERR_SHAPE, "at least 2 axes");
        refused(tn_linalg_inv(tn_cast(zero, TN_FLOAT16)), TN_ERR_DTYPE, "float32");
        refused(tn_linalg_solve(zero, wide), TN_ERR_VALUE, "singular");
        refused(tn_linalg_solve(zero, tn_ones(TN_SHAPE(3))), TN_ERR_SHAPE, "rows");
        refused(tn_linalg_cholesky(tn_negative(tn_eye(2, 2))), TN_ERR_VALUE, "positive definite");
        refused(tn_linalg_norm(wide, .ord = TN_ORD(3)), TN_ERR_VALUE, "order");
        refused(tn_linalg_norm(tn_ones(TN_SHAPE(2, 2, 2)), .ord = TN_ORD(1)), TN_ERR_VALUE, "axis");
        refused(tn_linalg_norm(wide, .ord = TN_NUC, .axis = TN_AXES(0)), TN_ERR_VALUE, "nuc");
        refused(tn_linalg_eigvals(tn_full(TN_SHAPE(2, 2), NAN)), TN_ERR_VALUE, "NaN");
        refused(tn_linalg_multi_dot(1, (const tn_array *const[]){wide}), TN_ERR_VALUE, "2 to");
        refused(tn_linalg_cond(tn_zeros(TN_SHAPE(0, 0)), (tn_norm_order){0, 0}), TN_ERR_SHAPE, "empty");
        refused(tn_linalg_norm(tn_zeros(TN_SHAPE(0)), .ord = TN_ORD(-INFINITY)), TN_ERR_SHAPE, "min");
        tn_array *other = tn_zeros(TN_SHAPE(2, 2), .dtype = TN_FLOAT64);
        refused(tn_linalg_multi_dot_with(2, (const tn_array *const[]){zero, zero}, TN_OPTS(tn_out_opts, .out = other)),
                TN_ERR_DTYPE, "out");
    }
}

/* Norms of 16-bit numbers, whose squares and sums are beyond their dtype, and their gradients. */
static void test_narrow_norms(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * 5; k++) TN_SCOPE {
        tn_dtype dtype = k % 2 ? TN_BFLOAT16 : TN_FLOAT16;
        tn_array *two = tn_from_doubles((const double[]){-384, 512}, 2);
        tn_array *x = tn_requires_grad(tn_cast(tn_reshape(two, TN_SHAPE(1, 2)), dtype)), *y;
        switch (k / 2) {
        case 0: y = tn_linalg_norm(x); break;
        case 1: y = tn_linalg_norm(x, .axis = TN_AXES(1)); break;
        case 2: y = tn_linalg_norm(x, .ord = TN_FRO); break;
        case 3: y = tn_linalg_norm(x, .ord = TN_ORD(2), .axis = TN_AXES(-1), .keepdims = true); break;
        default: y = tn_linalg_norm(tn_reshape(x, TN_SHAPE(2)), .ord = TN_ORD(2));
        }
        assert_int_equal(tn_dtype_of(y), dtype);
        assert_true(tn_item(tn_sum(y)) == 640);
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        tn_array *want = tn_cast(tn_from_doubles((const double[]){-0.6, 0.8}, 2), dtype);
        tn_array *off = tn_abs(tn_subtract(tn_cast(tn_grad(x), TN_FLOAT32), tn_cast(want, TN_FLOAT32)));
        assert_true(tn_item(tn_max(off)) <= (k % 2 ? 0x1p-8 : 0x1p-11)); /* one place: it is rounded once more */
    }
}

/* Of nothing the largest is 0; a product into an array. */
static void test_nothing(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *nothing = tn_zeros(TN_SHAPE(0, 3)), *a = matrix(TN_SHAPE(2, 3), TN_FLOAT64),
                 *b = matrix(TN_SHAPE(3, 4), TN_FLOAT64);
        assert_true(tn_item(tn_linalg_norm(nothing, .ord = TN_ORD(INFINITY))) == 0);
        assert_true(tn_item(tn_linalg_norm(nothing, .ord = TN_ORD(2))) == 0);
        assert_true(tn_item(tn_linalg_norm(tn_zeros(TN_SHAPE(0)), .ord = TN_ORD(INFINITY))) == 0);
        assert_int_equal(tn_item_int(tn_linalg_matrix_rank(nothing)), 0);
        tn_array *out = tn_zeros(TN_SHAPE(2, 4), .dtype = TN_FLOAT64), *parts[] = {a, b};
        tn_array *y = tn_linalg_multi_dot_with(2, (const tn_array *const *)parts, TN_OPTS(tn_out_opts, .out = out));
        assert_near("multi_dot", out, tn_matmul(a, b));
        assert_near("multi_dot", y, out);
    }
}

/* Other numbers where results that nobody writes would lie: in all small pieces of memory that are free. */
static void spoil_memory(void)
{
    TN_SCOPE
    for (int i = 0; i < 48; i++)
        assert_int_equal(test_eval(tn_full(TN_SHAPE(i % 2 ? 64 : 8), 7 + i, .dtype = TN_FLOAT64)), TN_OK);
}

static void test_determinants_of_nothing(void **state)
{
    (void)state;
    static const tn_shape batches[] = {{2, {0, 0}}, {3, {3, 0, 0}}, {4, {2, 5, 0, 0}}};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
            for (int what = 0; what < 3; what++) {
                static const char *const names[] = {"sign", "log", "det"};
                spoil_memory();
                TN_SCOPE {
                    tn_array *a = tn_zeros(batches[i], .dtype = dtypes[d]), *part[2];
                    assert_int_equal(tn_linalg_slogdet(a, &part[0], &part[1]), TN_OK);
                    tn_array *y = tn_to(what < 2 ? part[what] : tn_linalg_det(a), tn_cpu());
                    assert_near(names[what], y, what == 1 ? tn_zeros_like(y) : tn_ones_like(y));
                }
            }
}

static tn_status everything(void *user)
{
    tn_array *a = user, *q, *r, *x, *s, *rank, *res;
    tn_status status = TN_OK;
    TN_SCOPE {
        status = tn_linalg_qr(a, &q, &r);
        if (status == TN_OK)
            status = tn_linalg_lstsq(a, tn_ones(TN_SHAPE(3)), &x, &res, &rank, &s);
        tn_array *all[] = {q,
                           r,
                           tn_linalg_inv(a),
                           tn_linalg_norm(a, .ord = TN_NUC),
                           tn_fft_rfft(a),
                           tn_fft_irfft(a),
                           tn_linalg_eigvals(a)};
        for (int i = 0; i < 7 && status == TN_OK; i++)
            status = tn_is_error(all[i]) ? tn_status_of(all[i]) : tn_eval(all[i]);
    }
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    tn_array *a = tn_add(tn_random_normal(TN_SHAPE(3, 3), .dtype = TN_FLOAT64), tn_eye(3, 3));
    assert_int_equal(tn_eval(a), TN_OK);
    tn_set_compile(TN_COMPILE_NEVER);
    starve("linear algebra", everything, a);
    tn_free(a);
}

/* Where singular values are 0 or equal, norms made of them have subgradients: g with <g, a> = |a|, of dual norm 1. */
static void test_subgradients(void **state)
{
    (void)state;
    static const double rows[][4] = {{0, 0, 0, 0}, {2, 0, 0, 2}, {1, 2, 2, 4}, {0, 3, 0, 0}, {3, 1, 1, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int nuclear = 0; nuclear < 2; nuclear++) TN_SCOPE {
            tn_array *a = tn_requires_grad(tn_from_host(rows[i], TN_SHAPE(2, 2), TN_FLOAT64)), *g;
            tn_array *y = nuclear ? tn_linalg_norm(a, .ord = TN_NUC) : tn_linalg_norm(a, .ord = TN_ORD(2));
            assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){a}, false, &g), TN_OK);
            assert_float_equal(tn_item(tn_sum(tn_multiply(g, a))), tn_item(y), 1e-12);
            tn_array *dual = nuclear ? tn_linalg_norm(g, .ord = TN_ORD(2)) : tn_linalg_norm(g, .ord = TN_NUC);
            assert_float_equal(tn_item(dual), 1, 1e-12);
        }
}

int main(void)
{
    seed = test_seed_new();
    tn_seed(seed);
    tn_array *probe = tn_linalg_inv(tn_ones(TN_SHAPE(1, 1)));
    bool without = tn_eval(probe) == TN_ERR_UNSUPPORTED;
    tn_free(probe);
    if (without) {
        print_message("skipped: %s\n", tn_error());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] =
        {cmocka_unit_test(test_qr),       cmocka_unit_test(test_svd),        cmocka_unit_test(test_singular_hermitian),
         cmocka_unit_test(test_subgradients),
         cmocka_unit_test(test_square),   cmocka_unit_test(test_least),      cmocka_unit_test(test_nothing),
         cmocka_unit_test(test_narrow_norms),
         cmocka_unit_test(test_refusals), cmocka_unit_test(test_determinants_of_nothing),
         cmocka_unit_test(test_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
