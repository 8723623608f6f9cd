/* SPDX-License-Identifier: MIT */
/* What an archive is: entries in order, a hash table of their names, text entries. */
#ifndef TN_IO_ARCHIVE_H
#define TN_IO_ARCHIVE_H

#include <tanso/io.h>
#include "core/error.h"
#include "core/object.h"
#include "io/values.h"

/* Text entries go by this name in files: safetensors' metadata key, and a folder of an .npz. */
#define TN__METADATA "__metadata__"

typedef struct tn__archive_entry {
    char *name;
    tn_array *array; /* owned */
} tn__archive_entry;

typedef struct tn__archive_text {
    char *key, *value;
} tn__archive_text;

struct tn_archive {
    tn__object object;
    tn__archive_entry *entries;
    size_t count, capacity;
    uint32_t *table;      /* 1 + index of an entry, 0: empty; a power of two of places, open addressing */
    size_t places;
    tn__archive_text *texts;
    size_t text_count, text_capacity;
    char **first; /* files that last before this one does */
    size_t first_count, first_capacity;
    tn__error *error;
    bool is_static;
};

/* Adds an array, which it takes over in any case. TN_ERR_FORMAT if the name is there already (`file` in the
 * message). */
tn_status tn__archive_take(tn_archive *archive, const char *operation, const char *file, const char *name,
                           tn__values *values);
/* Adds an entry that the file has and that cannot be read, so that the others can: the error, whose reference is taken
 * over in any case, is latched when the entry is asked for. */
tn_status tn__archive_take_error(tn_archive *archive, const char *operation, const char *file, const char *name,
                                 tn__error *error);
/* Whether this build saves and loads archives of the path's ending: TN_ERR_UNSUPPORTED or TN_ERR_VALUE if not. */
tn_status tn__archive_known(const char *operation, const char *path);
/* For an archive that another thread saves: copies of evaluated values, so that training goes on in their own memory,
 * and, in that thread, what they are in the host's memory, by one copy that is waited for (tn__put_aside). Values that
 * the host can read stay as they are. On failure those of before stay. */
tn_status tn__archive_put_aside(tn_archive *archive);
tn_status tn__archive_fetch(tn_archive *archive);
/* The archive says that a file, such as a log, has got so far: before its own file is there, that one is synced, by
 * the thread that saves. */
tn_status tn__archive_after(tn_archive *archive, const char *file);
/* Views of all arrays' elements on the host, to be ended and given to tn__free by the caller. */
tn_status tn__archive_views(const tn_archive *archive, const char *operation, tn__host_view **views);
void tn__archive_views_end(const tn_archive *archive, tn__host_view *views);

#endif
