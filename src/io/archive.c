/* SPDX-License-Identifier: MIT */
/* Archives in memory, and choosing the file format by the path's ending. */
#include "io/archive.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tanso/device.h>
#include "core/hash.h"
#include "core/memory.h"
#include "io/file.h"
#include "io/formats.h"
#include "tn_build_config.h"

static tn_archive out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_archive, "archive");

tn_archive *tn_archive_new(void)
{
    tn_archive *archive = tn__object_new(&objects);
    if (archive)
        return archive;
    tn__fail_memory("archive_new", sizeof *archive);
    return &out_of_memory;
}

static void drop_contents(tn_archive *archive)
{
    for (size_t i = 0; i < archive->count; i++) {
        tn__free(archive->entries[i].name);
        tn__array_free_kept(archive->entries[i].array);
    }
    for (size_t i = 0; i < archive->text_count; i++) {
        tn__free(archive->texts[i].key);
        tn__free(archive->texts[i].value);
    }
    for (size_t i = 0; i < archive->first_count; i++)
        tn__free(archive->first[i]);
    tn__free(archive->first);
    tn__free(archive->entries);
    tn__free(archive->table);
    tn__free(archive->texts);
}

void tn_archive_free(tn_archive *archive)
{
    if (!archive || archive->is_static || !tn__object_may_go(&objects, &archive->object))
        return;
    drop_contents(archive);
    if (archive->error)
        tn__error_release(archive->error);
    tn__object_end(&objects, &archive->object);
}

tn_status tn_archive_status(const tn_archive *archive)
{
    if (!archive || archive->is_static)
        return archive ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return archive->error ? tn__error_status(archive->error) : TN_OK;
}

static tn_status raise(const tn_archive *archive)
{
    if (!archive)
        return tn__fail_null("archive", "an archive");
    if (archive->is_static)
        return tn__fail_memory("archive", sizeof *archive);
    return archive->error ? tn__error_raise(archive->error) : TN_OK;
}

/* Latches an error of NULL, and of one that has been freed. One that could not be read is an empty one. */
static bool is_alive(const tn_archive *archive)
{
    return archive && !archive->object.dead ? true : raise(archive) == TN_OK;
}

/* ---- names ---- */

/* The place of a name in the table, or the empty place where it belongs. */
static size_t place_of(const tn_archive *archive, const char *name)
{
    size_t place = tn__hash(name, strlen(name), 0) & (archive->places - 1);
    while (archive->table[place] && strcmp(archive->entries[archive->table[place] - 1].name, name) != 0)
        place = (place + 1) & (archive->places - 1);
    return place;
}

static const tn__archive_entry *find(const tn_archive *archive, const char *name)
{
    uint32_t found = archive->places ? archive->table[place_of(archive, name)] : 0;
    return found ? &archive->entries[found - 1] : NULL;
}

static bool grow_table(tn_archive *archive)
{
    if (2 * (archive->count + 1) <= archive->places)
        return true;
    size_t places = archive->places ? 2 * archive->places : 16;
    uint32_t *table = tn__calloc(places, sizeof *table);
    if (!table)
        return false;
    tn__free(archive->table);
    archive->table = table;
    archive->places = places;
    for (size_t i = 0; i < archive->count; i++)
        table[place_of(archive, archive->entries[i].name)] = (uint32_t)i + 1;
    return true;
}

/* Appends a name that is not there yet, and takes over the array if that succeeds. */
static tn_status append(tn_archive *archive, const char *operation, const char *name, tn_array *array)
{
    if (!grow_table(archive) ||
        !tn__grow((void **)&archive->entries, &archive->capacity, archive->count + 1, sizeof *archive->entries))
        return tn__fail_memory(operation, (archive->count + 1) * sizeof *archive->entries);
    char *copy = tn__strdup(name);
    if (!copy)
        return tn__fail_memory(operation, strlen(name) + 1);
    archive->table[place_of(archive, name)] = (uint32_t)archive->count + 1;
    archive->entries[archive->count++] = (tn__archive_entry){copy, array};
    return TN_OK;
}

static tn_status twice(const char *operation, const char *file, const char *name)
{
    return tn__fail(TN_ERR_FORMAT, operation, "'%s' holds two arrays called '%s'", file, name);
}

tn_status tn__archive_take_error(tn_archive *archive, const char *operation, const char *file, const char *name,
                                 tn__error *error)
{
    if (find(archive, name)) {
        tn__error_release(error);
        return twice(operation, file, name);
    }
    tn__call call = tn__enter();
    tn_array *array = tn__array_own_new(tn__node_error(error));
    tn_status status =
        tn__handle_of(array)->is_static ? tn__error_status(tn__error_last()) : append(archive, operation, name, array);
    if (status != TN_OK)
        tn__array_free_kept(array);
    tn__leave(call);
    return status;
}

tn_status tn__archive_take(tn_archive *archive, const char *operation, const char *file, const char *name,
                           tn__values *values)
{
    if (find(archive, name)) {
        tn__values_free(values);
        return twice(operation, file, name);
    }
    tn_array *array = tn__values_own(values);
    tn_status status = array ? append(archive, operation, name, array) : tn__error_status(tn__error_last());
    if (status != TN_OK)
        tn__array_free_kept(array);
    return status;
}

tn_status tn_archive_add(tn_archive *archive, const char *name, const tn_array *x)
{
    tn_status status = raise(archive);
    if (status == TN_OK && !name)
        status = tn__fail_null("archive_add", "a name for the array");
    if (status != TN_OK)
        return status;
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "archive_add");
    const tn__archive_entry *old = find(archive, name);
    if (tn__node_is_error(node)) {
        status = tn__error_raise(node->error);
    } else if (old) {
        tn__array_set(old->array, node);
    } else {
        tn_array *handle = tn__array_own_new(node);
        status = tn__handle_of(handle)->is_static ? tn__error_status(tn__error_last())
                                                  : append(archive, "archive_add", name, handle);
        if (status != TN_OK)
            tn__array_free_kept(handle);
    }
    tn__leave(call);
    return status;
}

int tn_archive_count(const tn_archive *archive) { return archive && is_alive(archive) ? (int)archive->count : 0; }

static bool in_range(const tn_archive *archive, int i)
{
    if (!is_alive(archive))
        return false;
    if (i >= 0 && (size_t)i < archive->count)
        return true;
    tn__fail(TN_ERR_INDEX, "archive", "expected the number of an array from 0 to %zu, got %d", archive->count, i);
    return false;
}

const char *tn_archive_name(const tn_archive *archive, int i)
{
    return in_range(archive, i) ? archive->entries[i].name : "";
}

/* An entry that could not be read says so when it is asked for. */
static tn_array *asked(const tn__archive_entry *entry)
{
    if (tn__node_is_error(tn__array_node(entry->array)))
        tn__error_raise(tn__array_node(entry->array)->error);
    return entry->array;
}

tn_array *tn_archive_array(const tn_archive *archive, int i)
{
    return in_range(archive, i) ? asked(&archive->entries[i]) : tn__failed_array();
}

tn_device tn_archive_device(const tn_archive *archive)
{
    if (!archive)
        tn__fail_null("device_of", "an archive");
    else if (!is_alive(archive))
        return (tn_device){0};
    const tn__archive_entry *first = NULL;
    tn_device device = {0};
    for (size_t i = 0; archive && i < archive->count; i++) {
        const tn__archive_entry *entry = &archive->entries[i];
        if (tn__node_is_error(tn__array_node(entry->array)))
            continue;
        tn_device other = tn_device_of(entry->array);
        device = first ? device : other;
        first = first ? first : entry;
        if (tn_device_equal(device, other))
            continue;
        tn__fail(TN_ERR_DEVICE, "device_of",
                 "the archive's arrays are on several devices: '%s' is on %s, '%s' on %s; ask one of them "
                 "(tn_archive_find)",
                 first->name, tn_device_name(device), entry->name, tn_device_name(other));
        return (tn_device){0};
    }
    return device;
}

tn_array *tn_archive_find(const tn_archive *archive, const char *name)
{
    const tn__archive_entry *entry = archive && name && is_alive(archive) ? find(archive, name) : NULL;
    return entry ? asked(entry) : NULL;
}

/* ---- text ---- */

static tn__archive_text *find_text(const tn_archive *archive, const char *key)
{
    for (size_t i = 0; i < archive->text_count; i++)
        if (strcmp(archive->texts[i].key, key) == 0)
            return &archive->texts[i];
    return NULL;
}

tn_status tn_archive_set_text(tn_archive *archive, const char *key, const char *value)
{
    tn_status status = raise(archive);
    if (status == TN_OK && (!key || !value))
        status = tn__fail_null("archive_set_text", "a key and a value");
    if (status != TN_OK)
        return status;
    tn__archive_text *old = find_text(archive, key);
    char *copy = tn__strdup(value), *key_copy = old ? NULL : tn__strdup(key);
    if (!copy || (!old && (!key_copy || !tn__grow((void **)&archive->texts, &archive->text_capacity,
                                                  archive->text_count + 1, sizeof *archive->texts)))) {
        tn__free(copy);
        tn__free(key_copy);
        return tn__fail_memory("archive_set_text", strlen(value) + 1);
    }
    if (old) {
        tn__free(old->value);
        old->value = copy;
    } else {
        archive->texts[archive->text_count++] = (tn__archive_text){key_copy, copy};
    }
    return TN_OK;
}

const char *tn_archive_text(const tn_archive *archive, const char *key)
{
    const tn__archive_text *text = archive && key && is_alive(archive) ? find_text(archive, key) : NULL;
    return text ? text->value : NULL;
}

/* ---- files ---- */

tn_status tn__archive_after(tn_archive *archive, const char *file)
{
    char *copy = tn__strdup(file);
    if (!copy || !tn__grow((void **)&archive->first, &archive->first_capacity, archive->first_count + 1,
                           sizeof *archive->first)) {
        tn__free(copy);
        return tn__fail_memory("archive_save", strlen(file) + sizeof copy);
    }
    archive->first[archive->first_count++] = copy;
    return TN_OK;
}

tn_status tn__archive_views(const tn_archive *archive, const char *operation, tn__host_view **views)
{
    *views = tn__calloc(archive->count + 1, sizeof **views);
    if (!*views)
        return tn__fail_memory(operation, (archive->count + 1) * sizeof **views);
    tn_status status = TN_OK;
    for (size_t i = 0; i < archive->count && status == TN_OK; i++)
        status = tn__host_view_of(operation, archive->entries[i].array, &(*views)[i]);
    if (status != TN_OK) {
        tn__archive_views_end(archive, *views);
        *views = NULL;
    }
    return status;
}

void tn__archive_views_end(const tn_archive *archive, tn__host_view *views)
{
    if (!views)
        return;
    for (size_t i = 0; i < archive->count; i++)
        tn__host_view_end(&views[i]);
    tn__free(views);
}

#ifdef TN_HAVE_JANSSON
#define SAFETENSORS tn__safetensors_save, tn__safetensors_read
#else
#define SAFETENSORS NULL, NULL
#endif
#ifdef TN_HAVE_LIBZIP
#define NPZ tn__npz_save, tn__npz_read
#else
#define NPZ NULL, NULL
#endif

/* Bytes of a file that tell its format. */
#define HEAD 10

static const struct {
    const char *ending, *package; /* what a build needs to know the format */
    size_t where;                 /* of bytes that a file begins with */
    const char *magic;
    tn_status (*save)(const tn_archive *archive, const char *path, const tn_archive_opts *opts);
    tn_status (*read)(const char *operation, const char *path, const tn_archive_opts *opts, tn_archive *archive);
} formats[] = {
    {".safetensors", "libjansson-dev", 8, "{\"", SAFETENSORS},
    {".npz", "libzip-dev", 0, "PK\3\4", NPZ},
};

/* Whether the path has the format's ending; or, without any known one, whether a file begins as its files do. */
static bool is_of_format(int i, const char *path, const char *head)
{
    size_t length = strlen(path), ending = strlen(formats[i].ending);
    if (head)
        return memcmp(head + formats[i].where, formats[i].magic, strlen(formats[i].magic)) == 0;
    return length > ending && strcasecmp(path + length - ending, formats[i].ending) == 0;
}

/* The index of a path's format; -1 with a latched error in `*status`. */
static int format_of(const char *operation, const char *path, const char *head, tn_status *status)
{
    for (int i = 0; path && i < (int)(sizeof formats / sizeof *formats); i++) {
        if (!is_of_format(i, path, head))
            continue;
        if (formats[i].save)
            return i;
        *status = tn__fail(TN_ERR_UNSUPPORTED, operation,
                           "'%s': this build of Tanso knows no %s files: install %s and build again", path,
                           formats[i].ending, formats[i].package);
        return -1;
    }
    *status = tn__fail(TN_ERR_VALUE, operation, "expected a path that ends in .safetensors or .npz, got '%s'",
                       path ? path : "NULL");
    return -1;
}

tn_status tn__archive_known(const char *operation, const char *path)
{
    tn_status status = TN_OK;
    format_of(operation, path, NULL, &status);
    return status;
}

static const tn_archive_opts defaults;

tn_status tn_archive_save(const tn_archive *archive, const char *path)
{
    return tn_archive_save_with(archive, path, NULL);
}

tn_status tn_archive_save_with(const tn_archive *archive, const char *path, const tn_archive_opts *opts)
{
    tn_status status = raise(archive);
    if (status != TN_OK)
        return status;
    int format = format_of("archive_save", path, NULL, &status);
    for (size_t i = 0; format >= 0 && i < archive->first_count; i++)
        tn__file_sync(archive->first[i]);
    return format < 0 ? status : formats[format].save(archive, path, opts ? opts : &defaults);
}

tn_archive *tn_archive_load(const char *path) { return tn_archive_load_with(path, NULL); }

/* The beginning of a file whose name has no ending that is known, as Chainer's snapshots have none; false if it has, or
 * can't be read. */
static bool read_head(const char *path, char head[HEAD + 1])
{
    for (int i = 0; path && i < (int)(sizeof formats / sizeof *formats); i++)
        if (is_of_format(i, path, NULL))
            return false;
    FILE *file = path ? fopen(path, "rbe") : NULL;
    bool read = file && fread(head, 1, HEAD, file) == HEAD;
    if (file)
        fclose(file);
    return read;
}

tn_archive *tn_archive_load_with(const char *path, const tn_archive_opts *opts)
{
    tn_archive *archive = tn_archive_new();
    if (archive->is_static)
        return archive;
    tn_status status;
    char head[HEAD + 1] = {0};
    int format = format_of("archive_load", path, read_head(path, head) ? head : NULL, &status);
    if (format < 0 || formats[format].read("archive_load", path, opts ? opts : &defaults, archive) != TN_OK) {
        tn__error *error = tn__error_retain(tn__error_last());
        drop_contents(archive);
        *archive = (tn_archive){.error = error};
    }
    return archive;
}
