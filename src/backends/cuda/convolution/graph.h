/* SPDX-License-Identifier: MIT */
/* A convolution as cuDNN's graph of one operation, and the engines that cuDNN proposes for it. */
#ifndef TN_BACKENDS_CUDA_CONVOLUTION_GRAPH_H
#define TN_BACKENDS_CUDA_CONVOLUTION_GRAPH_H

#include "backends/cuda/convolution/plans.h"

enum { TN__CUDNN_PROPOSALS = 10, TN__CUDNN_PARTS = 8 };

/* What is remembered of a proposal: its place among all that cuDNN makes, and its engine. */
typedef struct tn__cudnn_proposal {
    int64_t place, engine;
} tn__cudnn_proposal;

typedef struct tn__cudnn_proposals {
    int parts, count;
    void *part[TN__CUDNN_PARTS]; /* descriptors that the graph is made of; the last one is the graph */
    tn__cudnn_proposal proposal[TN__CUDNN_PROPOSALS];
    void *config[TN__CUDNN_PROPOSALS];
} tn__cudnn_proposals;

/* All under the device's lock. Proposals that sum in the same order each time, and as exactly as the problem asks for,
 * cuDNN's best first; false if the graph is refused. */
bool tn__cudnn_propose(const tn__cuda_device *device, const tn__cudnn_problem *problem, tn__cudnn_proposals *p);
void tn__cudnn_proposals_free(const tn__cuda_device *device, tn__cudnn_proposals *p);
/* A plan of a proposal's configuration, and what it wants of workspace; NULL if cuDNN refuses, or it wants too much. */
void *tn__cudnn_build(const tn__cuda_device *device, void *config, size_t *workspace);
void tn__cudnn_drop(const tn__cuda_device *device, void *descriptor);

#endif
