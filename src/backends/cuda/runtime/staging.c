/* SPDX-License-Identifier: MIT */
/*
 * Transfers between host memory and the device, through pieces of pinned memory. What is written to the device is
 * copied into a piece, and the caller goes on while the GPU fetches it, unless all pieces are under way: small writes
 * of a stream lie behind one another in one piece. What is read is waited for; meanwhile other threads may ask for
 * work, and for other pieces.
 */
#include <string.h>

#include "backends/cuda/runtime/backend.h"
#include "core/memory.h"

#define PIECE ((size_t)1 << 20)
#define PIECES_FIRST 8 /* pieces made at first, and each time that a write would have to wait for one */
#define PIECES 32
#define APART ((size_t)64) /* writes begin on cache lines of their own: the GPU may be reading the one before */

typedef struct piece {
    char *memory;
    CUevent done; /* of the last transfer through it */
    tn__cuda_point point; /* end of that transfer */
    int stream;     /* that this was asked of: all that is under way through a piece is one stream's */
    bool held;    /* it contains data of a read that has not been copied out yet */
    uint64_t asked; /* sequence number of that transfer; 0: none yet */
} piece;

struct tn__cuda_staging {
    piece piece[PIECES];
    int count, next;
    uint64_t asked;         /* sequence number of the last transfer */
    int open[TN__STREAMS];    /* a stream's piece that small writes go to; -1: none */
    size_t used[TN__STREAMS]; /* bytes in use of that piece */
    pthread_cond_t let_go;  /* signalled when a held piece is released */
};

/* ---- pinned memory ---- */

/* Adds `count` pieces, or none. */
static CUresult add_pieces(tn__cuda_device *device, tn__cuda_staging *staging, int count)
{
    const tn__cuda_driver *driver = device->driver;
    char *memory = NULL;
    CUresult result = driver->cuMemAllocHost((void **)&memory, (size_t)count * PIECE);
    if (result != CUDA_SUCCESS)
        return result;
    piece *added = staging->piece + staging->count;
    int made = 0;
    for (; made < count && result == CUDA_SUCCESS; made++) {
        added[made] = (piece){.memory = memory + (size_t)made * PIECE};
        result = driver->cuEventCreate(&added[made].done, CU_EVENT_DISABLE_TIMING);
    }
    if (result == CUDA_SUCCESS) {
        staging->count += count;
        device->owner->pinned += (size_t)count * PIECE;
        return CUDA_SUCCESS;
    }
    while (--made > 0)
        driver->cuEventDestroy(added[made - 1].done);
    driver->cuMemFreeHost(memory);
    return result;
}

/* Makes the pieces if there are none. The caller holds the lock. */
static tn_status staging_open(tn__cuda_device *device)
{
    if (device->staging)
        return TN_OK;
    tn__cuda_staging *staging = tn__calloc(1, sizeof *staging);
    if (staging == NULL)
        return tn__fail_memory("staging", sizeof *staging);
    tn_status status = tn__cuda_check(device, add_pieces(device, staging, PIECES_FIRST), "staging");
    if (status != TN_OK) {
        tn__free(staging);
        return status;
    }
    pthread_cond_init(&staging->let_go, NULL);
    for (int stream = 0; stream < TN__STREAMS; stream++)
        staging->open[stream] = -1;
    device->staging = staging;
    return TN_OK;
}

/* The next piece that is not in use, else -1. A piece also counts as in use while earlier work of its stream is under
 * way. */
static int idle_piece(const tn__cuda_device *device)
{
    const tn__cuda_staging *staging = device->staging;
    uint64_t busy[TN__STREAMS];
    uint32_t streams = 0; /* for which there is a word in it */
    for (int i = 0; i < staging->count; i++) {
        int number = (staging->next + i) % staging->count;
        const piece *p = &staging->piece[number];
        if (p->held || (streams >> p->stream & 1 && p->asked > busy[p->stream]))
            continue;
        if (device->driver->cuEventQuery(p->done) == CUDA_SUCCESS)
            return number;
        streams |= (uint32_t)1 << p->stream;
        busy[p->stream] = p->asked;
    }
    return -1;
}

/* The piece to wait for: this stream's oldest, as others may be waiting for something long, else the oldest; -1: all
 * are held. */
static int busy_piece(const tn__cuda_device *device)
{
    const tn__cuda_staging *staging = device->staging;
    int stream = tn__stream_number(device->owner), own = -1, any = -1;
    for (int i = 0; i < staging->count; i++) {
        const piece *p = &staging->piece[i];
        int *oldest = p->stream == stream ? &own : &any;
        if (!p->held && (*oldest < 0 || p->asked < staging->piece[*oldest].asked))
            *oldest = i;
    }
    return own >= 0 ? own : any;
}

/* A piece that nothing uses any more, for this stream's next transfer. Where all are under way, writes get more; if
 * there is no memory for these, they wait, as they do once there are all. */
static tn_status take_piece(tn__cuda_device *device, bool writes, int *taken)
{
    tn__cuda_staging *staging = device->staging;
    int number = idle_piece(device);
    if (number < 0 && writes && staging->count < PIECES &&
        add_pieces(device, staging, PIECES - staging->count) == CUDA_SUCCESS)
        number = PIECES_FIRST;
    tn_status status = TN_OK;
    if (number < 0) {
        while ((number = busy_piece(device)) < 0)
            pthread_cond_wait(&staging->let_go, &device->lock);
        status = tn__cuda_wait_event(device, staging->piece[number].done, staging->piece[number].point,
                                     "more is written than the pinned memory holds");
    }
    if (status != TN_OK)
        return status;
    piece *p = &staging->piece[number];
    if (staging->open[p->stream] == number)
        staging->open[p->stream] = -1;
    p->stream = tn__stream_number(device->owner);
    staging->next = (number + 1) % staging->count;
    *taken = number;
    return TN_OK;
}

/* Room for a write of this stream: behind its last ones, else in a piece of its own. */
static tn_status take_room(tn__cuda_device *device, size_t bytes, int *taken, size_t *at)
{
    tn__cuda_staging *staging = device->staging;
    int stream = tn__stream_number(device->owner);
    if (staging->open[stream] < 0 || PIECE - staging->used[stream] < bytes) {
        tn_status status = take_piece(device, true, taken);
        if (status != TN_OK)
            return status;
        staging->open[stream] = *taken;
        staging->used[stream] = 0;
    }
    *taken = staging->open[stream];
    *at = staging->used[stream];
    staging->used[stream] = (*at + bytes + APART - 1) / APART * APART;
    return TN_OK;
}

/* ---- both ways ---- */

/* Behind what this stream was asked to do with a piece. */
static tn_status mark(tn__cuda_device *device, piece *used, const char *what)
{
    used->asked = ++device->staging->asked;
    used->point = tn__cuda_here(device, tn__stream_number(device->owner));
    return tn__cuda_check(device, device->driver->cuEventRecord(used->done, tn__cuda_stream(device)), what);
}

static tn_status write_piece(tn__cuda_device *device, CUdeviceptr to, const char *from, size_t bytes)
{
    const tn__cuda_driver *driver = device->driver;
    int taken;
    size_t at;
    tn_status status = take_room(device, bytes, &taken, &at);
    if (status != TN_OK)
        return status;
    piece *used = &device->staging->piece[taken];
    memcpy(used->memory + at, from, bytes);
    status = tn__cuda_check(
        device, driver->cuMemcpyHtoDAsync(to, used->memory + at, bytes, tn__cuda_stream(device)), "write");
    return status == TN_OK ? mark(device, used, "write") : status;
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

/* Waits for the transfer into a held piece, without the lock, and copies it out. */
static tn_status take_out(tn__cuda_device *device, piece *from, char *to, size_t bytes)
{
    pthread_mutex_unlock(&device->lock);
    tn_status status = tn__cuda_wait_event(device, from->done, from->point, "a value is read");
    if (status == TN_OK)
        memcpy(to, from->memory, bytes);
    pthread_mutex_lock(&device->lock);
    from->held = false;
    pthread_cond_broadcast(&device->staging->let_go);
    return status;
}

/* Reads memory piece by piece: later pieces are transferred while earlier ones are copied out. The lock is held once,
 * by this thread: a caller that holds it already may not read. */
static tn_status read_pieces(tn__cuda_device *device, char *host, CUdeviceptr from, size_t bytes)
{
    enum { AHEAD = PIECES_FIRST };
    const tn__cuda_driver *driver = device->driver;
    tn__cuda_staging *staging = device->staging;
    CUstream stream = tn__cuda_stream(device);
    tn_status status = TN_OK;
    size_t asked = 0, taken = 0;
    piece *fetched[AHEAD];
    int first = 0, count = 0;
    while (taken < bytes && status == TN_OK) {
        while (asked < bytes && count < AHEAD && (count == 0 || busy_piece(device) >= 0)) {
            int number;
            size_t part = bytes - asked < PIECE ? bytes - asked : PIECE;
            status = take_piece(device, false, &number);
            if (status != TN_OK)
                break;
            piece *to = fetched[(first + count) % AHEAD] = &staging->piece[number];
            status = tn__cuda_check(device, driver->cuMemcpyDtoHAsync(to->memory, from + asked, part, stream), "read");
            if (status == TN_OK)
                status = mark(device, to, "read");
            if (status != TN_OK)
                break;
            to->held = true;
            asked += part;
            count++;
        }
        if (status == TN_OK)
            status = take_out(device, fetched[first], host + taken, bytes - taken < PIECE ? bytes - taken : PIECE);
        if (status != TN_OK)
            break;
        taken += PIECE;
        first = (first + 1) % AHEAD;
        count--;
    }
    for (; count > 0; count--, first = (first + 1) % AHEAD) /* pieces left after a failure */
        fetched[first]->held = false;
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

/* ---- reading that nobody waits for ---- */

/* The most pieces held by such reads: others need some for reads that are waited for. */
#define BEGUN 4

static int count_held(const tn__cuda_staging *staging)
{
    int count = 0;
    for (int i = 0; i < staging->count; i++)
        count += staging->piece[i].held;
    return count;
}

static piece *begin_reading(tn__cuda_device *device, CUdeviceptr from, size_t bytes)
{
    tn__cuda_staging *staging = device->staging;
    int number = count_held(staging) < BEGUN ? idle_piece(device) : -1;
    if (number < 0 || take_piece(device, false, &number) != TN_OK)
        return NULL;
    piece *to = &staging->piece[number];
    CUresult result = device->driver->cuMemcpyDtoHAsync(to->memory, from, bytes, tn__cuda_stream(device));
    tn_status status = tn__cuda_check(device, result, "read");
    if (status == TN_OK)
        status = mark(device, to, "read");
    to->held = status == TN_OK;
    return to->held ? to : NULL;
}

void *tn__cuda_read_begin(tn__device *owner, const void *memory, size_t bytes)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    if (bytes == 0 || bytes > PIECE || tn__cuda_enter(device, "read") != TN_OK || tn__cuda_look(device) != TN_OK)
        return NULL;
    pthread_mutex_lock(&device->lock);
    piece *begun = staging_open(device) == TN_OK ? begin_reading(device, (CUdeviceptr)memory, bytes) : NULL;
    tn__cuda_asked(device);
    pthread_mutex_unlock(&device->lock);
    return begun;
}

tn_status tn__cuda_read_end(tn__device *owner, void *begun, void *host, size_t bytes, bool wait, bool *done)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    piece *from = begun;
    tn_status status = tn__cuda_enter_held(device, "read");
    if (tn__cuda_is_child()) {
        *done = true; /* with the parent's memory and locks, which its other threads may have held at the fork */
        return status;
    }
    CUresult result = status == TN_OK ? device->driver->cuEventQuery(from->done) : CUDA_SUCCESS;
    *done = wait || status != TN_OK || result != CUDA_ERROR_NOT_READY;
    if (!*done)
        return TN_OK;
    if (status == TN_OK)
        status = result != CUDA_ERROR_NOT_READY
                     ? tn__cuda_check(device, result, "read")
                     : tn__cuda_wait_event(device, from->done, from->point, "a value is read");
    if (status == TN_OK && host)
        memcpy(host, from->memory, bytes);
    pthread_mutex_lock(&device->lock);
    from->held = false;
    if (device->staging)
        pthread_cond_broadcast(&device->staging->let_go);
    pthread_mutex_unlock(&device->lock);
    return status == TN_OK ? tn__cuda_look(device) : status;
}
