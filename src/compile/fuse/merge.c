/* SPDX-License-Identifier: MIT */
/* Merging nests that can share loops: producers with consumers, and siblings that read the same values. */
#include "compile/fuse/fuse.h"

#include <string.h>

#define MAX_EXPRESSIONS 400 /* in a nest: compilers slow down beyond */
#define MAX_ACCESSES    48
#define LOOK_BACK       64 /* nests that each one is tried with: keeps planning linear in the size of the graph */
#define LONG_ROW        16384 /* elements from which on passes over a row rather are nests of their own */
#define ENDLESS_ROW     131072 /* the same on a GPU, however few there are: a block takes 10 us for such a one */
#define PROCESSORS      16 /* of a CPU: whatever there are, the same plan */

/* Are the loops of `row`, which reduces nothing, those that `whole` keeps when it reduces? */
static bool row_loops(const tn__nest *row, const tn__nest *whole)
{
    int k = 0;
    if (!whole->reduced || row->reduced)
        return false;
    for (int l = 0; l < whole->loop_count; l++) {
        if (whole->reduced >> l & 1)
            continue;
        if (k == row->loop_count || row->extent[k++] != whole->extent[l])
            return false;
    }
    return k == row->loop_count;
}

/* Can two nests have the same loops, whatever they compute? The merged nest gets the loops, and the reduced ones among
 * them, of the one that has more. */
static bool domains_fit(const tn__fuser *f, const tn__nest *into, const tn__nest *nest)
{
    if ((into->product.there || nest->product.there) && !f->base.draft->policy->joins(into, nest))
        return false;
    if (tn__nest_same_loops(into, nest))
        return !into->reduced || !nest->reduced || into->reduced == nest->reduced;
    return row_loops(nest, into) || row_loops(into, nest);
}

/* Would this be a nest that cannot occupy the device, as it has few long rows (or columns) and goes through them more
 * than once, or has more reductions than a split one may have? Separate nests can each be split over all workers. */
static bool is_better_apart(const tn__fuser *fuser, const tn__nest *nest)
{
    const tn__capabilities *device = &fuser->device->capabilities;
    const tn__target_policy *policy = fuser->base.draft->policy;
    int64_t rows = tn__nest_rows(nest), workers = device->multiprocessors ? device->multiprocessors : PROCESSORS;
    if (!nest->reduced || rows == 0)
        return false;
    int64_t points = tn__nest_points(nest), row = points / rows;
    bool fill = row >= LONG_ROW && points >= LONG_ROW * workers;
    bool endless = device->multiprocessors && row > ENDLESS_ROW;
    if (tn__nest_passes(nest) > 1 && rows < workers && (fill || endless))
        return !(device->clusters && policy && policy->holds_rows(device, nest));
    return policy && policy->needs_splitting(device, nest);
}

/* Nests are gone through in their order; the one in hand is tried with some of those before it. */
typedef struct merger {
    tn__fuser *f;
    int *read;         /* by value: the last nest that was in hand and reads or writes it */
    tn__numbers nests; /* those before that have not been merged into another */
} merger;

/* Is there something to gain? One nest reads what the other writes, or both read the same. */
static bool related(const merger *m, int into, int nest)
{
    const tn__nest *a = m->f->item[into].nest;
    if (tn__order_needs(m->f, into))
        return true;
    for (int i = 0; i < a->access_count; i++)
        if (a->access[i].kind != TN__ACCESS_INDEX && m->read[a->access[i].value] == nest)
            return true;
    return false;
}

static bool take_in_hand(merger *m, int nest)
{
    const tn__nest *b = m->f->item[nest].nest;
    for (int i = 0; i < b->access_count; i++)
        if (b->access[i].kind != TN__ACCESS_INDEX)
            m->read[b->access[i].value] = nest;
    return tn__order_search(m->f, nest);
}

static void own(tn__fuser *f, const tn__nest *nest, int item)
{
    for (int t = 0; t < nest->target_count; t++)
        f->base.owner[nest->target[t]] = item;
}

/* Is one nest a product that can be computed in the blocks of the product that gives its first factor, and the other a
 * sum over its rows? Merged with the sum, whose blocks need all rows, it could not: so they stay apart. */
static bool holds_back(const tn__fuser *f, const tn__nest *a, const tn__nest *b)
{
    const tn__nest *next = a->product.there ? a : b, *sum = a->product.there ? b : a;
    if (!next->product.there || next->product.row_loop < 0 || !(sum->reduced >> next->product.row_loop & 1))
        return false;
    int first = f->item_of[next->access[next->product.access[0]].value];
    return first >= 0 && f->item[first].nest &&
           f->base.draft->policy->fits_back_to_back(f->item[first].nest, next, f->device);
}

/* A single number that nothing in this run needs: the next one does, such as where its minibatch begins. On a GPU it
 * goes into the first launch (launches.c), so it is not merged with what comes late. */
static bool is_ahead(const tn__fuser *f, int i)
{
    const tn__item *item = &f->item[i];
    return tn__on_gpu(f->device) && tn__nest_points(item->nest) == 1 && !item->needs.count && !item->used;
}

/* Tries to compute what item `nest` stores in the loops of item `into`. */
static tn__built merge(tn__fuser *f, int into, int nest)
{
    tn__nest *a = f->item[into].nest, *b = f->item[nest].nest;
    const tn__nest *wide = row_loops(a, b) ? b : a;
    tn__nest *both = tn__calloc(1, sizeof *both);
    if (!both)
        return TN__BUILT_NO_MEMORY;
    both->number = into;
    both->loop_count = wide->loop_count;
    memcpy(both->extent, wide->extent, sizeof both->extent);
    both->reduced = a->reduced | b->reduced;
    if (wide == a && !tn__nest_same_loops(a, b))
        both->reduced = a->reduced;
    if (wide == b)
        both->reduced = b->reduced;
    both->last_kept = both->loop_count && !(both->reduced >> (both->loop_count - 1) & 1);
    tn__built built = TN__BUILT_NO_MEMORY;
    bool added = true;
    for (int t = 0; t < a->target_count && added; t++)
        added = tn__nest_add_target(both, a->target[t]);
    for (int t = 0; t < b->target_count && added; t++)
        added = tn__nest_add_target(both, b->target[t]);
    if (added) {
        own(f, b, into);
        built = tn__nest_build(&f->base, both);
        if (built == TN__BUILT && (both->expr_count > MAX_EXPRESSIONS || both->access_count > MAX_ACCESSES ||
                                   is_better_apart(f, both)))
            built = TN__BUILT_MISFIT;
    }
    if (built != TN__BUILT) {
        own(f, b, nest);
        tn__nest_free(both);
        tn__free(both);
        return built;
    }
    for (int t = 0; t < b->target_count; t++)
        f->item_of[b->target[t]] = into;
    tn__nest_free(a);
    tn__free(a);
    tn__nest_free(b);
    tn__free(b);
    f->item[into].nest = both;
    f->item[nest].nest = NULL;
    return tn__order_join(f, into, nest) ? TN__BUILT : TN__BUILT_NO_MEMORY;
}

/* Whether the two are to be tried: what is sure to be in vain, or to wait for itself, is not. */
static tn__known may_merge(const merger *m, int into, int nest)
{
    tn__fuser *f = m->f;
    const tn__nest *a = f->item[into].nest, *b = f->item[nest].nest;
    if (!domains_fit(f, a, b) || !related(m, into, nest))
        return TN__KNOWN_FALSE;
    tn__known through = tn__order_needs_through(f, into);
    if (through != TN__KNOWN_FALSE)
        return through == TN__KNOWN_TRUE ? TN__KNOWN_FALSE : through;
    return !tn__apart(f, a, b) && !holds_back(f, a, b) && is_ahead(f, into) == is_ahead(f, nest) ? TN__KNOWN_TRUE
                                                                                                 : TN__KNOWN_FALSE;
}

/* Makes a nest part of one before it, if it can be; MISFIT: of none. */
static tn__built merge_one(merger *m, int nest)
{
    if (!take_in_hand(m, nest))
        return TN__BUILT_NO_MEMORY;
    for (int k = m->nests.count - 1; k >= 0 && k >= m->nests.count - LOOK_BACK; k--) {
        tn__known may = may_merge(m, m->nests.at[k], nest);
        tn__built built = may == TN__KNOWN_TRUE    ? merge(m->f, m->nests.at[k], nest)
                          : may == TN__KNOWN_FALSE ? TN__BUILT_MISFIT
                                                   : TN__BUILT_NO_MEMORY;
        if (built != TN__BUILT_MISFIT)
            return built;
    }
    return TN__BUILT_MISFIT;
}

bool tn__merge_nests(tn__fuser *f)
{
    merger m = {.f = f, .read = tn__alloc(sizeof *m.read * ((size_t)f->graph->count + 1))};
    bool done = m.read != NULL;
    for (int v = 0; v < f->graph->count && done; v++)
        m.read[v] = -1;
    for (int i = 0; i < f->item_count && done; i++) {
        tn__built built = f->item[i].nest ? merge_one(&m, i) : TN__BUILT_MISFIT;
        if (built == TN__BUILT_MISFIT)
            done = tn__order_add(f, i) && (!f->item[i].nest || tn__numbers_add(&m.nests, i));
        done = done && built != TN__BUILT_NO_MEMORY;
    }
    tn__free(m.read);
    tn__free(m.nests.at);
    return done;
}
