/* SPDX-License-Identifier: MIT */
/*
 * Random programs on several streams, on a fake driver that does nothing before it must, and then only what it must or,
 * by dice, some of the rest. What they read is what the same programs read that run piece by piece on the device's own
 * stream.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/stand_in.h"
#include "support/device.h"
#include "support/random.h"

enum { ARRAYS = 6, STREAMS = 4, EVENTS = 3, OPERATIONS = 120, THREADS = 4, PROGRAMS = 25 };
static const int64_t sizes[] = {33, 1000, 20000};

static tn__device *device;
static test_random common;

/* In any thread. */
static void must(bool done)
{
    if (done)
        return;
    fprintf(stderr, "failed: %s\n", tn_error());
    abort();
}

static unsigned roll(unsigned sides) { return (unsigned)(test_random_bits(&common) % sides); }

/* A program's arrays, and what it has read. */
typedef struct program {
    test_random random;
    bool eager; /* piece by piece, without streams */
    tn_array *array[ARRAYS];
    int size[ARRAYS];
    tn_stream *stream[STREAMS];
    tn_event *event[EVENTS];
    bool recorded[EVENTS];
    const tn_array *shared; /* several threads' */
    uint64_t seen[OPERATIONS + ARRAYS];
    int seen_count;
} program;

static unsigned choose(program *p, unsigned count) { return (unsigned)(test_random_bits(&p->random) % count); }

static void replace(program *p, int k, tn_array *with)
{
    tn_free(p->array[k]);
    p->array[k] = with ? tn_own(with) : NULL;
}

static void upload(program *p, int k)
{
    static _Thread_local float values[20000];
    p->size[k] = (int)choose(p, 3);
    for (int64_t i = 0; i < sizes[p->size[k]]; i++)
        values[i] = (float)choose(p, 1 << 20);
    replace(p, k, tn_from_host(values, TN_SHAPE(sizes[p->size[k]]), TN_FLOAT32));
}

static void look(program *p, const tn_array *x)
{
    static _Thread_local unsigned char values[80000];
    must(tn_to_host(x, values, sizeof values) == TN_OK);
    p->seen[p->seen_count++] = stand_in_hash(1, values, (size_t)tn_size(x) * 4);
}

/* Another array of the size of k's, or k. */
static int partner(program *p, int k)
{
    int from = (int)choose(p, ARRAYS);
    for (int i = 0; i < ARRAYS; i++)
        if (p->size[(from + i) % ARRAYS] == p->size[k])
            return (from + i) % ARRAYS;
    return k;
}

static void compute(program *p, int k)
{
    int i = partner(p, k), j = partner(p, k);
    tn_array *sum = tn_add(p->array[i], tn_multiply(p->array[j], (double)choose(p, 100)));
    if (p->shared && p->size[k] == 1)
        sum = tn_maximum(sum, p->shared);
    if (choose(p, 3) == 0) /* by a value that is read twice: memory of the run alone */
        sum = tn_divide(sum, tn_sum(tn_exp(sum)));
    must(tn_eval(sum) == TN_OK);
    replace(p, k, sum);
}

static void update(program *p, int k, int times)
{
    for (; times > 0; times--) {
        tn_add_assign(p->array[k], p->array[partner(p, k)]);
        must(tn_eval(p->array[k]) == TN_OK);
    }
}

static void renew(program *p, int s)
{
    tn_stream_free(p->stream[s]);
    p->stream[s] = tn_stream_new(tn_cuda(0));
    must(p->stream[s] != NULL);
}

static void wait_or_record(program *p, int e)
{
    if (p->recorded[e] && choose(p, 2)) {
        must(tn_event_wait(p->event[e]) == TN_OK);
    } else {
        p->recorded[e] = true;
        must(tn_event_record(p->event[e]) == TN_OK);
    }
}

enum { ALL_ALONE = 11, OPERATION_KINDS = 13 };

static void operate(program *p, unsigned what)
{
    int k = (int)choose(p, ARRAYS);
    switch (what) {
    case 0:
    case 1:
        upload(p, k);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        compute(p, k);
        break;
    case 6:
        update(p, k, 1);
        break;
    case 7: /* quickly, so that runs are held back where they may be */
        update(p, k, 6);
        break;
    case 8:
        look(p, p->array[k]);
        break;
    case 9:
        look(p, tn_sum(p->array[k]));
        break;
    case 10:
        wait_or_record(p, (int)choose(p, EVENTS));
        break;
    case ALL_ALONE: {
        int s = (int)choose(p, STREAMS), rare = (int)choose(p, 8);
        if (rare < 2 && !p->eager)
            renew(p, s);
        else if (rare == 2)
            must(tn_synchronize(tn_cuda(0)) == TN_OK);
        else if (rare == 3)
            tn_memory_trim(tn_cuda(0));
        break;
    }
    case 12: /* one value with two handles: neither may overwrite it */
        replace(p, k, tn_reshape(p->array[partner(p, k)], TN_SHAPE(-1)));
        break;
    }
}

static void run(program *p)
{
    for (int k = 0; k < ARRAYS; k++)
        upload(p, k);
    for (int k = 0; k < ARRAYS; k++) /* before there is any stream nobody notes what is used by whom */
        update(p, k, 6);
    for (int s = 0; s < STREAMS && !p->eager; s++)
        p->stream[s] = tn_stream_new(tn_cuda(0));
    for (int e = 0; e < EVENTS; e++)
        p->event[e] = tn_event_new(tn_cuda(0));
    for (int i = 0; i < OPERATIONS; i++)
        TN_SCOPE {
            unsigned what = choose(p, OPERATION_KINDS), s = choose(p, STREAMS + 1);
            bool own = s == STREAMS || p->eager || what == ALL_ALONE; /* a stream is not freed where it is used */
            TN_ON_STREAM (own ? NULL : p->stream[s])
                operate(p, what);
            if (p->eager)
                fake_flush();
        }
    for (int k = 0; k < ARRAYS; k++) {
        look(p, p->array[k]);
        replace(p, k, NULL);
    }
    for (int s = 0; s < STREAMS && !p->eager; s++)
        tn_stream_free(p->stream[s]);
    for (int e = 0; e < EVENTS; e++)
        tn_event_free(p->event[e]);
    must(tn_ok());
}

static program *both(uint64_t seed, bool eager, const tn_array *shared)
{
    program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (program){.random = {seed}, .eager = eager, .shared = shared};
    return p;
}

static void compare(program *eager, program *lazy)
{
    assert_int_equal(eager->seen_count, lazy->seen_count);
    for (int i = 0; i < eager->seen_count; i++)
        if (eager->seen[i] != lazy->seen[i])
            fail_msg("value %d of %d that was read differs", i, eager->seen_count);
    free(eager);
    free(lazy);
}

static void test_programs(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        uint64_t seed = test_random_bits(&common);
        program *eager = both(seed, true, NULL), *lazy = both(seed, false, NULL);
        assert_int_equal(tn_memory_limit(tn_cuda(0), i % 3 == 0 ? 0 : (size_t)5 << 20), TN_OK);
        fake.lazy = false;
        run(eager);
        fake.lazy = true;
        fake.dice = i % 2 ? roll : NULL;
        run(lazy);
        assert_int_equal(device->streams, 0);
        compare(eager, lazy);
        fake_flush();
        tn_memory_trim(tn_cuda(0));
    }
}

static void *run_thread(void *user)
{
    must(tn_set_device(tn_cuda(0)) == TN_OK);
    run(user);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    assert_int_equal(tn_memory_limit(tn_cuda(0), 0), TN_OK);
    for (int i = 0; i < PROGRAMS / 5; i++)
        TN_SCOPE {
            static float values[1000];
            program *eager[THREADS], *lazy[THREADS];
            pthread_t thread[THREADS];
            fake.lazy = false;
            tn_array *shared = tn_from_host(values, TN_SHAPE(1000), TN_FLOAT32);
            for (int t = 0; t < THREADS; t++) {
                uint64_t seed = test_random_bits(&common);
                eager[t] = both(seed, true, shared);
                lazy[t] = both(seed, false, shared);
                run(eager[t]);
            }
            fake.lazy = true;
            fake.dice = i % 2 ? roll : NULL;
            for (int t = 0; t < THREADS; t++)
                assert_int_equal(pthread_create(&thread[t], NULL, run_thread, lazy[t]), 0);
            for (int t = 0; t < THREADS; t++)
                pthread_join(thread[t], NULL);
            assert_int_equal(device->streams, 0);
            for (int t = 0; t < THREADS; t++)
                compare(eager[t], lazy[t]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_threads)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    common = test_random_new();
    device = stand_in_use();
    if (device == NULL)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
