/* SPDX-License-Identifier: MIT */
/* Results that take over an input's memory inside one kernel, while other results are computed from that input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

enum { N = 37 };

typedef struct results {
    float log[N], root[N], sum[N];
} results;

static results evaluate(tn_compile_mode mode)
{
    results r;
    tn_set_compile(mode);
    TN_SCOPE {
        tn_array *x = tn_add(tn_arange(0, N, 1, .dtype = TN_FLOAT32), 1.0);
        assert_int_equal(tn_eval(x), TN_OK);
        /* the same elements under two shapes; x itself is let go, so that its memory may be taken over */
        tn_array *y = tn_log1p(x), *view = tn_reshape(x, TN_SHAPE(N, 1)), *z = tn_sqrt(view), *w = tn_add(view, 0.5);
        tn_free(x);
        tn_free(view);
        const tn_array *roots[] = {y, z, w};
        assert_int_equal(tn_eval_all(3, roots), TN_OK);
        assert_int_equal(tn_to_host(y, r.log, sizeof r.log), TN_OK);
        assert_int_equal(tn_to_host(z, r.root, sizeof r.root), TN_OK);
        assert_int_equal(tn_to_host(w, r.sum, sizeof r.sum), TN_OK);
    }
    return r;
}

static void test_inputs_are_read_before_they_are_overwritten(void **state)
{
    (void)state;
    results expected = evaluate(TN_COMPILE_NEVER), got = evaluate(TN_COMPILE_ALWAYS);
    assert_true(expected.root[8] == 3 && expected.sum[8] == 9.5f);
    assert_memory_equal(&got, &expected, sizeof got);
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs_are_read_before_they_are_overwritten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
