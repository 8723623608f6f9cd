/* SPDX-License-Identifier: MIT */
/*
 * Transfers between host memory and the device, through pieces of pinned memory. What is written to the device is
 * copied into a piece, and the caller goes on while the GPU fetches it, unless all pieces are under way. What is read
 * is waited for; meanwhile other threads may ask for work, and for other pieces.
 */
#include <string.h>

#include "backends/cuda/backend.h"
#include "core/memory.h"

#define PIECE ((size_t)1 << 20)
#define PIECES 8

struct tn__cuda_staging {
    char *memory;
    CUevent done[PIECES]; /* of the last transfer through a piece */
    bool held[PIECES];    /* what was read into it has not been copied out */
    pthread_cond_t let_go; /* of a piece that was held */
    int next;
};

/* ---- pinned memory ---- */

static void staging_free(tn__cuda_staging *staging, const tn__cuda_driver *driver)
{
    for (int i = 0; i < PIECES; i++)
        if (staging->done[i])
            driver->cuEventDestroy(staging->done[i]);
    if (staging->memory)
        driver->cuMemFreeHost(staging->memory);
    pthread_cond_destroy(&staging->let_go);
    tn__free(staging);
}

/* Under the lock. */
static tn_status staging_open(tn__cuda_device *device)
{
    if (device->staging)
        return TN_OK;
    const tn__cuda_driver *driver = device->driver;
    tn__cuda_staging *staging = tn__calloc(1, sizeof *staging);
    if (staging == NULL)
        return tn__fail_memory("staging", sizeof *staging);
    pthread_cond_init(&staging->let_go, NULL);
    tn_status status = tn__cuda_check(device, driver->cuMemAllocHost((void **)&staging->memory, PIECES * PIECE),
                                      "staging");
    for (int i = 0; i < PIECES && status == TN_OK; i++)
        status = tn__cuda_check(device, driver->cuEventCreate(&staging->done[i], CU_EVENT_DISABLE_TIMING), "staging");
    if (status != TN_OK) {
        staging_free(staging, driver);
        return status;
    }
    device->staging = staging;
    device->owner->pinned += PIECES * PIECE;
    return TN_OK;
}

/* The next piece, once nothing uses it any more. */
static tn_status take_piece(tn__cuda_device *device, int *piece)
{
    tn__cuda_staging *staging = device->staging;
    while (staging->held[staging->next])
        pthread_cond_wait(&staging->let_go, &device->lock);
    *piece = staging->next;
    staging->next = (staging->next + 1) % PIECES;
    if (device->driver->cuEventQuery(staging->done[*piece]) == CUDA_SUCCESS)
        return TN_OK;
    return tn__cuda_wait_event(device, staging->done[*piece], "more is written than the pinned memory holds");
}

/* ---- both ways ---- */

static tn_status write_piece(tn__cuda_device *device, CUdeviceptr to, const char *from, size_t bytes)
{
    const tn__cuda_driver *driver = device->driver;
    int piece;
    tn_status status = take_piece(device, &piece);
    if (status != TN_OK)
        return status;
    char *memory = device->staging->memory + (size_t)piece * PIECE;
    memcpy(memory, from, bytes);
    CUstream stream = tn__cuda_stream(device);
    status = tn__cuda_check(device, driver->cuMemcpyHtoDAsync(to, memory, bytes, stream), "write");
    return status == TN_OK
               ? tn__cuda_check(device, driver->cuEventRecord(device->staging->done[piece], stream), "write")
               : status;
}

tn_status tn__cuda_write(tn__device *owner, void *memory, const void *host, size_t bytes)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "write");
    if (status != TN_OK || bytes == 0)
        return status;
    pthread_mutex_lock(&device->lock);
    status = staging_open(device);
    for (size_t at = 0; at < bytes && status == TN_OK; at += PIECE)
        status = write_piece(device, (CUdeviceptr)memory + at, (const char *)host + at,
                             bytes - at < PIECE ? bytes - at : PIECE);
    tn__cuda_asked(device);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Waits for a piece that is held, without the lock, and copies it out. */
static tn_status take_out(tn__cuda_device *device, int piece, char *to, size_t bytes)
{
    tn__cuda_staging *staging = device->staging;
    pthread_mutex_unlock(&device->lock);
    tn_status status = tn__cuda_wait_event(device, staging->done[piece], "a value is read");
    if (status == TN_OK)
        memcpy(to, staging->memory + (size_t)piece * PIECE, bytes);
    pthread_mutex_lock(&device->lock);
    staging->held[piece] = false;
    pthread_cond_broadcast(&staging->let_go);
    return status;
}

/* Pieces are fetched while earlier ones are copied out. The lock is held once, by this thread alone: nobody reads under
 * it. */
static tn_status read_pieces(tn__cuda_device *device, char *host, CUdeviceptr from, size_t bytes)
{
    const tn__cuda_driver *driver = device->driver;
    tn__cuda_staging *staging = device->staging;
    CUstream stream = tn__cuda_stream(device);
    tn_status status = TN_OK;
    size_t asked = 0, taken = 0;
    int piece[PIECES], first = 0, count = 0;
    while (taken < bytes && status == TN_OK) {
        while (asked < bytes && count < PIECES && status == TN_OK && (count == 0 || !staging->held[staging->next])) {
            int *place = &piece[(first + count) % PIECES];
            size_t part = bytes - asked < PIECE ? bytes - asked : PIECE;
            status = take_piece(device, place);
            if (status != TN_OK)
                break;
            status = tn__cuda_check(
                device, driver->cuMemcpyDtoHAsync(staging->memory + (size_t)*place * PIECE, from + asked, part, stream),
                "read");
            if (status == TN_OK)
                status = tn__cuda_check(device, driver->cuEventRecord(staging->done[*place], stream), "read");
            staging->held[*place] = true;
            asked += part;
            count++;
        }
        if (status == TN_OK)
            status = take_out(device, piece[first], host + taken, bytes - taken < PIECE ? bytes - taken : PIECE);
        if (status != TN_OK)
            break;
        taken += PIECE;
        first = (first + 1) % PIECES;
        count--;
    }
    for (; count > 0; count--, first = (first + 1) % PIECES) /* after a failure */
        staging->held[piece[first]] = false;
    pthread_cond_broadcast(&staging->let_go);
    return status;
}

tn_status tn__cuda_read(tn__device *owner, void *host, const void *memory, size_t bytes)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, "read");
    if (status == TN_OK)
        status = tn__cuda_look(device);
    if (status != TN_OK || bytes == 0)
        return status;
    pthread_mutex_lock(&device->lock);
    status = staging_open(device);
    if (status == TN_OK)
        status = read_pieces(device, host, (CUdeviceptr)memory, bytes);
    tn__cuda_asked(device);
    pthread_mutex_unlock(&device->lock);
    return status == TN_OK ? tn__cuda_look(device) : status;
}
