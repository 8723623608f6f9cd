/* SPDX-License-Identifier: MIT */
/* Products by a library on several streams: programs have workspaces of their own, in graphs, too, and keep them. On a
 * fake driver with a fake library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake_blas.h"
#include "support/device.h"

enum { N = 256, STREAMS = 3, ROUNDS = 4 };

/* The workspace of a product on a stream. */
static const void *of(tn_stream *stream, const tn_array *x, const tn_array *y)
{
    int before = fake_blas.done;
    TN_SCOPE
        TN_ON_STREAM (stream)
            assert_int_equal(tn_eval(tn_matmul(x, y)), TN_OK);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK); /* what is held back, too */
    assert_int_equal(fake_blas.done, before + 1);
    assert_int_equal(fake_blas_last()->bytes, fake_blas.workspace[0]);
    return fake_blas_last()->workspace;
}

/* Two programs by turns on several streams, at first one by one, then as graphs. */
static void test_workspaces(void **state)
{
    (void)state;
    fake_blas.workspace[0] = (size_t)3 << 20;
    tn_stream *stream[STREAMS] = {NULL}; /* the first one stays the device's own */
    for (int s = 1; s < STREAMS; s++)
        assert_non_null(stream[s] = tn_stream_new(tn_cuda(0)));
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(N, N), .dtype = TN_FLOAT16);
        tn_array *half = tn_zeros(TN_SHAPE(N / 2, N), .dtype = TN_FLOAT16);
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_eval(half), TN_OK);
        tn_memory_info before = tn_memory_stats(tn_cuda(0));
        const void *one = of(NULL, x, x), *other = of(NULL, half, x);
        assert_true(one && other && one != other);
        assert_true(tn_memory_stats(tn_cuda(0)).used >= before.used + 2 * fake_blas.workspace[0]);
        for (int round = 0; round < ROUNDS; round++)
            for (int s = 0; s < STREAMS; s++) {
                assert_ptr_equal(of(stream[s], x, x), one);
                assert_ptr_equal(of(stream[s], half, x), other);
            }
        assert_true(fake.count.graph_launches > 0);
    }
    for (int s = 1; s < STREAMS; s++)
        tn_stream_free(stream[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workspaces)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    if (fake_blas_use() == NULL)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
