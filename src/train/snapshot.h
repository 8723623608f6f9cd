/* SPDX-License-Identifier: MIT */
/* Snapshots as archives, so that the trainer can add what it needs beside them. */
#ifndef TN_TRAIN_SNAPSHOT_H
#define TN_TRAIN_SNAPSHOT_H

#include <tanso/io.h>
#include <tanso/train.h>

/* The parameters by their paths. */
tn_status tn__archive_params(tn_archive *archive, const tn_layer *net);
/* A run's state; `loader` may be NULL. */
tn_status tn__snapshot_fill(tn_archive *archive, tn_layer *net, tn_optimizer *optimizer, tn_loader *loader);
/* Brings it back; `file` names the archive in messages. */
tn_status tn__snapshot_restore(const tn_archive *archive, const char *file, tn_layer *net, tn_optimizer *optimizer,
                               tn_loader *loader);

#endif
