/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for the kernels of programs on the fake driver: what a kernel writes is a hash of all that it reads. That
 * is no arithmetic, but who reads what another has not written yet, or what has been written over, gets other bits.
 */
#ifndef TN_TESTS_CUDA_STAND_IN_H
#define TN_TESTS_CUDA_STAND_IN_H

#include "cuda/fake.h"

/* Opens cuda:0 on the fake driver, makes it the current device, and has its programs' kernels stood in for. */
tn__device *stand_in_use(void);
uint64_t stand_in_hash(uint64_t hash, const void *data, size_t bytes);

#endif
