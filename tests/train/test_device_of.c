/* SPDX-License-Identifier: MIT */
/* tn_device_of: every kind of object, by pointers const and not; those on several devices, and on none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

static tn_device there, elsewhere;

static void is_on(tn_device device, tn_device expected)
{
    if (!tn_device_equal(device, expected))
        fail_msg("on kind %d, index %d, expected %d, %d (%s)", device.kind, device.index, expected.kind, expected.index,
                 tn_error());
    assert_true(tn_ok());
}

static const tn_device nowhere;

static void test_layers(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(4, .in = 3), tn_relu_layer(), tn_linear(2));
    const tn_layer *same = net;
    tn_optimizer *optimizer = tn_momentum_sgd(net);
    is_on(tn_device_of(net), test_device());
    assert_int_equal(tn_layer_to(net, there), TN_OK);
    is_on(tn_device_of(same), there);
    is_on(tn_device_of(optimizer), there);
    TN_SCOPE {
        tn_array *x = tn_to(tn_ones(TN_SHAPE(5, 3)), tn_device_of(net));
        tn_backward(tn_sum(tn_forward(net, x)));
        assert_int_equal(tn_step(optimizer), TN_OK);
        is_on(tn_device_of(tn_optimizer_state(optimizer, 0)), tn_device_of((const tn_optimizer *)optimizer));
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    assert_true(tn_ok());
}

static void test_layers_without_parameters(void **state)
{
    (void)state;
    tn_layer *relu = tn_relu_layer(), *waiting = tn_sequential(tn_relu_layer(), tn_linear(4), tn_linear(2));
    is_on(tn_device_of(relu), nowhere);
    is_on(tn_device_of(waiting), nowhere);
    assert_int_equal(tn_layer_to(waiting, there), TN_OK);
    is_on(tn_device_of(waiting), there);
    tn_layer *moved = tn_linear(1), *outer;
    assert_int_equal(tn_layer_to(moved, elsewhere), TN_OK);
    outer = tn_sequential(relu, moved);
    is_on(tn_device_of(outer), elsewhere);
    tn_layer_free(outer);
    tn_layer_free(waiting);
}

static void test_layers_on_two_devices(void **state)
{
    (void)state;
    tn_layer *first = tn_linear(4, .in = 3), *second = tn_linear(2, .in = 4);
    assert_int_equal(tn_layer_to(first, there), TN_OK);
    assert_int_equal(tn_layer_to(second, elsewhere), TN_OK);
    tn_layer *net = tn_sequential(first, second);
    tn_optimizer *optimizer = tn_sgd(net);
    char words[96];
    snprintf(words, sizeof words, "'0.W' is on %s, '1.W' on %s", tn_device_name(there), tn_device_name(elsewhere));
    tn_device device = tn_device_of(net);
    assert_failed(TN_ERR_DEVICE, words);
    is_on(device, nowhere);
    device = tn_device_of(optimizer);
    assert_failed(TN_ERR_DEVICE, words);
    is_on(device, nowhere);
    is_on(tn_device_of(second), elsewhere);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

static void test_datasets(void **state)
{
    (void)state;
    tn_dataset *digits = tn_digits(TN_TEST);
    is_on(tn_device_of(digits), tn_cpu());
    is_on(tn_device_of((const tn_dataset *)digits), tn_cpu());
    tn_loader *loader = tn_loader_new(digits, .device = there);
    is_on(tn_device_of(loader), there);
    is_on(tn_device_of((const tn_loader *)loader), there);
    tn_batch batch;
    assert_true(tn_loader_next(loader, &batch));
    is_on(tn_device_of(&batch), there);
    is_on(tn_device_of((const tn_batch *)&batch), there);
    tn_loader_free(loader);
    loader = tn_loader_new(tn_digits(TN_TEST));
    is_on(tn_device_of(loader), test_device());
    tn_loader_free(loader);

    tn_archive *archive = tn_archive_new();
    is_on(tn_device_of(archive), nowhere);
    TN_SCOPE {
        tn_array *x = tn_arange(0, 4, 1, .device = there);
        assert_int_equal(tn_archive_add(archive, "x", x), TN_OK);
        assert_int_equal(tn_archive_add(archive, "y", tn_add(x, 1)), TN_OK);
        is_on(tn_device_of((const tn_archive *)archive), there);
        assert_int_equal(tn_archive_add(archive, "z", tn_to(x, elsewhere)), TN_OK);
    }
    tn_device device = tn_device_of(archive);
    char words[96];
    snprintf(words, sizeof words, "'x' is on %s, 'z' on %s", tn_device_name(there), tn_device_name(elsewhere));
    assert_failed(TN_ERR_DEVICE, words);
    is_on(device, nowhere);
    tn_archive_free(archive);
}

static void test_others(void **state)
{
    (void)state;
    tn_meter *meter = tn_meter_new(there);
    tn_stream *stream = tn_stream_new(there);
    tn_event *event = tn_event_new(elsewhere);
    is_on(tn_device_of(meter), there);
    is_on(tn_device_of((const tn_meter *)meter), there);
    is_on(tn_device_of(stream), there);
    is_on(tn_device_of((const tn_stream *)stream), there);
    is_on(tn_device_of(event), elsewhere);
    is_on(tn_device_of((const tn_event *)event), elsewhere);
    tn_generator generator = {.key = 1};
    is_on(tn_device_of(&generator), nowhere);
    is_on(tn_device_of((const tn_generator *)tn_default_generator()), nowhere);
    tn_event_free(event);
    tn_stream_free(stream);
    tn_meter_free(meter);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2), .device = elsewhere);
        is_on(tn_device_of(x), elsewhere);
        is_on(tn_device_of((const tn_array *)x), elsewhere);
        is_on((tn_device_of)(x), elsewhere); /* the function, without its macro */
        is_on(tn_device_of(tn_to(x, there)), there);
    }
}

#define NULL_IS_AN_ERROR(type, words) \
    do { \
        tn_device device = tn_device_of((type *)NULL); \
        assert_failed(TN_ERR_VALUE, "expected " words ", got NULL (test_device_of.c:"); \
        is_on(device, nowhere); \
    } while (0)

static void test_errors(void **state)
{
    (void)state;
    NULL_IS_AN_ERROR(tn_array, "an array");
    NULL_IS_AN_ERROR(tn_layer, "a layer");
    NULL_IS_AN_ERROR(tn_optimizer, "an optimizer");
    NULL_IS_AN_ERROR(tn_loader, "a loader");
    NULL_IS_AN_ERROR(tn_batch, "a minibatch of tn_loader_next");
    NULL_IS_AN_ERROR(tn_dataset, "a dataset");
    NULL_IS_AN_ERROR(tn_meter, "a meter");
    NULL_IS_AN_ERROR(tn_generator, "a generator");
    NULL_IS_AN_ERROR(tn_archive, "an archive");
    NULL_IS_AN_ERROR(tn_stream, "a stream");
    NULL_IS_AN_ERROR(tn_event, "an event");
    tn_device device = tn_device_of(NULL);
    assert_failed(TN_ERR_VALUE, "expected an array, got NULL");
    is_on(device, nowhere);
    tn_batch none = {0};
    device = tn_device_of(&none);
    assert_failed(TN_ERR_VALUE, "got an empty one");
    is_on(device, nowhere);
}

/* What could not be made says so when it is made, and is nowhere. */
static void test_failed(void **state)
{
    (void)state;
    tn_layer *layer = tn_layer_parse("lineer:3");
    tn_optimizer *optimizer = tn_optimizer_parse("sdg", layer);
    tn_dataset *dataset = tn_dataset_named("digitz", TN_TRAIN);
    tn_loader *loader = tn_loader_new(dataset, .keep_dataset = true);
    tn_clear_error();
    is_on(tn_device_of(layer), nowhere);
    is_on(tn_device_of(optimizer), nowhere);
    is_on(tn_device_of(dataset), nowhere);
    is_on(tn_device_of(loader), nowhere);
    TN_SCOPE {
        tn_array *wrong = tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3)));
        tn_clear_error();
        is_on(tn_device_of(wrong), nowhere);
    }
    tn_loader_free(loader);
    tn_dataset_free(dataset);
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
}

int main(void)
{
    setenv("TANSO_VIRTUAL_DEVICES", "4", true);
    there = tn_device_parse("virtual:1", NULL);
    elsewhere = tn_device_parse("virtual:2", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_layers_without_parameters),
        cmocka_unit_test(test_layers_on_two_devices),
        cmocka_unit_test(test_datasets),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
