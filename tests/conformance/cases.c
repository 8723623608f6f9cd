/* SPDX-License-Identifier: MIT */
#include "conformance/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    char *at, *end;
} cursor;

static void broken(const char *what)
{
    fprintf(stderr, "conformance.bin: %s\n", what);
    abort();
}

/* The next line, ended by a zero; what follows it is at the cursor. */
static char *next_line(cursor *c)
{
    char *line = c->at, *newline = memchr(line, '\n', (size_t)(c->end - line));
    if (!newline)
        broken("a line without an end");
    *newline = 0;
    c->at = newline + 1;
    return line;
}

static const char *next_bytes(cursor *c, size_t count)
{
    const char *bytes = c->at;
    if ((size_t)(c->end - c->at) < count)
        broken("cut short");
    c->at += count;
    return bytes;
}

static tn_shape read_extents(char **text, int ndim)
{
    tn_shape shape = {.ndim = ndim};
    for (int i = 0; i < ndim; i++)
        shape.dim[i] = strtoll(*text, text, 10);
    return shape;
}

int64_t shape_size(tn_shape shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape.ndim; i++)
        size *= shape.dim[i];
    return size;
}

static void read_operand(cursor *at, char *line, operand *o)
{
    char dtype[16], state[8], number[64];
    int used;
    if (sscanf(line, "in weak %11s %63s", o->view, number) == 2) {
        o->number = strtod(number, NULL);
        return;
    }
    if (sscanf(line, "in %15s %11s %7s %d%n", dtype, o->view, state, &o->stored.ndim, &used) != 4)
        broken(line);
    o->dtype = tn_dtype_parse(dtype);
    o->ready = strcmp(state, "ready") == 0;
    char *rest = line + used;
    o->stored = read_extents(&rest, o->stored.ndim);
    if (strcmp(o->view, "broadcast") == 0)
        o->target = read_extents(&rest, o->stored.ndim);
    o->bytes = next_bytes(at, (size_t)shape_size(o->stored) * tn_dtype_size(o->dtype));
}

static void read_result(cursor *at, char *line, one_case *c)
{
    static const char *const modes[] = {"exact", "value", "near", "refused", "fails"};
    char mode[16], dtype[16];
    int used, ndim;
    if (sscanf(line, "out %15s", mode) != 1)
        broken(line);
    while (c->mode <= FAILS && strcmp(mode, modes[c->mode]) != 0)
        c->mode++;
    if (c->mode >= REFUSED)
        return;
    if (sscanf(line, "out %*s %15s %d%n", dtype, &ndim, &used) != 2)
        broken(line);
    c->dtype = tn_dtype_parse(dtype);
    char *rest = line + used;
    c->shape = read_extents(&rest, ndim);
    c->bytes = next_bytes(at, (size_t)shape_size(c->shape) *
                                  (c->mode == NEAR ? 16 : tn_dtype_size(c->dtype)));
}

static void read_case(cursor *at, one_case *c)
{
    char *line = next_line(at);
    int used;
    *c = (one_case){0};
    if (sscanf(line, "case %d %23s %d%n", &c->number, c->operation, &c->integers, &used) != 3 ||
        c->integers > MAX_INTEGERS)
        broken(line);
    char *rest = line + used;
    for (int i = 0; i < c->integers; i++)
        c->integer[i] = strtoll(rest, &rest, 10);
    for (line = next_line(at); strncmp(line, "in ", 3) == 0; line = next_line(at)) {
        if (c->operands == MAX_OPERANDS)
            broken("too many operands");
        read_operand(at, line, &c->in[c->operands++]);
    }
    read_result(at, line, c);
}

bool cases_read(const char *path, case_file *file)
{
    FILE *stream = fopen(path, "rb");
    *file = (case_file){0};
    if (!stream)
        return false;
    fseek(stream, 0, SEEK_END);
    size_t size = (size_t)ftell(stream), capacity = 0;
    rewind(stream);
    file->memory = malloc(size + 1);
    if (!file->memory || fread(file->memory, 1, size, stream) != size)
        broken("can't be read");
    fclose(stream);
    cursor at = {file->memory, file->memory + size};
    if (sscanf(next_line(&at), "seed %llu", &file->seed) != 1)
        broken("no seed");
    while (at.at < at.end) {
        if ((size_t)file->count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            file->cases = realloc(file->cases, capacity * sizeof *file->cases);
            if (!file->cases)
                broken("no memory");
        }
        read_case(&at, &file->cases[file->count++]);
    }
    return true;
}

void cases_free(case_file *file)
{
    for (int i = 0; i < file->count; i++)
        free(file->cases[i].first);
    free(file->cases);
    free(file->memory);
}

tn_array *operand_array(const operand *o)
{
    if (!o->dtype)
        return strcmp(o->view, "int") == 0    ? tn_weak_int((long long)o->number)
               : strcmp(o->view, "bool") == 0 ? tn_weak_bool(o->number != 0)
                                              : tn_weak_float(o->number);
    tn_array *x = tn_from_host(o->bytes, o->stored, o->dtype);
    switch (o->view[0]) {
    case 't':
        x = tn_transpose(x, (tn_axes){0});
        break;
    case 'f':
        x = tn_flip(x, (tn_axes){0});
        break;
    case 's':
        x = tn_slice_axis(x, -1, TN_NONE, TN_NONE, 2);
        break;
    case 'b':
        x = tn_broadcast_to(x, o->target);
        break;
    }
    if (o->ready && tn_eval(x) != TN_OK)
        fprintf(stderr, "%s operand: %s\n", o->view, tn_error());
    return x;
}

const char *case_text(const one_case *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s(", c->operation);
    for (int i = 0; i < c->operands && used < size; i++) {
        const operand *o = &c->in[i];
        const char *comma = i ? ", " : "";
        if (!o->dtype) {
            used += (size_t)snprintf(text + used, size - used, "%sweak %s %g", comma, o->view,
                                     o->number);
            continue;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s %s%s (", comma,
                                 tn_dtype_name(o->dtype), o->ready ? "ready " : "", o->view);
        for (int k = 0; k < o->stored.ndim && used < size; k++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", k ? ", " : "",
                                     (long long)o->stored.dim[k]);
        used += used < size ? (size_t)snprintf(text + used, size - used, ")") : 0;
    }
    for (int i = 0; i < c->integers && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? " " : "; ",
                                 (long long)c->integer[i]);
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}
