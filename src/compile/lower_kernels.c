/* SPDX-License-Identifier: MIT */
/*
 * Lowering to kernels: choose what is stored, make nests, merge them, order everything so that small nests come together, and
 * emit. Small nests that follow one another become one kernel that a single worker runs through.
 */
#include "compile/emit.h"
#include "compile/fuse.h"
#include "compile/product.h"

#include <string.h>

#define SMALL_POINTS 32768 /* of a nest that is run by one worker together with its neighbours */
#define SMALL_POINTS_GPU 8192 /* the same, where a worker is one of a hundred multiprocessors */
#define MAX_TOGETHER 16
#define MOST_WORDS 480     /* of parameters together, on a GPU: 4 KiB, with what the backend adds */

static void free_fuser(tn__fuser *f)
{
    for (int i = 0; i < f->item_count; i++) {
        if (f->item[i].nest) {
            tn__nest_free(f->item[i].nest);
            tn__free(f->item[i].nest);
        }
        tn__free(f->item[i].needs);
    }
    tn__free(f->item);
    tn__free(f->item_of);
    tn__free(f->updates);
    tn__free(f->base.owner);
}

static bool init_fuser(tn__fuser *f, tn__draft *draft, const tn__device *device)
{
    size_t n = (size_t)draft->graph->count + 1;
    *f = (tn__fuser){.base = {.draft = draft, .graph = draft->graph, .stored = draft->stored}, .graph = draft->graph,
                     .device = device, .words = (int)(2 * n / 64 + 1)};
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
            if (f->base.draft->fold[item->value] == TN__FOLD_UPDATE)
                v = &f->graph->value[tn__folded_product(f->graph, item->value)];
            for (int k = 0; k < v->arity; k++)
                need_chain(f, needed, v->in[k]);
        }
    }
    for (int i = 0; i < f->item_count; i++)
        for (int t = 0; f->item[i].nest && t < f->item[i].nest->target_count; t++)
            if (!needed[f->item[i].nest->target[t]])
                tn__nest_drop_store(f->item[i].nest, f->item[i].nest->target[t]);
    tn__free(needed);
    return true;
}

/* ---- order ---- */

static bool is_small(const tn__fuser *f, const tn__item *item)
{
    int64_t most = f->device->capabilities.multiprocessors ? SMALL_POINTS_GPU : SMALL_POINTS;
    return item->nest && !item->nest->product.there && tn__nest_points(item->nest) <= most;
}

static bool ready(const tn__fuser *f, int i, const uint64_t *done)
{
    for (int w = 0; w < f->words; w++)
        if (f->item[i].needs[w] & ~done[w])
            return false;
    return true;
}

/* The next item: small nests wait until nothing else can go on, and then come together; what overwrites waits for what may fail;
 * otherwise in recording order. -1 at the end. */
static int next_item(const tn__fuser *f, const uint64_t *done, bool after_small)
{
    int other = -1, waiting = -1;
    bool failing = tn__failing_left(f, done);
    for (int i = 0; i < f->item_count; i++) {
        if (f->item[i].dead || tn__set_has(done, i) || !ready(f, i, done))
            continue;
        if (failing && tn__must_wait(f, i, done)) {
            waiting = waiting < 0 ? i : waiting;
            continue;
        }
        if (is_small(f, &f->item[i]) == after_small)
            return i;
        if (other < 0)
            other = i;
    }
    return other < 0 ? waiting : other;
}

/* ---- emission ---- */

typedef struct group {
    tn__nest *nest[MAX_TOGETHER];
    int count;
    int words; /* of parameters, about */
} group;

/* What a nest asks of a kernel's parameter block: addresses, extents and strides, scalars and where they are. */
static int words_of(const tn__nest *nest)
{
    int words = 3 + nest->loop_count + nest->access_count * (5 + nest->loop_count);
    for (int e = 0; e < nest->expr_count; e++)
        words += nest->expr[e].kind == TN__EXPR_SCALAR ? 2 : nest->expr[e].kind == TN__EXPR_INDEX ? 4 : 0;
    return words;
}

/* On a GPU parameters come by value, and there is only so much room. */
static bool is_full(const tn__fuser *f, const group *g, const tn__nest *nest)
{
    bool by_value = f->device->capabilities.target == TN__TARGET_CUDA;
    return g->count == MAX_TOGETHER || (by_value && g->count && nest && g->words + words_of(nest) > MOST_WORDS);
}

static bool apart_from(const tn__fuser *f, const group *g, const tn__nest *nest)
{
    for (int i = 0; i < g->count; i++)
        if (tn__apart(f, g->nest[i], nest))
            return true;
    return false;
}

/* Emits what has been gathered; draft->stored may move. */
static bool flush(tn__draft *draft, tn__emitter *emitter, group *g, int *kernels)
{
    if (!g->count)
        return true;
    int count = g->count;
    g->count = g->words = 0;
    if (count == 1 && emitter->target->splits && emitter->target->splits(emitter, g->nest[0]))
        return tn__emit_in_pieces(draft, emitter, g->nest[0], kernels);
    tn__draft_step *step = tn__draft_add(draft, TN__STEP_KERNEL);
    return step && tn__emit_step(emitter, g->nest, count, (*kernels)++, step);
}

static bool emit_items(tn__fuser *f, tn__draft *draft, tn__emitter *emitter, bool fusion)
{
    uint64_t *done = tn__calloc((size_t)f->words, sizeof *done);
    group g = {.count = 0};
    int kernels = 0;
    bool good = done != NULL;
    for (int i; good && (i = next_item(f, done, g.count > 0)) >= 0;) {
        f->base.stored = draft->stored;
        tn__item *item = &f->item[i];
        tn__set_add(done, i);
        bool together = fusion && is_small(f, item);
        if (!together || is_full(f, &g, item->nest) || apart_from(f, &g, item->nest))
            good = flush(draft, emitter, &g, &kernels);
        if (!good)
            break;
        if (!item->nest) {
            bool fold = draft->fold[item->value] == TN__FOLD_UPDATE;
            good = fold ? tn__lower_folded(draft, item->value) : tn__lower_value(draft, item->value);
            continue;
        }
        tn__nest_collapse(item->nest);
        if (item->nest->product.there)
            tn__product_settle(item->nest, f->device);
        g.nest[g.count++] = item->nest;
        g.words += words_of(item->nest);
        if (!together)
            good = flush(draft, emitter, &g, &kernels);
    }
    good = good && flush(draft, emitter, &g, &kernels);
    tn__free(done);
    return good;
}

bool tn__lower_kernels(tn__draft *draft, const tn__device *device, bool fusion)
{
    tn__fuser f;
    tn__product_unfold(draft, device);
    bool cuda = device->capabilities.target == TN__TARGET_CUDA;
    tn__emitter emitter = {.target = cuda ? &tn__emit_target_cuda : &tn__emit_target_c, .chip = &device->capabilities,
                           .declared = tn__calloc(TN__OP_COUNT * TN_DTYPE_COUNT, 1)};
    bool done = init_fuser(&f, draft, device) && emitter.declared && tn__mark_updates(&f) && tn__choose_stored(&f, fusion);
    done = done && tn__make_items(&f) && (!fusion || tn__merge_nests(&f)) && drop_unneeded(&f) &&
           emit_items(&f, draft, &emitter, fusion);
    free_fuser(&f);
    draft->source = tn__emit_finish(&emitter);
    return done && draft->source;
}
