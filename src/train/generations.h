/* SPDX-License-Identifier: MIT */
/* Files of one pattern in a folder, "snapshot_iter_{iteration}.npz": which is the newest, and which are too many. */
#ifndef TN_TRAIN_GENERATIONS_H
#define TN_TRAIN_GENERATIONS_H

#include <tanso/base.h>

/* The path of the newest, for tn__free; NULL if there is none, or with a latched error. */
char *tn__generations_newest(const char *folder, const char *pattern);
/* Removes all but the newest `keep`. */
tn_status tn__generations_keep(const char *folder, const char *pattern, int keep);
/* Whether a file has a name of the pattern. */
bool tn__generations_match(const char *pattern, const char *name);
/* Removes what writers of processes that are no more have left. */
void tn__generations_clear(const char *folder, const char *pattern);

#endif
