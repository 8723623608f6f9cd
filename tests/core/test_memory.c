/* SPDX-License-Identifier: MIT */
/* Allocation, its failure on demand, growing arrays and texts; and the two small neighbours, hashes and dump
 * switches. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"
#include "support/random.h"

static void the_nth_fails(void **state)
{
    (void)state;
    for (int n = 0; n < 5; n++) {
        tn__fail_allocation_after(n);
        void *memory[8];
        for (int i = 0; i < 8; i++) {
            memory[i] = i % 2 ? tn__alloc(10) : tn__calloc(2, 5);
            assert_int_equal(memory[i] == NULL, i == n);
            tn__free(memory[i]);
        }
        assert_int_equal(tn__fail_allocation_after(-1), 8);
    }
    assert_int_equal(tn__fail_allocation_after(-1), 0);
    tn__fail_allocation_after(0);
    assert_null(tn__realloc(NULL, 8));
    tn__fail_allocation_after(0);
    assert_null(tn__alloc_aligned(8));
    tn__fail_allocation_after(0);
    assert_null(tn__strdup("x"));
    tn__fail_allocation_after(0);
    assert_null(tn__format("%d", 1));
}

static void nothing_is_something(void **state)
{
    (void)state;
    void *memory[] = {tn__alloc(0), tn__calloc(0, 0), tn__realloc(NULL, 0), tn__alloc_aligned(0)};
    for (int i = 0; i < 4; i++) {
        assert_non_null(memory[i]);
        tn__free(memory[i]);
    }
    assert_null(tn__alloc_aligned(SIZE_MAX));
    assert_null(tn__alloc_aligned(SIZE_MAX - 63));
    tn__free(NULL);
}

static void aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 63, 64, 65, 4095, (size_t)4 << 20, ((size_t)5 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = tn__alloc_aligned(sizes[i]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 1, sizes[i]);
        tn__free(memory);
    }
}

static void growing(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(tn__grow((void **)&items, &capacity, (size_t)i + 1, sizeof *items));
        items[i] = i;
    }
    tn__fail_allocation_after(0);
    assert_true(tn__grow((void **)&items, &capacity, 1, sizeof *items)); /* fits already */
    assert_false(tn__grow((void **)&items, &capacity, capacity + 1, sizeof *items));
    tn__fail_allocation_after(-1);
    assert_false(tn__grow((void **)&items, &capacity, SIZE_MAX / 2, sizeof *items));
    assert_false(tn__grow((void **)&items, &capacity, SIZE_MAX, 1));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    tn__free(items);
}

static void texts(void **state)
{
    (void)state;
    tn__text text = {0};
    char *taken = tn__text_take(&text);
    assert_string_equal(taken, "");
    tn__free(taken);
    for (int i = 0; i < 100; i++)
        tn__text_addf(&text, "%d,", i);
    tn__text_add(&text, "end");
    tn__text_addn(&text, "ing tail", 3);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 6);
    taken = tn__text_take(&text);
    assert_int_equal(strncmp(taken, "0,1,2,", 6), 0);
    assert_string_equal(taken + strlen(taken) - 9, "99,ending");
    assert_null(text.data);
    tn__free(taken);
}

/* Of every length beside every room that is left, as what does not fit is written once more. */
static void texts_that_just_fit(void **state)
{
    (void)state;
    char before[80], whole[160];
    memset(before, 'x', sizeof before);
    for (int held = 0; held < 70; held++)
        for (int length = 0; length < 70; length++) {
            tn__text text = {0};
            tn__text_addn(&text, before, (size_t)held);
            tn__text_addf(&text, "%0*d", length, 7);
            int all = snprintf(whole, sizeof whole, "%.*s%0*d", held, before, length, 7);
            assert_int_equal(text.length, all);
            assert_true(text.capacity > text.length);
            assert_string_equal(text.data, whole);
            tn__free(text.data);
        }
}

static void texts_without_memory(void **state)
{
    (void)state;
    for (int n = 0; n < 6; n++) {
        tn__fail_allocation_after(n);
        tn__text text = {0};
        tn__text_add(&text, "first words");
        for (int i = 0; i < 12; i++)
            tn__text_addf(&text, "%020d", i);
        bool failed = text.failed;
        if (failed && text.data)
            assert_int_equal(strncmp(text.data, "first words", 11), 0); /* keeps what fitted */
        char *taken = tn__text_take(&text);
        tn__fail_allocation_after(-1);
        assert_int_equal(failed, taken == NULL);
        assert_int_equal(failed, n < 5);
        tn__free(taken);
    }
}

static void formats(void **state)
{
    (void)state;
    char *text = tn__format("%s=%d", "x", 7), *copy = tn__strdup(text);
    assert_string_equal(text, "x=7");
    assert_string_equal(copy, text);
    tn__free(text);
    tn__free(copy);
}

static void *allocate_many(void *failures)
{
    for (int i = 0; i < 20000; i++) {
        void *memory = tn__alloc(1);
        if (!memory)
            __atomic_fetch_add((int *)failures, 1, __ATOMIC_RELAXED);
        tn__free(memory);
    }
    return NULL;
}

static void one_failure_among_threads(void **state)
{
    (void)state;
    int failures = 0;
    pthread_t thread[4];
    tn__fail_allocation_after(30000);
    for (int t = 0; t < 4; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, allocate_many, &failures), 0);
    for (int t = 0; t < 4; t++)
        pthread_join(thread[t], NULL);
    assert_int_equal(tn__fail_allocation_after(-1), 80000);
    assert_int_equal(failures, 1);
}

/* Every single-bit change of a key changes the hash, and about half its bits. */
static void hashes(void **state)
{
    (void)state;
    test_random r = test_random_new();
    unsigned char key[67];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)test_random_bits(&r);
    long changed = 0, flips = 0;
    for (size_t length = 0; length <= sizeof key; length++) {
        uint64_t whole = tn__hash(key, length, 1);
        assert_int_equal(whole, tn__hash(key, length, 1));
        assert_int_not_equal(whole, tn__hash(key, length, 2));
        if (length)
            assert_int_not_equal(whole, tn__hash(key, length - 1, 1));
        for (size_t bit = 0; bit < 8 * length; bit++) {
            key[bit / 8] ^= (unsigned char)(1 << bit % 8);
            uint64_t other = tn__hash(key, length, 1);
            key[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_int_not_equal(whole, other);
            changed += __builtin_popcountll(whole ^ other);
            flips++;
        }
    }
    assert_true(changed > flips * 31 && changed < flips * 33);
    unsigned char zeros[40] = {0};
    for (size_t length = 1; length < sizeof zeros; length++) /* trailing zeros count */
        assert_int_not_equal(tn__hash(zeros, length, 0), tn__hash(zeros, length - 1, 0));
}

static void names_of_hashes(void **state)
{
    (void)state;
    char name[33]; /* the published values of FNV-1a, 128 bits */
    tn__hash_name("", 0, name);
    assert_string_equal(name, "6c62272e07bb014262b821756295c58d");
    tn__hash_name("a", 1, name);
    assert_string_equal(name, "d228cb696f1a8caf78912b704e4a8964");
    tn__hash_name("foobar", 6, name);
    assert_string_equal(name, "343e1662793c64bf6f0d3597ba446f18");
}

static void dump_switches(void **state)
{
    (void)state;
    unsetenv("TANSO_DUMP");
    assert_false(tn__dump_enabled("plan"));
    setenv("TANSO_DUMP", "graph,plan", 1);
    assert_true(tn__dump_enabled("graph"));
    assert_true(tn__dump_enabled("plan"));
    assert_false(tn__dump_enabled("pla"));
    assert_false(tn__dump_enabled("kernels"));
    unsetenv("TANSO_DUMP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_fails), cmocka_unit_test(nothing_is_something),
        cmocka_unit_test(aligned),       cmocka_unit_test(growing),
        cmocka_unit_test(texts),         cmocka_unit_test(texts_without_memory),
        cmocka_unit_test(texts_that_just_fit),
        cmocka_unit_test(formats),       cmocka_unit_test(one_failure_among_threads),
        cmocka_unit_test(hashes),        cmocka_unit_test(names_of_hashes),
        cmocka_unit_test(dump_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
