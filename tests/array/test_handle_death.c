/* SPDX-License-Identifier: MIT */
/* What is done with an array after it was freed is an error that says where that was, whatever lies there now. */
#include "array/graphs.h"

#include <math.h>
#include <pthread.h>
#include <tanso.h>

#include "array/places.h"
#include "support/device.h"
#include "support/latched.h"
#include "support/random.h"

/* An array that died with a scope; *line: where that was opened. */
static tn_array *dead_array(int *line)
{
    tn_array *x = NULL;
    *line = __LINE__ + 1;
    TN_SCOPE {
        x = tn_full(TN_SHAPE(3), 5);
    }
    return x;
}

static void assert_dead(const char *words, int line)
{
    char place[64];
    snprintf(place, sizeof place, "opened at test_handle_death.c:%d", line);
    assert_non_null(strstr(tn_error(), place));
    assert_failed(TN_ERR_STATE, words);
}

static void a_use_after_the_scope_is_told_of(void **state)
{
    (void)state;
    int line;
    tn_array *x = dead_array(&line), *y = tn_full(TN_SHAPE(3), 7); /* which lies in its place */
    double parts[2];
    float host[3];
    assert_ptr_not_equal(x, y);
    assert_ptr_equal(tn__handle_of(x), tn__handle_of(y));
    assert_true(tn_is_error(tn_add(x, y)));
    assert_dead("add: this array is no more", line);
    assert_true(tn_is_error(tn_exp(x)));
    assert_dead("exp", line);
    assert_true(tn_is_error(tn_sum(x)));
    assert_dead("sum", line);
    assert_true(isnan(tn_item(x)));
    assert_dead("item", line);
    assert_int_equal(tn_item_parts(x, parts), TN_ERR_STATE);
    assert_dead("item_parts", line);
    assert_int_equal(tn_eval(x), TN_ERR_STATE);
    assert_dead("eval", line);
    assert_int_equal(tn_to_host(x, host, sizeof host), TN_ERR_STATE);
    assert_dead("to_host", line);
    assert_null(tn_data(x));
    assert_dead("data", line);
    assert_int_equal(tn_assign(y, x), TN_ERR_STATE);
    tn_clear_error();
    assert_int_equal(tn_assign(x, y), TN_ERR_STATE);
    tn_clear_error();
    assert_int_equal(tn_add_assign(x, 1), TN_ERR_STATE);
    tn_clear_error();
    assert_int_equal(tn_backward(x), TN_ERR_STATE);
    assert_dead("tn_backward", line);
    tn_requires_grad(x);
    assert_failed(TN_ERR_STATE, "no more");
    tn_free(y);
}

static void what_asks_of_an_array_tells_too(void **state)
{
    (void)state;
    int line;
    tn_array *x = dead_array(&line), *y = tn_full(TN_SHAPE(2, 2), 7);
    int64_t strides[TN_MAX_NDIM];
    assert_int_equal(tn_ndim(x), 0);
    assert_dead("ndim", line);
    assert_int_equal(tn_size(x), 1);
    assert_dead("size", line);
    assert_int_equal(tn_shape_of(x).ndim, 0);
    assert_dead("shape_of", line);
    assert_int_equal(tn_dtype_of(x), TN_DTYPE_DEFAULT);
    assert_dead("dtype_of", line);
    assert_int_equal(tn_device_of(x).kind, TN_DEVICE_DEFAULT);
    assert_dead("device_of", line);
    tn_strides_of(x, strides);
    assert_dead("strides_of", line);
    assert_true(tn_is_error(x));
    assert_dead("is_error", line);
    assert_int_equal(tn_status_of(x), TN_ERR_STATE);
    assert_dead("status_of", line);
    assert_non_null(strstr(tn_message_of(x), "no more"));
    assert_dead("message_of", line);
    assert_false(tn_has_grad(x));
    assert_dead("tn_grad", line);
    assert_false(tn_needs_grad(x));
    assert_dead("tn_needs_grad", line);
    tn_keep(x);
    assert_dead("tn_keep", line);
    tn_own(x);
    assert_dead("tn_own", line);
    tn_free(y);
}

static void freeing_twice_frees_nobody_else(void **state)
{
    (void)state;
    size_t live = tn_live_arrays();
    tn_array *x = tn_own(tn_full(TN_SHAPE(3), 5));
    int line = __LINE__ + 1;
    tn_free(x);
    tn_array *y = tn_own(tn_full(TN_SHAPE(3), 7));
    char place[64];
    snprintf(place, sizeof place, "freed at test_handle_death.c:%d", line);
    tn_free(x);
    assert_failed(TN_ERR_STATE, place);
    assert_int_equal(tn_live_arrays(), live + 1);
    assert_true(tn_item(tn_sum(y)) == 21);
    tn_free(y);
}

/* Whatever number of lives later, but for as many as there are generations. */
static void dead_arrays_stay_dead(void **state)
{
    (void)state;
    int line;
    tn_array *x = dead_array(&line);
    for (int i = 0; i < 300; i++) {
        tn_array *y = tn_full(TN_SHAPE(3), 7);
        assert_ptr_equal(tn__handle_of(x), tn__handle_of(y));
        assert_true(isnan(tn_item(x)));
        assert_failed(TN_ERR_STATE, i == 0 ? "opened at" : "TANSO_DEBUG=1");
        assert_true(tn_item(tn_sum(y)) == 21);
        tn_free(y);
    }
}

/* At random: an array is used while it lives and after; each read is right, or an error. */
static void reads_are_right_or_errors(void **state)
{
    (void)state;
    test_random random = test_random_new();
    enum { COUNT = 200 };
    tn_array *x[COUNT] = {NULL};
    bool lives[COUNT] = {false};
    double value[COUNT] = {0};
    for (int step = 0; step < 20000; step++) {
        int i = (int)test_random_int(&random, 0, COUNT - 1);
        if (lives[i] && test_random_int(&random, 0, 1)) {
            tn_free(x[i]);
            lives[i] = false;
        } else if (!lives[i] && test_random_int(&random, 0, 1)) {
            x[i] = tn_own(tn_scalar(value[i] = step, .dtype = TN_FLOAT64));
            lives[i] = true;
        } else if (x[i]) {
            double came = tn_item(x[i]);
            if (lives[i] ? came != value[i] || !tn_ok() : !isnan(came) || tn_error_code() != TN_ERR_STATE)
                fail_msg("step %d: %g, %s", step, came, tn_error());
            tn_clear_error();
        }
    }
    for (int i = 0; i < COUNT; i++)
        if (lives[i])
            tn_free(x[i]);
}

static void *ask_for_history(void *unused)
{
    (void)unused;
    int line, made = __LINE__ + 2, died;
    tn_array *x = dead_array(&line), *y = tn_own(tn_ones(TN_SHAPE(2)));
    tn_array *z = tn_own(tn_exp(y));
    died = __LINE__ + 1;
    tn_free(z);
    for (int i = 0; i < 10; i++)
        TN_SCOPE tn_exp(y); /* others in its place */
    char expected[200];
    tn_free(z);
    snprintf(expected, sizeof expected, "'exp' made it at test_handle_death.c:%d, thread %d has it freed at "
             "test_handle_death.c:%d", made, (int)tn__thread_number(), died);
    assert_failed(TN_ERR_STATE, expected);
    tn_free(x);
    assert_failed(TN_ERR_STATE, "'const' made it at test_handle_death.c");
    tn_free(y);
    return NULL;
}

/* TANSO_DEBUG is read when the process begins: a thread that begins afterwards stands for that here. */
static void the_history_knows_every_life(void **state)
{
    (void)state;
    pthread_t thread;
    tn__history_kept = true;
    assert_int_equal(pthread_create(&thread, NULL, ask_for_history, NULL), 0);
    pthread_join(thread, NULL);
    tn__history_kept = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_use_after_the_scope_is_told_of),
        cmocka_unit_test(what_asks_of_an_array_tells_too),
        cmocka_unit_test(freeing_twice_frees_nobody_else),
        cmocka_unit_test(dead_arrays_stay_dead),
        cmocka_unit_test(reads_are_right_or_errors),
        cmocka_unit_test(the_history_knows_every_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
