/* SPDX-License-Identifier: MIT */
/* A scenario run with its first allocation failing, then its second, and so on until none is left to fail: each time an
 * error that speaks of memory (or success, where one can do without), no crash, and nothing left behind. */
#ifndef TN_TESTS_STARVE_H
#define TN_TESTS_STARVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"
#include "support/device.h"

typedef tn_status (*starve_scenario)(void *user);

/* `after`, if not NULL, looks at the state of the world after each run, with the status that it gave. */
static inline void starve_checked(const char *name, starve_scenario run, void (*after)(tn_status status, void *user),
                                  void *user)
{
    tn_status fed = run(user); /* makes the caches that last as long as the process */
    if (fed != TN_OK)
        fail_msg("%s: %s", name, tn_error());
    size_t arrays = tn_live_arrays(), bytes = tn_memory_stats(test_device()).used;
    long failures = 0;
    for (long n = 0;; n++) {
        assert_true(n < 100000);
        tn__fail_allocation_after(n);
        tn_status status = run(user);
        long made = tn__fail_allocation_after(-1);
        if (tn_live_arrays() != arrays || tn_memory_stats(test_device()).used != bytes)
            fail_msg("%s, allocation %ld: %zu arrays and %zu bytes before, %zu and %zu after: %s", name, n, arrays,
                     bytes, tn_live_arrays(), tn_memory_stats(test_device()).used, tn_error());
        if (status != TN_OK && (tn_error_code() != TN_ERR_MEMORY || !strstr(tn_error(), "memory")))
            fail_msg("%s, allocation %ld: %s, and the message is '%s'", name, n, tn_status_name(status), tn_error());
        failures += status != TN_OK;
        tn_clear_error();
        if (after)
            after(status, user);
        if (made <= n) {
            assert_int_equal(status, TN_OK);
            break;
        }
    }
    print_message("%s: %ld failures\n", name, failures);
    assert_true(failures > 0);
}

static inline void starve(const char *name, starve_scenario run, void *user) { starve_checked(name, run, NULL, user); }

#endif
