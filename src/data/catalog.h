/* SPDX-License-Identifier: MIT */
/* The downloadable datasets: their files, where they lie, where they come from. */
#ifndef TN_DATA_CATALOG_H
#define TN_DATA_CATALOG_H

#include <tanso/data.h>

#define TN__SET_FILES 4

typedef struct tn__set_file {
    const char *name;    /* "train-images-idx3-ubyte.gz" */
    const char *md5;     /* 32 hexadecimal digits */
} tn__set_file;

typedef struct tn__set {
    const char *name;                /* "mnist": also the folder's name */
    bool md5_of_unpacked;            /* checksums are of the unpacked files, else of the files as they come */
    tn__set_file file[TN__SET_FILES]; /* names are NULL behind the last */
    const char *const *mirrors;      /* NULL-terminated; each ends in '/' */
} tn__set;

/* The set of a name; NULL if there is none. The second then latches an error that says what there is. */
const tn__set *tn__set_find(const char *name);
const tn__set *tn__set_asked(const char *operation, const char *name);

/* The folder where the set's files are: $TANSO_DATA itself (of sets whose files have the same names only the one that
 * its path names, "fashion" or "kmnist", else MNIST), its subfolder of the set's name, or the cache: the first that
 * holds one of `files` (NULL-terminated). For the caller to free; NULL with a latched error. */
char *tn__set_folder(const tn__set *set, const char *const *files);

/* The folder of a set in the user's cache, ($XDG_CACHE_HOME or ~/.cache)/tanso/NAME, for the caller to free; NULL with
 * a latched error. */
char *tn__set_cache(const char *operation, const tn__set *set);

#endif
