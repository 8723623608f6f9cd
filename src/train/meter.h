/* SPDX-License-Identifier: MIT */
/* What summaries need of meters beside adding arrays. */
#ifndef TN_TRAIN_METER_H
#define TN_TRAIN_METER_H

#include <tanso/comm.h>
#include <tanso/report.h>
#include <tanso/train.h>
#include "array/node.h"

/* What a meter has added up so far: `total` on its device where anything was recorded there, the rest on the host. Both
 * parts are kept apart in snapshots, so that a sum goes on in the order of a run that was not stopped. */
typedef struct tn__meter_sums {
    bool has_total;
    double total, at_once, weight;
} tn__meter_sums;

void tn__meter_add_number(tn_meter *meter, double value, double weight);
/* The recorded total if it is still to be computed, for evaluations of many at once; else NULL. */
const tn_array *tn__meter_pending(const tn_meter *meter);
/* The total if it is on a device and has not been read since it was added to, for reading many at once; else NULL. What
 * was read, which tn__meter_mean goes by then. */
const tn_array *tn__meter_unread(const tn_meter *meter);
void tn__meter_know(tn_meter *meter, double total);
/* Has a copy stand in for such a total, so that the memory it lay in is free for the next one. */
void tn__meter_stand_in(tn_meter *meter, tn__node *copy);
/* The mean so far, which goes on; NaN as tn_meter_take's. */
double tn__meter_mean(tn_meter *meter);
/* The same as an array of the innermost scope on the device; NULL if the sums are all on the host. */
tn_array *tn__meter_array(tn_meter *meter);
tn_status tn__meter_read(tn_meter *meter, tn__meter_sums *sums);
/* The same without waiting: what is on a device is in `*total`, recorded only perhaps; NULL: nothing. */
tn_status tn__meter_look(const tn_meter *meter, tn__meter_sums *sums, const tn_array **total);
tn_status tn__meter_restore(tn_meter *meter, const tn__meter_sums *sums);

/* ---- summary.c ---- */
/* Computes all sums, and gives how many of them lie where the host can't read them and have not been read, and which:
 * `*far` for tn__free, NULL for none. */
tn_status tn__summary_far(tn_summary *summary, int *count, tn_meter ***far);
/* Means over what all ranks have added, who have the same keys, in one order; deviations stay a rank's own. */
tn_status tn__summary_share(tn_summary *summary, tn_comm *comm);
/* What was added under a key: zeros, where nothing was; and the same again, on a device where there is a total. */
tn_status tn__summary_read(tn_summary *summary, const char *key, tn__meter_sums *sums);
tn_status tn__summary_restore(tn_summary *summary, const char *key, tn_device device, const tn__meter_sums *sums);

#endif
