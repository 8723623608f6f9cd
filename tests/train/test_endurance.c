/* SPDX-License-Identifier: MIT */
/* Memory stays flat over many steps of training. TANSO_TEST_STEPS=1000000 makes the run as long as one likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"
#include "support/device.h"
#include "support/resident.h"

enum { STEPS = RESIDENT_SANITIZED ? 1000 : 20000 };

typedef struct run {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *loader;
    tn_meter *meter;
} run;

/* The loop of a user: epochs of minibatches, the last one shorter; what is read now and then is read at other steps
 * than what is computed anyway. */
static void train(run *r, long steps)
{
    for (long done = 0; done < steps;) {
        for (tn_batch b; tn_loader_next(r->loader, &b); done++) TN_SCOPE {
            tn_array *y = tn_forward(r->net, b.x), *loss = tn_softmax_cross_entropy(y, b.t);
            assert_int_equal(tn_backward(loss), TN_OK);
            assert_int_equal(tn_step(r->optimizer), TN_OK);
            tn_meter_add(r->meter, loss, (double)b.size);
            if (done % 100 == 0)
                assert_true(tn_item(tn_accuracy(tn_forward(r->net, b.x), b.t)) >= 0);
        }
        assert_true(tn_meter_take(r->meter) > 0);
    }
    if (!tn_ok())
        fail_msg("%s", tn_error());
}

static void test_memory_is_flat(void **state)
{
    (void)state;
    const char *wanted = getenv("TANSO_TEST_STEPS");
    long steps = wanted ? atol(wanted) : STEPS;
    tn_seed(3);
    run r = {.net = tn_sequential(tn_linear(8), tn_relu_layer(), tn_dropout(0.1), tn_linear(3))};
    r.optimizer = tn_adam(r.net, .clip_norm = 5);
    r.loader = tn_loader_new(tn_spiral(30, 1), .batch = 16, .shuffle = true, .no_prefetch = true);
    r.meter = tn_meter_new(test_device());
    train(&r, steps / 10);
    long resident = resident_kilobytes();
    size_t arrays = tn_live_arrays(), used = tn_memory_stats(test_device()).used,
           cached = tn_memory_stats(test_device()).cached;
    uint64_t misses = tn_engine_stats().plan_misses;
    tn__fail_allocation_after(-1);
    train(&r, steps);
    long allocations = tn__fail_allocation_after(-1);
    long grown = resident_kilobytes() - resident;
    print_message("%ld steps: %ld kB resident, %ld kB more than after warming up; %.1f allocations a step\n", steps,
                  resident + grown, grown, (double)allocations / (double)steps);
    assert_int_equal(tn_live_arrays(), arrays);
    assert_int_equal(tn_memory_stats(test_device()).used, used);
    assert_int_equal(tn_memory_stats(test_device()).cached, cached);
    assert_int_equal(tn_engine_stats().plan_misses, misses);
    if (!RESIDENT_SANITIZED && steps >= STEPS) { /* a shorter run has hardly warmed up */
        assert_true(resident > 0);
        assert_true(grown < 512); /* a block forgotten in each step would be 640: malloc's smallest takes 32 bytes */
    }
    tn_meter_free(r.meter);
    tn_loader_free(r.loader);
    tn_optimizer_free(r.optimizer);
    tn_layer_free(r.net);
    assert_int_equal(tn_live_arrays(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_flat)};
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* or the kernel may make 2 MiB resident at once, when it likes */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
