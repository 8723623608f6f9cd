/* SPDX-License-Identifier: MIT */
/* The fields of minibatches: x and t, and where samples have more, those of loaders of the other pairs, which go
 * through the same order in step. */
#include <string.h>
#include "core/memory.h"
#include "data/loader.h"

tn_status tn__loader_prepare_fields(tn_loader *loader, const tn_dataset *dataset, const tn_loader_opts *opts)
{
    loader->half = dataset->half;
    for (int i = 0; i < 2; i++) {
        const char *name = dataset->names[i] ? dataset->names[i] : i ? "t" : "x";
        if (!(loader->names[i] = tn__strdup(name)))
            return tn__fail_memory("loader", strlen(name));
    }
    if (!dataset->more)
        return TN_OK;
    loader->beside = tn__loader_make(dataset->more, opts, TN_OK);
    return tn_loader_status(loader->beside) == TN_OK ? TN_OK : tn__loader_raise(loader->beside);
}

bool tn__loader_deliver_fields(tn_loader *loader, tn_batch *batch)
{
    tn_batch rest = {0};
    if (loader->beside && !tn_loader_next(loader->beside, &rest))
        return false;
    int count = 0;
    tn_array *own[] = {batch->x, batch->t};
    for (int i = 0; i < (loader->half ? 1 : 2); i++, count++) {
        loader->fields[count] = own[i];
        loader->field_names[count] = loader->names[i];
    }
    for (int i = 0; i < rest.field_count && count < TN_MAX_FIELDS; i++, count++) {
        loader->fields[count] = rest.fields[i];
        loader->field_names[count] = rest.names[i];
    }
    batch->field_count = count;
    batch->fields = loader->fields;
    batch->names = loader->field_names;
    return true;
}

tn_array *tn_batch_field(const tn_batch *batch, const char *name)
{
    for (int i = 0; batch && name && i < batch->field_count; i++)
        if (strcmp(batch->names[i], name) == 0)
            return batch->fields[i];
    tn__call call = tn__enter();
    if (!batch || !batch->field_count)
        tn__fail(TN_ERR_VALUE, "batch_field", "expected a minibatch of tn_loader_next, got %s",
                 batch ? "an empty one" : "NULL");
    else
        tn__fail(TN_ERR_NAME, "batch_field", "there is no field \"%s\"; the first is \"%s\"", name ? name : "NULL",
                 batch->names[0]);
    return tn__leave_error(call);
}
