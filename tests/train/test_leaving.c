/* SPDX-License-Identifier: MIT */
/*
 * Functions of a program's that are left by longjmp. The call that called one is lost; the next call of the thread says
 * so, and the thread is as it was before: no scope more, recording, and everything works again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/device.h"
#include "train/leaving.h"

static jmp_buf place;

static void leave(void)
{
    if (leaves)
        longjmp(place, 1);
}

/* Of a leak checker, if there is one: the memory of what is left half done is lost. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

/* Whether a function that the call calls was left. */
static bool is_left(tn_status (*call)(scene *s), scene *s)
{
    if (__lsan_disable)
        __lsan_disable();
    leaves = true;
    bool left = setjmp(place) != 0;
    if (!left)
        call(s);
    leaves = false;
    if (__lsan_enable)
        __lsan_enable();
    return left;
}

static void no_more_than_before(void)
{
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "longjmp"));
    tn_clear_error();
    assert_int_equal(tn_scope_depth(), 1);
    assert_true(tn_grad_enabled());
    assert_true(tn_ok());
}

static void functions_that_are_left(void **state)
{
    (void)state;
    scene s = make_scene();
    assert_true(tn_ok());
    for (int i = 0; i < CASES; i++)
        TN_SCOPE {
            print_message("%s\n", cases[i].name);
            if (cases[i].call != call_trainer) /* a run is one only */
                assert_int_equal(cases[i].call(&s), TN_OK);
            assert_true(is_left(cases[i].call, &s));
            tn_array *first = tn_ones(TN_SHAPE(2)); /* tells, and is made as ever */
            no_more_than_before();
            if (cases[i].call == call_watcher)
                tn_reporter_pop(); /* this program's own */
            assert_true(tn_item(tn_sum(first)) == 2);
            assert_int_equal(cases[i].call(&s), TN_OK);
            assert_true(tn_needs_grad(tn_square(s.x)));
        }
    free_scene(&s);
    assert_true(tn_ok());
}

/* Left through two calls of the library at once, and out of the inner one only. */
static tn_array *outer(const tn_array *x, void *user)
{
    if (is_left(call_function_layer, user)) {
        tn_array *y = tn_multiply(x, 2);
        assert_int_equal(tn_error_code(), TN_ERR_STATE);
        tn_clear_error();
        return y;
    }
    return NULL;
}

static tn_array *through(const tn_array *x, void *user)
{
    (void)x;
    scene *s = user;
    return tn_forward(s->function, s->x);
}

static tn_layer *layer_through;
static tn_status call_through(scene *s) { return tn_status_of(tn_forward(layer_through, s->x)); }

static void calls_in_calls(void **state)
{
    (void)state;
    scene s = make_scene();
    TN_SCOPE {
        tn_layer *layer = tn_function_layer("outer", outer, &s);
        tn_array *y = tn_forward(layer, s.x);
        assert_true(tn_item(tn_sum(y)) == 6 && tn_needs_grad(y) && tn_ok());
        tn_layer_free(layer);
        layer_through = tn_function_layer("through", through, &s);
        assert_true(is_left(call_through, &s));
        assert_int_equal(tn_scope_depth(), 1);
        no_more_than_before();
        tn_layer_free(layer_through);
    }
    free_scene(&s);
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_that_are_left), cmocka_unit_test(calls_in_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
