/* SPDX-License-Identifier: MIT */
/* Streams, events, waiting, and what is known of a device: the same calls on every device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

static void test_streams_and_events(void **state)
{
    (void)state;
    tn_device device = test_device();
    tn_stream *stream = tn_stream_new(device), *other = tn_stream_new(device);
    tn_event *begin = tn_event_new(device), *end = tn_event_new(device);
    assert_true(stream && other && begin && end);
    TN_SCOPE {
        tn_array *x = tn_full(TN_SHAPE(1000), 2.0), *y = NULL;
        TN_ON_STREAM (stream) {
            assert_int_equal(tn_event_record(begin), TN_OK);
            y = tn_multiply(x, 3.0);
            assert_int_equal(tn_eval(y), TN_OK);
            TN_ON_STREAM (other)
                assert_true(tn_item(tn_sum(y)) == 6000);
            assert_int_equal(tn_event_record(end), TN_OK);
        }
        TN_ON_STREAM (NULL) {
            assert_int_equal(tn_event_wait(end), TN_OK);
            assert_true(tn_item(tn_sum(tn_add(y, 1.0))) == 7000);
        }
        assert_int_equal(tn_stream_synchronize(stream), TN_OK);
        double seconds = tn_event_elapsed(begin, end);
        assert_true(seconds >= 0 && seconds < 60);
        assert_true(tn_event_elapsed(end, begin) <= 0);
    }
    assert_int_equal(tn_synchronize(device), TN_OK);
    assert_true((tn_stream_native(device) != NULL) == (device.kind == TN_DEVICE_CUDA));
    tn_event_free(begin);
    tn_event_free(end);
    tn_stream_free(stream);
    tn_stream_free(other);
    assert_true(tn_ok());
}

static void test_misuse(void **state)
{
    (void)state;
    tn_event *never = tn_event_new(test_device()), *here = tn_event_new(test_device()),
             *there = tn_event_new(tn_device_parse("virtual:2", NULL));
    assert_int_equal(tn_event_record(here), TN_OK);
    assert_int_equal(tn_event_record(there), TN_OK);
    assert_int_equal(tn_event_wait(never), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "tn_event_record");
    assert_true(isnan(tn_event_elapsed(here, never)));
    assert_failed(TN_ERR_STATE, "not been recorded");
    assert_true(isnan(tn_event_elapsed(here, there)));
    assert_failed(TN_ERR_DEVICE, "virtual:2");
    assert_int_equal(tn_event_record(NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_event_synchronize(NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_stream_synchronize(NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    tn_device none = {TN_DEVICE_CPU, 9};
    assert_null(tn_stream_new(none));
    assert_failed(TN_ERR_DEVICE, "not available");
    assert_null(tn_event_new(none));
    assert_failed(TN_ERR_DEVICE, "not available");
    assert_int_equal(tn_synchronize(none), TN_ERR_DEVICE);
    assert_failed(TN_ERR_DEVICE, "not available");
    tn_event_free(never);
    tn_event_free(here);
    tn_event_free(there);
    tn_event_free(NULL);
    tn_stream_free(NULL);
}

/* What was freed is a failed object. */
static void test_freed(void **state)
{
    (void)state;
    tn_stream *stream = tn_stream_new(test_device());
    tn_event *event = tn_event_new(test_device());
    assert_int_equal(tn_event_record(event), TN_OK);
    tn_stream_free(stream);
    tn_event_free(event);
    tn_stream_free(stream);
    assert_failed(TN_ERR_STATE, "stream has been freed");
    tn_event_free(event);
    assert_failed(TN_ERR_STATE, "event has been freed");
    assert_int_equal(tn_stream_synchronize(stream), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "freed");
    (void)tn_device_of(stream);
    assert_failed(TN_ERR_STATE, "freed");
    TN_ON_STREAM(stream)
        assert_failed(TN_ERR_STATE, "freed");
    (void)tn_device_of(event);
    assert_failed(TN_ERR_STATE, "freed");
    assert_int_equal(tn_event_record(event), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "freed");
    assert_int_equal(tn_event_wait(event), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "freed");
    assert_int_equal(tn_event_synchronize(event), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "freed");
    assert_true(isnan(tn_event_elapsed(event, event)));
    assert_failed(TN_ERR_STATE, "freed");
}

static void test_properties(void **state)
{
    (void)state;
    tn_device device = test_device();
    tn_device_info info = tn_device_properties(device);
    assert_true(info.memory > 0 && info.multiprocessors > 0);
    assert_true(info.memory_free <= info.memory);
    assert_true(info.memory == tn_memory_stats(device).total);
    if (device.kind == TN_DEVICE_CUDA) {
        assert_true(strlen(info.product) > 0 && strchr(info.bus, ':'));
        assert_true(info.capability >= 50 && info.warp == 32 && info.block_threads >= 1024);
        assert_true(info.block_shared >= 48 << 10 && info.cache > 0 && info.memory_free > 0);
        assert_true(info.driver >= 12000 && info.compiler >= 12000);
    } else {
        assert_true(info.capability == 0 && info.driver == 0 && !*info.bus);
    }
    assert_int_equal(tn_cuda_count(), tn_device_count(TN_DEVICE_CUDA));
    assert_true(tn_cuda_available() == (tn_cuda_count() > 0));
    info = tn_device_properties((tn_device){TN_DEVICE_VIRTUAL, 99});
    assert_true(info.memory == 0);
    assert_failed(TN_ERR_DEVICE, "not available");
}

/* log(1 + exp(x)), written once. */
static tn_array *softplus(const tn_array *x)
{
    return tn_add(tn_maximum(x, 0.0), tn_log1p(tn_exp(tn_negative(tn_abs(x)))));
}

static void test_written_once(void **state)
{
    (void)state;
    static const float values[] = {-100, -1, 0, 1, 100};
    TN_SCOPE {
        tn_array *here = tn_from_floats(values, 5);
        tn_array *there = tn_to(here, tn_device_parse("virtual:3", NULL));
        assert_true(tn_device_equal(tn_device_of(softplus(there)), tn_device_of(there)));
        assert_true(tn_device_equal(tn_device_of(softplus(here)), test_device()));
        float a[5], b[5];
        assert_int_equal(tn_to_host(softplus(here), a, sizeof a), TN_OK);
        assert_int_equal(tn_to_host(tn_to_cpu(softplus(there)), b, sizeof b), TN_OK);
        for (int i = 0; i < 5; i++) {
            double wanted = values[i] > 50 ? values[i] : log1p(exp(values[i]));
            assert_float_equal(a[i], wanted, 1e-6 * (1 + wanted));
            assert_float_equal(b[i], wanted, 1e-6 * (1 + wanted));
        }
        tn_array *mixed = tn_maximum(here, there);
        assert_true(tn_is_error(mixed));
        assert_non_null(strstr(tn_message_of(mixed), tn_device_name(test_device())));
        assert_failed(TN_ERR_DEVICE, "tn_to(x, tn_device_of(y))");
        tn_array *gpu = tn_to_cuda(here);
        assert_true(tn_is_error(gpu) != tn_cuda_available());
        tn_clear_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_and_events),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_written_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
