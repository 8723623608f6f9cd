/* SPDX-License-Identifier: MIT */
/* Fourier transforms against their definition, for every length up to 130 and some longer ones: products of all the
 * factors there are passes for, primes, and those that go by a chirp. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

static uint64_t seed;

typedef struct number {
    double re, im;
} number;

static void definition(const number *x, number *y, int64_t n, int sign)
{
    for (int64_t k = 0; k < n; k++) {
        long double re = 0, im = 0;
        for (int64_t j = 0; j < n; j++) {
            double angle = sign * 2 * 3.14159265358979323846 * (double)(k * j % n) / (double)n, c = cos(angle),
                   s = sin(angle);
            re += x[j].re * c - x[j].im * s;
            im += x[j].re * s + x[j].im * c;
        }
        y[k] = (number){(double)re, (double)im};
    }
}

static double distance(const number *a, const number *b, int64_t n)
{
    double worst = 0;
    for (int64_t k = 0; k < n; k++)
        worst = fmax(worst, hypot(a[k].re - b[k].re, a[k].im - b[k].im));
    return worst;
}

static void check_length(int64_t n)
{
    TN_SCOPE {
        tn_array *x = tn_complex(tn_random_normal(TN_SHAPE(n), .dtype = TN_FLOAT64),
                                 tn_random_normal(TN_SHAPE(n), .dtype = TN_FLOAT64));
        assert_int_equal(tn_eval(x), TN_OK);
        number *expected = malloc((size_t)n * sizeof *expected);
        assert_non_null(expected);
        for (int way = 0; way < 2; way++) {
            definition(test_data(x), expected, n, way ? 1 : -1);
            for (int single = 0; single < 2; single++) {
                tn_array *from = tn_cast(x, single ? TN_COMPLEX64 : TN_COMPLEX128);
                tn_array *y = way ? tn_fft_ifft(from, .norm = TN_FFT_FORWARD) : tn_fft_fft(from);
                assert_int_equal(tn_dtype_of(y), single ? TN_COMPLEX64 : TN_COMPLEX128);
                double off = distance(test_data(tn_cast(y, TN_COMPLEX128)), expected, n);
                if (!(off <= (single ? 4e-6 : 4e-15) * sqrt((double)n) * (3 + log2((double)n))))
                    fail_msg("length %lld, %s, %s: off by %g; seed %llu", (long long)n, way ? "inverse" : "forward",
                             single ? "single" : "double", off, (unsigned long long)seed);
            }
        }
        free(expected);
    }
}

/* Real numbers: the first half of the definition's; and back to as many as said, whatever the imaginary parts of those
 * numbers that are their own conjugates. */
static void check_real_length(int64_t n)
{
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(n), .dtype = TN_FLOAT64), *z = tn_cast(x, TN_COMPLEX128);
        assert_int_equal(tn_eval(z), TN_OK);
        number *expected = malloc((size_t)n * sizeof *expected);
        assert_non_null(expected);
        definition(test_data(z), expected, n, -1);
        for (int single = 0; single < 2; single++) {
            double bound = (single ? 4e-6 : 4e-15) * sqrt((double)n) * (3 + log2((double)n));
            tn_array *y = tn_fft_rfft(tn_cast(x, single ? TN_FLOAT32 : TN_FLOAT64));
            assert_int_equal(tn_dtype_of(y), single ? TN_COMPLEX64 : TN_COMPLEX128);
            assert_int_equal(tn_size(y), n / 2 + 1);
            const number *got = test_data(tn_cast(y, TN_COMPLEX128));
            double off = distance(got, expected, n / 2 + 1);
            if (test_device().kind == TN_DEVICE_CPU) /* a GPU's library rounds, for some lengths */
                assert_true(got[0].im == 0 && (n % 2 || got[n / 2].im == 0));
            tn_array *k = tn_arange(0, (double)(n / 2 + 1), 1, .dtype = TN_FLOAT64);
            tn_array *ends = tn_cast(tn_logical_or(tn_equal(k, 0), tn_equal(tn_multiply(k, 2), (double)n)), TN_FLOAT64);
            tn_array *odd =
                tn_cast(tn_add(tn_cast(y, TN_COMPLEX128), tn_complex(tn_zeros_like(ends), ends)), tn_dtype_of(y));
            tn_array *back = tn_fft_irfft(odd, .n = n);
            assert_int_equal(tn_dtype_of(back), single ? TN_FLOAT32 : TN_FLOAT64);
            double apart = tn_item(tn_max(tn_abs(tn_subtract(tn_cast(back, TN_FLOAT64), x))));
            if (!(off <= bound && apart <= bound))
                fail_msg("length %lld of reals, %s: off by %g, back %g; seed %llu", (long long)n,
                         single ? "single" : "double", off, apart, (unsigned long long)seed);
        }
        free(expected);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 130; n++) {
        check_length(n);
        if (test_device().kind == TN_DEVICE_CPU || n < 9 || n % 13 == 0) /* a plan of a GPU's takes its time */
            check_real_length(n);
    }
    static const int64_t longer[] = {143, 210, 211, 243, 256, 343, 500, 509, 625, 720, 1009, 1021, 1024};
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
        check_length(longer[i]), check_real_length(longer[i]);
    check_real_length(2 * 509);
}

/* There and back, of all kinds, along any axis of a strided array. */
static void test_back(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++)
        TN_SCOPE {
            tn_array *x = tn_transpose(tn_random_normal(TN_SHAPE(5, 6, 9), .dtype = TN_FLOAT64), TN_AXES(2, 0, 1));
            int64_t n = tn_dim(x, axis);
            tn_array *whole[] = {tn_real(tn_fft_ifft(tn_fft_fft(x, .axis = TN_AXES(axis)), .axis = TN_AXES(axis))),
                                 tn_fft_irfft(tn_fft_rfft(x, .axis = TN_AXES(axis), .norm = TN_FFT_ORTHO),
                                              .axis = TN_AXES(axis), .n = n, .norm = TN_FFT_ORTHO),
                                 tn_fft_hfft(tn_fft_ihfft(x, .axis = TN_AXES(axis)), .axis = TN_AXES(axis), .n = n),
                                 tn_real(tn_fft_ifftn(tn_fft_fftn(x))),
                                 tn_fft_irfftn(tn_fft_rfftn(x), .s = tn_shape_of(x)),
                                 tn_fft_ifftshift(tn_fft_fftshift(x, TN_AXES(axis)), TN_AXES(axis))};
            for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
                double off = tn_item(tn_max(tn_abs(tn_subtract(whole[i], x))));
                if (!(off < 1e-13))
                    fail_msg("kind %zu, axis %d: off by %g, %s; seed %llu", i, axis, off, tn_error(),
                             (unsigned long long)seed);
            }
        }
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *z = tn_cast(tn_ones(TN_SHAPE(4)), TN_COMPLEX64);
        assert_int_equal(tn_status_of(tn_fft_rfft(z)), TN_ERR_DTYPE);
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_fft_fft(tn_ones(TN_SHAPE(0)))), TN_ERR_VALUE);
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_fft_fft(tn_scalar(1))), TN_ERR_SHAPE);
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_fft_fft(z, .axis = TN_AXES(1))), TN_ERR_INDEX);
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_fft_fft(z, .axis = TN_AXES(0, 0))), TN_ERR_VALUE);
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_fft_fftn(z, .s = TN_SHAPE(2, 2))), TN_ERR_VALUE);
        tn_clear_error();
    }
}

int main(void)
{
    seed = test_seed_new();
    tn_seed(seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_back),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
