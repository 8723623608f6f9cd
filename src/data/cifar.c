/* SPDX-License-Identifier: MIT */
/*
 * CIFAR-10 and CIFAR-100 (A. Krizhevsky, 2009), read out of the published archives as they were downloaded: a gzipped
 * tar of files of records, each a label or two and 32 x 32 pixels of red, then green, then blue.
 */
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "io/file.h"
#include "io/unpack.h"

#define SIDE         32
#define PIXELS       (3 * SIDE * SIDE)
/* The files of one split; 10,000 records each at most five times, or 50,000 once. */
#define MOST_FILES   5
#define MOST_RECORDS 50000
#define MOST_PACKED  ((uint64_t)1 << 28)
/* tar's unit: a header, and what a file's contents are filled up to (POSIX.1-1988, "ustar"). */
#define BLOCK        512

typedef struct layout {
    const char *set, *archive;
    const char *files[2][MOST_FILES]; /* of TN_TRAIN and TN_TEST, NULL behind the last */
    int labels, label;                /* bytes before the pixels, and which of them is the target */
    int64_t classes;
} layout;

static const layout cifar10 = {
    .set = "cifar10",
    .archive = "cifar-10-binary.tar.gz",
    .files = {{"cifar-10-batches-bin/data_batch_1.bin", "cifar-10-batches-bin/data_batch_2.bin",
               "cifar-10-batches-bin/data_batch_3.bin", "cifar-10-batches-bin/data_batch_4.bin",
               "cifar-10-batches-bin/data_batch_5.bin"},
              {"cifar-10-batches-bin/test_batch.bin"}},
    .labels = 1,
    .classes = 10,
};

/* A record begins with the coarse label, of 20; the fine one is what is learned. */
static const layout cifar100 = {
    .set = "cifar100",
    .archive = "cifar-100-binary.tar.gz",
    .files = {{"cifar-100-binary/train.bin"}, {"cifar-100-binary/test.bin"}},
    .labels = 2,
    .label = 1,
    .classes = 100,
};

/* What is read of one split. */
typedef struct reading {
    const layout *layout;
    const char *const *files;
    const char *path; /* of the archive */
    struct {
        uint8_t *bytes;
        size_t records;
    } part[MOST_FILES];
} reading;

static size_t record_bytes(const layout *layout) { return (size_t)layout->labels + PIXELS; }

static tn_status damaged(const reading *r, const char *how)
{
    return tn__fail(TN_ERR_FORMAT, r->layout->set,
                    "'%s' is not the published archive: %s; remove it and run `tanso data fetch %s`", r->path, how,
                    r->layout->set);
}

/* ---- the archive ---- */

typedef struct entry {
    char name[257];
    uint64_t size;
} entry;

/* A number in octal digits, with blanks or NULs around it. False if it is none. */
static bool read_octal(const uint8_t *field, size_t width, uint64_t *value)
{
    size_t i = 0;
    while (i < width && field[i] == ' ')
        i++;
    size_t first = i;
    for (*value = 0; i < width && field[i] >= '0' && field[i] <= '7'; i++)
        *value = *value * 8 + (uint64_t)(field[i] - '0');
    return i > first && (i == width || field[i] == ' ' || field[i] == 0);
}

/* The header's fields: name at 0, size at 124, checksum at 148, the name's beginning at 345. */
static bool parse_header(const uint8_t header[BLOCK], entry *found)
{
    uint64_t written, sum = 8 * ' '; /* the checksum's own field counts as blanks */
    for (int i = 0; i < BLOCK; i++)
        sum += i < 148 || i >= 156 ? header[i] : 0;
    if (!read_octal(header + 148, 8, &written) || written != sum || !read_octal(header + 124, 12, &found->size))
        return false;
    int prefix = (int)strnlen((const char *)header + 345, 155), name = (int)strnlen((const char *)header, 100);
    snprintf(found->name, sizeof found->name, "%.*s%s%.*s", prefix, (const char *)header + 345, prefix ? "/" : "", name,
             (const char *)header);
    return true;
}

static tn_status skip(const reading *r, tn__unpack *stream, uint64_t bytes)
{
    uint8_t waste[16 * BLOCK];
    tn_status status = TN_OK;
    while (bytes > 0 && status == TN_OK) {
        size_t want = bytes < sizeof waste ? (size_t)bytes : sizeof waste, got;
        status = tn__unpack_read(stream, waste, want, &got);
        if (status == TN_OK && got < want)
            status = damaged(r, "it ends within a file");
        bytes -= want;
    }
    return status;
}

/* One of the files that are wanted, whole. */
static tn_status take(reading *r, int i, tn__unpack *stream, uint64_t bytes)
{
    size_t record = record_bytes(r->layout), got = 0;
    if (r->part[i].bytes)
        return damaged(r, "a file is in it twice");
    if (bytes % record || bytes / record > MOST_RECORDS)
        return damaged(r, "a file in it does not have the length of whole records");
    if (!(r->part[i].bytes = tn__alloc((size_t)bytes + 1)))
        return tn__fail_memory(r->layout->set, (size_t)bytes);
    r->part[i].records = (size_t)bytes / record;
    tn_status status = tn__unpack_read(stream, r->part[i].bytes, (size_t)bytes, &got);
    return status == TN_OK && got < bytes ? damaged(r, "it ends within a file") : status;
}

static tn_status read_files(reading *r, tn__unpack *stream)
{
    for (;;) {
        uint8_t header[BLOCK];
        entry found;
        size_t got;
        tn_status status = tn__unpack_read(stream, header, BLOCK, &got);
        if (status != TN_OK)
            return status;
        if (got == 0 || header[0] == 0) /* blocks of zeros end an archive */
            return TN_OK;
        if (got < BLOCK || !parse_header(header, &found))
            return damaged(r, "it is no tar file");
        int wanted = -1;
        for (int i = 0; i < MOST_FILES && r->files[i]; i++)
            wanted = strcmp(found.name, r->files[i]) == 0 ? i : wanted;
        uint64_t padding = (BLOCK - found.size % BLOCK) % BLOCK;
        status = wanted >= 0 ? take(r, wanted, stream, found.size) : skip(r, stream, found.size);
        if (status == TN_OK)
            status = skip(r, stream, padding);
        if (status != TN_OK)
            return status;
    }
}

static tn_status read_archive(reading *r)
{
    uint8_t *data;
    size_t size;
    tn__unpack stream;
    tn_status status = tn__file_read(r->layout->set, r->path, MOST_PACKED, &data, &size);
    if (status != TN_OK)
        return status;
    status = tn__unpack_open(&stream, r->layout->set, r->path, data, size);
    if (status == TN_OK) {
        status = read_files(r, &stream);
        tn__unpack_close(&stream);
    }
    tn__free(data);
    for (int i = 0; i < MOST_FILES && r->files[i] && status == TN_OK; i++)
        if (!r->part[i].bytes)
            status = damaged(r, "a file is missing in it");
    return status;
}

/* ---- the dataset ---- */

static tn_status convert(const reading *r, float *x, int64_t *t)
{
    float scaled[256];
    for (int i = 0; i < 256; i++)
        scaled[i] = (float)i / 255.0f;
    for (int i = 0; i < MOST_FILES; i++) {
        const uint8_t *byte = r->part[i].bytes;
        for (size_t k = 0; k < r->part[i].records; k++, byte += record_bytes(r->layout)) {
            if ((*t++ = byte[r->layout->label]) >= r->layout->classes)
                return damaged(r, "a label in it is too large");
            for (int j = 0; j < PIXELS; j++)
                *x++ = scaled[byte[r->layout->labels + j]];
        }
    }
    return TN_OK;
}

static tn_status make_arrays(const reading *r, tn__values *x, tn__values *t)
{
    int64_t count = 0;
    for (int i = 0; i < MOST_FILES; i++)
        count += (int64_t)r->part[i].records;
    tn_status status = tn__values_new(r->layout->set, x, TN_FLOAT32, (tn_shape){4, {count, 3, SIDE, SIDE}});
    if (status == TN_OK)
        status = tn__values_new(r->layout->set, t, TN_INT64, (tn_shape){1, {count}});
    return status == TN_OK ? convert(r, tn__values_data(x), tn__values_data(t)) : status;
}

static tn_dataset *load(const layout *layout, tn_split_kind split)
{
    tn__values x = {0}, t = {0};
    const char *names[] = {layout->archive, NULL};
    reading r = {.layout = layout, .files = layout->files[split == TN_TEST]};
    char *folder = tn__set_folder(tn__set_find(layout->set), names);
    char *path = folder ? tn__format("%s/%s", folder, layout->archive) : NULL;
    r.path = path;
    tn_status status = path     ? read_archive(&r)
                       : folder ? tn__fail_memory(layout->set, strlen(folder) + 64)
                                : tn__error_status(tn__error_last());
    if (status == TN_OK)
        status = make_arrays(&r, &x, &t);
    for (int i = 0; i < MOST_FILES; i++)
        tn__free(r.part[i].bytes);
    tn__free(path);
    tn__free(folder);
    tn_dataset *dataset = tn__dataset_make(layout->set, status, &x, &t);
    if (tn_dataset_status(dataset) == TN_OK)
        dataset->classes = layout->classes;
    return dataset;
}

tn_dataset *tn_cifar10(tn_split_kind split) { return load(&cifar10, split); }
tn_dataset *tn_cifar100(tn_split_kind split) { return load(&cifar100, split); }
