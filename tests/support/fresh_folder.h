/* SPDX-License-Identifier: MIT */
/* A folder that each test of a program finds empty: setup and teardown for cmocka. */
#ifndef TN_TESTS_FRESH_FOLDER_H
#define TN_TESTS_FRESH_FOLDER_H

#include <tanso/base.h>

#include "support/folder.h"

static char folder[256];

static inline int set_up(void **state)
{
    (void)state;
    test_folder_make(folder);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    tn_clear_error();
    test_folder_remove(folder);
    return 0;
}

#endif
