/* SPDX-License-Identifier: MIT */
/* Writing TensorBoard's files, see events.h. */
#include "train/events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"

#define OPERATION "tensorboard"

/* Bit by bit: a record has some sixty bytes. */
static uint32_t crc32c(const void *data, size_t count)
{
    const uint8_t *bytes = data;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }

/* ---- messages ---- */

static void put_varint(tn__text *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        tn__text_addn(out, (const char[]){(char)(value | 128)}, 1);
    tn__text_addn(out, (const char[]){(char)value}, 1);
}

static void put_bytes_little(tn__text *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        tn__text_addn(out, (const char[]){(char)(value >> 8 * i)}, 1);
}

/* Wire types. */
enum { VARINT = 0, DOUBLE = 1, BYTES = 2, FLOAT = 5 };

static void put_tag(tn__text *out, int field, int wire) { put_varint(out, (uint64_t)(field << 3 | wire)); }

static void put_bytes(tn__text *out, int field, const char *bytes, size_t count)
{
    put_tag(out, field, BYTES);
    put_varint(out, count);
    tn__text_addn(out, bytes, count);
}

static tn_status broken(const tn__events *events) { return tn__fail_errno(OPERATION, "write", events->path, errno); }

/* An event: now, at `step`, and one field with a message or a text. */
static tn_status put_event(tn__events *events, int64_t step, int field, const tn__text *content)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    tn__text event = {0}, record = {0};
    put_tag(&event, 1, DOUBLE);
    put_bytes_little(&event, bits, 8);
    put_tag(&event, 2, VARINT);
    put_varint(&event, (uint64_t)step);
    if (content->data)
        put_bytes(&event, field, content->data, content->length);
    put_bytes_little(&record, event.length, 8);
    if (!record.failed)
        put_bytes_little(&record, masked(crc32c(record.data, 8)), 4);
    if (!event.failed && !record.failed) {
        tn__text_addn(&record, event.data, event.length);
        put_bytes_little(&record, masked(crc32c(event.data, event.length)), 4);
    }
    tn_status status = TN_OK;
    if (event.failed || record.failed || content->failed)
        status = tn__fail_memory(OPERATION, record.capacity);
    else if (fwrite(record.data, 1, record.length, events->file) != record.length)
        status = broken(events);
    tn__free(event.data);
    tn__free(record.data);
    return status;
}

static tn_status put_head(tn__events *events, int64_t step)
{
    enum { FILE_VERSION = 3, SESSION_LOG = 7 };
    tn__text version = {0}, session = {0};
    tn__text_add(&version, "brain.Event:2");
    tn_status status = put_event(events, 0, FILE_VERSION, &version);
    tn__free(version.data);
    if (status != TN_OK || step == 0)
        return status;
    put_tag(&session, 1, VARINT); /* a session that starts: what is at its step or later is void */
    put_varint(&session, 1);
    status = put_event(events, step, SESSION_LOG, &session);
    tn__free(session.data);
    return status;
}

tn_status tn__events_open(tn__events *events, const char *folder, int64_t step)
{
    tn_status status = tn__folder_make(OPERATION, folder);
    if (status != TN_OK)
        return status;
    int fd = -1;
    for (int i = 0; fd < 0 && i < 1000; i++) {
        events->path =
            tn__format("%s/events.out.tfevents.%lld.%ld.%d", folder, (long long)time(NULL), (long)getpid(), i);
        if (!events->path)
            return tn__fail_memory(OPERATION, strlen(folder) + 64);
        fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
        if (fd < 0)
            tn__free(events->path);
    }
    if (fd < 0)
        return broken(events);
    events->file = fdopen(fd, "w");
    if (!events->file) {
        close(fd);
        return tn__fail_memory(OPERATION, BUFSIZ);
    }
    status = put_head(events, step);
    return status == TN_OK ? tn__events_flush(events) : status;
}

tn_status tn__events_scalar(tn__events *events, const char *tag, double value, int64_t step)
{
    enum { SUMMARY = 5, VALUE = 1, TAG = 1, SIMPLE_VALUE = 2 };
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    tn__text inner = {0}, summary = {0};
    put_bytes(&inner, TAG, tag, strlen(tag));
    put_tag(&inner, SIMPLE_VALUE, FLOAT);
    put_bytes_little(&inner, bits, 4);
    if (inner.failed)
        summary.failed = true;
    else
        put_bytes(&summary, VALUE, inner.data, inner.length);
    tn_status status = put_event(events, step, SUMMARY, &summary);
    tn__free(inner.data);
    tn__free(summary.data);
    return status;
}

tn_status tn__events_flush(tn__events *events)
{
    return events->file && fflush(events->file) != 0 ? broken(events) : TN_OK;
}

void tn__events_close(tn__events *events)
{
    if (events->file)
        fclose(events->file);
    tn__free(events->path);
    *events = (tn__events){0};
}
