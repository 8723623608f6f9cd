/* SPDX-License-Identifier: MIT */
/* What the tests of io share: cmocka, errors that must say certain words, and random arrays. */
#ifndef TN_TESTS_IO_CHECK_H
#define TN_TESTS_IO_CHECK_H

#include <tanso/array.h>
#include <tanso/engine.h>
#include <tanso/io.h>
#include "support/device.h"
#include "support/latched.h"
#include "support/random.h"
#include "support/scratch.h"

/* An array of random bytes (bools: 0 or 1) of a random shape: 0 to 4 axes with extents 0 to 5. */
tn_array *random_array(test_random *random, tn_dtype dtype);
/* Equal shapes, dtypes and bytes. */
void assert_same_array(tn_array *a, tn_array *b);
/* The archive at the path, which has the same arrays by the same names. */
tn_archive *load_same(const char *path, const tn_archive *archive);

#endif
