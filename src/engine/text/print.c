/* SPDX-License-Identifier: MIT */
/*
 * Arrays as text: the layout of NumPy's str and repr with default print options (75 columns; above
 * 1000 elements only 3 at each end of an axis). Only the elements that are shown are read.
 */
#include "engine/engine.h"

#include "core/memory.h"
#include "engine/text/format.h"

#include <string.h>
#include <tanso/engine.h>

#define LINE_WIDTH 75
#define THRESHOLD  1000
#define EDGE       3

/* ---- reading what is shown ---- */

typedef struct reader {
    const tn__node *node;
    int64_t stride[TN_MAX_NDIM]; /* in bytes */
    size_t itemsize;
    bool summary;
    char *next; /* where the next element goes */
} reader;

static int64_t shown_of(int64_t extent, bool summary)
{
    return summary && extent > 2 * EDGE ? 2 * EDGE : extent;
}

static tn_status read_bytes(reader *r, const char *memory, size_t bytes)
{
    tn_status status = tn__storage_read(r->node->storage, r->next, memory, bytes);
    r->next += bytes;
    return status;
}

static tn_status read_axis(reader *r, int axis, const char *memory)
{
    const tn__shape *shape = r->node->shape;
    if (axis == shape->ndim)
        return read_bytes(r, memory, r->itemsize);
    int64_t extent = shape->dim[axis], shown = shown_of(extent, r->summary);
    int64_t run = axis == shape->ndim - 1 && r->stride[axis] == (int64_t)r->itemsize ? shown : 1;
    if (run > 1 && shown < extent)
        run = EDGE;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < shown && status == TN_OK; i += run) {
        const char *at = memory + (i < EDGE ? i : i + extent - shown) * r->stride[axis];
        status =
            run > 1 ? read_bytes(r, at, (size_t)run * r->itemsize) : read_axis(r, axis + 1, at);
    }
    return status;
}

/* The shown elements of an evaluated node, in C order; freed by the caller. NULL with a latched error. */
static char *read_shown(const tn__node *node, bool summary, size_t *count)
{
    reader r = {.node = node, .itemsize = tn_dtype_size((tn_dtype)node->dtype), .summary = summary};
    int64_t dense = (int64_t)r.itemsize;
    *count = 1;
    for (int i = node->shape->ndim; i-- > 0; dense *= node->shape->dim[i]) {
        r.stride[i] = node->strides ? node->strides->v[i] * (int64_t)r.itemsize : dense;
        *count *= (size_t)shown_of(node->shape->dim[i], summary);
    }
    char *elements = tn__alloc(*count * r.itemsize);
    if (!elements) {
        tn__fail_memory("print", *count * r.itemsize);
        return NULL;
    }
    r.next = elements;
    const char *memory = (const char *)node->storage->memory + node->offset * (int64_t)r.itemsize;
    tn_status status = summary || node->strides ? read_axis(&r, 0, memory)
                                                : read_bytes(&r, memory, *count * r.itemsize);
    if (status == TN_OK)
        return elements;
    tn__free(elements);
    return NULL;
}

/* ---- layout ---- */

typedef struct layout {
    tn__text *text;
    size_t line; /* where the current line starts in the text */
    int width;   /* columns for elements in the innermost brackets */
    const tn__shape *shape;
    bool summary;
    const char *separator; /* between elements; between rows without its space */
    tn__element_format format;
    size_t itemsize;
    const char *next; /* the next element */
} layout;

static void add_spaces(tn__text *text, size_t count)
{
    while (count-- > 0)
        tn__text_addn(text, " ", 1);
}

static void break_line(layout *l, size_t indent)
{
    tn__text *t = l->text;
    while (t->length && t->data[t->length - 1] == ' ')
        t->length--;
    tn__text_addn(t, "\n", 1);
    l->line = t->length;
    add_spaces(t, indent);
}

/* A word of the innermost brackets, on a new line if this one is full. */
static void add_word(layout *l, size_t indent, const char *word, size_t length)
{
    size_t column = l->text->length - l->line;
    if (column > indent && column + length > (size_t)l->width)
        break_line(l, indent);
    tn__text_addn(l->text, word, length);
}

static void add_element(layout *l, size_t indent)
{
    char word[TN__NUMBER_TEXT];
    int length = tn__element_write(&l->format, l->next, word);
    l->next += l->itemsize;
    add_word(l, indent, word, (size_t)length);
}

/* Between two rows of an axis: a line's end, and an empty line more for each further axis inside. */
static void add_row_break(layout *l, int axis, size_t indent)
{
    tn__text_addn(l->text, l->separator, strcspn(l->separator, " "));
    for (int i = axis; i < l->shape->ndim - 1; i++)
        tn__text_addn(l->text, "\n", 1);
    l->line = l->text->length;
    add_spaces(l->text, indent);
}

static void add_axis(layout *l, int axis, size_t indent)
{
    if (axis == l->shape->ndim) {
        add_element(l, indent);
        return;
    }
    bool innermost = axis == l->shape->ndim - 1;
    int64_t shown = shown_of(l->shape->dim[axis], l->summary);
    bool gap = shown < l->shape->dim[axis];
    tn__text_addn(l->text, "[", 1);
    indent++;
    for (int64_t i = 0; i < shown + gap; i++) {
        if (i && innermost)
            tn__text_add(l->text, l->separator);
        else if (i)
            add_row_break(l, axis, indent);
        if (gap && i == EDGE)
            add_word(l, innermost ? indent : SIZE_MAX, "...", 3);
        else if (innermost)
            add_element(l, indent);
        else
            add_axis(l, axis + 1, indent);
    }
    tn__text_addn(l->text, "]", 1);
}

/* The elements in brackets, behind `prefix` characters and before `suffix` ones. False with a
 * latched error. */
static bool add_elements(tn__text *text, const tn__node *node, const char *separator, size_t prefix,
                         int suffix)
{
    const tn__shape *shape = node->shape;
    bool summary = shape->size > THRESHOLD;
    size_t count;
    char *elements = read_shown(node, summary, &count);
    if (!elements)
        return false;
    layout l = {.text = text,
                .shape = shape,
                .summary = summary,
                .separator = separator,
                .next = elements,
                .width = LINE_WIDTH - suffix - shape->ndim,
                .itemsize = tn_dtype_size((tn_dtype)node->dtype)};
    l.format = tn__element_format_for((tn_dtype)node->dtype, shape->ndim == 0, elements, count);
    add_axis(&l, 0, prefix);
    tn__free(elements);
    return true;
}

static bool add_str(tn__text *text, const tn__node *node)
{
    if (node->shape->size == 0) {
        tn__text_add(text, "[]");
        return true;
    }
    if (node->shape->ndim > 0)
        return add_elements(text, node, " ", 0, 0);
    size_t count;
    char word[TN__NUMBER_TEXT], *element = read_shown(node, false, &count);
    if (!element)
        return false;
    tn__number_write_alone((tn_dtype)node->dtype, element, word);
    tn__text_add(text, word);
    tn__free(element);
    return true;
}

static bool dtype_is_implied(tn_dtype dtype)
{
    return dtype == TN_BOOL || dtype == TN_INT64 || dtype == TN_FLOAT64 || dtype == TN_COMPLEX128;
}

static bool add_repr(tn__text *text, const tn__node *node)
{
    const tn__shape *shape = node->shape;
    bool implied = shape->size > 0 && dtype_is_implied((tn_dtype)node->dtype);
    tn__text_add(text, "array(");
    size_t prefix = text->length;
    if (shape->size > 0) {
        if (!add_elements(text, node, ", ", prefix, 1))
            return false;
    } else {
        char extents[TN__SHAPE_TEXT];
        tn__text_add(text, "[]");
        if (shape->ndim > 1)
            tn__text_addf(text, ", shape=%s", tn__shape_text(shape->ndim, shape->dim, extents));
    }
    if (implied) {
        tn__text_add(text, ")");
        return true;
    }
    tn__text_add(text, ",");
    const char *name = tn_dtype_name((tn_dtype)node->dtype);
    size_t line = text->length;
    while (line && text->data[line - 1] != '\n')
        line--;
    bool fits = text->length - line + strlen("dtype=)") + strlen(name) + 1 <= LINE_WIDTH;
    tn__text_addf(text, "%sdtype=%s)", fits ? " " : "\n      ", name);
    return true;
}

/* ---- the public calls ---- */

static char *text_of(const tn_array *x, const char *operation,
                     bool (*add)(tn__text *, const tn__node *))
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, operation);
    tn__text text = {0};
    if (tn__evaluate(1, &node) != TN_OK || !add(&text, node)) {
        text.length = 0;
        tn__text_addf(&text, "<error: %s>", tn__error_message(tn__error_last()));
    }
    char *string = tn__text_take(&text);
    if (!string)
        tn__fail_memory(operation, 0);
    tn__leave(call);
    return string;
}

char *tn_string(const tn_array *x)
{
    return text_of(x, "string", add_str);
}

char *tn_repr(const tn_array *x)
{
    return text_of(x, "repr", add_repr);
}

void tn_fprint(FILE *stream, const tn_array *x)
{
    if (!stream) {
        tn__fail_null("fprint", "a stream");
        return;
    }
    char *string = tn_string(x);
    if (string)
        fprintf(stream, "%s\n", string);
    tn_string_free(string);
}

void tn_print(const tn_array *x)
{
    tn_fprint(stdout, x);
}
