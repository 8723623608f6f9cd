/* SPDX-License-Identifier: MIT */
/*
 * What the library of products is told of an epilogue, and when a kernel of the backend's own does it instead: on a
 * fake driver with a fake library, which note what is done and where the bias lies, in graphs, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "array/node.h"
#include "cuda/fake_blas.h"
#include "support/device.h"

enum { N = 520, MOST = 16 }; /* N^3 is more than products of our own have */

/* ---- kernels ---- */

static CUfunction behind[MOST];
static int behind_count;

static void found(CUfunction function, const char *name)
{
    if (strcmp(name, "epilogue") == 0)
        behind[behind_count++ % MOST] = function;
}

static const void *closed(CUfunction function, void **params)
{
    for (int i = 0; i < behind_count && i < MOST; i++)
        if (behind[i] == function)
            return fake_product_kept((fake_product){.behind = true, .bias = *(const CUdeviceptr *)params[1]});
    return NULL;
}

/* ---- the tests ---- */

/* What it holds does not matter, but that it is no constant. */
static const tn_array *matrix(int64_t rows)
{
    static float values[N * N];
    tn_array *x = tn_from_host(values, TN_SHAPE(rows, N), TN_FLOAT32);
    assert_false(tn_is_error(x));
    return x;
}

/* Where a vector's element i lies. */
static CUdeviceptr place_of(const tn_array *b, int i)
{
    return (CUdeviceptr)tn__array_node(b)->storage->memory + sizeof(float) * (size_t)i;
}

static void drop_plans(void)
{
    tn_set_fusion(false);
    tn_set_fusion(true);
}

/* x x + b[first:first + N] is so many things to do, the last of which are left to look at. */
static const fake_product *run(const tn_array *x, const tn_array *b, int first, int things)
{
    int before = fake_blas.done;
    TN_SCOPE {
        tn_array *bias = tn_slice_axis(tn_reshape(b, TN_SHAPE(-1)), 0, first, first + N, 1);
        if (tn_eval(tn_add(tn_matmul(x, x), bias)) != TN_OK)
            fail_msg("%s", tn_error());
        assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK); /* what is held back, too */
    }
    assert_int_equal(fake_blas.done - before, things);
    return &fake_blas.product[before % FAKE_PRODUCTS];
}

static void check_told(const tn_array *x, const tn_array *b, int first)
{
    const fake_product *product = run(x, b, first, 1);
    assert_false(product->behind);
    assert_int_equal(product->epilogue, CUBLASLT_EPILOGUE_BIAS);
    assert_int_equal(product->bias, place_of(b, first));
}

static void check_behind(const tn_array *x, const tn_array *b, int first)
{
    const fake_product *product = run(x, b, first, 2), *last = fake_blas_last();
    assert_false(product->behind);
    assert_int_equal(product->epilogue, CUBLASLT_EPILOGUE_DEFAULT);
    assert_true(last->behind);
    assert_int_equal(last->bias, place_of(b, first));
}

/* Each run with the bias that it was given, by turns, as graphs too; a bias between multiples of 16 bytes goes to a
 * kernel. */
static void test_told(void **state)
{
    (void)state;
    TN_SCOPE {
        const tn_array *x = matrix(N), *b[] = {matrix(2), matrix(2), matrix(2)};
        int before = fake_blas.epilogues;
        for (int round = 0; round < 4; round++)
            for (int i = 0; i < 3; i++) {
                check_told(x, b[i], 4 * i);
                check_told(x, b[i], 4 * i);
                check_behind(x, b[i], 1 + i);
            }
        assert_true(fake_blas.epilogues > before);
        assert_true(fake.count.graph_launches > 0);
    }
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        fake_blas.refuses = true;
        drop_plans();
        const tn_array *x = matrix(N), *b = matrix(2);
        int before = fake_blas.epilogues;
        for (int i = 0; i < 4; i++)
            check_behind(x, b, 4);
        assert_int_equal(fake_blas.epilogues, before + 1);
        fake_blas.refuses = false;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_told), cmocka_unit_test(test_refused)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    tn__device *device = fake_blas_use();
    if (device == NULL)
        return 1;
    device->capabilities.epilogues = true;
    fake.finds = found;
    fake.closes = closed;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_plans();
    return failed ? failed : fake_blas.operations != 0;
}
