/* SPDX-License-Identifier: MIT */
/*
 * What the error of a lost device names, on a fake driver: all that was started since the GPU was known to be well, in
 * the order of starting, by the names of kernels and plans; nothing that has been waited for, nothing that is gone. And
 * the wait for what runs behind a failure is told of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/base.h>

#include "cuda/fake.h"
#include "device/launch.h"
#include "ops/ops.h"

enum { STEPS = 3 };

/* A plan of kernels k0, k1, and of a copy at its end where it is asked for. */
typedef struct plan {
    tn__program program;
    tn__step step[STEPS];
    tn__operand operand[2];
    tn__buffer buffer[2];
    int64_t param;
    int slot;
    tn_dtype dtype;
    char source[64];
    tn__executable *executable;
} plan;

static tn__device *device;
static tn__cuda_device *cuda;
static float memory[2][4];

static void load(plan *p, const char *label, int kernels, bool copies)
{
    static int texts;
    memset(p, 0, sizeof *p);
    p->dtype = TN_UINT64;
    for (int k = 0; k < 2; k++)
        p->operand[k] = (tn__operand){.buffer = k, .dtype = TN_FLOAT32, .ndim = 1, .dim = {4}, .stride = {1}};
    for (int i = 0; i < kernels; i++)
        p->step[i] = (tn__step){.kind = TN__STEP_KERNEL,
                                .kernel = {.name = i ? "k1" : "k0", .launch = {.blocks = 1, .threads = 32}},
                                .operand_count = 2, .output_count = 1, .operand = p->operand, .param_count = 1,
                                .param = &p->param, .scalar_count = 1, .scalar = &p->slot, .label = (char *)label};
    if (copies)
        p->step[kernels] = (tn__step){.kind = TN__STEP_OP, .op = TN__OP_COPY, .operand_count = 2, .output_count = 1,
                                      .operand = p->operand};
    snprintf(p->source, sizeof p->source, "k0 k1 %ld %d %ld", (long)getpid(), texts++, (long)time(NULL));
    p->program = (tn__program){.buffer_count = 2, .buffer = p->buffer, .scalar_count = 1, .scalar_dtype = &p->dtype,
                               .step_count = kernels + copies, .step = p->step, .source = p->source};
    assert_int_equal(device->ops->load(device, &p->program, &p->executable), TN_OK);
}

static void run(plan *p)
{
    void *buffers[2] = {memory[0], memory[1]};
    assert_int_equal(device->ops->run(p->executable, buffers, (uint64_t[]){1}), TN_OK);
}

static void launch(const char *name)
{
    tn__launch l = {.source = name, .name = name, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    assert_int_equal(device->ops->launch(device, &l), TN_OK);
}

static void well(void) { assert_int_equal(device->ops->synchronize(device), TN_OK); }

/* The error that the device is lost with. */
static const char *lose(void)
{
    static char message[4096];
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(device->ops->synchronize(device), TN_ERR_DEVICE);
    fake.next_wait = CUDA_SUCCESS;
    snprintf(message, sizeof message, "%s", tn_error());
    tn_clear_error();
    assert_non_null(strstr(message, "cuda:0 is lost after FAKE_ILLEGAL_ADDRESS"));
    assert_true(strlen(message) < 1000); /* a line of the log takes no more */
    return message;
}

static void assert_names(const char *message, const char *what)
{
    if (!strstr(message, what))
        fail_msg("'%s' is not in '%s'", what, message);
}

static void assert_silent(const char *message, const char *what)
{
    if (strstr(message, what))
        fail_msg("'%s' is in '%s'", what, message);
}

static int setup(void **state)
{
    (void)state;
    device = fake_open();
    cuda = device ? tn__cuda_of(device) : NULL;
    fake.words = 3;
    fake.scalars = 1;
    return device == NULL;
}

/* ---- which ---- */

/* What was started, in its order, the first run of a program and its graph alike. */
static void test_order(void **state)
{
    (void)state;
    for (int runs = 1; runs <= 3; runs++) {
        plan a, b;
        setup(state);
        load(&a, "add sigmoid", 2, true);
        load(&b, "matmul", 1, false);
        launch("early");
        for (int i = 0; i < runs; i++)
            run(&a);
        launch("stomp");
        for (int i = 0; i < runs; i++)
            run(&b);
        assert_int_equal(fake.count.waits, 0);
        const char *message = lose();
        assert_names(message, "the work under way was kernel early; plan 1 (cubin ");
        assert_names(message, "): k0 add sigmoid, k1 add sigmoid, copy; kernel stomp; plan 2 (cubin ");
        assert_names(message, "): k0 matmul (started last), TANSO_CUDA_BLOCKING=1 tells which of it failed");
        assert_int_equal(device->ops->run(a.executable, (void *[]){memory[0], memory[1]}, (uint64_t[]){1}),
                         TN_ERR_DEVICE);
        assert_names(tn_error(), "kernel stomp"); /* and so it stays */
        tn_clear_error();
        device->ops->unload(a.executable);
        device->ops->unload(b.executable);
    }
}

/* Waiting for the streams, for a value or for an event clears what was before, and nothing else. */
static void test_good(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        plan p;
        setup(state);
        load(&p, "add", 1, false);
        const tn__stream_ops *streams = device->ops->streams;
        void *event = streams->event_new(device);
        launch("early");
        assert_int_equal(streams->event_record(device, event), TN_OK);
        if (way == 3)
            launch("between");
        float back[4];
        switch (way) {
        case 0: well(); break;
        case 1: assert_int_equal(device->ops->read(device, back, memory[0], sizeof back), TN_OK); break;
        case 2:
        case 3: assert_int_equal(streams->event_wait(device, event), TN_OK); break;
        }
        run(&p);
        const char *message = lose();
        assert_silent(message, "early");
        assert_names(message, way == 3 ? "was kernel between; plan 1" : "was plan 1 (cubin ");
        assert_names(message, way == 3 ? "k0 add (started last)" : "): k0 add, TANSO_CUDA_BLOCKING=1");
        streams->event_free(device, event);
        device->ops->unload(p.executable);
    }
    setup(state);
    launch("early");
    well();
    assert_names(lose(), "; no work of Tanso's was under way");
    setup(state);
    assert_names(lose(), "; no work of Tanso's was under way");
}

/* A launch that is refused, as the context is lost already, was none. */
static void test_refused(void **state)
{
    (void)state;
    plan p;
    load(&p, "add", 2, false);
    launch("stomp");
    fake.next_launch = CUDA_ERROR_ILLEGAL_ADDRESS;
    void *buffers[2] = {memory[0], memory[1]};
    assert_int_equal(device->ops->run(p.executable, buffers, (uint64_t[]){1}), TN_ERR_DEVICE);
    assert_names(tn_error(), "; the work under way was kernel stomp, ");
    tn_clear_error();
    device->ops->unload(p.executable);
}

/* Runs that are held back until there are several count once they are launched, as one piece. */
static void test_together(void **state)
{
    (void)state;
    plan a, b;
    load(&a, "update", 2, false);
    load(&b, "other", 1, false);
    for (int i = 0; i < 3; i++) {
        run(&a);
        run(&b);
    }
    well();
    for (int i = 0; i < 3 * TN__CUDA_TOGETHER; i++) {
        cuda->held.last = UINT64_MAX / 2; /* the run before was a moment ago */
        run(&a);
    }
    assert_true(fake.count.graph_launches < 2 * TN__CUDA_TOGETHER);
    launch("stomp");
    for (int i = 0; i < 3 * TN__CUDA_TOGETHER; i++) {
        cuda->held.last = UINT64_MAX / 2;
        run(&a);
    }
    const char *message = lose();
    assert_names(message, "was kernel stomp; plan 1 (cubin ");
    assert_names(message, "): k0 update, k1 update (started last)");
    assert_silent(message, "other");
    device->ops->unload(a.executable);
    device->ops->unload(b.executable);
}

/* Of many, the last ones; users' kernels before programs, however long ago. */
static void test_many(void **state)
{
    (void)state;
    enum { PLANS = 20 };
    static char label[PLANS][300];
    plan p[PLANS];
    launch("stomp");
    for (int i = 0; i < PLANS; i++) {
        snprintf(label[i], sizeof label[i], "number%d%s%0*d", i, i % 2 ? "." : " ", i % 2 ? 200 : 1, 0);
        load(&p[i], label[i], 1 + i % 3, false);
    }
    for (int i = 0; i < PLANS; i++)
        run(&p[i]);
    const char *message = lose();
    assert_names(message, "was 21 pieces, among them kernel stomp; plan 14 ");
    for (int i = 0; i < PLANS; i++) {
        char name[16];
        snprintf(name, sizeof name, ": k0 number%d%s", i, i % 2 ? "." : " ");
        (i < PLANS - 7 ? assert_silent : assert_names)(message, name);
    }
    assert_names(message, "00...");
    for (int i = 0; i < PLANS; i++)
        device->ops->unload(p[i].executable);
}

/* A long plan alone is told of at more length, and how much of it there is more. */
static void test_long(void **state)
{
    (void)state;
    plan p;
    static char label[450];
    memset(label, 'x', sizeof label - 1);
    load(&p, label, 3, false);
    run(&p);
    const char *message = lose();
    assert_names(message, label);
    assert_names(message, "x, and 2 more steps, TANSO");
    device->ops->unload(p.executable);
}

/* Programs that are gone are not looked at any more: they were waited for. If that is what failed, they are named. */
static void test_gone(void **state)
{
    (void)state;
    plan p;
    char *label = strdup("gone");
    assert_non_null(label);
    load(&p, label, 1, false);
    for (int i = 0; i < 3; i++)
        run(&p);
    launch("early");
    device->ops->unload(p.executable);
    memset(label, 'z', 4);
    memset(&p, 0xee, sizeof p);
    launch("late");
    const char *message = lose();
    assert_names(message, "; the work under way was kernel late, ");
    setup(state);
    memcpy(label, "gone", 4);
    load(&p, label, 1, false);
    run(&p);
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    device->ops->unload(p.executable);
    fake.next_wait = CUDA_SUCCESS;
    assert_true(tn_ok()); /* unloading cannot fail, the next call does */
    free(label);
    memset(&p, 0xee, sizeof p);
    assert_int_equal(device->ops->synchronize(device), TN_ERR_DEVICE);
    assert_names(tn_error(), ": k0 gone, TANSO_CUDA_BLOCKING=1");
    tn_clear_error();
}

/* Each launch is waited for: the step is known. */
static void test_blocking(void **state)
{
    (void)state;
    plan p;
    cuda->blocking = true;
    cuda->graphs = false;
    load(&p, "add sigmoid", 2, true);
    launch("early");
    run(&p);
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    void *buffers[2] = {memory[0], memory[1]};
    assert_int_equal(device->ops->run(p.executable, buffers, (uint64_t[]){1}), TN_ERR_DEVICE);
    assert_names(tn_error(), "; what failed is k0 add sigmoid of plan 1 (cubin ");
    assert_silent(tn_error(), "early");
    assert_silent(tn_error(), "k1");
    assert_silent(tn_error(), "BLOCKING");
    tn_clear_error();
    fake.next_wait = CUDA_SUCCESS;
    device->ops->unload(p.executable);
}

/* A stream that was waited for is well, others are not. */
static void test_streams(void **state)
{
    (void)state;
    const tn__stream_ops *streams = device->ops->streams;
    int stream = streams->stream_new(device);
    assert_true(stream > 0);
    launch("own");
    tn__cuda_work *other = &(tn__cuda_work){.kernel = "beside"};
    tn__cuda_work_add(cuda, other);
    tn__cuda_note(cuda, other, stream);
    assert_int_equal(streams->stream_wait(device, 0), TN_OK);
    assert_int_equal(atomic_load(&other->started[stream]), 2);
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(streams->stream_wait(device, stream), TN_ERR_DEVICE);
    fake.next_wait = CUDA_SUCCESS;
    assert_names(tn_error(), "; the work under way was kernel beside, ");
    tn_clear_error();
    tn__cuda_work_remove(cuda, other);
    atomic_fetch_and(&device->streams, ~((uint32_t)1 << stream));
}

/* ---- the debug switch ---- */

static void poison(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    (void)name, (void)words, (void)scalars;
    fake_fail(failure, 2, -9);
}

/* What is written to stderr meanwhile. */
static void listen(FILE *to, int *before)
{
    fflush(stderr);
    *before = dup(STDERR_FILENO);
    assert_true(*before >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0);
}

static void listened(FILE *to, int before, char *text, size_t room)
{
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(to);
    text[fread(text, 1, room - 1, to)] = 0;
    fclose(to);
}

/* The wait for what runs behind an index out of range: reported, or, where waits are forbidden, counted; the call fails
 * with the failure. */
static void test_failure_waits(void **state)
{
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        plan p;
        setup(state);
        load(&p, "take", 1, false);
        device->ops->unload(p.executable);
        p.step[0].kernel.may_fail = true;
        assert_int_equal(device->ops->load(device, &p.program, &p.executable), TN_OK);
        cuda->waits = forbidden ? TN__CUDA_WAITS_FORBIDDEN : TN__CUDA_WAITS_REPORTED;
        fake.kernel_runs = poison;
        run(&p);
        fake_flush();
        fake.kernel_runs = NULL;
        unsigned long long before = cuda->wait_count;
        int waits = fake.count.waits, kept;
        char text[1000];
        FILE *file = tmpfile();
        assert_non_null(file);
        listen(file, &kept);
        void *buffers[2] = {memory[0], memory[1]};
        tn_status status = device->ops->run(p.executable, buffers, (uint64_t[]){1});
        listened(file, kept, text, sizeof text);
        assert_int_equal(status, TN_ERR_INDEX);
        assert_names(tn_error(), "index -9 is out of range");
        tn_clear_error();
        assert_int_equal(cuda->wait_count, before + 1);
        assert_int_equal(fake.count.waits, waits + 1);
        if (forbidden)
            assert_string_equal(text, "");
        else
            assert_string_equal(text, "tanso: warn: cuda: waiting for cuda:0: an index was out of range\n");
        cuda->waits = TN__CUDA_WAITS_ALLOWED;
        device->ops->unload(p.executable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_good),
        cmocka_unit_test_setup(test_refused, setup),
        cmocka_unit_test_setup(test_together, setup),
        cmocka_unit_test_setup(test_many, setup),
        cmocka_unit_test_setup(test_long, setup),
        cmocka_unit_test_setup(test_gone, setup),
        cmocka_unit_test_setup(test_blocking, setup),
        cmocka_unit_test_setup(test_streams, setup),
        cmocka_unit_test(test_failure_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
