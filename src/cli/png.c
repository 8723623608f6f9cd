/* SPDX-License-Identifier: MIT */
/* Reading PNG files by libpng's simplified interface, which takes every kind of PNG there is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/picture.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_PNG
#include <png.h>
#endif

/* More pixels than this are no picture of a digit, and a damaged header may ask for any number. */
#define MOST_PIXELS (64 << 20)

static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/* How many of a file's first bytes there are. */
static size_t first_bytes(const char *path, unsigned char begin[sizeof signature])
{
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(begin, 1, sizeof signature, file) : 0;
    if (file)
        fclose(file);
    return count;
}

bool tn__is_png(const char *path)
{
    unsigned char begin[sizeof signature];
    return first_bytes(path, begin) == sizeof begin && memcmp(begin, signature, sizeof begin) == 0;
}

bool tn__may_be_idx(const char *path)
{
    unsigned char begin[sizeof signature];
    return first_bytes(path, begin) < 2 || (begin[0] == 0 && begin[1] == 0) || (begin[0] == 0x1f && begin[1] == 0x8b);
}

void tn__picture_free(tn__picture *picture)
{
    free(picture->pixels);
    *picture = (tn__picture){0};
}

#ifdef TN_HAVE_PNG

#define DAMAGED "%s; the file is damaged or cut short: make it again"

static bool read_pixels(png_image *image, tn__picture *picture, char *why, size_t size)
{
    uint64_t count = (uint64_t)image->width * image->height;
    if (count > MOST_PIXELS) {
        snprintf(why, size, "it has %u x %u pixels, more than the %d million that are read: scale it down",
                 image->width, image->height, MOST_PIXELS >> 20);
        return false;
    }
    image->format = PNG_FORMAT_GRAY;
    png_color white = {255, 255, 255};
    unsigned char *grey = malloc(count);
    picture->pixels = malloc(count * sizeof *picture->pixels);
    bool read = grey && picture->pixels && png_image_finish_read(image, &white, grey, 0, NULL);
    if (!grey || !picture->pixels)
        snprintf(why, size, "there is no memory for its %u x %u pixels", image->width, image->height);
    else if (!read)
        snprintf(why, size, DAMAGED, image->message);
    for (uint64_t i = 0; read && i < count; i++)
        picture->pixels[i] = (float)grey[i] / 255;
    picture->width = (int)image->width;
    picture->height = (int)image->height;
    free(grey);
    return read;
}

bool tn__picture_read_png(const char *path, tn__picture *picture, char *why, size_t size)
{
    *picture = (tn__picture){0};
    png_image image = {.version = PNG_IMAGE_VERSION};
    bool read = png_image_begin_read_from_file(&image, path);
    if (read)
        read = read_pixels(&image, picture, why, size);
    else
        snprintf(why, size, DAMAGED, image.message);
    png_image_free(&image);
    if (!read)
        tn__picture_free(picture);
    return read;
}

#else

bool tn__picture_read_png(const char *path, tn__picture *picture, char *why, size_t size)
{
    (void)path;
    *picture = (tn__picture){0};
    snprintf(why, size, "this tanso was built without libpng (package libpng-dev): give an IDX file");
    return false;
}

#endif
