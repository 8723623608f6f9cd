/* SPDX-License-Identifier: MIT */
/* Networks as deep as they come are one plan; only a recording that never ends is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <tanso.h>

#include "array/node.h"
#include "support/device.h"

/* Where a recording is cut is the same everywhere; a GPU's compiler takes minutes for ones as long. */
static void needs_operations(void)
{
    if (test_device().kind == TN_DEVICE_CUDA)
        skip();
}

enum { WIDTH = 4, BLOCKS = 200 };

static uint64_t evaluations(void) { return tn_engine_stats().evaluations; }

static tn_array *normalized(const tn_array *x)
{
    tn_array *mean = tn_mean(x, .axis = TN_AXES(-1), .keepdims = true), *d = tn_subtract(x, mean);
    return tn_divide(d, tn_sqrt(tn_add(tn_mean(tn_square(d), .axis = TN_AXES(-1), .keepdims = true), 1e-5)));
}

/* gelu by tanh, of primitives. */
static tn_array *bent(const tn_array *x)
{
    tn_array *inner = tn_multiply(tn_add(x, tn_multiply(tn_power(x, 3), 0.044715)), 0.79788456);
    return tn_multiply(tn_multiply(x, 0.5), tn_add(tn_tanh(inner), 1));
}

/* A block of a transformer by plain operations, with its casts. */
static tn_array *block(const tn_array *x, const tn_array *w)
{
    tn_array *half = tn_cast(tn_cast(normalized(x), TN_FLOAT16), TN_FLOAT32);
    tn_array *q = tn_matmul(half, w), *weights = tn_softmax(tn_matmul(q, tn_transpose(half, TN_AXES(1, 0))), 1);
    tn_array *y = tn_add(x, tn_multiply(tn_matmul(weights, half), 0.1));
    return tn_add(y, tn_multiply(bent(tn_matmul(normalized(y), w)), 0.1));
}

/* The gradient of one weight that all blocks share, and how many evaluations it takes. */
static uint64_t gradient(float *out)
{
    uint64_t before = evaluations();
    TN_SCOPE
    {
        tn_array *x = tn_reshape(tn_arange(0, 3 * WIDTH, 1, .dtype = TN_FLOAT32), TN_SHAPE(3, WIDTH));
        tn_array *w = tn_requires_grad(tn_add(tn_eye(WIDTH, WIDTH, .dtype = TN_FLOAT32), 0.1));
        for (int i = 0; i < BLOCKS; i++)
            x = block(x, w);
        assert_int_equal(tn_backward(tn_mean(tn_sin(x))), TN_OK);
        tn_array *sum = tn_sum(tn_grad(w), .axis = TN_AXES(0));
        assert_int_equal(tn_to_host(sum, out, WIDTH * sizeof *out), TN_OK);
    }
    return evaluations() - before;
}

static void test_networks_are_whole(void **state)
{
    (void)state;
    needs_operations();
    float whole[WIDTH], cut[WIDTH];
    tn_set_compile(TN_COMPILE_NEVER);
    assert_int_equal(gradient(whole), 1);
    tn__set_max_depth(2000);
    assert_true(gradient(cut) > 4);
    tn__set_max_depth(TN__MAX_DEPTH);
    tn_set_compile(TN_COMPILE_AUTO);
    for (int i = 0; i < WIDTH; i++)
        assert_true(fabsf(whole[i] - cut[i]) <= 1e-4f * (1 + fabsf(whole[i])));
}

/* A step keeps what each layer gave until backward is there, and of gradients the last few. */
static void test_memory_of_a_step(void **state)
{
    (void)state;
    needs_operations();
    enum { LAYERS = 16, BATCH = 128, UNITS = 64, ARRAY = BATCH * UNITS * 4 };
    int64_t units[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        units[i] = i < LAYERS - 1 ? UNITS : 10;
    tn_layer *net = tn_mlp(LAYERS, units, "relu");
    tn_optimizer *optimizer = tn_adam(net, .lr = 0.001);
    tn_set_compile(TN_COMPILE_NEVER);
    size_t most = 0;
    for (int i = 0; i < 3; i++) TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(BATCH, UNITS)), *t = tn_zeros(TN_SHAPE(BATCH), .dtype = TN_INT64);
        assert_int_equal(tn_eval_all(2, (const tn_array *[]){x, t}), TN_OK);
        size_t used = tn_memory_stats(test_device()).used;
        tn_memory_reset_peak(test_device());
        assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t)), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        most = tn_memory_stats(test_device()).peak - used;
    }
    tn_set_compile(TN_COMPILE_AUTO);
    assert_true(most < (LAYERS + 8) * ARRAY);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

/* Traversals are loops: a reshape at the end of a long recording, and one of its middle, need no stack. */
static void test_long_chains(void **state)
{
    (void)state;
    needs_operations();
    tn_set_compile(TN_COMPILE_NEVER);
    TN_SCOPE
    {
        tn_array *x = tn_ones(TN_SHAPE(2, 3));
        for (int i = 0; i < 50000; i++)
            x = tn_negative(x);
        x = tn_reshape(x, TN_SHAPE(3, 2));
        uint64_t before = evaluations();
        assert_true(tn_item(tn_sum(tn_square(tn_add(x, 1)))) == 24);
        assert_int_equal(evaluations() - before, 1);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_networks_are_whole),
                                       cmocka_unit_test(test_memory_of_a_step), cmocka_unit_test(test_long_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
