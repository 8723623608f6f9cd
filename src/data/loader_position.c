/* SPDX-License-Identifier: MIT */
/* Where a loader stands: epochs, and places within them. */
#include "data/loader.h"

/* Samples taken since the epoch from which a loader that repeats counts. */
static int64_t taken(const tn_loader *loader) { return loader->next * loader->batches.batch; }

int64_t tn_loader_length(const tn_loader *loader)
{
    if (!loader || !loader->batches.length || !loader->batches.repeat)
        return loader ? loader->batches.length : 0;
    return loader->batches.count / loader->batches.batch + (loader->batches.count % loader->batches.batch != 0);
}

bool tn_loader_repeats(const tn_loader *loader) { return loader && loader->batches.repeat; }

int64_t tn_loader_epoch(const tn_loader *loader)
{
    if (!loader)
        return 0;
    return loader->batches.repeat && loader->batches.count ? loader->epoch + taken(loader) / loader->batches.count
                                                           : loader->epoch;
}

tn_status tn__loader_raise(const tn_loader *loader)
{
    if (!loader)
        return tn__fail_null("loader", "a loader");
    return loader->error ? tn__error_raise(loader->error) : tn__fail_memory("loader", sizeof *loader);
}

int64_t tn_loader_samples(const tn_loader *loader)
{
    if (!loader)
        return 0;
    if (loader->batches.repeat && loader->batches.length)
        return loader->batches.count;
    int64_t whole = loader->batches.length * loader->batches.batch;
    return whole < loader->batches.count ? whole : loader->batches.count;
}

int64_t tn_loader_position(const tn_loader *loader)
{
    if (!loader)
        return 0;
    int64_t all = tn_loader_samples(loader);
    if (loader->batches.repeat)
        return all ? taken(loader) % all : 0;
    return taken(loader) < all ? taken(loader) : all;
}

void tn__loader_go_to(tn_loader *loader, int64_t epoch, int64_t next)
{
    loader->epoch = epoch;
    loader->next = next;
    if (loader->prefetch)
        tn__prefetch_restart(loader->prefetch, epoch, next);
    if (loader->beside)
        tn__loader_go_to(loader->beside, epoch, next);
}

static tn_status bad_epoch(const char *operation, int64_t epoch)
{
    return tn__fail(TN_ERR_VALUE, operation, "expected an epoch of 0 or more, got %lld", (long long)epoch);
}

tn_status tn_loader_set_epoch(tn_loader *loader, int64_t epoch)
{
    if (!loader || loader->is_static || loader->error)
        return tn__loader_raise(loader);
    if (epoch < 0)
        return bad_epoch("loader_set_epoch", epoch);
    tn__loader_go_to(loader, epoch, 0);
    return TN_OK;
}

/* The minibatch of a loader that repeats that begins at a position of an epoch, counted from *base, an epoch at whose
 * beginning one begins, too; -1 if there is none. */
static int64_t find_minibatch(const tn__batches *batches, int64_t epoch, int64_t position, int64_t *base)
{
    int64_t from = position;
    for (int64_t back = 0; back < batches->batch && back <= epoch; back++) {
        *base = epoch - back;
        if (from % batches->batch == 0)
            return from / batches->batch;
        if (__builtin_add_overflow(from, batches->count, &from))
            return -1;
    }
    return -1;
}

tn_status tn_loader_set_position(tn_loader *loader, int64_t epoch, int64_t position)
{
    if (!loader || loader->is_static || loader->error)
        return tn__loader_raise(loader);
    if (epoch < 0)
        return bad_epoch("loader_set_position", epoch);
    int64_t all = tn_loader_samples(loader), batch = loader->batches.batch;
    bool end = position == all;
    int64_t minibatch = end ? loader->batches.length : position / batch;
    if (loader->batches.repeat && position >= 0 && position <= all)
        minibatch = end ? 0 : find_minibatch(&loader->batches, epoch, position, &epoch);
    if (loader->batches.repeat && end)
        epoch++;
    if (position < 0 || position > all || minibatch < 0 || (!loader->batches.repeat && !end && position % batch))
        return tn__fail(TN_ERR_VALUE, "loader_set_position",
                        "expected a position at which a minibatch begins, a multiple of %lld below %lld, or the end, "
                        "got %lld: the loader must have the dataset and the batch of the one it was taken from",
                        (long long)batch, (long long)all, (long long)position);
    tn__loader_go_to(loader, epoch, minibatch);
    return TN_OK;
}
