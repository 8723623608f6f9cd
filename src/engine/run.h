/* SPDX-License-Identifier: MIT */
/* Running what was collected. Runs of several devices can be prepared before any of them starts, so that what may fail
 * before (a plan's compilation, memory) leaves all of them as they were. */
#ifndef TN_ENGINE_RUN_H
#define TN_ENGINE_RUN_H

#include "engine/plans.h"

#define TN__RUN_BUFFERS 256 /* most plans have fewer, even of single operations */

/* A plan and the addresses of one run of it. It stays where it is while it is used: pointers lead into it. */
typedef struct tn__running {
    const tn__loaded *loaded;
    tn__cached *held;
    void **address;         /* by buffer */
    tn__storage **storage;  /* by buffer: of outputs and inputs; NULL for temporaries */
    void *few_addresses[TN__RUN_BUFFERS];
    tn__storage *few_storages[TN__RUN_BUFFERS];
    void *arena;
} tn__running;

/* Finds or makes the plan of a collection that has roots, and takes the memory; nothing is left to end if it fails. */
tn_status tn__run_prepare(tn__collection *c, tn__running *r);
tn_status tn__run_start(tn__collection *c, tn__running *r);
/* Ends one that was prepared: after a start that gave TN_OK the roots get their values. step: what an optimizer's step
 * gives up is marked. */
void tn__run_end(tn__collection *c, tn__running *r, tn_status started, bool step);
/* All three. */
tn_status tn__run(tn__collection *c, bool step);

/* ---- evaluate.c ---- */

/* Collects what roots of one device need, and runs it. Where that crosses devices (c->crosses), nothing has been run
 * and nothing is latched. */
tn_status tn__attempt(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode);
/* A step's run has failed by an index out of range, perhaps one of an array that it computed along. Clears the error
 * and runs it without such arrays; false if the failure stands. `clean`: nothing was latched before. */
bool tn__step_goes_on(tn__collection *c, int count, tn__node *const *roots, bool clean, tn_status *status);

/* ---- evaluate_regions.c ---- */

/* Evaluates roots on several devices, or ones that values of other devices come to. */
tn_status tn__evaluate_regions(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode);

#endif
