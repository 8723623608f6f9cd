/* SPDX-License-Identifier: MIT */
/*
 * Indices out of range on a GPU, which nobody waits for: the error comes with a later call, never a value of the failed
 * run, and what was overwritten in place is as the failing run found it. Skipped where there is no GPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

enum { ROWS = 6, CLASSES = 4, FEATURES = 5 };

static tn_array *labels(int64_t wrong)
{
    int64_t t[ROWS];
    for (int i = 0; i < ROWS; i++)
        t[i] = i % CLASSES;
    t[3] = wrong;
    return tn_from_int64s(t, ROWS);
}

static void assert_index_error(void)
{
    assert_int_equal(tn_error_code(), TN_ERR_INDEX);
    assert_non_null(strstr(tn_error(), "out of range for an axis of extent 4: valid are -4 to 3"));
    tn_clear_error();
}

static void test_values(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(ROWS, CLASSES)), *good = tn_sum(tn_exp(x));
        double before = tn_item(good);
        tn_array *bad = tn_take(x, labels(9), 1), *after = tn_multiply(x, 2);
        (void)!tn_eval(bad);
        (void)!tn_eval(after);
        assert_true(isnan(tn_item(tn_sum(bad)))); /* an error, not a number that was computed from nothing */
        assert_index_error();
        assert_true(isnan(tn_item(tn_sum(bad)))); /* and so it stays */
        assert_index_error();
        assert_true(tn_item(tn_sum(tn_exp(x))) == before); /* what was there before is as it was */
        assert_true(tn_item(tn_sum(tn_take(x, labels(2), 1))) < 1e30);
    }
    assert_string_equal(tn_error(), "");
}

typedef struct model {
    tn_layer *net;
    tn_optimizer *optimizer;
} model;

static model make(tn_device device)
{
    model m;
    tn_seed(3);
    TN_ON_DEVICE(tn_cpu()) m.net = tn_sequential(tn_linear(7, .in = FEATURES), tn_tanh_layer(),
                                                 tn_linear(CLASSES, .in = 7));
    tn_layer_to(m.net, device);
    m.optimizer = tn_momentum_sgd(m.net, .lr = 0.1);
    return m;
}

static tn_status step(model *m, tn_device device, int64_t label, bool look)
{
    tn_status status = TN_OK;
    TN_ON_DEVICE(device) TN_SCOPE {
        float x[ROWS * FEATURES];
        for (int i = 0; i < ROWS * FEATURES; i++)
            x[i] = (float)((i * 7 + 3) % 11) - 5;
        tn_array *loss = tn_softmax_cross_entropy(
            tn_forward(m->net, tn_from_host(x, TN_SHAPE(ROWS, FEATURES), TN_FLOAT32)), labels(label));
        status = tn_backward(loss);
        if (status == TN_OK)
            status = tn_step(m->optimizer);
        if (status == TN_OK && look)
            status = isnan(tn_item(loss)) ? tn_error_code() : TN_OK;
    }
    return status;
}

/* Steps that succeed, one with a label that is no class and others behind it before anybody looks: parameters and
 * momenta are those of the steps before the failing one, as on the CPU, where it fails at once. */
static void test_training(void **state)
{
    (void)state;
    model here = make(tn_cpu()), there = make(tn_cuda(0));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++) {
            assert_int_equal(step(&here, tn_cpu(), i % CLASSES, false), TN_OK);
            assert_int_equal(step(&there, tn_cuda(0), i % CLASSES, false), TN_OK);
        }
        assert_int_equal(step(&here, tn_cpu(), 4 + round, false), TN_ERR_INDEX);
        tn_clear_error();
        (void)!step(&there, tn_cuda(0), 4 + round, false);
        for (int i = 0; i < 3 && tn_ok(); i++)
            (void)!step(&there, tn_cuda(0), i, false);
        if (tn_ok())
            assert_int_equal(step(&there, tn_cuda(0), 0, true), TN_ERR_INDEX);
        assert_index_error();
        TN_SCOPE {
            for (int i = 0; i < tn_param_count(here.net); i++) {
                float a[64], b[64];
                tn_array *p = tn_param(here.net, i), *q = tn_param(there.net, i);
                assert_int_equal(tn_to_host(p, a, sizeof a), TN_OK);
                assert_int_equal(tn_to_host(q, b, sizeof b), TN_OK);
                for (int64_t k = 0; k < tn_size(p); k++)
                    assert_true(fabsf(a[k] - b[k]) <= 1e-5f * (1 + fabsf(a[k])));
            }
        }
    }
    tn_optimizer_free(here.optimizer);
    tn_optimizer_free(there.optimizer);
    tn_layer_free(here.net);
    tn_layer_free(there.net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_training)};
    if (test_no_gpu())
        return TEST_SKIPPED;
    if (tn_set_device(tn_cuda(0)) != TN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
