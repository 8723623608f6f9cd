/* SPDX-License-Identifier: MIT */
/* What cuFFT and cuSOLVER compute agrees with the CPU, and matrices that have no result are told of. Skipped without a GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <tanso.h>

static uint64_t seed;

static tn_array *draw(tn_shape shape) { return tn_random_normal(shape, .dtype = TN_FLOAT64, .device = tn_cpu()); }
static tn_array *there(const tn_array *x) { return tn_to(x, tn_cuda(0)); }

/* Largest difference over largest value. */
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
    static const int64_t places[] = {1, 3, 2}, extent[] = {128, 150, 257}, sides[] = {1, 7, 300};
    for (int i = 0; i < 3; i++)
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

static void test_cholesky(void **state)
{
    (void)state;
    TN_SCOPE {
        int64_t n = 200;
        tn_array *x = draw(TN_SHAPE(2, n, n)), *noise = tn_matmul(x, tn_swapaxes(x, 1, 2));
        tn_array *a = tn_add(noise, tn_multiply(tn_eye(n, n, .dtype = TN_FLOAT64, .device = tn_cpu()), n));
        agree(tn_linalg_cholesky(there(a)), tn_linalg_cholesky(a));
        agree(tn_linalg_cholesky(there(a), .upper = true), tn_linalg_cholesky(a, .upper = true));
    }
}

/* Told of by whoever reads; the device goes on. */
static void test_no_result(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = draw(TN_SHAPE(130, 130)), *ones = tn_ones(TN_SHAPE(130, 130), .dtype = TN_FLOAT64, .device = tn_cuda(0));
        assert_int_equal(tn_eval(tn_to(tn_linalg_inv(ones), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "singular matrix"));
        tn_clear_error();
        assert_int_equal(tn_eval(tn_to(tn_linalg_cholesky(tn_negative(ones)), tn_cpu())), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "not positive definite"));
        tn_clear_error();
        agree(tn_linalg_inv(there(a)), tn_linalg_inv(a));
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
                tn_array *gpu = tn_fft_fft(there(z), .axis = &axis), *cpu = tn_fft_fft(z, .axis = &axis);
                agree(tn_real(gpu), tn_real(cpu));
                agree(tn_imag(gpu), tn_imag(cpu));
                agree(tn_real(tn_fft_ifft(gpu, .axis = &axis)), x);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solve), cmocka_unit_test(test_cholesky), cmocka_unit_test(test_no_result),
                                       cmocka_unit_test(test_fft)};
    const char *why = "", *given = getenv("TANSO_TEST_SEED");
    if (!tn_device_available(tn_cuda(0), &why)) {
        printf("no GPU: %s\n", why);
        return 77;
    }
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("TANSO_TEST_SEED=%llu\n", (unsigned long long)seed);
    tn_seed(seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
