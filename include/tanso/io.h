/* SPDX-License-Identifier: MIT */
/*
 * Files of arrays: .npy and .npz (NumPy's format specification 1.0 to 3.0), .safetensors (the format of Hugging Face,
 * version 0.x), and IDX (the format of the MNIST files), plain or gzipped.
 *
 * Writers write a temporary file beside the target, sync it and rename it: the final name never holds half a file.
 * Readers trust nothing: every length and offset is checked against the file before memory is taken for it. What they
 * read is on the CPU, whatever the current device: tn_to moves it. Writers take arrays of any device.
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
/* Frees it with its arrays and texts. NULL is ignored. */
TN_API void tn_archive_free(tn_archive *archive);
/* TN_OK, or why it could not be made or read. */
TN_API tn_status tn_archive_status(const tn_archive *archive);
/* Adds a new handle to x's value; a name that is there already is replaced. */
TN_API tn_status tn_archive_add(tn_archive *archive, const char *name, const tn_array *x);
/* The entries in order, i from 0; names and arrays are the archive's, valid until the entry is replaced. Out of
 * range: "", an error array, and TN_ERR_INDEX latched. */
TN_API int tn_archive_count(const tn_archive *archive);
TN_API const char *tn_archive_name(const tn_archive *archive, int i);
TN_API tn_array *tn_archive_array(const tn_archive *archive, int i);
/* NULL if there is none of that name. Here and above: an entry of a dtype that Tanso has not (8-bit floats, arrays of
 * strings) is an error array, and TN_ERR_DTYPE is latched when it is asked for; the file's others can be read. A single
 * string of an .npz becomes a text entry. */
TN_API tn_array *tn_archive_find(const tn_archive *archive, const char *name);
/* Text entries; both strings are copied. */
TN_API tn_status tn_archive_set_text(tn_archive *archive, const char *key, const char *value);
/* NULL if there is none of that key; the string is the archive's. */
TN_API const char *tn_archive_text(const tn_archive *archive, const char *key);

typedef struct tn_archive_opts {
    const char *_;
    bool compressed; /* saving .npz: deflate the arrays, as NumPy's savez_compressed */
    bool mapped;     /* loading .safetensors: arrays stay in the file, whose pages are read when they are touched; it
                        must not be changed or cut short while they live. Loading .npz reads all the same */
    uint64_t limit;  /* loading .npz: bytes that all arrays together may unpack to, so that a small file cannot fill the
                        memory; default: 1 GiB, or 100 times the file's size where that is more */
} tn_archive_opts;

/* By the ending of the path, in any case: .safetensors or .npz (with zip64 where files are large). */
TN_API tn_status tn_archive_save(const tn_archive *archive, const char *path) TN_MUST_CHECK;
TN_API tn_status tn_archive_save_with(const tn_archive *archive, const char *path,
                                      const tn_archive_opts *opts) TN_MUST_CHECK;
/* Reads a file into a new archive on the CPU; an archive with an error status if it can't be read. A file with another
 * ending, or none, as Chainer's snapshots, is told by how it begins. */
TN_API tn_archive *tn_archive_load(const char *path);
TN_API tn_archive *tn_archive_load_with(const char *path, const tn_archive_opts *opts);

/* One array as .npy. bfloat16 has no NumPy dtype: TN_ERR_DTYPE. What is loaded is a new array of the innermost scope
 * on the CPU, in C order; an error array (TN_ERR_IO, TN_ERR_FORMAT) if the file can't be read. */
TN_API tn_status tn_save_npy(const tn_array *x, const char *path) TN_MUST_CHECK;
TN_API tn_array *tn_load_npy(const char *path);
/* The same, but the elements stay in the file, as NumPy's mmap_mode="r": pages are read when they are touched, so a
 * file larger than the memory will do. It must not be changed or cut short while the array lives. Fortran order gives a
 * strided array. What cannot stay (another byte order, bool, a pipe) is read. */
TN_API tn_array *tn_map_npy(const char *path);

typedef struct tn_csv_opts {
    const char *_;
    char delimiter;      /* default: a comma. ' ' stands for any run of spaces and tabs */
    char comment;        /* the rest of a line from it on is not read; default: '#', 0: there are no comments */
    int skip;            /* lines at the beginning that are not read: a header */
    int64_t rows;        /* read at most so many; default: all */
    int column_count;    /* loading: only these columns (from 0, negative from the end), in this order */
    const int *columns;
    tn_dtype dtype;      /* loading: of the array; default: float32 */
    bool fill;           /* loading: an empty field is `missing`, not an error */
    double missing;      /* default: 0; NAN is usual */
    const char *header;  /* saving: a first line */
    int digits;          /* saving: significant digits of floats; default: as many as the dtype needs to be read back */
} tn_csv_opts;

/* Text of numbers in rows, as NumPy's loadtxt and genfromtxt read it: an array of shape (rows, columns). Numbers may
 * stand in double quotes; blank lines are left out. A line with another number of fields than the first, or a field
 * that is no number (of the dtype), is TN_ERR_FORMAT with line and column. */
TN_API tn_array *tn_load_csv_with(const char *path, const tn_csv_opts *opts);
/* An array of at most two axes; a vector becomes a column. */
TN_API tn_status tn_save_csv_with(const tn_array *x, const char *path, const tn_csv_opts *opts) TN_MUST_CHECK;

/* The array of an IDX file (dtypes 0x08 to 0x0E), gzipped or not. As tn_load_npy. What unpacks to more than 1 GiB, and
 * more than 100 times the file's size, is TN_ERR_FORMAT: so that a small file cannot fill the memory. */
TN_API tn_array *tn_load_idx(const char *path);

/* A variable of a file of MATLAB's version 5 to 7 (not 7.3, which is HDF5): a dense array of real numbers, with its own
 * extents and dtype. TN_ERR_NAME for one that is not there. Otherwise as tn_load_npy. */
TN_API tn_array *tn_load_mat(const char *path, const char *variable);

typedef struct tn_load_image_opts {
    const char *_;
    int channels; /* 1 for grey, 3 for red, green and blue; default: what the picture has */
} tn_load_image_opts;
/* A picture as uint8 of shape (channels, height, width), of a PNG or a JPEG file of any kind but CMYK; on white where
 * it is transparent. TN_ERR_UNSUPPORTED in a build without libpng or libjpeg. Otherwise as tn_load_npy. */
TN_API tn_array *tn_load_image_with(const char *path, const tn_load_image_opts *opts);

#ifndef TN_NO_MACROS
#define tn_load_image(...) TN__CALL_V(tn_load_image_with, tn_load_image_opts, __VA_ARGS__, )
#define tn_archive_add(...) TN_HERE(tn_archive_add(__VA_ARGS__))
#define tn_archive_name(...) TN_HERE(tn_archive_name(__VA_ARGS__))
#define tn_archive_set_text(...) TN_HERE(tn_archive_set_text(__VA_ARGS__))
#define tn_archive_array(...) TN_HERE(tn_archive_array(__VA_ARGS__))
#define tn_load_npy(...) TN_HERE(tn_load_npy(__VA_ARGS__))
#define tn_map_npy(...) TN_HERE(tn_map_npy(__VA_ARGS__))
#define tn_load_mat(...) TN_HERE(tn_load_mat(__VA_ARGS__))
#define tn_load_idx(...) TN_HERE(tn_load_idx(__VA_ARGS__))
#define tn_archive_save(...) TN__CALL_VV(tn_archive_save_with, tn_archive_opts, __VA_ARGS__, )
#define tn_archive_load(...) TN__CALL_V(tn_archive_load_with, tn_archive_opts, __VA_ARGS__, )
#define tn_load_csv(...) TN__CALL_V(tn_load_csv_with, tn_csv_opts, __VA_ARGS__, )
#define tn_save_csv(...) TN__CALL_VV(tn_save_csv_with, tn_csv_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
