/* SPDX-License-Identifier: MIT */
/*
 * Of what a library of products proposes, the fastest is taken, and taken again by whoever comes later, so that sums
 * have the same order. On a fake driver with a fake library and a clock of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake_blas.h"
#include "support/device.h"
#include "support/folder.h"

enum { N = 512 };

static void propose(double first, double second, double third)
{
    const double milliseconds[] = {first, second, third};
    fake_blas.proposals = 3;
    for (int i = 0; i < 3; i++) {
        fake_blas.milliseconds[i] = milliseconds[i];
        fake_blas.workspace[i] = (size_t)i << 20;
    }
}

/* The proposal that a product of k rows is computed by; how many products that took. A program of its own each time:
 * `different` is added. */
static int taken(int k, int different, int *products)
{
    int before = fake_blas.asked;
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(k, N), .dtype = TN_FLOAT16);
        tn_array *y = tn_zeros(TN_SHAPE(N, N), .dtype = TN_FLOAT16);
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_eval(y), TN_OK);
        tn_array *z = tn_matmul(x, y);
        for (int i = 0; i < different; i++)
            z = tn_sin(z);
        assert_int_equal(tn_eval(z), TN_OK);
    }
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    *products = fake_blas.asked - before;
    const fake_product *last = fake_blas_last();
    assert_int_equal(last->bytes, fake_blas.workspace[last->proposal]);
    assert_true((last->workspace != NULL) == (last->bytes > 0));
    return last->proposal;
}

static void test_fastest(void **state)
{
    (void)state;
    int products;
    propose(3, 2, 1);
    assert_int_equal(taken(N, 0, &products), 2);
    assert_true(products > 3);
    propose(1, 2, 3); /* what is remembered is taken, however fast */
    assert_int_equal(taken(N, 1, &products), 2);
    assert_int_equal(products, 1);
    assert_int_equal(taken(N + 8, 1, &products), 0); /* another product is not the same */
    assert_true(products > 3);
}

static void test_hardly_faster(void **state)
{
    (void)state;
    int products;
    propose(1, 0.995, 2);
    assert_int_equal(taken(N + 16, 0, &products), 0);
}

/* A chip that has been idle is slow at first, when the library's first proposal is timed. */
static void test_slow_at_first(void **state)
{
    (void)state;
    int products;
    propose(1, 1.1, 1.2);
    fake_blas.slow = 3;
    assert_int_equal(taken(N + 40, 0, &products), 0);
    propose(1, 0.9, 1.2);
    fake_blas.slow = 3;
    assert_int_equal(taken(N + 48, 0, &products), 1);
    fake_blas.slow = 0;
}

/* Programs are graphs, in which the GPU does not wait for the calls that ask for each product: so are trials. */
static void test_long_calls(void **state)
{
    (void)state;
    int products;
    propose(0.02, 0.01, 1);
    fake_blas.call[1] = 0.05;
    assert_int_equal(taken(N + 56, 0, &products), 1);
    fake.no_capture = true;
    assert_int_equal(taken(N + 64, 0, &products), 0);
    fake.no_capture = false;
    fake_blas.call[1] = 0;
}

static void test_impossible(void **state)
{
    (void)state;
    int products;
    propose(2, -1, 1);
    assert_int_equal(taken(N + 24, 0, &products), 2);
}

static void test_small(void **state)
{
    (void)state;
    int products;
    propose(3, 2, 1);
    assert_int_equal(taken(8, 0, &products), 0);
    assert_int_equal(products, 1);
}

/* Without a folder to remember in, the next process could take another one. */
static void test_nowhere(void **state)
{
    (void)state;
    int products;
    const char *cache = getenv("TANSO_CACHE_DIR");
    char *before = cache ? strdup(cache) : NULL;
    propose(3, 2, 1);
    setenv("TANSO_CACHE_DIR", "/proc/nowhere", 1);
    assert_int_equal(taken(N + 32, 0, &products), 0);
    assert_int_equal(products, 1);
    before ? setenv("TANSO_CACHE_DIR", before, 1) : unsetenv("TANSO_CACHE_DIR");
    free(before);
    tn_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fastest), cmocka_unit_test(test_hardly_faster),
                                       cmocka_unit_test(test_slow_at_first), cmocka_unit_test(test_long_calls),
                                       cmocka_unit_test(test_impossible), cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_nowhere)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    char folder[256];
    test_folder_make(folder);
    setenv("TANSO_CACHE_DIR", folder, 1);
    if (fake_blas_use() == NULL)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove(folder);
    return failed;
}
