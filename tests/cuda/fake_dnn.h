/* SPDX-License-Identifier: MIT */
/*
 * A cuDNN beside the fake driver: descriptors by the numbers of its manual, finished only if they fit one another;
 * engines that a test says; convolutions by the loops that define them, on the fake's memory, when the stream comes to
 * them. Its functions have cuDNN's names, so that it can also be a library of its own (tests/emulator).
 */
#ifndef TN_TESTS_CUDA_FAKE_DNN_H
#define TN_TESTS_CUDA_FAKE_DNN_H

#include "backends/cuda/convolution/cudnn.h"

enum { FAKE_ENGINES = 4 };

extern struct fake_dnn {
    size_t version;
    int engines;                      /* that are proposed */
    size_t workspace[FAKE_ENGINES];   /* bytes that each wants */
    int note[FAKE_ENGINES];           /* what is said of each, TN__CUDNN_TENSOR_CORE or its kin, plus 1; 0: nothing */
    bool refuses[FAKE_ENGINES];       /* there is no plan by it */
    bool idle;                        /* nothing is computed, where only time counts */
    int first;                        /* the number of the first one: others are called by other numbers */
    int descriptors;                  /* that there are */
    int plans;                        /* made ever */
    int handles;                      /* made ever; negative: none can be made */
    int asked, done;                  /* convolutions: by a stream or a graph that is captured; by the GPU */
    int engine;                       /* of the last one asked for */
    const void *memory;               /* its workspace */
    void (*runs)(int engine);         /* when a stream is given one, itself or as part of a graph; may be NULL */
} fake_dnn;

/* Its functions, for tn__cuda_libraries. */
extern const tn__cudnn fake_dnn_library;

#endif
