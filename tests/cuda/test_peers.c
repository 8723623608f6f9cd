/* SPDX-License-Identifier: MIT */
/*
 * Copies between two GPUs, on a fake driver that does nothing before it must, and then only that or, by dice, some of
 * the rest: arrays that go back and forth, whose memory is used again at once, hold what they held; nobody waits for a
 * copy; each call is in the context of the GPU that it is about.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake.h"
#include "support/device.h"
#include "support/random.h"

enum { ARRAYS = 5, MOST = 3000, STEPS = 400, PROGRAMS = 30 };

static test_random common;

static unsigned roll(unsigned sides) { return (unsigned)(test_random_bits(&common) % sides); }

/* An array, and what is in it. */
typedef struct cell {
    tn_array *array;
    int32_t values[MOST];
} cell;

static int waits(void) { return fake.count.waits + fake.count.event_waits; }

static void upload(cell *c)
{
    static const int64_t sizes[] = {1, 500, MOST};
    tn_shape shape = TN_SHAPE(sizes[roll(3)]);
    for (int64_t i = 0; i < shape.dim[0]; i++)
        c->values[i] = (int32_t)test_random_bits(&common);
    tn_free(c->array);
    c->array = tn_own(tn_from_host(c->values, shape, TN_INT32, .device = tn_cuda((int)roll(2))));
}

static void move(cell *c)
{
    int before = waits(), peers = fake.count.peers;
    tn_array *moved = tn_own(tn_to(c->array, tn_cuda(!tn_device_of(c->array).index)));
    if (tn_eval(moved) != TN_OK)
        fail_msg("%s", tn_error());
    tn_free(c->array); /* its memory is free for the next one, though nothing has been copied yet */
    c->array = moved;
    assert_int_equal(waits(), before);
    assert_int_equal(fake.count.peers, peers + 1);
}

static void look(const cell *c)
{
    static int32_t found[MOST];
    size_t bytes = (size_t)tn_size(c->array) * sizeof *found;
    assert_int_equal(tn_to_host(c->array, found, bytes), TN_OK);
    assert_memory_equal(found, c->values, bytes);
}

static void test_programs(void **state)
{
    (void)state;
    for (int program = 0; program < PROGRAMS; program++) {
        static cell cells[ARRAYS];
        for (int k = 0; k < ARRAYS; k++)
            TN_SCOPE upload(&cells[k]);
        for (int i = 0; i < STEPS; i++)
            TN_SCOPE {
                cell *c = &cells[roll(ARRAYS)];
                (roll(4) == 0 ? upload : move)(c);
                if (roll(10) == 0)
                    look(c);
            }
        for (int k = 0; k < ARRAYS; k++) {
            look(&cells[k]);
            tn_free(cells[k].array);
            cells[k].array = NULL;
        }
    }
    assert_int_equal(fake.astray, 0);
    assert_int_equal(fake.count.reaches, 2); /* once each way */
}

int main(void)
{
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    common = test_random_new();
    fake_use();
    fake.lazy = true;
    fake.dice = roll;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
