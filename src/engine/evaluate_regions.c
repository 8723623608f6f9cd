/* SPDX-License-Identifier: MIT */
/* Evaluation over several devices, region by region: see regions.c. */
#include "engine/engine.h"

#include "core/memory.h"
#include "engine/regions.h"
#include "engine/run.h"

static tn_status run_region(tn__collection *c, tn__regions *r, int count, tn__collect_mode mode)
{
    if (!count)
        return TN_OK;
    tn_status status = tn__attempt(c, count, r->part, mode);
    c->further = true;
    if (!c->crosses)
        return status;
    return tn__fail(TN_ERR_INTERNAL, "eval", "a region of %s needs another device's values; please report this",
                    r->part[0]->device->name);
}

/* Items order[from .. to-1], which have one phase: what comes from other devices, then a region a device. */
static tn_status run_phase(tn__collection *c, tn__regions *r, size_t from, size_t to)
{
    tn_status status = TN_OK;
    for (size_t i = from; i < to && status == TN_OK; i++)
        if (r->item[r->order[i]].transfers)
            status = tn__transfer_run(r->item[r->order[i]].node);
    bool alone = r->mode == TN__COLLECT_STEP || r->mode == TN__COLLECT_WRITTEN || r->mode == TN__COLLECT_ONLY;
    for (size_t d = 0; d < r->device_count && status == TN_OK; d++)
        status = run_region(c, r, tn__regions_part(r, from, to, r->device[d]),
                            alone ? TN__COLLECT_ONLY : TN__COLLECT_REGION);
    return status;
}

/* A step's last regions: nothing runs before there are a plan and memory for each. */
static tn_status run_step(tn__collection *c, tn__regions *r)
{
    tn__running *run = tn__alloc(r->device_count * sizeof *run);
    tn__collection **own = tn__alloc(r->device_count * sizeof *own);
    tn_status status = run && own ? TN_OK : tn__fail_memory("eval", sizeof(tn__running));
    size_t prepared = 0;
    bool clean = !tn__latched();
    for (size_t d = 0; d < r->device_count && status == TN_OK; d++) {
        int count = tn__regions_last(r, r->device[d]);
        if (!count)
            continue;
        c = own[prepared] = prepared ? tn__collection_next(c) : c;
        if (!c)
            status = tn__fail_memory("eval", sizeof(tn__running));
        if (status == TN_OK) {
            c->further |= prepared > 0;
            c->old = own[0]->old;
            c->old_count = own[0]->old_count;
            status = tn__collect(c, count, r->part, TN__COLLECT_STEP);
        }
        if (status == TN_OK && (status = tn__run_prepare(c, &run[prepared])) == TN_OK)
            prepared++;
    }
    bool ready = status == TN_OK;
    for (size_t d = 0; d < prepared; d++) {
        tn_status started = ready ? tn__run_start(own[d], &run[d]) : status;
        tn__device *device = own[d]->device;
        tn__run_end(own[d], &run[d], started, true);
        if (ready && started != TN_OK)
            tn__step_goes_on(own[d], tn__regions_last(r, device), r->part, clean, &started);
        status = started != TN_OK ? started : status;
    }
    tn__free(run);
    tn__free(own);
    return status;
}

static tn_status run_all(tn__collection *c, tn__regions *r)
{
    tn_status status = TN_OK;
    for (size_t from = 0, to; from < r->count && status == TN_OK; from = to) {
        to = tn__regions_phase(r, from);
        status = run_phase(c, r, from, to);
    }
    if (status == TN_OK && r->mode == TN__COLLECT_STEP)
        return run_step(c, r);
    for (size_t d = 0; d < r->device_count && status == TN_OK; d++)
        status = run_region(c, r, tn__regions_last(r, r->device[d]), r->mode);
    return status;
}

static tn_status evaluate(tn__collection *c, tn__regions *r, int count, tn__node *const *roots)
{
    tn_status status = tn__regions_make(r, count, roots);
    if (status == TN_OK)
        status = run_all(c, r);
    c->further = c->crosses = false;
    return status;
}

tn_status tn__evaluate_regions(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    bool clean = !tn__latched();
    tn__regions r = {.mode = mode};
    tn_status status = evaluate(c, &r, count, roots);
    bool along = status != TN_OK && mode != TN__COLLECT_STEP && r.root_count > r.asked;
    tn__regions_free(&r);
    if (!along)
        return status;
    if (clean) /* what nobody asked for may be what failed */
        tn_clear_error();
    r = (tn__regions){.mode = TN__COLLECT_ONLY};
    status = evaluate(c, &r, count, roots);
    tn__regions_free(&r);
    return status;
}
