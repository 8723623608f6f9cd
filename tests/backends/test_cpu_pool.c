/* SPDX-License-Identifier: MIT */
/* The CPU backend's threads: every piece of a job is done once, whoever calls, however many work. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/pool.h"
#include <tanso/device.h>

enum { MOST = 300 };

typedef struct job {
    int done[MOST]; /* plain: a piece is one thread's, and the caller sees it afterwards */
    _Atomic int inner;
    bool nested;
} job;

static void once(void *context, int piece)
{
    job *j = context;
    j->done[piece]++;
    if (j->nested && tn__pool_run(4, 3, once, j))
        j->inner++;
}

static bool whole(const job *j, int pieces)
{
    for (int i = 0; i < MOST; i++)
        if (j->done[i] != (i < pieces))
            return false;
    return true;
}

static void doze(long nanoseconds) { nanosleep(&(struct timespec){0, nanoseconds}, NULL); }

static void every_piece_is_done_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        int pieces = 1 + i * 7 % MOST, team = 2 + i % 5;
        job j = {0};
        assert_true(tn__pool_run(team, pieces, once, &j));
        assert_true(whole(&j, pieces));
        if (i % 500 == 0)
            doze(2000000); /* the workers fall asleep */
    }
}

static void a_job_within_a_job_is_refused(void **state)
{
    (void)state;
    job j = {.nested = true};
    assert_true(tn__pool_run(3, 50, once, &j));
    assert_true(whole(&j, 50));
    assert_int_equal(j.inner, 0);
}

static void *call_often(void *counts)
{
    long *count = counts;
    for (int i = 0; i < 2000; i++) {
        job j = {0};
        if (!tn__pool_run(3, 20, once, &j))
            count[1]++;
        else if (whole(&j, 20))
            count[0]++;
    }
    return NULL;
}

static void one_job_at_a_time(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    pthread_t thread[CALLERS];
    long count[CALLERS][2] = {{0}}, done = 0;
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, count[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(count[i][0] + count[i][1], 2000);
        done += count[i][0];
    }
    assert_true(done > 0);
}

static void sum_of(void *context, int64_t begin, int64_t end)
{
    int64_t part = 0;
    for (int64_t i = begin; i < end; i++)
        part += i;
    atomic_fetch_add((_Atomic int64_t *)context, part);
}

static void loops_cover_their_range(void **state)
{
    (void)state;
    int before = tn_threads();
    for (int threads = 1; threads < 6; threads++)
        for (int64_t items = 0; items < 1000; items = items * 2 + 1) {
            _Atomic int64_t sum = 0;
            tn_set_threads(threads);
            tn__cpu_for(items, TN__CPU_PARALLEL_WORK, sum_of, &sum);
            assert_int_equal(sum, items * (items - 1) / 2);
        }
    tn_set_threads(before);
}

static void a_child_has_workers_of_its_own(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* which lets no child start threads */
#endif
    job j = {0};
    assert_true(tn__pool_run(4, 100, once, &j));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* ends it if it waits for threads that are not there */
        job k = {0};
        _exit(tn__pool_run(4, 100, once, &k) && whole(&k, 100) ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_done_once),       cmocka_unit_test(a_job_within_a_job_is_refused),
        cmocka_unit_test(one_job_at_a_time),              cmocka_unit_test(loops_cover_their_range),
        cmocka_unit_test(a_child_has_workers_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
