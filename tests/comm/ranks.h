/* SPDX-License-Identifier: MIT */
/* Tests that run alone and, by tests/mpirun, as several ranks: random numbers that all ranks have, and what each of
 * them would hold. */
#ifndef TN_TESTS_COMM_RANKS_H
#define TN_TESTS_COMM_RANKS_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

/* File descriptors of this process. */
static inline int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* A seed that is the same on all ranks, and another one in each run. */
static inline uint64_t shared_seed(tn_comm *comm)
{
    uint64_t seed = test_seed_new();
    TN_SCOPE {
        tn_array *all = tn_comm_broadcast(comm, tn_from_host(&seed, TN_SHAPE(1), TN_UINT64), 0);
        assert_int_equal(tn_to_host(all, &seed, sizeof seed), TN_OK);
    }
    return seed;
}

/* Begins a program of several ranks, in which kernels are not compiled: each rank would do so anew. */
static inline bool ranks_begin(tn_comm **comm, int *rank, int *size)
{
    tn_set_compile(TN_COMPILE_NEVER);
    *comm = tn_comm_world();
    if (tn_comm_status(*comm) != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    *rank = tn_comm_rank(*comm);
    *size = tn_comm_size(*comm);
    return tn_comm_status(*comm) == TN_OK;
}

/* A new folder of rank 0's, the same for all ranks. */
enum { RANKS_PATH = 512 };
static inline bool ranks_folder(tn_comm *comm, char folder[RANKS_PATH])
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, RANKS_PATH, "%.400s/tanso-ranks-XXXXXX", parent ? parent : "/tmp");
    if (tn_comm_rank(comm) == 0 && !mkdtemp(folder))
        return false;
    bool good = false;
    TN_SCOPE {
        tn_array *name = tn_from_host(folder, TN_SHAPE(RANKS_PATH), TN_UINT8);
        good = tn_to_host(tn_comm_broadcast(comm, name, 0), folder, RANKS_PATH) == TN_OK;
    }
    return good;
}

/* Small whole numbers, so that sums and products are exact in every dtype, 1 or 2; what rank `rank` holds. */
static inline tn_array *held_by(int rank, uint64_t seed, tn_dtype dtype, tn_shape shape)
{
    test_random r = {seed + (uint64_t)rank};
    int64_t size = 1;
    for (int i = 0; i < shape.ndim; i++)
        size *= shape.dim[i];
    double *values = malloc(sizeof *values * (size_t)(size + 1));
    for (int64_t i = 0; i < size; i++)
        values[i] = 1 + (double)(test_random_bits(&r) & 1);
    tn_array *x = tn_cast(tn_from_host(values, shape, TN_FLOAT64), dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    free(values);
    return x;
}

/* Whether two arrays are equal in shape, dtype and every element. */
static inline void assert_same(const tn_array *got, const tn_array *expected)
{
    if (tn_is_error(got))
        fail_msg("%s", tn_error());
    assert_int_equal(tn_dtype_of(got), tn_dtype_of(expected));
    tn_shape a = tn_shape_of(got), b = tn_shape_of(expected);
    assert_int_equal(a.ndim, b.ndim);
    assert_memory_equal(a.dim, b.dim, sizeof *a.dim * (size_t)a.ndim);
    if (!tn_item_int(tn_all(tn_equal(got, expected)))) {
        char *left = tn_string(got), *right = tn_string(expected);
        fail_msg("got %s, expected %s", left, right);
    }
}

#endif
