/* SPDX-License-Identifier: MIT */
/* Convolutions by the loops that define them, for the fake cuDNN. */
#ifndef TN_TESTS_CUDA_FAKE_CONVOLVE_H
#define TN_TESTS_CUDA_FAKE_CONVOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_X, FAKE_W, FAKE_Y, FAKE_TENSORS, FAKE_AXES = 3 };

typedef struct fake_convolution {
    int engine; /* by which */
    int way;   /* what is computed: the result, the data, the weights */
    int axes;
    int dtype; /* one of cuDNN's numbers */
    int64_t step[FAKE_AXES], spread[FAKE_AXES], before[FAKE_AXES], behind[FAKE_AXES];
    struct {
        int64_t id, dim[2 + FAKE_AXES], stride[2 + FAKE_AXES];
        void *place;
    } tensor[FAKE_TENSORS];
    void *workspace;
    size_t workspace_bytes;
} fake_convolution;

/* Whether extents, channels and groups fit one another. */
bool fake_convolution_fits(const fake_convolution *c);
void fake_convolve(const fake_convolution *c);

#endif
