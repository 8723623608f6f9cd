/* SPDX-License-Identifier: MIT */
/* The cache of plans, by key; bounded, least recently used first out; shared by all threads. */
#ifndef TN_ENGINE_PLANS_H
#define TN_ENGINE_PLANS_H

#include "compile/compile.h"
#include "engine/collect.h"

#include <stdatomic.h>
#include <tanso/engine.h>

typedef struct tn__cached tn__cached;

/* A plan loaded on a device. */
typedef struct tn__loaded {
    tn__plan *plan;
    tn__executable *executable;
    const tn__device_ops *ops;
    uint64_t number; /* no other one of the process has it, from 1 */
} tn__loaded;

/* The plan of what was collected, for whoever frees it; NULL with a latched error. */
tn__plan *tn__plan_make(const tn__collection *c, bool kernels, const char *operation);
/* Finds or makes the loaded plan for a collection, and holds it until tn__plans_release. NULL with a latched error.
 * Sets c->moves where the starts of windows are what the run tells. */
const tn__loaded *tn__plans_acquire(tn__collection *c, tn__cached **held);
void tn__plans_release(tn__cached *held);
/* Whether its kernels wait until its runs have taken long enough; how long another one took. */
bool tn__plans_wait(const tn__cached *held);
void tn__plans_spent(tn__cached *held, int64_t nanoseconds);
/* Forgets all plans (those in use when they are let go). */
void tn__plans_clear(void);

/* The switches of tanso/engine.h and the counters. */
typedef struct tn__switches {
    _Atomic int compile; /* a tn_compile_mode */
    _Atomic bool fusion, plan_memory;
    _Atomic int precision; /* a tn_matmul_precision */
} tn__switches;
extern tn__switches tn__engine_switches;

typedef struct tn__counters {
    _Atomic uint64_t evaluations, plan_hits, plan_misses, kernels;
} tn__counters;
extern tn__counters tn__engine_counters;

/* A device without memory left: its plans that nobody runs go. Whoever asks may hold a lock of the device's, so nobody
 * is waited for. True if there were any. */
bool tn__plans_drop_idle(tn__device *device);
/* Children by fork find the cache of plans in order. */
void tn__plans_watch_forks(void);

#endif
