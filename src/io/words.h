/* SPDX-License-Identifier: MIT */
/* Lists of texts, from within: by bytes and lengths. */
#ifndef TN_IO_WORDS_H
#define TN_IO_WORDS_H

#include <tanso/table.h>
#include "core/error.h"
#include "core/object.h"
#include "io/values.h"

struct tn_words {
    tn__object object;
    char *text;       /* all texts, each with a NUL behind it */
    size_t length, text_room;
    size_t *begin;    /* of each in `text` */
    size_t count, begin_room;
    size_t *slots;    /* 1 + the number of the text that is found there; 0: free */
    size_t slot_count; /* a power of two, or 0 */
    tn__error *error; /* why it could not be made */
    bool is_static;
};

/* Takes a list over for `owner`, who frees it with tn__config_free_taken. */
tn_status tn__config_take(tn_words *words, const char *owner);
void tn__config_free_taken(tn_words *words);
/* The first number of a text; -1 if it is not there. */
int64_t tn__config_find(const tn_words *words, const char *bytes, size_t length);
/* Puts a text, which has no NUL, at the end. */
tn_status tn__config_append(const char *operation, tn_words *words, const char *bytes, size_t length);
/* The words of a text as numbers; values are empty unless it gives TN_OK. `opts` may be NULL. */
tn_status tn__encode(const char *operation, const char *text, size_t size, tn_words *words, const tn_encode_opts *opts,
                     tn__values *values);

#endif
