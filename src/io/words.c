/* SPDX-License-Identifier: MIT */
/* Lists of texts with their numbers, and text as numbers by them. Texts lie one behind the other, each with a NUL;
 * an open-addressed table finds the first of each. */
#include "io/words.h"

#include <string.h>
#include "array/guard.h"
#include "core/hash.h"
#include "core/memory.h"
#include "io/file.h"

#define LEAST_SLOTS 64

static tn_words out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_words, "list of words");

tn_words *tn_words_new(void)
{
    tn_words *words = tn__object_new(&objects);
    if (!words) {
        tn__fail_memory("words_new", sizeof *words);
        return &out_of_memory;
    }
    return words;
}

void tn_words_free(tn_words *words)
{
    if (!words || words->is_static || !tn__object_may_go(&objects, &words->object) ||
        tn__at_work(words, "list of words"))
        return;
    tn__free(words->text);
    tn__free(words->begin);
    tn__free(words->slots);
    if (words->error)
        tn__error_release(words->error);
    tn__object_end(&objects, &words->object);
}

tn_status tn__config_take(tn_words *words, const char *owner)
{
    return !words || words->is_static ? TN_OK : tn__object_take(&objects, &words->object, owner);
}

void tn__config_free_taken(tn_words *words)
{
    if (words && !words->is_static)
        words->object.owner = NULL;
    tn_words_free(words);
}

tn_status tn_words_status(const tn_words *words)
{
    if (!words || words->is_static)
        return words ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return words->error ? tn__error_status(words->error) : TN_OK;
}

static tn_status raise(const char *operation, const tn_words *words)
{
    if (!words)
        return tn__fail_null(operation, "a list of words");
    if (words->is_static)
        return tn__fail_memory(operation, sizeof *words);
    return words->error ? tn__error_raise(words->error) : TN_OK;
}

int64_t tn_words_count(const tn_words *words) { return words ? (int64_t)words->count : 0; }

static const char *text_at(const tn_words *words, size_t i) { return words->text + words->begin[i]; }

const char *tn_words_get(const tn_words *words, int64_t i)
{
    int64_t at = i < 0 ? i + tn_words_count(words) : i;
    if (words && at >= 0 && at < (int64_t)words->count)
        return text_at(words, (size_t)at);
    tn__fail(TN_ERR_INDEX, "words_get", "expected the number of one of %lld texts, got %lld",
             (long long)tn_words_count(words), (long long)i);
    return "";
}

/* ---- finding ---- */

/* The slot of a text: its own, or the free one where it would be. */
static size_t slot_of(const tn_words *words, const char *bytes, size_t length)
{
    size_t slot = (size_t)tn__hash(bytes, length, 0) & (words->slot_count - 1);
    for (; words->slots[slot]; slot = (slot + 1) & (words->slot_count - 1)) {
        const char *text = text_at(words, words->slots[slot] - 1);
        if (strlen(text) == length && memcmp(text, bytes, length) == 0)
            break;
    }
    return slot;
}

/* Room for one more, half of it at most in use. */
static bool make_slots(tn_words *words)
{
    if (2 * (words->count + 1) <= words->slot_count)
        return true;
    size_t before = words->slot_count, count = before ? 2 * before : LEAST_SLOTS;
    size_t *slots = tn__calloc(count, sizeof *slots), *old = words->slots;
    if (!slots)
        return false;
    words->slots = slots;
    words->slot_count = count;
    for (size_t i = 0; i < before; i++)
        if (old[i]) {
            const char *text = text_at(words, old[i] - 1);
            slots[slot_of(words, text, strlen(text))] = old[i];
        }
    tn__free(old);
    return true;
}

int64_t tn__config_find(const tn_words *words, const char *bytes, size_t length)
{
    if (!words->slot_count || memchr(bytes, 0, length))
        return -1;
    return (int64_t)words->slots[slot_of(words, bytes, length)] - 1;
}

tn_status tn__config_append(const char *operation, tn_words *words, const char *bytes, size_t length)
{
    if (!make_slots(words) || !tn__grow((void **)&words->begin, &words->begin_room, words->count + 1, sizeof(size_t)) ||
        !tn__grow((void **)&words->text, &words->text_room, words->length + length + 1, 1))
        return tn__fail_memory(operation, words->length + length + 1);
    size_t number = words->count;
    words->begin[number] = words->length;
    memcpy(words->text + words->length, bytes, length);
    words->text[words->length + length] = '\0';
    words->length += length + 1;
    size_t slot = slot_of(words, bytes, length);
    words->count++;
    if (!words->slots[slot])
        words->slots[slot] = number + 1;
    return TN_OK;
}

int64_t tn_words_find(const tn_words *words, const char *word)
{
    return words && word ? tn__config_find(words, word, strlen(word)) : -1;
}

/* The number of a word that is added if need be; -1 with a latched error. */
static int64_t number_of(const char *operation, tn_words *words, const char *bytes, size_t length)
{
    int64_t found = tn__config_find(words, bytes, length);
    if (found >= 0)
        return found;
    return tn__config_append(operation, words, bytes, length) == TN_OK ? (int64_t)words->count - 1 : -1;
}

int64_t tn_words_add(tn_words *words, const char *word)
{
    if (raise("words_add", words) != TN_OK)
        return -1;
    if (!word) {
        tn__fail_null("words_add", "a word");
        return -1;
    }
    return number_of("words_add", words, word, strlen(word));
}

/* ---- text as numbers ---- */

typedef struct encoder {
    const char *operation;
    tn_words *words;
    const char *end; /* NULL: no word stands for ends of lines */
    int64_t unknown; /* -1: words that are not known are added */
    int64_t *numbers;
    size_t count, room;
} encoder;

static tn_status put(encoder *e, const char *bytes, size_t length)
{
    int64_t number = e->unknown >= 0 ? tn__config_find(e->words, bytes, length)
                                     : number_of(e->operation, e->words, bytes, length);
    if (number < 0 && e->unknown < 0)
        return tn__error_status(tn__error_last());
    if (!tn__grow((void **)&e->numbers, &e->room, e->count + 1, sizeof *e->numbers))
        return tn__fail_memory(e->operation, e->count * sizeof *e->numbers);
    e->numbers[e->count++] = number < 0 ? e->unknown : number;
    return TN_OK;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static tn_status put_text(encoder *e, const char *at, const char *stop)
{
    tn_status status = TN_OK;
    while (at < stop && status == TN_OK) {
        const char *begin = at;
        while (at < stop && !is_space(*at))
            at++;
        if (at > begin)
            status = put(e, begin, (size_t)(at - begin));
        bool line_ends = at < stop ? *at == '\n' : at > begin;
        if (status == TN_OK && e->end && line_ends)
            status = put(e, e->end, strlen(e->end));
        at += at < stop;
    }
    return status;
}

tn_status tn__encode(const char *operation, const char *text, size_t size, tn_words *words, const tn_encode_opts *opts,
                     tn__values *values)
{
    *values = (tn__values){0};
    encoder e = {.operation = operation, .words = words, .end = opts ? opts->end : NULL, .unknown = -1};
    tn_status status = raise(operation, words);
    if (status == TN_OK && opts && opts->unknown && (e.unknown = tn_words_find(words, opts->unknown)) < 0)
        status = tn__fail(TN_ERR_NAME, operation, "the word for unknown ones, '%s', is not in the list itself: add it",
                          opts->unknown);
    if (status == TN_OK && memchr(text, 0, size))
        status = tn__fail(TN_ERR_FORMAT, operation, "there are NUL bytes in what should be text");
    if (status == TN_OK)
        status = put_text(&e, text, text + size);
    if (status == TN_OK)
        status = tn__values_new(operation, values, TN_INT64, TN_SHAPE((int64_t)e.count));
    if (status == TN_OK && e.count)
        memcpy(tn__values_data(values), e.numbers, e.count * sizeof *e.numbers);
    tn__free(e.numbers);
    return status;
}

tn_array *tn_encode_with(const char *text, tn_words *words, const tn_encode_opts *opts)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    tn_status status = text ? tn__encode("encode", text, strlen(text), words, opts, &values)
                            : tn__fail_null("encode", "a text");
    return tn__values_leave(call, status, &values);
}

tn_array *tn_load_encoded_with(const char *path, tn_words *words, const tn_encode_opts *opts)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    uint8_t *text = NULL;
    size_t size;
    tn_status status = tn__file_read("load_encoded", path, UINT64_MAX, &text, &size);
    if (status == TN_OK) {
        status = tn__encode("load_encoded", (const char *)text, size, words, opts, &values);
        tn__free(text);
    }
    return tn__values_leave(call, status, &values);
}

/* ---- lines ---- */

static tn_status take_lines(tn_words *lines, const char *path, char *at, char *stop, const tn_lines_opts *opts)
{
    tn_status status = TN_OK;
    if (memchr(at, 0, (size_t)(stop - at)))
        return tn__fail(TN_ERR_FORMAT, "load_lines", "'%s' has NUL bytes: it is no text", path);
    if (stop - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < stop && status == TN_OK) {
        char *end = memchr(at, '\n', (size_t)(stop - at)), *next = end ? end + 1 : stop;
        end = end ? end : stop;
        end -= end > at && end[-1] == '\r';
        *end = '\0'; /* what follows the file is writable, too */
        if (!opts || !opts->keep || opts->keep(at, opts->user))
            status = tn__config_append("load_lines", lines, at, (size_t)(end - at));
        at = next;
    }
    return status;
}

/* Of a list that was not handed on, as where a function of the program's throws an exception. */
static void drop(tn_words **words) { tn_words_free(*words); }

tn_words *tn_load_lines_with(const char *path, const tn_lines_opts *opts)
{
    tn_words *lines __attribute__((cleanup(drop))) = tn_words_new(), *done = lines;
    TN__FREED uint8_t *text = NULL;
    size_t size;
    if (lines->is_static)
        return lines;
    TN__GUARD_OF("load_lines", lines); /* which lines are kept a function of the program's says */
    tn_status status = tn__file_read("load_lines", path, UINT64_MAX, &text, &size);
    if (status == TN_OK)
        status = take_lines(lines, path, (char *)text, (char *)text + size, opts);
    if (status != TN_OK)
        lines->error = tn__error_retain(tn__error_last());
    lines = NULL;
    return done;
}
