/* SPDX-License-Identifier: MIT */
/* Pictures: told apart by how their files begin, decoded, and made arrays of bytes. */
#include "io/image.h"

#include <stdio.h>
#include <string.h>
#include <tanso/io.h>
#include "core/memory.h"
#include "io/file.h"

/* The largest file: what PNG makes of the most pixels, uncompressed and of 64 bits. */
#define MOST_BYTES (TN__MOST_PIXELS * 8 + (1 << 20))

static const struct kind {
    const char *name;
    size_t length;
    uint8_t begin[8];
    tn__decode *decode;
} kinds[] = {
    {"PNG", 8, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, tn__png_decode},
    {"JPEG", 3, {0xff, 0xd8, 0xff}, tn__jpeg_decode},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *kind_of(const uint8_t *data, size_t size)
{
    for (int i = 0; i < KINDS; i++)
        if (size >= kinds[i].length && memcmp(data, kinds[i].begin, kinds[i].length) == 0)
            return &kinds[i];
    return NULL;
}

bool tn__is_image(const char *path)
{
    uint8_t begin[sizeof kinds->begin];
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    return kind_of(begin, count) != NULL;
}

tn_status tn__pixels_new(const char *operation, const char *name, tn__pixels *pixels)
{
    uint64_t count = (uint64_t)pixels->width * pixels->height;
    if (count == 0 || count > TN__MOST_PIXELS)
        return tn__fail(TN_ERR_FORMAT, operation,
                        "'%s' has %u x %u pixels, and 1 to %llu million are read: scale it down", name, pixels->width,
                        pixels->height, (unsigned long long)(TN__MOST_PIXELS >> 20));
    size_t bytes = (size_t)count * (size_t)pixels->channels;
    pixels->bytes = tn__alloc(bytes);
    return pixels->bytes ? TN_OK : tn__fail_memory(operation, bytes);
}

tn_status tn__image_read(const char *operation, const char *path, int channels, tn__pixels *pixels)
{
    uint8_t *data;
    size_t size;
    *pixels = (tn__pixels){.channels = channels};
    if (channels != 0 && channels != 1 && channels != 3)
        return tn__fail(TN_ERR_VALUE, operation, "expected 1 channel (grey) or 3 (red, green, blue), got %d", channels);
    tn_status status = tn__file_read(operation, path, MOST_BYTES, &data, &size);
    if (status != TN_OK)
        return status;
    const struct kind *kind = kind_of(data, size);
    status = kind
                 ? kind->decode(operation, path, data, size, pixels)
                 : tn__fail(TN_ERR_FORMAT, operation, "'%s' is neither a PNG nor a JPEG file: convert it to one", path);
    tn__free(data);
    if (status != TN_OK) {
        tn__free(pixels->bytes);
        pixels->bytes = NULL;
    }
    return status;
}

void tn__pixels_planes(const tn__pixels *pixels, uint8_t *out)
{
    size_t count = (size_t)pixels->width * pixels->height;
    for (int c = 0; c < pixels->channels; c++)
        for (size_t i = 0; i < count; i++)
            *out++ = pixels->bytes[i * (size_t)pixels->channels + (size_t)c];
}

tn_array *tn_load_image_with(const char *path, const tn_load_image_opts *opts)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    tn__pixels pixels = {0};
    tn_status status = path ? tn__image_read("load_image", path, opts ? opts->channels : 0, &pixels)
                            : tn__fail_null("load_image", "a path");
    if (status == TN_OK)
        status = tn__values_new("load_image", &values, TN_UINT8,
                                (tn_shape){3, {pixels.channels, pixels.height, pixels.width}});
    if (status == TN_OK)
        tn__pixels_planes(&pixels, tn__values_data(&values));
    tn__free(pixels.bytes);
    return tn__values_leave(call, status, &values);
}
