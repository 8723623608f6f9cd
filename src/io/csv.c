/* SPDX-License-Identifier: MIT */
/* Tables of numbers as text. */
#include "io/csv.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/number.h"
#include "core/options.h"
#include "io/formats.h"

/* ---- reading ---- */

typedef struct field {
    const char *begin, *end;
} field;

typedef struct reader {
    const char *operation, *name;
    const char *at, *end;
    long long line;      /* the number of the one in hand, from 1 */
    char delimiter, comment;
    tn_dtype dtype;
    const tn_csv_opts *opts;
    struct {
        field *at;
        size_t count, capacity;
    } fields;            /* of the line */
    size_t first_count;  /* how many the first line has */
    struct {
        size_t *index;
        size_t count;
    } wanted;            /* fields */
    struct {
        char *at;
        size_t bytes, capacity;
    } elements;          /* of all rows so far */
    int64_t rows, most;  /* read so far, and to be read */
} reader;

static tn_status bad_line(const reader *r, const char *what, size_t found, size_t expected)
{
    return tn__fail(TN_ERR_FORMAT, r->operation, "'%s', line %lld: %s %zu, expected %zu", r->name, r->line, what, found,
                    expected);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool add_field(reader *r, const char *begin, const char *end)
{
    while (begin < end && is_space(*begin))
        begin++;
    while (begin < end && is_space(end[-1]))
        end--;
    if (end - begin >= 2 && *begin == '"' && end[-1] == '"') {
        begin++;
        end--;
    }
    if (!tn__grow((void **)&r->fields.at, &r->fields.capacity, r->fields.count + 1, sizeof *r->fields.at))
        return false;
    r->fields.at[r->fields.count++] = (field){begin, end};
    return true;
}

/* The fields of the next line; none for a blank one. False without memory. */
static bool split_line(reader *r)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at)), *next = end ? end + 1 : r->end;
    end = end ? end : r->end;
    const char *comment = r->comment ? memchr(r->at, r->comment, (size_t)(end - r->at)) : NULL;
    end = comment ? comment : end;
    const char *at = r->at;
    r->at = next;
    r->line++;
    r->fields.count = 0;
    while (at < end && is_space(*at))
        at++;
    while (end > at && is_space(end[-1]) && (r->delimiter != '\t' || end[-1] == '\r'))
        end--;
    if (at == end)
        return true;
    for (;;) {
        const char *stop = at;
        while (stop < end && *stop != r->delimiter && !(r->delimiter == ' ' && *stop == '\t'))
            stop++;
        if (!add_field(r, at, stop))
            return false;
        if (stop == end)
            return true;
        at = stop + 1;
        while (r->delimiter == ' ' && at < end && is_space(*at))
            at++;
    }
}

/* Which fields are wanted, when the first line has shown how many there are. */
static tn_status choose_columns(reader *r)
{
    const tn_csv_opts *o = r->opts;
    r->first_count = r->fields.count;
    r->wanted.count = o->column_count ? (size_t)o->column_count : r->fields.count;
    r->wanted.index = tn__alloc(r->wanted.count * sizeof *r->wanted.index);
    if (!r->wanted.index)
        return tn__fail_memory(r->operation, r->wanted.count * sizeof *r->wanted.index);
    for (size_t k = 0; k < r->wanted.count; k++) {
        int64_t wanted = o->column_count ? o->columns[k] : (int64_t)k,
                from_front = wanted < 0 ? wanted + (int64_t)r->fields.count : wanted;
        if (from_front < 0 || from_front >= (int64_t)r->fields.count)
            return tn__fail(TN_ERR_INDEX, r->operation, "'%s': column %lld, of %zu that line %lld has", r->name,
                            (long long)wanted, r->fields.count, r->line);
        r->wanted.index[k] = (size_t)from_front;
    }
    return TN_OK;
}

static tn_status take_field(const reader *r, size_t column, char *element)
{
    const field *f = &r->fields.at[column];
    tn__scalar value;
    if (f->begin == f->end && r->opts->fill)
        value = tn__scalar_from_double(r->opts->missing, r->dtype);
    else if (!tn__csv_number(f->begin, f->end, r->dtype, &value))
        return tn__fail(TN_ERR_FORMAT, r->operation, "'%s', line %lld, column %zu: '%.*s' is no %s%s", r->name, r->line,
                        column + 1, (int)(f->end - f->begin < 40 ? f->end - f->begin : 40), f->begin,
                        tn_dtype_name(r->dtype),
                        f->begin == f->end ? "; .fill = true puts .missing in empty fields"
                        : r->line == 1     ? "; .skip = 1 leaves out a header"
                                           : "");
    memcpy(element, value.bytes, tn_dtype_size(r->dtype));
    return TN_OK;
}

static tn_status take_line(reader *r)
{
    size_t item = tn_dtype_size(r->dtype);
    tn_status status = r->wanted.index ? TN_OK : choose_columns(r);
    if (status != TN_OK)
        return status;
    if (r->fields.count != r->first_count)
        return bad_line(r, "the number of fields is", r->fields.count, r->first_count);
    if (!tn__grow((void **)&r->elements.at, &r->elements.capacity, r->elements.bytes + r->wanted.count * item, 1))
        return tn__fail_memory(r->operation, r->elements.bytes + r->wanted.count * item);
    for (size_t k = 0; k < r->wanted.count && status == TN_OK; k++, r->elements.bytes += item)
        status = take_field(r, r->wanted.index[k], r->elements.at + r->elements.bytes);
    r->rows++;
    return status;
}

static tn_status read_lines(reader *r)
{
    tn_status status = TN_OK;
    for (int k = 0; k < r->opts->skip && r->at < r->end; k++) {
        const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = end ? end + 1 : r->end;
        r->line++;
    }
    while (r->at < r->end && status == TN_OK && r->rows < r->most) {
        if (!split_line(r))
            return tn__fail_memory(r->operation, r->fields.count * sizeof *r->fields.at);
        if (r->fields.count)
            status = take_line(r);
    }
    return status;
}

static tn_status check_opts(const char *operation, const tn_csv_opts *o)
{
    if (o->dtype && (!tn__dtype_valid(o->dtype) || tn_dtype_is_complex(o->dtype)))
        return tn__fail(TN_ERR_DTYPE, operation, "a dtype %s: expected bool, integers or floats",
                        tn_dtype_name(o->dtype));
    int columns = TN__OPTION(o, column_count, 1);
    if (o->skip < 0 || o->rows < 0 || columns < 1 || columns > 1 << 20 || (o->column_count && !o->columns))
        return tn__fail(TN_ERR_VALUE, operation,
                        "skip %d, rows %lld and %d columns: expected numbers from 0 on, and a list of columns",
                        o->skip, (long long)o->rows, o->column_count);
    char delimiter = TN__OPTION(o, delimiter, ',');
    if (!delimiter || delimiter == '\n' || delimiter == '"' || delimiter == TN__OPTION(o, comment, '#'))
        return tn__fail(TN_ERR_VALUE, operation, "the delimiter has another meaning already: choose another");
    return TN_OK;
}

tn_status tn__csv_parse(const char *operation, const char *name, const char *text, size_t size, const tn_csv_opts *opts,
                        tn__values *values)
{
    *values = (tn__values){0};
    tn_status status = check_opts(operation, opts);
    if (status != TN_OK)
        return status;
    reader r = {.operation = operation, .name = name, .at = text, .end = text + size, .opts = opts,
                .most = TN__OPTION(opts, rows, INT64_MAX), .delimiter = TN__OPTION(opts, delimiter, ','),
                .comment = TN__OPTION(opts, comment, '#'), .dtype = opts->dtype ? opts->dtype : TN_FLOAT32};
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is text of UTF-16: save it as UTF-8", name);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* UTF-8's mark, which spreadsheets put in front */
        r.at += 3;
    status = read_lines(&r);
    size_t columns = r.wanted.index ? r.wanted.count : (size_t)opts->column_count;
    if (status == TN_OK)
        status = tn__values_new(operation, values, r.dtype, TN_SHAPE(r.rows, (int64_t)columns));
    if (status == TN_OK && r.elements.bytes)
        memcpy(tn__values_data(values), r.elements.at, r.elements.bytes);
    tn__free(r.fields.at);
    tn__free(r.wanted.index);
    tn__free(r.elements.at);
    return status;
}

static const tn_csv_opts defaults;

tn_array *tn_load_csv_with(const char *path, const tn_csv_opts *opts)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    uint8_t *text;
    size_t size;
    tn_status status = tn__file_read("load_csv", path, UINT64_MAX, &text, &size);
    if (status == TN_OK)
        status = tn__csv_parse("load_csv", path, (const char *)text, size, opts ? opts : &defaults, &values);
    tn__free(text);
    return tn__values_leave(call, status, &values);
}

/* ---- writing ---- */

typedef struct table {
    const tn__host_view *view;
    const tn_csv_opts *opts;
} table;

/* Digits with which a number is read back as it was: those of the binary format's width. */
static const int enough_digits[TN_DTYPE_COUNT] = {
    [TN_FLOAT16] = 5, [TN_BFLOAT16] = 4, [TN_FLOAT32] = 9, [TN_FLOAT64] = 17};

static int print_element(const table *t, const char *element, char text[64])
{
    tn_dtype dtype = t->view->dtype;
    tn__scalar value = {.bits = 0};
    memcpy(value.bytes, element, tn_dtype_size(dtype));
    if (tn_dtype_is_float(dtype)) {
        int digits = TN__OPTION(t->opts, digits, enough_digits[dtype]);
        return tn__print_into(text, 64, "%.*g", digits, tn__scalar_to_double(value, dtype));
    }
    if (dtype == TN_UINT64)
        return snprintf(text, 64, "%llu", (unsigned long long)value.bits);
    return snprintf(text, 64, "%lld", (long long)tn__scalar_to_int(value, dtype));
}

static tn_status fill(tn__writer *writer, void *user)
{
    const table *t = user;
    const tn__shape *shape = t->view->shape;
    int64_t rows = shape->ndim ? shape->dim[0] : 1, columns = shape->ndim == 2 ? shape->dim[1] : 1;
    size_t item = tn_dtype_size(t->view->dtype);
    const char *element = t->view->data;
    char delimiter = TN__OPTION(t->opts, delimiter, ',');
    tn_status status = TN_OK;
    if (t->opts->header) {
        tn__write(writer, t->opts->header, strlen(t->opts->header));
        status = tn__write(writer, "\n", 1);
    }
    for (int64_t row = 0; row < rows && status == TN_OK; row++) {
        for (int64_t column = 0; column < columns; column++, element += item) {
            char text[64];
            int length = print_element(t, element, text);
            if (column)
                tn__write(writer, &delimiter, 1);
            tn__write(writer, text, (size_t)length);
        }
        status = tn__write(writer, "\n", 1);
    }
    return status;
}

tn_status tn_save_csv_with(const tn_array *x, const char *path, const tn_csv_opts *opts)
{
    tn__host_view view;
    table t = {&view, opts ? opts : &defaults};
    tn_status status = check_opts("save_csv", t.opts);
    int digits = TN__OPTION(t.opts, digits, 1);
    if (status == TN_OK && (digits < 1 || digits > 40))
        status = tn__fail(TN_ERR_VALUE, "save_csv", "%d digits: expected 1 to 40", digits);
    if (status != TN_OK || (status = tn__host_view_of("save_csv", x, &view)) != TN_OK)
        return status;
    if (tn_dtype_is_complex(view.dtype))
        status = tn__fail(TN_ERR_DTYPE, "save_csv", "the array is %s: save its real and its imaginary part",
                          tn_dtype_name(view.dtype));
    else if (view.shape->ndim > 2)
        status = tn__fail(TN_ERR_SHAPE, "save_csv", "the array has %d axes: expected at most 2; reshape it",
                          view.shape->ndim);
    else
        status = tn__file_write_atomic("save_csv", path, fill, &t);
    tn__host_view_end(&view);
    return status;
}
