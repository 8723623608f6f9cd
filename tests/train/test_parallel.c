/* SPDX-License-Identifier: MIT */
/* Minibatches shared between devices: the same training as on one, whatever the sizes, and what is refused. Two GPUs
 * where there are two, else virtual devices and the CPU. */
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
#include "support/random.h"

enum { IN = 5, CLASSES = 3, MOST_WEIGHTS = 128, SAMPLES = 23, EPOCHS = 3 };

static tn_device on[3];
static int devices;
static float x[SAMPLES * IN];
static int32_t labels[SAMPLES];

#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            fail_msg("%s: %s", #call, tn_error()); \
    } while (0)

typedef struct result {
    float weights[MOST_WEIGHTS];
    int count;
    double loss, accuracy; /* of the last minibatch, as reported */
} result;

static tn_layer *network(bool normalized)
{
    tn_seed(9);
    return normalized ? tn_sequential(tn_linear(6), tn_batch_norm(6), tn_relu_layer(), tn_linear(CLASSES))
                      : tn_sequential(tn_linear(6), tn_tanh_layer(), tn_linear(CLASSES));
}

static tn_dataset *samples(void)
{
    return tn_dataset_arrays(tn_from_host(x, TN_SHAPE(SAMPLES, IN), TN_FLOAT32, .device = tn_cpu()),
                             tn_from_host(labels, TN_SHAPE(SAMPLES), TN_INT32, .device = tn_cpu()));
}

typedef struct setting {
    int64_t batch;
    int shares; /* devices; 0: a standard updater */
    int accumulate;
    bool trainer, normalized, mean_statistics, loader_elsewhere;
} setting;

static tn_updater *updater_of(const setting *s, tn_loader *loader, tn_optimizer *optimizer)
{
    tn_device list[4] = {{0}};
    memcpy(list, on, (size_t)s->shares * sizeof *list);
    int accumulate = s->accumulate ? s->accumulate : 1;
    if (!s->shares)
        return tn_standard_updater(loader, optimizer, .device = on[0], .accumulate = accumulate);
    return tn_parallel_updater(loader, optimizer, .devices = list, .accumulate = accumulate,
                               .mean_statistics = s->mean_statistics);
}

static void run(tn_updater *updater, const setting *s, result *r)
{
    if (s->trainer) {
        tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(EPOCHS, TN_EPOCH), .quiet = true);
        MUST(tn_trainer_run(trainer));
        r->loss = tn_observation_number(tn_trainer_observation(trainer), "main/loss");
        r->accuracy = tn_observation_number(tn_trainer_observation(trainer), "main/accuracy");
        tn_trainer_free(trainer);
        return;
    }
    while (tn_updater_progress(updater).samples < EPOCHS * SAMPLES)
        MUST(tn_updater_update(updater));
    tn_updater_free(updater);
}

static tn_status keep_value(const tn_layer_part *part, void *user)
{
    result *r = user;
    int64_t size = part->value ? tn_size(part->value) : 0;
    if (!size || tn_dtype_of(part->value) != TN_FLOAT32)
        return TN_OK;
    assert_true(r->count + size <= MOST_WEIGHTS);
    tn_status status = tn_to_host(part->value, r->weights + r->count, (size_t)size * sizeof(float));
    r->count += (int)size;
    return status;
}

static result train(setting s)
{
    result r = {.count = 0, .loss = NAN, .accuracy = NAN};
    TN_SCOPE {
        tn_layer *net = network(s.normalized);
        tn_optimizer *optimizer = tn_momentum_sgd(net, .lr = 0.1);
        tn_dataset *data = samples();
        tn_loader *loader = tn_loader_new(data, .batch = s.batch, .shuffle = true, .seed = 4,
                                          .device = s.loader_elsewhere ? tn_cpu() : on[0]);
        tn_updater *updater = updater_of(&s, loader, optimizer);
        MUST(tn_updater_status(updater));
        run(updater, &s, &r);
        MUST(tn_layer_walk(net, keep_value, &r));
        tn_loader_free(loader);
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    return r;
}

static void compare(const result *one, const result *several, double tolerance)
{
    assert_true(one->count > 0 && one->count == several->count);
    for (int i = 0; i < one->count; i++)
        if (!(fabsf(one->weights[i] - several->weights[i]) <= tolerance * (1 + fabsf(one->weights[i]))))
            fail_msg("weight %d: %.9g on one device, %.9g on several", i, one->weights[i], several->weights[i]);
}

/* 23 samples by 8: shares of 4 and 4, of 3, 3 and 2, at last of 7: 4 and 3. By 11: an epoch's last is one sample. */
static void test_same_as_one(void **state)
{
    (void)state;
    static const int64_t batches[] = {8, 11, 23};
    for (int b = 0; b < (on[0].kind == TN_DEVICE_CUDA ? 1 : 3); b++) { /* each is compiled there */
        result one = train((setting){.batch = batches[b]});
        for (int shares = 1; shares <= devices; shares++) {
            result several = train((setting){.batch = batches[b], .shares = shares});
            compare(&one, &several, 1e-5);
            result again = train((setting){.batch = batches[b], .shares = shares});
            compare(&several, &again, 0);
        }
    }
}

static void test_loader_elsewhere(void **state)
{
    (void)state;
    result one = train((setting){.batch = 8});
    result there = train((setting){.batch = 8, .shares = 2, .loader_elsewhere = true});
    compare(&one, &there, 1e-5);
}

static void test_accumulated(void **state)
{
    (void)state;
    result one = train((setting){.batch = 8, .accumulate = 2});
    result several = train((setting){.batch = 8, .accumulate = 2, .shares = devices});
    compare(&one, &several, 1e-5);
}

/* What is reported is the mean over all samples. */
static void test_reported(void **state)
{
    (void)state;
    result one = train((setting){.batch = 8, .trainer = true});
    result several = train((setting){.batch = 8, .trainer = true, .shares = devices});
    compare(&one, &several, 1e-5);
    assert_true(one.loss > 0 && fabs(one.loss - several.loss) < 1e-5);
    assert_true(one.accuracy >= 0 && fabs(one.accuracy - several.accuracy) < 1e-6);
}

/* Numbers and arrays with weights of a share's own, and what one share alone reports. */
static tn_array *reporting_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    (void)user;
    double size = (double)batch->size;
    tn_array *x = tn_full(TN_SHAPE(1), size, .dtype = TN_FLOAT32);
    tn_report_number(model, "number", size, .weight = 3 * size);
    tn_report(model, "array", tn_to(x, tn_device_of(batch->x)), .weight = size * size);
    tn_report_number(model, "plain", size);
    if (batch->size == 3)
        tn_report_number(model, "some", 5);
    return tn_usual_loss(model, batch, NULL);
}

static void expect_report(const tn_trainer *trainer, const char *key, double mean, double weight)
{
    const tn_observation *seen = tn_trainer_observation(trainer);
    if (fabs(tn_observation_number(seen, key) - mean) > 1e-6 || fabs(tn_observation_weight(seen, key) - weight) > 1e-9)
        fail_msg("%s: %.9g with weight %g, expected %.9g with %g", key, tn_observation_number(seen, key),
                 tn_observation_weight(seen, key), mean, weight);
}

/* The last minibatch is of 7: shares of 4 and 3. */
static void test_weights(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = network(false);
        tn_optimizer *sgd = tn_sgd(net);
        tn_dataset *data = samples();
        tn_loader *loader = tn_loader_new(data, .batch = 8, .device = on[0]);
        tn_updater *updater = tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(on[0], on[1]),
                                                  .loss = reporting_loss);
        tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(1, TN_EPOCH), .quiet = true);
        MUST(tn_trainer_run(trainer));
        expect_report(trainer, "main/number", 25.0 / 7, 21);
        expect_report(trainer, "main/array", 91.0 / 25, 25);
        expect_report(trainer, "main/plain", 25.0 / 7, 0);
        expect_report(trainer, "main/some", 5, 0);
        tn_trainer_free(trainer);
        tn_loader_free(loader);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

/* As tn_train's: a loss that is added up, and reported, is computed with the gradients of its share, and once, whether
 * it has been sent to the first device before or is now. */
static bool sent_before;

static tn_array *added_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    tn_array *loss = tn_softmax_cross_entropy(tn_forward(model, batch->x), batch->t);
    tn_array *seen = sent_before ? tn_to(loss, on[0]) : loss;
    tn_report(model, "loss", seen);
    tn_meter_add(user, seen, (double)batch->size);
    return loss;
}

static void test_few_plans_when_added(void **state)
{
    (void)state;
    for (int round = 0, shares; (shares = 2 + round / 2) <= devices; round++) TN_SCOPE {
        tn_device list[4] = {{0}};
        sent_before = round % 2;
        memcpy(list, on, (size_t)shares * sizeof *list);
        tn_layer *net = network(false);
        tn_optimizer *optimizer = tn_momentum_sgd(net, .lr = 0.1);
        tn_dataset *data = samples();
        tn_loader *loader = tn_loader_new(data, .batch = 9, .drop_last = true, .device = on[0]);
        tn_meter *meter = tn_meter_new(on[0]);
        tn_updater *updater = tn_parallel_updater(loader, optimizer, .devices = list, .loss = added_loss,
                                                  .user = meter);
        tn_observation *seen = tn_observation_new();
        tn_reporter *reporter = tn_reporter_new();
        tn_reporter_add(reporter, "main", net);
        tn_reporter_push(reporter, seen);
        for (int i = 0; i < 6; i++)
            MUST(tn_updater_update(updater));
        uint64_t before = tn_engine_stats().evaluations;
        for (int i = 0; i < 4; i++)
            MUST(tn_updater_update(updater));
        assert_int_equal(tn_engine_stats().evaluations - before, 4 * (uint64_t)(3 + shares));
        double mean = tn_meter_take(meter), last = tn_observation_number(seen, "main/loss");
        tn_reporter_pop();
        assert_true(mean > 0 && last > 0 && fabs(last - mean) < 1);
        tn_reporter_free(reporter);
        tn_observation_free(seen);
        tn_meter_free(meter);
        tn_updater_free(updater);
        tn_loader_free(loader);
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
}

/*
 * Plans that an iteration runs once it recurs: the minibatch cut, each share, the update, the vector of parameters. How
 * many parameters there are has no part in it.
 */
static void test_few_plans(void **state)
{
    (void)state;
    for (int shares = 2; shares <= devices; shares++)
        for (int layers = 1; layers <= 4; layers += 3) {
            tn_scope_push();
            tn_layer *net = layers == 1 ? tn_sequential(tn_linear(CLASSES))
                                        : tn_sequential(tn_linear(6), tn_linear(5), tn_linear(4), tn_linear(CLASSES));
            setting s = {.batch = 9, .shares = shares};
            tn_optimizer *optimizer = tn_adam(net);
            tn_dataset *data = samples();
            tn_loader *loader = tn_loader_new(data, .batch = s.batch, .shuffle = true, .drop_last = true,
                                              .device = on[0]);
            tn_updater *updater = updater_of(&s, loader, optimizer);
            for (int i = 0; i < 6; i++)
                MUST(tn_updater_update(updater));
            uint64_t before = tn_engine_stats().evaluations;
            for (int i = 0; i < 4; i++)
                MUST(tn_updater_update(updater));
            assert_int_equal(tn_engine_stats().evaluations - before, 4 * (uint64_t)(3 + shares));
            tn_updater_free(updater);
            tn_loader_free(loader);
            tn_optimizer_free(optimizer);
            tn_layer_free(net);
            tn_scope_pop();
        }
}

/* Batch normalization by each share; the statistics that stay are the first device's, or the mean of all. */
static void test_statistics(void **state)
{
    (void)state;
    result own = train((setting){.batch = 8, .shares = 2, .normalized = true});
    result mean = train((setting){.batch = 8, .shares = 2, .normalized = true, .mean_statistics = true});
    result again = train((setting){.batch = 8, .shares = 2, .normalized = true, .mean_statistics = true});
    compare(&mean, &again, 0);
    int differ = 0;
    for (int i = 0; i < own.count; i++)
        differ += own.weights[i] != mean.weights[i];
    assert_int_equal(differ, 12); /* means and variances of six; training knows nothing of them */
}

/* The whole run, by the names that the command takes. */
static void test_train(void **state)
{
    (void)state;
    tn_epoch one, several;
    MUST(tn_train("digits", &one, .model = "linear:20 relu linear:10", .epochs = 2, .device = on[0]));
    MUST(tn_train("digits", &several, .model = "linear:20 relu linear:10", .epochs = 2,
                  .devices = TN_DEVICES(on[0], on[1])));
    assert_true(one.train_loss > 0 && fabs(one.train_loss - several.train_loss) < 1e-3);
    assert_true(fabs(one.test_accuracy - several.test_accuracy) < 0.02);
    TN_SCOPE {
        tn_status status = tn_train("digits", NULL, .batch = 1, .devices = TN_DEVICES(on[0], on[1]));
        assert_int_equal(status, TN_ERR_VALUE);
        tn_clear_error();
    }
}

/* Once asked to, a copy's loss gives the layer itself a value that no copy has. */
static tn_array *adding_loss(tn_layer *net, const tn_batch *batch, void *user)
{
    tn_layer **first = user;
    if (*first && net != *first) {
        MUST(tn_status_of(tn_layer_persistent(*first, "late", tn_zeros(TN_SHAPE(1), .device = on[0]))));
        *first = NULL;
    }
    return tn_softmax_cross_entropy(tn_forward(net, batch->x), batch->t);
}

/* A layer that gets a part after its copies were made: they are made anew. What none of them has is told of. */
static void test_changed(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = network(false), *adds = NULL;
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.1);
        tn_dataset *data = samples();
        tn_loader *loader = tn_loader_new(data, .batch = 8, .device = on[0]);
        tn_updater *updater = tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(on[0], on[1]),
                                                  .mean_statistics = true, .loss = adding_loss, .user = &adds);
        MUST(tn_updater_update(updater));
        tn_array *three = tn_layer_persistent(net, "three", tn_full(TN_SHAPE(1), 3.0, .device = on[0]));
        for (int i = 0; i < 2; i++)
            MUST(tn_updater_update(updater));
        assert_true(tn_item(three) == 3);
        adds = net;
        assert_int_equal(tn_updater_update(updater), TN_ERR_STATE);
        assert_non_null(strstr(tn_error(), "no persistent value late"));
        tn_clear_error();
        MUST(tn_updater_update(updater));
        tn_updater_free(updater);
        tn_loader_free(loader);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

/* What is frozen, or not any more, once there are copies: weights as by one device. */
static void test_frozen(void **state)
{
    (void)state;
    result r[2] = {{.count = 0}, {.count = 0}};
    for (int several = 0; several < 2; several++) TN_SCOPE {
        tn_layer *net = network(false);
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.1);
        tn_loader *loader = tn_loader_new(samples(), .batch = 8, .device = on[0]);
        tn_updater *updater = several ? tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(on[0], on[1]))
                                      : tn_standard_updater(loader, sgd, .device = on[0]);
        for (int i = 0; i < 6; i++) {
            MUST(tn_layer_freeze(net, i % 2 ? "2.b" : "0.W", i < 3));
            MUST(tn_updater_update(updater));
        }
        MUST(tn_layer_walk(net, keep_value, &r[several]));
        tn_updater_free(updater);
        tn_loader_free(loader);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
    compare(&r[0], &r[1], 1e-5);
}

static void refused(tn_updater *updater, tn_status expected, const char *word)
{
    assert_int_equal(tn_updater_status(updater), expected);
    if (!strstr(tn_error(), word))
        fail_msg("expected \"%s\" in: %s", word, tn_error());
    tn_clear_error();
    tn_updater_free(updater);
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = network(false);
        tn_optimizer *sgd = tn_sgd(net);
        tn_dataset *data = samples();
        tn_loader *loader = tn_loader_new(data, .batch = 1);
        refused(tn_parallel_updater(loader, sgd), TN_ERR_VALUE, ".devices");
        refused(tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(on[0], on[1])), TN_ERR_VALUE, "larger .batch");
        refused(tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(on[0], on[0])), TN_ERR_VALUE, "twice");
        refused(tn_parallel_updater(loader, sgd, .devices = TN_DEVICES(tn_cpu(), {TN_DEVICE_CUDA, 77})), TN_ERR_DEVICE,
                "cannot be used");
        refused(tn_parallel_updater(NULL, sgd, .devices = TN_DEVICES(on[0], on[1])), TN_ERR_VALUE, "NULL");
        tn_loader_free(loader);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

int main(void)
{
    if (test_too_few(on, 2))
        return TEST_SKIPPED;
    on[2] = tn_cpu();
    devices = test_device().kind == TN_DEVICE_CUDA ? 2 : 3;
    test_random random = test_random_new();
    for (int i = 0; i < SAMPLES * IN; i++)
        x[i] = (float)test_random_double(&random) - 0.5f;
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = (int32_t)test_random_int(&random, 0, CLASSES - 1);
    tn_set_compile(TN_COMPILE_NEVER); /* where there is another way */
    labels[0] = CLASSES - 1; /* so that all classes are known of */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_one), cmocka_unit_test(test_loader_elsewhere),
        cmocka_unit_test(test_accumulated), cmocka_unit_test(test_reported),
        cmocka_unit_test(test_weights),     cmocka_unit_test(test_few_plans),
        cmocka_unit_test(test_statistics),  cmocka_unit_test(test_train),
        cmocka_unit_test(test_changed),     cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_few_plans_when_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
