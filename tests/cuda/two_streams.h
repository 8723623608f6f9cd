/* SPDX-License-Identifier: MIT */
/* Two streams of cuda:0 on a fake driver that does only what it must, and how much waits in each. */
#ifndef TN_TESTS_CUDA_TWO_STREAMS_H
#define TN_TESTS_CUDA_TWO_STREAMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/stand_in.h"
#include "support/device.h"
#include "support/latched.h"

enum { N = 1000 };

extern tn__device *device;
extern tn__cuda_device *cuda;
extern tn_stream *a, *b;

/* False without memory. */
bool two_streams_open(void);
/* For each test: makes them, and frees them, after which nothing may be left. */
int two_streams_begin(void **state);
int two_streams_end(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_streams_begin, two_streams_end)

CUstream queue(tn_stream *stream);
size_t waiting(tn_stream *stream);
size_t waiting_on_own(void);
/* An evaluated vector of N float32. */
tn_array *fresh(double value);

#endif
