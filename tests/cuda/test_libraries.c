/* SPDX-License-Identifier: MIT */
/* What cuFFT and cuSOLVER compute agrees with the CPU, and matrices that have no result are told of. Skipped without a
 * GPU; and, having run, said to be skipped where a library of CUDA's is not there, as others have computed its part. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "backends/cuda/runtime/cuda.h"
#include "ops/ops.h"
#include "support/device.h"
#include "support/random.h"

static uint64_t seed;

static tn_array *draw(tn_shape shape) { return tn_random_normal(shape, .dtype = TN_FLOAT64, .device = tn_cpu()); }
static tn_array *there(const tn_array *x) { return tn_to(x, tn_cuda(0)); }
static tn_array *here(const tn_array *x) { return tn_to(x, tn_cpu()); }

/* Largest difference over largest value, of complex numbers their sizes. */
static void agree(const tn_array *gpu, const tn_array *cpu)
{
    tn_array *difference = tn_max(tn_abs(tn_subtract(tn_to(gpu, tn_cpu()), cpu))), *largest = tn_max(tn_abs(cpu));
    double error = tn_item(difference), size = tn_item(largest);
    if (!tn_ok() || !(error <= 1e-8 * size + 1e-300))
        fail_msg("%g of %g, seed %llu: %s", error, size, (unsigned long long)seed, tn_ok() ? "" : tn_error());
}

static void test_solve(void **state)
{
    (void)state;
    static const int64_t places[] = {700, 1, 5, 3, 2, 1, 3, 2}, extent[] = {1, 2, 17, 31, 32, 128, 150, 257},
                         sides[] = {2, 1, 70, 1, 33, 1, 7, 300};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        TN_SCOPE {
            int64_t n = extent[i];
            tn_array *a = draw(TN_SHAPE(places[i], n, n)), *b = draw(TN_SHAPE(places[i], n, sides[i]));
            tn_array *turned = tn_swapaxes(a, 1, 2), *c = tn_complex(a, turned);
            agree(tn_linalg_solve(there(a), there(b)), tn_linalg_solve(a, b));
            agree(tn_linalg_solve(tn_swapaxes(there(a), 1, 2), there(b)), tn_linalg_solve(turned, b));
            agree(tn_linalg_inv(there(a)), tn_linalg_inv(a));
            agree(tn_real(tn_linalg_inv(there(c))), tn_real(tn_linalg_inv(c)));
            tn_array *sign[2], *size[2];
            assert_int_equal(tn_linalg_slogdet(there(a), &sign[0], &size[0]), TN_OK);
            assert_int_equal(tn_linalg_slogdet(a, &sign[1], &size[1]), TN_OK);
            agree(sign[0], sign[1]);
            agree(size[0], size[1]);
        }
}

/* Plans that come again with other numbers, elsewhere in memory. */
static void test_again(void **state)
{
    (void)state;
    tn_array *kept[6][2];
    for (int i = 0; i < 6; i++)
        TN_SCOPE {
            tn_array *a = draw(TN_SHAPE(9, 6, 6)), *b = draw(TN_SHAPE(9, 6, 2)), *gpu = there(a);
            agree(tn_linalg_solve(gpu, there(b)), tn_linalg_solve(a, b));
            agree(tn_linalg_det(gpu), tn_linalg_det(a));
            kept[i][0] = tn_own(gpu); /* so that the next one lies elsewhere */
            kept[i][1] = tn_own(a);
        }
    for (int i = 0; i < 6; i++)
        TN_SCOPE agree(tn_linalg_inv(kept[i][0]), tn_linalg_inv(kept[i][1]));
    for (int i = 0; i < 12; i++)
        tn_free(kept[i / 2][i % 2]);
}

static void test_cholesky(void **state)
{
    (void)state;
    static const int64_t places[] = {300, 3, 2}, extent[] = {5, 32, 200};
    for (int i = 0; i < 3; i++)
        TN_SCOPE {
            int64_t n = extent[i];
            tn_array *x = draw(TN_SHAPE(places[i], n, n)), *noise = tn_matmul(x, tn_swapaxes(x, 1, 2));
            tn_array *a = tn_add(noise, tn_multiply(tn_eye(n, n, .dtype = TN_FLOAT64, .device = tn_cpu()), n));
            agree(tn_linalg_cholesky(there(a)), tn_linalg_cholesky(a));
            agree(tn_linalg_cholesky(there(a), .upper = true), tn_linalg_cholesky(a, .upper = true));
            tn_array *turned = tn_multiply(tn_subtract(x, tn_swapaxes(x, 1, 2)), 0.2), *c = tn_complex(a, turned);
            for (int upper = 0; upper < 2; upper++) {
                tn_array *gpu = tn_linalg_cholesky(there(c), .upper = upper),
                         *cpu = tn_linalg_cholesky(c, .upper = upper);
                agree(tn_real(gpu), tn_real(cpu));
                agree(tn_imag(gpu), tn_imag(cpu));
            }
        }
}

static tn_array *adjoint(const tn_array *a) { return tn_conjugate(tn_swapaxes(a, -1, -2)); }

/* v^H v is the identity. */
static void unitary(tn_array *v)
{
    tn_array *eye = tn_cast(tn_eye(tn_dim(v, -1), -1, .dtype = TN_FLOAT64, .device = tn_cpu()), tn_dtype_of(v));
    tn_array *product = tn_matmul(adjoint(v), v);
    agree(product, tn_broadcast_to(eye, tn_shape_of(product)));
}

/* Columns times values. */
static tn_array *scaled(tn_array *v, tn_array *values)
{
    return tn_multiply(v, tn_cast(tn_expand_dims(values, -2), tn_dtype_of(v)));
}

/* Vectors are the same up to a phase: what they are for is compared, on the CPU, and the values. */
static void check_qr(tn_array *a)
{
    tn_array *q, *r, *gpu = there(a), *raw[2], *expected[2];
    for (int mode = TN_QR_REDUCED; mode <= TN_QR_COMPLETE; mode++) {
        assert_int_equal(tn_linalg_qr(gpu, &q, &r, .mode = (tn_qr_mode)mode), TN_OK);
        assert_int_equal(tn_dim(q, -1), tn_dim(r, -2));
        agree(tn_matmul(here(q), here(r)), a);
        agree(tn_triu(here(r), 0), here(r));
        unitary(here(q));
    }
    assert_int_equal(tn_linalg_qr(gpu, NULL, &q, .mode = TN_QR_R), TN_OK);
    assert_int_equal(tn_linalg_qr(gpu, NULL, &r), TN_OK);
    agree(here(q), here(r));
    assert_int_equal(tn_linalg_qr(gpu, &raw[0], &raw[1], .mode = TN_QR_RAW), TN_OK);
    assert_int_equal(tn_linalg_qr(a, &expected[0], &expected[1], .mode = TN_QR_RAW), TN_OK);
    agree(here(raw[0]), expected[0]);
    agree(here(raw[1]), expected[1]);
}

static void check_svd(tn_array *a)
{
    tn_array *u, *s, *vh, *gpu = there(a), *values = tn_linalg_svdvals(a);
    for (int reduced = 0; reduced < 2; reduced++) {
        assert_int_equal(tn_linalg_svd(gpu, &u, &s, &vh, .reduced = reduced), TN_OK);
        u = here(u), s = here(s), vh = here(vh);
        int64_t k = tn_dim(s, -1);
        tn_array *thin = tn_slice_axis(u, -1, 0, k, 1), *low = tn_slice_axis(vh, -2, 0, k, 1);
        agree(tn_matmul(scaled(thin, s), low), a);
        unitary(u);
        unitary(adjoint(vh));
        agree(s, values);
    }
    agree(tn_linalg_svdvals(gpu), values);
    agree(here(tn_linalg_pinv(gpu)), tn_linalg_pinv(a));
}

static void check_eigh(tn_array *a)
{
    tn_array *w, *v, *gpu = there(a);
    for (int upper = 0; upper < 2; upper++) {
        assert_int_equal(tn_linalg_eigh(gpu, &w, &v, .upper = upper), TN_OK);
        w = here(w), v = here(v);
        tn_array *half = upper ? tn_triu(a, 1) : tn_tril(a, -1), *diagonal = tn_subtract(tn_tril(a, 0), tn_tril(a, -1));
        tn_array *h = tn_add(tn_add(half, adjoint(half)), tn_cast(tn_real(diagonal), tn_dtype_of(a)));
        agree(tn_matmul(scaled(v, w), adjoint(v)), h);
        unitary(v);
        agree(w, tn_linalg_eigvalsh(a, .upper = upper));
        agree(tn_linalg_eigvalsh(gpu, .upper = upper), w);
    }
}

static void each_shape(int count, const tn_shape *shapes, void (*check)(tn_array *a))
{
    for (int i = 0; i < count; i++)
        TN_SCOPE {
            tn_array *a = draw(shapes[i]);
            check(a);
            check(tn_complex(a, draw(shapes[i])));
            check(tn_swapaxes(a, -1, -2));
        }
}

static void test_qr(void **state)
{
    (void)state;
    each_shape(3, (const tn_shape[]){{2, {140, 140}}, {3, {2, 131, 200}}, {2, {300, 129}}}, check_qr);
}

static void test_svd(void **state)
{
    (void)state;
    each_shape(3, (const tn_shape[]){{2, {260, 260}}, {3, {2, 256, 300}}, {2, {330, 257}}}, check_svd);
}

static void test_eigh(void **state)
{
    (void)state;
    each_shape(2, (const tn_shape[]){{2, {140, 140}}, {3, {3, 130, 130}}}, check_eigh);
}

static void test_least(void **state)
{
    (void)state;
    static const tn_shape shapes[] = {{2, {300, 256}}, {2, {256, 280}}};
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            tn_array *a = draw(shapes[i]), *b = draw(TN_SHAPE(shapes[i].dim[0], 3)), *gpu[4], *cpu[4];
            assert_int_equal(tn_linalg_lstsq(there(a), there(b), &gpu[0], &gpu[1], &gpu[2], &gpu[3]), TN_OK);
            assert_int_equal(tn_linalg_lstsq(a, b, &cpu[0], &cpu[1], &cpu[2], &cpu[3]), TN_OK);
            assert_int_equal((int)tn_item(gpu[2]), (int)tn_item(cpu[2]));
            agree(gpu[0], cpu[0]);
            agree(gpu[3], cpu[3]);
            assert_int_equal((int)tn_size(gpu[1]), (int)tn_size(cpu[1]));
            if (tn_size(cpu[1]))
                agree(gpu[1], cpu[1]);
        }
}

/* Told of by whoever reads; the device goes on. */
static void test_no_result(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = draw(TN_SHAPE(130, 130));
        tn_array *ones = tn_ones(TN_SHAPE(130, 130), .dtype = TN_FLOAT64, .device = tn_cuda(0));
        assert_int_equal(tn_eval(tn_to(tn_linalg_inv(ones), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "singular matrix"));
        tn_clear_error();
        assert_int_equal(tn_eval(tn_to(tn_linalg_cholesky(tn_negative(ones)), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "not positive definite"));
        tn_clear_error();
        tn_array *nothing = tn_full(TN_SHAPE(260, 260), NAN, .dtype = TN_FLOAT64, .device = tn_cuda(0)), *w, *v;
        assert_int_equal(tn_eval(tn_to(tn_linalg_svdvals(nothing), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "did not converge"));
        tn_clear_error();
        /* LAPACK notices in some of its ways only, and gives NaN otherwise */
        if (tn_linalg_eigh(nothing, &w, &v) == TN_OK && tn_eval(w = here(w)) == TN_OK)
            assert_true(isnan(tn_item(tn_index(w, 0))));
        tn_clear_error();
        agree(tn_linalg_inv(there(a)), tn_linalg_inv(a));
    }
}

/* One of many small matrices: the others' results are not to be had either, but determinants are. */
static void test_no_result_of_one(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *first = draw(TN_SHAPE(40, 6, 6));
        tn_array *zero = tn_zeros(TN_SHAPE(1, 6, 6), .dtype = TN_FLOAT64, .device = tn_cpu());
        tn_array *a = tn_concatenate(3, (const tn_array *[]){first, zero, first}, 0), *sign[2], *size[2];
        assert_int_equal(tn_eval(tn_to(tn_linalg_inv(there(a)), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "singular matrix"));
        tn_clear_error();
        assert_int_equal(tn_eval(tn_to(tn_linalg_cholesky(there(a)), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "not positive definite"));
        tn_clear_error();
        agree(tn_linalg_det(there(a)), tn_linalg_det(a));
        assert_int_equal(tn_linalg_slogdet(there(a), &sign[0], &size[0]), TN_OK);
        assert_int_equal(tn_linalg_slogdet(a, &sign[1], &size[1]), TN_OK);
        agree(sign[0], sign[1]);
        assert_true(tn_item(tn_index(here(size[0]), 40)) == -INFINITY);
    }
}

static void test_fft(void **state)
{
    (void)state;
    static const int64_t extent[] = {1, 7, 64, 131, 1000};
    for (int i = 0; i < 5; i++)
        for (int axis = 0; axis < 3; axis++)
            TN_SCOPE {
                int64_t dim[3] = {4, 3, 5};
                dim[axis] = extent[i];
                tn_array *x = draw(TN_SHAPE(dim[0], dim[1], dim[2])), *z = tn_complex(x, tn_flip(x, (tn_axes){0}));
                tn_array *gpu = tn_fft_fft(there(z), .axis = TN_AXES(axis));
                tn_array *cpu = tn_fft_fft(z, .axis = TN_AXES(axis));
                agree(here(gpu), cpu);
                agree(tn_real(here(tn_fft_ifft(gpu, .axis = TN_AXES(axis)))), x);
                gpu = tn_fft_rfft(there(x), .axis = TN_AXES(axis));
                cpu = tn_fft_rfft(x, .axis = TN_AXES(axis));
                agree(here(gpu), cpu);
                tn_array *half = tn_multiply(gpu, 2); /* which the way back must leave as it is */
                agree(tn_divide(tn_fft_irfft(half, .axis = TN_AXES(axis), .n = extent[i]), 2), x);
                agree(tn_divide(here(half), 2), cpu);
            }
    TN_SCOPE {
        tn_array *x = draw(TN_SHAPE(9, 65)), *part = tn_slice_axis(x, 1, 1, 64, 1); /* rows that begin on odd numbers */
        tn_array *there_part = tn_slice_axis(there(x), 1, 1, 64, 1);
        agree(here(tn_fft_rfft(there_part)), tn_fft_rfft(part));
        agree(here(tn_fft_rfft2(there_part)), tn_fft_rfft2(part));
        agree(tn_fft_irfft2(tn_fft_rfft2(there_part), .s = tn_shape_of(part)), part);
        agree(tn_fft_hfft(tn_fft_ihfft(there_part), .n = 63), part);
    }
}

static bool lacks_a_library(tn__device *device)
{
    const struct {
        const char *name;
        bool there;
    } libraries[] = {{"cuFFT", device->ops->supports(device, TN__OP_FFT, TN_COMPLEX128, NULL)},
                     {"cuSOLVER", device->ops->supports(device, TN__OP_SVD, TN_FLOAT64, NULL)},
                     {"cuBLASLt", tn__cuda_of(device)->libraries->has_blas}};
    bool lacks = false;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (!libraries[i].there) {
            printf("without %s: others have computed its part\n", libraries[i].name);
            lacks = true;
        }
    return lacks;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solve), cmocka_unit_test(test_again), cmocka_unit_test(test_cholesky),
        cmocka_unit_test(test_qr),    cmocka_unit_test(test_svd),   cmocka_unit_test(test_eigh),
        cmocka_unit_test(test_least), cmocka_unit_test(test_fft),   cmocka_unit_test(test_no_result),
        cmocka_unit_test(test_no_result_of_one),
    };
    if (test_no_gpu())
        return TEST_SKIPPED;
    seed = test_seed_new();
    tn_seed(seed);
    tn_set_compile(TN_COMPILE_NEVER); /* of the CPU's side: each is a graph of its own */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : lacks_a_library(tn__device_get(tn_cuda(0))) ? 77 : 0;
}
