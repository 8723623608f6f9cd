/* SPDX-License-Identifier: MIT */
/*
 * The parsers of file formats, over bytes in memory: what readers of files call, and fuzzers. `name` stands for the
 * file in messages. Every length in the bytes is checked before memory is taken for it.
 */
#ifndef TN_IO_FORMATS_H
#define TN_IO_FORMATS_H

#include <tanso/io.h>
#include "io/file.h"
#include "io/values.h"

/* IDX, gzipped or not. */
tn_status tn__idx_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn__values *values);
tn_status tn__idx_read(const char *operation, const char *path, tn__values *values);

/* A variable of a file of MATLAB's version 5: its numbers as they lie, so that the extents are in reverse. */
tn_status tn__mat_parse(const char *operation, const char *name, const char *variable, const uint8_t *data, size_t size,
                        tn__values *values);

/* ---- .npy ---- */
typedef struct tn__npy_header {
    tn_dtype dtype;
    bool swapped;        /* elements are in the other byte order */
    bool fortran_order;
    tn_shape shape;
    size_t header_bytes; /* the elements begin here */
    uint64_t data_bytes;
} tn__npy_header;

/* NumPy's name of a dtype without the byte order, "f4"; NULL if it has none. */
const char *tn__npy_code(tn_dtype dtype);
/* Bytes needed to know the size of a header: what tn__npy_header_size reads. */
#define TN__NPY_PREFIX 12
/* Headers longer than this are refused (NumPy itself: 10,000 without allow_pickle). */
#define TN__NPY_MAX_HEADER (1 << 16)
/* The size of the header that begins with these bytes (`size` of them, TN__NPY_PREFIX or all there are). */
tn_status tn__npy_header_size(const char *operation, const char *name, const uint8_t *data, size_t size,
                              size_t *header);
/* Parses a whole header of that size. */
tn_status tn__npy_header_parse(const char *operation, const char *name, const uint8_t *data, size_t size,
                               tn__npy_header *header);
/* Puts elements as they lie in the file (header->data_bytes of them, in values' memory) into our order. */
tn_status tn__npy_arrange(const char *operation, const tn__npy_header *header, tn__values *values);
tn_status tn__npy_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn__values *values);
/* A version 1.0 header for an array; its length, or 0 with a latched error (bfloat16). */
#define TN__NPY_HEADER_ROOM 512
size_t tn__npy_header_make(const char *operation, tn_dtype dtype, const tn__shape *shape,
                           uint8_t header[TN__NPY_HEADER_ROOM]);

/* ---- npy_text.c ---- */
/* The text, for tn__free, that a .npy of that header holds; NULL if it is none. False, nothing latched, without
 * memory. */
bool tn__npy_text(const uint8_t *data, size_t size, size_t header, char **text);

/* ---- archives ---- */
tn_status tn__safetensors_parse(const char *operation, const char *name, const uint8_t *data, size_t size,
                                tn_archive *archive);
tn_status tn__safetensors_read(const char *operation, const char *path, const tn_archive_opts *opts,
                               tn_archive *archive);
tn_status tn__safetensors_save(const tn_archive *archive, const char *path, const tn_archive_opts *opts);
tn_status tn__npz_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn_archive *archive);
tn_status tn__npz_read(const char *operation, const char *path, const tn_archive_opts *opts, tn_archive *archive);
tn_status tn__npz_save(const tn_archive *archive, const char *path, const tn_archive_opts *opts);

/* ---- CSV ---- */
tn_status tn__csv_parse(const char *operation, const char *name, const char *text, size_t size, const tn_csv_opts *opts,
                        tn__values *values);

#endif
