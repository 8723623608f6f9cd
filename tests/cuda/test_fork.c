/* SPDX-License-Identifier: MIT */
/* A child by fork cannot use the parent's GPU: it is told so, and the parent goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/base.h>

#include "cuda/fake.h"

static bool refused(tn__device *device, bool done)
{
    bool told = !done && tn_error_code() == TN_ERR_DEVICE && strstr(tn_error(), "child by fork") &&
                strstr(tn_error(), "cuda:0");
    tn_clear_error();
    return told && device;
}

static void test_child(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    char host[16] = "carbon";
    void *memory = device->ops->allocate(device, sizeof host);
    assert_non_null(memory);
    assert_int_equal(device->ops->write(device, memory, host, sizeof host), TN_OK);
    pid_t child = fork();
    if (child == 0) {
        bool told = refused(device, device->ops->allocate(device, 16) != NULL);
        told &= refused(device, device->ops->read(device, host, memory, sizeof host) == TN_OK);
        told &= refused(device, device->ops->synchronize(device) == TN_OK);
        _exit(told ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    memset(host, 0, sizeof host);
    assert_int_equal(device->ops->read(device, host, memory, sizeof host), TN_OK);
    assert_string_equal(host, "carbon");
    device->ops->release(device, memory, sizeof host);
}

/* What the parent had begun to read, the child is told the same of, though a thread of the parent's held the device's
 * lock when it forked. */
static void test_begun(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    pthread_mutex_t *lock = &tn__cuda_of(device)->lock;
    char host[16] = "carbon";
    void *memory = device->ops->allocate(device, sizeof host);
    assert_non_null(memory);
    assert_int_equal(device->ops->write(device, memory, host, sizeof host), TN_OK);
    void *begun = device->ops->read_begin(device, memory, sizeof host);
    assert_non_null(begun);
    pthread_mutex_lock(lock);
    pid_t child = fork();
    if (child == 0) {
        bool done = false;
        alarm(10);
        bool read = device->ops->read_end(device, begun, host, sizeof host, false, &done) == TN_OK;
        _exit(refused(device, read) && done ? 0 : 1);
    }
    pthread_mutex_unlock(lock);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bool done = false;
    memset(host, 0, sizeof host);
    assert_int_equal(device->ops->read_end(device, begun, host, sizeof host, true, &done), TN_OK);
    assert_string_equal(host, "carbon");
    device->ops->release(device, memory, sizeof host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_child), cmocka_unit_test(test_begun)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
