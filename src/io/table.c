/* SPDX-License-Identifier: MIT */
/* Tables whose columns have types of their own: of the fields that a text was cut into each column finds its type and
 * becomes an array. */
#include "io/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "array/build_parts.h"
#include "core/memory.h"
#include "core/options.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/words.h"

typedef struct column {
    tn_dtype dtype;
    tn__values values;
    tn_words *words; /* NULL: the column is of numbers */
} column;

struct tn_table {
    tn__object object;
    tn_words *names; /* of columns */
    column *columns;
    int count;
    int64_t rows;
    tn__error *error; /* why it could not be made */
    bool is_static;
};

static tn_table out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_table, "table");

/* ---- columns ---- */

static const tn__field *field_at(const tn__fields *r, size_t row, size_t i) { return &r->fields[row * r->width + i]; }

static bool is_number(const tn__field *f, tn_dtype dtype, tn__scalar *value)
{
    const char *begin = f->begin, *end = f->begin + f->length;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (begin == end && tn_dtype_is_float(dtype)) {
        *value = tn__scalar_from_double(NAN, dtype);
        return true;
    }
    return tn__csv_number(begin, end, dtype, value);
}

/* The narrowest of int64, float64 and words that holds all fields. A column of nothing is of floats. */
static tn_dtype type_of(const tn__fields *r, size_t first_row, size_t i)
{
    static const tn_dtype order[] = {TN_INT64, TN_FLOAT64};
    tn__scalar value;
    if (first_row == r->rows)
        return TN_FLOAT64;
    for (int k = 0; k < 2; k++) {
        size_t row = first_row;
        while (row < r->rows && is_number(field_at(r, row, i), order[k], &value))
            row++;
        if (row == r->rows)
            return order[k];
    }
    return TN_WORDS;
}

static tn_status take_numbers(const tn__fields *r, size_t first_row, size_t i, const tn_table *table)
{
    const column *c = &table->columns[i];
    size_t item = tn_dtype_size(c->dtype);
    char *to = tn__values_data(&c->values);
    for (size_t row = first_row; row < r->rows; row++, to += item) {
        const tn__field *f = field_at(r, row, i);
        tn__scalar value;
        if (!is_number(f, c->dtype, &value))
            return tn__fail(TN_ERR_FORMAT, r->operation, "'%s', line %lld, column \"%s\": '%.*s' is no %s", r->name,
                            r->lines[row], tn_words_get(table->names, (int64_t)i),
                            (int)(f->length < 40 ? f->length : 40), f->begin, tn_dtype_name(c->dtype));
        memcpy(to, value.bytes, item);
    }
    return TN_OK;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Each word once, sorted; then each field by its number. */
static tn_status take_words(const tn__fields *r, size_t first_row, size_t i, column *c)
{
    size_t count = r->rows - first_row;
    const char **sorted = tn__calloc(count + 1, sizeof *sorted);
    c->words = tn_words_new();
    tn_status status = sorted && tn_words_status(c->words) == TN_OK ? tn__config_take(c->words, "a table")
                                                                    : tn__fail_memory(r->operation, count);
    for (size_t row = 0; row < count && status == TN_OK; row++)
        sorted[row] = field_at(r, first_row + row, i)->begin;
    if (status == TN_OK)
        qsort(sorted, count, sizeof *sorted, by_bytes);
    for (size_t k = 0; k < count && status == TN_OK; k++)
        if (k == 0 || strcmp(sorted[k], sorted[k - 1]) != 0)
            status = tn__config_append(r->operation, c->words, sorted[k], strlen(sorted[k]));
    int64_t *number = status == TN_OK ? tn__values_data(&c->values) : NULL;
    for (size_t row = first_row; row < r->rows && status == TN_OK; row++)
        *number++ = tn__config_find(c->words, field_at(r, row, i)->begin, field_at(r, row, i)->length);
    tn__free(sorted);
    return status;
}

static tn_status make_column(const tn__fields *r, size_t first_row, size_t i, const tn_table *table,
                             const tn_column_type *type)
{
    column *c = &table->columns[i];
    c->dtype = type ? type->dtype : type_of(r, first_row, i);
    bool words = c->dtype == TN_WORDS;
    tn_status status = tn__values_new(r->operation, &c->values, words ? TN_INT64 : c->dtype,
                                      TN_SHAPE((int64_t)(r->rows - first_row)));
    if (status == TN_OK)
        status = words ? take_words(r, first_row, i, c) : take_numbers(r, first_row, i, table);
    return status;
}

static tn_status check_types(const tn__fields *r, const tn_table *table, const tn_column_type *type)
{
    for (; type && type->name; type++) {
        if (tn_words_find(table->names, type->name) < 0)
            return tn__fail(TN_ERR_NAME, r->operation, "'%s' has no column \"%s\", of which a type is given", r->name,
                            type->name);
        if (type->dtype != TN_WORDS && (!tn__dtype_valid(type->dtype) || tn_dtype_is_complex(type->dtype)))
            return tn__fail(TN_ERR_DTYPE, r->operation, "column \"%s\": expected words, bool, integers or floats, got "
                            "%s", type->name, tn_dtype_name(type->dtype));
    }
    return TN_OK;
}

static tn_status take_names(const tn__fields *r, tn_table *table, bool header)
{
    tn_status status = tn_words_status(table->names = tn_words_new());
    for (size_t i = 0; i < r->width && status == TN_OK; i++) {
        char *number = header ? NULL : tn__format("%zu", i);
        const char *name = header ? field_at(r, 0, i)->begin : number;
        if (!name)
            status = tn__fail_memory(r->operation, 16);
        else if (tn_words_find(table->names, name) >= 0)
            status = tn__fail(TN_ERR_NAME, r->operation, "'%s' has two columns called \"%s\"; where the first line is "
                              "no header, say .no_header = true", r->name, name);
        else
            status = tn__config_append(r->operation, table->names, name, strlen(name));
        tn__free(number);
    }
    return status;
}

static tn_status make_columns(const tn__fields *r, tn_table *table, const tn_table_opts *opts)
{
    size_t first_row = !opts->no_header && r->rows;
    table->rows = (int64_t)(r->rows - first_row);
    if (!(table->columns = tn__calloc(r->width + 1, sizeof *table->columns)))
        return tn__fail_memory(r->operation, r->width * sizeof *table->columns);
    table->count = (int)r->width;
    tn_status status = take_names(r, table, !opts->no_header);
    if (status == TN_OK)
        status = check_types(r, table, opts->types);
    for (int i = 0; i < table->count && status == TN_OK; i++) {
        const tn_column_type *type = opts->types;
        while (type && type->name && tn_words_find(table->names, type->name) != i)
            type++;
        status = make_column(r, first_row, (size_t)i, table, type && type->name ? type : NULL);
    }
    return status;
}

/* ---- the table ---- */

tn_table *tn__table_parse(const char *operation, const char *name, char *text, size_t size, const tn_table_opts *opts)
{
    static const tn_table_opts defaults;
    opts = opts ? opts : &defaults;
    tn_table *table = tn__object_new(&objects);
    if (!table) {
        tn__fail_memory(operation, sizeof *table);
        return &out_of_memory;
    }
    tn__fields r = {.operation = operation, .name = name, .at = text, .end = text + size, .line = 1,
                .delimiter = TN__OPTION(opts, delimiter, ',')};
    tn_status status = TN_OK;
    if (!r.delimiter || r.delimiter == '"' || r.delimiter == '\n' || r.delimiter == '\r')
        status = tn__fail(TN_ERR_VALUE, operation, "the delimiter has another meaning already: choose another");
    if (status == TN_OK)
        status = tn__fields_take(&r);
    if (status == TN_OK)
        status = make_columns(&r, table, opts);
    if (status != TN_OK)
        table->error = tn__error_retain(tn__error_last());
    tn__free(r.fields);
    tn__free(r.lines);
    return table;
}

tn_table *tn_load_table_with(const char *path, const tn_table_opts *opts)
{
    uint8_t *text;
    size_t size;
    if (tn__file_read("load_table", path, UINT64_MAX, &text, &size) == TN_OK) {
        tn_table *table = tn__table_parse("load_table", path, (char *)text, size, opts);
        tn__free(text);
        return table;
    }
    tn_table *table = tn__object_new(&objects);
    if (!table)
        return &out_of_memory;
    table->error = tn__error_retain(tn__error_last());
    return table;
}

void tn_table_free(tn_table *table)
{
    if (!table || table->is_static || !tn__object_may_go(&objects, &table->object))
        return;
    for (int i = 0; i < table->count; i++) {
        tn__values_free(&table->columns[i].values);
        tn__config_free_taken(table->columns[i].words);
    }
    tn__free(table->columns);
    tn_words_free(table->names);
    if (table->error)
        tn__error_release(table->error);
    tn__object_end(&objects, &table->object);
}

tn_status tn_table_status(const tn_table *table)
{
    if (!table || table->is_static)
        return table ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return table->error ? tn__error_status(table->error) : TN_OK;
}

static tn_status raise(const char *operation, const tn_table *table)
{
    if (!table)
        return tn__fail_null(operation, "a table");
    if (table->is_static)
        return tn__fail_memory(operation, sizeof *table);
    return table->error ? tn__error_raise(table->error) : TN_OK;
}

int64_t tn_table_rows(const tn_table *table) { return table && !table->error ? table->rows : 0; }
int tn_table_columns(const tn_table *table) { return table && !table->error ? table->count : 0; }

const char *tn_table_name(const tn_table *table, int i)
{
    int count = tn_table_columns(table), at = i < 0 ? i + count : i;
    if (at >= 0 && at < count)
        return tn_words_get(table->names, at);
    if (raise("table_name", table) == TN_OK)
        tn__fail(TN_ERR_INDEX, "table_name", "expected one of %d columns, got %d", count, i);
    return "";
}

static const column *column_named(const char *operation, const tn_table *table, const char *name)
{
    if (raise(operation, table) != TN_OK)
        return NULL;
    int64_t i = name ? tn_words_find(table->names, name) : -1;
    if (i < 0)
        tn__fail(TN_ERR_NAME, operation, "there is no column \"%s\"; the first is \"%s\"", name ? name : "NULL",
                 table->count ? tn_words_get(table->names, 0) : "");
    return i < 0 ? NULL : &table->columns[i];
}

const tn_words *tn_table_words(const tn_table *table, const char *name)
{
    const column *c = column_named("table_words", table, name);
    return c ? c->words : NULL;
}

/* Column c as column `to` of `width` of an array. */
static void fill_column(const column *c, int64_t rows, const tn__values *values, int64_t to, int64_t width)
{
    size_t from_item = tn_dtype_size(c->values.dtype), item = tn_dtype_size(values->dtype);
    const char *from = tn__values_data(&c->values);
    for (int64_t row = 0; row < rows; row++, from += from_item) {
        tn__scalar value = {.bits = 0};
        memcpy(value.bytes, from, from_item);
        value = tn__scalar_cast(value, c->values.dtype, values->dtype);
        memcpy((char *)tn__values_data(values) + (size_t)(row * width + to) * item, value.bytes, item);
    }
}

tn_array *tn_table_column(const tn_table *table, const char *name)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    const column *c = column_named("table_column", table, name);
    tn_status status = c ? tn__values_new("table_column", &values, c->values.dtype, TN_SHAPE(table->rows))
                         : tn__error_status(tn__error_last());
    if (status == TN_OK)
        fill_column(c, table->rows, &values, 0, 1);
    return tn__values_leave(call, status, &values);
}

tn_array *tn_table_array(const tn_table *table, int first, int stop, tn_dtype dtype)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    tn_status status = raise("table_array", table);
    int count = tn_table_columns(table), bound[2] = {first, stop};
    for (int i = 0; i < 2; i++) {
        bound[i] = bound[i] < 0 ? bound[i] + count : bound[i];
        bound[i] = bound[i] < 0 ? 0 : bound[i] > count ? count : bound[i];
    }
    int width = bound[1] > bound[0] ? bound[1] - bound[0] : 0;
    if (status == TN_OK && !tn__dtype_valid(dtype))
        status = tn__fail(TN_ERR_DTYPE, "table_array", "expected a dtype of the array, got %s", tn_dtype_name(dtype));
    if (status == TN_OK)
        status = tn__values_new("table_array", &values, dtype, TN_SHAPE(table->rows, width));
    for (int i = 0; i < width && status == TN_OK; i++)
        fill_column(&table->columns[bound[0] + i], table->rows, &values, i, width);
    return tn__values_leave(call, status, &values);
}
