/* SPDX-License-Identifier: MIT */
/* Sums of two ranks of one host by a kernel that writes into the other one's memory: peers.c. */
#ifndef TN_BACKENDS_NCCL_PEERS_H
#define TN_BACKENDS_NCCL_PEERS_H

#include <cuda.h>
#include <stdatomic.h>

#include "comm/transport.h"

typedef struct tn__peers {
    CUdeviceptr own, other;  /* segments: of this rank, and the other one's; 0: none */
    CUfunction kernel;
    CUstream last;           /* the stream of the last sum */
    CUevent behind;          /* its end, for a sum on another stream */
    _Atomic unsigned *off;   /* read by the kernel: not 0, it need not wait any more */
    unsigned long long turn; /* sums so far */
    bool used;               /* both ranks reach each other's segment */
} tn__peers;

/* Makes this rank's segment and tells what the other one needs to reach it; false: sums go another way. */
bool tn__peers_show(tn__peers *peers, const tn__link_place *place, tn__link_name *own);
bool tn__peers_reach(tn__peers *peers, const tn__link_name *other);
void tn__peers_agree(tn__peers *peers, bool reached);
/* Whether a transfer is a sum that the kernel does, and sooner than NCCL. */
bool tn__peers_take(const tn__peers *peers, const tn__transfer *transfer);
bool tn__peers_sum(tn__peers *peers, const tn__transfer *transfer, CUstream stream, tn__why *why);
/* Lets go of the segments, once the last sum is done; false: it has been called off. The context is current. */
bool tn__peers_end(tn__peers *peers);
/* Lets kernels end whose other rank may never come. Memory stays, since that one may yet write into it. */
void tn__peers_call_off(tn__peers *peers);

#endif
