/* SPDX-License-Identifier: MIT */
/* Objects as they were before a load that failed, see undo.h. */
#include "train/undo.h"

static tn_status note_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)path;
    tn__undo *undo = user;
    if (slot->value)
        return TN_OK;
    if (!tn__grow((void **)&undo->open, &undo->open_capacity, undo->open_count + 1, sizeof *undo->open))
        return tn__fail_memory("load", sizeof *undo->open);
    undo->open[undo->open_count++] = (tn__open_slot){layer, slot, slot->shape};
    return TN_OK;
}

tn_status tn__undo_note(tn__undo *undo, tn_optimizer *optimizer)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status == TN_OK)
        status = tn__visit_slots(optimizer->layer, "", note_slot, undo);
    if (status != TN_OK)
        return status;
    if (!tn__grow((void **)&undo->optimizers, &undo->optimizer_capacity, undo->optimizer_count + 1,
                  sizeof *undo->optimizers))
        return tn__fail_memory("load", sizeof *undo->optimizers);
    undo->optimizers[undo->optimizer_count++] = (tn__noted_optimizer){optimizer, optimizer->set, optimizer->base};
    return TN_OK;
}

tn_status tn__undo_archive(tn__undo *undo)
{
    undo->archive = tn_archive_new();
    return tn_archive_status(undo->archive);
}

/* A slot may have been noted twice, by two optimizers of one layer. */
static void open_again(const tn__open_slot *open)
{
    if (open->slot->value)
        tn__array_free_kept(open->slot->value);
    open->slot->value = NULL;
    open->slot->shape = open->shape;
    tn__layer_changed(open->layer);
}

void tn__undo_reset(tn__undo *undo)
{
    for (size_t i = 0; i < undo->optimizer_count; i++) {
        const tn__noted_optimizer *noted = &undo->optimizers[i];
        tn__optimizer_forget(noted->optimizer);
        noted->optimizer->set = noted->set;
        noted->optimizer->base = noted->base;
    }
    for (size_t i = 0; i < undo->open_count; i++)
        open_again(&undo->open[i]);
}

void tn__undo_end(tn__undo *undo)
{
    tn__free(undo->open);
    tn__free(undo->optimizers);
    tn_archive_free(undo->archive);
    *undo = (tn__undo){0};
}
