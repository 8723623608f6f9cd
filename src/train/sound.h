/* SPDX-License-Identifier: MIT */
/* Whether weights that are about to be saved are numbers. */
#ifndef TN_TRAIN_SOUND_H
#define TN_TRAIN_SOUND_H

#include <tanso/io.h>
#include <tanso/nn.h>

typedef struct tn__soundness {
    const char *prefix; /* how names of weights begin; NULL: nobody knows, and all is well */
    bool sound;         /* they have been finite */
    bool refused;       /* the last ones were not any more */
    bool doubted;       /* the first ones were not */
} tn__soundness;

/* A run begins with these layers: what is finite now, or not made yet, is meant to be, also where no file is made
 * before it goes wrong. Reads devices. */
tn_status tn__soundness_begin(tn__soundness *weights, int count, const tn_layer *const *layers);
/* Whether an archive's weights may be saved: not if they were finite and have an element that is NaN or infinite now,
 * as such a file would push out good ones, and be gone on from; the first is warned of. Where they never were finite,
 * that may be meant: they are, and the first is warned of, too. Reads devices; false, latched, if that fails. */
bool tn__soundness_look(tn__soundness *weights, const tn_archive *archive, int64_t iteration);

#endif
