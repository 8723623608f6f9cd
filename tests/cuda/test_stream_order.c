/* SPDX-License-Identifier: MIT */
/*
 * What waits for what when work goes on several streams, and what does not: after a stream has been waited for, work
 * that it was not behind is still to be done. Here of values and their memory.
 */
#include "cuda/two_streams.h"

/* ---- side by side ---- */

static void test_apart(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) { /* step by step, then as graphs */
        TN_ON_STREAM (a)
            fresh(1);
        TN_ON_STREAM (b)
            fresh(2);
        assert_true(waiting(a) > 0 && waiting(b) > 0);
        assert_int_equal(waiting_on_own(), 0);
        assert_int_equal(tn_stream_synchronize(b), TN_OK);
        assert_true(waiting(a) > 0);
        assert_int_equal(waiting(b), 0);
    }
    fresh(3);
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_true(waiting_on_own() > 0);
    TN_ON_STREAM (a)
        fresh(1);
    TN_ON_STREAM (b)
        fresh(2);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    assert_int_equal(waiting(a) + waiting(b) + waiting_on_own(), 0);
}

/* A block within another is on its own stream, what comes behind it on the outer one again, and of another device it
 * says nothing. */
static void test_blocks(void **state)
{
    (void)state;
    tn_stream *elsewhere = tn_stream_new(tn_cpu());
    assert_int_equal(tn__stream_number(device), 0);
    TN_ON_STREAM (a) {
        int outer = tn__stream_number(device);
        assert_true(outer > 0);
        TN_ON_STREAM (elsewhere) {
            assert_int_equal(tn__stream_number(device), outer);
            TN_ON_STREAM (b)
                assert_true(tn__stream_number(device) > 0 && tn__stream_number(device) != outer);
            assert_int_equal(tn__stream_number(device), outer);
            TN_ON_STREAM (NULL)
                assert_int_equal(tn__stream_number(device), outer);
        }
        assert_int_equal(tn__stream_number(device), outer);
    }
    assert_int_equal(tn__stream_number(device), 0);
    tn_stream_free(elsewhere);
}

static void test_most(void **state)
{
    (void)state;
    tn_stream *stream[TN__STREAMS];
    int count = 0;
    CUstream last = NULL;
    while ((stream[count] = tn_stream_new(tn_cuda(0))) != NULL)
        last = queue(stream[count++]);
    assert_int_equal(count, TN__STREAMS - 1 - 2);
    assert_failed(TN_ERR_STATE, "31 streams");
    tn_stream_free(stream[--count]);
    stream[count] = tn_stream_new(tn_cuda(0));
    assert_non_null(stream[count]);
    assert_ptr_equal(queue(stream[count]), last);
    for (; count >= 0; count--)
        tn_stream_free(stream[count]);
}

/* Runs of the own stream that are held back, to be launched together: a new stream is behind them, too, and so is who
 * needs what they compute. */
static void test_held_back(void **state)
{
    (void)state;
    tn_array *w = fresh(1);
    assert_int_equal(tn_eval(tn_exp(w)), TN_OK); /* what loads a program launches what is held back */
    for (int makes = 0; makes < 2; makes++) {
        for (int i = 0; i < 100000 && cuda->held.count == 0; i++) { /* where they come quickly */
            tn_add_assign(w, 1.0);
            assert_int_equal(tn_eval(w), TN_OK);
        }
        assert_true(cuda->held.count > 0);
        tn_stream *c = makes ? tn_stream_new(tn_cuda(0)) : a;
        assert_non_null(c);
        if (!makes)
            TN_ON_STREAM (a)
                assert_int_equal(tn_eval(tn_exp(w)), TN_OK);
        assert_int_equal(tn_stream_synchronize(c), TN_OK);
        assert_int_equal(waiting_on_own() + (size_t)cuda->held.count, 0);
        if (makes)
            tn_stream_free(c);
    }
}

/* ---- data ---- */

static void test_reading(void **state)
{
    (void)state;
    tn_array *x = NULL, *y = NULL;
    TN_ON_STREAM (a) {
        x = fresh(1);
    }
    TN_ON_STREAM (b) {
        y = tn_exp(x);
        assert_int_equal(tn_eval(y), TN_OK);
    }
    int follows = fake.count.follows;
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_sin(x)), TN_OK);
    assert_int_equal(fake.count.follows, follows); /* once is enough */
    TN_ON_STREAM (a)                               /* beside what b reads */
        assert_int_equal(tn_eval(tn_cos(x)), TN_OK);
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(waiting(a), 0);
    assert_true(waiting(b) > 0);
    TN_ON_STREAM (a) /* behind what b reads */
    {
        tn_add_assign(x, 1.0);
        assert_int_equal(tn_eval(x), TN_OK);
    }
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(waiting(b), 0);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    follows = fake.count.follows;
    tn_item(tn_sum(y)); /* of what the host has waited for */
    assert_int_equal(fake.count.follows, follows);
}

/* A copy into memory of the step before last does not wait for the last step. */
static void test_minibatches(void **state)
{
    (void)state;
    static float values[N];
    tn_array *w = fresh(1), *batch[2] = {NULL, NULL};
    for (int i = 0; i < 8; i++)
        TN_SCOPE {
            tn_array *x = NULL;
            TN_ON_STREAM (a)
                x = tn_from_host(values, TN_SHAPE(N), TN_FLOAT32);
            assert_int_equal(tn_stream_synchronize(a), TN_OK);
            if (i > 3)
                assert_true(waiting_on_own() > 0);
            tn_free(batch[i % 2]);
            batch[i % 2] = tn_own(x);
            tn_add_assign(w, x);
            assert_int_equal(tn_eval(w), TN_OK);
        }
    for (int i = 0; i < 2; i++)
        tn_free(batch[i]);
}

/* Memory that a stream has let go of is not another's as long as there is some; nor must it be waited for. */
static void test_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        TN_ON_STREAM (a)
            TN_SCOPE
                fresh(1);
        TN_ON_STREAM (b)
            TN_SCOPE
                fresh(2);
        assert_int_equal(tn_stream_synchronize(b), TN_OK);
        assert_true(waiting(a) > 0);
    }
}

/* Nor is what lies beside it, in memory that there was before there were streams. All of that goes back together. */
static void test_neighbours(void **state)
{
    (void)state;
    tn_stream_free(a);
    tn_stream_free(b);
    tn_memory_trim(tn_cuda(0));
    size_t cached = tn_memory_stats(tn_cuda(0)).cached;
    tn_array *x[] = {tn_own(fresh(1)), tn_own(fresh(2))};
    a = tn_stream_new(tn_cuda(0));
    b = tn_stream_new(tn_cuda(0));
    for (int i = 0; i < 9; i++) {
        for (int s = 0; s < 2; s++)
            TN_ON_STREAM (s ? b : a)
                TN_SCOPE {
                    tn_add_assign(x[s], tn_softmax(tn_multiply(tn_softmax(x[s], -1), 2), -1));
                    assert_int_equal(tn_eval(x[s]), TN_OK);
                }
        assert_int_equal(tn_stream_synchronize(b), TN_OK);
        assert_true(waiting(a) > 0);
    }
    for (int s = 0; s < 2; s++)
        tn_free(x[s]);
    assert_true(tn_memory_stats(tn_cuda(0)).cached > cached);
    tn_memory_trim(tn_cuda(0));
    assert_int_equal(tn_memory_stats(tn_cuda(0)).cached, cached);
}

/* Where there is none, it is; by plain memory, too, as runs have for themselves. */
static void test_little_memory(void **state)
{
    (void)state;
    size_t bytes = (size_t)40 << 20;
    static char host[64];
    tn__storage *from = tn__storage_new(device, sizeof host);
    assert_non_null(from);
    assert_int_equal(tn__storage_write(from, host, sizeof host), TN_OK);
    void *memory = NULL, *again = NULL;
    tn_array *x = NULL;
    TN_ON_STREAM (a)
        x = fresh(1);
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK);
    tn_memory_trim(tn_cuda(0));
    size_t left = fake.memory_left;
    fake.memory_left = bytes;
    TN_ON_STREAM (a) {
        assert_non_null(memory = tn__device_allocate(device, bytes));
        tn_add_assign(x, 1.0);
        assert_int_equal(tn_eval(x), TN_OK);
    }
    TN_ON_STREAM (b) /* which is behind a up to here, and no further */
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK);
    TN_ON_STREAM (a) {
        assert_int_equal(device->ops->copy(device, memory, from->memory, sizeof host), TN_OK);
        tn__device_release(device, memory, bytes);
    }
    TN_ON_STREAM (b)
        assert_non_null(again = tn__device_allocate(device, bytes));
    assert_ptr_equal(memory, again);
    TN_ON_STREAM (b)
        assert_int_equal(device->ops->copy(device, again, from->memory, sizeof host), TN_OK);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_int_equal(waiting(a), 0);
    tn__device_release(device, again, bytes);
    tn__storage_release(from);
    tn_memory_trim(tn_cuda(0));
    fake.memory_left = left;
}

static void test_events(void **state)
{
    (void)state;
    tn_event *event = tn_event_new(tn_cuda(0));
    TN_ON_STREAM (a) {
        fresh(1);
        assert_int_equal(tn_event_record(event), TN_OK);
        fresh(2);
    }
    size_t all = waiting(a);
    TN_ON_STREAM (b) {
        assert_int_equal(tn_event_wait(event), TN_OK);
        fresh(3);
    }
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_true(waiting(a) > 0 && waiting(a) < all); /* no more than was in front of it */
    assert_int_equal(tn_event_synchronize(event), TN_OK);
    assert_true(waiting(a) > 0);
    tn_event_free(event);
}

/* From one storage to another. */
static void test_copies(void **state)
{
    (void)state;
    char host[64] = "carbon", back[64] = "";
    tn__storage *from = tn__storage_new(device, sizeof host), *to = tn__storage_new(device, sizeof host);
    assert_true(from && to);
    for (int i = 0; i < 2; i++) {
        TN_ON_STREAM (a)
            assert_int_equal(tn__storage_write(from, host, sizeof host), TN_OK);
        TN_ON_STREAM (b)
            assert_int_equal(tn__storage_copy(to, 0, from, from->memory, sizeof host), TN_OK);
        assert_true(waiting(b) > 0);
        memset(host, 'c', 6);
    }
    TN_ON_STREAM (a)
        assert_int_equal(tn__storage_write(from, back, sizeof back), TN_OK); /* behind the copy */
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(waiting(b), 0);
    TN_ON_STREAM (a) {
        assert_int_equal(tn__storage_write(from, host, sizeof host), TN_OK);
        fresh(1);
    }
    TN_ON_STREAM (b)
        assert_int_equal(tn__storage_copy(to, 0, from, from->memory, sizeof host), TN_OK);
    assert_int_equal(tn__storage_read(to, back, to->memory, sizeof back), TN_OK);
    assert_string_equal(back, "cccccc");
    tn__storage_release(from);
    tn__storage_release(to);
}

/* What a user's own kernel reads and writes. */
static void test_raw_kernels(void **state)
{
    (void)state;
    const tn_kernel *kernel = tn_raw_kernel("extern \"C\" __global__ void raw(float *y, const float *x) {}", "raw");
    tn_array *x = NULL, *y = NULL;
    TN_ON_STREAM (a) {
        x = fresh(1);
        y = fresh(2);
    }
    TN_ON_STREAM (b)
        assert_int_equal(tn_launch(kernel, TN_ARGS(TN_WRITES(y), x)), TN_OK); /* y gets memory of its own */
    TN_ON_STREAM (a)
        x = fresh(1);
    TN_ON_STREAM (b)
        assert_int_equal(tn_launch(kernel, TN_ARGS(TN_WRITES(y), x)), TN_OK);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_int_equal(waiting(a), 0);
    TN_ON_STREAM (b)
        assert_int_equal(tn_launch(kernel, TN_ARGS(TN_WRITES(y), x)), TN_OK);
    TN_ON_STREAM (a)
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK); /* which it only reads */
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_true(waiting(b) > 0);
    TN_ON_STREAM (a)
        assert_int_equal(tn_eval(tn_exp(y)), TN_OK);
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(waiting(b), 0);
}

/* Last of all, as a device that was lent stays so: work that others put on a stream counts, too. */
static void test_lent(void **state)
{
    (void)state;
    tn_array *x = fresh(1);
    void *own = tn_stream_native(tn_cuda(0)), *side = NULL;
    assert_ptr_equal(own, cuda->stream);
    TN_ON_STREAM (a) {
        side = tn_stream_native(tn_cuda(0));
        tn_add_assign(x, 1.0);
        assert_int_equal(tn_eval(x), TN_OK);
    }
    assert_true(side != own && side == queue(a));
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK);
    fake_flush();
    assert_int_equal(fake_put(side, &(fake_work){.kind = FAKE_NOTHING}), CUDA_SUCCESS);
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_int_equal(waiting(a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_apart),   TEST(test_blocks),      TEST(test_most),        TEST(test_held_back),
        TEST(test_reading), TEST(test_minibatches), TEST(test_memory),      TEST(test_neighbours),
        TEST(test_little_memory), TEST(test_events), TEST(test_copies),     TEST(test_raw_kernels), TEST(test_lent),
    };
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    if (!two_streams_open())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
