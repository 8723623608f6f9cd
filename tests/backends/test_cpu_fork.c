/* SPDX-License-Identifier: MIT */
/* A child by fork() of a process whose threads have worked evaluates too, by threads of its own. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <tanso.h>

/* Enough work for several threads, in a loop and in a product. */
static bool computes(void)
{
    bool right = false;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(512, 1024));
        right = tn_eval(x) == TN_OK && tn_item(tn_sum(tn_exp(tn_subtract(x, 1)))) == 512 * 1024 &&
                tn_item(tn_max(tn_matmul(x, tn_transpose(x, TN_AXES(1, 0))))) == 1024;
    }
    return right;
}

static void test_child(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* which lets no child start threads */
#endif
    tn_set_compile(TN_COMPILE_NEVER);
    tn_set_threads(4);
    assert_true(computes());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* ends it if it waits for threads that are not there */
        bool right = computes();
        tn_set_threads(3);
        _exit(right && computes() ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_true(computes());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_child)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
