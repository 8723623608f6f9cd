/* SPDX-License-Identifier: MIT */
/*
 * Programs of little work are one kernel, whose phases are the steps that they would have been: which programs, what is launched,
 * that the text compiles; and, on a GPU, that results are those of the steps. Without a GPU on a fake driver.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "compile/compile.h"
#include "core/memory.h"
#include "cuda/fake.h"
#include "engine/plans.h"
#include "support/device.h"
#include "support/starve.h"

static char *chain; /* the newest text of a chain */
static tn_status (*load)(tn__device *device, const tn__program *program, tn__executable **executable);

static tn_status look_and_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    if (strstr(program->source, "#define TN_CHAINED")) {
        tn__free(chain);
        chain = tn__strdup(program->source);
    }
    return load(device, program, executable);
}

typedef struct sizes {
    int64_t batch, in, hidden, out;
} sizes;

/* Steps of a network on batches in order; the parameters' sum and the mean loss. */
static void train(sizes s, tn_optimizer *(*make)(tn_layer *net), int steps, double result[2])
{
    tn_device device = tn_cuda(0);
    tn_seed(7);
    tn_layer *net = tn_sequential(tn_linear(s.hidden), tn_tanh_layer(), tn_linear(s.out));
    assert_int_equal(tn_layer_to(net, device), TN_OK);
    tn_dataset *data = NULL;
    TN_SCOPE data = tn_dataset_arrays(tn_random_normal(TN_SHAPE(s.batch * 2, s.in), .device = tn_cpu()),
                                      tn_random_integers(0, s.out, TN_SHAPE(s.batch * 2), .device = tn_cpu()));
    tn_loader *batches = tn_loader_new(data, .batch = s.batch, .shuffle = true, .device = device);
    tn_meter *mean = tn_meter_new(device);
    tn_optimizer *optimizer = make(net);
    for (int i = 0; i < steps; i++) {
        tn_batch b;
        while (!tn_loader_next(batches, &b))
            ;
        TN_SCOPE {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
            assert_int_equal(tn_backward(loss), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            tn_meter_add(mean, loss, (double)b.size);
        }
    }
    result[0] = tn_meter_take(mean);
    result[1] = 0;
    TN_SCOPE for (int p = 0; p < 4; p++) {
        tn_array *x = tn_param(net, p);
        result[1] += (p + 1) * tn_item(tn_sum(tn_multiply(x, x)));
    }
    assert_string_equal(tn_error(), "");
    tn_meter_free(mean);
    tn_optimizer_free(optimizer);
    tn_loader_free(batches);
    tn_layer_free(net);
}

static tn_optimizer *sgd(tn_layer *net) { return tn_sgd(net, .lr = 0.1); }
static tn_optimizer *adam(tn_layer *net) { return tn_adam(net, .lr = 0.01); }

/* ---- on the fake driver ---- */

static void test_little_work(void **state)
{
    (void)state;
    double result[2];
    train((sizes){32, 64, 30, 10}, sgd, 3, result);
    assert_non_null(chain);
    assert_string_equal(fake.kernel, "k0"); /* what read the parameters, last */
    for (int phase = 0; phase < 4; phase++) {
        char call[24];
        snprintf(call, sizeof call, "        phase%d(a.p + ", phase);
        assert_non_null(strstr(chain, call));
    }
    tn__cuda_libraries compiler = {0};
    if (!tn__cuda_open_compiler(&compiler, CUDA_VERSION / 1000))
        return;
    char *image = NULL;
    size_t length = 0;
    tn_status status = tn__cuda_compile(&compiler, 90, chain, &image, &length);
    if (status != TN_OK)
        fail_msg("%s", tn_error());
    assert_non_null(memmem(image, length, "chain", 5));
    assert_null(memmem(image, length, "k0", 3)); /* the phases have no entries of their own */
    tn__free(image);
}

/* The geometry of a step's launch. */
static void test_launch(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(32, 40)), *w = tn_zeros(TN_SHAPE(40, 24)), *v = tn_zeros(TN_SHAPE(24, 8));
        assert_int_equal(tn_eval_all(3, (const tn_array *[]){x, w, v}), TN_OK);
        int launches = fake.count.launches;
        assert_int_equal(tn_eval(tn_softmax(tn_matmul(tn_tanh(tn_matmul(x, w)), v), 1)), TN_OK);
        assert_int_equal(fake.count.launches, launches + 1);
        assert_string_equal(fake.kernel, "chain");
        assert_int_equal(fake.blocks, 8);
        assert_int_equal(fake.threads, 256);
        char *text = tn_plan_describe(tn_softmax(tn_matmul(tn_tanh(tn_matmul(x, w)), v), 1));
        assert_non_null(strstr(text, "plan: 1 steps"));
        assert_non_null(strstr(text, "chain 1"));
        assert_non_null(strstr(text, "chain 2"));
        tn_string_free(text);
    }
}

static int chains_after(tn_array *x)
{
    fake.kernel[0] = 0;
    assert_int_equal(tn_eval(x), TN_OK);
    return strcmp(fake.kernel, "chain") == 0;
}

static void test_other_programs(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(100, 784)), *w = tn_zeros(TN_SHAPE(784, 1000)), *v = tn_zeros(TN_SHAPE(1000, 10));
        tn_array *u = tn_random_uniform(TN_SHAPE(10, 12)), *at = tn_zeros(TN_SHAPE(20), .dtype = TN_INT64);
        assert_int_equal(tn_eval_all(5, (const tn_array *[]){x, w, v, u, at}), TN_OK);
        assert_false(chains_after(tn_matmul(tn_tanh(tn_matmul(x, w)), v))); /* too much work for a few multiprocessors */
        assert_false(chains_after(tn_tanh(tn_add(u, 1.0))));               /* one kernel as it is */
        assert_true(chains_after(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u)));
        /* An index out of range is told of by a kernel of its own, so that what overwrites can see it. */
        assert_false(chains_after(tn_matmul(tn_matmul(tn_take(u, at, 0), tn_transpose(u, (tn_axes){0})), u)));
        tn_set_fusion(false);
        assert_false(chains_after(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u)));
        tn_set_fusion(true);
    }
}

static void test_device_without_clusters(void **state)
{
    (void)state;
    tn__device *device = tn__device_get(tn_cuda(0));
    int cluster = device->capabilities.cluster;
    tn__plans_clear();
    device->capabilities.cluster = 0;
    TN_SCOPE {
        tn_array *u = tn_random_uniform(TN_SHAPE(10, 12));
        assert_int_equal(tn_eval(u), TN_OK);
        assert_false(chains_after(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u)));
        device->capabilities.cluster = cluster;
        device->capabilities.words = 40; /* too few for both */
        tn__plans_clear();
        assert_false(chains_after(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u)));
        device->capabilities.words = 3584;
        tn__plans_clear();
        assert_true(chains_after(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u)));
    }
}

static tn_status compile_and_run(void *user)
{
    tn_array *u = user;
    tn_status status = TN_OK;
    tn__plans_clear();
    TN_SCOPE status = tn_eval(tn_matmul(tn_tanh(tn_matmul(u, tn_transpose(u, (tn_axes){0}))), u));
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *u = tn_random_uniform(TN_SHAPE(10, 12));
        assert_int_equal(tn_eval(u), TN_OK);
        starve("a chain", compile_and_run, u);
    }
}

/* ---- on a GPU ---- */

static void test_results(void **state)
{
    (void)state;
    static const sizes some[] = {{32, 64, 30, 10}, {1, 3, 5, 2}, {29, 64, 30, 10}, {40, 17, 33, 32}, {64, 100, 64, 7}};
    tn__device *device = tn__device_get(tn_cuda(0));
    int cluster = device->capabilities.cluster;
    for (size_t i = 0; i < 2 * sizeof some / sizeof *some; i++) {
        double chained[2], again[2], apart[2];
        tn_optimizer *(*make)(tn_layer *net) = i % 2 ? adam : sgd;
        train(some[i / 2], make, 12, chained);
        train(some[i / 2], make, 12, again);
        device->capabilities.cluster = 0;
        tn__plans_clear();
        train(some[i / 2], make, 12, apart);
        device->capabilities.cluster = cluster;
        tn__plans_clear();
        for (int k = 0; k < 2; k++) {
            assert_true(chained[k] == again[k]);
            assert_true(fabs(chained[k] - apart[k]) <= 2e-4 * (1 + fabs(apart[k])));
        }
    }
}

static int setup(void **state)
{
    (void)state;
    if (!test_elsewhere()) {
        static tn__device_ops ops;
        fake_use();
        fake.words = fake.scalars = 0;
        tn__device *device = tn__device_get(tn_cuda(0));
        ops = *device->ops;
        load = ops.load;
        ops.load = look_and_load;
        device->ops = &ops;
    }
    return tn_set_device(tn_cuda(0)) == TN_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest faked[] = {cmocka_unit_test(test_little_work), cmocka_unit_test(test_launch),
                                       cmocka_unit_test(test_other_programs), cmocka_unit_test(test_device_without_clusters),
                                       cmocka_unit_test(test_memory)};
    const struct CMUnitTest real[] = {cmocka_unit_test(test_results)};
    int failed = test_elsewhere() ? cmocka_run_group_tests(real, setup, NULL) : cmocka_run_group_tests(faked, setup, NULL);
    tn__free(chain);
    return failed;
}
