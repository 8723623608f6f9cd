/* SPDX-License-Identifier: MIT */
/* Pictures by the ending of their files. */
#include "train/canvas.h"

#include <string.h>
#include <strings.h>
#include "core/error.h"
#include "io/file.h"
#include "tn_build_config.h"

/* Of a character of the usual fonts, as a share of the size. */
#define ADVANCE 0.56

double tn__text_width(const char *text, double size)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return ADVANCE * size * count;
}

static tn_status write_svg(const char *path, int width, int height, tn__drawing draw, const void *user)
{
    tn__text svg = {0};
    tn__svg_write(&svg, width, height, draw, user);
    return tn__file_write_picture("plot", path, &svg);
}

static const struct {
    const char *ending;
    tn_status (*write)(const char *path, int width, int height, tn__drawing draw, const void *user);
} kinds[] = {{".svg", write_svg}, {".png", tn__png_write}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int kind_of(const char *path)
{
    size_t length = strlen(path);
    int i = 0;
    while (i < KINDS && !(length > 4 && strcasecmp(path + length - 4, kinds[i].ending) == 0))
        i++;
    return i;
}

tn_status tn__picture_known(const char *path)
{
    int kind = kind_of(path);
    if (kind == KINDS)
        return tn__fail(TN_ERR_VALUE, "plot", "expected the name of a picture that ends in .svg or .png, got '%s'",
                        path);
#ifndef TN_HAVE_PNG
    if (kinds[kind].write == tn__png_write)
        return tn__fail(TN_ERR_UNSUPPORTED, "plot",
                        "'%s' needs libpng (package libpng-dev), which this build lacks: "
                        "let the name end in .svg",
                        path);
#endif
    return TN_OK;
}

tn_status tn__picture_write(const char *path, int width, int height, tn__drawing draw, const void *user)
{
    tn_status status = tn__picture_known(path);
    return status == TN_OK ? kinds[kind_of(path)].write(path, width, height, draw, user) : status;
}
