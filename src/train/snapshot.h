/* SPDX-License-Identifier: MIT */
/* Snapshots inside the library. */
#ifndef TN_TRAIN_SNAPSHOT_H
#define TN_TRAIN_SNAPSHOT_H

#include <tanso/io.h>
#include <tanso/trainer.h>

/* The parameters by their paths. */
tn_status tn__archive_params(tn_archive *archive, const tn_layer *net);
/* A snapshot of now by a snapshot extension, written before this returns, unless its condition is against it. */
tn_status tn__snapshot_take(tn_extension *extension, tn_trainer *trainer);
/* The iteration of the last one in this run; -1: none. */
int64_t tn__snapshot_iteration(const tn_extension *extension);

#endif
