/* SPDX-License-Identifier: MIT */
/* The sampler of several ranks, each of which has its share of every epoch. */
#include <tanso/comm.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/options.h"
#include "data/dataset.h"
#include "data/sampler.h"

/* Sample j of the epoch that a single process would have goes to rank j % ranks: so minibatch k of all ranks together
 * is its minibatch k. */
static tn_status deal(const tn_sampler *sampler, const tn__epoch_order *want)
{
    TN__FREED int64_t *all = sampler->shuffles ? tn__alloc((size_t)want->size * sizeof *all) : NULL;
    if (sampler->shuffles && !all)
        return tn__fail_memory("sampler", (size_t)want->size * sizeof *all);
    if (all)
        tn__permutation(want->key, want->size, all);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t j = (i * sampler->ranks + sampler->rank) % want->size;
        want->rows[i] = all ? all[j] : j;
    }
    return TN_OK;
}

tn_sampler *tn_rank_sampler_with(int64_t size, const tn_comm *comm, const tn_rank_sampler_opts *opts)
{
    int ranks = tn_comm_size(comm), rank = tn_comm_rank(comm);
    bool uneven = opts && opts->uneven;
    tn_sampler *sampler = tn__sampler_new(deal);
    tn_status status = ranks < 0 ? tn__error_status(tn__error_last()) : TN_OK;
    if (status == TN_OK && (size < 1 || (uneven && size < ranks)))
        status = tn__fail(TN_ERR_VALUE, "rank_sampler", "expected %d samples or more, one for each rank, got %lld",
                          uneven ? ranks : 1, (long long)size);
    if (status == TN_OK && !sampler->is_static) {
        sampler->size = size;
        sampler->samples = uneven ? (size - rank + ranks - 1) / ranks : (size - 1) / ranks + 1;
        sampler->ranks = ranks;
        sampler->rank = rank;
        sampler->shuffles = opts && opts->shuffle;
    }
    return tn__sampler_done(sampler, status);
}
