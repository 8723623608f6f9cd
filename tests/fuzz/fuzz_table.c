/* SPDX-License-Identifier: MIT */
/* Any bytes as a table of typed columns, and as words; the first byte chooses how it is read: a table or a latched
 * error, never a crash, and no word without a number. */
#include <string.h>
#include <tanso/array.h>
#include "core/memory.h"
#include "io/table.h"
#include "io/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tn_column_type types[] = {{"0", TN_INT8}, {"a", TN_WORDS}, {0}};
    if (size < 1)
        return 0;
    tn_table_opts opts = {.delimiter = data[0] & 1 ? ';' : 0, .no_header = data[0] & 2,
                          .types = data[0] & 4 ? types : NULL};
    char *text = tn__alloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    tn_table *table = tn__table_parse("fuzz", "input", text, size - 1, &opts);
    if ((tn_table_status(table) == TN_OK) != tn_ok())
        __builtin_trap();
    for (int i = 0; i < tn_table_columns(table); i++)
        if (!tn_table_name(table, i) || !tn_ok())
            __builtin_trap();
    tn_table_free(table);
    tn_clear_error();
    tn_words *words = tn_words_new();
    tn__values values;
    tn_status status = tn__encode("fuzz", (const char *)data + 1, size - 1, words, NULL, &values);
    if ((status == TN_OK) != tn_ok() || (status == TN_OK) != (values.storage != NULL))
        __builtin_trap();
    for (int64_t i = 0; i < tn_words_count(words); i++)
        if (tn_words_find(words, tn_words_get(words, i)) != i)
            __builtin_trap();
    tn__values_free(&values);
    tn_words_free(words);
    tn__free(text);
    tn_clear_error();
    return 0;
}
