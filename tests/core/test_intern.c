/* SPDX-License-Identifier: MIT */
/* Interned shapes and lists: equal contents, equal pointers, from any thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "core/shape.h"

static void shapes(void **state)
{
    (void)state;
    int64_t a[] = {2, 3, 4}, b[] = {2, 3, 4}, c[] = {2, 4, 3};
    const tn__shape *shape = tn__shape_intern(3, a);
    assert_ptr_equal(shape, tn__shape_intern(3, b));
    assert_ptr_not_equal(shape, tn__shape_intern(3, c));
    assert_ptr_not_equal(shape, tn__shape_intern(2, a));
    assert_int_equal(shape->ndim, 3);
    assert_int_equal(shape->size, 24);
    assert_int_equal(shape->dim[2], 4);
    for (int i = 3; i < TN_MAX_NDIM; i++)
        assert_int_equal(shape->dim[i], 0);
    assert_ptr_equal(tn__shape_intern(0, NULL), tn__shape_scalar());
    assert_int_equal(tn__shape_scalar()->size, 1);
    tn_shape value = tn__shape_value(shape);
    assert_int_equal(value.ndim, 3);
    assert_memory_equal(value.dim, a, sizeof a);
    int64_t none[] = {5, 0};
    assert_int_equal(tn__shape_intern(2, none)->size, 0);
}

static void lists(void **state)
{
    (void)state;
    int64_t values[] = {-1, 7, 7, -1, 7};
    const tn__ints *two = tn__ints_intern(2, values);
    assert_ptr_equal(two, tn__ints_intern(2, values + 3));
    assert_ptr_not_equal(two, tn__ints_intern(3, values));
    assert_int_equal(two->count, 2);
    assert_int_equal(two->v[1], 7);
    assert_ptr_equal(tn__ints_intern(0, NULL), tn__ints_intern(0, values));
    int64_t many[100];
    for (int i = 0; i < 100; i++)
        many[i] = i;
    assert_ptr_equal(tn__ints_intern(100, many), tn__ints_intern(100, many));
}

#define THREADS 8
#define SHAPES 3000

static void *intern_all(void *out)
{
    const tn__shape **shape = out;
    for (int i = 0; i < SHAPES; i++) {
        int64_t dim[] = {1000 + i % 50, i / 50};
        shape[i] = tn__shape_intern(2, dim);
    }
    return NULL;
}

static void threads_agree(void **state)
{
    (void)state;
    static const tn__shape *found[THREADS][SHAPES];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, intern_all, found[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    static bool seen[1 << 16];
    for (int i = 0; i < SHAPES; i++) {
        const tn__shape *shape = found[0][i];
        assert_non_null(shape);
        assert_int_equal(shape->dim[0], 1000 + i % 50);
        assert_int_equal(shape->dim[1], i / 50);
        assert_true(shape->id < 1 << 16 && !seen[shape->id]); /* ids are small and unique */
        seen[shape->id] = true;
        for (int t = 1; t < THREADS; t++)
            assert_ptr_equal(found[t][i], shape);
    }
}

/* Whichever allocation fails, a later call gives the shape, and nothing is left half done. */
static void without_memory(void **state)
{
    (void)state;
    int64_t fresh = 77000;
    for (int round = 0; round < 400; round++) { /* enough to make the tables grow under failure */
        int64_t dim[] = {fresh++, 3};
        tn__fail_allocation_after(0);
        const tn__shape *shape = tn__shape_intern(2, dim);
        tn__fail_allocation_after(-1);
        assert_null(shape);
        shape = tn__shape_intern(2, dim);
        assert_non_null(shape);
        assert_ptr_equal(shape, tn__shape_intern(2, dim));
        tn__fail_allocation_after(0);
        assert_ptr_equal(shape, tn__shape_intern(2, dim)); /* needs no memory */
        assert_null(tn__ints_intern(2, dim));
        tn__fail_allocation_after(-1);
        assert_non_null(tn__ints_intern(2, dim));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(lists),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
