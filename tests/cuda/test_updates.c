/* SPDX-License-Identifier: MIT */
/*
 * What may fail and what overwrites are different steps on a device whose runs fail late: a training step with labels
 * that nobody has looked at overwrites all parameters and states in place. On a fake driver; the programs are caught as
 * they are loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake.h"
#include "support/device.h"

typedef struct facts {
    int programs, failing, updated, fresh; /* programs loaded; of the last: steps that may fail, buffers by kind */
} facts;
static facts seen;
static tn_status (*load)(tn__device *device, const tn__program *program, tn__executable **executable);

static tn_status look_and_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    seen = (facts){.programs = seen.programs + 1};
    for (int b = 0; b < program->buffer_count; b++) {
        seen.updated += program->buffer[b].kind == TN__BUFFER_DONATED;
        seen.fresh += program->buffer[b].kind == TN__BUFFER_OUTPUT;
    }
    bool updated = false; /* by a step so far: what may fail comes first */
    for (int i = 0; i < program->step_count; i++) {
        const tn__step *s = &program->step[i];
        seen.failing += tn__step_may_fail(s);
        assert_false(tn__step_may_fail(s) && updated);
        for (int k = 0; k < s->output_count; k++)
            updated = updated || program->buffer[s->operand[k].buffer].kind == TN__BUFFER_DONATED;
        for (int k = 0; k < s->output_count && tn__step_may_fail(s); k++)
            assert_int_not_equal(program->buffer[s->operand[k].buffer].kind, TN__BUFFER_DONATED);
    }
    return load(device, program, executable);
}

static int setup(void **state)
{
    (void)state;
    static tn__device_ops ops;
    assert_non_null(fake_open());
    fake.words = fake.scalars = 0;
    tn__device *device = tn__device_get(tn_cuda(0));
    assert_non_null(device);
    ops = *device->ops;
    load = ops.load;
    ops.load = look_and_load;
    device->ops = &ops;
    return tn_set_device(tn_cuda(0)) == TN_OK ? 0 : -1;
}

static void train(tn_optimizer *optimizer, tn_layer *net, int states)
{
    tn_meter *mean = tn_meter_new(tn_cuda(0));
    for (int i = 0; i < 3; i++)
        TN_SCOPE {
            int64_t t[5] = {0, 1, 2, 0, 1};
            tn_array *x = tn_random_uniform(TN_SHAPE(5, 7));
            assert_int_equal(tn_eval(x), TN_OK);
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), tn_from_int64s(t, 5));
            assert_int_equal(tn_backward(loss), TN_OK);
            tn_meter_add(mean, loss, 5);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
    assert_true(seen.failing > 0);
    assert_int_equal(seen.updated, 4 * (1 + states) + 1); /* parameters, states, the mean's total */
    assert_int_equal(seen.fresh, 2);                      /* the loss, and the scores, which have a handle */
    tn_meter_free(mean);
    tn_optimizer_free(optimizer);
}

static void test_training(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(6, .in = 7), tn_relu_layer(), tn_linear(3, .in = 6));
    train(tn_sgd(net, .lr = 0.1), net, 0);
    train(tn_momentum_sgd(net, .lr = 0.1), net, 1);
    train(tn_adam(net), net, 2);
    tn_layer_free(net);
}

/* An update by elements that are looked up. */
static void test_lookup(void **state)
{
    (void)state;
    TN_SCOPE {
        int64_t index[4] = {1, 0, 2, 2};
        tn_array *x = tn_random_uniform(TN_SHAPE(4)), *y = tn_random_uniform(TN_SHAPE(3));
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_eval(y), TN_OK);
        assert_int_equal(tn_subtract_assign(x, tn_multiply(tn_take(y, tn_from_int64s(index, 4), 0), 0.5)), TN_OK);
        assert_int_equal(tn_eval(x), TN_OK);
    }
    assert_int_equal(seen.failing, 1);
    assert_int_equal(seen.updated, 1);
    assert_int_equal(seen.fresh, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training), cmocka_unit_test(test_lookup)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, setup, NULL);
}
