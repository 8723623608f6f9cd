/* SPDX-License-Identifier: MIT */
/*
 * Streams: the queues of a device's work. Stream 0 is the device's own, the others are streams that a program has made.
 * Work of one stream is done in the order of asking, work of several side by side, unless memory that they share orders
 * it: whoever uses memory goes behind those that wrote it, whoever writes it behind all that used it. For that, memory
 * knows which streams used it last.
 *
 * While a program has made no stream, nobody notes anything: a stream that is made begins behind all that stream 0 was
 * asked before.
 */
#ifndef TN_DEVICE_STREAM_ORDER_H
#define TN_DEVICE_STREAM_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tanso/base.h>
#include "core/plugin.h"

struct tn__device;

#define TN__STREAMS 32

/* Who used something last: sets of streams, and the device's ticks by which they had been asked. All zero: nobody since
 * any stream was made. */
typedef struct tn__use {
    _Atomic uint32_t streams, writers; /* since it was last written; of these, who wrote it */
    _Atomic uint64_t last, wrote;    /* by then all of them had been asked */
} tn__use;

TN__PLUGIN_BEGIN
/* The stream of a device that this thread's work goes on, where there are streams beside the own one. */
int tn__stream_of_thread(const struct tn__device *device);
/* Puts this thread's stream behind those that something must wait for: to be read, or written. */
tn_status tn__use_begin(struct tn__device *device, const tn__use *use, bool writes);
/* Notes that this thread's stream has been asked to use it: afterwards, whatever became of that, and before others may
 * have it. */
void tn__use_end(struct tn__device *device, tn__use *use, bool writes);
TN__PLUGIN_END
/* Of two pieces of memory that become one; of one that becomes two, where `to` is zero. */
void tn__use_unite(tn__use *to, const tn__use *other);
/* Makes a stream this thread's, and tells which was it before. */
int tn__stream_choose(const struct tn__device *device, int stream);

#endif
