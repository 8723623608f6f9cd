/* SPDX-License-Identifier: MIT */
/* A child by fork() of a process whose threads have worked evaluates too, by threads of its own. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
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

/* A kernel of one's own, whose text no cache of kernels has seen: whoever needs it first waits for the compiler. */
static bool compiles(const char *text)
{
    double value = 0;
    TN_SCOPE
        value = tn_item(tn_sum(tn_call(tn_elementwise("T x", "T z", text, "fresh"), TN_ARGS(tn_ones(TN_SHAPE(10))))));
    return tn_ok() && value == 20;
}

static void *compile(void *text) { return compiles(text) ? text : NULL; }

/* While one thread waits for the compiler, another one forks; the child evaluates what is being compiled there. */
static void test_child_of_a_builder(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    for (int i = 0; i < 3; i++) {
        char text[96];
        pthread_t builder;
        void *built = NULL;
        snprintf(text, sizeof text, "z = x + 1; /* %d, %lld %d */", (int)getpid(), (long long)time(NULL), i);
        assert_int_equal(pthread_create(&builder, NULL, compile, text), 0);
        usleep(15000);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            _exit(compiles(text) ? 0 : 1);
        }
        int code = -1;
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(pthread_join(builder, &built), 0);
        assert_ptr_equal(built, text);
        assert_int_equal(code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_child), cmocka_unit_test(test_child_of_a_builder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
