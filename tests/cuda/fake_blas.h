/* SPDX-License-Identifier: MIT */
/* A library of products beside the fake driver: it proposes what a test says, and writes down what it was asked for. */
#ifndef TN_TESTS_CUDA_FAKE_BLAS_H
#define TN_TESTS_CUDA_FAKE_BLAS_H

#include "cuda/fake.h"

enum { FAKE_PROPOSALS = 4, FAKE_PRODUCTS = 64 };

typedef struct fake_product {
    bool behind; /* no product, but a kernel behind one (fake_product_kept, by a test's fake.closes) */
    int proposal;
    const void *workspace;
    size_t bytes; /* of that */
    cublasLtEpilogue_t epilogue;
    CUdeviceptr bias;
} fake_product;

extern struct fake_blas {
    int proposals;
    size_t workspace[FAKE_PROPOSALS];    /* bytes that each wants */
    double milliseconds[FAKE_PROPOSALS]; /* that each takes; negative: it cannot do it */
    double call[FAKE_PROPOSALS];         /* milliseconds that asking for it takes, while the GPU waits */
    int slow;                            /* products still to come that take twice as long */
    bool refuses;                        /* it has none for an epilogue */
    double now;                          /* the GPU's clock, which products move */
    int operations;                      /* that there are */
    int epilogues;                       /* proposals for one that were asked for */
    int asked, done;                     /* products: by a stream or a graph that is captured; by the GPU */
    fake_product product[FAKE_PRODUCTS]; /* the last ones done, that of number i at i % FAKE_PRODUCTS */
} fake_blas;

/* The last one done. */
const fake_product *fake_blas_last(void);
/* For fake.closes: what then is done as products are; it lives as long as the process, as a graph may do it again. */
const fake_product *fake_product_kept(fake_product product);
/* Has events tell the time by fake_blas.now. */
void fake_blas_clock(tn__cuda_driver *driver);
/* Opens cuda:0 on the fake driver as stand_in_use does, with this library and a clock for events; what a test's kernels
 * do, it says by fake.finds and fake.closes. NULL with a latched error. */
tn__device *fake_blas_use(void);

#endif
