/* SPDX-License-Identifier: MIT */
/* Limits of memory as text. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/number.h"
#include "core/plugin.h"
#include "device/allocator.h"
#include "device/registry.h"

size_t tn__parse_bytes(const char *text, size_t total)
{
    static const char suffixes[] = "KMGT";
    char *end;
    double value = tn__read_double(text, &end);
    if (end == text || !(value > 0))
        return 0;
    double scale = 1;
    const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
    if (*end == '%') {
        if (value > 100)
            return 0;
        scale = (double)total / 100;
        end++;
    } else if (suffix) {
        for (const char *s = suffixes; s <= suffix; s++)
            scale *= 1024;
        end++;
    }
    value *= scale;
    return *end || value >= 0x1p62 ? 0 : (size_t)value;
}

static void complain(const char *text)
{
    tn__log(TN__LOG_WARN, "device",
            "TANSO_MEMORY_LIMIT: expected bytes such as 512M or 4G, a percentage, or these by kind or device as "
            "cuda=80%%,cuda:1=10G,cpu=4G; got "
            "'%s': no limit is set by it",
            text);
}

/* A kind that is there once it is asked for. */
static bool has_plugin(const char *name)
{
    char file[64], path[PATH_MAX];
    snprintf(file, sizeof file, "libtanso-%.*s.so", (int)strcspn(name, ":"), name);
    return tn__plugin_path(file, path, sizeof path) && access(path, F_OK) == 0;
}

/* "cuda", "cuda:1" */
static bool is_device(const char *name)
{
    for (int i = 0; i < TN__DEVICE_KINDS; i++) {
        const char *kind = tn__device_kind_name(i);
        size_t length = kind ? strlen(kind) : 0;
        const char *index = name + length + 1;
        if (kind && strncmp(name, kind, length) == 0 &&
            (!name[length] || (name[length] == ':' && *index && !index[strspn(index, "0123456789")])))
            return true;
    }
    return has_plugin(name);
}

size_t tn__limit_given(const tn__device *device)
{
    const char *text = getenv("TANSO_MEMORY_LIMIT"), *kind = tn__device_kind_name(device->id.kind);
    size_t limit = 0;
    bool own = false; /* the limit is this very device's, not its kind's */
    while (text && *text) {
        char item[64], *value = item;
        size_t length = strcspn(text, ",");
        if (length >= sizeof item) {
            complain(text);
            return limit;
        }
        memcpy(item, text, length);
        item[length] = 0;
        text += length + (text[length] == ',');
        char *equals = strchr(item, '=');
        if (equals) {
            *equals = 0;
            value = equals + 1;
        }
        bool named = equals && strcmp(item, device->name) == 0;
        if (equals && kind && !named && strcmp(item, kind) != 0) {
            if (!is_device(item))
                complain(item);
            continue;
        }
        size_t given = tn__parse_bytes(value, device->capabilities.total_memory);
        if (!given)
            complain(value);
        if (named || !own)
            limit = given;
        own |= named;
    }
    return limit;
}
