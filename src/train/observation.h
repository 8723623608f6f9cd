/* SPDX-License-Identifier: MIT */
/* Observations inside the library. */
#ifndef TN_TRAIN_OBSERVATION_H
#define TN_TRAIN_OBSERVATION_H

#include <tanso/report.h>

/* What is at a place, all of it borrowed. */
typedef struct tn__observed {
    const char *key;
    const tn_array *array; /* NULL: the number */
    double number, weight;
} tn__observed;
/* From 0 on; false behind the last one. */
bool tn__observation_at(const tn_observation *observation, int i, tn__observed *seen);
/* What is under a key; false if there is nothing. */
bool tn__observation_find(const tn_observation *observation, const char *key, tn__observed *seen);
/* An error for one that was freed. */
tn_status tn__observation_raise(const tn_observation *observation);
/* Who frees it; NULL: whoever has it. */
void tn__observation_own(tn_observation *observation, const char *owner);
void tn__reporter_own(tn_reporter *reporter, const char *owner);
/* Computes what is still only recorded, all in one evaluation: one forward serves all. */
tn_status tn__observation_eval(tn_observation *observation);
/* How many reporters and scopes are on the thread's stack; coming back to that takes off what an error left open. */
int tn__report_depth(void);
void tn__report_back_to(int depth);
/* A further frame, in which the same one listens: while it is there, the ones above it take no memory. */
void tn__report_hold(void);
/* What a copy of a layer reports to the thread's current reporter goes by the layer's name. Nothing without one. */
tn_status tn__report_twin(const tn_layer *copy, const tn_layer *layer);
/* A reporter or an observation is freed: where this thread's reports go to it, nobody listens from here on. */
void tn__report_forget(const void *gone);

#endif
