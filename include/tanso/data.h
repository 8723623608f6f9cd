/* SPDX-License-Identifier: MIT */
/*
 * Datasets and loaders. A dataset holds samples x[i] with targets t[i] in host memory; a loader cuts them into
 * minibatches, shuffled if asked, prepared ahead on a thread, on a device.
 */
#ifndef TANSO_DATA_H
#define TANSO_DATA_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_dataset tn_dataset;

/* Arrays that the samples of a dataset have at most. */
#define TN_MAX_FIELDS 16

typedef enum tn_split_kind { TN_TRAIN = 0, TN_TEST = 1 } tn_split_kind;

/* x (n, ...) and t (n, ...) with equal first extents, evaluated and copied to the host. Never NULL, like all of
 * these. */
TN_API tn_dataset *tn_dataset_arrays(const tn_array *x, const tn_array *t);
/* The 1,797 8x8 digits of the UCI set, embedded in the library: x (n, 64) float32, pixels over 16; t (n) int64. Split
 * 80:20 by a fixed permutation. */
TN_API tn_dataset *tn_digits(tn_split_kind split);
/* All 1,797, raw pixel values 0..16, in file order. */
TN_API tn_dataset *tn_digits_raw(void);
/* MNIST, Fashion-MNIST, Kuzushiji-MNIST: x (n, 784) float32, pixels over 255; t (n) int64. Looked for in $TANSO_DATA,
 * in $TANSO_DATA/mnist (fashion-mnist, kmnist), then in the cache ($XDG_CACHE_HOME or ~/.cache)/tanso/mnist.
 * $TANSO_DATA itself counts as Fashion-MNIST's if "fashion" is in its path, as Kuzushiji-MNIST's if "kmnist" is, else
 * as MNIST's. Downloads nothing: see tn_data_fetch. */
TN_API tn_dataset *tn_mnist(tn_split_kind split);
TN_API tn_dataset *tn_fashion_mnist(tn_split_kind split);
TN_API tn_dataset *tn_kmnist(tn_split_kind split);
/* CIFAR-10, CIFAR-100: x (n, 3, 32, 32) float32, red, green and blue pixels over 255; t (n) int64, of CIFAR-100 the
 * fine labels. Read from cifar-10-binary.tar.gz (cifar-100-binary.tar.gz), looked for in the same places. */
TN_API tn_dataset *tn_cifar10(tn_split_kind split);
TN_API tn_dataset *tn_cifar100(tn_split_kind split);
/* Street View House Numbers, the cropped ones: x (n, 3, 32, 32) float32 as CIFAR's; t (n) int64, the digit. Read from
 * train_32x32.mat (test_32x32.mat), looked for in the same places. */
TN_API tn_dataset *tn_svhn(tn_split_kind split);
/* The Penn Treebank as prepared by T. Mikolov: word i as x[i] and the one that follows as t[i], both (n) int64, of
 * 10,000 words. A line ends with the word "<eos>". Numbers are in the order of first appearance, in the training text
 * first, as Chainer's. Read from ptb.{train,valid,test}.txt, looked for in the same places. */
TN_API tn_dataset *tn_ptb(tn_split_kind split);
/* All words of its part "train", "valid" or "test": (n) int64, a new array of the innermost scope; TN_ERR_NAME for
 * another part. */
TN_API tn_array *tn_ptb_words(const char *part);
/* The words themselves, a list for tn_words_free (table.h). */
TN_API struct tn_words *tn_ptb_vocabulary(void);
/* A folder of IDX files with MNIST's names: {train,t10k}-images-idx3-ubyte[.gz],
 * {train,t10k}-labels-idx1-ubyte[.gz]. x, images of any shape, as (n, pixels) float32: bytes over 255, other dtypes as
 * they are; t (n) int64, from any integers. */
TN_API tn_dataset *tn_idx_folder(const char *folder, tn_split_kind split);
/* Three spiral arms of `per_class` points each: x (3 per_class, 2) float32, t int64 (DeZero's toy set). */
TN_API tn_dataset *tn_spiral(int64_t per_class, uint64_t seed);
/* n points of sin(2 pi x) + U(0,1) noise: x (n, 1), t (n, 1) float32. */
TN_API tn_dataset *tn_sine(int64_t n, uint64_t seed);
/* A stand-in for "mnist", "fashion-mnist", "kmnist", "cifar10", "cifar100", "svhn" or "ptb" where its files are not at
 * hand: samples of the set's shape, dtypes and classes, 2,000 to train and 500 to test, computed, always the same: a
 * picture of noise for each class, under other noise, so that networks can learn them. "ptb" is a text of 20,000 words
 * (5,000), frequent ones and rare ones, in which three of four words are told by the one before. */
TN_API tn_dataset *tn_dataset_synthetic(const char *name, tn_split_kind split);
/* By name: "digits", "mnist", "fashion-mnist", "kmnist", "cifar10", "cifar100", "svhn", "ptb", "spiral", "sine",
 * "synthetic:" and a name of tn_dataset_synthetic, or the path of an IDX folder. */
TN_API tn_dataset *tn_dataset_named(const char *name, tn_split_kind split);
/* Downloads "mnist", "fashion-mnist", "kmnist", "cifar10", "cifar100", "svhn" or "ptb" into the cache: resumed where it
 * stopped, verified by checksum. The environment variable TANSO_MIRROR names a place (an http, https or file URL) to
 * take the files from instead of the usual ones. `progress` (may be NULL) is called with bytes done and in all (0 =
 * unknown). TN_ERR_NAME for other names, TN_ERR_IO, TN_ERR_FORMAT for a wrong checksum, TN_ERR_UNSUPPORTED in a build
 * without libcurl. */
TN_API tn_status tn_data_fetch(const char *name,
                               void (*progress)(const char *file, int64_t done, int64_t total, void *user),
                               void *user) TN_MUST_CHECK;

/* The folder where tn_data_fetch puts a set's files, freed with tn_string_free; NULL with a latched error where there
 * is none. */
TN_API char *tn_data_cache(const char *name);

/* NULL is ignored. A dataset that a loader has taken over is freed with it: here it is TN_ERR_STATE. */
TN_API void tn_dataset_free(tn_dataset *dataset);
/* TN_OK, or why making it failed. */
TN_API tn_status tn_dataset_status(const tn_dataset *dataset);
/* Number of samples; 0 for a failed dataset. */
TN_API int64_t tn_dataset_size(const tn_dataset *dataset);
/* All samples and all targets as arrays on the CPU, owned by the dataset; of a failed one, an error array. */
TN_API tn_array *tn_dataset_x(const tn_dataset *dataset);
TN_API tn_array *tn_dataset_t(const tn_dataset *dataset);
/* Number of classes: largest integer target + 1; 0 for floating targets. */
TN_API int64_t tn_dataset_classes(const tn_dataset *dataset);

/* A minibatch. Its arrays belong to the loader and are valid until the next tn_loader_next. */
typedef struct tn_batch {
    tn_array *x, *t;
    int64_t size; /* samples; fewer in an epoch's last one */
    int field_count; /* arrays that samples have: x, t, and those that follow (tn_dataset_fields) */
    tn_array *const *fields;
    const char *const *names;
} tn_batch;
/* The array of a name; an error array (TN_ERR_NAME) if there is none. */
TN_API tn_array *tn_batch_field(const tn_batch *batch, const char *name);

typedef struct tn_loader tn_loader;
typedef struct tn_sampler tn_sampler; /* sampler.h */

typedef struct tn_loader_opts {
    const char *_;
    int64_t batch;     /* default 32 */
    bool shuffle;      /* a new order each epoch, from the seed and the epoch's number alone */
    uint64_t seed;
    bool drop_last;    /* drop the short last minibatch; TN_ERR_VALUE where that is the only one */
    bool no_prefetch;  /* prepare minibatches in the caller's thread, even where a thread of their own would pay */
    int workers;       /* threads that gather or make samples (tn_dataset_of), in order all the same; default: one, of
                          samples that are only copied where it pays */
    bool keep_dataset; /* do not free the dataset with the loader */
    tn_device device;  /* default: current */
    bool repeat;       /* go on with the next epoch instead of ending one: see tn_loader_next */
    tn_sampler *sampler; /* which samples an epoch has (sampler.h), taken over; `shuffle` then does nothing */
} tn_loader_opts;

/* Takes ownership of the dataset unless keep_dataset, also of one that it fails for; one that is another loader's, or
 * has been freed, is TN_ERR_STATE. Never NULL. For a GPU that has room, a quarter of what is free at
 * most, the dataset is copied there now, and minibatches are gathered by what computes with them; of larger ones
 * each minibatch is copied, from 256 KiB on beside the work that is under way. */
TN_API tn_loader *tn_loader_new_with(tn_dataset *dataset, const tn_loader_opts *opts);
/* The next minibatch of the epoch; false at its end (the next call begins the next epoch), after an error, or at once
 * when the thread has a latched error. With `repeat` there is no end, and each minibatch is whole: one at an epoch's
 * end is filled up with the first samples of the next, as by Chainer's iterators, and the epoch counts as soon as its
 * last sample was given. Where epochs do not end with a minibatch, these are put together on the host. */
TN_API bool tn_loader_next(tn_loader *loader, tn_batch *batch);
/*
 * A loop over the minibatches of an epoch, each in a scope of its own:
 *
 *     TN_EACH(batch, loader) {
 *         tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, batch.x), batch.t);
 *         ...
 *     }
 *
 * `batch`, a tn_batch, is the loop's own. Unlike in `for (...) TN_SCOPE`, where `break` leaves the scope only, `break`
 * ends the loop, `continue` and the block's end go on to the next minibatch, and `return` and `goto` leave it; all of
 * them leave the scope. Afterwards tn_loader_status, or tn_ok, tells whether the epoch ended by an error. An epoch that
 * was broken off goes on where it was with the next TN_EACH.
 */
#if defined(__GNUC__)
#define TN_EACH(batch, loader) \
    for (tn__each_guard TN__LINE_NAME(tn__each) __attribute__((cleanup(tn__each_leave))) = \
             TN_HERE(tn__each_enter(loader)), *TN__LINE_NAME(tn__all) = &TN__LINE_NAME(tn__each); \
         TN__LINE_NAME(tn__all); TN__LINE_NAME(tn__all) = NULL) \
        for (tn_batch batch; TN_HERE(tn__each_next(TN__LINE_NAME(tn__all), &batch));)
#endif
typedef struct tn__each_guard {
    tn_loader *loader;
    int depth;
} tn__each_guard;
TN_API tn__each_guard tn__each_enter(tn_loader *loader);
TN_API bool tn__each_next(tn__each_guard *guard, tn_batch *batch);
TN_API void tn__each_leave(tn__each_guard *guard);

/* Frees it with its minibatch, and its dataset if it has taken that over. NULL is ignored. */
TN_API void tn_loader_free(tn_loader *loader);
/* Minibatches from the next one on are on another device; the order is the same on all. If it fails, as when the device
 * is not there, the loader stays where it was. */
TN_API tn_status tn_loader_to(tn_loader *loader, tn_device device);
/* TN_OK, or the error that stopped it. */
TN_API tn_status tn_loader_status(const tn_loader *loader);
/* Minibatches an epoch; of one that repeats, those that an epoch of its own would be cut into. */
TN_API int64_t tn_loader_length(const tn_loader *loader);
/* Whether it goes on without an end (.repeat). */
TN_API bool tn_loader_repeats(const tn_loader *loader);
/* The epoch under way, from 0; setting it restarts the loader there: how a resumed run gets the same order. */
TN_API int64_t tn_loader_epoch(const tn_loader *loader);
TN_API tn_status tn_loader_set_epoch(tn_loader *loader, int64_t epoch);
/* Samples that an epoch gives, all but those that drop_last drops; and how many of the epoch under way were given. */
TN_API int64_t tn_loader_samples(const tn_loader *loader);
TN_API int64_t tn_loader_position(const tn_loader *loader);
/* Goes on in the middle of an epoch, with the minibatch that begins at `position`, which tn_loader_position gave of a
 * loader that was made in the same way; another one is TN_ERR_VALUE. */
TN_API tn_status tn_loader_set_position(tn_loader *loader, int64_t epoch, int64_t position);

#ifndef TN_NO_MACROS
#define tn_dataset_arrays(...) TN_HERE(tn_dataset_arrays(__VA_ARGS__))
#define tn_mnist(...) TN_HERE(tn_mnist(__VA_ARGS__))
#define tn_fashion_mnist(...) TN_HERE(tn_fashion_mnist(__VA_ARGS__))
#define tn_kmnist(...) TN_HERE(tn_kmnist(__VA_ARGS__))
#define tn_cifar10(...) TN_HERE(tn_cifar10(__VA_ARGS__))
#define tn_cifar100(...) TN_HERE(tn_cifar100(__VA_ARGS__))
#define tn_svhn(...) TN_HERE(tn_svhn(__VA_ARGS__))
#define tn_ptb(...) TN_HERE(tn_ptb(__VA_ARGS__))
#define tn_ptb_words(...) TN_HERE(tn_ptb_words(__VA_ARGS__))
#define tn_ptb_vocabulary(...) TN_HERE(tn_ptb_vocabulary(__VA_ARGS__))
#define tn_idx_folder(...) TN_HERE(tn_idx_folder(__VA_ARGS__))
#define tn_spiral(...) TN_HERE(tn_spiral(__VA_ARGS__))
#define tn_sine(...) TN_HERE(tn_sine(__VA_ARGS__))
#define tn_dataset_synthetic(...) TN_HERE(tn_dataset_synthetic(__VA_ARGS__))
#define tn_dataset_named(...) TN_HERE(tn_dataset_named(__VA_ARGS__))
#define tn_dataset_x(...) TN_HERE(tn_dataset_x(__VA_ARGS__))
#define tn_dataset_t(...) TN_HERE(tn_dataset_t(__VA_ARGS__))
#define tn_data_cache(...) TN_HERE(tn_data_cache(__VA_ARGS__))
#define tn_loader_to(...) TN_HERE(tn_loader_to(__VA_ARGS__))
#define tn_loader_set_epoch(...) TN_HERE(tn_loader_set_epoch(__VA_ARGS__))
#define tn_loader_set_position(...) TN_HERE(tn_loader_set_position(__VA_ARGS__))
#define tn_batch_field(...) TN_HERE(tn_batch_field(__VA_ARGS__))
#define tn_loader_next(...) TN_HERE(tn_loader_next(__VA_ARGS__))
#define tn_loader_new(...) TN__CALL_V(tn_loader_new_with, tn_loader_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
