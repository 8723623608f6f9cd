/* SPDX-License-Identifier: MIT */
#include "cuda/two_streams.h"

tn__device *device;
tn__cuda_device *cuda;
tn_stream *a, *b;

bool two_streams_open(void)
{
    device = stand_in_use();
    if (device == NULL)
        return false;
    cuda = tn__cuda_of(device);
    fake.lazy = true;
    return true;
}

/* A stream's number is no public fact. */
CUstream queue(tn_stream *stream)
{
    int number = 0;
    TN_ON_STREAM (stream)
        number = tn__stream_number(device);
    return cuda->streams[number].handle;
}

size_t waiting(tn_stream *stream) { return fake_waiting(queue(stream)); }
size_t waiting_on_own(void) { return fake_waiting(cuda->stream); }

tn_array *fresh(double value)
{
    tn_array *x = tn_full(TN_SHAPE(N), value);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

int two_streams_begin(void **state)
{
    (void)state;
    tn_scope_push();
    a = tn_stream_new(tn_cuda(0));
    b = tn_stream_new(tn_cuda(0));
    return a && b && tn_synchronize(tn_cuda(0)) == TN_OK ? 0 : -1;
}

int two_streams_end(void **state)
{
    (void)state;
    tn_scope_pop();
    tn_stream_free(a);
    tn_stream_free(b);
    fake_flush();
    return device->streams == 0 && tn_ok() ? 0 : -1;
}
