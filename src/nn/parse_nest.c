/* SPDX-License-Identifier: MIT */
/*
 * What tn_layer_parse reads: words between blanks, names in front of them ("fc=linear:10"), and groups of them in
 * parentheses, which '|' divides. An error names the column.
 */
#include "nn/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/activations.h>

#include "nn/branch.h"

#define BLANKS " \t\r\n"
#define ENDS   BLANKS "()|"
#define NAME   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

enum {
    MOST_DEPTH = 100,     /* of groups in groups */
    MOST_LAYERS = 100000, /* which repeats in repeats would soon be above */
    MOST_PARTS = 3        /* of a residual */
};

typedef struct reader {
    const char *text, *at;
    int depth, layers;
    tn__error *error; /* the first; owned */
    const char *file; /* of the call, and its line */
    int line;
} reader;

/* ---- errors ---- */

/* What stands at a place, for messages. */
static const char *found(const char *at, char *text, size_t size)
{
    size_t length = strcspn(at, ENDS);
    if (!*at)
        return "the end";
    snprintf(text, size, "'%.*s'", length ? (int)(length < 40 ? length : 40) : 1, at);
    return text;
}

/* Keeps the error, with its column (and line, if there are several). Always false. */
TN_PRINTF(4, 5)
static bool refuse(reader *r, const char *at, tn_status code, const char *format, ...)
{
    char message[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    int line = 1;
    const char *begin = r->text;
    for (const char *c = r->text; c < at; c++) {
        line += *c == '\n';
        begin = *c == '\n' ? c + 1 : begin;
    }
    char place[64] = "";
    if (line > 1)
        snprintf(place, sizeof place, "line %d, ", line);
    tn__error_release(tn__error_take());
    tn__at(r->file, r->line);
    r->error = tn__error_new(code, "layer_parse", "%scolumn %td: %s", place, at - begin + 1, message);
    return false;
}

/* The layer that a word made, or false and its error with the place. The call's own place is noted once, at the end of
 * the message. */
static bool accept(reader *r, const char *at, tn_layer *layer)
{
    tn_status status = tn_layer_status(layer);
    if (status == TN_OK)
        return true;
    if (status == TN_ERR_MEMORY) {
        r->error = tn__error_retain(layer->error ? layer->error : tn__error_no_memory());
        tn__layer_discard(layer);
        return false;
    }
    static const char own[] = "layer_parse: ";
    const char *message = tn__error_message(layer->error);
    message += strncmp(message, own, sizeof own - 1) == 0 ? sizeof own - 1 : 0;
    refuse(r, at, status, "%s", message);
    tn__layer_discard(layer);
    return false;
}

/* Takes over both. */
static bool add(reader *r, tn__items *into, char *name, tn_layer *layer)
{
    if (tn__items_add(into, name, layer) == TN_OK)
        return true;
    r->error = tn__error_retain(tn__error_last());
    return false;
}

/* ---- groups ---- */

static bool read_list(reader *r, tn__items *into);

static bool close_group(reader *r, const char *open)
{
    char text[64];
    if (*r->at != ')')
        return refuse(r, r->at, TN_ERR_VALUE, "expected ')' for the '(' of column %td, got %s", open - r->text + 1,
                      found(r->at, text, sizeof text));
    r->at++;
    return true;
}

/* A whole number behind the ':' of a group's word; `absent` if there is none. */
static bool read_argument(reader *r, const char *word, size_t length, long least, long most, long *value)
{
    const char *colon = memchr(word, ':', length);
    if (!colon)
        return true;
    char *end;
    *value = strtol(colon + 1, &end, 10);
    if (end != word + length || end == colon + 1 || *value < least || *value > most)
        return refuse(r, colon + 1, TN_ERR_VALUE, "expected a whole number from %ld to %ld, got '%.*s'", least, most,
                      (int)(word + length - colon - 1), colon + 1);
    return true;
}

/* (LAYERS): a sequence. */
static bool read_sequence(reader *r, const char *word, size_t length, tn_layer **made)
{
    (void)word, (void)length;
    const char *open = r->at++;
    tn__items items = {0};
    if (read_list(r, &items) && close_group(r, open)) {
        *made = tn__sequential_of_items(&items);
        return true;
    }
    tn__items_free(&items);
    return false;
}

/* residual(LAYERS|SHORTCUT|AFTER): all are children of the residual itself. */
static bool read_residual(reader *r, const char *word, size_t length, tn_layer **made)
{
    (void)word, (void)length;
    const char *open = r->at;
    size_t before[MOST_PARTS + 1] = {0}, part = 0;
    tn__items items = {0};
    bool done = true;
    do {
        r->at++;
        done = read_list(r, &items);
        before[++part] = items.count;
    } while (done && *r->at == '|' && part < MOST_PARTS);
    if (done && *r->at == '|')
        done = refuse(r, r->at, TN_ERR_VALUE, "a residual has %d parts at most: residual(LAYERS|SHORTCUT|AFTER)",
                      MOST_PARTS);
    done = done && close_group(r, open);
    if (done && before[1] == 0)
        done = refuse(r, open, TN_ERR_VALUE, "expected layers in residual(LAYERS|SHORTCUT|AFTER), got none");
    if (done)
        *made = tn__residual_of_items(&items, before[1], part > 1 ? before[2] - before[1] : 0);
    tn__items_free(&items);
    return done;
}

/* A branch of a concat: the layer itself where it is one alone, what came in where there is none. */
static bool add_branch(reader *r, tn__items *branch, tn__items *into)
{
    if (branch->count == 0)
        return add(r, into, NULL, tn_identity_layer());
    if (branch->count > 1)
        return add(r, into, NULL, tn__sequential_of_items(branch));
    tn__item only = branch->item[0];
    branch->count = 0;
    return add(r, into, only.name, only.layer);
}

static bool read_concat(reader *r, const char *word, size_t length, tn_layer **made)
{
    const char *open = r->at;
    long axis = 1;
    tn__items items = {0};
    bool done = read_argument(r, word, length, -TN_MAX_NDIM, TN_MAX_NDIM - 1, &axis);
    while (done && (r->at == open || *r->at == '|')) {
        tn__items branch = {0};
        r->at++;
        done = read_list(r, &branch) && add_branch(r, &branch, &items);
        tn__items_free(&branch);
    }
    done = done && close_group(r, open);
    if (done)
        *made = tn__concat_of_items(&items, (int)axis);
    tn__items_free(&items);
    return done;
}

static const struct {
    const char *name, *usage;
    bool (*read)(reader *r, const char *word, size_t length, tn_layer **made); /* NULL: repeat */
} groups[] = {
    {"", "(LAYERS)", read_sequence},
    {"residual", "residual(LAYERS[|SHORTCUT[|AFTER]])", read_residual},
    {"concat", "concat[:AXIS](LAYERS|LAYERS...)", read_concat},
    {"repeat", "repeat:TIMES(LAYERS)", NULL},
};
enum { GROUPS = sizeof groups / sizeof *groups };

const char *tn__nest_word(int i, const char **usage)
{
    if (i + 1 >= GROUPS)
        return NULL;
    *usage = groups[i + 1].usage;
    return groups[i + 1].name;
}

static int find_group(const char *word, size_t length)
{
    const char *colon = memchr(word, ':', length);
    size_t name = colon ? (size_t)(colon - word) : length;
    for (int i = 0; i < GROUPS; i++)
        if (strlen(groups[i].name) == name && memcmp(groups[i].name, word, name) == 0)
            return i;
    return -1;
}

/* The layers of repeat:TIMES(...) stand in the list around it, as if they had been written so many times. */
static bool read_repeat(reader *r, const char *word, size_t length, tn__items *into)
{
    const char *open = r->at++, *begin = r->at;
    long times = 0;
    size_t before = into->count;
    if (!read_argument(r, word, length, 1, MOST_LAYERS, &times))
        return false;
    if (times == 0)
        return refuse(r, word, TN_ERR_VALUE, "expected %s", "repeat:TIMES(LAYERS)");
    for (; times > 0; times--) {
        r->at = begin;
        if (!read_list(r, into))
            return false;
        if (into->count == before)
            return refuse(r, open, TN_ERR_VALUE, "expected layers in repeat:TIMES(LAYERS), got none");
    }
    return close_group(r, open);
}

static bool read_group(reader *r, const char *word, size_t length, char *name, tn__items *into)
{
    int group = find_group(word, length);
    tn_layer *made = NULL;
    bool done = ++r->depth <= MOST_DEPTH;
    if (!done)
        refuse(r, r->at, TN_ERR_VALUE, "groups are nested deeper than %d", MOST_DEPTH);
    else if (group < 0 || (length > 0 && word[length - 1] == ':'))
        done = refuse(r, r->at, TN_ERR_VALUE, "expected a layer's end, a blank, or a group, such as residual(...), got "
                      "'(' behind '%.*s'", (int)(length < 40 ? length : 40), word);
    else if (!groups[group].read && name)
        done = refuse(r, word, TN_ERR_VALUE, "a repeat has no name: its layers are of the list around it");
    else if (!groups[group].read)
        done = read_repeat(r, word, length, into);
    else
        done = groups[group].read(r, word, length, &made) && accept(r, word, made);
    r->depth--;
    if (done && groups[group].read)
        return add(r, into, name, made);
    tn__free(name);
    return done;
}

/* ---- words ---- */

static bool read_word(reader *r, const char *word, size_t length, char *name, tn__items *into)
{
    char *copy = tn__format("%.*s", (int)length, word);
    tn_layer *layer = NULL;
    bool done = false;
    int group = find_group(word, length);
    if (!copy) {
        tn__fail_memory("layer_parse", length + 1);
        r->error = tn__error_retain(tn__error_last());
    } else if (group >= 0) {
        char text[64];
        refuse(r, r->at, TN_ERR_VALUE, "expected '(' right behind '%s', as in %s, got %s", copy, groups[group].usage,
               found(r->at, text, sizeof text));
    } else {
        layer = tn__layer_from_word("layer_parse", copy);
        done = accept(r, word, layer);
    }
    tn__free(copy);
    if (done)
        return add(r, into, name, layer);
    tn__free(name);
    return false;
}

/* A layer of a list: NAME=WORD, NAME=GROUP(...), and both without a name. */
static bool read_item(reader *r, tn__items *into)
{
    char text[64], *name = NULL;
    size_t named = strspn(r->at, NAME);
    if (++r->layers > MOST_LAYERS)
        return refuse(r, r->at, TN_ERR_VALUE, "expected %d layers at most", MOST_LAYERS);
    if (*r->at == '=')
        return refuse(r, r->at, TN_ERR_VALUE, "expected a name before '='");
    if (r->at[named] == '=') {
        if (!(name = tn__format("%.*s", (int)named, r->at)))
            return tn__fail_memory("layer_parse", named), r->error = tn__error_retain(tn__error_last()), false;
        for (size_t i = 0; i < into->count; i++)
            if (into->item[i].name && strcmp(into->item[i].name, name) == 0)
                return tn__free(name), refuse(r, r->at, TN_ERR_NAME, "there is a '%s' already", into->item[i].name);
        r->at += named + 1;
    }
    const char *word = r->at;
    size_t length = strcspn(word, ENDS);
    r->at += length;
    if (*r->at == '(')
        return read_group(r, word, length, name, into);
    if (length > 0)
        return read_word(r, word, length, name, into);
    refuse(r, word, TN_ERR_VALUE, "expected a layer behind '%s=', got %s", name ? name : "",
           found(word, text, sizeof text));
    tn__free(name);
    return false;
}

static bool read_list(reader *r, tn__items *into)
{
    for (r->at += strspn(r->at, BLANKS); *r->at && *r->at != ')' && *r->at != '|'; r->at += strspn(r->at, BLANKS))
        if (!read_item(r, into))
            return false;
    return true;
}

/* All of the text. A single sequence, as a model's word makes, is the network itself. */
static tn_layer *read_all(reader *r)
{
    char text[64];
    tn__items items = {0};
    bool done = read_list(r, &items);
    if (done && *r->at)
        done = refuse(r, r->at, TN_ERR_VALUE, "expected a layer, got %s, which is of no '('",
                      found(r->at, text, sizeof text));
    tn_layer *net = NULL;
    if (done && items.count == 1 && !items.item[0].name && items.item[0].layer->kind == &tn__sequential_kind) {
        net = items.item[0].layer;
        items.count = 0;
    } else if (done) {
        net = tn__sequential_of_items(&items);
    }
    tn__items_free(&items);
    return net;
}

tn_layer *tn_layer_parse(const char *text)
{
    if (!text || !text[strspn(text, BLANKS)])
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "layer_parse",
                                             "expected words such as \"linear:1000 sigmoid linear:10\", got %s",
                                             text ? "none" : "NULL"));
    reader r = {.text = text, .at = text};
    r.file = tn__caller(&r.line);
    tn__error *before = tn__error_take(); /* what a word latches is told again, with its place */
    tn__at(NULL, 0);
    tn_layer *net = read_all(&r);
    tn__at(r.file, r.line);
    if (r.error)
        net = tn__layer_error(r.error);
    if (before) {
        tn__error_release(tn__error_take());
        tn__error_raise(before);
        tn__error_release(before);
    }
    return net;
}
