/* SPDX-License-Identifier: MIT */
/*
 * Files of arrays: .npy and .npz (NumPy's format specification 1.0 to 3.0), .safetensors (the format of Hugging Face,
 * version 0.x), and IDX (the format of the MNIST files), plain or gzipped.
 *
 * Writers write a temporary file beside the target, sync it and rename it: the final name never holds half a file.
 * Readers trust nothing: every length and offset is checked against the file before memory is taken for it.
 */
#ifndef TANSO_IO_H
#define TANSO_IO_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An ordered set of named arrays, which owns its arrays and copies of the names, and a set of text entries
 * (safetensors' metadata; kept in .npz as entries of uint8). Never NULL. */
typedef struct tn_archive tn_archive;
TN_API tn_archive *tn_archive_new(void);
TN_API void tn_archive_free(tn_archive *archive);
TN_API tn_status tn_archive_status(const tn_archive *archive);
/* Adds a new handle to x's value; a name that is there already is replaced. */
TN_API tn_status tn_archive_add(tn_archive *archive, const char *name, const tn_array *x);
/* The entries in order, i from 0; names and arrays are the archive's, valid until the entry is replaced. Out of
 * range: "", an error array, and TN_ERR_INDEX latched. */
TN_API int tn_archive_count(const tn_archive *archive);
TN_API const char *tn_archive_name(const tn_archive *archive, int i);
TN_API tn_array *tn_archive_array(const tn_archive *archive, int i);
/* NULL if there is none of that name. */
TN_API tn_array *tn_archive_find(const tn_archive *archive, const char *name);
/* Text entries; both strings are copied. */
TN_API tn_status tn_archive_set_text(tn_archive *archive, const char *key, const char *value);
/* NULL if there is none of that key; the string is the archive's. */
TN_API const char *tn_archive_text(const tn_archive *archive, const char *key);

/* By the ending of the path: .safetensors or .npz. */
TN_API tn_status tn_archive_save(const tn_archive *archive, const char *path) TN_MUST_CHECK;
/* Reads a file into a new archive on the CPU; an archive with an error status if it can't be read. */
TN_API tn_archive *tn_archive_load(const char *path);

/* One array as .npy. bfloat16 has no NumPy dtype: TN_ERR_DTYPE. What is loaded is a new array of the innermost scope
 * on the CPU, in C order; an error array (TN_ERR_IO, TN_ERR_FORMAT) if the file can't be read. */
TN_API tn_status tn_save_npy(const tn_array *x, const char *path) TN_MUST_CHECK;
TN_API tn_array *tn_load_npy(const char *path);
/* The array of an IDX file (dtypes 0x08 to 0x0E), gzipped or not. As tn_load_npy. */
TN_API tn_array *tn_load_idx(const char *path);

#ifdef __cplusplus
}
#endif
#endif
