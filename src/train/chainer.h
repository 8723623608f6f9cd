/* SPDX-License-Identifier: MIT */
/* What snapshots of Chainer 7 have in another form than those of this library. Each function is for loading alone. */
#ifndef TN_TRAIN_CHAINER_H
#define TN_TRAIN_CHAINER_H

#include "train/parts.h"

/* Whether a serializer reads a file of Chainer's. */
static inline bool tn__of_chainer(const tn_serializer *s)
{
    return s && s->loading && s->weights && s->weights->chainer;
}

/* Whether there is a value of that name which is not None. */
bool tn__chainer_has(const tn_serializer *s, const char *name);
/* A new archive with what can be read of one; what has no value there (None) is marked as still to be inferred. */
tn_archive *tn__chainer_archive(const tn_archive *from);
/* An optimizer's arrays and counts of updates below a place: states have other names, and lie as their parameters. */
tn_status tn__chainer_states(const tn_serializer *at, tn_optimizer *optimizer);
/* The sums of a DictSummary, key by key: of values, of their squares, of weights. */
typedef tn_status (*tn__chainer_sum)(void *user, const char *key, double x, double squares, double weight);
tn_status tn__chainer_summary(const tn_serializer *at, tn__chainer_sum take, void *user);
/* The points of a PlotReport's curve, each with its x; the picture may have another ending. */
typedef tn_status (*tn__chainer_point)(void *user, double x, double y);
tn_status tn__chainer_curve(const tn_serializer *at, const char *key, tn__chainer_point take, void *user);
/* A LogReport's list in the form of tn__json_log: how many entries, and its text up to the last one's end, for
 * tn__free; NULL if there is none, or, latched, without memory. */
char *tn__chainer_log(const tn_serializer *at, int64_t *entries);
/* The name by which the i-th extension of a trainer, by its own `name`, is in the file, for tn__free. */
char *tn__chainer_extension(const tn_trainer *trainer, size_t i, const char *name);

#endif
