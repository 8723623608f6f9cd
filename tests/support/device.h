/* SPDX-License-Identifier: MIT */
/*
 * The device that a test computes on: TANSO_TEST_DEVICE ("cuda:0", "virtual:0"), else the CPU. It is made the main
 * thread's current device before main begins, so a test that names no device runs on any. A test that is about the CPU
 * says so.
 */
#ifndef TN_TESTS_DEVICE_H
#define TN_TESTS_DEVICE_H

#include <stdbool.h>
#include <tanso/device.h>
#include <tanso/engine.h>

tn_device test_device(void);
/* Whether that is another device than the CPU. */
bool test_elsewhere(void);
/* Whether it is a kind of device whose results are the CPU's bit for bit: not a GPU, whose libraries round
 * otherwise. */
bool test_same_bits(void);
/* For `main`: true, having said why, if this program is about the CPU and another device is to be tested; then
 * return TEST_SKIPPED. */
bool test_about_cpu(const char *what);
/* The same for a program that is about a GPU: true, having said why, if there is none that works. */
bool test_no_gpu(void);
/* For a program that is about several devices: true, having said why, if there are fewer than `count` GPUs, or virtual
 * devices where no GPU is to be tested; else they are in on[0..]. */
bool test_too_few(tn_device *on, int count);
/* For one test of a program: skips it on another device, having said why. */
#define TEST_ABOUT_CPU(what) \
    do { \
        if (test_about_cpu(what)) \
            skip(); \
    } while (0)

#define TEST_SKIPPED 77

/* tn_eval, waiting for the result: a GPU tells of an index out of range when it is asked next. */
tn_status test_eval(const tn_array *x);

/* x's elements in C order in host memory, wherever x is, for as long as the innermost scope; NULL with a latched
 * error. */
#define test_data(x) tn_data(tn_to(x, tn_cpu()))

#endif
