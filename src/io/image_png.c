/* SPDX-License-Identifier: MIT */
/* PNG by libpng's simplified interface, which takes every kind of PNG there is. */
#include "io/image.h"

#include "core/memory.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_PNG
#include <png.h>

static tn_status damaged(const char *operation, const char *name, const png_image *image)
{
    return tn__fail(TN_ERR_FORMAT, operation, "'%s': %s; the file is damaged or cut short: make it again", name,
                    image->message);
}

static tn_status decode(const char *operation, const char *name, png_image *image, tn__pixels *pixels)
{
    if (!pixels->channels)
        pixels->channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    image->format = pixels->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    pixels->width = image->width;
    pixels->height = image->height;
    tn_status status = tn__pixels_new(operation, name, pixels);
    png_color white = {255, 255, 255};
    if (status == TN_OK && !png_image_finish_read(image, &white, pixels->bytes, 0, NULL))
        return damaged(operation, name, image);
    return status;
}

tn_status tn__png_decode(const char *operation, const char *name, const uint8_t *data, size_t size, tn__pixels *pixels)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    tn_status status = png_image_begin_read_from_memory(&image, data, size) ? decode(operation, name, &image, pixels)
                                                                            : damaged(operation, name, &image);
    png_image_free(&image);
    return status;
}

#else

tn_status tn__png_decode(const char *operation, const char *name, const uint8_t *data, size_t size, tn__pixels *pixels)
{
    (void)data, (void)size, (void)pixels;
    return tn__fail(TN_ERR_UNSUPPORTED, operation,
                    "'%s' is a PNG file, and this build is without libpng: install libpng-dev and build again", name);
}

#endif
