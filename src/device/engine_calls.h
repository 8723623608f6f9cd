/* SPDX-License-Identifier: MIT */
/*
 * What the rooms beneath the engine ask of it, and gradients of the room comm: calls that go up, against the includes.
 * All of them are here. NULL functions where the room that has them is not linked in; whoever calls one that may be
 * missing looks first. Filled in when the library is loaded, for good; tests put functions of their own in for a while.
 */
#ifndef TN_DEVICE_ENGINE_CALLS_H
#define TN_DEVICE_ENGINE_CALLS_H

#include <stdbool.h>
#include <tanso/base.h>

struct tn__device;
struct tn__node;

typedef struct tn__engine_calls {
    tn_status (*evaluate)(struct tn__node *node); /* also when a recording has grown to tn__max_depth */
    tn_status (*evaluate_all)(int count, struct tn__node *const *nodes); /* in one evaluation */
    tn_status (*transfer)(struct tn__node *node); /* each TRANSFER node that is recorded */
    /* When the device has no memory left: gives back what only saves time, such as compiled programs that nobody runs.
     * True if there was any. Called without the allocator's lock. */
    bool (*relieve)(struct tn__device *device);
    /* The gradient of a COLLECTIVE node's input, of that of its result: another call. The room comm fills it in, which
     * alone makes such nodes: so it is never asked for where it is missing. */
    struct tn__node *(*collective_gradient)(const struct tn__node *node, struct tn__node *g);
} tn__engine_calls;
extern tn__engine_calls tn__engine;

#endif
