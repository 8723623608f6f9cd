/* SPDX-License-Identifier: MIT */
/* The caching allocator over a device whose memory is counted. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "device/fake.h"
#include "support/random.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static fake f;

static int open_fake(void **state)
{
    (void)state;
    tn_clear_error();
    unsetenv("TANSO_MEMORY_LIMIT");
    return fake_open(&f, 200 * MIB) ? 0 : -1;
}

static int close_fake(void **state)
{
    (void)state;
    tn__fail_allocation_after(-1);
    return fake_close(&f) ? 0 : -1;
}

static tn_memory_info stats(void)
{
    tn_memory_info info = tn__allocator_stats(f.device.allocator);
    assert_int_equal(info.used + info.cached, f.lent);
    assert_true(info.peak >= info.used);
    return info;
}

static tn__storage *storage_of(size_t bytes)
{
    tn__storage *storage = tn__storage_new(&f.device, bytes);
    assert_non_null(storage);
    assert_int_equal(storage->bytes, bytes);
    assert_ptr_equal(storage->device, &f.device);
    assert_int_equal((uintptr_t)storage->memory % 64, 0);
    memset(storage->memory, 0x5A, bytes);
    return storage;
}

static void freed_memory_is_reused(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,       1,       4,           1000,        512 * KIB, 512 * KIB + 1,
                                   3 * MIB, 8 * MIB, 8 * MIB + 1, 50 * MIB + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn__storage *storage = storage_of(sizes[i]);
        void *memory = storage->memory;
        assert_non_null(memory);
        long before = f.allocations;
        for (int round = 0; round < 5; round++) {
            tn__storage_release(storage);
            storage = storage_of(sizes[i]);
            assert_ptr_equal(storage->memory, memory);
        }
        assert_int_equal(f.allocations, before);
        tn__storage_release(storage);
    }
    assert_int_equal(stats().used, 0);
}

static void references_are_counted(void **state)
{
    (void)state;
    tn__storage *storage = storage_of(100);
    assert_ptr_equal(tn__storage_retain(storage), storage);
    tn__storage_release(storage);
    assert_true(stats().used >= 100);
    tn__storage_release(storage);
    assert_int_equal(stats().used, 0);
    tn__storage_release(NULL);
}

static void small_requests_share_a_segment(void **state)
{
    (void)state;
    tn__storage *storage[100];
    for (int i = 0; i < 100; i++)
        storage[i] = storage_of(1000);
    assert_int_equal(f.allocations, 1);
    for (int i = 1; i < 100; i++)
        for (int j = 0; j < i; j++)
            assert_true(labs((char *)storage[i]->memory - (char *)storage[j]->memory) >= 1000);
    for (int i = 0; i < 100; i += 2) /* holes, then the rest: neighbours join again */
        tn__storage_release(storage[i]);
    for (int i = 1; i < 100; i += 2)
        tn__storage_release(storage[i]);
    tn__storage *large = storage_of(512 * KIB);
    assert_int_equal(f.allocations, 1);
    tn__storage_release(large);
    assert_int_equal(tn__allocator_trim(f.device.allocator), 2 * MIB); /* one block again */
    assert_int_equal(f.lent, 0);
}

/* However many of them are in use, by whatever turns, larger blocks lie where they lay. */
static void scalars_lie_apart(void **state)
{
    (void)state;
    tn__storage *scalar[20], *block = storage_of(257);
    void *memory = block->memory;
    for (int round = 0; round < 20; round++) {
        tn__storage_release(block);
        scalar[round] = storage_of((size_t)(round * 13 % 257));
        block = storage_of(257);
        assert_ptr_equal(block->memory, memory);
    }
    assert_int_equal(f.allocations, 2);
    assert_int_equal(f.lent, 2 * MIB + 64 * KIB);
    for (int i = 0; i < 20; i++)
        tn__storage_release(scalar[i * 7 % 20]);
    tn__storage_release(block);
    assert_int_equal(tn__allocator_trim(f.device.allocator), 2 * MIB + 64 * KIB);
}

static void middle_blocks_are_cut(void **state)
{
    (void)state;
    tn__storage *a = storage_of(5 * MIB), *b = storage_of(6 * MIB);
    assert_int_equal(f.allocations, 1);
    void *memory = a->memory;
    tn__storage_release(a);
    tn__storage *c = storage_of(2 * MIB), *d = storage_of(2 * MIB);
    assert_int_equal(f.allocations, 1);
    tn__storage_release(b);
    tn__storage_release(c);
    tn__storage_release(d);
    a = storage_of(5 * MIB);
    assert_ptr_equal(a->memory, memory);
    tn__storage_release(a);
}

static void large_blocks_stay_whole(void **state)
{
    (void)state;
    tn__storage *large = storage_of(40 * MIB);
    void *memory = large->memory;
    tn__storage_release(large);
    tn__storage *others[] = {storage_of(4), storage_of(9 * MIB), storage_of(20 * MIB)};
    for (int i = 0; i < 3; i++)
        assert_false((char *)others[i]->memory >= (char *)memory &&
                     (char *)others[i]->memory < (char *)memory + 40 * MIB);
    large = storage_of(39 * MIB); /* near enough to take the cached one */
    assert_ptr_equal(large->memory, memory);
    for (int i = 0; i < 3; i++)
        tn__storage_release(others[i]);
    tn__storage_release(large);
}

static void cache_goes_before_failure(void **state)
{
    (void)state;
    tn__storage_release(storage_of(150 * MIB));
    assert_true(stats().cached >= 150 * MIB);
    tn__storage *storage = storage_of(100 * MIB); /* does not fit beside the cached 150 */
    assert_true(f.lent < 150 * MIB);
    assert_true(tn_ok());
    assert_null(tn__storage_new(&f.device, 101 * MIB));
    assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
    static const char *const parts[] = {"fake:0: no memory for 105906176 bytes", "104857600 are used", "0 cached",
                                        "limit is 0 (none)",
                                        "the device has 209715200; free arrays or use smaller batches"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(tn_error(), parts[i]))
            fail_msg("'%s' is not in '%s'", parts[i], tn_error());
    tn_clear_error();
    tn__storage_release(storage);
    assert_null(tn__storage_new(&f.device, SIZE_MAX));
    assert_null(tn__storage_new(&f.device, SIZE_MAX / 2));
    assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
    tn_clear_error();
}

static void limits(void **state)
{
    (void)state;
    tn__storage *kept = storage_of(1 * MIB);
    size_t used = stats().used;
    tn__allocator_limit(f.device.allocator, used + 300 * KIB); /* less than a shared segment */
    assert_int_equal(stats().limit, used + 300 * KIB);
    tn__storage *storage[4];
    for (int i = 0; i < 3; i++)
        storage[i] = storage_of(100 * KIB); /* out of what is left of kept's segment: no other may come */
    storage[3] = tn__storage_new(&f.device, 1);
    for (int i = 0; i < 3; i++)
        tn__storage_release(storage[i]);
    assert_null(storage[3]);
    assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
    assert_non_null(strstr(tn_error(), "or raise the limit (tn_memory_limit, TANSO_MEMORY_LIMIT)"));
    tn_clear_error();
    tn__allocator_limit(f.device.allocator, 0);
    storage[3] = storage_of(1);
    tn__storage_release(storage[3]);
    tn__storage_release(kept);
    tn__allocator_limit(f.device.allocator, 10 * MIB); /* what is cached beyond it goes */
    assert_true(f.lent <= 10 * MIB);
    assert_null(tn__storage_new(&f.device, 10 * MIB + 1));
    tn_clear_error();
    tn__storage_release(storage_of(10 * MIB)); /* all of it, with no rounding beyond */
}

static void peaks(void **state)
{
    (void)state;
    tn__storage *a = storage_of(3 * MIB), *b = storage_of(3 * MIB);
    size_t high = stats().used;
    assert_true(high >= 6 * MIB);
    tn__storage_release(a);
    assert_int_equal(stats().peak, high);
    tn__allocator_reset_peak(f.device.allocator);
    assert_int_equal(stats().peak, stats().used);
    tn__storage_release(b);
}

static void trimming(void **state)
{
    (void)state;
    tn__storage *small = storage_of(1000), *large = storage_of(30 * MIB);
    tn__storage_release(large);
    assert_int_equal(tn__allocator_trim(f.device.allocator), 30 * MIB);
    assert_int_equal(f.lent, 2 * MIB); /* the segment that is in use */
    tn__storage_release(small);
    assert_int_equal(tn__allocator_trim(f.device.allocator), 2 * MIB);
    assert_int_equal(tn__allocator_trim(f.device.allocator), 0);
}

static void host_memory_is_not_hoarded(void **state)
{
    (void)state;
    fake host;
    assert_true(fake_open(&host, 100 * MIB));
    tn__allocator_close(host.device.allocator);
    host.device.capabilities.host_memory = true; /* a quarter of the memory may be cached */
    host.device.allocator = tn__allocator_new(&host.device);
    assert_non_null(host.device.allocator);
    tn__storage *storage[4];
    for (int i = 0; i < 4; i++)
        assert_non_null(storage[i] = tn__storage_new(&host.device, 12 * MIB));
    for (int i = 0; i < 4; i++)
        tn__storage_release(storage[i]);
    assert_int_equal(host.lent, 24 * MIB);
    assert_true(fake_close(&host));
}

static void released(void *user, void *memory)
{
    assert_ptr_equal(memory, user);
    ++*(int *)user;
}

static void wrapped_memory(void **state)
{
    (void)state;
    int count = 0;
    tn__storage *storage = tn__storage_wrap(&f.device, &count, sizeof count, released, &count);
    assert_ptr_equal(storage->memory, &count);
    tn__storage_retain(storage);
    tn__storage_release(storage);
    assert_int_equal(count, 0);
    tn__storage_release(storage);
    assert_int_equal(count, 1);
    tn__storage_release(tn__storage_wrap(&f.device, &count, sizeof count, NULL, NULL));
    assert_int_equal(f.allocations, 0);
    tn__fail_allocation_after(0);
    assert_null(tn__storage_wrap(&f.device, &count, sizeof count, released, &count));
    assert_int_equal(count, 1);
    assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
    tn_clear_error();
}

static void plain_memory(void **state)
{
    (void)state;
    void *memory[200];
    for (int i = 0; i < 200; i++) {
        assert_non_null(memory[i] = tn__device_allocate(&f.device, (size_t)i * 100));
        memset(memory[i], i, (size_t)i * 100);
    }
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < i * 100; j++)
            assert_int_equal(((unsigned char *)memory[i])[j], i);
    for (int i = 199; i >= 0; i--)
        tn__device_release(&f.device, memory[i], (size_t)i * 100);
    assert_int_equal(stats().used, 0);
    tn__device_release(&f.device, NULL, 0);
    tn__device_release(&f.device, &f, 8); /* not its own: says so on stderr, and harms nothing */
    assert_int_equal(stats().used, 0);
}

/* Random requests: blocks never overlap, and the numbers always add up. */
static void random_requests(void **state)
{
    (void)state;
    test_random r = test_random_new();
    enum { SLOTS = 64 };
    tn__storage *storage[SLOTS] = {0};
    unsigned char tag[SLOTS];
    for (int round = 0; round < 20000; round++) {
        int i = (int)test_random_int(&r, 0, SLOTS - 1);
        if (storage[i]) {
            unsigned char *bytes = storage[i]->memory;
            size_t last = storage[i]->bytes - 1;
            assert_int_equal(bytes[0], tag[i]);
            assert_int_equal(bytes[last], tag[i]);
            assert_int_equal(bytes[last / 2], tag[i]);
            tn__storage_release(storage[i]);
            storage[i] = NULL;
        } else {
            size_t bytes = (size_t)1 << test_random_int(&r, 0, 24);
            bytes += (size_t)test_random_int(&r, 0, (int64_t)bytes);
            storage[i] = tn__storage_new(&f.device, bytes);
            if (!storage[i]) {
                tn_clear_error();
                continue;
            }
            unsigned char *memory = storage[i]->memory;
            tag[i] = (unsigned char)test_random_bits(&r);
            memory[0] = memory[bytes - 1] = memory[(bytes - 1) / 2] = tag[i];
        }
        if (round % 100 == 0)
            stats();
    }
    for (int i = 0; i < SLOTS; i++)
        tn__storage_release(storage[i]);
    assert_int_equal(stats().used, 0);
    tn__allocator_trim(f.device.allocator);
    assert_int_equal(f.lent, 0); /* everything joined into whole segments again */
}

static void *churn(void *unused)
{
    (void)unused;
    long bad = 0;
    uint64_t x = (uintptr_t)&bad;
    for (int round = 0; round < 3000; round++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = 8 + (x >> 40) % (round % 10 == 0 ? MIB : 4096);
        tn__storage *storage = tn__storage_new(&f.device, bytes);
        void *plain = tn__device_allocate(&f.device, 256);
        if (!storage || !plain) {
            bad++;
            continue;
        }
        memcpy(storage->memory, &x, 8);
        memset(plain, 1, 256);
        sched_yield();
        bad += memcmp(storage->memory, &x, 8) != 0;
        tn__device_release(&f.device, plain, 256);
        tn__storage_release(storage);
    }
    return (void *)bad;
}

static void eight_threads(void **state)
{
    (void)state;
    pthread_t thread[8];
    for (int t = 0; t < 8; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, churn, NULL), 0);
    for (int t = 0; t < 8; t++) {
        void *bad;
        pthread_join(thread[t], &bad);
        assert_null(bad);
    }
    assert_int_equal(stats().used, 0);
}

/* Whichever allocation of records fails, the call reports it, nothing leaks, and the next call works. */
static void without_host_memory(void **state)
{
    (void)state;
    tn__storage *held[300];
    int failures = 0;
    for (int i = 0; i < 300; i++) { /* past several slabs of records */
        tn__fail_allocation_after(0);
        held[i] = tn__storage_new(&f.device, 300);
        tn__fail_allocation_after(-1);
        if (!held[i]) {
            failures++;
            assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
            tn_clear_error();
            held[i] = storage_of(300);
        }
    }
    assert_true(failures >= 3);
    for (int i = 0; i < 300; i++)
        tn__storage_release(held[i]);
    fake other;
    tn__fail_allocation_after(0);
    assert_false(fake_open(&other, MIB));
    tn__fail_allocation_after(-1);
    tn_clear_error();
}

static void limit_from_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t limit;
    } rows[] = {{"1048576", MIB},
                {"64K", 64 * KIB},
                {"3m", 3 * MIB},
                {"1.5G", 1536 * MIB},
                {"2T", MIB << 21},
                {"25%", 50 * MIB},
                {"", 0},
                {"much", 0},
                {"-5", 0},
                {"5X", 0},
                {"5 M", 0},
                {"0", 0},
                {"nan", 0},
                {"1e40", 0},
                {"fake:0=3M,2M", 3 * MIB},
                {"2M,fake:0=3M", 3 * MIB},
                {"100%", 200 * MIB},
                {"101%", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("TANSO_MEMORY_LIMIT", rows[i].text, 1);
        fake other;
        assert_true(fake_open(&other, 200 * MIB));
        assert_int_equal(tn__allocator_stats(other.device.allocator).limit, rows[i].limit);
        assert_true(fake_close(&other));
    }
    unsetenv("TANSO_MEMORY_LIMIT");
    assert_int_equal(tn__parse_bytes("50%", 0), 0); /* of an unknown total */
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, open_fake, close_fake)
int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(freed_memory_is_reused),  ROW(references_are_counted),    ROW(small_requests_share_a_segment),
        ROW(scalars_lie_apart),       ROW(middle_blocks_are_cut),     ROW(large_blocks_stay_whole),
        ROW(cache_goes_before_failure),
        ROW(limits),                  ROW(peaks),                     ROW(trimming),
        ROW(host_memory_is_not_hoarded), ROW(wrapped_memory),         ROW(plain_memory),
        ROW(random_requests),         ROW(eight_threads),             ROW(without_host_memory),
        ROW(limit_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
