/* SPDX-License-Identifier: MIT */
/*
 * Transfers that nobody waits for any more: a transport that never ends one writes into what it was given afterwards,
 * whatever has been freed meanwhile. One process stands for the first of two ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "comm/comm.h"
#include "core/memory.h"
#include "support/device.h"

enum { MOST = 8, N = 1000 };

static tn__transfer started[MOST];
static int count;

static void *start(tn__group *group, const tn__transfer *transfer, tn__why *why)
{
    (void)group, (void)why;
    assert_true(count < MOST);
    started[count] = *transfer;
    return &started[count++];
}

static int test(tn__group *group, void *request, tn__why *why)
{
    (void)group, (void)request, (void)why;
    return 0;
}

static void send_note(int to, const tn__note *note) { (void)to, (void)note; }

static bool take_note(tn__note *note)
{
    (void)note;
    return false;
}

static void let_go(tn__group *group, bool broken) { (void)group, (void)broken; }

static const tn__transport never = {
    .name = "never", .free = let_go, .start = start, .test = test, .send_note = send_note, .take_note = take_note};

static tn_comm *first_of_two(void)
{
    tn_comm *comm = tn_comm_split(tn_comm_self(), 0, 0);
    assert_int_equal(tn_comm_status(comm), TN_OK);
    tn__free(comm->members);
    comm->members = tn__calloc(2, sizeof *comm->members);
    comm->members[1] = 1;
    comm->place.size = 2;
    comm->transport = &never;
    count = 0;
    return comm;
}

/* The late writer, and reader. */
static void go_on(void)
{
    static volatile char sum;
    for (int i = 0; i < count; i++) {
        size_t bytes = (size_t)started[i].count * started[i].itemsize;
        for (size_t b = 0; started[i].from && b < bytes; b++)
            sum = (char)(sum + ((const char *)started[i].from)[b]);
        if (started[i].to)
            memset(started[i].to, 0x55, bytes * (started[i].kind == TN__ALL_GATHER ? 2 : 1));
    }
}

static bool on_stack(const void *at)
{
    char here;
    ptrdiff_t distance = (const char *)at - &here;
    return at && distance > -(1 << 20) && distance < 1 << 20;
}

static void expect_given_up(tn_comm *comm, tn_array *got)
{
    assert_true(tn_is_error(got));
    assert_int_equal(tn_error_code(), TN_ERR_IO);
    assert_non_null(strstr(tn_error(), "waited"));
    tn_clear_error();
    assert_true(comm->given_up);
    tn_comm_free(comm);
    for (int i = 0; i < count; i++)
        assert_false(on_stack(started[i].from) || on_stack(started[i].to));
}

/* Operands and results: their memory is nobody else's. */
static void test_elements(void **state)
{
    (void)state;
    tn_comm *comm = first_of_two();
    size_t used = tn_memory_stats(tn_cpu()).used;
    TN_SCOPE {
        tn_array *x = tn_full(TN_SHAPE(N), 2, .device = tn_cpu());
        expect_given_up(comm, tn_comm_all_reduce(comm, x, TN_COMM_SUM));
    }
    assert_true(tn_memory_stats(tn_cpu()).used >= used + 2 * N * sizeof(float));
    TN_SCOPE {
        tn_array *other = tn_full(TN_SHAPE(N), 3, .device = tn_cpu()), *more = tn_add(other, 1);
        assert_int_equal(tn_eval(more), TN_OK);
        go_on();
        assert_true(tn_item(tn_all(tn_equal(more, 4))) == 1);
    }
}

/* What is told before an array comes. */
static void test_heading(void **state)
{
    (void)state;
    tn_comm *comm = first_of_two();
    TN_SCOPE expect_given_up(comm, tn_comm_broadcast(comm, tn_ones(TN_SHAPE(3)), 0));
    go_on();
}

int main(void)
{
    setenv("TANSO_COMM_TIMEOUT", "0.01", 1);
    (void)test_device();
    tn_set_compile(TN_COMPILE_NEVER);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elements), cmocka_unit_test(test_heading)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
