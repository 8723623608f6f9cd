/* SPDX-License-Identifier: MIT */
/*
 * Datasets made of other datasets (stretches, chosen samples, parts joined, random splits, k folds), and datasets whose
 * samples a function makes when a minibatch needs them.
 *
 * None of these functions takes anything over: a result holds what it needs, and the datasets it was made of may be
 * freed at any time. Stretches of samples share memory with what they are cut out of; chosen and joined samples are
 * copied. Parts have the classes of the whole (tn_dataset_classes). Never NULL, like all datasets; of a failed
 * dataset, one that failed with the same error.
 */
#ifndef TANSO_DATASET_H
#define TANSO_DATASET_H

#include <tanso/data.h>
#include <tanso/random.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples start to stop - 1, counted as in a slice of Python: negative from the end, and cut to what is there. */
TN_API tn_dataset *tn_dataset_slice(const tn_dataset *dataset, int64_t start, int64_t stop);
/* The samples at `rows`, in this order; a sample may come several times. Negative ones count from the end; TN_ERR_INDEX
 * for one that is not there. */
TN_API tn_dataset *tn_dataset_subset(const tn_dataset *dataset, int64_t count, const int64_t *rows);
/* All samples of the first, then all of the second, ... Their dtypes and all extents but the first must agree. */
TN_API tn_dataset *tn_dataset_concat_of(int count, const tn_dataset *const *datasets);

/* ---- samples of any number of arrays ---- */

typedef struct tn_field {
    const char *name;
    const tn_array *array; /* (n, ...) */
} tn_field;
/* Samples of 1 to TN_MAX_FIELDS arrays by name, the first two of which are x and t to whoever asks for these; of one
 * array alone t has no elements. Copied as by tn_dataset_arrays. Parts, joined ones and loaders have all fields of a
 * dataset; a transform is of x and t, and refuses more. */
TN_API tn_dataset *tn_dataset_fields_of(int count, const tn_field *fields);
/* The fields of several datasets of one size, those of sample i together, as Chainer's TupleDataset. A name that is
 * taken gets the field's number behind it: "x", "t", "x2", "t3". Samples that are made when they are needed have the
 * same random numbers in each: what is cut out of a picture and out of its mask is the same piece. */
TN_API tn_dataset *tn_dataset_zip_of(int count, const tn_dataset *const *datasets);
TN_API int tn_dataset_field_count(const tn_dataset *dataset);
/* The name of field i; "" with TN_ERR_INDEX latched if there is none. */
TN_API const char *tn_dataset_field_name(const tn_dataset *dataset, int i);
/* All of the field of a name, as tn_dataset_x. */
TN_API tn_array *tn_dataset_field(const tn_dataset *dataset, const char *name);

typedef struct tn_ragged_opts {
    const char *_;
    double padding;   /* what shorter samples are filled up with; default 0 */
    int64_t multiple; /* minibatches have a multiple of so many steps, so that there are few shapes, each of which has
                         kernels of its own; default 1 */
} tn_ragged_opts;
/* Samples of different lengths: sample i is the next lengths[i] steps of `values` (total, ...), an x (lengths[i], ...);
 * t (n, ...) are the targets, and a field "length" has the lengths. A loader pads those of a minibatch to the longest
 * of it; whatever asks for all samples, and a transform for one, gets them padded to the longest of all. */
TN_API tn_dataset *tn_dataset_ragged_with(const tn_array *values, const tn_array *lengths, const tn_array *t,
                                          const tn_ragged_opts *opts);

typedef struct tn_concat_opts {
    const char *_;
    double padding; /* fill up shorter arrays with it behind their ends; default: all have the same shape */
} tn_concat_opts;
/* Arrays of one dtype and number of axes beside one another along a new first axis, padded to the largest of each
 * extent if asked: Chainer's concat_examples. A new array of the innermost scope; differentiable. */
TN_API tn_array *tn_concat_examples_with(int count, const tn_array *const *arrays, const tn_concat_opts *opts);

typedef struct tn_split_opts {
    const char *_;
    bool shuffle;  /* deal the samples out by a random order instead of in their own */
    uint64_t seed; /* of that order, which depends on it and on the number of samples alone */
} tn_split_opts;

/* The first `size` samples into *first and the others into *rest, for the caller to free, whatever the status. */
TN_API tn_status tn_dataset_split_with(const tn_dataset *dataset, int64_t size, const tn_split_opts *opts,
                                       tn_dataset **first, tn_dataset **rest) TN_MUST_CHECK;
/* Part i of `parts`, as equal in size as can be: samples i n / parts to (i + 1) n / parts - 1. */
TN_API tn_dataset *tn_dataset_part_with(const tn_dataset *dataset, int parts, int i, const tn_split_opts *opts);
/* Fold i of k-fold cross-validation: part i for TN_TEST, all the others for TN_TRAIN. */
TN_API tn_dataset *tn_dataset_fold_with(const tn_dataset *dataset, int folds, int i, tn_split_kind which,
                                        const tn_split_opts *opts);

/* ---- samples made when they are needed ---- */

/* What the x, or the t, of one sample is; a shape without axes is one number. */
typedef struct tn_sample_type {
    tn_dtype dtype;
    tn_shape shape;
} tn_sample_type;

/* Writes sample i, 0 <= i < count, into x and t, in C order; whatever else but TN_OK it gives ends the loader with that
 * error. It is called from several threads at once. Its random numbers come from `generator` (tn_generator_uniform and
 * others): they depend on the loader's seed, the epoch and i alone, so that runs and numbers of threads agree. */
typedef tn_status (*tn_sample_fn)(void *user, int64_t i, tn_generator *generator, void *x, void *t);
/* The same from a sample of another dataset, which it must not write into. */
typedef tn_status (*tn_transform_fn)(void *user, const void *x, const void *t, tn_generator *generator, void *new_x,
                                     void *new_t);

typedef struct tn_sample_opts {
    const char *_;
    int64_t classes;                /* of integer targets (tn_dataset_classes); default: those of the dataset that is
                                       transformed, else unknown, 0 */
    void (*free_user)(void *user);  /* called when the last dataset that needs `user` is freed, or at once should this
                                       one fail; default: nothing is */
} tn_sample_opts;

/* `count` samples made by a function. A loader makes them in threads of its own (.workers). tn_dataset_x and
 * tn_dataset_t make all of them, as in epoch 0 of a loader with seed 0, and keep them. */
TN_API tn_dataset *tn_dataset_of_with(int64_t count, tn_sample_type x, tn_sample_type t, tn_sample_fn get, void *user,
                                      const tn_sample_opts *opts);
/* Every sample of a dataset transformed by a function, anew each time that a minibatch has it: augmentation. */
TN_API tn_dataset *tn_dataset_transform_with(const tn_dataset *dataset, tn_sample_type x, tn_sample_type t,
                                             tn_transform_fn function, void *user, const tn_sample_opts *opts);

/* Samples that are made when they are needed kept in memory once they were made: as in epoch 0 of a loader with seed 0,
 * so that random ones stay the same. */
TN_API tn_dataset *tn_dataset_cache(const tn_dataset *dataset);

typedef struct tn_image_opts {
    const char *_;
    int height, width;           /* scale pictures to this size, bilinearly between pixels' centres; default: as they
                                    are, and where one is given, the other so that the shape stays */
    int pad;                     /* zeros on each side, after scaling */
    int crop_height, crop_width; /* then take a piece of this size; default: all, and where one is given, the other is
                                    the same */
    bool centre;                 /* from the middle instead of from a random place */
    bool flip;                   /* mirror every second picture, by chance, left to right */
    const float *mean;           /* then subtract these, a number a channel, */
    const float *deviation;      /* and divide by these; default: neither. Both are copied */
} tn_image_opts;

/* Pictures (channels, height, width), float32, or uint8, which become float32 over 255: scaled, padded, cropped,
 * mirrored and normalized, anew each time that a minibatch has them. Targets are as they were. */
TN_API tn_dataset *tn_dataset_images_with(const tn_dataset *dataset, const tn_image_opts *opts);

typedef struct tn_image_files_opts {
    const char *_;
    const char *root;  /* folder of paths that are not absolute; default: the current one */
    int channels;      /* 1: grey, 3: colours; default 3 */
    int height, width; /* scale pictures to this size; default: all must have the first one's */
} tn_image_files_opts;
/* Pictures (tn_load_image), read when a minibatch needs them: float32 (channels, height, width) over 255, and `labels`
 * as int64 targets (NULL: all 0). Paths and labels are copied. A file that cannot be read ends the loader. */
TN_API tn_dataset *tn_image_files_with(int64_t count, const char *const *paths, const int64_t *labels,
                                       const tn_image_files_opts *opts);
/* The same of a folder whose subfolders are classes, numbered by the order of their names, as tn_image_folder_classes
 * tells them; other files than PNG and JPEG are left out. `opts->root` is not looked at. */
TN_API tn_dataset *tn_image_folder_with(const char *folder, const tn_image_files_opts *opts);
/* The names of a folder's subfolders in order, a line each, for tn_string_free; NULL with a latched error. */
TN_API char *tn_image_folder_classes(const char *folder);

/* Random numbers for such functions, on the host: uniform in [0, 1), a standard normal one, an integer from 0 to
 * n - 1 (0 for n < 1). Each advances the generator by one. */
TN_API double tn_generator_uniform(tn_generator *generator);
TN_API double tn_generator_normal(tn_generator *generator);
TN_API int64_t tn_generator_below(tn_generator *generator, int64_t n);

#ifndef TN_NO_MACROS
#define tn_dataset_of(...) TN__DATASET_OF(__VA_ARGS__, )
#define TN__DATASET_OF(count, x, t, get, user, ...) \
    TN_AT(tn_dataset_of_with)(count, x, t, get, user, TN_OPTS(tn_sample_opts, __VA_ARGS__))
#define tn_dataset_transform(...) TN__DATASET_TRANSFORM(__VA_ARGS__, )
#define TN__DATASET_TRANSFORM(dataset, x, t, function, user, ...) \
    TN_AT(tn_dataset_transform_with)(dataset, x, t, function, user, TN_OPTS(tn_sample_opts, __VA_ARGS__))
#define tn_image_files(...) TN__CALL_VVV(tn_image_files_with, tn_image_files_opts, __VA_ARGS__, )
#define tn_image_folder(...) TN__CALL_V(tn_image_folder_with, tn_image_files_opts, __VA_ARGS__, )
#define tn_image_folder_classes(...) TN_HERE(tn_image_folder_classes(__VA_ARGS__))
#define tn_dataset_images(...) TN__CALL_V(tn_dataset_images_with, tn_image_opts, __VA_ARGS__, )
#define tn_dataset_ragged(...) TN__CALL_VVV(tn_dataset_ragged_with, tn_ragged_opts, __VA_ARGS__, )
/* tn_concat_examples(TN_ARRAYS(a, b), .padding = -1) */
#define tn_concat_examples(...) TN__CONCAT_EXAMPLES(__VA_ARGS__, )
#define TN__CONCAT_EXAMPLES(...) TN__CALL_VV(tn_concat_examples_with, tn_concat_opts, __VA_ARGS__)
#define tn_dataset_slice(...) TN_HERE(tn_dataset_slice(__VA_ARGS__))
#define tn_dataset_subset(...) TN_HERE(tn_dataset_subset(__VA_ARGS__))
/* tn_dataset_fields({"image", x}, {"label", t}, {"weight", w}); tn_dataset_zip(a, b, ...) */
#ifdef __cplusplus
static inline tn_dataset *tn__dataset_fields(std::initializer_list<tn_field> fields)
{
    return tn_dataset_fields_of((int)fields.size(), fields.begin());
}
#define tn_dataset_fields(...) TN_AT(tn__dataset_fields)({__VA_ARGS__})
#else
#define tn_dataset_fields(...) TN_AT(tn_dataset_fields_of)(TN__LIST(tn_field, __VA_ARGS__))
#endif
#define tn_dataset_zip(...) TN_AT(tn_dataset_zip_of)(TN__LIST(const tn_dataset *, __VA_ARGS__))
#define tn_dataset_cache(...) TN_HERE(tn_dataset_cache(__VA_ARGS__))
#define tn_dataset_field(...) TN_HERE(tn_dataset_field(__VA_ARGS__))
/* tn_dataset_concat(a, b, ...) */
#define tn_dataset_concat(...) TN_AT(tn_dataset_concat_of)(TN__LIST(const tn_dataset *, __VA_ARGS__))
#define tn_dataset_split(...) TN__DATASET_SPLIT(__VA_ARGS__, )
#define TN__DATASET_SPLIT(dataset, size, first, rest, ...) \
    TN_AT(tn_dataset_split_with)(dataset, size, TN_OPTS(tn_split_opts, __VA_ARGS__), first, rest)
#define tn_dataset_part(...) TN__CALL_VVV(tn_dataset_part_with, tn_split_opts, __VA_ARGS__, )
#define tn_dataset_fold(...) TN__CALL_VVVV(tn_dataset_fold_with, tn_split_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
