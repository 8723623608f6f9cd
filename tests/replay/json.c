/* SPDX-License-Identifier: MIT */
/* Arguments from JSON to Python's values, and the memory they lie in. */
#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory of a case ---- */

typedef struct block {
    struct block *next;
    max_align_t memory[];
} block;
static block *blocks;

void *case_memory(size_t bytes)
{
    block *b = calloc(1, sizeof *b + bytes);
    if (!b) {
        fprintf(stderr, "replay: no memory for %zu bytes\n", bytes);
        exit(2);
    }
    b->next = blocks;
    blocks = b;
    return b->memory;
}

void case_end(void)
{
    while (blocks) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

static void say(call *c, const char *format, va_list arguments)
{
    if (!c->refused) {
        vsnprintf(c->message, sizeof c->message, format, arguments);
        c->by_tool = tn_ok();
    }
    c->refused = true;
}

void refused_by_tanso(call *c, const char *why)
{
    if (!c->refused)
        snprintf(c->message, sizeof c->message, "%s", why);
    c->refused = true;
}

void refuse(call *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(c, format, arguments);
    va_end(arguments);
}

void malformed(call *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(c, format, arguments);
    va_end(arguments);
    c->malformed = true;
}

/* ---- from JSON ---- */

/* Does the header of a .npy file say so? */
static bool in_fortran_order(const char *path)
{
    char header[256] = {0};
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(header, 1, sizeof header - 1, file) : 0;
    if (file)
        fclose(file);
    for (size_t i = 0; i + 1 < n; i++)
        header[i] = header[i] ? header[i] : ' ';
    const char *at = strstr(header, "'fortran_order':");
    return at && strstr(at, "True") == at + strlen("'fortran_order': ");
}

static tn_array *load(call *c, const char *folder, const char *name, tn_device device)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, R_OK))
        malformed(c, "%s: %s", path, strerror(errno));
    tn_array *x = tn_load_npy(path);
    if (tn_is_error(x))
        refused_by_tanso(c, tn_message_of(x));
    return tn_to(x, device);
}

char *strict_json(const char *line)
{
    static const char *const words[][2] = {{"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}, {"NaN", "\"nan\""}};
    size_t length = strlen(line), at = 0;
    char *out = calloc(3 * length + 3, 1);
    bool quoted = false;
    for (size_t i = 0; out && i < length;) {
        size_t w = 0, digits = strspn(line + i + (line[i] == '-'), "0123456789") + (line[i] == '-');
        while (w < 3 && strncmp(line + i, words[w][0], strlen(words[w][0])))
            w++;
        bool number =
            !quoted && digits > 18 && !strchr(".eE", line[i + digits]) && (i == 0 || !strchr(".eE+", line[i - 1]));
        if (!quoted && w < 3) {
            at += (size_t)sprintf(out + at, "%s", words[w][1]);
            i += strlen(words[w][0]);
        } else if (number && (errno = 0, strtoll(line + i, NULL, 10), errno == ERANGE)) {
            at += (size_t)sprintf(out + at, "\"#%.*s\"", (int)digits, line + i);
            i += digits;
        } else {
            size_t step = quoted && line[i] == '\\' ? 2 : !quoted && digits ? digits : 1;
            quoted ^= line[i] == '"';
            memcpy(out + at, line + i, step);
            at += step;
            i += step;
        }
    }
    return out;
}

static value read_number(call *c, const json_t *json)
{
    if (json_is_boolean(json))
        return (value){.kind = BOOL, .i = json_is_true(json)};
    if (json_is_integer(json))
        return (value){.kind = INT, .i = json_integer_value(json)};
    if (json_is_real(json))
        return (value){.kind = FLOAT, .f = json_real_value(json)};
    const char *text = json_string_value(json);
    if (text && *text == '#')
        return (value){.kind = INT, .digits = text + 1, .i = strtoll(text + 1, NULL, 10)};
    if (text && !strcmp(text, "nan"))
        return (value){.kind = FLOAT, .f = NAN};
    if (text && !strcmp(text, "inf"))
        return (value){.kind = FLOAT, .f = INFINITY};
    if (text && !strcmp(text, "-inf"))
        return (value){.kind = FLOAT, .f = -INFINITY};
    if (!json_is_null(json))
        malformed(c, "a scalar is neither a number, true, false nor \"nan\", \"inf\", \"-inf\"");
    return (value){.kind = NONE};
}

static long long end_of(call *c, const json_t *slice, size_t i)
{
    const json_t *end = json_array_get(slice, i);
    if (!json_is_integer(end) && !json_is_null(end))
        malformed(c, "a slice is no list of three integers or null");
    return json_is_integer(end) ? json_integer_value(end) : TN_NONE;
}

static const char *text_of(call *c, const json_t *json)
{
    if (!json_is_string(json))
        malformed(c, "expected a string");
    return json_is_string(json) ? json_string_value(json) : "";
}

static value read_list(call *c, const json_t *json, const char *folder, tn_device device)
{
    value v = {.kind = LIST, .list.count = (int)json_array_size(json)};
    if (!json_is_array(json))
        malformed(c, "a list is none");
    v.list.item = case_memory(sizeof(value) * (size_t)(v.list.count + 1));
    for (int i = 0; i < v.list.count && !c->refused; i++) {
        const value *item = value_read(c, json_array_get(json, (size_t)i), folder, device);
        if (item)
            v.list.item[i] = *item;
    }
    return v;
}

static value read_object(call *c, const json_t *json, const char *folder, tn_device device)
{
    const char *key = json_object_iter_key(json_object_iter((json_t *)json));
    const json_t *content = key ? json_object_get(json, key) : NULL;
    if (!key) {
        malformed(c, "an argument is {}, which is no form of one");
        return (value){.kind = NONE};
    }
    if (!strcmp(key, "npy") && json_is_string(content)) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, json_string_value(content));
        return (value){.kind = ARRAY,
                       .fortran = in_fortran_order(path),
                       .array = load(c, folder, json_string_value(content), device)};
    }
    if (!strcmp(key, "scalar"))
        return read_number(c, content);
    if (!strcmp(key, "dtype"))
        return (value){.kind = DTYPE, .text = text_of(c, content)};
    if (!strcmp(key, "list"))
        return read_list(c, content, folder, device);
    if (!strcmp(key, "str"))
        return (value){.kind = STRING, .text = text_of(c, content)};
    if (!strcmp(key, "slice"))
        return (value){.kind = SLICE, .slice = {end_of(c, content, 0), end_of(c, content, 1), end_of(c, content, 2)}};
    if (!strcmp(key, "ellipsis"))
        return (value){.kind = ELLIPSIS};
    if (!strcmp(key, "newaxis") || !strcmp(key, "none"))
        return (value){.kind = NONE};
    if (!strcmp(key, "complex")) {
        value v = {.kind = COMPLEX};
        for (int i = 0; i < 2; i++) {
            value part = read_number(c, json_array_get(content, (size_t)i));
            if (part.kind == NONE)
                malformed(c, "a complex number has no two parts");
            v.complex_parts[i] = part.kind == FLOAT ? part.f : (double)part.i;
        }
        return v;
    }
    malformed(c, "'%s' is no form of an argument", key);
    return (value){.kind = NONE};
}

const value *value_read(call *c, const json_t *json, const char *folder, tn_device device)
{
    value *v = case_memory(sizeof *v);
    if (json_is_object(json))
        *v = read_object(c, json, folder, device);
    else if (json_is_array(json))
        *v = read_list(c, json, folder, device);
    else if (json_is_string(json) && *json_string_value(json) != '#') /* which strict_json puts before integers */
        *v = (value){.kind = STRING, .text = json_string_value(json)};
    else
        *v = read_number(c, json);
    return c->refused ? NULL : v;
}
