/* SPDX-License-Identifier: MIT */
/*
 * The streams and events of the fake driver: each stream a queue of work, of events to be recorded and of events to be
 * waited for, in the order of asking. Nothing is done before somebody waits for it; then all is, stream after stream. A
 * lazy driver does only what was waited for and what that is behind, and, where a test throws dice, some of what others
 * have asked for in front of it: so an order that nobody asked for is not kept, and shows.
 */
#ifndef TN_TESTS_CUDA_QUEUES_H
#define TN_TESTS_CUDA_QUEUES_H

#include "backends/cuda/runtime/cuda.h"

typedef enum fake_kind { FAKE_NOTHING, FAKE_COPY, FAKE_SET, FAKE_LAUNCH, FAKE_CALL } fake_kind;

typedef struct fake_work {
    fake_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    char name[64];
    int64_t words[32];
    tn__cuda_failure failure;
    const void *call; /* CALL: what fake.closes has made of a launch */
    void (*calls)(const void *call); /* by whom; NULL: fake.calls */
    void (*passes)(const void *call); /* CALL: when a stream is given it, itself or as part of a graph; may be NULL */
    bool (*goes)(const void *call);  /* CALL: instead, again and again until it tells that it is done */
} fake_work;

/* Puts work on a stream, or into the graph that is captured from it: fake.c's. */
CUresult fake_ask(CUstream stream, fake_work work);
/* Puts work on a stream. */
CUresult fake_put(CUstream stream, const fake_work *work);
/* Does a piece of work: fake.c's. */
void fake_do(const fake_work *work);
/* All that waits, in all streams. */
void fake_flush(void);
/* Pieces of work that wait in a stream. */
size_t fake_waiting(CUstream stream);

/* cuStreamCreate and its kin. */
CUresult fake_stream(CUstream *stream, unsigned flags);
CUresult fake_stream_end(CUstream stream);
CUresult fake_stream_wait(CUstream stream);
CUresult fake_stream_ask(CUstream stream);
CUresult fake_stream_follow(CUstream stream, CUevent event, unsigned flags);
CUresult fake_event(CUevent *event, unsigned flags);
CUresult fake_event_end(CUevent event);
CUresult fake_record(CUevent event, CUstream stream);
CUresult fake_event_wait(CUevent event);
CUresult fake_event_ask(CUevent event);
CUresult fake_elapsed(float *milliseconds, CUevent from, CUevent to);

#endif
