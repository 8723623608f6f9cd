/* SPDX-License-Identifier: MIT */
/* Entries of a log as lines of a table, see entry.h. */
#include <string.h>
#include "core/number.h"
#include "train/entry.h"

#define LEAST_WIDTH 10

/* Characters, not bytes, so that columns stay under one another. */
static int width_of(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void put_padded(tn__text *out, const char *text, int width)
{
    tn__text_add(out, text);
    for (int missing = width - width_of(text); missing > 0; missing--)
        tn__text_add(out, " ");
}

static int column_width(const char *name) { return width_of(name) > LEAST_WIDTH ? width_of(name) : LEAST_WIDTH; }

void tn__table_header(tn__text *out, int count, const char *const *names)
{
    for (int i = 0; i < count; i++) {
        put_padded(out, names[i], i + 1 < count ? column_width(names[i]) : 0);
        tn__text_add(out, i + 1 < count ? "  " : "\n");
    }
}

void tn__table_row(tn__text *out, int count, const char *const *names, const tn__figure *figures)
{
    for (int i = 0; i < count; i++) {
        char text[TN__BRIEF_TEXT] = "";
        if (figures[i].key && figures[i].whole)
            tn__print_whole(text, (int64_t)figures[i].value);
        else if (figures[i].key)
            tn__print_brief(text, figures[i].value);
        put_padded(out, text, column_width(names[i]));
        tn__text_add(out, "  ");
    }
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    tn__text_add(out, "\n");
}
