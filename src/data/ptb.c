/* SPDX-License-Identifier: MIT */
/* The Penn Treebank (M. Marcus et al., 1993) as T. Mikolov prepared it for language models (2010): three texts of the
 * 10,000 most frequent words, as numbers. */
#include <string.h>
#include "core/memory.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "io/file.h"
#include "io/words.h"

enum { PARTS = 3 };
static const char *const parts[PARTS] = {"train", "valid", "test"};
static const char *const files[PARTS + 1] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};
static const tn_encode_opts line_ends = {.end = "<eos>"};

/* The parts' words up to `last`, in the order that numbers them; of the last, which is kept, the numbers. */
static tn_status read_parts(const char *operation, int last, tn_words *words, tn__values *numbers)
{
    char *folder = tn__set_folder(tn__set_find("ptb"), files);
    tn_status status = folder ? tn_words_status(words) : tn__error_status(tn__error_last());
    for (int i = 0; i <= last && status == TN_OK; i++) {
        char *path = tn__format("%s/%s", folder, files[i]);
        uint8_t *text;
        size_t size;
        tn__values_free(numbers);
        *numbers = (tn__values){0};
        status = path ? tn__file_read(operation, path, UINT64_MAX, &text, &size) : tn__fail_memory(operation, 64);
        if (status == TN_OK) {
            status = tn__encode(operation, (const char *)text, size, words, &line_ends, numbers);
            tn__free(text);
        }
        tn__free(path);
    }
    tn__free(folder);
    return status;
}

tn_words *tn_ptb_vocabulary(void)
{
    tn__values numbers = {0};
    tn_words *words = tn_words_new();
    if (!words->is_static && read_parts("ptb_vocabulary", PARTS - 1, words, &numbers) != TN_OK)
        words->error = tn__error_retain(tn__error_last());
    tn__values_free(&numbers);
    return words;
}

static tn_status read_numbers(const char *operation, int part, tn__values *numbers, int64_t *count)
{
    tn_words *words = tn_words_new();
    tn_status status = read_parts(operation, part, words, numbers);
    *count = tn_words_count(words);
    tn_words_free(words);
    return status;
}

tn_array *tn_ptb_words(const char *part)
{
    tn__call call = tn__enter();
    tn__values numbers = {0};
    int64_t count;
    int i = 0;
    while (i < PARTS && (!part || strcmp(part, parts[i]) != 0))
        i++;
    tn_status status = i < PARTS ? read_numbers("ptb_words", i, &numbers, &count)
                                 : tn__fail(TN_ERR_NAME, "ptb_words", "expected \"train\", \"valid\" or \"test\", got "
                                            "\"%s\"", part ? part : "NULL");
    return tn__values_leave(call, status, &numbers);
}

/* All but the last words, and all but the first. */
static tn_status pairs(const tn__values *numbers, tn__values *x, tn__values *t)
{
    int64_t count = numbers->shape->size ? numbers->shape->size - 1 : 0;
    const int64_t *word = tn__values_data(numbers);
    tn_status status = tn__values_new("ptb", x, TN_INT64, TN_SHAPE(count));
    if (status == TN_OK)
        status = tn__values_new("ptb", t, TN_INT64, TN_SHAPE(count));
    if (status == TN_OK && count) {
        memcpy(tn__values_data(x), word, (size_t)count * sizeof *word);
        memcpy(tn__values_data(t), word + 1, (size_t)count * sizeof *word);
    }
    return status;
}

tn_dataset *tn_ptb(tn_split_kind split)
{
    tn__values numbers = {0}, x = {0}, t = {0};
    int64_t count;
    tn_status status = read_numbers("ptb", split == TN_TEST ? PARTS - 1 : 0, &numbers, &count);
    if (status == TN_OK)
        status = pairs(&numbers, &x, &t);
    tn__values_free(&numbers);
    tn_dataset *dataset = tn__dataset_make("ptb", status, &x, &t);
    if (tn_dataset_status(dataset) == TN_OK)
        dataset->classes = count;
    return dataset;
}
