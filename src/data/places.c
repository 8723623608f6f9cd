/* SPDX-License-Identifier: MIT */
/* The table of downloadable datasets, and the user's cache. */
#include "data/places.h"

#include <stdlib.h>
#include <string.h>
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

/* MNIST's checksums were computed from the files; mirrors may compress them anew, so they are of the unpacked ones.
 * Fashion-MNIST's are those of its README (H. Xiao, K. Rasul, R. Vollgraf, 2017). */
static const tn__set sets[] = {
    {"mnist", true, {
        {"train-images-idx3-ubyte.gz", "6bbc9ace898e44ae57da46a324031adb"},
        {"train-labels-idx1-ubyte.gz", "a25bea736e30d166cdddb491f175f624"},
        {"t10k-images-idx3-ubyte.gz", "2646ac647ad5339dbf082846283269ea"},
        {"t10k-labels-idx1-ubyte.gz", "27ae3e4e09519cfbb04c329615203637"},
    }, mnist_mirrors},
    {"fashion-mnist", false, {
        {"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
        {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
        {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
        {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"},
    }, fashion_mirrors},
};
enum { SETS = sizeof sets / sizeof *sets };

const tn__set *tn__set_find(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(name, sets[i].name) == 0)
            return &sets[i];
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
    for (int i = 0; i < SETS; i++)
        names[i] = sets[i].name;
    near = name ? tn__nearest_name(name, names, SETS) : NULL;
    tn__fail(TN_ERR_NAME, operation, "expected \"mnist\" or \"fashion-mnist\", got '%s'%s%s%s", name ? name : "NULL",
             near                                   ? ": did you mean '"
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
