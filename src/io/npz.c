/* SPDX-License-Identifier: MIT */
/*
 * .npz: a zip archive of .npy files, NAME.npy each, stored (NumPy's savez) or deflated (savez_compressed), through
 * libzip. Text entries are vectors of uint8 called __metadata__/KEY.npy.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>
#include "core/memory.h"
#include "core/options.h"
#include "io/archive.h"
#include "io/formats.h"
#include "io/unpack.h"

#define SUFFIX ".npy"
#define SUFFIX_LENGTH 4
#define TEXT_FOLDER TN__METADATA "/"
#define MAX_TEXT (64 << 20)
/* Read at a time: still in the cache when libzip computes its checksum. */
#define PIECE (256 << 10)
/* Bytes of the record that ends a zip archive. */
#define END_OF_DIRECTORY 22

/* ---- reading ---- */

typedef struct source {
    const char *operation, *file;
    zip_t *zip;
    uint64_t left; /* packed bytes that the rest of the entries may claim: entries do not share any */
    uint64_t limit, room; /* unpacked bytes that all entries, and the rest of them, may claim */
    tn_archive *archive;
} source;

static tn_status bad_entry(const source *s, const char *entry, const char *reason)
{
    return tn__fail(TN_ERR_FORMAT, s->operation, "'%s': entry '%.200s': %s", s->file, entry, reason);
}

/* Reads exactly `bytes`. */
static tn_status read_exactly(const source *s, const char *entry, zip_file_t *file, void *out, uint64_t bytes)
{
    uint8_t *to = out;
    while (bytes > 0) {
        zip_int64_t got = zip_fread(file, to, bytes < PIECE ? bytes : PIECE);
        if (got < 0)
            return bad_entry(s, entry, zip_error_strerror(zip_file_get_error(file)));
        if (got == 0)
            return bad_entry(s, entry, "it is cut short");
        to += got;
        bytes -= (uint64_t)got;
    }
    return TN_OK;
}

/* At its end libzip compares the entry's checksum. */
static tn_status check_end(const source *s, const char *entry, zip_file_t *file)
{
    uint8_t more;
    zip_int64_t got = zip_fread(file, &more, 1);
    if (got < 0)
        return bad_entry(s, entry, zip_error_strerror(zip_file_get_error(file)));
    return got == 0 ? TN_OK : bad_entry(s, entry, "bytes follow its elements");
}

static tn_status read_header(const source *s, const zip_stat_t *stat, zip_file_t *file, tn__npy_header *header)
{
    uint64_t first = stat->size < TN__NPY_PREFIX ? stat->size : TN__NPY_PREFIX;
    uint8_t prefix[TN__NPY_PREFIX];
    size_t bytes;
    tn_status status = read_exactly(s, stat->name, file, prefix, first);
    if (status == TN_OK)
        status = tn__npy_header_size(s->operation, stat->name, prefix, (size_t)first, &bytes);
    if (status != TN_OK)
        return status;
    if (bytes > stat->size || bytes < first)
        return bad_entry(s, stat->name, "its .npy header is cut short");
    uint8_t *text = tn__alloc(bytes);
    if (!text)
        return tn__fail_memory(s->operation, bytes);
    memcpy(text, prefix, first);
    status = read_exactly(s, stat->name, file, text + first, bytes - first);
    if (status == TN_OK)
        status = tn__npy_header_parse(s->operation, stat->name, text, bytes, header);
    tn__free(text);
    return status;
}

static tn_status read_values(const source *s, const zip_stat_t *stat, zip_file_t *file, tn__values *values)
{
    tn__npy_header header;
    tn_status status = read_header(s, stat, file, &header);
    if (status != TN_OK)
        return status;
    if (stat->size - header.header_bytes != header.data_bytes)
        return tn__fail(TN_ERR_FORMAT, s->operation,
                        "'%s': entry '%.200s': expected %llu bytes of elements by its header, found %llu",
                        s->file, stat->name, (unsigned long long)header.data_bytes,
                        (unsigned long long)(stat->size - header.header_bytes));
    status = tn__values_new(s->operation, values, header.dtype, header.shape);
    if (status == TN_OK)
        status = read_exactly(s, stat->name, file, tn__values_data(values), header.data_bytes);
    if (status == TN_OK)
        status = check_end(s, stat->name, file);
    return status == TN_OK ? tn__npy_arrange(s->operation, &header, values) : status;
}

/* What the directory says of an entry, checked: its sizes against the file's and against what packing can do. */
static tn_status check_stat(source *s, const zip_stat_t *stat, size_t *name_length)
{
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((stat->valid & needed) != needed)
        return bad_entry(s, "?", "its directory record is incomplete");
    size_t length = strlen(stat->name);
    if (length < SUFFIX_LENGTH || strcmp(stat->name + length - SUFFIX_LENGTH, SUFFIX) != 0)
        return bad_entry(s, stat->name, "expected arrays only, entries called NAME.npy");
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return bad_entry(s, stat->name, "expected it stored or deflated, as NumPy writes them");
    if (stat->comp_size > s->left)
        return bad_entry(s, stat->name, "it claims more bytes than the file has");
    s->left -= stat->comp_size;
    if (stat->comp_method == ZIP_CM_STORE ? stat->size != stat->comp_size
                                          : stat->size / TN__DEFLATE_MOST > stat->comp_size)
        return bad_entry(s, stat->name, "it claims more bytes than are packed in it");
    if (stat->size > s->room)
        return tn__fail(TN_ERR_FORMAT, s->operation,
                        "'%s': its arrays unpack to more than %llu bytes; if the file is to be trusted, "
                        "give tn_archive_load a larger .limit",
                        s->file, (unsigned long long)s->limit);
    s->room -= stat->size;
    *name_length = length - SUFFIX_LENGTH;
    return TN_OK;
}

static tn_status take_text(const source *s, const char *key, tn__values *values)
{
    tn_status status;
    if (values->dtype == TN_UINT8 && values->shape->ndim == 1 && values->shape->size <= MAX_TEXT) {
        char *text = tn__format("%.*s", (int)values->shape->size, (const char *)tn__values_data(values));
        status = text ? tn_archive_set_text(s->archive, key, text)
                      : tn__fail_memory(s->operation, (size_t)values->shape->size);
        tn__free(text);
    } else {
        status = bad_entry(s, key, "expected text, a vector of uint8 of 64 MiB at most");
    }
    tn__values_free(values);
    return status;
}

/* An entry that is no array of numbers: if it is one text it becomes one of the archive's. */
static tn_status read_single_text(const source *s, zip_uint64_t i, const zip_stat_t *stat, const char *name, bool *is)
{
    *is = false;
    size_t header = 0;
    uint8_t *bytes = stat->size <= MAX_TEXT ? tn__alloc(stat->size + 1) : NULL;
    zip_file_t *file = bytes ? zip_fopen_index(s->zip, i, 0) : NULL;
    tn_status status = stat->size <= MAX_TEXT && !bytes ? tn__fail_memory(s->operation, stat->size) : TN_OK;
    char *text = NULL;
    if (file)
        status = read_exactly(s, stat->name, file, bytes, stat->size);
    if (status == TN_OK && file)
        status = tn__npy_header_size(s->operation, stat->name, bytes, stat->size, &header);
    if (status == TN_OK && file && !tn__npy_text(bytes, stat->size, header, &text))
        status = tn__fail_memory(s->operation, stat->size);
    if (file)
        zip_fclose(file);
    *is = text != NULL;
    if (status == TN_OK && text)
        status = tn_archive_set_text(s->archive, name, text);
    tn__free(text);
    tn__free(bytes);
    return status;
}

static tn_status read_entry(source *s, zip_uint64_t i)
{
    zip_stat_t stat;
    size_t length = 0;
    if (zip_stat_index(s->zip, i, 0, &stat) != 0)
        return bad_entry(s, "?", zip_error_strerror(zip_get_error(s->zip)));
    tn_status status = check_stat(s, &stat, &length);
    if (status != TN_OK)
        return status;
    char *name = tn__format("%.*s", (int)length, stat.name);
    if (!name)
        return tn__fail_memory(s->operation, length);
    zip_file_t *file = zip_fopen_index(s->zip, i, 0);
    tn__values values = {0};
    bool is_text = strncmp(name, TEXT_FOLDER, sizeof TEXT_FOLDER - 1) == 0, clean = !tn__latched();
    status = file ? read_values(s, &stat, file, &values)
                  : bad_entry(s, stat.name, zip_error_strerror(zip_get_error(s->zip)));
    if (file)
        zip_fclose(file);
    if (status != TN_OK)
        tn__values_free(&values);
    if (status == TN_ERR_DTYPE && !is_text) { /* strings, records, objects: whoever asks for them is told */
        tn__error *why = tn__error_retain(tn__error_last());
        bool single;
        status = read_single_text(s, i, &stat, name, &single);
        if (status == TN_OK && !single)
            status = tn__archive_take_error(s->archive, s->operation, s->file, name, why);
        else
            tn__error_release(why);
        if (status == TN_OK && clean)
            tn_clear_error();
    } else if (status == TN_OK && is_text) {
        status = take_text(s, name + sizeof TEXT_FOLDER - 1, &values);
    } else if (status == TN_OK) {
        status = tn__archive_take(s->archive, s->operation, s->file, name, &values);
    }
    tn__free(name);
    return status;
}

static tn_status fail_open(const char *operation, const char *name, zip_error_t *error)
{
    tn_status status;
    if (zip_error_code_zip(error) == ZIP_ER_MEMORY)
        status = tn__fail_memory(operation, 0);
    else if (zip_error_code_zip(error) == ZIP_ER_NOENT)
        status = tn__fail_errno(operation, "read", name, ENOENT);
    else if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error))
        status = tn__fail_errno(operation, "read", name, zip_error_code_system(error));
    else
        status = tn__fail(TN_ERR_FORMAT, operation, "'%s' is no valid .npz file: %s", name, zip_error_strerror(error));
    zip_error_fini(error);
    return status;
}

/* Takes over the zip source. */
static tn_status read_archive(const char *operation, const char *name, zip_source_t *bytes, const tn_archive_opts *opts,
                              tn_archive *archive)
{
    zip_error_t error;
    zip_stat_t stat;
    zip_error_init(&error);
    if (zip_source_stat(bytes, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE)) {
        zip_error_set(&error, ZIP_ER_SEEK, 0);
        zip_source_free(bytes);
        return fail_open(operation, name, &error);
    }
    if (stat.size < END_OF_DIRECTORY) { /* libzip takes a file of no bytes for an archive of no entries */
        zip_error_set(&error, ZIP_ER_NOZIP, 0);
        zip_source_free(bytes);
        return fail_open(operation, name, &error);
    }
    zip_t *zip = zip_open_from_source(bytes, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (!zip) {
        zip_source_free(bytes);
        return fail_open(operation, name, &error);
    }
    uint64_t limit = TN__OPTION(opts, limit, tn__unpack_limit(stat.size));
    source s = {operation, name, zip, stat.size, limit, limit, archive};
    tn_status status = TN_OK;
    zip_int64_t count = zip_get_num_entries(zip, 0);
    for (zip_int64_t i = 0; i < count && status == TN_OK; i++)
        status = read_entry(&s, (zip_uint64_t)i);
    zip_discard(zip);
    zip_error_fini(&error);
    return status;
}

tn_status tn__npz_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn_archive *archive)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *bytes = zip_source_buffer_create(data, size, 0, &error);
    return bytes ? read_archive(operation, name, bytes, 0, archive) : fail_open(operation, name, &error);
}

tn_status tn__npz_read(const char *operation, const char *path, const tn_archive_opts *opts, tn_archive *archive)
{
    zip_error_t error;
    zip_error_init(&error);
    if (access(path, R_OK) != 0)
        return tn__fail_errno(operation, "read", path, errno);
    zip_source_t *bytes = zip_source_file_create(path, 0, 0, &error);
    return bytes ? read_archive(operation, path, bytes, opts, archive) : fail_open(operation, path, &error);
}

/* ---- writing ---- */

/* One entry's bytes, which must stay until the archive is closed. */
typedef struct entry {
    uint8_t header[TN__NPY_HEADER_ROOM];
    zip_buffer_fragment_t part[2];
    bool compressed;
} entry;

static tn_status add_entry(zip_t *zip, entry *e, const char *folder, const char *name, tn_dtype dtype,
                           const tn__shape *shape, const void *data, size_t bytes)
{
    size_t length = tn__npy_header_make("archive_save", dtype, shape, e->header);
    if (length == 0)
        return tn__error_status(tn__error_last());
    e->part[0] = (zip_buffer_fragment_t){e->header, length};
    e->part[1] = (zip_buffer_fragment_t){(zip_uint8_t *)data, bytes};
    char *path = tn__format("%s%s" SUFFIX, folder, name);
    if (!path)
        return tn__fail_memory("archive_save", strlen(name) + 32);
    zip_source_t *source = zip_source_buffer_fragment(zip, e->part, bytes ? 2 : 1, 0);
    zip_int64_t index = source ? zip_file_add(zip, path, source, ZIP_FL_ENC_UTF_8) : -1;
    tn__free(path);
    if (index < 0) {
        zip_source_free(source);
        return tn__fail(TN_ERR_VALUE, "archive_save", "cannot add the array '%.200s' to an .npz file: %s", name,
                        zip_strerror(zip));
    }
    /* A fixed time: the same arrays make the same file. */
    if (zip_set_file_compression(zip, (zip_uint64_t)index, e->compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) != 0)
        return tn__fail(TN_ERR_INTERNAL, "archive_save", "libzip refused an entry: %s", zip_strerror(zip));
    return TN_OK;
}

static tn_status add_text(zip_t *zip, entry *e, const tn__archive_text *text)
{
    int64_t length = (int64_t)strlen(text->value);
    if (length > MAX_TEXT)
        return tn__fail(TN_ERR_VALUE, "archive_save", "the text '%.200s' has %lld bytes: .npz files hold %d at most",
                        text->key, (long long)length, MAX_TEXT);
    const tn__shape *shape = tn__shape_intern(1, &length);
    if (!shape)
        return tn__fail_memory("archive_save", sizeof *shape);
    return add_entry(zip, e, TEXT_FOLDER, text->key, TN_UINT8, shape, text->value, (size_t)length);
}

static tn_status check_names(const tn_archive *archive)
{
    for (size_t i = 0; i < archive->count; i++)
        if (strncmp(archive->entries[i].name, TEXT_FOLDER, sizeof TEXT_FOLDER - 1) == 0)
            return tn__fail(TN_ERR_NAME, "archive_save",
                            "the array's name '%.200s' begins with " TEXT_FOLDER ", which .npz "
                            "files keep text under: rename it",
                            archive->entries[i].name);
    return TN_OK;
}

static tn_status close_error(zip_t *zip, const char *path)
{
    zip_error_t *error = zip_get_error(zip);
    if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error))
        return tn__fail_errno("archive_save", "write", path, zip_error_code_system(error));
    if (zip_error_code_zip(error) == ZIP_ER_MEMORY)
        return tn__fail_memory("archive_save", 0);
    return tn__fail(TN_ERR_IO, "archive_save", "cannot write '%s': %s", path, zip_error_strerror(error));
}

static tn_status write_zip(const tn_archive *archive, const tn__host_view *views, entry *entries, const char *temporary,
                           const char *path)
{
    zip_error_t error;
    int code = 0;
    zip_t *zip = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!zip) {
        zip_error_init_with_code(&error, code);
        return fail_open("archive_save", path, &error);
    }
    tn_status status = TN_OK;
    for (size_t i = 0; i < archive->count && status == TN_OK; i++)
        status = add_entry(zip, &entries[i], "", archive->entries[i].name, views[i].dtype, views[i].shape,
                           views[i].data, views[i].bytes);
    for (size_t i = 0; i < archive->text_count && status == TN_OK; i++)
        status = add_text(zip, &entries[archive->count + i], &archive->texts[i]);
    if (status == TN_OK && zip_close(zip) == 0)
        return TN_OK;
    if (status == TN_OK)
        status = close_error(zip, path);
    zip_discard(zip);
    return status;
}

/* libzip removes an archive without entries instead of writing it; it is this one record. */
static tn_status fill_empty(tn__writer *writer, void *unused)
{
    static const uint8_t end_of_directory[END_OF_DIRECTORY] = "PK\x05\x06";
    (void)unused;
    return tn__write(writer, end_of_directory, sizeof end_of_directory);
}

tn_status tn__npz_save(const tn_archive *archive, const char *path, const tn_archive_opts *opts)
{
    if (archive->count + archive->text_count == 0)
        return tn__file_write_atomic("archive_save", path, fill_empty, NULL);
    tn__host_view *views = NULL;
    tn_status status = check_names(archive);
    if (status == TN_OK)
        status = tn__archive_views(archive, "archive_save", &views);
    if (status != TN_OK)
        return status;
    char *temporary = NULL;
    entry *entries = tn__calloc(archive->count + archive->text_count + 1, sizeof *entries);
    status = entries ? tn__file_temporary("archive_save", path, &temporary)
                     : tn__fail_memory("archive_save", (archive->count + archive->text_count + 1) * sizeof *entries);
    for (size_t i = 0; i < archive->count && status == TN_OK; i++)
        entries[i].compressed = opts->compressed;
    if (status == TN_OK)
        status = write_zip(archive, views, entries, temporary, path);
    if (status == TN_OK)
        status = tn__file_commit("archive_save", temporary, path);
    else
        tn__file_discard(temporary);
    tn__free(entries);
    tn__archive_views_end(archive, views);
    return status;
}
