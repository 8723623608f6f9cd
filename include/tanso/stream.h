/* SPDX-License-Identifier: MIT */
/*
 * Waiting for devices, and their queues of work, for those who measure, who have work of their own on a GPU, or work
 * that may go side by side. Nobody else needs any of this: reading a value waits for it, and Tanso orders its work by
 * the data it shares, whatever its stream.
 *
 * Evaluation on a GPU returns when the work has been asked for; a stream is a queue of such work, done in the order of
 * asking. A device has one of its own. Work of two streams goes side by side as far as the GPU has room, and as far as
 * neither uses what the other computes or overwrites: then it waits for the other on the GPU, not here, and nobody has
 * to say so. A value may be used on any stream, whichever computed it, and freed at any time. What waits, too: runs of
 * one program whose operations keep memory of their own (sorting, scans, products by a library, decompositions, Fourier
 * transforms) for one another, and programs with indices that are checked on the GPU for what overwrites in place, so
 * that a failure leaves the same behind as on one stream. Raw kernels (tn_launch) go side by side, though they share
 * variables that their source declares. Each stream has memory that its results come from, so several of them take more
 * than one.
 *
 * CUDA streams of a program's own are ordered with these by tn_stream_native and CUDA's events. An event is a mark in a
 * stream. On the CPU work is done when its call returns, so there a stream is empty at all times, and an event is a
 * moment.
 */
#ifndef TANSO_STREAM_H
#define TANSO_STREAM_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

/* Waits until all that was asked of the device is done, on all its streams; fails with what failed in it. */
TN_API tn_status tn_synchronize(tn_device device) TN_MUST_CHECK;

/* A stream of a device, which has 31 at most at a time (TN_ERR_STATE). What it is asked waits for what the device's own
 * was asked before it was made. NULL with a latched error. Freeing waits for its work, and is not for a block that it
 * is used in; NULL is ignored. */
TN_API tn_stream *tn_stream_new(tn_device device);
TN_API void tn_stream_free(tn_stream *stream);
/* Waits until the stream's work is done. */
TN_API tn_status tn_stream_synchronize(tn_stream *stream) TN_MUST_CHECK;
/* For CUDA's own calls: the CUstream that the device's work from this thread goes on, in a block of TN_ON_STREAM that
 * stream's; NULL on other devices. */
TN_API void *tn_stream_native(tn_device device);

/* TN_ON_STREAM(stream) { ... }: what this thread asks of the stream's device in the block goes on the stream, however
 * the block is left. A stream that is NULL leaves everything as it is. */
typedef struct tn__stream_guard {
    tn_stream *stream;
    int before;
} tn__stream_guard;
TN_API tn__stream_guard tn__stream_enter(tn_stream *stream);
TN_API void tn__stream_leave(tn__stream_guard *guard);
#if defined(__GNUC__)
#define TN_ON_STREAM(which) TN__BLOCK(stream, tn__stream_enter(which))
#endif

/* An event of a device, not recorded yet. NULL with a latched error. Freeing NULL is ignored. */
TN_API tn_event *tn_event_new(tn_device device);
TN_API void tn_event_free(tn_event *event);
/* Marks the end of what this thread's stream of the event's device holds now. An event may be recorded again. */
TN_API tn_status tn_event_record(tn_event *event) TN_MUST_CHECK;
/* What this thread asks the event's device for from now on waits for the event, on the device: the call itself returns
 * at once. Work of other devices is ordered by the copies between them. */
TN_API tn_status tn_event_wait(tn_event *event) TN_MUST_CHECK;
/* Waits here until the event's mark is reached. */
TN_API tn_status tn_event_synchronize(tn_event *event) TN_MUST_CHECK;
/* Seconds from one event to another, by the device's clock, having waited for both. NaN with a latched error if one of
 * them has not been recorded, or they are of two devices. */
TN_API double tn_event_elapsed(tn_event *from, tn_event *to);

#ifndef TN_NO_MACROS
#define tn_stream_new(...) TN_HERE(tn_stream_new(__VA_ARGS__))
#define tn_stream_native(...) TN_HERE(tn_stream_native(__VA_ARGS__))
#define tn_event_new(...) TN_HERE(tn_event_new(__VA_ARGS__))
#define tn_event_elapsed(...) TN_HERE(tn_event_elapsed(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
