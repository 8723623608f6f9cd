/* SPDX-License-Identifier: MIT */
/* Lowering to kernels: choose what is stored, make nests, merge them, order everything (schedule.c) and emit. */
#include "compile/emit/emit.h"
#include "compile/fuse/fuse.h"
#include "compile/lower/lower.h"
#include "compile/lower_kernels.h"
#include "tn_op_functions.h"

#include <string.h>

static void free_fuser(tn__fuser *f)
{
    for (int i = 0; i < f->item_count; i++) {
        if (f->item[i].nest) {
            tn__nest_free(f->item[i].nest);
            tn__free(f->item[i].nest);
        }
        tn__free(f->item[i].needs.at);
        tn__free(f->item[i].users.at);
    }
    tn__free(f->ahead.at);
    tn__free(f->item);
    tn__free(f->item_of);
    tn__free(f->updates);
    tn__free(f->base.owner);
}

static bool init_fuser(tn__fuser *f, tn__draft *draft, const tn__device *device)
{
    size_t n = (size_t)draft->graph->count + 1;
    *f = (tn__fuser){.base = {.draft = draft, .graph = draft->graph, .stored = draft->stored,
                              .parallel = tn__on_gpu(device)},
                     .graph = draft->graph, .device = device};
    f->item_of = tn__alloc(n * sizeof(int));
    f->base.owner = tn__alloc(n * sizeof(int));
    if (!f->item_of || !f->base.owner)
        return false;
    for (size_t v = 0; v < n; v++)
        f->item_of[v] = f->base.owner[v] = -1;
    return true;
}

/* What is read through a chain of views: its base, and what is stored on the way. */
static void need_chain(const tn__fuser *f, bool *needed, int v)
{
    for (; tn__value_kind(&f->graph->value[v]) == TN__KIND_VIEW; v = f->graph->value[v].in[0])
        needed[v] = needed[v] || f->base.stored[v];
    needed[v] = true;
}

/* Targets that only their own nest reads need no memory. */
static bool drop_unneeded(tn__fuser *f)
{
    bool *needed = tn__calloc((size_t)f->graph->count + 1, sizeof(bool));
    if (!needed)
        return false;
    for (int r = 0; r < f->graph->result_count; r++)
        need_chain(f, needed, f->graph->result[r]);
    for (int i = 0; i < f->item_count; i++) {
        const tn__item *item = &f->item[i];
        if (item->nest) {
            for (int a = 0; a < item->nest->access_count; a++)
                if (item->nest->access[a].kind == TN__ACCESS_LOAD)
                    needed[item->nest->access[a].value] = true;
        } else if (!item->dead) {
            const tn__value *v = &f->graph->value[item->value];
            if (tn__is_folded(f->base.draft, item->value))
                v = &f->graph->value[tn__folded_product(f->base.draft, item->value)];
            for (int k = 0; k < v->arity; k++)
                need_chain(f, needed, v->in[k]);
        }
    }
    for (int i = 0; i < f->item_count; i++)
        for (int t = 0; f->item[i].nest && t < f->item[i].nest->target_count; t++)
            if (!needed[f->item[i].nest->target[t]])
                tn__nest_drop_store(f->item[i].nest, f->item[i].nest->target[t]);
    for (int i = 0; i < f->item_count; i++) { /* what was gathered by all its users, say */
        tn__item *item = &f->item[i];
        if (!item->nest || item->nest->store_count)
            continue;
        item->dead = true;
        for (int k = 0; k < item->needs.count; k++)
            f->item[tn__item_now(f, item->needs.at[k])].used--;
    }
    tn__free(needed);
    return true;
}

/* Are all nests as they should be? */
static bool verify_nests(tn__fuser *f)
{
    const char *wrong = NULL;
    for (int i = 0; i < f->item_count && !wrong; i++)
        if (f->item[i].nest && !f->item[i].dead)
            wrong = tn__nest_verify(f->graph, f->item[i].nest);
    f->base.draft->wrong = wrong;
    return !wrong;
}

const tn__emit_target *tn__target_of(const tn__device *device)
{
    static const tn__emit_target *const targets[] = {[TN__TARGET_NONE] = &tn__emit_target_c,
                                                     [TN__TARGET_C] = &tn__emit_target_c,
                                                     [TN__TARGET_CUDA] = &tn__emit_target_cuda,
                                                     [TN__TARGET_OPENCL] = &tn__emit_target_opencl};
    return targets[device->capabilities.target];
}

bool tn__lower_kernels(tn__draft *draft, const tn__device *device, bool fusion)
{
    tn__fuser f;
    tn__emitter emitter = {.target = tn__target_of(device),
                           .chip = &device->capabilities,
                           .declared = tn__calloc(TN__OP_COUNT * TN_DTYPE_COUNT, sizeof(int))};
    draft->policy = emitter.target->policy;
    tn__unfold_own_products(draft, device);
    bool done =
        init_fuser(&f, draft, device) && emitter.declared && tn__mark_updates(&f) && tn__choose_stored(&f, fusion);
    if (done && fusion)
        tn__find_epilogues(draft, device);
    done = done && tn__make_items(&f) && verify_nests(&f) && (!fusion || (tn__merge_nests(&f) && verify_nests(&f))) &&
           drop_unneeded(&f);
    if (done && fusion)
        tn__place_pieces(&f);
    done = done && tn__schedule(&f, draft, &emitter, fusion);
    free_fuser(&f);
    return tn__emit_finish(&emitter, draft) && done;
}
