/* SPDX-License-Identifier: MIT */
/* A text as NumPy saves one: an array without axes, of a dtype of so many characters of UTF-32. */
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "io/formats.h"

/* Behind `word` in a header; NULL if it is not there. */
static const char *behind(const char *header, const char *word)
{
    const char *at = strstr(header, word);
    return at ? at + strlen(word) : NULL;
}

/* The number of characters by a header; -1 if it is of another kind. */
static long characters(const char *header)
{
    const char *shape = behind(header, "'shape': ()"), *count = behind(header, "'descr': '<U");
    char *end = NULL;
    long value = shape && count ? strtol(count, &end, 10) : -1;
    return end && end != count && *end == '\'' && value >= 0 ? value : -1;
}

static char *put_utf8(char *to, uint32_t c)
{
    static const struct {
        uint32_t below;
        unsigned char lead;
        int more;
    } forms[] = {{0x80, 0, 0}, {0x800, 0xc0, 1}, {0x10000, 0xe0, 2}, {0x110000, 0xf0, 3}};
    size_t i = 0;
    while (i + 1 < sizeof forms / sizeof *forms && c >= forms[i].below)
        i++;
    *to++ = (char)(forms[i].lead | c >> 6 * forms[i].more);
    for (int k = forms[i].more - 1; k >= 0; k--)
        *to++ = (char)(0x80 | (c >> 6 * k & 0x3f));
    return to;
}

bool tn__npy_text(const uint8_t *data, size_t size, size_t header, char **text)
{
    *text = NULL;
    char *words = header <= size ? tn__alloc(header + 1) : NULL;
    if (!words)
        return header > size;
    for (size_t i = 0; i < header; i++)
        words[i] = data[i] ? (char)data[i] : ' ';
    words[header] = '\0';
    long count = characters(words);
    tn__free(words);
    if (count < 0 || (uint64_t)count * 4 != size - header)
        return true;
    char *out = tn__alloc((size_t)count * 4 + 1), *to = out;
    for (long i = 0; out && i < count; i++) {
        const uint8_t *at = data + header + 4 * i;
        uint32_t c = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        if (c == 0) /* NumPy pads with these */
            break;
        to = put_utf8(to, c < 0x110000 ? c : 0xfffd);
    }
    if (out)
        *to = '\0';
    *text = out;
    return out != NULL;
}
