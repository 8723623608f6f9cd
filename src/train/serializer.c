/* SPDX-License-Identifier: MIT */
/* Numbers, texts and arrays at paths of an archive, to and fro. */
#include <string.h>
#include <tanso/array.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "train/chainer.h"

static void add_place(const tn_serializer *s, tn__text *path)
{
    if (s->parent)
        add_place(s->parent, path);
    if (!s->name || !*s->name)
        return;
    if (path->length)
        tn__text_add(path, "/");
    tn__text_add(path, s->name);
}

char *tn__serializer_path(const tn_serializer *s, const char *name)
{
    tn__text path = {0};
    tn_serializer at = tn_serializer_in(s, name);
    add_place(&at, &path);
    char *text = tn__text_take(&path);
    if (!text)
        tn__fail_memory("serialize", 64);
    return text;
}

tn_status tn__serializer_check(const tn_serializer *s, const char *name, const void *value)
{
    if (!s || !s->archive || !name || !value)
        return tn__fail(TN_ERR_VALUE, "serialize",
                        "expected a serializer with an archive, a name and a value, got NULL");
    return tn_error_code();
}

tn_serializer tn_serializer_in(const tn_serializer *s, const char *name)
{
    if (!s)
        return (tn_serializer){.name = name};
    return (tn_serializer){.archive = s->archive, .loading = s->loading, .file = s->file, .parent = s, .name = name,
                           .weights = s->weights, .met = s->met};
}

bool tn_serializer_has(const tn_serializer *s, const char *name)
{
    if (!s || !s->archive || !s->loading || !name)
        return false;
    char *path = tn__serializer_path(s, name);
    bool found = path && (tn_archive_find(s->archive, path) || tn_archive_text(s->archive, path));
    tn__free(path);
    return found;
}

tn_status tn__serializer_put(const tn_serializer *s, const char *name, const tn_array *x)
{
    char *path = tn__serializer_path(s, name);
    tn_status status = path ? tn_archive_add(s->archive, path, x) : TN_ERR_MEMORY;
    tn__free(path);
    return status;
}

/* Whether a value stays as it is, as Chainer's files need not have everything. */
static bool left_out(const tn_serializer *s, const char *name)
{
    return tn__of_chainer(s) && !tn__chainer_has(s, name);
}

static tn_status missing(const tn_serializer *s, const char *path, const char *what)
{
    return tn__fail(TN_ERR_FORMAT, "trainer_load",
                    "%s%s%s has %s \"%s\": it is of a run that was put together in another way; build the trainer as "
                    "the saved one was, with the same names",
                    s->file ? "'" : "", s->file ? s->file : "the archive", s->file ? "'" : "", what, path);
}

tn_array *tn__serializer_get(const tn_serializer *s, const char *name)
{
    char *path = tn__serializer_path(s, name);
    tn_array *found = path ? tn_archive_find(s->archive, path) : NULL;
    if (path && !found)
        missing(s, path, "no");
    tn__free(path);
    return found;
}

/* Host values of a dtype, saved as an array of `count` (0-d for -1). */
static tn_status put_host(const tn_serializer *s, const char *name, const void *values, tn_dtype dtype, int64_t count)
{
    tn_status status = TN_OK;
    tn_shape shape = {0};
    if (count >= 0)
        shape = (tn_shape){.ndim = 1, .dim = {count}};
    TN_SCOPE {
        tn_create_opts cpu = {.device = tn_cpu()};
        tn_array *x = tn_from_host_with(values, shape, dtype, &cpu);
        status = tn__serializer_put(s, name, x);
    }
    return status;
}

/* The one element of an entry as a double or an integer. */
static tn_status get_scalar(const tn_serializer *s, const char *name, double *number, int64_t *integer)
{
    if (left_out(s, name))
        return tn_error_code();
    tn_array *found = tn__serializer_get(s, name);
    if (!found)
        return tn_error_code();
    bool whole = !tn_dtype_is_float(tn_dtype_of(found)) && !tn_dtype_is_complex(tn_dtype_of(found));
    if (tn_size(found) != 1 || (integer && !whole)) {
        char *path = tn__serializer_path(s, name);
        tn_status status = missing(s, path ? path : name, integer ? "no integer as" : "no single number as");
        tn__free(path);
        return status;
    }
    if (number)
        *number = tn_item(found);
    else
        *integer = tn_item_int(found);
    return tn_error_code();
}

tn_status tn_serialize_int(const tn_serializer *s, const char *name, int64_t *value)
{
    tn_status status = tn__serializer_check(s, name, value);
    if (status != TN_OK)
        return status;
    return s->loading ? get_scalar(s, name, NULL, value) : put_host(s, name, value, TN_INT64, -1);
}

tn_status tn__serialize_count(const tn_serializer *s, const char *name, int64_t *value)
{
    tn_status status = tn_serialize_int(s, name, value);
    if (status != TN_OK || !s->loading || (*value >= 0 && *value <= INT64_MAX / 2))
        return status;
    char *path = tn__serializer_path(s, name);
    status = missing(s, path ? path : name, "no count, from 0 on, as");
    tn__free(path);
    return status;
}

tn_status tn_serialize_double(const tn_serializer *s, const char *name, double *value)
{
    tn_status status = tn__serializer_check(s, name, value);
    if (status != TN_OK)
        return status;
    return s->loading ? get_scalar(s, name, value, NULL) : put_host(s, name, value, TN_FLOAT64, -1);
}

tn_status tn_serialize_bool(const tn_serializer *s, const char *name, bool *value)
{
    tn_status status = tn__serializer_check(s, name, value);
    if (status != TN_OK)
        return status;
    if (!s->loading)
        return put_host(s, name, value, TN_BOOL, -1);
    int64_t whole = *value;
    status = get_scalar(s, name, NULL, &whole);
    if (status == TN_OK)
        *value = whole != 0;
    return status;
}

/* NULL is a text of its own beside all that begin with '='. */
#define TEXT_MARK '='

tn_status tn_serialize_text(const tn_serializer *s, const char *name, char **text)
{
    tn_status status = tn__serializer_check(s, name, text);
    char *path = status == TN_OK ? tn__serializer_path(s, name) : NULL;
    if (!path)
        return tn_error_code();
    if (s->loading && tn__of_chainer(s) && !tn_serializer_has(s, name)) {
        status = tn_error_code();
    } else if (s->loading) {
        const char *found = tn_archive_text(s->archive, path);
        char *copy = found && *found == TEXT_MARK ? tn__strdup(found + 1) : NULL;
        if (!found)
            status = missing(s, path, "no text");
        else if (*found && *found != TEXT_MARK)
            status = tn__fail(TN_ERR_FORMAT, "serialize", "'%s': expected a text that begins with '%c', got '%.40s'",
                              path, TEXT_MARK, found);
        else if (*found && !copy)
            status = tn__fail_memory("serialize", strlen(found));
        if (status == TN_OK) {
            tn__free(*text);
            *text = copy;
        }
    } else {
        tn__text marked = {0};
        if (*text)
            tn__text_addn(&marked, &(char){TEXT_MARK}, 1);
        tn__text_add(&marked, *text ? *text : "");
        status = marked.failed ? tn__fail_memory("serialize", 64) : tn_archive_set_text(s->archive, path, marked.data);
        tn__free(marked.data);
    }
    tn__free(path);
    return status;
}

void tn_serialized_free(double *values) { tn__free(values); }

tn_status tn_serialize_doubles(const tn_serializer *s, const char *name, int64_t *count, double **values)
{
    tn_status status = tn__serializer_check(s, name, values);
    if (status == TN_OK && !count)
        status = tn__fail_null("serialize", "a count");
    if (status != TN_OK)
        return status;
    if (!s->loading)
        return put_host(s, name, *values ? *values : (const double[]){0}, TN_FLOAT64, *values ? *count : 0);
    if (left_out(s, name))
        return tn_error_code();
    tn_array *found = tn__serializer_get(s, name);
    if (!found)
        return tn_error_code();
    size_t bytes = (size_t)tn_size(found) * sizeof **values;
    double *read = tn__alloc(bytes);
    if (!read)
        return tn__fail_memory("serialize", bytes);
    TN_SCOPE
        status = tn_to_host(tn_cast(found, TN_FLOAT64), read, bytes);
    if (status != TN_OK) {
        tn__free(read);
        return status;
    }
    tn__free(*values);
    *values = read;
    *count = tn_size(found);
    return TN_OK;
}

tn_status tn_serialize_array(const tn_serializer *s, const char *name, tn_array *x)
{
    tn_status status = tn__serializer_check(s, name, x);
    if (status != TN_OK)
        return status;
    if (!s->loading)
        return tn__serializer_put(s, name, x);
    if (left_out(s, name))
        return tn_error_code();
    tn_array *found = tn__serializer_get(s, name);
    if (!found)
        return tn_error_code();
    if (tn_dtype_of(found) != tn_dtype_of(x))
        return tn__fail(TN_ERR_DTYPE, "trainer_load", "\"%s\" is %s in the file, and %s here", name,
                        tn_dtype_name(tn_dtype_of(found)), tn_dtype_name(tn_dtype_of(x)));
    TN_SCOPE {
        status = tn_assign(x, tn_to(found, tn_device_of(x)));
        if (status == TN_OK)
            status = tn_eval(x);
    }
    return status;
}

tn_device tn__device_named(const char *name)
{
    bool clean = !tn__latched();
    tn_status status = TN_OK;
    tn_device device = name ? tn_device_parse(name, &status) : tn_cpu();
    if (clean)
        tn_clear_error();
    return status == TN_OK && tn_device_available(device, NULL) ? device : tn_cpu();
}
