/* SPDX-License-Identifier: MIT */
/* Datasets of picture files: a list of them with labels, or a folder whose subfolders are classes. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/error.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/scale.h"
#include "data/source.h"
#include "io/file.h"
#include "io/image.h"

/* Names with a number each, in memory of their own. */
typedef struct list {
    struct entry {
        char *name;
        int64_t label;
    } * items;
    size_t count, capacity;
} list;

static void list_free(list *l)
{
    for (size_t i = 0; i < l->count; i++)
        tn__free(l->items[i].name);
    tn__free(l->items);
    *l = (list){0};
}

/* Takes over the name; NULL stands for one that there was no memory for. */
static tn_status list_add(const char *operation, list *l, char *name, int64_t label)
{
    if (!name || !tn__grow((void **)&l->items, &l->capacity, l->count + 1, sizeof *l->items)) {
        tn__free(name);
        return tn__fail_memory(operation, sizeof *l->items);
    }
    l->items[l->count++] = (struct entry){name, label};
    return TN_OK;
}

static char *join(const char *folder, const char *name)
{
    bool alone = !folder || !*folder || name[0] == '/';
    return alone ? tn__strdup(name) : tn__format("%s/%s", folder, name);
}

/* ---- the dataset ---- */

/* What a sample is made from. */
typedef struct files {
    list list;
    int channels;
    uint32_t height, width;
    bool scaled; /* whatever size a picture has, it is brought to this one; else it must have it */
} files;

static void files_free(void *user)
{
    files *f = user;
    list_free(&f->list);
    tn__free(f);
}

static void fill(const files *f, const tn__pixels *pixels, float *x)
{
    for (int c = 0; c < pixels->channels; c++) {
        tn__plane plane = {pixels->bytes + c, true, pixels->height, pixels->width, pixels->channels};
        for (uint32_t i = 0; i < f->height; i++)
            for (uint32_t j = 0; j < f->width; j++)
                *x++ = tn__plane_scaled(&plane, f->height, f->width, i, j);
    }
}

static tn_status read_sample(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)generator;
    const files *f = user;
    const struct entry *entry = &f->list.items[i];
    tn__pixels pixels;
    tn_status status = tn__image_read("image_files", entry->name, f->channels, &pixels);
    if (status != TN_OK)
        return status;
    if (f->scaled || (pixels.width == f->width && pixels.height == f->height))
        fill(f, &pixels, x);
    else
        status =
            tn__fail(TN_ERR_SHAPE, "image_files",
                     "expected pictures of %u x %u pixels, as the first is, and '%s' has %u x %u: give .height and "
                     ".width, so that all are scaled",
                     f->height, f->width, entry->name, pixels.height, pixels.width);
    tn__free(pixels.bytes);
    *(int64_t *)t = entry->label;
    return status;
}

/* The size of pictures: as asked, or that of the first. */
static tn_status settle_size(const char *operation, files *f, const tn_image_files_opts *opts)
{
    if (opts->height < 0 || opts->width < 0 || !opts->height != !opts->width)
        return tn__fail(TN_ERR_VALUE, operation, "expected a height and a width, or neither, got %d and %d",
                        opts->height, opts->width);
    f->scaled = opts->height > 0;
    f->height = (uint32_t)opts->height;
    f->width = (uint32_t)opts->width;
    if (f->scaled || f->list.count == 0)
        return TN_OK;
    tn__pixels first;
    tn_status status = tn__image_read(operation, f->list.items[0].name, f->channels, &first);
    f->height = first.height;
    f->width = first.width;
    tn__free(first.bytes);
    return status;
}

/* Takes over the list. */
static tn_dataset *dataset_of(const char *operation, tn_status status, list *list, int64_t classes,
                              const tn_image_files_opts *opts)
{
    files *f = status == TN_OK ? tn__calloc(1, sizeof *f) : NULL;
    if (status == TN_OK && !f)
        status = tn__fail_memory(operation, sizeof *f);
    if (!f) {
        list_free(list);
        return tn__dataset_of_source(operation, NULL, 0);
    }
    f->list = *list;
    f->channels = opts->channels ? opts->channels : 3;
    if (f->channels != 1 && f->channels != 3)
        status =
            tn__fail(TN_ERR_VALUE, operation, "expected 1 channel (grey) or 3 (red, green, blue), got %d", f->channels);
    if (status == TN_OK)
        status = settle_size(operation, f, opts);
    if (status != TN_OK) {
        files_free(f);
        return tn__dataset_of_source(operation, NULL, 0);
    }
    const tn_sample_type x = {TN_FLOAT32, {3, {f->channels, f->height, f->width}}}, t = {TN_INT64, {0, {0}}};
    return tn_dataset_of_with((int64_t)f->list.count, x, t, read_sample, f,
                              &(tn_sample_opts){.classes = classes, .free_user = files_free});
}

tn_dataset *tn_image_files_with(int64_t count, const char *const *paths, const int64_t *labels,
                                const tn_image_files_opts *opts)
{
    static const tn_image_files_opts defaults;
    opts = opts ? opts : &defaults;
    list list = {0};
    int64_t classes = 0;
    tn_status status =
        count >= 0 && (paths || count == 0)
            ? TN_OK
            : tn__fail(TN_ERR_VALUE, "image_files", "expected the paths of 0 pictures or more, got %lld%s",
                       (long long)count, paths ? "" : " and NULL");
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t label = labels ? labels[i] : 0;
        if (!paths[i] || label < 0)
            status = tn__fail(TN_ERR_VALUE, "image_files", "expected a path and a label of 0 or more, got %s and %lld",
                              paths[i] ? paths[i] : "NULL", (long long)label);
        else
            status = list_add("image_files", &list, join(opts->root, paths[i]), label);
        classes = label >= classes ? label + 1 : classes;
    }
    return dataset_of("image_files", status, &list, classes, opts);
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* What a folder holds, in the order of names and with its path before them: subfolders, or pictures. */
static tn_status look_into(const char *operation, const char *folder, bool folders, int64_t label, list *found)
{
    size_t before = found->count;
    DIR *open = opendir(folder);
    if (!open)
        return tn__fail_errno(operation, "open", folder, errno);
    tn_status status = TN_OK;
    for (struct dirent *entry; status == TN_OK && (entry = readdir(open));) {
        struct stat info;
        char *path = entry->d_name[0] == '.' ? NULL : join(folder, entry->d_name);
        bool is_folder = path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        if (path && is_folder == folders && (folders || tn__is_image(path)))
            status = list_add(operation, found, path, label);
        else if (!path && entry->d_name[0] != '.')
            status = tn__fail_memory(operation, strlen(folder) + strlen(entry->d_name));
        else
            tn__free(path);
    }
    closedir(open);
    if (found->count > before)
        qsort(found->items + before, found->count - before, sizeof *found->items, by_name);
    return status;
}

static tn_status find_classes(const char *operation, const char *folder, list *classes)
{
    tn_status status =
        folder ? look_into(operation, folder, true, 0, classes) : tn__fail_null(operation, "the path of a folder");
    if (status == TN_OK && classes->count == 0)
        status = tn__fail(TN_ERR_FORMAT, operation,
                          "'%s' has no subfolders: expected one for each class, with its pictures in it", folder);
    return status;
}

tn_dataset *tn_image_folder_with(const char *folder, const tn_image_files_opts *opts)
{
    static const tn_image_files_opts defaults;
    list classes = {0}, pictures = {0};
    tn_status status = find_classes("image_folder", folder, &classes);
    for (size_t i = 0; i < classes.count && status == TN_OK; i++)
        status = look_into("image_folder", classes.items[i].name, false, (int64_t)i, &pictures);
    int64_t count = (int64_t)classes.count;
    list_free(&classes);
    return dataset_of("image_folder", status, &pictures, count, opts ? opts : &defaults);
}

char *tn_image_folder_classes(const char *folder)
{
    list classes = {0};
    tn__text text = {0};
    tn_status status = find_classes("image_folder_classes", folder, &classes);
    for (size_t i = 0; i < classes.count && status == TN_OK; i++)
        tn__text_addf(&text, "%s\n", strrchr(classes.items[i].name, '/') + 1);
    list_free(&classes);
    char *names = status == TN_OK ? tn__text_take(&text) : NULL;
    if (status == TN_OK && !names)
        tn__fail_memory("image_folder_classes", 64);
    return names;
}
