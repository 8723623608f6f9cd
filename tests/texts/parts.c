/* SPDX-License-Identifier: MIT */
#include "texts/parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

/* ---- a text's parts ---- */

static const char last_helper[] =
    "TN_HOT int tn_in_range("; /* the last function that every text with nests begins with */
static const char nest_head[] = "static __device__ __forceinline__ void nest",
                  back_head[] = "static __device__ __forceinline__ auto nest";
static const char entry_head[] = "struct tn_k";

#define BEGINS(at, with) (strncmp(at, with, sizeof(with) - 1) == 0)

static bool is_part(const char *line)
{
    return BEGINS(line, nest_head) || BEGINS(line, back_head) || BEGINS(line, entry_head);
}
static bool is_function(const char *line)
{
    return BEGINS(line, "TN_HOT ") && strstr(line, " op_") && strstr(line, " op_") < strchr(line, '\n');
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

/* Behind the line that closes what begins at `at`. */
static const char *end_of_function(const char *at)
{
    const char *close = strstr(at, "\n}\n");
    return close ? close + 3 : at + strlen(at);
}

static bool add_part(kernel_text *to, const char *begin, const char *end)
{
    if ((to->count & (to->count - 1)) == 0) {
        text_part *more = realloc(to->part, (size_t)(to->count ? 2 * to->count : 1) * sizeof *more);
        if (more == NULL)
            return false;
        to->part = more;
    }
    const char *brace = BEGINS(begin, nest_head) ? strstr(begin, "\n{\n") : NULL;
    to->part[to->count++] = (text_part){.begin = (size_t)(begin - to->data),
                                        .end = (size_t)(end - to->data),
                                        .body = brace && brace < end ? (size_t)(brace + 1 - to->data) : 0};
    return true;
}

bool text_split(kernel_text *to, char *name, char *data)
{
    *to = (kernel_text){.name = name, .data = data, .length = strlen(data)};
    const char *at = strstr(data, last_helper);
    at = at ? end_of_function(at) : data + to->length;
    while (*at && !is_part(at) && !is_function(at))
        at = next_line(at);
    to->prelude = (size_t)(at - data);
    to->group = tn__hash(data, to->prelude, 0);
    to->clusters = strstr(at, "__cluster_dims__") != NULL;
    while (*at && !is_part(at))
        at = next_line(at);
    while (*at) {
        const char *end = next_line(at);
        while (*end && !is_part(end))
            end = next_line(end);
        if (!add_part(to, at, end))
            return false;
        at = end;
    }
    return true;
}

bool text_is_wrong(const kernel_text *text)
{
    for (const char *at = text->data; (at = strstr(at, "#line ")); at++) {
        const char *name = strchr(at, '"'), *end = strchr(at, '\n');
        if (name && end && name < end && (BEGINS(name, "\"wrong") || BEGINS(name, "\"bad")))
            return true;
    }
    return false;
}

/* ---- what a part is made of ---- */

typedef struct seen_table {
    uint64_t *hash;
    size_t count, room; /* a power of two */
} seen_table;

/* Whether it was not there yet. */
static bool see(seen_table *seen, uint64_t hash, bool *failed)
{
    if (2 * (seen->count + 1) > seen->room) {
        seen_table more = {.room = seen->room ? 2 * seen->room : 1024};
        more.hash = calloc(more.room, sizeof *more.hash);
        if ((*failed = more.hash == NULL))
            return false;
        for (size_t i = 0; i < seen->room; i++)
            if (seen->hash[i])
                see(&more, seen->hash[i], failed);
        free(seen->hash);
        *seen = more;
    }
    hash += hash == 0;
    size_t at = hash & (seen->room - 1);
    for (; seen->hash[at]; at = (at + 1) & (seen->room - 1))
        if (seen->hash[at] == hash)
            return false;
    seen->hash[at] = hash;
    seen->count++;
    return true;
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* A type of elements: tn_f32, tn_i8, tn_c128, ... */
static bool is_type(const char *word, size_t length)
{
    const char *digits = word + 3;
    if (length < 5 || length > 7 || strncmp(word, "tn_", 3) != 0)
        return false;
    while (digits < word + length && isalpha((unsigned char)*digits))
        digits++;
    for (const char *at = digits; at < word + length; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return digits > word + 3 && digits < word + length;
}

static bool is_operation(const char *word)
{
    return BEGINS(word, "op_") || BEGINS(word, "tns_") || BEGINS(word, "tn_round_");
}

/* The end of a template's arguments that begin at `at`, or NULL. */
static const char *end_of_arguments(const char *at, const char *end)
{
    for (const char *c = at; c < end && *c != ';' && *c != '('; c++)
        if (*c == '>')
            return c + 1;
    return NULL;
}

/* Whether a line computes one element's value: `const tn_f32 v3 = ...`. How many of these follow one another is no
 * form. */
static bool is_value(const char *line)
{
    while (*line == ' ')
        line++;
    if (!BEGINS(line, "const tn_"))
        return false;
    for (line += 6; in_word(*line); line++) {
    }
    return line[0] == ' ' && line[1] == 'v' && isdigit((unsigned char)line[2]);
}

/* Sees what the part has, and says what of it is new. */
static int what_is_new(seen_table *seen, const char *at, const char *end, bool *failed)
{
    uint64_t form = 1;
    bool new = false, values = false;
    for (const char *line = at; line < end; line = next_line(line)) {
        bool value = is_value(line);
        if (value && !values)
            form = tn__hash_mix(form, 'v');
        values = value;
        for (const char *c = line; *c != '\n' && c < end;) {
            const char *word = c;
            if (!in_word(*c)) {
                form = value ? form : tn__hash_mix(form, (uint64_t)*c);
                c++;
                continue;
            }
            while (in_word(*c))
                c++;
            size_t length = (size_t)(c - word);
            if (isdigit((unsigned char)*word)) {
                form = value ? form : tn__hash_mix(form, '0');
                continue;
            }
            if (memchr(word, '_', length) && !BEGINS(word, "tn_k"))
                new |= see(seen, tn__hash(word, length, 0), failed);
            const char *instance = *c == '<' && c[1] != ' ' ? end_of_arguments(c, end) : NULL;
            if (instance)
                new |= see(seen, tn__hash(word, (size_t)(instance - word), 0), failed);
            if (value)
                continue;
            if (is_type(word, length) || is_operation(word)) {
                form = tn__hash_mix(form, 't');
                continue;
            }
            while (length > 1 && isdigit((unsigned char)word[length - 1]))
                length--;
            form = tn__hash(word, length, form);
        }
    }
    bool new_form = see(seen, form, failed);
    return new ? NEW_WORDS : new_form ? NEW_FORM : NOTHING_NEW;
}

typedef struct choice {
    kernel_text *text;
    text_part *part;
    size_t order;
} choice;

/* What only some generations compile comes last: it stands for nothing that others have. */
static int shorter_first(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->text->clusters != y->text->clusters)
        return x->text->clusters ? 1 : -1;
    size_t m = x->part->end - x->part->begin, n = y->part->end - y->part->begin;
    return m != n ? (m > n) - (m < n) : (x->order > y->order) - (x->order < y->order);
}

bool texts_choose(int count, kernel_text *texts)
{
    size_t parts = 0, n = 0;
    for (int i = 0; i < count; i++)
        parts += (size_t)texts[i].count;
    choice *all = malloc((parts + 1) * sizeof *all);
    bool failed = all == NULL;
    for (int i = 0; i < count && !failed; i++)
        for (int k = 0; k < texts[i].count && !text_is_wrong(&texts[i]); k++) {
            all[n] = (choice){&texts[i], &texts[i].part[k], n};
            n++;
        }
    if (!failed)
        qsort(all, n, sizeof *all, shorter_first);
    seen_table seen = {0};
    for (size_t i = 0; i < n && !failed; i++) {
        const char *data = all[i].text->data;
        all[i].part->wanted = what_is_new(&seen, data + all[i].part->begin, data + all[i].part->end, &failed);
        all[i].text->wanted += all[i].part->wanted != NOTHING_NEW;
    }
    free(seen.hash);
    free(all);
    return !failed;
}
