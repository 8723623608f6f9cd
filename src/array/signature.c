/* SPDX-License-Identifier: MIT */
/* Reading "float f(float a, double b)". */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "array/vectorize.h"

/* C's words for numbers; of several words for one type the order does not matter, and `int` may be missing. */
static const struct {
    const char *words;
    tn_dtype dtype;
} types[] = {
    {"float", TN_FLOAT32},       {"double", TN_FLOAT64},    {"bool", TN_BOOL},         {"_Bool", TN_BOOL},
    {"char", TN_INT8},           {"signed char", TN_INT8},  {"unsigned char", TN_UINT8},
    {"short", TN_INT16},         {"unsigned short", TN_UINT16}, {"int", TN_INT32},     {"signed", TN_INT32},
    {"unsigned", TN_UINT32},     {"unsigned int", TN_UINT32},
    {"long", sizeof(long) == 8 ? TN_INT64 : TN_INT32}, {"unsigned long", sizeof(long) == 8 ? TN_UINT64 : TN_UINT32},
    {"long long", TN_INT64},     {"unsigned long long", TN_UINT64},
    {"int8_t", TN_INT8},         {"int16_t", TN_INT16},     {"int32_t", TN_INT32},     {"int64_t", TN_INT64},
    {"uint8_t", TN_UINT8},       {"uint16_t", TN_UINT16},   {"uint32_t", TN_UINT32},   {"uint64_t", TN_UINT64},
    {"size_t", sizeof(size_t) == 8 ? TN_UINT64 : TN_UINT32},
};
#define TYPES (sizeof types / sizeof *types)

static bool unreadable(const char *text, const char *what)
{
    int line = (int)strcspn(text, "\n{");
    tn__fail(TN_ERR_VALUE, "tn_vectorize",
             "\"%.*s\": %s; expected a definition such as \"float f(float a, float b) {...}\", of numbers",
             line, text, what);
    return false;
}

static tn_dtype find_type(const char *words)
{
    for (size_t k = 0; k < TYPES; k++)
        if (strcmp(types[k].words, words) == 0)
            return types[k].dtype;
    return TN_DTYPE_DEFAULT;
}

/* A declaration of one thing, [begin, end): its type, and its name or "". */
static bool read_one(const char *begin, const char *end, tn_dtype *dtype, char name[TN__USER_NAME])
{
    char words[64] = "", word[TN__USER_NAME];
    *dtype = TN_DTYPE_DEFAULT;
    name[0] = 0;
    for (const char *at = begin; at < end;) {
        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        size_t length = 0;
        while (at + length < end && (isalnum((unsigned char)at[length]) || at[length] == '_'))
            length++;
        if (length == 0 || length >= sizeof word || name[0])
            return false;
        memcpy(word, at, length);
        word[length] = 0;
        at += length;
        if (strcmp(word, "const") == 0 || strcmp(word, "static") == 0 || strcmp(word, "inline") == 0)
            continue;
        char longer[128];
        snprintf(longer, sizeof longer, "%s%s%s", words, *words ? " " : "", word);
        bool goes_on = find_type(longer) || (*dtype && strcmp(word, "int") == 0) || strcmp(longer, "signed") == 0;
        if (*dtype && !goes_on) {
            strcpy(name, word);
            continue;
        }
        if (strlen(longer) >= sizeof words || (!*dtype && !find_type(longer)))
            return false;
        strcpy(words, longer);
        *dtype = find_type(words) ? find_type(words) : *dtype;
    }
    return *dtype != TN_DTYPE_DEFAULT;
}

bool tn__signature_read(const char *text, tn__signature *s)
{
    *s = (tn__signature){.count = 0};
    const char *open = strchr(text, '('), *close = open ? strchr(open, ')') : NULL, *brace = strchr(text, '{');
    if (!close || (brace && brace < close))
        return unreadable(text, "no parameter list");
    if (!read_one(text, open, &s->result, s->name) || !s->name[0])
        return unreadable(text, "no type and name of a function");
    s->body = brace != NULL;
    for (const char *at = open + 1; at < close;) {
        const char *end = memchr(at, ',', (size_t)(close - at));
        end = end ? end : close;
        if (s->count == TN__USER_PARAMS)
            return unreadable(text, "more than 16 parameters");
        if (!read_one(at, end, &s->dtype[s->count], s->parameter[s->count]))
            return unreadable(text, "a parameter that is no number");
        if (!s->parameter[s->count][0])
            snprintf(s->parameter[s->count], TN__USER_NAME, "%c", 'a' + s->count);
        s->count++;
        at = end + 1;
    }
    return s->count > 0 || unreadable(text, "no parameter");
}
