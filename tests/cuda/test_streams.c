/* SPDX-License-Identifier: MIT */
/*
 * Random programs of whole numbers on several streams of a GPU: what they compute is what the CPU computes. Skipped
 * without a GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "core/clock.h"
#include "support/random.h"

enum { N = 1 << 15, SIDE = 128, ARRAYS = 5, STREAMS = 3, STEPS = 400, LONG = 100, ROW = 4096, DEEP = 20 };

static test_random random_of;

static int pick(int count) { return (int)(test_random_bits(&random_of) % (uint64_t)count); }

/* The same arrays on both devices. */
typedef struct pair {
    tn_array *on[2];
} pair;

static pair array[ARRAYS];

static void put(int k, tn_array *cpu, tn_array *gpu)
{
    tn_array *made[] = {cpu, gpu};
    for (int d = 0; d < 2; d++) {
        assert_int_equal(tn_eval(made[d]), TN_OK);
        tn_free(array[k].on[d]);
        array[k].on[d] = tn_own(made[d]);
    }
}

static void upload(int k)
{
    static int32_t values[N];
    tn_array *made[2];
    for (int i = 0; i < N; i++)
        values[i] = (int32_t)test_random_bits(&random_of);
    for (int d = 0; d < 2; d++)
        made[d] = tn_from_host(values, TN_SHAPE(N), TN_INT32, .device = d ? tn_cuda(0) : tn_cpu());
    memset(values, 0, sizeof values);
    put(k, made[0], made[1]);
}

static tn_array *add(const tn_array *x, const tn_array *y) { return tn_add(tn_multiply(x, 3), y); }
static tn_array *spread(const tn_array *x, const tn_array *y) { return tn_cast(tn_subtract(x, tn_sum(y)), TN_INT32); }
static tn_array *sort(const tn_array *x, const tn_array *y) { return tn_maximum(tn_sort(x), y); }
static tn_array *scan(const tn_array *x, const tn_array *y)
{
    return tn_bitwise_xor(tn_cast(tn_cumsum(x), TN_INT32), y);
}
static tn_array *product(const tn_array *x, const tn_array *y)
{
    tn_array *a = tn_reshape(x, TN_SHAPE(2, SIDE, SIDE)), *b = tn_reshape(y, TN_SHAPE(2, SIDE, SIDE));
    return tn_reshape(tn_matmul(a, b), TN_SHAPE(N));
}

static tn_array *(*const operations[])(const tn_array *x, const tn_array *y) = {add, spread, sort, scan, product};

static void compare(int k)
{
    static int32_t value[2][N];
    for (int d = 0; d < 2; d++)
        assert_int_equal(tn_to_host(array[k].on[d], value[d], sizeof value[d]), TN_OK);
    assert_memory_equal(value[0], value[1], sizeof value[0]);
}

static void step(void)
{
    int k = pick(ARRAYS), i = pick(ARRAYS), j = pick(ARRAYS), what = pick(10);
    if (what == 0)
        upload(k);
    else if (what == 1)
        compare(k);
    else if (what < 4) /* in place */
        for (int d = 0; d < 2; d++) {
            tn_add_assign(array[k].on[d], array[i].on[d]);
            assert_int_equal(tn_eval(array[k].on[d]), TN_OK);
        }
    else {
        tn_array *(*of)(const tn_array *, const tn_array *) = operations[pick(5)];
        put(k, of(array[i].on[0], array[j].on[0]), of(array[i].on[1], array[j].on[1]));
    }
}

static void test_programs(void **state)
{
    (void)state;
    tn_stream *stream[STREAMS];
    TN_SCOPE
        for (int k = 0; k < ARRAYS; k++)
            upload(k);
    for (int s = 0; s < STREAMS; s++)
        assert_non_null(stream[s] = tn_stream_new(tn_cuda(0)));
    for (int i = 0; i < STEPS; i++)
        TN_SCOPE {
            int s = pick(STREAMS + 1);
            if (pick(40) == 0) {
                int gone = pick(STREAMS);
                tn_stream_free(stream[gone]);
                assert_non_null(stream[gone] = tn_stream_new(tn_cuda(0)));
            }
            TN_ON_STREAM (s < STREAMS ? stream[s] : NULL)
                step();
        }
    for (int k = 0; k < ARRAYS; k++) {
        compare(k);
        tn_free(array[k].on[0]);
        tn_free(array[k].on[1]);
    }
    for (int s = 0; s < STREAMS; s++)
        tn_stream_free(stream[s]);
    assert_true(tn_ok());
}

/* Work for long on a small part of the chip: rows' softmax again and again of one row. */
static tn_array *slow(const tn_array *x)
{
    tn_array *y = tn_softmax(x, -1);
    for (int i = 1; i < DEEP; i++)
        y = tn_softmax(tn_multiply(y, i), -1);
    return y;
}

/* What long chains of such work on some streams take, in microseconds; and the host until it has asked for all. */
typedef struct taken {
    double all, host;
} taken;

static taken chains(tn_stream *const *stream, int count)
{
    tn_event *begin = tn_event_new(tn_cuda(0)), *end = tn_event_new(tn_cuda(0));
    taken took = {0, 0};
    TN_SCOPE
        TN_ON_DEVICE (tn_cuda(0)) {
            tn_array *x[STREAMS];
            for (int s = 0; s < count; s++)
                assert_int_equal(tn_eval(x[s] = tn_full(TN_SHAPE(1, ROW), 1.0 / (s + 2))), TN_OK);
            assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
            assert_int_equal(tn_event_record(begin), TN_OK);
            int64_t start = tn__nanoseconds();
            for (int i = 0; i < LONG; i++)
                for (int s = 0; s < count; s++)
                    TN_ON_STREAM (stream[s])
                        TN_SCOPE {
                            tn_add_assign(x[s], slow(x[s]));
                            assert_int_equal(tn_eval(x[s]), TN_OK);
                        }
            took.host = 1e-3 * (double)(tn__nanoseconds() - start);
            assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
            assert_int_equal(tn_event_record(end), TN_OK);
            took.all = 1e6 * tn_event_elapsed(begin, end);
        }
    tn_event_free(begin);
    tn_event_free(end);
    return took;
}

/* Told, not asserted: what else the GPU does is not known. */
static void test_side_by_side(void **state)
{
    (void)state;
    tn_stream *stream[STREAMS] = {NULL};
    for (int s = 0; s < STREAMS; s++)
        assert_non_null(stream[s] = tn_stream_new(tn_cuda(0)));
    chains(stream, STREAMS);
    taken one = chains(stream, 1), several = chains(stream, STREAMS);
    print_message("a chain takes %.0f us (the host %.0f), %d side by side %.0f us (%.0f)\n", one.all, one.host, STREAMS,
                  several.all, several.host);
    for (int s = 0; s < STREAMS; s++)
        tn_stream_free(stream[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_side_by_side)};
    if (!tn_cuda_available()) {
        puts("no GPU");
        return 77;
    }
    random_of = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
