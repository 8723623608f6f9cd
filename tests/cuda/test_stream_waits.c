/* SPDX-License-Identifier: MIT */
/*
 * What waits for what when work goes on several streams: what the device has once, whatever the operands, and what the
 * host waits for.
 */
#include "cuda/two_streams.h"
#include "engine/plans.h"

#include <sched.h>
#include <unistd.h>

/* ---- the device's own things ---- */

static tn_array *first, *second; /* independent operands */

static void operands(tn_array *x, tn_array *y)
{
    first = x;
    second = y;
    assert_int_equal(tn_eval(first), TN_OK);
    assert_int_equal(tn_eval(second), TN_OK);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
}

/* Whether work on b of the second operand is behind work on a of the first. */
static bool behind(tn_array *(*one)(const tn_array *), tn_array *(*other)(const tn_array *))
{
    bool ordered = true;
    for (int i = 0; i < 3; i++) {
        TN_ON_STREAM (a)
            assert_int_equal(tn_eval(one(first)), TN_OK);
        TN_ON_STREAM (b)
            assert_int_equal(tn_eval(other(second)), TN_OK);
        assert_true(waiting(a) > 0);
        assert_int_equal(tn_stream_synchronize(b), TN_OK);
        ordered = waiting(a) == 0;
        assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    }
    return ordered;
}

static tn_array *sorted(const tn_array *x) { return tn_sort(x); }
static tn_array *elementwise(const tn_array *x) { return tn_add(tn_exp(x), 1.0); }
static tn_array *squared(const tn_array *x) { return tn_matmul(x, x); }

/* A program whose operations have memory of their own. */
static void test_scratch(void **state)
{
    (void)state;
    operands(tn_full(TN_SHAPE(N), 1.0), tn_full(TN_SHAPE(N), 2.0));
    assert_true(behind(sorted, sorted));
    assert_false(behind(elementwise, elementwise));
    assert_false(behind(sorted, elementwise));
}

/* Such memory is maybe one that the stream had before in which the program was loaded, and still uses: who runs the
 * program first is behind that in another stream, too. */
static void test_scratch_of_another(void **state)
{
    (void)state;
    operands(tn_full(TN_SHAPE(N), 1.0), tn_full(TN_SHAPE(N), 2.0));
    tn__operand operand[2];
    for (int k = 0; k < 2; k++)
        operand[k] = (tn__operand){.buffer = k, .dtype = TN_FLOAT32, .ndim = 1, .dim = {N}, .stride = {1}};
    tn__step step = {.kind = TN__STEP_OP, .op = TN__OP_SORT, .compute = TN_FLOAT32, .operand_count = 2,
                     .output_count = 1, .operand = operand};
    tn__buffer buffer[] = {{.kind = TN__BUFFER_OUTPUT, .bytes = N * sizeof(float)}, {.kind = TN__BUFFER_INPUT}};
    tn__program program = {.buffer_count = 2, .buffer = buffer, .step_count = 1, .step = &step};
    tn__executable *executable = NULL;
    static float memory[2][N];
    TN_ON_STREAM (a) {
        assert_int_equal(tn_eval(tn_exp(first)), TN_OK);
        assert_int_equal(device->ops->load(device, &program, &executable), TN_OK);
    }
    assert_true(waiting(a) > 0);
    TN_ON_STREAM (b)
        assert_int_equal(device->ops->run(executable, (void *[]){memory[0], memory[1]}, NULL), TN_OK);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_int_equal(waiting(a), 0);
    device->ops->unload(executable);
}

/* Two programs that pack operands into the device's memory for that. */
static void test_shared_memory(void **state)
{
    (void)state;
    tn_set_matmul_precision(TN_MATMUL_TF32X3);
    operands(tn_zeros(TN_SHAPE(3072, 3072)), tn_zeros(TN_SHAPE(3200, 3200)));
    assert_true(behind(squared, squared));
    tn_set_matmul_precision(TN_MATMUL_FLOAT32);
}

static tn_array *failing(const tn_array *x) { return tn_take(x, tn_from_int64s((int64_t[]){0, 3}, 2), 0); }
static tn_array *updated(const tn_array *x)
{
    tn_add_assign((tn_array *)x, 1.0);
    return (tn_array *)x;
}

/* What overwrites is not beside what may fail, in either order, nor are two that may fail: a failure is the first
 * one's, and an update is done or not. */
static void test_failures(void **state)
{
    (void)state;
    operands(tn_full(TN_SHAPE(N), 1.0), tn_full(TN_SHAPE(N), 2.0));
    assert_true(behind(failing, failing));
    assert_true(behind(failing, updated));
    assert_true(behind(updated, failing));
    assert_false(behind(updated, updated));
    assert_false(behind(failing, elementwise));
}

static void fails(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    (void)name, (void)words, (void)scalars;
    fake_fail(failure, 1, 99);
}

/* A failure is told when everything else has been done, and what was told of is over on all streams. */
static void test_told(void **state)
{
    (void)state;
    operands(tn_full(TN_SHAPE(N), 1.0), tn_full(TN_SHAPE(N), 2.0));
    TN_ON_STREAM (a)
        fresh(1);
    tn__cuda_failure failure = {.latch = cuda->latch, .report = (uintptr_t)cuda->report, .run = device->runs};
    fails(NULL, NULL, NULL, &failure);
    TN_ON_STREAM (b) {
        assert_int_equal(tn_eval(tn_full(TN_SHAPE(N), 3.0)), TN_ERR_INDEX);
        assert_int_equal(waiting(a) + waiting_on_own(), 0);
        assert_true(waiting(b) > 0); /* the latch is lifted there */
    }
    tn_clear_error();
    TN_ON_STREAM (a)
        assert_int_equal(tn_eval(updated(first)), TN_OK);
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(waiting(b), 0);
}

/* ---- waits of the host ---- */

static void test_counts(void **state)
{
    (void)state;
    tn_stream *c = tn_stream_new(tn_cuda(0));
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    unsigned long long waits = cuda->wait_count;
    assert_int_equal(tn_stream_synchronize(a), TN_OK);
    assert_int_equal(cuda->wait_count, waits + 1);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    assert_int_equal(cuda->wait_count, waits + 5);
    TN_ON_STREAM (c)
        fresh(1);
    tn_stream_free(c);
    assert_int_equal(cuda->wait_count, waits + 6);
    fake_flush();
    void *memory = device->ops->allocate(device, 64);
    TN_ON_STREAM (a)
        fresh(1);
    TN_ON_STREAM (b)
        fresh(2);
    device->ops->release(device, memory, 64); /* CUDA waits for both */
    assert_int_equal(cuda->wait_count, waits + 8);
    cuda->waits = TN__CUDA_WAITS_FORBIDDEN;
    TN_ON_STREAM (a)
        fresh(1);
    assert_int_equal(tn_stream_synchronize(a), TN_ERR_STATE);
    assert_failed(TN_ERR_STATE, "TANSO_CUDA_SYNC=forbid");
    assert_true(waiting(a) > 0);
    cuda->waits = TN__CUDA_WAITS_ALLOWED;
}

enum { PIECES = 33, PIECE = 1 << 20 }; /* one more than there can be of pinned memory */
static pthread_t writer;
static tn__storage *written;
static int copies_before;

static void *write_much(void *failed)
{
    static char host[PIECES * PIECE];
    memset(host, 'x', sizeof host);
    return tn__storage_write(written, host, sizeof host) == TN_OK ? NULL : failed;
}

static void write_meanwhile(void)
{
    fake.waits = NULL;
    copies_before = fake.count.host_to_device;
    assert_int_equal(pthread_create(&writer, NULL, write_much, &written), 0);
    while (__atomic_load_n(&fake.count.host_to_device, __ATOMIC_RELAXED) < copies_before + PIECES - 1)
        sched_yield();
    usleep(5000); /* for what must not happen now */
}

/* While a thread waits for a value, others are served; the pinned memory that its value is in is not theirs before it
 * has been taken out. */
static void test_meanwhile(void **state)
{
    (void)state;
    char host[64] = "carbon", back[64] = "";
    void *failed = NULL;
    tn__storage *read = tn__storage_new(device, sizeof host);
    assert_non_null(read);
    assert_non_null(written = tn__storage_new(device, PIECES * PIECE));
    assert_int_equal(tn__storage_write(read, host, sizeof host), TN_OK);
    fake.waits = write_meanwhile;
    assert_int_equal(tn__storage_read(read, back, read->memory, sizeof back), TN_OK);
    assert_string_equal(back, "carbon");
    assert_int_equal(pthread_join(writer, &failed), 0);
    assert_null(failed);
    assert_int_equal(fake.count.host_to_device, copies_before + PIECES);
    tn__storage_release(read);
    tn__storage_release(written);
}

/* A program goes when no stream runs it any more. */
static void test_unloading(void **state)
{
    (void)state;
    TN_ON_STREAM (a)
        fresh(1);
    fresh(1);
    assert_true(waiting(a) > 0);
    tn__plans_clear();
    assert_int_equal(waiting(a) + waiting_on_own(), 0);
}

static void test_blocking(void **state)
{
    (void)state;
    cuda->blocking = true;
    bool graphs = cuda->graphs;
    cuda->graphs = false;
    TN_ON_STREAM (a)
        fresh(1);
    assert_int_equal(waiting(a), 0);
    cuda->blocking = false;
    cuda->graphs = graphs;
}

static void test_refused(void **state)
{
    (void)state;
    tn_array *x = NULL;
    TN_ON_STREAM (a)
        x = fresh(1);
    fake.next_follow = CUDA_ERROR_INVALID_VALUE;
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_exp(x)), TN_ERR_DEVICE);
    assert_failed(TN_ERR_DEVICE, "order");
    assert_null(tn_stream_new(tn_cuda(0)));
    assert_failed(TN_ERR_DEVICE, "order");
    fake.next_follow = CUDA_SUCCESS;
    TN_ON_STREAM (b)
        assert_int_equal(tn_eval(tn_exp(x)), TN_OK);
    assert_int_equal(tn_stream_synchronize(b), TN_OK);
    assert_int_equal(waiting(a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_scratch),  TEST(test_scratch_of_another), TEST(test_shared_memory), TEST(test_failures),
        TEST(test_told),     TEST(test_meanwhile),          TEST(test_counts),        TEST(test_unloading),
        TEST(test_blocking), TEST(test_refused),
    };
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    if (!two_streams_open())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
