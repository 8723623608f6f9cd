/* SPDX-License-Identifier: MIT */
/* The digits embedded in the library: gzipped CSV, 64 pixels and a label a line. See digits/SOURCE.md. */
#include <string.h>
#include "core/memory.h"
#include "data/dataset.h"
#include "io/unpack.h"
#include "tn_embed.h"

#define DIGITS 1797
#define PIXELS 64
#define MOST_PIXEL 16
#define CLASSES 10
#define TRAIN_DIGITS (DIGITS * 4 / 5)
/* Philox key of the permutation that splits them 80:20. Never change it: accuracies would no longer compare. */
#define SPLIT_KEY 1797u

typedef struct digits {
    unsigned char pixel[DIGITS][PIXELS];
    unsigned char label[DIGITS];
} digits;

/* A whole number of 0..most and the separator after it; -1 if there is none such. */
static int read_number(const char **at, int most, char separator)
{
    int value = 0;
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9' && value <= most; ++*at)
        value = value * 10 + (**at - '0');
    if (*at == begin || value > most || **at != separator)
        return -1;
    ++*at;
    return value;
}

static tn_status parse(const char *text, digits *out)
{
    for (int i = 0; i < DIGITS; i++) {
        for (int j = 0; j <= PIXELS; j++) {
            bool is_label = j == PIXELS;
            int value = read_number(&text, is_label ? CLASSES - 1 : MOST_PIXEL, is_label ? '\n' : ',');
            if (value < 0)
                return tn__fail(TN_ERR_INTERNAL, "digits",
                                "line %d, column %d of the embedded digits is not a number in "
                                "range: this build of the library is damaged",
                                i + 1, j + 1);
            *(is_label ? &out->label[i] : &out->pixel[i][j]) = (unsigned char)value;
        }
    }
    return TN_OK;
}

static tn_status unpack(digits **out)
{
    uint8_t *text = NULL;
    size_t size;
    tn__unpack stream;
    *out = NULL;
    tn_status status = tn__unpack_open(&stream, "digits", "embedded digits", tn__embed_digits, tn__embed_digits_size);
    if (status != TN_OK)
        return status;
    status = tn__unpack_all(&stream, (uint64_t)DIGITS * (PIXELS * 3 + 2), &text, &size);
    tn__unpack_close(&stream);
    if (status == TN_OK && !(*out = tn__alloc(sizeof **out)))
        status = tn__fail_memory("digits", sizeof **out);
    if (status == TN_OK)
        status = parse((const char *)text, *out);
    tn__free(text);
    return status;
}

static tn_dataset *make(int64_t first, int64_t count, bool split, float divisor)
{
    digits *all = NULL;
    tn__values x = {0}, t = {0};
    int64_t order[DIGITS];
    tn_status status = unpack(&all);
    if (status == TN_OK)
        status = tn__values_new("digits", &x, TN_FLOAT32, (tn_shape){2, {count, PIXELS}});
    if (status == TN_OK)
        status = tn__values_new("digits", &t, TN_INT64, (tn_shape){1, {count}});
    if (status == TN_OK) {
        if (split)
            tn__permutation(SPLIT_KEY, DIGITS, order);
        float *pixel = tn__values_data(&x);
        int64_t *label = tn__values_data(&t);
        for (int64_t i = 0; i < count; i++) {
            int64_t from = split ? order[first + i] : first + i;
            label[i] = all->label[from];
            for (int j = 0; j < PIXELS; j++)
                *pixel++ = (float)all->pixel[from][j] / divisor;
        }
    }
    tn__free(all);
    return tn__dataset_make("digits", status, &x, &t);
}

tn_dataset *tn_digits(tn_split_kind split)
{
    return split == TN_TRAIN ? make(0, TRAIN_DIGITS, true, MOST_PIXEL)
                             : make(TRAIN_DIGITS, DIGITS - TRAIN_DIGITS, true, MOST_PIXEL);
}

tn_dataset *tn_digits_raw(void)
{
    return make(0, DIGITS, false, 1);
}
