/* SPDX-License-Identifier: MIT */
/* JPEG by libjpeg(-turbo), whose errors come back by longjmp instead of ending the process. */
#include "io/image.h"

#include "core/memory.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>

typedef struct failure {
    struct jpeg_error_mgr manager; /* first: the library gives a pointer to it */
    jmp_buf back;
    char why[JMSG_LENGTH_MAX];
} failure;

static void on_error(j_common_ptr info)
{
    failure *f = (failure *)info->err;
    info->err->format_message(info, f->why);
    longjmp(f->back, 1);
}

/* Warnings are of damaged data, of which the library would make up the rest: they are errors here. */
static void on_message(j_common_ptr info, int level)
{
    if (level < 0)
        on_error(info);
}

static tn_status read_rows(const char *operation, const char *name, struct jpeg_decompress_struct *info,
                           tn__pixels *pixels)
{
    pixels->width = info->output_width;
    pixels->height = info->output_height;
    tn_status status = tn__pixels_new(operation, name, pixels);
    while (status == TN_OK && info->output_scanline < info->output_height) {
        JSAMPROW row = pixels->bytes + (size_t)info->output_scanline * pixels->width * (size_t)pixels->channels;
        jpeg_read_scanlines(info, &row, 1);
    }
    return status;
}

/* Everything that may jump. What it has when it does lies in *pixels and *info, of the caller's. */
static tn_status decode(const char *operation, const char *name, const uint8_t *data, size_t size,
                        struct jpeg_decompress_struct *info, tn__pixels *pixels)
{
    jpeg_mem_src(info, data, size);
    jpeg_read_header(info, TRUE);
    if (!pixels->channels)
        pixels->channels = info->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK)
        return tn__fail(TN_ERR_UNSUPPORTED, operation,
                        "'%s' is a JPEG of four inks (CMYK): expected grey or colours; convert it", name);
    info->out_color_space = pixels->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if ((uint64_t)info->image_width * info->image_height <= TN__MOST_PIXELS) /* before the library takes memory */
        jpeg_start_decompress(info);
    else
        info->output_width = info->image_width, info->output_height = info->image_height;
    tn_status status = read_rows(operation, name, info, pixels);
    if (status == TN_OK)
        jpeg_finish_decompress(info);
    return status;
}

tn_status tn__jpeg_decode(const char *operation, const char *name, const uint8_t *data, size_t size, tn__pixels *pixels)
{
    failure f;
    struct jpeg_decompress_struct info = {.err = jpeg_std_error(&f.manager)};
    f.manager.error_exit = on_error;
    f.manager.emit_message = on_message;
    tn_status status;
    if (setjmp(f.back)) {
        status = tn__fail(TN_ERR_FORMAT, operation, "'%s': %s; the file is damaged or cut short: make it again", name,
                          f.why);
    } else {
        jpeg_create_decompress(&info);
        status = decode(operation, name, data, size, &info, pixels);
    }
    jpeg_destroy_decompress(&info);
    return status;
}

#else

tn_status tn__jpeg_decode(const char *operation, const char *name, const uint8_t *data, size_t size, tn__pixels *pixels)
{
    (void)data, (void)size, (void)pixels;
    return tn__fail(TN_ERR_UNSUPPORTED, operation,
                    "'%s' is a JPEG file, and this build is without libjpeg: install libjpeg-dev and build again",
                    name);
}

#endif
