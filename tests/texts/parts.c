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

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

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
    const char *name = begin + (BEGINS(begin, entry_head) ? sizeof entry_head - 2 : sizeof nest_head - 5);
    size_t length = 0;
    while (in_word(name[length]))
        length++;
    const char *brace = BEGINS(begin, nest_head) ? strstr(begin, "\n{\n") : NULL;
    to->part[to->count++] = (text_part){.begin = (size_t)(begin - to->data),
                                        .end = (size_t)(end - to->data),
                                        .name_at = (size_t)(name - to->data),
                                        .name = length,
                                        .entry = BEGINS(begin, entry_head),
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
    const char *users = strstr(next_line(data), "\n#line ");
    to->users = users && users < at ? tn__hash(data, (size_t)(at - data), 1) : 0;
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

/* The hash of the loop nest of a name, which comes before what calls it; 0: it is no nest's. */
static uint64_t hash_of_nest(const kernel_text *text, const text_part *before, const char *word, size_t length)
{
    for (const text_part *part = text->part; BEGINS(word, "nest_") && part < before; part++)
        if (part->name == length && memcmp(text->data + part->name_at, word, length) == 0)
            return part->hash;
    return 0;
}

/* Whether the word at `at` indexes p, n or s, the arguments of every nest. */
static bool is_index(const char *at, const char *begin)
{
    return at - begin >= 2 && at[-1] == '[' && strchr("pns", at[-2]) && (at - begin == 2 || !in_word(at[-3]));
}

/*
 * The same for parts that are the same but for places in their texts and among their arguments. What functions in front
 * of a text's parts do is in their names, but for users' own.
 */
static uint64_t hash_part(const kernel_text *text, const text_part *part)
{
    const char *begin = text->data + part->begin, *end = text->data + part->end;
    const char *own = text->data + part->name_at;
    uint64_t hash = text->users;
    for (const char *at = begin; at < end;) {
        const char *word = at++;
        while (in_word(*word) && at < end && in_word(*at))
            at++;
        size_t length = (size_t)(at - word);
        if (is_index(word, begin) && isdigit((unsigned char)*word))
            continue;
        if (length >= part->name && memcmp(at - part->name, own, part->name) == 0) /* tn_<its name>, too */
            length -= part->name;
        uint64_t nest = hash_of_nest(text, part, word, length);
        hash = nest ? tn__hash(&nest, sizeof nest, hash) : tn__hash(word, length, hash);
    }
    return hash;
}

/* Of the set of the library's words in a part (tn_...), without the numbers that they end in: widths of dtypes. */
static uint64_t hash_form(const kernel_text *text, const text_part *part)
{
    const char *begin = text->data + part->begin, *end = text->data + part->end;
    const char *own = text->data + part->name_at;
    uint64_t words[64] = {0}; /* a bit a word: that two share one is rare, and leaves out a form at worst */
    for (const char *at = begin; at < end;) {
        const char *word = at++;
        while (in_word(*word) && at < end && in_word(*at))
            at++;
        if ((size_t)(at - word) > part->name && memcmp(at - part->name, own, part->name) == 0) /* tn_<its name> */
            continue;
        const char *last = at;
        while (last > word && isdigit((unsigned char)last[-1]))
            last--;
        uint64_t hash = tn__hash(word, (size_t)(last - word), 0);
        if (BEGINS(word, "tn_"))
            words[hash % 64] |= 1ull << (hash / 64 % 64);
    }
    return tn__hash(words, sizeof words, 0);
}

bool texts_choose(int count, kernel_text *texts)
{
    seen_table seen = {0}, forms = {0};
    bool failed = false;
    for (int clusters = 0; clusters < 2; clusters++) /* what not every generation compiles stands for nothing else */
        for (int i = 0; i < count; i++)
            for (int k = 0; k < texts[i].count && !failed; k++) {
                text_part *part = &texts[i].part[k];
                if (texts[i].clusters != clusters || text_is_wrong(&texts[i]))
                    continue;
                part->hash = hash_part(&texts[i], part);
                part->wanted = see(&seen, part->hash, &failed);
                part->form = part->wanted && see(&forms, hash_form(&texts[i], part), &failed);
                texts[i].wanted += part->wanted;
            }
    free(seen.hash);
    free(forms.hash);
    return !failed;
}
