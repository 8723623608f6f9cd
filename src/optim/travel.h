/* SPDX-License-Identifier: MIT */
/* Gradients that go from GPU to GPU as they are: travel.c. */
#ifndef TN_OPTIM_TRAVEL_H
#define TN_OPTIM_TRAVEL_H

#include "optim/optimizer.h"

/* A mean over the ranks, an error perhaps, becomes the parameter's gradient. */
tn_status tn__take_mean(tn_array *param, tn__node *mean);

/* Whether they do: all ranks get the same answer. */
tn_status tn__gradients_travel(tn_optimizer *optimizer, bool *travel);
/* Gradients become their means over the ranks. */
tn_status tn__gradients_sum(tn_optimizer *optimizer);

#endif
